"""What the docstrings of the pure functions promise at the edges of their arguments."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from semmem.list_fusion import Entry, composite_terms, dedup, fuse, fuse_rows, fuse_scores, recency, rerank

NOW = datetime(2026, 6, 1, tzinfo=UTC)


def test_a_row_that_a_list_names_twice_counts_at_its_first_place() -> None:
    rows = fuse_rows([[{"id": "a"}, {"id": "b"}, {"id": "a"}], [{"id": "b"}]], id_key="id", k_rank=0)
    # b: 1/2 + 1/1; a: 1/1, and not 1/1 + 1/3
    assert [(row["id"], row["rrf_score"]) for row in rows] == [("b", 1.5), ("a", 1.0)]


@pytest.mark.parametrize(("k", "shown"), [(None, 3), (5, 3), (2, 2), (0, 0), (-1, 0)])
def test_as_many_rows_are_returned_as_are_asked_for_and_none_for_zero_or_less(k: int | None, shown: int) -> None:
    assert len(fuse_rows([[{"id": "a"}, {"id": "b"}, {"id": "c"}]], k)) == shown


def test_an_id_that_a_list_names_twice_counts_at_its_first_place() -> None:
    fused = fuse([[Entry("a"), Entry("b"), Entry("a")]], rank_constant=1)
    assert [(entry.id, entry.score) for entry in fused] == [("a", 1.0), ("b", 0.5)]
    scored = fuse_scores([[Entry("a", 1.0), Entry("b", 0.0), Entry("a", 0.5)]])
    assert [(entry.id, entry.score) for entry in scored] == [("a", 1.0), ("b", 0.0)]


@pytest.mark.parametrize(("importance", "term"), [(-1.0, 0.0), (0.0, 0.0), (0.4, 0.06), (1.0, 0.15), (7.0, 0.15)])
def test_an_importance_out_of_range_counts_as_the_nearest_in_it(importance: float, term: float) -> None:
    (terms,) = composite_terms([1.0], [None], [importance], NOW)
    assert terms == {"relevance": 0.8, "recency": 0.0, "importance": pytest.approx(term)}


def test_an_access_in_the_future_is_as_recent_as_now() -> None:
    assert recency(NOW + timedelta(days=30), NOW) == recency(NOW, NOW) == 1.0
    assert recency(NOW - timedelta(days=30), NOW) == 0.5
    ahead = rerank([Entry("a", 1.0, accessed_at=NOW + timedelta(days=365), importance=0.0)], NOW)
    assert ahead[0].score == pytest.approx(0.85)


def test_a_limit_of_zero_or_less_leaves_out_nothing() -> None:
    entries = [Entry("a", text="One."), Entry("b", text="one."), Entry("c", text="Two.")]
    assert [len(dedup(entries, limit)) for limit in (-1, 0, 1, 9)] == [2, 2, 1, 2]
