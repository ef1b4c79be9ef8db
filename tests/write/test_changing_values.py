"""A value that changes often, in place, or back: the newest statement stands above the others, in both stores."""

from __future__ import annotations

import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import semmem
from semmem.model.errors import StoreError
from semmem.model.recipe import RECIPES
from semmem.stores.postgres import links as postgres_links
from semmem.stores.sql_files import migrations
from semmem.stores.sqlite import likeness as sqlite_likeness
from semmem.write.items import drafted
from semmem.write.likeness import Likeness, said_anew
from tests.stores.audit import sql
from tests.write.link_keys import links

CHANGES = 25
CRASHES = """
import os, signal, sys, semmem

with semmem.connect(sys.argv[1], embedder="none", pool_size=2) as mem:
    type(mem.store.life).compared = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
    if sys.argv[3] == "remember":
        mem.remember("Ana moved to Porto.", id="new", namespace=sys.argv[2])
    else:
        mem.update("new", text="Ana moved to Porto.", namespace=sys.argv[2])
"""


@pytest.fixture(scope="module", params=["postgres", "sqlite"])
def url(
    request: pytest.FixtureRequest, module_store: Callable[[], str], tmp_path_factory: pytest.TempPathFactory
) -> str:
    folder: Path = tmp_path_factory.mktemp("changes")
    return module_store() if request.param == "postgres" else f"sqlite:{folder / 'notes.db'}"


@pytest.fixture(scope="module")
def mem(url: str) -> Iterator[semmem.Semmem]:
    with semmem.connect(url, embedder="none", pool_size=4) as mem:
        yield mem


@pytest.fixture(scope="module")
def superseding(url: str) -> Iterator[semmem.Semmem]:
    with semmem.connect(url, embedder="hashing", pool_size=4, on_contradiction="supersede") as mem:
        for n in range(CHANGES):
            mem.remember(f"The database port is {5000 + n}.", id=f"p{n:02}", namespace="single")
        items = [{"text": f"The database port is {5000 + n}.", "id": f"p{n:02}"} for n in range(CHANGES)]
        mem.remember_many(items, namespace="batch")
        yield mem


def noted(mem: semmem.Semmem, space: str) -> int:
    """Return how many memories of a namespace are noted as not linked yet."""
    return int(direct(mem, f"SELECT count(*) FROM uncompared WHERE namespace = '{space}'")[0][0])


def direct(mem: semmem.Semmem, statement: str) -> list[tuple[Any, ...]]:
    """Run one statement on a connection of its own."""
    if mem.store.kind != "SQLite":
        return sql(mem, statement)
    with closing(sqlite3.connect(mem.store.url.removeprefix("sqlite:"))) as file, file:
        return file.execute(statement).fetchall()


# ---------------------------------------------------------------------- often


@pytest.mark.slow
@pytest.mark.parametrize("recipe", RECIPES)
@pytest.mark.parametrize("namespace", ["single", "batch"])
def test_the_newest_of_twenty_five_values_stands_above_all_older_ones(
    superseding: semmem.Semmem, namespace: str, recipe: str
) -> None:
    for asked in ("What is the database port?", "database port 5003", "is 5017 the port"):
        found = [hit.id for hit in superseding.recall(asked, recipe=recipe, limit=CHANGES, namespace=namespace)]
        if found or superseding.store.kind != "SQLite":  # which has no vectors and no graph
            newest = [f"p{n:02}" for n in range(CHANGES - 1, CHANGES - 7, -1)]
            assert [id for id in found if id in newest] == [id for id in newest if id in found]
            assert found[0] == newest[0]
        first = superseding.recall(asked, recipe=recipe, limit=1, namespace=namespace)
        assert [hit.id for hit in first] == found[:1]


def test_each_of_many_values_contradicts_the_one_before_it_and_chains_are_ten_links_long_at_most(
    superseding: semmem.Semmem,
) -> None:
    ids = [f"p{n:02}" for n in range(CHANGES)]
    for namespace in ("single", "batch"):
        found = {link.key for id in ids for link in superseding.links(id, namespace=namespace)}
        assert {key for key in found if key[1] == "contradicts"} == {
            (newer, "contradicts", older) for older, newer in pairwise(ids)
        }
        older = {id: {to for at, type, to in found if at == id and type == "supersedes"} for id in ids}
        depth: dict[str, int] = {}
        for id in ids:
            depth[id] = max((depth[one] + 1 for one in older[id]), default=0)
        assert depth[ids[-1]] == 10


def test_a_batch_of_many_namespaces_links_the_changed_value_of_each_and_no_value_of_another(
    superseding: semmem.Semmem,
) -> None:
    spaces = [f"many {n:02}" for n in range(20)]
    for id, port in (("old", 5000), ("new", 6000)):
        superseding.remember_many(
            [{"text": f"The gateway port is {port + n}.", "id": id, "namespace": s} for n, s in enumerate(spaces)]
        )
    for space in spaces:
        assert links(superseding, "old", space) == {("new", "contradicts", "old"), ("new", "supersedes", "old")}
        assert noted(superseding, space) == 0


def test_where_a_value_in_between_is_forgotten_the_others_stay_in_order(superseding: semmem.Semmem, space: str) -> None:
    old, middle, new = (superseding.remember(f"The gateway port is {port}.", namespace=space).id for port in (1, 2, 3))
    superseding.forget(middle, namespace=space)
    assert (new, "supersedes", old) in links(superseding, old, space)
    assert [hit.id for hit in superseding.recall("gateway port 1", namespace=space)] == [new, old]
    superseding.restore_memory(middle, namespace=space)
    assert [hit.id for hit in superseding.recall("gateway port 1", namespace=space)] == [new, middle, old]


# ---------------------------------------------------------------------- in place


def test_an_update_of_the_older_memory_makes_it_the_newest(mem: semmem.Semmem, space: str) -> None:
    old = mem.remember("The port is 5432.", namespace=space).id
    new = mem.remember("The port is now 6543.", namespace=space).id
    mem.link(new, "see-also", old, namespace=space)
    assert mem.update(old, text="The port is 7654.", namespace=space).contradicts == (new,)
    assert links(mem, old, space) == {(old, "contradicts", new), (new, "see-also", old)}
    mem.update(old, tags=["ports"], namespace=space)  # which says nothing new
    assert links(mem, old, space) == {(old, "contradicts", new), (new, "see-also", old)}
    third = mem.remember("The port is 8765.", namespace=space)
    assert third.contradicts == (old,)


def test_a_text_keeps_its_time_when_it_is_forgotten_and_brought_back(mem: semmem.Semmem, space: str) -> None:
    old = mem.remember("The port is 5432.", namespace=space).id
    new = mem.remember("The port is now 6543.", namespace=space).id
    mem.update(old, text="The port is 7654.", namespace=space)
    mem.forget(old, namespace=space)
    mem.restore_memory(old, namespace=space)
    assert links(mem, old, space) == {(old, "contradicts", new)}
    mem.update(old, created_at="2020-01-01", namespace=space)  # the time that is given counts
    assert links(mem, old, space) == {(new, "contradicts", old)}


def test_the_migration_finds_in_the_history_when_each_text_began(mem: semmem.Semmem, space: str) -> None:
    ids = [mem.remember(f"The port of gate {n} is 1.", namespace=space).id for n in range(3)]
    mem.update(ids[1], text="The port of gate 1 is 2.", namespace=space)
    mem.update(ids[1], tags=["ports"], namespace=space)
    mem.update(ids[2], tags=["ports"], namespace=space)
    asked = f"SELECT id, text_at FROM memory WHERE namespace = '{space}' ORDER BY ord"
    before = dict(direct(mem, asked))
    assert [id for id, at in before.items() if at is not None] == [ids[1]]
    backend = "sqlite" if mem.store.kind == "SQLite" else "postgres"
    (body,) = (body for _, name, body in migrations(backend) if name.endswith("when_a_text_began"))
    direct(mem, "UPDATE memory SET text_at = NULL")
    direct(mem, "UPDATE memory" + body.split("UPDATE memory")[1].split(";")[0])
    assert dict(direct(mem, asked)) == before


def test_what_an_update_leaves_without_a_link_is_compared_again(mem: semmem.Semmem, space: str) -> None:
    ids = [mem.remember(f"The port is {port}.", namespace=space).id for port in (1, 2, 3)]
    mem.update(ids[1], text="Ana likes boats.", namespace=space)
    assert links(mem, ids[1], space) == set()
    assert links(mem, ids[0], space) == {(ids[2], "contradicts", ids[0])}


def test_at_an_earlier_time_an_update_has_superseded_nothing_yet(superseding: semmem.Semmem, space: str) -> None:
    old = superseding.remember("The tram number is 4.", namespace=space).id
    new = superseding.remember("The tram number is now 7.", namespace=space)
    assert new.updated_at is not None
    superseding.update(old, text="The tram number is 9.", namespace=space)
    then = superseding.recall("tram number 4", namespace=space, as_of=new.updated_at)
    assert {hit.id: hit.superseded_by for hit in then} == {new.id: None, old: None}
    assert [hit.id for hit in superseding.recall("tram number 7", namespace=space)] == [old, new.id]


# ---------------------------------------------------------------------- back


def test_a_value_that_changes_back_is_said_anew(mem: semmem.Semmem, space: str) -> None:
    first = mem.remember("The port is 5432.", namespace=space)
    second = mem.remember("The port is now 6543.", namespace=space)
    third = mem.remember("The port is 5432.", namespace=space)
    assert (third.contradicts, third.seen_count) == ((second.id,), 1)
    assert mem.get(first.id, namespace=space).seen_count == 1
    again = mem.remember("The port is 5432.", namespace=space)
    assert (again.id, again.seen_count) == (third.id, 2)
    fourth = mem.remember("The port is now 6543.", namespace=space)
    assert fourth.contradicts == (third.id,)
    assert mem.stats(namespace=space).memories == 4


def test_a_value_that_changes_back_after_a_person_linked_the_change_is_said_anew(
    mem: semmem.Semmem, space: str
) -> None:
    first = mem.remember("We take the early boat.", namespace=space)
    second = mem.remember("The late one suits us better.", namespace=space)
    mem.link(second.id, "supersedes", first.id, namespace=space)
    third = mem.remember("We take the early boat.", namespace=space)
    assert (third.seen_count, third.id == first.id) == (1, False)
    mem.link(third.id, "supersedes", second.id, namespace=space)
    hits = mem.recall("which boat do we take, the early or the late one?", namespace=space, recipe="lexical")
    assert [hit.id for hit in hits] == [third.id, second.id]  # the first has the text of the third
    assert mem.remember("We take the early boat.", namespace=space).seen_count == 2


def test_near_duplicates_of_what_is_superseded_fall_with_it_and_come_back_with_it(
    mem: semmem.Semmem, space: str
) -> None:
    said = "The nightly backup of the harbour database runs on the old server in the cellar at three"
    first = mem.remember(f"{said}.", namespace=space, created_at="2026-01-01")
    twin = mem.remember(f"{said} sharp.", namespace=space, created_at="2026-01-02")
    other = mem.remember("The harbour office closes at five.", namespace=space, created_at="2026-01-02")
    newer = mem.remember("Backups moved to the cloud.", namespace=space, created_at="2026-02-01")
    later = mem.remember(f"{said} again.", namespace=space, created_at="2026-03-01")
    assert {one.type for one in mem.links(twin.id, namespace=space)} == {"see-also"}
    mem.link(newer.id, "supersedes", first.id, namespace=space, made_by="ada")

    def superseded() -> dict[str, str | None]:
        hits = mem.recall(f"{said}: backup, harbour office", namespace=space, recipe="lexical")
        return {hit.id: hit.superseded_by for hit in hits}

    assert superseded() == {first.id: newer.id, twin.id: newer.id, newer.id: None, later.id: None, other.id: None}
    assert mem.unlink(newer.id, "supersedes", first.id, namespace=space)
    assert set(superseded().values()) == {None}


def test_a_value_that_changes_back_within_a_batch_is_said_anew(mem: semmem.Semmem, space: str) -> None:
    told = ["The port is 1.", "The port is now 2.", "Tea is at four.", "The port is 1.", "The port is now 2.",
            "The port is now 2.", "The port is 1.", "Tea is at four."]  # fmt: skip
    report = mem.remember_many([{"text": text} for text in told], namespace=space)
    assert (report.read, report.remembered, report.unchanged, report.corroborated) == (8, 6, 2, 2)
    assert report.contradictions == 4
    held = sorted(mem.list(namespace=space), key=lambda one: one.created_at or datetime.now(UTC))
    assert [(one.text, one.seen_count) for one in held] == [
        ("The port is 1.", 1), ("The port is now 2.", 1), ("Tea is at four.", 2), ("The port is 1.", 1),
        ("The port is now 2.", 2), ("The port is 1.", 1),
    ]  # fmt: skip
    ids = [one.id for one in held if "port" in one.text]
    found = {key for id in ids for key in links(mem, id, space) if key[1] == "contradicts"}
    assert found == {(newer, "contradicts", older) for older, newer in pairwise(ids)}


def test_what_a_batch_repeats_before_it_changes_is_counted_and_behind_that_said_anew(
    mem: semmem.Semmem, space: str
) -> None:
    first = mem.remember("The port is 1.", namespace=space)
    told = ["The port is 1.", "The port is 1.", "The port is now 2."]
    report = mem.remember_many([{"text": text} for text in told], namespace=space)
    assert (report.remembered, report.corroborated) == (1, 2)
    assert mem.get(first.id, namespace=space).seen_count == 3
    report = mem.remember_many(
        [{"text": text} for text in ("The port is now 3.", "The port is now 2.")], namespace=space
    )
    assert (report.remembered, report.corroborated) == (2, 0)
    newest = mem.remember("The port is now 2.", namespace=space)
    assert (newest.seen_count, newest.contradicts) == (2, ())


def test_where_what_contradicts_it_is_forgotten_a_value_counts_as_said_again(mem: semmem.Semmem, space: str) -> None:
    first = mem.remember("The port is 5432.", namespace=space)
    second = mem.remember("The port is now 6543.", namespace=space)
    mem.forget(second.id, namespace=space)
    assert mem.remember("The port is 5432.", namespace=space).id == first.id


# ---------------------------------------------------------------------- interrupted


@pytest.mark.slow
@pytest.mark.parametrize("does", ["remember", "update"])
@pytest.mark.parametrize("mends", ["maintain", "write"])
def test_what_a_crash_between_commit_and_links_has_left_is_linked(
    mem: semmem.Semmem, url: str, space: str, does: str, mends: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    mem.maintain()
    mem.remember("Ana lives in Lisbon.", id="old", namespace=space)
    if does == "update":
        mem.remember("Ana likes boats.", id="new", namespace=space)
    program = [sys.executable, "-c", CRASHES, url, space, does]
    done = subprocess.run(program, capture_output=True, timeout=120, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert mem.get("new", namespace=space).text == "Ana moved to Porto."
    assert links(mem, "new", space) == set()
    if mends == "maintain":
        assert mem.maintain()["compared"] == 1
    else:
        mem.remember("The lamp is red.", namespace=space)
        mem.remember("The lamp is now blue.", namespace=space)
        assert links(mem, "new", space) == set()  # its process may still be about to
        monkeypatch.setattr(sqlite_likeness, "WAITING_S", -1.0)
        monkeypatch.setattr(postgres_links, "WAITING_S", -1.0)
        mem.remember("The lamp is now green.", namespace=space)
    assert links(mem, "new", space) == {("new", "contradicts", "old")}
    assert noted(mem, space) == 0
    mem.unlink("new", "contradicts", "old", namespace=space)
    assert "compared" not in mem.maintain()
    assert links(mem, "new", space) == set()


def test_nothing_is_noted_for_what_is_like_nothing_and_no_note_outlives_its_memory(
    mem: semmem.Semmem, space: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    mem.remember("Ana lives in Lisbon.", namespace=space)
    mem.remember("Heron is brown.", namespace=space)
    assert noted(mem, space) == 0

    def fail(*_: Any) -> bool:
        raise StoreError("The store is away.")

    with monkeypatch.context() as broken:
        broken.setattr(type(mem.store.life), "compared", fail)
        gone = mem.remember("Ana moved to Porto.", namespace=space)
    assert noted(mem, space) == 1
    mem.forget(gone.id, namespace=space)
    assert noted(mem, space) == 0


def test_what_is_compared_late_for_another_writer_makes_no_repeat_of_this_batch_anew() -> None:
    draft = drafted(1, {"text": "The port is 5432."}, "default")
    repeats = [(draft, ("default", "first"))]
    assert said_anew(repeats, {("default", "others"): ("first",)}, {draft.name: 1}) == []
    assert said_anew(repeats, {("default", "here"): ("first",)}, {("default", "here"): 0, draft.name: 1}) == [draft]


@pytest.mark.parametrize("size", [1, 3, 40])
@pytest.mark.parametrize(
    ("new", "counted"),
    [("Ana moved to Porto.", False), ("Ana lives in Lisbon with two cats.", True)],
    ids=["change", "more"],
)
def test_a_repeat_beside_another_writer_counts_unless_contradicted(
    mem: semmem.Semmem, url: str, space: str, monkeypatch: pytest.MonkeyPatch, size: int, new: str, counted: bool
) -> None:
    said, written = "Ana lives in Lisbon.", Likeness.written
    first = mem.remember(said, namespace=space)

    def behind(self: Likeness, rows: Any, done: Any) -> Any:  # the first has committed, and not made its links yet
        monkeypatch.undo()
        if size == 1:
            second.remember(said, namespace=space)
        else:
            others = [{"text": f"Bus {n} is late."} for n in range(size - 2)]
            report = second.remember_many([{"text": said}, {"text": said}, *others], namespace=space)
            assert (report.remembered, report.corroborated) == (size - 2 + (not counted), 1 + counted)
        return written(self, rows, done)

    monkeypatch.setattr(Likeness, "written", behind)
    with semmem.connect(url, embedder="none", pool_size=2) as second:
        changed = mem.remember(new, namespace=space)
    repeats = [one for one in mem.list(namespace=space, limit=50) if one.text == said]
    assert len(repeats) == 1 + (not counted)
    assert mem.get(first.id, namespace=space).seen_count == 1 + counted * min(2, size)
    if not counted:
        newest = next(one for one in repeats if one.id != first.id)
        links = {
            (one.from_id, one.to_id) for one in mem.links(changed.id, namespace=space) if one.type == "contradicts"
        }
        assert links == {(changed.id, first.id), (newest.id, changed.id)}
        assert newest.seen_count == min(2, size)
    assert list(mem.store.life.pending_comparisons(space, 0, 50)) == []
