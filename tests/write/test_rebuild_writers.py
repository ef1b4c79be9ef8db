"""Writers and the tables' change of places during a rebuild."""

from __future__ import annotations

import numpy as np
import psycopg
import pytest

import semmem
from semmem.client.memory import Semmem
from semmem.stores.postgres import nearest, staging, vector_index
from tests.stores.audit import sql
from tests.write.other_embedder import Other, filled_by, notes

pytestmark = pytest.mark.usefixtures("small_batches")


@pytest.mark.slow
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
    monkeypatch.setattr(staging, "PATIENCE", "50ms")
    monkeypatch.setattr(staging, "_READERS_PATIENCE", "50ms")
    monkeypatch.setattr(staging, "_TURNS", 2)
    other = Other()
    who = {"name": "other", "dimensions": 256, "fingerprint": "other-1"}
    mem.store.vectors.open_staging(who)
    embed = lambda memories: other.embed([memory.text for memory in memories])  # noqa: E731
    assert mem.store.vectors.swap_staging(who, embed, 99) is None  # 100 are missing
    with psycopg.connect(mem.store.url, options="-c search_path=semmem,public") as busy:
        busy.execute("DELETE FROM embedding WHERE false")
        assert mem.store.vectors.swap_staging(who, embed, None) is None  # a writer
        busy.rollback()
        busy.execute("SELECT count(*) FROM embedding")
        assert mem.store.vectors.swap_staging(who, embed, None) is None  # a reader, such as a backup
    assert mem.recall("ferry note 7").degraded == {}
    assert mem.store.vectors.swap_staging(who, embed, 100) == 100
    filled_by(mem, other)
    with pytest.raises(semmem.EmbedderReplaced):
        mem.store.vectors.swap_staging(who, embed, None)  # the staging vectors are nobody's now


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
            vector_index.index(connection, 7)
        assert connection.execute(asked).fetchone() == before
        assert before != ("512MB",)
