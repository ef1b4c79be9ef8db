"""A real Citus for tests: a coordinator and two workers, each with any number of databases.

Citus is in no package index: SEMMEM_TEST_CITUS names a program that is called as ``PROGRAM up FOLDER``, which prints a
URL, ``PROGRAM kill FOLDER NODE``, ``PROGRAM start FOLDER NODE`` and ``PROGRAM down FOLDER``; without it,
``shared/engines/citus/cluster`` beside the checkout is.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import psycopg
import pytest
from psycopg import sql

from semmem.stores.postgres.migrate import migrate
from tests.databases import END_OTHERS

_BESIDE = Path(__file__).parents[4] / "shared/engines/citus/cluster"
_PROGRAM = Path(os.environ.get("SEMMEM_TEST_CITUS") or _BESIDE)

ONE, THREE = "one server", "three nodes"
"""Where the stores of a test marked ``nodes`` lie."""
wants_citus = [
    pytest.mark.slow,
    pytest.mark.timeout(600),
    pytest.mark.skipif(not _PROGRAM.is_file(), reason="There is no Citus here."),
]
"""The marks of a module whose tests run on several nodes."""
_PARTS = "ALTER DATABASE {} SET citus.shard_count TO {parts}"
_EMPTY_HERE = r"""DO $$ DECLARE place text; BEGIN
    SET LOCAL citus.show_shards_for_app_name_prefixes TO '*';
    FOR place IN SELECT oid::regclass FROM pg_class
        WHERE relnamespace = 'semmem'::regnamespace AND relkind = 'r' AND relname ~ '_\d+$' AND relname !~ '^migration_'
    LOOP EXECUTE 'DELETE FROM ' || place; END LOOP; END $$"""
"""Empty the parts of tables that one node has; the coordinator asks for each part, and takes twice as long."""


@dataclass(frozen=True)
class Cluster:
    """A coordinator (node 0) and two workers; ``urls`` are theirs, in one database."""

    folder: Path
    urls: tuple[str, ...]

    def do(self, what: str, *node: int) -> str:
        """Call the program, and return what it prints; a killed node starts once its last processes have ended."""
        call = [sys.executable, _PROGRAM, what, self.folder, *map(str, node)]
        end = time.monotonic() + 60
        while (done := subprocess.run(call, capture_output=True, text=True, check=False)).returncode:
            assert what == "start", done.stderr
            assert time.monotonic() < end, done.stderr
            time.sleep(0.2)
        return done.stdout

    def database(self, name: str, *, joined: bool = True, parts: int = 32) -> tuple[str, ...]:
        """Make a database of that name on every node anew, and return its URLs; not ``joined``, they have no Citus.

        ``parts`` is how many each table has, 32 where nobody says otherwise.
        """
        urls = tuple(urlunsplit(urlsplit(url)._replace(path=f"/{name}")) for url in self.urls)
        for url, others in zip(self.urls, urls, strict=True):
            with psycopg.connect(url, autocommit=True) as connection:
                for statement in ("DROP DATABASE IF EXISTS {} WITH (FORCE)", "CREATE DATABASE {}", _PARTS):
                    connection.execute(sql.SQL(statement).format(sql.Identifier(name), parts=parts))
            with psycopg.connect(others, autocommit=True) as connection:
                connection.execute("CREATE EXTENSION vector SCHEMA public")
        if joined:
            join(urls)
        return urls


class NodeStores:
    """Hands out empty stores on three nodes; one that is given back is emptied, which is faster than to make one."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._free: list[tuple[str, ...]] = []
        self._numbers = count(1)

    @contextmanager
    def one(self) -> Iterator[tuple[str, ...]]:
        """Give the URLs, the coordinator's first, of an empty store that is in nobody else's hands meanwhile."""
        urls = self._free.pop() if self._free else self._new()
        migrate(urls[0])
        yield urls
        with psycopg.connect(urls[0], autocommit=True) as connection:
            connection.execute(END_OTHERS)
            if connection.execute("SELECT count(*) FROM semmem.audit").fetchone() != (0,):
                return  # nobody deletes these rows, so nobody gets this store again
        for url in urls:
            with psycopg.connect(url, autocommit=True) as connection:
                connection.execute(_EMPTY_HERE)
        self._free.append(urls)

    def _new(self) -> tuple[str, ...]:
        """Make a store of few parts: what a test does in all of them takes a quarter of the time."""
        return self._cluster.database(f"store_{next(self._numbers)}", parts=8)


def join(urls: tuple[str, ...]) -> None:
    """Let the databases of some servers be the nodes of one, the first their coordinator."""
    places = [(urlsplit(url).hostname, urlsplit(url).port) for url in urls]
    for url in urls:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("CREATE EXTENSION citus")
    with psycopg.connect(urls[0], autocommit=True) as connection:
        connection.execute("SELECT citus_set_coordinator_host(%s, %s)", places[0])
        for place in places[1:]:
            connection.execute("SELECT citus_add_node(%s, %s)", place)


def _let_have_daemons(cluster: Cluster) -> None:
    """Give the servers, which can have 8 workers, one for the daemon of Citus in each database, and some to spare.

    Where there is none left, a shard that is split or moved waits for one without an end. What a killed node has left
    prepared keeps its locks until the daemon looks for it, which is each minute where nobody says otherwise.
    """
    for url in cluster.urls:
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("ALTER SYSTEM SET max_worker_processes = 100")
            connection.execute("ALTER SYSTEM SET citus.recover_2pc_interval = '2s'")

    def again(node: int) -> None:
        cluster.do("kill", node)
        cluster.do("start", node)

    with ThreadPoolExecutor(len(cluster.urls)) as pool:
        list(pool.map(again, range(len(cluster.urls))))


@contextmanager
def three_nodes() -> Iterator[Cluster]:
    """Start three servers, and stop them at the end."""
    above = Path(tempfile.mkdtemp(prefix="semmem-citus-"))
    above.chmod(0o755)  # the servers run as a user of their own, who may not look into the folders of pytest
    folder = above / "nodes"
    empty = Cluster(folder, ())
    try:
        url = empty.do("up").split()[-1]
        with psycopg.connect(url) as connection:
            nodes = connection.execute("SELECT nodeport FROM pg_dist_node ORDER BY groupid").fetchall()
        found = urlsplit(url)
        place = f"{found.username}@{found.hostname}"
        cluster = Cluster(folder, tuple(urlunsplit(found._replace(netloc=f"{place}:{port}")) for (port,) in nodes))
        _let_have_daemons(cluster)
        yield cluster
    finally:
        if folder.exists():
            empty.do("down")
        shutil.rmtree(above, ignore_errors=True)
