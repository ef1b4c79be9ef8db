"""What is asked again and again reads what it needs: what changed, or a page, and never a whole namespace."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import numpy as np
import pytest

from semmem.model.types import Filters
from semmem.stores.postgres.encoding import filter_parameters
from semmem.stores.postgres.store import PostgresStore
from semmem.stores.sql_files import statements
from tests.stores.resident.trio import Trio, opened

HALF = Filters(tags=("half",))
TABLES = ("memory", "forward", "embedding", "change")
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
@pytest.mark.parametrize("planned", [True, False])
@pytest.mark.parametrize(
    "statement",
    [
        "memory_scope",
        "resident_memories_since",
        "resident_forwards_since",
        "resident_vectors_since",
    ],
)
def test_what_came_since_is_looked_up_by_its_ids(
    filled: tuple[Trio, dict[str, Any]], statement: str, planned: bool
) -> None:
    trio, parameters = filled
    custom = "force_custom_plan" if planned or statement == "memory_scope" else "force_generic_plan"

    def explained(connection: Any) -> Any:
        with connection.transaction():
            connection.execute(f"SET LOCAL plan_cache_mode TO {custom}")
            body = f"EXPLAIN (ANALYZE, FORMAT JSON) {statements('postgres')[statement]}"
            return connection.execute(body, parameters, prepare=True).fetchone()[0]

    found = list(rows_read(trio.writer.store.run(explained)[0]["Plan"]))
    assert found
    assert sum(rows for _, rows in found) <= 5, found


def test_a_page_of_a_list_is_read_by_its_order(filled: tuple[Trio, dict[str, Any]]) -> None:
    trio, _ = filled
    writer = trio.writer

    def fetched() -> int:
        writer.store.run(lambda c: c.execute("SELECT pg_stat_force_next_flush()").fetchall())
        which = "SELECT seq_tup_read + idx_tup_fetch FROM pg_stat_user_tables WHERE relid = 'semmem.memory'::regclass"
        return int(writer.store.run(lambda c: c.execute(which).fetchone())[0])

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
    trio.writer.store.run(lambda c: c.execute("ANALYZE memory"))  # without statistics any index of the namespace may do

    def explained(connection: Any) -> Any:
        with connection.transaction():
            connection.execute("SET LOCAL plan_cache_mode TO force_generic_plan")
            body = f"EXPLAIN (ANALYZE, FORMAT JSON) {statements('postgres')['memory_at_state']}"
            asked = {"namespace": "plans", "ords": np.arange(1, 11), "at": None}
            return connection.execute(body, asked, prepare=True).fetchone()[0]

    found = list(rows_read(trio.writer.store.run(explained)[0]["Plan"]))
    assert sum(rows for _, rows in found) == 10, found
