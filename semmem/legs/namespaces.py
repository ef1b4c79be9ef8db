"""One leg in several namespaces: each is asked by itself, as if there were no other, and the lists are joined by score.

So what one namespace holds decides nothing in another: neither who is meant by a name, nor whose turns are neighbours,
nor whether all words must match, nor which memories are near enough to be read with what stands around them.
"""

from __future__ import annotations

from collections.abc import Sequence

from semmem.model.exchange import MOST_TURNS, Ranking, placed

__all__ = ["TOO_LONG", "joined"]

TOO_LONG = {
    "conversation": f"the sessions around what was found have more than {MOST_TURNS:,} turns together, so what stands "
    "around a turn, who said it and when did not count; give long conversations several sessions"
}


def joined(rankings: Sequence[Ranking]) -> Ranking:
    """Return one list of the rankings of several namespaces, in the order of these, best first, ties by ord.

    Totals are added, and traces are left to the leg. Each ord has the place of its namespace in it.
    """
    if len(rankings) == 1:
        return rankings[0]
    rows = sorted(
        (
            (placed(ord, at), score)
            for at, r in enumerate(rankings)
            for ord, score in zip(r.ords, r.scores, strict=True)
        ),
        key=lambda row: (-row[1], row[0]),
    )
    turns = (turn._replace(ord=placed(turn.ord, at)) for at, r in enumerate(rankings) for turn in r.turns.values())
    return Ranking(
        tuple(ord for ord, _ in rows),
        tuple(score for _, score in rows),
        sum(r.total for r in rankings),
        degraded={part: why for r in rankings for part, why in r.degraded.items()},
        turns={turn.ord: turn for turn in turns},
    )
