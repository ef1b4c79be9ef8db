"""The systems measured beside semmem in the same run: bm25s + numpy, and others where they are installed.

Each is given the same texts and vectors and asked the same questions for ten hits. Text in, hits out, each question is
embedded by one encoder in one runtime for all of them, semmem's own: what differs is the system.
"""

from __future__ import annotations

import inspect
import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Protocol
from uuid import uuid4

import numpy as np

from semmem.text.passages import terms

__all__ = ["OTHERS", "Other", "absent", "encoder", "imported", "lacking", "opened"]

_DEPTH = 100
_K = 60
Texts = Sequence[str]


class Other(Protocol):
    """A system with its memories in it."""

    def recall(self, text: str, vector: Any) -> list[int]:
        """Return the places of ten memories, best first."""

    def close(self) -> None:
        """Release files, connections and memory."""


@dataclass(frozen=True, slots=True)
class Kind:
    """A system to measure: the modules it needs, and how it is filled."""

    needs: tuple[str, ...]
    fill: Callable[[Texts, Any, Path, str], Other]


def absent(name: str) -> str | None:
    """Return a sentence that says what is not installed for the system ``name``, None where all is."""
    return lacking(name, OTHERS[name].needs)


def imported(name: str) -> None:
    """Import the modules of the system ``name``, so that no time to fill it has that of its imports."""
    for module in OTHERS[name].needs:
        import_module(module)


def lacking(name: str, needs: Sequence[str]) -> str | None:
    """Return a sentence that says which modules ``needs`` of a system are not installed, None where all are."""
    modules = [module for module in needs if not _has_module(module)]
    are = "is" if len(modules) == 1 else "are"
    return f"{name} is skipped: {', '.join(modules)} {are} not installed." if modules else None


def opened(name: str, texts: Texts, vectors: Any, folder: Path, server: str) -> Other:
    """Return the system ``name`` filled with texts and vectors; ``server`` is a PostgreSQL for those that need one."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return OTHERS[name].fill(texts, vectors, folder, server)


@cache
def encoder() -> Callable[[str], Any]:
    """Return the function from a question to its vector, the same for every system."""
    from semmem.embedders.minilm import MiniLM

    model = MiniLM()
    return lambda text: model.embed([text])[0]


def sentence_transformers() -> Any:
    """Return the same model run by sentence-transformers, None where that is not installed."""
    from semmem.embedders.minilm import MiniLM

    return MiniLM(_weights(), runtime="sentence-transformers") if _has_module("sentence_transformers") else None


def _weights() -> str | None:
    from semmem.embedders.weights import find

    folder, origin = find()
    return str(folder) if origin == "configured" else None


def _has_module(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # the package around it
        return False


def _rrf(*rankings: Sequence[int]) -> list[int]:
    scores: dict[int, float] = {}
    for ranking in rankings:
        for rank, place in enumerate(ranking, 1):
            scores[place] = scores.get(place, 0.0) + 1 / (_K + rank)
    return sorted(scores, key=lambda place: -scores[place])[:10]


class Baseline:
    """BM25 by bm25s and cosines by numpy, fused by RRF, in memory: nothing is stored, filtered or explained."""

    def __init__(self, texts: Texts, vectors: Any, _: Path, __: str) -> None:
        import bm25s

        self._index = bm25s.BM25(k1=1.2, b=0.5)
        self._index.index([terms(text) for text in texts], show_progress=False)
        self._matrix = np.stack(vectors)
        self._depth = min(_DEPTH, len(texts))

    def recall(self, text: str, vector: Any) -> list[int]:
        positions, _ = self._index.retrieve([terms(text)], k=self._depth, show_progress=False)
        likeness = self._matrix @ vector
        near = np.argpartition(-likeness, self._depth - 1)[: self._depth]
        return _rrf(positions[0].tolist(), near[np.argsort(-likeness[near])].tolist())

    def close(self) -> None:
        return


class Lance:
    """LanceDB's hybrid search, two legs fused by RRF, with a full-text index; ten rows of each leg, its default.

    It has no index of vectors, as by default, so it compares every vector.
    """

    def __init__(self, texts: Texts, vectors: Any, folder: Path, _: str) -> None:
        lancedb: Any = import_module("lancedb")
        pa: Any = import_module("pyarrow")
        size = len(vectors[0])
        flat = pa.array(np.concatenate(vectors).astype(np.float32))
        table = pa.table(
            {
                "place": pa.array(range(len(texts))),
                "text": pa.array(texts),
                "vector": pa.FixedSizeListArray.from_arrays(flat, size),
            }
        )
        self.table: Any = lancedb.connect(str(folder)).create_table("memories", table)
        self.table.create_index("text", config=import_module("lancedb.index").FTS())

    def recall(self, text: str, vector: Any) -> list[int]:
        rows = self.table.search(query_type="hybrid").vector(vector).text(text).limit(10).to_list()
        return [row["place"] for row in rows]

    def close(self) -> None:
        return


def _indexed_lance(texts: Texts, vectors: Any, folder: Path, server: str) -> Lance:
    """Return LanceDB's hybrid search with an HNSW index of vectors: one partition, one byte for each number.

    Its documentation advises an index for many vectors. The index is approximate: the share found says what it misses.
    """
    system = Lance(texts, vectors, folder, server)
    index: Any = import_module("lancedb.index")
    system.table.create_index("vector", config=index.HnswSq(distance_type="cosine", num_partitions=1))
    return system


class Txtai:
    """txtai's hybrid embeddings index: its BM25 and faiss, in memory."""

    def __init__(self, texts: Texts, vectors: Any, _: Path, __: str) -> None:
        library: Any = import_module("txtai")
        self._memory_vectors: Any = list(vectors)
        self._question_vector: Any = None
        self._embeddings = library.Embeddings(
            {"method": "external", "transform": lambda texts: self._vectors(texts), "hybrid": True}
        )
        self._embeddings.index((place, text, None) for place, text in enumerate(texts))
        self._memory_vectors = None

    def _vectors(self, texts: Any) -> Any:
        if self._question_vector is not None:
            return np.stack([self._question_vector] * len(texts))
        out, self._memory_vectors = np.stack(self._memory_vectors[: len(texts)]), self._memory_vectors[len(texts) :]
        return out

    def recall(self, text: str, vector: Any) -> list[int]:
        self._question_vector = vector
        return [int(place) for place, _ in self._embeddings.search(text, 10)]

    def close(self) -> None:
        self._embeddings.close()


class LangGraph:
    """LangGraph's PostgresStore in a database of its own on semmem's server; it searches by vectors alone."""

    def __init__(self, texts: Texts, vectors: Any, _: Path, server: str) -> None:
        import psycopg

        put: Any = import_module("langgraph.store.base").PutOp
        library: Any = import_module("langgraph.store.postgres")
        self._server, self._name = server, f"bench_{uuid4().hex[:12]}"
        with psycopg.connect(server, autocommit=True) as connection:
            connection.execute(f'CREATE DATABASE "{self._name}"'.encode())
        self._memory_vectors = list(vectors)
        self._question_vector: Any = None
        address = psycopg.conninfo.make_conninfo(server, dbname=self._name)
        index: Any = {"dims": len(vectors[0]), "embed": self._vectors, "fields": ["text"]}
        self._context = library.PostgresStore.from_conn_string(address, index=index)
        self._graph: Any = self._context.__enter__()
        self._graph.setup()
        for first in range(0, len(texts), 500):
            batch = enumerate(texts[first : first + 500], first)
            self._graph.batch([put(("bench",), str(place), {"text": text}) for place, text in batch])

    def _vectors(self, texts: Sequence[str]) -> list[list[float]]:
        if self._question_vector is not None:
            return [self._question_vector.tolist()] * len(texts)
        out, self._memory_vectors = self._memory_vectors[: len(texts)], self._memory_vectors[len(texts) :]
        return [vector.tolist() for vector in out]

    def recall(self, text: str, vector: Any) -> list[int]:
        self._question_vector = vector
        return [int(item.key) for item in self._graph.search(("bench",), query=text, limit=10)]

    def size(self) -> int:
        """Return the bytes of its database."""
        import psycopg

        with psycopg.connect(self._server, dbname=self._name) as connection:
            row = connection.execute("SELECT pg_database_size(current_database())").fetchone()
        return int(row[0]) if row else 0

    def close(self) -> None:
        import psycopg

        self._context.__exit__(None, None, None)
        with psycopg.connect(self._server, autocommit=True) as connection:
            connection.execute(f'DROP DATABASE "{self._name}" WITH (FORCE)'.encode())


class Mem0:
    """mem0 with ``infer=False``, so that no LLM is called, and a Qdrant of its own on disk."""

    def __init__(self, texts: Texts, vectors: Any, folder: Path, _: str) -> None:
        os.environ["MEM0_TELEMETRY"] = "False"
        library: Any = import_module("mem0")
        main: Any = import_module("mem0.memory.main")
        assert hasattr(main, "capture_event")
        main.capture_event = lambda *_, **__: None  # each call would leave a thread, also with telemetry off
        place = {"path": str(folder), "on_disk": True, "embedding_model_dims": len(vectors[0])}
        self._memory = library.Memory.from_config(
            {
                "vector_store": {"provider": "qdrant", "config": place},
                "embedder": {"provider": "openai", "config": {"api_key": "unused"}},
                "llm": {"provider": "openai", "config": {"api_key": "unused"}},
                "history_db_path": str(folder / "history.db"),
            }
        )
        self.config = SimpleNamespace(embedding_dims=len(vectors[0]))
        self._memory.embedding_model = self
        for number, (text, vector) in enumerate(zip(texts, vectors, strict=True)):
            self._vector = vector
            self._memory.add(text, user_id="bench", infer=False, metadata={"place": number})

    def embed(self, _: str, *__: Any, **___: Any) -> list[float]:
        vector: list[float] = self._vector.tolist()
        return vector

    def embed_batch(self, texts: Sequence[str], *_: Any, **__: Any) -> list[list[float]]:
        return [self._vector.tolist()] * len(texts)

    def recall(self, text: str, vector: Any) -> list[int]:
        self._vector = vector
        ten: dict[str, Any] = {"user_id": "bench", "limit": 10}
        if "top_k" in inspect.signature(self._memory.search).parameters:  # from version 2 on
            ten = {"filters": {"user_id": "bench"}, "top_k": 10}
        answer = self._memory.search(text, **ten)
        return [int(row["metadata"]["place"]) for row in answer["results"]]

    def close(self) -> None:
        self._memory.vector_store.client.close()
        telemetry = getattr(self._memory, "_telemetry_vector_store", None)  # it locks a folder of the user's home
        if telemetry is not None:
            telemetry.client.close()


OTHERS: Mapping[str, Kind] = {
    "bm25s + numpy": Kind(("bm25s",), Baseline),
    "LanceDB hybrid": Kind(("lancedb", "pyarrow"), Lance),
    "LanceDB hybrid, index of vectors": Kind(("lancedb", "pyarrow"), _indexed_lance),
    "txtai": Kind(("txtai",), Txtai),
    "LangGraph PostgresStore": Kind(("langgraph.store.postgres",), LangGraph),
    "mem0, infer=False": Kind(("mem0",), Mem0),
}
