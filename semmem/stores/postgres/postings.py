"""Postings in PostgreSQL: index new memories, flush pending ones, merge segments.

Every function takes an open connection inside a transaction and holds no state. Rows of postings are locked in the
order of (key, segment), after the row of their namespace.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from pgvector import Vector
from psycopg.errors import SerializationFailure

from semmem.model.exchange import Extraction, Row
from semmem.stores import packed_postings
from semmem.stores.filled_by import agree
from semmem.stores.packed_postings import FORWARD, Segments, forward_entries
from semmem.stores.postgres import encoding
from semmem.stores.postgres.connection import pipelined
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
    "are_few",
    "ask_grounds",
    "check_grounds",
    "checked",
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
    namespace: str,
    stored: Sequence[tuple[int, Row]],
    fates: Mapping[str, str],
) -> None:
    """Raise EmbedderReplaced or an error of ``checked`` where memories may not stay; ``grounds``: ``ask_grounds``."""
    filled_by, holds = grounds
    if filled_by is not None:
        embedder_row = filled_by.fetchone()
        embedder = next((r.embedder for _, r in stored if r.vector is not None), None)
        _filled_by(connection, embedder_row[0] if embedder_row else None, embedder)
    checked(holds, namespace, stored, fates)


def index_few(
    connection: Connection,
    namespace: str,
    stored: Sequence[tuple[int, Row]],
    count: Mapping[str, int],
    fates: Mapping[str, str],
    bulk: bool,
) -> tuple[Cursor, Cursor | None]:
    """Write the data derived from a few new memories, which stay pending, by statements sent together in a pipeline.

    A round trip matters for these, and a COPY takes two. See ``index_many`` for the other arguments. Returns two
    cursors: the numbers of pending memories and of fresh segments, and the memory as it is stored, if it is only one.
    """
    where = {"namespace": namespace}
    for row_id, row in stored:
        if row.extraction is None:
            continue
        entries = forward_entries([row.extraction]).tobytes()
        held = {"entries": entries, "candidates": packed_postings.candidates(row.extraction)}
        forward = {**where, "ord": row_id, "length": row.extraction.length, **held}
        connection.execute(_SQL["forward_add"], forward)
        if row.vector is not None:
            connection.execute(_SQL["embedding_put"], {**where, "ord": row_id, "vector": Vector(row.vector)})
        connection.execute(_SQL["pending_add"], {**where, "ord": row_id, "names": row.extraction.names, "bulk": bulk})
    send_change(connection, namespace, count, fates)
    backlog = connection.execute(_SQL["backlog"], where)
    ids = {row.name[1] for _, row in stored}
    if len(ids) > 1:
        return backlog, None
    return backlog, connection.execute(_SQL["memory_get"], {**where, "ids": sorted(ids)}, binary=True)


def index_many(
    connection: Connection,
    namespace: str,
    stored: Sequence[tuple[int, Row]],
    count: Mapping[str, int],
    fates: Mapping[str, str],
    last: int,
    bulk: bool,
) -> None:
    """Write the data derived from new memories by COPY, and count them under the lock of their namespace.

    ``last`` is their last row id. Those of a ``bulk`` stay pending. See ``count_change`` for the other arguments.
    Raises EmbedderReplaced.
    """
    language = stored[0][1].language
    stored = [pair for pair in stored if pair[1].extraction is not None]
    extractions = [row.extraction for _, row in stored if row.extraction is not None]
    name = text(namespace)
    entries = forward_entries(extractions)
    sizes = np.array([len(e.keys) for e in extractions], dtype=np.int64)
    ends = np.cumsum(sizes) * FORWARD.itemsize
    raw = entries.tobytes()
    starts = ends - sizes * FORWARD.itemsize
    copy_rows(
        connection,
        "forward",
        ("namespace", "ord", "length", "entries", "candidates"),
        [
            (name, encoding.int8(row_id), encoding.int4(e.length), raw[start:end], packed_postings.candidates(e))
            for (row_id, _), e, start, end in zip(stored, extractions, starts.tolist(), ends.tolist(), strict=True)
        ],
    )
    vectors = [
        (name, encoding.int8(row_id), Vector(row.vector).to_binary())
        for row_id, row in stored
        if row.vector is not None
    ]
    if vectors:
        copy_rows(connection, "embedding", ("namespace", "ord", "vector"), vectors)
    if any(e.relationships for e in extractions):
        write_relationships(connection, namespace, [(o, r.extraction) for o, r in stored if r.extraction is not None])
    row = connection.execute(_SQL["meta_get"], {"key": "embedder"}).fetchone()
    filled_by = row[0] if row else None
    _filled_by(connection, filled_by, next((row.embedder for _, row in stored if row.vector is not None), None))
    if bulk or len(stored) < FLUSH_AT:
        copy_pending(
            connection, namespace, [(row_id, e.names, bulk) for (row_id, _), e in zip(stored, extractions, strict=True)]
        )
    else:
        row_ids = np.array([row_id for row_id, _ in stored], dtype=np.int64)
        lengths = np.array([e.length for e in extractions], dtype=np.int64)
        names = [n for e in extractions for n in e.names]
        copy_segments(connection, namespace, packed_postings.invert(row_ids, lengths, sizes, entries, names))
    claim = {"namespace": namespace, "language": language}
    _, dropping = only(connection.execute(_SQL["namespace_claim"], claim))
    if dropping is not None and last <= dropping:  # these row ids are older than the drop: take others
        raise SerializationFailure("The namespace was dropped while memories were written to it.")
    count_change(connection, namespace, count, fates)


def copy_pending(connection: Connection, namespace: str, rows: Sequence[tuple[int, Sequence[str], bool]]) -> None:
    """Mark memories as pending, given as (row id, names of its keys, whether a bulk brought it)."""
    name, columns = text(namespace), ("namespace", "ord", "names", "bulk")
    packed = [
        (name, encoding.int8(row_id), text_array(names), encoding.int4(len(names) if bulk else 0))
        for row_id, names, bulk in rows
    ]
    copy_rows(connection, "pending", columns, packed)


def _filled_by(connection: Connection, recorded: Mapping[str, Any] | None, embedder: Mapping[str, Any] | None) -> None:
    """Record the embedder of the store's first vectors. Raises EmbedderReplaced where another one fills it."""
    if recorded is None and embedder is not None:
        claim(connection, embedder)
    else:
        agree(recorded, embedder)


def checked(holds: Cursor, namespace: str, stored: Sequence[tuple[int, Row]], fates: Mapping[str, str]) -> None:
    """Raise InvalidInput or NamespaceFull where ``stored`` rows may not stay; ``holds`` is of namespace_check."""
    language, *limits = only(holds)
    check_language(namespace, language, stored[0][1].language)
    if limits[:2] != [None, None]:
        check_limits(namespace, (*limits,), sum(fate != "updated" for fate in fates.values()))


def copy_segments(connection: Connection, namespace: str, segments: Segments) -> None:
    """Write one row per key under a new segment number, and mark keys that more than one memory has now."""
    segment = only(connection.execute(_SQL["segment_next"], {"namespace": namespace}))[0]
    shared_keys: set[int] = set()
    keys = segments.keys
    for statement in (
        "segments_known",
        "segments_meet",
        "singleton_meet",
    ):  # each looks at what is left of the keys alone
        parameters = {"namespace": namespace, "keys": keys}
        found = [key for (key,) in connection.execute(_SQL[statement], parameters, binary=True)]
        shared_keys.update(found)
        keys = np.setdiff1d(keys, np.array(found, dtype=np.int64))
    connection.execute(_SQL["fresh_add"], {"namespace": namespace, "segment": segment})
    rows = encoding.posting_rows(namespace, segment, segments, shared_keys)
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


def write_relationships(connection: Connection, namespace: str, extractions: Sequence[tuple[int, Extraction]]) -> None:
    """Store the relationships extracted from memories that have none yet."""
    name = text(namespace)
    rows = [
        (name, encoding.int8(row_id), encoding.int8(one), text(what), encoding.int8(other))
        for row_id, extraction in extractions
        for one, what, other in extraction.relationships
    ]
    if rows:
        copy_rows(connection, "relationship", ("namespace", "ord", "subject", "predicate", "object"), rows)


def flush(connection: Connection, namespace: str, limit: int = 16 * FLUSH_AT) -> int:
    """Move up to ``limit`` pending memories of ``namespace`` into one posting segment; return how many.

    Those of a bulk come last, and are fewer where they have ``BULK_KEYS`` keys together.
    """
    which = {"namespace": namespace, "limit": limit, "keys": BULK_KEYS}
    rows = connection.execute(_SQL["flush_take"], which).fetchall()
    if not rows:
        return 0
    names: dict[int, list[str]] = dict(rows)
    parameters = {"namespace": namespace, "ords": list(names)}
    forwards = connection.execute(_SQL["flush_forwards"], parameters, binary=True).fetchall()
    row_ids = np.array([row_id for row_id, _, _ in forwards], dtype=np.int64)
    if not forwards:  # they are just being emptied
        return 0
    lengths = np.array([length for _, length, _ in forwards], dtype=np.int64)
    packed = [np.frombuffer(raw, dtype=FORWARD) for _, _, raw in forwards]
    sizes = np.array([len(p) for p in packed], dtype=np.int64)
    flat = [n for row_id, _, _ in forwards for n in names[row_id]]
    copy_segments(connection, namespace, packed_postings.invert(row_ids, lengths, sizes, np.concatenate(packed), flat))
    connection.execute(_SQL["flush_done"], {**parameters, "ords": row_ids})
    return len(forwards)


def compact(connection: Connection, namespace: str, *, bulk: bool = False) -> int:
    """Join posting rows of the keys written lately; return how many rows were written.

    In a ``bulk`` only those of keys that have several of these rows: the others are found one by one, in places of
    their own all over the table, and ``maintain`` merges them in order. Size-tiered: a row is merged with newer ones
    when it is at most twice as large as all of them together. So an entry is rewritten a logarithmic number of times,
    and a key stays within a few rows.
    """
    connection.execute(_SQL["namespace_own"], {"namespace": namespace})
    segments = fresh_segments(connection, namespace)
    if len(segments) < COMPACT_AT:
        return 0  # another writer was faster
    sizes = {"least": COMPACT_AT, "full": SEGMENT_FULL, "fresh": COMPACT_AT if bulk else 1}
    parameters = {"namespace": namespace, "segments": segments, **sizes}
    written = int(connection.execute(_SQL["compact"], parameters).rowcount)
    mark_merged(connection, namespace, segments)
    return written


def fresh_segments(connection: Connection, namespace: str) -> list[int]:
    """Return the segments written since the last compaction."""
    return [segment for (segment,) in connection.execute(_SQL["fresh_list"], {"namespace": namespace})]


def mark_merged(connection: Connection, namespace: str, segments: Sequence[int]) -> None:
    """Unmark segments as fresh, and advance the sequence number: recalls read other rows."""
    connection.execute(_SQL["fresh_done"], {"namespace": namespace, "segments": segments})
    connection.execute(_SQL["namespace_revise"], {"namespace": namespace, "length": 0})


def flush_and_compact(
    store: PostgresStore, namespace: str, backlog: tuple[int, int, int] | None = None, *, bulk: bool = False
) -> int:
    """Flush a namespace of many pending memories, compact one of many fresh segments; return how many it flushed.

    A writer of few memories leaves to a ``bulk`` most of what it brought. ``backlog`` is the row of that statement.
    """
    pending, bulk_keys, segments = backlog or store.row("backlog", {"namespace": namespace})
    flushed = 0
    if bulk_keys >= BULK_KEYS if bulk else pending >= FLUSH_AT:
        flushed = store.transaction(
            partial(flush, namespace=namespace, limit=FLUSHED_AT_ONCE if bulk else 16 * FLUSH_AT)
        )
        segments += 1
    if segments >= (BULK_COMPACT_AT if bulk else COMPACT_AT):
        store.transaction(partial(compact, namespace=namespace, bulk=bulk))
    return flushed
