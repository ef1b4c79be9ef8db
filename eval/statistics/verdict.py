"""Give each condition one of six verdicts, each named after what was shown, and none that the data cannot answer.

A leg that *cannot* matter must not be reported as a leg that *does not* matter. So what pre-flight found is judged
before any statistic is looked at, and a condition that is not evaluable carries no delta at all. Where arithmetic keeps
every find of a leg out of the first k, the leg may still change a measure, by votes for what others found. That delta
has a key of its own, *reranking*; refused is the claim that the leg finds, or does not find, anything.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from eval.statistics.finds import Finds
from eval.statistics.significance import ALPHA, Paired
from semmem.model.reports import counted

__all__ = [
    "REFUSED",
    "Kind",
    "Standing",
    "Verdict",
    "bounds",
    "interval",
    "judge",
    "kind_of",
    "numbers",
    "numbers_of",
    "refusal",
]

Kind: TypeAlias = Literal["helps", "hurts", "not separated", "described only", "ruled out", "not evaluable"]
REFUSED: tuple[Kind, ...] = ("ruled out", "not evaluable")
EFFECT = 0.05
"""The difference for which a verdict says how many questions would show it."""
_FORMER: Mapping[str, Kind] = {"no difference": "not separated", "re-ranking only": "ruled out"}
"""The names that results of schema 2 and before have."""
_MOST = 0.5


@dataclass(frozen=True, slots=True)
class Standing:
    """What pre-flight found about one comparison at the metric's cut-off ``k``.

    ``leg`` is the leg under study, None when the condition changes something else. ``reach`` is the class of its first
    place in every regime that a question is in, the strongest over these questions, for the lists that there are.
    ``finds`` are the memories that stand in no list without it, each with the class of its ranks. Shares are of the
    questions measured: ``vacuous`` where k is not below the candidates in scope, ``empty`` where the leg returned
    nothing. ``dropped`` says which later stage drops what only the leg found, if one does. ``degraded`` says which leg
    failed to answer how many questions, and why: a leg that did not answer was not measured. ``idle`` says why the
    setting under study can do nothing on these data.
    """

    k: int
    leg: str | None = None
    reach: Mapping[str, str] = field(default_factory=dict)
    vacuous: float = 0.0
    empty: float = 0.0
    finds: Finds | None = None
    dropped: str | None = None
    degraded: str | None = None
    idle: str | None = None
    questions: int = 0


@dataclass(frozen=True, slots=True)
class Verdict:
    """A verdict, its sentence, and the statistics it rests on: None when the comparison was refused.

    ``reranking`` is what a leg changed none of whose finds can enter: an order, and what its votes and seeds brought.
    """

    kind: Kind
    sentence: str
    paired: Paired | None
    notes: tuple[str, ...] = ()
    reranking: Paired | None = None

    def __post_init__(self) -> None:
        if (self.kind in REFUSED) != (self.paired is None):
            raise ValueError("A refused comparison has no statistics, and every other one has them.")
        if self.reranking is not None and self.kind != "ruled out":
            raise ValueError("Only a leg none of whose finds can enter has a re-ranking delta.")

    @property
    def refused(self) -> bool:
        """True when nothing may be said about what the leg finds."""
        return self.kind in REFUSED

    def as_dict(self) -> dict[str, Any]:
        """Return plain JSON-ready values; a verdict that is not evaluable has no key that holds a number."""
        out: dict[str, Any] = {"verdict": self.kind, "sentence": self.sentence, "notes": list(self.notes)}
        if self.paired is not None:
            out["paired"] = self.paired.as_dict()
        if self.reranking is not None:
            out["reranking"] = self.reranking.as_dict()
        return out


def judge(standing: Standing, paired: Paired | None, *, metric: str = "the metric", alpha: float = ALPHA) -> Verdict:
    """Return the verdict on a comparison: refusals first, then the Holm-corrected p value.

    ``paired`` is condition minus base, oriented so that above 0 the thing under study helps. It is ignored when the
    comparison is not evaluable, and has the name of re-ranking where the leg can do nothing else.
    """
    notes = tuple(_notes(standing))
    if refusal_ := refusal(standing):
        kind, reason = refusal_
        return Verdict(kind, f"{kind}: {reason}", None, notes, reranking=paired if kind == "ruled out" else None)
    if paired is None:
        return Verdict("not evaluable", "not evaluable: no question could be measured", None, notes)
    kind = _kind(paired, alpha)
    needed = f": {questions_to_show(paired):,} questions needed for .05" if kind == "not separated" else ""
    return Verdict(kind, f"{kind}{needed}: {metric} {numbers(paired)}", paired, notes)


def _kind(paired: Paired, alpha: float) -> Kind:
    if paired.p_holm is None:
        return "described only"
    if paired.p_holm < alpha and paired.delta:
        return "helps" if paired.delta > 0 else "hurts"
    return "described only" if paired.mde is None else "not separated"  # too few for any effect to be found


def questions_to_show(paired: Paired, effect: float = EFFECT) -> int:
    """Return how many questions with the spread of these would show a difference of ``effect``, with 80 % power."""
    return max(2, math.ceil(paired.n * ((paired.mde or 0.0) / effect) ** 2))


def bounds(paired: Mapping[str, Any]) -> tuple[float, float]:
    """Return between which differences the true one may lie, of a kept comparison that is not separated.

    Neither an effect inside the interval nor one that the questions could not have shown may be denied. A mean of
    shares stays between 0 and 1, so what lies beyond these from the measured base is left out, but for the interval:
    its ends allow for another base than the measured one.
    """
    low, high = paired["low"] or 0.0, paired["high"] or 0.0
    far = max(paired["mde"], abs(low), abs(high))
    return min(low, max(-far, -paired["base"])), max(high, min(far, 1.0 - paired["base"]))


def kind_of(comparison: Mapping[str, Any]) -> Kind:
    """Return the verdict of a kept comparison, in the words of today."""
    kind: Kind = _FORMER.get(comparison["verdict"], comparison["verdict"])
    return kind


def refusal(standing: Standing) -> tuple[Kind, str] | None:
    """Return the kind and the reason why the question cannot be asked of these data, None when it can."""
    if reason := _not_evaluable(standing):
        return "not evaluable", reason
    if reason := _ruled_out(standing):
        return "ruled out", reason
    return None


def _not_evaluable(standing: Standing) -> str:
    if standing.degraded or standing.idle:
        return standing.degraded or standing.idle or ""
    if standing.vacuous > _MOST:
        return f"k = {standing.k} is not below the number of candidates for {standing.vacuous:.0%} of the questions"
    if standing.leg is None:
        return ""
    if standing.dropped:
        return f"{standing.dropped} drops every memory that only {standing.leg} found"
    if standing.reach and all(reach == "unreachable" for reach in standing.reach.values()):
        why = "it is off, found nothing, or nothing it returns is kept"
        return f"{standing.leg} is unreachable at k = {standing.k}: {why}"
    if standing.empty > _MOST:
        return f"{standing.leg} is empty for {standing.empty:.0%} of the questions"
    return ""


def _ruled_out(standing: Standing) -> str:
    """Return why none of the finds of the leg can enter; a leg with seeds and without finds is judged by its seeds."""
    if standing.leg is None:
        return ""
    if standing.finds is None:
        barred = standing.reach and all(reach in ("boost-only", "unreachable") for reach in standing.reach.values())
        return f"{standing.leg} is boost-only at k = {standing.k}, so none of its finds can enter" if barred else ""
    if not standing.finds.found:
        if standing.finds.seeds:
            return ""
        return f"{standing.leg} found nothing that is not in a list without it; lower the depths"
    if standing.finds.may_enter:
        return ""
    return f"arithmetic keeps all {standing.finds.found:,} finds of {standing.leg} out of the first {standing.k}"


def _notes(standing: Standing) -> list[str]:
    out = []
    if len(set(standing.reach.values())) > 1:
        out.append(
            "reach of " + str(standing.leg) + ": " + ", ".join(f"{r} {c}" for r, c in sorted(standing.reach.items()))
        )
    if standing.finds is not None and standing.finds.seeds:
        out.append(f"{standing.leg} gives the graph its seeds, so its finds also come by the graph")
    if standing.finds is not None and standing.finds.may_enter and not standing.finds.entered:
        out.append(
            f"none of the {standing.finds.found:,} finds of {standing.leg} is in the first {standing.k}, "
            "though some may be"
        )
    if 0 < standing.vacuous <= _MOST:
        out.append(f"k is not below the number of candidates for {standing.vacuous:.0%} of the questions")
    if standing.leg and 0 < standing.empty <= _MOST:
        out.append(f"{standing.leg} is empty for {standing.empty:.0%} of the questions")
    return out


def numbers(paired: Paired) -> str:
    """Return a difference with its interval, p value and counts; without an interval, why there is none.

    A ``~`` stands before an approximate interval.
    """
    counts = f"won {paired.won}, lost {paired.lost}"
    delta = _short(paired.delta)
    if paired.p_holm is None:
        return f"{delta}, {_many(paired)}, {counts}; no interval"
    if paired.low is None or paired.high is None:
        return f"{delta}, no interval: {'no question differs' if not paired.delta else 'all differ alike'}"
    least = "<.001" if paired.p_holm < 0.0005 else _short(paired.p_holm)[1:]
    p = f"p {least}, " if paired.p_holm < ALPHA else ""
    about = "~" if paired.approximate else ""  # the word would make a line of more than 100 columns
    return f"{delta} {about}[{_short(paired.low)}, {_short(paired.high)}], {p}{counts}"


def numbers_of(kept: Mapping[str, Any]) -> str:
    """Return the numbers of a kept difference; see ``numbers``."""
    return numbers(Paired(**{**kept, "each": tuple(kept.get("each", ()))}))


def _short(value: float) -> str:
    """Return a number with its sign and three places, as records print it: +.053."""
    text = f"{value:+.3f}"
    return f"{text[0]}{text[2:]}" if text[1] == "0" else text


def interval(paired: Mapping[str, Any]) -> str:
    """Return the interval of a kept difference, with a blank before it, or nothing where there is none."""
    return "" if paired["low"] is None else f" [{paired['low']:+.3f}, {paired['high']:+.3f}]"


def _many(paired: Paired) -> str:
    questions = counted(paired.n, "question")
    return questions if paired.units == paired.n else f"{questions} in {counted(paired.units, 'cluster')}"
