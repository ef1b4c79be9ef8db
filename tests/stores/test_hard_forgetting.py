"""What a hard forget leaves in the files of a store: the whole data folder is searched, write-ahead log included."""

from __future__ import annotations

import json
import os
import random
import re
import signal
import sqlite3
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
import pytest

import semmem
from semmem.model.errors import StoreUnavailable
from semmem.stores.postgres import forget, nearest, vector_index
from tests.stores.audit import sql

FIELDS = ("text", "earlier", "title", "tag", "metadata", "author", "session", "source", "secret", "link")
_GEORGIAN = re.compile(rb"\xe1[\x82\x83]|\\u10[a-f]")
"""What every letter of these words begins with, so that most files are read once."""


def needles(seed: int) -> dict[str, str]:
    """Return a word for each field: eight letters of a script that no other test writes, drawn by chance."""
    drawn = random.Random(f"{seed} {os.getpid()}")
    return {field: "".join(chr(drawn.randrange(0x10A0, 0x10FF)) for _ in range(8)) for field in FIELDS}


def standing(folder: Path, words: Mapping[str, str]) -> dict[str, set[str]]:
    """Return the files of ``folder`` in which a piece of a word stands, as UTF-8 or escaped in JSON, by field.

    Compressed, a word is written as it is, but for a byte between some eight of its own: pieces are found there too.
    """
    pieces = {}
    for field, word in words.items():
        plain, escaped = word.encode(), json.dumps(word)[1:-1].encode()
        pieces[field] = [plain[at : at + 7] for at in range(len(plain) - 6)]
        pieces[field] += [escaped[at : at + 18] for at in range(0, len(escaped) - 17, 6)]
    found: dict[str, set[str]] = {}
    for path in sorted(folder.rglob("*")):
        try:
            raw = path.read_bytes() if path.is_file() and not path.is_symlink() else b""
        except OSError:  # gone meanwhile, or a socket
            continue
        if not _GEORGIAN.search(raw):
            continue
        for field, some in pieces.items():
            if any(piece in raw for piece in some):
                found.setdefault(field, set()).add(str(path.relative_to(folder)))
    return found


def fill(mem: semmem.Semmem, word: Mapping[str, str]) -> None:
    """Remember some memories of a session, update them, hide one, and let the store tidy up and sample its columns."""
    for n in range(40):
        mem.remember(f"Note {n} about tea.", id=f"o{n}", author="Ana", session="s", tags=["x"], title=f"Tea {n % 3}")
    for n in range(3):
        given: dict[str, Any] = {name: word[name] for name in ("title", "author", "session", "source")}
        given["metadata"] = {"m": word["metadata"], "aliases": [f"Other {word['metadata']}"]}
        mem.remember(f"{word['earlier']} met Babbage {n}", id=f"g{n}", tags=[word["tag"]], **given)
        mem.update(f"g{n}", text=f"{word['text']} met Babbage {n}")
    mem.remember(word["secret"], id="hidden", session=word["session"], sensitive=True)
    mem.link("g0", "see-also", "o0", made_by=word["link"])
    mem.maintain()
    mem.recall(word["text"])


@pytest.mark.slow
def test_a_hard_forget_leaves_no_byte_in_the_data_folder_of_the_server_nor_in_its_log(store_url: str) -> None:
    word = needles(1)
    with semmem.connect(store_url, embedder="hashing") as mem:
        run: Any = mem.store
        place = run.run(lambda c: c.execute("SHOW data_directory").fetchone())[0]
        fill(mem, word)
        run.run(lambda c: c.execute("CHECKPOINT"))
        assert set(standing(Path(place), word)) == set(FIELDS)
        assert mem.forget(filters={"sessions": [word["session"]]}, hard=True) == 4
        run.run(lambda c: c.execute("CHECKPOINT"))
        assert standing(Path(place), word) == {}
        assert mem.stats().memories == 40


def files_with(folder: Path, needles: Mapping[str, bytes]) -> dict[str, set[str]]:
    """Return the names of files below ``folder`` in which each needle stands."""
    found: dict[str, set[str]] = {what: set() for what in needles}
    for path in folder.rglob("*"):
        raw = path.read_bytes() if path.is_file() and not path.is_symlink() else b""
        for what, needle in needles.items():
            if needle in raw:
                found[what].add(path.name)
    return found


@pytest.mark.slow
def test_a_hard_forget_leaves_no_byte_of_a_vector_and_maintain_builds_the_index_again(
    store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nearest, "INDEX_FROM", 100)
    vectors = np.random.default_rng(os.getpid()).normal(size=(120, 64)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    with semmem.connect(store_url, embedder="none", resident_mb=0) as mem:
        mem.remember_many({"id": f"m{n}", "text": f"note {n}", "vector": v} for n, v in enumerate(vectors))
        assert mem.maintain()["indexed"] == 120
        sql(mem, "CHECKPOINT")
        place = Path(sql(mem, "SHOW data_directory")[0][0])
        table, index = (
            sql(mem, f"SELECT pg_relation_filenode('{name}')::text")[0][0] for name in ("embedding", "embedding_hnsw")
        )
        needles = {"whole": vectors[7].astype("<f4").tobytes()[:40], "half": vectors[7].astype("<f2").tobytes()[:40]}
        before = files_with(place, needles)
        assert (table in before["whole"], index in before["half"]) == (True, True)
        assert mem.forget("m7", hard=True) == 1
        assert files_with(place, needles) == {"whole": set(), "half": set()}
        assert not mem.store.run(vector_index.ready)  # so that nobody waits while it is built

        def nearest_to(n: int) -> str:
            return mem.recall("note", vector=vectors[n], recipe="dense", limit=1)[0].memory.id

        assert [nearest_to(n) for n in (6, 8, 119)] == ["m6", "m8", "m119"]
        assert mem.maintain()["indexed"] == 119
        assert mem.store.run(vector_index.ready)
        assert [nearest_to(n) for n in (6, 8, 119)] == ["m6", "m8", "m119"]


def scrubs(mem: semmem.Semmem) -> tuple[int, int]:
    """Return the number of the last rewriting of the files that began, and of the last one that was completed."""
    facts = sql(mem, "SELECT (value->>'begun')::int, (value->>'done')::int FROM meta WHERE key = 'scrubs'")
    return facts[0] if facts else (0, 0)


@contextmanager
def rewriting(mem: semmem.Semmem) -> Iterator[psycopg.Connection[Any]]:
    """Hold the lock of those who rewrite the files, as another process does."""
    with psycopg.connect(mem.store.url, autocommit=True) as other:
        other.execute("SELECT pg_advisory_lock(hashtextextended('semmem scrub', 0))")
        yield other


@contextmanager
def waiting(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[int], None]]:
    """Yield a function that waits until so many calls have read the number of the last rewriting."""
    read, called = forget._scrubs, threading.Semaphore(0)

    def noted(connection: Any) -> tuple[int, int]:
        numbers = read(connection)
        called.release()
        return numbers

    def wait(count: int) -> None:
        for _ in range(count):
            assert called.acquire(timeout=60)

    with monkeypatch.context() as patch:
        patch.setattr(forget, "_scrubs", noted)
        yield wait


def test_hard_forgets_that_wait_for_another_one_share_the_next_rewriting(
    store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with semmem.connect(store_url, embedder="none") as mem, ThreadPoolExecutor(3) as callers:
        mem.remember_many([{"id": f"m{n}", "text": f"note {n}"} for n in range(5)])
        with waiting(monkeypatch) as wait:
            with rewriting(mem):
                calls = [callers.submit(mem.forget, f"m{n}", hard=True) for n in range(3)]
                wait(3)
                assert scrubs(mem) == (0, 0)
            assert [call.result(60) for call in calls] == [1, 1, 1]
        assert scrubs(mem) == (1, 1)
        assert mem.forget("m3", hard=True) == 1
        assert scrubs(mem) == (2, 2)


def test_a_rewriting_that_began_before_a_hard_forget_does_not_count_for_it(
    store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with semmem.connect(store_url, embedder="none") as mem, ThreadPoolExecutor(1) as callers:
        mem.remember_many([{"id": f"m{n}", "text": f"note {n}"} for n in range(2)])
        with mem.store.lasting() as connection:
            forget._note_scrubs(connection, 1, 0)
            with waiting(monkeypatch) as wait:
                with rewriting(mem):
                    call = callers.submit(mem.forget, "m0", hard=True)
                    wait(1)
                    forget._note_scrubs(connection, 1, 1)
                assert call.result(60) == 1
        assert scrubs(mem) == (2, 2)


def reads(other: psycopg.Connection[Any]) -> None:
    """Take a snapshot that holds the memory, though no table is locked."""
    other.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
    other.execute("SELECT 1")


def writes(other: psycopg.Connection[Any]) -> None:
    """Write something else, and leave the transaction open without a snapshot."""
    other.execute("SELECT pg_current_xact_id()")


@pytest.mark.parametrize(("open_transaction", "database"), [(reads, ""), (writes, ""), (writes, "template1")])
def test_a_hard_forget_ends_without_success_while_somebody_keeps_an_earlier_state(
    store_url: str,
    monkeypatch: pytest.MonkeyPatch,
    open_transaction: Callable[[psycopg.Connection[Any]], None],
    database: str,
) -> None:
    monkeypatch.setattr(forget, "_SNAPSHOT_PATIENCE_S", 0.0)
    with semmem.connect(store_url, embedder="none") as mem:
        mem.remember("The heron sleeps.", id="gone")
        with psycopg.connect(mem.store.url, **({"dbname": database} if database else {})) as other:
            open_transaction(other)
            with pytest.raises(StoreUnavailable, match=r"forget with hard again: another program, .* earlier state"):
                mem.forget("gone", hard=True)
            assert mem.stats().memories == 0
        monkeypatch.setattr(forget, "_SNAPSHOT_PATIENCE_S", 60.0)
        with pytest.raises(semmem.NotFound):
            mem.forget("gone", hard=True)
        assert scrubs(mem) == (2, 2)


def test_a_hard_forget_does_not_wait_for_a_vacuum(store_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forget, "_SNAPSHOT_PATIENCE_S", 0.0)
    with semmem.connect(store_url, embedder="none") as mem, ThreadPoolExecutor(1) as other:
        mem.remember("The heron sleeps.", id="gone")
        with psycopg.connect(mem.store.url, autocommit=True) as vacuuming:
            vacuuming.execute("CREATE TABLE public.large AS SELECT n, repeat('x', 900) FROM generate_series(1, 9000) n")
            vacuuming.execute("SET vacuum_cost_delay TO 100; SET vacuum_cost_limit TO 1")  # so it takes minutes
            vacuum = other.submit(vacuuming.execute, "VACUUM public.large")
            while not sql(mem, "SELECT pid FROM pg_stat_progress_vacuum WHERE relid = 'public.large'::regclass"):
                assert not vacuum.done()
            assert mem.forget("gone", hard=True) == 1
            vacuuming.cancel_safe()
            with pytest.raises(psycopg.errors.QueryCanceled):
                vacuum.result(60)
            vacuuming.execute("DROP TABLE public.large")


@pytest.mark.parametrize("by", ["filters", "id", "everything", "soft first"])
def test_a_hard_forget_leaves_no_byte_in_a_file(tmp_path: Path, by: str) -> None:
    word = needles(2)
    with semmem.connect(f"sqlite:{tmp_path}/notes.db", embedder="none") as mem:
        fill(mem, word)
        assert set(standing(tmp_path, word)) == set(FIELDS)
        if by == "everything":
            assert mem.forget(everything=True, hard=True) == 44
        elif by == "id":
            for id in ("g0", "g1", "g2", "hidden"):
                assert mem.forget(id, hard=True) == 1
        else:
            if by == "soft first":
                assert mem.forget(filters={"sessions": [word["session"]]}) == 4
            assert mem.forget(filters={"sessions": [word["session"]]}, hard=True) == 4
        assert standing(tmp_path, word) == {}
    assert standing(tmp_path, word) == {}


def test_a_hard_forget_clears_what_another_program_deleted_from_the_file_and_left_in_it(tmp_path: Path) -> None:
    word = {"text": needles(3)["text"]}
    with semmem.connect(f"sqlite:{tmp_path}/notes.db", embedder="none") as mem:
        mem.remember("A note about tea.", id="a")
    with closing(sqlite3.connect(tmp_path / "notes.db", isolation_level=None)) as other:
        other.execute("PRAGMA secure_delete = OFF")
        other.execute("CREATE TABLE beside (note TEXT)")
        other.execute("INSERT INTO beside VALUES (?)", (word["text"],))
        other.execute("DROP TABLE beside")
    assert set(standing(tmp_path, word)) == {"text"}
    with semmem.connect(f"sqlite:{tmp_path}/notes.db", embedder="none") as mem:
        assert mem.forget("a", hard=True) == 1
        assert standing(tmp_path, word) == {}


def test_the_search_finds_a_word_that_is_there(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"xx" + "ႠႡႢႣ".encode()[1:9] + b"yy")
    assert standing(tmp_path, {"one": "ႠႡႢႣ", "other": "ႤႥႦႧ"}) == {"one": {"a"}}


def test_the_id_of_a_forgotten_memory_leaves_the_change_log_after_90_days(store_url: str) -> None:
    with semmem.connect(store_url, embedder="none") as mem:
        mem.remember("The heron sleeps.", id="gone")
        assert mem.forget("gone", hard=True) == 1
        sql(mem, "UPDATE change SET at = at - interval '89 days'")
        mem.maintain()
        assert sql(mem, "SELECT id, kind FROM change") == [("gone", "forgotten")]
        sql(mem, "UPDATE change SET at = at - interval '2 days'")
        mem.maintain()
        assert sql(mem, "SELECT count(*) FROM change WHERE id = 'gone'") == [(0,)]


def test_the_id_of_a_forgotten_memory_leaves_the_change_log_of_a_file_after_90_days(tmp_path: Path) -> None:
    day = 86_400_000_000
    with semmem.connect(f"sqlite:{tmp_path}/notes.db") as mem, closing(sqlite3.connect(tmp_path / "notes.db")) as file:
        mem.remember("The heron sleeps.", id="gone")
        assert mem.forget("gone", hard=True) == 1
        with file:
            file.execute("UPDATE change SET at = at - ?", (89 * day,))
        mem.maintain()
        assert file.execute("SELECT id, kind FROM change").fetchall() == [("gone", "forgotten")]
        with file:
            file.execute("UPDATE change SET at = at - ?", (2 * day,))
        mem.maintain()
        assert file.execute("SELECT count(*) FROM change WHERE id = 'gone'").fetchall() == [(0,)]


def test_two_tables_are_rewritten_at_a_time(store_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rewrite, both, names = forget._rewrite, threading.Barrier(2, timeout=60), list[str]()

    def noted(connection: Any, table: str, mark: str, end: float) -> None:
        if len(names) < 2:
            names.append(table)
            both.wait()
        rewrite(connection, table, mark, end)

    with semmem.connect(store_url, embedder="none") as mem:
        mem.remember("The heron sleeps.", id="gone")
        monkeypatch.setattr(forget, "_rewrite", noted)
        assert mem.forget("gone", hard=True) == 1
        assert scrubs(mem) == (1, 1)


@pytest.mark.slow
def test_a_pool_of_one_connection_rewrites_all_tables(store_url: str) -> None:
    with semmem.connect(store_url, embedder="none", pool_size=1) as mem:
        mem.remember("The heron sleeps.", id="gone")
        files = "SELECT relname, pg_relation_filenode(oid) FROM pg_class WHERE relkind = 'r' AND relnamespace = "
        files += "'semmem'::regnamespace"
        before = dict(sql(mem, files))
        assert mem.forget("gone", hard=True) == 1
        after = dict(sql(mem, files))
        assert [table for table, file in after.items() if before[table] == file] == []


@pytest.mark.parametrize("failing", ["first", "second"])
def test_a_failure_of_one_of_two_rewritings_ends_the_other_one_and_is_told(
    store_url: str, monkeypatch: pytest.MonkeyPatch, failing: str
) -> None:
    rewrite, both, done = forget._rewrite, threading.Barrier(2, timeout=60), list[str]()

    def failed(connection: Any, table: str, mark: str, end: float) -> None:
        if not done:
            both.wait()
        if (threading.current_thread() is threading.main_thread()) == (failing == "first"):
            raise semmem.StoreUnavailable("Another program keeps using a table.")
        rewrite(connection, table, mark, end)
        done.append(table)

    with semmem.connect(store_url, embedder="none") as mem:
        mem.remember("The heron sleeps.", id="gone")
        with monkeypatch.context() as patch:
            patch.setattr(forget, "_rewrite", failed)
            with pytest.raises(StoreUnavailable, match="keeps using a table"):
                mem.forget("gone", hard=True)
        assert len(done) <= 1
        assert scrubs(mem) == (1, 0)
        with pytest.raises(semmem.NotFound):
            mem.forget("gone", hard=True)
        assert scrubs(mem) == (2, 2)


@pytest.mark.slow
@pytest.mark.parametrize("busy", [True, False])
def test_an_interrupt_ends_the_second_rewriting_too(
    store_url: str, monkeypatch: pytest.MonkeyPatch, busy: bool
) -> None:
    """The first connection is ``busy`` when it comes, or waits for the second one."""
    rewrite, started, cancelled = forget._rewrite, threading.Event(), list[bool]()

    def interrupt() -> None:
        os.kill(os.getpid(), signal.SIGINT)

    def sleeps(connection: Any) -> bool:
        try:
            connection.execute("SELECT pg_sleep(30)")
        except psycopg.errors.QueryCanceled:
            return True
        return False

    def slow(connection: Any, table: str, mark: str, end: float) -> None:
        if threading.current_thread() is not threading.main_thread():
            started.set()
            if not busy:
                threading.Timer(1, interrupt).start()
            cancelled.extend(sleeps(connection) for _ in range(2))  # one may come between two statements
        elif busy:
            assert started.wait(60)
            interrupt()
            connection.execute("SELECT pg_sleep(30)")
        else:
            rewrite(connection, table, mark, end)

    with semmem.connect(store_url, embedder="none") as mem:
        mem.remember("The heron sleeps.", id="gone")
        with monkeypatch.context() as patch:
            patch.setattr(forget, "_rewrite", slow)
            before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job ignores it
            try:
                with pytest.raises(KeyboardInterrupt):
                    mem.forget("gone", hard=True)
            finally:
                signal.signal(signal.SIGINT, before)
        assert cancelled == [True, True]
        assert scrubs(mem) == (1, 0)
        with pytest.raises(semmem.NotFound):
            mem.forget("gone", hard=True)
        assert scrubs(mem) == (2, 2)
