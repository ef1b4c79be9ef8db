"""Reads every table of a PostgreSQL store and proves what is derived against what was remembered."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeAlias

import numpy as np
import psycopg

from semmem.client.memory import Semmem
from semmem.stores.packed_postings import FORWARD, POSTING
from semmem.stores.postgres.upkeep import LONE_FULL
from semmem.stores.sqlite.resident import FileModels

__all__ = ["OTHERS", "alike", "check", "connections_left", "contents", "singleton", "sql"]

Where: TypeAlias = "Semmem | str | psycopg.Connection[Any]"
"""A Semmem on postgresql://, the conninfo of its database, or a connection to it."""

_THERE = ("written", "updated", "restored", "linked", "unlinked")
_FATES = {*((kind, True) for kind in _THERE), ("forgotten", False), ("unlinked", False)}
"""The last change of an id, and whether it is there; a link of what was forgotten softly can be taken away."""
OTHERS = """SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend' AND datname = current_database()
AND pid <> pg_backend_pid() AND left(application_name, 5) <> 'citus'"""
"""The connections of clients; the nodes of a store keep some to each other."""


@contextmanager
def _connected(where: Where) -> Iterator[psycopg.Connection[Any]]:
    """Yield a connection of its own: a statement more on it takes the server a tenth of what a connection more does."""
    if isinstance(where, psycopg.Connection):
        yield where
        return
    conninfo = where if isinstance(where, str) else where.store.url
    with psycopg.connect(conninfo, autocommit=True, options="-c search_path=semmem,public") as connection:
        yield connection


def sql(where: Where, statement: str, *parameters: Any) -> list[tuple[Any, ...]]:
    """Run one statement, on a connection of its own unless it is given one."""
    with _connected(where) as connection:
        cursor = connection.execute(statement, parameters, binary=True)  # type: ignore[arg-type]
        return cursor.fetchall() if cursor.description else []


def connections_left(where: Semmem | str, *, within_s: float = 100.0) -> int:
    """Return how many connections of others a database has; those that were closed get time to end in the server."""
    end = time.monotonic() + within_s
    while (count := int(sql(where, OTHERS)[0][0])) and time.monotonic() < end:
        time.sleep(0.05)
    return count


def singleton(mem: Where) -> dict[tuple[str, int], tuple[int, str, bytes]]:
    """Return (kind, name, entry) of each (namespace, key) in lone_posting; its rows are proven not to overlap."""
    found: dict[tuple[str, int], tuple[int, str, bytes]] = {}
    beyond: dict[str, int] = {}
    columns = "namespace, first, low, high, keys, kinds, entries, names"
    for namespace, first, low, high, keys, kinds, entries, names in sql(
        mem, f"SELECT {columns} FROM lone_posting ORDER BY namespace, first"
    ):
        assert beyond.get(namespace, first - 1) < first <= keys[0]
        assert keys == sorted(set(keys))
        assert 1 <= len(keys) <= LONE_FULL
        assert (len(kinds), len(entries), len(names)) == (len(keys), len(keys) * POSTING.itemsize, len(keys))
        row_ids = np.frombuffer(entries, dtype=POSTING)["ord"].tolist()
        assert (low, high) == (min(row_ids), max(row_ids))
        beyond[namespace] = keys[-1]
        pieces = [entries[at : at + POSTING.itemsize] for at in range(0, len(entries), POSTING.itemsize)]
        found |= {(namespace, k): rest for k, *rest in zip(keys, kinds, names, pieces, strict=True)}  # type: ignore[misc]
    return found


def alike(mem: Where) -> tuple[Counter[tuple[str, int, int]], Counter[tuple[str, int, int]]]:
    """Return the (namespace, key, row id) that have rows of their own, and those packed, each proven to be right.

    A packed key stands in the row of its upper bits, ascending; both are the keys of the memories, each once.
    """
    apart = Counter(sql(mem, "SELECT namespace, key, ord FROM likeness_key"))
    packed: Counter[Any] = Counter()
    shifts = defaultdict(set)
    for namespace, shift, bits, keys, row_ids in sql(
        mem, "SELECT namespace, shift, bits, keys, ords FROM packed_likeness"
    ):
        pairs = list(zip(keys, map(int, row_ids), strict=True))
        assert pairs == sorted(set(pairs))
        assert {key >> shift for key in keys} == {bits}
        shifts[namespace].add(shift)
        packed.update((namespace, key, row_id) for key, row_id in pairs)
    assert all(len(some) <= 2 for some in shifts.values())
    held = Counter(
        (n, key, row_id) for n, row_id, keys in sql(mem, "SELECT namespace, ord, keys FROM likeness") for key in keys
    )
    assert apart + packed == held
    assert set(held.values()) <= {1}
    return apart, packed


def contents(where: Where) -> dict[str, Any]:
    """Everything the tables hold that means something, with row ids as ids and without their history.

    How memories are spread over segments and whether a segment was ever alone are history, not content.
    """
    with _connected(where) as connection:
        return _contents(connection)


def _contents(mem: psycopg.Connection[Any]) -> dict[str, Any]:
    id_of = {(n, o): f"{n}/{i}#{p}" for n, i, p, o in sql(mem, "SELECT namespace, id, part, ord FROM memory")}
    postings: dict[Any, Any] = defaultdict(list)
    for namespace, key, kind, name, low, high, n, subjects, raw in sql(
        mem,
        "SELECT namespace, key, kind, name, low, high, n, subjects, entries FROM posting ORDER BY namespace, key, low",
    ):
        entries = np.frombuffer(raw, dtype=POSTING)
        assert len(entries) > 0
        row_ids = entries["ord"].tolist()
        assert (len(set(row_ids)), low, high) == (len(row_ids), min(row_ids), max(row_ids))
        assert n == int(((entries["mention"] > 0) | (entries["count"] > 0)).sum())
        assert subjects == int((entries["subject"] > 0).sum())
        postings[namespace, key, kind, name] += [(id_of[namespace, row[0]], *row[1:5]) for row in entries.tolist()]
    apart: dict[Any, Any] = defaultdict(list)
    for (namespace, key, *_), held in postings.items():
        apart[namespace, key] += held
    for (namespace, key), (kind, name, raw) in singleton(mem).items():
        ((row_id, *rest),) = [row[:5] for row in np.frombuffer(raw, dtype=POSTING).tolist()]
        entry = (id_of[namespace, row_id], *rest)
        if (namespace, key) in apart:  # its rows count, and hold the same of that memory
            assert entry in apart[namespace, key]
        else:
            postings[namespace, key, kind, name] = [entry]
    forwards = {
        id_of[n, o]: (length, [row[:5] for row in np.frombuffer(raw, dtype=FORWARD).tolist()])
        for n, o, length, raw in sql(mem, "SELECT namespace, ord, length, entries FROM forward")
    }
    columns = "namespace, id, part, parts, text, title, tags, metadata::text, payload, version"
    return {
        "memory": sorted(sql(mem, f"SELECT {columns} FROM memory")),
        "postings": {k: sorted(v) for k, v in postings.items()},
        "forwards": forwards,
        "pending": sorted(id_of[key] for key in sql(mem, "SELECT namespace, ord FROM pending")),
        "vectors": sorted(
            (id_of[n, o], v) for n, o, v in sql(mem, "SELECT namespace, ord, vector::text FROM embedding")
        ),
        "tally": sorted(
            sql(mem, "SELECT namespace, memories::int, length::int FROM namespace WHERE memories <> 0 OR length <> 0")
        ),
    }  # fmt: skip


def check(mem: Semmem | str) -> None:
    """Prove every derived table against the memories: df, tally, vectors, and each posting against its forward."""
    if isinstance(mem, Semmem) and mem.store.kind == "SQLite":
        mem.store._reading(_check_file)
        _check_memory(mem)
        return
    with _connected(mem) as connection:
        _check_server(connection)


def _check_server(mem: psycopg.Connection[Any]) -> None:
    found = _contents(mem)
    indexed = {f"{row[0]}/{row[1]}#{row[2]}" for row in found["memory"] if row[3] == 0}
    assert set(found["forwards"]) == indexed
    assert {id for id, _ in found["vectors"]} == indexed
    wanted: dict[tuple[str, int], list[tuple[Any, ...]]] = defaultdict(list)
    lengths: Counter[str] = Counter()
    for id, (length, entries) in found["forwards"].items():
        namespace = id.split("/")[0]
        lengths[namespace] += length
        if id not in found["pending"]:
            for key, count, mention, subject, _ in entries:
                wanted[namespace, key].append((id, count, length, mention, subject))
    assert {k[:2]: v for k, v in found["postings"].items()} == {k: sorted(v) for k, v in wanted.items()}
    sizes = Counter(id.split("/")[0] for id in indexed)
    assert found["tally"] == sorted((n, sizes[n], lengths[n]) for n in sizes)
    alone = sql(mem, "SELECT namespace, key FROM posting WHERE lone")
    assert all(len(wanted[namespace, key]) == 1 for namespace, key in alone)
    alike(mem)
    _check_numbers(mem)


def _check_numbers(mem: psycopg.Connection[Any]) -> None:
    """Prove what is numbered within a namespace: no number is beyond the last one given out, none of a change twice."""
    last = {n: rest for n, *rest in sql(mem, "SELECT namespace, ords, segments, changes, dropping FROM namespace")}
    for table, column, at in (
        ("memory", "ord", 0), ("posting", "segment", 1), ("fresh", "segment", 1), ("change", "number", 2),
    ):  # fmt: skip
        tops = sql(mem, f"SELECT namespace, min({column}), max({column}) FROM {table} GROUP BY namespace")
        least = 0 if table == "posting" else 1  # what was packed comes back as segment 0
        assert all(least <= low <= high <= last[namespace][at] for namespace, low, high in tops), table
    assert all(dropping is None for *_, dropping in last.values())
    for table in ("embedding_next", "relationship", "pending", "likeness", "uncompared"):
        strangers = f"SELECT 1 FROM {table} t WHERE NOT EXISTS (SELECT FROM memory m WHERE m.namespace = t.namespace "
        assert sql(mem, strangers + "AND m.ord = t.ord)") == [], table
    # of each memory the last change that names it brought it; of what is not there it took it away
    fates = sql(
        mem, "SELECT DISTINCT ON (c.namespace, c.id) c.kind, m.id IS NOT NULL FROM change c LEFT JOIN memory m ON "
             "m.namespace = c.namespace AND m.id = c.id AND m.part = 0 WHERE c.id <> '' "
             "ORDER BY c.namespace, c.id, c.number DESC"
    )  # fmt: skip
    assert {(kind, there) for kind, there in fates} <= _FATES
    known = "SELECT count(*) FROM memory m WHERE part = 0 AND NOT EXISTS (SELECT FROM change c WHERE "
    assert sql(mem, known + "c.namespace = m.namespace AND c.id = m.id)") == [(0,)]


def _check_memory(mem: Semmem) -> None:
    """Prove what is held of a SQLite file in memory, brought up to date step by step, against what is read anew."""
    for namespace in mem.store.namespaces():
        held, anew = mem.store.models.current(namespace), FileModels(mem.store).current(namespace)
        if anew is None:
            assert held is None
            continue
        memories = mem.store.indexed_after(namespace, 0, 10_000)
        row_ids = [row_id for row_id, _ in memories]
        forwards = [model.forwards(row_ids) for model in (held, anew)]
        assert forwards[0].row_ids.tolist() == forwards[1].row_ids.tolist() == row_ids
        assert forwards[0].entries.tolist() == forwards[1].entries.tolist()
        assert forwards[0].candidates.tolist() == forwards[1].candidates.tolist()
        keys = sorted(set(forwards[1].entries["key"].tolist()))
        postings = [model.postings(keys, None) for model in (held, anew)]
        assert postings[0].sizes.tolist() == postings[1].sizes.tolist()
        assert postings[0].entries.tolist() == postings[1].entries.tolist()
        vectors = [model.vectors_of(row_ids) for model in (held, anew)]
        assert vectors[0][0].tolist() == vectors[1][0].tolist()
        assert vectors[0][1].tolist() == vectors[1][1].tolist()
        assert held.metadata(row_ids) == anew.metadata(row_ids)
        assert held.session_turns(row_ids) == anew.session_turns(row_ids)
        assert (held.state, held.corrections) == (anew.state, anew.corrections)


def _check_file(connection: Any) -> None:
    """Prove the index and the tally of a SQLite file against its memories."""
    memories = connection.execute("SELECT namespace, row, length, ord FROM memory WHERE parts = 0").fetchall()
    numbers = dict(connection.execute("SELECT namespace, number FROM namespace"))
    tokens = dict(connection.execute("SELECT rowid, tokens FROM lexical"))
    assert set(tokens) == {row for _, row, _, _ in memories}
    assert {row for (row,) in connection.execute("SELECT row FROM forward")} == set(tokens)
    for table in ("embedding", "embedding_next", "relationship"):
        assert {row for (row,) in connection.execute(f"SELECT row FROM {table}")} <= set(tokens), table
    for namespace, row, _, row_id in memories:
        assert row == (numbers[namespace] << 40) + row_id
        assert {token.split("n")[0] for token in tokens[row].split()} <= {str(numbers[namespace])}
    counts, lengths = Counter(n for n, *_ in memories), Counter[str]()
    for namespace, _, length, _ in memories:
        lengths[namespace] += length
    tallies = "SELECT namespace, memories, length FROM namespace WHERE memories <> 0 OR length <> 0 ORDER BY 1"
    assert connection.execute(tallies).fetchall() == sorted((n, counts[n], lengths[n]) for n in counts)
    found: Counter[int] = Counter(row for (row,) in connection.execute("SELECT doc FROM lexical_term"))
    assert found == Counter({row: len(held.split()) for row, held in tokens.items() if held})
    beyond = "SELECT count(*) FROM memory JOIN namespace USING (namespace) WHERE ord NOT BETWEEN 1 AND ords"
    assert connection.execute(beyond).fetchone() == (0,)
    fates = connection.execute(
        "SELECT c.kind, m.id IS NOT NULL FROM change c LEFT JOIN memory m ON m.namespace = c.namespace AND m.id = c.id "
        "AND m.part = 0 WHERE c.id <> '' AND c.number = (SELECT max(number) FROM change d WHERE "
        "d.namespace = c.namespace AND d.id = c.id)"
    ).fetchall()
    assert set(fates) <= _FATES
