"""The command `sync`: a folder of notes and the memories of it, kept equal."""

from __future__ import annotations

import time
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated, Any

import typer

from semmem.interfaces.cli.context import CommandLine
from semmem.interfaces.cli.resting import interrupted_at_rest
from semmem.interfaces.wire import sentence
from semmem.model.errors import InvalidInput, SemmemError
from semmem.text.control_characters import one_line

__all__ = ["sync"]


def sync(
    cli: CommandLine,
    folder: Annotated[Path, typer.Argument(help="The folder of Markdown notes.")],
    watch: Annotated[bool, typer.Option("--watch", help="Go on until interrupted, and follow each change.")] = False,
    write: Annotated[
        bool, typer.Option("--write", help="Write texts that were edited in the store into notes.")
    ] = False,
    every: Annotated[float, typer.Option(help="Seconds between two looks of --watch.", min=0.1, max=3600)] = 2.0,
) -> None:
    """Make the memories of a folder of notes equal to the notes: new, changed and deleted ones.

    As `semmem import markdown FOLDER --prune`, again and again with --watch. A memory that was edited in the store
    stays as it is; with --write its text goes into its note, unless the note has changed too. No note is made or
    deleted. Ctrl-C ends --watch after the round at work, a second one at once.
    """
    from semmem.client.folder_sync import changes, sync_once

    if not folder.is_dir():
        raise InvalidInput(f"There is no folder {folder}.")
    told: tuple[str, ...] | None = None
    with cli.connect(create=True) as mem, interrupted_at_rest() if watch else nullcontext(time.sleep) as rest:
        for _ in changes(mem, folder, namespace=cli.namespace, write=write, every=every, rest=rest):
            try:
                told = _give(cli, folder, sync_once(mem, folder, namespace=cli.namespace, write=write), told)
            except SemmemError as error:  # a server that is gone for a while, a folder that is empty for a moment
                if told is None:
                    raise
                told = _say(cli, [sentence(error)], told)
            if not watch:
                return


def _give(cli: CommandLine, folder: Path, done: dict[str, Any], told: tuple[str, ...] | None) -> tuple[str, ...]:
    """Print what a round did, if it did anything or is the first; say what it could not do, and return that."""
    parts = [f"{done[name]:,} {word}" for name, word in _WORDS.items() if done[name]]
    line = f"{folder}: {', '.join(parts) or 'no note'}."
    if told is None or any(done[name] for name in ("remembered", "replaced", "forgotten", "written")):
        cli.give(done, lambda: cli.out.print(line, markup=False, soft_wrap=True))
    return _say(cli, done["bad"], told or ())


_WORDS = {
    "remembered": "new", "replaced": "changed", "forgotten": "forgotten", "written": "written back",
    "unchanged": "unchanged",
}  # fmt: skip


def _say(cli: CommandLine, sentences: list[str], told: tuple[str, ...]) -> tuple[str, ...]:
    """Say the sentences that were not told the last time; return all."""
    for one in sentences:
        if one not in told:
            cli.say(one_line(one))
    return tuple(sentences)
