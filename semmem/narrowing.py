"""What a call is narrowed to, checked before a store sees it: names, lists of ids, filters. Pure."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Iterable, Mapping
from datetime import UTC, date, datetime, time
from reprlib import repr as shown
from typing import Any

from semmem.errors import InvalidInput
from semmem.keywords import FilterValues
from semmem.types import Filters

__all__ = ["checked_filters", "string", "strings"]

_OPERATORS = frozenset(("eq", "ne", "gt", "gte", "lt", "lte", "in", "nin", "not", "and", "or", "exists", "regex"))
"""Words of other filter languages. A value all of whose keys are among them is taken for one of theirs."""

_DEEPEST = 100
_TOO_DEEP = f"The filter metadata is nested deeper than {_DEEPEST} levels, as no stored metadata is; flatten it."
_STRING_OR_BRACKET = re.compile(r'"(?:[^"\\]|\\.)*(?:"|\\?\Z)|[][{}]', re.DOTALL)


def string(name: str, value: Any) -> str:
    """Return ``value`` if a store can look for it. Raises InvalidInput."""
    if not isinstance(value, str):
        raise InvalidInput(f"{name} must be a string, not {type(value).__name__}.")
    if "\x00" in value or (not value.isascii() and any("\ud800" <= c <= "\udfff" for c in value)):
        raise InvalidInput(f"{name} contains a NUL character or half a surrogate pair, which no store has; remove it.")
    return value


def strings(name: str, value: Any) -> tuple[str, ...]:
    """Return one string or several as a tuple, each once."""
    if isinstance(value, str):
        return (string(name, value),)
    if not isinstance(value, Iterable) or isinstance(value, bytes | Mapping):
        raise InvalidInput(f"{name} must be a string or a list of strings, not {type(value).__name__}.")
    return tuple(dict.fromkeys(string(name, v) for v in value))


def checked_filters(given: Filters | FilterValues | Mapping[str, Any] | None) -> Filters:
    """Return checked filters. Raises InvalidInput for one that does not exist or that no store can look for."""
    known = [f.name for f in dataclasses.fields(Filters)]
    if isinstance(given, Filters):
        given = {name: value for name in known if (value := getattr(given, name))}
    if given is None:
        return Filters()
    if not isinstance(given, Mapping):
        raise InvalidInput(f"filters must be a mapping, not {type(given).__name__}; it takes {', '.join(known)}.")
    values: dict[str, Any] = {}
    for name, value in given.items():
        if name not in known:
            raise InvalidInput(f"{name!r} is not a filter; use {', '.join(known)}.")
        if value is None:
            continue
        if name == "metadata":
            values[name] = _metadata(value)
        elif name.startswith("created"):
            values[name] = _when(name, value)
        else:
            values[name] = strings(f"The filter {name}", value)
            if not values[name]:
                raise InvalidInput(f"The filter {name} is an empty list, which nothing matches; leave it out.")
    return Filters(**values)


def _metadata(value: Any) -> Mapping[str, Any]:
    try:
        raw = json.dumps(dict(value), allow_nan=False) if isinstance(value, Mapping) else None
    except RecursionError:
        raise InvalidInput(_TOO_DEEP) from None
    except (TypeError, ValueError):
        raw = None
    if raw is None:
        raise InvalidInput("The filter metadata takes a mapping of JSON values; memories match that contain it.")
    if _depth(raw) > _DEEPEST:
        raise InvalidInput(_TOO_DEEP)
    string("The filter metadata", json.dumps(json.loads(raw), ensure_ascii=False).replace("\\u0000", "\x00"))
    contained: Mapping[str, Any] = json.loads(raw)
    _refuse_operators(contained)
    return contained


def _refuse_operators(wanted: Any) -> None:
    """Raise InvalidInput for a value such as {"gte": 3}, which would match nothing without a word."""
    if isinstance(wanted, Mapping):
        if wanted and all(key.lstrip("$") in _OPERATORS for key in wanted):
            raise InvalidInput(
                f"The filter metadata knows no operators such as {next(iter(wanted))}; memories match that contain "
                "the values as they are given. created_after and created_before are ranges of time."
            )
        for value in wanted.values():
            _refuse_operators(value)
    elif isinstance(wanted, list):
        for value in wanted:
            _refuse_operators(value)


def _depth(raw: str) -> int:
    """Return how many levels of braces and brackets JSON has; counted, for to read it would take as many calls."""
    level = deepest = 0
    for piece in _STRING_OR_BRACKET.findall(raw):
        level += {"[": 1, "{": 1, "]": -1, "}": -1}.get(piece, 0)
        deepest = max(deepest, level)
    return deepest


def _when(name: str, value: Any) -> datetime:
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value)
        except ValueError:
            raise InvalidInput(f"The filter {name} must be an ISO 8601 time, not {value!r}.") from None
    if isinstance(value, date) and not isinstance(value, datetime):
        value = datetime.combine(value, time.min, UTC)
    if not isinstance(value, datetime):
        raise InvalidInput(f"The filter {name} must be a datetime, a date or an ISO 8601 string, not {shown(value)}.")
    return value if value.tzinfo else value.replace(tzinfo=UTC)
