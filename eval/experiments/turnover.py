"""Count the memories that a setting brought in, lifted into and pushed out of the top k, and how many were gold."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from eval.datasets import Query
from eval.experiments.lists import Asked
from eval.statistics.measures import Run
from eval.statistics.preflight import leg_only
from semmem.model.recipe import Recipe

__all__ = ["turnover"]

_WHAT = ("leg-only", "boosted in", "demoted out")


def turnover(
    queries: Sequence[Query],
    base: Run,
    other: Run,
    k: int,
    *,
    leg: str | None = None,
    holder: Recipe | None = None,
    asked: Mapping[str, Asked] | None = None,
) -> dict[str, int]:
    """Count, over all questions, what is in the top k of ``other`` and not of ``base``, and the reverse.

    ``leg-only`` memories were returned by the studied leg alone (``leg`` of ``holder``) and stand in the top k of
    either list; ``boosted in`` came in and another leg had returned them too; ``demoted out`` fell out. Each has a
    count of the gold among them beside it.
    """
    counts: Counter[str] = Counter({f"{what}{gold}": 0 for what in _WHAT for gold in ("", " gold")})
    for query in queries:
        before, after = _top(base.get(query.id, ()), k), _top(other.get(query.id, ()), k)
        gold = set(query.gold_memories)
        own = leg_only(holder, leg, asked[query.id]) if leg and holder is not None and asked is not None else set()
        for what, ids in (
            ("leg-only", (before | after) & own),
            ("boosted in", (after - before) - own),
            ("demoted out", (before - after) - own),
        ):
            counts[what] += len(ids)
            counts[f"{what} gold"] += len(ids & gold)
    return dict(counts)


def _top(places: Sequence[str | tuple[str, ...]], k: int) -> set[str]:
    return {id for place in places[:k] for id in ((place,) if isinstance(place, str) else place)}
