"""Join the lists of one leg from several namespaces by score; each namespace is searched as if it were the only one.

So the content of one namespace decides nothing in another: not whom a name means, not which turns are neighbours, not
whether all words must match, not which memories are near enough for their sessions to be read.
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
