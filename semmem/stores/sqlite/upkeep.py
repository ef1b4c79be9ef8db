"""Maintain a store in one file: sweep what is due in bounded steps, merge the inverted index.

Each step is a transaction of its own, so it can be interrupted anywhere, and writers wait for one step at most.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from semmem.model.recipe import GraphSettings
from semmem.model.store import Keep
from semmem.model.types import Filters
from semmem.stores.sql_files import statements
from semmem.stores.sqlite.saved import erase
from semmem.stores.sqlite.write import forget, microsecond, purge

if TYPE_CHECKING:
    from semmem.stores.sqlite.store import SqliteStore

__all__ = ["SWEEPS", "Sweep", "expired", "maintain"]

_SQL = statements("sqlite")
_DAY = 86_400_000_000

AT_ONCE = 5_000
"""The most rows that one step removes."""


class Sweep(NamedTuple):
    """A kind of rows that maintain removes when they are due; ``name`` is the key of its count.

    ``due`` is the statement that lists the namespaces where something is due. ``step`` removes some of it from one
    namespace, in a transaction of its own, and is repeated until nothing is left. It is a statement that deletes at
    most ``limit`` rows, or a function of (connection, namespace, parameters) that returns how many rows it removed. The
    parameters of all statements are ``now``, ``limit``, ``ids`` (None for all), the fields of Keep, each of these also
    as a time (``changes_before`` for ``changes_days``) in microseconds, and for a step ``namespace``.
    """

    name: str
    due: str
    step: str | Callable[[sqlite3.Connection, str, Mapping[str, Any]], int]


def _changes(connection: sqlite3.Connection, namespace: str, parameters: Mapping[str, Any]) -> int:
    """Remove some of the oldest changes and record up to which; readers that missed them need a new export."""
    where = {**parameters, "namespace": namespace}
    numbers = [number for (number,) in connection.execute(_SQL["sweep_change"], where).fetchall()]
    if numbers:
        mark = {**where, "number": max(numbers)}
        connection.execute(_SQL["sweep_change_unmark"], mark)
        connection.execute(_SQL["sweep_change_mark"], mark)
    return len(numbers)


def _audit(connection: sqlite3.Connection, namespace: str, parameters: Mapping[str, Any]) -> int:
    """Remove some of the oldest rows of the audit, which refuses every other deletion."""
    where = {**parameters, "namespace": namespace}
    connection.execute(_SQL["sweep_audit_may"], where)
    count = connection.execute(_SQL["sweep_audit"], where).rowcount
    connection.execute(_SQL["sweep_audit_no_more"])
    return count


def expired(connection: sqlite3.Connection, namespace: str, parameters: Mapping[str, Any]) -> int:
    """Remove some expired memories and their versions; an earlier memory under the same id stays in the history."""
    where = {**parameters, "namespace": namespace}
    ids = {id for (id,) in connection.execute(_SQL["sweep_expired"], where).fetchall()}
    return forget(connection, namespace, ids, Filters(), dry_run=False, earlier=False) if ids else 0


def _forgotten(connection: sqlite3.Connection, namespace: str, parameters: Mapping[str, Any]) -> int:
    """Remove some softly forgotten memories for good, with everything kept of them."""
    where = {**parameters, "namespace": namespace}
    ids = [id for (id,) in connection.execute(_SQL["sweep_forgotten"], where).fetchall()]
    which = {"namespace": namespace, "ids": json.dumps(sorted(set(ids)))}
    purge(connection, namespace, [id for (id,) in connection.execute(_SQL["sweep_forgotten_left"], which).fetchall()])
    return len(ids)


def _versions(connection: sqlite3.Connection, namespace: str, parameters: Mapping[str, Any]) -> int:
    """Remove some of the oldest surplus versions, and the saved model, which may hold their titles."""
    count = connection.execute(_SQL["sweep_versions"], {**parameters, "namespace": namespace}).rowcount
    if count:
        erase(connection, namespace)
    return count


def _emptied(connection: sqlite3.Connection, namespace: str, parameters: Mapping[str, Any]) -> int:
    """Remove the row of a namespace that has long been empty, and the rest of its changes."""
    where = {**parameters, "namespace": namespace}
    if connection.execute(_SQL["namespace_prune"], where).rowcount:
        connection.execute(_SQL["change_prune"], where)
    return 0


def _past_keep_days(connection: sqlite3.Connection, namespace: str, parameters: Mapping[str, Any]) -> int:
    """Forget some memories whose time in their namespace is over (keep_days), with their versions."""
    where = {**parameters, "namespace": namespace}
    ids = {id for (id,) in connection.execute(_SQL["sweep_kept"], where).fetchall()}
    return forget(connection, namespace, ids, Filters(), dry_run=False, earlier=False) if ids else 0


SWEEPS: tuple[Sweep, ...] = (
    Sweep("expired", "sweep_expired_due", expired),
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


def maintain(store: SqliteStore, keep: Keep) -> dict[str, int]:
    """Sweep, merge the inverted index, save models, and checkpoint the log into the file; return the counts."""
    now = microsecond(datetime.now(UTC))
    periods = asdict(keep)
    before = {f"{name.removesuffix('_days')}_before": now - int(days * _DAY) for name, days in periods.items()}
    parameters = {**periods, **before, "now": now, "day_before": now - _DAY, "limit": AT_ONCE, "ids": None}
    sweep_counts = {sweep.name: _swept(store, sweep, parameters) for sweep in SWEEPS}
    joined = store._writing(_join)
    store._writing(lambda c: store.remove_left_locks())
    saved = store.models.save(every=True)
    store._writing(lambda c: c.execute("PRAGMA optimize").fetchall())  # else it would read first, and not wait to write
    store._run(lambda c: c.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall())
    removed = {name: count for name, count in sweep_counts.items() if count}
    return {**removed, "joined": joined, **saved, **_report(store)}


def _report(store: SqliteStore) -> dict[str, int]:
    """Return the counts that a person should look at, without zeros: see Semmem.maintain."""
    counts = {name: int(store._rows(f"upkeep_{name}", {})[0][0]) for name in ("orphans", "contradictions")}
    cap = GraphSettings().max_df  # a smaller namespace has no name that more memories mention
    counts["hubs"] = sum(store.graph.hubs(n, cap) for (n,) in store._rows("namespace_large", {"least": cap + 1}))
    return {name: count for name, count in counts.items() if count}


def _swept(store: SqliteStore, sweep: Sweep, parameters: Mapping[str, Any]) -> int:
    """Remove the due rows of one kind, in every namespace; return how many."""

    def step(connection: sqlite3.Connection, namespace: str) -> int:
        if callable(sweep.step):
            return sweep.step(connection, namespace, parameters)
        return connection.execute(_SQL[sweep.step], {**parameters, "namespace": namespace}).rowcount

    total = 0
    for (namespace,) in store._rows(sweep.due, parameters):
        while count := store._writing(partial(step, namespace=namespace)):
            total += count
    return total


def _join(connection: sqlite3.Connection) -> int:
    """Merge the inverted index into one segment; return how many segments that removed."""
    pieces = int(connection.execute(_SQL["lexical_segments"]).fetchone()[0])
    if pieces < 2:
        return 0
    connection.execute(_SQL["lexical_optimize"])
    return pieces - 1
