"""Processes that write, recall and forget while what serves them is killed, and the count of what came of it."""

from __future__ import annotations

import contextlib
import itertools
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import psycopg

import semmem
from semmem.stores.embedded.server import EmbeddedServer
from tests.stores.audit import OTHERS, check, sql
from tests.stores.postgres.nodes import Cluster
from tests.stores.postgres.own_server import Own
from tests.waiting import until

__all__ = ["Counts", "Place", "Storm", "embedded_place", "nodes_place", "own_place", "texts"]

WORKER = """
import os, random, sys, time, semmem

url, who, stop, namespace = sys.argv[1:]
chance, stored = random.Random(who), []

def say(*words):
    print(*words, flush=True)

def attempt(work):
    try:
        return work()
    except semmem.SemmemError as error:
        say("told", type(error).__name__, " ".join(str(error).split()))
    except Exception as error:
        say("foreign", type(error).__name__, " ".join(str(error).split()))
    return None

def step(mem, n):
    text = f"Writer {who} saw owl {n} in tower {n % 7} with Ada Lovelace."
    if attempt(lambda: mem.remember(text, id=f"{who}-{n}", title=f"Owl {n}", namespace=namespace)) is not None:
        say("stored", f"{who}-{n}", text)
        stored.append(f"{who}-{n}")
    if chance.random() < 0.3:
        found = attempt(lambda: mem.recall(f"Where was owl {n} of writer {who}?", limit=3, namespace=namespace))
        for hit in found or ():
            if " saw owl " not in hit.memory.text:
                say("foreign", "Mixed", hit.memory.text)
        say("recalled", "" if found is None else len(found))
    if stored and chance.random() < 0.2:
        id = stored.pop(chance.randrange(len(stored)))
        say("forgetting", id)
        if attempt(lambda: mem.forget(id, namespace=namespace)) is not None:
            say("forgot", id)

def over():
    return os.path.exists(stop)

say("began")
n = 0
while not over():
    mem = attempt(lambda: semmem.connect(url, embedder="hashing", pool_size=2))
    if mem is None:
        time.sleep(0.2)
        continue
    with mem:
        while not over():
            step(mem, n)
            n += 1
say("ended")
"""
ONE = """SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend' AND datname = current_database()
AND pid <> pg_backend_pid() ORDER BY random() LIMIT 1"""


@dataclass
class Place:
    """A store that may be killed: its URL, the conninfo of its owner, and how its server dies and comes back."""

    name: str
    url: str
    conninfo: Callable[[], str]
    kill_server: Callable[[], None]
    kill_watch: Callable[[], None] | None = None
    others: tuple[str, ...] = ()
    """More URLs of it, of which processes use one each."""
    spaces: tuple[str, ...] = ("default",)
    """The namespaces to which processes write, each to one."""

    def kill_backend(self) -> None:
        """End one session as the system does when memory runs out; the server ends all others and recovers."""
        with contextlib.suppress(psycopg.Error, semmem.SemmemError):
            for (pid,) in sql(self.conninfo(), ONE):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(int(pid), signal.SIGKILL)

    def empty(self) -> None:
        """Leave nothing of semmem in the database."""
        sql(self.conninfo(), "DROP SCHEMA IF EXISTS semmem CASCADE")

    def connections(self) -> int:
        """Return how many clients are connected, this one not counted, once those that were killed are gone."""

        left = -1

        def none_left() -> bool:  # the connection that has counted last may still be ending, and is counted then
            nonlocal left
            with contextlib.suppress(psycopg.OperationalError, semmem.StoreError):  # it may still recover
                left = int(sql(self.conninfo(), OTHERS)[0][0])
            return left == 0

        with contextlib.suppress(AssertionError):
            until(none_left, seconds=120)
        return left


def embedded_place(server: EmbeddedServer) -> Place:
    """Return the embedded store of ``server``, which whoever connects starts again."""
    folder = server.data / "postgresql"

    def kill_server() -> None:
        if (pid := server.status().pid) is not None:
            os.kill(pid, signal.SIGKILL)

    def kill_watch() -> None:
        listed = subprocess.run(["ps", "-ewwo", "pid,args"], capture_output=True, text=True, check=True).stdout
        for line in listed.splitlines():
            if "postmaster.py" in line and f"{folder} " in line:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(int(line.split()[0]), signal.SIGKILL)

    return Place("embedded", f"embedded://{server.data}", server.ensure_running, kill_server, kill_watch)


def own_place(own: Own) -> Place:
    """Return an empty database of the ordinary user ada; its administrator starts a killed server again."""
    name = own.database()

    def kill_server() -> None:
        os.kill(int((own.data / "postmaster.pid").read_text().split("\n")[0]), signal.SIGKILL)

        def starts() -> bool:
            with contextlib.suppress(subprocess.CalledProcessError):  # its last processes may still be ending
                own.start()
                return True
            return False

        until(starts, seconds=60)

    return Place("own server", own.url(name, "ada"), lambda: own.url(name), kill_server)


def nodes_place(cluster: Cluster, urls: Sequence[str]) -> Place:
    """Return a store on three nodes, one of which is killed by turns and started again; each is used by processes."""
    turn = itertools.count()

    def kill_server() -> None:
        node = next(turn) % len(urls)
        cluster.do("kill", node)
        time.sleep(0.3)
        cluster.do("start", node)

    spaces = tuple(f"space {n}" for n in range(7))
    return Place("three nodes", urls[0], lambda: urls[0], kill_server, others=tuple(urls[1:]), spaces=spaces)


@dataclass
class Counts:
    """What came of a storm."""

    kills: Counter[str] = field(default_factory=Counter)
    acknowledged: int = 0
    found: int = 0
    equal: int = 0
    forgotten: int = 0
    back: int = 0
    recalled: int = 0
    told: Counter[str] = field(default_factory=Counter)
    foreign: list[str] = field(default_factory=list)
    connections: int = 0

    def __str__(self) -> str:
        kills = ", ".join(f"{count} {what}" for what, count in sorted(self.kills.items())) or "none"
        return (
            f"kills: {kills}; acknowledged {self.acknowledged}, found {self.found}, text equal {self.equal}; "
            f"forgotten {self.forgotten}, back again {self.back}; recalls {self.recalled}; "
            f"told {dict(self.told)}; foreign errors {len(self.foreign)}; connections left {self.connections}"
        )


def texts(url: str, spaces: Sequence[str] = ("default",)) -> dict[str, str]:
    """Return the text of every memory by its id, page by page."""
    found: dict[str, str] = {}
    with semmem.connect(url, embedder="none", pool_size=1) as mem:
        for space in spaces:
            page = mem.list(limit=300, namespace=space)
            found |= {memory.id: memory.text for memory in page}
            while page.cursor is not None:
                page = mem.list(limit=300, namespace=space, cursor=page.cursor)
                found |= {memory.id: memory.text for memory in page}
    return found


class Storm:
    """Processes on one place, each with a file of its own for what was acknowledged; they end when they are told to."""

    def __init__(self, place: Place, folder: Path, *, processes: int) -> None:
        self.place, self.folder = place, folder
        self.counts = Counts()
        self._stop = folder / "stop"
        self._started = 0
        self._running: list[subprocess.Popen[bytes]] = []
        for _ in range(processes):
            self._start()

    def _start(self) -> None:
        who = f"w{self._started}"
        urls, spaces = (self.place.url, *self.place.others), self.place.spaces
        url, space = urls[self._started % len(urls)], spaces[self._started % len(spaces)]
        self._started += 1
        command = [sys.executable, "-c", WORKER, url, who, str(self._stop), space]
        with (self.folder / f"{who}.out").open("wb") as out, (self.folder / f"{who}.err").open("wb") as err:
            self._running.append(subprocess.Popen(command, stdout=out, stderr=err))

    def kill_writer(self) -> None:
        """Kill one of the processes, and let another one take its place."""
        victim = self._running.pop(random.randrange(len(self._running)))
        victim.kill()
        victim.wait()
        self._start()

    def rage(self, seconds: float, kills: Sequence[str] = ()) -> Counts:
        """Let them work, killing by turns what ``kills`` names in equal distances; then wait for all, and count."""
        ways = {"writer": self.kill_writer, "backend": self.place.kill_backend, "server": self.place.kill_server}
        if self.place.kill_watch is not None:
            ways["watch"] = self.place.kill_watch
        try:
            until(lambda: sum(kind == "stored" for kind, _ in self._lines()) >= len(self._running), seconds=100)
            for what in kills:
                time.sleep(seconds / len(kills))
                ways[what]()
                self.counts.kills[what] += 1
            time.sleep(seconds if not kills else 1)
            self._stop.touch()
            for process in self._running:
                process.wait(timeout=200)
        finally:
            for process in self._running:
                process.kill()
                process.wait()
        self._count()
        return self.counts

    def _count(self) -> None:
        stored: dict[str, str] = {}
        gone: set[str] = set()
        perhaps: set[str] = set()
        for kind, rest in self._lines():
            if kind == "stored":
                id, _, text = rest.partition(" ")
                stored[id] = text
            elif kind == "forgetting":
                perhaps.add(rest)
            elif kind == "forgot":
                gone.add(rest)
            elif kind == "recalled":
                self.counts.recalled += 1
            elif kind == "told":
                self.counts.told[rest.partition(" ")[0]] += 1
            elif kind == "foreign":
                self.counts.foreign.append(rest)
        self.counts.connections = self.place.connections()
        found = texts(self.place.url, self.place.spaces)
        certain = {id: text for id, text in stored.items() if id not in perhaps}
        self.counts.acknowledged = len(certain)
        self.counts.found = sum(id in found for id in certain)
        self.counts.equal = sum(found.get(id) == text for id, text in certain.items())
        self.counts.forgotten, self.counts.back = len(gone), len(gone & set(found))
        check(self.place.conninfo())

    def _lines(self) -> Iterator[tuple[str, str]]:
        for file in sorted(self.folder.glob("*.out")):
            whole, _, _ = file.read_bytes().decode().rpartition("\n")  # a killed process leaves half a line
            for line in whole.splitlines():
                kind, _, rest = line.partition(" ")
                yield kind, rest
        for file in sorted(self.folder.glob("*.err")):
            if said := file.read_text(encoding="utf-8"):
                yield "foreign", said
