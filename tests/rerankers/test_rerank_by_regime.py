"""A reranker of some regimes: only their questions, and the passages found for them, go to a real endpoint."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

import semmem
from semmem.client.values import plan_of
from semmem.interfaces.cli.app import run
from semmem.model.errors import InvalidInput
from tests.misbehaving import Handler, Server, serving

NOTES = (
    ("Petra Lindqvist", "Petra Lindqvist designed the Kestrel."),
    ("Kestrel", "The Kestrel is a logger. Petra Lindqvist keeps its drawings."),
    (None, "The bakery opens before dawn and sells rye."),
    (None, "A heron stands in the mill pond all morning."),
    (None, "Bread rises slowly in winter."),
)
NAMED = "Where are the drawings of the Kestrel?"
UNNAMED = "when does the bakery open"


def judged(handler: Handler) -> None:
    """Score each passage by its place, so that the last becomes the first."""
    rows = [{"index": at, "relevance_score": at / 100} for at in range(len(handler.asked["documents"]))]
    handler.reply(json.dumps({"results": rows}).encode())


@pytest.fixture
def remote(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    with serving(judged) as server:
        monkeypatch.setenv("SEMMEM_RERANKER_URL", server.url)
        yield server


def filled(url: str, recipe: semmem.Recipe | str = "default") -> semmem.Semmem:
    mem = semmem.connect(url, embedder="hashing", recipe=recipe)
    mem.remember_many({"title": title, "text": text} for title, text in NOTES)
    return mem


def asked(server: Server) -> list[str]:
    return [body["query"] for _, _, body in server.received]


def test_only_questions_of_its_regimes_go_to_the_endpoint(remote: Server, store_url: str) -> None:
    with filled(store_url) as mem:
        regimes = {question: mem.recall(question).regime for question in (NAMED, UNNAMED)}
        assert regimes[NAMED] == "named"
        assert regimes[UNNAMED] in ("unnamed", "described")
        assert asked(remote) == []  # never by default
        for chosen, question, other in (
            (["named"], NAMED, UNNAMED),
            (["unnamed", "described"], UNNAMED, NAMED),
        ):
            remote.received.clear()
            plan = semmem.recipe("default", rerank="endpoint", rerank_regimes=chosen)
            reranked, plain = mem.recall(question, recipe=plan), mem.recall(other, recipe=plan)
            assert asked(remote) == [question]
            assert [set(hit.components) for hit in reranked] == [{"endpoint"}] * len(reranked)
            assert reranked.recipe.reranker_in(reranked.regime) == "endpoint"
            assert not any("endpoint" in hit.components for hit in plain)
            assert ("rerank" in reranked.timings, "rerank" in plain.timings) == (True, False)
            assert [hit.memory.id for hit in plain] == [hit.memory.id for hit in mem.recall(other)]


def test_the_settings_choose_the_regimes_for_the_command_line(
    remote: Server, store_url: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    filled(store_url).close()
    monkeypatch.setenv("SEMMEM_RECIPE", '{"name": "default", "rerank": "endpoint", "rerank_regimes": ["named"]}')
    for question in (UNNAMED, NAMED):
        assert run(["recall", question, "--url", store_url]) == 0
    assert asked(remote) == [NAMED]
    capfd.readouterr()
    monkeypatch.setenv("SEMMEM_RECIPE", '{"name": "default", "rerank": "endpoint", "rerank_regimes": ["talk"]}')
    assert run(["recall", NAMED, "--url", store_url]) == 2
    said = " ".join(capfd.readouterr().err.split())
    assert (
        "rerank_regimes has a regime 'talk' that no rank constant names; it has anchored, described, named, unn" in said
    )


def test_without_the_graph_leg_no_regime_is_known_and_nothing_is_sent(remote: Server, store_url: str) -> None:
    with filled(store_url) as mem:
        plan = semmem.recipe("default", weights={"graph": 0}, rerank="endpoint", rerank_regimes=["unnamed"])
        assert mem.recall(UNNAMED, recipe=plan).regime == "any"
        assert asked(remote) == []
    with pytest.raises(InvalidInput, match="names; the recipe has one for every question"):
        semmem.recipe("hybrid", rerank="composite", rerank_regimes=["unnamed"])


def test_a_client_cannot_widen_the_regimes_of_the_servers_reranker() -> None:
    base = semmem.recipe("default", rerank="endpoint", rerank_regimes=["unnamed"])
    with pytest.raises(InvalidInput, match="choose where its reranker runs; leave rerank_regimes out"):
        plan_of({"rerank_regimes": []}, base)
    with pytest.raises(InvalidInput, match="leave rerank_regimes out"):
        plan_of({**base.as_dict(), "rerank_regimes": []}, base)
    with pytest.raises(InvalidInput, match="choose where its reranker runs; leave rerank out"):
        plan_of({"name": "default", "rerank": "endpoint"}, base)  # that recipe itself has no regimes
    assert plan_of({"name": "default"}, base).rerank is None
    assert plan_of(base.as_dict(), base) == base
    assert plan_of({"weights": {"graph": 0.5}}, base).rerank_regimes == ("unnamed",)
    free = plan_of({"rerank": "composite", "rerank_regimes": ["named"]}, semmem.recipe("default"))
    assert (free.rerank, free.rerank_regimes) == ("composite", ("named",))
