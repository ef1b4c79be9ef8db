"""Read a folder of Markdown notes, such as an Obsidian vault: one memory per note, identified by its path."""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path, PurePosixPath
from typing import Any
from unicodedata import normalize

from semmem.importers import BadRow, Reject, moment, opened, refuse
from semmem.importers import note as notes
from semmem.importers import place as place_of
from semmem.model.errors import InvalidInput
from semmem.model.imported_items import NOTE_HASH, Item, RowError, content_hash, item, life_of
from semmem.model.types import Memory
from semmem.text.tokens import tokens

__all__ = ["Origin", "Vault", "note_paths", "read", "vault_name", "vault_origin", "walked"]

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
    life: dict[str, Any] = field(default_factory=dict)
    metadata: dict[str, Any] = field(default_factory=dict)


def read(folder: Path, *, reject: Reject | None = None, origin: Origin | None = None) -> Iterator[Item]:
    """Yield one item per note, ordered by path; ``origin`` says which vault the folder is, by default that of its name.

    Front matter gives title, tags, aliases and created_at (``created``, ``created_at`` or ``date``; else a file name
    that is a day), and the fields of ``LIFE`` under their names; the rest of it is metadata. Without a title there, the
    first ``#`` heading is the title, else the file's name; the file's name is then an alias, if no other note has it.
    Links are shown as their author wrote them, followed by the title of the linked note where that differs, and
    ``metadata["links"]`` holds the ids of the notes.

    Hidden folders are skipped, and so are file system links that lead outside. Unreadable and empty notes, and those
    whose id another has, go to ``reject``; a note with broken front matter is read without it and goes to ``reject`` as
    well. Without ``reject`` these raise BadItem. Raises InvalidInput where ``folder`` is no folder.
    """
    sink = reject or refuse
    come = origin or vault_origin(folder)

    def report(row: BadRow) -> None:
        sink(replace(row, id=come.prefix + row.id) if row.id else row)

    if not folder.is_dir():
        raise InvalidInput(f"{folder} is not a folder; give the one that holds the notes.")
    paths = note_paths(folder, report)
    vault = Vault(paths)
    for id, path in paths.items():  # titles first: a link is shown with its note's name
        note = _note(id, path, lambda row: None)
        if note is not None:
            vault.name(id, note.title, note.aliases)
    for id, path in paths.items():
        note = _note(id, path, report)
        if note is not None:
            yield _item(note, vault, come)


def note_paths(folder: Path, report: Reject = lambda row: None) -> dict[str, Path]:
    """Return the path of each note by its id; a second path with the same id goes to ``report``."""
    paths: dict[str, Path] = {}
    for id, path in sorted(walked(folder, (".md",), report)):
        first = paths.setdefault(id, path)
        if first is not path:
            one, other = (ascii(each.relative_to(folder).as_posix()) for each in (path, first))
            report(BadRow(id, f"the names {one} and {other} give this id both; rename the first of them.", id))
    return paths


def walked(folder: Path, suffixes: tuple[str, ...], report: Reject) -> Iterator[tuple[str, Path]]:
    """Yield (id, path) of every file whose name ends in one of ``suffixes``, but for hidden ones.

    The id is its path from the folder, composed (NFC) to be equal on all systems. Raises InvalidInput where a folder
    inside cannot be listed: its files would be taken for deleted ones.
    """

    def unlisted(error: OSError) -> None:
        raise InvalidInput(
            f"The folder {error.filename} cannot be listed ({error.strerror}), so nothing was imported; make it "
            "readable, or give it a name that begins with a dot to leave it out."
        ) from error

    inside = os.path.realpath(folder)  # which takes a link to itself as it stands
    for place, folders, files in os.walk(folder, onerror=unlisted):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for file in sorted(files):
            if file.startswith(".") or not file.lower().endswith(suffixes):
                continue
            path = Path(place) / file
            id = normalize("NFC", os.fsencode(path.relative_to(folder).as_posix()).decode("utf-8", "replace"))
            if os.path.islink(path) and not Path(os.path.realpath(path)).is_relative_to(inside):
                report(BadRow(id, "it is a link to outside the folder, which is not followed."))
            else:
                yield id, path


def _note(id: str, path: Path, report: Reject) -> _Note | None:
    """Return a note, or None when there is nothing to remember; bad rows go to ``report``.

    A bad row with an id is a note that exists and could not be read, so its memory is not pruned.
    """
    try:
        with opened(path) as file:
            raw = file.read(_LARGEST + 1)
        if len(raw) > _LARGEST:
            report(BadRow(id, f"it has more than {_LARGEST // 1_000_000} MB; it is no note.", id))
            return None
        text = raw.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
    except InvalidInput:
        report(BadRow(id, "it is not a regular file.", id))
        return None
    except UnicodeDecodeError as error:
        report(BadRow(id, f"it is not UTF-8 (byte {error.start}).", id))
        return None
    except OSError as error:
        report(BadRow(id, f"it cannot be read: {error.strerror}.", id))
        return None
    written, body = notes.split(text)
    front: dict[str, Any] = {}

    def doubled(line: int, name: str) -> None:
        reason = f"its front matter says {name!r:.60} again; the value before this one is left out."
        report(BadRow(f"{id}:{line}", reason, id, imported=True))

    try:
        front = notes.read(written, doubled)
    except notes.BadFrontMatter as error:
        reason = f"its front matter is left out: {error.reason}."
        report(BadRow(f"{id}:{error.line}", reason, id, imported=True))
    if not body.strip():
        report(BadRow(id, "the note is empty."))
        return None
    return _described(id, path, body, front)


def _described(id: str, path: Path, body: str, front: dict[str, Any]) -> _Note:
    stem = PurePosixPath(id).stem
    title = front.pop("title", None)
    shown = " ".join(str(title).split()) if isinstance(title, str | int | float) else ""
    if title is not None and not shown:
        front["title"] = title
    tags = [*_popped(front, notes.tags, "tags", "tag"), *notes.inline_tags(body)]
    note = _Note(
        id,
        path,
        shown or notes.heading(body) or stem,
        body.strip("\n"),
        [tag for tag in dict.fromkeys(tags) if len(tag) <= _LONGEST_TAG],
    )
    note.aliases = _popped(front, notes.names, "aliases", "alias")
    for name in _TIMES:
        try:
            when = moment(front[name]) if isinstance(front.get(name), str) else None
        except RowError:
            continue  # given in words: it stays in metadata
        if when is not None:
            note.created_at = when
            del front[name]
            break
    if note.created_at is None and _DAY.match(stem):
        with suppress(RowError):  # 2026-02-31
            note.created_at = moment(stem)
    note.life = life_of(front)
    if not _is_share(front.get("importance")):  # many write "high" there, for themselves
        note.life.pop("importance", None)
    note.metadata = {name: value for name, value in front.items() if name not in note.life}
    return note


def _is_share(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1


def _popped(front: dict[str, Any], parse: Any, *names: str) -> list[str]:
    return [one for name in names for one in parse(front.pop(name, None))]


def _item(note: _Note, vault: Vault, come: Origin) -> Item:
    links: dict[str, None] = {}

    def shown(target: str, alias: str | None) -> str:
        note_id, label = vault.shown(target, alias, note.id)
        if note_id != note.id:
            links[come.prefix + note_id if note_id in vault else note_id] = None
        return label

    text = notes.linked(note.body, shown)
    for value in _strings(note.metadata):
        notes.linked(value, shown)
    own = {"vault": come.name, "vault_id": come.folder, "aliases": vault.aliases(note.id), "links": list(links)}
    own = {key: value for key, value in own.items() if value}
    hidden = {key: note.metadata[key] for key in (*own, NOTE_HASH) if key in note.metadata}
    metadata = {**note.metadata, **own, **({"front matter": hidden} if hidden else {})}
    if not note.life.get("sensitive"):  # a hash of a secret text would allow guessing it
        metadata[NOTE_HASH] = content_hash(text, note.title, note.tags, metadata)
    return item(
        note.id,
        text=text,
        id=come.prefix + note.id,
        title=note.title,
        source=note.id,
        tags=note.tags,
        metadata=metadata,
        created_at=note.created_at,
        **note.life,
    )


def _strings(value: Any) -> Iterator[str]:
    """Yield the strings in front matter, which may hold links."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for one in value.values() if isinstance(value, dict) else value:
            yield from _strings(one)


_NO_NAMES = frozenset(("index", "readme", "untitled", "_index", "home", "note", "notes"))


def vault_name(folder: Path) -> str:
    """Return the name of the folder, which is the name of the vault."""
    return normalize("NFC", folder.resolve().name) or "vault"


@dataclass(frozen=True, slots=True)
class Origin:
    """The vault of a note: its name, the folder it was first read from, the prefix of its ids.

    ``alike`` says that the folder is another one and may be a copy: at least half of the notes are equal.
    """

    name: str
    folder: str
    prefix: str = ""
    alike: bool = False


def vault_origin(
    folder: Path,
    stored: Callable[[str], Sequence[Memory]] = lambda name: (),
    texts: Callable[[], Mapping[str, str]] = dict,
    *,
    moved: bool = False,
) -> Origin:
    """Return the vault of a folder; a folder with the name of another stored vault gets a name and ids of its own.

    ``stored`` returns some memories of the vault of a name, ``texts`` the notes of the folder. A vault is recognised by
    the path of its folder, and in another place by its notes, half of which must be equal. ``moved`` says that such a
    folder is the vault itself and no copy; its new path counts from then on.
    """
    name, here = vault_name(folder), place_of(folder)
    some = stored(name)
    places = {memory.metadata.get("vault_id", here) for memory in some}
    if not some or here in places:
        return Origin(name, here)
    now = texts()
    if 2 * sum(now.get(memory.id) == memory.text for memory in some) >= len(some):
        return Origin(name, here if moved else sorted(map(str, places))[0], alike=True)
    return Origin(f"{name}-{here[:8]}", here, f"{name}-{here[:8]}/")


class Vault:
    """Notes by id (path from the vault's root, such as ``People/Ada.md``)."""

    def __init__(self, ids: Iterable[str]) -> None:
        self._ids = sorted(ids)
        self._paths = {id.casefold(): id for id in reversed(self._ids)}
        self._stems: dict[str, list[str]] = {}
        self._names: dict[str, list[str]] = {}
        for id in self._ids:
            self._stems.setdefault(PurePosixPath(id).stem.casefold(), []).append(id)

    def __contains__(self, id: str) -> bool:
        return id in self._names

    def name(self, id: str, title: str, aliases: Iterable[str]) -> None:
        """Record the names of a note: its title, its aliases, and its file name if no other note has it."""
        names = [title, *aliases]
        stem = PurePosixPath(id).stem
        if len(self._stems[stem.casefold()]) == 1 and stem.casefold() not in _NO_NAMES:
            names.append(stem)
        by_folded: dict[tuple[str, ...], str] = {}
        for one in names:
            by_folded.setdefault(_folded(one), one)
        self._names[id] = list(by_folded.values())

    def aliases(self, id: str) -> list[str]:
        """Return the names of a note besides its title."""
        return self._names.get(id, [])[1:]

    def find(self, target: str, source: str) -> str | None:
        """Return the note that ``target`` means in the note ``source``, by Obsidian's rules; None when there is none.

        Ignoring case: a path from the root or (./, ../) from the source; else a note whose path ends with ``target``,
        preferably one in the source's folder, then the one with the shortest path.
        """
        path = normalize("NFC", target.strip().replace("\\", "/"))
        here = posixpath.dirname(source)
        if path.startswith(("./", "../")):
            path = posixpath.normpath(posixpath.join(here, path))
        path = path.lstrip("/").casefold()
        path = path if path.endswith(".md") else f"{path}.md"
        if path in self._paths:
            return self._paths[path]
        near = posixpath.join(here, path).casefold()
        if near in self._paths:
            return self._paths[near]
        ending = [
            id for id in self._stems.get(PurePosixPath(path).stem, ()) if f"/{id.casefold()}".endswith(f"/{path}")
        ]
        return min(ending, key=lambda id: (id.count("/"), len(id), id), default=None)

    def shown(self, target: str, alias: str | None, source: str) -> tuple[str, str]:
        """Return (id of the note or the target itself, text to show in its place).

        The text is what the author shows. The title follows where the extractor would not recognise the note by that
        text, because it is no name of the note or has no capital.
        """
        note_id = self.find(target, source)
        last = target.rpartition("/")[2]
        label = alias or (last[:-3] if last.lower().endswith(".md") else last)
        if note_id is None or note_id not in self._names:
            return note_id or target, label
        title = self._names[note_id][0]
        names = {_folded(name) for name in self._names[note_id]}
        if _folded(label) == _folded(title) or (_folded(label) in names and label[:1].isupper()):
            return note_id, label
        return note_id, f"{label} ({title})"


def _folded(name: str) -> tuple[str, ...]:
    return tuple(word.folded for word, _, _ in tokens(name)) or (name.casefold(),)
