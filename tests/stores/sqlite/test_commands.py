"""The command line over a SQLite store."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from semmem.interfaces.cli.app import run
from semmem.stores.sqlite import resident


@pytest.fixture
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.usefixtures("_here")
def test_doctor_finds_nothing_bad_about_a_file(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SEMMEM_EMBEDDER", "hashing")
    assert run(["remember", "heron", "--url", "sqlite:notes.db"]) == 0
    capfd.readouterr()
    assert run(["doctor", "--url", "sqlite:notes.db", "--json"]) == 0
    found = {one["what"]: one for one in json.loads(capfd.readouterr().out)["findings"]}
    assert (found["store"]["state"], found["store"]["detail"][:10]) == ("good", "1 memory i")
    assert found["server"]["detail"] == "none: SQLite, a file"
    assert (found["vectors"]["state"], found["vectors"]["detail"]) == ("good", "1, made by hashing")
    monkeypatch.setattr(resident, "MOST", 0)
    assert run(["doctor", "--url", "sqlite:notes.db", "--json"]) == 0
    found = {one["what"]: one for one in json.loads(capfd.readouterr().out)["findings"]}
    said = "only lexical in namespace default: it has 1 memory, and SQLite answers with all legs up to 0"
    assert (found["legs"]["state"], found["legs"]["detail"]) == ("bad", said)


@pytest.mark.usefixtures("_here")
def test_the_commands_of_the_second_day_work_or_say_in_a_sentence_why_not(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SEMMEM_EMBEDDER", "hashing")
    store = ["--url", "sqlite:notes.db"]
    assert run(["remember", "heron", "--id", "a", *store]) == 0
    for line in (["rebuild", "--extract"], ["rebuild"], ["graph"], ["concepts"], ["maintain"], ["export", "out.jsonl"]):
        assert run([*line, *store]) == 0, line
    assert run(["forget", "a", "--hard", "--yes", *store]) == 0
    assert run(["import", "jsonl", "out.jsonl", *store]) == 0
    capfd.readouterr()
    for line in (["stats", "--verify"], ["backup", "all.backup"]):
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
