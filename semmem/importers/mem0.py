"""Read memories of mem0 saved as JSON: a list, an object with ``results``, or one memory per line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from semmem.importers import BadRow, Reject, document, lines, moment, refuse
from semmem.model.errors import InvalidInput
from semmem.model.imported_items import Item, RowError, item

__all__ = ["read"]

_METADATA = ("user_id", "agent_id", "app_id", "updated_at", "actor_id", "role")
_LISTS = ("results", "memories", "data")
_LINES = (".jsonl", ".ndjson")


def read(path: Path, *, reject: Reject | None = None) -> Iterator[Item]:
    """Yield one item per memory: its author is the actor, else the user, else the agent; its session is the run.

    Ids are mem0's; categories become tags; user, agent, app, actor, role and the day on which it expires stay in
    metadata, where ``semmem.interfaces.mem0`` reads them. A row without text goes to ``reject``;
    without ``reject`` it raises BadItem. Raises InvalidInput for an invalid file.
    """
    report = reject or refuse
    for where, row in _rows(path, report):
        try:
            yield _item(where, row)
        except RowError as error:
            report(BadRow(where, str(error)))


def _rows(path: Path, report: Reject) -> Iterator[tuple[str, Any]]:
    if path.suffix.lower() in _LINES:
        yield from lines(path, report)
        return
    value = document(path)
    if isinstance(value, Mapping):
        value = next((value[name] for name in _LISTS if isinstance(value.get(name), list)), None)
    if not isinstance(value, list):
        raise InvalidInput(f"{path} is not an export of mem0: that is a list of memories, or an object with 'results'.")
    yield from ((f"memory {number}", row) for number, row in enumerate(value, 1))


def _item(where: str, row: Any) -> Item:
    if not isinstance(row, Mapping):
        raise RowError(f"it is {type(row).__name__}, not a memory.")
    text = next((row[name] for name in ("memory", "text", "data") if isinstance(row.get(name), str)), "")
    if not text.strip():
        raise RowError("it holds no text.")
    id = row.get("id")
    if id is None:
        raise RowError("it has no id.")
    metadata = row.get("metadata") or {}
    if not isinstance(metadata, Mapping):
        raise RowError("its metadata is not an object.")
    author = next((row[name] for name in ("actor_id", "user_id", "agent_id") if row.get(name) is not None), None)
    expires = moment(row.get("expiration_date"))
    day = {} if expires is None else {"expiration_date": expires.date().isoformat()}
    tags = row.get("categories")
    session = row.get("run_id")
    return item(
        where,
        text=text,
        id=str(id),
        author=None if author is None else str(author),
        session=None if session is None else str(session),
        tags=[str(tag) for tag in tags if tag] if isinstance(tags, list) else None,
        metadata={**metadata, **{name: row[name] for name in _METADATA if row.get(name) is not None}, **day} or None,
        created_at=moment(row.get("created_at")),
    )
