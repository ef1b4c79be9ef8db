"""The log of changes of a namespace: its order, its cursors, and who follows it."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import semmem
from semmem.client.memory import Semmem
from semmem.model.store import Keep
from tests.stores.namespaces import connected


@pytest.fixture
def mem(url: str) -> Iterator[Semmem]:
    with connected(url) as mem:
        yield mem


def kinds(found: Any) -> list[tuple[str | None, str]]:
    return [(one.id, one.kind) for one in found]


def test_changes_come_in_order_page_by_page_and_a_cursor_goes_on_where_it_ended(mem: Semmem) -> None:
    before = mem.changes()
    assert kinds(before) == []
    mem.remember_many([{"id": "a", "text": "one"}, {"id": "b", "text": "two"}, {"id": "c", "text": "three"}])
    mem.update("b", title="Two")
    mem.forget("a")
    mem.remember("other", id="x", namespace="other")
    written = [("a", "written"), ("b", "written"), ("c", "written"), ("b", "updated"), ("a", "forgotten")]
    assert kinds(mem.changes(before.cursor)) == kinds(mem.changes()) == written
    pages, cursor = [], None
    for _ in range(6):
        page = mem.changes(cursor, limit=2, namespace=["default", "other"])
        pages.append(kinds(page))
        cursor = page.cursor
    assert pages[:4] == [written[:2], written[2:4], [written[4], ("x", "written")], []]
    now = mem.changes("now")
    assert (kinds(now), kinds(mem.changes(now.cursor))) == ([], [])
    mem.forget(everything=True)
    mem.remember("again", id="a")
    assert kinds(mem.changes(now.cursor)) == kinds(mem.changes()) == [(None, "dropped"), ("a", "written")]
    assert mem.changes(now.cursor)[0].namespace == "default"


def test_the_changes_of_sensitive_memories_are_listed_like_others(mem: Semmem) -> None:
    mem.remember("The door opens to 4711.", id="a", sensitive=True)
    mem.update("a", title="Door")
    mem.forget("a")
    assert kinds(mem.changes()) == [("a", "written"), ("a", "updated"), ("a", "forgotten")]


@pytest.mark.parametrize("cursor", ["", "x", "bm8", "eyJkZWZhdWx0Ijo3fQ", "é" * 9, "W10", "[" * 9_999])
def test_what_is_no_cursor_is_refused_in_a_sentence(tmp_path: Path, cursor: str) -> None:
    with semmem.connect(f"sqlite://{tmp_path}/notes.db", embedder="none") as mem:
        with pytest.raises(semmem.InvalidInput, match="no cursor of changes; pass on the one"):
            mem.changes(cursor)
        with pytest.raises(semmem.InvalidInput, match="limit must be from 1 to 10000"):
            mem.changes(limit=0)


def test_a_cursor_from_before_what_is_kept_asks_for_a_full_export(mem: Semmem) -> None:
    mem.remember("one", id="a")
    old = mem.changes().cursor
    mem.remember("two", id="b")
    now = mem.changes().cursor
    mem.remember_many([{"id": str(n), "text": f"number {n}"} for n in range(3)], namespace="other")
    half = mem.changes(namespace="other", limit=2).cursor
    mem.store.maintain(Keep(changes_days=-1))
    assert kinds(mem.changes(now)) == []
    for since, where in ((old, "default"), (None, "default"), (half, "other")):
        with pytest.raises(semmem.InvalidInput, match=f"Changes of the namespace '{where}' .* take a full export"):
            mem.changes(since, namespace=where)
    mem.remember("three", id="c")
    assert kinds(mem.changes(now)) == [("c", "written")]


def test_a_cursor_from_before_an_older_backup_was_restored_asks_for_a_full_export(
    store_url: str, tmp_path: Path
) -> None:
    with connected(store_url) as mem:
        mem.remember("one", id="a")
        kept = mem.changes().cursor
        mem.backup(tmp_path / "before.semmem")
        mem.remember("two", id="b")
        mem.forget(everything=True)
        gone = mem.changes().cursor
        mem.restore(tmp_path / "before.semmem")
        assert kinds(mem.changes(kept)) == []
        with pytest.raises(semmem.InvalidInput, match=r"Changes of the namespace 'default' .* take a full export"):
            mem.changes(gone)


@pytest.mark.slow
def test_a_cursor_that_a_restored_namespace_has_passed_asks_for_a_full_export(store_url: str, tmp_path: Path) -> None:
    def refused(cursor: str) -> None:
        with pytest.raises(semmem.InvalidInput, match=r"Changes of the namespace 'default' .* take a full export"):
            mem.changes(cursor)

    def emptied() -> None:
        for one in mem.list():
            mem.forget(one.id, hard=True)

    with connected(store_url) as mem:
        mem.remember("one", id="a")
        kept = mem.changes().cursor
        mem.backup(tmp_path / "one.semmem")
        mem.remember("two", id="b")
        gone = mem.changes().cursor
        emptied()
        mem.restore(tmp_path / "one.semmem")
        for name in ("c", "d", "e"):  # whoever has seen b would never hear that it is not there
            mem.remember(f"text {name}", id=name)
        refused(gone)
        assert kinds(mem.changes(kept)) == [("c", "written"), ("d", "written"), ("e", "written")]
        new = mem.changes(kept, limit=1).cursor
        assert kinds(mem.changes(new)) == [("d", "written"), ("e", "written")]
        emptied()
        mem.restore(tmp_path / "one.semmem")
        mem.remember("another", id="x")
        mem.remember("and another", id="y")
        refused(new)
        assert kinds(mem.changes(kept)) == [("x", "written"), ("y", "written")]


@pytest.mark.nodes
def test_a_follower_beside_writers_has_an_equal_copy_at_the_end(url: str) -> None:
    spaces, ids = ("one", "two"), [f"m{n}" for n in range(12)]
    done = threading.Event()

    def writer(seed: int) -> None:
        chance = random.Random(seed)
        with connected(url) as mem:
            for turn in range(25):
                space, some = chance.choice(spaces), chance.sample(ids, 2)
                what = chance.random()
                try:
                    if what < 0.55:
                        mem.remember_many([{"id": i, "text": f"{i} of {seed}, {turn}"} for i in some], namespace=space)
                    elif what < 0.8:
                        mem.update(some[0], namespace=space, text=f"new of {seed} in {turn}")
                    elif what < 0.97:
                        mem.forget(some[0], namespace=space)
                    else:
                        mem.forget(namespace=space, everything=True)
                except (semmem.Conflict, semmem.NotFound):
                    continue

    def follower() -> dict[tuple[str, str], str]:
        copy: dict[tuple[str, str], str] = {}
        cursor = None
        with connected(url) as mem:
            while True:
                last = done.is_set()
                found = mem.changes(cursor, namespace=spaces, limit=7)
                for one in found:
                    if one.id is None:
                        copy = {name: text for name, text in copy.items() if name[0] != one.namespace}
                        continue
                    copy.pop((one.namespace, one.id), None)
                    for memory in mem.store.get(one.namespace, [one.id]):
                        copy[one.namespace, one.id] = memory.text
                cursor = found.cursor
                if last and not len(found):
                    return copy

    with ThreadPoolExecutor(4) as pool:
        copied = pool.submit(follower)
        for future in [pool.submit(writer, seed) for seed in range(3)]:
            future.result()
        done.set()
        copy = copied.result()
    with connected(url) as mem:
        assert copy == {(space, m.id): m.text for space in spaces for m in mem.list(namespace=space)}
