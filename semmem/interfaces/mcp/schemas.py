"""JSON Schemas of what the tools take."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from semmem.model import memory_fields

__all__ = [
    "FIELDS", "FILTERS", "ID", "LIMIT", "NAMESPACE", "NAMESPACES", "QUERY", "RECIPE", "VERBOSE", "Schema", "array",
    "boolean", "integer", "number", "string", "structure",
]  # fmt: skip

Schema = dict[str, Any]


def string(description: str) -> Schema:
    """Return the schema of a string."""
    return {"type": "string", "description": description}


def integer(description: str, **bounds: int) -> Schema:
    """Return the schema of a whole number; ``bounds`` are minimum, maximum and default."""
    return {"type": "integer", "description": description, **bounds}


def number(description: str, **bounds: float) -> Schema:
    """Return the schema of a number; ``bounds`` are minimum, maximum and default."""
    return {"type": "number", "description": description, **bounds}


def boolean(description: str) -> Schema:
    """Return the schema of a truth value that is false unless given."""
    return {"type": "boolean", "description": description, "default": False}


def array(items: Schema, description: str = "") -> Schema:
    """Return the schema of a list."""
    return {"type": "array", "items": items, **({"description": description} if description else {})}


def structure(properties: Mapping[str, Schema], required: tuple[str, ...] = (), **more: Any) -> Schema:
    """Return the schema of an object."""
    needed = {"required": list(required)} if required else {}
    return {"type": "object", "properties": dict(properties), **needed, **more}


ID = string("Id of a memory, or its beginning.")
QUERY = string('A question in plain words; "quoted" words must occur.')
NAMESPACE = string("Default: this project's.")
NAMESPACES = {
    "anyOf": [{"type": "string"}, array({"type": "string"})],
    "description": "Where to look. Default: this project and the personal namespace.",
}
RECIPE = string("Search settings by name; default: those of the store.")
LIMIT = integer("Most hits; default 10.", minimum=1, maximum=1000)
VERBOSE = boolean("Answer with every field.")
_BOUNDS = ("minimum", "maximum", "default")


def _described(schema: Schema, description: str) -> Schema:
    """Return a schema with a description behind the type and before the bounds."""
    bounds = {name: schema[name] for name in _BOUNDS if name in schema}
    described = {"description": description} if description else {}
    return {name: value for name, value in schema.items() if name not in bounds} | described | bounds


FILTERS = structure(
    {name: _described(row.outline, row.agents) for name, row in memory_fields.FILTERS.items()},
    description="All must match.",
    additionalProperties=False,
)

_OWN = ("text", "namespace", "id", "created_at", "vector")
"""Fields of which each tool says itself what they are, and those that no tool takes."""

FIELDS: dict[str, Schema] = {
    name: _described(row.kind.outline, row.words("agents"))
    for name, row in memory_fields.FIELDS.items()
    if name not in _OWN
}
"""The fields of a memory that a call may give, besides text and id."""
FIELDS["sensitive"] = FIELDS.pop("sensitive")  # the last, as few need it
