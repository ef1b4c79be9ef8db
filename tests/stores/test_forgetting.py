"""Forgetting much at once: in bounded memory, without a trace, beside others who write."""

from __future__ import annotations

import random
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest

import semmem
from semmem.client.memory import Semmem
from semmem.model.errors import NotFound
from semmem.stores.postgres import forget, postings, vacuum
from tests.stores.audit import check, sql
from tests.stores.filled import fill

NAMES = ("Ada Lovelace", "Charles Babbage", "Mary Somerville", "Ada", "Lovelace")
WITH_NAMESPACE = """SELECT c.relname::text FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'namespace'
WHERE n.nspname = 'semmem' AND c.relkind = 'r' ORDER BY 1"""


@pytest.fixture
def mem(store_url: str) -> Iterator[Semmem]:
    with semmem.connect(store_url, embedder="hashing", pool_size=4) as mem:
        yield mem


def people(count: int, chance: random.Random, start: int = 0) -> list[dict[str, Any]]:
    return [
        {"id": f"p{n}", "text": f"{chance.choice(NAMES)} met {chance.choice(NAMES)} in {n}", "session": f"s{n % 3}",
         "title": chance.choice([None, None, *NAMES]), "created_at": "2026-01-31"}
        for n in range(start, start + count)
    ]  # fmt: skip


def power_cut(*_: object, **__: object) -> bool:
    """End a drop at a step."""
    raise KeyboardInterrupt


def test_many_memories_are_forgotten_some_at_a_time_and_leave_no_trace(
    mem: Semmem, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forget, "FORGET_AT_ONCE", 7)
    held: list[int] = []
    some = forget.delete_rows

    def counted(connection: Any, which: Any, *kept: Any, **last: Any) -> Any:
        held.append(len(which["ords"]))
        return some(connection, which, *kept, **last)

    monkeypatch.setattr(forget, "delete_rows", counted)
    mem.remember_many(people(90, random.Random(1)), batch_size=30)
    mem.remember_many(people(5, random.Random(2)), namespace="other")
    assert mem.forget(filters={"sessions": "s1"}, dry_run=True) == 30
    assert held == []
    assert mem.forget(filters={"sessions": "s1"}) == 30
    assert held == [7, 7, 7, 7, 2]
    check(mem)
    left = [item for item in people(90, random.Random(1)) if item["session"] != "s1"]
    mem.remember_many(left, namespace="fresh")
    mem.maintain()
    assert mem.graph_hash() == mem.graph_hash(namespace="fresh")


@pytest.mark.parametrize("at_once", [10_000, 9])
def test_nothing_of_a_namespace_is_left_in_any_table_and_all_of_the_others_is(
    mem: Semmem, monkeypatch: pytest.MonkeyPatch, at_once: int
) -> None:
    monkeypatch.setattr(forget, "FORGET_AT_ONCE", at_once)
    fill(mem)
    tables = [table for (table,) in sql(mem, WITH_NAMESPACE) if table != "audit"]  # which stays, and holds no text
    rows = {table: sql(mem, f"SELECT t::text FROM {table} t WHERE namespace <> 'one' ORDER BY 1") for table in tables}
    assert all(sql(mem, f"SELECT count(*) FROM {table} WHERE namespace = 'one'") != [(0,)] for table in tables)
    assert mem.store.forget_namespace("one", dry_run=False) == 71
    for table in tables:
        if table in ("namespace", "change"):
            continue
        assert sql(mem, f"SELECT count(*) FROM {table} WHERE namespace = 'one'") == [(0,)], table
        assert sql(mem, f"SELECT t::text FROM {table} t ORDER BY 1") == rows[table], table
    assert sql(mem, "SELECT id, kind FROM change WHERE namespace = 'one'") == [("", "dropped")]
    others = "SELECT t::text FROM change t WHERE namespace <> 'one' ORDER BY 1"
    assert sql(mem, others) == rows["change"]
    row = """SELECT memories, length, dropping, changed_at > now() - interval '1 hour' FROM namespace
    WHERE namespace = 'one'"""
    assert sql(mem, row) == [(0, 0, None, True)]
    mem.maintain()
    assert sql(mem, row) == [(0, 0, None, True)]
    sql(mem, "UPDATE namespace SET changed_at = changed_at - interval '91 days' WHERE namespace = 'one'")
    mem.maintain()
    assert sql(mem, row) == []
    check(mem)


@pytest.mark.slow
def test_what_others_remember_while_a_namespace_is_forgotten_is_whole(mem: Semmem, store_url: str) -> None:
    chance = random.Random(5)
    over, errors = threading.Event(), list[BaseException]()

    def writing(start: int) -> None:
        with semmem.connect(store_url, embedder="hashing", pool_size=2) as elsewhere:
            try:
                while not over.is_set():
                    size = chance.choice([1, 3, 70])
                    elsewhere.remember_many(people(size, chance, start))
                    start += size
            except BaseException as error:
                errors.append(error)

    writers = [threading.Thread(target=writing, args=(start,)) for start in (0, 1_000_000)]
    for writer in writers:
        writer.start()
    for _ in range(8):
        while not mem.stats().memories:
            pass
        mem.store.forget_namespace("default", dry_run=False)
    over.set()
    for writer in writers:
        writer.join(60)
    assert errors == []
    mem.maintain()
    check(mem)
    left = [
        {"id": m.id, "text": m.text, "title": m.title, "session": m.session, "created_at": m.created_at}
        for m in mem.list(limit=10_000).memories
    ]
    mem.remember_many(left, namespace="fresh")
    mem.maintain()
    assert mem.graph_hash() == mem.graph_hash(namespace="fresh")


def test_a_drop_that_was_interrupted_is_gone_on_with_by_maintain(
    store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with semmem.connect(store_url, embedder="hashing") as mem:
        mem.remember_many([{"text": f"Ada Lovelace met owl {n}."} for n in range(90)], namespace="n")
        with monkeypatch.context() as patched:
            patched.setattr(forget, "FORGET_AT_ONCE", 20)
            patched.setattr(forget, "DROP_STEPS", (*forget.DROP_STEPS[:1], power_cut))
            with pytest.raises(KeyboardInterrupt):
                mem.store.forget_namespace("n", dry_run=False)
        assert sql(mem, "SELECT dropping, memories FROM namespace") == [(90, 0)]
        assert sql(mem, "SELECT count(*) > 0 FROM posting") == [(True,)]
        mem.remember("A new owl.", id="new", namespace="n")
        mem.maintain()
        assert sql(mem, "SELECT dropping, memories FROM namespace") == [(None, 1)]
        assert mem.recall("owl", namespace="n")[0].id == "new"
        check(mem)


def test_what_a_drop_that_was_interrupted_has_forgotten_is_shown_to_nobody(
    store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with semmem.connect(store_url, embedder="hashing") as mem:
        mem.remember("Ada Lovelace met an owl.", id="old", pinned=True, namespace="n")
        with monkeypatch.context() as patched:
            patched.setattr(forget, "DROP_STEPS", (power_cut,))
            with pytest.raises(KeyboardInterrupt):
                mem.store.forget_namespace("n", dry_run=False)
        mem.remember("A new owl.", id="new", pinned=True, namespace="n")
        assert [memory.id for memory in mem.list(namespace="n")] == ["new"]
        assert [row["id"] for row in mem.export(namespace="n")] == ["new"]
        assert [memory.id for memory in mem.context(namespace="n", query="owl").pinned] == ["new"]
        for look in (mem.get, mem.history):
            with pytest.raises(NotFound):
                look("old", namespace="n")


def test_what_is_imported_again_after_a_drop_that_was_interrupted_stays(
    store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    items = [{"text": f"Ada Lovelace met owl {n}.", "id": str(n)} for n in range(30)]
    with semmem.connect(store_url, embedder="hashing") as mem:
        mem.remember_many(items, namespace="n")
        with monkeypatch.context() as patched:
            patched.setattr(forget, "DROP_STEPS", (power_cut,))
            with pytest.raises(KeyboardInterrupt):
                mem.store.forget_namespace("n", dry_run=False)
        assert mem.import_items(items, namespace="n").remembered == 30  # nobody is told that what goes is there already
        mem.maintain()
        assert mem.stats(namespace="n").memories == 30
        check(mem)


def test_what_was_remembered_during_a_drop_keeps_its_entries_in_postings_that_it_shares(
    store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for least in ("FLUSH_AT", "COMPACT_AT"):
        monkeypatch.setattr(postings, least, 1)  # each write is in the postings at once
    with semmem.connect(store_url, embedder="hashing", recipe="lexical") as mem:
        mem.remember_many([{"text": f"Owl {n}."} for n in range(4)], namespace="n")
        with monkeypatch.context() as patched:
            patched.setattr(forget, "DROP_STEPS", (*forget.DROP_STEPS[:1], power_cut))
            with pytest.raises(KeyboardInterrupt):
                mem.store.forget_namespace("n", dry_run=False)
        for id in "abc":
            mem.remember(f"An owl called {id}.", id=id, namespace="n")
        assert sql(mem, "SELECT count(*) > 0 FROM posting WHERE low <= 4 AND high > 4") == [(True,)]
        mem.maintain()
        assert {hit.id for hit in mem.recall("owl", namespace="n")} == {"a", "b", "c"}
        check(mem)


def test_a_drop_that_was_interrupted_is_not_ended_by_that_of_another_namespace(
    store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with semmem.connect(store_url, embedder="none") as mem:
        for namespace, count in (("n", 2), ("other", 5)):
            mem.remember_many([{"text": f"Owl {n}."} for n in range(count)], namespace=namespace)
        with monkeypatch.context() as patched:
            patched.setattr(forget, "DROP_STEPS", (power_cut,))
            with pytest.raises(KeyboardInterrupt):
                mem.store.forget_namespace("n", dry_run=False)
        mem.store.forget_namespace("other", dry_run=False)
        mem.maintain()
        assert mem.stats().memories == 0


def test_a_drop_in_a_file_is_all_or_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from semmem.stores.sqlite import renaming

    with semmem.connect(f"sqlite:{tmp_path}/notes.db", embedder="none") as mem:
        mem.remember_many([{"text": f"Owl {n}."} for n in range(10)], namespace="n")
        mem.configure(namespace="n", exact_bonus=0.5)
        with monkeypatch.context() as patched:
            patched.setattr(renaming, "drop", power_cut)
            with pytest.raises(KeyboardInterrupt):
                mem.forget(namespace="n", everything=True)
        assert (mem.stats(namespace="n").memories, dict(mem.settings_of(namespace="n"))) == (10, {"exact_bonus": 0.5})
        assert mem.forget(namespace="n", everything=True) == 10


def test_a_scrub_that_failed_is_made_up_for_by_the_same_call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with semmem.connect(f"sqlite:{tmp_path}/notes.db", embedder="none") as mem:
        mem.remember("Zyxephone met Zyxarchos.", id="a")
        with monkeypatch.context() as patched:
            patched.setattr(mem.store, "scrub", lambda: (_ for _ in ()).throw(semmem.StoreUnavailable("Busy.")))
            with pytest.raises(semmem.StoreUnavailable):
                mem.forget("a", hard=True)
        with pytest.raises(semmem.NotFound):
            mem.forget("a", hard=True)
    assert b"Zyxephone" not in (tmp_path / "notes.db").read_bytes()


def test_a_memory_beyond_the_last_number_of_a_namespace_is_refused_and_nothing_is_stored(tmp_path: Path) -> None:
    file = tmp_path / "notes.db"
    with semmem.connect(f"sqlite:{file}", embedder="none") as mem:
        mem.remember("First banana.", id="a", namespace="n")
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute("UPDATE namespace SET ords = 4294901758")
    with semmem.connect(f"sqlite:{file}", embedder="none") as mem:
        mem.remember("Second banana.", id="b", namespace="n")
        with pytest.raises(semmem.StoreError, match="'n' has given out all of its 4,294,901,760 numbers"):
            mem.remember("Third banana.", id="c", namespace="n")
        assert [one.id for one in mem.list(namespace="n")] == ["b", "a"]


# ---------------------------------------------------------------------- bytes in the files


def files_with(mem: Semmem, needle: bytes) -> set[str]:
    """Return the tables, or indexes, in whose files ``needle`` stands."""
    sql(mem, "CHECKPOINT")
    (folder,) = sql(mem, "SELECT current_setting('data_directory')")[0]
    names = dict(
        sql(mem, "SELECT pg_relation_filepath(c.oid), relname::text FROM pg_class c JOIN pg_namespace n ON n.oid = "
                 "relnamespace WHERE nspname IN ('semmem', 'pg_toast') AND relkind IN ('r', 'i', 't')")
    )  # fmt: skip
    return {name for path, name in names.items() if needle in Path(folder, path).read_bytes()}


def test_forgetting_hard_leaves_no_bytes_in_the_files_of_any_table(mem: Semmem) -> None:
    mem.remember("Xanthippe met Socrates.", id="kept", namespace="kept")
    mem.remember("Zyxephone met Zyxarchos.", id="gone", title="Zyxephone")
    mem.remember("Zyxarchos wrote.", id="gone too", title="Zyxarchos")
    mem.merge_concepts("Zyxarchos", "Zyxephone")
    mem.configure(recipe="hybrid")
    sql(
        mem, "INSERT INTO relationship SELECT namespace, ord, 7, 8, 'Zyx loves' FROM memory WHERE namespace = 'default'"
    )
    sql(mem, "INSERT INTO namespace_setting (namespace, name, value) VALUES ('default', 'recipe.x', '\"Zyxsetting\"')")
    mem.maintain()
    assert {"memory", "posting", "correction", "relationship", "namespace_setting"} <= files_with(mem, b"Zyx")
    assert "lone_posting" in files_with(mem, b"zyx")
    mem.store.forget_namespace("default", dry_run=False)
    mem.store.scrub()
    assert files_with(mem, b"Zyx") == files_with(mem, b"zyx") == set()
    assert "memory" in files_with(mem, b"Xanthippe")
    assert mem.recall("Xanthippe", namespace="kept")[0].memory.id == "kept"
    check(mem)


def test_a_table_in_use_is_not_waited_for_for_ever_and_what_is_left_is_said(
    mem: Semmem, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vacuum, "PATIENCE", "300ms")
    monkeypatch.setattr(forget, "_TURNS", 2)
    mem.remember("Tea.", id="a")
    with psycopg.connect(mem.store.url, options="-c search_path=semmem,public") as reader:
        reader.execute("SELECT count(*) FROM memory")
        with pytest.raises(
            semmem.StoreUnavailable,
            match=r"are forgotten, but .*: another program, such as a backup or `semmem maintain`, "
            r"keeps using the table semmem\.memory; try again later",
        ):
            mem.forget("a", hard=True)
    assert mem.stats().memories == 0
    for _ in range(4):
        assert mem.store.run(lambda c: c.execute("SHOW lock_timeout").fetchone()) == ("0",)
    mem.store.scrub()
