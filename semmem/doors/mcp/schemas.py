"""JSON Schemas of what the tools take and give."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from semmem.model.types import SOURCE_TYPES

__all__ = [
    "ABOUT",
    "FIELDS",
    "FILTERS",
    "HIT",
    "ID",
    "LIMIT",
    "LINK",
    "MEMORY",
    "NAMESPACE",
    "NAMESPACES",
    "QUERY",
    "RECIPE",
    "Schema",
    "array",
    "boolean",
    "integer",
    "number",
    "string",
    "structure",
]

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
    return {"type": "object", "properties": dict(properties), "required": list(required), **more}


_STRINGS = array({"type": "string"})
_MAYBE = {"type": ["string", "null"]}

ID = string("The id of a memory, as another tool returned it.")
QUERY = string('The question, in plain words. Words in "double quotes" must stand in the text as they are.')
NAMESPACE = string("Leave out for this project. Another namespace by its name, such as the personal one.")
NAMESPACES = {
    "anyOf": [{"type": "string"}, _STRINGS],
    "description": "Where to look: one namespace or several. Leave out for this project and the personal namespace.",
}
RECIPE = string("Search settings by name; leave out for those of the store.")
LIMIT = integer("At most this many hits.", minimum=1, maximum=1000, default=10)
FILTERS = structure(
    {
        "sessions": array({"type": "string"}, "Only of one of these sessions."),
        "authors": array({"type": "string"}, "Only by one of these authors."),
        "tags": array({"type": "string"}, "Only with all of these tags."),
        "metadata": {"type": "object", "description": "Only where the metadata contains these values."},
        "created_after": string("Only from this time on (ISO 8601)."),
        "created_before": string("Only before this time (ISO 8601)."),
        "titles": array({"type": "string"}, "Only with exactly one of these titles."),
        "sensitive": boolean("Only sensitive memories; false: only the others."),
        "source_types": array({"type": "string", "enum": list(SOURCE_TYPES)}, "Only from one of these sources."),
    },
    description="What to narrow the call to; all that are given must fit.",
    additionalProperties=False,
)

FIELDS: dict[str, Schema] = {
    "title": string("What the memory is about: a name, a topic."),
    "author": string("Who said or wrote it, if that matters; never part of the text."),
    "session": string("A label that a recall can be narrowed to, such as a conversation."),
    "position": integer("Its place in the session."),
    "source": string("Where it comes from: a path, an address."),
    "tags": array({"type": "string"}, "Words to filter by later."),
    "metadata": {"type": "object", "description": "Any JSON values."},
    "importance": number("From 0 to 1; 0.5 is usual.", minimum=0, maximum=1),
    "valid_from": string("Start of its validity (ISO 8601); default: now."),
    "valid_to": string("End of its validity; later it ranks below valid memories."),
    "expires_at": string("When it expires (ISO 8601); then no verb returns it."),
    "ttl": string("Time until it expires, such as 30d, 12h, 45m."),
    "pinned": boolean("Always include it in the context of an agent."),
    "source_type": {
        "type": "string",
        "enum": list(SOURCE_TYPES),
        "description": "Who it comes from: user where the person said it, tool where a tool or a page did, imported "
        "for a file; agent, your own words, is the default.",
    },
    "sensitive": boolean("Keep the text out of every index and hide it; cannot be taken back here."),
}
"""The fields of a memory that a call may give, besides text and id."""

_STORED = {
    "id": {"type": "string"},
    "namespace": {"type": "string"},
    "text": {"type": "string"},
    "title": {"type": "string"},
    "author": {"type": "string"},
    "session": {"type": "string"},
    "position": {"type": "integer"},
    "source": {"type": "string"},
    "tags": _STRINGS,
    "metadata": {"type": "object"},
    "importance": {"type": "number"},
    "created_at": {"type": "string"},
    "updated_at": {"type": "string"},
    "version": {"type": "integer"},
    "sensitive": {"type": "boolean"},
    "valid_from": {"type": "string"},
    "valid_to": {"type": "string"},
    "expires_at": {"type": "string"},
    "pinned": {"type": "boolean"},
    "source_type": {"type": "string"},
    "access_count": {"type": "integer"},
    "last_accessed": {"type": "string"},
}

MEMORY = structure(
    {
        **_STORED,
        "uri": string("The resource of this memory."),
        "older": array({"type": "object"}, "Of memory_remember: the nearest older memories, with id, text and time."),
    },
    ("id", "namespace", "text", "version", "uri"),
    description="A memory as it is stored; fields without a value are left out.",
)

LINK = structure(
    {name: {"type": "string"} for name in ("namespace", "from_id", "type", "to_id", "since", "made_by")},
    ("namespace", "from_id", "type", "to_id", "since"),
    description="A link from one memory to another.",
)

HIT = structure(
    {
        **_STORED,
        "uri": string("The resource of this memory."),
        "rank": {"type": "integer"},
        "score": number("In [0, 1]; compares hits of one question only."),
        "components": {"type": "object", "description": "What each leg gave; they sum to the score."},
        "snippet": string("The sentence that fits best."),
        "cut": {
            "type": "boolean",
            "description": "True of a long text: here is its best passage, memory_get has it all.",
        },
        "superseded_by": string("The newest memory that supersedes this one: what is said here is outdated."),
        "duplicates": _STRINGS,
        "duplicate_namespaces": _STRINGS,
    },
    ("id", "namespace", "rank", "score", "components", "text", "uri"),
    description="A hit, best first; fields without a value are left out.",
)

ABOUT: dict[str, Schema] = {
    "scope": structure(
        {
            "namespace": string("Where this call writes, unless it named another namespace."),
            "recalled": array({"type": "string"}, "Where a recall looks, unless it named others."),
            "from": string("Where the namespace comes from."),
        },
        ("namespace", "recalled", "from"),
    ),
    "agent": structure({"name": _MAYBE, "version": _MAYBE}, ("name", "version"), description="The client that called."),
}
"""What every answer names besides its own."""
