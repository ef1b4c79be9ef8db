"""Count the memories that a setting brought in, lifted into and pushed out of the top k, and how many were gold."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence

from eval.datasets import Query
from eval.statistics.measures import Run

__all__ = ["turnover"]

_WHAT = ("leg-only", "boosted in", "demoted out")


def turnover(
    queries: Sequence[Query], base: Run, other: Run, k: int, *, own: Mapping[str, Collection[str]] | None = None
) -> dict[str, int]:
    """Count, over all questions, what is in the top k of ``other`` and not of ``base``, and the reverse.

    ``leg-only`` memories are finds of the studied leg, ``own`` by question, that stand in the top k of either list;
    ``boosted in`` came in and are no finds; ``demoted out`` fell out. Beside each is a count of the gold among them.
    """
    counts: Counter[str] = Counter({f"{what}{gold}": 0 for what in _WHAT for gold in ("", " gold")})
    for query in queries:
        before, after = _top(base.get(query.id, ()), k), _top(other.get(query.id, ()), k)
        gold, finds = set(query.gold_memories), set((own or {}).get(query.id, ()))
        for what, ids in (
            ("leg-only", (before | after) & finds),
            ("boosted in", (after - before) - finds),
            ("demoted out", (before - after) - finds),
        ):
            counts[what] += len(ids)
            counts[f"{what} gold"] += len(ids & gold)
    return dict(counts)


def _top(places: Sequence[str | tuple[str, ...]], k: int) -> set[str]:
    return {id for place in places[:k] for id in ((place,) if isinstance(place, str) else place)}
