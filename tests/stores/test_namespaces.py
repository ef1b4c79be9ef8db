"""Namespaces as things: what they keep and may hold, their copies and their other names."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import semmem
from semmem.client.memory import Semmem
from tests.stores.audit import check
from tests.stores.expiry import written_then
from tests.stores.namespaces import connected, full, namespace_answers


@pytest.fixture
def mem(url: str) -> Iterator[Semmem]:
    with connected(url) as mem:
        yield mem


def test_a_full_namespace_takes_nothing_of_a_batch_and_says_what_to_do(mem: Semmem) -> None:
    def items(*names: str) -> list[dict[str, Any]]:
        return [{"id": name, "text": f"text of {name}"} for name in names]

    limits = mem.namespace_limits("small", most_memories=3)
    assert (limits.keep_days, limits.most_memories, limits.most_bytes) == (None, 3, None)
    mem.remember_many(items("a", "b"), namespace="small")
    full = r"'small' would then hold 4 memories, and at most 3 are allowed; nothing was stored\. Forget memories"
    with pytest.raises(semmem.NamespaceFull, match=full):
        mem.remember_many(items("c", "d"), namespace="small")
    with pytest.raises(semmem.NamespaceFull, match=full):
        mem.remember_many(items("c", "d"), namespace="small", on_error="skip")
    with pytest.raises(semmem.NamespaceFull, match="22 memories"):  # a large batch is written another way
        mem.remember_many(items(*(f"n{n}" for n in range(20))), namespace="small")
    with pytest.raises(semmem.NamespaceFull, match=full):
        mem.import_items(items("c", "d"), namespace="small")
    with pytest.raises(semmem.NamespaceFull, match=full):  # earlier batches stay
        mem.remember_many(items("c", "d"), namespace="small", batch_size=1)
    assert sorted(m.id for m in mem.list(namespace="small")) == ["a", "b", "c"]
    assert mem.recall("text", namespace="small", recipe="lexical").total == 3
    mem.update("a", namespace="small", title="Changed")
    mem.remember("text of a", id="a", namespace="small", title="Changed")
    mem.forget("b", namespace="small")
    mem.remember("text of d", id="d", namespace="small")
    with pytest.raises(semmem.NamespaceFull, match=full):  # what was forgotten comes back where there is room
        mem.restore_memory("b", namespace="small")
    assert mem.namespace_limits("small", most_memories=0, most_bytes=40).most_memories is None
    with pytest.raises(semmem.NamespaceFull, match="42 bytes of text, and at most 40 are allowed"):
        mem.update("d", namespace="small", text="text of d, gröss")
    assert mem.get("d", namespace="small").text == "text of d"
    mem.forget(namespace="small", everything=True)
    mem.maintain()
    assert mem.namespace_limits("small").most_bytes == 40


@pytest.mark.nodes
def test_of_writers_at_once_no_more_come_in_than_the_limit_lets(url: str) -> None:
    with connected(url) as mem:
        mem.namespace_limits("default", most_memories=9)

    def writer(seed: int) -> int:
        stored = 0
        with connected(url) as mem:
            for turn in range(6):
                try:
                    mem.remember(f"text {turn} of {seed}")
                    stored += 1
                except semmem.NamespaceFull:
                    break
        return stored

    with ThreadPoolExecutor(3) as pool:
        assert sum(pool.map(writer, range(3))) == 9
    with connected(url) as mem:
        assert mem.stats().memories == 9


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (
            {"keep_days": -1},
            "keep_days must be a number of days from 1/24 (an hour) to 36,500, or 0 for no limit, not -1",
        ),
        ({"keep_days": 1e-300}, "keep_days must be a number of days from 1/24 (an hour) to 36,500, or 0 for no limit"),
        ({"keep_days": 0.04}, "keep_days must be a number of days from 1/24 (an hour)"),
        ({"keep_days": float("nan")}, "keep_days must be a number of days"),
        ({"most_memories": 1.5}, "most_memories must be a whole number, or 0 for no limit, not 1.5"),
        ({"most_bytes": True}, "most_bytes must be a whole number, or 0 for no limit, not True"),
    ],
)
def test_a_limit_that_is_none_is_refused(tmp_path: Path, given: dict[str, Any], said: str) -> None:
    with semmem.connect(f"sqlite://{tmp_path}/notes.db", embedder="none") as mem:
        with pytest.raises(semmem.InvalidInput, match=re.escape(said)):
            mem.namespace_limits("default", **given)
        with pytest.raises(semmem.InvalidInput, match="namespace"):
            mem.namespace_limits("", most_bytes=1)


@pytest.mark.nodes
def test_of_two_who_change_limits_at_once_each_changes_its_own(mem: Semmem, monkeypatch: pytest.MonkeyPatch) -> None:
    mem.namespace_limits("n", most_bytes=70)
    change = mem.store.life.set_limits  # type: ignore[union-attr]
    others = [lambda: mem.namespace_limits("n", keep_days=1 / 24)]

    def late(_: Any, name: str, changes: Any) -> Any:
        while others:
            others.pop()()
        return change(name, changes)

    monkeypatch.setattr(type(mem.store.life), "set_limits", late)
    found = mem.namespace_limits("n", most_memories=7)
    assert (found.keep_days, found.most_memories, found.most_bytes) == (1 / 24, 7, 70)
    assert mem.namespace_limits("n") == found


@pytest.mark.parametrize("stay", [False, True])
def test_limits_that_a_name_has_stay_when_a_namespace_gets_it(mem: Semmem, stay: bool) -> None:
    move = mem.copy_namespace if stay else mem.rename_namespace
    for name in ("a", "b", "c"):
        mem.remember(f"Text {name}.", id=name, namespace="old")
    mem.namespace_limits("old", keep_days=7, most_bytes=500)
    mem.namespace_limits("small", most_memories=2)
    mem.namespace_limits("new", most_memories=3, keep_days=30)
    with pytest.raises(semmem.NamespaceFull, match="'small' would then hold 3 memories, and at most 2 are allowed;"):
        move("old", "small")
    assert [(one.name, one.memories) for one in mem.namespaces()] == [("old", 3)]
    assert mem.namespace_limits("small").most_memories == 2
    assert move("old", "new") == 3
    found = mem.namespace_limits("new")
    assert (found.keep_days, found.most_memories, found.most_bytes) == (30, 3, 500)
    with pytest.raises(semmem.NamespaceFull):
        mem.remember("Text d.", namespace="new")


def test_what_a_namespace_keeps_no_longer_is_forgotten_by_maintain_for_good(mem: Semmem) -> None:
    for where in ("log", "other"):
        mem.remember("long ago", id="old", namespace=where, created_at="2020-01-01")
        mem.remember("changed lately", id="renewed", namespace=where, created_at="2020-01-01")
        mem.update("renewed", namespace=where, text="changed just now")
        mem.remember("of today", id="new", namespace=where)
    written_then(mem.store, "old")
    mem.remember("taken back", id="back", namespace="log", created_at="2020-01-01")
    mem.forget("back", namespace="log")
    mem.restore_memory("back", namespace="log")
    mem.namespace_limits("log", keep_days=30)
    since = mem.changes("now", namespace="log").cursor
    assert mem.maintain()["kept"] == 1
    assert "kept" not in mem.maintain()
    assert sorted(m.id for m in mem.list(namespace="log")) == ["back", "new", "renewed"]
    assert [(one.id, one.kind) for one in mem.changes(since, namespace="log")] == [("old", "forgotten")]
    assert mem.stats(namespace="other").memories == 3
    with pytest.raises(semmem.NotFound):
        mem.history("old", namespace="log")


@pytest.mark.slow
@pytest.mark.parametrize("stay", [False, True])
def test_a_namespace_under_another_name_is_the_same_in_everything(mem: Semmem, stay: bool) -> None:
    full(mem, "old")
    mem.remember("Not theirs.", id="x", namespace="other")
    before = namespace_answers(mem, "old")
    cursor = mem.changes("now", namespace="new").cursor
    assert (mem.copy_namespace if stay else mem.rename_namespace)("old", "new") == 70
    assert namespace_answers(mem, "new") == before
    assert [(one.name, one.memories) for one in mem.namespaces()] == [
        ("new", 70), *([("old", 70)] if stay else []), ("other", 1)
    ]  # fmt: skip
    copied: set[str | None] = set()
    for change in mem.changes(cursor, namespace="new"):
        (copied.discard if change.kind == "forgotten" else copied.add)(change.id)
    assert copied == {m.id for m in mem.list(namespace="new")}
    if stay:
        assert namespace_answers(mem, "old") == before
    else:
        assert (mem.list(namespace="old").memories, len(mem.recall("owl 7", namespace="old"))) == ((), 0)
        assert mem.settings_of(namespace="old") == {}
    mem.remember("Owl 99 came late.", id="late", namespace="new")
    mem.remember("Owl 98 came late.", id="late", namespace="old")
    mem.maintain()
    assert mem.recall("99", namespace="new", recipe="lexical")[0].id == "late"
    assert mem.recall("98", namespace="old", recipe="lexical")[0].text == "Owl 98 came late."
    assert mem.restore_memory("m2", namespace="new").text == "Ada Lovelace met owl 2."


def test_a_namespace_that_is_dropped_before_it_has_a_memory_is_not_being_dropped_ever_after(mem: Semmem) -> None:
    mem.namespace_limits("one", most_memories=3)
    assert mem.drop_namespace("one") == 0
    mem.remember("The key hangs behind the radio.", id="key", namespace="one")
    check(mem)
    assert mem.drop_namespace("one") == 1
    check(mem)


@pytest.mark.parametrize("stay", [False, True])
def test_a_namespace_of_nothing_but_secrets_is_moved_and_copied_too(mem: Semmem, stay: bool) -> None:
    mem.remember("The code of the safe is 4711.", id="safe", namespace="old", sensitive=True)
    (mem.copy_namespace if stay else mem.rename_namespace)("old", "new")
    assert mem.get("safe", namespace="new", reveal=True).text == "The code of the safe is 4711."
    assert [one.name for one in mem.namespaces()] == (["new", "old"] if stay else ["new"])


def test_a_name_that_is_taken_or_empty_is_refused_and_nothing_is_moved(mem: Semmem) -> None:
    mem.remember("One.", id="a", namespace="one")
    mem.remember("Two.", id="b", namespace="two")
    for move in (mem.rename_namespace, mem.copy_namespace):
        with pytest.raises(semmem.Conflict, match="'two' already holds memories"):
            move("one", "two")
        with pytest.raises(semmem.NotFound, match="no memories in namespace 'none'"):
            move("none", "three")
        with pytest.raises(semmem.InvalidInput, match="has that name already"):
            move("one", "one")
        with pytest.raises(semmem.InvalidInput):
            move("one", "")
    assert [(one.name, one.memories) for one in mem.namespaces()] == [("one", 1), ("two", 1)]
    assert mem.drop_namespace("two", dry_run=True) == mem.drop_namespace("two") == 1
    assert mem.rename_namespace("one", "two") == 1
    assert mem.get("a", namespace="two").text == "One."


@pytest.mark.slow
@pytest.mark.parametrize("stay", [False, True])
def test_a_namespace_is_neither_renamed_nor_copied_while_somebody_rebuilds_the_store(url: str, stay: bool) -> None:
    with semmem.connect(url, embedder="hashing") as one, semmem.connect(url, embedder="hashing") as other:
        one.remember("Owl 1.", namespace="old")
        with one.store.vectors.rebuilding():
            for mem in (one, other):
                with pytest.raises(semmem.Conflict, match=r"^Another process rebuilds this store; wait"):
                    (mem.copy_namespace if stay else mem.rename_namespace)("old", "new")
        assert [found.name for found in other.namespaces()] == ["old"]
        assert (other.copy_namespace if stay else other.rename_namespace)("old", "new") == 1


@pytest.mark.nodes
@pytest.mark.slow
def test_writers_beside_a_rename_lose_nothing(url: str) -> None:
    with connected(url) as mem:
        mem.remember_many([{"id": f"m{n}", "text": f"Owl {n}."} for n in range(40)], namespace="old")
    began = threading.Barrier(3, timeout=60)

    def writer(seed: int) -> set[str]:
        with connected(url) as mem:
            mem.stats()
            began.wait()
            for turn in range(20):
                mem.remember(f"Owl {turn} of {seed}.", id=f"w{seed}-{turn}", namespace="old")
        return {f"w{seed}-{turn}" for turn in range(20)}

    with ThreadPoolExecutor(2) as pool, connected(url) as mem:
        written = [pool.submit(writer, seed) for seed in range(2)]
        began.wait()
        moved = mem.rename_namespace("old", "new")
        acknowledged = set[str]().union(*(future.result() for future in written))
        new, old = ({m.id for m in mem.list(namespace=where, limit=1000)} for where in ("new", "old"))
        assert len(new) == moved
        assert new.isdisjoint(old)
        assert new | old == acknowledged | {f"m{n}" for n in range(40)}
        for where, ids in (("new", new), ("old", old)):
            assert mem.recall("owl", namespace=where, recipe="lexical").total == len(ids)


KILLED = """
import os, signal, sys, semmem
from semmem.stores.postgres.moving import namespaces
run, left = namespaces._transaction, [int(sys.argv[2])]
def stop(*given):
    left[0] -= 1
    if not left[0]:
        os.kill(os.getpid(), signal.SIGKILL)
    return run(*given)
namespaces._transaction = stop
with semmem.connect(sys.argv[1], embedder="hashing") as mem:
    mem.rename_namespace("old", "new")
"""


@pytest.mark.nodes
@pytest.mark.slow
@pytest.mark.parametrize(("step", "where", "none"), [(2, "old", "new"), (9, "old", "new"), (20, "new", "old")])
def test_a_rename_that_was_killed_has_happened_or_not_and_is_done_by_the_next_call(
    store_url: str, step: int, where: str, none: str
) -> None:
    with connected(store_url) as mem:
        full(mem, "old")
        before = namespace_answers(mem, "old")
        done = subprocess.run([sys.executable, "-c", KILLED, store_url, str(step)], check=False)
        assert done.returncode == -signal.SIGKILL
        assert namespace_answers(mem, where) == before
        assert mem.list(namespace=none).memories == ()
        assert mem.rename_namespace("old", "new") == 70
        assert namespace_answers(mem, "new") == before


def test_maintain_counts_what_is_for_somebody_to_look_at(mem: Semmem) -> None:
    items = [{"id": f"m{n}", "text": f"Ada Lovelace met owl {n}.", "title": "Ada Lovelace"} for n in range(31)]
    mem.remember_many(items)
    assert mem.maintain()["hubs"] == 1  # of the names, 31 memories mention hers
    mem.link("m1", "contradicts", "m2")
    done = mem.maintain()
    assert (done["contradictions"], done.get("orphans", 0)) == (1, 0)
    mem.link("m3", "supersedes", "m1")
    for id in ("m2", "m3"):  # the end of a link, and the begin of one
        mem.forget(id)
        assert "orphans" not in mem.maintain()  # it may come back
    mem.forget("m1", hard=True)
    assert not {"orphans", "contradictions"} & set(mem.maintain())


def test_an_old_chat_that_is_stored_today_stays_as_long_as_what_is_said_today(mem: Semmem) -> None:
    lines = [{"role": "user", "content": f"An old line {n}.", "created_at": "2024-01-01"} for n in range(3)]
    mem.namespace_limits("default", keep_days=90)
    mem.remember_messages(lines, session="old")
    assert "kept" not in mem.maintain()
    assert len(mem.list()) == 3
