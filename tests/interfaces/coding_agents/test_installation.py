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
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from semmem.interfaces.cli.app import run
from semmem.interfaces.coding_agents import clients, installation, json_text
from semmem.interfaces.coding_agents.clients import CLIENTS, Client, program, server_entry
from semmem.model.errors import Conflict


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "home"
    (folder / "project").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.chdir(folder / "project")
    return folder


def content(folder: Path) -> dict[str, bytes]:
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def unchanging(path: Path) -> tuple[int, ...]:
    """Return what a write would change of a file, and a read would not."""
    status = path.lstat()
    return status.st_ino, status.st_mode, status.st_size, status.st_mtime_ns


def server(file: Path, section: str) -> dict[str, object]:
    text = file.read_text(encoding="utf-8")
    values = tomllib.loads(text) if file.suffix == ".toml" else json.loads(text)
    entry: dict[str, object] = values[section]["semmem"]
    return entry


def folders(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_dir()}


def words_of(entry: dict[str, Any]) -> list[str]:
    """Return the words by which a client starts the server of an entry."""
    command = entry["command"]
    return command if isinstance(command, list) else [command, *entry["args"]]


def hooks_in(client: Client, text: str) -> dict[str, list[str]]:
    """Return the words of our hook at each event in a client's file; each stands there once."""
    assert client.hooks is not None
    words = {}
    for event, (one,) in json_text.parsed(text)["hooks"].items():
        hook = one["hooks"][0] if client.hooks.grouped else one
        words[event] = shlex.split(hook["command"])
    return words


@pytest.mark.parametrize("project", [False, True])
@pytest.mark.parametrize("name", CLIENTS)
def test_a_client_gets_the_server_and_its_hooks_once_and_loses_them_whole(
    home: Path, name: str, project: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    client = CLIENTS[name]
    options = [name, "--project"] if project else [name]
    if project and client.project is None:
        assert run(["install", *options]) == 2
        return
    servers, hooks = client.places(home / "project" if project else None)
    before = folders(home)
    assert run(["install", *options, "--dry-run"]) == 0
    assert content(home) == {}
    assert "Nothing was written: --dry-run." in capsys.readouterr().out
    assert run(["install", *options]) == 0
    command, *rest = words_of(server(servers, client.section))
    assert project or Path(command).is_absolute()
    assert rest[-1] == "mcp"
    if hooks is not None and client.hooks is not None:
        words = hooks_in(client, hooks.read_text(encoding="utf-8"))
        assert words.keys() == client.hooks.events.keys()
        assert all(words[event][-20:].count(name) == 1 for event in words)
    installed = content(home)
    assert run(["install", *options]) == 0
    assert content(home) == installed
    assert client.then in " ".join(capsys.readouterr().out.split())
    assert run(["uninstall", *options]) == 0
    assert (content(home), folders(home)) == ({}, before)
    said = " ".join(capsys.readouterr().out.split())
    assert said.endswith("Restart the client; memories stay.")  # and not how to switch on what has gone
    assert client.then not in said
    assert run(["uninstall", *options]) == 0


ENTRIES: dict[str, dict[str, Any]] = {
    "cline": {"command": "/bin/semmem", "args": ["mcp"]},
    "copilot-cli": {"type": "local", "tools": ["*"], "command": "/bin/semmem", "args": ["mcp"]},
    "cursor": {"command": "/bin/semmem", "args": ["mcp"]},
    "gemini-cli": {"command": "/bin/semmem", "args": ["mcp"]},
    "opencode": {"type": "local", "enabled": True, "command": ["/bin/semmem", "mcp"]},
    "vscode": {"type": "stdio", "command": "/bin/semmem", "args": ["mcp"]},
    "windsurf": {"command": "/bin/semmem", "args": ["mcp"]},
    "zed": {"source": "custom", "command": "/bin/semmem", "args": ["mcp"]},
}
"""An entry of each maker's documentation, with our command."""


@pytest.mark.parametrize("name", ENTRIES)
def test_an_entry_has_the_keys_that_the_maker_of_the_client_documents(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clients, "program", lambda: ["/bin/semmem"])
    assert server_entry(CLIENTS[name], []) == ENTRIES[name]


def test_a_hook_of_gemini_and_copilot_is_written_as_their_makers_document_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clients, "program", lambda: ["/bin/semmem"])
    started = "/bin/semmem hook session-start --agent"
    assert clients.hook_commands(CLIENTS["copilot-cli"], []) == {
        "sessionStart": {
            "type": "command",
            "command": f"{started} copilot-cli --reply-key additionalContext",
            "timeout": 20,
        }
    }
    gemini = clients.hook_commands(CLIENTS["gemini-cli"], [])
    assert list(gemini) == ["SessionStart", "BeforeAgent"]
    assert gemini["SessionStart"] == {
        "hooks": [
            {
                "type": "command",
                "command": f"{started} gemini-cli --reply-key hookSpecificOutput.additionalContext",
                "timeout": 20_000,
            }
        ]
    }


@pytest.mark.parametrize("name", CLIENTS)
def test_what_else_is_in_the_files_stays_to_the_letter(home: Path, name: str) -> None:
    client = CLIENTS[name]
    servers, hooks = client.places(None)
    if servers.suffix == ".toml":
        before = '# mine\nmodel = "x"\n\n[mcp_servers.other]\ncommand = "y" # keep\n\n[tui]\ntheme = "dark"\n'
    else:
        before = f'{{\n\t"theme": "dark", // mine\n\t"{client.section}": {{"other": {{"command": "y"}}}}\n}}\n'
    others: dict[str, Any] = {}
    if client.hooks is not None:
        hook = {"type": "command", "command": "say hook stop"}
        others = {event: [{"hooks": [hook]} if client.hooks.grouped else hook] for event in client.hooks.events}
        if hooks == servers:
            before = before.replace("\n}\n", f',\n\t"hooks": {json.dumps(others)} /* mine too */\n}}\n')
        elif hooks is not None:
            hooks.parent.mkdir(parents=True, exist_ok=True)
            hooks.write_text(json.dumps({"hooks": others, "model": "m"}), encoding="utf-8")
    servers.parent.mkdir(parents=True, exist_ok=True)
    servers.write_text(before, encoding="utf-8")
    untouched, was = content(home), folders(home)
    assert run(["install", name]) == 0
    if hooks is not None:
        present = json_text.parsed(hooks.read_text(encoding="utf-8"))["hooks"]
        assert {event: [len(all_hooks), all_hooks[0]] for event, all_hooks in present.items()} == {
            event: [2, one] for event, (one,) in others.items()
        }
    installed = content(home)
    assert run(["install", name]) == 0
    assert content(home) == installed
    for file in {servers, hooks} - {None}:  # edited meanwhile, so that no record helps
        file.write_text(file.read_text(encoding="utf-8") + "\n", encoding="utf-8")
    assert run(["uninstall", name]) == 0
    assert {file: text.rstrip() for file, text in content(home).items()} == {
        file: text.rstrip() for file, text in untouched.items()
    }
    assert run(["install", name]) == 0
    assert run(["uninstall", name]) == 0
    assert folders(home) == was


def test_a_folder_that_an_installation_made_stays_while_something_else_is_in_it(home: Path) -> None:
    assert run(["install", "codex", "--no-hooks"]) == 0
    assert run(["install", "codex"]) == 0
    (home / ".codex" / "mine").touch()
    assert run(["uninstall", "codex"]) == 0
    assert list(content(home)) == [".codex/mine"]
    assert run(["install", "windsurf"]) == 0
    assert run(["uninstall", "windsurf"]) == 0
    assert not (home / ".codeium").exists()


def test_without_hooks_the_file_that_holds_servers_too_keeps_the_server(home: Path) -> None:
    assert run(["install", "gemini-cli"]) == 0
    assert run(["install", "gemini-cli", "--no-hooks"]) == 0
    (file,) = content(home).values()
    assert list(json.loads(file)) == ["mcpServers"]
    assert run(["uninstall", "gemini-cli"]) == 0
    assert content(home) == {}


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


OWN: list[dict[str, Any]] = [
    {"command": "docker", "args": ["run", "-i", "semmem", "mcp"]},
    {"command": "/bin/semmem", "args": ["mcp", "--url", "postgresql://team/notes"]},
    {"url": "https://semmem.example/mcp"},
]


@pytest.mark.parametrize("own", OWN)
@pytest.mark.parametrize("name", ["cursor", "codex"])
def test_a_server_of_ones_own_with_that_name_stays_unless_it_is_to_be_replaced_and_comes_back(
    home: Path, name: str, own: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    client = CLIENTS[name]
    file, _ = client.places(None)
    file.parent.mkdir()
    rows = "".join(f"{key} = {json.dumps(value)}\n" for key, value in own.items())
    toml = f"[mcp_servers.semmem]\n{rows}\n[mcp_servers.other]\ncommand = 'y'\n"
    servers = {client.section: {"semmem": own, "other": {"command": "y"}}}
    file.write_text(toml if file.suffix == ".toml" else json.dumps(servers), encoding="utf-8")
    before = content(home)
    for words in (["install", name], ["install", name, "--dry-run"]):
        assert run(words) == 2
        said = " ".join(capsys.readouterr().err.split())
        assert said == (
            f"{file}: its server semmem is not one that this command has written; rename it there, or let --replace "
            "replace it, and uninstall give it back. Nothing was written."
        )
        assert content(home) == before
    assert run(["install", name, "--replace"]) == 0
    assert words_of(server(file, client.section))[-1] == "mcp"
    installed = content(home)
    assert run(["install", name]) == 0
    assert content(home) == installed
    assert run(["uninstall", name]) == 0
    assert content(home) == before


@pytest.mark.parametrize("own", OWN)
def test_a_server_of_ones_own_is_not_uninstalled(home: Path, own: dict[str, Any]) -> None:
    file = home / ".cursor" / "mcp.json"
    file.parent.mkdir()
    file.write_text(json.dumps({"mcpServers": {"semmem": own}}), encoding="utf-8")
    before = content(home)
    assert run(["uninstall", "cursor"]) == 0
    assert content(home) == before


@pytest.mark.parametrize("command", [["/old/bin/semmem"], ["/old/bin/python3", "-P", "-m", "semmem"]])
def test_what_a_person_has_added_to_the_entry_stays_and_a_second_installation_changes_nothing(
    home: Path, command: list[str]
) -> None:
    file = home / ".cursor" / "mcp.json"
    file.parent.mkdir()
    own = {"command": command[0], "args": [*command[1:], "mcp"], "env": {"SEMMEM_AGENT": "me"}, "disabled": True}
    file.write_text(json.dumps({"mcpServers": {"semmem": own, "other": {"command": "y"}}}), encoding="utf-8")
    assert run(["install", "cursor"]) == 0
    (path, text), *_ = content(home).items()
    assert path == ".cursor/mcp.json"
    entry = server(file, "mcpServers")
    assert (entry["env"], entry["disabled"]) == ({"SEMMEM_AGENT": "me"}, True)
    assert entry["command"] == program()[0]
    assert run(["install", "cursor"]) == 0
    assert file.read_bytes() == text
    assert run(["install", "cursor", "--namespace", "team"]) == 0
    assert server(file, "mcpServers")["env"] == {"SEMMEM_AGENT": "me"}
    assert run(["uninstall", "cursor"]) == 0
    assert json.loads(file.read_text(encoding="utf-8")) == {"mcpServers": {"other": {"command": "y"}}}


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
        (["install", "cursor", "--url", "postgresql://ada:hunter2@db/x"], "The URL holds a secret"),
        (["install", "emacs"], "There is no client 'emacs'; choose one of claude-code,"),
    ],
)
def test_what_cannot_be_installed_is_told_and_nothing_is_written(
    home: Path, words: list[str], part: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(words) == 2
    said = capsys.readouterr().err
    assert part in " ".join(said.split())
    assert "hunter2" not in said
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


def odd(home: Path, file: str, kind: str) -> Path:
    """Make a settings file that cannot be edited; return it."""
    path = home / file
    path.parent.mkdir(exist_ok=True)
    if kind == "loop":
        path.symlink_to(path)
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    elif kind == "deep":
        path.write_text('{"a": ' * 100_000 + "1" + "}" * 100_000, encoding="utf-8")
    else:
        path.write_text("x = " + "[" * 100_000 + "]" * 100_000, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("client", "file", "kind", "part"),
    [
        (
            "cursor",
            ".cursor/mcp.json",
            "loop",
            "cannot be read: Too many levels of symbolic links. Nothing was written.",
        ),
        ("cursor", ".cursor/mcp.json", "pipe", "is not a regular file; move it away, and try again."),
        ("cursor", ".cursor/mcp.json", "folder", "is not a regular file; move it away, and try again."),
        ("cursor", ".cursor/mcp.json", "deep", "Nothing was written."),
        ("codex", ".codex/config.toml", "deep toml", "Nothing was written."),
    ],
)
@pytest.mark.parametrize("verb", ["install", "uninstall"])
def test_a_file_that_cannot_be_edited_is_told_in_one_sentence(
    home: Path, verb: str, client: str, file: str, kind: str, part: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = odd(home, file, kind)
    before = unchanging(path)
    assert run([verb, client]) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert said.startswith(str(path))
    assert part in said
    assert unchanging(path) == before


@pytest.mark.parametrize(
    ("client", "file", "before"),
    [
        ("cursor", ".cursor/mcp.json", "{mcpServers: {other: {command: 'y',},},}"),
        ("cursor", ".cursor/mcp.json", '{"mcpServers": {}}'),
        ("cursor", ".cursor/mcp.json", ""),
        ("cursor", ".cursor/mcp.json", "{ }\n\n"),
        ("cursor", ".cursor/mcp.json", '\ufeff{"mcpServers": {"other": {"command": "y"}}}\r\n'),
        ("codex", ".codex/config.toml", 'mcp_servers = { other = { command = "y" } }\n'),
        ("codex", ".codex/config.toml", "mcp_servers = {}"),
        ("codex", ".codex/config.toml", '[mcp_servers.a]\ncommand = "y"\n\n[tui]\n\n[mcp_servers.b]\ncommand = "z"'),
        ("codex", ".codex/config.toml", 'mcp_servers.a.command = "y"\r\n'),
    ],
)
def test_a_file_is_given_back_byte_for_byte(home: Path, client: str, file: str, before: str) -> None:
    path = home / file
    path.parent.mkdir()
    path.write_bytes(before.encode())
    assert run(["install", client, "--namespace", "first"]) == 0
    assert run(["install", client]) == 0
    assert path.read_bytes() != before.encode()
    assert run(["uninstall", client]) == 0
    assert path.read_bytes() == before.encode()
    assert not list((home.parent / "state").rglob("*.json"))


def test_a_file_that_was_edited_since_keeps_the_edit_and_loses_semmem(home: Path) -> None:
    path = home / ".cursor" / "mcp.json"
    path.parent.mkdir()
    path.write_text('{mcpServers: {other: {command: "y"}}}', encoding="utf-8")
    assert run(["install", "cursor"]) == 0
    edited = path.read_text(encoding="utf-8").replace('"y"', '"z"')
    path.write_text(edited, encoding="utf-8")
    assert run(["uninstall", "cursor"]) == 0
    assert json_text.parsed(path.read_text(encoding="utf-8")) == {"mcpServers": {"other": {"command": "z"}}}


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text('a"é/\\\n ', max_size=4),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text('ab\n"', max_size=3), inner, max_size=3),
    max_leaves=6,
)


@pytest.mark.slow
@given(
    settings=st.dictionaries(st.sampled_from(["a", "b", "mcpServers "]), JSON, max_size=3),
    servers=st.none() | st.dictionaries(st.sampled_from(["x", "y z", '"']), JSON, max_size=3),
    indent=st.sampled_from([None, 1, 4, "\t"]),
    comment=st.sampled_from(["", "// mine\n", "/* semmem { */ "]),
    end=st.sampled_from(["", "\n", "\r\n", " // end"]),
    touched=st.booleans(),
)
def test_install_and_uninstall_leave_every_json_file_as_it_was(
    settings: dict[str, object], servers: dict[str, object] | None, indent: Any, comment: str, end: str, touched: bool
) -> None:
    values = settings if servers is None else {**settings, "mcpServers": servers}
    text = comment + json.dumps(values, indent=indent, ensure_ascii=False) + end
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", f"{folder}/state")
        file = Path(folder) / ".cursor" / "mcp.json"
        file.parent.mkdir()
        file.write_bytes(text.encode())
        for remove in (False, True):
            (change,) = installation.changes(CLIENTS["cursor"], Path(folder), [], remove=remove)
            installation.write(change)
            if touched and not remove:  # the record is of no use, so the entry is cut out of the text
                file.write_bytes(file.read_bytes() + b"\n")
        if not touched:
            assert file.read_bytes() == text.encode()
        elif file.exists():
            left = json_text.parsed(file.read_text(encoding="utf-8"))
            assert {key: value for key, value in left.items() if value != {}} == {
                key: value for key, value in values.items() if value != {}
            }


@pytest.mark.parametrize(
    ("variable", "value", "given", "note"),
    [
        ("SEMMEM_HOME", "/srv/mine", ["--url", "embedded:///srv/mine"], "The client opens the store of SEMMEM_HOME"),
        (
            "SEMMEM_URL",
            "sqlite:notes.db",
            ["--url", "sqlite://{here}/notes.db"],
            "The client opens the store of SEMMEM_URL",
        ),
        (
            "SEMMEM_URL",
            "postgresql://ada:hunter2@db/x",
            [],
            "SEMMEM_URL holds a secret, so the client does not get it",
        ),
        (
            "SEMMEM_KEY",
            "semmem_hunter2",
            [],
            "The client does not see SEMMEM_KEY; put it into your own settings file.",
        ),
    ],
)
def test_the_store_that_this_shell_names_is_passed_on_and_no_secret_is(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], variable: str, value: str,
    given: list[str], note: str,
) -> None:  # fmt: skip
    monkeypatch.delenv("SEMMEM_HOOK_PROCESS_S")  # that of these tests
    monkeypatch.setenv(variable, value)
    assert run(["install", "cursor"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert note in said
    entry = server(home / ".cursor" / "mcp.json", "mcpServers")
    wanted = [word.format(here=home / "project") for word in given]
    assert entry["args"][1:] == wanted  # type: ignore[index]  # a list
    assert "hunter2" not in said + json.dumps(entry)
    assert run(["uninstall", "cursor"]) == 0
    assert variable not in capsys.readouterr().out


def test_an_installation_in_a_project_names_the_namespace_of_its_memories(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def said(*arguments: str) -> str:
        assert run(["install", *arguments, "--project", "--dry-run"]) == 0
        return " ".join(capsys.readouterr().out.split())

    assert "in the namespace default; other commands take it with: -n default" in said("codex")
    git = home / "project" / ".git"
    git.mkdir()
    (git / "HEAD").write_text("ref: refs/heads/main\n", encoding="utf-8")
    (git / "config").write_text('[remote "origin"]\n\turl = git@github.com:ada/engine.git\n', encoding="utf-8")
    for client in ("claude-code", "codex"):
        assert "Its memories are in the namespace github.com/ada/engine; other commands take" in said(client)
    assert "in the namespace my team; other commands take it with: -n 'my team'" in said(
        "claude-code", "--namespace", "my team"
    )


def test_a_file_that_a_project_shares_names_no_path_of_this_machine(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(Path(program()[0]).parent))
    assert run(["install", "claude-code", "--project"]) == 0
    assert server(home / "project" / ".mcp.json", "mcpServers") == {
        "type": "stdio",
        "command": "semmem",
        "args": ["mcp"],
    }
    assert ".mcp.json runs `semmem` from the PATH" in " ".join(capsys.readouterr().out.split())
    monkeypatch.setenv("PATH", str(home))
    assert run(["install", "claude-code", "--project"]) == 0
    assert server(home / "project" / ".mcp.json", "mcpServers")["command"] == program()[0]
    assert "do not share it" in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize(
    ("client", "file", "before", "after"),
    [
        ("cursor", ".cursor/mcp.json", "{ // mine {\n}", "{ // mine {\n}\n"),
        ("cursor", ".cursor/mcp.json", "", "{}\n\n"),
        ("cursor", ".cursor/mcp.json", '{"mcpServers": {"x": 1}, "mcpServers": {}}', None),
        ("codex", ".codex/config.toml", "[mcp_servers]\n# mine\n", "[mcp_servers]\n# mine\n"),
        ("codex", ".codex/config.toml", "# mine\n", "# mine\n"),
        ("codex", ".codex/config.toml", "", "\n"),
    ],
)
def test_a_file_that_was_edited_since_keeps_its_comments_and_its_sections(
    home: Path, client: str, file: str, before: str, after: str | None
) -> None:
    path = home / file
    path.parent.mkdir()
    path.write_text(before, encoding="utf-8")
    assert run(["install", client]) == 0
    path.write_text(path.read_text(encoding="utf-8") + "\n", encoding="utf-8")
    assert run(["uninstall", client]) == 0
    left = path.read_text(encoding="utf-8")
    assert "semmem" not in left
    if after is None:
        assert left.startswith('{"mcpServers": {"x": 1}, "mcpServers": {')
    else:
        assert left == after


def test_hooks_that_a_project_shares_name_no_path_of_this_machine_and_a_store_there_is_told(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(Path(program()[0]).parent))
    assert run(["install", "codex", "--project"]) == 0
    hooks = json.loads((home / "project" / ".codex" / "hooks.json").read_text(encoding="utf-8"))["hooks"]
    assert hooks["Stop"][0]["hooks"][0]["command"].startswith("semmem hook stop ")
    capsys.readouterr()
    monkeypatch.setenv("SEMMEM_HOME", "/srv/mine")
    assert run(["install", "claude-code", "--project"]) == 0
    assert ".mcp.json names a store on this machine; do not share it." in " ".join(capsys.readouterr().out.split())


def test_a_key_in_the_url_of_a_server_is_not_passed_on(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SEMMEM_URL", "http://127.0.0.1:1/?key=hunter2")
    assert run(["install", "cursor"]) == 0
    assert "hunter2" not in capsys.readouterr().out + (home / ".cursor" / "mcp.json").read_text(encoding="utf-8")
    assert run(["install", "cursor", "--url", "http://127.0.0.1:1/?key=hunter2"]) == 2
    assert "hunter2" not in capsys.readouterr().err
