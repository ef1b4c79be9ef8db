"""The command line over a SQLite store."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from semmem.doors.cli.app import run


@pytest.fixture
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.usefixtures("_here")
def test_doctor_says_that_it_is_lexical_alone_and_finds_nothing_bad_about_it(
    capfd: pytest.CaptureFixture[str],
) -> None:
    assert run(["remember", "heron", "--url", "sqlite:notes.db"]) == 0
    capfd.readouterr()
    assert run(["doctor", "--url", "sqlite:notes.db", "--json"]) == 0
    found = {one["what"]: one for one in json.loads(capfd.readouterr().out)["findings"]}
    assert (found["store"]["state"], found["store"]["detail"][:10]) == ("good", "1 memory i")
    assert found["server"]["detail"] == "none: SQLite, a file"
    said = "only lexical: SQLite keeps no vectors, SQLite keeps no graph; a PostgreSQL store does"
    assert (found["legs"]["state"], found["legs"]["detail"]) == ("optional", said)
    assert "vectors" not in found


@pytest.mark.usefixtures("_here")
def test_the_commands_of_the_second_day_work_or_say_in_a_sentence_why_not(capfd: pytest.CaptureFixture[str]) -> None:
    store = ["--url", "sqlite:notes.db"]
    assert run(["remember", "heron", "--id", "a", *store]) == 0
    for line in (["rebuild", "--extract"], ["maintain"], ["export", "out.jsonl"], ["forget", "a", "--hard", "--yes"]):
        assert run([*line, *store]) == 0, line
    assert run(["import", "jsonl", "out.jsonl", *store]) == 0
    capfd.readouterr()
    for line in (["rebuild"], ["graph"], ["concepts"], ["backup", "all.backup"]):
        assert run([*line, *store]) == 2, line
        out, err = capfd.readouterr()
        assert (out, err.count("\n")) == ("", 1), line
        assert "PostgreSQL" in err, line


@pytest.mark.usefixtures("_here")
def test_an_error_is_one_sentence_with_the_exit_code_of_its_class(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "notes.db").write_text("hello")
    assert run(["recall", "heron", "--url", "sqlite:notes.db"]) == 2
    out, err = capfd.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert "no SQLite database" in err
