"""This process: its memory and processors, and the calls of a library that its end waits for."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from semmem.model.process import machine
from semmem.model.process.native_calls import NativeCalls


def test_the_memory_of_a_container_counts_where_it_is_less(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    (limit := tmp_path / "memory.max").write_text("max\n", encoding="ascii")
    monkeypatch.setattr(machine, "_CONTROL_GROUPS", (str(limit), str(tmp_path / "none")))
    assert machine.memory() == whole
    limit.write_text("1048576\n", encoding="ascii")
    assert machine.memory() == 1_048_576
    limit.write_text("9223372036854771712\n", encoding="ascii")
    assert machine.memory() == whole


def test_this_process_may_use_a_processor_at_least() -> None:
    assert machine.processors() >= 1


def test_the_end_waits_for_the_calls_in_progress_and_lets_no_other_begin() -> None:
    calls, begun, leave = NativeCalls(), threading.Event(), threading.Event()

    def call() -> None:
        with calls:
            begun.set()
            leave.wait(10)
            done.append("call")

    done: list[str] = []
    caller = threading.Thread(target=call)
    caller.start()
    begun.wait(10)
    threading.Timer(0.05, leave.set).start()
    calls.end()
    done.append("end")
    assert done == ["call", "end"]
    with pytest.raises(RuntimeError, match="about to end"), calls:
        pass
    caller.join()


def test_a_child_process_does_not_wait_for_the_calls_of_its_parent() -> None:
    calls = NativeCalls()
    calls.__enter__()
    calls.begin()  # what the child does first
    calls.end()
    assert calls._running == 0
