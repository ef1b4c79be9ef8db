"""Every verb of the facade stands at every door, with its arguments; what is left out stands here, with the reason."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
import typer

from semmem import Semmem
from semmem.client.asynchronous import AsyncSemmem
from semmem.client.http import HttpSemmem
from semmem.client.routes import REFUSED, ROUTES
from semmem.interfaces.cli.app import app
from semmem.interfaces.mcp.table import TOOLS
from semmem.interfaces.tools import tool_schemas
from semmem.model.types import Filters

VERBS = {
    name: set(inspect.signature(verb).parameters) - {"self"}
    for name, verb in inspect.getmembers(Semmem, inspect.isfunction)
    if not name.startswith("_") and name != "close"
}

COMMANDS = {
    **{name: name.replace("_", "-") for name in VERBS},
    "import_items": "import",
    "remember_many": "remember",  # a file of items
    "configure": "settings set",
    "settings_of": "settings",
    "searched_by": "settings",
    "unset_settings": "settings unset",
    "merge_concepts": "concepts merge",
    "split_concept": "concepts split",
    "graph_hash": "rebuild",  # which ends with it
    "hashes": "stats",  # --verify
    "rename_namespace": "namespaces rename",
    "copy_namespace": "namespaces copy",
    "drop_namespace": "namespaces drop",
    "namespace_limits": "namespaces limit",
    "recalls": "log",
    "audit": "audit export",
    "logged_recall": "log show",
    "replay_recall": "log replay",
}
"""The command of each verb."""

WITHOUT_A_COMMAND = {
    "leg": "one leg by itself is a recall with the recipe of that name",
    "register_leg": "takes a leg of a program; a package gives one by an entry point",
    "remember_messages": "a chat is brought in from a file: semmem import chat",
}

TOOL_OF = {
    "remember": "memory_remember", "recall": "memory_recall", "context": "memory_context", "get": "memory_get",
    "list": "memory_list", "update": "memory_update", "forget": "memory_forget", "history": "memory_history",
    "link": "memory_link", "unlink": "memory_link", "links": "memory_link", "feedback": "memory_feedback",
}  # fmt: skip
"""The tool of each verb that an agent needs."""

FOR_A_PERSON = "what a whole store or namespace is and keeps is the person's to decide who runs it"
WITHOUT_A_TOOL = {
    **dict.fromkeys(
        (
            "backup", "restore", "rebuild", "maintain", "configure", "settings_of", "searched_by", "unset_settings",
            "register_leg", "rename_namespace", "copy_namespace", "drop_namespace", "namespace_limits", "namespaces",
            "merge_concepts", "split_concept", "contradictions", "near_duplicates", "forgotten", "probe", "hashes",
            "doctor", "graph_hash", "judgments", "concepts", "graph", "leg", "replay_recall",
        ),
        FOR_A_PERSON,
    ),
    "remember_many": "an agent remembers one thing a call",
    "remember_messages": "the hooks of coding agents store the turns",
    "import_items": "files are brought in by semmem import",
    "export": "files are written by semmem export",
    "changes": "for programs that keep a copy",
    "stats": "is the resource semmem://stats",
    "audit": "is about agents, and for those who run the store",
    "recalls": "is the resource semmem://recalls",
    "logged_recall": "is a resource under semmem://recalls",
    "restore_memory": "a person takes back what an agent was asked to forget",
}  # fmt: skip

THE_CALLER = "is the agent that calls"
NO_ARGUMENT_OF_A_TOOL = {
    "made_by": THE_CALLER,
    "changed_by": THE_CALLER,
    "forgotten_by": THE_CALLER,
    "changes": "stand as arguments by their names",
    "vector": "a model has no vectors to give",
    "fold_parts": "a model is shown a memory once",
    "reveal": "no tool shows a secret unless the person who starts the server says so",
}

NO_OPTION_OF_A_COMMAND = {
    "progress": "is shown on the terminal",
    "dry_run": "is what happens without --yes",
    "filters": "are options by their names",
    "fold_parts": "a terminal shows a memory once",
    "token_budget": "is --budget",
    "changed_by": "is --by",
    "forgotten_by": "is --by",
    "changes": "are options by their names",
    "witness": "is --question and --text",
    "vector": "a question is typed; the vector of a text can be given",
    "file": "is a place: a file, or a folder or a bucket with a series of them",
    "noted": "is for a file that has yet to reach its place",
}


def commands(group: Any = None, before: str = "") -> Iterator[tuple[str, set[str]]]:
    """Yield each command with the names of its options and arguments."""
    one = typer.main.get_command(app) if group is None else group
    yield before, {parameter.name for parameter in one.params}
    for name in getattr(one, "commands", ()) or ():
        yield from commands(one.commands[name], f"{before} {name}".strip())


def test_a_server_has_a_route_for_every_verb_or_says_why_not() -> None:
    served = {verb for route in ROUTES for verb in route.verbs}
    assert set(VERBS) == served | (set(REFUSED) - {"copy"})  # copy takes two URLs and is no method
    for verb in VERBS:
        assert verb in vars(HttpSemmem), verb
        assert verb in vars(AsyncSemmem), verb


def test_every_verb_has_a_command_or_a_reason_to_have_none() -> None:
    there = {name for name, _ in commands()}
    missing = {verb for verb in VERBS if COMMANDS[verb] not in there}
    assert missing == set(WITHOUT_A_COMMAND)


def test_every_verb_that_an_agent_needs_has_a_tool_and_any_other_a_reason() -> None:
    assert set(TOOL_OF) | set(WITHOUT_A_TOOL) == set(VERBS)
    assert not set(TOOL_OF) & set(WITHOUT_A_TOOL)
    others = {"memory_explain", "search", "fetch"}  # recall(…).explain(id), and what ChatGPT's connectors ask for
    assert {tool.name for tool in TOOLS} == set(TOOL_OF.values()) | others
    assert {one["name"] for one in tool_schemas("anthropic", only=["all"])} == {one.name for one in TOOLS} - {
        "search",
        "fetch",
    }


@pytest.mark.parametrize("verb", sorted(TOOL_OF))
def test_a_tool_takes_the_arguments_of_its_verb(verb: str) -> None:
    (tool,) = [tool for tool in TOOLS if tool.name == TOOL_OF[verb]]
    left_out = VERBS[verb] - set(tool.arguments) - ({"as_of"} if verb == "get" else set())
    assert left_out <= set(NO_ARGUMENT_OF_A_TOOL)
    if (filters := tool.arguments.get("filters")) is not None:
        assert set(filters["properties"]) == set(Filters.__dataclass_fields__)


@pytest.mark.parametrize("verb", sorted(name for name in VERBS if COMMANDS[name] == name.replace("_", "-")))
def test_a_command_takes_the_arguments_of_its_verb(verb: str) -> None:
    options: Mapping[str, set[str]] = dict(commands())
    if verb in WITHOUT_A_COMMAND:
        return
    own = options[COMMANDS[verb]]
    assert VERBS[verb] - own <= set(NO_OPTION_OF_A_COMMAND)
    if "filters" in VERBS[verb]:
        assert set(Filters.__dataclass_fields__) - own <= (set() if verb in ("list", "forget") else {"sensitive"})
