"""The files that SQLite cannot use: of another program, without rights, full, locked, damaged, closed."""

from __future__ import annotations

import os
import re
import shutil
import sqlite3
import tempfile
from pathlib import Path

import pytest

import semmem
from semmem.client.connection import Connection
from semmem.client.memory import StoreSemmem
from semmem.model.errors import InvalidInput, StoreClosed, StoreUnavailable
from semmem.stores import open_store
from semmem.stores.sqlite import connection as sqlite_pool
from tests.stores.sqlite.bakery import ROOT, fresh


def test_a_file_that_is_no_database_is_refused_and_left_as_it_was(file: Path) -> None:
    for content in (b"hello", b"hello" * 1000):
        file.write_bytes(content)
        with pytest.raises(InvalidInput, match=r"notes\.db is no SQLite database; name another file"):
            semmem.connect(f"sqlite://{file}", embedder="none")
        assert file.read_bytes() == content


def test_the_database_of_another_program_is_refused_and_left_as_it_was(file: Path) -> None:
    with sqlite3.connect(file) as connection:
        connection.execute("CREATE TABLE theirs (a)")
    connection.close()
    before = file.read_bytes()
    with pytest.raises(InvalidInput, match="database of another program"):
        semmem.connect(f"sqlite://{file}", embedder="none")
    assert file.read_bytes() == before


def test_an_empty_file_becomes_a_store(file: Path) -> None:
    file.touch()
    with semmem.connect(f"sqlite://{file}", embedder="none") as mem:
        mem.remember("heron")
    assert file.read_bytes()[:15] == b"SQLite format 3"


def test_a_folder_that_is_missing_and_one_in_the_files_place_are_told(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"There is no folder .*nowhere for the SQLite file; create it"):
        semmem.connect(f"sqlite://{tmp_path / 'nowhere' / 'notes.db'}", embedder="none")
    with pytest.raises(InvalidInput, match="is a folder; name a file in it"):
        semmem.connect(f"sqlite://{tmp_path}", embedder="none")
    assert list(tmp_path.iterdir()) == []


def _without_rights(url: str) -> str:
    """Return the error that somebody meets who may read, and not write."""
    program = (
        "import os\n"
        "with semmem.connect('sqlite::memory:') as mem:\n"  # what is imported now need not be read later
        "    mem.remember('heron')\n    mem.recall('heron')\n"
        "semmem.SemmemError\nif os.getuid() == 0: os.setuid(65534)\n"
        "try:\n    with semmem.connect(url) as mem: mem.remember('heron')\n"
        "except semmem.SemmemError as error: print(type(error).__name__, error)"
    )
    # their home is where they may read: settings are looked for in it
    done = fresh(url, program, env={**os.environ, "HOME": tempfile.gettempdir(), "PYTHONPATH": str(ROOT)})
    assert done.stderr == ""
    return done.stdout


@pytest.mark.slow
def test_a_file_or_folder_that_may_not_be_written_is_told() -> None:
    folder = Path(tempfile.mkdtemp())  # pytest's own folders are closed to everybody else
    try:
        folder.chmod(0o755)
        with semmem.connect(f"sqlite://{folder / 'notes.db'}", embedder="none") as mem:
            mem.remember("tide")
        (folder / "notes.db").chmod(0o444)
        folder.chmod(0o555)
        told = _without_rights(f"sqlite://{folder / 'notes.db'}")
        assert re.match(r"StoreUnavailable The file .*notes\.db (may not be written|cannot be opened); check", told)
        told = _without_rights(f"sqlite://{folder / 'new.db'}")
        assert re.match(r"StoreUnavailable The file .*new\.db cannot be opened; check the rights of the file", told)
        with semmem.connect(f"sqlite://{folder / 'notes.db'}", embedder="none") as mem:
            assert mem.stats().memories == 1
    finally:
        folder.chmod(0o755)
        shutil.rmtree(folder)


def test_a_full_disk_stores_nothing_of_a_batch_and_the_store_goes_on_when_there_is_room(file: Path) -> None:
    store = open_store(f"sqlite://{file}", pool_size=1)
    with semmem.connect(f"sqlite://{file}", embedder="none") as roomy:
        opened = Connection(store, recipe=roomy.recipe, embedder="none", extractor=None, settings=roomy.settings)
        mem = StoreSemmem(opened)
        mem.remember("tide", id="first")
        pages = store._run(lambda c: c.execute("PRAGMA page_count").fetchone()[0])
        store._run(lambda c: c.execute(f"PRAGMA max_page_count = {pages + 4}"))  # SQLite's own way to run out of room
        many = [{"id": f"m{n}", "text": f"heron {n} " + "reed " * 150} for n in range(200)]
        with pytest.raises(StoreUnavailable, match=r"^There is no room left on the disk of the file .*\.db; no"):
            mem.remember_many(many)
        assert [m.id for m in roomy.list()] == ["first"]
        assert len(roomy.recall("heron")) == 0
        assert roomy.store.scope(("default",), semmem.Filters(), ()).size == 1
        store._run(lambda c: c.execute("PRAGMA max_page_count = 100000"))
        assert mem.remember_many(many).remembered == 200
        mem.close()


def test_a_lock_that_is_held_for_long_is_waited_for_and_then_told(
    mem: semmem.Semmem, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mem.remember("tide")
    monkeypatch.setattr(sqlite_pool, "_BUSY_S", 0.05)
    holder = sqlite3.connect(file, isolation_level=None)
    with semmem.connect(f"sqlite://{file}", embedder="none") as other:
        holder.execute("BEGIN IMMEDIATE")
        with pytest.raises(
            StoreUnavailable, match=r"Another program keeps a lock on the file .*notes\.db; nothing was stored in part"
        ):
            other.remember("heron")
        assert len(other.recall("tide")) == 1  # readers do not wait
        holder.execute("ROLLBACK")
        holder.close()
        other.remember("heron")
        assert other.stats().memories == 2


def test_a_damaged_file_is_told(mem: semmem.Semmem, file: Path) -> None:
    mem.remember_many([{"text": f"heron {n} " + "reed " * 50} for n in range(100)])
    mem.close()
    content = bytearray(file.read_bytes())
    content[4096:] = b"\xff" * (len(content) - 4096)
    file.write_bytes(content)

    def use() -> None:
        with semmem.connect(f"sqlite://{file}", embedder="none") as broken:
            broken.recall("heron")

    with pytest.raises(StoreUnavailable, match=r"notes\.db is damaged \(.*\); restore it from a backup"):
        use()


def test_after_close_every_verb_says_so(mem: semmem.Semmem) -> None:
    mem.close()
    with pytest.raises(StoreClosed):
        mem.remember("heron")
    mem.close()


def test_close_ends_the_connections_also_where_something_still_holds_one(mem: semmem.Semmem) -> None:
    held: list[sqlite3.Connection] = []
    mem.store._run(held.append)  # type: ignore[attr-defined]
    assert held[0].execute("SELECT 1").fetchall() == [(1,)]
    mem.close()
    with pytest.raises(sqlite3.ProgrammingError, match="closed database"):
        held[0].execute("SELECT 1")
