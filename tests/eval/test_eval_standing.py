"""What is known of a comparison before its numbers: reach with the lists there are, and what contradicts it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from eval.cli import app
from eval.datasets import Query
from eval.experiments.conditions import Condition, named
from eval.experiments.fusion import fused_places
from eval.experiments.lists import Asked, Found, Key
from eval.statistics.clusters import clusters, described, unit
from eval.statistics.comparison import Comparison, ExperimentError, Lists, compare, idle
from eval.statistics.finds import Contradicted, new
from eval.statistics.measures import Measured
from eval.statistics.preflight import leg_only, preflight, standing, witness_holds
from eval.statistics.significance import paired
from eval.statistics.verdict import Standing, judge
from semmem.model.recipe import recipe
from semmem.rank_cap import reach

TOY = Path(__file__).resolve().parents[2] / "eval" / "data" / "toy"
SEED = Condition("seed", recipe("seed", prior=False))


def question(id: str = "q", namespace: str = "n", gold: Sequence[str] = ("g0",), **more: Any) -> Query:
    return Query(id, "?", namespace, tuple(gold), **more)


def keys(prefix: str, count: int, part: int = 0) -> list[tuple[Key, float]]:
    return [((f"{prefix}{i}", part), float(count - i)) for i in range(count)]


def asked(lexical: int = 40, dense: int = 40, graph: int = 40, id: str = "q") -> Asked:
    """Return lists in which no memory is found twice."""
    return Asked(id, "any", {"lexical": keys("l", lexical), "dense": keys("d", dense), "graph": keys("g", graph)})


def known(*lists: Asked, importance: Mapping[str, float] | None = None) -> dict[Key, Found]:
    all_keys = {key for one in lists for pairs in one.legs.values() for key, _ in pairs}
    return {key: Found((importance or {}).get(key[0], 0.5), f"{key[0]} {key[1]}") for key in all_keys}


BARE = Condition("seed~graph", recipe("hybrid", name="seed~graph", prior=False))


def judged(
    lists: Asked, memories: Mapping[Key, Found], holder: Condition = SEED, k: int = 10, leg: str = "graph",
    without: Condition = BARE, lacking: Asked | None = None, gold: Sequence[str] = ("g0",),
) -> Standing:  # fmt: skip
    """Return the standing of ``leg`` in ``holder``; ``lacking`` are the lists of ``without``, by default the same."""
    run = {lists.id: fused_places(holder.recipe, lists, memories).places}
    return standing(
        holder, without, leg, k, [question(gold=gold)], {lists.id: lists}, {lists.id: lacking or lists}, {"n": 500},
        found={"n": memories}, run=run,
    )  # fmt: skip


def counted(at: Standing) -> dict[tuple[tuple[str, ...], str], tuple[int, int, int, int]]:
    """Return found, entered, gold and gold that entered of the finds, by legs and class."""
    assert at.finds is not None
    return {(p.by, p.class_): (p.found, p.entered, p.gold, p.gold_entered) for p in at.finds.parts}


def test_with_long_lists_the_lightly_weighted_graph_is_boost_only_and_nothing_of_it_enters() -> None:
    lists = asked()
    at = judged(lists, known(lists))
    assert at.reach == {"any": "boost-only"}
    assert counted(at) == {(("graph",), "boost-only"): (40, 0, 1, 0)}


def test_a_list_that_ended_early_holds_no_bar_beyond_its_end() -> None:
    # 4 + 4 memories of the text legs leave places 9 and 10 to whatever comes
    lists = asked(lexical=4, dense=4)
    at = judged(lists, known(lists))
    assert at.reach == {"any": "guaranteed"}
    # eight others can be ahead of the first of them and nine of the second; of ten places two are left
    assert counted(at)[("graph",), "guaranteed"] == (2, 2, 1, 1)
    assert at.finds is not None
    assert (at.finds.found, at.finds.entered) == (40, 2)


def test_parts_of_one_memory_free_places_for_what_only_the_graph_found() -> None:
    # sixteen parts of two memories stand first; folded, they leave eight places, and the audit saw them filled
    parts = [((f"l{i % 2}", i + 1), 40.0 - i) for i in range(40)]
    lists = Asked("q", "any", {"lexical": parts, "dense": parts, "graph": keys("g", 12)})
    memories = known(lists)
    at = judged(lists, memories)
    assert at.finds is not None
    assert at.finds.entered == 8
    assert at.reach["any"] in ("possible", "guaranteed")


def test_copies_of_one_text_free_places_too() -> None:
    lists = asked()
    same = {key: Found(0.5, "copy" if key[0][0] in "ld" else memory.content) for key, memory in known(lists).items()}
    at = judged(lists, same)
    assert at.finds is not None
    assert at.finds.entered == 9
    assert at.reach["any"] != "boost-only"


def test_where_importances_differ_the_best_one_for_the_leg_counts() -> None:
    # .75/61 is below 1/70 by 14 %; a prior of .7 to 1 can make up for that
    heavier = Condition("seed .75", recipe("seed", weights={"graph": 0.75}))
    lists = asked()
    assert judged(lists, known(lists), heavier).reach == {"any": "boost-only"}
    assert judged(lists, known(lists, importance={"g0": 1.0}), heavier).reach == {"any": "possible"}


def test_only_regimes_that_a_question_is_in_are_judged() -> None:
    default = named("default-0.1")
    lists = Asked("q", "unnamed", asked().legs)
    at = judged(lists, known(lists), default)
    assert set(at.reach) == {"unnamed"}


@pytest.mark.parametrize("order", [("long", "short"), ("short", "long")])
def test_in_a_regime_a_leg_has_the_class_of_the_question_where_it_can_do_most(order: tuple[str, ...]) -> None:
    # among long lists the graph is boost-only; behind 4 + 4 memories two of ten places are left to it
    both = {"long": asked(id="long"), "short": asked(lexical=4, dense=4, id="short")}
    lists = {id: both[id] for id in order}
    run = {id: fused_places(SEED.recipe, one, known(one)).places for id, one in lists.items()}
    found, queries = {"n": known(*lists.values())}, [question(id) for id in order]
    at = standing(SEED, BARE, "graph", 10, queries, lists, lists, {"n": 500}, found=found, run=run)
    assert at.reach == {"any": "guaranteed"}


def test_a_boost_only_leg_with_a_memory_of_its_own_in_the_first_k_stops_the_run() -> None:
    lists = asked()
    run = {"q": ("g7", *(f"l{i}" for i in range(9)))}
    with pytest.raises(Contradicted, match="at k = 10: by arithmetic a memory at graph 8 is boost-only, and it is"):
        of_run(SEED, lists, run)


def of_run(holder: Condition, lists: Asked, run: Mapping[str, Sequence[str]], k: int = 10) -> Standing:
    """Return the standing of the graph in ``holder`` where its fused list is said to be ``run``."""
    return standing(
        holder, BARE, "graph", k, [question()], {"q": lists}, {"q": lists}, {"n": 500}, found={"n": known(lists)},
        run={id: tuple(places) for id, places in run.items()},
    )  # fmt: skip


def test_a_find_with_a_guaranteed_place_that_has_none_stops_the_run() -> None:
    lists = asked(lexical=4, dense=4)
    run = {"q": [f"l{i}" for i in range(4)] + [f"d{i}" for i in range(4)]}
    with pytest.raises(Contradicted, match="a memory at graph 1 is guaranteed a place, and it is not among the first"):
        of_run(SEED, lists, run)


def test_a_leg_that_is_empty_for_most_questions_is_so_end_to_end() -> None:
    lists = {str(i): asked(graph=5 if i == 0 else 0, id=str(i)) for i in range(4)}
    queries = [question(id) for id in lists]
    run = {id: fused_places(SEED.recipe, one, known(one)).places for id, one in lists.items()}
    found = {"n": known(*lists.values())}
    at = standing(SEED, BARE, "graph", 10, queries, lists, lists, {"n": 500}, found=found, run=run)
    assert at.empty == 0.75


# --- what a leg found -------------------------------------------------------------------------------------------------

WHOLE = Condition("default", recipe("default-0.1", prior=False))


def test_what_dense_found_and_the_graph_repeats_is_what_dense_found() -> None:
    # d0 to d3 are in no list without dense: its graph walks from the heads of the lexical leg alone
    lexical, dense = keys("l", 40), [*keys("d", 4), *keys("l", 36)]
    with_dense = Asked("q", "named", {"lexical": lexical, "dense": dense, "graph": keys("d", 4)})
    without = Asked("q", "named", {"lexical": lexical, "graph": keys("l", 4)})
    bare = Condition("default~dense", recipe("default-0.1", name="default~dense", prior=False, weights={"dense": 0.0}))
    memories = known(with_dense)
    at = judged(with_dense, memories, WHOLE, leg="dense", without=bare, lacking=without, gold=("d0", "d1"))
    assert at.finds is not None
    assert (at.finds.seeds, at.finds.found, at.finds.entered) == (True, 4, 4)
    assert {by for by, _ in counted(at)} == {("dense", "graph")}
    verdict = judge(at, None)
    assert "dense gives the graph its seeds, so its finds also come by the graph" in verdict.notes
    assert verdict.kind != "ruled out"
    # beside the other lists of the same condition nothing would be its own
    assert leg_only(WHOLE.recipe, "dense", with_dense) == set()


def test_what_a_leg_of_the_other_recipe_lists_is_no_find() -> None:
    # the recipe with the graph has no dense leg, the one without it has: d0 is found without the graph
    holder = Condition("keyword and graph", recipe("default-0.1", prior=False, weights={"dense": 0.0}))
    with_graph = Asked("q", "named", {"lexical": keys("l", 4), "graph": [*keys("d", 1), *keys("g", 2)]})
    without = Asked("q", "named", {"lexical": keys("l", 4), "dense": keys("d", 4)})
    assert set(new(holder, BARE, "graph", with_graph, without)) == {"g0", "g1"}


def test_a_leg_whose_finds_are_all_boost_only_is_ruled_out_although_its_first_place_is_guaranteed() -> None:
    # l0, its first, is the first of dense too; its own are at ranks 30 to 39, where 1/90 is below 1/70
    shared, own = [((f"d{i}", 0), 40.0 - i) for i in range(29)], keys("l", 10)
    lists = Asked("q", "any", {"lexical": [*shared, *own], "dense": keys("d", 40)})
    hybrid = Condition("hybrid", recipe("hybrid", prior=False, reserve={"lexical": 4}))
    dense = Condition("hybrid~lexical", recipe("dense", prior=False))
    at = judged(lists, known(lists), hybrid, leg="lexical", without=dense)
    assert at.reach == {"any": "guaranteed"}
    assert counted(at) == {(("lexical",), "boost-only"): (10, 0, 0, 0)}
    verdict = judge(at, paired(np.zeros(8), np.ones(8)), metric="R@10")
    assert verdict.sentence == "ruled out: arithmetic keeps all 10 finds of lexical out of the first 10"
    assert verdict.reranking is not None


def test_two_shares_may_bring_in_what_neither_could_alone() -> None:
    # of the legs without the graph, 1/(60 + 25) is below 1/70; with the graph's .35/(8 + 14) = .0159 it is .0277
    lists = Asked("q", "unnamed", {"lexical": keys("l", 40), "dense": keys("d", 40), "graph": keys("d", 40)[14:]})
    only = Asked("q", "unnamed", {"lexical": keys("l", 40), "graph": []})
    bare = Condition("default~dense", recipe("default-0.1", name="default~dense", prior=False, weights={"dense": 0.0}))
    at = judged(lists, known(lists), WHOLE, leg="dense", without=bare, lacking=only)
    assert counted(at)[("dense",), "boost-only"][1] == 0
    assert counted(at)[("dense", "graph"), "possible"][1] > 0


# --- comparisons ------------------------------------------------------------------------------------------------------


def measured(ids: Sequence[str], values: Sequence[float], strata: Sequence[str], apart: Sequence[bool]) -> Measured:
    each = np.array(values, dtype=float)
    return Measured(tuple(ids), tuple(strata), tuple(apart), {"R@10": each, "R@5": each})


def compared(
    differences: Mapping[str, Sequence[float]],
    *,
    strata: Sequence[str] | None = None,
    metrics: Sequence[str] = ("R@10",),
    golds: Sequence[str] | None = None,
    exact: Sequence[Key] = (("l0", 0),),
    moved: bool = False,
) -> list[dict[str, Any]]:
    """Compare conditions whose values differ from their own base as ``differences`` says; every base is another one.

    They differ in the exact-match bonus, which ``exact`` earn. ``golds`` has the gold memory of each question, another
    one for each by default; ``moved``: every question has its gold memory in the list of the other condition alone.
    """
    count = len(next(iter(differences.values())))
    ids = [f"q{i}" for i in range(count)]
    kinds = list(strata or ["all"] * count)
    queries = [
        question(id, gold=(gold,), stratum=s, apart=s == "trap")
        for id, s, gold in zip(ids, kinds, golds or [f"gold {id}" for id in ids], strict=True)
    ]
    aparts = [q.apart for q in queries]
    lists = {id: asked(id=id) for id in ids}
    conditions: dict[str, Condition] = {}
    values: dict[str, Measured] = {}
    comparisons = []
    for i, (name, by_question) in enumerate(differences.items()):
        base, other = Condition(f"base {i}", recipe("hybrid")), Condition(name, recipe("hybrid", exact_bonus=0.25))
        conditions |= {base.name: base, other.name: other}
        values[base.name] = measured(ids, [0.0] * count, kinds, aparts)
        values[name] = measured(ids, by_question, kinds, aparts)
        comparisons.append(Comparison(name, base.name, name))
    answered = {id: Asked(id, "any", one.legs, exact=tuple(exact)) for id, one in lists.items()}
    of_lists = Lists(answered, {"n": known(*lists.values())})
    runs = {n: {q.id: q.gold if moved and n in differences else () for q in queries} for n in conditions}
    return compare(
        comparisons, metrics, conditions, runs, values, dict.fromkeys(conditions, of_lists),
        queries, {"n": 500},
    )  # fmt: skip


GAIN = [1.0] * 9 + [0.0] * 21


def test_holm_runs_over_all_comparisons_of_a_run_whatever_their_bases() -> None:
    (alone,) = [c for c in compared({"a": GAIN}) if c["group"] == "headline"]
    rows = [c for c in compared({"a": GAIN, "b": GAIN, "c": GAIN}) if c["group"] == "headline"]
    # nine wins of thirty: 2/2^9 = .0039; of three such, the least is three times that
    assert alone["paired"]["p_holm"] == alone["paired"]["p"] == pytest.approx(2 / 512, abs=0.002)
    assert [c["paired"]["p_holm"] for c in rows] == pytest.approx([3 * alone["paired"]["p"]] * 3)


def test_holm_runs_over_the_metrics_of_a_run_too() -> None:
    rows = [c for c in compared({"a": GAIN}, metrics=("R@10", "R@5")) if c["group"] == "headline"]
    assert [c["metric"] for c in rows] == ["R@10", "R@5"]
    assert [c["paired"]["p_holm"] for c in rows] == pytest.approx([2 * c["paired"]["p"] for c in rows])


def test_the_effect_that_could_have_been_shown_is_that_of_the_family() -> None:
    (alone,) = [c for c in compared({"a": GAIN}) if c["group"] == "headline"]
    first = next(c for c in compared({"a": GAIN, "b": GAIN, "c": GAIN}) if c["group"] == "headline")
    # the factors of 29 degrees of freedom at .05/3 and at .05
    assert first["paired"]["mde"] / alone["paired"]["mde"] == pytest.approx(1.178456, rel=1e-4)


def test_a_stratum_is_corrected_over_everything_that_was_looked_at() -> None:
    kinds = ["one"] * 15 + ["two"] * 15
    rows = {c["group"]: c["paired"] for c in compared({"a": GAIN}, strata=kinds)}
    assert rows["headline"]["p_holm"] == rows["headline"]["p"]  # the question that was asked, the only one
    # headline and two strata: the first of three, and the last of them the p that is largest
    assert rows["one"]["p_holm"] == pytest.approx(3 * rows["one"]["p"], rel=0.5)
    assert rows["one"]["p_holm"] > 2 * rows["one"]["p"]
    assert rows["two"]["p_holm"] == 1.0


def test_questions_apart_are_not_in_the_headline() -> None:
    kinds = ["all"] * 20 + ["trap"] * 10
    rows = {c["group"]: c["paired"]["n"] for c in compared({"a": GAIN}, strata=kinds)}
    assert rows == {"headline": 20, "all": 20, "trap": 10}


def test_what_moved_in_a_question_apart_is_not_counted_in_the_headline() -> None:
    rows = {c["group"]: c["turnover"] for c in compared({"a": GAIN}, strata=["all"] * 20 + ["trap"] * 10, moved=True)}
    assert {group: counts["boosted in"] for group, counts in rows.items()} == {"headline": 20, "all": 20, "trap": 10}


def test_questions_that_share_their_gold_are_drawn_together() -> None:
    (each,) = [c for c in compared({"a": GAIN}) if c["group"] == "headline"]
    eight = [f"gold {i % 8}" for i in range(30)]
    (shared,) = [c for c in compared({"a": GAIN}, golds=eight) if c["group"] == "headline"]
    assert (each["paired"]["units"], shared["paired"]["units"]) == (30, 8)
    # nine wins in eight documents, two in the first and one in each of the others: 2/2^8 where all of them win
    assert shared["paired"]["p"] == 2 / 256
    seven = [f"gold {i % 7}" for i in range(30)]
    (few,) = [c for c in compared({"a": GAIN}, golds=seven) if c["group"] == "headline"]
    assert (few["verdict"], few["paired"]["units"]) == ("described only", 7)


def test_what_cannot_be_evaluated_says_how_much_moved_and_not_how_much_gold() -> None:
    (row,) = [c for c in compared({"a": GAIN}, exact=(), moved=True) if c["group"] == "headline"]
    assert row["verdict"] == "not evaluable"
    assert row["turnover"] == {"leg-only": 0, "boosted in": 30, "demoted out": 0}
    (row,) = [c for c in compared({"a": GAIN}, moved=True) if c["group"] == "headline"]
    assert row["turnover"]["boosted in gold"] == 30


def test_a_prior_over_equal_importances_can_do_nothing_and_one_over_others_can() -> None:
    base, other = Condition("a", recipe("hybrid")), Condition("b", recipe("hybrid", prior=False))
    floor = Condition("c", recipe("hybrid", prior_floor=0.2))
    lists = asked()
    equal, unequal = (Lists({"q": lists}, {"n": known(lists, importance=i)}) for i in ({}, {"l0": 0.9}))
    for changed in (other, floor):
        assert str(idle(base, changed, equal, equal)).startswith("every memory has the same importance")
        assert idle(base, changed, unequal, unequal) is None


def test_a_contradiction_is_an_error_of_the_experiment(monkeypatch: pytest.MonkeyPatch) -> None:
    lists = asked()
    of_lists = Lists({"q": lists}, {"n": known(lists)})
    conditions = {"seed": SEED, "seed~graph": Condition("seed~graph", recipe("hybrid", name="x"))}
    values = dict.fromkeys(conditions, measured(["q"], [0.0], ["all"], [False]))
    runs = {"seed": {"q": ("g3", "l0")}, "seed~graph": {"q": ("l0",)}}
    with pytest.raises(ExperimentError, match="nothing of this run can be trusted"):
        compare(
            [Comparison("graph", "seed~graph", "seed", "graph")], ["R@10"], conditions, runs, values,
            dict.fromkeys(conditions, of_lists), [question()], {"n": 500},
        )  # fmt: skip


def test_a_witness_that_the_fusion_contradicts_is_seen() -> None:
    plan = recipe("seed")
    at = reach(plan, 10)
    assert witness_holds(plan, at)
    # the arithmetic of k = 10 sent through a list that is cut at 1: what should enter at place 10 does not
    leg = at.regimes["any"].legs["dense"]
    assert leg.witness is not None
    turned = {**leg.witness.rankings, "dense": tuple(reversed(leg.witness.rankings["dense"]))}
    object.__setattr__(leg.witness, "rankings", turned)
    object.__setattr__(leg.witness, "enters", False)
    assert not witness_holds(plan, at)


def test_reach_in_the_report_is_for_the_smallest_scope_a_question_has() -> None:
    queries = [question("a", "small"), question("b", "large")]
    lists = {"a": asked(id="a"), "b": asked(id="b")}
    facts = preflight(named("seed"), queries, lists, {"small": 8, "large": 500})
    assert facts["smallest scope"] == 8
    # no ten memories in scope: whatever a leg returns is among the first ten
    assert facts["reach"]["10"]["any"]["graph"] == "guaranteed"
    assert preflight(named("seed"), queries[1:], lists, {"large": 500})["reach"]["10"]["any"]["graph"] == "boost-only"


# --- what one draw is -------------------------------------------------------------------------------------------------


def test_a_conversation_is_one_draw_where_there_are_several() -> None:
    queries = [question("a", "x"), question("b", "x", ("other",)), question("c", "y", ("third",))]
    assert clusters(queries) == {"a": "x", "b": "x", "c": "y"}
    assert described(queries) == {"unit": "conversation", "units": 2, "questions": 3}


def test_questions_that_share_a_gold_memory_are_one_draw() -> None:
    queries = [
        question("a", gold=("1", "2")), question("b", gold=("2", "3")),
        question("c", gold=("3",)), question("d", gold=("4",)),
    ]  # fmt: skip
    of = clusters(queries)
    assert of["a"] == of["b"] == of["c"] != of["d"]
    assert unit(queries) == "document"
    assert unit([question("a", gold=("1",)), question("b", gold=("2",))]) == "question"


def test_questions_in_the_same_words_are_one_cluster_whatever_their_gold() -> None:
    asked = [
        Query("a", "Who is the harbourmaster?", "n", ("one",)),
        Query("b", "who is  the Harbourmaster", "n", ("two",)),
        Query("c", "Who is the mayor?", "n", ("three",)),
        Query("d", "", "n", ("four",)),
        Query("e", "", "n", ("five",)),
    ]
    of = clusters(asked)
    assert of["a"] == of["b"]
    assert len(set(of.values())) == 4  # where the words are not known they are not the same


def test_copies_of_a_namespace_are_one_cluster() -> None:
    asked = [
        Query("a", "Who is the harbourmaster?", "north", ("one",)),
        Query("b", "Who is the mayor?", "north", ("two",)),
        Query("c", "Who is the harbourmaster?", "copy", ("one",)),
        Query("d", "Who is the harbourmaster?", "south", ("three",)),  # the same words, about other memories
        Query("e", "", "east", ("one",)),
    ]
    assert clusters(asked) == {"a": "copy", "b": "copy", "c": "copy", "d": "south", "e": "east"}


# --- the case of the audit --------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The leg:UserWarning")
def test_the_harness_says_what_its_own_result_says(store_url: str, tmp_path: Path) -> None:
    """A boost-only recipe without the dense leg: 29 memories of the graph alone stood beside "can never bring in"."""
    given = ["--data", str(TOY), "--store", store_url, "--embedder", "hashing", "--out", str(tmp_path)]
    more = ["--recipe", "seed~dense", "--leg", "graph", "--metric", "R@10", "--no-controls"]
    assert CliRunner().invoke(app, ["ablate", *given, *more], catch_exceptions=False).exit_code == 0
    result = json.loads((tmp_path / "result.json").read_text(encoding="utf-8"))
    for c in result["comparisons"]:
        assert (c["verdict"] == "ruled out") <= (c["turnover"]["leg-only"] == 0), c["group"]
    whole = next(c for c in result["comparisons"] if c["group"] == "headline")
    assert whole["turnover"]["leg-only"] > 0
    assert whole["reach"]["any"] in ("possible", "guaranteed")
    assert {part["class"] for part in whole["finds"]["parts"]} >= {"boost-only", "possible"}
