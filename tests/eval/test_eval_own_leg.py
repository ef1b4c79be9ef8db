"""A leg that a package declares is measured like a built-in one: reach, ablation, sweep."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from eval.cli import app
from eval.datasets import load
from eval.experiments.conditions import ConditionError, named
from eval.experiments.plan import of_ablation
from tests.eval.small import small

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "regex_leg"


@pytest.fixture
def _installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lay down what pip lays down of the example."""
    info = tmp_path / "site" / "semmem_regex_leg-0.1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: semmem-regex-leg\nVersion: 0.1.0\n")
    (info / "entry_points.txt").write_text("[semmem.legs]\nregex = regex_leg:RegexLeg\n")
    (tmp_path / "site" / "regex_leg.py").write_bytes((EXAMPLE / "regex_leg.py").read_bytes())
    monkeypatch.syspath_prepend(str(tmp_path / "site"))


@pytest.mark.usefixtures("_installed")
def test_a_declared_leg_joins_a_recipe_with_the_largest_weight_and_the_least_rank_constant() -> None:
    recipe, without = named("default+regex").recipe, named("default").recipe
    assert recipe.weights["regex"] == max(without.weights.values())
    constants = [c for regime in without.regimes for c in without.constants(regime).values()]
    assert recipe.rank_constants["regex"] == min(constants)
    assert {leg: w for leg, w in recipe.weights.items() if leg != "regex"} == dict(without.weights)
    conditions, comparisons = of_ablation("default", ["regex"], controls=())
    assert [c.name for c in conditions] == ["default+regex", "default+regex~regex"]
    assert [(c.base, c.other, c.leg) for c in comparisons] == [("default+regex~regex", "default+regex", "regex")]


@pytest.mark.usefixtures("_installed")
def test_a_declared_leg_has_a_reach() -> None:
    result = CliRunner().invoke(app, ["reach", "default+regex", "--json"])
    assert result.exit_code == 0
    (classes,) = {row["legs"]["regex"]["class"] for row in json.loads(result.output)["regimes"].values()}
    assert classes in ("possible", "guaranteed")


@pytest.mark.slow
@pytest.mark.usefixtures("_installed")
def test_a_declared_leg_is_ablated_and_swept(store_url: str, tmp_path: Path) -> None:
    data = small(tmp_path / "small")
    rows = [json.loads(line) for line in (data / "queries.jsonl").read_text(encoding="utf-8").splitlines()]
    word = load(data).memories[0]["text"].split()[0]
    for row in rows:  # every question names a pattern, so that the leg has something to find
        row["question"] += f" /{word}/"
    (data / "queries.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    common = ["--data", str(data), "--store", store_url, "--embedder", "none", "--metric", "R@2", "--json"]
    for words in (
        ["ablate", "--leg", "regex", "--recipe", "lexical"],
        ["sweep", "regex.weight=.5,1", "--recipe", "lexical+regex"],
    ):
        result = CliRunner().invoke(app, [*words, *common, "--out", str(tmp_path / words[0])])
        assert result.exit_code == 0, result.output
        comparisons = json.loads(result.stdout)["comparisons"]
        assert {c["leg"] for c in comparisons} == {"regex"}


def test_a_leg_that_nobody_declares_is_told_how_it_joins() -> None:
    words = r"has no leg 'regex' to leave out; .* joins as default\+LEG once a package that declares it is installed"
    with pytest.raises(ConditionError, match=words):
        of_ablation("default", ["regex"])
    with pytest.raises(ConditionError, match=r"There is no fusion 'regex'.* no package declares a leg of that name"):
        named("default+regex")


@pytest.mark.slow
def test_other_questions_in_the_same_folder_are_told_what_to_do(store_url: str, tmp_path: Path) -> None:
    data = small(tmp_path / "small")
    words = ["run", "--recipes", "lexical", "--data", str(data), "--store", store_url, "--embedder", "none"]
    out = ["--out", str(tmp_path / "out")]
    assert CliRunner().invoke(app, [*words, *out]).exit_code == 0
    with (data / "queries.jsonl").open("a", encoding="utf-8") as queries:
        queries.write('{"id": "new", "question": "who?", "gold_ids": []}\n')
    result = CliRunner().invoke(app, [*words, *out])
    assert result.exit_code == 2
    assert f"a folder of their own (--out {tmp_path / 'out'}-2), or delete the old folder" in " ".join(
        result.output.split()
    ).replace("- 2", "-2")
