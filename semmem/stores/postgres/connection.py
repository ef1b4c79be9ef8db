"""Connect to PostgreSQL and run work on a connection: with retries, a time limit, in a transaction."""

from __future__ import annotations

import logging
import os
import selectors
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from itertools import chain
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias, TypeVar
from weakref import WeakSet

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.pq import PipelineStatus, TransactionStatus
from psycopg_pool import ConnectionPool, PoolClosed, PoolTimeout

from semmem.model.errors import (
    Conflict,
    InvalidInput,
    StoreClosed,
    StoreError,
    StoreUnavailable,
)
from semmem.model.exchange import RowIds, apart
from semmem.model.filters import UNSTORABLE_TEXT
from semmem.model.process.clock import standing
from semmem.model.reports import PoolUse
from semmem.stores.postgres import row_security
from semmem.stores.postgres.encoding import register_arrays
from semmem.stores.postgres.errors import (
    OTHER_SCHEMA,
    bound_since,
    error_at_connect,
    error_at_work,
    lost,
    moving,
    planned_for_one,
    shard_moved,
    starting,
    unprepared,
)
from semmem.stores.postgres.migrate import migrate, newer, require_newest
from semmem.stores.postgres.typed import Connection, Cursor, TupleRow, only
from semmem.stores.sql_files import statements
from semmem.text.tokens import unfinished

__all__ = [
    "Interrupted",
    "LogEnd",
    "Pooled",
    "Whole",
    "bounded",
    "by_namespace",
    "on_nodes",
    "pipelined",
    "pipelined_transaction",
    "planned_transaction",
    "sent",
]

# A lost connection is retried or raised as an error; log lines of psycopg and its pool would only alarm users.
logging.getLogger("psycopg").addHandler(logging.NullHandler())

T = TypeVar("T")

_SQL = statements("postgres")

_TRIES = 6
_RENEWALS = 2
"""Beside a connection of before, the pool may be making one that began before, too, and escapes being drained."""

_OTHERS_PATIENCE = 3.0
"""Seconds after which the server notices that a client process was killed."""

_PAUSE = 0.05

_MOVES_S = 0.03
"""Seconds after which a writer tries again while its namespace is being renamed; each pause is four times as long."""

_CONNECT_S = 10
"""Seconds in which a server has to answer a new connection, unless connect_timeout says otherwise."""

_CANCEL_S = 1.0
"""Seconds in which a server has to take the cancelling of a statement."""

_COMMIT_S = 10.0
"""Seconds in which the server has to say how the transaction of a lost connection has ended."""

_AT_ONCE_S = 0.01
"""Seconds for which work that can do without a connection waits for one."""

_SOON_S = 1.0
"""Seconds for which long work that goes faster with a second connection waits for one."""

_ASK_AGAIN_S = 5.0
"""Seconds without a connection after which the server is checked, and the pool has to try a new connection."""

_RENEWED = (
    psycopg.OperationalError,
    psycopg.InterfaceError,
    psycopg.NotSupportedError,
    psycopg.errors.InvalidSqlStatementName,
)
"""Errors after which a thread takes another connection."""

_ON_NODES: WeakSet[Connection] = WeakSet()

_MOST_SIDES = 4
"""Connections on which one call asks several namespaces side by side, at most: half a pool."""

_Query: TypeAlias = tuple[str, Mapping[str, Any]]
"""The name of a statement and its parameters."""


class Interrupted(Exception):
    """A transaction of several calls was lost or rolled back by the server, for its cause; all of it begins again."""


class LogEnd(NamedTuple):
    """Where the log of a primary ends: a position, and the timeline, which is another one after each promotion."""

    position: str
    timeline: int


class Whole:
    """What several calls of one thread, in one transaction, have left to do after the commit."""

    unscrubbed = False


class Pooled:
    """A pool of connections. A function ``conninfo`` is called before each new one, so it can restart the server.

    ``start_timeout_s`` is how long the pool waits for a server that is starting or recovering, ``patience_s`` how long
    for a connection. Without ``migrates``, an older schema is refused; where that is None, the schema is not looked at.

    ``use`` is another object after each use of a connection, so whoever keeps one knows of later uses.
    """

    def __init__(
        self,
        url: str,
        conninfo: str | Callable[[], str],
        *,
        pool_size: int = 8,
        start_timeout_s: float = 120.0,
        before_migration: Callable[[Connection, int, int], None] | None = None,
        migrates: bool | None = True,
        patience_s: float = 30,
    ) -> None:
        self.url = url
        self.use = object()
        self._local = threading.local()
        self._process = os.getpid()
        if isinstance(conninfo, str):
            conninfo = bounded(conninfo)
        self.conninfo = conninfo if callable(conninfo) else lambda: conninfo
        self._start_timeout_s = start_timeout_s
        if migrates:
            migrate(conninfo, before=before_migration, start_timeout_s=start_timeout_s)
        elif migrates is not None:
            require_newest(conninfo, start_timeout_s=start_timeout_s)
        self._pool = ConnectionPool(
            conninfo=conninfo,
            min_size=1,
            max_size=pool_size,
            kwargs={"autocommit": True},
            configure=_configure,
            open=True,
            timeout=patience_s,
            max_idle=60,
            reconnect_timeout=_ASK_AGAIN_S,
            name="semmem",
        )

    def close(self) -> None:
        """Close the connections; the data stays. In a child process they are the parent's, and stay open."""
        if self._process == os.getpid():
            self._pool.close()

    @contextmanager
    def session(self) -> Iterator[Callable[[], None]]:
        """Reserve a connection for this thread inside the block, so that many small queries take it only once.

        Yields a function by which another thread cancels the running statement, such as when a leg's time is up.
        """
        hold = _Hold(self._pool, self._take)
        outer, self._local.hold = getattr(self._local, "hold", None), hold
        try:
            yield hold.cancel
        finally:
            self._local.hold = outer
            hold.let_go()

    @property
    def in_whole(self) -> Whole | None:
        """What the calls of this thread have left to do, where they are in one transaction; see ``whole``."""
        hold: _Hold | None = getattr(self._local, "hold", None)
        return None if hold is None else hold.whole

    @contextmanager
    def whole(self) -> Iterator[tuple[Connection, Whole]]:
        """Run all that this thread does inside the block in one transaction: all of it is stored, or nothing.

        A transaction inside it is a savepoint. Nothing is tried again by itself: Interrupted is raised where it all has
        to begin again, and psycopg's own errors.
        """
        with self.session(), self._pool_errors():
            hold: _Hold = self._local.hold
            connection = hold.connection()
            whole = hold.whole = Whole()
            row_security.permit(connection)
            try:
                with connection.transaction():
                    yield connection, whole
            finally:
                self.use = object()

    @contextmanager
    def _pool_errors(self) -> Iterator[None]:
        try:
            yield
        except PoolClosed as error:
            raise StoreClosed() from error
        except PoolTimeout as error:
            raise self._unserved(self._refusal()) from error

    @property
    def pool_use(self) -> PoolUse:
        """The connections that this process uses now."""
        stats = self._pool.get_stats()
        in_use = stats.get("pool_size", 0) - stats.get("pool_available", 0)
        return PoolUse(in_use, stats.get("requests_waiting", 0), self._pool.max_size)

    def renew(self, error: psycopg.Error) -> None:
        """Replace the connections that are lost, or all where ``error`` says that the store has changed under them."""
        with self._pool_errors():
            if planned_for_one(error) or bound_since(error) or unprepared(error):
                self._pool.drain()
            else:
                self._pool.check()

    @staticmethod
    def passing(error: psycopg.Error) -> bool:
        """Return whether the same work may succeed when it is done again."""
        again = psycopg.errors.DeadlockDetected | psycopg.errors.SerializationFailure
        aborted = isinstance(error, psycopg.errors.InFailedSqlTransaction)
        renewed = planned_for_one(error) or bound_since(error) or unprepared(error) or shard_moved(error)
        return isinstance(error, again) or lost(error) or aborted or bool(moving(error)) or renewed

    def told(self, error: BaseException | None) -> BaseException:
        """Return the error to raise for one that remains."""
        return self._error_of(error) if isinstance(error, psycopg.Error) else StoreUnavailable(str(error))

    @contextmanager
    def lasting(self) -> Iterator[Connection]:
        """Yield a connection for work of minutes; a failure is raised as one sentence, and nothing is tried again."""
        try:
            with self._used() as connection:
                yield connection
        except PoolClosed as error:
            raise StoreClosed() from error
        except PoolTimeout as error:
            raise self._unserved(self._refusal()) from error
        except psycopg.Error as error:
            raise self._error_of(error) from error

    @contextmanager
    def another(self) -> Iterator[Connection | None]:
        """Yield one more connection of the pool, None where all are in use or it cannot be made."""
        with ExitStack() as taken:
            try:
                connection = taken.enter_context(self._borrowed(_SOON_S))
            except (PoolTimeout, psycopg.OperationalError):
                connection = None
            yield connection

    @contextmanager
    def rebuilding(self) -> Iterator[None]:
        """Lock out other rebuilds of this store, in all processes. Raises Conflict while another one runs."""
        connection = self.own_connection()
        try:  # not a context manager, which would raise at the end if this connection was lost after all work is done
            end = time.monotonic() + _OTHERS_PATIENCE
            while not only(connection.execute(_SQL["rebuild_lock"]))[0]:
                if time.monotonic() > end:
                    raise Conflict("Another process rebuilds this store; wait until it is done, or stop it.")
                time.sleep(_PAUSE)
            yield
        finally:
            connection.close()

    def own_connection(self, settings: Mapping[str, str] = MappingProxyType({})) -> Connection:
        """Return a connection beside the pool, for locks of a session, to be closed. Raises StoreUnavailable.

        ``settings`` are settings of the server that hold from the beginning of the session.
        """
        self.run(lambda c: c.execute("SELECT 1"))  # which tries again
        conninfo = self.conninfo()
        if settings:
            given = conninfo_to_dict(conninfo).get("options") or _default_options()
            options = " ".join([str(given), *(f"-c {name}={value}" for name, value in settings.items())])
            conninfo = make_conninfo(conninfo, options=options)
        try:
            return psycopg.connect(conninfo, autocommit=True)
        except psycopg.OperationalError as error:
            raise self._unserved(error) from error

    def _take(self, patience_s: float | None = None) -> Connection:
        """Take a connection from the pool; where none is idle, first make sure that the server can be reached.

        The pool itself would retry at growing intervals without reporting why. Raises PoolTimeout after ``patience_s``
        seconds, by default those of the pool.
        """
        if self._process != os.getpid():
            raise StoreUnavailable("The store stays with the process that opened it; connect in this process too.")
        end = time.monotonic() + (self._pool.timeout if patience_s is None else patience_s)
        while True:
            if self._pool.closed:
                raise StoreClosed()
            if not self._pool.get_stats().get("pool_available"):
                self.conninfo()  # starts a server that has stopped
            try:
                return self._pool.getconn(timeout=min(_ASK_AGAIN_S, max(end - time.monotonic(), 0.01)))
            except PoolTimeout:
                if time.monotonic() >= end:
                    raise

    @contextmanager
    def _borrowed(self, patience_s: float | None = None) -> Iterator[Connection]:
        """Take a connection for one piece of work, like the pool's own ``connection``."""
        connection = self._take(patience_s)
        try:
            with connection:
                row_security.permit(connection)
                yield connection
        finally:
            self._pool.putconn(connection)

    @contextmanager
    def _used(self) -> Iterator[Connection]:
        """Take a connection as ``_borrowed`` does, and note its use once it is over."""
        with self._borrowed() as connection:
            try:
                yield connection
            finally:
                self.use = object()

    def log_end(self, *, patient: bool = True) -> LogEnd:
        """Return where the log of the server ends now; this is no use of it. Raises StoreUnavailable.

        Where it is not ``patient``, it waits for no connection, and one that is made meanwhile serves the next call.
        """
        try:
            with self._pool_errors(), self._borrowed(None if patient else _AT_ONCE_S) as connection:
                return LogEnd(*only(connection.execute(_SQL["log_end"])))
        except psycopg.Error as error:
            raise StoreUnavailable(str(error)) from error

    def _once(self, work: Callable[[Connection], T]) -> T:
        hold: _Hold | None = getattr(self._local, "hold", None)
        if hold is None:
            with self._used() as connection:
                return work(connection)
        connection = hold.connection()
        try:
            row_security.permit(connection)
            return work(connection)
        except _RENEWED:
            if hold.whole is None:
                hold.let_go()  # the pool replaces a broken connection
            raise
        finally:
            self.use = object()

    def run(
        self, work: Callable[[Connection], T], on_loss: Callable[[], object] = lambda: None, *, patient: bool = True
    ) -> T:
        """Run ``work`` on a connection; retry after deadlocks and lost connections, as writes are idempotent.

        ``on_loss`` is called before the retry after a lost connection, whose transaction may have been committed.
        Where it is not ``patient``, it does not wait for the end of a rename.
        """
        if self.in_whole is not None:
            return self._in_whole(work)
        end = time.monotonic() + self._start_timeout_s
        for attempt in range(_TRIES):
            try:
                return self._once(work)
            except (psycopg.errors.DeadlockDetected, psycopg.errors.SerializationFailure) as error:
                if attempt == _TRIES - 1:
                    raise self._error_of(error) from error
                time.sleep(0.01 * 2**attempt)
            except UnicodeEncodeError as error:
                raise InvalidInput(UNSTORABLE_TEXT) from error
            except PoolClosed as error:
                raise StoreClosed() from error
            except PoolTimeout as error:
                refusal = self._refusal()
                recovers = isinstance(refusal, psycopg.Error) and starting(refusal)
                if not recovers or attempt == _TRIES - 1 or time.monotonic() >= end:
                    raise self._unserved(refusal) from error
            except psycopg.Error as error:
                is_lost = lost(error)
                waits = shard_moved(error) or (patient and moving(error))
                renew = unprepared(error) or (attempt < _RENEWALS and (planned_for_one(error) or bound_since(error)))
                if not (is_lost or renew or waits) or attempt == _TRIES - 1:
                    raise self._error_of(error) from error
                if renew:
                    self._pool.drain()
                    continue
                if waits:
                    time.sleep(_MOVES_S * 4**attempt)
                    continue
                on_loss()
                self._pool.check()  # after a restart of the server all idle connections are dead
                time.sleep(0.1 * 2**attempt)
        raise AssertionError("unreachable")

    def _in_whole(self, work: Callable[[Connection], T]) -> T:
        """Run ``work`` once, as a part of a whole; see ``whole``."""
        try:
            return self._once(work)
        except psycopg.Error as error:
            if self.passing(error):
                raise Interrupted() from error
            raise self._error_of(error) from error

    def _error_of(self, error: psycopg.Error) -> Exception:
        """Return the error to raise for one that remains; semmem's own errors are returned unchanged."""
        late = newer(self.conninfo()) if error.sqlstate in OTHER_SCHEMA else None
        return late or error_at_work(error) or error

    def _refusal(self) -> psycopg.OperationalError | StoreUnavailable | None:
        """Return the error that a new connection gets now; None where one can be made."""
        try:
            psycopg.connect(self.conninfo()).close()
        except (psycopg.OperationalError, StoreUnavailable) as error:  # StoreUnavailable comes from the embedded server
            return error
        return None

    def _unserved(self, refusal: psycopg.OperationalError | StoreUnavailable | None) -> StoreUnavailable:
        """Return the error for a missing connection: that of a new one, else that all connections are in use."""
        if isinstance(refusal, StoreUnavailable):
            return refusal
        if refusal is not None:
            return StoreUnavailable(error_at_connect(refusal, self.conninfo()).message)
        return StoreUnavailable(
            f"All {self._pool.max_size} connections of this process were in use for {self._pool.timeout:g} s; raise "
            "SEMMEM_POOL_SIZE, or ask less at once."
        )

    @contextmanager
    def idle(self) -> Iterator[Connection]:
        """Yield a connection that is idle now. Raises StoreUnavailable.

        For work that can be left out: no connection is made, no server started, and nothing tried again.
        """
        idle = not self._pool.closed and self._pool.get_stats().get("pool_available")
        if not idle:
            raise StoreUnavailable("No connection to this store is idle.")
        with self.lasting() as connection, selectors.DefaultSelector() as selector:
            selector.register(connection.fileno(), selectors.EVENT_READ)
            if selector.select(0):  # a server sends a message when it stops
                raise StoreUnavailable("The server of this store has gone.")
            yield connection

    def execute(self, statement: str, parameters: Mapping[str, Any]) -> None:
        """Run one statement, as a transaction of its own."""
        self.run(lambda c: c.execute(_SQL[statement], parameters))

    def row(self, statement: str, parameters: Mapping[str, Any]) -> TupleRow:
        """Fetch the row of a statement that always returns one."""
        return self.rows(statement, parameters)[0]

    def rows(self, statement: str, parameters: Mapping[str, Any]) -> list[TupleRow]:
        """Fetch all rows in binary format, so that bytea and numbers need no parsing."""
        return self.run(lambda c: c.execute(_SQL[statement], parameters, binary=True).fetchall())

    def together(self, *queries: tuple[str, Mapping[str, Any]], planned: bool = False) -> list[list[TupleRow]]:
        """Fetch all rows of several statements, which are sent together, in one round trip.

        ``planned`` plans them for these parameters and for the tables as they are, because a general plan for filters
        uses no index, nor does one of an empty table. Where namespaces lie on several nodes, those of different
        namespaces are asked side by side.
        """

        def read(connection: Connection, some: Sequence[_Query]) -> list[list[TupleRow]]:
            with planned_transaction(connection) if planned else pipelined(connection):
                cursors = [connection.execute(_SQL[name], parameters, binary=True) for name, parameters in some]
            return [[] if cursor.rownumber is None else cursor.fetchall() for cursor in cursors]

        def work(connection: Connection) -> list[list[TupleRow]]:
            outside = connection.info.transaction_status == TransactionStatus.IDLE
            sides = _sides(queries) if outside and on_nodes(connection) else []
            return self._side_by_side(connection, sides, queries, read) if sides else read(connection, queries)

        return self.run(work)

    def _side_by_side(
        self,
        connection: Connection,
        sides: Sequence[Sequence[int]],
        queries: Sequence[_Query],
        read: Callable[[Connection, Sequence[_Query]], list[list[TupleRow]]],
    ) -> list[list[TupleRow]]:
        """Read each side, some of ``queries``, on a connection of its own; where none is idle, after the first side."""

        def beside(side: Sequence[int]) -> list[list[TupleRow]] | None:
            try:
                with self._borrowed(_AT_ONCE_S) as other:
                    return read(other, [queries[place] for place in side])
            except PoolTimeout:
                return None

        with ThreadPoolExecutor(len(sides) - 1) as threads:
            futures = [threads.submit(beside, side) for side in sides[1:]]
            found = [read(connection, [queries[place] for place in sides[0]])]
        for future, side in zip(futures, sides[1:], strict=True):
            found.append(future.result() or read(connection, [queries[place] for place in side]))
        rows: dict[int, list[TupleRow]] = {}
        for side, some in zip(sides, found, strict=True):
            rows |= zip(side, some, strict=True)
        return [rows[place] for place in range(len(queries))]

    def languages(self) -> Mapping[str, str]:
        """Return the language in which the memories of each namespace were extracted."""
        return dict(self.rows("language_list", {}))

    def set_language(self, namespace: str, language: str, *, done: bool) -> None:
        """Record that a namespace's memories are being extracted in ``language``, or with ``done`` that they were."""
        parameters = {"namespace": namespace, "language": language, "unfinished": unfinished(language)}
        self.execute("language_end" if done else "language_begin", parameters)

    def named(
        self, statement: str, names: Collection[tuple[str, str]], *, planned: bool = False
    ) -> list[tuple[str, list[TupleRow]]]:
        """Fetch the rows of a statement about some (namespace, id), by namespace, in one round trip; see together."""
        each = by_namespace(names)
        queries = [(statement, {"namespace": n, "ids": ids}) for n, ids in each.items()]
        together = planned or len(queries) > 1
        rows = self.together(*queries, planned=planned) if together else [self.rows(*one) for one in queries]
        return list(zip(each, rows, strict=True))

    def among(
        self, statement: str, namespaces: Sequence[str], row_ids: RowIds, **more: object
    ) -> list[tuple[int, list[TupleRow]]]:
        """Fetch the rows of a statement about some row ids, each with the place of its namespace, in one round trip.

        A row id in a row is local to its namespace: see ``placed``.
        """
        groups = apart(namespaces, row_ids)
        queries = [(statement, {"namespace": n, "ords": own, **more}) for _, n, own in groups]
        rows = self.together(*queries) if len(queries) > 1 else [self.rows(*one) for one in queries]
        return [(place, group_rows) for (place, _, _), group_rows in zip(groups, rows, strict=True)]

    def transaction(self, work: Callable[[Connection], T], *, patient: bool = True) -> T:
        """Run ``work`` in a transaction; it may be repeated after it was committed, see ``run``."""

        def run(connection: Connection) -> T:
            with connection.transaction():
                return work(connection)

        return self.run(run, patient=patient)

    def transaction_once(self, work: Callable[[Connection], T]) -> T:
        """Run ``work`` in a transaction; where the answer to its commit is lost, the server is asked how it ended.

        For work that differs when it is repeated: it counts, or says how many there were.
        """
        if self.in_whole is not None:  # where nothing is done again
            return self.transaction(work)
        done: list[tuple[TupleRow, T]] = []

        def run(connection: Connection) -> T:
            if done and _was_committed(connection, *done[0][0]):
                return done[0][1]
            try:
                with pipelined(connection):  # psycopg's own transaction would wait for BEGIN
                    connection.execute("BEGIN")
                    cursor = connection.execute(_SQL["transaction_id"])
                id = only(cursor)
                result = work(connection)
                done[:] = [(id, result)]
                connection.execute("COMMIT")
            except BaseException:
                if not connection.closed and connection.info.transaction_status != TransactionStatus.IDLE:
                    connection.rollback()
                raise
            return result

        return self.run(run)


def _was_committed(connection: Connection, id: str, timeline: int) -> bool:
    """Return whether a transaction was committed; waits while the server still ends it. Raises StoreUnavailable.

    ``pg_xact_status`` is PostgreSQL's own answer to a client that was cut off during its COMMIT. A server that has
    taken over, which has another timeline, may have given the number again.
    """
    end = time.monotonic() + _COMMIT_S
    while True:
        try:
            status, now = only(connection.execute(_SQL["transaction_status"], {"id": id, "timeline": timeline}))
        except psycopg.errors.InvalidParameterValue:  # a number that the server, after a crash, has yet to give
            return False
        if now == timeline and status != "in progress":
            return bool(status == "committed")
        if now != timeline or time.monotonic() > end:
            raise StoreUnavailable(
                "The database server does not say whether the last change was stored; look before you try again."
            )
        time.sleep(_PAUSE)


def bounded(conninfo: str) -> str:
    """Return ``conninfo`` with a bound on the time of a connection, unless it or the environment sets one.

    psycopg itself waits 130 s for a machine that does not answer.
    """
    try:
        given = psycopg.pq.Conninfo.parse(conninfo.encode())
    except psycopg.OperationalError:  # connecting says why it cannot be read
        return conninfo
    if any(one.val for one in (*given, *psycopg.pq.Conninfo.get_defaults()) if one.keyword == b"connect_timeout"):
        return conninfo
    join = " " if "://" not in conninfo else "&" if "?" in conninfo else "?"
    return f"{conninfo}{join}connect_timeout={_CONNECT_S}"


def sent(
    connection: Connection, statement: str, each: Iterable[tuple[str, Mapping[str, Any]]], *, binary: bool = False
) -> dict[str, Cursor]:
    """Send a statement for several namespaces, each with its parameters, in one round trip; return their cursors.

    The server executes them in the order given: that is the order in which they lock. For none, nothing is sent.
    """
    queries = iter(each)
    if (first := next(queries, None)) is None:
        return {}
    with pipelined(connection):
        return {
            namespace: connection.execute(_SQL[statement], {"namespace": namespace, **parameters}, binary=binary)
            for namespace, parameters in chain((first,), queries)
        }


@contextmanager
def pipelined(connection: Connection) -> Iterator[None]:
    """Send the statements of the block together; their results are available after it.

    Within such a block it is a part of that one: psycopg would wait there for results of what it has not sent to the
    end, for ever where the server is slower than the client. With a client library before version 14 each statement is
    sent by itself.
    """
    if not psycopg.Pipeline.is_supported() or connection.pgconn.pipeline_status != PipelineStatus.OFF:
        yield
        return
    try:
        with connection.pipeline():
            yield
    except psycopg.Error:
        if connection.info.transaction_status == TransactionStatus.IDLE:
            with suppress(psycopg.Error):  # psycopg counts on statements that the server did not come to prepare
                connection.execute("DEALLOCATE ALL")
        raise


@contextmanager
def pipelined_transaction(connection: Connection, behind: Callable[[], object] = lambda: None) -> Iterator[None]:
    """Send the statements of the block together, in a transaction; fetching a result inside costs a round trip.

    ``behind`` executes statements after the commit, in the same round trip; where only these fail, they have no result.
    psycopg's own ``transaction`` would wait for BEGIN, and twice around COMMIT.
    """
    if not psycopg.Pipeline.is_supported():
        with connection.transaction():
            yield
        behind()
        return
    if connection.info.transaction_status == TransactionStatus.INTRANS:  # a part of a whole
        try:
            with connection.pipeline():
                connection.execute("SAVEPOINT part")
                yield
                connection.execute("RELEASE part")
                behind()
        except BaseException:
            with suppress(psycopg.Error):
                connection.execute("ROLLBACK TO part")
            raise
        return
    commit: Cursor | None = None
    try:
        with connection.pipeline():
            connection.execute("BEGIN")
            yield
            commit = connection.execute("COMMIT")
            behind()
    except BaseException as error:
        committed = commit is not None and commit.statusmessage == "COMMIT"
        if not connection.closed and connection.info.transaction_status != TransactionStatus.IDLE:
            connection.rollback()
        if not committed or not isinstance(error, psycopg.Error):
            raise


@contextmanager
def planned_transaction(connection: Connection) -> Iterator[None]:
    """Send the statements of the block as ``pipelined_transaction`` does, planned for their parameters and the tables.

    In a part of a whole the connection's way of planning comes back behind them.
    """
    goes_on = connection.info.transaction_status == TransactionStatus.INTRANS
    with pipelined_transaction(connection):
        connection.execute(_SQL["plan_for_these"])
        yield
        if goes_on and not on_nodes(connection):
            connection.execute(_SQL["plan_for_any"])


def _sides(queries: Sequence[_Query]) -> list[list[int]]:
    """Return the places of queries that are asked side by side, each namespace on one side; none for one namespace."""
    names = dict.fromkeys(parameters.get("namespace") for _, parameters in queries)
    sides: list[list[int]] = [[] for _ in range(min(len(names), _MOST_SIDES))]
    side_of = {name: sides[number % len(sides)] for number, name in enumerate(names)}
    for place, (_, parameters) in enumerate(queries):
        side_of[parameters.get("namespace")].append(place)
    return sides if len(sides) > 1 else []


def on_nodes(connection: Connection) -> bool:
    """Return whether a connection of a pool is to a database with Citus."""
    return connection in _ON_NODES


def _configure(connection: Connection) -> None:
    planning, _, bound = only(connection.execute(_SQL["session"]))
    if planning == "force_custom_plan":
        _ON_NODES.add(connection)
    row_security.note(connection, bound=bound)
    register_arrays(connection)
    connection.prepare_threshold = 3


class _Hold:
    """One connection of the pool, taken when first needed."""

    def __init__(self, pool: ConnectionPool[Connection], take: Callable[[], Connection]) -> None:
        self._pool = pool
        self._take = take
        self._lock = threading.Lock()
        self._connection: Connection | None = None
        self._over = False
        self.whole: Whole | None = None
        """What is left to do after the one transaction that the connection is held for."""

    def connection(self) -> Connection:
        """Return the connection; the first call takes it from the pool."""
        if self._connection is None:
            with standing():
                connection = self._take()
            with self._lock:
                self._connection = connection
        if self._over:
            raise StoreError("The time limit of this look-up has passed.")
        return self._connection

    def let_go(self) -> None:
        """Return the connection to the pool."""
        with self._lock:
            connection, self._connection = self._connection, None
        if connection is not None:
            self._pool.putconn(connection)

    def cancel(self) -> None:
        """Cancel the statement that runs on the connection, if it is still held; the lock protects other work.

        No statement begins on it afterwards.
        """
        self._over = True
        with self._lock:
            if self._connection is not None:
                self._connection.cancel_safe(timeout=_CANCEL_S)


def by_namespace(names: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    """Return the ids of some (namespace, id) by namespace; namespaces and ids are sorted."""
    ids_by_namespace: dict[str, list[str]] = {}
    for namespace, id in sorted(names):
        ids_by_namespace.setdefault(namespace, []).append(id)
    return ids_by_namespace


def _default_options() -> str:
    """Return the options of a session where none are given, as libpq has them: those of PGOPTIONS."""
    defaults = psycopg.pq.Conninfo.get_defaults()
    return next(((one.val or b"").decode() for one in defaults if one.keyword == b"options"), "")
