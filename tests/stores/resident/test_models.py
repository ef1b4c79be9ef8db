"""The models that a process holds: which one makes room, who waits for a load, and when one is loaded again."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from semmem.stores.resident.memory import Models
from semmem.stores.resident.model import State

STATE = State(3, 2, 1, 10, 100, False, 1.0, 1.0, None, "1")


def test_the_namespace_asked_longest_ago_makes_room() -> None:
    class Sized:
        def __init__(self, namespace: str) -> None:
            self.namespace, self.size, self.state = namespace, 40, STATE

    models = Models(100, lambda namespace, most, spare: Sized(namespace), lambda model, most: None)  # type: ignore[arg-type, return-value]
    for name in ("one", "two", "three"):
        assert models.current({name: STATE}) == {}
        assert list(models.current({name: STATE})) == [name]
    assert list(models.sizes) == ["two", "three"]
    models.current({"two": STATE})
    assert list(models.sizes.items()) == [("three", 40), ("two", 40)]
    assert models.size == 80


def test_nobody_waits_for_a_large_namespace() -> None:
    begun, go = threading.Event(), threading.Event()

    class Sized:
        namespace, size, state = "n", 1, STATE._replace(memories=50_000)

    def load(namespace: str, most: int, spare: int) -> Any:
        begun.set()
        assert go.wait(30)
        return Sized()

    models = Models(100, load, lambda model, most: None)
    for _ in range(5):
        assert models.current({"n": Sized.state}) == {}
    assert begun.wait(30)
    go.set()
    for _ in range(3000):
        if models.current({"n": Sized.state}):
            break
        threading.Event().wait(0.01)
    assert list(models.current({"n": Sized.state})) == ["n"]
    models.clear()
    assert models.sizes == {}


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_namespace_whose_loading_failed_in_an_unknown_way_is_loaded_again() -> None:
    class Sized:
        namespace, size, state = "n", 1, STATE._replace(memories=50_000)

    loads: list[str] = []

    def load(namespace: str, most: int, spare: int) -> Any:
        loads.append(namespace)
        if len(loads) == 1:
            raise LookupError("nobody thought of this")
        return Sized()

    models = Models(100, load, lambda model, most: None)
    for _ in range(3000):
        if models.current({"n": Sized.state}):
            break
        threading.Event().wait(0.01)
    assert loads == ["n", "n"]


def test_a_recall_goes_on_where_no_thread_can_be_started(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread at interpreter shutdown")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    models = Models(100, lambda namespace, most, spare: None, lambda model, most: None)
    for _ in range(5):
        assert models.current({"n": STATE._replace(memories=50_000)}) == {}
    assert not models._loading


def test_a_namespace_whose_model_was_dropped_is_loaded_again_while_recalls_go_on() -> None:
    here, loaders = threading.get_ident(), []
    before, after = STATE._replace(memories=5_000), STATE._replace(memories=5_000, sequence=STATE.sequence + 9)

    class Sized:
        namespace, size = "n", 1

        def __init__(self, state: State) -> None:
            self.state = state

    def load(namespace: str, most: int, spare: int) -> Any:
        loaders.append(threading.get_ident())
        return Sized(before if len(loaders) == 1 else after)

    models = Models(100, load, lambda model, most: None)
    assert models.current({"n": before}) == {}
    assert list(models.current({"n": before})) == ["n"]
    assert models.current({"n": after}) == {}
    for _ in range(3000):
        if models.current({"n": after}):
            break
        threading.Event().wait(0.01)
    assert list(models.current({"n": after})) == ["n"]
    assert [loader == here for loader in loaders] == [True, False]


def test_a_model_that_serves_little_is_not_soon_made_again() -> None:
    made: list[str] = []

    class Sized:
        namespace, size, state = "n", 1, STATE

    def load(namespace: str, most: int, spare: int) -> Any:
        made.append(namespace)
        return Sized()

    models = Models(100, load, lambda model, most: None)
    for sequence in range(9, 60):
        models.current({"n": STATE._replace(sequence=STATE.sequence if sequence % 2 else sequence)})
    assert 2 <= len(made) <= 6


def test_a_load_learns_how_much_the_other_namespaces_leave() -> None:
    spares: list[int] = []

    class Sized:
        def __init__(self, namespace: str) -> None:
            self.namespace, self.size, self.state = namespace, 30, STATE

    def load(namespace: str, most: int, spare: int) -> Any:
        assert most == 100
        spares.append(spare)
        return Sized(namespace)

    models = Models(100, load, lambda model, most: None)
    for name in ("one", "two", "three", "four", "one"):
        for _ in range(2):
            models.current({name: STATE})
    assert spares == [100, 70, 40, 10, 10]


def test_a_state_is_followed_over_changes_and_segments_and_no_other_advance() -> None:
    def later(sequence: int, changes: int, segments: int, **fields: Any) -> State:
        return STATE._replace(
            sequence=STATE.sequence + sequence,
            changes=STATE.changes + changes,
            segments=STATE.segments + segments,
            **fields,
        )

    assert later(5, 3, 2).follows(STATE)  # three changes, a segment and a merge
    assert not later(5, 3, 1).follows(STATE)  # and memories that were extracted anew
    assert not STATE.follows(STATE)
    assert not later(5, 3, 2, server=2.0).follows(STATE)
