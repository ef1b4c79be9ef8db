"""The commands about whole namespaces: `namespaces` and its group, and `changes`, for those who keep a copy."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from semmem.interfaces.cli.context import CommandLine, alone, command, not_empty
from semmem.interfaces.cli.show import new_table, styled
from semmem.model.reports import counted, no_memories

if TYPE_CHECKING:
    from semmem.client.memory import Semmem
    from semmem.model.history import Changes
    from semmem.model.reports import Limits, Namespace

__all__ = ["changes", "names"]

_EVERY_S = 1.0

names = typer.Typer(add_completion=False)
"""The group of commands under ``semmem namespaces``."""

Name = Annotated[str, typer.Argument(callback=not_empty, help="The namespace.")]


Other = Annotated[str, typer.Argument(callback=not_empty, help="The new name; that namespace must be empty.")]


@alone(names, "url")
def namespaces(cli: CommandLine) -> None:
    """List the namespaces of a store: how many memories each holds, and the time of the latest one."""
    with cli.connect() as mem:
        rows = mem.namespaces()
    cli.give({"namespaces": rows}, lambda: _show_namespaces(cli, rows))


@command(names, "rename", "url")
def rename(cli: CommandLine, old: Name, new: Other) -> None:
    """Rename a namespace with all its memories. Writes to it wait meanwhile, and are refused after ten seconds."""
    with cli.connect() as mem:
        count = mem.rename_namespace(old, new)
    line = f"The namespace {old} is {new} now, with {counted(count, 'memory')}."
    cli.give({"old": old, "new": new, "memories": count}, lambda: cli.out.print(line, soft_wrap=True))


@command(names, "copy", "url")
def copy(cli: CommandLine, old: Name, new: Other) -> None:
    """Copy a namespace with all its memories to another name."""
    with cli.connect() as mem:
        count = mem.copy_namespace(old, new)
    line = f"Copied {counted(count, 'memory')} of the namespace {old} to {new}."
    cli.give({"old": old, "new": new, "memories": count}, lambda: cli.out.print(line, soft_wrap=True))


@command(names, "drop", "url")
def drop(
    cli: CommandLine,
    name: Name,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Drop it; without this, only count.")] = False,
) -> None:
    """Forget a whole namespace for good. Without --yes it only counts; `maintain` finishes an interrupted drop."""
    with cli.connect() as mem:
        count = mem.drop_namespace(name, dry_run=not yes)
    if not count:
        raise no_memories(name)
    what = f"the namespace {name} with {counted(count, 'memory')}"
    line = f"Dropped {what}." if yes else f"Would drop {what}; do it with --yes."
    cli.give({"memories": count, "dry_run": not yes}, lambda: cli.out.print(line, soft_wrap=True))


@command(names, "limit", "url")
def limit(
    cli: CommandLine,
    name: Name,
    keep_days: Annotated[
        float | None, typer.Option(help="Days that a memory stays after its last change; 0: for ever.")
    ] = None,
    most_memories: Annotated[int | None, typer.Option(help="How many memories it may hold; 0: any number.")] = None,
    most_bytes: Annotated[
        int | None, typer.Option(help="How many bytes of texts and titles it may hold; 0: any number.")
    ] = None,
) -> None:
    """Change the given limits of a namespace, and show all of them.

    A write that would exceed a limit stores nothing. `semmem maintain` forgets memories past --keep-days for good.
    """
    with cli.connect(create=True) as mem:
        limits = mem.namespace_limits(name, keep_days=keep_days, most_memories=most_memories, most_bytes=most_bytes)
    cli.give(limits, lambda: cli.out.print(_limits_line(name, limits), soft_wrap=True))


def changes(
    cli: CommandLine,
    namespace: Annotated[
        list[str] | None,
        typer.Option("--namespace", "-n", callback=not_empty, help="Where to look; give it again for more than one."),
    ] = None,
    since: Annotated[
        str | None, typer.Option(help="The cursor of the previous call; now: print only a cursor to start from.")
    ] = None,
    limit: Annotated[int, typer.Option("--limit", "-k", help="How many changes at most.")] = 1000,
    follow: Annotated[bool, typer.Option("--follow", help="Wait for new changes until Ctrl-C.")] = False,
) -> None:
    """Print the change log in order (written, updated, forgotten, linked), and the cursor for the next call.

    To keep a copy up to date: take a cursor with --since now, export, and ask for the changes since that cursor. With
    --follow and --json each line holds the changes of one poll and the next cursor.
    """
    spaces = namespace or [cli.namespace]
    with cli.connect() as mem:
        for page in _looks(mem, since, spaces, limit, follow):
            cli.give(page.as_dict(), partial(_show_changes, cli, page, len(spaces) > 1))
            if not (follow or cli.json):
                cli.say(f"Cursor: {page.cursor}")


def _looks(mem: Semmem, since: str | None, spaces: Sequence[str], limit: int, follow: bool) -> Iterator[Changes]:
    """Yield the changes since a cursor; with ``follow`` again and again, where there are any."""
    while True:
        page = mem.changes(since, namespace=spaces, limit=limit)
        if len(page) or not follow or page.cursor != since:
            yield page
        if not follow:
            return
        if not len(page):
            time.sleep(_EVERY_S)
        since = page.cursor


def _show_changes(cli: CommandLine, page: Changes, several: bool) -> None:
    for one in page:
        where = f"{one.namespace}  " if several else ""
        what = one.id if one.id is not None else f"all of {one.namespace}"
        types = f"  ({', '.join(one.types)})" if one.types else ""
        cli.out.print(f"{one.at:%Y-%m-%d %H:%M:%S}  {where}{one.kind:<9}  {what}{types}", soft_wrap=True)


def _limits_line(name: str, limits: Limits) -> str:
    days = "for ever" if limits.keep_days is None else f"{limits.keep_days:g} days after their last change"
    count = (
        "any number of memories"
        if limits.most_memories is None
        else f"at most {counted(limits.most_memories, 'memory')}"
    )
    size = (
        "any number of bytes" if limits.most_bytes is None else f"at most {counted(limits.most_bytes, 'byte')} of texts"
    )
    return f"The namespace {name} keeps memories {days} and may hold {count}, {size}."


def _show_namespaces(cli: CommandLine, rows: Sequence[Namespace]) -> None:
    if not rows:
        cli.out.print("The store holds no memories.")
        return
    table = new_table()
    table.add_column("namespace")
    table.add_column("memories", justify="right")
    table.add_column("latest memory", style="dim")
    for one in rows:
        name = one.name if one.state is None else f"{one.name} ({one.state})"
        table.add_row(*map(styled, (name, f"{one.memories:,}", f"{one.updated_at:%Y-%m-%d %H:%M}")))
    cli.out.print(table)
