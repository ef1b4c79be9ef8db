"""A folder of Markdown notes, such as an Obsidian vault: one note a memory, known by its path in the folder."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path, PurePosixPath
from typing import Any
from unicodedata import normalize

from semmem.errors import InvalidInput
from semmem.interfaces.importers import front_matter, note_text
from semmem.interfaces.importers.rows import BadRow, Item, Reject, RowError, item, moment, opened, refuse
from semmem.interfaces.importers.vault import Origin, Vault
from semmem.interfaces.importers.vault import origin as vault_origin

__all__ = ["read"]

_LARGEST = 40_000_000
_LONGEST_TAG = 200
_TIMES = ("created", "created_at", "date")
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}\Z")


@dataclass(slots=True)
class _Note:
    """One note as it was read."""

    id: str
    path: Path
    title: str
    body: str
    tags: list[str] = field(default_factory=list)
    aliases: list[str] = field(default_factory=list)
    created_at: datetime | None = None
    metadata: dict[str, Any] = field(default_factory=dict)


def read(folder: Path, *, reject: Reject | None = None, origin: Origin | None = None) -> Iterator[Item]:
    """Yield one item a note, in the order of their paths; ``origin`` says which vault the folder is, else its name.

    Front matter gives title, tags, aliases and created_at (``created``, ``created_at`` or ``date``; else a file name
    that is a day), the rest of it is metadata. Without a title there the first ``#`` heading is taken, else the file's
    name; the name is an alias then, if no other note has it. Links are shown as their author wrote them, with the
    title of their note behind it where that is another name, and ``metadata["links"]`` has the ids of the notes.

    Hidden folders are left out, links of the file system to outside too. Notes that cannot be read, and empty ones, go
    to ``reject``; one whose front matter is broken goes in without it and is told as well. Without ``reject`` these
    raise BadItem. Raises InvalidInput for what is no folder.
    """
    told = reject or refuse
    come = origin or vault_origin(folder)

    def bad(row: BadRow) -> None:
        told(replace(row, id=come.prefix + row.id) if row.id else row)

    if not folder.is_dir():
        raise InvalidInput(f"{folder} is no folder; give the one that holds the notes.")
    paths = dict(sorted(_notes(folder, bad)))
    vault = Vault(paths)
    for id, path in paths.items():  # titles first: a link is shown with its note's name
        note = _note(id, path, lambda row: None)
        if note is not None:
            vault.name(id, note.title, note.aliases)
    for id, path in paths.items():
        note = _note(id, path, bad)
        if note is not None:
            yield _item(note, vault, come)


def _notes(folder: Path, bad: Reject) -> Iterator[tuple[str, Path]]:
    """Yield (id, path) of every note: its path from the folder, composed (NFC) as on every system."""
    inside = os.path.realpath(folder)  # which takes a link to itself as it stands
    for place, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for file in sorted(files):
            if file.startswith(".") or not file.lower().endswith(".md"):
                continue
            path = Path(place) / file
            id = normalize("NFC", os.fsencode(path.relative_to(folder).as_posix()).decode("utf-8", "replace"))
            if path.is_symlink() and not Path(os.path.realpath(path)).is_relative_to(inside):
                bad(BadRow(id, "it is a link to outside the folder, which is not followed."))
            else:
                yield id, path


def _note(id: str, path: Path, bad: Reject) -> _Note | None:
    """Return a note, or None when there is nothing to remember; what is wrong goes to ``bad``.

    A bad row that carries the id is about a note that is there and could not be read, so that it is not pruned.
    """
    try:
        with opened(path) as file:
            raw = file.read(_LARGEST + 1)
        if len(raw) > _LARGEST:
            bad(BadRow(id, f"it has more than {_LARGEST // 1_000_000} MB; it is no note.", id))
            return None
        text = raw.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
    except InvalidInput:
        bad(BadRow(id, "it is no regular file.", id))
        return None
    except UnicodeDecodeError as error:
        bad(BadRow(id, f"it is not UTF-8 (byte {error.start}).", id))
        return None
    except OSError as error:
        bad(BadRow(id, f"it cannot be read: {error.strerror}.", id))
        return None
    written, body = front_matter.split(text)
    front: dict[str, Any] = {}
    try:
        front = front_matter.read(written)
    except front_matter.BadFrontMatter as error:
        bad(BadRow(f"{id}:{error.line}", f"of its front matter, {error.reason}; the note goes in without it.", id))
    if not body.strip():
        bad(BadRow(id, "the note is empty."))
        return None
    return _described(id, path, body, front)


def _described(id: str, path: Path, body: str, front: dict[str, Any]) -> _Note:
    stem = PurePosixPath(id).stem
    title = front.pop("title", None)
    shown = " ".join(str(title).split()) if isinstance(title, str | int | float) else ""
    if title is not None and not shown:
        front["title"] = title
    tags = [*_taken(front, front_matter.tags, "tags", "tag"), *note_text.tags(body)]
    note = _Note(
        id,
        path,
        shown or note_text.heading(body) or stem,
        body.strip("\n"),
        [tag for tag in dict.fromkeys(tags) if len(tag) <= _LONGEST_TAG],
    )
    note.aliases = _taken(front, front_matter.names, "aliases", "alias")
    for name in _TIMES:
        try:
            when = moment(front[name]) if isinstance(front.get(name), str) else None
        except RowError:
            continue  # told in words: it stays in metadata
        if when is not None:
            note.created_at = when
            del front[name]
            break
    if note.created_at is None and _DAY.match(stem):
        with suppress(RowError):  # 2026-02-31
            note.created_at = moment(stem)
    note.metadata = front
    return note


def _taken(front: dict[str, Any], read: Any, *names: str) -> list[str]:
    return [one for name in names for one in read(front.pop(name, None))]


def _item(note: _Note, vault: Vault, come: Origin) -> Item:
    links: dict[str, None] = {}

    def shown(target: str, alias: str | None) -> str:
        found, seen = vault.shown(target, alias, note.id)
        if found != note.id:
            links[come.prefix + found if found in vault else found] = None
        return seen

    text = note_text.linked(note.body, shown)
    for value in _strings(note.metadata):
        note_text.linked(value, shown)
    own = {"vault": come.name, "vault_id": come.folder, "aliases": vault.aliases(note.id), "links": list(links)}
    own = {key: value for key, value in own.items() if value}
    hidden = {key: note.metadata[key] for key in own if key in note.metadata}
    return item(
        note.id,
        text=text,
        id=come.prefix + note.id,
        title=note.title,
        source=note.id,
        tags=note.tags,
        metadata={**note.metadata, **own, **({"front matter": hidden} if hidden else {})},
        created_at=note.created_at,
    )


def _strings(value: Any) -> Iterator[str]:
    """Yield the strings of front matter, which may hold links too."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for one in value.values() if isinstance(value, dict) else value:
            yield from _strings(one)
