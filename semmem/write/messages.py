"""Convert messages of a chat, in the form of the model APIs, to items for ``remember_many``. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from semmem.model.errors import InvalidInput
from semmem.model.imported_items import RowError, life_of, plain_text
from semmem.model.types import source_type_of

__all__ = ["checked_session", "message_items"]


def message_items(
    messages: Iterable[Mapping[str, Any]], *, session: str, first: int, named: bool
) -> list[dict[str, Any]]:
    """Return one item for each message that has text; the first message has the position ``first`` in its session.

    The keys of a message: ``content`` is a string, or a list of parts of which those with text are used. ``role`` is
    the author unless ``name`` is given. ``created_at`` is its time. importance, sensitive, pinned, valid_from,
    valid_to, expires_at and ttl mean what they mean in ``remember``; source_type too, which by default follows the
    role. ``named`` gives each item the id SESSION:POSITION.

    A message that says nothing is left out but counts as a position: one that only calls a tool, an empty string, parts
    without text such as images, and the content None of anybody but a user and the system. Raises InvalidInput for a
    bad message, and so for one without content.
    """
    checked_session(session)
    if isinstance(first, bool) or not isinstance(first, int) or first < 0:
        raise InvalidInput(f"position must be a whole number, 0 or more, not {first!r}.")
    if isinstance(messages, Mapping | str | bytes) or not isinstance(messages, Iterable):
        raise InvalidInput(f"messages must be a list of messages, not {type(messages).__name__}.")
    items = []
    for position, message in enumerate(messages, first):
        author = (message.get("name") or message.get("role")) if isinstance(message, Mapping) else None
        number = position - first + 1
        if author is None:
            raise InvalidInput(f"Message {number} must be a mapping with 'role' and 'content'.")
        content = message.get("content")
        _check_content(message, number)
        try:
            text = plain_text(list(content) if isinstance(content, tuple) else content)
        except RowError:
            continue
        item = {"text": text, "author": str(author), "session": session, "position": position, **life_of(message)}
        source_type = message.get("source_type") or source_type_of(message.get("role"))
        if source_type is not None:
            item["source_type"] = source_type
        if named:
            item["id"] = f"{session}:{position}"
        if message.get("created_at") is not None:
            item["created_at"] = message["created_at"]
        items.append(item)
    return items


def checked_session(session: object) -> str:
    """Return the name of a session. Raises InvalidInput for what is none."""
    if not isinstance(session, str) or not session.strip():
        raise InvalidInput(f"session must be a name, not {session!r:.100}.")
    return session


_CALLS = ("tool_calls", "function_call")
"""What an assistant's message may hold in the place of a content."""

_ASKS = ("user", "human", "system", "developer")
"""The roles whose messages always have a content."""

_TEXTS = ("text", "input_text", "output_text")
"""The types of parts that are text."""


def _check_content(message: Mapping[str, Any], number: int) -> None:
    """Raise InvalidInput for a message whose content is missing, or of a type that no text can be read from."""
    if any(message.get(name) for name in _CALLS):
        return
    content = message.get("content")
    if "content" not in message or (content is None and message.get("role") in _ASKS):
        keys = ", ".join(map(repr, message))
        raise InvalidInput(
            f"Message {number} has no content, only {keys}; write {{'role': …, 'content': '…'}}. Nothing was stored."
            if "content" not in message
            else f"The content of message {number} is None; leave it out, or give its text. Nothing was stored."
        )
    if content is not None and not isinstance(content, str | list | tuple | Mapping):
        raise InvalidInput(
            f"The content of message {number} must be a string or a list of parts, not {type(content).__name__}. "
            "Nothing was stored."
        )
    for part in content if isinstance(content, list | tuple) else [content] if isinstance(content, Mapping) else ():
        text = part.get("text") if isinstance(part, Mapping) else part
        has_text = isinstance(text.get("value") if isinstance(text, Mapping) else text, str)
        if not has_text and (not isinstance(part, Mapping) or part.get("type") in _TEXTS):
            raise InvalidInput(
                f"A part of the content of message {number} must be a string, or a mapping with the string 'text' or "
                f"another 'type', not {part!r:.100}. Nothing was stored."
            )
