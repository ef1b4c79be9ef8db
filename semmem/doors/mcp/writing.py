"""The tools that change the store: memory_remember, memory_update and memory_forget."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from semmem.doors.mcp.schemas import FIELDS, FILTERS, ID, MEMORY, NAMESPACE, boolean, integer, string
from semmem.doors.mcp.tools import Call, Tool, as_values
from semmem.doors.scope import with_agent
from semmem.model.errors import Conflict, InvalidInput, NotFound

__all__ = ["TOOLS"]

_REMEMBERED = (
    "id", "title", "author", "session", "position", "source", "tags", "importance", "created_at", "sensitive",
)  # fmt: skip


def remember(call: Call) -> dict[str, Any]:
    """Answer memory_remember; the metadata of the memory names the agent that wrote it."""
    item = {"namespace": call.namespace, **call.present(*_REMEMBERED)}
    given = call.present("metadata").get("metadata")
    metadata = with_agent(given, call.agent) if given is None or isinstance(given, Mapping) else given
    try:
        stored = call.memory.remember(call.arguments["text"], metadata=metadata, **item)
    except Conflict:
        before = _writer(call, item.get("id"))
        if before is None or not isinstance(metadata, dict) or before == metadata.get("agent"):
            raise
        stored = call.memory.remember(call.arguments["text"], metadata={**metadata, "agent": before}, **item)
    return {"memory": as_values(stored)}


def _writer(call: Call, id: Any) -> Any:
    """Return which agent wrote the memory ``id``: another one that remembers the same again changes nothing."""
    try:
        return call.memory.get(id, namespace=call.namespace).metadata.get("agent")
    except NotFound:
        return None


def update(call: Call) -> dict[str, Any]:
    """Answer memory_update."""
    id = call.arguments["id"]
    changes = call.given("text", *FIELDS)
    if changes.get("sensitive", True) is not True:
        raise InvalidInput("What is sensitive stays so here; a person takes it back with `semmem update`.")
    if isinstance(changes.get("metadata"), Mapping):
        changes["metadata"] = with_agent(changes["metadata"], call.agent)
    updated = call.memory.update(
        id,
        namespace=call.home(id),
        expected_version=call.arguments.get("expected_version"),
        changed_by=call.agent.name,
        **changes,
    )
    return {"memory": as_values(updated)}


def forget(call: Call) -> dict[str, Any]:
    """Answer memory_forget."""
    id = call.arguments.get("id")
    namespace = call.namespace if id is None else call.home(id)
    chosen = call.present("filters", "everything", "hard", "dry_run")
    count = call.memory.forget(id, namespace=namespace, **chosen)
    return {"forgotten": count, "dry_run": bool(chosen.get("dry_run", False)), "namespace": namespace}


TOOLS = (
    Tool(
        "memory_remember",
        "Remember a text",
        "Store one thing that will be worth knowing later: a decision and its reason, a preference, a name and what it "
        "stands for, how something is done here, a problem and its solution. One thing a call, in whole sentences that "
        "can be understood without the conversation: names instead of pronouns, dates instead of 'yesterday'. It is "
        "stored when this returns. What is true of the person in every project goes to the personal namespace.",
        remember,
        {
            "text": string("What is to be remembered."),
            "namespace": NAMESPACE,
            "id": string("An id of your own; the same id and content again changes nothing, other content is refused."),
            **FIELDS,
            "created_at": string("When it was said or happened (ISO 8601), where that is not now."),
        },
        ("text",),
        {"memory": MEMORY},
        reads=False,
        repeatable=False,
    ),
    Tool(
        "memory_update",
        "Update a memory",
        "Change a memory that is no longer right, in place: its id stays and its version counts up. Only the fields "
        "that are given change; null takes one away. Better than remembering the new state beside the old one.",
        update,
        {
            "id": ID,
            "namespace": NAMESPACE,
            "text": string("The new text, whole."),
            **{name: {**schema, "type": [schema["type"], "null"]} for name, schema in FIELDS.items()},
            "expected_version": integer("Refuse where the memory is at another version, for somebody was faster."),
        },
        ("id",),
        {"memory": MEMORY},
        reads=False,
        destroys=True,
    ),
    Tool(
        "memory_forget",
        "Forget memories",
        "Remove one memory by its id, or all that the filters match, for good. Use it when somebody asks you to forget "
        "something, or for what was never true; what has changed is better updated. With dry_run it only counts.",
        forget,
        {
            "id": ID,
            "filters": FILTERS,
            "namespace": NAMESPACE,
            "everything": boolean("The whole namespace; only where somebody asked for exactly that."),
            "hard": boolean("Also leave none of the bytes in the files of the store; slow."),
            "dry_run": boolean("Only count."),
        },
        (),
        {
            "forgotten": integer("How many memories."),
            "dry_run": {"type": "boolean"},
            "namespace": {"type": "string"},
        },
        reads=False,
        destroys=True,
    ),
)
"""The rows of this module."""
