"""The page of other retrievers prints what `compare` says of the runs that LanceDB and txtai wrote."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from eval.cli import app
from eval.reports.tables import number
from tests.docs.pages import text

ROOT = Path(__file__).resolve().parents[2]
RUNS = ROOT / "eval" / "results" / "my-retriever"
LANCE, TXTAI = RUNS / "lancedb", RUNS / "txtai"
LEGS = (
    *("--leg", f"vector={LANCE / 'vector.trec'}", "--leg", f"fts={LANCE / 'fts.trec'}"),
    *("--run", str(LANCE / "hybrid.trec"), "--system", "lancedb"),
)


def compared(*words: str) -> dict[str, Any]:
    data = ROOT / "eval" / "data" / "harbour" / "queries.jsonl"
    arguments = [*words, "--qrels", str(data), "--documents", "211", "--metric", "R@10", "--json"]
    done = CliRunner().invoke(app, ["compare", *arguments])
    assert done.exit_code == 0, done.output
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def row(result: dict[str, Any], name: str) -> str:
    """Return the numbers and the verdict of a comparison as the page prints them."""
    (found,) = [c for c in result["comparisons"] if c["group"] == "headline" and c["name"] == name]
    names = (found["base"], found["other"])
    without, whole = (number(result["conditions"][one]["measures"]["headline"]["R@10"], signed=False) for one in names)
    at = found["paired"]
    bounds = f"[{number(at['low'])}, {number(at['high'])}]"
    return f"| {without} | {whole} | {number(at['delta'])} {bounds} | {found['verdict']} |"


@pytest.mark.parametrize(
    ("words", "name", "beginning"),
    [
        (LEGS, "vector in RRFReranker", "| LanceDB, vectors beside its full text | `--leg`, `--system lancedb` "),
        (LEGS, "fts in RRFReranker", "| LanceDB, full text beside its vectors | `--leg`, `--system lancedb` "),
        (
            ("--run", str(LANCE / "vector.trec"), "--run", str(LANCE / "hybrid.trec")),
            "hybrid against vector",
            "| LanceDB, hybrid instead of vectors | `--run` ",
        ),
        (
            ("--run", str(TXTAI / "dense.trec"), "--run", str(TXTAI / "hybrid.trec")),
            "hybrid against dense",
            "| txtai, hybrid instead of dense | `--run` ",
        ),
    ],
)
def test_the_page_has_the_row_that_the_committed_runs_give(words: tuple[str, ...], name: str, beginning: str) -> None:
    assert beginning + row(compared(*words), name) in text("docs/my-retriever.md")


def test_the_modelled_formula_gives_the_first_ten_of_lancedb_as_often_as_the_page_says() -> None:
    assert compared(*LEGS)["corpus"]["notes"]["of 44 questions, the fusion gives the first 10 of hybrid"] == 41
    assert "own first ten for 41 of 44 questions" in text("docs/my-retriever.md")
