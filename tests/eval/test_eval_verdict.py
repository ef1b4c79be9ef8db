"""Verdicts: refusals come before numbers, and a refused comparison carries none."""

from __future__ import annotations

import dataclasses
import json
import re

import numpy as np
import pytest

from eval.reports.verdicts import WIDTH, lines
from eval.statistics.finds import Finds, Part
from eval.statistics.significance import Paired, paired
from eval.statistics.verdict import Standing, Verdict, bounds, judge, kind_of, numbers, questions_to_show

GOOD: Paired = paired(np.zeros(40), np.repeat([1.0, 0.0], [20, 20]))
BAD: Paired = paired(np.repeat([1.0, 0.0], [20, 20]), np.zeros(40))
NONE: Paired = paired(np.repeat([1.0, 0.0], [3, 37]), np.repeat([0.0, 1.0], [37, 3]))
OPEN = Standing(k=10, leg="graph", reach={"named": "guaranteed", "unnamed": "possible"})


def found(leg: str, *parts: tuple[str, int, int], seeds: bool = False) -> Finds:
    """Return finds of ``leg`` alone: class, how many, and how many of them are in the first ten."""
    return Finds(leg, 10, seeds, tuple(Part((leg,), class_, n, entered, 0, 0) for class_, n, entered in parts))  # type: ignore[arg-type]


def test_a_significant_gain_helps_and_a_significant_loss_hurts() -> None:
    assert judge(OPEN, GOOD).kind == "helps"
    assert judge(OPEN, BAD).kind == "hurts"
    assert judge(OPEN, GOOD, metric="R@5").sentence.startswith("helps: R@5 +.500 [+.3")


def test_one_question_in_one_cluster_is_counted_in_the_singular() -> None:
    one = Paired(1, 0.5, 1.0, 0.5, None, None, None, None, 1, 0, 0, None, 1)
    assert numbers(one) == "+.500, 1 question, won 1, lost 0; no interval"
    two = dataclasses.replace(one, n=2)
    assert numbers(two) == "+.500, 2 questions in 1 cluster, won 1, lost 0; no interval"


def test_what_is_not_separated_says_how_many_questions_would_show_five_hundredths() -> None:
    # forty questions that show .2 show a quarter of that with sixteen times as many
    assert questions_to_show(dataclasses.replace(NONE, mde=0.2)) == 640
    verdict = judge(OPEN, dataclasses.replace(NONE, mde=0.2, low=-0.2, high=0.2), metric="R@10")
    assert verdict.kind == "not separated"
    assert verdict.sentence == ("not separated: 640 questions needed for .05: R@10 +.000 [-.200, +.200], won 3, lost 3")


def test_a_difference_that_may_be_there_stays_within_the_measure() -> None:
    at = {"mde": 1.132, "low": -0.1, "high": 0.3, "base": 0.9}
    assert bounds({**at, "high": 0.08}) == pytest.approx((-0.9, 0.1))
    assert bounds({**at, "mde": 0.05, "base": 0.5}) == pytest.approx((-0.3, 0.3))


def test_a_difference_that_may_be_there_is_never_narrower_than_the_interval_beside_it() -> None:
    # 1 less the base is .254, and the interval ends at .278: another sample of questions has another base
    at = {"mde": 0.225, "low": 0.045, "high": 0.278, "base": 0.746}
    assert bounds(at) == pytest.approx((-0.278, 0.278))
    # in the other direction: the interval begins .215 below a base of .174
    assert bounds({"mde": 0.1, "low": -0.215, "high": -0.014, "base": 0.174}) == pytest.approx((-0.215, 0.215))


def test_six_won_and_none_lost_is_not_called_no_difference() -> None:
    # harbour's dense leg: the interval is above 0, and Holm's p over all that was asked is not below .05
    at = dataclasses.replace(GOOD, delta=0.15, low=0.048, high=0.278, p_holm=0.19, won=6, tied=34, lost=0, mde=0.225)
    sentence = judge(OPEN, at, metric="R@10").sentence
    assert sentence == "not separated: 810 questions needed for .05: R@10 +.150 [+.048, +.278], won 6, lost 0"


def test_no_verdict_takes_more_than_a_hundred_columns() -> None:
    wide = dataclasses.replace(NONE, n=9_999, mde=0.056, delta=-0.123, low=-0.123, high=0.123, won=999, lost=999)
    few = dataclasses.replace(wide, units=19, n=999, mde=0.15, won=499, lost=500)  # its interval is approximate
    for at in (wide, few, dataclasses.replace(wide, p_holm=0.0123), dataclasses.replace(wide, p_holm=None, units=3)):
        sentence = judge(OPEN, at, metric="AllGold@10").sentence
        assert len(f"  {sentence}") <= WIDTH, sentence


def test_results_of_former_versions_are_read_in_the_words_of_today() -> None:
    told = [kind_of({"verdict": word}) for word in ("no difference", "re-ranking only", "helps")]
    assert told == ["not separated", "ruled out", "helps"]


def test_holms_p_decides_and_not_the_raw_one() -> None:
    corrected = dataclasses.replace(GOOD, p=0.001, p_holm=0.2)
    assert judge(OPEN, corrected).kind == "not separated"


@pytest.mark.parametrize(
    ("standing", "kind", "words"),
    [
        (Standing(10, "graph", {"any": "boost-only"}), "ruled out", "boost-only at k = 10"),
        (Standing(10, "graph", {"a": "boost-only", "b": "unreachable"}), "ruled out", "boost-only"),
        (Standing(10, "graph", {"any": "unreachable"}), "not evaluable", "it is off, found nothing, or nothing"),
        (Standing(10, "graph", {"any": "possible"}, empty=0.6), "not evaluable", "graph is empty for 60%"),
        (Standing(50, None, vacuous=1.0), "not evaluable", "k = 50 is not below the number of candidates for 100%"),
        (Standing(10, "graph", {"any": "guaranteed"}, finds=found("graph")), "ruled out", "graph found nothing that"),
        (
            # its first place is guaranteed, and none of its own finds stands there
            Standing(10, "lexical", {"any": "guaranteed"}, finds=found("lexical", ("boost-only", 44, 0), seeds=True)),
            "ruled out",
            "arithmetic keeps all 44 finds of lexical out of the first 10",
        ),
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
    if kind == "ruled out":
        # what its votes change is a finding of its own, under its own name
        assert verdict.reranking == GOOD
        assert set(verdict.as_dict()) == {"verdict", "sentence", "notes", "reranking"}
        return
    # not a delta, not an interval, not a p value: nothing of GOOD may leak into what is printed
    printed = json.dumps(verdict.as_dict())
    assert not re.search(r"[+-]\d|0\.\d", printed)
    assert set(verdict.as_dict()) == {"verdict", "sentence", "notes"}


def test_a_leg_that_can_matter_in_one_regime_is_judged_and_the_regimes_are_noted() -> None:
    verdict = judge(Standing(10, "graph", {"named": "possible", "unnamed": "boost-only"}), GOOD)
    assert verdict.kind == "helps"
    assert verdict.notes == ("reach of graph: named possible, unnamed boost-only",)


def test_a_condition_that_studies_no_leg_needs_no_reach() -> None:
    assert judge(Standing(10), GOOD).kind == "helps"


def test_a_verdict_cannot_be_built_with_a_number_beside_a_refusal() -> None:
    with pytest.raises(ValueError, match="no statistics"):
        Verdict("not evaluable", "x", GOOD)
    with pytest.raises(ValueError, match="no statistics"):
        Verdict("helps", "x", None)
    with pytest.raises(ValueError, match="none of whose finds can enter"):
        Verdict("not evaluable", "x", None, reranking=GOOD)


def test_a_loss_that_holm_does_not_leave_is_no_loss() -> None:
    assert judge(OPEN, dataclasses.replace(BAD, p=0.001, p_holm=0.2)).kind == "not separated"
    assert judge(OPEN, dataclasses.replace(BAD, p=0.2, p_holm=0.001)).kind == "hurts"


def test_where_no_question_differs_there_is_no_interval_and_a_number_of_questions_all_the_same() -> None:
    # the detectable effect of a hundred is .0494, and 100 (.0494 / .05)² = 97.7
    verdict = judge(OPEN, paired(np.zeros(100), np.zeros(100)))
    assert verdict.sentence == (
        "not separated: 98 questions needed for .05: the metric +.000, no interval: no question differs"
    )


def test_three_conversations_are_described_and_nothing_is_inferred_from_them() -> None:
    base, other = np.zeros(9), np.array([1, 0, 0, 1, 1, 0, 0, 0, 0], dtype=float)
    verdict = judge(OPEN, paired(base, other, clusters=list("aaabbbccc")), metric="R@10")
    assert verdict.kind == "described only"
    assert not verdict.refused
    assert verdict.sentence == ("described only: R@10 +.333, 9 questions in 3 clusters, won 3, lost 0; no interval")


def test_eight_clusters_are_described_where_no_effect_of_theirs_could_pass_the_correction() -> None:
    # the least p of eight is 2/256 = .0078; over seven tests it is .055, so nothing could be found and nothing denied
    at = paired(np.zeros(8), np.array([1, 1, 1, 1, 1, 1, 1, 0.5]), alpha=0.05 / 7)
    verdict = judge(OPEN, dataclasses.replace(at, p_holm=0.0547), metric="R@10")
    assert verdict.kind == "described only"
    assert verdict.sentence == "described only: R@10 +.938 ~[+.750, +1.000], won 8, lost 0"


def test_a_leg_that_may_enter_and_did_not_is_judged_and_the_reader_is_told() -> None:
    at = dataclasses.replace(OPEN, reach={"any": "possible"}, finds=found("graph", ("possible", 12, 0)), questions=40)
    assert judge(at, GOOD).notes == ("none of the 12 finds of graph is in the first 10, though some may be",)
    assert judge(dataclasses.replace(at, finds=found("graph", ("possible", 12, 1))), GOOD).notes == ()


def test_a_leg_with_seeds_is_judged_by_them_and_never_called_an_order() -> None:
    # nothing of its own, and yet the graph walks from its heads: nothing rules out what that brings
    verdict = judge(Standing(10, "dense", {"any": "possible"}, finds=found("dense", seeds=True)), GOOD)
    assert verdict.kind == "helps"
    assert verdict.notes == ("dense gives the graph its seeds, so its finds also come by the graph",)
    assert "order" not in verdict.sentence


def test_a_reason_that_holds_for_every_metric_stands_there_once_and_what_was_found_beside_it() -> None:
    at = Standing(10, "lexical", {"any": "guaranteed"}, finds=found("lexical", ("boost-only", 44, 0), seeds=True))
    rows = [
        {"name": "lexical in default", "leg": "lexical", "metric": metric, "finds": at.finds.as_dict()}  # type: ignore[union-attr]
        | judge(at, GOOD, metric=metric).as_dict()
        for metric in ("R@10", "nDCG@10")
    ]
    told = lines(rows)
    assert told[:2] == [
        "lexical in default",
        "  ruled out: arithmetic keeps all 44 finds of lexical out of the first 10",
    ]
    assert told[2].startswith("  by its votes and seeds: R@10 +.500 [")
    assert told[3].startswith("  by its votes and seeds: nDCG@10 +.500 [")
    assert told[4:] == [
        "  lexical gives the graph its seeds, so its finds also come by the graph",
        "  found by       class at its rank     found  gold  in the first 10  gold",
        "  lexical alone  boost-only         44 of 44     0                0     0",
        "  of 44 finds arithmetic guarantees 0 a place, may let in 0, keeps out 44",
    ]
