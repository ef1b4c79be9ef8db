"""The vectors of a store and the embedder that filled them."""

from __future__ import annotations

import numpy as np
import pytest

from semmem.model.store import Store, graph_of
from tests.stores.conformance.hand_made import ANY, row_id_of, unit, write


class Vectors:
    """The vectors of a store and the embedder that filled them."""

    @pytest.mark.needs("dense")
    def test_the_first_embedder_to_claim_a_store_is_the_one_recorded(self, store: Store) -> None:
        first = {"name": "one", "dimensions": 3, "fingerprint": "f"}
        assert store.vectors.embedder() is None
        assert store.vectors.claim_embedder(first) == first
        assert store.vectors.claim_embedder({"name": "two", "dimensions": 4, "fingerprint": "g"}) == first
        assert store.vectors.embedder() == first

    @pytest.mark.needs("dense")
    def test_the_embedder_of_a_store_is_forgotten_with_its_last_vector(self, store: Store) -> None:
        write(store, {"id": "a", "vector": [1, 0, 0]}, {"id": "b", "vector": [0, 1, 0]}, {"id": "c"})
        first = store.vectors.embedder()
        assert first is not None
        graph_of(store).note_reextraction({"namespace": "n", "ord": 4})  # another fact about the store
        for id, left in (("c", first), ("a", first), ("b", None)):
            store.forget("n", id, ANY, dry_run=False)
            store.vectors.release_embedder()
            assert store.vectors.embedder() == left, id
        assert graph_of(store).reextraction() == {"namespace": "n", "ord": 4}

    @pytest.mark.needs("dense")
    def test_a_rebuild_fills_the_store_although_its_first_embedder_is_forgotten_meanwhile(self, store: Store) -> None:
        write(store, {"id": "a"})  # no vector yet, so a probe that began first forgets what it has claimed
        store.vectors.claim_embedder({"name": "one", "dimensions": 3, "fingerprint": "f"})
        other = {"name": "two", "dimensions": 3, "fingerprint": "g"}
        with store.vectors.rebuilding():
            store.vectors.open_staging(other)
            store.vectors.release_embedder()
            assert store.vectors.embedder() is None
            assert store.vectors.swap_staging(other, lambda memories: [np.eye(3)[0] for _ in memories], None) == 1
        assert store.vectors.embedder() == other

    @pytest.mark.needs("dense")
    def test_what_has_no_vector_of_the_next_embedder_is_listed_page_by_page(self, store: Store) -> None:
        for namespace in ("m", "n"):
            write(store, {"id": "a", "vector": [1, 0, 0]}, {"id": "b", "vector": [0, 1, 0]}, namespace=namespace)
        with store.vectors.rebuilding():
            store.vectors.open_staging({"name": "two", "dimensions": 3, "fingerprint": "g"})
            place, seen = ("", 0), []
            for _ in range(4):
                ((row_id, memory),) = store.vectors.missing_vectors(place, 1, staging=True)
                place = (memory.namespace, row_id)
                seen.append((memory.namespace, memory.id))
            assert seen == [("m", "a"), ("m", "b"), ("n", "a"), ("n", "b")]
            assert store.vectors.missing_vectors(place, 1, staging=True) == []

    @pytest.mark.needs("dense")
    def test_vectors_that_are_missing_can_be_found_and_added_once(self, store: Store) -> None:
        text = " ".join(f"Sentence number {n} is here." for n in range(100))
        write(store, {"id": "has", "vector": [1, 0, 0]}, {"id": "a", "title": "T"}, {"id": "long", "text": text})
        write(store, {"id": "b"}, namespace="z")
        parts = store.row_ids_of("n", "long")
        a, b = row_id_of(store, "a"), row_id_of(store, "b", "z")
        missing = [(m.namespace, o, m) for o, m in store.vectors.missing_vectors(("", 0), 100)]
        assert [(n, o) for n, o, _ in missing] == sorted([("n", a), *(("n", o) for o in parts), ("z", b)])
        assert next((m.id, m.title, m.text) for _, o, m in missing if o == a) == ("a", "T", "text of a")
        assert [o for o, _ in store.vectors.missing_vectors(missing[0][:2], 1)] == [missing[1][1]]
        store.forget("z", "b", ANY, dry_run=False)
        store.vectors.add_vectors([(n, o, unit(0, 1, 0)) for n, o, _ in missing])
        store.vectors.add_vectors([("n", a, unit(1, 0, 0))])  # it has one: nothing changes
        assert store.vectors.similarities(["n"], [a], unit(0, 1, 0)) == {a: pytest.approx(1)}
        assert list(store.vectors.missing_vectors(("", 0), 100)) == []
        assert store.stats(None).vectors == 2 + len(parts)  # not one of what was forgotten

    @pytest.mark.needs("dense")
    def test_the_turns_around_memories_come_with_their_vectors_and_those_without_one_alone(self, store: Store) -> None:
        said = {"session": "s", "author": "Ada"}
        write(store, {"id": "a", "vector": [1, 0, 0], **said}, {"id": "b", "vector": [0, 1, 0], **said}, {"id": "c"})
        write(store, {"id": "bare", "text": "no vector", **said}, {"id": "a"}, namespace="m")
        a, b, c, bare = (row_id_of(store, *name) for name in (("a",), ("b",), ("c",), ("bare", "m")))
        like = unit(1, 0, 0)
        turns, held, found = store.vectors.turns_with_vectors(["n"], [a, c], like)
        assert turns == store.session_turns(["n"], [a, c])
        assert [turn.row_id for turn in turns] == [a, b, c]
        assert (held.tolist(), found.tolist()) == ([a, b], [[1, 0, 0], [0, 1, 0]])
        turns, held, found = store.vectors.turns_with_vectors(["m"], [bare], like)
        assert ([turn.row_id for turn in turns], held.tolist(), found.tolist()) == ([bare], [], [])
        assert store.vectors.turns_with_vectors(["n"], [], like)[0] == []

    @pytest.mark.needs("dense")
    @pytest.mark.parametrize("exclude", [(), ("b",)])
    @pytest.mark.parametrize("depth", [1, 3, 10])
    def test_the_nearest_come_with_the_turns_around_them_as_if_both_were_asked_for(
        self, store: Store, exclude: tuple[str, ...], depth: int
    ) -> None:
        said = {"session": "s", "author": "Ada"}
        write(store, {"id": "a", "vector": [1, 0, 0], **said}, {"id": "b", "vector": [1, 1, 0], **said})
        write(store, {"id": "c", "vector": [0, 1, 0]}, {"id": "d", "vector": [0, 1, 0]})
        write(store, {"id": "e", "vector": [0, 0, 1]})
        write(store, {"id": "a", "vector": [1, 0, 0], **said}, namespace="m")
        scope, like = store.scope(("n",), ANY, exclude), unit(1, 0.5, 0)
        near, turns, held, found = store.vectors.nearest_with_turns(scope, like, depth)
        alone = store.vectors.nearest(scope, like, depth)
        assert (near.row_ids, near.scores, near.total) == (alone.row_ids, alone.scores, alone.total)
        assert len(near.row_ids) == min(depth, 5 - len(exclude))
        whole = store.vectors.turns_with_vectors(["n"], near.row_ids, like)
        assert (turns, held.tolist(), found.tolist()) == (whole[0], whole[1].tolist(), whole[2].tolist())
        assert len(turns) == {1: 2, 3: 4 if exclude else 3, 10: 5}[depth]  # b a c, or a c d and b beside a
