"""The simple contract of a search: ``search(query, *, limit, offset, filters) -> (results, total)``.

A leg of your own implements it. The whole recall and each leg offer it (``mem.leg(…)``), so that measuring code can
take any of them without importing a back-end. Pure.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

from semmem.model.filters import Within
from semmem.model.keywords import FilterValues
from semmem.model.store import Store
from semmem.model.types import Filters, Hit, Memory

__all__ = ["Factory", "Found", "Reader", "Result", "Search", "SimpleLeg", "as_result"]


@dataclass(frozen=True, slots=True)
class Result:
    """One memory that a search found.

    ``score`` is in [0, 1] and does not rise along the list. ``components`` maps the name of a leg to its share and sums
    to the score; it is empty for a single leg. ``type`` is "memory"; a leg of your own may return a "part" of a long
    memory by the id under which it read it (``{id}#1``). ``source`` is the path or address that the memory comes from.
    ``namespace`` may be left out if there is only one.
    """

    id: str
    score: float
    title: str | None = None
    source: str | None = None
    snippet: str = ""
    type: str = "memory"
    components: Mapping[str, float] = field(default_factory=dict)
    namespace: str | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return plain JSON-ready values."""
        return {f.name: getattr(self, f.name) for f in dataclasses.fields(self)} | {"components": dict(self.components)}


Found: TypeAlias = "tuple[Sequence[Result], int]"
"""The results of one page, best first, and how many memories match in all."""


class SimpleLeg(Protocol):
    """A search with a name: the protocol of a leg, which every leg and the whole recall implement.

    A class may also have ``witness = (question, text)``: a text that this leg finds with that question although the two
    share no word; ``semmem probe`` sends it through the pipeline.
    """

    name: str

    def search(self, query: str, *, limit: int = 10, offset: int = 0, filters: Within | None = None) -> Found:
        """Return the results from ``offset`` to ``offset + limit`` within ``filters``, and the number of all matches.

        The order does not depend on the page: consecutive pages are one long page, cut. Equal scores are ordered by id.
        """
        ...


class Search(Protocol):
    """A named search over fixed namespaces: one leg, or the whole recall; safe to share between threads."""

    name: str

    def search(
        self,
        query: str,
        *,
        limit: int = 10,
        offset: int = 0,
        filters: Within | Filters | FilterValues | Mapping[str, Any] | None = None,
    ) -> Found:
        """Return the results from ``offset`` to ``offset + limit``, best first, and the number of matching memories."""
        ...


class Reader(Protocol):
    """What a leg of your own may read: the memories of the store, as they are indexed."""

    store: Store

    def memories(self, filters: Within) -> Iterator[Memory]:
        """Yield each memory within ``filters``; of a split memory its parts, which are what is indexed."""
        ...


Factory: TypeAlias = Callable[[Reader], Any]
"""Makes a leg: called once, with a Reader, when a recipe first names the leg."""


def as_result(hit: Hit, *, score: float | None = None) -> Result:
    """Return a hit as a Result; ``score`` is that of a single leg, which has no components."""
    memory = hit.memory
    return Result(
        memory.id,
        hit.score if score is None else score,
        memory.title,
        memory.source,
        hit.snippet or hit.passage.text,
        "memory",
        hit.components if score is None else {},
        memory.namespace,
    )
