"""The measurement of the page: what it says of its times."""

from __future__ import annotations

from eval.page import summary


def test_times_are_told_by_their_median_and_their_95th_percentile() -> None:
    assert summary([float(n) for n in range(1, 22)]) == {"median": 11.0, "p95": 20.0}
    assert summary([7.25]) == {"median": 7.2, "p95": 7.2}
