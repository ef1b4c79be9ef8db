"""SQLite as people use it: the lexical order, many processes, files that cannot be used, what it cannot answer."""

from __future__ import annotations

import gzip
import json
import os
import re
import shlex
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import semmem
from semmem.doors.cli.app import run
from semmem.model.errors import InvalidInput, SchemaTooNew, SchemaTooOld, StoreClosed, StoreUnavailable
from semmem.stores import open_store
from semmem.stores.sql_files import migrations, statements
from semmem.stores.sqlite import connection as sqlite_migrate
from semmem.stores.sqlite import connection as sqlite_pool
from semmem.stores.sqlite.connection import APPLICATION, migrate
from semmem.stores.sqlite.store import SqliteStore
from semmem.stores.sqlite.write import token
from semmem.text.passages import term_key

ROOT = Path(__file__).resolve().parents[3]
NO_VECTORS = "A SQLite store keeps no vectors; a PostgreSQL store does (embedded: or postgresql://…)."
NO_GRAPH = "A SQLite store keeps no graph; a PostgreSQL store does (embedded: or postgresql://…)."
TEXTS = {
    "kestrel": ("Kestrel", "The Kestrel is our logger, and Petra Lindqvist designed it in a winter."),
    "petra": ("Petra Lindqvist", "Her childhood was spent above a bakery in Norrbeck."),
    "bakery": (None, "The bakery in Norrbeck bakes rye, rye and more rye."),
    "rye": (None, "Rye keeps longer than wheat; the U.S. grows less of it than wheat."),
    "tower": (None, "東京タワーは赤い。 The tower is red, café-au-lait at dusk, v2.3.1 of it."),
    "long": ("Log", " ".join(f"Entry {n}: the logger ran in winter number {n % 7}." for n in range(60))),
    "copy": (None, "the bakery in norrbeck bakes rye, rye and more rye"),
}
QUESTIONS = (
    *(
        "bakery in Norrbeck",
        "who designed the logger?",
        "rye",
        "wheat rye tower",
        "東京",
        "cafe",
        "version 2.3.1",
        "the",
    ),
    *(
        '"bakery in Norrbeck"',
        '"more rye" bakery',
        '"not there" rye',
        "U.S. wheat",
        "winter number 3",
        "nothing matches",
    ),
)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "notes.db"


@pytest.fixture
def mem(file: Path) -> Iterator[semmem.Semmem]:
    with semmem.connect(f"sqlite://{file}") as opened:
        yield opened


def fill(mem: semmem.Semmem) -> None:
    """Remember TEXTS, in two sessions, and one memory behind a wall."""
    for number, (id, (title, text)) in enumerate(TEXTS.items()):
        mem.remember(text, id=id, title=title, session=f"s{number % 2}", tags=["t"] * (number % 3), namespace="n")
    mem.remember("rye rye rye behind a wall", id="walled", namespace="other")


def fresh(url: str, program: str, *arguments: str, **how: Any) -> subprocess.CompletedProcess[str]:
    """Run ``program`` in a process of its own, with semmem imported and the URL as its first argument."""
    code = f"import sys, semmem\nurl = sys.argv[1]\n{program}"
    return subprocess.run(
        [sys.executable, "-c", code, url, *arguments], capture_output=True, text=True, timeout=60, cwd=ROOT, **how
    )


def shown(hit: semmem.Hit) -> tuple[Any, ...]:
    return hit.memory.id, hit.score, hit.legs["lexical"].score, hit.snippet, hit.duplicates


# ---------------------------------------------------------------------- the lexical order


def test_the_other_legs_are_degraded_with_a_reason_and_the_answer_is_not_said_to_be_complete(
    mem: semmem.Semmem,
) -> None:
    mem.remember("rye")
    found = mem.recall("rye")
    assert found.degraded == {"dense": "SQLite keeps no vectors", "graph": "SQLite keeps no graph"}
    assert (len(found), found.total, found.total_is_exact) == (1, 1, False)
    assert "SQLite keeps no graph" in found.explain(found[0].memory.id).legs["graph"].status
    assert mem.recall("rye", recipe="lexical").degraded == {}
    assert mem.recall("rye", recipe="lexical").total_is_exact
    assert mem.remember_many([{"text": "wheat"}]).degraded == {"dense": NO_VECTORS}


@pytest.mark.parametrize("recipe", ["default", "seed", "hybrid", "memini", "nexus", "rank-scaled"])
def test_with_equal_importance_the_order_is_the_lexical_order_exactly(mem: semmem.Semmem, recipe: str) -> None:
    fill(mem)
    for question in QUESTIONS:
        found = mem.recall(question, namespace="n", recipe=recipe)
        lexical = found.candidates.rankings["lexical"]
        alone = mem.recall(question, namespace="n", recipe=semmem.recipe("lexical", prior=False))
        assert [f.key for f in found.candidates.ranked] == list(lexical)
        assert [hit.memory.id for hit in found] == [hit.memory.id for hit in alone], question
        for hit in found:
            assert set(hit.components) <= {"lexical", "reserve"}


def test_every_question_has_the_answer_that_postgresql_gives_to_the_last_digit(
    mem: semmem.Semmem, store_url: str
) -> None:
    variants: list[dict[str, Any]] = [
        {}, {"lexical": {"match": "all"}}, {"lexical": {"match": "auto"}}, {"lexical": {"k1": 2.0, "b": 0.9}},
        {"depths": {"lexical": 2}}, {"dedup": False},
    ]  # fmt: skip
    narrow: list[dict[str, Any]] = [
        {}, {"filters": {"sessions": ["s0"]}}, {"filters": {"tags": ["t"]}}, {"exclude": ["kestrel", "long#2"]},
        {"namespace": ["n", "other"]}, {"offset": 1, "limit": 2}, {"fold_parts": False},
    ]  # fmt: skip
    with semmem.connect(store_url, embedder="none") as other:
        for one in (mem, other):
            fill(one)
        compared = 0
        every = [*((v, {}) for v in variants), *(({}, n) for n in narrow)]
        for question in QUESTIONS:
            for variant, how in every if question in QUESTIONS[:5] else every[:1]:
                asked = {"namespace": "n", "recipe": semmem.recipe("lexical", **variant), **how}
                answers = [one.recall(question, **asked) for one in (mem, other)]
                ours, theirs = ([*map(shown, answer)] for answer in answers)
                assert ours == theirs, (question, variant, how)
                compared += len(ours)
        assert compared > 100


def test_where_too_few_have_all_terms_any_will_do(mem: semmem.Semmem) -> None:
    mem.remember_many([{"id": f"both{n:02}", "text": f"tide and heron {n}"} for n in range(9)])
    mem.remember_many([{"id": f"one{n:02}", "text": f"tide {n}"} for n in range(9)])
    auto = semmem.recipe("lexical", lexical={"match": "auto"})
    # nine have both terms, one fewer than what auto is content with, so those with one follow behind
    found = [hit.memory.id for hit in mem.recall("tide heron", recipe=auto, limit=50)]
    assert (len(found), {i[:4] for i in found[:9]}) == (18, {"both"})
    mem.remember("heron tide", id="both99")
    assert {h.memory.id[:4] for h in mem.recall("tide heron", recipe=auto, limit=50)} == {"both"}
    assert len(mem.recall("tide heron", recipe=semmem.recipe("lexical", lexical={"match": "all"}), limit=50)) == 10


def test_author_and_window_count_as_they_do_elsewhere(mem: semmem.Semmem, store_url: str) -> None:
    talk = [
        ("Ada", "Where did you go last summer?", "2023-07-02"), ("Bob", "To the coast, in May.", "2023-07-02"),
        ("Ada", "I painted the coast once.", "2023-07-03"), ("Bob", "Did you sell it?", "2023-07-03"),
    ]  # fmt: skip
    with semmem.connect(store_url, embedder="none") as other:
        for one in (mem, other):
            for number, (author, text, at) in enumerate(talk):
                one.remember(text, id=f"t{number}", author=author, session="s", position=number, created_at=at)
        for question in ("When did Bob go to the coast?", "What did Ada paint?", "Who sold a coast in July 2023?"):
            answers = [[(h.memory.id, h.score) for h in one.recall(question, recipe="lexical")] for one in (mem, other)]
            assert answers[0] == answers[1]
            assert answers[0]


def test_importance_and_other_orders_work_as_everywhere(mem: semmem.Semmem) -> None:
    for number, id in enumerate("abc"):
        mem.remember(f"rye {number}", id=id, importance=number / 2, created_at=f"2026-01-0{3 - number}")
    weighty = semmem.recipe("lexical", prior_floor=0.7)  # three times the same score, times the prior
    assert [h.memory.id for h in mem.recall("rye", recipe=weighty)] == ["c", "b", "a"]
    assert [h.memory.id for h in mem.recall("rye")] == ["a", "b", "c"]  # by default it is worth half a place
    assert [h.memory.id for h in mem.recall("rye", sort_by="created")] == ["a", "b", "c"]
    assert [h.memory.id for h in mem.recall("rye", sort_by="importance", offset=1, limit=1)] == ["b"]


# ---------------------------------------------------------------------- several at once


def test_processes_that_write_at_once_never_meet_a_lock_and_lose_nothing(file: Path) -> None:
    program = (
        "with semmem.connect(url) as mem:\n"
        "    for n in range(50):\n"
        "        mem.remember(f'worker {sys.argv[2]} wrote heron {n}', id=f'{sys.argv[2]}-{n}')\n"
        "        if n % 25 == 0: assert len(mem.recall(f'worker {sys.argv[2]} heron {n}', limit=1)) == 1\n"
    )
    with ThreadPoolExecutor(4) as threads:  # the file is made, and migrated, by whoever comes first
        done = list(threads.map(lambda worker: fresh(f"sqlite://{file}", program, worker), "abcd"))
    assert [(d.returncode, d.stderr) for d in done] == [(0, "")] * 4
    with semmem.connect(f"sqlite://{file}") as mem:
        assert mem.stats().memories == 200
        every = mem.recall("heron", limit=1000)
        assert {h.memory.id for h in every} == {f"{worker}-{n}" for worker in "abcd" for n in range(50)}
        assert mem.store.scope(("default",), semmem.Filters(), ()).size == 200


def test_threads_share_one_semmem(mem: semmem.Semmem) -> None:
    def work(worker: int) -> int:
        for n in range(10):
            mem.remember(f"thread{worker} saw heron {n}", id=f"{worker}-{n}")
        return len(mem.recall(f"thread{worker}", limit=1000))

    with ThreadPoolExecutor(12) as threads:  # more than there are connections
        assert list(threads.map(work, range(12))) == [10] * 12
    assert mem.stats().memories == 120


def test_a_memory_only_store_is_shared_by_threads_and_gone_when_closed() -> None:
    with semmem.connect("sqlite::memory:") as mem, ThreadPoolExecutor(4) as threads:
        list(threads.map(lambda n: mem.remember(f"heron {n}"), range(20)))
        assert len(mem.recall("heron", limit=100)) == 20
    with semmem.connect("sqlite::memory:") as mem:
        assert mem.stats().memories == 0


def test_what_was_acknowledged_is_there_for_the_next_process_and_after_a_kill(file: Path) -> None:
    program = "mem = semmem.connect(url)\nmem.remember('heron', id='a')\nimport os\nos.kill(os.getpid(), 9)"
    assert fresh(f"sqlite://{file}", program).returncode == -9
    with semmem.connect(f"sqlite://{file}") as mem:
        assert [h.memory.id for h in mem.recall("heron")] == ["a"]


def test_a_child_process_leaves_its_parents_connections_alone(mem: semmem.Semmem, file: Path) -> None:
    program = (
        "import os\nmem = semmem.connect(url)\nmem.remember('heron', id='parent')\n"
        "if (child := os.fork()) == 0:\n    mem.remember('heron', id='child')\n    os._exit(0)\n"
        "os.waitpid(child, 0)\nmem.remember('heron', id='parent again')\nprint(mem.stats().memories)"
    )
    done = fresh(f"sqlite://{file}", program)
    assert (done.stdout, done.stderr) == ("3\n", "")
    assert len(mem.recall("heron")) == 1  # the same text three times, folded
    assert mem.stats().memories == 3


def test_a_store_in_memory_says_in_a_child_process_whose_it_is() -> None:
    program = (
        "import os\nmem = semmem.connect('sqlite::memory:')\nmem.remember('heron', id='parent')\n"
        "if (child := os.fork()) == 0:\n    try:\n        mem.stats()\n"
        "    except semmem.StoreUnavailable as error:\n        print(error, flush=True)\n    os._exit(0)\n"
        "os.waitpid(child, 0)\nprint(mem.stats().memories)"
    )
    done = fresh("sqlite::memory:", program)
    said = "A database in memory stays with the process that opened it; open a store in a file to share it, or connect"
    assert (done.stdout.startswith(said), done.stdout[-3:], done.stderr) == (True, "\n1\n", "")


def test_a_file_that_has_had_too_many_namespaces_says_so_and_stores_nothing(mem: semmem.Semmem) -> None:
    mem.remember("heron", id="a")
    mem.store._run(lambda c: c.execute("UPDATE sqlite_sequence SET seq = 8388606 WHERE name = 'namespace'"))
    mem.remember("heron", id="a", namespace="last")
    for verb in (lambda: mem.remember("heron", namespace="next"), lambda: mem.copy_namespace("default", "next")):
        with pytest.raises(semmem.StoreError, match="8,388,607 namespaces, and 'next' is one too many; nothing was"):
            verb()
    assert [one.name for one in mem.namespaces()] == ["default", "last"]


def test_a_statement_that_takes_too_long_can_be_stopped_from_another_thread(file: Path) -> None:
    store = open_store(f"sqlite://{file}")
    endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"
    begun, stops = threading.Event(), list[Any]()

    def run() -> Any:
        with store.session() as stop:
            stops.append(stop)

            def work(connection: sqlite3.Connection) -> Any:
                begun.set()
                return connection.execute(endless).fetchall()

            return store._run(work)

    with ThreadPoolExecutor(1) as threads:
        running = threads.submit(run)
        assert begun.wait(10)
        while not running.done():  # until the statement itself has begun
            stops[0]()
        with pytest.raises(sqlite3.OperationalError, match="interrupted"):
            running.result()
    assert store.stats(None).memories == 0  # the connection is as good as before
    stops[0]()  # nothing runs, and nothing happens
    store.close()


# ---------------------------------------------------------------------- files that cannot be used


def test_a_file_that_is_no_database_is_refused_and_left_as_it_was(file: Path) -> None:
    for content in (b"hello", b"hello" * 1000):
        file.write_bytes(content)
        with pytest.raises(InvalidInput, match=r"notes\.db is no SQLite database; name another file"):
            semmem.connect(f"sqlite://{file}")
        assert file.read_bytes() == content


def test_the_database_of_another_program_is_refused_and_left_as_it_was(file: Path) -> None:
    with sqlite3.connect(file) as connection:
        connection.execute("CREATE TABLE theirs (a)")
    connection.close()
    before = file.read_bytes()
    with pytest.raises(InvalidInput, match="database of another program"):
        semmem.connect(f"sqlite://{file}")
    assert file.read_bytes() == before


def test_an_empty_file_becomes_a_store(file: Path) -> None:
    file.touch()
    with semmem.connect(f"sqlite://{file}") as mem:
        mem.remember("heron")
    assert file.read_bytes()[:15] == b"SQLite format 3"


def test_a_folder_that_is_missing_and_one_in_the_files_place_are_told(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"There is no folder .*nowhere for the SQLite file; create it"):
        semmem.connect(f"sqlite://{tmp_path / 'nowhere' / 'notes.db'}")
    with pytest.raises(InvalidInput, match="is a folder; name a file in it"):
        semmem.connect(f"sqlite://{tmp_path}")
    assert list(tmp_path.iterdir()) == []


def _without_rights(url: str) -> str:
    """Return the error that somebody meets who may read, and not write."""
    program = (
        "import os\n"
        "with semmem.connect('sqlite::memory:') as mem:\n"  # what is imported now need not be read later
        "    mem.remember('heron')\n    mem.recall('heron')\n"
        "semmem.SemmemError\nif os.getuid() == 0: os.setuid(65534)\n"
        "try:\n    with semmem.connect(url) as mem: mem.remember('heron')\n"
        "except semmem.SemmemError as error: print(type(error).__name__, error)"
    )
    # their home is where they may read: settings are looked for in it
    done = fresh(url, program, env={**os.environ, "HOME": tempfile.gettempdir(), "PYTHONPATH": str(ROOT)})
    assert done.stderr == ""
    return done.stdout


def test_a_file_or_folder_that_may_not_be_written_is_told() -> None:
    folder = Path(tempfile.mkdtemp())  # pytest's own folders are closed to everybody else
    try:
        folder.chmod(0o755)
        with semmem.connect(f"sqlite://{folder / 'notes.db'}") as mem:
            mem.remember("tide")
        (folder / "notes.db").chmod(0o444)
        folder.chmod(0o555)
        told = _without_rights(f"sqlite://{folder / 'notes.db'}")
        assert re.match(r"StoreUnavailable The file .*notes\.db (may not be written|cannot be opened); see to", told)
        told = _without_rights(f"sqlite://{folder / 'new.db'}")
        assert re.match(r"StoreUnavailable The file .*new\.db cannot be opened; see to the rights of the file", told)
        with semmem.connect(f"sqlite://{folder / 'notes.db'}") as mem:
            assert mem.stats().memories == 1
    finally:
        folder.chmod(0o755)
        shutil.rmtree(folder)


def test_a_full_disk_stores_nothing_of_a_batch_and_the_store_goes_on_when_there_is_room(file: Path) -> None:
    store = open_store(f"sqlite://{file}", pool_size=1)
    with semmem.connect(f"sqlite://{file}") as roomy:
        mem = semmem.Semmem(store, recipe=roomy.recipe, embedder=None, extractor=None, settings=roomy.settings)
        mem.remember("tide", id="first")
        pages = store._run(lambda c: c.execute("PRAGMA page_count").fetchone()[0])
        store._run(lambda c: c.execute(f"PRAGMA max_page_count = {pages + 4}"))  # SQLite's own way to run out of room
        many = [{"id": f"m{n}", "text": f"heron {n} " + "reed " * 150} for n in range(200)]
        with pytest.raises(StoreUnavailable, match=r"The disk of .*notes\.db is full; nothing of this was stored"):
            mem.remember_many(many)
        assert [m.id for m in roomy.list()] == ["first"]
        assert len(roomy.recall("heron")) == 0
        assert roomy.store.scope(("default",), semmem.Filters(), ()).size == 1
        store._run(lambda c: c.execute("PRAGMA max_page_count = 100000"))
        assert mem.remember_many(many).remembered == 200
        mem.close()


def test_a_lock_that_is_held_for_long_is_waited_for_and_then_told(
    mem: semmem.Semmem, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mem.remember("tide")
    monkeypatch.setattr(sqlite_pool, "_BUSY_S", 0.05)
    holder = sqlite3.connect(file, isolation_level=None)
    with semmem.connect(f"sqlite://{file}") as other:
        holder.execute("BEGIN IMMEDIATE")
        with pytest.raises(
            StoreUnavailable, match=r"Another program keeps a lock on the file .*notes\.db; nothing was changed"
        ):
            other.remember("heron")
        assert len(other.recall("tide")) == 1  # readers do not wait
        holder.execute("ROLLBACK")
        holder.close()
        other.remember("heron")
        assert other.stats().memories == 2


def test_a_damaged_file_is_told(mem: semmem.Semmem, file: Path) -> None:
    mem.remember_many([{"text": f"heron {n} " + "reed " * 50} for n in range(100)])
    mem.close()
    content = bytearray(file.read_bytes())
    content[4096:] = b"\xff" * (len(content) - 4096)
    file.write_bytes(content)

    def use() -> None:
        with semmem.connect(f"sqlite://{file}") as broken:
            broken.recall("heron")

    with pytest.raises(StoreUnavailable, match=r"notes\.db is damaged \(.*\); restore it from a backup"):
        use()


def test_after_close_every_verb_says_so(mem: semmem.Semmem) -> None:
    mem.close()
    with pytest.raises(StoreClosed):
        mem.remember("heron")
    mem.close()


# ---------------------------------------------------------------------- the schema


def schema(connection: sqlite3.Connection) -> list[tuple[Any, ...]]:
    return connection.execute("SELECT type, name, tbl_name, sql FROM sqlite_master ORDER BY 1, 2").fetchall()


def memory() -> sqlite3.Connection:
    return sqlite3.connect(":memory:", isolation_level=None)


def test_migrations_one_by_one_give_the_schema_of_all_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    known = migrations("sqlite")
    newest = known[-1][0]
    step_by_step, at_once = memory(), memory()
    for last in range(1, len(known) + 1):
        monkeypatch.setattr(sqlite_migrate, "migrations", lambda backend, n=last: known[:n])
        assert migrate(step_by_step, "it") == known[last - 1][0]
    monkeypatch.undo()
    assert migrate(at_once, "it") == newest
    assert schema(at_once) == schema(step_by_step)
    assert {"memory", "namespace", "lexical", "lexical_term", "migration"} <= {name for _, name, *_ in schema(at_once)}
    assert at_once.execute("PRAGMA application_id").fetchone() == (APPLICATION,)
    before = at_once.execute("SELECT * FROM migration").fetchall()
    assert [row[:2] for row in before] == [(number, name) for number, name, _ in known]
    assert migrate(at_once, "it") == newest
    assert at_once.execute("SELECT * FROM migration").fetchall() == before
    step_by_step.close()
    at_once.close()


def test_a_file_of_schema_3_comes_over_with_its_memories(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with semmem.connect(f"sqlite://{tmp_path}/newest.db") as mem:
        for number in range(3):
            mem.remember(f"The kettle number {number} stands on the stove.", id=f"m{number}", tags=["kitchen"])
        before = mem.list(), [(hit.id, hit.score) for hit in mem.recall("kettle on the stove")]
    old = sqlite3.connect(tmp_path / "old.db", isolation_level=None)
    oldest = migrations("sqlite")[:1]
    monkeypatch.setattr(sqlite_migrate, "migrations", lambda backend: oldest)
    assert migrate(old, "it") == 3
    monkeypatch.undo()
    old.execute("ATTACH ? AS newest", (str(tmp_path / "newest.db"),))
    for (table,) in old.execute(
        "SELECT name FROM main.sqlite_master WHERE type = 'table' AND name NOT LIKE 'lexical_%' "
        "AND name NOT LIKE 'sqlite_%' AND name <> 'migration'"
    ).fetchall():
        own = [name for _, name, *_, hidden in old.execute(f"PRAGMA table_xinfo({table})") if hidden == 0]
        names = ", ".join(["rowid", *own] if table == "lexical" else own)
        old.execute(f"INSERT INTO main.{table} ({names}) SELECT {names} FROM newest.{table}")
    old.close()
    with semmem.connect(f"sqlite://{tmp_path}/old.db") as mem:
        assert (mem.list(), [(hit.id, hit.score) for hit in mem.recall("kettle on the stove")]) == before
        assert mem.remember("A whistle.").version == 1


def test_a_migration_that_fails_leaves_nothing_of_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    known = migrations("sqlite")
    connection = memory()
    monkeypatch.setattr(
        sqlite_migrate,
        "migrations",
        lambda backend: (*known, (known[-1][0] + 1, "broken", "CREATE TABLE half (a);\nOops;")),
    )
    with pytest.raises(sqlite3.OperationalError, match="Oops"):
        migrate(connection, "it")
    assert schema(connection) == []
    monkeypatch.undo()
    assert migrate(connection, "it") == known[-1][0]
    connection.close()


def test_a_file_of_a_newer_program_is_refused_and_left_alone(mem: semmem.Semmem, file: Path) -> None:
    mem.remember("heron")
    mem.store._run(lambda c: c.execute("INSERT INTO migration (number, name) VALUES (999, 'from the future')"))
    with pytest.raises(SchemaTooNew, match=r"notes\.db has schema 999 and this semmem knows \d+; upgrade with"):
        semmem.connect(f"sqlite://{file}")
    assert mem.stats().memories == 1


def test_a_file_of_an_older_program_is_refused_with_the_way_over_and_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "old.db"
    file.write_bytes(gzip.decompress((Path(__file__).parents[1] / "data" / "schema-1.db.gz").read_bytes()))
    before = file.read_bytes()
    way = r"old\.db has schema 1 and this semmem reads 3 or newer: .*`semmem export FILE`, .*`semmem import jsonl"
    with pytest.raises(SchemaTooOld, match=way):
        semmem.connect(f"sqlite://{file}")
    assert file.read_bytes() == before


def test_every_statement_says_why_it_exists_and_can_be_prepared(mem: semmem.Semmem) -> None:
    found = statements("sqlite")
    assert len(found) > 30
    assert [name for name, body in found.items() if not body.startswith("-- ")] == []

    def explain(connection: sqlite3.Connection) -> None:
        for name, template in found.items():
            body = template.replace("{table}", "change").replace("{columns}", "id")
            if name != "migration_table" and "PRAGMA" not in body:
                connection.execute(f"EXPLAIN {body}", dict.fromkeys(re.findall(r":(\w+)", body))).fetchall()

    mem.store._run(explain)


# ---------------------------------------------------------------------- what it keeps, and what it does not


def test_what_takes_vectors_or_a_graph_is_refused_in_one_sentence(mem: semmem.Semmem) -> None:
    mem.remember("Ada Lovelace met Charles Babbage.", id="a", title="Ada Lovelace")
    for ask in (
        lambda: mem.graph(around="Ada Lovelace"),
        lambda: mem.concepts(),
        lambda: mem.merge_concepts("Ada", "Ada Lovelace"),
        lambda: mem.split_concept("Ada"),
        lambda: mem.graph_hash(),
    ):
        with pytest.raises(InvalidInput, match="SQLite store keeps no graph"):
            ask()
    for ask in (lambda: mem.rebuild(), lambda: mem.remember("x", vector=[1.0, 0.0])):
        with pytest.raises(InvalidInput, match="SQLite store keeps no vectors"):
            ask()
    report = mem.remember_many([{"text": "x", "vector": [1.0]}, {"text": "y"}], on_error="skip")
    assert (report.remembered, [r.reason for r in report.rejected]) == (1, [NO_VECTORS])
    assert (mem.stats().concepts, mem.stats().mentions, mem.stats().vectors, mem.stats().pending) == (0, 0, 0, 0)
    assert mem.stats().bytes > 4096


def test_maintenance_joins_the_index_once_and_changes_no_answer(mem: semmem.Semmem) -> None:
    fill(mem)
    before = [(h.memory.id, h.score) for h in mem.recall("rye bakery", namespace="n")]
    first = mem.maintain()
    assert first["joined"] > 0
    assert not any(mem.maintain().values())
    assert [(h.memory.id, h.score) for h in mem.recall("rye bakery", namespace="n")] == before


def test_texts_read_anew_in_another_language_match_by_its_stems(mem: semmem.Semmem, file: Path) -> None:
    mem.remember("Die Reiher standen in den Häusern.", id="a")
    mem.remember("heron", id="b")
    with semmem.connect(f"sqlite://{file}", language="german") as german:
        with pytest.raises(semmem.InvalidInput, match=r"read in english and .* is german"):
            german.recall("Haus")
        assert german.store.postings(["default"], [])["default"].length == 5 + 1
        assert german.rebuild(extract=True).changed == 1  # heron is the same in both
        assert german.rebuild(extract=True).changed == 0
        assert [h.memory.id for h in german.recall("Haus")] == ["a"]
        # in English "in" is no term, so 5 of 6; in German all 6, as there is no list of stop words; heron is 1 more
        assert german.store.postings(["default"], [])["default"].length == 6 + 1


@pytest.mark.parametrize("hard", [False, True])
def test_what_is_forgotten_is_found_no_more_and_hard_leaves_no_byte_of_it(
    mem: semmem.Semmem, file: Path, hard: bool
) -> None:
    mem.remember_many([{"id": f"m{n}", "text": f"heron {n}"} for n in range(20)])
    mem.remember("the unmistakable Quetzalcoatl", id="gone", author="Xochitl", metadata={"k": "Nezahualcoyotl"})
    mem.remember("stays", id="stays")
    secrets = [s.encode() for s in ("Quetzalcoatl", "Xochitl", "Nezahualcoyotl", token(1, term_key("quetzalcoatl")))]

    def left() -> list[bytes]:
        files = [path for path in file.parent.iterdir() if path.name.startswith(file.name)]
        content = b"".join(path.read_bytes() for path in files)
        return [s for s in secrets if s in content]

    assert mem.recall("Quetzalcoatl")[0].memory.id == "gone"
    assert len(left()) >= 3  # FTS5 may keep the token in two pieces
    assert mem.forget("gone", hard=hard) == 1
    assert len(mem.recall("Quetzalcoatl")) == 0
    assert mem.stats().memories == 21
    if hard:
        assert left() == []


def test_an_emptied_namespace_leaves_nothing_that_a_later_one_could_find(mem: semmem.Semmem) -> None:
    mem.remember("heron", id="a", namespace="one")
    mem.forget("a", namespace="one")
    mem.remember("tide", id="a", namespace="two")
    assert mem.stats(namespace="one").namespaces == 0
    assert len(mem.recall("heron", namespace=["one", "two"])) == 0
    assert list(mem.store.namespaces()) == ["two"]
    first = mem.store.ords_of("two", "a")
    mem.forget("a", namespace="two")
    mem.remember("tide", id="a", namespace="two")
    assert mem.store.ords_of("two", "a") > first  # an ord is never given twice


def test_an_extractor_that_asks_a_model_is_not_asked_unless_it_was_wished_for(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SEMMEM_EXTRACTOR", "llm")  # without an endpoint it could not be made
    with semmem.connect(f"sqlite://{file}") as mem:
        mem.remember("heron")
        assert len(mem.recall("heron")) == 1
    with pytest.raises(InvalidInput):
        semmem.connect(f"sqlite://{file}", extractor="llm")


def test_neither_a_driver_of_postgresql_nor_a_model_is_loaded(file: Path) -> None:
    program = (
        "with semmem.connect(url, embedder='minilm') as mem:\n    mem.remember('heron')\n    mem.recall('heron')\n"
        "found = {m.split('.')[0] for m in sys.modules}\n"
        "print(sorted(found & {'psycopg', 'psycopg_pool', 'torch', 'sentence_transformers', 'networkx', 'spacy'}))"
    )
    assert fresh(f"sqlite://{file}", program).stdout == "[]\n"


def test_a_store_says_what_it_can(mem: semmem.Semmem) -> None:
    assert isinstance(mem.store, SqliteStore)
    assert (mem.store.kind, mem.store.capabilities) == ("SQLite", frozenset({"lexical"}))


# ---------------------------------------------------------------------- from the command line


@pytest.fixture
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.usefixtures("_here")
def test_the_lines_of_the_readme_can_be_typed(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    section = (ROOT / "README.md").read_text(encoding="utf-8").split("\n## One file, no server\n")[1].split("\n## ")[0]
    block = re.search(r"^```sh\n(.*?)^```", section, re.DOTALL | re.MULTILINE)
    assert block is not None
    lines = [shlex.split(line)[1:] for line in block[1].splitlines()]
    assert len(lines) >= 3
    for line in lines:
        assert run(line) == 0, line
        out, err = capfd.readouterr()
        assert out, line
        assert err == "", line
    assert (tmp_path / "notes.db").exists()


@pytest.mark.usefixtures("_here")
def test_doctor_says_that_it_is_lexical_alone_and_finds_nothing_bad_about_it(
    capfd: pytest.CaptureFixture[str],
) -> None:
    assert run(["remember", "heron", "--url", "sqlite:notes.db"]) == 0
    capfd.readouterr()
    assert run(["doctor", "--url", "sqlite:notes.db", "--json"]) == 0
    found = {one["what"]: one for one in json.loads(capfd.readouterr().out)["findings"]}
    assert (found["store"]["state"], found["store"]["detail"][:10]) == ("good", "1 memory i")
    assert found["server"]["detail"] == "none: SQLite, a file"
    said = "lexical alone: SQLite keeps no vectors, SQLite keeps no graph; a PostgreSQL store does"
    assert (found["legs"]["state"], found["legs"]["detail"]) == ("optional", said)
    assert "vectors" not in found


@pytest.mark.usefixtures("_here")
def test_the_commands_of_the_second_day_work_or_say_in_a_sentence_why_not(capfd: pytest.CaptureFixture[str]) -> None:
    store = ["--url", "sqlite:notes.db"]
    assert run(["remember", "heron", "--id", "a", *store]) == 0
    for line in (["rebuild", "--extract"], ["maintain"], ["export", "out.jsonl"], ["forget", "a", "--hard", "--yes"]):
        assert run([*line, *store]) == 0, line
    assert run(["import", "jsonl", "out.jsonl", *store]) == 0
    capfd.readouterr()
    for line in (["rebuild"], ["graph"], ["concepts"], ["backup", "all.backup"]):
        assert run([*line, *store]) == 2, line
        out, err = capfd.readouterr()
        assert (out, err.count("\n")) == ("", 1), line
        assert "PostgreSQL" in err, line


@pytest.mark.usefixtures("_here")
def test_an_error_is_one_sentence_with_the_exit_code_of_its_class(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "notes.db").write_text("hello")
    assert run(["recall", "heron", "--url", "sqlite:notes.db"]) == 2
    out, err = capfd.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert "no SQLite database" in err


def test_a_new_file_may_be_opened_by_several_at_once(tmp_path: Path) -> None:
    """One makes the tables while another looks whose file it is: eight in sixty such looks once saw a stranger's."""

    def remember(file: Path, number: int) -> str:
        with semmem.connect(f"sqlite:{file}", embedder="none") as mem:
            return mem.remember(f"Note {number}.", id=str(number)).id

    with ThreadPoolExecutor(6) as threads:
        for turn in range(25):
            opened = [threads.submit(remember, tmp_path / f"{turn}.db", number) for number in range(6)]
            assert [one.result() for one in opened] == ["0", "1", "2", "3", "4", "5"]
