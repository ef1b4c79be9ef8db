"""Say in words why a memory is not there, and since when a memory is not valid."""

from __future__ import annotations

from datetime import UTC, datetime
from reprlib import repr as shown

from semmem.model.store import Store
from semmem.model.types import Memory

__all__ = ["not_valid", "not_valid_at", "what_became"]


def what_became(store: Store, namespace: str, id: str) -> str:
    """Return a sentence about a memory that was forgotten or has expired; "" where the store knows nothing of it.

    The store knows an expired memory until ``maintain`` has swept it, and a forgotten one as long as it can be
    restored.
    """
    versions = store.life.history(namespace, id) if store.life is not None else ()
    if not versions:
        return ""
    last = versions[-1]
    beginning = f"There is no memory {shown(id)} in namespace {namespace!r} any more: it"
    if last.forgotten_at is not None:
        return (
            f"{beginning} was forgotten on {_day(last.forgotten_at)}, and can be restored until maintain has swept it."
        )
    if last.memory.expires_at is not None and last.memory.expires_at <= datetime.now(UTC):
        return f"{beginning} expired on {_day(last.memory.expires_at)}."
    return ""


def not_valid(memory: Memory, now: datetime) -> str | None:
    """Return since when or until when a memory is not valid, as part of a sentence; None where it is valid now."""
    if memory.valid_to is not None and memory.valid_to <= now:
        return f"not valid since {_day(memory.valid_to)}"
    if memory.valid_from is not None and memory.valid_from > now:
        return f"not valid before {_day(memory.valid_from)}"
    return None


def not_valid_at(at: datetime) -> str:
    """Return, as part of a sentence, that no version of a memory was valid at a time."""
    return f"no version of it was valid on {_day(at)}"


def _day(at: datetime) -> str:
    """Return a time in words, such as 3 May 2024, with the time of day in UTC unless it is midnight."""
    at = at.astimezone(UTC)
    day = f"{at.day} {at:%B %Y}"
    return day if (at.hour, at.minute, at.second) == (0, 0, 0) else f"{day}, {at:%H:%M} UTC"
