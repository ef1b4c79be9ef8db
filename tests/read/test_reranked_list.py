"""The list after a reranker: those that it saw by its scores, the others behind, last those that are not valid now."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from semmem.fusion import Fused
from semmem.read.candidates import Candidates, Cut, Group
from semmem.read.steps import _below, _rerank


def listed(scores: list[float], judged: list[float], lapsed: frozenset[int] = frozenset()) -> list[Fused]:
    """Return the list of memories with these fused scores, of which a reranker gave the first its own.

    ``lapsed`` are the places of those that are not valid now.
    """
    groups: list[Group] = [(Fused((f"m{at}", 0, "n"), s, {"dense": s}, {}), ()) for at, s in enumerate(scores)]
    terms = {groups[at][0].key: {"relevance": score} for at, score in enumerate(judged)}
    metadata = {group[0].key: SimpleNamespace(row_id=at) for at, group in enumerate(groups)}
    scope = SimpleNamespace(lapsed=lapsed)
    candidates = cast(Candidates, SimpleNamespace(reranked=terms, metadata=metadata, scope=scope))
    return [fused for fused, _ in _below(_rerank(groups, candidates, cast(Any, Cut)), candidates, cast(Any, Cut))]


def test_a_score_behind_the_reranker_is_not_above_its_least_though_the_product_rounds_up() -> None:
    assert 1.43 * (0.72 / 1.43) > 0.72
    assert [fused.score for fused in listed([1.5, 1.43, 0.715], [0.72])] == [0.72, 0.72, pytest.approx(0.36)]


def test_behind_a_score_below_zero_all_others_have_that_score() -> None:
    found = listed([1.0, 0.5, 0.25], [-2.0])
    assert [(fused.score, dict(fused.components)) for fused in found] == [
        (-2.0, {"relevance": -2.0}),
        (-2.0, {"dense": -2.0}),
        (-2.0, {"dense": -2.0}),
    ]


def test_a_score_of_0_behind_a_score_below_zero_is_the_sum_of_its_components_too() -> None:
    assert [(fused.score, dict(fused.components)) for fused in listed([1.0, 0.0], [-2.0])][1] == (-2.0, {"dense": -2.0})


def test_what_is_not_valid_now_has_no_higher_score_than_a_score_below_zero_before_it() -> None:
    found = listed([1.0, 0.5, 0.25], [3.0, -2.0, -1.0], lapsed=frozenset([0, 2]))
    assert [(fused.key[0], fused.score, dict(fused.components)) for fused in found] == [
        ("m1", -2.0, {"relevance": -2.0}),
        ("m0", -2.0, {"relevance": -2.0}),
        ("m2", -2.0, {"relevance": -2.0}),
    ]


@given(
    st.lists(st.floats(1e-6, 3), min_size=1, max_size=8).map(lambda some: sorted(some, reverse=True)),
    st.lists(st.floats(-5, 5), max_size=4),
    st.frozensets(st.integers(0, 7)),
)
def test_scores_fall_and_are_the_sum_of_their_components(
    scores: list[float], judged: list[float], lapsed: frozenset[int]
) -> None:
    found = listed(scores, judged[: len(scores)], lapsed)
    assert [fused.score for fused in found] == sorted((fused.score for fused in found), reverse=True)
    for fused in found:
        assert sum(fused.components.values()) == pytest.approx(fused.score, abs=1e-12, rel=1e-12)
