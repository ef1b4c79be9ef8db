"""Who asks at the moment: the interface through which a call comes, and the agent that makes it, where one is known."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

__all__ = ["INTERFACES", "asked_through", "asker", "holder", "note_written", "written_in"]

INTERFACES = ("python", "cli", "http", "page", "mcp", "hook")

_asker: ContextVar[tuple[str, str | None]] = ContextVar("semmem_asker", default=("python", None))
_holder: ContextVar[str | None] = ContextVar("semmem_holder", default=None)
_written: ContextVar[list[tuple[str, str]] | None] = ContextVar("semmem_written", default=None)


@contextmanager
def asked_through(interface: str, agent: str | None = None, holder: str | None = None) -> Iterator[None]:
    """Take the calls of this block as made through an interface, by an agent and with a key, where these are known.

    ``holder`` is the name of the key.
    """
    tokens = _asker.set((interface, agent)), _holder.set(holder)
    try:
        yield
    finally:
        _asker.reset(tokens[0])
        _holder.reset(tokens[1])


def holder() -> str | None:
    """Return the name of the key of the present call, None where it came without one."""
    return _holder.get()


@contextmanager
def written_in() -> Iterator[list[tuple[str, str]]]:
    """Yield a list that gets (namespace, id) of the memories that this block writes in batches."""
    names: list[tuple[str, str]] = []
    token = _written.set(names)
    try:
        yield names
    finally:
        _written.reset(token)


def note_written(names: Iterable[tuple[str, str]]) -> None:
    """Tell the block that wants to know it which memories a batch has written."""
    if (written := _written.get()) is not None:
        written.extend(names)


def asker() -> tuple[str, str | None]:
    """Return the interface and the agent of the present call."""
    return _asker.get()
