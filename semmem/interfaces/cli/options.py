"""The options of a memory's fields and of filters, as the tables in ``semmem.model.memory_fields`` have them."""

from __future__ import annotations

import dataclasses
import inspect
import json
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, TypeAlias

import typer

from semmem.interfaces.cli.context import Options, moment, pairs
from semmem.model.errors import InvalidInput
from semmem.model.field_kinds import Choice, Json, Kind, Share, Switch, Tags, Time, Vector, Whole
from semmem.model.memory_fields import FIELDS, FILTERS, Field, Fields, Filter
from semmem.model.types import Memory

__all__ = ["AnyNarrow", "FirstChanges", "Given", "LastChanges", "Narrow", "narrowed"]

_TYPES: Mapping[type[Kind], Any] = {Whole: int, Share: float, Switch: bool, Tags: list[str]}
"""The types of options that are no text."""

_DEFAULTS = {one.name: one.default for one in dataclasses.fields(Memory)}


def _option(name: str, type: Any, default: Any, help: str, *names: str) -> inspect.Parameter:
    option = typer.Option(*names or (f"--{name.replace('_', '-')}",), help=help)
    kind: Any = type if default is not None else type | None
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=Annotated[kind, option], default=default)


def _several(name: str) -> tuple[str, str]:
    """Return the names of an option that may be given again: of them all, and of one."""
    return f"--{name.replace('_', '-')}", f"--{name.removesuffix('s').replace('_', '-')}"


# ---------------------------------------------------------------------- fields


def _of_remember(name: str, field: Field) -> inspect.Parameter:
    kind = type(field.kind)
    default = _DEFAULTS[name] if kind in (Share, Switch) else None
    names = _several(name) if kind is Tags else ()
    return _option(name, _TYPES.get(kind, str), default, field.words("option"), *names)


def _of_update(name: str, field: Field) -> inspect.Parameter:
    kind, dashed = type(field.kind), name.replace("_", "-")
    names = _several(name) if kind is Tags else (f"--{dashed}/--not-{dashed}",) if kind is Switch else ()
    return _option(name, _TYPES.get(kind, str), None, field.words("change"), *names)


def _given(**values: Any) -> dict[str, Any]:
    """Return the fields of a new memory, as ``remember`` takes them."""
    return {name: _read(name, value) for name, value in values.items() if value is not None}


def _changed(**values: Any) -> dict[str, Any]:
    """Return the changes of a memory, as ``update`` takes them; an empty time or choice takes the old one away."""
    changes = {}
    for name, value in values.items():
        gone = value == "" and name != "created_at" and isinstance(FIELDS[name].kind, Time | Choice)
        if value is not None:
            changes[name] = None if gone else _read(name, value)
    return changes


def _read(name: str, value: Any) -> Any:
    kind = FIELDS[name].kind
    if isinstance(kind, Json):
        return pairs(value)
    if isinstance(kind, Time):
        return moment(value, f"--{name.replace('_', '-')}")
    return _vector(value) if isinstance(kind, Vector) else value


def _vector(text: str) -> list[float]:
    """Return the vector that is given as a JSON list."""
    try:
        return [float(one) for one in json.loads(text)]
    except (TypeError, ValueError) as error:
        raise InvalidInput("--vector must be a JSON list of numbers, such as '[0.1, 0.2]'.") from error


def _in_order(names: Iterable[str]) -> list[str]:
    """Return fields in the order of the help: the two kinds of sources together, the rare ``sensitive`` last."""
    order = [name for name in names if name not in ("source_type", "sensitive")]
    index = order.index("source") + 1
    return [*order[:index], "source_type", *order[index:], "sensitive"]


_NAMES = _in_order(Fields.__annotations__)
_LIFE = _NAMES.index("valid_from")
_CHANGES = [_of_update(name, FIELDS[name]) for name in _NAMES]

Given: TypeAlias = Annotated[dict[str, Any], Options(tuple(_of_remember(n, FIELDS[n]) for n in _NAMES), _given)]
"""The fields of a new memory besides its text, namespace and id."""

FirstChanges: TypeAlias = Annotated[dict[str, Any], Options(tuple(_CHANGES[:_LIFE]), _changed)]
LastChanges: TypeAlias = Annotated[dict[str, Any], Options(tuple(_CHANGES[_LIFE:]), _changed)]
"""The changes of a memory besides its text; those that say when it holds, and for whom, come last."""


# ---------------------------------------------------------------------- filters


def _of_filter(name: str, row: Filter) -> inspect.Parameter:
    words = row.option or row.meaning
    if row.several:
        return _option(name, list[str], None, words, *_several(name))
    return _option(name, bool if row.how == "is" else str, False if row.how == "is" else None, words)


def narrowed(**values: Any) -> dict[str, Any] | None:
    """Return the filters that were given as one mapping, None when there are none."""
    read = {name: _filter_value(name, value) for name, value in values.items()}
    return {name: value for name, value in read.items() if value} or None


def _filter_value(name: str, value: Any) -> Any:
    how = FILTERS[name].how
    if how == "contains":
        return pairs(value)
    return moment(value, f"--{name.replace('_', '-')}") if how in ("from", "before") else value


_OPTIONS = [_of_filter(name, row) for name, row in FILTERS.items() if row.how != "is"]
_SWITCHES = [_of_filter(name, row) for name, row in FILTERS.items() if row.how == "is"]

Narrow: TypeAlias = Annotated[dict[str, Any] | None, Options(tuple(_OPTIONS), narrowed)]
"""The filters of a recall, which finds no sensitive memory."""

AnyNarrow: TypeAlias = Annotated[dict[str, Any] | None, Options((*_OPTIONS, *_SWITCHES), narrowed)]
"""The filters of memories of any kind."""
