"""Real MCP clients for the tests: in memory, and over the standard input and output of a real process."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import mcp_types as types
import pytest
from mcp import Client, StdioServerParameters
from mcp.client import stdio

import semmem
from semmem.interfaces.mcp.opening import Opening
from semmem.interfaces.mcp.server import Handlers, server_of
from tests.patience import PATIENCE_S

stdio.PROCESS_TERMINATION_TIMEOUT = PATIENCE_S  # a server that ends late is not killed

ROOT = Path(__file__).resolve().parents[3]
BOTH = pytest.mark.parametrize("mode", ["legacy", "auto"])
"""The handshake of the protocols until 2025, and the envelopes of the newer ones."""


def environment(url: str) -> dict[str, str]:
    """Return the environment of a server process: this checkout, the store of the test, no model, nobody's settings."""
    settings = {"SEMMEM_URL": url, "SEMMEM_EMBEDDER": "hashing", "SEMMEM_CONFIG": ""}
    of_libpq = {name: value for name, value in os.environ.items() if name.startswith("PG")}  # that of who asks it
    return {"PYTHONPATH": str(ROOT), **settings, **of_libpq}


def _with_roots(roots: Sequence[str] | None) -> dict[str, Any]:
    if roots is None:
        return {}

    async def told(_: Any) -> types.ListRootsResult:
        return types.ListRootsResult(roots=[types.Root(uri=uri) for uri in roots])

    return {"list_roots_callback": told}


@asynccontextmanager
async def in_memory(
    url: str,
    *,
    mode: str = "auto",
    roots: Sequence[str] | None = None,
    agent: str = "tester",
    **handlers: Any,
) -> AsyncIterator[Client]:
    """Connect a client to a server of this process."""
    opening = Opening(lambda: semmem.connect(url, embedder="hashing", pool_size=4), warm=False)
    client = types.Implementation(name=agent, version="1.2")
    try:
        server = server_of(Handlers(opening, **handlers))
        async with Client(server, mode=mode, client_info=client, **_with_roots(roots)) as connected:
            yield connected
    finally:
        opening.close()


@asynccontextmanager
async def over_stdio(
    url: str,
    folder: Path,
    *arguments: str,
    mode: str = "legacy",
    roots: Sequence[str] | None = None,
    agent: str = "tester",
) -> AsyncIterator[Client]:
    """Start `semmem mcp` in ``folder`` and connect a client to it."""
    parameters = StdioServerParameters(
        command=sys.executable, args=["-m", "semmem", "mcp", *arguments], env=environment(url), cwd=folder
    )
    client = types.Implementation(name=agent, version="1.2")
    async with Client(parameters, mode=mode, client_info=client, **_with_roots(roots)) as connected:
        yield connected


async def ask(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    """Call a tool and return its structured result, which its text is the JSON of, by default with every field."""
    verbose = {"verbose": True} if tool.startswith("memory_") else {}
    result = await client.call_tool(tool, {**verbose, **arguments})
    (content,) = result.content
    assert isinstance(content, types.TextContent)
    assert not result.is_error, content.text
    values: dict[str, Any] = result.structured_content
    assert json.loads(content.text) == values
    return values


async def refusal(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    """Call a tool that must fail, and return what it says of the error."""
    result = await client.call_tool(tool, arguments)
    assert result.is_error, result.structured_content
    assert result.structured_content is None
    (content,) = result.content
    assert isinstance(content, types.TextContent)
    error: dict[str, Any] = json.loads(content.text)["error"]
    return error
