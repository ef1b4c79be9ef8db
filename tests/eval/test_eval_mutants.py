"""The runner of mutants, on a project of three lines; the list that is committed is of files that are here."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import pytest

from eval import mutants as runner
from eval.mutants import LIST, Mutant, Outcome, mutants, record, run_all, summary

ROOT = Path(__file__).resolve().parents[2]
IMPORT = "from semmem.one import larger\n\n\n"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    (root / "semmem").mkdir(parents=True)
    (root / "tests").mkdir()
    (root / "semmem" / "__init__.py").touch()
    (root / "semmem" / "one.py").write_text("def larger(a, b):\n    return a if a > b else b\n", encoding="utf-8")
    (root / "tests" / "test_one.py").write_text(
        f"{IMPORT}def test_it():\n    assert larger(2, 1) == 2\n", encoding="utf-8"
    )
    (root / "tests" / "test_broken.py").write_text("def test_it():\n    raise SystemError\n", encoding="utf-8")
    return root


def mutant(new: str, old: str = "a > b", tests: str = "tests/test_one.py", reason: str | None = None) -> Mutant:
    return Mutant("semmem/one.py", old, new, (tests,), reason)


@pytest.mark.slow
@pytest.mark.timeout(900)  # each outcome is a run of pytest
def test_a_mutant_is_dead_where_a_test_notices_and_what_was_found_is_kept(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "kept.jsonl"
    chosen = [
        mutant("a < b"),
        mutant("a >= b", reason="of equals either is the larger"),
        mutant("c", old="not there"),
        mutant("a != b", tests="tests/test_broken.py"),
    ]
    before = (project / "semmem" / "one.py").read_text(encoding="utf-8")
    outcomes = run_all(chosen, project, file)
    assert list(outcomes.values()) == ["dead", "survived", "out of date", "tests fail without it"]
    assert (project / "semmem" / "one.py").read_text(encoding="utf-8") == before

    def never(*_: object, **__: object) -> Outcome:
        raise AssertionError("it was run before")

    monkeypatch.setattr(runner, "outcome", never)
    assert list(run_all(chosen[:2], project, file).values()) == ["dead", "survived"]
    monkeypatch.undo()
    # another test, another outcome: nothing that is kept stands for it
    text = f"{IMPORT}def test_it():\n    assert larger(1, 1)\n"
    (project / "tests" / "test_one.py").write_text(text, encoding="utf-8")
    assert list(run_all(chosen[:1], project, file).values()) == ["survived"]


def test_what_is_kept_is_of_the_helpers_of_a_test_as_well(project: Path) -> None:
    folder = project / "tests" / "helping"
    folder.mkdir()
    (folder / "first.py").write_text("from tests.helping import second, third\n", encoding="utf-8")
    for name in ("second", "third", "other"):
        (folder / f"{name}.py").write_text("ONE = 1\n", encoding="utf-8")
    test = project / "tests" / "test_one.py"
    test.write_text(f"from tests.helping.first import ONE\n{test.read_text(encoding='utf-8')}", encoding="utf-8")
    keys = [mutant("a < b").key(project)]
    for name in ("helping/other.py", "helping/third.py", "helping/first.py", "test_one.py", "conftest.py"):
        with (project / "tests" / name).open("a", encoding="utf-8") as file:
            file.write("# changed\n")
        keys.append(mutant("a < b").key(project))
    assert [one == before for before, one in pairwise(keys)] == [True, False, False, False, False]


def test_the_share_leaves_out_what_a_reason_is_given_for_and_a_stale_list_is_not_good() -> None:
    dead, known, lives = mutant("1"), mutant("2", reason="equal"), mutant("3")
    report, good = summary({dead: "dead", known: "survived"})
    assert good
    assert "1 of 2 dead; without those that a reason is given for, 1 of 1: 100.0%" in report
    assert "survived: semmem/one.py: a > b → 2 (equal)" in report
    assert not summary({dead: "dead", lives: "survived"})[1]
    assert not summary({dead: "dead", known: "out of date"})[1]


def test_the_record_says_of_each_file_what_died_and_at_which_commit(tmp_path: Path) -> None:
    dead, known, lives = mutant("1"), mutant("2", reason="equal"), mutant("3")
    path = tmp_path / "mutants.json"
    record({Mutant("semmem/two.py", "a", "b", ()): "dead"}, path, "aaaaaaaaaaaa")
    record({dead: "dead", known: "survived", lives: "survived"}, path, "bbbbbbbbbbbb")
    assert json.loads(path.read_text(encoding="utf-8")) == {
        "semmem/one.py": {
            "commit": "bbbbbbbbbbbb",
            "mutants": 3,
            "dead": 1,
            "survived, for a reason": 1,
            "survived": ["semmem/one.py: a > b → 3"],
        },
        "semmem/two.py": {
            "commit": "aaaaaaaaaaaa", "mutants": 1, "dead": 1, "survived, for a reason": 0, "survived": [],
        },
    }  # fmt: skip


def test_the_committed_list_names_files_and_tests_that_are_here() -> None:
    every = mutants(LIST)
    assert len(every) > 150
    for one in every:
        assert (ROOT / one.file).is_file(), one.name
        assert all((ROOT / name.partition("::")[0]).exists() for name in one.tests), one.name
    assert len({(m.file, m.old, m.new) for m in every}) == len(every)
