"""The questions that a setting moved most are explained as they were asked."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from eval.datasets import Query
from eval.experiments.conditions import Condition
from eval.experiments.experiment import Experiment
from eval.experiments.explanations import write_moved
from eval.statistics.comparison import Comparison
from eval.statistics.measures import Measured
from semmem.model.recipe import RECIPES


class Asked:
    """Answers recalls, and notes the question and the time of each; it lists no memories."""

    def __init__(self) -> None:
        self.of: list[tuple[str, Any]] = []

    def recall(self, text: str, *, now: Any, **_: Any) -> Asked:
        self.of.append((text, now))
        return self

    def explain(self, id: str) -> str:
        return f"{id} is third."


def test_the_questions_that_moved_are_asked_again_at_the_time_that_they_had(tmp_path: Path) -> None:
    (tmp_path / "private").mkdir()
    then = datetime(2026, 3, 1, tzinfo=UTC)
    query = Query("q1", "Where is the key?", "n0", ("m1",), "fact", now=then)

    def measured(value: float) -> Measured:
        return Measured(("q1",), ("fact",), (False,), {"R@10": np.array([value])})

    comparison = {"name": "the graph leg", "group": "headline", "metric": "R@10", "verdict": "better"}
    experiment = Experiment(
        {"metrics": ["R@10"], "comparisons": [comparison]},
        measured={"seed": measured(0.0), "default": measured(1.0)},
        comparisons=[Comparison("the graph leg", "seed", "default", "graph")],
        queries=[query],
    )
    conditions = {name: Condition(name, RECIPES[name]) for name in ("seed", "default")}
    mem = Asked()
    text = write_moved(mem, experiment, conditions, tmp_path).read_text(encoding="utf-8")
    assert mem.of == [("Where is the key?", then)]
    assert "- q1 (fact), R@10 +1.000: Where is the key?\n\n```\nm1 is third.\n```" in text
