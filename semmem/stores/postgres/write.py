"""Write to PostgreSQL: a batch in one transaction, in which replaced memories are removed first.

Every function takes an open connection inside a transaction and holds no state. All writers lock rows in the same
order: memories by id, then the row of the namespace, then postings. But the new memories of a pipeline come behind the
lock of the namespace, so of it and a batch that stores the same ids at that moment the server may have one done again.
"""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from psycopg.errors import SerializationFailure

from semmem.model.exchange import Row, Written
from semmem.model.store.derivations import Span, derivation_of
from semmem.model.types import Memory
from semmem.stores.batch import check_conflicts, fates_of_rows, rows_by_namespace, uses_id_anew
from semmem.stores.packed_postings import FIRST_EARLIER, without_numbers
from semmem.stores.postgres import encoding
from semmem.stores.postgres.connection import by_namespace, sent
from semmem.stores.postgres.corrections import corrected, drop_unmentioned, earlier_entries
from semmem.stores.postgres.encoding import memory_of
from semmem.stores.postgres.forget import clear_postings, delete_rows
from semmem.stores.postgres.life import keep, mark_span, see_again, seen_counts, take_back
from semmem.stores.postgres.links import ask_similar, check_merged, firsts, part, similar, similar_of
from semmem.stores.postgres.postings import NamespaceBacklog, NewRows, ask_grounds, check_grounds, index_few, index_many
from semmem.stores.postgres.saved import erase
from semmem.stores.postgres.typed import Connection, Cursor, only
from semmem.stores.sql_files import statements
from semmem.text.tokens import check_language

__all__ = ["numbers_for", "write", "write_again"]

_SQL = statements("postgres")
_Name: TypeAlias = tuple[str, str]


def write(
    connection: Connection,
    rows: Sequence[Row],
    on_conflict: str,
    backlog: dict[str, NamespaceBacklog] | None = None,
    numbers: Mapping[str, int] | None = None,
    bulk: bool = False,
) -> Callable[[], Written]:
    """Store a batch; see Store.write. A large batch is a segment; those of a small one, or of a bulk, stay pending.

    In a pipeline (rows that ``are_few``) pass a ``backlog``, which is filled with the numbers that
    ``flush_and_compact`` needs. The pipeline waits once, for the row ids and for all that may forbid the rows; the rest
    is sent without waiting. ``numbers`` are the row ids before each namespace's first row, if they were reserved before
    the transaction. Returns a function that returns the result; it waits where the pipeline has not ended.
    """
    connection.execute(_SQL["by_index"])
    ordered = sorted(rows, key=lambda r: (r.memory.namespace, r.memory.id, r.part))
    wholes = [r for r in ordered if r.part == 0]
    row_numbers = _Numbers(connection, rows, numbers)
    replaced = _replace(connection, ordered, row_numbers)
    if restorations := [row for row in wholes if row.restores]:
        row_numbers.ask_drops(earliest=take_back(connection, restorations))
    writable = [r for r in wholes if r.name not in replaced.stale]
    cursors = [row_numbers.send(some) for some in _in_turns(writable)]
    grounds = (
        {} if backlog is None else {n: ask_grounds(connection, n, rows) for n in by_namespace(r.name for r in writable)}
    )
    row_ids, lived_before = _stored(cursors, writable)
    row_numbers.check_drops()
    new = {(namespace, id) for namespace, id, _ in row_ids}
    restored = rows_by_namespace([row for row in restorations if row.name in new]).items()
    sent(connection, "history_seen", ((namespace, _seen(rows)) for namespace, rows in restored))
    for namespace, seen_rows in replaced.seen.items():
        see_again(connection, namespace, seen_rows)
    unstored = [r for r in writable if r.name not in new]
    corroborated = firsts(connection, [r for r in unstored if r.merges])
    unchanged, conflicts = _compare(connection, [r for r in unstored if r.name not in corroborated])
    conflicts |= replaced.stale
    check_conflicts(conflicts, on_conflict)
    row_ids |= _stored([row_numbers.send([r for r in ordered if r.part > 0 and r.name in new])])[0]
    keys = _likeness_keys(wholes, new, row_ids)
    similar_cursors = {} if backlog is None else ask_similar(connection, keys)  # under the lock, and in the pipeline
    news = _new_rows(ordered, new, row_ids, replaced)
    index_cursors: dict[str, tuple[Cursor, Cursor | None]] = {}
    if backlog is not None:
        for rows_ in news:
            check_grounds(connection, grounds[rows_.namespace], rows_)
            index_cursors[rows_.namespace] = index_few(connection, rows_, bulk)
    elif news:
        held = index_many(connection, news, row_numbers.last, bulk)
        if numbers is not None:  # the row ids were reserved some time ago
            _mark_made(connection, news, numbers, row_numbers.last, held)
    _number_anew(connection, wholes, news)
    for namespace, corrected_keys in replaced.corrected.items():
        drop_unmentioned(connection, namespace, corrected_keys)
    for namespace, ids in by_namespace(lived_before).items():
        part(connection, namespace, ids)
    if backlog is None:  # from here on each namespace is locked
        check_merged(connection, [r for r in writable if r.merges and r.name in new])
        similar_cursors = ask_similar(connection, keys)
    named = {(n, row_ids[n, id, 0]): (n, id) for n, id in new}
    fates_ = frozenset(new - replaced.names), frozenset(unchanged), frozenset(conflicts)

    def written() -> Written:
        memories: dict[tuple[str, str], Memory] = {}
        for namespace, (backlog_cursor, memory_rows) in index_cursors.items():
            if backlog is not None:
                backlog[namespace] = NamespaceBacklog._make(only(backlog_cursor))
            memories |= {(namespace, memory.id): memory for memory in map(memory_of, memory_rows or ())}
        alike = {
            named[n, row_id]: rows
            for n, cursor in similar_cursors.items()
            for row_id, rows in similar_of(cursor).items()
        }
        fields: dict[str, Any] = {"memories": memories, "corroborated": corroborated, "similar": alike}
        return Written(*fates_, row_ids, frozenset(replaced.names), **fields)

    return written


def _new_rows(
    rows: Sequence[Row],
    new: Collection[_Name],
    row_ids: Mapping[tuple[str, str, int], int],
    replaced: _Replaced,
) -> list[NewRows]:
    """Return the new rows from which data are derived and what they change, by namespace, in order."""
    news = []
    for namespace, own in rows_by_namespace(row for row in rows if row.name in new).items():
        derived = (row for row in own if row.extraction is not None or row.memory.sensitive)
        if not (stored := sorted(((row_ids[(*r.name, r.part)], r) for r in derived), key=lambda pair: pair[0])):
            continue
        count = _total(stored, replaced.removal_counts.get(namespace, (0, 0)))
        fates = fates_of_rows((row for row in own if row.part == 0), replaced.names)
        news.append(NewRows(namespace, stored, count, fates))
    return news


def _mark_made(
    connection: Connection,
    news: Sequence[NewRows],
    before: Mapping[str, int],
    last: Mapping[str, int],
    held: Mapping[str, tuple[int, Sequence[Sequence[Any]] | None]],
) -> None:
    """Record what has made the new rows, where their row ids were reserved before another version took some."""
    for new in news:
        if by := new.stored[0][1].made_by:
            span = Span(before[new.namespace], last[new.namespace], derivation_of(by))
            mark_span(connection, new.namespace, span, *held[new.namespace])


def _number_anew(connection: Connection, wholes: Sequence[Row], news: Sequence[NewRows]) -> None:
    """Number the changes of memories that were only made anew: no change names them, so nobody can follow these."""
    anew = {row.memory.namespace for row in wholes if row.made_anew}
    for new in news:
        if new.namespace not in anew:
            continue
        if new.fates:  # nor is it taken for one of those that are named
            connection.execute(_SQL["namespace_count"], {"namespace": new.namespace, "memories": 0, "length": 0})
        connection.execute(_SQL["namespace_revise"], {"namespace": new.namespace, "length": 0})


def _likeness_keys(
    wholes: Sequence[Row], new: Collection[_Name], row_ids: Mapping[tuple[str, str, int], int]
) -> dict[str, dict[int, Sequence[int]]]:
    """Return the likeness keys of new memories, by namespace and row id."""
    keys: dict[str, dict[int, Sequence[int]]] = defaultdict(dict)
    for row in wholes:
        if row.likeness and row.name in new:
            keys[row.memory.namespace][row_ids[(*row.name, 0)]] = row.likeness
    return keys


def numbers_for(connection: Connection, rows: Sequence[Row]) -> dict[str, int]:
    """Reserve row ids for ``rows``, outside their transaction; return the row id before the first of each namespace."""
    count = Counter(row.memory.namespace for row in rows)
    common = {"language": rows[0].language, "made_by": rows[0].made_by} if rows else {}
    before = {}
    sizes = ((namespace, {**common, "count": size}) for namespace, size in sorted(count.items()))
    for namespace, cursor in sent(connection, "row_ids_reserve", sizes).items():
        last, language = only(cursor)
        check_language(namespace, language, rows[0].language)  # now, and not after everything was written
        before[namespace] = last - count[namespace]
        if last >= FIRST_EARLIER:
            raise without_numbers(namespace)
    return before


def _total(stored: Sequence[tuple[int, Row]], removal: tuple[int, int]) -> dict[str, int]:
    """Return what a batch adds to the counts of a namespace, less the (memories, length) that it removed."""
    lengths = [row.extraction.length for _, row in stored if row.extraction is not None]
    return {"memories": len(lengths) - removal[0], "length": sum(lengths) - removal[1]}


class _Numbers:
    """The row ids of a batch: reserved before its transaction, or under their namespaces' locks when first needed.

    They are in the order in which the batch was given, and so is what is like its memories, on every store.
    """

    def __init__(self, connection: Connection, rows: Sequence[Row], before: Mapping[str, int] | None) -> None:
        self._connection = connection
        self._before = before
        self._count = Counter(row.memory.namespace for row in rows)
        self._common = {"language": rows[0].language, "made_by": rows[0].made_by} if rows else {}
        self._places = {
            (*row.name, row.part): place for own in rows_by_namespace(rows).values() for place, row in enumerate(own, 1)
        }
        self._is_reserved = False
        self._drops: list[Cursor] = []

    def ask_drops(
        self, least: Mapping[str, int] = MappingProxyType({}), earliest: Mapping[str, datetime] = MappingProxyType({})
    ) -> None:
        """Lock the namespaces, and ask whether drops take what the batch has taken out of them; see ``check_drops``.

        The batch replaces memories with row ids from ``least`` on, and brings back versions that were forgotten at
        ``earliest`` or later.
        """
        self._lock()
        taken = {n: {"least": least.get(n), "earliest": earliest.get(n)} for n in sorted({*least, *earliest})}
        self._drops += sent(self._connection, "namespace_drops", taken.items()).values()

    def check_drops(self) -> None:
        """Raise SerializationFailure, which repeats the batch, where a drop takes what it would store anew."""
        if any(is_taken for cursor in self._drops for (is_taken,) in cursor.fetchall()):
            raise SerializationFailure("The namespace was dropped while memories of it were changed.")

    def _lock(self) -> None:
        """Lock the rows of the namespaces, in order, until the commit."""
        if self._before is None:
            self._reserve()
            return
        sent(self._connection, "namespace_own", ((namespace, {}) for namespace in sorted(self._count)))

    def _reserve(self) -> None:
        if not self._is_reserved:
            counts = ((namespace, {"count": count, **self._common}) for namespace, count in sorted(self._count.items()))
            sent(self._connection, "row_ids_reserve", counts)
            self._is_reserved = True

    @property
    def last(self) -> dict[str, int]:
        """Return the last row id of the batch in each namespace; 0 where they were reserved under the lock."""
        before = self._before
        return {n: 0 if before is None else before[n] + count for n, count in self._count.items()}

    def send(self, rows: Sequence[Row]) -> dict[str, Cursor]:
        """Store those of ``rows`` whose ids are new; return the cursors of each namespace."""
        if rows and self._before is None:
            self._reserve()
        columns = ((namespace, self._columns(namespace, own)) for namespace, own in rows_by_namespace(rows).items())
        return sent(self._connection, "memory_insert", columns)

    def _columns(self, namespace: str, rows: Sequence[Row]) -> dict[str, Any]:
        """Return the parameters that store ``rows``."""
        before = None if self._before is None else self._before[namespace]
        columns = encoding.columns_of(rows, [self._places[*row.name, row.part] for row in rows])
        return {"before": before, "count": self._count[namespace], **columns}


def _in_turns(wholes: Sequence[Row]) -> tuple[list[Row], list[Row]]:
    """Return first what is stored whatever else is, then what is not where its text is stored: one sees the other."""
    return [row for row in wholes if not row.merges], [row for row in wholes if row.merges]


def _stored(
    cursors: Sequence[Mapping[str, Cursor]], wholes: Sequence[Row] = ()
) -> tuple[dict[tuple[str, str, int], int], set[_Name]]:
    """Return the row ids of the stored rows, by (namespace, id, part), and which of ``wholes`` use an id anew."""
    by_name = {row.name: row for row in wholes}
    row_ids: dict[tuple[str, str, int], int] = {}
    lived_before: set[_Name] = set()
    for namespace, cursor in [item for one in cursors for item in one.items()]:
        for id, part_number, row_id, version in cursor.fetchall():
            row_ids[namespace, id, part_number] = row_id
            if part_number == 0 and uses_id_anew(by_name[namespace, id], version):
                lived_before.add((namespace, id))
    return row_ids, lived_before


@dataclass(frozen=True)
class _Replaced:
    """What became of the memories that a batch replaces."""

    names: set[_Name] = field(default_factory=set)
    """Those that were removed."""
    stale: set[_Name] = field(default_factory=set)
    """Those that have changed or gone since the batch was made."""
    removal_counts: dict[str, tuple[int, int]] = field(default_factory=dict)
    """The number and the length of the removed memories, by namespace."""
    seen: dict[str, Any] = field(default_factory=dict)
    """How often those were seen that say the same as before, by namespace."""
    corrected: dict[str, NDArray[np.int64]] = field(default_factory=dict)
    """The keys of corrected names in those that become sensitive, by namespace."""


def _replace(connection: Connection, rows: Sequence[Row], row_numbers: _Numbers) -> _Replaced:
    """Remove the memories that ``rows`` replace, if they have not changed.

    The history keeps them, but not those that are only made anew.
    """
    wholes = [row for row in rows if row.part == 0]
    replaces = {row.name: row.replaces for row in wholes if row.replaces is not None}
    if not replaces:
        return _Replaced()
    stored_rows = _rows_of_names(connection, "replace_select", replaces)
    same = {(n, i) for n, i, part, _, _, *life in stored_rows if part == 0 and tuple(life) == replaces[n, i]}
    shown = {(n, i) for n, i, _, _, is_sensitive, *_ in stored_rows if not is_sensitive}
    hidden = [row for row in wholes if row.memory.sensitive and row.name in same]

    row_ids = _row_ids_of(stored_rows, same)
    anew = _row_ids_of(stored_rows, {row.name for row in wholes if row.made_anew})
    past = {namespace: sorted({*some}.difference(anew.get(namespace, ()))) for namespace, some in row_ids.items()}
    trims = _keep_versions(connection, wholes, past)
    hidden_names = by_namespace(row.name for row in hidden)
    earlier = {namespace: _hide_versions(connection, namespace, ids) for namespace, ids in hidden_names.items()}
    as_before = _row_ids_of(stored_rows, {row.name for row in wholes if not row.retells})
    seen = {namespace: seen_counts(connection, namespace, some) for namespace, some in as_before.items()}
    deletions = {n: delete_rows(connection, {"namespace": n, "ords": some}) for n, some in row_ids.items()}
    row_numbers.ask_drops(least={namespace: min(some) for namespace, some in row_ids.items()})
    trimmed = {namespace for namespace, trim in trims.items() if trim.rowcount > 0}  # the deletions waited
    for namespace in sorted(trimmed | earlier.keys()):
        erase(connection, namespace)  # the saved model may hold titles that are not kept any more
    _forget_recalls(connection, by_namespace(row.name for row in hidden if row.name in shown))
    corrected_keys = {namespace: corrected(connection, namespace, (), cursor) for namespace, cursor in earlier.items()}
    removal_counts = {}
    for namespace, (forwards, flushed) in deletions.items():
        for statement in ("likeness_forget", "comparison_forget"):  # notes too: others make them under this lock
            connection.execute(_SQL[statement], {"namespace": namespace, "ords": row_ids[namespace]})
        clear_postings(connection, namespace, flushed)
        removal_counts[namespace] = len(forwards), sum(n for _, n, _ in forwards)
    for namespace, ids in by_namespace(row.name for row in wholes if row.retells and row.name in same).items():
        part(connection, namespace, ids)
    return _Replaced(same, replaces.keys() - same, removal_counts, seen, corrected_keys)


def _row_ids_of(stored_rows: Iterable[tuple[Any, ...]], names: Collection[_Name]) -> dict[str, list[int]]:
    """Return the row ids of the memories with these names, by namespace."""
    row_ids: dict[str, list[int]] = defaultdict(list)
    for namespace, id, _, row_id, *_ in stored_rows:
        if (namespace, id) in names:
            row_ids[namespace].append(row_id)
    return dict(row_ids)


def _keep_versions(
    connection: Connection, wholes: Sequence[Row], row_ids: Mapping[str, Sequence[int]]
) -> dict[str, Cursor]:
    """Put versions into the history; return the cursors that delete those beyond the limit of a memory."""
    changed_by: dict[str, dict[str, str]] = defaultdict(dict)
    for row in wholes:
        if row.changed_by is not None:
            namespace, id = row.name
            changed_by[namespace][id] = row.changed_by
    trims = {}
    for namespace, some in row_ids.items():
        by = changed_by[namespace]
        trim = keep(connection, namespace, some, by=by, versions=wholes[0].versions) if some else None
        if trim is not None:
            trims[namespace] = trim
    return trims


def _hide_versions(connection: Connection, namespace: str, ids: Sequence[str]) -> Cursor:
    """Mask the earlier versions of memories that become sensitive; return the cursor of their entries until then."""
    entries = earlier_entries(connection, namespace, ids)
    connection.execute(_SQL["history_hide"], {"namespace": namespace, "ids": ids, "payload": os.urandom(16)})
    return entries


def _forget_recalls(connection: Connection, hidden: Mapping[str, Sequence[str]]) -> None:
    """Delete the logged recalls that found memories which become sensitive, by namespace, for a question may quote one.

    Who logs a recall waits for the lock, and then sees that one of its hits is sensitive.
    """
    for namespace in sorted(hidden):
        which = {"namespace": namespace, "ids": hidden[namespace]}
        for statement in ("namespace_alone", "purge_recall_log"):
            connection.execute(_SQL[statement], which)


def _of_names(names: Collection[_Name]) -> list[tuple[str, dict[str, Any]]]:
    """Return some (namespace, id) as parameters of each namespace, in order."""
    return [(namespace, {"ids": ids}) for namespace, ids in by_namespace(names).items()]


def _seen(rows: Sequence[Row]) -> dict[str, list[Any]]:
    """Return how often restored memories were seen, as parameters."""
    return {"ids": [row.name[1] for row in rows], "counts": [row.memory.seen_count for row in rows]}


def _rows_of_names(connection: Connection, statement: str, names: Collection[_Name]) -> list[tuple[Any, ...]]:
    """Return the rows of a statement about some (namespace, id), each behind its namespace."""
    each = sent(connection, statement, _of_names(names)).items()
    return [(namespace, *row) for namespace, cursor in each for row in cursor.fetchall()]


def _compare(connection: Connection, rows: Sequence[Row]) -> tuple[set[tuple[str, str]], set[tuple[str, str]]]:
    if not rows:
        return set(), set()
    names = [r.name for r in rows]
    found = _rows_of_names(connection, "memory_payloads", names)
    stored = {(namespace, id): bytes(payload) for namespace, id, payload, _ in found}
    if len(stored) < len(rows):  # forgotten after the insert had found it: not an error, so try again
        raise SerializationFailure("A memory was forgotten while it was remembered again.")
    same = {r.name for r in rows if stored[r.name] == r.payload}
    return same, set(names) - same


def _is_written(row: Row, version: int) -> bool:
    """Return whether a stored version may be that of ``row``; an id that had an earlier life gets a later number."""
    return version == row.memory.version or (row.replaces is None and version > row.memory.version)


def write_again(connection: Connection, rows: Sequence[Row], on_conflict: str) -> Written:
    """Store a batch whose connection was lost, perhaps after the commit; memories stored then count as written now."""
    wholes = {row.name: row for row in rows if row.part == 0}
    stored_rows = _rows_of_names(connection, "memory_written", wholes)
    stored_names = {
        (namespace, id)
        for namespace, id, part, version, _, payload in stored_rows
        if part == 0 and _is_written(wholes[namespace, id], version) and payload == wholes[namespace, id].payload
    }
    written = write(connection, [row for row in rows if row.name not in stored_names], on_conflict)()
    replaced = {name for name in stored_names if wholes[name].replaces is not None}
    row_ids = {
        (namespace, id, part): row_id
        for namespace, id, part, _, row_id, _ in stored_rows
        if (namespace, id) in stored_names
    }
    alike = dict(written.similar)
    for namespace, ids in by_namespace(name for name in stored_names if wholes[name].likeness).items():
        keys = {row_ids[namespace, id, 0]: wholes[namespace, id].likeness for id in ids}
        named = {row_ids[namespace, id, 0]: (namespace, id) for id in ids}
        alike |= {named[row_id]: rows for row_id, rows in similar(connection, namespace, keys).items()}
    return replace(
        written,
        new=written.new | (stored_names - replaced),
        replaced=written.replaced | replaced,
        row_ids={**written.row_ids, **row_ids},
        similar=alike,
    )
