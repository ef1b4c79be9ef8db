"""The result of every loader: memories to remember, questions to ask, and the rows left out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from types import MappingProxyType
from typing import Any

__all__ = ["Corpus", "DatasetError", "Query"]


class DatasetError(Exception):
    """A data set is absent or malformed; the message is one sentence that says where and what to do."""


@dataclass(frozen=True, slots=True)
class Query:
    """One question. ``gold`` are ids of memories in ``namespace`` that answer it, possibly none.

    ``apart`` questions (unanswerable, adversarial, abstention) are reported beside the headline, never in it.
    ``extra`` holds what a format knows besides: answer, grades, stale_ids, near_ids, ... Where a set judges more than
    one memory, such as a session of several turns, ``gold`` names it and ``any_of`` has its memories: it is found
    where any of them is. ``now`` is when it was asked: where a set does not say so, when the newest memory was created,
    which for memories without a time of their own the store tells (``eval.experiments.runner.dated``).
    """

    id: str
    text: str
    namespace: str
    gold: tuple[str, ...]
    stratum: str = "all"
    apart: bool = False
    extra: Mapping[str, Any] = field(default_factory=dict)
    any_of: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    now: datetime | None = None

    @property
    def gold_memories(self) -> tuple[str, ...]:
        """Ids of the memories that are gold, or of which one is enough."""
        return tuple(memory for id in self.gold for memory in self.any_of.get(id, (id,)))

    @property
    def grades(self) -> Mapping[str, int]:
        """Relevance grade of every gold id, 1 unless the format judges in grades."""
        graded = self.extra.get("grades") or {}
        return {id: int(graded.get(id, 1)) for id in self.gold}


@dataclass(frozen=True, slots=True)
class Corpus:
    """Memories (mappings with remember()'s keys, ``namespace`` included) and the questions on them.

    ``notes`` counts what the loader skipped or dropped, by reason. ``sha256`` is over the bytes of every file
    read, in the order read. ``stored`` is True when the memories are in the user's store already.
    """

    name: str
    memories: tuple[Mapping[str, Any], ...]
    queries: tuple[Query, ...]
    notes: Mapping[str, int] = field(default_factory=dict)
    sha256: str = ""
    format: str = ""
    stored: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "notes", MappingProxyType(dict(self.notes)))

    @property
    def namespaces(self) -> tuple[str, ...]:
        """Namespaces in the order they first appear among memories, then among questions."""
        of_memories = dict.fromkeys(str(m["namespace"]) for m in self.memories)
        return tuple(dict.fromkeys([*of_memories, *(q.namespace for q in self.queries)]))

    @property
    def strata(self) -> tuple[str, ...]:
        """Strata in the order of their names."""
        return tuple(sorted({q.stratum for q in self.queries}))

    @property
    def sizes(self) -> Mapping[str, int]:
        """Memories per namespace: the candidates a question of that namespace chooses from."""
        out: dict[str, int] = dict.fromkeys(self.namespaces, 0)
        for memory in self.memories:
            out[str(memory["namespace"])] += 1
        return out

    @property
    def headline(self) -> tuple[Query, ...]:
        """Questions that count in the headline: not apart, and with gold."""
        return tuple(q for q in self.queries if not q.apart and q.gold)

    def describe(self) -> dict[str, Any]:
        """Return JSON-ready aggregates: no text of any memory or question."""
        strata = {s: sum(q.stratum == s for q in self.queries) for s in self.strata}
        return {
            "name": self.name,
            "format": self.format,
            "memories": len(self.memories),
            "namespaces": len(self.namespaces),
            "queries": len(self.queries),
            "headline": len(self.headline),
            "strata": strata,
            "notes": dict(self.notes),
            "sha256": self.sha256,
        }
