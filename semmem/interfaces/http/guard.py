"""Who may speak to a server: its address, the Host and Origin of a request, and its key.

Shared by every door that speaks HTTP. A page in a browser may send requests to this machine under a name of its own
that was made to point here (DNS rebinding): it is known by its Host, which is then no address and no name that was
allowed. Addresses need no list, because nobody can make an address point elsewhere.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Awaitable, Callable, Iterable, Mapping, MutableMapping
from dataclasses import dataclass
from typing import Any, TypeAlias
from urllib.parse import unquote, urlsplit

from semmem.interfaces.http.addresses import is_loopback
from semmem.interfaces.http.keys import Key, KeySet, found
from semmem.interfaces.http.problems import as_bytes, send_problem
from semmem.interfaces.http.refusals import Refusals
from semmem.interfaces.http.sessions import Sessions
from semmem.interfaces.http.tokens import Tokens, token_in
from semmem.model.errors import AccessDenied, InvalidInput, KeyRequired, SemmemError

__all__ = ["KEY", "Guard", "Guarded", "check_address", "is_loopback"]

Scope: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send: TypeAlias = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]

KEY = "semmem.key"
"""Where in the scope of a request its Key stands; None where the server has no keys."""


_OPENER = "semmem-key-name"
_METHODS = ("GET", "POST", "PATCH", "DELETE")
_SENT = (
    "Authorization", "Idempotency-Key", "If-Match", "If-None-Match", "Last-Event-ID", "MCP-Protocol-Version",
    "Mcp-Session-Id",
)  # fmt: skip
_SHOWN = ("ETag", "Location", "Mcp-Session-Id", "Retry-After", "WWW-Authenticate")
"""Methods and headers that a page of an origin that was allowed may send, and headers of an answer it may read."""


def check_address(host: str, keys: KeySet, tokens: Tokens | None = None) -> None:
    """Raise InvalidInput where others could reach a server at ``host`` that has no keys and accepts no tokens."""
    if not host:
        raise InvalidInput("The host is empty; leave it out for 127.0.0.1.")
    if not is_loopback(host) and tokens is None and not keys:
        raise InvalidInput(
            f"Others can reach {host}, and this server has no key; make one first with `semmem keys add NAME`, or "
            "leave the host out."
        )


@dataclass(frozen=True, slots=True)
class Guard:
    """Which requests are let in: ``hosts`` are names that Host may have, ``origins`` web pages beside the server's own.

    An address and localhost are names that it may always have.
    """

    hosts: frozenset[str] = frozenset()
    origins: frozenset[str] = frozenset()

    @classmethod
    def of(cls, hosts: Iterable[str] = (), origins: Iterable[str] = ()) -> Guard:
        """Return a guard for names and origins as people write them. Raises InvalidInput."""
        for origin in (origins := list(origins)):
            parts = urlsplit(origin)
            if parts.scheme not in ("http", "https") or not parts.netloc or parts.path not in ("", "/"):
                raise InvalidInput(f"An origin is written as https://example.org, not {origin!r}.")
        names = frozenset(host.lower().rstrip(".") for host in hosts)
        return cls(names, frozenset(origin.lower().rstrip("/") for origin in origins))

    def check(self, host: str | None, origin: str | None, scheme: str = "http") -> None:
        """Raise AccessDenied for a Host or an Origin that may not speak to this server."""
        name = _name(host)
        if name is None or not (_is_address(name) or name in self.hosts):
            raise AccessDenied("This server does not accept that Host; allow it with --allow-host NAME.")
        if origin is None or origin.lower() in self.origins:
            return
        if origin.lower() != f"{scheme}://{(host or '').lower()}":
            raise AccessDenied("A page of that Origin may not use this server; allow it with --allow-origin ORIGIN.")


def _name(host: str | None) -> str | None:
    """Return the name or address in the header Host, without its port; None where there is none."""
    try:
        parts = urlsplit(f"//{host or ''}")
        _ = parts.port
    except ValueError:
        return None
    if parts.username is not None or parts.path or parts.query or parts.fragment:
        return None
    return (parts.hostname or "").rstrip(".") or None


def _is_address(name: str) -> bool:
    if name == "localhost":
        return True
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


class Guarded:
    """An ASGI application behind a guard: Host and Origin are checked, and the key, whose Key is put into the scope.

    ``open_paths`` are answered without a key, to whoever may ask at all; one that ends with a slash stands for all
    under it. Any other path is refused to a page of another site that sends no Origin, as one does that shows an answer
    as an image. ``wants_key``: a key is wanted where there is none, too, so that a server which once had keys is not
    open to all when the last one is removed. ``sessions`` are those of browsers, whose cookie stands for a key in
    requests of the server's own pages alone. ``tokens`` of an identity server are accepted beside keys; with them,
    every request needs one of the two. ``refusals`` count the requests whose key or token is not accepted.
    """

    def __init__(
        self,
        app: App,
        guard: Guard,
        keys: KeySet,
        *,
        open_paths: Iterable[str] = (),
        wants_key: bool = False,
        sessions: Sessions | None = None,
        tokens: Tokens | None = None,
        refusals: Refusals | None = None,
    ) -> None:
        self.app = app
        self.guard = guard
        self.keys = keys
        self.open_paths = frozenset(open_paths)
        self._open_folders = tuple(path for path in self.open_paths if path.endswith("/") and path != "/")
        self.wants_key = wants_key or tokens is not None
        self._sessions = sessions
        self._tokens = tokens
        self._refusals = refusals
        self._answer: App = self._guarded
        if guard.origins:
            from starlette.middleware.cors import CORSMiddleware  # a server alone needs it

            self._answer = CORSMiddleware(
                self._guarded,
                allow_origins=sorted(guard.origins),
                allow_methods=_METHODS,
                allow_headers=_SENT,
                expose_headers=_SHOWN,
            )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request; pages of the origins that were allowed get the headers by which a browser lets them."""
        await self._answer(scope, receive, send)

    async def _guarded(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on a request that may be answered; answer any other with a problem."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
            return
        headers = _headers(scope)
        try:
            self.guard.check(headers.get("host"), headers.get("origin"), scope.get("scheme", "http"))
            scope[KEY] = None
            about = None if self._tokens is None else self._tokens.metadata(scope["path"])
            if about is not None:
                await _send_json(send, about)
                return
            if not self._is_open(scope["path"]):
                if "origin" not in headers and not _is_own(headers):
                    raise AccessDenied("A page of another site may not read from this server; open its own page at /.")
                known = await self.keys.fresh()
                self.wants_key = self.wants_key or bool(known)
                scope[KEY] = self._in_session(headers, known) or await self._accepted(headers, known)
        except SemmemError as error:
            await send_problem(send, self._with_challenge(error, headers))
            return
        await self.app(scope, receive, send)

    def _is_open(self, path: str) -> bool:
        return path in self.open_paths or path.startswith(self._open_folders)

    def _in_session(self, headers: Mapping[str, str], known: Mapping[str, Key]) -> Key | None:
        """Return the key for which the cookie of a request stands; a page of elsewhere cannot use the cookie.

        Nor can a page that another key opened, which it names: somebody else has begun a session in another tab.
        """
        if self._sessions is None or "authorization" in headers:
            return None
        if not _is_own(headers):
            return None
        key = self._sessions.find(headers.get("cookie"), known)
        if key is not None and _OPENER in headers and unquote(headers[_OPENER]) != key.name:
            return None
        return key

    async def _accepted(self, headers: Mapping[str, str], known: Mapping[str, Key]) -> Key | None:
        """Return what ``_shown`` does; what it refuses is counted."""
        try:
            return await self._shown(headers.get("authorization"), known)
        except SemmemError as error:
            if self._refusals is not None:
                await self._refusals.note(error)
            raise

    async def _shown(self, authorization: str | None, known: Mapping[str, Key]) -> Key | None:
        """Return the key, or that of the token, in the header Authorization. Raises KeyRequired, AccessDenied."""
        if self._tokens is not None:
            if authorization is None:
                raise KeyRequired(
                    f"This server requires a token of {self._tokens.issuer}, or a key: set SEMMEM_KEY, or send the "
                    "header Authorization: Bearer TOKEN."
                )
            if (token := token_in(authorization)) is not None:
                return await self._tokens.find(token)
        return found(known, authorization, wants_key=self.wants_key)

    def _with_challenge(self, error: SemmemError, headers: Mapping[str, str]) -> SemmemError:
        """Let an error say where a client gets a token, and that the one it sent is none."""
        if self._tokens is not None and isinstance(error, KeyRequired):
            wrong = ', error="invalid_token"' if "authorization" in headers else ""
            error.challenge = self._tokens.challenge + wrong
        return error


async def _send_json(send: Send, value: Mapping[str, object]) -> None:
    body = as_bytes(value)
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def _is_own(headers: Mapping[str, str]) -> bool:
    """Return whether no page of elsewhere caused a request, as far as its browser says so."""
    return headers.get("sec-fetch-site", "none") in ("same-origin", "none")


def _headers(scope: Scope) -> dict[str, str]:
    """Return the headers that a guard reads; one that is given twice counts as none that is allowed."""
    headers: dict[str, str] = {}
    for name, value in scope["headers"]:
        key = name.decode("latin-1").lower()
        if key in ("host", "origin", "authorization", "cookie", "sec-fetch-site", _OPENER):
            headers[key] = f"{headers[key]}, {value.decode('latin-1')}" if key in headers else value.decode("latin-1")
    return headers
