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


def test_a_store_that_is_named_after_the_command_is_written_to_and_none_before_it(call: Call, tmp_path: Path) -> None:
    before, after = (f"sqlite://{tmp_path}/{name}.db" for name in ("before", "after"))
    assert call("--url", before, "remember", "Tea at four.", "--id", "a", "--url", after)[0] == 0
    assert loaded(call("get", "a", "--json", "--url", after))["text"] == "Tea at four."
    assert not (tmp_path / "before.db").exists()


def test_a_namespace_that_is_named_before_the_command_counts_as_given(call: Call) -> None:
    assert call("remember", "Tea at four.", "--namespace", "work")[0] == 0
    for given in (("--namespace", "work", "settings"), ("settings", "--namespace", "work")):
        assert loaded(call(*given, "--json"))["namespace"] == "work"
    assert "namespace" not in loaded(call("settings", "--json"))


def test_no_file_is_written_in_the_place_of_a_link_that_leads_nowhere(call: Call, tmp_path: Path) -> None:
    assert call("remember", "Tea at four.", "--id", "a")[0] == 0
    link = tmp_path / "notes.jsonl"
    link.symlink_to(tmp_path / "elsewhere.jsonl")
    code, _, err = call("export", str(link))
    assert (code, err) == (2, f"{link} already exists; --force overwrites it.\n")
    assert not (tmp_path / "elsewhere.jsonl").exists()


def test_a_zero_is_a_value_and_an_empty_choice_takes_the_old_one_away(call: Call) -> None:
    given = ("--importance", "0", "--position", "0", "--source-type", "user")
    assert call("remember", "Tea at four.", "--id", "a", *given)[0] == 0
    memory = loaded(call("get", "a", "--json"))
    assert (memory["importance"], memory["position"], memory["source_type"]) == (0.0, 0, "user")
    assert call("update", "a", "--source-type", "")[0] == 0
    assert loaded(call("get", "a", "--json"))["source_type"] is None
