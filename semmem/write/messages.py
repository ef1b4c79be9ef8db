"""Convert messages of a chat, in the form of the model APIs, to items for ``remember_many``. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from semmem.importers import RowError, life_of, plain_text
from semmem.model.errors import InvalidInput

__all__ = ["message_items"]


def message_items(
    messages: Iterable[Mapping[str, Any]], *, session: str, first: int, named: bool
) -> list[dict[str, Any]]:
    """Return one item for each message that has text; the first message has the position ``first`` in its session.

    The keys of a message: ``content`` is a string, or a list of parts of which those with text are used. ``role`` is
    the author unless ``name`` is given. ``created_at`` is its time. importance, sensitive, pinned, valid_from,
    valid_to, expires_at and ttl mean what they mean in ``remember``. A message without text, such as a tool call, is
    left out but counts as a position. ``named`` gives each item the id SESSION:POSITION. Raises InvalidInput for a bad
    message.
    """
    if not isinstance(session, str) or not session.strip():
        raise InvalidInput(f"session must be a name, not {session!r}.")
    if isinstance(first, bool) or not isinstance(first, int) or first < 0:
        raise InvalidInput(f"position must be a whole number, 0 or more, not {first!r}.")
    if isinstance(messages, Mapping | str | bytes) or not isinstance(messages, Iterable):
        raise InvalidInput(f"messages must be a list of messages, not {type(messages).__name__}.")
    items = []
    for position, message in enumerate(messages, first):
        author = (message.get("name") or message.get("role")) if isinstance(message, Mapping) else None
        if author is None:
            raise InvalidInput(f"Message {position - first + 1} must be a mapping with 'role' and 'content'.")
        try:
            text = plain_text(message.get("content"))
        except RowError:
            continue
        item = {"text": text, "author": str(author), "session": session, "position": position, **life_of(message)}
        if named:
            item["id"] = f"{session}:{position}"
        if message.get("created_at") is not None:
            item["created_at"] = message["created_at"]
        items.append(item)
    return items
