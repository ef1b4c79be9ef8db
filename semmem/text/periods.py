"""The periods of time that a question names, such as "last week", resolved against the time of the question. Pure.

The words are data: ``period_words.toml`` has a table for each language, and all languages are read at once, since a
question may be in another language than the memories. A period is a stretch of the calendar: days begin at midnight in
the time zone of the question, weeks on Monday, and seasons are those of the north, of three whole months. Without a
year the last one that has begun is meant. An event, as in "since the release", is no period.
"""

from __future__ import annotations

import re
import tomllib
import unicodedata
from calendar import monthrange
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta, tzinfo
from functools import lru_cache
from importlib.resources import files
from typing import Any, NamedTuple, TypeAlias

from semmem.model.question import Period
from semmem.text.languages import LANGUAGES

__all__ = ["month_names", "periods_of", "plain"]

Span: TypeAlias = tuple[datetime | None, datetime | None]
"""The first moment of a period and the first moment after it, without a time zone; None for an open side."""

_DAY = timedelta(days=1)
_SEASONS = {"spring": 3, "summer": 6, "autumn": 9, "winter": 12}
_FEASTS = {"christmas": (12, 24, 3), "new_year": (1, 1, 1), "new_years_eve": (12, 31, 1), "halloween": (10, 31, 1)}
"""Month, day and number of days of each feast; Easter moves."""
_YEARS_BACK = 14
"""How many years a date without a year is looked for: 29 February may be eight years ago."""
_LONGEST = 1_000
"""Only so many characters of a question are read for periods."""
_NEAR = 60
"""So many characters before a period may hold its preposition."""
_LONG = ("week", "weekend", "month", "quarter", "year")


def periods_of(question: str, now: datetime) -> tuple[Period, ...]:
    """Return the periods that ``question`` names, in its order; ``now`` is when it was asked.

    The periods have the time zone of ``now``; where that has none, they are in the local time of this process.
    """
    text = plain(question[:_LONGEST])
    today = now.replace(tzinfo=None)
    places = [
        place for language in _languages() if language.hint.search(text) for place in language.places(text, today)
    ]
    out: list[_Place] = []
    for place in sorted(places, key=lambda one: (one.start - one.end, one.start)):
        if all(place.end <= other.start or other.end <= place.start for other in out):
            out.append(place)
    return tuple(_period(place, question, now.tzinfo) for place in sorted(out))


def month_names(language: str) -> tuple[str, ...]:
    """Return the twelve months by their whole names, as ``plain`` gives them."""
    return tuple(names.partition("|")[0] for names in _tables()[language]["months"])


def _period(place: _Place, question: str, zone: tzinfo | None) -> Period:
    start, end = (None if at is None else at.replace(tzinfo=zone) for at in place.span)
    return Period(question[place.start : place.end], start, end)


def plain(text: str) -> str:
    """Return ``text`` in small letters without accents, character by character, so that offsets stay."""
    if text.isascii():
        return text.lower().replace("\n", " ")
    return "".join((unicodedata.normalize("NFD", one)[0].lower() or one)[0] for one in text.replace("\u2019", "'"))


# ---------------------------------------------------------------------- words


class _Place(NamedTuple):
    """A period and the characters of the question that name it."""

    start: int
    end: int
    span: Span


@dataclass(frozen=True, slots=True)
class _Rule:
    """A pattern and its meaning: a word such as ``ago``, and its arguments."""

    pattern: re.Pattern[str]
    means: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Words:
    """The words of one language, compiled."""

    hint: re.Pattern[str]
    values: Mapping[str, Mapping[str, Any]]
    rules: tuple[_Rule, ...]
    bare: tuple[_Rule, ...]
    relations: tuple[_Rule, ...]
    introduced: re.Pattern[str]
    between: re.Pattern[str]
    joined: re.Pattern[str]

    def places(self, text: str, now: datetime) -> list[_Place]:
        """Return all periods that ``text`` names, longer and shorter ones for the same words."""
        whole = [(rule, match) for rule in self.rules for match in rule.pattern.finditer(text)]
        bare = [(rule, match) for rule in self.bare for match in rule.pattern.finditer(text)]
        out: list[_Place] = []
        for index, (rule, match) in enumerate((*whole, *bare)):
            span = self._resolved(rule.means, match, now)
            if span is None:
                continue
            place = _Place(match.start(), match.end(), span)
            if index < len(whole) or self.introduced.search(text, _near(place.start), place.start):
                out.append(place)
            out += self._related(text, place)
            out += self._from(text, place, (*whole, *bare))
        return out

    def _related(self, text: str, anchor: _Place) -> Iterator[_Place]:
        """Yield the periods that a relation before ``anchor`` makes of it, such as "before Christmas"."""
        start, end = anchor.span
        spans = {"before": (None, start), "after": (end, None), "since": (start, None), "until": (None, end)}
        for rule in self.relations:
            if not (match := rule.pattern.search(text, _near(anchor.start), anchor.start)):
                continue
            if rule.means[0] in spans:
                yield _Place(match.start(), anchor.end, spans[rule.means[0]])
            elif start is not None and (span := self._resolved(rule.means, match, start)):
                yield _Place(match.start(), anchor.end, span)

    def _from(self, text: str, anchor: _Place, found: Sequence[tuple[_Rule, re.Match[str]]]) -> Iterator[_Place]:
        """Yield the periods that end with ``anchor``, such as "between May and July"."""
        past, end = anchor.span
        if past is None or end is None:
            return
        for rule, match in found:
            if match.end() >= anchor.start or not self.joined.fullmatch(text, match.end(), anchor.start):
                continue
            first = self._resolved(rule.means, match, past)
            before = self.between.search(text, _near(match.start()), match.start())
            if before and first is not None and first[0] is not None and first[0] < end:
                yield _Place(before.start(), anchor.end, (first[0], end))

    def _resolved(self, means: Sequence[str], match: re.Match[str], now: datetime) -> Span | None:
        """Return the period of a match, None where the calendar, which ends with the year 9999, has no such day."""
        said = {name: self.values.get(name, {}).get(text, text) for name, text in match.groupdict().items() if text}
        how, *arguments = means
        unit = said.get("unit") or said.get("long")
        number = next((int(one) for one in arguments if one.isdigit()), None) or int(said.get("n", 0))
        try:
            if how == "ago":
                return _ago(number, arguments[-1] if unit is None else unit, now)
            if how == "past":
                return _past(number, str(unit), now)
            return _recurring(how, number or 1, said, now)
        except (OverflowError, ValueError):
            return None


@lru_cache(maxsize=1)
def _tables() -> Mapping[str, Mapping[str, Any]]:
    return tomllib.loads(files("semmem.text").joinpath("period_words.toml").read_text(encoding="utf-8"))


@lru_cache(maxsize=1)
def _languages() -> tuple[_Words, ...]:
    return tuple(_compiled(_tables()[language]) for language in LANGUAGES)


def _hint(table: Mapping[str, Any]) -> re.Pattern[str]:
    """Return what every question that names a period in a language has: one of these words, or a number."""
    words = {word for means in ("ago 0 day", "ago 1 day", "ago 2 day") for word in _long_words(table["rules"][means])}
    named = (table["months"], table["weekdays"], *(table[of].values() for of in ("units", "seasons", "feasts")))
    words |= {word for of in named for some in of for word in some.split("|")}
    return re.compile(rf"\d|(?<!\w)(?:{_any_of(words)})(?!\w)")


def _long_words(patterns: Sequence[str]) -> list[str]:
    return [word for pattern in patterns for word in re.findall(r"[a-z'-]{4,}", pattern)]


def _values(table: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return what each word of a placeholder means."""

    def of(rows: Mapping[Any, str]) -> dict[str, Any]:
        return {word: value for value, words in rows.items() for word in words.split("|")}

    units = of(table["units"])
    return {
        "n": of(dict(enumerate(table["numbers"], 1))),
        "unit": units,
        "long": {word: unit for word, unit in units.items() if unit in _LONG},
        "month": of(dict(enumerate(table["months"], 1))),
        "weekday": of(dict(enumerate(table["weekdays"]))),
        "season": of(table["seasons"]),
        "feast": of(table["feasts"]),
    }


def _compiled(table: Mapping[str, Any]) -> _Words:
    values = _values(table)
    groups = {name: rf"(?P<{name}>{_any_of(words)})" for name, words in values.items()}
    groups["n"] = rf"(?P<n>\d{{1,3}}|{_any_of(values['n'])})"
    groups |= {"year": r"(?P<year>(?:19|20)\d\d)", "day": r"(?P<day>[0-3]?\d)", "mm": r"(?P<mm>[01]?\d)"}
    groups["named"] = "(?:" + "|".join(groups[name] for name in ("month", "season", "feast", "weekday")) + ")"

    def regex(pattern: str) -> str:
        for name, group in groups.items():
            pattern = pattern.replace(f"{{{name}}}", group)
        return pattern.replace(" ", r"\s+")

    article = f"(?:(?:{_any_of(table['article'])})(?:\\s+|(?<=')))?"

    def to_the_left(patterns: Sequence[str]) -> re.Pattern[str]:
        some = "|".join(f"(?:{regex(pattern)})" for pattern in patterns)
        return re.compile(rf"(?<!\w)(?:{some})(?:\s+|(?<='))(?:{article})$")

    def rules(rows: Mapping[str, Sequence[str]], make: Callable[[str], re.Pattern[str]]) -> tuple[_Rule, ...]:
        return tuple(_Rule(make(one), tuple(means.split())) for means, patterns in rows.items() for one in patterns)

    def anywhere(pattern: str) -> re.Pattern[str]:
        return re.compile(rf"(?<![\w.,:/-])(?:{regex(pattern)})(?![\w/-])")

    relations = {means: of for means, of in table["relations"].items() if means not in ("between", "and")}
    bare = [*table["bare"], r"{year}-(?P<mm>[01]\d)-(?P<day>[0-3]\d)"]
    joined = rf"\s+(?:{_any_of(table['relations']['and'])})\s+{article}"
    return _Words(
        _hint(table),
        values,
        rules(table["rules"], anywhere),
        rules({"latest": bare}, anywhere),
        rules(relations, lambda one: to_the_left([one])),
        to_the_left(table["in"]),
        to_the_left(table["relations"]["between"]),
        re.compile(joined),
    )


def _near(start: int) -> int:
    return max(0, start - _NEAR)


def _any_of(words: Any) -> str:
    return "|".join(re.escape(word).replace(r"\ ", r"\s+") for word in sorted(words, key=len, reverse=True))


# ---------------------------------------------------------------------- the calendar


def _ago(number: int, unit: str, now: datetime) -> Span:
    """Return the unit of the calendar that is ``number`` units before the one of ``now``."""
    if unit == "hour":
        start = now.replace(minute=0, second=0, microsecond=0) - timedelta(hours=number)
        return start, start + timedelta(hours=1)
    today = now.date()
    if unit in ("month", "quarter", "year"):
        months = {"month": 1, "quarter": 3, "year": 12}[unit]
        first = (12 * today.year + today.month - 1) // months * months - number * months
        return _days(_month(first), _month(first + months))
    if unit == "day":
        first_day, length = today - number * _DAY, 1
    else:
        monday = today - today.weekday() * _DAY - 7 * number * _DAY
        first_day, length = (monday, 7) if unit == "week" else (monday + 5 * _DAY, 2)
    return _days(first_day, first_day + length * _DAY)


def _past(number: int, unit: str, now: datetime) -> Span:
    """Return the time from ``number`` units ago to the end of today."""
    today = now.date()
    if unit == "hour":
        return now - timedelta(hours=number), now
    if unit in ("month", "quarter", "year"):
        first = _month(12 * today.year + today.month - 1 - number * {"month": 1, "quarter": 3, "year": 12}[unit])
        start = first.replace(day=min(today.day, monthrange(first.year, first.month)[1]))
    else:
        start = today - number * (1 if unit == "day" else 7) * _DAY
    return _days(start, today + _DAY)


def _recurring(how: str, number: int, said: Mapping[str, Any], now: datetime) -> Span | None:
    """Return the period of a month, date, season, feast, weekday or year: the latest, one that is over, or this one."""
    if "year" in said:
        return _in_year(int(said["year"]), said)
    spans = _backwards(said, now.date())
    if how == "this":
        return _of_this(said, now)
    if how == "latest":
        return next((span for span in spans if span[0] <= now), None)
    over = [span for span, _ in zip((one for one in spans if one[1] <= now), range(number), strict=False)]
    return over[-1] if len(over) == number else None


def _backwards(said: Mapping[str, Any], today: date) -> Iterator[tuple[datetime, datetime]]:
    """Yield the periods that recur under a name, from the next one backwards."""
    if "weekday" in said:
        first = today - (today.weekday() - said["weekday"]) * _DAY
        yield from (_days(first + back * _DAY, first + (back + 1) * _DAY) for back in range(7, -371, -7))
    elif "day" in said and "month" not in said and "mm" not in said:
        month = 12 * today.year + today.month - 1
        found = (_date(_month(month - back), int(said["day"])) for back in range(-1, 12 * _YEARS_BACK))
        yield from (_days(day, day + _DAY) for day in found if day is not None)
    else:
        years = range(today.year + 1, max(1, today.year - _YEARS_BACK), -1)
        yield from (span for year in years if (span := _in_year(year, said)) is not None)


def _of_this(said: Mapping[str, Any], now: datetime) -> Span | None:
    """Return the weekday of this week; of anything else the one that holds ``now``, else that of this year."""
    today = now.date()
    if "weekday" in said:
        day = today + (said["weekday"] - today.weekday()) * _DAY
        return _days(day, day + _DAY)
    running = next((span for span in _backwards(said, today) if span[0] <= now < span[1]), None)
    return running or _in_year(today.year, said)


def _in_year(year: int, said: Mapping[str, Any]) -> tuple[datetime, datetime] | None:
    """Return a date, month, season or feast of a year, or the whole year; None where that year has none."""
    if "season" in said:
        first = 12 * year + _SEASONS[said["season"]] - 1
        return _days(_month(first), _month(first + 3))
    if "feast" in said:
        return _feast(year, said["feast"])
    month = int(said.get("mm", said.get("month", 0)))
    if not month:
        return _days(date(year, 1, 1), _month(12 * year + 12))
    if month > 12:
        return None
    first_day = date(year, month, 1)
    if "day" not in said:
        return _days(first_day, _month(12 * year + month))
    day = _date(first_day, int(said["day"]))
    return None if day is None else _days(day, day + _DAY)


def _feast(year: int, name: str) -> tuple[datetime, datetime]:
    if name == "easter":
        sunday = _easter(year)
        return _days(sunday - 2 * _DAY, sunday + 2 * _DAY)
    month, day, length = _FEASTS[name]
    return _days(date(year, month, day), date(year, month, day) + length * _DAY)


def _easter(year: int) -> date:
    """Return Easter Sunday of the Gregorian calendar (Meeus, Jones and Butcher)."""
    a, b, c = year % 19, year // 100, year % 100
    d, e, g = b // 4, b % 4, (8 * b + 13) // 25
    h = (19 * a + b - d - g + 15) % 30
    k = (32 + 2 * e + 2 * (c // 4) - h - c % 4) % 7
    m = (a + 11 * h + 19 * k) // 433
    month = (h + k - 7 * m + 90) // 25
    return date(year, month, (h + k - 7 * m + 33 * month + 19) % 32)


def _month(number: int) -> date:
    """Return the first day of a month that is counted from the year 0."""
    return date(number // 12, number % 12 + 1, 1)


def _date(month: date, day: int) -> date | None:
    return month.replace(day=day) if 1 <= day <= monthrange(month.year, month.month)[1] else None


def _days(first: date, past: date) -> tuple[datetime, datetime]:
    return datetime.combine(first, time()), datetime.combine(past, time())
