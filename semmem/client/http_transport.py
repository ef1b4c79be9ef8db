"""The connections of a client to ``semmem serve``: they send a request and hold its answer open."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from semmem.client.http_request import Request
from semmem.client.routes import NOTED
from semmem.config import certificate_file
from semmem.model.errors import InvalidInput, MissingExtra, StoreClosed, StoreUnavailable
from semmem.read.tracing import sent_along
from semmem.write.screening import warn

__all__ = ["Transport"]

_NO_TLS = ("WRONG_VERSION_NUMBER", "HTTP_REQUEST", "PACKET_LENGTH_TOO_LONG")
"""What OpenSSL says of an answer that is no TLS at all."""


class Transport:
    """The connections to one server, which threads share."""

    def __init__(self, url: str, key: str | None) -> None:
        httpx = _httpx()
        self.url = url.strip().rstrip("/")
        try:
            place = httpx.URL(self.url)
        except httpx.InvalidURL:
            place = httpx.URL("")
        if not place.host or place.userinfo or place.query or place.fragment:
            raise InvalidInput("The URL of a server is written as http://127.0.0.1:8765; the key goes into key=….")
        self._client = httpx.Client(
            headers={"authorization": f"Bearer {_checked(key)}"} if key else {},
            timeout=httpx.Timeout(120.0, connect=10.0),
            limits=httpx.Limits(max_connections=64, max_keepalive_connections=16, keepalive_expiry=30.0),
            trust_env=False,
            verify=_accepted(place.scheme),
            event_hooks={"request": [_trace]},
        )

    @property
    def is_closed(self) -> bool:
        """Whether the connections were given back."""
        return bool(self._client.is_closed)

    def close(self) -> None:
        """Give the connections back."""
        self._client.close()

    @contextmanager
    def handle(self, request: Request) -> Iterator[Any]:
        """Send a request and yield the answer, whose body is read inside the block.

        Raises StoreUnavailable where the server does not answer, StoreClosed after ``close``.
        """
        httpx = _httpx()
        if self.is_closed:
            raise StoreClosed
        try:
            with self._client.stream(
                request.method,
                self.url + request.path,
                params=list(request.query) or None,
                headers=dict(request.headers),
                content=request.content,
            ) as response:
                if warning := response.headers.get(NOTED):
                    warn(warning)
                yield response
        except httpx.TransportError as error:
            raise _unreachable(self.url, error) from None
        except RuntimeError:
            if self.is_closed:  # by another thread
                raise StoreClosed from None
            raise


def _httpx() -> Any:
    try:
        import httpx
    except ImportError:
        raise MissingExtra("httpx is not installed; install it with: pip install 'semmem[http]'") from None
    return httpx


def _accepted(scheme: str) -> ssl.SSLContext:
    """Return which certificates are accepted: those of httpx and of the machine, SSL_CERT_FILE included.

    None are for plain HTTP, which has no use for them: reading them takes longer than a recall. Raises InvalidInput
    where SSL_CERT_FILE names no file of certificates.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    if scheme == "https":
        context = _httpx().create_ssl_context(trust_env=False)
        context.load_default_certs()
        if file := certificate_file():
            try:
                context.load_verify_locations(file)
            except OSError:
                raise InvalidInput(f"SSL_CERT_FILE names {file!r}, in which no certificate can be read.") from None
    return context


def _without_tls(url: str, told: str) -> str:
    """Return the sentence for a connection that OpenSSL refuses; ``told`` are its own words, which httpx passes on."""
    reason = told.partition("] ")[2].partition(" (_ssl")[0].rstrip(".")
    kind, _, cause = reason.partition("certificate verify failed: ")
    if any(sign in told for sign in _NO_TLS):
        return f"What answers at {url} speaks no TLS; `semmem serve` does not by itself, so write http:// in the URL."
    if "CERTIFICATE_VERIFY_FAILED" not in told:
        return f"No TLS connection with {url} comes about ({reason}); look at the server, or the proxy before it."
    advice = "it has to be put right there"
    if cause.startswith(("self-signed", "self signed", "unable to get")):
        advice = "if it is yours, let SSL_CERT_FILE name the file of the authority that signed it"
    return f"The certificate of {url} is not accepted ({cause or kind}); {advice}."


def _trace(request: Any) -> None:
    """Let the server know the trace of a request, where there is one."""
    request.headers.update(sent_along())


def _checked(key: str) -> str:
    if not (isinstance(key, str) and key.isascii() and key.isprintable()):
        raise InvalidInput("The key is not one that `semmem keys add` has shown.")
    return key.strip()


def _unreachable(url: str, error: Exception) -> StoreUnavailable:
    """Return the error for a server that does not answer."""
    if "Timeout" in type(error).__name__:
        return StoreUnavailable(f"The server at {url} did not answer in time; ask again, or for less.")
    if "[SSL" in str(error):
        return StoreUnavailable(_without_tls(url, str(error)))
    return StoreUnavailable(f"No server answers at {url}; start it with `semmem serve`, or correct the URL.")
