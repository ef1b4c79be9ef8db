"""What is known of places besides a recipe: how deep lists go, how they fold, what a step after fusion can do.

``reach`` without data assumes what is listed here, by name (``ASSUMPTIONS``). With the lists of one recall nothing of
it is assumed: each list says how long it is and at which ranks another memory begins (``Listed``), each step between
fusion and the hits says what it can do to a place (``Effect``), and ``Lists`` holds both.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

__all__ = ["ASSUMPTIONS", "WITHIN_RANGES", "Effect", "Listed", "Lists", "merged"]

ASSUMPTIONS: Mapping[str, str] = MappingProxyType(
    {
        "lists as deep as k": "each other leg returns k memories or more, where its depth lets it",
        "places counted before folding": "no two memories found are copies, and none is found by two of its parts",
        "every leg answers": "no leg is absent from the store, fails, or is late",
        "equal importance": "all that is found has the same importance, and none that makes every score 0; with a "
        "half-life also the same age, and with a period_floor all was created in the period of the question or none",
        "sorted by relevance": "sort_by is as it is by default",
        "offset 0": "the first page is asked for",
        "nothing superseded": "of what is found, or stored beside it, no memory supersedes another that is found",
        "all valid now": "nothing that is found has ceased to be valid, or is yet to begin",
        "nothing withheld": "the confidence is not below min_confidence, and no token_budget leaves a hit out",
        "no reranker": "what fusion has put in order stays in that order",
    }
)
"""What the classes rest on where there are no lists to look at: the name of each assumption and its meaning."""

WITHIN_RANGES = "scores within their ranges"
"""Assumed beside those where ``reach`` is given ranges: the places of a leg earn no less and no more than its range."""


@dataclass(frozen=True, slots=True)
class Listed:
    """What is known of the list that one leg returned.

    ``length`` counts its rows, each a memory or a part of one. ``firsts`` are the ranks, from 1, at which a memory
    begins that stays and that no row before could be folded with. ``unsure`` are the ranks of rows that may be missing
    from the hits however high they stand. ``least`` and ``most`` are the importances of its rows; ``exact`` says
    whether one of them has the exact-match bonus. ``shares`` are what its places earn at weight 1 in a fusion that
    reads scores, where these are known: they never rise from one place to the next.
    """

    length: int
    firsts: tuple[int, ...]
    unsure: frozenset[int] = frozenset()
    least: float = 0.5
    most: float = 0.5
    exact: bool = False
    shares: tuple[float, ...] | None = None

    @property
    def scaled(self) -> tuple[Sequence[float], Sequence[float]] | None:
        """The most and the least that each place earns at weight 1, where that is known: it is one number."""
        return None if self.shares is None else (self.shares, self.shares)

    @classmethod
    def of(
        cls,
        keys: Sequence[Hashable],
        *,
        one: Mapping[Any, Hashable] | None = None,
        gone: Collection[Hashable] = (),
        unsure: Collection[Hashable] = (),
        importance: Mapping[Any, float] | None = None,
        exact: Collection[Hashable] = (),
        shares: Sequence[float] | None = None,
    ) -> Listed:
        """Read the facts off a list of keys, best first; the other arguments are those of ``Effect``, by key.

        ``one`` maps a key to what it folds into, by default itself; ``importance`` is .5 where it is missing.
        """
        one, importance = one or {}, importance or {}
        firsts: dict[Hashable, int] = {}
        for rank, key in enumerate(keys, 1):
            if key not in gone:
                firsts.setdefault(one.get(key, key), rank)
        weighed = [importance.get(key, 0.5) for key in keys] or [0.5]
        missing = frozenset(rank for rank, key in enumerate(keys, 1) if key in gone or key in unsure)
        bonus = any(key in exact for key in keys)
        known = None if shares is None else tuple(shares)
        return cls(len(keys), tuple(firsts.values()), missing, min(weighed), max(weighed), bonus, known)


@dataclass(frozen=True, slots=True)
class Lists:
    """The lists of one recall, by leg, and what happens to them after fusion.

    ``absent`` says why a leg has no list. ``decided`` is how many first places of the fused order decide what is shown
    (None: all of them), ``kept`` how many of them are sure to be shown, ``places`` how many there are after folding,
    ``folded`` how many rows at most have no place of their own. ``notes`` are sentences about what a step did to the
    claim; ``unseen`` says of a leg, in a sentence, for which memories it can do nothing.
    """

    lists: Mapping[str, Listed]
    absent: Mapping[str, str] = field(default_factory=dict)
    decided: int | None = None
    kept: int = 0
    places: int | None = None
    folded: int = 0
    notes: tuple[str, ...] = ()
    unseen: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def at(cls, k: int, lists: Mapping[str, Listed]) -> Lists:
        """Return ``lists`` with nothing after them but a cut at ``k``."""
        return cls(lists, decided=k, kept=k)


@dataclass(frozen=True, slots=True)
class Effect:
    """What one step between fusion and the hits can do to places, asked for the first k after it.

    ``decided`` is how many first places before the step decide them (None: all), ``kept`` how many first places before
    it are sure to be among them. ``one`` maps candidates to what they become one with. ``gone`` are candidates that the
    step leaves out wherever they stand, and ``unsure`` those that take a place and may yet be named by no hit. ``note``
    is a sentence where the step makes the claim weaker.
    """

    decided: int | None
    kept: int
    one: Mapping[Any, Hashable] = field(default_factory=dict)
    gone: Collection[Any] = ()
    unsure: Collection[Any] = ()
    note: str = ""


def merged(keys: Collection[Hashable], relations: Sequence[Mapping[Any, Hashable]]) -> dict[Hashable, int]:
    """Group keys: those that any of ``relations`` maps to one value get the same number."""
    parent: dict[Hashable, Hashable] = {}

    def root(node: Hashable) -> Hashable:
        while parent.setdefault(node, node) != node:
            parent[node] = node = parent[parent[node]]
        return node

    for number, relation in enumerate(relations):
        for key in keys:
            if key in relation:
                parent[root(("key", key))] = root((number, relation[key]))
    numbers: dict[Hashable, int] = {}
    return {key: numbers.setdefault(root(("key", key)), len(numbers)) for key in keys}
