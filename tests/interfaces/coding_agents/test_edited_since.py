"""A client's file that somebody has made longer since the installation: nothing of it is cut at the wrong place."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from semmem.interfaces.cli.app import run


def test_an_entry_before_ours_that_was_added_since_stays_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    path = tmp_path / ".cursor" / "mcp.json"
    path.parent.mkdir()
    path.write_text('{"mcpServers": {"other": {"command": "y"}}}', encoding="utf-8")
    assert run(["install", "cursor"]) == 0
    longer = path.read_text(encoding="utf-8").replace('{"mcpServers"', '{"theme": "dark as the harbour", "mcpServers"')
    path.write_text(longer, encoding="utf-8")
    assert run(["uninstall", "cursor"]) == 0
    assert json.loads(path.read_text(encoding="utf-8")) == {
        "theme": "dark as the harbour",
        "mcpServers": {"other": {"command": "y"}},
    }
