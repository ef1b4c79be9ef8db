"""Lists that are asked once: what is kept, what is asked again, and which recipes share them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import semmem
from eval.datasets import load
from eval.experiments.conditions import ablations, named, sweep
from eval.experiments.lists import ask_all, group_key, shallow
from eval.experiments.plan import of_history
from eval.experiments.runner import ingest
from semmem.embedders import load as load_embedder
from semmem.model.errors import EmbedderUnavailable
from semmem.model.recipe import RECIPES, recipe

TOY = Path(__file__).resolve().parents[2] / "eval" / "data" / "toy"


class Failing:
    """The hashing embedder, which fails on questions while ``broken``."""

    def __init__(self) -> None:
        self.inner = load_embedder("hashing", path=None)
        self.name, self.dimensions, self.max_tokens = self.inner.name, self.inner.dimensions, self.inner.max_tokens
        self.fingerprint = self.inner.fingerprint
        self.broken = False

    def count_tokens(self, text: str) -> int:
        return self.inner.count_tokens(text)

    def embed(self, texts: Sequence[str]) -> Any:
        if self.broken:
            raise EmbedderUnavailable("The model is away.")
        return self.inner.embed(texts)


def test_a_leg_that_failed_is_asked_again_and_its_failure_is_not_kept(store_url: str, tmp_path: Path) -> None:
    toy = load(TOY)
    queries = toy.queries[:4]
    embedder, cache = Failing(), tmp_path / "lists.jsonl"
    with semmem.connect(store_url, embedder=embedder) as mem:
        ingest(mem, toy)
        embedder.broken = True
        asked, _ = ask_all(mem, queries, [recipe("hybrid")], cache=cache)
        assert all("dense" in one.degraded for one in asked.values())
        assert cache.read_text(encoding="utf-8") == ""
        embedder.broken = False
        again, _ = ask_all(mem, queries, [recipe("hybrid")], cache=cache)
        assert all(not one.degraded and one.legs["dense"] for one in again.values())
        assert len(cache.read_text(encoding="utf-8").splitlines()) == 4
        embedder.broken = True
        cached, _ = ask_all(mem, queries, [recipe("hybrid")], cache=cache)
    assert {id: one.legs for id, one in cached.items()} == {id: one.legs for id, one in again.items()}


def test_a_line_that_was_cut_short_does_not_swallow_the_next_one(store_url: str, tmp_path: Path) -> None:
    toy, cache = load(TOY), tmp_path / "lists.jsonl"
    with semmem.connect(store_url, embedder="hashing") as mem:
        ingest(mem, toy)
        ask_all(mem, toy.queries[:2], [recipe("hybrid")], cache=cache)
        whole = cache.read_text(encoding="utf-8")
        cache.write_text(whole[:-40], encoding="utf-8")  # the second line, without its end
        ask_all(mem, toy.queries[:3], [recipe("hybrid")], cache=cache)
    lines = cache.read_text(encoding="utf-8").splitlines()
    assert lines[0] == whole.splitlines()[0]
    assert [json.loads(line)["asked"]["id"] for line in lines] == [query.id for query in toy.queries[:3]]


def test_the_legs_that_seed_the_graph_are_part_of_what_recipes_share() -> None:
    default = RECIPES["default"]
    without_dense = ablations(named("default"), ["dense"])[0].recipe
    assert group_key(default) != group_key(without_dense)
    # where the graph is not called, its settings are nobody's business, nor are the other legs
    bare = ablations(named("default"), ["graph"])[0].recipe
    other = ablations(named(recipe("default", graph={"gate": 0.0})), ["graph"])[0].recipe
    assert group_key(bare) == group_key(other)
    assert group_key(default) != group_key(recipe("default", graph={"gate": 0.0}))


def test_a_depth_as_large_as_the_scope_is_made_shallow() -> None:
    seed = RECIPES["seed"]
    assert shallow(seed, 100).depths["dense"] == 15  # as deep as the scope is large: it returns everything
    assert shallow(seed, 101) is seed
    assert shallow(seed, 0) is seed


def test_a_range_ends_where_it_says_and_is_what_people_would_write() -> None:
    values = [c.values["graph.weight"] for c in sweep(named("seed"), "graph.weight=.05:.35:.05")]
    # in floating point .05 + 6 * .05 is .35000000000000003, which has another reach at a tie
    assert values == [0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35]


def test_an_ablation_throws_nothing_away() -> None:
    thrown = named("default!graph")
    assert thrown.excluded == "graph"
    assert ablations(thrown, ["lexical"])[0].excluded is None


def test_the_first_step_of_the_history_asks_the_graph_and_throws_its_list_away() -> None:
    conditions, comparisons = of_history()
    first = next(c for c in conditions if c.name == comparisons[0].other)
    assert (first.excluded, "graph" in first.recipe.legs) == ("graph", True)
    assert replace(first.recipe, name="") == replace(RECIPES["seed"], name="")


@pytest.mark.parametrize("setting", ["graph.k=0,8", "graph.depth=10,20"])
def test_once_a_leg_is_left_out_its_other_settings_turn_nothing(setting: str) -> None:
    made = sweep(named("seed"), "graph.weight=0,1", setting)
    assert [("graph" in c.recipe.legs) for c in made] == [False, False, True, True]
