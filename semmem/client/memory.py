"""Semmem: the one object people hold, with the verbs of every day; what a person does later is in admin."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime
from os import PathLike
from typing import TYPE_CHECKING, Any, Literal, Never, Unpack

from semmem.client.admin import Keeping
from semmem.client.context_and_feedback import Use
from semmem.config import Settings
from semmem.model.errors import InvalidInput, NotFound, StoreClosed, StoreError
from semmem.model.filters import at_time, checked_filters, one_of, person, shown_by, string, strings, whole
from semmem.model.keywords import FilterValues, Item, SettingValues
from semmem.model.memory_fields import DEFAULTS, Fields, naming_fields
from semmem.model.other_names import no_such_verb
from semmem.model.protocols import Embedder, Extractor
from semmem.model.recipe import Recipe
from semmem.model.recipe import recipe as find_recipe
from semmem.model.search import Factory
from semmem.model.store import Store
from semmem.model.types import (
    LIST_ORDERS,
    Filters,
    IngestReport,
    ListOrder,
    Memory,
    MinConfidence,
    Page,
    SortBy,
    masked,
)
from semmem.rank_cap import reach
from semmem.read.overrides import recipe_of
from semmem.read.result import Recall
from semmem.read.search import Search, search_of
from semmem.read.tracing import observed, switch_on
from semmem.stores import is_server, open_store
from semmem.write.messages import checked_session, message_items

__all__ = ["Semmem", "connect", "warn_of_barred_legs"]


def connect(
    url: str | None = None,
    *,
    recipe: str | Recipe | None = None,
    embedder: str | Embedder | None = None,
    extractor: str | Extractor | None = None,
    legs: Mapping[str, Factory] | None = None,
    **settings: Unpack[SettingValues],
) -> Semmem:
    """Open a store and return a Semmem.

    ``url`` names the store. Without one, or with ``embedded:``, it is your own embedded PostgreSQL, started on demand;
    ``embedded:///abs/path`` is one in another folder, ``postgresql://…`` a server of yours, ``sqlite:notes.db`` one
    file, and ``http://127.0.0.1:8765`` a store behind ``semmem serve``, with ``key=…`` if it requires one.

    ``embedder`` is a name (``minilm``, ``all-mpnet-base-v2``, one of ``semmem model list``, ``endpoint``, ``hashing``,
    ``none``) or an object. Without it the embedder that filled the
    store is used; for an empty store MiniLM, if it is installed. ``extractor`` is a name (``rules``, ``spacy``,
    ``precomputed``, ``llm``) or an object; without it ``rules`` is used. ``legs`` are legs of your own, as in
    ``register_leg``. ``settings`` override the environment and ``semmem.toml`` (see semmem.Settings), which also choose
    the recipe unless ``recipe`` is given.

    Raises StoreUnavailable, SchemaTooNew, UnknownRecipe or InvalidInput. Warns once if a leg of ``recipe`` cannot bring
    a memory of its own into the top 10.
    """
    where = _url(url)
    chosen = Settings.load(**settings)
    switch_on(otel=chosen.otel, log=chosen.log)
    if is_server(place := chosen.url if where is None else where):
        from semmem.client.http import open_server

        assert place is not None
        its_own = {"recipe": recipe, "embedder": embedder, "extractor": extractor, "legs": legs}
        return open_server(place, chosen, its_own)
    plan = recipe_of(chosen) if recipe is None else find_recipe(recipe)
    warn_of_barred_legs(plan, stacklevel=2)
    store = open_store(
        place,
        home=chosen.home,
        pool_size=chosen.pool_size,
        idle_stop_s=chosen.idle_stop_s,
        start_timeout_s=chosen.start_timeout_s,
        backup_before_migration=chosen.backup_before_migration,
    )
    try:
        return Semmem(store, recipe=plan, embedder=embedder, extractor=extractor, settings=chosen, legs=legs)
    except BaseException:
        store.close()  # nobody else can: there is no Semmem to close
        raise


def _url(url: Any) -> str | None:
    """Return the url if it is one. Raises InvalidInput for a path, which does not say which store it is."""
    if url is None or isinstance(url, str):
        return url
    instead = f"'sqlite:{url}' or 'embedded:{url}'" if isinstance(url, PathLike) else "'sqlite:notes.db'"
    raise InvalidInput(
        f"The url must be a string that says which store it is, not {type(url).__name__}; write {instead}."
    )


class Semmem(Keeping, Use):
    """A memory: remember, recall, forget. Safe to share between threads; a context manager that closes itself."""

    if not TYPE_CHECKING:  # a type checker still reports a name that no verb has

        def __getattr__(self, name: str) -> Never:
            """Raise the error of an unknown name; for a verb of another system, it names ours."""
            raise no_such_verb(self, name)

    # ------------------------------------------------------------------ the verbs

    @observed
    @naming_fields
    def remember(
        self,
        text: str,
        *,
        namespace: str = "default",
        id: str | None = None,
        **fields: Unpack[Fields],
    ) -> Memory:
        """Store one text and return the memory; durable when this returns.

        ``id`` identifies the memory in its namespace; without one semmem makes a UUIDv7. The same id with the same
        content changes nothing; with other content it raises Conflict. ``importance`` is from 0 to 1. ``valid_from``
        and ``valid_to`` say when the text holds. The memory expires at ``expires_at``, or ``ttl`` from now. A
        ``pinned`` memory is in every context.

        A ``sensitive`` memory is in no index, so no recall finds it; ``get`` and ``list`` show its text only with
        ``reveal``. ``source_type`` says who the text comes from: "user", "agent", "tool" (a result, a web page) or
        "imported"; by default it is not set. ``vector`` is a unit vector of your own model; a store with such vectors
        requires one for each memory. Raises InvalidInput.
        """
        if unknown := fields.keys() - DEFAULTS.keys():
            raise TypeError(f"Semmem.remember() got an unexpected keyword argument {min(unknown)!r}")
        item = {"text": text, "namespace": namespace, "id": id, **DEFAULTS, **fields}
        memory = self._ingest.remember(item)
        return masked(memory) if memory.sensitive else memory

    @observed
    def remember_many(
        self,
        items: Iterable[Item | Mapping[str, Any]],
        *,
        namespace: str = "default",
        batch_size: int = 500,
        on_error: Literal["abort", "skip"] = "abort",
        progress: Callable[[IngestReport], None] | None = None,
    ) -> IngestReport:
        """Store any number of mappings with the keys of ``remember``, one transaction a batch.

        ``on_error="skip"`` stores the good items and reports the bad ones with position and reason; ``"abort"`` raises
        at the first bad item and stores nothing of its batch (earlier batches stay). ``progress`` is called after each
        batch. A long list is faster than a stream, because ``bulk_workers`` more processes read it ahead.
        """
        return self._ingest.remember_many(
            items, namespace=namespace, batch_size=batch_size, on_error=on_error, progress=progress
        )

    @observed
    def remember_messages(
        self,
        messages: Iterable[Mapping[str, Any]],
        *,
        session: str,
        namespace: str = "default",
        position: int | None = None,
    ) -> IngestReport:
        """Store the messages of a chat, ``[{"role": …, "content": …}, …]``, as turns of ``session``.

        An agent that passes only new messages leaves ``position`` out: they follow the last turn of the session. An
        agent that passes the whole chat each time gives the position of the first message, ``position=0``: turns are
        then identified by session and position, and stored turns stay as they are.

        The author is ``name``, else ``role``. ``created_at``, ``importance``, ``sensitive``, ``pinned``,
        ``valid_from``, ``valid_to``, ``expires_at`` and ``ttl`` of a message are those of ``remember``. Messages
        without text, such as a tool call, are left out. All messages are stored in one transaction. Raises InvalidInput
        for a message of another form or without content, Conflict if a position holds another text.
        """
        first = position
        if first is None:
            newest = self.store.list(
                string("namespace", namespace), checked_filters({"sessions": [checked_session(session)]}), 1000, None
            )
            first = max((one.position + 1 for one in newest if one.position is not None), default=0)
        items = message_items(messages, session=session, first=first, named=position is not None)
        return self.remember_many(items, namespace=namespace, batch_size=max(1, len(items)))

    @observed
    def update(
        self,
        id: str,
        *,
        namespace: str = "default",
        expected_version: int | str | None = None,
        changed_by: str | None = None,
        **changes: Any,
    ) -> Memory:
        """Change fields of a memory, named as in ``remember``, and return it; other fields stay.

        The id and ``created_at`` stay, ``version`` increases, and ``updated_at`` is now. A new text is extracted and
        embedded in the same transaction. ``history`` keeps the previous version and shows ``changed_by``. If nothing
        changes, nothing is written. ``tags`` and ``metadata`` replace the old ones as a whole; None removes a field.

        ``expected_version`` is the version that you have read, or the ``tag`` of the memory. The tag also differs if
        the memory was forgotten and another one stored under its id. If the stored memory is another one, Conflict is
        raised, with both texts. Raises NotFound for an unknown id, InvalidInput for a field that no memory has.
        """
        return masked(
            self._ingest.update(
                self._whole_id(namespace, id),
                changes,
                namespace=namespace,
                expected_version=expected_version,
                changed_by=person("changed_by", changed_by),
            )
        )

    @observed
    def recall(
        self,
        query: str,
        *,
        namespace: str | Sequence[str] = "default",
        limit: int = 10,
        offset: int = 0,
        recipe: str | Recipe | None = None,
        filters: Filters | FilterValues | Mapping[str, Any] | None = None,
        exclude: Sequence[str] = (),
        sort_by: SortBy = "relevance",
        vector: Any = None,
        fold_parts: bool = True,
        min_confidence: MinConfidence = 0.0,
        token_budget: int | None = None,
        as_of: datetime | date | str | None = None,
    ) -> Recall:
        """Return the memories that answer ``query``, best first.

        ``filters`` narrow the search: sessions, authors and source types (any of them), tags (all of them), metadata,
        ``created_after``, ``created_before`` and more; see Filters. Filters and ``exclude`` (ids) apply inside every
        leg, so the limit is still met. A "quoted phrase" must occur in each memory that the lexical leg returns.
        ``offset`` and ``limit`` page through the memories that the legs found, each to the depth of the recipe.

        Without ``recipe`` the recipe of ``connect`` is used, changed by the settings of the namespace (see
        ``configure``); in several namespaces, only if all have the same settings.

        If the ``confidence`` of the recall is below ``min_confidence``, it returns no hit, and ``withheld`` counts the
        hits kept back; "auto" is the floor measured for the embedder and the legs that answered (adr/0056). With
        ``token_budget`` the hits are those that fit, whole and in order of rank; ``left_out`` lists the others. Tokens
        are estimated as bytes / 3.

        With ``as_of`` the recall searches the versions that were valid then, by words and vectors, with the word
        statistics of today; the graph leg does not search earlier versions. Forgotten memories are never found. Raises
        InvalidInput for an empty query.
        """
        arguments = {
            "limit": limit, "offset": offset, "recipe": recipe, "filters": filters, "exclude": exclude,
            "sort_by": sort_by, "vector": vector, "fold_parts": fold_parts, "min_confidence": min_confidence,
            "token_budget": token_budget, "as_of": as_of,
        }  # fmt: skip
        result = self._answered(query, namespace, arguments)
        return self._log_recall(result, arguments) if self.settings.recall_log else result

    def _answered(self, query: str, namespace: str | Sequence[str], arguments: Mapping[str, Any]) -> Recall:
        """Return the answer to a recall and count its hits; nothing is logged."""
        namespaces = strings("namespace", namespace)
        if not namespaces or not all(namespaces):
            raise InvalidInput("namespace must be a name, or a list of at least one.")
        given = dict(arguments)
        as_of, recipe = given.pop("as_of"), given.pop("recipe")
        given["filters"] = checked_filters(given["filters"])
        given["exclude"] = self._whole_ids(namespaces, strings("exclude", given["exclude"]))
        plan = self.recipe if recipe is None else find_recipe(recipe)
        at = None if as_of is None else at_time("as_of", as_of)
        result = self._recaller.recall(query, namespaces, plan, tailor=recipe is None, at=at, **given)
        self._accesses.note((hit.namespace, hit.id) for hit in result.hits)
        return result

    def leg(self, name: str | None = None, *, namespace: str | Sequence[str] = "default") -> Search:
        """Return one leg by itself, or with no name the whole recall, as ``search(query, …) -> (results, total)``."""
        return search_of(name, self.recall, strings("namespace", namespace), self.recipe, self._legs)

    @observed
    def get(
        self,
        id: str,
        *,
        namespace: str = "default",
        reveal: bool = False,
        as_of: datetime | date | str | None = None,
    ) -> Memory:
        """Return the memory ``id``; ``reveal`` shows the text of a sensitive one. Raises NotFound.

        With ``as_of`` it returns the version that was valid then. A version is valid from its ``valid_from``, else from
        when it was written, until its ``valid_to`` or until the next version begins.
        """
        shown, id = shown_by(reveal), self._whole_id(namespace, id)
        if as_of is not None:
            return shown(self._version_at(namespace, id, as_of))
        memories = self.store.get(namespace, [id])
        if not memories:
            raise self._unknown(id, namespace)
        return shown(self._with_accesses(namespace, memories)[0])

    @observed
    def list(
        self,
        *,
        namespace: str = "default",
        filters: Filters | FilterValues | Mapping[str, Any] | None = None,
        limit: int = 100,
        cursor: str | None = None,
        reveal: bool = False,
        sort_by: ListOrder = "created",
    ) -> Page:
        """Return a page of memories, newest first; pass its ``cursor`` to get the next one.

        ``sort_by`` is ``created``, ``updated``, ``importance`` or ``accessed`` (when a recall last returned the
        memory), the latest or most important first. Sensitive memories are listed too, with their texts only if
        ``reveal`` is set; of the filters, only ``titles``, ``tags`` and ``sensitive`` find them.
        """
        shown = shown_by(reveal)
        whole("limit", limit, 1, 10_000, example=100)
        after = None if cursor is None else string("cursor", cursor)
        chosen = checked_filters(filters)
        if chosen and not (chosen.titles or chosen.tags or chosen.sensitive):
            chosen = replace(chosen, sensitive=False)
        where, order = string("namespace", namespace), one_of("sort_by", sort_by, LIST_ORDERS)
        page = self.store.list(where, chosen, limit, after, order)
        return replace(page, memories=tuple(map(shown, self._with_accesses(where, page.memories))))

    @observed
    def forget(
        self,
        id: str | None = None,
        *,
        namespace: str = "default",
        filters: Filters | FilterValues | Mapping[str, Any] | None = None,
        everything: bool = False,
        hard: bool = False,
        dry_run: bool = False,
        forgotten_by: str | None = None,
    ) -> int:
        """Remove one memory, or all that ``filters`` match, with all derived data; return the count.

        With an id and filters, the memory is removed if it matches. Postings, vectors and mentions go in the same
        transaction, so nothing finds the memory any more. Its text and versions are kept apart for
        ``keep_forgotten_days`` (a setting, 30): ``history`` shows them, with ``forgotten_by``, and ``restore_memory``
        brings the memory back.

        ``hard`` keeps nothing, removes matching memories that were forgotten earlier too, and rewrites the files of the
        store, so that no deleted byte is left in them. ``everything`` forgets the whole namespace and its settings for
        good. ``dry_run`` only counts. Raises NotFound for an unknown id, InvalidInput without an id, filters or
        ``everything``.
        """
        chosen = checked_filters(filters)
        for name, value in (("everything", everything), ("hard", hard), ("dry_run", dry_run)):
            if not isinstance(value, bool):
                raise InvalidInput(f"{name} must be True or False, not {value!r}; nothing was forgotten.")
        if id is None and not chosen and not everything:
            raise InvalidInput("Say what to forget: an id, filters, or everything for the whole namespace.")
        if everything and (id is not None or chosen):
            raise InvalidInput("everything is the whole namespace; leave it out to forget by id or filters.")
        if id is not None:
            id = self._whole_id(namespace, id)
        where = string("namespace", namespace)
        whom = person("forgotten_by", forgotten_by)
        soft = not hard and self.settings.keep_forgotten_days > 0
        if not dry_run and (everything or not soft):
            self._accesses.settle(where)
        count = (
            self.store.forget_namespace(where, dry_run=dry_run)
            if everything
            else self.store.forget(where, id, chosen, dry_run=dry_run, soft=soft, by=whom)
        )
        if hard and not dry_run:  # before what was not found: a scrub that failed is made up for by the same call
            _scrub(self.store)
        if id is not None and count == 0 and chosen and self.store.payload_hashes([(namespace, id)]):
            raise NotFound(
                f"The memory {id!r} in namespace {namespace!r} does not match the filters; nothing was forgotten."
            )
        if id is not None and count == 0:
            raise NotFound(f"There is no memory {id!r} in namespace {namespace!r}; nothing was forgotten.")
        if count and not dry_run and self.settings.on_contradiction == "supersede":
            self._ingest.catch_up(namespace)  # of what is left, other memories may be the newest now
        return count


def _scrub(store: Store) -> None:
    """Rewrite the files of a store after a hard forget; an error says that only this is missing."""
    try:
        store.scrub()
    except StoreClosed:
        raise
    except StoreError as error:
        reason = error.message[0].lower() + error.message[1:]
        raise type(error)(
            f"The memories are forgotten, but their bytes are still in the files, so forget with hard again: {reason}"
        ) from error


def warn_of_barred_legs(plan: Recipe, *, stacklevel: int) -> None:
    """Warn of each leg of ``plan`` that cannot bring a memory of its own into the top 10."""
    for regime, legs in reach(plan, 10).regimes.items():
        for leg, status in legs.legs.items():
            if leg in plan.legs and status.class_ in ("unreachable", "boost-only"):
                warnings.warn(
                    f"The leg {leg} of recipe {plan.name!r} is {status.class_} at k = 10 (regime {regime}): it cannot "
                    f"bring in a memory of its own; `semmem reach --recipe {plan.name}` shows why.",
                    stacklevel=stacklevel + 1,
                )
