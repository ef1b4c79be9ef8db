"""The gate: the committed numbers hold on the committed corpus, and a fall is noticed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import semmem
from eval.datasets import Corpus, DatasetError
from eval.experiments.evidence.gate import EXPECTED, Checked, Expected, expectations, rewritten
from eval.experiments.evidence.gate_run import run_gate


def expected(value: float, tolerance: float) -> Expected:
    return Expected("eval/data/toy", "default", "hashing", "R@10", value, tolerance)


@pytest.mark.parametrize(
    ("value", "tolerance", "measured", "ok"),
    [(0.8, 0.03, 0.8, True), (0.8, 0.03, 0.77, True), (0.8, 0.03, 0.76, False), (0.8, 0.03, 0.95, True)],
)
def test_only_a_fall_beyond_the_tolerance_fails(value: float, tolerance: float, measured: float, ok: bool) -> None:
    assert Checked(expected(value, tolerance), measured).ok is ok


def test_a_difference_can_be_expected_too() -> None:
    worth = Expected("d", "default", "hashing", "R@10", 0.1, 0.03, less="default~graph")
    measures = {"default": {"headline": {"R@10": 0.7}}, "default~graph": {"headline": {"R@10": 0.6}}}
    assert worth.conditions == ("default", "default~graph")
    assert worth.of(measures) == pytest.approx(0.1)
    assert Checked(worth, worth.of(measures)).ok
    # a graph that does nothing any more fails, also where the recipe is as good as ever
    measures["default~graph"]["headline"]["R@10"] = 0.7
    assert not Checked(worth, worth.of(measures)).ok


def test_the_graph_is_expected_to_be_worth_something_where_it_does_something() -> None:
    worth = [e for e in expectations(EXPECTED) if e.less]
    assert {(e.data, e.less) for e in worth} == {("eval/data/harbour", "default~graph")}
    assert all(e.value - e.tolerance > 0 for e in worth)


def test_the_expected_file_is_readable_and_expects_something_of_the_toy_corpus() -> None:
    rows = expectations(EXPECTED)
    assert {e.recipe for e in rows if e.data == "eval/data/toy"} >= {"default", "seed", "hybrid", "lexical"}
    assert all(0 < e.value <= 1 and 0 <= e.tolerance <= 0.1 for e in rows)


@pytest.mark.parametrize(
    ("text", "words"), [("[[expect]]\ndata =", "cannot be read"), ("[[expect]]\nnose = 1\n", "cannot be read")]
)
def test_a_malformed_file_is_one_sentence(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "e.toml").write_text(text, encoding="utf-8")
    with pytest.raises(DatasetError, match=words):
        expectations(tmp_path / "e.toml")
    with pytest.raises(DatasetError, match="There is no file"):
        expectations(tmp_path / "none.toml")


def test_an_update_changes_the_values_and_nothing_else() -> None:
    text = EXPECTED.read_text(encoding="utf-8")
    rows = expectations(EXPECTED)
    assert rewritten(text, [Checked(e, e.value) for e in rows]) == text
    changed = rewritten(text, [Checked(e, 0.5) for e in rows])
    assert changed.count("value = 0.5000") == len(rows)
    assert changed.splitlines()[:4] == text.splitlines()[:4]
    with pytest.raises(DatasetError, match="all data sets must be here"):
        rewritten(text, [])


@pytest.mark.slow
@pytest.mark.parametrize(("name", "least"), [("toy", 10), ("harbour", 5)])
def test_the_committed_numbers_hold_on_the_committed_corpora(store_url: str, name: str, least: int) -> None:
    @contextmanager
    def opened(corpus: Corpus, store: str | None, embedder: str | None) -> Iterator[Any]:
        with semmem.connect(store_url, embedder=embedder) as mem:
            yield mem

    checked, absent = run_gate(EXPECTED, name, opened)
    assert absent == []
    assert len(checked) >= least
    fallen = [(c.expected.recipe, c.expected.metric, c.measured, c.expected.value) for c in checked if not c.ok]
    assert fallen == []
