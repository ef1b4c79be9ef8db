"""A store by its URL, a namespace with something in every table, and what a namespace namespace_answers."""

from __future__ import annotations

from typing import Any

import semmem
from semmem.client.memory import Semmem


def connected(url: str) -> Semmem:
    return semmem.connect(url, embedder="hashing" if url[0] == "p" else None)


def full(mem: Semmem, where: str) -> None:
    """Fill a namespace with what every table may hold."""
    items = [{"id": f"m{n}", "text": f"Ada Lovelace met owl {n}.", "title": f"Owl {n}"} for n in range(70)]
    mem.remember_many(items, namespace=where)
    mem.remember("A long text. " * 200, id="long", namespace=where)
    mem.update("m1", namespace=where, text="Ada Lovelace met two owls.")
    mem.forget("m2", namespace=where)
    mem.link("m3", "supersedes", "m4", namespace=where)
    mem.configure(namespace=where, weights={"lexical": 2})
    mem.namespace_limits(where, most_memories=500)


def namespace_answers(mem: Semmem, where: str) -> Any:
    """Return what a namespace namespace_answers, but for the order of hits that the last digit of a cosine decides."""
    recalls = [mem.recall(q, namespace=where) for q in ("owl 7", "Ada Lovelace", "long")]
    found = [(hits[0].id, round(hits[0].score, 5), {hit.id for hit in hits}) for hits in recalls]
    links = [(one.from_id, one.type, one.to_id) for one in mem.links("m3", namespace=where)]
    versions = [one.version for one in mem.history("m1", namespace=where)]
    texts = {m.id: (m.text, m.version) for m in mem.list(namespace=where)}
    settings = dict(mem.settings_of(namespace=where)), mem.namespace_limits(where)
    graph = mem.graph_hash(namespace=where) if mem.store.graph is not None else None
    return found, links, versions, texts, settings, graph
