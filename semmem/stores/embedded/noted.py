"""The data folders whose servers this user has started, noted in the state folder for `semmem server list`."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from semmem.files import new_file, private_folder, state_file, state_folder
from semmem.model.errors import InvalidInput

__all__ = ["folders", "note"]

_KIND = "embedded"


def note(folder: Path) -> None:
    """Note down that the server of ``folder`` was started; a user without a home has no notes."""
    path = os.fsencode(folder)
    with suppress(InvalidInput, OSError):
        file = state_file(_KIND, path)
        private_folder(file.parent)
        with new_file(file, force=True) as out:
            out.write(path)


def folders() -> list[Path]:
    """Return the noted folders that still exist, in order; the notes of others are removed."""
    found = []
    for file in (state_folder() / _KIND).glob("[0-9a-f]*"):
        with suppress(OSError):
            folder = Path(os.fsdecode(file.read_bytes()))
            if folder.is_dir():
                found.append(folder)
            else:
                file.unlink()
    return sorted(found)
