"""A question that names a period of time, in recalls with and without a period_floor."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

import semmem
from semmem.model.errors import InvalidInput
from semmem.read.candidates import PERIOD

NOW = datetime(2026, 11, 26, 18, 30, tzinfo=UTC)  # a Thursday
QUESTION = "Which ferry did we take last week?"
SOFT = semmem.recipe("lexical", period_floor=0.5)


@pytest.fixture
def mem() -> Iterator[semmem.Semmem]:
    with semmem.connect("sqlite::memory:", embedder="none") as mem:
        mem.remember("We took the ferry to Amrum.", id="a", created_at="2026-11-02T08:00:00Z")
        mem.remember("We took the ferry to Sylt.", id="b", created_at="2026-11-18T08:00:00Z")
        yield mem


def test_a_memory_created_outside_the_period_counts_half_where_the_floor_is_a_half(mem: semmem.Semmem) -> None:
    usual = mem.recall(QUESTION, recipe="lexical", now=NOW)
    found = mem.recall(QUESTION, recipe=SOFT, now=NOW)
    assert ([hit.id for hit in usual], [hit.id for hit in found]) == (["a", "b"], ["b", "a"])
    inside, outside = found
    assert PERIOD not in inside.components
    assert outside.components[PERIOD] == pytest.approx(-0.5 * outside.components["lexical"])
    assert sum(outside.components.values()) == pytest.approx(outside.score)
    assert found.reach.assumptions == ()


def test_explain_says_what_the_period_took_and_which_days_are_meant(mem: semmem.Semmem) -> None:
    found = mem.recall(QUESTION, recipe=SOFT, now=NOW)
    period = '"last week" (from 2026-11-16 to before 2026-11-23)'
    assert f", not created in {period}" in str(found.explain("a"))
    assert f"  period: created in {period}" in str(found.explain("b"))
    assert found.explain("b").periods == (period,)
    assert found.explain("b").as_dict()["periods"] == (period,)


def test_explain_says_nothing_of_the_period_for_a_memory_that_no_leg_found(mem: semmem.Semmem) -> None:
    mem.remember("Bananas are yellow.", id="z", created_at="2026-11-02T08:00:00Z")
    found = mem.recall(QUESTION, recipe=SOFT, now=NOW)
    assert "  period: " in str(found.explain("a"))
    assert "  period: " not in str(found.explain("z"))


def test_without_a_period_in_the_question_or_a_floor_in_the_recipe_nothing_changes(mem: semmem.Semmem) -> None:
    for question, recipe in (("Which ferry did we take?", SOFT), (QUESTION, semmem.recipe("lexical"))):
        found = mem.recall(question, recipe=recipe, now=NOW)
        assert [(hit.id, hit.score, hit.components) for hit in found] == [
            (hit.id, hit.score, hit.components) for hit in mem.recall(question, recipe="lexical")
        ]
        assert found.recipe.period_floor is None
        assert found.explain("a").periods == ()
        assert "period" not in str(found.explain("a"))


def test_where_no_memory_or_every_memory_is_of_the_period_the_order_stays(mem: semmem.Semmem) -> None:
    for words in ("in May 2020", "in November"):
        question = f"Which ferry did we take {words}?"
        assert [hit.id for hit in mem.recall(question, recipe=SOFT, now=NOW)] == ["a", "b"]


def test_the_time_of_the_question_is_now_else_that_of_as_of_else_the_present(mem: semmem.Semmem) -> None:
    question = "Which ferry did we take yesterday?"

    def said(**when: object) -> str:
        return mem.recall(question, recipe=SOFT, **when).explain("a").periods[0]  # type: ignore[arg-type]

    assert said(now="2026-11-26") == '"yesterday" (from 2026-11-25 to before 2026-11-26)'
    assert said(as_of="2026-11-20") == '"yesterday" (from 2026-11-19 to before 2026-11-20)'
    assert said(as_of="2026-11-20", now="2026-11-10") == '"yesterday" (from 2026-11-09 to before 2026-11-10)'
    assert said() != said(now="2021-01-01")
    with pytest.raises(InvalidInput, match="now must be an ISO 8601 time"):
        said(now="soon")


def test_a_period_begins_at_midnight_where_the_question_is_asked(mem: semmem.Semmem) -> None:
    mem.remember("We took the ferry to Juist.", id="c", created_at="2026-11-24T23:30:00Z")  # 00:30 in Berlin
    question = "Which ferry did we take yesterday?"
    berlin = NOW.astimezone(ZoneInfo("Europe/Berlin"))
    first = {zone: mem.recall(question, recipe=SOFT, now=now)[0].id for zone, now in (("UTC", NOW), ("Berlin", berlin))}
    assert first == {"UTC": "a", "Berlin": "c"}


def test_a_context_takes_the_time_of_the_question_too(mem: semmem.Semmem) -> None:
    block = mem.context(QUESTION, recipe=SOFT, now=NOW)
    assert [hit.id for hit in block.hits] == ["b", "a"]


def test_a_recall_that_was_not_read_for_periods_is_not_fused_again_with_a_floor(mem: semmem.Semmem) -> None:
    with pytest.raises(InvalidInput, match="needs other lists"):
        mem.recall(QUESTION, recipe="lexical", now=NOW).again(SOFT)
    other = semmem.recipe(SOFT, period_floor=0.9)
    again = mem.recall(QUESTION, recipe=SOFT, now=NOW).again(other)
    anew = mem.recall(QUESTION, recipe=other, now=NOW)
    assert [(hit.id, hit.score) for hit in again] == [(hit.id, hit.score) for hit in anew]


def test_the_score_of_a_leg_fused_by_its_scores_is_multiplied_too(mem: semmem.Semmem) -> None:
    recipe = semmem.recipe("convex", weights={"dense": 0}, period_floor=0.5)
    assert [hit.id for hit in mem.recall(QUESTION, recipe=recipe, now=NOW)] == ["b", "a"]


def test_periods_count_nothing_in_any_recipe_of_ours() -> None:
    assert {one.period_floor for one in semmem.RECIPES.values()} == {None}


@pytest.mark.parametrize("wrong", [-0.1, 1.1, "half", True])
def test_a_period_floor_is_a_number_from_0_to_1(wrong: object) -> None:
    with pytest.raises(InvalidInput, match="period_floor"):
        semmem.recipe("default", period_floor=wrong)  # type: ignore[arg-type]


def test_without_data_all_is_assumed_to_be_of_one_period_and_the_worst_case_knows_the_floor() -> None:
    plain = semmem.recipe("hybrid", prior=False)
    soft = semmem.recipe(plain, period_floor=0.7)
    at = {name: semmem.reach(one, 10).regimes["any"].legs["dense"] for name, one in (("plain", plain), ("soft", soft))}
    assert at["plain"].class_with_prior == at["plain"].class_ == at["soft"].class_ == "possible"
    assert at["soft"].class_with_prior == "boost-only"  # .7/61 does not reach 1/70
