"""What a recall says of its own reach where a program has registered many legs of its own."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from fractions import Fraction

import pytest

import semmem
from semmem.model.filters import Within
from semmem.model.recipe import Fusion, Recipe
from semmem.model.search import Found, Result
from semmem.rank_cap.report import LegReach
from semmem.read.result import Recall
from tests.rank_cap.differential import contradictions

NAMES = tuple(f"leg{n}" for n in range(9))
MEMORIES = "abcd"


class Listed:
    """A simple leg that returns ``ids``."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.ids = ""

    def search(self, query: str, *, limit: int = 10, offset: int = 0, filters: Within | None = None) -> Found:
        rows = [Result(id, 1 - at / 20) for at, id in enumerate(self.ids)]
        return rows[offset : offset + limit], len(rows)


LEGS = {name: Listed(name) for name in NAMES}


@pytest.fixture(scope="module")
def mem() -> Iterator[semmem.Semmem]:
    with semmem.connect("sqlite::memory:", embedder="none") as mem:
        for name in NAMES:
            mem.register_leg(name, lambda _reader, name=name: LEGS[name])
        mem.remember_many({"id": id, "text": f"The text of {id}."} for id in MEMORIES)
        yield mem


def recalled(mem: semmem.Semmem, fusion: Fusion, weights: dict[str, float], lists: dict[str, str], k: int) -> Recall:
    for name, ids in lists.items():
        LEGS[name].ids = ids
    recipe = semmem.recipe(Recipe("many", weights, dict.fromkeys(weights, 60.0), fusion=fusion, prior=False))
    return mem.recall("hello", recipe=recipe, limit=k)


def reach(found: Recall, leg: str) -> LegReach:
    return found.reach.regimes["any"].legs[leg]


WEIGHTS = {"leg0": 5.0, **dict.fromkeys(NAMES[1:8], 1.0)}


def test_seven_other_legs_that_need_not_all_end_with_one_memory_do_not_lock_a_leg_out(mem: semmem.Semmem) -> None:
    # b and c have four shares of 1/62 at most, 4/62 = .0645 < 5/61 = .0820 < 7/62 = .1129
    lists = {"leg0": "d", **{name: "ab" if n % 2 else "ac" for n, name in enumerate(NAMES[1:8])}}
    found = recalled(mem, "rrf", WEIGHTS, lists, 2)
    assert [hit.id for hit in found] == ["a", "d"]
    assert reach(found, "leg0").class_ == "possible"
    without_data = semmem.reach(found.recipe, 2, scope_size=4)
    assert without_data.regimes["any"].legs["leg0"].class_ == "possible"


def test_nor_do_seven_that_need_not_all_begin_with_one_memory(mem: semmem.Semmem) -> None:
    # four of them put b first and three c: 4 < 5 < 7
    lists = {"leg0": "d", **{name: "ba" if n % 2 else "ca" for n, name in enumerate(NAMES[1:8])}}
    found = recalled(mem, "convex", WEIGHTS, lists, 1)
    assert [hit.id for hit in found] == ["d"]
    assert reach(found, "leg0").class_ == "possible"


def test_where_but_one_memory_is_left_for_all_of_them_they_do(mem: semmem.Semmem) -> None:
    # a scope of four and a cut of three: whatever the order is, the third of a, b and c has 7/63 = .1111 or more
    lists = {"leg0": "d", **dict.fromkeys(NAMES[1:8], "abc")}
    found = recalled(mem, "rrf", WEIGHTS, lists, 3)
    assert [hit.id for hit in found] == ["a", "b", "c"]
    assert reach(found, "leg0").class_ == "boost-only"


def test_where_there_are_too_many_ways_to_share_no_sharing_is_assumed() -> None:
    # ten legs and two memories: 1,024 ways
    weights = {"own": 2.0, **dict.fromkeys((f"leg{n}" for n in range(10)), 1.0)}
    many = semmem.reach(Recipe("many", weights, dict.fromkeys(weights, 60.0)), 2, scope_size=4)
    own = many.regimes["any"].legs["own"]
    assert (own.class_, own.lower_bar) == ("possible", Fraction(1, 62))
    nine = Recipe("nine", weights | {"leg9": 0.0}, dict.fromkeys(weights, 60.0))
    own = semmem.reach(nine, 2, scope_size=4).regimes["any"].legs["own"]
    assert (own.class_, own.lower_bar) == ("boost-only", Fraction(5, 62))


@pytest.mark.slow
def test_some_random_recalls_of_up_to_nine_legs_contradict_no_class(mem: semmem.Semmem) -> None:
    seen: Counter[str] = Counter()
    for seed in range(100):
        draw = random.Random(seed)
        names = draw.sample(NAMES, draw.choice([2, 8, 9]))
        k, only = draw.choice([1, 2, 2]), draw.choice("abcd")
        others = [id for id in "abcd" if id != only]
        lists = {name: "".join(draw.sample(others, draw.choice([k, k, 3]))) for name in names[1:]}
        weights = {**dict.fromkeys(names[1:], 1.0), names[0]: draw.choice([0.5, 1.0, 3.0, 4.0, 5.0, 6.0, 9.0])}
        found = recalled(mem, draw.choice(["rrf", "rrf", "convex"]), weights, {**lists, names[0]: only}, k)
        assert contradictions(found, found.reach, seen) == []
    assert {"boost-only: out", "possible: in", "possible: out", "guaranteed: in"} <= set(seen)
