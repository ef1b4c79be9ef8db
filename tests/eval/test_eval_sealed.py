"""The sealed sets: their bytes, their counts, their judgments, and what the harness calls them."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from eval.cli import app
from eval.datasets import SEALED, DatasetError, load
from eval.experiments.evidence.provenance import role
from eval.reports.tables import number

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT / "eval" / "data"
STRATA = {"changed": 8, "exact": 16, "paraphrase": 24, "three hops": 8, "time": 10, "two hops": 24, "unanswerable": 10}
BOTH = pytest.mark.parametrize(("name", "memories"), [("helpdesk", 330), ("family", 300)])
HOPS = {"helpdesk": {}, "family": {"two hops": 27, "three hops": 5}}


@BOTH
def test_a_sealed_set_has_the_bytes_that_its_record_names(name: str, memories: int) -> None:
    corpus = load(DATA / name, sealed=True)
    assert corpus.sha256 == SEALED[name]
    assert corpus.sha256 in (ROOT / "adr" / "0072-two-sets-sealed-before-they-are-asked.md").read_text(encoding="utf-8")
    assert (len(corpus.memories), len(corpus.queries)) == (memories, 100)
    assert corpus.describe()["strata"] == {**STRATA, **HOPS[name]}
    assert len({m["text"] for m in corpus.memories}) == memories


@BOTH
def test_a_question_of_hops_needs_as_many_notes_and_an_unanswerable_one_needs_none(name: str, memories: int) -> None:
    least = {"two hops": 2, "three hops": 3, "unanswerable": 0}
    for query in load(DATA / name, sealed=True).queries:
        assert len(query.gold) >= least.get(query.stratum, 1), query.id
        assert query.apart == (not query.gold) == (query.stratum == "unanswerable"), query.id
        assert not set(query.gold) & {*query.extra.get("near_ids", ()), *query.extra.get("stale_ids", ())}, query.id


def rows_of(name: str, file: str) -> list[dict[str, Any]]:
    """Return the rows of a file of judgements beside a set."""
    return [json.loads(line) for line in (DATA / name / f"{file}.jsonl").read_text(encoding="utf-8").splitlines()]


def cohens_kappa(both: int, first: int, second: int, neither: int) -> float:
    """Return the agreement of two judges beyond chance, by the pairs that both, one, the other or none accepts."""
    pairs = both + first + second + neither
    agreed = (both + neither) / pairs
    chance = ((both + first) * (both + second) + (neither + first) * (neither + second)) / pairs**2
    return (agreed - chance) / (1 - chance)


@pytest.mark.parametrize(
    ("name", "pairs", "counts", "kappa"),
    [("helpdesk", 515, (151, 1, 13, 350), 0.936), ("family", 509, (150, 1, 17, 341), 0.918)],
)
def test_the_agreement_of_the_record_is_that_of_the_judgments(
    name: str, pairs: int, counts: tuple[int, int, int, int], kappa: float
) -> None:
    rows = rows_of(name, "judgements")
    verdicts = [(row["first"], row["second"]) for row in rows]
    both, first, second, neither = (
        verdicts.count(v) for v in ((True, True), (True, False), (False, True), (False, False))
    )
    assert (len(rows), (both, first, second, neither)) == (pairs, counts)
    assert cohens_kappa(both, first, second, neither) == pytest.approx(kappa, abs=5e-4)
    kept = {(row["question"], row["memory"]) for row in rows if row["kept"]}
    assert kept == {(query.id, id) for query in load(DATA / name, sealed=True).queries for id in query.gold}


@pytest.mark.parametrize(
    ("name", "pairs", "judged", "kappa", "all_pairs", "of_all", "kappa_of_all"),
    [
        ("helpdesk", 515, (148, 10, 17, 340), 0.878, 33_000, (148, 10, 40, 32_802), 0.855),
        ("family", 509, (152, 3, 19, 335), 0.901, 30_000, (152, 3, 38, 29_807), 0.880),
    ],
)
def test_the_agreement_of_a_second_judge_is_that_of_the_record(
    name: str,
    pairs: int,
    judged: tuple[int, int, int, int],
    kappa: float,
    all_pairs: int,
    of_all: tuple[int, int, int, int],
    kappa_of_all: float,
) -> None:
    corpus = load(DATA / name, sealed=True)
    gold = {(query.id, id) for query in corpus.queries for id in query.gold}
    named = {(row["question"], id) for row in rows_of(name, "second-judge") for id in row["memories"]}
    shown = {(row["question"], row["memory"]) for row in rows_of(name, "judgements")}
    every = {(query.id, memory["id"]) for query in corpus.queries for memory in corpus.memories}
    assert named <= every
    for seen, size, counts, of in ((shown, pairs, judged, kappa), (every, all_pairs, of_all, kappa_of_all)):
        agreed = len(seen & gold & named), len(seen & gold - named), len(seen & named - gold), len(seen - gold - named)
        assert (len(seen), agreed) == (size, counts)
        assert cohens_kappa(*agreed) == pytest.approx(of, abs=5e-4)
    unanswered = [row["question"] for row in rows_of(name, "second-judge") if not row["memories"]]
    assert unanswered == sorted(query.id for query in corpus.queries if not query.gold)


def test_a_set_with_the_name_of_a_sealed_one_and_other_bytes_is_not_called_sealed() -> None:
    corpus = load(DATA / "family", sealed=True)
    assert role(corpus).startswith("written for this project and sealed before its first look (ADR 0072)")
    assert role(replace(corpus, sha256="0" * 64)) == "has the name of a sealed set (ADR 0072) and other bytes"


def last_look(name: str) -> dict[str, Any]:
    """Return the record of the last look at a sealed set."""
    paths = (ROOT / "eval" / "results" / "kept-apart").glob(f"{name}-*.json")
    looks: list[dict[str, Any]] = [json.loads(path.read_text(encoding="utf-8")) for path in paths]
    return max(looks, key=lambda one: str(one["looks"][-1]))


@pytest.mark.parametrize("name", ["helpdesk", "family"])
def test_the_evidence_prints_what_the_last_look_at_a_sealed_set_found(name: str) -> None:
    look = last_look(name)
    assert (look["sha256"], len(look["looks"])) == (SEALED[name], 1)
    measures = {n: c["measures"]["headline"]["R@10"] for n, c in look["result"]["conditions"].items()}
    said = (ROOT / "docs" / "evidence.md").read_text(encoding="utf-8")
    for leg in ("lexical", "dense", "graph"):
        found = next(
            c
            for c in look["result"]["comparisons"]
            if (c["name"], c["metric"], c["group"]) == (f"{leg} in default", "R@10", "headline")
        )
        paired = found["paired"]
        without, whole = (number(measures[at], signed=False) for at in (f"default~{leg}", "default"))
        low, high = number(paired["low"]), number(paired["high"])
        row = (
            f"| {name} | {leg} | {without} | {whole} | {number(paired['delta'])} [{low}, {high}] | {found['verdict']} |"
        )
        assert row in said


def test_no_other_command_looks_at_a_sealed_set_because_it_would_not_be_counted(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match=r"is sealed \(ADR 0072\), and each look at it is counted"):
        load(DATA / "family")
    for words in (["ablate", "--leg", "graph"], ["sweep", "graph.weight=0,1"], ["reach", "convex"], ["confidence"]):
        done = CliRunner().invoke(app, [*words, "--data", str(DATA / "family")])
        assert (done.exit_code, "measure it by" in done.stderr) == (2, True), words
    renamed = tmp_path / "mine"
    shutil.copytree(DATA / "family", renamed)
    with pytest.raises(DatasetError, match="held-out"):
        load(renamed)


def test_a_sealed_set_with_another_byte_or_a_tenth_of_its_questions_is_known_again(tmp_path: Path) -> None:
    part = tmp_path / "mine"
    shutil.copytree(DATA / "family", part)
    rows = (part / "queries.jsonl").read_text(encoding="utf-8").splitlines()
    own = [json.dumps({"id": f"own{i}", "question": f"Where is number {i}?", "gold_ids": []}) for i in range(99)]
    (part / "queries.jsonl").write_text("\n".join(rows[:12] + own), encoding="utf-8")
    with pytest.raises(DatasetError, match="mine has 12 questions of family, which is sealed"):  # 12 of 111
        load(part)
    (part / "queries.jsonl").write_text("\n".join(rows[:11] + own), encoding="utf-8")
    assert len(load(part).queries) == 110  # 11 of 110 are no more than a tenth


def test_runs_on_a_sealed_set_are_not_judged_either(tmp_path: Path) -> None:
    rows = [json.loads(line) for line in (DATA / "family" / "queries.jsonl").read_text(encoding="utf-8").splitlines()]
    for name in ("a", "b"):
        lines = [json.dumps({"id": row["id"], "results": ["f001"]}) for row in rows]
        (tmp_path / f"{name}.jsonl").write_text("\n".join(lines), encoding="utf-8")
    runs = ["--run", str(tmp_path / "a.jsonl"), "--run", str(tmp_path / "b.jsonl")]
    done = CliRunner().invoke(app, ["compare", *runs, "--qrels", str(DATA / "family" / "queries.jsonl")])
    assert (done.exit_code, "has 100 questions of family, which is sealed" in done.stderr) == (2, True)


def test_the_founding_story_is_told_with_the_numbers_of_the_committed_results() -> None:
    def graph(result: dict[str, Any]) -> dict[str, float]:
        rows = [c for c in result["comparisons"] if (c["group"], c["metric"]) == ("headline", "R@10")]
        return next(c["paired"] for c in rows if c["name"] == "graph in default")

    def of(name: str) -> dict[str, float]:
        return graph(json.loads((ROOT / "eval" / "results" / f"{name}-controls.json").read_text(encoding="utf-8")))

    said = " ".join((ROOT / "docs" / "does-the-graph-help.md").read_text(encoding="utf-8").split())
    harbour = of("harbour")
    interval = f"[{number(harbour['low'])}, {number(harbour['high'])}]"
    assert f"it brings {number(harbour['delta'])} recall@10 {interval} on the harbour" in said
    tuned = sorted(of(name)["delta"] for name in ("agentnotes_a", "locomo3", "hotpotqa100", "musique100"))
    assert f"that the recipes were tuned on it brings {number(tuned[0])} to {number(tuned[-1])}" in said
    looks = {name: graph(last_look(name)["result"])["delta"] for name in ("helpdesk", "family")}
    assert f"its {number(looks['helpdesk'])} and {number(looks['family'])} are not separated from nothing" in said
