"""The shares that the places of a data set earned bound the reach of a fusion that reads scores."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import pytest
from typer.testing import CliRunner

from eval.cli import app
from eval.experiments.lists import Asked, Key
from eval.experiments.seen_shares import ranges_of
from semmem.model.recipe import recipe
from semmem.rank_cap import reach
from semmem.rank_cap.score_ranges import ShareRange

TOY = Path(__file__).resolve().parents[2] / "eval" / "data" / "toy"


def pairs(*scores: float) -> list[tuple[Key, float]]:
    return [((f"m{i}", 0), score) for i, score in enumerate(scores)]


def test_each_place_is_bounded_by_what_it_earned_over_the_questions() -> None:
    plan = recipe("convex", depths={"lexical": 3, "dense": 3})
    asked = [
        Asked("one", "any", {"lexical": pairs(10.0, 8.0, 6.0, 5.0), "dense": pairs(0.9, 0.5, 0.1)}),
        Asked("two", "any", {"lexical": pairs(4.0, 2.0, 0.0), "dense": pairs(0.8, 0.7, 0.6)}),
        Asked("three", "any", {"lexical": [], "dense": pairs(0.5)}),
    ]
    # of three places of "one" the lexical ones earn 1, .5 and 0: its fourth is below the depth
    assert ranges_of(plan, asked)["lexical"] == ShareRange((1.0, 0.5, 0.0), (1.0, 0.5, 0.0))
    dense = ranges_of(plan, asked)["dense"]
    assert (dense.least, [round(share, 9) for share in dense.most]) == ((1.0, 0.0, 0.0), [1.0, 0.5, 0.0])
    assert ranges_of(recipe("hybrid"), asked) == {}


def test_a_leg_by_rank_has_no_range_and_the_best_possible_lexical_score_is_known() -> None:
    plan = recipe("scored", weights={"lexical": 1.0, "dense": 1.0, "graph": 0.5})
    asked = [
        Asked("q", "named", {"lexical": pairs(5.0, 0.5), "graph": pairs(1.0, 0.5)}, most={"lexical": 40.0}),
    ]
    assert ranges_of(plan, asked) == {"lexical": ShareRange((0.25, 0.025), (0.25, 0.025))}
    at = reach(plan, 1, ranges=ranges_of(plan, asked)).regimes["named"].legs["lexical"]
    assert at.value == Fraction(1, 4)


@pytest.mark.slow
def test_the_command_asks_a_data_set_and_names_the_assumption() -> None:
    done = CliRunner().invoke(app, ["reach", "convex", "--data", str(TOY), "--json"])
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert found["assumptions"][-1] == "scores within their ranges"
    bare = json.loads(CliRunner().invoke(app, ["reach", "convex", "--json"]).stdout)
    dense, before = (of["regimes"]["any"]["legs"]["dense"] for of in (found, bare))
    assert dense["upper_bar"] < before["upper_bar"] == 1.0


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["default"], "fuses by rank, so its reach needs no data set; leave out --data"),
        (["convex", "--system", "mem0"], "--data is for a recipe of semmem"),
    ],
)
def test_a_data_set_is_refused_where_it_says_nothing(words: list[str], sentence: str) -> None:
    done = CliRunner().invoke(app, ["reach", *words, "--data", str(TOY)])
    assert done.exit_code == 2
    assert sentence in " ".join(done.stderr.split())
