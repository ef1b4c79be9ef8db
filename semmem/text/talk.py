"""The rules for conversation that depend on the language of a namespace: months, lists, whose words a question takes.

The rules are data, in the file of words of each language (``languages``). A language without a file has none: no month,
no list, and the author who is asked about keeps the name. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from semmem.text.languages import known
from semmem.text.periods import month_names, plain

__all__ = ["Talk", "talk"]

_NAME, _OF = "\0", "\0's"


@dataclass(frozen=True, slots=True)
class Talk:
    """The rules of one language: its words, and ``patterns``, which only questions to a conversation need.

    ``small`` and ``capital`` are the months that are one only with a small letter (mars), or with a capital inside a
    sentence (May).
    """

    language: str
    capital: frozenset[str]
    small: frozenset[str]
    first_person: frozenset[str]
    genitive: str

    @property
    def patterns(self) -> _Patterns:
        """The patterns of the language; compiling them takes 3 ms, so it waits for a memory with an author."""
        return _patterns(self.language)

    def months(self, question: str) -> tuple[tuple[int, int | None], ...]:
        """Return the months that ``question`` names as (month from 1, year or None)."""
        out = []
        patterns = self.patterns
        for match in patterns.date.finditer(plain(question)):
            name, year = match["month"], match["year"]
            if year or self._is_month(question, match):
                out.append((patterns.months.index(name) + 1, int(year) if year else None))
        return tuple(out)

    def _is_month(self, text: str, match: re.Match[str]) -> bool:
        """Return whether a word such as May or Mars is the month.

        May has a capital and is not the first word of a sentence, unless a day follows; Mars has none.
        """
        written = text[match.start("month")]
        if match["month"] in self.small:
            return not written.isupper()
        if match["month"] not in self.capital:
            return True
        before = text[max(0, match.start() - 8) : match.start()].rstrip(" \t\"'([")
        return written.isupper() and (match[0] != match["month"] or (bool(before) and before[-1] not in ".?!:\n"))

    def collects(self, question: str) -> bool:
        """Return whether the answer of ``question`` is spread over many turns, as its plural or "how many" tells."""
        text = plain(question)
        return any(pattern.search(text) for pattern in self.patterns.lists)

    def base(self, name: str) -> str:
        """Return a name without the ending of its genitive, where it may have one: annas is anna; else ``name``."""
        return name.removesuffix(self.genitive) if self.genitive and len(name) > 2 * len(self.genitive) else name

    def as_said(self, question: str, places: Sequence[tuple[int, int, bool]]) -> str:
        """Return the question as the author at ``places`` (start, end, is it a possessive) would say it: I, my."""
        for start, end, possessive in sorted(places, reverse=True):
            question = question[:start] + (_OF if possessive else _NAME) + question[end:]
        for pattern, said in self.patterns.own:
            question = pattern.sub(said, question)
        return question


@dataclass(frozen=True, slots=True)
class _Patterns:
    """The patterns of one language, compiled, and its twelve ``months``."""

    months: tuple[str, ...]
    date: re.Pattern[str]
    lists: tuple[re.Pattern[str], ...]
    own: tuple[tuple[re.Pattern[str], str], ...]


@lru_cache(maxsize=64)
def talk(language: str) -> Talk | None:
    """Return the rules for conversation in ``language``, by the name of its stemmer; None where there are none."""
    words = known(language)
    if not (rules := words.talk):
        return None
    return Talk(
        words.name,
        frozenset(rules.get("months_with_capital", ())),
        frozenset(rules.get("months_with_small_letter", ())),
        frozenset(rules["first_person"]),
        rules.get("genitive", ""),
    )


@lru_cache(maxsize=64)
def _patterns(language: str) -> _Patterns:
    rules = known(language).talk
    months = month_names(language)
    date = rules["date"].replace("{month}", f"(?P<month>{'|'.join(months)})").replace("{year}", r"(?P<year>\d{4})")
    own = [(one.replace("{name}{of}", _OF).replace("{name}", _NAME), said) for one, said in rules["self"]]
    return _Patterns(
        months,
        _compiled(date),
        tuple(map(_compiled, rules["collects"])),
        tuple((_compiled(pattern), said) for pattern, said in own),
    )


def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)
