"""Answer one question by many recipes, as a page does while somebody moves a weight, without asking the legs each time.

The last recalls of a memory are kept, each for the arguments that it had and the last change of its namespaces. While
both are the same, and no memory has expired, begun or ended to be valid, which is no change, another recipe fuses the
kept lists; where it needs other lists, the legs are asked.
"""

from __future__ import annotations

import inspect
import json
import math
import threading
import time
from collections import OrderedDict
from typing import Any
from weakref import WeakKeyDictionary

from semmem.client.memory import Semmem
from semmem.model.errors import InvalidInput
from semmem.model.serialization import plain
from semmem.model.types import Filters
from semmem.read.result import Recall
from semmem.read.tracing import observed
from semmem.write.access import unlogged

__all__ = ["MOST_KEPT", "paths", "reweigh"]

MOST_KEPT = 16
"""Recalls that are kept for a store; the one not used for the longest time gives way."""

_NEWS = "now"
_LOOK_S = 1.0
"""Seconds for which a recall that was found to hold is not looked at again: a slider asks many times a second."""


class _Kept:
    """The last recalls of one store; safe to share between threads."""

    def __init__(self) -> None:
        self._recalls: OrderedDict[str, Recall] = OrderedDict()
        self._looked: dict[str, float] = {}
        self._lock = threading.Lock()

    def is_due(self, key: str) -> bool:
        """Return whether nobody has looked for ``_LOOK_S`` if the scope is still the same, and note the look."""
        now = time.monotonic()
        with self._lock:
            due = now - self._looked.get(key, -math.inf) >= _LOOK_S
            if due:
                self._looked[key] = now
            return due

    def find(self, key: str) -> Recall | None:
        """Return the recall that was kept under ``key``."""
        with self._lock:
            if key in self._recalls:
                self._recalls.move_to_end(key)
            return self._recalls.get(key)

    def keep(self, key: str, recall: Recall) -> None:
        """Keep a recall."""
        with self._lock:
            self._recalls[key] = recall
            self._recalls.move_to_end(key)
            while len(self._recalls) > MOST_KEPT:
                self._looked.pop(self._recalls.popitem(last=False)[0], None)


_kept: WeakKeyDictionary[Semmem, _Kept] = WeakKeyDictionary()
_lock = threading.Lock()


@observed
def reweigh(mem: Semmem, query: str, *, recipe: Any = None, namespace: Any = "default", **arguments: Any) -> Recall:
    """Answer a question as ``recall`` does, for somebody who tries recipes; it is neither logged nor counted.

    Without a ``recipe`` the namespace's own answers. The lists of the legs are kept: of the same question, by recipes
    that differ in weights, rank constants, reserve and priors, the second answer asks no leg again.
    """
    with unlogged():
        if mem.store.life is None:  # nobody says whether its lists are still true
            return mem.recall(query, recipe=recipe, namespace=namespace, **arguments)
        cursor = mem.changes(_NEWS, namespace=namespace).cursor
        key = json.dumps([query, plain(namespace), plain(arguments), cursor], sort_keys=True, default=str)
        with _lock:
            kept = _kept.setdefault(mem, _Kept())
        before = kept.find(key)
        if before is not None and recipe is not None and (not kept.is_due(key) or _holds(mem, before)):
            try:
                return before.again(recipe)
            except InvalidInput:  # it needs other lists, or is no recipe, which recall says
                pass
        result = mem.recall(query, recipe=recipe, namespace=namespace, **arguments)
        if not result.degraded:
            kept.keep(key, result)
        return result


def _holds(mem: Semmem, before: Recall) -> bool:
    """Return whether the scope of a kept recall is still the same: time alone takes memories out of it."""
    scope = before.candidates.scope
    if scope.at is not None:
        return False
    now = mem.store.scope(scope.namespaces, scope.filters or Filters(), scope.exclude)
    return scope.names_row_ids_of(now) and scope.lapsed == now.lapsed


def paths(mem: Semmem, query: str, **arguments: Any) -> dict[str, Any]:
    """Return for each hit of a question the steps by which the graph leg reached it; no steps where it did not.

    The recall is that of ``reweigh``.
    """
    result = reweigh(mem, query, **arguments)
    each = [(hit, result.explain(hit.id, hit.namespace).path) for hit in result.hits]
    rows = [(h.id, h.namespace, h.title, h.snippet, plain(way)) for h, way in each]
    return {"paths": [dict(zip(("id", "namespace", "title", "snippet", "steps"), row, strict=True)) for row in rows]}


paths.__signature__ = inspect.signature(Semmem.recall)  # type: ignore[attr-defined]  # the same arguments
paths = observed(paths)
reweigh.__signature__ = inspect.signature(Semmem.recall)  # type: ignore[attr-defined]  # the same arguments
