"""A connection to a store, and the parts of semmem that answer from it. It wires the parts and holds no logic."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from copy import copy
from functools import partial
from typing import TYPE_CHECKING

from semmem.config import Settings
from semmem.embedders.binding import EmbedderBinding
from semmem.extractors import check as check_extractor
from semmem.extractors import load as load_extractor
from semmem.legs import Absent, Legs
from semmem.legs.dense import Dense
from semmem.legs.graph import Graph
from semmem.legs.lexical import Lexical
from semmem.model.errors import InvalidInput, SemmemError
from semmem.model.filters import string
from semmem.model.process.forks import cached_property, undivided
from semmem.model.protocols import Embedder, Extractor, Leg
from semmem.model.recipe import Recipe
from semmem.model.search import Factory
from semmem.model.short_ids import MOST_ALIKE, SHOWN, is_short, shortened, whole_id
from semmem.model.store import SnapshotSource, Store, absence
from semmem.read.recall import Recaller
from semmem.rerankers import load as load_reranker
from semmem.stores import parse_url
from semmem.stores.resident.store import resident
from semmem.write.access import AccessCounter

if TYPE_CHECKING:
    from semmem.embedders.endpoint import EndpointOptions
    from semmem.rerankers.endpoint import RerankerOptions
    from semmem.write.ingest import Ingest
    from semmem.write.preparation import Readers

__all__ = ["Connection", "extractor_of", "legs_of"]


class Connection:
    """An open store with its embedder, extractor, legs and pipelines."""

    def __init__(
        self,
        store: Store,
        *,
        recipe: Recipe,
        embedder: str | Embedder | None,
        extractor: str | Extractor | None,
        settings: Settings,
        legs: Mapping[str, Factory] | None = None,
    ) -> None:
        self.store = store
        self.recipe = recipe
        self.settings = settings
        self.embedder_binding = EmbedderBinding(
            store, embedder or settings.embedder, settings.model, endpoint_of(settings)
        )
        language = settings.language
        self.extractor = extractor_of(extractor or settings.extractor, settings)
        of = self.embedder_binding
        self.reader = source_of(store, settings)
        self.accesses = AccessCounter(store.life if settings.count_accesses else None)
        self.legs = Legs(store, legs_of(store, language), legs)
        self.recaller = Recaller(
            store,
            self.legs,
            of.embedder_or_reason,
            language,
            of.renewed,
            self.reader,
            load_reranker=partial(load_reranker, endpoint=reranker_endpoint_of(settings)),
        )
        if embedder is not None:
            try:
                self.embedder_binding.embedder_or_reason()
            except SemmemError:
                self.recaller.close()
                raise

    @cached_property
    def ingest(self) -> Ingest:
        """What writes memories; made with the first write, and it holds nothing, so two of it do no harm."""
        with undivided:
            from semmem.write.ingest import Ingest

        of, settings = self.embedder_binding, self.settings
        language, policies = settings.language, (settings.credentials, settings.on_contradiction)
        arguments = (of.embedder_or_reason, of.renewed, of.filled, language, *policies)
        versions, workers = settings.keep_versions, settings.bulk_workers
        named = settings.name_older
        return Ingest(self.store, self.extractor, *arguments, keep_versions=versions, workers=workers, name_older=named)

    def read_by(self, readers: Readers) -> Connection:
        """Return the same connection, of which ``readers`` read what is written in bulk."""
        other = copy(self)
        vars(other)["ingest"] = self.ingest.read_by(readers)
        return other

    def whole_id(self, namespace: str, id: str, name: str = "id") -> str:
        """Return the id that ``id`` stands for: a memory's, of which the beginning is enough where semmem made it.

        Raises InvalidInput where several ids begin so.
        """
        return self.whole_ids((string("namespace", namespace),), (string(name, id),))[0]

    def whole_ids(self, namespaces: Sequence[str], ids: Sequence[str]) -> tuple[str, ...]:
        """Return the ids that ``ids`` stand for in the first of ``namespaces`` that has them. Raises InvalidInput."""
        whole: dict[str, str] = {}
        for namespace in namespaces:
            if short := [id for id in ids if is_short(id) and whole.get(id, id) == id]:
                found = self.store.ids_with_prefix(namespace, short, MOST_ALIKE)
                whole |= {id: whole_id(id, found[id], namespace) for id in short}
        return tuple(whole.get(id, id) for id in ids)

    def short_ids(self, ids: Collection[str], *, namespace: str) -> Mapping[str, str]:
        """Return the shortest unique form of each of ``ids``, which are of memories of one namespace."""
        found = self.store.ids_with_prefix(namespace, {id[:SHOWN] for id in ids if is_short(id[:SHOWN])}, MOST_ALIKE)
        return {id: shortened(id, found.get(id[:SHOWN], ())) for id in ids}

    def short_names(self, names: Collection[tuple[str, str]]) -> Mapping[tuple[str, str], str]:
        """Return the shortest unique form of the id in each (namespace, id)."""
        ids: dict[str, set[str]] = {}
        for namespace, id in names:
            ids.setdefault(namespace, set()).add(id)
        short = {namespace: self.short_ids(some, namespace=namespace) for namespace, some in ids.items()}
        return {(namespace, id): short[namespace][id] for namespace, id in names}

    def close(self) -> None:
        """Release connections and threads. The embedded server keeps running for other processes."""
        self.recaller.close()
        self.accesses.close()
        if self.reader is not self.store:
            self.reader.close()
        self.store.close()


def source_of(store: Store, settings: Settings) -> SnapshotSource:
    """Return what makes the snapshots of recalls: memory, the store, or its standby where the settings name one.

    Raises InvalidInput for a read_url that is not that of a standby of ``store``.
    """
    budget, saved = settings.resident_mb << 20, settings.saved_mb << 20
    if settings.read_url is None:
        return resident(store, budget, saved)
    from semmem.stores.postgres.standby import FromStandby, open_standby
    from semmem.stores.postgres.store import PostgresStore

    if parse_url(settings.read_url, home=None).kind != "postgresql" or not isinstance(store, PostgresStore):
        raise InvalidInput(
            "The read_url is for a store on a PostgreSQL server of your own and must be the postgresql:// URL of a "
            "standby of that server; correct it, or leave it out."
        )
    standby = open_standby(store, settings.read_url, pool_size=settings.pool_size)
    return FromStandby(store, standby, resident(standby, budget, saved), settings.read_wait_s)


def legs_of(store: Store, language: str) -> dict[str, Leg]:
    """Return the legs that search ``store``, by name; one that it cannot answer says so when asked."""
    legs: dict[str, Leg] = {name: Absent(name, absence(store, name)) for name in ("dense", "graph")}
    legs = {"lexical": Lexical(language), **legs}
    if store.vectors is not None:
        legs["dense"] = Dense()
    if store.graph is not None:
        legs["graph"] = Graph(language)
    return legs


def endpoint_of(settings: Settings) -> EndpointOptions | None:
    """Return what the settings say of the endpoint that embeds texts; None where they name none."""
    if settings.embedder_url is None:
        return None
    from semmem.embedders.endpoint import EndpointOptions

    return EndpointOptions(
        url=settings.embedder_url,
        model=settings.embedder_model or "",
        key=None if settings.embedder_key is None else settings.embedder_key.get_secret_value(),
        timeout_s=settings.embedder_timeout_s,
        question=settings.embedder_question,
        passage=settings.embedder_passage,
        dimensions=settings.embedder_dimensions,
        max_tokens=settings.embedder_max_tokens,
    )


def reranker_endpoint_of(settings: Settings) -> RerankerOptions | None:
    """Return what the settings say of the endpoint that judges passages; None where they name none."""
    if settings.reranker_url is None:
        return None
    from semmem.rerankers.endpoint import RerankerOptions

    key = None if settings.reranker_key is None else settings.reranker_key.get_secret_value()
    return RerankerOptions(settings.reranker_url, settings.reranker_model, key, settings.reranker_timeout_s)


def extractor_of(extractor: str | Extractor, settings: Settings) -> Extractor:
    """Return ``extractor`` if it is an object, else the one of that name, as the settings have it."""
    check_extractor(extractor)
    if not isinstance(extractor, str):
        return extractor
    return load_extractor(
        extractor,
        language=settings.language,
        spacy_pipeline=settings.spacy_pipeline,
        triples=settings.triples,
        llm_url=settings.llm_url,
        llm_model=settings.llm_model,
        llm_key=None if settings.llm_key is None else settings.llm_key.get_secret_value(),
        llm_cache=settings.llm_cache,
        llm_timeout_s=settings.llm_timeout_s,
    )
