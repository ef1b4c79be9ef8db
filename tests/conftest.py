"""One embedded server for the whole run, in a folder of its own, and a fresh migrated database for every test."""

from __future__ import annotations

import atexit
import gc
import os
import random
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count, groupby
from pathlib import Path
from urllib.parse import quote

import numpy as np
import psycopg
import pytest
from hypothesis import settings
from psycopg.conninfo import conninfo_to_dict

from semmem.stores.embedded.server import EmbeddedServer
from semmem.stores.postgres.migrate import migrate
from tests.databases import Databases
from tests.patience import be_patient
from tests.stores.postgres.nodes import ONE, THREE, Cluster, NodeStores, three_nodes, wants_citus

# A busy machine is no failure. In CI, where a red run lands nothing, the examples are the same every time.
settings.register_profile("people", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "people")
be_patient()

# Nor is a file of settings that the person who runs the tests has.
os.environ["SEMMEM_CONFIG"] = ""
os.environ["PGCONNECT_TIMEOUT"] = "60"  # a server that has no processor for ten seconds is not down
os.environ["SEMMEM_HOOK_PROCESS_S"] = "0"  # a hook of a test leaves no process behind, unless the test is about that

# Nor is how wide that person's terminal is, which the processes that run the tests side by side are told.
os.environ.pop("COLUMNS", None)

# Nor is what that person has in the data folder: the graph of MiniLM is made here, once a run, by the code under test.
_data_home = tempfile.mkdtemp(prefix="semmem-tests-")
atexit.register(shutil.rmtree, _data_home, ignore_errors=True)
os.environ["XDG_DATA_HOME"] = _data_home

# To collect the tests is to import them all, and garbage collection would take a sixth of that time.
_thresholds = gc.get_threshold()
gc.set_threshold(50_000, 20, 20)

# The processes that run the tests side by side are started later, and get it with the environment.
_seed = os.environ.setdefault("SEMMEM_TEST_SEED", str(random.getrandbits(32)))

_TEMPLATE = "semmem_template"
_LEFT = "SELECT datname FROM pg_database WHERE datname ~ '^(semmem_template|semmem_filled|test_|module_)'"
"""The databases that a run makes."""
_numbers = count(1)
_module_numbers = count(1)


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Give this run a folder of its own for temporary files.

    Every run closes the folder that runs share by default to other users, which root's servers run as: the server of
    another run would lose its files under way.
    """
    if config.option.basetemp is None and not hasattr(config, "workerinput"):
        config.option.basetemp = Path(_data_home) / "tmp"


def pytest_report_header() -> str:
    """Say how to repeat the order of this run."""
    return f"order of the tests: SEMMEM_TEST_SEED={_seed}"


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Let a test marked ``nodes`` run on one server and, where Citus is, slowly on three nodes."""
    if "placed" in metafunc.fixturenames and metafunc.definition.get_closest_marker("nodes"):
        metafunc.parametrize("placed", [ONE, pytest.param(THREE, marks=wants_citus)], indirect=True, scope="module")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the modules in a random order, and the tests of each, so that no test leans on another one.

    With an empty SEMMEM_TEST_SEED they stay in the order of the files.
    """
    if not _seed:
        return
    order = random.Random(_seed)
    modules = [list(tests) for _, tests in groupby(items, lambda item: item.path)]
    order.shuffle(modules)
    for tests in modules:
        order.shuffle(tests)
    items[:] = [test for tests in modules for test in tests]


def pytest_collection_finish() -> None:
    """Collect garbage as usual from now on."""
    gc.set_threshold(*_thresholds)


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Let a test draw the same random numbers in whatever order it runs."""
    random.seed(f"{_seed} {item.nodeid}")
    np.random.seed(random.getrandbits(32))


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedServer]:
    """The server that the tests share. If the run is killed, it stops by itself when idle.

    A worker may go long without a test that needs it, so idle is an hour. Where SEMMEM_TEST_SERVER names a folder, its
    server is taken without what earlier runs left there, and stays.
    """
    kept = os.environ.get("SEMMEM_TEST_SERVER")
    server = EmbeddedServer(Path(kept) if kept else tmp_path_factory.mktemp("server") / "data", idle_stop_s=3_600)
    with psycopg.connect(server.ensure_running(), autocommit=True) as connection:
        # A database for each test means checkpoints for each test; they need not survive the machine.
        connection.execute("ALTER SYSTEM SET fsync = off")
        connection.execute("SELECT pg_reload_conf()")
        for (name,) in connection.execute(_LEFT).fetchall():
            connection.execute(f"DROP DATABASE {name} WITH (FORCE)")
    yield server
    if not kept:
        server.stop("immediate")
        shutil.rmtree(server.data)


@pytest.fixture(scope="session")
def _template(server: EmbeddedServer) -> str:
    with psycopg.connect(server.ensure_running(), autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {_TEMPLATE} TEMPLATE template0")
    migrate(_url(server, _TEMPLATE))
    return _TEMPLATE


@pytest.fixture(scope="session")
def _databases(server: EmbeddedServer, _template: str) -> Iterator[Databases]:
    databases = Databases(
        lambda: _created(server),
        lambda name: psycopg.connect(_url(server, name), autocommit=True, options="-c client_min_messages=error"),
        lambda name: _dropped(server, name),
    )
    yield databases
    databases.close()


@pytest.fixture(scope="session")
def citus() -> Iterator[Cluster]:
    """A coordinator and two workers of Citus."""
    with three_nodes() as cluster:
        yield cluster


@pytest.fixture(scope="session")
def node_stores(citus: Cluster) -> NodeStores:
    """Empty stores on three nodes."""
    return NodeStores(citus)


@pytest.fixture(scope="module")
def placed(request: pytest.FixtureRequest) -> str:
    """Where the stores of a test lie: on one server, or for a test marked ``nodes`` also on three."""
    return str(getattr(request, "param", ONE))


@pytest.fixture
def store_url(
    request: pytest.FixtureRequest, placed: str, server: EmbeddedServer, _databases: Databases
) -> Iterator[str]:
    """The postgresql:// URL of an empty, migrated database that no other test sees meanwhile; it may be used again."""
    with _one(request, placed, server, _databases) as url:
        yield url


@contextmanager
def _one(request: pytest.FixtureRequest, placed: str, server: EmbeddedServer, databases: Databases) -> Iterator[str]:
    if placed == THREE:
        with request.getfixturevalue("node_stores").one() as urls:
            yield urls[0]
        return
    with databases.one() as name:
        yield _url(server, name)


@pytest.fixture
def own_url(server: EmbeddedServer, _template: str) -> Iterator[str]:
    """The same, but of a new database, which has no connection but those of the test."""
    yield from _database(server)


@pytest.fixture
def embedded_url(server: EmbeddedServer) -> Iterator[str]:
    """The ``embedded://`` URL of the shared server, whose own database is empty, and empty again for the next test."""
    drop = "DROP SCHEMA IF EXISTS semmem CASCADE"
    with psycopg.connect(server.ensure_running(), autocommit=True, options="-c client_min_messages=error") as database:
        database.execute(drop)
        yield f"embedded://{server.data}"
        database.execute(drop)


@pytest.fixture(scope="module")
def module_url(request: pytest.FixtureRequest, placed: str, server: EmbeddedServer, _template: str) -> Iterator[str]:
    """The URL of a store that the tests of one module share."""
    if placed == THREE:
        with request.getfixturevalue("node_stores").one() as urls:
            yield urls[0]
        return
    yield from _database(server)


@pytest.fixture
def other_url(
    request: pytest.FixtureRequest, placed: str, server: EmbeddedServer, _databases: Databases
) -> Iterator[str]:
    """The URL of a second store, as empty as that of ``store_url``, for tests that move something."""
    with _one(request, placed, server, _databases) as url:
        yield url


@pytest.fixture(scope="session")
def _filled(server: EmbeddedServer, _template: str) -> str:
    from semmem import connect
    from tests.stores.filled import fill

    with psycopg.connect(server.ensure_running(), autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE semmem_filled TEMPLATE {_template}")
    with connect(_url(server, "semmem_filled"), embedder="hashing", pool_size=2) as mem:
        fill(mem)
    return "semmem_filled"


@pytest.fixture
def filled_url(server: EmbeddedServer, _filled: str) -> Iterator[str]:
    """The URL of a small store in which no table is empty; see tests/stores/filled.py."""
    yield from _database(server, _filled)


def _database(server: EmbeddedServer, template: str = _TEMPLATE) -> Iterator[str]:
    name = _created(server, template)
    yield _url(server, name)
    _dropped(server, name)


def _created(server: EmbeddedServer, template: str = _TEMPLATE) -> str:
    name = f"test_{next(_numbers)}"
    try:
        with psycopg.connect(server.ensure_running(), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name} TEMPLATE {template} STRATEGY file_copy")
    except psycopg.OperationalError as error:  # a server that ended under load says why in its log alone
        log = server.data / "postgresql" / "log"
        error.add_note(log.read_text(encoding="utf-8", errors="replace")[-4000:])
        raise
    return name


def _dropped(server: EmbeddedServer, name: str) -> None:
    with psycopg.connect(server.ensure_running(), autocommit=True) as connection:
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


def _url(server: EmbeddedServer, database: str) -> str:
    return f"postgresql://semmem@/{database}?host={_folder_of_socket(server)}"


def _folder_of_socket(server: EmbeddedServer) -> str:
    """Return the folder of the server's socket for a URL; its status would count the bytes of all its files."""
    return quote(str(conninfo_to_dict(server.ensure_running())["host"]), safe="")


@pytest.fixture(scope="module")
def module_store(server: EmbeddedServer, _template: str) -> Iterator[Callable[[], str]]:
    """Return a function that makes an empty, migrated database and gives its URL; all go when the module is done."""
    made = []
    socket = _folder_of_socket(server)
    with psycopg.connect(server.ensure_running(), autocommit=True) as admin:

        def make() -> str:
            made.append(f"module_{next(_module_numbers)}")
            admin.execute(f"CREATE DATABASE {made[-1]} TEMPLATE {_template} STRATEGY file_copy")
            return f"postgresql://semmem@/{made[-1]}?host={socket}"

        yield make
        for name in made:
            admin.execute(f"DROP DATABASE {name} WITH (FORCE)")
