"""Who asks at the moment: the interface through which a call comes, and the agent that makes it, where one is known."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

__all__ = ["INTERFACES", "asked_through", "asker"]

INTERFACES = ("python", "cli", "http", "page", "mcp", "hook")

_asker: ContextVar[tuple[str, str | None]] = ContextVar("semmem_asker", default=("python", None))


@contextmanager
def asked_through(interface: str, agent: str | None = None) -> Iterator[None]:
    """Take the recalls of this block as asked through an interface, by an agent where one is known."""
    token = _asker.set((interface, agent))
    try:
        yield
    finally:
        _asker.reset(token)


def asker() -> tuple[str, str | None]:
    """Return the interface and the agent of the present call."""
    return _asker.get()
