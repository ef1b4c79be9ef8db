"""Measures of ranked lists, through ir_measures, and what an agent gets for its tokens.

A run maps a question's id to what came back, best first. A place of a run is a memory's id, or a tuple of ids where
duplicates were folded into one hit: all of them count as found. Per-question values are numpy arrays in the order
of ``Measured.ids``, so that every statistic is paired by construction.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TypeAlias
from urllib.parse import quote

import ir_measures
import numpy as np
from ir_measures import RR, R, Success, nDCG
from numpy.typing import NDArray

from eval.datasets import Query

__all__ = [
    "AT_A_CUTOFF",
    "BUDGETS",
    "CUTOFFS",
    "Measured",
    "Place",
    "Run",
    "measure",
    "tokens",
    "write_qrels",
    "write_run",
]

Place: TypeAlias = "str | tuple[str, ...]"
Run: TypeAlias = Mapping[str, Sequence[Place]]
CUTOFFS = (1, 2, 5, 10, 20)
AT_A_CUTOFF = ("R", "nDCG", "RR", "Success", "AllGold")
"""The measures that have a cut-off, such as ``R@10``."""
BUDGETS = (500, 1000, 2000)
"""Token budgets: what an agent pays for the memories it puts into its prompt."""


@dataclass(frozen=True, slots=True)
class Measured:
    """Values of every measure for every question: ``values[name][i]`` belongs to ``ids[i]`` of ``strata[i]``."""

    ids: tuple[str, ...]
    strata: tuple[str, ...]
    apart: tuple[bool, ...]
    values: Mapping[str, NDArray[np.float64]]

    def rows(self, stratum: str = "headline") -> NDArray[np.intp]:
        """Return the positions of a stratum's questions; ``headline`` is every question that is not apart."""
        if stratum == "headline":
            return np.flatnonzero(~np.array(self.apart, dtype=bool))
        return np.flatnonzero(np.array([s == stratum for s in self.strata], dtype=bool))

    def of(self, name: str, stratum: str = "headline") -> NDArray[np.float64]:
        """Return the per-question values of one measure in one stratum."""
        return self.values[name][self.rows(stratum)]

    def mean(self, name: str, stratum: str = "headline") -> float:
        """Return the mean over a stratum, nan when it is empty."""
        values = self.of(name, stratum)
        return float(values.mean()) if len(values) else math.nan

    @property
    def groups(self) -> tuple[str, ...]:
        """``headline`` first, then every stratum by name."""
        return ("headline", *sorted(set(self.strata)))


def tokens(text: str) -> int:
    """Estimate the tokens of a text as a quarter of its characters, rounded up.

    The usual rule for English and byte-pair vocabularies; a model's own count differs by about a tenth, the same
    way for every condition.
    """
    return -(-len(text) // 4)


def measure(
    queries: Iterable[Query],
    run: Run,
    *,
    cutoffs: Sequence[int] = CUTOFFS,
    token_counts: Mapping[str, Mapping[str, int]] | None = None,
    budgets: Sequence[int] = BUDGETS,
) -> Measured:
    """Measure ``run`` on every question that has gold; a question the run does not have scores 0.

    Names are ir_measures': ``R@5``, ``nDCG@10``, ``RR@10``, ``Success@5``; ours are ``AllGold@5`` (1 where every
    gold memory is in the first 5) and ``R<=500tok``. ``token_counts`` maps namespace to memory id to tokens; without
    it the token measures are left out.
    """
    with_gold = [q for q in queries if q.gold]
    places = {q.id: i for i, q in enumerate(with_gold)}
    metrics = [m @ k for k in cutoffs for m in (R, nDCG, RR, Success)]
    values = {str(m): np.zeros(len(with_gold)) for m in metrics}
    runs = {q.id: falling(judged(q, run)) for q in with_gold}
    qrels = {q.id: dict(q.grades) for q in with_gold}
    if with_gold:
        for metric in ir_measures.iter_calc(metrics, qrels, {id: scores for id, scores in runs.items() if scores}):
            values[str(metric.measure)][places[metric.query_id]] = metric.value
    for k in cutoffs:
        # R@k is a ratio of small whole numbers: 1.0 exactly when all are found.
        values[f"AllGold@{k}"] = (values[f"R@{k}"] == 1.0).astype(np.float64)
    if token_counts is not None:
        for budget in budgets:
            values[f"R<={budget}tok"] = np.array(
                [
                    recall_within(budget, run.get(q.id, ()), q.gold, token_counts[q.namespace], q.any_of)
                    for q in with_gold
                ]
            )
    return Measured(
        ids=tuple(places),
        strata=tuple(q.stratum for q in with_gold),
        apart=tuple(q.apart for q in with_gold),
        values=values,
    )


def judged(query: Query, run: Run) -> list[str]:
    """Return the ids of a run for a question, one a place; a memory that counts for a session has the session's id."""
    return unfold(run.get(query.id, ()), query.gold, query.any_of)


def unfold(
    places: Sequence[Place], gold: Sequence[str], any_of: Mapping[str, Sequence[str]] | None = None
) -> list[str]:
    """Return one id a place: of folded duplicates the gold one, and further gold ones right behind it.

    A second gold memory in one place takes a place of its own here, which can only understate a run that folds. Where
    one of several memories is enough, the first of them has the id of what they stand for; the others stay as they are.
    """
    id_of = _gold_by_memory(gold, any_of)
    out: dict[str, None] = {}
    for place in places:
        ids = (place,) if isinstance(place, str) else place
        gold_ids = [id_of[id] for id in ids if id in id_of and id_of[id] not in out]
        for id in dict.fromkeys(gold_ids) or ids[:1]:
            out.setdefault(id)
    return list(out)


def _gold_by_memory(gold: Sequence[str], any_of: Mapping[str, Sequence[str]] | None) -> dict[str, str]:
    """Return the gold id that each memory counts for: its own, or that of a session with several memories."""
    return {memory: id for id in gold for memory in (any_of or {}).get(id, (id,))}


def falling(ids: Sequence[str]) -> dict[str, float]:
    """Return strictly falling scores: measure tools break ties by id, which would re-order a run."""
    return {id: float(len(ids) - i) for i, id in enumerate(ids)}


def recall_within(
    budget: int,
    places: Sequence[Place],
    gold: Sequence[str],
    token_counts: Mapping[str, int],
    any_of: Mapping[str, Sequence[str]] | None = None,
) -> float:
    """Return the share of gold in the longest head of the run that fits ``budget`` tokens.

    The list ends at the first memory that does not fit: an agent fills its prompt in order. Of a folded place only
    the memory shown is paid for.
    """
    id_of = _gold_by_memory(gold, any_of)
    gold_ids: set[str] = set()
    spent = 0
    for place in places:
        ids = (place,) if isinstance(place, str) else place
        spent += token_counts[ids[0]]
        if spent > budget:
            break
        gold_ids.update(id_of[id] for id in ids if id in id_of)
    return len(gold_ids) / len(set(gold))


def write_run(path: Path, run: Run, queries: Iterable[Query], tag: str) -> None:
    """Write a TREC run file: question, Q0, memory, rank, strictly falling score, tag."""
    with path.open("w", encoding="utf-8") as out:
        for query in queries:
            for rank, (id, score) in enumerate(falling(judged(query, run)).items(), start=1):
                out.write(f"{_word(query.id)} Q0 {_word(id)} {rank} {score:g} {_word(tag)}\n")


def write_qrels(path: Path, queries: Iterable[Query]) -> None:
    """Write a TREC qrels file: question, 0, memory, grade."""
    with path.open("w", encoding="utf-8") as out:
        for query in queries:
            for id, grade in query.grades.items():
                out.write(f"{_word(query.id)} 0 {_word(id)} {grade}\n")


@lru_cache(maxsize=200_000)
def _word(value: str) -> str:
    # TREC files are split at blanks; an id may hold one.
    return quote(value, safe=":#/@,;+=()'!*&$?[]")
