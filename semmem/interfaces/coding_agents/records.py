"""What `semmem install` has written into a file, so that `semmem uninstall` can give the file back byte for byte.

A record is kept in the state folder, only for this user to read. It holds the hash of the file as it was written, where
in it the new text stands, and the text that stood there before. If anybody has changed the file since, the record is
of no use, and the entries are taken out of the file as it is now.
"""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path

from semmem.files import keep_state, state, state_file
from semmem.model.errors import InvalidInput

__all__ = ["Unrecorded", "existed", "folders_made", "forget", "keep", "known", "original"]


class Unrecorded(Exception):
    """No record tells what the file was before: there is none, or the file was changed since."""


@dataclass(frozen=True, slots=True)
class _Record:
    sha256: str
    begin: int  # in characters of the file as it was written
    end: int
    before: str | None  # what stood there; None: there was no file
    folders: int = 0  # that were made for it, from the innermost outwards


def original(file: Path, text: str | None) -> str | None:
    """Return what ``file``, which holds ``text``, held before the installation, None for no file. Raises Unrecorded."""
    record = _read(file)
    if record is None or text is None or record.sha256 != _hash(text):
        raise Unrecorded
    return None if record.before is None else text[: record.begin] + record.before + text[record.end :]


def known(file: Path) -> bool:
    """Return whether there is a record of ``file``, whatever became of the file since."""
    return _read(file) is not None


def existed(file: Path) -> bool:
    """Return whether a record says that ``file`` was there before the installation."""
    return (record := _read(file)) is not None and record.before is not None


def folders_made(file: Path) -> int:
    """Return how many folders around ``file`` were made for it, from the innermost outwards."""
    return record.folders if (record := _read(file)) is not None else 0


def keep(file: Path, before: str | None, after: str, folders: int) -> None:
    """Record that ``file`` held ``before`` and is about to hold ``after``; where it cannot be kept, there is none.

    ``folders`` are about to be made for it, besides those of an earlier record.
    """
    old = before or ""
    begin = _alike(old, after)
    shorter = min(len(old), len(after)) - begin
    same = min(_alike(old[::-1], after[::-1]), shorter)
    replaced = None if before is None else old[begin : len(old) - same]
    record = _Record(_hash(after), begin, len(after) - same, replaced, folders or folders_made(file))
    with suppress(OSError, InvalidInput):
        keep_state(_place(file), asdict(record))


def forget(file: Path) -> None:
    """Remove the record of ``file``."""
    with suppress(OSError, InvalidInput):
        _place(file).unlink(missing_ok=True)


def _read(file: Path) -> _Record | None:
    try:
        return _Record(**state(_place(file)))
    except (TypeError, InvalidInput):
        return None


def _place(file: Path) -> Path:
    return state_file("installed", os.fsencode(file.absolute())).with_suffix(".json")


def _alike(one: str, other: str) -> int:
    """Return how many characters two texts have in common at the beginning."""
    return next(
        (index for index, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other))
    )


def _hash(text: str) -> str:
    return sha256(text.encode()).hexdigest()
