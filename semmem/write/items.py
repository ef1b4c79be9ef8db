"""Check one item of ``remember``: every field that cannot be stored is refused here, in one sentence."""

from __future__ import annotations

import json
import os
import time
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from hashlib import blake2b
from reprlib import repr as shown
from typing import TYPE_CHECKING, Any

from semmem.embedders.binding import token_counter
from semmem.model.errors import InvalidInput
from semmem.model.exchange import UNINDEXED
from semmem.model.memory_fields import FIELDS, STORED
from semmem.model.protocols import Embedder
from semmem.model.serialization import plain
from semmem.model.types import MASKS, Memory, unhashed
from semmem.text.passages import MAX_CHARS, encoded_text, other_names, split

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = [
    "KEYS",
    "Draft",
    "MadeId",
    "NoItem",
    "at_hand",
    "check_namespace",
    "check_validity",
    "drafted",
    "given_id",
    "giver",
    "id_of",
    "is_turn",
    "parts_of",
    "payload_of",
    "pieces_of",
    "replaced_by",
    "timed_of",
    "uuid7",
]

KEYS = tuple(FIELDS)
"""The keys of an item of remember_many: the arguments of remember."""
_MOST_INDEXED_BYTES = 2_500
"""Limit for namespace, session and id together, because an index entry of PostgreSQL holds 2,704 bytes."""


@dataclass(frozen=True, slots=True)
class MadeId:
    """An id that an interface made for a request without one, so that a repeated request stores nothing twice.

    It stands in an item in the place of the id. The caller gave none, so content that is stored already is counted as a
    repeat, as for an item without an id.
    """

    id: str

    def __str__(self) -> str:
        return self.id


@dataclass(frozen=True, slots=True)
class NoItem:
    """An item that an interface cannot read, and the reason to refuse it."""

    reason: str


@dataclass(frozen=True, slots=True)
class Draft:
    """A checked item: its place in the input, the memory, the hash of its content, and the vector, if one was given.

    ``fields`` are the fields that the item has; a ``ttl`` counts as ``expires_at``. ``replaces`` is the stored memory
    that the draft replaces and ``replaced_payload`` the hash of its content. ``stored_vector`` is the replaced memory's
    vector and its embedder, where the embedded text is the same. ``changed_by`` is who makes the change, ``suspected``
    are the kinds of credentials that the memory seems to hold, or, where it was ``redacted``, held. ``restores`` says
    that a softly forgotten memory comes back, and ``made_id`` that an interface has made the id (see MadeId).
    ``text_at`` is when its text began, None for its ``created_at``. ``untimed`` says that ``created_at`` was taken from
    the clock of the store that the item was exported from. ``id_of_content`` says that the id is a hash of the content.
    """

    position: int
    memory: Memory
    payload: bytes
    vector: NDArray[np.float32] | None
    fields: frozenset[str] = frozenset()
    replaces: Memory | None = None
    replaced_payload: bytes = b""
    stored_vector: tuple[NDArray[np.float32], Mapping[str, Any]] | None = None
    changed_by: str | None = None
    restores: bool = False
    suspected: tuple[str, ...] = ()
    redacted: bool = False
    made_id: bool = False
    text_at: datetime | None = None
    untimed: bool = False
    id_of_content: bool = False

    @property
    def name(self) -> tuple[str, str]:
        """Return (namespace, id)."""
        return self.memory.namespace, self.memory.id

    @property
    def named(self) -> bool:
        """Return whether the id was given, so that the memory may be stored already."""
        return "id" in self.fields

    @property
    def timed(self) -> bool:
        """Return whether the time was given, so that it is part of the content."""
        return "created_at" in self.fields and not self.untimed


def check_namespace(name: object) -> None:
    """Raise InvalidInput unless ``name`` can be the name of a namespace."""
    if name is None or not FIELDS["namespace"].kind.checked("namespace", name):
        raise InvalidInput("namespace must be a name and it is empty; leave it out instead.")


def drafted(index: int, item: object, namespace: str) -> Draft:
    """Check an item and return its draft. Raises InvalidInput with the field and the reason."""
    if isinstance(item, NoItem):
        raise InvalidInput(item.reason)
    if not isinstance(item, Mapping):
        raise InvalidInput(f"An item must be a mapping with a text, not {type(item).__name__}.")
    for name in item:
        if name not in KEYS:
            raise InvalidInput(f"A memory has no field {shown(name)}; use {', '.join(KEYS)}.")
    made_id = isinstance(item.get("id"), MadeId)
    item = {**item, "id": str(item["id"])} if made_id else item
    text = _text(item.get("text"))
    given = {n: row.kind.checked(n, v) for n, row in FIELDS.items() if (v := item.get(n)) is not None and n != "text"}
    if "" in (given.get("id"), given.get("namespace")):
        raise InvalidInput("id and namespace cannot be empty strings; leave them out instead.")
    names = given.get("namespace", namespace), given.get("session"), given.get("id")
    indexed = sum(len(one.encode()) for one in names if one)
    if indexed > _MOST_INDEXED_BYTES:
        raise InvalidInput(
            f"namespace, session and id have {indexed} bytes together in UTF-8; at most {_MOST_INDEXED_BYTES} are kept."
        )
    now = datetime.now(UTC)
    _check_bounds(given, now)
    at_time = given.get("created_at", now)
    stored = {name: given[name] for name in STORED if name in given}
    stored |= {"text": text, "created_at": at_time, "updated_at": at_time}
    memory = unhashed(Memory(given.get("id") or uuid7(), given.get("namespace", namespace), **stored))
    fields = frozenset(item) - {name for name in ("id", "created_at", "ttl", "sensitive") if item.get(name) is None}
    fields |= {"expires_at"} if "ttl" in fields else frozenset()
    payload = payload_of(memory, timed="created_at" in given)
    return Draft(index, memory, payload, given.get("vector"), fields, made_id=made_id)


def _text(value: object) -> str:
    """Return the text of a memory. Raises InvalidInput for none."""
    text = FIELDS["text"].kind.checked("text", "" if value is None else value)
    if not text.strip():
        raise InvalidInput("The text is empty; a memory needs some text.")
    if text.strip() in MASKS:
        raise InvalidInput("The text is the placeholder of a sensitive memory; get the real text with reveal.")
    return str(text)


def _check_bounds(given: dict[str, Any], now: datetime) -> None:
    """Set ``expires_at`` from a ttl, and check the times that bound a memory. Raises InvalidInput."""
    check_validity(given.get("valid_from"), given.get("valid_to"))
    if "ttl" in given:
        if "expires_at" in given:
            raise InvalidInput("Give expires_at or ttl, not both: ttl is the time from now until the memory expires.")
        given["expires_at"] = now + given["ttl"]
    if "expires_at" in given and given["expires_at"] <= now:
        raise InvalidInput("expires_at is in the past, so the memory would never be seen; give a later time.")


def check_validity(begins: datetime | None, ends: datetime | None) -> None:
    """Raise InvalidInput where a memory would stop being valid before it began."""
    if begins is not None and ends is not None and begins >= ends:
        raise InvalidInput(f"valid_from ({begins.isoformat()}) must be before valid_to ({ends.isoformat()}).")


_FIRST = {
    "text", "title", "author", "session", "source", "position", "tags", "metadata", "importance", "created_at",
    "sensitive", "valid_from", "valid_to", "expires_at", "pinned",
}  # fmt: skip
"""The fields that the hash of a content has in places of their own, or leaves out."""
_NEWER = [name for name in STORED if name not in _FIRST]
"""The fields that the hash has by name, where they are set."""


def payload_of(memory: Memory, *, timed: bool) -> bytes:
    """Return the hash of everything given for a memory, except its namespace, its id and its vector.

    ``timed`` says that its time was given too; a time taken from the clock is not content. For a sensitive memory the
    value is random, because a hash of a short secret could be guessed; only the last bit has a meaning, which is
    ``timed``. A sensitive memory that is remembered again is therefore compared field by field.
    """
    if memory.sensitive:
        drawn = os.urandom(16)
        return drawn[:15] + bytes([drawn[15] & 0xFE | timed])
    at = memory.created_at.isoformat() if timed and memory.created_at is not None else None
    content = [
        memory.text, memory.title, memory.author, memory.session, memory.source, memory.position, list(memory.tags),
        memory.metadata, memory.importance, at,
    ]  # fmt: skip
    bounds = [None if one is None else one.isoformat() for one in (memory.valid_from, memory.valid_to)]
    if any(bounds) or memory.pinned:  # expires_at is not content: repeating an item does not prolong its life
        content += [*bounds, memory.pinned]
    values = {name: plain(getattr(memory, name)) for name in _NEWER}
    if newer := {name: value for name, value in values.items() if value not in (None, False, [])}:
        content.append(newer)
    return blake2b(json.dumps(content, sort_keys=True).encode(), digest_size=16).digest()


def timed_of(memory: Memory, payload: bytes) -> bool:
    """Return whether the time of a stored memory was given, according to the hash stored with it."""
    if memory.sensitive:
        return bool(payload[-1] & 1)
    return payload_of(memory, timed=False) != payload


def uuid7(at: int | None = None) -> str:
    """Return a UUIDv7: 48 bits of milliseconds, 12 bits of their fraction, 62 random bits, so that ids sort by time.

    ``at`` is the time in nanoseconds since 1970, now by default. Source: RFC 9562, section 6.2, method 3.
    """
    milliseconds, rest = divmod(time.time_ns() if at is None else at, 1_000_000)
    random = int.from_bytes(os.urandom(8)) >> 2
    value = (milliseconds & 0xFFFF_FFFF_FFFF) << 80 | 7 << 76 | rest * 4096 // 1_000_000 << 64 | 2 << 62 | random
    return str(uuid.UUID(int=value))


def giver(vector: NDArray[np.float32]) -> dict[str, Any]:
    """Return the embedder that the store records for a vector given by the caller."""
    return {"name": f"external:{len(vector)}", "dimensions": len(vector), "fingerprint": "given"}


def at_hand(draft: Draft) -> tuple[NDArray[np.float32], Mapping[str, Any]] | None:
    """Return the given or kept vector and its embedder; None where the text has to be embedded."""
    return draft.stored_vector if draft.vector is None else (draft.vector, giver(draft.vector))


def replaced_by(draft: Draft) -> tuple[int, bytes, datetime] | None:
    """Return version, payload hash and creation time of the memory that a draft replaces; None for a new memory.

    The version alone is not enough, because another memory may have been stored under the same id after the first was
    gone.
    """
    before = draft.replaces
    if before is None or before.created_at is None:
        return None
    return before.version, draft.replaced_payload, before.created_at


def given_id(item: object) -> str | None:
    """Return the id of an item that can be stored under it, else None."""
    id = item.get("id") if isinstance(item, Mapping) else None
    return str(id) if isinstance(id, str | MadeId) else None


def id_of(item: object) -> str | None:
    """Return the id that an item gives; the item need not be valid."""
    id = item.get("id") if isinstance(item, Mapping) else None
    return str(id) if id is not None else None


def is_turn(memory: Memory) -> bool:
    """Return whether a memory is a turn of a conversation: it has a session and a place in it."""
    return memory.session is not None and memory.position is not None


def parts_of(draft: Draft, embedder: Embedder | None, most_chars: int) -> list[str]:
    """Return the parts of a text; each fits into the embedder's limit together with the title.

    A text with a given or kept vector is not split, because that vector stands for the whole text.
    """
    text = draft.memory.text
    if at_hand(draft) is not None:
        return [text]
    most = embedder.max_tokens if embedder is not None else None
    if embedder is None or most is None:
        return split(text, max_chars=most_chars)
    names = (*draft.memory.tags, *other_names(draft.memory.metadata))
    title = encoded_text(draft.memory.title, "", None, names)
    short = len(text) <= most_chars and len(text) + len(title) <= most - 2
    if short and text.isascii() and title.isascii():  # a token has at least one letter
        return [text]
    count_tokens = token_counter(embedder)
    room = max(most // 2, most - count_tokens(title)) if title else most
    return split(text, max_chars=most_chars, max_tokens=room, count_tokens=count_tokens)


def pieces_of(drafts: Iterable[Draft], embedder: Embedder | None) -> list[tuple[Draft, Memory, int, int]]:
    """Return (draft, memory or part, number of the part, number of parts) of all that is stored for drafts.

    Of a memory in one piece both numbers are 0; of a sensitive memory, which is in no index, the last is UNINDEXED.
    """
    pieces: list[tuple[Draft, Memory, int, int]] = []
    for draft in drafts:
        if draft.memory.sensitive:
            pieces.append((draft, draft.memory, 0, UNINDEXED))
            continue
        parts = parts_of(draft, embedder, MAX_CHARS)
        if len(parts) == 1:
            pieces.append((draft, draft.memory, 0, 0))
            continue
        pieces.append((draft, draft.memory, 0, len(parts)))
        for number, text in enumerate(parts, 1):
            id = f"{draft.memory.id}#{number}"
            pieces.append((draft, replace(draft.memory, text=text, id=id, parent_id=draft.memory.id), number, 0))
    return pieces
