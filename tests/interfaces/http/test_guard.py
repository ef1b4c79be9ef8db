"""Who may speak to a server: addresses, the Host and Origin of a request, keys."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from semmem.interfaces.http.guard import KEY, Guard, Guarded, check_address, is_loopback
from semmem.interfaces.http.keys import Keys
from semmem.model.errors import AccessDenied, InvalidInput


@pytest.mark.parametrize("host", ["127.0.0.1", "127.9.9.9", "::1", "[::1]", "localhost", "LOCALHOST."])
def test_a_loopback_address_needs_no_key(host: str, tmp_path: Path) -> None:
    assert is_loopback(host)
    check_address(host, Keys(tmp_path / "keys.json"))


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.5", "db.example", "localhost.example"])
def test_any_other_address_is_refused_without_a_key(host: str, tmp_path: Path) -> None:
    keys = Keys(tmp_path / "keys.json")
    with pytest.raises(InvalidInput, match="semmem keys add"):
        check_address(host, keys)
    keys.add("laptop")
    check_address(host, keys)


@pytest.mark.parametrize(
    ("host", "origin", "allowed"),
    [
        ("127.0.0.1:8765", None, True),
        ("localhost:8765", None, True),
        ("[::1]:8765", None, True),
        ("192.168.1.5", None, True),  # an address cannot be made to point elsewhere
        ("memories.example", None, True),
        ("MEMORIES.example.:443", None, True),
        ("evil.example", None, False),
        ("127.0.0.1.evil.example", None, False),
        ("user@127.0.0.1", None, False),
        ("127.0.0.1:port", None, False),
        ("127.0.0.1/x", None, False),
        ("", None, False),
        (None, None, False),
        ("127.0.0.1:8765", "http://127.0.0.1:8765", True),
        ("127.0.0.1:8765", "http://127.0.0.1:3000", False),
        ("127.0.0.1:8765", "https://evil.example", False),
        ("127.0.0.1:8765", "null", False),
        ("127.0.0.1:8765", "https://notes.example", True),
    ],
)
def test_host_and_origin_are_checked(host: str | None, origin: str | None, allowed: bool) -> None:
    guard = Guard.of(["memories.example"], ["https://notes.example/"])
    if allowed:
        guard.check(host, origin)
        return
    with pytest.raises(AccessDenied, match="--allow-"):
        guard.check(host, origin)


def test_a_page_of_the_same_host_under_another_scheme_is_another_page() -> None:
    guard = Guard()
    guard.check("localhost:80", "http://localhost:80", "http")
    guard.check("localhost:80", "https://localhost:80", "https")
    for origin, scheme in (("https://localhost:80", "http"), ("http://localhost:80", "https")):
        with pytest.raises(AccessDenied, match="--allow-origin"):
            guard.check("localhost:80", origin, scheme)


def test_an_origin_is_written_as_browsers_send_it() -> None:
    with pytest.raises(InvalidInput, match=r"https://example\.org"):
        Guard.of(origins=["notes.example"])


def asked(keys: Keys, *headers: tuple[str, str], path: str = "/v1/stats") -> tuple[int, dict[str, Any], list[Any]]:
    """Return status, body and what the application saw, of one request that a guard decides on."""
    seen: list[Any] = []
    sent: list[Any] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        seen.append(scope[KEY])
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"{}"})

    async def send(message: Any) -> None:
        sent.append(message)

    async def receive() -> Any:
        return {"type": "http.request", "body": b"", "more_body": False}

    raw = [(name.encode(), value.encode()) for name, value in headers]
    guarded = Guarded(app, Guard(), keys, open_paths=["/healthz"])
    asyncio.run(guarded({"type": "http", "path": path, "headers": raw}, receive, send))
    return sent[0]["status"], json.loads(sent[1]["body"]), seen


def test_a_request_is_let_in_with_its_key_or_answered_with_a_problem(tmp_path: Path) -> None:
    keys = Keys(tmp_path / "keys.json")
    host = ("host", "127.0.0.1")
    assert asked(keys, host) == (200, {}, [None])
    key, text = keys.add("laptop")
    assert asked(keys, host, ("authorization", f"Bearer {text}")) == (200, {}, [key])
    status, problem, seen = asked(keys, host)
    assert (status, problem["class"], problem["status"], seen) == (401, "KeyRequired", 401, [])
    assert asked(keys, host, path="/healthz") == (200, {}, [None])
    status, problem, seen = asked(keys, ("host", "evil.example"), path="/healthz")
    assert (status, problem["class"], seen) == (403, "AccessDenied", [])
    status, _, _ = asked(keys, host, host)  # two hosts: which one would be meant?
    assert status == 403


def test_a_request_that_a_page_of_elsewhere_caused_without_an_origin_reads_nothing(tmp_path: Path) -> None:
    keys, host = Keys(tmp_path / "keys.json"), ("host", "127.0.0.1")
    for site in ("cross-site", "same-site"):
        status, problem, seen = asked(keys, host, ("sec-fetch-site", site))
        assert (status, problem["class"], seen) == (403, "AccessDenied", []), site
        # a browser names the origin of what a script asks for, and that is decided by the origin
        assert asked(keys, host, ("sec-fetch-site", site), ("origin", "http://127.0.0.1"))[0] == 200, site
    for site in ("same-origin", "none"):
        assert asked(keys, host, ("sec-fetch-site", site))[0] == 200, site


def test_a_socket_of_a_page_is_closed_as_against_the_rules_of_the_server(tmp_path: Path) -> None:
    sent: list[Any] = []

    async def nothing(*_: Any) -> None:
        raise AssertionError("the application is never asked")

    async def send(message: Any) -> None:
        sent.append(message)

    guarded = Guarded(nothing, Guard(), Keys(tmp_path / "keys.json"))
    asyncio.run(guarded({"type": "websocket", "path": "/", "headers": []}, nothing, send))
    assert sent == [{"type": "websocket.close", "code": 1008}]  # RFC 6455, 7.4.1: a violation of policy
