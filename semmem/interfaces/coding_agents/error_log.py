"""The log of hooks that run in the background: what went wrong, a line each, in the folder of semmem's data."""

from __future__ import annotations

import io
import os
from datetime import UTC, datetime
from pathlib import Path

from semmem.files import data_folder, private_folder

__all__ = ["error_log", "log_file", "logged_errors"]

_LARGEST = 2**20
"""Bytes; a log that is larger is begun anew."""


class _Stamped(io.TextIOBase):
    """A stream that writes each text behind the time, to the end of a file."""

    def __init__(self, file: Path) -> None:
        private_folder(file.parent)
        large = file.exists() and file.stat().st_size > _LARGEST
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW | (os.O_TRUNC if large else 0)
        self._handle = os.open(file, flags, 0o600)

    def write(self, text: str) -> int:
        """Append a line."""
        if text.strip():
            os.write(self._handle, f"{datetime.now(UTC).isoformat(timespec='seconds')} {text.strip()}\n".encode())
        return len(text)


def log_file() -> Path:
    """Return the file of the log. Raises InvalidInput for a user without a home."""
    return data_folder() / "hook-errors.log"


def error_log() -> io.TextIOBase:
    """Return a stream that appends to the log. Raises OSError, and InvalidInput for a user without a home."""
    return _Stamped(log_file())


def logged_errors() -> list[str]:
    """Return the lines of the log, the oldest first; none where there is no log."""
    try:
        return log_file().read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []
