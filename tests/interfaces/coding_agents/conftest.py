"""The project, the store and the client of the tests of hooks."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.interfaces.coding_agents.running import Client
from tests.model.test_project import repository


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return repository(tmp_path / "engine", {"origin": "git@example.org:ada/engine.git"})


@pytest.fixture
def url(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A store, which is that of the settings, and a folder for the notes between runs."""
    where = f"sqlite:{tmp_path}/notes.db"
    monkeypatch.setenv("SEMMEM_URL", where)
    monkeypatch.setenv("SEMMEM_EMBEDDER", "hashing")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("SEMMEM_HOOK_PROCESS_S", "0")
    return where


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Client:
    return Client(monkeypatch, capsys)
