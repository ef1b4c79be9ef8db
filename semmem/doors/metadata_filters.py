"""Conditions on metadata, as mem0 and LangGraph write them: what the store can filter by, and the test for the rest.

A store filters by what metadata contains. Comparisons, lists of values, AND, OR and NOT are checked on what it gives.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from semmem.model.errors import InvalidInput

__all__ = ["check_conditions", "contained", "holds"]

_MISSING = object()


def _ordered(compare: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
    def test(value: Any, wanted: Any) -> bool:
        if value is _MISSING or value is None or isinstance(value, bool) != isinstance(wanted, bool):
            return False
        try:
            return compare(value, wanted)
        except TypeError:  # a number is neither above nor below a string
            return False

    return test


_OPERATORS: Mapping[str, Callable[[Any, Any], bool]] = {
    "eq": lambda value, wanted: value is not _MISSING and value == wanted,
    "ne": lambda value, wanted: value is _MISSING or value != wanted,
    "gt": _ordered(lambda value, wanted: bool(value > wanted)),
    "gte": _ordered(lambda value, wanted: bool(value >= wanted)),
    "lt": _ordered(lambda value, wanted: bool(value < wanted)),
    "lte": _ordered(lambda value, wanted: bool(value <= wanted)),
    "in": lambda value, wanted: value in wanted,
    "nin": lambda value, wanted: value not in wanted,
    "contains": lambda value, wanted: isinstance(value, str | list) and wanted in value,
    "icontains": lambda value, wanted: isinstance(value, str) and str(wanted).lower() in value.lower(),
}


def contained(conditions: Mapping[str, Any], *, sign: str = "") -> dict[str, Any]:
    """Return the part of ``conditions`` that says what metadata must contain, which a store filters by itself."""
    return {
        key: value
        for key, value in conditions.items()
        if key not in ("AND", "OR", "NOT")
        and value != "*"
        and not _operators(value, sign)
        and not (sign and "." in key)
        and "\\u0000" not in json.dumps([key, value], default=str)
    }


def check_conditions(conditions: Mapping[str, Any], *, sign: str = "") -> None:
    """Raise InvalidInput for a key that is no string, an operator that is none, or a value that it does not take."""
    for key, wanted in conditions.items():
        if not isinstance(key, str):
            raise InvalidInput(f"A filter has the key {key!r}; the keys of metadata are strings.")
        if key in ("AND", "OR", "NOT") and not sign:
            for one in _several(key, wanted):
                check_conditions(one)
        elif operators := _operators(wanted, sign):
            for operator, than in operators.items():
                _check_operator(operator, than)
        elif isinstance(wanted, Mapping):
            check_conditions(wanted, sign=sign or "\0")  # what is nested may have the key AND


def holds(conditions: Mapping[str, Any], values: Mapping[str, Any], *, sign: str = "") -> bool:
    """Return whether ``values`` meet ``conditions``; ``sign`` stands before an operator (LangGraph writes ``$gt``).

    Raises InvalidInput for an operator that is none.
    """
    for key, wanted in conditions.items():
        match key:
            case "AND" | "OR" | "NOT" if not sign:
                met = [holds(one, values, sign=sign) for one in _several(key, wanted)]
                if not {"AND": all(met), "OR": any(met), "NOT": not any(met)}[key]:
                    return False
            case _ if not _meets(_at(values, key, dotted=bool(sign)), wanted, sign):
                return False
    return True


def _at(values: Mapping[str, Any], key: str, *, dotted: bool) -> Any:
    """Return the value of a key; where there is none, LangGraph's dots lead into what is nested."""
    if key in values or not dotted or "." not in key:
        return values.get(key, _MISSING)
    first, _, rest = key.partition(".")
    inside = values.get(first, _MISSING)
    return _at(inside, rest, dotted=True) if isinstance(inside, Mapping) else _MISSING


def _meets(value: Any, wanted: Any, sign: str) -> bool:
    operators = _operators(wanted, sign)
    if operators:
        return all(_test(operator, value, than) for operator, than in operators.items())
    if wanted == "*" and not sign:
        return value is not _MISSING
    if isinstance(wanted, Mapping) and isinstance(value, Mapping):
        return all(_meets(value.get(key, _MISSING), one, sign) for key, one in wanted.items())
    return value is not _MISSING and bool(value == wanted)


def _several(key: str, wanted: Any) -> list[Mapping[str, Any]]:
    if not isinstance(wanted, list) or not all(isinstance(one, Mapping) for one in wanted):
        raise InvalidInput(f"{key} takes a list of conditions, not {wanted!r}.")
    return wanted


def _test(operator: str, value: Any, wanted: Any) -> bool:
    _check_operator(operator, wanted)
    return _OPERATORS[operator](value, wanted)


def _check_operator(operator: str, wanted: Any) -> None:
    if operator not in _OPERATORS:
        raise InvalidInput(f"There is no operator {operator!r}; there are {', '.join(_OPERATORS)}.")
    if operator in ("in", "nin") and not isinstance(wanted, list | tuple | set):
        raise InvalidInput(f"{operator} takes a list, not {wanted!r}.")


def _operators(wanted: Any, sign: str) -> dict[str, Any]:
    """Return {operator: value} where ``wanted`` is made of operators, else nothing."""
    if not isinstance(wanted, Mapping) or not wanted:
        return {}
    if sign:
        return {
            key[len(sign) :]: value for key, value in wanted.items() if isinstance(key, str) and key.startswith(sign)
        }
    return dict(wanted) if any(key in _OPERATORS for key in wanted) else {}
