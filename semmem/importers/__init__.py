"""Read files of other programs as items for remember_many: one module for each format, each with ``read(path)``.

An importer sets author, session, position and created_at, and gives a memory the same id every time. A row that cannot
be stored is reported with its place in the file and the reason.
"""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import blake2b
from pathlib import Path
from typing import Any, BinaryIO

from semmem.model.errors import BadItem, InvalidInput, LocalOnly, NotFound
from semmem.model.imported_items import MARK, Item, RowError
from semmem.model.serialization import instant
from semmem.model.types import Memory

__all__ = [
    "FORMATS",
    "BadRow",
    "Format",
    "Reject",
    "document",
    "lines",
    "mark",
    "moment",
    "opened",
    "owned",
    "place",
    "reader",
    "refuse",
    "told_apart",
]

_SOME = 50

_SECONDS = re.compile(r"-?(?:\d{9,10}|\d{13})(?:\.\d+)?\Z")
"""Seconds or milliseconds since 1970; twelve digits may as well be year, month, day, hour and minute."""


@dataclass(frozen=True, slots=True)
class Format:
    """One format of ``semmem import``.

    ``module`` reads it, ``source`` is what it is read from: a file, a folder or either. ``options`` are the options of
    the command that it takes. ``marked``: its memories have MARK. ``whole``: the source is read whole, so a changed
    memory of it is replaced, and memories that it has no longer are known. ``redacts``: others wrote the texts down, so
    credentials in them are redacted, as the hooks do.
    """

    module: str
    source: str = "file"
    options: tuple[str, ...] = ()
    marked: bool = False
    whole: bool = False
    redacts: bool = False


FORMATS: Mapping[str, Format] = {
    "chat": Format("chat", options=("replace", "moved"), marked=True, redacts=True),
    "chatgpt": Format("chatgpt", options=("replace", "moved", "branches"), marked=True, redacts=True),
    "csv": Format("csv", options=("replace", "moved", "column", "delimiter", "drop-others"), marked=True),
    "documents": Format(
        "documents", "folder", options=("replace", "moved", "prune"), marked=True, whole=True, redacts=True
    ),
    "git": Format("git", "folder", options=("replace", "prune"), whole=True, redacts=True),
    "jsonl": Format("jsonl", options=("replace", "moved", "into", "no-vectors"), marked=True),
    "locomo": Format("locomo"),
    "longmemeval": Format("longmemeval"),
    "markdown": Format("markdown", "folder", options=("replace", "moved", "prune"), whole=True),
    "mcp": Format("mcp_memory"),
    "mem0": Format("mem0"),
    "sessions": Format("transcript", "file or folder", redacts=True),
    "transcript": Format("transcript", "file or folder", redacts=True),
}
"""The formats of ``semmem import``; JSON lines have MARK only with ``--replace``, as they hold whole memories."""


def reader(format: str) -> Callable[..., Iterator[Item]]:
    """Return ``read(path, *, reject=None, …)`` of a format; csv and jsonl take more. Raises InvalidInput."""
    from importlib import import_module

    if format not in FORMATS:
        raise InvalidInput(f"There is no importer for {format!r}; choose one of {', '.join(FORMATS)}.")
    function: Callable[..., Iterator[Item]] = import_module(f"semmem.importers.{FORMATS[format].module}").read
    return function


def place(path: Path) -> str:
    """Return a hash of where a file or folder lies, links resolved; 16 characters."""
    return blake2b(os.fsencode(os.path.realpath(path)), digest_size=8).hexdigest()


def mark(path: Path, name: str | None = None) -> dict[str, str]:
    """Return the value of MARK for the memories of ``path``: the file's name, or ``name``, and a hash of its place."""
    return {"file": name or path.name, "place": place(path)}


def told_apart(
    format: str, path: Path, mem: Any, namespace: str, *, replace: bool = False, moved: bool = False
) -> dict[str, Any]:
    """Return the reader options that separate the memories of ``path`` from those of another source of the same name.

    ``mem`` is the open store. A folder of notes or a transcript that has the name of another stored source gets a name
    and ids of its own; all others keep theirs. ``replace`` says that the transcript is the one read from this place
    before, even if its beginning has changed. ``moved`` says that a folder with the notes of another vault is that
    vault in a new place.
    """
    if format == "markdown":
        from semmem.importers import markdown
        from semmem.importers import markdown as vault

        return {
            "origin": vault.vault_origin(
                path,
                lambda name: mem.list(namespace=namespace, filters={"metadata": {"vault": name}}, limit=_SOME),
                lambda: {str(item["id"]): item["text"] for item in markdown.read(path, reject=lambda row: None)},
                moved=moved,
            )
        }
    if format == "chat":
        from semmem.importers import chat

        here = {"metadata": {MARK: {"place": place(path)}}}
        before = mem.list(namespace=namespace, filters=here, limit=_SOME)
        names = dict.fromkeys(str(memory.metadata[MARK].get("file", "")) for memory in before)
        return {"name": chat.name_of(path, lambda ids: _stored(mem, namespace, ids), list(names), replace=replace)}
    return {}


def _stored(mem: Any, namespace: str, ids: list[str]) -> list[Memory]:
    """Return the memories of ``ids`` that exist: by one question to a store, one by one from a server."""
    with suppress(LocalOnly):
        return list(mem.store.get(namespace, ids))
    found = []
    for id in ids:
        with suppress(NotFound):
            found.append(mem.get(id, namespace=namespace))
    return found


def owned(format: str, path: Path, *, moved: bool = False, **options: Any) -> list[dict[str, Any]]:
    """Return filters for the memories that an import of ``path`` may replace; a memory must match one of them.

    ``options`` are those of ``told_apart``. The memories of a vault are known by its name, those of a table, a
    transcript or JSON lines by the mark that ``semmem import`` leaves in their metadata; old marks have no place.
    ``moved`` adds the memories of a file of this name at any place. Empty for a format whose memories are never
    replaced.
    """
    if FORMATS[format].marked:
        own = mark(path, options.get("name"))
        if moved:
            del own["place"]
        return [{"metadata": {MARK: own}}, {"metadata": {MARK: own["file"]}}]
    if format == "git":
        from semmem.importers.git import repository

        return [{"metadata": {"repository": repository(path)}}]
    if format != "markdown":
        return []
    from semmem.importers.markdown import vault_origin

    origin = options.get("origin") or vault_origin(path)
    return [] if origin.alike and not moved else [{"metadata": {"vault": origin.name}}]


@dataclass(frozen=True, slots=True)
class BadRow:
    """A row that could not be read: its place, such as "line 7", and the reason.

    ``id`` is the id of the stored memory, where there is one; that memory stays as it is. ``imported`` says that the
    row is imported without what could not be read.
    """

    where: str
    reason: str
    id: str | None = None
    imported: bool = False


Reject = Callable[[BadRow], None]


def refuse(row: BadRow) -> None:
    """Raise BadItem for a bad row; used where the caller passes no ``reject``."""
    raise BadItem(f"{row.where}: {row.reason}")


def opened(path: Path) -> BinaryIO:
    """Open a regular file for reading. Raises InvalidInput for a pipe, a device or a socket, which may have no end."""
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise InvalidInput(f"{path} is not a regular file; save its output in one.")
    return os.fdopen(handle, "rb")


def lines(path: Path, reject: Reject) -> Iterator[tuple[str, Any]]:
    """Yield ("line 1", value) for each line of a JSONL file; a line that is not JSON goes to ``reject``."""
    with opened(path) as raw:
        for number, line in enumerate(raw, 1):
            if not line.strip():
                continue
            where = f"line {number}"
            try:
                value = json.loads(line.decode("utf-8-sig" if number == 1 else "utf-8"))
            except UnicodeDecodeError as error:
                reject(BadRow(where, f"it is not UTF-8 (byte {error.start} of the line)."))
            except (ValueError, RecursionError):
                reject(BadRow(where, "it is not JSON."))
            else:
                yield where, value


def document(path: Path) -> Any:
    """Return the JSON value in a file. Raises InvalidInput where the file is no JSON."""
    try:
        with opened(path) as raw:
            return json.loads(raw.read().decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        if error.object.startswith(b"PK\x03\x04"):
            raise InvalidInput(f"{path} is a ZIP archive; unpack it, and name the file in it.") from error
        raise InvalidInput(f"{path} is not UTF-8 text (byte {error.start}); convert it.") from error
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"{path} is not JSON: {' '.join(str(error).split())}.") from error


def moment(value: Any, form: str | None = None) -> datetime | None:
    """Return a time given as ISO 8601, as seconds or milliseconds since 1970, or in ``form``; UTC where it has no zone.

    A number may be text, as in exports of Slack. Raises RowError for any other value.
    """
    if value is None or value == "":
        return None
    try:
        if form is None and isinstance(value, str) and _SECONDS.match(value):
            value = float(value)
        if isinstance(value, int | float) and not isinstance(value, bool):
            return datetime.fromtimestamp(value / 1000 if abs(value) >= 1e11 else value, UTC)
        return instant(datetime.strptime(value, form) if form else value)
    except (TypeError, ValueError, OverflowError, OSError):
        shown = form.replace("%", "") if form else "ISO 8601, such as 2026-03-01T09:00"
        raise RowError(f"{value!r} is not a time ({shown}).") from None
