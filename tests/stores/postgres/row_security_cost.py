"""Measure what row-level security costs: the same calls on two stores of one server, by turns, one of them with it.

    python -m tests.stores.postgres.row_security_cost

Both are used by a user who owns no table. `two keys` changes the namespaces of the connection before each call. Times
are those of the processors: of this process, and of the server process behind its one connection.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import psycopg

import semmem
from semmem.client.memory import Semmem
from semmem.model.process.asker import asked_through
from semmem.stores import migrate_store, secure_rows
from tests.stores.postgres import own_server
from tests.stores.postgres.own_server import Own

FILLED, ASKED, BULK = 1_000, 30, 300
WORDS = ("owl", "quay", "heron", "engine", "mole", "tower", "crow", "harbour", "lamp", "ledger")
GRANTS = """GRANT USAGE ON SCHEMA semmem TO guest;
GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA semmem TO guest"""
_numbers = count()


def item(n: int) -> dict[str, Any]:
    words = WORDS[n % 10], WORDS[n // 10 % 10], WORDS[n // 100 % 10]
    text = "Note {}: Ada {} met Charles {} by the {} at noon.".format(n, *words)
    return {"text": text, "metadata": {"room": n % 100}, "tags": [f"t{n % 50}"]}


def store(own: Own, *, secured: bool, resident_mb: int) -> Semmem:
    name = own.database()
    url = own.url(name, "ada")
    migrate_store(url)
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(GRANTS)  # type: ignore[call-overload]
    if secured:
        secure_rows(url, on=True)
    options: dict[str, Any] = {"pool_size": 1, "migrate": False, "resident_mb": resident_mb, "count_accesses": False}
    mem = semmem.connect(own.url(name, "guest"), embedder="hashing", **options)
    mem.remember_many([item(n) for n in range(FILLED)], namespace="mine")
    mem.remember("A lamp.", namespace="theirs")
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("ANALYZE")
    return mem


class Meter:
    """The processor milliseconds of this process and of the server process of one store, for one kind of call."""

    def __init__(self, mem: Semmem) -> None:
        self.backend = mem.store.run(lambda c: c.info.backend_pid)  # type: ignore[attr-defined]
        self.client = self.server = 0.0

    def run(self, work: Callable[[], object]) -> None:
        began, before = time.process_time(), spent(self.backend)
        work()
        self.client += (time.process_time() - began) * 1000
        self.server += spent(self.backend) - before


def spent(process: int) -> float:
    """Return the processor milliseconds of a process so far."""
    fields = Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) * 1000 / os.sysconf("SC_CLK_TCK")


def shown(name: str, stores: tuple[Semmem, Semmem], call: Callable[[Semmem], Callable[[], object]], times: int) -> None:
    calls = [call(mem) for mem in stores]
    for one in calls:
        one()
    meters = [Meter(mem) for mem in stores]
    for _ in range(times):
        for meter, one in zip(meters, calls, strict=True):
            meter.run(one)
    values = " ".join(f"{m.client / times:8.2f} {m.server / times:8.2f}" for m in meters)
    off, on = (m.client + m.server for m in meters)
    print(f"{name:30} {values}  {on / off:5.2f}", flush=True)


def compare(plain: Semmem, secured: Semmem, where: str) -> None:
    def recall(mem: Semmem, **filters: Any) -> Callable[[], object]:
        n = next(_numbers)

        def work() -> object:
            with asked_through("http", namespaces=("mine",)):
                query = f"Which {WORDS[n % 10]} met Charles {WORDS[next(_numbers) % 10]}?"
                return mem.recall(query, namespace="mine", filters=filters or None)

        return work

    def other_key(mem: Semmem) -> Callable[[], object]:
        def work() -> object:
            with asked_through("http", namespaces=("theirs",)):
                return mem.settings_of(namespace="theirs")

        return work

    def mine(mem: Semmem) -> Callable[[], object]:
        def work() -> object:
            with asked_through("http", namespaces=("mine",)):
                return mem.settings_of(namespace="mine")

        return work

    def written(mem: Semmem) -> Callable[[], object]:
        def work() -> object:
            with asked_through("http", namespaces=("mine",)):
                return mem.remember(**item(next(_numbers) + 10_000), namespace="mine")

        return work

    def bulk(mem: Semmem) -> Callable[[], object]:
        return lambda: mem.remember_many([item(next(_numbers) + 20_000) for _ in range(BULK)], namespace="bulk")

    def by_turns(mem: Semmem, call: Callable[[], object]) -> Callable[[], object]:
        other = other_key(mem)
        return lambda: (other(), call())

    print(f"{where:30} without: client, server; with: client, server; ratio")
    both = plain, secured
    shown("recall", both, recall, ASKED)
    shown("recall, filter of metadata", both, lambda mem: recall(mem, metadata={"room": 7}), ASKED)
    shown("recall, filter of tags", both, lambda mem: recall(mem, tags=["t7"]), ASKED)
    shown("settings", both, other_key, 10 * ASKED)
    shown("two keys by turns, settings", both, lambda mem: by_turns(mem, mine(mem)), 5 * ASKED)
    shown("remember", both, written, ASKED)
    shown(f"remember_many, {BULK:,}", both, bulk, 3)


def main() -> None:
    own = own_server.make()
    try:
        for resident_mb in (0, 64):
            with (
                store(own, secured=False, resident_mb=resident_mb) as plain,
                store(own, secured=True, resident_mb=resident_mb) as secured,
            ):
                compare(plain, secured, "from memory" if resident_mb else "from the database")
    finally:
        own_server.unmake(own)


if __name__ == "__main__":
    main()
