"""Memories about a harbour, and legs that count or raise, for the tests of recall."""

from __future__ import annotations

import random
import threading
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
from numpy.typing import NDArray

import semmem
from semmem.embedders.hashing import Hashing
from semmem.model.exchange import Question, Ranking, Scope
from semmem.model.protocols import Leg
from semmem.model.store import Snapshot

EPOCH = datetime(2026, 1, 1, tzinfo=UTC)
HARBOUR = ["ferry", "harbour", "tide", "mast", "sail", "rope", "anchor", "crew", "dawn", "storm", "chart", "engine"]


class Counted(Leg):
    """A leg that counts its calls and passes them on."""

    def __init__(self, leg: Leg) -> None:
        self.leg, self.name, self.follows, self.calls = leg, leg.name, leg.follows, 0

    def search(self, question: Question, snapshot: Snapshot, recipe: semmem.Recipe) -> Ranking:
        self.calls += 1
        return self.leg.search(question, snapshot, recipe)


class Broken:
    """A leg that raises."""

    def __init__(self, name: str, error: Exception) -> None:
        self.name, self.error = name, error

    def search(self, question: Question, scope: Scope, recipe: semmem.Recipe) -> Ranking:
        raise self.error


class Slow:
    """A leg that answers nothing until it is let go."""

    def __init__(self, name: str) -> None:
        self.name, self.go = name, threading.Event()

    def search(self, question: Question, scope: Scope, recipe: semmem.Recipe) -> Ranking:
        self.go.wait(20)
        return Ranking()


class CountingEmbedder(Hashing):
    """The hashing embedder, counting the texts it is given."""

    texts = 0

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        self.texts += len(texts)
        return super().embed(texts)


def legs(mem: semmem.Semmem) -> dict[str, Any]:
    """Return the legs in use; a test puts its own in their place."""
    return mem._here.recaller._legs  # type: ignore[return-value]


def ids(found: Sequence[semmem.Hit]) -> list[str]:
    return [hit.memory.id for hit in found]


def words(seed: int, count: int) -> str:
    return " ".join(random.Random(seed).choices(HARBOUR, k=count))


def fleet(count: int = 200) -> list[dict[str, Any]]:
    """Two hundred memories about a harbour; twelve are in session "log", by "ada", tagged "kept"."""
    rows = []
    for n in range(count):
        inside = n % 17 == 0  # 0, 17, …, 187: twelve
        rows.append(
            {
                "text": f"ferry {words(n, 8)} number{n}",
                "id": f"{n:03}",
                "session": "log" if inside else f"day{n % 5}",
                "author": "ada" if inside else "bob",
                "tags": ["kept", "old"] if inside else ["old"],
                "metadata": {"ship": {"name": "Ondine" if inside else "Sable", "berth": n % 3}},
                "created_at": EPOCH + timedelta(days=400 if inside else 0, hours=n),
                "importance": (n % 11) / 10,
            }
        )
    return rows
