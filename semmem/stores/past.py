"""A snapshot of an earlier time: the memory versions that were valid then.

The snapshot behind it leaves out what was not valid at that time. Versions that have been replaced since come from the
history. Each gets a row id that no memory has, for this recall alone. A version is one memory here even if its text was
split: it has the words of all passages, and its similarity is that of the nearest passage. It stands alone, without the
turns of its session. Statistics such as df are those of today.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from semmem.model.errors import InvalidInput
from semmem.model.exchange import CandidateMetadata, Postings, Ranking, RowIds, Scope, Turn, placed
from semmem.model.filters import Within, matches, within
from semmem.model.history import MOST_EARLIER, Earlier, Newer
from semmem.model.store import LifeStore, Snapshot
from semmem.model.store.encoded import vector_embedder
from semmem.model.types import Memory, Passage, is_valid
from semmem.stores.snapshot import Overlay
from semmem.text.passages import content_key

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["PastSnapshot", "Versions", "versions_at"]

_MONTHS = 12


def versions_at(life: LifeStore, namespaces: Sequence[str], at: datetime) -> Versions:
    """Return the versions that were valid at a time and have been replaced since.

    They are read after the scope: what is changed in between is then in both, and missing in none.

    Raises InvalidInput where a namespace has more than MOST_EARLIER of them.
    """
    versions: dict[str, Sequence[Earlier]] = {}
    for namespace in dict.fromkeys(namespaces):
        versions[namespace] = life.earlier_at(namespace, at, MOST_EARLIER + 1)
        if len(versions[namespace]) > MOST_EARLIER:
            raise InvalidInput(
                f"More than {MOST_EARLIER:,} memories of namespace {namespace!r} have been changed since "
                f"{at.isoformat()}, too many for one recall; ask for a later time, or use get(id, as_of=…)."
            )
    return Versions(versions)


class Versions:
    """The earlier versions of some namespaces, by row id and by name."""

    def __init__(self, versions: Mapping[str, Sequence[Earlier]]) -> None:
        from semmem.stores.packed_postings import FIRST_EARLIER

        self.of = {n: {FIRST_EARLIER + number: one for number, one in enumerate(rows)} for n, rows in versions.items()}
        self.named = {(n, one.id): row_id for n, rows in self.of.items() for row_id, one in rows.items()}
        self._among: dict[tuple[str, ...], dict[int, Earlier]] = {}
        self._entries: dict[str, tuple[NDArray[Any], NDArray[np.int64]]] = {}

    def among(self, namespaces: Sequence[str]) -> dict[int, Earlier]:
        """Return the versions in ``namespaces`` by row id, ascending, numbered as in a call about these namespaces."""
        spaces = tuple(namespaces)
        if spaces not in self._among:
            each = (
                (placed(row_id, place), one)
                for place, n in enumerate(spaces)
                for row_id, one in self.of.get(n, {}).items()
            )
            self._among[spaces] = dict(each)
        return self._among[spaces]

    def postings(self, namespace: str) -> tuple[NDArray[Any], NDArray[np.int64]]:
        """Return the entries of the versions of a namespace as those of postings, and the key of each."""
        if namespace not in self._entries:
            import numpy as np

            from semmem.stores.packed_postings import FORWARD, POSTING

            versions = self.of.get(namespace, {})
            packed = b"".join([one.entries for one in versions.values()])  # numpy would copy field by field
            own = np.frombuffer(packed, dtype=FORWARD)
            sizes = [len(one.entries) for one in versions.values()]
            lengths = [min(one.length, np.iinfo(np.uint16).max) for one in versions.values()]
            entries = np.zeros(len(own), dtype=POSTING)
            entries["ord"], entries["length"] = np.repeat([list(versions), lengths], sizes, axis=1)
            for name in ("count", "mention", "subject"):
                entries[name] = own[name]
            self._entries[namespace] = entries, own["key"].astype(np.int64)
        return self._entries[namespace]

    def these(self, namespaces: Sequence[str], row_ids: RowIds) -> dict[int, Earlier]:
        """Return the versions that ``row_ids`` names, by row id."""
        versions = self.among(namespaces)
        return {int(row_id): versions[int(row_id)] for row_id in row_ids if int(row_id) in versions} if versions else {}


class PastSnapshot(Overlay):
    """The memories of a snapshot, whose scope is that of an earlier time, together with the versions of then.

    ``today`` is the snapshot behind: the graph leg walks over what is stored today. A memory that was changed since the
    snapshot was made is read in its version of then, or, where that is not known yet, left out.
    """

    def __init__(self, behind: Snapshot, versions: Versions, at: datetime) -> None:
        super().__init__(behind)
        self._versions = versions
        self._at = at
        self._spaces = behind.scope.namespaces
        self._scope = _scope_of(behind.scope, versions)
        self.earlier = frozenset(row_id for of in versions.of.values() for row_id in of)

    @property
    def scope(self) -> Scope:
        """The memories and versions of the earlier time."""
        return self._scope

    @property
    def today(self) -> Snapshot:
        """The memories of today that were valid then."""
        return _Today(self._behind, self._scope, self.earlier)

    def postings(self, namespace: str, *lookups: tuple[RowIds, int | None]) -> Sequence[Postings]:
        """Return the postings of the keys of each lookup, with those of the versions."""
        found = self._behind.postings(namespace, *lookups)
        entries, of = self._versions.postings(namespace)
        return [_with_versions(one, entries, of, keys) for one, (keys, _) in zip(found, lookups, strict=True)]

    def turns(self, namespace: str, row_ids: RowIds) -> Sequence[Turn]:
        """Return the sessions of ``row_ids``; a version is a session of its own."""
        return [*self._behind.turns(namespace, row_ids), *_turns(self._versions.these([namespace], row_ids))]

    def metadata(self, row_ids: RowIds) -> Mapping[int, CandidateMetadata]:
        """Return the metadata of each candidate; forgotten memories are left out."""
        versions = self._versions.these(self._spaces, row_ids)
        return {**self._behind.metadata(row_ids), **{row_id: _head(row_id, one) for row_id, one in versions.items()}}

    def metadata_of(self, ids: Collection[str]) -> Mapping[int, CandidateMetadata]:
        """Return the metadata of all that is indexed under these ids; an earlier version stands for its memory."""
        named = self._versions.named
        today = self._behind.metadata_of(ids)
        metadata = {
            row_id: candidate for row_id, candidate in today.items() if (candidate.namespace, candidate.id) not in named
        }
        for place, namespace in enumerate(self._spaces):
            for id in ids:
                if (local := named.get((namespace, id))) is not None:
                    metadata[placed(local, place)] = _head(placed(local, place), self._versions.of[namespace][local])
        return metadata

    def memories(self, metadata: Collection[CandidateMetadata]) -> Mapping[int, tuple[Memory, Passage]]:
        """Return memory and passage of each candidate; a version is whole."""
        import numpy as np

        versions = self._versions.these(self._spaces, [candidate.row_id for candidate in metadata])
        others = [candidate for candidate in metadata if candidate.row_id not in versions]
        found = dict(self._behind.memories(others))
        inside = self._scope.matches(np.array([candidate.row_id for candidate in others], dtype=np.int64)).tolist()
        for candidate, asked in zip(others, inside, strict=True):
            row_id, name = candidate.row_id, (candidate.namespace, candidate.id)
            if not asked or (row_id in found and _was_valid(found[row_id][0], self._at)):
                continue
            found.pop(row_id, None)
            if (local := self._versions.named.get(name)) is not None and self._asked(candidate.namespace, local):
                versions[row_id] = self._versions.of[candidate.namespace][local]
        for row_id, one in versions.items():
            found[row_id] = one.memory, Passage(one.memory.text, 0, len(one.memory.text))
        return found

    def _asked(self, namespace: str, local: int) -> bool:
        """Return whether a version is in scope."""
        import numpy as np

        return bool(self._scope.matches(np.array([placed(local, self._spaces.index(namespace))]))[0])

    def texts(self, namespace: str, row_ids: RowIds) -> Mapping[int, str]:
        """Return title and text of each memory."""
        versions = self._versions.these([namespace], row_ids)
        texts = {row_id: f"{one.memory.title or ''}\n{one.memory.text}" for row_id, one in versions.items()}
        return {**self._behind.texts(namespace, row_ids), **texts}

    def nearest(self, part: Scope, vector: NDArray[np.float32], depth: int) -> Ranking:
        """Return the ``depth`` memories and versions nearest to a unit vector within ``part``."""
        return self._joined(self._behind.nearest(part, vector, depth), part, vector, depth)

    def nearest_with_turns(
        self, part: Scope, vector: NDArray[np.float32], depth: int
    ) -> tuple[Ranking, Sequence[Turn], NDArray[np.int64], NDArray[np.float32]]:
        """Return ``nearest``, the session turns around it, and the row ids and vectors of whole sessions."""
        import numpy as np

        near, turns, row_ids, vectors = self._behind.nearest_with_turns(part, vector, depth)
        near = self._joined(near, part, vector, depth)
        these = self._versions.these(part.namespaces, near.row_ids)
        if not these:
            return near, turns, row_ids, vectors
        best = [own for _, (_, own) in sorted(_nearest_passages(these, vector).items())]
        own = np.array(best, dtype=np.float32).reshape(len(best), len(vector))
        both_row_ids = np.concatenate([row_ids, np.array(sorted(these), dtype=np.int64)])
        order = np.argsort(both_row_ids, kind="stable")
        both = np.concatenate([np.asarray(vectors).reshape(-1, len(vector)), own])
        return near, [*turns, *_turns(these)], both_row_ids[order], both[order]

    def newer(self, names: Mapping[str, Collection[str]]) -> Sequence[Newer]:
        """Return the memories that superseded others at the time, each in its version of then."""
        return [self._then(row) for row in self._behind.newer(names)]

    def _joined(self, near: Ranking, part: Scope, vector: NDArray[np.float32], depth: int) -> Ranking:
        import numpy as np

        nearest = _nearest_passages(self._versions.among(part.namespaces), vector)
        own = np.array(list(nearest), dtype=np.int64)
        inside = part.matches(own)
        products = np.array([product for product, _ in nearest.values()], dtype=np.float64)
        row_ids = np.concatenate([np.array(near.row_ids, dtype=np.int64), own[inside]])
        scores = np.concatenate([np.array(near.scores, dtype=np.float64), products[inside]])
        best = np.lexsort((row_ids, -scores))[:depth]
        found = tuple(row_ids[best].tolist()), tuple(scores[best].tolist())
        return replace(near, row_ids=found[0], scores=found[1], total=len(best))

    def _then(self, row: Newer) -> Newer:
        candidate = row.candidate
        local = self._versions.named.get((candidate.namespace, candidate.id))
        if local is None:
            return row
        row_id = placed(local, self._spaces.index(candidate.namespace))
        return replace(row, candidate=_head(row_id, self._versions.of[candidate.namespace][local]))


class _Today(Overlay):
    """The memories of today in the scope of an earlier time, whose versions are known but not read."""

    def __init__(self, behind: Snapshot, scope: Scope, earlier: frozenset[int]) -> None:
        super().__init__(behind)
        self._scope = scope
        self.earlier = earlier

    @property
    def scope(self) -> Scope:
        """The memories and versions of the earlier time."""
        return self._scope


def _scope_of(scope: Scope, versions: Versions) -> Scope:
    """Return a scope of an earlier time with the versions that its filters match."""
    import numpy as np

    assert scope.filters is not None
    conditions: Within = within(scope.filters, scope.namespaces, scope.exclude)
    is_whole = not (scope.filters or scope.exclude)
    fits_by_row_id = {
        row_id: is_whole or matches(one.memory, conditions) for row_id, one in versions.among(scope.namespaces).items()
    }
    inside = np.array(sorted(row_id for row_id, fits in fits_by_row_id.items() if fits), dtype=np.int64)
    outside = np.array(sorted(row_id for row_id, fits in fits_by_row_id.items() if not fits), dtype=np.int64)
    if len(outside):
        excluded = outside if scope.excluded is None else np.union1d(scope.excluded, outside)
        scope = replace(scope, excluded=excluded)
    allowed = None if scope.allowed is None else np.union1d(scope.allowed, inside)
    size = scope.size + len(fits_by_row_id) if allowed is None else len(allowed)
    return replace(scope, allowed=allowed, size=size)


def _with_versions(postings: Postings, entries: NDArray[Any], of: NDArray[np.int64], keys: Collection[int]) -> Postings:
    """Return postings with the ``entries`` that versions have for ``keys``, each ``of`` a key; df is that of today."""
    import numpy as np

    asked = np.isin(of, np.fromiter(keys, np.int64, len(keys)))
    owner = np.concatenate([np.repeat(postings.keys, postings.sizes), of[asked]])
    order = np.argsort(owner, kind="stable")
    every, sizes = np.unique(owner, return_counts=True)
    both = np.concatenate([np.asarray(postings.entries), entries[asked]])[order]
    of_today = np.zeros(len(every), dtype=np.int64)
    of_today[np.searchsorted(every, postings.keys)] = postings.df()
    return replace(postings, keys=every, sizes=sizes.astype(np.int64), entries=both, of_today=of_today)


def _nearest_passages(
    versions: Mapping[int, Earlier], vector: NDArray[np.float32]
) -> dict[int, tuple[float, NDArray[np.float32]]]:
    """Return the nearest passage of each version that has one to compare: its inner product, and its vector."""
    import numpy as np

    by, plain = vector_embedder(vector), np.asarray(vector, dtype=np.float32)
    comparable = [
        (row_id, own)
        for row_id, one in versions.items()
        if by is None or (one.embedder is not None and dict(one.embedder) == dict(by))
        for own in one.vectors.values()
        if own.shape == plain.shape
    ]
    if not comparable:
        return {}
    stacked = np.concatenate([own for _, own in comparable]).astype(np.float32, copy=False).reshape(-1, len(plain))
    # in double precision like those of today's memories, so equal vectors of both have equal products
    products = (stacked * plain.astype(np.float64)).sum(axis=1).tolist()
    nearest: dict[int, tuple[float, NDArray[np.float32]]] = {}
    for (row_id, own), product in zip(comparable, products, strict=True):
        if row_id not in nearest or product > nearest[row_id][0]:
            nearest[row_id] = product, own
    return nearest


def _was_valid(memory: Memory, at: datetime) -> bool:
    return is_valid(memory.valid_from or memory.updated_at, memory.valid_to, at)


def _head(row_id: int, one: Earlier) -> CandidateMetadata:
    memory = one.memory
    assert memory.created_at is not None
    assert memory.updated_at is not None
    times = memory.created_at.timestamp(), memory.updated_at.timestamp()
    return CandidateMetadata(
        row_id, memory.namespace, memory.id, 0, memory.importance, content_key(memory.text), *times
    )


def _turns(versions: Mapping[int, Earlier]) -> list[Turn]:
    return [_turn(_head(row_id, one), one.memory) for row_id, one in versions.items()]


def _turn(candidate: CandidateMetadata, memory: Memory) -> Turn:
    at = memory.created_at
    assert at is not None
    month = _MONTHS * at.year + at.month - 1
    asks = memory.text.rstrip(" \t\r\n").endswith("?")
    fields = (
        candidate.id,
        candidate.part,
        candidate.importance,
        candidate.content,
        candidate.created_at,
        candidate.updated_at,
    )
    return Turn(candidate.namespace, candidate.row_id, None, memory.author, asks, month, *fields)
