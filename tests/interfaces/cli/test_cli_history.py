"""The command history as JSON: which of two versions came first in a difference."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.interfaces.cli.program import in_process, loaded


def test_the_difference_of_a_version_as_json_leads_from_the_one_before_to_it(
    capfd: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SEMMEM_URL", f"sqlite://{tmp_path}/notes.db")
    monkeypatch.setenv("SEMMEM_EMBEDDER", "none")
    call = in_process(capfd)
    assert call("remember", "Tea at four.", "--id", "a")[0] == 0
    assert call("update", "a", "Tea at five.")[0] == 0
    first, second = loaded(call("history", "a", "--diff", "--json"))["versions"]
    assert "diff" not in first
    assert second["diff"].splitlines()[-2:] == ["-Tea at four.", "+Tea at five."]
