"""Verdicts: refusals come before numbers, and a refused comparison carries none."""

from __future__ import annotations

import dataclasses
import json
import re

import numpy as np
import pytest

from eval.statistics.significance import Paired, paired
from eval.statistics.verdict import Standing, Verdict, judge

GOOD: Paired = paired(np.zeros(40), np.repeat([1.0, 0.0], [20, 20]))
BAD: Paired = paired(np.repeat([1.0, 0.0], [20, 20]), np.zeros(40))
NONE: Paired = paired(np.repeat([1.0, 0.0], [3, 37]), np.repeat([0.0, 1.0], [37, 3]))
OPEN = Standing(k=10, leg="graph", reach={"named": "guaranteed", "unnamed": "possible"}, leg_only=89)


def test_a_significant_gain_helps_and_a_significant_loss_hurts() -> None:
    assert judge(OPEN, GOOD).kind == "helps"
    assert judge(OPEN, BAD).kind == "hurts"
    assert judge(OPEN, GOOD, metric="R@5").sentence.startswith("helps: R@5 +0.500 [+0.3")


def test_a_null_says_how_large_a_difference_it_could_have_missed() -> None:
    verdict = judge(OPEN, NONE)
    assert verdict.kind == "no difference"
    bound = float(re.match(r"no difference larger than (\d\.\d+)", verdict.sentence)[1])  # type: ignore[index]
    assert bound >= round(max(NONE.mde, abs(NONE.low), abs(NONE.high)), 3)
    assert "minimum detectable effect" in verdict.sentence


def test_holms_p_decides_and_not_the_raw_one() -> None:
    corrected = dataclasses.replace(GOOD, p=0.001, p_holm=0.2)
    assert judge(OPEN, corrected).kind == "no difference"


@pytest.mark.parametrize(
    ("standing", "kind", "words"),
    [
        (Standing(10, "graph", {"any": "boost-only"}), "re-ranking only", "boost-only at k = 10"),
        (Standing(10, "graph", {"a": "boost-only", "b": "unreachable"}), "re-ranking only", "boost-only"),
        (Standing(10, "graph", {"any": "unreachable"}), "not evaluable", "graph is unreachable at k = 10"),
        (Standing(10, "graph", {"any": "possible"}, empty=0.6), "not evaluable", "graph is empty for 60%"),
        (Standing(50, None, vacuous=1.0), "not evaluable", "k = 50 is not below the number of candidates for 100%"),
        (Standing(10, "graph", {"any": "guaranteed"}, leg_only=0), "re-ranking only", "no memory that another leg"),
        (
            Standing(10, "graph", {"any": "possible"}, dropped="the base set"),
            "not evaluable",
            "the base set drops every memory that only graph found",
        ),
    ],
)
def test_a_refused_comparison_gives_its_reason_and_no_finding(standing: Standing, kind: str, words: str) -> None:
    verdict = judge(standing, GOOD)
    assert (verdict.kind, verdict.refused, verdict.paired) == (kind, True, None)
    assert words in verdict.sentence
    if kind == "re-ranking only":
        # what the leg does to the order is a finding of its own, under its own name
        assert verdict.reranking == GOOD
        assert "what it does to the order: the metric +0.500 [+0.3" in verdict.sentence
        assert set(verdict.as_dict()) == {"verdict", "sentence", "notes", "reranking"}
        return
    # not a delta, not an interval, not a p value: nothing of GOOD may leak into what is printed
    printed = json.dumps(verdict.as_dict())
    assert not re.search(r"[+-]\d|0\.\d", printed)
    assert set(verdict.as_dict()) == {"verdict", "sentence", "notes"}


def test_a_leg_that_can_matter_in_one_regime_is_judged_and_the_regimes_are_noted() -> None:
    verdict = judge(Standing(10, "graph", {"named": "possible", "unnamed": "boost-only"}, leg_only=3), GOOD)
    assert verdict.kind == "helps"
    assert verdict.notes == ("reach of graph: named possible, unnamed boost-only",)


def test_a_condition_that_studies_no_leg_needs_no_reach() -> None:
    assert judge(Standing(10), GOOD).kind == "helps"


def test_a_verdict_cannot_be_built_with_a_number_beside_a_refusal() -> None:
    with pytest.raises(ValueError, match="no statistics"):
        Verdict("not evaluable", "x", GOOD)
    with pytest.raises(ValueError, match="no statistics"):
        Verdict("helps", "x", None)
    with pytest.raises(ValueError, match="can do nothing else"):
        Verdict("not evaluable", "x", None, reranking=GOOD)


def test_a_loss_that_holm_does_not_leave_is_no_loss() -> None:
    assert judge(OPEN, dataclasses.replace(BAD, p=0.001, p_holm=0.2)).kind == "no difference"
    assert judge(OPEN, dataclasses.replace(BAD, p=0.2, p_holm=0.001)).kind == "hurts"


def test_what_cannot_be_denied_is_the_far_end_of_the_interval_where_that_is_larger() -> None:
    far = dataclasses.replace(NONE, low=-0.31, high=0.02, mde=0.05)
    assert judge(OPEN, far).sentence.startswith("no difference larger than 0.310")
    assert judge(OPEN, dataclasses.replace(NONE, low=-0.01, high=0.27, mde=0.05)).sentence.startswith(
        "no difference larger than 0.270"
    )
    assert judge(OPEN, dataclasses.replace(NONE, mde=0.4)).sentence.startswith("no difference larger than 0.400")


def test_where_no_question_differs_there_is_no_interval_and_a_bound_all_the_same() -> None:
    verdict = judge(OPEN, paired(np.zeros(100), np.zeros(100)))
    assert verdict.sentence == (
        "no difference larger than 0.049: the metric +0.000, no interval: no question differs, "
        "minimum detectable effect 0.049 over 100 questions"
    )


def test_three_conversations_are_described_and_nothing_is_inferred_from_them() -> None:
    base, other = np.zeros(9), np.array([1, 0, 0, 1, 1, 0, 0, 0, 0], dtype=float)
    verdict = judge(OPEN, paired(base, other, clusters=list("aaabbbccc")), metric="R@10")
    assert verdict.kind == "described only"
    assert not verdict.refused
    assert verdict.sentence == (
        "described only: R@10 +0.333 over 9 questions in 3 clusters (+0.333, +0.667, +0.000), won 3, tied 6, lost 0; "
        "fewer than 8 of them, so there is no interval and nothing is said of others"
    )


def test_eight_clusters_are_described_where_no_effect_of_theirs_could_pass_the_correction() -> None:
    # the least p of eight is 2/256 = .0078; over seven tests it is .055, so nothing could be found and nothing denied
    at = paired(np.zeros(8), np.array([1, 1, 1, 1, 1, 1, 1, 0.5]), alpha=0.05 / 7)
    verdict = judge(OPEN, dataclasses.replace(at, p_holm=0.0547), metric="R@10")
    assert verdict.kind == "described only"
    assert verdict.sentence == (
        "described only: R@10 +0.938 [+0.750, +1.000] approximate, p = 0.0547, won 8, tied 0, lost 0; "
        "8 questions are too few for any effect to reach 0.05 among all that was asked"
    )


def test_a_leg_that_may_enter_and_did_not_is_said_to_have_changed_the_order() -> None:
    at = dataclasses.replace(OPEN, reach={"any": "possible"}, entered=0, boost_only=4, questions=40)
    assert judge(at, GOOD).notes == (
        "graph is boost-only for 4 of 40 questions",
        "nothing that only graph returned is in the first 10: what changed is the order",
    )
    assert judge(dataclasses.replace(at, entered=1, boost_only=0), GOOD).notes == ()
    # where it holds for every question it is the verdict, and no note
    assert judge(dataclasses.replace(at, entered=1, boost_only=40), GOOD).notes == ()
