"""The transcript of a session, as Claude Code and Codex write it: its turns, read on from where the last run ended.

Both write JSON lines and only ever append. A line of Claude Code is ``{"type": "user" | "assistant", "message":
{"role", "content"}, "uuid", "sessionId", "timestamp"}``, one of Codex ``{"type": "response_item", "payload": {"type":
"message", "role", "content"}, "timestamp"}``, in its first versions the payload alone. Tool calls, their results,
thoughts, and blocks of the client (client_blocks) are no turns.

A question stands before the reply to it, in one turn, so that neither comes back without the other. An acknowledgement
is stored only as the answer to a question.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from hashlib import blake2b
from pathlib import Path
from typing import Any, BinaryIO

from semmem.doors.coding_agents.client_blocks import words_of
from semmem.doors.coding_agents.turn_content import is_acknowledgement, is_answer, is_bare_question, question_in
from semmem.files import new_file, state_folder

__all__ = ["Progress", "Question", "Reading", "Turn", "progress_of", "reading", "rest_of_line"]

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


def reading(raw: bytes, first: int = 1, question: Question | None = None) -> Reading:
    """Read the whole lines of ``raw``; turns are numbered from ``first``, and ``question`` was open before.

    A last line without its end is still being written and is left for the next time. A line that is no JSON is passed
    over.
    """
    whole = raw[: raw.rfind(b"\n") + 1]
    said: list[Turn] = []
    for line in whole.split(b"\n"):
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            continue
        utterance = _utterance(row) if isinstance(row, dict) else None
        if utterance is None:
            continue
        author, text = utterance
        identity = {name: row[name] for name in ("uuid", "sessionId") if isinstance(row.get(name), str)}
        said.append(Turn(author, text, first + len(said), _time(row), identity.get("uuid"), identity.get("sessionId")))
    stored, question = _with_questions(said, question)
    return Reading(stored, len(said), len(whole), question)


def _with_questions(said: Sequence[Turn], question: Question | None) -> tuple[list[Turn], Question | None]:
    """Return the turns to store, each question before the reply to it, and the question that has no reply yet.

    The reply of the model to a person is its last turn before the person speaks again: those before it tell what the
    model does meanwhile.
    """
    stored: list[Turn] = []
    for at, turn in enumerate(said):
        text = turn.text
        by_model = turn.author == "assistant"
        goes_on = at + 1 < len(said) and said[at + 1].author == turn.author
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


def rest_of_line(file: BinaryIO, size: int) -> int:
    """Return how long the line is of which ``size`` bytes were read, to its end; 0 where it is still being written."""
    while piece := file.read(1 << 20):
        end = piece.find(b"\n")
        if end >= 0:
            return size + end + 1
        size += len(piece)
    return 0


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
    return (role, text.replace("\x00", "\ufffd").encode("utf-8", "replace").decode()) if text else None


def _is_text(part: Any) -> bool:
    return isinstance(part, dict) and part.get("type") in _TEXTS and isinstance(part.get("text"), str)


def _time(row: Mapping[str, Any]) -> str | None:
    at = row.get("timestamp")
    try:
        datetime.fromisoformat(at)  # type: ignore[arg-type]  # what is no string is refused
    except (TypeError, ValueError):
        return None
    return at if isinstance(at, str) else None


@dataclass(slots=True)
class Progress:
    """How far a transcript has been stored: bytes of the file, turns in them, and the question that is open."""

    file: Path
    offset: int = 0
    turns: int = 0
    question: Question | None = None

    def save(self) -> None:
        """Write it down, whole or not at all."""
        with new_file(self.file, force=True) as out:
            values: dict[str, Any] = {"offset": self.offset, "turns": self.turns}
            if self.question is not None:
                values["question"] = [self.question.author, self.question.text, self.question.stored]
            out.write(json.dumps(values).encode())


@contextmanager
def progress_of(transcript: Path, store: str) -> Iterator[Progress]:
    """Yield how far ``transcript`` is in ``store``, a name of it; another hook for the same waits meanwhile.

    A transcript that is shorter than what was read of it is another one, and is read from its beginning.
    """
    folder = state_folder() / "transcripts"
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    name = blake2b(f"{store}\n{transcript.absolute()}".encode(errors="surrogatepass"), digest_size=12).hexdigest()
    lock = os.open(folder / f"{name}.lock", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield _stored_progress(folder / f"{name}.json", transcript.stat().st_size)
    finally:
        os.close(lock)


def _stored_progress(file: Path, size: int) -> Progress:
    try:
        values = json.loads(file.read_text(encoding="utf-8"))
        author, text, stored = values.get("question") or ("", "", False)
        question = Question(str(author), str(text), bool(stored)) if text else None
        progress = Progress(file, int(values["offset"]), int(values["turns"]), question)
    except (OSError, ValueError, KeyError, TypeError):
        return Progress(file)
    return progress if 0 <= progress.offset <= size and progress.turns >= 0 else Progress(file)
