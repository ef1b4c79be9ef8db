"""The models that a process holds: which one makes room, who waits for a load, and when one is loaded again."""

from __future__ import annotations

import linecache
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from semmem.stores.resident import memory
from semmem.stores.resident.memory import Models
from semmem.stores.resident.model import State
from tests.waiting import until

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


class Large:
    """A model of 5,000 memories, whose reading eleven recalls from memory pay for; two take more than 100 bytes."""

    size, state = 60, STATE._replace(memories=5_000)
    is_mapped, behind = False, 0

    def __init__(self, namespace: str) -> None:
        self.namespace = namespace


def recall(models: Models, name: str, state: State = Large.state) -> None:
    models.note((name,), models.current({name: state}))


def test_namespaces_that_make_room_for_each_other_are_loaded_ever_more_rarely(monkeypatch: pytest.MonkeyPatch) -> None:
    """Recalls before each load: 2, 4, 8, 16 and so on; 2 again for one that served eleven before it made room."""
    loads: list[str] = []
    monkeypatch.setattr(memory, "_LARGE", 10_000)

    def load(namespace: str, most: int, spare: int) -> Any:
        loads.append(f"{namespace} {turn}")
        return Large(namespace)

    models = Models(100, load, lambda model, most: None)
    for turn in range(1, 101):  # noqa: B007  # load reads it
        for name in ("a", "b"):
            recall(models, name)
    assert loads == ["a 2", "b 2", "a 6", "b 9", "a 17", "b 24", "a 40", "b 41", "a 73", "b 74"]


@pytest.mark.parametrize(("served", "wait"), [(10, 4), (11, 2)])
def test_a_namespace_whose_recalls_paid_for_its_loading_is_loaded_again_at_the_second_recall(
    served: int, wait: int
) -> None:
    models = Models(100, lambda namespace, most, spare: Large(namespace), lambda model, most: None)  # type: ignore[arg-type, return-value]
    for name, times in (("a", 1 + served), ("b", 2)):  # the first of each finds nothing in memory
        for _ in range(times):
            recall(models, name)
    assert list(models.sizes) == ["b"]
    assert models._demands["a"].wait == wait


def test_a_recall_that_follows_the_writes_of_others_is_served_by_the_model() -> None:
    class Later(Large):
        def __init__(self, state: State) -> None:
            self.namespace, self.state = "a", state

    states = [Large.state._replace(sequence=n, changes=n) for n in range(10, 22)]
    models = Models(100, lambda namespace, most, spare: Later(states[1]), lambda model, most: Later(state))  # type: ignore[arg-type, return-value]
    for state in states:
        recall(models, "a", state)
    for _ in range(2):
        recall(models, "b")
    assert models._demands["a"].wait == 2


def test_a_mapped_namespace_is_mapped_again_at_once_however_few_recalls_it_served() -> None:
    def load(namespace: str, most: int, spare: int) -> Any:
        raise AssertionError("it is saved")

    models = Models(100, load, lambda model, most: None, lambda namespace, most: Large(namespace))  # type: ignore[arg-type, return-value]
    for _ in range(5):
        for name in ("a", "b"):
            assert list(models.current({name: Large.state})) == [name]
            assert list(models.sizes) == [name]


def test_what_another_process_saves_of_a_namespace_too_large_for_memory_is_found_within_32_recalls() -> None:
    looks: list[int] = []
    recalls, is_saved = 0, False

    def mapped(namespace: str, most: int) -> Any:
        looks.append(recalls)
        return Large(namespace) if is_saved else None

    models = Models(100, lambda namespace, most, spare: None, lambda model, most: None, mapped)
    for recalls in range(1, 99):
        assert models.current({"a": Large.state}) == {}
        is_saved = recalls >= 70
    assert looks == [1, 2, 3, 35, 67]  # the second loads in vain, and recalls are counted anew
    recalls = 99
    assert list(models.current({"a": Large.state})) == ["a"]


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


def test_one_large_namespace_is_loaded_at_a_time_and_a_small_one_beside_it() -> None:
    begun, go = threading.Event(), threading.Event()
    large, small = STATE._replace(memories=50_000), STATE._replace(memories=500)

    class Sized:
        size = 1

        def __init__(self, namespace: str) -> None:
            self.namespace, self.state = namespace, small if namespace == "small" else large

    def load(namespace: str, most: int, spare: int) -> Any:
        loads.append(namespace)
        begun.set()
        assert namespace == "small" or go.wait(30)
        return Sized(namespace)

    loads: list[str] = []
    models = Models(100, load, lambda model, most: None)
    for _ in range(2):
        models.current({"one": large})
    assert begun.wait(30)
    for _ in range(9):
        assert models.current({"other": large, "501": STATE._replace(memories=501)}) == {}
    models.current({"small": small})
    assert list(models.current({"small": small})) == ["small"]
    assert loads == ["one", "small"]
    go.set()
    for _ in range(3000):
        if models.current({"other": large}):
            break
        threading.Event().wait(0.01)
    assert loads == ["one", "small", "other"]


@pytest.mark.parametrize("loaded", [True, False])
def test_the_heap_is_given_back_after_a_load_that_no_recall_waits_for(
    monkeypatch: pytest.MonkeyPatch, loaded: bool
) -> None:
    class Sized:
        size, state = 1, STATE

        def __init__(self, namespace: str) -> None:
            self.namespace = namespace

    given: list[str] = []
    monkeypatch.setattr(memory.heap, "give_back", lambda: given.append(threading.current_thread().name))
    load: Any = lambda namespace, most, spare: Sized(namespace) if loaded else None  # noqa: E731
    models = Models(100, load, lambda model, most: None)
    for name, count in (("waited for", 10_000), ("not waited for", 10_001)):
        for _ in range(2):
            models.current({name: STATE._replace(memories=count)})
    for thread in threading.enumerate():
        if thread.name == "semmem-resident":
            thread.join(30)
    assert given == ["semmem-resident"]


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
    for thread in threading.enumerate():  # the one that failed reports its error at its end, in this test
        if thread.name == "semmem-resident":
            thread.join(30)
    assert loads == ["n", "n"]


def test_a_mapped_model_that_grows_is_saved_anew_once_in_a_thousand_changes_and_no_recall_waits() -> None:
    class Mapped(Large):
        is_mapped = True

        def __init__(self, state: State, behind: int) -> None:
            super().__init__("a")
            self.state, self.behind = state, behind

    def at(changes: int) -> State:
        return Large.state._replace(sequence=changes, changes=changes)

    asked, saves, go_on = 0, [], threading.Event()
    models = Models(
        100,
        lambda namespace, most, spare: None,
        lambda model, most: Mapped(at(asked), asked),  # type: ignore[arg-type, return-value]
        lambda namespace, most: Mapped(at(asked), 0),  # type: ignore[arg-type, return-value]
        lambda namespace: (saves.append(asked), go_on.wait(30)),  # type: ignore[arg-type, return-value]
    )
    for asked, begun in ((0, 0), (1_000, 0), (1_001, 1), (1_500, 1), (2_000, 1)):
        assert "a" in models.current({"a": at(asked)})
        until(lambda begun=begun: len(saves) == begun)  # type: ignore[misc]
    go_on.set()
    join()
    for asked, begun in ((2_000, 1), (2_001, 2), (2_500, 2)):
        assert "a" in models.current({"a": at(asked)})
        until(lambda begun=begun: len(saves) == begun)  # type: ignore[misc]
    join()
    assert saves == [1_001, 2_001]
    assert models._models["a"].behind == 2_500
    models.remap("a")
    assert models._models["a"].behind == 0


def test_a_mapped_model_that_grows_by_batches_is_saved_anew_after_a_thousand_memories_each_time() -> None:
    """A batch is one change."""

    class Mapped(Large):
        is_mapped = True

        def __init__(self, batches: int, behind: int) -> None:
            super().__init__("a")
            self.state, self.behind = at(batches), behind

    def at(batches: int) -> State:
        return Large.state._replace(sequence=batches, changes=batches)

    now, file, saves = 0, 0, []

    def renew(namespace: str) -> None:
        nonlocal file
        saves.append(now)
        file = now
        models.remap(namespace)

    models = Models(
        100,
        lambda namespace, most, spare: None,
        lambda model, most: Mapped(now, 400 * (now - file)),  # type: ignore[arg-type, return-value]
        lambda namespace, most: Mapped(now, 400 * (now - file)),  # type: ignore[arg-type, return-value]
        renew,
    )
    for now in range(8):
        assert "a" in models.current({"a": at(now)})
        for thread in threading.enumerate():
            if thread.name == "semmem-resident":
                thread.join(30)
    assert saves == [3, 6]


class Behind(Large):
    """A mapped model, by how many memories it is behind its file."""

    is_mapped = True

    def is_built_on(self, other: Any) -> bool:
        return False

    def __init__(self, namespace: str, behind: int) -> None:
        super().__init__(namespace)
        self.state, self.behind = Large.state._replace(sequence=behind, changes=behind), behind


def renewed(steps: list[tuple[str, int]], kind: type[Behind] = Behind) -> list[tuple[str, int]]:
    """Return what was saved anew, each asked for before the former is done; below 0 a namespace is dropped."""
    saves, go_on = [], threading.Event()

    def renew(namespace: str) -> None:
        saves.append((namespace, behind))
        assert go_on.wait(60)

    def done() -> None:
        go_on.set()
        join()
        go_on.clear()

    models = Models(
        1_000,
        lambda namespace, most, spare: None,
        lambda model, most: kind(model.namespace, behind),  # type: ignore[arg-type, return-value]
        lambda namespace, most: kind(namespace, behind),  # type: ignore[arg-type, return-value]
        renew,
    )
    ended = 0
    for namespace, behind in steps:
        if behind < 0:
            done()
            ended = len(saves)
        models.current({namespace: None if behind < 0 else kind(namespace, behind).state})
        until(lambda ended=ended: not models._is_busy or len(saves) > ended)  # type: ignore[misc]
    done()
    return saves


def join() -> None:
    for thread in threading.enumerate():
        if thread.name == "semmem-resident":
            thread.join(30)


def test_one_namespace_is_saved_anew_at_a_time() -> None:
    assert renewed([("a", 0), ("b", 0), ("a", 1_001), ("b", 1_001)]) == [("a", 1_001)]
    assert renewed([("a", 0), ("b", 0), ("a", 1_001), ("c", -1), ("b", 1_002)]) == [("a", 1_001), ("b", 1_002)]


def test_a_namespace_that_is_mapped_again_is_saved_anew_a_thousand_memories_after_that_file() -> None:
    assert renewed([("a", 0), ("a", 1_900), ("a", -1), ("a", 0), ("a", 1_001)]) == [("a", 1_900), ("a", 1_001)]


class InMemory(Behind):
    """A model in memory, whose blocks are joined as soon as ``go_on`` is set."""

    is_mapped = False
    go_on = threading.Event()

    def joined(self, most: int) -> InMemory | None:
        assert self.go_on.wait(60)
        return InMemory(self.namespace, 0) if most >= self.size else None

    def is_built_on(self, other: Any) -> bool:
        return isinstance(other, InMemory)


@pytest.mark.parametrize(("budget", "behind"), [(1_000, 0), (60, 0), (59, 1_002)])
def test_a_large_namespace_in_memory_is_joined_beside_the_recalls_and_not_saved(budget: int, behind: int) -> None:
    InMemory.go_on.clear()
    now, saves = 0, list[str]()
    models = Models(
        budget,
        lambda namespace, most, spare: None,
        lambda model, most: InMemory("a", now),  # type: ignore[arg-type, return-value]
        lambda namespace, most: InMemory("a", now),  # type: ignore[arg-type, return-value]
        saves.append,
    )
    for now in (0, 1_001, 1_002):  # no recall waits for the joining
        (model,) = models.current({"a": InMemory("a", now).state}).values()
        assert model.behind == now
    InMemory.go_on.set()
    join()
    assert [models._models["a"].behind, models._demands["a"].renewed, saves] == [behind, behind and 1_001, []]


def test_a_model_that_is_loaded_anew_is_joined_a_thousand_memories_later_whatever_failed_before() -> None:
    models = Models(1_000, lambda namespace, most, spare: InMemory("a", 0), lambda model, most: None)  # type: ignore[arg-type, return-value]
    models._demands["a"] = demand = memory._Demand(times=1, renewed=4_100)
    assert list(models.current({"a": STATE})) == ["a"]
    assert demand.renewed == 0


@pytest.mark.parametrize("joined", [MemoryError(), ValueError(), None, 1_001])
def test_a_model_stays_where_what_is_joined_cannot_be_made_or_is_too_large(joined: Any) -> None:
    class Failing(InMemory):
        def joined(self, most: int) -> Any:
            if isinstance(joined, Exception):
                raise joined
            if joined is not None:
                self.size = joined
                return self
            return None

    models = Models(1_000, lambda namespace, most, spare: None, lambda model, most: None)
    models._models["a"] = InMemory("a", 1_001)  # type: ignore[assignment]
    models._join(Failing("a", 1_001))  # type: ignore[arg-type]
    assert models._models["a"].behind == 1_001


def test_what_is_joined_takes_no_place_of_a_model_that_was_loaded_since() -> None:
    InMemory.go_on.set()
    models = Models(1_000, lambda namespace, most, spare: None, lambda model, most: None)
    models._models["a"] = Behind("a", 7)  # type: ignore[assignment]
    models._join(InMemory("a", 1_001))  # type: ignore[arg-type]
    models._join(InMemory("gone", 1_001))  # type: ignore[arg-type]
    assert {name: model.behind for name, model in models._models.items()} == {"a": 7}


@pytest.mark.parametrize("second", range(1, 12))
def test_a_recall_that_is_interrupted_at_any_line_keeps_no_lock_however_often(
    monkeypatch: pytest.MonkeyPatch, second: int
) -> None:
    """Ctrl-C may end a recall at each line but at the end of a ``with``; later ones would wait for a lock it kept."""
    now = STATE

    class Small(Large):
        def __init__(self) -> None:
            self.namespace, self.state = "a", now

    def ends_at(line: int) -> bool:
        """Return whether a recall was interrupted at the line with this number of those it runs to be alone."""
        seen = 0

        def trace(frame: Any, event: str, _: Any) -> Any:
            nonlocal seen
            if frame.f_code.co_filename != memory.__file__:
                return None
            text = linecache.getline(memory.__file__, frame.f_lineno).strip()
            if event == "line" and frame.f_code.co_name == "_alone" and not text.startswith("with "):
                seen += 1
                if seen == line:
                    raise KeyboardInterrupt
            return trace

        former = sys.gettrace()
        sys.settrace(trace)
        try:
            models.current({"a": now})
        except KeyboardInterrupt:
            return True
        finally:
            sys.settrace(former)
        return False

    monkeypatch.setattr(memory, "_FOLLOWED_S", 0)
    interrupted, first = True, 0
    while interrupted:
        first += 1
        models = Models(100, lambda namespace, most, spare: Small(), lambda model, most: Small())  # type: ignore[arg-type, return-value]
        for _ in range(2):
            models.current({"a": now})
        for line in (first, second):
            now = now._replace(sequence=now.sequence + 1, changes=now.changes + 1)
            ended = ends_at(line)
            interrupted = ended if line == first else interrupted
        now = now._replace(sequence=now.sequence + 1, changes=now.changes + 1)
        assert "a" in models.current({"a": now})
    assert first > 5


def test_a_store_that_is_closed_during_a_recall_saves_and_keeps_nothing() -> None:
    saves: list[str] = []

    def follow(model: object, most: int) -> Any:
        models.clear()
        return Behind("a", 1_001)

    models = Models(
        100,
        lambda namespace, most, spare: None,
        follow,
        lambda namespace, most: Behind(namespace, 0),  # type: ignore[arg-type, return-value]
        saves.append,
    )
    for behind in (0, 1_001):
        assert "a" in models.current({"a": Behind("a", behind).state})
    join()
    assert (saves, models.sizes) == ([], {})


def test_a_store_that_is_closed_while_a_namespace_is_loaded_keeps_nothing() -> None:
    def load(namespace: str, most: int, spare: int) -> Any:
        models.clear()
        return Large(namespace)

    models = Models(1_000, load, lambda model, most: None)
    for _ in range(2):
        recall(models, "a")
    assert models.sizes == {}


def test_a_new_file_is_mapped_in_the_place_of_a_mapped_model_alone() -> None:
    def mapped(namespace: str, most: int) -> Any:
        if closes:
            models.clear()
        return Behind(namespace, 0)

    closes = False
    models = Models(1_000, lambda namespace, most, spare: Large(namespace), lambda model, most: None, mapped)  # type: ignore[arg-type, return-value]
    models.remap("none")
    models._keep(Large("read"))  # type: ignore[arg-type]
    models._keep(Behind("mapped", 9))  # type: ignore[arg-type]
    for namespace in ("read", "mapped"):
        models.remap(namespace)
    assert {name: (model.is_mapped, model.behind) for name, model in models._models.items()} == {
        "read": (False, 0),
        "mapped": (True, 0),
    }
    closes = True
    models.remap("mapped")
    assert models.sizes == {}


def test_a_new_file_that_takes_more_than_the_former_one_makes_room() -> None:
    class Larger(Behind):
        size = 60

    class Smaller(Behind):
        size = 30

    def mapped(namespace: str, most: int) -> Any:
        return Larger(namespace, 0)

    models = Models(100, lambda namespace, most, spare: None, lambda model, most: None, mapped)
    models._keep(Large("other"))  # type: ignore[arg-type]
    models._keep(Smaller("mapped", 9))  # type: ignore[arg-type]
    models.remap("mapped")
    assert models.sizes == {"mapped": 60}


def test_a_model_that_was_mapped_anew_meanwhile_stays_in_the_place_of_one_that_follows_from_the_former() -> None:
    class Mapped(Large):
        is_mapped = True

    anew = Mapped("a")

    def follow(model: object, most: int) -> Any:
        models._models["a"] = anew  # type: ignore[assignment]
        later = Large("a")
        later.state = now
        return later

    models = Models(100, lambda namespace, most, spare: None, follow, lambda namespace, most: Mapped(namespace))  # type: ignore[arg-type, return-value]
    now = Large.state._replace(sequence=Large.state.sequence + 1, changes=Large.state.changes + 1)
    models.current({"a": Large.state})
    assert models.current({"a": now})["a"] is not anew
    assert models._models["a"] is anew


@pytest.mark.parametrize(("patience", "is_served"), [(30, True), (0.05, False)])
def test_a_recall_waits_a_while_for_another_one_that_brings_the_model_up_to_date(
    monkeypatch: pytest.MonkeyPatch, patience: float, is_served: bool
) -> None:
    monkeypatch.setattr(memory, "_FOLLOWED_S", patience)
    now = STATE._replace(sequence=STATE.sequence + 1, changes=STATE.changes + 1)
    before, after = Large("a"), Large("a")
    before.state, after.state = STATE, now
    followed, go_on = [], threading.Event()

    def follow(model: object, most: int) -> Any:
        followed.append(model)
        assert go_on.wait(30)
        return after

    models = Models(100, lambda namespace, most, spare: before, follow)  # type: ignore[arg-type, return-value]
    for _ in range(2):
        models.current({"a": STATE})
    with ThreadPoolExecutor(2) as threads:
        first = threads.submit(models.current, {"a": now})
        while not followed:
            threading.Event().wait(0.001)
        second = threads.submit(models.current, {"a": now})
        if is_served:
            threading.Event().wait(0.05)
            assert not second.done()
            go_on.set()
        assert second.result(30) == ({"a": after} if is_served else {})
        go_on.set()
        assert first.result(30) == {"a": after}
    assert followed == [before]


def test_a_recall_goes_on_where_no_thread_can_be_started(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread at interpreter shutdown")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    models = Models(100, lambda namespace, most, spare: None, lambda model, most: None)
    for _ in range(5):
        assert models.current({"n": STATE._replace(memories=50_000)}) == {}
    assert not models._is_busy


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
    for name, times in (("one", 2), ("two", 2), ("three", 2), ("four", 2), ("one", 4)):  # which served none
        for _ in range(times):
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
    assert later(1, 1, 0, memories=STATE.memories + 5_000).follows(STATE)  # a batch, by one change
    assert not later(1, 1, 0, memories=STATE.memories + 5_001).follows(STATE)  # which take longer than all anew
    assert not later(5_001, 5_001, 0).follows(STATE)
