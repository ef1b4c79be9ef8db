"""The protocol of a store of memories. Vectors, graph and life of memories have protocols of their own.

``row_id`` is the number a store gives each memory or part within its namespace; users never see it. In a call about
several ``namespaces`` a row id also encodes the namespace: see semmem.model.exchange.placed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from typing import TYPE_CHECKING, Any, Protocol

from semmem.model.exchange import (
    CandidateMetadata,
    Extraction,
    Kinds,
    Postings,
    Row,
    RowIds,
    Scope,
    Stored,
    Turn,
    Written,
)
from semmem.model.reports import Backlog, Namespace, Node, PoolUse, RowSecurity, Stats
from semmem.model.store.upkeep import KEEP, Keep
from semmem.model.types import Filters, ListOrder, Memory, Page

if TYPE_CHECKING:
    from semmem.model.store.graph import GraphStore
    from semmem.model.store.life import LifeStore
    from semmem.model.store.serving import ServingStore
    from semmem.model.store.snapshot import Snapshot
    from semmem.model.store.vectors import VectorStore

__all__ = ["Store"]


class Store(Protocol):
    """One transactional store of memories and their postings. Every method is safe to call from any thread.

    ``kind`` is its name for people. ``vectors``, ``graph`` and ``life`` are None in a store that keeps none;
    ``capabilities`` names the legs that it can answer: ``lexical``, ``dense``, ``graph``.
    """

    url: str

    @property
    def kind(self) -> str:
        """The name of this kind of store, for people."""
        ...

    @property
    def capabilities(self) -> frozenset[str]:
        """The legs that the store can answer."""
        ...

    @property
    def vectors(self) -> VectorStore | None:
        """The vectors of the memories, None where none are kept."""
        ...

    @property
    def graph(self) -> GraphStore | None:
        """The concepts of the memories, None where none are kept."""
        ...

    @property
    def is_in_whole(self) -> bool:
        """Whether all that this thread does now is one transaction, which an error undoes; see ``once``."""
        ...

    @property
    def life(self) -> LifeStore | None:
        """The versions, links and changes of the memories, None where none are kept."""
        ...

    @property
    def serving(self) -> ServingStore | None:
        """The keys and answers that servers share, None where none are kept."""
        ...

    def session(self) -> AbstractContextManager[Callable[[], None]]:
        """Reserve a connection for this thread inside the block, so that many small queries take it only once.

        Yields a function by which another thread cancels the running statement, such as when a leg's time is up.
        """
        ...

    def close(self) -> None:
        """Close the connections; the data stays."""
        ...

    def write(
        self,
        rows: Sequence[Row],
        *,
        on_conflict: str,
        bulk: bool = False,
    ) -> Written:
        """Store ``rows`` in one transaction, replacing earlier memories; after the commit nothing is raised.

        With on_conflict="abort" a Conflict rolls all of it back. The first vectors decide which embedder fills the
        store. With ``bulk`` more batches follow: what
        readers find at once either way may be put in its place later, at the latest by ``end_bulk``.
        """
        ...

    def end_bulk(self, namespaces: Collection[str]) -> Mapping[str, str]:
        """Finish what ``write`` has left after batches of a bulk, or else the next writer or ``maintain`` does it.

        Raises nothing; returns why something is left, by the name of what misses it, as in Written.degraded.
        """
        ...

    def payload_hashes(self, names: Collection[tuple[str, str]]) -> Mapping[tuple[str, str], bytes]:
        """Return the content hash of each (namespace, id) that is stored."""
        ...

    def stored_memories(self, names: Collection[tuple[str, str]]) -> Mapping[tuple[str, str], Stored]:
        """Return the whole memory of each (namespace, id) that is stored; parts cannot be asked for."""
        ...

    def get(self, namespace: str, ids: Sequence[str]) -> list[Memory]:
        """Return the memories of ``ids`` that exist, whole, in the order asked."""
        ...

    def ids_with_prefix(self, namespace: str, prefixes: Collection[str], limit: int) -> Mapping[str, Sequence[str]]:
        """Return, for each of ``prefixes``, up to ``limit`` ids that begin with it, in order; forgotten ones too.

        A prefix consists of hexadecimal digits and hyphens, as the ids that semmem makes.
        """
        ...

    def last_position(self, namespace: str, session: str) -> int | None:
        """Return the largest position in a session; None where no memory of it has one."""
        ...

    def list(
        self, namespace: str, filters: Filters, limit: int, cursor: str | None, sort_by: ListOrder = "created"
    ) -> Page:
        """Return a page of whole memories in descending order, by default the newest first.

        A store with ``life`` fills ``access_count`` and ``last_accessed`` by what is written.
        """
        ...

    def forget(
        self,
        namespace: str,
        id: str | Collection[str] | None,
        filters: Filters,
        *,
        dry_run: bool,
        soft: bool = False,
        by: str | None = None,
    ) -> int:
        """Remove memories with all that was derived from them; return how many whole memories. ``id`` may be several.

        ``soft`` keeps their texts in the history, as forgotten ``by`` somebody, in no index. Otherwise versions, links
        and judgments are removed too, also those of matching memories that were softly forgotten before.
        """
        ...

    def forget_namespace(self, namespace: str, *, dry_run: bool) -> int:
        """Forget all memories of a namespace, expired ones too, and its settings; return how many memories."""
        ...

    def maintain(self, keep: Keep = KEEP) -> Mapping[str, int]:
        """Remove what is due, flush pending memories, merge segments, index vectors; return the count of each."""
        ...

    def stats(self, namespace: str | None, *, exact: bool = False) -> Stats:
        """Return the counts of memories, concepts and vectors; some are estimated in a large store unless ``exact``."""
        ...

    def backlog(self) -> Backlog:
        """Return what is left to do in the whole store; reads every row that says whether a memory has a vector."""
        ...

    def nodes(self) -> Sequence[Node] | None:
        """Return the servers that hold namespaces, none of them before `distribute`; None where there is but one."""
        ...

    def row_security(self) -> RowSecurity | None:
        """Return where row-level security is on, and whether it binds this program; None for a store without users."""
        ...

    def node_of(self, namespace: str) -> str | None:
        """Return the server that holds a namespace, asking no other; None where ``nodes`` returns none."""
        ...

    @property
    def pool_use(self) -> PoolUse:
        """The connections that this process uses now."""
        ...

    def namespaces(self) -> Sequence[str]:
        """Return the namespaces that hold memories."""
        ...

    def overview(self) -> Sequence[Namespace]:
        """Return the namespaces that hold memories, by name, each with their number and the time of the last change."""
        ...

    def languages(self) -> Mapping[str, str]:
        """Return the language in which the memories of each namespace were extracted."""
        ...

    def set_language(self, namespace: str, language: str, *, done: bool) -> None:
        """Record that a namespace's memories are being extracted in ``language``, or with ``done`` that they were."""
        ...

    def settings(self, namespace: str | None) -> Sequence[tuple[str, str, Any]]:
        """Return (namespace, name, value) of the search settings of one namespace, or of all of them, in order."""
        ...

    def change_settings(self, namespace: str, changes: Mapping[str, Any], unset: Collection[str]) -> None:
        """Set and unset search settings of one namespace, all or none; ``scope`` returns them to every recall."""
        ...

    def scope(
        self,
        namespaces: tuple[str, ...],
        filters: Filters,
        exclude: Sequence[str],
        names: Collection[str] | None = None,
        at: datetime | None = None,
    ) -> Scope:
        """Resolve filters and excluded ids to row ids; with ``names`` also load conversation facts and corrections.

        Expired memories are out of scope. With ``at``, all memories that were not valid at that time are, too.
        """
        ...

    def states(self, namespaces: Collection[str]) -> Mapping[str, tuple[Any, ...] | None]:
        """Return the state of each namespace now, None for one without memories; see Scope."""
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
        """Return what one recall reads; see SnapshotSource."""
        ...

    def postings(
        self,
        namespaces: Sequence[str],
        keys: Collection[int],
        *,
        max_df: int | None = None,
        shared: bool = False,
        pending: Collection[int] = (),
    ) -> Mapping[str, Postings]:
        """Return the postings of ``keys`` in each namespace, without keys that more than ``max_df`` memories mention.

        ``shared`` leaves out keys that only one memory has. That takes a single query if ``pending`` holds the keys of
        pending memories, as ``GraphStore.forwards_and_neighbours`` returns them.
        """
        ...

    def postings_of(
        self, namespaces: Sequence[str], *lookups: tuple[Collection[int], int | None]
    ) -> Sequence[Mapping[str, Postings]]:
        """Return the result of ``postings`` for each (keys, max_df), in one round trip where possible."""
        ...

    def conversation_facts(self, namespaces: Sequence[str], keys: Collection[str]) -> Mapping[str, Kinds]:
        """Return what each namespace has: sessions, authors, and those of them named in ``keys``.

        ``keys`` are folded names, as ``conversation.author_key`` writes them. Of each author named the last LAST
        memories are looked at, and of each of these the BEHIND before it in its session.
        """
        ...

    def session_turns(self, namespaces: Sequence[str], row_ids: RowIds) -> Sequence[Turn]:
        """Return the sessions of ``row_ids`` in order of position, then time; at most MOST_TURNS and one turn."""
        ...

    def candidate_metadata(self, namespaces: Sequence[str], row_ids: RowIds) -> Mapping[int, CandidateMetadata]:
        """Return the metadata of each candidate, which is what fusion needs; forgotten memories are left out."""
        ...

    def indexed_memories(self, namespaces: Sequence[str], row_ids: RowIds) -> Mapping[int, Memory]:
        """Return the indexed memories by row id; of a split memory its parts, each with its own id and text."""
        ...

    def whole_memories(
        self, names: Collection[tuple[str, str]]
    ) -> Mapping[tuple[str, str], tuple[Memory, Sequence[int]]]:
        """Return whole memories by (namespace, id), each with the lengths of its parts in characters, if it was split.

        Memories forgotten meanwhile are left out.
        """
        ...

    def row_ids_of(self, namespace: str, id: str) -> tuple[int, ...]:
        """Return the row ids that index a memory: one, or one for each part; empty for an unknown id."""
        ...

    def indexed_after(self, namespace: str, row_id: int, limit: int) -> Sequence[tuple[int, Memory]]:
        """Return (row id, memory) for up to ``limit`` indexed memories after ``row_id``, in order."""
        ...

    def reindex(
        self, namespace: str, extractions: Sequence[tuple[int, Extraction]], *, language: str | None = None
    ) -> int:
        """Store new extractions of memories; return how many changed. Forgotten memories are left out.

        Raises InvalidInput where ``language`` is given and the namespace was extracted in another one.
        """
        ...

    def texts(self, namespaces: Sequence[str], row_ids: RowIds) -> Mapping[int, str]:
        """Return title and text of each memory, by row id, for checking quoted phrases."""
        ...

    def scrub(self) -> None:
        """Rewrite the files so that they hold no forgotten bytes. Raises StoreUnavailable where that fails."""
        ...
