"""A memory that is changed while a recall reads it is found as it is after the change."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

import semmem
from semmem.legs.lexical import Lexical
from semmem.stores.postgres.store import PostgresStore


@pytest.mark.nodes
@pytest.mark.parametrize("resident_mb", [0, 256])
def test_a_memory_that_is_changed_after_a_leg_has_found_it_is_a_hit(
    url: str, resident_mb: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    search = Lexical.search
    changes = iter([0.1, 0.2])

    with semmem.connect(url, embedder="none", recipe="lexical", resident_mb=resident_mb) as mem:
        mem.remember("The bus leaves at nine.", id="bus")
        mem.remember("The ferry leaves at noon.", id="ferry")
        mem.recall("leaves")
        mem.recall("leaves")

        def overtaken(self: Lexical, *given: Any, **options: Any) -> Any:
            found = search(self, *given, **options)
            if (importance := next(changes, None)) is not None:
                mem.update("bus", importance=importance)
            return found

        monkeypatch.setattr(Lexical, "search", overtaken)
        found = mem.recall("leaves")
        assert sorted((hit.id, hit.memory.importance) for hit in found) == [("bus", 0.2), ("ferry", 0.5)]
        assert next(changes, None) is None


def test_a_memory_that_is_forgotten_meanwhile_is_no_hit_and_the_leg_is_asked_once_more(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    search = Lexical.search
    asked = 0

    with semmem.connect(url, embedder="none", recipe="lexical") as mem:
        mem.remember("The bus leaves at nine.", id="bus")
        mem.remember("The ferry leaves at noon.", id="ferry")

        def overtaken(self: Lexical, *given: Any, **options: Any) -> Any:
            nonlocal asked
            found = search(self, *given, **options)
            asked += 1
            if asked == 1:
                mem.forget("bus")
            return found

        monkeypatch.setattr(Lexical, "search", overtaken)
        assert [hit.id for hit in mem.recall("leaves")] == ["ferry"]
        assert asked == 2


@pytest.fixture(params=[0, 256], ids=["database", "memory"])
def harbour(url: str, request: pytest.FixtureRequest) -> Iterator[semmem.Semmem]:
    """Two memories with a tag and one without, recalled often enough to be held in memory where that is allowed."""
    with semmem.connect(url, embedder="none", recipe="lexical", resident_mb=request.param) as mem:
        mem.remember("The bus leaves at nine.", id="bus", tags=["travel"])
        mem.remember("The ferry leaves at noon.", id="ferry", tags=["travel"])
        mem.remember("The cook leaves at ten.", id="cook")
        for _ in range(4):
            mem.recall("leaves")
        yield mem


@pytest.fixture
def searches(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[int], object]], list[int]]:
    """Do something before each search of the leg, which gets the number of the search; return what counts these."""

    def before(change: Callable[[int], object]) -> list[int]:
        search, asked = Lexical.search, [0]

        def overtaken(self: Lexical, *given: Any, **options: Any) -> Any:
            asked[0] += 1
            change(asked[0])
            return search(self, *given, **options)

        monkeypatch.setattr(Lexical, "search", overtaken)
        return asked

    return before


Searches = Callable[[Callable[[int], object]], list[int]]


@pytest.mark.nodes
def test_a_memory_that_is_changed_before_a_leg_searches_matches_the_filters_as_before(
    harbour: semmem.Semmem, searches: Searches
) -> None:
    asked = searches(lambda n: harbour.update("bus", importance=n / 10) if n < 3 else None)
    found = harbour.recall("leaves", filters=semmem.Filters(tags=["travel"]))
    assert sorted((hit.id, hit.memory.importance) for hit in found) == [("bus", 0.2), ("ferry", 0.5)]
    assert asked == [3]


@pytest.mark.nodes
def test_a_memory_that_is_changed_before_a_leg_searches_stays_excluded(
    harbour: semmem.Semmem, searches: Searches
) -> None:
    searches(lambda n: harbour.update("bus", importance=0.1) if n == 1 else None)
    assert sorted(hit.id for hit in harbour.recall("leaves", exclude=["bus"])) == ["cook", "ferry"]


def test_a_memory_of_another_namespace_that_is_changed_meanwhile_matches_too(
    harbour: semmem.Semmem, searches: Searches
) -> None:
    harbour.remember("The train leaves at six.", id="train", tags=["travel"], namespace="land")
    searches(lambda n: harbour.update("train", importance=0.1, namespace="land") if n == 1 else None)
    found = harbour.recall("leaves", namespace=["default", "land"], filters=semmem.Filters(tags=["travel"]))
    assert sorted(hit.id for hit in found) == ["bus", "ferry", "train"]


@pytest.mark.parametrize("how", [{"filters": semmem.Filters(tags=["travel"])}, {"exclude": ["bus"]}])
def test_a_change_of_what_the_scope_does_not_name_asks_no_leg_again(
    harbour: semmem.Semmem, searches: Searches, how: dict[str, Any]
) -> None:
    asked = searches(lambda n: harbour.remember(f"Note {n}.", id=f"note {n}"))
    assert "ferry" in {hit.id for hit in harbour.recall("leaves", **how)}
    assert asked == [1]


def test_a_memory_that_is_added_meanwhile_and_matches_the_filters_asks_no_leg_again(
    harbour: semmem.Semmem, searches: Searches
) -> None:
    asked = searches(lambda n: harbour.remember(f"Note {n}.", id=f"note {n}", tags=["travel"]))
    found = harbour.recall("leaves", filters=semmem.Filters(tags=["travel"]))
    assert sorted(hit.id for hit in found) == ["bus", "ferry"]
    assert asked == [1]


def test_a_memory_that_is_added_meanwhile_under_an_excluded_id_is_no_hit(
    harbour: semmem.Semmem, searches: Searches
) -> None:
    searches(lambda n: harbour.remember("The train leaves at six.", id="train") if n == 1 else None)
    assert sorted(hit.id for hit in harbour.recall("leaves", exclude=["bus", "train"])) == ["cook", "ferry"]


def test_a_recall_beside_a_writer_that_never_stops_ends_after_five_more_answers(
    harbour: semmem.Semmem, searches: Searches
) -> None:
    asked = searches(lambda n: harbour.update("bus", importance=n / 100))
    assert "ferry" in {hit.id for hit in harbour.recall("leaves", filters=semmem.Filters(tags=["travel"]))}
    assert asked == [6]


@pytest.mark.parametrize(
    ("how", "ids"),
    [({"filters": semmem.Filters(tags=["travel"])}, ["bus", "ferry"]), ({"exclude": ["bus"]}, ["cook", "ferry"])],
)
def test_a_memory_that_is_changed_once_the_scope_was_read_is_in_or_out_of_it_as_before(
    harbour: semmem.Semmem, monkeypatch: pytest.MonkeyPatch, how: dict[str, Any], ids: list[str]
) -> None:
    """Another recall has brought the namespace in memory up to date meanwhile, so that it is later than the scope."""
    store = type(harbour.store)
    scope, changes = store.scope, iter([0.1])

    def overtaken(self: Any, *given: Any, **options: Any) -> Any:
        made = scope(self, *given, **options)
        if (importance := next(changes, None)) is not None:
            harbour.update("bus", importance=importance)
            harbour.recall("leaves")
        return made

    monkeypatch.setattr(store, "scope", overtaken)
    assert sorted(hit.id for hit in harbour.recall("leaves", **how)) == ids


@pytest.mark.parametrize("harbour", [0], indirect=True, ids=["database"])
def test_the_states_are_read_once_for_a_scope_that_names_row_ids_and_never_for_another_one(
    harbour: semmem.Semmem, kind_of_store: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = type(harbour.store)
    states, read = store.states, []
    monkeypatch.setattr(store, "states", lambda self, *given: (read.append(given), states(self, *given))[1])
    harbour.recall("leaves")
    assert len(read) == 0
    harbour.recall("leaves", filters=semmem.Filters(tags=["travel"]))
    assert len(read) == 1  # on SQLite before the scope, whose state the namespace in memory still has


@pytest.mark.parametrize(
    ("how", "statement", "ids"),
    [
        ({"filters": semmem.Filters(tags=["travel"])}, "memory_scope", ["bus", "ferry"]),
        ({"exclude": ["bus"]}, "memory_excluded", ["cook", "ferry"]),
    ],
)
def test_a_memory_that_is_changed_between_two_statements_of_the_scope_is_in_or_out_of_it_as_before(
    harbour: semmem.Semmem,
    kind_of_store: str,
    monkeypatch: pytest.MonkeyPatch,
    how: Any,
    statement: str,
    ids: list[str],
) -> None:
    if kind_of_store == "sqlite":
        pytest.skip("a scope of SQLite reads the states first alone")
    together, changes = PostgresStore.together, iter([0.1])

    def overtaken(self: PostgresStore, *queries: Any, **options: Any) -> Any:
        names = [name for name, _ in queries]
        if statement not in names or (importance := next(changes, None)) is None:
            return together(self, *queries, **options)
        middle = names.index(statement) + 1
        rows = together(self, *queries[:middle], **options)
        harbour.update("bus", importance=importance)
        return rows + together(self, *queries[middle:], **options)

    monkeypatch.setattr(PostgresStore, "together", overtaken)
    assert sorted(hit.id for hit in harbour.recall("leaves", **how)) == ids
    assert next(changes, None) is None


@pytest.mark.parametrize("harbour", [0], indirect=True, ids=["database"])
def test_the_states_of_many_namespaces_are_read_for_those_that_hold_something(
    harbour: semmem.Semmem, kind_of_store: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if kind_of_store == "sqlite":
        pytest.skip("SQLite reads its own file, and has no round trip to save")
    together, sent = PostgresStore.together, []

    def counted(self: PostgresStore, *queries: Any, **options: Any) -> Any:
        sent.extend(queries)
        return together(self, *queries, **options)

    monkeypatch.setattr(PostgresStore, "together", counted)
    states = harbour.store.states([f"room {number}" for number in range(1000)] + ["default"])
    assert [name for name, state in states.items() if state is not None] == ["default"]
    assert (len(states), len(sent)) == (1001, 1)
