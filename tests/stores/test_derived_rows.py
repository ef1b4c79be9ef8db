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
from tests.stores.audit import check
from tests.write.test_rebuild import Other

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
    monkeypatch.setattr(postings, "FOLD_AT", 5)  # so that a short history folds, and forgets in several goes
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
