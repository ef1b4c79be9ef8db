"""The commands `server status` and `server stop`: the embedded PostgreSQL of a data folder."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from semmem.interfaces.cli.door import Door, command

if TYPE_CHECKING:
    from semmem.stores.embedded import EmbeddedServer, ServerStatus

__all__ = ["app", "server_of", "stop_server"]

app = typer.Typer(help="The embedded server: look at it, stop it.", no_args_is_help=True)


class Mode(StrEnum):
    """How a server stops, as PostgreSQL names it."""

    smart = "smart"
    fast = "fast"
    immediate = "immediate"


def server_of(url: str | None) -> EmbeddedServer:
    """Return the embedded server that ``url`` names. Raises InvalidInput when it names another kind of store."""
    from semmem.config import Settings
    from semmem.errors import InvalidInput
    from semmem.stores.embedded import EmbeddedServer
    from semmem.stores.url import parse_url

    settings = Settings.load()
    target = parse_url(url or settings.url, home=settings.home)
    if target.kind != "embedded" or target.path is None:
        raise InvalidInput("Only the embedded server can be looked at or stopped here; this URL names another store.")
    return EmbeddedServer(target.path, start_timeout_s=settings.start_timeout_s)


def stop_server(folder: Path) -> bool:
    """Stop the embedded server of ``folder``; False when none ran."""
    from semmem.config import Settings
    from semmem.stores.embedded import EmbeddedServer

    return EmbeddedServer(folder, start_timeout_s=Settings.load().start_timeout_s).stop()


def status(door: Door) -> None:
    """Say whether the embedded server runs, where its data are, and who is connected. Starts nothing."""
    found = server_of(door.url).status()
    door.give(found, lambda: door.out.print(status_line(found), soft_wrap=True))


def stop(
    door: Door,
    mode: Annotated[
        Mode, typer.Option(help="fast ends open transactions; smart waits for clients to leave.")
    ] = Mode.fast,
) -> None:
    """Stop the embedded server; the next command that needs it starts it again."""
    stopped = server_of(door.url).stop(mode.value)
    door.give({"stopped": stopped}, lambda: door.out.print("Stopped." if stopped else "It was not running."))


def status_line(found: ServerStatus) -> str:
    """Return what a person wants to know of a server, in one line."""
    size = f"{found.size_bytes / 2**20:,.0f} MiB in {found.data}"
    if not found.running:
        return (
            f"Not running; {size}." if found.size_bytes else f"Not running, and nothing is stored in {found.data} yet."
        )
    clients = "" if found.connections is None else f", {found.connections} connected"
    return f"Running: PostgreSQL {found.version}, process {found.pid}{clients}, {size}."


command(app, "status", "url")(status)
command(app, "stop", "url")(stop)
