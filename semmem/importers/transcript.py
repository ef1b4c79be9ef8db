"""The transcript of a session, as Claude Code and Codex write it: its turns, as the hooks store them and as items.

Both write JSON lines and only ever append. A line of Claude Code is ``{"type": "user" | "assistant", "message":
{"role", "content"}, "uuid", "sessionId", "timestamp"}``, one of Codex ``{"type": "response_item", "payload": {"type":
"message", "role", "content"}, "timestamp"}``, in its first versions the payload alone. Tool calls, their results,
thoughts, and blocks of the client (client_blocks) are no turns.

A question stands before the reply to it, in one turn, so that neither comes back without the other. An acknowledgement
is stored only as the answer to a question.

A turn has the same id, whether a hook stores it or ``read`` does, so nothing is stored twice.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from semmem.importers import BadRow, Reject, opened, refuse
from semmem.importers.client_blocks import words_of
from semmem.importers.turn_content import is_acknowledgement, is_answer, is_bare_question, question_in
from semmem.model.errors import InvalidInput
from semmem.model.imported_items import Item, item
from semmem.model.types import source_type_of

__all__ = ["FOLDERS", "TAG", "Question", "Reading", "Turn", "fields_of", "joined", "read", "reading", "storable"]

TAG = "transcript"
"""The tag of memories that are turns of a transcript."""

FOLDERS = ("~/.claude/projects", "~/.codex/sessions")
"""Where Claude Code and Codex keep their transcripts."""

_CODEX = ("session_meta", "response_item", "message")
_CLAUDE = ("user", "assistant", "summary", "system")
_ROLES = ("user", "assistant")
_TEXTS = ("text", "input_text", "output_text")
_LONGEST_QUESTION = 4_000
_NO_TURN = ("isMeta", "isSidechain", "isCompactSummary", "isApiErrorMessage")
"""Marks of Claude Code on lines that nobody said in the conversation."""


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn: who spoke, what was said, when, its place in the session from 1, and the id that the client gave it."""

    author: str
    text: str
    position: int
    at: str | None
    id: str | None
    session: str | None
    line: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Question:
    """A question that has no reply yet, who asks it, and whether a stored turn ends with it."""

    author: str
    text: str
    stored: bool = False


@dataclass(frozen=True, slots=True)
class Reading:
    """What was read: the turns to store, how many were said, the bytes of the lines, and a question that is open."""

    turns: list[Turn]
    said: int
    size: int
    question: Question | None = None


def reading(
    raw: bytes,
    first: int = 1,
    question: Question | None = None,
    *,
    reject: Callable[[int], None] = lambda line: None,
) -> Reading:
    """Read the whole lines of ``raw``; turns are numbered from ``first``, and ``question`` was open before.

    A last line without its end is still being written and is left for the next time. A line that is not JSON is left
    out; ``reject`` gets its number. A line with the id of an earlier one is a copy and is left out too.
    """
    whole = raw[: raw.rfind(b"\n") + 1]
    said: list[Turn] = []
    seen: set[str] = set()
    for number, line in enumerate(whole.split(b"\n"), 1):
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            if line.strip():
                reject(number)
            continue
        utterance = _utterance(row) if isinstance(row, dict) else None
        if utterance is None:
            continue
        author, text = utterance
        id, session = (row[name] if isinstance(row.get(name), str) else None for name in ("uuid", "sessionId"))
        if id is not None and id in seen:
            continue
        seen |= set() if id is None else {id}
        said.append(Turn(author, text, first + len(said), _time(row), id, session, number))
    stored, question = joined(said, question)
    return Reading(stored, len(said), len(whole), question)


def joined(said: Sequence[Turn], question: Question | None = None) -> tuple[list[Turn], Question | None]:
    """Return the turns to store, each question before the reply to it, and the question that has no reply yet.

    The reply of the model to a person is its last turn before the person speaks again: those before it tell what the
    model does meanwhile.
    """
    stored: list[Turn] = []
    for index, turn in enumerate(said):
        text = turn.text
        by_model = turn.author == "assistant"
        goes_on = index + 1 < len(said) and said[index + 1].author == turn.author
        meanwhile = question is not None and question.author != turn.author and by_model and goes_on
        replies = question is not None and question.author != turn.author and not meanwhile
        if is_acknowledgement(text) and not (replies and (by_model or is_answer(text))):
            continue
        bare = is_bare_question(text)
        if meanwhile and question is not None:
            stored += [] if bare else [turn]
            continue
        if question is not None and (replies or not question.stored):
            text = f"{question.text}\n\n{text}"
        open_still = question if question is not None and not replies and not question.stored else None
        if bare and len(text) <= _LONGEST_QUESTION:
            question = Question(turn.author, text)
            continue
        stored.append(replace(turn, text=text))
        asked = question_in(turn.text) or (open_still.text if open_still is not None else "")
        question = Question(turn.author, asked, stored=True) if asked else None
    return stored, question


def _utterance(row: Mapping[str, Any]) -> tuple[str, str] | None:
    """Return who said what in a line, None where nobody said anything."""
    if any(row.get(mark) for mark in _NO_TURN):
        return None
    kind = row.get("type")
    message = row.get("payload") if kind == "response_item" else row if kind == "message" else row.get("message")
    if not isinstance(message, dict) or (kind == "response_item" and message.get("type") != "message"):
        return None
    role, content = message.get("role"), message.get("content")
    if role not in _ROLES or message.get("model") == "<synthetic>":
        return None
    parts = content if isinstance(content, list) else [{"type": "text", "text": content}]
    words = [words_of(str(part["text"])) for part in parts if _is_text(part)]
    text = "\n\n".join(filter(None, words))
    return (role, storable(text)) if text else None


def storable(text: str) -> str:
    """Return ``text`` with a mark in place of NUL and of lone surrogates, which no store keeps."""
    return text.replace("\x00", "\ufffd").encode("utf-8", "replace").decode()


def _is_text(part: Any) -> bool:
    return isinstance(part, dict) and part.get("type") in _TEXTS and isinstance(part.get("text"), str)


def _time(row: Mapping[str, Any]) -> str | None:
    at = row.get("timestamp")
    try:
        datetime.fromisoformat(at)  # type: ignore[arg-type]  # what is no string is refused
    except (TypeError, ValueError):
        return None
    return at if isinstance(at, str) else None


def fields_of(turn: Turn, session: str, agent: str) -> dict[str, Any]:
    """Return the arguments of ``remember`` for a turn; its id is the client's, else made of session and position."""
    return {
        "id": f"turn:{turn.id or f'{session}:{turn.position}'}"[:1_000],
        "text": turn.text,
        "author": turn.author,
        "source_type": source_type_of(turn.author),
        "session": session[:1_000],
        "position": turn.position,
        "created_at": turn.at,
        "tags": [TAG],
        "metadata": {"agent": agent},
    }


def read(path: Path, *, reject: Reject | None = None) -> Iterator[Item]:
    """Yield one item per turn of a transcript, or of every ``*.jsonl`` in a folder and the folders in it.

    A session that goes on from another one begins with a copy of its turns; each turn is read once. A line that is not
    JSON, and in a folder a file that is not a transcript, goes to ``reject``; without ``reject`` it raises BadItem. A
    question at the end without a reply is left out. Raises InvalidInput where there is no transcript.
    """
    report = reject or refuse
    files = sorted(path.rglob("*.jsonl")) if path.is_dir() else [path]
    if not files:
        raise InvalidInput(f"There is no transcript in {path}: neither it nor a folder in it has a file *.jsonl.")
    seen: set[str] = set()
    for file in files:
        place = f"{file.relative_to(path)}, " if file != path else ""
        try:
            yield from _turns(file, place, report, seen)
        except (InvalidInput, OSError) as error:
            if file == path:
                raise
            reason = error.message if isinstance(error, InvalidInput) else f"it cannot be read: {error.strerror}."
            report(BadRow(place.removesuffix(", "), reason))


def _turns(file: Path, place: str, report: Reject, seen: set[str]) -> Iterator[Item]:
    with opened(file) as handle:
        raw = handle.read() + b"\n"
    origin = _origin(raw)
    if origin is None:
        if not raw.strip():
            return
        raise InvalidInput(f"{file} is not a transcript of Claude Code or Codex; import chat reads other chats.")
    agent, session = origin
    bad: list[int] = []
    turns = reading(raw, reject=bad.append).turns
    for line in bad:
        report(BadRow(f"{place}line {line}", "it is not JSON."))
    for turn in turns:
        fields = fields_of(turn, turn.session or session or file.stem, agent)
        if fields["id"] not in seen:
            seen.add(fields["id"])
            yield item(f"{place}line {turn.line}", **fields)


def _origin(raw: bytes) -> tuple[str, str | None] | None:
    """Return the client that wrote a transcript, and the session that Codex names in its first line; None: no client.

    The first versions of Codex begin with a line of ``id`` and ``timestamp`` that has no type.
    """
    for line in raw.split(b"\n"):
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if not isinstance(row, dict):
            continue
        kind = row.get("type")
        if kind in _CODEX or "record_type" in row or {"id", "instructions"} <= row.keys():
            head = row["payload"] if kind == "session_meta" and isinstance(row.get("payload"), dict) else row
            named = kind != "message" and kind != "response_item" and isinstance(head.get("id"), str)
            return "codex", head["id"] if named else None
        if "sessionId" in row or (kind in _CLAUDE and ("message" in row or "leafUuid" in row)):
            return "claude-code", None
    return None
