"""Whoever has a store open answers hooks, and commands that only read.

That is `semmem mcp`, `semmem serve`, or a process that a hook starts. One process at a time listens for a store: the
one that holds the lock beside the socket. Others that have the store open wait for the lock, and take over when it is
free. The process that a hook starts inherits the lock, so forty hooks at once start one, and it ends when nobody has
asked for some time. Nobody is answered from a file that was removed, or that another one has replaced.
"""

from __future__ import annotations

import fcntl
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path

from semmem.client.memory import Semmem
from semmem.client.opening import connect, warm_up
from semmem.config import Settings
from semmem.files import file_number, private_folder
from semmem.interfaces.coding_agents.error_log import error_log
from semmem.interfaces.coding_agents.hook import HookOptions, answer
from semmem.interfaces.coding_agents.source import of_memory
from semmem.interfaces.local_socket import COMMAND, HERE, Address, address_of, is_own, short_path
from semmem.model.errors import LocalOnly, SemmemError
from semmem.stores import parse_url

__all__ = ["Listener", "begin_listener", "hooks_answered", "run_listener"]

_LOOK_S = 0.5
"""Seconds after which a listener looks whether it is to end."""

_CLIENT_S = 5.0
"""Seconds in which a client has to send a piece of its request, or to take its answer."""

_END_S = 5.0
"""Seconds for which the end of a program waits for its listener."""

_LARGEST = 64 << 20
"""Bytes of a request."""

_AT_ONCE = 8


class Listener:
    """Answers hooks, and commands that only read, at ``address`` from an open store, once it has the lock."""

    def __init__(self, address: Address, memory: Semmem, lock: int | None = None) -> None:
        """Take the descriptor of the lock, where it is held already."""
        self._address = address
        self._memory = memory
        self._source = of_memory(memory)
        self._lock = lock
        self._stopping = threading.Event()
        self._working = 0
        self._last = time.monotonic()
        self._change = threading.Lock()
        self._file = _file_of(memory)

    def run(self, idle_s: float = float("inf")) -> None:
        """Wait for the lock, then answer until ``stop``, till nobody asks for ``idle_s``, or socket or file is gone."""
        while self._lock is None and not self._stopping.is_set():
            self._lock = _locked(self._address)
            if self._lock is None:
                self._stopping.wait(_LOOK_S)
        if self._lock is None:
            return
        try:
            self._listen(idle_s)
        finally:
            _unlocked(self._address, self._lock)

    def stop(self) -> None:
        """Let ``run`` return. May be called by any thread."""
        self._stopping.set()

    def _listen(self, idle_s: float) -> None:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
            with suppress(FileNotFoundError):  # of a process that was killed: nobody else has the lock
                os.unlink(self._address.path)
            with short_path(self._address) as path:
                listener.bind(path)
            os.chmod(self._address.path, 0o600)
            mine = os.lstat(self._address.path).st_ino
            listener.listen(64)
            listener.settimeout(_LOOK_S)
            try:
                with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="semmem-hooks") as workers:
                    while not (self._stopping.is_set() or self._is_idle(idle_s) or self._is_over(mine)):
                        with suppress(TimeoutError):
                            connection, _ = listener.accept()
                            with suppress(OSError):  # who asks has gone
                                if is_own(connection):
                                    connection.send(HERE)
                            workers.submit(self._serve, connection)
            finally:
                if not self._is_gone(mine):
                    os.unlink(self._address.path)

    def _is_idle(self, idle_s: float) -> bool:
        with self._change:
            return not self._working and time.monotonic() - self._last > idle_s

    def _is_gone(self, mine: int) -> bool:
        try:
            return os.lstat(self._address.path).st_ino != mine
        except OSError:
            return True

    def _is_over(self, mine: int) -> bool:
        return self._is_gone(mine) or self._is_replaced()

    def _is_replaced(self) -> bool:
        """Return whether the file of the store is not the one that was opened."""
        return _file_of(self._memory) != self._file

    def _serve(self, connection: socket.socket) -> None:
        with self._change:
            self._working += 1
        try:
            with connection, suppress(OSError, ValueError):
                connection.settimeout(_CLIENT_S)
                if is_own(connection) and (request := _request(connection)) is not None:
                    self._answer(connection, *request)
        finally:
            with self._change:
                self._working -= 1
                self._last = time.monotonic()

    def _answer(self, connection: socket.socket, head: str, raw: bytes) -> None:
        facts, *words = head.split("\x00")
        if facts != self._address.facts or self._is_replaced():
            return  # for another store, by another version, or about a file that is gone
        reply = self._to_command(words[1:]) if words[:1] == [COMMAND] else self._to_hook(words, raw)
        if reply is not None:
            out, err = reply
            connection.settimeout(_CLIENT_S)
            connection.sendall(b"%d %d\n" % (len(out), len(err)) + out + err)

    def _to_command(self, words: list[str]) -> tuple[bytes, bytes] | None:
        from semmem.interfaces.cli.answering import answered  # which loads the library that reads options

        return answered(self._memory, words)

    def _to_hook(self, words: list[str], raw: bytes) -> tuple[bytes, bytes] | None:
        if len(words) != 5:
            return None
        event, namespace, budget, agent, folder = words
        options = HookOptions(event, None, namespace or None, int(budget), agent, folder)
        reply = answer(options, raw, self._source)
        return reply.block.encode("utf-8", "replace"), "".join(reply.said).encode("utf-8", "replace")


@contextmanager
def hooks_answered(url: str | None, recipe: str | None) -> Iterator[Callable[[Semmem], None]]:
    """Give what begins to answer hooks from an open store; at the end of the block it stops.

    Without a folder for the socket, nothing answers, and hooks open the store themselves.
    """
    address = address_of(url, recipe)
    running: list[tuple[Listener, threading.Thread]] = []

    def begin(memory: Semmem) -> None:
        try:
            _ = memory.store
        except LocalOnly:
            return  # it is behind a server, and hooks ask that
        listener = Listener(address, memory)

        def run() -> None:
            with suppress(OSError, SemmemError):
                _warmed(memory)
                listener.run()

        thread = threading.Thread(target=run, name="semmem-hooks", daemon=True)
        running.append((listener, thread))
        thread.start()

    try:
        yield begin
    finally:
        for listener, thread in running:
            listener.stop()
            thread.join(_END_S)


def _warmed(memory: Semmem) -> None:
    """Load the model; without one, the other legs answer."""
    with suppress(SemmemError):
        warm_up(memory)


def begin_listener(address: Address, url: str | None) -> None:
    """Start a process that answers the next hooks, unless there is one, or the settings want none."""
    if not Settings.load(**({} if url is None else {"url": url})).hook_process_s:
        return
    try:
        lock = _locked(address)
    except OSError:
        return
    if lock is None:
        return
    command = [sys.executable, "-P", "-m", "semmem", "hook", "listen", "--lock", str(lock)]
    try:
        subprocess.Popen(
            [*command, *(() if url is None else ("--url", url))],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            pass_fds=(lock,),
            cwd=None if address.local else address.folder,
        )
    finally:
        os.close(lock)


def run_listener(url: str | None, lock: int | None) -> int:
    """Open the store, load its model and answer hooks, until nobody has asked for the seconds of the settings."""
    with suppress(OSError, SemmemError):
        sys.stderr = error_log()
    try:
        if lock is not None:
            os.set_inheritable(lock, False)  # a server of the store that is started here must not keep it
        address = address_of(url)
        with connect(url) as memory:
            _warmed(memory)
            listener = Listener(address, memory, lock)
            for number in (signal.SIGTERM, signal.SIGINT):
                signal.signal(number, lambda *_: listener.stop())
            listener.run(memory.settings.hook_process_s)
    except Exception as error:  # noqa: BLE001  # hooks open the store themselves, and tell what is wrong with it
        sys.stderr.write(f"semmem: A process for hooks ended: {' '.join(str(error).split())}\n")
    return 0


def _locked(address: Address) -> int | None:
    """Return a descriptor that holds the lock of an address; None where another process has it. Raises OSError."""
    private_folder(Path(address.folder))
    while True:
        handle = os.open(address.lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(handle)
            return None
        with suppress(FileNotFoundError):
            if os.stat(address.lock).st_ino == os.fstat(handle).st_ino:
                return handle
        os.close(handle)  # its last owner removed it meanwhile


def _unlocked(address: Address, lock: int) -> None:
    """Remove the lock's file, so that nothing is left, and give the lock back."""
    with suppress(OSError):
        if os.stat(address.lock).st_ino == os.fstat(lock).st_ino:
            os.unlink(address.lock)
    os.close(lock)


def _file_of(memory: Semmem) -> tuple[int, int] | None:
    """Return which file or folder lies at the path of a store; None where there is none, or a server has the store."""
    try:
        return file_number(parse_url(memory.store.url, home=memory.settings.home).path)
    except (LocalOnly, OSError):
        return None


def _request(connection: socket.socket) -> tuple[str, bytes] | None:
    """Return the head and the rest of a request; None where it is none, or too large."""
    data = bytearray()
    while b"\n" not in data[:64]:
        if not (piece := connection.recv(1 << 16)):
            return None
        data += piece
    sizes, _, rest = bytes(data).partition(b"\n")
    head, raw = map(int, sizes.split())
    if not 0 <= head + raw <= _LARGEST:
        return None
    got = bytearray(rest)
    while len(got) < head + raw:
        if not (piece := connection.recv(1 << 20)):
            return None
        got += piece
    return got[:head].decode(errors="surrogatepass"), bytes(got[head:])
