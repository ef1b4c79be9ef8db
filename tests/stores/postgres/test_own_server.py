"""A server of one's own, for real: how it is reached, and what is said and what is kept when it fails.

A second PostgreSQL with TCP and SCRAM passwords; its users have the rights that people give a program. It shares
nothing with the embedded server of the other tests.
"""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psycopg
import pytest

import semmem
from semmem.client.memory import Semmem
from semmem.model.errors import InvalidInput, StoreError, StoreUnavailable
from semmem.stores import masked, parse_url
from semmem.stores.postgres.errors import OLDEST_SERVER, too_old, without
from tests.stores.audit import check
from tests.stores.postgres import own_server
from tests.stores.postgres.own_server import PASSWORD, Own, wait_until

NOTE = "Ada Lovelace keeps the key behind the radio."


@pytest.fixture(scope="module")
def own() -> Iterator[Own]:
    """The server of these tests."""
    server = own_server.make()
    yield server
    own_server.unmake(server)


@pytest.fixture
def url(own: Own) -> str:
    """The URL of an empty database of the ordinary user ada."""
    return own.url(own.database(), "ada")


@pytest.fixture
def mem(url: str) -> Iterator[Semmem]:
    """An open store on the server, with one memory."""
    with connect(url) as mem:
        mem.remember(NOTE, id="key")
        yield mem


def connect(url: str, **given: Any) -> Semmem:
    return semmem.connect(url, embedder="hashing", **given)


def refused(url: str) -> str:
    """Return the sentence with which a store is not opened; the password is nowhere in it."""
    with pytest.raises(StoreError) as caught:
        connect(url)
    sentence = str(caught.value)
    assert PASSWORD not in sentence
    assert "\n" not in sentence
    return sentence


def database(url: str) -> str:
    return url.rpartition("/")[2]


@contextlib.contextmanager
def locked(own: Own, url: str, table: str = "memory") -> Iterator[Callable[[], int]]:
    """Let whoever uses ``table`` wait; gives a function that waits for one such session and returns its process id."""
    waiting = "SELECT pid FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = %s"
    with psycopg.connect(own.url(database(url))) as holder, psycopg.connect(own.url(), autocommit=True) as looking:
        holder.execute(f"LOCK TABLE semmem.{table} IN ACCESS EXCLUSIVE MODE")

        def waiter() -> int:
            found: list[Any] = []
            wait_until(lambda: found.extend(looking.execute(waiting, (database(url),)).fetchall()) or found)
            return int(found[0][0])

        yield waiter
        holder.rollback()


def whole(own: Own, url: str) -> None:
    """Nothing is stored in part."""
    check(own.url(database(url)))


# ---------------------------------------------------------------------- how it is reached


def test_an_ordinary_user_remembers_recalls_and_forgets(own: Own, url: str) -> None:
    with connect(url) as mem:
        mem.remember(NOTE, id="key")
        found = mem.recall("Where is the key?")
        assert ([hit.memory.id for hit in found], dict(found.degraded)) == (["key"], {})
        assert mem.configure(prior=False) == {"prior": False}
        assert mem.maintain()["folded"] == 1
        assert mem.forget("key") == 1
    whole(own, url)


def test_libpqs_variables_complete_a_bare_url(own: Own, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    given = {"HOST": "127.0.0.1", "PORT": str(own.port), "USER": "ada", "PASSWORD": PASSWORD, "DATABASE": database(url)}
    for name, value in given.items():
        monkeypatch.setenv(f"PG{name}", value)
    monkeypatch.setenv("SEMMEM_URL", "postgresql://")
    with semmem.connect(embedder="hashing") as mem:
        assert mem.store.url == "postgresql://"
        mem.remember(NOTE, id="key")
    with connect(url) as mem:
        assert mem.get("key").text == NOTE


def test_a_service_and_a_password_file_will_do(
    own: Own, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    services, passwords = tmp_path / "services", tmp_path / "passwords"
    services.write_text(
        f"[mine]\nhost=127.0.0.1\nport={own.port}\nuser=ada\ndbname={database(url)}\n", encoding="utf-8"
    )
    passwords.write_text(f"127.0.0.1:*:*:ada:{PASSWORD.replace(':', chr(92) + ':')}\n", encoding="utf-8")
    passwords.chmod(0o600)
    monkeypatch.setenv("PGSERVICEFILE", str(services))
    monkeypatch.setenv("PGPASSFILE", str(passwords))
    connect("postgresql://?service=mine").close()
    monkeypatch.setenv("PGSERVICE", "mine")
    connect("postgresql://").close()
    monkeypatch.setenv("PGSERVICE", "absent")
    assert refused("postgresql://") == "There is no service absent; correct PGSERVICE, or PGSERVICEFILE."


# ---------------------------------------------------------------------- what is said when it cannot be reached

HELP = "check the one in the URL, in PGPASSWORD or in your password file (PGPASSFILE, ~/.pgpass)."


def test_each_way_not_to_get_in_is_one_sentence(own: Own, url: str) -> None:
    name = database(url)
    wrong = "The database server refuses the password of the user ada; " + HELP
    assert refused(own.url(name, "ada", "wrong")) == wrong
    assert refused(own.url(name, "ada", None)) == "The database server wants a password and none was given; " + HELP
    assert refused(own.url("absent", "ada")) == (
        "There is no database absent on this server; make it with: createdb absent"
    )
    own.sql(f"REVOKE CONNECT ON DATABASE {name} FROM PUBLIC")
    assert refused(own.url(name, "guest")) == (
        f"This user may not connect to the database {name}; let its owner grant CONNECT on it."
    )
    assert refused(url + "?sslmode=require") == (
        "The database server offers no encryption and sslmode asks for it; enable ssl there, or lower sslmode."
    )
    assert refused(url.replace(f":{own.port}/", ":1/")) == (
        "No database server answers at 127.0.0.1 port 1; start it there, or correct the address."
    )
    assert refused(url.replace("127.0.0.1", "nowhere.invalid")) == (
        "There is no machine named nowhere.invalid; correct the host in the store URL or in PGHOST."
    )


def test_an_address_that_the_server_does_not_admit_is_told(own: Own, url: str) -> None:
    rules = own.data / "pg_hba.conf"
    before = rules.read_text(encoding="utf-8")
    try:
        rules.write_text(f"host {database(url)} ada 127.0.0.1/32 reject\n{before}", encoding="utf-8")
        own.sql("SELECT pg_reload_conf()")
        wait_until(lambda: own.sql("SELECT count(*) FROM pg_hba_file_rules WHERE auth_method = 'reject'") == [(1,)])
        assert refused(url).startswith("The database server cannot be reached: connection failed: ")
    finally:
        rules.write_text(before, encoding="utf-8")
        own.sql("SELECT pg_reload_conf()")


def test_a_server_without_connections_to_spare_says_so_and_serves_those_it_has(own: Own, mem: Semmem, url: str) -> None:
    held: list[Any] = []
    try:
        with contextlib.suppress(psycopg.OperationalError):
            while len(held) < 30:
                held.append(psycopg.connect(url))
        assert 3 < len(held) < 20
        assert refused(url) == (
            "The database server has no connection left; close other programs, lower SEMMEM_POOL_SIZE in each process, "
            "or raise max_connections on the server."
        )
        assert len(mem.recall("key")) == 1
    finally:
        for connection in held:
            connection.close()


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://ada:pass@word@host/db",
        "postgresql://ada:pass/word@host/db",
        "postgresql://ada:pass%word@host/db",
    ],
)
def test_a_password_that_a_url_cuts_in_two_is_refused_before_half_of_it_is_quoted(url: str) -> None:
    with pytest.raises(InvalidInput, match="has to be percent-encoded: @ is %40, / is %2F, % is %25") as caught:
        parse_url(url, home=None)
    assert "word" not in str(caught.value).replace("password", "")


def test_a_password_is_masked_wherever_it_would_stand() -> None:
    url = "postgresql://ada:s%40same@host/db?sslpassword=other&password=third"
    assert masked(url) == "postgresql://ada:***@host/db?sslpassword=***&password=***"
    assert masked("embedded:///folder") == "embedded:///folder"
    assert without("it said s@same, s%40same, third and other", url) == "it said ***, ***, *** and ***"
    assert without("thirdly, the user ada", url) == "thirdly, the user ada"
    assert without('no database "ada"', "postgresql://ada:ada@host/db") == 'no database "ada"'


# ---------------------------------------------------------------------- what the server lacks


def test_a_server_without_pgvector_is_told_what_to_install(own: Own) -> None:
    name = own.database(extension=False)
    own.sql(f"ALTER DATABASE {name} SET extension_control_path = '/nonexistent'")
    assert refused(own.url(name, "ada")) == (
        "This PostgreSQL server has no pgvector extension; install pgvector on it (0.8 or newer), or leave out the URL "
        "to use the embedded server."
    )
    assert own.sql("SELECT 1 FROM pg_namespace WHERE nspname = 'semmem'", name) == []


def test_a_user_who_may_not_make_the_extension_is_told_the_line_for_an_administrator(own: Own) -> None:
    name = own.database(extension=False)
    assert refused(own.url(name, "ada")) == (
        "This database user may not make the pgvector extension; let an administrator run once, in this database: "
        "CREATE EXTENSION vector SCHEMA public"
    )
    own.sql("CREATE EXTENSION vector SCHEMA public", name)
    connect(own.url(name, "ada")).close()


def test_a_user_who_may_not_make_tables_is_told_what_to_grant(own: Own, url: str) -> None:
    guest = own.url(database(url), "guest")
    assert "grant CREATE on the database and USAGE on the schema semmem" in refused(guest)
    connect(url).close()
    assert "grant CREATE on the database and USAGE on the schema semmem" in refused(guest)


@pytest.mark.parametrize("made", [False, True])
def test_a_pgvector_that_is_too_old_is_refused_with_both_versions(own: Own, made: bool) -> None:
    name = own.database(extension=False)
    own.sql(f"ALTER DATABASE {name} SET extension_control_path = '{own.extensions('0.7.4')}'")
    if made:
        own.sql("CREATE EXTENSION vector SCHEMA public", name)
    assert refused(own.url(name, "ada")) == (
        "This database has pgvector 0.7.4 and semmem needs 0.8 or newer; install that on the server, then: "
        "ALTER EXTENSION vector UPDATE"
    )
    assert own.sql("SELECT 1 FROM pg_namespace WHERE nspname = 'semmem'", name) == []


@pytest.mark.parametrize(
    ("server", "vector", "told"),
    [
        (180004, "0.8.5", None),
        (150000, None, None),
        (170002, "0.10.0", None),
        (170002, "1.0", None),
        (149999, "0.8.0", "PostgreSQL 14.9999 and semmem needs 15 or newer"),
        (130023, None, "PostgreSQL 13.23 and semmem needs 15 or newer"),
        (90624, "0.8.0", "PostgreSQL 9 and semmem needs 15"),
        (180004, "0.7.4", "pgvector 0.7.4 and semmem needs 0.8 or newer"),
        (180004, "0.4", "pgvector 0.4 and semmem needs 0.8 or newer"),
    ],
)
def test_versions_are_compared_as_numbers(server: int, vector: str | None, told: str | None) -> None:
    sentence = too_old(server, vector)
    assert (sentence is None) == (told is None)
    assert told is None or told in str(sentence)
    assert OLDEST_SERVER == 15


# ---------------------------------------------------------------------- what happens in the middle


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


@pytest.mark.parametrize("what", ["remembering", "forgetting"])
def test_an_answer_to_a_commit_that_is_lost_does_the_work_once_and_counts_it(own: Own, url: str, what: str) -> None:
    work, outcome = WORK[what]
    with connect(url) as mem:
        mem.remember(NOTE, id="key")
    with Cutter(own.port) as cutter, connect(url.replace(f":{own.port}/", f":{cutter.port}/")) as mem:
        cutter.armed = True
        assert work(mem) == outcome
        assert not cutter.armed
        assert mem.stats().memories == {"remembering": 2, "forgetting": 0}[what]
    whole(own, url)


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


@contextlib.contextmanager
def locked_until_stop(own: Own, url: str) -> Iterator[None]:
    """Let the work that is started inside wait for a lock, and stop the server under it."""
    with psycopg.connect(own.url(database(url))) as holder:
        holder.execute("LOCK TABLE semmem.memory IN ACCESS EXCLUSIVE MODE")
        yield
        waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
        wait_until(lambda: own.sql(waiting) == [(1,)])
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
