"""The write pipeline: check, split, extract, embed, store. Streams in bounded memory, one transaction a batch."""

from __future__ import annotations

import json
import math
import os
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from hashlib import blake2b
from itertools import islice
from typing import Any, Literal

from semmem.errors import BadItem, EmbedderMismatch, InvalidInput, SemmemError
from semmem.protocols import Embedder, Extractor, Row, Store
from semmem.text import content_key, split
from semmem.types import IngestReport, Memory, Rejected

__all__ = ["KEYS", "MAX_CHARS", "Ingest", "uuid7"]

KEYS = (
    "text", "namespace", "id", "title", "author", "session", "position", "source", "tags", "metadata", "importance",
    "created_at", "vector",
)  # fmt: skip
"""What an item of remember_many may hold: the arguments of remember."""
MAX_CHARS = 1_400
"""A longer text is split; each part is remembered by itself and found as its parent."""
_LONGEST = {"namespace": 200, "id": 1_000, "title": 2_000, "author": 200, "session": 1_000, "source": 4_000}
_LONGEST_TEXT = 10_000_000
OnError = Literal["abort", "skip"]


@dataclass(frozen=True, slots=True)
class _Draft:
    """A checked item: its place in the input, the memory, the hash of what was given, the vector if one was given."""

    at: int
    memory: Memory
    payload: bytes
    vector: Any


class Ingest:
    """Wires a store, an extractor and an embedder (a function that finds it when first needed, or returns a reason)."""

    def __init__(self, store: Store, extractor: Extractor, embedder: Callable[[], Embedder | str]) -> None:
        self._store = store
        self._extractor = extractor
        self._embedder = embedder

    def remember(self, item: Mapping[str, Any]) -> Memory:
        """Store one item and return the memory, or the one already stored under the same id with the same content."""
        draft = _check(0, item, "default")
        self._check_vector(draft, None)
        rows, _ = self._rows([draft])
        self._store.write(rows, on_conflict="abort")
        stored = self._store.get(draft.memory.namespace, [draft.memory.id])
        return stored[0] if stored else draft.memory

    def remember_many(
        self,
        items: Iterable[Mapping[str, Any]],
        *,
        namespace: str,
        batch_size: int,
        on_error: OnError,
        progress: Callable[[IngestReport], None] | None,
    ) -> IngestReport:
        """Store a stream of items, one transaction a batch; ``progress`` is called after each with what is stored so far."""
        if on_error not in ("abort", "skip"):
            raise InvalidInput(f'on_error must be "abort" or "skip", not {on_error!r}.')
        if not 1 <= batch_size <= 100_000:
            raise InvalidInput(f"batch_size must be from 1 to 100000, not {batch_size}.")
        started = time.monotonic()
        report = IngestReport()
        for batch in _batches(enumerate(items), batch_size):
            done = self._batch(batch, namespace, on_error)
            report = IngestReport(
                report.remembered + done.remembered,
                report.unchanged + done.unchanged,
                report.rejected + done.rejected,
                time.monotonic() - started,
                {**report.degraded, **done.degraded},
            )
            if progress is not None:
                progress(report)
        return replace(report, seconds=time.monotonic() - started)

    def _batch(self, batch: Sequence[tuple[int, Any]], namespace: str, on_error: OnError) -> IngestReport:
        drafts: dict[tuple[str, str], _Draft] = {}
        rejected: list[Rejected] = []
        recorded: Mapping[str, Any] | None = None
        repeated = 0

        def refuse(at: int, id: str | None, reason: str) -> None:
            if on_error == "abort":
                raise BadItem(f"Item {at}{f' (id {id!r})' if id else ''}: {reason}", position=at, id=id)
            rejected.append(Rejected(at, id, reason))

        for at, item in batch:
            try:
                draft = _check(at, item, namespace)
                recorded = self._check_vector(draft, recorded)
            except InvalidInput as error:
                refuse(at, _id_of(item), error.message)
                continue
            except EmbedderMismatch as error:
                refuse(at, _id_of(item), error.message)
                continue
            earlier = drafts.setdefault((draft.memory.namespace, draft.memory.id), draft)
            if earlier is not draft:
                if earlier.payload == draft.payload:
                    repeated += 1
                else:
                    refuse(at, draft.memory.id, _conflict(draft, f"item {earlier.at} of the same batch"))
        rows, degraded = self._rows(list(drafts.values()))
        try:
            written = self._store.write(rows, on_conflict=on_error)
        except SemmemError as error:
            if on_error == "abort" and batch:
                error.args = (error.message,)
            raise
        for name in sorted(written.conflicts, key=lambda n: drafts[n].at):
            refuse(drafts[name].at, name[1], _conflict(drafts[name], "the store"))
        rejected.sort(key=lambda r: r.position)
        return IngestReport(
            len(written.new), len(written.unchanged) + repeated, tuple(rejected), degraded=degraded
        )

    def _check_vector(self, draft: _Draft, recorded: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
        """Refuse a given vector in a store that an embedder fills, or of another length; return who fills the store.

        ``recorded`` is what an earlier item of the batch has found out, so that a batch asks the store once.
        """
        if draft.vector is None:
            return recorded
        offered = {"name": f"external:{len(draft.vector)}", "dimensions": len(draft.vector), "fingerprint": "given"}
        recorded = recorded or self._store.claim_embedder(offered)
        if recorded["name"] != offered["name"]:
            raise EmbedderMismatch(
                f"This store was filled by {recorded['name']} ({recorded['dimensions']} dimensions) and this vector is "
                f"{offered['name']}; give no vector, use another store, or re-embed this one with `semmem rebuild`."
            )
        return recorded

    def _rows(self, drafts: Sequence[_Draft]) -> tuple[list[Row], dict[str, str]]:
        """Split, extract and embed; return the rows and why vectors are missing, if they are."""
        embedder, reason = self._embedder_for(drafts)
        pieces: list[tuple[_Draft, Memory, int, int]] = []
        for draft in drafts:
            parts = self._split(draft, embedder)
            if len(parts) == 1:
                pieces.append((draft, draft.memory, 0, 0))
                continue
            pieces.append((draft, draft.memory, 0, len(parts)))
            for number, text in enumerate(parts, 1):
                part = replace(draft.memory, text=text, id=f"{draft.memory.id}#{number}", parent_id=draft.memory.id)
                pieces.append((draft, part, number, 0))
        indexed = [i for i, piece in enumerate(pieces) if piece[3] == 0]
        known = self._known([pieces[i][1] for i in indexed])
        vectors: dict[int, Any] = {}
        if embedder is not None and indexed:
            embedded = embedder.embed([_embedded_text(pieces[i][1]) for i in indexed])
            vectors = dict(zip(indexed, embedded, strict=True))
        rows = []
        for i, (draft, memory, part, parts_) in enumerate(pieces):
            extraction = None
            if parts_ == 0:
                extraction = self._extractor.extract(memory.text, memory.title, known.get(memory.namespace, ()))
            vector = vectors.get(i)
            if vector is None and parts_ == 0 and draft.vector is not None:
                vector = draft.vector
            rows.append(Row(memory, part, parts_, extraction, vector, content_key(memory.text), draft.payload))
        missing = reason and any(r.extraction is not None and r.vector is None for r in rows)
        return rows, {"dense": reason} if missing and reason else {}

    def embed_missing(self, embedder: Embedder, progress: Callable[[int], None] | None = None) -> int:
        """Embed, in batches, the memories that have no vector; return how many. Interrupted, it goes on where it stopped."""
        done = 0
        after = ("", 0)
        while rows := self._store.missing_vectors(after, 256):
            vectors = embedder.embed([f"{title}. {text}" if title else text for _, _, title, text in rows])
            self._store.add_vectors([(n, o, v) for (n, o, _, _), v in zip(rows, vectors, strict=True)])
            after = (rows[-1][0], rows[-1][1])
            done += len(rows)
            if progress is not None:
                progress(done)
        return done

    def _split(self, draft: _Draft, embedder: Embedder | None) -> list[str]:
        """Return the parts of a text; a given vector stands for the whole of it, so such a text is never split."""
        text = draft.memory.text
        if draft.vector is not None or (len(text) <= MAX_CHARS and (embedder is None or embedder.max_tokens is None)):
            return [text]
        if embedder is None or embedder.max_tokens is None:
            return split(text, max_chars=MAX_CHARS)
        if len(text) <= embedder.max_tokens - 2:  # a token is at least one character
            return [text]
        return split(
            text, max_chars=MAX_CHARS, max_tokens=embedder.max_tokens, count_tokens=embedder.count_tokens
        )

    def _known(self, memories: Sequence[Memory]) -> Mapping[str, set[int]]:
        """Return the subjects known in each namespace among the names these memories may mention, each other's included."""
        wanted: dict[str, set[int]] = {}
        own: dict[str, set[int]] = {}
        for memory in memories:
            wanted.setdefault(memory.namespace, set()).update(self._extractor.candidates(memory.text, memory.title))
            if memory.title:
                own.setdefault(memory.namespace, set()).update(self._extractor.subjects(memory.text, memory.title))
        known = self._store.known_subjects(wanted)
        return {n: set(known.get(n, ())) | own.get(n, set()) for n in wanted}

    def _embedder_for(self, drafts: Sequence[_Draft]) -> tuple[Embedder | None, str | None]:
        """Return the embedder for texts without a given vector, or why there is none."""
        if all(d.vector is not None for d in drafts):
            return None, None
        found = self._embedder()
        if isinstance(found, str):
            return None, found
        return found, None


def _embedded_text(memory: Memory) -> str:
    return f"{memory.title}. {memory.text}" if memory.title else memory.text


def _conflict(draft: _Draft, where: str) -> str:
    return f"The id {draft.memory.id!r} is already in {where} with other content; call update to change it."


def _id_of(item: Any) -> str | None:
    id = item.get("id") if isinstance(item, Mapping) else None
    return str(id) if id is not None else None


def _batches(items: Iterator[tuple[int, Any]], size: int) -> Iterator[list[tuple[int, Any]]]:
    while batch := list(islice(items, size)):
        yield batch


# ---------------------------------------------------------------------- checking one item


def _check(at: int, item: Any, namespace: str) -> _Draft:
    """Return a checked item. Raises InvalidInput with the field and the reason."""
    if not isinstance(item, Mapping):
        raise InvalidInput(f"An item must be a mapping with a text, not {type(item).__name__}.")
    for name in item:
        if name not in KEYS:
            raise InvalidInput(f"{name!r} is not something a memory has; use {', '.join(KEYS)}.")
    values = {k: v for k, v in item.items() if v is not None}
    text = _string(values, "text", _LONGEST_TEXT)
    if not text or not text.strip():
        raise InvalidInput("The text is empty; a memory needs some text.")
    strings = {k: _string(values, k, longest) for k, longest in _LONGEST.items()}
    if strings["id"] == "" or strings["namespace"] == "":
        raise InvalidInput("id and namespace cannot be empty strings; leave them out instead.")
    position = values.get("position")
    if position is not None and (isinstance(position, bool) or not isinstance(position, int) or abs(position) >= 2**63):
        raise InvalidInput(f"position must be a whole number, not {position!r}.")
    importance = values.get("importance", 0.5)
    if isinstance(importance, bool) or not isinstance(importance, int | float) or not 0 <= importance <= 1:
        raise InvalidInput(f"importance must be a number from 0 to 1, not {importance!r}.")
    tags, metadata = _tags(values.get("tags", ())), _metadata(values.get("metadata", {}))
    created_at = _time(values["created_at"]) if "created_at" in values else None
    payload = _payload(text, strings, position, tags, metadata, importance, created_at)
    now = datetime.now(UTC)
    memory = Memory(
        id=strings["id"] or uuid7(),
        namespace=strings["namespace"] or namespace,
        text=text,
        title=strings["title"] or None,
        author=strings["author"] or None,
        session=strings["session"] or None,
        position=position,
        source=strings["source"] or None,
        tags=tags,
        metadata=metadata,
        importance=float(importance),
        created_at=created_at or now,
        updated_at=created_at or now,
    )
    return _Draft(at, memory, payload, _vector(values.get("vector")))


def _string(values: Mapping[str, Any], name: str, longest: int) -> str | None:
    value = values.get(name)
    if value is None:
        return None
    if not isinstance(value, str):
        raise InvalidInput(f"{name} must be a string, not {type(value).__name__}; write str(…) around it.")
    if len(value) > longest:
        raise InvalidInput(f"{name} has {len(value)} characters; at most {longest} are stored.")
    if "\x00" in value:
        raise InvalidInput(f"{name} contains a NUL character, which no store keeps; remove it.")
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise InvalidInput(f"{name} contains half a surrogate pair at {error.start}; decode it properly first.") from None
    return value


def _tags(value: Any) -> tuple[str, ...]:
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise InvalidInput("tags must be a list of strings.")
    tags = tuple(value)
    for tag in tags:
        _string({"a tag": tag}, "a tag", 200)
        if not tag:
            raise InvalidInput("A tag cannot be empty.")
    return tags


def _metadata(value: Any) -> Mapping[str, Any]:
    if not isinstance(value, Mapping) or not all(isinstance(k, str) for k in value):
        raise InvalidInput("metadata must be a mapping with string keys.")
    try:
        raw = json.dumps(dict(value), allow_nan=False)
    except (TypeError, ValueError) as error:
        raise InvalidInput(f"metadata must be JSON values: {error}.") from None
    if "\\u0000" in raw or "\\ud8" in raw.lower() and _has_surrogate(raw):
        raise InvalidInput("metadata contains a NUL character or half a surrogate pair; remove it.")
    if len(raw) > 1_000_000:
        raise InvalidInput(f"metadata has {len(raw)} characters as JSON; at most 1000000 are stored.")
    loaded: Mapping[str, Any] = json.loads(raw)
    return loaded


def _has_surrogate(raw: str) -> bool:
    try:
        json.dumps(json.loads(raw), ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return True
    return False


def _time(value: Any) -> datetime:
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value)
        except ValueError:
            raise InvalidInput(f"created_at must be an ISO 8601 time such as 2026-01-31T09:00:00Z, not {value!r}.") from None
    if not isinstance(value, datetime):
        raise InvalidInput(f"created_at must be a datetime or an ISO 8601 string, not {type(value).__name__}.")
    return value if value.tzinfo else value.replace(tzinfo=UTC)


def _vector(value: Any) -> Any:
    if value is None:
        return None
    import numpy as np

    try:
        vector = np.asarray(value, dtype=np.float32)
    except (TypeError, ValueError):
        raise InvalidInput("vector must be a list of numbers.") from None
    if vector.ndim != 1 or not 1 <= len(vector) <= 2_000:
        raise InvalidInput(f"vector must be a flat list of 1 to 2000 numbers; this one has the shape {vector.shape}.")
    norm = float(np.linalg.norm(vector.astype(np.float64)))
    if not math.isfinite(norm) or norm == 0:
        raise InvalidInput("vector must hold finite numbers that are not all 0.")
    return (vector / norm).astype(np.float32)


def _payload(
    text: str, strings: Mapping[str, str | None], position: int | None, tags: Sequence[str],
    metadata: Mapping[str, Any], importance: float, created_at: datetime | None,
) -> bytes:  # fmt: skip
    """Return the hash of all that was given, except what names the memory and its vector."""
    given = [
        text, *(strings[k] or None for k in ("title", "author", "session", "source")), position, list(tags), metadata,
        float(importance), created_at.astimezone(UTC).isoformat() if created_at else None,
    ]  # fmt: skip
    return blake2b(json.dumps(given, sort_keys=True).encode(), digest_size=16).digest()


def uuid7() -> str:
    """Return a UUIDv7 (RFC 9562): 48 bits of milliseconds, then random bits, so that ids sort by time."""
    value = int.from_bytes(os.urandom(16))
    value = (value & ~(0xFFFF_FFFF_FFFF << 80)) | ((time.time_ns() // 1_000_000 & 0xFFFF_FFFF_FFFF) << 80)
    value = (value & ~(0xF << 76)) | (7 << 76)
    value = (value & ~(0x3 << 62)) | (2 << 62)
    return str(uuid.UUID(int=value))
