"""Join the lists of one leg from several namespaces by score; each namespace is searched as if it were the only one.

So the content of one namespace decides nothing in another: not whom a name means, not which turns are neighbours, not
whether all words must match, not which sessions are read.

**Fairness.** The place of a memory among those of other namespaces depends on how well it matches the question, and not
on the size of its namespace. So scores are joined that mean the same everywhere. The dense leg has cosines. The lexical
leg has shares of the best BM25 score possible in the namespace (``of_best``), because a plain score grows with the
logarithm of the number of memories. The graph leg has masses, multiplied by how well the first results of the other
legs in the namespace match, relative to the best namespace (``standing``), because every walk starts with the same
total mass. So a large namespace does not shut out the one good memory of a small one, and a small namespace without an
answer gets no place for being small. Ties go by id. No place is reserved for a namespace.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from semmem.model.exchange import MOST_TURNS, Ranking, placed

__all__ = ["TOO_LONG", "joined", "of_best", "standing"]

TOO_LONG = {
    "conversation": f"the sessions around what was found have more than {MOST_TURNS:,} turns together, so what stands "
    "around a turn, who said it and when did not count; give long conversations several sessions"
}


def joined(rankings: Sequence[Ranking]) -> Ranking:
    """Join the rankings of several namespaces, in their order, into one list: best first, ties by row id.

    Totals are added; the leg itself joins the traces. Each row id gets the place of its namespace.
    """
    rows = sorted(
        (
            (placed(row_id, place), score)
            for place, r in enumerate(rankings)
            for row_id, score in zip(r.row_ids, r.scores, strict=True)
        ),
        key=lambda row: (-row[1], row[0]),
    )
    turns = (
        turn._replace(row_id=placed(turn.row_id, place))
        for place, r in enumerate(rankings)
        for turn in r.turns.values()
    )
    return Ranking(
        tuple(row_id for row_id, _ in rows),
        tuple(score for _, score in rows),
        sum(r.total for r in rankings),
        degraded={part: why for r in rankings for part, why in r.degraded.items()},
        turns={turn.row_id: turn for turn in turns},
    )


def of_best(ranking: Ranking) -> Ranking:
    """Return a ranking with its scores divided by the best score that the question allows, as given by its trace."""
    most = ranking.trace.most or 0.0
    return replace(ranking, scores=tuple(score / most for score in ranking.scores)) if most > 0 else ranking


def standing(rankings: Sequence[Mapping[str, Ranking]]) -> list[float]:
    """Return how well each namespace's first results match, relative to the best namespace: from 0 to 1.

    ``rankings`` are the lists of each namespace by leg, with scores that mean the same in all of them. The result is
    the mean over the legs that found anything anywhere; 1 for every namespace where none did.
    """
    firsts = {
        leg: [max(0.0, own[leg].scores[0]) if leg in own and own[leg].scores else 0.0 for own in rankings]
        for leg in sorted({leg for own in rankings for leg in own})
    }
    shares = [[one / max(each) for one in each] for each in firsts.values() if max(each) > 0]
    return [sum(of) / len(shares) for of in zip(*shares, strict=True)] if shares else [1.0] * len(rankings)
