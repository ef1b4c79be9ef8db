"""Check the names, ids and filters of a call before a store reads them. Pure."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from reprlib import repr as shown
from typing import Any

from semmem.model.errors import InvalidInput
from semmem.model.field_kinds import Choice, one_of
from semmem.model.memory_fields import FILTERS, LONGEST_NAME, FilterValues
from semmem.model.serialization import instant
from semmem.model.types import Filters, Memory, masked

__all__ = [
    "LONGEST_NAME",
    "UNSTORABLE_TEXT",
    "Within",
    "at_time",
    "checked_filters",
    "contains",
    "filters_of",
    "matches",
    "one_of",
    "operator_in",
    "page_limit",
    "page_offset",
    "person",
    "several_namespaces",
    "shown_by",
    "string",
    "strings",
    "true_or_false",
    "whole",
    "whole_from",
    "within",
]

_OPERATORS = frozenset(
    (
        "eq", "ne", "gt", "gte", "lt", "lte", "in", "nin", "not", "and", "or", "between", "contains", "like", "exists",
        "regex",
    )
)  # fmt: skip
"""Operators of other filter languages. A mapping whose keys are all among these is taken for one of their filters."""

_PAGES: Mapping[str, tuple[int, int]] = {"recalls": (1_000, 100), "audit": (10_000, 1_000)}
"""The most entries of a page of a verb, and an example, where they are not those of a list."""

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


def whole(name: str, value: Any, low: int, high: int, *, example: int) -> int:
    """Return ``value`` if it is a whole number from ``low`` to ``high``. Raises InvalidInput, with an example."""
    number = isinstance(value, int) and not isinstance(value, bool)
    if not number or not low <= value <= high:
        instead = "" if number else f"; write a whole number, such as {name}={example}"
        raise InvalidInput(f"{name} must be from {low} to {high}, not {shown(value)}{instead}.")
    return int(value)


def page_limit(verb: str, value: Any) -> int:
    """Return ``value`` if a page of ``verb`` may have so many entries. Raises InvalidInput."""
    most, example = _PAGES.get(verb, (10_000, 100))
    return whole("limit", value, 1, most, example=example)


def whole_from(name: str, value: Any, low: int, high: int, *, told: bool = True) -> int:
    """Return ``value`` if it is a whole number from ``low`` to ``high``, which the error names if it is ``told``."""
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise InvalidInput(f"{name} must be a whole number from {low}{f' to {high}' if told else ''}, not {value!r}.")
    return value


def page_offset(value: Any) -> int:
    """Return ``value`` if a page may begin after so many entries. Raises InvalidInput."""
    return whole_from("offset", value, 0, 2**31 - 1, told=False)


def true_or_false(name: str, value: Any, undone: str = "") -> bool:
    """Return ``value`` if it is a bool. Raises InvalidInput, which ends with what was ``undone``."""
    if not isinstance(value, bool):
        raise InvalidInput(f"{name} must be True or False, not {shown(value)}{undone}.")
    return value


def strings(name: str, value: Any) -> tuple[str, ...]:
    """Return one string or several as a tuple, each once."""
    if isinstance(value, str):
        return (string(name, value),)
    if not isinstance(value, Iterable) or isinstance(value, bytes | Mapping):
        raise InvalidInput(f"{name} must be a string or a list of strings, not {type(value).__name__}.")
    return tuple(dict.fromkeys(string(name, v) for v in value))


def several_namespaces(value: Any) -> tuple[str, ...]:
    """Return the names of one namespace or several, each once. Raises InvalidInput for none and for an empty name."""
    names = strings("namespace", value)
    if not names or not all(names):
        raise InvalidInput("namespace must be a name, or a list of at least one.")
    return names


def checked_filters(filters: Filters | FilterValues | Mapping[str, Any] | None) -> Filters:
    """Return checked filters. Raises InvalidInput for an unknown filter, or a value that no store can hold."""
    if isinstance(filters, Filters):
        filters = {name: value for name in FILTERS if (value := getattr(filters, name)) or value is False}
    if filters is None:
        return Filters()
    if not isinstance(filters, Mapping):
        raise InvalidInput(f"filters must be a mapping, not {type(filters).__name__}; it takes {', '.join(FILTERS)}.")
    values: dict[str, Any] = {}
    for name, value in filters.items():
        if name not in FILTERS:
            raise InvalidInput(f"{name!r} is not a filter; use {', '.join(FILTERS)}.")
        if value is not None:
            values[name] = _checked(name, value)
    return Filters(**values)


def _checked(name: str, value: Any) -> Any:
    how, kind = FILTERS[name].how, FILTERS[name].kind
    if how == "contains":
        return _metadata(value)
    if how in ("from", "before"):
        return at_time(f"The filter {name}", value)
    if how == "is":
        if not isinstance(value, bool):
            raise InvalidInput(f"The filter {name} must be True or False, not {shown(value)}.")
        return value
    several = strings(f"The filter {name}", value)
    if not several:
        raise InvalidInput(f"The filter {name} is an empty list, which nothing matches; leave it out.")
    if isinstance(kind, Choice):
        for one in several:
            one_of(f"The filter {name}", one, kind.choices)
    return several


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
    if (operator := operator_in(pattern)) is not None:
        raise InvalidInput(
            f"The filter metadata knows no operators such as {operator}; memories match that contain "
            "the values as they are given. created_after and created_before are ranges of time."
        )


def operator_in(pattern: Any) -> str | None:
    """Return what is taken for an operator in a value of the filter ``metadata``, at any depth; None for nothing."""
    if isinstance(pattern, Mapping):
        operator = next((key for key in pattern if key.startswith("$")), None)
        if operator is None and all(key.casefold() in _OPERATORS for key in pattern):
            operator = next(iter(pattern), None)
        if operator is not None:
            return str(operator)
        pattern = list(pattern.values())
    inside = map(operator_in, pattern) if isinstance(pattern, list) else ()
    return next((one for one in inside if one is not None), None)


def _depth(raw: str) -> int:
    """Return the nesting depth of JSON text; counted on the text, because parsing it would recurse as deep."""
    level = deepest = 0
    for piece in _STRING_OR_BRACKET.findall(raw):
        level += {"[": 1, "{": 1, "]": -1, "}": -1}.get(piece, 0)
        deepest = max(deepest, level)
    return deepest


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


def filters_of(filters: Any) -> dict[str, Any]:
    """Return filters as a mapping of those that narrow anything. Raises InvalidInput."""
    checked = checked_filters(filters)
    fields = {name: getattr(checked, name) for name in Filters.__dataclass_fields__}
    return {name: value for name, value in fields.items() if value or value is False}


def shown_by(reveal: Any) -> Callable[[Memory], Memory]:
    """Return the function that shows a memory: unchanged where it may be revealed, else masked. Raises InvalidInput."""
    return (lambda memory: memory) if true_or_false("reveal", reveal) else masked


def matches(memory: Memory, filters: Within) -> bool:
    """Return whether ``memory`` matches ``filters``, by the rules of a store; a part matches as its whole does."""
    if memory.namespace not in filters.namespaces or (memory.parent_id or memory.id) in filters.exclude:
        return False
    return all(
        _MATCHES[row.how](getattr(memory, row.field), value)
        for name, row in FILTERS.items()
        if (value := getattr(filters, name)) or value is False
    )


def contains(value: Any, pattern: Any) -> bool:
    """Return whether the JSON ``value`` contains ``pattern``, as PostgreSQL's ``@>`` has it."""
    if isinstance(pattern, Mapping):
        return isinstance(value, Mapping) and all(k in value and contains(value[k], v) for k, v in pattern.items())
    if isinstance(pattern, list):
        return isinstance(value, list) and all(any(contains(one, w) for one in value) for w in pattern)
    return isinstance(value, bool) == isinstance(pattern, bool) and bool(value == pattern)


_MATCHES: Mapping[str, Callable[[Any, Any], bool]] = {
    "any": lambda has, values: has in values,
    "all": lambda has, values: set(values) <= set(has),
    "contains": contains,
    "from": lambda at, begins: at is not None and bool(at >= begins),
    "before": lambda at, ends: at is not None and bool(at < ends),
    "is": lambda has, value: has is value,
}
"""How a field of a memory matches a filter, by the filter's ``how``."""
