"""The witness that pre-flight sends through the real store, and what a dropped one does to a verdict."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import semmem
from eval.datasets import load
from eval.experiments.conditions import named
from eval.experiments.experiment import conduct
from eval.experiments.plan import of_ablation
from eval.experiments.probes import dropping_stage, live_witnesses
from eval.reports.summary import markdown
from eval.statistics.comparison import Comparison
from semmem.model.errors import StoreUnavailable

TOY = Path(__file__).resolve().parents[2] / "eval" / "data" / "toy"
pytestmark = pytest.mark.filterwarnings("ignore:The leg:UserWarning")


def silent(what: str, done: int, of: int) -> None:
    return None


def test_a_witness_of_each_studied_leg_goes_through_a_real_store_and_leaves_nothing_there(store_url: str) -> None:
    default, seed = named("default"), named("seed")
    conditions = {c.name: c for c in (default, seed, named("hybrid"), named("seed!graph"))}
    comparisons = [
        Comparison("1", "hybrid", "default", "graph"),
        Comparison("2", "hybrid", "seed", "graph"),
        Comparison("3", "hybrid", "seed!graph", "graph"),  # its finds are dropped outside of recall
        Comparison("4", "hybrid", "default"),  # no leg is studied
    ]
    with semmem.connect(store_url, embedder="hashing") as mem:
        outcomes = live_witnesses(mem, conditions, comparisons, 10, silent)
        assert set(mem.store.namespaces()) == set()
    assert set(outcomes) == {("default", "graph"), ("seed", "graph")}
    assert [(one["regime"], one["returned"], one["class"]) for one in outcomes["default", "graph"]] == [
        ("named", True, "guaranteed"),
        ("anchored", True, "guaranteed"),
    ]
    (one,) = outcomes["seed", "graph"]
    # .35/61 = .0057 against 1/70 = .0143: the fusion drops it, as the arithmetic says
    assert (one["returned"], one["dropped"], one["class"]) == (False, "fused", "boost-only")
    assert dropping_stage(outcomes["seed", "graph"]) is None  # that is for reach to tell, and it is no other stage
    assert dropping_stage(outcomes["default", "graph"]) is None


def test_a_store_that_cannot_be_written_to_is_not_probed_and_says_so() -> None:
    class Closed:
        def probe(self, **given: object) -> object:
            raise StoreUnavailable("The store is read-only.")

    conditions = {c.name: c for c in (named("default"), named("hybrid"))}
    outcomes = live_witnesses(Closed(), conditions, [Comparison("1", "hybrid", "default", "graph")], 5, silent)
    assert outcomes == {("default", "graph"): [{"leg": "graph", "k": 5, "not probed": "The store is read-only."}]}
    assert dropping_stage(outcomes["default", "graph"]) is None


@pytest.mark.slow
def test_a_stage_that_drops_every_witness_makes_the_leg_not_evaluable(store_url: str, tmp_path: Path) -> None:
    corpus = load(TOY)
    with semmem.connect(store_url, embedder="hashing") as mem:
        result = conduct(
            mem, corpus, *of_ablation("default", ["graph"], controls=()), out=tmp_path / "a", baselines=False
        ).result
        assert [c["verdict"] for c in result["comparisons"]] != ["not evaluable"] * len(result["comparisons"])
        summary = markdown(result)
        rows = [line for line in summary.splitlines() if line.startswith("| default | graph | named | 10 |")]
        # behind the competitor that both text legs put first
        assert rows == ["| default | graph | named | 10 | guaranteed | came back at place 2 |"]

        honest = mem.probe

        def broken(**given: object) -> list[object]:
            class Dropped:
                def __init__(self, one: Any) -> None:
                    self.one = one

                def as_dict(self) -> dict[str, object]:
                    return {**self.one.as_dict(), "returned": False, "dropped": "found", "why": "It was not found."}

            return [Dropped(one) for one in honest(**given)]

        mem.probe = broken  # type: ignore[method-assign, assignment]
        result = conduct(
            mem, corpus, *of_ablation("default", ["graph"], controls=()), out=tmp_path / "a", baselines=False
        ).result
    first = result["comparisons"][0]
    assert first["verdict"] == "not evaluable"
    assert first["sentence"] == (
        "not evaluable: the real pipeline, at the stage “found” (It was not found), drops every memory that only "
        "graph found"
    )
    assert "paired" not in first
    assert "dropped at “found”" in markdown(json.loads((tmp_path / "a" / "result.json").read_text(encoding="utf-8")))
