"""The resources: one memory by namespace and id, the counts of the store, and the log of recalls."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import unquote

from semmem.interfaces.mcp.reading import PREFIX, memory_at
from semmem.interfaces.mcp.tools import Call, as_values
from semmem.model.errors import AccessDenied, NotFound
from semmem.model.serialization import plain

__all__ = ["MEMORIES", "RECALLS", "STATS", "Resources"]

STATS = "semmem://stats"
RECALLS = "semmem://recalls"


@dataclass(frozen=True, slots=True)
class Resources:
    """What a server offers to read: resources that have one address, and templates of those that are many.

    ``read`` returns the JSON of one, by the call and its URI. Raises NotFound, InvalidInput.
    """

    listed: tuple[dict[str, Any], ...]
    read: Callable[[Call, str], str]
    templates: tuple[dict[str, Any], ...] = ()


_JSON = "application/json"
_LATEST = 50

_LISTED: tuple[dict[str, Any], ...] = (
    {
        "uri": STATS,
        "name": "stats",
        "title": "What is stored",
        "description": "Counts of the store and of this project's namespace, and where a recall looks.",
        "mime_type": _JSON,
    },
    {
        "uri": RECALLS,
        "name": "recalls",
        "title": "What was given to whom",
        "description": f"The last {_LATEST} recalls in this project's namespaces, if the setting recall_log is on.",
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
    {
        "uri_template": f"{RECALLS}/{{id}}",
        "name": "recall",
        "title": "One logged recall",
        "description": "Who asked what, and which memories were given or withheld; memory_recall gives the id.",
        "mime_type": _JSON,
    },
)


def contents(call: Call, uri: str) -> str:
    """Return the JSON of the resource ``uri``. Raises NotFound, InvalidInput."""
    if uri == STATS:
        store, own = _store(call), call.memory.stats(namespace=call.scope.namespace)
        values = {
            "store": store,
            "namespace": plain(own if store is not None else replace(own, bytes=None, nodes=())),
            "scope": call.scope.as_dict(),
        }
    elif uri.startswith(PREFIX):
        values = as_values(memory_at(call, uri))
    elif uri == RECALLS:
        values = call.memory.recalls(namespace=call.scope.namespaces, limit=_LATEST).as_dict()
    elif uri.startswith(f"{RECALLS}/"):
        id = unquote(uri.removeprefix(f"{RECALLS}/"))
        values = call.memory.logged_recall(id, namespace=call.scope.namespaces).as_dict()
    else:
        raise NotFound(
            f"There is no resource {uri!r}; there are {STATS}, {RECALLS}, {RECALLS}/ID and {PREFIX}NAMESPACE/ID."
        )
    return json.dumps(values, ensure_ascii=False)


def _store(call: Call) -> Any:
    """Return the counts of the whole store, None for a key that is not for all of it."""
    try:
        return plain(call.memory.stats(namespace=None))
    except AccessDenied:
        return None


MEMORIES = Resources(_LISTED, contents, _TEMPLATES)
"""A memory by namespace and id, the counts of the store, and the log of recalls."""
