"""The life of memories in SQLite: their versions, links and changes."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from semmem.model.audit import AuditEntry, AuditFilters, entry_of
from semmem.model.errors import NotFound
from semmem.model.history import Access, Change, Earlier, Forgotten, Made, Version, around, versions_of
from semmem.model.recall_log import GONE_MEANWHILE, LogFilters, LoggedRecall, found_of, hits_within, logged_of, mark_of
from semmem.model.reports import Limits, RelevanceJudgment
from semmem.model.store.derivations import Mark, Span, marked
from semmem.model.store.life import ChangeLog, Moving
from semmem.model.types import Memory
from semmem.stores.link_rules import types_of
from semmem.stores.packed_postings import FORWARD, merged
from semmem.stores.sql_files import statements
from semmem.stores.sqlite import renaming
from semmem.stores.sqlite.links import SqliteLinks
from semmem.stores.sqlite.resident import entries_of_tokens
from semmem.stores.sqlite.write import at_microsecond, memory_of, microsecond

__all__ = ["SqliteLife"]

_SQL = statements("sqlite")


class SqliteLife(SqliteLinks):
    """The life of the memories of one file; it asks with the store's connections."""

    def history(self, namespace: str, id: str, limit: int | None = None, offset: int = 0) -> Sequence[Version]:
        """Return the versions of a memory, oldest first, the current one last; softly forgotten ones included."""
        most, start = around(limit, offset)
        page = {"limit": -1 if most is None else most, "offset": start}
        rows = self._file._rows("history_list", {"namespace": namespace, "id": id, **page})
        versions = ((memory_of(row[:-3]), row[-3], _time(row[-2]), _time(row[-1])) for row in rows)
        return versions_of(versions, limit, offset)

    def version_at(self, namespace: str, id: str, at: datetime) -> Memory | None:
        """Return the version of a memory that was valid at a time; None where none was."""
        times = {"at": microsecond(at), "now": microsecond(datetime.now(UTC))}
        rows = self._file._rows("history_at", {"namespace": namespace, "id": id, **times})
        memory = memory_of(rows[0]) if rows else None
        return memory if memory is None or memory.valid_to is None or memory.valid_to > at else None

    def earlier_at(self, namespace: str, at: datetime, limit: int) -> Sequence[Earlier]:
        """Return up to ``limit`` versions that were valid at a time and were replaced later, by id."""
        parameters = {
            "namespace": namespace,
            "at": microsecond(at),
            "now": microsecond(datetime.now(UTC)),
            "limit": limit,
        }
        rows = self._file._rows("history_earlier", parameters)
        return [
            Earlier(row[1], partial(memory_of, row), length, _entries(entries), *_vectors(vectors))
            for *row, length, entries, vectors in rows
        ]

    def forgotten(self, namespace: str, id: str) -> Forgotten | None:
        """Return the memory last forgotten softly under ``id``, with its vectors; None where there is none."""
        rows = self._file._rows("history_forgotten", {"namespace": namespace, "id": id})
        if not rows:
            return None
        *row, payload, text_at, packed = rows[0]
        return Forgotten(memory_of(row), payload, *_vectors(packed), _time(text_at))

    def all_forgotten(self, namespace: str, limit: int) -> Sequence[Version]:
        """Return up to ``limit`` softly forgotten memories, each as it was last, the latest forgotten first."""
        rows = self._file._rows("history_all_forgotten", {"namespace": namespace, "limit": limit})
        return [Version(memory_of(row[:-2]), forgotten_at=_time(row[-1]), forgotten_by=row[-2]) for row in rows]

    def changes(self, after: Mapping[str, tuple[int, str | None]], limit: int) -> Mapping[str, ChangeLog]:
        """Return up to ``limit`` changes of each namespace after a sequence number, or after an id within it."""
        logs = {}
        for namespace, (number, id) in after.items():
            where = {"namespace": namespace, "number": number, "id": id, "limit": limit}
            rows = self._file._rows("change_list", where)
            changes = [
                (number, Change(namespace, i or None, kind, at_microsecond(when), types_of(types)))
                for number, i, kind, when, types in rows
            ]
            head = next(iter(self._file._rows("change_head", {"namespace": namespace})), ())
            logs[namespace] = ChangeLog(changes, *head)
        return logs

    def move_namespace(self, old: str, new: str, *, stay: bool) -> int:
        """Rename a namespace, or copy it where ``stay`` is true, in one transaction; return its memories.

        Raises Conflict while somebody rebuilds the store.
        """

        def work(connection: sqlite3.Connection) -> int:
            self._file.refuse_beside_rebuild()
            return renaming.move(connection, old, new, stay=stay)

        return self._file._writing(work)

    def moves(self) -> Sequence[Moving]:
        """Return nothing: a rename or a copy is one transaction."""
        return ()

    def finish_moves(self) -> int:
        """Return 0: nothing can be unfinished."""
        return 0

    def limits(self, namespace: str) -> Limits:
        """Return the limits of a namespace: how long it keeps memories, and how many it may hold."""
        rows = self._file._rows("limits_get", {"namespace": namespace})
        return Limits(*rows[0]) if rows else Limits()

    def set_limits(self, namespace: str, changes: Mapping[str, Any]) -> Limits:
        """Change some limits of a namespace; return all of them."""
        return self._file._writing(lambda c: renaming.set_limits(c, namespace, changes))

    def count_accesses(self, namespace: str, counts: Mapping[str, Access]) -> int:
        """Add to the access counts of existing memories, by id; return how many of them exist."""
        rows = [
            {"namespace": namespace, "id": id, "count": counts[id].count, "last_at": microsecond(counts[id].last)}
            for id in sorted(counts)
        ]
        return self._file._writing(lambda c: sum(c.execute(_SQL["access_add"], row).rowcount for row in rows))

    def accesses(self, namespace: str, ids: Collection[str]) -> Mapping[str, Access]:
        """Return how often recalls returned each memory, by id; memories never returned are left out."""
        rows = self._file._rows("access_list", {"namespace": namespace, "ids": list(ids)}) if ids else ()
        return {id: Access(count, at_microsecond(last)) for id, count, last in rows}

    def pinned(self, namespaces: Sequence[str], limit: int) -> Sequence[tuple[str, str]]:
        """Return (namespace, id) of pinned memories, which every context shows; by importance, then the newer first."""
        where = {"namespaces": json.dumps(list(namespaces)), "limit": limit, "now": microsecond(datetime.now(UTC))}
        return [(namespace, id) for namespace, id in self._file._rows("pinned_list", where)]

    def note_recall(self, entry: LoggedRecall) -> None:
        """Log a recall: for each of its namespaces, the hits of that one."""
        line = {
            "recall_id": entry.id, "query": entry.question, "recipe": entry.recipe, "interface": entry.interface,
            "agent": entry.agent, "facts": json.dumps({"verb": entry.verb, **entry.facts}),
            "at": microsecond(datetime.now(UTC)),
        }  # fmt: skip
        hits = {name: hits_within(entry, name) for name in sorted(entry.namespaces)}
        lines = [{**line, "namespace": name, "hits": json.dumps(own)} for name, own in hits.items()]

        def run(connection: sqlite3.Connection) -> None:
            each = [
                {"namespace": name, "ids": json.dumps([*own]), "found": json.dumps(found_of(own))}
                for name, own in hits.items()
            ]
            if any(connection.execute(_SQL["log_gone"], which).fetchone()[0] for which in each):
                raise NotFound(GONE_MEANWHILE)
            connection.executemany(_SQL["log_add"], lines)

        self._file._writing(run)

    def note_audit(self, entries: Sequence[AuditEntry]) -> None:
        """Note a call: one entry for each of its namespaces, all or none."""
        now = microsecond(datetime.now(UTC))
        lines = [{**asdict(entry), "at": now, "ids": json.dumps(entry.ids)} for entry in entries]
        self._file._writing(lambda c: c.executemany(_SQL["audit_add"], lines))

    def audited(self, filters: AuditFilters, limit: int, after: tuple[str, str]) -> Sequence[AuditEntry]:
        """Return up to ``limit`` entries behind (id, namespace), oldest first."""
        names = None if filters.namespaces is None else json.dumps(filters.namespaces)
        times = {name: getattr(filters, name) for name in ("noted_after", "noted_before")}
        numbers = {name: None if at is None else microsecond(at) for name, at in times.items()}
        where = {"namespaces": names, "who": filters.who, **numbers, "limit": limit}
        rows = self._file._rows("audit_list", {**where, "after_id": after[0], "after_namespace": after[1]})
        return [entry_of(*_entry(row)) for row in rows]

    def recalls(
        self, namespaces: Sequence[str], filters: LogFilters, limit: int, cursor: str | None
    ) -> Sequence[LoggedRecall]:
        """Return the rows of up to ``limit`` logged recalls with ids below ``cursor``, newest first, by namespace."""
        times = {name: getattr(filters, name) for name in ("asked_after", "asked_before")}
        numbers = {name: None if at is None else microsecond(at) for name, at in times.items()}
        where = {**asdict(filters), **numbers, "namespaces": json.dumps(list(namespaces))}
        return [_logged(row) for row in self._file._rows("log_list", {**where, "limit": limit, "cursor": cursor})]

    def recalled(self, namespaces: Sequence[str], recall_id: str) -> Sequence[LoggedRecall]:
        """Return the rows of a logged recall, one for each of ``namespaces`` that it asked, by namespace."""
        where = {"namespaces": json.dumps(list(namespaces)), "recall_id": recall_id}
        return [_logged(row) for row in self._file._rows("log_get", where)]

    def judge(
        self, recall_id: str, judgments: Mapping[tuple[str, str], bool], made_by: str | None
    ) -> Collection[tuple[str, str]]:
        """Record with a logged recall which (namespace, id) were useful; return those that do not exist."""
        now = datetime.now(UTC)
        marks: dict[str, dict[str, Any]] = {}
        for (namespace, id), useful in judgments.items():
            marks.setdefault(namespace, {})[id] = mark_of(useful, made_by, now)

        def run(connection: sqlite3.Connection) -> list[tuple[str, str]]:
            missing = [
                (namespace, id)
                for namespace, id in sorted(judgments)
                if not connection.execute(_SQL["judged_there"], {"namespace": namespace, "id": id}).fetchall()
            ]
            for namespace, some in marks.items() if not missing else ():
                which = {"namespace": namespace, "recall_id": recall_id, "marks": json.dumps(some)}
                connection.execute(_SQL["judge"], which)
            return missing

        return self._file._writing(run)

    def judgments(self, namespace: str) -> Sequence[RelevanceJudgment]:
        """Return the judgments of a namespace's present memories, oldest first."""
        rows = self._file._rows("judgment_list", {"namespace": namespace})
        return [
            RelevanceJudgment(name, recall_id, question, id, bool(useful), made_by, datetime.fromisoformat(at))
            for name, recall_id, question, id, useful, made_by, at in rows
        ]

    def derivations(self, namespace: str | None = None) -> Mapping[str, tuple[int, Sequence[Mark]]]:
        """Return, for one namespace or each that holds memories, its last row id and its marks."""
        rows = self._file._rows("derivations_list", {"namespace": namespace})
        return {name: (last, _marks(column)) for name, last, column in rows}

    def mark_made(self, namespace: str, span: Span) -> None:
        """Record what has made the memories of a span."""

        def work(connection: sqlite3.Connection) -> None:
            row = connection.execute(_SQL["derivations_own"], {"namespace": namespace}).fetchone()
            if row is not None:
                now = json.dumps(marked(_marks(row[1]), span, row[0]))
                connection.execute(_SQL["derivations_set"], {"namespace": namespace, "makers": now})

        self._file._writing(work)

    def made_between(self, namespace: str, after: int, upto: int, limit: int) -> Sequence[Made]:
        """Return up to ``limit`` indexed memories with row ids above ``after`` up to ``upto``, ascending."""
        parameters = {"namespace": namespace, "after": after, "upto": upto, "limit": limit}
        return [
            Made(row[-5], memory_of(row[:-4]), row[-4], _time(row[-3]), *(tuple(json.loads(one)) for one in row[-2:]))
            for row in self._file._rows("made_between", parameters)
        ]

    def count_made(self, namespace: str, after: int, upto: int) -> int:
        """Return how many indexed memories have row ids above ``after`` up to ``upto``."""
        parameters = {"namespace": namespace, "after": after, "upto": upto}
        return int(self._file._rows("count_made", parameters)[0][0])

    def texts_began(self, namespace: str, ids: Collection[str]) -> Mapping[str, datetime]:
        """Return when the texts of memories began, by id, of those whose text is not as old as the memory."""
        rows = self._file._rows("memory_began", {"namespace": namespace, "ids": list(ids)})
        return {id: at_microsecond(at) for id, at in rows}


def _logged(row: Sequence[Any]) -> LoggedRecall:
    """Return the entry in a row of the log."""
    namespace, recall_id, at, question, recipe, interface, agent, facts, hits = row
    asked = question, recipe, interface, agent
    return logged_of(namespace, recall_id, at_microsecond(at), *asked, json.loads(facts), json.loads(hits))


def _entry(row: Sequence[Any]) -> list[Any]:
    """Return the values of an entry in a row of the audit."""
    id, at, *others, ids = row
    return [id, at_microsecond(at), *others, json.loads(ids)]


def _marks(column: str | None) -> list[Mark]:
    """Return the marks of derivation versions from a column ``makers``."""
    return [(int(first), str(by)) for first, by in json.loads(column or "[]")]


def _entries(packed: str) -> NDArray[Any]:
    """Return the entries of a version, as the statement history_keep stores them: packed, or else as tokens."""
    passages = []
    for _, _, tokens, *raw in json.loads(packed):
        if any(raw):
            passages.append(np.frombuffer(bytes.fromhex(raw[0]), dtype=FORWARD))
        else:
            passages.append(merged([entries_of_tokens(tokens)]))
    return merged(passages)


def _vectors(packed: str | None) -> tuple[Mapping[str, Any] | None, Mapping[int, NDArray[np.float32]]]:
    """Return the embedder of a version's vectors, and these by part."""
    stored = {} if packed is None else json.loads(packed)
    each = {part: np.frombuffer(bytes.fromhex(raw), dtype="<f4") for part, raw in stored.get("vectors", ())}
    return stored.get("embedder"), each


def _time(number: int | None) -> datetime | None:
    return None if number is None else at_microsecond(number)
