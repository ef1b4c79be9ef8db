"""Store links between memories in PostgreSQL, and find similar memories that may be linked.

Links refer to ids, because an update gives a memory another row id. Functions take an open connection inside a
transaction. ``link`` locks the row of the namespace first, like every writer: of two links that would close a circle,
the second sees the first.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from functools import partial
from itertools import repeat
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
from psycopg.errors import SerializationFailure

from semmem.model.exchange import CandidateMetadata, Row, RowIds, placed
from semmem.model.history import (
    DEEPEST,
    MOST_LINKS,
    MOST_SIMILAR,
    WAITING_S,
    Comparison,
    Link,
    Newer,
    PendingComparison,
    Similar,
)
from semmem.model.types import LinkType, Undecided
from semmem.stores.batch import rows_by_namespace
from semmem.stores.link_rules import Linking, fates_of, left_alone, linking
from semmem.stores.postgres import encoding
from semmem.stores.postgres.connection import on_nodes, pipelined, sent
from semmem.stores.postgres.encoding import memory_of
from semmem.stores.postgres.locking import locked_rows
from semmem.stores.postgres.postings import FEW, count_change, send_change
from semmem.stores.postgres.typed import Connection, Cursor, TupleRow, only
from semmem.stores.sql_files import statements

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from semmem.stores.postgres.connection import Pooled

__all__ = [
    "FIRST_KEY",
    "FULL",
    "LAST_KEY",
    "PostgresLinks",
    "ask_similar",
    "check_merged",
    "corroborate",
    "firsts",
    "link",
    "pack",
    "pack_steps",
    "part",
    "similar",
    "similar_of",
]

_SQL = statements("postgres")
_NOTHING = {"memories": 0, "length": 0}

_BITS = 32
FIRST_KEY, LAST_KEY = -(1 << (_BITS - 1)), (1 << (_BITS - 1)) - 1
"""What the keys of likeness are between: of those that are given the lower bits."""
FULL = 32
"""Keys of a row of packed_likeness, on the average at most: so few that it is read fast."""
_MOST_PACKED = 16
"""Memories of a key that is packed: so that it is in one row, and a look-up reads few it does not want."""
_AT_ONCE = 8_000
"""Keys that one step of ``pack`` writes."""
_SHARE = 8
"""Keys are packed when those with rows of their own are at least one in so many of the packed."""


def link(connection: Connection, namespace: str, rows: Sequence[Link], *, skip: bool = False) -> Sequence[Link]:
    """Link memories of one namespace, all of ``rows`` or none; return the stored links.

    With ``skip``, forbidden links are left out. Raises NotFound and InvalidInput as ``link_rules.linking`` does.
    """
    links = _linked(connection, {namespace: rows}, skip=skip)[0][namespace]
    if skip or not links:
        return links
    ids = sorted({row.from_id for row in rows})
    cursor = connection.execute(_SQL["link_list"], {"namespace": namespace, "ids": ids})
    stored = {one.key: one for one in (Link(namespace, *row) for row in cursor)}
    return [stored[row.key] for row in rows if row.key in stored]


def _linked(
    connection: Connection,
    each: Mapping[str, Sequence[Link]],
    *,
    skip: bool,
    began: Mapping[str, Mapping[str, float]] = MappingProxyType({}),
) -> tuple[dict[str, Sequence[Link]], dict[str, set[str]]]:
    """Link memories of some namespaces, which are in order; return the links made in each, and what is ``left_alone``.

    See ``link``. A memory whose text did not begin when ``began`` says, by namespace and id, counts as one that does
    not exist.
    """
    sent(connection, "namespace_own", ((namespace, {}) for namespace in each))
    ends = {n: sorted({id for row in rows for id in (row.from_id, row.to_id)}) for n, rows in each.items()}
    there = sent(connection, "link_there", ((namespace, {"ids": ids}) for namespace, ids in ends.items()))
    over = {n: over for n, rows in each.items() if (over := [row for row in rows if row.type == "supersedes"])}
    around = sent(connection, "link_order", ((n, _columns(rows, "from_id", "to_id")) for n, rows in over.items()))
    made: dict[str, Linking] = {}
    alone: dict[str, set[str]] = {}
    for namespace, rows in each.items():
        times = began.get(namespace, {})
        stored_ids = {id for id, at in there[namespace].fetchall() if times.get(id, at) == at}
        order = around[namespace].fetchall() if namespace in around else ()
        one = linking(namespace, rows, stored_ids, order, skip=skip)
        made[namespace] = one if one.links else Linking(())
        alone[namespace] = left_alone(rows, stored_ids)
    with pipelined(connection):
        for namespace, one in made.items():
            for from_id, to_id in one.lifted:
                which = {"namespace": namespace, "from_id": from_id, "type": "supersedes", "to_id": to_id}
                connection.execute(_SQL["link_remove"], which)
    fields = "from_id", "type", "to_id", "since", "made_by"
    additions = ((n, _columns(one.links, *fields)) for n, one in made.items() if one.links)
    new = {n: cursor.fetchall() for n, cursor in sent(connection, "link_add", additions).items()}
    with pipelined(connection):
        for namespace, rows_ in new.items():
            removals = [(newer, "supersedes", older) for newer, older in made[namespace].lifted]
            if rows_ or removals:
                send_change(connection, namespace, _NOTHING, fates_of(rows_, removals))
    return {namespace: one.links for namespace, one in made.items()}, alone


_LINK_COLUMNS = {"from_id": "from_ids", "type": "types", "to_id": "to_ids", "since": "since", "made_by": "made_by"}
"""The parameter for each field of links."""


def _columns(rows: Sequence[Link], *fields: str) -> dict[str, list[Any]]:
    """Return some fields of links, each as a list."""
    return {_LINK_COLUMNS[field]: [getattr(row, field) for row in rows] for field in fields}


def compared(connection: Connection, each: Mapping[str, Comparison]) -> frozenset[str]:
    """Store the links of memories, and that they were compared; return the namespaces where others wait.

    So do those that were compared with one that is gone or says something else by now. See LifeStore.
    """
    alone: Mapping[str, set[str]] = {}
    if links := {namespace: one.links for namespace, one in each.items() if one.links}:
        _, alone = _linked(connection, links, skip=True, began={n: one.began for n, one in each.items()})
    row_ids = ((n, np.fromiter(one.row_ids, np.int64, len(one.row_ids))) for n, one in each.items())
    which = ((namespace, {"ords": some, "seconds": WAITING_S}) for namespace, some in row_ids)
    done = sent(connection, "comparison_done", which)
    again = {namespace: sorted(ids) for namespace, ids in alone.items() if ids}
    sent(connection, "comparison_again", ((namespace, {"ids": ids}) for namespace, ids in again.items()))
    return frozenset(again).union(namespace for namespace, cursor in done.items() if only(cursor)[0])


def part(connection: Connection, namespace: str, ids: Collection[str]) -> None:
    """Take away the links that semmem made of memories that say something else now; what they led to is to be compared.

    Behind the lock of the namespace's row.
    """
    which = {"namespace": namespace, "ids": sorted(ids)}
    with pipelined(connection):
        connection.execute(_SQL["comparison_around"], which)
        cursor = connection.execute(_SQL["link_forget_made"], which)
    if ends := cursor.fetchall():
        fates = fates_of((), ends)
        count_change(connection, namespace, _NOTHING, {id: fate for id, fate in fates.items() if id not in ids})


class PostgresLinks:
    """The links of the memories of one PostgreSQL store."""

    def __init__(self, pool: Pooled) -> None:
        self._pool = pool

    def link(self, namespace: str, rows: Sequence[Link], *, skip: bool = False) -> Sequence[Link]:
        """Link memories of one namespace in one transaction; see the function ``link``."""
        return self._pool.transaction(lambda c: link(c, namespace, rows, skip=skip)) if rows else ()

    def unlink(self, namespace: str, from_id: str, type: str, to_id: str) -> bool:
        """Remove one link; return whether it existed."""

        def work(connection: Connection) -> bool:
            connection.execute(_SQL["namespace_own"], {"namespace": namespace})
            which = {"namespace": namespace, "from_id": from_id, "type": type, "to_id": to_id}
            removals = connection.execute(_SQL["link_remove"], which).fetchall()
            if removals:
                count_change(connection, namespace, _NOTHING, fates_of((), removals))
            return bool(removals)

        return self._pool.transaction_once(work)

    def links(self, namespace: str, ids: Collection[str]) -> Sequence[Link]:
        """Return the links from and to some memories, in order; links to a missing memory are left out."""
        rows = self._pool.rows("link_list", {"namespace": namespace, "ids": sorted(ids)})
        return [Link(namespace, *row) for row in rows]

    def undecided(self, namespace: str, type: Undecided, limit: int) -> Sequence[Link]:
        """Return up to ``limit`` links that wait for a decision, newest first; see LifeStore."""
        rows = self._pool.rows("link_undecided", {"namespace": namespace, "type": type, "limit": limit})
        return [Link(namespace, *row) for row in rows]

    def linked(self, namespace: str, row_ids: RowIds) -> Sequence[tuple[int, int, LinkType]]:
        """Return (row id, linked row id, type of link) in both directions; a bounded number for each memory."""
        which = {"namespace": namespace, "ords": np.fromiter(row_ids, np.int64, len(row_ids)), "limit": MOST_LINKS}
        return [(row_id, other, type) for row_id, other, type in self._pool.rows("link_neighbours", which)]

    def corroborate(
        self,
        namespace: str,
        times: Mapping[str, int],
        besides: Collection[str] | None = None,
        contents: Mapping[str, bytes] = MappingProxyType({}),
    ) -> frozenset[str]:
        """Add, for each id, how often it was remembered again just now; return the ids that were; see LifeStore."""
        return self._pool.transaction_once(
            partial(corroborate, namespace=namespace, times=times, besides=besides, contents=contents)
        )

    def unsettled(self, namespace: str, ids: Collection[str]) -> Sequence[PendingComparison]:
        """Return the memories whose links nobody has made yet and that share keys with some."""
        rows = self._pool.rows("comparison_like", {"namespace": namespace, "ids": sorted(ids)})
        return [_pending_comparison(row) for row in rows]

    def uncompared_namespaces(self) -> Sequence[str]:
        """Return the namespaces with memories that have no keys, or no links yet."""
        return sorted(namespace for (namespace,) in self._pool.rows("likeness_missing_somewhere", {}))

    def pending_comparisons(self, namespace: str, after: int, limit: int) -> Sequence[PendingComparison]:
        """Return memories that have no keys, or no links yet, ascending; see LifeStore."""
        rows = self._pool.rows("likeness_missing", {"namespace": namespace, "after": after, "limit": limit})
        return [_pending_comparison(row) for row in rows]

    def waiting(self, namespace: str, limit: int) -> Sequence[PendingComparison]:
        """Return some memories whose links nobody has made for long, or that are to be compared again."""
        parameters = {"namespace": namespace, "limit": limit, "seconds": WAITING_S}
        return [_pending_comparison(row) for row in self._pool.rows("comparison_waiting", parameters)]

    def compared(self, each: Mapping[str, Comparison]) -> Collection[str]:
        """Store the links of memories, and that they were compared; return the namespaces where others wait."""
        work = partial(compared, each=dict(sorted(each.items())))
        return self._pool.transaction(work) if any(one.links for one in each.values()) else self._pool.run(work)

    def similar(self, namespace: str, keys: Mapping[int, Sequence[int]]) -> Mapping[int, Sequence[Similar]]:
        """Store missing keys of memories, by row id; return the memories that share keys with each."""
        return self._pool.transaction(partial(similar, namespace=namespace, keys=keys))

    def newer(
        self, namespaces: Sequence[str], names: Mapping[str, Collection[str]], at: datetime | None = None
    ) -> Sequence[Newer]:
        """Return the memories that supersede others, along each chain to its end; see ``LifeStore.newer``."""
        some = [n for n in namespaces if names.get(n)]
        parameters = ({"namespace": n, "ids": sorted(names[n]), "deepest": DEEPEST, "at": at} for n in some)
        results = self._pool.together(*(("link_newer", one) for one in parameters))
        return [
            Newer(old, CandidateMetadata(placed(row_id, namespaces.index(name)), *rest), bool(hidden))
            for name, rows in zip(some, results, strict=True)
            for old, hidden, row_id, *rest in rows
        ]


def _pending_comparison(row: TupleRow) -> PendingComparison:
    memory = memory_of(row[:-1])
    at = row[-1] or memory.created_at
    assert at is not None
    return PendingComparison(row[-2], at, memory)


def firsts(connection: Connection, rows: Sequence[Row]) -> dict[tuple[str, str], str]:
    """Return the id of the memory that already has the content of a row, for rows not stored because of it."""
    contents = ((namespace, _contents(own)) for namespace, own in rows_by_namespace(rows).items())
    each = sent(connection, "memory_firsts", contents).items()
    return {(namespace, id): first for namespace, cursor in each for id, first in cursor.fetchall()}


def check_merged(connection: Connection, rows: Sequence[Row]) -> None:
    """Raise SerializationFailure, which repeats the write, where others have stored the same content meanwhile."""
    if firsts(connection, rows):
        raise SerializationFailure("Another writer has remembered the same text just now.")


def _contents(rows: Sequence[Row]) -> dict[str, Any]:
    return {
        "ids": [row.name[1] for row in rows],
        "contents": [row.content for row in rows],
        "payloads": [row.payload for row in rows],
    }


def corroborate(
    connection: Connection,
    namespace: str,
    times: Mapping[str, int],
    besides: Collection[str] | None,
    contents: Mapping[str, bytes],
) -> frozenset[str]:
    """Count for each id how often it was remembered again, in the common order of locks; see LifeStore."""
    parameters = {"namespace": namespace, "ids": sorted(times)}
    locked_rows(connection, "corroborate_lock", parameters)
    connection.execute(_SQL["namespace_hold"], {"namespace": namespace})
    if besides is not None:  # of two writers at once the second sees what the first has noted
        connection.execute(_SQL["namespace_own"], parameters)
    apart = None if besides is None else sorted(besides)
    columns = {"times": [times[id] for id in sorted(times)], "contents": [contents.get(id) for id in sorted(times)]}
    count_parameters = {**parameters, **columns, "besides": apart}
    return frozenset(id for (id,) in connection.execute(_SQL["memory_corroborate"], count_parameters).fetchall())


def similar(connection: Connection, namespace: str, keys: Mapping[int, Sequence[int]]) -> dict[int, list[Similar]]:
    """Store the keys of memories, by row id; return the memories that share keys with each; see LifeStore."""
    row_ids = np.fromiter(keys, np.int64, len(keys))
    forget_keys(connection, namespace, row_ids)
    stored_row_ids = [
        row_id for row_id, _ in connection.execute(_SQL["memory_titles"], {"namespace": namespace, "ords": row_ids})
    ]
    cursors = (
        ask_similar(connection, {namespace: {row_id: keys[row_id] for row_id in stored_row_ids}}, upto=2**62)
        if stored_row_ids
        else {}
    )
    return {row_id: rows for cursor in cursors.values() for row_id, rows in similar_of(cursor).items()}


def ask_similar(
    connection: Connection, keys: Mapping[str, Mapping[int, Sequence[int]]], upto: int = 0
) -> dict[str, Cursor]:
    """Send the keys of each namespace's memories and the query for memories that share some; return the cursors.

    The query finds earlier memories than each one, or those with row ids below ``upto``.
    """
    columns = {namespace: _key_columns(each) for namespace, each in sorted(keys.items())}
    if sum(map(len, keys.values())) > FEW:
        _copy_keys(connection, columns)
    else:
        sent(connection, "likeness_add", columns.items())
    return _found(connection, {n: {**one, "newest": MOST_SIMILAR, "upto": upto} for n, one in columns.items()})


def _key_columns(keys: Mapping[int, Sequence[int]]) -> dict[str, NDArray[Any]]:
    """Return the keys of a namespace's memories and the row id of each, in the order of the index, each pair once."""
    sizes = [len(some) for some in keys.values()]
    key_column = np.fromiter((key for some in keys.values() for key in some), np.int64, sum(sizes)).astype(np.int32)
    row_ids = np.repeat(np.fromiter(keys, np.int64, len(keys)), sizes)
    order = np.lexsort((row_ids, key_column))
    key_column, row_ids = key_column[order].astype(np.int64), row_ids[order]
    once = np.ones(len(key_column), dtype=bool)  # two keys of a memory may have their lower four bytes in common
    once[1:] = (key_column[1:] != key_column[:-1]) | (row_ids[1:] != row_ids[:-1])
    return {"keys": key_column[once], "ords": row_ids[once]}


def _found(connection: Connection, queries: Mapping[str, Mapping[str, Any]]) -> dict[str, Cursor]:
    """Send the queries for memories that share keys, and note the finders; on several nodes this waits for the rows."""
    if not on_nodes(connection):
        return sent(connection, "likeness_find", queries.items())
    cursors = sent(connection, "likeness_find_on_nodes", queries.items())
    finders = {n: sorted({row_id for row_id, *_ in cursor.fetchall()}) for n, cursor in cursors.items()}
    sent(connection, "likeness_note", ((n, {"ords": row_ids}) for n, row_ids in finders.items() if row_ids))
    for namespace, row_ids in finders.items():
        if row_ids:
            cursors[namespace].scroll(0, mode="absolute")
    return cursors


def _copy_keys(connection: Connection, columns: Mapping[str, Mapping[str, Any]]) -> None:
    """Store the keys of many memories, as ``likeness_add`` does; COPY logs a page of rows at once."""
    rows = [part for n, one in columns.items() for part in encoding.key_rows(n, one["keys"], one["ords"])]
    encoding.copy_packed(connection, "likeness_key", ("namespace", "key", "ord"), rows)
    of_memories = [row for n, one in columns.items() for row in _keys_of_memories(n, one["keys"], one["ords"])]
    encoding.copy_rows(connection, "likeness", ("namespace", "ord", "keys"), of_memories)


def _keys_of_memories(
    namespace: str, keys: NDArray[Any], ords: NDArray[np.int64]
) -> Iterable[tuple[bytes, bytes, bytes]]:
    """Return the rows (namespace, row id, its keys), each value in COPY's binary format."""
    of_memory = np.argsort(ords, kind="stable")
    row_ids, starts = np.unique(ords[of_memory], return_index=True)
    arrays = map(encoding.int4_array, np.split(keys[of_memory], starts[1:]))
    return zip(repeat(encoding.text(namespace)), map(encoding.int8, row_ids.tolist()), arrays, strict=False)


def forget_keys(connection: Connection, namespace: str, row_ids: NDArray[np.int64]) -> None:
    """Send that the keys of memories go, under the lock of the namespace, which is taken now."""
    connection.execute(_SQL["namespace_own"], {"namespace": namespace})
    connection.execute(_SQL["likeness_forget"], {"namespace": namespace, "ords": row_ids})


def pack_steps(connection: Connection, namespaces: Sequence[str]) -> dict[str, int]:
    """Return in how many steps ``pack`` is to be done now in each of some namespaces.

    Those are left out in which too few keys have come since to be worth it.
    """
    cursors = sent(connection, "likeness_count", ((namespace, {"most": _MOST_PACKED}) for namespace in namespaces))
    return {n: steps for n, cursor in cursors.items() if (steps := _steps(*only(cursor)))}


def _steps(apart: int, packed: int, shift: int | None) -> int:
    if not apart or apart * _SHARE < packed:
        return 0
    steps = 1 << int((apart + packed) // _AT_ONCE).bit_length()
    return steps if shift is None else min(steps, 1 << int(_BITS - shift))  # none ends within a row


def pack(connection: Connection, namespaces: Sequence[str], since: int, steps: int) -> tuple[int, int]:
    """Pack the keys of the memories of some namespaces, which are in order, from the key ``since`` on.

    See packed_likeness. Returns the key to go on at, and how many rows of keys went.
    """
    sent(connection, "namespace_own", ((namespace, {}) for namespace in namespaces))
    after = since + (1 << _BITS) // steps  # keys are hashes: equal ranges hold as many
    widest = min(_BITS - 1, _BITS + 1 - steps.bit_length())
    parameters = {"since": since, "upto": after - 1, "widest": widest, "full": FULL, "most": _MOST_PACKED}
    cursors = sent(connection, "likeness_pack", ((namespace, parameters) for namespace in namespaces))
    return after, sum(only(cursor)[0] for cursor in cursors.values())


def similar_of(cursor: Cursor) -> dict[int, list[Similar]]:
    """Return the rows of the statement ``likeness_find``, by row id."""
    neighbours: dict[int, list[Similar]] = defaultdict(list)
    for row_id, *rest in cursor.fetchall():
        neighbours[row_id].append(Similar(*rest))
    return neighbours
