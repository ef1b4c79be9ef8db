"""Function words that the lexical leg and the concepts leave out, as folded tokens.

English is complete, question words included (they alone are worth .066 recall@10 on conversation, see graph-leg.md).
The other languages have none yet: their function words are ordinary terms, which BM25's idf makes light.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

__all__ = ["CONTRACTIONS", "STOP_WORDS"]

_ARTICLES_AND_PRONOUNS = """
a an the this that these those some any each every either neither both all such same other another
i me my mine myself we us our ours ourselves you your yours yourself yourselves he him his himself she her hers herself
it its itself they them their theirs themselves one
"""
_QUESTION_WORDS = "who whom whose what which when where why how whether"
_VERBS = """
am is are was were be been being do does did doing done have has had having
can could may might must shall should will would
"""
_PREPOSITIONS_AND_CONJUNCTIONS = """
of in on at by for from to into onto with within without about above below over under between among through during
before after against upon toward towards since until off out up down as than per via
and or nor but if then else because while so though although unless
"""
_ADVERBS = "not no yes only also too very just there here again ever still even yet own more most much many few less"
_WITHOUT_APOSTROPHE = """
dont doesnt didnt isnt arent wasnt werent havent hasnt hadnt couldnt wouldnt shouldnt mustnt cannot cant
im ive youre youve youll theyre theyve thats whats whos eg ie
"""

STOP_WORDS: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        "english": frozenset(
            " ".join(
                (
                    _ARTICLES_AND_PRONOUNS,
                    _QUESTION_WORDS,
                    _VERBS,
                    _PREPOSITIONS_AND_CONJUNCTIONS,
                    _ADVERBS,
                    _WITHOUT_APOSTROPHE,
                )
            ).split()
        )
    }
)
"""By language; a language that is absent has no stop words."""

_WITH_APOSTROPHE = """
ill id youd hed shed wed well hell shell theyd theyll thatll itd itll wont weve whod wholl whove whatre
theres arent aint neednt darent mightnt shant
"""
CONTRACTIONS: Mapping[str, frozenset[str]] = MappingProxyType({"english": frozenset(_WITH_APOSTROPHE.split())})
"""Stop words only where they were written with an apostrophe: "I'll" is one, "ill" is not."""
