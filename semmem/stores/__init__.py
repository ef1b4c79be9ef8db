"""Stores by URL. Only the one that is asked for is imported."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

__all__ = ["open_store"]


def open_store(
    url: str | None,
    *,
    home: Path | None = None,
    pool_size: int = 8,
    idle_stop_s: float = 3600.0,
    start_timeout_s: float = 120.0,
    backup_before_migration: bool = True,
) -> Any:
    """Return an open store with its schema up to date.

    A store of an older schema that holds memories is backed up before it is migrated: an embedded one into the folder
    ``backups`` beside its data, one on a server into ``backups`` in ``home``, or in the user's data folder.

    Raises InvalidInput for a URL that names none, StoreUnavailable when its server cannot be reached or started.
    """
    from semmem import files
    from semmem.stores.url import parse_url

    target = parse_url(url, home=home)
    if target.kind == "sqlite":
        from semmem.stores.sqlite import SqliteStore

        return SqliteStore(url or "sqlite:", target.path, pool_size=pool_size)
    from semmem.stores.postgres import PostgresStore

    if target.kind == "embedded":
        from semmem.stores.embedded import EmbeddedServer

        assert target.path is not None
        server = EmbeddedServer(target.path, idle_stop_s=idle_stop_s, start_timeout_s=start_timeout_s)
        before = _backup((target.path / "backups").absolute, one_store=True) if backup_before_migration else None
        return PostgresStore(
            url or "embedded:",
            server.ensure_running,
            pool_size=pool_size,
            start_timeout_s=start_timeout_s,
            before_migration=before,
        )
    dsn = target.dsn or ""

    def place() -> Path:  # asked when it is needed: a user without a home folder may have a server
        return (files.data() if home is None else files.expanded(home)).absolute() / "backups"

    before = _backup(place, one_store=False) if backup_before_migration else None
    return PostgresStore(url or "", dsn, pool_size=pool_size, start_timeout_s=start_timeout_s, before_migration=before)


def _backup(place: Callable[[], Path], *, one_store: bool) -> Callable[[Any, int, int], None]:
    def before(connection: Any, number: int, newest: int) -> None:
        from semmem.stores.postgres_backup import before_migration

        before_migration(place(), one_store=one_store)(connection, number, newest)

    return before
