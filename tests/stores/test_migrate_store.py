"""A store is migrated by `semmem migrate` alone, where no other program may: dry runs, steps and refusals."""

from __future__ import annotations

import os
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psycopg
import pytest

import semmem
from semmem.model.errors import InvalidInput, SchemaTooOld
from semmem.model.reports import MigrationReport
from semmem.stores import migrate_store
from semmem.stores.sql_files import migrations
from tests.stores.audit import sql

NEWEST = {backend: migrations(backend)[-1][0] for backend in ("postgres", "sqlite")}
NAMES = {backend: {number: name for number, name, _ in migrations(backend)} for backend in NEWEST}


@pytest.fixture
def bare_url(store_url: str) -> str:
    """A database in which semmem has never been."""
    with psycopg.connect(store_url, autocommit=True) as connection:
        connection.execute("SET client_min_messages TO error")
        connection.execute("DROP SCHEMA semmem CASCADE")
    return store_url


def from_first_to_last(url: str, backend: str, what: str) -> None:
    """Walk a store from no schema to the newest, one dry run and one refusal after the other."""
    newest, names = NEWEST[backend], NAMES[backend]
    first = min(names)
    all_of_them = tuple(names.values())
    assert migrate_store(url, dry_run=True) == MigrationReport(0, 0, newest, all_of_them)
    with pytest.raises(SchemaTooOld) as caught:
        semmem.connect(url, embedder="hashing", migrate=False)
    assert str(caught.value) == (
        f"{what} has no tables of semmem, this semmem needs schema {newest}, and the setting migrate is false; run "
        "`semmem migrate` once, as a user who may create tables."
    )
    with pytest.raises(InvalidInput, match=f"no tables of semmem yet and can be migrated to a schema from {first} to"):
        migrate_store(url, to=first - 1)
    assert migrate_store(url, dry_run=True) == MigrationReport(0, 0, newest, all_of_them)  # nothing was made

    assert migrate_store(url, to=newest - 2) == MigrationReport(0, newest - 2, newest, all_of_them[:-2])
    with pytest.raises(SchemaTooOld, match=f"^{what} has schema {newest - 2}, this semmem needs schema {newest}, and"):
        semmem.connect(url, embedder="hashing", migrate=False)
    one = (names[newest - 1],)
    assert migrate_store(url, dry_run=True, to=newest - 1) == MigrationReport(newest - 2, newest - 2, newest, one)
    assert migrate_store(url, to=newest - 1) == MigrationReport(newest - 2, newest - 1, newest, one)
    for wrong in (newest - 2, newest + 1):
        with pytest.raises(InvalidInput) as refused:
            migrate_store(url, to=wrong)
        assert str(refused.value) == (
            f"{what} has schema {newest - 1} and can be migrated to a schema from {newest - 1} to {newest}, not to "
            f"{wrong}; a migration only goes forward."
        )

    assert migrate_store(url) == MigrationReport(newest - 1, newest, newest, (names[newest],))
    assert migrate_store(url) == migrate_store(url, dry_run=True) == MigrationReport(newest, newest, newest, ())
    with semmem.connect(url, embedder="hashing", migrate=False) as mem:
        mem.remember("The kettle stands on the stove.", id="kettle")
        assert [hit.id for hit in mem.recall("Where is the kettle?")] == ["kettle"]


def test_a_database_is_migrated_step_by_step_and_by_nobody_else(bare_url: str) -> None:
    from_first_to_last(bare_url, "postgres", "This store")
    assert sql(bare_url, "SELECT number, name FROM migration ORDER BY number") == sorted(NAMES["postgres"].items())


def test_a_file_is_migrated_step_by_step_and_by_nobody_else(tmp_path: Path) -> None:
    from_first_to_last(f"sqlite://{tmp_path}/notes.db", "sqlite", f"The file {tmp_path}/notes.db")


@pytest.mark.parametrize("kind", ["postgres", "sqlite"])
def test_of_several_that_migrate_at_once_one_reports_each_migration(kind: str, bare_url: str, tmp_path: Path) -> None:
    url = bare_url if kind == "postgres" else f"sqlite://{tmp_path}/notes.db"
    migrate_store(url, to=NEWEST[kind] - 2)
    gate = threading.Barrier(4)

    def run(_: int) -> MigrationReport:
        gate.wait()
        return migrate_store(url)

    with ThreadPoolExecutor(4) as pool:
        reports = [*pool.map(run, range(4))]
    assert {one.after for one in reports} == {NEWEST[kind]}
    assert sorted(name for one in reports for name in one.migrations) == list(NAMES[kind].values())[-2:]


def test_neither_a_dry_run_nor_a_refusal_makes_a_file(tmp_path: Path) -> None:
    url = f"sqlite://{tmp_path}/notes.db"
    assert migrate_store(url, dry_run=True).after == 0
    with pytest.raises(SchemaTooOld, match=r"notes\.db has no tables of semmem"):
        semmem.connect(url, embedder="none", migrate=False)
    assert list(tmp_path.iterdir()) == []


def test_a_file_of_another_program_is_no_store_to_migrate(tmp_path: Path) -> None:
    (tmp_path / "other.db").write_text("a letter", encoding="utf-8")
    for dry_run in (True, False):
        with pytest.raises(InvalidInput, match=r"other\.db is no SQLite database; name another file"):
            migrate_store(f"sqlite://{tmp_path}/other.db", dry_run=dry_run)


def test_a_database_in_memory_needs_no_migration_and_opens_whatever_the_setting_says() -> None:
    with pytest.raises(InvalidInput, match="A database in memory is always new; name a file after sqlite: to migrate"):
        migrate_store("sqlite::memory:")
    with semmem.connect("sqlite::memory:", embedder="none", migrate=False) as mem:
        assert mem.stats().memories == 0


def test_neither_a_dry_run_nor_a_refusal_makes_an_embedded_server(tmp_path: Path) -> None:
    url = f"embedded:{tmp_path}/memories"
    newest = NEWEST["postgres"]
    all_of_them = tuple(NAMES["postgres"].values())
    assert migrate_store(url, dry_run=True) == MigrationReport(0, 0, newest, all_of_them)
    with pytest.raises(InvalidInput, match=r"^This store has no tables of semmem yet and can be migrated to a schema"):
        migrate_store(url, to=newest + 1)
    with pytest.raises(SchemaTooOld, match=f"^This store has no tables of semmem, this semmem needs schema {newest}"):
        semmem.connect(url, embedder="none", migrate=False)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("dry_run", [True, False])
def test_what_is_no_file_is_no_store_to_migrate(tmp_path: Path, dry_run: bool) -> None:
    (tmp_path / "folder.db").mkdir()
    os.mkfifo(tmp_path / "pipe.db")
    (tmp_path / "link.db").symlink_to("absent.db")
    for name, why in (
        ("folder.db", "is a folder; name a file in it after sqlite:."),
        ("pipe.db", "is a device or a pipe, not a file; name a file after sqlite:."),
        ("link.db", "is a link to a file that is not there; name that file after sqlite:."),
    ):
        with pytest.raises(InvalidInput) as caught:
            migrate_store(f"sqlite://{tmp_path}/{name}", dry_run=dry_run)
        assert str(caught.value) == f"{tmp_path}/{name} {why}"
