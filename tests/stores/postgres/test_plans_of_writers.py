"""A writer reads by an index, also where its statements were planned while the tables were empty.

The server keeps the plan of a prepared statement until it has counted a table anew, which may be minutes later.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

import semmem
from semmem.client.memory import Semmem
from semmem.concepts.rules import extract
from semmem.stores.postgres import postings
from semmem.stores.postgres.store import PostgresStore
from semmem.stores.postgres.typed import Connection
from semmem.stores.sql_files import statements

OF_MEMORIES = {
    "memory", "forward", "posting", "lone_posting", "pending", "likeness", "likeness_key", "change", "embedding",
}  # fmt: skip
OF_WRITERS = {
    "memory_insert", "segments_known", "segments_meet", "singleton_meet", "posting_lock", "posting_delete",
    "flush_take", "flush_forwards", "flush_done", "fresh_list", "fresh_done", "compact",
}  # fmt: skip
"""Statements of writers that keep one plan for any parameters, so the test must have found the plan of each."""
AS_PLANNED = {"nearest_memories"}
"""What each remember asks after its commit: planning it anew would take .3 ms each time; see adr/0113."""


def notes(first: int, count: int) -> list[dict[str, Any]]:
    """Return notes that share words and names with one another."""
    numbers = range(first, first + count)
    texts = (f"Note {n}: Ada{n % 97} met Owl{n % 89} by quay {n % 83} and Mill{n}." for n in numbers)
    return [{"id": f"m{n}", "text": text, "namespace": f"n{n % 3}"} for n, text in enumerate(texts, first)]


@pytest.fixture(scope="module")
def grown(module_url: str) -> Iterator[Semmem]:
    """A store with one connection that planned its statements over empty tables, into which a bulk was written."""
    with semmem.connect(module_url, embedder="hashing", pool_size=1) as mem:
        mem.remember("One note.", id="one", namespace="first")
        mem.maintain()  # leaves tables of postings empty, and the server knows how many rows they have
        store(mem).run(without_counting)
        for _ in range(6):  # before a writer asks the same in its transaction
            assert postings.backlogs_due(store(mem), ["first"], {}, bulk=True) == {}
        write_few(mem)
        (row_id,) = mem.store.row_ids_of("first", "one")
        for number in range(6):
            change_the_note(store(mem), row_id, number)
        for first in range(0, 1_200, 300):
            mem.remember_many(notes(first, 300))
        yield mem


def write_few(mem: Semmem) -> None:
    """Update, flush and compact often enough that each statement of these is planned for any parameters."""
    for n in range(20):
        mem.remember(f"Ada met Owl{n} by quay.", id=f"f{n}", namespace="n0")
        mem.update(f"f{n}", text=f"Ada met Mill{n} by quay.", namespace="n0")
        store(mem).transaction(partial(postings.flush, namespaces=["n0"]))
        store(mem).transaction(partial(postings.compact, namespace="n0"))
        mem.update(f"f{n}", text="Ada met Mill.", namespace="n0")


def change_the_note(store: PostgresStore, row_id: int, number: int) -> None:
    """Compare the one note with what is stored, and index another text for it."""
    assert store.stored_memories([("first", "one")])
    assert store.vectors.stored_vectors([("first", "one")])
    assert store.reindex("first", [(row_id, extract(f"Another{number} note."))]) == 1


def store(mem: Semmem) -> PostgresStore:
    assert isinstance(mem.store, PostgresStore)
    return mem.store


def without_counting(connection: Connection) -> None:
    tables = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'semmem'").fetchall()
    for (table,) in tables:
        connection.execute(f"VACUUM (ANALYZE) semmem.{table}")
        connection.execute(f"ALTER TABLE semmem.{table} SET (autovacuum_enabled = off)")


def plans(connection: Connection) -> dict[str, dict[str, Any]]:
    """Return the plan of each statement that the connection has prepared and planned for any parameters.

    Where the server has dropped a plan, as it may at any time, it makes a new one as it would for a writer.
    """
    with connection.transaction():
        connection.execute(statements("postgres")["by_index"])
        return kept_plans(connection)


def kept_plans(connection: Connection) -> dict[str, dict[str, Any]]:
    prepared = connection.execute(
        "SELECT name, statement, cardinality(parameter_types), generic_plans FROM pg_prepared_statements"
    ).fetchall()
    found = {}
    for name, statement, count, generic in prepared:
        if generic and statement.startswith("--"):
            unknown = f"({', '.join(['NULL'] * count)})" if count else ""
            row = connection.execute(f'EXPLAIN (FORMAT JSON) EXECUTE "{name}"{unknown}', prepare=False).fetchone()
            assert row is not None
            found[statement] = row[0][0]
    return {statement: plan["Plan"] for statement, plan in found.items() if isinstance(plan, dict)}  # else SET


def scans(plan: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the way in which each table is read: a kind of scan, or an index."""
    if "Relation Name" in plan and "Scan" in plan["Node Type"]:
        yield plan["Relation Name"], plan.get("Index Name", plan["Node Type"])
    for part in plan.get("Plans", ()):
        yield from scans(part)


def indexes(plan: dict[str, Any]) -> Iterator[str]:
    """Yield the indexes that a plan reads, whether in their order or page by page."""
    if "Index Name" in plan:
        yield plan["Index Name"]
    for part in plan.get("Plans", ()):
        yield from indexes(part)


@pytest.mark.slow
def test_no_statement_of_a_writer_reads_a_whole_table_that_was_empty_when_it_was_planned(grown: Semmem) -> None:
    names = {text.splitlines()[0]: name for name, text in statements("postgres").items()}
    read = {names[text.splitlines()[0]]: list(scans(plan)) for text, plan in store(grown).run(plans).items()}
    assert read.keys() >= OF_WRITERS
    found = [(name, table, how) for name, some in read.items() for table, how in some if table in OF_MEMORIES]
    whole = [one for one in found if one[2] == "Seq Scan" and one[0] not in AS_PLANNED]
    assert not whole, whole
    assert read["segments_known"] == [("posting", "posting_shared")]


def test_joining_rows_reads_the_rows_of_the_keys_once_whatever_the_server_knows_of_the_table(grown: Semmem) -> None:
    """A plan that looks up each row by itself may do so by an index of the whole segment."""

    def plan(connection: Connection) -> Any:
        limits = {"fresh": 1, "full": 1_000, "least": 2}
        parameters = {"namespace": "n1", "segments": [1, 2, 3], **limits}
        row = connection.execute(f"EXPLAIN (FORMAT JSON) {statements('postgres')['compact']}", parameters).fetchone()
        assert row is not None
        return row[0][0]["Plan"]

    planned = store(grown).run(plan)
    assert [table for table, _ in scans(planned)] == ["posting"] * 3
    assert "Nested Loop" not in repr(planned)


def test_a_look_up_in_a_transaction_of_the_caller_leaves_the_planning_of_what_follows_as_it_was(grown: Semmem) -> None:
    def mode(connection: Connection) -> Any:
        row = connection.execute("SHOW plan_cache_mode").fetchone()
        assert row is not None
        return row[0]

    before = store(grown).run(mode)
    with store(grown).whole():
        assert len(store(grown).payload_hashes([("n1", "m1"), ("n2", "m2")])) == 2
        assert store(grown).run(mode) == before


def test_maintain_reads_the_rows_that_came_since_by_their_segment_and_the_others_by_their_keys(grown: Semmem) -> None:
    def plan(connection: Connection) -> Any:
        connection.execute(statements("postgres")["by_index"])
        parameters = {"namespace": "n1", "after": 2, "full": 4_096}
        statement = f"EXPLAIN (FORMAT JSON) {statements('postgres')['keys_of_several_rows']}"
        row = connection.execute(statement, parameters).fetchone()
        assert row is not None
        return row[0][0]["Plan"]

    planned = store(grown).transaction(plan)
    assert sorted(indexes(planned)) == ["posting_by_segment", "posting_shared"]
    assert "Nested Loop" not in repr(planned)
