"""The store on PostgreSQL with pgvector, the embedded server or the user's own: same code, same SQL."""

from __future__ import annotations

import base64
import json
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from functools import partial
from typing import Any, TypeAlias, TypeVar

import numpy as np
import psycopg
from numpy.typing import NDArray
from psycopg.types.json import Jsonb
from psycopg_pool import ConnectionPool, PoolClosed, PoolTimeout

from semmem.errors import InvalidInput, StoreClosed, StoreUnavailable
from semmem.protocols import Forwards, Head, Postings, Ranking, Row, Scope, Written
from semmem.stores import postgres_write
from semmem.stores.arrays import register_arrays
from semmem.stores.migrate import migrate
from semmem.stores.packing import FORWARD, join_groups, pending_keys, unpack_forwards, unpack_postings
from semmem.stores.statements import statements
from semmem.types import Filters, Memory, Page, Stats

__all__ = ["PostgresStore"]

T = TypeVar("T")
Turn: TypeAlias = tuple[int, str | None, str | None, bool, int]
_SQL = statements("postgres")
_TRIES = 6
_NO_LIMIT = 2**62
_UNLIMITED = 0.0
_MOST_TURNS = 4_000
"""Turns read around the candidates of one question; in longer sessions the rules of the window are off."""


class PostgresStore:
    """One transactional store. ``conninfo`` is called before every new connection, so a stopped server starts again."""

    def __init__(self, url: str, conninfo: Callable[[], str], *, pool_size: int = 8) -> None:
        self.url = url
        self._deadline = threading.local()
        self._retried = StoreUnavailable
        migrate(conninfo())
        self._pool = ConnectionPool(
            conninfo=conninfo,
            min_size=1,
            max_size=pool_size,
            kwargs={"autocommit": True},
            configure=_configure,
            open=True,
            timeout=30,
            max_idle=60,
            name="semmem",
        )

    def close(self) -> None:
        """Give the connections back; the data stays."""
        self._pool.close()

    @contextmanager
    def time_limit(self, seconds: float) -> Iterator[None]:
        """Let the server cancel statements of this thread that run longer than ``seconds``."""
        self._deadline.seconds = seconds
        try:
            yield
        finally:
            self._deadline.seconds = _UNLIMITED

    def _run(self, work: Callable[[Any], T]) -> T:
        """Run ``work`` on a connection; deadlocks and lost connections are tried again, as ids are idempotent."""
        for attempt in range(_TRIES):
            try:
                with self._pool.connection() as connection:
                    _set_timeout(connection, getattr(self._deadline, "seconds", _UNLIMITED))
                    return work(connection)
            except (psycopg.errors.DeadlockDetected, psycopg.errors.SerializationFailure):
                if attempt == _TRIES - 1:
                    raise
                time.sleep(0.01 * 2**attempt)
            except PoolClosed as error:
                raise StoreClosed() from error
            except (psycopg.errors.DiskFull, PoolTimeout) as error:
                raise StoreUnavailable(f"The database server cannot go on: {_sentence(error)}") from error
            except psycopg.errors.QueryCanceled:
                raise
            except (psycopg.OperationalError, psycopg.InterfaceError) as error:
                if attempt >= 2:
                    raise StoreUnavailable(f"The database server cannot be reached: {_sentence(error)}") from error
                time.sleep(0.1 * 2**attempt)
        raise AssertionError("unreachable")

    def _rows(self, statement: str, parameters: Mapping[str, Any]) -> list[Any]:
        """Fetch all rows in binary format, so that bytea and numbers arrive as they are."""
        return self._run(lambda c: c.execute(_SQL[statement], parameters, binary=True).fetchall())

    def _transaction(self, work: Callable[[Any], T]) -> T:
        def run(connection: Any) -> T:
            with connection.transaction():
                return work(connection)

        return self._run(run)

    # ------------------------------------------------------------------ who filled it

    def embedder(self) -> Mapping[str, Any] | None:
        """Return who filled the store with vectors, None before the first one."""
        rows = self._run(lambda c: c.execute(_SQL["meta_get"], {"key": "embedder"}).fetchall())
        return rows[0][0] if rows else None

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
            pending, fresh = self._rows("backlog", {"namespace": namespace})[0]
            if pending >= postgres_write.FOLD_AT:
                self._transaction(partial(postgres_write.fold, namespace=namespace))
                fresh += 1
            if fresh >= postgres_write.COMPACT_AT:
                self._transaction(partial(postgres_write.compact, namespace=namespace))
        return written

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
        return {"folded": folded, "joined": joined}

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
        return {r[-1]: _memory(r) for r in self._rows("memory_by_ords", _in(namespaces, ords))}

    def parents(self, names: Sequence[tuple[str, str]]) -> Mapping[tuple[str, str], Memory]:
        """Return whole memories by (namespace, id)."""
        parameters = {"namespaces": [n for n, _ in names], "ids": [i for _, i in names]}
        return {(m.namespace, m.id): m for m in map(_memory, self._rows("memory_parents", parameters))}

    def heads(self, namespaces: Sequence[str], ords: Collection[int]) -> Mapping[int, Head]:
        """Return what fusion needs of each candidate; forgotten ones are left out."""
        return {r[0]: Head(*r) for r in self._rows("memory_heads", _in(namespaces, ords))}

    def texts(self, namespaces: Sequence[str], ords: Sequence[int]) -> Mapping[int, str]:
        """Return title and text, for phrase checks."""
        return dict(self._rows("memory_texts", _in(namespaces, ords)))

    def titles(self, namespaces: Sequence[str], ords: Sequence[int]) -> Mapping[int, str | None]:
        """Return the title of each memory."""
        return dict(self._rows("memory_titles", _in(namespaces, ords)))

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

    # ------------------------------------------------------------------ reading what the legs need

    def postings(
        self, namespaces: Sequence[str], keys: Collection[int], *, max_df: int | None = None, shared: bool = False
    ) -> Mapping[str, Postings]:
        """Return the postings of ``keys`` in each namespace, pending memories included.

        ``shared`` leaves out keys that a single memory has; where they are many, that is most of the work.
        """
        wanted = np.unique(np.fromiter(keys, np.int64, len(keys)))
        limit = _NO_LIMIT if max_df is None else max_df
        parameters = {"namespaces": list(namespaces), "keys": wanted, "max_df": limit}
        totals: dict[str, tuple[int, int]] = {}
        pending: dict[str, list[tuple[int, int, bytes]]] = {}
        folded: dict[str, tuple[bytes, bytes]] = {}
        for what, namespace, n, length, heads, raw in self._rows(
            "postings_shared" if shared else "postings", parameters
        ):
            if what == 0:
                totals[namespace] = (n, length)
            elif what == 1:
                pending.setdefault(namespace, []).append((n, length, raw))
            else:
                folded[namespace] = (heads, raw)
        found = {}
        for namespace in namespaces:
            waiting = sorted(pending.get(namespace, []))
            met = pending_keys(waiting, wanted) if shared and waiting else wanted[:0]
            groups = unpack_postings(
                *folded.get(namespace, (b"", b"")), [] if shared else waiting, np.setdiff1d(wanted, met), limit
            )
            if len(met):  # a key of one folded memory and one pending one is shared after all
                whole = self.postings([namespace], met, max_df=max_df)[namespace]
                groups = join_groups(groups, (whole.keys, whole.sizes, whole.entries))
            found[namespace] = Postings(*totals.get(namespace, (0, 0)), *groups)
        return found

    def known_subjects(self, keys: Mapping[str, Collection[int]]) -> Mapping[str, set[int]]:
        """Return, for each namespace, which of the name keys some memory has as its subject."""
        known: dict[str, set[int]] = {}
        for namespace, wanted in keys.items():
            rows = self._rows("known_subjects", {"namespace": namespace, "keys": list(wanted)}) if wanted else []
            known[namespace] = {key for key, _ in rows if key is not None}
            for key, raw in rows:
                if key is None:
                    entries = np.frombuffer(raw, dtype=FORWARD)
                    known[namespace].update(entries["key"][entries["subject"] > 0].tolist())
            known[namespace] &= set(wanted)
        return known

    def forwards(self, namespaces: Sequence[str], ords: Sequence[int]) -> Forwards:
        """Return what each memory holds."""
        heads, raw = self._rows("forwards", _in(namespaces, ords))[0]
        return Forwards(*unpack_forwards(heads or b"", raw or b""))

    def names(self, namespaces: Sequence[str], keys: Collection[int]) -> Mapping[int, str]:
        """Return what people read for each key."""
        found = dict(self._rows("names", {"namespaces": list(namespaces), "keys": list(keys)}))
        missing = set(keys) - set(found)
        if missing:
            for raw, names in self._rows("names_pending", {"namespaces": list(namespaces)}):
                pairs = zip(np.frombuffer(raw, dtype=FORWARD)["key"].tolist(), names, strict=True)
                found |= {key: name for key, name in pairs if key in missing}
        return found

    def nearest(self, scope: Scope, vector: NDArray[np.float32], depth: int) -> Ranking:
        """Return the ``depth`` memories of highest cosine within scope, exactly."""
        excluded = 0 if scope.excluded is None else len(scope.excluded)
        parameters = {"namespaces": list(scope.namespaces), "vector": _vector(vector), "depth": depth + excluded}
        if scope.allowed is None:
            rows = self._rows("nearest", parameters)
        else:
            rows = self._rows("nearest_within", {**parameters, "ords": scope.allowed})
        if excluded:
            gone = set(scope.excluded.tolist()) if scope.excluded is not None else set()
            rows = [r for r in rows if r[0] not in gone]
        rows = rows[:depth]
        return Ranking(tuple(o for o, _ in rows), tuple(s for _, s in rows), len(rows))

    def similarities(
        self, namespaces: Sequence[str], ords: Sequence[int], vector: NDArray[np.float32]
    ) -> Mapping[int, float]:
        """Return the inner product of each memory's vector with ``vector``; memories without one are left out."""
        return dict(self._rows("similarities", {**_in(namespaces, ords), "vector": _vector(vector)}))

    def neighbours(self, namespaces: Sequence[str], ords: Sequence[int]) -> Sequence[tuple[int, int, bool]]:
        """Return (ord, its previous or next memory in the session, whether both have the same author)."""
        return self._rows("memory_neighbours", _in(namespaces, ords))

    def authors(self, namespaces: Sequence[str], keys: Collection[str]) -> tuple[bool, set[str]]:
        """Return whether any memory has an author, and which authors have one of the folded names ``keys``."""
        rows = self._rows("memory_authors", {"namespaces": list(namespaces), "keys": list(keys)})
        return bool(rows), {author for (author,) in rows if author is not None}

    def written_by(self, namespaces: Sequence[str], ords: Sequence[int], author: str) -> NDArray[np.int64]:
        """Return which of ``ords`` are by ``author``, ascending."""
        rows = self._rows("memory_written_by", {**_in(namespaces, ords), "author": author})
        return np.array([o for (o,) in rows], dtype=np.int64)

    def turns(self, namespaces: Sequence[str], ords: Sequence[int]) -> Sequence[Turn]:
        """Return the sessions that hold ``ords``, each in its order; none at all when that is too much to read."""
        rows = self._rows("memory_turns", {**_in(namespaces, ords), "limit": _MOST_TURNS + 1})
        return rows if len(rows) <= _MOST_TURNS else []

    def vectors(self, namespaces: Sequence[str], ords: Sequence[int]) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """Return the ords that have a vector, ascending, and their vectors, one a row."""
        heads, raw = self._rows("embedding_vectors", _in(namespaces, ords))[0]
        if heads is None:
            return np.zeros(0, dtype=np.int64), np.zeros((0, 0), dtype=np.float32)
        found = np.frombuffer(heads, dtype=">i8").astype(np.int64)
        rows = np.frombuffer(raw, dtype=np.uint8).reshape(len(found), -1)[:, 4:]  # each begins with its length
        return found, np.frombuffer(rows.tobytes(), dtype=">f4").reshape(len(found), -1).astype(np.float32)

    def missing_vectors(self, after: tuple[str, int], limit: int) -> Sequence[tuple[int, Memory]]:
        """Return (ord, memory) of indexed memories without a vector, by (namespace, ord), from ``after`` on."""
        parameters = {"namespace": after[0], "ord": after[1], "limit": limit}
        return [(r[-1], _memory(r)) for r in self._rows("embedding_missing", parameters)]

    def add_vectors(self, rows: Sequence[tuple[str, int, NDArray[np.float32]]]) -> None:
        """Store vectors of memories that have none; those forgotten meanwhile are left out."""
        parameters = {
            "namespaces": [n for n, _, _ in rows],
            "ords": [o for _, o, _ in rows],
            "vectors": [_vector(v) for _, _, v in rows],
        }
        self._run(lambda c: c.execute(_SQL["embedding_add"], parameters))

    def scrub(self) -> None:
        """Rewrite the tables so that no forgotten bytes are left in their files; takes as long as copying them."""
        self._run(lambda c: c.execute("VACUUM (FULL) memory, forward, pending, posting, embedding"))


def _configure(connection: Any) -> None:
    connection.execute(_SQL["session"])
    register_arrays(connection)
    connection.prepare_threshold = 3


def _set_timeout(connection: Any, seconds: float) -> None:
    if getattr(connection, "semmem_timeout", _UNLIMITED) != seconds:
        connection.execute("SELECT set_config('statement_timeout', %s, false)", (str(int(seconds * 1000)),))
        connection.semmem_timeout = seconds


def _in(namespaces: Sequence[str], ords: Collection[int]) -> dict[str, Any]:
    return {"namespaces": list(namespaces), "ords": np.fromiter(ords, np.int64, len(ords))}


def _vector(vector: NDArray[np.float32]) -> str:
    return "[" + ",".join(map(repr, vector.tolist())) + "]"


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


def _sentence(error: BaseException) -> str:
    return " ".join(str(error).split())[:300]
