"""Maintain a store on PostgreSQL: sweep what is due in bounded steps, flush pending memories, index vectors.

What a bulk leaves is flushed in a thread while its writer prepares the next batch. A flush holds the lock of its
namespace, so the next batch could not be written earlier anyway.

Each step is a transaction of its own, so it can be interrupted anywhere, and run beside writers and other upkeep.
"""

from __future__ import annotations

import os
import threading
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from contextvars import copy_context
from dataclasses import asdict
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from psycopg import Error, sql
from psycopg.errors import LockNotAvailable

from semmem.model.errors import SemmemError
from semmem.model.recipe import GraphSettings
from semmem.model.store import Keep
from semmem.model.types import Filters
from semmem.stores.postgres import forget, links, nearest, postings, saved
from semmem.stores.postgres.connection import by_namespace
from semmem.stores.postgres.typed import Connection, only
from semmem.stores.postgres.vacuum import session_setting, vacuum
from semmem.stores.sql_files import statements

if TYPE_CHECKING:
    from semmem.stores.postgres.store import PostgresStore

__all__ = [
    "SWEEPS",
    "Flushing",
    "Sweep",
    "end_bulk",
    "left_to_maintain",
    "maintain",
    "settle",
    "settle_steps",
    "sweep_expired",
]

_SQL = statements("postgres")

AT_ONCE = 5_000
"""The most rows that one step removes."""
_TABLES = ("memory", "posting", "lone_posting", "embedding", "forward", "likeness", "likeness_key", "packed_likeness")
_EMPTIED = ("pending", "history", "change", "link", "access")
"""More tables that ``maintain`` vacuums: other work empties them again."""
_MANY = 10_000
"""The number of packed posting rows from which on it is worth rewriting the table."""

_WRITERS_SHARE = 4
"""Rewrite a table that writers alone read where a fifth of its rows have been packed, and not only where half have."""

LONE_FULL = 32
"""Keys per row of lone_posting: about 1.4 kB, so that a page holds five rows and none is stored out of line."""
_FOLDING_THREADS = 4
"""Flushes at the same time at most, and half of the connections: the others are for recalls."""
_ROWS_AT_ONCE = 50_000
"""Rows and packed keys that one step of ``settle`` reads."""
_SAMPLED, _SAMPLE = 64, 1_000
"""Rows are counted in this part of the keys, where there are so many; a count is a thirtieth off, more or less."""
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
    _owned(connection, namespace)
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

    def begin(self, namespaces: Iterable[str], backlog: Mapping[str, tuple[int, int, int]]) -> None:
        """Flush and compact namespaces where that is due for a bulk, in a thread each where there is a place for one.

        ``backlog`` has the row of that statement where it is known.
        """
        for namespace in namespaces:
            work = partial(self._tidy, namespace, backlog.get(namespace), threading.get_ident())
            if not self._begun(work):
                work()

    def _tidy(self, namespace: str, backlog: tuple[int, int, int] | None, bulk: int) -> None:
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
            for (namespace,) in store.rows("bulk_ends", left):
                if waits:  # another one flushes the first of them; it holds the lock of the namespace
                    store.transaction(partial(_owned, namespace=namespace))
                while store.transaction(partial(postings.flush, namespace=namespace, limit=postings.FLUSHED_AT_ONCE)):
                    pass
                postings.flush_and_compact(store, namespace)
        for namespace in sorted(namespaces) if failed else ():
            while postings.flush_and_compact(store, namespace, bulk=True):
                pass
    except Exception as error:  # noqa: BLE001  # all is stored, and the report of the call must not be lost
        return left_to_maintain(error)
    return {}


def _owned(connection: Connection, namespace: str) -> None:
    connection.execute(_SQL["namespace_own"], {"namespace": namespace})


def maintain(store: PostgresStore, keep: Keep) -> dict[str, int]:
    """Finish drops, sweep, flush every pending memory and merge small segments; return the count of each."""
    flushed = merged = packed = alike = 0
    busy = {name for name, *_ in store.rows("moved_unfinished", {})}
    for namespace, upto in store.rows("drop_unfinished", {}):
        store.drop(namespace, upto)
    sweep_counts = {
        sweep.name: _swept(store, sweep, {**asdict(keep), "limit": AT_ONCE, "ids": None}, busy) for sweep in SWEEPS
    }
    for namespace in _others(store, "pending_namespaces", busy):
        while count := store.transaction(partial(postings.flush, namespace=namespace)):
            flushed += count
    for namespace, segment in store.rows("namespace_unsettled", {}):
        if namespace not in busy:
            written, removed = _settled(store, namespace, segment)
            merged += written
            packed += removed
    for namespace in _others(store, "likeness_unpacked", busy):
        alike += _packed(store, namespace)
    if embedded := store.is_embedded:
        _shrunk(store, "posting", packed)
        _shrunk(store, "likeness_key", _WRITERS_SHARE * alike)
        store.run(lambda c: vacuum(c, (*_TABLES, *_EMPTIED), "ANALYZE"))
    else:
        store.run(lambda c: c.execute(f"ANALYZE {', '.join(_TABLES)}"))
    indexed = _indexed(store, store.vectors.embedder(), embedded)
    counts = {"folded": flushed, "joined": merged, "indexed": indexed or 0, **({"busy": 1} if indexed is None else {})}
    if embedded:
        store.run(lambda c: c.execute("CHECKPOINT"))  # moves what the log holds into the tables
    return {**{name: count for name, count in sweep_counts.items() if count}, **counts, **_report(store)}


def settle_steps(connection: Connection, namespace: str) -> tuple[int, bool]:
    """Return the number of steps in which to run ``settle`` now, and whether it is to pack: enough keys have come."""
    part = (postings.LAST_KEY - postings.FIRST_KEY) // _SAMPLED  # keys are hashes, so a part says how many there are
    upto = postings.FIRST_KEY + part
    shared, apart, packed = (_SAMPLED * count for count in _sizes(connection, namespace, upto))
    if shared + apart + packed < _SAMPLED * _SAMPLE:
        shared, apart, packed = _sizes(connection, namespace, postings.LAST_KEY)
    packs = apart > 0 and apart * _LONE_SHARE >= packed
    rows = shared + (apart + packed if packs else 0)
    return (rows // _ROWS_AT_ONCE + 1 if rows else 0), packs


def _sizes(connection: Connection, namespace: str, upto: int) -> tuple[int, int, int]:
    parameters = {"namespace": namespace, "since": postings.FIRST_KEY, "upto": upto}
    shared, apart, packed = only(connection.execute(_SQL["posting_sizes"], parameters))
    return shared, apart, packed


def settle(connection: Connection, namespace: str, since: int, steps: int, *, packs: bool) -> tuple[int, int, int]:
    """Pack the keys of a range that only one memory has, where ``packs``, and join the rows of each other key.

    The range begins at ``since``. Both at once, for they lie in the same pages. Returns the key to continue from, how
    many posting rows were written by merging, and how many were removed by packing; see lone_posting.
    """
    connection.execute(_SQL["namespace_own"], {"namespace": namespace})
    width, removed = (postings.LAST_KEY - postings.FIRST_KEY) // steps, 0  # equal ranges hold as many keys
    upto = min(postings.LAST_KEY, since + width)
    if packs:
        parameters = {"namespace": namespace, "since": since, "upto": upto, "size": LONE_FULL}
        upto, removed = only(connection.execute(_SQL["singleton_pack"], parameters))
    parameters = {"namespace": namespace, "since": since, "upto": upto, "full": postings.SEGMENT_FULL}
    written = int(connection.execute(_SQL["compact_range"], parameters).rowcount)
    if written:
        connection.execute(_SQL["namespace_revise"], {"namespace": namespace, "length": 0})
    return upto + 1, written, removed


def _settled(store: PostgresStore, namespace: str, segment: int) -> tuple[int, int]:
    """Join and pack posting rows, a range of keys at a time; return how many were written, and how many removed.

    What has come up to ``segment`` is settled then.
    """
    steps, packs = store.run(partial(settle_steps, namespace=namespace))
    segments = store.run(partial(postings.fresh_segments, namespace=namespace))

    def step(connection: Connection, since: int) -> tuple[int, int, int]:
        beyond = postings.LAST_KEY + 1, 0, 0
        done = settle(connection, namespace, since, steps, packs=packs) if steps else beyond
        if done[0] > postings.LAST_KEY:
            if segments:  # those that writers have added meanwhile stay fresh
                postings.mark_merged(connection, namespace, segments)
            connection.execute(_SQL["namespace_settle"], {"namespace": namespace, "upto": segment})
        return done

    merged = packed = 0
    since = postings.FIRST_KEY
    while since <= postings.LAST_KEY:
        since, written, removed = store.transaction(partial(step, since=since))
        merged += written
        packed += removed
    return merged, packed


def _packed(store: PostgresStore, namespace: str) -> int:
    """Pack the keys of likeness, a range at a time; return how many rows were removed by it."""
    steps = store.run(partial(links.pack_steps, namespace=namespace))
    since, packed = links.FIRST_KEY if steps else links.LAST_KEY + 1, 0
    while since <= links.LAST_KEY:
        since, row_count = store.transaction(partial(links.pack, namespace=namespace, since=since, steps=steps))
        packed += row_count
    return packed


def _shrunk(store: PostgresStore, table: str, packed: int) -> None:
    """Rewrite a table where most of its rows have just been packed, so that its files shrink.

    The table cannot be read meanwhile, but little is left of it. It stays as it is while others keep using it.
    """
    if packed < _MANY or packed < store.rows(f"{table}_rows", {})[0][0]:
        return
    with (
        store.lasting() as connection,
        suppress(LockNotAvailable),
        session_setting(connection, "lock_timeout", forget.PATIENCE),
    ):
        connection.execute(f"VACUUM (FULL) {table}")


def _report(store: PostgresStore) -> dict[str, int]:
    """Return the counts that a person should look at, without zeros: see Semmem.maintain."""
    queries: tuple[tuple[str, dict[str, int]], ...] = (("orphans", {}), ("hubs", {"cap": HUB}), ("contradictions", {}))
    counts = {name: int(store.rows(f"upkeep_{name}", parameters)[0][0]) for name, parameters in queries}
    return {name: count for name, count in counts.items() if count}


def _indexed(store: PostgresStore, identity: Mapping[str, Any] | None, shrink: bool) -> int | None:
    """Insert vectors into the index; start again where a rebuild has replaced the embedder meanwhile.

    Returns how many, None where another process does so at this moment.
    """
    if identity is None:
        return 0
    try:
        return store.run(lambda c: nearest.index(c, identity["dimensions"], shrink=shrink))
    except (Error, SemmemError):
        now = store.vectors.embedder()
        if now is None or dict(now) == dict(identity):
            raise
        return store.run(lambda c: nearest.index(c, now["dimensions"], shrink=shrink))


def _others(
    store: PostgresStore, statement: str, busy: Collection[str], parameters: Mapping[str, Any] = MappingProxyType({})
) -> list[str]:
    """Return the namespaces that a statement lists, without those that are being moved."""
    return [name for (name,) in store.rows(statement, parameters) if name not in busy]


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
