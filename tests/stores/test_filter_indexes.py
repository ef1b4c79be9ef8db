"""Filters, lists and forgets read what they return, by an index, and not a whole namespace."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import semmem
from semmem.stores.sql_files import LISTS, statements
from tests.stores.audit import sql

FILL = """INSERT INTO memory (namespace, id, ord, text, tags, metadata, session, importance, created_at, updated_at,
                             content, payload)
SELECT 'n', i::text, i, repeat('some words ', 40), ARRAY['t' || i %% 200], jsonb_build_object('k', i %% 500),
       's' || i %% 300, .5, now() + i * interval '1 s', now(), '', '' FROM generate_series(1, 4000) AS i"""
READ = """SELECT idx_scan FROM pg_stat_user_indexes WHERE schemaname = 'semmem' AND indexrelname = %s"""
ROWS_READ = READ.replace("idx_scan", "idx_tup_read")


@pytest.mark.parametrize(
    ("filters", "index", "count"),
    [
        ({"tags": ("t5",)}, "memory_by_tag", 20),
        ({"metadata": {"k": 5}}, "memory_by_metadata", 8),
        ({"sessions": ("s7",)}, "memory_by_session", 14),
    ],
)
def test_a_filter_is_answered_by_its_index(store_url: str, filters: dict[str, Any], index: str, count: int) -> None:
    with semmem.connect(store_url, embedder="none", pool_size=1) as mem:
        sql(mem, FILL)
        sql(mem, "ANALYZE memory")

        def scans() -> int:
            mem.store.run(lambda c: c.execute("SELECT pg_stat_force_next_flush()").fetchall())
            return int(mem.store.run(lambda c: c.execute(READ, (index,)).fetchone())[0])

        before = scans()
        for _ in range(8):  # more than it takes until a statement is prepared
            assert mem.store.scope(("n",), semmem.Filters(**filters), ()).size == count
        between = scans()
        assert between >= before + 8
        for _ in range(8):
            assert len(mem.list(namespace="n", filters=filters)) == count
        assert scans() >= between + 8


def test_a_scope_has_its_numbers_ascending_wherever_the_rows_stand(store_url: str) -> None:
    with semmem.connect(store_url, embedder="none", pool_size=1) as mem:
        sql(mem, FILL)
        sql(mem, "UPDATE memory SET text = 'moved behind the others' WHERE ord %% 3 = 0")
        sql(mem, "ANALYZE memory")
        allowed = mem.store.scope(("n",), semmem.Filters(tags=("t5",)), ()).allowed
        assert allowed is not None
        assert allowed.tolist() == list(range(5, 4000, 200))


ORDERS = [("importance", "memory_by_importance"), ("updated", "memory_by_change"), ("accessed", "access_by_time")]


@pytest.mark.parametrize(("order", "index"), ORDERS)
def test_a_list_reads_a_page_of_the_index_of_its_order(store_url: str, order: Any, index: str) -> None:
    with semmem.connect(store_url, embedder="none", pool_size=1) as mem:
        sql(mem, FILL)
        sql(mem, "UPDATE memory SET importance = ord / 4000.0, updated_at = now() + ord * interval '1 s'")
        sql(mem, "INSERT INTO access SELECT namespace, id, 1, now() + ord * interval '1 s' FROM memory")
        for table in ("memory", "access"):
            sql(mem, f"VACUUM (ANALYZE) {table}")

        def rows_read() -> int:
            mem.store.run(lambda c: c.execute("SELECT pg_stat_force_next_flush()").fetchall())
            return int(mem.store.run(lambda c: c.execute(ROWS_READ, (index,)).fetchone())[0])

        before = rows_read()
        first = mem.list(namespace="n", sort_by=order, limit=3)
        second = mem.list(namespace="n", sort_by=order, limit=3, cursor=first.cursor)
        assert [m.id for m in (*first, *second)] == ["4000", "3999", "3998", "3997", "3996", "3995"]
        assert 6 <= rows_read() - before <= 20


def test_a_hard_forget_reads_the_logged_recalls_of_its_memory(store_url: str) -> None:
    with semmem.connect(store_url, embedder="none", pool_size=1) as mem:
        mem.remember("The owl sleeps.", id="owl")
        sql(
            mem,
            """INSERT INTO recall_log (namespace, recall_id, query, hits)
            SELECT 'default', 'r' || i, 'who', jsonb_build_object(CASE i WHEN 7 THEN 'owl' ELSE 'm' || i END, '{}')
            FROM generate_series(1, 4000) AS i""",
        )
        sql(mem, "INSERT INTO recall_log (namespace, recall_id, query) VALUES ('other', 'r7', 'who')")
        sql(mem, "VACUUM (ANALYZE) recall_log")

        def rows_read() -> list[int]:
            mem.store.run(lambda c: c.execute("SELECT pg_stat_force_next_flush()").fetchall())
            read = "SELECT seq_tup_read FROM pg_stat_user_tables WHERE schemaname = 'semmem' AND relname = 'recall_log'"
            indexes = ("recall_log_by_memory", "recall_log_by_recall")
            by_index = [mem.store.run(lambda c, i=i: c.execute(ROWS_READ, (i,)).fetchone())[0] for i in indexes]
            return [int(mem.store.run(lambda c: c.execute(read).fetchone())[0]), *map(int, by_index)]

        before = rows_read()
        assert mem.store.forget("default", "owl", semmem.Filters(), dry_run=False) == 1
        whole, by_memory, by_recall = (after - one for after, one in zip(rows_read(), before, strict=True))
        assert (whole, by_memory) == (0, 1)
        assert 2 <= by_recall <= 10  # the planner looks at both ends of the index
        left = mem.store.run(lambda c: c.execute("SELECT count(*) FROM recall_log").fetchone())
        assert left == (3999,)


@pytest.mark.parametrize(("order", "index"), ORDERS)
def test_a_list_reads_a_file_in_the_order_of_an_index(tmp_path: Path, order: Any, index: str) -> None:
    with semmem.connect(f"sqlite:{tmp_path}/notes.db", embedder="none") as mem:
        for n in range(3):
            mem.remember(f"number {n}", id=str(n), importance=n / 4)
        filters = dict.fromkeys(("sessions", "authors", "tags", "metadata", "titles", "source_types"))
        more = dict.fromkeys(("sensitive", "created_after", "created_before", "cursor_at", "cursor_key", "cursor_id"))
        asked = {**filters, **more, "cursor_time": None, "namespace": "default", "now": 0, "limit": 2}
        statement = f"EXPLAIN QUERY PLAN {statements('sqlite')[LISTS[order]]}"
        file: Any = mem.store
        steps = [str(row[3]) for row in file._reading(lambda c: c.execute(statement, asked).fetchall())]
        assert any(index in step for step in steps)
        if order != "accessed":  # whose two parts are put in order, a page at most
            assert not any("ORDER BY" in step for step in steps)
        assert [m.id for m in mem.list(sort_by=order)] == ["2", "1", "0"]
