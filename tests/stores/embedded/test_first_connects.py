"""The first connects to a data folder: several at once, beside what a killed process has left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psycopg
import pytest

from semmem.stores.embedded.server import EmbeddedServer
from tests.stores.embedded.clients import LINUX, eventually, query

CONNECT = (
    "import sys, psycopg\n"
    "from pathlib import Path\n"
    "from semmem.stores.embedded.server import EmbeddedServer\n"
    "with psycopg.connect(EmbeddedServer(Path(sys.argv[1]), idle_stop_s=60).ensure_running()) as connection:\n"
    "    print(connection.execute('SELECT system_identifier FROM pg_control_system()').fetchone()[0])\n"
)


def connecting(data: Path) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", CONNECT, str(data)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def unfinished(data: Path) -> list[Path]:
    return sorted((data / "postgresql").glob("cluster.new*"))


def writing_in(folder: Path) -> list[int]:
    """Return the processes of an initdb that writes in ``folder``, without what it has forked to become a server."""
    parents = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                words = (entry / "cmdline").read_bytes().split(b"\0")
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except OSError:
                continue
            if words[0].endswith(b"/initdb") and str(folder).encode() in words:
                parents[int(entry.name)] = parent
    return [pid for pid, parent in parents.items() if parent not in parents]


@pytest.fixture
def data(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path / "data"
    EmbeddedServer(tmp_path / "data").stop("immediate")


@pytest.mark.slow
@LINUX
def test_first_connects_make_one_database_beside_an_initdb_whose_parent_was_killed(data: Path) -> None:
    with connecting(data) as first:
        eventually(lambda: unfinished(data) and writing_in(unfinished(data)[0]))
        (left,) = unfinished(data)
        (orphan,) = writing_in(left)
        os.kill(orphan, signal.SIGSTOP)
        first.kill()
    others = [connecting(data) for _ in range(4)]
    answers = [process.communicate(timeout=100) for process in others]
    assert [process.returncode for process in others] == [0, 0, 0, 0], answers
    assert len({identifier for identifier, _ in answers}) == 1
    assert unfinished(data) == [left]  # an initdb may still write there
    os.kill(orphan, signal.SIGKILL)
    eventually(lambda: writing_in(left) == [])
    server = EmbeddedServer(data, idle_stop_s=60)
    server.stop()
    assert query(server, "SELECT 1") == [(1,)]
    assert unfinished(data) == []


@LINUX
@pytest.mark.slow
def test_kills_at_any_moment_of_a_first_connect_leave_nothing_in_the_way_of_the_next(data: Path) -> None:
    for wait in range(8):
        with connecting(data) as first:
            with suppress(subprocess.TimeoutExpired):  # a quick machine may have connected by then
                first.wait(0.15 + 0.1 * wait)
            first.kill()
    with connecting(data) as last:
        identifier, errors = last.communicate(timeout=100)
    assert (last.returncode, errors) == (0, "")
    assert identifier.strip().isdigit()


@pytest.mark.slow
@LINUX
def test_a_first_connect_that_was_killed_before_it_made_the_database_leaves_that_to_the_next(data: Path) -> None:
    server = EmbeddedServer(data, idle_stop_s=60)
    with psycopg.connect(server.ensure_running(), dbname="template1", autocommit=True) as connection:
        connection.execute("DROP DATABASE semmem")
    (data / "postgresql" / "created").unlink()
    assert query(server, "SELECT current_database()::text") == [("semmem",)]
    assert (data / "postgresql" / "created").exists()
