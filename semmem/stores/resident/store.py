"""Make snapshots from memory of a store whose namespaces are recalled often, without reading an outdated state.

A namespace that had the same state in two recalls is assumed to have it in the third. That recall ranks first, and then
asks for the texts of its hits and for the state of the namespace in one round trip. Where the state has changed, the
snapshot raises Moved, and the recall begins again with a snapshot that is checked first.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import fields, replace
from datetime import datetime
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple
from weakref import ReferenceType, ref

from semmem.model.exchange import Scope
from semmem.model.process.forks import Lock
from semmem.model.store import Moved, Snapshot, SnapshotSource, Store
from semmem.model.types import Filters, Memory
from semmem.stores.past import PastSnapshot, versions_at
from semmem.stores.resident.memory import Asked, Models
from semmem.stores.resident.model import Model, State
from semmem.stores.resident.snapshot import MemorySnapshot
from semmem.stores.snapshot import StoredSnapshot, scope_of

if TYPE_CHECKING:
    from semmem.stores.postgres.store import PostgresStore
    from semmem.stores.sqlite.resident import FileModels

__all__ = ["Resident", "resident", "resident_asked", "resident_sizes", "save_resident"]

_SHARE = 8
"""What filters match may take an eighth of what models may, beside them: a million row ids take 8 MB."""
_MOST_SCOPES = 64
_LARGEST = 10_000
"""A scope that names more row ids than this is not cached, which limits the cache to a few megabytes."""


_COMPARED = attrgetter(*(field.name for field in fields(Scope) if field.name not in ("allowed", "excluded")))
"""What two scopes have in common that are the same, besides their arrays."""


class _ScopeEntry(NamedTuple):
    """The scope that a question had, and its models; ``sure`` means that it was the same twice in a row."""

    models: tuple[ReferenceType[Model], ...]
    scope: Scope
    sure: bool


def resident(store: Store, budget: int, saved: int) -> SnapshotSource:
    """Return what makes the snapshots of ``store``: from memory within ``budget`` bytes, or the store itself.

    Models that are saved beside the store take at most ``saved`` bytes on disk.
    """
    if store.kind == "SQLite":  # which reads from memory itself
        from semmem.stores.sqlite.store import SqliteStore

        if isinstance(store, SqliteStore):
            store.models.budget, store.models.saved_budget = budget, saved
    if budget > 0 and store.kind == "PostgreSQL":
        from semmem.stores.postgres.store import PostgresStore

        if isinstance(store, PostgresStore):
            return Resident(store, budget, saved)
    return store


def resident_sizes(source: SnapshotSource) -> Mapping[str, int]:
    """Return the approximate bytes of each namespace that a source, made by ``resident``, has in memory now."""
    models: Models | FileModels | None = getattr(source, "models", None)
    return {} if models is None else models.sizes


def resident_asked(source: SnapshotSource) -> Asked | None:
    """Return what recalls have asked of a source that holds namespaces in memory; None for one that holds none."""
    models: Models | FileModels | None = getattr(source, "models", None)
    return None if models is None else models.asked


def save_resident(source: SnapshotSource) -> Mapping[str, int]:
    """Save what takes long to read of a source that ``resident`` made over the embedded server; return the counts."""
    return source.save(every=True) if isinstance(source, Resident) else {}


class Resident:
    """The namespaces of a store on PostgreSQL that are in memory, within ``budget`` bytes; a source of snapshots.

    Models that are saved beside the embedded server take at most ``saved`` bytes on disk.
    """

    def __init__(self, store: PostgresStore, budget: int, saved: int) -> None:
        from semmem.stores.resident.loading import follow, load, mapped

        self._store, self._saved = store, saved
        self.models = Models(
            budget,
            lambda namespace, most, spare: load(store, namespace, most, spare),
            lambda model, most: follow(store, model, most),
            lambda namespace, most: mapped(store, namespace, most) if saved and store.is_embedded else None,
            self._renew,
        )
        store.matching.budget = budget // _SHARE
        self._scopes: OrderedDict[str, _ScopeEntry] = OrderedDict()
        self._lock = Lock()

    def session(self) -> AbstractContextManager[Callable[[], None]]:
        """Reserve a connection of the store for this thread."""
        return self._store.session()

    def close(self) -> None:
        """Save and drop the models, and drop what filters match; the store stays open."""
        self.models.end_renewing()
        self.save()
        self.models.clear()
        self._store.matching.clear()

    def save(self, *, every: bool = False) -> dict[str, int]:
        """Save models of the embedded server; see stores/resident/saving.py."""
        from semmem.stores.resident.saving import save

        return save(self._store, self.models, self._saved, every=every)

    def _renew(self, namespace: str) -> None:
        from semmem.stores.resident.saving import renew

        renew(self._store, self.models, self._saved, namespace)

    def snapshot(
        self,
        namespaces: tuple[str, ...],
        filters: Filters,
        exclude: Sequence[str],
        names: Collection[str],
        at: datetime | None = None,
        *,
        checked: bool = False,
    ) -> Snapshot:
        """Return a snapshot that reads from memory what is held there; see SnapshotSource."""
        if at is not None:
            return self._past(namespaces, filters, exclude, names, at)
        if not any(namespace in self.models for namespace in namespaces):
            stored = StoredSnapshot(self._store, scope_of(self._store, namespaces, filters, exclude, names))
            models = self._current(stored.scope)
            self.models.note(namespaces, models)
            return MemorySnapshot(stored, models) if models else stored
        of = repr((namespaces, filters or None, list(exclude)))
        assumed = None if checked else self._assumed(of, namespaces, filters, exclude, names)
        return self._checked(of, namespaces, filters, exclude, names) if assumed is None else assumed

    def _past(
        self,
        namespaces: tuple[str, ...],
        filters: Filters,
        exclude: Sequence[str],
        names: Collection[str],
        at: datetime,
    ) -> Snapshot:
        """Return a snapshot of an earlier time: models of now, corrected by the versions that were replaced since."""
        stored = StoredSnapshot(self._store, scope_of(self._store, namespaces, filters, exclude, names, at))
        versions = versions_at(self._store.life, namespaces, at)
        models = self._current(stored.scope)
        self.models.note(namespaces, models)
        return PastSnapshot(MemorySnapshot(stored, models) if models else stored, versions, at)

    def _current(self, scope: Scope) -> dict[str, Model]:
        states = scope.states or {}
        return self.models.current({n: None if row is None else State(*row) for n, row in states.items()})

    def _assumed(
        self, of: str, namespaces: tuple[str, ...], filters: Filters, exclude: Sequence[str], names: Collection[str]
    ) -> Snapshot | None:
        """Return the snapshot that this question had, if it was the same twice and the models have not changed."""
        with self._lock:
            entry = self._scopes.get(of)
            if entry is None or not entry.sure:
                return None
            self._scopes.move_to_end(of)
        models = self.models.present(namespaces)
        if any(
            n not in models or reference() is not models[n]
            for n, reference in zip(namespaces, entry.models, strict=True)
        ):
            return None  # also where one has made room for others: it is loaded again by recalls that ask for it

        def check(
            row_ids: Sequence[int], split: Collection[tuple[str, str]]
        ) -> tuple[Mapping[int, Memory], Mapping[tuple[str, str], tuple[Memory, Sequence[int]]]]:
            scope, memories, wholes = self._store.scope_and_memories(namespaces, filters, exclude, row_ids, split)
            if not _same(scope, entry.scope):
                with self._lock:
                    self._scopes.pop(of, None)
                raise Moved
            return memories, wholes

        scope = replace(entry.scope, filters=filters, exclude=tuple(exclude))
        self.models.note(namespaces, models)
        return MemorySnapshot(self._behind(scope, models, names), models, check)

    def _checked(
        self, of: str, namespaces: tuple[str, ...], filters: Filters, exclude: Sequence[str], names: Collection[str]
    ) -> Snapshot:
        """Return a snapshot of models that are up to date, and note its scope for the next recall."""
        scope = self._store.scope(namespaces, filters, exclude)
        models = self._current(scope)
        if len(models) == len(set(namespaces)) and _size(scope) <= _LARGEST:
            now = tuple(ref(models[n]) for n in namespaces)
            with self._lock:
                before = self._scopes.pop(of, None)
                sure = before is not None and before.models == now and _same(before.scope, scope)
                self._scopes[of] = _ScopeEntry(now, scope, sure)
                while len(self._scopes) > _MOST_SCOPES:
                    self._scopes.popitem(last=False)
        scope = replace(scope, filters=filters, exclude=tuple(exclude))
        self.models.note(namespaces, models)
        return MemorySnapshot(self._behind(scope, models, names), models)

    def _behind(self, scope: Scope, models: Mapping[str, Model], names: Collection[str]) -> Snapshot:
        """Return the snapshot from the database, with the facts of the models; those they do not know are looked up."""
        kinds = {n: facts for n, model in models.items() if (facts := model.kinds(names)) is not None}
        corrections = {n: model.corrections for n, model in models.items()}
        if rest := tuple(n for n in scope.namespaces if n not in kinds):
            asked = self._store.scope(rest, Filters(), (), names)
            kinds |= asked.kinds or {}
            corrections = {**(asked.corrections or {}), **corrections}
        return StoredSnapshot(self._store, replace(scope, kinds=kinds, corrections=corrections))


def _size(scope: Scope) -> int:
    return sum(len(row_ids) for row_ids in (scope.allowed, scope.excluded, scope.lapsed) if row_ids is not None)


def _same(one: Scope, other: Scope) -> bool:
    return one.names_row_ids_of(other) and bool(_COMPARED(one) == _COMPARED(other))
