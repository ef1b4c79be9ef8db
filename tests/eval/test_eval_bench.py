"""The benchmark: made memories are the same every time and look like notes, and a run writes what it has measured."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from eval.bench import others, ours
from eval.bench.generator import Generator, TitledGenerator
from eval.bench.measures import asked, bytes_of, clients, growth, percentiles, resident_mb
from eval.bench.ours import Prepared
from eval.bench.record import Record
from eval.bench.report import markdown, plot
from eval.bench.run import _growth, bench, ratios
from eval.cli import app
from eval.datasets import DatasetError
from eval.experiments.evidence.provenance import COMMIT
from semmem import connect
from semmem.embedders import load

MADE = Generator(7, namespaces=3)


# ---------------------------------------------------------------------- what is made


@pytest.mark.slow
def test_a_memory_is_the_same_every_time_and_another_one_of_another_seed() -> None:
    assert Generator(7, namespaces=3).memory(41) == MADE.memory(41)
    assert Generator(8, namespaces=3).memory(41)["text"] != MADE.memory(41)["text"]
    assert (Generator(7).vector(41) == MADE.vector(41)).all()
    assert [item["id"] for item, _ in MADE.items(3, 6)] == ["m3", "m4", "m5"]


def test_memories_have_the_statistics_of_notes() -> None:
    items = [MADE.memory(number) for number in range(600)]
    words = Counter(word.lower() for item in items for word in re.findall(r"\w+", item["text"]))
    lengths = [len(item["text"].split()) for item in items]
    assert 60 < np.mean(lengths) < 80
    assert words.most_common(1)[0][0] == "the"
    common = words.most_common(200)
    x = growth({rank: count for rank, (_, count) in enumerate(common, 1)})
    assert x is not None
    assert -1.2 < x < -0.6  # Zipf: the count falls with the rank
    assert len(words) > 3000  # and the tail is long
    assert sum(item["title"] is not None for item in items) == 120
    shares = {tag: sum(tag in item["tags"] for item in items) / 600 for tag in ("half", "hundredth")}
    assert 0.4 < shares["half"] < 0.6
    assert 0.0 < shares["hundredth"] < 0.03
    assert MADE.memory(0)["tags"] == ["half", "hundredth", "ten-thousandth"]  # at least one has each
    sizes = Counter(item["namespace"] for item in items)
    assert sizes["n0"] > sizes["n1"] > sizes["n2"] > 50


def test_titled_passages_name_each_other_and_a_question_names_one_passage_of_its_size() -> None:
    made = TitledGenerator(7, count=300)
    items = [made.memory(number) for number in range(300)]
    assert made.memory(41) == TitledGenerator(7, count=300).memory(41)
    assert made.memory(10**9 + 41)["text"] == items[141]["text"]  # a writer beside has ids of its own
    assert set(items[0]) == {"id", "namespace", "tags", "title", "text"}
    assert items[0]["tags"] == ["half", "hundredth", "ten-thousandth"]
    assert len({item["title"].lower() for item in items}) == 300
    for number in range(10):
        one = made.question(number, 200)
        about = items[int(one.about[1:])]
        assert int(one.about[1:]) < 200
        assert about["title"].split(" (")[0] in one.text
        assert float(one.vector @ made.vector(int(one.about[1:]))) > 0.7


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["--shape", "poems"], "--shape must be one of notes, titled, not 'poems'."),
        (
            ["--shape", "titled", "--namespaces", "2"],
            "Titled passages name each other, so they share one namespace; leave --namespaces out.",
        ),
    ],
)
def test_a_shape_that_cannot_be_made_is_refused(arguments: list[str], error: str) -> None:
    result = CliRunner().invoke(app, ["bench", "--sizes", "10", *arguments])
    assert result.exit_code != 0
    assert error in " ".join(result.output.split())


def test_vectors_of_one_topic_are_near_each_other_and_of_unit_length() -> None:
    vectors = np.stack([MADE.vector(number) for number in range(300)])
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(np.ones(300), abs=1e-5)
    likeness = np.sort(vectors @ vectors.T - 2 * np.eye(300), axis=1)[:, -1]
    assert np.median(likeness) > 0.45  # the nearest is of the same topic
    assert abs(float(np.median(vectors @ vectors.T))) < 0.05  # most are not


def test_a_question_names_words_of_the_memory_that_it_is_about() -> None:
    one = MADE.question(3, 200)
    text = MADE.memory(int(one.about[1:]))["text"]
    question = re.findall(r"\w+", one.text.removeprefix("What do we know about "))
    assert [word for word in question if word != "and" and word not in text] == []
    assert float(one.vector @ MADE.vector(int(one.about[1:]))) > 0.8


def test_a_text_that_is_split_takes_its_vector_for_each_part_and_leaves_the_others_theirs() -> None:
    batch = list(MADE.items(609, 612))
    assert [len(item["text"]) for item, _ in batch] == [635, 1433, 373]
    with connect("sqlite::memory:", embedder="none") as mem:
        mem.remember_many([item for item, _ in batch])
        assert (mem.stats().memories, mem.stats().parts) == (3, 2)  # so four texts are embedded
    embedder = Prepared(load("hashing"))
    embedder.take(batch)
    vectors = [vector for _, vector in batch]
    assert (embedder.embed(["one", "two", "three"]) == np.stack([vectors[0], vectors[1], vectors[1]])).all()
    assert (embedder.embed(["four"]) == vectors[2]).all()
    assert embedder.embed(["a question"]).shape == (1, 256)  # nothing is at hand any more


# ---------------------------------------------------------------------- what is measured


def test_growth_is_the_slope_between_the_logarithms() -> None:
    assert growth({1000: 2.0, 10_000: 20.0}) == 1.0
    assert growth({100: 5.0, 1000: 5.0, 10_000: 5.0}) == 0.0
    assert growth({10: 1.0, 1000: 10.0}) == 0.5
    assert growth({10: 1.0}) is None
    assert growth({10: 0.0, 100: 1.0}) is None


def test_percentiles_are_in_milliseconds() -> None:
    assert percentiles([0.001, 0.002, 0.003]) == {"p50_ms": 2.0, "p95_ms": 3.0}


def test_a_measurement_ends_when_its_time_is_over_and_says_how_many_calls_were_timed() -> None:
    calls: list[int] = []
    assert set(asked(calls.append, 3, rounds=2)) == {"p50_ms", "p95_ms"}
    assert calls == [0, 1, 2, 0, 1, 2, 0, 1, 2]  # a warm-up and two rounds
    calls.clear()
    assert asked(calls.append, 3, rounds=2, at_most_s=0)["calls"] == 1
    assert calls == [0, 0]  # a call that has begun is ended


def test_a_recall_from_memory_is_fitted_over_the_sizes_that_were_in_memory() -> None:
    def row(ms: float, seconds: float, in_memory: bool) -> dict[str, Any]:
        names = ("vectors given", "vectors given, resident_mb=0")
        recall = {**{name: {"p50_ms": ms} for name in names}, "found": 1.0, "legs": {"dense": {"p50_ms": ms}}}
        return {"recall": recall, "ingest": {"remember_s": seconds, "maintain_s": 0.0}, "in_memory": in_memory}

    exponents = _growth({"10": row(1.0, 1.0, True), "100": row(1.0, 9.0, True), "1000": row(100.0, 90.0, False)})
    assert exponents == {
        "vectors given": 0.0,
        "vectors given, resident_mb=0": 1.0,
        "leg: dense": 0.0,
        "ingest": 1.0,
        "ingest, without maintain": 1.0,
    }


def without_rates(monkeypatch: pytest.MonkeyPatch) -> None:
    """Measure the parts of storing on one memory, without the competitor: a test of a whole run looks at them."""
    monkeypatch.setattr(ours, "_SAMPLE", 1)
    monkeypatch.setattr(ours, "sentence_transformers", lambda: None)


@pytest.mark.slow
def test_many_memories_are_stored_as_one_stream_with_their_vectors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ours, "_STREAM_FROM", 60)
    without_rates(monkeypatch)
    embedder = load("hashing")
    monkeypatch.setattr(type(embedder), "dimensions", 384)  # those of the vectors that are made
    with ours.Ours(tmp_path / "store", Generator(7), embedder) as bench:
        assert "grown_mb" not in bench.grow(50)
        filled = bench.grow(120)
        assert filled["stored"] == 70
        assert filled["grown_mb"] >= 0
        assert filled["remember_s"] > 0
        for number in (49, 50, 119):
            near = bench.mem.recall("x", vector=Generator(7).vector(number), recipe="dense", limit=1, namespace="n0")
            assert near[0].memory.id == f"m{number}"


@pytest.mark.slow
def test_a_namespace_that_has_outgrown_the_memory_for_it_is_not_counted_as_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SEMMEM_RESIDENT_MB", "1")
    without_rates(monkeypatch)
    embedder = load("hashing")
    monkeypatch.setattr(type(embedder), "dimensions", 384)  # those of the vectors that are made
    with ours.Ours(tmp_path / "store", Generator(7), embedder) as bench:
        seen = []
        for size, load_s in ((60, 60.0), (600, 0.2)):
            monkeypatch.setattr(ours, "_LOAD_S", load_s)
            bench.grow(size)
            seen.append(bench._wait_until_in_memory(lambda: bench.mem.recall("x", namespace="n0")))
    assert seen == [True, False]


def test_clients_share_the_calls_and_a_failure_of_one_is_raised() -> None:
    calls: list[int] = []
    times = clients(calls.append, 20, 4)
    assert sorted(calls) == list(range(20))
    assert set(times) == {"p50_ms", "p95_ms", "per_s"}
    with pytest.raises(ZeroDivisionError):
        clients(lambda number: 1 / (number - 5), 8, 4)


def test_bytes_and_resident_memory_are_those_of_the_system(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"x" * 100_000)
    assert 100_000 <= bytes_of(tmp_path) < 120_000
    mine = resident_mb()
    assert mine is None or mine > 10
    assert resident_mb(2**30) is None


def test_the_ratio_is_ours_over_theirs_and_what_was_skipped_has_none() -> None:
    times = {what: {"p50_ms": 6.0} for what in ("text in", "vectors given")}
    other = {what: {"p50_ms": 2.0} for what in ("text in", "vectors given")}
    row = {
        "recall": times,
        "ingest": {"memories_per_s": 500.0},
        "others": {"x": {**other, "memories_per_s": 2000.0}, "y": {"skipped": "y is skipped"}},
    }
    assert ratios({"10": row}) == {"10": {"x": {"text in": 3.0, "vectors given": 3.0, "ingest": 4.0}}}


def test_the_report_says_what_a_verb_passes_through_in_four_counts_and_the_rest_is_in_the_json() -> None:
    path = {"files": 3, "functions": 5, "calls": 8, "round_trips": 2, "trips": {"pipeline": 2}, "entered": {"a.py": 5}}
    run = {"version": "1", "machine": "m", "at": "now", "seed": 0, "questions": 1, "rounds": 1, "namespaces": 1}
    text = markdown({**run, "sizes": {}, "growth": {}, "ratios": {}, "path": [["PostgreSQL: recall", path]]})
    assert "|  | files | functions | calls | round trips |" in text
    assert "| PostgreSQL: recall | 3 | 5 | 8 | 2 |" in text
    assert "pipeline" not in text
    assert "ingest, maintain included: it takes two sizes; without it: it takes two sizes." in text


def test_a_system_that_is_not_installed_is_skipped_with_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(others, "find_spec", lambda name: None)
    assert others.absent("LanceDB hybrid") == "LanceDB hybrid is skipped: lancedb, pyarrow are not installed."


def test_the_baseline_finds_by_words_and_by_vectors() -> None:
    pairs = list(MADE.items(0, 120))
    texts, vectors = [item["text"] for item, _ in pairs], [vector for _, vector in pairs]
    system = others.Baseline(texts, vectors, Path(), "")
    questions = [MADE.question(number, 120) for number in range(10)]
    assert [int(one.about[1:]) in system.recall(one.text, one.vector) for one in questions] == [True] * 10


def test_a_size_or_a_system_that_is_none_is_refused() -> None:
    for args, says in (
        (["--sizes", "many"], "--sizes must be whole numbers above 0"),
        (["--sizes", "0"], "--sizes must be whole numbers above 0"),
        (["--beside", "grep"], "There is no system 'grep'; there are bm25s + numpy; LanceDB hybrid;"),
    ):
        done = CliRunner().invoke(app, ["bench", *args])
        assert done.exit_code == 2
        assert says in " ".join(done.output.split())


def test_a_folder_of_something_else_and_one_of_other_options_are_left_as_they_are(tmp_path: Path) -> None:
    foreign = tmp_path / "foreign"
    foreign.mkdir()
    (foreign / "notes.txt").touch()
    Record(tmp_path / "mixed", {"seconds": 60.0}, "systems").note("txtai", {"fill": {}})
    plan = {"seed": 0, "namespaces": 1, "questions": 50, "rounds": 2}
    Record(tmp_path / "own", plan, "sizes").note("60", {"others": {}})
    for name, options, says in (
        ("foreign", [], "holds other files; give a new or empty folder by --out."),
        ("mixed", [], "measured.json is no record of such a run; give another folder by --out."),
        ("own", ["--questions", "7"], "holds a run with other options; give another folder by --out."),
    ):
        before = {file.name: file.read_bytes() for file in (tmp_path / name).iterdir()}
        done = CliRunner().invoke(app, ["bench", "--sizes", "60", *options, "--out", str(tmp_path / name)])
        assert (done.exit_code, says in " ".join(done.output.split())) == (2, True), done.output
        assert {file.name: file.read_bytes() for file in (tmp_path / name).iterdir()} == before


@pytest.mark.slow
def test_an_interrupted_run_keeps_what_it_has_stored_and_removes_what_it_stored_only_to_measure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_rates(monkeypatch)
    embedder = load("hashing")
    monkeypatch.setattr(type(embedder), "dimensions", 384)  # those of the vectors that are made

    def interrupted(one: ours.Ours, *_: object, **__: object) -> None:
        for place, session in ((ours._TEXT_IN, None), ("n0", ours._MEANWHILE)):
            item = {"id": place, "namespace": place, "text": "of a measurement", "session": session}
            one.mem.remember_many([item])
        raise KeyboardInterrupt

    run = partial(bench, beside=[], say=lambda line: None, embedder=embedder)
    folder, other = tmp_path / "bench", tmp_path / "other"
    monkeypatch.setattr(ours.Ours, "measured", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run([20], folder)
    (before,) = json.loads((folder / "measured.json").read_text(encoding="utf-8"))["sizes"].values()
    assert before["ingest"]["stored"] == 20
    with ours.Ours(folder / "store", Generator(0), embedder) as filled:
        assert filled.mem.stats().memories == 20
    monkeypatch.setattr(ours.Ours, "measured", lambda one, questions, rounds: {"legs": {}, "found": len(questions)})
    row = run([20], folder)["sizes"]["20"]
    assert row["ingest"].items() >= before["ingest"].items()
    assert (row["space"]["bytes"], row["recall"]["found"]) == (before["space"]["bytes"], 50)
    Record(other, {"seed": 0, "namespaces": 1, "questions": 50, "rounds": 2}, "sizes")
    (folder / "store").rename(other / "store")
    with pytest.raises(DatasetError, match=r"^No size was measured, so there is no report\.$"):
        run([10], other)


@pytest.mark.slow
@pytest.mark.timeout(600)  # processes of their own, on a machine that may be busy
def test_a_run_measures_every_part_and_goes_on_where_it_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("onnxruntime")
    monkeypatch.setattr(ours, "_SAMPLE", 4)
    monkeypatch.setattr(ours, "_COLD", 1)
    folder = tmp_path / "bench"
    few = ["--questions", "3", "--rounds", "1", "--beside", "bm25s + numpy", "--out", str(folder)]
    done = CliRunner().invoke(app, ["bench", "--sizes", "60", *few])
    assert done.exit_code == 0, done.output
    done = CliRunner().invoke(app, ["bench", "--sizes", "60,120", *few])
    assert done.exit_code == 0, done.output
    assert "60: measured already" in done.output
    result = json.loads((folder / "bench.json").read_text(encoding="utf-8"))
    assert [row["ingest"]["stored"] for row in result["sizes"].values()] == [60, 60]
    assert all(row["ingest"]["text_in_per_s"] > 0 for row in result["sizes"].values())
    assert [row["in_memory"] for row in result["sizes"].values()] == [True, True]
    recall = result["sizes"]["120"]["recall"]
    parts = {
        "text in",
        "vectors given",
        "text in, resident_mb=0",
        "vectors given, resident_mb=0",
        "filter: ten-thousandth",
        "clients: 8",
        "while writing",
        "cold process",
    }
    assert parts <= set(recall)
    assert set(recall["legs"]) >= {"lexical", "dense", "graph"}
    assert "total" not in recall["legs"]
    assert recall["found"] > 0.7
    assert result["sizes"]["120"]["others"]["bm25s + numpy"]["found"] > 0.7
    assert math.isfinite(result["growth"]["text in"])
    assert result["growth"]["ingest"] != result["growth"]["ingest, without maintain"]
    assert result["sizes"]["120"]["space"]["tables"]
    for row in result["sizes"].values():
        assert list(row["load_average"]) == ["at the start", "semmem", "bm25s + numpy"]
        assert row["versions"]["numpy"] == np.__version__
        assert (row["commit"], row["resident_mb"]) == (COMMIT, 256)
    report = (folder / "bench.md").read_text(encoding="utf-8")
    assert report == markdown(result)
    assert "| leg: graph |" in report
    assert plot(result).count("<svg") == 1
