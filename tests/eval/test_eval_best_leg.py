"""A recipe beside each of its legs alone: on made rows, and through the command on a small corpus."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import semmem
from eval.best_leg import Row, _interval, alone, table
from eval.cli import app
from tests.eval.small import small


def row(value: float, metric: str = "R@5", **legs: float) -> Row:
    return Row("notes", "paraphrase", 20, "default", metric, value, legs)


def test_a_recipe_loses_where_it_is_more_than_two_hundredths_below_its_best_leg() -> None:
    assert [row(value, lexical=0.5, dense=0.7).loses for value in (0.67, 0.68, 0.9)] == [True, False, False]
    assert (row(0.5, lexical=0.7, dense=0.7).best, row(0.5, lexical=0.1, dense=0.7).best) == ("lexical", "dense")


def test_a_line_has_the_recipe_and_its_best_leg_by_metric_and_is_bold_where_it_loses() -> None:
    rows = [row(0.5, lexical=0.5, dense=0.7), row(1.0, "R@10", lexical=0.5, dense=0.25)]
    assert table(rows) == [
        ["notes", "paraphrase", "20", "default", "**.500 (dense .700)**", "1.000 (lexical .500)"]
    ]  # fmt: skip


def test_levels_stand_with_their_interval_where_there_are_eight_draws() -> None:
    rows = [replace(row(0.5, lexical=0.5), interval=(0.25, 0.75)), row(1.0, "R@10", lexical=0.5)]
    assert table(rows, levels=True) == [["notes", "paraphrase", "20", "default", ".500 [.250, .750]", "1.000"]]
    values = np.array([0.0, 1.0] * 8)
    assert _interval(values, [str(n // 2) for n in range(16)]) == (0.5, 0.5)  # each of eight draws has one of each
    assert _interval(values, [str(n % 7) for n in range(16)]) is None


def test_a_leg_alone_is_its_list_as_the_recipe_asks_for_it() -> None:
    whole = semmem.recipe("default")
    plan = alone(whole, "graph")
    assert (plan.legs, plan.reserve_in("described"), plan.prior) == (("graph",), {}, False)
    assert (plan.graph, plan.depths, plan.conversation) == (whole.graph, whole.depths, whole.conversation)


@pytest.mark.slow
def test_the_command_asks_once_and_keeps_the_lists(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data, kept, out = small(tmp_path / "small"), tmp_path / "lists", tmp_path / "result.json"
    monkeypatch.setattr("eval.commands.interface.RUNS", tmp_path / "runs")
    command = ["best-leg", "--data", str(data), "--recipes", "default,two-regimes", "--embedder", "hashing"]
    first = CliRunner().invoke(app, [*command, "--lists", str(kept), "--out", str(out)])
    assert first.exit_code == 0, first.output
    lines = [line.split(" | ") for line in first.output.splitlines() if line.startswith("| small")]
    assert [(line[1], line[3]) for line in lines] == [("headline", "default"), ("headline", "two-regimes")]
    (file,) = kept.rglob("*.jsonl")
    asked = file.read_text(encoding="utf-8").splitlines()
    assert {json.loads(line)["asked"]["regime"] for line in asked} <= {"named", "anchored", "described", "unnamed"}
    rows = json.loads(out.read_text(encoding="utf-8"))["rows"]
    assert [one["metric"] for one in rows[:4]] == ["R@5", "R@10", "nDCG@10", "AllGold@10"]
    assert all(one["ahead"] + one["behind"] <= one["questions"] for one in rows)
    assert all(one["value"] <= one["legs"][one["best"]] for one in rows if not one["ahead"])
    again = CliRunner().invoke(app, [*command, "--lists", str(kept)])
    assert (again.output, file.read_text(encoding="utf-8").splitlines()) == (first.output, asked)
    levels = CliRunner().invoke(app, [*command, "--lists", str(kept), "--metric", "Success@5", "--levels"])
    assert "| set | stratum | questions | recipe | Success@5 |" in levels.output
    wrong = CliRunner().invoke(app, [*command, "--metric", "speed"])
    assert (wrong.exit_code, "There is no metric 'speed'" in wrong.output) == (2, True)


def test_a_recipe_or_a_set_that_is_not_there_is_told_in_a_sentence(tmp_path: Path) -> None:
    told = CliRunner().invoke(app, ["best-leg", "--data", str(tmp_path / "none")])
    assert (told.exit_code, "There is no data set at" in told.output) == (2, True)
