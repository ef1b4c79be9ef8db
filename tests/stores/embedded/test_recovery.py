"""A server that recovers from a crash: whoever connects meanwhile waits for it and is served."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psycopg
import pytest

import semmem
from semmem.model.errors import StoreUnavailable
from semmem.stores.embedded.server import EmbeddedServer
from semmem.stores.postgres.errors import is_absent, starting
from tests.stores.postgres import own_server
from tests.stores.postgres.own_server import Own

WORDS_OF_WAITING = [
    "the database system is starting up",
    "the database system is shutting down",
    "the database system is in recovery mode",
    "the database system is not yet accepting connections\nDETAIL:  Consistent recovery state not yet reached.",
    "server closed the connection unexpectedly\n\tThis probably means the server terminated abnormally",
]


@pytest.fixture(scope="module")
def embedded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedServer]:
    """An embedded server that these tests may crash, with one memory in it."""
    server = EmbeddedServer(tmp_path_factory.mktemp("recovery") / "data", idle_stop_s=120)
    with semmem.connect(f"embedded://{server.data}", embedder="hashing") as mem:
        mem.remember("An owl in the oak.", id="owl")
    yield server
    server.stop("immediate")
    shutil.rmtree(server.data)


@pytest.fixture(scope="module")
def own() -> Iterator[Own]:
    """A server of one's own that these tests may crash."""
    server = own_server.make()
    yield server
    own_server.unmake(server)


@pytest.mark.parametrize("words", WORDS_OF_WAITING)
def test_what_a_recovering_server_says_is_known(words: str) -> None:
    error = psycopg.OperationalError(f'connection to server on socket "/run/.s.PGSQL.5432" failed: FATAL:  {words}\n')
    assert starting(error)
    assert not is_absent(error)


def test_a_refusal_for_good_is_not_waited_for() -> None:
    for words in ("password authentication failed for user", "sorry, too many clients already"):
        error = psycopg.OperationalError(f"connection failed: FATAL:  {words}")
        assert not starting(error)
        assert not is_absent(error)
    assert is_absent(psycopg.OperationalError('connection to server on socket "x" failed: Connection refused'))


def connect(url: str) -> str:
    """Open the store and read from it, as a program does that starts just now."""
    with semmem.connect(url, embedder="hashing", pool_size=2) as mem:
        return mem.get("owl").text


def crash(conninfo: str) -> None:
    """End one session as the system does when memory runs out; the server ends all others and recovers."""
    with psycopg.connect(conninfo, autocommit=True) as victim:
        victim.execute("CREATE TEMPORARY TABLE heavy AS SELECT generate_series(1, 10)")
        os.kill(victim.info.backend_pid, signal.SIGKILL)


def log_of(place: Path) -> str:
    return place.read_text(encoding="utf-8")


@pytest.mark.slow
def test_ten_connects_while_the_embedded_server_recovers_are_all_served(embedded: EmbeddedServer) -> None:
    url = f"embedded://{embedded.data}"
    for _ in range(3):
        crash(embedded.ensure_running())
        with ThreadPoolExecutor(10) as pool:
            assert list(pool.map(connect, [url] * 10)) == ["An owl in the oak."] * 10
    assert log_of(embedded.data / "postgresql" / "log").count("was terminated by signal 9") == 3


@pytest.mark.slow
def test_ten_connects_while_a_server_of_ones_own_recovers_are_all_served(own: Own) -> None:
    url = own.url(own.database(), "ada")
    with semmem.connect(url, embedder="hashing") as mem:
        mem.remember("An owl in the oak.", id="owl")
    for _ in range(3):
        crash(url)
        with ThreadPoolExecutor(4) as pool:  # each of the four has two connections; there are 17
            assert list(pool.map(connect, [url] * 10)) == ["An owl in the oak."] * 10
    assert log_of(own.folder / "log").count("was terminated by signal 9") == 3


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of its own that can be filled."""
    folder = tmp_path / "small"
    folder.mkdir()
    options = ["-t", "tmpfs", "-o", "size=200m,mode=755", "small", str(folder)]
    if subprocess.run(["mount", *options], capture_output=True).returncode != 0:
        pytest.skip("no disk can be mounted here")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def fill(ballast: Path, spare: int) -> None:
    """Fill the disk up to ``spare`` bytes."""
    with ballast.open("ab") as out, contextlib.suppress(OSError):
        while (left := shutil.disk_usage(ballast.parent).free - spare) > 0:
            out.write(b"." * min(left, 1_000_000))
            out.flush()


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0, reason="only root mounts disks")
def test_a_disk_without_room_for_the_log_is_told_by_every_call_and_freed_loses_nothing(small_disk: Path) -> None:
    data, ballast, stored = small_disk / "data", small_disk / "ballast", {}
    try:
        with semmem.connect(f"embedded://{data}", embedder="hashing", pool_size=3) as mem:
            fill(ballast, 8_000_000)
            for n in range(2_000):
                text = f"Note {n}: " + f"owl {n} in the oak, " * 200
                try:
                    stored[mem.remember(text, id=f"m{n}").id] = text
                except StoreUnavailable as error:
                    said = str(error)
                    break
            assert 0 < len(stored) < 2_000
            assert "free some space there and try again" in said
            fill(ballast, 0)
            with (
                contextlib.suppress(StoreUnavailable, psycopg.OperationalError),
                psycopg.connect(EmbeddedServer(data).ensure_running(), autocommit=True) as connection,
            ):
                for _ in range(2_000):  # until the log needs a new file
                    connection.execute("SELECT pg_logical_emit_message(true, 'semmem', repeat('x', 100000))")
            EmbeddedServer(data).stop("immediate")  # if it did not stop by itself: it finds no room to recover
            for work in (mem.stats, lambda: mem.remember("again"), lambda: mem.get("m0")):
                with pytest.raises(StoreUnavailable) as caught:
                    work()
                assert str(caught.value) == (
                    f"The disk of {data} is full, and the database server cannot start without room for its log; free "
                    "some space there and try again. Nothing that was acknowledged is lost."
                )
            ballast.unlink()
            assert {id: mem.get(id).text for id in stored} == stored
            assert mem.remember("again", id="again").text == "again"
    finally:
        EmbeddedServer(data).stop("immediate")
