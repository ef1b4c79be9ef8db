"""Plain baselines for comparison: term overlap, bm25s, random. The dense leg alone is the recipe ``dense``.

They read the corpus and never the store, and share no code with semmem's legs.
"""

from __future__ import annotations

import random
import re
from collections import defaultdict
from collections.abc import Callable, Mapping
from types import MappingProxyType

from eval.datasets import Corpus
from eval.statistics.measures import Run

__all__ = ["BASELINES", "bm25s_run", "overlap_run", "random_run"]

_WORD = re.compile(r"\w+")


def overlap_run(corpus: Corpus, *, limit: int = 100, seed: int = 0) -> Run:
    """Rank memories by the number of distinct words of the question in them, as a search with grep would."""
    words = {
        space: [(id, set(_WORD.findall(text.lower()))) for id, text in rows] for space, rows in _texts(corpus).items()
    }
    run = {}
    for query in corpus.queries:
        question_words = set(_WORD.findall(query.text.lower()))
        shared = [(-len(question_words & has), id) for id, has in words[query.namespace] if question_words & has]
        run[query.id] = [id for _, id in sorted(shared)[:limit]]
    return run


def bm25s_run(corpus: Corpus, *, limit: int = 100, seed: int = 0) -> Run:
    """Rank memories with bm25s at its own defaults (k1 1.5, b .75, its English stop words, no stemming)."""
    import bm25s

    run: dict[str, list[str]] = {}
    for space, rows in _texts(corpus).items():
        index = bm25s.BM25()
        index.index(
            bm25s.tokenize([text for _, text in rows], stopwords="en", show_progress=False), show_progress=False
        )
        queries = [q for q in corpus.queries if q.namespace == space]
        if not queries:
            continue
        tokens = bm25s.tokenize([q.text for q in queries], stopwords="en", show_progress=False, return_ids=False)
        for query, of_query in zip(queries, tokens, strict=True):
            run[query.id] = []
            if not of_query:
                continue
            positions, scores = index.retrieve([of_query], k=min(limit, len(rows)), show_progress=False)
            run[query.id] = [rows[i][0] for i, score in zip(positions[0], scores[0], strict=True) if score > 0]
    return run


def random_run(corpus: Corpus, *, limit: int = 100, seed: int = 0) -> Run:
    """Rank memories at random, seeded by question: the floor of every metric."""
    ids = {space: [id for id, _ in rows] for space, rows in _texts(corpus).items()}
    return {
        q.id: random.Random(f"{seed} {q.id}").sample(ids[q.namespace], min(limit, len(ids[q.namespace])))
        for q in corpus.queries
    }


BASELINES: Mapping[str, Callable[..., Run]] = MappingProxyType(
    {"grep": overlap_run, "bm25s": bm25s_run, "random": random_run}
)


def _texts(corpus: Corpus) -> dict[str, list[tuple[str, str]]]:
    out: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for memory in corpus.memories:
        text = f"{memory.get('title') or ''} {memory['text']}".strip()
        out[str(memory["namespace"])].append((str(memory["id"]), text))
    return out
