"""Load SQL as named text: each statement in a file begins with ``-- name --`` and a line that says its purpose.

Text that several statements share is a fragment: it begins with ``-- <name> --`` and replaces ``<name>`` in statements
and other fragments of the same backend. Those of a memory's fields come from the table of fields
(``memory_columns``). A fragment is text and no view or function, so that the planner sees one whole statement, also
where the tables lie on several nodes.
"""

from __future__ import annotations

import base64
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import NamedTuple, TypeAlias

from semmem.model.errors import Conflict, InvalidInput, NamespaceFull, StoreError
from semmem.model.types import ListOrder, Memory, Page
from semmem.stores.memory_columns import fragment

__all__ = [
    "LISTS",
    "NEVER",
    "changed_by_newer",
    "check_limits",
    "check_number",
    "check_step",
    "cursor_after",
    "each_statement",
    "migrations",
    "name_taken",
    "read_cursor",
    "statements",
    "too_old",
    "unmigrated",
]

_MOST_NAMESPACES = (1 << 23) - 1
"""In a SQLite file, the 63 bits of a row id are the number of the namespace, followed by the 40 bits of the row id."""

LISTS: Mapping[ListOrder, str] = {
    "created": "memory_list",
    "updated": "memory_list_updated",
    "importance": "memory_list_important",
    "accessed": "memory_list_accessed",
}
"""The statement of each order of a list. A row is that of a memory, how often recalls returned it, when one last did,
and the sort key: a number, NULL in the first."""

NEVER = float("-inf")
"""The sort key of what has no time, such as a memory that no recall has returned."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

_NAME = re.compile(r"^-- (\w+|<\w+>) --$", re.MULTILINE)
_FRAGMENT = re.compile(r"<([\w.]+)>")


class ListPlace(NamedTuple):
    """A place in a list: when a memory was created, its id, its sort key, and the time that this key stands for."""

    created_at: datetime | None = None
    id: str | None = None
    key: float | None = None
    time: datetime | None = None


@cache
def statements(backend: str) -> Mapping[str, str]:
    """Return every statement of ``sql/{backend}/*.sql`` by name, with the fragments that it is made of.

    Raises ValueError when a name is used twice, or a fragment is not there.
    """
    bodies: dict[str, str] = {}
    folder = files("semmem.stores") / "sql" / backend
    for file in sorted(folder.iterdir(), key=lambda f: f.name):
        if not file.name.endswith(".sql"):
            continue
        pieces = _NAME.split(file.read_text(encoding="utf-8"))
        for name, body in zip(pieces[1::2], pieces[2::2], strict=True):
            if name in bodies:
                raise ValueError(f"The statement {name} is defined twice for {backend}.")
            bodies[name] = body.strip().rstrip(";")
    return MappingProxyType({name: _composed(body, bodies, backend) for name, body in bodies.items() if name[0] != "<"})


def _composed(body: str, bodies: Mapping[str, str], backend: str) -> str:
    """Put the fragments in, without the lines that say why they exist."""

    def put_in(match: re.Match[str]) -> str:
        of_fields = fragment(backend, match[1])
        if of_fields is not None:
            return of_fields
        if match[0] not in bodies:
            raise ValueError(f"There is no fragment {match[0]}.")
        lines = bodies[match[0]].splitlines()
        return _composed("\n".join(line for line in lines if not line.startswith("--")), bodies, backend)

    return _FRAGMENT.sub(put_in, body)


Migrations: TypeAlias = tuple[tuple[int, str, str], ...]
"""(number, name, SQL) of each migration."""


@cache
def migrations(backend: str) -> Migrations:
    """Return (number, name, SQL) of every migration of ``backend``, in order and without a gap.

    The first migration creates the oldest schema that can still be read.
    """
    folder = files("semmem.stores") / "sql" / backend / "migrations"
    scripts = sorted((f for f in folder.iterdir() if f.name.endswith(".sql")), key=lambda f: f.name)
    return tuple(
        (int(f.name.split("_", 1)[0]), f.name.removesuffix(".sql"), f.read_text(encoding="utf-8")) for f in scripts
    )


def each_statement(script: str) -> Iterator[str]:
    """Yield the statements of a script one by one.

    SQLite's ``executescript`` would commit in between, and Citus does not send several together to the nodes. SQLite
    knows where a statement of PostgreSQL ends, too, but for one with dollar quotes, and no migration has any.
    """
    import sqlite3

    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""
    if statement.strip():
        yield statement


def too_old(what: str, number: int, backend: str) -> str | None:
    """Return why ``what``, such as "This store", has too old a schema to be read; None where it can be read."""
    oldest = migrations(backend)[0][0]
    if number == 0 or number >= oldest:
        return None
    return (
        f"{what} has schema {number} and this semmem reads {oldest} or newer: with the semmem that wrote it, run "
        "`semmem export FILE`, and with this one `semmem import jsonl FILE` into a new store."
    )


def unmigrated(what: str, number: int, known: Migrations) -> str | None:
    """Return why ``what``, which may not be migrated here, cannot be opened; None where its schema is the newest."""
    newest = known[-1][0]
    if number == newest:
        return None
    has = f"has schema {number}" if number else "has no tables of semmem"
    return (
        f"{what} {has}, this semmem needs schema {newest}, and the setting migrate is false; run `semmem migrate` "
        "once, as a user who may create tables."
    )


def check_step(what: str, number: int, upto: int, known: Migrations) -> None:
    """Raise InvalidInput unless the migrations ``known`` lead from schema ``number`` to ``upto``."""
    oldest, newest = known[0][0], known[-1][0]
    if not max(number, oldest) <= upto <= newest:
        has = f"has schema {number}" if number else "has no tables of semmem yet"
        raise InvalidInput(
            f"{what} {has} and can be migrated to a schema from {max(number, oldest)} to {newest}, not to {upto}; a "
            "migration only goes forward."
        )


def changed_by_newer(number: int, newest: int) -> str:
    """Return what to say where a newer semmem has migrated a store that this process has open."""
    return (
        f"This store was changed by a newer semmem: it has schema {number} and this process knows {newest}; upgrade "
        "semmem as docs/operate.md says, and start this program anew."
    )


def cursor_after(memory: Memory, sort_by: ListOrder = "created", key: float | None = None) -> str:
    """Return the cursor of the page after ``memory``, whose sort key is ``key`` unless the list is sorted by time."""
    at = memory.created_at.isoformat() if memory.created_at else ""
    place = [at, memory.id] if key is None else [at, memory.id, sort_by, key]
    return base64.urlsafe_b64encode(json.dumps(place).encode()).decode()


def page_of(rows: Sequence[tuple[Memory, float | None]], limit: int, sort_by: ListOrder) -> Page:
    """Return a page of ``limit`` memories, each row with its sort key; one row more means that a next page exists."""
    last = rows[limit - 1] if len(rows) > limit else None
    cursor = None if last is None else cursor_after(last[0], sort_by, last[1])
    return Page(tuple(memory for memory, _ in rows[:limit]), cursor)


def read_cursor(cursor: str | None, sort_by: ListOrder = "created") -> ListPlace:
    """Return the place of the last memory of the previous page; one of four None for the first page.

    Raises InvalidInput for a cursor that list did not return, or that belongs to a list in another order.
    """
    if cursor is None:
        return ListPlace()
    try:
        at, id, *more = json.loads(base64.urlsafe_b64decode(cursor.encode()))
        order, key = more or ("created", None)
        place = _placed(str(at), str(id), order, None if key is None else float(key))
    except (ValueError, TypeError, OverflowError) as error:
        raise InvalidInput("This cursor is not one that list returned; start again without a cursor.") from error
    if order != sort_by:
        raise InvalidInput(f"This cursor is of a list by {order}, not by {sort_by}; start again without a cursor.")
    return place


def _placed(at: str, id: str, order: str, key: float | None) -> ListPlace:
    """Return the place that a cursor names. Raises ValueError or OverflowError for one that no memory can have."""
    created_at = datetime.fromisoformat(at).astimezone(UTC)
    id.encode()
    if "\0" in id or (key is None) != (order == "created") or (order == "importance" and not math.isfinite(key or 0)):
        raise ValueError
    is_timed = order == "updated" or (order == "accessed" and key != NEVER)
    return ListPlace(created_at, id, key, _EPOCH + timedelta(microseconds=int(key or 0)) if is_timed else None)


def name_taken(namespace: str) -> Conflict:
    """Return the error for a namespace that is no new name, because the store holds something of it."""
    return Conflict(
        f"The namespace {namespace!r} already holds memories, forgotten ones or logged recalls; "
        "choose another name, or drop it first."
    )


def check_number(namespace: str, number: int) -> None:
    """Raise StoreError where a namespace's number in a file is too large for the row ids of its memories."""
    if number > _MOST_NAMESPACES:
        raise StoreError(
            f"This file has had {_MOST_NAMESPACES:,} namespaces, and {namespace!r} is one too many; nothing was stored."
            " Export what it holds, and import it into a new file."
        )


def check_limits(
    namespace: str,
    limits: tuple[int | None, int | None, int | None, int | None],
    new_count: int,
) -> None:
    """Raise NamespaceFull if ``new_count`` new memories would make a namespace larger than its limits.

    ``limits`` are most_memories and most_bytes, then the present number of each, from the statement namespace_check.
    """
    most_memories, most_bytes, memories, size = limits
    what = None
    if most_memories is not None and (memories or 0) > most_memories and new_count:
        what = f"{memories:,} memories, and at most {most_memories:,} are allowed"
    elif most_bytes is not None and (size or 0) > most_bytes:
        what = f"{size:,} bytes of text, and at most {most_bytes:,} are allowed"
    if what is not None:
        raise NamespaceFull(
            f"The namespace {namespace!r} would then hold {what}; nothing was stored. Forget memories there, or "
            f"raise the limit with `semmem namespaces limit`."
        )
