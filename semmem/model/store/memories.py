"""What a store of memories offers, one namespace at a time; its vectors and its graph have protocols of their own.

``ord`` is the number a store gives each memory or part within its namespace; it is never shown to users. In a call
about several ``namespaces`` an ord also says in which of them it is: see semmem.model.exchange.placed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from typing import TYPE_CHECKING, Any, Protocol

from semmem.model.exchange import Extraction, Head, Kinds, Ords, Postings, Row, Scope, Stored, Turn, Written
from semmem.model.reports import Namespace, Stats
from semmem.model.store.upkeep import KEEP, Keep
from semmem.model.types import Filters, ListOrder, Memory, Page

if TYPE_CHECKING:
    from semmem.model.store.graph import GraphStore
    from semmem.model.store.life import LifeStore
    from semmem.model.store.vectors import VectorStore

__all__ = ["Store"]


class Store(Protocol):
    """One transactional store of memories and their postings. Every method is safe to call from any thread.

    ``kind`` is what people call it. ``vectors``, ``graph`` and ``life`` are None in a store that keeps none;
    ``capabilities`` are the legs that it can answer: ``lexical``, ``dense``, ``graph``.
    """

    url: str

    @property
    def kind(self) -> str:
        """The name people have for this kind of store."""
        ...

    @property
    def capabilities(self) -> frozenset[str]:
        """The legs it can answer."""
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
    def life(self) -> LifeStore | None:
        """The versions, links and changes of the memories, None where none are kept."""
        ...

    def session(self) -> AbstractContextManager[Callable[[], None]]:
        """Let this thread keep what it takes to ask the store until the end, so that many small questions take it once.

        Gives a function by which another thread cancels what is asked just now, such as when a leg's time is up.
        """
        ...

    def close(self) -> None:
        """Give the connections back; the data stays."""
        ...

    def write(
        self,
        rows: Sequence[Row],
        *,
        on_conflict: str,
        since: Mapping[str, tuple[int, Collection[int]]] | None = None,
    ) -> Written:
        """Store ``rows`` in one transaction, in the place of what they replace; once committed, nothing is raised.

        With on_conflict="abort" a Conflict rolls all of it back. Where nobody fills the store yet, their embedder does.
        ``since`` has, by namespace, what GraphStore.changed_and_known_subjects would be asked for behind the commit: a
        store that can send it along returns it.
        """
        ...

    def payload_hashes(self, names: Collection[tuple[str, str]]) -> Mapping[tuple[str, str], bytes]:
        """Return the hash of what was given for each (namespace, id) that is stored."""
        ...

    def stored_memories(self, names: Collection[tuple[str, str]]) -> Mapping[tuple[str, str], Stored]:
        """Return the whole memory of each (namespace, id) that is stored; a part has no name of its own here."""
        ...

    def get(self, namespace: str, ids: Sequence[str]) -> list[Memory]:
        """Return the memories of ``ids`` that exist, whole, in the order asked."""
        ...

    def list(
        self, namespace: str, filters: Filters, limit: int, cursor: str | None, sort_by: ListOrder = "created"
    ) -> Page:
        """Return whole memories, newest first or in another order, downwards."""
        ...

    def forget(
        self,
        namespace: str,
        id: str | None,
        filters: Filters,
        *,
        dry_run: bool,
        soft: bool = False,
        by: str | None = None,
    ) -> int:
        """Remove memories with all that was derived from them; return how many whole memories.

        ``soft`` keeps their texts in the history, as forgotten ``by`` somebody, in no index. Otherwise nothing of them
        is kept, nor of what was forgotten softly before and matches: versions, links, judgements.
        """
        ...

    def forget_namespace(self, namespace: str, *, dry_run: bool) -> int:
        """Forget all of a namespace and its settings, whatever times its memories have; return how many memories."""
        ...

    def maintain(self, keep: Keep = KEEP) -> Mapping[str, int]:
        """Sweep what is not to be kept any longer, fold what is pending, join, index; return how much of each."""
        ...

    def stats(self, namespace: str | None) -> Stats:
        """Count."""
        ...

    def namespaces(self) -> Sequence[str]:
        """Return the namespaces that hold memories."""
        ...

    def overview(self) -> Sequence[Namespace]:
        """Return the namespaces that hold memories, by name, with how many and when one was last changed."""
        ...

    def languages(self) -> Mapping[str, str]:
        """Return the language in which the memories of each namespace were read."""
        ...

    def set_language(self, namespace: str, language: str, *, done: bool) -> None:
        """Record that all memories of a namespace are being read anew in ``language``, or, ``done``, have been."""
        ...

    def settings(self, namespace: str | None) -> Sequence[tuple[str, str, Any]]:
        """Return (namespace, name, value) of the search settings of one namespace, or of all of them, in order."""
        ...

    def change_settings(self, namespace: str, changes: Mapping[str, Any], unset: Collection[str]) -> None:
        """Set and unset search settings of one namespace, all or none; ``scope`` gives them with every recall."""
        ...

    def scope(
        self,
        namespaces: tuple[str, ...],
        filters: Filters,
        exclude: Sequence[str],
        names: Collection[str] | None = None,
        at: datetime | None = None,
    ) -> Scope:
        """Resolve filters and excluded ids to ords; with ``names`` have the conversation facts and corrections too.

        What has vanished is out of it; where it is asked for what was valid ``at`` another time, all that was not too.
        """
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

        ``shared`` leaves out those that one memory has. That takes one look with ``pending``, the keys of pending
        memories that ``GraphStore.forwards_and_neighbours`` has returned.
        """
        ...

    def postings_of(
        self, namespaces: Sequence[str], *asked: tuple[Collection[int], int | None]
    ) -> Sequence[Mapping[str, Postings]]:
        """Return what ``postings`` does for each (keys, max_df), asked for together."""
        ...

    def conversation_facts(self, namespaces: Sequence[str], keys: Collection[str]) -> Mapping[str, Kinds]:
        """Return what each namespace has: sessions, authors, and those of them named in ``keys``.

        ``keys`` are folded names, as ``conversation.author_key`` writes them. Of each author named the last LAST
        memories are looked at, and of each of these the BEHIND before it in its session.
        """
        ...

    def session_turns(self, namespaces: Sequence[str], ords: Ords) -> Sequence[Turn]:
        """Return the sessions that hold ``ords`` in order of position, then time; at most MOST_TURNS and one turn."""
        ...

    def candidate_info(self, namespaces: Sequence[str], ords: Ords) -> Mapping[int, Head]:
        """Return what fusion needs of each candidate; forgotten ones are left out."""
        ...

    def indexed_memories(self, namespaces: Sequence[str], ords: Ords) -> Mapping[int, Memory]:
        """Return what is indexed, by ord: a memory, or of one that was split a part with its own id and text."""
        ...

    def whole_memories(
        self, names: Collection[tuple[str, str]]
    ) -> Mapping[tuple[str, str], tuple[Memory, Sequence[int]]]:
        """Return memories by (namespace, id), whole, and how many characters each part has, in order, if it was split.

        Those forgotten meanwhile are left out.
        """
        ...

    def ords_of(self, namespace: str, id: str) -> tuple[int, ...]:
        """Return the ords a memory is indexed under: one, or one a part; empty when there is none."""
        ...

    def indexed_after(self, namespace: str, ord: int, limit: int) -> Sequence[tuple[int, Memory]]:
        """Return (ord, memory) of what is indexed, in order, from ``ord`` on."""
        ...

    def reindex(self, namespace: str, found: Sequence[tuple[int, Extraction]], *, language: str | None = None) -> int:
        """Let memories hold what was found in them anew; return how many were changed. Forgotten ones are left out.

        Raises InvalidInput where the memories of the namespace were read in another ``language``, if it is given.
        """
        ...

    def confirm(self) -> None:
        """Raise Moved where this recall was answered from memory and what it read there is not so any more.

        A store that answers from the database has nothing to confirm. So it is with a ``scope`` without ``names``.
        """
        ...

    def texts(self, namespaces: Sequence[str], ords: Ords) -> Mapping[int, str]:
        """Return title and text, for phrase checks."""
        ...

    def scrub(self) -> None:
        """Rewrite the files so that no forgotten bytes are left in them. Raises StoreUnavailable where that fails."""
        ...
