"""What importers share: an item that knows where it came from, bad rows, JSON files read with their lines, times."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, BinaryIO

from semmem.errors import BadItem, InvalidInput

__all__ = [
    "BadRow",
    "Item",
    "Reject",
    "RowError",
    "document",
    "item",
    "lines",
    "moment",
    "opened",
    "plain_text",
    "refuse",
]


@dataclass(frozen=True, slots=True)
class BadRow:
    """A row that was not read: ``where`` it stands, such as "line 7", and the reason.

    ``id`` is that of a memory which stays as it is for the time being, where there is one.
    """

    where: str
    reason: str
    id: str | None = None


Reject = Callable[[BadRow], None]


class RowError(Exception):
    """A row that cannot be a memory, and why."""


class Item(dict[str, Any]):
    """The arguments of ``remember`` for one memory; ``where`` says where in the file it stands."""

    where: str = ""


def item(where: str, **given: Any) -> Item:
    """Return an item without what is None."""
    made = Item({name: value for name, value in given.items() if value is not None})
    made.where = where
    return made


def refuse(row: BadRow) -> None:
    """Raise BadItem: what becomes of a bad row where nobody wants to hear of them."""
    raise BadItem(f"{row.where}: {row.reason}")


def opened(path: Path) -> BinaryIO:
    """Open a regular file to read. Raises InvalidInput for a pipe, a device or a socket, which may have no end."""
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise InvalidInput(f"{path} is no regular file; save what it gives in one.")
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
    """Return the JSON in a file. Raises InvalidInput where it is none."""
    try:
        with opened(path) as raw:
            return json.loads(raw.read().decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{path} is not UTF-8 text (byte {error.start}); convert it.") from error
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"{path} is not JSON: {' '.join(str(error).split())}.") from error


def moment(value: Any, form: str | None = None) -> datetime | None:
    """Return a time given as ISO 8601, as seconds or milliseconds since 1970, or in ``form``; UTC where it has no zone.

    Raises RowError for what is none of these.
    """
    if value is None or value == "":
        return None
    try:
        if isinstance(value, int | float) and not isinstance(value, bool):
            return datetime.fromtimestamp(value / 1000 if abs(value) >= 1e11 else value, UTC)
        when = datetime.strptime(value, form) if form else datetime.fromisoformat(value)
    except (TypeError, ValueError, OverflowError, OSError):
        shown = form.replace("%", "") if form else "ISO 8601, such as 2026-03-01T09:00"
        raise RowError(f"{value!r} is not a time ({shown}).") from None
    return when if when.tzinfo else when.replace(tzinfo=UTC)


def plain_text(content: Any) -> str:
    """Return the text of a message: a string, or the text parts of a list of content parts, a blank line between them.

    Raises RowError where there is none, naming what stands there instead.
    """
    parts = content if isinstance(content, list) else [content]
    texts: list[str] = []
    others: list[str] = []
    for part in parts:
        text = part.get("text") if isinstance(part, Mapping) else part
        if isinstance(text, Mapping):  # OpenAI's assistants: {"text": {"value": …}}
            text = text.get("value")
        if isinstance(text, str):
            texts.append(text.strip())
        elif part is not None:
            others.append(str(part.get("type", "object")) if isinstance(part, Mapping) else type(part).__name__)
    whole = "\n\n".join(filter(None, texts))
    if not whole:
        raise RowError(f"it holds no text{f', only {_listed(others)}' if others else ''}.")
    return whole


def _listed(names: list[str]) -> str:
    return ", ".join(dict.fromkeys(names))
