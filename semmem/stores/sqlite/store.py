"""The store on SQLite: one file, no server, and the three legs of a recall.

**Who answers.** The file holds the rows, and memory the arrays that a recall reads (stores/sqlite/resident.py): the
same as those that a process holds of a namespace in PostgreSQL, so that both stores have the same hits and scores. A
namespace with more than 50,000 memories is not held, and has the lexical leg alone. Its postings are read from FTS5,
through fts5vocab: which memories have a term, and how often. The BM25 score is calculated by ``semmem.legs.lexical``
either way, and not by FTS5's bm25(). That function has k1 = 1.2 and b = 0.75 built in, where a recipe chooses both (b
is 0.5). It takes the number of memories, the document frequencies and the average length from the whole file, where a
namespace has to count alone. And it limits the idf of a common word to a millionth, where Lucene's form stays positive.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from semmem.model.errors import StoreUnavailable
from semmem.model.exchange import (
    BEHIND,
    LAST,
    MOST_TURNS,
    CandidateMetadata,
    Corrections,
    Extraction,
    Kinds,
    Postings,
    Row,
    RowIds,
    Scope,
    Stored,
    Turn,
    Written,
    placed,
)
from semmem.model.reports import Backlog, Namespace, Stats
from semmem.model.store import KEEP, Keep, Snapshot
from semmem.model.types import Filters, ListOrder, Memory, Page
from semmem.stores.past import PastSnapshot, versions_at
from semmem.stores.resident.model import Model
from semmem.stores.resident.snapshot import MemorySnapshot
from semmem.stores.snapshot import StoredSnapshot, scope_of
from semmem.stores.sql_files import LISTS, page_of, read_cursor, statements
from semmem.stores.sqlite import renaming, saved, upkeep, write
from semmem.stores.sqlite.connection import Filed, migrate, require_newest
from semmem.stores.sqlite.graph import SqliteGraph
from semmem.stores.sqlite.life import SqliteLife
from semmem.stores.sqlite.resident import FileModels, month_of
from semmem.stores.sqlite.serving import SqliteServing
from semmem.stores.sqlite.vectors import SqliteVectors
from semmem.stores.sqlite.write import at_microsecond, filter_parameters, memory_of, microsecond, token

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["SqliteStore"]

_SQL = statements("sqlite")

_LARGEST = 65_535


def _postings(
    memories: int, length: int, matches: Sequence[tuple[int, str, str]], max_df: int | None, shared: bool
) -> Postings:
    """Return postings from FTS5's matches: the row ids of each key, repeated by term frequency, and as many lengths."""
    import numpy as np

    from semmem.stores.packed_postings import POSTING

    keys: list[int] = []
    parts: list[NDArray[Any]] = []
    for key, raw, raw_lengths in matches:
        row_ids, first, counts = np.unique(
            np.fromstring(raw, dtype=np.int64, sep=","), return_index=True, return_counts=True
        )
        if (max_df is not None and len(row_ids) > max_df) or (shared and len(row_ids) == 1):
            continue
        entries = np.zeros(len(row_ids), dtype=POSTING)
        entries["ord"] = row_ids
        entries["count"] = np.minimum(counts, _LARGEST)
        entries["length"] = np.minimum(np.fromstring(raw_lengths, dtype=np.int64, sep=",")[first], _LARGEST)
        keys.append(key)
        parts.append(entries)
    sizes = np.array([len(entries) for entries in parts], dtype=np.int64)
    every = np.concatenate(parts) if parts else np.zeros(0, dtype=POSTING)
    return Postings(memories, length, np.array(keys, dtype=np.int64), sizes, every)


class SqliteStore(Filed):
    """A transactional store in one file: writing, forgetting, and reading whole memories."""

    kind = "SQLite"
    capabilities = frozenset(("lexical", "dense", "graph"))

    def __init__(self, url: str, path: Path | None, *, pool_size: int = 8, migrates: bool = True) -> None:
        migration = migrate if migrates or path is None else require_newest  # a database in memory is always new
        super().__init__(url, path, pool_size=pool_size, migration=migration)
        self.models = FileModels(self)
        self.vectors = SqliteVectors(self)
        self.graph = SqliteGraph(self)

    def close(self) -> None:
        """Save and drop what is in memory, and close the connections; data in a file stays, data in memory is lost."""
        self.models.save()
        super().close()
        self.models.clear()

    @property
    def life(self) -> SqliteLife:
        """Return the versions, links and changes of the memories."""
        return SqliteLife(self)

    @property
    def serving(self) -> SqliteServing:
        """Return the keys and answers that servers over this file share."""
        return SqliteServing(self)

    # ------------------------------------------------------------------ writing

    def write(
        self,
        rows: Sequence[Row],
        *,
        on_conflict: str,
        bulk: bool = False,
    ) -> Written:
        """Store ``rows`` in one transaction; with on_conflict="abort" a Conflict rolls all of it back."""
        return self._writing(lambda c: write.write(c, rows, on_conflict))

    def end_bulk(self, namespaces: Collection[str]) -> Mapping[str, str]:
        """Return {}: what a batch writes is indexed at once."""
        return {}

    def payload_hashes(self, names: Collection[tuple[str, str]]) -> Mapping[tuple[str, str], bytes]:
        """Return the content hash of each (namespace, id) that is stored."""
        return {(n, i): payload for n, i, payload in self._named("memory_payloads", names)}

    def stored_memories(self, names: Collection[tuple[str, str]]) -> Mapping[tuple[str, str], Stored]:
        """Return the whole memory of each (namespace, id) that is stored."""
        rows = self._named("memory_stored", names)
        return {
            (row[0], row[1]): Stored(memory_of(row[:-2]), row[-2], None if row[-1] is None else at_microsecond(row[-1]))
            for row in rows
        }

    def _named(self, statement: str, names: Collection[tuple[str, str]]) -> list[Any]:
        """Fetch the rows of a statement about some names; expired memories among them are swept first."""
        now = microsecond(datetime.now(UTC))
        rows = self._rows(statement, {"names": json.dumps([list(name) for name in names]), "now": now})
        for namespace in {row[0] for row in rows if row[-1]}:
            ids = json.dumps([row[1] for row in rows if row[-1] and row[0] == namespace])
            parameters = {"now": now, "limit": -1, "ids": ids}
            self._writing(partial(upkeep.expired, namespace=namespace, parameters=parameters))
        return [row[:-1] for row in rows if not row[-1]]

    def forget(
        self,
        namespace: str,
        id: str | Collection[str] | None,
        filters: Filters,
        *,
        dry_run: bool,
        soft: bool = False,
        by: str | None = None,
    ) -> int:
        """Remove memories and all data derived from them; return how many whole memories."""
        run = self._reading if dry_run else self._writing
        return run(lambda c: write.forget(c, namespace, id, filters, dry_run=dry_run, soft=soft, by=by))

    def forget_namespace(self, namespace: str, *, dry_run: bool) -> int:
        """Forget all memories of a namespace, expired ones too, and its settings; return how many memories."""
        if dry_run:
            return self.forget(namespace, None, Filters(), dry_run=True, soft=True)

        def all_of_it(connection: sqlite3.Connection) -> int:  # one transaction, so that a crash leaves no half
            memories, upto = renaming.begin_drop(connection, namespace)
            while renaming.drop(connection, namespace, upto):
                pass
            return memories

        return self._writing(all_of_it)

    def reindex(
        self, namespace: str, extractions: Sequence[tuple[int, Extraction]], *, language: str | None = None
    ) -> int:
        """Store new extractions of memories; return how many memories changed."""
        return self._writing(lambda c: write.reindex(c, namespace, extractions, language)) if extractions else 0

    def maintain(self, keep: Keep = KEEP) -> Mapping[str, int]:
        """Sweep what is due and merge the inverted index; see semmem.stores.sqlite.upkeep."""
        return upkeep.maintain(self, keep)

    @property
    def is_in_whole(self) -> bool:
        """Whether all that this thread does now is one transaction; see ``whole``."""
        return self.in_whole is not None

    def scrub(self) -> None:
        """Rewrite the file so that it holds no forgotten bytes; takes as long as copying it.

        Inside ``whole`` it is left for after the commit. Raises StoreUnavailable while a reader still uses an older
        snapshot.
        """
        if (whole := self.in_whole) is not None:
            whole.unscrubbed = True
            return
        self._writing(lambda c: c.execute(_SQL["lexical_optimize"]))  # first, because FTS5 deletes lazily
        self._run(lambda c: c.execute("VACUUM"))
        waiting = self._run(lambda c: c.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0])
        if waiting:
            raise StoreUnavailable(
                "Another program reads the log of the file; try again when no other program uses the store."
            )

    # ------------------------------------------------------------------ reading memories

    def get(self, namespace: str, ids: Sequence[str]) -> list[Memory]:
        """Return the memories of ``ids`` that exist, whole, in the order asked."""
        parameters = {"namespace": namespace, "ids": list(ids), "now": microsecond(datetime.now(UTC))}
        memories = {m.id: m for m in map(memory_of, self._rows("memory_get", parameters))}
        return [memories[i] for i in ids if i in memories]

    def ids_with_prefix(self, namespace: str, prefixes: Collection[str], limit: int) -> Mapping[str, Sequence[str]]:
        """Return, for each of ``prefixes``, up to ``limit`` ids that begin with it, in order; forgotten ones too."""
        ids: dict[str, list[str]] = {}
        for prefix in prefixes:
            which = {"namespace": namespace, "prefix": prefix, "limit": limit}
            ids[prefix] = [id for _, id in self._rows("memory_prefixed", which)]
        return ids

    def last_position(self, namespace: str, session: str) -> int | None:
        """Return the largest position in a session; None where no memory of it has one."""
        rows = self._rows("memory_last_position", {"namespace": namespace, "session": session})
        return int(rows[0][0]) if rows else None

    def list(
        self, namespace: str, filters: Filters, limit: int, cursor: str | None, sort_by: ListOrder = "created"
    ) -> Page:
        """Return a page of whole memories in descending order, by default the newest first."""
        after = read_cursor(cursor, sort_by)
        parameters = {
            "namespace": namespace,
            "limit": limit + 1,
            "now": microsecond(datetime.now(UTC)),
            "cursor_at": None if after.created_at is None else microsecond(after.created_at),
            "cursor_id": after.id,
            "cursor_key": after.key,
            "cursor_time": None if after.time is None else microsecond(after.time),
            **filter_parameters(filters),
        }
        return page_of([_listed(row) for row in self._rows(LISTS[sort_by], parameters)], limit, sort_by)

    def stats(self, namespace: str | None, *, exact: bool = False) -> Stats:
        """Return the counts of memories, concepts and vectors, each of them exact."""
        which = {"namespace": namespace}
        memories, parts, namespaces, size = self._rows("stats", which)[0]
        vectors = int(self._rows("embedding_count", which)[0][0])
        identity = self.vectors.embedder()
        counted = self.graph.counts(namespace)
        size += self._run(saved.disk_bytes)
        return Stats(memories, parts, namespaces, *counted, vectors, 0, size, identity["name"] if identity else None)

    def nodes(self) -> None:
        """Return None: a file lies on one machine."""

    def row_security(self) -> None:
        """Return None: a file has no users."""

    def node_of(self, namespace: str) -> None:
        """Return None, as ``nodes``."""

    def backlog(self) -> Backlog:
        """Return what is left to do in the file; postings are merged as they are written, and backups not known."""
        waiting, oldest = self._rows("uncompared_backlog", {})[0]
        missing = self._rows("embedding_missing_count", {})[0][0] if self.vectors.embedder() else 0
        age = None if oldest is None else max(0, microsecond(datetime.now(UTC)) - oldest) / 1e6
        return Backlog(waiting, age, missing, None)

    def indexed_memories(self, namespaces: Sequence[str], row_ids: RowIds) -> Mapping[int, Memory]:
        """Return the indexed memories and parts by row id; a part has the memory's id in ``parent_id``."""
        groups = self.among("memory_by_row_ids", namespaces, row_ids)
        return {placed(row[-1], place): memory_of(row) for place, rows in groups for row in rows}

    def whole_memories(
        self, names: Collection[tuple[str, str]]
    ) -> Mapping[tuple[str, str], tuple[Memory, Sequence[int]]]:
        """Return whole memories by (namespace, id), each with the lengths of its parts in characters, in order."""
        rows = self._rows("memory_wholes", {"names": json.dumps([list(name) for name in names])})
        return {(r[0], r[1]): (memory_of(r[:-1]), json.loads(r[-1])) for r in rows}

    def indexed_after(self, namespace: str, row_id: int, limit: int) -> Sequence[tuple[int, Memory]]:
        """Return (row id, memory) for up to ``limit`` indexed memories after ``row_id``, in order."""
        parameters = {"namespace": namespace, "ord": row_id, "limit": limit}
        return [(r[-1], memory_of(r)) for r in self._rows("indexed_after", parameters)]

    def candidate_metadata(self, namespaces: Sequence[str], row_ids: RowIds) -> Mapping[int, CandidateMetadata]:
        """Return the metadata of each candidate, which is what fusion needs; forgotten memories are left out."""
        if (model := self._model(namespaces)) is not None:
            return model.metadata(row_ids)
        groups = self.among("candidate_metadata", namespaces, row_ids)
        metadata = (
            CandidateMetadata(placed(r[0], place), *r[1:-2], *(at / 1e6 for at in r[-2:]))
            for place, rows in groups
            for r in rows
        )
        return {candidate.row_id: candidate for candidate in metadata}

    def namespaces(self) -> Sequence[str]:
        """Return the namespaces that hold memories."""
        return [namespace for (namespace,) in self._rows("namespaces", {})]

    def overview(self) -> Sequence[Namespace]:
        """Return the namespaces that hold memories, by name, each with their number and the time of the last change."""
        return [Namespace(name, count, at_microsecond(at)) for name, count, at in self._rows("namespace_list", {})]

    def row_ids_of(self, namespace: str, id: str) -> tuple[int, ...]:
        """Return the row ids that index a memory: one, or one for each part; empty for an unknown id."""
        return tuple(o for (o,) in self._rows("memory_locate", {"namespace": namespace, "id": id}))

    def scope(
        self,
        namespaces: tuple[str, ...],
        filters: Filters,
        exclude: Sequence[str],
        names: Collection[str] | None = None,
        at: datetime | None = None,
    ) -> Scope:
        """Resolve filters and excluded ids to row ids; with ``names`` also load conversation facts and corrections."""
        import numpy as np

        allowed = excluded = None
        states_before = self.states(namespaces) if filters or exclude else None
        where = {"namespaces": list(namespaces)}

        def row_ids_from(statement: str, parameters: Mapping[str, Any]) -> NDArray[np.int64]:
            each = [self._rows(statement, {"namespace": n, **parameters}) for n in namespaces]
            return np.array([placed(o, place) for place, rows in enumerate(each) for (o, *_) in rows], dtype=np.int64)

        times = {"now": microsecond(datetime.now(UTC)), "at": None if at is None else microsecond(at)}
        count, languages, bounds = self._rows("memory_size", {**where, **times})[0]
        bounded = [(placed(o, namespaces.index(n)), out) for n, o, out in json.loads(bounds)]
        lapsed = frozenset(o for o, out in bounded if not out)
        outside = [o for o, out in bounded if out]
        if exclude:
            outside += row_ids_from("memory_excluded", {"ids": list(exclude)}).tolist()
        if outside or exclude:
            excluded = np.unique(np.array(outside, dtype=np.int64))  # one may be out for two reasons
        if filters:
            allowed = row_ids_from("memory_scope", filter_parameters(filters))
        size = int(count) if allowed is None else len(allowed)
        settings, linked = self._rows("settings_together", where)[0]
        kinds, corrections = (None, None) if names is None else self._facts(namespaces, names, self._held(namespaces))
        spoken = json.loads(languages) if languages is not None else {}
        scope = Scope(
            namespaces,
            size,
            allowed,
            excluded,
            settings=settings,
            kinds=kinds,
            corrections=corrections,
            languages=spoken,
            lapsed=lapsed,
            states_before=states_before,
        )
        return scope.with_links(dict(json.loads(linked)))

    def states(self, namespaces: Collection[str]) -> Mapping[str, tuple[Any, ...] | None]:
        """Return the state of each namespace now, None for one without memories."""
        return self.models.states(namespaces)

    def snapshot(
        self,
        namespaces: tuple[str, ...],
        filters: Filters,
        exclude: Sequence[str],
        names: Collection[str],
        at: datetime | None = None,
        *,
        checked: bool = False,
    ) -> Snapshot:
        """Return what one recall reads, from memory up to MOST memories in a namespace; see SnapshotSource.

        The namespaces are brought into memory here, before a leg has to wait for them.
        """
        scope = scope_of(self, namespaces, filters, exclude, None, at)
        models = self._held(namespaces)
        kinds, corrections = self._facts(namespaces, names, models)
        states = {name: model.state for name, model in models.items()}
        stored = StoredSnapshot(self, replace(scope, kinds=kinds, corrections=corrections, states=states))
        self.models.asked.note(namespaces, models)
        held = MemorySnapshot(stored, models)
        return held if at is None else PastSnapshot(held, versions_at(self.life, namespaces, at), at)

    def postings(
        self,
        namespaces: Sequence[str],
        keys: Collection[int],
        *,
        max_df: int | None = None,
        shared: bool = False,
        pending: Collection[int] = (),
    ) -> Mapping[str, Postings]:
        """Return the postings of ``keys`` in each namespace; of one that is too large for memory, those of terms."""
        distinct_keys = sorted({int(key) for key in keys})
        models = {n: self.models.current(n) for n in namespaces}
        held = {n: model.postings(distinct_keys, max_df, shared=shared) for n, model in models.items() if model}
        rest = [n for n in namespaces if n not in held]
        if not rest:
            return held

        def read(connection: sqlite3.Connection) -> dict[str, tuple[int, int, list[tuple[int, str, str]]]]:
            by_namespace = {}
            for namespace in rest:
                namespace_row = connection.execute(_SQL["namespace_of"], {"namespace": namespace}).fetchone()
                if namespace_row is None:
                    continue
                number, memories, length = namespace_row
                matches = []
                for key in distinct_keys:
                    row_ids, lengths = connection.execute(
                        _SQL["lexical_matches"], {"token": token(number, key)}
                    ).fetchone()
                    if row_ids is not None:
                        matches.append((key, row_ids, lengths))
                by_namespace[namespace] = (memories, length, matches)
            return by_namespace

        by_namespace = self._reading(read)
        read_of = {n: _postings(*by_namespace.get(n, (0, 0, [])), max_df, shared) for n in rest}
        return {n: held[n] if n in held else read_of[n] for n in namespaces}

    def postings_of(
        self, namespaces: Sequence[str], *lookups: tuple[Collection[int], int | None]
    ) -> Sequence[Mapping[str, Postings]]:
        """Return the result of ``postings`` for each (keys, max_df)."""
        return [self.postings(namespaces, keys, max_df=max_df) for keys, max_df in lookups]

    def texts(self, namespaces: Sequence[str], row_ids: RowIds) -> Mapping[int, str]:
        """Return title and text of each memory, by row id, for checking quoted phrases."""
        groups = self.among("memory_texts", namespaces, row_ids)
        return {placed(row_id, place): text for place, rows in groups for row_id, text in rows}

    def conversation_facts(self, namespaces: Sequence[str], keys: Collection[str]) -> Mapping[str, Kinds]:
        """Return for each namespace whether it has sessions and authors, and the authors named in ``keys``."""
        parameters = {"namespaces": list(namespaces), "keys": list(keys), "last": LAST, "behind": BEHIND}
        rows = self._rows("memory_kinds", parameters)
        return Kinds.of(namespaces, [(n, what, a, None if b is None else json.loads(b)) for n, what, a, b in rows])

    def session_turns(self, namespaces: Sequence[str], row_ids: RowIds) -> Sequence[Turn]:
        """Return the sessions of ``row_ids``, each in order; more than MOST_TURNS turns mean that one was cut."""
        if (model := self._model(namespaces)) is not None:
            return model.session_turns(row_ids)
        groups = self.among("memory_turns", namespaces, row_ids, limit=MOST_TURNS + 1)
        return [
            Turn(
                n,
                placed(row_id, place),
                session,
                author,
                bool(asks),
                month_of(at),
                id,
                part,
                importance,
                content,
                at / 1e6,
                updated / 1e6,
            )
            for place, rows in groups
            for n, row_id, session, author, asks, at, id, part, importance, content, updated in rows
        ]

    def _facts(
        self, namespaces: Sequence[str], names: Collection[str], models: Mapping[str, Model]
    ) -> tuple[Mapping[str, Kinds], Mapping[str, Corrections]]:
        """Return conversation facts and corrections, from memory where it knows them."""
        kinds = {n: facts for n, model in models.items() if (facts := model.kinds(names)) is not None}
        corrections = {n: model.corrections for n, model in models.items()}
        if rest := [n for n in namespaces if n not in kinds]:
            kinds |= self.conversation_facts(rest, names)
        if rest := [n for n in namespaces if n not in corrections]:
            corrections |= self.graph.corrections(rest)
        return kinds, corrections

    def _held(self, namespaces: Sequence[str]) -> dict[str, Model]:
        """Return those of ``namespaces`` that memory can hold, as they are now."""
        return {n: model for n in namespaces if (model := self.models.current(n)) is not None}

    def _model(self, namespaces: Sequence[str]) -> Model | None:
        """Return the only one of ``namespaces`` as memory holds it; None where the file has to be asked."""
        return self.models.current(namespaces[0]) if len(namespaces) == 1 else None

    # ------------------------------------------------------------------ settings of a namespace

    def settings(self, namespace: str | None) -> Sequence[tuple[str, str, Any]]:
        """Return (namespace, name, value) of the search settings of one namespace, or of all of them."""
        return [(n, name, json.loads(raw)) for n, name, raw in self._rows("setting_list", {"namespace": namespace})]

    def change_settings(self, namespace: str, changes: Mapping[str, Any], unset: Collection[str]) -> None:
        """Set and unset search settings of one namespace, all or none; later recalls use them."""

        def work(connection: sqlite3.Connection) -> None:
            connection.executemany(_SQL["setting_unset"], [{"namespace": namespace, "name": n} for n in sorted(unset)])
            values = [{"namespace": namespace, "name": n, "value": json.dumps(v)} for n, v in sorted(changes.items())]
            connection.executemany(_SQL["setting_set"], values)

        self._writing(work)


def _listed(row: Sequence[Any]) -> tuple[Memory, float | None]:
    """Return memory and sort key of a row of a list."""
    *columns, count, last, sort_key = row
    at = None if last is None else at_microsecond(last)
    return memory_of(columns, access_count=count or 0, last_accessed=at), sort_key
