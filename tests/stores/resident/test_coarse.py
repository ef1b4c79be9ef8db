"""Vectors in bytes: nothing that may be among the nearest is left out, and no answer of a model depends on them."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from semmem.model.exchange import Ranking, Scope
from semmem.stores.packed_postings import FORWARD, OWNED_CANDIDATE
from semmem.stores.resident import coarse
from semmem.stores.resident.block import Block, Rows
from semmem.stores.resident.coarse import Coarse
from semmem.stores.resident.model import Model, State
from semmem.stores.resident.turns import Turns
from tests.stores.resident.test_block import row
from tests.stores.resident.trio import QUESTIONS, Trio, answer, change

STATE = State(1, 1, 0, 300, 0, False, 0.0, 0.0, None, "0")

NO_CANDIDATES = np.zeros(0, dtype=OWNED_CANDIDATE)


def unit(rows: NDArray[Any]) -> NDArray[np.float32]:
    length = np.linalg.norm(rows, axis=-1, keepdims=True)
    return (rows / np.where(length > 0, length, 1)).astype(np.float32)


def drawn(seed: int, count: int, dimensions: int, spread: float) -> NDArray[np.float32]:
    """Return unit vectors around a few centres, some of them equal, one zero and one along an axis."""
    chance = np.random.default_rng(seed)
    centres = chance.standard_normal((5, dimensions))
    vectors = unit(centres[chance.integers(0, 5, count)] + spread * chance.standard_normal((count, dimensions)))
    vectors[:3] = vectors[3]
    vectors[4] = 0
    vectors[5] = np.eye(dimensions, dtype=np.float32)[0]
    return vectors


@settings(deadline=None, max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.integers(0, 2**32 - 1),
    st.integers(6, 300),
    st.sampled_from([1, 3, 32, 384]),
    st.sampled_from([0.0, 0.01, 0.3, 3.0]),
    st.integers(1, 40),
    st.booleans(),
)
def test_what_is_among_the_nearest_is_never_left_out(
    monkeypatch: pytest.MonkeyPatch, seed: int, count: int, dimensions: int, spread: float, depth: int, some: bool
) -> None:
    monkeypatch.setattr(coarse, "_PIECE", 64)  # several pieces
    monkeypatch.setattr(coarse, "_MOST", 1)
    vectors = drawn(seed, count, dimensions, spread)
    chance = np.random.default_rng(seed + 1)
    question = unit(vectors[chance.integers(0, count)] + 0.1 * chance.standard_normal(dimensions))
    matching = chance.random(count) < 0.5 if some else None
    exact = vectors.astype(np.float64) @ question.astype(np.float64)
    if matching is not None:
        exact[~matching] = -np.inf
    last = np.sort(exact)[::-1][min(depth, count) - 1]
    in_bytes = Coarse.of(vectors)
    assert in_bytes is not None
    places = in_bytes.among_nearest(question, depth, matching)
    assert places is not None
    assert set(np.flatnonzero((exact >= last) & (exact > -np.inf)).tolist()) <= set(places.tolist())
    assert matching is None or matching[places].all()


def test_of_ten_thousand_vectors_a_hundred_are_left_and_where_all_are_alike_all_are_looked_at() -> None:
    vectors = drawn(7, 10_000, 384, 1.0)
    in_bytes = Coarse.of(vectors)
    assert in_bytes is not None
    assert in_bytes.size == 10_000 * (384 + 8)
    places = in_bytes.among_nearest(vectors[77], 50)
    assert places is not None
    assert 77 in places
    assert 50 <= len(places) < 150
    alike = Coarse.of(np.repeat(vectors[:1], 1_000, axis=0))
    assert alike is not None
    assert alike.among_nearest(vectors[77], 50) is None


def rows(row_ids: range, vectors: NDArray[np.float32]) -> Rows:
    none = np.zeros(len(row_ids), dtype=np.int64)
    turns = Turns.of([row(row_id) for row_id in row_ids])
    return Rows(
        turns, none, none, np.zeros(0, dtype=FORWARD), NO_CANDIDATES, np.array(row_ids, dtype=np.int64), vectors
    )


@pytest.mark.parametrize("excluded", [None, [7, 8, 9]])
@pytest.mark.parametrize("allowed", [None, range(1, 320, 2)])
def test_a_model_ranks_the_same_memories_with_and_without_bytes(
    monkeypatch: pytest.MonkeyPatch, allowed: Any, excluded: Any
) -> None:
    monkeypatch.setattr(coarse, "FEWEST", 100)
    monkeypatch.setattr(coarse, "_MOST", 1)
    vectors = drawn(3, 320, 32, 0.5)
    scope = Scope(("n",), 320, *(None if row_ids is None else np.array(row_ids) for row_ids in (allowed, excluded)))

    def ranked(*, in_bytes: bool) -> list[Ranking]:
        whole = Model("n", STATE, Block(rows(range(300), vectors[:300]), coarse=in_bytes))
        assert (whole._base.coarse is not None) is in_bytes
        later = whole.after(STATE, rows(range(300, 320), vectors[300:]), ["m3", "m5", "m70"])
        return [model.nearest(scope, vectors[at], 12) for model in (whole, later) for at in (0, 70, 311)]

    assert ranked(in_bytes=True) == ranked(in_bytes=False)
    assert all(len(one.row_ids) == 12 for one in ranked(in_bytes=True))


def test_a_namespace_with_vectors_in_bytes_is_answered_as_the_database_does(
    monkeypatch: pytest.MonkeyPatch, trio: Trio, space: str
) -> None:
    monkeypatch.setattr(coarse, "FEWEST", 10)
    monkeypatch.setattr(coarse, "_MOST", 1)
    change(trio.writer, space, ("many", 0))
    trio.warm(space)
    model = trio.models._models[space]
    assert model._base.coarse is not None
    assert model.size > Block(model._base.rows).size
    for question in QUESTIONS:
        expected = answer(trio.plain, question, namespace=space)
        for _ in range(3):
            assert answer(trio.kept, question, namespace=space) == expected


def test_vectors_are_in_bytes_only_where_no_other_namespace_has_to_make_room(
    monkeypatch: pytest.MonkeyPatch, trio: Trio, space: str
) -> None:
    monkeypatch.setattr(coarse, "FEWEST", 10)
    change(trio.writer, space, ("many", 0))
    load, most = trio.models._load, 1 << 30
    whole = load(space, most, most)
    assert whole is not None
    assert whole._base.coarse is not None
    for spare in (0, whole.size - 1):
        one = load(space, most, spare)
        assert one is not None
        assert one._base.coarse is None
    assert load(space, 100, most) is None


def test_without_what_multiplies_bytes_or_with_wrong_products_there_are_none(monkeypatch: pytest.MonkeyPatch) -> None:
    vectors = drawn(1, 200, 16, 1.0)
    monkeypatch.setattr(coarse, "FEWEST", 100)
    assert Block(rows(range(200), vectors), coarse=True).coarse is not None
    assert Block(rows(range(99), vectors[:99]), coarse=True).coarse is None
    with monkeypatch.context() as patched:
        patched.setattr(coarse, "find_spec", lambda name: None)
        assert Block(rows(range(200), vectors), coarse=True).coarse is None
    product = coarse._product
    with monkeypatch.context() as patched:
        patched.setattr(coarse, "_product", lambda rows: lambda digits: np.clip(product(rows)(digits), -9_000, 9_000))
        assert Coarse.of(vectors) is None
    with monkeypatch.context() as patched:
        patched.setattr(coarse, "import_module", lambda name: None)
        assert Coarse.of(vectors) is None


def test_where_the_library_fails_later_all_vectors_are_looked_at() -> None:
    in_bytes = Coarse.of(drawn(1, 200, 16, 1.0))
    assert in_bytes is not None

    def fails(digits: Any) -> Any:
        raise RuntimeError("out of order")

    in_bytes._products[0] = fails
    assert in_bytes.among_nearest(np.ones(16, dtype=np.float32), 3) is None


_ENDS = """
import threading, numpy as np
from semmem.stores.resident.coarse import Coarse
vectors = np.random.default_rng(0).standard_normal((30_000, 64), dtype=np.float32)
in_bytes, begun = Coarse.of(vectors), threading.Barrier(7)
def multiply():
    begun.wait()
    while True:
        in_bytes.among_nearest(vectors[3], 10)
def build():
    begun.wait()
    while True:
        Coarse.of(vectors)
for work in (multiply, multiply, multiply, multiply, build, build):
    threading.Thread(target=work, daemon=True).start()
begun.wait()
threading.Event().wait(0.2)
"""


def test_a_process_ends_well_while_its_threads_multiply_bytes() -> None:
    done = subprocess.run([sys.executable, "-c", _ENDS], capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stderr) == (0, "")
