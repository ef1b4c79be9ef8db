"""Compare new memories with similar ones: count repeats, link near-duplicates and contradictions.

A memory is stored first and then compared with the memories that share a key with it (``concepts.likeness``). The
transaction that stores a memory notes that it is still to be compared, if another memory shares a key with it, and the
transaction that makes its links removes the note. So the note stays if the process ends between the two, or if the
links cannot be made: ``maintain`` compares what is noted at once, and so does, after WAITING_S, the next write of the
namespace that has something to compare. Work after the commit never raises. A memory that gets another text or is
forgotten loses the links that semmem made, and the memories at their other ends are noted in the same way; so are those
at the ends of links that cannot be made because it went meanwhile. Sensitive memories and turns of a conversation are
compared with nothing.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from types import MappingProxyType
from typing import TypeAlias

from semmem.concepts.likeness import likeness_keys
from semmem.model.errors import SemmemError
from semmem.model.exchange import Row, Written
from semmem.model.history import MADE_BY, MOST_SIMILAR, Comparison, Link, PendingComparison, Similar
from semmem.model.store import LifeStore, LinkStore, Store
from semmem.model.types import Memory, Older
from semmem.text.passages import content_key
from semmem.write.bulk import Pool
from semmem.write.comparison import Group, OnContradiction, Text, by_namespace, compared
from semmem.write.items import Draft, is_turn
from semmem.write.older import older_of

__all__ = [
    "Likeness",
    "Likenesses",
    "comparable",
    "fall_with",
    "keys_of",
    "merged",
    "merges",
    "retells",
    "said_anew",
]

_AT_ONCE = 500
Name: TypeAlias = tuple[str, str]


def merges(draft: Draft) -> bool:
    """Return whether ``draft`` counts as a repeat, instead of a second memory, where its content is stored already.

    A draft with an id, a position, a time or a vector is a memory of its own. So is one that expires, because a memory
    that stays cannot be counted as one that will be gone.
    """
    named = draft.named and not draft.made_id
    other = named or draft.timed or draft.memory.position is not None or draft.vector is not None
    return not (other or draft.memory.expires_at is not None or draft.memory.sensitive or draft.restores)


def merged(drafts: Sequence[Draft]) -> tuple[list[Draft], dict[Name, list[Draft]]]:
    """Return a batch without its repeats, and the repeats of each memory, by the name of the first."""
    distinct: list[Draft] = []
    again: dict[Name, list[Draft]] = {}
    firsts: dict[tuple[str, bytes], Name] = {}
    for draft in drafts:
        if not merges(draft) or (first := firsts.setdefault((draft.memory.namespace, draft.payload), draft.name)) == (
            draft.name
        ):
            distinct.append(draft)
        else:
            again.setdefault(first, []).append(draft)
    return distinct, again


def said_anew(
    repeats: Iterable[tuple[Draft, Name]], contradicts: Mapping[Name, Collection[str]], places: Mapping[Name, int]
) -> list[Draft]:
    """Return those of a batch's ``repeats``, each with what said the same first, that are no repeats, in order.

    Between the first and them the batch contradicts the first: a value that changes back is said anew. ``contradicts``
    are the ids that memories contradict, ``places`` where each of the batch stands in it.
    """
    against: dict[Name, int] = {}
    for name, ids in contradicts.items():
        for id in ids if name in places else ():  # a comparison that an earlier writer left is not of this batch
            against[name[0], id] = min(places[name], against.get((name[0], id), places[name]))
    anew: list[Draft] = []
    for draft, first in sorted(repeats, key=lambda repeat: repeat[0].position):
        changed_between = first in against and against[first] < draft.position
        if changed_between or (anew and (first in against or first in contradicts)):
            anew.append(draft)
    return anew


@dataclass(frozen=True, slots=True)
class Likenesses:
    """The result for one batch: the ids that each memory contradicts, and the reason why links are missing, if any."""

    contradicts: Mapping[Name, tuple[str, ...]] = field(default_factory=dict)
    degraded: Mapping[str, str] = field(default_factory=dict)

    @property
    def count(self) -> int:
        """Return the number of contradictions."""
        return sum(map(len, self.contradicts.values()))


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
    def looks(self) -> bool:
        """Return whether anything is compared."""
        return self._policy != "ignore" and self._life is not None

    @property
    def counts(self) -> bool:
        """Return whether repeats are counted, which needs a store that keeps the life of memories."""
        return self._life is not None

    def compares(self, memory: Memory) -> bool:
        """Return whether a memory is compared with others, so that it has keys."""
        return self.looks and comparable(memory)

    def keys(
        self, drafts: Sequence[Draft], precomputed: Mapping[Name, tuple[Memory, tuple[int, ...]]] = MappingProxyType({})
    ) -> dict[Name, tuple[int, ...]]:
        """Return the keys that similar memories share with each draft; ``precomputed`` has those of some memories."""
        if not self.looks:
            return {}
        compared = [draft for draft in drafts if self.compares(draft.memory)]
        reused = {d.name: row[1] for d in compared if (row := precomputed.get(d.name)) and _same_keys(row[0], d.memory)}
        rest = [draft for draft in compared if draft.name not in reused]
        each = zip(rest, keys_of([draft.memory for draft in rest]), strict=True)
        return reused | {draft.name: keys for draft, keys in each}

    def again(
        self,
        times: Mapping[Name, int],
        besides: Collection[Name] | None = (),
        texts: Mapping[Name, str] = MappingProxyType({}),
    ) -> frozenset[Name]:
        """Count repeats of stored memories; return the names of those that were counted.

        Not those that another writer may contradict at the same moment, whose links come behind its commit: these links
        are made before this returns, so that the repeat can be stored as what it is. ``besides`` are the memories of
        the own batch, where that has been decided; with None all are counted. ``texts`` say what the repeats say: a
        memory whose text was changed meanwhile is repeated no more.
        """
        if (life := self._life) is None:
            return frozenset()
        each: dict[str, dict[str, int]] = defaultdict(dict)
        for (namespace, id), count in times.items():
            each[namespace][id] = count
        counted: set[Name] = set()
        for namespace, some in each.items():
            own = None if besides is None or not self.looks else {id for name, id in besides if name == namespace}
            contents = {id: content_key(texts[namespace, id]) for id in some if (namespace, id) in texts}
            counted |= {(namespace, id) for id in life.corroborate(namespace, some, own, contents)}
            uncounted = [id for id in some if (namespace, id) not in counted]
            if uncounted and (waiting := life.unsettled(namespace, uncounted)):
                self._compare(life, namespace, waiting)
        return frozenset(counted)

    def counted(
        self, again: Mapping[Name, int], firsts: Mapping[Name, str], batch: Mapping[Name, Draft]
    ) -> tuple[int, Collection[Name]]:
        """Count the repeats within a batch, and of the stored memories ``firsts``; return their number.

        Returns also which of ``firsts`` are no repeats, as others have contradicted what they repeat meanwhile. The
        batch is committed, so nothing is raised.
        """
        times = Counter((namespace, first) for (namespace, _), first in firsts.items())
        texts = {(name[0], first): batch[name].memory.text for name, first in firsts.items()}
        counted = frozenset(times)
        with suppress(SemmemError):
            if times:
                counted = self.again(times, batch, texts)
        late = [name for name, first in firsts.items() if (name[0], first) not in counted]
        more = Counter({(n[0], firsts.get(n, n[1])): count for n, count in again.items() if n not in late})
        if more := +more:
            with suppress(SemmemError):
                self.again(more, None)
        return len(firsts) - len(late) + more.total(), late

    def written(self, rows: Sequence[Row], written: Written, workers: Pool | None = None) -> Likenesses:
        """Link the new memories with those that they repeat or contradict; see the module's docstring.

        ``workers`` compare a share of them.
        """
        if not rows or not self.looks or self._life is None:
            return Likenesses()
        placed = {row.name: index for index, row in enumerate(rows) if row.part == 0}
        of = {row.name: row for row in rows if row.part == 0}
        retold = {name[0] for name in written.replaced if of[name].retells}
        groups: list[Group] = []
        row_ids: dict[str, list[int]] = {namespace: [] for namespace in retold}
        for name, others in sorted(written.similar.items()):
            namespace, row_id = name[0], written.row_ids[(*name, 0)]
            row_ids.setdefault(namespace, []).append(row_id)
            if of[name].replaces is None or of[name].retells or of[name].made_anew:
                at = of[name].text_at or of[name].memory.created_at
                text = _text(of[name].memory, row_id, at, placed[name])
                groups.append((text, [_other(namespace, one, placed.get((namespace, one.id), -1)) for one in others]))
        found = compared(groups, self._policy) if workers is None else workers.compare(groups, self._policy)
        links = by_namespace(found)
        contradicts: dict[Name, tuple[str, ...]] = defaultdict(tuple)
        try:
            began = _began(groups)
            each = {n: Comparison(some, links.get(n, ()), began[n]) for n, some in row_ids.items()}
            for namespace in self._life.compared(each) if each else ():
                self.catch_up(namespace)
        except SemmemError as error:  # the memories are committed and noted, so nothing is raised
            reason = f"Stored, but not linked to what they contradict, which maintain makes up for: {error.message}"
            return Likenesses(contradicts, {"links": reason})
        for namespace, some_links in links.items():
            for link in some_links:
                if link.type == "contradicts":
                    contradicts[namespace, link.from_id] += (link.to_id,)
        return Likenesses(contradicts)

    def older(self, rows: Sequence[Row], written: Written, contradicted: Collection[str]) -> tuple[Older, ...]:
        """Return the older memories that a memory just written may outdate; none where nothing is compared."""
        return older_of(self._store, rows, written, contradicted) if self.compares(rows[0].memory) else ()

    def catch_up(self, namespace: str) -> None:
        """Compare a few memories whose links nobody has made, or that lost some; never raises."""
        if self._life is None or not self.looks:
            return
        with suppress(SemmemError):
            if some := self._life.waiting(namespace, MOST_SIMILAR):
                self._compare(self._life, namespace, some)

    def compare_anew(self, namespace: str, some: Sequence[PendingComparison]) -> None:
        """Store the keys of memories anew and make the links that are missing; the links that are there stay."""
        if self._life is not None and self.looks and some:
            self._compare(self._life, namespace, some)

    def _compare(self, life: LinkStore, namespace: str, some: Sequence[PendingComparison]) -> int:
        """Compare memories with what is like them before and after, and link them; return how many have keys."""
        turns = {one.row_id for one in some if one.memory.sensitive or is_turn(one.memory)}
        comparable = [one for one in some if one.row_id not in turns]
        each = zip(comparable, keys_of([one.memory for one in comparable]), strict=True)
        keys = {one.row_id: own_keys for one, own_keys in each if own_keys}
        similar = life.similar(namespace, keys) if keys else {}
        groups = [
            (_text(one.memory, one.row_id, one.at, 0), [_other(namespace, other, 0) for other in similar[one.row_id]])
            for one in comparable
            if one.row_id in similar
        ]
        links = by_namespace(compared(groups, self._policy)).get(namespace, ())
        row_ids = [one.row_id for one in some]
        life.compared({namespace: Comparison(row_ids, links, _began(groups)[namespace])})
        return len(keys)

    def maintain(self) -> dict[str, int]:
        """Compare memories that were never compared or linked, some hundreds at a time; return their number, if any.

        A memory that has keys and no note has been compared, and is not compared again.
        """
        life, count = self._life, 0
        if life is None or not self.looks:
            return {}
        for namespace in life.uncompared_namespaces():
            after = 0
            while some := life.pending_comparisons(namespace, after, _AT_ONCE):
                after = some[-1].row_id
                count += self._compare(life, namespace, some)
        return {"compared": count} if count else {}


def fall_with(store: Store, link: Link) -> list[Link]:
    """Return the links by which the near-duplicates of a memory fall with it, where ``link`` supersedes it.

    Those that are newer than what supersedes it say the value anew, and stay.
    """
    life = store.life
    if link.type != "supersedes" or life is None:
        return []
    ends = ((one.to_id if one.from_id == link.to_id else one.from_id) for one in _alike(life, link))
    memories = {one.id: one for one in store.get(link.namespace, list(dict.fromkeys((link.from_id, *ends))))}
    newest = memories.pop(link.from_id, None)
    if newest is None or newest.created_at is None:
        return []
    fallen = [one.id for one in memories.values() if one.created_at and one.created_at <= newest.created_at]
    return [Link(link.namespace, link.from_id, "supersedes", id, made_by=MADE_BY) for id in fallen]


def _alike(life: LinkStore, link: Link) -> list[Link]:
    """Return the links to near-duplicates, made by semmem, of what ``link`` supersedes."""
    links = life.links(link.namespace, [link.to_id])
    return [one for one in links if one.type == "see-also" and one.made_by == MADE_BY]


def comparable(memory: Memory) -> bool:
    """Return whether a memory can be compared with others, where a policy compares any."""
    return not (memory.sensitive or is_turn(memory))


def _same_keys(one: Memory, other: Memory) -> bool:
    """Return whether two memories have the same keys, for which text and author decide."""
    return (one.text, one.author) == (other.text, other.author)


def keys_of(memories: Sequence[Memory]) -> list[tuple[int, ...]]:
    """Return the keys of each memory: those of its claims and those of its sketch."""
    return likeness_keys([(memory.text, memory.author) for memory in memories])


def retells(draft: Draft) -> bool:
    """Return whether a draft says something else than the memory whose place it takes."""
    now, before = draft.memory, draft.replaces
    if before is None:
        return False
    same = (now.text, now.title, now.author, now.sensitive) == (
        before.text,
        before.title,
        before.author,
        before.sensitive,
    )
    return not same or "created_at" in draft.fields or is_turn(now) != is_turn(before)


def _text(memory: Memory, row_id: int, at: datetime | None, place: int) -> Text:
    assert at is not None
    return Text(
        (memory.namespace, memory.id), memory.text, memory.title, memory.author, (at.timestamp(), place, row_id)
    )


def _began(groups: Iterable[Group]) -> Mapping[str, Mapping[str, float]]:
    """Return when the text of each memory began that was compared, by namespace and id; of other namespaces nothing."""
    began: dict[str, dict[str, float]] = defaultdict(dict)
    for text, others in groups:
        for one in (text, *others):
            namespace, id = one.name
            began[namespace][id] = one.at[0]
    return began


def _other(namespace: str, one: Similar, place: int) -> Text:
    return Text((namespace, one.id), one.text, one.title, one.author, (one.at.timestamp(), place, one.row_id))
