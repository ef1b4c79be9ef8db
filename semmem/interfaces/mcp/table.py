"""The table of tools, which of them a server offers, and how they are listed: each argument is described once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from semmem.interfaces.mcp import reading, writing
from semmem.interfaces.mcp.schemas import Schema, structure
from semmem.interfaces.mcp.tools import Tool
from semmem.model.errors import NotFound

__all__ = ["ALL", "CORE", "NAMES", "OTHERS", "TOOLS", "chosen", "listed"]

TOOLS: tuple[Tool, ...] = (*writing.TOOLS[:1], *reading.TOOLS[:4], *writing.TOOLS[1:], *reading.TOOLS[4:])
"""The tools in the order in which they are listed."""

NAMES = frozenset(tool.name for tool in TOOLS)

ALL, CORE = "all", "core"
_CORE = ("memory_remember", "memory_recall", "memory_get", "memory_update", "memory_forget")
OTHERS = "; the person who starts the server can offer more of them with --tools"


def chosen(names: Sequence[str]) -> tuple[Tool, ...]:
    """Return the tools of these names, with or without ``memory_``; ``core`` and ``all`` are several of them.

    Raises NotFound for a name of none.
    """
    wanted: set[str] = set()
    for name in names:
        word = name.strip() if isinstance(name, str) else name
        some = {CORE: _CORE, ALL: NAMES}.get(word) if isinstance(word, str) else None
        one = word if word in NAMES else f"memory_{word}"
        if some is None and one not in NAMES:
            raise NotFound(
                f"There is no tool {word!r}; choose {CORE}, {ALL}, or some of "
                f"{', '.join(tool.name.removeprefix('memory_') for tool in TOOLS)}."
            )
        wanted |= set(some or (one,))
    return tuple(tool for tool in TOOLS if tool.name in wanted)


def listed(tools: Iterable[Tool], *, seldom: bool = False) -> Iterator[tuple[Tool, Schema]]:
    """Yield each tool with the schema of its arguments as a client is told it, those ``seldom`` given too if asked.

    An argument that an earlier tool describes in the same words is not described again.
    """
    described: dict[tuple[str, str], str] = {}
    for tool in tools:
        properties = {
            name: _told(schema, described.setdefault((name, schema.get("description", "")), tool.name), tool.name)
            for name, schema in tool.arguments.items()
            if seldom or name not in tool.seldom
        }
        yield tool, structure(properties, tool.required)


def _told(schema: Schema, first: str, tool: str) -> Schema:
    """Return the schema of an argument which the tool ``first`` describes: its types, and in that tool its words."""
    choices = schema.get("anyOf", [schema])
    kinds = [one["type"] for one in choices]
    told: Schema = {"type": kinds if len(kinds) > 1 else kinds[0]}
    told |= {name: one[name] for one in choices for name in ("items", "enum") if name in one and len(kinds) == 1}
    if len(kinds) > 1 and "array" in kinds:
        told["items"] = {"type": "string"}
    if "properties" in schema and first != tool:
        return {**told, "description": f"As in {first}."}
    if "properties" in schema:
        told["properties"] = {name: _told(one, tool, tool) for name, one in schema["properties"].items()}
    return told if first != tool or "description" not in schema else {**told, "description": schema["description"]}
