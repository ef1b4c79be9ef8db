"""Remember a corpus once, ask its questions, measure. ``evaluate`` is the short way for one recipe."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from eval.datasets import Corpus, Query
from eval.statistics.measures import Measured, Place, measure, tokens

if TYPE_CHECKING:
    from semmem.model.recipe import Recipe
    from semmem.model.types import Hit

__all__ = ["dated", "evaluate", "ingest", "place", "token_counts"]


def ingest(mem: Any, corpus: Corpus, *, progress: Any = None) -> Any:
    """Remember every memory of ``corpus`` and return the IngestReport; nothing is done for a stored corpus."""
    return None if corpus.stored else mem.remember_many(corpus.memories, progress=progress)


def dated(mem: Any, queries: Sequence[Query]) -> tuple[Query, ...]:
    """Return questions with a time each: their own, or when the newest memory of their namespace was created.

    The clock would make ages, and so numbers, depend on the day of the run. A question about a namespace without
    memories stays without a time.
    """
    newest = {
        namespace: memory.created_at
        for namespace in {query.namespace for query in queries if query.now is None}
        for memory in mem.list(namespace=namespace, limit=1)  # newest first
    }
    return tuple(replace(query, now=query.now or newest.get(query.namespace)) for query in queries)


def place(hit: Hit) -> Place:
    """Return what a hit stands for in a run: its memory's id, folded ids behind it."""
    return (hit.id, *hit.duplicates) if hit.duplicates else hit.id


def token_counts(corpus: Corpus) -> dict[str, dict[str, int]]:
    """Return the tokens of every memory, title included, by namespace and id."""
    out: dict[str, dict[str, int]] = {}
    for memory in corpus.memories:
        text = f"{memory.get('title') or ''} {memory['text']}".strip()
        out.setdefault(str(memory["namespace"]), {})[str(memory["id"])] = tokens(text)
    return out


def evaluate(
    mem: Any, corpus: Corpus, recipe: str | Recipe | None = None, *, limit: int = 10, show: bool = True
) -> dict[str, dict[str, float]]:
    """Ask every question of ``corpus`` of a store that holds it; return and print measures by stratum.

    The result maps ``headline`` and every stratum to ``R@5``, ``R@10``, ``nDCG@10`` (cut-offs up to ``limit``),
    and ``questions``. Strata apart (unanswerable, adversarial) are not in the headline.
    """
    run = {}
    for query in dated(mem, corpus.queries):
        if query.gold:
            run[query.id] = [
                place(hit)
                for hit in mem.recall(query.text, namespace=query.namespace, limit=limit, recipe=recipe, now=query.now)
            ]
    cutoffs = [k for k in (1, 2, 5, 10, 20) if k <= limit]
    measured = measure(corpus.queries, run, cutoffs=cutoffs)
    names = [n for n in ("R@2", "R@5", "R@10", "nDCG@10", "Success@5") if n in measured.values]
    table = summary(measured, names)
    if show:
        print(f"{corpus.name:26s} {'questions':>9s} " + " ".join(f"{n:>9s}" for n in names))
        for group, row in table.items():
            print(f"  {group:24s} {row['questions']:9.0f} " + " ".join(f"{row[n]:9.3f}" for n in names))
    return table


def summary(measured: Measured, names: list[str]) -> dict[str, dict[str, float]]:
    """Return the means of ``names`` and the number of questions, by group."""
    return {
        group: {"questions": float(len(measured.rows(group))), **{n: measured.mean(n, group) for n in names}}
        for group in measured.groups
    }
