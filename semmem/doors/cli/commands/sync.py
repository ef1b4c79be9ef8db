"""The command `sync`: a folder of notes and the memories of it, kept equal."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from semmem.doors.cli.context import Door
from semmem.model.errors import InvalidInput, SemmemError

if TYPE_CHECKING:
    from semmem.client.memory import Semmem

__all__ = ["sync"]


def sync(
    door: Door,
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
    deleted.
    """
    from semmem.doors.wire import sentence

    if not folder.is_dir():
        raise InvalidInput(f"There is no folder {folder}.")
    told: tuple[str, ...] | None = None
    with door.connect(create=True) as mem:
        for _ in _changes(door, mem, folder, write, every):
            try:
                told = _give(door, folder, _round(door, mem, folder, write), told)
            except SemmemError as error:  # a server that is gone for a while, a folder that is empty for a moment
                if told is None:
                    raise
                told = _say(door, [sentence(error)], told)
            if not watch:
                return


def _round(door: Door, mem: Semmem, folder: Path, write: bool) -> dict[str, Any]:
    """Sync once; return what was done, and what could not be."""
    from semmem.doors.pages import every_memory
    from semmem.importers import BadRow, owned, told_apart
    from semmem.importers.markdown import read
    from semmem.importers.note_edits import write_back

    apart = told_apart("markdown", folder, mem, door.namespace)
    own = owned("markdown", folder, **apart)
    if not own:
        raise InvalidInput(
            f"Most of these notes were imported from another folder of this name; if that was {folder}, moved, run "
            f"semmem import markdown {folder} --moved first."
        )
    bad: list[BadRow] = []
    seen = _state(folder)
    notes = {str(note["id"]): note for note in read(folder, reject=bad.append, **apart)}
    written: set[str] = set()
    if write:
        stored = every_memory(mem, namespace=door.namespace, filters=own[0])
        written, left = write_back(folder, stored, notes, seen)
        bad += left
        if written:
            again = read(folder, reject=lambda row: None, **apart)
            notes = {str(note["id"]): note for note in again}
            mem.bring_in(
                (notes[id] for id in sorted(written & notes.keys())), namespace=door.namespace, owned=own, replace=True,
                overwrite=True,
            )  # fmt: skip
    rows = list(notes.values())
    keep = {row.id for row in bad if row.id}
    report = mem.bring_in(rows, namespace=door.namespace, owned=own, replace=True, prune=True, keep=keep)
    bad += [BadRow(rows[row.position].where, row.reason) for row in report.rejected]
    return {
        "remembered": report.remembered, "replaced": report.replaced, "forgotten": report.pruned,
        "written": len(written), "unchanged": report.unchanged, "bad": [f"{row.where}: {row.reason}" for row in bad],
    }  # fmt: skip


def _changes(door: Door, mem: Semmem, folder: Path, write: bool, every: float) -> Iterator[None]:
    """Yield at once, and when the notes have changed and are quiet again, or with ``write`` the store has changed."""
    before = _state(folder)
    cursor = mem.changes("now", namespace=door.namespace).cursor if write else None
    yield
    while True:
        time.sleep(every)
        now = _state(folder)
        changed = now != before
        while changed and now != (before := _later(folder, every)):  # somebody is still writing
            now = before
        if cursor is not None:
            try:
                found = mem.changes(cursor, namespace=door.namespace)
                changed, cursor = changed or bool(found.items), found.cursor
            except SemmemError:  # the round says so
                changed = True
        if changed:
            yield


def _later(folder: Path, every: float) -> dict[str, tuple[int, int]]:
    time.sleep(every)
    return _state(folder)


def _state(folder: Path) -> dict[str, tuple[int, int]]:
    """Return when each note was changed last, and its size."""
    from contextlib import suppress

    from semmem.importers.markdown import walked

    state = {}
    for name, path in walked(folder, (".md",), lambda row: None):
        with suppress(OSError):  # it has just gone
            status = path.stat()
            state[name] = (status.st_mtime_ns, status.st_size)
    return state


def _give(door: Door, folder: Path, done: dict[str, Any], told: tuple[str, ...] | None) -> tuple[str, ...]:
    """Print what a round did, if it did anything or is the first; say what it could not do, and return that."""
    parts = [f"{done[name]:,} {word}" for name, word in _WORDS.items() if done[name]]
    line = f"{folder}: {', '.join(parts) or 'no note'}."
    if told is None or any(done[name] for name in ("remembered", "replaced", "forgotten", "written")):
        door.give(done, lambda: door.out.print(line, markup=False, soft_wrap=True))
    return _say(door, done["bad"], told or ())


_WORDS = {
    "remembered": "new", "replaced": "changed", "forgotten": "forgotten", "written": "written back",
    "unchanged": "unchanged",
}  # fmt: skip


def _say(door: Door, sentences: list[str], told: tuple[str, ...]) -> tuple[str, ...]:
    """Say the sentences that were not told the last time; return all."""
    for one in sentences:
        if one not in told:
            door.say(one)
    return tuple(sentences)
