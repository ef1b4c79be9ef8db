"""What the verbs of the person who runs a store do: rebuild, export, maintain, and the names of concepts.

Names are listed, and corrected by hand, where two names are one, or one stands apart. A correction is stored beside the
memories and applied whenever a memory or a question is read, so it outlives a rebuild.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from semmem.client.connection import Connection
from semmem.concepts.names import name_of
from semmem.legs.graph_names import Names
from semmem.model.errors import InvalidInput, NotFound, StoreUnavailable
from semmem.model.exchange import Corrections, Scope
from semmem.model.filters import checked_filters, page_limit, several_namespaces, true_or_false
from semmem.model.keywords import FilterValues
from semmem.model.protocols import Embedder
from semmem.model.reports import Node, Rebuilt, Stats
from semmem.model.store import GraphStore, Keep, Store, graph_of, vectors_of
from semmem.model.types import Concept, Filters
from semmem.stores.resident.store import save_resident
from semmem.stores.snapshot import StoredSnapshot
from semmem.text.tokens import check_language

__all__ = ["Concepts", "concepts_of", "counts", "export", "maintain", "rebuild"]


def concepts_of(mem: Connection) -> Concepts:
    """Return who lists and corrects the names. Raises InvalidInput where no graph is kept."""
    return Concepts(mem.store, graph_of(mem.store), mem.settings.language)


def rebuild(
    mem: Connection, embedder: str | Embedder | None, extract: bool, progress: Callable[[int], None] | None
) -> Rebuilt:
    """Compute vectors or concepts again; see ``Semmem.rebuild``."""
    from semmem.write.derivations import mark_extracted
    from semmem.write.rebuild import fill_in, reextract, replace_vectors

    if extract:
        return mark_extracted(
            mem.store,
            mem.extractor,
            lambda: reextract(mem.store, mem.extractor, mem.settings.language, progress),
        )
    vectors = vectors_of(mem.store)
    if embedder is not None:
        return replace_vectors(vectors, mem.embedder_binding, embedder, progress)
    return fill_in(vectors, mem.embedder_binding, progress)


def counts(mem: Connection, namespace: str | None, *, exact: bool = False) -> tuple[Stats, Sequence[Node] | None]:
    """Return the counts, and the nodes of the whole store; for a namespace on several nodes, only its own is asked."""
    from semmem.write.derivations import count_stale

    found = mem.store.stats(namespace, exact=exact)
    found = replace(found, stale=count_stale(mem.store, mem.extractor, namespace))
    if namespace is not None:
        node = mem.store.node_of(namespace)
        return (found if node is None else replace(found, bytes=None, nodes=(node,))), None
    if each := mem.store.nodes():
        total = (found.bytes or 0) + sum(one.bytes for one in each)
        found = replace(found, bytes=total, nodes=tuple(one.name for one in each))
    return found, each


def export(
    mem: Connection,
    namespace: str | Sequence[str] | None,
    filters: Filters | FilterValues | Mapping[str, Any] | None,
    vectors: bool,
    sensitive: bool,
) -> Iterator[dict[str, Any]]:
    """Return memories as mappings with all their fields, newest first; see ``Semmem.export``."""
    from semmem.transfer import exported
    from semmem.write.items import timed_of

    where = None if namespace is None else several_namespaces(namespace)
    true_or_false("vectors", vectors)
    chosen = checked_filters(filters)
    if not true_or_false("sensitive", sensitive):
        if chosen.sensitive:
            raise InvalidInput(
                "An export leaves out sensitive memories, which this filter asks for; add sensitive=True."
            )
        chosen = replace(chosen, sensitive=False)
    return exported(mem.store, where, chosen, timed_of=timed_of, vectors=vectors)


def maintain(mem: Connection) -> Mapping[str, int]:
    """Do what waits to be done, and count it by step; see ``Semmem.maintain``."""
    days = mem.settings
    keep = Keep(
        changes_days=days.keep_changes_days,
        forgotten_days=days.keep_forgotten_days,
        recall_log_days=days.keep_recall_log_days,
        versions=days.keep_versions,
        answers_days=days.keep_answers_days,
        audit_days=days.keep_audit_days,
    )
    from semmem.write.derivations import Renewal

    moves = 0 if mem.store.life is None else mem.store.life.finish_moves()
    accesses = 0
    with suppress(StoreUnavailable):  # as where every connection is in use: these counts wait for the next write
        accesses = mem.accesses.write()
    counted = {name: n for name, n in (("moves", moves), ("accesses", accesses)) if n}
    reader = mem.embedder_binding.embedder_or_reason
    renewal = Renewal(mem.store, mem.ingest, mem.extractor, reader, mem.settings.language)
    counted |= renewal.maintain()
    counted = {**counted, **mem.ingest.maintain(), **mem.store.maintain(keep)}
    return {**counted, **save_resident(mem.reader)}


class Concepts:
    """Lists and corrects the names of a store."""

    def __init__(self, store: Store, graph: GraphStore, language: str) -> None:
        self._store = store
        self._graph = graph
        self._language = language

    def list(self, namespace: str, like: str | None, limit: int) -> Sequence[Concept]:
        """Return names, the most mentioned first; ``like`` is a piece of the name or of one merged into it."""
        page_limit("concepts", limit)
        snapshot = StoredSnapshot(self._store, Scope((namespace,), 0))
        names = Names(snapshot, namespace, self._graph.corrections([namespace])[namespace])
        merged = self._merged(names, like)
        apart = {*names.corrections.into, *(into for into, _ in names.corrections.into.values())}
        rows = self._graph.concept_counts(namespace, like, limit + len(apart))
        single = [Concept(name, "name", df, subjects, ()) for key, name, df, subjects in rows if key not in apart]
        return sorted([*single, *merged], key=lambda one: (-one.df, one.name))[:limit]

    @staticmethod
    def _merged(names: Names, like: str | None) -> Sequence[Concept]:
        """Return the names that others were merged into, where ``like`` is a piece of one of these."""
        aliases: dict[tuple[int, str], list[str]] = {}
        for key, into in names.corrections.into.items():
            aliases.setdefault(into, []).append(names.corrections.names[key])
        postings = dict(names.postings({key for key, _ in aliases}).items())
        concepts = []
        for (key, name), others in aliases.items():
            sought = like is None or any(like.lower() in one.lower() for one in (name, *others))
            if sought and (entries := postings.get(key)) is not None:
                df, subjects = (int((entries[column] > 0).sum()) for column in ("mention", "subject"))
                concepts.append(Concept(name, "name", df, subjects, tuple(sorted(others))))
        return concepts

    def merge(self, one: str, other: str, namespace: str) -> None:
        """Take the name ``one`` for ``other`` from now on, in what is stored as well."""
        corrections = self._graph.corrections([namespace])[namespace]
        key, into = self._key(one, namespace, corrections), self._key(other, namespace, corrections)
        if not self._graph.record_correction(namespace, (key, " ".join(one.split())), (into, " ".join(other.split()))):
            raise InvalidInput(f"{one!r} and {other!r} are one concept already; nothing was changed.")

    def split(self, name: str, namespace: str) -> None:
        """Let a name stand by itself: what was merged into it, or it into another, is parted again."""
        key = self._key(name, namespace, self._graph.corrections([namespace])[namespace])
        self._graph.record_correction(namespace, (key, " ".join(name.split())), None)

    def _key(self, name: str, namespace: str, corrections: Corrections) -> int:
        check_language(namespace, self._store.languages().get(namespace, self._language), self._language)
        key = name_of(name, self._language)
        if key not in corrections.names and not len(self._store.postings([namespace], [key])[namespace].keys):
            raise NotFound(
                f"No memory in namespace {namespace!r} mentions {name!r} as a name; `semmem concepts` lists them."
            )
        return key
