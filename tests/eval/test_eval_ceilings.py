"""Ceilings, pre-flight, turnover and linkage, each on a case small enough to see through."""

from __future__ import annotations

import numpy as np

from eval.baselines import bm25s_run, overlap_run, random_run
from eval.datasets import Corpus, Query
from eval.experiments.conditions import named
from eval.experiments.lists import Asked, Key
from eval.experiments.turnover import turnover
from eval.statistics.ceilings import ceilings, dominated
from eval.statistics.linkage import linkage
from eval.statistics.preflight import leg_only, preflight, standing
from eval.statistics.verdict import judge
from semmem.model.recipe import RECIPES, Recipe

TWO = Recipe("two", {"lexical": 1.0, "dense": 1.0}, {"lexical": 60.0, "dense": 60.0}, prior=False)


def keys(*ids: str) -> list[tuple[Key, float]]:
    return [((id, 0), 10.0 - i) for i, id in enumerate(ids)]


def test_a_memory_beaten_in_every_leg_is_counted_against_each_that_beats_it() -> None:
    inf = np.inf
    # a (1, 1) beats all; b (2, -) and c (-, 2) do not beat each other; d (3, 3) is beaten by a alone
    ranks = np.array([[1, 1], [2, inf], [inf, 2], [3, 3]])
    assert dominated(ranks).tolist() == [0, 1, 1, 1]
    assert dominated(np.zeros((0, 2))).tolist() == []


def test_two_memories_of_the_same_ranks_do_not_dominate_each_other() -> None:
    assert dominated(np.array([[1.0, np.inf], [1.0, np.inf]])).tolist() == [0, 0]


def test_the_ceilings_of_three_questions_by_hand() -> None:
    asked = {
        # gold at lexical 1 and dense nowhere: any weight on lexical alone finds it at k = 1
        "one": Asked("one", "any", {"lexical": keys("g", "x"), "dense": keys("x", "y")}),
        # gold at dense 1 alone: needs the dense leg
        "two": Asked("two", "any", {"lexical": keys("x", "y"), "dense": keys("g", "x")}),
        # gold in no list at all
        "three": Asked("three", "any", {"lexical": keys("x"), "dense": keys("x")}),
    }
    queries = [Query(id, "?", "n", ("g",)) for id in asked]
    at = ceilings(TWO, queries, asked, 1)
    assert at.union == 2 / 3
    # g is beaten by nobody in both legs in the first two
    assert at.undominated == 2 / 3
    # lexical alone finds the first, dense alone the second; no single setting finds both: x has 1/62 + 1/61 at .5/.5
    assert at.oracle == 2 / 3
    assert at.single == 1 / 3
    assert at.as_set == 0.0


def test_what_only_one_leg_returned_is_counted_within_its_depth() -> None:
    lists = Asked("q", "any", {"lexical": keys("a", "b"), "dense": keys("b"), "graph": keys("c", "a", "d")})
    assert leg_only(RECIPES["seed"], "graph", lists) == {"c", "d"}
    assert leg_only(RECIPES["hybrid"], "lexical", lists) == {"a"}


def test_preflight_says_reach_depth_and_emptiness_of_every_leg() -> None:
    queries = [Query("q", "?", "n", ("a",)), Query("r", "?", "n", ("a",))]
    asked = {
        "q": Asked("q", "named", {"lexical": keys("a"), "dense": keys("b", "a"), "graph": keys("a", "c")}),
        "r": Asked("r", "unnamed", {"lexical": (), "dense": keys("b", "a"), "graph": keys("c")}),
    }
    facts = preflight(named("seed"), queries, asked, {"n": 500})
    assert facts["reach"]["10"] == {"any": {"lexical": "possible", "dense": "possible", "graph": "boost-only"}}
    assert facts["legs"]["lexical"]["empty"] == 0.5
    assert facts["legs"]["graph"]["memories only it returned"] == 2
    assert facts["legs"]["dense"]["returns the whole scope"] is False
    assert facts["vacuous"] == {"1": 0.0, "2": 0.0, "5": 0.0, "10": 0.0, "20": 0.0}
    assert all(facts["witness holds"].values())
    # q: a is a seed, c at rank 2 is not; r: c at rank 1. The median is 1.5.
    assert facts["rank of the first memory that was no seed"] == 1.5


def test_a_scope_no_larger_than_k_makes_the_metric_vacuous() -> None:
    queries = [Query("q", "?", "n", ("a",))]
    asked = {"q": Asked("q", "any", {"lexical": keys("a"), "dense": keys("a")})}
    at = standing(named("hybrid"), named("hybrid"), None, 10, queries, asked, asked, {"n": 10})
    assert (
        judge(at, None).sentence
        == "not evaluable: k = 10 is not below the number of candidates for 100% of the questions"
    )


def test_a_leg_that_failed_was_not_measured() -> None:
    queries = [Query("q", "?", "n", ("a",))]
    asked = {"q": Asked("q", "any", {"lexical": keys("a")}, degraded={"dense": "no answer within 10 s"})}
    at = standing(named("hybrid"), named("lexical"), None, 10, queries, asked, asked, {"n": 500})
    assert judge(at, None).sentence == "not evaluable: dense could not answer 1 of 1 question (no answer within 10 s)"
    alone = named("lexical")
    assert standing(alone, alone, None, 10, queries, asked, asked, {"n": 500}).degraded is None


def test_turnover_counts_what_came_and_went_and_the_gold_among_it() -> None:
    query = Query("q", "?", "n", ("g", "b"))
    counts = turnover([query], {"q": ["a", "b"]}, {"q": ["g", "c"]}, 2, own={"q": {"g", "h"}})
    assert counts == {
        "leg-only": 1,
        "leg-only gold": 1,
        "boosted in": 1,
        "boosted in gold": 0,
        "demoted out": 2,
        "demoted out gold": 1,
    }


def corpus() -> Corpus:
    texts = {
        "a": "Pellworm uses the Heron box.",
        "b": "The Heron box runs on Tern.",
        "c": "Lunch is at noon today.",
        "d": "Nobody likes lukewarm soup.",
    }
    memories = tuple({"namespace": "n", "id": id, "text": text} for id, text in texts.items())
    queries = (
        Query("q", "Which box does Pellworm use?", "n", ("a", "b")),
        Query("r", "When is lunch?", "n", ("c", "d")),
    )
    return Corpus("tiny", memories, queries)


def test_gold_memories_that_share_a_name_are_linked_and_others_are_not() -> None:
    at = linkage(corpus())["headline"]
    assert (at.questions, at.pairs, at.linked, at.concept, at.neighbour) == (2, 2, 1, 1, 0)
    assert at.share == 0.5


def test_a_hub_links_nothing() -> None:
    assert linkage(corpus(), max_df=1)["headline"].linked == 0


def test_the_baselines_rank_by_overlap_by_bm25_and_by_chance() -> None:
    assert overlap_run(corpus())["q"][0] == "a"  # which, box, does, pellworm: box and pellworm are in a, box in b
    assert overlap_run(corpus())["q"][1] == "b"
    assert bm25s_run(corpus())["r"] == ["c"]  # one memory has the word lunch; the rest score 0 and are no hits
    assert sorted(random_run(corpus())["q"]) == ["a", "b", "c", "d"]
    assert random_run(corpus()) == random_run(corpus())
