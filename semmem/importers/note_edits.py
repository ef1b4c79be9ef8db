"""Edits of memories, written back into the notes that they came from.

Lines of a note that the edit leaves alone stay as they are, links and all; front matter stays too.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from difflib import SequenceMatcher
from pathlib import Path

from semmem.files import new_file
from semmem.importers import BadRow
from semmem.importers.markdown import note_paths
from semmem.importers.note import split
from semmem.model.imported_items import NOTE_HASH, Item, edited, hash_of
from semmem.model.types import REMOVED, Memory

__all__ = ["write_back"]


_CHANGING = "it is changing just now, and its memory's text is not written yet."

_NO_CREDENTIAL = "its memory was edited where a credential is removed from it, so it is not written; edit the note."


def write_back(
    folder: Path,
    memories: Iterable[Memory],
    notes: Mapping[str, Item],
    seen: Mapping[str, tuple[int, int]],
    redacted: Callable[[Item], Item],
) -> tuple[set[str], list[BadRow]]:
    """Write the texts of memories that were edited into their notes; return their ids, and what was not written.

    ``notes`` are the notes of the folder, by id, and ``seen`` has the time and size of each file before they were read.
    ``redacted`` returns a note as it is stored without its credentials. A note that has changed since its import, or
    since it was read, stays as it is, and so do one of a sensitive memory and each line with a credential that its
    memory does not have.
    """
    paths = note_paths(folder)
    written: set[str] = set()
    left: list[BadRow] = []
    for memory in memories:
        note = notes.get(memory.id)
        if note is None or memory.sensitive or not edited(memory):
            continue
        bare = redacted(note)
        if hash_of(memory) == bare["metadata"].get(NOTE_HASH):  # nothing but its credentials is gone
            continue
        before = memory.metadata[NOTE_HASH]
        base = next((one for one in (note, bare) if one["metadata"].get(NOTE_HASH) == before), None)
        if base is None:  # the import says that both have changed
            continue
        if memory.text in (note["text"], bare["text"]):
            left.append(BadRow(note.where, "its memory has another title, tags or metadata; only texts are written."))
            continue
        file = paths.get(note["source"])
        try:
            lacks = base is bare and _lacks_removed(bare["text"], memory.text)
            when = seen.get(note["source"])
            reason = _NO_CREDENTIAL if lacks else _rewrite(file, base["text"], memory.text, when) if file else _CHANGING
            if reason is not None:
                left.append(BadRow(note.where, reason))
                continue
            written.add(memory.id)
        except OSError as error:
            left.append(BadRow(note.where, f"it cannot be written: {error.strerror}."))
    return written, left


def _lacks_removed(before: str, after: str) -> bool:
    """Return whether a line where a credential was removed is gone: the note alone still has it."""
    return after.count(REMOVED) < before.count(REMOVED)


def _rewrite(file: Path, before: str, after: str, seen: tuple[int, int] | None) -> str | None:
    """Replace in a note the lines by which ``before``, as it was imported, and ``after`` differ.

    Returns the reason why nothing is written: the file is no longer as it was ``seen``, or a credential would be lost.
    Raises OSError.
    """
    real = Path(os.path.realpath(file))
    read = real.read_bytes()
    status = real.stat()
    if (status.st_mtime_ns, status.st_size) != seen:
        return _CHANGING
    raw = read.decode("utf-8")
    ends = "\r\n" if "\r\n" in raw else "\n"
    text = raw.replace("\r\n", "\n").replace("\r", "\n")
    _, body = split(text.removeprefix("\ufeff"))
    stripped = body.strip("\n")
    head, _, tail = text.rpartition(stripped)
    edited_body = _merged(stripped, before, after)
    if edited_body.count(REMOVED) > stripped.count(REMOVED):
        return _NO_CREDENTIAL
    if body == text.removeprefix("\ufeff") and split(edited_body)[1] != edited_body:
        head += "---\n---\n"  # else the text would be front matter
    whole = head + edited_body + tail
    with new_file(real, force=True) as out:
        os.fchmod(out.fileno(), status.st_mode & 0o777)
        out.write(whole.replace("\n", ends).encode())
    return None


def _merged(raw: str, before: str, after: str) -> str:
    """Return ``after``, with the lines of ``raw`` where those that were made of them are equal; links are in a line."""
    raw_lines, old, new = raw.split("\n"), before.split("\n"), after.split("\n")
    if len(raw_lines) != len(old):
        return after
    lines: list[str] = []
    for kind, begin, end, new_begin, new_end in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        lines += raw_lines[begin:end] if kind == "equal" else new[new_begin:new_end]
    return "\n".join(lines)
