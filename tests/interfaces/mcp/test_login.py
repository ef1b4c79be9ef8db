"""An MCP client logs in: the SDK's own OAuth client, a person with a password, and a real identity server."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx2
import pytest
from mcp import Client
from mcp.client.auth import OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import AuthorizationCodeResult, OAuthClientMetadata

from semmem.config import Settings
from semmem.interfaces.http.keys import Keys
from semmem.interfaces.http.tokens import Tokens
from semmem.interfaces.mcp.streamable_http import HttpServer
from tests.identity import Identity, identity_server
from tests.interfaces.mcp.clients import ask, refusal
from tests.interfaces.mcp.test_streamable_http import posted, running
from tests.stores.postgres.own_server import free_port

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
def identity() -> Iterator[Identity]:
    with identity_server() as identity:
        identity.add("ada", "lovelace", rights=("semmem:read", "semmem:write"), namespaces=["engine", "notes"])
        identity.add("guest", "guest", rights=("semmem:read",), namespaces=["engine"])
        yield identity


@pytest.fixture
def server(tmp_path: Path, identity: Identity) -> Iterator[HttpServer]:
    port = free_port()  # the resource is the server's own URL, which the settings name before it starts
    url = f"http://127.0.0.1:{port}/mcp"
    tokens = Tokens.of(Settings.load(config="", oidc_issuer=identity.url, oidc_audience=url))
    with running(tmp_path, Keys(tmp_path / "keys.json"), tokens=tokens, port=port) as server:
        assert server.url == url
        yield server


class Storage:
    """Where a client keeps its registration and its tokens."""

    def __init__(self) -> None:
        self.tokens: Any = None
        self.client: Any = None

    async def get_tokens(self) -> Any:
        return self.tokens

    async def set_tokens(self, tokens: Any) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> Any:
        return self.client

    async def set_client_info(self, client_info: Any) -> None:
        self.client = client_info


@asynccontextmanager
async def logged_in(url: str, person: str, password: str, storage: Storage) -> AsyncIterator[Client]:
    """Connect a client that knows nothing but the URL; the person logs in where the server sends the browser."""
    came_back: list[str] = []

    async def browser(address: str) -> None:
        async with httpx2.AsyncClient(trust_env=False) as browser:
            answer = await browser.post(address, data={"person": person, "password": password})
        assert answer.status_code == 302, answer.text
        came_back.append(answer.headers["location"])

    async def callback() -> AuthorizationCodeResult:
        found = parse_qs(urlsplit(came_back[-1]).query)
        return AuthorizationCodeResult(code=found["code"][0], state=found["state"][0])

    about = OAuthClientMetadata(
        redirect_uris=["http://127.0.0.1:1/callback"], client_name="a test", token_endpoint_auth_method="none"
    )
    provider = OAuthClientProvider(
        server_url=url, client_metadata=about, storage=storage, redirect_handler=browser, callback_handler=callback
    )
    async with (
        httpx2.AsyncClient(auth=provider, trust_env=False) as carrier,
        Client(streamable_http_client(url, http_client=carrier)) as client,
    ):
        yield client


async def test_a_client_that_knows_the_address_alone_logs_in_and_works_in_its_namespaces(
    server: HttpServer, identity: Identity
) -> None:
    storage = Storage()
    async with logged_in(server.url, "ada", "lovelace", storage) as client:
        stored = (await ask(client, "memory_remember", text="The Kestrel is our logger."))["memory"]
        assert stored["namespace"] == "engine"
        answer = await ask(client, "memory_recall", query="what is the Kestrel?")
        assert [hit["id"] for hit in answer["hits"]] == [stored["id"]]
        assert answer["scope"]["from"] == "the token of ada"
        error = await refusal(client, "memory_recall", query="anything", namespace="secret")
        assert error["message"] == (
            "The token of ada works only in these namespaces: engine, notes; give one of them as namespace."
        )
    assert storage.tokens.scope == "semmem:read semmem:write"
    assert storage.client.client_id in identity.clients


async def test_a_person_who_may_only_read_is_told_which_scope_a_write_needs(server: HttpServer) -> None:
    async with logged_in(server.url, "guest", "guest", Storage()) as client:
        assert (await ask(client, "memory_recall", query="anything"))["hits"] == []
        error = await refusal(client, "memory_remember", text="A heron.")
        assert error["message"] == (
            "The token of guest may only read, and this needs the right write; ask the identity server for the scope "
            "semmem:write."
        )


@pytest.mark.slow
async def test_a_client_whose_token_is_not_accepted_any_more_logs_in_again(
    server: HttpServer, identity: Identity
) -> None:
    storage = Storage()
    async with logged_in(server.url, "ada", "lovelace", storage) as client:
        await ask(client, "memory_recall", query="anything")
    first = storage.tokens.access_token
    storage.tokens.access_token = first[:-8] + "AAAAAAAA"
    async with logged_in(server.url, "ada", "lovelace", storage) as client:
        await ask(client, "memory_recall", query="anything")
    assert storage.tokens.access_token != first
    assert len(identity.clients) >= 1


def test_a_request_without_a_token_is_refused_and_told_where_to_get_one(server: HttpServer, identity: Identity) -> None:
    status, problem = posted(server.url)
    assert (status, problem["class"]) == (401, "KeyRequired")
    token = identity.token(aud=server.url, semmem_namespaces="engine")
    assert posted(server.url, Authorization=f"Bearer {token}")[0] == 200
    status, problem = posted(server.url, Authorization=f"Bearer {identity.token()}")
    assert (status, problem["detail"]) == (
        401, f"The token is not for this server; get one with the audience {server.url}."
    )  # fmt: skip
