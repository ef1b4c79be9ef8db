"""Sessions of browsers: a cookie that stands for a key, so that a page of the server needs no key of its own.

A browser gets its session from a link that works once, or by showing a key. The server keeps sessions in memory, as
hashes: they end with it, after ``LASTING_S`` without a request, and with the key that they stand for.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256

from semmem.interfaces.http.keys import Key, TokenKey

__all__ = ["Sessions"]


@dataclass(slots=True)
class _Session:
    key: Key
    used_at: float


class Sessions:
    """The sessions of one server, and the links that begin one; safe to share between threads."""

    LASTING_S = 12 * 3600.0
    """Seconds without a request after which a session ends."""

    MOST = 1_000
    """Sessions at one time; where there are more, one of the key that has most ends: its least recently used."""

    def __init__(self, port: int, *, owner: Key | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        """``owner`` is the key for which links are made; it is in no set of keys, and a server without it has none.

        The name of the cookie has the port, because a browser sends the cookies of a host to each of its ports.
        """
        self.cookie = f"semmem_{port}"
        self._owner = owner
        self._clock = clock
        self._sessions: dict[str, _Session] = {}
        self._invitations: set[str] = set()
        self._lock = threading.Lock()

    def invite(self) -> str:
        """Return the secret of a link that begins one session of the owner."""
        assert self._owner is not None, "this server has no owner"
        token = secrets.token_urlsafe(32)
        with self._lock:
            self._invitations.add(_digest(token))
        return token

    def accept(self, token: str) -> str | None:
        """Return the cookie of a new session, or None for a token that was used or never given."""
        with self._lock:
            if self._owner is None or _digest(token) not in self._invitations:
                return None
            self._invitations.remove(_digest(token))
        return self.begin(self._owner)

    def begin(self, key: Key) -> str:
        """Return the cookie of a new session that may do what ``key`` may."""
        secret = secrets.token_urlsafe(32)
        with self._lock:
            self._drop_old()
            if len(self._sessions) >= self.MOST:
                del self._sessions[self._given_up()]
            self._sessions[_digest(secret)] = _Session(key, self._clock())
        return f"{self.cookie}={secret}; Path=/; HttpOnly; SameSite=Strict"

    def find(self, cookies: str | None, keys: Mapping[str, Key]) -> Key | None:
        """Return the key of the session that the header Cookie names, as it is among ``keys`` now; None without one."""
        digest = self._digest_in(cookies)
        if digest is None:
            return None
        with self._lock:
            self._drop_old()
            session = self._sessions.get(digest)
            if session is None:
                return None
            session.used_at = self._clock()
        if self._owner is not None and session.key.id == self._owner.id:
            return self._owner
        now = session.key if isinstance(session.key, TokenKey) else keys.get(session.key.id)
        if now is None or now.digest != session.key.digest or now.is_over(datetime.now(UTC)):
            return None
        return now

    def end(self, cookies: str | None) -> str:
        """End the session of the header Cookie, if there is one; return the cookie that removes it from a browser."""
        digest = self._digest_in(cookies)
        with self._lock:
            self._sessions.pop(digest or "", None)
        return f"{self.cookie}=; Path=/; HttpOnly; SameSite=Strict; Max-Age=0"

    def _digest_in(self, cookies: str | None) -> str | None:
        for cookie in (cookies or "").split(";"):  # those of other ports come too, and need not be well-formed
            name, _, secret = cookie.strip().partition("=")
            if name == self.cookie:
                return _digest(secret)
        return None

    def _given_up(self) -> str:
        """Return the session that ends for a new one, so that no key can end those of others by beginning many."""
        counts = Counter(session.key.id for session in self._sessions.values())
        most = max(counts, key=counts.__getitem__)
        of_it = {digest: one.used_at for digest, one in self._sessions.items() if one.key.id == most}
        return min(of_it, key=of_it.__getitem__)

    def _drop_old(self) -> None:
        oldest = self._clock() - self.LASTING_S
        self._sessions = {digest: one for digest, one in self._sessions.items() if one.used_at >= oldest}


def _digest(secret: str) -> str:
    return sha256(secret.encode()).hexdigest()
