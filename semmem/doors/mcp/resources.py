"""The resources: one memory by namespace and id, and the counts of the store."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from semmem.doors.mcp.reading import PREFIX, memory_at
from semmem.doors.mcp.tools import Call, as_values
from semmem.model.errors import AccessDenied, NotFound
from semmem.model.serialization import plain

__all__ = ["MEMORIES", "STATS", "Resources"]

STATS = "semmem://stats"


@dataclass(frozen=True, slots=True)
class Resources:
    """What a server offers to read: resources that have one address, and templates of those that are many.

    ``read`` returns the JSON of one, by the call and its URI. Raises NotFound, InvalidInput.
    """

    listed: tuple[dict[str, Any], ...]
    read: Callable[[Call, str], str]
    templates: tuple[dict[str, Any], ...] = ()


_JSON = "application/json"

_LISTED: tuple[dict[str, Any], ...] = (
    {
        "uri": STATS,
        "name": "stats",
        "title": "What is stored",
        "description": "Counts of the store and of this project's namespace, and where a recall looks.",
        "mime_type": _JSON,
    },
)
_TEMPLATES: tuple[dict[str, Any], ...] = (
    {
        "uri_template": f"{PREFIX}{{namespace}}/{{id}}",
        "name": "memory",
        "title": "One memory",
        "description": "A memory as it is stored; namespace and id are percent-encoded. The tools give it as `uri`.",
        "mime_type": _JSON,
    },
)


def contents(call: Call, uri: str) -> str:
    """Return the JSON of the resource ``uri``. Raises NotFound, InvalidInput."""
    if uri == STATS:
        store, own = _store(call), call.memory.stats(namespace=call.scope.namespace)
        values = {
            "store": store,
            "namespace": plain(own if store is not None else replace(own, bytes=None)),
            "scope": call.scope.as_dict(),
        }
    elif uri.startswith(PREFIX):
        values = as_values(memory_at(call, uri))
    else:
        raise NotFound(f"There is no resource {uri!r}; there are {STATS} and {PREFIX}NAMESPACE/ID.")
    return json.dumps(values, ensure_ascii=False)


def _store(call: Call) -> Any:
    """Return the counts of the whole store, None for a key that is not for all of it."""
    try:
        return plain(call.memory.stats(namespace=None))
    except AccessDenied:
        return None


MEMORIES = Resources(_LISTED, contents, _TEMPLATES)
"""A memory by namespace and id, and the counts of the store."""
