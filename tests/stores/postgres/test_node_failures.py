"""A store on three nodes is written through any of them, and loses nothing when one is killed."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import semmem
from semmem.client.memory import Semmem
from semmem.model.errors import StoreUnavailable
from semmem.stores.postgres import connection as connections
from tests.stores.audit import check
from tests.stores.postgres.nodes import Cluster, NodeStores, wants_citus
from tests.stores.postgres.nodes_killed import killed

pytestmark = wants_citus

KILLS = 3
WRITER = """
import sys, semmem
url, who = sys.argv[1:]
with semmem.connect(url, embedder="hashing") as mem:
    for n in range(30):
        mem.remember(f"Writer {who} saw owl {n} with Ada.", id=f"{who}-{n}", namespace="both")
        assert mem.get(f"{who}-{n}", namespace="both").id == f"{who}-{n}"
"""


@pytest.fixture
def urls(node_stores: NodeStores) -> Iterator[tuple[str, ...]]:
    """The URLs of an empty store, of the coordinator and of two workers."""
    with node_stores.one() as urls:
        yield urls


@pytest.fixture
def mem(urls: tuple[str, ...]) -> Iterator[Semmem]:
    with semmem.connect(urls[0], embedder="hashing", pool_size=4, resident_mb=0) as mem:
        yield mem


def test_two_processes_write_one_namespace_through_two_nodes(mem: Semmem, urls: tuple[str, ...]) -> None:
    writers = [
        subprocess.Popen([sys.executable, "-c", WRITER, url, who]) for url, who in zip(urls[1:], "ab", strict=True)
    ]
    assert [writer.wait(timeout=300) for writer in writers] == [0, 0]
    assert {m.id for m in mem.list(namespace="both", limit=100)} == {f"{who}-{n}" for who in "ab" for n in range(30)}
    question = "Which owl did writer a see with Ada?"
    found = [(hit.id, hit.score) for hit in mem.recall(question, namespace="both")]
    assert len(found) == 10
    for url in urls[1:]:
        with semmem.connect(url, embedder="hashing", resident_mb=0) as other:
            assert [(hit.id, hit.score) for hit in other.recall(question, namespace="both")] == found
            assert other.stats(namespace="both").nodes == mem.stats(namespace="both").nodes != ()
    check(mem)


def by_node(mem: Semmem, citus: Cluster) -> tuple[dict[str, str], list[str]]:
    """Return a namespace with one memory on each of the two workers, and the places of the three nodes."""
    spaces: dict[str, str] = {}
    for n in range(20):
        if len(spaces) == 2:
            break
        mem.remember("Owl 0 met Ada.", id="m0", namespace=f"space {n}")
        spaces.setdefault(mem.stats(namespace=f"space {n}").nodes[0], f"space {n}")
    places = [url.partition("@")[2].partition("/")[0] for url in citus.urls]
    assert set(spaces) == set(places[1:])
    return spaces, places


def sentence(place: str) -> str:
    return (
        f"The node {place} of this store does not answer, and this call needs it; start it there. Namespaces on other "
        "nodes go on."
    )


@pytest.mark.parametrize("resident_mb", [0, 64])
def test_a_namespace_is_read_and_written_while_the_node_of_another_is_dead(
    citus: Cluster, urls: tuple[str, ...], resident_mb: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    with semmem.connect(urls[0], embedder="hashing", pool_size=4, resident_mb=resident_mb) as mem:
        spaces, places = by_node(mem, citus)
        living, dead = ({"namespace": spaces[place]} for place in places[1:])
        owls = [{"id": f"m{n}", "text": f"Owl {n} met Ada near the quay."} for n in range(1, 20)]
        for where in (living, dead):
            mem.remember_many(owls, **where)
        citus.do("kill", 2)
        try:
            assert mem.remember("Owl 20 met Ada near the quay.", id="m20", **living).id == "m20"
            many = [{"id": f"n{n}", "text": f"Crow {n} met Charles near the quay."} for n in range(60)]
            assert mem.remember_many(many, **living).remembered == 60
            assert mem.update("m20", text="Owl 20 met nobody.", **living).version == 2
            found = mem.recall("Which owl met Ada?", limit=50, **living)
            assert ({f"m{n}" for n in range(20)} <= {hit.id for hit in found}, found.degraded) == (True, {})
            assert [mem.forget("m3", **living), mem.forget("m4", **living)] == [1, 1]
            assert mem.restore_memory("m4", **living).text == "Owl 4 met Ada near the quay."
            assert mem.link("m6", "supersedes", "m7", **living).made_by is None
            assert {m.id for m in mem.list(limit=100, **living)} == (
                {f"m{n}" for n in range(21) if n != 3} | {f"n{n}" for n in range(60)}
            )
            assert mem.stats(**living).memories == 80
            for work in (
                lambda: mem.remember("Owl 20 met Ada near the quay.", id="m20", **dead),
                lambda: mem.recall("Which owl met Ada?", **dead),
                lambda: mem.stats(**dead),
                lambda: mem.forget("m3", **dead),
                lambda: mem.list(**dead),
            ):
                with pytest.raises(StoreUnavailable) as caught:
                    work()
                assert str(caught.value) == sentence(places[2])
                monkeypatch.setattr(connections, "_TRIES", 2)  # the first has tried as often as verbs do, for 3 s
            monkeypatch.undo()
            assert mem.drop_namespace(living["namespace"]) == 80
        finally:
            citus.do("start", 2)
        assert mem.list(**living).memories == ()
        assert {m.id for m in mem.list(limit=100, **dead)} == {f"m{n}" for n in range(20)}
        assert mem.remember("Owl 20 met Ada near the quay.", id="m20", **dead).version == 1
        check(mem)


def test_a_storm_of_kills_of_the_three_nodes_loses_nothing(
    citus: Cluster, urls: tuple[str, ...], tmp_path: Path
) -> None:
    counts = killed(citus, urls, tmp_path, kills=3, processes=3)
    assert (counts.kills.total(), counts.acknowledged > 20) == (3, True)
    assert (counts.found, counts.equal) == (counts.acknowledged, counts.acknowledged)
    assert (counts.back, counts.foreign, counts.connections) == (0, [], 0)
    assert set(counts.told) <= {"StoreUnavailable"}


def test_what_was_acknowledged_is_there_after_each_kill_of_a_node(
    mem: Semmem, citus: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    spaces, places = by_node(mem, citus)
    stored = {space: ["m0"] for space in spaces.values()}
    for turn in range(KILLS):
        node = 1 + turn % 2
        dead, living = spaces[places[node]], spaces[places[3 - node]]
        stored[dead].append(mem.remember(f"Owl {turn} met Ada again.", id=f"m{turn + 1}", namespace=dead).id)
        citus.do("kill", node)
        try:
            stored[living].append(mem.remember(f"Owl {turn} met Ada too.", id=f"m{turn + 1}", namespace=living).id)
            assert {hit.id for hit in mem.recall("owl", namespace=living, limit=50)} == set(stored[living])
            assert {m.id for m in mem.list(namespace=living, limit=50)} == set(stored[living])
            with monkeypatch.context() as less:
                less.setattr(connections, "_TRIES", 2)
                with pytest.raises(StoreUnavailable) as caught:
                    mem.recall("owl", namespace=dead)
            assert str(caught.value) == sentence(places[node])
        finally:
            citus.do("start", node)
        for space, ids in stored.items():
            assert {m.id for m in mem.list(namespace=space, limit=50)} == set(ids)
    check(mem)
