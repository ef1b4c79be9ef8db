"""The items that an import gives to ``remember``, and the marks by which a stored memory is known as imported. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b
from typing import Any

from semmem.model.types import NOTE_HASH, Memory

__all__ = [
    "EXPORTED",
    "LIFE",
    "MARK",
    "NOTE_HASH",
    "Item",
    "RowError",
    "VectorItem",
    "content_hash",
    "edited",
    "exported_item",
    "hash_of",
    "hashed",
    "item",
    "life_of",
    "plain_text",
]

LIFE = ("importance", "sensitive", "valid_from", "valid_to", "expires_at", "ttl", "pinned")
"""Arguments of ``remember`` that a chat message or a note may have under the same names."""

MARK = "imported_from"
"""The metadata key that names the file from which a memory was imported."""

_NOT_GIVEN = ("updated_at", "version", "parent_id", "access_count", "last_accessed")
"""Fields that the store sets itself; an export has them for people to read."""
_OF_A_STORE = frozenset(_NOT_GIVEN)
EXPORTED = frozenset((*_NOT_GIVEN, "vectors", "embedder", "links", "text_at", "untimed"))
"""Fields of an export that are no argument of ``remember``."""


class RowError(Exception):
    """The reason why a row cannot be a memory."""


class Item(dict[str, Any]):
    """The arguments of ``remember`` for one memory; ``where`` is its place in the file.

    ``links`` are the links from this memory: mappings with ``type``, ``to``, ``since`` and ``made_by``. ``text_at`` is
    when its text began, None for its ``created_at``. ``untimed`` says that nobody has given its ``created_at``, which
    the store has taken from the clock, so that the same content without a time is a repeat. ``id_of_content`` says that
    its id is a hash of its content, which would allow guessing a secret.
    """

    where: str = ""
    links: Sequence[Any] = ()
    text_at: Any = None
    untimed: Any = False
    id_of_content: bool = False


def item(where: str, **fields: Any) -> Item:
    """Return an item without the arguments that are None."""
    result = Item({name: value for name, value in fields.items() if value is not None})
    result.where = where
    return result


def life_of(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of LIFE that a row has, unchecked; ``remember`` refuses wrong values."""
    return {name: row[name] for name in LIFE if row.get(name) is not None}


class VectorItem(Item):
    """An item with vectors of its text or parts: ``vectors`` maps a hash of what was embedded to base64.

    They are used where the same embedder, by its fingerprint, fills the store.
    """

    embedder: str = ""
    vectors: Mapping[str, str]


def exported_item(where: str, row: Mapping[str, Any], *, vectors: bool = True) -> Item:
    """Return one row of an export as an item: without the store's own fields, with the vectors of its parts."""
    fields = {name: value for name, value in row.items() if name not in _NOT_GIVEN}
    stored_vectors, embedder = fields.pop("vectors", None), fields.pop("embedder", None)
    links, text_at, untimed = (fields.pop(name, None) for name in ("links", "text_at", "untimed"))
    result = item(where, **fields)
    if vectors and isinstance(stored_vectors, Mapping) and isinstance(embedder, str):
        result = VectorItem(result)
        result.where, result.embedder, result.vectors = where, embedder, stored_vectors
    result.text_at, result.untimed = text_at, untimed
    if not _OF_A_STORE.isdisjoint(row) or ("source_type" in row and not EXPORTED.isdisjoint(row)):
        # where an export names none, nobody has said it; a program's item that has links gives none
        result["source_type"] = fields.get("source_type")
    if links is not None:
        result.links = links if isinstance(links, list) else [links]
    return result


def content_hash(text: str, title: str | None, tags: Iterable[str], metadata: Mapping[str, Any]) -> str:
    """Return a hash of a note's content, the same wherever its folder lies; 16 characters."""
    rest = {key: value for key, value in metadata.items() if key not in (MARK, NOTE_HASH, "vault_id")}
    content = json.dumps([text, title or None, list(tags), _numbers(rest)], sort_keys=True)
    return blake2b(content.encode(), digest_size=8).hexdigest()


def hashed(item: Item) -> None:
    """Add to an item the hash of its content, by which an edit of its memory by hand is known later."""
    metadata = item.setdefault("metadata", {})
    metadata[NOTE_HASH] = content_hash(item["text"], item.get("title"), item.get("tags", ()), metadata)


def edited(memory: Memory) -> bool:
    """Return whether a memory of a note has changed since the note was imported."""
    before = memory.metadata.get(NOTE_HASH)
    return before is not None and before != hash_of(memory)


def hash_of(memory: Memory) -> str:
    """Return the hash of a memory's content as it is now."""
    return content_hash(memory.text, memory.title, memory.tags, memory.metadata)


def _numbers(value: Any) -> Any:
    """Return JSON with its numbers as text, because a store returns 1e300 as an integer."""
    if isinstance(value, Mapping):
        return {key: _numbers(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_numbers(one) for one in value]
    if isinstance(value, bool) or not isinstance(value, int | float):
        return value
    try:
        return f"number {float(value) + 0.0}"
    except OverflowError:
        return f"number {value}"


def plain_text(content: Any) -> str:
    """Return the text of a message: a string, or the text parts of a list of parts, joined by a blank line.

    Raises RowError where there is no text; its message names the other parts.
    """
    parts = content if isinstance(content, list) else [content]
    texts: list[str] = []
    others: list[str] = []
    for part in parts:
        text = part.get("text") if isinstance(part, Mapping) else part
        if isinstance(text, Mapping):  # OpenAI's assistants: {"text": {"value": …}}
            text = text.get("value")
        if isinstance(text, str):
            texts.append(text.strip())
        elif part is not None:
            others.append(str(part.get("type", "object")) if isinstance(part, Mapping) else type(part).__name__)
    whole = "\n\n".join(filter(None, texts))
    if not whole:
        raise RowError(f"it holds no text{f', only {_listed(others)}' if others else ''}.")
    return whole


def _listed(names: list[str]) -> str:
    return ", ".join(dict.fromkeys(names))
