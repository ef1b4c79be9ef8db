"""The columns of a memory's fields as SQL, from the table of fields: fragments of named statements."""

from __future__ import annotations

from collections.abc import Mapping

from semmem.model.field_kinds import Json, Kind, Share, Switch, Tags, Time, Whole
from semmem.model.memory_fields import FILTERS, STORED

__all__ = ["fragment"]

_POSTGRES: Mapping[type[Kind], str] = {
    Whole: "bigint", Share: "float8", Switch: "boolean", Time: "timestamptz", Tags: "jsonb", Json: "jsonb",
}  # fmt: skip
"""The types of columns that are no text, as parameters; tags come as JSON, as PostgreSQL flattens arrays of arrays."""


def fragment(backend: str, name: str) -> str | None:
    """Return a fragment made of the table; None for a name that is none of these.

    ``fields`` are the columns of the fields, and ``m.fields`` those of the table m. ``given_fields`` are the parameters
    from which they are inserted, ``inserted_fields`` are the columns of these in PostgreSQL's ``memory_insert``.
    ``any_filters`` are the conditions of the filters of which any value matches.
    """
    table, dot, of_table = name.rpartition(".")
    if of_table == "fields":
        return ", ".join(f"{table}{dot}{column}" for column in STORED)
    return {
        "postgres": {"given_fields": _arrays, "inserted_fields": _inserted, "any_filters": _arrays_of_filters},
        "sqlite": {"given_fields": _parameters, "any_filters": _lists_of_filters},
    }[backend].get(name, lambda: None)()


def _arrays() -> str:
    return ", ".join(f"%({n})s::{_POSTGRES.get(type(row.kind), 'text')}[]" for n, row in STORED.items())


def _inserted() -> str:
    tags = "ARRAY(SELECT jsonb_array_elements_text(r.{}))"
    return ", ".join((tags if isinstance(row.kind, Tags) else "r.{}").format(n) for n, row in STORED.items())


def _parameters() -> str:
    return ", ".join(f":{name}" for name in STORED)


def _arrays_of_filters() -> str:
    each = ((name, row.field) for name, row in FILTERS.items() if row.how == "any")
    condition = "(%({0})s::text[] IS NULL OR {1} = ANY(%({0})s))"
    return " AND ".join(condition.format(name, column) for name, column in each)


def _lists_of_filters() -> str:
    each = ((name, row.field) for name, row in FILTERS.items() if row.how == "any")
    condition = "(:{0} IS NULL OR {1} IN (SELECT value FROM json_each(:{0})))"
    return " AND ".join(condition.format(name, column) for name, column in each)
