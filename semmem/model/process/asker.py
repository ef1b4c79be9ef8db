"""Who asks at the moment.

The interface through which a call comes, the agent that makes it and the namespaces that its key permits, where these
are known.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

from semmem.model.audit import MOST_IDS

__all__ = [
    "INTERFACES",
    "Written",
    "asked_through",
    "asker",
    "holder",
    "note_written",
    "own_work",
    "permitted",
    "written_in",
]

INTERFACES = ("python", "cli", "http", "page", "mcp", "hook")


@dataclass(slots=True)
class Written:
    """What a call has written: how many memories in each namespace, and the first ids of each."""

    counts: Counter[str] = field(default_factory=Counter)
    ids: dict[str, list[str]] = field(default_factory=dict)

    def add(self, names: Iterable[tuple[str, str]]) -> None:
        """Count each (namespace, id) once more."""
        for namespace, id in names:
            self.counts[namespace] += 1
            first = self.ids.setdefault(namespace, [])
            if len(first) < MOST_IDS:
                first.append(id)


_asker: ContextVar[tuple[str, str | None]] = ContextVar("semmem_asker", default=("python", None))
_holder: ContextVar[str | None] = ContextVar("semmem_holder", default=None)
_permitted: ContextVar[tuple[str, ...] | None] = ContextVar("semmem_permitted", default=None)
_written: ContextVar[Written | None] = ContextVar("semmem_written", default=None)


@contextmanager
def asked_through(
    interface: str,
    agent: str | None = None,
    holder: str | None = None,
    namespaces: tuple[str, ...] | None = None,
) -> Iterator[None]:
    """Take the calls of this block as made through an interface, by an agent and with a key, where these are known.

    ``holder`` is the name of the key, ``namespaces`` are those that it permits, None being all.
    """
    tokens = _asker.set((interface, agent)), _holder.set(holder), _permitted.set(namespaces)
    try:
        yield
    finally:
        _asker.reset(tokens[0])
        _holder.reset(tokens[1])
        _permitted.reset(tokens[2])


@contextmanager
def own_work() -> Iterator[None]:
    """Take this block as the work of the program itself in the midst of a call, which every namespace is open to."""
    token = _permitted.set(None)
    try:
        yield
    finally:
        _permitted.reset(token)


def permitted() -> tuple[str, ...] | None:
    """Return the namespaces that the key of the present call permits, None for all."""
    return _permitted.get()


def holder() -> str | None:
    """Return the name of the key of the present call, None where it came without one."""
    return _holder.get()


@contextmanager
def written_in() -> Iterator[Written]:
    """Yield what gets to know the memories that this block writes in batches."""
    written = Written()
    token = _written.set(written)
    try:
        yield written
    finally:
        _written.reset(token)


def note_written(names: Iterable[tuple[str, str]]) -> None:
    """Tell the block that wants to know it which memories a batch has written."""
    if (written := _written.get()) is not None:
        written.add(names)


def asker() -> tuple[str, str | None]:
    """Return the interface and the agent of the present call."""
    return _asker.get()
