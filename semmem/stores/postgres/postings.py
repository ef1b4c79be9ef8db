"""Postings in PostgreSQL: new memories are indexed, pending ones folded, segments joined, forgotten ones taken out.

Every function takes an open connection inside a transaction and holds no state. Rows of postings are locked in the
order of (key, segment), behind the row of their namespace.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from psycopg.errors import SerializationFailure

from semmem.model.exchange import Extraction, Row
from semmem.stores import packed_postings
from semmem.stores.packed_postings import FORWARD, POSTING, Segment, forward_entries
from semmem.stores.postgres import encoding
from semmem.stores.postgres.connection import agree, pipelined
from semmem.stores.postgres.encoding import Vector, copy_rows, text, text_array
from semmem.stores.postgres.vectors import claim
from semmem.stores.sql_files import check_limits, statements
from semmem.text.tokens import check_language

__all__ = [
    "COMPACT_AT",
    "FIRST_KEY",
    "FOLD_AT",
    "LAST_KEY",
    "are_few",
    "ask_grounds",
    "check_grounds",
    "checked",
    "clear_keys",
    "clear_postings",
    "compact",
    "copy_segments",
    "count_change",
    "fold",
    "index_few",
    "index_many",
    "note",
    "note_aliases",
    "pack",
    "pack_steps",
    "write_relationships",
]

FOLD_AT = 64
"""Pending memories of a namespace at which a writer folds them into the postings."""
COMPACT_AT = 4
"""Fresh segments of a namespace at which a writer compacts, and rows of a key that are worth joining."""
SEGMENT_FULL = 4_096
"""Entries of one posting row at most after compaction, so that forgetting rewrites a bounded value."""
LONE_FULL = 32
"""Keys of one row of lone_posting: about 1.4 kB, so that a page of the server holds five, and none is stored apart."""
_LONE_AT_ONCE = 50_000
"""Keys of one memory that one step of ``pack`` writes."""
_LONE_SHARE = 8
"""Keys of one memory are packed when those with rows of their own are at least one in so many of the packed."""
_FEW = 16
"""Rows that are written one statement each, all of them sent together; more go faster by COPY."""
FIRST_KEY, LAST_KEY = -(1 << 63), (1 << 63) - 1
"""What the keys of postings are between; each is a hash."""
_SQL = statements("postgres")


def are_few(rows: Sequence[Row]) -> bool:
    """Return whether ``rows`` may be written in a pipeline, in which there is no COPY."""
    return len(rows) <= _FEW and not any(r.extraction is not None and r.extraction.relationships for r in rows)


def ask_grounds(connection: Any, namespace: str, rows: Sequence[Row]) -> tuple[Any, Any]:
    """Ask for all that may forbid rows, behind their memories and under the lock of their namespace; for two cursors.

    Who fills the store is looked up once our own lock on the table of vectors is held.
    """
    filled_by = None
    if any(row.vector is not None for row in rows):
        connection.execute(_SQL["embedding_own"])
        filled_by = connection.execute(_SQL["meta_get"], {"key": "embedder"})
    return filled_by, connection.execute(_SQL["namespace_check"], {"namespace": namespace})


def check_grounds(
    connection: Any, asked: tuple[Any, Any], namespace: str, stored: Sequence[tuple[int, Row]], fates: Mapping[str, str]
) -> None:
    """Raise EmbedderReplaced, and what ``checked`` does, unless memories may stay; ``asked`` is of ``ask_grounds``."""
    filled_by, holds = asked
    if filled_by is not None:
        known = filled_by.fetchone()
        mine = next((r.embedder for _, r in stored if r.vector is not None), None)
        _filled_by(connection, known[0] if known else None, mine)
    checked(holds, namespace, stored, fates)


def index_few(
    connection: Any,
    namespace: str,
    stored: Sequence[tuple[int, Row]],
    count: Mapping[str, int],
    fates: Mapping[str, str],
) -> tuple[Any, Any]:
    """Write what is derived from a few new memories, which stay pending, by statements that are sent together.

    A round trip counts there, and a COPY is two. The connection is in a pipeline; see ``count_change`` for the rest.

    Returns two cursors: how many memories are pending and segments fresh, and the memory as it is stored, if it is one.
    """
    where = {"namespace": namespace}
    for ord, row in stored:
        if row.extraction is None:
            continue
        entries = forward_entries([row.extraction]).tobytes()
        held = {**where, "ord": ord, "length": row.extraction.length, "entries": entries}
        connection.execute(_SQL["forward_add"], held)
        if row.vector is not None:
            connection.execute(_SQL["embedding_put"], {**where, "ord": ord, "vector": Vector(row.vector)})
        connection.execute(_SQL["pending_add"], {**where, "ord": ord, "names": list(row.extraction.names)})
    _send_change(connection, namespace, count, fates)
    backlog = connection.execute(_SQL["backlog"], where)
    names = {row.name for _, row in stored}
    if len(names) > 1:
        return backlog, None
    return backlog, connection.execute(_SQL["memory_get"], {**where, "ids": [next(iter(names))[1]]}, binary=True)


def index_many(
    connection: Any,
    namespace: str,
    stored: Sequence[tuple[int, Row]],
    count: Mapping[str, int],
    fates: Mapping[str, str],
    last: int,
) -> None:
    """Write what is derived from new memories by COPY, and count them under the lock of their namespace.

    ``last`` is their last number. See ``count_change`` for the rest. Raises EmbedderReplaced.
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
        ("namespace", "ord", "length", "entries"),
        [
            (name, encoding.int8(ord), encoding.int4(e.length), raw[start:end])
            for (ord, _), e, start, end in zip(stored, extractions, starts.tolist(), ends.tolist(), strict=True)
        ],
    )
    vectors = [(name, encoding.int8(ord), encoding.vector(row.vector)) for ord, row in stored if row.vector is not None]
    if vectors:
        copy_rows(connection, "embedding", ("namespace", "ord", "vector"), vectors)
    if any(e.relationships for e in extractions):
        write_relationships(connection, namespace, [(o, r.extraction) for o, r in stored if r.extraction is not None])
    row = connection.execute(_SQL["meta_get"], {"key": "embedder"}).fetchone()
    filled_by = row[0] if row else None
    _filled_by(connection, filled_by, next((row.embedder for _, row in stored if row.vector is not None), None))
    if len(stored) < FOLD_AT:
        pending = [
            (name, encoding.int8(ord), text_array(e.names)) for (ord, _), e in zip(stored, extractions, strict=True)
        ]
        copy_rows(connection, "pending", ("namespace", "ord", "names"), pending)
    else:
        ords = np.array([ord for ord, _ in stored], dtype=np.int64)
        lengths = np.array([e.length for e in extractions], dtype=np.int64)
        names = [n for e in extractions for n in e.names]
        copy_segments(connection, namespace, packed_postings.invert(ords, lengths, sizes, entries, names))
    claim = {"namespace": namespace, "language": language}
    _, dropping = connection.execute(_SQL["namespace_claim"], claim).fetchone()
    if dropping is not None and last <= dropping:  # our numbers are older than the drop: take others
        raise SerializationFailure("The namespace was dropped while memories were written to it.")
    count_change(connection, namespace, count, fates)


def _filled_by(connection: Any, recorded: Mapping[str, Any] | None, mine: Mapping[str, Any] | None) -> None:
    """Record who fills the store with its first vectors. Raises EmbedderReplaced where it is another embedder."""
    if recorded is None and mine is not None:
        claim(connection, mine)
    else:
        agree(recorded, mine)


def checked(holds: Any, namespace: str, stored: Sequence[tuple[int, Row]], fates: Mapping[str, str]) -> None:
    """Raise InvalidInput or NamespaceFull unless what was ``stored`` may stay; ``holds`` is of namespace_check."""
    language, *limits = holds.fetchone()
    check_language(namespace, language, stored[0][1].language)
    if limits[:2] != [None, None]:
        check_limits(namespace, (*limits,), sum(fate != "updated" for fate in fates.values()))


def copy_segments(connection: Any, namespace: str, segments: Iterable[Segment]) -> None:
    """Write one row a key under a new segment number, and mark the keys that are no longer alone, packed or not."""
    segments = list(segments)
    segment = connection.execute(_SQL["segment_next"], {"namespace": namespace}).fetchone()[0]
    keys = {"namespace": namespace, "keys": np.array([s.key for s in segments], dtype=np.int64)}
    with pipelined(connection):
        connection.execute(_SQL["segments_meet"], keys)
        connection.execute(_SQL["lone_meet"], keys)
    known = {key for (key,) in connection.execute(_SQL["segments_known"], keys, binary=True)}
    connection.execute(_SQL["fresh_add"], {"namespace": namespace, "segment": segment})
    rows = encoding.posting_rows(namespace, segment, segments, known)
    encoding.copy_packed(connection, "posting", encoding.POSTING_COLUMNS, rows)


def count_change(
    connection: Any, namespace: str, count: Mapping[str, int], fates: Mapping[str, str]
) -> tuple[int, int]:
    """Give the change of a namespace its number, and write it down: what became of each id.

    Locks the row of the namespace until the commit. Returns the number, and how many memories are indexed now; (0, 0)
    where the namespace was never written to.
    """
    with pipelined(connection):
        number = _send_change(connection, namespace, count, fates)
    return number.fetchone() or (0, 0)


def _send_change(connection: Any, namespace: str, count: Mapping[str, int], fates: Mapping[str, str]) -> Any:
    where = {"namespace": namespace}
    number = connection.execute(_SQL["namespace_count"], {**where, **count})
    for kind in sorted(set(fates.values())):
        ids = sorted(id for id, fate in fates.items() if fate == kind)
        connection.execute(_SQL["change_add"], {**where, "kind": kind, "ids": ids})
    return number


def note(connection: Any, namespace: str, keys: Collection[int]) -> Any:
    """Note that older memories that mention ``keys`` are to be read again; return a cursor: the number just taken."""
    parameters = {"namespace": namespace, "keys": np.fromiter(sorted(keys), np.int64, len(keys))}
    return connection.execute(_SQL["alias_note"], parameters)


def note_aliases(connection: Any, namespace: str, keys: Collection[int]) -> int:
    """Note that older memories that mention ``keys`` are to be read again, under a number of its own; return it."""
    connection.execute(_SQL["namespace_make"], {"namespace": namespace})
    connection.execute(_SQL["namespace_count"], {"namespace": namespace, "memories": 0, "length": 0})
    return int(note(connection, namespace, keys).fetchone()[0])


def write_relationships(connection: Any, namespace: str, found: Sequence[tuple[int, Extraction]]) -> None:
    """Store the relationships that were found in memories that have none yet."""
    name = text(namespace)
    rows = [
        (name, encoding.int8(ord), encoding.int8(one), text(what), encoding.int8(other))
        for ord, extraction in found
        for one, what, other in extraction.relationships
    ]
    if rows:
        copy_rows(connection, "relationship", ("namespace", "ord", "subject", "predicate", "object"), rows)


def fold(connection: Any, namespace: str, limit: int = 16 * FOLD_AT) -> int:
    """Move up to ``limit`` pending memories of ``namespace`` into one posting segment; return how many."""
    taken = connection.execute(_SQL["fold_take"], {"namespace": namespace, "limit": limit}).fetchall()
    if not taken:
        return 0
    names = dict(taken)
    parameters = {"namespace": namespace, "ords": list(names)}
    forwards = connection.execute(_SQL["fold_forwards"], parameters, binary=True).fetchall()
    ords = np.array([ord for ord, _, _ in forwards], dtype=np.int64)
    lengths = np.array([length for _, length, _ in forwards], dtype=np.int64)
    packed = [np.frombuffer(raw, dtype=FORWARD) for _, _, raw in forwards]
    sizes = np.array([len(p) for p in packed], dtype=np.int64)
    flat = [n for ord, _, _ in forwards for n in names[ord]]
    copy_segments(connection, namespace, packed_postings.invert(ords, lengths, sizes, np.concatenate(packed), flat))
    connection.execute(_SQL["fold_done"], parameters)
    return len(forwards)


def clear_postings(connection: Any, namespace: str, keys_of: Mapping[int, Any]) -> None:
    """Take memories out of the segments of their keys; ``keys_of`` maps an ord to an array of keys."""
    gone: dict[int, list[int]] = defaultdict(list)
    for ord, keys in keys_of.items():
        for key in keys.tolist():
            gone[key].append(ord)
    clear_keys(connection, namespace, gone)


def clear_keys(connection: Any, namespace: str, gone: Mapping[int, Sequence[int]]) -> None:
    """Take memories out of the segments of some keys; ``gone`` has the ords of each key."""
    if not gone:
        return
    keys = sorted(gone)
    parameters = {
        "namespace": namespace,
        "keys": keys,
        "lows": [min(gone[k]) for k in keys],
        "highs": [max(gone[k]) for k in keys],
    }
    rewritten: dict[str, list[Any]] = defaultdict(list)
    empty: dict[str, list[int]] = {"keys": [], "segments": []}
    for key, segment, raw in connection.execute(_SQL["posting_lock"], parameters, binary=True).fetchall():
        entries = np.frombuffer(raw, dtype=POSTING)
        left = entries[~np.isin(entries["ord"], gone[key])]
        if len(left) == len(entries):
            continue
        if not len(left):
            empty["keys"].append(key)
            empty["segments"].append(segment)
            continue
        for column, value in zip(
            ("keys", "segments", "entries", "n", "subjects", "lows", "highs"),
            (key, segment, *_summary(left)),
            strict=True,
        ):
            rewritten[column].append(value)
    if empty["keys"]:
        connection.execute(_SQL["posting_delete"], {"namespace": namespace, **empty})
    if rewritten:
        connection.execute(_SQL["posting_rewrite"], {"namespace": namespace, **rewritten})
    sizes = [len(gone[key]) for key in keys]
    ords = np.fromiter((ord for key in keys for ord in gone[key]), np.int64, sum(sizes))
    held = {"namespace": namespace, "keys": np.repeat(np.array(keys, dtype=np.int64), sizes), "ords": ords}
    connection.execute(_SQL["lone_clear"], held)


def _summary(entries: Any) -> tuple[bytes, int, int, int, int]:
    subjects, ords = int((entries["subject"] > 0).sum()), entries["ord"]  # joined rows need not be in order of ord
    return entries.tobytes(), int(packed_postings.mentions(entries).sum()), subjects, int(ords.min()), int(ords.max())


def compact(connection: Any, namespace: str, *, everything: bool = False) -> int:
    """Join posting rows of the keys that were written lately, or of every key; return how many rows were written.

    Size-tiered, as in log-structured stores: a row is joined with newer ones when it is at most twice as large as all
    of them together, so that an entry is rewritten a logarithmic number of times and a key stays within a few rows.
    """
    connection.execute(_SQL["namespace_own"], {"namespace": namespace})
    fresh = [segment for (segment,) in connection.execute(_SQL["fresh_list"], {"namespace": namespace})]
    if not everything and len(fresh) < COMPACT_AT:
        return 0  # another writer was faster
    parameters = {
        "namespace": namespace,
        "segments": None if everything else fresh,
        "factor": 1e9 if everything else 2.0,
        "least": 2 if everything else COMPACT_AT,
        "full": SEGMENT_FULL,
    }
    written = connection.execute(_SQL["compact"], parameters).rowcount
    connection.execute(_SQL["fresh_done"], {"namespace": namespace, "segments": fresh})
    connection.execute(_SQL["namespace_revise"], {"namespace": namespace, "length": 0})
    return int(written)


def pack_steps(connection: Any, namespace: str) -> int:
    """Return in how many steps ``pack`` is to be done now: 0 where too few keys have come since to be worth it."""
    apart, packed = connection.execute(_SQL["lone_count"], {"namespace": namespace}).fetchone()
    return (apart + packed) // _LONE_AT_ONCE + 1 if apart and apart * _LONE_SHARE >= packed else 0


def pack(connection: Any, namespace: str, since: int, steps: int) -> tuple[int, int]:
    """Pack the postings of keys that one memory alone has, of the keys from ``since`` on; see lone_posting.

    Returns the key to go on at, and how many rows of their own went.
    """
    connection.execute(_SQL["namespace_own"], {"namespace": namespace})
    upto = min(LAST_KEY, since + (LAST_KEY - FIRST_KEY) // steps)  # keys are hashes: equal ranges hold as many
    asked = {"namespace": namespace, "since": since, "upto": upto, "size": LONE_FULL}
    last, went = connection.execute(_SQL["lone_pack"], asked).fetchone()
    return last + 1, went
