"""The command `explore`: the page over one store, for the person who started it alone."""

from __future__ import annotations

import sys
import webbrowser
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated
from urllib.parse import quote

import typer

from semmem.interfaces.cli.context import CommandLine
from semmem.model.errors import InvalidInput

__all__ = ["explore"]


def explore(
    cli: CommandLine,
    port: Annotated[int, typer.Option(help="Port to listen at; 0 takes a free one.")] = 0,
    open_browser: Annotated[
        bool, typer.Option("--open/--no-open", help="Open the page in your browser, or only print its link.")
    ] = True,
    runs: Annotated[
        Path | None, typer.Option(help="Folder with runs of `python -m eval`, such as eval/runs, for Evaluation.")
    ] = None,
) -> None:
    """Open a page that shows the memories: recall, why and why not, other weights, the graph, edits.

    Only this machine can reach it, and only the browser that opened the link, which works once. Ctrl-C stops it.
    """
    from semmem.interfaces.http.keys import Key, Keys
    from semmem.interfaces.http.server import Server, need_extra
    from semmem.stores import is_server

    need_extra()
    from semmem.interfaces.http.runs import Runs

    found = None if runs is None else Runs(runs)
    with cli.connect(create=True) as mem:
        if is_server(where := cli.url or mem.settings.url):
            raise InvalidInput(f"That store is behind a server, which has the page: open {where} in a browser.")
        cli.storing = False
        owner = Key("explore", "explore", "", "admin", None, datetime.now(UTC).isoformat())
        server = Server(mem, port=port, keys=Keys(), owner=owner, runs=found)
        link = f"{server.url}/?token={server.sessions.invite()}#/recall?ns={quote(cli.namespace, safe='')}"
        cli.give({"url": link}, lambda: None)
        cli.say(f"The page is at {link}")
        cli.say("The link works once. Ctrl-C stops the page.")
        sys.stdout.flush()
        if open_browser:
            webbrowser.open(link)
        server.run()
    cli.say("Stopped.")
