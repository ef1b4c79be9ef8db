"""The time limit of a leg: what counts against it, and what happens to a leg that is late."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import semmem
from semmem.embedders.hashing import Hashing
from semmem.model.exchange import Question, Ranking, Scope
from semmem.model.process import clock as clocks
from semmem.model.process.clock import Clock
from semmem.model.protocols import Leg
from semmem.model.store import Snapshot
from tests.read.harbour import Slow, ids, legs
from tests.waiting import until


class LegTime:
    """The time that the clocks of legs show: it stands, however busy the machine is, until a test moves it on."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 0.0
        self.looks = 0
        spent = Clock.spent

        def looked(clock: Clock) -> float:
            self.looks += 1
            return spent(clock)

        monkeypatch.setattr(clocks, "time", SimpleNamespace(perf_counter=lambda: self.now))
        monkeypatch.setattr(Clock, "spent", looked)

    def pass_by(self, seconds: float) -> None:
        """Let the time pass, and whoever waits for a leg look at its clock since, who would give up a late one."""
        self.now += seconds
        looks = self.looks
        until(lambda: self.looks > looks)


@pytest.fixture
def leg_time(monkeypatch: pytest.MonkeyPatch) -> LegTime:
    return LegTime(monkeypatch)


@pytest.mark.parametrize("leg", ["lexical", "dense", "graph"])
def test_a_leg_that_is_late_is_degraded_and_the_others_answer(mem: semmem.Semmem, leg: str) -> None:
    mem.remember("ferry at dawn", id="match")
    legs(mem)[leg] = late = Slow(leg)
    try:
        found = mem.recall("ferry", recipe=semmem.recipe("default", timeouts={leg: 0.05}))
    finally:
        late.go.set()
    assert found.degraded == {leg: "no answer within 0.05 s"}
    assert ids(found) == ["match"]


def test_reading_the_model_from_disk_is_not_on_the_time_of_a_leg(store_url: str, leg_time: LegTime) -> None:
    class Cold(Hashing):
        """A second late the first time it is asked for one text, as a model that has to be loaded is."""

        late = True

        def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
            if self.late and len(texts) == 1:
                self.late = False
                leg_time.pass_by(1.0)
                go.wait(60)
            return super().embed(texts)

    embedder, go = Cold(), threading.Event()
    go.set()
    with semmem.connect(store_url, embedder=embedder) as mem:
        mem.remember_many({"text": text} for text in ("ferry at dawn", "ferry at dusk"))
        found = mem.recall("ferry", recipe=semmem.recipe("hybrid", timeouts={"dense": 0.05}))
        assert not found.degraded
        assert not embedder.late
        embedder.late = True  # once loaded, it is
        go.clear()
        again = mem.recall("ferry", recipe=semmem.recipe("hybrid", timeouts={"dense": 0.05}))
        assert again.degraded == {"dense": "no answer within 0.05 s"}
        go.set()


def test_other_legs_are_asked_when_the_question_has_its_vector_and_have_no_more_time_than_ever(store_url: str) -> None:
    order = list[str]()

    class Cold(Hashing):
        def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
            if len(texts) == 1:
                threading.Event().wait(0.3)
                order.append("vector")
            return super().embed(texts)

    class Sleeper:
        name = "asleep"

        def search(self, question: Question, scope: Scope, recipe: semmem.Recipe) -> Ranking:
            order.append("asleep")
            assert question.vector is not None
            mem.store.run(lambda c: c.execute("SELECT pg_sleep(60)"))
            return Ranking()

    with semmem.connect(store_url, embedder=Cold()) as mem:
        mem.remember_many({"text": text} for text in ("ferry at dawn", "ferry at dusk"))
        legs(mem)["asleep"] = Sleeper()
        more = {"weights": {"dense": 1, "asleep": 1}, "rank_constants": {"dense": 60, "asleep": 60}}
        found = mem.recall("ferry", recipe=semmem.recipe("dense", **more, timeouts={"asleep": 0.05}))
        assert order == ["vector", "asleep"]
        assert found.degraded == {"asleep": "no answer within 0.05 s"}


def test_what_needs_no_vector_is_done_while_the_model_runs(store_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    done = {name: threading.Event() for name in ("lexical", "graph")}
    order = list[str]()

    class Waiting(Hashing):
        """Embeds a question when the words are found and the names are looked up, which without it needs no vector."""

        def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
            if len(texts) == 1:
                order.extend(name for name, event in done.items() if event.wait(20))
                order.append("vector")
            return super().embed(texts)

    with semmem.connect(store_url, embedder=Waiting()) as mem:
        mem.remember_many({"text": text} for text in ("ferry at dawn", "ferry at dusk"))
        mem.recall("ferry", vector=Hashing().embed(["ferry"])[0])
        search, prepare = legs(mem)["lexical"].search, legs(mem)["graph"].prepare

        def first(name: str, work: Any, *asked: Any) -> Any:
            done[name].set()
            return work(*asked)

        monkeypatch.setattr(legs(mem)["lexical"], "search", partial(first, "lexical", search))
        monkeypatch.setattr(legs(mem)["graph"], "prepare", partial(first, "graph", prepare))
        found = mem.recall("ferry", recipe=semmem.recipe("default", timeouts={"dense": 60}))
        assert not found.degraded
        assert order == ["lexical", "graph", "vector"]
        assert all(hit.legs.keys() >= {"lexical", "dense"} for hit in found)


def test_a_model_that_fails_beside_the_other_legs_degrades_those_alone_that_read_the_vector(store_url: str) -> None:
    class Broken(Hashing):
        def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
            if len(texts) == 1:
                raise RuntimeError("the model is broken")
            return super().embed(texts)

    with semmem.connect(store_url, embedder=Broken()) as mem:
        mem.remember_many({"text": text} for text in ("ferry at dawn", "ferry at dusk"))
        found = mem.recall("ferry")
        assert found.degraded == {
            "dense": "The embedder hashing could not embed the question: RuntimeError: the model is broken"
        }
        assert len(found) == 2
        assert set(found.timings) == {"lexical", "dense", "graph", "total"}


def test_waiting_for_a_connection_or_a_thread_is_not_on_the_time_of_a_leg(store_url: str, leg_time: LegTime) -> None:
    with semmem.connect(store_url, embedder="hashing", pool_size=2) as mem:
        mem.remember("ferry", id="match")
        mem.recall("ferry")
        snapshot = mem.store.snapshot(("default",), semmem.Filters(), (), ())
        question = Question("ferry", vector=mem._here.recaller._vectors.embedded("ferry"))
        degraded: dict[str, str] = {}
        timings: dict[str, float] = {}
        order = semmem.recipe("hybrid", timeouts={"dense": 0.05, "lexical": 0.05})
        work = {leg: partial(legs(mem)[leg].search, question, snapshot, order) for leg in ("lexical", "dense")}
        over, begun = threading.Event(), threading.Barrier(17)
        threads = mem._here.recaller._asking._threads
        busy = [threads.submit("other", lambda: (begun.wait(60), over.wait(60))) for _ in range(16)]
        begun.wait(60)

        def later() -> None:
            until(lambda: len(threads._waiting) == 2)
            leg_time.pass_by(1.0)
            over.set()

        threading.Thread(target=later).start()
        found = mem._here.recaller._asking.ask(work, order, degraded, timings)
        assert over.is_set()  # it was not given up while every thread was busy
        assert all(one.result(30)[1] for one in busy)
        assert (degraded, set(found)) == ({}, {"lexical", "dense"})

        def ask() -> None:
            found.update(mem._here.recaller._asking.ask(work, order, degraded, {}))

        found.clear()
        asked = threading.Thread(target=ask)
        with mem.store.lasting(), mem.store.lasting():  # every connection of the pool
            asked.start()
            until(lambda: mem.store.pool_use.waiting == 2)
            leg_time.pass_by(1.0)
            assert asked.is_alive()
        asked.join(30)
        assert (degraded, set(found)) == ({}, {"lexical", "dense"})


def test_the_look_up_of_a_graph_leg_that_is_late_is_over_with_it(mem: semmem.Semmem) -> None:
    mem.remember("ferry", id="match")
    graph = legs(mem)["graph"]
    began, ended = threading.Event(), list[BaseException]()

    class Late(Leg):
        name = "graph"
        follows = True

        def prepare(self, *asked: Any) -> Any:
            try:
                began.set()
                mem.store.run(lambda c: c.execute("SELECT pg_sleep(30)"))
                mem.store.run(lambda c: c.execute("SELECT pg_sleep(30)"))
            except BaseException as error:
                ended.append(error)
                over.set()
                raise

        def search(self, question: Question, snapshot: Snapshot, recipe: semmem.Recipe) -> Ranking:
            raise AssertionError("what it looks up has not come")

    over = threading.Event()
    legs(mem)["graph"] = Late()
    found = mem.recall("ferry", recipe=semmem.recipe("default", timeouts={"graph": 0.3}))
    assert found.degraded["graph"].startswith("no answer within")
    assert over.wait(60)
    assert len(ended) == 1
    assert graph.name == "graph"


def test_the_store_cancels_a_statement_that_outlives_the_limit(mem: semmem.Semmem) -> None:
    class Sleeper:
        name = "dense"

        def search(self, question: Question, scope: Scope, recipe: semmem.Recipe) -> Ranking:
            mem.store.run(lambda c: c.execute("SELECT pg_sleep(30)"))
            return Ranking()

    mem.remember("ferry", id="match")
    legs(mem)["dense"] = Sleeper()
    for _ in range(10):  # more than the pool has connections: none may stay busy
        found = mem.recall("ferry", recipe=semmem.recipe("hybrid", timeouts={"dense": 0.05}))
        assert "dense" in found.degraded
        assert ids(found) == ["match"]
