"""``maintain`` rewrites tables that have shrunk, and gives way to whoever waits for one of them."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Any

import psycopg
import pytest

import semmem
from semmem.client.memory import Semmem
from semmem.stores.postgres import upkeep, vacuum
from semmem.stores.postgres.store import PostgresStore
from tests.waiting import until

_FILE = "SELECT pg_relation_filenode('posting')::int8"
_NOTE = "SELECT value FROM meta WHERE key = 'unshrunk'"
_WAITING = "SELECT count(*) FROM pg_locks WHERE relation = 'posting'::regclass AND NOT granted"


@pytest.fixture
def packed(embedded_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Semmem]:
    """A store whose next ``maintain`` packs most rows of ``posting``."""
    monkeypatch.setattr(upkeep, "_MANY", 10)
    monkeypatch.setattr(vacuum, "_TRIES", 1)
    monkeypatch.setattr(vacuum, "PATIENCE", "60s")
    with semmem.connect(embedded_url, embedder="none") as mem:
        mem.remember_many([{"id": f"m{n}", "text": f"Zebra{n} eats gnu{n} soup."} for n in range(80)])
        yield mem


def _store(mem: Semmem) -> PostgresStore:
    assert isinstance(mem.store, PostgresStore)
    return mem.store


def _reader(mem: Semmem) -> psycopg.Connection[Any]:
    reader = _store(mem).own_connection()
    reader.autocommit = False
    reader.execute("SET lock_timeout TO '20s'")
    reader.execute("SELECT FROM semmem.posting LIMIT 1")
    return reader


def _rows(mem: Semmem, query: str) -> list[Any]:
    return _store(mem).run(lambda c: c.execute(query).fetchall())


def _change(mem: Semmem, count: int) -> None:
    """Change as many rows of ``memory``, and report them to the server's statistics before anything else asks."""
    assert isinstance(mem.store, PostgresStore)
    with closing(mem.store.own_connection()) as connection:
        rows = "SELECT ctid FROM semmem.memory LIMIT %s"
        changed = connection.execute(f"UPDATE semmem.memory SET seen_count = 2 WHERE ctid IN ({rows})", (count,))
        assert changed.rowcount == count
        connection.execute("SELECT pg_stat_force_next_flush()")


def _found(mem: Semmem) -> list[str]:
    return [hit.id for number in (0, 41, 79) for hit in mem.recall(f"zebra{number}", limit=1)]


def _state(mem: Semmem) -> tuple[int, list[Any]]:
    return _rows(mem, _FILE)[0][0], _rows(mem, _NOTE)


@pytest.mark.slow
def test_a_reader_who_comes_while_a_table_is_to_be_rewritten_is_answered_and_the_next_maintain_rewrites_it(
    packed: Semmem,
) -> None:
    file, note = _state(packed)
    assert note == []
    with ThreadPoolExecutor(1) as pool, closing(_reader(packed)) as first:
        maintained = pool.submit(packed.maintain)
        until(lambda: _rows(packed, _WAITING) == [(1,)])  # the rewriting, behind the first reader
        with closing(_reader(packed)):  # behind the rewriting, which would wait for the first reader for 60 s
            assert not first.closed
        maintained.result(100)
    assert _state(packed) == (file, [(["posting"],)])
    assert _found(packed) == ["m0", "m41", "m79"]
    packed.maintain()
    other, note = _state(packed)
    assert other != file
    assert note == []
    packed.maintain()
    assert _state(packed) == (other, [])
    assert _found(packed) == ["m0", "m41", "m79"]


@pytest.mark.slow
def test_a_table_that_somebody_keeps_reading_is_left_to_the_next_maintain(
    packed: Semmem, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vacuum, "PATIENCE", "50ms")
    file, _ = _state(packed)
    with closing(_reader(packed)):
        packed.maintain()
    assert _state(packed) == (file, [(["posting"],)])


def test_maintain_that_ends_while_it_rewrites_leaves_the_table_and_the_note(
    packed: Semmem, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, _ = _state(packed)

    def lost(*_: object) -> bool:
        raise RuntimeError("power cut")

    monkeypatch.setattr(upkeep, "rewrite", lost)
    with pytest.raises(RuntimeError, match="power cut"):
        packed.maintain()
    assert _state(packed) == (file, [(["posting"],)])
    assert _found(packed) == ["m0", "m41", "m79"]


def test_maintain_counts_a_table_anew_for_the_planner_where_a_tenth_has_changed_or_nothing_is_known(
    embedded_url: str,
) -> None:
    with semmem.connect(embedded_url, embedder="none", pool_size=1) as mem:
        assert isinstance(mem.store, PostgresStore)
        mem.remember_many([{"id": f"m{n}", "text": f"Zebra{n} eats soup."} for n in range(80)])
        _rows(mem, "SELECT pg_stat_force_next_flush()")  # on the connection that wrote them
        with closing(mem.store.own_connection()) as connection:
            connection.execute("ALTER TABLE semmem.memory SET (autovacuum_enabled = off)")

        def counted() -> int:
            mem.maintain()
            return int(
                _rows(mem, "SELECT analyze_count FROM pg_stat_all_tables WHERE relid = 'memory'::regclass")[0][0]
            )

        first = counted()
        assert first >= 1
        _change(mem, 5)
        assert counted() == first
        _change(mem, 80)
        assert counted() == first + 1
        assert counted() == first + 1
        _rows(mem, "DELETE FROM pg_statistic WHERE starelid = 'semmem.memory'::regclass RETURNING 1")
        assert counted() == first + 2


def test_maintain_rewrites_a_table_with_a_pool_of_one_connection(packed: Semmem, embedded_url: str) -> None:
    file, _ = _state(packed)
    with semmem.connect(embedded_url, embedder="none", pool_size=1) as one:
        one.maintain()
    other, note = _state(packed)
    assert other != file
    assert note == []


def test_each_table_is_rewritten_on_a_connection_of_its_own_which_no_late_cancelling_of_another_meets(
    packed: Semmem, monkeypatch: pytest.MonkeyPatch
) -> None:
    used: list[tuple[str, int]] = []
    setting = "SELECT setting, source FROM pg_settings WHERE name = 'client_connection_check_interval'"

    def late(connection: Any, watcher: Any, table: str) -> bool:
        used.append((table, connection.info.backend_pid))
        assert connection.execute(setting).fetchone() == ("100", "client")  # a SET would wait for the former interval
        assert watcher.info.backend_pid != connection.info.backend_pid
        return table == "posting"

    monkeypatch.setattr(upkeep, "rewrite", late)
    upkeep._note_unshrunk(_store(packed), {"likeness_key"})
    packed.maintain()
    assert [table for table, _ in used] == ["likeness_key", "posting"]
    assert len({pid for _, pid in used}) == 2
    assert _state(packed)[1] == [(["likeness_key"],)]


def test_maintain_goes_on_where_the_disk_has_no_room_for_a_rewritten_table(
    packed: Semmem, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, _ = _state(packed)
    tries: list[str] = []

    def full(connection: Any, watcher: Any, table: str) -> bool:
        tries.append(table)
        raise psycopg.errors.DiskFull("could not extend file: No space left on device")

    monkeypatch.setattr(vacuum, "_rewritten", full)
    monkeypatch.setattr(vacuum, "_TRIES", 3)
    packed.maintain()
    assert (_state(packed), tries) == ((file, [(["posting"],)]), ["posting"])
    assert _found(packed) == ["m0", "m41", "m79"]


def test_a_connection_with_settings_of_its_own_keeps_those_of_the_environment(
    embedded_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PGOPTIONS", "-c statement_timeout=61s")
    names = "statement_timeout", "client_connection_check_interval"
    with (
        semmem.connect(embedded_url, embedder="none") as mem,
        closing(_store(mem).own_connection(vacuum.REWRITING)) as connection,
    ):
        shown = [connection.execute(f"SHOW {name}").fetchone() for name in names]
    assert shown == [("61s",), ("100ms",)]
