"""The audit: who read and wrote what, on both stores and through each interface; nothing can change it."""

from __future__ import annotations

import asyncio
import json
import os
import re
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import httpx
import psycopg
import pytest

import semmem
from semmem.client.memory import Semmem
from semmem.interfaces.http.keys import Keys
from semmem.interfaces.http.refusals import Refusals
from semmem.model.audit import AuditEntry
from semmem.model.errors import (
    AccessDenied,
    BadItem,
    InvalidInput,
    KeyRequired,
    NotFound,
    SemmemError,
    StoreUnavailable,
)
from semmem.model.process import asker as asking
from semmem.model.process.asker import asked_through
from semmem.model.store import life_of
from semmem.model.store.upkeep import Keep
from semmem.read import tracing
from semmem.stores.sql_files import statements
from tests.interfaces.cli.program import in_process
from tests.serving import running


@pytest.fixture(params=["SQLite", "PostgreSQL"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of an empty store of each kind."""
    if request.param == "SQLite":
        return f"sqlite://{tmp_path}/notes.db"
    return str(request.getfixturevalue("store_url"))


@pytest.fixture(autouse=True)
def _unwatched() -> Iterator[None]:
    yield
    tracing.switch_off()


@pytest.fixture
def mem(url: str) -> Iterator[Semmem]:
    with semmem.connect(url, embedder="hashing", audit=True) as mem:
        yield mem


def short(entry: AuditEntry) -> tuple[Any, ...]:
    return entry.verb, entry.namespace, entry.outcome, entry.count, entry.ids


def told(mem: Semmem, **narrow: Any) -> list[tuple[Any, ...]]:
    return [short(entry) for entry in mem.audit(**narrow) if entry.verb != "audit"]


def test_each_call_has_an_entry_with_ids_and_counts_and_without_a_text(mem: Semmem) -> None:
    mem.remember("A heron stands in the ferry's way.", id="heron", namespace="birds")
    mem.remember_many(
        [{"text": "A crane.", "id": "crane"}, {"text": "An otter.", "id": "otter", "namespace": "others"}],
        namespace="birds",
    )
    assert mem.recall("heron", namespace="birds", limit=1)[0].id == "heron"
    mem.recall("otter", namespace=["birds", "others"], limit=1)
    mem.get("crane", namespace="birds")
    with pytest.raises(NotFound):
        mem.get("nobody", namespace="birds")
    mem.update("crane", namespace="birds", title="Crane")
    mem.list(namespace="others")
    mem.forget("heron", namespace="birds")
    mem.stats()
    assert told(mem) == [
        ("remember", "birds", "done", 1, ("heron",)),
        ("remember_many", "birds", "done", 1, ("crane",)),
        ("remember_many", "others", "done", 1, ("otter",)),
        ("recall", "birds", "done", 1, ("heron",)),
        ("recall", "birds", "done", 0, ()),
        ("recall", "others", "done", 1, ("otter",)),
        ("get", "birds", "done", 1, ("crane",)),
        ("get", "birds", "NotFound", None, ()),
        ("update", "birds", "done", 1, ("crane",)),
        ("list", "others", "done", 1, ("otter",)),
        ("forget", "birds", "done", 1, ("heron",)),
        ("stats", "", "done", None, ()),
    ]
    whole = json.dumps(mem.audit().as_dict())
    assert "ferry" not in whole
    assert "A crane" not in whole


def test_a_list_that_ends_in_an_error_names_what_it_has_stored(mem: Semmem) -> None:
    items = [{"text": "A heron.", "id": "heron"}, {"text": "An otter.", "id": "otter", "namespace": "others"}, {}]
    with pytest.raises(BadItem):
        mem.remember_many(items, namespace="birds", batch_size=1, on_error="abort")
    assert told(mem) == [
        ("remember_many", "birds", "BadItem", 1, ("heron",)),
        ("remember_many", "others", "BadItem", 1, ("otter",)),
    ]


def test_a_list_that_somebody_interrupts_names_what_it_has_stored(mem: Semmem) -> None:
    def interrupt(report: Any) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        mem.remember_many([{"text": "A heron.", "id": "heron"}, {"text": "A crane."}], batch_size=1, progress=interrupt)
    assert told(mem) == [("remember_many", "default", "KeyboardInterrupt", 1, ("heron",))]


def test_a_link_names_both_of_its_ends(mem: Semmem) -> None:
    mem.remember("A heron.", id="heron")
    mem.remember("A crane.", id="crane")
    mem.link("heron", "see-also", "crane")
    mem.links("crane")
    assert told(mem)[2:] == [
        ("link", "default", "done", 1, ("heron", "crane")), ("links", "default", "done", 1, ("heron", "crane")),
    ]  # fmt: skip


def test_an_entry_names_the_interface_the_agent_and_the_key(mem: Semmem) -> None:
    with asked_through("mcp", "a client", "laptop"):
        mem.recall("anything")
    mem.recall("anything")
    entries = [entry for entry in mem.audit() if entry.verb == "recall"]
    assert [(e.who, e.interface, e.agent) for e in entries] == [
        ("laptop", "mcp", "a client"), (None, "python", None),
    ]  # fmt: skip
    assert all(e.at is not None and abs(datetime.now(UTC) - e.at) < timedelta(minutes=5) for e in entries)
    assert [e.verb for e in mem.audit(who="laptop")] == ["recall"]


def test_the_audit_is_read_by_namespace_time_and_page(mem: Semmem) -> None:
    with asked_through("http", None, "ada"):
        for n in range(5):
            mem.remember(f"Note {n}.", id=f"n{n}", namespace="a" if n % 2 else "b")
    first = mem.audit(namespace=["a", "b"], who="ada", limit=3)
    assert [entry.ids for entry in first] == [("n0",), ("n1",), ("n2",)]
    rest = mem.audit(namespace=["a", "b"], who="ada", limit=3, cursor=first.cursor)
    assert ([entry.ids for entry in rest], rest.cursor) == ([("n3",), ("n4",)], None)
    assert [entry.ids for entry in mem.audit(namespace="a", who="ada")] == [("n1",), ("n3",)]
    middle = first[2].at
    assert middle is not None
    assert [entry.ids for entry in mem.audit(noted_before=middle, who="ada")] == [("n0",), ("n1",)]
    assert [entry.ids for entry in mem.audit(noted_after=middle, who="ada")] == [("n2",), ("n3",), ("n4",)]


def test_the_audit_of_a_namespace_is_read_without_that_of_the_others(store_url: str) -> None:
    with semmem.connect(store_url, embedder="none") as mem:
        entries = [AuditEntry(str(UUID(int=n)), None, "a" if n % 300 else "b", None, "python", None, "recall", "done")
                   for n in range(3_000)]  # fmt: skip
        life_of(mem.store).note_audit(entries)
        execute(mem, "ANALYZE semmem.audit")
        with mem.store.whole() as (connection, _):
            assert len(mem.audit(namespace="b")) == 10
            read = "SELECT seq_tup_read + idx_tup_fetch FROM pg_stat_xact_user_tables WHERE relname = 'audit'"
            (count,) = connection.execute(read).fetchone() or (0,)
            assert 10 <= count < 20  # of 3,000


def test_without_the_setting_nothing_is_noted(url: str) -> None:
    with semmem.connect(url, embedder="hashing") as mem:
        mem.remember("A heron.")
        assert mem.audit().items == ()


def test_of_two_stores_in_a_process_the_one_with_the_setting_is_noted(mem: Semmem, tmp_path: Path) -> None:
    with semmem.connect(f"sqlite://{tmp_path}/other.db", embedder="hashing") as other:
        other.remember("A heron.")
        mem.remember("A crane.", id="crane")
        assert other.audit().items == ()
    assert told(mem) == [("remember", "default", "done", 1, ("crane",))]


def test_a_recall_names_at_most_a_hundred_ids_and_counts_all(mem: Semmem) -> None:
    mem.remember_many([{"text": f"A heron, number {n}.", "id": f"h{n:03}"} for n in range(120)])
    mem.recall("heron", limit=120)
    written, read = [entry for entry in mem.audit() if entry.verb != "audit"]
    assert (written.count, len(written.ids)) == (120, 100)
    assert (read.count, len(read.ids)) == (120, 100)


def execute(mem: Semmem, statement: str) -> None:
    run = mem.store._writing if mem.store.kind == "SQLite" else mem.store.run
    run(lambda c: c.execute(statement))


def changes(mem: Semmem) -> list[str]:
    """Ask the database itself to change the audit; return what it refuses with."""
    table = "audit" if mem.store.kind == "SQLite" else "semmem.audit"
    statements = [f"UPDATE {table} SET who = 'nobody'", f"DELETE FROM {table}"]
    if mem.store.kind != "SQLite":
        statements.append(f"TRUNCATE {table}")
    refusals = []
    for statement in statements:
        with pytest.raises(Exception, match=r"Rows of (semmem\.)?audit are neither changed nor deleted") as raised:
            execute(mem, statement)
        refusals.append(str(raised.value))
    return refusals


def test_the_database_refuses_to_change_or_delete_an_entry(mem: Semmem) -> None:
    mem.remember("A heron.", id="heron")
    assert len(changes(mem)) == (2 if mem.store.kind == "SQLite" else 3)
    assert told(mem) == [("remember", "default", "done", 1, ("heron",))]


def test_a_role_without_deletion_cannot_delete_as_maintain_does(store_url: str) -> None:
    page = (Path(__file__).parents[2] / "docs" / "operate.md").read_text(encoding="utf-8")
    (line,) = re.findall(r"`(REVOKE [^`]+)`", page)
    role = f"app_{os.urandom(4).hex()}"
    with semmem.connect(store_url, embedder="none", audit=True) as mem, mem.store.own_connection() as connection:
        mem.remember("A heron.", id="heron")
        connection.execute(f"CREATE ROLE {role}")
        try:
            connection.execute(f"GRANT USAGE ON SCHEMA semmem TO {role}")
            connection.execute(f"GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA semmem TO {role}")
            connection.execute(line.replace("semmem_app", role))
            connection.execute(f"SET ROLE {role}; SET semmem.audit_before TO 'infinity'")
            for change in ("DELETE FROM semmem.audit", "TRUNCATE semmem.audit"):
                with pytest.raises(psycopg.errors.InsufficientPrivilege):
                    connection.execute(change)
        finally:
            connection.execute(f"RESET ROLE; DROP OWNED BY {role}; DROP ROLE {role}")
        assert told(mem) == [("remember", "default", "done", 1, ("heron",))]


def test_maintain_removes_what_is_over_and_nothing_else_may(mem: Semmem) -> None:
    mem.remember("A heron.", id="heron")
    assert "audit" not in mem.store.maintain(Keep(audit_days=1))
    assert mem.store.maintain(Keep(audit_days=0))["audit"] == 1
    mem.remember("A crane.", id="crane")
    changes(mem)  # what let maintain delete does not last
    assert told(mem) == [("remember", "default", "done", 1, ("crane",))]


def test_what_lets_old_entries_go_lets_no_other_go_and_does_not_last(mem: Semmem) -> None:
    mem.remember("A heron.", id="heron")
    if mem.store.kind == "SQLite":
        let, deleted = "INSERT INTO meta (key, value) VALUES ('audit_before', '1')", ("DELETE FROM audit",)
        run = mem.store._writing
    else:
        let, deleted = (
            "SET LOCAL semmem.audit_before TO '2001-01-01'",
            ("DELETE FROM semmem.audit", "TRUNCATE semmem.audit"),
        )
        run = mem.store.transaction
    for statement in deleted:
        with pytest.raises(Exception, match=r"Rows of (semmem\.)?audit are neither changed nor deleted"):
            run(lambda c, delete=statement: (c.execute(let), c.execute(delete)))
    assert mem.store.maintain(Keep(audit_days=-1))["audit"] == 1  # all that is older than tomorrow
    mem.remember("A crane.", id="crane")
    changes(mem)
    assert told(mem) == [("remember", "default", "done", 1, ("crane",))]


def test_the_clock_of_the_server_says_what_is_over(store_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from semmem.stores.postgres import upkeep

    class Ahead(datetime):
        @classmethod
        def now(cls, tz: Any = None) -> datetime:
            return datetime.now(tz) + timedelta(days=400)

    monkeypatch.setattr(upkeep, "datetime", Ahead, raising=False)
    with semmem.connect(store_url, embedder="none") as mem:
        life_of(mem.store).note_audit([AuditEntry("new", None, "a", None, "python", None, "recall", "done")])
        execute(mem, "INSERT INTO semmem.audit (namespace, id, at, interface, verb, outcome, ids) "
                     "VALUES ('a', 'old', now() - interval '366 days', 'python', 'recall', 'done', '{}')")  # fmt: skip
        assert mem.store.maintain(Keep(audit_days=365))["audit"] == 1
        assert [entry.id for entry in mem.audit()] == ["new"]


def test_an_entry_stays_when_its_namespace_is_renamed_forgotten_hard_or_dropped(mem: Semmem) -> None:
    mem.remember("A heron.", id="heron", namespace="old")
    mem.rename_namespace("old", "new")
    mem.forget("heron", namespace="new", hard=True)
    mem.remember("A crane.", id="crane", namespace="new")
    mem.drop_namespace("new")
    assert [(verb, namespace) for verb, namespace, *_ in told(mem)] == [
        ("remember", "old"), ("rename_namespace", "old"), ("forget", "new"), ("remember", "new"),
        ("drop_namespace", "new"),
    ]  # fmt: skip


def test_an_answer_whose_entry_cannot_be_written_is_withheld(mem: Semmem, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(self: Any, entries: Any) -> None:
        raise OSError("disk full")

    mem.remember("A heron.", id="heron")
    monkeypatch.setattr(type(life_of(mem.store)), "note_audit", broken)
    with pytest.raises(StoreUnavailable, match="The audit of this recall could not be written, so its answer is"):
        mem.recall("heron")


@pytest.mark.slow
def test_a_call_that_fails_halfway_names_what_it_has_written(mem: Semmem) -> None:
    def items(error: BaseException, name: str) -> Iterator[dict[str, Any]]:
        yield from ({"text": f"Heron {n}.", "id": f"{name}{n}"} for n in range(1_000))
        raise error

    for error, name in ((OSError("lost"), "a"), (KeyboardInterrupt(), "b")):
        with pytest.raises(type(error)):
            mem.remember_many(items(error, name), batch_size=100)
    first, second = [entry for entry in mem.audit() if entry.verb == "remember_many"]
    assert (first.outcome, second.outcome) == ("OSError", "KeyboardInterrupt")
    assert (first.ids[0], second.ids[0], len(second.ids)) == ("a0", "b0", 100)
    assert [entry.count for entry in (first, second)] == [
        sum(row["id"].startswith(name) for row in mem.export()) for name in ("a", "b")
    ]


def test_names_that_no_store_takes_are_noted_as_it_takes_them(mem: Semmem) -> None:
    for name in ("a\x00b", "a\ud800b"):
        with pytest.raises(InvalidInput, match="namespace contains a NUL character or half a surrogate pair"):
            mem.recall("heron", namespace=name)
    long = "".join(map(chr, range(0x4E00, 0x4E00 + 5_000)))
    assert mem.recall("heron", namespace=[long, long[:4_000]]).hits == ()
    with asked_through("mcp", "client\x00" + long):
        mem.recall("heron")
    entries = [entry for entry in mem.audit() if entry.verb == "recall"]
    assert [(entry.namespace, entry.outcome) for entry in entries] == [
        ("a?b", "InvalidInput"), ("a?b", "InvalidInput"), (long[:200], "done"), ("default", "done"),
    ]  # fmt: skip
    assert entries[-1].agent == "client?" + long[:193]


WRONG: dict[str, dict[str, Any]] = {
    r"limit must be from 1 to 10000, not 0\.": {"limit": 0},
    "This cursor is not one that audit returned; pass that of the page before.": {"cursor": "x"},
    "who must be a string": {"who": 7},
    "noted_after": {"noted_after": "soon"},
}


@pytest.mark.parametrize("sentence", WRONG)
def test_a_wrong_argument_is_told(mem: Semmem, sentence: str) -> None:
    with pytest.raises(InvalidInput, match=sentence):
        mem.audit(**WRONG[sentence])


def test_over_http_an_entry_names_the_key_and_what_it_was_refused(mem: Semmem, tmp_path: Path) -> None:
    keys = Keys(tmp_path / "keys.json")
    _, write = keys.add("laptop", right="write", namespaces=["team"])
    _, read = keys.add("guest", namespaces=["team"])
    _, admin = keys.add("boss", right="admin")
    with running(mem, keys=keys) as server, httpx.Client(base_url=server.url, timeout=60, trust_env=False) as http:
        by = {name: {"authorization": f"Bearer {text}"} for name, text in
              {"laptop": write, "guest": read, "boss": admin}.items()}  # fmt: skip
        http.post("/v1/memories", json={"text": "A heron.", "id": "heron", "namespace": "team"}, headers=by["laptop"])
        lines = '{"text": "A crane.", "id": "crane"}\n'
        streamed = {**by["laptop"], "content-type": "application/x-ndjson"}
        http.post("/v1/memories?namespace=team", content=lines, headers=streamed)
        http.get("/v1/recall", params={"query": "heron", "namespace": "team", "limit": 1}, headers=by["guest"])
        http.get("/v1/recall", params={"query": "heron", "namespace": "secret"}, headers=by["guest"])
        http.post("/v1/memories", json={"text": "An egret.", "namespace": "team"}, headers=by["guest"])
        http.post("/v1/memories?namespace=team", content=lines, headers={**streamed, **by["guest"]})
        several = '{"text": "A coot.", "id": "coot"}\n{"text": "A teal.", "namespace": "secret"}\n'
        http.post("/v1/memories?namespace=team&batch_size=1", content=several, headers=streamed)
        http.post("/v1/memories?namespace=secret", content=lines, headers=streamed)
        http.post("/v1/recall/reweigh", json={"query": "heron", "namespace": "team", "limit": 1}, headers=by["boss"])
        http.get("/v1/export", params={"namespace": "team"}, headers=by["boss"])
        assert http.get("/v1/audit", headers=by["laptop"]).status_code == 403
        found = http.get("/v1/audit", headers=by["boss"]).json()["entries"]
        with semmem.connect(server.url, key=admin) as remote:
            assert [entry.as_dict() for entry in remote.audit()][: len(found)] == found
    assert [(e["who"], e["interface"], e["verb"], e["namespace"], e["outcome"], e["ids"]) for e in found] == [
        ("laptop", "http", "remember", "team", "done", ["heron"]),
        ("laptop", "http", "remember_many", "team", "done", ["crane"]),
        ("guest", "http", "recall", "team", "done", ["heron"]),
        ("guest", "http", "recall", "secret", "AccessDenied", []),
        ("guest", "http", "remember", "team", "AccessDenied", []),
        ("guest", "http", "remember_many", "team", "AccessDenied", []),
        ("laptop", "http", "remember_many", "team", "AccessDenied", ["coot"]),
        ("laptop", "http", "remember_many", "secret", "AccessDenied", []),
        ("boss", "http", "reweigh", "team", "done", ["heron"]),
        ("boss", "http", "export", "team", "done", []),
        ("laptop", "http", "audit", "", "AccessDenied", []),
    ]


def test_a_request_with_an_idempotency_key_has_an_entry_also_where_it_fails_or_is_sent_again(
    mem: Semmem, tmp_path: Path
) -> None:
    keys = Keys(tmp_path / "keys.json")
    _, text = keys.add("laptop", right="write")
    mem.remember("A heron.", id="heron")
    with running(mem, keys=keys) as server, httpx.Client(base_url=server.url, timeout=60, trust_env=False) as http:
        http.headers["authorization"] = f"Bearer {text}"

        def send(key: str, text: str, id: str) -> int:
            body = {"text": text, "id": id}
            return http.post("/v1/memories", json=body, headers={"idempotency-key": key}).status_code

        assert send("one", "A crane.", "heron") == 409
        assert send("two", "A crane.", "crane") == 201
        assert send("two", "A crane.", "crane") == 201
        assert send("two", "An otter.", "otter") == 422
        forgotten = http.delete("/v1/memories/nobody", headers={"idempotency-key": "three"})
        assert forgotten.status_code == 404
    assert [(e.who, e.interface, *short(e)) for e in mem.audit() if e.interface == "http"] == [
        ("laptop", "http", "remember", "default", "Conflict", None, ()),
        ("laptop", "http", "remember", "default", "done", 1, ("crane",)),
        ("laptop", "http", "get", "default", "done", 1, ("crane",)),
        ("laptop", "http", "remember", "default", "InvalidInput", None, ()),
        ("laptop", "http", "forget", "default", "NotFound", None, ()),
    ]


def test_what_ends_a_transaction_reaches_the_one_who_began_it(mem: Semmem, monkeypatch: pytest.MonkeyPatch) -> None:
    """A lost connection or a deadlock has all of a transaction begin again; the audit says nothing instead."""
    serving, calls = mem.store.serving, []
    assert serving is not None

    def work() -> str:
        calls.append(1)
        mem.remember("A heron.", id="heron")
        return "done"

    def lost(self: Any, entries: Any) -> None:
        raise RuntimeError("as the store says it")

    with monkeypatch.context() as patched:
        patched.setattr(type(life_of(mem.store)), "note_audit", lost)
        with pytest.raises(RuntimeError, match="as the store says it"):
            serving.once(b"k" * 32, b"r" * 32, work, together=True, keep_days=1)
    assert mem.stats().memories == 0
    assert serving.once(b"k" * 32, b"r" * 32, work, together=True, keep_days=1) == ("done", False)
    assert told(mem)[-1] == ("remember", "default", "done", 1, ("heron",))


def test_the_command_exports_json_lines(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SEMMEM_URL", url)
    monkeypatch.setenv("SEMMEM_EMBEDDER", "hashing")
    monkeypatch.setenv("SEMMEM_AUDIT", "true")
    call = in_process(capfd)
    assert call("remember", "A heron.", "--id", "heron", "-n", "birds")[0] == 0
    code, out, _ = call("audit", "export", "-", "-n", "birds")
    (row,) = map(json.loads, out.splitlines())
    assert (code, row["verb"], row["interface"], row["ids"]) == (0, "remember", "cli", ["heron"])
    file = tmp_path / "audit.jsonl"
    assert call("audit", "export", str(file), "--who", "nobody")[1:] == (
        f"Exported 0 entries to {file}.\n",
        "Nothing was exported: no entry matches. Calls are noted if the setting audit is on.\n",
    )
    assert call("audit", "export", str(file))[0] == 2  # it is there already
    assert call("audit", "export", str(file), "--force")[0] == 0
    assert json.loads(file.read_text().splitlines()[0])["ids"] == ["heron"]


def test_asyncio_has_the_verb_too(url: str) -> None:
    async def work() -> list[str]:
        async with semmem.aconnect(url, embedder="hashing", audit=True) as mem:
            await mem.remember("A heron.", id="heron")
            return [entry.verb for entry in await mem.audit()]

    assert asyncio.run(work()) == ["remember"]


def test_a_call_that_names_many_namespaces_writes_a_hundred_rows_and_those_with_memories(mem: Semmem) -> None:
    mem.remember("A heron.", id="heron", namespace="z")
    names = [f"n{n:04}" for n in range(130)]
    assert [hit.id for hit in mem.recall("heron", namespace=[*names, "z"])] == ["heron"]
    with pytest.raises(InvalidInput):
        mem.recall("heron", namespace=names, limit=0)
    entries = [entry for entry in mem.audit() if entry.verb == "recall"]
    done, refused = ([short(e)[1:4] for e in entries if e.outcome == kind] for kind in ("done", "InvalidInput"))
    assert done == [("", "done", 0), *((name, "done", 0) for name in names[:100]), ("z", "done", 1)]
    assert refused == [("", "InvalidInput", None), *((name, "InvalidInput", None) for name in names[:100])]


def test_a_long_list_keeps_a_hundred_ids_of_each_namespace_and_counts_the_others(mem: Semmem) -> None:
    kept: list[int] = []

    def look(report: Any) -> None:
        written = asking._written.get()
        assert written is not None
        kept.append(sum(map(len, written.ids.values())))

    items = ({"text": f"Heron {n}.", "id": f"h{n}", "namespace": f"n{n % 2}"} for n in range(240))
    mem.remember_many(items, batch_size=60, progress=look)
    assert kept[-1] == 200
    assert [(*entry[:4], len(entry[4])) for entry in told(mem)] == [
        ("remember_many", "default", "done", 0, 0),
        ("remember_many", "n0", "done", 120, 100),
        ("remember_many", "n1", "done", 120, 100),
    ]


def test_over_http_each_way_to_look_at_a_recall_is_noted_by_its_own_name(mem: Semmem) -> None:
    mem.remember("A heron.", id="heron")
    body: dict[str, Any] = {"query": "heron", "limit": 1}
    with running(mem) as server, httpx.Client(base_url=server.url, timeout=60, trust_env=False) as http:
        assert http.post("/v1/memories/heron/explain", json=body).status_code == 200
        assert http.get("/v1/memories/heron/explain", params=body).status_code == 200
        assert http.post("/v1/recall/paths", json=body).status_code == 200
        assert http.post("/v1/recall/reach", json=body).status_code == 200
        assert http.post("/v1/recall", json=body).status_code == 200
    assert told(mem)[1:] == [
        ("explain", "default", "done", None, ("heron",)),
        ("explain", "default", "done", None, ("heron",)),
        ("paths", "default", "done", None, ()),
        ("recall_reach", "default", "done", None, ()),
        ("recall", "default", "done", 1, ("heron",)),
    ]


def test_requests_without_a_key_are_counted_by_an_entry_a_minute(mem: Semmem, tmp_path: Path) -> None:
    keys = Keys(tmp_path / "keys.json")
    keys.add("laptop")
    with running(mem, keys=keys) as server, httpx.Client(base_url=server.url, timeout=60, trust_env=False) as http:
        for _ in range(4):
            assert http.get("/v1/stats").status_code == 401
        assert [(e.who, e.interface, *short(e)) for e in mem.audit() if e.verb == "request"] == [
            (None, "http", "request", "", "KeyRequired", 1, ())
        ]
    assert [e.count for e in mem.audit() if e.verb == "request"] == [1, 3]  # the others when the server has stopped


def test_refused_requests_are_counted_on_while_the_store_does_not_answer() -> None:
    now, lost = [0.0], [True]
    with semmem.connect("sqlite::memory:", embedder="none", audit=True) as mem:

        def opened() -> Semmem:
            if lost[0]:
                raise StoreUnavailable("gone")
            return mem

        refusals = Refusals(opened, "mcp", clock=lambda: now[0])

        def refuse(error: SemmemError) -> list[tuple[Any, ...]]:
            asyncio.run(refusals.note(error))
            return [(e.interface, e.outcome, e.count) for e in mem.audit() if e.verb == "request"]

        assert refuse(KeyRequired("no")) == []
        lost[0] = False
        assert refuse(KeyRequired("no")) == []
        now[0] = 60.0
        assert refuse(AccessDenied("no")) == [("mcp", "AccessDenied", 1), ("mcp", "KeyRequired", 2)]


def test_a_refusal_does_not_wait_for_a_store_that_is_slow_to_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Refusals, "WAITS_S", 0.0)
    asked, answers, written = threading.Event(), threading.Event(), threading.Event()
    with semmem.connect("sqlite::memory:", embedder="none", audit=True) as mem:

        def opened() -> Semmem:
            asked.set()
            assert answers.wait(60)
            return mem

        class Told(Refusals):
            def write(self) -> None:
                super().write()
                written.set()

        refusals = Told(opened, "http")

        async def twice() -> None:
            await refusals.note(KeyRequired("no"))
            assert await asyncio.to_thread(asked.wait, 60)
            await refusals.note(KeyRequired("no"))
            answers.set()
            assert await asyncio.to_thread(written.wait, 60)

        asyncio.run(twice())
        assert [e.count for e in mem.audit() if e.verb == "request"] == [1]
        refusals.write()
        assert [e.count for e in mem.audit() if e.verb == "request"] == [1, 1]


def test_work_on_keys_is_noted(
    url: str, mem: Semmem, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SEMMEM_URL", url)
    monkeypatch.setenv("SEMMEM_EMBEDDER", "hashing")
    monkeypatch.setenv("SEMMEM_AUDIT", "true")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    call = in_process(capfd)
    commands = ("add laptop -n a -n b", "rotate laptop", "revoke laptop", "add boss --admin", "list")
    assert [call("keys", *command.split())[0] for command in commands] == [0, 0, 0, 0, 0]
    assert call("serve", "key", "add", "phone")[0] == 0
    assert call("keys", "import")[0] == 0
    assert [(e.interface, *short(e)) for e in mem.audit() if e.verb.startswith("keys")] == [
        ("cli", "keys add", "a", "done", 1, ("laptop",)), ("cli", "keys add", "b", "done", 1, ("laptop",)),
        ("cli", "keys rotate", "a", "done", 1, ("laptop",)), ("cli", "keys rotate", "b", "done", 1, ("laptop",)),
        ("cli", "keys revoke", "a", "done", 1, ("laptop",)), ("cli", "keys revoke", "b", "done", 1, ("laptop",)),
        ("cli", "keys add", "", "done", 1, ("boss",)),
        ("cli", "keys import", "", "done", 1, ("phone",)),
    ]  # fmt: skip


def test_a_copy_is_noted_in_its_source(store_url: str, other_url: str) -> None:
    with semmem.connect(store_url, embedder="none") as mem:
        mem.remember("A heron.", id="heron")
        semmem.copy(store_url, other_url)
        assert told(mem) == []
        semmem.copy(store_url, other_url, audit=True)
        assert told(mem) == [("copy", "", "done", None, ())]
    with semmem.connect(other_url, embedder="none") as mem:
        assert told(mem) == []


def test_what_is_due_of_the_audit_is_found_without_reading_what_is_not(store_url: str) -> None:
    filled = (
        "INSERT INTO semmem.audit (namespace, id, interface, verb, outcome, ids) "
        "SELECT 'n' || n % 7, 'i' || n, 'python', 'recall', 'done', '{}' FROM generate_series(1, 3000) AS n"
    )
    with semmem.connect(store_url, embedder="none") as mem:
        execute(mem, filled)
        execute(mem, "ANALYZE semmem.audit")
        with mem.store.whole() as (connection, _):
            due = statements("postgres")["sweep_audit_due"]
            plan = connection.execute("EXPLAIN " + due, {"audit_days": 1}).fetchall()
        assert "audit_by_age" in str(plan)
