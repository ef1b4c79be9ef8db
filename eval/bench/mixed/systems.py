"""The systems of the mixed load: semmem and others, each used as its documentation says, with vectors given.

Each is filled once, closed, and opened again for the load. A system without namespaces keeps the namespace as a field
and filters by it. ``note`` says how a system is used, and is printed beside its numbers.
"""

from __future__ import annotations

import json
import os
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import psycopg

import semmem
from eval.bench.mixed.processes import SPAWN, end_with_parent
from eval.bench.others import lacking
from semmem.stores.embedded.server import EmbeddedServer

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["SYSTEMS", "Item", "System", "absent"]

_HITS = 10
_LIST = 10_000
"""Memories that a system is given at once when it is filled."""
_LONG, _BATCH = 50_000, 2_000
"""Memories of a list and of a batch for semmem, which reads a list in two processes and a stream in one."""
_THREADS = 16
"""Connections that a system may open: one for each thread of the load, and some more."""
_PIDS = "SELECT pid FROM pg_stat_activity"


@dataclass(frozen=True, slots=True)
class Item:
    """A memory as every system gets it."""

    id: str
    namespace: str
    title: str | None
    text: str
    vector: NDArray[Any]

    @property
    def shown(self) -> str:
        """Title and text as one, for a system that has no titles."""
        return f"{self.title}\n{self.text}" if self.title else self.text


class System(ABC):
    """A system, open over the folder in which its memories are."""

    note: ClassVar[str]
    needs: ClassVar[tuple[str, ...]] = ()
    degraded: Sequence[str] = ()
    """Of each recall that said that a part of it had failed, which part."""

    @abstractmethod
    def __init__(self, folder: Path) -> None: ...

    @abstractmethod
    def fill(self, items: Iterator[Item]) -> None:
        """Store the memories of an empty system and prepare them for recalls."""

    @abstractmethod
    def recall(self, namespace: str, text: str, vector: NDArray[Any]) -> list[str]:
        """Return the ids of ten memories of a namespace, best first."""

    @abstractmethod
    def remember(self, items: Sequence[Item]) -> None:
        """Store a few memories of one namespace."""

    def update(self, item: Item) -> None:
        """Give the memory with the id of ``item`` its text and vector."""
        self.remember([item])

    @abstractmethod
    def forget(self, namespace: str, id: str) -> None:
        """Remove a memory."""

    def upkeep(self) -> None:  # noqa: B027  # most have none
        """Do what the documentation says to do from time to time."""

    def servers(self) -> list[int]:
        """Return the ids of the processes that serve it."""
        return []

    def close(self) -> None:  # noqa: B027  # some have nothing to release
        """Release files, connections and processes."""


def absent(name: str) -> str | None:
    """Return a sentence that says what is not installed for the system ``name``, None where all is."""
    return lacking(name, SYSTEMS[name].needs)


def _batches(items: Iterator[Item], size: int = _LIST) -> Iterator[list[Item]]:
    while batch := list(islice(items, size)):
        yield batch


class Embedded(System):
    """semmem, PostgreSQL."""

    note = (
        "embedded PostgreSQL, three legs, default settings, filled by lists of 50,000; maintain is its upkeep, in a "
        "process of its own"
    )

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.degraded: list[str] = []
        self._upkeep: list[int] = []
        self._mem = semmem.connect(self._url(folder), embedder="none", pool_size=_THREADS)

    def _url(self, folder: Path) -> str:
        return f"embedded://{folder.absolute()}"

    def fill(self, items: Iterator[Item]) -> None:
        for batch in _batches(items, _LONG):
            self._mem.remember_many(list(map(_fields, batch)), batch_size=_BATCH)
        self._mem.maintain()

    def recall(self, namespace: str, text: str, vector: NDArray[Any]) -> list[str]:
        answer = self._mem.recall(text, namespace=namespace, vector=vector, limit=_HITS)
        self.degraded += [f"{leg}: {why}" for leg, why in answer.degraded.items()]
        return [hit.memory.id for hit in answer]

    def remember(self, items: Sequence[Item]) -> None:
        self._mem.remember_many([_fields(item) for item in items])

    def update(self, item: Item) -> None:
        self._mem.update(item.id, namespace=item.namespace, text=item.text, vector=item.vector)

    def forget(self, namespace: str, id: str) -> None:
        self._mem.forget(id, namespace=namespace)

    def upkeep(self) -> None:
        with ProcessPoolExecutor(1, SPAWN, end_with_parent) as process:
            self._upkeep = [process.submit(os.getpid).result()]
            try:
                process.submit(_maintained, self._url(self._folder)).result()
            finally:
                self._upkeep = []

    def servers(self) -> list[int]:
        return _pids(EmbeddedServer(self._folder).ensure_running()) + self._upkeep

    def close(self) -> None:
        self._mem.close()
        EmbeddedServer(self._folder).stop()


class OneFile(Embedded):
    """semmem, SQLite."""

    note = "one SQLite file, three legs, default settings, filled by lists of 50,000; maintain is its upkeep"

    def _url(self, folder: Path) -> str:
        return f"sqlite:{folder.absolute() / 'semmem.db'}"

    def upkeep(self) -> None:
        self._mem.maintain()

    def servers(self) -> list[int]:
        return []

    def close(self) -> None:
        self._mem.close()


def _maintained(url: str) -> None:
    with semmem.connect(url, embedder="none") as mem:
        mem.maintain()


def _fields(item: Item) -> dict[str, Any]:
    named = {"id": item.id, "namespace": item.namespace, "title": item.title, "text": item.text}
    return {**named, "vector": item.vector}


def _pids(server: str) -> list[int]:
    with psycopg.connect(server, autocommit=True) as connection:
        own = connection.info.backend_pid
        return [pid for (pid,) in connection.execute(_PIDS).fetchall() if pid != own]


class Lance(System):
    """LanceDB's hybrid search."""

    note = (
        "hybrid search, a filter by namespace with a scalar index, a full-text index, no index of vectors; optimize is "
        "its upkeep"
    )
    needs = ("lancedb", "pyarrow")

    def __init__(self, folder: Path) -> None:
        self._database: Any = import_module("lancedb").connect(str(folder))
        names = self._database.table_names()
        self._table: Any = self._database.open_table("memories") if "memories" in names else None

    def fill(self, items: Iterator[Item]) -> None:
        for batch in _batches(items):
            if self._table is None:
                self._table = self._database.create_table("memories", _arrow(batch))
            else:
                self._table.add(_arrow(batch))
        index: Any = import_module("lancedb.index")
        self._table.create_index("text", config=index.FTS())
        for column in ("namespace", "id"):
            self._table.create_index(column, config=index.BTree())
        self.upkeep()

    def recall(self, namespace: str, text: str, vector: NDArray[Any]) -> list[str]:
        search = self._table.search(query_type="hybrid").vector(vector).text(text)
        return [row["id"] for row in search.where(f"namespace = '{namespace}'").limit(_HITS).to_list()]

    def remember(self, items: Sequence[Item]) -> None:
        self._table.add(_arrow(items))

    def update(self, item: Item) -> None:
        self._table.merge_insert("id").when_matched_update_all().execute(_arrow([item]))

    def forget(self, namespace: str, id: str) -> None:
        self._table.delete(f"id = '{id}' AND namespace = '{namespace}'")

    def upkeep(self) -> None:
        self._table.optimize()


def _arrow(items: Sequence[Item]) -> Any:
    import numpy as np

    pa: Any = import_module("pyarrow")
    flat = pa.array(np.concatenate([item.vector for item in items]).astype(np.float32))
    return pa.table(
        {
            "id": [item.id for item in items],
            "namespace": [item.namespace for item in items],
            "text": [item.shown for item in items],
            "vector": pa.FixedSizeListArray.from_arrays(flat, len(items[0].vector)),
        }
    )


class Qdrant(System):
    """Qdrant's local mode."""

    note = (
        "local mode: vectors alone, all in memory and compared one by one, a filter by namespace; one call at a time, "
        "since its lists are not made for several threads"
    )
    needs = ("qdrant_client",)

    def __init__(self, folder: Path) -> None:
        self._models: Any = import_module("qdrant_client.models")
        client: Any = import_module("qdrant_client").QdrantClient
        self._client = client(path=str(folder), force_disable_check_same_thread=True)
        self._one_at_a_time = threading.Lock()

    def fill(self, items: Iterator[Item]) -> None:
        for batch in _batches(items, 1_000):
            if not self._client.collection_exists("memories"):
                size = len(batch[0].vector)
                how = self._models.VectorParams(size=size, distance=self._models.Distance.COSINE)
                self._client.create_collection("memories", vectors_config=how)
            self.remember(batch)

    def recall(self, namespace: str, text: str, vector: NDArray[Any]) -> list[str]:
        same = self._models.FieldCondition(key="namespace", match=self._models.MatchValue(value=namespace))
        with self._one_at_a_time:
            found = self._client.query_points(
                "memories", query=vector.tolist(), query_filter=self._models.Filter(must=[same]), limit=_HITS
            )
        return [point.payload["id"] for point in found.points]

    def remember(self, items: Sequence[Item]) -> None:
        points = [
            self._models.PointStruct(
                id=int(item.id[1:]),
                vector=item.vector.tolist(),
                payload={"id": item.id, "namespace": item.namespace, "text": item.shown},
            )
            for item in items
        ]
        with self._one_at_a_time:
            self._client.upsert("memories", points)

    def forget(self, namespace: str, id: str) -> None:
        with self._one_at_a_time:
            self._client.delete("memories", points_selector=[int(id[1:])])

    def close(self) -> None:
        self._client.close()


class Txtai(System):
    """txtai's hybrid index with its content in SQLite."""

    note = (
        "hybrid index in memory, a filter by namespace over its first 1,000 candidates; one call at a time, as its own "
        "server does; on disk only once it is closed"
    )
    needs = ("txtai",)
    _QUERY = "SELECT id FROM txtai WHERE similar(:text, 1000) AND namespace = :namespace LIMIT 10"

    def __init__(self, folder: Path) -> None:
        os.environ["ALLOW_RESOLVE_TRANSFORM"] = "True"  # a function named by its module gives the vectors
        self._folder = str(folder / "index")
        how = {"method": "external", "transform": f"{__name__}.given_vectors", "hybrid": True, "content": True}
        self._embeddings: Any = import_module("txtai").Embeddings(how)
        if self._embeddings.exists(self._folder):
            self._embeddings.load(self._folder)
        self._one_at_a_time = threading.Lock()

    def fill(self, items: Iterator[Item]) -> None:
        def rows() -> Iterator[tuple[str, dict[str, str], None]]:
            for item in items:
                _GIVEN.vectors[item.shown] = item.vector
                yield item.id, {"text": item.shown, "namespace": item.namespace}, None

        with _given({}):
            self._embeddings.index(rows())

    def recall(self, namespace: str, text: str, vector: NDArray[Any]) -> list[str]:
        with self._one_at_a_time, _given({text: vector}):
            found = self._embeddings.search(self._QUERY, parameters={"text": text, "namespace": namespace})
        return [row["id"] for row in found]

    def remember(self, items: Sequence[Item]) -> None:
        rows = [(item.id, {"text": item.shown, "namespace": item.namespace}, None) for item in items]
        with self._one_at_a_time, _given({item.shown: item.vector for item in items}):
            self._embeddings.upsert(rows)

    def forget(self, namespace: str, id: str) -> None:
        with self._one_at_a_time:
            self._embeddings.delete([id])

    def close(self) -> None:
        self._embeddings.save(self._folder)
        self._embeddings.close()


class LangGraph(System):
    """LangGraph's PostgresStore."""

    note = "vectors alone, an HNSW index, a namespace of its own for each of ours, a pool of connections"
    needs = ("langgraph.store.postgres",)

    def __init__(self, folder: Path) -> None:
        self._put: Any = import_module("langgraph.store.base").PutOp
        self._server = EmbeddedServer(folder)
        self._dimensions = folder / "dimensions.json"
        self._context: AbstractContextManager[Any] = nullcontext()
        self._langgraph: Any = None
        if self._dimensions.exists():
            self._enter(json.loads(self._dimensions.read_text(encoding="utf-8")))

    def _enter(self, dimensions: int) -> None:
        library: Any = import_module("langgraph.store.postgres")
        self._context = library.PostgresStore.from_conn_string(
            self._server.ensure_running(),
            pool_config={"min_size": _THREADS, "max_size": _THREADS},
            index={"dims": dimensions, "embed": given_lists, "fields": ["text"]},
        )
        self._langgraph = self._context.__enter__()
        self._langgraph.setup()

    def fill(self, items: Iterator[Item]) -> None:
        for batch in _batches(items, 500):
            if self._langgraph is None:
                self._enter(len(batch[0].vector))
                self._dimensions.write_text(json.dumps(len(batch[0].vector)), encoding="utf-8")
            self.remember(batch)

    def recall(self, namespace: str, text: str, vector: NDArray[Any]) -> list[str]:
        with _given({text: vector}):
            return [found.key for found in self._langgraph.search((namespace,), query=text, limit=_HITS)]

    def remember(self, items: Sequence[Item]) -> None:
        with _given({item.shown: item.vector for item in items}):
            self._langgraph.batch([self._put((item.namespace,), item.id, {"text": item.shown}) for item in items])

    def forget(self, namespace: str, id: str) -> None:
        self._langgraph.delete((namespace,), id)

    def servers(self) -> list[int]:
        return _pids(self._server.ensure_running())

    def close(self) -> None:
        self._context.__exit__(None, None, None)
        self._server.stop()


class _Given(threading.local):
    """The vectors of the texts that the calling thread hands to a library which asks for them."""

    def __init__(self) -> None:
        self.vectors: dict[str, NDArray[Any]] = {}


_GIVEN = _Given()


@contextmanager
def _given(vectors: dict[str, NDArray[Any]]) -> Iterator[None]:
    _GIVEN.vectors = vectors
    try:
        yield
    finally:
        _GIVEN.vectors = {}


def given_vectors(texts: Sequence[str]) -> NDArray[Any]:
    """Return the vectors of texts as rows; each is handed over once, so that a stream keeps none."""
    import numpy as np

    return np.stack([_GIVEN.vectors.pop(text) for text in texts])


def given_lists(texts: Sequence[str]) -> list[list[float]]:
    """Return the vectors of texts as lists."""
    lists: list[list[float]] = given_vectors(texts).tolist()
    return lists


SYSTEMS: Mapping[str, type[System]] = {
    "semmem": Embedded,
    "semmem, SQLite": OneFile,
    "LanceDB": Lance,
    "Qdrant, local": Qdrant,
    "txtai": Txtai,
    "LangGraph PostgresStore": LangGraph,
}
