"""Count what a model pays for a memory: the tokens of tools, of answers and of a context, of semmem and of others.

    python -m eval tokens --server-memory "npx mcp-server-memory" --basic-memory "basic-memory mcp"

Each server is a process of its own with an empty store, asked over standard input and output by the same client. The
tokens are those of cl100k_base, the vocabulary of OpenAI's models that the package llama-index-core brings; other
vocabularies give other numbers, but no other order. A list of tools is counted as the JSON that a client receives.
"""

from __future__ import annotations

import json
import os
import shlex
import sys
import tempfile
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mcp import Client, StdioServerParameters

__all__ = ["BUDGET", "FACTS", "PARAGRAPH", "QUESTION", "counter", "measured", "peers", "tool_tokens"]

FACTS = (
    "The deploy runs on Fridays at nine.",
    "Ada prefers short answers.",
    "The Kestrel is our logger and writes JSON.",
    "PostgreSQL listens on port 6543 behind the pooler.",
    "Releases are tagged by Petra after the tests pass.",
)
QUESTION = "deploy logger port answers releases"
"""A question that finds all five."""

PARAGRAPH = (
    "On the {n}th of March the harbour office moved the timetable of the ferry from the paper board at the pier to "
    "the screen in the waiting room, because the board could not be read after dark and was wet through by noon on "
    "most days of the winter. Petra wrote the program that shows it, in an afternoon, and it has not been changed "
    "since: it reads the table of departures from a file on the office's own disk, sorts it by time, and leaves out "
    "whatever left more than ten minutes ago. When the file is missing it shows the word closed, which confused the "
    "tourists in {n} cases that summer, until somebody put a sheet of paper beside the screen. The pilots want the "
    "tide shown as well, the cashier wants the prices, and the office has decided that neither goes onto the screen "
    "before there is a second one; the reason is that rows were cut off at the bottom when they tried it with eleven "
    "departures. Whoever changes the program next should begin with the sorting, which is by text and so puts ten "
    "before nine."
)
"""A memory of some 200 words, such as a turn of an agent has."""

BUDGET = {
    "tools": 1_200, "recall of five facts": 250, "remember": 40, "remember beside two older ones": 100,
    "context / its texts": 1.15,
}  # fmt: skip
"""The most that each may cost."""


def counter() -> Callable[[str], int]:
    """Return what counts the tokens of a text, by a vocabulary that is on this machine."""
    import llama_index.core

    folder = Path(llama_index.core.__file__).parent / "_static" / "tiktoken_cache"
    os.environ["TIKTOKEN_CACHE_DIR"] = str(folder)  # tiktoken would download it
    import tiktoken

    encoding = tiktoken.get_encoding("cl100k_base")
    return lambda text: len(encoding.encode(text, disallowed_special=()))


async def tool_tokens(client: Client, count: Callable[[str], int]) -> dict[str, int]:
    """Return the tokens of each tool, as compact JSON."""
    tools = (await client.list_tools()).tools
    told = {tool.name: tool.model_dump(by_alias=True, exclude_none=True, mode="json") for tool in tools}
    return {name: count(json.dumps(one, separators=(",", ":"), ensure_ascii=False)) for name, one in told.items()}


@dataclass(frozen=True, slots=True)
class Server:
    """A server to measure: its command, and how its tools are called to remember a fact and to recall."""

    name: str
    command: tuple[str, ...]
    remember: Callable[[str, int], tuple[str, dict[str, Any]]]
    recall: tuple[str, dict[str, Any]]
    settle: Callable[[Client], Awaitable[Any]] | None = None


def peers(server_memory: str | None, basic_memory: str | None, *tools: str) -> list[Server]:
    """Return semmem, and the others that have a command."""
    own = (sys.executable, "-m", "semmem", "mcp", "--namespace", "tokens", *tools)
    out = [
        Server(
            "semmem",
            own,
            lambda text, _: ("memory_remember", {"text": text}),
            ("memory_recall", {"query": QUESTION, "limit": 5, "min_confidence": 0}),
        )
    ]
    if server_memory:
        out.append(
            Server(
                "server-memory",
                tuple(shlex.split(server_memory)),
                lambda text, n: (
                    "create_entities",
                    {"entities": [{"name": f"fact {n}", "entityType": "fact", "observations": [text]}]},
                ),
                ("search_nodes", {"query": "fact"}),
            )
        )
    if basic_memory:
        out.append(
            Server(
                "basic-memory",
                tuple(shlex.split(basic_memory)),
                lambda text, n: (
                    "write_note",
                    {"title": f"fact {n}", "content": text, "directory": "facts", "project": "main"},
                ),
                ("search_notes", {"query": "fact", "page_size": 5, "project": "main"}),
            )
        )
    return out


async def measured(server: Server, env: Mapping[str, str], count: Callable[[str], int]) -> dict[str, Any]:
    """Return what one server costs: tools, the last of five facts remembered, and a recall of the five."""
    first, *rest = server.command
    with tempfile.TemporaryDirectory() as folder:
        home = {"HOME": folder, "MEMORY_FILE_PATH": f"{folder}/memory.jsonl", "BASIC_MEMORY_HOME": f"{folder}/notes"}
        parameters = StdioServerParameters(command=first, args=rest, env={**env, **home}, cwd=folder)
        async with Client(parameters) as client:
            tools = await tool_tokens(client, count)
            said = ""
            for n, fact in enumerate(FACTS):
                name, arguments = server.remember(fact, n)
                said = await _answer(client, name, arguments)
            if server.settle is not None:
                await server.settle(client)
            found = await _answer(client, *server.recall)
    missing = [fact for fact in FACTS if fact.rstrip(".") not in found]
    return {
        "tools": sum(tools.values()),
        "number of tools": len(tools),
        "remember": count(said),
        "recall of five facts": count(found),
        "facts missing in the recall": len(missing),
    }


async def _answer(client: Client, name: str, arguments: dict[str, Any]) -> str:
    """Return the text that a model is shown of a tool's answer."""
    result = await client.call_tool(name, arguments)
    text = "\n".join(str(getattr(one, "text", "")) for one in result.content)
    if result.is_error:
        raise RuntimeError(f"{name} says: {text}")
    return text
