"""The threads that legs answer on: a leg that never comes back holds up neither the others nor the exit."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import semmem
from semmem.embedders.hashing import Hashing
from semmem.legs.adapter import Plugged
from semmem.legs.dense import Dense
from semmem.legs.graph import Graph
from semmem.legs.lexical import Lexical
from semmem.model.errors import LegFailed, StoreClosed
from semmem.model.search import Result
from semmem.read import recall as recall_module
from semmem.read.rankings import Threads
from tests.waiting import until

ASLEEP = semmem.recipe(
    "lexical", weights={"asleep": 1}, rank_constants={"asleep": 60}, timeouts={"asleep": 0.05, "lexical": 30}
)
NOT_ASKED = "4 earlier questions to asleep still run, past their time; until one ends it is not asked again."


class Asleep:
    """A leg that does not return before it is let go."""

    name = "asleep"

    def __init__(self) -> None:
        self.go = threading.Event()

    def search(self, query: str, *, limit: int, offset: int = 0, filters: Any = None) -> list[Result]:
        self.go.wait(60)
        return []


def test_a_leg_that_never_returns_is_soon_not_asked_again_and_the_others_answer(tmp_path: Path) -> None:
    leg = Asleep()
    with semmem.connect(f"sqlite:{tmp_path}/a.db", embedder="none") as mem:
        mem.remember("ferry at dawn", id="match")
        mem.register_leg("asleep", lambda reader: leg)
        try:
            why = []
            for _ in range(20):
                found = mem.recall("ferry", recipe=ASLEEP)
                assert [hit.memory.id for hit in found] == ["match"]
                why.append(found.degraded["asleep"])
        finally:
            leg.go.set()
    assert why == ["no answer within 0.05 s"] * 4 + [NOT_ASKED] * 16


def test_a_process_ends_although_a_leg_does_not_return(tmp_path: Path) -> None:
    program = """if True:
        import sys, time, semmem
        class Asleep:
            name = "asleep"
            def search(self, query, *, limit, offset=0, filters=None):
                time.sleep(3600)
        with semmem.connect(sys.argv[1]) as mem:
            mem.remember("ferry at dawn")
            mem.register_leg("asleep", lambda reader: Asleep())
            plan = semmem.recipe("lexical", weights={"asleep": 1}, rank_constants={"asleep": 60},
                                 timeouts={"asleep": 0.1})
            print(len(mem.recall("ferry", recipe=plan)))
    """
    ran = subprocess.run(
        [sys.executable, "-c", program, f"sqlite:{tmp_path}/a.db"], capture_output=True, text=True, timeout=120
    )
    assert (ran.returncode, ran.stdout) == (0, "1\n"), ran.stderr


def test_a_cancelling_that_fails_leaves_the_leg_degraded_and_the_other_ones_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    leg = Asleep()

    def refused() -> None:
        raise OSError("the server does not take it")

    @contextmanager
    def held() -> Iterator[Any]:
        yield refused

    with semmem.connect(f"sqlite:{tmp_path}/a.db", embedder="none") as mem:
        mem.remember("ferry at dawn", id="match")
        mem.register_leg("asleep", lambda reader: leg)
        monkeypatch.setattr(mem.store, "session", held)
        try:
            found = mem.recall("ferry", recipe=ASLEEP)
        finally:
            leg.go.set()
    assert [hit.memory.id for hit in found] == ["match"]
    assert found.degraded == {
        "asleep": "no answer within 0.05 s, and what it asks of the store goes on: OSError: the server does not take it"
    }


def test_another_thread_takes_the_place_of_one_whose_task_is_overdue() -> None:
    threads, go = Threads(most=1), threading.Event()
    try:
        stuck = threads.submit("stuck", lambda: go.wait(60))
        waiting = threads.submit("other", lambda: "answer")
        threads.give_up(stuck)
        assert waiting.result(30) == "answer"
    finally:
        go.set()
        threads.close()


def test_a_leg_is_asked_again_when_one_of_its_overdue_tasks_has_ended() -> None:
    threads, gos = Threads(most=2), [threading.Event() for _ in range(4)]
    try:
        stuck = [threads.submit("stuck", lambda go=go: go.wait(60)) for go in gos]  # type: ignore[misc]
        for task in stuck:
            while not task.running():
                threading.Event().wait(0.01)
            threads.give_up(task)
        with pytest.raises(LegFailed, match="4 earlier questions to stuck still run"):
            threads.submit("stuck", lambda: True)
        gos[0].set()
        assert stuck[0].result(30)
        for _ in range(3000):
            try:
                assert threads.submit("stuck", lambda: 7).result(30) == 7
                break
            except LegFailed:  # its thread has not counted it off yet
                threading.Event().wait(0.01)
        else:
            pytest.fail("the leg is never asked again")
    finally:
        for go in gos:
            go.set()
        threads.close()


def test_what_is_given_up_before_it_began_never_begins_and_after_the_close_nothing_does() -> None:
    threads, go, done = Threads(most=1), threading.Event(), list[int]()
    stuck = threads.submit("stuck", lambda: go.wait(60))
    while not stuck.running():
        threading.Event().wait(0.01)
    late = threads.submit("late", lambda: done.append(1))
    threads.give_up(late)
    last = threads.submit("last", lambda: done.append(2))
    threads.close()
    go.set()
    assert stuck.result(30)
    assert (late.cancelled(), last.cancelled(), done) == (True, True, [])
    with pytest.raises(StoreClosed):
        threads.submit("more", lambda: 1)


def test_legs_that_only_compute_are_asked_in_the_thread_of_the_recall_once_all_is_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: dict[str, set[str]] = {}

    def noting(leg: type[Any], name: str) -> Any:
        search = leg.search

        def noted(self: Any, *arguments: Any) -> Any:
            threads.setdefault(name, set()).add(threading.current_thread().name)
            return search(self, *arguments)

        return noted

    for leg, name in ((Lexical, "lexical"), (Dense, "dense"), (Graph, "graph"), (Plugged, "ready")):
        monkeypatch.setattr(leg, "search", noting(leg, name))
    own = semmem.recipe("default", weights={"ready": 1}, rank_constants={"ready": 60})
    related = semmem.recipe("default", graph={"related": 1.0})  # relationships are read from the store
    here, elsewhere = {threading.current_thread().name}, {"semmem-leg"}
    asleep = Asleep()
    asleep.go.set()

    with semmem.connect(f"sqlite:{tmp_path}/a.db", legs={"ready": lambda reader: asleep}) as mem:
        mem.remember("The ferry sails at dawn.", id="match")

        def asked(recipe: semmem.Recipe, as_of: datetime | None = None, query: str = "ferry") -> dict[str, set[str]]:
            threads.clear()
            assert [hit.memory.id for hit in mem.recall(query, recipe=recipe, as_of=as_of)] == ["match"]
            return threads

        asked(own)
        assert asked(own) == {**dict.fromkeys(("lexical", "dense", "graph"), here), "ready": elsewhere}
        assert asked(related) == dict.fromkeys(("lexical", "dense", "graph"), elsewhere)
        phrase = asked(own, query='"ferry sails"')  # is looked for in texts
        assert phrase == dict.fromkeys(("lexical", "dense", "graph", "ready"), elsewhere)
        past = datetime.now(UTC)  # earlier versions are never in memory
        assert asked(own, past) == dict.fromkeys(("lexical", "dense", "graph", "ready"), elsewhere)


def test_a_leg_in_the_thread_of_the_recall_that_took_longer_than_its_time_is_degraded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    search, late = Lexical.search, threading.Event()

    def slow(self: Lexical, *arguments: Any) -> Any:
        late.wait(0.1)
        return search(self, *arguments)

    with semmem.connect(f"sqlite:{tmp_path}/a.db") as mem:
        mem.remember("The ferry sails at dawn.", id="match")
        for _ in range(3):
            mem.recall("ferry")
        monkeypatch.setattr(Lexical, "search", slow)
        found = mem.recall("ferry", recipe=semmem.recipe("default", timeouts={"lexical": 0.05}))
    assert [hit.memory.id for hit in found] == ["match"]
    assert found.degraded == {"lexical": "no answer within 0.05 s"}


def test_two_recalls_of_a_process_compute_at_a_time_and_one_that_waits_for_the_model_or_the_store_takes_no_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    search, go, inside = Graph.search, threading.Event(), list[str]()

    def slow(self: Graph, question: Any, *arguments: Any) -> Any:
        if question.query == "ferry":
            inside.append(threading.current_thread().name)
            assert go.wait(60)
        return search(self, question, *arguments)

    class Model(Hashing):
        def embed(self, texts: Sequence[str]) -> Any:
            if list(texts) == ["harbour"]:
                inside.append("model")
                assert go.wait(60)
            return super().embed(texts)

    with semmem.connect(f"sqlite:{tmp_path}/a.db", embedder=Model()) as mem:
        mem.remember("The ferry sails at dawn.", id="match")
        for _ in range(3):
            mem.recall("dawn")
        monkeypatch.setattr(Graph, "search", slow)
        waiting = recall_module._COMPUTING._waiting
        with ThreadPoolExecutor(8) as threads:
            models = [threads.submit(mem.recall, "harbour") for _ in range(2)]
            until(lambda: inside.count("model") == 2)
            recalls = [threads.submit(mem.recall, "ferry") for _ in range(5)]
            until(lambda: (len(waiting), len(inside)) == (3, 4))
            past = threads.submit(mem.recall, "dawn", as_of=datetime.now(UTC))  # asks the store
            assert [hit.memory.id for hit in past.result(60)] == ["match"]
            go.set()
            assert [[hit.memory.id for hit in one.result(60)] for one in recalls] == [["match"]] * 5
            assert [one.result(60).degraded for one in models] == [{}] * 2
    assert len(inside) == 7
