"""Failures in the middle of the work: cut connections, restarts, lost rights, full disks; nothing is half done."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest

from semmem.client.memory import Semmem
from semmem.interfaces.http.keys import StoredKeys
from semmem.model.errors import StoreUnavailable
from semmem.stores.postgres import connection, forget
from tests.stores.postgres.own.opening import NOTE, connect, database, refused, whole
from tests.stores.postgres.own_server import Own
from tests.waiting import until


@contextlib.contextmanager
def locked(own: Own, url: str, table: str = "memory") -> Iterator[Callable[[], int]]:
    """Let whoever uses ``table`` wait; gives a function that waits for one such session and returns its process id."""
    waiting = "SELECT pid FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = %s"
    with psycopg.connect(own.url(database(url))) as holder, psycopg.connect(own.url(), autocommit=True) as looking:
        holder.execute(f"LOCK TABLE semmem.{table} IN ACCESS EXCLUSIVE MODE")

        def waiter() -> int:
            found: list[Any] = []
            until(lambda: found.extend(looking.execute(waiting, (database(url),)).fetchall()) or found)
            return int(found[0][0])

        yield waiter
        holder.rollback()


@contextlib.contextmanager
def locked_until_stop(own: Own, url: str) -> Iterator[None]:
    """Let the work that is started inside wait for a lock, and stop the server under it."""
    with psycopg.connect(own.url(database(url))) as holder:
        holder.execute("LOCK TABLE semmem.memory IN ACCESS EXCLUSIVE MODE")
        yield
        waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
        until(lambda: own.sql(waiting) == [(1,)])
        own.stop()
        holder.close()


class Cutter:
    """Stands between a program and the server, and once cuts the line before the answer to a COMMIT has passed."""

    def __init__(self, port: int) -> None:
        self.armed = False
        self._to = port
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listening.getsockname()[1])

    def __enter__(self) -> Cutter:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listening.close()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._listening.accept()
            except OSError:
                return
            far = socket.create_connection(("127.0.0.1", self._to))
            committing = threading.Event()
            for pair in ((near, far, False), (far, near, True)):
                threading.Thread(target=self._carry, args=(*pair, committing), daemon=True).start()

    def _carry(self, source: socket.socket, target: socket.socket, back: bool, committing: threading.Event) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                if not back and self.armed and b"COMMIT" in data:
                    committing.set()
                if back and committing.is_set():
                    self.armed = False  # the server has committed: this is how it says so
                    break
                target.sendall(data)
        for end in (source, target):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()


def in_background(work: Callable[[], Any]) -> Future[Any]:
    pool = ThreadPoolExecutor(1)
    found = pool.submit(work)
    pool.shutdown(wait=False)
    return found


WORK: dict[str, tuple[Callable[[Semmem], Any], Any]] = {
    "reading": (lambda mem: mem.get("key").text, NOTE),
    "recalling": (lambda mem: [hit.memory.id for hit in mem.recall("key")], ["key"]),
    "remembering": (lambda mem: mem.remember("The radio is tuned.", id="new").id, "new"),
    "forgetting": (lambda mem: mem.forget("key"), 1),
}


@pytest.mark.parametrize("what", WORK)
def test_a_connection_that_is_cut_in_the_middle_is_made_anew_and_the_work_done(
    own: Own, mem: Semmem, url: str, what: str
) -> None:
    work, outcome = WORK[what]
    with locked(own, url) as waiter:
        answer = in_background(lambda: work(mem))
        assert own.sql(f"SELECT pg_terminate_backend({waiter()})") == [(True,)]
    assert answer.result(timeout=60) == outcome
    whole(own, url)
    assert mem.stats().memories == {"remembering": 2, "forgetting": 0}.get(what, 1)


def seen_again(mem: Semmem) -> int:
    assert mem.store.life is not None
    mem.store.life.corroborate("default", {"key": 1})
    return mem.get("key").seen_count


def rotated(mem: Semmem) -> str:
    keys = stored_keys(mem)
    keys.rotate("writer", overlap=timedelta(days=1))
    return " ".join(key.name for key in keys.list())


def stored_keys(mem: Semmem) -> StoredKeys:
    assert mem.store.serving is not None
    return StoredKeys(mem.store.serving)


def let_in(mem: Semmem, text: str) -> str | None:
    """Return the name of a key that a server over this store takes."""
    key = stored_keys(mem).find(f"Bearer {text}")
    return None if key is None else key.name


WORK_ONCE: dict[str, tuple[Callable[[Semmem], Any], Any, int]] = {
    "remembering": (*WORK["remembering"], 2),
    "forgetting": (*WORK["forgetting"], 0),
    "dropping": (lambda mem: mem.drop_namespace("default"), 1, 0),
    "remembering again": (seen_again, 2, 1),
    "merging": (lambda mem: mem.merge_concepts("Ada Lovelace", "Lady Lovelace"), None, 1),
    "unlinking": (lambda mem: mem.unlink("key", "see-also", "key too"), True, 1),
    "making a key": (lambda mem: let_in(mem, stored_keys(mem).add("reader")[1]), "reader", 1),
    "rotating a key": (rotated, "writer writer", 1),
    "removing a key": (lambda mem: stored_keys(mem).remove("writer").name, "writer", 1),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("what", WORK_ONCE)
def test_an_answer_to_a_commit_that_is_lost_does_the_work_once_and_counts_it(own: Own, url: str, what: str) -> None:
    work, outcome, memories = WORK_ONCE[what]
    with connect(url) as mem:
        mem.remember(NOTE, id="key")
        if what in ("merging", "unlinking"):
            mem.remember("Lady Lovelace repairs the radio.", id="key too", namespace="default")
            mem.link("key", "see-also", "key too")
            memories += 1
        stored_keys(mem).add("writer", right="write")
    with Cutter(own.port) as cutter, connect(url.replace(f":{own.port}/", f":{cutter.port}/")) as mem:
        cutter.armed = True
        assert work(mem) == outcome
        assert not cutter.armed
        assert mem.stats().memories == memories
    whole(own, url)


def test_the_end_of_a_transaction_whose_connection_is_lost_is_asked_for(
    own: Own, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "_COMMIT_S", 0.1)
    with connect(url) as mem, psycopg.connect(own.url(database(url))) as other, mem.store.own_connection() as looking:
        for end, outcome in ((other.commit, True), (other.rollback, False)):
            (id,) = other.execute("SELECT pg_current_xact_id()::text").fetchone() or ("",)
            for timeline in (1, 2):  # that of this server, and of one whose place it has taken
                with pytest.raises(StoreUnavailable) as caught:
                    connection._was_committed(looking, id, timeline)
                assert str(caught.value) == (
                    "The database server does not say whether the last change was stored; look before you try again."
                )
                if timeline == 1:
                    end()
            assert connection._was_committed(looking, id, 1) is outcome
        assert connection._was_committed(looking, str(int(id) + 1_000_000), 1) is False  # the server crashed before it


@pytest.mark.slow
def test_a_server_that_restarts_between_two_recalls_and_under_a_write_is_not_noticed(
    own: Own, mem: Semmem, url: str
) -> None:
    assert len(mem.recall("key")) == 1
    own.stop()
    own.start()
    found = mem.recall("key")
    assert (len(found), dict(found.degraded)) == (1, {})
    with locked_until_stop(own, url):
        answer = in_background(lambda: mem.remember("The radio is tuned.", id="new").id)
    own.start()
    assert answer.result(timeout=60) == "new"
    whole(own, url)


@pytest.mark.slow
def test_a_server_that_stays_away_is_told_and_comes_back(own: Own, mem: Semmem) -> None:
    mem.store._pool.timeout = 0.5  # as long as one waits for a connection: 30 s
    own.stop()
    try:
        for work in (mem.stats, lambda: mem.recall("key"), lambda: mem.remember("The radio is tuned.", id="new")):
            with pytest.raises(StoreUnavailable) as caught:
                work()
            assert str(caught.value) == (
                f"No database server answers at 127.0.0.1 port {own.port}; start it there, or correct the address."
            )
    finally:
        own.start()
    mem.store._pool.timeout = 30
    assert mem.stats().memories == 1
    assert mem.remember("The radio is tuned.", id="new").id == "new"


def test_connections_that_are_all_in_use_are_told_with_the_setting(own: Own, url: str) -> None:
    with connect(url, pool_size=1) as mem:
        mem.store._pool.timeout = 0.2
        with mem.store._pool.connection(), pytest.raises(StoreUnavailable) as caught:
            mem.stats()
        assert str(caught.value) == (
            "All 1 connections of this process were in use for 0.2 s; raise SEMMEM_POOL_SIZE, or ask less at once."
        )


def test_a_statement_that_an_administrator_stops_is_told_and_leaves_nothing(own: Own, mem: Semmem, url: str) -> None:
    with locked(own, url) as waiter:
        answer = in_background(lambda: mem.remember("The radio is tuned.", id="new"))
        own.sql(f"SELECT pg_cancel_backend({waiter()})")
        with pytest.raises(StoreUnavailable) as caught:
            answer.result(timeout=60)
    assert str(caught.value) == (
        "The database server stopped a statement (canceling statement due to user request); try again, or raise its "
        "statement_timeout."
    )
    assert mem.stats().memories == 1
    whole(own, url)
    assert mem.remember("The radio is tuned.", id="new").id == "new"


def test_a_server_that_takes_no_writes_answers_questions(own: Own, mem: Semmem, url: str) -> None:
    name = database(url)
    own.sql(f"ALTER DATABASE {name} SET default_transaction_read_only = on")
    with connect(url) as reader:
        found = reader.recall("key")
        assert ([hit.memory.id for hit in found], dict(found.degraded)) == (["key"], {})
        for work in (
            lambda: reader.remember("The radio is tuned."),
            lambda: reader.forget("key"),
            lambda: reader.configure(prior=False),
        ):
            with pytest.raises(StoreUnavailable, match=r"takes no writes \(cannot execute .* read-only transaction\);"):
                work()
    empty = own.database()
    own.sql(f"ALTER DATABASE {empty} SET default_transaction_read_only = on")
    assert refused(own.url(empty, "ada")) == (
        "This database server takes no writes and semmem's tables are not there yet, or not up to date; let semmem "
        "connect once to the primary."
    )
    whole(own, url)


def test_a_right_that_is_taken_away_degrades_its_leg_and_is_told_by_a_write(own: Own, mem: Semmem, url: str) -> None:
    own.sql("REVOKE ALL ON semmem.embedding FROM ada", database(url))
    found = mem.recall("key")
    lacks = "This database user lacks a right (permission denied for table embedding); let the owner of semmem's "
    assert found.degraded["dense"] == lacks + "tables grant it."
    assert len(found) == 1
    with pytest.raises(StoreUnavailable) as caught:
        mem.remember("The radio is tuned.")
    assert str(caught.value) == lacks + "tables grant it."
    own.sql("GRANT ALL ON semmem.embedding TO ada", database(url))
    whole(own, url)
    assert mem.stats().memories == 1


def test_tables_that_somebody_dropped_are_told(own: Own, mem: Semmem, url: str) -> None:
    own.sql("DROP SCHEMA semmem CASCADE", database(url))
    with pytest.raises(StoreUnavailable, match=r"A table of semmem is gone from the database \(relation .*\); restore"):
        mem.get("key")


@pytest.fixture
def small_disk(own: Own) -> Iterator[Path]:
    """A disk of eight megabytes on which the server may keep tables."""
    folder = own.folder / "small"
    folder.mkdir(exist_ok=True)
    options = f"size=8m,mode=700,uid={own.who.uid},gid={own.who.gid}"
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", options, "small", str(folder)], capture_output=True
    ).returncode
    if mounted != 0:
        pytest.skip("no disk can be mounted here")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root mounts disks")
def test_a_full_disk_is_told_and_every_batch_before_is_whole(own: Own, small_disk: Path) -> None:
    name = own.database()
    own.sql(f"CREATE TABLESPACE small OWNER ada LOCATION '{small_disk}'")
    own.sql(f"ALTER DATABASE {name} SET default_tablespace = 'small'")
    url = own.url(name, "ada")
    items = [{"text": f"Note {n} is about owls in the tower.", "id": str(n)} for n in range(2_000)]
    with connect(url) as mem:
        ballast = small_disk / "ballast"
        disk = os.statvfs(small_disk)
        ballast.write_bytes(b"." * (disk.f_bavail * disk.f_frsize - 500_000))
        with pytest.raises(StoreUnavailable) as caught:
            mem.remember_many(items, batch_size=50)
        assert str(caught.value).startswith("The disk of the database server is full (could not extend file ")
        kept = mem.stats().memories
        assert 0 < kept < 2_000
        assert kept % 50 == 0
        whole(own, url)
        ballast.unlink()
        report = mem.remember_many(items[: kept + 50], batch_size=50)
        assert (report.unchanged, report.remembered) == (kept, 50)
    whole(own, url)
    own.sql(f"DROP DATABASE {name} WITH (FORCE)")
    own.sql("DROP TABLESPACE small")


def test_a_disk_that_is_full_at_commit_leaves_nothing_of_the_batch(own: Own, mem: Semmem, url: str) -> None:
    own.sql(
        "CREATE FUNCTION semmem.full() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
        "RAISE EXCEPTION 'could not extend file: No space left on device' USING ERRCODE = '53100'; END $$; "
        "CREATE CONSTRAINT TRIGGER full_disk AFTER INSERT ON semmem.memory DEFERRABLE INITIALLY DEFERRED "
        "FOR EACH ROW EXECUTE FUNCTION semmem.full()",
        database(url),
    )
    with pytest.raises(StoreUnavailable, match=r"^The disk of the database server is full .* Nothing of this call was"):
        mem.remember("The radio is tuned.", id="new")
    own.sql("DROP FUNCTION semmem.full() CASCADE", database(url))
    assert mem.stats().memories == 1
    whole(own, url)
    assert mem.remember("The radio is tuned.", id="new").id == "new"


def test_a_hard_forget_fails_while_a_user_whose_snapshots_are_hidden_reads_an_earlier_state(
    own: Own, url: str, mem: Semmem, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forget, "_SNAPSHOT_PATIENCE_S", 0.0)
    with psycopg.connect(own.url(database(url))) as reader:
        reader.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        reader.execute("SELECT 1")
        with pytest.raises(StoreUnavailable, match="keeps an earlier state of this store"):
            mem.forget("key", hard=True)
    monkeypatch.setattr(forget, "_SNAPSHOT_PATIENCE_S", 60.0)
    mem.remember(NOTE, id="key")
    assert mem.forget("key", hard=True) == 1
