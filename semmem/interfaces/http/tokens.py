"""Access tokens of an identity server (OIDC, OAuth 2.1): each is read as a key that nobody has to make.

A token is a JWT (RFC 9068); PyJWT checks its signature, issuer, audience and times. Its subject is the name of the key,
one claim lists the namespaces, and one has the right, as scopes. A client without a token finds the identity server by
RFC 9728: the answer 401 names a document of this server, which names the issuer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from hashlib import sha256
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from semmem.interfaces.http.identity import ALGORITHMS, IdentityServer, check_url
from semmem.interfaces.http.keys import Right, TokenKey
from semmem.model.errors import AccessDenied, InvalidInput, KeyRequired, MissingExtra

if TYPE_CHECKING:
    from jwt import PyJWK

    from semmem.config import Settings

__all__ = ["SCOPES", "Tokens", "token_in"]

SCOPES: dict[str, Right] = {"semmem:read": "read", "semmem:write": "write", "semmem:admin": "admin"}
"""What a claim of rights may name, the most last."""

_WELL_KNOWN = "/.well-known/oauth-protected-resource"
_SKEW_S = 30.0
"""Seconds by which the clocks of the two servers may differ."""

_LATEST = datetime(9999, 1, 1, tzinfo=UTC).timestamp()
_LONGEST = 8_192
_LONGEST_NAME = 255


class Tokens:
    """What a server accepts as a token, and how it tells clients where to get one."""

    def __init__(
        self, server: IdentityServer, *, audience: str, resource: str, namespaces_claim: str, right_claim: str
    ) -> None:
        self._server = server
        self._audience = audience
        self._claims = namespaces_claim, right_claim
        self._resource = resource
        parts = urlsplit(resource)
        self._place = _WELL_KNOWN + parts.path.rstrip("/")
        self.challenge = f'Bearer resource_metadata="{parts.scheme}://{parts.netloc}{self._place}"'
        """The header WWW-Authenticate of an answer to a request without a token."""

    @classmethod
    def of(cls, settings: Settings) -> Tokens | None:
        """Return the tokens that settings describe, None where they name no issuer. Raises InvalidInput."""
        issuer, audience = settings.oidc_issuer, settings.oidc_audience
        if issuer is None:
            if given := next((name for name in ("audience", "resource") if getattr(settings, f"oidc_{name}")), None):
                raise InvalidInput(
                    f"The setting oidc_{given} needs oidc_issuer, the URL of the identity server, such as "
                    "https://login.example.org; without it, no token is asked for."
                )
            return None
        if find_spec("jwt") is None or find_spec("cryptography") is None:
            raise MissingExtra("Tokens need the package PyJWT[crypto]; install it with: pip install 'semmem[http]'")
        if audience is None:
            raise InvalidInput(
                "The setting oidc_issuer needs oidc_audience, the audience of the tokens that are for this server, "
                "such as https://memory.example.org."
            )
        if settings.oidc_resource is None and "://" not in audience:
            raise InvalidInput(
                f"The setting oidc_audience is no URL but {audience!r}, so oidc_resource has to give the public URL of "
                "this server, such as https://memory.example.org."
            )
        resource = audience if settings.oidc_resource is None else settings.oidc_resource
        check_url(resource, "oidc_audience" if settings.oidc_resource is None else "oidc_resource")
        return cls(
            IdentityServer(issuer),
            audience=audience,
            resource=resource,
            namespaces_claim=settings.oidc_namespaces_claim,
            right_claim=settings.oidc_right_claim,
        )

    @property
    def issuer(self) -> str:
        """The identity server."""
        return self._server.issuer

    def ask(self) -> str | None:
        """Ask the identity server for its keys; return a sentence where it does not tell them."""
        why = self._server.read()
        if why is None:
            return None
        return f"The identity server {self.issuer} does not tell its keys ({why}); until it does, no token is accepted."

    def metadata(self, path: str) -> dict[str, object] | None:
        """Return the document about this server (RFC 9728) for the paths where it stands, None for any other."""
        if path not in (_WELL_KNOWN, self._place):
            return None
        return {
            "resource": self._resource,
            "authorization_servers": [self.issuer],
            "scopes_supported": list(SCOPES),
            "bearer_methods_supported": ["header"],
            "resource_name": "semmem",
        }

    async def find(self, text: str) -> TokenKey:
        """Return the key that a token stands for.

        Raises KeyRequired for a token that is not valid here, AccessDenied for a valid one that allows nothing.
        """
        name = _key_name(text, self.issuer)
        key = await self._server.key(name)
        if key is None:
            which = "more than one key, and the token names none" if name is None else f"no key {name!r}"
            raise KeyRequired(f"The identity server {self.issuer} has {which}; get a new token from it.")
        return self._key(_claims(text, key, self._audience, self.issuer))

    def _key(self, claims: Mapping[str, Any]) -> TokenKey:
        name = claims["sub"]
        if not (0 < len(name) <= _LONGEST_NAME and name.isprintable()):
            raise KeyRequired("The subject of the token must be 1 to 255 printable characters.")
        id = sha256(f"{self.issuer}\n{name}".encode()).hexdigest()
        namespaces, right = self._claims
        return TokenKey(
            name,
            id,
            "",
            _right(claims, right),
            _namespaces(claims, namespaces),
            _time(int(claims["iat"])),
            _time(min(int(claims["exp"]), _LATEST) + _SKEW_S),
        )


def token_in(authorization: str | None) -> str | None:
    """Return the token in the header ``Authorization: Bearer …``; None for a key of semmem, and for anything else."""
    scheme, _, text = (authorization or "").strip().partition(" ")
    return text.strip() if scheme.lower() == "bearer" and text.count(".") == 2 else None


def _key_name(text: str, issuer: str) -> str | None:
    """Return the name of the key that signed a token, if it has one; it is not checked yet. Raises KeyRequired."""
    import jwt

    try:
        if len(text) > _LONGEST:
            raise ValueError
        whole = jwt.decode_complete(text, options={"verify_signature": False})
    except (jwt.InvalidTokenError, ValueError, RecursionError):
        raise KeyRequired(
            f"The token is not a JWT that can be read, of at most {_LONGEST:,} characters; send the access token whole."
        ) from None
    header, claims = whole["header"], whole["payload"]
    if claims.get("iss") != issuer:
        raise KeyRequired(f"The token is not issued by {issuer}; get one there.")
    if header.get("alg") not in ALGORITHMS:
        raise KeyRequired(
            f"The token is signed by a method that is not accepted; let the identity server use one of "
            f"{', '.join(ALGORITHMS)}."
        )
    name: str | None = header.get("kid")
    return name


def _claims(text: str, key: PyJWK, audience: str, issuer: str) -> Mapping[str, Any]:
    """Return the claims of a token that is valid. Raises KeyRequired."""
    import jwt

    sentences: Sequence[tuple[type[Exception], str]] = (
        (jwt.ExpiredSignatureError, "The token has expired; get a new one from {issuer}."),
        (jwt.ImmatureSignatureError, "The token is not valid yet; compare the clocks of this server and of {issuer}."),
        (jwt.InvalidAudienceError, "The token is not for this server; get one with the audience {audience}."),
        (jwt.MissingRequiredClaimError, "The token lacks a claim: it needs iss, sub, aud, iat and exp."),
        (jwt.InvalidAlgorithmError, "The token is signed by another method than its key is for; get a new one."),
        (jwt.InvalidSignatureError, "The signature of the token is wrong; send it as {issuer} gave it."),
        (Exception, "The token has a claim or a key of a wrong type; get a new one from {issuer}."),
    )
    try:
        return jwt.decode(
            text,
            key,
            algorithms=[key.algorithm_name],
            audience=audience,
            issuer=issuer,
            leeway=_SKEW_S,
            options={"require": ["iss", "sub", "aud", "iat", "exp"], "enforce_minimum_key_length": True},
        )
    except (jwt.PyJWTError, ArithmeticError, TypeError, ValueError) as error:
        said = next(sentence for kind, sentence in sentences if isinstance(error, kind))
        raise KeyRequired(said.format(issuer=issuer, audience=audience)) from None


def _right(claims: Mapping[str, Any], name: str) -> Right:
    """Return the most that a claim allows: scopes with spaces between, or a list of them."""
    value = claims.get(name)
    words = value.split() if isinstance(value, str) else value
    if not isinstance(words, list):
        raise AccessDenied(f"The token needs the claim {name!r}, a text or a list with one of {', '.join(SCOPES)}.")
    for scope, right in reversed(SCOPES.items()):
        if scope in words:
            return right
    raise AccessDenied(
        f"The claim {name!r} of the token allows nothing here; ask the identity server for one of the scopes "
        f"{', '.join(SCOPES)}."
    )


def _namespaces(claims: Mapping[str, Any], name: str) -> tuple[str, ...]:
    """Return the namespaces that a claim names: one as a text, or a list."""
    value = claims.get(name)
    names = [value] if isinstance(value, str) else value
    if not isinstance(names, list) or not names or not all(isinstance(one, str) and one for one in names):
        raise AccessDenied(
            f"The token needs the claim {name!r}, which names its namespaces: a text, or a list of texts that is not "
            "empty."
        )
    if wild := next((one for one in names if "*" in one), None):
        raise AccessDenied(
            f"The claim {name!r} of the token has {wild!r}, and a token names each of its namespaces; for the whole "
            "store, use a key of `semmem keys add`."
        )
    return tuple(dict.fromkeys(names))


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(min(max(0.0, seconds), _LATEST), UTC).isoformat()
