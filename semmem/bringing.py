"""Memories on their way in from files: what is there already costs nothing, what changed replaces it where it may.

``remember_many`` with a look at the store before it, so that a file that is read again is compared field by field and
neither extracted nor embedded anew.
"""

from __future__ import annotations

import base64
import binascii
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from semmem.contract import matches, within
from semmem.drafts import Draft, drafted
from semmem.embedders.known import Known
from semmem.errors import BadItem, Conflict, InvalidInput
from semmem.ingest import Ingest, batches
from semmem.protocols import Embedder, Store
from semmem.types import Filters, Memory, Rejected
from semmem.upkeep import Upkeep

__all__ = ["BroughtIn", "bring_in"]

_COMPARED = ("text", "title", "author", "session", "position", "source", "tags", "importance")


@dataclass(frozen=True, slots=True)
class BroughtIn:
    """What ``bring_in`` did. ``replaced`` memories had other content before; ``gone`` are ids the source has no more.

    ``read``, the items read from the input, is remembered + unchanged + replaced + len(rejected).
    """

    remembered: int = 0
    unchanged: int = 0
    replaced: int = 0
    rejected: tuple[Rejected, ...] = ()
    gone: tuple[str, ...] = ()
    pruned: int = 0
    seconds: float = 0.0
    degraded: Mapping[str, str] = field(default_factory=dict)

    @property
    def read(self) -> int:
        """Items read from the input."""
        return self.remembered + self.unchanged + self.replaced + len(self.rejected)


class _Bringing:
    """One call of ``bring_in``: what it works with, and what it has seen."""

    def __init__(
        self, store: Store, ingest: Ingest, upkeep: Upkeep, filler: Callable[[], Embedder | str], owned: Filters
    ) -> None:
        self.store = store
        self.upkeep = upkeep
        self.owned = owned
        self.vectors: dict[tuple[str, str], bytes] = {}
        self.seen: set[str] = set()
        self._filler = filler
        self.ingest = ingest.with_embedder(self.embedder)

    def embedder(self) -> Embedder | str:
        """Return the embedder, which knows the vectors that came with the batch."""
        found = self._filler()
        return found if isinstance(found, str) or not self.vectors else Known(found, self.vectors)

    def take(self, item: Any) -> None:
        """Keep the vectors that travel with an item until its batch is written."""
        for text, packed in getattr(item, "vectors", {}).items():
            try:
                self.vectors[item.embedder, text] = base64.b64decode(packed, validate=True)
            except (binascii.Error, TypeError, ValueError):
                continue  # a vector that cannot be read is made anew

    def forget(self, namespace: str, ids: Iterable[str]) -> int:
        """Forget memories one by one; return how many were there."""
        gone = sum(self.store.forget(namespace, id, Filters(), dry_run=False) for id in ids)
        if gone:
            self.upkeep.forgotten(namespace)
        return gone


def bring_in(
    store: Store,
    ingest: Ingest,
    upkeep: Upkeep,
    filler: Callable[[], Embedder | str],
    items: Iterable[Mapping[str, Any]],
    *,
    namespace: str,
    batch_size: int,
    on_error: Literal["abort", "skip"],
    owned: Filters,
    replace_changed: bool,
    prune: bool,
    keep: Collection[str],
    progress: Callable[[BroughtIn], None] | None,
) -> BroughtIn:
    """Store a stream of items, one batch after the other; see Keeping.bring_in for what the arguments mean."""
    if on_error not in ("abort", "skip"):
        raise InvalidInput(f'on_error must be "abort" or "skip", not {on_error!r}.')
    if isinstance(batch_size, bool) or not isinstance(batch_size, int) or not 1 <= batch_size <= 100_000:
        raise InvalidInput(f"batch_size must be a whole number from 1 to 100000, not {batch_size!r}.")
    if (replace_changed or prune) and not owned:
        raise InvalidInput("Say with owned which memories are the source's; only these may be replaced or pruned.")
    started = time.monotonic()
    work = _Bringing(store, ingest, upkeep, filler, owned)
    done = BroughtIn()
    for batch in batches(enumerate(items), batch_size):
        one = _batch(work, batch, namespace, on_error, replace_changed)
        done = BroughtIn(
            done.remembered + one.remembered,
            done.unchanged + one.unchanged,
            done.replaced + one.replaced,
            done.rejected + one.rejected,
            seconds=time.monotonic() - started,
            degraded={**done.degraded, **one.degraded},
        )
        if progress is not None:
            progress(done)
    gone: tuple[str, ...] = ()
    pruned = 0
    if owned:
        there = {memory.id for memory in _all(store, namespace, owned)}
        gone = tuple(sorted(there - work.seen - set(keep)))
        if prune and gone and not work.seen and not keep:
            raise InvalidInput(
                f"The source holds nothing at all, so its {len(gone)} memories are not pruned; if it is really empty, "
                "forget them by a filter."
            )
        pruned = work.forget(namespace, gone) if prune else 0
    return replace(done, gone=gone, pruned=pruned, seconds=time.monotonic() - started)


def _batch(
    work: _Bringing, batch: Sequence[tuple[int, Any]], namespace: str, on_error: Literal["abort", "skip"], may: bool
) -> BroughtIn:
    """Compare a batch with the store and write what is new or may be replaced."""
    rejected: list[Rejected] = []
    work.vectors.clear()

    def refuse(at: int, id: str | None, reason: str, kind: type[Exception]) -> None:
        if on_error == "abort":
            raise (
                BadItem(f"Item {at}: {reason}", position=at, id=id)
                if kind is BadItem
                else Conflict(f"Item {at}: {reason}", names=frozenset({(namespace, id or "")}))
            )
        rejected.append(Rejected(at, id, reason))

    drafts: list[tuple[int, Any, Draft | None]] = []
    asked: dict[str, list[str]] = defaultdict(list)
    for at, item in batch:
        work.take(item)
        id = item.get("id") if isinstance(item, Mapping) else None
        work.seen.update([id] if isinstance(id, str) else [])
        try:
            draft = drafted(at, item, namespace) if id is not None else None
        except InvalidInput as error:
            refuse(at, str(id), error.message, BadItem)
            continue
        if draft is not None:
            asked[draft.memory.namespace].append(draft.memory.id)
        drafts.append((at, item, draft))
    firsts: dict[tuple[str, str], Draft] = {}
    stored = {
        (m.namespace, m.id): m for where, ids in asked.items() for m in work.store.get(where, ids) if not m.parent_id
    }
    new: list[tuple[int, Any]] = []
    changed: dict[int, Memory] = {}
    unchanged = 0
    for at, item, draft in drafts:
        name = ("", "") if draft is None else (draft.memory.namespace, draft.memory.id)
        first = draft if draft is None else firsts.setdefault(name, draft)
        there = stored.get(name)
        if draft is not None and first is not None and first is not draft:
            if first.payload == draft.payload:
                unchanged += 1
            else:
                refuse(at, name[1], f"The id {name[1]!r} was met before with other content.", Conflict)
        elif draft is None or there is None:
            new.append((at, item))
        elif _same(there, draft.memory, timed=item.get("created_at") is not None):
            unchanged += 1
        elif may and matches(there, within(work.owned, (there.namespace,))):
            changed[at] = there
            new.append((at, item if item.get("created_at") is not None else {**item, "created_at": there.created_at}))
        else:
            refuse(at, there.id, f"The id {there.id!r} is already stored with other content.", Conflict)
    return _write(work, new, changed, namespace, on_error, unchanged, rejected)


def _write(
    work: _Bringing,
    new: list[tuple[int, Any]],
    changed: Mapping[int, Memory],
    namespace: str,
    on_error: Literal["abort", "skip"],
    unchanged: int,
    rejected: list[Rejected],
) -> BroughtIn:
    """Write what is new, then what replaces something.

    A memory is forgotten only when its successor was checked and an embedder was found that fits; what a crash between
    the two takes is still in the source, and comes back the next time.
    """
    remembered = replaced = 0
    degraded: dict[str, str] = {}
    for some in ([n for n in new if n[0] not in changed], [n for n in new if n[0] in changed]):
        if not some:
            continue
        going: dict[str, list[str]] = defaultdict(list)
        for at, _ in some:
            if at in changed:
                going[changed[at].namespace].append(changed[at].id)
        if going:
            work.embedder()
        for where, ids in going.items():
            for id in ids:
                work.store.forget(where, id, Filters(), dry_run=False)
        places = [at for at, _ in some]
        try:
            report = work.ingest.remember_many(
                [item for _, item in some], namespace=namespace, batch_size=len(some), on_error=on_error, progress=None
            )
        except BadItem as error:
            at = places[error.position]
            raise BadItem(f"Item {at}: {error.message.partition(': ')[2]}", position=at, id=error.id) from error
        except Conflict as error:  # somebody else stored it since we looked
            at = next((at for at, item in some if any(item.get("id") == id for _, id in error.names)), places[0])
            raise Conflict(f"Item {at}: {error.message.partition(': ')[2]}", names=error.names) from error
        for where in going:
            work.upkeep.forgotten(where)
        rejected += [replace(row, position=places[row.position]) for row in report.rejected]
        degraded |= report.degraded
        unchanged += report.unchanged
        if going:
            replaced += report.remembered
        else:
            remembered += report.remembered
    rejected.sort(key=lambda row: row.position)
    return BroughtIn(remembered, unchanged, replaced, tuple(rejected), degraded=degraded)


def _all(store: Store, namespace: str, filters: Filters) -> Iterator[Memory]:
    cursor: str | None = None
    while True:
        page = store.list(namespace, filters, 200, cursor)
        yield from page
        cursor = page.cursor
        if cursor is None:
            return


def _same(stored: Memory, given: Memory, *, timed: bool) -> bool:
    """Return whether a memory is as it is given; a time that was not given may be any."""
    if any(getattr(stored, name) != getattr(given, name) for name in _COMPARED):
        return False
    return _alike(stored.metadata, given.metadata) and (not timed or stored.created_at == given.created_at)


def _alike(one: Any, other: Any) -> bool:
    """Return whether two JSON values are equal once a store has had them: 1e300 comes back as a whole number."""
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(_alike(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_alike, one, other))
    if isinstance(one, bool) or isinstance(other, bool) or not isinstance(one, int | float):
        return type(one) is type(other) and bool(one == other)
    try:
        return one == other or (isinstance(other, int | float) and float(one) == float(other))
    except OverflowError:
        return False
