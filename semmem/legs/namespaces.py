"""Join the lists of one leg from several namespaces by score; each namespace is searched as if it were the only one.

So the content of one namespace decides nothing in another: not whom a name means, not which turns are neighbours, not
whether all words must match, not which memories are near enough for their sessions to be read.

**Fair.** Where a memory stands among those of other namespaces goes by how well it matches the question, and not by how
much its namespace holds. So a leg joins scores that mean the same everywhere: the dense leg cosines; the lexical leg
shares of the best BM25 that the question allows in that namespace (``of_best``), because a score itself grows with the
logarithm of the number of memories; the graph leg masses times how well the namespace's own first finds match beside
the best namespace's (``standing``), because every walk starts with the same mass, however little it has to start from.
A large namespace then does not shut out the one memory of a small one that answers, and a small one that answers
nothing takes no place for being small. A tie goes by id. No namespace has a place for itself: one with nothing to say
says nothing.
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
    """Return one list of the rankings of several namespaces, in the order of these, best first, ties by ord.

    Totals are added, and traces are left to the leg. Each ord has the place of its namespace in it.
    """
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


def of_best(ranking: Ranking) -> Ranking:
    """Return a ranking whose scores are shares of the best score that the question allows, which its trace knows."""
    most = ranking.trace.most or 0.0
    return replace(ranking, scores=tuple(score / most for score in ranking.scores)) if most > 0 else ranking


def standing(heads: Sequence[Mapping[str, Ranking]]) -> list[float]:
    """Return how well each namespace's first finds match, beside the best of all namespaces: from 0 to 1.

    ``heads`` are each namespace's lists by leg, with scores that mean the same in all of them. It is the mean over the
    legs that found anything anywhere; 1 for each where none did.
    """
    firsts = {
        leg: [max(0.0, own[leg].scores[0]) if leg in own and own[leg].scores else 0.0 for own in heads]
        for leg in sorted({leg for own in heads for leg in own})
    }
    shares = [[one / max(each) for one in each] for each in firsts.values() if max(each) > 0]
    return [sum(of) / len(shares) for of in zip(*shares, strict=True)] if shares else [1.0] * len(heads)
