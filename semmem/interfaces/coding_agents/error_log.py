"""The log of hooks that run in the background: what went wrong, a line each, in the folder of semmem's data."""

from __future__ import annotations

import io
import os
from datetime import UTC, datetime
from pathlib import Path

from semmem.files import hook_log, private_folder

__all__ = ["error_log"]

_LARGEST = 2**20
"""Bytes; a log that is larger is begun anew."""


class _Stamped(io.TextIOBase):
    """A stream that writes each text behind the time, to the end of a file."""

    def __init__(self, file: Path) -> None:
        private_folder(file.parent)
        large = file.exists() and file.stat().st_size > _LARGEST
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW | (os.O_TRUNC if large else 0)
        flags |= os.O_NONBLOCK  # a pipe that nobody reads is refused, and not waited for
        self._handle = os.open(file, flags, 0o600)

    def write(self, text: str) -> int:
        """Append a line."""
        if text.strip():
            os.write(self._handle, f"{datetime.now(UTC).isoformat(timespec='seconds')} {text.strip()}\n".encode())
        return len(text)


def error_log() -> io.TextIOBase:
    """Return a stream that appends to the log. Raises OSError, and InvalidInput for a user without a home."""
    return _Stamped(hook_log())
