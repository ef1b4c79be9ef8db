"""Conditions on metadata, as mem0 and LangGraph write them: what the store can filter by, and the test for the rest.

A store filters by what metadata contains. Comparisons, lists of values, AND, OR and NOT are checked on what it gives.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from semmem.model.errors import InvalidInput
from semmem.model.filters import operator_in

__all__ = ["check_conditions", "contained", "holds", "joined"]

_MISSING = object()


def _ordered(compare: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
    def test(value: Any, operand: Any) -> bool:
        if value is _MISSING or value is None or isinstance(value, bool) != isinstance(operand, bool):
            return False
        try:
            return compare(value, operand)
        except TypeError:  # a number is neither above nor below a string
            return False

    return test


_OPERATORS: Mapping[str, Callable[[Any, Any], bool]] = {
    "eq": lambda value, operand: value is not _MISSING and value == operand,
    "ne": lambda value, operand: value is _MISSING or value != operand,
    "gt": _ordered(lambda value, operand: bool(value > operand)),
    "gte": _ordered(lambda value, operand: bool(value >= operand)),
    "lt": _ordered(lambda value, operand: bool(value < operand)),
    "lte": _ordered(lambda value, operand: bool(value <= operand)),
    "in": lambda value, operand: value in operand,
    "nin": lambda value, operand: value not in operand,
    "contains": lambda value, operand: isinstance(value, str | list) and operand in value,
    "icontains": lambda value, operand: isinstance(value, str) and str(operand).lower() in value.lower(),
}


def contained(conditions: Mapping[str, Any], *, sign: str = "") -> dict[str, Any]:
    """Return the part of ``conditions`` that says what metadata must contain, which a store filters by itself.

    A value in which the store would see an operator is left out, such as one under the key "like". With a ``sign`` the
    conditions are of what is nested, so that their own keys are part of such a value.
    """
    return {
        key: value
        for key, value in conditions.items()
        if key not in ("AND", "OR", "NOT")
        and not _compares(value, sign)
        and not (sign and "." in key)
        and operator_in({key: value} if sign else value) is None
        and "\\u0000" not in json.dumps([key, value], default=str)
    }


def _compares(condition: Any, sign: str) -> bool:
    """Return whether a condition says more, at any depth, than that metadata contain it."""
    if condition == "*" or _operators(condition, sign):
        return True
    return isinstance(condition, Mapping) and any(_compares(one, sign) for one in condition.values())


def joined(conditions: Mapping[str, Any]) -> dict[str, Any]:
    """Return the same conditions with those of an AND beside the others, so that a store can filter by them.

    Two conditions on one key stay in an AND.
    """
    out = {key: value for key, value in conditions.items() if key != "AND"}
    left = []
    for one in _several("AND", conditions.get("AND", [])):
        for key, value in joined(one).items():
            if key == "AND":
                left += value
            elif out.setdefault(key, value) != value:
                left.append({key: value})
    return {**out, "AND": left} if left else out


def check_conditions(conditions: Mapping[str, Any], *, sign: str = "") -> None:
    """Raise InvalidInput for a key that is no string, an operator that is none, or a value that it does not take."""
    for key, condition in conditions.items():
        if not isinstance(key, str):
            raise InvalidInput(f"A filter has the key {key!r}; the keys of metadata are strings.")
        if key in ("AND", "OR", "NOT") and not sign:
            for one in _several(key, condition):
                check_conditions(one)
        elif operators := _operators(condition, sign):
            for operator, than in operators.items():
                _check_operator(operator, than)
        elif isinstance(condition, Mapping):
            check_conditions(condition, sign=sign or "\0")  # what is nested may have the key AND


def holds(conditions: Mapping[str, Any], values: Mapping[str, Any], *, sign: str = "") -> bool:
    """Return whether ``values`` meet ``conditions``; ``sign`` stands before an operator (LangGraph writes ``$gt``).

    Raises InvalidInput for an operator that is none.
    """
    for key, condition in conditions.items():
        match key:
            case "AND" | "OR" | "NOT" if not sign:
                results = [holds(one, values, sign=sign) for one in _several(key, condition)]
                if not {"AND": all(results), "OR": any(results), "NOT": not any(results)}[key]:
                    return False
            case _ if not _meets(_at(values, key, dotted=bool(sign)), condition, sign):
                return False
    return True


def _at(values: Mapping[str, Any], key: str, *, dotted: bool) -> Any:
    """Return the value of a key; where there is none, LangGraph's dots lead into what is nested."""
    if key in values or not dotted or "." not in key:
        return values.get(key, _MISSING)
    first, _, rest = key.partition(".")
    inside = values.get(first, _MISSING)
    return _at(inside, rest, dotted=True) if isinstance(inside, Mapping) else _MISSING


def _meets(value: Any, condition: Any, sign: str) -> bool:
    operators = _operators(condition, sign)
    if operators:
        return all(_test(operator, value, than) for operator, than in operators.items())
    if condition == "*" and not sign:
        return value is not _MISSING
    if isinstance(condition, Mapping) and isinstance(value, Mapping):
        return all(_meets(value.get(key, _MISSING), one, sign) for key, one in condition.items())
    return value is not _MISSING and bool(value == condition)


def _several(key: str, conditions: Any) -> list[Mapping[str, Any]]:
    if not isinstance(conditions, list) or not all(isinstance(one, Mapping) for one in conditions):
        raise InvalidInput(f"{key} takes a list of conditions, not {conditions!r}.")
    return conditions


def _test(operator: str, value: Any, operand: Any) -> bool:
    _check_operator(operator, operand)
    return _OPERATORS[operator](value, operand)


def _check_operator(operator: str, operand: Any) -> None:
    if operator not in _OPERATORS:
        raise InvalidInput(f"There is no operator {operator!r}; choose one of {', '.join(_OPERATORS)}.")
    if operator in ("in", "nin") and not isinstance(operand, list | tuple | set):
        raise InvalidInput(f"{operator} takes a list, not {operand!r}.")


def _operators(condition: Any, sign: str) -> dict[str, Any]:
    """Return {operator: value} where ``condition`` is made of operators, else nothing."""
    if not isinstance(condition, Mapping) or not condition:
        return {}
    if sign:
        return {
            key[len(sign) :]: value for key, value in condition.items() if isinstance(key, str) and key.startswith(sign)
        }
    return dict(condition) if any(key in _OPERATORS for key in condition) else {}
