"""The clients that semmem can be installed in: which files they read, and what has to stand there."""

from __future__ import annotations

import shlex
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from semmem.model.errors import InvalidInput

__all__ = ["CLIENTS", "Client", "client_of", "hook_commands", "program", "server_entry"]

SERVER = "semmem"
"""The name of the server in a client's file."""

HOOKS = {"SessionStart": "session-start", "UserPromptSubmit": "prompt", "PreCompact": "pre-compact", "Stop": "stop"}
"""The event of a client, and ours."""

_SECONDS = {"session-start": 20, "prompt": 10, "pre-compact": 60, "stop": 60}
_IN_BACKGROUND = ("pre-compact", "stop")


@dataclass(frozen=True, slots=True)
class Client:
    """One client.

    ``servers`` is its file of MCP servers for the user, ``project_servers`` the one of a project, both relative to the
    home or the project's folder; ``section`` is where servers stand in it. ``hooks`` and ``project_hooks`` are its
    files of hooks, None for a client without hooks that can add to what the model reads. ``typed``: an entry says that
    it is stdio. ``then`` is what a person has to do.
    """

    name: str
    servers: str
    section: str
    project_servers: str | None = None
    hooks: str | None = None
    project_hooks: str | None = None
    typed: bool = False
    then: str = "Restart it."

    def places(self, folder: Path | None) -> tuple[Path, Path | None]:
        """Return the files of servers and of hooks: of the project in ``folder``, or of the user where that is None.

        Raises InvalidInput for a client that has none for a project, and for a user without a home.
        """
        if folder is None:
            home = _home()
            return home / self.servers, None if self.hooks is None else home / self.hooks
        if self.project_servers is None:
            raise InvalidInput(f"{self.name} has no files of settings for one project; leave --project out.")
        hooks = self.project_hooks
        return folder / self.project_servers, None if hooks is None else folder / hooks


_MAC = sys.platform == "darwin"
_APPLICATIONS = "Library/Application Support" if _MAC else ".config"

CLIENTS: Mapping[str, Client] = {
    client.name: client
    for client in (
        Client(
            "claude-code",
            servers=".claude.json",
            section="mcpServers",
            project_servers=".mcp.json",
            hooks=".claude/settings.json",
            project_hooks=".claude/settings.local.json",
            typed=True,
            then="Restart Claude Code; /mcp and /hooks show what it has.",
        ),
        Client(
            "claude-desktop",
            servers=f"{_APPLICATIONS}/Claude/claude_desktop_config.json",
            section="mcpServers",
            then="Quit Claude and start it anew.",
        ),
        Client(
            "cursor",
            servers=".cursor/mcp.json",
            section="mcpServers",
            project_servers=".cursor/mcp.json",
            then="Switch the server on in Cursor's settings, under MCP.",
        ),
        Client(
            "vscode",
            servers=f"{_APPLICATIONS}/Code/User/mcp.json",
            section="servers",
            project_servers=".vscode/mcp.json",
            typed=True,
            then="Run 'MCP: List Servers' in VS Code and start semmem there.",
        ),
        Client(
            "codex",
            servers=".codex/config.toml",
            section="mcp_servers",
            project_servers=".codex/config.toml",
            hooks=".codex/hooks.json",
            project_hooks=".codex/hooks.json",
            then="Restart Codex; it asks whether you trust the hooks.",
        ),
    )
}
"""Every client by name. Cursor's hooks cannot add to a prompt, and those of VS Code are Claude Code's."""


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
    first, *rest = _start(shared)
    entry = {"command": first, "args": [*rest, "mcp", *options]}
    return {"type": "stdio", **entry} if client.typed else entry


def hook_commands(client: Client, options: Sequence[str], *, shared: bool = False) -> dict[str, dict[str, Any]]:
    """Return the hook of each event, as Claude Code and Codex write it; ``shared`` as in ``server_entry``."""
    start = _start(shared)
    commands = {}
    for event, ours in HOOKS.items():
        words = [*start, "hook", ours, "--agent", client.name, *options]
        words += ["--detach"] if ours in _IN_BACKGROUND else []
        commands[event] = {"hooks": [{"type": "command", "command": shlex.join(words), "timeout": _SECONDS[ours]}]}
    return commands


def _start(shared: bool) -> list[str]:
    return [SERVER] if shared and shutil.which(SERVER) else program()


def _home() -> Path:
    try:
        return Path.home()
    except RuntimeError:
        raise InvalidInput("This user has no home folder; install it for one project with --project.") from None
