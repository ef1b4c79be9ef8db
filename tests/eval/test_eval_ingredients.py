"""What each ingredient of a recipe is worth: which conditions that makes, and the table that comes out."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

import semmem
from eval.cli import app
from eval.datasets import load
from eval.experiments.conditions import ConditionError, named, turned
from eval.experiments.ingredients import INGREDIENTS, of_ingredients, table_of_worth
from eval.experiments.lists import grouped
from eval.experiments.runner import ingest
from semmem.model.recipe import RECIPES, ConversationSettings

TOY = Path(__file__).resolve().parents[2] / "eval" / "data" / "toy"
pytestmark = pytest.mark.filterwarnings("ignore:The leg:UserWarning")


def test_every_ingredient_of_the_default_recipe_is_compared_to_the_recipe_itself() -> None:
    conditions, comparisons = of_ingredients("default")
    assert conditions[0].recipe is RECIPES["default"]
    # three legs, five controls, every ingredient of the list, and one constant in all regimes: each of the graph's 0, 2
    # and 8, and each of the dense leg's 2 and 8
    assert len(comparisons) == 3 + 5 + len(INGREDIENTS) + 3 + 2
    assert [c.name for c in comparisons if "each regime" in c.name] == [
        "a constant for each regime of dense, against 2 (described) in all",
        "a constant for each regime of dense, against 8 (anchored, named, unnamed) in all",
        "a constant for each regime, against 0 (named) in all",
        "a constant for each regime, against 2 (anchored) in all",
        "a constant for each regime, against 8 (described, unnamed) in all",
    ]
    for c in comparisons:
        if c.control == "re-voting":
            continue
        assert "default" in (c.base, c.other)
        assert c.name.startswith("+ ") == (
            c.base == "default"
        )  # above 0 means: worth having, whichever way it is turned
    assert len({c.name for c in comparisons}) == len(comparisons)


@pytest.mark.parametrize(
    ("word", "settings"),
    [
        ("anchors", {"anchor_share": 0.0}),
        ("lower-case or not", None),
        ("without capitals", {"lower_case": False}),
        ("known names", {"known_names": False}),
        ("in another way", {"other_names": False}),
        ("neighbours in", {"neighbour": 0.0}),
        ("same author", {"neighbour_own": 0.5}),  # as much as any other neighbour
        ("gate by", {"gate": 0.0}),
        ("single words", {"stems": False}),
        ("pairs of words", {"bigrams": False}),
        ("pure PageRank", {"walk": "pagerank"}),
        ("heads of", {"seeds": 0}),
    ],
)
def test_an_ingredient_that_is_off_changes_what_its_name_says(word: str, settings: dict[str, object] | None) -> None:
    if settings is None:
        with pytest.raises(ConditionError, match="No ingredient of default is called"):
            of_ingredients("default", [word])
        return
    (_, off), (comparison,) = of_ingredients("default", [word])
    assert (comparison.base, comparison.other) == (off.name, "default")
    base, graph = RECIPES["default"].as_dict(), off.recipe.as_dict()
    assert {n: v for n, v in graph["graph"].items() if v != base["graph"][n]} == settings
    assert [n for n in base if n not in ("name", "graph") and base[n] != graph[n]] == []


def test_the_rules_of_conversation_go_together_and_one_by_one() -> None:
    (_, off), _ = of_ingredients("default", ["rules of conversation"])
    assert off.recipe.conversation is None
    (_, off), _ = of_ingredients("default", ["what stands around"])
    rules = off.recipe.conversation
    assert isinstance(rules, ConversationSettings)
    assert (rules.previous, rules.asked, rules.before, rules.next) == (0, 0, 0, 0)
    assert rules.author_lexical == 1.6  # the others stay


def test_what_a_recipe_does_not_have_is_left_out() -> None:
    names = [c.name for c in of_ingredients("hybrid")[1]]
    assert "gate by the question" not in names  # it has no graph
    assert "reserve" not in names  # nor a reserve
    assert "importance prior" in names
    assert [c.name for c in of_ingredients("lexical", ["leg"])[1]] == ["author factor in the lexical leg"]
    # of a rule with a part in a leg that is not called, the rest is turned
    (_, off), _ = of_ingredients("hybrid", ["author rules"])
    assert off.recipe.graph.author_bonus == 2.0
    assert off.recipe.conversation is not None
    assert off.recipe.conversation.author_lexical == 1.0


def test_what_acts_after_the_legs_needs_no_lists_of_its_own() -> None:
    conditions, _ = of_ingredients(
        "default", ["reserve", "prior", "folding", "constant", "bonus of", "reranker", "graph leg"]
    )
    assert len(conditions) == 13
    assert len(grouped({c.name: c.recipe for c in conditions})) == 1


def test_one_condition_may_turn_several_settings() -> None:
    point = turned(named("seed"), "graph.gate=0", "prior=0")
    assert (point.name, point.recipe.graph.gate, point.recipe.prior) == ("seed graph.gate=0 prior=0", 0.0, False)
    assert dict(point.values) == {}
    with pytest.raises(ConditionError, match="are 2 conditions"):
        turned(named("seed"), "graph.gate=0,1")


@pytest.mark.slow
def test_the_table_has_a_row_an_ingredient_and_no_number_beside_a_refusal(store_url: str, tmp_path: Path) -> None:
    words = ["importance prior", "folding", "co-mention", "relationships", "graph leg"]
    only = [part for word in words for part in ("--only", word)]
    given = ["--data", str(TOY), "--store", store_url, "--embedder", "hashing", "--out", str(tmp_path)]
    done = CliRunner().invoke(app, ["ingredients", *given, *only, "--metric", "R@10"], catch_exceptions=False)
    assert done.exit_code == 0
    rows = {line.split(" | ")[0].strip("| "): line for line in done.stdout.splitlines() if line.startswith("| ")}
    assert set(rows) == {
        "ingredient", "graph leg", "co-mention edges", "importance prior", "folding of equal memories",
        "+ relationships at .5",
    }  # fmt: skip
    # no memory of the toy corpus has a relationship, and no two of them are equal
    assert rows["+ relationships at .5"].endswith("changes no list of any leg on these data |")
    assert rows["folding of equal memories"].count(" |  | ") == 1
    assert "no two memories are equal" in rows["folding of equal memories"]
    assert "[" in rows["co-mention edges"]
    result = json.loads((tmp_path / "result.json").read_text(encoding="utf-8"))
    assert table_of_worth(result) in (tmp_path / "summary.md").read_text(encoding="utf-8")
    assert "On toy, “" in done.stdout or "the graph leg in default" in done.stdout


def test_the_damping_of_pagerank_and_the_kinds_of_concept_reach_the_walk(store_url: str) -> None:
    corpus = load(TOY)
    question = next(q for q in corpus.queries if q.stratum == "multi-hop")
    with semmem.connect(store_url, embedder="hashing") as mem:
        ingest(mem, corpus)

        def trace(**graph: object) -> tuple[dict[int, float], dict[str, float], set[int]]:
            recipe = semmem.recipe("default", graph=graph)
            found = mem.recall(question.text, namespace="toy", recipe=recipe).candidates
            walk = found.traces["graph"]
            scores = dict(zip([k[0] for k in found.rankings["graph"]], found.raw["graph"], strict=True))
            return dict(walk.restart), scores, {int(k) for hop in walk.hops for k in hop.key.tolist()}

        # alpha 0 never leaves the restart: its masses are the scores
        restart, scores, _ = trace(walk="pagerank", alpha=0.0)
        assert sorted(scores.values()) == pytest.approx(sorted(m for m in restart.values() if m > 0)[-len(scores) :])
        assert trace(walk="pagerank", alpha=0.9)[1] != scores
        # without words and pairs of words, the walk goes over names alone: fewer concepts, none that is new
        every, names = trace()[2], trace(stems=False, bigrams=False)[2]
        assert names < every
        assert names < trace(stems=False)[2] | trace(bigrams=False)[2]
