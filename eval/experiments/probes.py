"""Send a witness through the real store: check what the arithmetic says of a leg, or find the stage that drops it.

Reach is proved on the recipe. Whether the store, the extractor, the leg and what follows fusion let a memory through is
seen only by sending one: in a scratch namespace, with competitors, stage by stage (``Semmem.probe``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from eval.experiments.conditions import Condition
from eval.statistics.comparison import Comparison, holder_of
from semmem.model.errors import SemmemError

__all__ = ["Seen", "dropping_stage", "live_witnesses"]

Seen: TypeAlias = Mapping[tuple[str, str], Sequence[Mapping[str, Any]]]
"""By condition and leg: the outcome of the leg's witness in each regime."""
_MOST = 8
_ARITHMETIC = ("asked", "fused", "limit")
"""Stages of the fusion, of which reach already says what they do."""


def live_witnesses(
    mem: Any,
    conditions: Mapping[str, Condition],
    comparisons: Sequence[Comparison],
    k: int,
    say: Callable[[str, int, int], None],
) -> dict[tuple[str, str], list[dict[str, Any]]]:
    """Probe the studied leg of every condition that has one, at most eight of them, at cut-off ``k``.

    A condition that drops a leg's list has no pipeline through which a witness could be sent. A store that cannot be
    written to is not probed: its list holds one entry that says why.
    """
    pairs = []
    for comparison in comparisons:
        holder = holder_of(comparison, conditions)
        if comparison.leg and holder.excluded is None and comparison.leg in holder.recipe.legs:
            pairs.append((holder.name, comparison.leg))
    studied = list(dict.fromkeys(pairs))[:_MOST]
    out: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for number, (name, leg) in enumerate(studied, start=1):
        try:
            probes = mem.probe(recipe=conditions[name].recipe, k=k, leg=leg)
            out[name, leg] = [_summary(one) for one in probes]
        except SemmemError as error:
            out[name, leg] = [{"leg": leg, "k": k, "not probed": str(error)}]
        say("probing", number, len(studied))
    return out


def dropping_stage(seen: Sequence[Mapping[str, Any]]) -> str | None:
    """Return which stage of the real pipeline drops a leg's witness in every regime, None where one comes back.

    Stages of the fusion are not returned: reach says what the fusion does.
    """
    stages = [one.get("dropped") for one in seen]
    if not stages or any(stage is None or stage in _ARITHMETIC for stage in stages):
        return None
    return f"the real pipeline, at the stage “{stages[0]}” ({seen[0]['why'].rstrip('.')}),"


def _summary(one: Any) -> dict[str, Any]:
    values = one.as_dict()
    return {
        name: values[name] for name in ("leg", "regime", "k", "returned", "dropped", "why", "rank", "place", "class")
    }
