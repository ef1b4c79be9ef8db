"""The schema is the sum of its migrations; any number of processes may bring it up to date at once."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.resources import files

import psycopg
import pytest

import semmem
from semmem.model.errors import InvalidInput, SchemaTooNew, SchemaTooOld, StoreUnavailable
from semmem.stores import sql_files
from semmem.stores.embedded.server import EmbeddedServer
from semmem.stores.postgres import migrate as migrating
from semmem.stores.postgres.migrate import migrate
from semmem.stores.sql_files import migrations, statements

NEWEST = migrations("postgres")[-1][0]
SCHEMA = """
SELECT c.relname, c.relkind::text, a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull, a.attstorage::text,
       coll.collname, pg_get_expr(d.adbin, d.adrelid), NULL
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace AND n.nspname = 'semmem'
JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
LEFT JOIN pg_collation coll ON coll.oid = a.attcollation
LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum
UNION ALL
SELECT tablename, 'index', indexname, indexdef, NULL, NULL, NULL, NULL, NULL FROM pg_indexes WHERE schemaname = 'semmem'
UNION ALL
SELECT sequencename, 'sequence', NULL, data_type::text, cycle, NULL, NULL, min_value::text, max_value::text
FROM pg_sequences WHERE schemaname = 'semmem'
UNION ALL
SELECT conrelid::regclass::text, 'constraint', conname, pg_get_constraintdef(oid), NULL, NULL, NULL, NULL, NULL
FROM pg_constraint WHERE connamespace = 'semmem'::regnamespace
ORDER BY 1, 2, 3, 4
"""


def rows(url: str, sql: str) -> list[tuple[object, ...]]:
    with psycopg.connect(url, autocommit=True) as connection:
        return connection.execute(sql).fetchall()


def run(url: str, sql: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(sql)


@pytest.fixture
def bare_url(store_url: str) -> str:
    """A database in which semmem has never been."""
    with psycopg.connect(store_url, autocommit=True) as connection:
        connection.execute("SET client_min_messages TO error")
        connection.execute("DROP SCHEMA semmem CASCADE")
        connection.execute("DROP EXTENSION vector CASCADE")
    return store_url


def test_migrations_are_numbered_from_the_oldest_schema_that_is_read_without_a_gap() -> None:
    assert [number for number, _, _ in migrations("postgres")] == list(range(7, NEWEST + 1))
    assert [number for number, _, _ in migrations("sqlite")] == list(range(3, migrations("sqlite")[-1][0] + 1))


def test_applying_migrations_one_process_at_a_time_gives_the_schema_of_all_at_once(
    bare_url: str, store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = migrations("postgres")
    for last in range(1, len(known) + 1):
        monkeypatch.setattr(migrating, "migrations", lambda backend, n=last: known[:n])
        assert migrate(bare_url) == known[last - 1][0]
        assert rows(bare_url, "SELECT number, name FROM semmem.migration ORDER BY number") == [
            (number, name) for number, name, _ in known[:last]
        ]
    step_by_step = rows(bare_url, SCHEMA)
    run(bare_url, "DROP SCHEMA semmem CASCADE")
    monkeypatch.undo()
    assert migrate(bare_url) == NEWEST
    assert rows(bare_url, SCHEMA) == step_by_step
    assert len(step_by_step) > 50


def test_a_store_of_schema_7_comes_over_with_its_memories(store_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with semmem.connect(store_url, embedder="hashing") as mem:
        for number in range(3):
            mem.remember(f"The kettle number {number} stands on the stove.", id=f"m{number}", tags=["kitchen"])
        before = mem.list(), mem.hashes(), [(hit.id, hit.score) for hit in mem.recall("kettle on the stove")]
    run(store_url, "ALTER SCHEMA semmem RENAME TO newest")
    oldest = migrations("postgres")[:1]
    monkeypatch.setattr(migrating, "migrations", lambda backend: oldest)
    assert migrate(store_url) == 7
    monkeypatch.undo()
    columns = "SELECT table_name, string_agg(column_name, ', ') FROM information_schema.columns WHERE table_schema = "
    both = "AND (table_name, column_name) IN (SELECT table_name, column_name FROM information_schema.columns WHERE "
    both += "table_schema = 'newest')"  # what is in no store any more had no use
    for table, names in rows(store_url, f"{columns}'semmem' AND table_name <> 'migration' {both} GROUP BY 1"):
        run(store_url, f"INSERT INTO semmem.{table} ({names}) SELECT {names} FROM newest.{table}")
    run(store_url, "DROP SCHEMA newest CASCADE")
    with semmem.connect(store_url, embedder="hashing", backup_before_migration=False) as mem:
        assert (mem.list(), mem.hashes(), [(hit.id, hit.score) for hit in mem.recall("kettle on the stove")]) == before
    assert rows(store_url, "SELECT max(number) FROM semmem.migration") == [(NEWEST,)]


def test_migrating_a_second_time_changes_nothing(store_url: str) -> None:
    what = "SELECT number, name, applied_at FROM semmem.migration ORDER BY number"
    before, schema = rows(store_url, what), rows(store_url, SCHEMA)
    assert migrate(store_url) == NEWEST
    assert (rows(store_url, what), rows(store_url, SCHEMA)) == (before, schema)


@pytest.mark.slow
def test_processes_that_start_together_migrate_once(bare_url: str) -> None:
    program = "import sys; from semmem.stores.postgres.migrate import migrate; print(migrate(sys.argv[1]))"
    processes = [
        subprocess.Popen([sys.executable, "-c", program, bare_url], stdout=subprocess.PIPE, text=True) for _ in range(4)
    ]
    assert [p.communicate(timeout=60)[0].strip() for p in processes] == [str(NEWEST)] * 4
    assert rows(bare_url, "SELECT count(*) FROM semmem.migration") == [(len(migrations("postgres")),)]


def test_a_schema_of_a_newer_program_is_refused_and_left_alone(store_url: str) -> None:
    run(store_url, "INSERT INTO semmem.migration (number, name) VALUES (999, 'from the future')")
    with pytest.raises(
        SchemaTooNew,
        match=(r"schema 999 and this version of semmem reads up to \d+; " r"upgrade semmem as docs/operate"),
    ):
        semmem.connect(store_url, embedder="hashing")
    assert rows(store_url, "SELECT max(number) FROM semmem.migration") == [(999,)]
    assert rows(store_url, "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND database = "
                           "(SELECT oid FROM pg_database WHERE datname = current_database())") == [(0,)]  # fmt: skip


def test_every_table_is_led_by_its_namespace_and_no_number_goes_across_namespaces(store_url: str) -> None:
    keys = """SELECT c.relname::text, array_agg(a.attname::text ORDER BY k.place) FROM pg_class c
    JOIN pg_namespace n ON n.oid = c.relnamespace AND n.nspname = 'semmem' LEFT JOIN pg_index i ON i.indrelid = c.oid
    AND {which} LEFT JOIN unnest(i.indkey) WITH ORDINALITY AS k(attnum, place) ON true
    LEFT JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = k.attnum
    WHERE c.relkind = 'r' GROUP BY 1, i.indexrelid"""
    found = {name: columns[0] for name, columns in rows(store_url, keys.format(which="i.indisprimary"))}
    assert {name for name, first in found.items() if first != "namespace"} == {
        "access_key",
        "answered",
        "meta",
        "migration",
        "rate_bucket",
    }
    assert len(found) == 27
    others = [(name, c[0]) for name, c in rows(store_url, keys.format(which="NOT i.indisprimary")) if c[0] is not None]
    across = {
        ("answered", "at"),
        ("audit", "at"),
        ("audit", "id"),
        ("memory", "tags"),
        ("memory", "metadata"),
        ("rate_bucket", "at"),
        ("recall_log", "recall_id"),
    }
    assert {pair for pair in others if pair[1] != "namespace"} == across
    assert rows(store_url, "SELECT count(*) FROM pg_sequences WHERE schemaname = 'semmem'") == [(0,)]
    foreign = "SELECT count(*) FROM pg_constraint WHERE connamespace = 'semmem'::regnamespace AND contype = 'f'"
    assert rows(store_url, foreign) == [(0,)]


def test_a_store_of_an_older_schema_is_refused_with_the_way_over_and_left_alone(store_url: str) -> None:
    run(store_url, "DELETE FROM semmem.migration WHERE number > 7; UPDATE semmem.migration SET number = 6")
    before = rows(store_url, SCHEMA)
    way = r"^This store has schema 6 and this semmem reads 7 or newer: .*`semmem export FILE`, .*`semmem import jsonl"
    with pytest.raises(SchemaTooOld, match=way):
        semmem.connect(store_url, embedder="hashing")
    assert rows(store_url, SCHEMA) == before
    assert rows(store_url, "SELECT max(number) FROM semmem.migration") == [(6,)]


def test_a_migration_that_fails_leaves_neither_half_a_schema_nor_a_lock(
    store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = migrations("postgres")
    before = rows(store_url, SCHEMA)
    broken = (NEWEST + 1, "broken", "CREATE TABLE half (a int); SELECT 1 / 0")
    monkeypatch.setattr(migrating, "migrations", lambda backend: (*known, broken))
    with pytest.raises(psycopg.errors.DivisionByZero):
        migrate(store_url)
    assert rows(store_url, SCHEMA) == before
    mended = (NEWEST + 1, "mended", "CREATE TABLE whole (a int)")
    monkeypatch.setattr(migrating, "migrations", lambda backend: (*known, mended))
    assert migrate(store_url) == NEWEST + 1


def test_an_extension_in_another_schema_is_told_with_the_line_that_moves_it(bare_url: str) -> None:
    run(bare_url, "CREATE SCHEMA extensions")
    run(bare_url, "CREATE EXTENSION vector SCHEMA extensions")
    with pytest.raises(StoreUnavailable, match="ALTER EXTENSION vector SET SCHEMA public"):
        migrate(bare_url)
    run(bare_url, "ALTER EXTENSION vector SET SCHEMA public")
    assert migrate(bare_url) == NEWEST


def test_a_user_without_rights_is_told_so(bare_url: str) -> None:
    with psycopg.connect(bare_url, autocommit=True) as connection:
        connection.execute("CREATE EXTENSION vector SCHEMA public")
        connection.execute("DROP ROLE IF EXISTS guest")
        connection.execute("CREATE ROLE guest")
        connection.execute("REVOKE CREATE ON DATABASE " + str(connection.info.dbname) + " FROM PUBLIC")
        connection.execute("SET ROLE guest")
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            migrating._migrate(connection)
        connection.execute("RESET ROLE")
    guest = bare_url + "&options=-c%20role%3Dguest"
    with pytest.raises(StoreUnavailable, match="may not use or create semmem's tables"):
        migrate(guest)
    assert migrate(bare_url) > 0
    with pytest.raises(StoreUnavailable, match="USAGE on the schema semmem"):
        migrate(guest)


def test_a_url_that_libpq_cannot_read_is_refused_in_one_sentence(server: EmbeddedServer) -> None:
    with pytest.raises(InvalidInput, match=r"^The store URL cannot be used: .*nonsense"):
        migrate("postgresql://localhost/db?nonsense=1")
    with pytest.raises(StoreUnavailable, match=r"^There is no database absent on this server; make it with"):
        migrate(server.ensure_running().replace("dbname=semmem", "dbname=absent"))


def test_every_statement_has_a_name_of_its_own_and_says_why_it_exists() -> None:
    found = statements("postgres")
    assert len(found) > 30
    assert [name for name, body in found.items() if not body.startswith("-- ")] == []


@pytest.mark.parametrize("backend", ["postgres", "sqlite"])
def test_what_several_statements_have_in_common_is_written_once(backend: str) -> None:
    folder = files("semmem.stores") / "sql" / backend
    text = "".join(f.read_text(encoding="utf-8") for f in folder.iterdir() if f.name.endswith(".sql"))
    said_once = ["l.first <= k.key", "p.bits = k.key"] if backend == "postgres" else []
    assert [text.count(words) for words in said_once] == [1] * len(said_once)
    assert text.count("IS NULL OR title ") == 0  # made of the table of filters
    assert [name for name, body in statements(backend).items() if re.search(r"<\w+>", body)] == []
    assert statements(backend)["memory_list"].count("IS NULL OR title ") == 1


def test_a_fragment_that_is_not_there_is_told_and_its_purpose_is_left_out_of_statements() -> None:
    found = {"<some>": "-- Why it exists.\na = 1\n  AND <other>", "<other>": "b = 2"}
    assert sql_files._composed("-- A statement.\nSELECT 1 WHERE <some>", found, "postgres") == (
        "-- A statement.\nSELECT 1 WHERE a = 1\n  AND b = 2"
    )
    with pytest.raises(ValueError, match=r"^There is no fragment <none>\.$"):
        sql_files._composed("SELECT 1 WHERE <none>", found, "postgres")
