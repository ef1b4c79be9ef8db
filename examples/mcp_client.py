"""An MCP client that works with semmem: it starts `semmem mcp`, learns something, starts it anew and asks for it.

    pip install 'semmem[mcp]'
    python examples/mcp_client.py

The store is that of your settings (SEMMEM_URL); the namespace is that of the git repository of the working folder.
"""

from __future__ import annotations

import asyncio
import os
import sys
from typing import Any

from mcp import Client, StdioServerParameters

SERVER = StdioServerParameters(command=sys.executable, args=["-m", "semmem", "mcp"], env=dict(os.environ))


async def call(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    """Call a tool and return its result; what went wrong is told by one sentence that says what to do."""
    result = await client.call_tool(tool, arguments)
    if result.is_error:
        raise SystemExit(f"{tool}: {result.content[0].text}")
    values: dict[str, Any] = result.structured_content
    return values


async def main() -> None:
    """Learn in one session, recall, change and forget in the next."""
    async with Client(SERVER) as first:
        print("tools:", ", ".join(tool.name for tool in (await first.list_tools()).tools))
        text = "The tests are run with make check, because pytest alone misses the gears."
        stored = await call(first, "memory_remember", text=text, title="Tests", verbose=True)
        print("learned in", stored["scope"]["namespace"])
        id = stored["memory"]["id"]

    async with Client(SERVER) as second:  # another process: only the store is the same
        found = await call(second, "memory_recall", query="how are the tests run?", limit=1)
        print("recalled:", found["hits"][0]["text"])
        await call(second, "memory_update", id=id, text="The tests are run with nox.")
        print("changed to:", (await call(second, "memory_get", id=id))["text"])
        print("forgotten:", (await call(second, "memory_forget", id=id))["forgotten"])


if __name__ == "__main__":
    asyncio.run(main())
