"""Stores by URL. Only the one that is asked for is imported."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from semmem.errors import InvalidInput

__all__ = ["open_store"]


def open_store(
    url: str | None,
    *,
    home: Path | None = None,
    pool_size: int = 8,
    idle_stop_s: float = 3600.0,
    start_timeout_s: float = 120.0,
) -> Any:
    """Return an open store with its schema up to date.

    Raises InvalidInput for a URL that names none, StoreUnavailable when its server cannot be reached or started.
    """
    from semmem.stores.url import parse_url

    target = parse_url(url, home=home)
    if target.kind == "sqlite":
        raise InvalidInput("This version stores in PostgreSQL only; use embedded: or postgresql://….")
    from semmem.stores.postgres import PostgresStore

    if target.kind == "embedded":
        from semmem.stores.embedded import EmbeddedServer

        assert target.path is not None
        server = EmbeddedServer(target.path, idle_stop_s=idle_stop_s, start_timeout_s=start_timeout_s)
        return PostgresStore(url or "embedded:", server.ensure_running, pool_size=pool_size)
    dsn = target.dsn or ""
    return PostgresStore(url or "", lambda: dsn, pool_size=pool_size)
