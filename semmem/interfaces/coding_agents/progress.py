"""How far the hooks have stored a transcript; a file of the state folder remembers it for the next run."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
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
    transcript: Path
    offset: int = 0
    turns: int = 0
    question: Question | None = None

    def save(self) -> None:
        """Write it down, whole or not at all; the first time, remove what was noted of transcripts that are gone."""
        if not self.file.exists():
            _remove_gone(self.file.parent)
        values: dict[str, Any] = {
            "transcript": str(self.transcript.absolute()), "offset": self.offset, "turns": self.turns,
        }  # fmt: skip
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
        yield _stored_progress(place.with_suffix(".json"), transcript)
    finally:
        os.close(lock)


def _remove_gone(folder: Path) -> None:
    """Remove the files whose transcript is gone; they may hold a question of it."""
    for file in folder.glob("*.json"):
        transcript = state(file).get("transcript")
        with suppress(OSError, ValueError):
            if isinstance(transcript, str) and not Path(transcript).exists():
                file.unlink()


def _stored_progress(file: Path, transcript: Path) -> Progress:
    size = transcript.stat().st_size
    try:
        values = state(file)
        author, text, stored = values.get("question") or ("", "", False)
        question = Question(str(author), str(text), bool(stored)) if text else None
        progress = Progress(file, transcript, int(values["offset"]), int(values["turns"]), question)
    except (ValueError, KeyError, TypeError, OverflowError):
        return Progress(file, transcript)
    return progress if 0 <= progress.offset <= size and progress.turns >= 0 else Progress(file, transcript)


def rest_of_line(file: BinaryIO, size: int) -> int:
    """Return how long the line is of which ``size`` bytes were read, to its end; 0 where it is still being written."""
    while piece := file.read(1 << 20):
        end = piece.find(b"\n")
        if end >= 0:
            return size + end + 1
        size += len(piece)
    return 0
