"""Fuse and count the candidates of a recall before the cut, and estimate its confidence. Pure: no store, no clock.

This is separate from the pipeline so that ``explain`` and experiments can fuse the same lists again with other numbers.

The confidence of a recall says how well the best memories match the question. It is a logistic curve over two numbers
that every recall has: the BM25 score of the lexical leg's first memory as a share of the best score possible,
and the cosine of the dense leg's first memory. It rises with each of them. The constants were fitted by ``python -m
eval confidence``, on questions with and without an answer, half and half: with the cosines of MiniLM (adr/0038 has the
table of false alarms and misses), and with those of all-mpnet-base-v2 (adr/0078). The same command fits and keeps the
curve of another embedder (adr/0106); without that its confidence still rises with the match, by the curve of MiniLM.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Generic, Protocol, TypeAlias, TypeVar

from semmem.embedders.fitted import Curve, FittedCurve
from semmem.fusion import IMPORTANCE, RESERVE, Fused, Made, rank_as, shares_of
from semmem.model.exchange import CandidateMetadata, Question, Ranking, Scope, Trace, local
from semmem.model.leg_scores import RANKED_LEG, reads_scores
from semmem.model.question import Period
from semmem.model.recipe import Recipe, full_depths
from semmem.model.types import SortBy
from semmem.read.periods import created_in

__all__ = [
    "CURVES",
    "EMBEDDER_CURVES",
    "FLOORS",
    "LEXICAL_FLOOR",
    "OTHER_FLOOR",
    "PERIOD",
    "RECENCY",
    "Candidates",
    "Cut",
    "Group",
    "Key",
    "Name",
    "Priors",
    "apart",
    "auto_floor",
    "confidence",
    "curve",
    "deeper",
    "embedder_of",
    "gather",
    "matches",
    "settle",
    "total",
]


K = TypeVar("K", bound=Hashable)

Key: TypeAlias = "tuple[str, int, str]"
"""(id, part, namespace): the key by which candidates are fused and ordered."""
Name: TypeAlias = "tuple[str, str]"
"""(id, namespace): the key of a memory in links."""
Group: TypeAlias = "tuple[Fused[Key], tuple[Key, ...]]"
"""A candidate, and the keys of those that were folded into it."""


class Weighed(Protocol):
    """The values of a memory that a prior reads."""

    @property
    def importance(self) -> float:
        """Return the importance, in [0, 1]."""
        ...

    @property
    def created_at(self) -> float:
        """Return when the memory was created, in seconds since 1970."""
        ...


RECENCY = "recency"
"""The component by which age lowered a score; never above 0."""

PERIOD = "period"
"""The component by which a score is lower outside the periods that the question names; never above 0."""

_DAY_S = 86_400.0

_APART = 2e-11
"""Scores that differ by more, relative to the larger, differ in 12 significant digits."""


@dataclass(frozen=True, slots=True)
class Priors(Generic[K]):
    """The multipliers applied to scores after fusion: importance, and age and period where the recipe has them.

    Fusion and reach know a single prior, so all multipliers are combined: the factor of a memory is ``floor + (1 -
    floor) * weighed[key]``, with ``weighed`` in [0, 1]. ``weighed`` is None where none applies. Without one by time it
    is the importance alone. ``by_time`` are the factors of the others by the name of their component, and ``apart``
    splits the combined share into components again.
    """

    weighed: Mapping[K, float] | None
    floor: float
    importance: Mapping[K, float] = field(default_factory=dict)
    by_time: Mapping[str, Mapping[K, float]] = field(default_factory=dict)
    usual: float = 1.0

    @classmethod
    def of(
        cls,
        recipe: Recipe,
        regime: str,
        metadata: Mapping[K, Weighed],
        newest: float,
        periods: Sequence[Period] = (),
    ) -> Priors[K]:
        """Return the priors of a recipe; ``newest`` is when the newest candidate was created, in seconds since 1970."""
        importances = {key: head.importance for key, head in metadata.items()} if recipe.prior else None
        least = recipe.floor(regime)
        by_time: dict[str, Mapping[K, float]] = {}
        times = {key: head.created_at for key, head in metadata.items()} if recipe.by_time else {}
        both = 1.0 if importances is None else least
        if recipe.recency_half_life is not None:
            floor = recipe.recency_floor
            half_life = recipe.recency_half_life * _DAY_S
            by_time[RECENCY] = {
                key: floor + (1 - floor) * 2.0 ** (-max(0.0, newest - at) / half_life) for key, at in times.items()
            }
            both *= floor
        if recipe.period_floor is not None:
            inside = created_in(periods, times)
            by_time[PERIOD] = {key: 1.0 if inside[key] else recipe.period_floor for key in times}
            both *= recipe.period_floor
        if not by_time:
            return cls(importances, least)
        importance = {key: 1.0 if importances is None else least + (1 - least) * importances[key] for key in metadata}
        factor = {key: math.prod((own, *(of[key] for of in by_time.values()))) for key, own in importance.items()}
        span = 1 - both
        weighed = {key: (own - both) / span for key, own in factor.items()} if span else None
        return cls(weighed, both, importance, by_time, 1.0 if importances is None else (1 + least) / 2)

    def factor(self, key: K) -> float:
        """Return the factor by which the score of one memory is multiplied."""
        return 1.0 if self.weighed is None else self.floor + (1 - self.floor) * self.weighed[key]

    def apart(self, fused: Fused[K]) -> Fused[K]:
        """Return ``fused`` with one component for each prior.

        The shares of the legs are those of a new memory of importance 0.5; the components say what each prior changed.
        """
        if not self.by_time:
            return fused
        shares = {n: share for n, share in fused.components.items() if n not in (IMPORTANCE, RESERVE)}
        whole = 1.0 if self.weighed is None else (1 + self.floor) / 2
        bare = math.fsum(shares.values()) / whole
        out = {name: share * self.usual / whole for name, share in shares.items()}
        own = self.importance[fused.key]
        changed = {IMPORTANCE: bare * (own - self.usual)}
        for name, factors in self.by_time.items():
            changed[name] = bare * own * (factors[fused.key] - 1)
            own *= factors[fused.key]
        out |= {name: share for name, share in changed.items() if share}
        out |= {name: share for name, share in fused.components.items() if name == RESERVE}
        return fused._replace(components=out)


@dataclass(frozen=True, slots=True)
class Candidates:
    """All candidates of one recall before the cut, for ``explain`` and for experiments that fuse again.

    ``rankings`` maps a leg to its keys, best first; ``raw`` to the leg's own scores; ``metadata`` maps a key to the
    facts that fusion uses. ``reranked`` holds the reranker's terms for the head of the folded list. ``best`` is the
    first score of each leg that was asked, including legs that only seed the graph. ``newer`` maps a memory to those
    that supersede it directly, the last created first, and ``fetched`` maps such a memory to its row where the scope
    matches it; these rows have metadata. ``accessed`` maps a memory to when a recall last returned it, in seconds since
    1970, where hits are sorted by that. ``vanished`` says that a memory of a list was gone when its metadata were read.
    ``fitted`` is the curve that was fitted on this machine to the embedder of the question.
    """

    question: Question
    scope: Scope
    recipe: Recipe
    regime: str
    rankings: Mapping[str, tuple[Key, ...]]
    raw: Mapping[str, tuple[float, ...]]
    traces: Mapping[str, Trace]
    metadata: Mapping[Key, CandidateMetadata]
    exact: frozenset[Key]
    degraded: Mapping[str, str]
    ranked: Sequence[Fused[Key]] = field(default=())
    reranked: Mapping[Key, Mapping[str, float]] = field(default_factory=dict)
    best: Mapping[str, float] = field(default_factory=dict)
    newer: Mapping[Name, tuple[Name, ...]] = field(default_factory=dict)
    fetched: Mapping[Name, Key] = field(default_factory=dict)
    accessed: Mapping[Name, float] = field(default_factory=dict)
    vanished: bool = False
    fitted: FittedCurve | None = None

    def fuse(
        self,
        *,
        weights: Mapping[str, float] | None = None,
        rank_constants: Mapping[str, float] | None = None,
        rankings: Mapping[str, Sequence[Key]] | None = None,
        metadata: Mapping[Key, CandidateMetadata] | None = None,
    ) -> Sequence[Fused[Key]]:
        """Fuse again with other weights, rank constants, lists or metadata; arguments of None stay as they were."""
        recipe = self.recipe
        priors = self.priors({**self.metadata, **(metadata or {})})
        lists = {**self.rankings, **(rankings or {})}
        ranked = rank_as(
            recipe.fusion,
            lists,
            self._scores(lists),
            weights=recipe.weights_in(self.regime) | dict(weights or {}),
            rank_constants={**recipe.constants(self.regime), **(rank_constants or {})},
            planned=recipe.legs,
            most=self.most,
            importance=priors.weighed,
            prior_floor=priors.floor,
            exact=self.exact,
            exact_bonus=recipe.exact_bonus,
            reserve=recipe.reserve_in(self.regime),
        )
        return Made(ranked, priors.apart) if priors.by_time else ranked

    def priors(self, metadata: Mapping[Key, CandidateMetadata] | None = None) -> Priors[Key]:
        """Return the priors of ``metadata``, by default of all candidates."""
        newest = 0.0
        if self.recipe.recency_half_life is not None:
            at = (self.metadata[key].created_at for keys in self.rankings.values() for key in keys)
            newest = max(at, default=0.0)
        of = self.metadata if metadata is None else metadata
        return Priors.of(self.recipe, self.regime, of, newest, self.question.periods or ())

    @property
    def has_parts(self) -> bool:
        """Whether a candidate is a part of a memory."""
        return any(head.part for head in self.metadata.values())

    @property
    def most(self) -> dict[str, float]:
        """Return the best score that the question allows, for each leg that knows it."""
        return {leg: trace.most for leg, trace in self.traces.items() if trace.most is not None}

    def shares(self) -> dict[str, list[float]]:
        """Return what each place earns at weight 1, by leg, for the legs whose scores the fusion scales.

        A leg whose scores rise somewhere in its list is left out: there a place says nothing of the next one.
        """
        fusion, scores = self.recipe.fusion, self._scores(self.rankings)
        shares = {
            leg: shares_of(fusion, leg, scores[leg], len(keys), 0, self.most)
            for leg, keys in self.rankings.items()
            if reads_scores(fusion, leg)
        }
        return {leg: of_leg for leg, of_leg in shares.items() if all(a >= b for a, b in pairwise(of_leg))}

    def _scores(self, lists: Mapping[str, Sequence[Key]]) -> dict[str, tuple[float, ...]]:
        """Return the scores of the legs by rank; where a list is longer than its scores, the last score is repeated."""
        raw = {leg: self.raw.get(leg) or (1.0,) for leg in lists}
        return {leg: (*raw[leg], *raw[leg][-1:] * (len(keys) - len(raw[leg]))) for leg, keys in lists.items()}


@dataclass(frozen=True, slots=True)
class Cut:
    """The arguments of recall that act after fusion: which of the ranked candidates are shown, in which order."""

    limit: int = 10
    offset: int = 0
    sort_by: SortBy = "relevance"
    fold_parts: bool = True
    token_budget: int | None = None


def settle(ranking: Ranking, metadata: Mapping[int, CandidateMetadata], depth: int) -> Ranking:
    """Order ties by id, drop forgotten memories and repeats, and cut to the depth.

    So insertion order does not matter, and of a row that a leg names twice the better place counts.
    """
    row_ids, scores = list(ranking.row_ids), list(ranking.scores)
    if not all(map(metadata.__contains__, row_ids)):
        scores = [score for row_id, score in zip(row_ids, scores, strict=True) if row_id in metadata]
        row_ids = [row_id for row_id in row_ids if row_id in metadata]

    def place(row: tuple[int, float]) -> tuple[float, Key]:
        return -float(f"{row[1]:.12g}"), metadata[row[0]].key

    for start, end in _unsettled(scores):
        if scores.count(scores[start]) == end - start:  # all are equal, as in most runs
            row_ids[start:end] = sorted(row_ids[start:end], key=lambda row_id: metadata[row_id].key)
            continue
        run = sorted(zip(row_ids[start:end], scores[start:end], strict=True), key=place)
        row_ids[start:end], scores[start:end] = [row_id for row_id, _ in run], [score for _, score in run]
    if len(set(row_ids)) < len(row_ids):
        best = dict(zip(reversed(row_ids), reversed(scores), strict=True))
        row_ids = list(dict.fromkeys(row_ids))
        scores = [best[row_id] for row_id in row_ids]
    shown = tuple(row_ids[:depth]), tuple(scores[:depth])
    return Ranking(*shown, ranking.total, ranking.regime, ranking.trace, ranking.degraded)


def _unsettled(scores: Sequence[float]) -> list[tuple[int, int]]:
    """Return (start, end) of the runs of scores that may be equal in 12 significant digits.

    No other run needs its ids looked at. Where scores do not fall, all of them are one run.
    """
    import numpy as np

    numbers = np.array(scores)
    size, fall = np.abs(numbers), numbers[:-1] - numbers[1:]
    if not (fall >= 0).all():
        return [(0, len(scores))]
    (ties,) = (fall <= _APART * np.maximum(size[:-1], size[1:])).nonzero()
    runs: list[tuple[int, int]] = []
    for index in ties.tolist():
        start = runs.pop()[0] if runs and runs[-1][1] == index + 1 else index
        runs.append((start, index + 2))
    return runs


def apart(
    namespaces: Collection[str],
    rankings: Mapping[str, Ranking],
    metadata: Mapping[int, CandidateMetadata],
    recipe: Recipe,
) -> dict[str, dict[str, Ranking]]:
    """Return the list of each leg for each namespace alone, cut to the leg's depth, with that namespace's row ids."""
    lists: dict[str, dict[str, Ranking]] = {namespace: {} for namespace in namespaces}
    for leg, ranking in rankings.items():
        own: dict[str, list[tuple[int, float]]] = {namespace: [] for namespace in namespaces}
        for row_id, score in zip(ranking.row_ids, ranking.scores, strict=True):
            if (head := metadata.get(row_id)) is not None and head.namespace in own:
                own[head.namespace].append((row_id, score))
        for namespace, rows in own.items():
            row_ids, scores = tuple(row_id for row_id, _ in rows), tuple(score for _, score in rows)
            one = settle(replace(ranking, row_ids=row_ids, scores=scores), metadata, recipe.depths.get(leg, 100))
            lists[namespace][leg] = replace(one, row_ids=tuple(local(row_id) for row_id in one.row_ids))
    return lists


def gather(
    question: Question,
    scope: Scope,
    recipe: Recipe,
    regime: str,
    answers: Mapping[str, Ranking],
    by_row_id: Mapping[int, CandidateMetadata],
    degraded: Mapping[str, str],
    *,
    vanished: bool = False,
    fitted: FittedCurve | None = None,
) -> Candidates:
    """Turn the rankings of the legs into fused candidates; a leg without a weight, such as a seeder, adds no share."""
    weighted = recipe.legs
    exact = frozenset[int]().union(*(r.trace.exact for r in answers.values())) if recipe.exact_bonus else ()
    candidates = Candidates(
        question,
        scope,
        recipe,
        regime,
        {leg: tuple([by_row_id[o].key for o in r.row_ids]) for leg, r in answers.items() if leg in weighted},
        {leg: r.scores for leg, r in answers.items() if leg in weighted},
        {leg: r.trace for leg, r in answers.items()},
        {head.key: head for head in by_row_id.values()},
        frozenset(by_row_id[o].key for o in exact if o in by_row_id),
        dict(degraded),
        best={leg: r.scores[0] if r.scores else 0.0 for leg, r in answers.items()},
        vanished=vanished,
        fitted=fitted,
    )
    return replace(candidates, ranked=candidates.fuse())


def total(candidates: Candidates, shown: Collection[Key] = ()) -> tuple[int, bool]:
    """Return how many memories any leg matched, and whether that number is exact: no leg failed or was cut.

    ``shown`` memories are counted as well, because a memory that supersedes a match may match nothing itself.

    A leg may count matches beyond its depth, as the lexical leg does. It counts the parts of a memory separately, so
    where texts were split the total is an upper estimate and not exact.
    """
    keys = set(shown).union(*candidates.rankings.values())
    counted = {leg: m for leg in candidates.rankings if (m := candidates.traces[leg].matched) is not None}
    beyond = 0
    if counted:
        import numpy as np

        of = candidates.metadata  # as a rule all of them are in a list
        heads = of.values() if len(keys) == len(of) else [of[key] for key in keys]
        row_ids = np.array(sorted({head.row_id for head in heads}), dtype=np.int64)
        every = next(iter(counted.values())) if len(counted) == 1 else np.unique(np.concatenate([*counted.values()]))
        counted_row_ids = (
            every[np.searchsorted(every, row_ids[row_ids <= every[-1]])] if len(every) else every
        )  # few among many
        beyond = len(every) - int((counted_row_ids == row_ids[: len(counted_row_ids)]).sum())
    whole = all(
        len(ranking) < candidates.recipe.depths.get(leg, 100) or leg in counted
        for leg, ranking in candidates.rankings.items()
    )
    split = any(part for _, part, _ in keys)
    memories = len({(id, namespace) for id, _, namespace in keys}) if split else len(keys)
    return memories + beyond, whole and not (split and beyond > 0) and not candidates.degraded


CURVES: Mapping[tuple[str, ...], Curve] = {
    ("dense", "lexical"): ((5.6, 1.5), -3.15),
    ("dense",): ((6.3,), -3.1),
    ("lexical",): ((3.9,), -1.05),
}
"""For each set of legs that know how well they match: the weight of each leg's match, and the constant."""


EMBEDDER_CURVES: Mapping[str, Mapping[tuple[str, ...], Curve]] = {
    "all-mpnet-base-v2": {("dense", "lexical"): ((5.0, 0.15), -2.45), ("dense",): ((5.05,), -2.45)},
}
"""For each other embedder that was measured: the curves with its cosines, in place of those above; see adr/0078."""


def confidence(candidates: Candidates) -> float:
    """Return the confidence of a recall, in [0, 1]; 0 where nothing was found.

    Where neither the lexical nor the dense leg knows how well it matches, this is the mean of the first scores of the
    other legs, which is not fitted to data.
    """
    if not candidates.ranked:  # only a leg without a weight found something
        return 0.0
    match_by_leg = matches(candidates)
    if not match_by_leg:
        others = [min(1.0, max(0.0, score)) for leg, score in candidates.best.items() if leg != RANKED_LEG]
        return sum(others) / len(others) if others else 0.0
    return curve(match_by_leg, embedder_of(candidates), candidates.fitted)


def embedder_of(candidates: Candidates) -> str:
    """Return the name of the embedder of the question, without a mark of its precision; empty where there is none."""
    from semmem.model.store.encoded import vector_embedder

    by = vector_embedder(candidates.question.vector) or {}
    return str(by.get("name", "")).removesuffix("-int8")


def matches(candidates: Candidates) -> dict[str, float]:
    """Return how well the first memory of the lexical and of the dense leg matches, in [0, 1].

    A leg is left out if it was not asked, could not answer, or knows no word of the question.
    """
    most = candidates.most
    return {
        leg: min(1.0, max(0.0, candidates.best[leg] / most[leg]))
        for leg in ("dense", "lexical")
        if leg in candidates.best and most.get(leg, 0.0) > 0
    }


def curve(match_by_leg: Mapping[str, float], embedder: str = "", fitted: FittedCurve | None = None) -> float:
    """Return the confidence for the matches of some legs, in [0, 1].

    The curve is the ``fitted`` one, else that of ``embedder`` if it was measured, else that of MiniLM.
    """
    own = EMBEDDER_CURVES.get(embedder, {}) if fitted is None else fitted.curves
    weights, constant = {**CURVES, **own}[tuple(sorted(match_by_leg))]
    over = constant + sum(w * match_by_leg[leg] for w, leg in zip(weights, sorted(match_by_leg), strict=True))
    return 1 / (1 + math.exp(min(-over, 700.0)))  # above, there is no such number


FLOORS: Mapping[str, float] = {"all-MiniLM-L6-v2": 0.25, "all-mpnet-base-v2": 0.3}
"""For each embedder that was measured: the floor of confidence that ``min_confidence="auto"`` stands for."""
OTHER_FLOOR = 0.15
"""The floor with any other embedder: low, because cosines of another model may all be smaller."""
LEXICAL_FLOOR = 0.35
"""The floor where the dense leg did not answer. An unrelated question shares a word with some memory, so it is higher.

``python -m eval confidence --floors`` measures all of them; adr/0056 and adr/0078 have the tables.
"""


def auto_floor(candidates: Candidates) -> float:
    """Return the floor of confidence that was measured for the legs that answered and for the embedder."""
    if "dense" not in matches(candidates):
        return LEXICAL_FLOOR
    if candidates.fitted is not None:
        return candidates.fitted.floor
    return FLOORS.get(embedder_of(candidates), OTHER_FLOOR)


_DEEPEST = 1_000


def deeper(candidates: Candidates) -> Recipe | None:
    """Return the recipe with deeper lists (eightfold) for the legs that were cut; None where no leg was cut.

    Folding copies of one text or parts of one memory can leave fewer hits than the limit.
    """
    depths = full_depths(candidates.recipe)
    cut_off = {
        leg: 8 * depths[leg] for leg, r in candidates.rankings.items() if leg in depths and len(r) >= depths[leg]
    }
    short = {leg: depth for leg, depth in cut_off.items() if depths[leg] < _DEEPEST}
    return replace(candidates.recipe, depths={**candidates.recipe.depths, **short}) if short else None
