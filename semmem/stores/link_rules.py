"""The rules for links between memories, the same in every store. Pure: no store, no clock."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from semmem.model.errors import InvalidInput, NotFound
from semmem.model.history import DEEPEST, MADE_BY, Link

__all__ = ["Linking", "fates_of", "left_alone", "linking", "types_of"]


class Linking(NamedTuple):
    """The links to be made, and which links of ``supersedes``, as (newer, older), are to go for them."""

    links: Sequence[Link]
    lifted: Sequence[tuple[str, str]] = ()


def linking(
    namespace: str,
    rows: Sequence[Link],
    ids: Collection[str],
    superseded: Iterable[tuple[str, str, str | None]],
    *,
    skip: bool = False,
) -> Linking:
    """Return which of ``rows`` may be linked: all or an error, or with ``skip`` those that may.

    ``ids`` are those that exist, ``superseded`` the links (newer, older, maker) around the new ones. Where a
    chain would have more than DEEPEST links, a memory that stands too deep is lifted: a memory half as deep supersedes
    it directly, and the link that led to it is removed, if semmem made it. So the newest memory stays above all others,
    and the newest half dozen stay in order. Raises NotFound for a memory that does not exist, and InvalidInput for a
    link that would close a circle of superseding or make a chain that is too long and cannot be shortened so.
    """
    chains = _Chains()
    for newer, older, made_by in superseded:
        chains.add(newer, older, ours=made_by == MADE_BY)
    stored = set(chains.ours)
    links: dict[tuple[str, str, str], Link] = {}
    for row in rows:
        error: NotFound | InvalidInput | None = _missing(namespace, row, ids)
        lifts: Sequence[tuple[str, str, bool]] = ()
        if error is None and row.type == "supersedes" and row.to_id not in chains.older.get(row.from_id, ()):
            error, lifts = chains.joined(row)
        if error is None:
            links[row.key] = row
            for newer, older, comes in lifts:
                key = newer, "supersedes", older
                if comes:
                    links[key] = links.get(key) or Link(namespace, newer, "supersedes", older, made_by=MADE_BY)
                else:
                    links.pop(key, None)
        elif not skip:
            raise error
    removals = {pair for pair in stored if pair[1] not in chains.older.get(pair[0], ())}
    return Linking(list(links.values()), sorted(removals))


def left_alone(rows: Iterable[Link], ids: Collection[str]) -> set[str]:
    """Return which memories, of those ``ids`` that exist, cannot be linked because the one at the other end does not.

    They are to be compared again: a memory keeps what it contradicts and what contradicts it apart, and where it goes
    before it is linked, no link tells afterwards what it kept apart.
    """
    changes = ((row.from_id, row.to_id) for row in rows if row.type in ("contradicts", "supersedes"))
    return {id for ends in changes if not all(end in ids for end in ends) for id in ends if id in ids}


def fates_of(additions: Iterable[tuple[str, str, str]], removals: Iterable[tuple[str, str, str]]) -> dict[str, str]:
    """Return what became of each end of links (from, type, to): *linked* or *unlinked*, with the types."""
    types: dict[tuple[str, str], set[str]] = defaultdict(set)
    for kind, links in (("linked", additions), ("unlinked", removals)):
        for from_id, type, to_id in links:
            for id in (from_id, to_id):
                types[id, kind].add(type)
    return {
        id: f"{kind} {','.join(sorted(some))}"
        for (id, kind), some in types.items()
        if kind == "linked" or (id, "linked") not in types
    }


def types_of(written: str | None) -> tuple[str, ...]:
    """Return the types of links as ``fates_of`` has them behind the kind of a change."""
    return tuple(written.split(",")) if written else ()


class _Chains:
    """What supersedes what around some memories, and which of these links semmem made."""

    def __init__(self) -> None:
        self.older: dict[str, set[str]] = {}
        self.newer: dict[str, set[str]] = {}
        self.ours: set[tuple[str, str]] = set()

    def add(self, newer: str, older: str, *, ours: bool) -> None:
        self.older.setdefault(newer, set()).add(older)
        self.newer.setdefault(older, set()).add(newer)
        if ours:
            self.ours.add((newer, older))

    def remove(self, newer: str, older: str) -> None:
        self.older[newer].discard(older)
        self.newer[older].discard(newer)
        self.ours.discard((newer, older))

    def joined(self, row: Link) -> tuple[InvalidInput | None, Sequence[tuple[str, str, bool]]]:
        """Add a link; return why it may not be, and which links (newer, older, whether it comes) change for it."""
        if (error := _circle(row, self.older)) is not None:
            return error, ()
        ours, pair = row.made_by == MADE_BY, (row.from_id, row.to_id)
        deep = len(_levels(row.from_id, self.newer)) + len(_levels(row.to_id, self.older)) - 1
        self.add(*pair, ours=ours)
        if deep <= DEEPEST:
            return None, ()
        tops = [id for level in _levels(row.from_id, self.newer) for id in level if not self.newer.get(id)]
        changes: list[tuple[str, str, bool]] = []
        depth: dict[str, int] = dict.fromkeys(tops, 0)
        for id in self._order(tops):
            if id in depth:
                continue
            above = {one: depth[one] for one in self.newer[id] if one in depth}
            for one in [one for one, deep in above.items() if deep >= DEEPEST]:
                if (one, id) not in self.ours:
                    self._undo(pair, changes)
                    return _too_deep(row, deep), ()
                for over in self._half_way(one, tops, depth):
                    if over not in self.newer[id]:
                        self.add(over, id, ours=True)
                        changes.append((over, id, True))
                    above[over] = depth[over]
                self.remove(one, id)
                changes.append((one, id, False))
                del above[one]
            depth[id] = max(above.values()) + 1
        return None, changes

    def _undo(self, pair: tuple[str, str], changes: Sequence[tuple[str, str, bool]]) -> None:
        for newer, older, comes in reversed(changes):
            if comes:
                self.remove(newer, older)
            else:
                self.add(newer, older, ours=True)
        self.remove(*pair)

    def _half_way(self, id: str, tops: Sequence[str], depth: Mapping[str, int]) -> list[str]:
        """Return what supersedes ``id`` half as deep as a chain may be; of each top above it at least the top."""
        over = {one for level in _levels(id, self.newer) for one in level if depth.get(one, 0) == DEEPEST // 2}
        ids: set[str] = set()
        for top in tops:
            below = self._below(top)
            if id in below:
                ids |= (over & below) or {top}
        return sorted(ids)

    def _below(self, id: str) -> set[str]:
        ids, edge = {id}, {id}
        while edge := {older for one in edge for older in self.older.get(one, ())} - ids:
            ids |= edge
        return ids

    def _order(self, tops: Sequence[str]) -> list[str]:
        """Return all that ``tops`` supersede, and they themselves, each behind what supersedes it among these."""
        reached = set().union(*map(self._below, tops))
        counts = {id: len(self.newer.get(id, set()) & reached) for id in reached}
        edge = sorted(id for id, count in counts.items() if not count)
        order: list[str] = []
        while edge:
            order += edge
            behind = [older for one in edge for older in self.older.get(one, ())]
            for older in behind:
                counts[older] -= 1
            edge = sorted({older for older in behind if not counts[older]})
        return order


def _circle(row: Link, older: Mapping[str, Collection[str]]) -> InvalidInput | None:
    if row.from_id not in {id for level in _levels(row.to_id, older) for id in level}:
        return None
    return InvalidInput(
        f"{row.from_id!r} cannot supersede {row.to_id!r}, which supersedes it, directly or through others; "
        f"nothing was linked, `semmem links` shows the links."
    )


def _too_deep(row: Link, deep: int) -> InvalidInput:
    return InvalidInput(
        f"With {row.from_id!r} superseding {row.to_id!r}, {deep} links would be in one chain, and at most "
        f"{DEEPEST} may; nothing was linked. Let the newest supersede the oldest directly."
    )


def _missing(namespace: str, row: Link, ids: Collection[str]) -> NotFound | None:
    for id in (row.from_id, row.to_id):
        if id not in ids:
            return NotFound(
                f"There is no memory {id!r} in namespace {namespace!r}, so nothing was linked; `semmem list` shows "
                "what is stored."
            )
    return None


def _levels(id: str, ties: Mapping[str, Collection[str]]) -> list[set[str]]:
    """Return the memories reached from ``id`` by each number of links, ``id`` first; one may be there several times."""
    levels = [{id}]
    while further := {other for one in levels[-1] for other in ties.get(one, ())}:
        levels.append(further)
        if len(levels) > 2 * DEEPEST:  # no store has a chain this long
            break
    return levels
