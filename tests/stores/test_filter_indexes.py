"""Filters and lists by importance read what they return, by an index, and not a whole namespace."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import semmem
from semmem.stores.sql_files import statements
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


def test_a_list_by_importance_reads_a_page_of_its_index(store_url: str) -> None:
    with semmem.connect(store_url, embedder="none", pool_size=1) as mem:
        sql(mem, FILL)
        sql(mem, "UPDATE memory SET importance = ord / 4000.0")
        sql(mem, "VACUUM (ANALYZE) memory")

        def rows_read() -> int:
            mem.store.run(lambda c: c.execute("SELECT pg_stat_force_next_flush()").fetchall())
            return int(mem.store.run(lambda c: c.execute(ROWS_READ, ("memory_by_importance",)).fetchone())[0])

        before = rows_read()
        first = mem.list(namespace="n", sort_by="importance", limit=3)
        second = mem.list(namespace="n", sort_by="importance", limit=3, cursor=first.cursor)
        assert [m.id for m in (*first, *second)] == ["4000", "3999", "3998", "3997", "3996", "3995"]
        assert 6 <= rows_read() - before <= 20


def test_a_list_by_importance_reads_a_file_in_the_order_of_its_index(tmp_path: Path) -> None:
    with semmem.connect(f"sqlite:{tmp_path}/notes.db", embedder="none") as mem:
        for n in range(3):
            mem.remember(f"number {n}", id=str(n), importance=n / 4)
        filters = dict.fromkeys(("sessions", "authors", "tags", "metadata", "titles", "source_types"))
        more = dict.fromkeys(("sensitive", "created_after", "created_before", "cursor_at", "cursor_key", "cursor_id"))
        asked = {**filters, **more, "namespace": "default", "now": 0, "limit": 2}
        statement = f"EXPLAIN QUERY PLAN {statements('sqlite')['memory_list_important']}"
        file: Any = mem.store
        plan = " ".join(str(row[3]) for row in file._reading(lambda c: c.execute(statement, asked).fetchall()))
        assert "memory_by_importance" in plan
        assert "ORDER BY" not in plan
        assert [m.id for m in mem.list(sort_by="importance")] == ["2", "1", "0"]
