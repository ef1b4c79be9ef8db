"""Group questions into clusters: a draw is a question, or the conversation or document of several questions."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Literal, TypeAlias

from eval.datasets import Query

__all__ = ["Unit", "clusters", "described", "unit"]

Unit: TypeAlias = Literal["question", "conversation", "document"]


def clusters(queries: Sequence[Query]) -> dict[str, str]:
    """Return the cluster of every question, by its id.

    Where questions are of several namespaces, each namespace (a conversation, a person) is a cluster: another one would
    have brought other memories and other questions together. Namespaces with a question in the same words and with the
    same gold are copies, and one cluster. Within one namespace, questions that share a gold memory, directly or over
    others, are one cluster, and so are questions in the same words: to ask twice adds no evidence.
    """
    several = len({q.namespace for q in queries}) > 1
    parent: dict[str, str] = {}

    def root(of: str) -> str:
        while parent.setdefault(of, of) != of:
            parent[of] = of = parent[parent[of]]
        return of

    own = {q.id: q.namespace if several else f"question {q.id}" for q in queries}
    for query in queries:
        if words := re.findall(r"\w+", query.text.casefold()):  # runs of TREC come without the texts
            parent[root(f"words {words} {query.gold if several else ''}")] = root(own[query.id])
        for memory in () if several else query.gold_memories:
            parent[root(f"memory {memory}")] = root(own[query.id])
    return {id: root(at) for id, at in own.items()}


def unit(queries: Sequence[Query]) -> Unit:
    """Return what one draw is called: a question where no two of them are in one cluster."""
    if len(set(clusters(queries).values())) == len(queries):
        return "question"
    return "conversation" if len({q.namespace for q in queries}) > 1 else "document"


def described(queries: Sequence[Query]) -> dict[str, Any]:
    """Return the unit and how many there are, JSON-ready."""
    return {"unit": unit(queries), "units": len(set(clusters(queries).values())), "questions": len(queries)}
