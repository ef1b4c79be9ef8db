"""Everything derived is made anew while others read and write, and goes on where it was interrupted."""

from __future__ import annotations

import random
import shlex
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import semmem
from semmem.client.memory import Semmem
from semmem.doors.cli.app import run
from semmem.embedders.hashing import Hashing
from semmem.extractors import Rules
from semmem.stores.postgres import connection, nearest, vectors
from semmem.write import rebuild, relink
from tests.stores.audit import check, sql
from tests.stores.test_graph_hash import emptied

WORDS = ["ferry", "harbour", "tide", "mast", "sail", "rope", "anchor", "crew", "dawn", "storm", "chart", "engine"]


class Other(Hashing):
    """The hashing embedder under another name, its numbers in other places, and if asked for in more dimensions.

    ``hook`` is called with the number of the call, from 1, before texts are embedded.
    """

    def __init__(self, name: str = "other", more: int = 0, hook: Callable[[int], None] | None = None) -> None:
        self.name, self.fingerprint, self.dimensions = name, f"{name}-1", 256 + more
        self.seen: list[str] = []
        self.calls, self.hook = 0, hook

    def embed(self, texts: Sequence[str]) -> Any:
        self.calls += 1
        if self.hook is not None:
            self.hook(self.calls)
        self.seen += texts
        return np.pad(Hashing().embed(texts)[:, ::-1], ((0, 0), (0, self.dimensions - 256)))


def notes(count: int, start: int = 0) -> list[dict[str, Any]]:
    return [
        {"id": f"m{n:03}", "text": f"{WORDS[n % 12]} {WORDS[n % 7]} note {n}", "created_at": "2026-01-31"}
        for n in range(start, start + count)
    ]


@pytest.fixture(autouse=True)
def _small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rebuild, "BATCH", 20)


@pytest.fixture
def mem(store_url: str) -> Iterator[Semmem]:
    with semmem.connect(store_url, embedder="hashing", pool_size=4) as opened:
        opened.remember_many(notes(100))
        yield opened


def filled_by(mem: Semmem, embedder: Other) -> None:
    """Prove that every memory has its vector of ``embedder`` and that nothing of a rebuild is left."""
    check(mem)
    held = sql(
        mem, "SELECT m.text, e.vector::text FROM embedding e JOIN memory m USING (namespace, ord) ORDER BY m.text"
    )
    wanted = Other(embedder.name, embedder.dimensions - 256).embed([text for text, _ in held])
    found = np.array([np.fromstring(vector[1:-1], sep=",") for _, vector in held])
    assert found.shape == wanted.shape
    assert np.abs(found - wanted).max() < 1e-6
    assert sql(mem, "SELECT count(*) FROM embedding_next") == [(0,)]
    assert [key for (key,) in sql(mem, "SELECT key FROM meta ORDER BY key")] == ["embedder"]
    assert mem.stats().embedder == embedder.name


class Reading(threading.Thread):
    """Recalls all the time and keeps what was degraded, what went wrong, and how many hits had no dense part."""

    def __init__(self, mem: Semmem) -> None:
        super().__init__(daemon=True)
        self.mem, self.over = mem, threading.Event()
        self.answers, self.degraded, self.errors = 0, Counter[str](), list[str]()
        self.start()

    def run(self) -> None:
        while not self.over.is_set():
            try:
                found = self.mem.recall("ferry note 7", recipe="hybrid", limit=5)
                self.degraded.update(found.degraded.values())
                if not found.degraded:
                    assert "dense" in found.candidates.rankings
                    assert len(found.candidates.rankings["dense"]) >= 100
                assert len(found) == 5
                self.answers += 1
                time.sleep(0.01)
            except BaseException as error:
                self.errors.append(repr(error))

    def stop(self) -> None:
        self.over.set()
        self.join(60)


# ---------------------------------------------------------------------- readers go on


@pytest.mark.parametrize("more", [0, 100], ids=["the same dimensions", "more dimensions"])
def test_readers_go_on_with_every_leg_while_another_embedder_takes_over(mem: Semmem, store_url: str, more: int) -> None:
    with semmem.connect(store_url, embedder="hashing", pool_size=2) as elsewhere:
        counts: list[tuple[int, int]] = []
        degraded: list[dict[str, int]] = []
        here, there = Reading(mem), Reading(elsewhere)

        def wait(call: int) -> None:
            if threading.current_thread() is not threading.main_thread():
                return  # a question, after the swap
            while counts and min(here.answers - counts[-1][0], there.answers - counts[-1][1]) < 2:
                time.sleep(0.005)  # at each of five batches both readers have answered since the last
            counts.append((here.answers, there.answers))
            degraded.append(dict(there.degraded))

        other = Other(more=more, hook=wait)
        try:
            assert mem.rebuild(embedder=other) == semmem.Rebuilt(embedded=100)
            last = here.answers
            while here.answers < last + 3 or not there.degraded:
                time.sleep(0.005)
        finally:
            here.stop()
            there.stop()
        assert (here.errors, there.errors) == ([], [])
        assert here.degraded == {}
        assert len(there.degraded) == 1
        (reason,) = there.degraded
        assert f"filled by other ({256 + more} dimensions) now" in reason
        assert "call semmem.connect() again" in reason
        assert degraded == 5 * [{}]  # nobody had taken over yet
        assert elsewhere.recall("ferry note 7")[0].memory.id  # the other legs answer
    filled_by(mem, other)
    with semmem.connect(store_url, embedder=Other(more=more)) as again:
        assert again.recall("ferry note 7").degraded == {}


def test_a_conversation_is_not_compared_with_the_vectors_of_another_model(store_url: str) -> None:
    with (
        semmem.connect(store_url, embedder="hashing") as old,
        semmem.connect(store_url, embedder="none") as rebuilding,
    ):
        turns = [{"text": f"{WORDS[n]} and {WORDS[n + 1]}", "session": "s", "author": "Ada"} for n in range(8)]
        old.remember_many(turns)
        assert old.recall("what did Ada say of the tide?").degraded == {}
        vector = old._recaller._vectors.embedded("tide")
        ords = [ord for (ord,) in sql(old, "SELECT ord FROM memory")]
        assert len(old.store.vectors.vectors_of(["default"], ords, vector)[0]) == 8
        rebuilding.rebuild(embedder=Other())
        for ask in (old.store.vectors.vectors_of, old.store.vectors.similarities):
            with pytest.raises(semmem.EmbedderReplaced, match="filled by other"):
                ask(["default"], ords, vector)
        assert "connect() again" in old.recall("what did Ada say of the tide?").degraded["dense"]
        given_ = old.recall("tide", recipe="dense", vector=np.ones(256)).degraded
        assert given_ == {}  # given now, for what fills the store now


def test_a_vector_given_before_another_embedder_took_over_is_not_compared_with_the_new_ones(store_url: str) -> None:
    with semmem.connect(store_url, embedder="none") as mem, semmem.connect(store_url, embedder="none") as rebuilding:
        mem.remember("tea", vector=[0.6, 0.8])
        assert mem.recall("tea", vector=[0.6, 0.8]).degraded == {}
        rebuilding.rebuild(embedder=Other())
        assert "filled by other" in mem.recall("tea", vector=[0.6, 0.8]).degraded["dense"]
        with pytest.raises(semmem.EmbedderMismatch, match="filled by other"):
            mem.remember("rum", vector=[0.6, 0.8])


@pytest.mark.parametrize("more", [0, 3], ids=["the same dimensions", "more dimensions"])
def test_vectors_may_be_given_on_after_ones_own_rebuild_with_another_embedder(mem: Semmem, more: int) -> None:
    query = "ferry note 7"
    for embedder in (Hashing(), Other(more=more), Other("third", more=more)):
        if embedder.name != "hashing":
            mem.rebuild(embedder=embedder)
        for _ in range(2):
            given_ = mem.recall(query, recipe="dense", vector=embedder.embed([query])[0])
            made = mem.recall(query, recipe="dense")
            assert given_.degraded == made.degraded == {}
            scores = [list(found.candidates.raw["dense"]) for found in (given_, made)]
            assert scores[0] == pytest.approx(scores[1], abs=1e-5)


# ---------------------------------------------------------------------- interrupted

PROGRAM = """
import sys, time
from semmem.write import rebuild
from tests.write.test_rebuild import Other, semmem
rebuild.BATCH = 20
url, log = sys.argv[1], open(sys.argv[2], "a")

class Logged(Other):
    def embed(self, texts):
        log.write("".join(t + "\\n" for t in texts))
        log.flush()
        if self.calls == 2:
            print("two batches are done", flush=True)
            time.sleep(100)
        return super().embed(texts)

semmem.connect(url, embedder="hashing", pool_size=2).rebuild(embedder=Logged(more=3))
"""


def test_a_process_that_is_killed_has_done_at_most_one_batch_in_vain(
    mem: Semmem, store_url: str, tmp_path: Path
) -> None:
    log = tmp_path / "embedded"
    killed = subprocess.Popen([sys.executable, "-c", PROGRAM, store_url, str(log)], stdout=subprocess.PIPE, text=True)
    assert killed.stdout is not None
    assert killed.stdout.readline() == "two batches are done\n"
    killed.kill()
    killed.wait()
    killed.stdout.close()
    before = log.read_text().splitlines()
    assert len(before) == 60  # the third batch was under way
    assert mem.stats().embedder == "hashing"
    assert mem.recall("ferry note 7").degraded == {}
    other = Other(more=3)
    seen: list[int] = []
    assert mem.rebuild(embedder=other, progress=seen.append) == semmem.Rebuilt(embedded=60, kept=40)
    assert seen == [60, 80, 100]
    assert max(Counter(before + other.seen).values()) == 2
    assert sorted(set(before) & set(other.seen)) == sorted(before[40:])
    filled_by(mem, other)


def test_another_embedder_than_the_interrupted_one_begins_anew_and_says_so(mem: Semmem) -> None:
    def stop(call: int) -> None:
        if call == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        mem.rebuild(embedder=Other("first", more=1, hook=stop))
    assert sql(mem, "SELECT count(*) FROM embedding_next") == [(40,)]
    second = Other("second")
    assert mem.rebuild(embedder=second) == semmem.Rebuilt(embedded=100, dropped="first")
    filled_by(mem, second)
    with pytest.raises(KeyboardInterrupt):
        mem.rebuild(embedder=Other("third", hook=stop))
    assert mem.rebuild(embedder=second) == semmem.Rebuilt(dropped="third")  # it fills the store already
    filled_by(mem, second)


def test_the_doctor_counts_every_missing_vector_and_tells_of_a_rebuild_that_is_half_done(
    mem: Semmem, store_url: str, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def found() -> dict[str, tuple[str, str]]:
        capfd.readouterr()
        run(["doctor", "--json", "--url", store_url])
        return {f["what"]: (f["detail"], f["mend"]) for f in semmem_json(capfd)["findings"]}

    with semmem.connect(store_url, embedder="none") as bare:
        bare.remember("a long text of many parts " * 300, id="long")
        bare.remember("short", id="short")
        parts = bare.stats().parts
    assert parts >= 4  # each of which lacks its vector
    assert mem.store.vectors.count_missing() == parts + 1
    assert found()["vectors"] == (
        f"the dense leg does not know {parts + 1} of the texts: they were stored without an embedder",
        "semmem rebuild",
    )
    assert mem.rebuild().embedded == parts + 1
    assert mem.store.vectors.unfinished_rebuilds() == {}
    assert "rebuild" not in found()

    def stop(done: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        mem.rebuild(embedder=Other(), progress=stop)
    assert mem.store.vectors.unfinished_rebuilds() == {"vectors": ("other", 20)}
    with pytest.raises(KeyboardInterrupt):
        mem.rebuild(extract=True, progress=stop)
    assert mem.store.vectors.unfinished_rebuilds() == {"vectors": ("other", 20), "concepts": ("rules", 101 + parts)}
    assert found()["rebuild"][1] == "semmem rebuild --extract"


def test_two_rebuilds_at_once_are_refused(mem: Semmem, store_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "_OTHERS_PATIENCE", 0.1)
    with semmem.connect(store_url, embedder="none") as second:

        def meanwhile(call: int) -> None:
            for how in ({"embedder": "hashing"}, {"extract": True}):
                with pytest.raises(semmem.Conflict, match="Another process rebuilds this store"):
                    second.rebuild(**how)

        mem.rebuild(embedder=Other(hook=meanwhile))
        assert second.rebuild(extract=True).read == 100


# ---------------------------------------------------------------------- writers go on


def test_what_is_written_and_forgotten_meanwhile_is_caught_up_with(mem: Semmem, store_url: str) -> None:
    with semmem.connect(store_url, embedder="hashing", pool_size=2) as elsewhere:

        def meanwhile(call: int) -> None:
            if call == 2:  # one whose new vector is made, and one whose is not
                assert elsewhere.forget("m003") == elsewhere.forget("m090") == 1
                elsewhere.remember("a long text " * 300, id="parts")
            if call == 6:  # the first time round is over: more than may be made while writers wait
                elsewhere.remember_many(notes(70, 100))
            if call == 10:
                elsewhere.forget(filters={"created_before": "2026-02-01"}, namespace="default", dry_run=True)
                elsewhere.remember_many(notes(5, 200))
                mem.remember("last", id="last")

        other = Other(more=1, hook=meanwhile)
        done = mem.rebuild(embedder=other)
        assert other.calls >= 10
        parts = mem.stats().parts
        assert done.embedded == 99 + parts + 70 + 5 + 1  # m003 once in vain, m090 never
    filled_by(mem, other)
    with pytest.raises(semmem.NotFound):
        mem.get("m003")


@pytest.mark.parametrize("more", [0, 5])
def test_a_writer_of_the_old_embedder_is_refused_whole_after_the_swap(mem: Semmem, store_url: str, more: int) -> None:
    with semmem.connect(store_url, embedder="none") as rebuilding:
        other = Other(more=more)
        rebuilding.rebuild(embedder=other)
        for write in (lambda: mem.remember("late", id="late"), lambda: mem.remember_many(notes(80, 300))):
            with pytest.raises(semmem.EmbedderReplaced, match=r"filled by other .* of hashing \(256 dim.* connect"):
                write()
        with pytest.raises(semmem.EmbedderReplaced):
            mem.store.vectors.add_vectors([("default", 1, np.ones(256))], {"name": "hashing", "dimensions": 256})
        assert mem.stats().memories == 100
        filled_by(rebuilding, other)
        rebuilding.remember("late", id="late")
        filled_by(rebuilding, other)


def test_a_swap_between_embedding_and_writing_is_seen_in_the_transaction(mem: Semmem, store_url: str) -> None:
    other = Other()
    with semmem.connect(store_url, embedder="none") as rebuilding:
        slow = Other("old", hook=lambda call: rebuilding.rebuild(embedder=other) if call == armed else None)
        armed = 0
        rebuilding.rebuild(embedder=slow)
        with semmem.connect(store_url, embedder=slow) as writer:
            armed = slow.calls + 1
            with pytest.raises(semmem.EmbedderReplaced, match="filled by other"):
                writer.remember("in between", id="late")
        assert rebuilding.stats().memories == 100
        filled_by(rebuilding, other)


def test_a_semmem_that_rebuilds_itself_writes_on_with_the_new_embedder(mem: Semmem) -> None:
    other, old = Other(more=2), Other("old", hook=lambda call: mem.rebuild(embedder=other) and None if armed else None)
    armed = False
    mem.rebuild(embedder=old)
    armed = True
    mem.remember("in between", id="late")
    assert "late" in [hit.memory.id for hit in mem.recall("in between", recipe="dense")]
    filled_by(mem, other)


def test_the_tables_change_places_only_when_nobody_is_at_work_in_them(
    mem: Semmem, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vectors, "_PATIENCE", "50ms")
    monkeypatch.setattr(vectors, "_READERS_PATIENCE", "50ms")
    monkeypatch.setattr(vectors, "_TURNS", 2)
    other = Other()
    who = {"name": "other", "dimensions": 256, "fingerprint": "other-1"}
    mem.store.vectors.open_shadow(who)
    embed = lambda memories: other.embed([memory.text for memory in memories])  # noqa: E731
    assert mem.store.vectors.swap_shadow(who, embed, 99) is None  # 100 are missing
    with psycopg.connect(mem.store.url, options="-c search_path=semmem,public") as busy:
        busy.execute("DELETE FROM embedding WHERE false")
        assert mem.store.vectors.swap_shadow(who, embed, None) is None  # a writer
        busy.rollback()
        busy.execute("SELECT count(*) FROM embedding")
        assert mem.store.vectors.swap_shadow(who, embed, None) is None  # a reader, such as a backup
    assert mem.recall("ferry note 7").degraded == {}
    assert mem.store.vectors.swap_shadow(who, embed, 100) == 100
    filled_by(mem, other)
    with pytest.raises(semmem.EmbedderReplaced):
        mem.store.vectors.swap_shadow(who, embed, None)  # the shadow is nobody's now


def test_the_index_is_there_from_the_first_moment(mem: Semmem, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nearest, "INDEX_FROM", 50)
    mem.maintain()
    indexes = "SELECT indexname FROM pg_indexes WHERE tablename = 'embedding' ORDER BY 1"
    before = sql(mem, indexes)
    for other in (Other("one", more=7), Other("two")):
        mem.rebuild(embedder=other)
        assert sql(mem, indexes) == before == [("embedding_hnsw",), ("embedding_pkey",), ("embedding_rest",)]
        assert sql(mem, "SELECT count(*) FROM embedding WHERE indexed") == [(100,)]
        assert sql(mem, "SELECT count(*) FROM pg_indexes WHERE tablename = 'embedding_next'") == [(2,)]
        found = mem.recall("chart mast note 10", recipe="dense")
        assert (found[0].memory.id, found.degraded) == ("m010", {})
        filled_by(mem, other)
    assert mem.maintain()["indexed"] == 0


def test_maintenance_that_meets_a_swap_to_other_dimensions_indexes_the_new_vectors(
    mem: Semmem, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = mem.store.vectors.embedder()
    mem.rebuild(embedder=Other(more=5))
    monkeypatch.setattr(nearest, "INDEX_FROM", 50)
    now, asked = mem.store.vectors.embedder, iter([before])
    monkeypatch.setattr(
        mem.store.vectors, "embedder", lambda: next(asked, None) or now()
    )  # as maintain has read it before
    mem.maintain()
    assert sql(mem, "SELECT count(*) FROM pg_indexes WHERE indexname = 'embedding_hnsw'") == [(1,)]
    assert sql(mem, "SELECT count(*) FROM embedding WHERE indexed") == [(100,)]
    found = mem.recall("chart mast note 10", recipe="dense")
    assert (found[0].memory.id, found.degraded) == ("m010", {})


def test_an_index_that_cannot_be_built_leaves_the_connection_as_it_was(
    mem: Semmem, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nearest, "INDEX_FROM", 50)
    asked = "SELECT current_setting('maintenance_work_mem')"
    with mem.store.lasting() as connection:
        before = connection.execute(asked).fetchone()
        with pytest.raises(psycopg.errors.DataException, match="expected 7 dimensions, not 256"):
            nearest.index(connection, 7)
        assert connection.execute(asked).fetchone() == before
        assert before != ("512MB",)


# ---------------------------------------------------------------------- concepts


def people(count: int) -> list[dict[str, Any]]:
    names = ("Ada Lovelace", "Charles Babbage", "Mary Somerville", "Ada", "Lovelace")
    return [
        {"id": f"p{n}", "text": f"{names[n % 5]} met {names[(n * 3 + 1) % 5]} in {n}", "created_at": "2026-01-31",
         "title": names[n % 5] if n % 4 == 0 else None}
        for n in range(count)
    ]  # fmt: skip


class Nothing(Rules):
    """An extractor that finds the words and no name."""

    name = "nothing"

    def extract(self, text: str, title: str | None = None, known: Any = ()) -> Any:
        return super().extract(text.lower(), None, ())

    def subjects(self, text: str, title: str | None = None) -> set[int]:
        return set()


def test_reading_everything_again_goes_on_where_it_was_interrupted(
    store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(relink, "AT_ONCE", 10)
    with semmem.connect(store_url, embedder="none", extractor=Nothing()) as mem:
        for namespace in ("a", "b"):
            mem.remember_many(people(35), namespace=namespace)
        poor = mem.graph_hash(namespace="a")

    def until(most: int) -> Callable[[int], None]:
        def progress(done: int) -> None:
            if done >= most:
                raise KeyboardInterrupt

        return progress

    with semmem.connect(store_url, embedder="none") as mem:
        with pytest.raises(KeyboardInterrupt):
            mem.rebuild(extract=True, progress=until(20))
        found = mem.recall("Who met Babbage?", namespace=["a", "b"])
        assert found.degraded.keys() == {"dense"}
        mem.remember("The lovelace of the story.", id="late", namespace="a", title="Met", created_at="2026-01-31")
        with pytest.raises(KeyboardInterrupt):
            mem.rebuild(extract=True, progress=until(56))  # 36 in a, the first 20 in b
        seen: list[int] = []
        done = mem.rebuild(extract=True, progress=seen.append)
        assert (done.skipped, done.read, seen) == (56, 15, [66, 71])
        assert [key for (key,) in sql(mem, "SELECT key FROM meta")] == []
        mem.remember_many(people(35), namespace="fresh", batch_size=3)
        assert mem.graph_hash(namespace="b") != poor
        assert mem.graph_hash(namespace="b") == mem.graph_hash(namespace="fresh")
        mem.remember("The lovelace of the story.", id="late", namespace="fresh", title="Met", created_at="2026-01-31")
        mem.maintain()
        assert mem.graph_hash(namespace="a") == mem.graph_hash(namespace="fresh")
        with pytest.raises(KeyboardInterrupt):
            mem.rebuild(extract=True, progress=until(10))
    with semmem.connect(store_url, embedder="none", extractor=Nothing()) as mem:
        done = mem.rebuild(extract=True)
        assert (done.dropped, done.skipped, done.read) == ("rules", 0, 107)
        assert mem.graph_hash(namespace="b") == poor


@settings(max_examples=3, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 999), batch_size=st.integers(1, 9))
def test_the_same_memories_in_any_order_have_the_same_hash_after_a_rebuild(
    store_url: str, seed: int, batch_size: int
) -> None:
    items = people(20)
    shuffled = items.copy()
    random.Random(seed).shuffle(shuffled)
    with semmem.connect(emptied(store_url), embedder="none", extractor=Nothing(), pool_size=2) as mem:
        mem.remember_many(shuffled, namespace="one", batch_size=batch_size)
    with semmem.connect(store_url, embedder="none", pool_size=2) as mem:
        mem.remember_many(items, namespace="two")
        mem.maintain()
        fresh = mem.graph_hash(namespace="two")
        assert mem.graph_hash(namespace="one") != fresh
        assert mem.rebuild(extract=True).changed >= 20
        assert mem.graph_hash(namespace="one") == mem.graph_hash(namespace="two") == fresh


# ---------------------------------------------------------------------- on the command line


def test_the_command_tells_what_it_did_and_the_hash_of_each_namespace(
    store_url: str, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rebuild, "BATCH", 4)
    with semmem.connect(store_url, embedder=Other()) as mem:
        mem.remember_many(notes(10))
        mem.remember_many(people(5), namespace="another")
        mem.maintain()
        hashes = {name: mem.graph_hash(namespace=name) for name in ("another", "default")}
    embed, calls = Hashing.embed, list[int]()

    def interrupted(self: Hashing, texts: Sequence[str]) -> Any:
        calls.append(len(texts))
        if len(calls) == 3:
            raise KeyboardInterrupt
        return embed(self, texts)

    monkeypatch.setattr(Hashing, "embed", interrupted)
    monkeypatch.setenv("SEMMEM_URL", store_url)
    assert run(shlex.split("rebuild --embedder hashing")) == 130
    out, err = capfd.readouterr()
    assert (out, err) == ("", "Stopped. What was done so far (8) is kept: the same command goes on from there.\n")
    assert run(shlex.split("rebuild --embedder hashing")) == 0
    out, err = capfd.readouterr()
    assert out.splitlines() == [
        "Made 7 vectors with hashing. 8 were made by a call that was interrupted.",
        f"{hashes['another']}  another",
        f"{hashes['default']}  default",
    ]
    assert err == ""
    assert run(shlex.split("rebuild --extract --json")) == 0
    told = semmem_json(capfd)
    assert told == {"embedded": 0, "kept": 0, "dropped": None, "read": 15, "skipped": 0, "changed": 0,
                    "embedder": "hashing", "graph_hashes": hashes}  # fmt: skip
    assert list(told["graph_hashes"]) == ["another", "default"]
    assert run(shlex.split("rebuild --extract --embedder hashing")) == 2
    assert "one after the other" in capfd.readouterr().err


def semmem_json(capfd: pytest.CaptureFixture[str]) -> Any:
    import json

    return json.loads(capfd.readouterr().out)
