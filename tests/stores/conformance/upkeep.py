"""Counting, forgetting and maintaining, as every store does."""

from __future__ import annotations

import json
from typing import Any

import pytest

from semmem.concepts.rules import extract
from semmem.model.errors import InvalidInput, StoreClosed
from semmem.model.store import Keep, Store, graph_of, vectors_of
from semmem.text.passages import term_key
from tests.stores.conformance.hand_made import ANY, ids, row_id_of, unit, write


class Upkeep:
    """Counting, forgetting and maintaining, as every store does."""

    @pytest.mark.needs("graph")
    def test_concepts_and_mentions_are_counted_at_once_and_the_same_after_maintenance(self, store: Store) -> None:
        write(
            store, {"id": "a", "title": "Ada Lovelace", "text": "She met Charles Babbage."}, {"id": "b", "text": "Tea?"}
        )
        write(store, {"id": "a", "title": "Ada Lovelace", "text": "She met Charles Babbage again."}, namespace="m")

        def counts() -> list[tuple[int, int]]:
            found = [store.stats(where) for where in ("n", "m", "nobody", None)]
            return [(stats.concepts, stats.mentions) for stats in found]

        before = counts()
        assert all(concepts > 0 < mentions for concepts, mentions in (before[0], before[1], before[3]))
        assert before[2] == (0, 0)
        assert before[3][1] == before[0][1] + before[1][1]
        assert before[3][0] <= before[0][0] + before[1][0]
        store.maintain()
        assert counts() == before
        write(store, {"id": "c", "title": "Ada Lovelace", "text": "She met Mary Somerville."})
        mixed = counts()
        assert mixed[0] > before[0]
        store.maintain()
        assert counts() == mixed, (counts(), mixed)

    @pytest.mark.needs("graph")
    def test_how_far_a_rebuild_of_the_graph_is_stands_in_the_store_until_it_is_done(self, store: Store) -> None:
        graph = graph_of(store)
        assert graph.reextraction() is None
        for place in ({"namespace": "n", "ord": 4}, {"namespace": "z", "ord": 1}):
            graph.note_reextraction(place)
            assert graph.reextraction() == place
        graph.note_reextraction(None)
        assert graph.reextraction() is None

    @pytest.mark.needs("graph")
    def test_of_memories_that_are_read_anew_those_are_counted_that_hold_something_else(self, store: Store) -> None:
        write(store, {"id": "a", "text": "Tea and rum."}, {"id": "b", "text": "Tea."}, {"id": "c", "text": "Cake."})
        a, b, c = (row_id_of(store, id) for id in "abc")
        cake = extract("Cake.")
        assert store.reindex("n", [(a, cake), (b, cake), (c, cake)]) == 2
        assert store.reindex("n", [(a, cake), (b, cake), (c, cake)]) == 0

    def test_a_dry_run_counts_and_forgets_nothing(self, store: Store) -> None:
        write(store, {"id": "a"}, {"id": "b"})
        assert store.forget("n", "a", ANY, dry_run=True) == 1
        assert store.forget("n", "nobody", ANY, dry_run=False) == 0
        assert store.stats("n").memories == 2

    def test_a_namespace_is_forgotten_whole_with_its_settings_whatever_times_its_memories_have(
        self, store: Store
    ) -> None:
        text = " ".join(f"Sentence number {n} is here." for n in range(100))
        dated = [{"id": str(n), "created_at": at} for n, at in enumerate(("0001-01-01", "9999-12-31T23:59:59Z"))]
        items = [{"id": "long", "text": text}, {"id": "a", "title": "Ada Lovelace"}, *dated]
        write(store, *items[1:], namespace="early")
        write(store, *items)
        store.maintain()
        write(store, {"id": "late", "title": "Charles Babbage"})
        write(store, *items, namespace="other")
        for namespace in ("n", "other", "bare"):
            store.change_settings(namespace, {"dedup": False}, ())
        parts = store.stats("other").parts
        assert store.forget_namespace("n", dry_run=True) == store.stats("n").memories == 5
        assert store.forget_namespace("n", dry_run=False) == 5
        assert store.forget_namespace("n", dry_run=False) == store.forget_namespace("bare", dry_run=False) == 0
        assert [row[0] for row in store.settings(None)] == ["other"]
        stats = store.stats("n")
        assert (stats.memories, stats.parts, stats.concepts, stats.mentions, stats.pending) == (0, 0, 0, 0, 0)
        assert store.scope(("n",), ANY, ()).size == 0
        assert list(store.namespaces()) == ["early", "other"]
        assert [store.scope((name,), ANY, ()).size for name in ("early", "n", "other")] == [3, 0, 3 + parts]
        assert len(store.postings(["n"], [term_key("sentenc")])["n"].entries) == 0
        assert len(ids(store.list("other", ANY, 10, None))) == 4
        assert write(store, *items).remembered == 4

    def test_what_was_forgotten_can_be_remembered_anew_with_other_content(self, store: Store) -> None:
        write(store, {"id": "a"})
        store.forget("n", "a", ANY, dry_run=False)
        assert write(store, {"id": "a", "text": "changed"}).remembered == 1
        assert store.get("n", ["a"])[0].text == "changed"
        assert store.stats("n").memories == 1

    @pytest.mark.needs("dense")
    def test_a_forgotten_memory_takes_its_vector_with_it(self, store: Store) -> None:
        write(store, {"id": "a", "vector": [1, 0, 0]})
        store.forget("n", "a", ANY, dry_run=False)
        assert store.stats("n").vectors == 0
        write(store, {"id": "a", "text": "changed", "vector": [0, 1, 0]})
        assert store.stats("n").vectors == 1

    def test_maintenance_changes_no_answer_and_has_nothing_left_to_do_a_second_time(self, store: Store) -> None:
        dense = "dense" in store.capabilities
        texts = ({"id": str(n), "text": f"memory {n} of a few"} for n in range(30))
        write(store, *({**item, "vector": [n, 1, 0]} if dense else item for n, item in enumerate(texts)))
        store.forget("n", "7", ANY, dry_run=False)

        def answers() -> Any:
            scope = store.scope(("n",), ANY, ())
            near = store.vectors.nearest(scope, unit(1, 0, 0), 10) if dense else None
            held = store.postings(["n"], [term_key("memori"), term_key("8")])["n"].items()
            matched = {at: sorted(entries[["ord", "count", "length"]].tolist()) for at, entries in held}
            return ids(store.list("n", ANY, 100, None)), scope.size, near, matched

        before = answers()
        assert {at: len(rows) for at, rows in before[3].items()} == {term_key("memori"): 29, term_key("8"): 1}
        store.maintain()
        assert answers() == before
        assert store.stats("n").pending == 0
        assert not any(store.maintain().values())

    def test_old_changes_are_swept_and_what_is_left_says_up_to_where(self, store: Store) -> None:
        write(store, {"id": "a"}, {"id": "b"})
        store.forget("n", "a", ANY, dry_run=False)
        store.forget_namespace("n", dry_run=False)
        write(store, {"id": "c"}, namespace="m")
        assert "changes" not in store.maintain(Keep(changes_days=1))
        done = store.maintain(Keep(changes_days=-1))  # older than tomorrow
        assert done["changes"] == 2  # a drop leaves itself of its namespace
        assert "changes" not in store.maintain(Keep(changes_days=-1))
        write(store, {"id": "d"}, namespace="m")
        assert store.maintain(Keep(changes_days=-1))["changes"] == 1

    def test_an_empty_store_answers_everything_with_nothing(self, store: Store) -> None:
        scope = store.scope(("n",), ANY, ("x",))
        assert scope.size == 0
        if "dense" in store.capabilities:
            assert store.vectors.nearest(scope, unit(1, 0, 0), 10).row_ids == ()
        assert (store.list("n", ANY, 10, None).memories, store.get("n", ["a"]), store.row_ids_of("n", "a")) == (
            (),
            [],
            (),
        )
        stats = store.stats(None)
        assert (stats.memories, stats.namespaces, stats.vectors, stats.embedder) == (0, 0, 0, None)
        assert not any(store.maintain().values())

    def test_what_is_not_declared_is_refused_in_a_sentence_that_says_where_to_find_it(self, store: Store) -> None:
        refused = {
            "dense": lambda: vectors_of(store).claim_embedder({"name": "one", "dimensions": 3, "fingerprint": "f"}),
            "graph": lambda: graph_of(store).graph_hash("n"),
        }
        kept = {"lexical", *(name for name, part in (("dense", store.vectors), ("graph", store.graph)) if part)}
        assert store.capabilities == kept
        for capability, ask in refused.items():
            if capability in store.capabilities:
                ask()
            else:
                with pytest.raises(InvalidInput, match=rf"{store.kind} store keeps no .*; a PostgreSQL store does"):
                    ask()

    def test_settings_of_a_namespace_come_back_as_they_were_set(self, store: Store) -> None:
        store.change_settings("n", {"weights.graph": 0.5, "dedup": False, "recipe": "seed"}, ())
        store.change_settings("m", {"recipe": "hybrid"}, ())
        store.change_settings("n", {"weights.graph": 2}, ["recipe", "nothing"])
        assert [tuple(row) for row in store.settings("n")] == [("n", "dedup", False), ("n", "weights.graph", 2)]
        assert [row[0] for row in store.settings(None)] == ["m", "n", "n"]
        assert json.loads(store.scope(("n",), ANY, ()).settings or "") == [
            ["n", "dedup", False],
            ["n", "weights.graph", 2],
        ]
        assert store.scope(("other",), ANY, ()).settings is None

    def test_a_closed_store_says_so(self, store: Store) -> None:
        store.close()
        with pytest.raises(StoreClosed, match="closed"):
            store.get("n", ["a"])
        store.close()
