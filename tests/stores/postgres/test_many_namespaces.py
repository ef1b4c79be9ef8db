"""A batch of many namespaces: it stores what a batch for each stores, in as many round trips as a batch of one."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any

import psycopg
import pytest

import semmem
from eval.path import Counter, installed
from semmem.client.memory import Semmem
from semmem.model.errors import InvalidInput, NamespaceFull
from semmem.stores.postgres import connection as connections
from semmem.stores.postgres import forget, postings, upkeep, write
from tests.stores.audit import check, sql
from tests.waiting import until
from tests.write.sentences import sentence

_COLUMNS = """SELECT table_name::text, string_agg(quote_ident(column_name) || '::text', ', ' ORDER BY column_name)
FROM information_schema.columns WHERE table_schema = 'semmem' AND data_type <> 'timestamp with time zone'
AND table_name IN (SELECT table_name FROM information_schema.columns WHERE column_name = 'namespace')
GROUP BY table_name ORDER BY table_name"""


def _tables(mem: Semmem) -> dict[str, list[tuple[Any, ...]]]:
    """Return the rows of every table with a namespace, without times."""
    with psycopg.connect(mem.store.url, autocommit=True) as connection:
        return {
            table: sorted(sql(connection, f"SELECT {columns} FROM semmem.{table}"), key=repr)
            for table, columns in sql(connection, _COLUMNS)
        }


def _drawn(chance: random.Random, batch: int) -> list[dict[str, Any]]:
    """Return some items of a few namespaces: short and long ones, some of them said before, some in one namespace."""
    spaces = [f"n{n}" for n in chance.sample(range(8), chance.randint(1, 8))]
    items = []
    for n in range(chance.choice((20, 60, 150))):
        text = sentence(chance, chance.choice((3, 12, 12, 12)))
        item: dict[str, Any] = {"text": text, "namespace": chance.choice(spaces + spaces[:1] * 8), "session": "s"}
        item["id"] = f"b{batch}-{n}" if chance.random() < 0.8 else f"m{chance.randint(0, 40)}"
        if chance.random() < 0.05:
            item["text"] = " ".join(f"Note {n} of {k} says that Ada Lovelace met {text}" for k in range(60))
        if chance.random() < 0.3:
            item |= {"title": chance.choice(("Ada Bob", "Eve")), "tags": ["x"], "metadata": {"n": n}}
        items.append(item | {"created_at": f"2026-01-{n % 28 + 1:02}"})
    return list({(item["namespace"], item["id"]): item for item in items}.values())


def _by_namespace(items: Sequence[Mapping[str, Any]]) -> list[list[Mapping[str, Any]]]:
    names = sorted({item["namespace"] for item in items})
    return [[item for item in items if item["namespace"] == name] for name in names]


@pytest.fixture
def pair(store_url: str, other_url: str) -> Iterator[tuple[Semmem, Semmem]]:
    with ExitStack() as stack:
        one, other = (
            stack.enter_context(semmem.connect(url, embedder="hashing", pool_size=3)) for url in (store_url, other_url)
        )
        yield one, other


@pytest.mark.nodes
@pytest.mark.parametrize("seed", range(3))
def test_a_batch_of_many_namespaces_stores_what_a_batch_for_each_of_them_stores(
    pair: tuple[Semmem, Semmem], monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    chance = random.Random(seed)
    whole, apart = pair
    for batch in range(3):
        items = _drawn(chance, batch)
        into: Callable[..., Any] = chance.choice((Semmem.remember_many, Semmem.import_items))
        more = {"replace": True, "owned": {"sessions": ["s"]}} if into is Semmem.import_items else {"on_error": "skip"}
        into(whole, items, batch_size=1000, **more)
        for own in _by_namespace(items):
            into(apart, own, batch_size=1000, **more)
        assert _tables(whole) == _tables(apart)
        check(whole)
    whole.maintain()
    monkeypatch.setattr(upkeep, "MOST_TOGETHER", 1)
    apart.maintain()
    assert _tables(whole) == _tables(apart)
    check(whole)


def _few_each(namespaces: int, count: int = 60) -> list[dict[str, Any]]:
    return [
        {"id": f"m{n}", "namespace": f"n{n % namespaces:03}", "text": f"Ada met owl {n} near the quay, said {n}."}
        for n in range(count)
    ]


def _trips(work: Callable[[], object]) -> Mapping[str, int]:
    counter = Counter()
    with installed(counter), counter.counting():
        work()
    return counter.counts().trips


@pytest.mark.parametrize("bulk", [False, True])
def test_the_round_trips_of_a_batch_are_as_many_for_sixty_namespaces_as_for_twenty(
    pair: tuple[Semmem, Semmem], bulk: bool
) -> None:
    trips = []
    for mem, namespaces in zip(pair, (20, 60), strict=True):
        mem.remember_many(_few_each(namespaces))
        items = [{**item, "id": f"{item['id']} again"} for item in _few_each(namespaces)]
        trips.append(_trips(lambda: mem.remember_many(iter(items) if bulk else items)))  # noqa: B023
    assert trips[0] == trips[1]
    assert sum(trips[0].values()) < 40


def test_maintain_makes_as_many_round_trips_for_sixty_small_namespaces_with_work_as_for_two(
    pair: tuple[Semmem, Semmem],
) -> None:
    trips = []
    for mem, namespaces in zip(pair, (2, 60), strict=True):
        mem.maintain()
        mem.remember_many(_few_each(namespaces))
        trips.append(_trips(mem.maintain))
    assert trips[0] == trips[1]


def test_hashes_make_as_many_round_trips_for_sixty_namespaces_as_for_two(pair: tuple[Semmem, Semmem]) -> None:
    trips = []
    for mem, namespaces in zip(pair, (2, 60), strict=True):
        mem.remember_many(_few_each(namespaces))
        assert len(mem.hashes()) == namespaces
        trips.append(_trips(mem.hashes))
    assert trips[0] == trips[1]


def test_one_transaction_of_maintain_serves_a_bounded_number_of_namespaces_and_of_memories() -> None:
    assert upkeep.together([("b", 3), ("a", 250), ("c", 4)]) == [["a", "b"], ["c"]]
    assert upkeep.together([("b", 5_000), ("a", 1), ("c", 1)]) == [["a"], ["b"], ["c"]]
    assert [len(some) for some in upkeep.together((f"n{n:03}", 1) for n in range(300))] == [128, 128, 44]
    assert upkeep.together([]) == []


def test_maintain_that_is_ended_between_two_groups_leaves_whole_namespaces(
    mem: Semmem, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(upkeep, "MOST_TOGETHER", 2)
    mem.remember_many(_few_each(6))
    real, calls = postings.flush, list[Sequence[str]]()

    def flush(connection: psycopg.Connection[Any], namespaces: Sequence[str], *rest: Any) -> int:
        calls.append(namespaces)
        count = real(connection, namespaces, *rest)
        if len(calls) == 3:  # the second group; the third call finds nothing more in the first
            raise RuntimeError("power cut")
        return count

    monkeypatch.setattr(postings, "flush", flush)
    with pytest.raises(RuntimeError, match="power cut"):
        mem.maintain()
    assert sql(mem, "SELECT namespace, count(*) FROM pending GROUP BY 1 ORDER BY 1") == [
        (f"n{n:03}", 10) for n in range(2, 6)
    ]
    check(mem)
    assert mem.maintain()["folded"] == 40
    check(mem)


def test_every_namespace_of_a_batch_is_locked_in_order_before_any_posting_is_written(
    mem: Semmem, monkeypatch: pytest.MonkeyPatch
) -> None:
    items = [*_few_each(1, 70), *({**item, "namespace": "a"} for item in _few_each(1, 2))]
    mem.remember_many([{"text": "Ada met owl 3.", "namespace": name} for name in ("a", "n000")])
    real, free = postings.copy_segments, list[Any]()

    def copy_segments(connection: psycopg.Connection[Any], segments: Mapping[str, Any]) -> None:
        assert list(segments) == ["n000"]
        free.append(sql(mem, "SELECT namespace FROM namespace FOR UPDATE SKIP LOCKED"))
        real(connection, segments)

    monkeypatch.setattr(postings, "copy_segments", copy_segments)
    mem.remember_many(items, batch_size=100)
    assert free == [[]]


@pytest.mark.parametrize("step", ["numbers_for", "index_many"])
def test_the_namespaces_of_a_batch_are_locked_in_the_order_of_their_names(
    mem: Semmem, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """The row ids are taken before the transaction, and the rest is done under the locks that it holds to its end."""
    items = [{"text": f"Ada met owl {n}.", "namespace": "cab"[n % 3]} for n in range(30)]
    mem.remember_many(items[:20])
    real, free = getattr(write, step), list[Future[list[Any]]]()
    locked = "SELECT namespace FROM namespace ORDER BY 1 FOR UPDATE SKIP LOCKED"
    options = {"autocommit": True, "options": "-c search_path=semmem,public"}
    with ThreadPoolExecutor(1) as pool, psycopg.connect(mem.store.url, **options) as holder:

        def look() -> list[Any]:
            until(lambda: sql(mem, "SELECT count(*) FROM pg_locks WHERE NOT granted") == [(1,)])
            found = sql(mem, locked)
            holder.execute("ROLLBACK")
            return found

        def held(*arguments: Any) -> Any:
            holder.execute("BEGIN")
            holder.execute("SELECT FROM namespace WHERE namespace = 'b' FOR UPDATE")
            free.append(pool.submit(look))
            return real(*arguments)

        monkeypatch.setattr(write, step, held)
        mem.remember_many([{**item, "id": f"later {n}"} for n, item in enumerate(items)])
        assert free[0].result(60) == [("c",)]


@pytest.mark.nodes
def test_writers_of_the_same_namespaces_in_whatever_order_never_wait_in_a_circle(
    pair: tuple[Semmem, Semmem], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "_TRIES", 1)  # the server ends one of those who wait in a circle
    monkeypatch.setattr(postings, "FLUSH_AT", 8)
    mem, _ = pair
    spaces = [f"n{n}" for n in range(6)]

    def writes(writer: int) -> None:
        chance = random.Random(writer)
        for batch in range(6):
            many = chance.sample(spaces, 2)  # these are flushed at once, and the others are not
            order = chance.sample([*spaces, *many * 10], 26)
            items = [
                {"id": f"{writer}-{batch}-{n}", "namespace": name, "text": sentence(chance)}
                for n, name in enumerate(order)
            ]
            if batch % 2:
                mem.remember_many(iter(items), batch_size=13)
            else:
                mem.remember_many(items, batch_size=100)
            if batch == 3:
                mem.maintain()

    with ThreadPoolExecutor(3) as pool:
        for done in [pool.submit(writes, writer) for writer in range(3)]:
            done.result(120)
    assert mem.stats().memories == 3 * 6 * 26
    mem.maintain()
    check(mem)


@pytest.mark.nodes
def test_one_full_namespace_or_one_of_another_language_refuses_the_whole_batch(store_url: str) -> None:
    with semmem.connect(store_url, embedder="hashing") as mem:
        mem.namespace_limits("n003", most_memories=1)
        with pytest.raises(NamespaceFull, match="n003"):
            mem.remember_many(_few_each(20))
        assert mem.remember_many(_few_each(20, 20)).remembered == 20
        before = mem.stats().memories
    with semmem.connect(store_url, embedder="hashing", language="german") as mem:
        with pytest.raises(InvalidInput, match="n000"):
            mem.remember_many([{**item, "id": f"{item['id']} de"} for item in _few_each(40)])
        assert mem.stats().memories == before


def test_a_batch_that_lost_its_connection_is_stored_beside_a_drop_that_was_interrupted(
    mem: Semmem, monkeypatch: pytest.MonkeyPatch
) -> None:
    mem.remember_many(_few_each(20))
    mem.store.transaction(lambda c: forget.begin_drop(c, "n003"))
    real, calls = write.write, list[int]()

    def lost(connection: psycopg.Connection[Any], *rest: Any, **more: Any) -> Any:
        calls.append(connection.info.backend_pid)
        written = real(connection, *rest, **more)
        if len(calls) == 1:
            sql(mem, "SELECT pg_terminate_backend(%s, 60000)", calls[0])
        return written

    monkeypatch.setattr(write, "write", lost)
    assert mem.remember_many([{**item, "id": f"{item['id']} new"} for item in _few_each(20)]).remembered == 60
    assert len(calls) == 2
    mem.maintain()
    assert mem.stats(namespace="n003").memories == 3
    assert mem.stats().memories == 117
