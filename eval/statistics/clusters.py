"""Group questions into clusters: a draw is a question, or the conversation or document of several questions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, TypeAlias

from eval.datasets import Query

__all__ = ["Unit", "clusters", "described", "unit"]

Unit: TypeAlias = Literal["question", "conversation", "document"]


def clusters(queries: Sequence[Query]) -> dict[str, str]:
    """Return the cluster of every question, by its id.

    Where questions are of several namespaces, each namespace (a conversation, a person) is a cluster: another one would
    have brought other memories and other questions together. Within one namespace, questions that share a gold memory,
    directly or over others, are one cluster, and so are questions in the same words: to ask twice adds no evidence.
    """
    if len({q.namespace for q in queries}) > 1:
        return {q.id: q.namespace for q in queries}
    parent: dict[str, str] = {}

    def root(of: str) -> str:
        while parent.setdefault(of, of) != of:
            parent[of] = of = parent[parent[of]]
        return of

    for query in queries:
        words = " ".join(query.text.casefold().split())
        if any(map(str.isalnum, words)):  # runs of TREC come without the texts
            parent[root(f"words {words}")] = root(f"question {query.id}")
        for memory in query.gold_memories:
            parent[root(f"memory {memory}")] = root(f"question {query.id}")
    return {q.id: root(f"question {q.id}") for q in queries}


def unit(queries: Sequence[Query]) -> Unit:
    """Return what one draw is called: a question where no two of them are in one cluster."""
    if len(set(clusters(queries).values())) == len(queries):
        return "question"
    return "conversation" if len({q.namespace for q in queries}) > 1 else "document"


def described(queries: Sequence[Query]) -> dict[str, Any]:
    """Return the unit and how many there are, JSON-ready."""
    return {"unit": unit(queries), "units": len(set(clusters(queries).values())), "questions": len(queries)}
