"""Everything that can become of memories, in any order, in every store, beside a model in plain dictionaries."""

from __future__ import annotations

from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

import semmem
from semmem.client.memory import Semmem
from tests.stores.life_machine import Life


def expire(mem: Semmem, where: str, id: str) -> None:
    """Let the time of a memory in a file be over."""
    asked = "UPDATE memory SET expires_at = 1 WHERE namespace = ? AND id = ?", (where, id)
    mem.store._run(lambda c: c.execute(*asked))  # type: ignore[attr-defined]


def live(mem: Semmem, examples: int, steps: int, **more: Any) -> None:
    """Let a store and the model live ``examples`` times through up to ``steps`` verbs."""
    machine = type("LifeHere", (Life,), {"mem": mem, "runs": count(), **more})
    mem._here.accesses._every_s = mem._here.accesses._pause_s = 3_600.0  # a rule writes what was counted, and no clock
    chosen = settings(
        max_examples=examples,
        stateful_step_count=steps,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.generate],  # to make a failure smaller takes minutes
    )
    run_state_machine_as_test(machine, settings=chosen)  # type: ignore[no-untyped-call]


@pytest.mark.parametrize(
    ("examples", "steps"), [(14, 15), pytest.param(40, 30, marks=[pytest.mark.slow, pytest.mark.timeout(900)])]
)
def test_what_becomes_of_memories_in_a_file_is_what_becomes_of_them_in_the_model(
    tmp_path: Path, examples: int, steps: int
) -> None:
    with semmem.connect(f"sqlite://{tmp_path / 'notes.db'}", embedder="none", recall_log=True) as mem:
        live(mem, examples, steps, expire=staticmethod(expire))


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_what_becomes_of_memories_on_a_server_is_what_becomes_of_them_in_the_model(store_url: str) -> None:
    with semmem.connect(store_url, embedder="hashing", pool_size=2, recall_log=True) as mem:
        live(mem, 15, 30)
