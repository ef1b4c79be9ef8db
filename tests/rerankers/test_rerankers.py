"""Rerankers by themselves, and after the fusion of a recall."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from math import fsum
from pathlib import Path

import pytest

import semmem
from semmem import rerankers
from semmem.fusion import Fused
from semmem.model.errors import InvalidInput, MissingExtra
from semmem.model.exchange import CandidateMetadata, Question, Scope
from semmem.model.types import Memory
from semmem.read.candidates import Candidates, Cut
from semmem.read.steps import cut
from semmem.rerankers import Composite
from semmem.rerankers.cross_encoder import CrossEncoder
from tests.rerankers.tiny import tiny_cross_encoder

NOW = datetime(2026, 1, 31, tzinfo=UTC)


def memory(id: str, importance: float, days: int, *, changed: int | None = None) -> Memory:
    updated = None if changed is None else NOW - timedelta(days=changed)
    created = NOW - timedelta(days=days)
    return Memory(id, "demo", id, importance=importance, created_at=created, updated_at=updated)


@pytest.mark.parametrize("name", ["compsite", "composite:x", "cross_encoder", "cross_encoder:", "endpoint:x", "", None])
def test_an_unknown_reranker_is_refused_with_the_names_there_are(name: str) -> None:
    with pytest.raises(InvalidInput, match="choose one of composite, cross_encoder:MODEL, endpoint"):
        rerankers.load(name)


def test_a_recipe_with_an_unknown_reranker_is_refused_before_a_question_is_asked() -> None:
    with pytest.raises(InvalidInput, match="no reranker named 'best'"):
        semmem.recipe("default", rerank="best")
    assert semmem.recipe("default", rerank="composite").rerank == "composite"


def test_the_composite_terms_are_relevance_recency_and_importance() -> None:
    found = [memory("a", 1.0, days=30), memory("b", 0.5, days=90, changed=0), memory("c", 0.0, days=0)]
    terms = Composite().rerank("any", found, [0.2, 0.4, 0.0], passages=["", "", ""], now=NOW)
    # a: .8 x .2/.4, .05 x 1/2 (a month old), .15; b: .8, .05 (changed just now), .075; c: 0, .05, 0
    assert terms == [
        {"relevance": pytest.approx(0.4), "recency": pytest.approx(0.025), "importance": pytest.approx(0.15)},
        {"relevance": pytest.approx(0.8), "recency": pytest.approx(0.05), "importance": pytest.approx(0.075)},
        {"relevance": 0.0, "recency": pytest.approx(0.05), "importance": 0.0},
    ]


def test_a_memory_of_the_future_is_as_recent_as_one_of_now() -> None:
    (terms,) = Composite().rerank("any", [memory("a", 0.0, days=-90)], [1.0], passages=[""], now=NOW)
    assert terms["recency"] == 0.05


def test_the_composite_of_nothing_is_nothing() -> None:
    assert Composite().rerank("any", [], [], passages=[], now=NOW) == []


# --- the head of a fused list ------------------------------------------------------------------------------------


def candidates(scores: list[float], terms: dict[int, dict[str, float]]) -> Candidates:
    keys = [(f"m{i}", 0, "demo") for i in range(len(scores))]
    metadata = {k: CandidateMetadata(i, "demo", k[0], 0, 0.5, bytes([i]) * 16, NOW, NOW) for i, k in enumerate(keys)}
    ranked = tuple(
        Fused(k, s, {"lexical": s}, {"lexical": i}) for i, (k, s) in enumerate(zip(keys, scores, strict=True))
    )
    plan = semmem.recipe("lexical")
    scope = Scope(("demo",), len(keys))
    return Candidates(
        Question("any"), scope, plan, "any", {}, {}, {}, metadata, frozenset(), {}, ranked,
        {keys[i]: of_key for i, of_key in terms.items()},
    )  # fmt: skip


def test_the_head_is_ordered_anew_and_the_rest_follows_without_passing_it() -> None:
    found = candidates([0.9, 0.8, 0.6, 0.3], {0: {"x": 0.1, "y": 0.1}, 1: {"x": 0.5, "y": 0.2}})
    kept = [fused for fused, _ in cut(found, Cut())]
    # m1: .7, m0: .2; the rest had .6 and .3, times .2/.6: .2 and .1
    assert [(f.key[0], pytest.approx(f.score)) for f in kept] == [("m1", 0.7), ("m0", 0.2), ("m2", 0.2), ("m3", 0.1)]
    assert kept[0].components == {"x": 0.5, "y": 0.2}
    assert kept[3].components == {"lexical": pytest.approx(0.1)}
    assert all(f.score == pytest.approx(fsum(f.components.values()), abs=1e-12) for f in kept)


def test_equal_new_scores_keep_the_fused_order() -> None:
    found = candidates([0.9, 0.8, 0.7], {0: {"x": 0.3}, 1: {"x": 0.4}, 2: {"x": 0.3}})
    assert [fused.key[0] for fused, _ in cut(found, Cut())] == ["m1", "m0", "m2"]


# --- in a recall -------------------------------------------------------------------------------------------------


@pytest.fixture
def mem(store_url: str) -> Iterator[semmem.Semmem]:
    with semmem.connect(store_url, embedder="none", recipe="lexical") as mem:
        texts = {"a": "heron heron heron", "b": "heron and reed", "c": "heron, reed and water"}
        weights = {"a": 0.0, "b": 1.0, "c": 0.5}
        mem.remember_many([{"id": i, "text": t, "importance": weights[i]} for i, t in texts.items()])
        yield mem


def test_a_recall_reranks_by_the_composite_and_its_terms_sum_to_the_score(mem: semmem.Semmem) -> None:
    plain = semmem.recipe("lexical", prior=False)
    assert [hit.memory.id for hit in mem.recall("heron", recipe=plain)] == ["a", "b", "c"]
    again = mem.recall("heron", recipe=semmem.recipe(plain, rerank="composite"))
    # relevance 1, 61/62, 61/63 of the first, so importance decides: a .8 + 0, b .787 + .15, c .775 + .075; recency all
    assert [hit.memory.id for hit in again] == ["b", "c", "a"]
    for hit in again:
        assert set(hit.components) == {"relevance", "recency", "importance"}
        assert hit.score == pytest.approx(fsum(hit.components.values()), abs=1e-12)
        assert 0 <= hit.score <= 1
    assert again.timings["rerank"] >= 0
    said = again.explain("a")
    assert (said.rank, said.returned, set(said.components)) == (3, True, {"relevance", "recency", "importance"})


def test_recency_is_measured_from_when_the_question_is_asked(mem: semmem.Semmem) -> None:
    chosen = semmem.recipe("lexical", rerank="composite")
    stored = mem.get("b").created_at
    assert stored is not None
    (later, *_) = mem.recall("reed", recipe=chosen, now=stored + timedelta(days=60))
    # after 60 days of the reranker's 30 its .05 is a quarter
    assert later.components["recency"] == pytest.approx(0.0125)


def test_recency_counts_from_the_creation_of_an_imported_memory_and_from_the_change_of_a_changed_one(
    mem: semmem.Semmem,
) -> None:
    for id in ("kept", "changed", "planned"):
        day = "2026-03-01" if id == "planned" else "2025-12-02"
        mem.remember(f"A bittern in the {id} reeds.", id=id, created_at=f"{day}T00:00:00Z")
    changed = mem.update("changed", text="A bittern in the changed and changed reeds.").updated_at
    assert changed is not None
    assert changed > NOW

    def recency(now: datetime) -> dict[str, float]:
        hits = mem.recall("bittern", recipe=semmem.recipe("lexical", rerank="composite"), now=now)
        return {hit.id: hit.components["recency"] for hit in hits}

    # 60 days after 2025-12-02: .05 / 4; a time that is yet to come counts as now: .05
    assert recency(NOW) == {"kept": pytest.approx(0.0125), "changed": 0.05, "planned": 0.05}
    # 30 days after the change: .05 / 2
    assert recency(changed + timedelta(days=30))["changed"] == pytest.approx(0.025)


def test_only_the_rerank_depth_is_ordered_anew(mem: semmem.Semmem) -> None:
    found = mem.recall("heron", recipe=semmem.recipe("lexical", prior=False, rerank="composite", rerank_depth=2))
    assert [hit.memory.id for hit in found] == ["b", "a", "c"]
    assert [set(hit.components) for hit in found] == [{"relevance", "recency", "importance"}] * 2 + [{"lexical"}]
    scores = [hit.score for hit in found]
    assert scores == sorted(scores, reverse=True)


def test_another_order_than_relevance_is_not_reranked(mem: semmem.Semmem) -> None:
    chosen = semmem.recipe("lexical", rerank="composite")
    assert [hit.memory.id for hit in mem.recall("heron", recipe=chosen, sort_by="importance")] == ["b", "c", "a"]
    assert "rerank" not in mem.recall("heron", recipe=chosen, sort_by="importance").timings


def test_a_reranker_reads_whole_memories_and_the_passages_that_were_found(mem: semmem.Semmem) -> None:
    seen: list[tuple[Memory, str]] = []

    class Reading:
        name = "composite"

        def rerank(
            self,
            query: str,
            memories: Sequence[Memory],
            scores: Sequence[float],
            *,
            passages: Sequence[str],
            now: datetime,
        ) -> list[dict[str, float]]:
            seen.extend(zip(memories, passages, strict=True))
            return [{"read": 0.5} for _ in memories]

    mem._here.recaller._rerankers["composite"] = Reading()
    mem.remember("The reeds stand still. " * 70 + "A kingfisher dives.", id="long")
    found = mem.recall("kingfisher", recipe=semmem.recipe("lexical", rerank="composite"))
    assert not found.degraded
    assert [memory for memory, _ in seen] == [mem.get("long")]
    assert seen[0][1] == found[0].passage.text
    assert seen[0][1].endswith("A kingfisher dives.")
    assert len(seen[0][1]) < 1400


def test_a_reranker_that_fails_leaves_the_fused_answer_and_says_why(
    mem: semmem.Semmem, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    found = mem.recall("heron", recipe=semmem.recipe("lexical", prior=False, rerank="cross_encoder:any"))
    assert [hit.memory.id for hit in found] == ["a", "b", "c"]
    assert "pip install 'semmem[local]'" in found.degraded["rerank"]
    assert found.total_is_exact


@pytest.mark.slow  # loading torch and transformers takes seconds
def test_a_cross_encoder_that_is_not_on_this_machine_is_said_in_a_sentence(mem: semmem.Semmem, tmp_path: Path) -> None:
    chosen = semmem.recipe("lexical", prior=False, rerank=f"cross_encoder:{tmp_path / 'nothing'}")
    found = mem.recall("heron", recipe=chosen)
    assert [hit.memory.id for hit in found] == ["a", "b", "c"]
    assert "cannot be loaded from this machine" in found.degraded["rerank"]
    assert found.total_is_exact


# --- the cross-encoder -------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_cross_encoder(tmp_path_factory.mktemp("tiny"))


@pytest.mark.slow  # loading torch and transformers takes seconds
def test_a_cross_encoder_scores_question_and_memory_together(tiny: Path, mem: semmem.Semmem) -> None:
    import torch
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    model, tokeniser = AutoModelForSequenceClassification.from_pretrained(tiny), AutoTokenizer.from_pretrained(tiny)
    found = mem.recall("heron", recipe=semmem.recipe("lexical", rerank=f"cross_encoder:{tiny}"))
    assert "rerank" not in found.degraded
    assert sorted(hit.memory.id for hit in found) == ["a", "b", "c"]
    with torch.no_grad():
        for hit in found:
            encoded = tokeniser("heron", hit.memory.text, return_tensors="pt")
            expected = torch.sigmoid(model.eval()(**encoded).logits[0, 0]).item()
            assert hit.score == pytest.approx(expected, abs=1e-5)
            assert hit.components == {"cross_encoder": hit.score}
    scores = [hit.score for hit in found]
    assert scores == sorted(scores, reverse=True)


@pytest.mark.slow  # as above
def test_a_cross_encoder_is_the_same_twice_and_takes_texts_of_any_length(tiny: Path) -> None:
    reranker = CrossEncoder(str(tiny))
    found = [memory("a", 0.5, 0), Memory("b", "demo", "reed " * 5_000, title="heron")]
    texts = [m.text for m in found]
    first = reranker.rerank("heron", found, [0.5, 0.5], passages=texts, now=NOW)
    assert first == reranker.rerank("heron", found, [0.5, 0.5], passages=texts, now=NOW)
    assert all(0 < terms["cross_encoder"] < 1 for terms in first)
    assert reranker.rerank("heron", [], [], passages=[], now=NOW) == []


def test_without_sentence_transformers_the_pip_line_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match=r"pip install 'semmem\[local\]'"):
        rerankers.load("cross_encoder:any")
