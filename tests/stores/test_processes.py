"""Many processes on one embedded store, and what is left when one of them, or the server, is killed in the middle."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import semmem
from semmem.client.memory import Semmem
from semmem.stores.embedded.server import EmbeddedServer
from tests.stores.audit import check, sql

ONE_BY_ONE = """
import sys, semmem
url, who, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
with semmem.connect(url, embedder="hashing", pool_size=2) as mem:
    for n in range(count):
        mem.remember(f"Process {who} wrote note {n} about Ada Lovelace.", id=f"{who}-{n}", title=f"Note {n}")
"""

THE_SAME = """
import random, sys, semmem
url, seed = sys.argv[1], int(sys.argv[2])
items = [{"text": f"Note {n} about owls and Ada Lovelace.", "id": str(n), "title": f"Owl {n}"} for n in range(150)]
random.Random(seed).shuffle(items)
with semmem.connect(url, embedder="hashing", pool_size=2) as mem:
    print(mem.remember_many(items, batch_size=40 + seed).remembered)
"""

IMPORT = """
import sys, semmem
url, count = sys.argv[1], int(sys.argv[2])
items = ({"text": f"Note {n} about owls and Ada Lovelace.", "id": str(n), "title": f"Owl {n}"} for n in range(count))
with semmem.connect(url, embedder="hashing", pool_size=2) as mem:
    try:
        mem.remember_many(items, batch_size=20, progress=lambda report: print(report.read, flush=True))
    except semmem.SemmemError as error:
        print("error:", error, flush=True)
"""


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedServer]:
    """A server that these tests may kill, not yet made."""
    server = EmbeddedServer(tmp_path_factory.mktemp("own") / "data", idle_stop_s=120)
    yield server
    server.stop("immediate")
    shutil.rmtree(server.data)


@pytest.fixture
def url(own: EmbeddedServer) -> Iterator[str]:
    """The URL of the embedded store, empty."""
    url = f"embedded://{own.data}"
    yield url
    with semmem.connect(url, embedder="hashing") as mem:
        alone(own)
        for (namespace,) in sql(own.ensure_running(), "SELECT DISTINCT namespace FROM memory"):
            mem.forget(namespace=namespace, filters={"created_before": "9999-01-01"})


def start(program: str, *arguments: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", program, *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def finish(processes: list[subprocess.Popen[str]], patience_s: float = 100) -> list[str]:
    """Return what the processes printed; they have ``patience_s`` between them, and none is left behind."""
    end = time.monotonic() + patience_s
    try:
        ends = [process.communicate(timeout=max(0.0, end - time.monotonic())) for process in processes]
    finally:
        for process in processes:
            if process.poll() is None:
                process.kill()
                process.communicate()
    failed = [err for p, (_, err) in zip(processes, ends, strict=True) if p.returncode or "Traceback" in err]
    assert failed == []
    return [out.strip() for out, _ in ends]


def alone(server: EmbeddedServer) -> None:
    """Wait until the sessions of killed processes are gone, so that what is read does not change meanwhile."""
    others = """SELECT count(*) FROM pg_stat_activity
                WHERE datname = 'semmem' AND state <> 'idle' AND pid <> pg_backend_pid()"""
    end = time.monotonic() + 100
    while sql(server.ensure_running(), others)[0][0]:
        assert time.monotonic() < end
        time.sleep(0.05)


def everything(mem: Semmem) -> list[str]:
    """Return the ids of all memories, page by page."""
    found, cursor = [], None
    while True:
        page = mem.list(limit=300, cursor=cursor)
        found += [m.id for m in page]
        if (cursor := page.cursor) is None:
            return found


@pytest.mark.slow
@pytest.mark.timeout(400)  # 8 processes begin and write side by side
def test_processes_that_write_at_once_lose_nothing(own: EmbeddedServer, url: str) -> None:
    processes, count = 8, 40
    finish([start(ONE_BY_ONE, url, who, count) for who in range(processes)], patience_s=350)
    with semmem.connect(url, embedder="hashing") as mem:
        ids = everything(mem)
        assert sorted(ids) == sorted(f"{who}-{n}" for who in range(processes) for n in range(count))
        assert mem.stats().vectors == len(ids)
        check(own.ensure_running())
        last = mem.recall(f"Process {processes - 1} wrote note {count - 1}", limit=3)
        assert last[0].memory.id == f"{processes - 1}-{count - 1}"
        assert last.degraded == {}


@pytest.mark.slow
def test_processes_that_write_the_same_at_once_write_it_once_and_none_fails(own: EmbeddedServer, url: str) -> None:
    written = finish([start(THE_SAME, url, seed) for seed in range(3)])
    assert sum(map(int, written)) == 150
    with semmem.connect(url, embedder="hashing") as mem:
        assert sorted(everything(mem), key=int) == [str(n) for n in range(150)]
    check(own.ensure_running())


def acknowledged(process: subprocess.Popen[str], enough: int) -> int:
    """Read what the import acknowledges until it is ``enough``; return it."""
    assert process.stdout is not None
    for line in process.stdout:
        if int(line) >= enough:
            return int(line)
    raise AssertionError(process.communicate())


@pytest.mark.slow
def test_a_writer_that_is_killed_leaves_every_acknowledged_batch_and_nothing_half_written(
    own: EmbeddedServer, url: str
) -> None:
    for enough in (20, 120):
        process = start(IMPORT, url, 100_000)
        acked = acknowledged(process, enough)
        process.send_signal(signal.SIGKILL)
        rest, _ = process.communicate()
        acked = max([acked, *map(int, rest.split()[:-1])])  # the last line may be half a number
        alone(own)
        with semmem.connect(url, embedder="hashing") as mem:
            ids = {int(i) for i in everything(mem)}
            assert ids >= set(range(acked))
            assert ids == set(range(len(ids)))
            assert len(ids) % 20 == 0  # whole batches
            check(own.ensure_running())
            mem.forget(filters={"created_before": "9999-01-01"})


def kill(server: EmbeddedServer) -> None:
    pid = server.status().pid
    assert pid is not None
    os.kill(pid, signal.SIGKILL)


@pytest.mark.slow
def test_an_import_survives_the_death_of_the_server_and_nothing_acknowledged_is_lost(
    own: EmbeddedServer, url: str
) -> None:
    count = 600
    process = start(IMPORT, url, count)
    acked = acknowledged(process, 60)
    kill(own)
    (rest,) = finish([process])
    lines = rest.splitlines()
    if lines and lines[-1].startswith("error:"):
        assert " database server " in lines[-1]
        lines.pop()
    else:
        assert lines[-1] == str(count)
    acked = max([acked, *map(int, lines)])
    with semmem.connect(url, embedder="hashing") as mem:
        ids = {int(i) for i in everything(mem)}
        assert ids >= set(range(acked))
        assert len(ids) % 20 == 0
        check(own.ensure_running())
        again = mem.remember_many(
            [
                {"text": f"Note {n} about owls and Ada Lovelace.", "id": str(n), "title": f"Owl {n}"}
                for n in range(count)
            ]
        )
        assert (again.remembered, again.unchanged) == (count - len(ids), len(ids))
        check(own.ensure_running())


def test_an_open_semmem_goes_on_after_the_server_was_killed(own: EmbeddedServer, url: str) -> None:
    with semmem.connect(url, embedder="hashing", pool_size=8) as mem:
        mem.remember("An owl in the oak.", id="a")
        open_connections(mem, 6)
        kill(own)
        assert [hit.memory.id for hit in mem.recall("owl in the oak")] == ["a"]
        open_connections(mem, 6)
        kill(own)
        EmbeddedServer(own.data, idle_stop_s=120).ensure_running()  # somebody else starts it again
        assert mem.remember("A fox in the fern.", id="b").id == "b"
        found = mem.recall("fox in the fern")
        assert (found[0].memory.id, found.degraded) == ("b", {})
    check(own.ensure_running())


def open_connections(mem: Semmem, count: int) -> None:
    """Let ``count`` threads hold a connection at the same time, so that the pool has as many afterwards."""
    barrier = threading.Barrier(count, timeout=100)
    failed: list[BaseException] = []

    def hold() -> None:
        try:
            mem.store.run(lambda connection: (connection.execute("SELECT 1"), barrier.wait()))
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=hold) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []


@pytest.mark.nodes
def test_threads_share_one_semmem_without_losing_or_mixing_anything(store_url: str) -> None:
    failed: list[Any] = []
    with semmem.connect(store_url, embedder="hashing", pool_size=3) as mem:

        def work(who: int) -> None:
            try:
                for n in range(9):
                    mem.remember(f"Thread {who} wrote note {n}.", id=f"{who}-{n}")
                    assert mem.get(f"{who}-{n}").text == f"Thread {who} wrote note {n}."
                    assert len(mem.recall(f"thread {who} note {n}", limit=3)) > 0
                    if n % 3 == 2:
                        assert mem.forget(f"{who}-{n}") == 1
            except BaseException as error:
                failed.append(error)

        threads = [threading.Thread(target=work, args=(who,)) for who in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert failed == []
        assert mem.stats().memories == 6 * 6
    check(store_url)


@pytest.mark.nodes
@pytest.mark.slow
def test_writers_and_forgetters_at_once_end_in_no_deadlock(store_url: str) -> None:
    """Folds, compactions and forgetting take the same rows; each must end, and the tables must agree.

    How much is done does not depend on the machine: each thread has a least number of rounds, and those that do not
    write batches go on until the batches are written.
    """
    failed: list[Any] = []
    done = threading.Event()
    written = threading.Barrier(2, action=done.set)
    with semmem.connect(store_url, embedder="hashing", pool_size=6) as mem:

        def repeat(work: Any, least: int, batches: bool) -> None:
            try:
                for n in range(100_000):
                    if failed or (n >= least and (batches or done.is_set())):
                        break
                    work(n)
                if batches:
                    written.wait()
            except BaseException as error:
                failed.append(error)
                written.abort()

        def batches(who: str) -> Any:
            def write(n: int) -> None:
                items = [{"text": f"owl {i % 7} fox {n}", "session": f"{who}{n % 5}"} for i in range(70)]
                mem.remember_many(items, batch_size=35 + n % 50)

            return write

        works = [
            (batches("a"), 4, True),
            (batches("b"), 4, True),
            (lambda n: mem.remember(f"single owl {n}", session=f"a{n % 5}"), 15, False),
            (lambda n: mem.forget(filters={"sessions": f"a{n % 5}"}), 15, False),
            (lambda n: mem.forget(filters={"sessions": f"b{n % 5}"}), 15, False),
            (lambda n: mem.maintain(), 3, False),
        ]
        threads = [threading.Thread(target=repeat, args=work) for work in works]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert failed == []
        check(store_url)
        mem.maintain()
        check(store_url)


def test_the_program_of_the_tests_is_the_one_under_test() -> None:
    """The workers import semmem from where this process has it."""
    found = subprocess.run(
        [sys.executable, "-c", "import semmem; print(semmem.__file__)"], capture_output=True, text=True, check=True
    )
    assert Path(found.stdout.strip()) == Path(semmem.__file__)
