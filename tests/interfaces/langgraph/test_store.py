"""LangGraph's store over semmem: what its users expect of any, and three legs behind a search."""

from __future__ import annotations

import asyncio
import json
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import semmem

pytest.importorskip("langgraph.store.base")
from langgraph.store.base import GetOp, InvalidNamespaceError, ListNamespacesOp, MatchCondition, Op, PutOp, SearchOp
from langgraph.store.memory import InMemoryStore

from semmem.interfaces.langgraph import SemmemStore


def keys(found: Any) -> list[str]:
    return [item.key for item in found]


def test_an_item_is_put_read_replaced_and_deleted(items: SemmemStore) -> None:
    assert items.get(("users", "ana"), "likes") is None
    items.put(("users", "ana"), "likes", {"drink": "tea", "count": 1})
    first = items.get(("users", "ana"), "likes")
    assert first is not None
    assert (first.namespace, first.key, first.value) == (("users", "ana"), "likes", {"drink": "tea", "count": 1})
    items.put(("users", "ana"), "likes", {"drink": "coffee"})
    second = items.get(("users", "ana"), "likes")
    assert second is not None
    assert (second.value, second.created_at) == ({"drink": "coffee"}, first.created_at)
    assert second.updated_at > first.updated_at
    assert [item.value for item in items.search((), query="tea")] == []
    items.delete(("users", "ana"), "likes")
    assert items.get(("users", "ana"), "likes") is None
    assert list(items.memory.list(namespace="langgraph")) == []


def test_a_sensitive_item_is_masked_for_readers_in_metadata_too_and_whole_for_the_store(items: SemmemStore) -> None:
    value = {"text": "The safe opens with 1931.", "of": "ana"}  # an order of keys that a database would change
    items.put(("users",), "safe", value, ttl=5)
    memories = list(items.memory.list(namespace="langgraph"))
    for one in memories:
        items.memory.update(one.id, namespace="langgraph", sensitive=True)
        shown = [items.memory.get(one.id, namespace="langgraph")]
        shown += [version.memory for version in items.memory.history(one.id, namespace="langgraph")]
        assert not any("1931" in str(one) for one in shown)
    assert len(memories) == 2
    for _ in range(2):  # the first look begins its time anew, and writes its metadata
        found = items.get(("users",), "safe")
        assert found is not None
        assert found.value == value
    assert items.search(("users",)) == []  # as no list has it
    items.put(("users",), "safe", {"text": "It is open."})
    found = items.get(("users",), "safe")
    assert found is not None
    assert found.value == {"text": "It is open."}


def test_a_batch_is_answered_in_order_and_reads_before_it_writes(items: SemmemStore) -> None:
    items.put(("a",), "k", {"n": 1})
    answers = items.batch(
        [PutOp(("a",), "k", {"n": 2}), GetOp(("a",), "k"), PutOp(("a",), "k", {"n": 3}), SearchOp(("a",)),
         ListNamespacesOp(), GetOp(("a",), "no"), PutOp(("b",), "k", None)]
    )  # fmt: skip
    assert answers[0] is answers[2] is answers[5] is answers[6] is None
    assert answers[1].value == {"n": 1}  # type: ignore[union-attr]
    assert ([item.value for item in answers[3]], answers[4]) == ([{"n": 1}], [("a",)])  # type: ignore[union-attr]
    assert items.get(("a",), "k").value == {"n": 3}  # type: ignore[union-attr]


def test_a_prefix_is_of_whole_labels(items: SemmemStore) -> None:
    for path in (("a",), ("a", "b"), ("ab",), ("a%", "b"), ("A",)):
        items.put(path, "k", {"path": "/".join(path)})
    assert {item.namespace for item in items.search(("a",))} == {("a",), ("a", "b")}
    assert {item.namespace for item in items.search(())} == {("a",), ("a", "b"), ("ab",), ("a%", "b"), ("A",)}


def test_namespaces_are_listed_by_conditions_with_wildcards(items: SemmemStore) -> None:
    for path in (
        ("u", "ana", "likes"),
        ("u", "ben", "likes"),
        ("u", "ben", "notes"),
        ("teams", "x"),
        ("u", "ben", "notes", "old"),
    ):
        items.put(path, "k", {"x": 1})
    assert items.list_namespaces(prefix=("u", "*", "notes")) == [("u", "ben", "notes"), ("u", "ben", "notes", "old")]
    assert items.list_namespaces(suffix=("likes",)) == [("u", "ana", "likes"), ("u", "ben", "likes")]
    assert items.list_namespaces(prefix=("u",), max_depth=2) == [("u", "ana"), ("u", "ben")]
    assert items.list_namespaces(limit=2, offset=1) == [("u", "ana", "likes"), ("u", "ben", "likes")]
    both = (MatchCondition("prefix", ("u",)), MatchCondition("suffix", ("*", "likes")))
    assert items.batch([ListNamespacesOp(match_conditions=both)])[0] == [("u", "ana", "likes"), ("u", "ben", "likes")]


def test_a_filter_compares_and_looks_into_what_is_nested(items: SemmemStore) -> None:
    for number in range(5):
        items.put(("p",), str(number), {"price": number, "deep": {"even": number % 2 == 0}, "name": f"n{number}"})
    assert sorted(keys(items.search(("p",), filter={"price": {"$gte": 2, "$lt": 4}}))) == ["2", "3"]
    assert sorted(keys(items.search(("p",), filter={"deep": {"even": False}}))) == ["1", "3"]
    assert sorted(keys(items.search(("p",), filter={"deep.even": True, "price": {"$ne": 0}}))) == ["2", "4"]
    assert keys(items.search(("p",), filter={"name": "n3"})) == ["3"]
    assert keys(items.search(("p",), query="n3", filter={"price": {"$lt": 3}})) == []
    with pytest.raises(semmem.InvalidInput, match="no operator 'like'"):
        items.search(("p",), filter={"price": {"$like": 3}})


def test_without_a_query_the_newest_come_first_page_by_page(items: SemmemStore) -> None:
    for number in range(5):
        items.put(("p",), str(number), {"n": number})
    assert keys(items.search(("p",), limit=2)) == ["4", "3"]
    assert keys(items.search(("p",), limit=2, offset=3)) == ["1", "0"]


def test_an_item_that_is_put_again_comes_first_and_one_that_is_only_read_does_not() -> None:
    with SemmemStore.from_conn_string("sqlite::memory:", embedder="none", ttl={"default_ttl": 10}) as items:
        for key in "abcd":
            items.put(("p",), key, {"key": key})
        items.put(("p",), "b", {"key": "B"})
        for key in "adc":  # their time begins anew, as a read does it
            assert items.get(("p",), key) is not None
        assert keys(items.search(("p",))) == ["b", "d", "c", "a"]
        assert [keys(items.search(("p",), limit=1, offset=n)) for n in range(4)] == [["b"], ["d"], ["c"], ["a"]]
        items.put(("p",), "a", {"key": "a"})
        assert keys(items.search(("p",), limit=2)) == ["a", "b"]


def test_a_query_is_answered_by_the_texts_of_the_indexed_fields() -> None:
    with SemmemStore.from_conn_string(
        "sqlite::memory:", embedder="none", index={"fields": ["title", "parts[*].text"]}
    ) as items:
        items.put(
            ("d",),
            "a",
            {"title": "Ferry", "parts": [{"text": "It leaves at nine."}, {"text": "It is blue."}], "x": "hidden"},
        )
        items.put(("d",), "b", {"title": "Train", "parts": []})
        items.put(("d",), "c", {"title": "Ferry of old"}, index=False)
        items.put(("d",), "e", {"title": "Hidden", "note": "ferry"}, index=["note"])
        assert set(keys(items.search((), query="ferry"))) == {"a", "e"}
        assert keys(items.search((), query="blue")) == ["a"]
        assert keys(items.search((), query="hidden")) == []
        assert keys(items.search((), query="nine blue")) == ["a"]
        (found,) = items.search((), query="blue")
        assert found.score == items.memory.recall("blue", namespace="langgraph")[0].score
        items.put(("d",), "a", {"title": "Ferry", "parts": []})
        assert keys(items.search((), query="blue")) == []
        assert keys(items.search((), query="ferry", limit=1, offset=1)) != keys(
            items.search((), query="ferry", limit=1)
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
    with SemmemStore.from_conn_string(store_url, index=index, recipe="dense") as items:
        assert (items.index_config, items.embeddings) == (index, index["embed"])
        items.put(("v",), "aab", {"text": "aab"})
        items.put(("v",), "c", {"text": "c"})
        found = {item.key: item.score for item in items.search(("v",), query="a")}
        assert found["aab"] == pytest.approx(2 / np.sqrt(5), abs=1e-3)  # (2, 1, 0) by (1, 0, 0)
        assert found["c"] == pytest.approx(0, abs=1e-3)
        items.put(("v",), "unread", {"text": "aaa"}, index=False)
        items.put(("w",), "elsewhere", {"text": "aaa"}, index=False)
        assert [item.score is None for item in items.search(("v",), query="a")] == [False, False, True]
        assert keys(items.search(("v",), query="a", limit=2)) == ["aab", "c"]
        assert keys(items.search(("v",), query="a", limit=2, offset=2)) == ["unread"]
        assert keys(items.search(("v",), query="a", filter={"text": "aaa"})) == ["unread"]
    with pytest.raises(semmem.InvalidInput, match="index needs dims"):
        SemmemStore.from_conn_string(store_url, index={"embed": Known()}).__enter__()
    with pytest.raises(semmem.InvalidInput, match="distance_type must be 'cosine'"):
        SemmemStore(items.memory, index={"distance_type": "l2"})


def test_an_open_memory_takes_no_embedder_of_an_index(items: SemmemStore) -> None:
    with pytest.raises(semmem.InvalidInput, match="An open memory has an embedder already; leave embed out of index"):
        SemmemStore(items.memory, index={"dims": 3, "embed": lambda texts: [[1.0, 0.0, 0.0] for _ in texts]})


@pytest.mark.parametrize(
    ("index", "said"),
    [
        (5, "index must be a mapping, such as {'fields': ['text']}, not int."),
        (
            {"field": ["text"]},
            "index has no key 'field'; choose one of dims, embed, fields, text_fields, distance_type, ",
        ),
    ],
)
def test_an_index_that_says_nothing_known_is_refused(items: SemmemStore, index: Any, said: str) -> None:
    for opens in (
        lambda: SemmemStore(items.memory, index=index),
        lambda: SemmemStore.from_conn_string("sqlite::memory:", index=index).__enter__(),
    ):
        with pytest.raises(semmem.InvalidInput, match=re.escape(said)):
            opens()


def test_a_filter_takes_any_key_and_operators_at_any_depth_as_langgraphs_own_store_does(items: SemmemStore) -> None:
    own = InMemoryStore()
    values: list[dict[str, Any]] = [
        {"like": "tea", "n": 1, "d": {"x": 1, "y": 2}}, {"in": "x", "d": {"x": 0}}, {"contains": "q", "l": [{"eq": 1}]},
        {"like": "coffee", "d": {"like": "x", "x": -1}}, {"Not": 1, "between": {"gte": 3}}, {"AND": [1], "OR": "x"},
    ]  # fmt: skip
    for number, value in enumerate(values):
        for each in (items, own):
            each.put(("p",), str(number), value)
    filters: list[dict[str, Any]] = [
        {"like": "tea"}, {"like": "tea", "n": 1}, {"in": "x"}, {"contains": "q"}, {"Not": 1}, {"d": {"like": "x"}},
        {"between": {"gte": 3}}, {"l": [{"eq": 1}]}, {"d": {"x": {"$gt": 0}}}, {"d": {"x": {"$gte": 0}, "y": 2}},
        {"like": {"$ne": "tea"}}, {"AND": [1]}, {"OR": "x"}, {"like": "juice"}, {"d": {"x": {"$gt": 1}}},
    ]  # fmt: skip
    for one in filters:
        expected = sorted(keys(own.search(("p",), filter=one)))
        assert (one, sorted(keys(items.search(("p",), filter=one)))) == (one, expected)
        assert (one, sorted(keys(items.search(("p",), query="tea x q", filter=one)))) == (
            one,
            [key for key in sorted(keys(items.search(("p",), query="tea x q"))) if key in expected],
        )


def test_a_filter_that_is_no_mapping_is_refused(items: SemmemStore) -> None:
    with pytest.raises(semmem.InvalidInput, match=r"filter must be a mapping, such as {'kind': 'note'}, not int"):
        items.search((), filter=5)  # type: ignore[arg-type]


def test_the_same_calls_can_be_awaited() -> None:
    async def use() -> None:
        async with SemmemStore.afrom_conn_string("sqlite::memory:", embedder="none") as items:
            await items.asetup()
            await asyncio.gather(*(items.aput(("a",), str(n), {"text": f"owl {n}"}) for n in range(5)))
            assert (await items.aget(("a",), "3")).value == {"text": "owl 3"}  # type: ignore[union-attr]
            assert sorted(keys(await items.asearch(("a",), query="owl"))) == ["0", "1", "2", "3", "4"]
            assert await items.alist_namespaces() == [("a",)]
            await items.adelete(("a",), "3")
            assert await items.aget(("a",), "3") is None

    asyncio.run(use())


def test_what_cannot_be_stored_is_refused_and_the_batch_with_it(items: SemmemStore) -> None:
    with pytest.raises(semmem.InvalidInput, match="The value of 'k' cannot be stored as JSON"):
        items.batch([PutOp(("a",), "good", {"x": 1}), PutOp(("a",), "k", {"x": object()})])
    with pytest.raises(semmem.InvalidInput, match="must be a mapping, not str"):
        items.put(("a",), "k", "text")  # type: ignore[arg-type]
    with pytest.raises(InvalidNamespaceError):
        items.put((), "k", {"x": 1})
    with pytest.raises(semmem.InvalidInput, match="not str"):
        items.batch(["x"])  # type: ignore[list-item]
    assert items.search(()) == []


@pytest.mark.parametrize("path", [("a.b",), ("a", ""), ("a", 1), ("a\0",)])
def test_a_label_that_langgraph_refuses_is_refused_in_a_batch_too(items: SemmemStore, path: Any) -> None:
    ops: list[Op] = [
        GetOp(path, "k"), PutOp(path, "k", {"x": 1}), PutOp(path, "k", None), SearchOp(path),
        ListNamespacesOp((MatchCondition("suffix", path),)),
    ]  # fmt: skip
    for op in ops:
        with pytest.raises(InvalidNamespaceError, match="A label of a namespace is a string without a dot or a NUL"):
            items.batch([PutOp(("good",), "k", {"x": 1}), op])
    assert items.list_namespaces() == []


@pytest.mark.parametrize(
    "op",
    [
        SearchOp((), limit=-1), SearchOp((), offset=-1), SearchOp((), limit=1.5),  # type: ignore[arg-type]
        ListNamespacesOp(limit=-1), ListNamespacesOp(offset=-1), ListNamespacesOp(max_depth=-1),
    ],
)  # fmt: skip
def test_a_number_below_zero_is_refused_and_the_batch_with_it(items: SemmemStore, op: Op) -> None:
    with pytest.raises(semmem.InvalidInput, match=r"(limit|offset|max_depth) must be a whole number from 0, not "):
        items.batch([PutOp(("a",), "k", {"x": 1}), op])
    assert items.search((), limit=0) == []
    assert items.list_namespaces() == []


def test_an_item_is_not_updated_before_it_is_created(items: SemmemStore) -> None:
    items.put(("a",), "k", {"x": 1})
    first = items.get(("a",), "k")
    assert first is not None
    assert first.updated_at == first.created_at
    items.put(("a",), "k", {"x": 2})
    again = items.get(("a",), "k")
    assert again is not None
    assert (again.created_at, again.updated_at > first.updated_at) == (first.created_at, True)


def test_a_batch_whose_put_is_refused_deletes_nothing(items: SemmemStore) -> None:
    items.put(("a",), "k", {"x": 1})
    with pytest.raises(semmem.SemmemError):
        items.batch([PutOp(("a",), "k", None), PutOp(("a",), "bad", {"x": "a\0b"})])
    assert items.get(("a",), "k") is not None


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda i: i.search((), filter={5: 1}), "A filter has the key 5; the keys of metadata are strings."),
        (lambda i: i.search((), filter={"a": {"b": {"$like": 1}}}), "There is no operator 'like'; choose one of eq, "),
        (lambda i: i.search((), limit=None), "limit must be a whole number from 0, not None."),
        (
            lambda i: i.put(("a",), "k", {"x": "y"}, index="x"),
            "index must be False, or a list of paths in a value, such",
        ),
        (lambda i: i.put(("a",), "k", {"x": "y"}, index=5), "not 5."),
        (lambda i: i.put(("a",), "k", {"x": float("nan")}), "The value of 'k' cannot be stored as JSON: Out of range"),
        (lambda i: i.batch([PutOp(("a",), 5, {})]), "key must be a string, not int."),
        (lambda i: i.batch(None), "A batch is a list of operations of LangGraph's store, not NoneType."),
        (lambda i: asyncio.run(i.abatch(5)), "A batch is a list of operations of LangGraph's store, not int."),
        (lambda i: i.batch([ListNamespacesOp((MatchCondition("middle", ("a",)),))]), "match_type must be 'prefix' or"),
        (lambda i: SemmemStore(i.memory, ttl=5), "ttl must be a mapping, such as {'default_ttl': 60}, not 5."),
        (
            lambda i: SemmemStore(i.memory, ttl={"default": 5}),
            "ttl has no key 'default'; choose one of default_ttl, refresh",
        ),
        (lambda i: SemmemStore(i.memory, index={"fields": 5}), "fields must be a list of paths in a value, such as"),
        (lambda i: SemmemStore(i.memory, index={"fields": [5]}), "not [5]."),
        (
            lambda i: SemmemStore.from_conn_string("sqlite::memory:", index={"embed": 5, "dims": 3}).__enter__(),
            "embed must be LangChain's Embeddings, a function from texts to vectors, or the name of a provider, not",
        ),
        (
            lambda i: SemmemStore.from_conn_string("sqlite::memory:", index={"embed": "no:one", "dims": 3}).__enter__(),
            "embed cannot be loaded: ",
        ),
    ],
)
def test_an_argument_of_a_wrong_type_is_refused_in_one_sentence(items: SemmemStore, call: Any, said: str) -> None:
    with pytest.raises(semmem.InvalidInput, match=re.escape(said)) as refused:
        call(items)
    assert "\n" not in str(refused.value)
    assert items.search(()) == []


def test_a_string_in_the_place_of_a_namespace_is_refused(items: SemmemStore) -> None:
    said = re.escape("A namespace is a tuple of labels, such as ('notes',), not 'notes'.")
    for call in (
        lambda: items.put("notes", "k", {"x": 1}),  # type: ignore[arg-type]
        lambda: items.get("notes", "k"),  # type: ignore[arg-type]
        lambda: items.search("notes"),  # type: ignore[arg-type]
        lambda: items.list_namespaces(prefix="notes"),  # type: ignore[arg-type]
    ):
        with pytest.raises(InvalidNamespaceError, match=said):
            call()
    items.put(["notes"], "k", {"x": 1})  # type: ignore[arg-type]  # as LangGraph's own stores take it
    assert items.list_namespaces() == [("notes",)]


@pytest.mark.slow
def test_puts_and_deletes_of_one_key_at_once_all_succeed(tmp_path: Path) -> None:
    with SemmemStore.from_conn_string(f"sqlite:{tmp_path}/items.db") as items:

        def work(number: int) -> None:
            for n in range(5):
                items.put(("a",), "k", {"text": f"owl {number} {n}"})
                if number % 3 == 0:
                    items.delete(("a",), "k")

        with ThreadPoolExecutor(6) as threads:
            list(threads.map(work, range(6)))
        items.put(("a",), "k", {"text": "owl"})
        assert [item.value for item in items.search((), query="owl")] == [{"text": "owl"}]
        assert items.memory.stats().memories == 2  # the record and its text


def test_a_value_comes_back_with_its_keys_in_the_order_in_which_they_were_put(items: SemmemStore) -> None:
    value = {"zeta": 1, "a": {"long name": [{"c": 1, "b": 2.0}], "é": None, "d": True}, "mid": "x"}
    items.put(("a",), "k", value)
    found = items.get(("a",), "k")
    assert found is not None
    assert json.dumps(found.value) == json.dumps(value)
    (searched,) = items.search(("a",), filter={"mid": "x"})
    assert json.dumps(searched.value) == json.dumps(value)
    items.put(("a",), "k", {"a": 1, "bb": 2})
    assert "given" not in items.memory.list(namespace="langgraph")[0].metadata  # the database keeps this order


@pytest.mark.parametrize("key", ["access') = 'public' OR '1'='1", 'a"b', "a\\b", "a;b", "a\0b"])
def test_a_key_of_a_filter_that_looks_like_an_attack_is_refused_as_langgraphs_stores_do(
    items: SemmemStore, key: str
) -> None:
    with pytest.raises(ValueError, match=r"^Invalid filter key: .* has a quote, a backslash, ; or a control character"):
        items.search(("docs",), filter={key: "x"})
    with pytest.raises(ValueError, match=r"^Invalid filter key: "):
        items.search(("docs",), filter={"a": {"b": [{key: "x"}]}})
    assert items.search(("docs",), filter={"größe.in-cm_2": "x"}) == []


def test_what_is_nested_too_deeply_is_refused_in_one_sentence(items: SemmemStore) -> None:
    deep: dict[str, Any] = {}
    for _ in range(5_000):
        deep = {"a": deep}
    with pytest.raises(semmem.InvalidInput, match="nested"):
        items.put(("a",), "k", deep)
    with pytest.raises(semmem.InvalidInput, match="nested"):
        items.search(("a",), filter=deep)
