"""The MCP server over Streamable HTTP: at an address of this machine, or elsewhere with keys."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import uvicorn
from mcp.server.transport_security import TransportSecuritySettings

from semmem.doors.http.guard import Guard, Guarded, check_address, is_loopback
from semmem.doors.http.keys import Keys
from semmem.doors.http.server import bound, own_signals
from semmem.doors.mcp.opening import Opening
from semmem.doors.mcp.server import Handlers, server_of

if TYPE_CHECKING:
    from semmem.client.memory import Semmem

__all__ = ["PATH", "PORT", "HttpServer"]

PATH = "/mcp"
PORT = 8766

_LARGEST = 16 * 2**20
"""Bytes of one request."""


class HttpServer:
    """An MCP server at one address, which is taken when this is made and answered by ``run``.

    Raises InvalidInput for an address that cannot be had, and for one that others can reach without keys.
    """

    def __init__(
        self,
        opener: Callable[[], Semmem],
        *,
        host: str = "127.0.0.1",
        port: int = PORT,
        keys: Keys,
        guard: Guard,
        instructions: str | None = None,
        **scope: Any,
    ) -> None:
        """Take what opens the store, and what ``Handlers`` takes."""
        check_address(host, keys)
        self._socket = bound(host, port)
        name, number = self._socket.getsockname()[:2]
        self.url = f"http://{f'[{name}]' if ':' in name else name}:{number}{PATH}"
        self._opening = Opening(opener)
        handlers = Handlers(self._opening, local=is_loopback(host), **scope)
        server = server_of(handlers, instructions=instructions)
        unchecked = TransportSecuritySettings(
            enable_dns_rebinding_protection=False
        )  # the guard looks at Host and Origin
        app = server.streamable_http_app(
            streamable_http_path=PATH, transport_security=unchecked, max_request_body_size=_LARGEST
        )
        self._uvicorn = uvicorn.Server(
            uvicorn.Config(
                Guarded(app, guard, keys, wants_key=bool(keys)),
                ws="none",
                lifespan="on",
                log_config=None,
                log_level="warning",
                access_log=False,
                server_header=False,
                proxy_headers=False,
                timeout_graceful_shutdown=10,
            )
        )

    def run(self) -> None:
        """Answer requests until ``stop``, or until the process is told to end; then finish what was asked."""
        try:
            with own_signals():
                self._uvicorn.run(sockets=[self._socket])
        finally:
            self._opening.close()

    def stop(self) -> None:
        """Take no more requests, and let ``run`` return. May be called by any thread."""
        self._uvicorn.should_exit = True
