"""What is asked again and again reads what it needs: what changed, or a page, and never a whole namespace."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import numpy as np
import pytest

import semmem
from semmem.model.types import Filters
from semmem.stores.postgres.encoding import filter_parameters
from semmem.stores.postgres.store import PostgresStore
from semmem.stores.resident.loading import follow, load
from semmem.stores.sql_files import statements
from tests.stores.resident.trio import Trio, opened

HALF = Filters(tags=("half",))
TABLES = ("memory", "forward", "embedding", "change")
SINCE = ("resident_memories_since", "resident_forwards_since", "resident_vectors_since")
COUNT = 2_000


@pytest.fixture(scope="module")
def filled(module_url: str) -> Iterator[tuple[Trio, dict[str, Any]]]:
    """Return a large namespace to which a memory was added, and the parameters of those who knew it before.

    Others have more changes than it, by which the planner would expect many. It has no statistics of the namespace.
    """
    with ExitStack() as stack:
        trio = opened(stack, module_url)
        notes = ({"text": f"Note {n}.", "id": f"n{n}", "tags": ["half"]} for n in range(COUNT))
        trio.writer.remember_many(notes, namespace="plans")
        kept = trio.kept.store
        assert isinstance(kept, PostgresStore)
        kept.scope(("plans",), HALF, ())
        known = kept.matching.of(["plans"], HALF)["plans"]
        trio.writer.remember("One more.", id="more", tags=["half"], namespace="plans")
        where = {"namespace": "plans", "place": known.place, "since": known.changes}
        yield trio, {**where, **filter_parameters(HALF)}


def rows_read(plan: dict[str, Any]) -> Iterator[tuple[str, float]]:
    """Yield each table that was scanned, and how many rows were looked at."""
    if plan.get("Relation Name") in TABLES:
        looked_at = plan["Actual Rows"] + plan.get("Rows Removed by Filter", 0)
        yield plan["Relation Name"], looked_at * plan["Actual Loops"]
    for part in plan.get("Plans", ()):
        yield from rows_read(part)


@pytest.mark.slow
@pytest.mark.parametrize("statement", ["memory_scope", *SINCE])
def test_the_memories_that_came_since_are_looked_up_by_their_ids(
    filled: tuple[Trio, dict[str, Any]], statement: str
) -> None:
    trio, parameters = filled

    def explained(connection: Any) -> Any:
        body = f"EXPLAIN (ANALYZE, FORMAT JSON) {statements('postgres')[statement]}"  # planned for these parameters
        return connection.execute(body, parameters).fetchone()[0]

    found = list(rows_read(trio.writer.store.run(explained)[0]["Plan"]))
    assert found
    assert sum(rows for _, rows in found) <= 5, found


@pytest.mark.slow
def test_a_model_is_brought_up_to_date_by_a_plan_for_any_namespace(filled: tuple[Trio, dict[str, Any]]) -> None:
    trio, _ = filled
    store = trio.kept.store
    assert isinstance(store, PostgresStore)
    trio.writer.remember_many([{"text": f"Tide {n}."} for n in range(100)], namespace="tides")
    with store.session():  # each connection counts for itself until it says so
        model = load(store, "tides", 1 << 30, 1 << 30)
        for number in range(8):  # more than it takes until a statement is prepared
            trio.writer.remember(f"Another one, {number}.", namespace="tides")
            before = read_so_far(store)
            assert model is not None
            model = follow(store, model, 1 << 30)
        assert model is not None
        assert sum(read_so_far(store).values()) - sum(before.values()) <= 10


def test_a_page_of_a_list_is_read_by_its_order(filled: tuple[Trio, dict[str, Any]]) -> None:
    trio, _ = filled
    writer = trio.writer
    assert isinstance(writer.store, PostgresStore)

    def fetched() -> int:
        return read_so_far(writer.store)["memory"]

    writer.store.run(lambda c: c.execute("ANALYZE memory"))
    with writer.store.session():  # each connection counts for itself until it says so
        for _ in range(8):  # more than it takes until a statement is prepared
            writer.list(namespace="plans", limit=5)
        before = fetched()
        page = writer.list(namespace="plans", limit=5)
        assert len(page) == 5
        assert fetched() - before == 6  # one more says whether there is a next page
    writer.list(namespace="plans", limit=5, cursor=page.cursor)
    assert fetched() - before <= 20


def test_the_hits_and_the_state_beside_them_are_read_by_their_numbers(filled: tuple[Trio, dict[str, Any]]) -> None:
    trio, _ = filled
    store = trio.writer.store
    assert isinstance(store, PostgresStore)
    store.run(lambda c: c.execute("ANALYZE memory"))  # without statistics any index of the namespace may do
    asked = {"namespace": "plans", "ords": np.arange(1, 11), "at": None}
    with store.session():  # each connection counts for itself until it says so
        before = read_so_far(store)["memory"]
        store.run(lambda c: c.execute(statements("postgres")["memory_at_state"], asked, prepare=True).fetchall())
        assert read_so_far(store)["memory"] - before == 10


def test_a_namespace_is_loaded_by_its_index_also_where_the_table_was_counted_while_it_was_small(other_url: str) -> None:
    with semmem.connect(other_url, embedder="hashing", pool_size=1, resident_mb=0) as mem:
        store = mem.store
        assert isinstance(store, PostgresStore)
        mem.remember_many([{"text": f"Note {n}.", "id": f"n{n}"} for n in range(5)], namespace="few")
        store.run(lambda c: c.execute("ANALYZE memory, forward, embedding"))
        for _ in range(8):  # more than it takes until its statements are prepared
            assert load(store, "few", 1 << 30, 1 << 30) is not None
        mem.remember_many([{"text": f"Tide {n}.", "id": f"t{n}"} for n in range(500)], namespace="many")
        before = read_so_far(store)
        assert load(store, "few", 1 << 30, 1 << 30) is not None
        for table, rows in read_so_far(store).items():
            assert rows - before[table] <= 10, table  # some are counted by one statement and read by another


def read_so_far(store: PostgresStore) -> dict[str, int]:
    """Return how many rows of each table this connection and ended ones have read."""
    store.run(lambda c: c.execute("SELECT pg_stat_force_next_flush()").fetchall())
    counts = "SELECT relname, seq_tup_read + coalesce(idx_tup_fetch, 0) FROM pg_stat_user_tables"
    return {table: rows for table, rows in store.run(lambda c: c.execute(counts).fetchall()) if table in TABLES}
