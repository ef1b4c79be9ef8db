"""The life of memories in PostgreSQL: their versions, links and changes."""

from __future__ import annotations

import json
import struct
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

import numpy as np
from psycopg import Rollback
from psycopg.types.json import Jsonb

from semmem.model.audit import AuditEntry, AuditFilters, entry_of
from semmem.model.errors import Conflict, NotFound
from semmem.model.exchange import Row
from semmem.model.history import Access, Change, Earlier, Forgotten, Made, Version, around, versions_of
from semmem.model.recall_log import GONE_MEANWHILE, LogFilters, LoggedRecall, found_of, hits_within, logged_of, mark_of
from semmem.model.reports import Limits, RelevanceJudgment
from semmem.model.store.derivations import Mark, Span, marked, spans
from semmem.model.store.life import ChangeLog, Moving
from semmem.model.types import Memory
from semmem.stores.link_rules import types_of
from semmem.stores.packed_postings import FORWARD, merged
from semmem.stores.postgres.connection import by_namespace, pipelined, sent
from semmem.stores.postgres.encoding import memory_of
from semmem.stores.postgres.links import PostgresLinks
from semmem.stores.postgres.locking import locked_rows
from semmem.stores.postgres.moving import namespaces
from semmem.stores.postgres.typed import Connection, Cursor, only
from semmem.stores.sql_files import statements

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = [
    "PostgresLife",
    "history_parameters",
    "keep",
    "mark_made",
    "mark_span",
    "see_again",
    "seen_counts",
    "take_back",
]

_SQL = statements("postgres")
_INT4 = struct.Struct("!i")
_TWO_INT4 = struct.Struct("!ii")
_THREE_INT4 = struct.Struct("!iii")


class PostgresLife(PostgresLinks):
    """The life of the memories of one PostgreSQL store, over the store's connections."""

    def history(self, namespace: str, id: str, limit: int | None = None, offset: int = 0) -> Sequence[Version]:
        """Return the versions of a memory, oldest first, the current one last; softly forgotten ones included."""
        most, start = around(limit, offset)
        rows = self._pool.rows("history_list", {"namespace": namespace, "id": id, "limit": most, "offset": start})
        return versions_of(((memory_of(row[:-3]), *row[-3:]) for row in rows), limit, offset)

    def version_at(self, namespace: str, id: str, at: datetime) -> Memory | None:
        """Return the version of a memory that was valid at a time; None where none was."""
        rows = self._pool.rows("history_at", {"namespace": namespace, "id": id, "at": at})
        memory = memory_of(rows[0]) if rows else None
        return memory if memory is None or memory.valid_to is None or memory.valid_to > at else None

    def earlier_at(self, namespace: str, at: datetime, limit: int) -> Sequence[Earlier]:
        """Return up to ``limit`` versions that were valid at a time and were replaced later, by id."""
        rows = self._pool.rows("history_earlier", {"namespace": namespace, "at": at, "limit": limit})
        return [
            Earlier(row[1], partial(memory_of, row), length, unpacked_entries(entries), *unpacked_vectors(vectors))
            for *row, length, entries, vectors in rows
        ]

    def forgotten(self, namespace: str, id: str) -> Forgotten | None:
        """Return the memory last forgotten softly under ``id``, with its vectors; None where there is none."""
        rows = self._pool.rows("history_forgotten", {"namespace": namespace, "id": id})
        if not rows:
            return None
        *row, payload, text_at, packed = rows[0]
        embedder, vectors = unpacked_vectors(packed)
        return Forgotten(memory_of(row), payload, embedder, vectors, text_at)

    def all_forgotten(self, namespace: str, limit: int) -> Sequence[Version]:
        """Return up to ``limit`` softly forgotten memories, each as it was last, the latest forgotten first."""
        rows = self._pool.rows("history_all_forgotten", {"namespace": namespace, "limit": limit})
        return [Version(memory_of(row[:-2]), forgotten_at=row[-1], forgotten_by=row[-2]) for row in rows]

    def changes(self, after: Mapping[str, tuple[int, str | None]], limit: int) -> Mapping[str, ChangeLog]:
        """Return up to ``limit`` changes of each namespace after a sequence number, or after an id within it."""
        places = {n: {"namespace": n, "number": number, "id": id, "limit": limit} for n, (number, id) in after.items()}
        queries = [(name, where) for where in places.values() for name in ("change_list", "change_head")]
        results = iter(self._pool.together(*queries))
        return {
            n: ChangeLog(
                [
                    (number, Change(n, id or None, kind, when, types_of(types)))
                    for number, id, kind, when, types in rows
                ],
                *head,
            )
            for n, rows, (head,) in ((n, next(results), next(results) or [()]) for n in places)
        }

    def move_namespace(self, old: str, new: str, *, stay: bool) -> int:
        """Rename a namespace, or copy it where ``stay`` is true, in bounded steps; return how many memories it has."""
        return namespaces.move(self._pool, old, new, stay=stay)

    def moves(self) -> Sequence[Moving]:
        """Return the namespaces that are being renamed, filled or emptied now, or where that was interrupted."""
        return [Moving(*row) for row in self._pool.rows("moved_unfinished", {})]

    def finish_moves(self) -> int:
        """End the renames and copies that were interrupted; return of how many namespaces."""
        return namespaces.finish(self._pool)

    def limits(self, namespace: str) -> Limits:
        """Return the limits of a namespace: how long it keeps memories, and how many it may hold."""
        rows = self._pool.rows("limits_get", {"namespace": namespace})
        return Limits(*rows[0]) if rows else Limits()

    def set_limits(self, namespace: str, changes: Mapping[str, Any]) -> Limits:
        """Change some limits of a namespace; return all of them."""
        parameters = {"namespace": namespace, "given": list(changes), **asdict(Limits()), **changes}
        return Limits(*self._pool.row("limits_set", parameters))

    def count_accesses(self, namespace: str, counts: Mapping[str, Access]) -> int:
        """Add to the access counts of existing memories, by id; return how many of them exist."""
        with self._pool.idle() as connection, connection.transaction():
            which = {"namespace": namespace, "ids": sorted(counts)}
            ids = [id for (id,) in locked_rows(connection, "access_lock", which)]
            columns = {
                "ids": ids,
                "counts": [counts[id].count for id in ids],
                "times": [counts[id].last for id in ids],
            }
            if ids:
                connection.execute(_SQL["access_add"], {"namespace": namespace, **columns})
            return len(ids)

    def accesses(self, namespace: str, ids: Collection[str]) -> Mapping[str, Access]:
        """Return how often recalls returned each memory, by id; memories never returned are left out."""
        rows = self._pool.rows("access_list", {"namespace": namespace, "ids": list(ids)}) if ids else ()
        return {id: Access(count, last) for id, count, last in rows}

    def pinned(self, namespaces: Sequence[str], limit: int) -> Sequence[tuple[str, str]]:
        """Return (namespace, id) of pinned memories, which every context shows; by importance, then the newer first."""
        return self._pool.rows("pinned_list", {"namespaces": list(namespaces), "limit": limit})

    def note_recall(self, entry: LoggedRecall) -> None:
        """Log a recall: for each of its namespaces, the hits of that one."""
        names = sorted(entry.namespaces)
        hits = [hits_within(entry, name) for name in names]
        line = {
            "recall_id": entry.id, "query": entry.question, "recipe": entry.recipe, "interface": entry.interface,
            "agent": entry.agent, "facts": Jsonb({"verb": entry.verb, **entry.facts}), "namespaces": names,
            "hits": [Jsonb(own) for own in hits],
        }  # fmt: skip

        def work(connection: Connection) -> None:
            with pipelined(connection):
                connection.execute(_SQL["log_patience"])
                sent(connection, "namespace_hold", ((name, {}) for name in names))
                each = ((name, {"ids": [*own], "found": found_of(own)}) for name, own in zip(names, hits, strict=True))
                gone = sent(connection, "log_gone", each)
            if any(only(cursor)[0] for cursor in gone.values()):
                raise NotFound(GONE_MEANWHILE)
            connection.execute(_SQL["log_add"], line)

        self._pool.transaction(work, patient=False)  # the answer is there, and does not wait for a rename

    def note_audit(self, entries: Sequence[AuditEntry]) -> None:
        """Note a call: one entry for each of its namespaces, all or none."""
        lines = [{**asdict(entry), "ids": list(entry.ids)} for entry in entries]
        if len(lines) == 1:
            self._pool.execute("audit_add", lines[0])
            return

        def work(connection: Connection) -> None:
            for line in lines:
                connection.execute(_SQL["audit_add"], line)

        self._pool.transaction(work)

    def audited(self, filters: AuditFilters, limit: int, after: tuple[str, str]) -> Sequence[AuditEntry]:
        """Return up to ``limit`` entries behind (id, namespace), oldest first."""
        names = None if filters.namespaces is None else list(filters.namespaces)
        where = {**asdict(filters), "namespaces": names, "limit": limit, "after_id": after[0]}
        (rows,) = self._pool.together(("audit_list", {**where, "after_namespace": after[1]}), planned=True)
        return [entry_of(*row) for row in rows]

    def recalls(
        self, namespaces: Sequence[str], filters: LogFilters, limit: int, cursor: str | None
    ) -> Sequence[LoggedRecall]:
        """Return the rows of up to ``limit`` logged recalls with ids below ``cursor``, newest first, by namespace."""
        where = {"namespaces": list(namespaces), **asdict(filters), "limit": limit, "cursor": cursor}
        return [logged_of(*row) for row in self._pool.rows("log_list", where)]

    def recalled(self, namespaces: Sequence[str], recall_id: str) -> Sequence[LoggedRecall]:
        """Return the rows of a logged recall, one for each of ``namespaces`` that it asked, by namespace."""
        where = {"namespaces": list(namespaces), "recall_id": recall_id}
        return [logged_of(*row) for row in self._pool.rows("log_get", where)]

    def judge(
        self, recall_id: str, judgments: Mapping[tuple[str, str], bool], made_by: str | None
    ) -> Collection[tuple[str, str]]:
        """Record with a logged recall which (namespace, id) were useful; return those that do not exist."""
        now = datetime.now(UTC)
        names = by_namespace(judgments)

        def run(connection: Connection) -> Collection[tuple[str, str]]:
            with connection.transaction() as whole:
                sent(connection, "namespace_hold", ((namespace, {}) for namespace in sorted(names)))
                each = sent(connection, "judged_there", ((n, {"ids": ids}) for n, ids in sorted(names.items()))).items()
                there = {(namespace, id) for namespace, cursor in each for (id,) in cursor}
                if missing := sorted(set(judgments) - there):
                    raise Rollback(whole)
                for namespace, ids in sorted(names.items()):
                    marks = [Jsonb(mark_of(judgments[namespace, id], made_by, now)) for id in ids]
                    which = {"namespace": namespace, "recall_id": recall_id, "ids": ids, "marks": marks}
                    connection.execute(_SQL["judge"], which)
            return missing

        return self._pool.run(run)

    def judgments(self, namespace: str) -> Sequence[RelevanceJudgment]:
        """Return the judgments of a namespace's present memories, oldest first."""
        return [RelevanceJudgment(*row) for row in self._pool.rows("judgment_list", {"namespace": namespace})]

    def derivations(self, namespace: str | None = None) -> Mapping[str, tuple[int, Sequence[Mark]]]:
        """Return, for one namespace or each that holds memories, its last row id and its marks."""
        rows = self._pool.rows("derivations_list", {"namespace": namespace})
        return {name: (last, _marks(column)) for name, last, column in rows}

    def mark_made(self, namespace: str, span: Span) -> None:
        """Record what has made the memories of a span."""
        self._pool.transaction(lambda c: mark_made(c, namespace, span))

    def made_between(self, namespace: str, after: int, upto: int, limit: int) -> Sequence[Made]:
        """Return up to ``limit`` indexed memories with row ids above ``after`` up to ``upto``, ascending."""
        parameters = {"namespace": namespace, "after": after, "upto": upto, "limit": limit}
        return [
            Made(row[-5], memory_of(row[:-4]), bytes(row[-4]), row[-3], tuple(row[-2]), tuple(row[-1]))
            for row in self._pool.rows("made_between", parameters)
        ]

    def count_made(self, namespace: str, after: int, upto: int) -> int:
        """Return how many indexed memories have row ids above ``after`` up to ``upto``."""
        return int(self._pool.row("count_made", {"namespace": namespace, "after": after, "upto": upto})[0])

    def texts_began(self, namespace: str, ids: Collection[str]) -> Mapping[str, datetime]:
        """Return when the texts of memories began, by id, of those whose text is not as old as the memory."""
        return dict(self._pool.rows("memory_began", {"namespace": namespace, "ids": list(ids)}))


def unpacked_vectors(packed: bytes | None) -> tuple[Mapping[str, Any] | None, dict[int, NDArray[np.float32]]]:
    """Return the embedder of a version's vectors, and the vector of each part, in the bytes of history_keep."""
    if packed is None:
        return None, {}
    (size_of_name,) = _INT4.unpack_from(packed)
    offset = 4 + size_of_name
    vectors = {}
    while offset < len(packed):
        part, size = _TWO_INT4.unpack_from(packed, offset)
        vectors[part] = np.frombuffer(packed, ">f4", size // 4 - 1, offset + 8 + 4)  # behind the number of dimensions
        offset += 8 + size
    return _made_with(bytes(packed[4 : 4 + size_of_name])), vectors


@lru_cache(maxsize=16)
def _made_with(packed: bytes) -> Mapping[str, Any]:
    """Return the identity of an embedder, which is the same for thousands of versions."""
    made_with: Mapping[str, Any] = json.loads(packed)
    return made_with


def unpacked_entries(packed: bytes) -> NDArray[Any]:
    """Return the entries of a version, all passages together, as history_keep packed them."""
    passages, offset = [], 0
    while offset < len(packed):
        _, _, size = _THREE_INT4.unpack_from(packed, offset)
        start = offset + _THREE_INT4.size
        offset = start + size
        passages.append(np.frombuffer(packed, FORWARD, size // FORWARD.itemsize, start))
    return passages[0] if len(passages) == 1 else merged(passages)


def keep(
    connection: Connection,
    namespace: str,
    row_ids: Sequence[int],
    *,
    by: Mapping[str, str],
    versions: int | None = None,
) -> Cursor | None:
    """Copy memories into the history before they are changed, in the transaction that changes them.

    Their rows are locked. ``by`` says who changes each, by id. ``versions`` is how many earlier ones are kept of each:
    a few of the others go, and the rest at the next writes or by ``maintain``. Returns the cursor that counts those.
    """
    which = {"namespace": namespace, "ords": list(row_ids), "by": Jsonb(dict(by)), "forgotten": False}
    connection.execute(_SQL["history_keep"], which)
    if versions is not None:
        return connection.execute(_SQL["history_trim"], {**which, "versions": versions})
    return None


def seen_counts(
    connection: Connection, namespace: str, row_ids: Sequence[int]
) -> list[tuple[str, int, datetime | None]]:
    """Return (id, how often it was seen, when last) of memories that are written again and say the same."""
    rows = connection.execute(_SQL["made_seen"], {"namespace": namespace, "ords": list(row_ids)}).fetchall()
    return [(id, count, at) for id, count, at in rows]


def see_again(connection: Connection, namespace: str, rows: Sequence[tuple[str, int, datetime | None]]) -> None:
    """Give memories back how often they were seen; see ``seen_counts``."""
    ids, counts, times = ([row[column] for row in rows] for column in range(3))
    columns = {"namespace": namespace, "ids": ids, "counts": counts, "times": times}
    connection.execute(_SQL["made_seen_set"], columns)


def mark_made(connection: Connection, namespace: str, span: Span) -> None:
    """Record what has made the memories of a span, under the lock of the namespace, unless it is recorded already."""
    row = connection.execute(_SQL["derivations_own"], {"namespace": namespace}).fetchone()
    if row is not None:
        mark_span(connection, namespace, span, *row)


def mark_span(
    connection: Connection, namespace: str, span: Span, last: int, column: Sequence[Sequence[Any]] | None
) -> None:
    """Record what has made the memories of a span, where the last row id and the marks of its namespace are known."""
    marks = _marks(column)
    if all(
        one.derivation == span.derivation
        for one in spans(marks, last)
        if one.upto > span.after and one.after < span.upto
    ):
        return
    now = [list(mark) for mark in marked(marks, span, last)]
    connection.execute(_SQL["derivations_set"], {"namespace": namespace, "makers": Jsonb(now)})


def _marks(column: Sequence[Sequence[Any]] | None) -> list[Mark]:
    """Return the marks of derivation versions from a column ``makers``."""
    return [(int(first), str(by)) for first, by in column or ()]


def history_parameters(ids: Collection[str], by: str | None) -> dict[str, Any]:
    """Return the parameters that keep memories of these ids in the history as softly forgotten."""
    return {"ids": sorted(ids), "by": Jsonb({} if by is None else dict.fromkeys(ids, by)), "forgotten": True}


def take_back(connection: Connection, rows: Sequence[Row]) -> dict[str, datetime]:
    """Remove the restored memories from the history. Raises Conflict where another process was faster.

    Returns when the first of each namespace was forgotten.
    """
    earliest: dict[str, datetime] = {}
    for row in rows:
        namespace, id = row.name
        which = {"namespace": namespace, "id": id, "version": row.memory.version}
        history_row = connection.execute(_SQL["history_take"], which).fetchone()
        if history_row is None:
            raise Conflict(f"{id!r} is not forgotten any more; look at its history.", names=frozenset((row.name,)))
        connection.execute(_SQL["history_return"], {**which, "forgotten_at": history_row[0]})
        earliest[namespace] = min(history_row[0], earliest.get(namespace, history_row[0]))
    return earliest
