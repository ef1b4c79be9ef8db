"""The confidence of a recall, fitted and measured: on made rows, on a small corpus, and as it is shipped."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import semmem
from eval.cli import app
from eval.confidence import (
    ANSWERED,
    CANNOT_TELL,
    KINDS,
    THRESHOLDS,
    Row,
    ask,
    auc,
    fit,
    fitted_curve,
    kept_by_floor,
    markdown,
    report,
)  # fmt: skip
from eval.datasets import Corpus, DatasetError, Query
from semmem.embedders.fitted import kept
from semmem.read.candidates import CURVES, EMBEDDER_CURVES, matches
from tests.eval.small import small

ROOT = Path(__file__).resolve().parents[2]


def made(shift: float) -> list[Row]:
    """Return rows of which the answered ones match better in the dense leg, and the lexical leg is noise."""
    rows = [Row(ANSWERED, {"dense": 0.5 + shift + n / 100, "lexical": (n * 7 % 10) / 10}) for n in range(20)]
    rows += [Row(KINDS[1], {"dense": 0.3 + shift + n / 100, "lexical": (n * 3 % 10) / 10}) for n in range(20)]
    return [*rows, Row(KINDS[2], {"dense": 0.1, "lexical": 0.9})]


def test_a_leg_whose_match_misleads_gets_no_weight_and_none_is_below_0() -> None:
    weights, constant = fit({"one": made(0.0), "two": made(0.05)}, ("dense", "lexical"))
    assert weights[0] > 1
    assert weights[1] == 0.0
    assert constant < 0


def test_a_curve_separates_as_well_where_the_cosines_are_narrow() -> None:
    """A tenth of the spread, as with multilingual-e5-small: ten times the weight, and the same confidence."""
    wide = made(0.0)
    narrow = [Row(row.kind, {"dense": 0.8 + row.matches["dense"] / 10}) for row in wide]
    (weight,), constant = fit({"one": wide}, ("dense",))
    (ten_times,), other = fit({"one": narrow}, ("dense",))
    assert ten_times == pytest.approx(10 * weight)
    assert other == pytest.approx(constant - 8 * weight)


def test_a_fitted_curve_is_kept_with_the_highest_floor_that_keeps_the_answers() -> None:
    result = {"fitted": {
        "dense": {"dense": 2.0, "constant": -1.0}, "lexical": {"lexical": 3.0, "constant": -1.0},
        "dense + lexical": {"dense": 4.0, "lexical": 1.0, "constant": -2.0},
    }}  # fmt: skip
    # the logistic of 0, .5; of 2 - 2 + .4, .599; the unanswered row counts for nothing
    rows = [Row(ANSWERED, {"dense": 0.5, "lexical": 0.0}), Row(ANSWERED, {"dense": 0.5, "lexical": 0.4})]
    rows.append(Row(KINDS[2], {"dense": 0.0, "lexical": 0.0}))
    assert kept_by_floor({"one": rows}, result, (0.5, 0.55, 0.6)) == {"one": {ANSWERED: [1.0, 0.5, 0.0]}}
    curve = fitted_curve(result, 0.5)
    assert curve.floor == 0.5
    assert curve.curves["dense", "lexical"] == ((4.0, 1.0), -2.0)


@pytest.mark.slow
def test_a_report_measures_each_set_by_what_the_others_fitted() -> None:
    result = report({"one": made(0.0), "two": made(0.05)})
    assert set(result["fitted"]) == {"dense", "lexical", "dense + lexical"}
    one = result["left out"]["dense + lexical"]["one"]
    assert one[ANSWERED]["questions"] == 20
    assert one[KINDS[2]]["AUC"] == 1.0
    assert KINDS[0] not in one
    misses = result["left out"]["dense + lexical"]["one"][ANSWERED]["misses"]
    assert list(misses) == [f"{t:g}" for t in THRESHOLDS]
    assert list(misses.values()) == sorted(misses.values())
    # what is printed is of the curve that was fitted without the set, and not of the shipped one
    result["left out"]["dense + lexical"]["one"][ANSWERED]["misses"] = dict.fromkeys(misses, 0.77)
    table = markdown(result)
    assert "| one: misses | 0.77 | 0.77 | 0.77 | 0.77 | 0.77 |" in table
    assert table.endswith(CANNOT_TELL)
    assert "| one | – | " in table
    assert "| two: false alarms, of another set | " in table


def test_ties_count_half() -> None:
    assert auc(np.array([0.5, 0.7]), np.array([0.5, 0.1])) == 0.875


def test_a_set_is_asked_its_own_questions_without_their_answers_and_those_of_others() -> None:
    memories = [{"id": f"m{n}", "namespace": "x", "text": f"The ferry {n} leaves at {n}."} for n in range(5)]
    queries = (
        Query("q1", "When does ferry 3 leave?", "x", ("m3",)),
        Query("q2", "Who painted it?", "x", (), apart=True),
    )
    corpus = Corpus("small", tuple(memories), queries)
    with semmem.connect("sqlite::memory:", embedder="none") as mem:
        mem.remember_many(memories)
        rows = ask_lexical(mem, corpus)
    assert [row.kind for row in rows] == [ANSWERED, KINDS[1], KINDS[0], KINDS[2]]
    assert rows[0].matches["lexical"] > rows[1].matches["lexical"] > 0


def ask_lexical(mem: semmem.Semmem, corpus: Corpus) -> list[Row]:
    with pytest.raises(DatasetError, match="A leg could not answer"):
        ask(mem, corpus, {}, print)
    mem._here.recipe = semmem.recipe("lexical")
    return ask(mem, corpus, {"other": ["Where is the key?"]}, lambda _: None)


def test_the_shipped_curves_are_those_of_the_published_fit() -> None:
    result = json.loads((ROOT / "eval" / "results" / "confidence.json").read_text(encoding="utf-8"))
    for legs, (weights, constant) in CURVES.items():
        fitted = result["fitted"][" + ".join(legs)]
        assert [fitted[leg] for leg in legs] == pytest.approx(weights, abs=0.05)
        assert fitted["constant"] == pytest.approx(constant, abs=0.05)
    record = (ROOT / "adr" / "0038-what-the-confidence-of-a-recall-can-tell.md").read_text(encoding="utf-8")
    for name, one in result["left out"]["dense + lexical"].items():
        (row,) = (line for line in record.splitlines() if line.startswith(f"| {name} |"))
        assert [f"{one[kind]['AUC']:.2f}".lstrip("0") in row for kind in KINDS if kind in one].count(False) == 0
    for name, one in result["left out"]["dense + lexical"].items():
        for label, shares in rates(name, one):
            assert f"| {label} | {' | '.join(printed(share) for share in shares)} |" in record


def test_the_curves_of_mpnet_are_those_of_the_published_fit() -> None:
    fitted = json.loads((ROOT / "eval" / "results" / "confidence-mpnet.json").read_text(encoding="utf-8"))["fitted"]
    for legs, (weights, constant) in EMBEDDER_CURVES["all-mpnet-base-v2"].items():
        one = fitted[" + ".join(legs)]
        assert [one[leg] for leg in legs] == pytest.approx(weights, abs=0.05)
        assert one["constant"] == pytest.approx(constant, abs=0.05)


def printed(share: float) -> str:
    text = f"{share:.2f}"
    return text.lstrip("0") if text.startswith("0") else text


def rates(name: str, one: Mapping[str, Any]) -> Iterator[tuple[str, Collection[float]]]:
    """Yield the misses of a set, and its false alarms by kind of question, with the label of their row."""
    yield f"{name}: misses", one[ANSWERED]["misses"].values()
    for kind in KINDS:
        if kind in one:
            yield f"{name}: false alarms, {kind}", one[kind]["alarms"].values()


def test_the_page_says_what_passes_by_kind_of_question_and_every_number_is_of_a_set_left_out() -> None:
    result = json.loads((ROOT / "eval" / "results" / "confidence.json").read_text(encoding="utf-8"))
    sets = result["left out"]["dense + lexical"].values()
    passed = {kind: [one[kind]["alarms"]["0.4"] for one in sets if kind in one] for kind in KINDS}
    passed[ANSWERED] = [1 - one[ANSWERED]["misses"]["0.4"] for one in sets]
    page = (ROOT / "docs" / "python.md").read_text(encoding="utf-8")
    for kind, words in (
        (ANSWERED, "answered by a memory"),
        (KINDS[2], "about something else"),
        (KINDS[1], "about these memories, its answer taken out"),
        (KINDS[0], "written as a near miss: the right words about the wrong person"),
    ):
        assert f"| {words} | {100 * min(passed[kind]):.0f} to {100 * max(passed[kind]):.0f} % |" in page


@pytest.mark.slow
def test_one_command_fits_the_curve_of_an_embedder_and_its_recalls_use_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, store_url: str
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    sets = [option for name in ("one", "two") for option in ("--data", str(small(tmp_path / name)))]
    command = ["confidence", *sets, "--embedder", "hashing", "--keep"]
    refused = CliRunner().invoke(app, [*command, "--floors"])
    assert refused.exit_code == 2
    assert "Give --keep without --floors: " in refused.stderr
    done = CliRunner().invoke(app, [*command, "--json"])
    assert done.exit_code == 0, done.stderr
    result = json.loads(done.stdout)
    (file,) = (tmp_path / "data" / "semmem" / "confidence").iterdir()
    assert f'with the floor {result["kept"]["floor"]:g} for min_confidence="auto", in {file}: ' in done.stderr
    both = result["fitted"]["dense + lexical"]
    with semmem.connect(store_url, embedder="hashing") as mem:
        mem.remember("The ferry leaves at nine.")
        found = mem.recall("When does the ferry leave?", recipe="hybrid", min_confidence="auto")
    match = matches(found.candidates)
    x = both["constant"] + sum(both[leg] * match[leg] for leg in ("dense", "lexical"))
    assert found.confidence == pytest.approx(1 / (1 + np.exp(-x)))
    assert found.min_confidence == result["kept"]["floor"]
    kept.cache_clear()


@pytest.mark.slow
def test_what_was_measured_is_printed_although_the_curve_cannot_be_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    (tmp_path / "data" / "semmem").mkdir(parents=True)
    (tmp_path / "data" / "semmem" / "confidence").touch()
    sets = [option for name in ("one", "two") for option in ("--data", str(small(tmp_path / name)))]
    done = CliRunner().invoke(app, ["confidence", *sets, "--embedder", "hashing", "--keep"])
    assert (done.exit_code, "Fitted on all sets" in done.stdout, done.stderr.count("\nerror: ")) == (2, True, 1)
