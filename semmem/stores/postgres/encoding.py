"""Packed forward and posting entries: fixed-size records in bytea, read by numpy without a copy.

A posting row holds many memories of one key, so that BM25 over a common word reads a few long values instead of
thousands of rows (field-notes: 108 ms for row-per-posting BM25 at 200,000 memories).
"""

from __future__ import annotations

import itertools
import struct
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from psycopg.adapt import Dumper
from psycopg.pq import Format
from psycopg.types.json import Jsonb

from semmem.model.exchange import Extraction, Kind, Row
from semmem.model.types import Memory
from semmem.text.tokens import author_key

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = [
    "FORWARD",
    "POSTING",
    "WEIGHT_UNIT",
    "Segment",
    "Vector",
    "columns_of",
    "copy_rows",
    "forward_entries",
    "int2",
    "int4",
    "int8",
    "invert",
    "join_groups",
    "memory_of",
    "mentions",
    "pending_keys",
    "register_arrays",
    "text",
    "text_array",
    "unpack_forwards",
    "unpack_postings",
    "vector",
]

FORWARD = np.dtype(
    [("key", "<i8"), ("count", "<u2"), ("mention", "u1"), ("subject", "u1"), ("kind", "u1"), ("pad", "V3")]
)

POSTING = np.dtype(
    [("ord", "<u4"), ("count", "<u2"), ("length", "<u2"), ("mention", "u1"), ("subject", "u1"), ("pad", "V2")]
)

WEIGHT_UNIT = 100
"""Mention and subject weights are stored as hundredths in one byte."""

_LARGEST = 65_535


class Segment(NamedTuple):
    """The postings of one key within one batch; ``n`` counts the memories that mention it, its share of df."""

    key: int
    kind: int
    n: int
    subjects: int
    low: int
    high: int
    name: str
    entries: bytes


def mentions(entries: NDArray[Any]) -> NDArray[np.bool_]:
    """Return which entries count for df: those that mention the key, not those that are only about it."""
    found: NDArray[np.bool_] = (entries["mention"] > 0) | (entries["count"] > 0)
    return found


def forward_entries(extractions: Sequence[Extraction]) -> NDArray[Any]:
    """Return the entries of many memories in one array, one memory after the other."""
    size = sum(len(e.keys) for e in extractions)
    out = np.zeros(size, dtype=FORWARD)

    def column(name: str, dtype: type) -> NDArray[Any]:
        return np.fromiter(itertools.chain.from_iterable(getattr(e, name) for e in extractions), dtype, size)

    out["key"] = column("keys", np.int64)
    out["kind"] = column("kinds", np.uint8)
    out["count"] = np.minimum(column("counts", np.int64), _LARGEST)
    out["mention"] = np.rint(column("mentions", np.float64) * WEIGHT_UNIT)
    out["subject"] = np.rint(column("subjects", np.float64) * WEIGHT_UNIT)
    return out


Groups = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[Any]]
"""(ids, sizes, entries): ids ascending, how many entries each has, and the entries one id after the other."""


def unpack_forwards(heads: bytes, raw: bytes) -> Groups:
    """Return the forward entries that SQL packed as (ord, length in bytes) pairs and one run of entries."""
    pairs = np.frombuffer(heads, dtype=">i8").astype(np.int64).reshape(-1, 2)
    return pairs[:, 0], pairs[:, 1] // FORWARD.itemsize, np.frombuffer(raw, dtype=FORWARD)


def unpack_postings(
    heads: bytes, raw: bytes, pending: Sequence[tuple[int, int, bytes]], wanted: NDArray[np.int64], max_df: int
) -> Groups:
    """Return the postings of the ``wanted`` keys that at most ``max_df`` memories mention.

    ``heads`` are (key, n, length in bytes) of segments and ``raw`` their entries; a segment of more than ``max_df``
    mentions comes without. ``pending`` are (ord, length, packed forward) of memories that are in no segment yet.
    """
    triples = np.frombuffer(heads, dtype=">i8").astype(np.int64).reshape(-1, 3)
    owner = np.repeat(triples[:, 0], triples[:, 2] // POSTING.itemsize)
    keys, mentioned = triples[:, 0], triples[:, 1]
    if pending:
        added_keys, added = _pending_entries(pending, wanted)
        raw += added.tobytes()
        owner = np.concatenate([owner, added_keys])
        keys = np.concatenate([keys, added_keys])
        mentioned = np.concatenate([mentioned, mentions(added).astype(np.int64)])
    entries = np.frombuffer(raw, dtype=POSTING)
    distinct, slot = np.unique(keys, return_inverse=True)
    few = distinct[np.bincount(slot, weights=mentioned, minlength=len(distinct)) <= max_df]
    at = np.searchsorted(few, owner)
    kept = (
        (at < len(few)) & (few[np.minimum(at, max(len(few) - 1, 0))] == owner)
        if len(few)
        else np.zeros(len(owner), bool)
    )
    entries, owner = entries[kept], owner[kept]
    if len(owner) and (owner[1:] < owner[:-1]).any():
        order = np.argsort(owner, kind="stable")
        entries, owner = entries[order], owner[order]
    ids, sizes = np.unique(owner, return_counts=True)
    return ids, sizes.astype(np.int64), entries


def join_groups(one: Groups, other: Groups, replaced: NDArray[np.int64]) -> Groups:
    """Return the groups of ``one`` without those of the ids ``replaced``, and all of ``other``."""
    ids, sizes, entries = one
    stays = ~np.isin(ids, replaced)
    entries = entries[np.repeat(stays, sizes)]
    owner = np.concatenate([np.repeat(ids[stays], sizes[stays]), np.repeat(other[0], other[1])])
    order = np.argsort(owner, kind="stable")
    joined = np.frombuffer(entries.tobytes() + other[2].tobytes(), dtype=other[2].dtype)[order]
    ids, sizes = np.unique(owner, return_counts=True)
    return ids, sizes.astype(np.int64), joined


def pending_keys(pending: Sequence[tuple[int, int, bytes]], wanted: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return which of the ``wanted`` keys some pending memory has."""
    held = np.frombuffer(b"".join(raw for _, _, raw in pending), dtype=FORWARD)
    return np.intersect1d(held["key"], wanted)


def _pending_entries(
    pending: Sequence[tuple[int, int, bytes]], wanted: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[Any]]:
    sizes = [len(raw) // FORWARD.itemsize for _, _, raw in pending]
    held = np.frombuffer(b"".join(raw for _, _, raw in pending), dtype=FORWARD)
    kept = np.isin(held["key"], wanted)
    added = np.zeros(int(kept.sum()), dtype=POSTING)
    added["ord"] = np.repeat([ord for ord, _, _ in pending], sizes)[kept]
    added["length"] = np.repeat(np.minimum([length for _, length, _ in pending], _LARGEST), sizes)[kept]
    for field in ("count", "mention", "subject"):
        added[field] = held[field][kept]
    return held["key"][kept].astype(np.int64), added


def invert(
    ords: NDArray[np.int64],
    lengths: NDArray[np.int64],
    sizes: NDArray[np.int64],
    entries: NDArray[Any],
    names: Sequence[str],
) -> Iterator[Segment]:
    """Turn the forward entries of many memories into one Segment a key, keys ascending.

    ``ords``, ``lengths`` and ``sizes`` (how many entries) have one element a memory, ``entries`` and ``names`` one an
    entry. A name goes by the form that most of them have.
    """
    if not len(entries):  # nothing but punctuation, such as a memory that is one emoji
        return
    owner = np.repeat(np.arange(len(ords)), sizes)
    order = np.lexsort((ords[owner], entries["key"]))
    entries, owner = entries[order], owner[order]
    packed = np.zeros(len(entries), dtype=POSTING)
    packed["ord"] = ords[owner]
    packed["length"] = np.minimum(lengths[owner], _LARGEST)
    for field in ("count", "mention", "subject"):
        packed[field] = entries[field]
    keys = entries["key"]
    starts = np.flatnonzero(np.r_[True, keys[1:] != keys[:-1]])
    ends = np.r_[starts[1:], len(keys)]
    subjects = np.add.reduceat((entries["subject"] > 0).astype(np.int64), starts)
    mentioned = np.add.reduceat(mentions(entries).astype(np.int64), starts)
    raw = packed.tobytes()
    width = POSTING.itemsize
    lows, highs = packed["ord"][starts].tolist(), packed["ord"][ends - 1].tolist()
    columns = zip(
        keys[starts].tolist(),
        entries["kind"][starts].tolist(),
        mentioned.tolist(),
        subjects.tolist(),
        order[starts].tolist(),
        starts.tolist(),
        ends.tolist(),
        lows,
        highs,
        strict=True,
    )
    for key, kind, n, about, first, start, end, low, high in columns:
        name = names[first]
        if kind == Kind.NAME and end - start > 1:  # as most of these memories write it; stems are all alike
            name = Counter(names[at] for at in order[start:end].tolist()).most_common(1)[0][0]
        yield Segment(key, kind, n, about, low, high, name, raw[start * width : end * width])


_AS_THEY_ARE = (
    "namespace", "text", "title", "author", "session", "position", "source", "importance", "created_at", "updated_at",
    "version",
)  # fmt: skip


def memory_of(row: Any) -> Memory:
    """Return the memory of a row of ``memory``, its ord last; a part has the id ``{id}#{part}``."""
    (namespace, id, part, text, title, author, session, position, source, tags, metadata, importance, *rest) = row
    created_at, updated_at, version, _ = rest
    return Memory(
        id=f"{id}#{part}" if part else id,
        namespace=namespace,
        text=text,
        title=title,
        author=author,
        session=session,
        position=position,
        source=source,
        tags=tuple(tags),
        metadata=metadata,
        importance=importance,
        created_at=created_at,
        updated_at=updated_at,
        version=version,
        parent_id=id if part else None,
    )


def columns_of(rows: Sequence[Row]) -> dict[str, list[Any]]:
    """Return rows to be written as a list for each column of ``memory``."""
    columns: dict[str, list[Any]] = defaultdict(list)
    for row in rows:
        memory = row.memory
        for field in _AS_THEY_ARE:
            columns[field].append(getattr(memory, field))
        columns["id"].append(row.name[1])
        columns["author_key"].append((author_key(memory.author) or None) if memory.author else None)
        columns["part"].append(row.part)
        columns["parts"].append(row.parts)
        columns["tags"].append(Jsonb(list(memory.tags)))
        columns["metadata"].append(Jsonb(dict(memory.metadata)))
        columns["content"].append(row.content)
        columns["payload"].append(row.payload)
    return columns


_INT8_OID, _INT8_ARRAY_OID = 20, 1016

_ELEMENT = np.dtype([("size", ">i4"), ("value", ">i8")])


class Vector:
    """A vector on its way to PostgreSQL; the statement casts it (``::public.vector``), since pgvector's oid varies."""

    __slots__ = ("values",)

    def __init__(self, values: Any) -> None:
        self.values = values


class _VectorDumper(Dumper):
    format = Format.BINARY
    oid = 0

    def dump(self, obj: Vector) -> bytes:
        """Return pgvector's binary form."""
        return struct.pack("!HH", len(obj.values), 0) + np.asarray(obj.values).astype(">f4").tobytes()


class _BigintArray(Dumper):
    format = Format.BINARY
    oid = _INT8_ARRAY_OID

    def dump(self, obj: Any) -> bytes:
        """Return the binary form of a one-dimensional array of whole numbers."""
        if not len(obj):
            return struct.pack("!iii", 0, 0, _INT8_OID)
        body = np.empty(len(obj), dtype=_ELEMENT)
        body["size"], body["value"] = 8, obj
        return struct.pack("!iiiii", 1, 0, _INT8_OID, len(obj), 1) + body.tobytes()


def register_arrays(connection: Any) -> None:
    """Let ``connection`` take numpy arrays of whole numbers as parameters."""
    connection.adapters.register_dumper(np.ndarray, _BigintArray)
    connection.adapters.register_dumper(Vector, _VectorDumper)


_HEADER = b"PGCOPY\n\xff\r\n\0" + struct.pack("!ii", 0, 0)

_END = struct.pack("!h", -1)

_BUFFER = 1 << 18

_TEXT_OID = 25

int2 = struct.Struct("!h").pack

int4 = struct.Struct("!i").pack

int8 = struct.Struct("!q").pack


def text(value: str) -> bytes:
    """Return a text value."""
    return value.encode()


def text_array(values: Sequence[str]) -> bytes:
    """Return a one-dimensional text[]."""
    if not values:
        return struct.pack("!iii", 0, 0, _TEXT_OID)
    parts = [struct.pack("!iiiii", 1, 0, _TEXT_OID, len(values), 1)]
    for value in values:
        raw = value.encode()
        parts += (int4(len(raw)), raw)
    return b"".join(parts)


def vector(value: NDArray[Any]) -> bytes:
    """Return pgvector's vector from a one-dimensional array."""
    return struct.pack("!HH", len(value), 0) + value.astype(">f4").tobytes()


def copy_rows(connection: Any, table: str, columns: Sequence[str], rows: Iterable[Sequence[bytes]]) -> None:
    """COPY ``rows``, one bytes value a column, into ``table``, in buffers of a quarter of a megabyte."""
    width = int2(len(columns))
    buffer = [_HEADER]
    size = 0
    statement = f"COPY {table} ({', '.join(columns)}) FROM STDIN (FORMAT binary)"
    with connection.cursor().copy(statement) as copy:
        for row in rows:
            buffer.append(width)
            for value in row:
                buffer += (int4(len(value)), value)
                size += len(value)
            if size > _BUFFER:
                copy.write(b"".join(buffer))
                buffer, size = [], 0
        buffer.append(_END)
        copy.write(b"".join(buffer))
