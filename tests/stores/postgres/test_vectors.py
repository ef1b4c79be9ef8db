"""Another embedder takes over, and the HNSW index beside an exact scan."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace
from typing import Any

import numpy as np
import psycopg
import pytest
from pgvector import Vector

import semmem
from semmem.stores.postgres import nearest, staging, vector_index
from tests.stores.audit import sql


class Short:
    """An embedder of two dimensions: how many letters are vowels, and how many are not."""

    name = "short"
    dimensions = 2
    fingerprint = "short-1"
    max_tokens = None

    def count_tokens(self, text: str) -> int:
        return len(text)

    def embed(self, texts: Any) -> Any:
        rows = [[sum(c in "aeiou" for c in t) + 1, sum(c not in "aeiou" for c in t) + 1] for t in texts]
        vectors = np.array(rows, dtype=np.float32)
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def test_rebuild_with_another_embedder_makes_every_vector_anew(store_url: str) -> None:
    with semmem.connect(store_url, embedder="hashing") as mem:
        mem.remember_many({"id": f"m{n}", "text": f"note number {n}"} for n in range(5))
    with pytest.raises(semmem.EmbedderMismatch, match="semmem rebuild --embedder"):
        semmem.connect(store_url, embedder=Short())
    with semmem.connect(store_url, embedder="none") as mem:
        assert mem.rebuild(embedder=Short()).embedded == 5
        assert mem.stats().embedder == "short"
        assert mem.rebuild(embedder=Short()) == semmem.Rebuilt()
    with semmem.connect(store_url, embedder=Short()) as mem:
        found = mem.recall("note number 3", recipe="dense")
        assert (len(found), found.degraded) == (5, {})


def test_the_index_answers_as_the_exact_scan_and_new_memories_stand_beside_it(
    store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    vectors = np.random.default_rng(7).normal(size=(400, 8))
    with semmem.connect(store_url, embedder="none", resident_mb=0) as mem:  # so that the database is asked
        mem.remember_many({"id": f"m{n:03}", "text": f"note {n}", "vector": v} for n, v in enumerate(vectors[:350]))

        def recalled(n: int, **how: Any) -> list[str]:
            return [hit.memory.id for hit in mem.recall("note", vector=vectors[n], recipe="dense", limit=5, **how)]

        exact = [recalled(n) for n in range(0, 400, 40)]
        monkeypatch.setattr(nearest, "INDEX_FROM", 100)
        assert mem.maintain()["indexed"] == 350
        assert [recalled(n) for n in range(0, 400, 40)] == exact
        others = [{"text": "x", "vector": v} for v in vectors[119::-1]]  # under the numbers of other vectors
        mem.remember_many(others, namespace="other")
        assert [recalled(n) for n in range(0, 400, 40)] == exact
        mem.remember_many({"id": f"m{n}", "text": f"note {n}", "vector": vectors[n]} for n in range(350, 400))
        assert recalled(390)[0] == "m390"
        assert recalled(10, exclude=["m010"])[0] != "m010"
        assert mem.maintain()["indexed"] == 170  # those of the other namespace, too
        assert recalled(390)[0] == "m390"
        by_index = [recalled(n) for n in range(0, 400, 40)]
        monkeypatch.setattr(nearest, "INDEX_FROM", 10**9)
        assert by_index == [recalled(n) for n in range(0, 400, 40)]


def test_a_small_namespace_is_not_looked_for_in_the_index_of_a_large_one(
    store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nearest, "INDEX_FROM", 100)
    asked: list[str] = []
    indexed = nearest._indexed

    def noted(connection: Any, scope: Any, *rest: Any) -> Any:
        asked.extend(scope.namespaces)
        return indexed(connection, scope, *rest)

    monkeypatch.setattr(nearest, "_indexed", noted)
    vectors = np.random.default_rng(7).normal(size=(120, 8))
    with semmem.connect(store_url, embedder="none", resident_mb=0) as mem:
        mem.remember_many({"text": f"note {n}", "vector": v, "namespace": "large"} for n, v in enumerate(vectors[:110]))
        mem.remember_many({"text": f"note {n}", "vector": v, "namespace": "small"} for n, v in enumerate(vectors[110:]))
        found = mem.recall("note", namespace=["large", "small"], vector=vectors[115], recipe="dense", limit=3)
        assert (found[0].namespace, found[0].text) == ("small", "note 5")
    assert set(asked) == {"large"}


def test_of_two_that_maintain_a_store_at_once_one_indexes_the_vectors(
    store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nearest, "INDEX_FROM", 50)
    vectors = np.random.default_rng(7).normal(size=(60, 8))
    with semmem.connect(store_url, embedder="none", pool_size=2) as mem:
        mem.remember_many({"id": f"m{n:03}", "text": f"note {n}", "vector": v} for n, v in enumerate(vectors))
        indexing, finished = threading.Event(), threading.Event()
        build = vector_index._build

        def slow(*given: Any) -> None:
            indexing.set()
            assert finished.wait(60)
            build(*given)

        monkeypatch.setattr(vector_index, "_build", slow)
        with ThreadPoolExecutor(1) as other:
            first = other.submit(mem.maintain)
            try:
                assert indexing.wait(60)
                assert mem.maintain()["indexed"] == 0
            finally:
                finished.set()
            assert first.result()["indexed"] == 60
        assert mem.maintain()["indexed"] == 0
        assert mem.store.run(vector_index.ready)


def test_maintain_leaves_no_old_rows_of_the_vectors_that_it_takes_into_the_index(
    embedded_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nearest, "INDEX_FROM", 100)
    vectors = np.random.default_rng(7).normal(size=(900, 96))
    pages = "SELECT pg_relation_size('embedding') / 8192"
    with semmem.connect(embedded_url, embedder="none") as mem:

        def stored(first: int, last: int) -> tuple[int, int]:
            rows = enumerate(vectors[first:last], first)
            mem.remember_many({"id": f"m{n}", "text": f"note {n}", "vector": v} for n, v in rows)
            assert mem.maintain()["indexed"] == last - first
            held, of = mem.store.run(lambda c: c.execute(f"{pages}, 'embedding_hnsw'::regclass::oid::int8").fetchone())
            return held, of

        few, first = stored(0, 300)
        assert few == 17  # of 18 vectors each
        _, same = stored(300, 400)
        assert same == first  # a few are inserted
        most, other = stored(400, 540)
        assert (most, other != first) == (30, True)  # the index lacked more than a third of what it had
        scope = mem.store.scope(("default",), semmem.Filters(), ())
        found = mem.store.vectors.nearest(scope, vectors[17].astype(np.float32), 5)
        assert found.row_ids[0] == mem.store.row_ids_of("default", "m17")[0]


def test_vectors_that_go_stay_in_the_index_until_a_quarter_of_it_is_gone(
    store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nearest, "INDEX_FROM", 100)
    vectors = np.random.default_rng(7).normal(size=(310, 8))
    index = """SELECT oid::int8, reltuples::int8, obj_description(oid, 'pg_class')::int8
               FROM pg_class WHERE oid = 'embedding_hnsw'::regclass"""
    with semmem.connect(store_url, embedder="none", resident_mb=0) as mem:
        sql(mem, "ALTER TABLE embedding SET (autovacuum_enabled = off)")  # it would count the index anew meanwhile

        def remember(first: int, last: int) -> None:
            rows = enumerate(vectors[first:last], first)
            mem.remember_many([{"id": f"m{n}", "text": f"note {n}", "vector": v} for n, v in rows])

        def nearest_to(n: int) -> str:
            return mem.recall("note", vector=vectors[n], recipe="dense", limit=1)[0].memory.id

        remember(0, 300)
        assert mem.maintain()["indexed"] == 300
        built, *counts = sql(mem, index)[0]
        assert counts == [300, 300]
        for n in range(60):
            mem.forget(f"m{n}")
        sql(mem, "VACUUM embedding")  # as autovacuum does
        assert sql(mem, index) == [(built, 300, 300)]  # it has taken none of the 60 out
        assert mem.maintain()["indexed"] == 0
        assert sql(mem, index)[0][::2] == (built, 300)  # 60 are no more than a third of 240
        assert [nearest_to(n) for n in (60, 299)] == ["m60", "m299"]
        remember(300, 310)
        assert mem.maintain()["indexed"] == 10
        assert sql(mem, index)[0][::2] == (built, 310)
        for n in range(60, 80):
            mem.forget(f"m{n}")
        assert mem.maintain()["indexed"] == 230  # 310 were put in, and 80 are more than a third of 230
        other, *counts = sql(mem, index)[0]
        assert (other != built, counts) == (True, [230, 230])
        assert [nearest_to(n) for n in (80, 309)] == ["m80", "m309"]


def test_another_comment_on_the_index_counts_as_none(store_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nearest, "INDEX_FROM", 100)
    vectors = np.random.default_rng(7).normal(size=(130, 8))
    with semmem.connect(store_url, embedder="none") as mem:
        rows = [{"id": f"m{n}", "text": f"note {n}", "vector": v} for n, v in enumerate(vectors)]
        mem.remember_many(rows[:120])
        assert mem.maintain()["indexed"] == 120
        for comment in ("the index of vectors", "-1", "12 or so", ""):
            sql(mem, f"COMMENT ON INDEX embedding_hnsw IS '{comment}'")
            assert mem.maintain()["indexed"] == 0
        sql(mem, "COMMENT ON INDEX embedding_hnsw IS 'ours'")
        mem.remember_many(rows[120:])
        assert mem.maintain()["indexed"] == 10
        assert sql(mem, "SELECT obj_description('embedding_hnsw'::regclass, 'pg_class')") == [("130",)]


def test_of_vectors_that_have_no_index_nothing_stays_after_maintain(store_url: str) -> None:
    vectors = np.random.default_rng(7).normal(size=(60, 8))
    with semmem.connect(store_url, embedder="none") as mem:
        mem.remember_many({"id": f"m{n}", "text": f"note {n}", "vector": v} for n, v in enumerate(vectors))
        assert mem.forget(everything=True) == 60
        sql(mem, "VACUUM embedding")  # as autovacuum does
        assert sql(mem, "SELECT pg_relation_size('embedding') > 0") == [(True,)]
        mem.maintain()
        assert sql(mem, "SELECT pg_relation_size('embedding')") == [(0,)]


def test_maintain_drops_an_index_whose_vectors_are_all_gone(store_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nearest, "INDEX_FROM", 100)
    vectors = np.random.default_rng(7).normal(size=(120, 8))
    with semmem.connect(store_url, embedder="none") as mem:
        mem.remember_many({"id": f"m{n}", "text": f"note {n}", "vector": v} for n, v in enumerate(vectors))
        assert mem.maintain()["indexed"] == 120
        assert mem.forget(everything=True) == 120
        assert mem.maintain()["indexed"] == 0
        assert sql(mem, "SELECT to_regclass('embedding_hnsw')::text, pg_relation_size('embedding')") == [(None, 0)]


def test_an_index_that_cannot_be_built_anew_loses_its_gone_vectors_once_they_are_many(
    store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nearest, "INDEX_FROM", 100)
    vectors = np.random.default_rng(7).normal(size=(200, 96))
    index = "SELECT oid::int8, obj_description(oid, 'pg_class') FROM pg_class WHERE oid = 'embedding_hnsw'::regclass"
    pages = "SELECT pg_relation_size('embedding') / 8192"
    with semmem.connect(store_url, embedder="none", resident_mb=0) as mem:
        mem.remember_many({"id": f"m{n:03}", "text": f"note {n}", "vector": v} for n, v in enumerate(vectors))
        assert mem.maintain()["indexed"] == 200
        [(built, _)], [(before,)] = sql(mem, index), sql(mem, pages)
        monkeypatch.setattr(vector_index, "_memory", lambda *_: (2, 1))
        for n in range(150, 200):
            mem.forget(f"m{n:03}")
        assert mem.maintain()["indexed"] == 0
        assert sql(mem, index) == [(built, "200")]  # 50 are a third of 150, and no more
        mem.forget("m149")
        assert mem.maintain()["indexed"] == 0
        assert sql(mem, index) == [(built, "149")]
        assert sql(mem, pages)[0][0] < before  # nothing refers to their rows, so the end of the file is free
        assert mem.recall("note", vector=vectors[148], recipe="dense", limit=1)[0].memory.id == "m148"


def indexed(monkeypatch: pytest.MonkeyPatch, mem: semmem.Semmem) -> Any:
    """Return a function that gives the file of the index, of which a third is missing; and the number that is in it."""
    monkeypatch.setattr(nearest, "INDEX_FROM", 100)
    vectors = np.random.default_rng(7).normal(size=(340, 8))

    def store(first: int, last: int) -> None:
        rows = enumerate(vectors[first:last], first)
        mem.remember_many([{"id": f"m{n}", "text": f"note {n}", "vector": v} for n, v in rows])

    store(0, 200)
    mem.maintain()
    store(200, 340)
    file = "SELECT 'embedding_hnsw'::regclass::oid::int8, (SELECT count(*) FROM embedding WHERE indexed)"
    return lambda: mem.store.run(lambda c: c.execute(file).fetchone())


def test_an_index_that_is_built_beside_a_long_reader_is_kept_until_the_next_maintain(
    store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(staging, "_READERS_PATIENCE", "50ms")
    monkeypatch.setattr(staging, "_TURNS", 2)
    kept = "SELECT 'embedding_next_hnsw'::regclass::oid::int8"
    with semmem.connect(store_url, embedder="none", resident_mb=0) as mem:
        look = indexed(monkeypatch, mem)
        before, _ = look()
        with psycopg.connect(mem.store.url) as reader:
            reader.execute("SELECT count(*) FROM semmem.embedding")  # the transaction stays open, as that of a backup
            done = mem.maintain()
            assert (done["indexed"], done["busy"]) == (0, 1)
            assert len(mem.recall("note", vector=[1.0] * 8, recipe="dense", limit=5).hits) == 5
            assert look() == (before, 200)
            [(built,)] = sql(mem, kept)
            assert mem.maintain()["busy"] == 1
            assert sql(mem, kept) == [(built,)]  # it is not built again
        assert mem.maintain()["indexed"] == 140
        assert look() == (built, 340)


def test_an_index_that_does_not_fit_the_memory_for_building_it_is_filled_one_by_one(
    store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with semmem.connect(store_url, embedder="none") as mem:
        look = indexed(monkeypatch, mem)
        before, _ = look()
        monkeypatch.setattr(vector_index, "_BUILD_MB", 0)
        monkeypatch.setattr(vector_index.machine, "memory", lambda: 0)
        monkeypatch.setattr(vector_index, "_LINKS_BYTES", 1 << 20)
        assert mem.maintain()["indexed"] == 140
        assert look() == (before, 340)


def test_a_user_who_does_not_own_the_index_fills_it_one_by_one(store_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with semmem.connect(store_url, embedder="none") as mem:
        look = indexed(monkeypatch, mem)
        before, _ = look()
        role = f"app_{before}"
        rights = (f"CREATE ROLE {role}", f"GRANT USAGE ON SCHEMA semmem TO {role}",
                  f"GRANT ALL ON ALL TABLES IN SCHEMA semmem TO {role}")  # fmt: skip
        for right in rights:
            sql(mem, right)
        try:
            url = f"{store_url}{'&' if '?' in store_url else '?'}options=-c%20role%3D{role}"
            with semmem.connect(url, embedder="none") as app:
                assert app.maintain()["indexed"] == 140
            assert look() == (before, 340)
        finally:
            sql(mem, f"DROP OWNED BY {role}")
            sql(mem, f"DROP ROLE {role}")


@pytest.mark.parametrize(
    ("host", "count", "machine", "memory"),
    [
        ("/tmp/socket", 100_000, 16 << 30, "512MB"),  # 157 MB are needed
        ("/tmp/socket", 1_000_000, 16 << 30, "1495MB"),  # 768 bytes of a vector and 800 of its links, a million times
        ("/tmp/socket", 1_000_000, 4 << 30, "1024MB"),  # a quarter of the machine
        ("/tmp/socket", 1_000_000, 1 << 30, "512MB"),
        ("db.example.org", 1_000_000, 16 << 30, "512MB"),  # another machine
    ],
)
def test_a_large_index_is_built_in_memory(
    monkeypatch: pytest.MonkeyPatch, host: str, count: int, machine: int, memory: str
) -> None:
    monkeypatch.setattr(vector_index.machine, "memory", lambda: machine)
    connection = SimpleNamespace(info=SimpleNamespace(host=host))
    assert vector_index.build_memory(connection, count, 384) == memory


def test_the_embedded_server_is_reached_by_a_socket(embedded_url: str) -> None:
    with semmem.connect(embedded_url, embedder="none") as mem:
        assert mem.store.run(lambda c: c.info.host).startswith("/")  # so its memory is this machine's


def test_without_an_index_a_large_namespace_is_scanned(store_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nearest, "INDEX_FROM", 100)
    vectors = np.random.default_rng(7).normal(size=(300, 8))
    with semmem.connect(store_url, embedder="none", resident_mb=0) as mem:
        mem.remember_many({"id": f"m{n}", "text": f"note {n}", "vector": v} for n, v in enumerate(vectors))

        def recalled() -> list[tuple[str, float]]:
            found = mem.recall("note", vector=vectors[17], recipe="dense", limit=5)
            return [(hit.memory.id, hit.legs["dense"].score) for hit in found]

        before = recalled()
        assert before[0][0] == "m17"
        mem.maintain()
        assert recalled() == before
        mem.store.run(lambda c: c.execute("DROP INDEX embedding_hnsw"))
        assert recalled() == before


@pytest.mark.parametrize(
    ("dimensions", "indexed"),
    [
        (2_560, "vector)::halfvec(2560)"),
        (4_000, "vector)::halfvec(4000)"),
        (4_096, "subvector(vector, 1, 4000))::halfvec(4000)"),
    ],
)
def test_vectors_of_many_dimensions_have_an_index_that_finds_what_a_scan_finds(
    store_url: str, monkeypatch: pytest.MonkeyPatch, dimensions: int, indexed: str
) -> None:
    monkeypatch.setattr(nearest, "INDEX_FROM", 100)
    vectors = np.random.default_rng(7).normal(size=(120, dimensions))
    with semmem.connect(store_url, embedder="none", resident_mb=0) as mem:
        mem.remember_many({"id": f"m{n}", "text": f"note {n}", "vector": v} for n, v in enumerate(vectors))

        def recalled() -> list[tuple[str, float]]:
            found = mem.recall("note", vector=vectors[17] + vectors[20], recipe="dense", limit=5)
            assert not found.degraded
            return [(hit.memory.id, hit.legs["dense"].score) for hit in found]

        before = recalled()
        assert {id for id, _ in before[:2]} == {"m17", "m20"}
        assert mem.maintain()["indexed"] == 120
        assert indexed in sql(store_url, "SELECT indexdef FROM pg_indexes WHERE indexname = 'embedding_hnsw'")[0][0]
        assert recalled() == before
        given = {"vector": Vector(vectors[17]), "namespace": "default", "embedder": None, "candidates": 9, "depth": 9}

        def plan(connection: Any) -> str:
            connection.execute("SET enable_seqscan TO off; SET enable_sort TO off; SET enable_bitmapscan TO off")
            return str(
                connection.execute("EXPLAIN " + nearest.with_index("nearest_indexed", dimensions), given).fetchall()
            )

        assert "Index Scan using embedding_hnsw" in mem.store.run(plan)


@pytest.mark.slow
def test_a_namespace_that_is_a_small_share_of_a_large_index_misses_nothing(
    store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nearest, "INDEX_FROM", 30)
    chance = np.random.default_rng(7)

    def near(count: int, share: float) -> list[list[float]]:
        other = chance.normal(size=(count, 16)) * 0.1
        other[:, :2] = share, 1 - share
        return other.tolist()

    with semmem.connect(store_url, embedder="none", pool_size=1) as mem:
        mem.remember_many([{"text": "x", "vector": v} for v in near(2_000, 1.0)], namespace="large")
        mem.remember_many([{"text": "x", "vector": v} for v in near(40, 0.5)], namespace="small")
        mem.maintain()
        mem.remember_many([{"text": "x", "vector": v} for v in near(30, 0.0)], namespace="small")  # not in the index
        for setting in ("hnsw.max_scan_tuples TO 50", "hnsw.ef_search TO 10", "enable_seqscan TO off",
                        "enable_sort TO off", "enable_bitmapscan TO off"):  # fmt: skip
            mem.store.run(lambda c, setting=setting: c.execute(f"SET {setting}"))
        question = np.eye(16, dtype=np.float32)[0]
        scope = mem.store.scope(("small",), semmem.Filters(), ())
        found = mem.store.vectors.nearest(scope, question, 5)
        monkeypatch.setattr(nearest, "INDEX_FROM", 10**9)
        exact = mem.store.vectors.nearest(scope, question, 5)
        assert exact.scores[0] > 0.6
        assert found.row_ids == exact.row_ids
