"""Maintain a store on PostgreSQL: sweep what is due in bounded steps, flush pending memories, index vectors.

What a bulk leaves is flushed in a thread while its writer prepares the next batch. A flush holds the lock of its
namespace, so the next batch could not be written earlier anyway.

Each step is a transaction of its own, so it can be interrupted anywhere, and run beside writers and other upkeep.
"""

from __future__ import annotations

import os
import threading
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import closing
from contextvars import copy_context
from dataclasses import asdict
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from psycopg import Error, sql
from psycopg.types.json import Jsonb

from semmem.model.errors import SemmemError
from semmem.model.recipe import GraphSettings
from semmem.model.store import Keep
from semmem.model.types import Filters
from semmem.stores.postgres import forget, links, postings, saved, vector_index
from semmem.stores.postgres.connection import by_namespace, sent
from semmem.stores.postgres.typed import Connection, only
from semmem.stores.postgres.vacuum import REWRITING, rewrite, vacuum
from semmem.stores.sql_files import statements

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from semmem.stores.postgres.store import PostgresStore

__all__ = [
    "SWEEPS",
    "Flushing",
    "Sweep",
    "Unsettled",
    "end_bulk",
    "left_to_maintain",
    "maintain",
    "settle",
    "sweep_expired",
    "together",
    "unsettled",
]

_SQL = statements("postgres")

AT_ONCE = 5_000
"""The most rows that one step removes."""
_TABLES = ("memory", "posting", "lone_posting", "embedding", "forward", "likeness", "likeness_key", "packed_likeness")
_EMPTIED = ("pending", "history", "change", "link", "access")
"""More tables that ``maintain`` vacuums: other work empties them again."""
_MANY = 10_000
"""The number of packed posting rows from which on it is worth rewriting the table."""

_UNSHRUNK = "unshrunk"
"""The note of the tables that are still to be rewritten."""

_WRITERS_SHARE = 4
"""Rewrite a table that writers alone read where a fifth of its rows have been packed, and not only where half have."""

MOST_TOGETHER, FEW_TOGETHER = 128, 256
"""The most namespaces that one transaction of the upkeep serves, and the most memories of these."""

LONE_FULL = 32
"""Keys per row of lone_posting: about 1.4 kB, so that a page holds five rows and none is stored out of line."""
_FOLDING_THREADS = 4
"""Flushes at the same time at most, and half of the connections: the others are for recalls."""
_ROWS_AT_ONCE = 10_000
"""Rows and packed keys that one step of ``settle`` writes anew."""
_SAMPLED, _SAMPLE = 64, 1_000
"""Rows are counted in this part of the keys, where there are so many; a count is a thirtieth off, more or less."""
_COUNTED = 10
"""Count a table anew for the planner where one in this many of its rows has changed, as autovacuum does."""
_LONE_SHARE = 8
"""Pack the singleton keys when those with rows of their own are at least one in this many of the packed ones."""

HUB = GraphSettings().max_df
"""The number of mentions up to which a concept carries weight in the graph leg, by the default recipe."""


class Sweep(NamedTuple):
    """A kind of rows that maintain removes when they are due; ``name`` is the key of its count.

    ``due`` is the statement that lists the namespaces where something is due. ``step`` removes some of it from one
    namespace, in a transaction of its own, and is repeated until nothing is left. It is a statement that deletes at
    most ``limit`` rows, or a function of (connection, namespace, parameters) that returns how many rows it removed. The
    parameters of all statements are the fields of Keep, ``limit``, ``ids`` (None for all), and for a step
    ``namespace``.
    """

    name: str
    due: str
    step: str | Callable[[Any, str, Mapping[str, Any]], int]


def _changes(connection: Connection, namespace: str, parameters: Mapping[str, Any]) -> int:
    """Remove some of the oldest changes and record up to which; readers that missed them need a new export."""
    where = {**parameters, "namespace": namespace}
    numbers = [number for (number,) in connection.execute(_SQL["sweep_change"], where)]
    if numbers:
        mark = {"namespace": namespace, "number": max(numbers)}
        connection.execute(_SQL["sweep_change_unmark"], mark)
        connection.execute(_SQL["sweep_change_mark"], mark)
    return len(numbers)


def _audit(connection: Connection, namespace: str, parameters: Mapping[str, Any]) -> int:
    """Remove some of the oldest rows of the audit, which refuses every other deletion."""
    (before,) = only(connection.execute(_SQL["sweep_audit_before"], parameters))
    connection.execute(sql.SQL(_SQL["sweep_audit_may"]).format(before=sql.Literal(before.isoformat())))
    where = {**parameters, "namespace": namespace, "before": before}
    return int(connection.execute(_SQL["sweep_audit"], where).rowcount)


def _expired(connection: Connection, namespace: str, parameters: Mapping[str, Any]) -> int:
    """Remove some expired memories and their versions; an earlier memory under the same id stays in the history."""
    where = {**parameters, "namespace": namespace}
    ids = {id for (id,) in connection.execute(_SQL["sweep_expired"], where).fetchall()}
    return forget.forget(connection, namespace, ids, Filters(), dry_run=False, earlier=False) if ids else 0


def sweep_expired(store: PostgresStore, names: Collection[tuple[str, str]]) -> int:
    """Remove the expired ones among some (namespace, id); return how many."""
    total = 0
    for namespace, ids in by_namespace(names).items():
        parameters = {"ids": ids, "limit": None}
        total += store.transaction(partial(_expired, namespace=namespace, parameters=parameters))
    return total


def _forgotten(connection: Connection, namespace: str, parameters: Mapping[str, Any]) -> int:
    """Remove some softly forgotten memories for good, with everything kept of them."""
    where = {**parameters, "namespace": namespace}
    ids = [id for (id,) in connection.execute(_SQL["sweep_forgotten"], where).fetchall()]
    which = {"namespace": namespace, "ids": sorted(set(ids))}
    if ids:
        _erased(connection, namespace)
    forget.purge(connection, namespace, [id for (id,) in connection.execute(_SQL["sweep_forgotten_left"], which)])
    return len(ids)


def _versions(connection: Connection, namespace: str, parameters: Mapping[str, Any]) -> int:
    """Remove some of the oldest surplus versions."""
    count = connection.execute(_SQL["sweep_versions"], {**parameters, "namespace": namespace}).rowcount
    if count:
        _erased(connection, namespace)
    return count


def _erased(connection: Connection, namespace: str) -> None:
    """Remove the saved model of a namespace, which may hold the titles of versions that are gone."""
    _owned(connection, (namespace,))
    saved.erase(connection, namespace)


def _emptied(connection: Connection, namespace: str, parameters: Mapping[str, Any]) -> int:
    """Remove what is left of a namespace that has long been empty."""
    forget.prune(connection, namespace, parameters)
    return 0


def _past_keep_days(connection: Connection, namespace: str, parameters: Mapping[str, Any]) -> int:
    """Forget some memories whose time in their namespace is over (keep_days), with their versions."""
    where = {**parameters, "namespace": namespace}
    ids = {id for (id,) in connection.execute(_SQL["sweep_kept"], where).fetchall()}
    return forget.forget(connection, namespace, ids, Filters(), dry_run=False, earlier=False) if ids else 0


SWEEPS: tuple[Sweep, ...] = (
    Sweep("expired", "sweep_expired_due", _expired),
    Sweep("kept", "sweep_kept_due", _past_keep_days),
    Sweep("forgotten", "sweep_forgotten_due", _forgotten),
    Sweep("versions", "sweep_versions_due", _versions),
    Sweep("changes", "sweep_change_due", _changes),
    Sweep("recalls", "sweep_log_due", "sweep_log"),
    Sweep("answers", "sweep_answered_due", "sweep_answered"),
    Sweep("audit", "sweep_audit_due", _audit),
    Sweep("emptied", "namespace_forgotten", _emptied),
)
"""What maintain removes, in this order. A new kind of row with a limited life is one more entry."""


class Flushing:
    """The flushes of one store that go on beside its bulks, on connections of their own; safe for several threads.

    What fails is done by the end of the bulk, which says where it fails again. Nobody waits for a flush but the bulk
    that began it, which is known by its thread.
    """

    def __init__(self, store: PostgresStore, *, connections: int) -> None:
        self._store = store
        self._process = os.getpid()
        self._places = threading.BoundedSemaphore(min(_FOLDING_THREADS, connections // 2))
        self._lock = threading.Lock()
        self._running: dict[int, list[threading.Thread]] = defaultdict(list)
        self._failed: set[int] = set()

    def begin(self, namespaces: Sequence[str], known: Mapping[str, postings.NamespaceBacklog]) -> None:
        """Flush and compact namespaces where that is due for a bulk, in a thread each where there is a place for one.

        ``known`` are the backlogs that are.
        """
        due: Mapping[str, postings.NamespaceBacklog] = {}
        try:
            due = postings.backlogs_due(self._store, namespaces, known, bulk=True)
        except Exception:  # noqa: BLE001  # all is stored and found; no call must end for this
            self._failed.add(threading.get_ident())
        for namespace, backlog in due.items():
            work = partial(self._flush, namespace, backlog, threading.get_ident())
            if not self._begun(work):
                work()

    def _flush(self, namespace: str, backlog: postings.NamespaceBacklog | None, bulk: int) -> None:
        try:
            while postings.flush_and_compact(self._store, namespace, backlog, bulk=True):
                backlog = None  # a batch may bring several times as many keys as one flush takes
        except Exception:  # noqa: BLE001  # all is stored and found; no call must end for this
            self._failed.add(bulk)

    def _begun(self, work: Callable[[], None]) -> bool:
        """Start a thread for ``work``; return whether there is a place for one, and one can be started."""
        if self._process != os.getpid() or not self._places.acquire(blocking=False):
            return False

        def run() -> None:
            try:
                work()
            finally:
                self._places.release()

        thread = threading.Thread(target=copy_context().run, args=(run,), name="semmem-flush", daemon=True)
        try:
            thread.start()
        except RuntimeError:  # the process ends
            self._places.release()
            return False
        with self._lock:
            self._running[threading.get_ident()].append(thread)
        return True

    def finish(self) -> None:
        """Wait for the flushes that this thread has begun."""
        if self._process == os.getpid():
            with self._lock:
                running = self._running.pop(threading.get_ident(), ())
            for thread in running:
                thread.join()

    def end(self) -> bool:
        """Wait for the flushes of the bulk that this thread ends; return whether one has failed."""
        self.finish()
        failed = threading.get_ident() in self._failed
        self._failed.discard(threading.get_ident())
        return failed


def left_to_maintain(error: Exception) -> dict[str, str]:
    """Return the sentence for a flush that failed, by "maintain": the memories are stored and found all the same."""
    return {"maintain": f"Flushing is left to `semmem maintain`: {error}"}


def end_bulk(store: PostgresStore, namespaces: Collection[str], *, failed: bool) -> dict[str, str]:
    """Flush what the batches of a bulk have left pending; return why it is left to maintain, by "maintain".

    Where a flush beside it has ``failed``, also what is due of fewer memories, and of fresh segments.
    """
    left = {"namespaces": sorted(namespaces), "least": postings.FLUSH_AT}
    try:
        for waits in (False, True):
            for some in together(store.rows("bulk_ends", left)):
                if waits:  # another one flushes the first of them; it holds the lock of the namespace
                    store.transaction(partial(_owned, namespaces=some))
                while store.transaction(partial(postings.flush, namespaces=some, limit=postings.FLUSHED_AT_ONCE)):
                    pass
                for namespace, due in postings.backlogs_due(store, some, {}, bulk=False).items():
                    postings.flush_and_compact(store, namespace, due)
        for namespace in sorted(namespaces) if failed else ():
            while postings.flush_and_compact(store, namespace, bulk=True):
                pass
    except Exception as error:  # noqa: BLE001  # all is stored, and the report of the call must not be lost
        return left_to_maintain(error)
    return {}


def _owned(connection: Connection, namespaces: Sequence[str]) -> None:
    sent(connection, "namespace_own", ((namespace, {}) for namespace in namespaces))


def together(sizes: Iterable[tuple[str, int]]) -> list[list[str]]:
    """Return namespaces, given with their numbers of memories, in groups, each of which one transaction serves.

    In order, in which they are locked. A group has at most ``MOST_TOGETHER`` namespaces and ``FEW_TOGETHER`` memories,
    and a larger namespace stands alone, so that no writer waits long for one.
    """
    groups: list[list[str]] = []
    left = 0
    for namespace, size in sorted(sizes):
        if not groups or size > left or len(groups[-1]) == MOST_TOGETHER:
            groups.append([])
            left = FEW_TOGETHER
        groups[-1].append(namespace)
        left -= size
    return groups


def maintain(store: PostgresStore, keep: Keep) -> dict[str, int]:
    """Finish drops, sweep, flush every pending memory and merge small segments; return the count of each."""
    flushed = merged = packed = alike = 0
    busy = {name for name, *_ in store.rows("moved_unfinished", {})}
    for namespace, upto in store.rows("drop_unfinished", {}):
        store.drop(namespace, upto)
    sweep_counts = {
        sweep.name: _swept(store, sweep, {**asdict(keep), "limit": AT_ONCE, "ids": None}, busy) for sweep in SWEEPS
    }
    for some in _small_together(store, "pending_namespaces", busy):
        while count := store.transaction(partial(postings.flush, namespaces=some)):
            flushed += count
    rows = store.rows("namespace_unsettled", {})
    segments = {name: (settled, last) for name, _, settled, last in rows if name not in busy}
    for some in together((name, size) for name, size, *_ in rows if name in segments):
        written, removed = _settled(store, {name: segments[name] for name in some})
        merged += written
        packed += removed
    for some in _small_together(store, "likeness_unpacked", busy):
        alike += _packed(store, some)
    if embedded := store.is_embedded:
        _shrunk(store, {"posting": packed, "likeness_key": _WRITERS_SHARE * alike})
        store.run(_vacuumed)
    else:
        store.run(lambda c: c.execute(f"ANALYZE {', '.join(_TABLES)}"))
    indexed = _indexed(store, store.vectors.embedder())
    counts = {"folded": flushed, "joined": merged, "indexed": indexed or 0, **({"busy": 1} if indexed is None else {})}
    if embedded:
        store.run(lambda c: c.execute("CHECKPOINT"))  # moves what the log holds into the tables
    return {**{name: count for name, count in sweep_counts.items() if count}, **counts, **_report(store)}


class Unsettled(NamedTuple):
    """The work of ``settle`` in a namespace: it merges the rows of ``keys``, ascending, and ``packs`` or not.

    That takes so many ``steps``, none where there is nothing to merge or pack.
    """

    keys: NDArray[np.int64]
    packs: bool
    steps: int


def unsettled(connection: Connection, settled: Mapping[str, int]) -> dict[str, Unsettled]:
    """Return what there is to merge and to pack in each namespace.

    Those keys are merged that have got a row since the segment that ``settled`` has of their namespace: the rows of all
    others have been merged before. They are read before anybody waits. What comes later has a later segment, so it is
    left to the next ``maintain``.
    """
    connection.execute(_SQL["by_index"])
    which = ((n, {"after": segment, "full": postings.SEGMENT_FULL}) for n, segment in settled.items())
    several = {n: only(cursor) for n, cursor in sent(connection, "keys_of_several_rows", which, binary=True).items()}
    sizes = _singletons(connection, list(settled))
    return {n: _unsettled(keys, rows, *sizes[n]) for n, (keys, rows) in several.items()}


def _unsettled(packed: bytes | None, rows: int, apart: int, in_rows: int) -> Unsettled:
    packs = apart > 0 and apart * _LONE_SHARE >= in_rows
    rows += apart + in_rows if packs else 0
    return Unsettled(np.frombuffer(packed or b"", dtype=">i8").astype(np.int64), packs, -(-rows // _ROWS_AT_ONCE))


def _singletons(connection: Connection, namespaces: Sequence[str]) -> dict[str, tuple[int, int]]:
    """Return how many keys of single memories have rows of their own, and how many are packed, of each namespace."""
    part = postings.FIRST_KEY + (postings.LAST_KEY - postings.FIRST_KEY) // _SAMPLED  # keys are hashes
    sizes = {
        n: (_SAMPLED * apart, _SAMPLED * packed) for n, (apart, packed) in _sizes(connection, namespaces, part).items()
    }
    few = [n for n, counts in sizes.items() if sum(counts) < _SAMPLED * _SAMPLE]
    return sizes | _sizes(connection, few, postings.LAST_KEY)


def _sizes(connection: Connection, namespaces: Sequence[str], upto: int) -> dict[str, tuple[int, int]]:
    cursors = sent(connection, "singleton_sizes", ((namespace, {"upto": upto}) for namespace in namespaces))
    rows = ((namespace, only(cursor)) for namespace, cursor in cursors.items())
    return {namespace: (apart, packed) for namespace, (apart, packed) in rows}


def settle(
    connection: Connection, since: Mapping[str, int], steps: int, due: Mapping[str, Unsettled]
) -> tuple[dict[str, int], dict[str, int], int]:
    """Pack the keys of a range that only one memory has, and merge the rows of others, as they are ``due``.

    The range of each namespace begins at the key that ``since`` has for it. Both at once, for they lie in the same
    pages. A namespace in whose range nothing is due is not locked before its last range; the others are, in the order
    of ``since``. Returns the key to continue from of each namespace, how many rows were written by merging in each
    namespace with any, which the caller marks as merged, and how many were removed by packing; see lone_posting.
    """
    connection.execute(_SQL["by_index"])
    width, removed = (postings.LAST_KEY - postings.FIRST_KEY) // steps, 0  # equal ranges hold as many keys
    ranges = {n: {"since": key, "upto": min(postings.LAST_KEY, key + width)} for n, key in since.items()}
    ends = {n for n, keys in ranges.items() if keys["upto"] == postings.LAST_KEY}  # the caller marks these as settled
    works = {n for n, keys in ranges.items() if due[n].packs or len(_between(due[n].keys, **keys))}
    sent(connection, "namespace_own", ((n, {}) for n in since if n in works or n in ends))
    packing = ((n, {**keys, "size": LONE_FULL}) for n, keys in ranges.items() if due[n].packs)
    for namespace, cursor in sent(connection, "singleton_pack", packing).items():
        ranges[namespace]["upto"], count = only(cursor)
        removed += count
    several = {n: some for n, keys in ranges.items() if len(some := _between(due[n].keys, **keys))}
    full = {"full": postings.SEGMENT_FULL}
    compacted = sent(connection, "compact_keys", ((n, {"keys": keys, **full}) for n, keys in several.items()))
    written = {n: cursor.rowcount for n, cursor in compacted.items() if cursor.rowcount}
    return {n: keys["upto"] + 1 for n, keys in ranges.items()}, written, removed


def _between(keys: NDArray[np.int64], since: int, upto: int) -> NDArray[np.int64]:
    """Return those of ascending keys that lie in a range, whose ends belong to it."""
    return keys[np.searchsorted(keys, since) : np.searchsorted(keys, upto, side="right")]


def _settled(store: PostgresStore, segments: Mapping[str, tuple[int, int]]) -> tuple[int, int]:
    """Merge and pack the posting rows of some namespaces, which are in order, a range of keys at a time.

    ``segments`` has the last segment of each that is settled, and the last one, up to which it is settled then. Returns
    how many rows were written, and how many removed.
    """
    due = store.transaction(partial(unsettled, settled={n: settled for n, (settled, _) in segments.items()}))
    fresh = store.run(partial(postings.fresh_segments, namespaces=list(segments)))
    steps = max(each.steps for each in due.values())
    last = {n: segment for n, (_, segment) in segments.items()}
    beyond = postings.LAST_KEY + 1

    def step(connection: Connection, since: Mapping[str, int]) -> tuple[dict[str, int], int, int, dict[str, int]]:
        after, written, removed = (
            settle(connection, since, steps, due) if steps else (dict.fromkeys(since, beyond), {}, 0)
        )
        ended = {namespace for namespace, key in after.items() if key >= beyond}
        # those that writers have added meanwhile stay fresh
        compacted = {n: fresh[n] if n in ended else [] for n in since if n in written or (n in ended and fresh[n])}
        numbers = postings.mark_merged(connection, compacted)
        upto = {n: numbers[n] if numbers.get(n) == last[n] + 1 else last[n] for n in since}  # else a segment is between
        sent(connection, "namespace_settle", ((n, {"upto": upto[n]}) for n in since if n in ended))
        return after, sum(written.values()), removed, upto

    merged = packed = 0
    since = dict.fromkeys(segments, postings.FIRST_KEY)
    while since:
        after, written, removed, upto = store.transaction(partial(step, since=since))
        since = {namespace: key for namespace, key in after.items() if key < beyond}
        last |= upto
        merged += written
        packed += removed
    return merged, packed


def _packed(store: PostgresStore, namespaces: Sequence[str]) -> int:
    """Pack the keys of likeness of some namespaces, a range at a time; return how many rows were removed by it."""
    steps = store.run(partial(links.pack_steps, namespaces=namespaces))
    packed = 0
    for count in sorted(set(steps.values())):
        since, some = links.FIRST_KEY, [namespace for namespace in namespaces if steps.get(namespace) == count]
        while since <= links.LAST_KEY:
            since, row_count = store.transaction(partial(links.pack, namespaces=some, since=since, steps=count))
            packed += row_count
    return packed


def _shrunk(store: PostgresStore, packed: Mapping[str, int]) -> None:
    """Rewrite the tables most of whose rows have just been packed, so that their files shrink.

    A table cannot be read meanwhile. So the rewriting gives way to whoever waits for the table, and is left to the next
    call.
    """
    noted = store.rows("meta_get", {"key": _UNSHRUNK})
    left = {table for table in packed if noted and table in noted[0][0]}
    left |= {table for table, rows in packed.items() if rows >= _MANY and rows >= _rows_of(store, table)}
    if not left:
        return
    _note_unshrunk(store, left)
    for table in sorted(left):  # the pool may have no second connection for opening one of its own beside the watcher
        with closing(store.own_connection(REWRITING)) as connection, store.lasting() as watcher:
            if rewrite(connection, watcher, table):
                left.remove(table)
    _note_unshrunk(store, left)


def _rows_of(store: PostgresStore, table: str) -> int:
    """Return about how many rows a table has: a sample of its pages tells, where counting would read all of them."""
    store.run(lambda c: c.execute(f"ANALYZE {table}"))
    return int(store.rows("table_rows", {"table": table})[0][0])


def _note_unshrunk(store: PostgresStore, tables: Collection[str]) -> None:
    note = {"key": _UNSHRUNK, "value": Jsonb(sorted(tables))}
    store.run(lambda c: c.execute(_SQL["meta_set" if tables else "meta_drop"], note))


def _vacuumed(connection: Connection) -> None:
    """Vacuum the tables, and count those anew for the planner in which much has changed, which is most of the work."""
    tables = [*_TABLES, *_EMPTIED]
    vacuum(connection, tables)
    much = [
        table for (table,) in connection.execute(_SQL["statistics_outdated"], {"tables": tables, "share": _COUNTED})
    ]
    if much:
        vacuum(connection, much, "ANALYZE")


def _report(store: PostgresStore) -> dict[str, int]:
    """Return the counts that a person should look at, without zeros: see Semmem.maintain."""
    queries: tuple[tuple[str, dict[str, int]], ...] = (("orphans", {}), ("hubs", {"cap": HUB}), ("contradictions", {}))
    counts = {name: int(store.rows(f"upkeep_{name}", parameters)[0][0]) for name, parameters in queries}
    return {name: count for name, count in counts.items() if count}


def _indexed(store: PostgresStore, identity: Mapping[str, Any] | None) -> int | None:
    """Insert vectors into the index; start again where a rebuild has replaced the embedder meanwhile.

    Returns how many, None where another process does so at this moment.
    """
    if identity is None:
        return 0
    try:
        return store.run(lambda c: vector_index.index(c, identity["dimensions"]))
    except (Error, SemmemError):
        now = store.vectors.embedder()
        if now is None or dict(now) == dict(identity):
            raise
        return store.run(lambda c: vector_index.index(c, now["dimensions"]))


def _others(
    store: PostgresStore, statement: str, busy: Collection[str], parameters: Mapping[str, Any] = MappingProxyType({})
) -> list[str]:
    """Return the namespaces that a statement lists, without those that are being moved."""
    return [name for (name,) in store.rows(statement, parameters) if name not in busy]


def _small_together(store: PostgresStore, statement: str, busy: Collection[str]) -> list[list[str]]:
    """Return the namespaces that a statement lists with their sizes, in groups, without those that are being moved."""
    return together((name, size) for name, size in store.rows(statement, {}) if name not in busy)


def _swept(store: PostgresStore, sweep: Sweep, parameters: Mapping[str, Any], busy: Collection[str]) -> int:
    """Remove the due rows of one kind, in every namespace that is not ``busy``; return how many."""

    def step(connection: Connection, namespace: str) -> int:
        if callable(sweep.step):
            return sweep.step(connection, namespace, parameters)
        return int(connection.execute(_SQL[sweep.step], {**parameters, "namespace": namespace}).rowcount)

    total = 0
    for namespace in _others(store, sweep.due, busy, parameters):
        while count := store.transaction(partial(step, namespace=namespace)):
            total += count
    return total
