"""What SQLite says when it cannot go on, as one sentence for people."""

from __future__ import annotations

import sqlite3

from semmem.model.errors import InvalidInput, SemmemError, StoreClosed, StoreError, StoreUnavailable

__all__ = ["is_busy", "sentence"]


def is_busy(error: BaseException) -> bool:
    """Return whether another connection holds a lock, so that the same may succeed a moment later."""
    return _code(error) in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


def sentence(error: sqlite3.Error, place: str) -> SemmemError | None:
    """Return the error to raise instead of ``error``, about the file ``place``; None where it says enough itself."""
    code = _code(error)
    if code == sqlite3.SQLITE_NOTADB:
        return InvalidInput(f"{place} is no SQLite database; name another file, or a new one, after sqlite:.")
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return StoreUnavailable(f"Another program keeps a lock on {place}; nothing was changed, try again later.")
    if code == sqlite3.SQLITE_FULL:
        return StoreUnavailable(f"The disk of {place} is full; nothing of this was stored, make room and try again.")
    if code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH):
        return StoreUnavailable(f"{place} may not be written; see to the rights of the file and of its folder.")
    if code == sqlite3.SQLITE_CANTOPEN:
        return StoreUnavailable(f"{place} cannot be opened; see to the rights of the file and of its folder.")
    if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_FORMAT):
        return StoreUnavailable(f"{place} is damaged ({error}); restore it from a backup.")
    if code == sqlite3.SQLITE_IOERR:
        return StoreUnavailable(f"{place} cannot be read or written ({error}); look at its disk.")
    if code == sqlite3.SQLITE_NOMEM:
        return StoreUnavailable(f"There is not enough memory for SQLite to go on with {place}.")
    if "no such module: fts5" in str(error):
        return StoreError("This Python's SQLite has no FTS5, which a SQLite store needs; use embedded: instead.")
    if isinstance(error, sqlite3.ProgrammingError) and "closed" in str(error):
        return StoreClosed()
    if code == sqlite3.SQLITE_INTERRUPT or not isinstance(error, sqlite3.OperationalError):
        return None
    return StoreError(f"SQLite cannot do this with {place}: {error}.")


def _code(error: BaseException) -> int:
    """Return SQLite's primary result code, 0 for an error of Python's own module."""
    return int(getattr(error, "sqlite_errorcode", 0)) & 0xFF
