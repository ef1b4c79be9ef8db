"""What readers and writers do, the same for every system, and how it is measured."""

from __future__ import annotations

import os
import re
import threading
import time
from array import array
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cache, partial
from itertools import count
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np

from eval.bench.generator import Generator, Question
from eval.bench.measures import bytes_of, loop_ms, processor_s, resident_mb, tail
from eval.bench.mixed.systems import SYSTEMS, Item, System
from semmem.model.failure import reason

__all__ = ["Plan", "Write", "filled", "loaded", "summed", "without_files", "writes"]

_BATCH = 8
"""Memories of a write that remembers."""
_POOL = 2_000
"""Different questions, made before the readers start."""
_OF_20 = {"update": 3, "forget": 1}
"""Writes of twenty, on average, that change an older memory; all others remember a batch."""
_NEW = 10**9
"""The number of the first memory of the first writer; the next writer's is twice as large."""
_PLACE = re.compile(r"(?<![\w.:/])/[^\s:'\"]+")
"""A file of the machine on which a system was built, or runs, in the text of an error."""
Kind = Literal["remember", "update", "forget"]
_KINDS = get_args(Kind)


@dataclass(frozen=True, slots=True)
class Plan:
    """A mixed load: ``pace`` is how many writes a second each writer begins at most, ``upkeep_s`` how often upkeep is.

    The ``seconds`` of a load are divided into ``turns`` of equal length, and a store is opened anew for each.

    ``patience_s`` is the time after which the process of a system is ended while it fills, and that long after the end
    of the load.
    """

    memories: int = 100_000
    namespaces: int = 1_000
    seconds: float = 60
    readers: int = 8
    writers: int = 2
    pace: float = 2
    upkeep_s: float = 600
    patience_s: float = 6 * 3600
    seed: int = 0
    turns: int = 1

    @property
    def turn_s(self) -> float:
        """The seconds of a turn."""
        return self.seconds / self.turns

    @property
    def generator(self) -> Generator:
        """The generator of its memories and questions."""
        return _generator(self.seed, self.namespaces)


@cache
def _generator(seed: int, namespaces: int) -> Generator:
    return Generator(seed, namespaces=namespaces)


@dataclass(frozen=True, slots=True)
class Write:
    """A write: a batch that is remembered in one namespace, or one older memory that is updated or forgotten."""

    kind: Kind
    items: tuple[Item, ...]


def item_of(generator: Generator, number: int) -> Item:
    """Return memory ``number`` of a generator."""
    made = generator.memory(number)
    return Item(made["id"], made["namespace"], made["title"], made["text"], generator.vector(number))


def writes(plan: Plan, writer: int) -> Iterator[Write]:
    """Yield the writes of a writer without an end: the same for every system, however far it gets.

    Each turn has writers of its own, numbered on from those of the turn before.
    Older memories are dealt out, so that no writer changes what another one forgets: by the remainder of their number,
    each writer updates one share, and forgets the memories of another one in turn.
    """
    generator, all_writers = plan.generator, plan.writers * plan.turns
    shares = 2 * all_writers
    fresh = count(_NEW * (writer + 1))
    to_update = range(writer, plan.memories, shares)
    to_forget = iter(range(all_writers + writer, plan.memories, shares))
    for number in count():
        draw = np.random.default_rng([plan.seed, 7, writer, number])
        turn = int(draw.integers(20))
        if turn < _OF_20["forget"] and (old := next(to_forget, None)) is not None:
            yield Write("forget", (item_of(generator, old),))
        elif turn < sum(_OF_20.values()) and to_update:
            item = item_of(generator, to_update[int(draw.integers(len(to_update)))])
            text = f"{item.text} Change {number} of writer {writer}."
            yield Write("update", (replace(item, text=text),))
        else:
            items = [item_of(generator, next(fresh)) for _ in range(_BATCH)]
            yield Write("remember", tuple(replace(one, namespace=items[0].namespace) for one in items))  # of one user


def without_files(text: str) -> str:
    """Return what a system says without the files of the machine, since a result is published."""
    return _PLACE.sub("FILE", text)


@dataclass(slots=True)
class Calls:
    """The calls of one thread: seconds by verb, errors, and how many recalls returned the memory asked for.

    ``findable`` counts the recalls whose memory no writer had forgotten, or begun to forget, when they ended.
    """

    seconds: dict[str, array[float]] = field(default_factory=dict)
    ended: dict[str, array[float]] = field(default_factory=dict)
    errors: Counter[str] = field(default_factory=Counter)
    found: int = 0
    findable: int = 0

    def timed(self, verb: str, began: float, call: Callable[[], Any]) -> Any:
        """Call, and note how long it took and when it ended after ``began``; note an error and return None."""
        start = time.perf_counter()
        try:
            answer = call()
        except Exception as error:  # noqa: BLE001  # a system that fails under load is what is looked for
            self.errors[without_files(f"{verb}: {reason(error)}")] += 1
            return None
        end = time.perf_counter()
        self.seconds.setdefault(verb, array("d")).append(end - start)
        self.ended.setdefault(verb, array("d")).append(end - began)
        return answer


def filled(name: str, plan: Plan, folder: Path) -> dict[str, Any]:
    """Fill a system and close it; return the rate without the seconds in which memories were made, and bytes.

    It gets one namespace after the other, as an import of the memories of many users does.
    """
    making = 0.0
    order = sorted(range(plan.memories), key=plan.generator.namespace)

    def items() -> Iterator[Item]:
        nonlocal making
        for number in order:
            start = time.perf_counter()
            item = item_of(plan.generator, number)
            making += time.perf_counter() - start
            yield item

    system = SYSTEMS[name](folder)
    start = time.perf_counter()
    try:
        system.fill(items())
        seconds = time.perf_counter() - start - making
    finally:
        system.close()
    return {
        "seconds": round(seconds, 1),
        "memories_per_s": round(plan.memories / seconds, 1),
        "bytes": bytes_of(folder),
    }


def loaded(name: str, plan: Plan, folder: Path, turn: int = 0, forgotten: Sequence[str] = ()) -> dict[str, Any]:
    """Open a filled system, let readers and writers at it for one turn, and return what was measured, for ``summed``.

    ``forgotten`` are the ids of the memories that the turns before have forgotten.
    """
    questions = [plan.generator.question(number, plan.memories) for number in range(min(_POOL, plan.memories))]
    namespaces = [plan.generator.namespace(int(one.about[1:])) for one in questions]
    loop = loop_ms()
    start = time.perf_counter()
    system = SYSTEMS[name](folder)
    try:
        system.recall(namespaces[0], questions[0].text, questions[0].vector)
        opened_s = time.perf_counter() - start
        load = _Load(system, plan, list(zip(questions, namespaces, strict=True)), turn, forgotten)
        measured = load.run()
    finally:
        system.close()
    degraded = Counter(map(without_files, system.degraded))
    return {
        "loop_ms": [loop, loop_ms()],  # before and after
        "opened_s": round(opened_s, 2),
        **measured,
        "degraded": dict(degraded),
        "bytes": bytes_of(folder),
    }


class _Load:
    """One load of one system: its threads, and what is looked at while they work."""

    def __init__(
        self,
        system: System,
        plan: Plan,
        questions: Sequence[tuple[Question, str]],
        turn: int = 0,
        forgotten: Sequence[str] = (),
    ) -> None:
        self._system, self._plan, self._questions, self._turn = system, plan, questions, turn
        self._over = threading.Event()
        self._forgotten = set(forgotten)
        self._late = False
        self._began = 0.0

    def run(self) -> dict[str, Any]:
        """Run the threads until the time is over; return the numbers."""
        plan = self._plan
        memory: list[dict[str, float | None]] = []
        before = self._processors()
        self._began = time.perf_counter()
        with ThreadPoolExecutor(plan.readers + plan.writers + 1) as pool:
            first = self._turn * plan.readers, self._turn * plan.writers
            reading = [pool.submit(self._read, first[0] + reader) for reader in range(plan.readers)]
            writing = [pool.submit(self._write, first[1] + writer) for writer in range(plan.writers)]
            keeping = pool.submit(self._keep)
            try:
                every = min(60.0, plan.turn_s / 6)
                for look in count():
                    memory.append(self._memory())
                    if self._over.wait(max(0.0, min(look * every + every, plan.turn_s) - self._elapsed())):
                        break
                    if self._elapsed() >= plan.turn_s:
                        break
            finally:
                self._over.set()
            readers, writers = [one.result() for one in reading], [one.result() for one in writing]
            elapsed = self._elapsed()
            kept = keeping.result()
        memory.append(self._memory())
        after = self._processors()
        return {
            "elapsed": elapsed,
            "calls": {verb: _joined(readers + writers, verb) for verb in ("recall", *_KINDS)},
            "ended": [at for one in readers for at in one.ended.get("recall", ())],
            "found": sum(one.found for one in readers),
            "findable": sum(one.findable for one in readers),
            "forgotten": sorted(self._forgotten),
            "errors": dict(sum((one.errors for one in (*readers, *writers, kept)), Counter[str]())),
            "upkeep": list(kept.seconds.get("upkeep", ())),
            "upkeep_late": self._late,
            "memory": memory,
            "processor_s": {what: round(after[what] - before[what], 2) for what in after},
        }

    def _elapsed(self) -> float:
        return time.perf_counter() - self._began

    def _read(self, reader: int) -> Calls:
        calls, draw = Calls(), np.random.default_rng([self._plan.seed, 8, reader])
        while True:
            one, namespace = self._questions[int(draw.integers(len(self._questions)))]
            ids = calls.timed("recall", self._began, partial(self._system.recall, namespace, one.text, one.vector))
            if ids is not None and one.about not in self._forgotten:
                calls.findable += 1
                calls.found += one.about in ids
            if self._over.is_set():
                break
        return calls

    def _write(self, writer: int) -> Calls:
        calls, plan, system = Calls(), self._plan, self._system
        for turn, write in enumerate(writes(plan, writer)):
            due = turn / plan.pace if plan.pace else 0.0
            if self._over.wait(max(0.0, due - self._elapsed())):
                break
            first = write.items[0]
            verbs: dict[Kind, Callable[[], None]] = {
                "remember": partial(system.remember, write.items),
                "update": partial(system.update, first),
                "forget": partial(system.forget, first.namespace, first.id),
            }
            if write.kind == "forget":
                self._forgotten.add(first.id)
            calls.timed(write.kind, self._began, verbs[write.kind])
        return calls

    def _keep(self) -> Calls:
        calls, plan = Calls(), self._plan
        pause = -self._turn * plan.turn_s % plan.upkeep_s if self._turn else plan.upkeep_s  # as in one long turn
        while not self._over.wait(pause):
            pause = plan.upkeep_s
            calls.timed("upkeep", self._began, self._system.upkeep)
            self._late = self._over.is_set()
        return calls

    def _memory(self) -> dict[str, float | None]:
        shares = [share for pid in self._system.servers() if (share := resident_mb(pid)) is not None]
        server = round(sum(shares), 1) if shares else 0.0
        return {"s": round(self._elapsed(), 1), "process_mb": resident_mb(os.getpid()), "server_mb": server}

    def _processors(self) -> dict[str, float]:
        process = sum(os.times()[:4])  # of ended children too, which an upkeep may be
        return {"process": process, "server": sum(processor_s(pid) for pid in self._system.servers())}


def _grown(memory: Sequence[dict[str, float | None]]) -> float | None:
    """Return by how much process and server grew from the second look on, at which caches are mostly full."""
    ends = [one["process_mb"] for one in (memory[1], memory[-1])]
    servers = [one["server_mb"] or 0.0 for one in (memory[1], memory[-1])]
    if ends[0] is None or ends[1] is None:
        return None
    return round(ends[1] + servers[1] - ends[0] - servers[0], 1)


def summed(turns: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the numbers of a whole load from its turns, of which "turns" says how each went where there are several.

    The memory of one turn says nothing about that of another, so its growth is that of the turn that grew most. When,
    and with which commit, is that of the last turn.
    """
    calls: dict[str, list[float]] = {
        verb: [took for turn in turns for took in turn["calls"][verb]] for verb in ("recall", *_KINDS)
    }
    every = [took for kind in _KINDS for took in calls[kind]]
    seconds, findable = sum(turn["elapsed"] for turn in turns), sum(turn["findable"] for turn in turns)
    errors = sum((Counter(turn["errors"]) for turn in turns), Counter[str]())
    grown = [growth for turn in turns if (growth := _grown(turn["memory"])) is not None]
    return {
        **{what: turns[-1][what] for what in _WHEN},
        "loop_ms": [took for turn in turns for took in turn["loop_ms"]],
        "opened_s": turns[0]["opened_s"],
        "seconds": round(seconds, 1),
        "recall": tail(calls["recall"]),
        "recalls": len(calls["recall"]),
        "recalls_per_s": round(len(calls["recall"]) / seconds, 1),
        "found": round(sum(turn["found"] for turn in turns) / findable, 3) if findable else None,
        "write": tail(every),
        "writes": {kind: {"calls": len(calls[kind]), **tail(calls[kind])} for kind in _KINDS},
        "writes_per_s": round(len(every) / seconds, 2),
        "memories_per_s": round(len(calls["remember"]) * _BATCH / seconds, 1),
        "upkeep_s": [round(took, 1) for turn in turns for took in turn["upkeep"]],
        "by_minute": [minute for turn in turns for minute in _by_minute(turn["calls"]["recall"], turn["ended"])],
        "errors": dict(errors.most_common(10)),
        "errors_in_all": sum(errors.values()),
        "upkeep_late": any(turn["upkeep_late"] for turn in turns),
        "memory": _after_one_another(turns),
        "grown_mb": max(grown) if grown else None,
        "processor_s": {what: round(sum(t["processor_s"][what] for t in turns), 1) for what in ("process", "server")},
        "degraded": dict(sum((Counter(turn["degraded"]) for turn in turns), Counter[str]())),
        "bytes": turns[-1]["bytes"],
        **({"turns": [_in_short(turn) for turn in turns]} if len(turns) > 1 else {}),
    }


_WHEN = ("at", "commit", "load_average")


def _in_short(turn: Mapping[str, Any]) -> dict[str, Any]:
    recalls = turn["calls"]["recall"]
    return {
        **{what: turn[what] for what in (*_WHEN, "loop_ms", "opened_s", "processor_s")},
        "recall": tail(recalls),
        "recalls_per_s": round(len(recalls) / turn["elapsed"], 1),
        "write": tail([took for kind in _KINDS for took in turn["calls"][kind]]),
    }


def _after_one_another(turns: Sequence[Mapping[str, Any]]) -> list[dict[str, float | None]]:
    """Return the looks at the memory of all turns, the seconds of each turn counted on from those before."""
    looks, began = [], 0.0
    for turn in turns:
        looks += [{**look, "s": round(began + look["s"], 1)} for look in turn["memory"]]
        began += turn["elapsed"]
    return looks


def _joined(threads: Sequence[Calls], verb: str) -> list[float]:
    return [took for calls in threads for took in calls.seconds.get(verb, ())]


def _by_minute(seconds: Sequence[float], ended: Sequence[float]) -> list[dict[str, float]]:
    """Return percentiles and the number of the recalls that ended in each minute."""
    minutes: dict[int, list[float]] = {}
    for took, at in zip(seconds, ended, strict=True):
        minutes.setdefault(int(at // 60), []).append(took)
    return [{"recalls": len(minutes[minute]), **tail(minutes[minute])} for minute in sorted(minutes)]
