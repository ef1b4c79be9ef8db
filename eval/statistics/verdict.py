"""One of five verdicts a condition, and never a number beside a question that could not be asked.

A leg that *cannot* matter must not be reported as a leg that *does not* matter. So what pre-flight found is judged
before any statistic is looked at, and a refused condition carries no delta at all.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from eval.statistics.significance import ALPHA, Paired

__all__ = ["REFUSED", "Kind", "Standing", "Verdict", "judge", "refusal"]

Kind: TypeAlias = Literal["helps", "hurts", "no difference", "re-ranking only", "not evaluable"]
REFUSED: tuple[Kind, ...] = ("re-ranking only", "not evaluable")
_MOST = 0.5


@dataclass(frozen=True, slots=True)
class Standing:
    """What pre-flight found about one comparison at the metric's cut-off ``k``.

    ``leg`` is the leg under study, None when the condition changes something else. ``reach`` is its class in every
    regime. Shares are of the questions measured: ``vacuous`` where k is not below the candidates in scope, ``empty``
    where the leg returned nothing. ``leg_only`` counts, over all questions, memories only this leg returned.
    ``dropped`` says which later stage drops what only the leg found, if one does. ``degraded`` says which leg failed to
    answer how many questions, and why: a leg that did not answer was not measured. ``idle`` says why the setting under
    study can do nothing on these data.
    """

    k: int
    leg: str | None = None
    reach: Mapping[str, str] = field(default_factory=dict)
    vacuous: float = 0.0
    empty: float = 0.0
    leg_only: int | None = None
    dropped: str | None = None
    degraded: str | None = None
    idle: str | None = None
    questions: int = 0


@dataclass(frozen=True, slots=True)
class Verdict:
    """A verdict, its sentence, and the statistics it rests on: None when the comparison was refused."""

    kind: Kind
    sentence: str
    paired: Paired | None
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if (self.kind in REFUSED) != (self.paired is None):
            raise ValueError("A refused comparison has no statistics, and every other one has them.")

    @property
    def refused(self) -> bool:
        """True when no delta may be printed."""
        return self.kind in REFUSED

    def as_dict(self) -> dict[str, Any]:
        """Return plain JSON-ready values; a refused verdict has no key that holds a number."""
        out: dict[str, Any] = {"verdict": self.kind, "sentence": self.sentence, "notes": list(self.notes)}
        if self.paired is not None:
            out["paired"] = self.paired.as_dict()
        return out


def judge(standing: Standing, paired: Paired | None, *, metric: str = "the metric", alpha: float = ALPHA) -> Verdict:
    """Return the verdict on a comparison: refusals first, then the Holm-corrected p value.

    ``paired`` is condition minus base, oriented so that above 0 the thing under study helps. It is ignored when the
    comparison is refused.
    """
    notes = tuple(_notes(standing))
    if refused := refusal(standing):
        kind, reason = refused
        return Verdict(kind, f"{kind}: {reason}", None, notes)
    if paired is None:
        return Verdict("not evaluable", "not evaluable: no question could be measured", None, notes)
    if paired.p_holm < alpha and paired.delta > 0:
        return Verdict("helps", f"helps: {metric} {_numbers(paired)}", paired, notes)
    if paired.p_holm < alpha and paired.delta < 0:
        return Verdict("hurts", f"hurts: {metric} {_numbers(paired)}", paired, notes)
    # Neither an effect beyond the interval nor one the questions could not have shown may be denied.
    bound = max(paired.mde, abs(paired.low), abs(paired.high))
    sentence = (
        f"no difference larger than {bound:.3f}: {metric} {_numbers(paired)}, "
        f"minimum detectable effect {paired.mde:.3f} over {paired.n} questions"
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
            f"{at.leg} is boost-only at k = {at.k}: it can lift a memory another leg found, "
            "and can never bring in one of its own"
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
    if 0 < at.vacuous <= _MOST:
        out.append(f"k is not below the number of candidates for {at.vacuous:.0%} of the questions")
    if at.leg and 0 < at.empty <= _MOST:
        out.append(f"{at.leg} is empty for {at.empty:.0%} of the questions")
    return out


def _numbers(paired: Paired) -> str:
    return (
        f"{paired.delta:+.3f} [{paired.low:+.3f}, {paired.high:+.3f}], p = {paired.p_holm:.4f}, "
        f"won {paired.won}, tied {paired.tied}, lost {paired.lost}"
    )
