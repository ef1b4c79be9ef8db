"""Send numpy's arrays to PostgreSQL in binary, as bigint[] and as vectors: microseconds, not milliseconds."""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
from psycopg.adapt import Dumper
from psycopg.pq import Format

__all__ = ["Vector", "register_arrays"]

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
