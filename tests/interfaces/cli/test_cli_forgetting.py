"""The command forget: what may not be said together is told in the words of its options."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.interfaces.cli.program import Call, in_process, stored


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
