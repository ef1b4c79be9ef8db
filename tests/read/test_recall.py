"""The order of a recall: pages, the sum of the components, confidence, and what a recall looks like."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import semmem
from semmem.stores.sqlite import resident
from tests.read.harbour import EPOCH, HARBOUR, Broken, fleet, ids, legs, words

# ---------------------------------------------------------------------- paging and order


def test_pages_follow_each_other_without_overlap_or_gap(mem: semmem.Semmem) -> None:
    mem.remember_many(fleet(60))
    whole = mem.recall("ferry tide", limit=60)
    pages = [mem.recall("ferry tide", limit=7, offset=at) for at in range(0, 60, 7)]
    assert [i for page in pages for i in ids(page)] == ids(whole)
    assert [h.rank for page in pages for h in page] == list(range(1, 61))
    assert [h.score for page in pages for h in page] == [h.score for h in whole]
    assert len(mem.recall("ferry tide", offset=60)) == 0


def test_hits_can_be_sorted_by_importance_and_time_and_ties_keep_relevance(mem: semmem.Semmem) -> None:
    mem.remember_many(fleet(40))
    relevance = ids(mem.recall("ferry tide", limit=40))
    by_importance = mem.recall("ferry tide", limit=40, sort_by="importance")
    expected = sorted(relevance, key=lambda i: (-(int(i) % 11), relevance.index(i)))
    assert ids(by_importance) == expected
    created = [h.memory.created_at for h in mem.recall("ferry tide", limit=40, sort_by="created")]
    assert created == sorted(created, key=lambda at: at or EPOCH, reverse=True)
    assert len(set(ids(mem.recall("ferry tide", limit=40, sort_by="updated")))) == 40


def test_the_order_of_insertion_changes_nothing(mem: semmem.Semmem) -> None:
    rows = fleet(80) + [{"text": f"ferry bell x{n}", "id": f"tie{n:03}", "created_at": EPOCH} for n in range(60)]
    shuffled = rows.copy()
    random.Random(4).shuffle(shuffled)
    mem.remember_many(rows, namespace="one")
    mem.remember_many(shuffled, namespace="two", batch_size=13)
    narrow = {"depths": {"lexical": 20, "dense": 20, "graph": 20}}
    for name in semmem.RECIPES:
        for query in ("ferry tide", "ferry bell", "Who rang the bell?"):
            first, second = (
                mem.recall(query, namespace=n, limit=40, recipe=semmem.recipe(name, **narrow)) for n in ("one", "two")
            )
            for leg, ranking in first.candidates.rankings.items():
                other = second.candidates.rankings[leg]
                assert [key[:2] for key in ranking] == [key[:2] for key in other], (name, query, leg)
            assert ids(first) == ids(second), (name, query)
            assert [h.score for h in first] == pytest.approx([h.score for h in second], abs=1e-12)
            assert first.total == second.total


# ---------------------------------------------------------------------- scores


def test_components_sum_to_the_score_for_every_recipe_question_and_variant(mem: semmem.Semmem) -> None:
    rng = np.random.default_rng(7)
    rows = fleet(60)
    rows += [
        {"text": f"Ondine Varga {words(900 + n, 5)}", "title": "Ondine Varga", "importance": 1.0} for n in range(4)
    ]
    rows += [{"text": rows[n]["text"].upper(), "id": f"copy{n}"} for n in range(5)]
    mem.remember_many([{**row, "vector": rng.normal(size=8)} for row in rows], namespace="given", batch_size=20)
    weights = st.fixed_dictionaries({}, optional={leg: st.floats(0.01, 10) for leg in ("lexical", "dense", "graph")})
    variants = st.fixed_dictionaries(
        {},
        optional={
            "weights": weights,
            "exact_bonus": st.floats(0, 2),
            "prior": st.booleans(),
            "prior_floor": st.floats(0, 1),
            "reserve": st.sampled_from([{}, {"graph": 1, "dense": 2}, {"dense": 1, "lexical": 7, "graph": 3}]),
            "dedup": st.booleans(),
        },
    )

    @given(
        st.sampled_from(sorted(semmem.RECIPES)),
        variants,
        st.lists(st.sampled_from([*HARBOUR, "Ondine", "Varga", "the", "zeppelin"]), min_size=1, max_size=5),
        st.integers(0, 1000),
    )
    @settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow])
    def ask(name: str, changes: dict[str, Any], query: list[str], seed: int) -> None:
        own = semmem.RECIPES[name].weights
        changes = {**changes, "weights": {leg: w for leg, w in changes.get("weights", {}).items() if leg in own}}
        vector = np.random.default_rng(seed).normal(size=8)
        found = mem.recall(
            " ".join(query), recipe=semmem.recipe(name, **changes), limit=70, vector=vector, namespace="given"
        )
        assert not found.degraded
        last = 1.0
        for place, hit in enumerate(found, 1):
            assert abs(sum(hit.components.values()) - hit.score) <= 1e-12
            assert 0 <= hit.score <= last  # in order, the best at most 1
            assert set(hit.components) <= {*own, "exact", "importance", "reserve"}
            assert set(hit.legs) == set(hit.components) - {"exact", "importance", "reserve"}
            assert hit.rank == place
            last = hit.score

    ask()


def test_a_memory_first_in_every_leg_with_importance_one_scores_one(mem: semmem.Semmem) -> None:
    mem.remember("ferry", id="best", importance=1.0)
    found = mem.recall("ferry", recipe=semmem.recipe("hybrid", prior_floor=None))
    assert found[0].score == 1.0
    # 1/61 of the 2/61 that are possible, each, times what importance .5 gives, 1 - 1/248; the rest is importance
    expected = {"lexical": 0.5 * 247 / 248, "dense": 0.5 * 247 / 248, "importance": 1 / 248}
    assert dict(found[0].components) == pytest.approx(expected, abs=1e-12)


def test_importance_is_a_prior_of_point_seven_to_one(mem: semmem.Semmem) -> None:
    mem.remember("ferry tide", id="high", importance=1.0)
    mem.remember("ferry", id="low", importance=0.0)
    found = {h.memory.id: h for h in mem.recall("ferry", recipe=semmem.recipe("lexical", prior_floor=0.7))}
    # the shorter text is first: 61/61 · (.7 + .3 · 0) = .7; the second 61/62 · 1 = .983871
    assert found["low"].score == pytest.approx(0.7, abs=1e-12)
    assert found["high"].score == pytest.approx(61 / 62, abs=1e-12)
    assert (found["high"].rank, found["high"].legs["lexical"].rank) == (1, 2)
    bounded = mem.recall(
        "ferry", recipe=semmem.recipe("lexical", prior_floor=None)
    )  # 61/61 · (1 - 1/124) stays before 61/62 · 1
    assert [(h.memory.id, h.score) for h in bounded] == [
        ("low", pytest.approx(123 / 124, abs=1e-12)),
        ("high", pytest.approx(61 / 62, abs=1e-12)),
    ]
    assert bounded[0].components["importance"] == pytest.approx(-1 / 248, abs=1e-12)
    off = mem.recall("ferry", recipe=semmem.recipe("lexical", prior=False))
    assert [(h.memory.id, h.score) for h in off] == [("low", 1.0), ("high", pytest.approx(61 / 62, abs=1e-12))]


def test_the_exact_bonus_is_a_component_for_memories_that_hold_every_term(mem: semmem.Semmem) -> None:
    mem.remember("The ferry ties up in the old stone harbour when it storms", id="all")
    mem.remember("ferry ferry ferry", id="some")
    plain = mem.recall("ferry harbour", recipe="lexical")
    assert all("exact" not in h.components for h in plain)
    found = {h.memory.id: h for h in mem.recall("ferry harbour", recipe=semmem.recipe("default", exact_bonus=0.3))}
    # in units of a first place in the lexical leg: .3 · .1/5 of 1.3 · .1/5 + .35/9 + .35/9; importance .5: times .975
    most = 1.3 * 0.1 / 5 + 0.35 / 9 + 0.35 / 9
    assert found["all"].components["exact"] == pytest.approx(0.975 * 0.3 * 0.1 / 5 / most, abs=1e-12)
    assert "exact" not in found["some"].components


def test_the_reserve_gives_the_head_of_each_leg_a_place(mem: semmem.Semmem) -> None:
    near = [1.0, 0.0]
    with_vectors = [{"text": f"ferry {'x ' * n}", "id": f"{n}", "vector": [1.0, 0.1 * (n + 1)]} for n in range(9)]
    mem.remember_many([*with_vectors, {"text": "unrelated", "id": "z", "vector": near}], namespace="v")
    variant = semmem.recipe("hybrid", weights={"dense": 0.1})
    before = mem.recall("ferry", namespace="v", vector=near, recipe=variant)
    assert ids(before)[-1] == "z"
    kept = mem.recall("ferry", namespace="v", vector=near, recipe=semmem.recipe(variant, reserve={"dense": 3}))
    assert ids(kept) == ["0", "1", "z", *(str(n) for n in range(2, 9))]
    assert kept[2].score == before[2].score  # that of the memory it displaces
    assert kept[2].components["reserve"] == pytest.approx(before[2].score - before[-1].score, abs=1e-12)


# ---------------------------------------------------------------------- what a call refuses


def test_a_recall_below_the_least_confidence_returns_no_hit_and_says_so(mem: semmem.Semmem) -> None:
    mem.remember_many(fleet(30))
    plain = mem.recall("ferry tide", limit=5)
    assert (plain.withheld, plain.min_confidence) == (0, 0.0)
    sure = plain.confidence
    kept = mem.recall("ferry tide", limit=5, min_confidence=sure)
    assert (ids(kept), kept.withheld) == (ids(plain), 0)
    unsure = mem.recall("ferry tide", limit=5, min_confidence=min(1.0, sure + 0.01))
    assert (len(unsure), unsure.withheld, unsure.total, unsure.confidence) == (0, 5, plain.total, sure)
    assert (unsure.as_dict()["hits"], unsure.as_dict()["withheld"]) == ([], 5)
    why = unsure.explain(plain[0].id)
    assert (why.returned, why.rank, why.withheld_below) == (False, 1, unsure.min_confidence)
    assert f"withheld: the confidence of the recall is below {unsure.min_confidence:g}" in str(why)
    assert kept.explain(plain[0].id).withheld_below is None
    assert "5 withheld below" in repr(unsure)


def test_a_recall_that_found_nothing_has_no_confidence_whatever_its_seeders_thought(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(resident, "MOST", 0)
    with semmem.connect("sqlite::memory:", embedder="none") as lone:
        lone.remember("The ferry leaves at dawn.", id="ferry")
        found = lone.recall("ferry at dawn", recipe="graph")
    assert (len(found), set(found.degraded), found.confidence) == (0, {"graph", "dense"}, 0.0)


def test_a_recipe_of_one_leg_has_a_confidence_too(mem: semmem.Semmem) -> None:
    mem.remember("The ferry leaves at dawn.", id="ferry")
    mem.remember("Bread is baked with yeast and flour.", id="bread")
    for name in ("lexical", "dense", "graph"):
        near, far = (mem.recall(query, recipe=name).confidence for query in ("ferry at dawn", "quantum chromodynamics"))
        assert 0 <= far < near <= 1, name


def test_the_text_of_a_recall_and_of_a_hit_is_short(mem: semmem.Semmem) -> None:
    for n in range(12):
        mem.remember(f"The ferry {n} leaves. " * 90, id=f"{n}-" + "x" * 900, title="A title " * 200)
    found = mem.recall("ferry leaves")
    assert len(repr(found)) < 300
    assert all(len(repr(hit)) < 300 for hit in found)
    assert repr(found).startswith(f"Recall(10 of {found.total}: '")
    assert f"confidence {found.confidence:.2f}" in repr(found)
    assert "\n" not in repr(found[0])
    for leg in ("dense", "graph"):
        legs(mem)[leg] = Broken(leg, ValueError("no " * 400))
    assert repr(mem.recall("ferry leaves")).endswith("degraded: dense, graph)")
    assert len(repr(mem.recall("ferry leaves"))) < 300
    assert repr(mem.recall("ferry", filters={"tags": ["none"]})).startswith(
        "Recall(0 of 0, nothing in scope; confidence 0.00"
    )


def test_a_recall_is_a_sequence_with_times_reach_and_plain_values(mem: semmem.Semmem) -> None:
    mem.remember_many(fleet(30))
    found = mem.recall("ferry tide", limit=5)
    assert (len(found), found[0].rank, [h.rank for h in found[1:3]], found[-1].rank) == (5, 1, [2, 3], 5)
    assert set(found.timings) == {"lexical", "dense", "graph", "total"}
    assert found.regime in found.reach.regimes
    assert 0 < found.confidence <= 1
    plain = found.as_dict()
    assert plain["recipe"] == "default"
    assert [h["id"] for h in plain["hits"]] == ids(found)
