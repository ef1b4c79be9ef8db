"""JSON Schemas of what the tools take."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from semmem.model.types import SOURCE_TYPES

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
FILTERS = structure(
    {
        "sessions": array({"type": "string"}, "any of"),
        "authors": array({"type": "string"}, "any of"),
        "tags": array({"type": "string"}, "all of"),
        "metadata": {"type": "object", "description": "contains"},
        "created_after": string("ISO 8601"),
        "created_before": string("ISO 8601"),
        "titles": array({"type": "string"}, "exactly one of"),
        "sensitive": {"type": "boolean"},
        "source_types": array({"type": "string", "enum": list(SOURCE_TYPES)}, "any of"),
    },
    description="All must match.",
    additionalProperties=False,
)

FIELDS: dict[str, Schema] = {
    "title": string("Its subject: a name, a topic."),
    "author": string("Who said or wrote it; never part of the text."),
    "session": string("A label to filter by, such as a conversation."),
    "position": integer("Its place in the session."),
    "source": string("A path or an address it comes from."),
    "tags": array({"type": "string"}, "Words to filter by."),
    "metadata": {"type": "object", "description": "Any JSON values."},
    "importance": number("From 0 to 1; default 0.5.", minimum=0, maximum=1),
    "valid_from": string("Start of its validity (ISO 8601); default: now."),
    "valid_to": string("End of its validity (ISO 8601); later it ranks lower."),
    "expires_at": string("When it expires (ISO 8601); then nothing returns it."),
    "ttl": string("Time until it is gone: 30d, 12h, 45m."),
    "pinned": boolean("Always show it to agents."),
    "source_type": {
        "type": "string",
        "enum": list(SOURCE_TYPES),
        "description": "Whose words: the person's, yours (agent, the default), a tool's or page's, a file's.",
    },
    "sensitive": boolean("Hide the text and index nothing of it; for good."),
}
"""The fields of a memory that a call may give, besides text and id."""
