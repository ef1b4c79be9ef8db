"""How far the hooks have stored a transcript; a file of the state folder remembers it for the next run."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from semmem.files import keep_state, private_folder, state, state_file
from semmem.importers.transcript import Question

__all__ = ["Progress", "progress_of", "rest_of_line"]


@dataclass(slots=True)
class Progress:
    """How far a transcript has been stored: bytes of the file, turns in them, and the question that is open."""

    file: Path
    offset: int = 0
    turns: int = 0
    question: Question | None = None

    def save(self) -> None:
        """Write it down, whole or not at all."""
        values: dict[str, Any] = {"offset": self.offset, "turns": self.turns}
        if self.question is not None:
            values["question"] = [self.question.author, self.question.text, self.question.stored]
        keep_state(self.file, values)


@contextmanager
def progress_of(transcript: Path, store: str) -> Iterator[Progress]:
    """Yield how far ``transcript`` is in ``store``, a name of it; another hook for the same waits meanwhile.

    A transcript that is shorter than what was read of it is another one, and is read from its beginning.
    """
    place = state_file("transcripts", f"{store}\n{transcript.absolute()}".encode(errors="surrogatepass"))
    private_folder(place.parent)
    lock = os.open(place.with_suffix(".lock"), os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield _stored_progress(place.with_suffix(".json"), transcript.stat().st_size)
    finally:
        os.close(lock)


def _stored_progress(file: Path, size: int) -> Progress:
    try:
        values = state(file)
        author, text, stored = values.get("question") or ("", "", False)
        question = Question(str(author), str(text), bool(stored)) if text else None
        progress = Progress(file, int(values["offset"]), int(values["turns"]), question)
    except (ValueError, KeyError, TypeError, OverflowError):
        return Progress(file)
    return progress if 0 <= progress.offset <= size and progress.turns >= 0 else Progress(file)


def rest_of_line(file: BinaryIO, size: int) -> int:
    """Return how long the line is of which ``size`` bytes were read, to its end; 0 where it is still being written."""
    while piece := file.read(1 << 20):
        end = piece.find(b"\n")
        if end >= 0:
            return size + end + 1
        size += len(piece)
    return 0
