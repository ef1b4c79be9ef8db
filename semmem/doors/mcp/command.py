"""The command `semmem mcp`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from semmem.doors.cli.context import Door, command

if TYPE_CHECKING:
    from semmem.client.memory import Semmem

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add `mcp` to the program."""
    command(app, "mcp", "url", "namespace", "recipe")(mcp)


def mcp(door: Door) -> None:
    """Serve MCP on standard input and output, for the client that started it.

    The namespace is the project's: of the client's roots, or of the git repository of the working folder; --namespace
    fixes another one. Needs: pip install 'semmem[mcp]'
    """
    import importlib.util

    from semmem.config import Settings
    from semmem.model.errors import MissingExtra

    if importlib.util.find_spec("mcp_types") is None:
        raise MissingExtra("The MCP server needs the package mcp; install it with: pip install 'semmem[mcp]'")

    from semmem.doors.mcp.stdio import run

    settings = Settings.load(**({} if door.url is None else {"url": door.url}))

    def opened() -> Semmem:
        import semmem

        return semmem.connect(door.url, recipe=door.recipe)

    run(opened, named=door.namespace if door.named else None, personal=settings.personal_namespace or None)
