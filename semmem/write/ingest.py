"""The write pipeline: check, plan, split, extract, embed, store. Memory use is bounded, a batch is one transaction.

``remember``, ``remember_many``, ``update`` and imports all write batches. A batch is compared with the store in one
query and written, with the memories it replaces, in one transaction. Work after the commit never raises.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable, Collection, Generator, Iterable, Mapping, Sequence
from contextlib import closing
from copy import copy
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import Any

from semmem.concepts.likeness import LIKENESS
from semmem.concepts.rules import extraction_of, with_other_names
from semmem.embedders import Known
from semmem.embedders.binding import embed_texts, identity
from semmem.model.errors import BadItem, Conflict, EmbedderReplaced, InvalidInput, NotFound, SemmemError
from semmem.model.exchange import DerivationVersion, Extraction, Row, Stored, Written
from semmem.model.process.asker import note_written
from semmem.model.process.clock import step
from semmem.model.protocols import Embedder, Extractor
from semmem.model.store import Store
from semmem.model.types import IngestReport, Memory
from semmem.text.passages import MAX_CHARS, SPLITTER, content_key, embedded_text, other_names, read_text
from semmem.write.comparison import OnContradiction
from semmem.write.items import Draft, at_hand, check_namespace, drafted, given_id, giver, pieces_of, replaced_by
from semmem.write.likeness import Likeness, merged, merges, retells, said_anew
from semmem.write.plan import (
    REMEMBERING,
    Outcome,
    Plan,
    Policy,
    Refused,
    batches,
    check_batches,
    no_longer,
    planned,
    updating,
)
from semmem.write.preparation import (
    Batch,
    OnError,
    Preparation,
    Prepared,
    Readers,
    Reading,
    Refusals,
    check_vector,
    checked,
    screened_all,
)
from semmem.write.rebuild import prepare
from semmem.write.screening import Screening, check_mark, screened, warn_of
from semmem.write.versions import check_changes, overtaken, with_stored_vectors

__all__ = ["MAX_CHARS", "Ingest", "Outcome", "derivation_now"]

_PATIENCE_S = 5.0
"""How long an update tries again after somebody else was faster, with random pauses of up to ``_PAUSE_S``."""
_PAUSE_S = 0.2
_UNPREPARED = Prepared((), (), "")


def derivation_now(extractor: Extractor) -> DerivationVersion:
    """Return the derivation version of this process's writes."""
    version = getattr(extractor, "version", "")
    return DerivationVersion(SPLITTER, LIKENESS, extractor.name, version if isinstance(version, str) else "")


class Ingest:
    """Connects a store, an extractor and a function that returns the embedder, or the reason why there is none."""

    def __init__(
        self,
        store: Store,
        extractor: Extractor,
        embedder: Callable[[], Embedder | str],
        renewed: Callable[[], bool] = lambda: False,
        filled: Callable[[], None] = lambda: None,
        language: str = "english",
        screening: Screening = "off",
        on_contradiction: OnContradiction = "report",
        keep_versions: int | None = None,
        workers: int = 0,
        name_older: bool = True,
    ) -> None:
        self._store = store
        self._likeness = Likeness(store, on_contradiction)
        self.maintain = self._likeness.maintain
        self.catch_up = self._likeness.catch_up
        self.compare_anew = self._likeness.compare_anew
        self._extractor = extractor
        self._embedder = embedder
        self._renewed = renewed
        self._filled = filled
        self._language = language
        self._screening: Screening = screening
        self._name_older = name_older
        self.bulk: set[str] | None = None
        """Of a bulk the namespaces that its batches have written to, or may have."""
        ahead = store.graph is not None  # what writes to a file does not wait for a server
        self._preparation = Preparation(screening, extractor, self._likeness, ahead=ahead, workers=workers)
        self._readers: Readers | None = None
        self._batchwide: dict[str, Any] = {"made_by": derivation_now(extractor).text, "versions": keep_versions}

    def in_bulk(self) -> Ingest:
        """Return the same pipeline for a bulk; Store.end_bulk follows its last batch."""
        other = copy(self)
        other.bulk = set()
        return other

    def read_by(self, readers: Readers) -> Ingest:
        """Return the same pipeline, of which ``readers`` read the batches of lists, streams and imports."""
        other = copy(self)
        other._readers = readers
        return other

    def check_mark(self, mark: Mapping[str, Any]) -> None:
        """Screen the metadata that an import gives to every memory. Raises InvalidInput."""
        check_mark(mark, self._screening)

    def reading(self) -> Reading:
        """Return what reads a batch as this pipeline does, without its store, and without an embedder yet."""
        return Reading(self._screening, self._extractor, self._likeness.looks)

    def prepared(
        self, items: Iterable[Any], namespace: str, batch_size: int, policy: Policy = REMEMBERING
    ) -> Generator[Prepared, None, None]:
        """Yield the batches of a list or a stream as they are to be stored under ``policy``."""
        if self._readers is None:
            return self._preparation.coming(items, namespace, batch_size)
        work = batches(enumerate(items), batch_size)
        return self._readers.read(
            ((batch, self._stored_already(batch, namespace, policy)) for batch in work), namespace
        )

    def _stored_already(self, batch: Batch, namespace: str, policy: Policy) -> frozenset[int]:
        """Return the positions of the items that are stored as they are, so that nobody need read them."""
        names = {(where, id) for _, item in batch if (id := given_id(item)) and (where := _where(item, namespace))}
        if not names or not self._store.payload_hashes(names):
            return frozenset()
        drafts = screened_all(checked(batch, namespace), self._screening)
        plan = self.plan([draft for draft in drafts if isinstance(draft, Draft)], policy)
        return frozenset(draft.position for draft in plan.unchanged)

    def remember(self, item: Mapping[str, Any]) -> Memory:
        """Store one item and return the memory, or the memory stored under the same id with the same content."""
        draft = screened(drafted(0, item, "default"), self._screening)
        self._check_vector(draft, None)
        plan = self.plan([draft], REMEMBERING)
        for refused in plan.refused:
            raise Conflict(refused.reason, names=frozenset((refused.name,)))
        if plan.new:
            try:
                rows, _, written = self._written(plan.new, "abort")
            except Conflict as error:
                raise Conflict(no_longer(draft, REMEMBERING).reason, names=error.names) from error
            if draft.name in written.corroborated:
                first = draft.memory.namespace, written.corroborated[draft.name]
                if first in self._likeness.again({first: 1}, texts={first: draft.memory.text}):
                    return self._as_stored(replace(draft.memory, id=first[1]))
                return self.remember(item)  # the stored memory was changed or forgotten meanwhile
            memory = self._after(plan.new[0], rows, written)
            names_older = self._name_older and draft.name in written.new  # not where another writer was first
            older = self._likeness.older(rows, written, memory.contradicts) if names_older else ()
            return replace(memory, older=older) if older else memory
        return self._as_stored(draft.memory)

    def update(
        self,
        id: str,
        changes: Mapping[str, Any],
        *,
        namespace: str,
        expected_version: int | str | None,
        changed_by: str | None = None,
    ) -> Memory:
        """Change fields of one memory and return it; see Semmem.update."""
        check_changes(changes, expected_version)
        end = time.monotonic() + _PATIENCE_S
        while True:
            stored = self._store.stored_memories([(namespace, id)]).get((namespace, id))
            if stored is None:
                raise NotFound(f"There is no memory {id!r} in namespace {namespace!r}; nothing was changed.")
            before = stored.memory
            draft = drafted(0, {"text": before.text, **changes, "id": id, "namespace": namespace}, namespace)
            hidden = before.sensitive if changes.get("sensitive") is None else draft.memory.sensitive
            draft = screened(draft, self._screening, changes, hidden)  # first, for a conflict shows the text
            if expected_version is not None:
                if (conflict := overtaken(before, expected_version, changes, draft)) is not None:
                    raise Conflict(conflict, names=frozenset(((namespace, id),)))
                expected_version = before.tag  # a memory stored anew after this look may have the same version
            self._check_vector(draft, None)
            plan = self.plan([draft], updating(before, changes), stored={draft.name: stored})
            for refused in plan.refused:
                raise InvalidInput(refused.reason)
            if not plan.changed:
                return before
            try:
                changed = [replace(one, changed_by=changed_by) for one in plan.changed]
                rows, _, written = self._written(changed, "abort")
            except Conflict as error:  # somebody else changed it after the look at the store
                if time.monotonic() > end:
                    reason = f"Other writers keep changing {id!r}; call update again."
                    raise Conflict(reason, names=error.names) from error
                time.sleep(random.uniform(0, _PAUSE_S))
                continue
            return self._after(changed[0], rows, written)

    def _after(self, draft: Draft, rows: Sequence[Row], written: Written) -> Memory:
        """Do the work that follows the commit of one memory; return it as stored, with the ids it contradicts."""
        warn_of([draft])
        like = self._likeness.written(rows, written)
        memory = written.memories.get(draft.name) or self._as_stored(draft.memory)
        against = like.contradicts.get(draft.name, ())
        return replace(memory, contradicts=against) if against else memory

    def restore(self, draft: Draft) -> Memory:
        """Store a softly forgotten memory again; see semmem.write.versions.restored."""
        rows, _, written = self._written([draft], "abort")
        return self._after(draft, rows, written)

    def make_anew(self, drafts: Sequence[Draft]) -> None:
        """Make anew all that is derived of stored memories; those that others have changed meanwhile stay."""
        rows, _, written = self._written(drafts, "skip")
        self._likeness.written(rows, written)

    def _as_stored(self, memory: Memory) -> Memory:
        """Return a memory as the store has it, or as it was given where the store cannot be asked: it is committed."""
        try:
            return next(iter(self._store.get(memory.namespace, [memory.id])), memory)
        except SemmemError:
            return memory

    def remember_many(
        self,
        items: Iterable[Mapping[str, Any]],
        *,
        namespace: str,
        batch_size: int,
        on_error: OnError,
        progress: Callable[[IngestReport], None] | None,
    ) -> IngestReport:
        """Store a stream of items, one transaction a batch; ``progress`` gets the report after each batch."""
        check_batches(batch_size, on_error)
        check_namespace(namespace)
        if isinstance(items, Mapping | str | bytes) or not isinstance(items, Iterable):
            raise InvalidInput(f"remember_many takes a list or a stream of items, not one {type(items).__name__}.")
        started = time.monotonic()
        report = IngestReport()
        several = not isinstance(items, list | tuple) or len(items) > batch_size
        ingest = self.in_bulk() if several else self
        try:
            with closing(self.prepared(items, namespace, batch_size)) as coming:
                for batch in coming:
                    outcome = ingest.store_batch(batch, on_error)
                    report = report.with_batch(outcome, time.monotonic() - started)
                    if progress is not None:
                        progress(report)
        finally:
            left = self._store.end_bulk(ingest.bulk) if ingest.bulk else {}
        return replace(report, seconds=time.monotonic() - started, degraded={**report.degraded, **left})

    def batch(
        self,
        batch: Sequence[tuple[int, Any]],
        namespace: str,
        on_error: OnError,
        policy: Policy = REMEMBERING,
        earlier_names: Collection[tuple[str, str]] = (),
    ) -> Outcome:
        """Write a batch of (position, item) in one transaction: new items, and those that may replace a memory."""
        return self.store_batch(self._preparation.batch(batch, namespace), on_error, policy, earlier_names)

    def store_batch(
        self,
        batch: Prepared,
        on_error: OnError,
        policy: Policy = REMEMBERING,
        earlier_names: Collection[tuple[str, str]] = (),
    ) -> Outcome:
        """Write a batch that is prepared; see ``batch``."""
        if self.bulk is not None:  # now, for the batch may raise after its commit
            self.bulk.update(one.memory.namespace for one in batch.drafts if isinstance(one, Draft))
        refusals = Refusals(on_error)
        refuse = refusals.add
        drafts = refusals.accepted(batch.drafts, self._check_vector)
        drafts, again = merged(drafts) if self._likeness.counts else (drafts, {})
        plan = self.plan(drafts, policy, earlier_names)
        for refused in sorted(plan.refused, key=lambda one: one.position):
            refuse(refused)
        by_name = {draft.name: draft for draft in (*plan.new, *plan.changed)}

        def unusable(draft: Draft, reason: str) -> None:
            for index in (
                draft.position,
                *plan.repeats.pop(draft.name, ()),
                *(one.position for one in again.pop(draft.name, ())),
            ):
                refuse(Refused(index, draft.name if draft.named else ("", ""), reason, BadItem))

        try:
            rows, degraded, written = self._written(
                list(by_name.values()), on_error, batch, unusable if on_error == "skip" else None
            )
        except Conflict as error:
            conflicting = sorted(
                (by_name[name] for name in error.names if name in by_name), key=lambda one: one.position
            )
            if not conflicting:
                raise
            refused = no_longer(conflicting[0], policy)
            raise Conflict(f"Item {refused.position}: {refused.reason}", names=error.names) from error
        note_written(by_name)
        like = self._likeness.written(rows, written, batch.workers)
        degraded |= like.degraded
        sent_again = {draft.name for draft in plan.unchanged}  # repeated requests whose id an interface made
        originals = {name: (name[0], id) for name, id in written.corroborated.items()}
        repeats = [(one, originals.get(name, name)) for name, some in again.items() for one in some]
        repeats += [(by_name[name], first) for name, first in originals.items()]
        anew = said_anew(repeats, like.contradicts, {draft.name: draft.position for draft in drafts})
        counts = {name: sum(one not in anew for one in some) for name, some in again.items() if name not in sent_again}
        firsts = {name: first for name, (_, first) in originals.items() if by_name[name] not in anew}
        corroborated, late = self._likeness.counted(counts, firsts, by_name)
        anew += [one for name in late for one in (by_name[name], *again.get(name, ()))]
        warn_of(by_name.values())
        for name in written.conflicts:
            refused = no_longer(by_name[name], policy)
            for index in (refused.position, *plan.repeats.pop(name, ())):
                refuse(replace(refused, position=index))
        rejected = sorted(refusals.rejected, key=lambda row: row.position)
        unchanged = len(plan.unchanged) + len(written.unchanged) + sum(map(len, plan.repeats.values())) + corroborated
        unchanged += sum(len(some) for name, some in again.items() if name in sent_again)
        names = frozenset(draft.name for draft in drafts)
        more = (tuple(rejected), degraded, names, frozenset(originals.values()), corroborated, like.count)
        outcome = Outcome(len(written.new), unchanged, len(written.replaced), *more)
        for index in sorted({draft.position for draft in anew}):
            again_item = batch.items_at(index)
            outcome = outcome.with_more(self.batch(again_item, batch.namespace, on_error, policy, earlier_names))
        return outcome

    def plan(
        self,
        drafts: Sequence[Draft],
        policy: Policy,
        earlier_names: Collection[tuple[str, str]] = (),
        stored: Mapping[tuple[str, str], Stored] | None = None,
    ) -> Plan:
        """Compare drafts with the store: one query, and another one where vectors are given or may be kept."""
        named = {draft.name: draft for draft in drafts if draft.named and stored is None}
        stored = stored or {}
        if named and policy.partial:
            stored = self._store.stored_memories(named)
        elif named:  # compares hashes of the content only
            payloads = self._store.payload_hashes(named)
            stored = {name: Stored(named[name].memory, payload) for name, payload in payloads.items()}
            hidden = [name for name in stored if named[name].memory.sensitive]  # their hashes are random
            others = [name for name in stored if name not in hidden and stored[name].payload != named[name].payload]
            if hidden or others:  # a refusal names the fields that differ
                stored |= self._store.stored_memories([*hidden, *others])
        with_vector = {draft.name for draft in drafts if draft.vector is not None and draft.name in stored}
        vector_store = self._store.vectors
        vectors = vector_store.stored_vectors(with_vector) if with_vector and vector_store is not None else {}
        plan = planned(drafts, stored, vectors, policy=policy, now=datetime.now(UTC), earlier_names=earlier_names)
        return self._with_stored_vectors(plan) if plan.changed else plan

    def _with_stored_vectors(self, plan: Plan) -> Plan:
        """Look up the vectors of changed memories that may stay."""
        vector_store = self._store.vectors
        recorded = None if vector_store is None else vector_store.embedder()
        bare = [draft.name for draft in plan.changed if draft.vector is None]
        if vector_store is None or recorded is None or not bare:
            return plan
        return with_stored_vectors(plan, recorded, vector_store.stored_vectors(bare))

    def _check_vector(self, draft: Draft, recorded: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
        """Return what embedder fills the store; see semmem.write.preparation.check_vector."""
        return recorded if draft.vector is None else check_vector(self._store, draft, recorded)

    def _written(
        self,
        drafts: Sequence[Draft],
        on_conflict: str,
        batch: Prepared = _UNPREPARED,
        unusable: Callable[[Draft, str], None] | None = None,
    ) -> tuple[list[Row], dict[str, str], Written]:
        """Store what ``_rows`` makes of ``drafts``; repeat it if this process has rebuilt the vectors in between."""
        store = partial(self._store.write, on_conflict=on_conflict, bulk=self.bulk is not None)
        rows, degraded = self._rows(drafts, batch, unusable)
        try:
            with step("store"):
                written = store(rows)
        except EmbedderReplaced:
            if not self._renewed():
                raise
            left = {row.name for row in rows}
            drafts = [replace(draft, stored_vector=None) for draft in drafts if draft.name in left]
            rows, degraded = self._rows(drafts, batch, unusable)
            with step("store"):
                written = store(rows)
        if written.row_ids and any(r.embedder is not None and r.embedder["fingerprint"] != "given" for r in rows):
            self._filled()
        return rows, {**degraded, **written.degraded}, written

    def _rows(
        self, drafts: Sequence[Draft], batch: Prepared, unusable: Callable[[Draft, str], None] | None = None
    ) -> tuple[list[Row], dict[str, str]]:
        """Split, extract and embed; return the rows, and by leg why something is missing.

        A draft of which the embedder makes an unusable vector is given to ``unusable``, if there is one, and no row.
        """
        embedder, reason = self._embedder_for([draft for draft in drafts if not draft.memory.sensitive])
        if embedder is not None and batch.vectors:
            embedder = Known(embedder, batch.vectors)
        pieces = pieces_of(drafts, embedder)
        indexed = [i for i, piece in enumerate(pieces) if piece[3] == 0]
        memories = [pieces[i][1] for i in indexed]
        with step("extract"):
            prepare(self._extractor, [one for one in memories if _read(one) not in batch.extractions])
            extractions = {i: self._extraction(pieces[i][1], batch) for i in indexed}
        vectors = {i: pair for i in indexed if (pair := at_hand(pieces[i][0])) is not None}
        bare = [i for i in indexed if i not in vectors]
        left_out: dict[tuple[str, str], tuple[Draft, str]] = {}
        if embedder is not None and bare:
            texts = [embedded_text(pieces[i][1]) for i in bare]
            by = identity(embedder)
            several = len({draft.position for draft in drafts}) > 1
            wrong: dict[int, str] | None = None if unusable is None else {}
            made_now = embed_texts(embedder, texts, lambda place: _name_of(*pieces[bare[place]][::2], several), wrong)
            vectors |= {i: (vector, by) for i, vector in zip(bare, made_now, strict=True)}
            for place, fault in (wrong or {}).items():
                draft = pieces[bare[place]][0]
                left_out[draft.name] = (draft, fault)
        if unusable is not None:
            for draft, fault in left_out.values():
                unusable(draft, fault)
        likeness = self._likeness.keys(drafts, batch.keys)
        rows = []
        for i, (draft, memory, part, parts_) in enumerate(pieces):
            if draft.name in left_out:
                continue
            extraction = extractions.get(i)
            content = os.urandom(16) if memory.sensitive else content_key(memory.text)
            vector, made_with = vectors.get(i, (None, None))
            before = replaced_by(draft) if part == 0 else None
            made_of = (extraction, vector, content, draft.payload, made_with, before, self._language)
            alike = likeness.get(draft.name, ()) if part == 0 else ()
            single = part == 0 and draft.replaces is None and merges(draft) and self._likeness.counts
            change = (draft.changed_by, draft.restores)
            again = (part == 0 and retells(draft), draft.text_at if part == 0 else None)
            rows.append(Row(memory, part, parts_, *made_of, *change, alike, single, *again, **self._batchwide))
        missing = reason and any(r.extraction is not None and r.vector is None for r in rows)
        return rows, {"dense": reason} if missing and reason else {}

    def _extraction(self, memory: Memory, batch: Prepared) -> Extraction:
        language: str = getattr(self._extractor, "language", "english")
        at_hand = batch.extractions.get(_read(memory))
        if at_hand is None:
            return extraction_of(self._extractor, memory, language)
        return with_other_names(at_hand, other_names(memory.metadata), language)

    def _embedder_for(self, drafts: Sequence[Draft]) -> tuple[Embedder | None, str | None]:
        """Return the embedder for texts that have no vector, or the reason why there is none."""
        vector = next((draft.vector for draft in drafts if draft.vector is not None), None)
        if all(at_hand(draft) is not None for draft in drafts):
            return None, None
        if vector is not None:  # all vectors of a batch have one embedder
            return None, f"This store holds given vectors ({giver(vector)['name']}); give one with every memory."
        embedder = self._embedder()
        if isinstance(embedder, str):
            return None, embedder
        return embedder, None


def _read(memory: Memory) -> tuple[str, str | None]:
    """Return what an extractor is given of a memory."""
    return read_text(memory), memory.title


def _where(item: Mapping[str, Any], namespace: str) -> str | None:
    """Return the namespace in which an item is to be stored; None where it names something else."""
    where = item.get("namespace") or namespace
    return where if isinstance(where, str) else None


def _name_of(draft: Draft, part: int, several: bool) -> str:
    """Return the name of a text for an error message: its position among several, its id if it was given, its part."""
    named = f"memory {draft.memory.id!r}" if draft.named else "the text"
    if several or draft.position:
        named = f"item {draft.position} (id {draft.memory.id!r})" if draft.named else f"item {draft.position}"
    return f"part {part} of {named}" if part else named
