"""The command that derives anew what is derived from the texts: rebuild."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated

import typer

from semmem.doors import wire
from semmem.interfaces.cli.door import Door, command
from semmem.interfaces.cli.show import counted

if TYPE_CHECKING:
    from semmem.reports import Rebuilt

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add rebuild to the program."""
    command(app, "rebuild", "url")(rebuild)


def rebuild(
    door: Door,
    embedder: Annotated[
        str | None, typer.Option("--embedder", help="Make all vectors anew with this one: minilm or hashing.")
    ] = None,
    extract: Annotated[bool, typer.Option("--extract", help="Find the concepts of every memory anew instead.")] = False,
) -> None:
    """Make the vectors that are missing; with --embedder all of them by another model, with --extract the concepts.

    Others go on reading and writing. Interrupted, the same command goes on. Ends with the hash of each namespace's
    graph, which is the same whatever the order in which its memories came.
    """
    from semmem.errors import InvalidInput
    from semmem.interfaces.cli.progress import counting
    from semmem.reports import Rebuilt

    if extract and embedder is not None:
        raise InvalidInput("Give --embedder or --extract, one after the other: each can be interrupted by itself.")
    done = 0
    with door.connect() as mem:
        counts = mem.stats()
        total = counts.memories if extract or embedder is not None else None
        with counting(door, "extracting" if extract else "embedding", total) as show:

            def advance(count: int) -> None:
                nonlocal done
                done = count
                show(count)

            try:
                made = (
                    mem.rebuild(embedder=embedder, extract=extract, progress=advance) if counts.memories else Rebuilt()
                )
            except KeyboardInterrupt as error:
                door.say(f"Stopped. What was done so far ({done:,}) is kept: the same command goes on from there.")
                raise typer.Exit(wire.EXIT_INTERRUPTED) from error
        mem.maintain()
        spaces = mem.store.namespaces() if "graph" in mem.store.capabilities else ()
        hashes = {namespace: mem.graph_hash(namespace=namespace) for namespace in spaces}
        filler = mem.stats().embedder
    if made.dropped is not None:
        door.say(f"Began anew: the half-done rebuild by {made.dropped} was thrown away.")
    door.give(
        {**wire.plain(made), "embedder": filler, "graph_hashes": hashes},
        lambda: _show(door, made, hashes, filler, extract),
    )


def _show(door: Door, made: Rebuilt, hashes: Mapping[str, str], filler: str | None, extract: bool) -> None:
    if extract:
        line = f"Found the concepts anew: {counted(made.read, 'memory')} read, {made.changed:,} changed."
        before = f" {made.skipped:,} were read by a call that was interrupted." if made.skipped else ""
    else:
        line = f"Made {counted(made.embedded, 'vector')}{f' with {filler}' if filler else ''}."
        before = f" {made.kept:,} were made by a call that was interrupted." if made.kept else ""
    door.out.print(line + before)
    for namespace, found in sorted(hashes.items()):
        door.out.print(f"{found}  {namespace}", soft_wrap=True)
