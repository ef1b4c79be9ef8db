"""A store is spread over the nodes of Citus when it is made, or later by `semmem distribute` while others use it."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg
import pytest

import semmem
from semmem.client.memory import Semmem
from semmem.model.errors import InvalidInput, SchemaTooOld, StoreUnavailable
from semmem.stores import distribute_store, secure_rows
from semmem.stores.postgres import nearest
from semmem.stores.postgres.migrate import migrate, number
from semmem.stores.postgres.moving.backup import write_backup
from semmem.stores.sql_files import migrations
from tests.stores.audit import check
from tests.stores.postgres.nodes import Cluster, join, wants_citus
from tests.write.other_embedder import Other

QUESTION = "Which owl did Ada Lovelace meet?"
NEWEST = migrations("postgres")[-1][0]
_KINDS = """
SELECT citus_table_type, count(*), count(DISTINCT colocation_id), min(distribution_column)
FROM citus_tables GROUP BY 1 ORDER BY 1
"""


def on_nodes(url: str) -> list[Any]:
    """Return how many tables are of each kind, in how many groups, and the column that distributes them."""
    with psycopg.connect(url) as connection:
        return connection.execute(_KINDS).fetchall()


def fill(mem: Semmem) -> None:
    for space in ("first", "second", "third"):
        texts = [f"Note {n}: Ada Lovelace met owl {n % 7} near the quay." for n in range(60)]
        mem.remember_many([{"id": f"m{n}", "text": text} for n, text in enumerate(texts)], namespace=space)


def answers(mem: Semmem) -> list[Any]:
    spaces = ("first", "second", "third")
    return [[(hit.id, hit.score) for hit in mem.recall(QUESTION, namespace=space)] for space in spaces]


@contextmanager
def at_work(mem: Semmem) -> Iterator[Counter[str]]:
    """Recall and remember inside the block; yields how often each was done."""
    over, done = threading.Event(), Counter[str]()

    def go(what: str, work: Callable[[], object]) -> None:
        while not over.is_set():
            work()
            done[what] += 1

    def recall() -> None:
        assert mem.recall(QUESTION, namespace="second").degraded == {}

    def remember() -> None:
        mem.remember(f"Heron {done['written']} came.", namespace="written")

    with ThreadPoolExecutor(2) as pool:
        try:
            both = [pool.submit(go, "read", recall), pool.submit(go, "written", remember)]
            yield done
        finally:
            over.set()
        for one in both:
            one.result()


def test_a_server_without_citus_says_what_to_install(store_url: str) -> None:
    migrate(store_url)
    with pytest.raises(StoreUnavailable) as caught:
        distribute_store(store_url)
    assert str(caught.value) == (
        "This server has no Citus, which spreads a store over several; install version 13 or newer on every node and "
        "name it in shared_preload_libraries."
    )


def test_a_store_that_is_not_made_or_not_up_to_date_is_migrated_first(store_url: str) -> None:
    with psycopg.connect(store_url, autocommit=True, options="-c client_min_messages=error") as connection:
        connection.execute("DROP SCHEMA semmem CASCADE")
    for upto, has in ((None, "has no tables of semmem"), (NEWEST - 1, f"has schema {NEWEST - 1}")):
        if upto is not None:
            migrate(store_url, upto=upto)
        with pytest.raises(SchemaTooOld) as caught:
            distribute_store(store_url)
        assert str(caught.value) == (
            f"This store {has}, and schema {NEWEST} can be distributed; run `semmem migrate` first."
        )


def test_a_file_lies_on_one_machine(tmp_path: Path) -> None:
    with pytest.raises(
        InvalidInput, match=r"^A SQLite file lies on one machine; to spread its memories over several, "
    ):
        distribute_store(f"sqlite:{tmp_path}/notes.db")
    assert list(tmp_path.iterdir()) == []


class TestOnThreeNodes:
    """With Citus alone."""

    pytestmark = wants_citus

    def test_an_empty_store_is_made_on_all_nodes(self, citus: Cluster) -> None:
        coordinator, worker, _ = citus.database("empty")
        refusal = r"^This server is a worker of Citus.* once to the coordinator \(127\.0\.0\.1:\d+\), then to"
        with pytest.raises(StoreUnavailable, match=refusal):
            semmem.connect(worker, embedder="hashing")
        place = coordinator.partition("@")[2].partition("/")[0]
        with pytest.raises(StoreUnavailable) as refused:
            distribute_store(worker)
        assert str(refused.value) == (
            "This server is a worker of Citus, and the tables are made and changed on the coordinator alone; run "
            f"`semmem distribute` with the address of the coordinator ({place})."
        )
        semmem.connect(coordinator, embedder="hashing").close()
        assert on_nodes(coordinator) == [("distributed", 22, 1, "namespace"), ("reference", 5, 1, "<none>")]
        with semmem.connect(worker, embedder="hashing") as mem:
            assert mem.remember("An owl met Ada.", id="m1").id == "m1"
        with semmem.connect(coordinator, embedder="hashing") as mem:
            assert [hit.id for hit in mem.recall("Who met Ada?")] == ["m1"]
            workers = {url.partition("@")[2].partition("/")[0] for url in citus.urls[1:]}
            assert set(mem.stats().nodes) == workers
            assert mem.stats(namespace="default").nodes in {(one,) for one in workers}
            found = {one.what: one for one in mem.doctor()}["nodes"]
            assert (found.state, found.detail.count(" has 16 shards, "), found.detail[:9]) == ("good", 2, "2 nodes: ")

    def test_a_coordinator_that_no_node_has_joined_says_how_they_join(self, citus: Cluster) -> None:
        coordinator, *_ = citus.database("alone", joined=False)
        sentence = (
            "This database has Citus and no nodes to put a store on; let an administrator run on its coordinator: "
            "SELECT citus_set_coordinator_host('HOST', 5432), and for each other node SELECT "
            "citus_add_node('HOST', 5432)"
        )
        url = urlsplit(coordinator)
        for step in ("CREATE EXTENSION citus", f"SELECT citus_set_coordinator_host('127.0.0.1', {url.port})"):
            with psycopg.connect(coordinator, autocommit=True) as connection:
                connection.execute(step)
            with pytest.raises(StoreUnavailable) as raised:
                semmem.connect(coordinator, embedder="hashing")
            assert str(raised.value) == sentence

    def test_a_store_on_nodes_is_migrated_there(self, citus: Cluster) -> None:
        coordinator, worker, _ = citus.database("older")
        migrate(coordinator, upto=NEWEST - 1)
        with pytest.raises(StoreUnavailable, match=r"^This server is a worker of Citus"):
            migrate(worker)
        assert migrate(coordinator) == NEWEST
        with psycopg.connect(worker) as connection:
            assert number(connection) == NEWEST
        assert on_nodes(coordinator) == [("distributed", 22, 1, "namespace"), ("reference", 5, 1, "<none>")]

    def test_a_backup_of_an_older_schema_is_restored_on_all_nodes(
        self, citus: Cluster, store_url: str, tmp_path: Path
    ) -> None:
        with semmem.connect(store_url, embedder="hashing") as mem:
            fill(mem)
            expected = answers(mem)
            with psycopg.connect(store_url) as connection:  # as schema 22 was
                connection.execute("DELETE FROM semmem.migration WHERE number > 22")
                connection.execute("DROP TABLE semmem.audit, semmem.rate_bucket")
                connection.execute("ALTER TABLE semmem.namespace DROP COLUMN settled")
        with psycopg.connect(store_url, autocommit=True) as connection:
            write_backup(connection, tmp_path / "old.semmem")
        with semmem.connect(citus.database("restored", parts=8)[0], embedder="hashing") as mem:
            assert mem.restore(tmp_path / "old.semmem").memories == 180
            assert on_nodes(mem.store.url) == [("distributed", 22, 1, "namespace"), ("reference", 5, 1, "<none>")]
            assert answers(mem) == expected
            check(mem)

    def test_a_filled_store_is_distributed_while_others_read_and_write(
        self, citus: Cluster, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(nearest, "INDEX_FROM", 100)
        urls = citus.database("filled", joined=False)
        with semmem.connect(urls[0], embedder="hashing", resident_mb=0, pool_size=4, audit=True) as mem:
            fill(mem)
            mem.maintain()
            expected, hashes = answers(mem), mem.hashes()
            noted = mem.audit().items
            with pytest.raises(StoreUnavailable, match=r"^This database does not use Citus yet; .* CREATE EXTENSION "):
                distribute_store(urls[0])
            join(urls)
            found = {one.what: one for one in mem.doctor()}["nodes"]
            assert (found.state, found.detail, found.mend) == (
                "optional", "the database has Citus, and the store lies on the coordinator alone", "semmem distribute",
            )  # fmt: skip
            assert mem.stats().nodes == ()
            would = distribute_store(urls[0], dry_run=True)
            assert (len(would.tables), would.tables["memory"], would.tables["meta"], would.nodes) == (
                27, "by namespace", "everywhere", (),
            )  # fmt: skip
            assert on_nodes(urls[0]) == []
            with at_work(mem) as times:
                done = distribute_store(urls[0])
            assert (set(done.tables), len(done.nodes)) == (set(would.tables), 2)
            assert on_nodes(urls[0]) == [("distributed", 22, 1, "namespace"), ("reference", 5, 1, "<none>")]
            assert answers(mem) == expected
            assert {name: one for name, one in mem.hashes().items() if name != "written"} == hashes
            assert mem.audit()[: len(noted)] == noted
            assert times["read"] > 1
            assert mem.stats(namespace="written").memories == times["written"] > 1
            check(mem)
        with psycopg.connect(urls[0]) as connection:
            assert connection.execute("SELECT pg_relation_size('semmem.memory')").fetchone() == (0,)  # beside the nodes
        assert distribute_store(urls[0]).tables == {}

    def test_row_level_security_and_nodes_exclude_each_other(self, citus: Cluster) -> None:
        urls = citus.database("secured", joined=False)
        migrate(urls[0])
        assert secure_rows(urls[0], on=True).open == ()
        join(urls)
        with pytest.raises(StoreUnavailable, match=r"^Row-level security is on, .* run `semmem row-security off`"):
            distribute_store(urls[0])
        assert secure_rows(urls[0], on=False).tables == ()
        with pytest.raises(StoreUnavailable, match=r"^This database has Citus, which does not pass the namespaces"):
            secure_rows(urls[0], on=True)

    def test_the_owner_of_the_tables_distributes_them(self, citus: Cluster) -> None:
        urls = citus.database("owned", joined=False)
        migrate(urls[0])
        join(urls)
        with psycopg.connect(urls[0], autocommit=True) as connection:
            connection.execute("CREATE ROLE another LOGIN")
            connection.execute("GRANT USAGE ON SCHEMA semmem TO another")
            connection.execute("GRANT SELECT ON ALL TABLES IN SCHEMA semmem TO another")
        with pytest.raises(StoreUnavailable, match=r"^This database user may not distribute semmem's tables \("):
            distribute_store(urls[0].replace("semmem@", "another@"))
        assert on_nodes(urls[0]) == []

    def test_vectors_are_indexed_and_replaced_through_the_coordinator_alone(
        self, citus: Cluster, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(nearest, "INDEX_FROM", 1)
        coordinator, worker, _ = citus.database("indexed")
        with semmem.connect(coordinator, embedder="hashing") as mem:
            mem.remember("An owl met Ada.", id="m1")
        place = coordinator.partition("@")[2].partition("/")[0]
        sentence = (
            "This server is a worker of Citus, and the tables are made and changed on the coordinator alone; {} with "
            f"the address of the coordinator ({place})."
        )
        with semmem.connect(worker, embedder="hashing") as mem:
            with pytest.raises(StoreUnavailable) as refused:
                mem.maintain()
            assert str(refused.value) == sentence.format("run `semmem maintain`")
            other = Other("other")
            with pytest.raises(StoreUnavailable) as refused:
                mem.rebuild(embedder=other)
            assert str(refused.value) == sentence.format("run `semmem rebuild`")
            assert other.seen == []
        with semmem.connect(coordinator) as mem:
            mem.maintain()
            mem.rebuild(embedder=other)
        with semmem.connect(worker, embedder=other) as mem:
            assert [hit.id for hit in mem.recall("Who met Ada?")] == ["m1"]
