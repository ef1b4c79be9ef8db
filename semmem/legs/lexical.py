"""The lexical leg: BM25 over title (twice) and text, exact over the whole posting lists of the question's terms.

The formula is Robertson and Zaragoza (2009) in Lucene's form: idf = ln(1 + (N - df + .5) / (df + .5)), and
tf / (tf + k1 (1 - b + b · length / average length)), as in the package bm25s. N, df and the average are the
namespace's; filters do not change them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from semmem.legs import conversation
from semmem.legs.namespaces import TOO_LONG, joined, of_best
from semmem.model.arrays import sums
from semmem.model.exchange import MOST_TURNS, Postings, Question, Ranking, Scope, Trace, Turn, placed
from semmem.model.protocols import Leg
from semmem.model.recipe import Recipe
from semmem.model.store import Snapshot
from semmem.text.passages import normalise, term_key, terms
from semmem.text.tokens import vocabulary

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["Lexical", "bm25"]

ENOUGH = 10
"""``match="auto"`` is satisfied when this many memories hold all terms."""
_TIES = 1_000
"""At most this many memories are returned beyond the depth when scores tie there, so that ids break the tie."""


class Lexical(Leg):
    """BM25 over a store's postings; ``search`` reads them in one round trip a namespace."""

    name = "lexical"
    reads_vector = False
    at_once = True

    def __init__(self, language: str = "english") -> None:
        self._language = language

    def search(self, question: Question, snapshot: Snapshot, recipe: Recipe) -> Ranking:
        """Return the memories that share a term with the question; a question of stop words alone matches nothing.

        Quoted phrases must occur in title or text. ``match="auto"`` demands all terms, and any term where fewer than
        ``ENOUGH`` memories of the namespace have them all. For several namespaces, scores are shares of the best score
        possible in each; see semmem.legs.namespaces.
        """
        import numpy as np

        scope = snapshot.scope
        each, occupied = zip(scope.namespaces, scope.each(), strict=True), scope.occupied()
        rankings = [
            self._within(question.within(namespace), snapshot, one, recipe) if namespace in occupied else Ranking()
            for namespace, one in each
        ]
        if len(rankings) == 1:
            return rankings[0]
        traces = [(place, ranking.trace) for place, ranking in enumerate(rankings)]
        # ascending, as the places are
        matched = np.concatenate([placed(trace.matched, place) for place, trace in traces if trace.matched is not None])
        most = 1.0 if any(trace.most for _, trace in traces) else 0.0
        exact = frozenset(placed(row_id, place) for place, trace in traces for row_id in trace.exact)
        return replace(joined([of_best(ranking) for ranking in rankings]), trace=Trace(most, matched, exact))

    def _within(self, question: Question, snapshot: Snapshot, scope: Scope, recipe: Recipe) -> Ranking:
        import numpy as np

        frequencies = Counter(terms(question.text, self._language))
        if not frequencies:
            return Ranking(trace=Trace(0.0, np.zeros(0, dtype=np.int64)))
        counts = {term_key(term): n for term, n in frequencies.items()}
        settings = recipe.lexical
        (namespace,) = scope.namespaces
        (postings,) = snapshot.postings(namespace, (counts, None))
        row_ids, scores, matched = bm25(postings, counts, settings.k1, settings.b)
        most = _most(postings, counts)
        full = matched == len(counts)
        degraded: dict[str, str] = {}
        turn_by_row_id: dict[int, Turn] = {}
        if question.conversational is not None and recipe.conversation is not None and len(row_ids):
            head = row_ids[_best(row_ids, scores, conversation.CONVERSATIONAL_DEPTH)]
            rows = snapshot.turns(namespace, head)
            if len(rows) > MOST_TURNS:
                degraded = TOO_LONG
            else:
                turns, turn_by_row_id = conversation.Turns.of(rows), {row.row_id: row for row in rows}
                complete = row_ids[full]
                row_ids, scores = conversation.lexical(
                    turns, row_ids, scores, question.conversational, recipe.conversation
                )
                full = np.isin(row_ids, complete)
        inside = scope.matches(row_ids)
        row_ids, scores, full = row_ids[inside], scores[inside], full[inside]
        if settings.match == "all" or (settings.match == "auto" and full.sum() >= ENOUGH):
            row_ids, scores, full = row_ids[full], scores[full], full[full]
        if question.phrases:
            holds = self._with_phrases(question.phrases, snapshot, namespace, row_ids)
            row_ids, scores, full = row_ids[holds], scores[holds], full[holds]
        best = _best(row_ids, scores, recipe.depths.get(self.name, 100), _TIES)
        trace = Trace(most, row_ids, frozenset(row_ids[best][full[best]].tolist()))
        result = row_ids[best].tolist(), scores[best].tolist()
        return Ranking(
            tuple(result[0]), tuple(result[1]), len(row_ids), trace=trace, degraded=degraded, turns=turn_by_row_id
        )

    def _with_phrases(
        self, phrases: Sequence[str], snapshot: Snapshot, namespace: str, row_ids: NDArray[np.int64]
    ) -> NDArray[np.bool_]:
        """Return which of the memories hold every phrase; only texts that hold all of its terms are read."""
        import numpy as np

        candidates = row_ids
        keys = {term_key(t) for p in phrases for t in terms(p, self._language)}
        if keys:
            (postings,) = snapshot.postings(namespace, (keys, None))
            if len(postings.keys) < len(keys):
                return np.zeros(len(row_ids), dtype=bool)
            for _, entries in postings.items():
                candidates = candidates[np.isin(candidates, entries["ord"])]
        texts = snapshot.texts(namespace, candidates.tolist())
        sequences = [_sequence(phrase, self._language) for phrase in phrases]
        needles = [words for words in sequences if words]
        raw = [normalise(phrase) for phrase, words in zip(phrases, sequences, strict=True) if not words]

        def holds(whole: str) -> bool:
            pieces = whole.split("\n", 1)
            in_words = [_sequence(piece, self._language) for piece in pieces] if needles else []
            if not all(any(words in piece for piece in in_words) for words in needles):
                return False
            in_full = [normalise(piece) for piece in pieces] if raw else []
            return all(any(needle in piece for piece in in_full) for needle in raw)

        return np.isin(row_ids, [row_id for row_id, whole in texts.items() if holds(whole)])


def _sequence(text: str, language: str) -> str:
    """Return the folded tokens of ``text``, each between separators, so that a phrase is a substring.

    Case, accents and punctuation are ignored, stop words are not. Empty where there is no token.
    """
    folded = [word.folded for word in vocabulary(text, language)]
    return "\x1f" + "\x1f".join(folded) + "\x1f" if folded else ""


def _best(row_ids: NDArray[np.int64], scores: NDArray[np.float64], depth: int, ties: int = 0) -> NDArray[np.int64]:
    """Return the places of the ``depth`` best, best first and of one score by row id.

    Up to ``ties`` more follow that are as good as the last of these. Only what may be among them is sorted.
    """
    import numpy as np

    among = np.arange(len(scores))
    most = depth
    if 0 < depth < len(scores):
        last = np.partition(scores, len(scores) - depth)[len(scores) - depth]
        among = np.flatnonzero(scores >= last * (1 - 1e-9))
        most += ties
    order: NDArray[np.int64] = among[np.lexsort((row_ids[among], -scores[among]))][:most]
    return order


def _most(postings: Postings, counts: Mapping[int, int]) -> float:
    """Return the limit of the BM25 score of a memory that repeats every term of the question."""
    import numpy as np

    df = dict(zip(postings.keys.tolist(), postings.df().tolist(), strict=True))
    dfs = [(n, df[k]) for k, n in counts.items() if k in df]
    missing = sum(n for k, n in counts.items() if k not in df)
    unseen = np.log(1 + (postings.memories + 0.5) / 0.5)
    return float(sum(n * _idf(postings.memories, df) for n, df in dfs) + missing * unseen)


def _idf(memories: int, df: int) -> float:
    """Return the idf of a term in Lucene's form, which is never negative.

    While a namespace is being dropped, its postings hold more memories than its count says.
    """
    import numpy as np

    return float(np.log(1 + (max(memories, df) - df + 0.5) / (df + 0.5)))


def bm25(
    postings: Postings, counts: Mapping[int, int], k1: float, b: float
) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.int64]]:
    """Return the row ids that match, their BM25 scores, and how many of the question's keys each memory holds.

    ``counts`` maps a key to its frequency in the question. The sum runs over ascending keys, so that the floating-point
    result does not depend on how the store divides its segments.
    """
    import numpy as np

    tf = postings.entries["count"].astype(np.float64)
    row_ids, length = postings.entries["ord"].astype(np.int64), postings.entries["length"]
    sizes = postings.sizes
    if not (positive := tf > 0).all():  # a memory may be about a key that it does not count
        sizes = postings.counted()
        tf, row_ids, length = tf[positive], row_ids[positive], length[positive]
    if not len(row_ids):
        return row_ids, np.zeros(0), np.zeros(0, dtype=np.int64)
    average = postings.length / max(postings.memories, 1) or 1.0
    dfs = sizes if postings.of_today is None else postings.of_today  # as df(), which would count once more
    key_dfs = zip(postings.keys.tolist(), dfs.tolist(), strict=True)
    weights = np.array([counts[key] * _idf(postings.memories, df) for key, df in key_dfs])
    share = tf / (tf + k1 * (1 - b + b * length / average))
    share *= np.repeat(weights, sizes)
    return sums(row_ids, share)
