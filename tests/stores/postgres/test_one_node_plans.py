"""What a verb asks and writes of one namespace goes to the one node that holds it, and to one shard of each table.

Citus says with each command on which node it runs (``citus.log_remote_commands``), and its text names the shards.
"""

from __future__ import annotations

import re
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any

import psycopg
import pytest

import semmem
from semmem.client.memory import Semmem
from semmem.model.types import Filters
from semmem.stores.postgres import connection as connections
from semmem.stores.postgres.store import PostgresStore
from semmem.stores.resident import loading
from tests.stores.postgres.nodes import Cluster, wants_citus
from tests.waiting import until

pytestmark = wants_citus

LOUD = "?options=-c%20citus.log_remote_commands%3Don"
OF_ALL = {"forget for good": "logged recalls of other namespaces may quote the text, and every table is rewritten"}
"""The verbs that ask every node, and why."""
_PLACE = """SELECT nodename || ':' || nodeport, shardid FROM citus_shards WHERE table_name = 'semmem.memory'::regclass
AND shardid = get_shard_id_for_distribution_column('semmem.memory', %(namespace)s::text)"""
_WAITING = """SELECT EXISTS (SELECT FROM pg_locks l JOIN pg_database d ON d.oid = l.database
WHERE d.datname = current_database() AND NOT l.granted)"""
_SHARD = re.compile(r"\bsemmem\.(\w+?)_(\d{6,})\b")


@pytest.fixture
def commands(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """Gather (node, command) of what the coordinator sends to the nodes from now on."""
    gathered: list[tuple[str, str]] = []
    register = connections.register_arrays

    def registered(connection: psycopg.Connection[Any]) -> None:
        register(connection)

        def notice(diag: psycopg.errors.Diagnostic) -> None:
            if (words := diag.message_primary or "").startswith("issuing "):
                node = re.search(r"@(\S+)", diag.message_detail or "")
                assert node is not None, diag.message_detail
                gathered.append((node[1], words.removeprefix("issuing ")))

        connection.add_notice_handler(notice)

    monkeypatch.setattr(connections, "register_arrays", registered)
    return gathered


@pytest.fixture(scope="module")
def coordinator(citus: Cluster) -> str:
    """The URL of a filled store on three nodes."""
    url = citus.database("plans", parts=8)[0]
    with semmem.connect(url, embedder="hashing") as mem:
        for space in ("here", "there", "elsewhere"):
            texts = [f"Note {n}: Ada Lovelace met owl {n % 7} near the quay at {n}." for n in range(60)]
            mem.remember_many([{"id": f"m{n}", "text": t, "session": f"s{n % 5}"} for n, t in enumerate(texts)],
                              namespace=space)  # fmt: skip
        mem.maintain()
    return url


def reached(commands: list[tuple[str, str]]) -> dict[str, set[str]]:
    """Return the shards of each table that commands name, where they are several."""
    shards: dict[str, set[str]] = defaultdict(set)
    for _, command in commands:
        for table, shard in _SHARD.findall(command):
            shards[table].add(shard)
    return {table: each for table, each in shards.items() if len(each) > 1}


def verbs(mem: Semmem, namespace: str) -> Iterator[tuple[str, Callable[[], object]]]:
    where: Any = {"namespace": namespace}
    question = "Which owl did Ada Lovelace meet?"
    yield "remember", lambda: mem.remember("A heron came late to the quay.", id="one", **where)
    yield "remember again", lambda: mem.remember("A heron came late to the quay.", id="one", **where)
    yield "update", lambda: mem.update("one", text="A heron came early.", **where)
    yield "remember many", lambda: mem.remember_many([{"text": f"Crow {n} sat on it."} for n in range(40)], **where)
    yield "remember a long text", lambda: mem.remember("The whole text is long. " * 120, id="long", **where)
    yield "recall", lambda: mem.recall(question, **where)
    yield "recall by filters", lambda: mem.recall(question, filters={"sessions": ["s1"]}, exclude=["m3"], **where)
    yield "recall as of a day", lambda: mem.recall(question, as_of="2030-01-01", **where)
    yield "get", lambda: mem.get("m1", **where)
    for order in ("created", "updated", "importance", "accessed"):
        yield f"list by {order}", lambda order=order: mem.list(limit=5, sort_by=order, **where)  # type: ignore[misc]
    yield "stats", lambda: mem.stats(**where)
    yield "exact stats", lambda: mem.stats(exact=True, **where)
    yield "forget softly", lambda: mem.forget("m5", **where)
    yield "restore", lambda: mem.restore_memory("m5", **where)
    yield "forget for good", lambda: mem.forget("long", hard=True, **where)
    yield "forget by filters", lambda: mem.forget(filters={"sessions": ["s2"]}, **where)


@pytest.mark.parametrize("resident_mb", [0, 64])
def test_a_verb_of_one_namespace_asks_one_shard_of_one_node(
    coordinator: str, commands: list[tuple[str, str]], resident_mb: int
) -> None:
    several: dict[str, Any] = {}
    with semmem.connect(coordinator + LOUD, embedder="hashing", pool_size=2, resident_mb=resident_mb) as mem:
        for verb, work in verbs(mem, "there" if resident_mb else "here"):
            commands.clear()
            work()
            assert commands != []
            nodes = {node for node, command in commands if _SHARD.search(command)}
            if len(nodes) > 1 or reached(commands):
                several[verb] = (nodes, reached(commands))
    assert set(several) == set(OF_ALL), several


def test_the_hits_and_the_state_beside_them_ask_one_shard(coordinator: str, commands: list[tuple[str, str]]) -> None:
    with semmem.connect(coordinator + LOUD, embedder="hashing", pool_size=2) as mem:
        store = mem.store
        assert isinstance(store, PostgresStore)
        commands.clear()
        scope, memories, _ = store.scope_and_memories(("here",), Filters(), (), (1, 2), ())
        assert len({node for node, command in commands if _SHARD.search(command)}) == 1
        assert reached(commands) == {}
        assert (scope, memories) == (store.scope(("here",), Filters(), ()), store.indexed_memories(("here",), (1, 2)))


def test_a_namespace_is_loaded_into_memory_from_one_shard(
    coordinator: str, commands: list[tuple[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loading, "_AT_A_TIME", 25)
    with semmem.connect(coordinator + LOUD, embedder="hashing", pool_size=2) as mem:
        store = mem.store
        assert isinstance(store, PostgresStore)
        commands.clear()
        model = loading.load(store, "elsewhere", 1 << 30, 1 << 30)
        assert model is not None
        assert model.state.memories == 60
        assert len({node for node, command in commands if _SHARD.search(command)}) == 1
        assert reached(commands) == {}


def test_the_stats_of_one_namespace_name_its_node_and_leave_out_the_bytes_of_all(coordinator: str) -> None:
    with semmem.connect(coordinator, embedder="hashing") as mem, psycopg.connect(coordinator) as admin:
        for space in ("here", "there"):
            place, _ = admin.execute(_PLACE, {"namespace": space}).fetchone()  # type: ignore[misc]
            counts = mem.stats(namespace=space)
            assert (counts.nodes, counts.bytes) == ((place,), None)
        assert mem.stats().bytes is not None


def test_an_examination_asks_each_node_once_for_the_sizes_of_its_shards(
    coordinator: str, commands: list[tuple[str, str]]
) -> None:
    with semmem.connect(coordinator + LOUD, embedder="hashing") as mem:
        commands.clear()
        mem.doctor()
    asked = [node for node, command in commands if "pg_total_relation_size" in command or "citus_total" in command]
    assert len(asked) == len(set(asked)) == 3


def test_a_recall_over_namespaces_of_two_nodes_asks_both_at_once(citus: Cluster, coordinator: str) -> None:
    spaces: dict[str, tuple[str, int]] = {}
    with psycopg.connect(coordinator) as admin:
        for space in ("here", "there", "elsewhere"):
            place, shard = admin.execute(_PLACE, {"namespace": space}).fetchone()  # type: ignore[misc]
            spaces.setdefault(place, (space, shard))
    names = [space for space, _ in spaces.values()]
    assert len(names) == 2
    question = "Which owl did Ada Lovelace meet?"
    with (
        semmem.connect(coordinator, embedder="hashing", pool_size=8, resident_mb=0) as mem,
        ThreadPoolExecutor(8) as threads,
        ExitStack() as stack,
    ):
        barrier = threading.Barrier(8, timeout=100)
        for done in [threads.submit(mem.store.run, lambda _: barrier.wait()) for _ in range(8)]:
            done.result()  # eight connections from now on
        expected = [(hit.memory.namespace, hit.id, hit.score) for hit in mem.recall(question, namespace=names)]
        workers = []
        for url in citus.urls[1:]:
            own = url.rsplit("/", 1)[0] + "/plans"
            may_lock = "-c citus.enable_manual_changes_to_shards=on"
            worker = stack.enter_context(psycopg.connect(own, options=may_lock))
            _, shard = spaces[url.partition("@")[2].partition("/")[0]]
            worker.execute(f"LOCK TABLE semmem.memory_{shard} IN ACCESS EXCLUSIVE MODE")
            workers.append(worker)
        answer = threads.submit(mem.recall, question, namespace=names)
        until(lambda: all(worker.execute(_WAITING).fetchone() == (True,) for worker in workers))
        for worker in workers:
            worker.rollback()
        assert [(hit.memory.namespace, hit.id, hit.score) for hit in answer.result()] == expected
