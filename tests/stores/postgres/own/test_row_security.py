"""Row-level security on a server of one's own: ada owns the tables, and the servers connect as guest."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import httpx
import psycopg
import pytest

import semmem
from semmem.client.memory import Semmem
from semmem.interfaces.http import app
from semmem.interfaces.http.keys import Keys
from semmem.interfaces.mcp import permission
from semmem.interfaces.mcp import server as mcp_server
from semmem.model.errors import AccessDenied, InvalidInput, SemmemError
from semmem.model.process.asker import asked_through, own_work, permitted
from semmem.stores import migrate_store, secure_rows
from semmem.stores.postgres import row_security
from semmem.stores.sql_files import migrations
from tests.interfaces.cli.program import in_process
from tests.interfaces.mcp.test_streamable_http import running as mcp_running
from tests.interfaces.mcp.test_streamable_http import with_key
from tests.serving import running
from tests.stores.postgres.own.opening import connect, database, whole
from tests.stores.postgres.own.test_opening import granted
from tests.stores.postgres.own_server import Own

HERON = {"text": "The heron of Ada Lovelace sleeps in the reeds.", "id": "heron"}
CRANE = {"text": "The crane of Grace Hopper sleeps in the harbour.", "id": "crane"}


@pytest.fixture
def guests(own: Own, url: str) -> str:
    """The URL for guest of a store with a memory in mine and one in theirs, and row-level security on."""
    migrate_store(url)
    granted(own, database(url))
    secure_rows(url, on=True)
    with connect(url) as owner:
        owner.remember(**HERON, namespace="mine")
        owner.remember(**CRANE, namespace="theirs")
    return own.url(database(url), "guest")


@pytest.fixture
def mem(guests: str) -> Iterator[Semmem]:
    """The store as the servers open it, on one connection that all calls share."""
    with connect(guests, migrate=False, pool_size=1, resident_mb=64) as mem:
        yield mem


def seen(connection: psycopg.Connection[Any]) -> list[tuple[str, str]]:
    return connection.execute("SELECT namespace, id FROM semmem.memory ORDER BY 1").fetchall()


def test_the_database_shows_a_user_the_namespaces_of_the_setting_alone(guests: str) -> None:
    with psycopg.connect(guests, autocommit=True) as connection:
        assert seen(connection) == []
        tables = [name for (name,) in connection.execute(
            "SELECT tablename FROM pg_tables JOIN pg_attribute ON attrelid = ('semmem.' || tablename)::regclass "
            "WHERE schemaname = 'semmem' AND attname = 'namespace'")]  # fmt: skip
        assert len(tables) > 15
        for table in tables:
            assert connection.execute(f"SELECT count(*) FROM semmem.{table}").fetchone() == (0,)
        connection.execute("SET semmem.namespaces TO '{mine}'")
        assert seen(connection) == [("mine", "heron")]
        with pytest.raises(psycopg.errors.InsufficientPrivilege, match="violates row-level security policy"):
            connection.execute("INSERT INTO semmem.namespace_setting VALUES ('theirs', 'prior', 'false')")
        assert connection.execute("DELETE FROM semmem.memory WHERE namespace = 'theirs'").rowcount == 0
        with connection.transaction():
            connection.execute("SET LOCAL semmem.namespaces TO '{theirs}'")
            assert seen(connection) == [("theirs", "crane")]
        assert seen(connection) == [("mine", "heron")]
        connection.execute("RESET semmem.namespaces")
        assert seen(connection) == []
        connection.execute("SET semmem.namespaces TO 'all'")
        assert seen(connection) == [("mine", "heron"), ("theirs", "crane")]


def test_the_owner_of_the_tables_is_not_bound(guests: str, url: str) -> None:
    with psycopg.connect(url) as connection:
        assert seen(connection) == [("mine", "heron"), ("theirs", "crane")]


def test_a_call_that_no_check_has_stopped_finds_nothing_beyond_its_key(mem: Semmem) -> None:
    with asked_through("http", namespaces=("mine",)):
        for _ in range(6):  # from the database, and then from memory
            assert [hit.id for hit in mem.recall("Where does the heron sleep?", namespace="mine")] == ["heron"]
            assert mem.recall("Where does the crane sleep?", namespace="theirs").hits == ()
        assert [hit.id for hit in mem.recall("sleeps", namespace=["mine", "theirs"])] == ["heron"]
        assert [one.name for one in mem.namespaces()] == ["mine"]
        assert mem.stats().memories == 1
        with pytest.raises(semmem.NotFound):
            mem.get("crane", namespace="theirs")
        with pytest.raises(AccessDenied, match=r"^The database refuses rows of a namespace that the key of this call"):
            mem.remember("An egret.", namespace="theirs")
        with pytest.raises(semmem.NotFound):
            mem.forget("crane", namespace="theirs")
    assert mem.get("crane", namespace="theirs").text == CRANE["text"]


def test_a_namespace_in_memory_answers_no_key_that_may_not_touch_it(mem: Semmem) -> None:
    for _ in range(6):
        assert [hit.id for hit in mem.recall("Where does the crane sleep?", namespace="theirs")] == ["crane"]
    assert list(mem.resident) == ["theirs"]
    with asked_through("http", namespaces=("mine",)):
        assert mem.recall("Where does the crane sleep?", namespace="theirs").hits == ()
    assert [hit.id for hit in mem.recall("Where does the crane sleep?", namespace="theirs")] == ["crane"]


def test_one_connection_serves_keys_by_turns_and_keeps_the_namespaces_of_none(mem: Semmem) -> None:
    for _ in range(3):
        for namespaces, found in ((("mine",), ["mine"]), (None, ["mine", "theirs"]), (("theirs", "x"), ["theirs"])):
            with asked_through("http", namespaces=namespaces):
                assert [one.name for one in mem.namespaces()] == found
    with asked_through("http", namespaces=()):
        assert mem.namespaces() == []


@pytest.mark.slow
def test_a_transaction_that_is_undone_takes_the_setting_of_its_call_along(mem: Semmem) -> None:
    def undone() -> None:
        with mem.store.whole():
            with own_work():
                assert mem.store.namespaces() == ["mine", "theirs"]
            assert mem.store.namespaces() == ["mine"]
            raise RuntimeError

    with asked_through("http", namespaces=("mine",)):
        with pytest.raises(RuntimeError):
            undone()
        assert mem.store.namespaces() == ["mine"]
    assert permitted() is None
    assert mem.store.namespaces() == ["mine", "theirs"]


def test_names_of_namespaces_are_no_syntax(mem: Semmem) -> None:
    odd = 'a"b\\c,{d} e'
    mem.remember("A bittern.", namespace=odd, id="bittern")
    with asked_through("http", namespaces=(odd,)):
        assert [one.name for one in mem.namespaces()] == [odd]
    with asked_through("http", namespaces=("all",)):
        assert mem.namespaces() == []


@pytest.mark.slow
def test_every_verb_works_for_a_user_whom_policies_bind(own: Own, mem: Semmem, url: str) -> None:
    with asked_through("http", namespaces=("mine",)):
        many = [{"text": f"Note {n} of Ada Lovelace, on the heron {n % 7}.", "id": f"n{n}"} for n in range(600)]
        assert mem.remember_many(many, namespace="mine").remembered == 600
        assert mem.update("n1", text="Another text.", namespace="mine").version == 2
        mem.link("n2", "see-also", "n3", namespace="mine")
        mem.configure(namespace="mine", prior=False)
        assert mem.forget("n4", namespace="mine") == 1
        mem.restore_memory("n4", namespace="mine")
        assert len(mem.recall("Which note is of the heron 3?", namespace="mine", limit=5)) == 5
        assert mem.context("the heron 3", namespace="mine").hits
        assert mem.stats(namespace="mine").memories == 601
        assert [one.version for one in mem.history("n1", namespace="mine")] == [1, 2]
    mem.rename_namespace("mine", "ours")
    assert [one.name for one in mem.namespaces()] == ["ours", "theirs"]
    whole(own, url)


VERBS: tuple[tuple[str, str, Any], ...] = (
    ("GET", "/v1/memories/crane", None),
    ("GET", "/v1/memories", None),
    ("GET", "/v1/memories/crane/history", None),
    ("GET", "/v1/memories/crane/links", None),
    ("GET", "/v1/export", None),
    ("GET", "/v1/changes", None),
    ("GET", "/v1/concepts", None),
    ("GET", "/v1/graph", None),
    ("GET", "/v1/hashes", None),
    ("GET", "/v1/stats", None),
    ("GET", "/v1/contradictions", None),
    ("POST", "/v1/recall", {"query": "Where does the crane sleep?"}),
    ("POST", "/v1/context", {"query": "Where does the crane sleep?"}),
    ("POST", "/v1/memories/crane/explain", {"query": "Where does the crane sleep?"}),
    ("POST", "/v1/memories", {"text": "An egret of Grace Hopper.", "id": "egret"}),
    ("PATCH", "/v1/memories/crane", {"text": "Gone."}),
    ("DELETE", "/v1/memories/crane", None),
    ("POST", "/v1/forget", {"everything": True}),
    ("PATCH", "/v1/settings", {"prior": False}),
)


def test_postgresql_refuses_where_the_server_no_longer_asks_what_a_key_may_do(
    mem: Semmem, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(app, "authorise", lambda *_: None)
    keys = Keys(tmp_path / "keys.json")
    with running(mem, keys=keys) as server, httpx.Client(base_url=server.url, trust_env=False, timeout=60) as http:
        _, key = keys.add("laptop", right="admin", namespaces=["mine"])
        headers = {"Authorization": f"Bearer {key}"}
        before = mem.hashes()["theirs"]
        for method, path, body in VERBS:
            if method == "GET":
                mine = http.get(path.replace("crane", "heron"), params={"namespace": "mine"}, headers=headers)
                assert mine.status_code == 200, (path, mine.text)
            answer = http.request(method, path, params={"namespace": "theirs"}, json=body, headers=headers)
            assert answer.status_code in (200, 201, 403, 404), (path, answer.text)
            assert "harbour" not in answer.text, path
            assert "Hopper" not in answer.text, path
            assert mem.hashes()["theirs"] == before, path
        assert mem.get("crane", namespace="theirs").version == 1
        assert mem.settings_of(namespace="theirs") == {}


@pytest.mark.slow
def test_postgresql_refuses_where_the_mcp_server_no_longer_asks_what_a_key_may_do(
    guests: str, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(permission, "authorise", lambda *_: None)
    monkeypatch.setattr(mcp_server, "within_scope", lambda memory, _: memory)
    keys = Keys(tmp_path / "keys.json")
    _, mine = keys.add("laptop", right="admin", namespaces=["mine"])
    _, whole_store = keys.add("owner", right="admin")

    async def answers(address: str, key: str, *calls: tuple[str, dict[str, Any]]) -> list[str]:
        async with with_key(address, key) as client:
            return [str(await client.call_tool(tool, {**given, "namespace": "theirs"})) for tool, given in calls]

    with connect(url) as owner, mcp_running(tmp_path, keys, opener=lambda: connect(guests, migrate=False)) as server:
        asked = ("memory_recall", {"query": "Where does the crane sleep?"})
        before = owner.hashes()["theirs"]
        assert "harbour" in anyio.run(answers, server.url, whole_store, asked)[0]
        calls = (
            asked, ("memory_get", {"id": "crane"}), ("memory_list", {}), ("memory_forget", {"id": "crane"}),
            ("memory_update", {"id": "crane", "text": "Gone."}), ("memory_remember", {"text": "An egret."}),
        )  # fmt: skip
        for told in anyio.run(answers, server.url, mine, *calls):
            assert "harbour" not in told
        assert owner.hashes()["theirs"] == before


def switched_at(url: str) -> set[str]:
    """Switch it on for the schema as it is, which a newer semmem finds; return the tables."""
    with psycopg.connect(url, autocommit=True) as connection:
        return set(row_security.switch(connection, on=True).tables)


@pytest.mark.slow
def test_a_program_that_was_open_when_it_was_switched_on_goes_on(own: Own, url: str) -> None:
    migrate_store(url)
    granted(own, database(url))
    with connect(own.url(database(url), "guest"), migrate=False, pool_size=1) as mem:
        mem.remember(**HERON, namespace="mine")
        assert secure_rows(url, on=True).open == ()
        many = [{"text": f"Note {n}.", "id": f"n{n}"} for n in range(300)]
        assert mem.remember_many(many, namespace="mine").remembered == 300
        assert [hit.id for hit in mem.recall("Where does the heron sleep?", namespace="mine", limit=1)] == ["heron"]
        with asked_through("http", namespaces=("theirs",)):
            assert mem.namespaces() == []
        off = secure_rows(url, on=False)
        assert (off.tables, off.binds) == ((), False)
        assert mem.remember_many([{**one, "id": f"m{one['id']}"} for one in many], namespace="mine").remembered == 300
    whole(own, url)


def test_a_request_that_is_sent_once_goes_on_when_it_was_switched_on_meanwhile(
    own: Own, url: str, tmp_path: Path
) -> None:
    migrate_store(url)
    granted(own, database(url))
    text = " ".join(f"Word{n} of Ada Lovelace." for n in range(1200))  # whose postings are copied
    with (
        connect(own.url(database(url), "guest"), migrate=False, pool_size=2) as mem,
        running(mem, keys=Keys(tmp_path / "keys.json")) as server,
    ):
        mem.remember(**HERON, namespace="mine")
        secure_rows(url, on=True)
        body = {"text": text, "id": "long", "namespace": "mine"}
        for _ in range(2):
            headers = {"Idempotency-Key": "once"}
            answer = httpx.post(f"{server.url}/v1/memories", json=body, headers=headers, trust_env=False, timeout=60)
            assert (answer.status_code, answer.json()["version"]) == (201, 1)
    whole(own, url)


def test_a_table_that_a_migration_makes_gets_its_policy(own: Own, url: str) -> None:
    migrate_store(url, to=22)
    secured = switched_at(url)
    migrate_store(url)
    now = secure_rows(url)
    assert now.open == ()
    assert set(now.tables) - secured == {"audit"}


def test_doctor_says_whether_it_binds_the_program(own: Own, guests: str, url: str) -> None:
    def found(where: str) -> list[tuple[str, str, str | None]]:
        with connect(where) as mem:
            return [(f.state, f.detail, f.mend) for f in mem.doctor() if f.what == "row-level security"]

    number = len(secure_rows(url).tables)
    assert found(guests) == [("good", f"on for {number} tables; it binds the user guest of this program", None)]
    free = "it does not bind the user ada of this program, who owns the tables or is a superuser"
    assert found(url) == [("optional", f"on for {number} tables; {free}", None)]
    own.sql("ALTER TABLE semmem.link DISABLE ROW LEVEL SECURITY", database(url))
    assert found(url) == [("bad", "it is not on for link", "semmem row-security on")]
    secure_rows(url, on=False)
    assert found(url) == []


def test_only_the_owner_switches_it(guests: str) -> None:
    with pytest.raises(SemmemError, match=r"^This database user may not change .*; run `semmem row-security` as their"):
        secure_rows(guests, on=False)


def test_the_command_switches_it_and_says_whom_it_binds(
    own: Own, url: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "500")
    call = in_process(capfd)
    name = database(url)
    code, _, err = call("row-security", "on", "--url", url)
    assert code != 0
    newest = migrations("postgres")[-1][0]
    sentence = (
        f"This store has no tables of semmem, and schema {newest} has row-level security; run `semmem migrate` first."
    )
    assert sentence in " ".join(err.split())
    migrate_store(url)
    granted(own, name)
    assert call("row-security", "--url", url) == (0, "Row-level security is off.\n", "")
    on = f"Row-level security is on for {len(secure_rows(url).open)} tables. "
    free = "The user ada is not bound by it; let servers connect as a user without the tables.\n"
    assert call("row-security", "on", "--url", url) == (0, f"{on}{free}", "")
    bound = f"{on}The user guest is bound by it.\n"
    assert call("row-security", "--url", own.url(name, "guest")) == (0, bound, "")
    shown = json.loads(call("row-security", "--url", url, "--json")[1])
    assert (shown["user"], shown["binds"], shown["open"]) == ("ada", False, [])
    assert call("row-security", "off", "--url", url) == (0, "Row-level security is off.\n", "")
    code, _, err = call("row-security", "sideways", "--url", url)
    assert code == 2
    assert "'sideways' is not one of 'on', 'off'" in err


def test_a_file_has_no_row_level_security(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"^A SQLite file has no users, so it has no row-level security; it belongs"):
        secure_rows(f"sqlite://{tmp_path}/notes.db", on=True)
    with semmem.connect("sqlite::memory:", embedder="none") as mem:
        assert mem.store.row_security() is None
