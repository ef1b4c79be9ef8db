"""Connections to one SQLite file: run work in transactions, and try again while the file is locked.

The file is in WAL mode, so readers and the one writer do not wait for each other. Writers of several processes queue:
each takes the write lock before it reads anything (BEGIN IMMEDIATE), SQLite waits for the lock (busy_timeout), and work
that is still locked then is tried again a bounded number of times.
"""

from __future__ import annotations

import fcntl
import json
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, nullcontext, suppress
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from semmem.files import claimed, file_number, in_no_folder
from semmem.model.errors import (
    Conflict,
    InvalidInput,
    SchemaTooNew,
    SchemaTooOld,
    SemmemError,
    StoreClosed,
    StoreError,
    StoreUnavailable,
)
from semmem.model.exchange import RowIds, apart
from semmem.model.filters import UNSTORABLE_TEXT, contains
from semmem.model.process.clock import standing
from semmem.model.process.forks import in_child, undivided
from semmem.model.reports import PoolUse
from semmem.stores.sql_files import (
    changed_by_newer,
    check_step,
    each_statement,
    migrations,
    statements,
    too_old,
    unmigrated,
)
from semmem.text.tokens import unfinished

__all__ = [
    "APPLICATION", "REQUEST", "Filed", "Migration", "Opened", "Whole", "is_busy", "migrate", "present",
    "require_newest", "schema_of", "sentence",
]  # fmt: skip

T = TypeVar("T")

Migration = Callable[[sqlite3.Connection, str], int]
"""``migrate`` or ``require_newest``: returns the number of the schema of a file, given the file's name in messages."""

_SQL = statements("sqlite")

_BUSY_S = 10.0

_TRIES = 4

_REBUILD = "rebuild"
"""The lock of a rebuild."""
REQUEST = "request-"
"""The beginning of the name of the lock of a request that is done once; behind it are 16 hexadecimal digits."""
_LOOKS, _LOOK_S = 5, 0.002
"""How often a lock is tried that somebody may just be looking at, and the seconds between."""

_SESSION = (
    "PRAGMA synchronous = FULL",  # a committed memory survives a power cut, in WAL mode too
    "PRAGMA secure_delete = ON",  # forgotten bytes are overwritten in the file
    "PRAGMA cache_size = -16000",
    "PRAGMA temp_store = MEMORY",
)


class Whole:
    """One transaction of several calls of one thread, which begins with the first write; see ``Filed.whole``.

    ``unscrubbed``: the file is to be rewritten after the commit.
    """

    def __init__(self, at_begin: Callable[[sqlite3.Connection], None]) -> None:
        self.connection: sqlite3.Connection | None = None
        self.unscrubbed = False
        self.at_begin = at_begin


class Opened(sqlite3.Connection):
    """A connection; ``file`` tells the file that it has opened from others that are put at its path later."""

    file: tuple[int, int] | None = None


class Filed:
    """A few connections to a file, opened when first needed; a ``path`` of None is a database in memory.

    The first one runs ``migration``, by default ``migrate``.
    """

    def __init__(self, url: str, path: Path | None, *, pool_size: int = 8, migration: Migration | None = None) -> None:
        self.url = url
        self._path = path
        self._place = "The database in memory" if path is None else f"The file {path}"
        self._most = 1 if path is None else max(1, pool_size)
        self._free = threading.Condition()
        self._idle: list[sqlite3.Connection] = []
        self._parent_connections: list[sqlite3.Connection] = []
        self._open = self._waiting = 0
        self._closed = False
        self._rebuilds = False
        self._process = os.getpid()
        self._running = threading.local()
        in_child(self)
        self._run(partial(self._prepare, migration or migrate))
        self._opened = file_number(path)

    @property
    def pool_use(self) -> PoolUse:
        """The connections that this process uses now."""
        with self._free:
            return PoolUse(self._open - len(self._idle), self._waiting, self._most)

    @property
    def is_ready(self) -> bool:
        """Whether a connection is free, and the file that was opened is still the one at its path."""
        with self._free:
            return bool(self._idle) and self._opened is not None and file_number(self._path) == self._opened

    def close(self) -> None:
        """Close the connections; data in a file stays, data in memory is lost."""
        with self._free:
            self._closed = True
            idle, self._idle = self._idle, []
            self._free.notify_all()
        undivided.begin()
        try:
            for connection in idle:
                connection.close()
        finally:
            undivided.end()

    @contextmanager
    def session(self) -> Iterator[Callable[[], None]]:
        """Yield a function by which another thread can stop the statement of this thread, as when a leg's time is up.

        No connection is reserved, because taking one costs only microseconds here.
        """
        hold = _Hold()
        outer, self._running.hold = getattr(self._running, "hold", None), hold
        try:
            yield hold.cancel
        finally:
            self._running.hold = outer

    # ------------------------------------------------------------------ work

    def _rows(self, statement: str, parameters: Mapping[str, Any]) -> list[Any]:
        """Fetch all rows of one named statement; list and tuple parameters are passed as JSON."""
        values = {k: json.dumps(v) if isinstance(v, list | tuple) else v for k, v in parameters.items()}
        return self._run(lambda c: c.execute(_SQL[statement], values).fetchall())

    def languages(self) -> Mapping[str, str]:
        """Return the language in which the memories of each namespace were extracted."""
        return dict(self._rows("language_list", {}))

    def set_language(self, namespace: str, language: str, *, done: bool) -> None:
        """Record that a namespace's memories are being extracted in ``language``, or with ``done`` that they were."""
        parameters = {"namespace": namespace, "language": language, "unfinished": unfinished(language)}
        self._writing(lambda c: c.execute(_SQL["language_end" if done else "language_begin"], parameters))

    def among(
        self, statement: str, namespaces: Sequence[str], row_ids: RowIds, **more: object
    ) -> list[tuple[int, list[Any]]]:
        """Fetch the rows of a statement about some row ids, each with the place of its namespace.

        A row id in a row is local to its namespace: see ``placed``.
        """
        groups = apart(namespaces, row_ids)
        return [(place, self._rows(statement, {"namespace": n, "ords": o.tolist(), **more})) for place, n, o in groups]

    @contextmanager
    def whole(self, at_begin: Callable[[sqlite3.Connection], None]) -> Iterator[Whole]:
        """Store all that this thread writes inside the block in one transaction, or nothing of it.

        The first write takes the write lock and calls ``at_begin``. A transaction inside it is a savepoint.
        """
        whole = self._running.whole = Whole(at_begin)
        try:
            yield whole
            if whole.connection is not None:
                self._run(lambda c: c.execute("COMMIT"))
        finally:
            self._running.whole = None
            if (connection := whole.connection) is not None:
                with suppress(sqlite3.Error):
                    if connection.in_transaction:
                        connection.execute("ROLLBACK")
                self._give(connection)

    @property
    def in_whole(self) -> Whole | None:
        """The transaction that the calls of this thread are parts of, if there is one."""
        return getattr(self._running, "whole", None)

    @contextmanager
    def rebuilding(self) -> Iterator[None]:
        """Lock out other rebuilds of this file, in all processes. Raises Conflict while another one runs.

        Renames and copies of namespaces are locked out too: one that has begun ends first, and others are refused.
        """
        with self._rebuilding_here(), self.held(_REBUILD, _rebuilt_elsewhere):
            self._writing(lambda connection: None)  # waits for who has the write lock, see refuse_beside_rebuild
            yield

    def refuse_beside_rebuild(self) -> None:
        """Raise Conflict while somebody rebuilds this file; a caller with the write lock has no rebuild begin."""
        if self._rebuilds or (self._path is not None and _is_held(_lock_file(self._path, _REBUILD))):
            raise _rebuilt_elsewhere()

    @contextmanager
    def held(self, name: str, refused: Callable[[], Exception]) -> Iterator[None]:
        """Hold a lock on something of this file, in all processes. Raises ``refused`` where somebody has it.

        A database in memory is that of one process, and no lock is held.
        """
        if self._path is None:
            yield
            return
        with _held(_lock_file(self._path, name), refused):
            yield

    def remove_left_locks(self) -> None:
        """Remove the files of locks that killed processes have left.

        The caller has the write lock, as who looks for a rebuild has: else one would be seen in what is removed.
        """
        if self._path is None:
            return
        with suppress(OSError):  # a folder whose files may not be listed
            for path in self._path.parent.iterdir():
                if path.name.startswith(f"{self._path.name}-") and _is_lock(path.name[len(self._path.name) + 1 :]):
                    _remove_left(path)

    @contextmanager
    def _rebuilding_here(self) -> Iterator[None]:
        """Lock out other threads: the lock of a file is a process's own."""
        with self._free:
            if self._rebuilds:
                raise _rebuilt_elsewhere()
            self._rebuilds = True
        try:
            yield
        finally:
            self._rebuilds = False

    def _begin_whole(self, whole: Whole) -> None:
        """Take a connection and the write lock for the calls of this thread."""
        connection = self._take()
        try:
            connection.execute("BEGIN IMMEDIATE")
            whole.at_begin(connection)
        except BaseException:
            with suppress(sqlite3.Error):
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
            self._give(connection)
            raise
        whole.connection = connection

    def _reading(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Run ``work`` so that all its statements see one snapshot."""
        return self._run(lambda c: _transaction(c, "BEGIN", work))

    def _writing(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Run ``work`` with the write lock: all of it is stored, or nothing."""
        if (whole := self.in_whole) is not None and whole.connection is None:
            self._retried(lambda: self._begin_whole(whole))
        return self._run(lambda c: _transaction(c, "BEGIN IMMEDIATE", work))

    def _writing_at_once(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Run ``work`` with the write lock. Raises sqlite3.Error where somebody has it, without waiting."""
        with self._borrowed() as connection:
            connection.execute("PRAGMA busy_timeout = 0")
            try:
                return _transaction(connection, "BEGIN IMMEDIATE", work)
            finally:
                connection.execute(f"PRAGMA busy_timeout = {int(_BUSY_S * 1_000)}")

    def _run(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Run ``work`` on a connection; try again while the file is locked, and raise other errors as one sentence."""

        def once() -> T:
            with self._borrowed() as connection:
                return work(connection)

        return self._retried(once)

    def _retried(self, work: Callable[[], T]) -> T:
        for attempt in range(_TRIES):
            try:
                return work()
            except UnicodeEncodeError as error:
                raise InvalidInput(UNSTORABLE_TEXT) from error
            except sqlite3.Error as error:
                if not is_busy(error) or attempt == _TRIES - 1:
                    replacement = self._newer(error) or sentence(error, self._place)
                    if replacement is None:
                        raise
                    raise replacement from error
            time.sleep(0.05 * 2**attempt)
        raise AssertionError("unreachable")

    def _newer(self, error: sqlite3.Error) -> SchemaTooNew | None:
        """Return the error to raise where a newer semmem has changed the tables since this process opened the file."""
        if not any(
            words in str(error) for words in ("no such column", "no such table", "no such index", "has no column")
        ):
            return None
        newest = migrations("sqlite")[-1][0]
        try:
            with self._borrowed() as connection:
                number = int(connection.execute(_SQL["migration_number"]).fetchone()[0])
        except sqlite3.Error:
            return None
        return SchemaTooNew(changed_by_newer(number, newest)) if number > newest else None

    # ------------------------------------------------------------------ connections

    @contextmanager
    def _borrowed(self) -> Iterator[sqlite3.Connection]:
        if (whole := self.in_whole) is not None and whole.connection is not None:
            if not whole.connection.in_transaction:  # as on a full disk
                raise StoreUnavailable("SQLite has undone this request; nothing of it was stored, send it again.")
            yield whole.connection
            return
        hold: _Hold | None = getattr(self._running, "hold", None)
        with nullcontext() if hold is None else standing():  # only a leg has a clock, and a leg has a hold
            connection = self._take()
        try:
            if hold is None:
                yield connection
            else:
                with hold.running(connection):
                    yield connection
        finally:
            self._give(connection)

    def _take(self) -> sqlite3.Connection:
        with self._free:
            if self._path is None and self._process != os.getpid():
                raise StoreUnavailable(
                    "A database in memory stays with the process that opened it; open a store in a file to share it, "
                    "or connect in this process."
                )
            while not self._idle and self._open >= self._most:
                if self._closed:
                    break
                self._waiting += 1
                is_free = self._free.wait(timeout=30)
                self._waiting -= 1
                if not is_free:
                    raise StoreUnavailable(f"All {self._most} connections of this store are busy; try again.")
            if self._closed:
                raise StoreClosed()
            connection = self._idle.pop() if self._idle else None
            self._open += connection is None
        undivided.begin()  # until it is given back
        try:
            return self._connect() if connection is None else connection
        except BaseException:
            undivided.end()
            with self._free:
                self._open -= 1
                self._free.notify()
            raise

    def _give(self, connection: sqlite3.Connection) -> None:
        try:
            with self._free:
                if not self._closed and not connection.in_transaction:
                    self._idle.append(connection)
                    self._free.notify()
                    return
                self._open -= 1
                self._free.notify()
            connection.close()
        finally:
            undivided.end()

    def forked(self) -> None:
        """Drop the connections of a parent process: SQLite forbids a child process to use or close them."""
        self._free = threading.Condition()
        self._parent_connections += self._idle
        self._idle, self._open, self._waiting, self._rebuilds = [], 0, 0, False
        self._running = threading.local()  # the call that forked had reserved a connection of the parent

    def _connect(self) -> sqlite3.Connection:
        if self._path is not None:
            _check_path(self._path)
            self._claim(self._path)
        connection = sqlite3.connect(
            ":memory:" if self._path is None else self._path,
            timeout=_BUSY_S,
            isolation_level=None,  # transactions are begun explicitly
            check_same_thread=False,  # only one thread uses a connection at a time
            factory=Opened,
        )
        connection.file = file_number(self._path)
        try:
            for pragma in _SESSION:
                connection.execute(pragma)
            connection.create_function("contains", 2, _contains, deterministic=True)
        except BaseException:
            connection.close()
            raise
        return connection

    def _claim(self, path: Path) -> None:
        """Create a missing file for its owner alone; the files SQLite puts beside it get the same permissions."""
        with suppress(OSError):  # SQLite reports what is wrong
            if not path.exists():
                claimed(path)

    def _prepare(self, migration: Migration, connection: sqlite3.Connection) -> None:
        """Bring the schema up to date, and switch to WAL mode."""
        migration(connection, self._place)
        if connection.execute("PRAGMA journal_mode").fetchone()[0] == "delete":
            connection.execute("PRAGMA journal_mode = WAL")


@contextmanager
def _held(path: Path, refused: Callable[[], Exception]) -> Iterator[None]:
    """Hold the lock that the file at ``path`` is for, which a killed process releases; the file is there meanwhile."""
    handle = _locked_file(path)
    if handle is None:
        raise refused()
    try:
        yield
    finally:
        path.unlink(missing_ok=True)
        os.close(handle)


def _locked_file(path: Path) -> int | None:
    """Return the open file at ``path``, made if need be, with its lock; None where somebody else has the lock."""
    for _ in range(_LOOKS):
        handle = os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        is_locked = _locked(handle)
        if is_locked and _is_at(path, handle):
            return handle
        os.close(handle)
        if not is_locked:
            break
        # the holder of the lock, or maintain, removed the file after it was opened here
    return None


def _is_lock(name: str) -> bool:
    """Return whether ``name``, which stands behind that of a database file, is that of one of its locks."""
    number = name.removeprefix(REQUEST)
    return name == _REBUILD or (number != name and len(number) == 16 and set(number) <= set("0123456789abcdef"))


def _remove_left(path: Path) -> None:
    """Remove the file of a lock that nobody holds, under that lock: who has just opened it finds it gone."""
    with suppress(OSError):  # another user's, or gone already
        handle = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        try:
            if _locked(handle) and _is_at(path, handle):
                path.unlink()
        finally:
            os.close(handle)


def _is_at(path: Path, handle: int) -> bool:
    """Return whether an open file is still the one at ``path``."""
    status = os.fstat(handle)
    return file_number(path) == (status.st_dev, status.st_ino)


def _locked(handle: int) -> bool:
    """Take the lock of an open file; False where somebody has it, for longer than a look at it takes."""
    for _ in range(_LOOKS):
        with suppress(BlockingIOError):
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        time.sleep(_LOOK_S)
    return False


def _lock_file(path: Path, name: str) -> Path:
    """Return the file whose lock is the one of that name for the database at ``path``."""
    return path.with_name(f"{path.name}-{name}")


def _is_held(path: Path) -> bool:
    """Return whether somebody holds the lock that the file at ``path`` is for; a killed process leaves the file.

    A file that another user left cannot be opened, and counts as left.
    """
    try:
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except (FileNotFoundError, PermissionError):
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(handle)
    return False


def _rebuilt_elsewhere() -> Conflict:
    return Conflict("Another process rebuilds this store; wait until it is done, or stop it.")


class _Hold:
    """The connection on which a thread runs a statement, so that another thread can stop the statement."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._connection: sqlite3.Connection | None = None
        self._over = False

    @contextmanager
    def running(self, connection: sqlite3.Connection) -> Iterator[None]:
        """Let ``cancel`` reach ``connection`` inside the block."""
        with self._lock:
            if self._over:
                raise StoreError("The time limit of this look-up has passed.")
            outer, self._connection = self._connection, connection
        try:
            yield
        finally:
            with self._lock:
                self._connection = outer

    def cancel(self) -> None:
        """Stop the running statement, if any, and let none begin afterwards; the lock protects other work."""
        with self._lock:
            self._over = True
            if self._connection is not None:
                self._connection.interrupt()


def _transaction(connection: sqlite3.Connection, begin: str, work: Callable[[sqlite3.Connection], T]) -> T:
    is_part = connection.in_transaction  # of a whole
    connection.execute("SAVEPOINT part" if is_part else begin)
    try:
        result = work(connection)
        connection.execute("RELEASE part" if is_part else "COMMIT")
    except BaseException:
        if connection.in_transaction:  # on a full disk SQLite has rolled back already
            connection.execute("ROLLBACK TO part" if is_part else "ROLLBACK")
            if is_part:
                connection.execute("RELEASE part")
        raise
    return result


def _contains(stored: str, pattern: str) -> bool:
    """Return whether the JSON ``stored`` contains the JSON ``pattern``, with the rules of PostgreSQL's ``@>``."""
    return contains(json.loads(stored), json.loads(pattern))


def is_busy(error: BaseException) -> bool:
    """Return whether an error means that another connection holds a lock, so that a later try may succeed."""
    return _code(error) in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


def sentence(error: sqlite3.Error, place: str) -> SemmemError | None:
    """Return the error to raise instead of ``error``, about the file ``place``; None to raise ``error`` itself."""
    code = _code(error)
    within = place[0].lower() + place[1:]
    if code == sqlite3.SQLITE_NOTADB:
        return InvalidInput(f"{place} is no SQLite database; name another file, or a new one, after sqlite:.")
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return StoreUnavailable(
            f"Another program keeps a lock on {within}; nothing was stored in part, try again later."
        )
    if code == sqlite3.SQLITE_FULL:
        return StoreUnavailable(
            f"There is no room left on the disk of {within}; nothing was stored in part, make room and try again."
        )
    if code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH):
        return StoreUnavailable(f"{place} may not be written; check the rights of the file and of its folder.")
    if code == sqlite3.SQLITE_CANTOPEN:
        return StoreUnavailable(f"{place} cannot be opened; check the rights of the file and of its folder.")
    if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_FORMAT):
        return StoreUnavailable(f"{place} is damaged ({error}); restore it from a backup.")
    if code == sqlite3.SQLITE_IOERR:
        return StoreUnavailable(
            f"{place} cannot be read or written ({error}); check whether its disk is full or damaged."
        )
    if code == sqlite3.SQLITE_NOMEM:
        return StoreUnavailable(f"There is not enough memory for SQLite to go on with {within}.")
    if "no such module: fts5" in str(error):
        return StoreError("This Python's SQLite has no FTS5, which a SQLite store needs; use embedded: instead.")
    if isinstance(error, sqlite3.ProgrammingError) and "closed" in str(error):
        return StoreClosed()
    if code == sqlite3.SQLITE_INTERRUPT or not isinstance(error, sqlite3.OperationalError):
        return None
    return StoreError(f"SQLite cannot do this with {within}: {error}.")


def _code(error: BaseException) -> int:
    """Return SQLite's primary result code; 0 for an error of Python's own module."""
    return int(getattr(error, "sqlite_errorcode", 0)) & 0xFF


APPLICATION = 0x73656D6D
"""The application id in the header of semmem's files ("semm"), so that no other program's file is written to."""


def migrate(
    connection: sqlite3.Connection,
    place: str,
    *,
    upto: int | None = None,
    ran: Callable[[str], object] = lambda _: None,
) -> int:
    """Bring the schema of the file up to date, or to ``upto``, and return its number.

    Any number of processes may call this at once: they queue for the write lock. A schema that is up to date is only
    read. ``ran`` is called with the name of each migration that this call, and no other process, has applied.

    Raises SchemaTooNew when a newer semmem migrated the file, SchemaTooOld when it must be exported and imported,
    and InvalidInput when it belongs to another program, or for an ``upto`` that no migration leads to.
    """
    scripts = migrations("sqlite")
    target = scripts[-1][0] if upto is None else upto
    if present(connection, place) == target:
        return target
    sql = statements("sqlite")
    connection.execute("BEGIN IMMEDIATE")
    try:
        number = _number(connection, place)
        check_step(place, number, target, scripts)
        if number == 0:
            connection.execute(sql["migration_table"])
        for step, name, body in scripts:
            if number < step <= target:
                for statement in each_statement(body):
                    connection.execute(statement)
                connection.execute(sql["migration_record"], {"number": step, "name": name})
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
    for step, name, _ in scripts:
        if number < step <= target:
            ran(name)
    return target


def require_newest(connection: sqlite3.Connection, place: str) -> int:
    """Return the number of the schema of the file. Raises SchemaTooOld unless it is the newest."""
    number = present(connection, place)
    if (words := unmigrated(place, number, migrations("sqlite"))) is not None:
        raise SchemaTooOld(words)
    return number


def present(connection: sqlite3.Connection, place: str) -> int:
    """Return the number of the schema of the file, 0 without one; changes nothing. Raises as ``migrate`` does."""
    connection.execute("BEGIN")  # one snapshot, because another process may initialise the file meanwhile
    try:
        return _number(connection, place)
    finally:
        connection.execute("ROLLBACK")


def _check_path(path: Path) -> None:
    """Raise InvalidInput for a path at which SQLite can have no file, such as a pipe, which it would read for ever."""
    there = os.path.exists(path)  # what os.path cannot see, SQLite reports
    if not os.path.isdir(path.parent):
        raise in_no_folder(path)
    if os.path.isdir(path):
        raise InvalidInput(f"{path} is a folder; name a file in it after sqlite:.")
    if os.path.islink(path) and not there:
        raise InvalidInput(f"{path} is a link to a file that is not there; name that file after sqlite:.")
    if there and not os.path.isfile(path):
        raise InvalidInput(f"{path} is a device or a pipe, not a file; name a file after sqlite:.")


def schema_of(path: Path) -> int:
    """Return the number of the schema of a file, 0 without one or without a file; the file is opened for reading."""
    place = f"The file {path}"
    _check_path(path)
    with suppress(PermissionError):  # SQLite reports it
        if not path.exists():
            return 0
    try:
        with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True, isolation_level=None)) as connection:
            return present(connection, place)
    except sqlite3.Error as error:
        raise (sentence(error, place) or error) from error


def _number(connection: sqlite3.Connection, place: str) -> int:
    sql, newest = statements("sqlite"), migrations("sqlite")[-1][0]
    application = connection.execute(sql["application"]).fetchone()[0]
    if application != APPLICATION:
        if application or connection.execute(sql["tables"]).fetchone()[0]:
            raise InvalidInput(f"{place} is the database of another program; name another file, or a new one.")
        return 0
    if connection.execute(sql["migration_exists"]).fetchone() is None:
        return 0
    number = int(connection.execute(sql["migration_number"]).fetchone()[0])
    if (old := too_old(place, number, "sqlite")) is not None:
        raise SchemaTooOld(old)
    if number > newest:
        raise SchemaTooNew(
            f"{place} has schema {number} and this version of semmem reads up to {newest}; upgrade "
            "semmem as docs/operate.md says"
        )
    return number
