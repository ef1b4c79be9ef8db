"""A reranker behind an endpoint, against a real server on this machine that misbehaves in every way."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from math import fsum
from typing import Any

import pytest

import semmem
from semmem import rerankers
from semmem.model.errors import InvalidInput, LegFailed
from semmem.model.types import Memory
from semmem.rerankers.endpoint import EndpointReranker, RerankerOptions
from tests.misbehaving import Behaviour, Handler, Server, closes, hangs, raw, serving, status, trickles

NOW = datetime(2026, 1, 31, tzinfo=UTC)
Rows = list[dict[str, Any]]


def rows(handler: Handler, texts: str = "documents", score: str = "relevance_score") -> Rows:
    """Score each text by its letters a: a tenth each."""
    return [{"index": at, score: text.count("a") / 10} for at, text in enumerate(handler.asked[texts])]


def results(change: Callable[[Rows], Any]) -> Behaviour:
    """Return a behaviour that answers in Cohere's form with what ``change`` makes of the right rows."""
    return lambda h: h.reply(json.dumps({"results": change(rows(h))}).encode())


good = results(lambda found: found)


def tei(handler: Handler) -> None:
    """Answer as text-embeddings-inference does: it knows no documents, and puts the best text first."""
    if "texts" not in handler.asked:
        return handler.reply(b'{"error": "missing field `texts`"}', 422)
    found = sorted(rows(handler, "texts", "score"), key=lambda row: -row["score"])
    return handler.reply(json.dumps(found).encode())


def cut(handler: Handler) -> None:
    whole = json.dumps({"results": rows(handler)}).encode()
    handler.reply(whole[:20], declared=len(whole))


def first(value: Any) -> Callable[[Rows], Any]:
    """Return a change that gives the first row the score ``value``."""
    return lambda found: [{**found[0], "relevance_score": value}, *found[1:]]


@pytest.fixture
def remote() -> Iterator[Server]:
    with serving(good) as server:
        yield server


def reranker(remote: Server, waits: list[float] | None = None, **options: Any) -> EndpointReranker:
    given = {"url": remote.url, "model": "tiny", "timeout_s": 60.0, **options}
    return EndpointReranker(RerankerOptions(**given), wait=(waits if waits is not None else []).append)


def scores(of: EndpointReranker, texts: list[str], title: str | None = None) -> list[float]:
    memories = [Memory(str(at), "demo", "another text", title=title) for at in range(len(texts))]
    terms = of.rerank("any tea?", memories, [0.5] * len(texts), passages=texts, now=NOW)
    assert all(set(one) == {"endpoint"} for one in terms)
    return [one["endpoint"] for one in terms]


# ---------------------------------------------------------------------- good endpoints


def test_the_question_and_the_passages_go_to_the_endpoint_and_scores_come_back_in_their_order(remote: Server) -> None:
    remote.script = [results(lambda found: found[::-1])]
    assert scores(reranker(remote, key="secret"), ["tea", "aaa", "mint"]) == [0.1, 0.3, 0.0]
    path, headers, asked = remote.received[0]
    assert (path, headers["Authorization"]) == ("/v1/rerank", "Bearer secret")
    assert asked == {"model": "tiny", "query": "any tea?", "documents": ["tea", "aaa", "mint"], "top_n": 3}


def test_a_title_stands_above_its_passage_and_32_texts_are_sent_at_once(remote: Server) -> None:
    assert scores(reranker(remote, model=None), ["tea"] * 33, title="A pan") == [0.2] * 33
    assert [asked["top_n"] for _, _, asked in remote.received] == [32, 1]
    assert remote.received[1][2] == {"query": "any tea?", "documents": ["A pan\ntea"], "top_n": 1}


def test_an_endpoint_that_refuses_the_first_form_is_asked_in_the_second_from_then_on(remote: Server) -> None:
    remote.script = [tei]
    waits: list[float] = []
    ours = reranker(remote, waits, model=None)
    assert scores(ours, ["tea", "aaa"]) == [0.1, 0.3]
    assert scores(ours, ["", "a\ud800"]) == [0.0, 0.1]
    assert [sorted(asked) for _, _, asked in remote.received] == [
        ["documents", "query", "top_n"],
        ["query", "texts", "truncate"],
        ["query", "texts", "truncate"],
    ]
    assert remote.received[2][2]["texts"] == [" ", "a?"]
    assert waits == []


def test_scores_outside_0_and_1_are_logits(remote: Server) -> None:
    remote.script = [results(first(-3.0))]
    # the logistic of -3 and of .1
    assert scores(reranker(remote), ["tea", "tea"]) == [pytest.approx(0.04742587), pytest.approx(0.52497919)]


def test_nothing_is_sent_for_nothing(remote: Server) -> None:
    assert scores(reranker(remote), []) == []
    assert remote.received == []


# ---------------------------------------------------------------------- one that misbehaves


@pytest.mark.parametrize(
    ("behaviour", "waited"),
    [
        (status(500), [0.5]),
        (status(429, Retry_After="2"), [2.0]),
        (closes, [0.5]),
        (cut, [0.5]),
        (raw(b"[1]"), [0.5]),
        (raw(b"{}"), [0.5]),
        (raw(b"<html>", Content_Type="text/html"), [0.5]),
        (results(lambda found: found[:1]), [0.5]),
        (results(lambda found: [found[0], found[0]]), [0.5]),
        (results(lambda found: [{**row, "index": str(row["index"])} for row in found]), [0.5]),
        (results(first(None)), [0.5]),
        (results(first(True)), [0.5]),
        (results(first(float("nan"))), [0.5]),
        (results(first(float("inf"))), [0.5]),
    ],
)
def test_after_an_answer_that_cannot_be_used_it_is_asked_once_more(
    remote: Server, behaviour: Behaviour, waited: list[float]
) -> None:
    remote.script = [behaviour, good]
    waits: list[float] = []
    assert scores(reranker(remote, waits), ["tea", "aaa"]) == [0.1, 0.3]
    assert (waits, len(remote.received)) == (waited, 2)


@pytest.mark.parametrize(
    ("behaviour", "says", "times"),
    [
        (status(500), r"\(status 500\)\.", 2),
        (status(429, Retry_After="60"), r"\(status 429\)\.", 1),
        (status(401), r"\(status 401\); check reranker_key\.", 1),
        (status(404), r"\(status 404\); check reranker_url and reranker_model\.", 1),
        (status(422), r"\(status 422\); check reranker_model\.", 2),
        (status(307, Location="http://127.0.0.1:9/"), r"\(status 307\); a redirect is not followed", 1),
        (raw(b"{"), r"\(not JSON\)", 2),
        (results(lambda found: found[:1]), r"\(1 scores for 2 texts\)", 2),
        (results(first("high")), r"\(a score that is no finite number\)", 2),
    ],
)
def test_an_endpoint_that_goes_on_so_is_told_in_one_sentence(
    remote: Server, behaviour: Behaviour, says: str, times: int
) -> None:
    remote.script = [behaviour]
    with pytest.raises(LegFailed, match=r"^The reranker at 127\.0\.0\.1:\d+ gave no usable scores " + says):
        scores(reranker(remote), ["tea", "aaa"])
    assert len(remote.received) == times


@pytest.mark.parametrize("slow", [hangs, trickles])
def test_an_attempt_has_its_seconds_in_all(remote: Server, slow: Behaviour) -> None:
    remote.script = [slow]
    with pytest.raises(LegFailed, match=r"\(timeout\)"):
        scores(reranker(remote, timeout_s=0.2), ["tea"])


# ---------------------------------------------------------------------- settings and recalls


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (None, "needs the setting reranker_url"),
        ({"url": "ftp://host/"}, "reranker_url must begin with http"),
        ({"url": "http://me:pass@host/"}, "give the key as reranker_key"),
        ({"url": "http://host/", "key": "a\nb"}, "reranker_key must be printable ASCII"),
    ],
)
def test_an_endpoint_that_is_not_described_is_refused(options: dict[str, Any] | None, says: str) -> None:
    with pytest.raises(InvalidInput, match=says):
        rerankers.load("endpoint", endpoint=None if options is None else RerankerOptions(**options))


@pytest.mark.slow
def test_a_recall_is_ordered_by_the_endpoint_of_the_settings_and_answers_without_it(
    remote: Server, store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SEMMEM_RERANKER_URL", remote.url)
    monkeypatch.setenv("SEMMEM_RERANKER_TIMEOUT_S", "60")
    monkeypatch.setenv("SEMMEM_RECIPE", '{"name": "lexical", "prior": false, "rerank": "endpoint"}')
    with semmem.connect(store_url, embedder="none") as mem:
        mem.remember_many([{"id": "a", "text": "heron heron"}, {"id": "b", "text": "a heron, a reed and a bank"}])
        found = mem.recall("heron")
        # b has five letters a; a has none
        assert [(hit.memory.id, hit.components) for hit in found] == [
            ("b", {"endpoint": 0.5}), ("a", {"endpoint": 0.0})
        ]  # fmt: skip
        assert all(hit.score == fsum(hit.components.values()) for hit in found)
    monkeypatch.setenv("SEMMEM_RERANKER_TIMEOUT_S", "0.3")
    with semmem.connect(store_url, embedder="none") as mem:
        remote.script = [hangs]
        late = mem.recall("heron")
        assert [hit.memory.id for hit in late] == ["a", "b"]
        assert late.degraded["rerank"].endswith("gave no usable scores (timeout).")
    monkeypatch.delenv("SEMMEM_RERANKER_URL")
    with semmem.connect(store_url, embedder="none") as mem:
        assert "needs the setting reranker_url (SEMMEM_RERANKER_URL)" in mem.recall("heron").degraded["rerank"]
