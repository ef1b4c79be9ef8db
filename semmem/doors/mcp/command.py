"""The command `semmem mcp`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from semmem.doors.cli.context import Door, command

if TYPE_CHECKING:
    from semmem.client.memory import Semmem

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add `mcp` to the program."""
    command(app, "mcp", "url", "namespace", "recipe")(mcp)


def mcp(
    door: Door,
    http: Annotated[bool, typer.Option("--http", help="Serve at an address instead, over Streamable HTTP.")] = False,
    host: Annotated[str, typer.Option(help="With --http: address to listen at.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="With --http: port to listen at; 0 takes a free one.")] = 8766,
    allow_host: Annotated[
        list[str] | None, typer.Option(help="With --http: a name of this server, as clients write it; repeatable.")
    ] = None,
    allow_origin: Annotated[
        list[str] | None, typer.Option(help="With --http: a web page that may use it; repeatable.")
    ] = None,
    keys: Annotated[Path | None, typer.Option(help="With --http: file of keys, as for `semmem serve`.")] = None,
) -> None:
    """Serve MCP on standard input and output, for the client that started it; with --http, at an address.

    The namespace is the project's: of the client's roots, or of the git repository of the working folder; --namespace
    fixes another one. At an address, the rules are those of `semmem serve`: other machines need a key. Needs:
    pip install 'semmem[mcp]'
    """
    import importlib.util

    from semmem.config import Settings
    from semmem.model.errors import MissingExtra

    if importlib.util.find_spec("mcp_types") is None:
        raise MissingExtra("The MCP server needs the package mcp; install it with: pip install 'semmem[mcp]'")

    settings = Settings.load(**({} if door.url is None else {"url": door.url}))

    def opened() -> Semmem:
        import semmem

        return semmem.connect(door.url, recipe=door.recipe)

    scope: dict[str, Any] = {
        "named": door.namespace if door.named else None,
        "personal": settings.personal_namespace or None,
    }
    if not http:
        from semmem.doors.mcp.stdio import run

        run(opened, **scope)
        return
    from semmem.doors.http.guard import Guard
    from semmem.doors.http.keys import Keys
    from semmem.doors.mcp.streamable_http import HttpServer

    guard = Guard.of(allow_host or (), allow_origin or ())
    server = HttpServer(opened, host=host, port=port, keys=Keys(keys), guard=guard, **scope)
    door.give({"url": server.url}, lambda: None)
    sys.stdout.flush()
    door.say(f"The MCP server answers at {server.url}. Ctrl-C stops it.")
    server.run()
    door.say("Stopped.")
