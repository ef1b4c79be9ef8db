"""A store on several nodes, by Citus: a namespace lies on one of them, and what has no namespace on all.

Citus distributes the tables once, when the store is made or by ``distribute``; from then on every node can be asked.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from psycopg import sql
from psycopg.errors import DeadlockDetected, InsufficientPrivilege

from semmem.model.errors import StoreUnavailable
from semmem.model.reports import Distribution, Node
from semmem.stores.postgres.typed import Connection, only
from semmem.stores.sql_files import statements

__all__ = ["DISTRIBUTE_THERE", "EVERYWHERE", "OLDEST", "check", "distribute", "of_namespace", "of_store", "placing"]

EVERYWHERE = frozenset(("access_key", "answered", "meta", "migration", "rate_bucket"))
"""The tables without a namespace; each node has them whole. Every other table begins with its namespace."""
OLDEST = 13
"""The oldest Citus that semmem is tested with."""
DISTRIBUTE_THERE = "run `semmem distribute` with the address of {coordinator}"
"""What to do on a worker to distribute a store."""
_SQL = statements("postgres")
_NO_NODES = (
    "This database has Citus and no nodes to put a store on; let an administrator run on its coordinator: "
    "SELECT citus_set_coordinator_host('HOST', 5432), and for each other node SELECT citus_add_node('HOST', 5432)"
)
_TRIES = 6
_PAUSE_S = 0.5


class _Table(NamedTuple):
    """A table: its first column, whether it lies on the nodes, and its bytes and whether it has rows beside them."""

    name: str
    first: str
    distributed: bool
    bytes: int
    filled: bool

    @property
    def place(self) -> str:
        """Return where the table belongs. Raises AssertionError for one that belongs nowhere."""
        assert (self.name in EVERYWHERE) != (self.first == "namespace"), f"{self.name} has no place on several nodes"
        return "everywhere" if self.name in EVERYWHERE else "by namespace"


def check(connection: Connection, *, mend: str = "connect once to {coordinator}, then to any node") -> bool:
    """Return whether this database has Citus.

    Raises StoreUnavailable for one that is too old, before any node is known, and on a worker, with what to do there.
    """
    installed = only(connection.execute(_SQL["nodes_extension"]))[0]
    if installed is None:
        return False
    if int(installed.split(".")[0]) < OLDEST:
        raise StoreUnavailable(
            f"This database has Citus {installed} and semmem needs {OLDEST} or newer; install that on every node, and "
            "run on each: ALTER EXTENSION citus UPDATE"
        )
    is_coordinator, known, _, address = only(connection.execute(_SQL["nodes_coordinator"]))
    if not known:
        raise StoreUnavailable(_NO_NODES)
    if not is_coordinator:
        coordinator = f"the coordinator ({address})" if address else "the coordinator"
        raise StoreUnavailable(
            "This server is a worker of Citus, and the tables are made and changed on the coordinator alone; "
            f"{mend.format(coordinator=coordinator)}."
        )
    return True


@contextmanager
def placing(connection: Connection, *, new: bool) -> Iterator[None]:
    """Distribute the tables that the block makes, in one transaction with it, where the store is on several nodes.

    A ``new`` store is, wherever the database has Citus. Raises StoreUnavailable on a node that may not make tables.
    """
    if not check(connection) or not (new or only(connection.execute(_SQL["nodes_distributed"]))[0]):
        yield
        return
    _must_have_joined(connection)
    with connection.transaction():
        connection.execute(_SQL["nodes_settings"])
        yield
        _place(connection, lambda _: None)


def distribute(
    connection: Connection, *, dry_run: bool = False, progress: Callable[[str], None] = lambda _: None
) -> Distribution:
    """Spread the tables of a filled store over the nodes in one transaction: writers wait, readers go on.

    An interrupted call leaves the store as it was, or with rows that nobody reads on the coordinator; the next call
    goes on from there. ``progress`` gets the name of each table. Raises StoreUnavailable where Citus is missing or too
    old, and as ``check`` does.
    """
    started = time.monotonic()
    if not check(connection, mend=DISTRIBUTE_THERE):
        raise _without(connection)
    _must_have_joined(connection)
    if only(connection.execute(_SQL["row_security_any"]))[0]:
        raise StoreUnavailable(
            "Row-level security is on, and Citus does not pass the namespaces of a call on to its nodes; run `semmem "
            "row-security off` first."
        )
    here = [t for t in _tables(connection) if not t.distributed]
    if not dry_run:
        try:
            if here:
                _all_at_once(connection, progress)
            _remove_left(connection)
        except InsufficientPrivilege as error:
            raise StoreUnavailable(
                f"This database user may not distribute semmem's tables ({error.diag.message_primary}); run `semmem "
                "distribute` as their owner."
            ) from error
    names = tuple(node.name for node in of_store(connection) or ())
    places = {t.name: t.place for t in here}
    return Distribution(places, sum(t.bytes for t in here), names, time.monotonic() - started)


def of_store(connection: Connection) -> tuple[Node, ...] | None:
    """Return the nodes that hold namespaces: None in a database without Citus, and none before a distribution."""
    if not only(connection.execute(_SQL["nodes_known"]))[0]:
        return None
    return tuple(Node(*row) for row in connection.execute(_SQL["nodes_each"]))


def of_namespace(connection: Connection, namespace: str) -> str | None:
    """Return the node that holds a namespace, from the catalogue of this one; None where the store lies on one."""
    for necessary in ("nodes_known", "nodes_distributed"):
        if not only(connection.execute(_SQL[necessary]))[0]:
            return None
    return str(only(connection.execute(_SQL["nodes_of"], {"namespace": namespace}))[0])


def _must_have_joined(connection: Connection) -> None:
    """Raise StoreUnavailable where no node takes shards."""
    if not only(connection.execute(_SQL["nodes_coordinator"]))[2]:
        raise StoreUnavailable(_NO_NODES)


def _all_at_once(connection: Connection, progress: Callable[[str], None]) -> None:
    """Distribute the tables; a writer that holds one and wants another may be in the way, so this is tried again."""
    for turn in range(_TRIES):
        try:
            with connection.transaction():
                connection.execute(_SQL["nodes_settings"])
                names = [sql.Identifier("semmem", t.name) for t in _tables(connection)]
                connection.execute(sql.SQL(_SQL["nodes_lock"]).format(tables=sql.SQL(", ").join(names)))
                _place(connection, progress)
            return
        except DeadlockDetected:
            if turn == _TRIES - 1:
                raise
            time.sleep(_PAUSE_S * 2**turn)


def _remove_left(connection: Connection) -> None:
    """Delete what the tables held on this server before; a hard forget would not find it there."""
    for table in _tables(connection):
        if table.distributed and table.filled:
            with connection.transaction():
                connection.execute(_SQL["nodes_left_may"])
                connection.execute(_SQL["nodes_left"], {"table": f"semmem.{table.name}"})


def _place(connection: Connection, progress: Callable[[str], None]) -> None:
    """Distribute each table that is not, the memories first, beside which the others lie."""
    left = [t for t in _tables(connection) if not t.distributed]
    for table in sorted(left, key=lambda t: (t.name != "memory", t.name)):
        progress(table.name)
        how = "nodes_everywhere" if table.place == "everywhere" else "nodes_beside"
        how = "nodes_first" if table.name == "memory" else how
        connection.execute(_SQL[how], {"table": f"semmem.{table.name}"})


def _tables(connection: Connection) -> list[_Table]:
    return [_Table(*row) for row in connection.execute(_SQL["nodes_tables"])]


def _without(connection: Connection) -> StoreUnavailable:
    offered = only(connection.execute(_SQL["nodes_extension"]))[1]
    if offered is None:
        return StoreUnavailable(
            f"This server has no Citus, which spreads a store over several; install version {OLDEST} or newer on every "
            "node and name it in shared_preload_libraries."
        )
    return StoreUnavailable(
        "This database does not use Citus yet; let an administrator run in it, on every node: CREATE EXTENSION citus"
    )
