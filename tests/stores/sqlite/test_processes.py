"""Processes and threads at one SQLite store: writes at once, kills, child processes, a statement that is stopped."""

from __future__ import annotations

import sqlite3
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import semmem
from semmem.stores import open_store
from tests.stores.sqlite.bakery import fresh


@pytest.mark.slow
def test_processes_that_write_at_once_never_meet_a_lock_and_lose_nothing(file: Path) -> None:
    program = (
        "with semmem.connect(url) as mem:\n"
        "    for n in range(50):\n"
        "        mem.remember(f'worker {sys.argv[2]} wrote heron {n}', id=f'{sys.argv[2]}-{n}')\n"
        "        if n % 25 == 0: assert len(mem.recall(f'worker {sys.argv[2]} heron {n}', limit=1)) == 1\n"
    )
    with ThreadPoolExecutor(4) as threads:  # the file is made, and migrated, by whoever comes first
        done = list(threads.map(lambda worker: fresh(f"sqlite://{file}", program, worker), "abcd"))
    assert [(d.returncode, d.stderr) for d in done] == [(0, "")] * 4
    with semmem.connect(f"sqlite://{file}", embedder="none") as mem:
        assert mem.stats().memories == 200
        every = mem.recall("heron", limit=1000)
        assert {h.memory.id for h in every} == {f"{worker}-{n}" for worker in "abcd" for n in range(50)}
        assert mem.store.scope(("default",), semmem.Filters(), ()).size == 200


@pytest.mark.slow
def test_maintain_waits_for_a_writer_that_begins_before_it_counts_the_rows_of_tables(
    mem: semmem.Semmem, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mem.remember_many([{"text": f"memory {n} of the ferry", "id": f"m{n}"} for n in range(300)])
    mem.recall("ferry")
    writer = sqlite3.connect(file, isolation_level=None, check_same_thread=False)
    models: Any = mem.store.models  # type: ignore[attr-defined]
    save = models.save

    def begun(**options: Any) -> dict[str, int]:
        writer.execute("BEGIN IMMEDIATE")
        threading.Timer(1.0, lambda: writer.execute("ROLLBACK")).start()
        saved: dict[str, int] = save(**options)
        return saved

    monkeypatch.setattr(models, "save", begun)
    assert mem.maintain()["joined"] == 0
    writer.close()


def test_threads_share_one_semmem(mem: semmem.Semmem) -> None:
    def work(worker: int) -> int:
        for n in range(10):
            mem.remember(f"thread{worker} saw heron {n}", id=f"{worker}-{n}")
        return len(mem.recall(f"thread{worker}", limit=1000, recipe="lexical"))

    with ThreadPoolExecutor(12) as threads:  # more than there are connections
        assert list(threads.map(work, range(12))) == [10] * 12
    assert mem.stats().memories == 120


def test_a_memory_only_store_is_shared_by_threads_and_gone_when_closed() -> None:
    with semmem.connect("sqlite::memory:", embedder="none") as mem, ThreadPoolExecutor(4) as threads:
        list(threads.map(lambda n: mem.remember(f"heron {n}"), range(20)))
        assert len(mem.recall("heron", limit=100)) == 20
    with semmem.connect("sqlite::memory:", embedder="none") as mem:
        assert mem.stats().memories == 0


def test_what_was_acknowledged_is_there_for_the_next_process_and_after_a_kill(file: Path) -> None:
    program = "mem = semmem.connect(url)\nmem.remember('heron', id='a')\nimport os\nos.kill(os.getpid(), 9)"
    assert fresh(f"sqlite://{file}", program).returncode == -9
    with semmem.connect(f"sqlite://{file}", embedder="none") as mem:
        assert [h.memory.id for h in mem.recall("heron")] == ["a"]


def test_a_child_process_leaves_its_parents_connections_alone(mem: semmem.Semmem, file: Path) -> None:
    program = (
        "import os\nmem = semmem.connect(url)\nmem.remember('heron', id='parent')\n"
        "if (child := os.fork()) == 0:\n    mem.remember('heron', id='child')\n    os._exit(0)\n"
        "os.waitpid(child, 0)\nmem.remember('heron', id='parent again')\nprint(mem.stats().memories)"
    )
    done = fresh(f"sqlite://{file}", program)
    assert (done.stdout, done.stderr) == ("3\n", "")
    assert len(mem.recall("heron")) == 1  # the same text three times, folded
    assert mem.stats().memories == 3


def test_a_child_process_recalls_with_threads_of_its_own(file: Path) -> None:
    program = (
        "import os\nmem = semmem.connect(url, embedder='hashing')\nmem.remember('heron', id='a')\nmem.recall('heron')\n"
        "if (child := os.fork()) == 0:\n    found = mem.recall('heron')\n"
        "    print([hit.id for hit in found], sorted(found.degraded), flush=True)\n    os._exit(0)\n"
        "os.waitpid(child, 0)\nprint(len(mem.recall('heron')))"
    )
    done = fresh(f"sqlite://{file}", program)
    assert (done.stdout, done.stderr) == ("['a'] []\n1\n", "")


def test_a_store_in_memory_says_in_a_child_process_whose_it_is() -> None:
    program = (
        "import os\nmem = semmem.connect('sqlite::memory:', embedder='none')\nmem.remember('heron', id='parent')\n"
        "if (child := os.fork()) == 0:\n    try:\n        mem.stats()\n"
        "    except semmem.StoreUnavailable as error:\n        print(error, flush=True)\n    os._exit(0)\n"
        "os.waitpid(child, 0)\nprint(mem.stats().memories)"
    )
    done = fresh("sqlite::memory:", program)
    said = "A database in memory stays with the process that opened it; open a store in a file to share it, or connect"
    assert (done.stdout.startswith(said), done.stdout[-3:], done.stderr) == (True, "\n1\n", "")


def test_a_file_that_has_had_too_many_namespaces_says_so_and_stores_nothing(mem: semmem.Semmem) -> None:
    mem.remember("heron", id="a")
    mem.store._run(lambda c: c.execute("UPDATE sqlite_sequence SET seq = 8388606 WHERE name = 'namespace'"))
    mem.remember("heron", id="a", namespace="last")
    for verb in (lambda: mem.remember("heron", namespace="next"), lambda: mem.copy_namespace("default", "next")):
        with pytest.raises(semmem.StoreError, match="8,388,607 namespaces, and 'next' is one too many; nothing was"):
            verb()
    assert [one.name for one in mem.namespaces()] == ["default", "last"]


def test_a_statement_that_takes_too_long_can_be_stopped_from_another_thread(file: Path) -> None:
    store = open_store(f"sqlite://{file}")
    endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"
    begun, stops = threading.Event(), list[Any]()

    def run() -> Any:
        with store.session() as stop:
            stops.append(stop)

            def work(connection: sqlite3.Connection) -> Any:
                begun.set()
                return connection.execute(endless).fetchall()

            return store._run(work)

    with ThreadPoolExecutor(1) as threads:
        running = threads.submit(run)
        assert begun.wait(100)
        while not running.done():  # until the statement itself has begun
            stops[0]()
        with pytest.raises(sqlite3.OperationalError, match="interrupted"):
            running.result()
    assert store.stats(None).memories == 0  # the connection is as good as before
    stops[0]()  # nothing runs, and nothing happens
    store.close()


@pytest.mark.slow
def test_a_new_file_may_be_opened_by_several_at_once(tmp_path: Path) -> None:
    """One makes the tables while another looks whose file it is: eight in sixty such looks once saw a stranger's."""

    def remember(file: Path, number: int) -> str:
        with semmem.connect(f"sqlite:{file}", embedder="none") as mem:
            return mem.remember(f"Note {number}.", id=str(number)).id

    with ThreadPoolExecutor(6) as threads:
        for turn in range(25):
            opened = [threads.submit(remember, tmp_path / f"{turn}.db", number) for number in range(6)]
            assert [one.result() for one in opened] == ["0", "1", "2", "3", "4", "5"]
