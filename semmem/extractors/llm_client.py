"""Ask an OpenAI-compatible chat endpoint with the standard library: bounded in time, size and attempts.

Redirects are not followed, so that the key goes only to the host that it was given for; proxies are not used.
"""

from __future__ import annotations

import contextlib
import json
import socket
import sqlite3
import ssl
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from contextlib import closing
from email.utils import parsedate_to_datetime
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection, IncompleteRead
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

from semmem.files import claimed, private_folder
from semmem.model.errors import InvalidInput
from semmem.model.process.forks import Lock

__all__ = ["MAX_ANSWER_BYTES", "Answers", "Chat", "ChatFailed"]

MAX_ANSWER_BYTES = 1_000_000

_PATH = "/chat/completions"

T = TypeVar("T")


class ChatFailed(Exception):
    """The endpoint gave no usable answer; ``reason`` is a few words, ``again`` says whether another try may help.

    ``after`` is the pause in seconds that the endpoint asked for, ``status`` its HTTP status (0: no answer).
    """

    def __init__(self, reason: str, *, again: bool = True, after: float | None = None, status: int = 0) -> None:
        super().__init__(reason)
        self.reason = reason
        self.again = again
        self.after = after
        self.status = status


class Chat:
    """A chat endpoint, such as ``http://localhost:11434/v1``; ``ask`` may be called from any thread.

    Each attempt has ``timeout_s`` seconds in all, from the connection to the last byte. The pause before the next
    attempt is ``backoff_s``, then twice that, and so on, or what Retry-After says, but never more than
    ``longest_wait_s``.
    """

    def __init__(
        self,
        url: str,
        key: str | None = None,
        *,
        timeout_s: float = 30.0,
        attempts: int = 3,
        backoff_s: float = 0.5,
        longest_wait_s: float = 20.0,
        wait: Callable[[float], None] = time.sleep,
    ) -> None:
        try:
            parts = urlsplit(url)
            port = parts.port
        except ValueError:
            raise InvalidInput(f"llm_url {url!r} cannot be read; give one like http://localhost:11434/v1.") from None
        if not (url.isascii() and url.isprintable()) or " " in url:
            raise InvalidInput(f"llm_url {url!r} holds a space or a character that must be percent-encoded.")
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise InvalidInput(f"llm_url must begin with http:// or https:// and name a host, not {url!r}.")
        if parts.username is not None or parts.password is not None:
            raise InvalidInput("llm_url must not hold a name or password; give the key as llm_key.")
        if key is not None and not (key.isascii() and key.isprintable() and key.strip()):
            raise InvalidInput("llm_key must be printable ASCII on one line; check where it was copied from.")
        path = parts.path.rstrip("/")
        self._path = (path if path.endswith(_PATH) else path + _PATH) + (f"?{parts.query}" if parts.query else "")
        self._kind = HTTPSConnection if parts.scheme == "https" else HTTPConnection
        self._host, self._port = parts.hostname, port
        json_type = "application/json"
        self._headers = {"Content-Type": json_type, "Accept": json_type, "Accept-Encoding": "identity"}
        if key is not None:
            self._headers["Authorization"] = f"Bearer {key.strip()}"
        self._timeout_s, self._attempts = timeout_s, attempts
        self._backoff_s, self._longest_wait_s, self._wait = backoff_s, longest_wait_s, wait

    def ask(
        self,
        body: Callable[[], Mapping[str, Any]],
        parse: Callable[[str], T],
        failed: Callable[[ChatFailed], bool],
    ) -> T:
        """Return the result of ``parse`` for the answer; ``body`` is called for each attempt.

        ``failed`` is called with each failed attempt; it returns whether ``body`` has changed, so that the next attempt
        is made at once. Raises ChatFailed when the attempts are used up or when no attempt would help.
        """
        for attempt in range(1, self._attempts + 1):
            try:
                return parse(_content(self._post(json.dumps(body()).encode())))
            except ChatFailed as error:
                changed = failed(error)
                if attempt == self._attempts or not (error.again or changed):
                    raise
                if changed:
                    continue
                pause = self._backoff_s * 2 ** (attempt - 1) if error.after is None else error.after
                if pause > self._longest_wait_s:
                    raise
                self._wait(pause)
        raise ChatFailed("no attempt allowed", again=False)

    def _post(self, body: bytes) -> Any:
        """Return the JSON that the endpoint answers to ``body``."""
        late = threading.Event()
        connection = self._kind(self._host, self._port, timeout=self._timeout_s)
        timer: threading.Timer | None = None
        try:
            connection.connect()
            wire = connection.sock

            def cut() -> None:
                late.set()
                with contextlib.suppress(OSError):
                    wire.shutdown(socket.SHUT_RDWR)

            # A socket's timeout starts anew with each byte, so a slow answer would never end.
            timer = threading.Timer(self._timeout_s, cut)
            timer.daemon = True
            timer.start()
            connection.request("POST", self._path, body, self._headers)
            with connection.getresponse() as response:
                return _json(response, late)
        except TimeoutError:
            raise ChatFailed("timeout") from None
        except ConnectionRefusedError:
            raise ChatFailed("connection refused") from None
        except (OSError, HTTPException, UnicodeError) as error:
            if late.is_set():
                raise ChatFailed("timeout") from None
            raise ChatFailed(_sort(error)) from None
        finally:
            if timer is not None:
                timer.cancel()
            connection.close()


def _sort(error: Exception) -> str:
    if isinstance(error, socket.gaierror | UnicodeError):
        return "unknown host"
    if isinstance(error, ssl.SSLError):
        return "no secure connection"
    return "truncated" if isinstance(error, IncompleteRead) else "connection lost"


def _json(response: HTTPResponse, late: threading.Event) -> Any:
    status = response.status
    if status != 200:
        again = status in (408, 409, 425, 429) or status >= 500
        raise ChatFailed(f"status {status}", again=again, after=_retry_after(response), status=status)
    kind = response.headers.get_content_type()
    if kind != "application/json" and not kind.endswith("+json"):
        raise ChatFailed("content type")
    declared = response.length
    raw = response.read(MAX_ANSWER_BYTES + 1)
    if len(raw) > MAX_ANSWER_BYTES:
        raise ChatFailed("too large", again=False)
    if late.is_set():
        raise ChatFailed("timeout")
    if declared is not None and len(raw) < declared:
        raise ChatFailed("truncated")
    try:
        return json.loads(raw)
    except (ValueError, RecursionError):
        raise ChatFailed("not JSON") from None


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


def _retry_after(response: HTTPResponse) -> float | None:
    """Return the seconds of a Retry-After header, which may also be a date; None where it cannot be read."""
    value = (response.getheader("Retry-After") or "").strip()
    if value.isascii() and value.isdigit():
        return float(value[:9])
    try:
        return max(0.0, parsedate_to_datetime(value).timestamp() - time.time())
    except (ValueError, TypeError, OverflowError):
        return None


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

    def get(self, at: str) -> str | None:
        """Return the answer stored under ``at``, None where there is none."""
        with self._lock:
            if at in self._cache:
                self._cache.move_to_end(at)
                return self._cache[at]
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
        """Store ``answer`` under ``at``, replacing an older one."""
        with self._lock:
            self._cache[at] = answer
            if len(self._cache) > _MOST_IN_MEMORY:
                self._cache.popitem(last=False)
            if self._path is None:
                return
            try:
                with closing(self._open()) as file, file:
                    file.execute("INSERT OR REPLACE INTO answers (hash, answer) VALUES (?, ?)", (at, answer))
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
