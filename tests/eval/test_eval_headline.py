"""The first sentence of a report, on results that are committed: chosen before any number, and nothing left unsaid."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from eval.reports.summary import headline, markdown

RESULTS = Path(__file__).resolve().parents[2] / "eval" / "results"


def result(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))
    return found


@pytest.mark.parametrize("name", ["agentnotes_a-fusions", "musique100-fusions", "hotpotqa100-recipes"])
def test_the_headline_is_what_was_asked_first_however_large_the_other_differences_are(name: str) -> None:
    told = result(name)
    first, *others = [
        c for c in told["comparisons"] if (c["group"], c["metric"]) == ("headline", told["metrics"][0])
    ]  # fmt: skip
    assert max(abs(c["paired"]["delta"]) for c in others if "paired" in c) > abs(first["paired"]["delta"])
    assert f"{first['other']} instead of {first['base']}" in headline(told)
    at = first["paired"]
    at["delta"] = -at["delta"]  # whichever way it went
    assert f"{first['other']} instead of {first['base']}" in headline(told)


def test_a_comparison_with_a_formula_that_nobody_tuned_says_so_in_the_headline() -> None:
    told = result("agentnotes_a-fusions")
    assert headline(told).endswith("Not tuned as rrf was: rank-scaled.)")
    assert "Not tuned" not in headline(result("agentnotes_a-graph"))


def test_a_leg_that_found_nothing_is_not_told_as_one_whose_finds_are_kept_out() -> None:
    told = result("hotpotqa100-legs")
    told["comparisons"] = [c for c in told["comparisons"] if (c["leg"], c["metric"]) == ("lexical", "R@10")]
    assert headline(told).startswith(
        "On hotpotqa100, arithmetic keeps all finds of the lexical leg in default out of the first 10, so they cannot "
        "be judged. By its votes and seeds it changes the share"
    )
    for comparison in told["comparisons"]:
        comparison["finds"] = {"k": 10, "seeds": False, "parts": []}
    assert headline(told).startswith(
        "On hotpotqa100, the lexical leg in default found nothing that is not in a list without it, so no find can be "
        "judged. By its votes it changes the share"
    )


def test_an_interval_of_nineteen_clusters_is_called_approximate_and_one_of_twenty_is_not() -> None:
    told = result("harbour-controls")
    first = next(c for c in told["comparisons"] if (c["group"], c["metric"]) == ("headline", told["metrics"][0]))
    for units, approximate in ((19, True), (20, False)):
        first["paired"]["units"] = units
        assert ("approximate 95 % interval" in headline(told)) == approximate


def test_an_approximate_interval_that_separates_nothing_is_called_so_too() -> None:
    told = result("harbour-legs")
    told["comparisons"] = [c for c in told["comparisons"] if (c["name"], c["metric"]) == ("dense in default", "R@10")]
    first = next(c for c in told["comparisons"] if c["group"] == "headline")
    for units, words in (
        (19, "+0.150 [+0.045, +0.278] (approximate) over 40"),
        (20, "+0.150 [+0.045, +0.278] over 40"),
    ):
        first["paired"]["units"] = units
        assert words in headline(told)
        assert "the true difference may lie between -0.278 and +0.278" in headline(told)


def test_a_result_with_vectors_that_know_no_meaning_says_so_in_the_headline() -> None:
    told = result("harbour-controls")
    assert "meaning" not in headline(told)
    told["environment"]["embedder"] = "hashing"
    assert headline(told).endswith("The dense leg had vectors of the hashing embedder, which knows no meaning.)")


@pytest.mark.parametrize(
    ("name", "formulas"),
    [
        ("agentnotes_a-fusions", "convex, rank-scaled, scored, tm2c2 got no such effort"),
        ("agentnotes_a-controls", "convex got no such effort"),
        ("agentnotes_a-weights", None),
    ],
)
def test_a_report_names_the_formulas_that_got_less_effort_than_the_default(name: str, formulas: str | None) -> None:
    said = markdown(result(name))
    assert ("got no such effort" in said) == (formulas is not None)
    assert formulas is None or formulas in said
    assert "Of the project: tuning set" in said or "Of the project: written for this project" in said
