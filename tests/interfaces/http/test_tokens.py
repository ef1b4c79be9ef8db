"""Tokens of an identity server in place of keys: what each allows, which are refused, and keys that are rotated."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import json
import time
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta, tzinfo
from pathlib import Path
from typing import Any

import httpx
import pytest

import semmem
from semmem.config import Settings
from semmem.interfaces.http.guard import check_address
from semmem.interfaces.http.identity import IdentityServer
from semmem.interfaces.http.keys import Keys, StoredKeys
from semmem.interfaces.http.server import Server
from semmem.interfaces.http.tokens import Tokens
from semmem.model.errors import AccessDenied, InvalidInput, KeyRequired
from semmem.read import tracing
from tests.identity import Identity, identity_server
from tests.interfaces.cli.program import in_process
from tests.interfaces.http.test_routes import problem
from tests.serving import running

AUDIENCE = "https://memory.example.org"


@pytest.fixture(scope="module")
def identity() -> Iterator[Identity]:
    with identity_server() as identity:
        yield identity


def tokens_of(identity: Identity, **more: Any) -> Tokens:
    settings = Settings.load(config="", oidc_issuer=identity.url, oidc_audience=AUDIENCE, **more)
    tokens = Tokens.of(settings)
    assert tokens is not None
    return tokens


@pytest.fixture(scope="module")
def server(identity: Identity) -> Iterator[Server]:
    with (
        semmem.connect("sqlite::memory:", embedder="hashing") as mem,
        running(mem, tokens=tokens_of(identity)) as server,
    ):
        yield server


@pytest.fixture
def http(server: Server) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=server.url, timeout=60.0, trust_env=False) as client:
        yield client


def ask(http: httpx.Client, token: str, namespace: str = "team") -> httpx.Response:
    return http.get("/v1/memories", params={"namespace": namespace}, headers={"authorization": f"Bearer {token}"})


def test_a_token_reads_and_writes_in_its_namespaces_alone(http: httpx.Client, identity: Identity) -> None:
    by = {"authorization": f"Bearer {identity.token()}"}
    made = http.post("/v1/memories", json={"text": "A heron.", "id": "heron", "namespace": "team"}, headers=by)
    assert made.status_code == 201
    assert ask(http, identity.token(scope="semmem:read")).json()["memories"][0]["id"] == "heron"
    other = ask(http, identity.token(), "secret")
    assert problem(other) == (403, "AccessDenied")
    assert other.json()["detail"] == (
        "The token of ada works only in these namespaces: team, notes; give one of them as namespace."
    )
    refused = http.post(
        "/v1/memories",
        json={"text": "A crane.", "namespace": "team"},
        headers={"authorization": f"Bearer {identity.token(scope='semmem:read')}"},
    )
    assert refused.json()["detail"] == (
        "The token of ada may only read, and this needs the right write; ask the identity server for the scope "
        "semmem:write."
    )
    settings = http.patch("/v1/settings", params={"namespace": "team"}, json={"weights": {"lexical": 1}}, headers=by)
    assert problem(settings) == (403, "AccessDenied")
    admin = {"authorization": f"Bearer {identity.token(scope=['semmem:read', 'semmem:admin'])}"}
    assert (
        http.patch(
            "/v1/settings", params={"namespace": "team"}, json={"weights": {"lexical": 1}}, headers=admin
        ).status_code
        == 200
    )
    assert http.get("/session", headers=by).json() == {"name": "ada", "right": "write", "namespaces": ["team", "notes"]}


def test_the_python_client_and_the_command_line_take_a_token_as_their_key(
    server: Server, identity: Identity, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    with semmem.connect(server.url, key=identity.token(sub="bob", semmem_namespaces="bob")) as mem:
        mem.remember("The kettle is in the hall.", id="kettle", namespace="bob")
        assert mem.recall("where is the kettle?", namespace="bob")[0].id == "kettle"
        with pytest.raises(AccessDenied, match="The token of bob works only in these namespaces: bob"):
            mem.recall("anything", namespace="team")
    monkeypatch.setenv("SEMMEM_URL", server.url)
    monkeypatch.setenv("SEMMEM_KEY", identity.token(sub="bob", semmem_namespaces="bob"))
    code, out, _ = in_process(capfd)("recall", "kettle", "-n", "bob", "--json")
    assert (code, json.loads(out)["hits"][0]["memory"]["id"]) == (0, "kettle")


@pytest.mark.slow
def test_a_key_is_accepted_beside_tokens_and_nothing_without_either(
    server: Server, http: httpx.Client, identity: Identity
) -> None:
    assert server.service.mem.store.serving is not None
    keys = StoredKeys(server.service.mem.store.serving)
    _, text = keys.add("laptop")
    time.sleep(1.1)
    assert ask(http, text).status_code == 200
    keys.remove("laptop")
    refused = http.get("/v1/memories")
    assert problem(refused) == (401, "KeyRequired")
    assert refused.json()["detail"] == (
        f"This server requires a token of {identity.url}, or a key: set SEMMEM_KEY, or send the header Authorization: "
        "Bearer TOKEN."
    )
    assert http.get("/healthz").status_code == 200


def test_a_refusal_names_the_document_that_names_the_identity_server(http: httpx.Client, identity: Identity) -> None:
    where = 'Bearer resource_metadata="https://memory.example.org/.well-known/oauth-protected-resource"'
    assert http.get("/v1/memories").headers["www-authenticate"] == where
    assert ask(http, "a.b.c").headers["www-authenticate"] == f'{where}, error="invalid_token"'
    assert ask(http, "no").headers["www-authenticate"] == f'{where}, error="invalid_token"'
    about = http.get("/.well-known/oauth-protected-resource")
    assert about.headers["content-type"] == "application/json"
    assert about.json() == {
        "resource": "https://memory.example.org",
        "authorization_servers": [identity.url],
        "scopes_supported": ["semmem:read", "semmem:write", "semmem:admin"],
        "bearer_methods_supported": ["header"],
        "resource_name": "semmem",
    }
    assert http.get("/.well-known/oauth-protected-resource/elsewhere").status_code == 401


def test_the_document_stands_below_the_path_of_the_resource_too(identity: Identity) -> None:
    tokens = tokens_of(identity, oidc_resource="https://memory.example.org/team/mcp")
    at = "/.well-known/oauth-protected-resource"
    assert tokens.challenge == f'Bearer resource_metadata="https://memory.example.org{at}/team/mcp"'
    for path in (at, f"{at}/team/mcp"):
        about = tokens.metadata(path)
        assert about is not None
        assert about["resource"] == "https://memory.example.org/team/mcp"
    assert [tokens.metadata(path) for path in (f"{at}/team", f"{at}/", "/v1/memories")] == [None] * 3


def unsigned(identity: Identity) -> str:
    return _by_hand({"alg": "none", "kid": identity.keys[0].kid}, identity.claims(), lambda _: b"")


def by_public_key(identity: Identity) -> str:
    """The attack: the text of the public key, which everybody has, as the secret of HS256."""
    secret = identity.keys[0].as_pem(private=False)
    return _by_hand(
        {"alg": "HS256", "kid": identity.keys[0].kid},
        identity.claims(),
        lambda content: hmac.new(secret, content, hashlib.sha256).digest(),
    )


def forged(identity: Identity) -> str:
    """A token of ada whose claims somebody changed."""
    head, _, signature = identity.token().split(".")
    return ".".join((head, _part(identity.claims(semmem_namespaces=["secret"])), signature))


def _by_hand(header: dict[str, Any], claims: dict[str, Any], sign: Callable[[bytes], bytes]) -> str:
    content = f"{_part(header)}.{_part(claims)}"
    return f"{content}.{base64.urlsafe_b64encode(sign(content.encode())).decode().rstrip('=')}"


def _part(value: Any) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")


def now() -> int:
    return int(time.time())


REFUSED: dict[str, tuple[Callable[[Identity], str], str]] = {
    "another issuer": (
        lambda one: one.token(iss="https://elsewhere.example"), "The token is not issued by ISSUER; get one there."),
    "no issuer": (lambda one: one.token(iss=None), "The token is not issued by ISSUER; get one there."),
    "another audience": (
        lambda one: one.token(aud="https://other.example"),
        "The token is not for this server; get one with the audience https://memory.example.org."),
    "several audiences, none of them ours": (
        lambda one: one.token(aud=["a", "b"]),
        "The token is not for this server; get one with the audience https://memory.example.org."),
    "expired": (
        lambda one: one.token(exp=now() - 31, iat=now() - 60), "The token has expired; get a new one from ISSUER."),
    "not valid yet": (
        lambda one: one.token(nbf=now() + 60),
        "The token is not valid yet; compare the clocks of this server and of ISSUER."),
    "issued in the future": (
        lambda one: one.token(iat=now() + 60),
        "The token is not valid yet; compare the clocks of this server and of ISSUER."),
    "without an end": (
        lambda one: one.token(exp=None), "The token lacks a claim: it needs iss, sub, aud, iat and exp."),
    "without a subject": (
        lambda one: one.token(sub=None), "The token lacks a claim: it needs iss, sub, aud, iat and exp."),
    "an empty subject": (
        lambda one: one.token(sub=""), "The subject of the token must be 1 to 255 printable characters."),
    "a subject of two lines": (
        lambda one: one.token(sub="ada\nroot"), "The subject of the token must be 1 to 255 printable characters."),
    "a number as subject": (
        lambda one: one.token(sub=7), "The token has a claim or a key of a wrong type; get a new one from ISSUER."),
    "a text as its end": (
        lambda one: one.token(exp="soon"),
        "The token has a claim or a key of a wrong type; get a new one from ISSUER."),
    "no signature": (
        unsigned,
        "The token is signed by a method that is not accepted; let the identity server use one of RS256, RS384, "
        "RS512, PS256, PS384, PS512, ES256, ES384, ES512, EdDSA."),
    "HS256 by the public key": (
        by_public_key,
        "The token is signed by a method that is not accepted; let the identity server use one of RS256, RS384, "
        "RS512, PS256, PS384, PS512, ES256, ES384, ES512, EdDSA."),
    "another method than the key's": (
        lambda one: one.token(alg="RS512"),
        "The token is signed by another method than its key is for; get a new one."),
    "changed claims": (forged, "The signature of the token is wrong; send it as ISSUER gave it."),
    "no JWT": (
        lambda one: "a.b.c",
        "The token is not a JWT that can be read, of at most 8,192 characters; send the access token whole."),
    "too long": (
        lambda one: one.token(more="x" * 9_000),
        "The token is not a JWT that can be read, of at most 8,192 characters; send the access token whole."),
    "claims nested without end": (
        lambda one: f"{_part({'alg': 'RS256', 'kid': 'x'})}.{'W1tb' * 1_500}.x",
        "The token is not a JWT that can be read, of at most 8,192 characters; send the access token whole."),
}  # fmt: skip

DENIED: dict[str, tuple[dict[str, Any], str]] = {
    "no namespaces": (
        {"semmem_namespaces": None},
        "The token needs the claim 'semmem_namespaces', which names its namespaces: a text, or a list of texts that "
        "is not empty."),
    "an empty list of namespaces": (
        {"semmem_namespaces": []},
        "The token needs the claim 'semmem_namespaces', which names its namespaces: a text, or a list of texts that "
        "is not empty."),
    "namespaces as a mapping": (
        {"semmem_namespaces": {"team": True}},
        "The token needs the claim 'semmem_namespaces', which names its namespaces: a text, or a list of texts that "
        "is not empty."),
    "a number among the namespaces": (
        {"semmem_namespaces": ["team", 7]},
        "The token needs the claim 'semmem_namespaces', which names its namespaces: a text, or a list of texts that "
        "is not empty."),
    "every namespace": (
        {"semmem_namespaces": "*"},
        "The claim 'semmem_namespaces' of the token has '*', and a token names each of its namespaces; for the whole "
        "store, use a key of `semmem keys add`."),
    "a pattern of namespaces": (
        {"semmem_namespaces": ["team", "team-*"]},
        "The claim 'semmem_namespaces' of the token has 'team-*', and a token names each of its namespaces; for the "
        "whole store, use a key of `semmem keys add`."),
    "no right": (
        {"scope": None},
        "The token needs the claim 'scope', a text or a list with one of semmem:read, semmem:write, semmem:admin."),
    "a right of a wrong type": (
        {"scope": 3},
        "The token needs the claim 'scope', a text or a list with one of semmem:read, semmem:write, semmem:admin."),
    "rights of another program": (
        {"scope": "openid read semmem:everything"},
        "The claim 'scope' of the token allows nothing here; ask the identity server for one of the scopes "
        "semmem:read, semmem:write, semmem:admin."),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_a_token_that_is_not_valid_is_refused_in_a_sentence(http: httpx.Client, identity: Identity, case: str) -> None:
    make, sentence = REFUSED[case]
    answer = ask(http, make(identity))
    assert problem(answer) == (401, "KeyRequired")
    assert answer.json()["detail"] == sentence.replace("ISSUER", identity.url)


@pytest.mark.parametrize("case", DENIED)
def test_a_token_that_allows_nothing_is_refused_in_a_sentence(
    http: httpx.Client, identity: Identity, case: str
) -> None:
    claims, sentence = DENIED[case]
    answer = ask(http, identity.token(**claims))
    assert problem(answer) == (403, "AccessDenied")
    assert answer.json()["detail"] == sentence


def test_clocks_may_differ_by_half_a_minute(http: httpx.Client, identity: Identity) -> None:
    assert ask(http, identity.token(exp=now() - 15, iat=now() - 60)).status_code == 200
    assert ask(http, identity.token(nbf=now() + 15, iat=now() + 15)).status_code == 200


def test_other_claims_can_hold_the_namespaces_and_the_right(identity: Identity) -> None:
    tokens = tokens_of(identity, oidc_namespaces_claim="sub", oidc_right_claim="https://example.org/roles")
    key = asyncio.run(tokens.find(identity.token(**{"https://example.org/roles": ["staff", "semmem:read"]})))
    assert (key.name, key.right, key.namespaces) == ("ada", "read", ("ada",))


def test_one_person_is_one_client_whatever_the_token(identity: Identity) -> None:
    tokens = tokens_of(identity)

    async def ids(*names: str) -> list[str]:
        return [(await tokens.find(identity.token(sub=name, jti=str(n)))).id for n, name in enumerate(names)]

    first, second, other = asyncio.run(ids("ada", "ada", "bob"))
    assert first == second != other


@pytest.mark.filterwarnings("ignore:EdDSA is deprecated")  # it is what servers of today say
@pytest.mark.parametrize(("kind", "size", "alg"), [("EC", "P-256", "ES256"), ("OKP", "Ed25519", "EdDSA")])
def test_keys_of_elliptic_curves_sign_too(kind: str, size: str, alg: str) -> None:
    with identity_server() as identity:
        identity.rotate(kind=kind, size=size)
        assert asyncio.run(tokens_of(identity).find(identity.token(alg=alg))).name == "ada"


def test_a_published_key_whose_name_is_no_text_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    with identity_server() as identity:
        first = identity.published()["keys"][0]
        monkeypatch.setattr(identity, "published", lambda: {"keys": [{**first, "kid": ["x"]}, first]})
        assert asyncio.run(tokens_of(identity).find(identity.token())).name == "ada"


class Clock:
    """The time of a test, which passes when it says so."""

    now = 1_000.0

    def __call__(self) -> float:
        return self.now


def test_a_new_key_is_read_when_a_token_names_it_and_at_most_once_a_minute() -> None:
    clock = Clock()
    with identity_server() as identity:
        tokens = tokens_of(identity)
        tokens._server = IdentityServer(identity.url, clock=clock)

        async def steps() -> None:
            await tokens.find(identity.token())
            old = identity.token()
            identity.rotate()
            new = identity.token()
            with pytest.raises(KeyRequired, match=r"has no key '.*'; get a new token from it\."):
                await tokens.find(new)  # the keys were read a moment ago
            assert identity.reads == 1
            clock.now += 60
            assert (await tokens.find(new)).name == "ada"
            assert identity.reads == 2
            with pytest.raises(KeyRequired, match="has no key"):
                await tokens.find(old)  # the identity server has given it up
            for number in range(50):
                with pytest.raises(KeyRequired, match="has no key"):
                    await tokens.find(identity.token(kid=f"made up {number}"))
            assert identity.reads == 2

        asyncio.run(steps())


def test_a_token_that_names_no_key_is_of_the_only_one() -> None:
    clock = Clock()
    with identity_server() as identity:
        tokens = tokens_of(identity)
        tokens._server = IdentityServer(identity.url, clock=clock)

        async def steps() -> None:
            assert (await tokens.find(identity.token(kid=""))).name == "ada"
            identity.rotate()
            with pytest.raises(KeyRequired, match="The signature of the token is wrong"):
                await tokens.find(identity.token(kid=""))
            clock.now += 60
            with pytest.raises(KeyRequired, match="The signature of the token is wrong"):
                await tokens.find(identity.token(kid=""))  # it begins to read the keys, and does not wait
            assert tokens._server._reading is not None
            await tokens._server._reading
            assert (await tokens.find(identity.token(kid=""))).name == "ada"
            identity.rotate(forget=False)
            clock.now += 60
            await tokens.find(identity.token())
            with pytest.raises(KeyRequired, match="has more than one key, and the token names none"):
                await tokens.find(identity.token(kid=""))

        asyncio.run(steps())


def test_fifty_tokens_at_once_have_the_keys_read_once() -> None:
    with identity_server() as identity:
        tokens = tokens_of(identity)

        async def together() -> None:
            await asyncio.gather(*(tokens.find(identity.token(sub=f"one {n}")) for n in range(50)))

        asyncio.run(together())
        assert identity.reads == 1


def test_known_keys_go_on_while_the_identity_server_is_down() -> None:
    clock = Clock()
    with identity_server() as identity:
        tokens = tokens_of(identity)
        tokens._server = IdentityServer(identity.url, clock=clock)

        async def steps() -> None:
            await tokens.find(identity.token())
            identity.stop()
            clock.now += 7_200  # they are old, too
            assert (await tokens.find(identity.token())).name == "ada"
            assert tokens._server._reading is not None
            await tokens._server._reading
            assert (await tokens.find(identity.token())).name == "ada"

        asyncio.run(steps())


def test_without_any_key_the_answer_is_that_another_try_may_help(http: httpx.Client) -> None:
    with identity_server() as identity:
        tokens, token = tokens_of(identity), identity.token()
        identity.stop()
    with pytest.raises(KeyRequired) as raised:
        asyncio.run(tokens.find(token))
    assert raised.value.http_status == 503
    assert str(raised.value) == (
        f"The identity server {identity.url} does not tell its keys, so no token can be checked; ask again later."
    )


def test_the_audit_tells_a_token_from_a_key_of_the_same_name(identity: Identity, tmp_path: Path) -> None:
    keys = Keys(tmp_path / "keys.json")
    _, text = keys.add("ada", namespaces=["team"])
    with (
        semmem.connect("sqlite::memory:", embedder="hashing", audit=True) as mem,
        running(mem, keys=keys, tokens=tokens_of(identity)) as server,
        httpx.Client(base_url=server.url, timeout=60.0, trust_env=False) as client,
    ):
        assert [ask(client, by).status_code for by in (text, identity.token(sub="ada"))] == [200, 200]
        entries = [entry for entry in mem.audit() if entry.verb == "list"]
    tracing.switch_off()
    assert [(entry.who, entry.agent) for entry in entries] == [("ada", "ada"), ("token of ada", "ada")]


def test_a_damaged_key_among_those_that_are_published_takes_no_other_key_along() -> None:
    damaged: list[Any] = [{"kid": ["a"]}, {"kid": "b", "alg": ["RS256"]}, {"kid": "c", "n": 5}, {"kid": "d", "kty": 7}]
    with identity_server() as identity:
        whole = identity.published()["keys"]
        identity.published = lambda: {"keys": [None, "x", *({**whole[0], **one} for one in damaged), *whole]}  # type: ignore[method-assign]
        assert asyncio.run(tokens_of(identity).find(identity.token())).name == "ada"
        identity.published = lambda: {"keys": [{**whole[0], "kid": ["a"]}]}  # type: ignore[method-assign]
        with pytest.raises(KeyRequired, match="does not tell its keys, so no token can be checked; ask again later"):
            asyncio.run(tokens_of(identity).find(identity.token()))


def test_the_address_of_the_keys_may_have_a_query() -> None:
    with identity_server() as identity:
        identity.keys_at = f"{identity.url}/keys?p=policy"
        assert asyncio.run(tokens_of(identity).find(identity.token())).name == "ada"


def test_a_token_may_end_later_than_any_date() -> None:
    with identity_server() as identity:
        key = asyncio.run(tokens_of(identity).find(identity.token(exp=10**400)))
        assert key.expires_at == "9999-01-01T00:00:00+00:00"


def test_an_hour_later_a_key_that_was_withdrawn_is_known_no_more() -> None:
    clock = Clock()
    with identity_server() as identity:
        tokens = tokens_of(identity)
        tokens._server = IdentityServer(identity.url, clock=clock)

        async def steps() -> None:
            old = identity.token()
            await tokens.find(old)
            identity.rotate()
            clock.now += 3_600
            await tokens.find(old)  # it begins to read the keys, and does not wait
            assert tokens._server._reading is not None
            await tokens._server._reading
            with pytest.raises(KeyRequired, match="has no key"):
                await tokens.find(old)

        asyncio.run(steps())


def test_a_session_of_a_browser_ends_with_the_token_that_began_it(
    server: Server, http: httpx.Client, identity: Identity, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Later(datetime):
        """The time of a session, so many minutes ahead."""

        minutes = 0

        @classmethod
        def now(cls, tz: tzinfo | None = None) -> datetime:  # type: ignore[override]
            return datetime.now(tz) + timedelta(minutes=cls.minutes)

    monkeypatch.setattr("semmem.interfaces.http.sessions.datetime", Later)
    by = {"authorization": f"Bearer {identity.token(exp=now() + 1_200)}"}  # twenty minutes are left
    begun = http.post("/session", headers=by)
    cookie = {"cookie": begun.headers["set-cookie"].partition(";")[0], "sec-fetch-site": "same-origin"}
    http.cookies.clear()
    Later.minutes = 18
    assert http.get("/session", headers=cookie).json()["name"] == "ada"
    Later.minutes = 22
    assert problem(http.get("/session", headers=cookie)) == (401, "KeyRequired")


def test_a_server_that_accepts_tokens_may_listen_to_others(identity: Identity, tmp_path: Path) -> None:
    check_address("0.0.0.0", Keys(tmp_path / "keys.json"), tokens_of(identity))
    with pytest.raises(InvalidInput, match="semmem keys add"):
        check_address("0.0.0.0", Keys(tmp_path / "keys.json"), None)


WRONG: list[tuple[dict[str, str], str]] = [
    ({"oidc_issuer": "https://login.example.org"},
     "The setting oidc_issuer needs oidc_audience, the audience of the tokens that are for this server, such as "
     "https://memory.example.org."),
    ({"oidc_issuer": "http://login.example.org", "oidc_audience": AUDIENCE},
     "The setting oidc_issuer must be a URL such as https://login.example.org, not 'http://login.example.org'."),
    ({"oidc_issuer": "https://login.example.org", "oidc_audience": "http://memory.example.org"},
     "The setting oidc_audience must be a URL such as https://memory.example.org, not 'http://memory.example.org'."),
    ({"oidc_issuer": "https://login.example.org", "oidc_audience": "semmem"},
     "The setting oidc_audience is no URL but 'semmem', so oidc_resource has to give the public URL of this server, "
     "such as https://memory.example.org."),
    ({"oidc_audience": AUDIENCE},
     "The setting oidc_audience needs oidc_issuer, the URL of the identity server, such as "
     "https://login.example.org; without it, no token is asked for."),
    ({"oidc_resource": AUDIENCE},
     "The setting oidc_resource needs oidc_issuer, the URL of the identity server, such as "
     "https://login.example.org; without it, no token is asked for."),
    ({"oidc_issuer": "https://login.example.org", "oidc_audience": "semmem", "oidc_resource": "memory"},
     "The setting oidc_resource must be a URL such as https://memory.example.org, not 'memory'."),
]  # fmt: skip


@pytest.mark.parametrize(("settings", "sentence"), WRONG, ids=lambda one: str(one)[:40])
def test_wrong_settings_are_told_in_a_sentence(settings: dict[str, str], sentence: str) -> None:
    with pytest.raises(InvalidInput) as raised:
        Tokens.of(Settings.load(config="", **settings))
    assert str(raised.value) == sentence


def test_without_an_issuer_no_token_is_accepted(tmp_path: Path) -> None:
    assert Tokens.of(Settings.load(config="")) is None
    with semmem.connect("sqlite::memory:", embedder="none") as mem, running(mem) as server:
        assert (
            httpx.get(f"{server.url}/.well-known/oauth-protected-resource", trust_env=False, timeout=60).status_code
            == 404
        )


def test_a_server_whose_identity_server_does_not_answer_says_so_when_it_starts(identity: Identity) -> None:
    assert tokens_of(identity).ask() is None
    settings = Settings.load(config="", oidc_issuer="http://127.0.0.1:9", oidc_audience=AUDIENCE)
    tokens = Tokens.of(settings)
    assert tokens is not None
    sentence = tokens.ask()
    assert sentence is not None
    assert sentence.startswith("The identity server http://127.0.0.1:9 does not tell its keys (")
    assert sentence.endswith("); until it does, no token is accepted.")


def test_the_keys_that_were_read_at_the_start_are_not_read_again_for_the_first_token(
    identity: Identity, monkeypatch: pytest.MonkeyPatch
) -> None:
    tokens = tokens_of(identity)
    assert tokens.ask() is None
    monkeypatch.setattr(IdentityServer, "_read", lambda _: pytest.fail("the keys were read again"))
    assert asyncio.run(tokens.find(identity.token())).name
