"""What of this machine a process may use: its processors and its memory."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

__all__ = ["memory", "processors", "use_at_most"]

_CONTROL_GROUPS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")
"""Where Linux says how much memory a container may use, in versions 2 and 1 of control groups."""
_most: list[int] = []
"""How many processors this process may use where it shares the machine with others of its kind."""


def memory() -> int:
    """Return the bytes of memory of this machine, or of its container where that has less."""
    sizes = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    for name in _CONTROL_GROUPS:
        with suppress(OSError, ValueError):  # "max" is no number
            sizes.append(int(Path(name).read_bytes()))
    return min(sizes)


def processors() -> int:
    """Return how many processors this process may use."""
    count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min([count, *_most])


def use_at_most(count: int) -> None:
    """Let this process use at most so many processors, because others of its kind use the rest."""
    _most[:] = [count]
