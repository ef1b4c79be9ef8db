"""Recalls from a real streaming standby: a process always finds what it has written, however far the standby lags."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

import semmem
from semmem.client.memory import Semmem
from semmem.interfaces.http.metrics import Metrics
from semmem.model.errors import InvalidInput, StoreUnavailable
from semmem.stores.postgres import forget
from semmem.stores.postgres import standby as reading
from semmem.stores.resident.loading import load
from tests.patience import PATIENCE_S
from tests.stores.postgres import own_server
from tests.stores.postgres.own_server import Own
from tests.stores.postgres.standby.standing_by import catch_up, pause, resume, standby_of
from tests.waiting import until

NOTE = "Ada Lovelace keeps the key behind the radio."


def database(url: str) -> str:
    return url.rpartition("/")[2]


def connect(url: str, standby: Own, *, patience_s: float = PATIENCE_S, **options: Any) -> Semmem:
    """Open a store whose recalls a standby answers, which has ``patience_s`` to give a connection."""
    options = {"read_wait_s": 60.0, "embedder": "hashing", "count_accesses": False, **options}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reading, "_PATIENCE_S", patience_s)
        return semmem.connect(url, read_url=standby.url(database(url), "ada"), **options)


def counts(mem: Semmem) -> tuple[int, int]:
    """Return how many recalls the standby and the primary were asked."""
    source = mem._here.reader
    assert isinstance(source, reading.FromStandby)
    return source.counts["standby"], source.counts["primary"]


def found(mem: Semmem, question: str = "Where is the key?") -> list[str]:
    result = mem.recall(question)
    assert result.degraded == {}
    return [hit.id for hit in result]


@pytest.fixture
def mem(url: str, standby: Own) -> Iterator[Semmem]:
    """A store whose recalls a standby answers, however long it takes."""
    with connect(url, standby) as mem:
        yield mem


def test_a_recall_from_a_standby_finds_each_write_of_its_process_at_once(mem: Semmem) -> None:
    for n in range(10):
        mem.remember(f"The heron number {n} stands in the reeds.", id=f"h{n}")
        assert found(mem, f"heron number {n}")[0] == f"h{n}"
        mem.update(f"h{n}", text=f"The kestrel number {n} sits on the wall.")
        assert mem.recall(f"kestrel number {n}")[0].memory.text == f"The kestrel number {n} sits on the wall."
    mem.forget("h9")
    assert "h9" not in found(mem, "kestrel number 9")
    assert counts(mem) == (21, 0)


def test_a_standby_gives_the_hits_scores_and_explanations_of_the_primary_from_the_database_and_from_memory(
    mem: Semmem, url: str
) -> None:
    items = [
        {"text": f"Note {n}: Ada Lovelace met owl {n % 7} near the quay.", "id": f"m{n}", "session": f"s{n % 5}",
         "position": n, "author": f"Author {n % 3}", "tags": [f"t{n % 4}"], "title": f"Owl {n}" if n % 9 == 0 else None}
        for n in range(60)
    ]  # fmt: skip
    mem.remember_many(items)
    with semmem.connect(url, embedder="hashing", count_accesses=False) as primary:

        def answers(of: Semmem) -> list[Any]:
            results = [of.recall("Which owl did Ada Lovelace meet?", filters=f) for f in ({}, {"tags": ["t1"]})]
            assert [result.degraded for result in results] == [{}, {}]
            said = [[(hit.id, hit.score, hit.memory, dict(hit.components)) for hit in one] for one in results]
            return [*said, str(results[0].explain("m9")), str(results[0].reach)]

        for _ in range(4):  # the second recall loads the namespace into memory
            assert answers(mem) == answers(primary)
        assert mem.resident.keys() == {"default"}
    assert counts(mem) == (8, 0)


@pytest.mark.slow
def test_while_a_standby_lags_the_primary_answers_and_afterwards_the_standby_again(
    standby: Own, mem: Semmem, monkeypatch: pytest.MonkeyPatch
) -> None:
    mem.remember(NOTE, id="key")
    assert (found(mem), counts(mem)) == (["key"], (1, 0))
    pause(standby)
    with monkeypatch.context() as impatient:
        impatient.setattr(mem._here.reader, "_wait_s", 0.05)
        mem.remember("Another key is under the mat.", id="mat")
        assert (set(found(mem)), counts(mem)) == ({"key", "mat"}, (1, 1))
    assert (set(found(mem)), counts(mem)) == ({"key", "mat"}, (1, 2))  # it is not waited for again so soon
    resume(standby)
    monkeypatch.setattr(reading, "_REST_S", 0.0)
    assert (set(found(mem)), counts(mem)) == ({"key", "mat"}, (2, 2))
    page = Metrics(mem).as_text()[0].decode().splitlines()
    assert "semmem_recalls_from_standby_total 2.0" in page
    assert "semmem_recalls_from_primary_total 2.0" in page


def test_the_writes_of_other_processes_are_found_once_the_standby_has_them(own: Own, standby: Own, url: str) -> None:
    with connect(url, standby) as mem, semmem.connect(url, embedder="hashing") as other:
        mem.remember(NOTE, id="key")
        assert found(mem) == ["key"]
        pause(standby)
        other.remember("Another key is under the mat.", id="mat")
        assert found(mem) == ["key"]
        assert counts(mem) == (2, 0)  # this process has written nothing since
        resume(standby)
        catch_up(own, standby)
        assert set(found(mem)) == {"key", "mat"}


@pytest.mark.slow
def test_a_standby_that_replays_nothing_does_not_keep_what_another_process_forgot(
    standby: Own, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with connect(url, standby) as mem, semmem.connect(url, embedder="hashing") as other:
        mem.remember(NOTE, id="key")
        assert found(mem) == ["key"]
        pause(standby)
        other.forget("key", hard=True)
        assert (found(mem), counts(mem)) == (["key"], (2, 0))
        monkeypatch.setattr(reading, "_TRUST_S", 0.0)  # its seconds are over
        monkeypatch.setattr(mem._here.reader, "_wait_s", 0.05)
        assert (found(mem), counts(mem)) == ([], (2, 1))


@pytest.mark.slow
def test_threads_that_write_and_recall_while_the_lag_comes_and_goes_find_all_they_wrote(standby: Own, url: str) -> None:
    wrong: list[str] = []
    over = threading.Event()

    def lag() -> None:
        while not over.wait(0.05):
            pause(standby)
            over.wait(0.1)
            resume(standby)

    with connect(url, standby, read_wait_s=0.05) as mem:

        def work(own_name: str) -> None:
            for n in range(12):
                mem.remember(f"{own_name} has seen the comet number {n}.", id=f"{own_name}{n}", namespace=own_name)
                hits = mem.recall(f"comet number {n}", namespace=own_name, limit=20)
                missing = {f"{own_name}{m}" for m in range(n + 1)} - {hit.id for hit in hits}
                wrong.extend(sorted(missing))

        toggling = threading.Thread(target=lag)
        threads = [threading.Thread(target=work, args=(name,)) for name in ("ada", "bob", "cyd")]
        for thread in (toggling, *threads):
            thread.start()
        for thread in threads:
            thread.join()
        over.set()
        toggling.join()
        assert wrong == []
        assert sum(counts(mem)) == 36


def test_a_recall_of_an_earlier_time_asks_the_primary(mem: Semmem) -> None:
    memory = mem.remember(NOTE, id="key")
    assert memory.created_at is not None
    assert [hit.id for hit in mem.recall("the key", as_of=memory.updated_at)] == ["key"]
    assert counts(mem) == (0, 1)


@pytest.mark.slow
def test_a_log_that_ends_with_a_segment_is_not_waited_for(own: Own, standby: Own, url: str) -> None:
    with connect(url, standby) as mem:
        mem.remember(NOTE, id="key")
        for _ in range(3):
            own.sql("SELECT pg_switch_wal()")
            mem.stats()  # this process has looked since
            assert found(mem) == ["key"]
        assert counts(mem) == (3, 0)


def test_a_namespace_is_found_by_its_new_name_at_once(mem: Semmem) -> None:
    mem.remember(NOTE, id="key", namespace="old")
    assert [hit.id for hit in mem.recall("the key", namespace="old")] == ["key"]
    mem.rename_namespace("old", "new")
    assert [hit.id for hit in mem.recall("the key", namespace="new")] == ["key"]
    assert counts(mem) == (2, 0)


# ---------------------------------------------------------------------- a standby that fails


@pytest.mark.slow
def test_while_a_standby_is_down_the_primary_answers(
    own: Own, standby: Own, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with connect(url, standby, patience_s=2.0) as mem:
        mem.remember(NOTE, id="key")
        assert (found(mem), counts(mem)) == (["key"], (1, 0))
        standby.stop()
        try:
            assert (found(mem), found(mem), counts(mem)) == (["key"], ["key"], (1, 2))
            source = mem._here.reader
            assert isinstance(source, reading.FromStandby)
            assert load(source._standby, "default", 1 << 30, 1 << 30) is None  # and the thread that loads goes on
        finally:
            standby.start()
        monkeypatch.setattr(reading, "_REST_S", 0.0)
        catch_up(own, standby)
        assert (found(mem), counts(mem)) == (["key"], (2, 2))


@pytest.mark.slow
def test_a_recall_during_which_the_standby_goes_down_begins_again_on_the_primary(
    own: Own, standby: Own, url: str
) -> None:
    stopped: list[bool] = []

    class Stops:
        """A leg that finds nothing, and stops the standby when it is asked for the first time."""

        name = "stops"

        def search(
            self, query: str, *, limit: int = 10, offset: int = 0, filters: object = None
        ) -> tuple[list[Any], int]:
            if not stopped:
                standby.stop()
                stopped.append(True)
            return [], 0

    recipe = semmem.recipe(
        "lexical", weights={"stops": 1.0}, rank_constants={"stops": 60}, timeouts={"stops": 60.0}
    )  # fmt: skip
    legs = {"stops": lambda reader: Stops()}
    with connect(url, standby, patience_s=2.0, legs=legs, recipe=recipe) as mem:
        mem.remember(NOTE, id="key")
        try:
            result = mem.recall("Where is the key?")
            assert ([hit.id for hit in result], result.degraded) == (["key"], {})
            assert (counts(mem), stopped) == ((1, 1), [True])
        finally:
            if stopped:
                standby.start()


def test_a_standby_answers_while_the_primary_is_down(
    own: Own, standby: Own, mem: Semmem, monkeypatch: pytest.MonkeyPatch
) -> None:
    mem.remember(NOTE, id="key")
    assert found(mem) == ["key"]
    own.stop()
    try:
        assert (found(mem), counts(mem)) == (["key"], (2, 0))
        monkeypatch.setattr(reading, "_TRUST_S", 0.0)  # it cannot be asked again
        assert (found(mem), found(mem), counts(mem)) == (["key"], ["key"], (4, 0))
    finally:
        own.start()


@pytest.mark.slow
def test_a_standby_that_was_promoted_is_not_asked_any_more(url: str, own: Own, monkeypatch: pytest.MonkeyPatch) -> None:
    another = standby_of(own)
    try:
        with connect(url, another) as mem:
            mem.remember(NOTE, id="key")
            assert (found(mem), counts(mem)) == (["key"], (1, 0))
            another.sql("SELECT pg_promote()")
            with monkeypatch.context() as later:
                later.setattr(reading, "_TRUST_S", 0.0)  # this process has used the primary for nothing meanwhile
                later.setattr(mem._here.reader, "_wait_s", 0.0)  # it never comes
                assert (found(mem), counts(mem)) == (["key"], (1, 1))
            mem.remember("Another key is under the mat.", id="mat")
            mem._here.reader._wait_s = 0.0  # type: ignore[attr-defined]  # it never comes
            assert (set(found(mem)), counts(mem)) == ({"key", "mat"}, (1, 2))
        with pytest.raises(
            InvalidInput, match=r"^The read_url names a server that is no standby, which could lack what"
        ):
            connect(url, another)
    finally:
        own_server.unmake(another)


@pytest.mark.slow
def test_a_standby_of_a_server_that_was_promoted_does_not_answer_for_the_former_primary(url: str, own: Own) -> None:
    promoted = standby_of(own)
    servers = [promoted]
    try:
        promoted.sql("SELECT pg_promote()")
        servers.append(of_it := standby_of(promoted))
        for _ in range(3):  # its log is ahead of the former primary's
            promoted.sql("SELECT pg_switch_wal()")
            promoted.sql("CHECKPOINT")
        catch_up(promoted, of_it)
        with connect(url, of_it, read_wait_s=0.05) as mem:
            mem.remember(NOTE, id="key")
            assert (found(mem), counts(mem)) == (["key"], (0, 1))
    finally:
        for server in reversed(servers):
            own_server.unmake(server)


# ---------------------------------------------------------------------- a URL that is none of a standby


@pytest.mark.slow
def test_a_server_that_is_no_standby_of_the_store_is_refused_in_one_sentence(own: Own, standby: Own, url: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        semmem.connect(url, read_url=url, embedder="hashing")
    assert str(caught.value) == (
        "The read_url names a server that is no standby, which could lack what this process writes; name a standby "
        "of the store's server, or leave it out."
    )
    elsewhere = own.database()
    catch_up(own, standby)
    with pytest.raises(InvalidInput) as caught:
        semmem.connect(url, read_url=standby.url(elsewhere, "ada"), embedder="hashing")
    assert str(caught.value) == (
        "The read_url names a standby of another server, or another database, than the url; name this database on a "
        "standby of its own server."
    )


def test_a_user_who_may_not_read_is_refused_and_one_who_may_only_read_will_do(
    own: Own, standby: Own, url: str, mem: Semmem
) -> None:
    mem.remember(NOTE, id="key")
    catch_up(own, standby)
    guest = standby.url(database(url), "guest")
    with pytest.raises(InvalidInput) as caught:
        semmem.connect(url, read_url=guest, embedder="hashing")
    assert str(caught.value) == (
        "The user guest of the read_url may not read semmem's tables; let their owner grant it USAGE on the schema "
        "semmem and SELECT on its tables."
    )
    own.sql("GRANT USAGE ON SCHEMA semmem TO guest", database(url))
    own.sql("GRANT SELECT ON ALL TABLES IN SCHEMA semmem TO guest", database(url))
    catch_up(own, standby)
    with semmem.connect(url, read_url=guest, embedder="hashing", count_accesses=False, read_wait_s=60.0) as reads:
        assert (found(reads), counts(reads)) == (["key"], (1, 0))


def test_a_read_url_for_another_kind_of_store_is_refused_in_one_sentence(tmp_path: Path, url: str) -> None:
    sentence = (
        "The read_url is for a store on a PostgreSQL server of your own and must be the postgresql:// URL of a standby "
        "of that server; correct it, or leave it out."
    )
    for store, read in ((f"sqlite://{tmp_path}/notes.db", url), (url, f"sqlite://{tmp_path}/notes.db")):
        with pytest.raises(InvalidInput) as caught:
            semmem.connect(store, read_url=read, embedder="none")
        assert str(caught.value) == sentence


@pytest.mark.slow
def test_a_standby_that_does_not_answer_at_connect_is_warned_of_and_the_primary_answers(url: str) -> None:
    absent = url.replace(url.rpartition(":")[2].partition("/")[0], "1")
    with pytest.warns(UserWarning, match=r"^The standby does not answer, so recalls ask the primary until it does: No"):
        mem = semmem.connect(url, read_url=absent, embedder="hashing")
    with mem, warnings.catch_warnings():
        mem.remember(NOTE, id="key")
        assert (found(mem), counts(mem)) == (["key"], (0, 1))


@pytest.mark.slow
def test_a_hard_forget_fails_while_a_standby_keeps_an_earlier_state_of_the_primary(
    own: Own, standby: Own, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forget, "_SNAPSHOT_PATIENCE_S", 0.0)
    settings = {"hot_standby_feedback": "on", "wal_receiver_status_interval": "1"}
    for name, value in settings.items():
        standby.sql(f"ALTER SYSTEM SET {name} = {value}")
    standby.sql("SELECT pg_reload_conf()")
    try:
        with connect(url, standby) as mem, psycopg.connect(standby.url(database(url))) as reader:
            mem.remember("The key is behind the radio.", id="key")
            catch_up(own, standby)
            reader.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
            reader.execute("SELECT 1")
            fed = "SELECT count(*) FROM pg_stat_replication WHERE backend_xmin IS NOT NULL"
            until(lambda: own.sql(fed) == [(1,)])
            with pytest.raises(StoreUnavailable, match="keeps an earlier state of this store"):
                mem.forget("key", hard=True)
            reader.rollback()
            monkeypatch.setattr(forget, "_SNAPSHOT_PATIENCE_S", 60.0)
            with pytest.raises(semmem.NotFound):
                mem.forget("key", hard=True)
    finally:
        for name in settings:
            standby.sql(f"ALTER SYSTEM RESET {name}")
        standby.sql("SELECT pg_reload_conf()")
