"""Fuse, fold and rerank plain lists, without a store, with the functions of the projects that semmem grew from.

``fuse``, ``fuse_scores``, ``dedup`` and ``rerank`` are those of memini, ``fuse_rows`` is that of synalinks; all are
names of ``semmem`` itself. They keep the semantics of these projects: ranks from 0 in ``fuse``, and equal scores stay
in the order in which they were first seen (a recall breaks ties by id instead). No argument is changed.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from semmem.model.errors import InvalidInput
from semmem.text.passages import normalise

__all__ = [
    "ALPHA",
    "RERANK_WEIGHTS",
    "Entry",
    "composite_terms",
    "dedup",
    "fuse",
    "fuse_rows",
    "fuse_scores",
    "recency",
    "rerank",
]

ALPHA = 0.5
"""The vector leg's weight in ``fuse_scores([vector, keyword], [ALPHA, 1 - ALPHA])``."""
RERANK_WEIGHTS = (0.80, 0.05, 0.15)
"""The weights of relevance, recency and importance."""
HALF_LIFE = timedelta(days=30)
"""The age at which ``recency`` is one half."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of a list. ``score`` is the list's own, ``importance`` is in [0, 1], ``accessed_at`` the last use."""

    id: str
    score: float = 0.0
    text: str = ""
    importance: float = 0.5
    accessed_at: datetime | None = None


def fuse(lists: Sequence[Sequence[Entry]], limit: int = 0, rank_constant: float = 5) -> list[Entry]:
    """Return the reciprocal rank fusion of ``lists``: score = sum of 1/(rank_constant + rank), ranks from 0.

    Each id has one entry, as first seen, with the new score; best first, ties as first seen; a ``limit`` of 0 or less
    returns all. The constant is 5 and not 60, because at 60 an entry in the middle of two deep lists beats one that is
    first in one list. Raises InvalidInput for a rank constant that is not above 0.
    """
    if not rank_constant > 0:
        raise InvalidInput(f"rank_constant must be above 0, as ranks start at 0, not {rank_constant!r}.")
    first, places = _gathered(lists)
    scores = {id: math.fsum(1 / (rank_constant + rank) for _, rank in of_id) for id, of_id in places.items()}
    return _best(first, scores, limit)


def fuse_scores(lists: Sequence[Sequence[Entry]], weights: Sequence[float] = (), limit: int = 0) -> list[Entry]:
    """Return the weighted sum of each list's scores, scaled within the list so that the best is 1 and the worst 0.

    ``weights`` align with ``lists`` by index, missing ones are 1. In a list of one entry, or of equal scores, every
    score is 1. Magnitudes are kept: an entry that stands out in one list beats one in the middle of two. Each id has
    one entry, as first seen; ties as first seen; a ``limit`` of 0 or less returns all. Raises InvalidInput for a score
    that is not finite.
    """
    first, places = _gathered(lists)
    ranges: list[tuple[float, float]] = []
    for entries in lists:
        values = [entry.score for entry in entries] or [0.0]
        if not all(map(math.isfinite, values)):
            raise InvalidInput("fuse_scores can scale finite scores only; leave entries without a score out.")
        ranges.append((min(values), max(values)))
    scores: dict[str, float] = {}
    for id, of_id in places.items():
        terms = []
        for which, index in of_id:
            least, best = ranges[which]
            share = (lists[which][index].score - least) / (best - least) if best > least else 1.0
            terms.append((weights[which] if which < len(weights) else 1.0) * share)
        scores[id] = math.fsum(terms)
    return _best(first, scores, limit)


def fuse_rows(
    results: Sequence[Sequence[Mapping[str, Any]] | None],
    k: int | None = None,
    k_rank: float = 60,
    id_key: str | None = None,
) -> list[dict[str, Any]]:
    """Return the reciprocal rank fusion of lists of rows: copies with ``rrf_score`` = sum of 1/(k_rank + rank).

    Ranks are from 1. Rows are equal when their ``id_key`` is equal, or without one when the whole rows are, in any
    order of keys; the first seen is returned. A list that is None is ignored. Only the order of each list counts, so
    lists of any kind of search can be mixed. Best first, ties as first seen, cut to ``k`` (None: all).

    Raises InvalidInput for a row without ``id_key``, or a ``k_rank`` below 0.
    """
    if not k_rank >= 0:
        raise InvalidInput(f"k_rank must be 0 or more, not {k_rank!r}.")
    first: dict[Hashable, Mapping[str, Any]] = {}
    shares: dict[Hashable, list[float]] = {}
    for rows in _each("fuse_rows", results, object, "lists of rows"):
        keys: set[Hashable] = set()
        for rank, row in enumerate(
            () if rows is None else _each("fuse_rows", rows, Mapping, "rows, each a mapping"), 1
        ):
            if id_key is not None and id_key not in row:
                raise InvalidInput(f"A row at rank {rank} has no {id_key!r}; name a key that every row has as id_key.")
            key = _signature(row if id_key is None else row[id_key])
            if key in keys:  # a row that a list names twice counts at its first place
                continue
            keys.add(key)
            first.setdefault(key, row)
            shares.setdefault(key, []).append(1 / (k_rank + rank))
    scored = [{**row, "rrf_score": math.fsum(shares[key])} for key, row in first.items()]
    scored.sort(key=lambda row: -row["rrf_score"])
    return scored if k is None else scored[: max(k, 0)]


def dedup(results: Sequence[Entry], limit: int = 0) -> list[Entry]:
    """Return ``results`` without entries whose normalised text equals an earlier one's; ``limit`` <= 0 returns all."""
    first: dict[str, Entry] = {}
    for entry in _each("dedup", results, Entry, "semmem.list_fusion.Entry"):
        first.setdefault(normalise(entry.text), entry)
    entries = list(first.values())
    return entries[:limit] if limit > 0 else entries


def rerank(
    results: Sequence[Entry], now: datetime, weights: tuple[float, float, float] = RERANK_WEIGHTS
) -> list[Entry]:
    """Return ``results`` by a composite score: relevance, recency by last access, importance, with these ``weights``.

    Relevance is the incoming score divided by the largest of the set. Equal composites stay in order. ``now`` has a
    time zone exactly if the times of the entries have one. Raises InvalidInput when they differ in that.
    """
    results = [*_each("rerank", results, Entry, "semmem.list_fusion.Entry")]
    scores = [entry.score for entry in results]
    times = [entry.accessed_at for entry in results]
    terms = composite_terms(scores, times, [entry.importance for entry in results], now, weights)
    out = [replace(entry, score=math.fsum(of.values())) for entry, of in zip(results, terms, strict=True)]
    return sorted(out, key=lambda entry: -entry.score)


def composite_terms(
    scores: Sequence[float],
    times: Sequence[datetime | None],
    importances: Sequence[float],
    now: datetime,
    weights: tuple[float, float, float] = RERANK_WEIGHTS,
) -> list[dict[str, float]]:
    """Return the weighted terms ``relevance``, ``recency`` and ``importance`` of each entry, each at most its weight.

    Raises InvalidInput when ``now`` and the times differ in having a time zone.
    """
    largest = max(scores, default=0.0)
    out = []
    for score, time, importance in zip(scores, times, importances, strict=True):
        terms = (score / largest if largest > 0 else 0.0, recency(time, now), min(1.0, max(0.0, importance)))
        names = ("relevance", "recency", "importance")
        out.append({name: weight * term for name, weight, term in zip(names, weights, terms, strict=True)})
    return out


def recency(time: datetime | None, now: datetime) -> float:
    """Return 1 for now, half of that for every 30 days of age, and 0 for None."""
    if time is None:
        return 0.0
    try:
        age = now - time
    except TypeError as error:
        raise InvalidInput("now and the times of access must both have a time zone, or neither.") from error
    return float(0.5 ** (max(age, timedelta(0)) / HALF_LIFE))


def _each(who: str, values: Any, kind: type[Any], what: str) -> Iterator[Any]:
    """Yield the elements of ``values``. Raises InvalidInput where that is no list of ``kind``."""
    if isinstance(values, str | bytes | Mapping) or not isinstance(values, Iterable):
        raise InvalidInput(f"{who} takes a list of {what}, not {type(values).__name__}.")
    for one in values:
        if not isinstance(one, kind):
            raise InvalidInput(f"{who} takes a list of {what}, and one in it is {type(one).__name__}.")
        yield one


def _gathered(lists: Sequence[Sequence[Entry]]) -> tuple[dict[str, Entry], dict[str, list[tuple[int, int]]]]:
    """Return each id's first entry and its (list, place from 0); an id twice in a list counts at its first place."""
    first: dict[str, Entry] = {}
    places: dict[str, list[tuple[int, int]]] = {}
    for which, entries in enumerate(_each("Fusing", lists, object, "lists")):
        for index, entry in enumerate(_each("Fusing", entries, Entry, "semmem.list_fusion.Entry")):
            first.setdefault(entry.id, entry)
            of_id = places.setdefault(entry.id, [])
            if not of_id or of_id[-1][0] != which:
                of_id.append((which, index))
    return first, places


def _best(first: Mapping[str, Entry], scores: Mapping[str, float], limit: int) -> list[Entry]:
    out = [replace(entry, score=scores[id]) for id, entry in first.items()]
    out.sort(key=lambda entry: -entry.score)
    return out[:limit] if limit > 0 else out


def _signature(value: Any) -> Hashable:
    """Return a hashable value that is equal for equal values, mappings in any order of keys."""
    if isinstance(value, Mapping):
        return ("mapping", frozenset((repr(key), _signature(item)) for key, item in value.items()))
    if isinstance(value, list | tuple):
        return ("list", tuple(map(_signature, value)))
    return (type(value).__name__, repr(value))
