"""Recall of several systems: what a file keeps of those that are not measured again."""

from __future__ import annotations

from typing import Any

import pytest

from eval import peers


def on(sha256: str, **recall: float) -> dict[str, Any]:
    """Return what is measured on a set of these bytes."""
    return {"corpus": {"name": "harbour", "sha256": sha256}, "systems": {n: {"R@10": r} for n, r in recall.items()}}


def test_a_system_that_is_measured_again_stands_beside_what_was_known_of_the_others() -> None:
    found = peers.kept(on("a1", semmem=0.91), on("a1", semmem=0.9, txtai=0.78))
    assert found == on("a1", semmem=0.91, txtai=0.78)


def test_what_was_known_of_a_set_with_other_bytes_is_not_kept() -> None:
    assert peers.kept(on("b2", semmem=0.91), on("a1", semmem=0.9, txtai=0.78)) == on("b2", semmem=0.91)


def test_a_set_that_no_file_knows_has_the_measured_system_alone() -> None:
    assert peers.kept(on("a1", semmem=0.91), None) == on("a1", semmem=0.91)


def test_an_unknown_system_is_told_beside_those_there_are() -> None:
    with pytest.raises(SystemExit, match="There is no system 'txt' to measure; there are semmem, bm25s"):
        peers.main(["--data", "eval/data/harbour", "--only", "txt"])
