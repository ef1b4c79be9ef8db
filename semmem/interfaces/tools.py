"""Tools for the APIs of OpenAI and Anthropic: the schemas that a request carries, and the function that runs a call.

They are the tools of the MCP server: same names, arguments, answers and errors.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from semmem.interfaces.arguments import check_memory, check_namespace
from semmem.interfaces.mcp.permission import within_scope
from semmem.interfaces.mcp.table import ALL, CORE, TOOLS, chosen, listed
from semmem.interfaces.mcp.tools import Call, Tool, answer_call, answer_error
from semmem.interfaces.scope import Agent, Scope
from semmem.model.errors import InvalidInput, NotFound
from semmem.model.filters import person

if TYPE_CHECKING:
    from semmem.client.memory import Semmem

__all__ = ["Api", "run_call", "tool_schemas"]

Api = Literal["openai", "openai-chat", "anthropic"]

_TOOLS = {tool.name: tool for tool in TOOLS if not tool.bare}


def tool_schemas(api: Api = "openai", *, only: Sequence[str] | None = None) -> list[dict[str, Any]]:
    """Return what the field ``tools`` of a request takes.

    ``openai`` is the Responses API, ``openai-chat`` Chat Completions (and every endpoint that speaks it),
    ``anthropic`` the Messages API. ``only`` names the tools, else they are those to remember, recall, get, update and
    forget; ``["all"]`` is every tool, with arguments that are seldom given. Raises InvalidInput for an unknown name.
    """
    if isinstance(only, str) or not (only is None or isinstance(only, Iterable)):
        raise InvalidInput(f"only must be a list of names of tools, such as ['memory_recall'], not {only!r:.100}.")
    names = [CORE] if only is None else list(only)
    rows = [one for one in listed(chosen(names), seldom=names == [ALL]) if not one[0].bare]
    match api:
        case "openai":
            return [{"type": "function", **_described(tool), "parameters": schema} for tool, schema in rows]
        case "openai-chat":
            return [
                {"type": "function", "function": {**_described(tool), "parameters": schema}} for tool, schema in rows
            ]
        case "anthropic":
            return [{**_described(tool), "input_schema": schema} for tool, schema in rows]
    raise InvalidInput(f"api must be 'openai', 'openai-chat' or 'anthropic', not {api!r}.")


def run_call(
    memory: Semmem,
    name: str,
    arguments: str | Mapping[str, Any] | None,
    *,
    namespace: str = "default",
    only_namespace: bool = False,
    agent: str | None = None,
) -> tuple[str, bool]:
    """Run one call of a tool as the model made it, and return (what to send back, whether it is an error).

    ``arguments`` are a mapping, or the JSON that OpenAI's APIs send. ``namespace`` is where it writes and looks unless
    the call names another; with ``only_namespace`` the model may name no other. ``agent`` is noted with what is
    remembered. Never raises for what a model may do wrong: the answer then is JSON with a sentence that says what to
    do. Raises InvalidInput for a memory or a namespace that is none.
    """
    check_memory(memory)
    check_namespace(namespace)
    person("agent", agent)
    try:
        tool = _tool(name)
        if not (arguments is None or isinstance(arguments, str | Mapping)):
            raise InvalidInput(f"The arguments of {name} must be an object, not {type(arguments).__name__}.")
        values = json.loads(arguments or "{}") if isinstance(arguments, str) else dict(arguments or {})
        if not isinstance(values, dict):
            raise InvalidInput(f"The arguments of {name} must be an object, not {type(values).__name__}.")
    except (InvalidInput, NotFound) as error:
        return answer_error(error).text, True
    except (ValueError, TypeError, RecursionError) as error:
        wrong = answer_error(InvalidInput(f"The arguments of {name} are not JSON: {error}."))
        return wrong.text, True
    scope = Scope(namespace, (namespace,), "the program that runs the call")
    scope = scope.alone() if only_namespace else scope
    answer = answer_call(tool, lambda: Call(within_scope(memory, scope), values, scope, Agent(agent)), values)
    return answer.text, answer.failed


def _tool(name: str) -> Tool:
    tool = _TOOLS.get(name) if isinstance(name, str) else None
    if tool is None:
        raise NotFound(f"There is no tool {name!r}; choose one of {', '.join(_TOOLS)}.")
    return tool


def _described(tool: Tool) -> dict[str, Any]:
    return {"name": tool.name, "description": tool.description}
