"""Saved models of a SQLite file: in the folder ``notes.db-models`` beside ``notes.db``, named in its table ``meta``.

Whoever saves or erases one holds the write lock of the file; see stores/resident/saved.py.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable
from functools import partial
from pathlib import Path

from semmem.files import file_number
from semmem.model.errors import StoreUnavailable
from semmem.stores.resident import saved as files
from semmem.stores.resident.block import Block
from semmem.stores.resident.model import Model, State
from semmem.stores.sql_files import statements
from semmem.stores.sqlite.connection import Opened

__all__ = ["disk_bytes", "erase", "is_fresh", "load", "save", "shrink", "touch"]

_SQL = statements("sqlite")


class _Register:
    """The names of saved models; ``number`` is that of the namespace that is saved."""

    def __init__(self, connection: sqlite3.Connection, folder: Path, number: int | None = None) -> None:
        self.folder = folder
        self._connection = connection
        self._number = number

    @property
    def own(self) -> str | None:
        return None if self._number is None else _name(self._connection, self._number)

    def names(self) -> set[str]:
        return {name for (name,) in self._connection.execute(_SQL["saved_names"])}

    def drop(self, name: str) -> None:
        self._connection.execute(_SQL["saved_drop"], {"name": name})


def load(connection: sqlite3.Connection, namespace: str, state: State) -> tuple[State, Block] | None:
    """Return what is saved of a namespace at ``state``, which may be of an earlier one; None where nothing is."""
    return files.load(_path(connection, state), namespace, state)


def touch(connection: sqlite3.Connection, states: Iterable[State]) -> None:
    """Note that the namespaces of some states were asked, the last of them last, so that their saved models stay."""
    for state in states:
        files.touch(_path(connection, state))


def is_fresh(connection: sqlite3.Connection, namespace: str, state: State) -> bool:
    """Return whether the saved model of a namespace need not be saved again at ``state``."""
    changes = partial(connection.execute, _SQL["resident_changes"])
    return files.is_fresh(_path(connection, state), namespace, state, changes)


def save(connection: sqlite3.Connection, model: Model, most: int, *, makes_room: bool) -> bool:
    """Save a model whose state is that of the store; see stores/resident/saved.py. The caller holds the write lock.

    Returns whether it is saved: without ``makes_room`` it is not where other files would give way. Raises OSError.
    """
    folder = _folder(connection)
    if folder is None or not _is_owners(folder) or not files.is_private(folder):
        return False
    block, number = model.block, int(model.state.created)
    register = _Register(connection, folder, number)
    others = files.in_the_way(register, block.file_bytes, most)
    if others and not makes_room:
        return False
    for other in others:
        register.drop(other)
    path = files.claim(folder)
    try:
        files.write(path, model.state, block)
        connection.execute(_SQL["saved_set"], {"number": number, "name": path.name})
    except BaseException:
        path.unlink(missing_ok=True)
        raise
    files.tidy(folder, register.names())
    return True


def shrink(connection: sqlite3.Connection, most: int) -> int:
    """Remove files that killed processes left, and let saved models go until they take at most ``most`` bytes.

    Returns how many of these went. The caller holds the write lock. Raises OSError.
    """
    if (folder := _folder(connection)) is None or not folder.is_dir():
        return 0
    return files.shrink(_Register(connection, folder), most)


def erase(connection: sqlite3.Connection, namespace: str | None = None) -> None:
    """Remove the saved model of a namespace, or each without one. The caller holds the write lock.

    Raises StoreUnavailable where it cannot be removed.
    """
    folder = _folder(connection)
    named = connection.execute(_SQL["saved_erase"], {"namespace": namespace}).rowcount
    if folder is None:
        return
    if named and isinstance(connection, Opened) and connection.file != file_number(_store(folder)):
        raise StoreUnavailable(
            f"{_store(folder)} was moved while this process has it open, with the saved models beside it, so nothing "
            "was changed; close this store, and open it where it is now."
        )
    files.erase_files(folder, _Register(connection, folder).names())


def disk_bytes(connection: sqlite3.Connection) -> int:
    """Return the bytes that the saved models of a store take."""
    folder = _folder(connection)
    return 0 if folder is None else files.bytes_of(_Register(connection, folder))


def _folder(connection: sqlite3.Connection) -> Path | None:
    """Return the folder of saved models, beside the file where links end; None for a database in memory."""
    place = connection.execute(_SQL["saved_place"]).fetchone()[0]
    return Path(f"{os.fsdecode(place)}-models") if place else None


def _store(folder: Path) -> Path:
    return Path(str(folder).removesuffix("-models"))


def _is_owners(folder: Path) -> bool:
    """Return whether its owner alone, who is this user, may write the store.

    Another user who forgets a memory could not remove its title from the folder.
    """
    status = _store(folder).stat()
    return status.st_uid == os.geteuid() and not status.st_mode & 0o022


def _name(connection: sqlite3.Connection, number: int) -> str | None:
    row = connection.execute(_SQL["saved_name"], {"number": number}).fetchone()
    return None if row is None else str(row[0])


def _path(connection: sqlite3.Connection, state: State) -> Path | None:
    """Return the file that the store names for the namespace of a state."""
    name = _name(connection, int(state.created))
    return None if name is None else files.path_of(_folder(connection), name)
