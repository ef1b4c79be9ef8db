"""Writing to PostgreSQL: a batch in one transaction, forgetting without a trace, folding what is pending.

Every function takes an open connection inside a transaction and holds no state. Rows are locked in one order
(namespace, id, then key, segment) by everybody.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from psycopg.errors import SerializationFailure

from semmem.model.errors import Conflict
from semmem.model.exchange import Extraction, Row, Written
from semmem.model.types import Filters, Memory
from semmem.stores import packed_postings
from semmem.stores.packed_postings import FORWARD, POSTING, Segment, forward_entries
from semmem.stores.postgres import encoding
from semmem.stores.postgres.encoding import copy_rows, filter_parameters, text, text_array
from semmem.stores.postgres.few import index_few
from semmem.stores.postgres.vectors import claim_or_agree
from semmem.stores.sql_files import statements

__all__ = [
    "COMPACT_AT",
    "FOLD_AT",
    "clear_postings",
    "compact",
    "copy_segments",
    "fold",
    "forget",
    "note_aliases",
    "write",
    "write_relationships",
]

FOLD_AT = 64
"""Pending memories of a namespace at which a writer folds them into the postings."""
COMPACT_AT = 4
"""Fresh segments of a namespace at which a writer compacts, and rows of a key that are worth joining."""
SEGMENT_FULL = 4_096
"""Entries of one posting row at most after compaction, so that forgetting rewrites a bounded value."""
FORGET_AT_ONCE = 5_000
"""Memories whose entries the client holds at a time while it takes them out of the postings."""
_SQL = statements("postgres")
_POSTING_COLUMNS = ("namespace", "key", "segment", "kind", "n", "subjects", "low", "high", "name", "entries", "lone")
_TRUE, _FALSE = b"\x01", b"\x00"


def write(
    connection: Any, rows: Sequence[Row], on_conflict: str, backlog: dict[str, tuple[int, int]] | None = None
) -> Written:
    """Store a batch; see Store.write. Memories in small batches stay pending, a large batch is a posting segment.

    In a pipeline (rows that ``are_few``) give a ``backlog`` to be filled, with what ``tidy`` wants of each namespace.
    """
    ordered = sorted(rows, key=lambda r: (r.memory.namespace, r.memory.id, r.part))
    wholes = [r for r in ordered if r.part == 0]
    replaced, stale, removed = _take_place(connection, ordered)
    fresh = [r for r in wholes if r.name not in stale]
    ords = _insert(connection, fresh)
    new = {(namespace, id) for namespace, id, _ in ords}
    unchanged, conflicts = _compare(connection, [r for r in fresh if r.name not in new])
    conflicts |= stale
    if conflicts and on_conflict == "abort":
        first = min(conflicts)
        raise Conflict(
            f"The id {first[1]!r} is already stored in namespace {first[0]!r} with other content; call update to "
            "change it.",
            names=frozenset(conflicts),
        )
    ords |= _insert(connection, [r for r in ordered if r.part > 0 and r.name in new])
    by_namespace: dict[str, list[tuple[int, Row]]] = defaultdict(list)
    for row in ordered:
        if row.extraction is not None and row.name in new:
            by_namespace[row.memory.namespace].append((ords[(*row.name, row.part)], row))
    changes: dict[str, int] = {}
    memories: dict[tuple[str, str], Memory] = {}
    for namespace, stored in by_namespace.items():
        arrivals = {at for _, row in stored for at in row.arrivals}
        stored.sort(key=lambda pair: pair[0])
        if backlog is not None:
            noted, backlog[namespace], whole = index_few(connection, namespace, stored, arrivals)
            memories |= {(namespace, memory.id): memory for memory in whole}
        else:
            _index(connection, namespace, stored)
            noted = note_aliases(connection, namespace, arrivals) if arrivals else None
        if noted is not None:
            changes[namespace] = noted
    for namespace, forgotten in removed.items():  # last, so that a name the successor has too is none that went
        entries = np.frombuffer(b"".join(forgotten), dtype=FORWARD)
        if gone := _subjects_gone(connection, namespace, np.unique(entries["key"][entries["subject"] > 0])):
            note_aliases(connection, namespace, gone)
    fates = frozenset(new - replaced), frozenset(unchanged), frozenset(conflicts)
    return Written(*fates, ords, changes, frozenset(replaced), memories=memories)


def _take_place(
    connection: Any, rows: Sequence[Row]
) -> tuple[set[tuple[str, str]], set[tuple[str, str]], dict[str, list[bytes]]]:
    """Remove what ``rows`` replace, if it is still of that version.

    Returns the names removed, those that are of another version or gone, and what the removed held, by namespace.
    """
    replaces = {r.name: r.replaces for r in rows if r.part == 0 and r.replaces is not None}
    if not replaces:
        return set(), set(), {}
    for namespace in sorted({namespace for namespace, _ in replaces}):
        connection.execute(_SQL["postings_share"], {"namespace": namespace})
    names = {"namespaces": [n for n, _ in replaces], "ids": [i for _, i in replaces]}
    found = connection.execute(_SQL["replace_select"], names).fetchall()
    same = {(n, i) for n, i, part, version, _ in found if part == 0 and version == replaces[n, i]}
    ords: dict[str, list[int]] = defaultdict(list)
    for namespace, id, _, _, ord in found:
        if (namespace, id) in same:
            ords[namespace].append(ord)
    removed = {}
    for namespace, some in ords.items():
        indexed = sum(r.memory.namespace == namespace and r.extraction is not None for r in rows)
        which = {"namespace": namespace, "ords": some}
        forwards = _forget_some(connection, which, segments=indexed >= FOLD_AT)
        total = {"namespace": namespace, "memories": -len(forwards), "length": -sum(n for _, n, _ in forwards)}
        connection.execute(_SQL["tally_add"], total)
        removed[namespace] = [raw for _, _, raw in forwards]
    return same, replaces.keys() - same, removed


def _insert(connection: Any, rows: Sequence[Row]) -> dict[tuple[str, str, int], int]:
    found = connection.execute(_SQL["memory_insert"], encoding.columns_of(rows)).fetchall() if rows else []
    return {(namespace, id, part): ord for namespace, id, part, ord in found}


def payloads(connection: Any, names: Collection[tuple[str, str]]) -> dict[tuple[str, str], bytes]:
    """Return the hash of what was given for each (namespace, id) that is stored."""
    parameters = {"namespaces": [n for n, _ in names], "ids": [i for _, i in names]}
    return {(n, i): bytes(p) for n, i, p in connection.execute(_SQL["memory_payloads"], parameters)}


def _compare(connection: Any, rows: Sequence[Row]) -> tuple[set[tuple[str, str]], set[tuple[str, str]]]:
    if not rows:
        return set(), set()
    names = [r.name for r in rows]
    stored = payloads(connection, names)
    if len(stored) < len(rows):  # forgotten after our insert had found it: nothing is wrong, so try again
        raise SerializationFailure("A memory was forgotten while it was remembered again.")
    same = {r.name for r in rows if stored[r.name] == r.payload}
    return same, set(names) - same


def _index(connection: Any, namespace: str, stored: Sequence[tuple[int, Row]]) -> None:
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
    total = {"namespace": namespace, "memories": len(stored), "length": sum(e.length for e in extractions)}
    filled_by = connection.execute(_SQL["tally_add"], total).fetchone()[0]
    claim_or_agree(connection, filled_by, next((row.embedder for _, row in stored if row.vector is not None), None))
    if len(stored) < FOLD_AT:
        pending = [
            (name, encoding.int8(ord), text_array(e.names)) for (ord, _), e in zip(stored, extractions, strict=True)
        ]
        copy_rows(connection, "pending", ("namespace", "ord", "names"), pending)
        return
    ords = np.array([ord for ord, _ in stored], dtype=np.int64)
    lengths = np.array([e.length for e in extractions], dtype=np.int64)
    names = [n for e in extractions for n in e.names]
    copy_segments(connection, namespace, packed_postings.invert(ords, lengths, sizes, entries, names))


def copy_segments(connection: Any, namespace: str, segments: Iterable[Segment]) -> None:
    """Write one row a key under a new segment number, and mark the keys that are no longer alone."""
    segments = list(segments)
    connection.execute(_SQL["segments_own"], {"namespace": namespace})
    keys = {"namespace": namespace, "keys": np.array([s.key for s in segments], dtype=np.int64)}
    connection.execute(_SQL["segments_meet"], keys)
    known = {key for (key,) in connection.execute(_SQL["segments_known"], keys, binary=True)}
    segment = connection.execute(_SQL["next_segment"]).fetchone()[0]
    connection.execute(_SQL["fresh_add"], {"namespace": namespace, "segment": segment})
    number = encoding.int8(segment)
    name = text(namespace)
    alone = POSTING.itemsize
    copy_rows(
        connection,
        "posting",
        _POSTING_COLUMNS,
        (
            (
                name,
                encoding.int8(s.key),
                number,
                encoding.int2(s.kind),
                encoding.int4(s.n),
                encoding.int4(s.subjects),
                encoding.int8(s.low),
                encoding.int8(s.high),
                text(s.name),
                s.entries,
                _TRUE if len(s.entries) == alone and s.key not in known else _FALSE,
            )
            for s in segments
        ),
    )


def note_aliases(connection: Any, namespace: str, keys: Collection[int]) -> int:
    """Note that older memories that mention ``keys`` are to be read again; return the number of the note."""
    parameters = {"namespace": namespace, "keys": np.fromiter(sorted(keys), np.int64, len(keys))}
    return int(connection.execute(_SQL["alias_note"], parameters).fetchone()[0])


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
    connection.execute(_SQL["tally_fold"], {"namespace": namespace})
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


def forget(connection: Any, namespace: str, id: str | None, filters: Filters, *, dry_run: bool) -> int:
    """Remove memories and all that was derived from them; return how many whole memories.

    Some thousands at a time, so that the client never holds the entries of them all; one transaction for all of them.
    """
    parameters = {"namespace": namespace, "id": id, **filter_parameters(filters)}
    many = False
    if dry_run or id is None:
        wholes, rows = connection.execute(_SQL["forget_count"], parameters).fetchone()
        if dry_run or not rows:
            return int(wholes)
        many = rows > FORGET_AT_ONCE
    # Whoever forgets at one go locks segments in the order of their keys; several goes cannot, so they are alone.
    connection.execute(_SQL["postings_own" if many else "postings_share"], {"namespace": namespace})
    selected = connection.execute(_SQL["forget_select"], parameters).fetchall()
    ords = [ord for _, ord in selected]
    about: list[NDArray[np.int64]] = []
    indexed = length = 0
    for start in range(0, len(ords), FORGET_AT_ONCE):
        forwards = _forget_some(connection, {"namespace": namespace, "ords": ords[start : start + FORGET_AT_ONCE]})
        entries = np.frombuffer(b"".join(raw for _, _, raw in forwards), dtype=FORWARD)
        about.append(np.unique(entries["key"][entries["subject"] > 0]))
        indexed += len(forwards)
        length += sum(n for _, n, _ in forwards)
    if not ords:
        return 0
    if gone := _subjects_gone(connection, namespace, np.unique(np.concatenate(about))):
        note_aliases(connection, namespace, gone)
    connection.execute(_SQL["alias_empty"], {"namespace": namespace})
    if indexed:
        connection.execute(_SQL["tally_add"], {"namespace": namespace, "memories": -indexed, "length": -length})
        connection.execute(_SQL["tally_fold"], {"namespace": namespace})  # of an empty namespace no name is left either
        connection.execute(_SQL["fresh_empty"], {"namespace": namespace})
    return sum(part == 0 for part, _ in selected)


def _forget_some(connection: Any, which: Mapping[str, Any], *, segments: bool = False) -> list[tuple[int, int, bytes]]:
    """Remove the memories of some ords; return (ord, length, entries) of those that were indexed.

    ``segments``: the same transaction writes a segment later, so its lock is taken in the order of a fold.
    """
    pending = {ord for (ord,) in connection.execute(_SQL["forget_pending"], which)}
    forwards: list[tuple[int, int, bytes]] = connection.execute(_SQL["forget_forward"], which, binary=True).fetchall()
    connection.execute(_SQL["forget_embedding"], which)
    connection.execute(_SQL["forget_shadow"], which)
    connection.execute(_SQL["forget_memory"], which)
    if segments:
        connection.execute(_SQL["segments_own"], which)
    folded = {ord: np.frombuffer(raw, dtype=FORWARD)["key"] for ord, _, raw in forwards if ord not in pending}
    clear_postings(connection, which["namespace"], folded)
    connection.execute(_SQL["relationship_forget"], which)
    return forwards


def _subjects_gone(connection: Any, namespace: str, about: NDArray[np.int64]) -> set[int]:
    """Return those of the keys that forgotten memories were ``about`` and no memory is any more."""
    if not len(about):
        return set()
    gone = set(about.tolist())
    for key, raw in connection.execute(_SQL["known_subjects"], {"namespace": namespace, "keys": about}, binary=True):
        if key is None:
            left = np.frombuffer(raw, dtype=FORWARD)
            gone.difference_update(left["key"][left["subject"] > 0].tolist())
        else:
            gone.discard(key)
    return gone


def clear_postings(connection: Any, namespace: str, keys_of: Mapping[int, Any]) -> None:
    """Take memories out of the segments of their keys; ``keys_of`` maps an ord to an array of keys."""
    if not keys_of:
        return
    gone: dict[int, list[int]] = defaultdict(list)
    for ord, keys in keys_of.items():
        for key in keys.tolist():
            gone[key].append(ord)
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


def _summary(entries: Any) -> tuple[bytes, int, int, int, int]:
    subjects, ords = int((entries["subject"] > 0).sum()), entries["ord"]  # joined rows need not be in order of ord
    return entries.tobytes(), int(packed_postings.mentions(entries).sum()), subjects, int(ords.min()), int(ords.max())


def compact(connection: Any, namespace: str, *, everything: bool = False) -> int:
    """Join posting rows of the keys that were written lately, or of every key; return how many rows were written.

    Size-tiered, as in log-structured stores: a row is joined with newer ones when it is at most twice as large as all
    of them together, so that an entry is rewritten a logarithmic number of times and a key stays within a few rows.
    """
    connection.execute(_SQL["postings_own"], {"namespace": namespace})
    connection.execute(_SQL["segments_own"], {"namespace": namespace})
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
    return int(written)
