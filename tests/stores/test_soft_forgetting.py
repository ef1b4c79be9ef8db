"""What is forgotten softly, how it comes back and when it is swept, over every store there is."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import semmem
from semmem.client.memory import Semmem
from semmem.model.errors import Conflict, InvalidInput, NotFound
from semmem.model.store import Keep
from semmem.model.types import Filters
from tests.stores.expiry import let_expire, texts, written_then


def test_what_another_process_restored_changed_and_forgot_meanwhile_comes_back_in_no_earlier_version(
    mem: Semmem, monkeypatch: pytest.MonkeyPatch
) -> None:
    mem.remember("A heron stands.", id="h")
    mem.forget("h")
    life = type(mem.store.life)
    read = life.forgotten

    def overtaken(self: Any, namespace: str, id: str) -> Any:
        found = read(self, namespace, id)
        monkeypatch.setattr(life, "forgotten", read)
        mem.restore_memory("h")
        mem.update("h", text="A heron flies.")
        mem.forget("h")
        return found

    monkeypatch.setattr(life, "forgotten", overtaken)
    with pytest.raises(Conflict, match="look at its history"):
        mem.restore_memory("h")
    back = mem.restore_memory("h")
    assert (back.version, back.text) == (2, "A heron flies.")


def test_what_one_call_forgets_was_forgotten_at_one_time_and_is_listed_by_id(mem: Semmem) -> None:
    ids = ["m3", "m1", "m2", "m0", "B", "a"]
    mem.remember_many([{"id": id, "text": f"Note {id}.", "session": "s"} for id in ids])
    assert mem.forget(filters={"sessions": "s"}) == len(ids)
    gone = mem.forgotten()
    assert len({one.forgotten_at for one in gone}) == 1
    assert [one.memory.id for one in gone] == sorted(ids)


def test_what_was_forgotten_is_found_nowhere_and_comes_back_as_it_was(mem: Semmem) -> None:
    mem.remember("The heron of Ada Lovelace stands in the reeds.", id="h", title="Heron", tags=["b"], session="s")
    memory = mem.update("h", importance=0.8, changed_by="ada")
    mem.remember("An owl sleeps.", id="o")
    question = "where does the heron of Ada Lovelace stand?"
    before = [(hit.id, hit.score, hit.components) for hit in mem.recall(question)]
    assert mem.forget("h", forgotten_by="clerk") == 1
    assert "h" not in [hit.id for hit in mem.recall(question)]
    assert [one.id for one in mem.list()] == ["o"]
    with pytest.raises(NotFound):
        mem.get("h")
    kept = mem.history("h")
    assert [(one.version, one.changed_by, one.forgotten_by) for one in kept] == [(1, None, None), (2, "ada", "clerk")]
    assert all(isinstance(one.forgotten_at, datetime) for one in kept)
    back = mem.restore_memory("h")
    assert back == memory
    assert mem.get("h") == back
    assert [(hit.id, hit.score, hit.components) for hit in mem.recall(question)] == before
    assert [(one.version, one.forgotten_at) for one in mem.history("h")] == [(1, None), (2, None)]
    given = {"title": "Heron", "tags": ["b"], "session": "s", "importance": 0.8}
    assert mem.remember(memory.text, id="h", **given).version == 2  # the same again
    with pytest.raises(Conflict, match="There is a memory 'h' in namespace 'default': it is not forgotten; nothing"):
        mem.restore_memory("h")


def test_the_forgotten_memories_that_can_come_back_are_listed_the_latest_first(mem: Semmem) -> None:
    for id in ("a", "b", "c", "d", "e"):
        mem.remember(f"The text of {id}.", id=id, namespace="log")
    mem.update("b", text="The later text of b.", namespace="log")
    mem.remember("Another namespace.", id="a", namespace="other")
    for id, by in (("a", None), ("b", "clerk"), ("c", None), ("d", None)):
        mem.forget(id, namespace="log", forgotten_by=by)
    mem.remember("Remembered anew.", id="c", namespace="log")
    mem.forget("d", namespace="log", hard=True)
    gone = mem.forgotten(namespace="log")
    assert [(one.memory.id, one.version, one.memory.text, one.forgotten_by) for one in gone] == [
        ("b", 2, "The later text of b.", "clerk"),
        ("a", 1, "The text of a.", None),
    ]
    assert all(isinstance(one.forgotten_at, datetime) for one in gone)
    assert [one.memory.id for one in mem.forgotten(namespace="log", limit=1)] == ["b"]
    mem.restore_memory("b", namespace="log")
    mem.update("b", text="The last text of b.", namespace="log")
    mem.forget("b", namespace="log")
    assert [(one.memory.id, one.version) for one in mem.forgotten(namespace="log")] == [("b", 3), ("a", 1)]
    assert mem.forgotten(namespace="other") == []
    with pytest.raises(InvalidInput, match="limit must be from 1 to 10000"):
        mem.forgotten(limit=0)


def test_the_text_of_a_forgotten_sensitive_memory_is_not_shown(mem: Semmem) -> None:
    mem.remember("The code of the door is 4711.", id="code", sensitive=True)
    mem.forget("code")
    (gone,) = mem.forgotten()
    assert (gone.memory.id, "4711" in gone.memory.text) == ("code", False)


def test_the_history_of_what_was_forgotten_says_who_changed_and_who_forgot_it(mem: Semmem) -> None:
    mem.remember("The first life.", id="a")
    mem.update("a", text="The first life, changed.", changed_by="Bo")
    mem.forget("a", forgotten_by="Ada")
    mem.remember("The second life.", id="a")
    mem.forget("a", forgotten_by="Cy")
    said = [(one.version, one.changed, one.changed_by, one.forgotten_by) for one in mem.history("a")]
    assert said == [(1, (), None, None), (2, ("text",), "Bo", "Ada"), (3, (), None, "Cy")]


def test_a_vector_that_was_given_comes_back(store_url: str) -> None:
    with semmem.connect(store_url, embedder="none") as mem:
        for name, vector in (("a", [1.0, 0.0]), ("b", [0.0, 1.0])):
            mem.remember(f"Text {name}.", id=name, vector=vector)
        before = [row["vector"] for row in mem.export(vectors=True)]
        mem.forget("a")
        mem.restore_memory("a")
        assert [row["vector"] for row in mem.export(vectors=True)] == before
        assert [hit.id for hit in mem.recall("nothing of it", vector=[1.0, 0.0], limit=1)] == ["a"]


def test_an_id_that_is_used_anew_counts_on_and_keeps_both_lives(mem: Semmem) -> None:
    mem.remember("The first life.", id="a")
    mem.update("a", text="The first life, changed.")
    mem.forget("a")
    assert mem.remember("The second life.", id="a").version == 3
    with pytest.raises(Conflict, match="it has been remembered anew since it was forgotten; nothing was changed"):
        mem.restore_memory("a")
    assert mem.update("a", text="The second life, changed.").version == 4
    found = mem.history("a")
    assert [one.memory.text for one in found] == [
        "The first life.", "The first life, changed.", "The second life.", "The second life, changed.",
    ]  # fmt: skip
    assert [one.forgotten_at is None for one in found] == [False, False, True, True]
    assert [one.changed for one in found] == [(), ("text",), (), ("text",)]
    mem.forget("a")
    assert mem.restore_memory("a").text == "The second life, changed."
    assert [one.forgotten_at is None for one in mem.history("a")] == [False, False, True, True]
    assert mem.forget("a", hard=True) == 1
    with pytest.raises(NotFound):
        mem.history("a")


def test_a_dry_run_counts_what_a_hard_forget_by_filter_takes_of_earlier_lives(mem: Semmem) -> None:
    for session in ("s", "t"):
        mem.remember("The key is red.", id="a", session=session)
        mem.remember("The key is blue.", id="b", session="s")
        if session == "s":
            mem.forget("a")
    asked = {"filters": {"sessions": "s"}, "hard": True}
    assert mem.forget(**asked, dry_run=True) == 2  # b, and the life of a that was in the session s
    assert mem.forget(**asked) == 2
    assert [one.id for one in mem.list()] == ["a"]


def test_hard_keeps_nothing_and_takes_what_was_forgotten_before(mem: Semmem) -> None:
    for name in ("a", "b", "c"):
        mem.remember(f"Text {name}.", id=name, session="s")
        mem.update(name, text=f"Text {name} again.")
    mem.forget("a")
    assert mem.forget("a", hard=True, dry_run=True) == 1
    assert texts(mem, "a") == ["Text a.", "Text a again."]
    assert mem.forget("a", hard=True) == 1
    with pytest.raises(NotFound, match="There is no forgotten memory 'a' in namespace 'default': there was none, or"):
        mem.restore_memory("a")
    with pytest.raises(NotFound):
        mem.forget("a", hard=True)
    mem.forget("b")
    assert mem.forget(filters={"sessions": "s"}, hard=True, dry_run=True) == 2
    assert mem.forget(filters={"sessions": "s"}, hard=True) == 2  # one that was forgotten, one that was not
    assert mem.forget(filters={"sessions": "s"}, dry_run=True) == 0
    for name in ("b", "c"):
        with pytest.raises(NotFound):
            mem.history(name)


def test_a_filter_forgets_softly_and_a_whole_namespace_for_good(mem: Semmem) -> None:
    for name in ("a", "b"):
        mem.remember(f"Text {name}.", id=name, session="s")
    assert mem.forget(filters={"sessions": "s"}) == 2
    assert [mem.restore_memory(name).id for name in ("a", "b")] == ["a", "b"]
    mem.forget("a")
    assert mem.forget(everything=True, dry_run=True) == 1
    assert mem.forget(everything=True) == 1
    for name in ("a", "b"):
        with pytest.raises(NotFound, match="There is no forgotten memory"):
            mem.restore_memory(name)


def test_maintain_sweeps_what_nobody_took_back_in_time(mem: Semmem) -> None:
    for name in ("a", "b"):
        mem.remember(f"Text {name}.", id=name)
        mem.update(name, text=f"Text {name} again.")
    mem.forget("a")
    assert "forgotten" not in mem.maintain()
    assert texts(mem, "a") == ["Text a.", "Text a again."]
    assert mem.store.maintain(Keep(forgotten_days=-1))["forgotten"] == 2
    with pytest.raises(NotFound):
        mem.history("a")
    assert texts(mem, "b") == ["Text b.", "Text b again."]  # versions of what is there are no forgotten ones


def test_a_sweep_leaves_what_was_forgotten_again_later(mem: Semmem) -> None:
    mem.remember("Her first life.", id="a")
    mem.remember("A friend.", id="b")
    mem.link("b", "see-also", "a")
    mem.forget("a")
    if mem.store.kind == "SQLite":
        mem.store._run(lambda c: c.execute("UPDATE history SET forgotten_at = 1"))  # type: ignore[attr-defined]
    else:
        mem.store.run(lambda c: c.execute("UPDATE history SET forgotten_at = '2020-01-01'"))  # type: ignore[attr-defined]
    mem.remember("Her second life.", id="a")
    mem.forget("a")
    assert mem.maintain()["forgotten"] == 1
    assert texts(mem, "a") == ["Her second life."]
    assert mem.restore_memory("a").text == "Her second life."
    assert [one.key for one in mem.links("b")] == [("b", "see-also", "a")]


def test_what_was_taken_back_stays_as_long_as_what_was_changed_then(mem: Semmem) -> None:
    for name in ("a", "b"):
        mem.remember("Long ago.", id=name, created_at="2020-01-01")
    written_then(mem.store, "a", "b")
    mem.namespace_limits("default", keep_days=30)
    mem.forget("a")
    mem.restore_memory("a")
    assert mem.maintain()["kept"] == 1
    assert [one.id for one in mem.list()] == ["a"]
    assert mem.get("a").updated_at == datetime(2020, 1, 1, tzinfo=UTC)


def test_a_hard_forget_by_filter_goes_by_what_a_memory_was_when_it_was_forgotten(mem: Semmem) -> None:
    mem.remember("The first life.", id="a", tags=["draft"])
    mem.remember("Another draft.", id="b", tags=["draft"])
    mem.update("a", tags=["final"])
    mem.forget("a")
    asked = {"filters": {"tags": ["draft"]}, "hard": True}
    assert mem.forget(**asked, dry_run=True) == mem.forget(**asked) == 1
    assert mem.restore_memory("a").tags == ("final",)
    assert texts(mem, "a") == ["The first life.", "The first life."]
    mem.forget("a")
    mem.remember("The second life.", id="a", tags=["draft"])
    mem.update("a", text="The second life, changed.")
    assert mem.forget(**asked, dry_run=True) == mem.forget(**asked) == 1
    assert texts(mem, "a") == ["The first life.", "The first life."]
    mem.remember("The third life.", id="a", tags=["third"])
    assert mem.forget(filters={"tags": ["final"]}, hard=True) == 1
    assert texts(mem, "a") == ["The third life."]
    mem.forget("a", hard=True)
    with pytest.raises(NotFound):
        mem.history("a")


@pytest.mark.parametrize("why", ["expired", "kept"])
def test_a_sweep_leaves_an_earlier_life_that_may_still_be_taken_back(mem: Semmem, why: str) -> None:
    mem.remember("A friend.", id="b")
    mem.remember("The first life.", id="a")
    mem.link("b", "see-also", "a")
    mem.forget("a")
    mem.remember("The second life.", id="a", created_at="2020-01-01")
    mem.update("a", text="The second life, changed.")
    if why == "expired":
        let_expire(mem, "a")
    else:
        mem.namespace_limits("default", keep_days=30)
        table = "memory" if mem.store.kind == "SQLite" else "semmem.memory"
        old = "1" if mem.store.kind == "SQLite" else "'2020-01-01'"
        written_then(mem.store, "a")
        run = mem.store._run if mem.store.kind == "SQLite" else mem.store.run  # type: ignore[attr-defined]
        run(lambda c: c.execute(f"UPDATE {table} SET updated_at = {old} WHERE id = 'a'"))
    assert mem.maintain()[why] == 1
    assert texts(mem, "a") == ["The first life."]
    assert mem.restore_memory("a").text == "The first life."
    assert [one.key for one in mem.links("a")] == [("b", "see-also", "a")]


def test_what_an_import_prunes_may_be_taken_back(mem: Semmem) -> None:
    items = [{"id": name, "text": f"Note {name}.", "source": "notes", "author": "Ada"} for name in "ab"]
    mem.import_items(items)
    done = mem.import_items(items[:1], owned={"authors": "Ada"}, prune=True)
    assert (done.pruned, [one.id for one in mem.list()]) == (1, ["a"])
    assert mem.restore_memory("b").text == "Note b."


def test_where_nothing_is_to_be_kept_forget_forgets_at_once(tmp_path: Path) -> None:
    with semmem.connect(f"sqlite://{tmp_path / 'notes.db'}", embedder="none", keep_forgotten_days=0) as mem:
        mem.remember("Text.", id="a")
        mem.update("a", text="Text again.")
        assert mem.forget("a") == 1
        with pytest.raises(NotFound):
            mem.history("a")


def test_a_store_forgets_for_good_unless_it_is_asked_to_keep(mem: Semmem) -> None:
    mem.remember("Text.", id="a", namespace="n")
    assert mem.store.forget("n", "a", Filters(), dry_run=False) == 1
    with pytest.raises(NotFound):
        mem.history("a", namespace="n")


@pytest.mark.nodes
def test_all_versions_of_a_memory_are_forgotten_at_one_time_and_come_back_together(store_url: str) -> None:
    with semmem.connect(store_url, embedder="none") as mem:
        mem.remember("The key hangs behind the radio.", id="key")
        for version in range(2, 5):
            mem.update("key", text=f"The key hangs behind the radio, said for the {version}th time.")
        mem.forget("key")
        times = {one.forgotten_at for one in mem.history("key")}
        assert len(times) == 1
        assert None not in times
        mem.restore_memory("key")
        assert [(one.version, one.forgotten_at) for one in mem.history("key")] == [(n, None) for n in range(1, 5)]
