"""Two servers over one store behind a plain proxy, which hands each request to the next of them by turns."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import cycle
from threading import Lock, Thread

import httpx
import pytest

import semmem
from semmem.client.memory import Semmem
from semmem.interfaces.http.keys import StoredKeys
from semmem.interfaces.http.limits import Limits
from semmem.interfaces.http.server import Server
from tests.interfaces.http.test_routes import problem
from tests.serving import running


@contextmanager
def proxy(*servers: Server) -> Iterator[str]:
    """Yield the URL of a proxy that hands each request, headers and body as they are, to the next server."""
    ports, lock = cycle(httpx.URL(server.url).port for server in servers), Lock()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def answer(self) -> None:
            with lock:
                port = next(ports)
            body = self.rfile.read(int(self.headers.get("content-length", 0)))
            connection = HTTPConnection("127.0.0.1", port, timeout=60)
            connection.request(self.command, self.path, body, dict(self.headers))
            answer = connection.getresponse()
            content = answer.read()
            self.send_response_only(answer.status)
            for name, value in answer.getheaders():
                if name.lower() not in ("transfer-encoding", "content-length"):
                    self.send_header(name, value)
            self.send_header("content-length", str(len(content)))
            self.send_header("x-port", str(port))
            self.end_headers()
            self.wfile.write(content)
            connection.close()

        do_GET = do_POST = do_PATCH = do_DELETE = answer

        def log_message(self, *_: object) -> None:
            pass

    listening = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=listening.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listening.server_port}"
    finally:
        listening.shutdown()
        thread.join()
        listening.server_close()


@contextmanager
def behind(url: str, limits: Limits | None = None) -> Iterator[tuple[Semmem, httpx.Client]]:
    """Yield a store, and a client with a key of it that asks two servers over it through a proxy."""
    with (
        semmem.connect(url, embedder="hashing", recall_log=True, resident_mb=64) as one,
        semmem.connect(url, embedder="hashing", recall_log=True, resident_mb=64) as two,
    ):
        assert one.store.serving is not None
        _, key = StoredKeys(one.store.serving).add("laptop", right="admin")
        headers = {"authorization": f"Bearer {key}"}
        with (
            running(one, limits=limits) as first,
            running(two, limits=limits) as second,
            proxy(first, second) as address,
            httpx.Client(base_url=address, headers=headers, timeout=60, trust_env=False) as http,
        ):
            yield one, http


@pytest.fixture
def both(store_url: str) -> Iterator[tuple[Semmem, httpx.Client]]:
    with behind(store_url) as both:
        yield both


@pytest.mark.slow
def test_what_one_server_stored_or_forgot_the_other_one_finds_or_misses_at_once(
    both: tuple[Semmem, httpx.Client],
) -> None:
    _, http = both

    def found() -> set[str]:
        answer = http.post("/v1/recall", json={"query": "Where does the heron sleep?"})
        return {hit["memory"]["id"] for hit in answer.json()["hits"]}

    for _ in range(8):  # so that each has the namespace in memory
        found()
    kept: set[str] = set()
    for n in range(6):
        stored = http.post("/v1/memories", json={"text": f"The heron {n} sleeps in the reeds.", "id": f"h{n}"})
        assert stored.status_code == 201
        kept.add(f"h{n}")
        assert found() == found() == kept
        if n % 2:
            assert http.delete(f"/v1/memories/h{n}").status_code == 200
            kept.remove(f"h{n}")
            assert found() == found() == kept


def test_a_write_that_is_sent_again_through_the_proxy_is_done_once_and_told_once(
    both: tuple[Semmem, httpx.Client],
) -> None:
    mem, http = both
    answers = [
        http.post("/v1/memories", json={"text": "The heron sleeps."}, headers={"Idempotency-Key": "k"})
        for _ in range(4)
    ]
    assert len({answer.headers["x-port"] for answer in answers}) == 2
    assert len({answer.json()["id"] for answer in answers}) == 1
    assert mem.stats().memories == 1
    changed = [http.get("/v1/changes").json()["changes"] for _ in range(2)]
    assert changed[0] == changed[1]
    assert len(changed[0]) == 1


def test_the_log_of_recalls_has_those_of_both_servers(both: tuple[Semmem, httpx.Client]) -> None:
    mem, http = both
    http.post("/v1/memories", json={"text": "The heron sleeps.", "id": "heron"})
    asked = [http.post("/v1/recall", json={"query": f"heron {n}"}).json()["id"] for n in range(4)]
    assert {row.id for row in mem.recalls()} == set(asked)


def test_a_rate_is_that_of_both_servers_together(store_url: str) -> None:
    with behind(store_url, Limits(rate=0.001, burst=3, shared=True)) as (_, http):
        answers = [http.get("/v1/namespaces") for _ in range(7)]
        assert [answer.status_code for answer in answers[:3]] == [200] * 3
        assert {problem(answer) for answer in answers[3:]} == {(429, "LimitExceeded")}
        assert len({answer.headers["x-port"] for answer in answers[3:]}) == 2
