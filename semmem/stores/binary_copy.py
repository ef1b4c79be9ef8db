"""COPY in PostgreSQL's binary format from values that are already bytes: the fastest way in."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["copy_rows", "int2", "int4", "int8", "text", "text_array", "vector"]

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
