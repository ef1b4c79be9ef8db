"""The protocol of a snapshot: all that one recall reads of the memories, as one of three makers has them.

The database, the memory of this process, and an earlier time are read by the same methods. So a leg, fusion and the
hits need not know which of these answers.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from typing import TYPE_CHECKING, Protocol

from semmem.model.exchange import CandidateMetadata, Forwards, Postings, Ranking, RowIds, Scope, Turn
from semmem.model.history import Access, Newer
from semmem.model.types import Filters, LinkType, Memory, Passage

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["Moved", "Snapshot", "SnapshotSource"]


class Moved(Exception):
    """Raised when a snapshot turns out to be older than the store; the recall begins again with a checked one."""


class Snapshot(Protocol):
    """What one recall reads: the memories of the namespaces in ``scope``. Every method is safe to call from any thread.

    A method about one ``namespace`` takes and returns local row ids; ``metadata``, ``memories``, ``metadata_of`` and
    ``newer`` deal with placed ones.
    """

    @property
    def scope(self) -> Scope:
        """The memories that the recall may return, with the facts and corrections of their namespaces."""
        ...

    @property
    def in_memory(self) -> bool:
        """Whether legs read no namespace of it from a store."""
        ...

    @property
    def today(self) -> Snapshot:
        """The memories as they are today within the same scope; the snapshot itself unless it is of an earlier time."""
        ...

    @property
    def stored(self) -> Snapshot:
        """The same scope, read from the database: for explanations, which are asked for long after the recall."""
        ...

    @property
    def earlier(self) -> frozenset[int]:
        """The local row ids of the earlier versions in it; none unless it is of an earlier time."""
        ...

    # ------------------------------------------------------------------ words and concepts

    def postings(self, namespace: str, *lookups: tuple[RowIds, int | None]) -> Sequence[Postings]:
        """Return the postings of the keys of each (keys, most memories that mention one), in one round trip."""
        ...

    def shared_postings(
        self, namespace: str, keys: RowIds, max_df: int | None = None, pending: Collection[int] = ()
    ) -> Postings:
        """Return the postings of ``keys`` without those that one memory alone has, which may be there or not.

        ``pending`` are the keys of pending memories, as ``forwards`` returns them; with them it is one round trip.
        """
        ...

    def forwards(
        self, namespace: str, row_ids: RowIds, *, neighbours: bool, shared: bool = False
    ) -> tuple[Forwards, Sequence[tuple[int, int, bool]], NDArray[np.int64]]:
        """Return forward entries, (row id, neighbour in its session, same author) if asked for, and pending keys.

        Where ``shared``, entries of keys that no other memory has, and that none is about, may be left out, and
        candidates that none is about.
        """
        ...

    def shared_concepts(
        self, namespace: str, row_ids: RowIds, max_df: int, *, neighbours: bool
    ) -> tuple[Forwards, Postings, Sequence[tuple[int, int, bool]]] | None:
        """Return forward entries, postings of their keys, and neighbours if asked for, as ``forwards`` does.

        These are keys that several memories have, or that one is about, and that at most ``max_df`` mention; of the
        candidates those alone that a memory is about. None where that has to be found by ``forwards`` and
        ``shared_postings``.
        """
        ...

    def relationships(self, namespace: str, keys: Collection[int], limit: int) -> Sequence[tuple[int, int]]:
        """Return the pairs (one of ``keys``, key of a related concept), each once."""
        ...

    def subject_names(self, namespace: str, row_ids: RowIds) -> Sequence[tuple[int, int, int, str]]:
        """Return (row id, key, weight in hundredths, spelling) for the names that memories are about."""
        ...

    # ------------------------------------------------------------------ memories around others

    def titles(self, namespace: str, row_ids: RowIds) -> Mapping[int, str | None]:
        """Return the title of each memory."""
        ...

    def texts(self, namespace: str, row_ids: RowIds) -> Mapping[int, str]:
        """Return title and text of each memory, for checking quoted phrases."""
        ...

    def by_author(self, namespace: str, row_ids: RowIds, author: str) -> NDArray[np.int64]:
        """Return those of ``row_ids`` whose author is ``author``, ascending."""
        ...

    def turns(self, namespace: str, row_ids: RowIds) -> Sequence[Turn]:
        """Return the sessions of ``row_ids`` in order; more than MOST_TURNS turns mean that one was cut."""
        ...

    def linked(self, namespace: str, row_ids: RowIds) -> Sequence[tuple[int, int, LinkType]]:
        """Return (row id, linked row id, type of link), without the links that semmem made by itself."""
        ...

    # ------------------------------------------------------------------ vectors

    def nearest(self, part: Scope, vector: NDArray[np.float32], depth: int) -> Ranking:
        """Return the ``depth`` memories nearest to a unit vector within ``part``, a scope of one namespace."""
        ...

    def nearest_with_turns(
        self, part: Scope, vector: NDArray[np.float32], depth: int
    ) -> tuple[Ranking, Sequence[Turn], NDArray[np.int64], NDArray[np.float32]]:
        """Return ``nearest``, the session turns around it, and the row ids and vectors of whole sessions."""
        ...

    def vectors(
        self, namespace: str, row_ids: RowIds, like: NDArray[np.float32]
    ) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Return the row ids with a vector, ascending, and their vectors, one a row, to be compared with ``like``."""
        ...

    # ------------------------------------------------------------------ candidates and hits

    def metadata(self, row_ids: RowIds) -> Mapping[int, CandidateMetadata]:
        """Return the metadata of each candidate, which is what fusion needs; forgotten memories are left out."""
        ...

    def metadata_of(self, ids: Collection[str]) -> Mapping[int, CandidateMetadata]:
        """Return the metadata of all that is indexed under these ids, parts included."""
        ...

    def newer(self, names: Mapping[str, Collection[str]]) -> Sequence[Newer]:
        """Return the memories that supersede others, whose ids are given by namespace, along each chain to its end."""
        ...

    def accesses(self, namespace: str, ids: Collection[str]) -> Mapping[str, Access]:
        """Return when recalls returned these memories; those that none has returned are left out."""
        ...

    def memories(self, metadata: Collection[CandidateMetadata]) -> Mapping[int, tuple[Memory, Passage]]:
        """Return, by row id, whole memory and indexed passage of each candidate; forgotten memories are left out.

        Raises Moved where this snapshot turns out to be outdated.
        """
        ...

    def confirm(self) -> None:
        """Raise Moved where this snapshot is outdated and ``memories`` has not found out yet."""
        ...

    def scope_holds(self) -> bool:
        """Return whether no row id in ``scope`` was replaced since it was made; asked once the hits are read.

        An update gives a memory another row id. So a leg that reads later than the scope was made finds a memory that
        matches the filters out of scope, and one that is excluded within it. A memory that was added meanwhile and
        matches is not missed.
        """
        ...


class SnapshotSource(Protocol):
    """What makes snapshots: a store, the namespaces of a store that a process holds in memory, or a standby."""

    def session(self) -> AbstractContextManager[Callable[[], None]]:
        """Reserve a connection for this thread; see Store."""
        ...

    def close(self) -> None:
        """Drop what the snapshots are made from."""
        ...

    def snapshot(
        self,
        namespaces: tuple[str, ...],
        filters: Filters,
        exclude: Sequence[str],
        names: Collection[str],
        at: datetime | None = None,
        *,
        checked: bool = False,
    ) -> Snapshot:
        """Return what one recall reads: the memories that match ``filters``, without the ids ``exclude``.

        ``names`` are the folded names in the question, of which the conversation facts are loaded. With ``at``, the
        memories are those of that time; InvalidInput is raised where too many have changed since. A ``checked``
        snapshot was found to be up to date, so that it cannot raise Moved.
        """
        ...
