"""What is known of a language, from its file of words: function words, elided words, rules for conversation. Pure.

The data are the files ``english.toml``, ``german.toml``, ``spanish.toml`` and ``french.toml``; a language without a
file has no function words and no rules.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, field
from functools import lru_cache
from importlib.resources import files
from typing import Any

__all__ = ["LANGUAGES", "Language", "known"]

LANGUAGES = ("english", "german", "spanish", "french")
"""The languages that have a file of words."""
_SAME = {"porter": "english"}
"""Stemmers of a language that is named otherwise."""


@dataclass(frozen=True, slots=True)
class Language:
    """The words of one language.

    ``stop_words`` and ``contractions``, which are stop words only with an apostrophe, are folded tokens. ``elided`` are
    words that lose their end before an apostrophe (l', qu'), so that a token ends there. ``talk`` are the rules of
    semmem.text.talk as they stand in the file.
    """

    name: str
    stop_words: frozenset[str] = frozenset()
    contractions: frozenset[str] = frozenset()
    elided: tuple[str, ...] = ()
    talk: dict[str, Any] = field(default_factory=dict)


@lru_cache(maxsize=64)
def known(language: str) -> Language:
    """Return what is known of ``language``, by the name of its stemmer; of most nothing but the name."""
    name = _SAME.get(language, language)
    if name not in LANGUAGES:
        return Language(language)
    table = tomllib.loads(files("semmem.text").joinpath(f"{name}.toml").read_text(encoding="utf-8"))
    return Language(
        name,
        frozenset(table["stop_words"].split()),
        frozenset(table["contractions"].split()),
        tuple(table.get("elided", ())),
        table["talk"],
    )
