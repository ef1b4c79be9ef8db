"""Find the memories that mention certain names: by postings, and by reading texts where postings do not suffice."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from semmem.model.exchange import Corrections, Extraction, Forwards, Kind
from semmem.model.protocols import Extractor
from semmem.model.store import GraphStore, Store
from semmem.model.types import Memory
from semmem.text.passages import read_text
from semmem.text.tokens import CONTRACTIONS, STOP_WORDS, key, tokens

__all__ = [
    "AT_ONCE",
    "MOST_RENEWED",
    "Ahead",
    "Knowledge",
    "Mentions",
    "accented",
    "may_change",
    "required",
    "spelling",
]

MOST_RENEWED = 200
"""One write extracts at most this many memories again; the others wait for ``maintain``."""

_MOST_ASKED = 16
"""The same limit for an extractor that asks a language model about each memory."""

_MOST_SUSPECTS = 400

_RARE = 30
"""A name that more memories may mention is left to ``maintain``, because the walk does not use it."""

AT_ONCE = 256
"""The number of memories read at a time."""

_COMPARED_AT_ONCE = 1_000
"""The number of memories whose entries are read at a time."""

_WITH_BIGRAMS = frozenset(("rules", "precomputed", "llm"))


@dataclass(frozen=True, slots=True)
class Knowledge:
    """What memories were extracted with: the ``known`` names and corrections of each namespace at a ``moment``.

    The moment of a namespace is its last change number. ``own`` are the names that the memories are about themselves,
    ``arrivals`` those of them that the store did not have.
    """

    moment: Mapping[str, int]
    known: Mapping[str, Collection[int]]
    own: Mapping[str, Collection[int]]
    arrivals: Mapping[str, Set[int]]
    corrections: Mapping[str, Corrections]


class Ahead(NamedTuple):
    """Knowledge looked up for memories before it is known which of them are new.

    ``texts`` is everything that extraction reads of them. By namespace, ``candidates`` are the names that they may
    mention, ``own`` those that they are about, and ``snapshot`` is the result of GraphStore.snapshot_with_subjects for
    ``candidates``.
    """

    texts: Sequence[tuple[Any, ...]]
    candidates: Mapping[str, Collection[int]]
    own: Mapping[str, Collection[int]]
    snapshot: tuple[Mapping[str, int], Mapping[str, Corrections], Mapping[str, Collection[int]]]


class Mentions:
    """Finds the memories whose extraction changes when a name becomes known or is no longer known."""

    def __init__(self, store: Store, extractor: Extractor) -> None:
        self._store = store
        self._extractor = extractor
        self._language: str = getattr(extractor, "language", "english")
        self._most = _MOST_ASKED if hasattr(extractor, "prepare") else MOST_RENEWED

    def named(self, memory: Memory, extraction: Extraction | None, forms: Collection[int]) -> bool:
        try:
            if not set(forms).isdisjoint(self._extractor.candidates(read_text(memory), memory.title)):
                return True
        except Exception:  # noqa: BLE001  # the error is raised when the memory is extracted again
            return True
        return extraction is not None and not set(forms).isdisjoint(extraction.keys)

    def mentioning(
        self,
        graph: GraphStore,
        namespace: str,
        names: Mapping[int, str],
        keys: Collection[int],
        into: Corrections,
        *,
        bounded: bool,
    ) -> tuple[set[int], set[int], set[int]]:
        """Return the memories that hold one of ``keys``, those whose text may spell one, and the keys left for later.

        Reads the postings of all keys in one round trip. With ``bounded``, a key that many memories may mention is left
        to ``maintain``. Otherwise the second set has only memories that may spell a key without mentioning it.
        """
        sought: dict[int, list[frozenset[int]]] = {}
        spelled: set[str] = set()
        unsure = False
        later: set[int] = set()
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
                    later.add(at)
        needed_keys = {at for needs in sought.values() for needed in needs for at in needed}.union(keys)
        postings = self._store.postings([namespace], needed_keys, max_df=_RARE if bounded else None)[namespace]
        entries_by_key = dict(postings.items())
        ords_by_key = {at: set(entries["ord"].tolist()) for at, entries in entries_by_key.items()}
        sure: set[int] = set()
        suspects: set[int] = set()
        for at in keys:
            hits: set[int] = set() if bounded else set(ords_by_key.get(at, ()))
            for needed in sought.get(at, ()):
                parts = [ords_by_key[k] for k in needed if k in ords_by_key]
                if bounded and not parts:
                    later.add(at)
                elif bounded or len(parts) == len(needed):
                    hits |= set.intersection(*parts)
            if at not in ords_by_key and (bounded and at not in sought):
                later.add(at)
            sure |= ords_by_key.get(at, set())
            if not bounded and at in entries_by_key:
                entries = entries_by_key[at]
                hits -= set(entries["ord"][entries["mention"] > 0].tolist())
            suspects |= hits
        if bounded:
            return sure, suspects, later
        sure |= set(graph.ords_with_relationships(namespace, keys).tolist())
        if unsure:
            suspects |= self._spelled(graph, namespace, spelled, into.forms(keys))
        return sure, suspects, set()

    def _spelled(self, graph: GraphStore, namespace: str, words: Collection[str], forms: Collection[int]) -> set[int]:
        """Return the memories whose text spells one of ``forms``; reads all texts that hold one of ``words``."""
        ords = graph.ords_with_words(namespace, words).tolist()
        hits: set[int] = set()
        for start in range(0, len(ords), AT_ONCE):
            memories = self._store.indexed_memories([namespace], ords[start : start + AT_ONCE])
            hits.update(ord for ord, memory in memories.items() if self.named(memory, None, forms))
        return hits

    def outdated(
        self,
        graph: GraphStore,
        namespace: str,
        sure: set[int],
        suspects: set[int],
        names: Mapping[int, str],
        into: Corrections,
    ) -> set[int]:
        """Return the memories that another extraction may change, of all that ``mentioning`` returned for ``names``.

        Of the known names at a place the longest is mentioned. So a name that became known changes nothing in a memory
        that mentions it anyway, as long as the memory mentions no other known name that shares a word with it. Only the
        texts of ``suspects`` are read. Where people have corrected names, or an extractor is no list of rules, every
        memory is returned.
        """
        every = sure | suspects
        if self._extractor.name != "rules" or into.into or into.apart or into.names:
            return every
        again = every & set(graph.ords_with_relationships(namespace, names).tolist())  # by another extractor
        known = _Known(graph, namespace, names, self._language)
        some = sorted(every - again)
        for start in range(0, len(some), _COMPARED_AT_ONCE):
            part = some[start : start + _COMPARED_AT_ONCE]
            mentioned = _mentioned(graph.forwards([namespace], part))
            again.update(set(part) - mentioned.keys())
            memories = self._store.indexed_memories([namespace], [ord for ord in part if ord in suspects])
            for ord, memory in memories.items():
                if ord in mentioned and self._spells_more(memory, names, mentioned[ord]):
                    again.add(ord)
                    del mentioned[ord]
            known.learn({at for held in mentioned.values() for at in held})
            again.update(ord for ord, held in mentioned.items() if known.may_change(held))
        return again

    def _spells_more(self, memory: Memory, names: Collection[int], mentioned: Collection[int]) -> bool:
        """Return whether the text of a memory spells one of ``names`` besides those that the memory mentions."""
        try:
            candidates = self._extractor.candidates(read_text(memory), memory.title)
        except Exception:  # noqa: BLE001  # the error is raised when the memory is extracted again
            return True
        return any(at in names and at not in mentioned for at in candidates)

    def verified(
        self,
        namespace: str,
        sure: set[int],
        suspects: set[int],
        keys: Collection[int],
        into: Corrections,
        later: set[int],
    ) -> set[int]:
        """Return ``sure`` and the suspects that do mention one of ``keys``; keys beyond the limit go to ``later``."""
        if len(sure) > self._most or len(suspects) > _MOST_SUSPECTS:
            later.update(keys)
        again = set(sorted(sure)[: self._most])
        forms = into.forms(keys)
        some = sorted(suspects)[:_MOST_SUSPECTS]
        memories = self._store.indexed_memories([namespace], some) if some else {}
        for ord, memory in sorted(memories.items()):
            if self.named(memory, None, forms):
                if len(again) >= self._most:
                    later.update(keys)
                    break
                again.add(ord)
        return again


class _Known:
    """What is known of the names that some memories mention: which are subjects, which wait, and their words."""

    def __init__(self, graph: GraphStore, namespace: str, waiting: Mapping[int, str], language: str) -> None:
        self._graph, self._namespace, self._language = graph, namespace, language
        self._waiting = waiting.keys()
        self._gone = self._waiting - self._subjects(self._waiting)
        self._asked = set(self._waiting)
        self._words: dict[int, frozenset[str]] = {}
        self._spell(waiting)

    def _subjects(self, keys: Collection[int]) -> set[int]:
        return set(self._graph.snapshot_with_subjects({self._namespace: keys})[2][self._namespace])

    def _spell(self, names: Mapping[int, str]) -> None:
        """Note the words of names; none for a label that was cut, which may share a word with any other."""
        for at, name in names.items():
            words = [word.folded for word, _, _ in tokens(name, self._language)]
            self._words[at] = frozenset(words if key(_NAME, words) == at else ())

    def learn(self, keys: Collection[int]) -> None:
        """Ask which of ``keys`` are subjects, and for their spelling, each once."""
        new = set(keys) - self._asked
        if new:
            self._asked |= new
            subjects = self._subjects(new)
            self._spell({**dict.fromkeys(subjects, ""), **self._graph.names([self._namespace], subjects)})

    def may_change(self, mentioned: Collection[int]) -> bool:
        """Return ``may_change`` for what a memory mentions."""
        return may_change(mentioned, self._words, self._waiting, self._gone)


def may_change(
    mentioned: Collection[int], words: Mapping[int, frozenset[str]], waiting: Collection[int], gone: Collection[int]
) -> bool:
    """Return whether names that came or went may change what a memory mentions, all of them in its text included.

    ``words`` are those of the names that are known, or ``waiting`` because they came or went; none for a name that is
    not known whole. ``gone`` are those of ``waiting`` that are not known any longer. A name that came makes the longest
    known name at a place another one only where it shares a word with one that was the longest.
    """
    held = [(at, words[at]) for at in mentioned if at in words]
    for one, own in held:
        if one in gone:
            return True
        if one in waiting and any(
            not own or not others or not own.isdisjoint(others) for other, others in held if other != one
        ):
            return True
    return False


def _mentioned(forwards: Forwards) -> dict[int, set[int]]:
    """Return the keys of the names that each memory mentions."""
    entries = forwards.entries
    mentioned: dict[int, set[int]] = {ord: set() for ord in forwards.ords.tolist()}
    rows = (entries["kind"] == _NAME) & (entries["mention"] > 0)
    owners = np.repeat(forwards.ords, forwards.sizes)[rows]
    for ord, at in zip(owners.tolist(), entries["key"][rows].tolist(), strict=True):
        mentioned[ord].add(at)
    return mentioned


_STEM, _BIGRAM, _NAME = int(Kind.STEM), int(Kind.BIGRAM), int(Kind.NAME)


def required(written: str, at: int, language: str = "english", *, bigrams: bool) -> frozenset[int]:
    """Return keys held by every memory whose text spells the name ``at``; empty where no key is certain.

    ``bigrams`` says that the extractor makes a bigram of any two neighbouring words, which narrows the search most.
    Words that are stop words in some spelling (US, us) are left out, because their key depends on the text.
    """
    words = [word for word, _, _ in tokens(written, language)]
    if key(_NAME, [w.folded for w in words]) != at:
        return frozenset()  # a truncated label
    loose = {*STOP_WORDS.get(language, ()), *CONTRACTIONS.get(language, ())}
    sure = [not w.stop and w.folded not in loose for w in words]
    keys = set()
    covered = set()
    for i in range(len(words) - 1):
        if bigrams and sure[i] and sure[i + 1] and words[i].kind == _STEM:
            keys.add(key(_BIGRAM, (words[i].stem, words[i + 1].stem)))
            covered |= {i, i + 1}
    return frozenset(keys.union(words[i].key for i in range(len(words)) if sure[i] and i not in covered))


def spelling(written: str, at: int, language: str = "english") -> str:
    """Return a folded word that every plain ASCII text with the name ``at`` contains; "" where there is none."""
    folded = [word.folded for word, _, _ in tokens(written, language)]
    if key(_NAME, folded) != at:
        return ""
    return max((f for f in folded if f.isascii() and f.isalnum()), key=len, default="")


def accented(language: str) -> bool:
    """Return whether the stem of a word depends on its accents, so that two spellings of a name may share no key."""
    return language not in ("english", "porter")
