"""The clients that semmem can be installed in, one row each: their files, what has to stand there, and their hooks."""

from __future__ import annotations

import shlex
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from semmem.model.errors import InvalidInput

__all__ = ["CLIENTS", "SERVER", "Client", "Hooks", "client_of", "hook_commands", "program", "server_entry"]

SERVER = "semmem"
"""The name of the server in a client's file."""

_EVENTS = {"SessionStart": "session-start", "UserPromptSubmit": "prompt", "PreCompact": "pre-compact", "Stop": "stop"}
"""The events of Claude Code and Codex, and ours."""

_SECONDS = {"session-start": 20, "prompt": 10, "pre-compact": 60, "stop": 60}
_IN_BACKGROUND = ("pre-compact", "stop")


@dataclass(frozen=True, slots=True)
class Hooks:
    """The hooks of a client that can add to what its model reads.

    ``file`` and ``project`` are where they stand under ``hooks``, ``events`` its names of our events. ``grouped``: a
    hook stands in a group of its own. ``second`` is a second in its unit of time. ``reply_key`` is the key of the JSON
    in which it takes a text; None: it takes the text itself.
    """

    file: str
    project: str
    events: Mapping[str, str] = field(default_factory=lambda: _EVENTS)
    grouped: bool = True
    second: int = 1
    reply_key: str | None = None


@dataclass(frozen=True, slots=True)
class Client:
    """One client.

    ``servers`` is its file of MCP servers for the user, ``project`` the one of a project, both relative to the home or
    the project's folder; ``section`` is where servers stand in it, ``entry`` what an entry has besides the command.
    ``one_list``: command and arguments are one list. ``page`` is its maker's page about these files, ``then`` what a
    person has to do.
    """

    name: str
    title: str
    servers: str
    section: str
    then: str
    page: str
    project: str | None = None
    hooks: Hooks | None = None
    entry: Mapping[str, Any] = field(default_factory=dict)
    one_list: bool = False

    def places(self, folder: Path | None) -> tuple[Path, Path | None]:
        """Return the files of servers and of hooks: of the project in ``folder``, or of the user where that is None.

        Raises InvalidInput for a client that has none for a project, and for a user without a home.
        """
        hooks = self.hooks
        if folder is None:
            home = _home()
            return home / self.servers.replace("…", _APPLICATIONS), None if hooks is None else home / hooks.file
        if self.project is None:
            raise InvalidInput(f"{self.name} has no files of settings for one project; leave --project out.")
        return folder / self.project, None if hooks is None else folder / hooks.project


_APPLICATIONS = "Library/Application Support" if sys.platform == "darwin" else ".config"
"""The folder of the settings of programs with windows, … in a row."""

CLIENTS: Mapping[str, Client] = {
    client.name: client
    for client in (
        Client(
            "claude-code", "Claude Code", ".claude.json", "mcpServers", project=".mcp.json",
            entry={"type": "stdio"}, hooks=Hooks(".claude/settings.json", ".claude/settings.local.json"),
            then="Restart Claude Code; /mcp and /hooks show what it has.",
            page="https://code.claude.com/docs/en/mcp",
        ),
        Client(
            "claude-desktop", "Claude Desktop", "…/Claude/claude_desktop_config.json", "mcpServers",
            then="Quit Claude and start it anew.",
            page="https://modelcontextprotocol.io/docs/develop/connect-local-servers",
        ),
        Client(
            "cline", "Cline", ".cline/data/settings/cline_mcp_settings.json", "mcpServers",
            then="Cline starts it by itself; its MCP Servers tab shows it.",
            page="https://docs.cline.bot/getting-started/config",
        ),
        Client(
            "codex", "Codex", ".codex/config.toml", "mcp_servers", project=".codex/config.toml",
            hooks=Hooks(".codex/hooks.json", ".codex/hooks.json"),
            then="Restart Codex; it asks whether you trust the hooks.",
            page="https://developers.openai.com/codex/mcp",
        ),
        Client(
            "copilot-cli", "Copilot CLI", ".copilot/mcp-config.json", "mcpServers", project=".github/mcp.json",
            entry={"type": "local", "tools": ["*"]},
            hooks=Hooks(
                ".copilot/settings.json", ".github/copilot/settings.local.json",
                {"sessionStart": "session-start"}, grouped=False, reply_key="additionalContext",
            ),
            then="Restart Copilot; /mcp show lists it.",
            page="https://docs.github.com/en/copilot/reference/hooks-reference",
        ),
        Client(
            "cursor", "Cursor", ".cursor/mcp.json", "mcpServers", project=".cursor/mcp.json",
            then="Switch the server on in Cursor's settings, under MCP.",
            page="https://cursor.com/docs/mcp",
        ),
        Client(
            "gemini-cli", "Gemini CLI", ".gemini/settings.json", "mcpServers", project=".gemini/settings.json",
            hooks=Hooks(
                ".gemini/settings.json", ".gemini/settings.json",
                {"SessionStart": "session-start", "BeforeAgent": "prompt"},
                second=1_000, reply_key="hookSpecificOutput.additionalContext",
            ),
            then="Restart Gemini; /mcp and /hooks show what it has.",
            page="https://geminicli.com/docs/hooks/reference",
        ),
        Client(
            "opencode", "opencode", ".config/opencode/opencode.json", "mcp", project="opencode.json",
            entry={"type": "local", "enabled": True}, one_list=True,
            then="Restart opencode; a server of a project waits for: opencode mcp approve semmem",
            page="https://opencode.ai/docs/mcp-servers/",
        ),
        Client(
            "vscode", "VS Code", "…/Code/User/mcp.json", "servers", project=".vscode/mcp.json",
            entry={"type": "stdio"},
            then="Run 'MCP: List Servers' in VS Code and start semmem there.",
            page="https://code.visualstudio.com/docs/copilot/reference/mcp-configuration",
        ),
        Client(
            "windsurf", "Windsurf", ".codeium/windsurf/mcp_config.json", "mcpServers",
            then="Refresh the servers in Windsurf's Cascade panel.",
            page="https://docs.windsurf.com/windsurf/cascade/mcp",
        ),
        Client(
            "zed", "Zed", ".config/zed/settings.json", "context_servers", project=".zed/settings.json",
            entry={"source": "custom"},
            then="Zed starts it by itself; the settings of its Agent Panel show it.",
            page="https://zed.dev/docs/ai/mcp",
        ),
    )
}  # fmt: skip
"""Every client by name.

Hooks of Cursor and Windsurf, and Copilot's of a prompt, cannot add to what the model reads; those of VS Code are Claude
Code's; those of Cline and opencode are plugins in JavaScript. Gemini and Copilot keep transcripts in a form of their
own, so no turns are stored of them.
"""


def client_of(name: str) -> Client:
    """Return the client of that name. Raises InvalidInput."""
    if name not in CLIENTS:
        raise InvalidInput(f"There is no client {name!r}; choose one of {', '.join(CLIENTS)}.")
    return CLIENTS[name]


def program() -> list[str]:
    """Return the words that start semmem from any folder, whatever lies in that folder."""
    script = Path(sys.executable).with_name("semmem")
    path = str(script) if script.is_file() else shutil.which("semmem")
    return [path] if path else [sys.executable, "-P", "-m", "semmem"]  # -P: no module of the working folder


def server_entry(client: Client, options: Sequence[str], *, shared: bool = False) -> dict[str, Any]:
    """Return what has to stand under the server's name; ``options`` are those of the command line.

    In a file that a project shares, the command is the one on the PATH, where there is one.
    """
    words = [*_start(shared), "mcp", *options]
    if client.one_list:
        return {**client.entry, "command": words}
    return {**client.entry, "command": words[0], "args": words[1:]}


def hook_commands(client: Client, options: Sequence[str], *, shared: bool = False) -> dict[str, dict[str, Any]]:
    """Return the hook of each event as the client writes it, none where it has none; ``shared`` as in server_entry."""
    if (hooks := client.hooks) is None:
        return {}
    commands: dict[str, dict[str, Any]] = {}
    for event, ours in hooks.events.items():
        words = [*_start(shared), "hook", ours, "--agent", client.name, *options]
        words += ["--detach"] if ours in _IN_BACKGROUND else []
        words += ["--reply-key", hooks.reply_key] if hooks.reply_key else []
        hook = {"type": "command", "command": shlex.join(words), "timeout": _SECONDS[ours] * hooks.second}
        commands[event] = {"hooks": [hook]} if hooks.grouped else hook
    return commands


def _start(shared: bool) -> list[str]:
    return [SERVER] if shared and shutil.which(SERVER) else program()


def _home() -> Path:
    try:
        return Path.home()
    except RuntimeError:
        raise InvalidInput("This user has no home folder; install it for one project with --project.") from None
