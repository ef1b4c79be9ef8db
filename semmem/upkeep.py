"""Keeping the graph the same whatever the order of writing: the names that are known reach older memories too.

What is found in a memory depends on its text and on the names that any memory of its namespace is about. So when such
a name comes or goes, the memories that mention it are read again: a bounded number by the writer, the rest by
``maintain``.

Writers do not wait for each other. Each one commits and then looks: at older memories for the names it brought, and at
the names that came meanwhile for its own memories. Of two that run at once, the one that commits last sees the other.
What was brought is noted in the same transaction, so that after a crash ``maintain`` looks instead.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from importlib.metadata import version
from typing import Any

from semmem.extractors.corrections import corrected
from semmem.extractors.other_subjects import keys_of_other_names, with_other_names
from semmem.extractors.spelling import accented, required, spelling
from semmem.protocols import Corrections, Extractor, Row, Store, Written
from semmem.searched import other_names, searched_text
from semmem.types import Extraction, Memory, Rebuilt

__all__ = ["MOST_RENEWED", "Knowledge", "Upkeep"]

MOST_RENEWED = 200
"""Memories that one write reads again at most; what is left waits for maintain."""
_MOST_SUSPECTS = 400
_RARE = 30
"""A name that more memories may mention is left to maintain: the walk does not use it anyway."""
_AT_ONCE = 256
_NAMES_AT_ONCE = 500
_ROUNDS = 8
_PLACE = "reextract"
"""Under which a store notes how far reading everything again has come."""
_TOO_LATE = timedelta(hours=12)
"""After which an interrupted call is not gone on with: what came and went meanwhile is noted for a day."""
_WITH_BIGRAMS = frozenset(("rules", "precomputed", "llm"))


@dataclass(frozen=True, slots=True)
class Knowledge:
    """What some memories were read with: the ``known`` names and corrections of each namespace, as of a ``moment``.

    ``own`` are the names the memories are about themselves, ``arrivals`` those of them that the store did not have.
    """

    moment: str
    known: Mapping[str, Collection[int]]
    own: Mapping[str, Collection[int]]
    arrivals: Mapping[str, Collection[int]]
    corrections: Mapping[str, Corrections]


class Upkeep:
    """Reads memories with what their namespace knows, and reads them again when that changes."""

    def __init__(self, store: Store, extractor: Extractor) -> None:
        self._store = store
        self._extractor = self.extractor = extractor
        self._graph = "graph" in store.capabilities
        self._language: str = getattr(extractor, "language", "english")

    # ------------------------------------------------------------------ reading memories

    def knowledge(self, memories: Iterable[Memory], *, new: bool = True) -> Knowledge:
        """Return what ``memories`` are to be read with; two round trips. ``new``: they are not in the store yet."""
        if not self._graph:  # what is found in a memory then depends on its text alone
            spaces = {memory.namespace for memory in memories}
            return Knowledge("", {}, {}, dict.fromkeys(spaces, ()), {n: Corrections() for n in spaces})
        wanted: dict[str, set[int]] = {}
        own: dict[str, set[int]] = {}
        for memory in memories:
            wanted.setdefault(memory.namespace, set()).update(
                self._extractor.candidates(_searched(memory), memory.title)
            )
            own.setdefault(memory.namespace, set()).update(self._subjects(memory))
        if not wanted:
            return Knowledge("", {}, {}, {}, {})
        moment, corrections = self._store.moment(wanted)
        known, arrivals = {}, {}
        for namespace, mentioned in wanted.items():
            into = corrections[namespace]
            mentioned |= own.get(namespace, set())
            stored = self._store.known_subjects({namespace: {into.key(at) for at in mentioned}})[namespace]
            brought = {into.key(at) for at in own.get(namespace, ())} if new else set()
            there = stored | brought
            known[namespace] = {at for at in mentioned if into.key(at) in there}
            own[namespace] = brought
            arrivals[namespace] = brought - stored
        return Knowledge(moment, known, own, arrivals, corrections)

    def extraction(self, memory: Memory, knowledge: Knowledge) -> Extraction:
        """Return what is found in one memory with what its namespace knows."""
        known = knowledge.known.get(memory.namespace, ())
        found = self._extractor.extract(_searched(memory), memory.title, known)
        found = with_other_names(found, other_names(memory.metadata), self._language)
        return corrected(found, knowledge.corrections[memory.namespace])

    def arrivals(self, memory: Memory, found: Extraction, knowledge: Knowledge) -> tuple[int, ...]:
        """Return the keys of the names that a new memory is about and the store did not have."""
        came = knowledge.arrivals[memory.namespace]
        if not came:
            return ()
        return tuple(at for at, about in zip(found.keys, found.subjects, strict=True) if about > 0 and at in came)

    # ------------------------------------------------------------------ after a write

    def written(self, rows: Sequence[Row], written: Written, knowledge: Knowledge) -> None:
        """Let the names that ``rows`` brought reach older memories, and those that came meanwhile reach ``rows``."""
        if not self._graph:
            return
        ours: dict[str, dict[int, Row]] = {}
        for row in rows:
            ord = written.ords.get((row.memory.namespace, row.memory.parent_id or row.memory.id, row.part))
            if ord is not None and row.extraction is not None:
                ours.setdefault(row.memory.namespace, {})[ord] = row
        for namespace, stored in ours.items():
            self._catch_up(namespace, stored, knowledge, written.changes.get(namespace))

    def _catch_up(self, namespace: str, ours: Mapping[int, Row], knowledge: Knowledge, note: int | None) -> None:
        own, into = knowledge.own[namespace], knowledge.corrections[namespace]
        came = {at for row in ours.values() for at in row.arrivals}
        changed = self._store.alias_changes(namespace, knowledge.moment) - came
        changed |= set(knowledge.arrivals[namespace]) - came  # of items that were refused: nobody is about these
        used = {into.key(at) for at in knowledge.known[namespace]} - set(knowledge.arrivals[namespace])
        if used:  # of a namespace that was emptied meanwhile there is no note left
            changed |= used - self._store.known_subjects({namespace: used})[namespace]
        again = set()
        if changed:
            forms = into.forms(changed)
            again = {
                ord
                for ord, row in ours.items()
                if row.extraction is not None and self._mentions(row.memory, row.extraction, forms)
            }
            lost = changed & set(own)  # taken for known, but forgotten meanwhile: now they come with us
            if lost:
                self._store.note_aliases(namespace, lost)
                self._settle(namespace, bounded=True)
        if came:
            names = {
                at: name
                for row in ours.values()
                if row.arrivals and row.extraction is not None
                for at, name in zip(row.extraction.keys, row.extraction.names, strict=True)
                if at in came
            }
            sure, suspects, left = self._mentioning(namespace, names, came, into, bounded=True)
            again |= self._verified(namespace, sure - ours.keys(), suspects - ours.keys() - sure, came, into, left)
        self._renew(namespace, sorted(again))
        if note is not None:
            self._store.settle_aliases(namespace, [note], left if came else ())

    def forgotten(self, namespace: str) -> None:
        """Bring memories up to date with the names that went with forgotten ones, a bounded number of them."""
        self._settle(namespace, bounded=True)

    def corrected(self, namespace: str) -> None:
        """Bring all memories up to date with what was just corrected by hand."""
        self._settle(namespace, bounded=False)

    def maintain(self) -> int:
        """Do what writers have left; return how many memories were changed."""
        return sum(self._settle(namespace, bounded=False) for namespace in self._store.alias_namespaces())

    def _settle(self, namespace: str, *, bounded: bool) -> int:
        changed = 0
        for _ in range(1 if bounded else _ROUNDS):
            notes = self._store.waiting_aliases(namespace, all=not bounded)
            if not notes:
                break
            keys = {at for _, waiting in notes for at in waiting}
            into = self._store.moment([namespace])[1][namespace]
            names = self._store.names([namespace], keys)
            again: set[int] = set()
            left: set[int] = set()
            some = sorted(keys)
            for start in range(0, len(some), _NAMES_AT_ONCE):
                chunk = set(some[start : start + _NAMES_AT_ONCE])
                sure, suspects, late = self._mentioning(namespace, names, chunk, into, bounded=bounded)
                left |= late
                if bounded:
                    again |= self._verified(namespace, sure, suspects - sure, chunk, into, left)
                else:
                    again |= sure | suspects
            changed += self._renew(namespace, sorted(again))
            self._store.settle_aliases(namespace, [number for number, _ in notes], left)
        return changed

    # ------------------------------------------------------------------ which memories

    def _subjects(self, memory: Memory) -> set[int]:
        """Return the keys of the names that a memory is about: by its title and text, and by its other names."""
        found = self._extractor.subjects(_searched(memory), memory.title)
        return {*found, *keys_of_other_names(other_names(memory.metadata), self._language)}

    def _mentions(self, memory: Memory, found: Extraction | None, forms: Collection[int]) -> bool:
        if not set(forms).isdisjoint(self._extractor.candidates(_searched(memory), memory.title)):
            return True
        return found is not None and not set(forms).isdisjoint(found.keys)

    def _mentioning(
        self, namespace: str, names: Mapping[int, str], keys: Collection[int], into: Corrections, *, bounded: bool
    ) -> tuple[set[int], set[int], set[int]]:
        """Return the memories that hold one of ``keys``, those whose text may spell one, and the keys left for later.

        One look at the postings for all of them. ``bounded``: a key that more than a few memories may mention is left.
        """
        sought: dict[int, list[frozenset[int]]] = {}
        spelled: set[str] = set()
        unsure = False
        left: set[int] = set()
        slow = accented(self._language)
        for at in keys:
            written = {at: names.get(at), **{form: into.names[form] for form in into.forms([at]) if form in into.names}}
            for form, name in written.items():
                if name is None:
                    continue
                needed = required(name, form, self._language, bigrams=self._extractor.name in _WITH_BIGRAMS)
                if needed:
                    sought.setdefault(at, []).append(needed)
                else:
                    spelled.add(spelling(name, form, self._language))
                if slow or not needed:
                    unsure = True
                    left.add(at)
        asked = {at for needs in sought.values() for needed in needs for at in needed}.union(keys)
        postings = self._store.postings([namespace], asked, max_df=_RARE if bounded else None)[namespace]
        held = {at: set(entries["ord"].tolist()) for at, entries in postings.items()}
        sure: set[int] = set()
        suspects: set[int] = set()
        for at in keys:
            found: set[int] = set()
            for needed in sought.get(at, ()):
                parts = [held[k] for k in needed if k in held]
                if bounded and not parts:
                    left.add(at)
                elif bounded or len(parts) == len(needed):
                    found |= set.intersection(*parts)
            if at not in held and (bounded and at not in sought):
                left.add(at)
            sure |= held.get(at, set())
            suspects |= found
        if bounded:
            return sure, suspects, left
        sure |= set(self._store.tying(namespace, keys).tolist())
        if unsure:
            suspects |= self._spelled(namespace, spelled, into.forms(keys))
        return sure, suspects, set()

    def _spelled(self, namespace: str, words: Collection[str], forms: Collection[int]) -> set[int]:
        """Return the memories whose text spells one of ``forms``, by reading all that hold one of ``words``."""
        ords = self._store.spelled(namespace, words).tolist()
        found: set[int] = set()
        for start in range(0, len(ords), _AT_ONCE):
            memories = self._store.memories([namespace], ords[start : start + _AT_ONCE])
            found.update(ord for ord, memory in memories.items() if self._mentions(memory, None, forms))
        return found

    def _verified(
        self,
        namespace: str,
        sure: set[int],
        suspects: set[int],
        keys: Collection[int],
        into: Corrections,
        left: set[int],
    ) -> set[int]:
        """Return ``sure`` and the suspects that do mention one of ``keys``; what is too much goes to ``left``."""
        if len(sure) > MOST_RENEWED or len(suspects) > _MOST_SUSPECTS:
            left.update(keys)
        again = set(sorted(sure)[:MOST_RENEWED])
        forms = into.forms(keys)
        some = sorted(suspects)[:_MOST_SUSPECTS]
        memories = self._store.memories([namespace], some) if some else {}
        for ord, memory in sorted(memories.items()):
            if self._mentions(memory, None, forms):
                if len(again) >= MOST_RENEWED:
                    left.update(keys)
                    break
                again.add(ord)
        return again

    def _renew(self, namespace: str, ords: Sequence[int]) -> int:
        """Read memories again until nothing changed while they were read; return how many were changed."""
        changed = 0
        for start in range(0, len(ords), _AT_ONCE):
            todo = list(ords[start : start + _AT_ONCE])
            for _ in range(_ROUNDS):
                memories = self._store.memories([namespace], todo)
                knowledge = self.knowledge(memories.values(), new=False)
                if not memories:
                    break
                found = [(ord, self.extraction(memory, knowledge)) for ord, memory in sorted(memories.items())]
                changed += self._store.reindex(namespace, found)
                meanwhile = self._store.alias_changes(namespace, knowledge.moment)
                forms = knowledge.corrections[namespace].forms(meanwhile)
                todo = [ord for ord, e in found if meanwhile and self._mentions(memories[ord], e, forms)]
                if not todo:
                    break
            else:
                self._store.note_aliases(namespace, meanwhile)
        return changed

    # ------------------------------------------------------------------ everything

    def reextract(self, progress: Callable[[int], None] | None = None) -> Rebuilt:
        """Read every memory again, as after a change of the extractor, while others read and write.

        Interrupted, the next call with the same extractor goes on; ``progress`` counts what that one had read too.
        Raises Conflict when another process rebuilds.
        """
        with self._store.rebuilding():
            place, dropped = self._place()
            skipped = read = int(place.get("read", 0))
            changed = 0
            for namespace in self._store.namespaces():
                before, after = place.get("namespace", ""), 0
                if namespace < before:
                    continue
                moment, corrections = self._store.moment([namespace])
                if namespace == before:  # what came and went since that call began is still to be looked at
                    moment, after = place["moment"], place["ord"]
                knowledge = Knowledge(moment, self._about(namespace, corrections), {}, {}, corrections)
                place["moment"], place["namespace"] = moment, namespace
                for batch in self._batches(namespace, after):
                    found = [(ord, self.extraction(memory, knowledge)) for ord, memory in batch]
                    changed += self._store.reindex(namespace, found)
                    read += len(batch)
                    self._store.note_fact(_PLACE, place | {"ord": batch[-1][0], "read": read})
                    if progress is not None:
                        progress(read)
                self._store.note_aliases(namespace, self._store.alias_changes(namespace, moment))
                changed += self._settle(namespace, bounded=False)
            self._store.note_fact(_PLACE, None)
            return Rebuilt(dropped=dropped, read=read - skipped, skipped=skipped, changed=changed + self.maintain())

    def _place(self) -> tuple[dict[str, Any], str | None]:
        """Return where an interrupted call with this extractor stopped, if it did, and whose call is thrown away."""
        now = datetime.now(UTC)
        who = {name: str(getattr(self._extractor, name, "")) for name in ("name", "language", "version", "model")}
        ours = {**who, "database": self._store.database_id(), "semmem": version("semmem")}
        place = self._store.fact(_PLACE)
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
                about.update(into.key(at) for at in self._subjects(memory))
        return {namespace: into.forms(about)}

    def _batches(self, namespace: str, after: int) -> Iterable[Sequence[tuple[int, Any]]]:
        while rows := self._store.indexed_after(namespace, after, _AT_ONCE):
            yield rows
            after = rows[-1][0]


def _searched(memory: Memory) -> str:
    """Return what the extractor reads of a memory: its text, with tags and other names behind it."""
    return searched_text(memory.text, (*memory.tags, *other_names(memory.metadata)))
