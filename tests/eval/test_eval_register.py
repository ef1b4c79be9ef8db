"""All that was ever asked is listed and corrected as one family, and the documents say the number."""

from __future__ import annotations

import json
from pathlib import Path

from typer.testing import CliRunner

from eval.cli import app
from eval.reports.register import register
from tests.docs.pages import ROOT, text


def result(path: Path, *p_values: float | None) -> None:
    rows = [
        {"name": f"c{i}", "metric": "R@10", "group": "headline", "verdict": "helps"}
        | ({} if p is None else {"paired": {"delta": 0.1, "p": p}})
        for i, p in enumerate(p_values)
    ]
    path.write_text(json.dumps({"comparisons": rows}), encoding="utf-8")


def test_the_tests_of_all_results_are_one_family(tmp_path: Path) -> None:
    result(tmp_path / "a.json", 0.001, 0.03, None)
    result(tmp_path / "b.json", 0.02, 0.5, 0.9)
    (tmp_path / "bench.json").write_text('{"seconds": 3}', encoding="utf-8")
    whole = register(tmp_path)
    # five tests: Holm asks the first for .01 and the second for .0125; Benjamini and Hochberg the second for .02, and
    # the third for .03
    assert (whole.results, len(whole.asked), whole.without, whole.alone) == (2, 5, 1, 3)
    assert [whole.asked[i].p for i in sorted(whole.holm)] == [0.001]
    assert {whole.asked[i].p for i in whole.discoveries} == {0.001}
    assert whole.rows() == [["a", "2", "2", "1", "1"], ["b", "3", "1", "0", "0"]]
    assert whole.sentence().endswith("1 by Holm's correction, which asks the first for p below 1.0e-02.")
    result(tmp_path / "b.json", 0.0199, 0.5, 0.9)
    assert {register(tmp_path).asked[i].p for i in register(tmp_path).discoveries} == {0.001, 0.0199}


def test_the_tests_of_disturbed_sets_are_of_the_family_too(tmp_path: Path) -> None:
    result(tmp_path / "a.json", 0.01)
    rows = [
        {"row": "as they are", "R@5": 0.7},
        {"row": "in lower case", "R@5": 0.6, "R@5 difference": {"delta": -0.1, "p": 0.04}},
        {"row": "shuffled", "R@5": 0.7, "R@5 difference": {"delta": 0.0, "p": None}},
    ]
    (tmp_path / "robustness.json").write_text(json.dumps({"sets": {"mine": rows}}), encoding="utf-8")
    (tmp_path / "peers.json").write_text(json.dumps({"sets": {"mine": {"systems": {}}}}), encoding="utf-8")
    whole = register(tmp_path)
    assert (whole.results, whole.without) == (2, 1)
    assert [(at.result, at.comparison, at.metric, at.p) for at in whole.asked] == [
        ("a", "c0", "R@10", 0.01),
        ("robustness", "in lower case", "R@5", 0.04),
    ]


def test_a_family_in_which_no_draws_could_leave_anything_says_so(tmp_path: Path) -> None:
    result(tmp_path / "a.json", *[0.0001] * 501)  # .05 / 501 is below 1 / 10,000
    assert register(tmp_path).sentence().endswith("for p below 1.0e-04, less than 10,000 draws can show.")


def test_a_folder_without_results_asked_nothing(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["register", "--results", str(tmp_path)])
    assert done.exit_code == 0
    assert "0 tests in 0 committed results" in done.output
    assert CliRunner().invoke(app, ["register", "--results", str(tmp_path / "none")]).exit_code == 2


def test_the_evidence_says_what_the_register_says() -> None:
    whole, said = register(ROOT / "eval" / "results"), " ".join(text("docs/evidence.md").split())
    for number in (len(whole.asked), whole.results, whole.without, whole.alone, len(whole.discoveries)):
        assert f"{number:,}" in said
    assert whole.sentence().partition(" by themselves")[0].replace(": ", "; ") in said
    assert (len(whole.holm) == 0) == ("None remains by Holm's correction" in said)
    assert f"{whole.least:.1e}" in said


def test_a_look_at_a_sealed_set_is_counted_with_the_results(tmp_path: Path) -> None:
    result(tmp_path / "a.json", 0.001, None)
    (tmp_path / "kept-apart").mkdir()
    result(tmp_path / "kept-apart" / "b.json", 0.02, 0.5)
    content = json.loads((tmp_path / "kept-apart" / "b.json").read_text(encoding="utf-8"))
    (tmp_path / "kept-apart" / "b.json").write_text(json.dumps({"looks": ["today"], "result": content}), "utf-8")
    whole = register(tmp_path)
    assert (whole.results, len(whole.asked), whole.without) == (2, 3, 1)


def test_a_file_that_is_no_result_is_told_in_one_sentence(tmp_path: Path) -> None:
    for content, words in (("{", "is not JSON"), ("[1]", "holds no result"), ("\xff", "is not JSON")):
        (tmp_path / "x.json").write_bytes(content.encode("latin-1"))
        answer = CliRunner().invoke(app, ["register", "--results", str(tmp_path)])
        assert answer.exit_code == 2
        assert words in " ".join(answer.output.split())
        assert "x.json" in "".join(answer.output.split())
