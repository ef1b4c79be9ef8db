"""Life: what the verbs do about a memory after it was remembered: its versions, its links, its end."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from semmem.client.connection import Connection
from semmem.model.errors import Conflict, InvalidInput, NotFound, StoreClosed, StoreError
from semmem.model.filters import at_time, one_of, page_limit, page_offset, person, shown_by, string
from semmem.model.history import MADE_BY, Access, Link, Version, checked_link
from semmem.model.process.asker import note_written
from semmem.model.store import Store, life_of
from semmem.model.types import LIST_ORDERS, Filters, ListOrder, Memory, Page, Undecided, masked

__all__ = [
    "forget",
    "forgotten",
    "history",
    "link",
    "links",
    "listed",
    "restore_memory",
    "undecided",
    "unknown",
    "unlink",
    "version_at",
    "with_accesses",
]


def listed(
    mem: Connection,
    namespace: str,
    filters: Filters,
    limit: int,
    cursor: str | None,
    shown: Callable[[Memory], Memory],
    sort_by: ListOrder,
) -> Page:
    """Return a page of memories; see ``Semmem.list``."""
    page_limit("list", limit)
    after = None if cursor is None else string("cursor", cursor)
    if filters and not (filters.titles or filters.tags or filters.sensitive):
        filters = replace(filters, sensitive=False)
    where, order = string("namespace", namespace), one_of("sort_by", sort_by, LIST_ORDERS)
    page = mem.store.list(where, filters, limit, after, order)
    return replace(page, memories=tuple(map(shown, _with_waiting(mem, where, page.memories))))


def with_accesses(mem: Connection, memory: Memory) -> Memory:
    """Return a memory with how often recalls returned it, and when one last did."""
    if mem.store.life is None:
        return memory
    stored = mem.store.life.accesses(memory.namespace, [memory.id]).get(memory.id)
    counted = replace(memory, access_count=0) if stored is None else _with(memory, stored)
    return _with_waiting(mem, memory.namespace, [counted])[0]


def _with_waiting(mem: Connection, namespace: str, memories: Sequence[Memory]) -> Sequence[Memory]:
    """Return memories of one namespace, whose written accesses are known, with those that wait to be written."""
    waiting = mem.accesses.waiting(namespace, [memory.id for memory in memories])
    return [_with(memory, waiting[memory.id]) if memory.id in waiting else memory for memory in memories]


def _with(memory: Memory, access: Access) -> Memory:
    """Return a memory with more accesses than it has."""
    last = access.last if memory.last_accessed is None else max(memory.last_accessed, access.last)
    return replace(memory, access_count=(memory.access_count or 0) + access.count, last_accessed=last)


def forget(
    mem: Connection,
    id: str | None,
    namespace: str,
    filters: Filters,
    everything: bool,
    hard: bool,
    dry_run: bool,
    forgotten_by: str | None,
) -> int:
    """Remove one memory, or all that ``filters`` match; see ``Semmem.forget``."""
    if id is None and not filters and not everything:
        raise InvalidInput("Say what to forget: an id, filters, or everything for the whole namespace.")
    if everything and (id is not None or filters):
        raise InvalidInput("everything is the whole namespace; leave it out to forget by id or filters.")
    if id is not None:
        id = mem.whole_id(namespace, id)
    where, by = string("namespace", namespace), person("forgotten_by", forgotten_by)
    soft = not hard and mem.settings.keep_forgotten_days > 0
    if not dry_run and (everything or not soft):
        mem.accesses.settle(where)
    count = (
        mem.store.forget_namespace(where, dry_run=dry_run)
        if everything
        else mem.store.forget(where, id, filters, dry_run=dry_run, soft=soft, by=by)
    )
    if hard and not dry_run:  # before what was not found: a scrub that failed is made up for by the same call
        _scrub(mem.store)
    if id is not None and count == 0:
        stored = filters and mem.store.payload_hashes([(namespace, id)])
        if stored:
            raise NotFound(
                f"The memory {id!r} in namespace {namespace!r} does not match the filters; nothing was forgotten."
            )
        raise NotFound(f"There is no memory {id!r} in namespace {namespace!r}; nothing was forgotten.")
    if id is not None and not dry_run:
        note_written([(where, id)])
    if count and not dry_run and mem.settings.on_contradiction == "supersede":
        mem.ingest.catch_up(namespace)  # of what is left, other memories may be the newest now
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


def forgotten(mem: Connection, namespace: str, limit: int) -> Sequence[Version]:
    """Return the forgotten memories that can be brought back; see ``Semmem.forgotten``."""
    page_limit("forgotten", limit)
    versions = life_of(mem.store).all_forgotten(string("namespace", namespace), limit)
    return [replace(one, memory=masked(one.memory)) for one in versions]


def history(
    mem: Connection, id: str, namespace: str, reveal: bool, limit: int | None, offset: int
) -> Sequence[Version]:
    """Return the versions of a memory; see ``Semmem.history``."""
    where, shown = string("namespace", namespace), shown_by(reveal)
    if limit is not None:
        page_limit("history", limit)
    page_offset(offset)
    life, id = life_of(mem.store), mem.whole_id(namespace, id)
    versions = life.history(where, id, limit, offset)
    if not mem.store.get(where, [id]):  # what has expired is not told; earlier lives of the id are
        versions = [one for one in versions if one.forgotten_at is not None]
    if not versions and not (offset and life.history(where, id, 1)):
        raise unknown(mem, id, namespace)
    return [replace(one, memory=shown(one.memory), changed=_shown_changes(one, reveal)) for one in versions]


def _shown_changes(version: Version, reveal: bool) -> tuple[str, ...]:
    """Return the fields that a version changed, without a text that is not shown."""
    hidden = version.memory.sensitive and not reveal
    return tuple(name for name in version.changed if not (hidden and name == "text"))


def restore_memory(mem: Connection, id: str, namespace: str) -> Memory:
    """Bring a forgotten memory back; see ``Semmem.restore_memory``."""
    where, name = namespace, mem.whole_id(namespace, id)
    current = mem.store.stored_memories([(where, name)])  # what has expired under this id is swept, with all of it
    forgotten = life_of(mem.store).forgotten(where, name)
    if current:
        again = "it has been remembered anew since it was forgotten" if forgotten else "it is not forgotten"
        raise Conflict(f"There is a memory {id!r} in namespace {namespace!r}: {again}; nothing was changed.")
    if forgotten is None:
        raise NotFound(
            f"There is no forgotten memory {id!r} in namespace {namespace!r}: there was none, or it is gone."
        )
    from semmem.write.versions import restored

    embedder = None if mem.store.vectors is None else mem.store.vectors.embedder()
    return masked(mem.ingest.restore(restored(forgotten, embedder, datetime.now(UTC))))


def version_at(mem: Connection, namespace: str, id: str, as_of: Any) -> Memory:
    """Return the version of a memory that was valid at a time. Raises NotFound, InvalidInput."""
    at = at_time("as_of", as_of)
    version = life_of(mem.store).version_at(namespace, id, at)
    if version is None:
        raise NotFound(
            f"No version of {id!r} in namespace {namespace!r} was valid at {at.isoformat()}; see its history."
        )
    return version


def link(mem: Connection, id: str, type: str, to: str, namespace: str, made_by: str | None) -> Link:
    """Link two memories; see ``Semmem.link``."""
    from semmem.write.likeness import fall_with

    row = _link(mem, id, type, to, namespace, made_by)
    (link,) = life_of(mem.store).link(row.namespace, [row])
    if more := fall_with(mem.store, link):
        life_of(mem.store).link(row.namespace, more, skip=True)
    return link


def unlink(mem: Connection, id: str, type: str, to: str, namespace: str) -> bool:
    """Remove a link; see ``Semmem.unlink``."""
    from semmem.write.likeness import fall_with

    row = _link(mem, id, type, to, namespace)
    fallen = fall_with(mem.store, row)
    was_linked = life_of(mem.store).unlink(row.namespace, row.from_id, row.type, row.to_id)
    if was_linked and fallen:
        _unlink_ours(mem, fallen)
    if not was_linked:
        _check_stored(mem, row.from_id, row.namespace)
        _check_stored(mem, row.to_id, row.namespace)
    return was_linked


def _unlink_ours(mem: Connection, links: Sequence[Link]) -> None:
    """Remove those of some links from one memory that semmem made."""
    stored = life_of(mem.store).links(links[0].namespace, [links[0].from_id])
    ours = {(one.type, one.to_id) for one in stored if one.made_by == MADE_BY}
    for one in links:
        if (one.type, one.to_id) in ours:
            life_of(mem.store).unlink(one.namespace, one.from_id, one.type, one.to_id)


def links(mem: Connection, id: str, namespace: str) -> Sequence[Link]:
    """Return the links from and to a memory; see ``Semmem.links``."""
    id = mem.whole_id(namespace, id)
    links = life_of(mem.store).links(namespace, [id])
    if not links:
        _check_stored(mem, id, namespace)
    return links


def undecided(mem: Connection, type: Undecided, namespace: str, limit: int) -> Sequence[Link]:
    """Return the links of a type that wait for a decision, newest first. Raises InvalidInput."""
    page_limit("undecided", limit)
    return life_of(mem.store).undecided(string("namespace", namespace), type, limit)


def _link(mem: Connection, id: str, type: str, to: str, namespace: str, made_by: str | None = None) -> Link:
    ends = mem.whole_id(namespace, id), mem.whole_id(namespace, to, "to")
    return checked_link(namespace, ends[0], type, ends[1], made_by)


def _check_stored(mem: Connection, id: str, namespace: str) -> None:
    if not mem.store.get(namespace, [id]):
        raise unknown(mem, id, namespace)


def unknown(mem: Connection, id: str, namespace: str) -> NotFound:
    """Return the error of an id that no memory has; it says what became of a memory that had it."""
    from semmem.read.explanation.absence import what_became

    became = what_became(mem.store, namespace, id)
    return NotFound(
        became or f"There is no memory {id!r} in namespace {namespace!r}; `semmem list` shows what is stored."
    )
