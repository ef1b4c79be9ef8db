"""What memories are compared by is packed by maintain; nobody who writes, compares or forgets can tell."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import psycopg
import pytest

import semmem
from semmem.client.memory import Semmem
from semmem.stores.postgres import links, migrate, upkeep
from semmem.stores.sql_files import migrations
from tests.stores.audit import alike, check, sql


def items(first: int, last: int) -> list[dict[str, Any]]:
    return [
        {"id": f"m{n}", "text": f"Zebra{n} lives in room {n} of the house of Ada{n // 2} and eats gnu{n} soup."}
        for n in range(first, last)
    ]


def count(mem: Semmem) -> tuple[int, int]:
    """Return how many keys have rows of their own, and how many are packed, each for each of its memories."""
    apart, packed = alike(mem)
    return apart.total(), packed.total()


def like(mem: Semmem, keys: Sequence[int], upto: int = 1_000_000) -> list[tuple[int, int]]:
    """Return (row id, how many of the keys it has) of the memories before a number, as they are ranked."""
    asked = {"namespace": "default", "keys": list(keys), "ords": [upto] * len(keys), "newest": 20, "upto": 0}
    found = mem.store.run(lambda c: links.similar_of(c.execute(links._SQL["likeness_find"], asked)))
    sql(mem, "DELETE FROM uncompared WHERE ord = %s", upto)  # no memory has that number
    held = alike(mem)[0] + alike(mem)[1]
    return [(one.row_id, sum(held["default", key, one.row_id] for key in keys)) for one in found.get(upto, ())]


def pack(mem: Semmem, steps: int) -> int:
    """Pack all keys in so many steps; return how many rows went."""
    since, packed = links.FIRST_KEY, 0
    while since <= links.LAST_KEY:
        since, went = mem.store.transaction(partial(links.pack, namespaces=["default"], since=since, steps=steps))
        packed += went
        check(mem)
    return packed


def test_many_memories_are_stored_with_the_keys_that_each_has_alone(mem: Semmem) -> None:
    mem.remember_many(items(0, 20), batch_size=20)  # by COPY
    for item in items(0, 20):
        mem.remember(**item, namespace="one by one")

    def rows(namespace: str) -> list[tuple[Any, ...]]:
        return sql(
            mem,
            "SELECT id, l.keys, (SELECT array_agg(k.key ORDER BY k.key) FROM likeness_key k "
            "WHERE k.namespace = m.namespace AND k.ord = m.ord) FROM memory m JOIN likeness l USING (namespace, ord) "
            "WHERE namespace = %s ORDER BY id",
            namespace,
        )

    assert len(rows("default")) == 20
    assert rows("default") == rows("one by one")
    assert all(keys == apart for _, keys, apart in rows("default"))


def test_memories_of_other_titles_are_not_read_unless_one_may_be_linked(mem: Semmem) -> None:
    text = "The lamp was lit in spring."
    mem.remember_many([{"id": f"m{n}", "title": f"Lamp {n}", "text": text} for n in range(4)])
    row_id, keys = sql(mem, "SELECT ord, keys FROM likeness ORDER BY ord DESC LIMIT 1")[0]
    asked = {"namespace": "default", "keys": keys, "ords": [row_id] * len(keys), "newest": 20, "upto": 0}

    def found() -> list[str]:
        each = mem.store.run(lambda c: links.similar_of(c.execute(links._SQL["likeness_find"], asked)))
        return [one.id for one in each.get(row_id, ())]

    assert found() == []
    assert sql(mem, "SELECT count(*) FROM uncompared") == [(0,)]
    mem.update("m0", title="Lamp 3")  # gets a later row id
    asked |= {"upto": 1_000_000}
    assert found() == ["m0", "m2", "m1"]
    mem.update("m0", title=None)
    assert found() == ["m0", "m2", "m1"]
    assert sql(mem, "SELECT ord FROM uncompared") == [(row_id,)]


def test_maintain_rewrites_the_keys_where_a_fifth_of_them_has_been_packed(
    embedded_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(upkeep, "_MANY", 10)
    shared = "The house stands by the river and its garden has seven old pear trees."
    with semmem.connect(embedded_url, embedder="none") as mem:
        own = "Zebra{0} eats gnu{0} soup. Quince{0} paints door{0} blue."
        mem.remember_many([{"id": f"m{n}", "text": f"{shared} {own.format(n)}"} for n in range(40)])

        def rows_and_file() -> tuple[int, int]:
            read = "SELECT count(*), pg_relation_filenode('likeness_key')::int8 FROM likeness_key"
            rows, file = mem.store.run(lambda c: c.execute(read).fetchone())
            return rows, file

        rows, file = rows_and_file()
        assert rows == 560
        mem.maintain()
        left, other = rows_and_file()
        assert left == 404  # so 156 were packed: more than a fifth, and fewer than half
        assert other != file


@pytest.mark.slow
def test_what_is_packed_is_compared_and_forgotten_as_before(mem: Semmem) -> None:
    mem.remember_many(items(0, 80), batch_size=80)
    apart, none = count(mem)
    assert (apart > 500, none) == (True, 0)
    some = sorted({key for _, key, _ in alike(mem)[0]})[::3]
    before = [like(mem, some), like(mem, some, upto=40)]
    assert len(before[0]) == 20
    mem.maintain()
    left, packed = count(mem)
    assert left + packed == apart
    common = sql(mem, "SELECT key FROM likeness_key GROUP BY key HAVING count(*) > 16")
    assert left == sql(mem, "SELECT count(*) FROM likeness_key WHERE key = ANY(%s)", [key for (key,) in common])[0][0]
    assert [like(mem, some), like(mem, some, upto=40)] == before
    ids = [f"m{number}" for number in range(0, 80, 3)]
    gone = {row_id for (row_id,) in sql(mem, "SELECT ord FROM memory WHERE id = ANY(%s)", [*ids, "m1"])}
    assert not gone.isdisjoint(row_id for row_id, _ in like(mem, some))
    for number in range(0, 80, 3):
        mem.forget(f"m{number}", hard=number % 2 == 0)
    mem.update("m1", text="Nothing of what it said.")
    check(mem)
    assert {row_id for row_id, _ in like(mem, some)}.isdisjoint(gone)
    mem.restore_memory("m3")
    mem.drop_namespace("default")
    mem.maintain()
    assert [sql(mem, f"SELECT count(*) FROM {table}")[0][0] for table in ("likeness", "likeness_key")] == [0, 0]
    assert count(mem) == (0, 0)


def test_a_text_that_contradicts_or_repeats_a_packed_one_is_linked_to_it(mem: Semmem) -> None:
    mem.remember("The staging server listens on port 8080.", id="old")
    mem.remember("A long note of how the red kettle was mended with solder, wire and much patience.", id="kettle")
    mem.maintain()
    assert count(mem)[0] == 0
    mem.remember("The staging server listens on port 9090.", id="new")
    mem.remember("A long note of how the red kettle was mended with solder, wire and some patience.", id="again")
    made = {(link.from_id, link.type, link.to_id) for id in ("old", "kettle") for link in mem.links(id)}
    assert made == {("new", "contradicts", "old"), ("again", "see-also", "kettle")}


def test_keys_that_more_than_sixteen_memories_have_get_rows_of_their_own_again(mem: Semmem) -> None:
    text = "The owl of house {} hoots at noon."
    mem.remember_many([{"id": f"o{n}", "text": text.format(n)} for n in range(16)], batch_size=16)
    mem.maintain()
    assert count(mem)[0] == 0
    mem.remember_many([{"id": f"o{n}", "text": text.format(n)} for n in range(16, 30)], batch_size=14)
    mem.maintain()
    apart, _ = alike(mem)
    common = {key for _, key, _ in apart}
    assert common
    assert all(sum(1 for _, one, _ in apart if one == key) == 30 for key in common)
    before = count(mem)
    mem.maintain()
    assert count(mem) == before
    check(mem)


@pytest.mark.slow
def test_rows_get_narrower_as_keys_get_more_and_a_step_that_was_left_out_is_made_up_for(mem: Semmem) -> None:
    mem.remember_many(items(0, 40), batch_size=40)
    assert pack(mem, 1) > 0
    first = count(mem)[1]
    wide = {shift for (shift,) in sql(mem, "SELECT DISTINCT shift FROM packed_likeness")}
    mem.remember_many(items(40, 400), batch_size=400)
    some = sorted({key for _, key, _ in alike(mem)[0]})[::50]
    before = like(mem, some)
    half, _ = mem.store.transaction(partial(links.pack, namespaces=["default"], since=links.FIRST_KEY, steps=2))
    assert half == 0
    assert like(mem, some) == before
    narrow = {shift for (shift,) in sql(mem, "SELECT DISTINCT shift FROM packed_likeness")}
    assert (len(narrow), min(narrow) < min(wide)) == (2, True)
    check(mem)
    assert pack(mem, 1) > 0
    assert like(mem, some) == before
    assert sql(mem, "SELECT DISTINCT shift FROM packed_likeness") == [(min(narrow),)]
    assert count(mem)[1] > 4 * first


def test_two_keys_of_a_memory_with_the_same_lower_bits_are_one(mem: Semmem) -> None:
    mem.remember("Nobody says this twice today.", id="a")
    ((row_id,),) = sql(mem, "SELECT ord FROM memory")
    mem.store.life.similar("default", {row_id: [5, 5 + (1 << 32), -7]})
    assert alike(mem)[0] == {("default", 5, row_id): 1, ("default", -7, row_id): 1}


def test_keys_of_an_older_schema_come_over(store_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    known = [step for step in migrations("postgres") if step[0] <= 10]
    with psycopg.connect(store_url, autocommit=True) as connection:
        connection.execute("DROP SCHEMA semmem CASCADE")
        monkeypatch.setattr(migrate, "migrations", lambda backend: known)
        assert migrate.migrate(store_url) == 10
        monkeypatch.undo()
        rows = "('one', 5, 1), ('one', 4294967301, 1), ('one', -7, 1), ('one', -7, 2), ('two', 8589934591, 1)"
        connection.execute(f"INSERT INTO semmem.likeness (namespace, key, ord) VALUES {rows}")
    migrate.migrate(store_url)
    assert sql(store_url, "SELECT namespace, ord, keys FROM likeness ORDER BY 1, 2") == [
        ("one", 1, [-7, 5]), ("one", 2, [-7]), ("two", 1, [-1]),
    ]  # fmt: skip
    assert alike(store_url)[0].total() == 4


@pytest.mark.slow
def test_a_writer_reads_few_rows_of_keys_also_in_a_namespace_far_larger_than_the_others(store_url: str) -> None:
    """A plan that is made for any namespace takes each for one of the average size."""
    small = [{"id": f"s{n}", "text": f"Ada met Owl{n}.", "namespace": f"small{n % 400}"} for n in range(800)]
    large = [
        {"id": f"l{n}", "text": f"Note {n}: Owl{n} flew by quay {n % 83} and Mill{n}.", "namespace": "large"}
        for n in range(2_000)
    ]
    with semmem.connect(store_url, embedder="none", recipe="lexical", pool_size=1) as mem:
        mem.remember_many(small + large)
        mem.maintain()
        for n in range(8):  # more than it takes until a statement is prepared
            mem.remember(f"Owl{n} sat on quay {n}.", namespace="large", id=f"w{n}")
        before = rows_read(mem)
        mem.remember("Owl99 sat on quay 99.", namespace="large", id="last")
        assert rows_read(mem) - before <= 40


def rows_read(mem: semmem.Semmem) -> int:
    """Return how many rows of packed keys the only connection has read."""
    mem.store.run(lambda c: c.execute("SELECT pg_stat_force_next_flush()").fetchall())
    which = (
        "SELECT seq_tup_read + idx_tup_fetch FROM pg_stat_user_tables WHERE relid = 'semmem.packed_likeness'::regclass"
    )
    return int(mem.store.run(lambda c: c.execute(which).fetchone())[0])
