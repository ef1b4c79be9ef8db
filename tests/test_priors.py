"""Importance and age as one prior, told apart in the components; a recall with a half-life."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

import semmem
from semmem.fusion import IMPORTANCE, RESERVE, rank
from semmem.model.errors import InvalidInput
from semmem.model.exchange import CandidateMetadata
from semmem.model.question import Period
from semmem.read.candidates import PERIOD, RECENCY, Priors

_DAY = 86_400.0
LONG_AGO = Period("before 1965", None, datetime(1965, 1, 1, tzinfo=UTC))
LISTS = {"lexical": ["a", "b", "c"], "dense": ["c", "a"]}
WEIGHTS, CONSTANTS = {"lexical": 1.0, "dense": 1.0}, {"lexical": 60.0, "dense": 60.0}


def head(id: str, *, days: float = 0.0, importance: float = 0.5) -> CandidateMetadata:
    return CandidateMetadata(0, "n", id, 0, importance, b"", -days * _DAY, 0.0)


def plan(**changes: object) -> semmem.Recipe:
    return semmem.recipe("hybrid", **changes)  # type: ignore[arg-type]


def test_a_memory_of_one_half_life_has_lost_half_of_what_age_may_take() -> None:
    metadata = {"new": head("new"), "old": head("old", days=30), "older": head("older", days=60)}
    priors = Priors.of(plan(prior=False, recency_half_life=30, recency_floor=0.6), "any", metadata, 0.0)
    assert [priors.factor(key) for key in metadata] == pytest.approx([1.0, 0.8, 0.7])


def test_importance_and_age_multiply() -> None:
    metadata = {"old": head("old", days=10, importance=0.0)}
    priors = Priors.of(plan(prior_floor=0.7, recency_half_life=10, recency_floor=0.0), "any", metadata, 0.0)
    assert priors.factor("old") == pytest.approx(0.7 * 0.5)


def test_what_is_dated_after_the_newest_has_no_age() -> None:
    priors = Priors.of(plan(recency_half_life=1), "any", {"later": head("later", days=-5, importance=1.0)}, 0.0)
    assert priors.factor("later") == 1.0


def test_without_a_half_life_the_prior_is_importance_alone_and_no_share_is_touched() -> None:
    metadata = {key: head(key, days=at, importance=at / 4) for at, key in enumerate("abc")}
    priors = Priors.of(plan(), "any", metadata, 0.0)
    assert priors.weighed == {"a": 0.0, "b": 0.25, "c": 0.5}
    fused = rank(LISTS, weights=WEIGHTS, rank_constants=CONSTANTS, planned=LISTS)[0]
    assert priors.apart(fused) is fused


@given(
    days=st.lists(st.floats(0, 4000), min_size=3, max_size=3),
    importances=st.lists(st.floats(0, 1), min_size=3, max_size=3),
    half_life=st.sampled_from([0.001, 1.0, 30.0, 36_500.0]),
    floors=st.tuples(st.sampled_from([0.0, 0.5, 1.0]), st.sampled_from([0.0, 0.3, 0.9, 1.0])),
    prior=st.booleans(),
    period_floor=st.sampled_from([None, 0.0, 0.5, 1.0]),
)
def test_the_shares_sum_to_the_score_which_is_the_bare_sum_times_all_factors(
    days: list[float],
    importances: list[float],
    half_life: float,
    floors: tuple[float, float],
    prior: bool,
    period_floor: float | None,
) -> None:
    metadata = {key: head(key, days=days[at], importance=importances[at]) for at, key in enumerate("abc")}
    chosen = plan(prior=prior, prior_floor=floors[0], recency_half_life=half_life, recency_floor=floors[1])
    chosen = semmem.recipe(chosen, period_floor=period_floor)
    priors = Priors.of(chosen, "any", metadata, -min(days) * _DAY, [LONG_AGO])
    how = {"weights": WEIGHTS, "rank_constants": CONSTANTS, "planned": list(LISTS)}
    bare = {fused.key: fused.score for fused in rank(LISTS, **how)}  # type: ignore[arg-type]
    reserve = {"dense": 1}
    ranked = rank(LISTS, importance=priors.weighed, prior_floor=priors.floor, reserve=reserve, **how)  # type: ignore[arg-type]
    for fused in map(priors.apart, ranked):
        assert sum(fused.components.values()) == pytest.approx(fused.score, abs=1e-9)
        assert fused.components.get(RECENCY, 0.0) <= 0
        assert fused.components.get(PERIOD, 0.0) <= 0
        if RESERVE not in fused.components:
            assert fused.score == pytest.approx(bare[fused.key] * priors.factor(fused.key), abs=1e-9)
        if importances["abc".index(fused.key)] == 0.5 or not prior:
            assert IMPORTANCE not in fused.components or abs(fused.components[IMPORTANCE]) < 1e-12


def test_the_newer_of_two_that_say_the_same_comes_first_where_age_counts_and_explain_says_what_age_took() -> None:
    now = datetime(2026, 5, 1, tzinfo=UTC)
    with semmem.connect("sqlite::memory:", embedder="none") as mem:
        mem.remember("The ferry to the island leaves at nine.", id="a", created_at=now - timedelta(days=60))
        mem.remember("The ferry to the island leaves at ten.", id="b", created_at=now)
        usual = mem.recall("When does the ferry to the island leave?")
        aged = mem.recall("When does the ferry to the island leave?", recipe=mem_recipe())
        assert ([hit.id for hit in usual], [hit.id for hit in aged]) == (["a", "b"], ["b", "a"])
        old = aged[1]
        assert old.components[RECENCY] == pytest.approx(-0.375 * old.components["lexical"])  # .5 + .5 / 4 = 1 - .375
        assert sum(old.components.values()) == pytest.approx(old.score)
        assert "recency: -0." in str(aged.explain("a"))
        assert aged.reach.assumptions == ()


def test_age_counts_nothing_in_any_recipe_of_ours_and_where_it_is_switched_on_a_tenth_at_most() -> None:
    assert {(one.recency_half_life, one.recency_floor) for one in semmem.RECIPES.values()} == {(None, 0.9)}


def mem_recipe() -> semmem.Recipe:
    return semmem.recipe("lexical", recency_half_life=30, recency_floor=0.5)


@pytest.mark.parametrize("wrong", [0, -1, "30", True, 40_000])
def test_a_half_life_is_a_number_of_days_above_0(wrong: object) -> None:
    with pytest.raises(InvalidInput, match=r"recency_half_life"):
        semmem.recipe("default", recency_half_life=wrong)  # type: ignore[arg-type]


def test_without_data_age_is_assumed_to_be_equal_and_the_worst_case_knows_its_floor() -> None:
    how = {"prior": False, "recency_floor": 0.7}
    plain, aged = (plan(**how, recency_half_life=days) for days in (None, 30))
    at = {day: semmem.reach(one, 10).regimes["any"].legs["dense"] for day, one in ((0, plain), (30, aged))}
    assert at[0].class_with_prior == at[0].class_ == at[30].class_ == "possible"
    assert at[30].class_with_prior == "boost-only"  # .7/61 does not reach 1/70
