"""Read LoCoMo's own file (Maharana et al. 2024) or its turns as JSONL rows: one memory per turn."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from semmem.importers import BadRow, Reject, document, lines, moment
from semmem.importers import refuse as _refuse
from semmem.model.errors import InvalidInput
from semmem.model.imported_items import Item, RowError, item, plain_text

__all__ = ["conversation_name", "read"]

_SESSION = re.compile(r"session_(0|[1-9]\d*)")
_DATE = "%I:%M %p on %d %B, %Y"  # 1:56 pm on 8 May, 2023


_ROW = frozenset(("conv", "session", "date_time"))
_Turn = tuple[str, Any, str, str, int, Any]


def read(path: Path, *, reject: Reject | None = None) -> Iterator[Item]:
    """Yield one item per turn: ids ``conv-26:D1:3``, sessions ``conv-26:1``; an image's caption is put in brackets.

    Reads ``locomo10.json``, a part of it, or lines with ``conv``, ``session`` and ``date_time`` beside the keys of a
    turn. A turn that cannot be stored goes to ``reject`` with its conversation, session and number; without ``reject``
    it raises BadItem. Raises InvalidInput for an invalid file.
    """
    report = reject or _refuse
    for where, turn, name, session, place, date in (_rows if path.suffix.lower() == ".jsonl" else _own_file)(
        path, report
    ):
        try:
            yield _item(where, turn, name, session, place, date)
        except RowError as error:
            report(BadRow(where, str(error)))


def conversation_name(sample: Mapping[str, Any], number: int) -> str:
    """Return the name of conversation ``number``, from 1, in LoCoMo's own file."""
    return str(sample.get("sample_id") or f"conversation-{number}")


def _own_file(path: Path, report: Reject) -> Iterator[_Turn]:
    """Yield (where, turn, conversation, session, position, date) of the authors' file, sessions by number."""
    samples = document(path)
    if not isinstance(samples, list) or not any(isinstance(s, Mapping) and "conversation" in s for s in samples):
        raise InvalidInput(f"{path} is not LoCoMo's file: that is a list of objects with a 'conversation' each.")
    for number, sample in enumerate(samples, 1):
        talk = sample.get("conversation") if isinstance(sample, Mapping) else None
        if not isinstance(talk, Mapping):
            report(BadRow(f"conversation {number}", "it has no object 'conversation'."))
            continue
        name = conversation_name(sample, number)
        for session, turns in sorted((int(m[1]), talk[key]) for key in talk if (m := _SESSION.fullmatch(key))):
            for place, turn in enumerate(turns if isinstance(turns, list) else [turns]):
                where = f"conversation {number} ({name}), session {session}, turn {place + 1}"
                yield where, turn, name, str(session), place, talk.get(f"session_{session}_date_time")


def _rows(path: Path, report: Reject) -> Iterator[_Turn]:
    """Yield the same from JSON lines, which are in the order of their conversation."""
    positions: Counter[tuple[str, str]] = Counter()
    for where, row in lines(path, report):
        if not isinstance(row, Mapping) or not row.keys() >= _ROW:
            report(BadRow(where, "it is not an object with 'conv', 'session' and 'date_time'."))
            continue
        talk = str(row["conv"]), str(row["session"])
        yield where, row, *talk, positions[talk], row["date_time"]
        positions[talk] += 1


def _item(where: str, turn: Any, name: str, session: str, place: int, date: Any) -> Item:
    if not isinstance(turn, Mapping):
        raise RowError(f"it is {type(turn).__name__}, not a turn.")
    caption = turn.get("blip_caption")
    return item(
        where,
        text=plain_text([turn.get("text"), f"[{caption}]" if caption else None]).replace("\n\n[", " ["),
        id=f"{name}:{turn.get('dia_id') or f'D{session}:{place + 1}'}",
        author=None if turn.get("speaker") is None else str(turn["speaker"]),
        session=f"{name}:{session}",
        position=place,
        created_at=moment(date, _DATE),
    )
