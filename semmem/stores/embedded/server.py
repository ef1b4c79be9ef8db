"""The embedded server: PostgreSQL in the user's data folder, started on demand, shared, stopped when idle."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from semmem.model.errors import InvalidInput, StoreUnavailable
from semmem.model.process.forks import undivided
from semmem.stores.embedded import data_directory, noted, postmaster
from semmem.stores.embedded.postmaster import Postmaster

__all__ = ["EmbeddedServer", "ServerStatus"]

_SIGNALS = {"fast": signal.SIGINT, "immediate": signal.SIGQUIT}
_MODES = ("smart", *_SIGNALS)
_LOOK_S = 0.1  # seconds after which smart looks again for clients
_GRACE_S = 10  # time that a starter has, after its start_timeout_s, to report what went wrong
_ROOM = 32 * 2**20  # bytes: two segments of its write-ahead log; with less it may not even say what it lacks
_CREATE_DATABASE = f"CREATE DATABASE {data_directory.DATABASE} TEMPLATE template0"
_VERSION_AND_CLIENTS = """SELECT current_setting('server_version'), count(*) FROM pg_stat_activity
    WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"""
_IN_BACKGROUND = '"$@" </dev/null >>"$0" 2>&1 &'  # the shell exits at once, so the program has no parent


@dataclass(frozen=True)
class ServerStatus:
    """What `semmem server status` shows: ``size_bytes`` is the cluster on disk, ``connections`` are of clients."""

    running: bool
    data: Path
    pid: int | None = None
    socket: Path | None = None
    version: str | None = None
    size_bytes: int = 0
    connections: int | None = None


class EmbeddedServer:
    """The PostgreSQL server of one data folder, for any number of processes and threads of one user.

    Call ``ensure_running`` before connecting. When connecting fails with an OperationalError, call ``ensure_running``
    and connect again, until ``start_timeout_s`` have passed; a server that was killed or crashed is back by then. The
    server is not stopped for idleness between the two calls, unless they lie ``idle_stop_s`` apart. An ``idle_stop_s``
    of 0 keeps it running for good.
    """

    def __init__(self, data: Path, *, idle_stop_s: float = 3600, start_timeout_s: float = 120) -> None:
        if idle_stop_s < 0 or start_timeout_s <= 0:
            raise InvalidInput("idle_stop_s must be 0 (never) or more, and start_timeout_s more than 0.")
        self.data = Path(data).expanduser().absolute()
        self.idle_stop_s = idle_stop_s
        self.start_timeout_s = start_timeout_s
        self._folder = self.data / "postgresql"
        self._cluster = self._folder / "cluster"
        self._lock = str(self._folder / "lock")
        self._alive = str(self._folder / "alive")
        self._created = self._folder / "created"

    def ensure_running(self) -> str:
        """Start the server unless it runs; return the libpq conninfo of its database, which holds no password.

        Where the server runs, this costs a few system calls and starts no process. Raises StoreUnavailable when it
        cannot be started and MissingExtra when PostgreSQL is not installed.
        """
        try:
            return self._conninfo(self._running() or self._run())
        except OSError as error:
            reason = error.strerror or str(error)
            raise StoreUnavailable(f"The server in {self.data} cannot be started: {reason}.") from error

    def _running(self) -> Postmaster | None:
        if not self._may_look() or not self._created.exists():
            return None
        with self._locked(exclusive=False):
            postmaster.touch(str(self._folder))
            if (server := self._ready()) is not None:
                self._keep_watch()
            return server

    def _run(self) -> Postmaster:
        programs = data_directory.programs()
        who = data_directory.owner(create=True)
        assert who is not None
        data_directory.prepare(self.data, who)
        with self._locked(exclusive=True):
            postmaster.touch(str(self._folder))
            server = self._ready() or self._start(programs, who)
            if not self._created.exists():  # so not after a first connect that was killed before
                self._create_database(server)
                self._created.touch(mode=0o600)
                who.give(self._created)
            self._keep_watch()
            return server

    def stop(self, mode: Literal["smart", "fast", "immediate"] = "fast") -> bool:
        """Stop the server and wait until it has ended; False when it was not running.

        ``fast`` aborts the transactions of connected clients, ``smart`` waits for a moment in which no client is
        connected, ``immediate`` leaves recovery to the next start. Raises StoreUnavailable when it has not stopped
        within ``start_timeout_s``, or where clients stay for so long, with ``smart``; then it goes on.
        """
        if mode not in _MODES:
            raise InvalidInput(f"A server stops in one of the modes {', '.join(_MODES)}.")
        if not self._may_look():
            return False
        if mode == "smart":
            return self._stop_unused()
        with self._locked(exclusive=True):
            return self._stop(mode)

    def _stop(self, mode: str) -> bool:
        try:
            return postmaster.stop(str(self._folder), _SIGNALS[mode], timeout_s=self.start_timeout_s)
        except TimeoutError as error:
            raise StoreUnavailable(
                f"The server in {self.data} has not stopped within {self.start_timeout_s:g} s; try again with mode "
                "fast or immediate."
            ) from error

    def _stop_unused(self) -> bool:
        """Stop the server at a moment without clients.

        By SIGTERM PostgreSQL itself waits for that moment, but admits nobody meanwhile, and that cannot be taken back.
        """
        end = time.monotonic() + self.start_timeout_s
        while True:
            with self._locked(exclusive=True):
                if postmaster.free(self._alive) or self._is_unused():
                    return self._stop("fast")
            if time.monotonic() >= end:
                raise StoreUnavailable(
                    f"The server in {self.data} has not stopped within {self.start_timeout_s:g} s and goes on, because "
                    "a client is connected or it does not answer; try again later, or with mode fast."
                )
            time.sleep(_LOOK_S)

    def _is_unused(self) -> bool:
        """Return whether the server says that no client is connected; one that does not answer may have some."""
        if (server := self._ready()) is None:
            return False
        try:
            return self._ask(server)[1] == 0
        except StoreUnavailable:
            return False

    def status(self) -> ServerStatus:
        """Return the status of the server without starting it."""
        if not self._may_look():
            return ServerStatus(False, self.data)
        size = sum(_size(Path(top) / name) for top, _, names in os.walk(self._cluster) for name in names)
        version = self._version()
        if (server := self._ready()) is None:
            return ServerStatus(False, self.data, version=version, size_bytes=size)
        connections = None
        with contextlib.suppress(StoreUnavailable):
            version, connections = self._ask(server)
        return ServerStatus(True, self.data, server.pid, Path(server.socket), version, size, connections)

    @property
    def is_made(self) -> bool:
        """Whether the folder holds a database already; a start makes it otherwise. Raises as ``status`` does."""
        return self._may_look() and (self._cluster / "PG_VERSION").exists()

    def _may_look(self) -> bool:
        """Return whether the folder exists. Raises StoreUnavailable when it belongs to another user."""
        try:
            data_directory.check_owner(self.data, self._folder, data_directory.owner(create=False))
        except (FileNotFoundError, NotADirectoryError):
            return False
        except PermissionError as error:
            raise StoreUnavailable(
                f"The data folder {self.data} is closed to this user; choose another one with SEMMEM_HOME or "
                "embedded:FOLDER."
            ) from error
        return True

    @contextlib.contextmanager
    def _locked(self, *, exclusive: bool) -> Iterator[None]:
        with contextlib.ExitStack() as stack:
            try:
                stack.enter_context(
                    postmaster.locked(self._lock, exclusive=exclusive, timeout_s=self.start_timeout_s + _GRACE_S)
                )
            except TimeoutError as error:
                raise StoreUnavailable(
                    f"Another process has been starting or stopping the server in {self.data} for "
                    f"{self.start_timeout_s:g} s; try again later or raise start_timeout_s."
                ) from error
            yield

    def _ready(self) -> Postmaster | None:
        """Return the server if it accepts connections now, else None."""
        server = postmaster.read(str(self._cluster))
        if server is None or not server.ready or not postmaster.exists(server.pid) or postmaster.free(self._alive):
            return None
        return server if os.path.exists(f"{server.socket}/.s.PGSQL.{server.port}") else None

    def _start(self, programs: Path, who: data_directory.Owner) -> Postmaster:
        """Start the server, whatever an earlier one left behind; the caller holds the exclusive lock."""
        end = time.monotonic() + self.start_timeout_s
        data_directory.remove_unfinished(self._folder)
        data_directory.check_cluster(self._folder, who)
        if not (self._cluster / "PG_VERSION").exists():
            self._created.unlink(missing_ok=True)
            data_directory.initialise(self._folder, programs, who)
        if (version := self._version()) != data_directory.MAJOR:
            raise StoreUnavailable(
                f"The database in {self.data} was written by PostgreSQL {version} and this version of semmem includes "
                f"{data_directory.MAJOR}; open it with the semmem that wrote it, or choose another folder with "
                "SEMMEM_HOME."
            )
        # A server may be starting or recovering, or processes of one may be left whose postmaster was killed.
        if (server := self._settle(end)) is None:
            log = self._launch(programs, who, end)
            if (server := self._settle(end)) is None:
                postmaster.remove_socket_folder(str(self._folder))
                log_text = log.read_text(encoding="utf-8", errors="replace")
                if shutil.disk_usage(self._folder).free < _ROOM:
                    raise StoreUnavailable(
                        f"The disk of {self.data} is full, and the database server cannot start without room for its "
                        "log; free some space there and try again. Nothing that was acknowledged is lost."
                    )
                reason = data_directory.last_words(log_text)
                if "Permission denied" in reason:  # some files only, as after a restored folder of them
                    reason = reason[:-1] + f"; give the files back with: {data_directory.giving(self._folder, who)}"
                raise StoreUnavailable(f"The server in {self.data} did not start: {reason}")
        noted.note(self.data)
        return server

    def _settle(self, end: float) -> Postmaster | None:
        """Wait until the server is ready and return it; None once none of its processes is left."""
        began = time.monotonic()
        while not postmaster.free(self._alive):
            if (server := self._ready()) is not None:
                return server
            self._mend(time.monotonic() - began)
            if time.monotonic() >= end:
                raise StoreUnavailable(
                    f"The server in {self.data} is not ready after {self.start_timeout_s:g} s, perhaps recovering from "
                    "a crash; wait and try again, or raise start_timeout_s."
                )
            time.sleep(0.005 if time.monotonic() - began < 2 else 0.1)
        return None

    def _mend(self, waited: float) -> None:
        """After ``waited`` seconds, end what keeps a server from becoming ready: leftovers, or one without a socket.

        Only processes that are proved to be this server's are signalled, because the number in postmaster.pid may
        belong to another process by now.
        """
        if waited <= 1:
            return
        server = postmaster.read(str(self._cluster))
        is_lost = server.ready if server is not None else waited > 5
        if is_lost and (main := postmaster.main_process(str(self._folder))) is not None:
            _signal(main, signal.SIGINT)  # its socket was removed, its folder moved or its postmaster.pid damaged
        elif server is not None and server.pid not in (pids := postmaster.orphans(str(self._cluster))):
            # The postmaster was killed and one of its processes is still busy; it has to end before the next start.
            for pid in pids:
                _signal(pid, signal.SIGTERM if waited < 5 else signal.SIGKILL)

    def _launch(self, programs: Path, who: data_directory.Owner, end: float) -> Path:
        """Start a postmaster that holds the lock ``alive``; return the log that it writes."""
        log = self._folder / "log"
        if log.exists():
            log.replace(self._folder / "log.before")
        if (stranger := self._stranger()) is not None:
            raise StoreUnavailable(
                f"A PostgreSQL that semmem did not start (process {stranger}) runs in {self._cluster}; stop it."
            )
        if sys.platform == "linux" or postmaster.read(str(self._cluster)) is None:
            # Nobody holds ``alive``, so no server is left. PostgreSQL itself would mistake any process that now has the
            # same number for one, as happens in every restarted container, and a zombie as well. It could not even read
            # an empty or damaged postmaster.pid.
            for leftover in (self._cluster / "postmaster.pid", *(self._folder / "run").glob(".s.PGSQL.*")):
                leftover.unlink(missing_ok=True)
        data_directory.configure(self._folder, who)
        log.touch(mode=0o600)
        who.give(log)
        command = [str(programs / "postgres"), "-D", str(self._cluster)]
        while not _in_background(command, log, self._alive, who.process):  # the idle watch may hold it for a moment
            if time.monotonic() >= end:
                raise StoreUnavailable(f"The data folder {self.data} is in use by a server that cannot be seen here.")
            time.sleep(0.005)
        return log

    def _stranger(self) -> int | None:
        """Return the process of a server without the lock ``alive``; wait for one of ours that is ending."""
        end = time.monotonic() + 1
        while True:
            pid = postmaster.main_process(str(self._folder))
            if (pid := pid or next(iter(postmaster.orphans(str(self._cluster))), None)) is None:
                return None
            if time.monotonic() >= end:
                return pid
            time.sleep(0.01)

    def _create_database(self, server: Postmaster) -> None:
        import psycopg

        try:
            with psycopg.connect(self._conninfo(server, "template1"), autocommit=True) as connection:
                cursor = connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [data_directory.DATABASE])
                if cursor.fetchone() is None:
                    connection.execute(_CREATE_DATABASE)
                    connection.execute("DROP DATABASE IF EXISTS postgres")  # unused, and eight megabytes large
        except psycopg.Error as error:
            reason = " ".join(str(error).split())
            raise StoreUnavailable(f"The server in {self.data} runs but refuses its owner: {reason}") from error

    def _ask(self, server: Postmaster) -> tuple[str, int]:
        import psycopg

        try:
            with psycopg.connect(self._conninfo(server, "template1")) as connection:
                row = connection.execute(_VERSION_AND_CLIENTS).fetchone()
        except psycopg.Error as error:
            raise StoreUnavailable from error
        assert row is not None
        return str(row[0]).split()[0], int(row[1])

    def _keep_watch(self) -> None:
        """Start the idle watch unless it runs; its process inherits a lock that is already held."""
        watch = str(self._folder / "watch")
        if self.idle_stop_s == 0 or not postmaster.free(watch) or (python := _python()) is None:
            return
        arguments = [str(self._folder), str(data_directory.programs() / "psql"), data_directory.ROLE]
        command = [python, "-I", "-S", postmaster.__file__, *arguments, str(self.idle_stop_s)]
        _in_background(command, Path(os.devnull), watch, {"cwd": "/", "env": postmaster.ENVIRONMENT})

    def _conninfo(self, server: Postmaster, database: str = data_directory.DATABASE) -> str:
        socket = server.socket.replace("\\", "\\\\").replace("'", "\\'")
        return f"host='{socket}' port={server.port} user={data_directory.ROLE} dbname={database}"

    def _version(self) -> str | None:
        with contextlib.suppress(FileNotFoundError):
            return (self._cluster / "PG_VERSION").read_text(encoding="utf-8").strip()
        return None


def _in_background(command: list[str], log: Path, lock: str, process: Mapping[str, Any]) -> bool:
    """Start ``command`` detached from this process and its terminal, holding ``lock``; False where that is held.

    A process that another thread forks meanwhile would hold the lock for all its life, so the fork waits.
    """
    with undivided:
        if (descriptor := postmaster.grab(lock)) is None:
            return False
        try:
            _detached(command, log, descriptor, process)
        finally:
            os.close(descriptor)
    return True


def _detached(command: list[str], log: Path, lock: int, process: Mapping[str, Any]) -> None:
    """Start ``command``, which inherits the locked descriptor ``lock``."""
    shell = ["/bin/sh", "-c", _IN_BACKGROUND, str(log), *command]
    nothing = subprocess.DEVNULL
    subprocess.run(
        shell,
        pass_fds=(lock,),
        start_new_session=True,
        stdin=nothing,
        stdout=nothing,
        stderr=nothing,
        check=False,
        **process,
    )


def _signal(pid: int, which: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, which)


def _python() -> str | None:
    """Return a Python program for the idle watch; where Python is embedded, ``sys.executable`` is another program."""
    for path in (sys.executable, f"{sys.prefix}/bin/python3", f"{sys.base_prefix}/bin/python3"):
        if path and Path(path).name.startswith("python") and os.access(path, os.X_OK):
            return path
    return None


def _size(path: Path) -> int:
    with contextlib.suppress(FileNotFoundError):
        return path.lstat().st_size
    return 0
