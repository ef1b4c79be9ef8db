"""A folder of notes and the memories of it, kept equal."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from semmem.client.memory import Semmem
from semmem.client.pages import every_memory
from semmem.importers import BadRow, owned, told_apart
from semmem.importers.markdown import note_paths, read
from semmem.importers.note_edits import write_back
from semmem.model.errors import InvalidInput, SemmemError
from semmem.model.imported_items import Item
from semmem.write.screening import redacted_note

__all__ = ["changes", "sync_once"]


def sync_once(mem: Semmem, folder: Path, *, namespace: str, write: bool) -> dict[str, Any]:
    """Make the memories equal to the notes, once; return how many were what, and what could not be done.

    With ``write`` a text that was edited in the store goes into its note first. Raises InvalidInput where most of the
    notes are another folder's.
    """
    apart = told_apart("markdown", folder, mem, namespace)
    own = owned("markdown", folder, **apart)
    if not own:
        raise InvalidInput(
            f"Most of these notes were imported from another folder of this name; if that was {folder}, moved, run "
            f"semmem import markdown {folder} --moved first."
        )
    bad: list[BadRow] = []
    rows: list[Item] = []
    keep: set[str] = set()

    def reject(row: BadRow) -> None:
        bad.append(row)
        keep.update([row.id] if row.id else [])

    def notes() -> Iterator[Item]:
        """Yield the notes as they are once the import has begun, so that it prunes none that came later."""
        rows.extend({str(note["id"]): note for note in read(folder, reject=reject, **apart)}.values())
        yield from rows

    written = _written_back(mem, folder, namespace, own, apart, reject) if write else set[str]()
    report = mem.import_items(notes(), namespace=namespace, owned=own, replace=True, prune=True, keep=keep)
    unchanged = report.unchanged - len(written & {str(note["id"]) for note in rows})
    bad += [BadRow(rows[row.position].where, row.reason) for row in report.rejected]
    return {
        "remembered": report.remembered, "replaced": report.replaced, "forgotten": report.pruned,
        "written": len(written), "unchanged": max(0, unchanged),
        "bad": list(dict.fromkeys(f"{row.where}: {row.reason}" for row in bad)),  # a note may have been read twice
    }  # fmt: skip


def _written_back(
    mem: Semmem,
    folder: Path,
    namespace: str,
    own: Sequence[Mapping[str, Any]],
    apart: Mapping[str, Any],
    reject: Callable[[BadRow], None],
) -> set[str]:
    """Write texts that were edited in the store into their notes, and import these; return the ids of the notes."""
    seen = _state(folder)
    notes = {str(note["id"]): note for note in read(folder, reject=reject, **apart)}
    written, left = write_back(
        folder, every_memory(mem, namespace=namespace, filters=own[0]), notes, seen, redacted_note
    )
    for row in left:
        reject(row)
    if written:
        notes = {str(note["id"]): note for note in read(folder, reject=reject, **apart)}
        edited = [notes[id] for id in sorted(written & notes.keys())]
        mem.import_items(edited, namespace=namespace, owned=own, replace=True, overwrite=True)
    return written


def changes(
    mem: Semmem,
    folder: Path,
    *,
    namespace: str,
    write: bool,
    every: float,
    rest: Callable[[float], None] = time.sleep,
) -> Iterator[None]:
    """Yield at once, and when the notes have changed and are quiet again, or with ``write`` the store has changed.

    A folder that cannot be listed for a while is a change as well; the round says so. ``rest`` is called with the
    seconds between two looks.
    """
    before: dict[str, tuple[int, int]] | None = _state(folder)
    cursor = mem.changes("now", namespace=namespace).cursor if write else None
    yield
    while True:
        rest(every)
        now = _looked(folder)
        changed = now != before
        while now != before:  # somebody is still writing
            rest(every)
            before, now = now, _looked(folder)
        if cursor is not None:
            try:
                found = mem.changes(cursor, namespace=namespace)
                changed, cursor = changed or bool(found.items), found.cursor
            except SemmemError:  # the round says so
                changed = True
        if changed:
            yield


def _looked(folder: Path) -> dict[str, tuple[int, int]] | None:
    """Return the state of the folder, None while it cannot be listed."""
    with suppress(InvalidInput, OSError):
        return _state(folder)
    return None


def _state(folder: Path) -> dict[str, tuple[int, int]]:
    """Return when each note was changed last, and its size."""
    state = {}
    for name, path in note_paths(folder).items():
        with suppress(OSError):  # it has just gone
            status = path.stat()
            state[name] = (status.st_mtime_ns, status.st_size)
    return state
