"""Forget memories in PostgreSQL: some of them, or a whole namespace in bounded steps.

Functions take an open connection inside a transaction; ``scrub`` takes one outside any. All writers lock rows in the
same order: memories by id, then the row of the namespace, then postings.
"""

from __future__ import annotations

import time
from collections import defaultdict, deque
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, suppress
from datetime import datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray
from psycopg import sql
from psycopg.errors import (
    DeadlockDetected,
    InsufficientPrivilege,
    LockNotAvailable,
    OperationalError,
    SerializationFailure,
    UndefinedTable,
)
from psycopg.types.json import Jsonb

from semmem.model.errors import StoreUnavailable
from semmem.model.types import Filters
from semmem.stores.packed_postings import FORWARD, POSTING, mentions
from semmem.stores.postgres import life
from semmem.stores.postgres.connection import pipelined
from semmem.stores.postgres.corrections import corrected, drop_unmentioned, earlier_entries
from semmem.stores.postgres.encoding import filter_parameters
from semmem.stores.postgres.locking import for_these, locked_rows
from semmem.stores.postgres.postings import count_change, send_change
from semmem.stores.postgres.saved import erase
from semmem.stores.postgres.typed import Connection, only
from semmem.stores.postgres.vacuum import cancel, patient, vacuum
from semmem.stores.postgres.vector_index import INDEXED
from semmem.stores.sql_files import statements

__all__ = [
    "DROP_STEPS",
    "FORGET_AT_ONCE",
    "begin_drop",
    "clear_postings",
    "delete_rows",
    "forget",
    "prune",
    "purge",
    "scrub",
]

FORGET_AT_ONCE = 5_000
"""The number of memories whose entries the client holds at a time while it removes them from the postings."""
_KEYS = ("likeness_forget", "comparison_forget")
_OTHERS = ("history", "link", "likeness", "uncompared", "access", "change")
_PURGES = (
    "comparison_around", "purge_history", "purge_earlier", "purge_link", "purge_recall_log", "purge_change",
    "access_purge",
)  # fmt: skip
_SQL = statements("postgres")

_SNAPSHOT_PATIENCE_S = 30.0
_TURNS, _PAUSE = 20, 0.2
_CLEARS_STATISTICS = 180_000
"""The first version of the server that has a function for it."""


def forget(
    connection: Connection,
    namespace: str,
    id: str | Collection[str] | None,
    filters: Filters,
    *,
    dry_run: bool,
    soft: bool = False,
    by: str | None = None,
    earlier: bool = True,
) -> int:
    """Remove memories and all data derived from them; return how many whole memories. ``id`` may be a collection.

    Some thousands at a time, so that the client never holds the entries of them all; one transaction for all of them.
    ``soft`` keeps them in the history, as forgotten ``by`` somebody. Otherwise everything kept of them is removed too,
    and with ``earlier`` also the matching memories that were softly forgotten before.
    """
    which = [id] if isinstance(id, str) else None if id is None else sorted(id)
    parameters = {"namespace": namespace, "ids": which, **filter_parameters(filters)}
    if dry_run:
        statement = "forget_count" if soft else "purge_count"
        return int(only(for_these(connection, statement, parameters))[0])
    # before the locks too: a memory that is brought back in between is missed by both
    lives = _lives(connection, parameters) if earlier and not soft else set()
    rows = locked_rows(connection, "forget_select", parameters)
    row_ids = [row_id for _, _, row_id in rows]
    ids = {id for id, part, _ in rows if part == 0}
    if earlier and not soft:
        lives |= _lives(connection, parameters)
    all_ids = ids | {id for id, _ in lives}
    if not row_ids:
        purge(connection, namespace, (), lives)
        return len(all_ids)
    where = {"namespace": namespace}
    indexed = length = 0
    for start in range(0, len(row_ids), FORGET_AT_ONCE):
        some = rows[start : start + FORGET_AT_ONCE]
        kept = {id for id, part, _ in some if part == 0}
        history = life.history_parameters(kept, by) if soft else None
        some_ids = [row_id for _, _, row_id in some]
        lock = "namespace_own" if soft else "namespace_alone"
        forwards, flushed = delete_rows(connection, {**where, "ords": some_ids}, history, last=(lock, *_KEYS))
        if flushed:
            clear_postings(connection, namespace, flushed)
        if not soft:
            drop_unmentioned(connection, namespace, corrected(connection, namespace, (raw for *_, raw in forwards)))
        indexed += len(forwards)
        length += sum(n for _, n, _ in forwards)
    if not soft:
        purge(connection, namespace, ids, lives)
    fates = dict.fromkeys(ids, "forgotten")
    with pipelined(connection):
        for statement in ("namespace_own", "comparison_around") if soft else ():
            connection.execute(_SQL[statement], {"namespace": namespace, "ids": sorted(ids)})
        number = send_change(connection, namespace, {"memories": -indexed, "length": -length}, fates)
    _, memory_count = number.fetchone() or (0, 0)
    if not memory_count:
        _clear_empty(connection, namespace)
    return len(all_ids)


def _lives(connection: Connection, parameters: Mapping[str, Any]) -> set[tuple[str, datetime]]:
    """Return (id, time of forgetting) of the matching memories that were softly forgotten."""
    return set(connection.execute(_SQL["purge_select"], parameters).fetchall())


def purge(
    connection: Connection, namespace: str, ids: Collection[str], earlier: Collection[tuple[str, datetime]] = ()
) -> None:
    """Remove everything kept of removed memories: versions, links, the recalls that found them, access counts.

    ``earlier`` are softly forgotten memories to remove too, by id and time. Rows that others need stay. Under the
    lock of the namespace's row, so that nobody links one of them meanwhile. The saved model of the namespace, which may
    hold their titles, is removed too. Raises SerializationFailure, which repeats the work, where somebody has brought
    one of ``earlier`` back.
    """
    lives = [id for id, _ in earlier]
    all_ids = sorted({*ids, *lives})
    times = [at for _, at in earlier]
    which = {"namespace": namespace, "ids": all_ids, "gone": sorted(ids), "earlier": lives, "times": times}
    if not all_ids:
        return
    connection.execute(_SQL["namespace_alone"], which)
    erase(connection, namespace)
    with pipelined(connection):
        versions = earlier_entries(connection, namespace, all_ids)
        cursors = {statement: connection.execute(_SQL[statement], which) for statement in _PURGES}
    drop_unmentioned(connection, namespace, corrected(connection, namespace, (), versions))
    if set(cursors["purge_earlier"].fetchall()) != set(earlier):
        raise SerializationFailure("One of these memories was brought back just now.")


def begin_drop(connection: Connection, namespace: str) -> tuple[int, int]:
    """Remove the settings, the log and the saved model of a namespace, and mark it as being dropped.

    Returns how many memories go, and their last row id. Memories that others remember from now on stay.
    """
    where = {"namespace": namespace}
    connection.execute(_SQL["namespace_alone"], where)
    connection.execute(_SQL["drop_setting"], where)
    if found := [id for (id,) in connection.execute(_SQL["drop_recall_found"], where)]:  # else no other node is asked
        connection.execute(_SQL["drop_recalls"], {"recall_ids": found})
    connection.execute(_SQL["drop_recall_log"], where)
    row = connection.execute(_SQL["drop_begin"], where).fetchone()
    erase(connection, namespace)
    if row is None:
        return 0, 0
    upto = int(row[0])
    memories = int(only(connection.execute(_SQL["drop_count"], {**where, "upto": upto}))[0])
    count_change(connection, namespace, {"memories": 0, "length": 0}, {})
    connection.execute(_SQL["drop_began"], where)
    return memories, upto


def _drop_memories(connection: Connection, namespace: str, upto: int) -> bool:
    """Remove some memories of a namespace with the data derived from them; False when there are none."""
    bounded = {"namespace": namespace, "upto": upto, "limit": FORGET_AT_ONCE}
    row_ids = [row_id for (row_id,) in connection.execute(_SQL["drop_select"], bounded)]
    if not row_ids:
        return False
    which = {"namespace": namespace, "ords": row_ids}
    connection.execute(_SQL["forget_pending"], which)
    with pipelined(connection):
        cursor = connection.execute(_SQL["drop_forward"], which)
        for statement in (
            "forget_embedding", "forget_staging", "relationship_forget", "forget_memory",
        ):  # fmt: skip
            connection.execute(_SQL[statement], which)
    indexed, length = only(cursor)
    count_change(connection, namespace, {"memories": -indexed, "length": -length}, {})
    return True


def _drop_postings(connection: Connection, namespace: str, upto: int) -> bool:
    """Remove some segments, and forgotten memories from segments shared with others; False when there are none."""
    bounded = {"namespace": namespace, "upto": upto, "limit": FORGET_AT_ONCE}
    connection.execute(_SQL["namespace_revise"], {"namespace": namespace, "length": 0})
    if connection.execute(_SQL["drop_posting"], bounded).rowcount:
        return True
    mixed: dict[int, set[int]] = {}
    for key, _, raw in connection.execute(_SQL["drop_mixed"], bounded, binary=True):
        row_ids = np.frombuffer(raw, dtype=POSTING)["ord"]
        mixed.setdefault(key, set()).update(row_ids[row_ids <= upto].tolist())
    _clear_keys(connection, namespace, {key: sorted(row_ids) for key, row_ids in mixed.items()})
    if mixed:
        return True
    connection.execute(_SQL["drop_singletons"], bounded)
    return bool(only(connection.execute(_SQL["drop_singletons_left"], bounded))[0])


def _drop_rest(connection: Connection, namespace: str, upto: int) -> bool:
    """Remove some rows of the other tables; False when there are none."""
    bounded = {"namespace": namespace, "limit": FORGET_AT_ONCE}
    with pipelined(connection):
        connection.execute(_SQL["namespace_own"], {"namespace": namespace})
        cursors = [connection.execute(_SQL[f"drop_{table}"], bounded) for table in _OTHERS]
        row_ids = [row_id for (row_id,) in cursors[_OTHERS.index("likeness")]]
        connection.execute(_SQL["likeness_forget"], {"namespace": namespace, "ords": row_ids})
    return any(cursor.rowcount > 0 for cursor in cursors)


def _drop_end(connection: Connection, namespace: str, upto: int) -> bool:
    """Record the end of the drop; remove the namespace itself unless somebody has remembered something meanwhile."""
    where = {"namespace": namespace}
    connection.execute(_SQL["namespace_own"], where)
    _clear_empty(connection, namespace)
    connection.execute(_SQL["drop_end"], {**where, "upto": upto})
    return False


DROP_STEPS = (_drop_memories, _drop_postings, _drop_rest, _drop_end)
"""The steps that drop a namespace; each is a transaction of its own, repeated as long as it returns True."""


def prune(connection: Connection, namespace: str, parameters: Mapping[str, Any]) -> None:
    """Remove what is left of a namespace that has long been empty, except for its settings.

    ``parameters`` are those of a sweep: changes are kept for ``changes_days``.
    """
    where = {**parameters, "namespace": namespace}
    if connection.execute(_SQL["namespace_prune"], where).rowcount:
        with pipelined(connection):
            for statement in ("change_prune", "correction_empty", "fresh_empty"):
                connection.execute(_SQL[statement], where)


def _clear_empty(connection: Connection, namespace: str) -> None:
    """Remove what outlives the last memory of a namespace: corrections, numbers of segments."""
    with pipelined(connection):
        for statement in ("correction_empty", "fresh_empty"):
            connection.execute(_SQL[statement], {"namespace": namespace})


def delete_rows(
    connection: Connection,
    which: Mapping[str, Any],
    history: Mapping[str, Any] | None = None,
    *,
    last: Collection[str] = (),
) -> tuple[list[tuple[int, int, bytes]], dict[int, Any]]:
    """Delete the rows of some row ids; return (row id, length, entries) of the indexed ones, and by row id their keys.

    The keys are those that stand in postings, to be removed there under the lock of the namespace's row. That lock is
    taken here, after the rows of memories and the rows that a flush may hold. ``history`` are the parameters by which
    the history keeps the memories, or None; ``last`` are statements that are sent after all others.
    """
    with pipelined(connection):
        if history is not None:
            for statement in ("history_keep", "history_forget"):
                connection.execute(_SQL[statement], {**which, **history})
        pending_cursor = connection.execute(_SQL["forget_pending"], which)
        forward_cursor = connection.execute(_SQL["forget_forward"], which, binary=True)
        for statement in (
            "forget_embedding", "forget_staging", "forget_memory", "relationship_forget", *last,
        ):  # fmt: skip
            connection.execute(_SQL[statement], which)
    pending = {row_id for (row_id,) in pending_cursor.fetchall()}
    forwards: list[tuple[int, int, bytes]] = forward_cursor.fetchall()
    return forwards, {
        row_id: np.frombuffer(raw, dtype=FORWARD)["key"] for row_id, _, raw in forwards if row_id not in pending
    }


def scrub(connection: Connection, another: Callable[[], AbstractContextManager[Connection | None]]) -> None:
    """Rewrite the files of every table, or wait while another call does so that has begun since this one.

    ``another`` takes a second connection, if there is one, so that two tables are rewritten at a time.

    So those who forget side by side share a rewriting: one that is running may have passed what they removed, the next
    one is for all of them. Raises StoreUnavailable where others keep using a table or an earlier snapshot, or the user
    may not rewrite a table.
    """
    begun = _scrubs(connection)[0]
    while not only(connection.execute(_SQL["scrub_lock"]))[0]:  # a session that waited inside would hold a snapshot
        time.sleep(_PAUSE)
    try:
        number, done = _scrubs(connection)
        if done > begun:
            return
        _note_scrubs(connection, number + 1, done)
        with another() as beside:
            _scrub(connection, beside)
        _note_scrubs(connection, number + 1, number + 1)
    finally:
        if not connection.closed and not connection.broken:  # a lost connection holds no lock
            connection.execute(_SQL["scrub_unlock"])


def _scrubs(connection: Connection) -> tuple[int, int]:
    """Return the number of the last rewriting that began, and of the last one that was completed."""
    row = connection.execute(_SQL["meta_get"], {"key": "scrubs"}).fetchone()
    return (int(row[0]["begun"]), int(row[0]["done"])) if row else (0, 0)


def _note_scrubs(connection: Connection, begun: int, done: int) -> None:
    connection.execute(_SQL["meta_set"], {"key": "scrubs", "value": Jsonb({"begun": begun, "done": done})})


def _scrub(connection: Connection, beside: Connection | None) -> None:
    """Rewrite the files of every table, on both connections if there are two.

    The index of vectors goes with its table: while it was built anew, nobody could read the table. ``maintain`` builds
    it. Then delete the samples in the planner's statistics, and recycle the server's log (WAL), where this user may.
    """
    mark, end = only(connection.execute(_SQL["scrub_mark"]))[0], time.monotonic() + _SNAPSHOT_PATIENCE_S
    _wait_for_snapshots(connection, mark, end)
    with patient(connection):
        _clear_statistics(connection)
        before = {file for _, file in _files(connection)}
        while tables := [table for table, file in _files(connection) if file in before]:
            _rewrite_all(connection, beside, tables, mark, end)  # again where two tables have swapped names meanwhile
        for statement in ("scrub_samples", "scrub_log", "scrub_checkpoint"):
            with suppress(InsufficientPrivilege, LockNotAvailable):
                connection.execute(_SQL[statement])


def _clear_statistics(connection: Connection) -> None:
    new = connection.info.server_version >= _CLEARS_STATISTICS

    def clear() -> None:
        with suppress(InsufficientPrivilege):
            connection.execute(_SQL["scrub_statistics" if new else "scrub_statistics_old"])

    _in_turns(clear, "a table of semmem")


def _in_turns(work: Callable[[], None], what: str) -> None:
    """Do ``work``, again where others use ``what`` it needs, so that nobody queues behind it for long.

    The building of an index is such another one: it waits for the snapshot of ``work``, so to the server it is a
    deadlock, and in the end the index may have another name. Raises StoreUnavailable where others go on.
    """
    for turn in range(_TURNS):
        try:
            work()
            return
        except (LockNotAvailable, DeadlockDetected, UndefinedTable) as error:
            if turn == _TURNS - 1:
                raise StoreUnavailable(
                    f"Another program, such as a backup or `semmem maintain`, keeps using {what}; try again later."
                ) from error
            time.sleep(_PAUSE)


def _files(connection: Connection) -> list[tuple[str, int]]:
    """Return each table with the number of its file."""
    return [(table, file) for table, file in connection.execute(_SQL["scrub_tables"])]


def _rewrite_all(
    connection: Connection, beside: Connection | None, tables: Sequence[str], mark: str, end: float
) -> None:
    """Rewrite each table on the connection that is idle first; a failure on one ends the work of the other one."""
    left = deque(tables)

    def rewrite(own: Connection) -> None:
        try:
            while table := _next(left):
                _rewrite(own, table, mark, end)
                _mark_visible(own, table)
        except BaseException:
            left.clear()
            raise

    def rewrite_beside(own: Connection) -> None:
        with patient(own):
            rewrite(own)

    with ThreadPoolExecutor(1, thread_name_prefix="semmem-scrub") as thread:
        other = None if beside is None else thread.submit(rewrite_beside, beside)
        try:
            rewrite(connection)
            if other is not None:
                other.result()
        except BaseException:
            if other is not None and beside is not None:
                cancel(other, beside)
                beside.close()
            raise


def _mark_visible(connection: Connection, table: str) -> None:
    """Mark what is visible to all, since recalls would look at each row instead."""
    try:
        vacuum(connection, [table])
    except OperationalError:  # all is gone by now, and this can be done later
        if connection.broken:
            raise


def _next(left: deque[str]) -> str | None:
    try:
        return left.popleft()
    except IndexError:  # the other connection took the last one
        return None


def _wait_for_snapshots(connection: Connection, mark: str, end: float) -> None:
    """Wait until nobody sees an earlier state of the store than ``mark``, whose rows a rewriting would keep.

    Raises StoreUnavailable where somebody goes on. The snapshots of other users are seen by those alone who may; what
    they kept is seen after the rewriting.
    """
    while only(connection.execute(_SQL["scrub_snapshots"], {"mark": mark}))[0]:
        if time.monotonic() > end:
            raise _seen_by_others()
        time.sleep(_PAUSE)


def _seen_by_others() -> StoreUnavailable:
    return StoreUnavailable(
        "Another program, such as a backup or one that leaves a transaction open, keeps an earlier state of this "
        "store; try again later."
    )


def _rewrite(connection: Connection, table: str, mark: str, end: float) -> None:
    """Rewrite a table's files, again while somebody keeps rows of before ``mark``.

    Raises StoreUnavailable where somebody goes on until ``end`` or keeps using the table, or the user lacks the right.
    """
    pause = _PAUSE
    while _rewritten(connection, table, mark):
        if time.monotonic() + pause > end:
            raise _seen_by_others()
        time.sleep(pause)
        pause *= 2


def _rewritten(connection: Connection, table: str, mark: str) -> bool:
    """Rewrite a table's files; return whether rows may be left that were deleted before ``mark``."""
    before = connection.execute(_SQL["scrub_file"], {"table": table}).fetchone()

    def rewrite() -> None:
        if table in INDEXED:
            with suppress(InsufficientPrivilege):
                connection.execute(_SQL["embedding_index_drop"].format(table=table))
        connection.execute(sql.SQL("VACUUM (FULL, ANALYZE) {}").format(sql.Identifier("semmem", table)))

    _in_turns(rewrite, f"the table semmem.{table}")
    if connection.execute(_SQL["scrub_file"], {"table": table}).fetchone() == before:  # passed over with a warning
        raise StoreUnavailable(
            f"This database user may not rewrite the table semmem.{table}; forget with hard as its owner."
        )
    return bool(only(connection.execute(_SQL["scrub_kept"], {"mark": mark, "table": table}))[0])


def clear_postings(connection: Connection, namespace: str, keys_of: Mapping[int, Any]) -> None:
    """Remove memories from the segments of their keys; ``keys_of`` maps a row id to an array of keys."""
    row_ids_by_key: dict[int, list[int]] = defaultdict(list)
    for row_id, keys in keys_of.items():
        for key in keys.tolist():
            row_ids_by_key[key].append(row_id)
    _clear_keys(connection, namespace, row_ids_by_key)


def _clear_keys(connection: Connection, namespace: str, row_ids_by_key: Mapping[int, Sequence[int]]) -> None:
    """Remove memories from the segments of some keys; ``row_ids_by_key`` has the row ids of each key."""
    if not row_ids_by_key:
        return
    keys = sorted(row_ids_by_key)
    parameters = {
        "namespace": namespace,
        "keys": keys,
        "lows": [min(row_ids_by_key[k]) for k in keys],
        "highs": [max(row_ids_by_key[k]) for k in keys],
    }
    rewritten: dict[str, list[Any]] = defaultdict(list)
    empty: dict[str, list[int]] = {"keys": [], "segments": []}
    for key, segment, raw in connection.execute(_SQL["posting_lock"], parameters, binary=True).fetchall():
        entries = np.frombuffer(raw, dtype=POSTING)
        rest = entries[~np.isin(entries["ord"], row_ids_by_key[key])]
        if len(rest) == len(entries):
            continue
        if not len(rest):
            empty["keys"].append(key)
            empty["segments"].append(segment)
            continue
        for column, value in zip(
            ("keys", "segments", "entries", "n", "subjects", "lows", "highs"),
            (key, segment, *_summary(rest)),
            strict=True,
        ):
            rewritten[column].append(value)
    if empty["keys"]:
        connection.execute(_SQL["posting_delete"], {"namespace": namespace, **empty})
    if rewritten:
        connection.execute(_SQL["posting_rewrite"], {"namespace": namespace, **rewritten})
    sizes = [len(row_ids_by_key[key]) for key in keys]
    row_ids = np.fromiter((row_id for key in keys for row_id in row_ids_by_key[key]), np.int64, sum(sizes))
    singleton_parameters = {
        "namespace": namespace,
        "keys": np.repeat(np.array(keys, dtype=np.int64), sizes),
        "ords": row_ids,
    }
    connection.execute(_SQL["singleton_clear"], singleton_parameters)


def _summary(entries: NDArray[Any]) -> tuple[bytes, int, int, int, int]:
    subjects, row_ids = (
        int((entries["subject"] > 0).sum()),
        entries["ord"],
    )  # the row ids in merged rows need not be sorted
    return entries.tobytes(), int(mentions(entries).sum()), subjects, int(row_ids.min()), int(row_ids.max())
