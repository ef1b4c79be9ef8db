"""Write to SQLite: store a batch, forget memories, store new extractions. Callers hold the write lock.

The tokens that the lexical leg matches are written into an FTS5 table. A token is the number of the namespace and the
key of a term, in letters that FTS5 leaves unchanged. So semmem's own tokeniser, with its stems, stop words and pairs of
Chinese characters, decides what matches, and two namespaces have no token in common.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, TypeAlias

from semmem.model.errors import Conflict
from semmem.model.exchange import Extraction, Row, Written
from semmem.model.field_kinds import Json, Kind, Switch, Tags, Time
from semmem.model.memory_fields import FILTERS, STORED, Filter
from semmem.model.types import Filters, Memory
from semmem.stores.batch import check_conflicts, fates_of_rows, rows_by_namespace, uses_id_anew
from semmem.stores.filled_by import agree
from semmem.stores.link_rules import fates_of
from semmem.stores.packed_postings import FIRST_EARLIER, without_numbers
from semmem.stores.sql_files import check_limits, check_number, statements
from semmem.stores.sqlite.corrections import corrected, drop_unmentioned
from semmem.stores.sqlite.graph import forget_extraction, put_extraction
from semmem.stores.sqlite.likeness import first_of, note_around, part, similar_to
from semmem.stores.sqlite.meta import claim, fact
from semmem.stores.sqlite.saved import erase
from semmem.stores.sqlite.times import at_microsecond, microsecond
from semmem.text.tokens import author_key, check_language

__all__ = [
    "at_microsecond",
    "count_change",
    "filter_parameters",
    "forget",
    "memory_of",
    "microsecond",
    "purge",
    "reindex",
    "token",
    "write",
]

_SQL = statements("sqlite")
_MOST_REPEATS = 65_535
_ORD_BITS = 40
_PURGES = (
    "purge_history", "purge_earlier", "purge_link", "purge_recall_log", "purge_change", "access_purge",
)  # fmt: skip
_Reservation: TypeAlias = tuple[int, Iterator[int], tuple[int | None, int | None]]
"""Of a namespace: its number, the row numbers for its new rows, in order, and its limits in memories and bytes."""
_ENCODERS: Mapping[type[Kind], Callable[[Any], Any]] = {
    Time: microsecond,
    Tags: json.dumps,
    Json: lambda value: json.dumps(dict(value)),
}
_DECODERS: Mapping[type[Kind], Callable[[Any], Any]] = {
    Time: at_microsecond,
    Tags: lambda text: tuple(json.loads(text)),
    Json: json.loads,
    Switch: bool,
}
"""How a field is put into a column and read from it; fields of other kinds, and None, as they are."""


_Columns: TypeAlias = Sequence[tuple[str, Callable[[Any], Any] | None]]

_WRITTEN: _Columns = [(name, _ENCODERS.get(type(field.kind))) for name, field in STORED.items()]
_READ: _Columns = [(name, _DECODERS.get(type(field.kind))) for name, field in STORED.items()]


def _converted(columns: _Columns, values: Iterable[Any]) -> dict[str, Any]:
    """Return the values of columns, converted, by name; there may be more values than columns."""
    pairs = zip(columns, values, strict=False)
    return {name: value if value is None or to is None else to(value) for (name, to), value in pairs}


def memory_of(row: Sequence[Any], *, access_count: int | None = None, last_accessed: datetime | None = None) -> Memory:
    """Return the memory for a row of the table ``memory``; a part has the id ``{id}#{part}``."""
    namespace, id, part, updated_at, version, seen_count, last_seen, *values = row
    fields = _converted(_READ, values)  # behind them stands the row id
    counts: dict[str, Any] = {
        "seen_count": seen_count,
        "last_seen": None if last_seen is None or seen_count == 1 else at_microsecond(last_seen),  # 1: only written
        "access_count": access_count,
        "last_accessed": last_accessed,
    }
    at = at_microsecond(updated_at)
    name, parent = (f"{id}#{part}", id) if part else (id, None)
    return Memory(name, namespace, **fields, updated_at=at, version=version, parent_id=parent, **counts)


def token(number: int, key: int) -> str:
    """Return the token that stands in the index for a term's key in the namespace of that number."""
    return f"{number}n{key & 0xFFFF_FFFF_FFFF_FFFF:016x}"


def filter_parameters(filters: Filters) -> dict[str, Any]:
    """Return the parameters of the filter clauses; None restricts nothing."""
    values = ((name, row, getattr(filters, name)) for name, row in FILTERS.items())
    return {name: _filter(row, value) for name, row, value in values}


def _filter(row: Filter, value: Any) -> Any:
    if row.how in ("from", "before"):
        return None if value is None else microsecond(value)
    if row.how == "is":
        return value
    return json.dumps(dict(value) if row.how == "contains" else value) if value else None


def write(connection: sqlite3.Connection, rows: Sequence[Row], on_conflict: str) -> Written:
    """Store a batch; see Store.write."""
    wholes = {r.name: r for r in rows if r.part == 0}
    row_ids: dict[tuple[str, str, int], int] = {}
    unchanged: set[tuple[str, str]] = set()
    conflicts: set[tuple[str, str]] = set()
    replaced: set[tuple[str, str]] = set()
    removal_counts: Counter[str] = Counter()
    removal_lengths: Counter[str] = Counter()
    corroborated: dict[tuple[str, str], str] = {}
    numbers = _numbers(connection, rows)
    versions: dict[tuple[str, str], int] = {}
    hidden = _names_hidden(connection, wholes.values())
    for name, row in sorted(wholes.items(), key=lambda item: item[1].merges):  # what merges sees all others
        if row.merges and (first_id := first_of(connection, row)) is not None:
            corroborated[name] = first_id
            continue
        seen_row = None
        if row.replaces is not None:
            which = {"namespace": name[0], "id": name[1]}
            seen_row = None if row.retells else connection.execute(_SQL["made_seen"], which).fetchone()
            removal = _take_out(connection, row)
            if removal is None:
                conflicts.add(name)
                continue
            replaced.add(name)
            removal_counts[name[0]] += removal[0]
            removal_lengths[name[0]] += removal[1]
        if row.restores:
            _take_back(connection, row)
        if (inserted := _insert(connection, row, numbers)) is not None:
            row_ids[(*name, 0)], versions[name] = inserted
            if seen_row is not None:
                parameters = {"namespace": name[0], "id": name[1], "seen_count": seen_row[0], "last_seen": seen_row[1]}
                connection.execute(_SQL["made_seen_set"], parameters)
            if row.restores:
                at, seen_count = microsecond(datetime.now(UTC)), row.memory.seen_count
                parameters = {"namespace": name[0], "id": name[1], "at": at, "seen_count": seen_count}
                connection.execute(_SQL["history_seen"], parameters)
            continue
        stored = connection.execute(_SQL["memory_payload"], {"namespace": name[0], "id": name[1]}).fetchone()[0]
        (unchanged if stored == row.payload else conflicts).add(name)
    check_conflicts(conflicts, on_conflict)
    new = {(namespace, id) for namespace, id, _ in row_ids}
    for row in rows:
        if row.part > 0 and row.name in new:
            inserted = _insert(connection, row, numbers)
            assert inserted is not None
            row_ids[(*row.name, row.part)], _ = inserted
    for namespace, own_rows in rows_by_namespace(r for r in rows if r.name in new).items():
        number = numbers[namespace][0]
        extractions = [(row_ids[(*r.name, r.part)], r.extraction) for r in own_rows if r.extraction is not None]
        _put_extractions(connection, number, extractions)
        length = sum(extraction.length for _, extraction in extractions) - removal_lengths[namespace]
        own = [r for r in own_rows if r.part == 0]
        fates = fates_of_rows(own, replaced)
        new_count = sum(fate != "updated" for fate in fates.values())
        retold_ids = [r.name[1] for r in own if (r.name in replaced and r.retells) or uses_id_anew(r, versions[r.name])]
        if retold_ids:
            fates = fates_of((), part(connection, namespace, retold_ids)) | fates
        count_change(connection, namespace, len(extractions) - removal_counts[namespace], length, fates)
        limits = numbers[namespace][2]
        if limits != (None, None):
            holds = connection.execute(_SQL["namespace_holds"], {"namespace": namespace}).fetchone()
            check_limits(namespace, (*limits, *holds), new_count)
    for namespace in sorted({name[0] for name in new if wholes[name].made_anew}):  # which no change names
        connection.execute(_SQL["namespace_revise"], {"namespace": namespace, "length": 0})
    _drop_names(connection, hidden)
    _put_vectors(
        connection, [(row_ids[(*r.name, r.part)], r) for r in rows if r.vector is not None and r.name in new], numbers
    )
    alike = similar_to(connection, wholes, row_ids)
    fates_ = frozenset(new - replaced), frozenset(unchanged), frozenset(conflicts)
    stored = _as_stored(connection, next(iter(wholes))) if len(wholes) == 1 else {}
    return Written(
        *fates_, row_ids, replaced=frozenset(replaced), memories=stored, corroborated=corroborated, similar=alike
    )


def _names_hidden(connection: sqlite3.Connection, wholes: Iterable[Row]) -> dict[str, set[int]]:
    """Return by namespace the keys of the corrected names in memories that become sensitive."""
    ids = rows_by_namespace(row for row in wholes if row.memory.sensitive and row.replaces is not None)
    return {namespace: corrected(connection, namespace, {row.name[1] for row in own}) for namespace, own in ids.items()}


def _drop_names(connection: sqlite3.Connection, names: Mapping[str, Collection[int]]) -> None:
    for namespace, keys in names.items():
        drop_unmentioned(connection, namespace, keys)


def _put_extractions(
    connection: sqlite3.Connection, number: int, extractions: Sequence[tuple[int, Extraction]]
) -> None:
    """Store what was extracted of the new memories of a namespace, each behind its row id."""
    rows = [{"row": _row(number, row_id), "tokens": _tokens(number, extraction)} for row_id, extraction in extractions]
    connection.executemany(_SQL["lexical_insert"], rows)
    for row_id, extraction in extractions:
        put_extraction(connection, _row(number, row_id), extraction, new=True)


def _put_vectors(
    connection: sqlite3.Connection, rows: Sequence[tuple[int, Row]], numbers: Mapping[str, _Reservation]
) -> None:
    """Store the vectors of new memories. Raises EmbedderReplaced where another embedder fills the store by now."""
    for row_id, row in rows:
        assert row.vector is not None
        vector = row.vector.astype("<f4").tobytes()
        connection.execute(
            _SQL["embedding_put"], {"row": _row(numbers[row.memory.namespace][0], row_id), "vector": vector}
        )
    recorded = fact(connection) if rows else None
    for embedder in {json.dumps(dict(row.embedder)): row.embedder for _, row in rows if row.embedder}.values():
        if recorded is None:
            claim(connection, embedder)
        else:
            agree(recorded, embedder)


def _as_stored(connection: sqlite3.Connection, name: tuple[str, str]) -> dict[tuple[str, str], Memory]:
    """Return one memory as it is stored now, before others write, by (namespace, id)."""
    parameters = {"namespace": name[0], "ids": json.dumps([name[1]]), "now": microsecond(datetime.now(UTC))}
    found = map(memory_of, connection.execute(_SQL["memory_get"], parameters))
    return {(memory.namespace, memory.id): memory for memory in found}


def _row(number: int, row_id: int) -> int:
    """Return the row id of a memory in the namespace of that number."""
    return (number << _ORD_BITS) + row_id


def _numbers(connection: sqlite3.Connection, rows: Sequence[Row]) -> dict[str, _Reservation]:
    """Reserve numbers for ``rows``; raise InvalidInput where a namespace has another language than the rows."""
    reservations = {}
    for namespace, size in sorted(Counter(row.memory.namespace for row in rows).items()):
        parameters = {
            "namespace": namespace,
            "count": size,
            "at": microsecond(datetime.now(UTC)),
            "language": rows[0].language,
            "made_by": rows[0].made_by,
        }
        number, last, language, *limits = connection.execute(_SQL["namespace_take"], parameters).fetchall()[0]
        check_language(namespace, language, rows[0].language)
        check_number(namespace, number)
        if last >= FIRST_EARLIER:
            raise without_numbers(namespace)
        reservations[namespace] = number, iter(range(last - size + 1, last + 1)), (limits[0], limits[1])
    return reservations


def _take_out(connection: sqlite3.Connection, row: Row) -> tuple[int, int] | None:
    """Remove the memory that ``row`` replaces, and put it into the history.

    Returns how many rows were indexed, and their length; None where the stored memory is another one by now.
    """
    namespace, id = row.name
    rows = connection.execute(_SQL["replace_select"], {"namespace": namespace, "id": id}).fetchall()
    if not rows or row.replaces is None:
        return None
    version, payload, created_at = row.replaces
    if rows[0][:4] != (version, payload, microsecond(created_at), 0):
        return None
    if not row.made_anew:
        _keep(connection, namespace, [id], row.changed_by, forgotten=False)
        if row.versions is not None:
            trim = {"namespace": namespace, "id": id, "versions": row.versions}
            if connection.execute(_SQL["history_trim"], trim).rowcount:
                erase(connection, namespace)  # it may hold their titles
    if row.memory.sensitive:
        hide = {"namespace": namespace, "id": id, "payload": os.urandom(16)}
        connection.execute(_SQL["history_hide"], hide)
        if not rows[0][7]:  # it becomes sensitive now
            connection.execute(_SQL["purge_recall_log"], {"namespace": namespace, "ids": json.dumps([id])})
        erase(connection, namespace)
    return _remove(connection, [row[4:7] for row in rows])


def _keep(
    connection: sqlite3.Connection, namespace: str, ids: Iterable[str], by: str | None, *, forgotten: bool
) -> None:
    """Copy memories into the history before they are changed or softly forgotten, all at one time."""
    at = microsecond(datetime.now(UTC))
    for id in ids:
        which = {"namespace": namespace, "id": id, "by": by, "at": at, "forgotten": forgotten}
        connection.execute(_SQL["history_keep"], which)
        if forgotten:
            connection.execute(_SQL["history_forget"], which)


def _take_back(connection: sqlite3.Connection, row: Row) -> None:
    """Remove the restored memory from the history. Raises Conflict where another process was faster."""
    namespace, id = row.name
    which = {"namespace": namespace, "id": id, "version": row.memory.version}
    rows = connection.execute(_SQL["history_take"], which).fetchall()
    if not rows:
        raise Conflict(f"{id!r} is not forgotten any more; look at its history.", names=frozenset((row.name,)))
    connection.execute(_SQL["history_return"], {**which, "forgotten_at": rows[0][0]})


def _remove(connection: sqlite3.Connection, rows: Sequence[tuple[int, int, int]]) -> tuple[int, int]:
    """Remove rows, each (parts, row, length), and the data derived from them; return their number and their length."""
    indexed = [(row, length) for parts, row, length in rows if parts == 0]
    connection.executemany(_SQL["lexical_forget"], [{"row": row} for row, _ in indexed])
    forget_extraction(connection, [row for row, _ in indexed])
    connection.executemany(_SQL["likeness_forget"], [{"row": row} for _, row, _ in rows])
    connection.executemany(_SQL["comparison_forget"], [{"row": row} for _, row, _ in rows])
    connection.executemany(_SQL["forget_memory"], [{"row": row} for _, row, _ in rows])
    return len(indexed), sum(length for _, length in indexed)


def forget(
    connection: sqlite3.Connection,
    namespace: str,
    id: str | Collection[str] | None,
    filters: Filters,
    *,
    dry_run: bool,
    soft: bool = False,
    by: str | None = None,
    earlier: bool = True,
) -> int:
    """Remove memories and all data derived from them; return how many whole memories. ``id`` may be a collection.

    ``soft`` keeps them in the history, as forgotten ``by`` somebody. Otherwise everything kept of them is removed too,
    and with ``earlier`` also the matching memories that were softly forgotten before.
    """
    which = None if id is None else json.dumps([id] if isinstance(id, str) else sorted(id))
    parameters = {"namespace": namespace, "ids": which, **filter_parameters(filters)}
    rows = connection.execute(_SQL["forget_select"], parameters).fetchall()
    fates = {i: "forgotten" for i, part, *_ in rows if part == 0}
    lives = connection.execute(_SQL["purge_select"], parameters).fetchall() if earlier and not soft else []
    all_ids = fates.keys() | {id for id, _ in lives}
    if dry_run:
        return len(all_ids)
    names = set() if soft else corrected(connection, namespace, all_ids)
    if soft:
        _keep(connection, namespace, fates, by, forgotten=True)
    indexed, length = _remove(connection, [row[2:] for row in rows])
    note_around(connection, namespace, fates.keys())
    if not soft:
        purge(connection, namespace, fates.keys(), lives)
        drop_unmentioned(connection, namespace, names)
    if fates:
        count_change(connection, namespace, -indexed, -length, fates)
        connection.execute(_SQL["correction_empty"], {"namespace": namespace})
    return len(all_ids)


def purge(
    connection: sqlite3.Connection, namespace: str, ids: Collection[str], earlier: Collection[tuple[str, int]] = ()
) -> None:
    """Remove everything kept of removed memories: versions, links, the recalls that found them, access counts.

    The saved model of the namespace, which may hold their titles, is removed in any case.

    ``earlier`` are softly forgotten memories to remove too, by id and time. Rows that other memories need stay.
    """
    erase(connection, namespace)
    all_ids = sorted({*ids, *(id for id, _ in earlier)})
    named = {"ids": all_ids, "gone": sorted(ids), "earlier": list(earlier)}
    which = {"namespace": namespace, **{name: json.dumps(some) for name, some in named.items()}}
    for statement in _PURGES if all_ids else ():
        connection.execute(_SQL[statement], which)


def reindex(
    connection: sqlite3.Connection,
    namespace: str,
    extractions: Sequence[tuple[int, Extraction]],
    language: str | None = None,
) -> int:
    """Store new extractions of memories; return how many changed. Forgotten memories are left out."""
    changed = longer = 0
    namespace_row = connection.execute(_SQL["namespace_of"], {"namespace": namespace}).fetchone()
    if namespace_row is not None and language is not None:
        check_language(
            namespace, connection.execute(_SQL["language_of"], {"namespace": namespace}).fetchone()[0], language
        )
    for row_id, extraction in extractions if namespace_row is not None else ():
        number = namespace_row[0]
        row = {"row": _row(number, row_id)}
        memory_row = connection.execute(_SQL["memory_length"], row).fetchone()
        if memory_row is None:
            continue
        length, tokens = memory_row
        new_tokens = _tokens(number, extraction)
        others = put_extraction(connection, row["row"], extraction, new=False)
        if not others and (length, tokens) == (extraction.length, new_tokens):
            continue
        connection.execute(_SQL["lexical_replace"], {**row, "tokens": new_tokens})
        connection.execute(_SQL["memory_lengthen"], {**row, "length": extraction.length})
        changed += 1
        longer += extraction.length - length
    if changed:
        erase(connection, namespace)
        connection.execute(_SQL["namespace_revise"], {"namespace": namespace, "length": longer})
    return changed


def _insert(connection: sqlite3.Connection, row: Row, numbers: Mapping[str, _Reservation]) -> tuple[int, int] | None:
    """Store one row and return its row id and version; None when its id exists already."""
    memory = row.memory
    number, row_ids, _ = numbers[memory.namespace]
    row_id = next(row_ids)
    assert memory.updated_at is not None
    values = _converted(_WRITTEN, (getattr(memory, name) for name, _ in _WRITTEN))
    values |= {
        "row": _row(number, row_id),
        "namespace": memory.namespace,
        "id": memory.parent_id or memory.id,
        "part": row.part,
        "parts": row.parts,
        "author_key": (author_key(memory.author) or None) if memory.author and not memory.sensitive else None,
        "updated_at": microsecond(memory.updated_at),
        "version": memory.version,
        "content": row.content,
        "payload": row.payload,
        "length": row.extraction.length if row.extraction is not None else 0,
        "text_at": None if row.text_at is None else microsecond(row.text_at),
        "now": microsecond(datetime.now(UTC)),
    }
    stored = connection.execute(_SQL["memory_insert"], values).fetchall()
    return (row_id, stored[0][0]) if stored else None


def _tokens(number: int, extraction: Extraction) -> str:
    pairs = zip(extraction.keys, extraction.counts, strict=True)
    return " ".join(" ".join([token(number, key)] * min(n, _MOST_REPEATS)) for key, n in pairs if n > 0)


def count_change(
    connection: sqlite3.Connection, namespace: str, memories: int, length: int, fates: Mapping[str, str]
) -> None:
    """Number a change of a namespace, and record what happened to each id."""
    at = microsecond(datetime.now(UTC))
    parameters: Mapping[str, Any] = {"namespace": namespace, "memories": memories, "length": length, "at": at}
    connection.execute(_SQL["namespace_count"], parameters)
    for fate in sorted(set(fates.values())):
        ids = json.dumps(sorted(id for id, id_fate in fates.items() if id_fate == fate))
        kind, _, types = fate.partition(" ")
        change = {"namespace": namespace, "kind": kind, "types": types or None, "ids": ids, "at": at}
        connection.execute(_SQL["change_add"], change)
