"""Write the memories of a source: the write pipeline with a policy for changed memories, and a prune at the end.

Items are compared with the store field by field, so reading a file a second time neither extracts nor embeds anything
again. A changed memory of the source is replaced in the transaction that writes its new content.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from semmem.model.errors import InvalidInput, SemmemError
from semmem.model.filters import matches, within
from semmem.model.history import MADE_BY, Link, checked_link
from semmem.model.imported_items import EXPORTED, exported_item
from semmem.model.store import LinkStore, Store, life_of
from semmem.model.types import MOST_REJECTED, Filters, Memory, Rejected, bound_rejected
from semmem.write.ingest import Ingest
from semmem.write.items import given_id
from semmem.write.plan import Policy, check_batches

__all__ = ["ImportReport", "import_items"]

_LINKS_AT_ONCE = 1_000


@dataclass(frozen=True, slots=True)
class ImportReport:
    """The result of ``import_items``.

    ``replaced`` memories had other content before; ``gone`` are ids that the source no longer has. ``read`` counts the
    items of the input: remembered, unchanged, replaced or rejected. ``rejected`` holds the first ``MOST_REJECTED``
    rejected items, ``more_rejected`` is the number of the others. ``linked`` counts the links that came with the items;
    ``unlinked`` are sentences about the first links that could not be made, for example to a memory that does not
    exist.
    """

    remembered: int = 0
    unchanged: int = 0
    replaced: int = 0
    rejected: tuple[Rejected, ...] = ()
    gone: tuple[str, ...] = ()
    pruned: int = 0
    seconds: float = 0.0
    degraded: Mapping[str, str] = field(default_factory=dict)
    more_rejected: int = 0
    linked: int = 0
    unlinked: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        bound_rejected(self)

    @property
    def read(self) -> int:
        """The number of items read from the input."""
        return self.remembered + self.unchanged + self.replaced + len(self.rejected) + self.more_rejected


class _Bringing:
    """One call of ``import_items``: the ids it has read, and the links that came with its items.

    ``repeated`` are stored memories that items without an id say again; an id may still come with another item.
    """

    def __init__(self, ingest: Ingest, namespace: str) -> None:
        self._namespace = namespace
        self.names: set[tuple[str, str]] = set()
        self.repeated: set[tuple[str, str]] = set()
        self.links: dict[str, dict[tuple[Any, ...], Link]] = {}
        self.unlinked: list[str] = []
        self.ingest = ingest.in_bulk()

    def tie(self, batch: Iterable[tuple[int, Any]], rejected: Collection[int]) -> None:
        """Collect the links of the stored items; the memory that a link leads to may come in a later batch.

        ``batch`` has (position, item), and ``rejected`` the positions of the items that were not stored.
        """
        for index, item in batch:
            for fields in getattr(item, "links", ()):
                id, where = given_id(item), item.get("namespace") or self._namespace
                if id is None or index in rejected:
                    continue
                try:
                    link = checked_link(where, id, **fields)
                except (SemmemError, TypeError) as error:
                    reason = error.message if isinstance(error, SemmemError) else f"{fields!r} is no link."
                    self.unlinked.append(f"{id}: {reason}")
                else:
                    self.links.setdefault(where, {})[link.key] = link

    def link(self, store: Store) -> int:
        """Make the collected links; return how many exist now. Links that cannot be made are noted in ``unlinked``."""
        count = 0
        for where, by_key in sorted(self.links.items()):
            rows = list(by_key.values())
            self._turn(life_of(store), where, by_key)
            for start in range(0, len(rows), _LINKS_AT_ONCE):
                some = rows[start : start + _LINKS_AT_ONCE]
                new_links = life_of(store).link(where, some, skip=True)
                count += len(new_links)
                missing = {row.key for row in some} - {row.key for row in new_links}
                for one, type, other in sorted(missing):
                    self.unlinked.append(f"{one} {type} {other}: {other} is not there, or the link is not allowed.")
        return count

    def _turn(self, life: LinkStore, where: str, by_key: Mapping[tuple[Any, ...], Link]) -> None:
        """Remove links that semmem made in the other direction just now: of equal times, the source's order decides."""
        turned = {(link.to_id, link.type, link.from_id) for link in by_key.values() if link.made_by == MADE_BY} - {
            *by_key
        }
        ends = sorted({one for one, _, _ in turned})
        for start in range(0, len(ends), _LINKS_AT_ONCE):
            for link in life.links(where, ends[start : start + _LINKS_AT_ONCE]):
                if link.key in turned and link.made_by == MADE_BY:
                    life.unlink(where, *link.key)

    def meet(self, items: Iterable[Any]) -> None:
        """Note the ids that the source has, also those of items that cannot be stored this time."""
        for item in items:
            id = given_id(item)
            if id is not None:
                where = item.get("namespace")
                self.names.add((where if where and isinstance(where, str) else self._namespace, id))


def import_items(
    store: Store,
    ingest: Ingest,
    items: Iterable[Mapping[str, Any]],
    *,
    namespace: str,
    batch_size: int,
    on_error: Literal["abort", "skip"],
    owned: Sequence[Filters],
    replace_changed: bool,
    overwrite: bool,
    prune: bool,
    soft: bool,
    keep: Collection[str],
    mark: Mapping[str, Any],
    progress: Callable[[ImportReport], None] | None,
) -> ImportReport:
    """Store a stream of items batch by batch; see Semmem.import_items for the arguments.

    With ``soft``, pruned memories can be restored for a while. Raises InvalidInput for a bad argument or an empty
    source that is to be pruned, and with ``on_error="abort"`` BadItem or Conflict for the first bad item.
    """
    check_batches(batch_size, on_error)
    if isinstance(items, Mapping | str | bytes) or not isinstance(items, Iterable):
        raise InvalidInput(f"import_items takes a list or a stream of items, not one {type(items).__name__}.")
    for name, value in (("replace", replace_changed), ("overwrite", overwrite), ("prune", prune)):
        if not isinstance(value, bool):
            raise InvalidInput(f"{name} must be True or False, not {value!r}; nothing was stored.")
    if isinstance(keep, str):
        raise InvalidInput("keep must be a list of ids, not one string; nothing was stored.")
    if (replace_changed or prune) and not owned:
        raise InvalidInput(
            "Pass owned, filters that say which memories belong to the source; only these may be replaced or pruned."
        )
    ingest.check_mark(mark)
    started = time.monotonic()

    def own(memory: Memory) -> bool:
        return any(matches(memory, within(one, (memory.namespace,))) for one in owned)

    # before the source is read: what another import of it stores from now on, this one may not have read
    before = {memory.id for one in owned for memory in _all(store, namespace, one)}
    may_replace = own if replace_changed else None
    policy = Policy(True, may_replace, mark, keep_edits=not overwrite, source_type="imported")
    work = _Bringing(ingest, namespace)
    report = ImportReport()
    try:
        with closing(work.ingest.prepared(map(_importable, items), namespace, batch_size, policy)) as coming:
            for batch in coming:
                one = work.ingest.store_batch(batch, on_error, policy, work.names)
                work.meet(item for _, item in batch.items)
                work.tie(batch.items, {row.position for row in one.rejected})
                work.names |= one.names
                work.repeated |= one.repeated
                report = ImportReport(
                    report.remembered + one.remembered,
                    report.unchanged + one.unchanged,
                    report.replaced + one.replaced,
                    report.rejected + one.rejected,
                    more_rejected=report.more_rejected,
                    seconds=time.monotonic() - started,
                    degraded={**report.degraded, **one.degraded},
                )
                if progress is not None:
                    progress(report)
    finally:
        left = store.end_bulk(work.ingest.bulk) if work.ingest.bulk else {}
    report = replace(report, degraded={**report.degraded, **left})
    report = replace(report, linked=work.link(store), unlinked=tuple(work.unlinked[:MOST_REJECTED]))
    missing: tuple[str, ...] = ()
    pruned = 0
    if owned:
        there = {id for where, id in work.names | work.repeated if where == namespace}
        missing = _present(store, namespace, before - there - set(keep))
        if prune and missing and not work.names and not keep:
            raise InvalidInput(
                f"The source is empty, so its {len(missing)} memories are not pruned; if that is right, "
                "forget them by a filter."
            )
        if prune and missing:
            # by the filters again: a memory that somebody has taken out of the source meanwhile stays
            pruned = sum(store.forget(namespace, missing, one, dry_run=False, soft=soft) for one in owned)
    return replace(report, gone=missing, pruned=pruned, seconds=time.monotonic() - started)


def _present(store: Store, namespace: str, ids: Collection[str]) -> tuple[str, ...]:
    """Return the ids that somebody has not forgotten meanwhile, in order."""
    return tuple(sorted(id for _, id in store.payload_hashes([(namespace, id) for id in ids]))) if ids else ()


def _importable(item: object) -> object:
    """Return an item; of a row of an export, only what ``remember`` takes."""
    if isinstance(item, Mapping) and not EXPORTED.isdisjoint(item):
        return exported_item("", item)
    return item


def _all(store: Store, namespace: str, filters: Filters) -> Iterator[Memory]:
    cursor: str | None = None
    while True:
        page = store.list(namespace, filters, 200, cursor)
        yield from page
        cursor = page.cursor
        if cursor is None:
            return
