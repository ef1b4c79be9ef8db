"""Postings in PostgreSQL: index new memories, flush pending ones, merge segments.

Every function takes an open connection inside a transaction and holds no state. Rows of postings are locked in the
order of (key, segment), after the row of their namespace.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from pgvector import Vector
from psycopg.errors import SerializationFailure

from semmem.model.exchange import Extraction, Row
from semmem.stores import packed_postings
from semmem.stores.filled_by import agree
from semmem.stores.packed_postings import FORWARD, Segments, forward_entries
from semmem.stores.postgres import encoding
from semmem.stores.postgres.connection import pipelined, sent
from semmem.stores.postgres.encoding import copy_rows, text, text_array
from semmem.stores.postgres.typed import Connection, Cursor, only
from semmem.stores.postgres.vectors import claim
from semmem.stores.sql_files import check_limits, statements
from semmem.text.tokens import check_language

if TYPE_CHECKING:
    from semmem.stores.postgres.store import PostgresStore

__all__ = [
    "BULK_COMPACT_AT",
    "BULK_KEYS",
    "COMPACT_AT",
    "FEW",
    "FIRST_KEY",
    "FLUSHED_AT_ONCE",
    "FLUSH_AT",
    "LAST_KEY",
    "NamespaceBacklog",
    "NewRows",
    "are_few",
    "ask_grounds",
    "backlogs_due",
    "check_grounds",
    "compact",
    "copy_pending",
    "copy_segments",
    "count_change",
    "flush",
    "flush_and_compact",
    "fresh_segments",
    "index_few",
    "index_many",
    "mark_merged",
    "send_change",
    "write_relationships",
]

FLUSH_AT = 64
"""The number of pending memories of a namespace at which a writer flushes them into the postings."""
BULK_KEYS = 100_000
"""The number of keys that pending memories of a bulk have when its writer flushes them: 1,000 memories of 70 words."""
COMPACT_AT = 4
"""The number of fresh segments of a namespace at which a writer compacts, and of rows of a key worth merging."""
BULK_COMPACT_AT = 32
"""The same number for the writer of a bulk, chosen while each batch left a small segment of memories made anew."""
SEGMENT_FULL = 4_096
"""The most entries of one posting row after compaction, so that forgetting rewrites a bounded value."""
FEW = 16
"""Up to this many rows are written by one statement each, all sent together; more go faster by COPY."""
FLUSHED_AT_ONCE = 10_000
"""The most memories of a bulk that one flush takes; their keys bound it before."""
FIRST_KEY, LAST_KEY = -(1 << 63), (1 << 63) - 1
"""The range of the keys of postings, which are hashes."""
_SQL = statements("postgres")


class NamespaceBacklog(NamedTuple):
    """What a namespace has to flush and to compact: the row of the statement ``backlog``.

    The ``pending`` memories without those of a bulk, the keys of the latter, and the fresh segments.
    """

    pending: int
    bulk_keys: int
    segments: int


@dataclass(frozen=True, slots=True)
class NewRows:
    """The new rows of one namespace in a batch, each behind its row id, ascending, and what they change.

    ``count`` is what they add to the numbers of memories and of terms; ``fates`` say of each id what happened to it.
    """

    namespace: str
    stored: Sequence[tuple[int, Row]]
    count: Mapping[str, int]
    fates: Mapping[str, str]

    @property
    def indexed(self) -> list[tuple[int, Row, Extraction]]:
        """Return the row id, the row and the extraction of those that are indexed: not of sensitive ones."""
        return [(row_id, row, row.extraction) for row_id, row in self.stored if row.extraction is not None]


def are_few(rows: Sequence[Row]) -> bool:
    """Return whether ``rows`` are few enough to be written in a pipeline, where COPY is impossible."""
    return len(rows) <= FEW and not any(r.extraction is not None and r.extraction.relationships for r in rows)


def ask_grounds(connection: Connection, namespace: str, rows: Sequence[Row]) -> tuple[Cursor | None, Cursor]:
    """Send the queries for all that may forbid rows, under the lock of their namespace; return two cursors.

    The embedder that fills the store is read once the lock on the table of vectors is held.
    """
    filled_by = None
    if any(row.vector is not None for row in rows):
        connection.execute(_SQL["embedding_own"])
        filled_by = connection.execute(_SQL["meta_get"], {"key": "embedder"})
    return filled_by, connection.execute(_SQL["namespace_check"], {"namespace": namespace})


def check_grounds(
    connection: Connection,
    grounds: tuple[Cursor | None, Cursor],
    new: NewRows,
) -> None:
    """Raise EmbedderReplaced, InvalidInput or NamespaceFull where memories may not stay; see ``ask_grounds``."""
    filled_by, holds = grounds
    if filled_by is not None:
        embedder_row = filled_by.fetchone()
        embedder = next((r.embedder for _, r in new.stored if r.vector is not None), None)
        _filled_by(connection, embedder_row[0] if embedder_row else None, embedder)
    language, *limits = only(holds)
    _check(new, language, (*limits,))


def index_few(connection: Connection, new: NewRows, bulk: bool) -> tuple[Cursor, Cursor | None]:
    """Write the data derived from a few new memories, which stay pending, by statements sent together in a pipeline.

    A round trip matters for these, and a COPY takes two. Returns two cursors: the numbers of pending memories and of
    fresh segments, and the memory as it is stored, if it is only one.
    """
    where = {"namespace": new.namespace}
    for row_id, row, extraction in new.indexed:
        entries = forward_entries([extraction]).tobytes()
        held = {"entries": entries, "candidates": packed_postings.candidates(extraction)}
        forward = {**where, "ord": row_id, "length": extraction.length, **held}
        connection.execute(_SQL["forward_add"], forward)
        if row.vector is not None:
            connection.execute(_SQL["embedding_put"], {**where, "ord": row_id, "vector": Vector(row.vector)})
        connection.execute(_SQL["pending_add"], {**where, "ord": row_id, "names": list(extraction.names), "bulk": bulk})
    send_change(connection, new.namespace, new.count, new.fates)
    backlog = connection.execute(_SQL["backlog"], where)
    ids = {row.name[1] for _, row in new.stored}
    if len(ids) > 1:
        return backlog, None
    return backlog, connection.execute(_SQL["memory_get"], {**where, "ids": sorted(ids)}, binary=True)


def index_many(
    connection: Connection, news: Sequence[NewRows], last: Mapping[str, int], bulk: bool
) -> dict[str, tuple[int, Sequence[Sequence[Any]] | None]]:
    """Write the data derived from the new memories of some namespaces, and count them under the locks of these.

    The statements of all namespaces are sent together and a table gets one COPY, so the round trips are as many for
    one namespace as for hundreds. ``news`` are sorted by namespace, in which order the namespaces are locked; ``last``
    has the last row id of each, 0 where they were reserved under its lock. The memories of a ``bulk`` stay pending, and
    so do few. Returns the row ids given out so far, and the marks of derivation versions, of each namespace. Raises
    EmbedderReplaced, InvalidInput and NamespaceFull.
    """
    _copy_derived(connection, news)
    pends = {new.namespace: bulk or len(new.indexed) < FLUSH_AT for new in news}
    copy_pending(
        connection,
        (
            (new.namespace, row_id, extraction.names, bulk)
            for new in news
            if pends[new.namespace]
            for row_id, _, extraction in new.indexed
        ),
    )
    held = _claimed(connection, news, last)
    copy_segments(connection, {new.namespace: _inverted(new.indexed) for new in news if not pends[new.namespace]})
    with pipelined(connection):
        for new in news:
            send_change(connection, new.namespace, new.count, new.fates)
    return held


def _copy_derived(connection: Connection, news: Sequence[NewRows]) -> None:
    """COPY the forward entries, the vectors and the relationships of new memories."""
    indexed = [
        (text(new.namespace), encoding.int8(row_id), row, extraction)
        for new in news
        for row_id, row, extraction in new.indexed
    ]
    extractions = [extraction for *_, extraction in indexed]
    raw = forward_entries(extractions).tobytes()
    ends = (np.cumsum([len(e.keys) for e in extractions], dtype=np.int64) * FORWARD.itemsize).tolist()
    forwards = [
        (name, row_id, encoding.int4(e.length), raw[start:end], packed_postings.candidates(e))
        for (name, row_id, _, e), (start, end) in zip(indexed, pairwise((0, *ends)), strict=True)
    ]
    copy_rows(connection, "forward", ("namespace", "ord", "length", "entries", "candidates"), forwards)
    vectors = [
        (name, row_id, Vector(row.vector).to_binary()) for name, row_id, row, _ in indexed if row.vector is not None
    ]
    if vectors:
        copy_rows(connection, "embedding", ("namespace", "ord", "vector"), vectors)
    write_relationships(
        connection, ((new.namespace, row_id, extraction) for new in news for row_id, _, extraction in new.indexed)
    )
    filled_by = connection.execute(_SQL["meta_get"], {"key": "embedder"}).fetchone()
    embedder = next((row.embedder for _, _, row, _ in indexed if row.vector is not None), None)
    _filled_by(connection, filled_by[0] if filled_by else None, embedder)


def _claimed(
    connection: Connection, news: Sequence[NewRows], last: Mapping[str, int]
) -> dict[str, tuple[int, Sequence[Sequence[Any]] | None]]:
    """Lock namespaces in their order, and check that their new rows may stay; see ``index_many``."""
    claims = ((new.namespace, {"language": new.stored[0][1].language}) for new in news)
    rows = {namespace: only(cursor) for namespace, cursor in sent(connection, "namespace_claim", claims).items()}
    limited = {}
    for new in news:
        _, _, dropping, language, is_limited = rows[new.namespace]
        if dropping is not None and 0 < last[new.namespace] <= dropping:  # these row ids are older than the drop
            raise SerializationFailure("The namespace was dropped while memories were written to it.")
        _check(new, language)
        if is_limited:
            limited[new.namespace] = new
    for namespace, cursor in sent(connection, "namespace_check", ((name, {}) for name in limited)).items():
        language, *limits = only(cursor)
        _check(limited[namespace], language, (*limits,))
    return {namespace: (row[0], row[1]) for namespace, row in rows.items()}


def _inverted(indexed: Sequence[tuple[int, Row, Extraction]]) -> Segments:
    """Return the postings of new memories."""
    extractions = [extraction for *_, extraction in indexed]
    row_ids = np.array([row_id for row_id, *_ in indexed], dtype=np.int64)
    lengths = np.array([e.length for e in extractions], dtype=np.int64)
    sizes = np.array([len(e.keys) for e in extractions], dtype=np.int64)
    names = [name for e in extractions for name in e.names]
    return packed_postings.invert(row_ids, lengths, sizes, forward_entries(extractions), names)


def copy_pending(connection: Connection, rows: Iterable[tuple[str, int, Sequence[str], bool]]) -> None:
    """Mark memories as pending, given as (namespace, row id, names of its keys, whether a bulk brought it)."""
    packed = [
        (text(namespace), encoding.int8(row_id), text_array(names), encoding.int4(len(names) if bulk else 0))
        for namespace, row_id, names, bulk in rows
    ]
    if packed:
        copy_rows(connection, "pending", ("namespace", "ord", "names", "bulk"), packed)


def _filled_by(connection: Connection, recorded: Mapping[str, Any] | None, embedder: Mapping[str, Any] | None) -> None:
    """Record the embedder of the store's first vectors. Raises EmbedderReplaced where another one fills it."""
    if recorded is None and embedder is not None:
        claim(connection, embedder)
    else:
        agree(recorded, embedder)


def _check(new: NewRows, language: str, limits: tuple[Any, ...] = (None, None)) -> None:
    """Raise InvalidInput or NamespaceFull where new rows may not stay, by the columns of namespace_check."""
    check_language(new.namespace, language, new.stored[0][1].language)
    if limits[:2] != (None, None):
        check_limits(new.namespace, limits, sum(fate != "updated" for fate in new.fates.values()))


def copy_segments(connection: Connection, segments: Mapping[str, Segments]) -> None:
    """Write one row per key of each namespace under a new segment number, and mark keys that are shared now.

    Those are the keys that more than one memory has. The namespaces are locked in the order of ``segments``.
    """
    if not segments:
        return
    numbers = _taken_numbers(connection, segments)
    shared: dict[str, set[int]] = {n: set() for n in segments}
    keys = {n: each.keys for n, each in segments.items()}
    for statement in ("segments_known", "segments_meet", "singleton_meet"):  # each only at keys that are left
        cursors = sent(connection, statement, ((n, {"keys": some}) for n, some in keys.items()), binary=True)
        for namespace, cursor in cursors.items():
            found = [key for (key,) in cursor.fetchall()]
            shared[namespace].update(found)
            keys[namespace] = np.setdiff1d(keys[namespace], np.array(found, dtype=np.int64))
    sent(connection, "fresh_add", ((n, {"segment": number}) for n, number in numbers.items()))
    rows = (row for n, each in segments.items() for row in encoding.posting_rows(n, numbers[n], each, shared[n]))
    encoding.copy_packed(connection, "posting", encoding.POSTING_COLUMNS, rows)


def count_change(
    connection: Connection, namespace: str, count: Mapping[str, int], fates: Mapping[str, str]
) -> tuple[int, int]:
    """Number a change of a namespace, and record what happened to each id.

    Locks the row of the namespace until the commit. Returns the sequence number and the number of indexed memories; (0,
    0) where the namespace was never written to.
    """
    with pipelined(connection):
        number = send_change(connection, namespace, count, fates)
    return number.fetchone() or (0, 0)


def send_change(connection: Connection, namespace: str, count: Mapping[str, int], fates: Mapping[str, str]) -> Cursor:
    """Send what ``count_change`` does, in a pipeline, and return the cursor of the number."""
    where = {"namespace": namespace}
    number = connection.execute(_SQL["namespace_count"], {**where, **count})
    for kind in sorted(set(fates.values())):
        ids = sorted(id for id, fate in fates.items() if fate == kind)
        what, _, types = kind.partition(" ")
        connection.execute(_SQL["change_add"], {**where, "kind": what, "types": types or None, "ids": ids})
    return number


def write_relationships(connection: Connection, extractions: Iterable[tuple[str, int, Extraction]]) -> None:
    """Store the relationships extracted from memories, given as (namespace, row id, ...), that have none yet."""
    rows = [
        (text(namespace), encoding.int8(row_id), encoding.int8(one), text(what), encoding.int8(other))
        for namespace, row_id, extraction in extractions
        for one, what, other in extraction.relationships
    ]
    if rows:
        copy_rows(connection, "relationship", ("namespace", "ord", "subject", "predicate", "object"), rows)


def flush(connection: Connection, namespaces: Sequence[str], limit: int = 16 * FLUSH_AT) -> int:
    """Move up to ``limit`` pending memories of each of some namespaces into a posting segment of its own.

    Those of a bulk come last, and are fewer where they have ``BULK_KEYS`` keys together. The statements of all
    namespaces, which are in order, are sent together. Returns how many memories it moved.
    """
    connection.execute(_SQL["by_index"])
    which = {"limit": limit, "keys": BULK_KEYS}
    taken = sent(connection, "flush_take", ((namespace, which) for namespace in namespaces))
    names: dict[str, dict[int, list[str]]] = {
        n: dict(rows) for n, cursor in taken.items() if (rows := cursor.fetchall())
    }
    ords = ((namespace, {"ords": list(some)}) for namespace, some in names.items())
    cursors = sent(connection, "flush_forwards", ords, binary=True)
    forwards = {n: rows for n, cursor in cursors.items() if (rows := cursor.fetchall())}  # else they are being emptied
    copy_segments(connection, {n: _flushed(rows, names[n]) for n, rows in forwards.items()})
    done = ((namespace, {"ords": [row_id for row_id, _, _ in rows]}) for namespace, rows in forwards.items())
    sent(connection, "flush_done", done)
    return sum(map(len, forwards.values()))


def _flushed(forwards: Sequence[tuple[int, int, bytes]], names: Mapping[int, Sequence[str]]) -> Segments:
    """Return the postings of stored memories, each with the names of its keys."""
    row_ids = np.array([row_id for row_id, _, _ in forwards], dtype=np.int64)
    lengths = np.array([length for _, length, _ in forwards], dtype=np.int64)
    packed = [np.frombuffer(raw, dtype=FORWARD) for _, _, raw in forwards]
    sizes = np.array([len(p) for p in packed], dtype=np.int64)
    flat = [name for row_id, _, _ in forwards for name in names[row_id]]
    return packed_postings.invert(row_ids, lengths, sizes, np.concatenate(packed), flat)


def compact(connection: Connection, namespace: str, *, bulk: bool = False) -> int:
    """Join posting rows of the keys written lately; return how many rows were written.

    In a ``bulk`` only those of keys that have several of these rows: the others are found one by one, in places of
    their own all over the table, and ``maintain`` merges them in order. Size-tiered: a row is merged with newer ones
    when it is at most twice as large as all of them together. So an entry is rewritten a logarithmic number of times,
    and a key stays within a few rows.
    """
    connection.execute(_SQL["by_index"])
    connection.execute(_SQL["namespace_own"], {"namespace": namespace})
    segments = fresh_segments(connection, [namespace])[namespace]
    if len(segments) < COMPACT_AT:
        return 0  # another writer was faster
    sizes = {"least": COMPACT_AT, "full": SEGMENT_FULL, "fresh": COMPACT_AT if bulk else 1}
    parameters = {"namespace": namespace, "segments": segments, **sizes}
    written = int(connection.execute(_SQL["compact"], parameters).rowcount)
    mark_merged(connection, {namespace: segments})
    return written


def fresh_segments(connection: Connection, namespaces: Sequence[str]) -> dict[str, list[int]]:
    """Return the segments of each namespace written since its last compaction."""
    cursors = sent(connection, "fresh_list", ((namespace, {}) for namespace in namespaces))
    return {namespace: [segment for (segment,) in cursor.fetchall()] for namespace, cursor in cursors.items()}


def mark_merged(connection: Connection, segments: Mapping[str, Sequence[int]]) -> dict[str, int]:
    """Unmark segments of namespaces as fresh, and take a segment number for the merge of each namespace.

    So recalls that read from the database notice other rows, while the number tells a model in memory that no memory
    has changed. No row has that number. Returns it.
    """
    fresh = ((namespace, {"segments": some}) for namespace, some in segments.items() if some)
    sent(connection, "fresh_done", fresh)
    return _taken_numbers(connection, segments)


def _taken_numbers(connection: Connection, namespaces: Iterable[str]) -> dict[str, int]:
    cursors = sent(connection, "segment_next", ((namespace, {}) for namespace in namespaces))
    return {namespace: only(cursor)[0] for namespace, cursor in cursors.items()}


def flush_and_compact(
    store: PostgresStore, namespace: str, backlog: NamespaceBacklog | None = None, *, bulk: bool = False
) -> int:
    """Flush a namespace of many pending memories, compact one of many fresh segments; return how many it flushed.

    A writer of few memories leaves to a ``bulk`` most of what it brought.
    """
    backlog = backlog or _backlogs(store, [namespace])[namespace]
    segments = backlog.segments
    flushed = 0
    if _flushes(backlog, bulk):
        flushed = store.transaction(
            partial(flush, namespaces=[namespace], limit=FLUSHED_AT_ONCE if bulk else 16 * FLUSH_AT)
        )
        segments += 1
    if _compacts(segments, bulk):
        store.transaction(partial(compact, namespace=namespace, bulk=bulk))
    return flushed


def backlogs_due(
    store: PostgresStore, namespaces: Sequence[str], known: Mapping[str, NamespaceBacklog], *, bulk: bool
) -> dict[str, NamespaceBacklog]:
    """Return the backlogs of those of some namespaces for which ``flush_and_compact`` has something to do.

    Those that are not ``known`` are read in one round trip.
    """
    backlogs = {**known, **_backlogs(store, [namespace for namespace in namespaces if namespace not in known])}
    return {n: one for n in namespaces if _flushes(one := backlogs[n], bulk) or _compacts(one.segments, bulk)}


def _backlogs(store: PostgresStore, namespaces: Sequence[str]) -> dict[str, NamespaceBacklog]:
    """Read the backlogs of some namespaces in one round trip; for none, nothing is sent."""
    queries = [("backlog", {"namespace": namespace}) for namespace in namespaces]
    read = store.together(*queries, planned=True) if queries else ()
    return {n: NamespaceBacklog._make(row) for n, (row,) in zip(namespaces, read, strict=True)}


def _flushes(backlog: NamespaceBacklog, bulk: bool) -> bool:
    return backlog.bulk_keys >= BULK_KEYS if bulk else backlog.pending >= FLUSH_AT


def _compacts(segments: int, bulk: bool) -> bool:
    return segments >= (BULK_COMPACT_AT if bulk else COMPACT_AT)
