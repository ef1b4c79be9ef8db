"""A store on three nodes is written through any of them, and loses nothing when one is killed."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator

import pytest

import semmem
from semmem.client.memory import Semmem
from semmem.model.errors import StoreUnavailable
from tests.stores.audit import check
from tests.stores.postgres.nodes import Cluster, wants_citus

pytestmark = wants_citus

KILLS = 20
WRITER = """
import sys, semmem
url, who = sys.argv[1:]
with semmem.connect(url, embedder="hashing") as mem:
    for n in range(30):
        mem.remember(f"Writer {who} saw owl {n} with Ada.", id=f"{who}-{n}", namespace="both")
        assert mem.get(f"{who}-{n}", namespace="both").id == f"{who}-{n}"
"""


@pytest.fixture
def urls(citus: Cluster) -> tuple[str, ...]:
    """The URLs of an empty store, of the coordinator and of two workers."""
    each = citus.database("failing")
    semmem.connect(each[0], embedder="hashing").close()
    return each


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


def test_what_was_acknowledged_is_there_after_each_kill_of_a_node(mem: Semmem, citus: Cluster) -> None:
    by_node: dict[str, str] = {}
    for n in range(20):
        mem.remember("Owl 0 met Ada.", id="m0", namespace=f"space {n}")
        by_node.setdefault(mem.stats(namespace=f"space {n}").nodes[0], f"space {n}")
    places = [url.partition("@")[2].partition("/")[0] for url in citus.urls]
    assert set(by_node) == set(places[1:])
    stored = {space: ["m0"] for space in by_node.values()}
    for turn in range(KILLS):
        node = 1 + turn % 2
        dead, living = by_node[places[node]], by_node[places[3 - node]]
        for space, ids in stored.items():
            ids.append(mem.remember(f"Owl {turn} met Ada again.", id=f"m{turn + 1}", namespace=space).id)
        citus.do("kill", node)
        try:
            assert {hit.id for hit in mem.recall("owl", namespace=living, limit=50)} == set(stored[living])
            assert {m.id for m in mem.list(namespace=living, limit=50)} == set(stored[living])
            with pytest.raises(StoreUnavailable) as caught:
                mem.recall("owl", namespace=dead)
            assert str(caught.value) == (
                f"The node {places[node]} of this store does not answer, and this call needs it; start it there. "
                "Recalls of namespaces on other nodes go on."
            )
        finally:
            citus.do("start", node)
        for space, ids in stored.items():
            assert {m.id for m in mem.list(namespace=space, limit=50)} == set(ids)
    check(mem)
