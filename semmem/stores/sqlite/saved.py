"""Save namespaces of a SQLite file as memory holds them, so that a new process maps one instead of reading its rows.

Beside ``notes.db`` stands the folder ``notes.db-models``, with a file for each saved namespace: a header, then the
arrays of its block. The name of the file is drawn by chance, and the store records it in the transaction that saves. So
a store that has the name has the state that was saved, or one that follows from it: a store restored from a backup, or
a new one at the same path, has another name or none. Whatever does not match is no saved model, and is not spoken of.

Files are written and removed with the write lock held, and what the store has no name for is removed with them. So no
process saves what another one has erased, and what a killed process has left is of a state that was the store's then.
"""

from __future__ import annotations

import json
import logging
import mmap
import os
import re
import sqlite3
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from hashlib import blake2b
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from semmem.files import is_part, new_file, private_folder
from semmem.model.errors import StoreUnavailable
from semmem.stores.resident.block import Block, Rows
from semmem.stores.resident.model import Model, State
from semmem.stores.sql_files import statements

__all__ = ["FEWEST", "disk_bytes", "erase", "is_fresh", "load", "save"]

_SQL = statements("sqlite")
_log = logging.getLogger(__name__)

FEWEST = 2_000
"""Smaller namespaces are read as fast."""
_MOST_BEHIND = 1_000
"""A saved model that more changes follow is saved anew."""
_LAYOUT = 1
"""To be raised where an array is made of the rows in another way; another name or type is noticed."""
_MAGIC = b"semmemdl"
_HEAD = len(_MAGIC) + 8 + 16
"""The bytes before the header: the magic, the header's length, its hash."""
_ALIGNED = 64
_NAME = re.compile(r"[0-9a-f]{32}\.model")


def load(connection: sqlite3.Connection, namespace: str, number: int) -> tuple[State, Block] | None:
    """Return what is saved of the namespace of that number, which may be of an earlier state; None where nothing is."""
    path = _path(connection, number)
    if path is not None:
        with suppress(OSError):
            os.utime(path)  # those asked longest ago make room for others
    return _found(path, namespace)


def is_fresh(connection: sqlite3.Connection, state: State) -> bool:
    """Return whether the saved model of a namespace need not be saved again at ``state``."""
    if (found := _found(_path(connection, int(state.created)), "")) is None:
        return False
    saved, _ = found
    return saved == state or (state.follows(saved) and state.changes - saved.changes <= _MOST_BEHIND)


def save(connection: sqlite3.Connection, model: Model, most: int, *, makes_room: bool) -> None:
    """Save a model whose state is that of the store. The caller holds the write lock. Raises OSError.

    All saved models of the file take at most ``most`` bytes, but for a single one: those that were asked longest ago
    give way, or without ``makes_room`` nothing is saved.
    """
    folder = _folder(connection)
    if folder is None or not _is_private(folder):
        return
    arrays = model.block.arrays()
    number = int(model.state.created)
    others = sorted(_named(connection, folder, but=number).items(), key=lambda one: one[1].st_mtime)
    taken = sum(array.nbytes for array in arrays.values()) + sum(status.st_size for _, status in others)
    while taken > most and others:
        if not makes_room:
            return
        name, status = others.pop(0)
        taken -= status.st_size
        connection.execute(_SQL["saved_drop"], {"name": name})
    name = f"{os.urandom(16).hex()}.model"
    with new_file(folder / name) as out:
        _write(out, model.state, arrays)
    connection.execute(_SQL["saved_set"], {"number": number, "name": name})
    _tidy(connection, folder)


def erase(connection: sqlite3.Connection, namespace: str | None = None) -> None:
    """Remove the saved model of a namespace, or each without one. The caller holds the write lock.

    Raises StoreUnavailable where it cannot be removed.
    """
    connection.execute(_SQL["saved_erase"], {"namespace": namespace})
    if (folder := _folder(connection)) is None:
        return
    try:
        _tidy(connection, folder)
    except (FileNotFoundError, NotADirectoryError):
        return
    except OSError as error:
        raise StoreUnavailable(
            f"Saved models of this store in {folder} cannot be removed ({error.strerror}), so nothing was changed; "
            "delete that folder, and try again."
        ) from error


def disk_bytes(connection: sqlite3.Connection) -> int:
    """Return the bytes that the saved models of a store take."""
    folder = _folder(connection)
    return 0 if folder is None else sum(status.st_size for status in _named(connection, folder).values())


def _folder(connection: sqlite3.Connection) -> Path | None:
    """Return the folder of saved models, beside the file where links end; None for a database in memory."""
    place = connection.execute(_SQL["saved_place"]).fetchone()[0]
    return Path(f"{os.fsdecode(place)}-models") if place else None


def _is_private(folder: Path) -> bool:
    """Make the folder, and return whether its owner alone, who is this user, may write the store and the folder."""
    store = Path(str(folder).removesuffix("-models")).stat()
    if store.st_uid != os.geteuid() or store.st_mode & 0o022:
        return False  # another user who forgets a memory could not remove its title from the folder
    private_folder(folder)
    status = folder.lstat()
    return status.st_uid == os.geteuid() and not status.st_mode & 0o077 and not folder.is_symlink()


def _path(connection: sqlite3.Connection, number: int) -> Path | None:
    """Return the file that the store names for the namespace of that number."""
    row = connection.execute(_SQL["saved_name"], {"number": number}).fetchone()
    folder = None if row is None else _folder(connection)
    return folder / row[0] if folder is not None and _NAME.fullmatch(row[0]) else None


def _names(connection: sqlite3.Connection) -> set[str]:
    return {name for (name,) in connection.execute(_SQL["saved_names"])}


def _named(connection: sqlite3.Connection, folder: Path, *, but: int | None = None) -> dict[str, os.stat_result]:
    """Return the status of each file that the store names, but for that of one namespace."""
    own = None if but is None else _path(connection, but)
    named = {}
    for name in _names(connection) - {"" if own is None else own.name}:
        with suppress(OSError):
            named[name] = (folder / name).stat()
    return named


def _tidy(connection: sqlite3.Connection, folder: Path) -> None:
    """Remove files of saved models, whole or in part, that the store does not name."""
    names = _names(connection)
    for file in os.listdir(folder):
        if (_NAME.fullmatch(file) or is_part(file)) and file not in names:
            (folder / file).unlink(missing_ok=True)


# ---------------------------------------------------------------------- the file


@cache
def _types() -> Mapping[str, np.dtype[Any]]:
    """Return the type of each array, by which a file of another version, or of another byte order, is known."""
    return {name: array.dtype for name, array in Block(Rows.none()).arrays().items()}


def _write(out: BinaryIO, state: State, arrays: Mapping[str, NDArray[Any]]) -> None:
    columns = [[name, str(array.dtype.descr), array.shape] for name, array in arrays.items()]
    header: dict[str, Any] = {"layout": _LAYOUT, "state": state, "arrays": columns}
    raw = json.dumps(header).encode()
    out.write(_MAGIC + len(raw).to_bytes(8, "little") + _hash(raw) + raw)
    place = _HEAD + len(raw)
    for array in arrays.values():
        out.write(bytes(-place % _ALIGNED))
        place += -place % _ALIGNED + array.nbytes
        out.write(np.ascontiguousarray(array).data)


def _found(path: Path | None, namespace: str) -> tuple[State, Block] | None:
    """Return what a file holds; None where there is no file to trust."""
    try:
        return None if path is None else _mapped(path, namespace)
    except (OSError, ValueError, TypeError, KeyError) as error:
        _log.debug("A saved model is not used: %s", error)
        return None


def _mapped(path: Path, namespace: str) -> tuple[State, Block]:
    """Return what a file holds, its arrays mapped for reading. Raises OSError, and ValueError for other files."""
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    with os.fdopen(handle, "rb"):
        if os.fstat(handle).st_uid != os.geteuid():
            raise ValueError("another user's file")
        content = mmap.mmap(handle, 0, access=mmap.ACCESS_READ)
    size = int.from_bytes(content[len(_MAGIC) : len(_MAGIC) + 8], "little")
    raw = content[_HEAD : _HEAD + size]
    if content[: len(_MAGIC)] != _MAGIC or content[len(_MAGIC) + 8 : _HEAD] != _hash(raw):
        raise ValueError("no header")
    header = json.loads(raw)
    if header["layout"] != _LAYOUT or {n: t for n, t, _ in header["arrays"]} != _expected():
        raise ValueError("another layout")
    arrays, place = {}, _HEAD + size
    for name, _, shape in header["arrays"]:
        place += -place % _ALIGNED
        arrays[name] = array = np.ndarray(shape, _types()[name], content, place)
        place += array.nbytes
    if place != len(content):
        raise ValueError("another length")
    return State(*header["state"]), Block.from_arrays(namespace, arrays)


def _expected() -> dict[str, str]:
    return {name: str(dtype.descr) for name, dtype in _types().items()}


def _hash(raw: bytes) -> bytes:
    return blake2b(raw, digest_size=16).digest()
