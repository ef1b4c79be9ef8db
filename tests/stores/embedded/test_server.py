"""The embedded server: started by whoever comes first, shared, durable, closed to others, gone when idle."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest

from semmem.doors.cli.app import run
from semmem.model.errors import StoreUnavailable
from semmem.stores.embedded import data_directory, postmaster
from semmem.stores.embedded.server import EmbeddedServer

AS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root can act as another operating-system user")
LINUX = pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
NOBODY = 65534


def eventually(holds: Callable[[], object], seconds: float = 20) -> None:
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "it did not come about"
        time.sleep(0.02)


def connected(server: EmbeddedServer) -> psycopg.Connection[tuple[object, ...]]:
    """Connect in the way a store does: once more through ensure_running when that fails, as after a stall."""
    for _ in range(200):
        try:
            return psycopg.connect(server.ensure_running(), autocommit=True)
        except psycopg.OperationalError:
            time.sleep(0.05)
    raise AssertionError("no connection")


def query(server: EmbeddedServer, sql: str) -> list[tuple[object, ...]]:
    """Run one statement on a connection of its own."""
    with connected(server) as connection:
        answer = connection.execute(sql)
        return answer.fetchall() if answer.description else []


def pid(server: EmbeddedServer) -> int:
    found = server.status().pid
    assert found is not None
    return found


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A data folder with an initialised, stopped server."""
    data = tmp_path_factory.mktemp("made") / "data"
    server = EmbeddedServer(data, idle_stop_s=0)
    server.ensure_running()
    server.stop()
    yield data
    shutil.rmtree(data)


@pytest.fixture
def own(made: Path) -> Iterator[EmbeddedServer]:
    """A server that no other test uses at the same time, not yet started."""
    server = EmbeddedServer(made, idle_stop_s=60)
    yield server
    server.stop()


@pytest.fixture
def table(own: EmbeddedServer) -> Iterator[str]:
    """The name of a table that does not exist yet and will be dropped."""
    yield "t"
    query(own, "DROP TABLE t")


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


def test_a_killed_server_comes_back_with_everything_committed_and_nothing_else(own: EmbeddedServer, table: str) -> None:
    query(own, f"CREATE TABLE {table} (n int)")
    query(own, f"INSERT INTO {table} SELECT generate_series(1, 1000)")
    with psycopg.connect(own.ensure_running()) as writer:
        writer.execute(f"INSERT INTO {table} SELECT generate_series(1001, 2000)")
        os.kill(pid(own), signal.SIGKILL)
        # 1,000 rows were committed; the second thousand was not.
        assert query(own, f"SELECT count(*), max(n) FROM {table}") == [(1000, 1000)]
        with pytest.raises(psycopg.OperationalError):
            writer.execute("SELECT 1")


def test_a_server_whose_backend_was_killed_comes_back(own: EmbeddedServer, table: str) -> None:
    query(own, f"CREATE TABLE {table} AS SELECT 1 AS n")
    with psycopg.connect(own.ensure_running()) as victim:
        os.kill(victim.info.backend_pid, signal.SIGKILL)
        with pytest.raises(psycopg.OperationalError):
            victim.execute("SELECT 1")
    eventually(lambda: query(own, f"SELECT n FROM {table}") == [(1,)])


@LINUX
def test_a_process_id_that_another_program_has_got_since_does_not_keep_the_server_down(own: EmbeddedServer) -> None:
    own.ensure_running()
    pidfile = own.data / "postgresql" / "cluster" / "postmaster.pid"
    lines = pidfile.read_text().splitlines()
    own.stop("immediate")
    who = data_directory.owner(create=True)
    assert who is not None
    with subprocess.Popen(["sleep", "60"], **who.process) as stranger:
        try:
            pidfile.write_text("\n".join([str(stranger.pid), *lines[1:]]) + "\n")
            who.give(pidfile)
            assert not own.status().running
            assert query(own, "SELECT 1") == [(1,)]
            assert pid(own) != stranger.pid
            assert stranger.poll() is None
        finally:
            stranger.kill()


@LINUX
def test_stop_signals_the_server_and_never_a_process_that_merely_has_the_number_in_postmaster_pid(
    own: EmbeddedServer,
) -> None:
    own.ensure_running()
    pidfile = own.data / "postgresql" / "cluster" / "postmaster.pid"
    lines = pidfile.read_text().splitlines()
    server = int(lines[0])
    with subprocess.Popen(["sleep", "60"]) as stranger:
        try:
            pidfile.write_text("\n".join([str(stranger.pid), *lines[1:]]) + "\n")
            assert own.stop() is True
            assert stranger.poll() is None
            assert not postmaster.exists(server)
        finally:
            stranger.kill()


@LINUX
def test_a_start_that_finds_a_busy_server_signals_no_process_that_has_its_number(own: EmbeddedServer) -> None:
    own.ensure_running()
    pidfile = own.data / "postgresql" / "cluster" / "postmaster.pid"
    lines = pidfile.read_text().splitlines()
    socket = own.status().socket
    assert socket is not None
    with subprocess.Popen(["sleep", "60"]) as stranger:
        try:
            pidfile.write_text("\n".join([str(stranger.pid), *lines[1:]]) + "\n")
            (socket / ".s.PGSQL.5432").unlink()  # so that it cannot be reached and has to be stopped
            assert query(own, "SELECT 1") == [(1,)]
            assert stranger.poll() is None
            assert pid(own) not in (stranger.pid, int(lines[0]))
        finally:
            stranger.kill()


@pytest.mark.parametrize("spoilt", ["", "\n", "not a number\n"])
def test_a_spoilt_postmaster_pid_of_a_server_that_is_gone_does_not_keep_the_next_one_down(
    own: EmbeddedServer, spoilt: str
) -> None:
    own.ensure_running()
    own.stop("immediate")
    (own.data / "postgresql" / "cluster" / "postmaster.pid").write_text(spoilt)
    assert query(own, "SELECT 1") == [(1,)]


def test_a_spoilt_postmaster_pid_of_a_running_server_keeps_nobody_from_stopping_it_or_going_on(
    own: EmbeddedServer,
) -> None:
    pidfile = own.data / "postgresql" / "cluster" / "postmaster.pid"
    own.ensure_running()
    pidfile.write_text("")
    assert own.stop() is True
    own.ensure_running()
    pidfile.write_text("")
    assert query(own, "SELECT 1") == [(1,)]


def test_a_folder_that_is_moved_while_its_server_runs_serves_at_its_new_place(own: EmbeddedServer, table: str) -> None:
    query(own, f"CREATE TABLE {table} AS SELECT 7 AS n")
    moved = EmbeddedServer(own.data.with_name("moved"), idle_stop_s=60)
    own.data.rename(moved.data)
    try:
        assert query(moved, f"SELECT n FROM {table}") == [(7,)]
    finally:
        moved.stop()
        moved.data.rename(own.data)


@LINUX
def test_a_server_that_semmem_did_not_start_is_left_alone(own: EmbeddedServer) -> None:
    own.ensure_running()
    own.stop()
    who = data_directory.owner(create=True)
    assert who is not None
    files = own.data / "postgresql" / "cluster"
    command = [str(data_directory.programs() / "postgres"), "-D", str(files)]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL, **who.process) as stranger:
        try:
            eventually(lambda: (found := postmaster.read(str(files))) is not None and found.ready)
            with pytest.raises(StoreUnavailable, match=f"process {stranger.pid}"):
                own.ensure_running()
            assert stranger.poll() is None
        finally:
            stranger.send_signal(signal.SIGINT)


def test_stop_stops_and_the_next_call_starts_again(own: EmbeddedServer, table: str) -> None:
    query(own, f"CREATE TABLE {table} AS SELECT 7 AS n")
    assert own.stop() is True
    assert not own.status().running
    assert own.stop() is False
    assert query(own, f"SELECT n FROM {table}") == [(7,)]


def test_the_command_that_stops_waits_as_long_as_the_setting_says(
    own: EmbeddedServer, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SEMMEM_START_TIMEOUT_S", "0.3")
    with psycopg.connect(own.ensure_running()):  # whom smart waits for
        assert run(["server", "stop", "--mode", "smart", "--url", f"embedded://{own.data}"]) != 0
        assert "has not stopped within 0.3 s" in capfd.readouterr().err
    eventually(lambda: postmaster.free(str(own.data / "postgresql" / "alive")))


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


def test_a_killed_idle_watch_is_replaced_by_the_next_call(own: EmbeddedServer) -> None:
    watch = str(own.data / "postgresql" / "watch")
    EmbeddedServer(own.data, idle_stop_s=0).ensure_running()
    assert postmaster.free(watch)  # 0: nobody watches
    own.ensure_running()
    assert not postmaster.free(watch)
    found = subprocess.run(["ps", "-ewwo", "pid,args"], capture_output=True, text=True, check=True).stdout.splitlines()
    (line,) = [line for line in found if "postmaster.py" in line and f"{own.data}/" in line]
    os.kill(int(line.split()[0]), signal.SIGKILL)
    eventually(lambda: postmaster.free(watch))
    own.ensure_running()
    assert not postmaster.free(watch)


def test_a_removed_socket_is_mended_by_a_restart(own: EmbeddedServer) -> None:
    own.ensure_running()
    socket = own.status().socket
    assert socket is not None
    (socket / ".s.PGSQL.5432").unlink()
    assert query(own, "SELECT 1") == [(1,)]


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


def test_a_failed_start_leaves_no_socket_folder_elsewhere(made: Path) -> None:
    long = made.with_name("long, " + "x" * 100)
    made.rename(long)
    control = long / "postgresql" / "cluster" / "global" / "pg_control"
    control.rename(control.with_suffix(".away"))
    try:
        with pytest.raises(StoreUnavailable, match="did not start"):
            EmbeddedServer(long).ensure_running()
        assert not (long / "postgresql" / "run").readlink().exists()
    finally:
        control.with_suffix(".away").rename(control)
        long.rename(made)


def test_a_folder_of_another_postgresql_is_refused_in_a_sentence_that_names_both(own: EmbeddedServer) -> None:
    version = own.data / "postgresql" / "cluster" / "PG_VERSION"
    version.write_text("17\n")
    try:
        with pytest.raises(StoreUnavailable, match=r"PostgreSQL 17 .* carries 18"):
            own.ensure_running()
    finally:
        version.write_text("18\n")


def test_a_server_that_cannot_start_says_what_its_log_said_last(own: EmbeddedServer) -> None:
    control = own.data / "postgresql" / "cluster" / "global" / "pg_control"
    control.rename(control.with_suffix(".away"))
    try:
        with pytest.raises(StoreUnavailable, match=r"did not start: .*could not open file"):
            own.ensure_running()
    finally:
        control.with_suffix(".away").rename(control)


@AS_ROOT
def test_another_operating_system_user_cannot_connect(own: EmbeddedServer) -> None:
    conninfo = own.ensure_running()
    psql = [str(data_directory.programs() / "psql"), "-Xwd", conninfo, "-c", "SELECT 1"]
    root = subprocess.run(psql, capture_output=True, text=True, check=False)
    assert root.returncode == 0, root.stderr
    stranger = {"user": NOBODY, "group": NOBODY, "extra_groups": [], "cwd": "/"}
    closed = subprocess.run(psql, capture_output=True, text=True, check=False, **stranger)
    assert closed.returncode != 0
    assert "Permission denied" in closed.stderr
    with pytest.raises(subprocess.CalledProcessError):
        subprocess.run(["ls", str(own.data)], capture_output=True, check=True, **stranger)

    # Even with every folder and the socket opened wide, who connects is known to the kernel and refused.
    socket = own.status().socket
    assert socket is not None
    before = {folder: folder.stat().st_mode for folder in (socket, *socket.parents)}
    try:
        for folder, mode in before.items():
            folder.chmod(mode | stat.S_IXOTH)
        (socket / ".s.PGSQL.5432").chmod(0o777)
        wide = subprocess.run(psql, capture_output=True, text=True, check=False, **stranger)
    finally:
        for folder, mode in before.items():
            folder.chmod(mode)
    assert wide.returncode != 0
    assert "Peer authentication failed" in wide.stderr


@AS_ROOT
def test_the_server_of_root_runs_as_a_system_user_and_opens_no_folder_to_everybody(own: EmbeddedServer) -> None:
    above = own.data.parent  # made by pytest, 0700
    own.ensure_running()
    assert Path(f"/proc/{pid(own)}").stat().st_uid == pwd.getpwnam("semmem-server").pw_uid
    assert (above.stat().st_uid, above.stat().st_mode & 0o007) == (0, 0)


@AS_ROOT
def test_an_ordinary_user_has_a_server_of_their_own_and_root_is_told_whose_it_is(made: Path, tmp_path: Path) -> None:
    theirs = tmp_path / "theirs"
    subprocess.run(["cp", "-a", str(made.parent), str(theirs)], check=True)
    subprocess.run(["chown", "-R", f"{NOBODY}:{NOBODY}", str(theirs)], check=True)
    for folder in (tmp_path, *tmp_path.parents):
        if not folder.stat().st_mode & stat.S_IXOTH:
            folder.chmod(folder.stat().st_mode | stat.S_IXOTH)
    # Everything is imported before root steps down: its Python may lie where an ordinary user cannot read.
    program = (
        "import contextlib, os, sys, psycopg\n"
        "from pathlib import Path\n"
        "from semmem.stores.embedded.server import EmbeddedServer\n"
        "with contextlib.suppress(psycopg.Error):\n"
        "    psycopg.connect('host=/nowhere')\n"
        f"os.setgroups([]), os.setgid({NOBODY}), os.setuid({NOBODY})\n"
        "server = EmbeddedServer(Path(sys.argv[1]), idle_stop_s=0)\n"
        "with psycopg.connect(server.ensure_running()) as c:\n"
        "    print(c.execute('SELECT 40 + 2').fetchone()[0], c.info.backend_pid, flush=True)\n"
        "try:\n"
        "    sys.stdin.read()\n"
        "finally:\n"
        "    assert server.stop()\n"
    )
    command = [sys.executable, "-c", program, str(theirs / "data")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline().split()[:1] == ["42"]
        files = theirs / "data" / "postgresql" / "cluster"
        assert (files.stat().st_uid, stat.S_IMODE((theirs / "data").stat().st_mode)) == (NOBODY, 0o700)
        server = postmaster.read(str(files))
        assert server is not None
        assert Path(f"/proc/{server.pid}").stat().st_uid == NOBODY
        with pytest.raises(StoreUnavailable, match="belongs to the user nobody"):
            EmbeddedServer(theirs / "data").ensure_running()
        process.communicate(timeout=60)
        assert process.returncode == 0
    assert not postmaster.exists(server.pid)
