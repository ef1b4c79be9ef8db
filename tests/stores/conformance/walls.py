"""The walls between namespaces, as every store keeps them."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import semmem
from semmem.client.connection import legs_of
from semmem.legs import Legs
from semmem.model.exchange import Kind
from semmem.model.store import Store
from semmem.read.recall import Recaller
from semmem.text.passages import term_key
from semmem.text.tokens import key
from tests.stores.conformance.hand_made import ANY, NOON, row_id_of, unit, write


class Walls:
    """The walls between namespaces, as every store keeps them."""

    # ------------------------------------------------------------------ walls

    def test_nothing_crosses_from_one_namespace_to_another(self, store: Store) -> None:
        write(store, {"id": "a", "text": "Ada likes tea", "title": "Ada Lovelace"}, namespace="one")
        write(store, {"id": "a", "text": "Bob likes rum", "title": "Bob Ross"}, namespace="two")
        one, two = row_id_of(store, "a", "one"), row_id_of(store, "a", "two")
        assert [m.text for m in store.get("one", ["a"])] == ["Ada likes tea"]
        assert [m.text for m in store.list("two", ANY, 10, None)] == ["Bob likes rum"]
        assert set(store.candidate_metadata(["one"], [one, two])) == {one}
        assert set(store.indexed_memories(["two"], [one, two])) == {two}
        assert store.row_ids_of("three", "a") == ()
        likes = term_key("like")
        assert [p.entries["ord"].tolist() for p in store.postings(["one"], [likes]).values()] == [[one]]
        assert (store.stats("one").memories, store.stats(None).memories, store.stats(None).namespaces) == (1, 2, 2)
        assert store.scope(("one",), ANY, ()).size == 1
        assert store.scope(("one", "two"), ANY, ()).size == 2
        assert store.forget("one", "a", ANY, dry_run=False) == 1
        assert [m.text for m in store.get("two", ["a"])] == ["Bob likes rum"]

    @pytest.mark.needs("dense")
    def test_no_vector_crosses_from_one_namespace_to_another(self, store: Store) -> None:
        write(store, {"id": "a", "vector": [1, 0, 0]}, namespace="one")
        write(store, {"id": "a", "vector": [0, 1, 0]}, namespace="two")
        one, two = row_id_of(store, "a", "one"), row_id_of(store, "a", "two")
        assert store.vectors.nearest(store.scope(("one",), ANY, ()), unit(0, 1, 0), 10).row_ids == (one,)
        far = store.vectors.nearest(store.scope(("two",), ANY, ()), unit(1, 0, 0), 10)
        assert (far.row_ids, far.scores) == ((two,), (pytest.approx(0.0, abs=1e-3),))  # not the 1 of a in the other
        assert set(store.vectors.similarities(["one"], [one, two], unit(1, 1, 0))) == {one}
        write(store, {"id": "b", "vector": [0, 0, 1]}, namespace="two")
        assert [store.stats(name).vectors for name in ("one", "two", "three", None)] == [1, 2, 0, 3]
        store.forget_namespace("two", dry_run=False)
        assert [store.stats(name).vectors for name in ("one", "two")] == [1, 0]

    @pytest.mark.needs("graph")
    @pytest.mark.parametrize("maintained", [False, True])
    def test_no_name_crosses_from_one_namespace_to_another(self, store: Store, maintained: bool) -> None:
        write(store, *({"id": id, "title": "Ada Lovelace"} for id in "abc"), namespace="one")
        write(store, {"id": "a", "title": "Bob Ross"}, namespace="two")
        if maintained:
            store.maintain()
        name = key(Kind.NAME, ("ada", "lovelace"))
        found = {n: postings.keys.tolist() for n, postings in store.postings(["one", "two"], [name]).items()}
        assert found == {"one": [name], "two": []}
        assert store.graph.names(["two"], [name]) == {}

    def test_namespaces_differ_by_case_and_may_be_any_text(self, store: Store) -> None:
        names = ["n", "N", "n ", "a'b", "🦊", "x" * 200]
        for name in names:
            write(store, {"id": "a", "text": f"in {name}"}, namespace=name)
        assert [store.get(name, ["a"])[0].text for name in names] == [f"in {name}" for name in names]
        assert store.stats(None).namespaces == len(names)

    def test_the_namespaces_are_listed_with_their_memories_and_last_change(self, store: Store) -> None:
        assert list(store.overview()) == []
        text = " ".join(f"Sentence number {n} is here." for n in range(100))  # of several parts, and one memory
        write(store, {"id": "a", "text": text, "created_at": NOON}, {"id": "b", "created_at": NOON - timedelta(days=1)})
        for name in ("b", "B", "\uffff", "🦊"):
            write(store, {"id": "a", "created_at": NOON + timedelta(microseconds=1)}, namespace=name)
        found = [(one.name, one.memories, one.updated_at) for one in store.overview()]
        later = NOON + timedelta(microseconds=1)
        assert found == [("B", 1, later), ("b", 1, later), ("n", 2, NOON), ("\uffff", 1, later), ("🦊", 1, later)]
        store.forget("b", "a", ANY, dry_run=False)
        assert [one.name for one in store.overview()] == ["B", "n", "\uffff", "🦊"]
        write(store, {"id": "a", "sensitive": True}, namespace="secret")
        assert list(store.namespaces()) == ["B", "n", "secret", "\uffff", "🦊"]
        assert [(store.stats(name).memories, store.stats(name).namespaces) for name in ("secret", "b")] == [
            (1, 1),
            (0, 0),
        ]

    # ------------------------------------------------------------------ the wall, as a recall sees it

    @given(
        st.data(),
        st.sampled_from(["Where did Ada moor the boat?", "What did Bob cook in May", "tea rum gin", "How many boats"]),
        st.sampled_from([3, 100]),
        st.sampled_from(["any", "all", "auto"]),
    )
    @settings(
        max_examples=15,
        deadline=None,
        suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.differing_executors],
    )
    def test_what_one_namespace_holds_changes_no_score_that_a_leg_gives_in_another(
        self, store: Store, data: st.DataObject, question: str, depth: int, match: str
    ) -> None:
        """Each leg's list of B is the same but for one factor, whatever A's texts are: with A asked too, and without A.

        The factor is what scores of B's are worth beside A's: see semmem.legs.namespaces.
        Sessions, authors, titles, positions and times are the same in both. Where a list is cut at its depth, what is
        left of B is the head of B's own list. Ranks in the joint list, and so fused scores, may differ.
        """
        words = ["tea", "rum", "gin", "boat", "boats", "moor", "cook", "Ada", "Bob", "Loch Ness", "harbour", "?"]
        text = st.lists(st.sampled_from(words), min_size=1, max_size=5).map(" ".join)
        vector = st.lists(st.integers(-3, 3), min_size=3, max_size=3).filter(any)
        row = st.fixed_dictionaries(
            {"text": text, "vector": vector},
            optional={
                "title": st.sampled_from(["Loch Ness", "Harbour"]),
                "author": st.sampled_from(["Ada", "Bob"]),
                "session": st.sampled_from(["s", "t"]),
                "position": st.integers(0, 3),
            },
        )
        rows = data.draw(st.lists(row, min_size=1, max_size=8))
        a, b = (f"{letter}{len(store.namespaces())}" for letter in "ab")
        plan = semmem.recipe(
            "default", depths=dict.fromkeys(("lexical", "dense", "graph"), depth), lexical={"match": match}
        )
        legs = {leg: weight for leg, weight in plan.weights.items() if leg in store.capabilities}
        plan = replace(plan, weights=legs, graph=replace(plan.graph, related=1.0))
        recaller = Recaller(store, Legs(store, legs_of(store, "english")), lambda: "no embedder", "english")

        def remember(namespace: str, texts: bool) -> None:
            noise = data.draw(st.lists(st.tuples(text, vector), min_size=len(rows), max_size=len(rows)))
            of = rows if texts else [r | {"text": t, "vector": v} for r, (t, v) in zip(rows, noise, strict=True)]
            kept = [r if "dense" in store.capabilities else {k: v for k, v in r.items() if k != "vector"} for r in of]
            write(store, *({"id": str(at), **r} for at, r in enumerate(kept)), namespace=namespace)

        def lists(*namespaces: str) -> dict[str, list[tuple[str, float]]]:
            vector = [1, 0, 1] if "dense" in legs else None
            found = recaller.recall(question, namespaces, plan, filters=ANY, vector=vector).candidates
            assert not found.degraded
            return {
                leg: [(k[0], s) for k, s in zip(found.rankings[leg], found.raw[leg], strict=True) if k[2] == b]
                for leg in found.rankings
            }

        remember(b, texts=True)
        alone = lists(b)
        for _ in range(2):
            remember(a, texts=False)
            for leg, joint in lists(a, b).items():
                assert [id for id, _ in joint] == [id for id, _ in alone[leg]][: len(joint)], leg
                factor = max(
                    (score / own for (_, score), (_, own) in zip(joint, alone[leg], strict=False) if own), default=0.0
                )
                scaled = [factor * own for _, own in alone[leg][: len(joint)]]
                assert [score for _, score in joint] == pytest.approx(scaled, rel=1e-9, abs=1e-12), leg
                silent = leg == "graph" and not joint  # what starts from finds that match nothing says nothing
                assert depth < 100 or len(joint) == len(alone[leg]) or silent, leg
            store.forget(a, None, ANY, dry_run=False)
        recaller.close()
