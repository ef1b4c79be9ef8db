"""Read a long list with several processes: each finds what stands in a share of the texts, and compares a share.

A worker talks to its parent over a pipe, opens nothing, and ends when the parent closes the pipe or is gone. Where one
fails, this process does the work of all.
"""

from __future__ import annotations

import gc
import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Lock, Timer
from types import TracebackType
from typing import IO, Any, NamedTuple, Self, TypeVar

from semmem.model.exchange import Extraction
from semmem.model.process.machine import processors
from semmem.write.comparison import Group, Links, OnContradiction, compared

__all__ = ["EXTRACT", "LIKENESS", "SCREEN", "Found", "Pool", "TextRow", "found_in", "greeting", "main"]

EXTRACT, LIKENESS, SCREEN = 1, 2, 4
"""What is to be found in a text, as bits: its concepts, the keys of what is like it, the kinds of credentials in it."""
_FEWEST_CHARS = 200_000
"""A batch whose older texts have fewer characters together is compared by this process alone, in about .2 s."""
_PATIENCE_S = 120.0
"""A worker that has not answered after this time is ended."""
_PROGRAM = "import sys; sys.path[:] = sys.argv[1:]; from semmem.write.bulk import main; main()"
_running: set[int] = set()
"""The workers of this process that have not ended."""
T = TypeVar("T")


class TextRow(NamedTuple):
    """A text to be read: the extractor reads ``suffix`` behind it, "I" in it is the ``author``, ``what`` are bits."""

    text: str
    suffix: str
    title: str | None
    author: str | None
    what: int


class Found(NamedTuple):
    """What was found in a text; its ``credentials`` are their kinds."""

    extraction: Extraction | None
    likeness: tuple[int, ...]
    credentials: tuple[str, ...]


def found_in(rows: Sequence[TextRow], language: str) -> list[Found]:
    """Return what is found in each text."""
    from semmem.concepts.likeness import likeness_keys
    from semmem.concepts.rules import extract
    from semmem.write.screening import kinds_of

    alike = iter(likeness_keys([(row.text, row.author) for row in rows if row.what & LIKENESS]))
    return [
        Found(
            extract(row.text + row.suffix, row.title, language=language) if row.what & EXTRACT else None,
            tuple(next(alike)) if row.what & LIKENESS else (),
            tuple(kinds_of([row.text])) if row.what & SCREEN else (),
        )
        for row in rows
    ]


def greeting() -> str:
    """Return a worker's first message: the versions of all that it reads by, which must be those of its parent."""
    from semmem.concepts.likeness import LIKENESS as likeness
    from semmem.extractors import Rules
    from semmem.text.passages import SPLITTER

    return f"{Rules.version} {likeness} {SPLITTER} {sys.version}"


def main() -> None:
    """Answer messages (name of a task, its arguments) until the pipe is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent, which then closes the pipe
    if sys.implementation.name == "cpython":  # where counted references free all that a worker makes
        gc.disable()  # it took a sixth of the time
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # what anything prints is no answer
    with suppress(OSError, EOFError):
        _send(answers, greeting())
        while True:
            task, arguments = pickle.load(sys.stdin.buffer)
            _send(answers, _TASKS[task](*arguments))


_TASKS: dict[str, Callable[..., object]] = {"read": found_in, "compare": compared}


def _send(stream: IO[bytes], message: object) -> None:
    pickle.dump(message, stream, pickle.HIGHEST_PROTOCOL)
    stream.flush()


def _command() -> list[str] | None:
    """Return the command of a worker; None where this program is not run by a Python that can run another one."""
    program = sys.executable or ""
    if getattr(sys, "frozen", False) or not Path(program).name.lower().startswith(("python", "pypy")):
        return None
    here = str(Path(__file__).resolve().parents[2])
    texts = [path for path in sys.path if isinstance(path, str)]
    paths = dict.fromkeys([here, *(str(Path(path).absolute()) for path in texts)])  # what this process imports from
    return [program, "-I", "-S", *(["-B"] if sys.dont_write_bytecode else []), "-c", _PROGRAM, *paths]


class Pool:
    """Up to ``count`` workers; use as a context manager. It is empty where none can be started, or one has failed.

    One processor is left for this process, however many calls have workers at the same time.
    """

    def __init__(self, count: int, language: str) -> None:
        self._language = language
        self._workers: list[subprocess.Popen[bytes]] = []
        self._greeted = False
        self._lock = Lock()  # one batch is read while another one is compared
        count = min(count, processors() - 1 - len(_running))  # of all calls of this process together
        with suppress(OSError, ValueError):  # or no folder to work in is left, from which a path is taken
            command = _command() if count > 0 else None
            for _ in range(count if command is not None else 0):
                self._workers.append(self._start(command or ()))
                _running.add(self._workers[-1].pid)

    @staticmethod
    def _start(command: Sequence[str]) -> subprocess.Popen[bytes]:
        pipe = subprocess.PIPE
        return subprocess.Popen(  # signals of a terminal are for this process
            command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, start_new_session=True
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close()

    def __len__(self) -> int:
        return len(self._workers)

    def read(self, rows: Sequence[TextRow]) -> list[Found]:
        """Return what the workers find in texts, each one in a share of them; nothing where one of them fails."""
        if not rows:
            return []
        with self._lock, self._exchange() as is_possible:
            if is_possible:
                shares = _shares(rows, [len(row.text) for row in rows], len(self._workers))
                self._ask("read", [(share, self._language) for share in shares])
                found: list[Found] = [one for answer in self._answers() for one in answer]
                if len(found) != len(rows):
                    raise ValueError("a worker has left something out")
                return found
        return []

    def compare(self, groups: Sequence[Group], policy: OnContradiction) -> Links:
        """Return what ``comparison.compared`` does; workers and this process compare a share of long lists each."""
        sizes = [sum(len(other.text) for other in others) for _, others in groups]
        if sum(sizes) < _FEWEST_CHARS:
            return compared(groups, policy)
        with self._lock, self._exchange() as is_possible:
            if is_possible:
                own, *shares = _shares(groups, sizes, 1 + len(self._workers))
                self._ask("compare", [(share, policy) for share in shares])
                links = compared(own, policy)
                for answer in self._answers():
                    links |= answer
                return links
        return compared(groups, policy)

    @contextmanager
    def _exchange(self) -> Iterator[bool]:
        """Leave a block early in which a worker fails; yield False where there is none.

        Whatever ends the block early ends the workers, so no later exchange takes an answer to an earlier one for its
        own.
        """
        try:
            yield bool(self._workers)
        except (ConnectionError, EOFError, ValueError, pickle.UnpicklingError):
            self.close()
        except BaseException:
            self.close()
            raise

    def _ask(self, task: str, arguments: Sequence[tuple[object, ...]]) -> None:
        """Send each worker its task."""
        with self._patience():
            if not self._greeted and any(pickle.load(out) != greeting() for _, out in self._pipes()):
                raise ValueError("a worker reads by other rules")
            self._greeted = True
            for (into, _), own in zip(self._pipes(), arguments, strict=True):
                _send(into, (task, own))

    def _answers(self) -> list[Any]:
        """Return the answer of each worker."""
        with self._patience():
            return [pickle.load(out) for _, out in self._pipes()]

    def _pipes(self) -> list[tuple[IO[bytes], IO[bytes]]]:
        return [(one.stdin, one.stdout) for one in self._workers if one.stdin is not None and one.stdout is not None]

    @contextmanager
    def _patience(self) -> Iterator[None]:
        """End the workers where the block takes too long."""
        watch = Timer(_PATIENCE_S, self.kill)
        watch.daemon = True
        watch.start()
        try:
            yield
        finally:
            watch.cancel()

    def close(self) -> None:
        """End the workers, and wait for each."""
        workers, self._workers = self._workers, []
        for worker in workers:
            for stream in (worker.stdin, worker.stdout):
                with suppress(OSError):
                    if stream is not None:
                        stream.close()
        for worker in workers:
            worker.kill()  # it may be in the middle of a text, and holds nothing
            worker.wait()
            _running.discard(worker.pid)

    def kill(self) -> None:
        """End the workers at once, so that nobody waits for their answers any more."""
        for worker in self._workers:
            worker.kill()


def _shares(rows: Sequence[T], sizes: Sequence[int], count: int) -> list[Sequence[T]]:
    """Return rows as consecutive shares of about the same size."""
    total = sum(sizes)
    shares: list[list[T]] = [[] for _ in range(count)]
    before = 0
    for row, size in zip(rows, sizes, strict=True):
        shares[min(count - 1, before * count // max(1, total))].append(row)
        before += size
    return list(shares)
