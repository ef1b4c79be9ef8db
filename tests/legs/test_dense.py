"""The dense leg against numpy, under filters, and without an embedder."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import semmem

DIMENSIONS, MEMORIES = 16, 120


def unit(seed: int, count: int) -> NDArray[np.float32]:
    """Return ``count`` random unit vectors."""
    raw = np.random.default_rng(seed).normal(size=(count, DIMENSIONS))
    return (raw / np.linalg.norm(raw, axis=1, keepdims=True)).astype(np.float32)


VECTORS, QUESTIONS = unit(1, MEMORIES), unit(2, 5)


@pytest.fixture
def mem(store_url: str) -> Iterator[semmem.Semmem]:
    with semmem.connect(store_url, embedder="none") as opened:
        yield opened


@pytest.fixture
def filled(mem: semmem.Semmem) -> semmem.Semmem:
    """Memory n has vector n; session s0 holds every thirtieth."""
    mem.remember_many(
        {"text": f"memory {n}", "id": f"{n:03}", "session": f"s{n % 30}", "vector": VECTORS[n]} for n in range(MEMORIES)
    )
    return mem


def ask(mem: semmem.Semmem, vector: Any, **how: Any) -> list[str]:
    found = mem.recall("anything", recipe=how.pop("recipe", "dense"), vector=vector, **how)
    assert not found.degraded
    return [hit.memory.id for hit in found]


def nearest(question: NDArray[np.float32], among: list[int]) -> list[str]:
    cosines = VECTORS[among].astype(np.float64) @ question.astype(np.float64)
    return [f"{among[i]:03}" for i in np.argsort(-cosines)]


def test_the_order_is_that_of_exact_cosines(filled: semmem.Semmem) -> None:
    for question in QUESTIONS:
        found = filled.recall("anything", recipe="dense", vector=question, limit=50)
        assert [h.memory.id for h in found] == nearest(question, list(range(MEMORIES)))[:50]
        cosines = [float(VECTORS[int(h.memory.id)].astype(np.float64) @ question.astype(np.float64)) for h in found]
        assert [h.legs["dense"].score for h in found] == pytest.approx(cosines, abs=1e-6)


def test_a_vector_that_is_not_a_unit_is_one_afterwards(filled: semmem.Semmem) -> None:
    assert ask(filled, QUESTIONS[0] * 250) == ask(filled, QUESTIONS[0].tolist())
    found = filled.recall("anything", recipe="dense", vector=VECTORS[7] * 9)
    assert found[0].memory.id == "007"
    assert found[0].legs["dense"].score == pytest.approx(1.0, abs=1e-6)


def test_a_filter_never_makes_it_return_too_few(filled: semmem.Semmem) -> None:
    inside = [n for n in range(MEMORIES) if n % 30 == 0]
    for question in QUESTIONS:
        assert ask(filled, question, filters={"sessions": ["s0"]}) == nearest(question, inside)
        narrow = semmem.recipe("dense", depths={"dense": 3})
        assert ask(filled, question, filters={"sessions": ["s0"]}, recipe=narrow) == nearest(question, inside)[:3]


def test_leaving_out_the_nearest_brings_the_next(filled: semmem.Semmem) -> None:
    order = nearest(QUESTIONS[1], list(range(MEMORIES)))
    assert ask(filled, QUESTIONS[1], exclude=order[:60]) == order[60:70]
    narrow = semmem.recipe("dense", depths={"dense": 10})
    assert ask(filled, QUESTIONS[1], exclude=order[:60], recipe=narrow) == order[60:70]


def test_another_namespace_is_out_of_sight_however_near(filled: semmem.Semmem) -> None:
    filled.remember("the nearest of all", id="elsewhere", namespace="other", vector=QUESTIONS[0])
    assert ask(filled, QUESTIONS[0], limit=200) == nearest(QUESTIONS[0], list(range(MEMORIES)))
    assert ask(filled, QUESTIONS[0], limit=1, namespace=["default", "other"]) == ["elsewhere"]


def test_copies_of_one_vector_are_cut_by_id_and_not_by_insertion(mem: semmem.Semmem) -> None:
    order = [(n * 7) % 30 for n in range(30)]  # 7 and 30 share no factor: every number once
    mem.remember_many({"text": f"copy {n}", "id": f"{n:02}", "vector": VECTORS[0]} for n in order)
    assert ask(mem, VECTORS[0], recipe=semmem.recipe("dense", depths={"dense": 5})) == ["00", "01", "02", "03", "04"]


def test_copies_beyond_a_small_depth_are_cut_by_id_too(mem: semmem.Semmem) -> None:
    mem.remember_many({"text": f"copy {n}", "id": f"c{9 - n}", "vector": VECTORS[0]} for n in range(9))
    shallow = semmem.recipe("dense", depths={"dense": 3})
    assert ask(mem, VECTORS[0], recipe=shallow, limit=3) == ["c1", "c2", "c3"]


def test_turns_around_the_nearest_are_found_only_where_the_filter_admits_them(mem: semmem.Semmem) -> None:
    mem.remember_many(
        {"text": f"turn {n}", "id": f"t{n}", "session": "s", "position": n, "vector": VECTORS[n]}
        | {"author": ("Ana", "Ben")[n % 2]}
        for n in range(8)
    )
    talk = semmem.recipe("dense", conversation=True)
    assert sorted(ask(mem, VECTORS[1], recipe=talk)) == [f"t{n}" for n in range(8)]
    assert sorted(ask(mem, VECTORS[1], recipe=talk, filters={"authors": ["Ana"]})) == ["t0", "t2", "t4", "t6"]


def test_what_the_named_author_said_rises_from_below_the_depth(mem: semmem.Semmem) -> None:
    across = VECTORS[1:72] - np.outer(VECTORS[1:72] @ VECTORS[0], VECTORS[0])
    across /= np.linalg.norm(across, axis=1, keepdims=True)
    near, further = VECTORS[0] + 0.3 * across[:70], VECTORS[0] + 0.35 * across[70]  # cosines of .958 and .944
    mem.remember_many({"text": f"note {n}", "id": f"n{n:02}", "vector": near[n]} for n in range(70))
    mem.remember("We sail at noon.", id="sail", session="s", author="Ana", vector=further)
    shallow = semmem.recipe("dense", conversation=True, depths={"dense": 3})
    found = mem.recall("What did Ana say?", vector=VECTORS[0], limit=3, recipe=shallow)
    assert found[0].memory.id == "sail"


@pytest.mark.parametrize("wrong", [[1.0] * 15, [1.0] * 17])
def test_a_question_of_another_length_is_refused_with_both_named(filled: semmem.Semmem, wrong: Any) -> None:
    with pytest.raises(semmem.EmbedderMismatch, match="external:16 with 16 dimensions"):
        filled.recall("anything", vector=wrong)


@pytest.mark.parametrize(
    "wrong",
    [
        [0.0] * DIMENSIONS,
        [float("nan")] * DIMENSIONS,
        [float("inf")] * DIMENSIONS,
        "abc",
        [True] * DIMENSIONS,
        [[1.0] * DIMENSIONS],
        1.0,
    ],
)
def test_a_question_that_points_nowhere_is_refused(filled: semmem.Semmem, wrong: Any) -> None:
    with pytest.raises(semmem.InvalidInput, match="vector must "):
        filled.recall("anything", vector=wrong)


def test_a_question_takes_the_vectors_that_a_memory_takes_however_large_their_numbers(filled: semmem.Semmem) -> None:
    huge = [1e39 * one for one in VECTORS[0].tolist()]
    plain = filled.recall("anything", vector=VECTORS[0], recipe="dense")
    assert [hit.memory.id for hit in filled.recall("anything", vector=huge, recipe="dense")] == [
        hit.memory.id for hit in plain
    ]


def test_a_memory_of_another_length_is_refused(filled: semmem.Semmem) -> None:
    with pytest.raises(semmem.EmbedderMismatch, match=r"vectors of 16 dimensions and this vector has 4;"):
        filled.remember("short", vector=[1.0, 0.0, 0.0, 0.0])
    assert filled.stats().memories == MEMORIES


def test_without_an_embedder_the_leg_is_degraded_with_the_reason_and_the_others_answer(mem: semmem.Semmem) -> None:
    mem.remember("The ferry leaves at dawn.", id="ferry")
    found = mem.recall("when does the ferry leave?")
    assert [h.memory.id for h in found] == ["ferry"]
    assert found.degraded == {"dense": "This Semmem was connected with embedder='none'."}
    assert mem.stats().vectors == 0


def test_rebuild_fills_in_what_was_stored_without_an_embedder(mem: semmem.Semmem, store_url: str) -> None:
    mem.remember("The ferry leaves at dawn.", id="ferry")
    mem.remember("ferries " * 400, id="long")
    with semmem.connect(store_url, embedder="hashing") as other:
        assert list(other.recall("ferry", recipe="dense")) == []
        assert other.rebuild().embedded == other.stats().vectors > 2  # the long one lies in parts
        assert other.recall("ferry", recipe="dense")[0].memory.id == "ferry"
        assert other.rebuild().embedded == 0


def test_a_question_to_an_empty_store_does_not_decide_who_fills_it(store_url: str) -> None:
    with semmem.connect(store_url, embedder="hashing") as mem:
        assert list(mem.recall("anybody there?")) == []
        assert mem.stats().embedder is None
        mem.remember("given", vector=[1.0, 0.0])
        assert mem.stats().embedder == "external:2"
        with pytest.raises(semmem.EmbedderMismatch, match=r"filled by external:2 .* connected with hashing"):
            mem.recall("anybody there?")


def test_a_store_that_another_process_filled_meanwhile_is_not_asked_with_the_wrong_model(store_url: str) -> None:
    class Other:
        name, dimensions, fingerprint, max_tokens = "other", 256, "other-1", None

        def count_tokens(self, text: str) -> int:
            return len(text.split())

        def embed(self, texts: list[str]) -> NDArray[np.float32]:
            return np.full((len(texts), 256), 1 / 16, dtype=np.float32)

    with semmem.connect(store_url, embedder="hashing") as first, semmem.connect(store_url, embedder=Other()) as second:
        assert list(first.recall("anybody there?")) == []
        second.remember("filled by the other")
        with pytest.raises(semmem.EmbedderMismatch, match=r"filled by other .* connected with hashing"):
            first.recall("anybody there?")
        with pytest.raises(semmem.EmbedderMismatch, match=r"filled by other .* connected with hashing"):
            first.remember("mine")
