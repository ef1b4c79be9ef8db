"""The systems under a mixed load: semmem, and others that can hold many namespaces on one machine, where installed.

Each is used as its documentation shows it for many users: a filter on a column (LanceDB, Qdrant), a namespace
(LangGraph's PostgresStore), an index of each user (txtai). Threads of one process ask and write.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol
from uuid import NAMESPACE_OID, uuid5

import numpy as np
import psycopg

import semmem
from eval.bench.measures import bytes_of, resident_mb
from eval.bench.others import lacking
from semmem.stores.embedded.server import EmbeddedServer

__all__ = ["SYSTEMS", "Note", "System", "absent"]

_HITS = 10
_OPTIMIZE_EVERY = 1_000
"""Memories written one by one after which LanceDB's table is optimized, as its documentation advises."""


@dataclass(frozen=True, slots=True)
class Note:
    """A memory as every system gets it: its title is the first line of its text."""

    id: str
    namespace: str
    text: str
    vector: Any


class System(Protocol):
    """A system that holds memories by namespace."""

    persistent: bool

    def fill(self, notes: Sequence[Note]) -> None:
        """Store many; of a batch that was stored in part before, nothing may be there twice."""

    def finish(self) -> None:
        """Do what the system wants done after a bulk: maintenance, indexes."""

    def store(self, note: Note) -> None:
        """Store one."""

    def ask(self, namespace: str, text: str, vector: Any) -> Collection[str]:
        """Return the ids of ten memories of a namespace."""

    def bytes(self) -> int | None:
        """Return the bytes on disk, None where nothing is kept there."""

    def server_mb(self) -> float:
        """Return the memory of the processes of its server, 0 without one."""


class Semmem:
    """semmem on its own embedded server."""

    persistent = True

    def __init__(self, folder: Path, mem: Any) -> None:
        self._folder, self._mem = folder, mem
        self._server = psycopg.connect(EmbeddedServer(folder).ensure_running(), autocommit=True)

    @classmethod
    @contextmanager
    def opened(cls, folder: Path) -> Iterator[System]:
        place = folder / "store"
        try:
            with semmem.connect(f"embedded://{place.absolute()}", embedder="none", pool_size=10) as mem:
                system = cls(place, mem)
                yield system
                system._server.close()
        finally:
            EmbeddedServer(place).stop()

    def fill(self, notes: Sequence[Note]) -> None:
        self._mem.remember_many([_item(note) for note in notes], batch_size=len(notes))

    def finish(self) -> None:
        self._mem.maintain()

    def store(self, note: Note) -> None:
        self._mem.remember(**_item(note))

    def ask(self, namespace: str, text: str, vector: Any) -> Collection[str]:
        return [hit.id for hit in self._mem.recall(text, namespace=namespace, vector=vector, limit=_HITS)]

    def bytes(self) -> int:
        return bytes_of(self._folder)

    def server_mb(self) -> float:
        return _server_mb(self._server)


def _item(note: Note) -> dict[str, Any]:
    title, line, text = note.text.partition("\n")
    named: dict[str, Any] = {"title": title, "text": text} if line else {"text": note.text}
    return {**named, "id": note.id, "namespace": note.namespace, "vector": note.vector}


def _server_mb(server: psycopg.Connection[Any]) -> float:
    pids = [pid for (pid,) in server.execute("SELECT pid FROM pg_stat_activity").fetchall()]
    return round(sum(resident_mb(pid) or 0.0 for pid in pids), 1)


class LangGraph:
    """LangGraph's PostgresStore in a PostgreSQL as semmem's; it searches by vectors alone."""

    persistent = True

    def __init__(self, server: psycopg.Connection[Any], graph: Any, own: threading.local) -> None:
        self._server, self._graph, self._own = server, graph, own
        self._put: Any = import_module("langgraph.store.base").PutOp

    @classmethod
    @contextmanager
    def opened(cls, folder: Path) -> Iterator[System]:
        library: Any = import_module("langgraph.store.postgres")
        own = threading.local()
        index: Any = {
            "dims": 384, "fields": ["text"],
            "embed": lambda texts: [own.vectors[text].tolist() for text in texts],
        }  # fmt: skip
        place = EmbeddedServer(folder / "store")
        try:
            address = place.ensure_running()
            with (
                psycopg.connect(address, autocommit=True) as server,
                library.PostgresStore.from_conn_string(
                    address, pool_config={"min_size": 1, "max_size": 10}, index=index
                ) as graph,
            ):
                graph.setup()
                yield cls(server, graph, own)
        finally:
            place.stop()

    def fill(self, notes: Sequence[Note]) -> None:
        self._own.vectors = {note.text: note.vector for note in notes}
        self._graph.batch([self._put(("memories", n.namespace), n.id, {"text": n.text}) for n in notes])

    def finish(self) -> None:
        self._server.execute("VACUUM ANALYZE")

    def store(self, note: Note) -> None:
        self.fill([note])

    def ask(self, namespace: str, text: str, vector: Any) -> Collection[str]:
        self._own.vectors = {text: vector}
        return [item.key for item in self._graph.search(("memories", namespace), query=text, limit=_HITS)]

    def bytes(self) -> int:
        row = self._server.execute("SELECT pg_database_size(current_database())").fetchone()
        return int(row[0]) if row else 0

    def server_mb(self) -> float:
        return _server_mb(self._server)


class Lance:
    """LanceDB: one table with an index of its namespaces and of its words, hybrid search with a filter before it."""

    persistent = True

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._db: Any = import_module("lancedb").connect(str(folder), read_consistency_interval=timedelta(0))
        self._lock, self._written = threading.Lock(), 0
        self._table: Any = self._db.open_table("memories") if (folder / "memories.lance").exists() else None

    @classmethod
    @contextmanager
    def opened(cls, folder: Path) -> Iterator[System]:
        yield cls(folder / "store")

    def _rows(self, notes: Sequence[Note]) -> Any:
        pa: Any = import_module("pyarrow")
        flat = pa.array(np.concatenate([note.vector for note in notes]).astype(np.float32))
        return pa.table({
            "id": pa.array([note.id for note in notes]),
            "namespace": pa.array([note.namespace for note in notes]),
            "text": pa.array([note.text for note in notes]),
            "vector": pa.FixedSizeListArray.from_arrays(flat, len(notes[0].vector)),
        })  # fmt: skip

    def fill(self, notes: Sequence[Note]) -> None:
        if self._table is None:
            self._table = self._db.create_table("memories", self._rows(notes))
        else:
            self._table.delete(f"id IN ({', '.join(repr(note.id) for note in notes)})")
            self._table.add(self._rows(notes))

    def finish(self) -> None:
        indexes: Any = import_module("lancedb.index")
        self._table.optimize()
        self._table.create_index("text", config=indexes.FTS())
        self._table.create_index("namespace", config=indexes.BTree())

    def store(self, note: Note) -> None:
        self._table.add(self._rows([note]))
        with self._lock:
            self._written += 1
            due = self._written % _OPTIMIZE_EVERY == 0
        if due:
            self._table.optimize()

    def ask(self, namespace: str, text: str, vector: Any) -> Collection[str]:
        search = self._table.search(query_type="hybrid").vector(vector).text(text)
        found = search.where(f"namespace = '{namespace}'", prefilter=True).limit(_HITS).to_list()
        return [row["id"] for row in found]

    def bytes(self) -> int:
        return bytes_of(self._folder)

    def server_mb(self) -> float:
        return 0.0


class Qdrant:
    """Qdrant's local mode: vectors in one collection with a filter; its threads take turns, as it has no locks."""

    persistent = True

    def __init__(self, client: Any, folder: Path) -> None:
        self._client, self._folder, self._lock = client, folder, threading.Lock()
        self._models: Any = import_module("qdrant_client.models")

    @classmethod
    @contextmanager
    def opened(cls, folder: Path) -> Iterator[System]:
        models: Any = import_module("qdrant_client.models")
        client: Any = import_module("qdrant_client").QdrantClient(path=str(folder / "store"))
        try:
            if not client.collection_exists("memories"):
                near = models.VectorParams(size=384, distance=models.Distance.COSINE)
                client.create_collection("memories", vectors_config=near)
            yield cls(client, folder / "store")
        finally:
            client.close()

    def fill(self, notes: Sequence[Note]) -> None:
        points = [
            self._models.PointStruct(
                id=str(uuid5(NAMESPACE_OID, note.id)),
                vector=note.vector.tolist(),
                payload={"id": note.id, "namespace": note.namespace, "text": note.text},
            )
            for note in notes
        ]
        with self._lock:
            self._client.upsert("memories", points)

    def finish(self) -> None:
        return

    def store(self, note: Note) -> None:
        self.fill([note])

    def ask(self, namespace: str, text: str, vector: Any) -> Collection[str]:
        of = self._models.FieldCondition(key="namespace", match=self._models.MatchValue(value=namespace))
        only = self._models.Filter(must=[of])
        with self._lock:
            found = self._client.query_points("memories", query=vector.tolist(), query_filter=only, limit=_HITS)
        return [point.payload["id"] for point in found.points]

    def bytes(self) -> int:
        return bytes_of(self._folder)

    def server_mb(self) -> float:
        return 0.0


class Txtai:
    """txtai: a hybrid index in memory for each namespace, whose threads take turns."""

    persistent = False

    def __init__(self) -> None:
        self._new: Callable[..., Any] = import_module("txtai").Embeddings
        self._indexes: dict[str, tuple[Any, threading.Lock]] = {}
        self._own = threading.local()
        self._lock = threading.Lock()

    @classmethod
    @contextmanager
    def opened(cls, folder: Path) -> Iterator[System]:
        yield cls()

    def _of(self, namespace: str) -> tuple[Any, threading.Lock]:
        with self._lock:
            if namespace not in self._indexes:
                vectors = {"method": "external", "transform": lambda _: np.stack(self._own.vectors)}
                self._indexes[namespace] = (self._new({**vectors, "hybrid": True}), threading.Lock())
            return self._indexes[namespace]

    def fill(self, notes: Sequence[Note]) -> None:
        by_namespace: dict[str, list[Note]] = {}
        for note in notes:
            by_namespace.setdefault(note.namespace, []).append(note)
        for namespace, some in by_namespace.items():
            index, lock = self._of(namespace)
            with lock:
                self._own.vectors = [note.vector for note in some]
                index.upsert((note.id, note.text, None) for note in some)

    def finish(self) -> None:
        return

    def store(self, note: Note) -> None:
        self.fill([note])

    def ask(self, namespace: str, text: str, vector: Any) -> Collection[str]:
        index, lock = self._of(namespace)
        with lock:
            self._own.vectors = [vector]
            return [id for id, _ in index.search(text, _HITS)]

    def bytes(self) -> None:
        return None

    def server_mb(self) -> float:
        return 0.0


@dataclass(frozen=True, slots=True)
class Kind:
    """A system: the modules that it needs, and how it is opened over a folder."""

    needs: tuple[str, ...]
    opened: Callable[[Path], Any]


SYSTEMS = {
    "semmem": Kind((), Semmem.opened),
    "LanceDB hybrid": Kind(("lancedb", "pyarrow"), Lance.opened),
    "Qdrant local": Kind(("qdrant_client",), Qdrant.opened),
    "txtai": Kind(("txtai",), Txtai.opened),
    "LangGraph PostgresStore": Kind(("langgraph.store.postgres",), LangGraph.opened),
}


def absent(name: str) -> str | None:
    """Return a sentence that says what is not installed for the system ``name``, None where all is."""
    return lacking(name, SYSTEMS[name].needs)
