"""One leg in several namespaces: each is asked by itself, as if there were no other, and the lists are joined by score.

So what one namespace holds decides nothing in another: neither who is meant by a name, nor whose turns are neighbours,
nor whether all words must match, nor which memories are near enough to be read with what stands around them.
"""

from __future__ import annotations

from collections.abc import Sequence

from semmem.model.exchange import MOST_TURNS, Ranking

__all__ = ["TOO_LONG", "joined"]

TOO_LONG = {
    "conversation": f"the sessions around what was found have more than {MOST_TURNS:,} turns together, so what stands "
    "around a turn, who said it and when did not count; give long conversations several sessions"
}


def joined(rankings: Sequence[Ranking]) -> Ranking:
    """Return one list of all, best first, ties by ord; totals are added, and traces are left to the leg."""
    if len(rankings) == 1:
        return rankings[0]
    rows = sorted(
        ((ord, score) for r in rankings for ord, score in zip(r.ords, r.scores, strict=True)),
        key=lambda row: (-row[1], row[0]),
    )
    return Ranking(
        tuple(ord for ord, _ in rows),
        tuple(score for _, score in rows),
        sum(r.total for r in rankings),
        degraded={part: why for r in rankings for part, why in r.degraded.items()},
        turns={ord: turn for r in rankings for ord, turn in r.turns.items()},
    )
