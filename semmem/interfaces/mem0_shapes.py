"""What mem0 takes and shows, as what a store of semmem keeps, and back. Pure.

Who a memory belongs to is in its metadata, a run in its session as well.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, date, datetime
from hashlib import md5
from typing import Any

from semmem.model.errors import InvalidInput
from semmem.model.filters import at_time
from semmem.model.imported_items import RowError, plain_text
from semmem.model.metadata_filters import contained, holds
from semmem.model.types import Memory as Stored

__all__ = [
    "OWNERS", "added", "change", "day", "is_shown", "lacking", "mapping", "narrowed", "row", "speaker", "time",
    "turn_of", "with_times",
]  # fmt: skip

OWNERS = ("user_id", "agent_id", "run_id")
_PROMOTED = (*OWNERS, "actor_id", "role", "expiration_date")
"""Metadata that mem0 shows beside the memory, not in its metadata."""

_TIMES = ("created_at", "updated_at")
_OF_MEMORY = (*_TIMES, "metadata")
"""Conditions of mem0 that are about the memory itself, and not about a key of its metadata."""


def mapping(name: str, value: Any) -> Mapping[str, Any]:
    """Return ``value``, or an empty mapping for None. Raises InvalidInput for what is no mapping."""
    if value is not None and not isinstance(value, Mapping):
        raise InvalidInput(f"{name} must be a mapping, not {value!r:.100}.")
    return value or {}


def turn_of(message: Any) -> dict[str, Any] | None:
    """Return role, name and text of a message; None for one of the system, and for what says nothing."""
    if not isinstance(message, Mapping):
        raise InvalidInput(
            f"A message must be a mapping, such as {{'role': 'user', 'content': '…'}}, not {message!r:.100}."
        )
    if message.get("role") in (None, "system"):
        return None
    try:
        text = plain_text(message.get("content"))
    except RowError:
        return None
    return {"role": str(message["role"]), "content": text, "name": message.get("name")} if text.strip() else None


def lacking(message: Mapping[str, Any]) -> str | None:
    """Return what a message lacks without which nobody can tell what was said, in words; else None."""
    if message.get("role") is None:
        return "'role'"
    content = message.get("content")
    if message.get("tool_calls") or message.get("function_call") or isinstance(content, str | list | Mapping):
        return None
    return "'content'" if content is None else f"text, but the content {content!r:.100},"


def speaker(turn: Mapping[str, Any]) -> dict[str, Any]:
    """Return who said a turn, as metadata."""
    return {"role": turn["role"], **({"actor_id": turn["name"]} if turn["name"] else {})}


def day(value: Any) -> str:
    """Return a day as YYYY-MM-DD. Raises InvalidInput."""
    if isinstance(value, date):
        return (value.date() if isinstance(value, datetime) else value).isoformat()
    try:
        return date.fromisoformat(value).isoformat()
    except (TypeError, ValueError):
        raise InvalidInput(f"expiration_date must be a date, YYYY-MM-DD, not {value!r}.") from None


def with_times(conditions: Mapping[str, Any]) -> dict[str, Any]:
    """Return conditions with the times of a memory as times. Raises InvalidInput for one that is none."""

    def at(name: str, value: Any) -> Any:
        if isinstance(value, Mapping):
            return {operator: at(name, than) for operator, than in value.items()}
        return value if value == "*" else at_time(name, value)

    return {name: at(name, value) if name in _TIMES else value for name, value in conditions.items()}


def narrowed(conditions: Mapping[str, Any]) -> dict[str, Any]:
    """Return the part of conditions that the store filters by: a run by its session, times, the rest by metadata."""
    metadata = contained({name: value for name, value in conditions.items() if name not in _OF_MEMORY})
    run = metadata.pop("run_id", None)
    made = conditions.get("created_at")
    made = made if isinstance(made, Mapping) else {}
    filters = {
        "metadata": metadata or None,
        "sessions": None if run is None else [run],
        "created_after": made.get("gte", made.get("gt")),
        "created_before": made.get("lt"),
    }
    return {name: value for name, value in filters.items() if value is not None}


def is_shown(one: Stored, conditions: Mapping[str, Any], show_expired: bool) -> bool:
    """Return whether a memory meets the conditions, and has not expired unless that does not matter."""
    values = {**one.metadata, "created_at": one.created_at, "updated_at": one.updated_at, "metadata": one.metadata}
    if one.session is not None:
        values["run_id"] = one.session
    expires = one.metadata.get("expiration_date")
    is_expired = isinstance(expires, str) and expires < datetime.now(UTC).date().isoformat()
    return (show_expired or not is_expired) and holds(conditions, values)


def row(one: Stored, **score: Any) -> dict[str, Any]:
    """Return a memory as mem0 shows it."""
    rest = {name: value for name, value in one.metadata.items() if name not in _PROMOTED}
    promoted = {name: one.metadata[name] for name in _PROMOTED if one.metadata.get(name) is not None}
    if one.session is not None:
        promoted["run_id"] = one.session
    return {
        "id": one.id,
        "memory": one.text,
        "hash": md5(one.text.encode(), usedforsecurity=False).hexdigest(),
        "metadata": rest or None,
        **score,
        "created_at": time(one.created_at),
        "updated_at": time(one.updated_at),
        **promoted,
    }


def change(before: str | None, one: Stored) -> dict[str, Any]:
    """Return a version of a memory as mem0 shows a change of it; ``before`` is the text of the one before."""
    return {
        "id": f"{one.id}@{one.version}", "memory_id": one.id, "old_memory": before, "new_memory": one.text,
        "event": "ADD" if before is None else "UPDATE", "created_at": time(one.created_at),
        "updated_at": None if before is None else time(one.updated_at), "is_deleted": False,
        "actor_id": one.metadata.get("actor_id"), "role": one.metadata.get("role"),
    }  # fmt: skip


def added(item: Mapping[str, Any]) -> dict[str, Any]:
    """Return an item that was stored as mem0 tells of it."""
    event = {"id": item["id"], "memory": item["text"], "event": "ADD"}
    metadata = item["metadata"]
    return {**event, "actor_id": metadata.get("actor_id"), "role": metadata["role"]} if "role" in metadata else event


def time(at: datetime | None) -> str | None:
    """Return a time in ISO 8601."""
    return None if at is None else at.astimezone(UTC).isoformat()
