"""Make a standby, and pause its replay, which is lag that a test controls."""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

from semmem.stores.embedded import data_directory
from tests.stores.postgres.own_server import Own, free_port
from tests.waiting import until


def standby_of(own: Own) -> Own:
    """Make a standby of a server by a base backup, and start it."""
    folder = Path(tempfile.mkdtemp(prefix="semmem-standby-"))
    folder.chmod(0o711)
    own.who.give(folder)
    standby = Own(folder, free_port(), own.who)
    command = [str(data_directory.programs() / "pg_basebackup"), "-D", str(standby.data), "-d", own.url()]
    command += ["--write-recovery-conf", "--wal-method=stream", "--checkpoint=fast", "--no-sync"]
    subprocess.run(command, check=True, capture_output=True, **own.who.process)
    with (standby.data / "postgresql.conf").open("a", encoding="utf-8") as out:
        out.write(f"port = {standby.port}\n")
    standby.start()
    return standby


def pause(standby: Own) -> None:
    """Let the standby receive the log without replaying it."""
    standby.sql("SELECT pg_wal_replay_pause()")
    until(lambda: standby.sql("SELECT pg_get_wal_replay_pause_state()") == [("paused",)])


def resume(standby: Own) -> None:
    """Let the standby replay the log."""
    standby.sql("SELECT pg_wal_replay_resume()")


def catch_up(own: Own, standby: Own) -> None:
    """Wait until the standby has replayed all that the primary has now."""
    ((position,),) = own.sql("SELECT pg_current_wal_insert_lsn()::text")
    reached = f"SELECT pg_last_wal_replay_lsn() >= '{position}'::pg_lsn"
    until(lambda: standby.sql(reached) == [(True,)], 60)
