"""The names a namespace knows, listed, and corrected by hand: two names that are one, one that stands apart.

A correction is stored beside the memories and applied whenever a memory or a question is read, so it outlives a
rebuild.
"""

from __future__ import annotations

from collections.abc import Sequence

from semmem.errors import InvalidInput, NotFound
from semmem.extractors.spelling import name_of
from semmem.protocols import Store
from semmem.records import Corrections
from semmem.types import Concept
from semmem.upkeep import Upkeep

__all__ = ["Concepts"]


class Concepts:
    """Lists and corrects the names of a store."""

    def __init__(self, store: Store, upkeep: Upkeep, language: str) -> None:
        self._store = store
        self._upkeep = upkeep
        self._language = language

    def list(self, namespace: str, like: str | None, limit: int) -> Sequence[Concept]:
        """Return names, the most mentioned first; ``like`` is a piece of the name or of one merged into it."""
        if isinstance(limit, bool) or not isinstance(limit, int) or not 1 <= limit <= 10_000:
            raise InvalidInput(f"limit must be from 1 to 10000, not {limit!r}.")
        corrections = self._store.moment([namespace])[1][namespace]
        aliases: dict[int, list[str]] = {}
        for key, (into, _) in corrections.into.items():
            aliases.setdefault(into, []).append(corrections.names[key])
        return [
            Concept(name, "name", df, subjects, tuple(sorted(aliases.get(key, ()))))
            for key, name, df, subjects in self._store.concepts(namespace, like, limit)
        ]

    def merge(self, one: str, other: str, namespace: str) -> None:
        """Take the name ``one`` for ``other`` from now on, in what is stored as well."""
        corrections = self._store.moment([namespace])[1][namespace]
        key, into = self._known(one, namespace, corrections), self._known(other, namespace, corrections)
        if not self._store.correct(namespace, (key, " ".join(one.split())), (into, " ".join(other.split()))):
            raise InvalidInput(f"{one!r} and {other!r} are one concept already; nothing was changed.")
        self._upkeep.corrected(namespace)

    def split(self, name: str, namespace: str) -> None:
        """Let a name stand by itself: what was merged into it, or it into another, is parted again."""
        key = self._known(name, namespace, self._store.moment([namespace])[1][namespace])
        self._store.correct(namespace, (key, " ".join(name.split())), None)
        self._upkeep.corrected(namespace)

    def _known(self, name: str, namespace: str, corrections: Corrections) -> int:
        key = name_of(name, self._language)
        if key not in corrections.names and not len(self._store.postings([namespace], [key])[namespace].keys):
            raise NotFound(
                f"No memory in namespace {namespace!r} mentions {name!r} as a name; `semmem concepts` lists them."
            )
        return key
