"""What goes wrong with an embedded server: kills, foreign process ids, spoilt files, moved folders, failed starts."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import psycopg
import pytest

from semmem.model.errors import StoreUnavailable
from semmem.stores.embedded import data_directory, postmaster
from semmem.stores.embedded.server import EmbeddedServer
from tests.stores.embedded.clients import LINUX, eventually, pid, query


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

    def answers() -> bool:
        try:
            return query(own, f"SELECT n FROM {table}") == [(1,)]
        except psycopg.OperationalError:  # the server ends every connection once more before it recovers
            return False

    eventually(answers)


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


@pytest.mark.slow
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


@pytest.mark.slow
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


@pytest.mark.slow
def test_a_folder_that_is_moved_while_its_server_runs_serves_at_its_new_place(own: EmbeddedServer, table: str) -> None:
    query(own, f"CREATE TABLE {table} AS SELECT 7 AS n")
    moved = EmbeddedServer(own.data.with_name("moved"), idle_stop_s=60)
    own.data.rename(moved.data)
    try:
        assert query(moved, f"SELECT n FROM {table}") == [(7,)]
    finally:
        moved.stop()
        moved.data.rename(own.data)


@pytest.mark.slow
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


@pytest.mark.slow
def test_a_removed_socket_is_mended_by_a_restart(own: EmbeddedServer) -> None:
    own.ensure_running()
    socket = own.status().socket
    assert socket is not None
    (socket / ".s.PGSQL.5432").unlink()
    assert query(own, "SELECT 1") == [(1,)]


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
        with pytest.raises(StoreUnavailable, match=r"PostgreSQL 17 .* includes 18"):
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
