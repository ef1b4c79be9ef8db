"""Present a store as it was at an earlier time, to one recall: with the memory versions that were valid then.

The store behind it leaves out what was not valid at that time. Versions that have been replaced since come from its
history. Each gets an ord that no memory has, for this recall alone. A version is one memory here even if its text was
split: it has the words of all passages, and its similarity is that of the nearest passage. It stands alone, without the
turns of its session. Statistics such as df are those of today.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, cast

from semmem.model.errors import InvalidInput
from semmem.model.exchange import Head, Ords, Postings, Ranking, Scope, Turn, placed
from semmem.model.filters import matches, within
from semmem.model.life import MOST_EARLIER, Earlier, Newer
from semmem.model.store import LifeStore, Store, VectorStore, life_of
from semmem.model.store.encoded import maker
from semmem.model.types import Filters, Memory
from semmem.text.passages import content_key

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["past"]

_MONTHS = 12


def past(store: Store, namespaces: Sequence[str], at: datetime) -> tuple[Store, frozenset[int]]:
    """Return ``store`` as it was at a time, and the ords given to earlier versions.

    Raises InvalidInput where a namespace has more than MOST_EARLIER of these, or where the store keeps no versions.
    """
    life = life_of(store)
    versions: dict[str, Sequence[Earlier]] = {}
    for namespace in dict.fromkeys(namespaces):
        versions[namespace] = life.earlier_at(namespace, at, MOST_EARLIER + 1)
        if len(versions[namespace]) > MOST_EARLIER:
            raise InvalidInput(
                f"More than {MOST_EARLIER:,} memories of namespace {namespace!r} have been changed since "
                f"{at.isoformat()}, too many for one recall; ask for a later time, or use get(id, as_of=…)."
            )
    past_store = _Past(store, _Versions(versions), at)
    return cast(Store, past_store), past_store.versions.ords(namespaces)


class _Versions:
    """The earlier versions of some namespaces, by ord and by name."""

    def __init__(self, versions: Mapping[str, Sequence[Earlier]]) -> None:
        from semmem.stores.packed_postings import FIRST_EARLIER

        self.of = {n: {FIRST_EARLIER + at: one for at, one in enumerate(rows)} for n, rows in versions.items()}
        self.named = {(n, one.memory.id): ord for n, rows in self.of.items() for ord, one in rows.items()}
        self._among: dict[tuple[str, ...], dict[int, Earlier]] = {}

    def among(self, namespaces: Sequence[str]) -> dict[int, Earlier]:
        """Return the versions in ``namespaces`` by ord, ascending, with the ords of a call about these namespaces."""
        spaces = tuple(namespaces)
        if spaces not in self._among:
            each = ((placed(ord, at), one) for at, n in enumerate(spaces) for ord, one in self.of.get(n, {}).items())
            self._among[spaces] = dict(each)
        return self._among[spaces]

    def ords(self, namespaces: Sequence[str]) -> frozenset[int]:
        """Return the ords of the versions in ``namespaces``."""
        return frozenset(self.among(namespaces))

    def these(self, namespaces: Sequence[str], ords: Ords) -> dict[int, Earlier]:
        """Return the versions that ``ords`` names, by ord."""
        versions = self.among(namespaces)
        return {int(ord): versions[int(ord)] for ord in ords if int(ord) in versions} if versions else {}


class _Behind:
    """Passes every call that does not concern versions on to the store behind."""

    def __init__(self, behind: Any, versions: _Versions, at: datetime) -> None:
        self._behind = behind
        self.versions = versions
        self._at = at

    def __getattr__(self, name: str) -> Any:
        return getattr(self._behind, name)


class _Past(_Behind):
    """The memories and postings of a store as they were at a time."""

    def __init__(self, store: Store, versions: _Versions, at: datetime) -> None:
        super().__init__(store, versions, at)
        self.vectors = None if store.vectors is None else cast(VectorStore, _PastVectors(store.vectors, versions, at))
        self.life = cast(LifeStore, _PastLife(store.life, versions, at))

    def close(self) -> None:
        """Do nothing: the store behind stays open."""

    def scope(
        self,
        namespaces: tuple[str, ...],
        filters: Filters,
        exclude: Sequence[str],
        names: Collection[str] | None = None,
    ) -> Scope:
        """Resolve filters and excluded ids to the ords of memories and of versions."""
        import numpy as np

        scope: Scope = self._behind.scope(namespaces, filters, exclude, names, self._at)
        conditions = within(filters, namespaces, exclude)
        fits_by_ord = {ord: matches(one.memory, conditions) for ord, one in self.versions.among(namespaces).items()}
        inside = np.array(sorted(ord for ord, fits in fits_by_ord.items() if fits), dtype=np.int64)
        outside = np.array(sorted(ord for ord, fits in fits_by_ord.items() if not fits), dtype=np.int64)
        if len(outside):
            excluded = outside if scope.excluded is None else np.union1d(scope.excluded, outside)
            scope = replace(scope, excluded=excluded)
        allowed = None if scope.allowed is None else np.union1d(scope.allowed, inside)
        return replace(scope, allowed=allowed, size=scope.size + len(inside), at=self._at)

    def postings(
        self,
        namespaces: Sequence[str],
        keys: Collection[int],
        *,
        max_df: int | None = None,
        shared: bool = False,
        pending: Collection[int] = (),
    ) -> Mapping[str, Postings]:
        """Return the postings of ``keys`` in each namespace, with those of the versions."""
        postings = self._behind.postings(namespaces, keys, max_df=max_df, shared=shared, pending=pending)
        return {n: _with_versions(rows, self.versions.of.get(n, {}), keys) for n, rows in postings.items()}

    def postings_of(
        self, namespaces: Sequence[str], *lookups: tuple[Collection[int], int | None]
    ) -> Sequence[Mapping[str, Postings]]:
        """Return the result of ``postings`` for each (keys, max_df)."""
        return [self.postings(namespaces, keys, max_df=max_df) for keys, max_df in lookups]

    def session_turns(self, namespaces: Sequence[str], ords: Ords) -> Sequence[Turn]:
        """Return the sessions that hold ``ords``; a version is a session of its own."""
        return [*self._behind.session_turns(namespaces, ords), *_turns(self.versions.these(namespaces, ords))]

    def candidate_info(self, namespaces: Sequence[str], ords: Ords) -> Mapping[int, Head]:
        """Return the head of each candidate, which is what fusion needs; forgotten memories are left out."""
        versions = self.versions.these(namespaces, ords)
        return {
            **self._behind.candidate_info(namespaces, ords),
            **{ord: _head(ord, one) for ord, one in versions.items()},
        }

    def indexed_memories(self, namespaces: Sequence[str], ords: Ords) -> Mapping[int, Memory]:
        """Return the indexed memories by ord; a version is whole."""
        versions = self.versions.these(namespaces, ords)
        memories: Mapping[int, Memory] = self._behind.indexed_memories(namespaces, ords)
        return {**memories, **{ord: one.memory for ord, one in versions.items()}}

    def texts(self, namespaces: Sequence[str], ords: Ords) -> Mapping[int, str]:
        """Return title and text of each memory, by ord, for checking quoted phrases."""
        versions = self.versions.these(namespaces, ords)
        texts = {ord: f"{one.memory.title or ''}\n{one.memory.text}" for ord, one in versions.items()}
        return {**self._behind.texts(namespaces, ords), **texts}

    def ords_of(self, namespace: str, id: str) -> tuple[int, ...]:
        """Return the ords that index a memory: the version's ord, where the memory has an earlier version."""
        ord = self.versions.named.get((namespace, id))
        ords: tuple[int, ...] = self._behind.ords_of(namespace, id) if ord is None else (ord,)
        return ords


class _PastVectors(_Behind):
    """The vectors of a store as they were at a time."""

    def nearest(self, scope: Scope, vector: NDArray[np.float32], depth: int) -> Ranking:
        """Return the ``depth`` memories with the highest inner product with a unit vector, within scope."""
        return self._joined(self._behind.nearest(scope, vector, depth), scope, vector, depth)

    def nearest_with_turns(
        self, scope: Scope, vector: NDArray[np.float32], depth: int
    ) -> tuple[Ranking, Sequence[Turn], NDArray[np.int64], NDArray[np.float32]]:
        """Return the result of ``nearest``, the session turns around it, and the vectors of whole sessions."""
        import numpy as np

        near, turns, ords, vectors = self._behind.nearest_with_turns(scope, vector, depth)
        near = self._joined(near, scope, vector, depth)
        these = self.versions.these(scope.namespaces, near.ords)
        if not these:
            return near, turns, ords, vectors
        best = [max(_products(one, vector), key=lambda pair: pair[0])[1] for _, one in sorted(these.items())]
        own = np.array(best, dtype=np.float32).reshape(len(best), len(vector))
        both_ords = np.concatenate([ords, np.array(sorted(these), dtype=np.int64)])
        order = np.argsort(both_ords, kind="stable")
        both = np.concatenate([np.asarray(vectors).reshape(-1, len(vector)), own])
        return near, [*turns, *_turns(these)], both_ords[order], both[order]

    def _joined(self, near: Ranking, scope: Scope, vector: NDArray[np.float32], depth: int) -> Ranking:
        import numpy as np

        products = {
            ord: pairs
            for ord, one in self.versions.among(scope.namespaces).items()
            if (pairs := _products(one, vector))
        }
        ords = np.array(list(products), dtype=np.int64)
        rows = [(ord, max(products[ord])[0]) for ord in ords[scope.admits(ords)].tolist()]
        every = sorted([*zip(near.ords, near.scores, strict=True), *rows], key=lambda row: (-row[1], row[0]))[:depth]
        best = tuple(ord for ord, _ in every), tuple(score for _, score in every)
        return replace(near, ords=best[0], scores=best[1], total=len(every))


class _PastLife(_Behind):
    """The links between memories as they were at a time."""

    def newer(
        self, namespaces: Sequence[str], names: Mapping[str, Collection[str]], at: datetime | None = None
    ) -> Sequence[Newer]:
        """Return the memories that superseded others at the time, each in its version of then."""
        rows: Sequence[Newer] = self._behind.newer(namespaces, names, self._at)
        return [self._then(row, namespaces) for row in rows]

    def _then(self, row: Newer, namespaces: Sequence[str]) -> Newer:
        head = row.head
        local = self.versions.named.get((head.namespace, head.id))
        if local is None:
            return row
        ord = placed(local, namespaces.index(head.namespace))
        return replace(row, head=_head(ord, self.versions.of[head.namespace][local]))


def _with_versions(postings: Postings, versions: Mapping[int, Earlier], keys: Collection[int]) -> Postings:
    """Return postings with the entries that versions have for ``keys``; statistics are those of today."""
    import numpy as np

    from semmem.stores.packed_postings import POSTING

    distinct_keys = np.array(sorted(set(keys)), dtype=np.int64)
    owners, more = [np.repeat(postings.keys, postings.sizes)], [np.asarray(postings.entries)]
    for ord, one in versions.items():
        entries = one.entries[np.isin(one.entries["key"], distinct_keys)]
        added = np.zeros(len(entries), dtype=POSTING)
        added["ord"], added["length"] = ord, min(one.length, np.iinfo(np.uint16).max)
        for name in ("count", "mention", "subject"):
            added[name] = entries[name]
        owners.append(entries["key"].astype(np.int64))
        more.append(added)
    owner = np.concatenate(owners)
    order = np.argsort(owner, kind="stable")
    every, sizes = np.unique(owner, return_counts=True)
    return replace(postings, keys=every, sizes=sizes.astype(np.int64), entries=np.concatenate(more)[order])


def _products(one: Earlier, vector: NDArray[np.float32]) -> list[tuple[float, list[float]]]:
    """Return the inner product of each passage's vector with ``vector``, and the passage's vector."""
    import numpy as np

    by = maker(vector)
    if by is not None and (one.embedder is None or dict(one.embedder) != dict(by)):
        return []
    plain = np.asarray(vector, dtype=np.float32)
    return [(float(own @ plain), own.tolist()) for own in one.vectors.values() if own.shape == plain.shape]


def _head(ord: int, one: Earlier) -> Head:
    memory = one.memory
    assert memory.created_at is not None
    assert memory.updated_at is not None
    times = memory.created_at.timestamp(), memory.updated_at.timestamp()
    return Head(ord, memory.namespace, memory.id, 0, memory.importance, content_key(memory.text), *times)


def _turns(versions: Mapping[int, Earlier]) -> list[Turn]:
    return [_turn(_head(ord, one), one.memory) for ord, one in versions.items()]


def _turn(head: Head, memory: Memory) -> Turn:
    at = memory.created_at
    assert at is not None
    month = _MONTHS * at.year + at.month - 1
    asks = memory.text.rstrip(" \t\r\n").endswith("?")
    fields = (head.id, head.part, head.importance, head.content, head.created_at, head.updated_at)
    return Turn(head.namespace, head.ord, None, memory.author, asks, month, *fields)
