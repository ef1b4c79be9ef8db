"""The program: global options, and every command by name."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from semmem.interfaces.cli import (
    demo,
    doctor,
    exporting,
    graphing,
    importing,
    moving,
    probing,
    reaching,
    reading,
    rebuilding,
    server,
    settings,
    writing,
)
from semmem.interfaces.cli.door import Debug, Door, Json, Namespace, RecipeName, Url

__all__ = ["app", "run"]

app = typer.Typer(
    name="semmem",
    help="Memory for AI agents on PostgreSQL: remember, recall, and see why.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        from semmem import __version__

        sys.stdout.write(f"semmem {__version__}\n")
        raise typer.Exit


@app.callback()
def options(
    ctx: typer.Context,
    url: Url = None,
    namespace: Namespace = None,
    recipe: RecipeName = None,
    json: Json = False,
    debug: Debug = False,
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    """Take the options that may stand before any command."""
    ctx.obj = Door(url, namespace or "default", recipe, json=json, debug=debug, named=namespace is not None)


for part in (demo, writing, importing, exporting, reading, rebuilding, moving, graphing, reaching, probing, doctor):
    part.register(app)
app.add_typer(graphing.names, name="concepts")
app.add_typer(settings.names, name="settings")
app.add_typer(server.app, name="server")


def run(args: list[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    try:
        app(args)
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 1
    return 0
