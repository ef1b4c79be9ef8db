"""Answers kept by hash, so that no text is sent twice: in memory, or in a small SQLite file that processes share."""

from __future__ import annotations

import sqlite3
import threading
from collections import OrderedDict
from contextlib import closing
from pathlib import Path

from semmem.files import claimed

__all__ = ["Answers"]

_MOST_IN_MEMORY = 10_000
_WAIT_S = 5.0
_TABLE = "CREATE TABLE IF NOT EXISTS answers (hash TEXT PRIMARY KEY, answer TEXT NOT NULL) WITHOUT ROWID"


class Answers:
    """A map from a hash to an answer. ``failures`` counts when its file could not be used; no memory is lost by it."""

    def __init__(self, path: str | Path | None = None) -> None:
        self._path = None if path is None else Path(path).expanduser()
        self._lock = threading.Lock()
        self._kept: OrderedDict[str, str] = OrderedDict()
        self._made = False
        self.failures = 0

    def get(self, at: str) -> str | None:
        """Return the answer kept under ``at``, None where there is none."""
        with self._lock:
            if at in self._kept:
                self._kept.move_to_end(at)
                return self._kept[at]
            if self._path is None:
                return None
            try:
                with closing(self._open()) as file:
                    row = file.execute("SELECT answer FROM answers WHERE hash = ?", (at,)).fetchone()
            except (sqlite3.Error, OSError):
                self.failures += 1
                return None
        return row[0] if row and isinstance(row[0], str) else None

    def put(self, at: str, answer: str) -> None:
        """Keep ``answer`` under ``at``, in place of an older one."""
        with self._lock:
            self._kept[at] = answer
            if len(self._kept) > _MOST_IN_MEMORY:
                self._kept.popitem(last=False)
            if self._path is None:
                return
            try:
                with closing(self._open()) as file, file:
                    file.execute("INSERT OR REPLACE INTO answers (hash, answer) VALUES (?, ?)", (at, answer))
            except (sqlite3.Error, OSError):
                self.failures += 1

    def _open(self) -> sqlite3.Connection:
        assert self._path is not None
        if not self._made:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            claimed(self._path)  # for its owner alone: it holds names out of people's memories
        file = sqlite3.connect(self._path, timeout=_WAIT_S)
        if not self._made:
            try:
                file.execute(_TABLE)
            except sqlite3.Error:
                file.close()
                raise
            self._made = True
        return file
