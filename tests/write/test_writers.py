"""Writing: idempotent, whole batches, bounded memory, and nothing left of what was forgotten."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import psycopg
import pytest

import semmem
from semmem.client.memory import Semmem
from semmem.extractors import Rules
from semmem.model.errors import Conflict, InvalidInput
from semmem.stores.packed_postings import POSTING
from semmem.stores.postgres import postings, upkeep
from semmem.stores.postgres import store as postgres_store
from semmem.stores.postgres.encoding import register_arrays
from semmem.stores.postgres.postings import COMPACT_AT, FLUSH_AT
from tests.stores.audit import check, contents, sql
from tests.write.sentences import items, sentence

TABLES = "SELECT tablename::text FROM pg_tables WHERE schemaname = 'semmem' AND tablename <> 'migration' ORDER BY 1"


@pytest.fixture
def mem(store_url: str) -> Iterator[Semmem]:
    """A Semmem with the hashing embedder on an empty store."""
    with semmem.connect(store_url, embedder="hashing", pool_size=3, keep_forgotten_days=0) as mem:
        yield mem


def flush(mem: Semmem, namespace: str = "default") -> None:
    """Flush what is pending, and compact nothing."""
    with psycopg.connect(mem.store.url, options="-c search_path=semmem,public") as connection:
        register_arrays(connection)
        while postings.flush(connection, [namespace]):
            pass


# ---------------------------------------------------------------------- idempotence and conflicts


def test_remembering_the_same_again_returns_what_is_stored_and_stores_nothing(mem: Semmem) -> None:
    first = mem.remember("Tea at four.", id="a", tags=["x"], metadata={"k": 1})
    again = mem.remember("Tea at four.", id="a", tags=["x"], metadata={"k": 1})
    assert again == first
    assert mem.stats().memories == 1
    check(mem)


def test_remembering_other_content_under_the_same_id_names_update_and_changes_nothing(mem: Semmem) -> None:
    first = mem.remember("Tea at four.", id="a")
    changes: dict[str, dict[str, Any]] = {
        "another title": {"title": "Tea"},
        "another importance": {"importance": 0.6},
        "other tags": {"tags": ["x"]},
        r"other metadata \('k'\)": {"metadata": {"k": 1}},
        r"other metadata \('k', 'l', 'm', …\)": {"metadata": {"k": 1, "l": 1, "m": 1, "n": 1}},
        "another title, author and tags": {"title": "Tea", "author": "Ada", "tags": ["x"]},
    }
    for named, change in changes.items():
        with pytest.raises(Conflict, match=rf"The id 'a' is already .* with {named}; call update to change it\."):
            mem.remember("Tea at four.", id="a", **change)
    with pytest.raises(Conflict, match="call update"):
        mem.remember("Rum at four.", id="a")
    assert mem.get("a") == first
    check(mem)


def test_importing_a_file_twice_is_the_same_as_once(mem: Semmem) -> None:
    given = items(FLUSH_AT + 20)
    assert mem.remember_many(given, batch_size=50).remembered == len(given)
    before = contents(mem)
    report = mem.remember_many(given, batch_size=70)
    assert (report.remembered, report.unchanged, report.rejected) == (0, len(given), ())
    assert contents(mem) == before
    check(mem)


def test_what_is_remembered_is_at_once_recalled_by_every_leg(mem: Semmem) -> None:
    mem.remember("Ada Lovelace keeps a grey owl.", id="a")
    mem.remember("A grey owl hunts at night.", id="b")
    found = mem.recall("Ada Lovelace's owl")
    assert found[0].memory.id == "a"
    assert set(found[0].legs) == {"lexical", "dense", "graph"}
    assert dict(found.degraded) == {}


# ---------------------------------------------------------------------- flushing and compaction


def test_pending_memories_are_folded_by_the_writer_that_makes_them_enough(mem: Semmem) -> None:
    given = items(FLUSH_AT + 6)
    mem.remember_many(given[: FLUSH_AT - 1], batch_size=FLUSH_AT - 1)
    assert mem.stats().pending == FLUSH_AT - 1
    check(mem)
    mem.remember_many(given[FLUSH_AT - 1 : FLUSH_AT], batch_size=1)
    assert mem.stats().pending == 0
    check(mem)
    mem.remember_many(given[FLUSH_AT:])
    assert mem.stats().pending == 6
    check(mem)


def test_pending_memories_are_counted_of_each_namespace(mem: Semmem) -> None:
    mem.remember_many(items(3), namespace="three")
    mem.remember_many(items(2), namespace="two")
    assert [mem.stats(namespace=name).pending for name in ("three", "two", None)] == [3, 2, 5]


def test_an_estimate_of_concepts_is_the_same_before_and_after_memories_are_folded(
    mem: Semmem, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (("_COUNTED", 0), ("_FEWEST", 0), ("_SAMPLED", 10)):  # by half of the keys
        monkeypatch.setattr(postgres_store, name, value)
    mem.remember_many(items(30))
    pending = mem.stats()
    mem.maintain()
    folded = mem.stats()
    assert (pending.pending, folded.pending, pending.estimated) == (30, 0, ("concepts", "mentions"))
    assert 0 < pending.concepts == folded.concepts


def test_a_large_batch_goes_straight_into_the_postings(mem: Semmem) -> None:
    mem.remember_many(items(FLUSH_AT + 1), batch_size=10_000)
    assert mem.stats().pending == 0
    check(mem)


def test_the_batch_size_changes_nothing_that_is_stored(mem: Semmem, store_url: str) -> None:
    given = items(FLUSH_AT + 30)  # some with titles, whose names memories before and after them mention
    for namespace, size in (("a", 7), ("b", FLUSH_AT), ("c", 1000)):
        mem.remember_many(given, namespace=namespace, batch_size=size)
    mem.maintain()
    check(mem)
    found = contents(mem)
    ours = {
        name: {k[1:]: [(r[0][1:], *r[1:]) for r in v] for k, v in found["postings"].items() if k[0] == name}
        for name in "abc"
    }
    assert ours["a"] == ours["b"] == ours["c"]
    assert len({(n, length) for _, n, length in found["tally"]}) == 1


def test_memories_without_a_word_are_stored_folded_and_forgotten_like_others(mem: Semmem) -> None:
    mem.remember("!?", id="a")
    mem.maintain()
    mem.remember_many([{"id": str(n), "text": "👍"} for n in range(FLUSH_AT + 1)], batch_size=1000)
    check(mem)
    assert mem.stats().memories == FLUSH_AT + 2
    assert mem.forget("a") == 1
    check(mem)


def test_compaction_joins_segments_and_changes_no_content(mem: Semmem, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postings, "SEGMENT_FULL", 64)  # so that a common key needs several rows
    for batch in range(12):
        mem.remember_many(items(240)[20 * batch : 20 * batch + 20])
        flush(mem)
    before = contents(mem)
    many = sql(mem, "SELECT count(*) FROM posting WHERE NOT lone")[0][0]
    mem.maintain()
    assert sql(mem, "SELECT count(*) FROM posting")[0][0] < many * 0.6
    assert 64 <= max(n for (n,) in sql(mem, "SELECT length(entries) / 12 FROM posting")) < 128
    assert contents(mem) == before
    check(mem)
    mem.forget("m100")
    check(mem)


def test_maintain_joins_a_range_of_keys_at_a_time_and_leaves_rows_that_are_alone(mem: Semmem) -> None:
    for batch in range(3):
        mem.remember_many(items(240)[20 * batch : 20 * batch + 20])
        flush(mem)
    mem.remember_many([{"id": f"gnu{n}", "text": "Gnus graze."} for n in range(2)])
    flush(mem)
    before = contents(mem)
    several = "SELECT key FROM posting WHERE NOT lone GROUP BY key HAVING count(*) > 1"
    alone = f"SELECT key, xmin::text FROM posting WHERE NOT lone AND key NOT IN ({several})"
    rows, untouched = len(sql(mem, several)), set(sql(mem, alone))
    assert rows > 20
    assert untouched
    due = mem.store.run(lambda c: upkeep.unsettled(c, {"default": 0}))
    due["default"] = due["default"]._replace(packs=False)
    after, joined, _ = mem.store.transaction(lambda c: upkeep.settle(c, {"default": postings.FIRST_KEY}, 2, due))
    assert abs(after["default"]) < 3
    written = joined["default"]
    assert 0 < written == rows - len(sql(mem, several))  # and here maintain is interrupted
    assert contents(mem) == before
    check(mem)
    assert len(sql(mem, "SELECT segment FROM fresh")) == 4
    assert mem.maintain()["joined"] == rows - written
    assert sql(mem, several) == sql(mem, "SELECT segment FROM fresh") == []
    assert untouched <= set(sql(mem, alone))
    assert contents(mem) == before
    check(mem)
    assert mem.maintain()["joined"] == 0


def test_compaction_as_writers_do_it_keeps_a_key_within_a_few_rows(
    mem: Semmem, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postings, "FLUSH_AT", 8)
    for batch in range(12 * COMPACT_AT):  # rows of 8 and of 1 memory by turns, so that the newest is always a small one
        common = 8 if batch % 2 == 0 else 1
        mem.remember_many([{"text": "tea" if n < common else "rum", "id": f"{batch}-{n}"} for n in range(8)])
    # At most COMPACT_AT - 1 newer rows, and older ones that more than double: 216 memories in 48 segments hold "tea".
    rows = sql(mem, "SELECT key, count(*) FROM posting GROUP BY key ORDER BY 2 DESC")
    assert rows[0][1] <= COMPACT_AT - 1 + 7
    check(mem)


def test_the_writer_of_a_bulk_joins_only_keys_with_several_fresh_rows(mem: Semmem) -> None:
    words = ["rum"] * 4 + ["tea", "tea", "rum", "rum"] * 3 + ["tea"] * 4
    given = [{"id": f"{n:02}", "text": word} for n, word in enumerate(words)]
    for batch in (given[:10], given[10:]):
        mem.remember_many(batch)
    for at, size in enumerate((2, 2, 4, 4, 4, 2, 2)):  # "tea" in five fresh segments, "rum" in three and two older ones
        assert mem.store.transaction(lambda c, size=size: postings.flush(c, ["default"], size)) == size
        if at == 1:
            mem.store.transaction(lambda c: postings.mark_merged(c, postings.fresh_segments(c, ["default"])))
    rows = "SELECT count(*) FROM posting WHERE NOT lone GROUP BY key ORDER BY key"
    before = contents(mem)
    assert [count for (count,) in sql(mem, rows)] == [5, 5]
    assert mem.store.transaction(lambda c: postings.compact(c, "default", bulk=True)) == 1
    assert sorted(count for (count,) in sql(mem, rows)) == [1, 5]
    assert (sql(mem, "SELECT segment FROM fresh"), contents(mem)) == ([], before)
    assert mem.maintain()["joined"] == 1
    assert [count for (count,) in sql(mem, rows)] == [1, 1]
    assert contents(mem) == before
    check(mem)


# ---------------------------------------------------------------------- forgetting


def bytes_anywhere(mem: Semmem, needle: bytes) -> list[str]:
    """Return the tables in which ``needle`` stands, in a text, a name or packed bytes."""
    found = []
    for (table,) in sql(mem, TABLES):
        for (row,) in sql(mem, f"SELECT t::text FROM {table} t"):
            if needle in row.encode() or needle.hex() in row:
                found.append(table)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("flushed", [False, True], ids=["pending", "flushed"])
def test_a_forgotten_memory_leaves_no_trace_in_any_table(mem: Semmem, flushed: bool) -> None:
    kept = items(60)
    long = " ".join(f"Xanthippe number {n} drinks hemlock." for n in range(80))
    secret = {"id": "secret-id", "text": long, "title": "Xanthippe Zyx", "author": "Zyxauthor", "session": "Zyxsession",
              "tags": ["zyxtag"], "metadata": {"zyx": 1}, "source": "zyx.md"}  # fmt: skip
    mem.remember_many(kept[:30])
    mem.remember_many([secret], namespace="default")
    mem.remember("Xanthippe owl fox.", id="secret-too")
    mem.remember_many(kept[30:])
    mem.remember(long, namespace="secret-space", id="other")
    if flushed:
        mem.maintain()
    held = "SELECT ord FROM memory WHERE namespace = 'default' AND text LIKE '%%Xanthippe%%'"
    row_ids = [o for (o,) in sql(mem, held)]
    assert len(row_ids) > 4
    assert "posting" in bytes_anywhere(mem, b"xanthipp") or not flushed
    mem.forget("secret-id")
    mem.forget("secret-too")
    mem.forget(namespace="secret-space", filters={"created_before": "9999-01-01"})
    for needle in (b"anthipp", b"hemlock", b"zyx", b"Zyx"):
        assert bytes_anywhere(mem, needle) == [], needle
    # whoever keeps a copy is told which id went, and a namespace outlives its last memory for a day
    assert set(bytes_anywhere(mem, b"secret")) == {"change", "namespace"}
    for (raw,) in sql(mem, "SELECT entries FROM posting WHERE namespace = 'default'"):
        assert not set(np.frombuffer(raw, dtype=POSTING)["ord"].tolist()) & set(row_ids)
    check(mem)
    mem.maintain()
    after = contents(mem)
    mem.forget(filters={"created_before": "9999-01-01"})
    assert [table for (table,) in sql(mem, TABLES) if sql(mem, f"SELECT count(*) FROM {table}")[0][0]] == [
        "change", "meta", "namespace",
    ]  # fmt: skip
    mem.remember_many(kept)
    mem.maintain()
    assert contents(mem) == after


def test_forgetting_by_filter_takes_exactly_what_matches(mem: Semmem) -> None:
    given = items(FLUSH_AT + 40)
    for n, item in enumerate(given):
        item["session"] = f"s{n % 3}"
    mem.remember_many(given, batch_size=50)
    wanted = len([i for i in given if i["session"] == "s1"])
    assert mem.forget(filters={"sessions": "s1"}, dry_run=True) == wanted
    assert mem.forget(filters={"sessions": "s1"}) == wanted
    assert mem.stats().memories == len(given) - wanted
    check(mem)
    assert not any(hit.memory.session == "s1" for hit in mem.recall("tea rum cat dog owl", limit=50))


def test_what_was_forgotten_for_good_is_counted_nowhere_and_the_tables_agree(mem: Semmem) -> None:
    mem.remember_many(items(30))
    mem.forget("m7", hard=True)
    assert mem.stats().memories == 29
    check(mem)


def test_forgetting_everything_needs_a_filter_and_an_unknown_id_is_said(mem: Semmem) -> None:
    mem.remember("Tea.", id="a")
    with pytest.raises(InvalidInput, match="Say what to forget"):
        mem.forget()
    with pytest.raises(semmem.NotFound, match="nothing was forgotten"):
        mem.forget("b")
    assert mem.stats().memories == 1


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 3])
def test_df_tally_and_vectors_are_exact_after_any_history(
    mem: Semmem, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postings, "FLUSH_AT", 12)  # so that a short history flushes often
    chance = random.Random(seed)
    model: dict[tuple[str, str], dict[str, Any]] = {}
    for step in range(50):
        namespace = chance.choice(["one", "two"])
        what = chance.random()
        if what < 0.55:
            many = chance.choice([1, 1, 2, 5, 15])
            new = [
                {
                    "id": f"m{chance.randrange(60)}",
                    "text": sentence(chance, chance.randrange(1, 15)),
                    "session": f"s{step}",
                }
                for _ in range(many)
            ]
            if chance.random() < 0.1:
                new[0]["text"] = sentence(chance, 400)  # long enough to be split
            fresh = {}
            for item in new:
                name = (namespace, item["id"])
                if name not in model and name not in fresh:
                    fresh[name] = item
            report = mem.remember_many(new, namespace=namespace, on_error="skip", batch_size=chance.choice([1, 4, 100]))
            assert report.remembered == len(fresh)
            model |= fresh
        elif what < 0.8 and model:
            name = chance.choice(sorted(model))
            assert mem.forget(name[1], namespace=name[0]) == 1
            del model[name]
        elif what < 0.9:
            session = f"s{chance.randrange(step + 1)}"
            gone = [n for n, item in model.items() if n[0] == namespace and item["session"] == session]
            assert mem.forget(namespace=namespace, filters={"sessions": session}) == len(gone)
            for name in gone:
                del model[name]
        else:
            mem.maintain()
        if step % 10 == 9:
            check(mem)
    assert {(n, i) for n, i, part in sql(mem, "SELECT namespace, id, part FROM memory") if part == 0} == set(model)
    mem.maintain()
    check(mem)
    assert mem.stats().pending == 0


def test_a_vector_cannot_come_back_to_what_was_forgotten_meanwhile(mem: Semmem) -> None:
    memory = mem.remember("Tea.", id="a")
    (row_id,) = mem.store.row_ids_of("default", "a")
    mem.forget("a")
    mem.store.vectors.add_vectors([("default", row_id, np.ones(256, dtype=np.float32) / 16)])
    assert sql(mem, "SELECT count(*) FROM embedding") == [(0,)]
    assert memory.id == "a"


def test_rules_find_the_same_in_a_batch_of_one_and_of_many() -> None:
    rules = Rules()
    text = "In 1843 Ada Lovelace met Charles Babbage in London; port 8080 stayed open."
    alone = rules.extract(text, "Ada Lovelace")
    for _ in range(3):
        rules.extract("Something else about Rome.", None)
        assert rules.extract(text, "Ada Lovelace") == alone
