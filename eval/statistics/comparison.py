"""Which two conditions are compared, what pre-flight says of it, and the verdict, group by group."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from eval.datasets import Query
from eval.experiments.conditions import Condition
from eval.experiments.lists import AFTER, Asked, Found, Key
from eval.experiments.turnover import turnover
from eval.statistics.measures import CUTOFFS, Measured, Run
from eval.statistics.preflight import standing
from eval.statistics.significance import ALPHA, Paired, family, holm, paired
from eval.statistics.verdict import Standing, judge, refusal

__all__ = ["Comparison", "ExperimentError", "Lists", "compare", "cutoff", "holder_of", "idle"]


class ExperimentError(Exception):
    """An experiment cannot be run or trusted; the message says why."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """``other`` against ``base``; above 0 means ``other`` is better. ``leg`` is what is studied, None: another setting.

    For an ablation ``base`` lacks the leg and ``other`` has it, so the delta is what the leg is worth.
    """

    name: str
    base: str
    other: str
    leg: str | None = None


@dataclass(slots=True)
class Lists:
    """The lists of one group of recipes: what was asked, and what fusion knows of the memories met."""

    asked: dict[str, Asked]
    found: dict[str, dict[Key, Found]]


def compare(
    comparisons: Sequence[Comparison],
    metric: str,
    conditions: Mapping[str, Condition],
    runs: Mapping[str, Run],
    measured: Mapping[str, Measured],
    lists: Mapping[str, Lists],
    queries: Sequence[Query],
    sizes: Mapping[str, int],
    *,
    seed: int = 0,
    dropped: Mapping[tuple[str, str], str] | None = None,
) -> list[dict[str, Any]]:
    """Judge every comparison in the headline and in every stratum; Holm runs across the comparisons of a group.

    A comparison that is refused takes no part in the correction and gets no statistics. ``dropped`` says, by condition
    and leg, which stage of the real pipeline dropped the leg's witness.
    """
    k = cutoff(metric)
    out = []
    any_measured = next(iter(measured.values()))
    for group in any_measured.groups:
        chosen = [q for q in queries if (not q.apart if group == "headline" else q.stratum == group)]
        if not chosen:
            continue
        standings: dict[str, Standing] = {}
        asked_by_base: dict[str, list[Comparison]] = defaultdict(list)
        for c in comparisons:
            holder = holder_of(c, conditions)
            standings[c.name] = standing(
                holder,
                c.leg,
                k,
                chosen,
                lists[holder.name].asked,
                sizes,
                legs={*conditions[c.base].recipe.legs, *conditions[c.other].recipe.legs},
            )
            standings[c.name] = replace(
                standings[c.name],
                idle=idle(conditions[c.base], conditions[c.other], lists[c.base], lists[c.other]),
                dropped=standings[c.name].dropped or (dropped or {}).get((holder.name, c.leg or "")),
            )
            if refusal(standings[c.name]) is None:
                asked_by_base[c.base].append(c)
        paired = _paired(asked_by_base, measured, metric, group, seed)
        for c in comparisons:
            holder = holder_of(c, conditions)
            verdict = judge(standings[c.name], paired.get(c.name), metric=metric)
            moved = turnover(
                chosen, runs[c.base], runs[c.other], k, leg=c.leg, holder=holder.recipe, asked=lists[holder.name].asked
            )
            if verdict.refused:
                # How much moved is a fact; how much gold moved would be a delta by another name.
                moved = {what: n for what, n in moved.items() if not what.endswith("gold")}
            out.append(
                {
                    "name": c.name,
                    "base": c.base,
                    "other": c.other,
                    "leg": c.leg,
                    "group": group,
                    "metric": metric,
                    "values": dict(conditions[c.other].values),
                    "reach": dict(standings[c.name].reach),
                    **verdict.as_dict(),
                    "turnover": moved,
                }
            )
    return out


def _paired(
    asked: Mapping[str, Sequence[Comparison]], measured: Mapping[str, Measured], metric: str, group: str, seed: int
) -> dict[str, Any]:
    """Compare all evaluable comparisons of a group as one family, also where their bases differ."""
    every = [c for some in asked.values() for c in some]
    if not every:
        return {}
    if len(asked) == 1:
        base = measured[every[0].base].of(metric, group)
        return dict(family(base, {c.name: measured[c.other].of(metric, group) for c in every}, seed=seed))
    alpha = ALPHA / len(every)
    found = {
        c.name: paired(measured[c.base].of(metric, group), measured[c.other].of(metric, group), seed=seed, alpha=alpha)
        for c in every
    }
    corrected = holm([at.p for at in found.values()])
    return {
        name: Paired(**{**at.as_dict(), "p_holm": p}) for (name, at), p in zip(found.items(), corrected, strict=True)
    }


def idle(base: Condition, other: Condition, of_base: Lists, of_other: Lists) -> str | None:
    """Say why what differs between two conditions can do nothing on these data, None when it can.

    A prior over equal importances, a bonus no memory earns, folding where no two memories are equal, or a rule that
    changes no list of any leg: their null is a fact of the data, not a finding.
    """
    differ = {name for name, value in base.recipe.as_dict().items() if value != other.recipe.as_dict()[name]} - {"name"}
    met = [memory for of_space in of_other.found.values() for memory in of_space.values()]
    if base.excluded != other.excluded:
        return None
    if differ and differ <= {"prior", "prior_floor"} and len({memory.importance for memory in met}) <= 1:
        return "every memory has the same importance, so the prior multiplies all alike"
    if differ == {"exact_bonus"} and not any(asked.exact for asked in of_other.asked.values()):
        return "no memory matches a question word for word, so none earns the bonus"
    if differ == {"dedup"} and all(
        len({m.content for m in of_space.values()}) == len(of_space) for of_space in of_other.found.values()
    ):
        return "no two memories are equal, so nothing folds"
    if differ and not differ & AFTER and _same_lists(of_base.asked, of_other.asked):
        return "the setting changes no list of any leg on these data"
    return "the two conditions are the same" if not differ else None


def _same_lists(one: Mapping[str, Asked], other: Mapping[str, Asked]) -> bool:
    return one.keys() == other.keys() and all(
        (at.legs, at.regime, at.exact) == (other[id].legs, other[id].regime, other[id].exact) for id, at in one.items()
    )


def holder_of(comparison: Comparison, conditions: Mapping[str, Condition]) -> Condition:
    """Return the condition that has the studied leg: ``other``, unless only ``base`` has it."""
    other, base = conditions[comparison.other], conditions[comparison.base]
    return base if comparison.leg in base.recipe.legs and comparison.leg not in other.recipe.legs else other


def cutoff(metric: str) -> int:
    """Return the k of ``R@10`` and the like. Raises ExperimentError for a metric without one."""
    _, at, k = metric.partition("@")
    if not at or not k.isdigit() or int(k) not in CUTOFFS:
        raise ExperimentError(
            f"A verdict needs a metric with a cut-off out of {', '.join(map(str, CUTOFFS))}, such as R@10."
        )
    return int(k)
