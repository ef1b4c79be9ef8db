"""A worker is added, shards move to it, and a large namespace gets a shard of its own while others read and write."""

from __future__ import annotations

import time
from typing import Any

import psycopg

import semmem
from tests.stores.audit import check
from tests.stores.postgres.nodes import Cluster, join, wants_citus
from tests.stores.postgres.test_distribute import answers, at_work, fill

pytestmark = wants_citus

_SHARDS = """SELECT nodename || ':' || nodeport, count(*) FROM citus_shards
WHERE table_name = 'semmem.memory'::regclass GROUP BY 1"""
_ALONE = """SELECT shardmaxvalue::int - shardminvalue::int FROM pg_dist_shard
WHERE shardid = get_shard_id_for_distribution_column('semmem.memory', 'second')"""


def _move(admin: psycopg.Connection[Any], *places: str) -> None:
    """Move the shard of ``second``; where a reader holds what an earlier move has left there, wait for its end."""
    statement = """SELECT citus_move_shard_placement(
        get_shard_id_for_distribution_column('semmem.memory', 'second'), '127.0.0.1', %s, '127.0.0.1', %s)"""
    end = time.monotonic() + 60
    while True:
        try:
            admin.execute(statement, [place.rpartition(":")[2] for place in places])
            return
        except psycopg.errors.InternalError as error:
            if "could not be cleaned up" not in str(error) or time.monotonic() > end:
                raise
            time.sleep(0.5)


def test_a_worker_is_added_and_a_namespace_isolated_and_moved_while_others_read_and_write(citus: Cluster) -> None:
    urls = citus.database("large", joined=False)
    join(urls[:2])
    places = [url.partition("@")[2].partition("/")[0] for url in urls]
    ports = [int(place.rpartition(":")[2]) for place in places]
    with (
        semmem.connect(urls[0], embedder="hashing", resident_mb=0, pool_size=4) as mem,
        psycopg.connect(urls[0], autocommit=True) as admin,
        psycopg.connect(urls[2], autocommit=True) as worker,
    ):
        fill(mem)
        mem.maintain()
        expected, hashes = answers(mem), mem.hashes()
        assert admin.execute(_SHARDS).fetchall() == [(places[1], 32)]
        worker.execute("CREATE EXTENSION citus")
        with at_work(mem) as times:
            admin.execute("SELECT citus_add_node('127.0.0.1', %s)", [ports[2]])
            admin.execute("SELECT isolate_tenant_to_new_shard('semmem.memory', 'second', 'CASCADE')")
            assert admin.execute(_ALONE).fetchone() == (0,)  # a shard for its hash alone
            admin.execute("SELECT rebalance_table_shards('semmem.memory', max_shard_moves => 3)")
            moved = dict(admin.execute(_SHARDS).fetchall())
            assert (sum(moved.values()), moved[places[2]]) == (34, 3)
            (here,) = mem.stats(namespace="second").nodes
            there = places[2] if here == places[1] else places[1]
            _move(admin, here, there)
        assert mem.stats(namespace="second").nodes == (there,)
        assert answers(mem) == expected
        assert {name: one for name, one in mem.hashes().items() if name != "written"} == hashes
        assert times["read"] > 1
        assert mem.stats(namespace="written").memories == times["written"] > 1
        check(mem)
