"""A filter by tag or metadata reads what it lets through, by an index, and not its whole namespace."""

from __future__ import annotations

from typing import Any

import pytest

import semmem
from tests.stores.audit import sql

FILL = """INSERT INTO memory (namespace, id, ord, text, tags, metadata, session, importance, created_at, updated_at,
                             content, payload)
SELECT 'n', i::text, i, repeat('some words ', 40), ARRAY['t' || i %% 200], jsonb_build_object('k', i %% 500),
       's' || i %% 300, .5, now() + i * interval '1 s', now(), '', '' FROM generate_series(1, 4000) AS i"""
READ = """SELECT idx_scan FROM pg_stat_user_indexes WHERE schemaname = 'semmem' AND indexrelname = %s"""


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
