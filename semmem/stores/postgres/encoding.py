"""Encode parameters for PostgreSQL and decode its rows: binary formats, and rows as the types of semmem."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import datetime
from itertools import compress, islice, repeat
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pgvector import Vector
from pgvector.psycopg.vector import VectorBinaryDumper
from psycopg import sql
from psycopg.abc import Buffer
from psycopg.adapt import Dumper
from psycopg.pq import Format
from psycopg.types.json import Jsonb, JsonbBinaryLoader

from semmem.model.exchange import BEHIND, LAST, Corrections, Kinds, Row, Turn
from semmem.model.field_kinds import Json, Kind, Tags
from semmem.model.memory_fields import FILTERS, STORED, Filter
from semmem.model.store.encoded import vector_embedder
from semmem.model.types import Filters, Memory
from semmem.stores.packed_postings import FORWARD, POSTING, Segments, cut
from semmem.stores.postgres import row_security
from semmem.stores.postgres.typed import Connection
from semmem.stores.sql_files import statements
from semmem.text.tokens import author_key

__all__ = [
    "POSTING_COLUMNS",
    "columns_of",
    "copy_packed",
    "copy_rows",
    "corrections_of",
    "facts_of",
    "facts_parameters",
    "filter_parameters",
    "int2",
    "int4",
    "int4_array",
    "int8",
    "key_rows",
    "labels_of",
    "made_by",
    "memory_of",
    "posting_rows",
    "register_arrays",
    "text",
    "text_array",
    "turns_of",
]

_ENCODERS: Mapping[type[Kind], Callable[[Any], Any]] = {
    Tags: lambda tags: Jsonb(list(tags)),
    Json: lambda value: Jsonb(dict(value)),
}
"""How a field is put into a parameter; fields of other kinds as they are."""


def memory_of(row: Sequence[Any], *, access_count: int | None = None, last_accessed: datetime | None = None) -> Memory:
    """Return the memory for a row of the table ``memory``; a part has the id ``{id}#{part}``."""
    namespace, id, part, updated_at, version, seen_count, last_seen, *values = row
    fields = dict(zip(STORED, values, strict=False))  # behind them stands the row id
    fields |= {name: tuple(fields[name]) for name in _LISTS}
    counts: dict[str, Any] = {
        "seen_count": seen_count,
        "last_seen": None if seen_count == 1 else last_seen,  # 1: when it was written
        "access_count": access_count,
        "last_accessed": last_accessed,
    }
    name, parent = (f"{id}#{part}", id) if part else (id, None)
    return Memory(name, namespace, **fields, updated_at=updated_at, version=version, parent_id=parent, **counts)


_LISTS = [name for name, field in STORED.items() if isinstance(field.kind, Tags)]


def columns_of(rows: Sequence[Row], places: Sequence[int]) -> dict[str, Any]:
    """Return rows of one namespace as a list for each column of ``memory``; ``places`` in the batch count from 1."""
    memories = [row.memory for row in rows]
    columns: dict[str, Any] = {"place": list(places)}
    for name, field in STORED.items():
        values = [getattr(memory, name) for memory in memories]
        encode = _ENCODERS.get(type(field.kind))
        columns[name] = values if encode is None else [encode(value) for value in values]
    for name in ("updated_at", "version"):
        columns[name] = [getattr(memory, name) for memory in memories]
    for name in ("part", "parts", "merges", "text_at"):
        columns[name] = [getattr(row, name) for row in rows]
    columns["id"] = [row.name[1] for row in rows]
    columns["author_key"] = [None if one.sensitive else author_key(one.author or "") or None for one in memories]
    columns["text"] = Encoded(text_array(columns["text"]))
    columns["content"] = Encoded(_array(_BYTEA_OID, [row.content for row in rows]))
    columns["payload"] = Encoded(_array(_BYTEA_OID, [row.payload for row in rows]))
    return columns


_INT4_OID, _INT8_OID, _INT8_ARRAY_OID = 23, 20, 1016

_ELEMENT = np.dtype([("size", ">i4"), ("value", ">i8")])
_ELEMENT4 = np.dtype([("size", ">i4"), ("value", ">i4")])


_NO_METADATA = b"\x01{}"
"""The binary form of an empty jsonb object: its version, and its text."""


class Encoded(bytes):
    """A parameter in binary form, which the statement casts; psycopg escapes bytes in a list one by one."""


class _EncodedDumper(Dumper):
    format = Format.BINARY
    oid = 0

    def dump(self, obj: Encoded) -> bytes:
        """Return it as it is."""
        return obj


class _BigintArray(Dumper):
    format = Format.BINARY
    oid = _INT8_ARRAY_OID

    def dump(self, obj: NDArray[np.int64]) -> bytes:
        """Return the binary form of a one-dimensional array of whole numbers."""
        if not len(obj):
            return struct.pack("!iii", 0, 0, _INT8_OID)
        body = np.empty(len(obj), dtype=_ELEMENT)
        body["size"], body["value"] = 8, obj
        return struct.pack("!iiiii", 1, 0, _INT8_OID, len(obj), 1) + body.tobytes()


class _MetadataLoader(JsonbBinaryLoader):
    def load(self, data: Buffer) -> object:
        """Return the value; most metadata is empty, and parsing it takes as long as making the memory."""
        return {} if data == _NO_METADATA else super().load(data)


def register_arrays(connection: Connection) -> None:
    """Let ``connection`` take numpy arrays of integers, and vectors, as parameters.

    A statement casts a vector (``::public.vector``). pgvector's ``register_vector`` would ask the server four times for
    the oids of its types, and take numpy arrays for itself.
    """
    connection.adapters.register_dumper(np.ndarray, _BigintArray)
    connection.adapters.register_loader("jsonb", _MetadataLoader)
    connection.adapters.register_dumper(Encoded, _EncodedDumper)
    connection.adapters.register_dumper(Vector, VectorBinaryDumper)


_SQL = statements("postgres")
_HEADER = b"PGCOPY\n\xff\r\n\0" + struct.pack("!ii", 0, 0)

_END = struct.pack("!h", -1)

_AT_ONCE = 1 << 10  # rows

_BYTEA_OID, _TEXT_OID = 17, 25

int2 = struct.Struct("!h").pack

int4 = struct.Struct("!i").pack

int8 = struct.Struct("!q").pack


def text(value: str) -> bytes:
    """Return a text value in binary format."""
    return value.encode()


def text_array(values: Sequence[str]) -> bytes:
    """Return a one-dimensional text[] in binary format."""
    return _array(_TEXT_OID, [value.encode() for value in values])


def _array(oid: int, values: Sequence[bytes]) -> bytes:
    if not values:
        return struct.pack("!iii", 0, 0, oid)
    parts = [part for raw in values for part in (int4(len(raw)), raw)]
    return struct.pack("!iiiii", 1, 0, oid, len(values), 1) + b"".join(parts)


def int4_array(values: NDArray[Any]) -> bytes:
    """Return a one-dimensional integer[] in binary format."""
    body = np.empty(len(values), dtype=_ELEMENT4)
    body["size"], body["value"] = 4, values
    return struct.pack("!iiiii", 1, 0, _INT4_OID, len(values), 1) + body.tobytes()


def key_rows(namespace: str, keys: NDArray[Any], ords: NDArray[np.int64]) -> Sequence[bytes]:
    """Return the rows (namespace, integer key, row id) in COPY's binary format."""
    name = text(namespace)
    head = int2(3) + int4(len(name)) + name
    columns = [("head", f"V{len(head)}"), ("_key", ">i4"), ("key", ">i4"), ("_ord", ">i4"), ("ord", ">i8")]
    rows = np.empty(len(keys), columns)
    rows["head"], rows["_key"], rows["key"], rows["_ord"], rows["ord"] = np.void(head), 4, keys, 8, ords
    return [rows.tobytes()] if len(keys) else []


def copy_rows(connection: Connection, table: str, columns: Sequence[str], rows: Iterable[Sequence[bytes]]) -> None:
    """COPY ``rows``, each with one bytes value per column, into ``table``, a thousand at a time."""
    width = int2(len(columns))
    packed = (width + b"".join([part for value in row for part in (int4(len(value)), value)]) for row in rows)
    copy_packed(connection, table, columns, packed)


def copy_packed(connection: Connection, table: str, columns: Sequence[str], rows: Iterable[bytes]) -> None:
    """COPY rows that are in the binary format already, with the number and lengths of their values."""
    each = iter(rows)
    names = sql.SQL(", ").join(map(sql.Identifier, columns))
    with row_security.to_copy(connection, table, names) as place:
        statement = sql.SQL(_SQL["move_write"]).format(table=place, columns=names)
        with connection.cursor().copy(statement) as copy:
            copy.write(_HEADER)
            while some := b"".join(islice(each, _AT_ONCE)):
                copy.write(some)
            copy.write(_END)


POSTING_COLUMNS = ("namespace", "key", "segment", "kind", "n", "subjects", "low", "high", "name", "entries", "lone")
_FIXED = np.dtype(
    [("_key", ">i4"), ("key", ">i8"), ("_segment", ">i4"), ("segment", ">i8"), ("_kind", ">i4"), ("kind", ">i2"),
     ("_n", ">i4"), ("n", ">i4"), ("_subjects", ">i4"), ("subjects", ">i4"), ("_low", ">i4"), ("low", ">i8"),
     ("_high", ">i4"), ("high", ">i8"), ("name", ">i4")]
)  # fmt: skip
"""The values of a posting row between its namespace and its name, each behind its length."""


def posting_rows(namespace: str, number: int, segments: Segments, shared_keys: Collection[int]) -> Sequence[bytes]:
    """Return the rows of a segment in COPY's binary format, first those of keys that connect memories.

    Several memories have these, or one is about them, so that the others may mention them.
    """
    head = int2(len(POSTING_COLUMNS)) + int4(len(text(namespace))) + text(namespace)
    shown = [label.encode() for label in segments.names]
    fixed = np.empty(len(shown), dtype=_FIXED)
    columns = ("key", segments.keys), ("segment", number), ("kind", segments.kinds), ("n", segments.n)
    for column, values in (*columns, ("subjects", segments.subjects), ("low", segments.lows), ("high", segments.highs)):
        fixed[column] = values
        fixed[f"_{column}"] = _FIXED[column].itemsize
    fixed["name"] = np.fromiter(map(len, shown), np.int64, len(shown))
    alone = (segments.sizes == 1) & (segments.subjects == 0)
    alone &= ~np.isin(segments.keys, np.fromiter(shared_keys, np.int64, len(shared_keys)))
    sizes = (segments.sizes * POSTING.itemsize).astype(">i4")
    last = int4(1) + b"\x00", int4(1) + b"\x01"
    lasts = map(last.__getitem__, alone.tolist())
    parts = repeat(head), cut(fixed), shown, cut(sizes), segments.packed(), lasts
    rows = tuple(map(b"".join, zip(*parts, strict=False)))  # a head for each
    return (*compress(rows, ~alone), *compress(rows, alone))  # the first are merged later: few pages hold them


def filter_parameters(filters: Filters) -> dict[str, Any]:
    """Return the parameters of the filter clauses; None restricts nothing."""
    values = ((name, row, getattr(filters, name)) for name, row in FILTERS.items())
    return {name: (list(value) or None) if row.several else _filter(row, value) for name, row, value in values}


def _filter(row: Filter, value: Any) -> Any:
    return (Jsonb(dict(value)) if value else None) if row.how == "contains" else value


def facts_parameters(namespace: str, keys: Collection[str]) -> dict[str, Any]:
    """Return the parameters of the statement ``memory_kinds``."""
    return {"namespace": namespace, "keys": list(keys), "last": LAST, "behind": BEHIND}


def facts_of(rows: Mapping[str, Sequence[Any]]) -> dict[str, Kinds]:
    """Return the conversation facts of each namespace, from the rows of the statement ``memory_kinds``."""
    return Kinds.of(list(rows), [(namespace, *row) for namespace, kind_rows in rows.items() for row in kind_rows])


def labels_of(rows: Sequence[tuple[bytes, Sequence[str]]], keys: Collection[int]) -> dict[int, str]:
    """Return the spelling of the names of ``keys`` from the rows of the statement ``names_pending``."""
    labels: dict[int, str] = {}
    for raw, names in rows:
        pairs = zip(np.frombuffer(raw, dtype=FORWARD)["key"].tolist(), names, strict=True)
        labels |= {key: name for key, name in pairs if key in keys}
    return labels


def turns_of(rows: Sequence[Any], dimensions: int) -> tuple[Sequence[Turn], NDArray[np.int64], NDArray[np.float32]]:
    """Return turns from rows that end in a vector or NULL, the row ids with a vector, ascending, and the vectors."""
    pairs = sorted((row[1], row[-1]) for row in rows if row[-1] is not None)
    packed = b"".join(raw[4:] for _, raw in pairs)  # each begins with its length
    vectors = np.frombuffer(packed, dtype=">f4").reshape(len(pairs), dimensions).astype(np.float32)
    return [Turn(*row[:-1]) for row in rows], np.array([row_id for row_id, _ in pairs], dtype=np.int64), vectors


def corrections_of(rows: Sequence[Any]) -> Corrections:
    """Return the corrections of a namespace from the rows of the statement ``corrections``."""
    return Corrections(
        {key: (into, into_name) for key, _, into, into_name in rows if into is not None},
        frozenset(key for key, _, into, _ in rows if into is None),
        {key: name for key, name, _, _ in rows},
    )


def made_by(vector: NDArray[np.float32]) -> str | None:
    """Return the embedder of a vector in the form that statements compare; None where it is unknown."""
    by = vector_embedder(vector)
    return None if by is None else json.dumps(dict(by))
