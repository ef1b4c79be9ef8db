"""This process: its memory and processors, and the calls of a library that its end waits for."""

from __future__ import annotations

import os
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from semmem.model.errors import EmbedderUnavailable
from semmem.model.process import machine
from semmem.model.process import native_calls as process_calls
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


def test_the_end_waits_for_the_calls_in_progress_and_lets_no_other_begin(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process_calls, "_LAST_CALLS_S", 100.0)
    calls, begun, leave = NativeCalls(), threading.Event(), threading.Event()

    def call() -> None:
        with calls:
            begun.set()
            leave.wait(100)
            done.append("call")

    done: list[str] = []
    caller = threading.Thread(target=call)
    caller.start()
    assert begun.wait(100)
    threading.Timer(0.05, leave.set).start()
    calls.end()
    done.append("end")
    assert done == ["call", "end"]
    caller.join()
    with calls:
        done.append("exit handler")  # the main thread may go on
    assert done[2:] == ["exit handler"]


def test_a_thread_that_calls_after_the_end_is_held_and_then_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process_calls, "_LAST_CALLS_S", 0.05)
    calls = NativeCalls()
    calls.end()

    def call() -> str:
        with pytest.raises(EmbedderUnavailable, match="about to end"), calls:
            pass
        return "told"

    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(call).result(30) == "told"


def test_a_child_process_does_not_wait_for_the_calls_of_its_parent() -> None:
    calls = NativeCalls()
    calls.__enter__()
    calls.begin()  # what the child does first
    calls.end()
    assert calls._running == 0
