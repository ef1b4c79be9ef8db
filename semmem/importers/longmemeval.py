"""Read LongMemEval's own files (Wu et al. 2024), or their sessions as JSONL rows: one memory per turn."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from semmem.importers import BadRow, Reject, document, lines, moment
from semmem.importers import refuse as _refuse
from semmem.model.errors import InvalidInput
from semmem.model.imported_items import Item, RowError, item, plain_text

__all__ = ["read", "sessions", "turns_of"]

_DATE = "%Y/%m/%d (%a) %H:%M"  # 2023/05/30 (Tue) 21:48


def read(path: Path, *, reject: Reject | None = None) -> Iterator[Item]:
    """Yield one item per turn: the id is the session's with the turn's position, the author is the role.

    The haystacks of all questions go into one namespace. A session that is in several haystacks is read once, with its
    first date. Where its turns differ it goes to ``reject``, like turns that cannot be stored; without ``reject`` they
    raise BadItem. Raises InvalidInput for an invalid file.
    """
    report = reject or _refuse
    turns_by_session: dict[str, Any] = {}
    for where, _, session, date, turns in sessions(path, report):
        if session not in turns_by_session:
            turns_by_session[session] = turns
            yield from turns_of(where, session, date, turns, report)
        elif turns_by_session[session] != turns:
            report(BadRow(where, f"the session {session!r} was met before with other turns."))


def turns_of(where: str, session: str, date: Any, turns: Any, reject: Reject) -> Iterator[Item]:
    """Yield one item per turn of one session, with the arguments that ``sessions`` yields."""
    if not isinstance(turns, list):
        reject(BadRow(where, "its turns are not a list."))
        return
    for place, turn in enumerate(turns):
        turn_name = f"{where}, turn {place + 1}"
        try:
            yield _item(turn_name, turn, session, place, date)
        except RowError as error:
            reject(BadRow(turn_name, str(error)))


def sessions(path: Path, reject: Reject) -> Iterator[tuple[str, int, str, Any, Any]]:
    """Yield (where, number of the question with the haystack, id, date, turns) of every session; rows have 0."""
    if path.suffix.lower() == ".jsonl":
        for where, row in lines(path, reject):
            if isinstance(row, Mapping) and {"id", "turns"} <= row.keys():
                yield where, 0, str(row["id"]), row.get("date"), row["turns"]
            else:
                reject(BadRow(where, "it is not an object with 'id' and 'turns'."))
        return
    questions = document(path)
    if not isinstance(questions, list) or not any(
        isinstance(q, Mapping) and "haystack_sessions" in q for q in questions
    ):
        raise InvalidInput(
            f"{path} is not LongMemEval's file: that is a list of objects with 'haystack_sessions' each."
        )
    for number, question in enumerate(questions, 1):
        where = f"question {number}"
        names = ("haystack_sessions", "haystack_session_ids", "haystack_dates")
        values = [question.get(name) for name in names] if isinstance(question, Mapping) else []
        columns = [column for column in values if isinstance(column, list)]
        if len(columns) < len(names) or len({len(column) for column in columns}) > 1:
            reject(BadRow(where, f"it has no lists {', '.join(names)} of one length."))
            continue
        for place, (turns, id, date) in enumerate(zip(*columns, strict=True), 1):
            yield f"{where}, session {place}", number, str(id), date, turns


def _item(where: str, turn: Any, session: str, place: int, date: Any) -> Item:
    if not isinstance(turn, Mapping):
        raise RowError(f"it is {type(turn).__name__}, not a turn.")
    return item(
        where,
        text=plain_text(turn.get("content")),
        id=f"{session}:{place}",
        author=None if turn.get("role") is None else str(turn["role"]),
        session=session,
        position=place,
        created_at=moment(date, _DATE),
    )
