"""A process that stays open while a newer semmem migrates its store is told so by every verb."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import psycopg
import pytest

import semmem

NEWER = "was changed by a newer semmem: it has schema 99 and this process knows"


def migrated(url: str, *statements: str) -> None:
    """Change the tables as a migration of a later version might."""
    for statement in (*statements, "INSERT INTO migration (number, name) VALUES (99, '0099_later')"):
        if url.startswith("sqlite"):
            with sqlite3.connect(url.removeprefix("sqlite://")) as file:
                file.execute(statement)
        else:
            with psycopg.connect(url, options="-c search_path=semmem,public") as server:
                server.execute(statement)


@pytest.mark.parametrize("kind", ["PostgreSQL", "SQLite"])
def test_a_process_that_is_older_than_its_store_by_now_says_so(
    request: pytest.FixtureRequest, tmp_path: Path, kind: str
) -> None:
    url = str(request.getfixturevalue("store_url")) if kind == "PostgreSQL" else f"sqlite://{tmp_path}/notes.db"
    with semmem.connect(url, embedder="hashing" if kind == "PostgreSQL" else None) as mem:
        mem.remember("The key hangs behind the radio.", id="key")
        mem.remember("The radio is new.", id="radio")
        migrated(
            url,
            "ALTER TABLE memory RENAME COLUMN seen_count TO times",
            "ALTER TABLE link RENAME TO tie",
        )
        for verb in (
            lambda: mem.remember("Another."),
            lambda: mem.update("key", text="The key is gone."),
            lambda: mem.get("key"),
            lambda: mem.list(),
            lambda: mem.links("key"),
            lambda: mem.link("key", "see-also", "radio"),
            lambda: mem.recall("key"),
        ):
            with pytest.raises(semmem.SchemaTooNew, match=NEWER):
                verb()
        assert mem.stats().memories == 2  # what the change does not concern goes on


def test_a_table_that_is_gone_without_a_newer_schema_is_told_as_before(tmp_path: Path) -> None:
    with semmem.connect(f"sqlite://{tmp_path}/notes.db", embedder="none") as mem:
        with sqlite3.connect(tmp_path / "notes.db") as file:
            file.execute("DROP TABLE access")
        with pytest.raises(semmem.StoreError, match="no such table") as told:
            mem.drop_namespace("default")
        assert not isinstance(told.value, semmem.SchemaTooNew)


def test_the_list_of_namespaces_of_a_file_reads_an_index_and_no_memory(tmp_path: Path) -> None:
    from semmem.stores.sql_files import statements

    with semmem.connect(f"sqlite://{tmp_path}/notes.db", embedder="none") as mem:
        mem.remember_many([{"text": f"Owl {n}. " * 300, "namespace": f"n{n % 2}"} for n in range(4)])
        assert [(one.name, one.memories) for one in mem.namespaces()] == [("n0", 2), ("n1", 2)]
    with sqlite3.connect(tmp_path / "notes.db") as file:
        plan = [row[-1] for row in file.execute("EXPLAIN QUERY PLAN " + statements("sqlite")["namespace_list"])]
    assert plan == ["SCAN memory USING COVERING INDEX memory_by_change"]
