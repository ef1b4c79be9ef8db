"""Adapt legs made by users: give them read access, and turn their results into a Ranking within scope."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from semmem.model.errors import LegFailed
from semmem.model.exchange import Question, Ranking
from semmem.model.filters import Within, matches, within
from semmem.model.protocols import Leg
from semmem.model.recipe import Recipe
from semmem.model.search import Result, SimpleLeg
from semmem.model.store import Snapshot, Store
from semmem.model.types import Filters, Memory

__all__ = ["Adapted", "Plugged", "StoreReader", "as_leg"]

_BATCH = 1_000
_MOST_PAGES = 20
"""The most pages asked of a leg that ignores its filters; a leg that obeys them is asked once."""
_HEADROOM = 50
"""Results asked for beyond the depth, so that ids break ties at the cut."""


class StoreReader:
    """The read access of a user's leg to a store."""

    def __init__(self, store: Store) -> None:
        self.store = store

    def memories(self, filters: Within) -> Iterator[Memory]:
        """Yield each indexed memory within ``filters``; see semmem.model.search.Reader."""
        for namespace in filters.namespaces:
            after = 0
            while rows := self.store.indexed_after(namespace, after, _BATCH):
                after = rows[-1][0]
                yield from (memory for _, memory in rows if matches(memory, filters))


def as_leg(name: str, product: Any) -> Leg:
    """Return the product of a factory as the leg ``name``: as it is if it is a ``Leg``, else adapted.

    The ``search`` of a simple leg has an argument ``limit``; one with three arguments is that of a leg, which may lack
    the other attributes. Raises LegFailed for any other object.
    """
    search = getattr(product, "search", None)
    parameters = _parameters(search) if callable(search) else ()
    if {"limit", "offset", "filters"} <= set(parameters):
        return Plugged(name, product)
    if callable(search) and len(parameters) == 3:
        return product if isinstance(product, Leg) else Adapted(name, product)
    raise LegFailed(
        f"The object registered as leg {name!r} is not a leg: its search must take (query, *, limit, offset, filters), "
        "as semmem.model.search.SimpleLeg has it."
    )


def _parameters(search: Callable[..., Any]) -> tuple[str, ...]:
    try:
        return tuple(inspect.signature(search).parameters)
    except (TypeError, ValueError):
        return ()


def _witness(leg: Any) -> tuple[str, str] | None:
    """Return the (question, text) that a leg names for the probe; None where it names none."""
    own = getattr(leg, "witness", None)
    return own if isinstance(own, tuple) and len(own) == 2 else None


class Adapted(Leg):
    """A leg of another package by its ``search(question, scope, recipe)``, with the usual attributes where it has none.

    It is given the snapshot of the recall in place of its scope if it sets ``reads_snapshot = True``.
    """

    def __init__(self, name: str, leg: Any) -> None:
        self.name, self.inner = name, leg
        self.reads_vector = bool(getattr(leg, "reads_vector", True))
        self.witness = _witness(leg)
        self._reads_snapshot = bool(getattr(leg, "reads_snapshot", False))

    def search(self, question: Question, snapshot: Snapshot, recipe: Recipe) -> Ranking:
        """Return the leg's own ranking."""
        ranking: Ranking = self.inner.search(question, snapshot if self._reads_snapshot else snapshot.scope, recipe)
        return ranking


class Plugged(Leg):
    """A simple leg as a recall asks it: within scope, down to the recipe's depth, under its registered name."""

    reads_vector = False

    def __init__(self, name: str, leg: SimpleLeg) -> None:
        self.name, self.inner = name, leg
        self.witness = _witness(leg)

    def search(self, question: Question, snapshot: Snapshot, recipe: Recipe) -> Ranking:
        """Return the leg's results in scope, page by page until the depth is filled.

        Raises LegFailed when it returns anything but results with falling scores in [0, 1], and a total.
        """
        scope = snapshot.scope
        depth = recipe.depths.get(self.name, 100) + _HEADROOM
        filters = within(scope.filters or Filters(), scope.namespaces, scope.exclude)
        scores: dict[int, float] = {}
        offset = total = 0
        for _ in range(_MOST_PAGES):
            results, total = self._page(question.query or question.text, depth, offset, filters)
            for row_id, score in _inside(results, snapshot):
                scores.setdefault(row_id, score)
            offset += len(results)
            if len(results) < depth or offset >= total or len(scores) >= depth:
                break
        return Ranking(tuple(scores)[:depth], tuple(scores.values())[:depth], total)

    def _page(self, query: str, limit: int, offset: int, filters: Within) -> tuple[Sequence[Result], int]:
        answer = self.inner.search(query, limit=limit, offset=offset, filters=filters)
        if not (isinstance(answer, tuple) and len(answer) == 2 and isinstance(answer[1], int)):
            raise LegFailed(f"The leg {self.name!r} must return (results, total), not {type(answer).__name__}.")
        results, total = answer
        results = list(results)
        last = 1.0
        for result in results:
            id, score = getattr(result, "id", None), getattr(result, "score", None)
            if not isinstance(id, str) or not isinstance(score, int | float) or not math.isfinite(score):
                raise LegFailed(f"The leg {self.name!r} returned something without an id and a finite score.")
            if not 0 <= score <= last + 1e-9:
                raise LegFailed(f"The leg {self.name!r} must give falling scores in [0, 1]; {id!r} has {score:g}.")
            last = score
        return results[:limit], total


def _inside(results: Sequence[Result], snapshot: Snapshot) -> list[tuple[int, float]]:
    """Return (row id, score) of the results that are in scope and indexed; for a split memory its first part."""
    import numpy as np

    scope = snapshot.scope
    ids = dict.fromkeys(id for result in results for id in (result.id, _whole_of(result.id)) if id is not None)
    metadata = snapshot.today.metadata_of(ids)
    row_ids = np.array(sorted(metadata), dtype=np.int64)
    wholes: dict[tuple[str, str], tuple[int, int]] = {}
    parts: dict[tuple[str, str], tuple[int, int]] = {}
    for candidate in map(metadata.__getitem__, row_ids[scope.matches(row_ids)].tolist()):
        name, place = (candidate.namespace, candidate.id), (candidate.part, candidate.row_id)
        wholes[name] = min(wholes.get(name, place), place)
        parts[candidate.namespace, f"{candidate.id}#{candidate.part}"] = place
    out = []
    for result in results:
        namespace = getattr(result, "namespace", None)
        spaces = (namespace,) if namespace is not None else scope.namespaces
        # an id may look like that of a part, so the namespace and id that the leg returned are tried first
        either = (parts, wholes) if getattr(result, "type", "") == "part" else (wholes, parts)
        key = next((names[n, result.id] for names in either for n in spaces if (n, result.id) in names), None)
        if key is not None:
            out.append((key[1], float(result.score)))
    return out


def _whole_of(id: str) -> str | None:
    """Return the id of the whole memory if ``id`` is the id of a part, else None."""
    whole, mark, number = id.rpartition("#")
    return whole if mark and number.isascii() and number.isdigit() else None
