"""The command `semmem mcp`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from semmem.interfaces.cli.context import CommandLine
from semmem.model.errors import InvalidInput, MissingExtra

if TYPE_CHECKING:
    from semmem.client.memory import Semmem

__all__ = ["mcp"]


def mcp(
    cli: CommandLine,
    http: Annotated[bool, typer.Option("--http", help="Serve at an address instead, over Streamable HTTP.")] = False,
    host: Annotated[str, typer.Option(help="With --http: address to listen at.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="With --http: port to listen at; 0 takes a free one.")] = 8766,
    allow_host: Annotated[
        list[str] | None, typer.Option(help="With --http: a name that clients may call it by (Host); repeatable.")
    ] = None,
    allow_origin: Annotated[
        list[str] | None, typer.Option(help="With --http: a web page that may use it; repeatable.")
    ] = None,
    keys: Annotated[Path | None, typer.Option(help="With --http: file of keys, as for `semmem serve`.")] = None,
    max_body: Annotated[int, typer.Option(help="With --http: most bytes of a request.")] = 16 * 2**20,
    rate: Annotated[
        float, typer.Option(help="With --http: requests per second of one key or address; 0: any number.")
    ] = 200.0,
    timeout: Annotated[
        float, typer.Option(help="With --http: seconds allowed for an answer, and for receiving a request.")
    ] = 60.0,
    threads: Annotated[int, typer.Option(help="With --http: calls that run at the same time; others wait.")] = 8,
    only_namespace: Annotated[
        bool, typer.Option("--only-namespace", help="Agents work in this namespace alone and cannot name another.")
    ] = False,
    reveal: Annotated[
        bool, typer.Option("--reveal", help="Show agents the texts of sensitive memories too; not with --http.")
    ] = False,
    tools: Annotated[
        str,
        typer.Option(
            help="Tools to offer: core (remember, recall, get, update, forget), all, or names with commas, such as "
            "recall,remember. Their descriptions are read by the model in every session."
        ),
    ] = "core",
    compat: Annotated[
        Literal["server-memory"] | None,
        typer.Option(
            help='Offer the tools of this other server instead of semmem\'s own, in the namespace "default" or the '
            "one of --namespace."
        ),
    ] = None,
    file: Annotated[
        Path | None,
        typer.Option("--import", help="With --compat: that server's file, imported if the namespace has no graph yet."),
    ] = None,
) -> None:
    """Serve MCP on standard input and output, for the client that started it; with --http, at an address.

    The namespace is that of the project: of the client's first root, else of the git repository of the working folder;
    --namespace sets another one. With --http the rules of `semmem serve` apply, so other machines need a key. Needs the
    extra mcp.
    """
    import importlib.util

    if importlib.util.find_spec("mcp_types") is None:
        raise MissingExtra("The MCP server needs the package mcp; install it with: pip install 'semmem[mcp]'")

    from semmem.interfaces.mcp.table import ALL, CORE, chosen

    settings = cli.settings()

    if reveal and (http or compat is not None):
        raise InvalidInput("--reveal works only for the client that started the server; leave out --http and --compat.")
    if file is not None and compat is None:
        raise InvalidInput("--import requires --compat server-memory; `semmem import` reads files of every format.")
    if file is not None and not file.is_file():
        raise InvalidInput(f"There is no file {file}; correct the path, or leave --import out.")

    def opened() -> Semmem:
        import semmem

        memory = semmem.connect(cli.url, recipe=cli.recipe)
        if file is not None:
            _import_items(cli, memory, file)
        begin(memory)
        return memory

    scope: dict[str, Any] = {
        "tools": chosen(tools.split(",")),
        "seldom": tools == ALL,
        "named": cli.namespace if cli.named else None,
        "personal": None if only_namespace else settings.personal_namespace or None,
        "only": only_namespace,
        "reveal": reveal,
    }
    if compat is not None:
        from semmem.interfaces.mcp.compat_server_memory import RESOURCES, TOOLS

        if tools != CORE:
            raise InvalidInput("--compat offers the tools of the other server; leave --tools out.")

        scope = {"named": cli.namespace, "personal": None, "tools": TOOLS, "resources": RESOURCES, "instructions": ""}
    from semmem.interfaces.coding_agents.listening import hooks_answered
    from semmem.interfaces.http.limits import Limits

    limits = Limits.chosen(max_body=max_body, rate=rate, timeout=timeout, threads=threads, shared=settings.shared_rate)
    with hooks_answered(cli.url, cli.recipe) as begin:
        if not http:
            from semmem.interfaces.mcp.stdio import run

            run(opened, **scope)
            return
        from semmem.interfaces.http.command import end_at_once, flush
        from semmem.interfaces.http.guard import Guard
        from semmem.interfaces.http.keys import Keys
        from semmem.interfaces.http.tokens import Tokens
        from semmem.interfaces.mcp.streamable_http import HttpServer

        guard = Guard.of(allow_host or (), allow_origin or ())
        tokens = Tokens.of(settings)
        if tokens is not None and (sentence := tokens.ask()):
            cli.say(f"Warning: {sentence}")
        server = HttpServer(
            opened,
            host=host,
            port=port,
            keys=Keys(keys),
            guard=guard,
            limits=limits,
            tokens=tokens,
            **scope,
        )
        cli.give({"url": server.url}, lambda: None)
        flush()
        cli.say(f"The MCP server answers at {server.url}. Ctrl-C stops it.")
        finished = server.run()
    if not finished:
        end_at_once(cli, "a call that was still running was interrupted.")
    cli.say("Stopped.")


def _import_items(cli: CommandLine, memory: Semmem, file: Path) -> None:
    """Store what the file of the reference memory server holds, once: what was deleted since does not come back."""
    from semmem.importers import reader
    from semmem.interfaces.mcp.knowledge_graph import stores_a_graph

    if stores_a_graph(memory, cli.namespace):
        return
    report = memory.import_items(
        reader("mcp")(file, reject=lambda row: cli.say(f"{row.where}: {row.reason}")),
        namespace=cli.namespace,
        batch_size=100_000,  # one transaction: what is broken off has stored nothing, and is done at the next start
    )
    for row in report.rejected:
        cli.say(f"Not stored: {row.reason}")
