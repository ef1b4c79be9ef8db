"""The tools that change the store: memory_remember, memory_update and memory_forget."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from semmem.doors.mcp.schemas import (
    FIELDS,
    FILTERS,
    ID,
    LINK,
    MEMORY,
    NAMESPACE,
    NAMESPACES,
    array,
    boolean,
    integer,
    string,
)
from semmem.doors.mcp.tools import Call, Tool, as_values
from semmem.doors.scope import with_agent
from semmem.model.errors import Conflict, InvalidInput, NotFound
from semmem.model.types import LINK_TYPES

if TYPE_CHECKING:
    from semmem.model.types import Memory

__all__ = ["TOOLS"]

_REMEMBERED = (
    "id", "title", "author", "session", "position", "source", "tags", "importance", "created_at", "sensitive",
    "valid_from", "valid_to", "expires_at", "ttl", "pinned", "source_type",
)  # fmt: skip


def remember(call: Call) -> dict[str, Any]:
    """Answer memory_remember; the metadata of the memory names the agent that wrote it."""
    item = {"namespace": call.namespace, "source_type": "agent", **call.present(*_REMEMBERED)}
    own_metadata = call.present("metadata").get("metadata")
    existing = _stored(call, item.get("id"))
    if existing is not None and existing.sensitive and not call.scope.reveal:
        raise Conflict(
            f"The id {existing.id!r} is that of a sensitive memory, and no text is compared with its text here; take "
            "another id, or change it with memory_update.",
            names=frozenset(((existing.namespace, existing.id),)),
        )
    metadata = (
        with_agent(own_metadata, call.agent)
        if own_metadata is None or isinstance(own_metadata, Mapping)
        else own_metadata
    )
    try:
        stored = call.memory.remember(call.arguments["text"], metadata=metadata, **item)
    except Conflict:
        if existing is None:
            raise
        if call.arguments.get("source_type") is None:  # who it comes from stays as it was stored
            item["source_type"] = existing.source_type
        before = existing.metadata.get("agent")
        if before is not None and isinstance(metadata, dict):
            metadata = {**metadata, "agent": before}
        stored = call.memory.remember(call.arguments["text"], metadata=metadata, **item)
    return {"memory": as_values(stored)}


def _stored(call: Call, id: Any) -> Memory | None:
    """Return the memory ``id`` of the namespace that the call names; None where there is none."""
    try:
        memory: Memory | None = None if id is None else call.memory.get(id, namespace=call.namespace)
    except NotFound:
        return None
    return memory


def update(call: Call) -> dict[str, Any]:
    """Answer memory_update."""
    id = call.arguments["id"]
    changes = call.arguments_named("text", *FIELDS)
    if changes.get("sensitive", True) is not True:
        raise InvalidInput("A sensitive memory stays sensitive here; a person can change that with `semmem update`.")
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
    if chosen.get("everything") is True and not (chosen.get("hard") is True or chosen.get("dry_run") is True):
        raise InvalidInput(
            "A whole namespace is forgotten for good: count it with dry_run, and add hard if a person asked "
            "for exactly that. Nothing was forgotten."
        )
    count = call.memory.forget(id, namespace=namespace, forgotten_by=call.agent.name, **chosen)
    return {"forgotten": count, "dry_run": bool(chosen.get("dry_run", False)), "namespace": namespace}


def link(call: Call) -> dict[str, Any]:
    """Answer memory_link: both memories are of one namespace, that of the first."""
    id, type, to = (call.arguments[name] for name in ("id", "type", "to"))
    home = call.home(id)
    remove = call.present("remove").get("remove", False)
    if not isinstance(remove, bool):
        raise InvalidInput(f"remove must be true or false, not {remove!r}; nothing was changed.")
    if remove:
        changed = call.memory.unlink(id, type, to, namespace=home)
    else:
        call.memory.link(id, type, to, namespace=home, made_by=call.agent.name)
        changed = True
    links = [one.as_dict() for one in call.memory.links(id, namespace=home)]
    return {"linked": changed and not remove, "unlinked": changed and remove, "links": links}


def feedback(call: Call) -> dict[str, Any]:
    """Answer memory_feedback."""
    named = call.arguments.get("namespace")
    count = call.memory.feedback(
        call.arguments["recall_id"],
        namespace=call.scope.namespaces if named is None else named,
        made_by=call.agent.name,
        **call.present("useful", "not_useful"),
    )
    return {"judged": count}


TOOLS = (
    Tool(
        "memory_remember",
        "Remember a text",
        "Store one thing that will be worth knowing later: a decision and its reason, a preference, a name and what it "
        "stands for, how something is done here, a problem and its solution. One thing a call, in whole sentences that "
        "can be understood without the conversation: names instead of pronouns, dates instead of 'yesterday'. It is "
        "stored when this returns. What is true of the person in every project goes to the personal namespace. The "
        "answer names up to two `older` memories; if one is no longer true, call memory_link with supersedes.",
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
        "memory_link",
        "Link two memories",
        "Say what one memory is to another: it supersedes it (the first is the newer fact; recalls then show it before "
        "the older one, and mark that), is resolved by it, is a part of it, contradicts it, or is worth reading with "
        "it. Use supersedes where an older memory must stay as it was said; where it may change, memory_update. The "
        "answer has all links of the first memory. Linked already, they stay so; with remove the link is taken away.",
        link,
        {
            "id": ID,
            "type": {"type": "string", "enum": list(LINK_TYPES), "description": "What the first is to the second."},
            "to": string("The id of the second memory, of the same namespace."),
            "namespace": NAMESPACE,
            "remove": boolean("Take this link away."),
        },
        ("id", "type", "to"),
        {
            "linked": {"type": "boolean"},
            "unlinked": {"type": "boolean"},
            "links": array(LINK, "From and to the first memory."),
        },
        reads=False,
        destroys=True,
    ),
    Tool(
        "memory_forget",
        "Forget memories",
        "Remove one memory by its id, or all that the filters match. Use it when somebody asks you to forget "
        "something, or for what was never true; what has changed is better updated. Nothing finds it any more; its "
        "text is kept apart for some time, so that a person can take it back, unless hard is given: use that where "
        "somebody asks for it to be gone for good. With dry_run it only counts.",
        forget,
        {
            "id": ID,
            "filters": FILTERS,
            "namespace": NAMESPACE,
            "everything": boolean(
                "The whole namespace, for good, so it needs hard too; only where somebody asked for exactly that."
            ),
            "hard": boolean("For good: keep nothing of it, and leave none of its bytes in the files; slow."),
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
    Tool(
        "memory_feedback",
        "Judge what was recalled",
        "Say which memories of a memory_recall were useful and which were not, where it gave a recall_id. The person "
        "who runs the store can measure and better the search by it; it changes no answer by itself.",
        feedback,
        {
            "recall_id": string("The recall_id of a memory_recall."),
            "useful": array({"type": "string"}, "Ids of memories that were useful."),
            "not_useful": array({"type": "string"}, "Ids of memories that were not."),
            "namespace": NAMESPACES,
        },
        ("recall_id",),
        {"judged": integer("How many judgments were stored.")},
        reads=False,
    ),
)
"""The rows of this module."""
