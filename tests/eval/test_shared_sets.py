"""The three tuning sets through remember_many and recall, every recipe; skipped where the sets are not there."""

from __future__ import annotations

import math
import os
from pathlib import Path

import pytest

import eval.datasets as datasets
import semmem

ROOT = Path(os.environ.get("SEMMEM_EVAL_DATA") or Path(__file__).parents[2] / ".." / "shared" / "data")
QUESTIONS = 6


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", ["hotpotqa100", "locomo3", "musique100"])
def test_in_every_recipe_components_sum_to_the_score_on_real_texts(name: str, store_url: str) -> None:
    if not (ROOT / name).is_dir():
        pytest.skip(f"the set {name} is not beside this checkout")
    corpus = datasets.load(ROOT / name)
    with semmem.connect(store_url, embedder="hashing") as mem:
        report = mem.remember_many(corpus.memories)
        assert report.rejected == ()
        assert report.remembered == len(list(corpus.memories))
        for query in list(corpus.queries)[:: max(1, len(corpus.queries) // QUESTIONS)]:
            for recipe in semmem.RECIPES:
                answer = mem.recall(query.text, namespace=query.namespace, recipe=recipe)
                assert answer.degraded == {}
                assert len({hit.memory.id for hit in answer}) == len(answer) > 0
                for hit in answer:
                    assert math.isclose(math.fsum(hit.components.values()), hit.score, rel_tol=0, abs_tol=1e-12)
                    assert 0 <= hit.score <= 1
