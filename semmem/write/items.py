"""Check one item of ``remember``: every field that cannot be stored is refused here, in one sentence."""

from __future__ import annotations

import json
import math
import os
import time
import uuid
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from hashlib import blake2b
from reprlib import repr as shown
from typing import Any

from semmem.embedders.binding import token_counter
from semmem.model.errors import InvalidInput
from semmem.model.filters import LONGEST_NAME, one_of
from semmem.model.protocols import Embedder
from semmem.model.serialization import instant
from semmem.model.types import MASKS, SOURCE_TYPES, Memory
from semmem.text.passages import encoded_text, other_names, split

__all__ = [
    "KEYS",
    "Draft",
    "MadeId",
    "NoItem",
    "at_hand",
    "check_namespace",
    "check_validity",
    "checked_metadata",
    "drafted",
    "giver",
    "id_of",
    "is_turn",
    "parts_of",
    "payload_of",
    "replaced_by",
    "timed_of",
    "uuid7",
]

KEYS = (
    "text", "namespace", "id", "title", "author", "session", "position", "source", "tags", "metadata", "importance",
    "created_at", "vector", "sensitive", "valid_from", "valid_to", "expires_at", "ttl", "pinned", "source_type",
)  # fmt: skip
"""The keys of an item of remember_many: the arguments of remember."""
_LONGEST = {"namespace": 200, "id": 1_000, "title": 2_000, "author": LONGEST_NAME, "session": 1_000, "source": 4_000}
_LONGEST_TEXT = 10_000_000
_MOST_INDEXED_BYTES = 2_500
"""Limit for namespace, session and id together, because an index entry of PostgreSQL holds 2,704 bytes."""
_DEEPEST = 100
_LONGEST_TTL_S = 31_557_600_000.0
_UNITS_S = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}
_UNIT = 1e-6
"""A vector whose length differs from 1 only by float32 rounding is kept as it is, so that it survives an export."""


class MadeId(str):
    """An id that a door made for a request without one, so that a repeated request stores nothing twice.

    The caller gave no id, so content that is stored already is counted as a repeat, as for an item without an id.
    """

    __slots__ = ()


class NoItem(str):
    """What a door puts in the place of an item that it cannot read: why it cannot, which is the reason to refuse it."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Draft:
    """A checked item: its place in the input, the memory, the hash of its content, and the vector, if one was given.

    ``fields`` are the fields that the item has; a ``ttl`` counts as ``expires_at``. ``replaces`` is the stored memory
    that the draft replaces and ``replaced_payload`` the hash of its content. ``stored_vector`` is the replaced memory's
    vector and its maker, where the embedded text is the same. ``changed_by`` is who makes the change, ``suspected`` are
    the kinds of credentials that the memory seems to hold, or, where it was ``redacted``, held. ``restores`` says that
    a softly forgotten memory comes back, and ``made_id`` that a door has made the id (see MadeId). ``text_at`` is when
    its text began, None for its ``created_at``.
    """

    at: int
    memory: Memory
    payload: bytes
    vector: Any
    fields: frozenset[str] = frozenset()
    replaces: Memory | None = None
    replaced_payload: bytes = b""
    stored_vector: tuple[Any, Mapping[str, Any]] | None = None
    changed_by: str | None = None
    restores: bool = False
    suspected: tuple[str, ...] = ()
    redacted: bool = False
    made_id: bool = False
    text_at: datetime | None = None

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
        return "created_at" in self.fields


def check_namespace(name: Any) -> None:
    """Raise InvalidInput unless ``name`` can be the name of a namespace."""
    if not _string({"namespace": name}, "namespace", _LONGEST["namespace"]):
        raise InvalidInput("namespace must be a name and it is empty; leave it out instead.")


def drafted(at: int, item: Any, namespace: str) -> Draft:
    """Check an item and return its draft. Raises InvalidInput with the field and the reason."""
    if isinstance(item, NoItem):
        raise InvalidInput(str(item))
    if not isinstance(item, Mapping):
        raise InvalidInput(f"An item must be a mapping with a text, not {type(item).__name__}.")
    for name in item:
        if name not in KEYS:
            raise InvalidInput(f"A memory has no field {shown(name)}; use {', '.join(KEYS)}.")
    values = {k: v for k, v in item.items() if v is not None}
    text = _string(values, "text", _LONGEST_TEXT)
    if not text or not text.strip():
        raise InvalidInput("The text is empty; a memory needs some text.")
    if text.strip() in MASKS:
        raise InvalidInput("The text is the placeholder of a sensitive memory; get the real text with reveal.")
    strings = {k: _string(values, k, longest) for k, longest in _LONGEST.items()}
    if strings["id"] == "" or strings["namespace"] == "":
        raise InvalidInput("id and namespace cannot be empty strings; leave them out instead.")
    indexed = sum(len(s.encode()) for s in (strings["namespace"] or namespace, strings["session"], strings["id"]) if s)
    if indexed > _MOST_INDEXED_BYTES:
        raise InvalidInput(
            f"namespace, session and id have {indexed} bytes together in UTF-8; at most {_MOST_INDEXED_BYTES} are kept."
        )
    position = values.get("position")
    if position is not None and (isinstance(position, bool) or not isinstance(position, int) or abs(position) >= 2**63):
        raise InvalidInput(f"position must be a whole number of at most 63 bits, not {shown(position)}.")
    importance = values.get("importance", 0.5)
    if isinstance(importance, bool) or not isinstance(importance, int | float) or not 0 <= importance <= 1:
        raise InvalidInput(f"importance must be a number from 0 to 1, not {shown(importance)}.")
    tags, metadata = _tags(values.get("tags", ())), checked_metadata(values.get("metadata", {}))
    created_at = _time("created_at", values["created_at"]) if "created_at" in values else None
    sensitive = values.get("sensitive", False)
    if not isinstance(sensitive, bool):
        raise InvalidInput(f"sensitive must be True or False, not {shown(sensitive)}.")
    pinned = values.get("pinned", False)
    if not isinstance(pinned, bool):
        raise InvalidInput(f"pinned must be True or False, not {shown(pinned)}.")
    source_type = values.get("source_type")
    if source_type is not None:
        one_of("source_type", source_type, SOURCE_TYPES)
    now = datetime.now(UTC)
    bounds = _bounds(values, now)
    memory = Memory(
        id=strings["id"] or uuid7(),
        namespace=strings["namespace"] or namespace,
        text=text,
        title=strings["title"] or None,
        author=strings["author"] or None,
        session=strings["session"] or None,
        position=None if position is None else int(position),
        source=strings["source"] or None,
        tags=tags,
        metadata=metadata,
        importance=float(importance),
        created_at=created_at or now,
        updated_at=created_at or now,
        sensitive=sensitive,
        pinned=pinned,
        source_type=source_type,
        valid_from=bounds["valid_from"],
        valid_to=bounds["valid_to"],
        expires_at=bounds["expires_at"],
    )
    fields = frozenset(item) - {name for name in ("id", "created_at", "ttl", "sensitive") if values.get(name) is None}
    fields |= {"expires_at"} if "ttl" in fields else frozenset()
    payload = payload_of(memory, timed=created_at is not None)
    made_id = isinstance(values.get("id"), MadeId)
    return Draft(at, memory, payload, _vector(values.get("vector")), fields, made_id=made_id)


def _string(values: Mapping[str, Any], name: str, longest: int) -> str | None:
    value = values.get(name)
    if value is None:
        return None
    if not isinstance(value, str):
        raise InvalidInput(f"{name} must be a string, not {type(value).__name__}; write str(…) around it.")
    if len(value) > longest:
        raise InvalidInput(f"{name} has {len(value)} characters; at most {longest} are stored.")
    if "\x00" in value:
        raise InvalidInput(f"{name} contains a NUL character, which no store can hold; remove it.")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise InvalidInput(f"{name} contains half a surrogate pair at {error.start}; decode it properly.") from None
    return str.__str__(value)  # the plain string of a subclass, such as an Enum


def _tags(value: Any) -> tuple[str, ...]:
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise InvalidInput("tags must be a list of strings.")
    tags = tuple(_string({"a tag": tag}, "a tag", 200) or "" for tag in value)
    if not all(tags):
        raise InvalidInput("A tag cannot be empty.")
    return tuple(sorted(tags)) if isinstance(value, Set) else tags  # the order of a set differs from process to process


def checked_metadata(value: Any) -> Mapping[str, Any]:
    """Return metadata as JSON has it. Raises InvalidInput."""
    if not isinstance(value, Mapping) or not all(isinstance(k, str) for k in value):
        raise InvalidInput("metadata must be a mapping with string keys.")
    if not value:
        return {}
    try:
        raw = json.dumps(dict(value), allow_nan=False)
        if len(raw) > 1_000_000:
            raise InvalidInput(f"metadata has {len(raw)} characters as JSON; at most 1000000 are stored.")
        loaded: Mapping[str, Any] = json.loads(raw)
    except RecursionError:
        raise InvalidInput(f"metadata is nested deeper than {_DEEPEST} levels; flatten it.") from None
    except InvalidInput:
        raise
    except (TypeError, ValueError) as error:
        raise InvalidInput(f"metadata must be JSON values: {str(error).rstrip('.')}.") from None
    _check_json(loaded, _DEEPEST)
    return loaded


def _check_json(value: Any, levels: int) -> None:
    """Raise InvalidInput for values that JSON has and PostgreSQL's jsonb has not."""
    if isinstance(value, str):
        _string({"metadata": value}, "metadata", len(value))
    elif isinstance(value, Mapping | list):
        if levels == 0:
            raise InvalidInput(f"metadata is nested deeper than {_DEEPEST} levels; flatten it.")
        for part in (*value, *value.values()) if isinstance(value, Mapping) else value:
            _check_json(part, levels - 1)


def _bounds(values: Mapping[str, Any], now: datetime) -> dict[str, datetime | None]:
    """Return valid_from, valid_to and expires_at. Raises InvalidInput."""
    bounds = {n: _time(n, values[n]) if n in values else None for n in ("valid_from", "valid_to", "expires_at")}
    check_validity(bounds["valid_from"], bounds["valid_to"])
    if "ttl" in values:
        if bounds["expires_at"] is not None:
            raise InvalidInput("Give expires_at or ttl, not both: ttl is the time from now until the memory expires.")
        bounds["expires_at"] = now + _lasting(values["ttl"])
    if bounds["expires_at"] is not None and bounds["expires_at"] <= now:
        raise InvalidInput("expires_at is in the past, so the memory would never be seen; give a later time.")
    return bounds


def check_validity(begins: datetime | None, ends: datetime | None) -> None:
    """Raise InvalidInput where a memory would stop being valid before it began."""
    if begins is not None and ends is not None and begins >= ends:
        raise InvalidInput(f"valid_from ({begins.isoformat()}) must be before valid_to ({ends.isoformat()}).")


def _lasting(value: Any) -> timedelta:
    if isinstance(value, timedelta):
        lasting = value
    elif isinstance(value, int | float) and not isinstance(value, bool) and -math.inf < value < math.inf:
        lasting = timedelta(seconds=float(max(-1, min(value, _LONGEST_TTL_S))))
    elif isinstance(value, str) and value[-1:] in _UNITS_S and value[:-1].isascii() and value[:-1].isdecimal():
        lasting = timedelta(seconds=min(float(value[:-1][:12]) * _UNITS_S[value[-1]], _LONGEST_TTL_S))
    else:
        raise InvalidInput(f"ttl must be a number of seconds, or such as 30d, 12h or 45m, not {shown(value)}.")
    if not timedelta(0) < lasting <= timedelta(seconds=_LONGEST_TTL_S):
        raise InvalidInput(f"ttl must be more than 0 and at most 1000 years, not {shown(value)}.")
    return lasting


def _time(name: str, value: Any) -> datetime:
    try:
        at = instant(value)
    except ValueError:
        raise InvalidInput(
            f"{name} must be an ISO 8601 time such as 2026-01-31T09:00:00Z, not {shown(value)}."
        ) from None
    except TypeError:
        raise InvalidInput(
            f"{name} must be a datetime, a date or an ISO 8601 string, not {type(value).__name__}."
        ) from None
    try:
        at = at.astimezone(UTC)
        return datetime.combine(at.date(), at.time(), UTC)
    except (OverflowError, ValueError):
        raise InvalidInput(f"{name} must be between the years 1 and 9999 in UTC, not {shown(value)}.") from None


def _vector(value: Any) -> Any:
    if value is None:
        return None
    import numpy as np

    try:
        vector = np.asarray(value)
    except (TypeError, ValueError, RuntimeError):
        raise InvalidInput("vector must be a flat list of numbers.") from None
    if vector.dtype.kind not in "fiu" and vector.size:
        raise InvalidInput("vector must be a flat list of numbers.")
    if vector.ndim != 1 or not 1 <= len(vector) <= 2_000:
        raise InvalidInput(f"vector must be a flat list of 1 to 2000 numbers; this one has the shape {vector.shape}.")
    vector = vector.astype(np.float64)
    largest = float(np.abs(vector).max())
    if not math.isfinite(largest) or largest == 0:
        raise InvalidInput("vector must hold finite numbers that are not all 0.")
    if largest <= 1 + _UNIT and abs(math.sqrt(float((vector * vector).sum())) - 1) <= _UNIT:
        return vector.astype(np.float32)
    vector = vector / largest  # first, so that no square overflows or underflows
    return (vector / np.linalg.norm(vector)).astype(np.float32)


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
    if memory.source_type is not None:
        content.append({"source_type": memory.source_type})
    return blake2b(json.dumps(content, sort_keys=True).encode(), digest_size=16).digest()


def timed_of(memory: Memory, payload: bytes) -> bool:
    """Return whether the time of a stored memory was given, according to the hash stored with it."""
    if memory.sensitive:
        return bool(payload[-1] & 1)
    return payload_of(memory, timed=False) != payload


def uuid7() -> str:
    """Return a UUIDv7 (RFC 9562): 48 bits of milliseconds, then random bits, so that ids sort by time."""
    value = int.from_bytes(os.urandom(16))
    value = (value & ~(0xFFFF_FFFF_FFFF << 80)) | ((time.time_ns() // 1_000_000 & 0xFFFF_FFFF_FFFF) << 80)
    value = (value & ~(0xF << 76)) | (7 << 76)
    value = (value & ~(0x3 << 62)) | (2 << 62)
    return str(uuid.UUID(int=value))


def giver(vector: Any) -> dict[str, Any]:
    """Return the maker that the store records for a vector given by the caller."""
    return {"name": f"external:{len(vector)}", "dimensions": len(vector), "fingerprint": "given"}


def at_hand(draft: Draft) -> tuple[Any, Mapping[str, Any]] | None:
    """Return the given or kept vector and its maker; None where the text has to be embedded."""
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


def id_of(item: Any) -> str | None:
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
