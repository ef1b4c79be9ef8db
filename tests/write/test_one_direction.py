"""What is stored of a memory depends on that memory alone; names are recognised when they are read."""

from __future__ import annotations

import itertools
import json
import random
import subprocess
import sys
import threading
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import semmem
from semmem.client.memory import Semmem
from semmem.concepts.names import name_of
from semmem.concepts.rules import extract
from semmem.legs.graph_names import recognised
from semmem.model.exchange import Extraction, Kind
from semmem.text.tokens import key
from tests.snapshots import names_of
from tests.stores.audit import check, sql
from tests.stores.test_graph_hash import df_is_exact, emptied, rebuilt

BABBAGE_ENGINE = key(Kind.NAME, ("engine", "of", "babbage"))
# "the Engine of Babbage" is a span by itself; "Engine of babbage" is a mention only where a memory is about it.
MENTION = "It is said that parts of the Engine of babbage were kept."
TITLED = {"id": "title", "title": "Engine of Babbage", "text": "It was never finished.", "created_at": "2026-01-31"}
WALK = semmem.recipe("graph", graph={"seeders": (), "neighbour": 0})


@pytest.fixture
def mem(store_url: str) -> Iterator[Semmem]:
    with semmem.connect(store_url, embedder="none", recipe="lexical", pool_size=6) as mem:
        yield mem


def mentions(mem: Semmem, id: str) -> set[int]:
    """Return the names that a memory is read to mention."""
    names = names_of(mem)
    forwards = mem.store.graph.forwards(["default"], mem.store.row_ids_of("default", id))
    entries = recognised(forwards, names.postings(forwards.candidates["key"], shared=True)).entries
    return set(entries["key"][(entries["kind"] == Kind.NAME) & (entries["mention"] > 0)].tolist())


def fill(count: int) -> list[dict[str, Any]]:
    return [{"id": f"fill{n}", "text": f"Plain words number {n}."} for n in range(count)]


# ---------------------------------------------------------------------- reindexing


@pytest.mark.parametrize("flushed", [False, True], ids=["pending", "flushed"])
def test_reindexing_replaces_what_a_memory_holds_and_nothing_else(mem: Semmem, flushed: bool) -> None:
    mem.remember("Tea and rum for Ada Lovelace.", id="a")
    mem.remember("Tea for Ada Byron.", id="b")
    if flushed:
        mem.maintain()
    (row_id,) = mem.store.row_ids_of("default", "a")
    new = extract("Rum, rum and cake for Ada Byron and the cat.")
    ties = [(key(Kind.NAME, ("ada",)), "likes", key(Kind.NAME, ("byron",)))]
    new = Extraction(new.keys, new.kinds, new.names, new.mentions, new.subjects, new.counts, new.length, ties)
    assert mem.store.reindex("default", [(row_id, new)]) == 1
    assert mem.store.reindex("default", [(row_id, new)]) == 0
    df_is_exact(mem)
    assert bool(sql(mem, "SELECT 1 FROM pending")) is not flushed
    assert sql(mem, "SELECT subject, predicate, object FROM relationship") == ties
    assert [hit.memory.id for hit in mem.recall("cake")] == ["a"]
    assert {hit.memory.id for hit in mem.recall("tea")} == {"b"}
    mem.maintain()
    df_is_exact(mem)
    mem.forget("a")
    df_is_exact(mem)
    assert sql(mem, "SELECT 1 FROM relationship") == []
    assert mem.store.reindex("default", [(row_id, new)]) == 0


# ---------------------------------------------------------------------- names that come and go


@pytest.mark.parametrize("flushed", [False, True], ids=["pending", "flushed"])
def test_a_name_is_mentioned_where_a_memory_is_about_it_whichever_came_first(mem: Semmem, flushed: bool) -> None:
    mem.remember(MENTION, id="old")
    assert BABBAGE_ENGINE not in mentions(mem, "old")
    mem.remember(**TITLED)
    mem.remember(MENTION, id="new")
    if flushed:
        mem.maintain()
    assert BABBAGE_ENGINE in mentions(mem, "old") & mentions(mem, "new")
    mem.forget("title")
    assert BABBAGE_ENGINE not in mentions(mem, "old") | mentions(mem, "new")
    df_is_exact(mem)


def test_the_walk_goes_from_a_mention_to_the_memory_that_bears_the_name(store_url: str) -> None:
    for resident_mb in (0, 64):
        with semmem.connect(emptied(store_url), embedder="none", resident_mb=resident_mb) as mem:
            mem.remember("Ada Lovelace wrote that parts of the Kelmar engine were kept.", id="mention")
            mem.remember_many(fill(5))
            before = mem.recall("Who knew Ada Lovelace?", recipe=WALK)
            assert [hit.id for hit in before] == ["mention"]
            mem.remember("It was never finished.", id="title", title="Kelmar engine")
            for _ in range(3):  # from memory, once it was asked often enough
                after = mem.recall("Who knew Ada Lovelace?", recipe=WALK)
                assert {hit.id for hit in after} == {"mention", "title"}
            assert "Ada Lovelace → mention" in str(after.explain("title"))
            assert "Kelmar engine → title" in str(after.explain("title"))
            mem.forget("title")
            assert [hit.id for hit in mem.recall("Who knew Ada Lovelace?", recipe=WALK)] == ["mention"]


def test_a_longer_name_takes_the_place_of_a_shorter_one(mem: Semmem) -> None:
    mem.remember(**TITLED)
    mem.remember("Later the Engine of babbage Hall was opened.", id="old")
    assert BABBAGE_ENGINE in mentions(mem, "old")
    mem.remember("It is closed.", id="hall", title="Engine of Babbage Hall")
    assert BABBAGE_ENGINE not in mentions(mem, "old")
    assert name_of("Engine of Babbage Hall") in mentions(mem, "old")


def test_a_name_of_stop_words_is_recognised(mem: Semmem) -> None:
    mem.remember("They saw The Who in Leeds.", id="old")
    mem.remember("The man who ran.", id="other")
    mem.remember("Live in 1970.", id="band", title="The Who")
    the_who = key(Kind.NAME, ("the", "who"))
    assert (the_who in mentions(mem, "old"), the_who in mentions(mem, "other")) == (True, False)


# ---------------------------------------------------------------------- any order, any number of writers


PEOPLE = ("Ada Lovelace", "Ada", "Lovelace hall", "The Who", "Engine of Babbage", "Babbage")
item = st.fixed_dictionaries({
    "text": st.lists(st.sampled_from((*PEOPLE, "met", "in", "saw", ".", "hall")), min_size=1, max_size=7).map(" ".join),
    "title": st.none() | st.sampled_from(PEOPLE),
})  # fmt: skip
_fresh = itertools.count()
ROWS = (
    "SELECT m.id, m.part, f.length, f.entries, f.candidates FROM semmem.memory m JOIN semmem.forward f "
    "USING (namespace, ord) WHERE m.namespace = %s ORDER BY 1, 2"
)


def stored(mem: Semmem, namespace: str) -> list[Any]:
    with psycopg.connect(mem.store.url) as connection:
        return connection.execute(ROWS, (namespace,)).fetchall()


@pytest.mark.slow
@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(item, min_size=1, max_size=8), st.randoms(use_true_random=False), st.integers(1, 3))
def test_any_order_batches_and_writers_store_the_same_rows_with_or_without_maintain(
    store_url: str, items: list[dict[str, Any]], chance: random.Random, writers: int
) -> None:
    with semmem.connect(store_url, recipe="lexical", embedder="none", pool_size=2) as mem:
        one, other = f"one{next(_fresh)}", f"other{next(_fresh)}"
        named = [{**item, "id": f"m{at}", "created_at": "2026-01-31"} for at, item in enumerate(items)]
        mem.remember_many(named, namespace=one)
        shuffled = chance.sample(named, len(named))
        threads = [
            threading.Thread(target=lambda own: [mem.remember(**i, namespace=other) for i in own], args=(some,))
            for some in (shuffled[at::writers] for at in range(writers))
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert stored(mem, one) == stored(mem, other)
        assert mem.graph_hash(namespace=one) == mem.graph_hash(namespace=other)
        mem.maintain()
        assert stored(mem, one) == stored(mem, other)
        assert mem.graph_hash(namespace=one) == mem.graph_hash(namespace=other)


WRITER = """
import json, sys, semmem
with semmem.connect(sys.argv[1], embedder="none", recipe="lexical", pool_size=2) as mem:
    for at, item in enumerate(json.loads(sys.argv[2])):
        mem.remember(**item, namespace="shared")
        if at % 5 == 4:
            mem.maintain()
"""


@pytest.mark.nodes
def test_two_processes_store_what_one_stores(mem: Semmem, store_url: str) -> None:
    texts = (MENTION, "Ada saw it.", "The Engine of babbage and Ada Lovelace met Ada.", "The Who sang.")
    items = [
        {"id": f"m{n}", "text": texts[n % 4], "title": (None, *PEOPLE)[n % 7], "created_at": "2026-01-31"}
        for n in range(20)
    ]
    command = [sys.executable, "-c", WRITER, store_url]
    processes = [subprocess.Popen([*command, json.dumps(some)]) for some in (items[::2], items[::-2])]
    assert [process.wait(120) for process in processes] == [0, 0]
    mem.remember_many(items, namespace="alone")
    assert stored(mem, "shared") == stored(mem, "alone")
    assert mem.graph_hash(namespace="shared") == mem.graph_hash(namespace="alone")


# ---------------------------------------------------------------------- stores of an earlier schema


EARLIER = """
ALTER TABLE semmem.forward DROP COLUMN candidates;
CREATE TABLE semmem.alias_change (namespace text, number bigint, keys bigint[], waiting bigint[], looked boolean);
UPDATE semmem.posting p SET lone = true WHERE subjects > 0
    AND (SELECT count(*) FROM semmem.posting o WHERE o.namespace = p.namespace AND o.key = p.key) = 1 AND n < 2;
ALTER TABLE semmem.recall_log DROP COLUMN interface, DROP COLUMN agent, DROP COLUMN facts;
CREATE TABLE semmem.judgement (namespace text, recall_id text, id text, useful boolean, made_by text, at timestamptz);
DROP INDEX semmem.memory_by_change, semmem.access_by_time, semmem.recall_log_by_memory, semmem.recall_log_by_recall,
           semmem.memory_apart;
DROP TABLE semmem.audit, semmem.rate_bucket;
ALTER TABLE semmem.namespace DROP COLUMN settled;
DELETE FROM semmem.migration WHERE number >= 19;
"""


def test_a_store_of_the_schema_before_is_migrated_and_maintain_derives_its_memories_again(
    store_url: str,
) -> None:
    items = [TITLED, {"id": "old", "text": MENTION, "created_at": "2026-01-31"}, *fill(70)]
    with semmem.connect(store_url, embedder="hashing") as mem:
        mem.remember_many(items)
        mem.maintain()
        whole = stored(mem, "default")
    with psycopg.connect(store_url, autocommit=True) as connection:
        connection.execute(EARLIER)
        connection.execute("UPDATE semmem.namespace SET makers = replace(makers::text, '3 rules', '2 rules')::jsonb")
    with semmem.connect(store_url, embedder="hashing") as mem:
        assert mem.stats().stale == 72
        assert BABBAGE_ENGINE not in mentions(mem, "old")
        assert mem.maintain()["rebuilt"] == 72
        assert BABBAGE_ENGINE in mentions(mem, "old")
        assert stored(mem, "default") == whole
        check(mem)


@pytest.mark.nodes
@pytest.mark.slow
def test_writers_forgetting_flushing_and_reading_again_side_by_side_lose_nothing(mem: Semmem) -> None:
    texts = (MENTION, "Ada saw it.", "The Engine of babbage and Ada Lovelace met Ada.", "It was Ada lovelace's engine.")
    titles = (None, None, "Engine of Babbage", "Ada", "Ada Lovelace", "It")
    kept: list[dict[str, dict[str, Any]]] = [{} for _ in range(4)]
    failed: list[BaseException] = []

    def write(number: int) -> None:
        chance = random.Random(number)
        mine = kept[number]
        try:
            for n in range(25):
                some = [
                    {"id": f"w{number}-{n}-{i}", "text": chance.choice(texts), "title": chance.choice(titles),
                     "created_at": "2026-01-31"}
                    for i in range(chance.choice((1, 2, 70 if n % 12 == 5 else 3)))
                ]  # fmt: skip
                mem.remember_many(some)
                mine.update({item["id"]: item for item in some})
                while len(mine) > 12 and chance.random() < 0.7:
                    gone = chance.choice(sorted(mine))
                    del mine[gone]
                    mem.forget(gone)
                if n % 9 == 8:
                    mem.maintain()
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(100)
    assert failed == []
    df_is_exact(mem)
    everything = {id: item for mine in kept for id, item in mine.items()}
    assert mem.stats(namespace="default").memories == len(everything)
    assert mem.graph_hash() == rebuilt(mem, everything, 50)


# ---------------------------------------------------------------------- everything anew


def test_a_rebuild_finds_again_what_was_lost_and_changes_nothing_else(mem: Semmem) -> None:
    mem.remember_many([TITLED, *({"id": f"old{n}", "text": f"{MENTION} {n}"} for n in range(80)), *fill(10)])
    whole = mem.graph_hash()
    (row_id,) = mem.store.row_ids_of("default", "old7")
    mem.store.reindex("default", [(row_id, extract("Something else."))])
    assert mem.graph_hash() != whole
    seen: list[int] = []
    assert mem.rebuild(extract=True, progress=seen.append) == semmem.Rebuilt(read=91, changed=1)
    assert mem.graph_hash() == whole
    assert seen[-1] == 91
    df_is_exact(mem)


def test_the_order_of_remembering_decides_no_hit_of_the_walk(mem: Semmem) -> None:
    chance = random.Random(3)
    people = ("Ada Lovelace", "Charles Babbage", "Mary Somerville", "Augustus De Morgan")
    items = [
        {"id": f"m{n}", "text": " wrote to ".join(chance.choices(people, k=3)), "title": chance.choice((None, *people)),
         "session": f"s{n % 5}", "position": n, "created_at": "2026-01-31"}
        for n in range(60)
    ]  # fmt: skip
    answers = set()
    for turn in range(3):
        chance.shuffle(items)
        mem.remember_many(items, namespace=f"n{turn}", batch_size=7)
        mem.maintain()
        found = mem.recall("What did Ada Lovelace write to Babbage?", namespace=f"n{turn}", recipe="graph", limit=20)
        answers.add(tuple((hit.memory.id, round(hit.score, 9)) for hit in found))
    assert len(answers) == 1
    assert len(next(iter(answers))) == 20
