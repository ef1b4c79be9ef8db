"""The commands of whole stores, such as `migrate`, `copy`, `backup` and `restore`."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import nullcontext, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar

import typer

from semmem.interfaces import wire
from semmem.interfaces.cli.context import CommandLine, command
from semmem.interfaces.cli.files import to_read, to_write
from semmem.interfaces.cli.progress import counting
from semmem.interfaces.cli.resting import interrupted_at_rest
from semmem.interfaces.cli.show import size
from semmem.interfaces.wire import is_foreseen, sentence
from semmem.model.errors import InvalidInput, StoreUnavailable
from semmem.model.reports import counted
from semmem.model.serialization import plain

if TYPE_CHECKING:
    from semmem.client.backup_series import Place
    from semmem.client.memory import Semmem
    from semmem.config import Settings
    from semmem.model.reports import (
        BackupReport,
        CopyReport,
        Distribution,
        DrillReport,
        MigrationReport,
        Rebuilt,
        RowSecurity,
    )
    from semmem.stores.embedded.server import EmbeddedServer, ServerStatus

__all__ = [
    "app",
    "backup",
    "copy",
    "distribute",
    "migrate",
    "rebuild",
    "restore",
    "row_security",
    "server_of",
    "stop_server",
]

T = TypeVar("T")


def _unopened(settings: Settings, work: Callable[..., T], **how: Any) -> T:
    """Return what ``work`` returns of the store of the settings, which nobody opens for it."""
    return work(
        settings.url,
        home=settings.home,
        idle_stop_s=settings.idle_stop_s,
        start_timeout_s=settings.start_timeout_s,
        **how,
    )


def migrate(
    cli: CommandLine,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only show the schema of the store and the migrations that would run.")
    ] = False,
    to: Annotated[
        int | None, typer.Option("--to", metavar="N", help="Stop at schema N; without it, at the newest.")
    ] = None,
) -> None:
    """Bring the schema of a store up to date, for servers that must not do it themselves (SEMMEM_MIGRATE=false).

    A store on PostgreSQL with memories is backed up first, as the setting backup_before_migration says; a SQLite
    file is migrated in one transaction, without a backup.
    """
    from semmem.stores import migrate_store

    settings = cli.settings()
    report = _unopened(
        settings,
        migrate_store,
        backup_before_migration=settings.backup_before_migration,
        to=to,
        dry_run=dry_run,
    )
    cli.give({**plain(report), "dry_run": dry_run}, lambda: _show_migration(cli, report, dry_run=dry_run))


def _show_migration(cli: CommandLine, report: MigrationReport, *, dry_run: bool) -> None:
    has = f"has schema {report.before}" if report.before else "has no tables of semmem yet"
    cli.out.print(f"The store {has}; this semmem needs {report.newest}.", soft_wrap=True)
    for name in report.migrations:
        cli.out.print(f"  {name}", soft_wrap=True)
    cli.out.print(f"{counted(len(report.migrations), 'migration')} {'would run' if dry_run else 'ran'}.")


def distribute(
    cli: CommandLine,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show the tables that would be distributed.")] = False,
) -> None:
    """Spread a store over the nodes of Citus, each namespace on one of them.

    Recalls go on; writers wait until all tables are distributed. An interrupted run leaves the store as it was, and the
    next one begins again. A store that is made in a database with Citus is distributed from the start.
    """
    from semmem.stores import distribute_store

    settings = cli.settings()
    report = _unopened(
        settings,
        distribute_store,
        dry_run=dry_run,
        progress=lambda table: cli.say(f"Distributing {table}"),
    )
    cli.give({**plain(report), "dry_run": dry_run}, lambda: _show_distribution(cli, report, dry_run=dry_run))


def _show_distribution(cli: CommandLine, report: Distribution, *, dry_run: bool) -> None:
    for name, place in report.tables.items() if dry_run else ():
        cli.out.print(f"{name:>18}  {place}")
    count = f"{counted(len(report.tables), 'table')} ({size(report.bytes)})"
    if dry_run and report.tables:
        cli.out.print(f"{count} would be distributed.")
    elif report.tables:
        cli.out.print(f"Distributed {count} over {', '.join(report.nodes)} in {report.seconds:.1f} s.", soft_wrap=True)
    else:
        cli.out.print(f"The store is distributed over {', '.join(report.nodes)}.", soft_wrap=True)


def row_security(
    cli: CommandLine,
    switch: Annotated[
        Literal["on", "off"] | None, typer.Argument(help="Without it, only show whether it is on.")
    ] = None,
) -> None:
    """Let PostgreSQL itself refuse the rows of namespaces that a key or token may not touch, as a second wall.

    Run it as the owner of the tables, and let servers connect as another user: the owner is not bound.
    """
    from semmem.stores import secure_rows

    settings = cli.settings()
    found = _unopened(
        settings,
        secure_rows,
        on=None if switch is None else switch == "on",
    )
    cli.give(plain(found), lambda: cli.out.print(_secured(found), soft_wrap=True))


def _secured(found: RowSecurity) -> str:
    if not found.tables:
        return "Row-level security is off."
    count = f"Row-level security is on for {counted(len(found.tables), 'table')}"
    lacks = f", and not for {', '.join(found.open)}" if found.open else ""
    binds = "is bound by it" if found.binds else "is not bound by it; let servers connect as a user without the tables"
    return f"{count}{lacks}. The user {found.user} {binds}."


def copy(
    cli: CommandLine,
    from_url: Annotated[str, typer.Argument(help="The store to read; it may be in use.")],
    to_url: Annotated[str, typer.Argument(help="An empty store, or an earlier copy of the same source.")],
) -> None:
    """Copy a whole store into another one, embedded or a server, and verify counts and hashes.

    After an interruption the same command continues; after a finished copy it sends the changes since.
    """
    import semmem

    with counting(cli, "copy", None, "rows") as advance:
        report = semmem.copy(from_url, to_url, progress=advance)
    cli.give(report, lambda: _show_copy(cli, report))


def backup(
    cli: CommandLine,
    place: Annotated[
        str,
        typer.Argument(help="The file to write, such as mine.semmem; or a folder or s3://BUCKET/PREFIX for a series."),
    ],
    force: Annotated[bool, typer.Option("--force", help="Overwrite a file of that name.")] = False,
    keep: Annotated[
        int | None,
        typer.Option(min=1, max=10_000, help="Of a series: how many backups of this store stay (default 7)."),
    ] = None,
    every: Annotated[
        float | None, typer.Option(metavar="HOURS", min=0.001, max=8_760, help="Go on, one each so many hours.")
    ] = None,
) -> None:
    """Write the whole store, as of one moment, into one file, while others read and write.

    In a folder, or in a bucket, the file gets a dated name, and of the earlier ones of this store the newest stay. The
    credentials and the endpoint of a bucket come from the environment (AWS_ACCESS_KEY_ID, AWS_ENDPOINT_URL and so on).
    Ctrl-C ends --every after the backup at work, a second one at once.
    """
    from semmem.client.backup_series import place_of

    series = place_of(place)
    if series is None:
        if keep is not None or every is not None:
            raise InvalidInput(f"There is no folder {place}; --keep and --every are for a folder or a bucket.")
        file = to_write(Path(place), force=force)
        with cli.connect(embedder="none") as mem, counting(cli, "backup", None, "rows") as advance:
            report = mem.backup(file, force=force, progress=advance)
        cli.give(report, lambda: _show_backup(cli, report, "Wrote"))
        return
    if force:
        raise InvalidInput("--force is for one file; in a series every backup has a name of its own.")
    again = False
    with interrupted_at_rest() if every is not None else nullcontext(time.sleep) as rest:
        while True:
            try:
                _add(cli, series, place, 7 if keep is None else keep)
            except Exception as error:
                if not (again and is_foreseen(error)):  # a full disk is foreseen, too
                    raise
                cli.say(f"{sentence(error)} The next try is in {every:g} hours.")
            if every is None:
                return
            again = True
            rest(every * 3_600)


def _add(cli: CommandLine, series: Place, place: str, keep: int) -> None:
    """Write one backup of a series; the store is not open between two."""
    from semmem.client.backup_series import add

    with cli.connect(embedder="none") as mem, counting(cli, "backup", None, "rows") as advance:
        step = add(mem, series, keep=keep, progress=advance)

    def show() -> None:
        _show_backup(cli, replace(step.backup, file=f"{place.rstrip('/')}/{step.name}"), "Wrote")
        for name in step.removed:
            cli.out.print(f"  removed {name}", soft_wrap=True)

    cli.give({**plain(step.backup), "file": step.name, "place": place, "removed": list(step.removed)}, show)


def restore(
    cli: CommandLine,
    place: Annotated[
        str,
        typer.Argument(help="A file that backup wrote; or a folder or s3://BUCKET/PREFIX, for its newest."),
    ],
    drill: Annotated[
        bool,
        typer.Option("--drill", help="Restore on trial, into a store that is removed again; yours stays as it is."),
    ] = False,
) -> None:
    """Fill an empty store with a backup: all of it, or nothing if the file is damaged.

    If several stores have backups in a folder, name the one to restore; --drill tries the newest of each.
    """
    from semmem.client.backup_series import chosen

    if drill and cli.url is not None:
        raise InvalidInput("--drill restores into a store of its own, which is removed again; leave --url out.")
    series = chosen(place, every=drill)
    files = [nullcontext(to_read(Path(place)))] if series is None else [series[0].fetched(name) for name in series[1]]
    for file in files:
        with file as path:
            _restore(cli, path, drill=drill)


def _restore(cli: CommandLine, file: Path, *, drill: bool) -> None:
    from semmem import transfer
    from semmem.client.backup_series import drill as try_out

    if drill:
        tried = try_out(file, cli.settings())
        cli.give(tried, lambda: _show_drill(cli, tried))
        return
    transfer.check(file)  # before a server is started, or a folder made, for one that is refused
    with cli.connect(embedder="none") as mem, counting(cli, "restore", None, "rows") as advance:
        report = mem.restore(file, progress=advance)
    cli.give(report, lambda: _show_backup(cli, report, "Restored"))


def _show_drill(cli: CommandLine, tried: DrillReport) -> None:
    cli.out.print(
        f"The backup {tried.file} can be restored: {counted(tried.memories, 'memory')} in "
        f"{counted(tried.namespaces, 'namespace')}, all hashes equal, in {tried.seconds:.1f} s.",
        soft_wrap=True,
    )


def _show_copy(cli: CommandLine, report: CopyReport) -> None:
    note = (
        f", {counted(report.found, 'row')} {'was' if report.found == 1 else 'were'} there already"
        if report.found
        else ""
    )
    index = ", with its vector index" if report.indexed else ""
    cli.out.print(
        f"Copied {counted(report.memories, 'memory')} ({counted(sum(report.tables.values()), 'row')}{note}) "
        f"in {report.seconds:.1f} s{index}; counts and hashes are the same."
    )
    for name, hashes in report.namespaces.items():
        cli.out.print(
            f"  {name}: {counted(hashes.memories, 'memory')}, {counted(hashes.vectors, 'vector')}", soft_wrap=True
        )
        cli.out.print(f"    content {hashes.content[:24]}  graph {hashes.graph[:24]}")
    if report.came or report.went:
        cli.say(
            f"Meanwhile {counted(report.came, 'memory')} came into the source and {report.went:,} were forgotten; run "
            "the same command again to bring the copy up to date."
        )


def _show_backup(cli: CommandLine, report: BackupReport, what: str) -> None:
    cli.out.print(
        f"{what} {counted(report.memories, 'memory')} ({counted(sum(report.tables.values()), 'row')}, "
        f"schema {report.schema}) "
        f"in {report.seconds:.1f} s; the file {report.file} has {size(report.bytes)}",
        soft_wrap=True,
    )


def rebuild(
    cli: CommandLine,
    embedder: Annotated[
        str | None,
        typer.Option("--embedder", help="Compute all vectors again with this embedder, such as all-mpnet-base-v2."),
    ] = None,
    extract: Annotated[
        bool, typer.Option("--extract", help="Extract the concepts of every memory again instead.")
    ] = False,
) -> None:
    """Compute missing vectors; with --embedder all vectors by another model, with --extract all concepts.

    Others can read and write meanwhile. After an interruption the same command continues. At the end it prints the
    hash of each namespace's graph, which does not depend on the order in which memories were stored.
    """
    from semmem.model.reports import Rebuilt

    if extract and embedder is not None:
        raise InvalidInput("Run --embedder and --extract one after the other, not together.")
    progress = 0
    with cli.connect() as mem:
        counts = mem.stats()
        total = counts.memories if extract or embedder is not None else None
        earlier = 0 if embedder is None else _staged(cli, mem, embedder)
        with counting(cli, "extracting" if extract else "embedding", total, earlier=earlier) as show:

            def advance(count: int) -> None:
                nonlocal progress
                progress = count
                show(count)

            try:
                report = (
                    mem.rebuild(embedder=embedder, extract=extract, progress=advance) if counts.memories else Rebuilt()
                )
            except KeyboardInterrupt as error:
                cli.say(f"Stopped. The work so far ({progress:,}) is stored; the same command continues from there.")
                raise typer.Exit(wire.EXIT_INTERRUPTED) from error
        mem.maintain()
        spaces = mem.store.namespaces() if "graph" in mem.store.capabilities else ()
        hashes = {namespace: mem.graph_hash(namespace=namespace) for namespace in spaces}
        filler = mem.stats().embedder
    if report.dropped is not None:
        cli.say(f"Started over: the unfinished rebuild with {report.dropped} was discarded.")
    cli.give(
        {**plain(report), "embedder": filler, "graph_hashes": hashes},
        lambda: _show(cli, report, hashes, filler, extract),
    )


def _staged(cli: CommandLine, mem: Semmem, embedder: str) -> int:
    """Return how many vectors an interrupted rebuild with ``embedder`` has made; say where another one's will go."""
    from semmem.embedders import check, known_as

    check(embedder)
    unfinished = {} if mem.store.vectors is None else mem.store.vectors.unfinished_rebuilds()
    name, count = unfinished.get("vectors", ("", 0))
    if not name or known_as(name) == known_as(embedder):
        return count
    cli.say(
        f"An unfinished rebuild with {name} has made {counted(count, 'vector')}; this one discards them at its start."
    )
    return 0


def _show(cli: CommandLine, report: Rebuilt, hashes: Mapping[str, str], filler: str | None, extract: bool) -> None:
    if extract:
        line = f"Found the concepts anew: {counted(report.read, 'memory')} read, {report.changed:,} changed."
        before = f" {report.skipped:,} were read by a call that was interrupted." if report.skipped else ""
    else:
        line = f"Made {counted(report.embedded, 'vector')}{f' with {filler}' if filler else ''}."
        before = f" {report.kept:,} were made by a call that was interrupted." if report.kept else ""
    cli.out.print(line + before)
    for namespace, digest in sorted(hashes.items()):
        cli.out.print(f"{digest}  {namespace}", soft_wrap=True)


app = typer.Typer(help="The embedded servers: look at them, stop them.", no_args_is_help=True)


def server_of(url: str | None) -> EmbeddedServer:
    """Return the embedded server that ``url`` names. Raises InvalidInput when it names another kind of store."""
    from semmem.config import Settings
    from semmem.stores import parse_url
    from semmem.stores.embedded.server import EmbeddedServer

    settings = Settings.load()
    target = parse_url(url or settings.url, home=settings.home)
    if target.kind != "embedded" or target.path is None:
        raise InvalidInput("This command works only on the embedded server; the URL names another store.")
    return EmbeddedServer(target.path, start_timeout_s=settings.start_timeout_s)


def stop_server(folder: Path) -> bool:
    """Stop the embedded server of ``folder``; False when none ran."""
    from semmem.config import Settings
    from semmem.stores.embedded.server import EmbeddedServer

    return EmbeddedServer(folder, start_timeout_s=Settings.load().start_timeout_s).stop()


def running() -> list[ServerStatus]:
    """Return the status of each embedded server of this user that runs, by folder."""
    from semmem.stores.embedded import noted
    from semmem.stores.embedded.server import EmbeddedServer

    states = []
    for folder in noted.folders():
        with suppress(StoreUnavailable):  # the folder belongs to another user by now
            states.append(EmbeddedServer(folder).status())
    return [state for state in states if state.running]


@command(app, "list")
def list_servers(cli: CommandLine) -> None:
    """List the embedded servers that run, whatever their folder. Starts nothing."""
    states = running()
    lines = [status_line(state) for state in states] or ["No embedded server runs."]
    cli.give(states, lambda: cli.out.print("\n".join(lines), markup=False, soft_wrap=True))


@command(app, "status", "url")
def status(cli: CommandLine) -> None:
    """Show whether the embedded server runs, where its data are, and who is connected. Starts nothing."""
    state = server_of(cli.url).status()
    cli.give(state, lambda: cli.out.print(status_line(state), soft_wrap=True))


@command(app, "stop", "url")
def stop(
    cli: CommandLine,
    mode: Annotated[
        Literal["smart", "fast", "immediate"],
        typer.Option(help="fast ends open transactions; smart waits for clients to leave."),
    ] = "fast",
    every: Annotated[bool, typer.Option("--all", help="Every server that `semmem server list` shows.")] = False,
) -> None:
    """Stop the embedded server, or all of them; the next command that needs one starts it again."""
    if every:
        from semmem.stores.embedded.server import EmbeddedServer

        if cli.url is not None:
            raise InvalidInput("--all stops every embedded server; leave --url out.")
        folders = [state.data for state in running() if EmbeddedServer(state.data).stop(mode)]
        value = {"stopped": bool(folders), "folders": [str(folder) for folder in folders]}
        lines = "".join(f"Stopped {folder}.\n" for folder in folders) or "None was running.\n"
        cli.give(value, lambda: cli.out.print(lines, end="", markup=False, soft_wrap=True))
        return
    stopped = server_of(cli.url).stop(mode)
    cli.give({"stopped": stopped}, lambda: cli.out.print("Stopped." if stopped else "The server was not running."))


def status_line(state: ServerStatus) -> str:
    """Return what a person wants to know of a server, in one line."""
    size = f"{state.size_bytes / 2**20:,.0f} MiB in {state.data}"
    if not state.running:
        return (
            f"Not running; {size}." if state.size_bytes else f"Not running, and nothing is stored in {state.data} yet."
        )
    clients = "" if state.connections is None else f", {state.connections} connected"
    return f"Running: PostgreSQL {state.version}, process {state.pid}{clients}, {size}."
