"""The embedded server: started by whoever comes first, shared, durable, closed to others, gone when idle."""

from __future__ import annotations

import stat
import subprocess
import sys
import threading
import time
from pathlib import Path

import psycopg
import pytest

from semmem.interfaces.cli.app import run
from semmem.stores.embedded import postmaster
from semmem.stores.embedded.server import EmbeddedServer
from tests.stores.embedded.clients import connected, eventually, pid, query


def test_the_first_call_makes_a_database_and_the_next_finds_it_running(server: EmbeddedServer) -> None:
    before = pid(server)
    assert server.ensure_running() == server.ensure_running()
    assert pid(server) == before
    assert query(server, "SELECT current_database(), current_user, pg_encoding_to_char(encoding), datlocale "
                         "FROM pg_database WHERE datname = current_database()") == [
        ("semmem", "semmem", "UTF8", "C.UTF-8")
    ]  # fmt: skip
    assert query(server, "SELECT datname FROM pg_database WHERE datname = 'postgres'") == []  # which nobody uses


def test_the_server_is_durable_and_listens_on_no_network(own: EmbeddedServer) -> None:
    wanted = {"fsync": "on", "full_page_writes": "on", "synchronous_commit": "on", "listen_addresses": "", "jit": "off"}
    found = query(own, "SELECT name, setting FROM pg_settings WHERE name IN ('" + "','".join(wanted) + "')")
    assert dict(found) == wanted


def test_no_segment_of_the_write_ahead_log_is_kept_with_what_was_forgotten_in_it(server: EmbeddedServer) -> None:
    assert query(server, "SHOW wal_recycle") == [("off",)]


def test_the_only_way_in_is_peer_authentication(server: EmbeddedServer) -> None:
    assert query(server, "SELECT type, auth_method FROM pg_hba_file_rules") == [("local", "peer")]


def test_every_folder_of_the_server_is_closed_to_other_users(server: EmbeddedServer) -> None:
    socket = server.status().socket
    assert socket is not None
    for folder in (server.data, server.data / "postgresql", server.data / "postgresql" / "cluster", socket):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE((socket / ".s.PGSQL.5432").stat().st_mode) == 0o700


def test_status_tells_what_runs_and_looking_starts_nothing(server: EmbeddedServer, tmp_path: Path) -> None:
    with psycopg.connect(server.ensure_running()):
        status = server.status()
    assert status.running
    assert status.version is not None
    assert status.version.startswith("18.")
    assert status.size_bytes > 20_000_000  # an empty cluster holds three databases of 7 MB each
    assert (status.connections or 0) >= 1
    absent = EmbeddedServer(tmp_path / "absent").status()
    assert (absent.running, absent.pid, absent.size_bytes) == (False, None, 0)
    assert not (tmp_path / "absent").exists()
    assert EmbeddedServer(tmp_path / "absent").stop() is False


@pytest.mark.parametrize("sql", ["SELECT 'a private memory' || nonsense", "SELECT 'a private memory'::text::int"])
def test_the_log_never_holds_the_text_of_a_memory(server: EmbeddedServer, sql: str) -> None:
    with psycopg.connect(server.ensure_running()) as connection, pytest.raises(psycopg.Error):
        connection.execute(sql)
    log = (server.data / "postgresql" / "log").read_text()
    assert "ready to accept connections" in log
    assert "private" not in log


@pytest.mark.slow
def test_many_processes_at_once_make_and_start_one_server(tmp_path: Path) -> None:
    data = tmp_path / "data"
    program = (
        "import sys\n"
        "from pathlib import Path\n"
        "from semmem.stores.embedded.server import EmbeddedServer\n"
        "server = EmbeddedServer(Path(sys.argv[1]))\n"
        "server.ensure_running()\n"
        "print(server.status().pid)\n"
    )
    command = [sys.executable, "-c", program, str(data)]
    started = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(8)]
    try:
        answers = [process.communicate(timeout=100)[0] for process in started]
        assert [process.returncode for process in started] == [0] * 8
        assert set(answers) == {f"{pid(EmbeddedServer(data))}\n"}
    finally:
        assert EmbeddedServer(data).stop("immediate")


def test_many_threads_at_once_start_one_server(own: EmbeddedServer) -> None:
    answers: list[str] = []
    threads = [
        threading.Thread(target=lambda: answers.append(EmbeddedServer(own.data).ensure_running())) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(answers) == 8
    assert len(set(answers)) == 1
    assert (own.data / "postgresql" / "log").read_text().count("ready to accept connections") == 1


def test_stop_stops_and_the_next_call_starts_again(own: EmbeddedServer, table: str) -> None:
    query(own, f"CREATE TABLE {table} AS SELECT 7 AS n")
    assert own.stop() is True
    assert not own.status().running
    assert own.stop() is False
    assert query(own, f"SELECT n FROM {table}") == [(7,)]


def test_the_command_that_stops_waits_as_long_as_the_setting_says_and_then_the_server_goes_on(
    own: EmbeddedServer, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SEMMEM_START_TIMEOUT_S", "0.3")
    with psycopg.connect(own.ensure_running()) as client:  # whom smart waits for
        before = pid(own)
        assert run(["server", "stop", "--mode", "smart", "--url", f"embedded://{own.data}"]) != 0
        assert "has not stopped within 0.3 s and goes on, because a client is connected" in capfd.readouterr().err
        with psycopg.connect(EmbeddedServer(own.data, start_timeout_s=5).ensure_running()) as other:
            assert other.execute("SELECT 1").fetchone() == client.execute("SELECT 1").fetchone() == (1,)
        assert pid(own) == before


def test_smart_stops_the_server_once_its_last_client_has_left(
    own: EmbeddedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    stopped: list[bool] = []
    looked, is_unused = threading.Event(), own._is_unused

    def look() -> bool:
        found = is_unused()
        looked.set()
        return found

    monkeypatch.setattr(own, "_is_unused", look)
    stopping = threading.Thread(target=lambda: stopped.append(own.stop("smart")))
    with connected(own) as client:
        stopping.start()
        assert looked.wait(60)
        assert client.execute("SELECT 1").fetchone() == (1,)
    stopping.join(100)
    assert stopped == [True]
    assert not own.status().running
    assert own.stop("smart") is False


def test_an_idle_server_stops_by_itself_and_leaves_no_process(own: EmbeddedServer) -> None:
    folder = own.data / "postgresql"
    idle = EmbeddedServer(own.data, idle_stop_s=0.3)
    idle.ensure_running()
    eventually(lambda: postmaster.free(str(folder / "alive")))
    eventually(lambda: postmaster.free(str(folder / "watch")))
    assert "fast shutdown" in (folder / "log").read_text()
    assert query(idle, "SELECT 1") == [(1,)]


def test_a_connected_client_keeps_the_server_running(own: EmbeddedServer) -> None:
    idle = EmbeddedServer(own.data, idle_stop_s=0.3)
    with connected(idle) as client:
        first = pid(idle)
        time.sleep(1.2)  # four times the idle time
        assert client.execute("SELECT 1").fetchone() == (1,)
        assert pid(idle) == first
    eventually(lambda: not idle.status().running)


@pytest.mark.slow
def test_somebody_about_to_connect_keeps_the_server_running(own: EmbeddedServer) -> None:
    idle = EmbeddedServer(own.data, idle_stop_s=1)
    for _ in range(20):  # a machine that stalls for longer than the idle time proves nothing: then once more
        idle.ensure_running()
        first, longest, before = pid(idle), 0.0, time.monotonic()
        for _ in range(20):  # two seconds without any connection, asked for every tenth of a second
            idle.ensure_running()
            time.sleep(0.1)
            longest, before = max(longest, time.monotonic() - before), time.monotonic()
        same = idle.status().pid == first
        if longest < 0.8:
            assert same
            return
    raise AssertionError("the machine stalls all the time")


def test_a_path_too_long_for_a_socket_gets_a_private_folder_elsewhere(made: Path) -> None:
    long = made.with_name("long, " + "x" * 100)
    made.rename(long)
    server = EmbeddedServer(long)
    try:
        assert query(server, "SELECT 1") == [(1,)]
        socket = server.status().socket
        assert socket is not None
        assert not socket.is_relative_to(long)
        assert stat.S_IMODE(socket.stat().st_mode) == 0o700
    finally:
        stopped = server.stop()
        long.rename(made)
    assert stopped
    assert not socket.exists()
