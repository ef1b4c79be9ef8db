"""Three connections on one store, memories that share names and sessions, and the answers to compare."""

from __future__ import annotations

import random
from contextlib import ExitStack, suppress
from itertools import count
from typing import Any, NamedTuple

import semmem
from semmem import Semmem
from semmem.stores.resident.memory import Models

PEOPLE = ("Ada Lovelace", "Grace Hopper", "Mary Somerville", "Sunniva Holt", "Piers Landrake")
THINGS = ("engine", "compiler", "telescope", "lighthouse", "ferry", "ledger", "harbour", "signal")
QUESTIONS = ("Who mended the lighthouse?", "What did Ada Lovelace say of the engine?", "ferry ledger", "Grace Hopper")
_spaces = count(1)


class Trio(NamedTuple):
    """Three on one store: one keeps namespaces in memory, one keeps nothing, one writes."""

    kept: Semmem
    plain: Semmem
    writer: Semmem

    @property
    def models(self) -> Models:
        return self.kept._here.reader.models  # type: ignore[attr-defined, no-any-return]

    def warm(self, namespace: str) -> None:
        """Ask until the namespace is in memory."""
        for _ in range(4):
            if namespace not in self.models:
                self.kept.recall("anything", namespace=namespace)
        assert namespace in self.models


def opened(stack: ExitStack, url: str, **more: Any) -> Trio:
    budgets = (more.pop("resident_mb", 64), 0, 0)
    of = [semmem.connect(url, embedder="hashing", pool_size=4, resident_mb=mb, **more) for mb in budgets]
    return Trio(*(stack.enter_context(mem) for mem in of))


def recalled(stack: ExitStack, url: str, space: str) -> Trio:
    """Return three connections; ``space`` has seventy memories, and its recalls are answered from memory."""
    trio = opened(stack, url)
    change(trio.writer, space, ("many", 0))
    trio.warm(space)
    for _ in range(3):
        trio.kept.recall("ferry", namespace=space)
    return trio


def new_space() -> str:
    """Return the name of a namespace that no test has used."""
    return f"space{next(_spaces)}"


def item(number: int, chance: random.Random) -> dict[str, Any]:
    """Return a memory that shares names, words and sessions with others."""
    who, what = chance.choice(PEOPLE), chance.choice(THINGS)
    beside = f"{chance.choice(PEOPLE)}, near the {chance.choice(THINGS)}"
    text = f"{who} wrote of the {what} number {number % 11} beside {beside}."
    return {
        "id": f"m{number}",
        "text": text * (30 if number % 17 == 16 else 1),  # some are split into parts
        "title": chance.choice([None, None, who, f"The {what}"]),
        "author": chance.choice([None, "Mia", "Tom"]),
        "session": chance.choice([None, "s1", "s2"]),
        "position": chance.choice([None, number]),
        "tags": chance.sample(["half", "few"], chance.randint(0, 2)),
        "importance": chance.choice([0.2, 0.5, 0.9]),
    }


def near(value: Any) -> Any:
    """Return plain values with numbers as precise as vectors in single precision let them be."""
    if isinstance(value, float):
        return float(f"{value:.4g}")
    if isinstance(value, dict):
        return {str(key): near(each) for key, each in value.items() if key != "timings"}
    return [near(each) for each in value] if isinstance(value, list | tuple) else value


def answer(mem: Semmem, question: str, **how: Any) -> Any:
    """Return all that a recall says, and why its first and last hits are there."""
    found = mem.recall(question, limit=6, **how)
    why = [found.explain(hit.memory.id, hit.memory.namespace).as_dict() for hit in (*found[:1], *found[-1:])]
    return near({**found.as_dict(), "why": why, "heads": [hit.memory.id for hit in found]})


def change(mem: Semmem, space: str, step: tuple[str, int]) -> None:
    what, number = step
    chance = random.Random(number)
    stored = [memory.id for memory in mem.list(namespace=space).memories]
    if what == "many":
        mem.remember_many([item(n, chance) for n in range(number, number + 70)], namespace=space, on_error="skip")
    elif what == "few":
        mem.remember_many([item(n, chance) for n in range(number, number + 3)], namespace=space, on_error="skip")
    elif what == "maintain":
        mem.maintain()
    elif what == "drop":
        mem.forget(namespace=space, everything=True)
    elif what == "merge":
        with suppress(semmem.SemmemError):  # unknown, or one already
            mem.merge_concepts("Ada Lovelace", "Grace Hopper", namespace=space)
    elif what == "sensitive":
        mem.remember("The PIN of the safe is 4711.", id=f"pin{number}", namespace=space, sensitive=True)
    elif what == "take back":
        for id in {f"m{n}" for n in range(number % 70 + 1)} - set(stored):
            with suppress(semmem.SemmemError):  # never stored
                mem.restore_memory(id, namespace=space)
    elif len(stored) > 1 and what == "link":
        with suppress(semmem.SemmemError):
            mem.link(stored[number % len(stored)], "supersedes", stored[(number + 1) % len(stored)], namespace=space)
    elif stored and what == "update":
        mem.update(stored[number % len(stored)], text=f"Sunniva Holt saw the ferry {number}.", namespace=space)
    elif stored and what == "forget":
        mem.forget(stored[number % len(stored)], namespace=space)
