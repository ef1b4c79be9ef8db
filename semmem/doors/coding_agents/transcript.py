"""The transcript of a session, as Claude Code and Codex write it: its turns, read on from where the last run ended.

Both write JSON lines and only ever append. A line of Claude Code is ``{"type": "user" | "assistant", "message":
{"role", "content"}, "uuid", "sessionId", "timestamp"}``, one of Codex ``{"type": "response_item", "payload": {"type":
"message", "role", "content"}, "timestamp"}``. Tool calls, their results, thoughts, and what a client puts in by itself
are no turns.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from hashlib import blake2b
from pathlib import Path
from typing import Any, BinaryIO

from semmem.files import new_file, state_folder

__all__ = ["Progress", "Turn", "progress_of", "rest_of_line", "turns"]

_ROLES = ("user", "assistant")
_TEXTS = ("text", "input_text", "output_text")
_CLIENTS_OWN = (
    "<command-", "<local-command-", "<environment_context>", "<user_instructions>", "<system-reminder>",
    "<user-prompt-submit-hook>",
)  # fmt: skip
"""How texts begin that a client has put between the turns."""


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn: who spoke, what was said, when, its place in the session from 1, and the id that the client gave it."""

    author: str
    text: str
    position: int
    at: str | None
    id: str | None
    session: str | None


def turns(raw: bytes, first: int) -> tuple[list[Turn], int]:
    """Return the turns in the whole lines of ``raw``, numbered from ``first``, and how many bytes these lines have.

    A last line without its end is still being written and is left for the next time. A line that is no JSON is passed
    over.
    """
    whole = raw[: raw.rfind(b"\n") + 1]
    out: list[Turn] = []
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
        out.append(Turn(author, text, first + len(out), _time(row), identity.get("uuid"), identity.get("sessionId")))
    return out, len(whole)


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
    if row.get("isMeta") or row.get("isSidechain"):
        return None
    message = row.get("payload") if row.get("type") == "response_item" else row.get("message")
    if not isinstance(message, dict) or (row.get("type") == "response_item" and message.get("type") != "message"):
        return None
    role, content = message.get("role"), message.get("content")
    if role not in _ROLES:
        return None
    if isinstance(content, list):
        content = "\n\n".join(part["text"] for part in content if _is_text(part))
    if not isinstance(content, str) or not content.strip() or content.lstrip().startswith(_CLIENTS_OWN):
        return None
    return role, content.replace("\x00", "\ufffd").encode("utf-8", "replace").decode()


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
    """How far a transcript has been stored: bytes of the file, and turns in them."""

    file: Path
    offset: int = 0
    turns: int = 0

    def save(self) -> None:
        """Write it down, whole or not at all."""
        with new_file(self.file, force=True) as out:
            out.write(json.dumps({"offset": self.offset, "turns": self.turns}).encode())


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
        progress = Progress(file, int(values["offset"]), int(values["turns"]))
    except (OSError, ValueError, KeyError, TypeError):
        return Progress(file)
    return progress if 0 <= progress.offset <= size and progress.turns >= 0 else Progress(file)
