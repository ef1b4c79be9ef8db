"""The program of a worker: it reads the texts that its parent sends it, and sends back what it finds.

A message is a few parts of bytes, each with its length. The worker talks to its parent alone, opens nothing, and ends
when the parent closes the pipe or is gone.
"""

from __future__ import annotations

import json
import os
import signal
import struct
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import IO

__all__ = ["greeting", "main", "receive", "send"]

_HEAD = struct.Struct("<4sI")
_MARK = b"smm1"
_MOST_PARTS = 64


def send(stream: IO[bytes], parts: Sequence[bytes]) -> None:
    """Send a message of some parts."""
    lengths = struct.pack(f"<{len(parts)}Q", *map(len, parts))
    stream.write(b"".join((_HEAD.pack(_MARK, len(parts)), lengths, *parts)))
    stream.flush()


def receive(stream: IO[bytes]) -> list[bytes] | None:
    """Return the parts of the next message; None at the end. Raises ValueError where it is no message."""
    head = stream.read(_HEAD.size)
    if not head:
        return None
    mark, count = _HEAD.unpack(head) if len(head) == _HEAD.size else (b"", 0)
    if mark != _MARK or count > _MOST_PARTS:
        raise ValueError("this is no message")
    lengths = struct.unpack(f"<{count}Q", _whole(stream, 8 * count))
    return [_whole(stream, length) for length in lengths]


def _whole(stream: IO[bytes], length: int) -> bytes:
    raw = stream.read(length)
    if len(raw) != length:
        raise ValueError("the message was cut off")
    return raw


def greeting() -> list[bytes]:
    """Return a worker's first message: the versions of all that it reads by, which must be those of its parent."""
    from semmem.concepts.likeness import LIKENESS
    from semmem.extractors import Rules
    from semmem.text.passages import SPLITTER

    return [f"{Rules.version} {LIKENESS} {SPLITTER} {sys.version}".encode()]


def main() -> None:
    """Answer messages until the pipe is closed. The first argument of a message is the language of its texts."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which then closes the pipe
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # what anything prints is no answer
    from semmem.write.bulk.columns import TextRow, packed

    with suppress(OSError, ValueError):
        send(answers, greeting())
        while (message := receive(sys.stdin.buffer)) is not None:
            rows = [TextRow(*row) for row in json.loads(message[1])]
            send(answers, packed(rows, message[0].decode()))
