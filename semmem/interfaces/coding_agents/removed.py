"""How many credentials were removed from stored turns, for the next session to say; never the credentials."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from semmem.files import private_folder, state_file

__all__ = ["Removed"]


class Removed:
    """The number for one namespace of a store, in a file with one number a line: hooks append to it side by side."""

    def __init__(self, store: str, namespace: str) -> None:
        self._file: Path = state_file("removed", f"{store}\n{namespace}".encode(errors="surrogatepass"))

    def add(self, count: int) -> None:
        """Add to the number. Raises OSError."""
        private_folder(self._file.parent)
        handle = os.open(self._file, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        try:
            os.write(handle, f"{count}\n".encode())
        finally:
            os.close(handle)

    def taken(self) -> int:
        """Return the number and begin anew at 0."""
        own = self._file.with_suffix(f".{os.urandom(4).hex()}")
        with suppress(OSError, ValueError):
            self._file.replace(own)
            lines = own.read_text(encoding="ascii").split()
            own.unlink()
            return sum(map(int, lines))
        return 0
