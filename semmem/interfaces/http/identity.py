"""The identity server whose tokens a server accepts: where it is, and the keys with which it signs (JWKS).

Its keys are read when a token names one that is not known, and once an hour. A server that does not answer stops nobody
whose token names a known key.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from semmem.interfaces.http.addresses import is_loopback
from semmem.interfaces.http.keys import going
from semmem.model.errors import InvalidInput, KeyRequired
from semmem.model.process.endpoint import Endpoint, EndpointFailed

if TYPE_CHECKING:
    from jwt import PyJWK

__all__ = ["ALGORITHMS", "IdentityServer", "check_url"]

ALGORITHMS = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
"""Signatures that are accepted: those of which the public key signs nothing."""

_log = logging.getLogger("semmem.http")
_TIMEOUT_S = 5.0


class IdentityServer:
    """The keys of one issuer; used by the requests of one event loop."""

    AGAIN_S = 60.0
    """Seconds before a token with an unknown key has the keys read again."""

    FAILED_S = 5.0
    """The same while no key was ever read."""

    OLD_S = 3600.0
    """Seconds after which the keys are read again, behind the request that finds them old."""

    def __init__(self, issuer: str, *, clock: Callable[[], float] = time.monotonic) -> None:
        check_url(issuer, "oidc_issuer")
        self.issuer = issuer
        self._clock = clock
        self._keys: Mapping[str, PyJWK] = {}
        self._asked_at: float | None = None
        self._reading: asyncio.Future[Any] | None = None

    def read(self) -> str | None:
        """Read the keys at the start of a server; return why they cannot be read, None where they are."""
        try:
            self._keys = _signing_keys(_json_at(self._jwks_url()))
        except EndpointFailed as error:
            return error.reason
        self._asked_at = self._clock()
        return None

    async def key(self, name: str | None) -> PyJWK | None:
        """Return the key of that name (``kid``), or the only one for a token without a name; None where there is none.

        Raises KeyRequired where no key was ever read, with the status 503: another try may help, another token not.
        """
        if self._clock() - (self._asked_at or 0.0) >= self._pause(name) or self._asked_at is None:
            self._asked_at = self._clock()
            self._reading = going(self._reading, self._read)
        if self._known(name) is None and self._reading is not None:
            await asyncio.shield(self._reading)
        if not self._keys:
            error = KeyRequired(
                f"The identity server {self.issuer} does not tell its keys, so no token can be checked; ask again "
                "later."
            )
            error.http_status = 503
            raise error
        return self._known(name)

    def _known(self, name: str | None) -> PyJWK | None:
        if name is not None:
            return self._keys.get(name)
        return next(iter(self._keys.values())) if len(self._keys) == 1 else None

    def _pause(self, name: str | None) -> float:
        if name is not None and name in self._keys:
            return self.OLD_S
        return self.AGAIN_S if self._keys else self.FAILED_S

    def _read(self) -> None:
        """Read the keys; those that were known go on where they cannot be read."""
        if why := self.read():
            _log.warning("The keys of the identity server %s were not read: %s.", self.issuer, why)

    def _jwks_url(self) -> str:
        """Return where the keys are, as the server says at the address of OIDC, else at that of OAuth (RFC 8414)."""
        parts = urlsplit(self.issuer)
        before, path = f"{parts.scheme}://{parts.netloc}", parts.path.rstrip("/")
        try:
            found = _json_at(f"{before}{path}/.well-known/openid-configuration")
        except EndpointFailed as error:
            if error.status != 404:
                raise
            found = _json_at(f"{before}/.well-known/oauth-authorization-server{path}")
        if not isinstance(found, dict) or found.get("issuer") != self.issuer:
            raise EndpointFailed("its description names another issuer")
        url = found.get("jwks_uri")
        if not isinstance(url, str) or not _is_safe(url, queried=True):
            raise EndpointFailed("its description names no https:// address of keys")
        return url


def check_url(url: str, name: str) -> None:
    """Raise InvalidInput for a URL of a setting that is no https:// one; on this machine http:// will do."""
    if not _is_safe(url):
        such = "login" if name == "oidc_issuer" else "memory"
        raise InvalidInput(f"The setting {name} must be a URL such as https://{such}.example.org, not {url!r}.")


def _is_safe(url: str, *, queried: bool = False) -> bool:
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        return False
    plain = (
        url.isascii() and url.isprintable() and " " not in url and not parts.fragment and (queried or not parts.query)
    )
    if not plain or not parts.hostname or parts.username is not None:
        return False
    return parts.scheme == "https" or (parts.scheme == "http" and is_loopback(parts.hostname))


def _json_at(url: str) -> Any:
    return Endpoint(url, path="", named="oidc", timeout_s=_TIMEOUT_S).get()


def _signing_keys(found: Any) -> dict[str, PyJWK]:
    """Return the public keys of a set (RFC 7517) by name; those that are not for signatures are left out.

    One that is damaged is left out too, and the others count.
    """
    from jwt import PyJWK, PyJWTError

    rows = found.get("keys") if isinstance(found, dict) else None
    keys: dict[str, PyJWK] = {}
    for row in rows if isinstance(rows, list) else ():
        try:
            key = PyJWK.from_dict(row)
            name = key.key_id or ""
            if key.algorithm_name in ALGORITHMS and key.public_key_use in (None, "sig") and isinstance(name, str):
                keys[name] = key
        except (PyJWTError, AttributeError, TypeError, ValueError):
            continue
    if not keys:
        raise EndpointFailed("its set of keys holds none that signs")
    return keys
