"""Statements 23 to 25 of our origins: nexusAI's fusion in an assistant; those on HTTP stand with that interface."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import semmem
from semmem.fusion import rank_as
from semmem.model.exchange import Question, Ranking, Scope
from semmem.model.protocols import Leg
from semmem.model.recipe import RECIPES, Recipe, recipe
from semmem.model.store import Snapshot
from semmem.rank_cap import reach


def ranked(chosen: Recipe, lists: dict[str, list[str]]) -> list[str]:
    plan = {"weights": chosen.weights_in(), "rank_constants": chosen.constants(), "planned": chosen.legs}
    return [f.key for f in rank_as(chosen.fusion, lists, {}, **plan)]  # type: ignore[arg-type]


@pytest.mark.parametrize("weight", [0, 0.5, 1, 5])
def test_23_each_weight_is_a_setting_from_zero_to_five(weight: float) -> None:
    changed = recipe("nexus", weights={"dense": weight})
    assert changed.weights["dense"] == weight
    assert changed.legs == (("lexical", "dense") if weight else ("lexical",))


def test_23_a_leg_of_weight_zero_contributes_no_memory_not_even_at_score_zero() -> None:
    lists = {"lexical": ["a", "b"], "dense": ["c", "a"]}
    # both: a has 1/61 + 1/62, c 1/61, b 1/62
    assert ranked(RECIPES["nexus"], lists) == ["a", "c", "b"]
    assert ranked(recipe("nexus", weights={"dense": 0}), lists) == ["a", "b"]
    assert ranked(recipe("nexus", weights={"lexical": 0}), lists) == ["c", "a"]
    assert reach(recipe("nexus", weights={"dense": 0})).regimes["any"].legs["dense"].class_ == "unreachable"


def test_23_a_weight_decides_by_how_much_a_leg_counts() -> None:
    lists = {"lexical": ["a"], "dense": ["c"]}
    assert ranked(recipe("nexus", weights={"lexical": 5}), lists) == ["a", "c"]
    assert ranked(recipe("nexus", weights={"dense": 5}), lists) == ["c", "a"]


def test_24_a_leg_fetches_twice_the_limit() -> None:
    assert dict(RECIPES["nexus"].depths) == {"lexical": 20, "dense": 20}  # of the usual ten
    assert RECIPES["nexus"].headroom == 2


# ---------------------------------------------------------------------- on a store, with the calls counted


class Counted(Leg):
    """A leg that keeps what it returned, and passes it on."""

    def __init__(self, leg: Leg) -> None:
        self.leg, self.name = leg, leg.name
        self.returned: list[int] = []

    def search(self, question: Question, snapshot: Snapshot, recipe: Recipe) -> Ranking:
        found = self.leg.search(question, snapshot, recipe)
        self.returned.append(len(found.row_ids))
        return found


class Failing:
    """A leg that fails."""

    def __init__(self, name: str) -> None:
        self.name = name

    def search(self, question: Question, scope: Scope, recipe: Recipe) -> Ranking:
        raise ConnectionError(f"{self.name} is away")


@pytest.fixture
def mem(store_url: str) -> Iterator[semmem.Semmem]:
    with semmem.connect(store_url, embedder="hashing", recipe="nexus") as opened:
        opened.remember_many(
            {"id": f"t{n:02}", "text": f"We spoke of the lantern, turn {n}.", "session": f"talk{n % 3}", "position": n}
            for n in range(60)
        )
        for name in ("lexical", "dense"):
            opened._here.legs[name] = Counted(opened._here.legs[name])
        yield opened


def calls(mem: semmem.Semmem) -> dict[str, int]:
    legs: dict[str, Any] = {name: mem._here.legs[name] for name in ("lexical", "dense")}
    return {name: len(leg.returned) for name, leg in legs.items()}


def ids(found: Any) -> list[str]:
    return [hit.memory.id for hit in found]


def test_23_weights_are_read_and_written_while_running_and_count_at_the_next_request(mem: semmem.Semmem) -> None:
    assert {"lexical", "dense"} == set().union(*(hit.legs for hit in mem.recall("lantern", limit=10)))
    assert calls(mem) == {"lexical": 1, "dense": 1}
    mem.configure(weights={"dense": 0, "lexical": 5})
    plan, own, _ = mem.searched_by()
    assert (dict(plan.weights), own) == ({"lexical": 5, "dense": 0}, {"weights.dense": 0, "weights.lexical": 5})
    found = mem.recall("lantern", limit=10)
    assert calls(mem) == {"lexical": 2, "dense": 1}  # the leg of weight 0 is not called
    assert {tuple(hit.components) for hit in found} == {("lexical",)}  # and has no memory, not even at score 0
    mem.configure(weights={"dense": 2.5})
    mem.recall("lantern", limit=10)
    assert calls(mem) == {"lexical": 3, "dense": 2}


def test_24_both_legs_are_scoped_to_a_session_or_a_pool_of_sessions_inside_their_query(mem: semmem.Semmem) -> None:
    one = mem.recall("lantern", filters={"sessions": ["talk1"]})
    assert {hit.memory.session for hit in one} == {"talk1"}
    pool = mem.recall("lantern", filters={"sessions": ["talk1", "talk2"]}, limit=40)
    assert len(pool) == 40
    assert {hit.memory.session for hit in pool} == {"talk1", "talk2"}
    assert all(isinstance(hit.memory, semmem.Memory) for hit in pool)
    legs: dict[str, Any] = dict(mem._here.legs)
    assert legs["lexical"].returned == [20, 40]  # all twenty turns of one session, all forty of two


def test_24_recent_turns_are_left_out_of_every_leg_and_the_result_does_not_starve(mem: semmem.Semmem) -> None:
    recent = [f"t{n:02}" for n in range(50, 60)]
    before = mem.recall("lantern turn 55")
    assert before[0].memory.id == "t55"
    found = mem.recall("lantern turn 55", exclude=recent)
    assert len(found) == 10
    assert not set(ids(found)) & set(recent)
    lists = found.candidates.rankings
    assert {leg: len(keys) for leg, keys in lists.items()} == {"lexical": 20, "dense": 20}  # twice the ten shown
    assert not {key[0] for keys in lists.values() for key in keys} & set(recent)
    more = mem.recall("lantern", exclude=recent, limit=25).candidates.rankings
    assert {leg: len(keys) for leg, keys in more.items()} == {"lexical": 50, "dense": 50}  # all that are left


@pytest.mark.parametrize(("away", "left"), [("lexical", "dense"), ("dense", "lexical")])
def test_25_the_failure_of_each_leg_leaves_the_answer_of_the_other(mem: semmem.Semmem, away: str, left: str) -> None:
    mem._here.legs[away] = Failing(away)
    found = mem.recall("lantern turn 7")
    assert found.degraded == {away: f"ConnectionError: {away} is away"}
    assert len(found) == 10
    assert {tuple(hit.components) for hit in found} == {(left,)}
