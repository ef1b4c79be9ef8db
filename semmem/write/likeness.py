"""Compare new memories with similar ones: count repeats, link near-duplicates and contradictions.

A memory is stored first and then compared with the memories that share a key with it (``concepts.likeness``). Work
after the commit never raises: links that could not be made are reported and left to ``maintain``. Sensitive memories
and turns of a conversation are compared with nothing.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from heapq import nlargest
from typing import Literal, TypeAlias

from semmem.concepts.likeness import ALIKE, Outline, changed, claim_keys, outlines, resemblance, sketches
from semmem.model.errors import SemmemError
from semmem.model.exchange import Row, Written
from semmem.model.life import MADE_BY, Link, Similar
from semmem.model.store import LifeStore, Store
from semmem.model.types import LinkType, Memory
from semmem.write.items import Draft

__all__ = ["MOST_ALIKE", "Likeness", "Likenesses", "OnContradiction", "Text", "compared", "merged", "merges"]

_AT_ONCE = 500
MOST_ALIKE = 3
"""The most links from one memory to older near-duplicates."""

OnContradiction: TypeAlias = Literal["report", "supersede", "ignore"]
Name: TypeAlias = tuple[str, str]


def merges(draft: Draft) -> bool:
    """Return whether ``draft`` counts as a repeat, instead of a second memory, where its content is stored already.

    A draft with an id, a position, a time or a vector is a memory of its own. So is one that expires, because a memory
    that stays cannot be counted as one that will be gone.
    """
    named = draft.named and not draft.made_id
    other = named or draft.timed or draft.memory.position is not None or draft.vector is not None
    return not (other or draft.memory.expires_at is not None or draft.memory.sensitive or draft.restores)


def merged(drafts: Sequence[Draft]) -> tuple[list[Draft], dict[Name, int]]:
    """Return a batch without its repeats, and how often each memory is repeated, by the name of the first."""
    kept: list[Draft] = []
    again: Counter[Name] = Counter()
    firsts: dict[tuple[str, bytes], Name] = {}
    for draft in drafts:
        if not merges(draft) or (first := firsts.setdefault((draft.memory.namespace, draft.payload), draft.name)) == (
            draft.name
        ):
            kept.append(draft)
        else:
            again[first] += 1
    return kept, dict(again)


@dataclass(frozen=True, slots=True)
class Likenesses:
    """The result for one batch: the ids that each memory contradicts, and the reason why links are missing, if any."""

    contradicts: Mapping[Name, tuple[str, ...]] = field(default_factory=dict)
    degraded: Mapping[str, str] = field(default_factory=dict)

    @property
    def count(self) -> int:
        """Return the number of contradictions."""
        return sum(map(len, self.contradicts.values()))


@dataclass(frozen=True, slots=True)
class Text:
    """A text to compare, and its place in time: its own time, then the order of writing."""

    id: str
    text: str
    title: str | None
    author: str | None
    at: tuple[float, int, int]


class Likeness:
    """Compares new memories with similar ones, according to a policy.

    ``report`` links a change to the memory that it changes (contradicts) and links near-duplicates (see-also);
    ``supersede`` also lets the newer memory supersede the older; ``ignore`` compares nothing.
    """

    def __init__(self, store: Store, policy: OnContradiction) -> None:
        self._store = store
        self._policy = policy

    @property
    def _life(self) -> LifeStore | None:
        return self._store.life

    @property
    def _looks(self) -> bool:
        """Return whether anything is compared."""
        return self._policy != "ignore" and self._life is not None

    @property
    def counts(self) -> bool:
        """Return whether repeats are counted, which needs a store that keeps the life of memories."""
        return self._life is not None

    def keys(self, drafts: Sequence[Draft]) -> dict[Name, tuple[int, ...]]:
        """Return the keys of each memory by which similar memories find it."""
        if not self._looks:
            return {}
        told = [draft for draft in drafts if not (draft.memory.sensitive or _a_turn(draft.memory))]
        return {draft.name: keys for draft, keys in zip(told, keys_of([d.memory for d in told]), strict=True)}

    def again(self, times: Mapping[Name, int]) -> frozenset[Name]:
        """Count repeats of stored memories; return the names of those that are stored."""
        each: dict[str, dict[str, int]] = defaultdict(dict)
        for (namespace, id), count in times.items():
            each[namespace][id] = count
        if self._life is None:
            return frozenset()
        return frozenset((n, id) for n, some in each.items() for id in self._life.corroborate(n, some))

    def counted(self, again: Mapping[Name, int], said: Mapping[Name, str]) -> int:
        """Count the repeats within a batch, and of the stored memories ``said``; return their number.

        The batch is committed, so nothing is raised.
        """
        times: Counter[Name] = Counter()
        for name, first in said.items():
            times[name[0], first] += 1
        for name, count in again.items():
            times[name[0], said.get(name, name[1])] += count
        if times:
            with suppress(SemmemError):
                self.again(times)
        return times.total()

    def written(self, rows: Sequence[Row], written: Written) -> Likenesses:
        """Link the new memories with those that they repeat or contradict; see the module's docstring."""
        if not rows or not self._looks or self._life is None:
            return Likenesses()
        try:
            self._unlink(written.replaced)
            if not written.similar:
                return Likenesses()
            placed = {row.name: at for at, row in enumerate(rows) if row.part == 0}
            of = {row.name: row.memory for row in rows if row.part == 0}
            contradicts: dict[Name, tuple[str, ...]] = {}
            for namespace in sorted({namespace for namespace, _ in written.similar}):
                groups = []
                for name, others in sorted(written.similar.items()):
                    if name[0] == namespace:
                        text = _text(of[name], written.ords[(*name, 0)], placed[name])
                        groups.append((text, [_other(one, placed.get((namespace, one.id), -1)) for one in others]))
                links = compared(namespace, groups, self._policy)
                self._life.link(namespace, links, skip=True)
                for link in links:
                    if link.type == "contradicts":
                        of_one = contradicts.get((namespace, link.from_id), ())
                        contradicts[namespace, link.from_id] = (*of_one, link.to_id)
            return Likenesses(contradicts)
        except SemmemError as error:  # the memories are committed, so nothing is raised
            self._leave(written)
            reason = f"Stored, but not linked to what they contradict, which maintain makes up for: {error.message}"
            return Likenesses({}, {"links": reason})

    def _leave(self, written: Written) -> None:
        """Leave the comparison of the new memories to maintain, if the store can be reached."""
        each: dict[str, list[int]] = defaultdict(list)
        for name in written.similar:
            each[name[0]].append(written.ords[(*name, 0)])
        for namespace, ords in each.items():
            with suppress(SemmemError):
                if self._life is not None:
                    self._life.compare_again(namespace, ords)

    def maintain(self) -> dict[str, int]:
        """Compare memories that were never compared, some hundreds at a time; return their number, if any.

        A memory that has keys has been compared, and is not compared again.
        """
        life, count = self._life, 0
        for namespace in sorted(self._store.languages()) if life is not None and self._looks else ():
            after = 0
            while life is not None and (some := life.uncompared(namespace, after, _AT_ONCE)):
                after = some[-1][0]
                each = zip(some, keys_of([memory for _, memory in some]), strict=True)
                keys = {ord: keys for (ord, _), keys in each if keys}
                try:
                    found = life.similar(namespace, keys) if keys else {}
                    groups = [
                        (_text(memory, ord, 0), [_other(one, 0) for one in found[ord]])
                        for ord, memory in some
                        if ord in found
                    ]
                    life.link(namespace, compared(namespace, groups, self._policy), skip=True)
                except SemmemError:
                    life.compare_again(namespace, keys)
                    raise
                count += len(keys)
        return {"compared": count} if count else {}

    def _unlink(self, names: Collection[Name]) -> None:
        """Remove the links that semmem made for memories whose text may have changed."""
        if self._life is None:
            return
        each: dict[str, list[str]] = defaultdict(list)
        for namespace, id in sorted(names):
            each[namespace].append(id)
        for namespace, ids in each.items():
            for link in self._life.links(namespace, ids):
                if link.made_by == MADE_BY:
                    self._life.unlink(namespace, link.from_id, link.type, link.to_id)


def keys_of(memories: Sequence[Memory]) -> list[tuple[int, ...]]:
    """Return the keys of each memory: those of its claims and those of its sketch."""
    bands = sketches([memory.text for memory in memories])
    said = [claim_keys(memory.text, memory.author) for memory in memories]
    return [tuple({*one, *some}) for one, some in zip(said, bands, strict=True)]


def _a_turn(memory: Memory) -> bool:
    """Return whether a memory is a turn of a conversation, where the rules are wrong too often (adr/0035)."""
    return memory.session is not None and memory.position is not None


def _text(memory: Memory, ord: int, place: int) -> Text:
    assert memory.created_at is not None
    return Text(memory.id, memory.text, memory.title, memory.author, (memory.created_at.timestamp(), place, ord))


def _other(one: Similar, place: int) -> Text:
    return Text(one.id, one.text, one.title, one.author, (one.created_at.timestamp(), place, one.ord))


def compared(namespace: str, groups: Sequence[tuple[Text, Sequence[Text]]], policy: OnContradiction) -> list[Link]:
    """Return the links between texts of one namespace, each compared with others that share keys with it.

    Where a value changed several times, each text contradicts only the one just before it. A near-duplicate is linked
    with the MOST_ALIKE texts that are most similar to it.
    """
    said: dict[str, list[Outline]] = {}
    known: dict[tuple[str, str], bool] = {}
    found: dict[tuple[str, LinkType, str], Link] = {}

    def outlined(one: Text) -> list[Outline]:
        if one.id not in said:
            said[one.id] = outlines(one.text, one.author)
        return said[one.id]

    def contradicts(newer: Text, older: Text) -> bool:
        pair = newer.id, older.id
        if pair not in known:
            who = {"older_author": older.author, "newer_author": newer.author}
            known[pair] = _of_one_title(newer, older) and changed(outlined(older), outlined(newer), **who) is not None
        return known[pair]

    def add(newer: Text, type: LinkType, older: Text) -> None:
        found[newer.id, type, older.id] = Link(namespace, newer.id, type, older.id, made_by=MADE_BY)

    for one, others in groups:
        alike: list[tuple[float, tuple[float, int, int], Text, Text]] = []
        for other in others:
            if other.id == one.id or not _of_one_title(one, other):
                continue
            older, newer = sorted((one, other), key=lambda text: text.at)
            if not contradicts(newer, older):
                if _of_one_length(older.text, newer.text):
                    share = resemblance(older.text, newer.text)
                    alike += [(share, other.at, newer, older)] if share >= ALIKE else []
            elif not any(older.at < text.at < newer.at and contradicts(text, older) for text in others):
                add(newer, "contradicts", older)
                if policy == "supersede":
                    add(newer, "supersedes", older)
        for _, _, newer, older in nlargest(MOST_ALIKE, alike, key=lambda pair: pair[:2]):
            add(newer, "see-also", older)
    return list(found.values())


def _of_one_title(one: Text, other: Text) -> bool:
    """Return whether two texts may have the same subject: texts with different titles have not."""
    return not (one.title and other.title and one.title != other.title)


def _of_one_length(one: str, other: str) -> bool:
    """Return whether two texts may be near-duplicates: the shorter one has more than half the length of the longer."""
    return 2 * min(len(one), len(other)) > max(len(one), len(other))
