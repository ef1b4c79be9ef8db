"""The index of vectors is built anew over copies, which take the place of the vectors: readers use the old one."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
import pytest

import semmem
from semmem.model.errors import StoreUnavailable
from semmem.stores.postgres import forget, nearest, staging, upkeep, vector_index, vectors
from semmem.stores.postgres.moving import tables
from semmem.stores.resident import loading
from tests.stores.audit import check, sql

NORMAL = np.random.default_rng(7).normal(size=(400, 8))
_INDEX = "SELECT 'embedding_hnsw'::regclass::oid::int8, obj_description('embedding_hnsw'::regclass, 'pg_class')"
_STAGED = "SELECT count(*) FROM embedding_next"


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nearest, "INDEX_FROM", 100)
    monkeypatch.setattr(staging, "_COPIED_AT_ONCE", 60)


def remember(mem: semmem.Semmem, first: int, last: int, **more: Any) -> None:
    rows = enumerate(NORMAL[first:last], first)
    mem.remember_many([{"id": f"m{n}", "text": f"note {n}", "vector": v, **more} for n, v in rows])


@contextmanager
def worn(url: str, **settings: Any) -> Iterator[semmem.Semmem]:
    """Open a store whose index has 200 vectors and lacks 100, so that ``maintain`` builds it anew."""
    with semmem.connect(url, embedder="none", resident_mb=0, **settings) as mem:
        remember(mem, 0, 200)
        assert mem.maintain()["indexed"] == 200
        remember(mem, 200, 300)
        yield mem


def keep(mem: semmem.Semmem, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let ``maintain`` build the index over copies and keep both, as while the vectors are read; the next one swaps."""
    with monkeypatch.context() as patch:
        patch.setattr(staging, "replace", lambda _: False)
        assert mem.maintain()["busy"] == 1


def before(monkeypatch: pytest.MonkeyPatch, name: str, work: Callable[[], object]) -> None:
    """Call ``work`` before a step of the next building: clear, copy, late (a second copy), build or replace."""
    module, attribute = (vector_index, "_build") if name == "build" else (staging, "copy" if name == "late" else name)
    step, calls = getattr(module, attribute), iter(range(9))

    def stepped(*given: Any) -> Any:
        if next(calls) == (1 if name == "late" else 0):
            work()
        return step(*given)

    monkeypatch.setattr(module, attribute, stepped)


def nearest_to(mem: semmem.Semmem, n: int) -> str:
    """Return the id of the memory whose vector is nearest to one."""
    scope = mem.store.scope(("default",), semmem.Filters(), ())
    row_id = mem.store.vectors.nearest(scope, NORMAL[n].astype(np.float32), 5).row_ids[0]
    return str(sql(mem, "SELECT id FROM memory WHERE ord = %s", row_id)[0][0])


@pytest.mark.slow
def test_each_recall_while_the_index_is_built_anew_uses_the_old_one_and_waits_for_no_lock(
    store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, found = nearest._indexed, list[int]()

    def noted(*given: Any) -> Any:
        rows = asked(*given)
        found.append(len(rows))
        return rows

    monkeypatch.setattr(nearest, "_indexed", noted)
    with worn(store_url) as mem, ThreadPoolExecutor(1) as other:
        [(old, _)] = sql(mem, _INDEX)

        def recall() -> None:
            assert [nearest_to(mem, n) for n in (7, 199, 299)] == ["m7", "m199", "m299"]
            assert sql(mem, _INDEX)[0][0] == old

        sql(mem, "ALTER DATABASE " + sql(mem, "SELECT current_database()::text")[0][0] + " SET lock_timeout TO '50ms'")
        with semmem.connect(store_url, embedder="none", resident_mb=0) as reader:  # a recall that waits fails
            for step in ("clear", "copy", "build", "late", "replace"):
                before(monkeypatch, step, recall)
            with psycopg.connect(mem.store.url, options="-c default_transaction_isolation=repeatable\\ read") as holder:
                holder.execute("SELECT 1")  # the building waits for the end of this snapshot, with all its locks
                building = other.submit(mem.maintain)
                waits = "SELECT count(*) FROM pg_locks WHERE locktype = 'virtualxid' AND NOT granted"
                while sql(mem, waits) != [(1,)]:
                    assert not building.done()
                for n in (7, 199, 299):
                    assert nearest_to(reader, n) == f"m{n}"
                assert sql(mem, "SELECT count(*) FROM pg_locks WHERE NOT granted") == [(1,)]
            assert building.result(60)["indexed"] == 100
            assert nearest_to(reader, 299) == "m299"
        assert sql(mem, _INDEX)[0][1] == "300"
        assert sql(mem, _INDEX)[0][0] != old
        assert sql(mem, _STAGED) == [(0,)]
    assert found
    assert min(found) >= 1  # the index answered each of them


@pytest.mark.nodes
def test_memories_that_come_and_go_while_the_index_is_built_anew_are_in_no_table_twice_and_in_none_too_few(
    store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with worn(store_url) as mem:
        for n, step in enumerate(("copy", "build", "late", "replace")):
            for kind in ("dropped", "renamed", "copied"):
                remember(mem, 0, 5, namespace=f"{kind} {n}")
            with semmem.connect(store_url, embedder="none") as elsewhere:
                elsewhere.remember("late", id=f"expires {n}", vector=NORMAL[1], expires_at="2100-01-01")

            def work(n: int = n) -> None:
                with semmem.connect(store_url, embedder="none") as elsewhere:
                    elsewhere.forget(f"m{n}", hard=n == 0)  # a later one would drop the new index
                    elsewhere.update(f"m{n + 30}", text="another", vector=NORMAL[n])
                    remember(elsewhere, 300 + 20 * n, 320 + 20 * n)
                    elsewhere.forget(namespace=f"dropped {n}", everything=True)
                    elsewhere.rename_namespace(f"renamed {n}", f"called {n}")
                    elsewhere.copy_namespace(f"copied {n}", f"copy {n}")
                    sql(mem, "UPDATE memory SET expires_at = '2020-01-01' WHERE id = %s", f"expires {n}")
                    assert upkeep.sweep_expired(elsewhere.store, [("default", f"expires {n}")]) == 1
                    check(elsewhere)

            before(monkeypatch, step, work)
        assert "busy" not in mem.maintain()
        monkeypatch.undo()
        check(mem)
        assert sql(mem, "SELECT namespace, count(*) FROM embedding GROUP BY 1 ORDER BY 1") == [
            *((f"called {n}", 5) for n in range(4)),
            *((f"copied {n}", 5) for n in range(4)),
            *((f"copy {n}", 5) for n in range(4)),
            ("default", 300 + 80 - 4),
        ]
        assert sql(mem, "SELECT DISTINCT namespace FROM embedding WHERE indexed") == [("default",)]
        assert sql(mem, _STAGED) == [(0,)]


@pytest.mark.slow
@pytest.mark.parametrize("step", ["build", "late", "replace"])
def test_a_hard_forget_while_the_index_is_built_anew_leaves_no_byte_of_the_vector(
    store_url: str, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    drawn = np.random.default_rng(os.getpid()).normal(size=(160, 64)).astype(np.float32)
    drawn /= np.linalg.norm(drawn, axis=1, keepdims=True)
    with semmem.connect(store_url, embedder="none", resident_mb=0) as mem:
        mem.remember_many({"id": f"m{n}", "text": f"note {n}", "vector": v} for n, v in enumerate(drawn))
        place = Path(sql(mem, "SHOW data_directory")[0][0])
        needles = drawn[7].astype("<f4").tobytes()[:40], drawn[7].astype("<f2").tobytes()[:40]

        def standing() -> list[str]:
            files = [path for path in place.rglob("*") if path.is_file() and not path.is_symlink()]
            return [path.name for path in files if any(needle in path.read_bytes() for needle in needles)]

        def work() -> None:
            [(copied,)] = sql(mem, "SELECT pg_relation_filenode('embedding_next')::text")
            sql(mem, "CHECKPOINT")
            assert copied in standing()
            assert mem.forget("m7", hard=True) == 1
            assert standing() == []

        before(monkeypatch, step, work)
        mem.maintain()
        assert standing() == []
        monkeypatch.setattr(nearest, "INDEX_FROM", 100)
        mem.maintain()
        assert mem.store.run(vector_index.ready)
        assert sql(mem, "SELECT count(*) FROM embedding") == [(159,)]


@pytest.mark.slow
def test_a_hard_forget_rewrites_the_copies_that_take_the_place_of_the_vectors_meanwhile(
    store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rewrite, rewrite_all, swapped = forget._rewrite, forget._rewrite_all, list[bool]()
    with worn(store_url, pool_size=1) as mem, semmem.connect(store_url, embedder="none") as other:
        keep(mem, monkeypatch)
        [(copied,)] = sql(mem, "SELECT pg_relation_filenode('embedding_next')")

        def swapping(connection: Any, table: str, mark: str, end: float) -> None:
            if table == staging.STAGING and not swapped:
                swapped.append(other.store.run(staging.replace))
            rewrite(connection, table, mark, end)

        def by_name(connection: Any, beside: Any, names: list[str], *rest: Any) -> None:
            rewrite_all(connection, beside, sorted(names), *rest)

        monkeypatch.setattr(forget, "_rewrite", swapping)
        monkeypatch.setattr(forget, "_rewrite_all", by_name)
        assert mem.forget("m7", hard=True) == 1
        assert swapped == [True]
        assert sql(mem, "SELECT 1 FROM pg_class WHERE relfilenode = %s", copied) == []
        assert sql(mem, "SELECT count(*) FROM embedding") == [(299,)]


@pytest.mark.slow
def test_a_hard_forget_waits_for_an_index_that_is_being_built_although_that_waits_for_its_snapshot(
    store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rewrite, building = forget._rewrite, list[Future[None]]()
    waits = """SELECT count(*) > 0 FROM pg_stat_activity WHERE wait_event_type = 'Lock'
        AND datname = current_database() AND query LIKE %s"""

    def build() -> None:
        with other.store.lasting() as connection:
            vector_index._build(connection, 8, staging.STAGING)

    def wait_for(statement: str) -> None:
        end = time.monotonic() + 60
        while sql(mem, waits, statement) != [(True,)]:
            assert time.monotonic() < end
            time.sleep(0.02)

    def let_go() -> None:
        try:
            wait_for("%DROP INDEX%")
        finally:
            writer.commit()

    def beside_it(connection: Any, table: str, mark: str, end: float) -> None:
        if table == staging.STAGING and not building:
            writer.execute("DELETE FROM semmem.embedding_next WHERE false")  # so that the building waits at its start
            building.append(threads.submit(build))
            wait_for("%CREATE INDEX%")
            threads.submit(let_go)
        rewrite(connection, table, mark, end)

    with (
        worn(store_url, pool_size=1) as mem,
        semmem.connect(store_url, embedder="none") as other,
        psycopg.connect(other.store.url) as writer,
        ThreadPoolExecutor(2) as threads,
    ):
        monkeypatch.setattr(forget, "_rewrite", beside_it)
        assert mem.forget("m7", hard=True) == 1
        building[0].result()


@pytest.mark.slow
def test_a_hard_forget_clears_the_statistics_although_an_index_that_has_some_goes_meanwhile(
    store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    wait_for_snapshots = forget._wait_for_snapshots
    waits = "SELECT count(*) > 0 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"

    def let_go() -> None:
        end = time.monotonic() + 60
        while sql(mem, waits) != [(True,)] and time.monotonic() < end:
            time.sleep(0.02)
        other.commit()

    def dropping(*given: Any) -> None:
        wait_for_snapshots(*given)
        other.execute("DROP INDEX semmem.embedding_next_hnsw")
        threads.submit(let_go)

    with worn(store_url, pool_size=1) as mem, psycopg.connect(mem.store.url) as other, ThreadPoolExecutor(1) as threads:
        keep(mem, monkeypatch)
        sql(mem, "ANALYZE embedding_next")
        sql(mem, "DELETE FROM pg_statistic WHERE starelid = 'embedding_next'::regclass")  # the index is next
        assert sql(mem, "SELECT count(*) FROM pg_stats WHERE tablename = 'embedding_next_hnsw'") == [(1,)]
        monkeypatch.setattr(forget, "_wait_for_snapshots", dropping)
        assert mem.forget("m7", hard=True) == 1


class Killed(BaseException):
    """What no code catches, as a signal that ends the process."""


@pytest.mark.slow
@pytest.mark.parametrize("step", ["clear", "copy", "build", "late", "replace"])
def test_a_building_that_is_killed_leaves_the_old_index_and_the_next_one_begins_anew(
    store_url: str, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    def killed() -> None:
        raise Killed

    with worn(store_url) as mem:
        old = sql(mem, _INDEX)
        with monkeypatch.context() as patch:
            before(patch, step, killed)
            with semmem.connect(store_url, embedder="none") as other, pytest.raises(Killed):
                other.maintain()
        assert sql(mem, _INDEX) == old
        assert nearest_to(mem, 299) == "m299"
        check(mem)
        assert mem.forget("m0") == 1
        assert mem.maintain()["indexed"] == 100
        entries = "300" if step in ("late", "replace") else "299"  # what was built already has m0
        assert sql(mem, _INDEX)[0][1] == entries
        assert sql(mem, _STAGED) == [(0,)]
        check(mem)


@pytest.mark.slow
def test_an_index_that_was_kept_is_built_again_where_a_third_of_it_is_gone_meanwhile(
    store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with worn(store_url) as mem:
        keep(mem, monkeypatch)
        for n in range(76):
            mem.forget(f"m{n}")
        assert mem.maintain()["indexed"] == 100
        assert sql(mem, _INDEX)[0][1] == "224"  # 76 of 300 are more than a third of the other 224


@pytest.mark.slow
def test_vectors_that_come_after_an_index_was_kept_are_counted_when_they_are_inserted(
    store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with worn(store_url) as mem:
        keep(mem, monkeypatch)
        remember(mem, 300, 340)
        assert mem.maintain()["indexed"] == 100
        assert sql(mem, "SELECT count(*) FROM embedding WHERE NOT indexed") == [(40,)]
        assert mem.maintain()["indexed"] == 40
        assert mem.maintain()["indexed"] == 0


@pytest.mark.nodes
def test_copies_that_are_not_needed_any_more_are_deleted(store_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with worn(store_url) as mem:
        old = sql(mem, _INDEX)
        keep(mem, monkeypatch)
        assert sql(mem, _STAGED) == [(300,)]
        for n in range(200, 300):
            mem.forget(f"m{n}")
        assert mem.maintain()["indexed"] == 0
        assert sql(mem, _STAGED + " UNION ALL SELECT to_regclass('embedding_next_hnsw')::oid::int8") == [(0,), (None,)]
        assert sql(mem, _INDEX) == old


@pytest.mark.nodes
def test_an_unfinished_rebuild_keeps_its_vectors_and_the_index_is_filled_one_by_one(store_url: str) -> None:
    other = {"name": "other", "dimensions": 3, "fingerprint": "g"}
    with worn(store_url) as mem:
        mem.store.vectors.open_staging(other)
        row_id = mem.store.row_ids_of("default", "m7")[0]
        mem.store.vectors.add_vectors([("default", row_id, np.eye(3)[0])], other, staging=True)
        [(index, _)] = sql(mem, _INDEX)
        assert mem.maintain()["indexed"] == 100
        assert sql(mem, _INDEX) == [(index, "300")]
        assert mem.store.vectors.open_staging(other) == (1, None)


def test_a_rebuild_waits_until_the_index_is_built_and_begins_then(
    store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    other, waited = {"name": "other", "dimensions": 3, "fingerprint": "g"}, threading.Event()

    def work() -> None:
        monkeypatch.setattr(vectors, "_STAGING_PATIENCE_S", 0.0)
        with pytest.raises(StoreUnavailable, match="building the index of vectors; call the same rebuild"):
            mem.store.vectors.open_staging(other)
        waited.set()

    with worn(store_url, pool_size=3) as mem:
        before(monkeypatch, "replace", work)
        assert mem.maintain()["indexed"] == 100
        assert waited.is_set()
        assert mem.store.vectors.open_staging(other) == (0, None)


@pytest.mark.parametrize("way", ["open_staging", "drop_staging"])
def test_a_rebuild_that_begins_beside_a_backup_lets_those_pass_who_forget_something(store_url: str, way: str) -> None:
    other = {"name": "other", "dimensions": 3, "fingerprint": "g"}
    waits = "SELECT count(*) FROM pg_locks WHERE relation = 'embedding_next'::regclass AND NOT granted"
    with semmem.connect(store_url, embedder="none", pool_size=3) as mem, ThreadPoolExecutor(2) as threads:
        remember(mem, 0, 2)
        if way == "drop_staging":
            mem.store.vectors.open_staging({**other, "name": "before"})
        with psycopg.connect(mem.store.url, options="-c search_path=semmem,public") as backup:
            backup.execute(_STAGED)  # it keeps the table until its end
            begun = threads.submit(getattr(mem.store.vectors, way), *([other] if way == "open_staging" else []))
            while sql(mem, waits) != [(1,)]:
                assert not begun.done()
            forgotten = threads.submit(mem.forget, "m1")
            done = wait([forgotten], 20).done
            assert not begun.done()
        assert begun.result(60) == ((0, None) if way == "open_staging" else "before")
        assert forgotten in done


@pytest.mark.slow
def test_the_tables_of_vectors_are_alike_after_any_number_of_swaps(store_url: str) -> None:
    facts = """SELECT c.reloptions, (SELECT array_agg(attname || attstorage::text || attnotnull ORDER BY attnum)
                                     FROM pg_attribute WHERE attrelid = c.oid AND attnum > 0),
        (SELECT array_agg(replace(indexdef, 'embedding_next', 'embedding') ORDER BY indexname) FROM pg_indexes
         WHERE schemaname = 'semmem' AND tablename = c.relname AND indexname NOT LIKE '%%hnsw'),
        (SELECT array_agg(replace(conname, 'embedding_next', 'embedding') || pg_get_constraintdef(oid) ORDER BY conname)
         FROM pg_constraint WHERE conrelid = c.oid AND contype = 'p'), c.relrowsecurity
        FROM pg_class c WHERE c.oid = %s::regclass"""
    with semmem.connect(store_url, embedder="none") as mem:
        remember(mem, 0, 100)

        def both() -> list[Any]:
            return [row for name in ("embedding", "embedding_next") for row in sql(mem, facts, name)]

        first = both()
        assert first[0] == first[1]
        assert first[0][0] == ["vacuum_index_cleanup=off"]
        for n in (100, 140, 200):
            remember(mem, n, n + (n + 1) // 2)
            tables_before = sql(mem, "SELECT 'embedding'::regclass::oid::int8")
            assert mem.maintain()["indexed"] > 0
            assert sql(mem, "SELECT 'embedding'::regclass::oid::int8") != tables_before
            assert both() == first


@pytest.mark.slow
def test_nothing_takes_the_place_of_the_vectors_while_somebody_reads_one_snapshot(
    store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(staging, "_READERS_PATIENCE", "50ms")
    monkeypatch.setattr(staging, "_TURNS", 2)
    with worn(store_url, pool_size=3) as mem, psycopg.connect(mem.store.url, autocommit=True) as backup:
        with ExitStack() as reading:

            def work() -> None:
                remember(mem, 300, 301)  # its copy is made after the snapshot
                reading.enter_context(tables.snapshot(backup))
                assert backup.execute("SELECT count(*) FROM memory").fetchone() == (301,)

            before(monkeypatch, "replace", work)
            assert mem.maintain()["busy"] == 1
            assert backup.execute("SELECT count(*) FROM embedding").fetchone() == (301,)
        assert mem.maintain()["indexed"] == 100  # the last one is not in the index yet


@pytest.mark.slow
def test_nothing_takes_the_place_of_the_vectors_while_a_namespace_is_read_into_memory(
    store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(staging, "_READERS_PATIENCE", "50ms")
    monkeypatch.setattr(staging, "_TURNS", 2)
    needed, replaced = loading._bytes, list[bool]()
    with worn(store_url) as other, semmem.connect(store_url, embedder="none") as mem:
        assert other.maintain()["indexed"] == 100

        def noted(*given: Any, **named: Any) -> Any:
            replaced.append(other.store.run(staging.replace))
            return needed(*given, **named)

        with monkeypatch.context() as patch:
            patch.setattr(loading, "_bytes", noted)
            model = loading.load(mem.store, "default", 1 << 30, 1 << 30)
        assert model is not None
        assert replaced[0] is False
        assert other.store.run(staging.replace)


def test_a_deletion_that_is_under_way_takes_the_copy_too(store_url: str) -> None:
    with worn(store_url) as mem, mem.store.lasting() as connection, psycopg.connect(mem.store.url) as forgetting:
        which = {"namespace": "default", "ords": list(mem.store.row_ids_of("default", "m7"))}
        statements = vector_index._SQL
        forgetting.execute(statements["forget_embedding"], which)  # and not yet its copy
        staging.copy(connection)
        assert sql(mem, _STAGED) == [(300,)]
        forgetting.execute(statements["forget_staging"], which)
        forgetting.commit()
        assert sql(mem, _STAGED) == [(299,)]


def test_a_copy_waits_for_a_deletion_that_has_passed_the_copies(
    store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(staging, "_READERS_PATIENCE", "20ms")
    monkeypatch.setattr(staging, "_COPY_TRIES", 2)
    with worn(store_url) as mem, mem.store.lasting() as connection, psycopg.connect(mem.store.url) as forgetting:
        which = {"namespace": "default", "ords": list(mem.store.row_ids_of("default", "m7"))}
        for statement in ("forget_embedding", "forget_staging"):
            forgetting.execute(vector_index._SQL[statement], which)
        with pytest.raises(staging.NotNow):
            staging.copy(connection)
        forgetting.commit()
        staging.copy(connection)
        assert sql(mem, _STAGED) == [(299,)]


def test_a_copy_whose_vector_is_gone_does_not_take_its_place(store_url: str) -> None:
    with worn(store_url) as mem, mem.store.lasting() as connection:
        staging.copy(connection)
        row_ids = list(mem.store.row_ids_of("default", "m7"))
        sql(mem, "DELETE FROM embedding WHERE ord = ANY(%s)", row_ids)  # as a rename does, one table after the other
        assert sql(mem, _STAGED) == [(300,)]
        assert staging.replace(connection)
        assert sql(mem, "SELECT count(*), count(*) FILTER (WHERE ord = ANY(%s)) FROM embedding", row_ids) == [(299, 0)]


def test_writers_wait_while_the_last_copies_are_made_and_readers_do_not(
    store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def work() -> None:
        with psycopg.connect(mem.store.url, autocommit=True) as other:
            other.execute("SET lock_timeout TO '50ms'; SET search_path TO semmem")
            assert other.execute("SELECT count(*) FROM embedding").fetchone() == (300,)
            with pytest.raises(psycopg.errors.LockNotAvailable):
                other.execute(vector_index._SQL["embedding_own"])

    with worn(store_url) as mem, mem.store.lasting() as connection:
        before(monkeypatch, "swap", work)
        assert staging.replace(connection)


def test_a_vector_that_goes_while_others_are_inserted_into_the_index_keeps_none_of_these_out(
    store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vector_index, "_TAKEN_IN", 10)
    with semmem.connect(store_url, embedder="none", pool_size=3) as mem, ThreadPoolExecutor(1) as other:
        remember(mem, 0, 300)
        mem.maintain()
        remember(mem, 300, 330)
        with psycopg.connect(mem.store.url, options="-c search_path=semmem,public") as forgetter:
            forgetter.execute("DELETE FROM embedding WHERE ord = (SELECT ord FROM memory WHERE id = 'm303')")
            maintained = other.submit(mem.maintain)
            while sql(mem, "SELECT count(*) FROM pg_locks WHERE NOT granted") != [(1,)]:
                assert not maintained.done()
        maintained.result(60)
        assert sql(mem, "SELECT count(*) FROM embedding WHERE NOT indexed") == [(0,)]


def test_where_the_copies_find_no_room_the_index_is_filled_one_by_one(
    store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full() -> None:
        raise psycopg.errors.DiskFull("could not extend file")

    with worn(store_url) as mem:
        [(index, _)] = sql(mem, _INDEX)
        before(monkeypatch, "late", full)
        assert mem.maintain()["indexed"] == 100
        assert sql(mem, _INDEX) == [(index, "300")]
        assert sql(mem, _STAGED) == [(0,)]


def test_an_owner_whom_policies_bind_copies_nothing_because_it_may_not_see_all(store_url: str) -> None:
    with worn(store_url) as mem:
        role = f"owner_{sql(mem, _INDEX)[0][0]}"
        sql(mem, f"CREATE ROLE {role}")
        try:
            with mem.store.lasting() as connection:
                connection.execute(f"GRANT USAGE ON SCHEMA semmem TO {role}; GRANT SELECT ON meta TO {role}")
                for table in ("embedding", "embedding_next"):
                    connection.execute(f"ALTER TABLE {table} OWNER TO {role}")
                connection.execute(f"SET ROLE {role}")
                assert staging.is_free(connection)
                for how in ("ENABLE", "FORCE"):
                    connection.execute(f"ALTER TABLE embedding {how} ROW LEVEL SECURITY")
                assert not staging.is_free(connection)
                for how in ("NO FORCE", "DISABLE"):
                    connection.execute(f"ALTER TABLE embedding {how} ROW LEVEL SECURITY")
                connection.execute("RESET ROLE")
        finally:
            sql(mem, f"REASSIGN OWNED BY {role} TO CURRENT_USER")
            sql(mem, f"DROP OWNED BY {role}")
            sql(mem, f"DROP ROLE {role}")
