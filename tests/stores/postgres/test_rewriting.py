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
    monkeypatch.setattr(vacuum, "_PATIENCE", "60s")
    with semmem.connect(embedded_url, embedder="none") as mem:
        mem.remember_many([{"id": f"m{n}", "text": f"Zebra{n} eats gnu{n} soup."} for n in range(80)])
        yield mem


def _reader(mem: Semmem) -> psycopg.Connection[Any]:
    assert isinstance(mem.store, PostgresStore)
    reader = mem.store.own_connection()
    reader.autocommit = False
    reader.execute("SET lock_timeout TO '20s'")
    reader.execute("SELECT FROM semmem.posting LIMIT 1")
    return reader


def _rows(mem: Semmem, query: str) -> list[Any]:
    assert isinstance(mem.store, PostgresStore)
    return mem.store.run(lambda c: c.execute(query).fetchall())


def _found(mem: Semmem) -> list[str]:
    return [hit.id for number in (0, 41, 79) for hit in mem.recall(f"zebra{number}", limit=1)]


def _state(mem: Semmem) -> tuple[int, list[Any]]:
    return _rows(mem, _FILE)[0][0], _rows(mem, _NOTE)


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


def test_a_table_that_somebody_keeps_reading_is_left_to_the_next_maintain(
    packed: Semmem, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vacuum, "_PATIENCE", "50ms")
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
