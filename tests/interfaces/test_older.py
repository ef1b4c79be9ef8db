"""The older memories that `remember` names, at each interface that a reader sees."""

from __future__ import annotations

import json
from typing import Any

import pytest
from anyio.from_thread import start_blocking_portal

import semmem
from semmem.interfaces.cli.app import run
from tests.interfaces.mcp.clients import in_memory
from tests.serving import serving

OLD = {"text": "Ana lives in Lisbon.", "id": "lisbon", "created_at": "2026-01-31"}
NEW = {"text": "Ana moved to Porto.", "id": "porto"}
NAMED = {"id": "lisbon", "text": "Ana lives in Lisbon.", "created_at": "2026-01-31T00:00:00+00:00"}


@pytest.fixture
def url(store_url: str, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("SEMMEM_EMBEDDER", "hashing")
    with semmem.connect(store_url) as mem:
        mem.remember(**OLD)
    return store_url


def test_the_command_line_prints_them_below_the_memory(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["remember", NEW["text"], "--id", "porto", "--url", url]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[-2:] == ["Older memories that it may outdate:", "  lisbon  2026-01-31  Ana lives in Lisbon."]
    assert run(["remember", "Ana moved to Rome.", "--url", url, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["older"][0]["id"] == "porto"
    assert run(["remember", "Zinc boils at 907.", "--url", url, "--json"]) == 0
    assert "older" not in json.loads(capsys.readouterr().out)


def test_a_client_of_the_server_gets_them_as_the_server_does(url: str) -> None:
    with semmem.connect(url) as mem, serving(mem) as address, semmem.connect(address) as client:
        (one,) = client.remember(**NEW).older
        assert one.as_dict() == NAMED
        assert client.get("porto").older == ()


def test_an_agent_is_told_of_them_and_of_the_call_that_says_what_is_outdated(url: str) -> None:
    with (
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(in_memory(url, personal=None)) as client,
    ):
        told: Any = portal.call(client.call_tool, "memory_remember", NEW)
        assert told.structured_content["older"] == [{"id": "lisbon", "text": "Ana lives in Lisbon."}]
        link = {"id": "porto", "type": "supersedes", "to": "lisbon"}
        linked: Any = portal.call(client.call_tool, "memory_link", link)
        assert not linked.is_error
