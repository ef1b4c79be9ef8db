"""LangGraph's store over semmem: what its users expect of any, and three legs behind a search."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pytest

import semmem

pytest.importorskip("langgraph.store.base")
from langgraph.store.base import GetOp, InvalidNamespaceError, ListNamespacesOp, MatchCondition, PutOp, SearchOp

from semmem.doors.langgraph import SemmemStore
from semmem.doors.langgraph import store as store_module


@pytest.fixture
def store() -> Iterator[SemmemStore]:
    with SemmemStore.from_conn_string("sqlite::memory:") as opened:
        opened.setup()
        yield opened


def keys(found: Any) -> list[str]:
    return [item.key for item in found]


def test_an_item_is_put_read_replaced_and_deleted(store: SemmemStore) -> None:
    assert store.get(("users", "ana"), "likes") is None
    store.put(("users", "ana"), "likes", {"drink": "tea", "count": 1})
    first = store.get(("users", "ana"), "likes")
    assert first is not None
    assert (first.namespace, first.key, first.value) == (("users", "ana"), "likes", {"drink": "tea", "count": 1})
    store.put(("users", "ana"), "likes", {"drink": "coffee"})
    second = store.get(("users", "ana"), "likes")
    assert second is not None
    assert (second.value, second.created_at) == ({"drink": "coffee"}, first.created_at)
    assert second.updated_at > first.updated_at
    assert [item.value for item in store.search((), query="tea")] == []
    store.delete(("users", "ana"), "likes")
    assert store.get(("users", "ana"), "likes") is None
    assert list(store.memory.list(namespace="langgraph")) == []


def test_a_batch_is_answered_in_order_and_reads_before_it_writes(store: SemmemStore) -> None:
    store.put(("a",), "k", {"n": 1})
    answers = store.batch(
        [PutOp(("a",), "k", {"n": 2}), GetOp(("a",), "k"), PutOp(("a",), "k", {"n": 3}), SearchOp(("a",)),
         ListNamespacesOp(), GetOp(("a",), "no"), PutOp(("b",), "k", None)]
    )  # fmt: skip
    assert answers[0] is answers[2] is answers[5] is answers[6] is None
    assert answers[1].value == {"n": 1}  # type: ignore[union-attr]
    assert ([item.value for item in answers[3]], answers[4]) == ([{"n": 1}], [("a",)])  # type: ignore[union-attr]
    assert store.get(("a",), "k").value == {"n": 3}  # type: ignore[union-attr]


def test_a_prefix_is_of_whole_labels(store: SemmemStore) -> None:
    for path in (("a",), ("a", "b"), ("ab",), ("a%", "b"), ("A",)):
        store.put(path, "k", {"path": "/".join(path)})
    assert {item.namespace for item in store.search(("a",))} == {("a",), ("a", "b")}
    assert {item.namespace for item in store.search(())} == {("a",), ("a", "b"), ("ab",), ("a%", "b"), ("A",)}


def test_namespaces_are_listed_by_conditions_with_wildcards(store: SemmemStore) -> None:
    for path in (
        ("u", "ana", "likes"),
        ("u", "ben", "likes"),
        ("u", "ben", "notes"),
        ("teams", "x"),
        ("u", "ben", "notes", "old"),
    ):
        store.put(path, "k", {"x": 1})
    assert store.list_namespaces(prefix=("u", "*", "notes")) == [("u", "ben", "notes"), ("u", "ben", "notes", "old")]
    assert store.list_namespaces(suffix=("likes",)) == [("u", "ana", "likes"), ("u", "ben", "likes")]
    assert store.list_namespaces(prefix=("u",), max_depth=2) == [("u", "ana"), ("u", "ben")]
    assert store.list_namespaces(limit=2, offset=1) == [("u", "ana", "likes"), ("u", "ben", "likes")]
    both = (MatchCondition("prefix", ("u",)), MatchCondition("suffix", ("*", "likes")))
    assert store.batch([ListNamespacesOp(match_conditions=both)])[0] == [("u", "ana", "likes"), ("u", "ben", "likes")]


def test_a_filter_compares_and_looks_into_what_is_nested(store: SemmemStore) -> None:
    for number in range(5):
        store.put(("p",), str(number), {"price": number, "deep": {"even": number % 2 == 0}, "name": f"n{number}"})
    assert sorted(keys(store.search(("p",), filter={"price": {"$gte": 2, "$lt": 4}}))) == ["2", "3"]
    assert sorted(keys(store.search(("p",), filter={"deep": {"even": False}}))) == ["1", "3"]
    assert sorted(keys(store.search(("p",), filter={"deep.even": True, "price": {"$ne": 0}}))) == ["2", "4"]
    assert keys(store.search(("p",), filter={"name": "n3"})) == ["3"]
    assert keys(store.search(("p",), query="n3", filter={"price": {"$lt": 3}})) == []
    with pytest.raises(semmem.InvalidInput, match="no operator 'like'"):
        store.search(("p",), filter={"price": {"$like": 3}})


def test_without_a_query_the_newest_come_first_page_by_page(store: SemmemStore) -> None:
    for number in range(5):
        store.put(("p",), str(number), {"n": number})
    assert keys(store.search(("p",), limit=2)) == ["4", "3"]
    assert keys(store.search(("p",), limit=2, offset=3)) == ["1", "0"]


def test_a_query_is_answered_by_the_texts_of_the_indexed_fields() -> None:
    with SemmemStore.from_conn_string("sqlite::memory:", index={"fields": ["title", "parts[*].text"]}) as store:
        store.put(
            ("d",),
            "a",
            {"title": "Ferry", "parts": [{"text": "It leaves at nine."}, {"text": "It is blue."}], "x": "hidden"},
        )
        store.put(("d",), "b", {"title": "Train", "parts": []})
        store.put(("d",), "c", {"title": "Ferry of old"}, index=False)
        store.put(("d",), "e", {"title": "Hidden", "note": "ferry"}, index=["note"])
        assert set(keys(store.search((), query="ferry"))) == {"a", "e"}
        assert keys(store.search((), query="blue")) == ["a"]
        assert keys(store.search((), query="hidden")) == []
        assert keys(store.search((), query="nine blue")) == ["a"]
        (found,) = store.search((), query="blue")
        assert found.score == store.memory.recall("blue", namespace="langgraph")[0].score
        store.put(("d",), "a", {"title": "Ferry", "parts": []})
        assert keys(store.search((), query="blue")) == []
        assert keys(store.search((), query="ferry", limit=1, offset=1)) != keys(
            store.search((), query="ferry", limit=1)
        )


class Letters:
    """An embedder of a caller: how often each of three letters stands in a text."""

    model = "letters"

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [[text.count(letter) for letter in "abc"] for text in texts]

    def embed_query(self, text: str) -> list[float]:
        return self.embed_documents([text])[0]

    async def aembed_documents(self, texts: list[str]) -> list[list[float]]:
        return self.embed_documents(texts)

    async def aembed_query(self, text: str) -> list[float]:
        return self.embed_query(text)


def test_the_score_of_the_dense_recipe_is_the_cosine_of_the_callers_vectors(store_url: str) -> None:
    from langchain_core.embeddings import Embeddings

    class Known(Letters, Embeddings):
        pass

    index = {"dims": 3, "embed": Known(), "fields": ["text"]}
    with SemmemStore.from_conn_string(store_url, index=index, recipe="dense") as store:
        assert (store.index_config, store.embeddings) == (index, index["embed"])
        store.put(("v",), "aab", {"text": "aab"})
        store.put(("v",), "c", {"text": "c"})
        found = {item.key: item.score for item in store.search(("v",), query="a")}
        assert found["aab"] == pytest.approx(2 / np.sqrt(5), abs=1e-3)  # (2, 1, 0) by (1, 0, 0)
        assert found["c"] == pytest.approx(0, abs=1e-3)
    with pytest.raises(semmem.InvalidInput, match="index needs dims"):
        SemmemStore.from_conn_string(store_url, index={"embed": Known()}).__enter__()
    with pytest.raises(semmem.InvalidInput, match="distance_type must be 'cosine'"):
        SemmemStore(store.memory, index={"distance_type": "l2"})


class Clock:
    """What the store takes for datetime, with a time that can be moved."""

    fromisoformat = staticmethod(datetime.fromisoformat)
    at = datetime(2026, 5, 1, tzinfo=UTC)

    @classmethod
    def now(cls, zone: Any) -> datetime:
        return cls.at


def test_an_item_is_swept_when_its_time_is_over_and_a_read_renews_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_module, "datetime", Clock)
    start = datetime(2026, 5, 1, tzinfo=UTC)
    Clock.at = start
    with SemmemStore.from_conn_string("sqlite::memory:", ttl={"default_ttl": 10}) as store:
        store.put(("t",), "read", {"x": "ferry"})
        store.put(("t",), "seen", {"x": "boat"})
        store.put(("t",), "left", {"x": "train"})
        store.put(("t",), "long", {"x": "plane"}, ttl=60)
        Clock.at = start + timedelta(minutes=8)
        assert store.get(("t",), "read") is not None
        assert keys(store.search(("t",), query="boat")) == ["seen"]
        assert store.get(("t",), "left", refresh_ttl=False) is not None
        Clock.at = start + timedelta(minutes=12)
        assert store.sweep_ttl() == 1
        assert sorted(keys(store.search(("t",)))) == ["long", "read", "seen"]
        assert keys(store.search(("t",), query="train")) == []
    Clock.at = start
    with SemmemStore.from_conn_string("sqlite::memory:", ttl={"default_ttl": 10, "omit_expired": True}) as store:
        store.put(("t",), "k", {"x": 1})
        Clock.at = start + timedelta(minutes=11)
        assert store.get(("t",), "k") is None
        assert store.search(("t",)) == []


def test_the_same_calls_can_be_awaited() -> None:
    async def use() -> None:
        async with SemmemStore.afrom_conn_string("sqlite::memory:") as store:
            await store.asetup()
            await asyncio.gather(*(store.aput(("a",), str(n), {"text": f"owl {n}"}) for n in range(5)))
            assert (await store.aget(("a",), "3")).value == {"text": "owl 3"}  # type: ignore[union-attr]
            assert sorted(keys(await store.asearch(("a",), query="owl"))) == ["0", "1", "2", "3", "4"]
            assert await store.alist_namespaces() == [("a",)]
            await store.adelete(("a",), "3")
            assert await store.aget(("a",), "3") is None

    asyncio.run(use())


def test_what_cannot_be_stored_is_refused_and_the_batch_with_it(store: SemmemStore) -> None:
    with pytest.raises(semmem.InvalidInput, match="The value of 'k' cannot be stored as JSON"):
        store.batch([PutOp(("a",), "good", {"x": 1}), PutOp(("a",), "k", {"x": object()})])
    with pytest.raises(semmem.InvalidInput, match="must be a mapping, not str"):
        store.put(("a",), "k", "text")  # type: ignore[arg-type]
    with pytest.raises(InvalidNamespaceError):
        store.put((), "k", {"x": 1})
    with pytest.raises(semmem.InvalidInput, match="not str"):
        store.batch(["x"])  # type: ignore[list-item]
    assert store.search(()) == []
