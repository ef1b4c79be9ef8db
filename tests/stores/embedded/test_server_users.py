"""Operating-system users: whose an embedded server is, who may connect to it, and as whom that of root runs."""

from __future__ import annotations

import os
import pwd
import re
import stat
import subprocess
import sys
from pathlib import Path

import pytest

import semmem
from semmem.model.errors import StoreUnavailable
from semmem.stores.embedded import data_directory, postmaster
from semmem.stores.embedded.server import EmbeddedServer
from tests.stores.embedded.clients import pid, query

AS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root can act as another operating-system user")
NOBODY = 65534


@pytest.mark.slow
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


@pytest.mark.slow
@AS_ROOT
def test_a_store_that_root_copied_is_told_with_the_command_that_mends_it(own: EmbeddedServer, tmp_path: Path) -> None:
    query(own, "CREATE TABLE IF NOT EXISTS copied AS SELECT 42 AS n")
    own.stop()
    copy = tmp_path / "it's copied"
    subprocess.run(["cp", "-r", str(own.data), str(copy)], check=True)
    server = EmbeddedServer(copy, idle_stop_s=60)
    with pytest.raises(StoreUnavailable) as caught:
        server.ensure_running()
    command = str(caught.value).split("give them back with: ")[1]
    folder = str(copy / "postgresql").replace("'", "'\"'\"'")
    assert command == f"chown -R semmem-server: '{folder}'"
    assert f"{copy}/postgresql/cluster belong to the user root, and the server runs as semmem-server" in str(
        caught.value
    )
    subprocess.run(command, shell=True, check=True)
    try:
        assert query(server, "SELECT n FROM copied") == [(42,)]
        server.stop()
        (server.data / "postgresql" / "cluster" / "global" / "pg_control").chmod(0o600)
        os.chown(server.data / "postgresql" / "cluster" / "global" / "pg_control", 0, 0)  # one file, restored alone
        with pytest.raises(StoreUnavailable, match=r"Permission denied; give the files back with: chown -R semmem-s"):
            server.ensure_running()
        subprocess.run(command, shell=True, check=True)
        assert query(server, "SELECT n FROM copied") == [(42,)]
    finally:
        server.stop()
        query(own, "DROP TABLE copied")


@pytest.mark.slow
@AS_ROOT
@pytest.mark.parametrize("kind", ["embedded", "sqlite"])
def test_one_user_of_a_machine_sees_nothing_of_the_store_of_another(made: Path, tmp_path: Path, kind: str) -> None:
    opened = []
    for folder in (tmp_path, *tmp_path.parents):
        if not folder.stat().st_mode & stat.S_IXOTH:
            opened.append((folder, folder.stat().st_mode))
            folder.chmod(folder.stat().st_mode | stat.S_IXOTH)
    url = f"sqlite://{tmp_path / 'notes.db'}"
    if kind == "sqlite":
        with semmem.connect(url) as mem:
            mem.remember("The heron nests here.")
    else:
        theirs = tmp_path / "theirs"
        subprocess.run(["cp", "-a", str(made), str(theirs)], check=True)
        url = f"embedded://{theirs}"
    program = (
        "import os, sys, semmem\n"
        "with semmem.connect('sqlite::memory:') as mem:\n    mem.remember('heron')\n"  # imports what is needed
        "import semmem.stores.embedded.server, semmem.stores.postgres.store\n"
        f"os.setgroups([]), os.setgid({NOBODY}), os.setuid({NOBODY})\n"
        "try:\n    print(semmem.connect(sys.argv[1]).list())\n"
        "except semmem.SemmemError as error: print(type(error).__name__, error)\n"
    )
    try:
        done = subprocess.run(
            [sys.executable, "-c", program, url], capture_output=True, text=True, check=False,
            env={**os.environ, "HOME": "/"}, cwd="/",
        )  # fmt: skip
    finally:
        for folder, mode in opened:
            folder.chmod(mode)
    assert done.stderr == ""
    sentence = {
        "sqlite": r"StoreUnavailable The file .*notes\.db cannot be opened; check the rights of the file and of its",
        "embedded": r"StoreUnavailable The data folder .*theirs (is closed to this user; choose another|belongs)",
    }
    assert re.match(sentence[kind], done.stdout), done.stdout
