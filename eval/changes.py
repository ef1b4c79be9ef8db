"""Compare the first default recipe with the second: each change by itself, all together, and rejected ones.

Every row is compared with the first, so a change that does harm cannot hide behind one that helps more.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from eval.experiments.conditions import Condition
from eval.statistics.comparison import Comparison
from semmem.model.recipe import Recipe, recipe, rules

__all__ = ["FORMER", "of_changes"]

FORMER = "default-0.1"
_Numbers: TypeAlias = Mapping[str, tuple[float, float | tuple[float, float]]]
_STEEP: _Numbers = {"lexical": (0.1, 4), "dense": (0.35, 8), "graph": (0.35, (0, 8))}
_TRIED: Mapping[str, _Numbers] = {
    "graph 2, 8": {"lexical": (0.175, 8), "dense": (0.35, 8), "graph": (0.35, (2, 8))},
    "all at 4, graph 0, 4": {"lexical": (0.2, 4), "dense": (0.35, 4), "graph": (0.35, (0, 4))},
    "all at 4, graph 2, 4": {"lexical": (0.2, 4), "dense": (0.35, 4), "graph": (0.35, (2, 4))},
    "steeper still": {"lexical": (0.1, 2), "dense": (0.35, 4), "graph": (0.35, (1, 4))},
    "dense twice": {"lexical": (0.35, 8), "dense": (0.7, 8), "graph": (0.35, (0, 8))},
    "equal votes at 2": {"lexical": (0.35, 2), "dense": (0.35, 2), "graph": (0.35, 2)},
    "equal votes at 4": {"lexical": (0.35, 4), "dense": (0.35, 4), "graph": (0.35, 4)},
}
"""Weight and rank constant of each leg, the graph's for questions that name something and for others."""


def of_changes() -> tuple[list[Condition], list[Comparison]]:
    """Return a plan: each change since the first default, and each rejected setting, against that default."""
    former, now = recipe(FORMER), recipe("two-regimes")
    steep = _with_weights(former, _STEEP)
    rows = {
        "bounded prior": recipe(former, prior_floor=None),
        "author rules in dialogues alone": recipe(former, conversation={"dialogue": True}),
        "what a question is about, for its answer": recipe(
            former, conversation={"before_asked": rules(now).before_asked}
        ),
        "named: a name that leads on": recipe(former, graph={"lone_names": now.graph.lone_names}),
        "named: a name of two memories": recipe(former, graph={"lone_names": "never"}),
        "what most legs put first is first": recipe(former, reserve=dict(now.reserve)),
        "every leg steep": steep,
        "every leg steep, no reserve": recipe(steep, reserve={}),
        now.name: now,
        "every name, else as two-regimes": recipe(now, graph={"lone_names": "always"}),
        "names of two memories, else as two-regimes": recipe(now, graph={"lone_names": "never"}),
        **{f"{name}, else as two-regimes": _with_weights(now, numbers) for name, numbers in _TRIED.items()},
    }
    conditions = [Condition(FORMER, former)]
    conditions += [Condition(name, recipe(plan, name=name)) for name, plan in rows.items()]
    return conditions, [Comparison(c.name, FORMER, c.name) for c in conditions[1:]]


def _with_weights(plan: Recipe, numbers: _Numbers) -> Recipe:
    def constant(value: float | tuple[float, float]) -> float | dict[str, float]:
        return {"named": value[0], "unnamed": value[1]} if isinstance(value, tuple) else value

    return recipe(
        plan,
        weights={leg: weight for leg, (weight, _) in numbers.items()},
        rank_constants={leg: constant(value) for leg, (_, value) in numbers.items()},
    )
