"""semmem in the benchmark: one embedded store that grows from size to size, measured at each size."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import psycopg

import semmem
from eval.bench.generator import SHARES, Generator, Question, made_vector
from eval.bench.measures import asked, bytes_of, clients, percentiles, resident_mb
from eval.bench.others import sentence_transformers
from semmem.embedders import load
from semmem.stores.embedded.server import EmbeddedServer
from semmem.stores.postgres import vector_index
from semmem.text.passages import split
from semmem.write.ingest import MAX_CHARS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from semmem.model.protocols import Embedder

__all__ = ["Ours", "Prepared"]

_TABLES = """SELECT relname, pg_total_relation_size(oid) FROM pg_class
    WHERE relnamespace = 'semmem'::regnamespace AND relkind = 'r' ORDER BY 2 DESC"""
_SAMPLE = 256
_COLD = 3
_LOAD_S = 60.0
_TEXT_IN = "text in"
"""The namespace in which a sample is stored by its texts; it is dropped again."""
_MEANWHILE = "written meanwhile"
"""The session of what a writer stores beside readers; it is forgotten again."""
_LIST = 10_000
_STREAM_FROM = 200_000
"""New memories from which they are stored as one stream, in which nobody holds a list of them."""
Item = tuple[dict[str, Any], Any]


@contextmanager
def _timed(module: Any, name: str) -> Iterator[list[float]]:
    """Inside the block, note the seconds that each call of a function of ``module`` takes."""
    seconds: list[float] = []
    function = getattr(module, name)

    def timed(*arguments: Any, **keywords: Any) -> Any:
        start = time.perf_counter()
        try:
            return function(*arguments, **keywords)
        finally:
            seconds.append(time.perf_counter() - start)

    setattr(module, name, timed)
    try:
        yield seconds
    finally:
        setattr(module, name, function)


def _rate(embedder: Any, texts: Sequence[str]) -> float:
    """Return how many texts an embedder embeds in a second, once it is warm."""
    embedder.embed(texts[:8])
    start = time.perf_counter()
    embedder.embed(texts)
    return round(len(texts) / (time.perf_counter() - start), 1)


class Prepared:
    """An embedder with MiniLM's identity: memories get the vectors in ``at_hand``, questions those of the model."""

    def __init__(self, embedder: Embedder) -> None:
        self.inner = embedder
        self.name, self.dimensions = embedder.name, embedder.dimensions
        self.max_tokens: int | None = None  # a memory is split by its characters alone
        self.at_hand: list[Any] = []

    @property
    def fingerprint(self) -> str:
        """Fingerprint of the model's weights."""
        return self.inner.fingerprint

    def count_tokens(self, text: str) -> int:
        """Return the number of word pieces."""
        return self.inner.count_tokens(text)

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return the next vectors of ``at_hand``, or of the model where it is empty; (len(texts), dimensions)."""
        if not self.at_hand:
            return self.inner.embed(texts)
        out = np.stack(self.at_hand[: len(texts)])
        del self.at_hand[: len(texts)]
        return out

    def take(self, batch: Sequence[Item]) -> None:
        """Put the vectors of a batch at hand; all parts of a split text have the vector of the memory."""
        self.at_hand += [vector for item, vector in batch for _ in split(item["text"], max_chars=MAX_CHARS)]


class Ours:
    """A store in ``folder``; use as a context manager."""

    def __init__(self, folder: Path, generator: Generator, embedder: Embedder | None = None) -> None:
        self.folder = folder
        self.url = f"embedded://{folder.absolute()}"
        self.generator = generator
        self.embedder = Prepared(embedder or load("minilm"))
        self.namespace = "n0"
        self.in_memory = False  # whether the namespace was in this process's memory when it was asked last

    def __enter__(self) -> Ours:
        self.mem = semmem.connect(self.url, embedder=self.embedder, pool_size=10)
        self._tidy()
        return self

    def __exit__(self, *_: object) -> None:
        self.mem.close()
        EmbeddedServer(self.folder).stop()

    def _tidy(self) -> None:
        """Remove what an interrupted measurement has left: a sample stored by its texts, memories of the writer."""
        self.mem.drop_namespace(_TEXT_IN)
        self.mem.forget(namespace=self.namespace, filters={"sessions": [_MEANWHILE]})

    def grow(self, size: int) -> dict[str, Any]:
        """Store the first ``size`` memories with their vectors, and maintain; return rates (1/s) and seconds."""
        before = self.mem.stats().memories
        filled = (self._as_stream if size - before >= _STREAM_FROM else self._as_lists)(before, size)
        seconds = filled["remember_s"]
        with _timed(vector_index, "index") as indexing:
            start = time.perf_counter()
            self.mem.maintain()
            maintenance = time.perf_counter() - start
        rate = round((size - before) / seconds, 1) if seconds else None
        return {
            "stored": size - before,
            "memories_per_s": rate,
            **filled,
            "maintain_s": round(maintenance, 2),
            "index_s": round(sum(indexing), 2),  # of maintain_s
        }

    def _as_lists(self, first: int, last: int) -> dict[str, float]:
        """Store memories as lists that were made before the clock starts."""
        seconds = 0.0
        stream = self.generator.items(first, last)
        while batch := list(islice(stream, _LIST)):
            self.embedder.at_hand = []
            self.embedder.take(batch)
            start = time.perf_counter()
            self.mem.remember_many([item for item, _ in batch], batch_size=1000)
            seconds += time.perf_counter() - start
        return {"remember_s": round(seconds, 2)}

    def _as_stream(self, first: int, last: int) -> dict[str, float]:
        """Store memories as one stream; "grown_mb" is the most that this process had grown, looked at every 10,000.

        The seconds in which they are made are left out, though a flush of the batch before may go on meanwhile.
        """
        making, most = 0.0, 0.0
        before = resident_mb(os.getpid()) or 0.0

        def items() -> Iterator[dict[str, Any]]:
            nonlocal making, most
            start = time.perf_counter()
            for count, pair in enumerate(self.generator.items(first, last)):
                self.embedder.take([pair])
                if count % _LIST == 0:
                    most = max(most, resident_mb(os.getpid()) or 0.0)
                making += time.perf_counter() - start
                yield pair[0]
                start = time.perf_counter()

        self.embedder.at_hand = []
        start = time.perf_counter()
        self.mem.remember_many(items(), batch_size=1000)
        seconds = time.perf_counter() - start - making
        most = max(most, resident_mb(os.getpid()) or 0.0)
        return {"remember_s": round(seconds, 2), "grown_mb": round(most - before, 1)}

    def parts(self, size: int, stored: Mapping[str, Any]) -> dict[str, Any]:
        """Time what a sample takes: extraction, embedding by the real model, all with storing, and its competitor.

        "database_s" is how long ``stored``, the answer of ``grow``, took without extraction, estimated by its rate.
        """
        from semmem.extractors import Rules

        sample = [self.generator.memory(number) for number in range(max(0, size - _SAMPLE), size)]
        rules = Rules()
        start = time.perf_counter()
        for item in sample:
            rules.extract(item["text"], item["title"])
        extraction = time.perf_counter() - start
        texts = [item["text"] for item in sample]
        of_all = stored["stored"] * extraction / len(sample)
        rates = {
            "database_s": round(max(0.0, stored["remember_s"] - of_all), 2),
            "extraction_per_s": round(len(sample) / extraction, 1),
            "embedding_per_s": _rate(self.embedder.inner, texts),
        }
        if (other := sentence_transformers()) is not None:
            rates["sentence_transformers_per_s"] = _rate(other, texts)
        self.embedder.at_hand = []
        apart = [{**item, "namespace": _TEXT_IN} for item in sample]
        self.mem.remember_many({**item, "id": f"{item['id']} before"} for item in apart[:8])
        start = time.perf_counter()
        self.mem.remember_many(apart)
        rates["text_in_per_s"] = round(len(sample) / (time.perf_counter() - start), 1)
        self.mem.drop_namespace(_TEXT_IN)
        return rates

    def measured(self, questions: Sequence[Question], *, rounds: int) -> dict[str, Any]:
        """Time recalls: text in, vectors given, by leg, by filter, by clients, beside a writer, in a new process.

        The first two are also timed with nothing of the namespace in memory (resident_mb=0).
        """
        legs: dict[str, list[float]] = {}
        hits = 0

        def text_in(number: int, **more: Any) -> Any:
            return self.mem.recall(questions[number].text, namespace=self.namespace, **more)

        def with_vector(number: int, **more: Any) -> Any:
            return text_in(number, vector=questions[number].vector, **more)

        def by_leg(number: int) -> None:
            nonlocal hits
            answer = with_vector(number)
            hits += questions[number].about in [hit.memory.id for hit in answer]
            for leg, took in answer.timings.items():
                if leg != "total":  # the recall itself
                    legs.setdefault(leg, []).append(took)

        count = len(questions)
        self.in_memory = self._wait_until_in_memory(lambda: with_vector(0))
        out: dict[str, Any] = {"text in": asked(text_in, count, rounds=rounds)}
        out["vectors given"] = asked(by_leg, count, rounds=rounds)
        out["found"] = round(hits / (count * rounds + min(count, 20)), 3)
        with semmem.connect(self.url, embedder=self.embedder, pool_size=2, resident_mb=0) as plain:

            def of_disk(number: int, **more: Any) -> Any:
                return plain.recall(questions[number].text, namespace=self.namespace, **more)

            out["text in, resident_mb=0"] = asked(of_disk, count, rounds=rounds)
            out["vectors given, resident_mb=0"] = asked(
                lambda number: of_disk(number, vector=questions[number].vector), count, rounds=rounds
            )
        out["legs"] = {leg: percentiles(took) for leg, took in legs.items()}
        for recipe in ("lexical", "dense", "hybrid"):
            out[f"vectors given, {recipe}"] = asked(partial(with_vector, recipe=recipe), count, rounds=1)
        for tag in SHARES:
            out[f"filter: {tag}"] = asked(partial(with_vector, filters={"tags": [tag]}), count, rounds=1)
        for threads in (1, 8):
            out[f"clients: {threads}"] = clients(with_vector, count, threads)
        with self._writer():
            out["while writing"] = asked(with_vector, count, rounds=1)
        out["cold process"] = self._cold(questions)
        return out

    def _wait_until_in_memory(self, ask: Callable[[], Any]) -> bool:
        """Ask until the namespace is in memory, a minute at most; return whether it is, for one may not fit."""
        end = time.monotonic() + _LOAD_S
        ask()  # what is in memory of the size before is brought up to date, or goes
        while self.namespace not in self.mem.resident and self.mem.settings.resident_mb and time.monotonic() < end:
            ask()
            time.sleep(0.05)
        return self.namespace in self.mem.resident

    @contextmanager
    def _writer(self) -> Iterator[None]:
        """Store memories of another session in batches of twenty until the block ends; they are forgotten then."""
        stop = threading.Event()
        rest = iter(range(10**9, 2 * 10**9))

        def write() -> None:
            while not stop.is_set():
                batch = []
                for number in islice(rest, 20):
                    item = {
                        **self.generator.memory(number),
                        "session": _MEANWHILE,
                        "namespace": self.namespace,
                    }
                    batch.append({**item, "vector": None})
                self.embedder.at_hand = []
                writer.remember_many(batch)

        # an embedder of its own: the other one hands out its vectors in order
        with semmem.connect(self.url, embedder=_Seeded(self.embedder), pool_size=2) as writer:
            thread = threading.Thread(target=write)
            thread.start()
            try:
                yield
            finally:
                stop.set()
                thread.join()
                writer.forget(namespace=self.namespace, filters={"sessions": [_MEANWHILE]})

    def _cold(self, questions: Sequence[Question]) -> dict[str, Any]:
        """Time ``semmem recall`` as a process of its own, from its start to its end, with the server up.

        One process goes before and is not counted: it leaves the compiled modules that an installation has.
        """
        seconds = []
        command = [sys.executable, "-m", "semmem", "recall", "--url", self.url, "-n", self.namespace, "--json"]
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        environment["PYTHONPYCACHEPREFIX"] = str(self.folder.absolute().parent / "bytecode")
        for question in [questions[0], *questions[:_COLD]]:
            start = time.perf_counter()
            subprocess.run(
                [*command, question.text],
                check=True,
                env=environment,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            seconds.append(time.perf_counter() - start)
        return percentiles(seconds[1:])

    def server(self) -> str:
        """Return the address of the store's server, started where it did not run."""
        return EmbeddedServer(self.folder).ensure_running()

    def space(self) -> dict[str, Any]:
        """Return bytes on disk, and those of each table."""
        with psycopg.connect(self.server(), autocommit=True) as connection:
            connection.execute("CHECKPOINT")
            tables: dict[str, int] = dict(connection.execute(_TABLES).fetchall())
        return {
            "bytes": bytes_of(self.folder),
            "tables": {name: size for name, size in tables.items() if size > 65536},
        }

    def resident(self) -> dict[str, Any]:
        """Return the resident memory of this process, models and texts of the benchmark included, and of the server."""
        with psycopg.connect(self.server(), autocommit=True) as connection:
            pids = [row[0] for row in connection.execute("SELECT pid FROM pg_stat_activity").fetchall()]
        shares = [share for pid in pids if (share := resident_mb(pid)) is not None]
        return {"resident_mb": resident_mb(os.getpid()), "server_mb": round(sum(shares), 1) if shares else None}


class _Seeded:
    """An embedder with the identity of ``like`` whose vectors are drawn by the hash of the text."""

    def __init__(self, like: Prepared) -> None:
        self.name, self.dimensions = like.name, like.dimensions
        self.max_tokens: int | None = None
        self.fingerprint = like.fingerprint

    def count_tokens(self, text: str) -> int:
        return len(text.split())

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return np.stack([made_vector(text) for text in texts])
