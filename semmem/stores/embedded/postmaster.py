"""Inspect and signal a running PostgreSQL server without connecting to it; run as a script, stop it when idle.

Three files in the folder of a server carry the whole protocol, all by ``flock``, which a killed process releases:

    lock    shared: "I am about to connect", exclusive: "I start or stop the server"
    alive   locked by every process of the server: the descriptor is inherited from the process that started it. The
            lock ends with the last process, whatever happens to process ids (reused, zombie, in another container)
    watch   locked by the idle watch, in the same way

The time stamp of the file ``used`` says when somebody last asked for the server. Only a few modules of the standard
library are imported, because the idle watch is a process of its own that lives as long as the server.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import NamedTuple

__all__ = [
    "Postmaster",
    "exists",
    "free",
    "grab",
    "locked",
    "main_process",
    "orphans",
    "read",
    "remove_socket_folder",
    "stop",
    "touch",
    "watch",
]

ENVIRONMENT = {"PATH": os.defpath, "LC_ALL": "C", "TZ": "UTC"}
_LONGEST_PAUSE_S = 300.0
_LONGEST_LOG = 16 * 1024 * 1024
_STOP_S = 120.0
_CLIENTS = "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"


class Postmaster(NamedTuple):
    """The contents of postmaster.pid; ``ready`` is False while the server starts, recovers or stops."""

    pid: int
    socket: str
    port: int
    ready: bool


def read(cluster: str) -> Postmaster | None:
    """Return the contents of postmaster.pid in ``cluster``, None when it is absent or not yet complete."""
    try:
        with open(os.path.join(cluster, "postmaster.pid"), encoding="utf-8") as file:
            lines = file.read().split("\n")
        return Postmaster(int(lines[0]), lines[4], int(lines[3]), lines[7].strip() == "ready")
    except (FileNotFoundError, IndexError, ValueError):
        return None


def exists(pid: int) -> bool:
    """Return whether a process ``pid`` lives; on Linux a zombie does not count, although kill() would reach it."""
    try:
        os.kill(pid, 0)
        if sys.platform == "linux":
            os.stat(f"/proc/{pid}/cwd")
    except (ProcessLookupError, FileNotFoundError):
        return False
    except PermissionError:
        return True
    return True


def orphans(cluster: str) -> list[int]:
    """Return the processes that work in the folder ``cluster``; empty on other systems than Linux."""
    pids = []
    with contextlib.suppress(FileNotFoundError):
        here = os.stat(cluster)
        for name in os.listdir("/proc"):
            with contextlib.suppress(OSError):
                if name.isdigit() and os.path.samestat(os.stat(f"/proc/{name}/cwd"), here):
                    with open(f"/proc/{name}/comm", encoding="utf-8") as comm:
                        if comm.read().startswith("postgres"):
                            pids.append(int(name))
    return pids


def main_process(folder: str) -> int | None:
    """Return the main process of the server of ``folder``, which may be signalled; None where it cannot be proved.

    The number in postmaster.pid proves nothing: it may be left over and belong to another process by now. The kernel
    knows which process listens on the socket, and on Linux which processes work in the folder of the cluster.
    """
    if (listening := _listening(os.path.join(folder, "run", ".s.PGSQL.5432"))) is not None:
        return listening
    cluster = os.path.join(folder, "cluster")
    server = read(cluster)
    return server.pid if server is not None and server.pid in orphans(cluster) else None


def _listening(path: str) -> int | None:
    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as asking:
        asking.settimeout(1)
        asking.connect(os.path.realpath(path))
        if sys.platform == "linux":
            credentials = asking.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
            pid = struct.unpack("3i", credentials)[0]
        else:  # macOS: SOL_LOCAL and LOCAL_PEERPID
            pid = struct.unpack("i", asking.getsockopt(0, 2, struct.calcsize("i")))[0]
        return pid or None  # 0 where it lives in another container
    return None


def _open(path: str) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)


def grab(path: str, *, exclusive: bool = True) -> int | None:
    """Lock the file ``path`` and return its descriptor, None when another process holds it; os.close releases it."""
    descriptor = _open(path)
    try:
        fcntl.flock(descriptor, (fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH) | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    return descriptor


def free(path: str) -> bool:
    """Return whether nobody holds the lock ``path``."""
    descriptor = grab(path, exclusive=False)
    if descriptor is None:
        return False
    # Unlock by name: a process forked at this moment would keep a merely closed descriptor locked.
    fcntl.flock(descriptor, fcntl.LOCK_UN)
    os.close(descriptor)
    return True


@contextlib.contextmanager
def locked(path: str, *, exclusive: bool, timeout_s: float) -> Iterator[None]:
    """Hold the lock ``path``. Raises TimeoutError when it cannot be had within ``timeout_s`` seconds."""
    end = time.monotonic() + timeout_s
    while (descriptor := grab(path, exclusive=exclusive)) is None:
        if time.monotonic() >= end:
            raise TimeoutError(path)
        time.sleep(0.01)
    try:
        yield
    finally:
        fcntl.flock(descriptor, fcntl.LOCK_UN)
        os.close(descriptor)


def touch(folder: str) -> None:
    """Record that somebody is about to use the server of ``folder``."""
    path = os.path.join(folder, "used")
    try:
        os.utime(path)
    except FileNotFoundError:
        os.close(_open(path))


def stop(folder: str, stop_signal: signal.Signals, *, timeout_s: float) -> bool:
    """Signal the server of ``folder`` and wait until its last process has ended; False when none was running.

    The caller holds ``lock``. Raises TimeoutError when a process is left after ``timeout_s`` seconds. Only a process
    that is proved to be the server's is signalled.
    """
    alive = os.path.join(folder, "alive")
    if free(alive):
        return False
    end, signalled = time.monotonic() + timeout_s, False
    while not free(alive):
        # A process that has just forked does not listen yet and has not written its file.
        if not signalled and (pid := main_process(folder)) is not None:
            signalled = True
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, stop_signal)
        if time.monotonic() >= end:
            raise TimeoutError(folder)
        time.sleep(0.005)
    remove_socket_folder(folder)
    return True


def remove_socket_folder(folder: str) -> None:
    """Remove a socket folder outside the server's folder, if it is empty."""
    with contextlib.suppress(OSError):
        os.rmdir(os.readlink(os.path.join(folder, "run")))


class _PauseOver(Exception):
    pass


def _over(*_: object) -> None:
    raise _PauseOver


def _gone_within(alive: str, seconds: float) -> bool:
    """Wait in flock until the server has ended or ``seconds`` have passed; this takes no processor time."""
    descriptor = _open(alive)
    try:
        # Repeated, because an alarm between the next line and its system call would interrupt nothing.
        signal.setitimer(signal.ITIMER_REAL, max(seconds, 0.01), 1.0)
        fcntl.flock(descriptor, fcntl.LOCK_SH)
    except _PauseOver:
        return False
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        os.close(descriptor)
    return True


def _clients(folder: str, psql: str, role: str) -> int:
    server = read(os.path.join(folder, "cluster"))
    if server is None:
        return 0
    conninfo = [f"--host={server.socket}", f"--port={server.port}", f"--username={role}", "--dbname=template1"]
    try:
        answer = subprocess.run(
            [psql, "-XAtw", *conninfo, "-c", _CLIENTS], env=ENVIRONMENT, capture_output=True, timeout=60, check=True
        )
        return int(answer.stdout)
    except FileNotFoundError:
        return 0  # semmem was uninstalled, so nobody can start the server from here again
    except (subprocess.SubprocessError, ValueError):
        return 1  # unknown, perhaps because every connection is taken: counts as in use


def watch(folder: str, psql: str, role: str, idle_s: float) -> None:
    """Stop the server of ``folder`` once nobody was connected or about to connect for ``idle_s`` seconds, then return.

    A process that is about to connect sets the time stamp under the shared lock, and the watch decides under the
    exclusive lock. So a server is never stopped between the two, unless they lie ``idle_s`` apart. Connections are
    counted every quarter of ``idle_s``, at most every five minutes; a shorter connection is known by its time stamp.
    """
    alive, log, last_connection = os.path.join(folder, "alive"), os.path.join(folder, "log"), 0.0
    rest = idle_s
    while not _gone_within(alive, min(max(rest, 0.05), max(idle_s / 4, 0.05), _LONGEST_PAUSE_S)):
        if os.stat(log).st_size > _LONGEST_LOG:
            os.truncate(log, 0)
        if _clients(folder, psql, role):
            last_connection = time.time()
        rest = idle_s - _idle_for(folder, last_connection)
        if rest > 0:
            continue
        with contextlib.suppress(TimeoutError), locked(os.path.join(folder, "lock"), exclusive=True, timeout_s=1):
            if _idle_for(folder, last_connection) >= idle_s and not _clients(folder, psql, role):
                stop(folder, signal.SIGINT, timeout_s=_STOP_S)


def _idle_for(folder: str, last_connection: float) -> float:
    idle = time.time() - max(last_connection, os.stat(os.path.join(folder, "used")).st_mtime)
    if idle < 0:  # the clock was set back; count from now
        touch(folder)
    return max(idle, 0.0)


if __name__ == "__main__":
    signal.signal(signal.SIGALRM, _over)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with contextlib.suppress(FileNotFoundError):  # the folder was deleted; the server notices that itself
        watch(sys.argv[1], sys.argv[2], sys.argv[3], float(sys.argv[4]))
