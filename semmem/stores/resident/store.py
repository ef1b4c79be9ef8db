"""A store whose recalls read from memory where they can; callers need not know which namespaces are in memory.

A namespace that had the same state in two recalls is assumed to have it in the third. That recall ranks first, and then
asks for the texts of its hits and for the state of the namespace in one round trip. Where the state has changed, the
recall begins again.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import replace
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple, cast
from weakref import ReferenceType, ref

import numpy as np
from numpy.typing import NDArray

from semmem.model.exchange import Forwards, Head, Ords, Postings, Ranking, Scope, Turn, apart
from semmem.model.store import GraphStore, Moved, Store, VectorStore
from semmem.model.store.encoded import maker
from semmem.model.types import Filters, Memory
from semmem.stores.resident.memory import Models
from semmem.stores.resident.model import Model, State

if TYPE_CHECKING:
    from semmem.stores.postgres.store import PostgresStore
    from semmem.stores.sqlite.snapshot import Snapshots
    from semmem.stores.sqlite.store import SqliteStore

__all__ = ["ResidentStore", "resident", "resident_sizes"]


_SHARE = 8
"""What filters admit may take an eighth of what models may, beside them: a million ords take 8 MB."""
_MOST_SCOPES = 64
_LARGEST = 10_000
"""A scope that names more ords than this is not cached, which limits the cache to a few megabytes."""


class _ScopeEntry(NamedTuple):
    """The scope that a question had, and its models; ``sure`` means that it was the same twice in a row."""

    models: tuple[ReferenceType[Model], ...]
    scope: Scope
    sure: bool


class _Assumption(NamedTuple):
    """What a recall assumes before it asks the store: the scope of these models, filters and exclusions."""

    of: str
    models: Mapping[str, Model]
    scope: Scope
    filters: Filters
    exclude: Sequence[str]


_assumption: ContextVar[_Assumption | None] = ContextVar("assumption", default=None)
_wholes: ContextVar[Mapping[tuple[str, str], tuple[Memory, Sequence[int]]] | None] = ContextVar("wholes", default=None)
"""The whole memories of the parts among its hits."""


def resident(store: Store, budget: int) -> Store:
    """Return ``store`` with recalls that read from memory, within ``budget`` bytes; unchanged where that is impossible.

    A recall begins with ``scope``, in a context of its own, which binds the recall to the models that are up to date.
    """
    if store.kind == "SQLite":  # which reads from memory itself
        cast("SqliteStore", store).models.budget = budget
    if budget <= 0 or store.kind != "PostgreSQL":
        return store
    return cast(Store, ResidentStore(store, budget))


def resident_sizes(store: Store) -> Mapping[str, int]:
    """Return the approximate bytes of each namespace that ``store``, made by ``resident``, has in memory now."""
    models: Models | Snapshots | None = getattr(store, "models", None)
    return {} if models is None else models.sizes


class _Behind:
    """Passes every call that memory cannot answer on to the store behind."""

    def __init__(self, behind: Any, models: Models) -> None:
        self._behind = behind
        self._models = models

    def __getattr__(self, name: str) -> Any:
        return getattr(self._behind, name)

    def _model(self, namespaces: Sequence[str]) -> Model | None:
        return self._models.bound(namespaces[0]) if len(namespaces) == 1 else None


class ResidentStore(_Behind):
    """The postings, heads and sessions of a store, read from memory where possible."""

    def __init__(self, store: Store, budget: int) -> None:
        from semmem.stores.resident.loading import follow, load

        pool = cast("PostgresStore", store)
        models = Models(
            budget,
            lambda namespace, most, spare: load(pool, namespace, most, spare),
            lambda model, most: follow(pool, model, most),
        )
        pool.admitted.budget = budget // _SHARE
        super().__init__(store, models)
        self._scopes: OrderedDict[str, _ScopeEntry] = OrderedDict()
        self._lock = Lock()
        self.models = models
        self.vectors = None if store.vectors is None else cast(VectorStore, _Vectors(store.vectors, models))
        self.graph = None if store.graph is None else cast(GraphStore, _Graph(store.graph, models))

    def close(self) -> None:
        """Drop the models and what filters admit; the store behind stays open."""
        self.models.clear()
        self.admitted.clear()

    def scope(
        self,
        namespaces: tuple[str, ...],
        filters: Filters,
        exclude: Sequence[str],
        names: Collection[str] | None = None,
    ) -> Scope:
        """Resolve filters and excluded ids to ords, and bind this context to the models that are up to date."""
        if names is not None:
            _assumption.set(None)
        if names is not None and any(namespace in self.models for namespace in namespaces):
            question = (namespaces, filters, exclude, names)
            of = repr((namespaces, filters, list(exclude)))
            resident_scope = self._expected(of, *question) or self._scope_of_models(of, *question)
            if resident_scope is not None:
                return resident_scope
        scope: Scope = self._behind.scope(namespaces, filters, exclude, names)
        if names is not None:
            self._bind(scope)
        return scope

    def _expected(
        self, of: str, namespaces: tuple[str, ...], filters: Filters, exclude: Sequence[str], names: Collection[str]
    ) -> Scope | None:
        """Return the scope that this question had, if it was the same twice and the models have not changed."""
        with self._lock:
            entry = self._scopes.get(of)
        if entry is None or not entry.sure:
            return None
        models = self.models.bind_present(namespaces)
        if tuple(models.get(n) for n in namespaces) != tuple(reference() for reference in entry.models):
            return None
        if (whole := _with_kinds(entry.scope, models, names)) is not None:
            _assumption.set(_Assumption(of, models, entry.scope, filters, exclude))
        return whole

    def indexed_memories(self, namespaces: Sequence[str], ords: Ords) -> Mapping[int, Memory]:
        """Return the indexed memories by ord, and check the recall's assumption. Raises Moved where it was wrong."""
        if (assumption := _assumption.get()) is None or (*namespaces,) != assumption.scope.namespaces:
            memories: Mapping[int, Memory] = self._behind.indexed_memories(namespaces, ords)
            return memories
        groups = apart(namespaces, ords) if len(ords) else ()
        split = [(n, turn.id) for _, n, own in groups for turn in assumption.models[n].turns_of(own) if turn.part]
        scope, memories, wholes = self._behind.scope_and_memories(
            assumption.scope.namespaces, assumption.filters, assumption.exclude, ords, split
        )
        if not _same(scope, assumption.scope):
            with self._lock:
                self._scopes.pop(assumption.of, None)
            raise Moved
        _assumption.set(None)
        _wholes.set(wholes)
        return memories

    def whole_memories(
        self, names: Collection[tuple[str, str]]
    ) -> Mapping[tuple[str, str], tuple[Memory, Sequence[int]]]:
        """Return whole memories by (namespace, id); those of the hits were fetched by ``indexed_memories``."""
        if (wholes := _wholes.get()) is not None and not set(names) - wholes.keys():
            return wholes
        memories: Mapping[tuple[str, str], tuple[Memory, Sequence[int]]] = self._behind.whole_memories(names)
        return memories

    def confirm(self) -> None:
        """Raise Moved where the recall's assumption was wrong; the store is asked only if that is not known yet."""
        if (assumption := _assumption.get()) is not None:
            self.indexed_memories(assumption.scope.namespaces, ())

    def _bind(self, scope: Scope) -> None:
        states = scope.states or {}
        self.models.bind({n: None if row is None else State(*row) for n, row in states.items()})

    def _scope_of_models(
        self, of: str, namespaces: tuple[str, ...], filters: Filters, exclude: Sequence[str], names: Collection[str]
    ) -> Scope | None:
        """Return a scope with the facts and corrections of the models; None where a model is not up to date."""
        scope: Scope = self._behind.scope(namespaces, filters, exclude)
        self._bind(scope)
        models = {n: model for n in namespaces if (model := self.models.bound(n)) is not None}
        if (whole := _with_kinds(scope, models, names)) is not None and _size(scope) <= _LARGEST:
            now = tuple(ref(models[n]) for n in namespaces)
            with self._lock:
                before = self._scopes.pop(of, None)
                sure = before is not None and before.models == now and _same(before.scope, scope)
                self._scopes[of] = _ScopeEntry(now, scope, sure)
                while len(self._scopes) > _MOST_SCOPES:
                    self._scopes.popitem(last=False)
        return whole

    def postings(
        self,
        namespaces: Sequence[str],
        keys: Collection[int],
        *,
        max_df: int | None = None,
        shared: bool = False,
        pending: Collection[int] = (),
    ) -> Mapping[str, Postings]:
        """Return the postings of ``keys`` in each namespace."""
        if (model := self._model(namespaces)) is not None:
            return {namespaces[0]: model.postings(keys, max_df, shared=shared)}
        postings: Mapping[str, Postings] = self._behind.postings(
            namespaces, keys, max_df=max_df, shared=shared, pending=pending
        )
        return postings

    def postings_of(
        self, namespaces: Sequence[str], *lookups: tuple[Collection[int], int | None]
    ) -> Sequence[Mapping[str, Postings]]:
        """Return the result of ``postings`` for each (keys, max_df)."""
        if (model := self._model(namespaces)) is not None:
            return [{namespaces[0]: model.postings(keys, max_df)} for keys, max_df in lookups]
        postings: Sequence[Mapping[str, Postings]] = self._behind.postings_of(namespaces, *lookups)
        return postings

    def session_turns(self, namespaces: Sequence[str], ords: Ords) -> Sequence[Turn]:
        """Return the sessions that hold ``ords``, each in its order."""
        if (model := self._model(namespaces)) is not None:
            return model.session_turns(ords)
        turns: Sequence[Turn] = self._behind.session_turns(namespaces, ords)
        return turns

    def candidate_info(self, namespaces: Sequence[str], ords: Ords) -> Mapping[int, Head]:
        """Return the head of each candidate, which is what fusion needs; forgotten memories are left out."""
        if (model := self._model(namespaces)) is not None:
            return model.heads(ords)
        heads: Mapping[int, Head] = self._behind.candidate_info(namespaces, ords)
        return heads


class _Vectors(_Behind):
    """The vectors of a store, read from memory while the question's vector is of the same embedder."""

    def _fits(self, namespaces: Sequence[str], vector: NDArray[np.float32]) -> Model | None:
        """Return the model whose vectors can be compared with ``vector``; None where the store behind has to answer."""
        model = self._model(namespaces)
        if model is None or model.dimensions != len(vector) or not model.is_of(maker(vector)):
            return None
        return model

    def nearest(self, scope: Scope, vector: NDArray[np.float32], depth: int) -> Ranking:
        """Return the ``depth`` memories with the highest inner product with a unit vector, within scope."""
        if (model := self._fits(scope.namespaces, vector)) is not None:
            return model.nearest(scope, vector, depth)
        ranking: Ranking = self._behind.nearest(scope, vector, depth)
        return ranking

    def nearest_with_turns(
        self, scope: Scope, vector: NDArray[np.float32], depth: int
    ) -> tuple[Ranking, Sequence[Turn], NDArray[np.int64], NDArray[np.float32]]:
        """Return the result of ``nearest``, the session turns around it, and the vectors of whole sessions."""
        result: tuple[Ranking, Sequence[Turn], NDArray[np.int64], NDArray[np.float32]]
        if (model := self._fits(scope.namespaces, vector)) is not None:
            ranking = model.nearest(scope, vector, depth)
            turns = model.session_turns(ranking.ords)
            result = ranking, turns, *model.vectors_of([turn.ord for turn in turns])
        else:
            result = self._behind.nearest_with_turns(scope, vector, depth)
        return result

    def vectors_of(
        self, namespaces: Sequence[str], ords: Ords, like: NDArray[np.float32] | None = None
    ) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Return the ords that have a vector, ascending, and their vectors, one a row, to be compared with ``like``."""
        if like is not None and (model := self._fits(namespaces, like)) is not None:
            return model.vectors_of(ords)
        result: tuple[NDArray[np.int64], NDArray[np.float32]] = self._behind.vectors_of(namespaces, ords, like)
        return result

    def similarities(self, namespaces: Sequence[str], ords: Ords, vector: NDArray[np.float32]) -> Mapping[int, float]:
        """Return the inner product of each memory's vector with ``vector``."""
        if (model := self._fits(namespaces, vector)) is not None:
            return model.similarities(ords, vector)
        cosines: Mapping[int, float] = self._behind.similarities(namespaces, ords, vector)
        return cosines


class _Graph(_Behind):
    """The graph of a store, read from memory where possible."""

    def forwards_and_neighbours(
        self, namespace: str, ords: Ords, *, neighbours: bool, shared: bool = False
    ) -> tuple[Forwards, Sequence[tuple[int, int, bool]], NDArray[np.int64]]:
        """Return the forward entries of each memory, its neighbours if asked for, and the keys of pending memories."""
        if (model := self._model([namespace])) is not None:
            beside = model.neighbours(ords) if neighbours else []
            return model.forwards(ords, shared=shared), beside, np.zeros(0, dtype=np.int64)
        result: tuple[Forwards, Sequence[tuple[int, int, bool]], NDArray[np.int64]]
        result = self._behind.forwards_and_neighbours(namespace, ords, neighbours=neighbours, shared=shared)
        return result

    def by_author(self, namespaces: Sequence[str], ords: Ords, author: str) -> NDArray[np.int64]:
        """Return those of ``ords`` whose author is ``author``, ascending."""
        if (model := self._model(namespaces)) is not None:
            return model.by_author(ords, author)
        author_ords: NDArray[np.int64] = self._behind.by_author(namespaces, ords, author)
        return author_ords

    def titles(self, namespaces: Sequence[str], ords: Ords) -> Mapping[int, str | None]:
        """Return the title of each memory."""
        if (model := self._model(namespaces)) is not None:
            return model.titles(ords)
        titles: Mapping[int, str | None] = self._behind.titles(namespaces, ords)
        return titles

    def subject_names(self, namespace: str, ords: Ords) -> Sequence[tuple[int, int, int, str]]:
        """Return (ord, key, weight in hundredths, spelling of the name) for the names that memories are about."""
        if (model := self._model([namespace])) is None:
            names: Sequence[tuple[int, int, int, str]] = self._behind.subject_names(namespace, ords)
            return names
        missing = [ord for ord in ords if ord not in model.about]
        if missing:
            rows = self._behind.subject_names(namespace, missing)
            for ord in missing:
                model.about[ord] = [row for row in rows if row[0] == ord]
        return [row for ord in sorted(ords) for row in model.about[ord]]


def _with_kinds(scope: Scope, models: Mapping[str, Model], names: Collection[str]) -> Scope | None:
    """Return a scope with the facts and corrections of models; None where a model does not know them."""
    kinds = {n: facts for n, model in models.items() if (facts := model.kinds(names)) is not None}
    if kinds.keys() != set(scope.namespaces):
        return None
    return replace(scope, kinds=kinds, corrections={n: model.corrections for n, model in models.items()})


def _size(scope: Scope) -> int:
    return sum(len(ords) for ords in (scope.allowed, scope.excluded, scope.lapsed) if ords is not None)


def _same(one: Scope, other: Scope) -> bool:
    for one_ords, other_ords in ((one.allowed, other.allowed), (one.excluded, other.excluded)):
        if one_ords is None or other_ords is None:
            if one_ords is not other_ords:
                return False
        elif not np.array_equal(one_ords, other_ords):
            return False
    return replace(one, allowed=None, excluded=None) == replace(other, allowed=None, excluded=None)
