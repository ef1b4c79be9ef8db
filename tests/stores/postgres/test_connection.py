"""Statements that are sent together: in a transaction, and behind its commit in the same round trip."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from pgvector import Vector

import semmem
from eval.path import Counter, installed
from semmem.stores.postgres.connection import bounded, pipelined, pipelined_transaction
from semmem.stores.postgres.encoding import register_arrays
from semmem.stores.postgres.errors import error_at_work


@pytest.fixture
def connection(other_url: str) -> Iterator[Any]:
    with psycopg.connect(other_url, autocommit=True) as opened:
        opened.execute("CREATE TEMPORARY TABLE held (n int PRIMARY KEY)")
        yield opened


def held(connection: Any) -> list[int]:
    return [n for (n,) in connection.execute("SELECT n FROM held ORDER BY n")]


def test_a_transaction_and_what_is_asked_behind_it_are_one_round_trip(connection: Any) -> None:
    counter = Counter()
    asked: list[Any] = []
    with installed(counter), counter.counting():
        with pipelined_transaction(
            connection, lambda: asked.append(connection.execute("SELECT count(*)::int FROM held"))
        ):
            connection.execute("INSERT INTO held VALUES (1)")
        assert asked[0].fetchone() == (1,)
    assert counter.counts().trips == {"pipeline": 1}
    assert held(connection) == [1]


def test_what_fails_behind_a_commit_takes_nothing_back_and_says_nothing(connection: Any) -> None:
    asked: list[Any] = []

    def behind() -> None:
        asked.extend(connection.execute(statement) for statement in ("SELECT 7", "SELECT 1/0", "SELECT 8"))

    with pipelined_transaction(connection, behind):
        connection.execute("INSERT INTO held VALUES (1)")
    # the third is not sent where the error of the second has come back by then
    assert [cursor.description is None for cursor in asked] in ([False, True, True], [False, True])
    assert held(connection) == [1]


def test_a_statement_behind_one_that_fails_in_a_pipeline_is_prepared_anew(connection: Any) -> None:
    connection.execute("SELECT %s::int", (1,))

    def fail() -> None:
        with pipelined(connection):
            connection.execute("SELECT pg_sleep(0.2)")  # so the others are sent before the error comes back
            connection.execute("SELECT 1/0")
            connection.execute("SELECT %s::int", (2,), prepare=True)

    with pytest.raises(psycopg.errors.DivisionByZero):
        fail()
    assert connection.execute("SELECT %s::int", (3,)).fetchone() == (3,)


@pytest.mark.parametrize("wrong", ["INSERT INTO held VALUES (1)", "SELECT 1/0"])
def test_what_fails_before_the_commit_takes_all_of_it_back(connection: Any, wrong: str) -> None:
    asked: list[Any] = []

    def work() -> None:
        with pipelined_transaction(connection, lambda: asked.append(connection.execute("SELECT 7"))):
            connection.execute("INSERT INTO held VALUES (1)")
            connection.execute(wrong)

    with pytest.raises((psycopg.errors.UniqueViolation, psycopg.errors.DivisionByZero)):
        work()
    assert all(cursor.description is None for cursor in asked)  # none where the error came before it was sent
    assert held(connection) == []


def test_a_block_that_raises_leaves_nothing_behind(connection: Any) -> None:
    def work() -> None:
        with pipelined_transaction(connection):
            assert connection.execute("INSERT INTO held VALUES (1) RETURNING n").fetchone() == (1,)
            raise KeyError

    with pytest.raises(KeyError):
        work()
    assert held(connection) == []


def test_a_block_within_a_block_sends_a_long_value_to_a_server_that_is_slow_to_read_it(
    connection: Any, other_url: str
) -> None:
    with psycopg.connect(other_url, autocommit=True) as other:
        server = (connection.info.backend_pid,)
        end = threading.Timer(30, lambda: other.execute("SELECT pg_terminate_backend(%s)", server))
        end.start()
        try:
            with pipelined_transaction(connection):
                connection.execute("SELECT pg_sleep(0.2)")
                length = connection.execute("SELECT octet_length(%s::bytea)", (bytes(8 << 20),))
                with pipelined(connection):
                    other_length = connection.execute("SELECT octet_length(%s::bytea)", (bytes(3),))
                assert other_length.fetchone() == (3,)
        finally:
            end.cancel()
    assert length.fetchone() == (8_388_608,)


def test_a_child_process_is_told_that_the_connections_are_its_parents_and_takes_none_of_them(other_url: str) -> None:
    program = (
        "import os, sys, semmem\n"
        "mem = semmem.connect(sys.argv[1], embedder='none')\nmem.remember('heron', id='a', namespace='forked')\n"
        "if (child := os.fork()) == 0:\n"
        "    for verb in (mem.stats, lambda: mem.recall('heron', namespace='forked')):\n"
        "        try:\n            verb()\n"
        "        except semmem.StoreUnavailable as error:\n            print(error, flush=True)\n"
        "    mem.close()\n    os._exit(0)\n"
        "os.waitpid(child, 0)\nprint(len(mem.recall('heron', namespace='forked')))\n"
        "mem.drop_namespace('forked')\nmem.close()"
    )
    done = subprocess.run([sys.executable, "-c", program, other_url], capture_output=True, text=True, timeout=120)
    said = "The store stays with the process that opened it; connect in this process too.\n"
    assert (done.stdout, done.stderr) == (said * 2 + "1\n", "")


@pytest.mark.slow
def test_a_server_that_does_not_answer_is_told_in_one_sentence() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"postgresql://ada:secret@127.0.0.1:{silent.getsockname()[1]}/memories?connect_timeout=2"
        with pytest.raises(semmem.StoreUnavailable, match="does not answer in time; check the host") as raised:
            semmem.connect(url, embedder="none")
    assert "secret" not in str(raised.value)


@pytest.mark.parametrize(
    ("given", "used"),
    [
        ("postgresql://ada@db/memories", "postgresql://ada@db/memories?connect_timeout=10"),
        ("postgresql://", "postgresql://?connect_timeout=10"),
        ("postgresql://db/m?sslmode=require", "postgresql://db/m?sslmode=require&connect_timeout=10"),
        ("host=db dbname=m", "host=db dbname=m connect_timeout=10"),
        ("postgresql://db/m?connect_timeout=3", "postgresql://db/m?connect_timeout=3"),
        ("postgresql://db/m?nonsense=1", "postgresql://db/m?nonsense=1"),
    ],
)
def test_a_server_has_ten_seconds_to_answer_unless_the_url_says_otherwise(
    given: str, used: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PGCONNECT_TIMEOUT", raising=False)
    assert bounded(given) == used
    monkeypatch.setenv("PGCONNECT_TIMEOUT", "30")
    assert bounded(given) == given


def test_a_vector_is_a_parameter_and_no_server_is_asked_for_its_type(store_url: str) -> None:
    counter = Counter()
    with psycopg.connect(store_url, autocommit=True) as connection:
        with installed(counter), counter.counting():
            register_arrays(connection)
        assert counter.counts().trips == {}
        shown = connection.execute("SELECT %s::public.vector::text", (Vector([1.0, -0.5, 3.0]),)).fetchone()
    assert shown == ("[1,-0.5,3]",)


@pytest.mark.parametrize("pool_size", [1, 4])
def test_calls_go_on_where_a_connection_has_lost_its_prepared_statements(other_url: str, pool_size: int) -> None:
    with semmem.connect(other_url, embedder="hashing", pool_size=pool_size, resident_mb=0) as mem:
        mem.remember("An owl met Ada.", id="a")
        for _ in range(5):  # a statement is prepared from its third time on
            assert [hit.id for hit in mem.recall("Who met Ada?")] == ["a"]
        with mem.store.session():  # as an aborted pipeline takes them back, behind psycopg's back
            mem.store.run(lambda connection: connection.pgconn.exec_(b"DEALLOCATE ALL"))
        found = mem.recall("Who met Ada?")
        assert ([hit.id for hit in found], found.degraded) == (["a"], {})
        mem.store.run(lambda connection: connection.pgconn.exec_(b"DEALLOCATE ALL"))
        with mem.store.session():
            assert [m.id for m in mem.list()] == ["a"]


def test_a_commit_that_a_server_answers_twice_as_it_ends_is_a_lost_connection_and_its_work_is_done_again(
    store_url: str,
) -> None:
    words = "received 2 results from command 'COMMIT'"  # what psycopg says where a node of the server was killed
    told = error_at_work(psycopg.InternalError(words))
    assert str(told) == f"The connection to the database server was lost and did not come back ({words})."
    assert error_at_work(psycopg.InternalError("received nothing")) is None
    answers: list[BaseException | int] = [psycopg.InternalError(words), 7]

    def work(_: Any) -> int:
        answer = answers.pop(0)
        if isinstance(answer, BaseException):
            raise answer
        return answer

    with semmem.connect(store_url, embedder="hashing") as mem:
        assert mem.store.run(work) == 7  # type: ignore[attr-defined]
