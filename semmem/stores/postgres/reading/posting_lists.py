"""Read the postings of keys from PostgreSQL: those that are flushed, and those of pending memories."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from semmem.model.arrays import groups_without, merged_groups
from semmem.model.exchange import Postings
from semmem.stores.packed_postings import ascending, pending_keys, unpack_postings
from semmem.stores.postgres.connection import Pooled

__all__ = ["of_lookups", "shared"]

_NO_LIMIT = 2**62

Lookup: TypeAlias = tuple[Collection[int], int | None]


def of_lookups(pool: Pooled, namespaces: Sequence[str], lookups: Sequence[Lookup]) -> Sequence[Mapping[str, Postings]]:
    """Return the postings of each (keys, max_df) in each namespace, pending memories included, in one round trip."""
    each = [(n, _parameters(keys, max_df)) for keys, max_df in lookups for n in namespaces]
    queries = (("postings", {"namespace": namespace, **parameters}) for namespace, parameters in each)
    results: list[dict[str, Postings]] = [{} for _ in lookups]
    for place, ((namespace, parameters), rows) in enumerate(zip(each, pool.together(*queries), strict=True)):
        totals, pending_rows, flushed = _sorted_rows(rows)
        groups = unpack_postings(*flushed, pending_rows, parameters["keys"], parameters["max_df"])
        results[place // len(namespaces)][namespace] = Postings(*totals, *groups)
    return results


def shared(
    pool: Pooled, namespace: str, keys: Collection[int], max_df: int | None, pending: Collection[int]
) -> Postings:
    """Return the postings of those keys that several memories have; ``pending`` are keys of pending memories."""
    parameters = _parameters(keys, max_df)
    then = np.intersect1d(np.fromiter(pending, np.int64, len(pending)), parameters["keys"])
    rows = pool.rows("postings_shared", {**parameters, "namespace": namespace, "pending": then})
    totals, pending_rows, packed = _sorted_rows(rows)
    now = pending_keys(pending_rows, parameters["keys"])
    if np.array_equal(now, then):
        return Postings(*totals, *unpack_postings(*packed, pending_rows, now, parameters["max_df"]))
    if len(then):  # another process has written or flushed since they were read
        return shared(pool, namespace, keys, max_df, ())
    groups = unpack_postings(*packed, [], now, parameters["max_df"])
    # a key of one flushed and one pending memory is shared after all
    whole = of_lookups(pool, [namespace], [(now, max_df)])[0][namespace]
    return Postings(*totals, *merged_groups(groups_without(groups, now), (whole.keys, whole.sizes, whole.entries)))


def _parameters(keys: Collection[int], max_df: int | None) -> dict[str, Any]:
    """Return the parameters of the statement ``postings``, except for the namespace."""
    return {"keys": ascending(keys), "max_df": _NO_LIMIT if max_df is None else max_df}


def _sorted_rows(rows: Sequence[Any]) -> tuple[tuple[int, int], list[tuple[int, int, bytes]], tuple[bytes, bytes]]:
    """Return the totals, the pending memories and the packed postings of the statement ``postings``."""
    totals, pending, flushed = (0, 0), [], (b"", b"")
    for what, n, length, heads, raw in rows:
        if what == 0:
            totals = (n, length)
        elif what == 1:
            pending.append((n, length, raw))
        elif heads is not None:
            flushed = (heads, raw)
    return totals, sorted(pending), flushed
