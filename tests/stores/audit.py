"""Reads every table of a PostgreSQL store and proves what is derived against what was remembered."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any

import numpy as np
import psycopg

from semmem.client.memory import Semmem
from semmem.stores.packed_postings import FORWARD, POSTING

__all__ = ["check", "contents", "sql"]


def sql(where: Semmem | str, statement: str, *parameters: Any) -> list[tuple[Any, ...]]:
    """Run one statement on a connection of its own; ``where`` is a Semmem on postgresql:// or a conninfo."""
    conninfo = where if isinstance(where, str) else where.store.url
    with psycopg.connect(conninfo, autocommit=True, options="-c search_path=semmem,public") as connection:
        cursor = connection.execute(statement, parameters, binary=True)  # type: ignore[arg-type]
        return cursor.fetchall() if cursor.description else []


def contents(mem: Semmem | str) -> dict[str, Any]:
    """Everything the tables hold that means something, with ords as ids and without their history.

    How memories are spread over segments and whether a segment was ever alone are history, not content.
    """
    id_of = {o: f"{n}/{i}#{p}" for n, i, p, o in sql(mem, "SELECT namespace, id, part, ord FROM memory")}
    postings: dict[Any, Any] = defaultdict(list)
    for namespace, key, kind, name, low, high, n, subjects, raw in sql(
        mem,
        "SELECT namespace, key, kind, name, low, high, n, subjects, entries FROM posting ORDER BY namespace, key, low",
    ):
        entries = np.frombuffer(raw, dtype=POSTING)
        assert len(entries) > 0
        ords = entries["ord"].tolist()
        assert (len(set(ords)), low, high) == (len(ords), min(ords), max(ords))
        assert n == int(((entries["mention"] > 0) | (entries["count"] > 0)).sum())
        assert subjects == int((entries["subject"] > 0).sum())
        postings[namespace, key, kind, name] += [(id_of[row[0]], *row[1:5]) for row in entries.tolist()]
    forwards = {
        id_of[o]: (length, [row[:5] for row in np.frombuffer(raw, dtype=FORWARD).tolist()])
        for o, length, raw in sql(mem, "SELECT ord, length, entries FROM forward")
    }
    columns = "namespace, id, part, parts, text, title, tags, metadata::text, payload, version"
    return {
        "memory": sorted(sql(mem, f"SELECT {columns} FROM memory")),
        "postings": {k: sorted(v) for k, v in postings.items()},
        "forwards": forwards,
        "pending": sorted(id_of[o] for (o,) in sql(mem, "SELECT ord FROM pending")),
        "vectors": sorted((id_of[o], v) for o, v in sql(mem, "SELECT ord, vector::text FROM embedding")),
        "tally": sorted(
            sql(mem, "SELECT namespace, sum(memories)::int, sum(length)::int FROM tally GROUP BY namespace HAVING "
                     "sum(memories) <> 0 OR sum(length) <> 0")
        ),
    }  # fmt: skip


def check(mem: Semmem | str) -> None:
    """Prove every derived table against the memories: df, tally, vectors, and each posting against its forward."""
    if isinstance(mem, Semmem) and mem.store.kind == "SQLite":
        mem.store._reading(_check_file)
        return
    found = contents(mem)
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


def _check_file(connection: Any) -> None:
    """Prove the index and the tally of a SQLite file against its memories."""
    memories = connection.execute("SELECT namespace, ord, length FROM memory WHERE parts = 0").fetchall()
    numbers = dict(connection.execute("SELECT namespace, number FROM tally"))
    tokens = dict(connection.execute("SELECT rowid, tokens FROM lexical"))
    assert set(tokens) == {ord for _, ord, _ in memories}
    for namespace, ord, _ in memories:
        assert {token.split("n")[0] for token in tokens[ord].split()} <= {str(numbers[namespace])}
    counts, lengths = Counter(n for n, _, _ in memories), Counter[str]()
    for namespace, _, length in memories:
        lengths[namespace] += length
    tallies = connection.execute("SELECT namespace, memories, length FROM tally ORDER BY 1").fetchall()
    assert tallies == sorted((n, counts[n], lengths[n]) for n in counts)
    found: Counter[int] = Counter(ord for (ord,) in connection.execute("SELECT doc FROM lexical_term"))
    assert found == Counter({ord: len(held.split()) for ord, held in tokens.items() if held})
