"""The scope of a call: in which namespace it writes, in which ones it looks, and which agent it is made by."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from semmem.model.process.project import Project, folder_of, project_of

__all__ = ["WITHOUT_ROOTS", "Agent", "Scope", "agent_of", "scope_of", "with_agent"]

DEFAULT = "default"

WITHOUT_ROOTS = ("codex", "zed")
"""Clients that tell an MCP server no roots: without a repository, their namespace is the default."""


@dataclass(frozen=True, slots=True)
class Agent:
    """The client that calls, as it calls itself: its name and version, None where it says neither."""

    name: str | None = None
    version: str | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return plain JSON-ready values."""
        return {"name": self.name, "version": self.version}


@dataclass(frozen=True, slots=True)
class Scope:
    """The namespace that a call writes in, those that a recall looks in, and where the first comes from.

    ``only``: a call may name no other namespace, and looks in none. ``reveal``: it is shown sensitive texts.
    """

    namespace: str = DEFAULT
    namespaces: tuple[str, ...] = (DEFAULT,)
    origin: str = "neither a root of the client nor a git repository"
    only: bool = False
    reveal: bool = False

    def alone(self) -> Scope:
        """Return the scope of a call that may use the namespace it writes in and no other."""
        return Scope(self.namespace, (self.namespace,), self.origin, only=True, reveal=self.reveal)

    def as_dict(self) -> dict[str, Any]:
        """Return plain JSON-ready values."""
        return {"namespace": self.namespace, "recalled": list(self.namespaces), "from": self.origin}


def scope_of(*, named: str | None, roots: Sequence[str] | None, folder: Path | None, personal: str | None) -> Scope:
    """Return the scope of a client.

    ``named`` is a namespace that the server was started with, and wins. Otherwise it is the project of the first of the
    client's ``roots`` that is one (URIs; recall reads those of the others too), else the git repository of ``folder``,
    else ``default``. ``personal`` is the namespace of what holds in every project, read beside it.
    """
    if named is not None:
        projects: list[Project] = [Project(named, "the option --namespace")]
    else:
        projects = [project for root in roots or () if (project := _rooted(root)) is not None]
        if not projects and folder is not None and (here := project_of(folder, repository_only=True)) is not None:
            projects = [here]
    if not projects:
        return Scope(DEFAULT, _each(DEFAULT, personal))
    return Scope(projects[0].namespace, _each(*(one.namespace for one in projects), personal), projects[0].origin)


def _rooted(uri: str) -> Project | None:
    folder = folder_of(uri)
    project = None if folder is None else project_of(folder)
    return None if project is None else Project(project.namespace, f"a root of the client: {project.origin}")


def _each(*names: str | None) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for name in names if name))


def agent_of(information: Any) -> Agent:
    """Return the agent that ``clientInfo`` names."""
    name, version = getattr(information, "name", None), getattr(information, "version", None)
    return Agent(str(name)[:200] if name else None, str(version)[:200] if version else None)


def with_agent(metadata: Mapping[str, Any] | None, agent: Agent) -> dict[str, Any]:
    """Return the metadata of a new memory with the name of the agent that writes it, unless it says one itself."""
    values = dict(metadata or {})
    return values if agent.name is None or "agent" in values else {**values, "agent": agent.name}
