"""Nothing acknowledged is lost, nothing foreign is raised, nothing stays connected, whatever is killed; with counts."""

from __future__ import annotations

import random
import shutil
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import semmem
from semmem.stores.embedded.server import EmbeddedServer
from tests.stores.audit import check
from tests.stores.postgres import own_server
from tests.stores.storm import Place, Storm, embedded_place, own_place, texts

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]

VERB = """
import sys, semmem

verb, *given = sys.argv[1:]

def progress(done):
    print("progress", done, flush=True)

try:
    if verb == "rebuild":
        with semmem.connect(given[0], embedder="hashing", pool_size=2) as mem:
            mem.rebuild(progress=progress)
    elif verb == "copy":
        semmem.copy(given[0], given[1], progress=progress)
    else:
        with semmem.connect(given[1], embedder="none", pool_size=2) as mem:
            mem.restore(given[0], progress=progress)
    print("done", flush=True)
except semmem.SemmemError as error:
    print("told", type(error).__name__, " ".join(str(error).split()), flush=True)
"""


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[], EmbeddedServer]]:
    """Give embedded servers that may be killed."""
    made: list[EmbeddedServer] = []

    def make() -> EmbeddedServer:
        made.append(EmbeddedServer(tmp_path_factory.mktemp("storm") / "data", idle_stop_s=300))
        return made[-1]

    yield make
    for server in made:
        server.stop("immediate")
        shutil.rmtree(server.data, ignore_errors=True)  # of a server that no test has started, there is none


@pytest.fixture(scope="module", params=["embedded", "own"])
def places(request: pytest.FixtureRequest, servers: Callable[[], EmbeddedServer]) -> Iterator[tuple[Place, Place]]:
    """Two stores of one kind, empty at first."""
    if request.param == "embedded":
        yield embedded_place(servers()), embedded_place(servers())
        return
    own = own_server.make()
    yield own_place(own), own_place(own)
    own_server.unmake(own)


def test_a_storm_of_processes_and_kills_loses_nothing(
    places: tuple[Place, Place], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    place = places[0]
    place.empty()
    with semmem.connect(place.url, embedder="hashing", pool_size=1):
        pass  # so that the seconds of the storm are not spent on making a server
    kills = ["writer", "backend", "writer", "server", *(["watch"] if place.kill_watch is not None else [])]
    counts = Storm(place, tmp_path, processes=5).rage(1.6 * len(kills), kills)
    with capfd.disabled():
        print(f"\nstorm on {place.name}: {counts}")
    assert counts.kills.total() == len(kills)
    assert counts.acknowledged > 20
    assert (counts.found, counts.equal) == (counts.acknowledged, counts.acknowledged)
    assert counts.back == 0
    assert counts.foreign == []
    assert set(counts.told) <= {"StoreUnavailable"}
    assert counts.connections == 0


def test_a_storm_without_kills_is_told_of_nothing(
    places: tuple[Place, Place], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    place = places[1]
    place.empty()
    with semmem.connect(place.url, embedder="hashing", pool_size=1):
        pass
    counts = Storm(place, tmp_path, processes=4).rage(2)
    with capfd.disabled():
        print(f"\ncalm on {place.name}: {counts}")
    assert counts.acknowledged > 20
    assert (counts.found, counts.equal) == (counts.acknowledged, counts.acknowledged)
    assert (counts.back, counts.foreign, counts.told, counts.connections) == (0, [], {}, 0)


@pytest.mark.parametrize("verb", ["rebuild", "copy", "restore"])
def test_kills_in_the_middle_of_a_long_verb_lose_nothing(
    places: tuple[Place, Place], verb: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    source, target = places
    source.empty()
    target.empty()
    items = [
        {"id": f"m{n}", "text": f"Owl {n} sat in tower {n % 7} with Ada Lovelace.", "title": f"Owl {n}"}
        for n in range(600)
    ]
    wanted = {item["id"]: item["text"] for item in items}
    stored_with = "none" if verb == "rebuild" else "hashing"  # rebuild makes the vectors that are missing
    with semmem.connect(source.url, embedder=stored_with, pool_size=2) as mem:
        assert mem.remember_many(items, batch_size=200).remembered == 600
        if verb == "restore":
            mem.backup(tmp_path / "all.semmem")
    hit = source if verb == "rebuild" else target
    given = {"rebuild": [source.url], "copy": [source.url, target.url]}.get(
        verb, [str(tmp_path / "all.semmem"), target.url]
    )
    ends: Counter[str] = Counter()
    for turn, what in enumerate(("process", "backend", "server", "process")):
        ends[run_and_kill(verb, given, hit, what, after=0.03 * turn)] += 1
    said = end_of(start(verb, given))
    assert said == "done" or (verb == "restore" and "The store is not empty" in said)
    left = hit.connections()
    found = texts(hit.url)
    with capfd.disabled():
        equal = sum(found.get(id) == text for id, text in wanted.items())
        print(f"\n{verb} on {hit.name}: ends {dict(ends)}; acknowledged 600, found {len(found)}, text equal {equal}; "
              f"foreign errors 0; connections left {left}")  # fmt: skip
    assert found == wanted
    check(hit.conninfo())
    assert set(ends) <= {"killed", "done", "StoreUnavailable", "InvalidInput"}
    assert left == 0


def start(verb: str, given: list[str]) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", VERB, verb, *given]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def end_of(process: subprocess.Popen[str]) -> str:
    """Wait for the process; return what it said last. It must have said something, and raised nothing."""
    out, err = process.communicate(timeout=200)
    assert err == ""
    return out.strip().splitlines()[-1]


def run_and_kill(verb: str, given: list[str], hit: Place, what: str, *, after: float) -> str:
    """Start the verb, kill something when it has made progress, and return how it ended."""
    process = start(verb, given)
    assert process.stdout is not None
    process.stdout.readline()  # it has begun, or ended
    time.sleep(after + random.random() * 0.05)
    if what == "process":
        process.kill()
        process.communicate()
        return "killed"
    (hit.kill_backend if what == "backend" else hit.kill_server)()
    said = process.communicate(timeout=200)
    assert said[1] == ""
    last = said[0].strip().splitlines()[-1] if said[0].strip() else "done"
    return last.split()[1] if last.startswith("told") else "done"
