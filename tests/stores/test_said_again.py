"""What repeats, contradicts, comes back, ends or expires: the same in each store, one by one and many at once."""

from __future__ import annotations

from typing import Any

import pytest

import semmem
from semmem.client.memory import Semmem
from semmem.model.errors import NotFound
from semmem.model.store import life_of
from semmem.stores.postgres import forget
from semmem.write.comparison import OnContradiction
from tests.stores.audit import check
from tests.stores.expiry import let_expire, written_then

OF_SOURCE: dict[str, Any] = {"owned": {"metadata": {"from": "s"}}, "replace": True, "mark": {"from": "s"}}
PORT_1, PORT_2 = "The port is 1.", "The port is now 2."


def said(mem: Semmem) -> list[str]:
    return sorted(memory.text for memory in mem.list())


@pytest.mark.parametrize("more", [0, 30])  # PostgreSQL writes a batch of many in another way
@pytest.mark.parametrize("named", [0, 1])
def test_an_item_without_an_id_repeats_one_with_it_of_the_same_batch_whatever_their_order(
    mem: Semmem, more: int, named: int
) -> None:
    same: list[dict[str, Any]] = [{"text": "Bob is 22 years old."}, {"text": "Bob is 22 years old."}]
    same[named]["id"] = "bob"
    others = [{"text": f"The town {place} has a harbour.", "id": f"t{place}"} for place in range(more)]
    report = mem.remember_many([*same, *others])
    assert (report.remembered, report.unchanged) == (1 + more, 1)
    assert mem.get("bob").seen_count == 2
    assert mem.remember_many([{"text": "Bob is 22 years old."}, *others]).unchanged == 1 + more
    check(mem)


@pytest.mark.nodes
def test_a_batch_may_repeat_a_memory_and_bring_back_the_one_that_contradicts_it(mem: Semmem) -> None:
    mem.remember(PORT_1, id="one")
    mem.remember(PORT_2, id="two")
    mem.forget("two")
    report = mem.remember_many([{"text": PORT_1}, {"text": PORT_2, "id": "two"}])
    assert report.remembered + report.unchanged == 2
    assert PORT_2 in said(mem)
    check(mem)


def test_a_memory_that_is_brought_back_was_seen_as_often_as_before_and_last_when_it_came_back(mem: Semmem) -> None:
    id = mem.remember(PORT_1).id
    assert [mem.remember(PORT_1).id, mem.remember(PORT_1).id] == [id, id]
    said_last = mem.get(id).last_seen
    mem.forget(id)
    back = mem.restore_memory(id)
    assert said_last is not None
    assert back.last_seen is not None
    assert (back.seen_count, back.last_seen > said_last) == (3, True)


def test_an_import_may_repeat_a_memory_and_change_the_tags_of_the_one_that_contradicts_it(mem: Semmem) -> None:
    mem.import_items([{"text": PORT_1}, {"text": PORT_2, "id": "two"}], **OF_SOURCE)
    report = mem.import_items([{"text": PORT_1}, {"text": PORT_2, "id": "two", "tags": ["t"]}], **OF_SOURCE)
    assert report.rejected == ()
    assert mem.get("two").tags == ("t",)
    check(mem)


def test_a_batch_may_say_without_an_id_what_it_takes_from_a_memory_with_one(mem: Semmem) -> None:
    mem.import_items([{"id": "tea", "text": "Tea at four."}], **OF_SOURCE)
    report = mem.import_items([{"text": "Tea at four."}, {"id": "tea", "text": "Tea at five."}], **OF_SOURCE)
    assert (report.remembered, report.replaced) == (1, 1)
    assert said(mem) == ["Tea at five.", "Tea at four."]
    check(mem)


@pytest.mark.parametrize("prune", [False, True])
def test_what_a_source_still_says_without_an_id_is_not_gone_from_it(mem: Semmem, prune: bool) -> None:
    items = [{"text": "The only copy.", "tags": ["own"]}]
    for _ in range(3):
        report = mem.import_items(items, owned={"tags": ["own"]}, prune=prune)
        assert (report.gone, report.pruned) == ((), 0)
    assert said(mem) == ["The only copy."]
    assert mem.import_items([{"text": "Another.", "tags": ["own"]}], owned={"tags": ["own"]}, prune=prune).gone != ()


def test_what_an_import_says_anew_belongs_to_its_source(mem: Semmem) -> None:
    mem.import_items([{"text": PORT_1}], **OF_SOURCE)
    mem.import_items([{"text": PORT_2}, {"text": PORT_1}], **OF_SOURCE)
    assert said(mem) == [PORT_1, PORT_1, PORT_2]
    assert [(one.metadata, one.source_type) for one in mem.list()] == [({"from": "s"}, "imported")] * 3


def test_two_items_of_one_text_are_one_memory_and_each_of_them_counts(mem: Semmem) -> None:
    items = [{"text": "Tea."}, {"text": "Tea."}]
    first, again = mem.import_items(items), mem.import_items(items)
    assert (first.remembered, first.unchanged, again.remembered, again.unchanged) == (1, 1, 0, 2)
    assert [one.seen_count for one in mem.list()] == [4]


@pytest.mark.nodes
def test_an_id_used_anew_has_none_of_the_links_that_semmem_made_for_its_forgotten_text(mem: Semmem) -> None:
    mem.remember(PORT_1, id="one")
    mem.remember("See the harbour.", id="see")
    mem.remember(PORT_2, id="two")
    mem.link("two", "see-also", "see")
    assert {(link.type, link.to_id) for link in mem.links("two")} == {("contradicts", "one"), ("see-also", "see")}
    mem.forget("two")
    mem.remember("Tea is at four.", id="two")
    assert {(link.type, link.to_id) for link in mem.links("two")} == {("see-also", "see")}  # which somebody made
    mem.forget("two")
    mem.remember(PORT_2, id="two")  # it is compared anew
    assert ("contradicts", "one") in {(link.type, link.to_id) for link in mem.links("two")}
    check(mem)


def test_two_who_remember_the_same_under_one_id_at_once_both_get_the_memory(url: str) -> None:
    with semmem.connect(url, embedder="hashing") as one, semmem.connect(url, embedder="hashing") as other:
        write: Any = one.store.write

        def overtaken(rows: Any, **how: Any) -> Any:
            one.store.write = write  # type: ignore[method-assign]
            other.remember("Tea at four.", id="tea")
            return write(rows, **how)

        one.store.write = overtaken  # type: ignore[method-assign]
        assert one.remember("Tea at four.", id="tea").id == "tea"


def test_a_change_of_what_a_memory_does_not_say_keeps_how_often_it_was_said(mem: Semmem) -> None:
    id = mem.remember("Tea at four.").id
    mem.remember("Tea at four.")
    last_seen = mem.get(id).last_seen
    pinned = mem.update(id, pinned=True)
    assert (pinned.seen_count, pinned.last_seen) == (2, last_seen)
    assert last_seen is not None
    assert mem.update(id, text="Tea at five.").seen_count == 1
    check(mem)


@pytest.mark.nodes
def test_no_verb_tells_of_a_memory_that_has_expired(mem: Semmem) -> None:
    mem.remember(PORT_1, id="one")
    mem.update("one", text="The port is one.")
    mem.remember(PORT_2, id="two")
    mem.link("two", "see-also", "one")
    let_expire(mem, "one")
    assert [*mem.links("two"), *mem.contradictions()] == []
    assert [node for node, data in mem.graph().nodes(data=True) if data["kind"] == "memory"] == ["m:two"]
    for look in (mem.get, mem.links, mem.history, lambda id: mem.graph(around=id)):
        with pytest.raises(NotFound):
            look("one")


def test_an_earlier_life_of_an_id_whose_later_one_has_expired_is_told(mem: Semmem) -> None:
    mem.remember("Tea.", id="a")
    mem.forget("a")
    mem.remember("Rum.", id="a")
    let_expire(mem, "a")
    assert [version.memory.text for version in mem.history("a")] == ["Tea."]


@pytest.mark.parametrize(("out", "back", "followed"), [(30, 0, 20), (0, 30, 20), (30, 5, 25), (30, 30, 40)])
def test_so_many_links_are_followed_in_each_direction_in_each_store(
    mem: Semmem, out: int, back: int, followed: int
) -> None:
    mem.remember_many([{"id": "hub", "text": "The hub."}, *({"id": f"o{n}", "text": f"Leaf {n}."} for n in range(30))])
    mem.remember_many([{"id": f"b{n}", "text": f"Root {n}."} for n in range(30)])
    for n in range(out):
        mem.link("hub", "see-also", f"o{n}")
    for n in range(back):
        mem.link(f"b{n}", "see-also", "hub")
    hub = list(mem.store.row_ids_of("default", "hub"))
    assert len(life_of(mem.store).linked("default", hub)) == followed


@pytest.mark.nodes
def test_sensitive_memories_are_kept_no_longer_than_a_namespace_keeps_any(mem: Semmem) -> None:
    mem.namespace_limits("default", keep_days=1)
    mem.remember("The code is 4711.", id="code", sensitive=True, created_at="2020-01-01")
    written_then(mem.store, "code")
    mem.maintain()
    assert said(mem) == []


def test_a_forget_in_several_steps_leaves_the_history_of_an_id_as_one_step_would(
    mem: Semmem, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forget, "FORGET_AT_ONCE", 1)
    mem.remember("One.", id="z")
    mem.forget("z")
    mem.remember("Two.", id="z", session="s")
    mem.update("z", text="Three.")
    mem.remember("A.", id="a", session="s")
    mem.forget(filters={"sessions": "s"})
    mem.restore_memory("z")
    assert [version.forgotten_at is None for version in mem.history("z")] == [False, True, True]


@pytest.mark.nodes
def test_a_memory_that_is_brought_back_was_seen_as_often_as_before(mem: Semmem) -> None:
    for _ in range(3):
        id = mem.remember("The ferry leaves at nine.").id
    assert mem.forget(id) == 1
    assert mem.restore_memory(id).seen_count == 3
    assert mem.get(id).seen_count == 3


def test_a_memory_that_is_taken_out_of_its_source_during_an_import_is_not_pruned(
    mem: Semmem, monkeypatch: pytest.MonkeyPatch
) -> None:
    owned = [semmem.Filters(tags=["folder"])]
    items = [{"id": id, "text": f"Ferry {id} left.", "tags": ["folder"]} for id in "abc"]
    mem.import_items(items, owned=owned)
    forget_in = type(mem.store).forget

    def meanwhile(self: Any, *given: Any, **named: Any) -> int:
        monkeypatch.undo()
        mem.update("b", tags=["mine"])
        return forget_in(self, *given, **named)

    monkeypatch.setattr(type(mem.store), "forget", meanwhile)
    report = mem.import_items(items[:1], owned=owned, prune=True)
    assert (report.gone, report.pruned) == (("b", "c"), 1)
    assert sorted(memory.id for memory in mem.list()) == ["a", "b"]


@pytest.mark.parametrize("many", [False, True])
def test_what_repeats_a_text_that_is_changed_meanwhile_is_stored(
    mem: Semmem, many: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    mem.remember("The ferry left at nine.", id="a")
    life = life_of(mem.store)
    corroborate = type(life).corroborate

    def meanwhile(self: Any, *given: Any, **named: Any) -> Any:
        monkeypatch.undo()
        mem.update("a", text="Bread is baked on Sundays.")
        return corroborate(self, *given, **named)

    monkeypatch.setattr(type(life), "corroborate", meanwhile)
    if many:
        report = mem.remember_many([{"text": "The ferry left at nine."}, {"text": "Cows eat grass."}])
        assert (report.remembered, report.unchanged) == (2, 0)
    else:
        assert mem.remember("The ferry left at nine.").text == "The ferry left at nine."
    assert {"The ferry left at nine.", "Bread is baked on Sundays."} <= set(said(mem))
    assert mem.get("a").seen_count == 1
    check(mem)


@pytest.mark.nodes
@pytest.mark.parametrize("policy", ["report", "supersede"])
def test_a_memory_whose_text_is_changed_while_it_is_compared_has_no_links_of_the_former_text(
    url: str, policy: OnContradiction, monkeypatch: pytest.MonkeyPatch
) -> None:
    with semmem.connect(url, embedder="hashing", on_contradiction=policy) as mem:
        mem.remember("The port is 5432.", id="old")
        life = life_of(mem.store)
        compared = type(life).compared

        def meanwhile(self: Any, *given: Any) -> Any:
            monkeypatch.undo()
            mem.update("new", text="Cats like warm milk.")
            mem.update("old", importance=0.75)  # which says the same
            return compared(self, *given)

        monkeypatch.setattr(type(life), "compared", meanwhile)
        mem.remember("The port is 6543.", id="new")
        assert list(mem.links("old")) == []
        mem.remember("The port is 7654.", id="newest")
        assert {(one.from_id, one.to_id) for one in mem.links("old")} == {("newest", "old")}
        check(mem)
