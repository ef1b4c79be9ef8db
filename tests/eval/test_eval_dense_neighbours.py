"""The control of dense neighbours: whose edges they are, that nothing else changes, and that it has to be asked for."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import semmem
from eval.cli import app
from eval.datasets import load
from eval.experiments.conditions import ConditionError
from eval.experiments.experiment import _lists
from eval.experiments.lists import ask_all
from eval.experiments.other_edges.dense_neighbours import NEAREST, DenseNeighbours, nearest, over_vectors
from eval.experiments.plan import of_ablation
from eval.experiments.runner import ingest

TOY = Path(__file__).resolve().parents[2] / "eval" / "data" / "toy"
pytestmark = pytest.mark.filterwarnings("ignore:The leg:UserWarning")


def test_edges_go_to_the_nearest_rows_by_cosine_and_those_of_a_source_sum_to_the_strength() -> None:
    matrix = np.array([[1, 0], [0.8, 0.6], [0, 1], [-1, 0]], dtype=np.float32)
    row_ids = np.array([3, 5, 8, 9])
    edges = nearest(matrix, row_ids, np.array([3, 4, 8]), 3.0)  # 4 has no vector
    by_pair = {(s, t): w for s, t, w in zip(edges.source, edges.target, edges.weight, strict=True)}
    # of 3: .8 to 5, 0 to 8 and, below 0, to 9; of 8: .6 to 5, 0 to the others
    assert by_pair == pytest.approx({(3, 5): 3.0, (3, 8): 0, (3, 9): 0, (8, 5): 3.0, (8, 3): 0, (8, 9): 0})
    shared = nearest(
        np.array([[1, 0], [0.8, 0.6], [0.6, 0.8]], dtype=np.float32), np.array([1, 2, 3]), row_ids[:1], 1.0
    )
    assert shared.weight.tolist() == pytest.approx([0.96 / 1.56, 0.6 / 1.56])
    assert shared.target.tolist() == [2, 1]


def test_a_memory_has_edges_to_so_many_and_no_more_and_equals_go_by_number() -> None:
    alike = np.ones((NEAREST + 9, 1), dtype=np.float32)
    edges = nearest(alike, np.arange(NEAREST + 9), np.array([2]), 1.0)
    assert edges.target.tolist() == [at for at in range(NEAREST + 1) if at != 2]
    assert len(nearest(alike[:1], np.arange(1), np.array([0]), 1.0).target) == 0


def test_the_walk_goes_to_the_nearest_vectors_and_all_else_is_as_it_was(store_url: str) -> None:
    toy = load(TOY)
    near = of_ablation("default", ["graph"], controls=["dense neighbours"])[0][-1]
    assert (near.name, near.elsewhere, near.as_dict()["neighbours"]) == (
        "default, dense neighbours", (None, True), True,
    )  # fmt: skip
    with semmem.connect(store_url, embedder="hashing") as mem:
        ingest(mem, toy)
        own = mem._here.legs["graph"]
        plain, _ = ask_all(mem, toy.queries, [near.recipe])
        with over_vectors(mem, True):
            assert isinstance(mem._here.legs["graph"], DenseNeighbours)
            dense, _ = ask_all(mem, toy.queries, [near.recipe])
        with over_vectors(mem, False):
            assert mem._here.legs["graph"] is own
        assert mem._here.legs["graph"] is own
    for id, asked in plain.items():
        assert asked.legs["lexical"] == dense[id].legs["lexical"]
        assert asked.legs["dense"] == dense[id].legs["dense"]
        assert (asked.regime == "named") == (dense[id].regime == "named")
        # a walk that starts at the heads alone finds them and their neighbours
        heads = {key for leg in ("lexical", "dense") for key, _ in asked.legs[leg][:10]}
        assert heads <= {key for key, _ in dense[id].legs["graph"]}
    assert sum(asked.legs["graph"] != dense[id].legs["graph"] for id, asked in plain.items()) > 30


@pytest.mark.slow
def test_without_vectors_the_control_does_not_pass_for_seeds_only_and_lists_are_not_those_of_an_embedder(
    store_url: str, tmp_path: Path
) -> None:
    toy = load(TOY)
    near = of_ablation("default~dense", ["graph"], controls=["dense neighbours"])[0][-1]
    with semmem.connect(store_url, embedder="none") as mem:
        ingest(mem, toy)
        with over_vectors(mem, True):
            found = mem.recall(toy.queries[0].text, namespace=toy.queries[0].namespace, recipe=near.recipe)
        assert found.degraded["graph"] == "No memory has a vector, so there are no nearest vectors to walk to."
        plain = of_ablation("hybrid", ["dense"])[0]
        _lists(mem, toy, plain, tmp_path, lambda *_: None)
    with semmem.connect("sqlite::memory:", embedder="hashing") as mem:
        ingest(mem, toy)
        _lists(mem, toy, plain, tmp_path, lambda *_: None)
    names = [path.stem.rsplit("-", 2) for path in tmp_path.iterdir()]
    assert len({(before, extractor) for before, _, extractor in names}) == 1
    assert len({embedder for _, embedder, _ in names}) == 2


@pytest.mark.slow
def test_it_stands_beside_an_ablation_only_where_it_is_asked_for(tmp_path: Path, store_url: str) -> None:
    assert "dense neighbours" not in {c.control for c in of_ablation("default", ["graph"])[1]}
    assert of_ablation("default", ["dense"], controls=["dense neighbours"])[1][0].control is None
    with pytest.raises(
        ConditionError, match=r"no control 'neighbours'; choose one of no edges, seeds only, .*dense neigh"
    ):
        of_ablation("default", ["graph"], controls=["neighbours"])
    given = ["--data", str(TOY), "--store", store_url, "--embedder", "hashing", "--out", str(tmp_path)]
    asked = ["ablate", "--leg", "graph", "--control", "dense neighbours", "--metric", "R@10", *given]
    done = CliRunner().invoke(app, asked, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    result = json.loads((tmp_path / "result.json").read_text(encoding="utf-8"))
    assert "--control 'dense neighbours'" in result["line"]
    rows = [c for c in result["comparisons"] if c["group"] == "headline"]
    assert [(c["name"], c["control"]) for c in rows] == [
        ("graph in default", None),
        ("graph in default, over dense neighbours", "dense neighbours"),
        ("dense neighbours in default, over no graph", "dense neighbours"),
    ]
    assert all("paired" in c for c in rows)
    both = CliRunner().invoke(app, [*asked, "--no-controls"], catch_exceptions=False)
    assert both.exit_code != 0
    assert "Pass either --control or --no-controls." in both.output
