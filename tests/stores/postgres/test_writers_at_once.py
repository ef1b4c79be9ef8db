"""Two who write at once wait for each other: at a memory that both forget, at a term that both bring."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from typing import Any

import pytest
from psycopg.types.json import Jsonb

import semmem
from semmem.client.memory import Semmem
from semmem.model.errors import StoreUnavailable
from semmem.model.history import Access
from semmem.model.store import life_of
from semmem.model.types import Filters
from semmem.stores.postgres import forget, postings, upkeep, write
from semmem.stores.sql_files import statements
from tests.stores.audit import check, sql
from tests.waiting import until

pytestmark = pytest.mark.nodes

_SQL = statements("postgres")


@pytest.fixture
def mem(store_url: str) -> Iterator[Semmem]:
    with semmem.connect(store_url, embedder="hashing", pool_size=5) as mem:
        yield mem


def waits_or_ends(mem: Semmem, other: Future[Any], waiters: int = 1) -> None:
    """Wait until the other one waits for a lock, the last of so many ``waiters``, or has ended without."""
    on_nodes = mem.store.nodes() is not None
    waiting = "SELECT count(*) FROM " + ("citus_lock_waits" if on_nodes else "pg_locks WHERE NOT granted")
    end = time.monotonic() + 60
    while not other.done() and sql(mem, waiting)[0][0] < waiters:
        assert time.monotonic() < end
        time.sleep(0.01)


def test_of_two_who_forget_a_memory_at_once_the_second_finds_it_gone(mem: Semmem) -> None:
    mem.remember("The ferry left.", id="a")
    mem.remember("The bus came.", id="b")
    with ThreadPoolExecutor(1) as pool:

        def first(connection: Any) -> tuple[int, Future[int]]:
            gone = forget.forget(connection, "default", "a", semmem.Filters(), dry_run=False)
            second = pool.submit(mem.forget, "a")
            waits_or_ends(mem, second)
            return gone, second

        gone, second = mem.store.transaction(first)
        assert gone == 1
        with pytest.raises(semmem.NotFound, match="nothing was forgotten"):
            second.result(60)
    check(mem)


def beside(mem: Semmem, first: Callable[[], Any], second: Callable[[], int]) -> tuple[Any, int]:
    """Return what two verbs return: the first waits for the namespace, the second for the first, and both end then."""
    with ThreadPoolExecutor(2) as pool:

        def begun(connection: Any) -> tuple[Future[Any], Future[int]]:
            connection.execute(_SQL["namespace_own"], {"namespace": "default"})
            one = pool.submit(first)
            waits_or_ends(mem, one)
            assert not one.done()
            other = pool.submit(second)
            waits_or_ends(mem, other, 2)
            return one, other

        one, other = mem.store.transaction(begun)
        return one.result(60), int(other.result(60))


def beside_an_update(mem: Semmem, verb: Callable[[], int]) -> int:
    """Return what ``verb`` returns that waits for the memory "a", which is updated."""
    updated, answer = beside(mem, partial(mem.update, "a", importance=0.25), verb)
    assert updated.version == 2
    return answer


@pytest.mark.parametrize("hard", [False, True])
@pytest.mark.parametrize("which", [{"id": "a"}, {"filters": {"tags": ["water"]}}])
def test_a_memory_that_is_changed_while_a_forget_waits_for_it_is_forgotten(
    mem: Semmem, which: dict[str, Any], hard: bool
) -> None:
    mem.remember_many([{"text": f"Ferry {id} left.", "id": id, "tags": ["water"]} for id in "abc"])
    gone = beside_an_update(mem, partial(mem.forget, **which, hard=hard))
    left = [memory.id for memory in mem.list()]
    assert (gone, left) == ((1, ["c", "b"]) if "id" in which else (3, []))
    check(mem)


def test_a_memory_that_is_changed_while_its_accesses_are_counted_is_counted(mem: Semmem) -> None:
    mem.remember_many([{"text": f"Ferry {id} left.", "id": id} for id in "ab"])
    counts = {id: Access(3, datetime(2026, 3, 1, tzinfo=UTC)) for id in ("a", "b", "nobody")}
    counted: list[int] = []

    def count() -> int:
        def tried() -> bool:
            with suppress(StoreUnavailable):  # no connection is idle: the counter tries again later
                counted.append(life_of(mem.store).count_accesses("default", counts))
            return bool(counted)

        until(tried)
        return counted[0]

    assert beside_an_update(mem, count) == 2
    assert [mem.get(id).access_count for id in "ab"] == [3, 3]


def test_a_memory_that_is_changed_while_a_repeat_of_it_is_counted_is_counted(mem: Semmem) -> None:
    mem.remember("The ferry left at nine.", id="a")
    assert beside_an_update(mem, lambda: len(life_of(mem.store).corroborate("default", {"a": 2}))) == 1
    assert mem.get("a").seen_count == 3


def test_a_memory_that_is_brought_back_while_a_hard_forget_waits_is_forgotten(mem: Semmem) -> None:
    mem.remember("The ferry left at nine.", id="a")
    mem.forget("a")
    restored, gone = beside(mem, partial(mem.restore_memory, "a"), partial(mem.forget, "a", hard=True))
    assert (restored.id, gone, list(mem.list()), mem.forgotten()) == ("a", 1, [], [])
    check(mem)


@pytest.mark.parametrize(("place", "others"), [("locked_rows", 1), ("purge", 0)])  # behind whose locks nobody comes
@pytest.mark.parametrize("lives", [1, 2])
def test_a_hard_forget_takes_a_memory_that_is_brought_back_between_its_statements(
    mem: Semmem, place: str, others: int, lives: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    for life in range(lives):
        mem.remember(f"Life {life} of the ferry.", id="a")
        mem.forget("a")
    if others:
        mem.remember("The bus came.", id="b")
    statement = getattr(forget, place)

    def meanwhile(*given: Any, **named: Any) -> Any:
        monkeypatch.undo()
        answer = statement(*given, **named) if place == "locked_rows" else None
        with ThreadPoolExecutor(1) as pool:
            assert pool.submit(mem.restore_memory, "a").result(60).id == "a"
        return answer if place == "locked_rows" else statement(*given, **named)

    monkeypatch.setattr(forget, place, meanwhile)
    assert mem.forget(filters={"created_after": "2000-01-01"}, hard=True) == 1 + others
    assert (list(mem.list()), mem.forgotten()) == ([], [])
    with pytest.raises(semmem.NotFound):
        mem.history("a")
    check(mem)


def begun_to_drop(mem: Semmem) -> Callable[[], None]:
    """Begin to drop the default namespace, as a process that is stopped then; return what does the rest."""
    upto = mem.store.transaction(lambda c: forget.begin_drop(c, "default"))[1]
    return partial(mem.store.drop, "default", upto)


def test_of_an_id_that_is_used_anew_during_a_drop_the_dropped_versions_go(mem: Semmem) -> None:
    mem.remember("The code is 1234.", id="a")
    mem.update("a", text="The code is 5678.")
    rest = begun_to_drop(mem)
    mem.remember("Bread is baked on Sundays.", id="a")
    mem.update("a", text="Bread is baked on Mondays.")
    rest()
    assert [one.memory.text for one in mem.history("a")] == ["Bread is baked on Sundays.", "Bread is baked on Mondays."]


def test_what_was_stored_and_forgotten_during_a_drop_can_be_brought_back(mem: Semmem) -> None:
    mem.remember_many([{"text": f"Ferry {id} left.", "id": id} for id in "abc"])
    mem.forget("c")
    rest = begun_to_drop(mem)
    mem.remember_many([{"text": f"The bus {id} came.", "id": id} for id in "xy"])
    mem.link("x", "supersedes", "y")
    mem.forget("x")
    rest()
    assert [one.memory.id for one in mem.forgotten()] == ["x"]
    assert mem.restore_memory("x").text == "The bus x came."
    assert [one.to_id for one in mem.links("x")] == ["y"]


def test_what_a_drop_takes_cannot_be_forgotten_softly_and_brought_back(mem: Semmem) -> None:
    mem.remember_many([{"text": f"Ferry {id} left.", "id": id} for id in "abc"])
    rest = begun_to_drop(mem)
    assert mem.forget(filters={"created_after": "2000-01-01"}) == 0
    with pytest.raises(semmem.NotFound):
        mem.forget("a")
    rest()
    assert mem.forgotten() == []


def test_what_a_drop_takes_can_be_neither_changed_nor_brought_back_nor_seen(mem: Semmem) -> None:
    mem.remember_many([{"text": f"Ferry {id} left.", "id": id} for id in "abc"])
    mem.update("a", text="Ferry a came back.")
    mem.forget("c")
    before = datetime.now(UTC)
    rest = begun_to_drop(mem)
    for verb in (mem.restore_memory, mem.history, partial(mem.get, as_of=before), partial(mem.update, pinned=True)):
        for id in "ac":
            with pytest.raises(semmem.NotFound):
                verb(id)
    assert (mem.forgotten(), list(mem.recall("ferry", as_of=before)), list(mem.recall("ferry"))) == ([], [], [])
    assert [mem.forget(filters={"created_after": "2000-01-01"}, hard=hard, dry_run=True) for hard in (False, True)] == [
        0,
        0,
    ]
    mem.remember("The bus came.", id="a")
    assert list(mem.recall("ferry", as_of=before)) == []
    rest()
    assert ([one.id for one in mem.list()], mem.forgotten()) == (["a"], [])
    check(mem)


@pytest.mark.parametrize(("verb", "error"), [("update", semmem.NotFound), ("restore", semmem.Conflict)])
def test_what_is_changed_or_brought_back_while_a_drop_begins_goes_with_it(
    mem: Semmem, verb: str, error: type[semmem.SemmemError], monkeypatch: pytest.MonkeyPatch
) -> None:
    mem.remember_many([{"text": f"Ferry {id} left.", "id": id} for id in "ab"])
    mem.forget("b")
    ask_drops, rest = write._Numbers.ask_drops, list[Callable[[], None]]()

    def begun(numbers: Any, **taken: Any) -> None:
        monkeypatch.undo()
        with ThreadPoolExecutor(1) as pool:
            rest.append(pool.submit(begun_to_drop, mem).result(60))
        ask_drops(numbers, **taken)

    monkeypatch.setattr(write._Numbers, "ask_drops", begun)
    with pytest.raises(error):
        mem.update("a", pinned=True) if verb == "update" else mem.restore_memory("b")
    rest[0]()
    assert (list(mem.list()), mem.forgotten()) == ([], [])
    check(mem)


def test_no_comparison_waits_for_a_row_that_was_replaced_while_what_it_contradicts_was_forgotten(
    mem: Semmem, monkeypatch: pytest.MonkeyPatch
) -> None:
    mem.remember("Anna lives in Paris.", id="old")
    mem.remember("Anna lives in Rome.", id="new")
    assert [one.to_id for one in mem.links("new")] == ["old"]
    ask_drops = write._Numbers.ask_drops

    def meanwhile(numbers: Any, **taken: Any) -> None:
        monkeypatch.undo()
        with ThreadPoolExecutor(1) as pool:
            assert pool.submit(mem.forget, "new").result(60) == 1
        ask_drops(numbers, **taken)

    monkeypatch.setattr(write._Numbers, "ask_drops", meanwhile)
    mem.update("old", text="Anna lives in Oslo.")
    check(mem)
    mem.maintain()
    assert mem.store.backlog().waiting == 0


@pytest.mark.parametrize("ahead", [False, True])
def test_what_is_forgotten_before_a_drop_goes_with_it_whatever_the_clock_says(mem: Semmem, ahead: bool) -> None:
    mem.remember_many([{"text": f"Ferry {id} left.", "id": id} for id in "abc"])

    def begun(connection: Any) -> int:
        connection.execute("SELECT now()")  # the time of the transaction
        with ThreadPoolExecutor(1) as pool:
            assert pool.submit(mem.forget, "a").result(60) == 1
        if ahead:
            connection.execute("UPDATE history SET changed_at = now() + interval '1 hour' WHERE id = 'a'")
        return int(forget.begin_drop(connection, "default")[1])

    mem.store.drop("default", mem.store.transaction(begun))
    assert mem.forgotten() == []


def test_the_versions_of_a_memory_that_is_brought_back_while_a_sweep_waits_stay(mem: Semmem) -> None:
    mem.remember("The ferry left at nine.", id="a")
    mem.update("a", text="The ferry left at ten.")
    mem.forget("a")
    keep = {"forgotten_days": 0, "limit": 100}
    sweep = partial(mem.store.transaction, partial(upkeep._forgotten, namespace="default", parameters=keep))
    beside(mem, partial(mem.restore_memory, "a"), sweep)
    assert [one.memory.version for one in mem.history("a")] == [1, 2]
    check(mem)


def test_a_recall_that_is_judged_while_a_sweep_of_the_log_waits_stays(store_url: str) -> None:
    with semmem.connect(store_url, embedder="none", recipe="lexical", recall_log=True, pool_size=5) as mem:
        mem.remember("The ferry left.", id="a")
        recall_id = mem.recall("ferry").id
        assert recall_id is not None
        keep = {"namespace": "default", "recall_log_days": 0, "limit": 100}
        mark = Jsonb({"useful": True, "judged_by": None, "judged_at": "2026-01-01T00:00:00+00:00"})
        judged = {"namespace": "default", "recall_id": recall_id, "ids": ["a"], "marks": [mark]}
        with ThreadPoolExecutor(1) as pool:

            def first(connection: Any) -> Future[int]:
                connection.execute(_SQL["judge"], judged)
                sweep = pool.submit(mem.store.transaction, lambda c: c.execute(_SQL["sweep_log"], keep).rowcount)
                waits_or_ends(mem, sweep)
                return sweep

            assert mem.store.transaction(first).result(60) == 0
        assert [(one.id, one.useful) for one in life_of(mem.store).judgments("default")] == [("a", True)]


def test_a_judgment_of_a_memory_that_a_hard_forget_takes_meanwhile_leaves_no_question(store_url: str) -> None:
    with semmem.connect(store_url, embedder="none", recipe="lexical", recall_log=True, pool_size=5) as mem:
        mem.remember_many([{"text": "The ferry left.", "id": "a"}, {"text": "The bus came.", "id": "b"}])
        recall_id = mem.recall("ferry").id
        with ThreadPoolExecutor(1) as pool:

            def first(connection: Any) -> Future[Any]:
                forget.forget(connection, "default", "b", Filters(), dry_run=False)
                judgment = pool.submit(mem.feedback, recall_id, useful=["b"])
                waits_or_ends(mem, judgment)
                return judgment

            with pytest.raises(semmem.NotFound):
                mem.store.transaction(first).result(60)
        assert [[hit.id for hit in entry.hits] for entry in mem.recalls()] == [["a"]]


def test_a_term_that_two_bring_at_once_is_known_to_be_shared(mem: Semmem) -> None:
    mem.remember("A zebra.", id="a")
    with ThreadPoolExecutor(1) as pool:

        def first(connection: Any) -> Future[Any]:
            assert postings.flush(connection, ["default"]) == 1
            second = pool.submit(mem.remember_many, [{"text": f"The zebra {n} hums."} for n in range(64)])
            waits_or_ends(mem, second)
            return second

        mem.store.transaction(partial(first)).result(60)
    assert {hit.id for hit in mem.recall("zebra", recipe="lexical", limit=100)} >= {"a"}
    check(mem)
