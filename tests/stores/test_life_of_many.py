"""Many processes change, forget and take back the same memories at once; one is killed in the middle of it."""

from __future__ import annotations

import hashlib
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

import semmem
from semmem.client.memory import Semmem
from semmem.model.errors import NotFound
from tests.stores.audit import check, sql

pytestmark = [pytest.mark.slow, pytest.mark.nodes, pytest.mark.timeout(400)]

IDS = ("a", "b", "c")

AT_ONCE = """
import hashlib, random, sys, semmem

url, who, steps = sys.argv[1], sys.argv[2], int(sys.argv[3])
chance = random.Random(who)

def say(*words):
    print(*words, flush=True)

def sealed(text):
    said, _, seal = text.rpartition(" ")
    return hashlib.sha256(said.encode()).hexdigest() == seal

def seen(memory):
    if not sealed(memory.text) or f"version {memory.version} " not in memory.text:
        say("torn", memory.id, memory.version, memory.text)

with semmem.connect(url, embedder="hashing", pool_size=2) as mem:
    for n in range(steps):
        id = chance.choice("abc")
        try:
            does = chance.choice(["update", "update", "update", "forget", "restore", "restore", "recall"])
            if does == "update":
                there = mem.get(id)
                seen(there)
                said = f"owl {id} version {there.version + 1} by {who} {n}"
                seal = hashlib.sha256(said.encode()).hexdigest()
                done = mem.update(id, text=f"{said} {seal}", expected_version=there.version, changed_by=who)
                say("update", id, done.version)
            elif does == "forget":
                mem.forget(id, forgotten_by=who)
                say("forget", id)
            elif does == "restore":
                seen(mem.restore_memory(id))
                say("restore", id)
            else:
                for hit in mem.recall("owl version", limit=5):
                    seen(hit.memory)
                say("recall", id)
        except (semmem.NotFound, semmem.Conflict) as error:
            say("told", type(error).__name__)
"""

# These two end by being killed alone: one that is killed late has done all its steps, and waits.
CHANGES = """
import sys, time, semmem

with semmem.connect(sys.argv[1], embedder=sys.argv[2], pool_size=2) as mem:
    print("began", flush=True)
    for n in range(int(sys.argv[3])):
        mem.update(f"m{n}", text=f"after{n} heron", changed_by="clerk")
        if n % 3 == 0:
            mem.forget(f"m{n}", forgotten_by="clerk")
        print("done", n, flush=True)
    time.sleep(600)
"""

FORGETS = """
import sys, time, semmem

with semmem.connect(sys.argv[1], embedder=sys.argv[2], pool_size=2) as mem:
    print("began", flush=True)
    for n in range(int(sys.argv[3])):
        mem.forget(filters={"sessions": f"s{n}"}, forgotten_by="clerk")
        print("done", n, flush=True)
    time.sleep(600)
"""


def sealed(said: str) -> str:
    return f"{said} {hashlib.sha256(said.encode()).hexdigest()}"


def started(program: str, *arguments: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", program, *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def there(mem: Semmem, id: str) -> bool:
    return bool(mem.store.get("default", [id]))


def test_processes_that_change_forget_and_take_back_at_once_lose_tear_and_resurrect_nothing(store_url: str) -> None:
    with semmem.connect(store_url, embedder="hashing", pool_size=2) as mem:
        for id in IDS:
            mem.remember(sealed(f"owl {id} version 1 by nobody 0"), id=id)
        mem.link("a", "see-also", "b")
        processes = [started(AT_ONCE, store_url, who, 60) for who in range(4)]
        ends = [process.communicate(timeout=300) for process in processes]
        assert [err for _, err in ends if err] == []
        said = [(str(who), *line.split()) for who, (out, _) in enumerate(ends) for line in out.splitlines()]
        assert [line for line in said if line[1] == "torn"] == []
        told = Counter((line[1], line[2]) for line in said)
        assert sum(told["update", id] for id in IDS) > 10
        for id in IDS:
            gone = told["forget", id] - told["restore", id]
            assert gone == (0 if there(mem, id) else 1)  # each was told of what happened, and of nothing else
            if gone:
                mem.restore_memory(id)
            history = mem.history(id)
            versions = {int(line[3]): line[0] for line in said if line[1:3] == ("update", id)}
            assert len(versions) == told["update", id]  # no version was given to two
            assert [one.version for one in history] == list(range(1, len(versions) + 2))
            for one in history:
                text, _, seal = one.memory.text.rpartition(" ")
                assert hashlib.sha256(text.encode()).hexdigest() == seal
                who = versions.get(one.version)
                assert (one.changed_by, one.forgotten_at) == (who, None)
                assert text.startswith(f"owl {id} version {one.version} by {who or 'nobody'} ")
            assert mem.get(id) == history[-1].memory
        assert [one.key for one in mem.links("a")] == [("a", "see-also", "b")]
    check(store_url)


@pytest.fixture(params=["SQLite", "PostgreSQL"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[str, str]:
    """The URL of an empty store, and the embedder that fills it."""
    if request.param == "SQLite":
        return f"sqlite://{tmp_path / 'notes.db'}", "none"
    return str(request.getfixturevalue("store_url")), "hashing"


def killed(program: str, place: tuple[str, str], *, enough: int, most: int, after: float) -> int:
    """Kill a process of ``most`` steps ``after`` seconds behind step ``enough``; return how many it said were done."""
    process = started(program, *place, most)
    assert process.stdout is not None
    done = 0
    for line in process.stdout:
        done += line.startswith("done")
        if done >= enough:
            break
    time.sleep(after)
    process.send_signal(signal.SIGKILL)
    rest, err = process.communicate()
    assert (process.returncode, err) == (-signal.SIGKILL, "")
    if place[0].startswith("postgresql"):
        wait_for_sessions(place[0])
    return done + rest.count("done ")


def wait_for_sessions(url: str) -> None:
    busy = """SELECT count(*) FROM pg_stat_activity
              WHERE datname = current_database() AND state <> 'idle' AND pid <> pg_backend_pid()"""
    end = time.monotonic() + 100
    while sql(url, busy)[0][0]:
        assert time.monotonic() < end
        time.sleep(0.05)


def found(mem: Semmem, word: str) -> set[str]:
    return {hit.id for hit in mem.recall(word, recipe="lexical")}


@pytest.mark.parametrize("after", [0.0, 0.013, 0.05])
def test_a_kill_in_the_middle_of_changes_leaves_each_memory_wholly_before_or_after(
    place: tuple[str, str], after: float
) -> None:
    with semmem.connect(place[0], embedder=place[1], pool_size=2) as mem:
        held = 400
        mem.remember_many([{"id": f"m{n}", "text": f"before{n} heron"} for n in range(held)])
        for n in range(0, 40, 2):
            mem.link(f"m{n}", "see-also", f"m{n + 1}")
        done = killed(CHANGES, place, enough=12, most=200, after=after)
        assert 12 <= done <= 200
        states = {n: state(mem, n) for n in range(done + 2)}
        for n in range(done):
            assert states[n] == ("forgotten" if n % 3 == 0 else "changed")
        assert states[done] in (("before", "changed", "forgotten") if done % 3 == 0 else ("before", "changed"))
        assert states[done + 1] == "before"
        for n in range(0, 40, 2):
            hidden = "forgotten" in (state(mem, n), state(mem, n + 1))
            if states.get(n) != "forgotten":
                assert len(mem.links(f"m{n}")) == (0 if hidden else 1)
        for n in [n for n, kind in states.items() if kind == "forgotten"]:
            assert mem.restore_memory(f"m{n}").version == 2
            assert state(mem, n) == "changed"
        assert [len(mem.links(f"m{n}")) for n in range(0, 40, 2)] == [1] * 20
        check(mem)


def state(mem: Semmem, n: int) -> str:
    """Return what has become of one memory, after a look at all that must agree with it."""
    id = f"m{n}"
    history = [(v.memory.text, v.changed_by, v.forgotten_at is not None) for v in mem.history(id)]
    before, after = found(mem, f"before{n}"), found(mem, f"after{n}")
    try:
        text = mem.get(id).text
    except NotFound:
        assert history == [(f"before{n} heron", None, True), (f"after{n} heron", "clerk", True)]
        assert (before, after) == (set(), set())
        return "forgotten"
    if text == f"before{n} heron":
        assert (history, before, after) == ([(text, None, False)], {id}, set())
        return "before"
    assert history == [(f"before{n} heron", None, False), (f"after{n} heron", "clerk", False)]
    assert (text, before, after) == (f"after{n} heron", set(), {id})
    return "changed"


@pytest.mark.parametrize("after", [0.0, 0.02])
def test_a_kill_in_the_middle_of_a_filter_that_forgets_leaves_all_or_none_of_what_it_matches(
    place: tuple[str, str], after: float
) -> None:
    groups, each = 60, 25
    with semmem.connect(place[0], embedder=place[1], pool_size=2) as mem:
        names = [(g, n) for g in range(groups) for n in range(each)]
        items = [{"id": f"{g}-{n}", "text": f"g{g}n{n} owl", "session": f"s{g}"} for g, n in names]
        mem.remember_many(items)
        done = killed(FORGETS, place, enough=4, most=50, after=after)
        left = [mem.forget(filters={"sessions": f"s{g}"}, dry_run=True) for g in range(groups)]
        assert left[:done] == [0] * done
        assert set(left) <= {0, each}
        assert left[done + 1 :] == [each] * (groups - done - 1)
        for g in range(min(groups, done + 2)):
            kept = [v.forgotten_at is not None for n in range(each) for v in mem.history(f"{g}-{n}")]
            assert kept == [left[g] == 0] * each
            assert found(mem, f"g{g}n3") == ({f"{g}-3"} if left[g] else set())
        assert mem.restore_memory("0-3").text == "g0n3 owl"
        check(mem)
