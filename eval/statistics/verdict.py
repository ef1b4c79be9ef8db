"""Give each condition one of six verdicts, and none about a question that the data cannot answer.

A leg that *cannot* matter must not be reported as a leg that *does not* matter. So what pre-flight found is judged
before any statistic is looked at, and a condition that is not evaluable carries no delta at all. A leg that can only
re-order what others found may still change a measure: that delta has a name of its own, *re-ranking*, and what is
refused is the claim that the leg finds, or does not find, anything.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from eval.statistics.significance import ALPHA, FEWEST, Paired

__all__ = ["REFUSED", "Kind", "Standing", "Verdict", "interval", "judge", "numbers", "refusal"]

Kind: TypeAlias = Literal["helps", "hurts", "no difference", "described only", "re-ranking only", "not evaluable"]
REFUSED: tuple[Kind, ...] = ("re-ranking only", "not evaluable")
_MOST = 0.5


@dataclass(frozen=True, slots=True)
class Standing:
    """What pre-flight found about one comparison at the metric's cut-off ``k``.

    ``leg`` is the leg under study, None when the condition changes something else. ``reach`` is its class in every
    regime that a question is in, the strongest over these questions: with the lists that the other legs returned, the
    places that folding freed, and the importances there are. ``boost_only`` counts the questions in which it can
    bring in nothing of its own. ``entered`` counts memories only it returned in the first ``k``. Shares are of the
    questions measured: ``vacuous`` where k is not below the candidates in scope, ``empty`` where the leg returned
    nothing. ``leg_only`` counts, over all questions, memories only this leg returned. ``dropped`` says which later
    stage drops what only the leg found, if one does. ``degraded`` says which leg failed to answer how many questions,
    and why: a leg that did not answer was not measured. ``idle`` says why the setting under study can do nothing on
    these data.
    """

    k: int
    leg: str | None = None
    reach: Mapping[str, str] = field(default_factory=dict)
    vacuous: float = 0.0
    empty: float = 0.0
    leg_only: int | None = None
    boost_only: int = 0
    entered: int | None = None
    dropped: str | None = None
    degraded: str | None = None
    idle: str | None = None
    questions: int = 0


@dataclass(frozen=True, slots=True)
class Verdict:
    """A verdict, its sentence, and the statistics it rests on: None when the comparison was refused.

    ``reranking`` is what a leg that can only re-order changed, under its own name.
    """

    kind: Kind
    sentence: str
    paired: Paired | None
    notes: tuple[str, ...] = ()
    reranking: Paired | None = None

    def __post_init__(self) -> None:
        if (self.kind in REFUSED) != (self.paired is None):
            raise ValueError("A refused comparison has no statistics, and every other one has them.")
        if self.reranking is not None and self.kind != "re-ranking only":
            raise ValueError("Only a leg that can do nothing else has a re-ranking delta.")

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
        if kind == "re-ranking only" and paired is not None:
            order_change = f"; what it does to the order: {metric} {numbers(paired)}"
            return Verdict(kind, f"{kind}: {reason}{order_change}", None, notes, reranking=paired)
        return Verdict(kind, f"{kind}: {reason}", None, notes)
    if paired is None:
        return Verdict("not evaluable", "not evaluable: no question could be measured", None, notes)
    if paired.p_holm is None:
        return Verdict("described only", f"described only: {metric} {numbers(paired)}", paired, notes)
    if paired.p_holm < alpha and paired.delta > 0:
        return Verdict("helps", f"helps: {metric} {numbers(paired)}", paired, notes)
    if paired.p_holm < alpha and paired.delta < 0:
        return Verdict("hurts", f"hurts: {metric} {numbers(paired)}", paired, notes)
    if paired.mde is None:
        reason = f"{_many(paired)} are too few for any effect to reach {alpha:g} among all that was asked"
        return Verdict("described only", f"described only: {metric} {numbers(paired)}; {reason}", paired, notes)
    # Neither an effect beyond the interval nor one the questions could not have shown may be denied.
    bound = max(paired.mde, abs(paired.low or 0.0), abs(paired.high or 0.0))
    sentence = (
        f"no difference larger than {bound:.3f}: {metric} {numbers(paired)}, "
        f"minimum detectable effect {paired.mde:.3f} over {_many(paired)}"
    )
    return Verdict("no difference", sentence, paired, notes)


def refusal(standing: Standing) -> tuple[Kind, str] | None:
    """Return the kind and the reason why the question cannot be asked of these data, None when it can."""
    if reason := _not_evaluable(standing):
        return "not evaluable", reason
    if reason := _reranking_only(standing):
        return "re-ranking only", reason
    return None


def _not_evaluable(at: Standing) -> str:
    if at.degraded or at.idle:
        return at.degraded or at.idle or ""
    if at.vacuous > _MOST:
        return f"k = {at.k} is not below the number of candidates for {at.vacuous:.0%} of the questions"
    if at.leg is None:
        return ""
    if at.dropped:
        return f"{at.dropped} drops every memory that only {at.leg} found"
    if at.reach and all(reach == "unreachable" for reach in at.reach.values()):
        return f"{at.leg} is unreachable at k = {at.k}: it is off, or nothing it returns is kept"
    if at.empty > _MOST:
        return f"{at.leg} is empty for {at.empty:.0%} of the questions"
    return ""


def _reranking_only(at: Standing) -> str:
    if at.leg is None:
        return ""
    if at.reach and all(reach in ("boost-only", "unreachable") for reach in at.reach.values()):
        return (
            f"{at.leg} is boost-only at k = {at.k} for the lists of these questions: it lifts what another leg found, "
            "and brought in nothing of its own, so whether it finds anything cannot be judged"
        )
    if at.leg_only == 0:
        return (
            f"{at.leg} returned no memory that another leg did not return too, so it cannot have found anything; "
            "lower the depths below the number of memories in scope"
        )
    return ""


def _notes(at: Standing) -> list[str]:
    out = []
    classes = sorted(set(at.reach.values()))
    if len(classes) > 1:
        out.append("reach of " + str(at.leg) + ": " + ", ".join(f"{r} {c}" for r, c in sorted(at.reach.items())))
    if 0 < at.boost_only < at.questions:
        out.append(f"{at.leg} is boost-only for {at.boost_only} of {at.questions} questions")
    if at.entered == 0 and "boost-only" not in classes:
        out.append(f"nothing that only {at.leg} returned is in the first {at.k}: what changed is the order")
    if 0 < at.vacuous <= _MOST:
        out.append(f"k is not below the number of candidates for {at.vacuous:.0%} of the questions")
    if at.leg and 0 < at.empty <= _MOST:
        out.append(f"{at.leg} is empty for {at.empty:.0%} of the questions")
    return out


def numbers(paired: Paired) -> str:
    """Return a difference with its interval, p value and counts; without an interval, why there is none."""
    counts = f"won {paired.won}, tied {paired.tied}, lost {paired.lost}"
    if paired.p_holm is None:
        each = f" ({', '.join(f'{delta:+.3f}' for delta in paired.each)})" if paired.units < paired.n else ""
        return (
            f"{paired.delta:+.3f} over {_many(paired)}{each}, {counts}; fewer than {FEWEST} of them, so there is no "
            "interval and nothing is said of others"
        )
    if paired.low is None or paired.high is None:
        return f"{paired.delta:+.3f}, no interval: {'no question differs' if not paired.delta else 'all differ alike'}"
    about = " approximate" if paired.approximate else ""
    return f"{paired.delta:+.3f} [{paired.low:+.3f}, {paired.high:+.3f}]{about}, p = {paired.p_holm:.4f}, {counts}"


def interval(paired: Mapping[str, Any]) -> str:
    """Return the interval of a kept difference, with a blank before it, or nothing where there is none."""
    return "" if paired["low"] is None else f" [{paired['low']:+.3f}, {paired['high']:+.3f}]"


def _many(paired: Paired) -> str:
    if paired.units == paired.n:
        return f"{paired.n} questions"
    return f"{paired.n} questions in {paired.units} clusters"
