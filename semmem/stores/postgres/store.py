"""The store on PostgreSQL with pgvector, the embedded server or the user's own: same code, same SQL."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import psycopg
from psycopg import Error, sql
from psycopg.errors import LockNotAvailable
from psycopg.types.json import Jsonb

from semmem.model.errors import SemmemError, StoreUnavailable
from semmem.model.exchange import MOST_TURNS, Extraction, Head, Kinds, Ords, Postings, Row, Scope, Stored, Turn, Written
from semmem.model.reports import Namespace, Stats
from semmem.model.types import Filters, Memory, Page
from semmem.stores.packed_postings import join_groups, pending_keys, unpack_postings
from semmem.stores.postgres import forget, search, write
from semmem.stores.postgres.connection import Pooled, among, pipelined_transaction, session_setting
from semmem.stores.postgres.encoding import filter_parameters, memory_of
from semmem.stores.postgres.few import are_few
from semmem.stores.postgres.graph import PostgresGraph, corrections_of, reindex
from semmem.stores.postgres.search import facts_asked, postings_asked, sorted_rows
from semmem.stores.postgres.vectors import PostgresVectors
from semmem.stores.sql_files import cursor_after, read_cursor, statements

__all__ = ["PostgresStore"]

_SQL = statements("postgres")
_PATIENCE = "1500ms"
"""How long others may have to queue behind a scrub that waits for somebody who is at work in a table."""
_TURNS, _PAUSE = 20, 0.2


class PostgresStore(Pooled):
    """One transactional store: writing, forgetting, and reading memories; ``vectors`` and ``graph`` have the rest."""

    kind = "PostgreSQL"
    capabilities = frozenset(("lexical", "dense", "graph"))

    def __init__(
        self,
        url: str,
        conninfo: str | Callable[[], str],
        *,
        pool_size: int = 8,
        start_timeout_s: float = 120.0,
        before_migration: Callable[[Any, int, int], None] | None = None,
    ) -> None:
        super().__init__(
            url, conninfo, pool_size=pool_size, start_timeout_s=start_timeout_s, before_migration=before_migration
        )
        self.vectors = PostgresVectors(self)
        self.graph = PostgresGraph(self)

    # ------------------------------------------------------------------ writing

    def write(self, rows: Sequence[Row], *, on_conflict: str) -> Written:
        """Store ``rows`` in one transaction; fold the namespaces whose pending memories have become many."""
        few = are_few(rows) and psycopg.Pipeline.is_supported()
        backlog: dict[str, tuple[int, int]] = {}
        lost: list[bool] = []

        def run(connection: Any) -> Written:
            if lost:
                with connection.transaction():
                    return _write_again(connection, rows, on_conflict)
            with pipelined_transaction(connection) if few else connection.transaction():
                return write.write(connection, rows, on_conflict, backlog if few else None)

        written = self.run(run, on_loss=lambda: lost.append(True))
        try:
            for namespace in sorted({n for n, _ in written.new | written.replaced}):
                self.tidy(namespace, backlog.get(namespace))
        except (SemmemError, psycopg.Error) as error:  # the rows are committed; the next writer folds, or maintain
            return replace(written, degraded={"maintain": f"Folding is left to `semmem maintain`: {error}"})
        return written

    def payload_hashes(self, names: Collection[tuple[str, str]]) -> Mapping[tuple[str, str], bytes]:
        """Return the hash of what was given for each (namespace, id) that is stored."""
        return self.run(lambda c: write.payloads(c, names))

    def stored_memories(self, names: Collection[tuple[str, str]]) -> Mapping[tuple[str, str], Stored]:
        """Return the whole memory of each (namespace, id) that is stored."""
        rows = self.rows("memory_stored", {"namespaces": [n for n, _ in names], "ids": [i for _, i in names]})
        return {(row[0], row[1]): Stored(memory_of(row[:-1]), bytes(row[-1])) for row in rows}

    def tidy(self, namespace: str, backlog: tuple[int, int] | None = None) -> None:
        """Fold a namespace whose pending memories have become many, and compact one with many fresh segments.

        ``backlog`` are the numbers of both, if a writer has just read them.
        """
        pending, fresh = backlog or self.rows("backlog", {"namespace": namespace})[0]
        if pending >= write.FOLD_AT:
            self.transaction(partial(write.fold, namespace=namespace))
            fresh += 1
        if fresh >= write.COMPACT_AT:
            self.transaction(partial(write.compact, namespace=namespace))

    def forget(self, namespace: str, id: str | None, filters: Filters, *, dry_run: bool) -> int:
        """Remove memories with all that was derived from them; return how many whole memories."""
        counts: list[int] = []

        def work(connection: Any) -> int:
            # Where the answer to a commit was lost, the work is done again and finds nothing left to count.
            counts.append(write.forget(connection, namespace, id, filters, dry_run=dry_run))
            return max(counts)

        return self.transaction(work)

    def forget_namespace(self, namespace: str, *, dry_run: bool) -> int:
        """Forget all of a namespace and its settings, whatever times its memories have; return how many memories."""
        if dry_run:
            return self.forget(namespace, None, Filters(), dry_run=True)
        counts: list[int] = []

        def work(connection: Any) -> int:
            counts.append(forget.empty(connection, namespace))  # see forget for why it is the largest
            return max(counts)

        return self.transaction(work)

    def maintain(self) -> Mapping[str, int]:
        """Fold every pending memory and join small posting segments."""
        folded = joined = 0
        for (namespace,) in self.rows("pending_namespaces", {}):
            while count := self.transaction(partial(write.fold, namespace=namespace)):
                folded += count
        for (namespace,) in self.rows("posting_namespaces", {}):
            joined += self.transaction(partial(write.compact, namespace=namespace, everything=True))
        self.run(lambda c: c.execute("ANALYZE memory, posting, embedding, forward"))
        indexed = self._indexed(self.vectors.embedder())
        return {"folded": folded, "joined": joined, "indexed": indexed}

    def _indexed(self, identity: Mapping[str, Any] | None) -> int:
        """Take vectors into the index; where a rebuild has put those of another embedder there meanwhile, these."""
        if identity is None:
            return 0
        try:
            return self.run(lambda c: search.index(c, identity["dimensions"]))
        except (Error, SemmemError):
            now = self.vectors.embedder()
            if now is None or dict(now) == dict(identity):
                raise
            return self.run(lambda c: search.index(c, now["dimensions"]))

    # ------------------------------------------------------------------ reading memories

    def get(self, namespace: str, ids: Sequence[str]) -> list[Memory]:
        """Return the memories of ``ids`` that exist, whole, in the order asked."""
        found = {m.id: m for m in map(memory_of, self.rows("memory_get", {"namespace": namespace, "ids": list(ids)}))}
        return [found[i] for i in ids if i in found]

    def list(self, namespace: str, filters: Filters, limit: int, cursor: str | None) -> Page:
        """Return whole memories, newest first."""
        at, id = read_cursor(cursor) if cursor else (None, None)
        parameters: dict[str, Any] = {"namespace": namespace, "limit": limit + 1, "cursor_at": at, "cursor_id": id}
        parameters |= filter_parameters(filters)
        read = self._planned if filters else self.rows
        rows = [memory_of(r) for r in read("memory_list", parameters)]
        more = len(rows) > limit
        memories = tuple(rows[:limit])
        return Page(memories, cursor_after(memories[-1]) if more else None)

    def stats(self, namespace: str | None) -> Stats:
        """Count."""
        row = self.rows("stats", {"namespace": namespace})[0]
        identity = self.vectors.embedder()
        memories, parts, namespaces, concepts, mentions, vectors, pending, size = (int(v or 0) for v in row)
        name = identity["name"] if identity else None
        return Stats(memories, parts, namespaces, concepts, mentions, vectors, pending, size, name)

    def overview(self) -> Sequence[Namespace]:
        """Return the namespaces that hold memories, by name, with how many and when one was last changed."""
        return [Namespace(*row) for row in self.rows("namespace_list", {})]

    def indexed_memories(self, namespaces: Sequence[str], ords: Ords) -> Mapping[int, Memory]:
        """Return what is indexed, by ord; a part has its whole's id in ``parent_id``."""
        return {r[-1]: memory_of(r) for r in self.rows("memory_by_ords", among(namespaces, ords))}

    def whole_memories(
        self, names: Collection[tuple[str, str]]
    ) -> Mapping[tuple[str, str], tuple[Memory, Sequence[int]]]:
        """Return memories by (namespace, id), whole, and how many characters each part has, in order."""
        asked = sorted(names)
        parameters = {"namespaces": [n for n, _ in asked], "ids": [i for _, i in asked]}
        return {(r[0], r[1]): (memory_of(r[:-1]), r[-1]) for r in self.rows("memory_wholes", parameters)}

    def indexed_after(self, namespace: str, ord: int, limit: int) -> Sequence[tuple[int, Memory]]:
        """Return (ord, memory) of what is indexed, in order, from ``ord`` on."""
        parameters = {"namespace": namespace, "ord": ord, "limit": limit}
        return [(r[-1], memory_of(r)) for r in self.rows("indexed_after", parameters)]

    def candidate_info(self, namespaces: Sequence[str], ords: Ords) -> Mapping[int, Head]:
        """Return what fusion needs of each candidate; forgotten ones are left out."""
        return {r[0]: Head(*r) for r in self.rows("memory_heads", among(namespaces, ords))}

    def texts(self, namespaces: Sequence[str], ords: Ords) -> Mapping[int, str]:
        """Return title and text, for phrase checks."""
        return dict(self.rows("memory_texts", among(namespaces, ords)))

    def ords_of(self, namespace: str, id: str) -> tuple[int, ...]:
        """Return the ords a memory is indexed under: one, or one a part; empty when there is none."""
        return tuple(o for (o,) in self.rows("memory_locate", {"namespace": namespace, "id": id}))

    def scope(
        self,
        namespaces: tuple[str, ...],
        filters: Filters,
        exclude: Sequence[str],
        names: Collection[str] | None = None,
    ) -> Scope:
        """Resolve filters and excluded ids, of whole memories, to ords; with ``names`` also kinds and corrections."""
        where = {"namespaces": list(namespaces)}
        asked: dict[str, Mapping[str, Any]] = {} if filters else {"memory_size": where}
        if exclude:
            asked["memory_excluded"] = {**where, "ids": list(exclude)}
        if names is not None:
            asked |= {"memory_kinds": facts_asked(namespaces, names), "moment": where}
        rows = dict(zip(asked, self.together(*asked.items()), strict=True)) if asked else {}
        allowed = None
        if filters:
            parameters = {**where, **filter_parameters(filters)}
            size, raw, settings = self._planned("memory_scope", parameters)[0]
            allowed = np.frombuffer(raw, dtype=">i8").astype(np.int64)
        else:
            size, settings = rows["memory_size"][0]
        excluded = np.array([o for (o,) in rows["memory_excluded"]], dtype=np.int64) if exclude else None
        scope = Scope(namespaces, int(size), allowed, excluded, settings=settings)
        if names is None:
            return scope
        kinds = Kinds.of(namespaces, rows["memory_kinds"])
        return replace(scope, kinds=kinds, corrections=corrections_of(rows["moment"], namespaces))

    def _planned(self, statement: str, parameters: Mapping[str, Any]) -> Sequence[Any]:
        """Fetch all rows of a statement with filters by a plan for these: a general one uses no index."""

        def read(connection: Any) -> Sequence[Any]:
            with pipelined_transaction(connection):
                connection.execute(_SQL["plan_for_these"])
                cursor = connection.execute(_SQL[statement], parameters, binary=True)
            rows: Sequence[Any] = cursor.fetchall()
            return rows

        return self.run(read)

    def postings(
        self,
        namespaces: Sequence[str],
        keys: Collection[int],
        *,
        max_df: int | None = None,
        shared: bool = False,
        pending: Collection[int] = (),
    ) -> Mapping[str, Postings]:
        """Return the postings of ``keys`` in each namespace, pending memories included.

        ``shared`` leaves out keys that a single memory has; where they are many, that is most of the work. ``pending``
        are the keys of pending memories that ``forwards_and_neighbours`` has returned: without them these are asked for
        again.
        """
        if not shared:
            return self.postings_of(namespaces, (keys, max_df))[0]
        asked = postings_asked(namespaces, keys, max_df)
        given = np.intersect1d(np.fromiter(pending, np.int64, len(pending)), asked["keys"])
        totals, waiting, folded = sorted_rows(self.rows("postings_shared", {**asked, "pending": given}))
        found = {}
        for namespace in namespaces:
            met = pending_keys(waiting[namespace], asked["keys"])
            packed = folded.get(namespace, (b"", b""))
            if np.array_equal(met, given):
                groups = unpack_postings(*packed, waiting[namespace], met, asked["max_df"])
            elif len(given):  # somebody has written, or folded, since they were read
                return self.postings(namespaces, keys, max_df=max_df, shared=True)
            else:  # a key of one folded memory and one pending one is shared after all
                groups = unpack_postings(*packed, [], met, asked["max_df"])
                whole = self.postings([namespace], met, max_df=max_df)[namespace]
                groups = join_groups(groups, (whole.keys, whole.sizes, whole.entries), met)
            found[namespace] = Postings(*totals.get(namespace, (0, 0)), *groups)
        return found

    def postings_of(
        self, namespaces: Sequence[str], *asked: tuple[Collection[int], int | None]
    ) -> Sequence[Mapping[str, Postings]]:
        """Return what ``postings`` does for each (keys, max_df), in one round trip."""
        each = [postings_asked(namespaces, keys, max_df) for keys, max_df in asked]
        found = []
        for rows, parameters in zip(self.together(*(("postings", one) for one in each)), each, strict=True):
            totals, waiting, folded = sorted_rows(rows)
            of = {
                n: unpack_postings(*folded.get(n, (b"", b"")), waiting[n], parameters["keys"], parameters["max_df"])
                for n in namespaces
            }
            found.append({n: Postings(*totals.get(n, (0, 0)), *groups) for n, groups in of.items()})
        return found

    def conversation_facts(self, namespaces: Sequence[str], keys: Collection[str]) -> Mapping[str, Kinds]:
        """Return what each namespace has: sessions, authors, and those of them named in ``keys``."""
        return Kinds.of(namespaces, self.rows("memory_kinds", facts_asked(namespaces, keys)))

    def session_turns(self, namespaces: Sequence[str], ords: Ords) -> Sequence[Turn]:
        """Return the sessions that hold ``ords``, each in its order; more than MOST_TURNS when they are not whole."""
        return [Turn(*row) for row in self.rows("memory_turns", {**among(namespaces, ords), "limit": MOST_TURNS + 1})]

    def namespaces(self) -> Sequence[str]:
        """Return the namespaces that hold memories."""
        return sorted(namespace for (namespace,) in self.rows("posting_namespaces", {}))

    def reindex(self, namespace: str, found: Sequence[tuple[int, Extraction]]) -> int:
        """Let memories hold what was found in them anew; see semmem.stores.postgres.graph.reindex."""
        changed = self.transaction(lambda c: reindex(c, namespace, found)) if found else 0
        if changed:
            self.tidy(namespace)
        return changed

    # ------------------------------------------------------------------ settings of a namespace

    def settings(self, namespace: str | None) -> Sequence[tuple[str, str, Any]]:
        """Return (namespace, name, value) of the search settings of one namespace, or of all of them."""
        return self.run(lambda c: c.execute(_SQL["setting_list"], {"namespace": namespace}).fetchall())

    def change_settings(self, namespace: str, changes: Mapping[str, Any], unset: Collection[str]) -> None:
        """Set and unset search settings of one namespace, all or none; every recall that begins later has them."""

        def work(connection: Any) -> None:
            connection.execute(_SQL["setting_unset"], {"namespace": namespace, "names": sorted(unset)})
            for name, value in sorted(changes.items()):
                parameters = {"namespace": namespace, "name": name, "value": Jsonb(value)}
                connection.execute(_SQL["setting_set"], parameters)

        self.transaction(work)

    def scrub(self) -> None:
        """Rewrite the tables, one after the other, so that no forgotten bytes are left in their files.

        Each takes as long as copying it, and nobody reads or writes it meanwhile, whatever the namespace. Who is at
        work in one is waited for, without others queueing behind us for long. Raises StoreUnavailable when a table
        stays in use, or this database user may not rewrite it. The server's log of changes (WAL), which it reuses in
        time, and backups are not touched.
        """
        with self.lasting() as connection, session_setting(connection, "lock_timeout", _PATIENCE):
            for (table,) in connection.execute(_SQL["scrub_tables"]).fetchall():
                _rewrite(connection, table)


def _rewrite(connection: Any, table: str) -> None:
    """Write a table's files anew. Raises StoreUnavailable where somebody uses it all the time, or the rights lack."""
    said = f"The memories are forgotten, but their bytes still stand in the files of the table semmem.{table}"
    before = connection.execute(_SQL["scrub_file"], {"table": table}).fetchone()
    for turn in range(_TURNS):
        try:
            connection.execute(sql.SQL("VACUUM (FULL) {}").format(sql.Identifier("semmem", table)))
            break
        except LockNotAvailable as error:
            if turn == _TURNS - 1:
                raise StoreUnavailable(
                    f"{said}: somebody works in it all the time, such as a backup; forget with hard again later."
                ) from error
            time.sleep(_PAUSE)
    if connection.execute(_SQL["scrub_file"], {"table": table}).fetchone() == before:  # passed over with a warning
        raise StoreUnavailable(f"{said}: this database user may not rewrite it; forget with hard as its owner.")


def _write_again(connection: Any, rows: Sequence[Row], on_conflict: str) -> Written:
    """Store a batch whose connection was lost, perhaps after the commit: what that one stored counts as written now."""
    wholes = {row.name: row for row in rows if row.part == 0}
    names = {"namespaces": [n for n, _ in wholes], "ids": [i for _, i in wholes]}
    found = connection.execute(_SQL["memory_written"], names).fetchall()
    done = {
        (namespace, id)
        for namespace, id, part, version, _, payload in found
        if part == 0 and version == wholes[namespace, id].memory.version and payload == wholes[namespace, id].payload
    }
    written = write.write(connection, [row for row in rows if row.name not in done], on_conflict)
    replaced = {name for name in done if wholes[name].replaces is not None}
    ords = {(namespace, id, part): ord for namespace, id, part, _, ord, _ in found if (namespace, id) in done}
    return replace(
        written,
        new=written.new | (done - replaced),
        replaced=written.replaced | replaced,
        ords={**written.ords, **ords},
    )
