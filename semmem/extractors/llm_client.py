"""Ask a chat endpoint for an answer, and keep answers."""

from __future__ import annotations

import sqlite3
from collections import OrderedDict
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any, TypeVar

from semmem.files import claimed, private_folder
from semmem.model.process.endpoint import Endpoint
from semmem.model.process.endpoint import EndpointFailed as ChatFailed
from semmem.model.process.forks import Lock

__all__ = ["Answers", "Chat", "ChatFailed"]

T = TypeVar("T")


class Chat:
    """A chat endpoint: ``parse`` is given the text of the first choice."""

    def __init__(self, url: str, key: str | None = None, **options: Any) -> None:
        self._endpoint = Endpoint(url, key, path="/chat/completions", named="llm", **options)

    def ask(
        self, body: Callable[[], Mapping[str, Any]], parse: Callable[[str], T], failed: Callable[[ChatFailed], bool]
    ) -> T:
        """Ask as ``Endpoint.ask`` does. Raises ChatFailed."""
        return self._endpoint.ask(body, lambda answer: parse(_content(answer)), failed)


def _content(answer: Any) -> str:
    """Return the text of the first choice."""
    choices = answer.get("choices") if isinstance(answer, Mapping) else None
    if not isinstance(choices, list):
        raise ChatFailed("wrong shape")
    if not choices:
        raise ChatFailed("empty")
    message = choices[0].get("message") if isinstance(choices[0], Mapping) else None
    if not isinstance(message, Mapping):
        raise ChatFailed("wrong shape")
    finish = choices[0].get("finish_reason")
    if message.get("refusal") or finish == "content_filter":
        raise ChatFailed("refusal", again=False)
    if finish == "length":
        raise ChatFailed("cut short", again=False)
    content = message.get("content")
    if content is not None and not isinstance(content, str):
        raise ChatFailed("wrong shape")
    if not content or not content.strip():
        raise ChatFailed("empty")
    return content


_MOST_IN_MEMORY = 10_000

_WAIT_S = 5.0

_TABLE = "CREATE TABLE IF NOT EXISTS answers (hash TEXT PRIMARY KEY, answer TEXT NOT NULL) WITHOUT ROWID"


class Answers:
    """A cache of answers by hash. ``failures`` counts how often its file could not be used; that loses no memory."""

    def __init__(self, path: str | Path | None = None) -> None:
        self._path = None if path is None else Path(path).expanduser()
        self._lock = Lock()
        self._cache: OrderedDict[str, str] = OrderedDict()
        self._has_table = False
        self.failures = 0

    def get(self, key: str) -> str | None:
        """Return the answer stored under ``key``, None where there is none."""
        with self._lock:
            if key in self._cache:
                self._cache.move_to_end(key)
                return self._cache[key]
            if self._path is None:
                return None
            try:
                with closing(self._open()) as file:
                    row = file.execute("SELECT answer FROM answers WHERE hash = ?", (key,)).fetchone()
            except (sqlite3.Error, OSError):
                self.failures += 1
                return None
        return row[0] if row and isinstance(row[0], str) else None

    def put(self, key: str, answer: str) -> None:
        """Store ``answer`` under ``key``, replacing an older one."""
        with self._lock:
            self._cache[key] = answer
            if len(self._cache) > _MOST_IN_MEMORY:
                self._cache.popitem(last=False)
            if self._path is None:
                return
            try:
                with closing(self._open()) as file, file:
                    file.execute("INSERT OR REPLACE INTO answers (hash, answer) VALUES (?, ?)", (key, answer))
            except (sqlite3.Error, OSError):
                self.failures += 1

    def _open(self) -> sqlite3.Connection:
        assert self._path is not None
        if not self._has_table:
            private_folder(self._path.parent)
            claimed(self._path)  # closed to other users: it holds names from people's memories
        file = sqlite3.connect(self._path, timeout=_WAIT_S)
        if not self._has_table:
            try:
                file.execute(_TABLE)
            except sqlite3.Error:
                file.close()
                raise
            self._has_table = True
        return file
