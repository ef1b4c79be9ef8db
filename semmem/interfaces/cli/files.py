"""Check the files that a command reads or writes before any work is done."""

from __future__ import annotations

import os
from pathlib import Path

from semmem.files import must_be_free
from semmem.model.errors import InvalidInput

__all__ = ["to_read", "to_write"]


def to_read(path: Path, *, what: str = "file") -> Path:
    """Return ``path`` where there is a file (or a pipe). Raises InvalidInput."""
    if not path.exists():
        raise InvalidInput(f"There is no {what} {path}.")
    if path.is_dir():
        raise InvalidInput(f"{path} is a folder, not a {what}.")
    return path


def to_write(path: Path, *, force: bool) -> Path:
    """Return ``path`` where a file may be written. Raises InvalidInput where the file exists or its folder does not."""
    if not path.parent.is_dir():
        raise InvalidInput(f"There is no folder {path.parent}; create it first.")
    must_be_free(path, force=True)
    if os.path.lexists(path) and not force:  # a link counts, whether it leads somewhere or not
        raise InvalidInput(f"{path} already exists; --force overwrites it.")
    return path
