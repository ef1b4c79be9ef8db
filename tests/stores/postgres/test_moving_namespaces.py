"""A rename and a copy are many small transactions: nobody sees a part, and nothing is lost where one is killed."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest

import semmem
from semmem.client.memory import Semmem
from semmem.model.history import Access
from semmem.model.store import Keep
from semmem.model.types import Filters
from semmem.stores.postgres import connection, life
from semmem.stores.postgres.moving import namespaces
from tests.stores.audit import check, sql
from tests.stores.namespaces import full, namespace_answers

AT_ONCE = 40
REFUSED = "being renamed, or a rename or a copy fills it, so nothing was changed in it"
TABLES = (
    "memory", "forward", "pending", "posting", "embedding", "history", "link", "likeness", "likeness_key", "change",
)  # fmt: skip


@pytest.fixture
def mem(store_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Semmem]:
    monkeypatch.setattr(connection, "_MOVES_S", 0.0001)  # writers do not wait, but are refused
    monkeypatch.setattr(namespaces, "AT_ONCE", AT_ONCE)
    # a verb in the middle of a move that waits for the move would wait for ever: one thread does both
    monkeypatch.setenv("PGOPTIONS", "-c statement_timeout=60s")
    with semmem.connect(store_url, embedder="hashing") as mem:
        yield mem


@pytest.fixture(scope="module")
def steps_of_full() -> dict[bool, list[str]]:
    """The transactions of a rename, and of a copy (True), of a full namespace, once they were counted."""
    return {}


class Killed(BaseException):
    """The process ends here: nothing that it would still do is done."""


def moved(mem: Semmem, stay: bool) -> int:
    return (mem.copy_namespace if stay else mem.rename_namespace)("old", "new")


def at(monkeypatch: pytest.MonkeyPatch, step: int, work: Callable[[], object]) -> list[str]:
    """Do some work before the transaction of that number of a move; return the names of those that ran."""
    run, ran = namespaces._transaction, list[str]()

    def stepped(pool: Any, what: Any) -> Any:
        ran.append(what.func.__name__)
        if len(ran) == step:
            work()
        return run(pool, what)

    monkeypatch.setattr(namespaces, "_transaction", stepped)
    return ran


def killed(mem: Semmem, monkeypatch: pytest.MonkeyPatch, step: int, stay: bool) -> None:
    """Move the namespace, and end before the transaction of that number, without any other after it."""

    def end() -> None:
        monkeypatch.setattr(namespaces, "_transaction", lambda pool, what: end())
        raise Killed

    with monkeypatch.context() as patch:
        at(patch, step, end)
        with pytest.raises(Killed):
            moved(mem, stay)
    monkeypatch.undo()
    monkeypatch.setattr(connection, "_MOVES_S", 0.0001)
    monkeypatch.setattr(namespaces, "AT_ONCE", AT_ONCE)


def steps(mem: Semmem, monkeypatch: pytest.MonkeyPatch, stay: bool) -> list[str]:
    """Return the transactions of a move of a namespace that is as full as this one."""
    mem.copy_namespace("old", "other")
    with monkeypatch.context() as patch:
        ran = at(patch, 0, lambda: None)
        (mem.copy_namespace if stay else mem.rename_namespace)("other", "another")
    for name in ("other", "another"):
        mem.drop_namespace(name)
    return ran


def states(mem: Semmem) -> dict[str, str | None]:
    return {one.name: one.state for one in mem.namespaces()}


def unseen(mem: Semmem, where: str) -> None:
    """Prove that a namespace answers as one in which nothing was ever stored."""
    assert mem.list(namespace=where).memories == ()
    assert [mem.recall(asked, namespace=where).total for asked in ("Ada Lovelace", "owl 7", "long")] == [0, 0, 0]
    assert len(mem.recall("Ada Lovelace", namespace=where, filters={"titles": ["Owl 3"]})) == 0
    assert {hit.memory.namespace for hit in mem.recall("owl 7", namespace=[where, "else"])} <= {"else"}
    assert (mem.stats(namespace=where).memories, len(mem.concepts(namespace=where))) == (0, 0)
    assert mem.list(namespace=where, sort_by="accessed").memories == ()
    assert mem.forget(namespace=where, everything=True, dry_run=True) == 0
    assert where not in mem.hashes()
    for call in (mem.get, mem.history, mem.links):
        with pytest.raises(semmem.NotFound):
            call("m3", namespace=where)


@pytest.mark.parametrize("stay", [False, True])
def test_no_transaction_of_a_move_writes_or_deletes_more_rows_than_its_step_is_large(
    mem: Semmem, monkeypatch: pytest.MonkeyPatch, stay: bool
) -> None:
    full(mem, "old")
    before, execute, deleted = namespace_answers(mem, "old"), namespaces._execute, list[int]()
    monkeypatch.setattr(namespaces, "_execute", lambda *a, **k: deleted.append(execute(*a, **k)) or deleted[-1])
    assert moved(mem, stay) == 70
    assert namespace_answers(mem, "new") == before
    most = {
        table: sql(
            mem,
            f"SELECT count(*) FROM {table} WHERE namespace = 'new' GROUP BY xmin::text ORDER BY 1 DESC LIMIT 1",
        )
        for table in TABLES
    }
    assert {table: rows[0][0] <= AT_ONCE for table, rows in most.items() if rows} == dict.fromkeys(
        (table for table, rows in most.items() if rows), True
    )
    assert most["memory"] == [(AT_ONCE,)]
    assert max(deleted) <= AT_ONCE
    assert (sum(deleted) > 300) is not stay
    check(mem)


@pytest.mark.slow
@pytest.mark.parametrize("stay", [False, True])
def test_while_a_namespace_is_filled_nobody_sees_it_and_the_other_one_answers(
    mem: Semmem, monkeypatch: pytest.MonkeyPatch, stay: bool
) -> None:
    full(mem, "old")
    mem.remember("Nobody is here.", id="x", namespace="else")
    before = namespace_answers(mem, "old")
    since = mem.changes("now", namespace="new").cursor
    number = steps(mem, monkeypatch, stay).index("_open")

    def look() -> None:
        assert sql(mem, "SELECT count(*) > 40 FROM memory WHERE namespace = 'new'") == [(True,)]
        assert states(mem) == {"else": None, "new": "filling", "old": None if stay else "moving"}
        unseen(mem, "new")
        assert list(mem.changes(since, namespace="new")) == []
        assert namespace_answers(mem, "old") == before
        with pytest.raises(semmem.StoreUnavailable, match=REFUSED):
            mem.remember("New.", namespace="new")
        with pytest.raises(semmem.StoreUnavailable, match=REFUSED):
            mem.remember("Ada Lovelace met owl 5.", id="m5", title="Owl 5", namespace="new")
        assert mem.drop_namespace("new", dry_run=True) == 0

    at(monkeypatch, number, look)
    assert moved(mem, stay) == 70
    assert namespace_answers(mem, "new") == before
    assert states(mem) == ({"else": None, "new": None, "old": None} if stay else {"else": None, "new": None})
    check(mem)


def writers(mem: Semmem) -> dict[str, Callable[[], object]]:
    """Every verb that changes a memory, its links or what is said of it, in the namespace ``old``."""
    where: dict[str, Any] = {"namespace": "old"}
    return {
        "remember": lambda: mem.remember("New.", **where),
        "remember again": lambda: mem.remember("Ada Lovelace met owl 9.", title="Owl 9", **where),
        "remember many": lambda: mem.remember_many([{"text": f"New {n}."} for n in range(60)], **where),
        "update": lambda: mem.update("m5", text="Another.", **where),
        "update a title": lambda: mem.update("m5", title="Another", **where),
        "forget": lambda: mem.forget("m6", **where),
        "forget for good": lambda: mem.forget("m6", hard=True, **where),
        "forget what was forgotten": lambda: mem.forget("m2", hard=True, **where),
        "restore": lambda: mem.restore_memory("m2", **where),
        "link": lambda: mem.link("m7", "see-also", "m8", **where),
        "unlink": lambda: mem.unlink("m3", "supersedes", "m4", **where),
        "correct": lambda: mem.merge_concepts("Owl 7", "Ada Lovelace", **where),
        "drop": lambda: mem.drop_namespace("old"),
        "forget all": lambda: mem.forget(everything=True, **where),
    }


def said_by(verb: Callable[[], object]) -> str:
    """Return the words by which a verb is refused, shortened where these are the expected ones."""
    try:
        verb()
    except semmem.SemmemError as error:
        return REFUSED if REFUSED in str(error) else str(error)
    return "it was done"


@pytest.mark.nodes
def test_writers_of_a_namespace_that_is_being_renamed_are_refused_and_nothing_is_lost(
    mem: Semmem, monkeypatch: pytest.MonkeyPatch
) -> None:
    full(mem, "old")
    before, verbs = namespace_answers(mem, "old"), writers(mem)
    number = steps(mem, monkeypatch, stay=False).index("_open") - 3

    def write() -> None:
        for name, verb in verbs.items():
            assert (name, said_by(verb)) == (name, REFUSED)
        mem.maintain()
        assert namespace_answers(mem, "old") == before

    at(monkeypatch, number, write)
    assert moved(mem, stay=False) == 70
    assert namespace_answers(mem, "new") == before
    check(mem)


def test_maintain_leaves_out_what_is_being_renamed_and_does_the_rest(
    mem: Semmem, store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with semmem.connect(store_url, embedder="hashing", on_contradiction="ignore") as other:
        for name in ("old", "else"):
            other.remember_many([{"text": "Ana lives in Lisbon."}, {"text": "Ana moved to Porto."}], namespace=name)
    mem.merge_concepts("Porto", "Lisbon", namespace="old")
    counted: list[Mapping[str, int]] = []
    at(monkeypatch, 4, lambda: counted.append(mem.maintain()))
    assert moved(mem, stay=False) == 2
    assert counted[0]["compared"] == 2
    assert mem.maintain()["compared"] == 2
    check(mem)


def test_maintain_sweeps_what_is_being_renamed_once_it_has_its_new_name_and_the_rest_before(
    mem: Semmem, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("old", "else"):
        mem.remember_many([{"id": f"m{n}", "text": f"Owl {n}."} for n in range(5)], namespace=name)
        mem.forget("m2", namespace=name)
    swept: list[int] = []
    at(monkeypatch, 4, lambda: swept.append(mem.store.maintain(Keep(forgotten_days=-1))["forgotten"]))
    assert moved(mem, stay=False) == 4
    assert swept == [1]
    assert mem.history("m2", namespace="new")[-1].version == 1
    assert mem.store.maintain(Keep(forgotten_days=-1))["forgotten"] == 1
    check(mem)


@pytest.mark.parametrize("other", [[], ["else"]])
def test_a_logged_recall_does_not_wait_for_the_end_of_a_rename(
    store_url: str, monkeypatch: pytest.MonkeyPatch, other: list[str]
) -> None:
    with semmem.connect(store_url, embedder="none", recall_log=True) as mem:
        for name in ("old", *other):
            mem.remember(f"Ada Lovelace met an owl, {name}.", namespace=name)
        found: list[semmem.Recall] = []
        pauses: list[float] = []
        monkeypatch.setattr(connection, "time", SimpleNamespace(sleep=pauses.append, monotonic=time.monotonic))
        at(monkeypatch, 4, lambda: found.append(mem.recall("owl", namespace=["old", *other])))
        moved(mem, stay=False)
    assert [len(one) for one in found] == [1 + len(other)]
    assert REFUSED in found[0].degraded["log"]
    assert pauses == []


@pytest.mark.parametrize("stay", [False, True])
def test_a_hard_forget_elsewhere_takes_its_questions_out_of_a_namespace_that_is_being_filled(
    store_url: str, monkeypatch: pytest.MonkeyPatch, stay: bool
) -> None:
    with semmem.connect(store_url, embedder="none", recall_log=True) as mem:
        for name in ("old", "else"):
            mem.remember(f"Ada Lovelace met an owl, {name}.", id=name, namespace=name)
        mem.recall("Where did Ada meet the owl?", namespace=["old", "else"])
        kept = mem.recall("Ada", namespace="old").id
        forgotten = [lambda: mem.store.forget("else", "else", Filters(), dry_run=False)]
        at(monkeypatch, 2, lambda: forgotten.pop()() if forgotten else None)
        moved(mem, stay)
        assert [one.id for name in ("old", "new") for one in mem.recalls(namespace=name)] == [kept] * (1 + stay)


def test_settings_and_limits_that_change_during_a_rename_go_along(mem: Semmem, monkeypatch: pytest.MonkeyPatch) -> None:
    full(mem, "old")

    def change() -> None:
        mem.configure(namespace="old", weights={"lexical": 3})
        mem.namespace_limits("old", most_memories=99)

    at(monkeypatch, 4, change)
    moved(mem, stay=False)
    assert (mem.settings_of(namespace="new"), mem.settings_of(namespace="old")) == ({"weights.lexical": 3}, {})
    assert (mem.namespace_limits("new").most_memories, mem.namespace_limits("old").most_memories) == (99, None)


def test_a_setting_that_is_made_while_the_new_name_is_opened_is_not_lost(
    mem: Semmem, monkeypatch: pytest.MonkeyPatch
) -> None:
    mem.remember("Owl 1.", namespace="old")
    mem.configure(namespace="old", weights={"lexical": 2})
    erase, waits = namespaces.erase, "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
    with ThreadPoolExecutor(1) as other:
        begun = list[Any]()

        def late(*given: Any) -> None:  # the settings are read, and not deleted yet
            begun.append(other.submit(mem.configure, namespace="old", weights={"dense": 3}))
            while not begun[0].done() and sql(mem, waits) == [(0,)]:
                pass
            erase(*given)

        monkeypatch.setattr(namespaces, "erase", late)
        moved(mem, stay=False)
        begun[0].result(60)
    assert mem.settings_of(namespace="new") == {"weights.lexical": 2}
    assert mem.settings_of(namespace="old") == {"weights.dense": 3}


def test_accesses_that_were_being_written_when_a_rename_began_leave_nothing_in_the_old_name(
    mem: Semmem, monkeypatch: pytest.MonkeyPatch
) -> None:
    mem.remember("Owl 1.", id="m1", namespace="old")
    lock, locked, goes_on = life.locked_rows, threading.Event(), threading.Event()

    def slow(*given: Any) -> Any:
        rows = lock(*given)
        locked.set()
        assert goes_on.wait(60)
        return rows

    monkeypatch.setattr(life, "locked_rows", slow)
    ran = at(monkeypatch, 0, lambda: None)
    transaction = namespaces._transaction

    def stepped(pool: Any, what: Any) -> Any:
        if "_open" in ran[:-2]:  # the first of its tables was emptied
            goes_on.set()
        return transaction(pool, what)

    monkeypatch.setattr(namespaces, "_transaction", stepped)
    with ThreadPoolExecutor(1) as other:
        counted = other.submit(mem.store.life.count_accesses, "old", {"m1": Access(3, datetime.now(UTC))})
        assert locked.wait(60)
        moved(mem, stay=False)
        assert counted.result(60) == 1
    assert sql(mem, "SELECT count(*) FROM access WHERE namespace = 'old'") == [(0,)]
    assert mem.rename_namespace("new", "old") == 1


@pytest.mark.nodes
def test_a_copy_is_of_one_moment_and_writers_go_on(mem: Semmem, monkeypatch: pytest.MonkeyPatch) -> None:
    full(mem, "old")
    before = namespace_answers(mem, "old")

    def write() -> None:
        mem.remember("Owl 99 came late.", id="late", namespace="old")
        mem.update("m5", text="Ada Lovelace met nobody.", namespace="old")
        mem.forget("m6", namespace="old")
        mem.maintain()

    at(monkeypatch, 4, write)
    assert moved(mem, stay=True) == 70
    assert namespace_answers(mem, "new") == before
    assert mem.get("late", namespace="old").text == "Owl 99 came late."
    check(mem)


@pytest.mark.nodes
@pytest.mark.slow
@pytest.mark.parametrize("way", ["again", "maintain"])
@pytest.mark.parametrize(
    ("where", "stay"),
    [
        *((where, False) for where in ("begun", "filled in part", "full", "open", "emptied in part", "empty")),
        *((where, True) for where in ("begun", "filled in part", "full")),  # a copy empties nothing
    ],
)
def test_a_move_that_was_killed_is_ended_by_the_same_call_or_by_maintain(
    mem: Semmem,
    monkeypatch: pytest.MonkeyPatch,
    steps_of_full: dict[bool, list[str]],
    where: str,
    stay: bool,
    way: str,
) -> None:
    full(mem, "old")
    before = namespace_answers(mem, "old")
    if stay not in steps_of_full:
        steps_of_full[stay] = steps(mem, monkeypatch, stay)
    ran = steps_of_full[stay]
    opens = ran.index("_open") + 1
    step = {
        "begun": 2, "filled in part": opens // 2, "full": opens, "open": opens + 1,
        "emptied in part": (opens + len(ran)) // 2, "empty": len(ran),
    }[where]  # fmt: skip
    killed(mem, monkeypatch, step, stay)
    done = step > opens
    assert namespace_answers(mem, "new" if done else "old") == before
    unseen(mem, "old" if done else "new")
    assert states(mem) == (
        {"new": None, "old": "emptying"} if done else {"new": "filling", "old": None if stay else "moving"}
    )
    if not stay:
        with pytest.raises(semmem.StoreUnavailable, match=REFUSED):
            mem.remember("New.", namespace="old")
    if way == "again":
        assert moved(mem, stay) == 70
        assert namespace_answers(mem, "new") == before
    else:
        assert mem.maintain()["moves"] == (1 if done or stay else 2)
        assert "moves" not in mem.maintain()
        assert namespace_answers(mem, "new" if done else "old") == before
        assert states(mem) == {"new" if done else "old": None}
    check(mem)
    mem.remember("Owl 97 came late.", id="late", namespace="old")
    mem.remember("Owl 98 came late.", id="late", namespace="new")
    assert (mem.get("late", namespace="old").text, mem.get("late", namespace="new").text) == (
        "Owl 97 came late.", "Owl 98 came late.",
    )  # fmt: skip
    check(mem)


def test_an_unfinished_rename_is_no_obstacle_to_another_name_and_a_rebuild_ends_it(
    mem: Semmem, monkeypatch: pytest.MonkeyPatch
) -> None:
    full(mem, "old")
    before = namespace_answers(mem, "old")
    killed(mem, monkeypatch, 9, stay=False)
    assert mem.rename_namespace("old", "third") == 70
    assert namespace_answers(mem, "third") == before
    mem.rename_namespace("third", "old")
    killed(mem, monkeypatch, 9, stay=False)
    mem.rebuild()
    assert states(mem) == {"old": None}
    check(mem)


def test_where_a_move_fails_everything_is_as_it_was(mem: Semmem, monkeypatch: pytest.MonkeyPatch) -> None:
    full(mem, "old")
    before = namespace_answers(mem, "old")

    def fail() -> None:
        raise RuntimeError("The disk is full.")

    for stay in (False, True):
        with monkeypatch.context() as patch:
            at(patch, 12, fail)
            with pytest.raises(RuntimeError, match="disk"):
                moved(mem, stay)
        assert states(mem) == {"old": None}
        assert sql(mem, "SELECT count(*) FROM memory WHERE namespace = 'new'") == [(0,)]
    assert namespace_answers(mem, "old") == before
    check(mem)


@pytest.mark.nodes
def test_a_process_whose_lock_is_lost_deletes_nothing_that_others_have_written_since(
    mem: Semmem, monkeypatch: pytest.MonkeyPatch
) -> None:
    full(mem, "old")
    before = namespace_answers(mem, "old")

    def lose() -> None:
        sql(
            mem,
            "SELECT pg_terminate_backend(l.pid, 30000) FROM pg_locks l JOIN pg_database d ON d.oid = l.database "
            "WHERE l.locktype = 'advisory' AND d.datname = current_database()",
        )
        assert mem.maintain()["moves"] == 1
        mem.remember("Owl 97 came late.", id="late", namespace="old")

    number = steps(mem, monkeypatch, stay=False).index("_open") + 3
    with monkeypatch.context() as patch:
        at(patch, number, lose)
        with pytest.raises(semmem.StoreUnavailable, match="connection to the database server was lost"):
            moved(mem, stay=False)
    assert namespace_answers(mem, "new") == before
    assert mem.get("late", namespace="old").text == "Owl 97 came late."
    assert states(mem) == {"new": None, "old": None}
    check(mem)


def test_of_two_renames_to_one_name_one_is_done_and_the_other_is_a_conflict(mem: Semmem) -> None:
    for name in ("one", "two"):
        mem.remember_many([{"id": f"{name}{n}", "text": f"Owl {n} of {name}."} for n in range(50)], namespace=name)
    began = threading.Barrier(2, timeout=60)

    def rename(name: str) -> str | None:
        began.wait()
        try:
            mem.rename_namespace(name, "new")
        except semmem.Conflict as error:
            return str(error)
        return None

    with ThreadPoolExecutor(2) as pool:
        said = dict(zip(("one", "two"), pool.map(rename, ("one", "two")), strict=True))
    (done,) = (name for name, words in said.items() if words is None)
    (other,) = (name for name, words in said.items() if words is not None)
    assert "'new'" in (said[other] or "")
    assert {one.name: one.memories for one in mem.namespaces()} == {"new": 50, other: 50}
    assert all(m.id.startswith(done) for m in mem.list(namespace="new"))
    check(mem)


def test_the_changes_of_a_copy_name_a_memory_of_several_parts_once(mem: Semmem) -> None:
    text = " ".join(f"Sentence number {n} is here." for n in range(100))
    mem.remember(text, id="long", namespace="old")
    assert mem.stats(namespace="old").parts > 1
    assert moved(mem, stay=True) == 1
    assert [one.id for one in mem.changes(namespace="new")] == ["long"]
