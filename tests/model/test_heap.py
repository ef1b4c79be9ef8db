"""What is free in the heap goes back to the system when it is told to."""

from __future__ import annotations

import platform
from pathlib import Path

import numpy as np
import pytest

from semmem.model.process import heap


def of_no_file() -> int:
    """Return how many megabytes of this process are in no file."""
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    return int(status.split("RssAnon:")[1].split()[0]) // 1024


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc gives back what lies below memory in use")
def test_what_lies_below_memory_in_use_is_given_back() -> None:
    held = [np.ones(12_500) for _ in range(2_000)]  # 100 kB each, of the heap
    every_tenth = held[::10]
    del held
    before = of_no_file()
    heap.give_back()
    assert before - of_no_file() > 100
    assert len(every_tenth) == 200


def test_a_c_library_that_cannot_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    class Other:
        """A C library of another kind, which has no such function."""

        def __init__(self, name: None) -> None:
            asked.append(name)

    asked: list[None] = []
    monkeypatch.setattr("ctypes.CDLL", Other)
    heap.give_back()
    assert asked == [None]
