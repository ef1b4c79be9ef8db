"""The runner of mutants, on a project of three lines; the list that is committed is of files that are here."""

from __future__ import annotations

import json
import time
import tomllib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path

import pytest

from eval import mutants as runner
from eval.mutants import (
    DRAWN,
    LIST,
    ROOT,
    Mutant,
    Runner,
    Tests,
    _changed,
    copied,
    interval,
    limit,
    mutants,
    record,
    run_all,
    summary,
)

IMPORT = "from semmem.one import larger\n\n\n"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A checkout of one module and two tests; pytest runs them without the plug-ins that take a second to import."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setenv("PYTEST_PLUGINS", "pytest_timeout")
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

    def never(*_: object, **__: object) -> bool:
        raise AssertionError("it was run before")

    monkeypatch.setattr(Runner, "passes", never)
    assert list(run_all(chosen[:2], project, file).values()) == ["dead", "survived"]
    monkeypatch.undo()
    # another test, another outcome: nothing that is kept stands for it
    text = f"{IMPORT}def test_it():\n    assert larger(1, 1)\n"
    (project / "tests" / "test_one.py").write_text(text, encoding="utf-8")
    assert list(run_all(chosen[:1], project, file).values()) == ["survived"]


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_mutant_that_goes_on_for_ever_is_recorded_as_timed_out(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "limit", lambda _baseline: 2.0)
    for_ever = mutant("a > b or [1 for one in iter(int, 1)]")
    test = project / "tests" / "test_one.py"
    test.write_text(f"{IMPORT}def test_it():\n    assert larger(1, 2) == 2\n", encoding="utf-8")
    assert run_all([for_ever], project, tmp_path / "kept.jsonl") == {for_ever: "timed out"}
    assert [row["outcome"] for row in kept(tmp_path / "kept.jsonl")] == ["baseline", "timed out"]


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_where_pytest_breaks_off_nothing_is_said_of_the_mutant_and_nothing_kept(project: Path, tmp_path: Path) -> None:
    killed = mutant("__import__('os').kill(__import__('os').getpid(), 9)")
    exits = mutant("__import__('os')._exit(3)")
    outcomes = run_all([killed, exits], project, tmp_path / "kept.jsonl")
    assert list(outcomes.values()) == ["broke off", "broke off"]
    assert [row["outcome"] for row in kept(tmp_path / "kept.jsonl")] == ["baseline"]
    assert not summary({killed: "broke off", mutant("1"): "dead"})[1]


def test_where_the_process_that_forks_ends_the_tests_broke_off_and_nothing_else_is_ended(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / "eval").mkdir()
    (project / "eval" / "__init__.py").touch()
    (project / "eval" / "warm.py").write_text("raise SystemExit(1)\n", encoding="utf-8")
    groups: list[int] = []
    monkeypatch.setattr(runner.os, "killpg", lambda group, _signal: groups.append(group))
    forks = Runner([project], warm=True)
    try:
        for _ in range(2):  # the second starts another one
            with pytest.raises(ChildProcessError, match="pytest ended with -9"):
                forks.passes(("tests/test_one.py",), 60.0)
        assert groups == []  # 0 would be the group of this process
    finally:
        monkeypatch.undo()
        forks.close()


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_changes_of_sql_run_in_forks_that_read_it_anew(tmp_path: Path) -> None:
    file = "semmem/stores/sql/sqlite/setting.sql"
    tests = "tests/stores/test_store_conformance.py::TestSqliteFile::"
    settings = (f"{tests}test_settings_of_a_namespace_come_back_as_they_were_set",)
    others = (f"{tests}test_a_dry_run_counts_and_forgets_nothing",)
    old, new = "WHERE :namespace IS NULL OR namespace = :namespace", "WHERE true"
    chosen = [Mutant(file, old, new, settings), Mutant(file, old, new, others), Mutant(file, old, "WHERE", settings)]
    outcomes = run_all(chosen, ROOT, tmp_path / "kept.jsonl")
    assert list(outcomes.values()) == ["dead", "survived", "dead"]


def test_each_text_of_a_changed_file_has_a_time_of_its_own(project: Path) -> None:
    path, seen = project / "semmem" / "one.py", []
    before = path.stat().st_mtime
    for new in ("a < b", "a = b"):  # of as many bytes, and within a second
        with _changed(project, mutant(new)):
            seen.append(path.stat().st_mtime)
    assert len({before, *seen}) == 3
    assert path.stat().st_mtime == before


def kept(file: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is run, in order, each answered at once: those without a change pass, except the broken test."""
    runs: list[str] = []

    def passes(_self: Runner, tests: Tests, seconds: float, mutant: Mutant | None = None) -> bool | None:
        runs.append(f"{mutant.new if mutant else 'baseline'} of {tests[0]} in {seconds:.0f}")
        if any(run.startswith("interrupt") for run in runs):
            raise KeyboardInterrupt  # as a runner does from the moment that it is stopped
        return mutant is None and tests != ("tests/test_broken.py",)

    monkeypatch.setattr(Runner, "passes", passes)
    return runs


def test_tests_are_run_once_without_a_change_before_their_mutants_and_a_failure_runs_none(
    project: Path, tmp_path: Path, runs: list[str]
) -> None:
    chosen = [mutant("a < b"), mutant("0", tests="tests/test_broken.py"), mutant("b"), mutant("a")]
    outcomes = run_all(chosen, project, tmp_path / "kept.jsonl")
    assert list(outcomes.values()) == ["dead", "tests fail without it", "dead", "dead"]
    assert runs == [
        "baseline of tests/test_one.py in 900",
        "a < b of tests/test_one.py in 60",
        "b of tests/test_one.py in 60",
        "a of tests/test_one.py in 60",
        "baseline of tests/test_broken.py in 900",
    ]


@pytest.mark.parametrize("jobs", [2, 5])
def test_several_at_a_time_come_to_the_same_outcomes(project: Path, tmp_path: Path, runs: list[str], jobs: int) -> None:
    files = [f"tests/test_{number}.py" for number in range(4)]
    for name in files:
        (project / name).write_text(f"{IMPORT}def test_it():\n    assert larger(2, 1) == 2\n", encoding="utf-8")
    chosen = [mutant(new, tests=name) for new in ("a < b", "b") for name in [*files, "tests/test_broken.py"]]
    outcomes = run_all(chosen, project, tmp_path / "kept.jsonl", jobs=jobs)
    assert [outcomes[m] for m in chosen] == [*["dead"] * 4, "tests fail without it"] * 2
    for name in files:
        of_file = [run.partition(" of ")[0] for run in runs if name in run]
        assert of_file[0] == "baseline"
        assert sorted(of_file[1:]) == ["a < b", "b"]


def change_code(project: Path) -> None:
    (project / "semmem" / "two.py").write_text("TWO = 2\n", encoding="utf-8")


def change_harness(project: Path) -> None:
    (project / "eval").mkdir()
    (project / "eval" / "one.py").touch()


def change_test(project: Path) -> None:
    with (project / "tests" / "test_one.py").open("a", encoding="utf-8") as file:
        file.write("# changed\n")


def change_other_test(project: Path) -> None:
    (project / "tests" / "test_other.py").touch()


@pytest.mark.parametrize(
    ("change", "again"),
    [(change_code, True), (change_harness, True), (change_test, True), (change_other_test, False)],
)
def test_tests_that_passed_are_run_again_only_where_the_code_or_they_have_changed(
    project: Path, tmp_path: Path, runs: list[str], change: Callable[[Path], None], again: bool
) -> None:
    file = tmp_path / "kept.jsonl"
    run_all([mutant("a < b")], project, file)
    change(project)
    del runs[:]
    run_all([mutant("b")], project, file)
    assert [run.partition(" of ")[0] for run in runs] == [*["baseline"] * again, "b"]


def test_tests_that_passed_with_other_packages_are_run_again(
    project: Path, tmp_path: Path, runs: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    run_all([mutant("a < b")], project, tmp_path / "kept.jsonl")
    del runs[:]
    monkeypatch.setattr(runner, "distributions", lambda: iter(()))
    run_all([mutant("b")], project, tmp_path / "kept.jsonl")
    assert [run.partition(" of ")[0] for run in runs] == ["baseline", "b"]


def test_an_interrupt_keeps_what_was_known_and_no_more(project: Path, tmp_path: Path, runs: list[str]) -> None:
    file = tmp_path / "kept.jsonl"
    with pytest.raises(KeyboardInterrupt):
        run_all([mutant("a < b"), mutant("interrupt"), mutant("b")], project, file)
    assert [row["outcome"] for row in kept(file)] == ["baseline", "dead"]


def test_a_runner_that_is_stopped_ends_the_tests_that_run_and_says_nothing_of_them(project: Path) -> None:
    (project / "tests" / "test_one.py").write_text("while True:\n    pass\n", encoding="utf-8")
    one = Runner([project])
    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(one.passes, ("tests/test_one.py",), 600.0)
        while not one._running and not future.done():
            time.sleep(0.01)
        one.stop()
        with pytest.raises(KeyboardInterrupt):
            future.result(timeout=60)
    with pytest.raises(KeyboardInterrupt):
        one.passes(("tests/test_broken.py",), 600.0)


def test_the_time_of_a_mutant_is_limited_by_that_of_its_tests_without_it() -> None:
    assert [limit(0.0), limit(10.0), limit(168.0), limit(400.0)] == [60, 110, 900, 900]


def test_what_is_kept_is_of_the_helpers_of_a_test_as_well(project: Path) -> None:
    folder = project / "tests" / "helping"
    folder.mkdir()
    (folder / "first.py").write_text("from tests.helping import (\n    second,\n    third,\n)\n", encoding="utf-8")
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
    report, good = summary({dead: "timed out"})
    assert good
    assert "  1 of   1 dead  semmem/one.py" in report
    assert "timed out: semmem/one.py: a > b → 1" in report
    assert not summary({dead: "dead", known: "out of date"})[1]


def test_a_room_in_which_too_few_are_noticed_is_not_made_good_by_the_others() -> None:
    many = {Mutant("semmem/read/one.py", str(i), "", ()): "dead" for i in range(99)}
    lone = {Mutant("semmem/write/two.py", "a", "b", ()): "survived"}
    report, good = summary({**many, **lone})  # 99 of 100 in all
    assert not good
    assert "semmem/read: 99 of 99 (96% to 100% at 95 %)" in report
    assert "semmem/write: 0 of 1 (0% to 79% at 95 %), and 92% are asked for" in report
    assert summary(many)[1]


def test_the_interval_of_a_share_is_wilsons() -> None:
    # Wilson (1927) for 9 of 10: centre (.9 + 1.92/10)/(1 + 3.84/10) = .789, half of its width .193
    assert interval(9, 10) == (pytest.approx(0.596, abs=1e-3), pytest.approx(0.982, abs=1e-3))


@pytest.mark.parametrize("drawn", [DRAWN, DRAWN.with_name("mutants-drawn-2.toml")], ids=lambda path: path.stem)
def test_a_drawn_list_is_of_the_rooms_that_are_drawn_from(drawn: Path) -> None:
    rooms = {"semmem/importers", "semmem/write", "semmem/client", "semmem/interfaces/http", "semmem/stores/sqlite"}
    assert {one.room for one in mutants(drawn)} == rooms
    assert len(mutants(drawn)) == 40


def test_each_module_of_a_room_that_is_drawn_from_has_its_tests() -> None:
    rooms = tomllib.loads((LIST.with_name("mutants-rooms.toml")).read_text(encoding="utf-8"))
    for room, files in rooms.items():
        code = {path.name for path in (ROOT / room).glob("*.py") if "\ndef " in path.read_text(encoding="utf-8")}
        assert code <= files.keys(), room
        assert all((ROOT / room / name).is_file() for name in files), room
        assert all((ROOT / test.partition("::")[0]).exists() for tests in files.values() for test in tests), room


def test_another_drawn_list_is_run_and_recorded_beside_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    drawn = tmp_path / "drawn.toml"
    change = "[[of.change]]\nold = 'a'\nnew = 'b'\n"
    drawn.write_text(f"[[of]]\nfile = 'semmem/one.py'\ntests = ['tests/test_one.py']\n{change}", encoding="utf-8")
    monkeypatch.setattr(runner, "COMMIT", "aaaaaaaaaaaa")
    monkeypatch.setattr(runner, "run_all", lambda chosen, *_, **__: dict.fromkeys(chosen, "dead"))
    assert runner.main(["--drawn", str(drawn), "--record"]) == 0
    kept = json.loads((tmp_path / "drawn.json").read_text(encoding="utf-8"))
    assert (kept["semmem/one.py"]["mutants"], kept["semmem/one.py"]["dead"]) == (1, 1)


def test_a_list_that_is_not_there_is_refused_in_one_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    assert runner.main(["--drawn", "nowhere.toml"]) == 2
    assert capsys.readouterr().err == "There is no list nowhere.toml; eval/draw_mutants.py prints one.\n"


def test_the_record_says_of_each_file_what_died_and_at_which_commit(tmp_path: Path) -> None:
    dead, known, lives = mutant("1"), mutant("2", reason="equal"), mutant("3")
    path = tmp_path / "mutants.json"
    record({Mutant("semmem/two.py", "a", "b", ()): "dead"}, path, "aaaaaaaaaaaa")
    loops = mutant("4")
    record({dead: "dead", known: "survived", lives: "survived", loops: "timed out"}, path, "bbbbbbbbbbbb")
    assert json.loads(path.read_text(encoding="utf-8")) == {
        "semmem/one.py": {
            "commit": "bbbbbbbbbbbb",
            "mutants": 4,
            "dead": 2,
            "of these, timed out": ["semmem/one.py: a > b → 4"],
            "survived, for a reason": 1,
            "survived": ["semmem/one.py: a > b → 3"],
        },
        "semmem/two.py": {
            "commit": "aaaaaaaaaaaa", "mutants": 1, "dead": 1, "of these, timed out": [], "survived, for a reason": 0,
            "survived": [],
        },
    }  # fmt: skip


def test_the_committed_list_names_files_texts_and_tests_that_are_here() -> None:
    every = mutants(LIST)
    assert len(every) > 150
    for one in every:
        assert (ROOT / one.file).is_file(), one.name
        assert all((ROOT / name.partition("::")[0]).exists() for name in one.tests), one.name
        assert (ROOT / one.file).read_text(encoding="utf-8").count(one.old) == 1, one.name
    assert len({(m.file, m.old, m.new) for m in every}) == len(every)


def test_a_record_of_files_that_differ_from_their_commit_is_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(runner, "COMMIT", "aaaaaaaaaaaa-dirty")
    monkeypatch.setattr(runner, "run_all", lambda *_, **__: pytest.fail("nothing is run for such a record"))
    assert runner.main(["--record", "--only", "fusion.py"]) == 2
    assert "Files differ from their commit" in capsys.readouterr().err


def test_a_copy_has_the_folders_that_tests_read_beside_the_code(tmp_path: Path) -> None:
    copy = copied(ROOT, tmp_path / "copy")
    assert {folder.name for folder in copy.iterdir() if folder.is_dir()} == {
        "adr", "docs", "eval", "examples", "plugins", "semmem", "semmem_eval", "tests",
    }  # fmt: skip
    assert not (copy / "eval" / "runs").exists()
