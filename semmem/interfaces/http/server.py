"""The server: one address, uvicorn, and a stop that lets answers be finished."""

from __future__ import annotations

import asyncio
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http import HTTPStatus
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from semmem.interfaces.http.guard import App, Guard, check_address
from semmem.interfaces.http.keys import Key, Keys, KeySet, ServerKeys
from semmem.interfaces.http.limits import Limits
from semmem.interfaces.http.problems import MEDIA_TYPE, as_bytes, problem
from semmem.interfaces.http.sessions import Sessions
from semmem.interfaces.http.shared_rates import rates_of
from semmem.model.errors import InvalidInput, MissingExtra

if TYPE_CHECKING:
    import uvicorn

    from semmem.client.memory import Semmem
    from semmem.interfaces.http.runs import Runs
    from semmem.interfaces.http.tokens import Tokens

__all__ = ["PORT", "Server", "bound", "check_port", "need_extra", "own_signals", "url_of", "uvicorn_of"]

PORT = 8765
_NEEDED = ("fastapi", "prometheus_client", "uvicorn")
_LARGEST_HEAD = 1 << 18
"""Bytes of the URL and headers of a request; ids of 1,000 characters and filters fit many times."""


def need_extra() -> None:
    """Raise MissingExtra unless what a server needs is installed."""
    if missing := [name for name in _NEEDED if find_spec(name) is None]:
        raise MissingExtra(f"{missing[0]} is not installed; install it with: pip install 'semmem[http]'")


class Server:
    """A server for one Semmem, which it does not close. Its address is taken when it is made, answered by ``run``.

    Raises InvalidInput for an address that cannot be had, and for one that others can reach without keys.
    """

    def __init__(
        self,
        mem: Semmem,
        *,
        host: str = "127.0.0.1",
        port: int = PORT,
        keys: KeySet | None = None,
        guard: Guard | None = None,
        limits: Limits | None = None,
        grace_s: float = 10.0,
        owner: Key | None = None,
        runs: Runs | None = None,
        tokens: Tokens | None = None,
    ) -> None:
        """Take the address. ``owner`` is the key of links to the page; with one, every request needs a key.

        ``tokens`` are accepted beside keys. ``runs`` are those of `python -m eval` that the page can open.
        """
        need_extra()
        from semmem.interfaces.http.app import Service, application

        keys = ServerKeys(Keys() if keys is None else keys, lambda: mem)
        check_address(host, keys, tokens)
        limits = limits or Limits()
        rates = rates_of(limits, lambda: mem)
        self._socket = bound(host, port)
        self.url = url_of(self._socket)
        self.sessions = Sessions(self._socket.getsockname()[1], owner=owner)
        self.service = service = Service(
            mem,
            keys=keys,
            limits=limits,
            stopping=lambda: self._uvicorn.should_exit,
            grace_s=grace_s,
            sessions=self.sessions,
            runs=runs,
            rates=rates,
        )
        app = application(service, guard or Guard(), wants_key=owner is not None or bool(keys), tokens=tokens)
        self._uvicorn = uvicorn_of(
            app,
            service.limits,
            grace_s=grace_s,
            stopping=service.stop,
            loop="asyncio",
            timeout_keep_alive=75,
            h11_max_incomplete_event_size=_LARGEST_HEAD,
        )

    def run(self) -> bool:
        """Answer requests until ``stop``, Ctrl-C or SIGTERM; then finish what was asked, for as long as the grace.

        Return whether all of it is finished.
        """
        with own_signals(), self._socket:  # uvicorn leaves the socket open where it is stopped before it has begun
            self._uvicorn.run(sockets=[self._socket])
        return not self.service.workers.at_work

    def stop(self) -> None:
        """Take no more requests, and let ``run`` return when the others are answered. May be called by any thread."""
        self._uvicorn.should_exit = True

    @property
    def started(self) -> bool:
        """Whether it answers."""
        return self._uvicorn.started


def uvicorn_of(
    app: App, limits: Limits, *, grace_s: float, stopping: Callable[[], None], **settings: Any
) -> uvicorn.Server:
    """Return uvicorn's server of an application; it calls ``stopping`` before it stops, and waits for ``grace_s``."""
    import uvicorn

    class Noting(uvicorn.Server):
        async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
            stopping()
            await super().shutdown(sockets)

    config = uvicorn.Config(
        app,
        http=protocol(limits),
        ws="none",
        lifespan="on",
        log_config=None,
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=max(1, round(grace_s)),
        **settings,
    )
    return Noting(config)


def protocol(limits: Limits) -> type[asyncio.Protocol]:
    """Return uvicorn's protocol of HTTP, which answers what is no HTTP with a problem too, and no plain text.

    A connection is closed where no whole first line and headers came in ``limits.head_seconds``.
    """
    import h11
    from uvicorn.protocols.http.h11_impl import H11Protocol

    class Protocol(H11Protocol):
        head_timer: asyncio.TimerHandle | None = None

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            self._watch_head()

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            self._watch_head()

        def connection_lost(self, exc: Exception | None) -> None:
            super().connection_lost(exc)
            self._forget_head()

        def _watch_head(self) -> None:
            """Count the time while a head is awaited: from the first byte of a request, or of the connection."""
            if self.conn.their_state is not h11.IDLE or self.transport.is_closing():
                self._forget_head()
            elif self.head_timer is None and (self.cycle is None or self.conn.trailing_data[0]):
                self.head_timer = self.loop.call_later(limits.head_seconds, self._end_head)

        def _forget_head(self) -> None:
            if self.head_timer is not None:
                self.head_timer.cancel()
                self.head_timer = None

        def _end_head(self) -> None:
            if self.conn.trailing_data[0]:
                sentence = f"The first line and headers were not whole after {limits.head_seconds:g} seconds; send them"
                self._refuse(408, f"{sentence} without pauses.")
            self.transport.close()

        def send_400_response(self, msg: str) -> None:
            self._refuse(400, "The request is not HTTP; correct its first line, or the header that is wrong.")
            self.transport.close()

        def _refuse(self, status: int, sentence: str) -> None:
            if self.conn.our_state not in (h11.IDLE, h11.SEND_RESPONSE):
                return  # an answer that has begun is only broken off
            error = InvalidInput(sentence)
            error.http_status = status
            body = as_bytes(problem(error))
            first = f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\n"
            head = f"content-type: {MEDIA_TYPE}\r\ncontent-length: {len(body)}\r\nconnection: close\r\n\r\n"
            self.transport.write(f"{first}{head}".encode() + body)

    return Protocol


@contextmanager
def own_signals() -> Iterator[None]:
    """Let Ctrl-C and SIGTERM be an orderly end: uvicorn stops by them, and sends them on when it has stopped."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, lambda *_: None) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def check_port(port: int) -> None:
    """Raise InvalidInput for a number that no port has."""
    if isinstance(port, bool) or not isinstance(port, int) or not 0 <= port <= 65_535:
        raise InvalidInput(f"--port must be a whole number from 0 to 65535, not {port!r}; 0 takes a free one.")


def url_of(listener: socket.socket) -> str:
    """Return the URL of the address that a socket has."""
    name, port = listener.getsockname()[:2]
    return f"http://{f'[{name}]' if ':' in name else name}:{port}"


def bound(host: str, port: int) -> socket.socket:
    """Return a socket at an address. Raises InvalidInput where that cannot be had."""
    check_port(port)
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host.strip("[]"), port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listener = socket.socket(family, kind, protocol)
    except OSError as error:
        raise InvalidInput(f"There is no address {host!r} on this machine: {error.strerror}.") from None
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(1024)
    except OSError as error:
        listener.close()
        raise InvalidInput(
            f"The port {port} of {host} is not available: {error.strerror}. Choose another one with --port, or 0."
        ) from None
    return listener
