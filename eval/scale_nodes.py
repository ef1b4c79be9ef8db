"""Fill a store on several nodes with the namespaces of the model, and measure what it takes.

    python -m eval.scale_nodes postgresql://COORDINATOR/semmem --out eval/results/scale-nodes.json

Storing a million memories one batch after the other takes hours. So one namespace grows by ``remember_many`` and
``maintain`` through a ladder of sizes; at each size the nodes keep its rows, and every namespace of about that size is
a copy of them under its own name, written shard by shard. Row ids, sequence numbers and ids are those of the namespace
that grew, so a copy has its hash. The same command goes on where it ended. The store must be empty, and its nodes on
this machine, because the processor time of their servers is read from ``/proc``.
"""

from __future__ import annotations

import argparse
import json
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import psycopg
from psycopg import sql

import semmem
from eval.bench.generator import Question, TitledGenerator
from eval.bench.measures import percentiles, processor_s
from eval.path import Counter, installed
from eval.scale_model import cut_sizes
from semmem.client.memory import Semmem
from semmem.stores.postgres.store import PostgresStore

__all__ = ["Ladder", "fill", "main", "measure"]

GROWN = "grown"
"""The namespace that grows, and the schema in which the nodes keep its rows at each size."""
_STEPS = 11
_BATCH = 1_000
_TABLES = """SELECT c.relname, array_agg(a.attname::text ORDER BY a.attnum) FROM pg_dist_partition p
JOIN pg_class c ON c.oid = p.logicalrelid
JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
WHERE c.relnamespace = 'semmem'::regnamespace AND p.partmethod = 'h' GROUP BY 1 ORDER BY 1"""
_SHARDS = """SELECT s.table_name::text, s.shard_name, s.nodename, s.nodeport FROM pg_dist_partition p
JOIN citus_shards s ON s.table_name = p.logicalrelid AND p.partmethod = 'h'
    AND s.shardid = get_shard_id_for_distribution_column(p.logicalrelid, %(namespace)s::text)"""
_BYTES = """SELECT s.nodename || ':' || s.nodeport, c.relname, sum(s.shard_size)::bigint
FROM citus_shards s JOIN pg_class c ON c.oid = s.table_name AND c.relnamespace = 'semmem'::regnamespace
WHERE s.citus_table_type = 'distributed' GROUP BY 1, 2"""
_PLACES = "SELECT nodename, nodeport FROM pg_dist_node WHERE shouldhaveshards ORDER BY nodeport"
_PIDS = "SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend' AND datname = current_database()"


@dataclass(frozen=True, slots=True)
class Ladder:
    """The sizes that are made, rising, and the namespaces of each."""

    steps: tuple[int, ...]
    namespaces: Mapping[str, int]

    @classmethod
    def of(cls, sizes: Sequence[float], steps: int = _STEPS) -> Ladder:
        """Return the ladder whose steps rise by one factor from the smallest size to the largest."""
        least, most = max(1.0, min(sizes)), max(sizes)
        factor = (most / least) ** (1 / max(1, steps - 1))
        made = sorted({round(least * factor**n) for n in range(steps)})
        near = [min(made, key=lambda step: abs(step - size)) for size in sizes]
        return cls(tuple(made), {f"n{rank}": step for rank, step in enumerate(near, 1)})

    @property
    def memories(self) -> int:
        """The memories of all namespaces."""
        return sum(self.namespaces.values())


class Nodes:
    """The nodes that hold the shards of a store, a connection to each."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._stack = ExitStack()

    def __enter__(self) -> Nodes:
        self.coordinator = self._open(self._url)
        places = self.coordinator.execute(_PLACES).fetchall()
        found = urlsplit(self._url)
        user = f"{found.username}@" if found.username else ""
        urls = {p: urlunsplit(found._replace(netloc=f"{user}{p[0]}:{p[1]}")) for p in places}
        self.workers = {place: self._open(url) for place, url in urls.items()}
        for connection in self.workers.values():
            connection.execute("SET citus.enable_ddl_propagation TO off")
        self.tables: dict[str, list[str]] = dict(self.coordinator.execute(_TABLES).fetchall())
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def _open(self, url: str) -> psycopg.Connection[Any]:
        return self._stack.enter_context(psycopg.connect(url, autocommit=True))

    def shards(self, namespace: str) -> tuple[tuple[str, int], dict[str, str]]:
        """Return the node of a namespace and the shard of each table there."""
        rows = self.coordinator.execute(_SHARDS, {"namespace": namespace}).fetchall()
        return (rows[0][2], rows[0][3]), {table.removeprefix("semmem."): shard for table, shard, *_ in rows}

    def keep(self, step: int) -> None:
        """Keep the rows of the namespace that grew, on every node."""
        place, shards = self.shards(GROWN)
        home = self.workers[place]
        for connection in self.workers.values():
            connection.execute(sql.SQL("CREATE SCHEMA IF NOT EXISTS {}").format(sql.Identifier(GROWN)))
        for table, shard in shards.items():
            kept, of_shard = _kept(table, step), sql.Identifier("semmem", shard.removeprefix("semmem."))
            for connection in self.workers.values():
                like = sql.SQL("CREATE UNLOGGED TABLE IF NOT EXISTS {} (LIKE {})")
                connection.execute(like.format(kept, sql.Identifier("semmem", table)))
                connection.execute(sql.SQL("TRUNCATE {}").format(kept))
            home.execute(sql.SQL("INSERT INTO {} SELECT * FROM {} WHERE namespace = {}").format(kept, of_shard, GROWN))
            for there, connection in self.workers.items():
                if there != place:
                    _stream(home, connection, kept)

    def copy(self, namespace: str, step: int) -> None:
        """Make a namespace of the rows that are kept, in one transaction on its node."""
        place, shards = self.shards(namespace)
        with self.workers[place].transaction():
            for table, shard in shards.items():
                columns = self.tables[table]
                # vectors that are copied are in no index: maintain takes them in, as after an ingest
                other = {"namespace": sql.SQL("{}::text").format(sql.Literal(namespace)), "indexed": sql.SQL("false")}
                into = sql.Identifier("semmem", shard.removeprefix("semmem."))
                named = sql.SQL(", ").join(map(sql.Identifier, columns))
                taken = sql.SQL(", ").join(other.get(c, sql.Identifier(c)) for c in columns)
                copied = sql.SQL("INSERT INTO {} ({}) SELECT {} FROM {}")
                self.workers[place].execute(copied.format(into, named, taken, _kept(table, step)))

    def drop(self) -> None:
        """Drop what was kept."""
        for connection in self.workers.values():
            connection.execute(sql.SQL("DROP SCHEMA IF EXISTS {} CASCADE").format(sql.Identifier(GROWN)))

    def has(self, step: int) -> bool:
        """Return whether every node has kept the rows of a size."""
        asked = "SELECT to_regclass(%s) IS NOT NULL"
        return all(_one(c, asked, f"{GROWN}.done_{step}") for c in self.workers.values())

    def has_kept(self, step: int) -> None:
        """Note that the rows of a size are whole."""
        for connection in self.workers.values():
            connection.execute(sql.SQL("CREATE TABLE {} ()").format(sql.Identifier(GROWN, f"done_{step}")))

    def clients(self) -> dict[str, set[int]]:
        """Return the processes that serve connections on each node, those of Citus from another node included."""
        found = {f"{host}:{port}": connection for (host, port), connection in self.workers.items()}
        every = {"coordinator": self.coordinator, **found}
        return {name: {pid for (pid,) in c.execute(_PIDS).fetchall()} for name, c in every.items()}

    def cost(self, calls: Sequence[Callable[[], object]]) -> dict[str, float]:
        """Do the calls one after the other; return processor milliseconds of each, here and of the nodes, and times."""
        seconds = []
        here, there = time.process_time(), self._processors()
        for call in calls:
            started = time.perf_counter()
            call()
            seconds.append(time.perf_counter() - started)
        here, after = time.process_time() - here, self._processors()
        nodes = sum(used - there.get(process, 0.0) for process, used in after.items())
        each = {"here_ms": here, "nodes_ms": nodes}
        return {**{name: round(1e3 * s / len(calls), 2) for name, s in each.items()}, **percentiles(seconds)}

    def _processors(self) -> dict[int, float]:
        """Return the processor seconds of each connection's process."""
        return {pid: processor_s(pid) for pids in self.clients().values() for pid in pids}

    def bytes(self) -> dict[str, dict[str, int]]:
        """Return bytes with indexes, by node and table."""
        out: dict[str, dict[str, int]] = {}
        for node, table, size in self.coordinator.execute(_BYTES).fetchall():
            out.setdefault(node, {})[table] = size
        return out


def _kept(table: str, step: int) -> sql.Identifier:
    return sql.Identifier(GROWN, f"{table}_{step}")


def _stream(home: psycopg.Connection[Any], there: psycopg.Connection[Any], table: sql.Identifier) -> None:
    with (
        home.cursor().copy(sql.SQL("COPY {} TO STDOUT (FORMAT binary)").format(table)) as out,
        there.cursor().copy(sql.SQL("COPY {} FROM STDIN (FORMAT binary)").format(table)) as into,
    ):
        for block in out:
            into.write(block)


def _one(connection: psycopg.Connection[Any], statement: str, *values: object) -> Any:
    row = connection.execute(statement.encode(), values).fetchone()
    assert row is not None
    return row[0]


def fill(url: str, ladder: Ladder, say: Callable[[str], None]) -> None:
    """Fill the store, or go on with it."""
    with semmem.connect(url, embedder="none", count_accesses=False) as mem, Nodes(url) as nodes:
        there = {name for (name,) in nodes.coordinator.execute("SELECT namespace FROM semmem.namespace").fetchall()}
        left = [name for name in ladder.namespaces if name not in there]
        if not left:
            if mem.stats(namespace=GROWN).memories:  # what ended just before its end
                mem.drop_namespace(GROWN)
            return
        _grow(mem, nodes, ladder, say)
        by_node: dict[tuple[str, int], list[str]] = {}
        for name in left:
            by_node.setdefault(nodes.shards(name)[0], []).append(name)
        done = 0
        lock = threading.Lock()

        def copies(names: Sequence[str]) -> None:
            nonlocal done
            with Nodes(url) as mine:
                for name in names:
                    mine.copy(name, ladder.namespaces[name])
                    with lock:
                        done += 1
                        if done % 50 == 0:
                            say(f"{done} of {len(left)} namespaces are copied")

        with ThreadPoolExecutor(len(by_node) or 1) as pool:
            list(pool.map(copies, by_node.values()))
        for connection in nodes.workers.values():
            connection.execute("ANALYZE")
        mem.drop_namespace(GROWN)
        nodes.drop()


def _grow(mem: Semmem, nodes: Nodes, ladder: Ladder, say: Callable[[str], None]) -> None:
    """Let one namespace grow through the ladder, and keep its rows at each size."""
    generator = TitledGenerator(0, count=ladder.steps[-1])
    size = mem.stats(namespace=GROWN).memories
    for step in ladder.steps:
        if nodes.has(step):
            continue
        before, started = size, time.monotonic()
        items = ({**item, "namespace": GROWN, "vector": vector} for item, vector in generator.items(size, step))
        while batch := list(islice(items, _BATCH)):
            mem.remember_many(batch)
        size = max(size, step)
        wrote = time.monotonic() - started
        mem.maintain()
        maintained = time.monotonic() - started - wrote
        nodes.keep(step)
        nodes.has_kept(step)
        say(f"{step} memories: {step - before} stored in {wrote:.1f} s, maintained in {maintained:.1f} s")


def measure(url: str, ladder: Ladder, questions: int) -> dict[str, Any]:
    """Measure a filled store: bytes, what a recall and a remember take by size, connections, round trips."""
    generator = TitledGenerator(0, count=ladder.steps[-1])
    chosen = {step: name for name, step in reversed(list(ladder.namespaces.items()))}
    with Nodes(url) as nodes:
        out: dict[str, Any] = {
            "namespaces": len(ladder.namespaces),
            "memories": ladder.memories,
            "of_each_size": {str(step): list(ladder.namespaces.values()).count(step) for step in ladder.steps},
            "bytes": nodes.bytes(),
            "embedding_ms": _embedding_ms([generator.question(n, ladder.steps[0]).text for n in range(questions)]),
            "by_size": {},
        }
        for step in [step for step in ladder.steps[::2] if step in chosen]:
            asked = [generator.question(number, step) for number in range(questions)]
            out["by_size"][str(step)] = _of_size(url, nodes, chosen[step], step, asked)
        out["whole_store"] = _whole(url, nodes)
        one = generator.question(0, ladder.steps[0])
        out["connections"] = _connections(url, nodes, list(ladder.namespaces)[-64:], one)
    out["round_trips"] = _round_trips(url, chosen[min(chosen)], one)
    return out


def _of_size(url: str, nodes: Nodes, namespace: str, size: int, asked: Sequence[Question]) -> dict[str, Any]:
    """Return what a recall takes, from the nodes and from memory, and what a remember takes, in one namespace."""
    out: dict[str, Any] = {}
    for where, resident_mb_ in (("from the nodes", 0), ("from memory", 1_024)):
        with semmem.connect(url, embedder="none", count_accesses=False, resident_mb=resident_mb_) as mem:

            def ask(one: Question, mem: Semmem = mem) -> None:
                mem.recall(one.text, namespace=namespace, vector=one.vector)

            ended = time.monotonic() + 120
            while resident_mb_ and namespace not in mem.resident and time.monotonic() < ended:
                ask(asked[0])
            for one in asked[:5]:
                ask(one)
            out[f"recall, {where}"] = nodes.cost([partial(ask, one) for one in asked])
            if resident_mb_:
                out["resident_kb_per_memory"] = round(mem.resident.get(namespace, 0) / 1e3 / size, 2)

                def store(number: int, mem: Semmem = mem) -> None:
                    one = asked[number]
                    mem.remember(f"{one.text} {number}.", id=f"new {number}", namespace=namespace, vector=one.vector)

                store(0)
                out["remember"] = nodes.cost([partial(store, number) for number in range(1, len(asked))])
                for number in range(len(asked)):
                    mem.forget(f"new {number}", namespace=namespace)
    return out


def _whole(url: str, nodes: Nodes) -> dict[str, Any]:
    """Return what the verbs of the whole store take."""
    with semmem.connect(url, embedder="none", count_accesses=False) as mem:
        calls: dict[str, Callable[[], object]] = {"stats": mem.stats, "namespaces": mem.namespaces}
        calls["stats of one namespace"] = lambda: mem.stats(namespace="n1")
        return {name: nodes.cost([call] * 3) for name, call in calls.items()}


def _connections(url: str, nodes: Nodes, namespaces: Sequence[str], question: Question) -> dict[str, Any]:
    """Return the connections of each node that one process with 8 opens which asks many namespaces.

    They are told from those of before by what serves them: of the earlier ones some may end meanwhile.
    """
    before = nodes.clients()
    with semmem.connect(url, embedder="none", resident_mb=0, pool_size=8) as mem, ThreadPoolExecutor(8) as pool:
        barrier = threading.Barrier(8)
        pooled = mem.store
        assert isinstance(pooled, PostgresStore)
        for done in [pool.submit(pooled.run, lambda _: barrier.wait(60)) for _ in range(8)]:
            done.result()
        list(pool.map(lambda name: mem.recall(question.text, namespace=name, vector=question.vector), namespaces))
        after = nodes.clients()
    return {name: len(after[name] - before[name]) for name in after}


def _round_trips(url: str, namespace: str, question: Question) -> dict[str, int]:
    """Return the round trips of a warm recall and remember."""
    counter, out = Counter(), dict[str, int]()
    with installed(counter), semmem.connect(url, embedder="none", count_accesses=False, resident_mb=64) as mem:

        def count(verb: str, call: Callable[[], object]) -> None:
            with counter.counting():
                call()
            out[verb] = sum(counter.counts().trips.values())

        def ask() -> object:
            return mem.recall(question.text, namespace=namespace, vector=question.vector)

        ask()
        while namespace not in mem.resident:
            ask()
        count("recall, from memory", ask)
        mem.remember("Warm.", id="new 0", namespace=namespace, vector=question.vector)
        count("remember", lambda: mem.remember("Warmer.", id="new 1", namespace=namespace, vector=question.vector))
        for id in ("new 0", "new 1"):
            mem.forget(id, namespace=namespace)
    with installed(counter), semmem.connect(url, embedder="none", count_accesses=False, resident_mb=0) as mem:
        ask()
        count("recall, from the nodes", ask)
    return out


def _embedding_ms(texts: Sequence[str]) -> float:
    """Return the processor milliseconds that a question's vector takes."""
    from semmem.embedders.minilm import MiniLM

    model = MiniLM()
    model.embed(texts[:3])
    started = time.process_time()
    for text in texts:
        model.embed([text])
    return round(1e3 * (time.process_time() - started) / len(texts), 2)


def main(args: Sequence[str] | None = None) -> int:
    """Fill the store, measure it, and write the result."""
    parser = argparse.ArgumentParser(prog="python -m eval.scale_nodes", description="Many namespaces on several nodes.")
    parser.add_argument("url", help="the coordinator of an empty store on several nodes of this machine")
    parser.add_argument("--namespaces", type=int, default=1_000)
    parser.add_argument("--memories", type=int, default=1_000_000, help="about so many: sizes are those of the ladder")
    parser.add_argument("--largest", type=int, default=20_000, help="Zipf sizes above it are cut to it")
    parser.add_argument("--questions", type=int, default=20)
    parser.add_argument("--out", type=Path, required=True, help="the result, JSON")
    given = parser.parse_args(args)
    if min(given.namespaces, given.memories, given.largest, given.questions) < 1:
        parser.error("--namespaces, --memories, --largest and --questions must be 1 or more.")
    if given.namespaces * given.largest < given.memories:
        parser.error("--largest is too small: the namespaces cannot hold the memories.")
    ladder = Ladder.of(cut_sizes(given.namespaces, given.memories, given.largest))
    fill(given.url, ladder, lambda line: print(line, file=sys.stderr, flush=True))
    result = measure(given.url, ladder, given.questions)
    given.out.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
