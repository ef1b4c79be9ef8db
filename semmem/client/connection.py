"""A connection to a store, and the parts of semmem that answer from it. It wires the parts and holds no logic."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Collection, Mapping
from functools import cached_property
from types import TracebackType
from typing import TYPE_CHECKING, Self

from semmem.config import Settings
from semmem.embedders.binding import Encoder, embed_texts
from semmem.extractors import check as check_extractor
from semmem.extractors import load as load_extractor
from semmem.legs import Absent, Legs
from semmem.legs.dense import Dense
from semmem.legs.graph import Graph
from semmem.legs.lexical import Lexical
from semmem.legs.today import Today
from semmem.model.errors import SemmemError
from semmem.model.protocols import Embedder, Extractor, Leg
from semmem.model.recipe import Recipe
from semmem.model.search import Factory
from semmem.model.store import Store, absence
from semmem.read.recall import Recaller
from semmem.stores.resident.store import resident, resident_sizes
from semmem.write.access import AccessCounter

if TYPE_CHECKING:
    from semmem.write.ingest import Ingest

__all__ = ["Connection", "extractor_of", "legs_at", "legs_of", "warm_up"]


class Connection:
    """An open store with its embedder, extractor, legs and pipelines; a context manager that closes them."""

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
        self._encoder = Encoder(store, embedder or settings.embedder, settings.model)
        language = settings.language
        # an extractor that is slow or asks a model is not worth it where no graph is kept, unless it was asked for here
        usual = settings.extractor if store.graph is not None else "rules"
        self._extractor = extractor_of(extractor or usual, settings)
        of = self._encoder
        self._reader = resident(store, settings.resident_mb << 20)
        self._accesses = AccessCounter(store.life if settings.count_accesses else None)
        self._legs = Legs(self._reader, legs_of(self._reader, language), legs)
        self._recaller = Recaller(
            self._reader, self._legs, of.embedder_or_reason, language, of.renewed, explained_by=store
        )
        if embedder is not None:
            try:
                self._encoder.embedder_or_reason()
            except SemmemError:
                self._recaller.close()
                raise

    @cached_property
    def _ingest(self) -> Ingest:
        """What writes memories; made with the first write, and it holds nothing, so two of it do no harm."""
        from semmem.write.ingest import Ingest

        of, settings = self._encoder, self.settings
        language, policies = settings.language, (settings.credentials, settings.on_contradiction)
        arguments = (of.embedder_or_reason, of.renewed, of.filled, language, *policies)
        versions, workers = settings.keep_versions, settings.bulk_workers
        named = settings.name_older
        return Ingest(
            self.store, self._extractor, *arguments, keep_versions=versions, workers=workers, name_older=named
        )

    @property
    def resident(self) -> Mapping[str, int]:
        """The namespaces in this process's memory, the one asked last at the end, and about how many bytes each takes.

        Within the setting ``resident_mb``, as the last recall of each has left them: one that was dropped since stays
        until it is asked or others need the room. A namespace comes with its second recall, a large one some recalls
        later. One that stays away is too large, or is changed too often between recalls; these ask the database.
        """
        return resident_sizes(self._reader)

    def close(self) -> None:
        """Release connections and threads. The embedded server keeps running for other processes."""
        self._recaller.close()
        self._accesses.close()
        if self._reader is not self.store:
            self._reader.close()
        self.store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close()


def legs_of(store: Store, language: str) -> dict[str, Leg]:
    """Return the legs that search ``store``, by name; one that it cannot answer says so when asked."""
    legs: dict[str, Leg] = {name: Absent(name, absence(store, name)) for name in ("dense", "graph")}
    legs = {"lexical": Lexical(store, language), **legs}
    if store.vectors is not None:
        legs["dense"] = Dense(store.vectors)
    if store.graph is not None:
        legs["graph"] = Graph(store, store.graph, store.vectors, language)
    return legs


def legs_at(store: Store, earlier: Collection[int], legs: Legs, language: str) -> Mapping[str, Leg]:
    """Return the legs of a recall that asks for another time: two of ``legs`` search ``store`` as it was then."""
    then: dict[str, Leg] = {"lexical": Lexical(store, language)}
    if store.vectors is not None:
        then["dense"] = Dense(store.vectors)
    if isinstance(graph := legs["graph"], Graph):
        then["graph"] = Today(graph, earlier)
    return ChainMap(then, legs)


def warm_up(mem: Connection) -> None:
    """Load the embedding model of ``mem``, if it has one, before the first text or question needs it.

    For a server, which can do so while it waits. Raises EmbedderUnavailable where the model cannot be loaded.
    """
    embedder = mem._encoder.embedder_or_reason()
    if not isinstance(embedder, str):
        embed_texts(embedder, ["ready"])


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
