"""Decision records and their evidence: a record that drifts from its number is found."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path
from typing import Any

import pytest
import typer

from eval.cli import app
from eval.datasets import DatasetError
from eval.reports.adr import INDEX, draft, front_matter, index, keep, problems, shows

ROOT = Path(__file__).resolve().parents[2]
COMMANDS = set(typer.main.get_command(app).commands)  # type: ignore[attr-defined]
PAIRED = {"delta": 0.0721, "low": 0.04, "high": 0.105, "p_holm": 0.001}


def comparison(**changes: Any) -> dict[str, Any]:
    row = {"name": "graph in default", "group": "headline", "metric": "R@10", "verdict": "helps", "paired": PAIRED}
    return {**row, **changes}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    result = {
        "command": "ablate graph",
        "metrics": ["R@10"],
        "corpus": {"name": "toy", "headline": 34},
        "comparisons": [comparison()],
    }
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "r.json").write_text(json.dumps(result), encoding="utf-8")
    (tmp_path / "adr").mkdir()
    return tmp_path


def write(root: Path) -> Path:
    return draft(root / "adr", "graph-weight", "results/r.json", root, today=date(2026, 11, 22))


def test_a_draft_names_its_evidence_and_agrees_with_it(root: Path) -> None:
    path = write(root)
    assert path.name == "0001-graph-weight.md"
    head = front_matter(path.read_text(encoding="utf-8"))
    assert head["status"] == "proposed"
    assert head["evidence_shows"] == "helps +0.072 [+0.040, +0.105]"
    assert problems(root / "adr", root, COMMANDS) == []
    assert write(root).name == "0002-graph-weight.md"


def test_a_refused_comparison_is_cited_without_a_number() -> None:
    assert shows({"verdict": "ruled out"}) == shows({"verdict": "re-ranking only"}) == "ruled out"


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("evidence_shows: helps +0.072", "evidence_shows: helps +0.172", "where its result says"),
        ("default: helps +0.072", "default: helps +0.172", "in its text"),
        ("python -m eval ablate", "python -m eval oblate", "which does not exist"),
        ("results/r.json", "results/none.json", "cannot be read"),
        ("evidence_group: headline", "evidence_group: exact", "names a comparison"),
        ("status: proposed", "status: maybe", "has the status 'maybe'"),
        ("evidence_metric: R@10\n", "", "without evidence_metric"),
    ],
)
def test_a_record_that_drifts_is_found(root: Path, old: str, new: str, words: str) -> None:
    path = write(root)
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")
    assert any(words in problem for problem in problems(root / "adr", root, COMMANDS))


def test_an_index_that_disagrees_with_a_status_is_found(root: Path) -> None:
    path = write(root)
    (root / "adr" / INDEX).write_text(index(root / "adr"), encoding="utf-8")
    assert problems(root / "adr", root, COMMANDS) == []
    path.write_text(path.read_text(encoding="utf-8").replace("status: proposed", "status: accepted"), encoding="utf-8")
    assert any("is not the index" in problem for problem in problems(root / "adr", root, COMMANDS))


def test_a_slug_and_a_comparison_must_exist(root: Path) -> None:
    with pytest.raises(DatasetError, match="must be words"):
        draft(root / "adr", "Graph Weight", "results/r.json", root, today=date(2026, 11, 22))
    with pytest.raises(DatasetError, match="has no comparison 'nose'"):
        draft(root / "adr", "x", "results/r.json", root, comparison="nose", today=date(2026, 11, 22))


def test_the_projects_own_records_agree_with_their_evidence() -> None:
    assert problems(ROOT / "adr", ROOT, COMMANDS) == []


def test_what_is_kept_is_short_and_only_what_a_run_wrote_can_be_kept(tmp_path: Path) -> None:
    def run_at(commit: str | None) -> None:
        result = {"a": 0.123456789, "é": [1, 2.0], "environment": {"commit": commit}}
        (tmp_path / "result.json").write_text(json.dumps(result, indent=1), encoding="utf-8")

    run_at("0123456789ab")
    path = keep(tmp_path, "one.json", tmp_path / "results")
    text = '{"a":0.123457,"é":[1,2.0],"environment":{"commit":"0123456789ab"}}\n'
    assert (path.name, path.read_text(encoding="utf-8")) == ("one.json", text)
    for commit, words in (("0123456789ab-dirty", "files that differ"), (None, "no known commit")):
        run_at(commit)
        with pytest.raises(DatasetError, match=f"{words}.* measure it anew"):
            keep(tmp_path, "one", tmp_path / "results")
    with pytest.raises(DatasetError, match=r"holds no result\.json; pass a result folder"):
        keep(tmp_path / "results", "one", tmp_path / "results")
    with pytest.raises(DatasetError, match=r"'\.\./one' is no name for a file; use letters"):
        keep(tmp_path, "../one", tmp_path / "results")
