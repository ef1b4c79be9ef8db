"""Keep the graph independent of the order of writing: when a name becomes known, re-extract the older mentions.

The concepts found in a memory depend on its text and on the names that the memories of its namespace are about. When
such a name comes or goes, the memories that mention it are extracted again: some by the writer, up to a bound, the rest
by ``maintain``. Writers do not wait for each other. After its commit each one looks at older memories for the names it
brought, and at its own memories for names that came meanwhile; of two writers, the last to commit sees the other. The
names are noted in the transaction that brings them, so that after a crash ``maintain`` finds them.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from importlib.metadata import version
from typing import Any

from semmem.concepts.mentions import AT_ONCE, Ahead, Knowledge, Mentions
from semmem.concepts.rules import candidates_and_subjects, corrected, subjects_of, texts_of, with_other_names
from semmem.model.exchange import Corrections, Extraction, Row, Written
from semmem.model.protocols import Extractor
from semmem.model.reports import Rebuilt
from semmem.model.store import GraphStore, Store
from semmem.model.types import Memory
from semmem.text.passages import other_names, read_text

__all__ = ["Knowledge", "Upkeep"]

_NAMES_AT_ONCE = 500
_RENEWED_AT_ONCE = 1_000
"""Memories that are extracted again at a time. Each time leaves a segment; four of these are joined, key by key."""
_ROUNDS = 8
_FEW = 16
_LOG = logging.getLogger(__name__)
_TOO_LATE = timedelta(hours=12)
"""An interrupted call older than this is not continued, because names that came and went are noted for a day."""


class Upkeep:
    """Extracts memories with the known names of their namespace, and extracts them again when these change."""

    def __init__(self, store: Store, extractor: Extractor, language: str | None = None) -> None:
        self._store = store
        self._extractor = self.extractor = extractor
        self._graph = store.graph
        self._language: str = getattr(extractor, "language", "english")
        self._stems = self.stems = language or self._language
        self._mentions = Mentions(store, extractor)

    # ------------------------------------------------------------------ reading memories

    def knowledge(
        self,
        memories: Iterable[Memory],
        *,
        new: bool = True,
        unread: list[Memory] | None = None,
        ahead: Ahead | None = None,
    ) -> Knowledge:
        """Return the known names for extracting ``memories``, in one round trip. ``new``: they are not stored yet.

        Knowledge looked up ``ahead`` for these texts is not asked for again. Memories that the extractor cannot read
        are added to ``unread`` and left out; where ``unread`` is None, the extractor's error is raised.
        """
        if self._graph is None:  # without a graph, extraction depends on the text alone
            spaces = {memory.namespace for memory in memories}
            return Knowledge({}, {}, {}, dict.fromkeys(spaces, frozenset()), {n: Corrections() for n in spaces})
        memories = list(memories)
        if ahead is None or ahead.texts != texts_of(memories):
            candidates, about = candidates_and_subjects(self._extractor, memories, self._language, unread)
            if not candidates:
                return Knowledge({}, {}, {}, {}, {})
            ahead = Ahead(texts_of(memories), candidates, about, self._graph.snapshot_with_subjects(candidates))
        moment, corrections, subjects_of = ahead.snapshot
        known, arrivals, own = {}, {}, {}
        for namespace, mentioned in ahead.candidates.items():
            into, stored = corrections[namespace], subjects_of[namespace]
            own_keys = {into.key(at) for at in ahead.own.get(namespace, ())} if new else set()
            keys = {*stored, *own_keys}
            every = keys.intersection(mentioned)
            known[namespace] = {at for at in mentioned if into.key(at) in keys} if into.into else every
            own[namespace] = own_keys
            arrivals[namespace] = own_keys.difference(stored)
        return Knowledge(moment, known, own, arrivals, corrections)

    def payloads(
        self, memories: Mapping[tuple[str, str], Memory]
    ) -> tuple[Mapping[tuple[str, str], bytes], Ahead | None]:
        """Return ``Store.payload_hashes`` for the names, and the knowledge that extracting their texts will need.

        For a few memories this takes one round trip; extracting what may be stored already is cheap with rules alone.
        """
        indexed = [memory for memory in memories.values() if not memory.sensitive]
        rules = getattr(self._extractor, "name", None) == "rules"
        if self._graph is None or not rules or not indexed or len(memories) > _FEW:
            return self._store.payload_hashes(memories), None
        candidates, own = candidates_and_subjects(self._extractor, indexed, self._language)
        payloads, snapshot = self._graph.payloads_and_subjects(memories, candidates)
        ahead = Ahead(texts_of(indexed), candidates, own, snapshot)
        return self._store.payload_hashes(memories) if payloads is None else payloads, ahead

    @staticmethod
    def since(knowledge: Knowledge) -> dict[str, tuple[int, set[int]]]:
        """Return each namespace's change number, and the names used as known there that the memories do not bring."""
        by_namespace = {}
        for namespace, moment in knowledge.moment.items():
            into = knowledge.corrections[namespace]
            used = {into.key(at) for at in knowledge.known[namespace]} - set(knowledge.arrivals[namespace])
            by_namespace[namespace] = moment, used
        return by_namespace

    def prepare(self, memories: Collection[Memory]) -> None:
        """Let an extractor that asks a model do so once for all ``memories``."""
        ask = getattr(self._extractor, "prepare", None)
        if ask is not None and len(memories) > 1:
            ask([(read_text(memory), memory.title) for memory in memories])

    def extraction(self, memory: Memory, knowledge: Knowledge) -> Extraction:
        """Extract one memory with the known names of its namespace."""
        known = knowledge.known.get(memory.namespace, ())
        extraction = self._extractor.extract(read_text(memory), memory.title, known)
        extraction = with_other_names(extraction, other_names(memory.metadata), self._language)
        return corrected(extraction, knowledge.corrections[memory.namespace])

    def arrivals(self, memory: Memory, extraction: Extraction, knowledge: Knowledge) -> tuple[int, ...]:
        """Return the keys of the names that a new memory is about and that the store did not have."""
        came = knowledge.arrivals[memory.namespace]
        if not came or came.isdisjoint(extraction.keys):
            return ()
        return tuple(
            at for at, about in zip(extraction.keys, extraction.subjects, strict=True) if about > 0 and at in came
        )

    # ------------------------------------------------------------------ after a write

    def written(self, rows: Sequence[Row], written: Written, knowledge: Knowledge) -> dict[str, str]:
        """Re-extract older memories for the names of ``rows``, and ``rows`` for names that came meanwhile.

        The rows are committed, so nothing is raised. Work that failed is noted for ``maintain``, and the reason is
        returned by the name of the leg that misses it.
        """
        if (graph := self._graph) is None:
            return {}
        try:
            self._reach(graph, rows, written, knowledge)
            for namespace in sorted({namespace for namespace, _ in written.replaced}):
                self._propagate(graph, namespace, bounded=True)  # the write has checked the language
        except Exception as error:  # noqa: BLE001  # an extractor or a store may raise anything
            return {"graph": self._note_rest(graph, written, knowledge, error)}
        return {}

    def _note_rest(self, graph: GraphStore, written: Written, knowledge: Knowledge, error: Exception) -> str:
        """Note the remaining work for ``maintain``; return a sentence that says what remains and why."""
        reason = " ".join(str(error).split()) or type(error).__name__
        try:
            for namespace in sorted({namespace for namespace, _ in written.new | written.replaced}):
                if changed := graph.changed_subjects(namespace, knowledge.moment[namespace]):
                    graph.note_changed_subjects(namespace, changed)
        except Exception:  # noqa: BLE001  # the store cannot be reached; the names are noted with the rows
            pass
        _LOG.info("Left to maintain: %s", error)
        return f"Names have not reached other memories yet; `semmem maintain` does it. {reason}"

    def _reach(self, graph: GraphStore, rows: Sequence[Row], written: Written, knowledge: Knowledge) -> None:
        ours: dict[str, dict[int, Row]] = {}
        for row in rows:
            ord = written.ords.get((row.memory.namespace, row.memory.parent_id or row.memory.id, row.part))
            if ord is not None and row.extraction is not None:
                ours.setdefault(row.memory.namespace, {})[ord] = row
        for namespace, stored in ours.items():
            self._catch_up(graph, namespace, stored, knowledge, written)

    def _catch_up(
        self, graph: GraphStore, namespace: str, ours: Mapping[int, Row], knowledge: Knowledge, written: Written
    ) -> None:
        own, into = knowledge.own[namespace], knowledge.corrections[namespace]
        came = {at for row in ours.values() for at in row.arrivals}
        moment, used = self.since(knowledge)[namespace]
        looked = written.meanwhile.get(namespace)
        noted, left_of = looked or graph.changed_and_known_subjects(namespace, moment, used)
        changed = noted - came
        changed |= set(knowledge.arrivals[namespace]) - came  # brought by refused items: no memory is about these
        changed |= used - left_of  # the namespace was emptied meanwhile, so no note is left
        again = set()
        if changed:
            forms = into.forms(changed)
            again = {
                ord
                for ord, row in ours.items()
                if row.extraction is not None and self._mentions.named(row.memory, row.extraction, forms)
            }
            lost = changed & set(own)  # used as known, but forgotten meanwhile: these rows bring them now
            if lost:
                graph.note_changed_subjects(namespace, lost)
                self._propagate(graph, namespace, bounded=True)
        if came:
            names = {
                at: name
                for row in ours.values()
                if row.arrivals and row.extraction is not None
                for at, name in zip(row.extraction.keys, row.extraction.names, strict=True)
                if at in came
            }
            sure, suspects, late = self._mentions.mentioning(graph, namespace, names, came, into, bounded=True)
            again |= self._mentions.verified(
                namespace, sure - ours.keys(), suspects - ours.keys() - sure, came, into, late
            )
        _, unread = self._renew(graph, namespace, sorted(again))
        if (note := written.changes.get(namespace)) is not None:
            graph.mark_propagated(namespace, [note], came if unread else late if came else ())

    def forgotten(self, namespace: str) -> None:
        """Re-extract memories that mention names whose memories were forgotten, up to a bound.

        Nothing is raised, because the memories are forgotten already: failed work is noted for ``maintain``.
        """
        if self._graph is None:
            return
        try:
            if self._graph.unpropagated(namespace, all=False) and self._speaks(namespace):
                self._propagate(self._graph, namespace, bounded=True)
        except Exception as error:  # noqa: BLE001  # an extractor may raise anything
            _LOG.info("Left to maintain: %s", error)

    def corrected(self, namespace: str) -> None:
        """Re-extract all memories concerned by a correction made by hand."""
        if self._graph is not None:
            self._propagate(self._graph, namespace, bounded=False)

    def maintain(self) -> dict[str, int]:
        """Do the work that writers have left; return the numbers of changed and of unreadable memories, where not 0."""
        if (graph := self._graph) is None:
            return {"renewed": 0}
        waiting = graph.unpropagated_namespaces()
        spoken = self._store.languages() if waiting else {}
        ours = [namespace for namespace in waiting if spoken.get(namespace, self._stems) == self._stems]
        counts = [self._propagate(graph, namespace, bounded=False) for namespace in ours]
        unread, foreign = sum(failed for _, failed in counts), len(waiting) - len(ours)
        more = {"unread": unread, "other_language": foreign}
        return {"renewed": sum(changed for changed, _ in counts), **{name: n for name, n in more.items() if n}}

    def _speaks(self, namespace: str) -> bool:
        """Return whether a namespace has this process's language; another process may not re-extract its memories."""
        return self._store.languages().get(namespace, self._stems) == self._stems

    def _propagate(self, graph: GraphStore, namespace: str, *, bounded: bool) -> tuple[int, int]:
        """Re-extract the memories that mention waiting names; return how many changed, and how many cannot be read.

        A memory that cannot be read keeps its concepts, and its names keep waiting, in case the extractor works next
        time.
        """
        changed = failed = 0
        for _ in range(1 if bounded else _ROUNDS):
            notes = graph.unpropagated(namespace, all=not bounded)
            if not notes:
                break
            keys = {at for _, waiting in notes for at in waiting}
            into = graph.snapshot([namespace])[1][namespace]
            names = graph.names([namespace], keys)
            again, unsure, remaining = set[int](), set[int](), set[int]()
            some = sorted(keys)
            for start in range(0, len(some), _NAMES_AT_ONCE):
                chunk = set(some[start : start + _NAMES_AT_ONCE])
                sure, suspects, late = self._mentions.mentioning(graph, namespace, names, chunk, into, bounded=bounded)
                remaining |= late
                if bounded:
                    again |= self._mentions.verified(namespace, sure, suspects - sure, chunk, into, remaining)
                else:
                    again, unsure = again | sure, unsure | suspects
            if not bounded:
                again = self._mentions.outdated(graph, namespace, again, unsure, names, into)
            renewed, unread = self._renew(graph, namespace, sorted(again))
            changed += renewed
            failed += unread
            graph.mark_propagated(namespace, [number for number, _ in notes], keys if unread else remaining)
            if unread:
                break
        return changed, failed

    # ------------------------------------------------------------------ reading them again

    def _renew(self, graph: GraphStore, namespace: str, ords: Sequence[int]) -> tuple[int, int]:
        """Re-extract memories until no name changed meanwhile; return how many changed, and how many cannot be read."""
        changed = failed = 0
        for start in range(0, len(ords), _RENEWED_AT_ONCE):
            todo = list(ords[start : start + _RENEWED_AT_ONCE])
            for _ in range(_ROUNDS):
                memories = self._store.indexed_memories([namespace], todo)
                self.prepare(memories.values())
                unread: list[Memory] = []
                knowledge = self.knowledge(memories.values(), new=False, unread=unread)
                extractions = self.extractions(memories, knowledge, unread)
                failed += len(memories) - len(extractions)
                if not extractions:
                    break
                changed += self._store.reindex(namespace, extractions, language=self._stems)
                meanwhile = graph.changed_subjects(namespace, knowledge.moment[namespace])
                forms = knowledge.corrections[namespace].forms(meanwhile)
                todo = [ord for ord, e in extractions if meanwhile and self._mentions.named(memories[ord], e, forms)]
                if not todo:
                    break
            else:
                graph.note_changed_subjects(namespace, meanwhile)
        return changed, failed

    def extractions(
        self, memories: Mapping[int, Memory], knowledge: Knowledge, unread: Sequence[Memory]
    ) -> list[tuple[int, Extraction]]:
        """Return the extraction of each memory by ord, without the memories that the extractor cannot read."""
        pairs = []
        for ord, memory in sorted(memories.items()):
            if memory in unread:
                continue
            try:
                pairs.append((ord, self.extraction(memory, knowledge)))
            except Exception as error:  # noqa: BLE001  # an extractor may raise anything
                _LOG.info("%s cannot be read again: %s", memory.id, error)
        return pairs

    # ------------------------------------------------------------------ everything

    def reextract(self, progress: Callable[[int], None] | None = None) -> Rebuilt:
        """Re-extract every memory, as after a change of the extractor, while others read and write.

        An interrupted call is continued by the next one with the same extractor; ``progress`` includes the memories of
        the interrupted call. Raises Conflict while another process rebuilds.
        """
        if (graph := self._graph) is None:
            return self._reread(progress)
        with graph.rebuilding():
            place, dropped = self._place(graph)
            skipped = count = int(place.get("read", 0))
            changed = 0
            for namespace in self._store.namespaces():
                before, after = place.get("namespace", ""), 0
                if namespace < before:
                    continue
                self._store.set_language(namespace, self._stems, done=False)
                moments, corrections = graph.snapshot([namespace])
                moment = moments[namespace]
                if namespace == before:  # names that came and went since that call began are still to be handled
                    moment, after = place["moment"], place["ord"]
                knowledge = Knowledge({namespace: moment}, self._about(namespace, corrections), {}, {}, corrections)
                place["moment"], place["namespace"] = moment, namespace
                for batch in self._batches(namespace, after):
                    changed += self._reindexed(namespace, batch, knowledge)
                    count += len(batch)
                    graph.note_reextraction(place | {"ord": batch[-1][0], "read": count})
                    if progress is not None:
                        progress(count)
                graph.note_changed_subjects(namespace, graph.changed_subjects(namespace, moment))
                self._store.set_language(namespace, self._stems, done=True)
                changed += self._propagate(graph, namespace, bounded=False)[0]
            graph.note_reextraction(None)
            return Rebuilt(
                dropped=dropped, read=count - skipped, skipped=skipped, changed=changed + self.maintain()["renewed"]
            )

    def _reread(self, progress: Callable[[int], None] | None) -> Rebuilt:
        """Re-extract every memory of a store without a graph, where no memory depends on another."""
        count = changed = 0
        for namespace in self._store.namespaces():
            self._store.set_language(namespace, self._stems, done=False)
            for batch in self._batches(namespace, 0):
                knowledge = self.knowledge([memory for _, memory in batch], new=False)
                changed += self._reindexed(namespace, batch, knowledge)
                count += len(batch)
                if progress is not None:
                    progress(count)
            self._store.set_language(namespace, self._stems, done=True)
        return Rebuilt(read=count, changed=changed)

    def _reindexed(self, namespace: str, batch: Sequence[tuple[int, Memory]], knowledge: Knowledge) -> int:
        return self._store.reindex(namespace, [(ord, self.extraction(memory, knowledge)) for ord, memory in batch])

    def _place(self, graph: GraphStore) -> tuple[dict[str, Any], str | None]:
        """Return where an interrupted call with this extractor stopped, and whose interrupted call is discarded."""
        now = datetime.now(UTC)
        who = {name: str(getattr(self._extractor, name, "")) for name in ("name", "language", "version", "model")}
        ours = {**who, "database": graph.database_id(), "semmem": version("semmem")}
        place = graph.reextraction()
        if place is None:
            return {"by": ours, "begun": now.isoformat()}, None
        if place["by"] == ours and now - datetime.fromisoformat(place["begun"]) < _TOO_LATE:
            return dict(place), None
        return {"by": ours, "begun": now.isoformat()}, str(place["by"]["name"])

    def _about(self, namespace: str, corrections: Mapping[str, Corrections]) -> dict[str, Collection[int]]:
        """Return the names that any memory of a namespace is about."""
        into = corrections[namespace]
        about: set[int] = set()
        for batch in self._batches(namespace, 0):
            for _, memory in batch:
                about.update(into.key(at) for at in subjects_of(self._extractor, memory, self._language))
        return {namespace: into.forms(about)}

    def _batches(self, namespace: str, after: int) -> Iterable[Sequence[tuple[int, Memory]]]:
        while rows := self._store.indexed_after(namespace, after, AT_ONCE):
            yield rows
            after = rows[-1][0]
