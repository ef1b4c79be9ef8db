"""Fuse cached lists as recall would: the same functions, the same order of steps, any number of recipes.

What is fused and folded here are ``Candidates`` in the order of ``read.steps.cut``, as in a recall, so an experiment
cannot drift from the product; a sample of every experiment is recalled for comparison all the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from eval.experiments.lists import Asked, Found, Key
from eval.statistics.measures import Place
from semmem.model.exchange import CandidateMetadata, Question, Scope, Trace
from semmem.model.question import Period
from semmem.model.recipe import Recipe
from semmem.rank_cap.places import Lists
from semmem.read.candidates import Candidates, Cut
from semmem.read.periods import used_by
from semmem.read.steps import cut, lists

__all__ = ["FUSIONS", "Places", "fused_places", "lists_of", "regime_of"]

FUSIONS = ("rrf", "rank-scaled", "convex", "tm2c2", "scored")
"""The formulas a recipe can name."""
_SPACE = ""  # one question searches one namespace, so its name decides no tie
_HOW = Cut()


@dataclass(frozen=True, slots=True)
class Places:
    """One fused list: ``places`` best first (folded ids behind the one shown), components of each shown memory."""

    places: tuple[Place, ...]
    components: tuple[Mapping[str, float], ...]


def regime_of(recipe: Recipe, asked: Asked) -> str:
    """Return the regime whose numbers a recipe uses for this question."""
    return asked.regime if asked.regime in recipe.regimes else recipe.regimes[-1]


def fused_places(
    recipe: Recipe, asked: Asked, memories: Mapping[Key, Found], *, limit: int = 100, excluded: str | None = None
) -> Places:
    """Fuse one question's lists as ``recipe`` says; return the first ``limit`` places.

    ``excluded`` names a leg whose own finds are dropped, with its votes, before fusion: only the other legs' lists
    are left, as when that leg's memories were never in the base set. A reranker is not run here.
    """
    shown = cut(_candidates(recipe, asked, memories, excluded), _HOW)[:limit]
    return Places(
        places=tuple((f.key[0], *(id for id, _, _ in same)) if same else f.key[0] for f, same in shown),
        components=tuple(f.components for f, _ in shown),
    )


def lists_of(
    recipe: Recipe, asked: Asked, memories: Mapping[Key, Found], k: int, *, excluded: str | None = None
) -> Lists:
    """Return what reach may know of these lists for a recall of ``k`` hits; it is what a recall itself tells."""
    return lists(_candidates(recipe, asked, memories, excluded), Cut(limit=k))


def _candidates(recipe: Recipe, asked: Asked, memories: Mapping[Key, Found], excluded: str | None) -> Candidates:
    """Return the candidates of a recall whose legs returned these lists, before the cut."""
    pairs_by_leg = asked.scored(recipe.depths, [leg for leg in recipe.legs if leg != excluded])
    rankings = {leg: tuple((*key, _SPACE) for key, _ in pairs) for leg, pairs in pairs_by_leg.items()}
    question = Question("", periods=tuple(Period(w, _time(start), _time(end)) for w, start, end in asked.periods))
    candidates = Candidates(
        question,
        Scope((_SPACE,), len(memories)),
        used_by(recipe, question),
        regime_of(recipe, asked),
        rankings,
        {leg: tuple(score for _, score in pairs) for leg, pairs in pairs_by_leg.items()},
        {leg: Trace(most=most) for leg, most in asked.most.items()},
        {key: _head(key, memories[key[0], key[1]]) for keys in rankings.values() for key in keys},
        frozenset((*key, _SPACE) for key in asked.exact) if recipe.exact_bonus else frozenset(),
        {},
    )
    return replace(candidates, ranked=candidates.fuse())


def _time(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)


def _head(key: tuple[str, int, str], memory: Found) -> CandidateMetadata:
    # no store is asked and nothing is sorted by time here: row id is 0, and updated_at is created_at
    id, part, namespace = key
    return CandidateMetadata(
        0, namespace, id, part, memory.importance, memory.content.encode(), memory.created_at, memory.created_at
    )
