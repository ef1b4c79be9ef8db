"""Saved models of the embedded server: in the folder ``models`` beside its cluster, named in the table ``meta``.

Whoever saves or erases one holds the lock of the namespace's row; see stores/resident/saved.py. Nothing is saved of a
server that a URL names. Whoever erases removes the file whatever the URL of its connection, since the server says where
its files are.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from pathlib import Path

from psycopg.types.json import Jsonb

from semmem.model.errors import StoreUnavailable
from semmem.stores.postgres.typed import Connection, TupleRow, only
from semmem.stores.resident import saved as files
from semmem.stores.resident.model import Model, State
from semmem.stores.sql_files import statements

__all__ = ["disk_bytes", "due", "erase", "key_of", "path_of", "save", "shrink", "touch"]

_SQL = statements("postgres")


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

    def record(self, name: str) -> None:
        self._connection.execute(_SQL["meta_set"], {"key": key_of(self._namespace or ""), "value": Jsonb(name)})

    def drop(self, name: str) -> None:
        self._connection.execute(_SQL["saved_drop"], {"name": name})


def key_of(namespace: str) -> str:
    """Return the key of ``meta`` under which the name of a namespace's saved model stands."""
    return f"saved {namespace}"


def path_of(place: TupleRow | None, name: object) -> Path | None:
    """Return the file of a name that the store records, where the row of ``saved_place`` says that its folder is."""
    return None if place is None or not isinstance(name, str) else files.path_of(_beside(place), name)


def due(connection: Connection, namespace: str) -> State | None:
    """Return the state of a namespace that is large enough to be saved, if what is saved of it is not fresh."""
    state = _state(connection, namespace)
    if state is None or state.dropping or state.memories < files.FEWEST:
        return None
    path = path_of(_place(connection), _name(connection, namespace))
    changes = partial(connection.execute, _SQL["resident_changes"])
    return None if files.is_fresh(path, namespace, state, changes) else state


def save(connection: Connection, model: Model, most: int, *, makes_room: bool) -> bool:
    """Save a model whose state is that of the store, in a transaction; see stores/resident/saved.py.

    Returns whether it is saved: it is not where somebody writes to the namespace, or saves, at this moment. Raises
    OSError.
    """
    where = {"namespace": model.namespace}
    if not only(connection.execute(_SQL["saved_alone"]))[0]:
        return False
    if connection.execute(_SQL["saved_own"], where).fetchone() is None:
        return False
    if _state(connection, model.namespace) != model.state:
        return False
    folder = _folder(connection)
    if folder is None or folder.parent.stat().st_mode & 0o077 or not files.is_private(folder):
        return False
    return files.save(_Register(connection, folder, model.namespace), model, most, makes_room=makes_room)


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
    name = None if namespace is None else _name(connection, namespace)
    gone = _names(connection) if namespace is None else {name} - {None}
    if not gone and not _is_near(connection):
        return
    if gone:
        statement = "saved_clear" if namespace is None else "meta_drop"
        connection.execute(_SQL[statement], {"key": key_of(namespace or "")})
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
    folder = _folder(connection)
    if folder is None or not folder.is_dir() or not only(connection.execute(_SQL["saved_alone"]))[0]:
        return 0
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


def _state(connection: Connection, namespace: str) -> State | None:
    row = connection.execute(_SQL["resident_state"], {"namespace": namespace}, binary=True).fetchone()
    return None if row is None else State(*row)


def _name(connection: Connection, namespace: str) -> str | None:
    row = connection.execute(_SQL["meta_get"], {"key": key_of(namespace)}).fetchone()
    return None if row is None else str(row[0])


def _names(connection: Connection) -> set[str]:
    return {name for (name,) in connection.execute(_SQL["saved_names"])}
