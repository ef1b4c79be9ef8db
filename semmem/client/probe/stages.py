"""The stages a memory passes on its way into a recall, and which of them dropped the probe's witness. Pure.

In the order of the pipelines: what ``remember`` does (extracted, embedded, stored), what the leg does (asked, answered,
scope, found, depth), and what follows it (fused, folded, limit, reranked, returned).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

from semmem.rank_cap import reach
from semmem.rank_cap.report import LegReach, ReachClass
from semmem.read.candidates import Candidates, Cut, Key
from semmem.read.steps import cut

__all__ = ["STAGES", "Probe", "Probed", "Stage", "fate"]

Stage: TypeAlias = Literal[
    "extracted", "embedded", "stored", "asked", "answered", "scope", "found", "depth", "fused", "folded", "limit",
    "reranked", "returned",
]  # fmt: skip
STAGES: Mapping[Stage, str] = {
    "extracted": "the extractor found in it what the leg looks for",
    "embedded": "it has a vector",
    "stored": "it is in the store",
    "asked": "the recipe asks the leg: weight and depth are above 0",
    "answered": "the leg answered, in time",
    "scope": "filters and excluded ids let it through",
    "found": "the leg found it",
    "depth": "the leg ranked it within the depth of the recipe",
    "fused": "its fused score can clear the rank cap: some lists let it in",
    "folded": "it was not folded into another memory of the same text",
    "limit": "fewer than k others stood before it",
    "reranked": "the reranker left it within the first k",
    "returned": "it came back among the hits",
}
"""Every stage in order, and what it means to pass it."""


@dataclass(frozen=True, slots=True)
class Probed:
    """How far one witness came. ``dropped`` is the stage that dropped it, None if it came back; ``why`` is a sentence.

    ``rank`` is its rank in the studied leg, ``others`` its ranks in other legs that list it too (the graph starts from
    the finds of text legs, so it lists their first ones). ``place`` is its place among all, after folding. ``class_``
    is the computed class of a memory that only this leg has at that rank. ``alone`` says whether the witness would be
    in if the others had not listed it, None if no other did.
    """

    leg: str
    regime: str
    k: int
    question: str
    text: str
    dropped: Stage | None
    why: str
    rank: int | None = None
    others: Mapping[str, int] = field(default_factory=dict)
    place: int | None = None
    class_: ReachClass | None = None
    alone: bool | None = None

    @property
    def returned(self) -> bool:
        """Whether the witness came back among the first k."""
        return self.dropped is None

    @property
    def passed(self) -> tuple[Stage, ...]:
        """The stages that it passed, in order."""
        names = list(STAGES)
        return tuple(names if self.dropped is None else names[: names.index(self.dropped)])

    def as_dict(self) -> dict[str, Any]:
        """Return plain JSON-ready values."""
        plain = ("leg", "regime", "k", "returned", "dropped", "why", "rank", "place", "alone", "question", "text")
        return {name: getattr(self, name) for name in plain} | {
            "class": self.class_,
            "others": dict(self.others),
            "passed": list(self.passed),
        }


@dataclass(frozen=True, slots=True)
class Probe(Sequence[Probed]):
    """The fate of the witnesses of a recipe, one for every leg and regime; ``left_out`` names the legs without one."""

    recipe: str
    k: int
    probed: tuple[Probed, ...]
    left_out: Mapping[str, str] = field(default_factory=dict)
    seconds: float = 0.0

    def __len__(self) -> int:
        return len(self.probed)

    def __getitem__(self, index: Any) -> Any:
        return self.probed[index]

    def __iter__(self) -> Iterator[Probed]:
        return iter(self.probed)

    @property
    def dropped(self) -> tuple[Probed, ...]:
        """The witnesses that did not come back."""
        return tuple(one for one in self.probed if not one.returned)

    def as_dict(self) -> dict[str, Any]:
        """Return plain JSON-ready values."""
        return {
            "recipe": self.recipe,
            "k": self.k,
            "probed": [one.as_dict() for one in self.probed],
            "left_out": dict(self.left_out),
            "seconds": self.seconds,
        }


@dataclass(frozen=True, slots=True)
class Fate:
    """What happened to a witness after its leg had ranked it; the fields are those of ``Probed``."""

    dropped: Stage | None
    why: str
    place: int | None = None
    others: Mapping[str, int] = field(default_factory=dict)
    class_: ReachClass | None = None
    alone: bool | None = None


def fate(candidates: Candidates, window: Cut, key: Key, leg: str, rank: int, *, is_hit: bool) -> Fate:
    """Say what fusion, folding, the limit and a reranker did with ``key``, which ``leg`` ranked at ``rank``."""
    k = window.limit
    leg_reach = reach(candidates.recipe, k).regimes[candidates.regime].legs[leg]
    class_ = leg_reach.class_at(rank)
    others = {
        name: list(keys).index(key) + 1 for name, keys in candidates.rankings.items() if name != leg and key in keys
    }
    before = _place(replace(candidates, reranked={}), window, key)
    after = _place(candidates, window, key)
    alone = None
    if others:
        ranked = candidates.rankings.items()
        lists = {name: keys if name == leg else tuple(o for o in keys if o != key) for name, keys in ranked}
        place = _place(replace(candidates, reranked={}, ranked=candidates.fuse(rankings=lists)), window, key)
        alone = place is not None and place <= k

    def end(dropped: Stage | None, why: str) -> Fate:
        return Fate(dropped, why, after, others, class_, alone)

    found = f"{leg} has it at rank {rank}"
    if before is None or after is None:
        into = next((fused.key[0] for fused, folded in cut(candidates, window) if key in folded), "another memory")
        return end("folded", f"{found}, and it was folded into {into}, which reads the same.")
    if before > k and after > k:
        if class_ in ("boost-only", "unreachable"):
            proof = _certificate(leg_reach, rank)
            return end("fused", f"{found}, and the fusion cannot let it in, whatever the lists: {proof}")
        return end("limit", f"{found}, and {k} others score more: its place is {after}. Other lists would let it in.")
    if after > k:
        reranker = candidates.recipe.rerank
        return end("reranked", f"{found} and fused at place {before}; the reranker {reranker} put it at place {after}.")
    if not is_hit:
        return end("returned", f"{found}, place {after}, and its text was gone when the hits were read.")
    return end(None, f"{found}; it came back at place {after} of {k}." + _also(others, alone))


def _place(candidates: Candidates, window: Cut, key: Key) -> int | None:
    return next((place for place, (fused, _) in enumerate(cut(candidates, window), 1) if fused.key == key), None)


def _also(others: Mapping[str, int], alone: bool | None) -> str:
    if not others:
        return ""
    where = ", ".join(f"{name} at rank {rank}" for name, rank in others.items())
    return f" Also listed by {where}; without that it would {'still be in' if alone else 'stay out'}."


def _certificate(leg_reach: LegReach, rank: int) -> str:
    if rank == 1 or leg_reach.rank_constant is None:
        return leg_reach.certificate
    last = max(leg_reach.last_possible_rank, leg_reach.guaranteed_ranks)
    if last:
        return f"at k = {leg_reach.k} no more than its first {last} can come in."
    return leg_reach.certificate
