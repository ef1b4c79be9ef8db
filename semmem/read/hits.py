"""Fetch the memories of a recall's candidates and make hits of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from semmem.fusion import Fused
from semmem.model.reports import LeftOut
from semmem.model.store import Snapshot
from semmem.model.types import Hit, LegRank, Memory, Passage
from semmem.read.candidates import Candidates, Cut, Group, Key
from semmem.read.context import packed
from semmem.read.steps import page
from semmem.read.superseding import newest
from semmem.text.passages import snippet, terms

__all__ = ["fetched", "hits_of"]


def hits_of(
    snapshot: Snapshot, candidates: Candidates, window: Cut, groups: Sequence[Group], language: str, *, withhold: bool
) -> tuple[tuple[Hit, ...], tuple[LeftOut, ...], int]:
    """Return the hits of one page of ``groups``, those without room in a budget of tokens, and how many are withheld.

    Memories that the store no longer has are left out. With ``withhold`` there are no hits.
    """
    shown = page(groups, window)
    if withhold and shown:
        return (), (), len(shown)
    hits = _hits(snapshot, candidates, window, shown, terms(candidates.question.query, language), language)
    return (hits, (), 0) if window.token_budget is None else (*packed(hits, window.token_budget), 0)


def _hits(
    snapshot: Snapshot, candidates: Candidates, window: Cut, shown: Sequence[Group], words: Sequence[str], language: str
) -> tuple[Hit, ...]:
    memories = fetched(snapshot, candidates, [fused for fused, _ in shown])
    hits: list[Hit] = []
    for fused, folded in shown:
        if fused.key not in memories:  # forgotten after the legs answered
            continue
        memory, passage = memories[fused.key]
        best, matches = snippet(passage.text, words, language)
        legs = {leg: LegRank(r, candidates.raw[leg][r - 1]) for leg, r in fused.ranks.items()}
        others = dict.fromkeys((id, namespace) for id, _, namespace in folded)
        others.pop((memory.id, memory.namespace), None)
        duplicates, where = tuple(id for id, _ in others), tuple(name for _, name in others)
        place, part = window.offset + len(hits) + 1, fused.key[1] or None
        scored = (place, fused.score, fused.components, legs)
        newer = newest(candidates, (memory.id, memory.namespace)) if candidates.newer else None
        by = newer[0] if newer is not None else None
        hits.append(Hit(memory, *scored, best, matches, duplicates, by, part, passage, where))
    return tuple(hits)


def fetched(
    snapshot: Snapshot, candidates: Candidates, ranked: Sequence[Fused[Key]]
) -> Mapping[Key, tuple[Memory, Passage]]:
    """Return the whole memory and the passage for each of ``ranked`` that the store still has."""
    metadata = [candidates.metadata[fused.key] for fused in ranked]
    memories = snapshot.memories(metadata)
    return {
        fused.key: memories[candidate.row_id]
        for fused, candidate in zip(ranked, metadata, strict=True)
        if candidate.row_id in memories
    }
