"""A copy is the store: every table bit for bit, whatever interrupts it and whoever writes meanwhile."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import semmem
from semmem.model.errors import InvalidInput, StoreError, StoreUnavailable
from semmem.stores.embedded.server import EmbeddedServer
from semmem.stores.postgres import nearest
from semmem.stores.postgres.moving import copy
from semmem.stores.postgres.moving import tables as postgres_tables
from tests.stores.audit import check, sql
from tests.stores.filled import asked, held, rows, tables, write

HALF = """
import sys, semmem
from semmem.stores.postgres.moving import copy as copying
copying.BATCH = 20
ranges = 0
def wait(rows):
    global ranges
    ranges += 1
    if ranges == int(sys.argv[3]):
        print(rows, flush=True)
        sys.stdin.read()
semmem.copy(sys.argv[1], sys.argv[2], progress=wait)
"""
RANGES = 30


@pytest.fixture
def filled(filled_url: str) -> str:
    return filled_url


def killed_half_way(source: str, target: str) -> int:
    """Start a copy in a process of its own, kill it after some ranges, and return how many rows had arrived."""
    process = subprocess.Popen(
        [sys.executable, "-c", HALF, source, target, str(RANGES)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    arrived = int(process.stdout.readline())
    process.send_signal(signal.SIGKILL)
    process.wait(timeout=100)
    process.stdin.close()
    process.stdout.close()
    return arrived


def test_no_table_is_left_out_and_no_bit_changes(filled: str, other_url: str) -> None:
    before = rows(filled)
    empty = sorted(name for name, found in before.items() if not found)
    assert empty == [], "Let tests/stores/filled.py put something into these tables, so that copying them is tested."
    report = semmem.copy(filled, other_url)
    assert rows(other_url) == rows(filled) == before
    assert set(report.tables) == tables(other_url) == set(before)
    assert report.tables == {name: len(found) for name, found in before.items()}
    assert (report.memories, report.found, report.came, report.went, report.indexed) == (88, 0, 0, 0, False)
    assert report.namespaces == held(other_url) == held(filled)
    assert report.namespaces["one"].memories == 71  # 70 notes, one forgotten, and two more
    assert report.namespaces["one"].parts >= 2
    with semmem.connect(other_url, embedder="hashing") as mem:
        assert sql(mem, "SELECT count(*) FROM relationship") == [(3,)]


def test_a_copy_answers_as_its_source_and_goes_on_by_itself(filled: str, other_url: str) -> None:
    semmem.copy(filled, other_url)
    assert asked(other_url) == asked(filled)
    write(other_url, "DELETE FROM relationship; TRUNCATE embedding_next")
    with semmem.connect(other_url, embedder="hashing") as mem:
        mem.remember("A new note about owl 4.", id="new", namespace="one")
        mem.forget("m5", namespace="one")
        mem.maintain()
        assert mem.recall("new note", namespace="one")[0].memory.id == "new"
    highest = "SELECT max(ord) FROM memory"
    assert sql(other_url, highest)[0][0] == sql(filled, highest)[0][0] + 1
    check(other_url)


def test_copying_again_sends_only_what_changed(filled: str, other_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(copy, "BATCH", 50)
    first = semmem.copy(filled, other_url)
    again = semmem.copy(filled, other_url)
    assert again.found == sum(first.tables.values()) == sum(again.tables.values())
    with semmem.connect(filled, embedder="hashing") as mem:
        mem.forget("m0", namespace="one")
        mem.remember("One more.", id="more", namespace="zwei ☂")
    third = semmem.copy(filled, other_url)
    assert rows(other_url) == rows(filled)
    assert 0 < third.found < sum(third.tables.values())
    assert held(other_url) == held(filled) == third.namespaces


def test_a_copy_that_was_killed_goes_on_where_it_stopped(
    filled: str, other_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    arrived = killed_half_way(filled, other_url)
    monkeypatch.setattr(copy, "BATCH", 20)
    report = semmem.copy(filled, other_url)
    assert 0 < arrived < sum(report.tables.values())
    assert report.found == arrived
    assert rows(other_url) == rows(filled)
    assert asked(other_url) == asked(filled)


def test_what_changed_between_two_halves_of_a_copy_arrives(
    filled: str, other_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(copy, "BATCH", 50)

    def stop(rows: int) -> None:
        if rows > 400:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        semmem.copy(filled, other_url, progress=stop)
    with semmem.connect(filled, embedder="hashing") as mem:
        mem.forget("m1", namespace="one")
        mem.remember("Between the halves.", id="between", namespace="one")
        mem.maintain()
    report = semmem.copy(filled, other_url)
    assert rows(other_url) == rows(filled)
    assert (report.came, report.went) == (0, 0)
    assert report.found > 0


@pytest.mark.parametrize("ranges", [3, 24])  # before the table of namespaces is copied, and after it
def test_what_was_remembered_between_two_halves_of_a_copy_is_not_undone(
    filled: str, other_url: str, ranges: int
) -> None:
    stop = ranges

    def stopped(rows: int) -> None:
        nonlocal stop
        stop -= 1
        if not stop:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        semmem.copy(filled, other_url, progress=stopped)
    with semmem.connect(other_url, embedder="hashing") as mem:
        mem.remember("Mine.", id="mine", namespace="own")
        mem.remember("Mine too.", id="mine too", namespace="own")
        with semmem.connect(filled, embedder="hashing") as one:
            one.remember("Meanwhile.", id="meanwhile", namespace="one")
        before = rows(other_url)
        refusal = (
            r"^The target is an unfinished copy of this source, and somebody has written to it since \(2 changes\), so "
            r"going on would undo these changes; copy into an empty store\.$"
        )
        for _ in range(2):
            with pytest.raises(InvalidInput, match=refusal):
                semmem.copy(filled, other_url)
        assert rows(other_url) == before
        assert [mem.get(id, namespace="own").text for id in ("mine", "mine too")] == ["Mine.", "Mine too."]


def test_what_is_remembered_in_the_target_ends_a_running_copy(filled: str, other_url: str) -> None:
    with semmem.connect(other_url, embedder="hashing") as mem:

        def remembered(rows: int) -> None:
            mem.remember("Mine.", id="mine", namespace="own")

        with pytest.raises(InvalidInput, match=r"written to it since \(1 change\)"):
            semmem.copy(filled, other_url, progress=remembered)
        assert mem.get("mine", namespace="own").text == "Mine."


def test_a_source_in_use_is_copied_as_it_was_when_the_copy_began(filled: str, other_url: str) -> None:
    before = held(filled)
    with semmem.connect(filled, embedder="hashing") as mem:
        written = False

        def meanwhile(rows: int) -> None:
            nonlocal written
            if not written:
                written = True
                mem.remember("Meanwhile.", id="meanwhile", namespace="one")
                mem.forget("m2", namespace="one")
                mem.maintain()

        report = semmem.copy(filled, other_url, progress=meanwhile)
    assert (report.came, report.went) == (1, 1)
    assert report.namespaces == held(other_url) == before
    again = semmem.copy(filled, other_url)
    assert (again.came, again.went) == (0, 0)
    assert rows(other_url) == rows(filled)


def test_what_is_lost_on_the_way_is_an_error_and_mended_by_the_next_run(filled: str, other_url: str) -> None:
    def lose(rows: int) -> None:
        sql(other_url, "DELETE FROM forward WHERE ord = 5")

    with pytest.raises(StoreError, match=r"in the table forward \(\d+ of \d+ rows\); run the same command again"):
        semmem.copy(filled, other_url, progress=lose)
    semmem.copy(filled, other_url)
    assert rows(other_url) == rows(filled)


def test_a_changed_bit_is_found_where_the_counts_are_the_same(filled: str, other_url: str) -> None:
    def change(rows: int) -> None:
        sql(other_url, "UPDATE memory SET metadata = '{}' WHERE id = 'm7' AND namespace = 'one'")

    with pytest.raises(StoreError, match="in the table memory"):
        semmem.copy(filled, other_url, progress=change)


def test_a_server_that_goes_away_is_one_sentence_and_the_next_run_goes_on(filled: str, other_url: str) -> None:
    def end(rows: int) -> None:
        if rows > 100:
            sql(
                other_url,
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() "
                "AND pid <> pg_backend_pid()",
            )

    with pytest.raises(StoreUnavailable, match=r"^The copy stopped; the next one continues from there: The"):
        semmem.copy(filled, other_url, progress=end)
    report = semmem.copy(filled, other_url)
    assert report.found > 100
    assert rows(other_url) == rows(filled)


@pytest.mark.slow
def test_a_store_that_holds_anything_else_is_refused(filled: str, other_url: str) -> None:
    with semmem.connect(other_url, embedder="hashing") as mem:
        mem.remember("Mine.", id="mine")
        before = rows(other_url)
        with pytest.raises(InvalidInput, match=r"not empty \(1 memories\); copy into an empty store"):
            semmem.copy(filled, other_url)
        assert rows(other_url) == before
        mem.forget("mine", hard=True)
    semmem.copy(filled, other_url)
    assert rows(other_url) == rows(filled)
    with semmem.connect(other_url, embedder="hashing") as mem:
        mem.recall("owl", namespace="one")
    assert rows(other_url)["access"] != rows(filled)["access"]
    semmem.copy(filled, other_url)  # what was recalled from a copy is no change of it
    assert rows(other_url) == rows(filled)
    with semmem.connect(other_url, embedder="hashing") as mem:
        assert mem.forget(filters={"tags": ["of nobody"]}, namespace="one", hard=True) == 0
    semmem.copy(filled, other_url)  # nor is a rewriting of its files
    assert rows(other_url) == rows(filled)
    with semmem.connect(other_url, embedder="hashing") as mem:
        mem.remember("Mine again.", id="mine")
        with pytest.raises(InvalidInput, match="has changed since"):
            semmem.copy(filled, other_url)
        assert mem.get("mine").text == "Mine again."


def test_what_is_remembered_while_a_copy_finds_the_target_empty_stays(
    filled: str, other_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock = postgres_tables.lock
    with semmem.connect(other_url, embedder="hashing") as mem:

        def remembered(connection: Any, all: Any) -> None:
            mem.remember("Mine.", id="mine")
            lock(connection, all)

        monkeypatch.setattr(postgres_tables, "lock", remembered)
        with pytest.raises(InvalidInput, match=r"not empty \(1 memories\); copy into an empty store"):
            semmem.copy(filled, other_url)
        assert mem.get("mine").text == "Mine."


def test_the_unfinished_copy_of_another_store_is_refused(filled: str, other_url: str) -> None:
    semmem.copy(filled, other_url)
    note = """UPDATE meta SET value = '{"source": "another", "finished": null, "tables": {}}' WHERE key = 'copy'"""
    sql(other_url, note)
    with pytest.raises(InvalidInput, match="the unfinished copy of another store"):
        semmem.copy(filled, other_url)


def test_a_store_is_not_copied_into_itself(filled: str) -> None:
    with pytest.raises(InvalidInput, match="Both URLs name the same store"):
        semmem.copy(filled, filled + "&application_name=other")


def test_two_copies_into_one_store_do_not_run_at_once(
    filled: str, other_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(copy, "_PATIENCE_S", 0.0)

    def another(rows: int) -> None:
        with pytest.raises(StoreError, match="Another copy or restore is writing to this store"):
            semmem.copy(filled, other_url)

    semmem.copy(filled, other_url, progress=another)


def test_a_store_on_sqlite_is_pointed_to_export_and_import(filled: str, tmp_path: Path) -> None:
    for urls in ((filled, f"sqlite:{tmp_path}/a.db"), (f"sqlite:{tmp_path}/b.db", filled)):
        with pytest.raises(InvalidInput, match="`semmem export` and `semmem import`"):
            semmem.copy(*urls)
    assert list(tmp_path.iterdir()) == []


def test_the_vector_index_is_built_where_the_source_has_one(filled: str, other_url: str) -> None:
    sql(filled, "UPDATE embedding SET indexed = true WHERE ord > 20")
    with semmem.connect(filled, embedder="hashing") as mem:
        dimensions = mem.store.vectors.embedder()["dimensions"]
    sql(filled, nearest.with_index("embedding_index", dimensions))
    assert semmem.copy(filled, other_url).indexed
    what = "SELECT indexdef, indisvalid FROM pg_indexes, pg_index WHERE indexname = 'embedding_hnsw' AND indexrelid = "
    what += "'embedding_hnsw'::regclass"
    assert sql(other_url, what) == sql(filled, what) != []
    assert rows(other_url) == rows(filled)


def test_ranges_follow_the_index_of_the_primary_key(filled: str) -> None:
    with semmem.connect(filled, embedder="none") as mem, mem.store.lasting() as connection:
        for table in postgres_tables.tables(connection):
            if not sql(filled, "SELECT 1 FROM pg_index WHERE indisprimary AND indrelid = %s::regclass", table.name):
                continue
            after = postgres_tables.end_of_range(connection, table, None, 1)
            with connection.transaction():
                connection.execute("SET LOCAL enable_seqscan TO off")
                connection.execute("SET LOCAL enable_sort TO off")
                plan = connection.execute(
                    postgres_tables.sql.SQL("EXPLAIN SELECT FROM {} WHERE {} ORDER BY {} LIMIT 1").format(
                        table.place, table.range(after, None), table.order
                    )
                ).fetchall()
            told = "\n".join(line for (line,) in plan)
            assert f"using {table.name}_pkey" in told, told
            assert "Index Cond" in told, told
            assert "Sort" not in told, told


def test_hashes_do_not_know_row_ids_or_order_but_every_letter(store_url: str, other_url: str) -> None:
    items: list[dict[str, Any]] = [
        {"id": f"m{n}", "text": f"Note {n} about owls.", "created_at": "2026-01-31", "vector": np.eye(8)[n]}
        for n in range(8)
    ]

    def filled_with(url: str, given: list[dict[str, Any]], namespace: str) -> Any:
        with semmem.connect(url, embedder="none") as mem:
            for item in given:
                mem.remember(**item, namespace=namespace)
            return mem.hashes(namespace=namespace)[namespace]

    one = filled_with(store_url, items, "a")
    other = filled_with(other_url, items[::-1], "b")
    assert one == other
    assert (one.memories, one.parts, one.vectors) == (8, 0, 8)
    text = filled_with(store_url, [*items[:7], {**items[7], "text": "Note 7 about owls!"}], "text")
    assert (text.content, text.vector, text.graph) != (one.content, one.vector, one.graph)
    assert text.content != one.content
    assert text.vector == one.vector
    vector = filled_with(store_url, [*items[:6], {**items[6], "vector": np.eye(8)[7]}, items[7]], "vector")
    assert (vector.content, vector.graph) == (one.content, one.graph)
    assert vector.vector != one.vector
    session = filled_with(store_url, [*items[:7], {**items[7], "session": "s"}], "session")
    assert session.content != one.content
    author = filled_with(store_url, [*items[:7], {**items[7], "author": "s"}], "author")
    assert author.content not in (one.content, session.content)


@pytest.fixture
def folders(tmp_path: Path) -> Iterator[list[Path]]:
    """Two folders for embedded servers, stopped afterwards."""
    found = [tmp_path / "one", tmp_path / "two"]
    yield found
    for folder in found:
        EmbeddedServer(folder).stop("immediate")


@pytest.mark.slow
def test_from_an_embedded_store_to_a_server_and_back_into_another_embedded_one(
    folders: list[Path], store_url: str
) -> None:
    one, two = (f"embedded://{folder}" for folder in folders)
    with semmem.connect(one, embedder="hashing") as mem:
        for n in range(30):
            mem.remember(f"Note {n} about owls and Ada Lovelace.", id=f"m{n}", title=f"Owl {n}")
    there = semmem.copy(one, store_url)
    back = semmem.copy(store_url, two)
    assert there.namespaces == back.namespaces == held(one) == held(two)
    assert there.tables == back.tables


@pytest.mark.slow  # starts two servers
def test_a_server_whose_files_were_copied_is_told_from_the_store_itself(tmp_path: Path) -> None:
    one, two = tmp_path / "a" / "data", tmp_path / "b" / "data"
    servers = [EmbeddedServer(data, idle_stop_s=60) for data in (one, two)]
    try:
        with semmem.connect(f"embedded://{one}", embedder="none", idle_stop_s=60) as mem:
            mem.remember("Tea.", id="a")
        servers[0].stop("fast")
        two.parent.mkdir()
        subprocess.run(["cp", "-a", one, two], check=True)  # with their owner
        for source, copied in ((one, one), (one, two)):
            with pytest.raises(semmem.InvalidInput) as told:
                semmem.copy(f"embedded://{source}", f"embedded://{copied}", idle_stop_s=60)
            assert ("name the same store" in told.value.message) == (source == copied)
            assert ("copying the files" in told.value.message) == (source != copied)
    finally:
        for server in servers:
            server.stop("immediate")
