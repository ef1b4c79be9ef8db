"""Statements 1 to 6 of our origins: the search package of memini, each with numbers worked out by hand."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from semmem.fusion import fuse as fuse_by_leg
from semmem.list_fusion import ALPHA, Entry, composite_terms, dedup, fuse, fuse_scores, rerank
from semmem.model.recipe import RECIPES

NOW = datetime(2026, 1, 31, tzinfo=UTC)


def entries(*ids: str) -> list[Entry]:
    return [Entry(id) for id in ids]


def shown(fused: list[Entry]) -> list[tuple[str, float]]:
    return [(entry.id, entry.score) for entry in fused]


def test_1_fuse_adds_one_over_five_plus_the_rank_from_zero_one_entry_an_id_best_first() -> None:
    fused = fuse([entries("a", "b"), entries("b", "c")], limit=2)
    # b: 1/6 + 1/5 = .3667; a: 1/5 = .2; c: 1/6 = .1667, past the limit
    assert shown(fused) == [("b", pytest.approx(11 / 30)), ("a", pytest.approx(0.2))]


def test_1_equal_scores_stay_in_the_order_in_which_they_were_first_seen() -> None:
    assert shown(fuse([entries("z", "y"), entries("y", "z"), entries("a", "b")])) == [
        ("z", pytest.approx(11 / 30)),
        ("y", pytest.approx(11 / 30)),
        ("a", pytest.approx(0.2)),
        ("b", pytest.approx(1 / 6)),
    ]


def test_1_the_recipe_memini_is_the_same_in_ranks_from_one() -> None:
    words, vectors = ["a", "b", "c"], ["c", "d", "a"]
    recipe = RECIPES["memini"]
    theirs = dict(shown(fuse([entries(*words), entries(*vectors)])))
    ours = fuse_by_leg({"lexical": words, "dense": vectors}, recipe.weights, recipe.constants())
    # c: 1/(4 + 3) + 1/(4 + 1) = 1/(5 + 2) + 1/(5 + 0)
    assert theirs["c"] == pytest.approx(12 / 35)
    assert {f.key: f.score for f in ours} == pytest.approx(theirs, abs=1e-12)


def test_2_at_sixty_the_middling_in_both_beats_the_first_of_one_at_five_it_does_not() -> None:
    fillers = [[f"{leg}{i}" for i in range(1, 20)] for leg in "xy"]
    words = entries("first", *fillers[0], "middling")
    vectors = entries("second", *fillers[1], "middling")
    # 2/(60 + 20) = .0250 > 1/(60 + 0) = .0167; 2/(5 + 20) = .0800 < 1/(5 + 0) = .2000
    at_sixty = dict(shown(fuse([words, vectors], rank_constant=60)))
    at_five = dict(shown(fuse([words, vectors])))
    assert (at_sixty["middling"], at_sixty["first"]) == (pytest.approx(0.025), pytest.approx(1 / 60))
    assert (at_five["middling"], at_five["first"]) == (pytest.approx(0.08), pytest.approx(0.2))
    assert fuse([words, vectors], 1, rank_constant=60)[0].id == "middling"
    assert fuse([words, vectors], 1)[0].id == "first"


def test_3_fuse_scores_scales_each_list_so_that_its_best_is_one_and_its_worst_zero() -> None:
    words = [Entry("a", 9.0), Entry("b", 6.0), Entry("c", 3.0)]
    vectors = [Entry("b", 0.8), Entry("a", 0.3)]
    # a: 2 x 1 + 1 x 0 = 2; b: 2 x (6 - 3)/(9 - 3) + 1 x 1 = 2; c: 0. The second weight is missing, so 1
    assert shown(fuse_scores([words, vectors], [2.0])) == [("a", 2.0), ("b", 2.0), ("c", 0.0)]
    assert shown(fuse_scores([vectors, words], [1.0, 2.0])) == [("b", 2.0), ("a", 2.0), ("c", 0.0)]  # first seen
    assert shown(fuse_scores([words, vectors], [2.0], limit=1)) == [("a", 2.0)]
    assert len(fuse_scores([words, vectors], limit=-1)) == 3


def test_3_what_stands_out_in_one_list_beats_what_is_middling_in_both() -> None:
    words = [Entry("outstanding", 100.0), Entry("m", 5.0), Entry("x", 4.0), Entry("low", 0.0)]
    vectors = [Entry("y", 1.0), Entry("m", 0.5), Entry("z", 0.4), Entry("low", 0.0)]
    # outstanding: 1; m: .05 + .5 = .55; by rank at 5 it is the other way round: 1/5 = .2 < 2/6 = .333
    fused = dict(shown(fuse_scores([words, vectors])))
    assert (fused["outstanding"], fused["m"]) == (1.0, pytest.approx(0.55))
    assert fuse([words, vectors])[0].id == "m"


@pytest.mark.parametrize("scores", [[0.3], [0.3, 0.3, 0.3], [0.0, 0.0]])
def test_3_one_entry_or_all_equal_score_one(scores: list[float]) -> None:
    assert [e.score for e in fuse_scores([[Entry(f"m{i}", s) for i, s in enumerate(scores)]])] == [1.0] * len(scores)


def test_4_the_share_of_the_vector_leg_is_a_half_and_that_of_the_keyword_leg_the_rest() -> None:
    assert ALPHA == 0.5
    vectors, words = [Entry("v", 0.9), Entry("b", 0.1)], [Entry("w", 7.0), Entry("b", 1.0)]
    assert dict(shown(fuse_scores([vectors, words], [ALPHA, 1 - ALPHA]))) == {"v": 0.5, "w": 0.5, "b": 0.0}
    assert dict(RECIPES["convex"].weights) == {"dense": ALPHA, "lexical": 1 - ALPHA}
    assert RECIPES["convex"].fusion == "convex"


def test_5_dedup_drops_what_reads_the_same_as_an_earlier_one_and_keeps_the_order() -> None:
    results = [
        Entry("a", text="The planner  was killed."),
        Entry("b", text="Another"),
        Entry("c", text=" the planner was KILLED."),
        Entry("d", text="A third"),
    ]
    assert [e.id for e in dedup(results)] == ["a", "b", "d"]
    assert [e.id for e in dedup(results, limit=0)] == ["a", "b", "d"]
    assert [e.id for e in dedup(results, limit=2)] == ["a", "b"]


def test_6_rerank_weighs_relevance_recency_of_access_and_importance() -> None:
    month = timedelta(days=30)
    results = [
        Entry("old", 0.4, importance=0.0, accessed_at=NOW - month),
        Entry("fresh", 0.2, importance=1.0, accessed_at=NOW),
        Entry("never", 0.1, importance=0.4),
    ]
    # old: .8 x 1 + .05 x 1/2 + 0 = .825; fresh: .8 x .5 + .05 + .15 = .6; never: .8 x .25 + 0 + .15 x .4 = .26
    assert shown(rerank(results, NOW)) == [
        ("old", pytest.approx(0.825)),
        ("fresh", pytest.approx(0.6)),
        ("never", pytest.approx(0.26)),
    ]
    # all weight on importance turns it round
    assert [e.id for e in rerank(results, NOW, weights=(0.0, 0.0, 1.0))] == ["fresh", "never", "old"]


def test_6_equal_composites_keep_their_order_and_the_time_is_an_argument() -> None:
    results = [Entry("z", 1.0, accessed_at=NOW), Entry("a", 1.0, accessed_at=NOW)]
    assert [e.id for e in rerank(results, NOW)] == ["z", "a"]
    later = rerank(results, NOW + timedelta(days=60))
    # .8 + .05 x 1/4 + .15 x .5 = .8875 two half-lives later
    assert [e.score for e in later] == [pytest.approx(0.8875)] * 2


def test_what_lies_outside_its_range_counts_as_its_end() -> None:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    (terms,) = composite_terms([1.0], [now + timedelta(days=300)], [7.0], now, (0.0, 1.0, 1.0))
    # an access to come is one of now, and importance is at most 1
    assert terms == {"relevance": 0.0, "recency": 1.0, "importance": 1.0}
    (terms,) = composite_terms([1.0], [now], [-7.0], now, (0.0, 1.0, 1.0))
    assert terms["importance"] == 0.0
