"""Statements 21 and 22 of our origins: the reciprocal rank fusion of synalinks, over rows of any kind of search."""

from __future__ import annotations

import pytest

from semmem.list_fusion import fuse_rows
from semmem.model.errors import InvalidInput


def test_21_any_number_of_lists_is_fused_with_ranks_from_one_and_the_score_is_written_onto_a_copy() -> None:
    first = [{"id": "a", "text": "A"}, {"id": "b", "text": "B"}]
    second = [{"id": "b", "text": "B"}]
    third = [{"id": "c", "text": "C"}, {"id": "b", "text": "B"}]
    fused = fuse_rows([first, None, second, third], id_key="id")
    # b: 1/62 + 1/61 + 1/62 = .04865; a and c: 1/61 = .01639, a first seen
    assert fused == [
        {"id": "b", "text": "B", "rrf_score": pytest.approx(2 / 62 + 1 / 61)},
        {"id": "a", "text": "A", "rrf_score": pytest.approx(1 / 61)},
        {"id": "c", "text": "C", "rrf_score": pytest.approx(1 / 61)},
    ]
    assert first[0] == {"id": "a", "text": "A"}  # the rows given are as they were


def test_21_without_an_id_key_rows_are_the_same_when_all_of_them_is_in_any_order_of_keys() -> None:
    fused = fuse_rows(
        [[{"a": 1, "b": {"x": [1, 2], "y": None}}], [{"b": {"y": None, "x": [1, 2]}, "a": 1}, {"a": 1, "b": 0}]],
        k_rank=9,
    )
    # the first two are one row: 1/10 + 1/10; the last: 1/11
    assert [row["rrf_score"] for row in fused] == [pytest.approx(0.2), pytest.approx(1 / 11)]


def test_21_with_an_id_key_rows_of_one_id_are_the_same_whatever_else_they_say() -> None:
    fused = fuse_rows([[{"id": 1, "from": "words"}], [{"id": 1, "from": "vectors"}]], id_key="id")
    assert fused == [{"id": 1, "from": "words", "rrf_score": pytest.approx(2 / 61)}]


def test_21_the_fused_rows_are_cut_to_k() -> None:
    rows = [{"id": i} for i in range(5)]
    assert [row["id"] for row in fuse_rows([rows], k=2, id_key="id")] == [0, 1]
    assert len(fuse_rows([rows], id_key="id")) == 5
    assert fuse_rows([None, None]) == []


def test_21_a_row_without_the_id_key_is_refused_with_a_sentence() -> None:
    with pytest.raises(InvalidInput, match="A row at rank 2 has no 'id'"):
        fuse_rows([[{"id": 1}, {"name": 2}]], id_key="id")


def test_22_only_the_order_of_each_list_counts_so_lists_of_any_search_mix() -> None:
    similarity = [{"id": "a", "cosine": 0.91}, {"id": "b", "cosine": 0.90}]
    full_text = [{"id": "b", "bm25": 17.0}, {"id": "c", "bm25": 2.0}]
    regex = [{"id": "c", "matches": 3}]
    graph = [{"id": "b", "mass": 1e-6}]
    order = [row["id"] for row in fuse_rows([similarity, full_text, regex, graph], id_key="id")]
    scaled = [[{**row, "cosine": -1000.0} for row in similarity], full_text, regex, graph]
    # b: 1/62 + 1/61 + 1/61; c: 1/62 + 1/61; a: 1/61
    assert order == ["b", "c", "a"]
    assert [row["id"] for row in fuse_rows(scaled, id_key="id")] == order


def test_a_row_that_a_list_names_twice_counts_once_and_none_is_wanted_of_nothing() -> None:
    (row,) = fuse_rows([[{"id": 1}, {"id": 1}]], id_key="id")
    assert row["rrf_score"] == 1 / 61
    assert fuse_rows([[{"id": 1}]], k=0, id_key="id") == []
