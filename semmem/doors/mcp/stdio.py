"""The MCP server over standard input and output, for one client."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
from mcp.server.stdio import stdio_server

from semmem.doors.mcp.opening import Opening
from semmem.doors.mcp.server import Handlers, server_of

if TYPE_CHECKING:
    from mcp.server.lowlevel import Server

    from semmem.client.memory import Semmem

__all__ = ["run"]


def run(opener: Callable[[], Semmem], *, instructions: str | None = None, **scope: Any) -> None:
    """Serve until the client closes its end; ``opener`` opens the store, behind the first answers.

    ``scope`` is what ``Handlers`` takes.
    """
    opening = Opening(opener)
    handlers = Handlers(opening, folder=Path.cwd(), **scope)
    try:
        anyio.run(_serve, server_of(handlers, instructions=instructions))
    finally:
        opening.close()


async def _serve(server: Server[Any]) -> None:
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())
