"""Vectors are made anew while others read and write, and the work goes on where it was interrupted."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import semmem
from semmem.client.memory import Semmem
from semmem.embedders.hashing import Hashing
from semmem.interfaces.cli.app import run
from semmem.stores.postgres import connection
from tests.stores.audit import sql
from tests.write.other_embedder import WORDS, Other, filled_by, semmem_json

pytestmark = pytest.mark.usefixtures("small_batches")


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


@pytest.mark.slow
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
        vector = old._here.recaller._vectors.embedded("tide")
        row_ids = [row_id for (row_id,) in sql(old, "SELECT ord FROM memory")]
        assert len(old.store.vectors.vectors_of(["default"], row_ids, vector)[0]) == 8
        rebuilding.rebuild(embedder=Other())
        for ask in (old.store.vectors.vectors_of, old.store.vectors.similarities):
            with pytest.raises(semmem.EmbedderReplaced, match="filled by other"):
                ask(["default"], row_ids, vector)
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


@pytest.mark.slow
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
import semmem
from tests.write.other_embedder import Other
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


@pytest.mark.nodes
@pytest.mark.slow
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


@pytest.mark.slow
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


@pytest.mark.slow
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
        f"the dense leg does not find {parts + 1} of the texts, which were stored without an embedder",
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
    assert mem.store.vectors.unfinished_rebuilds() == {"vectors": ("other", 20), "concepts": ("rules", 20)}
    assert found()["rebuild"][1] == "semmem rebuild --extract"

    def said(*arguments: str) -> str:
        capfd.readouterr()
        run([*arguments, "--url", store_url])
        return capfd.readouterr().err

    begins = "An unfinished rebuild with other has made 20 vectors; this one discards them at its start."
    assert begins not in said("rebuild", "--embedder", "nosuch")
    assert mem.store.vectors.unfinished_rebuilds()["vectors"] == ("other", 20)
    assert said("rebuild", "--embedder", "hashing").startswith(begins)
    assert "vectors" not in mem.store.vectors.unfinished_rebuilds()


@pytest.mark.slow
def test_two_rebuilds_at_once_are_refused(mem: Semmem, store_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "_OTHERS_PATIENCE", 0.1)
    with semmem.connect(store_url, embedder="none") as second:

        def meanwhile(call: int) -> None:
            for how in ({"embedder": "hashing"}, {"extract": True}):
                with pytest.raises(semmem.Conflict, match="Another process rebuilds this store"):
                    second.rebuild(**how)

        mem.rebuild(embedder=Other(hook=meanwhile))
        assert second.rebuild(extract=True).read == 100
