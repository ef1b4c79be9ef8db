"""The command export: the memories of which namespaces are written."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.interfaces.cli.program import in_process


def test_an_export_is_of_the_default_namespace_of_those_that_are_named_or_of_all(
    capfd: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SEMMEM_URL", f"sqlite://{tmp_path}/notes.db")
    monkeypatch.setenv("SEMMEM_EMBEDDER", "none")
    call = in_process(capfd)
    for name in ("default", "team", "mine"):
        assert call("remember", f"Tea of {name}.", "-n", name)[0] == 0

    def exported(*options: str) -> set[str]:
        code, out, _ = call("export", "-", *options)
        assert code == 0
        return {json.loads(line)["namespace"] for line in out.splitlines()}

    assert exported() == {"default"}
    assert exported("-n", "team", "-n", "mine") == {"team", "mine"}
    assert exported("--all") == {"default", "team", "mine"}
