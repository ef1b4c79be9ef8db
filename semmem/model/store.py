"""What a store offers: memories, vectors and the graph, one namespace at a time.

What a store declares that it keeps, and the one sentence for a caller who asks it for more.

A store's ``capabilities`` are names: ``lexical`` (postings), ``dense`` (vectors), ``graph`` (concepts, corrections,
relationships). A leg is built where its capability is declared, and degraded with this sentence where it is not.

``ord`` is the number a store gives each stored memory or part; it is unique in the store and never shown to users.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Protocol

from semmem.model import exchange
from semmem.model.errors import InvalidInput
from semmem.model.exchange import (
    Corrections,
    Extraction,
    Forwards,
    Head,
    Postings,
    Ranking,
    Row,
    Scope,
    Stored,
    Written,
)
from semmem.model.protocols import _KEPT, Embed
from semmem.model.reports import Namespace, Stats
from semmem.model.types import Filters, Memory, Page

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["Store", "absence", "lacking", "need"]


class Store(Protocol):
    """One transactional store of memories, postings and vectors. Every method is safe to call from any thread.

    ``kind`` is what people call it. ``capabilities`` are what it keeps: ``lexical`` (postings), ``dense`` (vectors),
    ``graph`` (concepts, corrections, relationships); of what it does not declare it has nothing to return, and writing
    or asking for it raises InvalidInput. See semmem.model.protocols.
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

    def close(self) -> None:
        """Give the connections back; the data stays."""
        ...

    def embedder(self) -> Mapping[str, Any] | None:
        """Return who filled the store with vectors (name, dimensions, fingerprint), None before the first one."""
        ...

    def claim_embedder(self, identity: Mapping[str, Any]) -> Mapping[str, Any]:
        """Record ``identity`` if none is recorded; return what is recorded now."""
        ...

    def release_embedder(self) -> None:
        """Let nobody fill the store, if it holds no vector: what claimed it has been forgotten."""
        ...

    def write(self, rows: Sequence[Row], *, on_conflict: str) -> Written:
        """Store ``rows`` in one transaction, in the place of what they replace; once committed, nothing is raised.

        With on_conflict="abort" a Conflict rolls all of it back. Where nobody fills the store yet, their embedder does.
        """
        ...

    def payloads(self, names: Collection[tuple[str, str]]) -> Mapping[tuple[str, str], bytes]:
        """Return the hash of what was given for each (namespace, id) that is stored."""
        ...

    def stored(self, names: Collection[tuple[str, str]]) -> Mapping[tuple[str, str], Stored]:
        """Return the whole memory of each (namespace, id) that is stored; a part has no name of its own here."""
        ...

    def stored_vectors(self, names: Collection[tuple[str, str]]) -> Mapping[tuple[str, str, int], NDArray[np.float32]]:
        """Return the vectors of each (namespace, id), by (namespace, id, part)."""
        ...

    def get(self, namespace: str, ids: Sequence[str]) -> list[Memory]:
        """Return the memories of ``ids`` that exist, whole, in the order asked."""
        ...

    def list(self, namespace: str, filters: Filters, limit: int, cursor: str | None) -> Page:
        """Return whole memories, newest first."""
        ...

    def forget(self, namespace: str, id: str | None, filters: Filters, *, dry_run: bool) -> int:
        """Remove memories with all that was derived from them; return how many whole memories."""
        ...

    def forget_namespace(self, namespace: str, *, dry_run: bool) -> int:
        """Forget all of a namespace and its settings, whatever times its memories have; return how many memories."""
        ...

    def stats(self, namespace: str | None) -> Stats:
        """Count."""
        ...

    def scope(
        self,
        namespaces: tuple[str, ...],
        filters: Filters,
        exclude: Sequence[str],
        names: Collection[str] | None = None,
    ) -> Scope:
        """Resolve filters and excluded ids to ords; with ``names`` have the ``kinds`` and ``corrections`` too."""
        ...

    def settings(self, namespace: str | None) -> Sequence[tuple[str, str, Any]]:
        """Return (namespace, name, value) of the search settings of one namespace, or of all of them, in order."""
        ...

    def change_settings(self, namespace: str, changes: Mapping[str, Any], unset: Collection[str]) -> None:
        """Set and unset search settings of one namespace, all or none; ``scope`` gives them with every recall."""
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

        ``shared`` leaves out those that one memory has; with ``pending``, of ``surroundings``, that takes one look.
        """
        ...

    def postings_of(
        self, namespaces: Sequence[str], *asked: tuple[Collection[int], int | None]
    ) -> Sequence[Mapping[str, Postings]]:
        """Return what ``postings`` does for each (keys, max_df), asked for together."""
        ...

    def surroundings(
        self, namespace: str, ords: Sequence[int], *, neighbours: bool
    ) -> tuple[Forwards, Sequence[tuple[int, int, bool]], NDArray[np.int64]]:
        """Return what ``forwards`` does, what ``neighbours`` does if asked for, and the keys of pending memories."""
        ...

    def forwards(self, namespaces: Sequence[str], ords: Sequence[int]) -> Forwards:
        """Return what each memory holds."""
        ...

    def nearest(self, scope: Scope, vector: NDArray[np.float32], depth: int) -> Ranking:
        """Return the ``depth`` memories of highest inner product with a unit vector, within scope."""
        ...

    def similarities(
        self, namespaces: Sequence[str], ords: Sequence[int], vector: NDArray[np.float32]
    ) -> Mapping[int, float]:
        """Return the inner product of each memory's vector with ``vector``; memories without one are left out."""
        ...

    def neighbours(self, namespaces: Sequence[str], ords: Sequence[int]) -> Sequence[tuple[int, int, bool]]:
        """Return (ord, its previous or next memory in the session, whether both have the same author)."""
        ...

    def kinds(self, namespaces: Sequence[str], keys: Collection[str]) -> Mapping[str, exchange.Kinds]:
        """Return what each namespace has: sessions, authors, and those of them named in ``keys``.

        ``keys`` are folded names, as ``conversation.author_key`` writes them. Of each author named the last LAST
        memories are looked at, and of each of these the BEHIND before it in its session.
        """
        ...

    def written_by(self, namespaces: Sequence[str], ords: Sequence[int], author: str) -> NDArray[np.int64]:
        """Return which of ``ords`` are by ``author``, ascending."""
        ...

    def turns(self, namespaces: Sequence[str], ords: Sequence[int]) -> Sequence[exchange.Turn]:
        """Return the sessions that hold ``ords`` in order of position, then time; at most MOST_TURNS and one turn."""
        ...

    def nearest_with_turns(
        self, scope: Scope, vector: NDArray[np.float32], depth: int
    ) -> tuple[Ranking, Sequence[exchange.Turn], NDArray[np.int64], NDArray[np.float32]]:
        """Return what ``nearest`` does, the ``turns`` around these, and the ``vectors`` of whole sessions."""
        ...

    def vectors(
        self, namespaces: Sequence[str], ords: Sequence[int], like: NDArray[np.float32] | None = None
    ) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Return the ords that have a vector, ascending, and their vectors, one a row, to be compared with ``like``."""
        ...

    def heads(self, namespaces: Sequence[str], ords: Collection[int]) -> Mapping[int, Head]:
        """Return what fusion needs of each candidate; forgotten ones are left out."""
        ...

    def memories(self, namespaces: Sequence[str], ords: Sequence[int]) -> Mapping[int, Memory]:
        """Return what is indexed, by ord: a memory, or of one that was split a part with its own id and text."""
        ...

    def wholes(self, names: Collection[tuple[str, str]]) -> Mapping[tuple[str, str], tuple[Memory, Sequence[int]]]:
        """Return memories by (namespace, id), whole, and how many characters each part has, in order, if it was split.

        Those forgotten meanwhile are left out.
        """
        ...

    def locate(self, namespace: str, id: str) -> tuple[int, ...]:
        """Return the ords a memory is indexed under: one, or one a part; empty when there is none."""
        ...

    def subject_names(self, namespace: str, ords: Sequence[int]) -> Sequence[tuple[int, int, int, str]]:
        """Return (ord, key, weight in hundredths, what people read for it) of the names that memories are about."""
        ...

    def names(self, namespaces: Sequence[str], keys: Collection[int]) -> Mapping[int, str]:
        """Return what people read for each key."""
        ...

    def missing_vectors(
        self, after: tuple[str, int], limit: int, *, shadow: bool = False
    ) -> Sequence[tuple[int, Memory]]:
        """Return (ord, memory) of indexed memories without a vector, by (namespace, ord), from ``after`` on.

        ``shadow``: without one of the embedder that comes; see ``open_shadow``.
        """
        ...

    def without_vector(self) -> int:
        """Return how many indexed memories, or parts of one, have no vector; 0 where no vectors are kept."""
        ...

    def half_done(self) -> Mapping[str, tuple[str, int]]:
        """Return, for ``vectors`` and ``concepts``, by whom a rebuild is half done or under way, and how far it is."""
        ...

    def add_vectors(
        self,
        rows: Sequence[tuple[str, int, NDArray[np.float32]]],
        by: Mapping[str, Any] | None = None,
        *,
        shadow: bool = False,
    ) -> None:
        """Store (namespace, ord, vector) of memories that have none; those forgotten meanwhile are left out.

        Raises EmbedderReplaced, and stores none, when ``by`` is not who fills the store, or its shadow.
        """
        ...

    def open_shadow(self, identity: Mapping[str, Any]) -> tuple[int, str | None]:
        """Let ``identity`` fill the shadow of the vectors, which nobody reads.

        Return how many vectors of it are there, and whose vectors were thrown away, if it was another's shadow.
        """
        ...

    def drop_shadow(self) -> str | None:
        """Throw the shadow away; return whose it was, None when there was none."""
        ...

    def index_shadow(self, dimensions: int) -> int:
        """Index the shadow, if it is large enough, so that it need not be done later; return how many were taken in."""
        ...

    def take_over(self, identity: Mapping[str, Any], embed: Embed, most: int | None) -> int | None:
        """Let the shadow take the place of the vectors at once; return how many ``embed`` made while writers waited.

        Returns None, and nothing has changed, if more than ``most`` are missing or the vectors are in use for long.
        """
        ...

    def rebuilding(self) -> AbstractContextManager[None]:
        """Be the only rebuild of this store for a while, in all processes. Raises Conflict when another one runs."""
        ...

    def fact(self, key: str) -> Mapping[str, Any] | None:
        """Return what is noted of the whole store under ``key``."""
        ...

    def note_fact(self, key: str, value: Mapping[str, Any] | None) -> None:
        """Note something of the whole store under ``key``; None takes it away."""
        ...

    def database_id(self) -> str:
        """Return what tells this database from its copies: a moment of one means nothing in another."""
        ...

    def moment(self, namespaces: Collection[str]) -> tuple[str, Mapping[str, Corrections]]:
        """Return what names this moment, for ``alias_changes``, and what people corrected in each namespace."""
        ...

    def moment_with_subjects(
        self, keys: Mapping[str, Collection[int]]
    ) -> tuple[str, Mapping[str, Corrections], Mapping[str, set[int]]]:
        """Return what ``moment`` does, and which of each namespace's keys, as people corrected them, are subjects."""
        ...

    def changes_since(self, namespace: str, since: str, keys: Collection[int]) -> tuple[set[int], set[int]]:
        """Return what ``alias_changes`` does, and which of ``keys`` some memory has as its subject."""
        ...

    def alias_changes(self, namespace: str, since: str) -> set[int]:
        """Return the keys of the subjects that came or went, or were corrected, since a moment."""
        ...

    def note_aliases(self, namespace: str, keys: Collection[int]) -> None:
        """Note that older memories that mention ``keys`` are to be read again."""
        ...

    def waiting_aliases(self, namespace: str, *, all: bool) -> Sequence[tuple[int, Sequence[int]]]:
        """Return (number, keys) of what was noted and not settled; without ``all`` only what nobody looked at yet."""
        ...

    def settle_aliases(self, namespace: str, numbers: Sequence[int], left: Collection[int]) -> None:
        """Mark what was noted as settled, but for the keys ``left``, which wait for maintain."""
        ...

    def alias_namespaces(self) -> Sequence[str]:
        """Return the namespaces where something waits."""
        ...

    def spelled(self, namespace: str, words: Collection[str]) -> NDArray[np.int64]:
        """Return the memories whose text may hold one of ``words``: too many, never too few."""
        ...

    def namespaces(self) -> Sequence[str]:
        """Return the namespaces that hold memories."""
        ...

    def overview(self) -> Sequence[Namespace]:
        """Return the namespaces that hold memories, by name, with how many and when one was last changed."""
        ...

    def indexed_after(self, namespace: str, ord: int, limit: int) -> Sequence[tuple[int, Memory]]:
        """Return (ord, memory) of what is indexed, in order, from ``ord`` on."""
        ...

    def reindex(self, namespace: str, found: Sequence[tuple[int, Extraction]]) -> int:
        """Let memories hold what was found in them anew; return how many were changed. Forgotten ones are left out."""
        ...

    def correct(self, namespace: str, one: tuple[int, str], into: tuple[int, str] | None) -> bool:
        """Record that the name ``one`` (key, as written) is ``into``, or (None) stands apart; note what it changes.

        Returns False, and changes nothing, where the two are one already.
        """
        ...

    def concepts(self, namespace: str, like: str | None, limit: int) -> Sequence[tuple[int, str, int, int]]:
        """Return (key, name, df, subjects) of the names of a namespace, the most mentioned first."""
        ...

    def relationships(self, namespaces: Sequence[str], keys: Collection[int], limit: int) -> Sequence[tuple[int, int]]:
        """Return the pairs (one of ``keys``, what a relationship ties it to), each once."""
        ...

    def tying(self, namespace: str, keys: Collection[int]) -> NDArray[np.int64]:
        """Return the memories in which a relationship of one of ``keys`` was found."""
        ...

    def graph_hash(self, namespace: str) -> str:
        """Return a hash of what the indexed memories hold, whatever the order in which they came."""
        ...

    def maintain(self) -> Mapping[str, int]:
        """Fold what is pending, join small segments, index what is not; return how much of each."""
        ...


def lacking(store: Any, capability: str) -> str | None:
    """Return why ``store`` cannot do what takes ``capability``; None where it declares it, or nobody knows the name."""
    if capability in store.capabilities or capability not in _KEPT:
        return None
    return f"A {store.kind} store keeps no {_KEPT[capability]}; a PostgreSQL store does (embedded: or postgresql://…)."


def absence(store: Any, capability: str) -> str:
    """Return in a few words why a leg cannot answer from ``store``, for what every recall says of itself."""
    return f"{store.kind} keeps no {_KEPT[capability]}"


def need(store: Any, capability: str) -> None:
    """Raise InvalidInput, with the same sentence, unless ``store`` declares ``capability``."""
    if (why := lacking(store, capability)) is not None:
        raise InvalidInput(why)
