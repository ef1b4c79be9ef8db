"""Check the names, ids and filters of a call before a store reads them. Pure."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from reprlib import repr as shown
from typing import Any, TypeVar

from semmem.model.errors import InvalidInput
from semmem.model.keywords import FilterValues
from semmem.model.serialization import instant
from semmem.model.types import SOURCE_TYPES, Filters, Memory, masked

__all__ = [
    "LONGEST_NAME",
    "UNSTORABLE_TEXT",
    "Within",
    "at_time",
    "checked_filters",
    "contains",
    "matches",
    "one_of",
    "person",
    "shown_by",
    "string",
    "strings",
    "whole",
    "within",
]

T = TypeVar("T")

_OPERATORS = frozenset(
    (
        "eq", "ne", "gt", "gte", "lt", "lte", "in", "nin", "not", "and", "or", "between", "contains", "like", "exists",
        "regex",
    )
)  # fmt: skip
"""Operators of other filter languages. A mapping whose keys are all among these is taken for one of their filters."""

LONGEST_NAME = 200
"""The most characters in the name of an author, or of who changes, forgets, links or judges."""

_DEEPEST = 100

_TOO_DEEP = f"The filter metadata is nested deeper than {_DEEPEST} levels, as no stored metadata is; flatten it."

_STRING_OR_BRACKET = re.compile(r'"(?:[^"\\]|\\.)*(?:"|\\?\Z)|[][{}]', re.DOTALL)


UNSTORABLE_TEXT = "A text of this call contains half a surrogate pair, which no store has; remove it."
"""What a store says of a text that ``string`` has not seen."""


def string(name: str, value: Any) -> str:
    """Return ``value`` if it is a string that a store can hold. Raises InvalidInput."""
    if not isinstance(value, str):
        raise InvalidInput(f"{name} must be a string, not {type(value).__name__}.")
    if "\x00" in value or (not value.isascii() and any("\ud800" <= c <= "\udfff" for c in value)):
        raise InvalidInput(f"{name} contains a NUL character or half a surrogate pair, which no store has; remove it.")
    return value


def person(name: str, value: Any) -> str | None:
    """Return the name of who did something, or None. Raises InvalidInput for a name that is too long."""
    text = None if value is None else string(name, value)
    if text is not None and len(text) > LONGEST_NAME:
        raise InvalidInput(f"{name} has {len(text)} characters; at most {LONGEST_NAME} are stored.")
    return text


def one_of(name: str, value: Any, choices: Sequence[T]) -> T:
    """Return ``value`` if it is one of ``choices``. Raises InvalidInput."""
    if not isinstance(value, str) or value not in choices:
        *first, last = (f'"{one}"' for one in choices)
        raise InvalidInput(f"{name} must be {', '.join(first)} or {last}, not {value!r}.")
    return value  # type: ignore[return-value]


def whole(name: str, value: Any, low: int, high: int, *, example: int) -> int:
    """Return ``value`` if it is a whole number from ``low`` to ``high``. Raises InvalidInput, with an example."""
    number = isinstance(value, int) and not isinstance(value, bool)
    if not number or not low <= value <= high:
        instead = "" if number else f"; write a whole number, such as {name}={example}"
        raise InvalidInput(f"{name} must be from {low} to {high}, not {shown(value)}{instead}.")
    return int(value)


def strings(name: str, value: Any) -> tuple[str, ...]:
    """Return one string or several as a tuple, each once."""
    if isinstance(value, str):
        return (string(name, value),)
    if not isinstance(value, Iterable) or isinstance(value, bytes | Mapping):
        raise InvalidInput(f"{name} must be a string or a list of strings, not {type(value).__name__}.")
    return tuple(dict.fromkeys(string(name, v) for v in value))


def checked_filters(filters: Filters | FilterValues | Mapping[str, Any] | None) -> Filters:
    """Return checked filters. Raises InvalidInput for an unknown filter, or a value that no store can hold."""
    names = [f.name for f in dataclasses.fields(Filters)]
    if isinstance(filters, Filters):
        filters = {name: value for name in names if (value := getattr(filters, name)) or value is False}
    if filters is None:
        return Filters()
    if not isinstance(filters, Mapping):
        raise InvalidInput(f"filters must be a mapping, not {type(filters).__name__}; it takes {', '.join(names)}.")
    values: dict[str, Any] = {}
    for name, value in filters.items():
        if name not in names:
            raise InvalidInput(f"{name!r} is not a filter; use {', '.join(names)}.")
        if value is None:
            continue
        if name == "metadata":
            values[name] = _metadata(value)
        elif name.startswith("created"):
            values[name] = _when(name, value)
        elif name == "sensitive":
            if not isinstance(value, bool):
                raise InvalidInput(f"The filter sensitive must be True or False, not {shown(value)}.")
            values[name] = value
        else:
            values[name] = strings(f"The filter {name}", value)
            if not values[name]:
                raise InvalidInput(f"The filter {name} is an empty list, which nothing matches; leave it out.")
            if name == "source_types":
                for one in values[name]:
                    one_of("The filter source_types", one, SOURCE_TYPES)
    return Filters(**values)


def _metadata(value: Any) -> Mapping[str, Any]:
    try:
        raw = json.dumps(dict(value), allow_nan=False) if isinstance(value, Mapping) else None
    except RecursionError:
        raise InvalidInput(_TOO_DEEP) from None
    except (TypeError, ValueError):
        raw = None
    if raw is None:
        raise InvalidInput("The filter metadata takes a mapping of JSON values; a memory matches if it contains them.")
    if _depth(raw) > _DEEPEST:
        raise InvalidInput(_TOO_DEEP)
    string("The filter metadata", json.dumps(json.loads(raw), ensure_ascii=False).replace("\\u0000", "\x00"))
    contained: Mapping[str, Any] = json.loads(raw)
    for value in contained.values():  # a key of the metadata itself may be any word, such as "or" or "in"
        _refuse_operators(value)
    return contained


def _refuse_operators(pattern: Any) -> None:
    """Raise InvalidInput for a value such as {"gte": 3}, which would match nothing without any error."""
    if isinstance(pattern, Mapping):
        operator = next((key for key in pattern if key.startswith("$")), None)
        if operator is None and all(key.casefold() in _OPERATORS for key in pattern):
            operator = next(iter(pattern), None)
        if operator is not None:
            raise InvalidInput(
                f"The filter metadata knows no operators such as {operator}; memories match that contain "
                "the values as they are given. created_after and created_before are ranges of time."
            )
        for value in pattern.values():
            _refuse_operators(value)
    elif isinstance(pattern, list):
        for value in pattern:
            _refuse_operators(value)


def _depth(raw: str) -> int:
    """Return the nesting depth of JSON text; counted on the text, because parsing it would recurse as deep."""
    level = deepest = 0
    for piece in _STRING_OR_BRACKET.findall(raw):
        level += {"[": 1, "{": 1, "]": -1, "}": -1}.get(piece, 0)
        deepest = max(deepest, level)
    return deepest


def _when(name: str, value: Any) -> datetime:
    try:
        return instant(value)
    except ValueError:
        raise InvalidInput(f"The filter {name} must be an ISO 8601 time, not {value!r}.") from None
    except TypeError:
        raise InvalidInput(
            f"The filter {name} must be a datetime, a date or an ISO 8601 string, not {shown(value)}."
        ) from None


@dataclass(frozen=True, slots=True)
class Within(Filters):
    """The scope of one search: filters, the ``namespaces`` to search, and ids to leave out."""

    namespaces: tuple[str, ...] = ("default",)
    exclude: tuple[str, ...] = ()


def within(filters: Filters, namespaces: Sequence[str], exclude: Sequence[str] = ()) -> Within:
    """Return ``filters`` with the namespaces to search and the ids to leave out."""
    fields = {f.name: getattr(filters, f.name) for f in dataclasses.fields(Filters)}
    return Within(**fields, namespaces=tuple(namespaces), exclude=tuple(exclude))


def at_time(name: str, value: Any) -> datetime:
    """Return a given time, in UTC where it has no zone. Raises InvalidInput."""
    try:
        return instant(value)
    except ValueError:
        raise InvalidInput(f"{name} must be an ISO 8601 time, not {shown(value)}.") from None
    except TypeError:
        raise InvalidInput(f"{name} must be a datetime, a date or an ISO 8601 string, not {shown(value)}.") from None


def shown_by(reveal: Any) -> Callable[[Memory], Memory]:
    """Return the function that shows a memory: unchanged where it may be revealed, else masked. Raises InvalidInput."""
    if not isinstance(reveal, bool):
        raise InvalidInput(f"reveal must be True or False, not {reveal!r}.")
    return (lambda memory: memory) if reveal else masked


def matches(memory: Memory, filters: Within) -> bool:
    """Return whether ``memory`` matches ``filters``, by the rules of a store; a part matches as its whole does."""
    if memory.namespace not in filters.namespaces or (memory.parent_id or memory.id) in filters.exclude:
        return False
    if filters.sessions and memory.session not in filters.sessions:
        return False
    if filters.authors and memory.author not in filters.authors:
        return False
    if filters.titles and memory.title not in filters.titles:
        return False
    if filters.source_types and memory.source_type not in filters.source_types:
        return False
    if filters.sensitive is not None and memory.sensitive is not filters.sensitive:
        return False
    if not set(filters.tags) <= set(memory.tags) or not contains(memory.metadata, filters.metadata):
        return False
    at = memory.created_at
    if filters.created_after is not None and (at is None or at < filters.created_after):
        return False
    return filters.created_before is None or (at is not None and at < filters.created_before)


def contains(value: Any, pattern: Any) -> bool:
    """Return whether the JSON ``value`` contains ``pattern``, as PostgreSQL's ``@>`` has it."""
    if isinstance(pattern, Mapping):
        return isinstance(value, Mapping) and all(k in value and contains(value[k], v) for k, v in pattern.items())
    if isinstance(pattern, list):
        return isinstance(value, list) and all(any(contains(one, w) for one in value) for w in pattern)
    return isinstance(value, bool) == isinstance(pattern, bool) and bool(value == pattern)
