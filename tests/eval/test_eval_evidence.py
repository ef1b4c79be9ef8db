"""Evidence: tables made from results, results made again, one look at a held-out set."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

import semmem
from eval.cli import app
from eval.datasets import Corpus, DatasetError, load
from eval.experiments.evidence import held_out
from eval.experiments.evidence.held_out import look, plan, record_of, sets
from eval.experiments.evidence.manifest import differences, manifest
from eval.experiments.evidence.provenance import OURS, TUNED_ON, clean
from eval.reports.adr import front_matter
from eval.reports.tables import number, rewritten, stale, table_lines
from tests.docs.pages import text
from tests.eval.small import small

ROOT = Path(__file__).resolve().parents[2]
COMMAND: Any = typer.main.get_command(app)
pytestmark = pytest.mark.filterwarnings("ignore:The leg:UserWarning")


def paired(delta: float, p: float | None, low: float | None = -0.01, high: float | None = 0.02) -> dict[str, Any]:
    return {"delta": delta, "low": low, "high": high, "p": p, "p_holm": p, "mean": 0.8, "base": 0.8 - delta}


def comparison(name: str, metric: str = "R@10", **more: Any) -> dict[str, Any]:
    row = {
        "name": name,
        "group": "headline",
        "metric": metric,
        "verdict": "no difference",
        "leg": None,
        "control": None,
    }
    return {**row, "turnover": {"leg-only": 7, "leg-only gold": 2}, **more}


@pytest.fixture
def results(tmp_path: Path) -> Path:
    rows = [
        comparison("a", paired=paired(0.082, 0.0002, 0.037, 0.132), verdict="helps", leg="graph"),
        comparison("b", paired=paired(-0.005, 0.03)),
        comparison("c", verdict="not evaluable"),
        comparison("d", paired=paired(0.032, None, None, None), verdict="described only"),
        comparison("e", verdict="re-ranking only", reranking=paired(0.011, 0.02), leg="graph"),
        comparison("graph.weight=0.1 graph.k=8", paired=paired(0.1, 0.001), verdict="helps", leg="graph"),
        comparison("f", paired=paired(0.01, 0.04)),
        comparison("over no edges", paired=paired(0.02, 0.5), control="no edges"),
    ]
    measures = {"x": {"measures": {"headline": {"R@5": 0.5, "R@10": 1.0}}}}
    whole = {"schema": 2, "corpus": {"namespaces": 1}, "comparisons": rows, "conditions": measures}
    (tmp_path / "one.json").write_text(json.dumps(whole), encoding="utf-8")
    three = {**whole, "schema": 1, "corpus": {"namespaces": 3}}
    (tmp_path / "three.json").write_text(json.dumps(three), encoding="utf-8")
    return tmp_path


def test_a_number_is_printed_as_records_print_it() -> None:
    assert [number(x) for x in (0.0821, -0.0049, 0.0, -0.0001, 1.0)] == ["+.082", "-.005", ".000", ".000", "+1.000"]
    assert number(0.838, signed=False) == ".838"


def test_a_table_of_differences_is_made_of_a_result_and_bold_is_holms_over_the_table(results: Path) -> None:
    spec = 'kind = "differences"\nhead = "what"\nresults = { one = "one" }\nmetrics = ["R@10"]\ncontrols = false\n'
    assert table_lines(spec, results) == [
        "| what | one |",
        "|---|---|",
        "| a | **+.082 [+.037, +.132]** |",
        "| b | -.005 [-.010, +.020] |",  # .03 alone; of the four tested it is the third, so twice that
        "| c | – |",
        "| d | +.032 |",
        "| e | +.011 [-.010, +.020] |",
        "| graph.weight=0.1 graph.k=8 | **+.100 [-.010, +.020]** |",
        "| f | +.010 [-.010, +.020] |",
    ]
    named = table_lines(spec + 'rows = { "less b" = "b" }\nless = true\n', results)
    assert named[2:] == ["| less b | **+.005 [-.020, +.010]** |"]
    assert len(table_lines(spec.replace("controls = false", ""), results)) == 10


def test_three_conversations_of_an_older_result_have_no_interval_and_no_bold(results: Path) -> None:
    spec = 'kind = "differences"\nresults = { three = "three" }\nmetrics = ["R@10"]\nrows = { a = "a" }\n'
    assert table_lines(spec, results)[2:] == ["| a | +.082 |"]


def test_the_other_kinds_of_table(results: Path) -> None:
    of = 'results = { one = "one" }\nmetrics = ["R@10"]\n'
    assert table_lines('kind = "verdicts"\nrows = { a = "a", c = "c", e = "e" }\n' + of, results)[2:] == [
        "| a | helps +.082 [+.037, +.132], leg-only 7 (2) |",
        "| c | not evaluable |",
        "| e | ruled out +.011 [-.010, +.020], leg-only 7 (2) |",
    ]
    grid = 'kind = "grid"\ndown = ["graph.weight", [0.1, 2]]\nacross = ["graph.k", [8]]\n'
    assert table_lines(grid + of, results) == [
        "| weight | k 8 |",
        "|---|---|",
        "| 0.1 | **.800 (7, 2)** |",
        "| 2 | – |",
    ]
    assert table_lines('kind = "measures"\nresults = { one = "one" }\nmetrics = ["R@5", "R@10"]\n', results)[2:] == [
        "| x | .500 / 1.000 |"
    ]
    assert table_lines('kind = "differences"\ncomparison = "a"\n' + of, results)[2:] == [
        "| R@10 | **+.082 [+.037, +.132]** |"
    ]


def test_a_record_with_another_number_than_its_result_is_stale(results: Path) -> None:
    spec = 'kind = "differences"\nresults = { one = "one" }\nmetrics = ["R@10"]\nrows = { a = "a" }\n'
    record = f"# Text\n\n<!-- table\n{spec}-->\n| old |\n\nand more\n"
    new = rewritten(record, results)
    assert new.endswith("| a | **+.082 [+.037, +.132]** |\n\nand more\n")
    assert (stale(record, results), stale(new, results)) == (True, False)
    assert stale(new.replace("+.082", "+.083"), results)
    with pytest.raises(DatasetError, match="which is not kept"):
        table_lines(spec.replace('"one" }', '"two" }'), results)
    with pytest.raises(DatasetError, match="cannot be made"):
        table_lines("kind = 'nose'", results)


# --- made again -------------------------------------------------------------------------------------------------------


def test_every_committed_result_has_a_command_and_the_command_is_one() -> None:
    for one in manifest():
        name, chosen, rest = COMMAND.resolve_command(COMMAND.make_context("eval", list(one.words)), list(one.words))
        chosen.make_context(name, rest)  # raises for an option that is none
    assert [m.name for m in manifest("harbour")] == [
        "harbour-legs",
        "harbour-controls",
        "harbour-neighbours",
        "harbour-regimes",
    ]
    assert [m.words[-1] for m in manifest("agentnotes_a", ["walk"])] == ["agentnotes_a"]
    with pytest.raises(DatasetError, match="No committed result is of nose"):
        manifest("nose")
    with pytest.raises(DatasetError, match="is called nose"):
        manifest("harbour", ["nose"])


def test_what_differs_is_told_number_by_number(results: Path) -> None:
    committed = json.loads((results / "one.json").read_text(encoding="utf-8"))
    now = json.loads(json.dumps(committed))
    assert differences(committed, now) == []
    nearly = json.loads(json.dumps(committed))
    committed["comparisons"][0]["paired"]["delta"], nearly["comparisons"][0]["paired"]["delta"] = 0.08249, 0.08251
    assert differences(committed, nearly) == []  # printed with three places they are .082 and .083
    committed["comparisons"][0]["paired"]["delta"] = 0.082
    now["comparisons"][0]["paired"]["delta"] = 0.0826
    now["conditions"]["x"]["measures"]["headline"]["R@5"] = 0.51
    del now["comparisons"][1]
    assert differences(committed, now) == [
        ["a", "R@10", "headline", "helps +0.0820", "helps +0.0826"],
        ["b", "R@10", "headline", "not separated -0.0050", "–"],
        ["x", "R@5", "headline", "0.5000", "0.5100"],
    ]
    now = json.loads(json.dumps(committed))
    now["comparisons"][0]["paired"] |= {"low": None, "p_holm": 0.04}
    committed["comparisons"][0] |= {"turnover": {"leg-only gold": 1}}
    now["comparisons"][0] |= {"turnover": {"leg-only gold": 2}}
    now["conditions"]["x"]["measures"]["spatial"] = {"R@5": 0.51}
    committed["conditions"]["x"]["measures"]["spatial"] = {"R@5": 0.5}
    said = [row[-2:] for row in differences(committed, now)]
    assert ["leg-only gold 1", "leg-only gold 2"] in said
    assert ["0.5000", "0.5100"] in said
    assert [then.partition(" ")[0] for then, _ in said] == ["leg-only", "low", "p_holm", "0.5000"]
    assert said[1][1] == "low –"
    assert said[2][1] == "p_holm 0.04"


def test_the_list_of_committed_results_needs_no_data() -> None:
    done = CliRunner().invoke(app, ["evidence", "--list", "--data", "agentnotes_a"], catch_exceptions=False)
    assert done.exit_code == 0
    assert "python -m eval ablate --leg graph --data agentnotes_a" in done.output
    assert CliRunner().invoke(app, ["evidence", "--data", "nose"]).exit_code == 2


def evidence_commands() -> list[Any]:
    commands = []
    for path in sorted((ROOT / "adr").glob("[0-9]*.md")):
        head = front_matter(path.read_text(encoding="utf-8"))
        if "evidence_command" in head:
            slow = [] if path.name[:4] == "0021" else [pytest.mark.slow]
            commands.append(pytest.param(head, id=path.name[:4], marks=slow))
    return commands


@pytest.mark.slow
@pytest.mark.parametrize("head", evidence_commands())
def test_the_command_of_a_record_measures_what_the_record_says(
    head: dict[str, str], store_url: str, tmp_path: Path
) -> None:
    words = shlex.split(head["evidence_command"])
    assert words[:3] == ["python", "-m", "eval"]
    at = words.index("--data")
    data = small(tmp_path / "small")
    given = [*words[3:at], "--data", str(data), *words[at + 2 :]]
    more = ["--store", store_url, "--embedder", "hashing", "--out", str(tmp_path / "out")]
    done = CliRunner().invoke(app, [*given, *more, "--metric", head["evidence_metric"]], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    result = json.loads((tmp_path / "out" / "result.json").read_text(encoding="utf-8"))
    wanted = (head["evidence_comparison"], head["evidence_group"], head["evidence_metric"])
    assert wanted in {(c["name"], c["group"], c["metric"]) for c in result["comparisons"]}


def test_where_a_set_is_missing_one_sentence_says_so_and_no_result_is_taken_for_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SEMMEM_EVAL_DATA", str(tmp_path))
    before = (ROOT / "eval" / "results" / "agentnotes_a-controls.json").read_bytes()
    asked = ["evidence", "--data", "agentnotes_a", "--only", "controls", "--keep"]
    done = CliRunner().invoke(app, asked, catch_exceptions=False)
    assert done.exit_code == 2
    assert "There is no data set at agentnotes_a" in done.output
    assert (ROOT / "eval" / "results" / "agentnotes_a-controls.json").read_bytes() == before


OF_BEFORE = {
    "agentnotes_c-two-regimes": "the set is held out, so it is not measured again for the sake of its form",
    "musique100-related": "of the names and triples of a language model, which a command line does not say",
    "robustness": "of python -m eval.robustness",
    "company": "of python -m eval.robustness, too; its file has the command and the commit",
    "confidence": "its own file has the command; it is no experiment, so it has no corpus of its own",
    "confidence-mpnet": "the same; record 0078",
    "coverage": "of python -m eval.coverage, a simulation of no corpus; record 0060 has its table",
    "peers": "of python -m eval.peers, which asks other systems and measures no recipe; its file has the command",
    "levels": "of python -m eval best-leg --levels, which compares nothing; its own file has the command",
    "best-leg-minilm": "of python -m eval best-leg, which asks several corpora; its file has the command",
    "best-leg-mpnet": "the same with another embedder",
    "best-leg-mpnet-multihop": "the same on two more sets",
    "best-leg-int8": "the same with another embedder",
    "best-leg-e5": "the same with another embedder",
    "floors-minilm": "its own file has the command; it is of eight corpora",
    "floors-hashing": "its own file has the command; it is of eight corpora",
    "hooks": "of python -m eval hooks, which times processes; its file has the command and the commit",
    "week": "of python -m eval week, which plays a corpus of its own; its file has the command and the commit",
    "week-before": "the same without the parts of session-start; its file has the command and the commit",
    "bench": "of python -m eval bench, which measures times and is of no corpus; record 0049 says on what machine",
    "bench-titled": "the same over titled passages; its file has versions, commit and load; record 0108",
    "resident": "what each idea of the read model gave, timed by hand on a busy machine; only ratios are meant",
    "deep": "what each idea about large namespaces gave, timed by hand on a busy machine; only ratios are meant",
    "ingest": "what each idea about ingest gave, timed by hand on a busy machine; only ratios are meant",
    "scale-nodes": "of python -m eval.scale_nodes, of no corpus; record 0099 says on what machine",
    "mixed": "of python -m eval bench mixed, of no corpus; its file has the plan and the commit; record 0104",
    "mixed-million": "the same over a million memories, two turns of four minutes; record 0104",
    "mixed-hour": "the same for an hour, semmem alone; record 0104",
    "mixed-hour-later": "the same for an hour, once namespaces were saved beside their writers; record 0104",
    "mixed-hours": "the same for an hour at a later commit, semmem alone so far; record 0104",
    "mixed-35-minutes": "the same for 35 minutes, once namespaces were saved beside their writers; record 0119",
    "trips": "what each idea about round trips gave, timed by hand on a busy machine; only ratios are meant",
}
"""Committed results of before they said how they were made, or that no command of the list makes, and why they stay."""


def test_every_committed_result_is_made_by_the_command_it_names_at_a_clean_commit() -> None:
    made_by = {m.name: shlex.join(["python", "-m", "eval", *m.words]) for m in manifest()}
    for path in sorted((ROOT / "eval" / "results").glob("*.json")):
        if path.stem in OF_BEFORE:
            continue
        result = json.loads(path.read_text(encoding="utf-8"))
        assert result["line"] == made_by[path.stem], path.stem
        assert clean(result["environment"]["commit"]), path.stem
        vectors = result["environment"]["vectors"]
        assert re.fullmatch(r"[0-9a-f]{64}", vectors["stored sha256"]), path.stem
        assert all(clean(commit) for commit in vectors["made at"]), path.stem
        standing = ("tuning set", *OURS.values(), "written for this project, not tuned on")
        assert result["corpus"]["standing"] in standing, path.stem
        assert result["schema"] in (2, 3), path.stem


def test_every_result_of_the_list_is_committed() -> None:
    committed = {path.stem for path in (ROOT / "eval" / "results").glob("*.json")}
    listed = {m.name for m in manifest()}
    assert listed <= committed
    assert committed - listed <= set(OF_BEFORE)
    assert set(OF_BEFORE) <= committed


def test_a_record_that_has_numbers_of_a_tuning_set_says_that_it_is_one() -> None:
    for path in sorted((ROOT / "adr").glob("[0-9]*.md")):
        text = path.read_text(encoding="utf-8")
        if any(f" {name}" in text for name in TUNED_ON):
            assert "tuning set" in text, path.name
        if "agentnotes_c" in text:
            assert "kept apart" in text or "looked at" in text, path.name


def test_the_commands_that_decided_a_record_are_commands() -> None:
    count = 0
    for path in sorted((ROOT / "adr").glob("[0-9]*.md")):
        source = front_matter(path.read_text(encoding="utf-8")).get("decided_by", "")
        _, separator, rest = source.rpartition("python -m eval ")
        if separator:
            words = shlex.split(rest)
            name, chosen, more = COMMAND.resolve_command(COMMAND.make_context("eval", list(words)), list(words))
            chosen.make_context(name, more)
            count += 1
    assert count >= 10


# --- held out ---------------------------------------------------------------------------------------------------------


@contextmanager
def _opened(url: str) -> Iterator[Any]:
    with semmem.connect(url, embedder="hashing") as mem:
        yield mem


@pytest.mark.slow
def test_a_held_out_set_is_looked_at_once_and_a_second_look_says_so(
    store_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = small(tmp_path / "sets" / "mine").parent
    (path,) = sets(folder)
    assert path.name == "mine"

    def opened(corpus: Corpus, store: str | None, embedder: str | None) -> Any:
        return _opened(store_url)

    def once(**more: Any) -> dict[str, Any]:
        record = look(path, tmp_path / "records", opened, metrics=("R@10",), out=tmp_path / "out", **more)
        told: dict[str, Any] = json.loads(record.read_text(encoding="utf-8"))
        return told

    monkeypatch.setattr(held_out, "COMMIT", "0123456789ab")
    first = once()
    assert len(first["looks"]) == 1
    assert (first["looked at with other commits"], first["looked at with other bytes"]) == ([], [])
    assert first["result"]["corpus"]["standing"] == "not known to this project"
    controls = {c["control"] for c in first["result"]["comparisons"]}
    assert {"no edges", "seeds only", "random graph", "convex", "re-voting"} <= controls
    assert {"hybrid", "scored", "default~graph, convex"} <= set(first["result"]["conditions"])
    with pytest.raises(DatasetError, match=r"mine was measured with the commit 0123456789ab on .* Pass --again"):
        once()
    assert len(once(again=True)["looks"]) == 2
    monkeypatch.setattr(held_out, "COMMIT", "ba9876543210")
    assert once()["looked at with other commits"] == ["0123456789ab"]
    assert record_of(load(path), tmp_path, "x").name.startswith("mine-")


def test_a_look_wants_a_clean_commit_and_no_tuning_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = small(tmp_path / "mine")

    def never(corpus: Corpus, store: str | None, embedder: str | None) -> Any:
        raise AssertionError("nothing may be measured")

    monkeypatch.setattr(held_out, "COMMIT", "0123456789ab-dirty")
    with pytest.raises(DatasetError, match="commit what has changed first"):
        look(path, tmp_path / "records", never, out=tmp_path / "out")
    monkeypatch.setattr(held_out, "COMMIT", "0123456789ab")
    monkeypatch.setattr(held_out, "role", lambda corpus: "tuning set")
    with pytest.raises(DatasetError, match="is a tuning set of the recipes"):
        look(path, tmp_path / "records", never, out=tmp_path / "out")


def test_another_name_makes_no_first_look_of_a_second_and_other_bytes_are_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, records = small(tmp_path / "mine"), tmp_path / "records"
    records.mkdir()
    monkeypatch.setattr(held_out, "COMMIT", "0123456789ab")
    record = record_of(load(path), records, "0123456789ab")
    record.write_text('{"looks": ["2026-01-01"]}', encoding="utf-8")
    renamed = path.rename(tmp_path / "yours")
    assert record_of(load(renamed), records, "0123456789ab") == record
    with pytest.raises(DatasetError, match=r"yours was measured with the commit 0123456789ab on 2026-01-01.* mine-"):
        look(renamed, records, lambda *_: nullcontext(), out=tmp_path / "out")
    assert held_out._other_bytes(load(renamed), records) == []
    (records / "yours-0f0f0f0f-ba9876543210.json").touch()
    (records / "not-yours-0f0f0f0f-ba9876543210.json").touch()
    assert held_out._other_bytes(load(renamed), records) == ["0f0f0f0f at ba9876543210"]


def test_sets_are_those_of_a_folder_or_the_folder_itself(tmp_path: Path) -> None:
    small(tmp_path / "sets" / "one")
    small(tmp_path / "sets" / "two")
    (tmp_path / "sets" / "notes").mkdir()
    assert [p.name for p in sets(tmp_path / "sets")] == ["one", "two"]
    assert [p.name for p in sets(tmp_path / "sets", ["two"])] == ["two"]
    assert sets(tmp_path / "sets" / "one") == [tmp_path / "sets" / "one"]
    for folder, names in ((tmp_path / "none", ()), (tmp_path / "sets", ("notes",)), (tmp_path / "sets" / "notes", ())):
        with pytest.raises(DatasetError):
            sets(folder, names)
    for name, former in (("held-out", False), ("kept-apart", True)):  # the former name works, with a warning
        done = CliRunner().invoke(app, [name, str(tmp_path / "none")])
        assert (done.exit_code, "There is no folder" in done.stderr) == (2, True)
        assert ("deprecated" in done.stderr) == former


def test_the_plan_of_a_look_has_every_recipe_once() -> None:
    conditions, comparisons = plan()
    names = [c.name for c in conditions]
    assert len(set(names)) == len(names)
    assert len({c.name for c in comparisons}) == len(comparisons)
    assert sum(c.control is not None for c in comparisons) == 5


CONTROLS = {
    "no edges": "over no edges",
    "a second vote of the other legs": "over seeds only",
    "convex fusion of the other two legs, half and half": "over convex without it",
    "a random graph": "over a random graph",
}


def of_controls(name: str, comparison: str) -> tuple[dict[str, float], dict[str, Any], dict[str, Any]]:
    path = ROOT / "eval" / "results" / f"{name}-controls.json"
    result = json.loads(path.read_text(encoding="utf-8"))
    recall = {of: at["measures"]["headline"]["R@10"] for of, at in result["conditions"].items()}
    found = next(
        c for c in result["comparisons"] if (c["name"], c["group"], c["metric"]) == (comparison, "headline", "R@10")
    )
    return recall, found, found.get("paired") or {}


def difference(at: dict[str, Any]) -> str:
    bounds = "" if at["low"] is None else f" [{number(at['low'])}, {number(at['high'])}]"
    return f"{number(at['delta'])}{bounds}"


@pytest.mark.parametrize("name", ["harbour", "musique100", "hotpotqa100", "agentnotes_a", "locomo3"])
def test_the_evidence_prints_what_the_graph_brings_in_its_committed_results(name: str) -> None:
    recall, found, at = of_controls(name, "graph in default")
    without, whole = (number(recall[of], signed=False) for of in ("default~graph", "default"))
    row = next(line for line in text("docs/evidence.md").splitlines() if line.startswith(f"| {name} ("))
    assert f"| {without} | {whole} | {difference(at)} | {found['verdict']}" in row


@pytest.mark.parametrize("row", list(CONTROLS))
def test_the_evidence_prints_what_the_graph_brings_over_its_controls(row: str) -> None:
    cells = [
        difference(of_controls(name, f"graph in default, {CONTROLS[row]}")[2])
        for name in ("musique100", "hotpotqa100", "harbour")
    ]
    assert f"| {row} | {' | '.join(cells)} |" in text("docs/evidence.md")
