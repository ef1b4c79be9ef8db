"""Several namespaces at once: a leg joins its lists by how well a memory matches, not by how much stands beside it."""

from __future__ import annotations

import random
from collections.abc import Iterator

import numpy as np
import pytest

import semmem
from eval.path import Counter, installed
from semmem.legs.namespaces import of_best, standing
from semmem.model.exchange import Ranking, Scope, Trace, placed

ABOUT_ME = (
    {"id": "theme", "text": "I like the solarized theme in my editor."},
    {"id": "dog", "text": "My dog is called Rex."},
    {"id": "lisbon", "text": "I was born in Lisbon."},
)


def crowd(count: int) -> list[dict[str, str]]:
    """Return memories of random words, of which every 25th says theme and every 30th editor."""
    draw = random.Random(1)
    words = [f"w{n}" for n in range(300)]
    return [
        {
            "id": f"p{n}",
            "text": " ".join(draw.choices(words, k=20)) + " theme" * (not n % 25) + " editor" * (not n % 30),
        }
        for n in range(count)
    ]


@pytest.fixture(params=["sqlite", "postgres"])
def mem(request: pytest.FixtureRequest) -> Iterator[semmem.Semmem]:
    """A project of 300 memories, three about me, and the same three among the project's in a third namespace."""
    url = "sqlite::memory:" if request.param == "sqlite" else request.getfixturevalue("store_url")
    with semmem.connect(url, embedder="hashing", pool_size=2) as opened:
        opened.remember_many(crowd(300), namespace="project")
        opened.remember_many(ABOUT_ME, namespace="me")
        opened.maintain()
        yield opened


def test_a_large_namespace_does_not_shut_out_the_one_memory_of_a_small_one_that_answers(mem: semmem.Semmem) -> None:
    for question in ("solarized theme", "which theme in my editor?", "what is my dog called?"):
        (first,) = (hit.id for hit in mem.recall(question, namespace="me", limit=1))
        for order in (["project", "me"], ["me", "project"]):
            found = mem.recall(question, namespace=order)
            assert (first, "me") in [(hit.id, hit.namespace) for hit in found][:5], question
    assert mem.recall("solarized theme", namespace=["project", "me"])[0].id == "theme"


def test_a_small_namespace_that_answers_nothing_takes_no_place_of_a_large_one(mem: semmem.Semmem) -> None:
    (asked,) = (memory.text for memory in [mem.get("p77", namespace="project")])
    question = " ".join(asked.split()[:8])
    alone = mem.recall(question, namespace="project")
    both = mem.recall(question, namespace=["me", "project"])
    assert [(hit.id, hit.namespace) for hit in both][:5] == [(hit.id, "project") for hit in alone][:5]


def test_each_leg_keeps_the_order_that_a_namespace_has_alone(mem: semmem.Semmem) -> None:
    question = "the theme of my editor w5 w6"
    both = mem.recall(question, namespace=["project", "me"]).candidates.rankings
    assert any(len({namespace for _, _, namespace in keys}) == 2 for keys in both.values())
    for namespace in ("project", "me"):
        alone = mem.recall(question, namespace=namespace).candidates.rankings
        for leg, keys in both.items():
            mine = [key for key in keys if key[2] == namespace]
            assert mine == list(alone[leg])[: len(mine)], leg


def test_the_same_memory_stands_beside_itself_however_much_is_around_it(mem: semmem.Semmem) -> None:
    for place in ("me", "project"):
        mem.remember("The zebra crossing of Norrbeck was painted in May.", id=f"same-{place}", namespace=place)
    found = mem.recall(
        "zebra crossing Norrbeck", namespace=["project", "me"], recipe=semmem.recipe("seed", dedup=False)
    )
    assert {hit.id for hit in found[:2]} == {"same-me", "same-project"}


def test_the_scores_of_several_namespaces_are_shares_of_the_best_in_each(mem: semmem.Semmem) -> None:
    found = mem.recall("solarized theme", namespace=["project", "me"], recipe="lexical")
    assert all(0 < hit.legs["lexical"].score <= 1 for hit in found)
    alone = mem.recall("solarized theme", namespace="me", recipe="lexical")
    most = alone.candidates.traces["lexical"].most
    assert most is not None
    assert found[0].legs["lexical"].score == pytest.approx(alone[0].legs["lexical"].score / most)
    assert found.confidence == pytest.approx(alone.confidence)
    nothing = mem.recall("the of", namespace=["project", "me"], recipe="lexical")
    assert (len(nothing), nothing.confidence) == (0, 0.0)


def test_a_namespace_stands_as_well_as_its_first_finds_beside_the_best() -> None:
    def of(*scores: float) -> Ranking:
        return Ranking(tuple(range(len(scores))), scores)

    heads = [{"dense": of(0.8, 0.7), "lexical": of(0.2)}, {"dense": of(0.4), "lexical": of()}, {"dense": of(-0.1)}]
    assert standing(heads) == pytest.approx([1.0, 0.25, 0.0])
    assert standing([{}, {"dense": of()}]) == [1.0, 1.0]
    assert of_best(Ranking((1, 2), (6.0, 3.0), trace=Trace(most=12.0))).scores == (0.5, 0.25)
    assert of_best(Ranking((1,), (6.0,))).scores == (6.0,)


def test_the_scope_of_each_namespace_has_its_own_size_and_local_row_ids() -> None:
    allowed = np.array([placed(3, 0), placed(5, 0), placed(4, 1), placed(1, 2)], dtype=np.int64)
    excluded = np.array([placed(5, 0), placed(1, 2)], dtype=np.int64)
    whole = Scope(("a", "b", "c"), 30, allowed, excluded, sizes={"a": 7, "b": 20, "c": 3})
    parts = [
        (one.namespaces, one.size, one.allowed.tolist(), one.excluded.tolist())
        for one in whole.each()
        if one.allowed is not None and one.excluded is not None
    ]
    assert parts == [(("a",), 7, [3, 5], [5]), (("b",), 20, [4], []), (("c",), 3, [1], [1])]
    (open_one, _) = Scope(("a", "b"), 30).each()
    assert (open_one.size, open_one.allowed, open_one.excluded) == (30, None, None)
    alone = Scope(("a",), 7)
    assert alone.each() == (alone,)


def test_a_recall_asks_nothing_about_the_namespaces_that_are_empty(store_url: str) -> None:
    empty, counter = [f"nowhere {n}" for n in range(20)], Counter()
    with semmem.connect(store_url, embedder="hashing", pool_size=2, resident_mb=0) as mem, installed(counter):
        for namespace in ("me", "other"):
            mem.remember_many(ABOUT_ME, namespace=namespace)
        mem.forget(everything=True, namespace="other")

        def asked(namespaces: list[str]) -> tuple[list[tuple[str, str]], dict[str, str], int]:
            with counter.counting():
                found = mem.recall("What is my dog called?", namespace=namespaces)
            return (
                [(hit.id, hit.namespace) for hit in found],
                dict(found.degraded),
                counter.counts().as_dict()["round_trips"],
            )

        hits, degraded, trips = asked(["me", empty[0]])
        assert (hits[0], degraded) == (("dog", "me"), {})
        for order in ([*empty, "me", "other"], ["other", "me", *empty]):
            assert asked(order) == (hits, {}, trips + 1)  # which of many there are
        assert asked(empty)[:2] == ([], {})
        within = {"created_after": "2020-01-01"}
        narrow = mem.recall("What is my dog called?", namespace=[*empty, "me"], filters=within)
        assert [(hit.id, hit.namespace) for hit in narrow] == hits
        mem.configure(namespace=empty[0], exact_bonus=0.5)
        for several in ([empty[0], "me"], [*empty, "me"]):
            assert list(mem.recall("What is my dog called?", namespace=several).degraded) == ["settings"]
