"""Measure the path of a verb: the files and functions of semmem that a call enters, its calls, its round trips.

These are counts and not times, so the same code gives the same numbers on every machine:

- files, functions: those of the package semmem that are entered, comprehensions and generator expressions left out;
- calls: how often these functions are entered, on every thread; a generator counts each time it resumes;
- round trips to PostgreSQL: how often the client waits for the server, however many statements it has sent since its
  last wait. A statement by itself is one, ``BEGIN`` and ``COMMIT`` by themselves are one each, a ``COPY`` is two (its
  start and its end). In a pipeline each point is one at which a result is needed before more can be sent, and so is its
  end. Waits side by side, on the connections of several legs, are counted one by one;
- round trips to SQLite, which has no server: the statements that are executed, ``BEGIN`` and ``COMMIT`` included, each
  once for however many rows, without the settings of a new connection.

Connections that a pool makes on its own threads are not counted.
"""

from __future__ import annotations

import collections
import json
import os
import sqlite3
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, TypeVar

import psycopg
from psycopg.pq import TransactionStatus

import eval.datasets as datasets
import semmem
from semmem.stores.embedded.server import EmbeddedServer
from semmem.stores.sql_files import statements

__all__ = ["Counter", "Counts", "fill", "installed", "measure", "measured"]

T = TypeVar("T")

DATA = Path(__file__).resolve().parent / "data" / "harbour"
_FIRST, _SECOND = "hq15", "hq21"
_NEW = {
    "path-1": "Sunniva Holt painted the hull of the Redshank in April.",
    "path-2": "Piers Landrake mended the pump of the Constance in May.",
}
_SEMMEM = str(Path(semmem.__file__).resolve().parent) + os.sep
_INLINE = {"<module>", "<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>"}
_CONNECTING = {"ensure_running", "_conninfo"}
_SENT = {"copy_to", "BasePipeline._enter_gen"}
"""Generators that psycopg's ``wait`` runs, and that do not wait for the server."""
_PIPELINED = {"BasePipeline._exit_gen", "BasePipeline._fetch_gen", "BasePipeline._sync_gen"}
"""Generators that wait for answers in a pipeline; all others there only send."""
_ENDING = {"BaseConnection._commit_gen", "BaseConnection._rollback_gen"}
"""Generators that the pool runs when a connection comes back; they send nothing where no transaction is open."""
_TOLD = {"BaseTransaction._enter_gen": "BEGIN", "BaseTransaction._exit_gen": "COMMIT", "copy_end": "COPY end"}


@dataclass(frozen=True, slots=True)
class Counts:
    """The counts of one call; ``trips`` counts the round trips by statement.

    ``entered`` are the files in the order in which they are first entered, with how many functions of each.
    """

    functions: int
    calls: int
    trips: Mapping[str, int]
    entered: Mapping[str, int]

    @property
    def files(self) -> int:
        """How many files were entered."""
        return len(self.entered)

    def as_dict(self) -> dict[str, Any]:
        """Return plain JSON-ready values."""
        counts = {"files": self.files, "functions": self.functions, "calls": self.calls}
        trips = {"round_trips": sum(self.trips.values()), "trips": dict(self.trips)}
        return {**counts, **trips, "entered": dict(self.entered)}


@dataclass(slots=True)
class Counter:
    """Records calls and round trips while ``on``, in lists, to which several threads can append safely."""

    on: bool = False
    calls: list[CodeType] = field(default_factory=list)
    trips: list[str] = field(default_factory=list)

    def profile(self, frame: FrameType, event: str, arg: Any) -> None:
        """Record a call of a function of semmem."""
        if not self.on or event != "call":
            return
        code = frame.f_code
        if not code.co_filename.startswith(_SEMMEM) or code.co_name in _INLINE or _of_the_pool():
            return
        if not _connects(frame):
            self.calls.append(code)

    def trip(self, what: str) -> None:
        """Record a round trip."""
        if self.on and not _of_the_pool():
            self.trips.append(what)

    @contextmanager
    def counting(self) -> Iterator[None]:
        """Count from nothing until the end of the block."""
        self.calls, self.trips, self.on = [], [], True
        try:
            yield
        finally:
            self.on = False

    def counts(self) -> Counts:
        """Return the counts of the last block."""
        functions = dict.fromkeys(self.calls)
        entered = collections.Counter(code.co_filename.removeprefix(_SEMMEM).replace(os.sep, "/") for code in functions)
        return Counts(len(functions), len(self.calls), dict(sorted(collections.Counter(self.trips).items())), entered)


def _of_the_pool() -> bool:
    return threading.current_thread().name.startswith(("semmem-worker", "semmem-scheduler"))


def _connects(frame: FrameType | None) -> bool:
    """Return whether a call is for a new connection, which is wanted where legs happen to need several at once."""
    while frame is not None:
        if frame.f_code.co_name in _CONNECTING:
            return True
        frame = frame.f_back
    return False


@contextmanager
def installed(counter: Counter) -> Iterator[None]:
    """Make functions, psycopg and sqlite3 report to ``counter``, in this thread and in threads started meanwhile."""
    names = {sql: name for kind in ("postgres", "sqlite") for name, sql in statements(kind).items()}
    wait, connect = psycopg.Connection.wait, sqlite3.connect

    def counting_wait(self: Any, gen: Any, *args: Any, **options: Any) -> Any:
        if (statement := _statement_of_wait(self, gen)) is not None:
            counter.trip(_name_of(statement, names))
        return wait(self, gen, *args, **options)

    def traced(factory: type[sqlite3.Connection]) -> type[sqlite3.Connection]:
        class Traced(factory):  # type: ignore[valid-type, misc]
            def execute(self, sql: str, /, *args: Any) -> sqlite3.Cursor:
                if not sql.startswith("PRAGMA"):  # of a new connection, which some leg opens now or later
                    counter.trip(_name_of(sql, names))
                return super().execute(sql, *args)  # type: ignore[no-any-return]

            def executemany(self, sql: str, rows: Any, /) -> sqlite3.Cursor:
                counter.trip(_name_of(sql, names))
                return super().executemany(sql, rows)  # type: ignore[no-any-return]

        return Traced

    def counting_connect(*args: Any, factory: type[sqlite3.Connection] = sqlite3.Connection, **options: Any) -> Any:
        return connect(*args, factory=traced(factory), **options)

    psycopg.Connection.wait = counting_wait  # type: ignore[method-assign]
    sqlite3.connect = counting_connect
    before = sys.getprofile()
    threading.setprofile(counter.profile)
    sys.setprofile(counter.profile)
    try:
        yield
    finally:
        sys.setprofile(before)
        threading.setprofile(None)
        psycopg.Connection.wait, sqlite3.connect = wait, connect  # type: ignore[method-assign]


def _statement_of_wait(connection: Any, gen: Any) -> str | None:
    """Return the statement whose answer ``gen`` waits for on ``connection``; None where it only sends."""
    what = gen.__qualname__
    if connection.pgconn.pipeline_status:
        inner = what == "BasePipeline._enter_gen" and connection._pipeline.command_queue
        return "pipeline" if what in _PIPELINED or inner else None
    if what in _SENT or (what in _ENDING and connection.pgconn.transaction_status == TransactionStatus.IDLE):
        return None
    variables = getattr(getattr(gen, "gi_frame", None), "f_locals", {})
    return str(variables.get("query") or variables.get("statement") or _TOLD.get(what, what))


def _name_of(sql: Any, names: Mapping[str, str]) -> str:
    """Return the name of a statement, or its first two words where it has none."""
    return names.get(sql, " ".join(str(sql).split()[:2]))


def measure(url: str) -> dict[str, Counts]:
    """Call each verb on a store that ``fill`` has filled; return the counts by verb."""
    corpus = datasets.load(DATA)
    where, questions = corpus.namespaces[0], {query.id: query.text for query in corpus.queries}
    counter, counts = Counter(), dict[str, Counts]()

    def count(verb: str, call: Callable[[], T]) -> T:
        with counter.counting():
            answer = call()
        counts[verb] = counter.counts()
        return answer

    with installed(counter), semmem.connect(url, embedder="hashing", resident_mb=0) as mem:
        assert mem._here.ingest  # the write pipeline is created once in a process: no part of a verb's path
        for verb, (id, text) in zip(("remember", "remember, warm"), _NEW.items(), strict=True):
            fields: Any = {"id": id, "namespace": where, "author": "harbour office", "tags": ["boats"]}
            count(verb, partial(mem.remember, text, **fields))
        answer = count("recall", lambda: mem.recall(questions[_FIRST], namespace=where))
        count("explain", lambda: answer.explain(answer[0].id))
        count("recall, warm", lambda: mem.recall(questions[_SECOND], namespace=where))
        with semmem.connect(url, embedder="hashing") as resident:
            for text in questions.values():
                resident.recall(text, namespace=where)
            count("recall, resident", lambda: resident.recall(questions[_SECOND], namespace=where))
        count("forget", lambda: mem.forget("path-1", namespace=where))
    return counts


def fill(url: str) -> str:
    """Remember the corpus in an empty store; return which kind of store it is. Raises DatasetError where it is not."""
    corpus = datasets.load(DATA)
    with semmem.connect(url, embedder="hashing") as mem:
        if mem.stats().memories:
            raise datasets.DatasetError(f"The store {url} holds memories; name an empty one.")
        mem.remember_many(corpus.memories)
        mem.maintain()
        return str(mem.store.kind)


def measured(urls: Sequence[str] = ()) -> dict[str, dict[str, Any]]:
    """Return the counts of each verb, by store; each store is measured in a process of its own.

    Without a URL they are an embedded PostgreSQL and a SQLite file in a temporary folder.
    """
    if urls:
        return {fill(url): _in_a_process(url) for url in urls}
    with tempfile.TemporaryDirectory(prefix="semmem-path-") as folder:
        place = Path(folder) / "server"
        try:
            return measured([f"embedded://{place}", f"sqlite:{folder}/path.db"])
        finally:
            EmbeddedServer(place).stop("immediate")


def _in_a_process(url: str) -> dict[str, Any]:
    process = subprocess.run(
        [sys.executable, "-m", "eval.path", url],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).resolve().parents[1],
        env={**os.environ, "SEMMEM_CONFIG": "", "PYTHONHASHSEED": "0"},
    )
    counts: dict[str, Any] = json.loads(process.stdout)
    return counts


if __name__ == "__main__":
    print(json.dumps({verb: counts.as_dict() for verb, counts in measure(sys.argv[1]).items()}))
