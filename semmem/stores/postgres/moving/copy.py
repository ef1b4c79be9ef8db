"""Copy a PostgreSQL store into another one: bit for bit, resumable, and checked by counts and hashes.

The source is read in one snapshot, table by table, in ranges of the primary key. COPY streams each range from one
server to the other, in one transaction of the target that also records the progress. A later run that finds such a
record compares the ranges in the target with the source as it is now and sends only those that differ, as rsync does
with the blocks of a file. So it continues where an earlier one stopped, and also brings a finished copy up to date.

Whoever writes to the target takes a sequence number there. The record keeps the numbers that the copy itself brought,
and each transaction of the copy compares them first, so that no range is sent over what somebody has remembered.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray
from psycopg.types.json import Jsonb

from semmem.model.errors import InvalidInput, StoreError, StoreUnavailable
from semmem.model.reports import CopyReport, counted
from semmem.stores.postgres.connection import Pooled
from semmem.stores.postgres.moving import tables as postgres_tables
from semmem.stores.postgres.moving.tables import NOTE, Digest, Table
from semmem.stores.postgres.saved import erase
from semmem.stores.postgres.typed import Connection, only
from semmem.stores.sql_files import statements

__all__ = ["BATCH", "alone", "copy"]

BATCH = 10_000
"""Rows per range; each range is one transaction of the target."""
_PATIENCE_S = 5.0
"""The session of a killed copy may live on for a moment."""
_ACCESSES = "access"
"""Recalls count accesses in this table, so it is not compared: a copy that was recalled from has not changed."""
_SQL = statements("postgres")


def copy(source: Pooled, target: Pooled, *, progress: Callable[[int], None] | None = None) -> CopyReport:
    """Copy all of ``source`` into ``target``, which must be empty or an unchanged copy of the same source.

    Both stay open. ``progress`` is called after each range with the number of rows done. Raises InvalidInput for a
    target that cannot be used or that somebody writes to before the end, StoreUnavailable when a server fails (the next
    run continues), and StoreError when the copy differs from its source.
    """
    started = time.monotonic()
    with _going_on(), source.lasting() as one, target.lasting() as two:
        identity = database_id(one)
        if identity == database_id(two):
            if _started(one) == _started(two):
                raise InvalidInput("Both URLs name the same store; there is nothing to copy.")
            raise InvalidInput(
                "The target was made by copying the files of the source's server, so it is not empty, and cannot "
                "be distinguished from the source later; copy into a store that was created on its own."
            )
        with alone(two):
            job = _Copy(one, two, identity, progress)
            with postgres_tables.snapshot(one):
                job.run()
                before = _row_ids(one)
            now = _row_ids(one)
    return CopyReport(
        memories=len(before),
        tables={name: digest.rows for name, digest in job.digests.items()},
        namespaces=job.namespaces,
        found=job.present_rows,
        came=len(np.setdiff1d(now, before)),
        went=len(np.setdiff1d(before, now)),
        indexed=job.indexed,
        seconds=time.monotonic() - started,
    )


@contextmanager
def _going_on() -> Iterator[None]:
    """Say, where a server fails, that the next run continues."""
    try:
        yield
    except StoreUnavailable as error:
        raise StoreUnavailable(f"The copy stopped; the next one continues from there: {error.message}") from error


@contextmanager
def alone(connection: Connection) -> Iterator[None]:
    """Lock out other copies and restores into this store. Raises StoreError while another one runs."""
    end = time.monotonic() + _PATIENCE_S
    while not only(connection.execute(_SQL["move_alone"]))[0]:
        if time.monotonic() > end:
            raise StoreError("Another copy or restore is writing to this store; wait until it has finished.")
        time.sleep(0.1)
    try:
        yield
    finally:
        if not connection.closed and not connection.broken:
            connection.execute(_SQL["move_done"])


def database_id(connection: Connection) -> str:
    """Return the id of the database of a connection."""
    return str(only(connection.execute(_SQL["database_id"]))[0])


def _started(connection: Connection) -> datetime:
    started: datetime = only(connection.execute(_SQL["server_started"]))[0]
    return started


def _row_ids(connection: Connection) -> NDArray[np.int64]:
    raw = only(connection.execute(_SQL["move_row_ids"], binary=True))[0]
    return np.frombuffer(raw, dtype=">i8")


class _Copy:
    """One run: ``digests`` are those of the source's tables, ``present_rows`` counts the rows already there."""

    def __init__(self, one: Connection, two: Connection, identity: str, progress: Callable[[int], None] | None) -> None:
        self._one, self._two = one, two
        self._progress = progress
        self._note: dict[str, Any] = {"source": identity, "run": time.time_ns(), "finished": None, "tables": {}}
        self._again = False
        self.digests: dict[str, Digest] = {}
        self.namespaces: Mapping[str, Any] = {}
        self.present_rows = 0
        self.indexed = False

    def run(self) -> None:
        """Copy, then check the copy."""
        tables = postgres_tables.tables(self._one)
        target_tables = postgres_tables.tables(self._two)
        if tables != target_tables:  # another semmem migrated one of them meanwhile
            raise StoreError("The two stores have different schemas; upgrade semmem and run this again.")
        self._take(target_tables)
        for table in tables:
            self.digests[table.name] = Digest()
            self._table(table)
        postgres_tables.analyze(self._two, tables)
        self._index()
        self._prove(tables)
        self._note |= {
            "finished": _together({name: digest.as_json() for name, digest in self.digests.items()}),
            "tables": {},
            "numbers": None,
        }
        with self._two.transaction():
            erase(self._two)  # what somebody saved meanwhile may hold what was erased in the source
            self._write_note()

    def _take(self, tables: list[Table]) -> None:
        """Decide how to fill the target, and record in it which source it is a copy of."""
        rows = self._two.execute(_SQL["meta_get"], {"key": NOTE}).fetchall()
        note = rows[0][0] if rows else {}
        numbers: dict[str, Any] | None = self._numbers()
        if note.get("source") == self._note["source"] and note.get("finished") is None:
            self._again = True
            numbers = note.get("numbers")
        elif any(self._held()) and note.get("source") == self._note["source"]:
            digests = {table.name: postgres_tables.digest(self._two, table).as_json() for table in tables}
            if _together(digests) != note["finished"]:
                raise InvalidInput(
                    "The target is a finished copy of this source that has changed since, so copying would undo these "
                    "changes; copy into an empty store."
                )
            self._again = True
        else:
            self._check_empty(note)
        with self._two.transaction():
            if not self._again:
                postgres_tables.lock(self._two, tables)
                self._check_empty(note)  # again: somebody may have remembered something meanwhile
            erase(self._two)
            if not self._again:
                postgres_tables.clear(self._two, tables)
                numbers = self._numbers()
            self._note["numbers"] = numbers
            self._check_unwritten()
            self._write_note()

    def _check_empty(self, note: Mapping[str, Any]) -> None:
        """Raise InvalidInput where the target holds memories."""
        memories, forgotten = self._held()
        if memories or forgotten:
            whose = "the unfinished copy of another store" if note and note.get("finished") is None else "not empty"
            what = f"{memories:,} memories" if memories else f"{forgotten:,} forgotten memories that can be taken back"
            raise InvalidInput(f"The target is {whose} ({what}); copy into an empty store.")

    def _numbers(self) -> dict[str, Any]:
        """Return the sum of the sequence numbers of the target's namespaces, and a hash of all."""
        changes, hashed = only(self._two.execute(_SQL["move_numbered"]))
        return {"changes": changes, "hash": hashed}

    def _check_unwritten(self) -> None:
        """Let nobody write to the target until the commit. Raises InvalidInput where somebody has done so."""
        self._two.execute(_SQL["move_unwritten"])
        now, brought = self._numbers(), self._note["numbers"] or {"changes": 0}
        if now != brought:
            since = counted(now["changes"] - brought["changes"], "change")
            raise InvalidInput(
                f"The target is an unfinished copy of this source, and somebody has written to it since ({since}), so "
                "going on would undo these changes; copy into an empty store."
            )

    def _held(self) -> tuple[int, int]:
        """Return how many memories the target holds, and how many forgotten ones that can be taken back."""
        memories, forgotten = (only(self._two.execute(_SQL[name]))[0] for name in ("move_size", "move_kept"))
        return memories, forgotten

    def _write_note(self) -> None:
        self._two.execute(_SQL["meta_set"], {"key": NOTE, "value": Jsonb(self._note)})

    def _table(self, table: Table) -> None:
        after: tuple[str, ...] | None = None
        while True:
            upto = postgres_tables.end_of_range(self._one, table, after, BATCH)
            self._range(table, after, upto)
            if self._progress is not None:
                self._progress(sum(digest.rows for digest in self.digests.values()))
            if upto is None:
                return
            after = upto

    def _range(self, table: Table, after: tuple[str, ...] | None, upto: tuple[str, ...] | None) -> None:
        """Send one range; the last one has no upper bound, so that surplus rows of the target are removed."""
        digests = [self.digests[table.name]]
        has_rows = self._again and postgres_tables.holds(self._two, table, after, upto)
        if has_rows:
            source_digest = postgres_tables.digest(self._one, table, after, upto, *digests)
            if postgres_tables.digest(self._two, table, after, upto).as_json() == source_digest.as_json():
                self.present_rows += source_digest.rows
                return
            digests = []
        with self._two.transaction():
            self._check_unwritten()
            if has_rows:
                postgres_tables.delete(self._two, table, after, upto)
            postgres_tables.load(self._two, table, postgres_tables.read(self._one, table, after, upto, digests=digests))
            self._note["tables"][table.name] = upto
            self._note["numbers"] = self._numbers()
            self._write_note()

    def _index(self) -> None:
        self.indexed = postgres_tables.indexed(self._one)
        if self.indexed and not postgres_tables.indexed(self._two):
            with self._two.transaction():
                postgres_tables.index_vectors(self._two)

    def _prove(self, tables: list[Table]) -> None:
        """Read the whole copy and compare it with the source. Raises StoreError where they differ."""
        with self._two.transaction():
            self._check_unwritten()
        for table in tables:
            source_digest, target_digest = self.digests[table.name], postgres_tables.digest(self._two, table)
            if source_digest.as_json() != target_digest.as_json():
                raise StoreError(
                    f"The copy differs from its source in the table {table.name} ({target_digest.rows:,} of "
                    f"{source_digest.rows:,} rows); run the same command again to mend it, while nobody writes to the "
                    "target."
                )
        self.namespaces = postgres_tables.hashes(self._one)
        hashes = postgres_tables.hashes(self._two)
        for name in sorted(self.namespaces.keys() | hashes.keys()):
            if self.namespaces.get(name) != hashes.get(name):
                raise StoreError(f"The copy differs from its source in the namespace {name!r}; run the command again.")


def _together(digests: Mapping[str, Mapping[str, Any]]) -> str:
    compared = {name: digest for name, digest in digests.items() if name != _ACCESSES}
    lines = [f"{name} {digest['rows']} {digest['sha256']}\n" for name, digest in sorted(compared.items())]
    return hashlib.sha256("".join(lines).encode()).hexdigest()
