"""Verdicts: refusals come before numbers, and a refused comparison carries none."""

from __future__ import annotations

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
    import dataclasses

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
def test_a_refused_comparison_gives_its_reason_and_no_number(standing: Standing, kind: str, words: str) -> None:
    verdict = judge(standing, GOOD)
    assert (verdict.kind, verdict.refused, verdict.paired) == (kind, True, None)
    assert words in verdict.sentence
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
