"""What is said again is counted, what is nearly the same or changed is linked, when it is written, in both stores."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import semmem
from semmem.model.errors import InvalidInput, StoreError
from semmem.model.history import MADE_BY
from tests.write.link_keys import links

LONG = "The deploy of the planner runs every Tuesday at nine from the main branch and takes four minutes in all."


@pytest.fixture(scope="module", params=["postgres", "sqlite"])
def open_mem(
    request: pytest.FixtureRequest, module_store: Callable[[], str], tmp_path_factory: pytest.TempPathFactory
) -> Callable[..., semmem.Semmem]:
    """A way to open one store of either kind; each test takes a namespace of its own."""
    file: Path = tmp_path_factory.mktemp("likeness") / "notes.db"
    url = module_store() if request.param == "postgres" else f"sqlite:{file}"
    return lambda **settings: semmem.connect(url, embedder="none", pool_size=4, **settings)


@pytest.fixture(scope="module")
def mem(open_mem: Callable[..., semmem.Semmem]) -> Iterator[semmem.Semmem]:
    with open_mem() as mem:
        yield mem


# ---------------------------------------------------------------------- said again


def test_the_same_again_counts_and_returns_the_first(mem: semmem.Semmem, space: str) -> None:
    said = {"author": "ana", "session": "s1", "namespace": space}
    first = mem.remember("Lunch is at noon.", **said)
    assert (first.seen_count, first.last_seen) == (1, None)
    again = mem.remember("Lunch is at noon.", **said)
    assert (again.id, again.seen_count) == (first.id, 2)
    assert again.last_seen is not None
    assert (again.version, again.updated_at, again.created_at) == (1, first.updated_at, first.created_at)
    assert mem.get(first.id, namespace=space) == again
    assert mem.stats(namespace=space).memories == 1


def test_of_two_memories_of_one_text_the_first_counts_what_is_said_again(mem: semmem.Semmem, space: str) -> None:
    first = mem.remember("Lunch is at noon.", namespace=space)
    mem.remember("Lunch is whenever you like.", id="no", namespace=space)
    mem.link("no", "contradicts", first.id, namespace=space)
    second = mem.remember("Lunch is at noon.", namespace=space)
    assert (second.id != first.id, second.seen_count) == (True, 1)
    assert mem.remember("Lunch is at noon.", namespace=space).id == second.id
    mem.unlink("no", "contradicts", first.id, namespace=space)
    again = mem.remember("Lunch is at noon.", namespace=space)
    assert (again.id, again.seen_count) == (first.id, 2)


@pytest.mark.parametrize(
    "other",
    [
        {"id": "x"}, {"position": 3}, {"created_at": "2026-01-01"}, {"author": "bram"}, {"session": "s2"},
        {"title": "Lunch"}, {"tags": ["food"]}, {"importance": 0.9}, {"metadata": {"from": "chat"}}, {"source": "a.md"},
    ],
    ids=lambda other: next(iter(other)),
)  # fmt: skip
def test_what_differs_in_anything_that_was_given_is_another_memory(
    mem: semmem.Semmem, space: str, other: dict[str, Any]
) -> None:
    said = {"author": "ana", "session": "s1", "namespace": space}
    first = mem.remember("Lunch is at noon.", **said)
    second = mem.remember("Lunch is at noon.", **(said | other))
    assert first.id != second.id
    assert mem.get(first.id, namespace=space).seen_count == 1


def test_turns_of_a_conversation_are_never_merged(mem: semmem.Semmem, space: str) -> None:
    turns = [{"role": "user", "content": "Yes."}, {"role": "assistant", "content": "Sure?"}]
    turns.append({"role": "user", "content": "Yes."})
    assert mem.remember_messages(turns, session="s1", namespace=space).remembered == 3
    assert mem.remember_messages(turns, session="s1", namespace=space).remembered == 3
    assert all(one.seen_count == 1 for one in mem.list(namespace=space))


def test_a_batch_counts_what_it_says_twice_and_what_was_there(mem: semmem.Semmem, space: str) -> None:
    first = mem.remember("Lunch is at noon.", namespace=space)
    given = ["Lunch is at noon.", "Tea is at four.", "Tea is at four.", "Tea is at four.", "Lunch is at noon."]
    report = mem.remember_many([{"text": text} for text in given], namespace=space)
    assert (report.remembered, report.unchanged, report.corroborated, report.read) == (1, 4, 4, 5)
    counts = {one.text: one.seen_count for one in mem.list(namespace=space)}
    assert counts == {"Lunch is at noon.": 3, "Tea is at four.": 3}
    assert mem.get(first.id, namespace=space).seen_count == 3


def test_a_batch_too_large_for_one_pipeline_counts_too(mem: semmem.Semmem, space: str) -> None:
    texts = [f"Note number {n} is about the harbour." for n in range(40)]
    assert mem.remember_many([{"text": text} for text in texts], namespace=space).remembered == 40
    report = mem.remember_many([{"text": text} for text in (*texts, "One more.")], namespace=space)
    assert (report.remembered, report.corroborated) == (1, 40)
    assert {one.seen_count for one in mem.list(namespace=space) if one.text != "One more."} == {2}


def test_of_many_who_say_the_same_at_once_one_is_first(mem: semmem.Semmem, space: str) -> None:
    with ThreadPoolExecutor(8) as pool:
        single = [pool.submit(mem.remember, "Lunch is at noon.", namespace=space) for _ in range(8)]
        batch = [{"text": "Lunch is at noon."}, *({"text": f"{n} boats.", "id": f"b{n}"} for n in range(20))]
        many = [pool.submit(mem.remember_many, batch, namespace=space) for _ in range(2)]
        ids = {one.result().id for one in single}
        reports = [one.result() for one in many]
    assert len(ids) == 1
    assert sum(report.remembered for report in reports) in (20, 21)
    (lunch,) = (one for one in mem.list(namespace=space) if one.text == "Lunch is at noon.")
    assert (lunch.id in ids, lunch.seen_count) == (True, 10)


def test_what_was_forgotten_is_remembered_anew(mem: semmem.Semmem, space: str) -> None:
    first = mem.remember("Lunch is at noon.", namespace=space)
    mem.remember("Lunch is at noon.", namespace=space)
    mem.forget(first.id, namespace=space)
    assert mem.remember("Lunch is at noon.", namespace=space).seen_count == 1


def test_what_stays_is_never_counted_at_what_will_vanish(mem: semmem.Semmem, space: str) -> None:
    brief = mem.remember("Lunch is at noon.", namespace=space, ttl="1h")
    lasting = mem.remember("Lunch is at noon.", namespace=space)
    assert (lasting.id == brief.id, lasting.expires_at, lasting.seen_count) == (False, None, 1)
    once_more = mem.remember("Lunch is at noon.", namespace=space, ttl="1h")
    assert once_more.id not in (brief.id, lasting.id)
    assert once_more.expires_at is not None
    said = {"text": "Lunch is at noon.", "namespace": space}
    report = mem.remember_many([{**said, "ttl": "1h"}, said])
    assert (report.remembered, report.corroborated) == (1, 1)
    assert mem.get(lasting.id, namespace=space).seen_count == 2


# ---------------------------------------------------------------------- nearly the same, and changed


def test_a_change_is_linked_to_what_it_contradicts_at_once(mem: semmem.Semmem, space: str) -> None:
    old = mem.remember("Ana lives in Lisbon.", namespace=space)
    other = mem.remember("Bram lives in Lisbon.", namespace=space)
    new = mem.remember("Ana moved to Porto.", namespace=space)
    assert (old.contradicts, other.contradicts, new.contradicts) == ((), (), (old.id,))
    assert links(mem, new.id, space) == {(new.id, "contradicts", old.id)}
    assert mem.links(new.id, namespace=space)[0].made_by == MADE_BY
    assert links(mem, other.id, space) == set()
    assert mem.get(new.id, namespace=space).contradicts == ()


def test_i_is_who_says_it(mem: semmem.Semmem, space: str) -> None:
    old = mem.remember("I live in Lisbon.", author="Ana", namespace=space)
    mem.remember("I live in Ghent.", author="Bram", namespace=space)
    assert mem.remember("I moved to Porto.", author="Ana", namespace=space).contradicts == (old.id,)


def test_a_batch_links_within_itself_and_to_what_was_there(mem: semmem.Semmem, space: str) -> None:
    mem.remember("The port of the gateway is 5432.", id="old", namespace=space)
    texts = {"new": "The gateway's port is now 6543.", "a": "Tea costs 2 euros.", "b": "Tea costs 3 euros now."}
    fill = [{"text": f"The {n} is a boat.", "id": n} for n in ("Alma", "Bela", "Cora", "Dora", "Elsa", "Fila")] * 4
    for n, item in enumerate(fill):
        fill[n] = {**item, "id": f"{item['id']}{n}"}
    items = [{"text": text, "id": id} for id, text in texts.items()]
    report = mem.remember_many([*items, *fill], namespace=space)
    assert report.contradictions == 2
    assert links(mem, "new", space) == {("new", "contradicts", "old")}
    assert links(mem, "a", space) == {("b", "contradicts", "a")}


def test_a_batch_is_linked_in_the_order_in_which_it_is_given_whatever_its_ids(mem: semmem.Semmem, space: str) -> None:
    mem.remember("Anna lives in Köln since 2020.", id="4", namespace=space)
    texts = {
        "6": "Anna does not live in Bonn.",
        "5": "Anna lives in Köln since 2020.",
        "1": "Anna lives in Bonn since 2019.",
    }
    mem.remember_many([{"text": text, "id": id} for id, text in texts.items()], namespace=space)
    found = {key for id in texts for key in links(mem, id, space) if key[0] == id and key[1] == "contradicts"}
    assert found == {("1", "contradicts", "5"), ("1", "contradicts", "6"), ("6", "contradicts", "4")}


def test_the_newer_is_the_one_of_the_later_time_whenever_it_is_written(mem: semmem.Semmem, space: str) -> None:
    new = mem.remember("The gateway's port is now 6543.", created_at="2026-02-01", namespace=space)
    old = mem.remember("The port of the gateway is 5432.", created_at="2026-01-01", namespace=space)
    assert links(mem, old.id, space) == {(new.id, "contradicts", old.id)}
    assert old.contradicts == ()


def test_an_update_makes_the_links_of_its_text_anew_and_leaves_others(mem: semmem.Semmem, space: str) -> None:
    old = mem.remember("Ana lives in Lisbon.", namespace=space)
    new = mem.remember("Ana likes boats.", namespace=space)
    mem.link(new.id, "part-of", old.id, namespace=space)
    assert mem.update(new.id, text="Ana moved to Porto.", namespace=space).contradicts == (old.id,)
    assert links(mem, new.id, space) == {(new.id, "contradicts", old.id), (new.id, "part-of", old.id)}
    mem.update(new.id, text="Ana likes red boats.", namespace=space)
    assert links(mem, new.id, space) == {(new.id, "part-of", old.id)}


def test_compatible_statements_get_no_link(mem: semmem.Semmem, space: str) -> None:
    for text in ("Ana lives in Lisbon.", "Ana likes Porto.", "Bram moved to Porto.", "Ana has two boats."):
        assert mem.remember(text, namespace=space).contradicts == ()
    assert all(links(mem, one.id, space) == set() for one in mem.list(namespace=space))


def test_what_has_another_title_is_about_something_else(mem: semmem.Semmem, space: str) -> None:
    mem.remember("The port is 5432.", title="Gateway", namespace=space)
    assert mem.remember("The port is now 6543.", title="Planner", namespace=space).contradicts == ()
    assert len(mem.remember("The port is now 6543.", title="Gateway", namespace=space).contradicts) == 1


def test_near_duplicates_are_linked_and_what_shares_half_its_words_is_not(mem: semmem.Semmem, space: str) -> None:
    first = mem.remember(LONG, namespace=space)
    near = mem.remember(LONG.replace("in all", "altogether"), namespace=space)
    half = mem.remember(
        "The deploy of the planner runs every Tuesday, and Ana looks after it until it is done.", namespace=space
    )
    assert links(mem, first.id, space) == {(near.id, "see-also", first.id)}
    assert links(mem, half.id, space) == set()


@pytest.mark.parametrize("at_once", [True, False])
def test_of_a_value_that_changes_often_each_contradicts_the_one_before_it(
    mem: semmem.Semmem, space: str, at_once: bool
) -> None:
    ids = [f"n{n:02}" for n in range(1, 41)]
    items = [{"text": f"Ana has {n} boats.", "id": id} for n, id in enumerate(ids, 1)]
    if at_once:
        assert mem.remember_many(items, namespace=space).contradictions == 39
    else:
        for item in items:
            mem.remember(item["text"], id=item["id"], namespace=space)
    pairs = {link.key for id in ids for link in mem.links(id, namespace=space)}
    assert pairs == {(newer, "contradicts", older) for older, newer in pairwise(ids)}


def test_all_that_said_the_old_value_is_contradicted_and_what_was_already_is_not(
    mem: semmem.Semmem, space: str
) -> None:
    told = ["Ana lives in Lisbon.", "Ana's home is in Lisbon.", "Ana moved to Porto.", "Ana lives in Porto now."]
    first, second, third, fourth = (mem.remember(text, namespace=space) for text in told)
    assert (second.contradicts, set(third.contradicts)) == ((), {first.id, second.id})
    assert fourth.contradicts == ()
    fifth = mem.remember("Ana lives in Lisbon again.", namespace=space)
    assert set(fifth.contradicts) == {third.id, fourth.id}


def test_of_many_near_duplicates_each_is_linked_to_the_three_that_it_is_most_like(
    mem: semmem.Semmem, space: str
) -> None:
    ids = [f"n{n}" for n in range(8)]
    mem.remember_many(
        [{"text": f"{LONG} {word}", "id": id} for id, word in zip(ids, "abcdefgh", strict=True)], namespace=space
    )
    pairs = {link.key for id in ids for link in mem.links(id, namespace=space)}
    assert {type for _, type, _ in pairs} == {"see-also"}
    assert Counter(newer for newer, _, _ in pairs) == {"n1": 1, "n2": 2, "n3": 3, "n4": 3, "n5": 3, "n6": 3, "n7": 3}


def test_a_sensitive_memory_is_compared_with_nothing(mem: semmem.Semmem, space: str) -> None:
    mem.remember("The lamp in hall 4 is red.", sensitive=True, namespace=space)
    assert mem.remember("The lamp in hall 4 is now green.", namespace=space).contradicts == ()
    assert mem.remember("The lamp in hall 4 is now blue.", sensitive=True, namespace=space).contradicts == ()


def test_a_turn_of_a_conversation_is_compared_with_nothing(mem: semmem.Semmem, space: str) -> None:
    turn = {"session": "s1", "author": "Ana", "namespace": space}
    mem.remember("Ana lives in Lisbon.", position=1, **turn)
    assert mem.remember("Ana moved to Porto.", position=2, **turn).contradicts == ()
    note = mem.remember("Ana lives in Ghent now.", namespace=space)
    assert (note.contradicts, links(mem, note.id, space)) == ((), set())
    second = mem.remember("Ana moved to Delft.", session="s1", namespace=space)
    assert second.contradicts == (note.id,)
    report = mem.remember_messages(
        [{"role": "user", "content": "The port is 5432."}, {"role": "user", "content": "The port is now 6543."}],
        session="s2",
        namespace=space,
    )
    assert (report.remembered, report.contradictions) == (2, 0)


def test_a_note_that_becomes_a_turn_loses_its_links(mem: semmem.Semmem, space: str) -> None:
    mem.remember("Ana lives in Lisbon.", namespace=space)
    new = mem.remember("Ana moved to Porto.", namespace=space)
    mem.update(new.id, session="s1", position=1, namespace=space)
    assert links(mem, new.id, space) == set()


@pytest.mark.parametrize(
    ("policy", "types"), [("report", {"contradicts"}), ("supersede", {"contradicts", "supersedes"}), ("ignore", set())]
)
def test_a_policy_decides_what_is_linked(
    open_mem: Callable[..., semmem.Semmem], space: str, policy: Any, types: set[str]
) -> None:
    with open_mem(on_contradiction=policy) as mem:
        mem.remember("Ana lives in Lisbon.", id="old", namespace=space)
        new = mem.remember("Ana moved to Porto.", namespace=space)
        assert {type for _, type, _ in links(mem, new.id, space)} == types
        assert new.contradicts == (("old",) if types else ())
        if policy == "supersede":
            assert mem.recall("Where does Ana live?", namespace=space)[0].id == new.id


def test_a_policy_that_does_not_exist_is_refused_in_one_sentence(open_mem: Callable[..., semmem.Semmem]) -> None:
    with pytest.raises(InvalidInput, match=r"on_contradiction .*report"):
        open_mem(on_contradiction="quarrel")


def test_what_comes_back_is_linked_to_what_was_said_meanwhile(mem: semmem.Semmem, space: str) -> None:
    old = mem.remember("The port is 5432.", namespace=space)
    mem.forget(old.id, namespace=space)
    new = mem.remember("The port is now 6543.", namespace=space)
    assert links(mem, new.id, space) == set()
    mem.restore_memory(old.id, namespace=space)
    assert links(mem, new.id, space) == {(new.id, "contradicts", old.id)}


def test_what_cannot_be_linked_is_stored_and_told(
    mem: semmem.Semmem, space: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    mem.remember("Ana lives in Lisbon.", namespace=space)
    monkeypatch.setattr(type(mem.store.life), "compared", _fail)
    report = mem.remember_many([{"text": "Ana moved to Porto."}], namespace=space)
    assert (report.remembered, report.contradictions) == (1, 0)
    assert report.degraded["links"] == (
        "Stored, but not linked to what they contradict, which maintain makes up for: The store is away."
    )


def test_maintain_compares_what_was_not_and_does_nothing_twice(
    open_mem: Callable[..., semmem.Semmem], mem: semmem.Semmem, space: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    mem.maintain()
    with open_mem(on_contradiction="ignore") as other:
        other.remember("Ana lives in Lisbon.", id="old", namespace=space)
        other.remember("Yes.", session="s", position=1, namespace=space)
        other.remember("The lamp in hall 4 is red.", sensitive=True, namespace=space)
        assert "compared" not in other.maintain()
    mem.remember("Ana moved to Porto.", id="new", namespace=space)
    assert links(mem, "new", space) == set()
    with monkeypatch.context() as broken:
        broken.setattr(type(mem.store.life), "compared", _fail)
        report = mem.remember_many([{"text": "Ana moved to Ghent.", "id": "last"}], namespace=space)
        assert "maintain makes up for" in report.degraded["links"]
    assert mem.maintain()["compared"] == 2
    assert links(mem, "new", space) == {("new", "contradicts", "old"), ("last", "contradicts", "new")}
    assert links(mem, "last", space) == {("last", "contradicts", "new")}
    mem.unlink("new", "contradicts", "old", namespace=space)
    assert "compared" not in mem.maintain()
    assert links(mem, "new", space) == {("last", "contradicts", "new")}


@pytest.mark.parametrize("change", ["forget", "forget for good", "say something else"])
@pytest.mark.parametrize("by", ["its writer", "maintain"])
def test_what_a_memory_kept_apart_is_linked_where_it_goes_meanwhile(
    open_mem: Callable[..., semmem.Semmem],
    mem: semmem.Semmem,
    space: str,
    monkeypatch: pytest.MonkeyPatch,
    change: str,
    by: str,
) -> None:
    texts = {"old": "Ana lives in Lisbon.", "between": "Ana moved to Porto.", "new": "Ana moved to Ghent."}
    items = [{"id": id, "text": text} for id, text in texts.items()]
    compared = type(mem.store.life).compared
    mem.maintain()
    with open_mem(on_contradiction="ignore") as other, monkeypatch.context() as patch:

        def late(*given: Any) -> Any:
            patch.setattr(type(mem.store.life), "compared", compared)
            if change == "say something else":
                other.update("between", text="It rains.", namespace=space)
            else:
                other.forget("between", hard=change == "forget for good", namespace=space)
            return compared(*given)

        if by == "maintain":
            other.remember_many(items, namespace=space)
        patch.setattr(type(mem.store.life), "compared", late)
        if by == "maintain":
            mem.maintain()
        else:
            mem.remember_many(items, namespace=space)
    mem.maintain()
    assert links(mem, "new", space) == {("new", "contradicts", "old")}
    assert "compared" not in mem.maintain()


def _fail(*_: Any, **__: Any) -> None:
    raise StoreError("The store is away.")


def test_what_is_forgotten_is_compared_with_nothing_more(mem: semmem.Semmem, space: str) -> None:
    old = mem.remember("Ana lives in Lisbon.", namespace=space)
    mem.forget(old.id, namespace=space)
    assert mem.remember("Ana moved to Porto.", namespace=space).contradicts == ()
