"""What becomes of memories, in plain dictionaries: what every store is compared with, verb by verb."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from copy import deepcopy
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from semmem.model.errors import Conflict, InvalidInput, NotFound
from semmem.model.types import Memory

__all__ = ["Expected", "Model", "Place"]

Expected = tuple[Memory, tuple[str, ...], str | None, bool, str | None]
"""A version: the memory, which fields changed, by whom, whether it is forgotten, and by whom."""
_PLACE = ("id", "namespace", "updated_at", "version", "parent_id", "seen_count", "last_seen", "contradicts")
_FIELDS = [f.name for f in dataclasses.fields(Memory) if f.name not in _PLACE]


@dataclass
class Past:
    """A version that is not the memory any more; ``forgetting`` numbers the forgetting that took it, None for none."""

    memory: Memory
    ended_by: str | None
    forgetting: int | None = None


@dataclass
class Place:
    """One namespace."""

    memories: dict[str, Memory] = field(default_factory=dict)
    past: dict[str, list[Past]] = field(default_factory=dict)
    ties: dict[tuple[str, str, str], str | None] = field(default_factory=dict)
    accesses: Counter[str] = field(default_factory=Counter)
    waiting: Counter[str] = field(default_factory=Counter)  # accesses that are not written yet

    def holds(self) -> bool:
        return bool(self.memories or any(self.past.values()) or self.ties)


class Model:
    """The verbs as they are written down. Each raises the class of error that the real one is to raise."""

    def __init__(self) -> None:
        self.places: dict[str, Place] = {}
        self._forgettings = 0

    def place(self, namespace: str) -> Place:
        return self.places.setdefault(namespace, Place())

    # ------------------------------------------------------------------ verbs that write

    def remember(self, memory: Memory) -> Memory:
        place = self.place(memory.namespace)
        there = place.memories.get(memory.id)
        if there is not None:
            if all(getattr(there, name) == getattr(memory, name) for name in _FIELDS):
                return there
            raise Conflict("other content")
        before = [one.memory.version for one in place.past.get(memory.id, ())]
        place.memories[memory.id] = replace(memory, version=max(before, default=0) + 1, updated_at=memory.created_at)
        return place.memories[memory.id]

    def update(
        self, namespace: str, id: str, changes: Mapping[str, Any], expected: int | None, by: str | None, now: datetime
    ) -> Memory:
        place = self.place(namespace)
        there = self.get(namespace, id)
        if not _ordered(changes.get("valid_from"), changes.get("valid_to")):
            raise InvalidInput("ends before it begins")
        if expected not in (None, there.version):
            raise Conflict("another version")
        if all(getattr(there, name) == value for name, value in changes.items()):
            return there
        after = replace(there, **changes)
        if after.text != there.text:
            after = replace(
                after,
                valid_from=changes.get("valid_from"),
                valid_to=after.valid_to if "valid_to" in changes or (after.valid_to or now) > now else None,
            )
        if not _ordered(after.valid_from, after.valid_to):
            raise InvalidInput("ends before it begins")
        place.past.setdefault(id, []).append(Past(there, by))
        place.memories[id] = replace(after, version=there.version + 1, updated_at=None)
        return place.memories[id]

    def forget(self, namespace: str, id: str | None, sessions: Collection[str], *, hard: bool, by: str | None) -> int:
        place = self.place(namespace)

        def matches(memory: Memory) -> bool:
            return (id is None or memory.id == id) and (not sessions or memory.session in sessions)

        if hard:
            self.write([namespace])
        going = {one.id for one in place.memories.values() if matches(one)}
        lives: set[tuple[str, int]] = set()
        if hard:  # of an earlier life the last version decides
            lasts = {(name, one.forgetting): one.memory for name, past in place.past.items() for one in past}
            lives = {(name, at) for (name, at), one in lasts.items() if at is not None and matches(one)}
        living = set(going)
        going |= {name for name, _ in lives}
        if id is not None and not going:
            raise NotFound("no such memory")
        for name in going:
            there = place.memories.get(name)
            if there is not None and matches(there):
                del place.memories[name]
                if not hard:
                    self._forgettings += 1
                    place.past.setdefault(name, []).append(Past(there, by))
                    for one in place.past[name]:
                        one.forgetting = self._forgettings if one.forgetting is None else one.forgetting
        if hard:
            self._purge(place, living, lives)
        return len(going)

    def restore_memory(self, namespace: str, id: str) -> Memory:
        place = self.place(namespace)
        if id in place.memories:
            raise Conflict("there is one")
        lives = place.past.get(id, [])
        last = max((one for one in lives if one.forgetting is not None), key=lambda p: p.memory.version, default=None)
        if last is None:
            raise NotFound("nothing is kept")
        lives.remove(last)
        for one in lives:
            one.forgetting = None if one.forgetting == last.forgetting else one.forgetting
        place.memories[id] = last.memory
        return last.memory

    def expire(self, namespace: str, id: str) -> None:
        """Let the time of a memory be over: it goes, with its versions and links."""
        place = self.place(namespace)
        del place.memories[id]
        self._purge(place, [id], ())

    def sweep(self) -> int:
        """Take away all that is forgotten; return how many versions went."""
        count = 0
        for place in self.places.values():
            lives = [(name, one.forgetting) for name, past in place.past.items() for one in past]
            gone = [(name, at) for name, at in lives if at is not None]
            count += len(gone)
            self._purge(place, (), set(gone))
        return count

    def _purge(self, place: Place, living: Collection[str], lives: Collection[tuple[str, int]]) -> None:
        for name in {*living, *(name for name, _ in lives)}:
            past = place.past.get(name, ())
            kept = [one for one in past if (one.forgetting is not None or name not in living)]
            place.past[name] = [one for one in kept if (name, one.forgetting) not in lives]
        ids = {*living, *(name for name, _ in lives)}
        gone = {name for name in ids - place.memories.keys() if not place.past[name]}
        place.ties = {key: by for key, by in place.ties.items() if not gone & {key[0], key[2]}}
        for name in ids - place.memories.keys():
            del place.accesses[name], place.waiting[name]

    # ------------------------------------------------------------------ links

    def link(self, namespace: str, id: str, type: str, to: str, by: str | None) -> tuple[str, str, str]:
        place = self.place(namespace)
        if id == to:
            raise InvalidInput("itself")
        if not {id, to} <= place.memories.keys():
            raise NotFound("no such memory")
        if type == "supersedes" and (id, type, to) not in place.ties:
            reached, found = {to}, {to}
            while found:
                found = {o for n, kind, o in place.ties if kind == type and n in found} - reached
                reached |= found
            if id in reached:
                raise InvalidInput("a circle")
        place.ties.setdefault((id, type, to), by)
        return id, type, to

    def unlink(self, namespace: str, id: str, type: str, to: str) -> bool:
        place = self.place(namespace)
        if id == to:
            raise InvalidInput("itself")
        if (id, type, to) in place.ties:
            del place.ties[id, type, to]
            return True
        if not {id, to} <= place.memories.keys():
            raise NotFound("no such memory")
        return False

    # ------------------------------------------------------------------ namespaces

    def move(self, old: str, new: str, *, stay: bool, logged: bool) -> int:
        """``logged``: recalls of the new name are in the log, also those that found nothing."""
        if old == new:
            raise InvalidInput("the same")
        self.write([old])
        if self.place(new).holds() or logged:
            raise Conflict("holds something")
        count = len(self.place(old).memories)
        if not count:
            raise NotFound("no memories")
        moved = deepcopy(self.places[old])
        moved.memories = {name: replace(one, namespace=new) for name, one in moved.memories.items()}
        for past in moved.past.values():
            for one in past:
                one.memory = replace(one.memory, namespace=new)
        self.places[new] = moved
        if not stay:
            self.places[old] = Place()
        return count

    def drop(self, namespace: str) -> int:
        count = len(self.place(namespace).memories)
        self.places[namespace] = Place()
        return count

    # ------------------------------------------------------------------ verbs that read

    def returned(self, namespace: str, ids: Iterable[str]) -> None:
        """Count one access of each memory that a recall returned."""
        self.place(namespace).waiting.update(ids)

    def write(self, namespaces: Iterable[str] | None = None) -> None:
        """Write what was counted of memories that are there; nothing is kept of what was counted of others."""
        for namespace in list(self.places) if namespaces is None else namespaces:
            place = self.place(namespace)
            place.accesses.update({id: count for id, count in place.waiting.items() if id in place.memories})
            place.waiting.clear()

    def accesses(self, namespace: str) -> dict[str, int]:
        place = self.place(namespace)
        return {id: place.accesses[id] + place.waiting[id] for id in place.memories}

    def get(self, namespace: str, id: str) -> Memory:
        there = self.place(namespace).memories.get(id)
        if there is None:
            raise NotFound("no such memory")
        return there

    def as_of(self, namespace: str, id: str, at: datetime) -> Memory:
        there = self.get(namespace, id)
        lives = [one.memory for one in self.place(namespace).past.get(id, ()) if one.forgetting is None]
        begun = [m for m in (*lives, there) if (m.valid_from or m.updated_at or at) <= at]
        last = max(begun, key=lambda m: m.version, default=None)
        if last is None or (last.valid_to is not None and last.valid_to <= at):
            raise NotFound("none was valid")
        return last

    def list(self, namespace: str) -> list[Memory]:
        return sorted(self.place(namespace).memories.values(), key=lambda m: (m.created_at, m.id), reverse=True)

    def history(self, namespace: str, id: str) -> list[Expected]:
        place = self.place(namespace)
        lives = [*place.past.get(id, ())] + [Past(m, None) for m in place.memories.values() if m.id == id]
        lives.sort(key=lambda one: one.memory.version)
        if not lives:
            raise NotFound("no such memory")
        found: list[Expected] = []
        for at, one in enumerate(lives):
            before = lives[at - 1] if at and lives[at - 1].forgetting == one.forgetting else None
            behind = lives[at + 1] if at + 1 < len(lives) else None
            last = behind is None or behind.forgetting != one.forgetting
            changed: tuple[str, ...] = ()
            if before is not None:
                changed = tuple(n for n in _FIELDS if getattr(before.memory, n) != getattr(one.memory, n))
            forgotten = one.forgetting is not None
            by = before.ended_by if before is not None else None
            found.append((one.memory, changed, by, forgotten, one.ended_by if forgotten and last else None))
        return found

    def links(self, namespace: str, id: str) -> list[tuple[str, str, str, str | None]]:
        place = self.place(namespace)
        there = place.memories.keys()
        found = [(*key, by) for key, by in place.ties.items() if id in (key[0], key[2]) and {key[0], key[2]} <= there]
        if not found and id not in there:
            raise NotFound("no such memory")
        return sorted(found)

    def texts(self, namespace: str) -> tuple[dict[str, str], set[str]]:
        """Return the id of each text that is there now, and the texts that are not there any more."""
        place = self.place(namespace)
        now = {one.text: one.id for one in place.memories.values()}
        return now, {one.memory.text for past in place.past.values() for one in past} - now.keys()


def _ordered(begins: datetime | None, ends: datetime | None) -> bool:
    return begins is None or ends is None or begins < ends
