"""Moving whole stores: a copy into another store, a backup into one file, and back.

These are for PostgreSQL, embedded or a server of your own; memories go from and to other stores by export and import.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from semmem.config import Settings
from semmem.errors import InvalidInput
from semmem.reports import BackupReport, CopyReport, NamespaceHash
from semmem.stores import open_store
from semmem.stores.url import parse_url

__all__ = ["backup", "check", "copy", "hashes", "restore"]

Progress = Callable[[int], None] | None
_OTHER_WAY = (
    "{} is for stores on PostgreSQL (embedded: or postgresql://…); move memories from and to a SQLite store with "
    "`semmem export` and `semmem import`."
)


def copy(from_url: str, to_url: str, *, progress: Progress = None, **settings: Any) -> CopyReport:
    """Copy the store at ``from_url`` into the one at ``to_url``, which must be empty, and prove that it arrived whole.

    Memories with times and versions, vectors, graph, corrections, settings of namespaces: everything, bit for bit, as
    it was when the copy began; the source may be in use. Interrupted, the same call goes on. A finished copy that
    nobody has changed is brought up to date by the same call. ``progress`` is called with the number of rows done.

    Raises InvalidInput for a target that cannot be taken, StoreUnavailable when a server goes away, StoreError when
    what arrived differs.
    """
    from semmem.stores.postgres_copy import copy as copy_store

    chosen = Settings.load(**settings)
    for url in (from_url, to_url):
        if parse_url(url, home=chosen.home).kind == "sqlite":  # before a file of that name is made
            raise InvalidInput(_OTHER_WAY.format("copy"))
    source = _open(from_url, chosen)
    try:
        target = _open(to_url, chosen)
        try:
            return copy_store(source, target, progress=progress)
        finally:
            target.close()
    finally:
        source.close()


def backup(store: Any, file: str | os.PathLike[str], *, force: bool, progress: Progress) -> BackupReport:
    """Write all of ``store`` into one file; see semmem.stores.postgres_backup."""
    from semmem.stores.postgres_backup import backup as back_up

    postgres = _postgres(store, "backup")
    where = _path(file)
    try:
        return back_up(postgres, where, force=force, progress=progress)
    except OSError as error:
        raise InvalidInput(f"The backup cannot be written to {where}: {error.strerror or error}.") from error


def restore(store: Any, file: str | os.PathLike[str], *, progress: Progress) -> BackupReport:
    """Fill an empty store from a backup; see semmem.stores.postgres_backup."""
    from semmem.stores.postgres_backup import restore as restore_store

    return restore_store(_postgres(store, "restore"), _path(file), progress=progress)


def check(file: str | os.PathLike[str]) -> None:
    """Raise InvalidInput or SchemaTooNew, before any store is opened, for a file that ``restore`` would refuse."""
    from semmem.stores import postgres_backup

    postgres_backup.check(_path(file))


def hashes(store: Any, namespace: str | None) -> Mapping[str, NamespaceHash]:
    """Return counts and hashes of a namespace, or of all of them, in one moment of the store."""
    from semmem.stores import postgres_tables

    with _postgres(store, "stats --verify").lasting() as connection, postgres_tables.snapshot(connection):
        return postgres_tables.hashes(connection, namespace)


def _open(url: str, chosen: Settings) -> Any:
    return open_store(
        url,
        home=chosen.home,
        pool_size=2,
        idle_stop_s=chosen.idle_stop_s,
        start_timeout_s=chosen.start_timeout_s,
        backup_before_migration=chosen.backup_before_migration,
    )


def _postgres(store: Any, what: str) -> Any:
    """Return ``store`` if it is on PostgreSQL. Raises InvalidInput that names the other way."""
    if hasattr(store, "lasting"):
        return store
    raise InvalidInput(_OTHER_WAY.format(what))


def _path(file: str | os.PathLike[str]) -> Path:
    if not isinstance(file, str | os.PathLike) or not os.fspath(file):
        raise InvalidInput("file must be the path of a backup.")
    return Path(file).expanduser().absolute()
