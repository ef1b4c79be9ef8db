"""Namespaces in memory: every answer is that of a Semmem that keeps nothing, whatever others write meanwhile."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import semmem
from eval.path import Counter, installed
from semmem import Semmem
from semmem.model.types import Filters
from semmem.stores.resident.memory import Models
from semmem.stores.resident.model import State

PEOPLE = ("Ada Lovelace", "Grace Hopper", "Mary Somerville", "Sunniva Holt", "Piers Landrake")
THINGS = ("engine", "compiler", "telescope", "lighthouse", "ferry", "ledger", "harbour", "signal")
QUESTIONS = ("Who mended the lighthouse?", "What did Ada Lovelace say of the engine?", "ferry ledger", "Grace Hopper")
STATE = State(3, 2, 1, 10, 100, False, 1.0, 1.0, None, 1)
_spaces = count(1)


class Trio(NamedTuple):
    """Three on one store: one keeps namespaces in memory, one keeps nothing, one writes."""

    kept: Semmem
    plain: Semmem
    writer: Semmem

    @property
    def models(self) -> Models:
        return self.kept._reader.models  # type: ignore[attr-defined, no-any-return]

    def warm(self, namespace: str) -> None:
        """Ask until the namespace is in memory."""
        for _ in range(4):
            if namespace not in self.models.namespaces:
                self.kept.recall("anything", namespace=namespace)
        assert namespace in self.models.namespaces


def opened(stack: ExitStack, url: str, **more: Any) -> Trio:
    budgets = (more.pop("resident_mb", 64), 0, 0)
    of = [semmem.connect(url, embedder="hashing", pool_size=4, resident_mb=mb, **more) for mb in budgets]
    return Trio(*(stack.enter_context(mem) for mem in of))


@pytest.fixture(scope="module")
def trio(module_url: str) -> Iterator[Trio]:
    with ExitStack() as stack:
        yield opened(stack, module_url)


@pytest.fixture
def space() -> str:
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


STEPS = ("few", "few", "update", "forget", "take back", "link", "many", "sensitive", "maintain", "merge", "drop")


# no shrinking: each step is a write and four recalls
@settings(
    max_examples=5, suppress_health_check=list(HealthCheck), deadline=None, phases=[Phase.explicit, Phase.generate]
)
@given(st.lists(st.tuples(st.sampled_from(STEPS), st.integers(0, 200)), min_size=2, max_size=7))
def test_what_is_in_memory_answers_as_the_database_does(trio: Trio, steps: list[tuple[str, int]]) -> None:
    space = f"space{next(_spaces)}"
    change(trio.writer, space, ("many", 0))
    trio.warm(space)
    for at, step in enumerate(steps):
        change(trio.writer, space, step)
        expected = answer(trio.plain, QUESTIONS[at % 4], namespace=space)
        assert answer(trio.kept, QUESTIONS[at % 4], namespace=space) == expected, step  # brought up to date, or dropped
        trio.models._asked.clear()
        for _ in range(2):  # and loaded anew
            trio.kept.recall("anything", namespace=space)
        for _ in range(3):  # the last of them is ranked before the database is asked, and so is the one behind the step
            assert answer(trio.kept, QUESTIONS[at % 4], namespace=space) == expected, step


WORDS = sorted({word for one in (*PEOPLE, *THINGS, *QUESTIONS) for word in one.strip("?").split()})


@pytest.fixture(scope="module")
def unsigned(trio: Trio) -> str:
    """Fill a namespace whose memories have no author, so that no question is about one."""
    trio.writer.remember_many(
        [{**item(n, random.Random(n)), "author": None} for n in range(70)], namespace="unsigned", on_error="skip"
    )
    trio.warm("unsigned")
    return "unsigned"


@settings(max_examples=15, suppress_health_check=list(HealthCheck), deadline=None)
@given(
    st.sampled_from(["convex", "tm2c2", "scored"]),
    st.lists(st.sampled_from(WORDS), min_size=1, max_size=6, unique=True),
)
def test_a_score_made_of_cosines_is_the_same_number_from_memory_and_from_the_database(
    trio: Trio, unsigned: str, fusion: Any, words: list[str]
) -> None:
    recipe = semmem.recipe("default", fusion=fusion)

    def asked(mem: Semmem) -> Any:
        found = mem.recall(" ".join(words), limit=20, namespace=unsigned, recipe=recipe)
        assert not found.degraded
        return found

    told = [
        [(hit.memory.id, hit.part, hit.score, hit.components) for hit in asked(mem)] for mem in (trio.plain, trio.kept)
    ]
    assert told[0] == told[1]
    assert told[0]


def test_a_few_writes_are_read_into_what_is_in_memory(trio: Trio, space: str) -> None:
    change(trio.writer, space, ("many", 0))
    trio.warm(space)
    for number in range(3):
        trio.writer.remember(f"the barometer fell on day {number}", id=f"b{number}", namespace=space)
        found = trio.kept.recall("barometer", namespace=space)
        assert {hit.memory.id for hit in found} >= {f"b{n}" for n in range(number + 1)}
        assert space in trio.models.namespaces
    trio.writer.forget("b1", namespace=space)
    trio.writer.update("b2", text="the thermometer rose", namespace=space)
    lexical = trio.kept.recall("barometer", namespace=space, recipe="lexical")
    assert [hit.memory.id for hit in lexical] == ["b0"]
    assert space in trio.models.namespaces


def test_filters_exclusions_phrases_and_several_namespaces_are_answered_alike(trio: Trio, space: str) -> None:
    other = f"{space}-other"
    for name in (space, other):
        change(trio.writer, name, ("many", 0))
        trio.warm(name)
    hows: list[dict[str, Any]] = [
        {"namespace": space, "filters": {"tags": ["few"]}},
        {"namespace": space, "filters": Filters(authors=("Mia",), sessions=("s1",))},
        {"namespace": space, "exclude": ["m1", "m2", "m16"]},
        {"namespace": [space, other]},
        {"namespace": [other, space], "filters": {"sessions": ["s2"]}, "exclude": ["m3"]},
        {"namespace": space, "offset": 5, "fold_parts": False},
        {"namespace": space, "sort_by": "created"},
        {"namespace": space, "recipe": "dense"},
        {"namespace": space, "recipe": "hybrid"},
    ]
    for how in hows:
        for question in (*QUESTIONS, '"the engine number" ferry', "What did Mia say in May about the ledger?"):
            expected = answer(trio.plain, question, **how)
            for _ in range(3):  # the last time what was so twice is taken to be so
                assert answer(trio.kept, question, **how) == expected, how


def test_writers_beside_readers_are_never_missed(module_url: str, space: str) -> None:
    with ExitStack() as stack:
        trio = opened(stack, module_url)
        change(trio.writer, space, ("many", 0))
        trio.warm(space)
        stop, same, wrong = threading.Event(), [], []

        def state() -> Any:
            scope = trio.plain.store.scope((space,), Filters(), (), ())
            return scope.states

        def read(question: str) -> None:
            while not stop.is_set():
                before = state()
                pair = [answer(mem, question, namespace=space) for mem in (trio.kept, trio.plain)]
                if state() == before:  # nobody has written meanwhile, so the two were asked of one moment
                    same.append(question)
                    if pair[0] != pair[1]:
                        wrong.append(pair)

        readers = [threading.Thread(target=read, args=(question,)) for question in QUESTIONS[:2]]
        for reader in readers:
            reader.start()
        chance = random.Random(7)
        for number in range(300, 324):
            change(trio.writer, space, (chance.choice(("few", "few", "update", "forget")), number))
            threading.Event().wait(0.05 if number % 3 else 0.4)
        stop.set()
        for reader in readers:
            reader.join()
        assert wrong == []
        assert len(same) >= 3
        for question in QUESTIONS:
            assert answer(trio.kept, question, namespace=space) == answer(trio.plain, question, namespace=space)


def test_a_namespace_in_memory_is_asked_in_one_round_trip(module_url: str, space: str) -> None:
    counter = Counter()
    with installed(counter), ExitStack() as stack:
        trio = opened(stack, module_url)
        change(trio.writer, space, ("many", 0))
        trio.warm(space)

        def trips(question: str, **how: Any) -> int:
            with counter.counting():
                trio.kept.recall(question, **{"namespace": space, **how})
            return sum(counter.counts().trips.values())

        asked = "Who wrote of the lighthouse number 3?"
        assert [trips(asked) for _ in range(4)] == [2, 2, 1, 1]  # the same in two recalls
        assert any(hit.part for hit in trio.kept.recall("Sunniva Holt ferry", namespace=space, limit=30))
        assert trips("Sunniva Holt ferry", limit=30) == 1  # with the whole memories of the parts
        assert trips(asked, min_confidence=1.0) == 1  # and without a hit
        for how in ({"filters": {"tags": ["few"]}}, {"exclude": ["m1", "m2"]}):
            assert [trips(asked, **how) for _ in range(3)][1:] in ([2, 1], [3, 1])  # a trip more for parts
        both = {"namespace": [space, f"{space}-other"]}
        change(trio.writer, both["namespace"][1], ("few", 0))
        trio.warm(both["namespace"][1])
        assert [trips(asked, **both) for _ in range(4)][2:] == [1, 1]
        trio.writer.remember("The barometer fell over the lighthouse.", id="b", namespace=space)
        assert trips("barometer", min_confidence=0.0) == 4  # in vain, then the state, what changed, and the texts
        assert [trips("barometer") for _ in range(3)] == [2, 1, 1]
        assert trio.kept.recall("barometer", namespace=space)[0].memory.id == "b"
        trio.writer.forget("b", namespace=space)
        assert trio.kept.recall("barometer", namespace=space, recipe="lexical").hits == ()


def test_a_recall_that_writers_overtake_is_begun_again(
    module_url: str, space: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ExitStack() as stack:
        trio = opened(stack, module_url)
        change(trio.writer, space, ("many", 0))
        trio.warm(space)
        for _ in range(3):
            trio.kept.recall("ferry", namespace=space)
        met, writes = trio.models.met, iter(range(3))

        def overtaken(namespaces: Any) -> Any:
            model = met(namespaces)
            for number in writes:  # once: behind the look at the model, before the texts are asked for
                trio.writer.remember(f"The barometer fell on day {number}.", id=f"b{number}", namespace=space)
            return model

        monkeypatch.setattr(trio.models, "met", overtaken)
        found = trio.kept.recall("barometer", namespace=space)
        assert {hit.memory.id for hit in found[:3]} == {"b0", "b1", "b2"}
        assert answer(trio.kept, "barometer", namespace=space) == answer(trio.plain, "barometer", namespace=space)


def test_a_recall_that_is_always_overtaken_is_answered_by_the_database(
    module_url: str, space: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from semmem.read.recall import _TRIES

    with ExitStack() as stack:
        trio = opened(stack, module_url)
        change(trio.writer, space, ("many", 0))
        trio.warm(space)
        for _ in range(3):
            trio.kept.recall("ferry", namespace=space)
        reader: Any = trio.kept._reader
        expected, models, seen = reader._expected, dict(trio.models._models), dict(reader._seen)
        tried = []

        def always(*asked: Any) -> Any:
            """Take to be so what was so before the first writer came, each time again, and let another one come."""
            trio.models._models.update(models)
            reader._seen.update(seen)
            tried.append(expected(*asked))
            trio.writer.remember(f"The barometer fell on day {len(tried)}.", id=f"b{len(tried)}", namespace=space)
            return tried[-1]

        monkeypatch.setattr(reader, "_expected", always)
        found = trio.kept.recall("barometer", namespace=space)
        assert [scope is not None for scope in tried] == [True] * _TRIES
        assert {hit.memory.id for hit in found[:3]} == {"b1", "b2", "b3"}
        monkeypatch.undo()
        assert answer(trio.kept, "barometer", namespace=space) == answer(trio.plain, "barometer", namespace=space)


def test_what_does_not_fit_the_budget_is_asked_of_the_database(module_url: str, space: str) -> None:
    with ExitStack() as stack:
        trio = opened(stack, module_url, resident_mb=1)
        for at in range(3):
            change(trio.writer, f"{space}-{at}", ("many", 0))
            for _ in range(2):
                trio.kept.recall("ferry", namespace=f"{space}-{at}")
        size = trio.models.size
        assert 0 < size <= 1 << 20
        trio.writer.remember_many(
            [{"id": f"x{n}", "text": f"word{n} " * 3, "vector": None} for n in range(900)], namespace=f"{space}-0"
        )
        for _ in range(4):
            trio.kept.recall("ferry", namespace=f"{space}-0")
        assert f"{space}-0" not in trio.models.namespaces
        assert trio.models.size <= 1 << 20
        question = {"namespace": f"{space}-0"}
        assert answer(trio.kept, "ferry word3", **question) == answer(trio.plain, "ferry word3", **question)


def test_the_namespace_asked_longest_ago_makes_room() -> None:
    class Sized:
        def __init__(self, namespace: str) -> None:
            self.namespace, self.size, self.state = namespace, 40, STATE

    models = Models(100, lambda namespace, most: Sized(namespace), lambda model, most: None)  # type: ignore[arg-type, return-value]
    for name in ("one", "two", "three"):
        models.bind({name: STATE})
        assert models.bound(name) is None
        models.bind({name: STATE})
        assert models.bound(name) is not None
    assert models.namespaces == ("two", "three")
    models.bind({"two": STATE})
    assert models.namespaces == ("three", "two")
    assert models.size == 80


def test_nobody_waits_for_a_large_namespace() -> None:
    begun, go = threading.Event(), threading.Event()

    class Sized:
        namespace, size, state = "n", 1, STATE._replace(memories=50_000)

    def load(namespace: str, most: int) -> Any:
        begun.set()
        assert go.wait(30)
        return Sized()

    models = Models(100, load, lambda model, most: None)
    for _ in range(5):
        models.bind({"n": Sized.state})
        assert models.bound("n") is None
    assert begun.wait(30)
    go.set()
    for _ in range(3000):
        models.bind({"n": Sized.state})
        if models.bound("n") is not None:
            break
        threading.Event().wait(0.01)
    assert models.bound("n") is not None
    models.clear()
    assert models.namespaces == ()


def test_a_namespace_whose_model_was_dropped_is_loaded_again_while_recalls_go_on() -> None:
    here, loaders = threading.get_ident(), []
    before, after = STATE._replace(memories=5_000), STATE._replace(memories=5_000, revision=STATE.revision + 9)

    class Sized:
        namespace, size = "n", 1

        def __init__(self, state: State) -> None:
            self.state = state

    def load(namespace: str, most: int) -> Any:
        loaders.append(threading.get_ident())
        return Sized(before if len(loaders) == 1 else after)

    models = Models(100, load, lambda model, most: None)
    for _ in range(2):
        models.bind({"n": before})
    assert models.bound("n") is not None
    models.bind({"n": after})
    assert models.bound("n") is None
    for _ in range(3000):
        models.bind({"n": after})
        if models.bound("n") is not None:
            break
        threading.Event().wait(0.01)
    assert models.bound("n") is not None
    assert [loader == here for loader in loaders] == [True, False]


def test_a_model_that_serves_little_is_not_soon_made_again() -> None:
    made: list[str] = []

    class Sized:
        namespace, size, state = "n", 1, STATE

    def load(namespace: str, most: int) -> Any:
        made.append(namespace)
        return Sized()

    models = Models(100, load, lambda model, most: None)
    for revision in range(9, 60):
        models.bind({"n": STATE._replace(revision=STATE.revision if revision % 2 else revision)})
    assert 2 <= len(made) <= 6


def test_vectors_of_another_embedder_are_not_compared(other_url: str) -> None:
    with semmem.connect(other_url, embedder="hashing", resident_mb=64) as mem:
        mem.remember_many([item(n, random.Random(n)) for n in range(20)], namespace="n")
        for _ in range(3):
            mem.recall("engine", namespace="n")
        kept: Models = mem._reader.models  # type: ignore[attr-defined]
        assert kept.namespaces == ("n",)

        class Other:
            name, dimensions, fingerprint, max_tokens = "other", 8, "1", None

            def count_tokens(self, text: str) -> int:
                return len(text.split())

            def embed(self, texts: Any) -> Any:
                rows = np.array([[len(t), *map(ord, (t + " " * 7)[:7])] for t in texts], dtype=np.float32)
                return rows / np.linalg.norm(rows, axis=1, keepdims=True)

        with semmem.connect(other_url, resident_mb=0) as second:
            second.rebuild(embedder=Other())
        found = mem.recall("engine", namespace="n")
        assert "dense" in found.degraded
        assert found.hits


def test_a_backup_that_is_restored_is_what_is_recalled_though_its_numbers_are_older(
    other_url: str, tmp_path: Path
) -> None:
    with ExitStack() as stack:
        trio = opened(stack, other_url)
        change(trio.writer, "n", ("few", 1))
        trio.writer.remember("The barometer fell.", id="b", namespace="n")
        trio.writer.backup(tmp_path / "before.semmem")
        trio.writer.forget("b", namespace="n")
        change(trio.writer, "n", ("few", 20))
        trio.warm("n")
        trio.writer.forget(namespace="n", everything=True)  # and nobody asks before it is there again
        trio.writer.restore(tmp_path / "before.semmem")
        for question in ("barometer", *QUESTIONS):
            assert answer(trio.kept, question, namespace="n") == answer(trio.plain, question, namespace="n")
        assert [hit.memory.id for hit in trio.kept.recall("barometer", namespace="n", recipe="lexical")] == ["b"]


def test_settings_and_talk_of_a_namespace_in_memory_are_those_of_now(trio: Trio, space: str) -> None:
    turns = [("Mia", "Where did you moor the ferry?"), ("Tom", "At the old lighthouse, in May."), ("Mia", "Is it dry?")]
    items = [
        {"id": f"t{at}", "text": text, "author": author, "session": "talk", "position": at}
        for at, (author, text) in enumerate(turns * 4)
    ]
    trio.writer.remember_many(items, namespace=space)
    trio.warm(space)
    asked = ("Where did Tom moor the ferry?", "What did Mia ask in May?", "Is it dry?")
    for changes in ({}, {"weights.graph": 0.0}, {"weights.graph": 2.0}):
        if changes:
            trio.writer.configure(namespace=space, **changes)
        for question in asked:  # the last of them takes the settings to be what they were
            kept = answer(trio.kept, question, namespace=space)
            assert kept == answer(trio.plain, question, namespace=space)
            assert kept["settings"] == changes
    trio.writer.forget("t1", namespace=space)
    for question in asked:
        assert answer(trio.kept, question, namespace=space) == answer(trio.plain, question, namespace=space)


def test_threads_read_one_model(trio: Trio, space: str) -> None:
    change(trio.writer, space, ("many", 0))
    trio.warm(space)
    expected = [answer(trio.plain, question, namespace=space) for question in QUESTIONS]
    wrong: list[int] = []

    def read(at: int) -> None:
        for turn in range(4):
            which = (at + turn) % len(QUESTIONS)
            if answer(trio.kept, QUESTIONS[which], namespace=space) != expected[which]:
                wrong.append(which)

    threads = [threading.Thread(target=read, args=(at,)) for at in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
