"""The schema of SQLite: its migrations, files of an older and a newer program, its statements."""

from __future__ import annotations

import gzip
import re
import sqlite3
from pathlib import Path
from typing import Any

import pytest

import semmem
from semmem.model.errors import SchemaTooNew, SchemaTooOld
from semmem.stores.sql_files import migrations, statements
from semmem.stores.sqlite import connection as sqlite_migrate
from semmem.stores.sqlite.connection import APPLICATION, migrate
from tests.stores.sqlite.older import written_at


def schema(connection: sqlite3.Connection) -> list[tuple[Any, ...]]:
    return connection.execute("SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY 1, 2").fetchall()


def memory() -> sqlite3.Connection:
    return sqlite3.connect(":memory:", isolation_level=None)


def test_migrations_one_by_one_give_the_schema_of_all_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    known = migrations("sqlite")
    newest = known[-1][0]
    step_by_step, at_once = memory(), memory()
    for last in range(1, len(known) + 1):
        monkeypatch.setattr(sqlite_migrate, "migrations", lambda backend, n=last: known[:n])
        assert migrate(step_by_step, "it") == known[last - 1][0]
    monkeypatch.undo()
    assert migrate(at_once, "it") == newest
    assert schema(at_once) == schema(step_by_step)
    assert {"memory", "namespace", "lexical", "lexical_term", "migration"} <= {name for _, name, *_ in schema(at_once)}
    assert at_once.execute("PRAGMA application_id").fetchone() == (APPLICATION,)
    before = at_once.execute("SELECT * FROM migration").fetchall()
    assert [row[:2] for row in before] == [(number, name) for number, name, _ in known]
    assert migrate(at_once, "it") == newest
    assert at_once.execute("SELECT * FROM migration").fetchall() == before
    step_by_step.close()
    at_once.close()


@pytest.mark.parametrize("number", [3, 11])
def test_a_file_of_an_older_schema_comes_over_with_its_memories_and_gets_its_graph_and_its_vectors(
    number: int, tmp_path: Path
) -> None:
    def said(mem: semmem.Semmem, recipe: str = "default") -> list[tuple[str, float]]:
        return [(hit.id, hit.score) for hit in mem.recall("Which kettle is on the Hob of Ada?", recipe=recipe)]

    with semmem.connect(f"sqlite://{tmp_path}/newest.db", embedder="hashing") as mem:
        mem.remember("The Hob of Ada is black.", title="Hob of Ada", id="hob")
        for kettle in range(3):
            mem.remember(f"Kettle number {kettle} stands on the Hob of Ada.", id=f"m{kettle}", tags=["kitchen"])
        mem.remember("A kettle that nobody knows.", id="secret", sensitive=True)
        before, digest = (mem.list(), said(mem), said(mem, "lexical")), mem.graph_hash()
    written_at(number, tmp_path / "newest.db", tmp_path / "old.db")
    with semmem.connect(f"sqlite://{tmp_path}/old.db", embedder="hashing") as mem:
        assert (mem.list(), said(mem, "lexical")) == (before[0], before[2])
        assert [id for id, _ in said(mem)][:4] == [id for id, _ in before[2]]  # the lexical leg finds all of them
        assert (mem.stats().stale, mem.stats().vectors, mem.stats().concepts) == (4, 0, 0)
        assert mem.maintain()["rebuilt"] == 4
        assert (mem.stats().stale, mem.graph_hash()) == (0, digest)
        assert mem.rebuild().embedded == 4
        assert (mem.list(), said(mem), said(mem, "lexical")) == before
        assert mem.remember("A whistle.").version == 1


def test_a_migration_that_fails_leaves_nothing_of_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    known = migrations("sqlite")
    connection = memory()
    monkeypatch.setattr(
        sqlite_migrate,
        "migrations",
        lambda backend: (*known, (known[-1][0] + 1, "broken", "CREATE TABLE half (a);\nOops;")),
    )
    with pytest.raises(sqlite3.OperationalError, match="Oops"):
        migrate(connection, "it")
    assert schema(connection) == []
    monkeypatch.undo()
    assert migrate(connection, "it") == known[-1][0]
    connection.close()


def test_a_file_of_a_newer_program_is_refused_and_left_alone(mem: semmem.Semmem, file: Path) -> None:
    mem.remember("heron")
    mem.store._run(lambda c: c.execute("INSERT INTO migration (number, name) VALUES (999, 'from the future')"))
    with pytest.raises(
        SchemaTooNew,
        match=(
            r"notes\.db has schema 999 and this version of semmem reads " r"up to \d+; upgrade semmem as docs/operate"
        ),
    ):
        semmem.connect(f"sqlite://{file}", embedder="none")
    assert mem.stats().memories == 1


def test_a_file_of_an_older_program_is_refused_with_the_way_over_and_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "old.db"
    file.write_bytes(gzip.decompress((Path(__file__).parents[1] / "data" / "schema-1.db.gz").read_bytes()))
    before = file.read_bytes()
    way = r"old\.db has schema 1 and this semmem reads 3 or newer: .*`semmem export FILE`, .*`semmem import jsonl"
    with pytest.raises(SchemaTooOld, match=way):
        semmem.connect(f"sqlite://{file}", embedder="none")
    assert file.read_bytes() == before


def test_every_statement_says_why_it_exists_and_can_be_prepared(mem: semmem.Semmem) -> None:
    found = statements("sqlite")
    assert len(found) > 30
    assert [name for name, body in found.items() if not body.startswith("-- ")] == []

    def explain(connection: sqlite3.Connection) -> None:
        for name, template in found.items():
            body = template.replace("{table}", "change").replace("{columns}", "id")
            if name != "migration_table" and "PRAGMA" not in body:
                connection.execute(f"EXPLAIN {body}", dict.fromkeys(re.findall(r":(\w+)", body))).fetchall()

    mem.store._run(explain)
