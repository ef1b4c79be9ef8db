"""Send a witness through the real store: check what the arithmetic says of a leg, or find the stage that drops it.

Reach is proved on the recipe. Whether the store, the extractor, the leg and what follows fusion let a memory through is
seen only by sending one: in a scratch namespace, with rivals, stage by stage (``Semmem.probe``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from eval.experiments.conditions import Condition
from eval.statistics.comparison import Comparison, holder_of
from semmem.model.errors import SemmemError

__all__ = ["Seen", "dropping_stage", "live_witnesses"]

Seen: TypeAlias = Mapping[tuple[str, str], Sequence[Mapping[str, Any]]]
"""By condition and leg: what became of the leg's witness in each regime."""
_MOST = 8
_ARITHMETIC = ("asked", "fused", "limit")
"""Stages whose answer is that of the fusion: reach has said it already."""


def live_witnesses(
    mem: Any,
    conditions: Mapping[str, Condition],
    comparisons: Sequence[Comparison],
    k: int,
    say: Callable[[str, int, int], None],
) -> dict[tuple[str, str], list[dict[str, Any]]]:
    """Probe the studied leg of every condition that has one, at most eight of them, at cut-off ``k``.

    A condition that throws a leg's finds away has no pipeline of its own to be sent through. A store that cannot be
    written to is not probed: its list holds one entry that says why.
    """
    wanted = []
    for comparison in comparisons:
        holder = holder_of(comparison, conditions)
        if comparison.leg and holder.excluded is None and comparison.leg in holder.recipe.legs:
            wanted.append((holder.name, comparison.leg))
    chosen = list(dict.fromkeys(wanted))[:_MOST]
    out: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for number, (name, leg) in enumerate(chosen, start=1):
        try:
            probed = mem.probe(recipe=conditions[name].recipe, k=k, leg=leg)
            out[name, leg] = [_kept(one) for one in probed]
        except SemmemError as error:
            out[name, leg] = [{"leg": leg, "k": k, "not probed": str(error)}]
        say("probing", number, len(chosen))
    return out


def dropping_stage(seen: Sequence[Mapping[str, Any]]) -> str | None:
    """Return which stage of the real pipeline drops a leg's witness in every regime, None where one comes back.

    What the fusion decides is not told here: that is what reach is about.
    """
    stages = [one.get("dropped") for one in seen]
    if not stages or any(stage is None or stage in _ARITHMETIC for stage in stages):
        return None
    return f"the real pipeline, at the stage “{stages[0]}” ({seen[0]['why'].rstrip('.')}),"


def _kept(one: Any) -> dict[str, Any]:
    told = one.as_dict()
    return {name: told[name] for name in ("leg", "regime", "k", "returned", "dropped", "why", "rank", "place", "class")}
