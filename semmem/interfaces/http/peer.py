"""Whose process is at the other end of a connection on this machine, where the system says so, as Linux does."""

from __future__ import annotations

import socket
import sys

__all__ = ["user_of"]

_TABLES = ("/proc/net/tcp", "/proc/net/tcp6")


def user_of(client: tuple[str, int], server: tuple[str, int]) -> int | None:
    """Return the id of the user who holds the end ``client`` of a connection to ``server``, both IPv4; None if unknown.

    It is unknown for a client outside of this machine or container, and on systems that have no such table.
    """
    ends = tuple(_written(*end) for end in (client, server))
    for table in _TABLES:
        try:
            with open(table, encoding="ascii") as file:
                rows = [line.split() for line in file]
        except OSError:
            continue
        for row in rows:
            if row[1].endswith(ends[0]) and row[2].endswith(ends[1]):  # in tcp6 behind a prefix
                return int(row[7])
    return None


def _written(host: str, port: int) -> str:
    """Return an address as the tables have it: the number in memory as hexadecimal digits."""
    try:
        packed = socket.inet_aton(host)
    except OSError:
        return "no address of IPv4"
    return f"{int.from_bytes(packed, sys.byteorder):08X}:{port:04X}"
