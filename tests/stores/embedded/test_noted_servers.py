"""`semmem server list` shows the embedded servers that run, and `semmem server stop --all` stops them."""

from __future__ import annotations

from pathlib import Path

import pytest

from semmem.stores.embedded import noted
from semmem.stores.embedded.server import EmbeddedServer
from tests.interfaces.cli.program import Call, in_process, loaded


@pytest.fixture
def call(capfd: pytest.CaptureFixture[str]) -> Call:
    return in_process(capfd)


@pytest.mark.slow
def test_a_server_that_was_started_is_listed_until_it_stops(
    own: EmbeddedServer, call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert call("server", "list") == (0, "No embedded server runs.\n", "")
    assert call("server", "stop", "--all") == (0, "None was running.\n", "")
    own.ensure_running()
    code, listed, _ = call("server", "list")
    assert (code, listed.startswith("Running: PostgreSQL 18.")) == (0, True)
    assert listed.endswith(f" MiB in {own.data}.\n")
    (state,) = loaded(call("server", "list", "--json"))
    assert (state["running"], state["data"], state["pid"]) == (True, str(own.data), own.status().pid)
    assert loaded(call("server", "stop", "--all", "--json")) == {"stopped": True, "folders": [str(own.data)]}
    assert not own.status().running
    assert call("server", "list") == (0, "No embedded server runs.\n", "")


def test_the_note_of_a_folder_that_is_gone_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    for name in ("b", "a"):
        (tmp_path / name).mkdir()
        noted.note(tmp_path / name)
    noted.note(tmp_path / "a")
    notes = tmp_path / "state" / "semmem" / "embedded"
    assert (noted.folders(), len(list(notes.iterdir()))) == ([tmp_path / "a", tmp_path / "b"], 2)
    (tmp_path / "a").rmdir()
    assert (noted.folders(), len(list(notes.iterdir()))) == ([tmp_path / "b"], 1)
    assert notes.stat().st_mode & 0o777 == 0o700


def test_a_user_without_a_folder_for_state_starts_servers_without_a_note(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "file"
    file.write_text("")
    monkeypatch.setenv("XDG_STATE_HOME", str(file))
    noted.note(tmp_path)
    assert noted.folders() == []


def test_stop_all_takes_no_url(call: Call) -> None:
    code, _, error = call("server", "stop", "--all", "--url", "embedded:")
    assert (code, "leave --url out" in error) == (2, True)
