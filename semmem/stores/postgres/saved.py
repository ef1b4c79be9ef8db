"""Saved models of the embedded server: in the folder ``models`` beside its cluster, named in the table ``meta``.

A model is saved in three steps, and writers wait for none of them longer than for another writer:

1. ``begin`` makes a new file, empty, and records its name beside the former one, under the lock of the namespace's row.
   It yields the state of the namespace. One process of all saves at a time.
2. ``write`` writes the file, of that state or of a later one, without a lock of a row.
3. ``finish`` puts the new name in the place of the former one, under the lock of the row again, if the new one and its
   file still stand there and the namespace has the state in the file or one that follows from it.

Whoever erases holds the lock of the row and removes both names and both files (``erase``). So what was erased before
step 1 is in no state that is written. What was erased since leaves step 2 no file, or one without a name, which is gone
when it is closed; and step 3 nothing to put.

Nothing is saved of a server that a URL names. Whoever erases removes the file whatever the URL of its connection, since
the server says where its files are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import NamedTuple

import psycopg
from psycopg.types.json import Jsonb

from semmem.model.errors import StoreUnavailable
from semmem.stores.postgres.typed import Connection, TupleRow, only
from semmem.stores.resident import saved as files
from semmem.stores.resident.model import Model, State
from semmem.stores.sql_files import statements

__all__ = ["Begun", "alone", "begin", "disk_bytes", "erase", "finish", "key_of", "path_of", "shrink", "touch", "write"]

_SQL = statements("postgres")


class Begun(NamedTuple):
    """A file that is being written: its ``path``, and the ``state`` that its namespace had when it was begun."""

    namespace: str
    path: Path
    state: State


class _Register:
    """The names of saved models; ``namespace`` is the one that is saved."""

    def __init__(self, connection: Connection, folder: Path, namespace: str | None = None) -> None:
        self.folder = folder
        self._connection = connection
        self._namespace = namespace

    @property
    def own(self) -> str | None:
        return None if self._namespace is None else _name(self._connection, self._namespace)

    def names(self) -> set[str]:
        return _names(self._connection)

    def drop(self, name: str) -> None:
        self._connection.execute(_SQL["saved_drop"], {"name": name})


def key_of(namespace: str) -> str:
    """Return the key of ``meta`` under which the name of a namespace's saved model stands."""
    return f"saved {namespace}"


def path_of(place: TupleRow | None, recorded: object) -> Path | None:
    """Return the file that the store records for a namespace, in the folder that the row of ``saved_place`` tells."""
    return None if place is None else files.path_of(_beside(place), _finished(recorded))


def _finished(recorded: object) -> str | None:
    """Return the name of the whole file among what the store records: a name, or a former and a coming one."""
    if isinstance(recorded, list):
        recorded = recorded[0]
    return recorded if isinstance(recorded, str) else None


@contextmanager
def alone(connection: Connection) -> Iterator[bool]:
    """Lock out others who save, of all processes; yield False where somebody saves at this moment."""
    is_alone: bool = only(connection.execute(_SQL["saved_alone"]))[0]
    try:
        yield is_alone
    finally:
        if is_alone and not connection.closed:
            connection.execute(_SQL["saved_done"])


@contextmanager
def begin(connection: Connection, namespace: str) -> Iterator[Begun | None]:
    """Begin to save a namespace; yield None where its saved model is fresh or it cannot be saved.

    The caller is ``alone``, and its lock_timeout bounds how long a writer is waited for. What is not finished at the
    end is removed. Raises OSError, and psycopg.Error where a lock is not free in time.
    """
    if not _is_due(connection, namespace):
        yield None
        return
    _remove_left(connection)
    begun = None
    try:
        with connection.transaction():
            begun = _begun(connection, namespace)
        yield begun
    finally:
        if begun is not None:
            _end(connection, begun)


def _remove_left(connection: Connection) -> None:
    """Remove what killed processes left: here too, where one process after the other is killed before it finishes.

    Not in the transaction that locks a namespace: an eraser has that lock and waits for these names.
    """
    connection.execute(_SQL["saved_left"])
    folder = _folder(connection)
    if folder is not None and folder.is_dir():
        files.tidy(folder, _names(connection))


def _begun(connection: Connection, namespace: str) -> Begun | None:
    if (state := _owned(connection, namespace)) is None:
        return None
    folder = _folder(connection)
    if folder is None or folder.parent.stat().st_mode & 0o077 or not files.is_private(folder):
        return None
    path = files.claim(folder)
    value = Jsonb([_name(connection, namespace), path.name])
    connection.execute(_SQL["meta_set"], {"key": key_of(namespace), "value": value})
    return Begun(namespace, path, state)


def _end(connection: Connection, begun: Begun) -> None:
    """Remove what was begun and is not finished, also where the connection was lost meanwhile."""
    with suppress(psycopg.Error):
        if _name(connection, begun.namespace) == begun.path.name:
            return
    begun.path.unlink(missing_ok=True)
    with suppress(psycopg.Error):
        connection.execute(_SQL["saved_left"])


def write(connection: Connection, begun: Begun, model: Model, most: int, *, makes_room: bool) -> bool:
    """Write a model whose state is that of ``begun`` or a later one; see stores/resident/saved.py for the room.

    Returns False where there is no room. Raises OSError, also where somebody has erased since.
    """
    block = model.block
    register = _Register(connection, begun.path.parent, begun.namespace)
    if not makes_room and files.in_the_way(register, block.file_bytes, most):
        return False
    files.write(begun.path, model.state, block)
    return True


def finish(connection: Connection, begun: Begun, written: State, most: int) -> bool:
    """Record the file in which a model of the state ``written`` is, and let others give way for it.

    Returns whether it is saved: it is not where somebody has erased since. Raises OSError.
    """
    register = _Register(connection, begun.path.parent, begun.namespace)
    with connection.transaction():
        state = _owned(connection, begun.namespace)
        if state is None:
            return False
        before = written._replace(file=state.file)  # a table may have been written anew
        if state != before and not state.follows(before):
            return False
        where = {"key": key_of(begun.namespace), "name": begun.path.name}
        if not begun.path.exists() or not connection.execute(_SQL["saved_end"], where).rowcount:
            return False  # somebody who did not see its name yet may have removed the file
        for name in files.in_the_way(register, begun.path.stat().st_size, most):
            register.drop(name)
        files.tidy(register.folder, register.names())
    return True


def touch(connection: Connection, namespaces: Iterable[str]) -> None:
    """Note that some namespaces were asked, the last of them last, so that their saved models stay."""
    place = _place(connection)
    for namespace in namespaces:
        files.touch(path_of(place, _name(connection, namespace)))


def erase(connection: Connection, namespace: str | None = None) -> None:
    """Remove the saved model of a namespace, or each without one, in a transaction that holds the lock of its row.

    Names that came with a copy by another program, such as pg_dump, are forgotten: their files are not this store's.
    Raises StoreUnavailable where the saved model cannot be removed.
    """
    where = {"key": key_of(namespace or "")}
    recorded, dropped = ("saved_names", "saved_clear") if namespace is None else ("meta_get", "meta_drop")
    gone = connection.execute(_SQL[recorded], where).fetchone() is not None
    if not gone and not _is_near(connection):
        return
    if gone:  # on several nodes a statement that deletes nothing would still lock the names on all
        connection.execute(_SQL[dropped], where)
    if (folder := _folder(connection)) is not None:
        files.erase_files(folder, _names(connection))
    elif gone and only(connection.execute(_SQL["saved_here"]))[0]:
        raise StoreUnavailable(
            "The saved models of this store cannot be reached from here, or its data folder was moved while its server "
            "runs, so nothing was changed; stop that server with `semmem server stop`, and open the store with "
            "embedded:FOLDER."
        )


def shrink(connection: Connection, most: int) -> int:
    """Remove files that killed processes left, and let saved models go until they take at most ``most`` bytes.

    Returns how many of these went. Nothing is removed where somebody saves at this moment. Raises OSError.
    """
    with alone(connection) as is_alone, connection.transaction():
        folder = _folder(connection)
        if folder is None or not folder.is_dir() or not is_alone:
            return 0
        connection.execute(_SQL["saved_left"])
        return files.shrink(_Register(connection, folder), most)


def disk_bytes(connection: Connection, but: str | None = None) -> int:
    """Return the bytes that the saved models of a store take, but for that of one namespace."""
    if not _is_near(connection) or not _names(connection) or (folder := _folder(connection)) is None:
        return 0
    return files.bytes_of(_Register(connection, folder, but))


def _is_near(connection: Connection) -> bool:
    """Return whether the server runs on this machine and tells this user where its files are."""
    return connection.info.host.startswith("/") and _is_superuser(connection)


def _is_superuser(connection: Connection) -> bool:
    return connection.info.parameter_status("is_superuser") == "on"


def _place(connection: Connection) -> TupleRow | None:
    return connection.execute(_SQL["saved_place"]).fetchone() if _is_superuser(connection) else None


def _beside(place: TupleRow) -> Path:
    return Path(place[0]).parent / "models"


def _folder(connection: Connection) -> Path | None:
    """Return the folder of saved models of the server of a connection; None where it is not found here.

    The folder of the cluster may have been moved since the server started, and another one may stand in its place: so
    it must hold the file of this server's process.
    """
    if (place := _place(connection)) is None:
        return None
    try:
        here = (Path(place[0]) / "postmaster.pid").read_text(encoding="utf-8")
    except OSError:
        return None
    return _beside(place) if here.splitlines()[:3] == place[1].splitlines()[:3] else None


def _is_due(connection: Connection, namespace: str) -> bool:
    """Return whether a namespace is large enough to be saved, and what is saved of it is not fresh."""
    state = _state(connection, namespace)
    if state is None or state.memories < files.FEWEST:
        return False
    path = path_of(_place(connection), _name(connection, namespace))
    changes = partial(connection.execute, _SQL["resident_changes"])
    return not files.is_fresh(path, namespace, state, changes)


def _owned(connection: Connection, namespace: str) -> State | None:
    """Lock the row of a namespace, and return its state; None where it may not be saved.

    Raises psycopg.Error where the lock is not free in time.
    """
    if connection.execute(_SQL["saved_own"], {"namespace": namespace}).fetchone() is None:
        return None
    return _state(connection, namespace)


def _state(connection: Connection, namespace: str) -> State | None:
    row = connection.execute(_SQL["resident_state"], {"namespace": namespace}, binary=True).fetchone()
    return None if row is None else State(*row)


def _name(connection: Connection, namespace: str) -> str | None:
    row = connection.execute(_SQL["meta_get"], {"key": key_of(namespace)}).fetchone()
    return None if row is None else _finished(row[0])


def _names(connection: Connection) -> set[str]:
    return {name for (name,) in connection.execute(_SQL["saved_names"])}
