"""Installing in a client: what its files hold then, twice, and after it was taken out again."""

from __future__ import annotations

import json
import os
import shlex
import stat
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from semmem.doors.cli.app import run
from semmem.doors.coding_agents import installation
from semmem.doors.coding_agents.clients import CLIENTS, HOOKS, program
from semmem.model.errors import Conflict

PLACES = {
    "claude-code": (".claude.json", ".claude/settings.json"),
    "cursor": (".cursor/mcp.json", None),
    "codex": (".codex/config.toml", ".codex/hooks.json"),
}
"""Files that are the same on every machine."""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "home"
    (folder / "project").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.chdir(folder / "project")
    return folder


def content(folder: Path) -> dict[str, bytes]:
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def server(file: Path, section: str) -> dict[str, object]:
    text = file.read_text(encoding="utf-8")
    values = tomllib.loads(text) if file.suffix == ".toml" else json.loads(text)
    entry: dict[str, object] = values[section]["semmem"]
    return entry


@pytest.mark.parametrize("name", CLIENTS)
def test_a_client_gets_the_server_and_its_hooks_once_and_loses_them_whole(
    home: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    client = CLIENTS[name]
    servers, hooks = client.places(None)
    assert run(["install", name, "--dry-run"]) == 0
    assert content(home) == {}
    assert "Nothing was written: --dry-run." in capsys.readouterr().out
    assert run(["install", name]) == 0
    entry = server(servers, client.section)
    command, *rest = [entry["command"], *entry["args"]]  # type: ignore[misc]  # a list
    assert Path(str(command)).is_absolute()
    assert rest[-1] == "mcp"
    if hooks is not None:
        events = json.loads(hooks.read_text(encoding="utf-8"))["hooks"]
        assert set(events) == set(HOOKS)
        (group,) = events["UserPromptSubmit"]
        words = shlex.split(group["hooks"][0]["command"])
        assert words[-4:] == ["hook", "prompt", "--agent", name]
    installed = content(home)
    assert run(["install", name]) == 0
    assert content(home) == installed
    assert client.then in " ".join(capsys.readouterr().out.split())
    assert run(["uninstall", name]) == 0
    assert content(home) == {}
    said = " ".join(capsys.readouterr().out.split())
    assert said.endswith("Start the client anew; memories stay.")  # and not how to switch on what has gone
    assert client.then not in said
    assert run(["uninstall", name]) == 0


@pytest.mark.parametrize("name", PLACES)
def test_what_else_is_in_the_files_stays_to_the_letter(home: Path, name: str) -> None:
    servers, hooks = PLACES[name]
    if servers.endswith(".toml"):
        before = '# mine\nmodel = "x"\n\n[mcp_servers.other]\ncommand = "y" # keep\n\n[tui]\ntheme = "dark"\n'
    else:
        before = '{\n\t"theme": "dark", // mine\n\t"mcpServers": {"other": {"command": "y"}}\n}\n'
    (home / servers).parent.mkdir(exist_ok=True)
    (home / servers).write_text(before, encoding="utf-8")
    others = '{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "say hook stop"}]}]}, "model": "m"}'
    if hooks is not None:
        (home / hooks).parent.mkdir(exist_ok=True)
        (home / hooks).write_text(others, encoding="utf-8")
    untouched = content(home)
    assert run(["install", name]) == 0
    if hooks is not None:
        stops = json.loads((home / hooks).read_text(encoding="utf-8"))["hooks"]["Stop"]
        assert [len(stops), stops[0]["hooks"][0]["command"]] == [2, "say hook stop"]
    assert run(["uninstall", name]) == 0
    assert content(home) == untouched


def test_without_hooks_earlier_ones_are_taken_out(home: Path) -> None:
    assert run(["install", "claude-code"]) == 0
    assert run(["install", "claude-code", "--no-hooks"]) == 0
    assert list(content(home)) == [".claude.json"]
    assert server(home / ".claude.json", "mcpServers")["args"]


def test_one_of_another_place_is_replaced_not_doubled(home: Path) -> None:
    old = {"type": "command", "command": "/old/bin/semmem hook stop", "timeout": 1}
    servers, hooks = home / ".claude.json", home / ".claude" / "settings.json"
    servers.write_text(json.dumps({"mcpServers": {"semmem": {"command": "/old/bin/semmem"}}}), encoding="utf-8")
    hooks.parent.mkdir()
    hooks.write_text(json.dumps({"hooks": {"Stop": [{"hooks": [old]}]}}), encoding="utf-8")
    assert run(["install", "claude-code"]) == 0
    assert server(servers, "mcpServers")["command"] == program()[0]
    (group,) = json.loads(hooks.read_text(encoding="utf-8"))["hooks"]["Stop"]
    assert "/old/bin" not in group["hooks"][0]["command"]


def test_a_project_has_files_of_its_own_and_options_are_passed_on(home: Path) -> None:
    here = home / "project"
    assert run(["install", "vscode", "--project", "--namespace", "team", "--url", "sqlite:notes.db"]) == 0
    assert set(content(home)) == {"project/.vscode/mcp.json"}
    entry = server(here / ".vscode" / "mcp.json", "servers")
    assert entry["type"] == "stdio"
    given = ["mcp", "--url", f"sqlite://{here}/notes.db", "--namespace", "team"]
    assert list(entry["args"])[-5:] == given  # type: ignore[call-overload]  # a list
    assert run(["install", "claude-code", "--project", "--no-hooks"]) == 0
    assert "project/.mcp.json" in content(home)
    assert "project/.claude/settings.local.json" not in content(home)


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (["install", "claude-desktop", "--project"], "claude-desktop has no files of settings for one project"),
        (["install", "cursor", "--url", "postgresql://ada:secret@db/x"], "The URL holds a password"),
        (["install", "emacs"], "'emacs' is not one of"),
    ],
)
def test_what_cannot_be_installed_is_told_and_nothing_is_written(
    home: Path, words: list[str], part: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(words) == 2
    said = capsys.readouterr().err
    assert part in " ".join(said.split())
    assert "secret" not in said
    assert content(home) == {}


@pytest.mark.parametrize(
    ("file", "text"),
    [
        (".claude.json", '{"mcpServers": '),
        (".claude.json", '{"mcpServers": 3}'),
        (".claude/settings.json", '{"hooks": {"Stop": 3}}'),
        (".claude/settings.json", "\udcff"),
    ],
)
def test_a_file_that_is_not_what_the_client_reads_is_told_and_none_is_written(
    home: Path, file: str, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (home / file).parent.mkdir(exist_ok=True)
    (home / file).write_bytes(text.encode("utf-8", "surrogateescape"))
    untouched = content(home)
    assert run(["install", "claude-code"]) == 2
    assert file in capsys.readouterr().err
    assert content(home) == untouched


def test_a_file_that_another_program_changes_meanwhile_is_left_as_it_is(home: Path) -> None:
    file = home / ".cursor" / "mcp.json"
    (change,) = installation.changes(CLIENTS["cursor"], None, [])
    file.parent.mkdir()
    file.write_text('{"mcpServers": {"new": {}}}', encoding="utf-8")
    with pytest.raises(Conflict, match="was changed by another program at the same time"):
        installation.write(change)
    assert file.read_text(encoding="utf-8") == '{"mcpServers": {"new": {}}}'


def test_a_link_and_the_rights_of_a_file_stay(home: Path) -> None:
    real = home / "dotfiles.json"
    real.write_text("{}", encoding="utf-8")
    real.chmod(0o640)
    (home / ".claude.json").symlink_to(real)
    assert run(["install", "claude-code", "--no-hooks"]) == 0
    assert (home / ".claude.json").is_symlink()
    assert server(real, "mcpServers")
    assert stat.S_IMODE(real.stat().st_mode) == 0o640
    assert os.listdir(home / "project") == []


def test_the_command_that_is_written_starts_semmem_from_a_folder_with_a_module_of_that_name(tmp_path: Path) -> None:
    (tmp_path / "semmem.py").write_text("raise SystemExit('the wrong one')", encoding="utf-8")
    done = subprocess.run([*program(), "--version"], cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, done.stdout.split()[:1]) == (0, ["semmem"])
    assert sys.executable
