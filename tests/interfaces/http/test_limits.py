"""Limits on size, rate and time; requests that are sent twice; clients that go away; a server that stops."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

import semmem
from semmem.client.memory import Semmem
from semmem.interfaces.http.limits import Limits, Patience, Rates, Workers
from semmem.interfaces.http.server import Server
from semmem.model.errors import InvalidInput, LimitExceeded
from tests.interfaces.http.test_routes import problem
from tests.serving import running, serving
from tests.waiting import until

LINES = {"content-type": "application/x-ndjson"}


class Held:
    """A verb that waits until it is let go, and counts its calls."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, mem: Semmem) -> None:
        self.go = threading.Event()
        self.calls = 0
        self._real = mem.store.stats
        monkeypatch.setattr(mem.store, "stats", self)

    def __call__(self, *args: Any, **how: Any) -> Any:
        self.calls += 1
        assert self.go.wait(60)
        return self._real(*args, **how)


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch, mem: Semmem) -> Iterator[Held]:
    held = Held(monkeypatch, mem)
    yield held
    held.go.set()


def test_a_server_takes_16_mib_400_requests_at_once_and_streams_of_4_gib_unless_it_is_told_otherwise() -> None:
    assert asdict(Limits()) == {
        "body_bytes": 16_777_216, "stream_bytes": 4_294_967_296, "rate": 200, "burst": 400, "seconds": 60,
        "stream_seconds": 3_600, "head_seconds": 20, "threads": 8, "waiting": 256, "streams": 256, "shared": False,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("limit", "least", "most"),
    [
        ("body_bytes", 1, 1_073_741_824), ("stream_bytes", 1, 1_125_899_906_842_624), ("rate", 0, 1_000_000),
        ("burst", 1, 2_000_000), ("stream_seconds", 0.001, 604_800), ("threads", 1, 1_000), ("waiting", 0, 1_000_000),
        ("streams", 1, 10_000), ("seconds", 0.001, 86_400), ("head_seconds", 0.001, 86_400),
    ],
)  # fmt: skip
def test_each_limit_has_a_least_and_a_largest_value(limit: str, least: float, most: float) -> None:
    assert asdict(Limits(**{limit: least}))[limit] == least
    assert asdict(Limits(**{limit: most}))[limit] == most
    for beyond in (least / 2 if least == 0.001 else least - 1, most + 1):
        with pytest.raises(InvalidInput, match=r"must be a .*number from "):
            Limits(**{limit: beyond})


def test_a_body_or_a_line_that_is_too_large_is_refused(mem: Semmem) -> None:
    with serving(mem, limits=Limits(body_bytes=1_000, stream_bytes=5_000)) as url:
        long = json.dumps({"text": "a" * 2_000})
        whole = httpx.post(f"{url}/v1/memories", content=long, headers={"content-type": "application/json"}, timeout=60)
        assert problem(whole) == (413, "InvalidInput")
        for line in (long, f"{long}\n", f'{{"text": "a"}}\n{long}\n{{"text": "b"}}\n'):
            assert problem(httpx.post(f"{url}/v1/memories", content=line, headers=LINES, timeout=60)) == (
                413,
                "InvalidInput",
            )
        assert mem.stats().memories == 0
        many = "".join(json.dumps({"text": f"Note {n}."}) + "\n" for n in range(1_000))
        assert problem(httpx.post(f"{url}/v1/memories", content=many, headers=LINES, timeout=60)) == (
            413,
            "InvalidInput",
        )
        few = "".join(json.dumps({"text": f"Note {n}."}) + "\n" for n in range(100))
        assert httpx.post(f"{url}/v1/memories", content=few, headers=LINES, timeout=60).json()["remembered"] == 100


def test_more_requests_than_the_rate_are_told_when_to_come_again(mem: Semmem) -> None:
    with serving(mem, limits=Limits(rate=0.01, burst=3)) as url:
        answers = [httpx.get(f"{url}/v1/stats", timeout=60) for _ in range(4)]
        assert [one.status_code for one in answers] == [200, 200, 200, 429]
        assert problem(answers[-1]) == (429, "LimitExceeded")
        assert 90 <= int(answers[-1].headers["retry-after"]) <= 100
        assert httpx.get(f"{url}/healthz", timeout=60).status_code == 200


def test_a_client_earns_its_requests_again() -> None:
    now = [0.0]
    rates = Rates(2.0, 2, lambda: now[0])
    assert [rates.take("a") for _ in range(3)] == [0.0, 0.0, 0.5]
    assert rates.take("b") == 0.0
    now[0] = 0.5
    assert [rates.take("a"), rates.take("a")] == [0.0, 0.5]
    now[0] = 100.0
    assert [rates.take("a") for _ in range(3)] == [0.0, 0.0, 0.5]
    assert Rates(0.0, 1).take("a") == 0.0


def test_a_request_that_is_refused_takes_nothing() -> None:
    now = [0.0]
    rates = Rates(2.0, 1, lambda: now[0])
    assert rates.take("a") == 0.0
    for at, wait in ((0.25, 0.25), (0.375, 0.125), (0.5, 0.0), (0.5, 0.5)):
        now[0] = at
        assert rates.take("a") == wait


def test_of_too_many_clients_the_one_that_asked_longest_ago_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Rates, "_MOST", 2)
    rates = Rates(1.0, 1, lambda: 0.0)
    assert [rates.take(client) for client in "abac"] == [0.0, 0.0, 1.0, 0.0]  # b asked longest ago
    assert rates.take("a") == 1.0
    assert rates.take("b") == 0.0


def test_an_answer_that_takes_too_long_is_told_so_and_its_thread_is_free_again(mem: Semmem, held: Held) -> None:
    with serving(mem, limits=Limits(seconds=0.3, threads=1)) as url:
        slow = httpx.get(f"{url}/v1/stats", timeout=60)
        assert problem(slow) == (504, "LimitExceeded")
        held.go.set()
        until(lambda: httpx.get(f"{url}/v1/stats", timeout=60).status_code == 200)


def test_a_verb_that_has_not_begun_is_never_called_when_nobody_waits_for_it() -> None:
    async def scene() -> tuple[list[str], int]:
        workers, done, go = Workers(Limits(threads=1, waiting=2)), list[str](), threading.Event()
        first = asyncio.ensure_future(workers.run(lambda: (go.wait(60), done.append("first"))))
        await asyncio.sleep(0.05)
        second = asyncio.ensure_future(workers.run(lambda: done.append("second")))
        third = asyncio.ensure_future(workers.run(lambda: done.append("third")))
        await asyncio.sleep(0.05)
        with pytest.raises(LimitExceeded, match="is overloaded"):
            await workers.run(lambda: None)
        second.cancel()
        await asyncio.sleep(0.05)
        go.set()
        await asyncio.gather(first, third)
        await asyncio.sleep(0.05)
        workers.close(60)
        return done, workers.pending

    assert asyncio.run(scene()) == (["first", "third"], 0)


@pytest.mark.parametrize("wrong", [{"body_bytes": 0}, {"seconds": 0}, {"threads": 0}, {"rate": -1}, {"waiting": -1}])
def test_a_limit_that_would_let_nothing_in_is_refused(wrong: dict[str, Any]) -> None:
    said = r"(--|The limit )[a-z_-]+ must be a (whole )?number from .* to [0-9]+, not "
    with pytest.raises(InvalidInput, match=said):
        Limits(**wrong)


def test_a_request_that_is_sent_again_is_done_once(http: httpx.Client, mem: Semmem) -> None:
    once = {"idempotency-key": "one"}
    first = http.post("/v1/memories", json={"text": "The key is red."}, headers=once)
    again = http.post("/v1/memories", json={"text": "The key is red."}, headers=once)
    assert (first.status_code, again.content, mem.stats().memories) == (201, first.content, 1)
    assert again.headers["etag"] == first.headers["etag"]
    other = http.post("/v1/memories", json={"text": "The key is blue."}, headers=once)
    assert problem(other) == (422, "InvalidInput")
    assert http.post("/v1/memories", json={"text": "x"}, headers={"idempotency-key": "two"}).status_code == 201
    for wrong in ("", "x" * 256):
        assert problem(http.post("/v1/memories", json={"text": "x"}, headers={"idempotency-key": wrong}))[0] == 422
    assert mem.stats().memories == 2
    plan = {"recipe": {"name": "hybrid", "weights": {"dense": 0}}, "k": 3, "leg": "lexical"}
    assert http.post("/v1/probe", json=plan, headers={"idempotency-key": "four"}).status_code == 200
    assert http.post("/v1/memories", json={"text": ""}, headers={"idempotency-key": "three"}).status_code == 422
    assert http.post("/v1/memories", json={"text": "y"}, headers={"idempotency-key": "three"}).status_code == 201


def test_a_request_that_is_sent_again_to_a_server_that_was_restarted_is_done_once(mem: Semmem) -> None:
    ids = []
    for _ in range(2):
        with serving(mem) as url:
            once = {"idempotency-key": "one"}
            made = httpx.post(f"{url}/v1/memories", json={"text": "The key is red."}, headers=once, timeout=60)
            lines = '{"text": "a"}\n{"text": "b"}\n'
            report = httpx.post(f"{url}/v1/memories", content=lines, headers=once | LINES, timeout=60).json()
            ids.append((made.json()["id"], report["remembered"] + report["unchanged"]))
    assert ids[0] == ids[1]
    assert mem.stats().memories == 3


class HeldForget:
    """A forget that waits until it is let go, and counts its calls."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, mem: Semmem) -> None:
        self.go, self.calls = threading.Event(), 0
        self._real = mem.store.forget
        monkeypatch.setattr(mem.store, "forget", self)

    def __call__(self, *args: Any, **named: Any) -> Any:
        self.calls += 1
        assert self.go.wait(60)
        return self._real(*args, **named)


def forget_once(url: str, id: str = "key") -> httpx.Response:
    return httpx.post(f"{url}/v1/forget", json={"id": id}, headers={"idempotency-key": "one"}, timeout=60)


def test_a_request_that_is_sent_again_while_it_is_at_work_waits_for_its_answer(
    mem: Semmem, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = HeldForget(monkeypatch, mem)
    mem.remember("The key is red.", id="key")
    answers: list[httpx.Response] = []
    with running(mem) as server:
        threads = [threading.Thread(target=lambda: answers.append(forget_once(server.url))) for _ in range(2)]
        for thread in threads:
            thread.start()
        until(lambda: held.calls == 1 and len(server._uvicorn.server_state.tasks) == 2)
        assert problem(forget_once(server.url, "other")) == (422, "InvalidInput")
        held.go.set()
        for thread in threads:
            thread.join(60)
        assert [one.json()["forgotten"] for one in answers] == [1, 1]
        assert forget_once(server.url).json()["forgotten"] == 1
    assert held.calls == 1


def test_a_write_that_takes_too_long_is_done_once_and_its_answer_is_had_by_asking_again(
    mem: Semmem, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = HeldForget(monkeypatch, mem)
    mem.remember("The key is red.", id="key")
    with serving(mem, limits=Limits(seconds=0.3)) as url:
        for _ in range(2):
            late = forget_once(url)
            assert problem(late) == (504, "LimitExceeded")
            assert "the same Idempotency-Key sent again gets it" in late.json()["detail"]
        held.go.set()
        until(lambda: forget_once(url).json().get("forgotten") == 1)
    assert held.calls == 1


def test_a_server_that_stops_waits_for_a_verb_as_long_as_its_grace(mem: Semmem, held: Held) -> None:
    with running(mem, grace_s=0.2) as server:
        asking = threading.Thread(target=lambda: httpx.get(f"{server.url}/v1/stats", timeout=60))
        asking.daemon = True
        asking.start()
        until(lambda: held.calls == 1)
    assert server.service.workers.at_work  # running() fails where the server has not ended
    held.go.set()
    until(lambda: not server.service.workers.at_work)


def test_what_was_asked_is_finished_when_the_server_stops(mem: Semmem, held: Held) -> None:
    answers: list[httpx.Response] = []
    with running(mem, grace_s=60) as server:
        asking = threading.Thread(target=lambda: answers.append(httpx.get(f"{server.url}/v1/stats", timeout=60)))
        with httpx.Client(base_url=server.url, timeout=60.0, trust_env=False) as idle:
            assert idle.get("/readyz").json() == {"status": "ready"}
            asking.start()
            until(lambda: held.calls == 1)
            server.stop()
        held.go.set()
        asking.join(60)
    assert answers[0].status_code == 200
    with pytest.raises(httpx.ConnectError):
        httpx.get(f"{server.url}/healthz", timeout=60)


def test_a_server_whose_store_does_not_answer_lives_and_is_not_ready() -> None:
    with semmem.connect("sqlite::memory:", embedder="none") as mem, serving(mem) as url:
        assert httpx.get(f"{url}/readyz", timeout=60).status_code == 200
        mem.store.close()
        assert problem(httpx.get(f"{url}/readyz", timeout=60)) == (503, "StoreClosed")
        assert httpx.get(f"{url}/healthz", timeout=60).json()["status"] == "ok"
        assert problem(httpx.get(f"{url}/v1/stats", timeout=60)) == (503, "StoreClosed")


def raw(url: str, head: str, *pieces: bytes) -> socket.socket:
    """Send the beginning of a request by hand and return the open connection."""
    place = urlsplit(url)
    connection = socket.create_connection((place.hostname, place.port), timeout=60)
    connection.sendall(f"{head}\r\nHost: {place.netloc}\r\n".encode() + b"\r\n".join(pieces))
    return connection


@pytest.mark.slow
def test_a_client_that_goes_away_leaves_no_batch_in_part_and_no_connection_behind(
    tmp_path: Path,
) -> None:
    with (
        semmem.connect(f"sqlite://{tmp_path / 'notes.db'}", embedder="none", pool_size=2) as mem,
        running(mem) as server,
    ):
        head = "POST /v1/memories?batch_size=2 HTTP/1.1\r\nContent-Type: application/x-ndjson\r\nContent-Length: 9999"
        for _ in range(4):
            with raw(server.url, head, b"", b'{"text": "a"}\n{"text": "b"}\n{"text": "c"}\n'):
                until(lambda: mem.stats().memories % 2 == 0 and mem.stats().memories > 0)
        assert mem.remember_many([{"text": f"Note {n} " + "x" * 1_000} for n in range(3_000)]).remembered == 3_000
        for _ in range(4):
            with raw(server.url, "GET /v1/export HTTP/1.1", b"", b"") as connection:
                assert connection.recv(100).startswith(b"HTTP/1.1 200")
        for _ in range(4):
            assert httpx.get(f"{server.url}/v1/stats", timeout=60).status_code == 200
        until(lambda: "semmem_verbs_at_work 0.0" in httpx.get(f"{server.url}/metrics", timeout=60).text)
        assert (mem.stats().memories - 3_000) % 2 == 0
        whole = httpx.get(f"{server.url}/v1/export", timeout=60)
        assert len(whole.text.splitlines()) == mem.stats().memories


def test_a_client_that_sends_nothing_more_is_given_up(mem: Semmem) -> None:
    with serving(mem, limits=Limits(seconds=0.3, threads=1)) as url:
        for kind in ("application/json", "application/x-ndjson"):
            head = f"POST /v1/memories HTTP/1.1\r\nContent-Type: {kind}\r\nContent-Length: 99"
            with raw(url, head, b"", b'{"text": "a"}\n') as connection:
                assert connection.recv(100).startswith(b"HTTP/1.1 429")
        until(lambda: httpx.get(f"{url}/v1/stats", timeout=60).status_code == 200)
    assert mem.stats().memories == 0


def test_a_client_has_let_its_server_wait_for_nothing_before_its_first_piece() -> None:
    assert asyncio.run(Patience(Limits(seconds=0.99)).wait_for(asyncio.sleep(0, "a piece"))) == "a piece"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "piece", "limits", "said"),
    [
        ("application/json", b"x", {"seconds": 0.6}, "The body was not whole after 0.6 seconds"),
        ("application/x-ndjson", b"x", {"seconds": 0.6}, "No whole line came for 0.6 seconds"),
        ("application/x-ndjson", b" \r\n", {"seconds": 0.6}, "No whole line came for 0.6 seconds"),
        (
            "application/x-ndjson",
            b'{"text": "b"}\n',
            {"stream_seconds": 0.6},
            "has let the server wait for 0.6 seconds",
        ),
    ],
)
def test_a_client_that_sends_a_little_now_and_then_holds_no_thread_for_ever(
    mem: Semmem, kind: str, piece: bytes, limits: dict[str, Any], said: str
) -> None:
    with serving(mem, limits=Limits(threads=1, **limits)) as url:
        head = f"POST /v1/memories HTTP/1.1\r\nContent-Type: {kind}\r\nContent-Length: 9999"
        with raw(url, head, b"", b"") as slow:
            slow.settimeout(0.1)
            told, end = b"", time.monotonic() + 60
            while said.encode() not in told and time.monotonic() < end:
                try:
                    told += slow.recv(4_096)
                except TimeoutError:
                    slow.sendall(piece)
        assert told.startswith(b"HTTP/1.1 429"), told
        until(lambda: httpx.get(f"{url}/v1/stats", timeout=60).status_code == 200)


@pytest.mark.parametrize(
    "sent", [b"GET /v1/stats\r\n\r\n", b"GET / HTTP/1.1\r\n\r\n", b"GET / HTTP/1.1\r\nHost: a\r\nBad Header: x\r\n\r\n"]
)
def test_what_is_not_http_is_answered_with_a_problem_too(http_server: Server, sent: bytes) -> None:
    place = urlsplit(http_server.url)
    with socket.create_connection((place.hostname, place.port), timeout=60) as connection:
        connection.sendall(sent)
        head, _, body = b"".join(iter(lambda: connection.recv(4_096), b"")).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 400 Bad Request\r\ncontent-type: application/problem+json\r\n")
    assert (json.loads(body)["status"], json.loads(body)["class"]) == (400, "InvalidInput")


def test_metrics_count_requests_and_legs_that_did_not_answer(http: httpx.Client) -> None:
    http.post("/v1/memories", json={"text": "The key is red."})
    http.post("/v1/recall", json={"query": "key"})
    http.post("/v1/recall", json={"query": ""})
    page = http.get("/metrics")
    assert page.headers["content-type"].startswith("text/plain; version=0.0.4")
    lines = page.text.splitlines()
    assert 'semmem_requests_total{status="200",verb="recall"} 1.0' in lines
    assert 'semmem_requests_total{status="422",verb="recall"} 1.0' in lines
    assert 'semmem_degraded_total{leg="dense"} 1.0' in lines
    assert 'semmem_request_seconds_count{verb="recall"} 2.0' in lines
    assert "semmem_resident_namespaces 1.0" in lines
    assert "key" not in page.text


def test_a_server_that_stops_waits_for_no_stream_that_pauses(mem: Semmem) -> None:
    with running(mem, grace_s=1) as server:
        head = "POST /v1/memories?batch_size=1 HTTP/1.1\r\nContent-Type: application/x-ndjson\r\nContent-Length: 99"
        paused = raw(server.url, head, b"", b'{"text": "a"}\n{"text": "b"}\n')
        until(lambda: mem.stats().memories > 0)
    paused.close()  # running() fails where the server has not ended
    assert mem.stats().memories in (1, 2)


def stream_head(batch_size: int, length: int = 99, *more: str) -> str:
    first = f"POST /v1/memories?batch_size={batch_size} HTTP/1.1"
    return "\r\n".join([first, "Content-Type: application/x-ndjson", f"Content-Length: {length}", *more])


def whole(connection: socket.socket) -> tuple[int, bytes]:
    """Return the status and the body of the answer that ends with its connection."""
    head, _, body = b"".join(iter(lambda: connection.recv(65_536), b"")).partition(b"\r\n\r\n")
    return int(head.split()[1]), body


def test_streams_that_wait_for_their_clients_keep_no_other_request_waiting(tmp_path: Path) -> None:
    limits = Limits(threads=2, streams=20)
    with (
        semmem.connect(f"sqlite://{tmp_path / 'notes.db'}", embedder="none", pool_size=2) as mem,
        running(mem, limits=limits) as server,
        ExitStack() as opened,
    ):
        slow = [opened.enter_context(raw(server.url, stream_head(1), b"", b'{"text": "a"}\n')) for _ in range(19)]
        until(lambda: "semmem_verbs_at_work 19.0" in httpx.get(f"{server.url}/metrics", timeout=60).text)
        for path in ("/healthz", "/readyz", "/v1/stats"):
            assert httpx.get(f"{server.url}{path}", timeout=20).status_code == 200
        line = b'{"text": "b"}\n'
        assert (
            httpx.post(f"{server.url}/v1/memories", content=line, headers=LINES, timeout=20).json()["remembered"] == 1
        )
        opened.enter_context(raw(server.url, stream_head(1), b"", b""))
        until(lambda: "semmem_verbs_at_work 20.0" in httpx.get(f"{server.url}/metrics", timeout=60).text)
        refused = httpx.post(f"{server.url}/v1/memories", content=line, headers=LINES, timeout=20)
        assert problem(refused) == (429, "LimitExceeded")
        assert refused.json()["detail"] == "20 streams are open already; send this one in a few seconds."
        assert len(slow) == 19


def test_half_of_the_threads_store_what_streams_bring(mem: Semmem, monkeypatch: pytest.MonkeyPatch) -> None:
    go, at_work = threading.Event(), 0
    store = type(mem._here.ingest)._written

    def held(self: Any, *arguments: Any, **more: Any) -> Any:
        nonlocal at_work
        at_work += 1
        assert go.wait(60)
        return store(self, *arguments, **more)

    monkeypatch.setattr(type(mem._here.ingest), "_written", held)
    answers: list[int] = []

    def send(url: str, n: int) -> None:
        line = b'{"text": "%d"}\n' % n
        answers.append(httpx.post(f"{url}/v1/memories", content=line, headers=LINES, timeout=60).status_code)

    with running(mem, limits=Limits(threads=4)) as server:
        threads = [threading.Thread(target=send, args=(server.url, n)) for n in range(6)]
        for thread in threads:
            thread.start()
        until(lambda: at_work == 2)
        until(lambda: "semmem_verbs_at_work 6.0" in httpx.get(f"{server.url}/metrics", timeout=60).text)
        assert httpx.get(f"{server.url}/v1/stats", timeout=20).status_code == 200
        assert at_work == 2
        go.set()
        for thread in threads:
            thread.join(60)
    assert answers == [200] * 6


def test_a_probe_waits_for_no_verb(mem: Semmem, held: Held) -> None:
    with running(mem, limits=Limits(threads=1)) as server:
        asking = [
            threading.Thread(target=lambda: httpx.get(f"{server.url}/v1/stats", timeout=60), daemon=True)
            for _ in range(3)
        ]
        for one in asking:
            one.start()
        until(lambda: "semmem_verbs_at_work 3.0" in httpx.get(f"{server.url}/metrics", timeout=60).text)
        assert httpx.get(f"{server.url}/readyz", timeout=20).json() == {"status": "ready"}
        held.go.set()
        for one in asking:
            one.join(60)


@pytest.mark.parametrize("accept", ["application/json", "application/x-ndjson"])
def test_a_server_that_stops_says_how_far_each_stream_came(mem: Semmem, accept: str) -> None:
    lines = b'{"text": "a"}\n{"text": "b"}\n{"text": "c"}\n'
    with running(mem, grace_s=30) as server:
        paused = raw(server.url, stream_head(2, 99, f"Accept: {accept}"), b"", lines)
        until(lambda: mem.stats().memories == 2)
        server.stop()
        status, body = whole(paused)
        paused.close()
    told = json.loads(body) if accept == "application/json" else json.loads(chunks(body).splitlines()[-1])["problem"]
    assert status == (503 if accept == "application/json" else 200)
    assert (told["class"], told["status"], told["position"]) == ("StoreClosed", 503, 2)
    assert told["detail"] == (
        "This server is stopping, and the first 2 items of the stream are done; send the others when it runs again, or "
        "the whole stream with the same Idempotency-Key."
    )
    assert [one.text for one in mem.list()] == ["b", "a"]


def chunks(body: bytes) -> bytes:
    """Return a body that came in chunks."""
    whole = b""
    while body:
        size, _, rest = body.partition(b"\r\n")
        whole, body = whole + rest[: int(size, 16)], rest[int(size, 16) + 2 :]
    return whole


def test_a_client_that_sends_all_the_time_gets_the_last_line_of_a_server_that_stops(mem: Semmem) -> None:
    def lines() -> Iterator[bytes]:
        for n in range(1_000_000):
            yield b'{"text": "Note %d %s"}\n' % (n, b"x" * 1_000)
            if n == 300:
                until(lambda: mem.stats().memories >= 100)
                server.stop()
            if n > 300:
                time.sleep(0.001)

    with running(mem, grace_s=30) as server:
        answer = httpx.post(f"{server.url}/v1/memories?batch_size=100", content=lines(), headers=LINES, timeout=60)
    stored = mem.stats().memories
    assert (answer.status_code, answer.json()["position"]) == (503, stored)
    assert stored >= 100


@pytest.mark.parametrize("sent", [b"", b"GET /v1/st", b"GET /v1/stats HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Half: "])
def test_a_connection_without_a_whole_head_is_closed(mem: Semmem, sent: bytes) -> None:
    with serving(mem, limits=Limits(head_seconds=0.3)) as url:
        place = urlsplit(url)
        for first in (b"", b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"):
            if first and not sent:
                continue  # between two requests a connection may be idle
            with socket.create_connection((place.hostname, place.port), timeout=60) as connection:
                connection.sendall(first)
                while first and not first.endswith(b"}"):
                    first = connection.recv(65_536)
                connection.sendall(sent)
                answer = b"".join(iter(lambda: connection.recv(65_536), b""))
            if sent:
                head, _, body = answer.partition(b"\r\n\r\n")
                assert head.startswith(b"HTTP/1.1 408 Request Timeout\r\n")
                assert json.loads(body)["detail"] == (
                    "The first line and headers were not whole after 0.3 seconds; send them without pauses."
                )
            else:
                assert answer == b""


def test_heads_that_come_byte_by_byte_are_given_up_too(mem: Semmem) -> None:
    with serving(mem, limits=Limits(head_seconds=0.5)) as url:
        place = urlsplit(url)
        with socket.create_connection((place.hostname, place.port), timeout=0.05) as connection:
            told, until = b"", time.monotonic() + 60
            for byte in b"GET /v1/stats HTTP/1.1\r\nX: " + b"x" * 10_000:
                connection.sendall(bytes([byte]))
                try:
                    told = connection.recv(65_536)
                    break
                except TimeoutError:
                    assert time.monotonic() < until
        assert told.startswith(b"HTTP/1.1 408")
