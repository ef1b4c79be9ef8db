"""Compare two conditions: pre-flight findings and the verdict, group by group."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from eval.datasets import Query
from eval.experiments.conditions import Condition
from eval.experiments.lists import AFTER, Asked, Found, Key
from eval.experiments.turnover import turnover
from eval.statistics.clusters import clusters
from eval.statistics.finds import Contradicted, Known, new
from eval.statistics.measures import AT_A_CUTOFF, CUTOFFS, Measured, Run
from eval.statistics.preflight import standing
from eval.statistics.significance import ALPHA, Paired, corrected, enough, paired
from eval.statistics.verdict import Standing, Verdict, judge, refusal

__all__ = ["Comparison", "ExperimentError", "Lists", "compare", "cutoff", "holder_of", "idle"]


class ExperimentError(Exception):
    """An experiment cannot be run or trusted; the message says why."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """``other`` against ``base``; above 0 means ``other`` is better. ``leg`` is what is studied, None: another setting.

    For an ablation ``base`` lacks the leg and ``other`` has it, so the delta is what the leg is worth. ``control`` is
    what the base is, where it stands for another explanation of that delta, such as a graph without edges.
    """

    name: str
    base: str
    other: str
    leg: str | None = None
    control: str | None = None


@dataclass(slots=True)
class Lists:
    """The lists of one group of recipes: ``asked`` by question, and the memories in them, ``found`` by namespace."""

    asked: dict[str, Asked]
    found: dict[str, dict[Key, Found]]


def compare(
    comparisons: Sequence[Comparison],
    metrics: Sequence[str],
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
    """Judge every comparison by every metric, in the headline and in every stratum.

    Holm runs over all that was asked in the run: over every comparison and metric of the headline, which is the
    question; and for a stratum over everything there is, headline and strata, because a stratum is one of many places
    to look. A comparison that is not evaluable takes no part in it and gets no statistics. ``dropped`` says, by
    condition and leg, which stage of the real pipeline dropped the leg's witness. Raises ExperimentError where what
    happened is not what arithmetic said.
    """
    groups = {
        group: [q for q in queries if (not q.apart if group == "headline" else q.stratum == group)]
        for group in next(iter(measured.values())).groups
    }
    of_question = clusters(queries)
    standings: dict[tuple[str, str, int], Standing] = {}
    known = Known()
    for k in {cutoff(metric) for metric in metrics}:
        for group, chosen in groups.items():
            for c in comparisons if chosen else ():
                standings[c.name, group, k] = _standing(
                    c, k, conditions, runs, lists, chosen, sizes, dropped=dropped or {}, known=known
                )
    triples = [
        (c, metric, group)
        for metric in metrics
        for group, chosen in groups.items()
        for c in comparisons
        if chosen and _evaluable(standings[c.name, group, cutoff(metric)])
    ]
    statistics = _statistics(triples, measured, of_question, seed)
    out = []
    for metric in metrics:
        k = cutoff(metric)
        for group, chosen in groups.items():
            for c in comparisons if chosen else ():
                found = standings[c.name, group, k]
                verdict = judge(found, statistics.get((c.name, metric, group)), metric=metric)
                turnover_counts = turnover(
                    chosen, runs[c.base], runs[c.other], k, own=_own(c, conditions, lists, chosen)
                )
                if verdict.kind == "not evaluable":
                    # How much moved is a fact; how much gold moved would be a delta by another name.
                    turnover_counts = {what: n for what, n in turnover_counts.items() if not what.endswith("gold")}
                out.append(
                    {
                        "name": c.name,
                        "base": c.base,
                        "other": c.other,
                        "leg": c.leg,
                        "control": c.control,
                        "group": group,
                        "metric": metric,
                        "values": dict(conditions[c.other].values),
                        "reach": dict(found.reach),
                        **verdict.as_dict(),
                        "turnover": turnover_counts,
                        "finds": found_by(found, verdict),
                    }
                )
    return out


def _own(
    c: Comparison, conditions: Mapping[str, Condition], lists: Mapping[str, Lists], queries: Sequence[Query]
) -> dict[str, Collection[str]]:
    """Return the finds of the studied leg by question; nothing where none is studied."""
    if c.leg is None:
        return {}
    holder = holder_of(c, conditions)
    without = conditions[c.base if holder.name == c.other else c.other]
    with_leg, lacking = lists[holder.name].asked, lists[without.name].asked
    return {q.id: new(holder, without, c.leg, with_leg[q.id], lacking[q.id]).keys() for q in queries}


def found_by(one: Standing, verdict: Verdict) -> dict[str, Any] | None:
    """Return the finds of the studied leg, JSON-ready; a verdict that is not evaluable has no gold beside it."""
    if one.finds is None:
        return None
    told = one.finds.as_dict()
    if verdict.kind == "not evaluable":
        told["parts"] = [{n: v for n, v in part.items() if not n.startswith("gold")} for part in told["parts"]]
    return told


def _evaluable(one: Standing) -> bool:
    reason = refusal(one)
    return reason is None or reason[0] == "ruled out"


def _standing(
    c: Comparison,
    k: int,
    conditions: Mapping[str, Condition],
    runs: Mapping[str, Run],
    lists: Mapping[str, Lists],
    queries: Sequence[Query],
    sizes: Mapping[str, int],
    *,
    dropped: Mapping[tuple[str, str], str],
    known: Known,
) -> Standing:
    holder = holder_of(c, conditions)
    without = conditions[c.base if holder.name == c.other else c.other]
    try:
        found = standing(
            holder,
            without,
            c.leg,
            k,
            queries,
            lists[holder.name].asked,
            lists[without.name].asked,
            sizes,
            found=lists[holder.name].found,
            run=runs[holder.name],
            known=known,
        )
    except Contradicted as error:
        raise ExperimentError(str(error)) from None
    return replace(
        found,
        idle=idle(conditions[c.base], conditions[c.other], lists[c.base], lists[c.other]),
        dropped=found.dropped or dropped.get((holder.name, c.leg or "")),
    )


def _statistics(
    triples: Sequence[tuple[Comparison, str, str]],
    measured: Mapping[str, Measured],
    of_question: Mapping[str, str],
    seed: int,
) -> dict[tuple[str, str, str], Paired]:
    """Compute the statistics of every test: Holm's family is the headline for its tests, all tests for a stratum."""
    headline = [triple for triple in triples if triple[2] == "headline"]
    differences = {}
    for c, metric, group in triples:
        tests = len(headline) if group == "headline" else len(triples)
        base, other = measured[c.base], measured[c.other]
        differences[c.name, metric, group] = paired(
            base.of(metric, group),
            other.of(metric, group),
            clusters=[of_question[base.ids[i]] for i in base.rows(group)],
            seed=seed,
            alpha=ALPHA / tests,
            samples=enough(tests),
        )
    first = corrected({triple: one for triple, one in differences.items() if triple[2] == "headline"})
    return corrected(differences) | first


def idle(base: Condition, other: Condition, of_base: Lists, of_other: Lists) -> str | None:
    """Return why the difference between two conditions can have no effect on these data, None when it can.

    A prior over equal importances or times, a bonus no memory earns, folding where no two memories are equal, or a rule
    that changes no list of any leg: no difference is then a fact of the data, not a result.
    """
    differ = {name for name, value in base.recipe.as_dict().items() if value != other.recipe.as_dict()[name]} - {"name"}
    memories = [memory for of_space in of_other.found.values() for memory in of_space.values()]
    if base.excluded != other.excluded or base.elsewhere != other.elsewhere:
        return None
    if differ and differ <= {"prior", "prior_floor"} and len({memory.importance for memory in memories}) <= 1:
        return "every memory has the same importance, so the prior multiplies all alike"
    if differ and differ <= {"recency_half_life", "recency_floor"} and not _have_several_times(of_other.found):
        return "all memories of a namespace were created at one time, so age multiplies all alike"
    if differ == {"period_floor"} and not any(lists.periods for lists in of_other.asked.values()):
        return "no question names a period of time, so none multiplies anything"
    if differ == {"period_floor"} and not _have_several_times(of_other.found):
        return "all memories of a namespace were created at one time, so a period multiplies all alike"
    if differ == {"exact_bonus"} and not any(lists.exact for lists in of_other.asked.values()):
        return "no memory matches a question word for word, so none earns the bonus"
    if differ == {"dedup"} and all(
        len({m.content for m in of_space.values()}) == len(of_space) for of_space in of_other.found.values()
    ):
        return "no two memories are equal, so nothing folds"
    if differ and not differ & AFTER and _same_lists(of_base.asked, of_other.asked):
        return "the setting changes no list of any leg on these data"
    return "the two conditions are the same" if not differ else None


def _have_several_times(by_namespace: Mapping[str, Mapping[Key, Found]]) -> bool:
    return any(len({memory.created_at for memory in of_space.values()}) > 1 for of_space in by_namespace.values())


def _same_lists(one: Mapping[str, Asked], other: Mapping[str, Asked]) -> bool:
    return one.keys() == other.keys() and all(
        (hit.legs, hit.regime, hit.exact) == (other[id].legs, other[id].regime, other[id].exact)
        for id, hit in one.items()
    )


def holder_of(comparison: Comparison, conditions: Mapping[str, Condition]) -> Condition:
    """Return the condition that has the studied leg: ``other``, unless only ``base`` has it."""
    other, base = conditions[comparison.other], conditions[comparison.base]
    return base if comparison.leg in base.recipe.legs and comparison.leg not in other.recipe.legs else other


def cutoff(metric: str) -> int:
    """Return the k of ``R@10`` and the like. Raises ExperimentError for a metric that is not known, or has none."""
    measure, _, k = metric.partition("@")
    if measure not in AT_A_CUTOFF or k not in map(str, CUTOFFS):
        raise ExperimentError(
            f"There is no metric {metric!r}; take one of {', '.join(AT_A_CUTOFF)} with a cut-off out of "
            f"{', '.join(map(str, CUTOFFS))}, such as R@10."
        )
    return int(k)
