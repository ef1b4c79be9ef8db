"""Keeping: the verbs of the person who runs a store: graph, names, rebuild, probe, export, backup and settings.

It wires the parts and holds no logic, but for the names of concepts: they are listed, and corrected by hand, where two
names are one, or one stands apart. A correction is stored beside the memories and applied whenever a memory or a
question is read, so it outlives a rebuild.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from os import PathLike
from typing import TYPE_CHECKING, Any, Literal

from semmem.client.life import Life
from semmem.client.namespaces import Namespaces
from semmem.concepts.names import name_of
from semmem.legs.graph_names import Names
from semmem.model.errors import InvalidInput, NotFound
from semmem.model.exchange import Corrections, Scope
from semmem.model.filters import checked_filters, string, strings, whole
from semmem.model.keywords import FilterValues, Item
from semmem.model.memory_fields import FIELDS
from semmem.model.protocols import Embedder
from semmem.model.recipe import Recipe
from semmem.model.recipe import recipe as find_recipe
from semmem.model.reports import BackupReport, NamespaceHash, Rebuilt
from semmem.model.search import Factory
from semmem.model.store import GraphStore, Keep, Store, graph_of, vectors_of
from semmem.model.types import Concept, Filters
from semmem.read.overrides import changed, dotted, fitted, outgrown
from semmem.read.tracing import observed
from semmem.stores.snapshot import StoredSnapshot
from semmem.text.tokens import check_language
from semmem.write.items import check_namespace

if TYPE_CHECKING:  # what a recall does not need is imported by the methods that do
    import networkx

    from semmem.client.probe.stages import Probe
    from semmem.write.sync import BroughtIn

__all__ = ["Concepts", "Keeping"]


class Keeping(Life, Namespaces):
    """The verbs of the person who runs a store."""

    @observed
    def graph(
        self, *, namespace: str = "default", around: str | None = None, hops: int = 2, limit: int = 500
    ) -> networkx.Graph:
        """Return memories and the concepts that connect them, as a networkx graph (see semmem.read.graph_view).

        ``around`` is a name in any spelling, or the id of a memory. Without it the graph shows the whole namespace, if
        that has at most ``limit`` memories. Raises InvalidInput or NotFound.
        """
        from semmem.read.graph_view import graph_view

        where = string("namespace", namespace)
        start = None if around is None else string("around", around)
        return graph_view(
            self.store, namespace=where, around=start, hops=hops, limit=limit, language=self.settings.language
        )

    @observed
    def concepts(self, *, namespace: str = "default", like: str | None = None, limit: int = 50) -> Sequence[Concept]:
        """Return the names that memories mention, most frequent first; ``like`` is part of a name."""
        piece = None if like is None else string("like", like)
        return self._concepts().list(string("namespace", namespace), piece, limit)

    @observed
    def merge_concepts(self, a: str, b: str, *, namespace: str = "default") -> None:
        """Merge the name ``a`` into ``b``, in stored memories and in later ones. Raises NotFound, InvalidInput."""
        self._concepts().merge(string("a", a), string("b", b), string("namespace", namespace))

    @observed
    def split_concept(self, name: str, *, namespace: str = "default") -> None:
        """Undo every merge with ``name``, and keep the rules from merging it again. Raises NotFound."""
        self._concepts().split(string("name", name), string("namespace", namespace))

    @observed
    def graph_hash(self, *, namespace: str = "default") -> str:
        """Return a hash of the graph, which does not depend on the order of writing."""
        return graph_of(self.store).graph_hash(string("namespace", namespace))

    def _concepts(self) -> Concepts:
        """Return who lists and corrects the names. Raises InvalidInput where no graph is kept."""
        return Concepts(self.store, graph_of(self.store), self.settings.language)

    @observed
    def rebuild(
        self,
        *,
        embedder: str | Embedder | None = None,
        extract: bool = False,
        progress: Callable[[int], None] | None = None,
    ) -> Rebuilt:
        """Compute missing vectors; with ``embedder`` all vectors, with ``extract`` all concepts; return a report.

        If ``embedder`` is not the one that filled the store, it replaces it: all vectors are computed again while
        others read and write with the old ones, and then replace these at once. ``extract`` extracts the concepts of
        every memory again and leaves the vectors. After an interruption the same call continues. Raises Conflict if
        another process is rebuilding.
        """
        from semmem.write.makers import mark_extracted
        from semmem.write.rebuild import fill_in, reextract, replace_vectors

        if extract:
            return mark_extracted(
                self.store,
                self._extractor,
                lambda: reextract(self.store, self._extractor, self.settings.language, progress),
            )
        vectors = vectors_of(self.store)
        if embedder is not None:
            return replace_vectors(vectors, self._encoder, embedder, progress)
        return fill_in(vectors, self._encoder, progress)

    def register_leg(self, name: str, factory: Factory) -> None:
        """Add a leg of your own; ``factory(reader)`` makes it when a recipe first uses it (see semmem.model.search)."""
        self._legs.register(name, factory)

    @observed
    def probe(
        self,
        *,
        recipe: str | Recipe | None = None,
        k: int = 10,
        leg: str | None = None,
        witness: tuple[str, str] | None = None,
        filters: Filters | FilterValues | Mapping[str, Any] | None = None,
    ) -> Probe:
        """Store a memory that only one leg finds, recall it, and return the stage that dropped it, if any.

        There is one such memory for each leg of ``recipe`` (or for ``leg``) and regime, each in a scratch namespace
        that is dropped afterwards. ``witness`` is a question and a text of your own. Raises InvalidInput.
        """
        from semmem.client.probe.prober import Prober

        plan = self.recipe if recipe is None else find_recipe(recipe)
        prober = Prober(
            self.store, self._ingest, self._recaller, self._legs, self._extractor, self._encoder.embedder_or_reason
        )
        return prober.probe(plan, k, leg, witness=witness, filters=checked_filters(filters))

    def export(
        self,
        *,
        namespace: str | Sequence[str] | None = "default",
        filters: Filters | FilterValues | Mapping[str, Any] | None = None,
        vectors: bool = False,
        sensitive: bool = False,
    ) -> Iterator[dict[str, Any]]:
        """Yield memories as mappings with all their fields, newest first; ``namespace=None`` means all.

        The mappings are what ``importers.reader("jsonl")`` reads, one JSON object a line, in an order that is the same
        in every store and within bounded memory. ``sensitive`` includes sensitive memories, with their texts.
        ``vectors`` includes the stored vectors. ``updated_at`` and ``version`` are not imported: an imported memory has
        version 1. A ``backup`` keeps everything.
        """
        from semmem.transfer import exported

        where = None if namespace is None else strings("namespace", namespace)
        if not isinstance(sensitive, bool):
            raise InvalidInput(f"sensitive must be True or False, not {sensitive!r}.")
        chosen = checked_filters(filters)
        if not sensitive:
            if chosen.sensitive:
                raise InvalidInput(
                    "An export leaves out sensitive memories, which this filter asks for; add sensitive=True."
                )
            chosen = replace(chosen, sensitive=False)
        return exported(self.store, where, chosen, vectors=vectors)

    @observed
    def bring_in(
        self,
        items: Iterable[Item | Mapping[str, Any]],
        *,
        namespace: str = "default",
        batch_size: int = 500,
        on_error: Literal["abort", "skip"] = "skip",
        owned: Filters | FilterValues | Mapping[str, Any] | Sequence[Mapping[str, Any]] | None = None,
        replace: bool = False,
        overwrite: bool = False,
        prune: bool = False,
        keep: Collection[str] = (),
        mark: Mapping[str, Any] | None = None,
        progress: Callable[[BroughtIn], None] | None = None,
    ) -> BroughtIn:
        """Import items: store those that are new or changed, and return a report.

        An item whose id exists with other content is rejected, unless ``replace`` is set and the stored memory belongs
        to the source: it matches ``owned``, which is filters or a list of filters. ``prune`` forgets memories of the
        source in ``namespace`` that are neither among the items nor in ``keep``; ``restore_memory`` brings one back,
        and without ``prune`` the report counts them as gone. A memory that was updated by hand since its import stays,
        and is rejected if its item has changed too, unless ``overwrite`` is set. ``keep`` is read after the last item.

        Rows of ``export`` are valid items. An item with a namespace is stored there. ``mark`` is metadata for every
        memory stored by this call, such as the name of the file. ``mark`` is not compared; with it, neither are
        metadata keys that an item leaves out, and they stay.
        """
        from semmem.write.sync import bring_in

        check_namespace(namespace)
        whose = [one for one in map(checked_filters, owned if isinstance(owned, Sequence) else [owned]) if one]
        return bring_in(
            self.store, self._ingest, self._encoder.embedder_or_reason, items, namespace=namespace,
            batch_size=batch_size, on_error=on_error, owned=whose, replace_changed=replace,
            overwrite=overwrite, prune=prune, soft=self.settings.keep_forgotten_days > 0, keep=keep,
            mark=FIELDS["metadata"].kind.checked("metadata", mark or {}), progress=progress,
        )  # fmt: skip

    @observed
    def maintain(self) -> Mapping[str, int]:
        """Remove what has expired, derive stale memories again, merge segments, index vectors.

        Returns a count for each step, some only if they are not 0:

        - ``rebuilt``: memories whose derived rows an older splitter, likeness or extractor had made, derived again
        - ``stale``: memories that still have such rows: another extractor made them, or they are in another language,
          not readable, or cut for an embedder that is not available
        - ``indexed``: vectors that were indexed; 0 if none is new, if no namespace has 10,000 vectors (fewer are
          compared one by one), or if another process is indexing, which ``busy`` says
        - ``compared``: memories compared with similar ones only now, because ``on_contradiction`` was ``ignore`` or
          their links could not be made
        - ``moves``: interrupted renames and copies of namespaces that are finished now
        - ``accesses``: memories whose counts of accesses this process wrote
        - ``unread``: memories that the extractor could not read; they keep their concepts
        - ``orphans``, ``hubs``, ``contradictions``: for you to look at: rows that belong to no memory, names that too
          many memories mention, and links of that type
        """
        days = self.settings
        keep = Keep(
            changes_days=days.keep_changes_days,
            forgotten_days=days.keep_forgotten_days,
            recall_log_days=days.keep_recall_log_days,
            versions=days.keep_versions,
            answers_days=days.keep_answers_days,
        )
        from semmem.write.makers import Renewal

        moves = 0 if self.store.life is None else self.store.life.finish_moves()
        accesses = self._accesses.write()
        counted = {name: n for name, n in (("moves", moves), ("accesses", accesses)) if n}
        reader = self._encoder.embedder_or_reason
        renewal = Renewal(self.store, self._ingest, self._extractor, reader, self.settings.language)
        counted |= renewal.maintain()
        return {**counted, **self._ingest.maintain(), **self.store.maintain(keep)}

    @observed
    def backup(
        self, file: str | PathLike[str], *, force: bool = False, progress: Callable[[int], None] | None = None
    ) -> BackupReport:
        """Write the whole store, as of one moment, into one file while others write (see semmem.transfer).

        ``force`` overwrites an existing file. ``progress`` is called with the number of rows written. Raises
        InvalidInput.
        """
        from semmem import transfer

        return transfer.backup(self.store, file, force=force, progress=progress)

    @observed
    def restore(self, file: str | PathLike[str], *, progress: Callable[[int], None] | None = None) -> BackupReport:
        """Fill this store, which must be empty, with a backup, all of it or nothing. Raises InvalidInput, SchemaTooNew.

        A backup of an older semmem is migrated.
        """
        from semmem import transfer

        return transfer.restore(self.store, file, progress=progress)

    @observed
    def hashes(self, *, namespace: str | None = None) -> Mapping[str, NamespaceHash]:
        """Return counts and hashes of a namespace, or of each; they do not depend on the order of writing."""
        from semmem import transfer

        return transfer.hashes(self.store, None if namespace is None else string("namespace", namespace))

    def settings_of(self, *, namespace: str = "default") -> Mapping[str, Any]:
        """Return the search settings stored for a namespace, by dotted name, such as ``weights.graph``."""
        return {name: value for _, name, value in self.store.settings(string("namespace", namespace))}

    def searched_by(self, *, namespace: str = "default") -> tuple[Recipe, Mapping[str, Any], str | None]:
        """Return the recipe of a namespace, its settings, and the reasons why any of them cannot be used."""
        rows = self.store.settings(string("namespace", namespace))
        plan, used, wrong = fitted(self.recipe, (namespace,), rows, self._legs)
        return plan, used, wrong or outgrown(namespace, used)

    @observed
    def configure(self, *, namespace: str = "default", **changes: Any) -> Mapping[str, Any]:
        """Change the search settings of a namespace, in every process from its next recall on; return all of them.

        ``changes`` are the arguments of ``semmem.recipe``, or dotted names with their values; ``recipe`` is the name of
        a recipe. A recipe passed to ``recall`` overrides them. If one of them cannot be used, InvalidInput is raised
        and nothing is stored.
        """
        settings = changed(self.recipe, self.settings_of(namespace=namespace), changes, legs=self._legs)
        self.store.change_settings(namespace, {n: settings[n] for n in dotted(changes)}, ())
        return settings

    @observed
    def unset_settings(self, *names: str, namespace: str = "default") -> Mapping[str, Any]:
        """Remove search settings of a namespace, all without ``names``; return the others. Raises NotFound."""
        before = self.settings_of(namespace=namespace)
        settings = changed(self.recipe, before, {}, names or tuple(before))
        self.store.change_settings(namespace, {}, set(before) - set(settings))
        return settings


class Concepts:
    """Lists and corrects the names of a store."""

    def __init__(self, store: Store, graph: GraphStore, language: str) -> None:
        self._store = store
        self._graph = graph
        self._language = language

    def list(self, namespace: str, like: str | None, limit: int) -> Sequence[Concept]:
        """Return names, the most mentioned first; ``like`` is a piece of the name or of one merged into it."""
        whole("limit", limit, 1, 10_000, example=100)
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
