"""Items with sentences of few words, drawn by chance."""

from __future__ import annotations

import random
from typing import Any

WORDS = ("tea", "rum", "cat", "dog", "owl", "fox", "oak", "elm", "sun", "moon", "Ada", "Bob", "Eve", "42", "2.5")


def sentence(chance: random.Random, words: int = 12) -> str:
    return " ".join(chance.choice(WORDS) for _ in range(words)) + "."


def items(count: int, chance: random.Random | None = None) -> list[dict[str, Any]]:
    chance = chance or random.Random(7)
    return [
        {"id": f"m{n}", "text": sentence(chance), "created_at": "2026-01-31", "title": chance.choice([None, "Ada Bob"])}
        for n in range(count)
    ]
