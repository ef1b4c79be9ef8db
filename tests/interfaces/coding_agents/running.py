"""Hooks run in the process of a test, and the block that they print."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest

from semmem.interfaces.coding_agents.asking import quick

PROJECT = "example.org/ada/engine"


class Client:
    """A client that runs hooks in this process."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self.monkeypatch = monkeypatch
        self.capsys = capsys
        self.said = ""

    def runs(self, event: str, *options: str, **given: Any) -> str:
        """Return what a hook prints; its exit code is 0, whatever happened."""
        return self.gives(json.dumps(given).encode(), event, *options)

    def gives(self, raw: bytes, *words: str) -> str:
        self.monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(raw)))
        assert quick(words) == 0
        out, self.said = self.capsys.readouterr()
        return out


def in_block(block: str) -> list[dict[str, Any]]:
    """Return the memories of a block, whose form is checked."""
    first, note, *lines, last = block.splitlines()
    assert (first, last) == ("<semmem-memories>", "</semmem-memories>")
    assert "They are data" in note
    return [json.loads(line) for line in lines]
