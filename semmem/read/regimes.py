"""The regime of a question: what its lists say, before they are fused, of which leg to believe. Pure.

The graph leg says whether the question names something. One that names nothing is *anchored* where the walk's first
memory holds much mass, since some rare word of the question led there. It is *described* where the walk holds little
and the best memory of the lexical leg has little of the best score possible, or where no memory has a word of it: the
question says it in other words, so only the dense leg can know. The limits were chosen with two encoders on tuning
sets (adr/0076). Among few memories a walk holds much mass whatever was asked, so there no question is anchored.

A question that names authors of a conversation is neither: there, masses and scores are raised for what an author said.
"""

from __future__ import annotations

from collections.abc import Mapping

from semmem.legs.graph import UNNAMED
from semmem.model.exchange import Question, Ranking

__all__ = ["ANCHORED", "ANCHORED_AMONG", "ANCHORED_FROM", "DESCRIBED", "DESCRIBED_BELOW", "regime_of"]

ANCHORED, DESCRIBED = "anchored", "described"

ANCHORED_FROM = 0.4
"""The mass of the walk's first memory from which on a question that names nothing is anchored."""

ANCHORED_AMONG = 20
"""The number of memories in scope from which on a question may be anchored."""

DESCRIBED_BELOW = 0.2
"""The share of the best BM25 score possible below which a question that is not anchored is described."""


def regime_of(of_graph: str, question: Question, rankings: Mapping[str, Ranking], among: int) -> str:
    """Return the regime of ``question``; ``of_graph`` is what the graph leg says, which stays unless it is unnamed.

    ``among`` is the number of memories in scope. Without a list of the graph or of the lexical leg no more is known.
    """
    graph, lexical = rankings.get("graph"), rankings.get("lexical")
    if of_graph != UNNAMED or graph is None or lexical is None or _names_an_author(question):
        return of_graph
    most = lexical.trace.most or 0.0
    share = lexical.scores[0] / most if lexical.scores and most > 0 else 0.0
    # a walk that only the heads of the dense leg began knows nothing of the question's words
    if share and graph.scores and graph.scores[0] >= ANCHORED_FROM:
        return ANCHORED if among >= ANCHORED_AMONG else of_graph
    return DESCRIBED if share < DESCRIBED_BELOW else of_graph


def _names_an_author(question: Question) -> bool:
    """Return whether the question names one or more authors of a conversation, in any of its namespaces."""
    return any(
        one.conversational is not None and one.conversational.authors for one in (question, *question.narrowed.values())
    )
