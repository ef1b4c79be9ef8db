"""An embedder behind an endpoint, against a real server on this machine that misbehaves in every way."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import semmem
from semmem.embedders import load
from semmem.embedders.endpoint import EndpointEmbedder, EndpointOptions
from semmem.interfaces.cli.app import run
from semmem.model.errors import EmbedderMismatch, EmbedderUnavailable, InvalidInput
from tests.misbehaving import Behaviour, Handler, Server, closes, hangs, raw, serving, status, trickles
from tests.waiting import until


def vector(text: str, size: int = 3) -> list[float]:
    """Return how often the text has each of the letters a, e and i, and one more, so that it is not zero."""
    return [1.0 + text.count(letter) for letter in "aeiou"[:size]]


def rows(handler: Handler) -> list[dict[str, Any]]:
    size = handler.asked.get("dimensions", 3)
    return [
        {"object": "embedding", "index": i, "embedding": vector(text, size)}
        for i, text in enumerate(handler.asked["input"])
    ]


def data(change: Callable[[list[dict[str, Any]]], Any]) -> Behaviour:
    """Return a behaviour that answers with what ``change`` makes of the right rows."""
    return lambda h: h.reply(json.dumps({"data": change(rows(h))}).encode())


good = data(lambda found: found)


def cut(handler: Handler) -> None:
    whole = json.dumps({"data": rows(handler)}).encode()
    handler.reply(whole[:20], declared=len(whole))


def first(value: Any) -> Callable[[list[dict[str, Any]]], Any]:
    """Return a change that gives the first row the vector ``value``."""
    return lambda found: [{**found[0], "embedding": value}, *found[1:]]


@pytest.fixture
def remote() -> Iterator[Server]:
    with serving(good) as server:
        yield server


def embedder(remote: Server, waits: list[float] | None = None, **options: Any) -> EndpointEmbedder:
    given = {"url": remote.url, "model": "tiny", "timeout_s": 60.0, **options}
    return EndpointEmbedder(EndpointOptions(**given), wait=(waits if waits is not None else []).append)


def unit(text: str, size: int = 3) -> Any:
    row = np.array(vector(text, size))
    return row / np.linalg.norm(row)


# ---------------------------------------------------------------------- a good endpoint


def test_texts_go_to_the_endpoint_in_batches_of_64_and_come_back_as_unit_vectors(remote: Server) -> None:
    ours = embedder(remote, key="secret")
    texts = [f"tea {'a' * i}" for i in range(130)]
    found = ours.embed(texts)
    assert (found.dtype, found.shape) == (np.float32, (130, 3))
    assert np.allclose(found, [unit(text) for text in texts], atol=1e-6)
    assert [len(asked["input"]) for _, _, asked in remote.received] == [64, 64, 2]
    path, headers, asked = remote.received[-1]
    assert (path, headers["Authorization"]) == ("/v1/embeddings", "Bearer secret")
    assert asked == {"model": "tiny", "input": texts[-2:], "encoding_format": "float"}
    assert ours.embed([]).shape == (0, 3)


def test_questions_and_passages_have_their_own_beginnings(remote: Server) -> None:
    ours = embedder(remote, question="aaa: ", passage="iii: ")
    assert np.allclose(ours.embed_questions(["tea"])[0], unit("aaa: tea"), atol=1e-6)
    assert np.allclose(ours.embed(["tea"])[0], unit("iii: tea"), atol=1e-6)
    assert ours.count_tokens("tea") == 3  # eight bytes, three a token


def test_the_dimensions_are_asked_for_or_learnt_from_a_first_vector(remote: Server) -> None:
    assert embedder(remote).dimensions == 3
    asked = embedder(remote, dimensions=2)
    assert (asked.dimensions, asked.embed(["tea"]).shape) == (2, (1, 2))
    assert [one.get("dimensions") for _, _, one in remote.received] == [None, 2]


def test_vectors_in_another_order_are_put_in_their_places(remote: Server) -> None:
    remote.script = [data(lambda found: found[::-1])]
    assert np.allclose(embedder(remote).embed(["a", "e"]), [unit("a"), unit("e")], atol=1e-6)


def test_a_text_that_is_empty_or_cannot_be_sent_is_sent_as_one_that_can(remote: Server) -> None:
    embedder(remote).embed(["", "a\ud800"])
    assert remote.received[0][2]["input"] == [" ", "a?"]


def test_a_batch_that_is_refused_is_sent_in_halves(remote: Server) -> None:
    def small(handler: Handler) -> None:
        (good if len(handler.asked["input"]) <= 2 else status(413))(handler)

    remote.script = [small]
    assert np.allclose(embedder(remote).embed(list("aeiou")), [unit(text) for text in "aeiou"], atol=1e-6)
    assert [len(asked["input"]) for _, _, asked in remote.received] == [5, 2, 3, 1, 2]


# ---------------------------------------------------------------------- one that misbehaves


@pytest.mark.parametrize(
    ("behaviour", "waited"),
    [
        (status(500), [0.5]),
        (status(503, Retry_After="2"), [2.0]),
        (status(429, Retry_After="7"), [7.0]),
        (status(429, Retry_After="soon"), [0.5]),
        (closes, [0.5]),
        (cut, [0.5]),
        (raw(b'{"data": ['), [0.5]),
        (raw(b"[]"), [0.5]),
        (raw(b"{}"), [0.5]),
        (raw(b"<html>", Content_Type="text/html"), [0.5]),
        (data(lambda found: found[:1]), [0.5]),
        (data(lambda found: [*found, found[0]]), [0.5]),
        (data(lambda found: [found[0], found[0]]), [0.5]),
        (data(lambda _: ["a", "b"]), [0.5]),
        (data(first(None)), [0.5]),
        (data(first("AAAA")), [0.5]),
        (data(first([1, "2", 3])), [0.5]),
        (data(first([True, False, True])), [0.5]),
        (data(first([float("nan"), 1, 1])), [0.5]),
        (data(first([float("inf"), 1, 1])), [0.5]),
        (data(first([10**400, 1, 1])), [0.5]),
        (data(first([0, 0, 0])), [0.5]),
    ],
)
def test_after_an_answer_that_cannot_be_used_it_is_asked_again(
    remote: Server, behaviour: Behaviour, waited: list[float]
) -> None:
    remote.script = [behaviour, good]
    waits: list[float] = []
    assert np.allclose(embedder(remote, waits).embed(["a", "e"]), [unit("a"), unit("e")], atol=1e-6)
    assert (waits, len(remote.received)) == (waited, 2)


@pytest.mark.parametrize(
    ("behaviour", "says", "times"),
    [
        (status(500), r"\(status 500\)\.", 3),
        (status(429, Retry_After="3600"), r"\(status 429\)", 1),
        (status(401), r"\(status 401\); check embedder_key\.", 1),
        (status(404), r"\(status 404\); check embedder_url and embedder_model\.", 1),
        (
            status(307, Location="http://127.0.0.1:9/"),
            r"\(status 307\); a redirect is not followed, set embedder_url",
            1,
        ),
        (raw(b"{"), r"\(not JSON\)", 3),
        (data(lambda found: found[:1]), r"\(1 vectors for 2 texts\)", 3),
        (data(first([1.0, 2.0])), r"\(a vector of 3 dimensions instead of 2;", 1),
        (data(first([float("nan"), 1, 1])), r"\(a vector with NaN, infinity or only zeros\)", 3),
        (data(first(None)), r"\(a vector that is no list of numbers\)", 3),
    ],
)
def test_an_endpoint_that_goes_on_so_is_told_in_one_sentence(
    remote: Server, behaviour: Behaviour, says: str, times: int
) -> None:
    remote.script = [behaviour]
    with pytest.raises(
        EmbedderUnavailable, match=r"^The endpoint 127\.0\.0\.1:\d+ gave no usable vectors of tiny " + says
    ):
        embedder(remote, key="secret").embed(["a", "e"])
    assert len(remote.received) == times


def test_one_text_that_is_refused_is_told(remote: Server) -> None:
    remote.script = [status(400)]
    with pytest.raises(EmbedderUnavailable, match=r"\(status 400\)"):
        embedder(remote).embed(list("aeio"))
    assert [len(asked["input"]) for _, _, asked in remote.received] == [4, 2, 1]


@pytest.mark.parametrize("slow", [hangs, trickles])
def test_an_attempt_has_its_seconds_in_all(remote: Server, slow: Behaviour) -> None:
    remote.script = [slow]
    with pytest.raises(EmbedderUnavailable, match=r"\(timeout\)"):
        embedder(remote, timeout_s=0.2).embed(["a"])
    until(lambda: len(remote.received) == 3)  # the last one may be read only after it was given up


def test_a_model_that_gives_other_dimensions_later_is_refused(remote: Server) -> None:
    ours = embedder(remote)
    ours.embed(["a"])
    remote.script = [data(first([1.0, 2.0]))]
    with pytest.raises(EmbedderUnavailable, match="a vector of 2 dimensions instead of 3"):
        ours.embed(["a"])


def test_nobody_listening_is_told() -> None:
    with Server(good) as server:
        url = server.url
    ours = EndpointEmbedder(EndpointOptions(url=url, model="tiny"), wait=lambda _: None)
    with pytest.raises(EmbedderUnavailable, match=r"gave no usable vectors of tiny \(connection refused\)"):
        ours.embed(["a"])


# ---------------------------------------------------------------------- settings and stores


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (None, "needs the setting embedder_url"),
        ({"url": "http://host/", "model": " "}, "needs the setting embedder_model"),
        ({"url": "ftp://host/", "model": "tiny"}, "embedder_url must begin with http"),
        ({"url": "http://me:pass@host/", "model": "tiny"}, "give the key as embedder_key"),
        ({"url": "http://host/", "model": "tiny", "key": "a\nb"}, "embedder_key must be printable ASCII"),
    ],
)
def test_an_endpoint_that_is_not_described_is_refused(options: dict[str, Any] | None, says: str) -> None:
    with pytest.raises(InvalidInput, match=says):
        load("endpoint", endpoint=None if options is None else EndpointOptions(**options))


def test_each_setting_that_changes_vectors_is_another_fingerprint(remote: Server) -> None:
    wishes: list[dict[str, Any]] = [{}, {"model": "big"}, {"question": "q"}, {"passage": "p"}, {"dimensions": 2}]
    assert len({embedder(remote, **one).fingerprint for one in wishes}) == 5
    assert embedder(remote).fingerprint == embedder(remote, key="k", url="http://elsewhere/").fingerprint


def test_a_store_is_filled_and_asked_by_the_endpoint_of_the_settings(
    remote: Server, store_url: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SEMMEM_EMBEDDER_URL", remote.url)
    monkeypatch.setenv("SEMMEM_EMBEDDER_MODEL", "tiny")
    with semmem.connect(store_url, embedder="endpoint") as mem:
        mem.remember("A heron stands in the mill pond.", id="a", namespace="docs")
        assert mem.stats().embedder == "endpoint:tiny"
    with semmem.connect(store_url) as mem:  # the store's own
        assert not mem.recall("heron", namespace="docs").degraded
        remote.script = [status(401)]
        found = mem.recall("pond", namespace="docs")
        assert [hit.memory.id for hit in found] == ["a"]
        assert "(status 401); check embedder_key" in found.degraded["dense"]
        with pytest.raises(EmbedderUnavailable, match="status 401"):
            mem.remember("Tea.", namespace="docs")
    remote.script = [good]
    with pytest.raises(EmbedderMismatch, match=r"filled by endpoint:tiny \(3 dimensions, endpoint:"):
        semmem.connect(store_url, embedder="endpoint", embedder_passage="p: ")
    monkeypatch.delenv("SEMMEM_EMBEDDER_URL")
    with semmem.connect(store_url) as mem:
        assert "needs the setting embedder_url" in mem.recall("heron", namespace="docs").degraded["dense"]
    assert run(["rebuild", "--embedder", "hashing", "--url", store_url]) == 0


@pytest.mark.parametrize("chosen", [None, "endpoint"])
def test_an_endpoint_that_is_away_when_a_process_begins_is_used_as_soon_as_it_is_back(
    remote: Server, store_url: str, chosen: str | None
) -> None:
    options: dict[str, Any] = {"embedder_url": remote.url, "embedder_model": "tiny"}
    with semmem.connect(store_url, embedder="endpoint", **options) as mem:
        mem.remember("A heron stands in the mill pond.", id="a")
    remote.script = [status(401)]
    with semmem.connect(store_url, embedder=chosen, **options) as mem:
        assert "status 401" in mem.recall("pond").degraded["dense"]
        with pytest.raises(EmbedderUnavailable, match="status 401"):
            mem.remember("Tea.", id="b")
        assert len(mem.list()) == 1
        remote.script = [good]
        mem.remember("Tea.", id="b")
        assert not mem.recall("pond").degraded
        assert mem.stats().vectors == 2


def test_another_model_of_the_same_name_is_told_with_the_command_that_mends_it(
    remote: Server, store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SEMMEM_EMBEDDER_URL", remote.url)
    monkeypatch.setenv("SEMMEM_EMBEDDER_MODEL", "tiny")
    with semmem.connect(store_url, embedder="endpoint") as mem:
        mem.remember("A heron stands in the mill pond.")
    remote.script = [data(lambda found: [{**one, "embedding": [1.0, 2.0]} for one in found])]
    with semmem.connect(store_url) as mem:
        told = mem.recall("pond").degraded["dense"]
        assert "2 dimensions instead of 3" in told
        assert "semmem rebuild --embedder endpoint" in told
    assert run(["rebuild", "--embedder", "endpoint", "--url", store_url]) == 0
    with semmem.connect(store_url) as mem:
        assert not mem.recall("pond").degraded


def test_doctor_says_what_leaves_the_machine_and_sends_nothing(
    remote: Server, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("SEMMEM_EMBEDDER", "endpoint")
    monkeypatch.setenv("SEMMEM_EMBEDDER_URL", remote.url)
    monkeypatch.setenv("SEMMEM_EMBEDDER_MODEL", "tiny")
    assert run(["doctor", "--no-connect", "--json"]) == 0
    found = {one["what"]: one for one in json.loads(capfd.readouterr().out)["findings"]}
    host = remote.url.removeprefix("http://").removesuffix("/v1")
    assert found["embedding model"]["detail"] == (
        f"endpoint:tiny; the texts of memories and questions are sent to {host}, which may keep them"
    )
    assert remote.received == []
    monkeypatch.setenv("SEMMEM_EMBEDDER_MODEL", "")
    assert run(["doctor", "--no-connect", "--json"]) == 0
    found = {one["what"]: one for one in json.loads(capfd.readouterr().out)["findings"]}
    assert "needs the setting embedder_model" in found["embedding model"]["detail"]
