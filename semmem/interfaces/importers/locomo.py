"""LoCoMo's own file (Maharana et al. 2024), ``locomo10.json`` or a cut of it: one turn of a conversation a memory."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from semmem.errors import InvalidInput
from semmem.interfaces.importers.rows import BadRow, Item, Reject, RowError, document, item, moment, plain_text, refuse

__all__ = ["read"]

_SESSION = re.compile(r"session_(0|[1-9]\d*)")
_DATE = "%I:%M %p on %d %B, %Y"  # 1:56 pm on 8 May, 2023


def read(path: Path, *, reject: Reject | None = None) -> Iterator[Item]:
    """Yield one item a turn: ids ``conv-26:D1:3``, sessions ``conv-26:1``; an image's caption stands in brackets.

    A turn that cannot be stored goes to ``reject`` with its conversation, session and number; without ``reject`` it
    raises BadItem. Raises InvalidInput for a file of another form.
    """
    bad = reject or refuse
    samples = document(path)
    if not isinstance(samples, list) or not any(isinstance(s, Mapping) and "conversation" in s for s in samples):
        raise InvalidInput(f"{path} is not LoCoMo's file: that is a list of objects with a 'conversation' each.")
    for number, sample in enumerate(samples, 1):
        talk = sample.get("conversation") if isinstance(sample, Mapping) else None
        if not isinstance(talk, Mapping):
            bad(BadRow(f"conversation {number}", "it has no object 'conversation'."))
            continue
        name = str(sample.get("sample_id") or f"conversation-{number}")
        for session, turns in sorted((int(m[1]), talk[key]) for key in talk if (m := _SESSION.fullmatch(key))):
            for place, turn in enumerate(turns if isinstance(turns, list) else [turns]):
                where = f"conversation {number} ({name}), session {session}, turn {place + 1}"
                try:
                    yield _item(where, turn, name, session, place, talk.get(f"session_{session}_date_time"))
                except RowError as error:
                    bad(BadRow(where, str(error)))


def _item(where: str, turn: Any, name: str, session: int, place: int, date: Any) -> Item:
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
