"""SQL as named text: a file holds statements, each opened by ``-- name --`` and a line that says why it exists."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import cache
from importlib.resources import files
from types import MappingProxyType

from semmem.model.errors import InvalidInput, NamespaceFull, StoreError
from semmem.model.types import ListOrder, Memory, Page

__all__ = ["check_limits", "check_number", "cursor_after", "migrations", "read_cursor", "statements", "too_old"]

_MOST_NAMESPACES = (1 << 23) - 1
"""In a file: the number of a namespace begins the 63 bits of a row, before the 40 of an ord."""

_NAME = re.compile(r"^-- (\w+) --$", re.MULTILINE)


@cache
def statements(backend: str) -> Mapping[str, str]:
    """Return every statement of ``sql/{backend}/*.sql`` by name. Raises ValueError when a name is used twice."""
    found: dict[str, str] = {}
    folder = files("semmem.stores") / "sql" / backend
    for file in sorted(folder.iterdir(), key=lambda f: f.name):
        if not file.name.endswith(".sql"):
            continue
        pieces = _NAME.split(file.read_text(encoding="utf-8"))
        for name, body in zip(pieces[1::2], pieces[2::2], strict=True):
            if name in found:
                raise ValueError(f"The statement {name} is defined twice for {backend}.")
            found[name] = body.strip().rstrip(";")
    return MappingProxyType(found)


@cache
def migrations(backend: str) -> tuple[tuple[int, str, str], ...]:
    """Return (number, name, SQL) of every migration of ``backend``, in order without a gap.

    The first one makes the oldest schema that is still read; what led to it is gone.
    """
    folder = files("semmem.stores") / "sql" / backend / "migrations"
    found = sorted((f for f in folder.iterdir() if f.name.endswith(".sql")), key=lambda f: f.name)
    return tuple(
        (int(f.name.split("_", 1)[0]), f.name.removesuffix(".sql"), f.read_text(encoding="utf-8")) for f in found
    )


def too_old(what: str, number: int, backend: str) -> str | None:
    """Return why ``what``, such as "This store", cannot be read with a schema of that number; None where it can."""
    oldest = migrations(backend)[0][0]
    if number == 0 or number >= oldest:
        return None
    return (
        f"{what} has schema {number} and this semmem reads {oldest} or newer: with the semmem that wrote it, run "
        "`semmem export FILE`, and with this one `semmem import jsonl FILE` into a new store."
    )


def cursor_after(memory: Memory, sort_by: ListOrder = "created", key: float | None = None) -> str:
    """Return the cursor of the page that begins after ``memory``, which has ``key`` in another order than by time."""
    at = memory.created_at.isoformat() if memory.created_at else ""
    place = [at, memory.id] if key is None else [at, memory.id, sort_by, key]
    return base64.urlsafe_b64encode(json.dumps(place).encode()).decode()


def page_of(rows: Sequence[tuple[Memory, float | None]], limit: int, sort_by: ListOrder) -> Page:
    """Return a page of ``limit`` memories, each with its key; one more says that there is a next page."""
    last = rows[limit - 1] if len(rows) > limit else None
    cursor = None if last is None else cursor_after(last[0], sort_by, last[1])
    return Page(tuple(memory for memory, _ in rows[:limit]), cursor)


def read_cursor(cursor: str | None, sort_by: ListOrder = "created") -> tuple[datetime | None, str | None, float | None]:
    """Return time, id and key of the last memory of the page before, None of each where there was none.

    Raises InvalidInput for what list did not return, or in another order.
    """
    if cursor is None:
        return None, None, None
    try:
        at, id, *more = json.loads(base64.urlsafe_b64decode(cursor.encode()))
        order, key = more or ("created", None)
        place = datetime.fromisoformat(at), str(id), None if key is None else float(key)
    except (ValueError, TypeError) as error:
        raise InvalidInput("This cursor is not one that list returned; start again without a cursor.") from error
    if order != sort_by:
        raise InvalidInput(f"This cursor is of a list by {order}, not by {sort_by}; start again without a cursor.")
    return place


def check_number(namespace: str, number: int) -> None:
    """Raise StoreError for a namespace of a file whose number leaves no room in a row for those of its memories."""
    if number > _MOST_NAMESPACES:
        raise StoreError(
            f"This file has had {_MOST_NAMESPACES:,} namespaces, and {namespace!r} is one too many; nothing was stored."
            " Export what it holds, and import it into a new file."
        )


def check_limits(
    namespace: str,
    limits: tuple[int | None, int | None, int | None, int | None],
    came: int,
) -> None:
    """Raise NamespaceFull if a namespace would hold more than it may; ``came`` are the memories that are new to it.

    ``limits`` are most_memories and most_bytes, and then how many of each it holds: of the statement namespace_check.
    """
    most_memories, most_bytes, memories, size = limits
    what = None
    if most_memories is not None and (memories or 0) > most_memories and came:
        what = f"{memories:,} memories, and at most {most_memories:,} are allowed"
    elif most_bytes is not None and (size or 0) > most_bytes:
        what = f"{size:,} bytes of text, and at most {most_bytes:,} are allowed"
    if what is not None:
        raise NamespaceFull(
            f"With this the namespace {namespace!r} would hold {what}; nothing was stored. Forget something there, or "
            f"raise the limit with `semmem namespaces limit`."
        )
