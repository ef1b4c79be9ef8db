"""Read the scope of a recall from PostgreSQL: what filters match, what is left out, and what a recall asks first."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from semmem.model.exchange import RowIds, Scope, placed
from semmem.model.types import Filters
from semmem.stores.filter_matches import FilterMatches, Known
from semmem.stores.postgres.connection import Pooled
from semmem.stores.postgres.encoding import corrections_of, facts_of, facts_parameters, filter_parameters
from semmem.stores.postgres.typed import TupleRow

__all__ = ["scope", "scope_and_rows", "states"]

_SIZE, _STATE, _BOUNDS = 4, 15, 17
"""Where the columns of memory_size, of resident_state and of memory_bounds end in a row of memory_at_state."""

_MANY = 20
"""Namespaces from which on one round trip more finds out which of them there are."""

_UNKNOWN: Mapping[str, list[Any]] = {
    "memory_size": [(0, None, None, 0)],
    "memory_scope": [(None, 0, None, b"", None, None, 0)],
    **{
        name: []
        for name in (
            "memory_bounds",
            "memory_not_then",
            "memory_excluded",
            "resident_state",
            "memory_kinds",
            "corrections",
            "moment",
        )
    },
}
"""The rows of each statement of a scope for a namespace of which nothing is stored."""


def scope(
    pool: Pooled,
    matching: FilterMatches,
    namespaces: Sequence[str],
    filters: Filters,
    exclude: Sequence[str],
    names: Collection[str] | None = None,
    at: datetime | None = None,
    *,
    after: Sequence[tuple[str, Mapping[str, Any]]] = (),
) -> tuple[Scope, Sequence[list[Any]]]:
    """Return the scope, and the rows of the statements ``after`` which it is sent, all in one round trip.

    ``matching`` is what filters are known to match, and learns what they do now.
    """
    known = matching.of(namespaces, filters)
    queries = _queries(namespaces, known, filters, exclude, names, at)
    stored = _stored(pool, namespaces)
    rows = pool.together(*after, *(one for one in queries if one[1]["namespace"] in stored), planned=bool(filters))
    read = iter(rows[len(after) :])
    each = [next(read) if more["namespace"] in stored else _UNKNOWN[name] for name, more in queries]
    result = _scope_of(tuple(namespaces), known, queries, each)
    matching.keep(filters, known)
    return result, rows[: len(after)]


def scope_and_rows(pool: Pooled, namespace: str, row_ids: RowIds) -> tuple[Scope, Sequence[TupleRow]]:
    """Return the scope of a whole namespace, and the rows of some of its memories, by one statement."""
    ords = np.fromiter(row_ids, np.int64, len(row_ids))
    rows = pool.rows("memory_at_state", {"namespace": namespace, "ords": ords, "at": None})
    first = rows[0]
    size, state, (ords_out, are_out) = first[:_SIZE], first[_SIZE:_STATE], first[_STATE:_BOUNDS]
    statements = {
        "memory_bounds": list(zip(ords_out or (), are_out or (), strict=True)),
        "memory_size": [size],
        "resident_state": [] if state[0] is None else [state],
    }
    queries = [(name, {"namespace": namespace}) for name in statements]
    scope = _scope_of((namespace,), {}, queries, list(statements.values()))
    return scope, [row[_BOUNDS:] for row in rows if row[_BOUNDS] is not None]


def states(pool: Pooled, namespaces: Collection[str]) -> dict[str, tuple[Any, ...] | None]:
    """Return the state of each namespace, None for one of which nothing is stored, in one round trip."""
    stored = list(_stored(pool, namespaces))
    rows = pool.together(*(("resident_state", {"namespace": name}) for name in stored))
    each = dict(zip(stored, rows, strict=True))
    return _states({name: each.get(name, []) for name in namespaces})


def _stored(pool: Pooled, namespaces: Collection[str]) -> set[str]:
    """Return those of which something is stored; all where they are so few that they are not asked about."""
    if len(namespaces) <= _MANY:
        return set(namespaces)
    return {name for (name,) in pool.rows("namespaces_stored", {"namespaces": list(namespaces)})}


def _states(rows: Mapping[str, list[Any]]) -> dict[str, tuple[Any, ...] | None]:
    return {name: tuple(of[0]) if of else None for name, of in rows.items()}


def _queries(
    namespaces: Sequence[str],
    known: Mapping[str, Known],
    filters: Filters,
    exclude: Sequence[str],
    names: Collection[str] | None,
    at: datetime | None,
) -> list[tuple[str, dict[str, Any]]]:
    """Return the statements of a scope with their parameters; with ``names`` also those of facts and corrections."""
    each: dict[str, dict[str, Any]] = {"memory_bounds": {"at": at}}
    each["memory_scope" if filters else "memory_size"] = filter_parameters(filters) if filters else {}
    if at is not None:
        each["memory_not_then"] = {"at": at}
    if exclude:
        each["memory_excluded"] = {"ids": list(exclude)}
    each["resident_state"] = {}
    if names is not None:
        each |= {"memory_kinds": facts_parameters("", names), "corrections": {}}
    states = [{"namespace": n, "place": known[n].place, "since": known[n].changes} for n in namespaces]
    before = [("resident_state", state) for state in states if filters or exclude]
    return [*before, *((name, {**more, **state}) for name, more in each.items() for state in states)]


def _scope_of(
    namespaces: tuple[str, ...],
    known: dict[str, Known],
    queries: Sequence[tuple[str, Mapping[str, Any]]],
    rows: Sequence[list[Any]],
) -> Scope:
    """Return the scope from the rows of each of the statements of ``_queries``; ``known`` is brought up to date."""
    by_statement: dict[str, dict[str, list[Any]]] = {}
    first_states: dict[str, list[Any]] = {}
    for (name, parameters), own_rows in zip(queries, rows, strict=True):
        by_statement.setdefault(name, {})[parameters["namespace"]] = own_rows
        if name == "resident_state":
            first_states.setdefault(parameters["namespace"], own_rows)
    allowed = None
    if "memory_scope" in by_statement:
        within = {n: by_statement["memory_scope"][n][0] for n in namespaces}
        for n, (place, changes, grows, packed, *_) in within.items():
            known[n] = Known(place, changes, _matching(known[n].row_ids, packed, grows))
        placed_row_ids = [placed(known[n].row_ids, place) for place, n in enumerate(namespaces)]
        allowed = placed_row_ids[0] if len(placed_row_ids) == 1 else np.concatenate(placed_row_ids)
        sized = [(len(known[n].row_ids), *within[n][4:]) for n in namespaces]
    else:
        sized = [by_statement["memory_size"][n][0] for n in namespaces]
    excluded, lapsed = _bounds_of(
        namespaces,
        by_statement.get("memory_excluded", {}),
        by_statement["memory_bounds"],
        by_statement.get("memory_not_then", {}),
    )
    settings = _settings_together([settings for _, settings, *_ in sized if settings is not None])
    languages = {n: spoken for n, (*_, spoken, _) in zip(namespaces, sized, strict=True) if spoken is not None}
    sizes = {n: int(size) for n, (size, *_) in zip(namespaces, sized, strict=True)}
    linked = dict(zip(namespaces, (links for *_, links in sized), strict=True))
    before, states = _states(first_states), _states(by_statement["resident_state"])
    fields: dict[str, Any] = {"settings": settings, "languages": languages, "lapsed": lapsed}
    fields |= {"states": states, "states_before": before}
    if "corrections" in by_statement:
        fields |= {"kinds": facts_of(by_statement["memory_kinds"])}
        fields |= {"corrections": {n: corrections_of(rows) for n, rows in by_statement["corrections"].items()}}
    return Scope(namespaces, sum(sizes.values()), allowed, excluded, sizes=sizes, **fields).with_links(linked)


def _matching(before: NDArray[np.int64], packed: bytes | None, grows: bool | None) -> NDArray[np.int64]:
    """Return the row ids that filters match now: ``before`` where none are given, and these too where it grew."""
    if packed is None:
        return before
    row_ids = np.sort(np.frombuffer(packed, dtype=">i8").astype(np.int64))
    if grows and not len(row_ids):
        return before
    if grows:  # np.union1d would look at all of them, and take a hundred times as long
        row_ids = np.insert(before, np.searchsorted(before, row_ids), row_ids)
    row_ids.flags.writeable = False  # other recalls read the same array
    return row_ids


def _bounds_of(
    namespaces: Sequence[str], excluded: Mapping[str, Any], bounds: Mapping[str, Any], not_then: Mapping[str, Any]
) -> tuple[NDArray[np.int64] | None, frozenset[int]]:
    """Return the row ids out of scope and those not valid now, from the rows of three statements by namespace."""
    outside: list[int] = []
    lapsed: list[int] = []
    packed: list[NDArray[np.int64]] = []
    for place, namespace in enumerate(namespaces):
        outside += [placed(row_id, place) for (row_id,) in excluded.get(namespace, ())]
        for row_id, out in bounds[namespace]:
            (outside if out else lapsed).append(placed(row_id, place))
        for (raw,) in not_then.get(namespace, ()):
            packed.append(placed(np.frombuffer(raw, dtype=">i8").astype(np.int64), place))
    if not (outside or excluded or any(map(len, packed))):
        return None, frozenset(lapsed)
    return np.unique(np.concatenate([np.array(outside, dtype=np.int64), *packed])), frozenset(lapsed)


def _settings_together(settings: Sequence[str]) -> str | None:
    """Return the settings of several namespaces as one JSON array; None where there are none."""
    if len(settings) < 2:
        return settings[0] if settings else None
    return json.dumps([row for each in settings for row in json.loads(each)])
