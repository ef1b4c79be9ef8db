"""Run the formulas of other systems exactly on given lists, each with its own first rank and depth.

This is how a witness is checked: not by the bound it came from, but by the sum that the system would make.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from fractions import Fraction

from eval.systems.model import Fusion, Leg

__all__ = ["place", "replay"]

Rankings = Mapping[str, Sequence[str]]
Scores = Mapping[str, Sequence[Fraction]]


def replay(fusion: Fusion, rankings: Rankings, scores: Scores, k: int) -> dict[str, Fraction]:
    """Return the fused score of every document that comes out, for the first ``k``; lists are cut to their depth.

    ``scores`` are aligned with ``rankings``; only the rules that read scores need them.
    """
    depth = fusion.depth.at(k) if fusion.depth else None
    lists = {leg.name: list(rankings.get(leg.name, ()))[:depth] for leg in fusion.legs}
    own = {leg.name: list(scores.get(leg.name, ()))[:depth] for leg in fusion.legs}
    if fusion.rule == "interleave":
        return _turns(fusion, lists)
    total: dict[str, Fraction] = defaultdict(Fraction)
    for leg in fusion.legs:
        for memory, share in zip(
            lists[leg.name], _shares(fusion, leg, len(lists[leg.name]), own[leg.name]), strict=True
        ):
            total[memory] = max(total[memory], share) if fusion.rule == "max" else total[memory] + share
    if fusion.rule == "candidates":
        candidates = {memory for leg in fusion.legs if leg.candidates for memory in lists[leg.name]}
        return {memory: score for memory, score in total.items() if memory in candidates}
    return dict(total)


def place(fused: Mapping[str, Fraction], memory: str, *, ties_lose: bool = True) -> int | None:
    """Return the place of ``memory`` from 1, behind every tie or ahead of them; None when it does not come out."""
    if memory not in fused:
        return None
    mine = fused[memory]
    ahead = (score > mine or (ties_lose and score == mine) for other, score in fused.items() if other != memory)
    return sum(ahead) + 1


def _shares(fusion: Fusion, leg: Leg, length: int, scores: Sequence[Fraction]) -> list[Fraction]:
    constant, weight = Fraction(str(fusion.constant)), leg.exact_weight
    if fusion.rule == "rrf":
        return [weight / (constant + fusion.origin + position) for position in range(length)]
    if fusion.rule == "rank-scaled":
        if weight <= 0:
            return [Fraction(0)] * length
        return [1 / (Fraction(position + 1) / weight + constant - 1) for position in range(length)]
    if fusion.rule == "min-max":
        least, best = min(scores, default=Fraction(0)), max(scores, default=Fraction(0))
        if least == best:
            return [weight * leg.alone] * length
        return [weight * (score - least) / (best - least) for score in scores]
    return list(scores)


def _turns(fusion: Fusion, lists: Mapping[str, Sequence[str]]) -> dict[str, Fraction]:
    order: list[str] = []
    for position in range(max(len(one) for one in lists.values())):
        order += [lists[leg.name][position] for leg in fusion.legs if position < len(lists[leg.name])]
    order = list(dict.fromkeys(order))
    return {memory: Fraction(len(order) - i) for i, memory in enumerate(order)}
