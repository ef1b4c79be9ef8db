"""Namespaces in memory: every answer is that of a Semmem that keeps nothing, whatever others write meanwhile."""

from __future__ import annotations

import random
import threading
from contextlib import ExitStack
from typing import Any

import httpx
import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import semmem
from eval.path import Counter, installed
from semmem import Semmem
from semmem.client.asynchronous import AsyncSemmem
from semmem.model.types import Filters
from semmem.stores.resident import loading, saved
from semmem.stores.resident import store as store_module
from semmem.stores.resident.block import Rows
from semmem.stores.resident.memory import Models
from semmem.stores.resident.turns import Turns
from tests.serving import running
from tests.stores.resident.trio import PEOPLE, QUESTIONS, THINGS, Trio, answer, change, item, new_space, opened
from tests.waiting import until

STEPS = ("few", "few", "update", "forget", "take back", "link", "many", "sensitive", "maintain", "merge", "drop")


# no shrinking: each step is a write and four recalls
@pytest.mark.slow
@settings(
    max_examples=5, suppress_health_check=list(HealthCheck), deadline=None, phases=[Phase.explicit, Phase.generate]
)
@given(st.lists(st.tuples(st.sampled_from(STEPS), st.integers(0, 200)), min_size=2, max_size=7))
def test_what_is_in_memory_answers_as_the_database_does(trio: Trio, steps: list[tuple[str, int]]) -> None:
    space = new_space()
    change(trio.writer, space, ("many", 0))
    trio.warm(space)
    for at, step in enumerate(steps):
        change(trio.writer, space, step)
        expected = answer(trio.plain, QUESTIONS[at % 4], namespace=space)
        assert answer(trio.kept, QUESTIONS[at % 4], namespace=space) == expected, step  # brought up to date, or dropped
        trio.models._demands.clear()
        for _ in range(2):  # and loaded anew
            trio.kept.recall("anything", namespace=space)
        for _ in range(3):  # the last of them is ranked before the database is asked, and so is the one behind the step
            assert answer(trio.kept, QUESTIONS[at % 4], namespace=space) == expected, step


WORDS = sorted({word for one in (*PEOPLE, *THINGS, *QUESTIONS) for word in one.strip("?").split()})


@pytest.fixture(scope="module")
def unsigned(trio: Trio) -> str:
    """Fill a namespace whose memories have no author, so that no question is about one."""
    trio.writer.remember_many(
        [{**item(n, random.Random(n)), "author": None} for n in range(70)], namespace="unsigned", on_error="skip"
    )
    trio.warm("unsigned")
    return "unsigned"


@settings(max_examples=15, suppress_health_check=list(HealthCheck), deadline=None)
@given(
    st.sampled_from(["convex", "tm2c2", "scored"]),
    st.lists(st.sampled_from(WORDS), min_size=1, max_size=6, unique=True),
)
def test_a_score_made_of_cosines_is_the_same_number_from_memory_and_from_the_database(
    trio: Trio, unsigned: str, fusion: Any, words: list[str]
) -> None:
    recipe = semmem.recipe("default", fusion=fusion)

    def asked(mem: Semmem) -> Any:
        found = mem.recall(" ".join(words), limit=20, namespace=unsigned, recipe=recipe)
        assert not found.degraded
        return found

    told = [
        [(hit.memory.id, hit.part, hit.score, hit.components) for hit in asked(mem)] for mem in (trio.plain, trio.kept)
    ]
    assert told[0] == told[1]
    assert told[0]


def test_a_few_writes_are_read_into_what_is_in_memory(trio: Trio, space: str) -> None:
    change(trio.writer, space, ("many", 0))
    trio.warm(space)
    for number in range(3):
        trio.writer.remember(f"the barometer fell on day {number}", id=f"b{number}", namespace=space)
        found = trio.kept.recall("barometer", namespace=space)
        assert {hit.memory.id for hit in found} >= {f"b{n}" for n in range(number + 1)}
        assert space in trio.models
    trio.writer.forget("b1", namespace=space)
    trio.writer.update("b2", text="the thermometer rose", namespace=space)
    lexical = trio.kept.recall("barometer", namespace=space, recipe="lexical")
    assert [hit.memory.id for hit in lexical] == ["b0"]
    assert space in trio.models


@pytest.mark.parametrize(("at_a_time", "read"), [(1, [1] * 6), (2, [2, 2, 2]), (4, [4, 2]), (6, [6]), (7, [6])])
def test_a_namespace_that_is_loaded_by_pieces_answers_as_the_database_does(
    trio: Trio, space: str, monkeypatch: pytest.MonkeyPatch, at_a_time: int, read: list[int]
) -> None:
    """Memory 16 has two parts; where two are read at a time, the first ends a piece and the second begins one."""
    trio.writer.remember_many([item(n, random.Random(n)) for n in (15, 1, 16, 2, 3)], namespace=space)
    trio.writer.remember("The PIN of the ferry is 4711.", id="pin", namespace=space, sensitive=True)
    trio.writer.forget("m1", namespace=space)
    trio.writer.remember_many([item(4, random.Random(4))], namespace=space)
    counts: list[int] = []

    def rows(turns: Turns, *cursors: Any) -> Rows:
        counts.append(len(turns))
        return unchanged(turns, *cursors)

    unchanged = loading._rows
    monkeypatch.setattr(loading, "_AT_A_TIME", at_a_time)
    monkeypatch.setattr(loading, "_rows", rows)
    trio.warm(space)
    assert counts == read
    for question in QUESTIONS:
        assert answer(trio.kept, question, namespace=space) == answer(trio.plain, question, namespace=space)


@pytest.mark.slow
def test_filters_exclusions_phrases_and_several_namespaces_are_answered_alike(trio: Trio, space: str) -> None:
    other = f"{space}-other"
    for name in (space, other):
        change(trio.writer, name, ("many", 0))
        trio.warm(name)
    hows: list[dict[str, Any]] = [
        {"namespace": space, "filters": {"tags": ["few"]}},
        {"namespace": space, "filters": Filters(authors=("Mia",), sessions=("s1",))},
        {"namespace": space, "exclude": ["m1", "m2", "m16"]},
        {"namespace": [space, other]},
        {"namespace": [other, space], "filters": {"sessions": ["s2"]}, "exclude": ["m3"]},
        {"namespace": space, "offset": 5, "fold_parts": False},
        {"namespace": space, "sort_by": "created"},
        {"namespace": space, "recipe": "dense"},
        {"namespace": space, "recipe": "hybrid"},
    ]
    for how in hows:
        for question in (*QUESTIONS, '"the engine number" ferry', "What did Mia say in May about the ledger?"):
            expected = answer(trio.plain, question, **how)
            for _ in range(3):  # the last time what was so twice is taken to be so
                assert answer(trio.kept, question, **how) == expected, how


@pytest.mark.slow
def test_a_namespace_in_memory_is_asked_in_one_round_trip(module_url: str, space: str) -> None:
    counter = Counter()
    with installed(counter), ExitStack() as stack:
        trio = opened(stack, module_url)
        change(trio.writer, space, ("many", 0))
        trio.warm(space)

        def trips(question: str, **how: Any) -> int:
            with counter.counting():
                trio.kept.recall(question, **{"namespace": space, **how})
            return sum(counter.counts().trips.values())

        asked = "Who wrote of the lighthouse number 3?"
        assert [trips(asked) for _ in range(4)] == [2, 2, 1, 1]  # the same in two recalls
        assert any(hit.part for hit in trio.kept.recall("Sunniva Holt ferry", namespace=space, limit=30))
        assert trips("Sunniva Holt ferry", limit=30) == 1  # with the whole memories of the parts
        assert trips(asked, min_confidence=1.0) == 1  # and without a hit
        for how in ({"filters": {"tags": ["few"]}}, {"exclude": ["m1", "m2"]}):
            assert [trips(asked, **how) for _ in range(3)][1:] in ([2, 1], [3, 1])  # a trip more for parts
        both = {"namespace": [space, f"{space}-other"]}
        change(trio.writer, both["namespace"][1], ("few", 0))
        trio.warm(both["namespace"][1])
        assert [trips(asked, **both) for _ in range(4)][2:] == [1, 1]
        trio.writer.remember("The barometer fell over the lighthouse.", id="b", namespace=space)
        assert trips("barometer", min_confidence=0.0) == 4  # in vain, then the state, what changed, and the texts
        assert [trips("barometer") for _ in range(3)] == [2, 1, 1]
        assert trio.kept.recall("barometer", namespace=space)[0].memory.id == "b"
        trio.writer.forget("b", namespace=space)
        assert trio.kept.recall("barometer", namespace=space, recipe="lexical").hits == ()


def test_an_author_whose_text_was_split_is_looked_up_and_keeps_nothing_else_out_of_memory(
    module_url: str, space: str
) -> None:
    counter, asked = Counter(), "What did Mia write of the ferry?"
    with installed(counter), ExitStack() as stack:
        trio = opened(stack, module_url)
        change(trio.writer, space, ("many", 0))  # memory holds the parts of Mia's long ones, and not the whole
        trio.warm(space)

        def trips() -> int:
            with counter.counting():
                trio.kept.recall(asked, namespace=space)
            return sum(counter.counts().trips.values())

        assert [trips() for _ in range(5)][3:] == [2, 2]  # the facts of Mia, and the texts of the hits
        assert answer(trio.kept, asked, namespace=space) == answer(trio.plain, asked, namespace=space)


def test_a_namespace_that_made_room_is_loaded_again_by_recalls_of_it_and_one_that_stayed(
    trio: Trio, space: str
) -> None:
    both = (space, new_space())
    for name in both:
        change(trio.writer, name, ("many", 0))
        trio.warm(name)
    for _ in range(3):  # the third is ranked before the database is asked
        trio.kept.recall("ferry", namespace=both)
    del trio.models._models[both[1]]
    for _ in range(3):
        trio.kept.recall("ferry", namespace=both)
    assert {*both} <= {*trio.models.sizes}


def test_a_question_asked_often_is_one_round_trip_however_many_others_come_once(
    module_url: str, space: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_module, "_MOST_SCOPES", 2)
    counter = Counter()
    with installed(counter), ExitStack() as stack:
        trio = opened(stack, module_url)
        trio.writer.remember_many([{"text": f"The ferry left pier {n}."} for n in range(9)], namespace=space)
        trio.warm(space)

        def trips(exclude: list[str]) -> int:
            with counter.counting():
                trio.kept.recall("ferry", namespace=space, exclude=exclude)
            return sum(counter.counts().trips.values())

        assert [trips([]) for _ in range(3)][-1] == 1
        often = []
        for number in range(3):
            trips([f"other {number}"])
            often.append(trips([]))
        assert often == [1, 1, 1]


@pytest.mark.slow
def test_what_does_not_fit_the_budget_is_asked_of_the_database(module_url: str, space: str) -> None:
    with ExitStack() as stack:
        trio = opened(stack, module_url, resident_mb=1)
        for at in range(3):
            change(trio.writer, f"{space}-{at}", ("many", 0))
            for _ in range(2):
                trio.kept.recall("ferry", namespace=f"{space}-{at}")
        size = sum(trio.models.sizes.values())
        assert 0 < size <= 1 << 20
        trio.writer.remember_many(
            [{"id": f"x{n}", "text": f"word{n} " * 3, "vector": None} for n in range(900)], namespace=f"{space}-0"
        )
        for _ in range(4):
            trio.kept.recall("ferry", namespace=f"{space}-0")
        assert f"{space}-0" not in trio.models
        assert sum(trio.models.sizes.values()) <= 1 << 20
        question = {"namespace": f"{space}-0"}
        assert answer(trio.kept, "ferry word3", **question) == answer(trio.plain, "ferry word3", **question)


def test_a_program_and_a_server_tell_which_namespaces_are_in_memory(module_url: str) -> None:
    small, large = new_space(), new_space()
    with ExitStack() as stack:
        trio = opened(stack, module_url)
        for space, count in ((small, 3), (large, 60)):
            trio.writer.remember_many([item(n, random.Random(n)) for n in range(count)], namespace=space)
        assert trio.kept.resident == {}
        for space in (large, small):
            trio.warm(space)
            trio.plain.recall("ferry", namespace=space)
        assert list(trio.kept.resident) == [large, small]  # the one asked last at the end
        assert trio.kept.resident[large] > 4 * trio.kept.resident[small] > 0
        assert trio.plain.resident == {}
        assert AsyncSemmem(trio.kept).resident == trio.kept.resident
        with running(trio.kept) as server, semmem.connect(server.url) as client:
            lines = httpx.get(f"{server.url}/metrics", timeout=60).text.splitlines()
            with pytest.raises(semmem.LocalOnly, match="its /metrics show their size"):
                _ = client.resident
        page = dict(line.split(" ") for line in lines if line.startswith("semmem_resident"))
        bytes_held = sum(trio.kept.resident.values())
        assert {name: float(value) for name, value in page.items()} == {
            "semmem_resident_namespaces": 2.0,
            "semmem_resident_bytes": bytes_held,
            "semmem_resident_asked_total": 4.0,
            "semmem_resident_missed_total": 2.0,  # the first recall of each
        }


def test_vectors_of_another_embedder_are_not_compared(other_url: str) -> None:
    with semmem.connect(other_url, embedder="hashing", resident_mb=64) as mem:
        mem.remember_many([item(n, random.Random(n)) for n in range(20)], namespace="n")
        for _ in range(3):
            mem.recall("engine", namespace="n")
        kept: Models = mem._here.reader.models  # type: ignore[attr-defined]
        assert list(kept.sizes) == ["n"]

        class Other:
            name, dimensions, fingerprint, max_tokens = "other", 8, "1", None

            def count_tokens(self, text: str) -> int:
                return len(text.split())

            def embed(self, texts: Any) -> Any:
                rows = np.array([[len(t), *map(ord, (t + " " * 7)[:7])] for t in texts], dtype=np.float32)
                return rows / np.linalg.norm(rows, axis=1, keepdims=True)

        with semmem.connect(other_url, resident_mb=0) as second:
            second.rebuild(embedder=Other())
        found = mem.recall("engine", namespace="n")
        assert "dense" in found.degraded
        assert found.hits


@pytest.mark.slow
def test_settings_and_talk_of_a_namespace_in_memory_are_those_of_now(trio: Trio, space: str) -> None:
    turns = [("Mia", "Where did you moor the ferry?"), ("Tom", "At the old lighthouse, in May."), ("Mia", "Is it dry?")]
    items = [
        {"id": f"t{at}", "text": text, "author": author, "session": "talk", "position": at}
        for at, (author, text) in enumerate(turns * 4)
    ]
    trio.writer.remember_many(items, namespace=space)
    trio.warm(space)
    asked = ("Where did Tom moor the ferry?", "What did Mia ask in May?", "Is it dry?")
    for changes in ({}, {"weights.graph": 0.0}, {"weights.graph": 2.0}):
        if changes:
            trio.writer.configure(namespace=space, **changes)
        for question in asked:  # the last of them takes the settings to be what they were
            kept = answer(trio.kept, question, namespace=space)
            assert kept == answer(trio.plain, question, namespace=space)
            assert kept["settings"] == changes
    trio.writer.forget("t1", namespace=space)
    for question in asked:
        assert answer(trio.kept, question, namespace=space) == answer(trio.plain, question, namespace=space)


def test_threads_read_one_model(trio: Trio, space: str) -> None:
    change(trio.writer, space, ("many", 0))
    trio.warm(space)
    expected = [answer(trio.plain, question, namespace=space) for question in QUESTIONS]
    wrong: list[int] = []

    def read(at: int) -> None:
        for turn in range(4):
            which = (at + turn) % len(QUESTIONS)
            if answer(trio.kept, QUESTIONS[which], namespace=space) != expected[which]:
                wrong.append(which)

    threads = [threading.Thread(target=read, args=(at,)) for at in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


@pytest.mark.slow
def test_a_large_namespace_is_joined_beside_recalls_that_answer_as_the_database_does(
    other_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loading, "_JOINED_AT_ONCE", 0)
    monkeypatch.setattr(saved, "MOST_BEHIND", 3)
    with (
        semmem.connect(other_url, embedder="hashing", resident_mb=64) as mem,
        semmem.connect(other_url, embedder="hashing", resident_mb=0) as asked,
    ):
        mem.remember_many([{"text": f"Ferry {n} leaves at {n}.", "id": str(n)} for n in range(40)])
        models: Models = mem._here.reader.models  # type: ignore[attr-defined]
        for turn in range(12):
            for _ in range(2):
                found, expected = (one.recall("ferry leaves", limit=60, recipe="lexical").hits for one in (mem, asked))
                assert [(hit.id, hit.score) for hit in found] == [(hit.id, hit.score) for hit in expected]
            mem.remember(f"The bus {turn} leaves.", id=f"bus{turn}")
            mem.update(str(turn), text=f"Ferry {turn} leaves at noon.")
            mem.forget(str(turn + 20))
        until(lambda: not models._is_busy)
        assert models._models["default"].behind < 12  # of 36 changes


def test_a_name_is_spelled_as_the_database_spells_it_after_memories_with_it_came_went_and_were_folded(
    trio: Trio, space: str
) -> None:
    def spelled(mem: Semmem) -> list[str]:
        snapshot = mem._here.reader.snapshot((space,), Filters(), (), ())  # type: ignore[attr-defined]
        return [row[3] for row in snapshot.subject_names(space, list(snapshot.metadata_of(["B", "C"])))]

    change(trio.writer, space, ("many", 0))
    trio.writer.maintain()
    titles = {"B": "Dr. Bela Smithson", "A": "dr bela smithson", "C": "Dr. Bela Smithson", "D": "dr bela smithson"}
    for id, title in titles.items():
        trio.writer.remember(f"It is a place with door {id}.", id=id, title=title, namespace=space)
    trio.warm(space)
    spelled(trio.kept)  # while they are pending
    trio.writer.maintain()
    for forgotten in ((), ("A", "D")):
        for id in forgotten:
            trio.writer.forget(id, namespace=space)
        trio.writer.maintain()
        for _ in range(2):
            trio.kept.recall("anything", namespace=space)
        assert space in trio.models
        assert spelled(trio.kept) == spelled(trio.plain)
        asked = [answer(mem, "Where is Smithson", namespace=space) for mem in (trio.kept, trio.plain)]
        assert asked[0] == asked[1]
