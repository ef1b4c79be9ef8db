"""Read and write whole tables as streams of bytes, for copying, backing up and restoring a PostgreSQL store.

The tables are read from the catalogue, so a table that a later schema adds needs no change here. Values travel in
COPY's binary format and are never parsed by Python, so a vector stays the same bit for bit. A digest is the sha256 of
the rows in the order of the primary key; row ids are kept, so a table and its copy have the same digest.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from psycopg import Copy, OperationalError, sql
from psycopg.errors import error_from_result
from psycopg.pq import ExecStatus
from psycopg.pq.abc import PGconn
from psycopg.waiting import Wait

from semmem.model.reports import NamespaceHash
from semmem.stores.postgres import nearest, row_security, vector_index
from semmem.stores.postgres.connection import sent
from semmem.stores.postgres.saved import key_of
from semmem.stores.postgres.typed import Connection, only
from semmem.stores.sql_files import statements

__all__ = [
    "END",
    "HEADER",
    "NOTE",
    "Digest",
    "Table",
    "analyze",
    "clear",
    "delete",
    "digest",
    "end_of_range",
    "hashes",
    "holds",
    "index_vectors",
    "indexed",
    "load",
    "lock",
    "read",
    "snapshot",
    "tables",
]

HEADER = b"PGCOPY\n\xff\r\n\0" + struct.pack("!ii", 0, 0)
END = struct.pack("!h", -1)
NOTE = "copy"
"""The key of ``meta`` under which a store records its source; it is not copied."""
_OWN_NOTES = [NOTE, "backup", "scrubs", "unshrunk"]
"""The keys of ``meta`` that are about one store: its source, its last backup, and the rewritings of its files.

So are those of its saved models.
"""
_SCHEMA = "semmem"
_VECTORS = "embedding"
_BLOCK = 1 << 18
_HASHED_TOGETHER = 128
"""Namespaces whose hashes are asked for in one round trip: those of a large one take the server seconds."""
_SQL = statements("postgres")
_HAS_TRANSACTION_TIMEOUT = 170_000
Key = Sequence[str] | None


@dataclass(frozen=True, slots=True)
class Table:
    """A table: the columns to copy, the key that cuts it into ranges, and its text columns.

    ``key`` is the primary key (``unique``), or (namespace, row id) where there is none; () makes the table one range.
    ``within`` are the namespaces that rows are read from and written to, where it is one; the key is within it then.
    """

    name: str
    columns: tuple[str, ...]
    key: tuple[str, ...]
    texts: frozenset[str]
    unique: bool
    within: tuple[str, str] | None = None

    def of(self, old: str, new: str) -> Table:
        """Return the part of the table that belongs to the namespace ``old``, to be written to ``new``."""
        return replace(self, key=tuple(c for c in self.key if c != "namespace"), within=(old, new))

    @property
    def values(self) -> sql.Composed:
        """Return what is read as SQL: the columns, or the new namespace, whose vectors are not in the index."""
        replacements: dict[str, sql.Composable] = {}
        if self.within is not None:
            replacements = {
                "namespace": sql.SQL("{}::text").format(sql.Literal(self.within[1])),
                "indexed": sql.SQL("false"),
            }
        return sql.SQL(", ").join(replacements.get(c, sql.Identifier(c)) for c in self.columns)

    @property
    def place(self) -> sql.Identifier:
        """Return the table with its schema, as SQL."""
        return sql.Identifier(_SCHEMA, self.name)

    @property
    def order(self) -> sql.Composed:
        """Return, as SQL, the ORDER BY that is the same on every server."""
        rest = () if self.unique else (c for c in self.columns if c not in self.key)
        return self._list((*self.key, *rest))

    def _list(self, columns: Iterable[str]) -> sql.Composed:
        return sql.SQL(", ").join(
            sql.SQL('{} COLLATE "C"').format(sql.Identifier(c)) if c in self.texts else sql.Identifier(c)
            for c in columns
        )

    def range(self, after: Key, upto: Key) -> sql.Composed:
        """Return the condition ``after`` < key <= ``upto`` as SQL; None is no bound."""
        parts: list[sql.Composable] = []
        for sign, bound in ((">", after), ("<=", upto)):
            if bound is not None:
                values = sql.SQL(", ").join(map(sql.Literal, bound))
                parts.append(sql.SQL(f"({{}}) {sign} ({{}})").format(self._list(self.key), values))
        if self.within is not None:
            parts.append(sql.SQL("namespace = {}").format(sql.Literal(self.within[0])))
        if self.name == "meta":
            own = "key <> ALL ({}) AND NOT starts_with(key, {})"
            parts.append(sql.SQL(own).format(sql.Literal(_OWN_NOTES), sql.Literal(key_of(""))))
        return sql.SQL(" AND ").join(parts or [sql.SQL("true")])


@dataclass(slots=True)
class Digest:
    """The number of rows read and the sha256 of their bytes."""

    rows: int = 0
    sha: Any = field(default_factory=hashlib.sha256)

    def as_json(self) -> dict[str, Any]:
        """Return the digest as JSON values."""
        return {"rows": self.rows, "sha256": self.sha.hexdigest()}


def tables(connection: Connection) -> list[Table]:
    """Return every table except the record of migrations; ``memory`` is last, so that half a copy shows none."""
    columns_by_table: dict[str, list[tuple[str, bool, int | None]]] = {}
    for name, *column in connection.execute(_SQL["move_columns"]):
        columns_by_table.setdefault(name, []).append((column[0], column[1], column[2]))
    out = []
    for name, columns in columns_by_table.items():
        names = tuple(column for column, _, _ in columns)
        key = tuple(c for _, c in sorted((place, column) for column, _, place in columns if place is not None))
        unique = bool(key)
        if not key and {"namespace", "ord"} <= set(names):
            key = ("namespace", "ord")
        out.append(Table(name, names, key, frozenset(column for column, text, _ in columns if text), unique))
    return sorted(out, key=lambda table: (table.name == "memory", table.name))


@contextmanager
def snapshot(connection: Connection) -> Iterator[None]:
    """Read one snapshot of the store inside the block, without writing."""
    old = connection.info.server_version < _HAS_TRANSACTION_TIMEOUT
    with connection.transaction():
        connection.execute(_SQL["move_snapshot_old" if old else "move_snapshot"])
        connection.execute(_SQL["embedding_stay"])
        yield


def _composed(statement: str, **parts: sql.Composable) -> sql.Composed:
    return sql.SQL(_SQL[statement]).format(**parts)


def _names(columns: Iterable[str]) -> sql.Composed:
    return sql.SQL(", ").join(map(sql.Identifier, columns))


def _places(all: Iterable[Table]) -> sql.Composed:
    return sql.SQL(", ").join(table.place for table in all)


def end_of_range(connection: Connection, table: Table, after: Key, size: int) -> tuple[str, ...] | None:
    """Return the key of the row that is ``size`` rows after ``after``, as text; None where the table ends before."""
    if not table.key:
        return None
    keys = sql.SQL(", ").join(  # under other names, by which the rows are not ordered
        sql.SQL("{}::text AS {}").format(sql.Identifier(c), sql.Identifier(f"{c}_text")) for c in table.key
    )
    row = connection.execute(
        _composed(
            "move_end",
            keys=keys,
            table=table.place,
            range=table.range(after, None),
            order=table._list(table.key),
            skip=sql.Literal(size - 1),
        )
    ).fetchone()
    return None if row is None else tuple(row)


def read(
    connection: Connection, table: Table, after: Key = None, upto: Key = None, *, digests: Sequence[Digest] = ()
) -> Generator[bytes, None, None]:
    """Yield the rows of a range in blocks of about a quarter of a megabyte, without COPY's header and end."""
    statement = _composed(
        "move_read", columns=table.values, table=table.place, range=table.range(after, upto), order=table.order
    )
    cursor = connection.cursor()
    buffer = bytearray()
    start = len(HEADER)
    with cursor.copy(statement):
        more = True
        while more:
            more = connection.wait(_gather(connection.pgconn, buffer))
            block = bytes(buffer[start : -len(END)])  # the last two bytes may be the end
            del buffer[: -len(END)]
            start = 0
            for one in digests:
                one.sha.update(block)
            if block:
                yield block
        rows = _finish(connection.pgconn)
    for one in digests:
        one.rows += rows


def _gather(pgconn: PGconn, buffer: bytearray) -> Generator[Wait, int, bool]:
    """Read into ``buffer`` until it holds a block; return whether more may follow.

    Every row is a message of its own, and psycopg's ``read`` waits for each separately, which takes ten times as long
    as all the rest.
    """
    while len(buffer) < _BLOCK:
        size, piece = pgconn.get_copy_data(1)
        if size > 0:
            buffer += piece
        elif size < 0:
            return False
        else:
            while not (yield Wait.R):
                pass
            pgconn.consume_input()
    return True


def _finish(pgconn: PGconn) -> int:
    """Read the end of a COPY from the server; return its number of rows."""
    first = result = pgconn.get_result()
    while result is not None:
        result = pgconn.get_result()
    if first is None:
        raise OperationalError("the connection was lost")
    if first.status != ExecStatus.COMMAND_OK:
        raise error_from_result(first)
    return int(first.command_tuples or 0)


def digest(connection: Connection, table: Table, after: Key = None, upto: Key = None, *also: Digest) -> Digest:
    """Return the digest of a range; ``also`` are digests that are continued with it."""
    result = Digest()
    for _ in read(connection, table, after, upto, digests=(result, *also)):
        pass
    return result


def load(connection: Connection, table: Table, blocks: Generator[bytes, None, None]) -> int:
    """Write the rows that ``read`` yielded; return how many."""
    cursor, names = connection.cursor(), _names(table.columns)
    with closing(blocks), row_security.to_copy(connection, table.name, names) as place:
        _write(cursor.copy(_composed("move_write", table=place, columns=names)), blocks)
    return int(cursor.rowcount)


def _write(copying: AbstractContextManager[Copy], blocks: Iterable[bytes]) -> None:
    with copying as copy:
        copy.write(HEADER)
        for block in blocks:
            copy.write(block)
        copy.write(END)


def holds(connection: Connection, table: Table, after: Key, upto: Key) -> bool:
    """Return whether a range has any row."""
    return bool(only(connection.execute(_composed("move_holds", table=table.place, range=table.range(after, upto))))[0])


def delete(connection: Connection, table: Table, after: Key, upto: Key) -> None:
    """Remove a range."""
    connection.execute(_composed("move_delete", table=table.place, range=table.range(after, upto)))


def lock(connection: Connection, all: Sequence[Table]) -> None:
    """Let nobody else read or write the tables until the commit, before they are found to be empty.

    Those where writers begin come first, so that a writer and this do not wait for each other.
    """
    ordered = sorted(all, key=lambda table: (table.name not in ("namespace", "memory"), table.name))
    connection.execute(_composed("move_lock", tables=_places(ordered)))


def clear(connection: Connection, all: Sequence[Table]) -> None:
    """Remove what is left in an empty store, its vector index too."""
    for table in (_VECTORS, _VECTORS + "_next"):
        connection.execute(_SQL["embedding_index_drop"].format(table=table))
    connection.execute(_composed("move_clear", tables=_places(all)))


def analyze(connection: Connection, all: Sequence[Table]) -> None:
    """Update the planner's statistics of the tables."""
    connection.execute(_composed("move_analyze", tables=_places(all)))


def indexed(connection: Connection) -> bool:
    """Return whether a complete vector index exists."""
    row = connection.execute(_SQL["embedding_index_ready"].format(table=_VECTORS)).fetchone()
    return bool(row and row[0])


def index_vectors(connection: Connection) -> bool:
    """Build the vector index over the rows marked as indexed, in a transaction; False where there are no vectors."""
    row = connection.execute(_SQL["meta_get"], {"key": "embedder"}).fetchone()
    if row is None:
        return False
    count = only(connection.execute(_SQL["embedding_in_index_count"].format(table=_VECTORS)))[0]
    dimensions = int(row[0]["dimensions"])
    connection.execute(
        f"SET LOCAL maintenance_work_mem TO '{vector_index.build_memory(connection, count, dimensions)}'"
    )
    connection.execute(_SQL["embedding_index_drop"].format(table=_VECTORS))
    statement = nearest.with_index("embedding_index", dimensions, _VECTORS)
    connection.execute(statement.replace(" CONCURRENTLY", ""))  # nobody else uses a store that is being filled
    return True


def hashes(connection: Connection, namespace: str | None = None) -> dict[str, NamespaceHash]:
    """Return counts and hashes of one namespace, or of each that holds memories, by name."""
    names = [namespace] if namespace is not None else [n for (n,) in connection.execute(_SQL["content_namespaces"])]
    by_name = {}
    for start in range(0, len(names), _HASHED_TOGETHER):
        some: list[tuple[str, dict[str, Any]]] = [(name, {}) for name in names[start : start + _HASHED_TOGETHER]]
        graphs = sent(connection, "graph_hash", some)
        for name, cursor in sent(connection, "content_hash", some).items():
            memories, parts, vectors, content, vector = only(cursor)
            by_name[name] = NamespaceHash(memories, parts, vectors, content, vector, only(graphs[name])[0])
    return by_name
