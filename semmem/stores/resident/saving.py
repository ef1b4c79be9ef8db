"""Save models of the embedded server: those of a process that closes, all with ``maintain``, one that has grown."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import psycopg

from semmem.model.process import heap
from semmem.stores.postgres import saved
from semmem.stores.postgres.typed import Connection
from semmem.stores.postgres.vacuum import session_setting
from semmem.stores.resident import saved as files
from semmem.stores.resident.loading import follow, load, mapped
from semmem.stores.resident.memory import Models
from semmem.stores.resident.model import Model

if TYPE_CHECKING:
    from semmem.stores.postgres.store import PostgresStore

__all__ = ["renew", "save"]

T = TypeVar("T")


class _Way(NamedTuple):
    """How a model is saved: how long any lock of the server is waited for, whether others give way, whether it loads.

    ``patience`` is a lock_timeout of PostgreSQL.
    """

    patience: str
    makes_room: bool
    loads: bool


_AT_CLOSING = _Way("1ms", makes_room=True, loads=False)
_BY_MAINTAIN = _Way("2s", makes_room=False, loads=True)
_WHEN_GROWN = _Way("2s", makes_room=True, loads=False)


class _One:
    """Takes the place of a pool of connections where one connection does all."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def run(self, work: Callable[[Connection], T]) -> T:
        return work(self._connection)


def save(store: PostgresStore, models: Models, budget: int, *, every: bool) -> dict[str, int]:
    """Save those of ``models`` that take long to read, or with ``every`` such namespaces of the whole store.

    All files together take at most ``budget`` bytes. What fails is left out, and without ``every`` what would have to
    wait for a writer or for a connection. Returns the counts of ``counts_of``.
    """
    if not _saves(store, budget):
        return {}
    namespaces = [] if every else _large(models)
    if not namespaces and not every:
        return {}
    way = _BY_MAINTAIN if every else _AT_CLOSING
    saved_count = unsaved = 0
    with (
        files.left_out(psycopg.Error),
        closing(store.own_connection()) if every else store.idle() as connection,
        session_setting(connection, "lock_timeout", way.patience),
    ):
        with files.left_out(psycopg.Error):
            if every:
                unsaved = saved.shrink(connection, budget)
            else:
                saved.touch(connection, namespaces)
        for namespace in _large_of(store) if every else namespaces:
            with files.left_out(psycopg.Error):
                is_saved = _save(connection, models, budget, namespace, way)
                saved_count += is_saved
                if is_saved and every:
                    models.remap(namespace)
    if every:
        heap.give_back()
    return files.counts_of(saved=saved_count, unsaved=unsaved)


def renew(store: PostgresStore, models: Models, budget: int, namespace: str) -> None:
    """Save the model of a namespace that many memories were written to since it was saved; what fails is left out.

    Where another process has saved it meanwhile, this one maps that file.
    """
    if _saves(store, budget):
        with (
            files.left_out(psycopg.Error),
            closing(store.own_connection()) as own,
            session_setting(own, "lock_timeout", _WHEN_GROWN.patience),
        ):
            _save(own, models, budget, namespace, _WHEN_GROWN)
        models.remap(namespace)


def _saves(store: PostgresStore, budget: int) -> bool:
    return budget > 0 and store.is_embedded and store.in_whole is None


def _large(models: Models) -> list[str]:
    """Return the namespaces in memory that are worth saving, so that the store is not asked about each small one."""
    return [n for n, model in models.present(models.sizes).items() if model.state.memories >= files.FEWEST]


def _large_of(store: PostgresStore) -> list[str]:
    """Return such namespaces of the whole store, however many small ones it has, by one statement."""
    return [namespace for (namespace,) in store.rows("namespace_large", {"least": files.FEWEST})]


def _save(connection: Connection, models: Models, budget: int, namespace: str, way: _Way) -> bool:
    """Save the model of a namespace where that is due; return whether it is saved now."""
    with saved.alone(connection) as is_alone:
        if not is_alone:
            return False
        with saved.begin(connection, namespace) as begun:
            model = None if begun is None else _model(connection, models, budget, begun, loads=way.loads)
            if begun is None or model is None:
                return False
            if not saved.write(connection, begun, model, budget, makes_room=way.makes_room):
                return False
            if way.makes_room:  # now, for others were mapped while it was written: the one asked longest ago gives way
                saved.touch(connection, _large(models))
            return saved.finish(connection, begun, model.state, budget)


def _model(connection: Connection, models: Models, budget: int, begun: saved.Begun, *, loads: bool) -> Model | None:
    """Return a model of a namespace at the state of ``begun`` or a later one, from memory if it is there."""
    one, state = _One(connection), begun.state
    model = models.present((begun.namespace,)).get(begun.namespace)
    if model is not None and model.state.place == state.place and model.state.sequence >= state.sequence:
        return model
    if model is not None:
        model = follow(one, model, budget) if state.follows(model.state) else None
    room = budget - saved.disk_bytes(connection, but=begun.namespace) if loads and model is None else 0
    if room > 0:
        model = mapped(one, begun.namespace, budget) or load(one, begun.namespace, room, 0)
    return model
