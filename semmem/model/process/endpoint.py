"""Ask an OpenAI-compatible endpoint with the standard library: bounded in time, size and attempts.

Redirects are not followed, so that texts and the key go only to the host that the user named; proxies are not used.
"""

from __future__ import annotations

import contextlib
import json
import socket
import ssl
import threading
import time
from collections.abc import Callable, Mapping
from email.utils import parsedate_to_datetime
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection, IncompleteRead
from typing import Any, TypeVar
from urllib.parse import urlsplit

from semmem.model.errors import InvalidInput

__all__ = ["MAX_ANSWER_BYTES", "Endpoint", "EndpointFailed", "sendable"]

MAX_ANSWER_BYTES = 1_000_000

T = TypeVar("T")


class EndpointFailed(Exception):
    """The endpoint gave no usable answer; ``reason`` is a few words, ``again`` says whether another try may help.

    ``after`` is the pause in seconds that the endpoint asked for, ``status`` its HTTP status (0: no answer).
    """

    def __init__(self, reason: str, *, again: bool = True, after: float | None = None, status: int = 0) -> None:
        super().__init__(reason)
        self.reason = reason
        self.again = again
        self.after = after
        self.status = status

    def hint(self, named: str) -> str:
        """Return which setting to look at, behind a semicolon; its name begins with ``named``."""
        if self.status in (401, 403):
            return f"; check {named}_key"
        if self.status == 404:
            return f"; check {named}_url and {named}_model"
        return f"; a redirect is not followed, set {named}_url to its target" if 300 <= self.status < 400 else ""


class Endpoint:
    """An endpoint such as ``http://localhost:11434/v1``, asked at ``path`` below it, from any thread.

    ``named`` begins the names of its settings in errors: ``llm`` or ``embedder``.

    Each attempt has ``timeout_s`` seconds in all, from the connection to the last byte. The pause before the next
    attempt is ``backoff_s``, then twice that, and so on, or what Retry-After says, but never more than
    ``longest_wait_s``.
    """

    def __init__(
        self,
        url: str,
        key: str | None = None,
        *,
        path: str,
        named: str,
        most_bytes: int = MAX_ANSWER_BYTES,
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
            raise InvalidInput(
                f"{named}_url {url!r} cannot be read; give one like http://localhost:11434/v1."
            ) from None
        if not (url.isascii() and url.isprintable()) or " " in url:
            raise InvalidInput(f"{named}_url {url!r} holds a space or a character that must be percent-encoded.")
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise InvalidInput(f"{named}_url must begin with http:// or https:// and name a host, not {url!r}.")
        if parts.username is not None or parts.password is not None:
            raise InvalidInput(f"{named}_url must not hold a name or password; give the key as {named}_key.")
        if key is not None and not (key.isascii() and key.isprintable() and key.strip()):
            raise InvalidInput(f"{named}_key must be printable ASCII on one line; check where it was copied from.")
        base = parts.path.rstrip("/")
        self._path = (base if base.endswith(path) else base + path) + (f"?{parts.query}" if parts.query else "")
        self._most_bytes = most_bytes
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
        parse: Callable[[Any], T],
        failed: Callable[[EndpointFailed], bool],
    ) -> T:
        """Return the result of ``parse`` for the answer; ``body`` is called for each attempt.

        ``failed`` is called with each failed attempt; it returns whether ``body`` has changed, so that the next attempt
        is made at once. Raises EndpointFailed when the attempts are used up or when no attempt would help.
        """
        for attempt in range(1, self._attempts + 1):
            try:
                return parse(self._answer("POST", json.dumps(body()).encode()))
            except EndpointFailed as error:
                changed = failed(error)
                if attempt == self._attempts or not (error.again or changed):
                    raise
                if changed:
                    continue
                pause = self._backoff_s * 2 ** (attempt - 1) if error.after is None else error.after
                if pause > self._longest_wait_s:
                    raise
                self._wait(pause)
        raise EndpointFailed("no attempt allowed", again=False)

    def get(self) -> Any:
        """Return the JSON that stands at the endpoint, by one attempt. Raises EndpointFailed."""
        return self._answer("GET", None)

    def _answer(self, method: str, body: bytes | None) -> Any:
        """Return the JSON that the endpoint answers."""
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
            connection.request(method, self._path, body, self._headers)
            with connection.getresponse() as response:
                return _json(response, late, self._most_bytes)
        except TimeoutError:
            raise EndpointFailed("timeout") from None
        except ConnectionRefusedError:
            raise EndpointFailed("connection refused") from None
        except (OSError, HTTPException, UnicodeError) as error:
            if late.is_set():
                raise EndpointFailed("timeout") from None
            raise EndpointFailed(_sort(error)) from None
        finally:
            if timer is not None:
                timer.cancel()
            connection.close()


def sendable(text: str) -> str:
    """Return a text as an endpoint takes it: many refuse an empty one, and a lone surrogate cannot be sent."""
    return text.encode("utf-8", "replace").decode() or " "


def _sort(error: Exception) -> str:
    if isinstance(error, socket.gaierror | UnicodeError):
        return "unknown host"
    if isinstance(error, ssl.SSLError):
        return "no secure connection"
    return "truncated" if isinstance(error, IncompleteRead) else "connection lost"


def _json(response: HTTPResponse, late: threading.Event, most_bytes: int) -> Any:
    status = response.status
    if status != 200:
        again = status in (408, 409, 425, 429) or status >= 500
        raise EndpointFailed(f"status {status}", again=again, after=_retry_after(response), status=status)
    kind = response.headers.get_content_type()
    if kind != "application/json" and not kind.endswith("+json"):
        raise EndpointFailed("content type")
    declared = response.length
    raw = response.read(most_bytes + 1)
    if len(raw) > most_bytes:
        raise EndpointFailed("too large", again=False)
    if late.is_set():
        raise EndpointFailed("timeout")
    if declared is not None and len(raw) < declared:
        raise EndpointFailed("truncated")
    try:
        return json.loads(raw)
    except (ValueError, RecursionError):
        raise EndpointFailed("not JSON") from None


def _retry_after(response: HTTPResponse) -> float | None:
    """Return the seconds of a Retry-After header, which may also be a date; None where it cannot be read."""
    value = (response.getheader("Retry-After") or "").strip()
    if value.isascii() and value.isdigit():
        return float(value[:9])
    try:
        return max(0.0, parsedate_to_datetime(value).timestamp() - time.time())
    except (ValueError, TypeError, OverflowError):
        return None
