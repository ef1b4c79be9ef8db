"""Keys in the store: the same on PostgreSQL and SQLite, shared by every server, and the command `semmem keys`."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest

import semmem
from semmem.client.memory import Semmem
from semmem.client.routes import ROUTES
from semmem.interfaces.http.keys import Keys, Right, ServerKeys, StoredKeys
from semmem.model.errors import InvalidInput, KeyRequired, NotFound, StoreUnavailable
from tests.interfaces.cli.program import Call, in_process
from tests.interfaces.http.test_routes import problem
from tests.serving import running
from tests.stores.audit import sql
from tests.waiting import until

FRESH_S = 1.1
"""A little more than the second after which a server has read the keys again."""

DAY = timedelta(days=1)


@pytest.fixture(params=["SQLite", "PostgreSQL"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of an empty store of each kind."""
    if request.param == "SQLite":
        return f"sqlite://{tmp_path}/notes.db"
    return str(request.getfixturevalue("store_url"))


@pytest.fixture
def mem(url: str) -> Iterator[Semmem]:
    with semmem.connect(url, embedder="hashing") as mem:
        yield mem


@pytest.fixture
def keys(mem: Semmem) -> StoredKeys:
    return keys_in(mem)


@pytest.fixture
def keys_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the user's own keys are."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    return tmp_path / "config" / "semmem" / "keys.json"


@pytest.fixture
def call(
    url: str, keys_file: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> Call:
    """Run the program on an empty store, for a user without any settings."""
    monkeypatch.setenv("SEMMEM_URL", url)
    monkeypatch.setenv("SEMMEM_EMBEDDER", "hashing")
    monkeypatch.setenv("COLUMNS", "500")
    monkeypatch.chdir(tmp_path)
    return in_process(capfd)


def keys_in(mem: Semmem) -> StoredKeys:
    assert mem.store.serving is not None
    return StoredKeys(mem.store.serving)


def status(http: httpx.Client, text: str) -> int:
    return http.get("/v1/stats", headers={"authorization": f"Bearer {text}"}).status_code


def made(call: Call, *arguments: str) -> dict[str, Any]:
    """Make a key by the command, and return what it says as JSON."""
    code, out, _ = call("keys", "add", *arguments, "--json")
    assert code == 0
    return dict(json.loads(out))


def test_a_key_in_the_store_is_found_listed_and_removed(mem: Semmem, keys: StoredKeys) -> None:
    key, text = keys.add("laptop", right="write", namespaces=["team", "notes"], lasting=DAY)
    other = keys_in(mem)
    assert other.list() == (key,)
    assert other.find(f"Bearer {text}") == key
    assert other.remove("laptop") == key
    assert other.list() == ()
    with pytest.raises(NotFound, match="There is no key named 'laptop'; there are none"):
        other.remove("laptop")


def test_the_store_holds_the_hash_of_a_key_alone(mem: Semmem, keys: StoredKeys) -> None:
    _, text = keys.add("laptop")
    assert mem.store.serving is not None
    (row,) = mem.store.serving.key_list()
    assert set(row) == {
        "name", "id", "digest", "right", "namespaces", "created_at", "expires_at", "principal",
    }  # fmt: skip
    assert text.split("_", 2)[2] not in json.dumps(dict(row))


def test_two_who_add_a_key_of_one_name_at_once_make_one(mem: Semmem) -> None:
    def add(_: int) -> str | None:
        try:
            return keys_in(mem).add("laptop")[1]
        except InvalidInput:
            return None

    with ThreadPoolExecutor(4) as threads:
        texts = [text for text in threads.map(add, range(4)) if text is not None]
    (key,) = keys_in(mem).list()
    assert len(texts) == 1
    assert keys_in(mem).find(f"Bearer {texts[0]}") == key


def test_a_key_that_is_added_while_another_is_removed_is_not_lost(store_url: str) -> None:
    waits = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
    with semmem.connect(store_url, embedder="hashing") as mem, ThreadPoolExecutor(1) as other:
        assert mem.store.serving is not None
        keys_in(mem).add("phone")
        begun = list[Any]()

        def late(rows: Any) -> Any:  # the keys are read, and not written yet
            begun.append(other.submit(keys_in(mem).add, "laptop"))
            until(lambda: begun[0].done() or sql(mem, waits) != [(0,)])
            return [row for row in rows if row["name"] != "phone"]

        mem.store.serving.change_keys(late)
        begun[0].result(60)
        assert [key.name for key in keys_in(mem).list()] == ["laptop"]


def test_a_change_that_is_refused_leaves_every_key_in_its_place(keys: StoredKeys, tmp_path: Path) -> None:
    keys.add("laptop")
    before = keys.list()
    file = Keys(tmp_path / "keys.json")
    file.add("phone")
    file.add("laptop")
    with pytest.raises(InvalidInput, match=r"another key named laptop already; remove it first\. No key was imported"):
        keys.take(file.list())
    with pytest.raises(InvalidInput, match="A key named laptop already exists"):
        keys.add("laptop")
    assert keys.list() == before


@pytest.mark.slow
def test_two_servers_over_one_store_accept_and_refuse_the_same_keys(
    url: str, mem: Semmem, keys: StoredKeys, monkeypatch: pytest.MonkeyPatch
) -> None:
    with (
        semmem.connect(url, embedder="hashing") as second,
        running(mem) as one,
        running(second) as two,
        httpx.Client(base_url=one.url, timeout=60, trust_env=False) as a,
        httpx.Client(base_url=two.url, timeout=60, trust_env=False) as b,
    ):
        _, text = keys.add("laptop")
        _, short = keys.add("short", lasting=timedelta(hours=1))
        time.sleep(FRESH_S)
        assert [status(http, one) for http in (a, b) for one in (text, short)] == [200] * 4
        _, _, new = keys_in(second).rotate("laptop", overlap=DAY)
        time.sleep(FRESH_S)
        assert [status(http, one) for http in (a, b) for one in (text, new)] == [200] * 4  # the overlap
        with monkeypatch.context() as later:
            later.setattr("semmem.interfaces.http.keys._now", lambda: datetime.now(UTC) + timedelta(hours=2))
            assert [status(http, short) for http in (a, b)] == [401, 401]  # its time is over
        keys_in(second).rotate("laptop", overlap=timedelta())
        time.sleep(FRESH_S)
        assert [status(http, new) for http in (a, b)] == [401, 401]
        keys.remove("laptop")
        time.sleep(FRESH_S)
        assert [status(http, text) for http in (a, b)] == [401, 401]


ADMIN: dict[str, tuple[str, str, dict[str, Any] | None]] = {
    "rename_namespace": ("POST", "/v1/namespaces/a/rename", {"new": "b"}),
    "copy_namespace": ("POST", "/v1/namespaces/a/copy", {"new": "b"}),
    "drop_namespace": ("DELETE", "/v1/namespaces/a", None),
    "set_namespace_limits": ("PATCH", "/v1/namespaces/a/limits", {"most_memories": 5}),
    "configure": ("PATCH", "/v1/settings", {"weights": {"lexical": 1}}),
    "unset_settings": ("DELETE", "/v1/settings", None),
    "maintain": ("POST", "/v1/maintain", {}),
    "doctor": ("GET", "/v1/doctor", None),
    "audit": ("GET", "/v1/audit", None),
    "forget everything": ("POST", "/v1/forget", {"everything": True}),
}
"""A request for each verb that needs the right admin."""


@pytest.fixture(scope="module")
def sqlite_server() -> Iterator[tuple[httpx.Client, dict[str, str]]]:
    with semmem.connect("sqlite::memory:", embedder="hashing") as mem:
        texts = {right: keys_in(mem).add(right, right=right)[1] for right in ("write", "admin")}
        with running(mem) as server, httpx.Client(base_url=server.url, timeout=60, trust_env=False) as http:
            yield http, texts


def test_the_routes_that_need_the_right_admin_are_these() -> None:
    assert {route.name for route in ROUTES if route.right == "admin"} == set(ADMIN) - {"forget everything"}


@pytest.mark.parametrize("verb", ADMIN)
def test_a_key_that_may_write_is_refused_by_every_verb_that_needs_admin(
    sqlite_server: tuple[httpx.Client, dict[str, str]], verb: str
) -> None:
    http, texts = sqlite_server
    method, path, body = ADMIN[verb]
    refused = http.request(method, path, json=body, headers={"authorization": f"Bearer {texts['write']}"})
    assert problem(refused) == (403, "AccessDenied")
    assert refused.json()["detail"] == (
        "The key write may only read and write, and this needs the right admin; make a key that has it with "
        "`semmem keys add NAME --admin`."
    )
    answer = http.request(method, path, json=body, headers={"authorization": f"Bearer {texts['admin']}"})
    assert answer.status_code in (200, 204, 404), answer.text  # done, or there is no such namespace


def test_a_key_is_made_used_listed_and_revoked_by_the_command(call: Call, mem: Semmem) -> None:
    code, out, err = call("keys", "add", "laptop", "--write", "-n", "team")
    assert code == 0
    assert err.splitlines() == [
        "The key laptop may read and write in team. It is:",
        "Copy it now: it is not shown again. Clients take it from SEMMEM_KEY.",
    ]
    text = out.strip()
    assert keys_in(mem).find(f"Bearer {text}") is not None
    made(call, "boss", "--admin", "--expires-in", "90d")
    code, out, _ = call("keys", "list")
    assert [line.partition(", since ")[0] for line in out.splitlines()] == [
        "boss: read, write and admin in every namespace", "laptop: read and write in team",
    ]  # fmt: skip
    assert ", until " in out.splitlines()[0]
    shown = json.loads(call("keys", "list", "--json")[1])["keys"]
    assert [set(row) for row in shown] == [{"name", "right", "namespaces", "created_at", "expires_at"}] * 2
    assert call("keys", "revoke", "laptop") == (0, "Revoked the key laptop.\n", "")
    with pytest.raises(KeyRequired):
        keys_in(mem).find(f"Bearer {text}")
    assert call("keys", "revoke", "laptop")[0] == 4
    call("keys", "revoke", "boss")
    assert " ".join(call("keys", "list")[1].split()) == (
        "There are no keys. A server started now needs none; a running server that once had a key stays closed."
    )


def test_a_key_is_rotated_by_the_command(call: Call, mem: Semmem) -> None:
    old = made(call, "laptop", "--write")["key"]
    code, out, err = call("keys", "rotate", "laptop", "--overlap", "12h")
    assert code == 0
    new = out.strip()
    assert "The old key is accepted until " in err
    assert [key is not None for key in map(keys_in(mem).find, (f"Bearer {old}", f"Bearer {new}"))] == [True, True]
    rotated = json.loads(call("keys", "rotate", "laptop", "--overlap", "0", "--json")[1])
    assert (rotated["right"], rotated["warning"]) == ("write", None)
    for text, known in ((new, False), (rotated["key"], True)):
        try:
            assert (keys_in(mem).find(f"Bearer {text}") is not None) is known
        except KeyRequired:
            assert not known


def test_the_keys_of_a_file_are_taken_into_the_store(call: Call, mem: Semmem, keys_file: Path) -> None:
    key, text = Keys(keys_file).add("laptop", right="write")
    code, out, err = call("keys", "import")
    assert (code, out) == (0, "")
    assert err == f"Imported 1 keys into the store. Servers that read {keys_file} still accept them there.\n"
    assert keys_in(mem).find(f"Bearer {text}") == key
    assert json.loads(call("keys", "import", "--json")[1]) == {"imported": 0, "file": str(keys_file)}


@pytest.mark.slow
@pytest.mark.parametrize("verb", [("revoke",), ("rotate", "--overlap", "0")], ids=["revoke", "rotate"])
def test_a_warning_says_that_a_key_still_stands_in_a_file(
    call: Call, keys_file: Path, tmp_path: Path, verb: tuple[str, ...]
) -> None:
    other = tmp_path / "other.json"
    for file, options in ((keys_file, ()), (other, ("--keys", str(other)))):
        Keys(file).add(file.stem)
        assert call("keys", "import", *options)[0] == 0
        code, _, err = call("keys", verb[0], file.stem, *verb[1:], *options)
        assert code == 0
        where = "".join(f" {option}" for option in options)
        assert err.splitlines()[-1] == (
            f"The file {file} has the key {file.stem} too, and servers that read it still accept that key; remove it "
            f"there with `semmem serve key remove {file.stem}{where}`."
        )
        assert call("serve", "key", "remove", file.stem, *options)[0] == 0
    assert call("keys", "add", "new")[0] == 0
    assert "The file" not in call("keys", verb[0], "new", *verb[1:])[2]


@pytest.mark.slow
def test_a_key_of_the_same_name_in_a_file_is_another_key(call: Call, keys_file: Path) -> None:
    Keys(keys_file).add("laptop")
    made(call, "laptop")
    assert call("keys", "revoke", "laptop") == (0, "Revoked the key laptop.\n", "")


WRONG: list[tuple[tuple[str, ...], int, str]] = [
    (("add", "a b"), 2, "The name of a key has 1 to 100 letters, digits, dots, dashes or underscores."),
    (("add", "old"), 2, "A key named old already exists; remove it first, or choose another name."),
    (("add", "x", "--expires-in", "soon"), 2,
     "A time must be like 90d, 12h, 45m or 30s, with a number up to 100000, not 'soon'."),
    (("add", "x", "--expires-in", "0d"), 2,
     "A time must be like 90d, 12h, 45m or 30s, with a number up to 100000, not '0d'."),
    (("rotate", "none"), 4, "There is no key named 'none'; there are old."),
    (("rotate", "old", "--overlap", "1 day"), 2,
     "A time must be like 90d, 12h, 45m or 30s, with a number up to 100000, not '1 day'."),
    (("revoke", "none"), 4, "There is no key named 'none'; there are old."),
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(("arguments", "exit_code", "sentence"), WRONG, ids=lambda one: str(one)[:40])
def test_a_wrong_use_of_the_command_is_told_and_changes_nothing(
    call: Call, mem: Semmem, arguments: tuple[str, ...], exit_code: int, sentence: str
) -> None:
    keys_in(mem).add("old")
    before = keys_in(mem).list()
    code, out, err = call("keys", *arguments)
    assert (code, out) == (exit_code, "")
    assert sentence in " ".join(err.split())
    assert keys_in(mem).list() == before


def test_a_damaged_file_is_imported_not_at_all(call: Call, mem: Semmem, keys_file: Path) -> None:
    keys_file.parent.mkdir(parents=True)
    keys_file.write_text("{", encoding="utf-8")
    code, _, err = call("keys", "import")
    assert code == 2
    assert f"The key file {keys_file} is damaged and cannot be used" in " ".join(err.split())
    assert keys_in(mem).list() == ()


def test_keys_behind_a_server_are_changed_where_the_store_is(call: Call, mem: Semmem) -> None:
    with running(mem) as server:
        code, _, err = call("keys", "list", "--url", server.url)
    assert (code, "open it with its own URL" in " ".join(err.split())) == (2, True)


@pytest.mark.parametrize("right", ["read", "write", "admin"])
def test_the_options_of_add_name_the_right(call: Call, right: Right) -> None:
    options: dict[str, Callable[[], list[str]]] = {
        "read": list, "write": lambda: ["--write"], "admin": lambda: ["--admin"],
    }  # fmt: skip
    assert made(call, "laptop", *options[right]())["right"] == right


def test_a_server_stops_while_the_store_does_not_tell_its_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    asked, go = threading.Event(), threading.Event()

    def no_answer(_: StoredKeys) -> dict[str, Any]:
        asked.set()
        assert go.wait(300)
        return {}

    with semmem.connect("sqlite::memory:", embedder="none") as mem:
        with running(mem, grace_s=0.2) as server:
            monkeypatch.setattr(StoredKeys, "FRESH_S", 0.0)
            monkeypatch.setattr(ServerKeys, "WAITS_S", 0.0)
            monkeypatch.setattr(StoredKeys, "read", no_answer)
            assert httpx.get(f"{server.url}/v1/stats", timeout=60).status_code == 200
            assert asked.wait(60)
        go.set()


def test_keys_that_the_store_did_not_tell_for_ten_seconds_let_nobody_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert ServerKeys.LATE_S == 10.0
    monkeypatch.setattr(ServerKeys, "LATE_S", 1_000.0)  # a full machine may take ten seconds for the test itself
    monkeypatch.setattr(StoredKeys, "read", lambda self: {})  # it ends, and brings nothing new
    with semmem.connect("sqlite::memory:", embedder="none") as mem:
        keys = ServerKeys(Keys(tmp_path / "keys.json"), lambda: mem)

        async def after(seconds: float) -> Any:
            await asyncio.to_thread(keys._in_store)
            assert keys._stored is not None
            keys._stored._cached = (time.monotonic() - seconds, {})
            return await keys.fresh()

        assert asyncio.run(after(500)) == {}
        with pytest.raises(StoreUnavailable, match="no key can be checked"):
            asyncio.run(after(1_100))


def test_a_request_that_comes_while_the_store_has_just_been_opened_reads_the_keys_itself(tmp_path: Path) -> None:
    opened, go = threading.Event(), threading.Event()

    class Slow(ServerKeys):
        def _in_store(self) -> StoredKeys | None:
            stored = super()._in_store()
            opened.set()
            assert go.wait(60)
            return stored

    with semmem.connect("sqlite::memory:", embedder="none") as mem:
        keys = Slow(Keys(tmp_path / "keys.json"), lambda: mem)

        async def two_at_once() -> Any:
            first = asyncio.ensure_future(keys.fresh())
            assert await asyncio.to_thread(opened.wait, 60)
            second = await keys.fresh()
            go.set()
            return await first, second

        assert asyncio.run(two_at_once()) == ({}, {})
