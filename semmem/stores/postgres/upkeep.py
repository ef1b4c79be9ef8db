"""Maintain a store on PostgreSQL: sweep what is due in bounded steps, fold pending memories, index vectors.

Each step is a transaction of its own, so it can be interrupted anywhere, and run beside writers and other upkeep.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import asdict
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from psycopg import Error
from psycopg.errors import LockNotAvailable

from semmem.model.errors import SemmemError
from semmem.model.recipe import GraphSettings
from semmem.model.store import Keep
from semmem.model.types import Filters
from semmem.stores.postgres import forget, links, nearest, postings
from semmem.stores.postgres.connection import by_namespace
from semmem.stores.postgres.nearest import session_setting
from semmem.stores.sql_files import statements

if TYPE_CHECKING:
    from semmem.stores.postgres.store import PostgresStore

__all__ = ["SWEEPS", "Sweep", "end_bulk", "maintain", "sweep_expired", "tidy"]

_SQL = statements("postgres")

AT_ONCE = 5_000
"""The most rows that one step removes."""
_TABLES = ("memory", "posting", "lone_posting", "embedding", "forward", "likeness", "likeness_key", "packed_likeness")
_EMPTIED = ("pending", "history", "change", "link", "access")
"""More tables that ``maintain`` vacuums: other work empties them again."""
_FOLDED_AT_ONCE = 10_000
"""The most memories of a bulk that one fold takes; their keys bound it before."""
_MANY = 10_000
"""The number of packed posting rows from which on it is worth rewriting the table."""

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


def _changes(connection: Any, namespace: str, parameters: Mapping[str, Any]) -> int:
    """Remove some of the oldest changes and record up to which; readers that missed them need a new export."""
    where = {**parameters, "namespace": namespace}
    numbers = [number for (number,) in connection.execute(_SQL["sweep_change"], where)]
    if numbers:
        mark = {"namespace": namespace, "number": max(numbers)}
        connection.execute(_SQL["sweep_change_unmark"], mark)
        connection.execute(_SQL["sweep_change_mark"], mark)
    return len(numbers)


def _expired(connection: Any, namespace: str, parameters: Mapping[str, Any]) -> int:
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


def _forgotten(connection: Any, namespace: str, parameters: Mapping[str, Any]) -> int:
    """Remove some softly forgotten memories for good, with everything kept of them."""
    where = {**parameters, "namespace": namespace}
    ids = [id for (id,) in connection.execute(_SQL["sweep_forgotten"], where).fetchall()]
    which = {"namespace": namespace, "ids": sorted(set(ids))}
    forget.purge(connection, namespace, [id for (id,) in connection.execute(_SQL["sweep_forgotten_left"], which)])
    return len(ids)


def _emptied(connection: Any, namespace: str, parameters: Mapping[str, Any]) -> int:
    """Remove what is left of a namespace that has long been empty."""
    forget.prune(connection, namespace, parameters)
    return 0


def _past_keep_days(connection: Any, namespace: str, parameters: Mapping[str, Any]) -> int:
    """Forget some memories whose time in their namespace is over (keep_days), with their versions."""
    where = {**parameters, "namespace": namespace}
    ids = {id for (id,) in connection.execute(_SQL["sweep_kept"], where).fetchall()}
    return forget.forget(connection, namespace, ids, Filters(), dry_run=False, earlier=False) if ids else 0


SWEEPS: tuple[Sweep, ...] = (
    Sweep("expired", "sweep_expired_due", _expired),
    Sweep("kept", "sweep_kept_due", _past_keep_days),
    Sweep("forgotten", "sweep_forgotten_due", _forgotten),
    Sweep("versions", "sweep_versions_due", "sweep_versions"),
    Sweep("changes", "sweep_change_due", _changes),
    Sweep("recalls", "sweep_log_due", "sweep_log"),
    Sweep("emptied", "namespace_forgotten", _emptied),
)
"""What maintain removes, in this order. A new kind of row with a limited life is one more entry."""


def tidy(
    store: PostgresStore, namespace: str, backlog: tuple[int, int, int] | None = None, *, bulk: bool = False
) -> None:
    """Fold a namespace with many pending memories, and compact one with many fresh segments.

    A writer of few memories leaves to a ``bulk`` what it brought. ``backlog`` are the numbers of the statement of this
    name, if a writer has just read them.
    """
    pending, bulk_keys, segments = backlog or store.rows("backlog", {"namespace": namespace})[0]
    if bulk_keys >= postings.BULK_KEYS if bulk else pending >= postings.FOLD_AT:
        store.transaction(partial(postings.fold, namespace=namespace, **({"limit": _FOLDED_AT_ONCE} if bulk else {})))
        segments += 1
    if segments >= (postings.BULK_COMPACT_AT if bulk else postings.COMPACT_AT):
        store.transaction(partial(postings.compact, namespace=namespace))


def end_bulk(store: PostgresStore, namespaces: Collection[str]) -> dict[str, str]:
    """Fold what the batches of a bulk have left pending; return why it is left to maintain, by "maintain"."""
    try:
        for (namespace,) in store.rows("bulk_ends", {"namespaces": sorted(namespaces), "least": postings.FOLD_AT}):
            while store.transaction(partial(postings.fold, namespace=namespace, limit=_FOLDED_AT_ONCE)):
                pass
            tidy(store, namespace)
    except (SemmemError, Error) as error:
        return {"maintain": f"Folding is left to `semmem maintain`: {error}"}
    return {}


def maintain(store: PostgresStore, keep: Keep) -> dict[str, int]:
    """Finish drops, sweep, fold every pending memory and join small segments; return the count of each."""
    folded = joined = packed = alike = 0
    busy = {name for name, *_ in store.rows("moved_unfinished", {})}
    for namespace, upto in store.rows("drop_unfinished", {}):
        store.drop(namespace, upto)
    sweep_counts = {
        sweep.name: _swept(store, sweep, {**asdict(keep), "limit": AT_ONCE, "ids": None}, busy) for sweep in SWEEPS
    }
    for namespace in _others(store, "pending_namespaces", busy):
        while count := store.transaction(partial(postings.fold, namespace=namespace)):
            folded += count
    for namespace in _others(store, "namespace_names", busy):
        written, removed = _settled(store, namespace)
        joined += written
        packed += removed
        alike += _packed(store, namespace)
    embedded = store.url.startswith("embedded:")  # a server of one's own
    if embedded:
        _shrunk(store, "posting", packed)
        _shrunk(store, "likeness_key", alike)
    tables = (*_TABLES, *_EMPTIED) if embedded else _TABLES
    store.run(lambda c: c.execute(f"{'VACUUM (ANALYZE)' if embedded else 'ANALYZE'} {', '.join(tables)}"))
    indexed = _indexed(store, store.vectors.embedder(), embedded)
    counts = {"folded": folded, "joined": joined, "indexed": indexed or 0, **({"busy": 1} if indexed is None else {})}
    if embedded:
        store.run(lambda c: c.execute("CHECKPOINT"))  # moves what the log holds into the tables
    return {**{name: count for name, count in sweep_counts.items() if count}, **counts, **_report(store)}


def _settled(store: PostgresStore, namespace: str) -> tuple[int, int]:
    """Join and pack posting rows, a range of keys at a time; return how many were written, and how many removed."""
    steps, packs = store.run(partial(postings.settle_steps, namespace=namespace))
    segments = store.run(partial(postings.fresh_segments, namespace=namespace))
    joined = packed = 0
    since = postings.FIRST_KEY if steps else postings.LAST_KEY + 1
    while since <= postings.LAST_KEY:
        step = partial(postings.settle, namespace=namespace, since=since, steps=steps, packs=packs)
        since, written, removed = store.transaction(step)
        joined += written
        packed += removed
    if segments:  # those that writers have added meanwhile stay fresh
        store.transaction(partial(postings.mark_joined, namespace=namespace, segments=segments))
    return joined, packed


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

    def step(connection: Any, namespace: str) -> int:
        if callable(sweep.step):
            return sweep.step(connection, namespace, parameters)
        return int(connection.execute(_SQL[sweep.step], {**parameters, "namespace": namespace}).rowcount)

    total = 0
    for namespace in _others(store, sweep.due, busy, parameters):
        while count := store.transaction(partial(step, namespace=namespace)):
            total += count
    return total
