"""Whatever is remembered, forgotten, rebuilt and maintained, in whatever order: what is derived from it is exact."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import semmem
from semmem.client.memory import Semmem
from semmem.embedders.hashing import Hashing
from semmem.stores.postgres import forget, postings
from semmem.write import rebuild
from tests.stores.audit import check, sql
from tests.write.other_embedder import Other

NAMES = ("Ada Lovelace", "Ada", "Charles Babbage", "tea", "It", "the port", "Who", "?!")
SPACES = ("one", "two")

text = st.lists(st.sampled_from(NAMES), min_size=1, max_size=6).map(" met ".join)
item = st.fixed_dictionaries(
    {
        "id": st.integers(0, 12).map(str),
        "text": st.one_of(text, text, text.map(lambda words: f"{words}. " * 120)),
        "title": st.one_of(st.none(), st.sampled_from(NAMES)),
        "session": st.sampled_from(("s", "t", None)),
    }
)
space = st.sampled_from(SPACES)
step = st.one_of(
    st.tuples(st.just("remember"), space, st.lists(item, min_size=1, max_size=8)),
    st.tuples(st.just("remember"), space, st.lists(item, min_size=1, max_size=8)),
    st.tuples(st.just("forget"), space, st.integers(0, 12).map(str)),
    st.tuples(st.just("filter"), space, st.sampled_from(("s", "t"))),
    st.tuples(st.just("everything"), space, st.none()),
    st.tuples(st.just("extract"), space, st.none()),
    st.tuples(st.just("embed"), space, st.sampled_from(("hashing", "other", "larger"))),
    st.tuples(st.just("maintain"), space, st.none()),
)


@pytest.fixture(params=["PostgreSQL", "SQLite"])
def mem(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Semmem]:
    monkeypatch.setattr(postings, "FLUSH_AT", 5)  # so that a short history folds, and forgets in several goes
    monkeypatch.setattr(forget, "FORGET_AT_ONCE", 2)
    monkeypatch.setattr(rebuild, "BATCH", 4)
    url = request.getfixturevalue("store_url") if request.param == "PostgreSQL" else f"sqlite://{tmp_path}/notes.db"
    with semmem.connect(url, embedder="hashing", pool_size=2) as opened:
        yield opened


def do(mem: Semmem, what: str, namespace: str, given_: Any) -> None:
    if what == "remember":
        mem.remember_many(given_, namespace=namespace, on_error="skip", batch_size=6)
    elif what == "forget":
        if mem.store.get(namespace, [given_]):
            mem.forget(given_, namespace=namespace)
    elif what == "filter":
        mem.forget(filters={"sessions": given_}, namespace=namespace)
    elif what == "everything":
        mem.store.forget_namespace(namespace, dry_run=False)
    elif what == "extract":
        mem.rebuild(extract=True)
    elif what == "maintain":
        mem.maintain()
    elif "dense" in mem.store.capabilities:
        by = {"hashing": Hashing(), "other": Other(), "larger": Other("larger", more=3)}
        mem.rebuild(embedder=by[given_])


@pytest.mark.slow
@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=st.lists(step, min_size=1, max_size=8))
def test_what_is_derived_is_exact_after_any_history(mem: Semmem, steps: list[tuple[str, str, Any]]) -> None:
    for namespace in SPACES:
        mem.store.forget_namespace(namespace, dry_run=False)
    for what, namespace, given_ in steps:
        do(mem, what, namespace, given_)
        check(mem)
    mem.maintain()
    check(mem)
    assert mem.stats().pending == 0
    if "dense" in mem.store.capabilities:
        assert mem.store.vectors.count_missing() == 0


def test_memories_are_numbered_within_their_namespace_and_changes_without_a_gap(store_url: str) -> None:
    with semmem.connect(store_url, embedder="hashing") as mem:
        for namespace in ("a", "b"):
            mem.remember_many([{"id": str(n), "text": f"Note {n}."} for n in range(80)], namespace=namespace)
            mem.remember("One more.", id="more", namespace=namespace)
            mem.update("more", namespace=namespace, text="One more again.")
            assert mem.forget("7", namespace=namespace) == 1
            assert mem.store.row_ids_of(namespace, "0") == (1,)
        counts = sql(mem, "SELECT namespace, changes, memories FROM namespace ORDER BY 1")
        assert counts == [("a", 4, 80), ("b", 4, 80)]
        log = sql(mem, "SELECT number, kind, count(*) FROM change WHERE namespace = 'b' GROUP BY 1, 2 ORDER BY 1")
        assert log == [(1, "written", 80), (2, "written", 1), (3, "updated", 1), (4, "forgotten", 1)]
        info = mem.store.candidate_metadata(("a", "b"), [1, (1 << 40) + 1])
        assert [(head.namespace, head.id) for head in info.values()] == [("a", "0"), ("b", "0")]
        check(mem)
