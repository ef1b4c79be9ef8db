"""The graph of a namespace is of its own memories, though those of another have the same numbers and names."""

from __future__ import annotations

from typing import Any

import pytest

import semmem
from semmem.client.memory import Semmem

ONE = (
    "Ada Lovelace built the engine with Charles Babbage.",
    "Charles Babbage met Grace Hopper at the harbour.",
    "Grace Hopper wrote the compiler for the ferry.",
    "The ferry left the harbour at noon.",
)
TWO = (
    "The harbour has a crane.",
    "Grace Hopper praised Ada Lovelace.",
    "Ada Lovelace and Grace Hopper saw the crane.",
    "Grace Hopper took the ferry with Mary Somerville.",
    "Mary Somerville knew Charles Babbage.",
)


def answers(mem: Semmem) -> list[Any]:
    questions = ("What did Grace Hopper write?", "Who built the engine with Charles Babbage?", "Ada Lovelace")
    found = [mem.recall(question, namespace="one", recipe="graph", limit=4) for question in questions]
    return [[(hit.id, round(hit.score, 5)) for hit in hits] for hits in found]


@pytest.mark.parametrize("maintained", [False, True])
def test_another_namespace_changes_no_walk(url: str, maintained: bool) -> None:
    with semmem.connect(url, embedder="none", resident_mb=0) as mem:
        mem.remember_many([{"id": f"a{n}", "text": text} for n, text in enumerate(ONE)], namespace="one")
        if maintained:
            mem.maintain()
        before = answers(mem)
        assert all(before)
        mem.remember_many([{"id": f"b{n}", "text": text} for n, text in enumerate(TWO)], namespace="two")
        if maintained:
            mem.maintain()
        assert answers(mem) == before
