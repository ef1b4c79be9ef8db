"""Save models of the embedded server: those of a process that closes, or with ``maintain`` all that are large."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import psycopg

from semmem.model.process import heap
from semmem.stores.postgres import saved
from semmem.stores.postgres.typed import Connection
from semmem.stores.resident import saved as files
from semmem.stores.resident.loading import follow, load, mapped
from semmem.stores.resident.memory import Models
from semmem.stores.resident.model import Model, State

if TYPE_CHECKING:
    from semmem.stores.postgres.store import PostgresStore

__all__ = ["save"]


def save(store: PostgresStore, models: Models, budget: int, *, every: bool) -> dict[str, int]:
    """Save those of ``models`` that take long to read, or with ``every`` such namespaces of the whole store.

    All files together take at most ``budget`` bytes. What somebody's write would have to wait for, or what fails, is
    left out. Returns the counts of ``counts_of``.
    """
    if budget <= 0 or not store.is_embedded or store.in_whole is not None:
        return {}
    namespaces = _large_of(store) if every else _large(models)
    if not namespaces and not every:
        return {}
    saved_count = unsaved = 0
    with files.left_out(psycopg.Error):
        if every:
            unsaved = store.on_idle(partial(saved.shrink, most=budget))
        else:
            store.on_idle(partial(saved.touch, namespaces=namespaces))
    for namespace in namespaces:
        with files.left_out(psycopg.Error):
            saved_count += _save(store, models, budget, namespace, every)
    if every:
        heap.give_back()
    return files.counts_of(saved=saved_count, unsaved=unsaved)


def _large(models: Models) -> list[str]:
    """Return the namespaces in memory that are worth saving, so that the store is not asked about each small one."""
    return [n for n, model in models.present(models.sizes).items() if model.state.memories >= files.FEWEST]


def _large_of(store: PostgresStore) -> list[str]:
    """Return such namespaces of the whole store, however many small ones it has, by one statement."""
    return [namespace for (namespace,) in store.rows("namespace_large", {"least": files.FEWEST})]


def _save(store: PostgresStore, models: Models, budget: int, namespace: str, every: bool) -> bool:
    """Save the model of a namespace where that is due; return whether it is saved now."""
    room = budget

    def due(connection: Connection) -> State | None:
        nonlocal room
        room = budget - saved.disk_bytes(connection, but=namespace) if every else budget
        return saved.due(connection, namespace) if room > 0 else None

    if (state := store.on_idle(due)) is None:
        return False
    model = models.present((namespace,)).get(namespace)
    if model is not None and model.state != state:
        model = follow(store, model, budget) if state.follows(model.state) else None
    if model is None and every:
        model = mapped(store, namespace, budget) or load(store, namespace, room, 0)
    return model is not None and store.on_idle(partial(_write, model=model, budget=budget, every=every))


def _write(connection: Connection, model: Model, budget: int, every: bool) -> bool:
    return saved.save(connection, model, budget, makes_room=not every)
