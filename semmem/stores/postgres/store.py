"""The store on PostgreSQL with pgvector: the embedded server or the user's own, with the same code and SQL."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Any

import numpy as np
import psycopg
from psycopg.types.json import Jsonb

from semmem.model.errors import SemmemError, StoreUnavailable
from semmem.model.exchange import (
    MOST_TURNS,
    CandidateMetadata,
    Extraction,
    Kinds,
    Postings,
    Row,
    RowIds,
    Scope,
    Stored,
    Turn,
    Written,
    apart,
    placed,
)
from semmem.model.reports import Backlog, Namespace, Node, RowSecurity, Stats
from semmem.model.store import KEEP, Keep, Snapshot
from semmem.model.types import Filters, ListOrder, Memory, Page
from semmem.stores.filter_matches import FilterMatches
from semmem.stores.packed_postings import FORWARD, mentions
from semmem.stores.past import PastSnapshot, versions_at
from semmem.stores.postgres import forget, nodes, postings, row_security, saved, upkeep, write
from semmem.stores.postgres.connection import Pooled, by_namespace, pipelined_transaction
from semmem.stores.postgres.encoding import facts_of, facts_parameters, filter_parameters, memory_of
from semmem.stores.postgres.graph import PostgresGraph, reindex
from semmem.stores.postgres.life import PostgresLife
from semmem.stores.postgres.moving import namespaces
from semmem.stores.postgres.reading import posting_lists, scopes
from semmem.stores.postgres.serving import PostgresServing
from semmem.stores.postgres.typed import Connection
from semmem.stores.postgres.vectors import PostgresVectors
from semmem.stores.snapshot import StoredSnapshot, scope_of
from semmem.stores.sql_files import LISTS, page_of, read_cursor, statements

__all__ = ["PostgresStore"]

_SQL = statements("postgres")

_COUNTED = 5_000
"""The most indexed memories whose concepts and mentions ``stats`` counts one by one; it estimates those of more."""
_SAMPLED = 1_500
"""An estimate counts the mentions of about so many memories, and as many concepts as one to two times so many have."""
_KEYS_PARTS = 256
"""The most parts into which the keys are divided, by their highest byte."""
_FEWEST = 400
"""The fewest concepts in the part of an estimate, whose error is 5 % then; with fewer, a larger part counts."""


class PostgresStore(Pooled):
    """A transactional store: writes, forgets and reads memories; ``vectors``, ``graph`` and ``life`` do the rest."""

    kind = "PostgreSQL"
    capabilities = frozenset(("lexical", "dense", "graph"))

    def __init__(
        self,
        url: str,
        conninfo: str | Callable[[], str],
        *,
        pool_size: int = 8,
        start_timeout_s: float = 120.0,
        before_migration: Callable[[Connection, int, int], None] | None = None,
        migrates: bool | None = True,
        patience_s: float = 30,
    ) -> None:
        self._flushing = upkeep.Flushing(self, connections=pool_size)
        super().__init__(
            url,
            conninfo,
            pool_size=pool_size,
            start_timeout_s=start_timeout_s,
            before_migration=before_migration,
            migrates=migrates,
            patience_s=patience_s,
        )
        self.vectors = PostgresVectors(self)
        self.graph = PostgresGraph(self)
        self.life = PostgresLife(self)
        self.serving = PostgresServing(self)
        self.matching = FilterMatches()

    @property
    def is_embedded(self) -> bool:
        """Whether this is the embedded server, which is of one user."""
        return self.url.strip().lower().startswith("embedded:")

    def write(
        self,
        rows: Sequence[Row],
        *,
        on_conflict: str,
        bulk: bool = False,
    ) -> Written:
        """Store ``rows`` in one transaction; flush namespaces that have many pending memories."""
        few = postings.are_few(rows) and psycopg.Pipeline.is_supported()
        backlog: dict[str, postings.NamespaceBacklog] = {}
        losses: list[bool] = []

        def run(connection: Connection) -> Written:
            if losses:
                with connection.transaction():
                    return write.write_again(connection, rows, on_conflict)
            if few:
                with pipelined_transaction(connection):
                    written = write.write(connection, rows, on_conflict, backlog, bulk=bulk)
                return written()
            numbers = write.numbers_for(connection, rows)  # outside the transaction, which would make others wait
            with connection.transaction():
                return write.write(connection, rows, on_conflict, numbers=numbers, bulk=bulk)()

        if bulk:
            self._flushing.finish()
        written = self.run(run, on_loss=lambda: losses.append(True))
        namespaces = sorted({n for n, _ in written.new | written.replaced})
        if bulk:
            self._flushing.begin(namespaces, backlog)
            return written
        try:
            for namespace, due in postings.backlogs_due(self, namespaces, backlog, bulk=False).items():
                postings.flush_and_compact(self, namespace, due)
        except (SemmemError, psycopg.Error) as error:  # the rows are committed; the next writer or maintain flushes
            return replace(written, degraded=upkeep.left_to_maintain(error))
        return written

    def payload_hashes(self, names: Collection[tuple[str, str]]) -> Mapping[tuple[str, str], bytes]:
        """Return the content hash of each (namespace, id) that is stored."""
        each = self.named("memory_payloads", names, planned=True)
        payloads = {(namespace, id): (bytes(raw), goes) for namespace, rows in each for id, raw, goes in rows}
        if any(goes for _, goes in payloads.values()) and self._finish_drops(names):
            return self.payload_hashes(names)
        return {name: payload for name, (payload, goes) in payloads.items() if not goes}  # else somebody else swept it

    def stored_memories(self, names: Collection[tuple[str, str]]) -> Mapping[tuple[str, str], Stored]:
        """Return the whole memory of each (namespace, id) that is stored."""
        rows = [row for _, group in self.named("memory_stored", names, planned=True) for row in group]
        if any(goes for *_, goes in rows) and self._finish_drops(names):
            return self.stored_memories(names)
        return {(row[0], row[1]): Stored(memory_of(row[:-3]), bytes(row[-3]), row[-2]) for row in rows if not row[-1]}

    def _finish_drops(self, names: Collection[tuple[str, str]]) -> bool:
        """Continue an interrupted drop and sweep expired memories, so that they do not count as stored."""
        spaces = {namespace for namespace, _ in names}
        for namespace, upto in (unfinished := [one for one in self.rows("drop_unfinished", {}) if one[0] in spaces]):
            self.drop(namespace, upto)
        return upkeep.sweep_expired(self, names) > 0 or bool(unfinished)

    def end_bulk(self, namespaces: Collection[str]) -> Mapping[str, str]:
        """Flush what the batches of a bulk have left pending; see Store.end_bulk."""
        return upkeep.end_bulk(self, namespaces, failed=self._flushing.end())

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

        def work(connection: Connection) -> int:
            return forget.forget(connection, namespace, id, filters, dry_run=dry_run, soft=soft, by=by)

        return self.transaction(work) if dry_run else self.transaction_once(work)

    def forget_namespace(self, namespace: str, *, dry_run: bool) -> int:
        """Forget all memories of a namespace, expired ones too, and its settings; return how many memories."""
        if dry_run:
            return self.forget(namespace, None, Filters(), dry_run=True, soft=True)
        count, upto = self.transaction_once(partial(forget.begin_drop, namespace=namespace))
        try:
            self.drop(namespace, upto)
        except StoreUnavailable as error:
            reason = error.message[0].lower() + error.message[1:]
            raise StoreUnavailable(
                "The memories are forgotten, but some of their rows are still in the tables until `semmem maintain` "
                f"removes them: {reason}"
            ) from error
        return count

    def drop(self, namespace: str, upto: int) -> None:
        """Remove memories with row ids up to ``upto``, in transactions of bounded size; maintain can continue."""
        for step in forget.DROP_STEPS if upto else ():
            while self.transaction(partial(step, namespace=namespace, upto=upto)):
                pass

    def maintain(self, keep: Keep = KEEP) -> Mapping[str, int]:
        """Sweep what is due, flush pending memories, merge small segments; see semmem.stores.postgres.upkeep."""
        return upkeep.maintain(self, keep)

    # ------------------------------------------------------------------ reading memories

    def get(self, namespace: str, ids: Sequence[str]) -> list[Memory]:
        """Return the memories of ``ids`` that exist, whole, in the order asked."""
        which = {"namespace": namespace, "ids": list(ids)}
        memories = {m.id: m for m in map(memory_of, self.rows("memory_get", which))}
        return [memories[i] for i in ids if i in memories]

    def ids_with_prefix(self, namespace: str, prefixes: Collection[str], limit: int) -> Mapping[str, Sequence[str]]:
        """Return, for each of ``prefixes``, up to ``limit`` ids that begin with it, in order; forgotten ones too."""
        ids: dict[str, list[str]] = {prefix: [] for prefix in prefixes}
        which = {"namespace": namespace, "prefixes": list(ids), "limit": limit}
        for prefix, id in self.rows("memory_prefixed", which):
            ids[prefix].append(id)
        return {prefix: sorted(some) for prefix, some in ids.items()}

    def last_position(self, namespace: str, session: str) -> int | None:
        """Return the largest position in a session; None where no memory of it has one."""
        rows = self.rows("memory_last_position", {"namespace": namespace, "session": session})
        return int(rows[0][0]) if rows else None

    def list(
        self, namespace: str, filters: Filters, limit: int, cursor: str | None, sort_by: ListOrder = "created"
    ) -> Page:
        """Return a page of whole memories in descending order, by default the newest first."""
        after = read_cursor(cursor, sort_by)
        parameters: dict[str, Any] = {"namespace": namespace, "limit": limit + 1, **filter_parameters(filters)}
        parameters |= {"cursor_at": after.created_at, "cursor_id": after.id}
        parameters |= {"cursor_key": after.key, "cursor_time": after.time}
        (rows,) = self.together((LISTS[sort_by], parameters), planned=True)
        return page_of([_listed(row) for row in rows], limit, sort_by)

    def stats(self, namespace: str | None, *, exact: bool = False) -> Stats:
        """Return the counts of memories, concepts and vectors; see Store.stats."""
        where = {"namespace": namespace}
        ((row,),) = self.together(("stats", where), planned=True)
        indexed, apart, parts, namespaces, vectors, pending, size = (int(v or 0) for v in row)
        sampled = indexed > _COUNTED and not exact
        concepts, mentioned = self._sampled(namespace, indexed) if sampled else self.row("stats_exact", where)
        identity = self.vectors.embedder()
        size += self.run(saved.disk_bytes) if self.is_embedded else 0
        memories, name = indexed + apart - parts, identity["name"] if identity else None
        counts = Stats(memories, parts, namespaces, concepts, mentioned, vectors, pending, size, name)
        return replace(counts, estimated=("concepts", "mentions") if sampled else ())

    def _sampled(self, namespace: str | None, indexed: int) -> tuple[int, int]:
        """Return about how many concepts and mentions there are: by a range of the keys, by some of the memories."""
        parts = min(_KEYS_PARTS, 1 << max(0, (indexed // _SAMPLED).bit_length() - 1))

        def among(parts: int) -> tuple[str, dict[str, Any]]:
            upto = postings.FIRST_KEY + (1 << 64) // parts - 1
            return "stats_concepts", {"namespace": namespace, "upto": upto, "bytes": 256 // parts}

        step = {"step": -(-indexed // _SAMPLED)}
        ((concepts,),), ((count, raw),) = self.together(
            among(parts),
            ("stats_forwards", {"namespace": namespace, **step}),
            planned=True,
        )
        while concepts < _FEWEST and parts > 1:
            parts = max(1, parts // 8)
            (((concepts,),),) = self.together(among(parts), planned=True)
        entries = np.frombuffer(raw, dtype=FORWARD)
        mentioned = int(mentions(entries[entries["kind"] > 0]).sum())
        return concepts * parts, round(mentioned * indexed / max(count, 1))

    def nodes(self) -> Sequence[Node] | None:
        """Return the servers that hold namespaces; see Store.nodes."""
        return self.run(nodes.of_store)

    def row_security(self) -> RowSecurity:
        """Return on which tables row-level security is on; see Store.row_security."""
        return self.run(row_security.state)

    def node_of(self, namespace: str) -> str | None:
        """Return the server that holds a namespace; see Store.node_of."""
        return self.run(lambda connection: nodes.of_namespace(connection, namespace))

    def backlog(self) -> Backlog:
        """Return what is left to do in the whole store; see Store.backlog."""
        return Backlog(*self.row("store_backlog", {}))

    def overview(self) -> Sequence[Namespace]:
        """Return the namespaces that hold memories or are being moved, by name."""
        namespace_rows, move_rows = self.together(("namespace_list", {}), ("moved_unfinished", {}))
        by_name = {name: Namespace(name, *row) for name, *row in namespace_rows}
        by_name |= {n: replace(by_name.get(n, Namespace(n, 0, at)), state=state) for n, state, _, at in move_rows}
        return [by_name[name] for name in sorted(by_name)]

    def indexed_memories(self, namespaces: Sequence[str], row_ids: RowIds) -> Mapping[int, Memory]:
        """Return the indexed memories and parts by row id; a part has the memory's id in ``parent_id``."""
        groups = self.among("memory_by_row_ids", namespaces, row_ids)
        return {placed(row[-1], place): memory_of(row) for place, rows in groups for row in rows}

    def whole_memories(
        self, names: Collection[tuple[str, str]]
    ) -> Mapping[tuple[str, str], tuple[Memory, Sequence[int]]]:
        """Return whole memories by (namespace, id), each with the lengths of its parts in characters, in order."""
        return _wholes(row for _, group in self.named("memory_wholes", names) for row in group)

    def indexed_after(self, namespace: str, row_id: int, limit: int) -> Sequence[tuple[int, Memory]]:
        """Return (row id, memory) for up to ``limit`` indexed memories after ``row_id``, in order."""
        parameters = {"namespace": namespace, "ord": row_id, "limit": limit}
        return [(r[-1], memory_of(r)) for r in self.rows("indexed_after", parameters)]

    def candidate_metadata(self, namespaces: Sequence[str], row_ids: RowIds) -> Mapping[int, CandidateMetadata]:
        """Return the metadata of each candidate, which is what fusion needs; forgotten memories are left out."""
        groups = self.among("candidate_metadata", namespaces, row_ids)
        metadata = (CandidateMetadata(placed(row[0], place), *row[1:]) for place, rows in groups for row in rows)
        return {candidate.row_id: candidate for candidate in metadata}

    def texts(self, namespaces: Sequence[str], row_ids: RowIds) -> Mapping[int, str]:
        """Return title and text of each memory, by row id, for checking quoted phrases."""
        return {
            placed(o, place): text
            for place, rows in self.among("memory_texts", namespaces, row_ids)
            for o, text in rows
        }

    def row_ids_of(self, namespace: str, id: str) -> tuple[int, ...]:
        """Return the row ids that index a memory: one, or one for each part; empty for an unknown id."""
        return tuple(o for (o,) in self.rows("memory_locate", {"namespace": namespace, "id": id}))

    def scope(
        self,
        namespaces: tuple[str, ...],
        filters: Filters,
        exclude: Sequence[str],
        names: Collection[str] | None = None,
        at: datetime | None = None,
    ) -> Scope:
        """Resolve filters and excluded ids to row ids; with ``names`` also load conversation facts and corrections."""
        return scopes.scope(self, self.matching, namespaces, filters, exclude, names, at)[0]

    def states(self, namespaces: Collection[str]) -> Mapping[str, tuple[Any, ...] | None]:
        """Return the state of each namespace now, None for one of which nothing is stored."""
        return scopes.states(self, namespaces)

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
        """Return what one recall reads, from the database; see SnapshotSource."""
        stored = StoredSnapshot(self, scope_of(self, namespaces, filters, exclude, names, at))
        if at is None:
            return stored
        return PastSnapshot(stored, versions_at(self.life, namespaces, at), at)

    def scope_and_memories(
        self,
        namespaces: tuple[str, ...],
        filters: Filters,
        exclude: Sequence[str],
        row_ids: RowIds,
        names: Collection[tuple[str, str]],
    ) -> tuple[Scope, Mapping[int, Memory], Mapping[tuple[str, str], tuple[Memory, Sequence[int]]]]:
        """Return ``scope``, after ``indexed_memories`` and ``whole_memories``, all in one round trip."""
        if len(namespaces) == 1 and not (filters or exclude or names):
            here, own_rows = scopes.scope_and_rows(self, namespaces[0], row_ids)
            return here, {row[-1]: memory_of(row) for row in own_rows}, {}
        groups, each = apart(namespaces, row_ids) if len(row_ids) else [], by_namespace(names)
        text_queries = [("memory_by_row_ids", {"namespace": namespace, "ords": own}) for _, namespace, own in groups]
        whole_queries = [("memory_wholes", {"namespace": namespace, "ids": ids}) for namespace, ids in each.items()]
        before: list[tuple[str, Any]] = [*text_queries, *whole_queries]
        found, rows = scopes.scope(self, self.matching, namespaces, filters, exclude, after=before)
        answers = zip(groups, rows[: len(groups)], strict=True)
        memories = {placed(row[-1], place): memory_of(row) for (place, *_), own in answers for row in own}
        return found, memories, _wholes(row for own in rows[len(groups) :] for row in own)

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

        ``shared`` leaves out keys that only one memory has, which is most of the work where keys are many. ``pending``
        are the keys of pending memories, as ``forwards_and_neighbours`` returns them; without them they are queried
        again.
        """
        if shared:
            return {n: posting_lists.shared(self, n, keys, max_df, pending) for n in namespaces}
        return self.postings_of(namespaces, (keys, max_df))[0]

    def postings_of(
        self, namespaces: Sequence[str], *lookups: tuple[Collection[int], int | None]
    ) -> Sequence[Mapping[str, Postings]]:
        """Return the result of ``postings`` for each (keys, max_df), in one round trip."""
        return posting_lists.of_lookups(self, namespaces, lookups)

    def conversation_facts(self, namespaces: Sequence[str], keys: Collection[str]) -> Mapping[str, Kinds]:
        """Return for each namespace whether it has sessions and authors, and the authors named in ``keys``."""
        rows = self.together(*(("memory_kinds", facts_parameters(n, keys)) for n in namespaces))
        return facts_of(dict(zip(namespaces, rows, strict=True)))

    def session_turns(self, namespaces: Sequence[str], row_ids: RowIds) -> Sequence[Turn]:
        """Return the sessions of ``row_ids``, each in order; more than MOST_TURNS turns mean that one was cut."""
        groups = self.among("memory_turns", namespaces, row_ids, limit=MOST_TURNS + 1)
        return [Turn(*row)._replace(row_id=placed(row[1], place)) for place, rows in groups for row in rows]

    def namespaces(self) -> Sequence[str]:
        """Return the namespaces that hold memories."""
        return sorted(namespace for (namespace,) in self.rows("namespace_names", {}))

    def reindex(
        self, namespace: str, extractions: Sequence[tuple[int, Extraction]], *, language: str | None = None
    ) -> int:
        """Store new extractions of memories; see semmem.stores.postgres.graph.reindex."""
        changed = self.transaction(lambda c: reindex(c, namespace, extractions, language)) if extractions else 0
        if changed:
            with suppress(SemmemError, psycopg.Error):  # all is stored; the next writer or maintain tidies
                postings.flush_and_compact(self, namespace, bulk=True)  # the segments that it leaves are small
        return changed

    @contextmanager
    def rebuilding(self) -> Iterator[None]:
        """Lock out other rebuilds and moves of namespaces. Raises Conflict while another one runs."""
        with super().rebuilding():
            namespaces.finish(self, beside=True)
            yield

    # ------------------------------------------------------------------ settings of a namespace

    def settings(self, namespace: str | None) -> Sequence[tuple[str, str, Any]]:
        """Return (namespace, name, value) of the search settings of one namespace, or of all of them."""
        return self.rows("setting_list", {"namespace": namespace})

    def change_settings(self, namespace: str, changes: Mapping[str, Any], unset: Collection[str]) -> None:
        """Set and unset search settings of one namespace, all or none; later recalls use them."""

        def work(connection: Connection) -> None:
            connection.execute(_SQL["setting_hold"], {"namespace": namespace})
            connection.execute(_SQL["setting_unset"], {"namespace": namespace, "names": sorted(unset)})
            for name, value in sorted(changes.items()):
                parameters = {"namespace": namespace, "name": name, "value": Jsonb(value)}
                connection.execute(_SQL["setting_set"], parameters)

        self.transaction(work)

    @property
    def is_in_whole(self) -> bool:
        """Whether all that this thread does now is one transaction; see ``whole``."""
        return self.in_whole is not None

    def scrub(self) -> None:
        """Rewrite the tables, two at a time, so that their files hold no forgotten bytes.

        Each table takes as long as copying it, and cannot be read or written meanwhile, in any namespace. The call
        waits for sessions that use a table, without letting others queue for long. Raises StoreUnavailable when a table
        stays in use, or this database user may not rewrite it. Where the user may, the server's log (WAL) is recycled
        too. Backups are not touched. Inside ``whole`` it is left for after the commit.
        """
        if (whole := self.in_whole) is not None:
            whole.unscrubbed = True
            return
        with self.lasting() as connection:
            forget.scrub(connection, self.another)


def _wholes(rows: Iterable[Any]) -> dict[tuple[str, str], tuple[Memory, Sequence[int]]]:
    return {(row[0], row[1]): (memory_of(row[:-1]), row[-1]) for row in rows}


def _listed(row: Sequence[Any]) -> tuple[Memory, float | None]:
    """Return memory and sort key of a row of a list."""
    *columns, count, last, sort_key = row
    return memory_of(columns, access_count=count or 0, last_accessed=last), sort_key
