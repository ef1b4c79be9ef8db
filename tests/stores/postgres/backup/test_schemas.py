"""Backups and the schema: one of an older schema is migrated or refused, and one is taken before a migration."""

from __future__ import annotations

import stat
from pathlib import Path

import psycopg
import pytest

import semmem
from semmem.client.memory import Semmem
from semmem.model.errors import SchemaTooOld, StoreError
from semmem.stores import migrate_store
from semmem.stores.embedded.server import EmbeddedServer
from semmem.stores.postgres import migrate as migrating
from semmem.stores.postgres.moving import backup as backing
from semmem.stores.postgres.moving import tables as postgres_tables
from semmem.stores.sql_files import migrations
from tests.stores.audit import sql
from tests.stores.filled import asked, held, rows, url_of

NEWEST = migrations("postgres")[-1][0]
LATER = (NEWEST + 1, f"{NEWEST + 1:04}_later", 'CREATE TABLE later (namespace text COLLATE "C" PRIMARY KEY);')


def upgrade(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let this semmem be one of a later schema."""
    known = migrations("postgres")
    for module in (migrating, backing, semmem.stores):
        monkeypatch.setattr(module, "migrations", lambda backend: (*known, LATER))


def of_this_schema(source: str, target: str) -> None:
    """Make ``target`` a store of this schema that holds what ``source`` holds."""
    with psycopg.connect(target, autocommit=True) as connection:
        connection.execute("SET client_min_messages TO error")
        connection.execute("DROP SCHEMA IF EXISTS semmem CASCADE")
        connection.execute("CREATE EXTENSION IF NOT EXISTS vector SCHEMA public")
        migrating.create(connection)
        migrating.apply(connection, 0, NEWEST)
    with psycopg.connect(source) as one, psycopg.connect(target) as two:
        for table in postgres_tables.tables(two):
            postgres_tables.load(two, table, postgres_tables.read(one, table))


def test_a_backup_of_the_schema_before_is_refused_with_the_way_over(empty: Semmem) -> None:
    old = Path(__file__).parents[2] / "data" / "schema-4.semmem"
    way = r"^This backup has schema 4 and this semmem reads 7 or newer: .*`semmem export FILE`, .*`semmem import jsonl"
    with pytest.raises(SchemaTooOld, match=way):
        empty.restore(old)
    assert sum(map(len, rows(url_of(empty)).values())) == 0


@pytest.mark.slow
def test_a_backup_of_an_older_schema_is_restored_and_then_migrated(
    filled: Semmem, other_url: str, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, answers, hashes = rows(url_of(filled)), asked(url_of(filled)), held(url_of(filled))
    upgrade(monkeypatch)
    with semmem.connect(other_url, embedder="hashing", backup_before_migration=False) as mem:
        mem.restore(file)
        assert sql(other_url, "SELECT max(number) FROM migration") == [(NEWEST + 1,)]
        assert held(other_url) == hashes
        assert asked(other_url) == answers
    assert {name: found for name, found in rows(other_url).items() if name != "later"} == before


@pytest.mark.slow
def test_a_backup_is_taken_before_a_migration_and_the_last_few_are_kept(
    filled: Semmem, other_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hashes = held(url_of(filled))
    upgrade(monkeypatch)
    for _ in range(4):
        of_this_schema(url_of(filled), other_url)
        with semmem.connect(other_url, embedder="none", home=tmp_path) as mem:
            assert mem.hashes() == hashes
            mem.graph_hash()
        with semmem.connect(other_url, embedder="none", home=tmp_path):
            pass  # up to date: nothing more is written
    (folder,) = (tmp_path / "backups").iterdir()
    found = sorted(folder.iterdir())
    assert folder.name.startswith(psycopg.conninfo.conninfo_to_dict(other_url)["dbname"] + "-")
    assert len(found) == 3
    assert all(file.name.startswith(f"before-schema-{NEWEST + 1}-") for file in found)
    with semmem.connect(other_url, embedder="none") as mem:
        for namespace in hashes:
            mem.forget(namespace=namespace, everything=True)
        assert mem.restore(found[-1]).schema == NEWEST
        assert mem.hashes() == hashes


@pytest.mark.slow
def test_a_backup_is_taken_before_semmem_migrate_changes_a_store_and_not_in_a_dry_run(
    filled: Semmem, other_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    of_this_schema(url_of(filled), other_url)
    upgrade(monkeypatch)
    later = (f"{NEWEST + 1:04}_later",)
    assert migrate_store(other_url, home=tmp_path, dry_run=True).migrations == later
    assert (sql(other_url, "SELECT max(number) FROM migration"), list(tmp_path.iterdir())) == ([(NEWEST,)], [])
    assert migrate_store(other_url, home=tmp_path).migrations == later
    ((backup,),) = (folder.iterdir() for folder in (tmp_path / "backups").iterdir())
    assert backup.name.startswith(f"before-schema-{NEWEST + 1}-")
    assert migrate_store(other_url, home=tmp_path, backup_before_migration=False).migrations == ()


def test_no_migration_without_the_backup_unless_it_is_switched_off(
    filled: Semmem, other_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    of_this_schema(url_of(filled), other_url)
    upgrade(monkeypatch)
    (tmp_path / "backups").write_text("in the way")
    sentence = (
        rf"not migrated from schema {NEWEST} to {NEWEST + 1}, because its backup could not be written to .*backups"
    )
    with pytest.raises(StoreError, match=sentence):
        semmem.connect(other_url, embedder="none", home=tmp_path)
    assert sql(other_url, "SELECT max(number) FROM migration") == [(NEWEST,)]
    assert sql(other_url, "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND database = "
                          "(SELECT oid FROM pg_database WHERE datname = current_database())") == [(0,)]  # fmt: skip
    monkeypatch.setenv("SEMMEM_BACKUP_BEFORE_MIGRATION", "false")
    with semmem.connect(other_url, embedder="none", home=tmp_path) as mem:
        assert mem.stats().memories == 88
    assert [file.name for file in tmp_path.iterdir()] == ["backups"]


@pytest.mark.slow
def test_the_backup_of_an_embedded_store_lies_in_its_own_folder(
    server: EmbeddedServer, embedded_url: str, filled_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    semmem.connect(embedded_url, embedder="none", home=tmp_path).close()
    of_this_schema(filled_url, server.ensure_running())
    upgrade(monkeypatch)
    with semmem.connect(embedded_url, embedder="none", home=tmp_path) as mem:
        assert mem.hashes() == held(filled_url)
        (found,) = (server.data / "backups").iterdir()
        assert stat.S_IMODE(found.parent.stat().st_mode) == 0o700
        for namespace in mem.hashes():
            mem.forget(namespace=namespace, everything=True)
        mem.restore(found)
        assert mem.hashes() == held(filled_url)
        for namespace in mem.hashes():
            mem.forget(namespace=namespace, everything=True)
    assert list(tmp_path.iterdir()) == []


def test_an_empty_store_is_migrated_without_a_backup(
    store_url: str, other_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    of_this_schema(store_url, other_url)
    upgrade(monkeypatch)
    with semmem.connect(other_url, embedder="none", home=tmp_path) as mem:
        assert mem.stats().memories == 0
    assert list(tmp_path.iterdir()) == []
