"""A real identity server for the tests: Authlib's, on a free port of this machine, with people who have passwords.

It registers clients (RFC 7591), logs people in, gives codes with PKCE and tokens that are JWTs for the resource that
was asked for (RFC 8707, 9068), and says where all that is (RFC 8414).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import flask
import pytest
from authlib.integrations.flask_oauth2 import AuthorizationServer
from authlib.oauth2 import OAuth2Error
from authlib.oauth2.rfc6749.grants import AuthorizationCodeGrant
from authlib.oauth2.rfc7591 import ClientRegistrationEndpoint
from authlib.oauth2.rfc7636 import CodeChallenge
from authlib.oauth2.rfc9068 import JWTBearerTokenGenerator
from joserfc import jwk, jwt
from werkzeug.serving import make_server

from tests.patience import PATIENCE_S

__all__ = ["Identity", "identity_server"]

SCOPES = ("semmem:read", "semmem:write", "semmem:admin")


class _Client:
    """A client that registered itself, as Authlib asks one."""

    def __init__(self, id: str, metadata: dict[str, Any]) -> None:
        self.client_id = id
        self.metadata = metadata

    def get_client_id(self) -> str:
        return self.client_id

    def get_default_redirect_uri(self) -> str:
        return str(self.metadata["redirect_uris"][0])

    def get_allowed_scope(self, scope: str | None) -> str:
        return " ".join(one for one in (scope or "").split() if one in SCOPES)

    def check_redirect_uri(self, uri: str) -> bool:
        return uri in self.metadata["redirect_uris"]

    def check_client_secret(self, secret: str) -> bool:
        return False

    def check_endpoint_auth_method(self, method: str, endpoint: str) -> bool:
        return method == "none"

    def check_response_type(self, kind: str) -> bool:
        return kind == "code"

    def check_grant_type(self, kind: str) -> bool:
        return kind == "authorization_code"


class _Person:
    def __init__(self, name: str, password: str, rights: tuple[str, ...], namespaces: list[str]) -> None:
        self.name, self.password, self.rights, self.namespaces = name, password, rights, namespaces

    def get_user_id(self) -> str:
        return self.name


class _Code:
    def __init__(self, request: Any) -> None:
        self.client_id = request.client.client_id
        self.redirect_uri = request.payload.redirect_uri
        self.person = request.user
        self.scope = " ".join(one for one in request.scope.split() if one in self.person.rights)
        self.code_challenge = request.payload.data.get("code_challenge")
        self.code_challenge_method = request.payload.data.get("code_challenge_method")

    def get_redirect_uri(self) -> str:
        return str(self.redirect_uri)

    def get_scope(self) -> str:
        return self.scope


class Identity:
    """The server: ``url`` is its issuer, ``reads`` counts how often its keys were read."""

    def __init__(self) -> None:
        self.people: dict[str, _Person] = {}
        self.clients: dict[str, _Client] = {}
        self.codes: dict[str, _Code] = {}
        self.keys: list[Any] = []
        self.reads = 0
        self.rotate()
        app = self._app()
        self._listener = make_server("127.0.0.1", 0, app, threaded=True)
        self.url = f"http://127.0.0.1:{self._listener.server_port}"
        self.keys_at = f"{self.url}/keys"
        self._thread = threading.Thread(target=self._listener.serve_forever)
        self._thread.start()

    def stop(self) -> None:
        """Answer nobody any more."""
        self._listener.shutdown()
        self._thread.join(60)
        self._listener.server_close()

    def add(self, name: str, password: str, *, rights: tuple[str, ...] = SCOPES, namespaces: list[str]) -> None:
        """Add a person."""
        self.people[name] = _Person(name, password, rights, namespaces)

    def rotate(self, *, kind: str = "RSA", size: Any = 2048, forget: bool = True) -> None:
        """Sign with a new key from now on; without ``forget`` the one before is still published."""
        key = jwk.generate_key(kind, size, {"use": "sig"}, auto_kid=True)
        self.keys = [key] if forget else [key, *self.keys]

    def published(self) -> dict[str, Any]:
        """Return the public keys."""
        return {"keys": [key.as_dict(private=False) for key in self.keys]}

    def claims(self, **more: Any) -> dict[str, Any]:
        """Return the claims of a token of ada for a server, changed by ``more``; None leaves a claim out."""
        now = int(time.time())
        usual = {"iss": self.url, "sub": "ada", "aud": "https://memory.example.org", "iat": now, "exp": now + 600}
        mine = {"scope": "openid semmem:write", "semmem_namespaces": ["team", "notes"]}
        return {name: value for name, value in {**usual, **mine, **more}.items() if value is not None}

    def token(self, *, alg: str = "RS256", kid: str | None = None, **more: Any) -> str:
        """Return a token that this server signed, with ``more`` claims; an empty ``kid`` leaves that out."""
        key = self.keys[0]
        named = {"kid": key.kid} if kid is None else {"kid": kid} if kid else {}
        return jwt.encode({"alg": alg, "typ": "at+jwt", **named}, self.claims(**more), key, [alg])

    def _app(self) -> flask.Flask:
        app = flask.Flask("identity")
        server = AuthorizationServer(app, query_client=self.clients.get, save_token=lambda token, request: None)
        server.register_token_generator("default", _Tokens(self))
        server.register_grant(_grant(self), [CodeChallenge(required=True)])
        server.register_endpoint(_registration(self))

        @app.get("/.well-known/oauth-authorization-server")
        @app.get("/.well-known/openid-configuration")
        def about() -> Any:
            return {
                "issuer": self.url,
                "authorization_endpoint": f"{self.url}/authorize",
                "token_endpoint": f"{self.url}/token",
                "registration_endpoint": f"{self.url}/register",
                "jwks_uri": self.keys_at,
                "response_types_supported": ["code"],
                "grant_types_supported": ["authorization_code"],
                "code_challenge_methods_supported": ["S256"],
                "token_endpoint_auth_methods_supported": ["none"],
                "scopes_supported": list(SCOPES),
            }

        @app.get("/keys")
        def keys() -> Any:
            self.reads += 1
            return self.published()

        @app.post("/register")
        def register() -> Any:
            return server.create_endpoint_response("client_registration")

        @app.post("/authorize")
        def authorize() -> Any:
            person = self.people.get(flask.request.form["person"])
            if person is None or person.password != flask.request.form["password"]:
                return "Wrong name or password.", 403
            try:
                grant = server.get_consent_grant(end_user=person)
            except OAuth2Error as error:
                return dict(error.get_body()), error.status_code
            return server.create_authorization_response(grant=grant, grant_user=person)

        @app.post("/token")
        def token() -> Any:
            return server.create_token_response()

        return app


class _Tokens(JWTBearerTokenGenerator):
    def __init__(self, identity: Identity) -> None:
        super().__init__(issuer=None, expires_generator=lambda client, grant: 600)
        self.identity = identity

    def access_token_generator(self, client: Any, grant_type: str, user: Any, scope: str) -> str:
        self.issuer = self.identity.url
        return str(super().access_token_generator(client, grant_type, user, scope))

    def get_jwks(self) -> Any:
        return self.identity.keys[0]

    def get_audiences(self, client: Any, user: Any, scope: str) -> str:
        return str(flask.request.form["resource"])

    def get_extra_claims(self, client: Any, grant_type: str, user: Any, scope: str) -> dict[str, Any]:
        return {"semmem_namespaces": user.namespaces}


def _grant(identity: Identity) -> type[AuthorizationCodeGrant]:
    class Grant(AuthorizationCodeGrant):
        TOKEN_ENDPOINT_AUTH_METHODS = ("none",)

        def save_authorization_code(self, code: str, request: Any) -> None:
            identity.codes[code] = _Code(request)

        def query_authorization_code(self, code: str, client: _Client) -> _Code | None:
            found = identity.codes.get(code)
            return found if found is not None and found.client_id == client.client_id else None

        def delete_authorization_code(self, authorization_code: _Code) -> None:
            identity.codes = {name: one for name, one in identity.codes.items() if one is not authorization_code}

        def authenticate_user(self, authorization_code: _Code) -> _Person:
            return authorization_code.person

    return Grant


def _registration(identity: Identity) -> type[ClientRegistrationEndpoint]:
    class Registration(ClientRegistrationEndpoint):
        def get_server_metadata(self) -> dict[str, Any]:
            return {}

        def authenticate_token(self, request: Any) -> bool:
            return True  # anybody may register a client

        def save_client(self, client_info: dict[str, Any], client_metadata: dict[str, Any], request: Any) -> _Client:
            client = _Client(client_info["client_id"], client_metadata)
            identity.clients[client.client_id] = client
            return client

    return Registration


@contextmanager
def identity_server() -> Iterator[Identity]:
    """Yield a server that answers; one that was stopped in between is not stopped again."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AUTHLIB_INSECURE_TRANSPORT", "1")  # no certificate between two ports of this machine
        patch.setattr("semmem.interfaces.http.identity._TIMEOUT_S", PATIENCE_S)
        identity = Identity()
        try:
            yield identity
        finally:
            if identity._thread.is_alive():
                identity.stop()
