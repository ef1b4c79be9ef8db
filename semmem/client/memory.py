"""Semmem: the one object people hold, with every verb: it checks arguments and delegates."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime
from os import PathLike
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self, Unpack

from semmem.client import admin, audit, context_and_feedback, life, recall_log
from semmem.client.admin import concepts_of
from semmem.client.connection import Connection
from semmem.client.namespaces import NOT_DROPPED, checked_limit, two_names
from semmem.client.recalling import answered
from semmem.config import Settings
from semmem.model.audit import Audit
from semmem.model.filters import (
    checked_filters,
    page_limit,
    person,
    several_namespaces,
    shown_by,
    string,
    strings,
    true_or_false,
)
from semmem.model.history import Changes, Link, Version
from semmem.model.keywords import FilterValues, Item
from semmem.model.memory_fields import DEFAULTS, FIELDS, Fields, naming_fields
from semmem.model.other_names import verb_named
from semmem.model.protocols import Embedder
from semmem.model.recall_log import LoggedRecall, Recalls, Replay
from semmem.model.recipe import Recipe
from semmem.model.recipe import recipe as find_recipe
from semmem.model.reports import (
    BackupReport,
    Finding,
    Limits,
    Namespace,
    NamespaceHash,
    Rebuilt,
    RelevanceJudgment,
    Stats,
)
from semmem.model.search import Factory, Search
from semmem.model.store import Store, graph_of, life_of
from semmem.model.types import (
    Concept,
    Filters,
    IngestReport,
    ListOrder,
    Memory,
    MinConfidence,
    Page,
    SortBy,
    masked,
)
from semmem.read.context import Context
from semmem.read.overrides import changed, dotted, fitted, outgrown
from semmem.read.result import Recall
from semmem.read.search import search_of
from semmem.read.tracing import observed
from semmem.stores.resident.store import resident_sizes
from semmem.write.items import check_namespace
from semmem.write.messages import checked_session, message_items

if TYPE_CHECKING:  # what a recall does not need is imported by the methods that do
    import networkx

    from semmem.client.probe.stages import Probe
    from semmem.write.sync import ImportReport

__all__ = ["Semmem", "StoreSemmem"]


class Semmem(ABC):
    """A memory: remember, recall, forget. Safe to share between threads; a context manager that closes itself.

    ``connect`` opens it: a StoreSemmem answers here, from an open store; an HttpSemmem asks a server for each verb.
    """

    @property
    @abstractmethod
    def settings(self) -> Settings:
        """The settings of this process."""

    @property
    @abstractmethod
    def _here(self) -> Connection:
        """The open store with its parts. Raises LocalOnly behind a server."""

    @property
    @abstractmethod
    def recipe(self) -> Recipe:
        """The recipe of a recall that names none, where the namespace has no settings of its own."""

    @property
    def store(self) -> Store:
        """The open store. Raises LocalOnly behind a server."""
        return self._here.store

    @property
    def resident(self) -> Mapping[str, int]:
        """The namespaces in this process's memory, the last asked at the end, and about how many bytes each takes.

        One that is mapped from its saved model takes what is made of it in memory, without its file. They are within
        the setting ``resident_mb``, as of the last recall of each; a dropped namespace stays until it
        is asked again or others need the room. A namespace comes into memory with its second recall, a large one some
        recalls later, one with a saved model with the first, and one that was dropped before its recalls paid for its
        loading after up to 256. A namespace that is too large, and has no saved model, stays in the database. One of a
        SQLite file comes into memory with its first recall, and the last asked stays whatever its size.
        """
        return resident_sizes(self._here.reader)

    @abstractmethod
    def _short_ids(self, ids: Collection[str], *, namespace: str) -> Mapping[str, str]:
        """Return the shortest unique form of each of ``ids``, which are of memories of one namespace."""

    @abstractmethod
    def close(self) -> None:
        """Release connections and threads. The embedded server keeps running for other processes."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close()

    if not TYPE_CHECKING:  # a type checker still reports a name that no verb has

        def __getattr__(self, name: str) -> Any:
            """Return a verb by its former name. For a verb of another system, the error names ours."""
            return verb_named(self, "Semmem", name)

    # ------------------------------------------------------------------ every day

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
        ``pinned`` memory is in every context while it is valid.

        A ``sensitive`` memory is in no index, so no recall finds it; ``get`` and ``list`` show its text only with
        ``reveal``. ``source_type`` says who the text comes from: "user", "agent", "tool" (a result, a web page) or
        "imported"; by default it is not set. ``vector`` is a unit vector of your own model; a store with such vectors
        requires one for each memory. Raises InvalidInput.
        """
        if unknown := fields.keys() - DEFAULTS.keys():
            raise TypeError(f"Semmem.remember() got an unexpected keyword argument {min(unknown)!r}")
        item = {"text": text, "namespace": namespace, "id": id, **DEFAULTS, **fields}
        memory = self._here.ingest.remember(item)
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
        return self._here.ingest.remember_many(
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
            last = self.store.last_position(string("namespace", namespace), checked_session(session))
            first = 0 if last is None else max(0, last + 1)
        items = message_items(messages, session=session, first=first, named=position is not None)
        return self.remember_many(items, namespace=namespace, batch_size=max(1, len(items)))

    @observed
    def update(
        self,
        /,
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

        The new version takes the place of the old one at once, also where its ``valid_from`` is in the future: until
        then only ``as_of`` finds the old one. To announce a change, ``remember`` it as a new memory with that
        ``valid_from`` and ``link`` it "supersedes".

        ``expected_version`` is the version that you have read, or the ``tag`` of the memory. The tag also differs if
        the memory was forgotten and another one stored under its id. If the stored memory is another one, Conflict is
        raised, with both texts. Raises NotFound for an unknown id, InvalidInput for a field that no memory has.
        """
        return masked(
            self._here.ingest.update(
                self._here.whole_id(namespace, id),
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
        now: datetime | date | str | None = None,
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
        statistics of today; the graph leg does not search earlier versions. Forgotten memories are never found. ``now``
        is when the question is asked, for a recipe with a ``period_floor`` ("last week" is the week before) or the
        reranker ``composite``. Without it, this is ``as_of`` or the present in local time. Raises InvalidInput for an
        empty query.
        """
        arguments = {
            "limit": limit, "offset": offset, "recipe": recipe, "filters": filters, "exclude": exclude,
            "sort_by": sort_by, "vector": vector, "fold_parts": fold_parts, "min_confidence": min_confidence,
            "token_budget": token_budget, "as_of": as_of, "now": now,
        }  # fmt: skip
        result = answered(self._here, query, namespace, arguments)
        return recall_log.log_recall(self._here, result, arguments) if self.settings.recall_log else result

    def leg(self, name: str | None = None, *, namespace: str | Sequence[str] = "default") -> Search:
        """Return one leg by itself, or with no name the whole recall, as ``search(query, …) -> (results, total)``."""
        return search_of(name, self.recall, strings("namespace", namespace), self.recipe, self._here.legs)

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
        shown, id = shown_by(reveal), self._here.whole_id(namespace, id)
        if as_of is not None:
            return shown(life.version_at(self._here, namespace, id, as_of))
        memories = self.store.get(namespace, [id])
        if not memories:
            raise life.unknown(self._here, id, namespace)
        return shown(life.with_accesses(self._here, memories[0]))

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
        return life.listed(self._here, namespace, checked_filters(filters), limit, cursor, shown_by(reveal), sort_by)

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
        for name, value in (("everything", everything), ("hard", hard), ("dry_run", dry_run)):
            true_or_false(name, value, "; nothing was forgotten")
        return life.forget(self._here, id, namespace, checked_filters(filters), everything, hard, dry_run, forgotten_by)

    # ------------------------------------------------------------------ what was recalled

    @observed
    def context(
        self,
        query: str,
        *,
        namespace: str | Sequence[str] = "default",
        token_budget: int = 2000,
        limit: int = 20,
        recipe: str | Recipe | None = None,
        filters: Filters | FilterValues | Mapping[str, Any] | None = None,
        exclude: Sequence[str] = (),
        min_confidence: MinConfidence = 0.0,
        as_of: datetime | date | str | None = None,
        now: datetime | date | str | None = None,
    ) -> Context:
        """Return the memories that answer ``query`` as a block for a prompt, within ``token_budget``.

        Pinned memories of the namespaces come first, whatever the question and the filters are, within half of the
        budget; the most important come first, and of equal ones the newest. A superseded one comes last, with
        ``superseded_by``, or as a hit behind what supersedes it; one that is not valid now is a hit or left out.
        ``exclude`` keeps the memories with these ids out, pinned or not.

        The block stands between two tags and says that it is data. Each memory is one line of JSON with its id,
        namespace, author, times and text; no text can end the block. Memories are whole, best first; if a long one does
        not fit, its found passage is shown. ``left_out`` lists the memories without room. The other arguments are those
        of ``recall``; with ``as_of``, memories that are pinned now appear as they were then. Raises InvalidInput.
        """
        arguments = {
            "limit": limit, "recipe": recipe, "filters": filters, "exclude": exclude, "min_confidence": min_confidence,
            "as_of": as_of, "now": now,
        }  # fmt: skip
        return context_and_feedback.context(self._here, query, namespace, token_budget, arguments)

    @observed
    def feedback(
        self,
        recall_id: str,
        *,
        useful: Sequence[str] = (),
        not_useful: Sequence[str] = (),
        namespace: str | Sequence[str] = "default",
        made_by: str | None = None,
    ) -> int:
        """Record which memories of a recall were useful and which were not; return how many judgments were stored.

        ``recall_id`` is the ``id`` of a recall; recalls have one if the setting ``recall_log`` is on. ``useful`` and
        ``not_useful`` are ids of memories in its namespaces, returned or not; a later judgment replaces an earlier one.
        Judgments are labels for ``python -m eval`` and change no ranking. Raises NotFound for an unknown recall or
        memory, InvalidInput.
        """
        return context_and_feedback.feedback(self._here, recall_id, useful, not_useful, namespace, made_by)

    @observed
    def judgments(self, *, namespace: str = "default") -> Sequence[RelevanceJudgment]:
        """Return the relevance judgments that ``feedback`` has stored in a namespace, oldest first.

        Their ``as_dict`` values, one a line, are a file of questions that ``python -m eval`` reads.
        """
        return life_of(self.store).judgments(string("namespace", namespace))

    @observed
    def recalls(
        self,
        *,
        namespace: str | Sequence[str] = "default",
        interface: str | None = None,
        agent: str | None = None,
        memory: str | None = None,
        asked_after: datetime | date | str | None = None,
        asked_before: datetime | date | str | None = None,
        limit: int = 100,
        cursor: str | None = None,
    ) -> Recalls:
        """Return a page of the log of recalls, newest first; pass its ``cursor`` to get the next one.

        The log exists if the setting ``recall_log`` is on. An entry has the question, when, through which interface and
        by which agent it was asked, and the ids of the memories that were given, left out or withheld; no text of any.
        ``interface``, ``agent``, ``memory`` (the id of one that was given), ``asked_after`` and ``asked_before`` narrow
        the list. Of a recall of several namespaces, an entry shows the hits in ``namespace``. Raises InvalidInput.
        """
        times = {"asked_after": asked_after, "asked_before": asked_before}
        return recall_log.recalls(self._here, namespace, interface, agent, memory, times, limit, cursor)

    @observed
    def logged_recall(self, recall_id: str, *, namespace: str | Sequence[str] = "default") -> LoggedRecall:
        """Return the entry of one recall in the log, by the ``id`` of the recall or its beginning. Raises NotFound."""
        return recall_log.logged_recall(self._here, recall_id, namespace)

    @observed
    def replay_recall(
        self, recall_id: str, *, namespace: str | Sequence[str] = "default", then: bool = False
    ) -> Replay:
        """Ask the question of a logged recall again, and return what differs; the repetition is not logged.

        It is asked of the memories of today, or with ``then`` of those that were valid at that time, by the recipe and
        the settings of today unless the recall named a recipe. Of a context, its recall is repeated. Raises NotFound,
        and InvalidInput for a recall with a ``vector``, which the log does not keep.
        """
        return recall_log.replay_recall(self._here, recall_id, namespace, then)

    @observed
    def audit(
        self,
        *,
        namespace: str | Sequence[str] | None = None,
        who: str | None = None,
        noted_after: datetime | date | str | None = None,
        noted_before: datetime | date | str | None = None,
        limit: int = 1_000,
        cursor: str | None = None,
    ) -> Audit:
        """Return a page of the audit, oldest first: who read and wrote what; pass its ``cursor`` to get the next one.

        The audit exists if the setting ``audit`` is on. An entry has the name of the key or the subject of the token
        (``who``), interface, agent, verb, namespace, outcome, and the ids or the number of memories; no text. It stays
        for ``keep_audit_days``; before, the store refuses to change or delete it. Raises InvalidInput.
        """
        times = {"noted_after": noted_after, "noted_before": noted_before}
        return audit.audit(self._here, namespace, who, times, limit, cursor)

    # ------------------------------------------------------------------ the life of a memory

    @observed
    def history(
        self,
        id: str,
        *,
        namespace: str = "default",
        reveal: bool = False,
        limit: int | None = None,
        offset: int = 0,
    ) -> Sequence[Version]:
        """Return the versions of the memory ``id``, oldest first, the current one last. Raises NotFound.

        ``limit`` and ``offset`` return a page of them. The last ``keep_versions`` earlier versions of a memory are kept
        (a setting, 100). Each version says which fields it changed, when, and by whom if a name was given;
        ``version.diff(other)`` compares two versions. The versions of a forgotten memory are returned until it is gone
        for good.

        ``reveal`` shows the texts of sensitive versions: all versions up to the one that became sensitive. Without it,
        such a version does not say whether its text changed.
        """
        return life.history(self._here, id, namespace, reveal, limit, offset)

    @observed
    def forgotten(self, *, namespace: str = "default", limit: int = 100) -> Sequence[Version]:
        """Return the forgotten memories that ``restore_memory`` can bring back, the latest forgotten first.

        Each is the version that it was last, with ``forgotten_at`` and ``forgotten_by``. Raises InvalidInput.
        """
        return life.forgotten(self._here, namespace, limit)

    @observed
    def restore_memory(self, id: str, *, namespace: str = "default") -> Memory:
        """Bring the forgotten memory ``id`` back, and return it. Raises NotFound, Conflict.

        The memory comes back with its versions; its concepts and its vector are computed again. This works until
        ``maintain`` removes the memory, ``keep_forgotten_days`` after it was forgotten. A memory that was forgotten
        with ``hard``, or with its whole namespace, cannot be brought back.
        """
        return life.restore_memory(self._here, id, namespace)

    @observed
    def link(self, id: str, type: str, to: str, *, namespace: str = "default", made_by: str | None = None) -> Link:
        """Link the memory ``id`` to the memory ``to``, and return the link; an existing one stays as it is.

        ``type`` is ``supersedes`` (``id`` is the newer memory), ``resolved-by``, ``part-of``, ``see-also`` or
        ``contradicts``. In a recall, the newest superseding memory takes the place of the memory that it supersedes;
        the superseded one moves down, and its hit names the newer one in ``superseded_by``. Older near-duplicates of
        the superseded one, as semmem has linked them, fall with it; ``unlink`` undoes that. Raises NotFound for an
        unknown id. Raises InvalidInput for an unknown type, a link to itself, a circle of ``supersedes``, and a chain
        of more than 10 of them.
        """
        return life.link(self._here, id, type, to, namespace, made_by)

    @observed
    def unlink(self, id: str, type: str, to: str, *, namespace: str = "default") -> bool:
        """Remove a link; return whether there was one. Raises NotFound for an unknown id, InvalidInput."""
        return life.unlink(self._here, id, type, to, namespace)

    @observed
    def links(self, id: str, *, namespace: str = "default") -> Sequence[Link]:
        """Return the links from and to a memory. Raises NotFound for an unknown id."""
        return life.links(self._here, id, namespace)

    @observed
    def contradictions(self, *, namespace: str = "default", limit: int = 100) -> Sequence[Link]:
        """Return the contradictions that wait for a decision, newest first: links from a newer memory to an older one.

        A decision is a link ``supersedes`` between the two, in either direction, ``unlink`` where both hold, or
        ``forget``. Raises InvalidInput.
        """
        return life.undecided(self._here, "contradicts", namespace, limit)

    @observed
    def near_duplicates(self, *, namespace: str = "default", limit: int = 100) -> Sequence[Link]:
        """Return the near-duplicates that wait for a decision, newest first: links from a newer memory to an older one.

        semmem made these links (see-also). A decision is a link ``supersedes`` between the two, ``unlink`` to keep
        both, or ``forget``. Raises InvalidInput.
        """
        return life.undecided(self._here, "see-also", namespace, limit)

    # ------------------------------------------------------------------ namespaces

    @observed
    def stats(self, *, namespace: str | None = None, exact: bool = False) -> Stats:
        """Return counts of the store, or of one namespace.

        Above 5,000 memories on PostgreSQL, concepts and mentions are estimates, and the answer says so under
        ``estimated``; ``exact`` counts each, which takes some seconds for 100,000 memories.
        """
        where = None if namespace is None else string("namespace", namespace)
        return admin.counts(self._here, where, exact=true_or_false("exact", exact))[0]

    @observed
    def doctor(self) -> Sequence[Finding]:
        """Examine the installation, the embedder and the store; say what is wrong and which command mends it.

        Nothing is changed, and nothing goes over the network. Behind a server it examines the server's machine.
        """
        from semmem.client.examination import examined

        return examined(self)

    @observed
    def namespaces(self) -> Sequence[Namespace]:
        """Return the namespaces that hold memories, by name, with counts and the time of the last change."""
        return self.store.overview()

    @observed
    def changes(
        self, since: str | None = None, *, namespace: str | Sequence[str] = "default", limit: int = 1000
    ) -> Changes:
        """Return what was written, updated, forgotten and linked since a cursor, in order, and the next cursor.

        For programs that keep a copy. ``since`` is the ``cursor`` of the previous call; None starts at the beginning;
        "now" returns no changes, only the cursor to take before a first full export. The changes of several namespaces
        follow one another. A change names the id; ``get`` returns the memory as it is now. No change is missed: if
        changes after the cursor are no longer kept (the setting ``keep_changes_days``), InvalidInput is raised, and you
        need a full export.
        """
        from semmem.read.changes import changes

        page_limit("changes", limit)
        names = several_namespaces(namespace)
        cursor = None if since is None else string("since", since)
        return changes(life_of(self.store), cursor, names, limit)

    @observed
    def rename_namespace(self, old: str, new: str) -> int:
        """Give a namespace another name, with all that is in it; return how many memories it has.

        Readers see all memories under the old name, or all under the new one. Writers wait up to ten seconds, then get
        StoreUnavailable. After an interruption the same call or ``maintain`` finishes the rename. If ``new`` already
        has limits, they apply. Raises NotFound if ``old`` holds no memories, Conflict if ``new`` holds any, another
        process moves one of the two or somebody rebuilds the store, NamespaceFull if the limits of ``new`` do not allow
        so many.
        """
        source, target = two_names(old, new)
        self._here.accesses.settle(source)
        return life_of(self.store).move_namespace(source, target, stay=False)

    @observed
    def copy_namespace(self, old: str, new: str) -> int:
        """Copy a namespace, with all that is in it, to another name; return how many memories it has.

        The copy shows one moment, and writers need not wait. After an interruption the same call starts again, and
        ``maintain`` removes the unfinished copy. If ``new`` already has limits, they apply. Raises NotFound if ``old``
        holds no memories, Conflict if ``new`` holds any, another process moves one of the two or somebody rebuilds the
        store, NamespaceFull if the limits of ``new`` do not allow so many.
        """
        source, target = two_names(old, new)
        self._here.accesses.settle(source)
        return life_of(self.store).move_namespace(source, target, stay=True)

    @observed
    def drop_namespace(self, name: str, *, dry_run: bool = False) -> int:
        """Forget a namespace whole and for good, in steps of bounded size; return how many memories it has.

        After an interruption ``maintain`` finishes the drop. ``dry_run`` only counts. The limits of the namespace stay.
        """
        check_namespace(name)
        if not true_or_false("dry_run", dry_run, NOT_DROPPED):
            self._here.accesses.settle(name)
        return self.store.forget_namespace(name, dry_run=dry_run)

    @observed
    def namespace_limits(
        self,
        name: str,
        *,
        keep_days: float | None = None,
        most_memories: int | None = None,
        most_bytes: int | None = None,
    ) -> Limits:
        """Change the given limits of a namespace, and return all of them; 0 removes a limit.

        ``maintain`` forgets a memory for good ``keep_days`` after its last change (an hour at least), unless it is
        pinned. The days begin when it is stored, also where ``created_at`` is another time. A write that would exceed
        ``most_memories``, or ``most_bytes`` of texts and titles, raises NamespaceFull, and nothing of its batch is
        stored. Memories beyond a new limit stay. Raises InvalidInput.
        """
        life = life_of(self.store)
        check_namespace(name)
        limits = {"keep_days": keep_days, "most_memories": most_memories, "most_bytes": most_bytes}
        changes = {key: checked_limit(key, value) for key, value in limits.items() if value is not None}
        if not changes:
            return life.limits(name)
        return life.set_limits(name, {key: value or None for key, value in changes.items()})

    # ------------------------------------------------------------------ the person who runs a store

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
        return concepts_of(self._here).list(string("namespace", namespace), piece, limit)

    @observed
    def merge_concepts(self, a: str, b: str, *, namespace: str = "default") -> None:
        """Merge the name ``a`` into ``b``, in stored memories and in later ones. Raises NotFound, InvalidInput."""
        concepts_of(self._here).merge(string("a", a), string("b", b), string("namespace", namespace))

    @observed
    def split_concept(self, name: str, *, namespace: str = "default") -> None:
        """Undo every merge with ``name``, and keep the rules from merging it again. Raises NotFound."""
        concepts_of(self._here).split(string("name", name), string("namespace", namespace))

    @observed
    def graph_hash(self, *, namespace: str = "default") -> str:
        """Return a hash of the graph, which does not depend on the order of writing."""
        return graph_of(self.store).graph_hash(string("namespace", namespace))

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
        return admin.rebuild(self._here, embedder, extract, progress)

    def register_leg(self, name: str, factory: Factory) -> None:
        """Add a leg of your own; ``factory(reader)`` makes it when a recipe first uses it (see semmem.model.search)."""
        self._here.legs.register(name, factory)

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
            self.store,
            self._here.ingest,
            self._here.recaller,
            self._here.legs,
            self._here.extractor,
            self._here.embedder_binding.embedder_or_reason,
        )
        return prober.probe(plan, k, leg, witness=witness, filters=checked_filters(filters))

    @observed
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
        return admin.export(self._here, namespace, filters, vectors, sensitive)

    @observed
    def import_items(
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
        progress: Callable[[ImportReport], None] | None = None,
    ) -> ImportReport:
        """Import items: store those that are new or changed, and return a report.

        An item whose id exists with other content is rejected, unless ``replace`` is set and the stored memory belongs
        to the source: it matches ``owned``, which is filters or a list of filters. ``prune`` forgets memories of the
        source in ``namespace`` that are neither among the items nor in ``keep``, if they were stored before the first
        item is read; ``restore_memory`` brings one back, and without ``prune`` the report counts them as gone. A memory
        that was updated by hand since its import stays, and is rejected if its item has changed too, unless
        ``overwrite`` is set. ``keep`` is read after the last item.

        Rows of ``export`` are valid items. An item with a namespace is stored there. ``mark`` is metadata for every
        memory stored by this call, such as the name of the file. ``mark`` is not compared; with it, neither are
        metadata keys that an item leaves out, and they stay.
        """
        from semmem.write.sync import import_items

        check_namespace(namespace)
        whose = [one for one in map(checked_filters, owned if isinstance(owned, Sequence) else [owned]) if one]
        return import_items(
            self.store,
            self._here.ingest,
            items,
            namespace=namespace,
            batch_size=batch_size,
            on_error=on_error,
            owned=whose,
            replace_changed=replace,
            overwrite=overwrite,
            prune=prune,
            soft=self.settings.keep_forgotten_days > 0,
            keep=keep,
            mark=FIELDS["metadata"].kind.checked("metadata", mark or {}),
            progress=progress,
        )

    @observed
    def maintain(self) -> Mapping[str, int]:
        """Remove what has expired, derive stale memories again, pack the index, index vectors.

        Returns a count for each step, some only if they are not 0:

        - ``expired``, ``kept``, ``forgotten``: memories that were removed because they expired, were older than
          ``keep_days`` of their namespace, or were forgotten more than ``keep_forgotten_days`` ago
        - ``versions``, ``changes``, ``recalls``, ``answers``, ``audit``: earlier versions of memories, and entries of
          the log of changes, of the log of recalls, of the answers to repeated requests and of the audit log, that
          were removed at the end of their time; ``emptied``: names of namespaces without memories that were removed
        - ``folded``: new memories whose words and concepts went into the index; recalls find them before, too
        - ``joined``: rows of the index that were packed into larger ones
        - ``rebuilt``: memories whose derived rows an older splitter, likeness or extractor had made, derived again
        - ``stale``: memories that still have such rows: another extractor made them, or they are in another language,
          not readable, or cut for an embedder that is not available
        - ``indexed``: vectors that were indexed; 0 if none is new, if no namespace has 10,000 vectors (fewer are
          compared one by one), or if another process is indexing, or keeps using the vectors, as a backup does;
          ``busy`` says so
        - ``saved``, ``unsaved``: saved models of large namespaces that were made, and those that were removed because
          all together took more than ``saved_mb``
        - ``compared``: memories compared with similar ones only now, because ``on_contradiction`` was ``ignore`` or
          their links could not be made
        - ``moves``: interrupted renames and copies of namespaces that are finished now
        - ``accesses``: memories whose counts of accesses this process wrote
        - ``unread``: memories that the extractor could not read; they keep their concepts
        - ``orphans``, ``hubs``, ``contradictions``: for you to look at: rows that belong to no memory, names that too
          many memories mention, and links of that type
        """
        return admin.maintain(self._here)

    @observed
    def backup(
        self,
        file: str | PathLike[str],
        *,
        force: bool = False,
        progress: Callable[[int], None] | None = None,
        noted: bool = True,
    ) -> BackupReport:
        """Write the whole store, as of one moment, into one file while others write (see semmem.transfer).

        ``force`` overwrites an existing file. ``progress`` is called with the number of rows written. ``noted=False``
        does not count it as the store's last backup, for a file that has yet to reach its place. Raises InvalidInput.
        """
        from semmem import transfer

        return transfer.backup(self.store, file, force=force, progress=progress, noted=noted)

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
        plan, used, wrong = fitted(self.recipe, (namespace,), rows, self._here.legs)
        return plan, used, wrong or outgrown(namespace, used)

    @observed
    def configure(self, /, *, namespace: str = "default", **changes: Any) -> Mapping[str, Any]:
        """Change the search settings of a namespace, in every process from its next recall on; return all of them.

        ``changes`` are the arguments of ``semmem.recipe``, or dotted names with their values; ``recipe`` is the name of
        a recipe. A recipe passed to ``recall`` overrides them. If one of them cannot be used, InvalidInput is raised
        and nothing is stored.
        """
        settings = changed(self.recipe, self.settings_of(namespace=namespace), changes, legs=self._here.legs)
        self.store.change_settings(namespace, {n: settings[n] for n in dotted(changes)}, ())
        return settings

    @observed
    def unset_settings(self, *names: str, namespace: str = "default") -> Mapping[str, Any]:
        """Remove search settings of a namespace, all without ``names``; return the others. Raises NotFound."""
        before = self.settings_of(namespace=namespace)
        settings = changed(self.recipe, before, {}, names or tuple(before))
        self.store.change_settings(namespace, {}, set(before) - set(settings))
        return settings


class StoreSemmem(Semmem):
    """A memory of which the store is open here."""

    def __init__(self, connection: Connection) -> None:
        self._opened = connection

    @property
    def settings(self) -> Settings:
        """The settings of this process."""
        return self._opened.settings

    @property
    def _here(self) -> Connection:
        return self._opened

    @property
    def recipe(self) -> Recipe:
        """The recipe of ``connect``."""
        return self._opened.recipe

    def _short_ids(self, ids: Collection[str], *, namespace: str) -> Mapping[str, str]:
        return self._opened.short_ids(ids, namespace=namespace)

    def close(self) -> None:
        """Release connections and threads. The embedded server keeps running for other processes."""
        self._opened.close()
