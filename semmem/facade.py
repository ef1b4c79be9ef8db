"""Semmem: the one object people hold. It wires the parts and holds no logic."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal

from semmem.concepts import Concepts
from semmem.config import Settings
from semmem.config import recipe as find_recipe
from semmem.encoder import Encoder
from semmem.errors import EmbedderUnavailable, InvalidInput, NotFound, SemmemError
from semmem.extractors import load as load_extractor
from semmem.graph_view import graph_view
from semmem.ingest import Ingest
from semmem.legs.dense import Dense
from semmem.legs.graph import Graph
from semmem.legs.lexical import Lexical
from semmem.narrowing import checked_filters, string, strings
from semmem.protocols import Embedder, Extractor
from semmem.rank_cap import reach
from semmem.recall import Recall, Recaller
from semmem.stores import open_store
from semmem.types import Concept, Filters, IngestReport, Memory, Page, Recipe, SortBy, Stats
from semmem.upkeep import Upkeep

if TYPE_CHECKING:
    import networkx

__all__ = ["Semmem", "connect"]


def connect(
    url: str | None = None,
    *,
    recipe: str | Recipe = "default",
    embedder: str | Embedder | None = None,
    extractor: str | Extractor | None = None,
    **settings: Any,
) -> Semmem:
    """Open a store and return a Semmem.

    ``url``: none or ``embedded:`` is the user's own embedded PostgreSQL, started on demand; ``embedded:///abs/path``
    another folder; ``postgresql://…`` a server of yours. ``embedder``: a name (``minilm``, ``hashing``, ``none``), an
    object, or None for MiniLM where it is installed. ``extractor``: a name (``rules``, ``spacy``, ``precomputed``,
    ``llm``), an object, or None for ``rules``. ``settings`` override the environment (see semmem.Settings).

    Raises StoreUnavailable, SchemaTooNew, UnknownRecipe, or InvalidInput, each with one sentence that says what to do.
    Warns once when a leg of ``recipe`` cannot reach the top 10.
    """
    chosen = Settings.load(**settings)
    plan = find_recipe(recipe)
    found = reach(plan, 10)
    for regime, legs in found.regimes.items():
        for leg, its in legs.legs.items():
            if leg in plan.legs and its.class_ in ("unreachable", "boost-only"):
                warnings.warn(
                    f"The leg {leg} of recipe {plan.name!r} is {its.class_} at k = 10 (regime {regime}): it cannot "
                    f"bring in a memory of its own; `semmem reach --recipe {plan.name}` shows why.",
                    stacklevel=2,
                )
    store = open_store(
        url or chosen.url,
        home=chosen.home,
        pool_size=chosen.pool_size,
        idle_stop_s=chosen.idle_stop_s,
        start_timeout_s=chosen.start_timeout_s,
    )
    try:
        return Semmem(store, recipe=plan, embedder=embedder, extractor=extractor, settings=chosen)
    except BaseException:
        store.close()  # nobody else can: there is no Semmem to close
        raise


class Semmem:
    """A memory: remember, recall, forget. Safe to share between threads; a context manager that closes itself."""

    def __init__(
        self,
        store: Any,
        *,
        recipe: Recipe,
        embedder: str | Embedder | None,
        extractor: str | Extractor | None,
        settings: Settings,
    ) -> None:
        self.store = store
        self.recipe = recipe
        self.settings = settings
        self._encoder = Encoder(store, settings, embedder)
        language = settings.language
        chosen = _extractor(extractor or settings.extractor, settings)
        legs = {leg.name: leg for leg in (Lexical(store, language), Dense(store), Graph(store, language))}
        self._upkeep = Upkeep(store, chosen)
        self._ingest = Ingest(store, chosen, self._encoder.filler)
        self._concepts = Concepts(store, self._upkeep, language)
        self._recaller = Recaller(store, legs, self._encoder.found, language)
        if embedder is not None:
            try:
                self._encoder.found()
            except SemmemError:
                self._recaller.close()
                raise

    # ------------------------------------------------------------------ the verbs

    def remember(
        self,
        text: str,
        *,
        namespace: str = "default",
        id: str | None = None,
        title: str | None = None,
        author: str | None = None,
        session: str | None = None,
        position: int | None = None,
        source: str | None = None,
        tags: Sequence[str] = (),
        metadata: Mapping[str, Any] | None = None,
        importance: float = 0.5,
        created_at: datetime | str | None = None,
        vector: Any = None,
    ) -> Memory:
        """Store one text and return the memory; durable when this returns.

        The same ``id`` with the same content again changes nothing; with other content it raises Conflict. Without an
        id a UUIDv7 is made. ``vector`` is a unit vector of your own model (the store then takes only such). Raises
        InvalidInput.
        """
        given = {
            "text": text, "namespace": namespace, "id": id, "title": title, "author": author, "session": session,
            "position": position, "source": source, "tags": tags, "importance": importance,
            "created_at": created_at, "vector": vector, "metadata": {} if metadata is None else metadata,
        }  # fmt: skip
        return self._ingest.remember(given)

    def remember_many(
        self,
        items: Iterable[Mapping[str, Any]],
        *,
        namespace: str = "default",
        batch_size: int = 500,
        on_error: Literal["abort", "skip"] = "abort",
        progress: Callable[[IngestReport], None] | None = None,
    ) -> IngestReport:
        """Store a stream of mappings with the keys of ``remember``; one transaction a batch.

        ``on_error="skip"`` stores the good items and reports the bad ones with position and reason; ``"abort"`` raises
        at the first bad item and stores nothing of its batch (earlier batches stay). ``progress`` is called after each
        batch.
        """
        return self._ingest.remember_many(
            items, namespace=namespace, batch_size=batch_size, on_error=on_error, progress=progress
        )

    def recall(
        self,
        query: str,
        *,
        namespace: str | Sequence[str] = "default",
        limit: int = 10,
        offset: int = 0,
        recipe: str | Recipe | None = None,
        filters: Filters | Mapping[str, Any] | None = None,
        exclude: Sequence[str] = (),
        sort_by: SortBy = "relevance",
        vector: Any = None,
        fold_parts: bool = True,
    ) -> Recall:
        """Return the memories that answer ``query``, best first.

        ``filters`` maps sessions, authors, tags, metadata, created_after, created_before; filters and ``exclude`` (ids)
        act inside every leg, so the limit is still met. A "quoted phrase" must occur in what the lexical leg returns.
        ``offset`` and ``limit`` page through what the legs found, each to the depth of the recipe. Raises InvalidInput
        for an empty query.
        """
        namespaces = strings("namespace", namespace)
        if not namespaces or not all(namespaces):
            raise InvalidInput("namespace must be a name, or a list of at least one.")
        return self._recaller.recall(
            query,
            namespaces,
            self.recipe if recipe is None else find_recipe(recipe),
            limit=limit,
            offset=offset,
            filters=checked_filters(filters),
            exclude=strings("exclude", exclude),
            sort_by=sort_by,
            vector=vector,
            fold_parts=fold_parts,
        )

    def get(self, id: str, *, namespace: str = "default") -> Memory:
        """Return the memory ``id``. Raises NotFound."""
        found = self.store.get(string("namespace", namespace), [string("id", id)])
        if not found:
            raise NotFound(f"There is no memory {id!r} in namespace {namespace!r}; `semmem list` shows what is stored.")
        memory: Memory = found[0]
        return memory

    def list(
        self,
        *,
        namespace: str = "default",
        filters: Filters | Mapping[str, Any] | None = None,
        limit: int = 100,
        cursor: str | None = None,
    ) -> Page:
        """Return a page of memories, newest first; pass its ``cursor`` to get the next one."""
        if isinstance(limit, bool) or not isinstance(limit, int) or not 1 <= limit <= 10_000:
            raise InvalidInput(f"limit must be from 1 to 10000, not {limit!r}.")
        after = None if cursor is None else string("cursor", cursor)
        page: Page = self.store.list(string("namespace", namespace), checked_filters(filters), limit, after)
        return page

    def forget(
        self,
        id: str | None = None,
        *,
        namespace: str = "default",
        filters: Filters | Mapping[str, Any] | None = None,
        hard: bool = False,
        dry_run: bool = False,
    ) -> int:
        """Remove one memory, or all that ``filters`` match, with everything derived from them; return how many.

        Postings, vectors and mentions go in the same transaction. ``hard`` also rewrites the table files, so that no
        deleted bytes are left in them. Raises NotFound for an unknown id, InvalidInput when neither id nor filters are
        given.
        """
        chosen = checked_filters(filters)
        if id is None and not chosen:
            raise InvalidInput(
                "Say what to forget: an id, or filters (a whole namespace needs one filter, such as created_before)."
            )
        if id is not None:
            string("id", id)
        count: int = self.store.forget(string("namespace", namespace), id, chosen, dry_run=dry_run)
        if id is not None and count == 0:
            raise NotFound(f"There is no memory {id!r} in namespace {namespace!r}; nothing was forgotten.")
        if count and not dry_run:
            self._upkeep.forgotten(namespace)
        if hard and not dry_run:
            self.store.scrub()
        return count

    def stats(self, *, namespace: str | None = None) -> Stats:
        """Return counts of the store, or of one namespace."""
        counts: Stats = self.store.stats(namespace)
        return counts

    def graph(
        self, *, namespace: str = "default", around: str | None = None, hops: int = 2, limit: int = 500
    ) -> networkx.Graph:
        """Return memories and the concepts that tie them as a networkx graph; see semmem.graph_view for what it holds.

        ``around`` is a concept as people write it, or the id of a memory; None is the whole namespace, if it has at
        most ``limit`` memories. Raises InvalidInput or NotFound.
        """
        where = string("namespace", namespace)
        return graph_view(
            self.store, namespace=where, around=around, hops=hops, limit=limit, language=self.settings.language
        )

    def concepts(self, *, namespace: str = "default", like: str | None = None, limit: int = 50) -> Sequence[Concept]:
        """Return the names that memories mention, the most mentioned first; ``like`` is a piece of a name."""
        piece = None if like is None else string("like", like)
        return self._concepts.list(string("namespace", namespace), piece, limit)

    def merge_concepts(self, a: str, b: str, *, namespace: str = "default") -> None:
        """Take the name ``a`` for ``b`` from now on, in memories that are stored too. Raises NotFound, InvalidInput."""
        self._concepts.merge(string("a", a), string("b", b), string("namespace", namespace))

    def split_concept(self, name: str, *, namespace: str = "default") -> None:
        """Let ``name`` stand by itself: merges of it and into it are undone. Raises NotFound for an unknown name."""
        self._concepts.split(string("name", name), string("namespace", namespace))

    def graph_hash(self, *, namespace: str = "default") -> str:
        """Return a hash of the graph, the same whatever the order in which the memories came, after ``maintain``."""
        found: str = self.store.graph_hash(string("namespace", namespace))
        return found

    def rebuild(
        self,
        *,
        embedder: str | Embedder | None = None,
        extract: bool = False,
        progress: Callable[[int], None] | None = None,
    ) -> int:
        """Fill in the vectors that are missing, as of memories stored without an embedder; return how many.

        ``embedder``, if it is not the one that filled the store, replaces it: every vector is made anew (interrupted,
        the next call goes on). With ``extract`` the concepts of every memory are found anew instead, and what changed
        is counted.
        """
        if extract:
            return self._upkeep.reextract(progress)
        if embedder is not None:
            self._encoder.replace(embedder)
        embedder = self._encoder.filler()
        if isinstance(embedder, str):
            raise EmbedderUnavailable(embedder)
        return self._ingest.embed_missing(embedder, progress)

    def maintain(self) -> Mapping[str, int]:
        """Let late names reach older memories, fold, join segments, index vectors; return how much of each."""
        return {"renewed": self._upkeep.maintain(), **self.store.maintain()}

    def close(self) -> None:
        """Give connections and threads back. The embedded server goes on for other processes."""
        self._recaller.close()
        self.store.close()

    def __enter__(self) -> Semmem:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close()

    # ------------------------------------------------------------------ wiring


def _extractor(wanted: str | Extractor, settings: Settings) -> Extractor:
    """Return the extractor ``wanted`` if it is an object, else the one of that name, as the settings have it."""
    if not isinstance(wanted, str):
        return wanted
    return load_extractor(
        wanted,
        language=settings.language,
        spacy_pipeline=settings.spacy_pipeline,
        triples=settings.triples,
        llm_url=settings.llm_url,
        llm_model=settings.llm_model,
        llm_key=None if settings.llm_key is None else settings.llm_key.get_secret_value(),
        llm_cache=settings.llm_cache,
        llm_timeout_s=settings.llm_timeout_s,
    )
