"""The options of the commands that write: which of them count, and which may not be said together."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.interfaces.cli.program import Call, in_process, loaded, stored


@pytest.fixture
def call(capfd: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Call:
    """Run the program on an empty SQLite store; return code, output and errors."""
    monkeypatch.setenv("SEMMEM_URL", f"sqlite://{tmp_path}/notes.db")
    monkeypatch.setenv("SEMMEM_EMBEDDER", "none")
    return in_process(capfd)


@pytest.mark.parametrize("which", [("a",), ("--tags", "tea")])
def test_all_beside_an_id_or_a_filter_forgets_nothing_and_says_so(call: Call, which: tuple[str, ...]) -> None:
    assert call("remember", "Tea at four.", "--id", "a", "--tags", "tea")[0] == 0
    code, _, err = call("forget", *which, "--all", "--yes")
    assert (code, err) == (2, "--all is the whole namespace; leave it out to forget by id or filters.\n")
    assert list(stored(call)) == ["a"]


def test_a_file_is_stored_under_the_id_the_title_and_the_source_that_are_given(call: Call, tmp_path: Path) -> None:
    note = tmp_path / "note.md"
    note.write_text("Tea at four.")
    given = ("--id", "mine", "--title", "Tea", "--source", "shelf")
    assert call("remember", str(note), *given)[0] == 0
    memory = loaded(call("get", "mine", "--json"))
    assert (memory["title"], memory["source"]) == ("Tea", "shelf")
    assert list(stored(call)) == ["mine"]
