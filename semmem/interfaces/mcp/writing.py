"""The tools that change the store: memory_remember, memory_update and memory_forget."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from semmem.interfaces.mcp.schemas import (
    FIELDS,
    FILTERS,
    ID,
    NAMESPACE,
    NAMESPACES,
    VERBOSE,
    array,
    boolean,
    integer,
    string,
)
from semmem.interfaces.mcp.tools import Call, Tool, as_values
from semmem.interfaces.scope import with_agent
from semmem.model.errors import Conflict, InvalidInput, NotFound
from semmem.model.types import LINK_TYPES

if TYPE_CHECKING:
    from semmem.model.types import Memory

__all__ = ["TOOLS"]

_REMEMBERED = ("id", "created_at", *FIELDS.keys() - {"metadata"})


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
    found = call.found(call.arguments["id"])
    changes = call.arguments_named("text", *FIELDS)
    if changes.get("sensitive", True) is not True:
        raise InvalidInput("A sensitive memory stays sensitive here; a person can change that with `semmem update`.")
    if isinstance(changes.get("metadata"), Mapping):
        changes["metadata"] = with_agent(changes["metadata"], call.agent)
    updated = call.memory.update(
        found.id,
        namespace=found.namespace,
        expected_version=call.arguments.get("expected_version"),
        changed_by=call.agent.name,
        **changes,
    )
    return {"memory": as_values(updated)}


def forget(call: Call) -> dict[str, Any]:
    """Answer memory_forget."""
    id = call.arguments.get("id")
    chosen = call.present("filters", "everything", "hard", "dry_run")
    if chosen.get("everything") is True and not (chosen.get("hard") is True or chosen.get("dry_run") is True):
        raise InvalidInput(
            "A whole namespace is forgotten for good: count it with dry_run, and add hard if a person asked "
            "for exactly that. Nothing was forgotten."
        )

    def forgotten(id: Any, namespace: Any) -> tuple[int, Any]:
        return call.memory.forget(id, namespace=namespace, forgotten_by=call.agent.name, **chosen), namespace

    count, namespace = forgotten(None, call.namespace) if id is None else call.reached(id, forgotten)
    return {"forgotten": count, "dry_run": bool(chosen.get("dry_run", False)), "namespace": namespace}


def link(call: Call) -> dict[str, Any]:
    """Answer memory_link: both memories are of one namespace, that of the first."""
    type, to = (call.arguments[name] for name in ("type", "to"))
    found = call.found(call.arguments["id"])
    id, home = found.id, found.namespace
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
    count = call.memory.feedback(
        call.arguments["recall_id"],
        namespace=call.namespaces,
        made_by=call.agent.name,
        **call.present("useful", "not_useful"),
    )
    return {"judged": count}


_CHANGED = ("id", "version", "seen_count", "expires_at", "contradicts", "older")
"""The fields of a memory that a brief answer to a change gives, besides its namespace."""

_RARELY = ("author", "session", "position", "source", "valid_from", "expires_at", "created_at")

TOOLS = (
    Tool(
        "memory_remember", "Remember a text",
        "Store one thing worth knowing later: a decision and its reason, a preference, a name, how something is done, "
        "a problem and its solution. Whole sentences that stand by themselves: names, dates, no pronouns. If one of "
        "the `older` memories in the answer is no longer true, update or forget it.",
        remember,
        {
            "text": string("What to remember."),
            "namespace": NAMESPACE,
            "id": string("An id of your own; with it, the same content again changes nothing."),
            **FIELDS,
            "created_at": string("When it was said or happened (ISO 8601), where that is not now."),
            "verbose": VERBOSE,
        },
        ("text",), ("id", *_RARELY), _CHANGED, reads=False, repeatable=False,
    ),
    Tool(
        "memory_update", "Update a memory",
        "Change fields of a memory that is no longer right; the others stay, null takes one away. Better than "
        "remembering the new state beside the old one.",
        update,
        {
            "id": ID,
            "text": string("The new text, whole."),
            "namespace": NAMESPACE,
            **{name: {**schema, "type": [schema["type"], "null"]} for name, schema in FIELDS.items()},
            "expected_version": integer("Refuse where the memory is at another version."),
            "verbose": VERBOSE,
        },
        ("id",), (*_RARELY, "ttl", "metadata", "source_type", "sensitive", "expected_version", "verbose"), _CHANGED,
        reads=False, destroys=True,
    ),
    Tool(
        "memory_link", "Link two memories",
        "Say what one memory is to another: it supersedes it (the first is the newer fact, and recalls show it before "
        "the older one), is resolved by it, part of it, contradicts it, or is worth reading with it. The answer has "
        "all links of the first.",
        link,
        {
            "id": ID,
            "type": {"type": "string", "enum": list(LINK_TYPES), "description": "What the first is to the second."},
            "to": string("The id of the second memory, of the same namespace."),
            "namespace": NAMESPACE,
            "remove": boolean("Take this link away."),
        },
        ("id", "type", "to"), reads=False, destroys=True,
    ),
    Tool(
        "memory_forget", "Forget memories",
        "Remove one memory, or all that the filters match: what somebody wants gone, or what was never true. A person "
        "can take it back for some time, unless `hard`.",
        forget,
        {
            "id": ID,
            "filters": FILTERS,
            "namespace": NAMESPACE,
            "everything": boolean(
                "The whole namespace, for good; needs hard. Only if somebody asked for exactly that."
            ),
            "hard": boolean("For good: keep nothing of it; slow."),
            "dry_run": boolean("Only count."),
        },
        reads=False, destroys=True,
    ),
    Tool(
        "memory_feedback", "Judge what was recalled",
        "Say which memories of a recall with a recall_id were useful and which were not. It changes no answer.",
        feedback,
        {
            "recall_id": string("The recall_id of a recall."),
            "useful": array({"type": "string"}, "Ids of useful memories."),
            "not_useful": array({"type": "string"}, "Ids of those that were not."),
            "namespace": NAMESPACES,
        },
        ("recall_id",), reads=False,
    ),
)  # fmt: skip
"""The rows of this module."""
