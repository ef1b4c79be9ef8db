"""The store on PostgreSQL with pgvector, the embedded server or the user's own: same code, same SQL."""

from __future__ import annotations

import base64
import json
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from psycopg.types.json import Jsonb

from semmem.errors import InvalidInput
from semmem.protocols import Head, Row, Scope, Written
from semmem.stores import postgres_dense, postgres_write
from semmem.stores.postgres_graph import GraphTables
from semmem.stores.postgres_legs import LegReads
from semmem.stores.postgres_pool import among
from semmem.stores.statements import statements
from semmem.types import Filters, Memory, Page, Stats

__all__ = ["PostgresStore"]

_SQL = statements("postgres")


class PostgresStore(LegReads, GraphTables):
    """One transactional store: writing, forgetting, and reading whole memories; see also the classes below it."""

    # ------------------------------------------------------------------ who filled it

    def embedder(self) -> Mapping[str, Any] | None:
        """Return who filled the store with vectors, None before the first one."""
        rows = self._run(lambda c: c.execute(_SQL["meta_get"], {"key": "embedder"}).fetchall())
        return rows[0][0] if rows else None

    def replace_embedder(self, identity: Mapping[str, Any]) -> None:
        """Forget every vector and record ``identity`` as the one who fills the store from now on."""

        def work(connection: Any) -> None:
            connection.execute(_SQL["embedding_index_drop"])
            connection.execute(_SQL["embedding_clear"])
            connection.execute(_SQL["meta_set"], {"key": "embedder", "value": Jsonb(dict(identity))})

        self._transaction(work)

    def claim_embedder(self, identity: Mapping[str, Any]) -> Mapping[str, Any]:
        """Record ``identity`` if none is recorded; return what is recorded now."""
        claim = {"key": "embedder", "value": Jsonb(dict(identity))}
        self._run(lambda c: c.execute(_SQL["meta_claim"], claim))
        return self.embedder() or identity

    # ------------------------------------------------------------------ writing

    def write(self, rows: Sequence[Row], *, on_conflict: str) -> Written:
        """Store ``rows`` in one transaction; fold the namespaces whose pending memories have become many."""
        written = self._transaction(lambda c: postgres_write.write(c, rows, on_conflict))
        for namespace in sorted({n for n, _ in written.new}):
            self.tidy(namespace)
        return written

    def tidy(self, namespace: str) -> None:
        """Fold a namespace whose pending memories have become many, and compact one with many fresh segments."""
        pending, fresh = self._rows("backlog", {"namespace": namespace})[0]
        if pending >= postgres_write.FOLD_AT:
            self._transaction(partial(postgres_write.fold, namespace=namespace))
            fresh += 1
        if fresh >= postgres_write.COMPACT_AT:
            self._transaction(partial(postgres_write.compact, namespace=namespace))

    def forget(self, namespace: str, id: str | None, filters: Filters, *, dry_run: bool) -> int:
        """Remove memories with all that was derived from them; return how many whole memories."""
        return self._transaction(lambda c: postgres_write.forget(c, namespace, id, filters, dry_run=dry_run))

    def maintain(self) -> Mapping[str, int]:
        """Fold every pending memory and join small posting segments."""
        folded = joined = 0
        for (namespace,) in self._rows("pending_namespaces", {}):
            while count := self._transaction(partial(postgres_write.fold, namespace=namespace)):
                folded += count
        for (namespace,) in self._rows("posting_namespaces", {}):
            joined += self._transaction(partial(postgres_write.compact, namespace=namespace, everything=True))
        self._run(lambda c: c.execute("ANALYZE memory, posting, embedding, forward"))
        identity = self.embedder()
        indexed = self._run(lambda c: postgres_dense.index(c, identity["dimensions"])) if identity else 0
        return {"folded": folded, "joined": joined, "indexed": indexed}

    # ------------------------------------------------------------------ reading memories

    def get(self, namespace: str, ids: Sequence[str]) -> list[Memory]:
        """Return the memories of ``ids`` that exist, in the order asked; ``{id}#{n}`` names a part."""
        found = {m.id: m for m in map(_memory, self._rows("memory_get", {"namespace": namespace, "ids": list(ids)}))}
        parts = [split for i in ids if i not in found and (split := _part(i))]
        if parts:
            parameters = {"namespace": namespace, "ids": [p[0] for p in parts], "parts": [p[1] for p in parts]}
            found |= {m.id: m for m in map(_memory, self._rows("memory_get_parts", parameters))}
        return [found[i] for i in ids if i in found]

    def list(self, namespace: str, filters: Filters, limit: int, cursor: str | None) -> Page:
        """Return whole memories, newest first."""
        at, id = _decode(cursor) if cursor else (None, None)
        parameters = {"namespace": namespace, "limit": limit + 1, "cursor_at": at, "cursor_id": id}
        rows = [
            _memory(r) for r in self._rows("memory_list", {**parameters, **postgres_write.filter_parameters(filters)})
        ]
        more = len(rows) > limit
        memories = tuple(rows[:limit])
        return Page(memories, _encode(memories[-1]) if more else None)

    def stats(self, namespace: str | None) -> Stats:
        """Count."""
        row = self._rows("stats", {"namespace": namespace})[0]
        identity = self.embedder()
        memories, parts, namespaces, concepts, mentions, vectors, pending, size = (int(v or 0) for v in row)
        name = identity["name"] if identity else None
        return Stats(memories, parts, namespaces, concepts, mentions, vectors, pending, size, name)

    def memories(self, namespaces: Sequence[str], ords: Sequence[int]) -> Mapping[int, Memory]:
        """Return whole rows by ord; a part has its parent's id in ``parent_id``."""
        return {r[-1]: _memory(r) for r in self._rows("memory_by_ords", among(namespaces, ords))}

    def indexed_after(self, namespace: str, ord: int, limit: int) -> Sequence[tuple[int, Memory]]:
        """Return (ord, memory) of what is indexed, in order, from ``ord`` on."""
        parameters = {"namespace": namespace, "ord": ord, "limit": limit}
        return [(r[-1], _memory(r)) for r in self._rows("indexed_after", parameters)]

    def heads(self, namespaces: Sequence[str], ords: Collection[int]) -> Mapping[int, Head]:
        """Return what fusion needs of each candidate; forgotten ones are left out."""
        return {r[0]: Head(*r) for r in self._rows("memory_heads", among(namespaces, ords))}

    def texts(self, namespaces: Sequence[str], ords: Sequence[int]) -> Mapping[int, str]:
        """Return title and text, for phrase checks."""
        return dict(self._rows("memory_texts", among(namespaces, ords)))

    def titles(self, namespaces: Sequence[str], ords: Sequence[int]) -> Mapping[int, str | None]:
        """Return the title of each memory."""
        return dict(self._rows("memory_titles", among(namespaces, ords)))

    def locate(self, namespace: str, id: str) -> tuple[int, ...]:
        """Return the ords a memory is indexed under: one, or one a part; empty when there is none."""
        return tuple(o for (o,) in self._rows("memory_locate", {"namespace": namespace, "id": id}))

    def scope(self, namespaces: tuple[str, ...], filters: Filters, exclude: Sequence[str]) -> Scope:
        """Resolve filters and excluded ids to ords."""
        allowed = excluded = None
        if exclude:
            parts = [split for i in exclude if (split := _part(i))]
            parameters = {
                "namespaces": list(namespaces),
                "ids": list(exclude),
                "part_ids": [p[0] for p in parts],
                "part_numbers": [p[1] for p in parts],
            }
            excluded = np.array([o for (o,) in self._rows("memory_excluded", parameters)], dtype=np.int64)
        if filters:
            parameters = {"namespaces": list(namespaces), **postgres_write.filter_parameters(filters)}
            size, raw = self._rows("memory_scope", parameters)[0]
            allowed = np.frombuffer(raw, dtype=">i8").astype(np.int64)
        else:
            size = self._rows("memory_size", {"namespaces": list(namespaces)})[0][0]
        return Scope(namespaces, int(size), allowed, excluded)

    # ------------------------------------------------------------------ vectors

    def missing_vectors(self, after: tuple[str, int], limit: int) -> Sequence[tuple[int, Memory]]:
        """Return (ord, memory) of indexed memories without a vector, by (namespace, ord), from ``after`` on."""
        parameters = {"namespace": after[0], "ord": after[1], "limit": limit}
        return [(r[-1], _memory(r)) for r in self._rows("embedding_missing", parameters)]

    def add_vectors(self, rows: Sequence[tuple[str, int, NDArray[np.float32]]]) -> None:
        """Store vectors of memories that have none; those forgotten meanwhile are left out."""
        parameters = {
            "namespaces": [n for n, _, _ in rows],
            "ords": [o for _, o, _ in rows],
            "vectors": [postgres_dense.literal(v) for _, _, v in rows],
        }
        self._run(lambda c: c.execute(_SQL["embedding_add"], parameters))

    def scrub(self) -> None:
        """Rewrite the tables so that no forgotten bytes are left in their files; takes as long as copying them."""
        self._run(lambda c: c.execute("VACUUM (FULL) memory, forward, pending, posting, embedding"))


def _memory(row: Any) -> Memory:
    (namespace, id, part, text, title, author, session, position, source, tags, metadata, importance, *rest) = row
    created_at, updated_at, version, _ = rest
    return Memory(
        id=f"{id}#{part}" if part else id,
        namespace=namespace,
        text=text,
        title=title,
        author=author,
        session=session,
        position=position,
        source=source,
        tags=tuple(tags),
        metadata=metadata,
        importance=importance,
        created_at=created_at,
        updated_at=updated_at,
        version=version,
        parent_id=id if part else None,
    )


def _part(id: str) -> tuple[str, int] | None:
    """Return (parent id, part number) when ``id`` has the form of a part's id."""
    parent, mark, number = id.rpartition("#")
    return (parent, int(number)) if mark and number.isascii() and number.isdigit() and 0 < len(number) < 9 else None


def _encode(memory: Memory) -> str:
    at = memory.created_at.isoformat() if memory.created_at else ""
    return base64.urlsafe_b64encode(json.dumps([at, memory.id]).encode()).decode()


def _decode(cursor: str) -> tuple[datetime, str]:
    try:
        at, id = json.loads(base64.urlsafe_b64decode(cursor.encode()))
        return datetime.fromisoformat(at), str(id)
    except (ValueError, TypeError) as error:
        raise InvalidInput("This cursor is not one that list returned; start again without a cursor.") from error
