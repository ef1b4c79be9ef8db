"""The gate: the committed numbers hold on the committed corpus, and a fall is noticed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import semmem
from eval.datasets import Corpus, DatasetError
from eval.experiments.gate import EXPECTED, Checked, Expected, expectations, rewritten
from eval.experiments.gate_run import run_gate


def expected(value: float, tolerance: float) -> Expected:
    return Expected("eval/data/toy", "default", "hashing", "R@10", value, tolerance)


@pytest.mark.parametrize(
    ("value", "tolerance", "measured", "ok"),
    [(0.8, 0.03, 0.8, True), (0.8, 0.03, 0.77, True), (0.8, 0.03, 0.76, False), (0.8, 0.03, 0.95, True)],
)
def test_only_a_fall_beyond_the_tolerance_fails(value: float, tolerance: float, measured: float, ok: bool) -> None:
    assert Checked(expected(value, tolerance), measured).ok is ok


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


def test_the_committed_numbers_hold_on_the_committed_corpus(store_url: str) -> None:
    @contextmanager
    def opened(corpus: Corpus, store: str | None, embedder: str | None) -> Iterator[Any]:
        with semmem.connect(store_url, embedder=embedder) as mem:
            yield mem

    checked, absent = run_gate(EXPECTED, "toy", opened)
    assert absent == []
    assert len(checked) >= 10
    fallen = [(c.expected.recipe, c.expected.metric, c.measured, c.expected.value) for c in checked if not c.ok]
    assert fallen == []
