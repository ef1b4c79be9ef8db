"""Upkeep of a store on PostgreSQL: what is due is swept in steps of bounded size, what is pending folded and indexed.

Each step is a transaction of its own, so that it can be interrupted anywhere, and run beside writers and itself.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from psycopg import Error
from psycopg.errors import LockNotAvailable

from semmem.model.errors import SemmemError
from semmem.model.recipe import GraphSettings
from semmem.model.store import Keep
from semmem.model.types import Filters
from semmem.stores.postgres import forget, nearest, postings
from semmem.stores.postgres.connection import by_namespace, session_setting
from semmem.stores.sql_files import statements

if TYPE_CHECKING:
    from semmem.stores.postgres.store import PostgresStore

__all__ = ["SWEEPS", "Sweep", "maintain", "sweep_expired"]

_SQL = statements("postgres")

AT_ONCE = 5_000
"""Rows that one step takes away."""
_TABLES = ("memory", "posting", "lone_posting", "embedding", "forward")
_MANY = 10_000
"""Rows of postings that have been packed before it is worth while to write the table anew."""

HUB = GraphSettings().max_df
"""Memories that may mention a concept before it carries nothing, by the recipe default."""


class Sweep(NamedTuple):
    """What is taken away when it is due, and counted under ``name``.

    ``due`` is the statement that lists the namespaces where something is due. ``step`` takes some of it away in one of
    them, in a transaction of its own, again and again until there is nothing left: a statement that deletes at most
    ``limit`` rows, or a function of (connection, namespace, parameters) that returns how many went. The parameters of
    all statements are the fields of Keep, ``limit``, ``ids`` (None: all), and for a step ``namespace``.
    """

    name: str
    due: str
    step: str | Callable[[Any, str, Mapping[str, Any]], int]


def _changes(connection: Any, namespace: str, parameters: Mapping[str, Any]) -> int:
    """Take some of the oldest changes away, and mark up to which; who has not read these must export anew."""
    where = {**parameters, "namespace": namespace}
    gone = [number for (number,) in connection.execute(_SQL["sweep_change"], where)]
    if gone:
        marked = {"namespace": namespace, "number": max(gone)}
        connection.execute(_SQL["sweep_change_unmark"], marked)
        connection.execute(_SQL["sweep_change_mark"], marked)
    return len(gone)


def _expired(connection: Any, namespace: str, parameters: Mapping[str, Any]) -> int:
    """Take some of what has vanished away for good, with its versions; an earlier life of its id stays."""
    where = {**parameters, "namespace": namespace}
    ids = {id for (id,) in connection.execute(_SQL["sweep_expired"], where).fetchall()}
    return forget.forget(connection, namespace, ids, Filters(), dry_run=False, earlier=False) if ids else 0


def sweep_expired(store: PostgresStore, names: Collection[tuple[str, str]]) -> int:
    """Take away those of some memories, by (namespace, id), that have vanished; return how many."""
    gone = 0
    for namespace, ids in by_namespace(names).items():
        asked = {"ids": ids, "limit": None}
        gone += store.transaction(partial(_expired, namespace=namespace, parameters=asked))
    return gone


def _forgotten(connection: Any, namespace: str, parameters: Mapping[str, Any]) -> int:
    """Take some of what was forgotten softly away for good, with all that is kept of it."""
    where = {**parameters, "namespace": namespace}
    gone = [id for (id,) in connection.execute(_SQL["sweep_forgotten"], where).fetchall()]
    which = {"namespace": namespace, "ids": sorted(set(gone))}
    forget.purge(connection, namespace, [id for (id,) in connection.execute(_SQL["sweep_forgotten_left"], which)])
    return len(gone)


def _emptied(connection: Any, namespace: str, parameters: Mapping[str, Any]) -> int:
    """Take away what is left of a namespace that has been empty for long."""
    forget.prune(connection, namespace, parameters)
    return 0


def _kept(connection: Any, namespace: str, parameters: Mapping[str, Any]) -> int:
    """Forget some memories that their namespace keeps no longer, with their versions."""
    where = {**parameters, "namespace": namespace}
    ids = {id for (id,) in connection.execute(_SQL["sweep_kept"], where).fetchall()}
    return forget.forget(connection, namespace, ids, Filters(), dry_run=False, earlier=False) if ids else 0


SWEEPS: tuple[Sweep, ...] = (
    Sweep("expired", "sweep_expired_due", _expired),
    Sweep("kept", "sweep_kept_due", _kept),
    Sweep("forgotten", "sweep_forgotten_due", _forgotten),
    Sweep("versions", "sweep_versions_due", "sweep_versions"),
    Sweep("changes", "sweep_change_due", _changes),
    Sweep("recalls", "sweep_log_due", "sweep_log"),
    Sweep("emptied", "namespace_forgotten", _emptied),
)
"""Everything that maintain takes away, in this order. A new kind of thing that goes in time is one more entry."""


def maintain(store: PostgresStore, keep: Keep) -> dict[str, int]:
    """Finish drops, sweep, fold every pending memory and join small posting segments; return the count of each."""
    folded = joined = packed = 0
    for namespace, upto in store.rows("drop_unfinished", {}):
        store.drop(namespace, upto)
    swept = {sweep.name: _swept(store, sweep, {**asdict(keep), "limit": AT_ONCE, "ids": None}) for sweep in SWEEPS}
    for (namespace,) in store.rows("pending_namespaces", {}):
        while count := store.transaction(partial(postings.fold, namespace=namespace)):
            folded += count
    for (namespace,) in store.rows("namespace_names", {}):
        joined += store.transaction(partial(postings.compact, namespace=namespace, everything=True))
        packed += _packed(store, namespace)
    embedded = store.url.startswith("embedded:")  # a server of one's own
    if embedded:
        _shrunk(store, packed)
    store.run(lambda c: c.execute(f"{'VACUUM (ANALYZE)' if embedded else 'ANALYZE'} {', '.join(_TABLES)}"))
    done = {"folded": folded, "joined": joined, "indexed": _indexed(store, store.vectors.embedder(), embedded)}
    if embedded:
        store.run(lambda c: c.execute("CHECKPOINT"))  # what the log still holds stands in the tables
    return {**{name: count for name, count in swept.items() if count}, **done, **_report(store)}


def _packed(store: PostgresStore, namespace: str) -> int:
    """Pack the keys of one memory, a range at a time; return how many rows of postings went."""
    steps = store.run(partial(postings.pack_steps, namespace=namespace))
    since, packed = postings.FIRST_KEY if steps else postings.LAST_KEY + 1, 0
    while since <= postings.LAST_KEY:
        since, went = store.transaction(partial(postings.pack, namespace=namespace, since=since, steps=steps))
        packed += went
    return packed


def _shrunk(store: PostgresStore, packed: int) -> None:
    """Write the table of postings anew where most of its rows have just been packed, so that its files shrink.

    Nobody reads it meanwhile: it is little that is left. While somebody is at work in it all the time, it stays.
    """
    if packed < _MANY or packed < store.rows("posting_rows", {})[0][0]:
        return
    with (
        store.lasting() as connection,
        suppress(LockNotAvailable),
        session_setting(connection, "lock_timeout", forget.PATIENCE),
    ):
        connection.execute("VACUUM (FULL) posting")


def _report(store: PostgresStore) -> dict[str, int]:
    """Return what is for somebody to look at, where there is any: see Semmem.maintain."""
    asked: tuple[tuple[str, dict[str, int]], ...] = (("orphans", {}), ("hubs", {"cap": HUB}), ("contradictions", {}))
    found = {name: int(store.rows(f"upkeep_{name}", given)[0][0]) for name, given in asked}
    return {name: count for name, count in found.items() if count}


def _indexed(store: PostgresStore, identity: Mapping[str, Any] | None, shrink: bool) -> int:
    """Take vectors into the index; where a rebuild has put those of another embedder there meanwhile, these."""
    if identity is None:
        return 0
    try:
        return store.run(lambda c: nearest.index(c, identity["dimensions"], shrink=shrink))
    except (Error, SemmemError):
        now = store.vectors.embedder()
        if now is None or dict(now) == dict(identity):
            raise
        return store.run(lambda c: nearest.index(c, now["dimensions"], shrink=shrink))


def _swept(store: PostgresStore, sweep: Sweep, parameters: Mapping[str, Any]) -> int:
    """Take away what is due of one kind, in every namespace; return how much."""

    def step(connection: Any, namespace: str) -> int:
        if callable(sweep.step):
            return sweep.step(connection, namespace, parameters)
        return int(connection.execute(_SQL[sweep.step], {**parameters, "namespace": namespace}).rowcount)

    gone = 0
    for (namespace,) in store.rows(sweep.due, parameters):
        while count := store.transaction(partial(step, namespace=namespace)):
            gone += count
    return gone
