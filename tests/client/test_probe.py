"""The probe: a witness through the real pipeline, each stage broken on purpose once, and the stage that it names."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import semmem
from semmem.client.probe.fixture import WITNESS, Competitor, ProbeFixture, fixture
from semmem.client.probe.prober import Prober
from semmem.client.probe.stages import STAGES, Probe, Probed
from semmem.embedders.hashing import Hashing
from semmem.model.exchange import Extraction, Question, Ranking, Scope
from semmem.model.recipe import Recipe
from semmem.model.types import Filters, Memory


@pytest.fixture(scope="module")
def opened(module_store: Callable[[], str]) -> Iterator[semmem.Semmem]:
    with semmem.connect(module_store(), embedder="hashing") as opened:
        yield opened


@pytest.fixture
def mem(opened: semmem.Semmem) -> Iterator[semmem.Semmem]:
    """A store that every test leaves as it was: a probe drops what it stores, and the legs are put back."""
    legs = {name: opened._here.legs[name] for name in ("lexical", "dense", "graph")}
    yield opened
    opened._here.legs.update(legs)
    opened._here.recaller._rerankers.clear()
    for namespace in opened.store.namespaces():
        opened.forget(namespace=namespace, filters={"created_before": "9999-01-01"})


NAMELESS = {"lexical": "described", "dense": "described", "graph": "anchored"}
"""The regime that the lists of each leg's own scene make of the question that names nothing."""


def only(found: Probe) -> Probed:
    assert len(found) == 1
    one: Probed = found[0]
    return one


def prober(mem: semmem.Semmem) -> Prober:
    of = mem._here
    return Prober(mem.store, of.ingest, of.recaller, of.legs, of.extractor, of.embedder_binding.embedder_or_reason)


def run(mem: semmem.Semmem, recipe: Recipe, of: ProbeFixture, k: int = 10) -> Probed:
    return prober(mem).run(recipe, of, k, Filters())


# ---------------------------------------------------------------------- the lock-out that this project exists for


def test_the_fusion_of_recipe_seed_drops_what_only_the_graph_finds(mem: semmem.Semmem) -> None:
    one = only(mem.probe(recipe="seed", k=10, leg="graph"))
    # .35/61 = .00574 against 1/70 = .01429
    assert (one.dropped, one.rank, one.others, one.class_) == ("fused", 1, {}, "boost-only")
    assert one.place is not None
    assert one.place > 10
    assert ".00574" in one.why
    assert ".01429" in one.why
    assert one.passed == tuple(STAGES)[:8]
    assert one.passed[-1] == "depth"


def test_the_default_recipe_returns_what_only_the_graph_finds_whether_or_not_the_question_names_something(
    mem: semmem.Semmem,
) -> None:
    found = mem.probe(k=10, leg="graph")
    assert [(one.regime, one.dropped, one.rank) for one in found] == [("named", None, 1), ("anchored", None, 1)]
    assert found.dropped == ()
    assert found[0].passed == tuple(STAGES)


def test_every_leg_of_the_default_recipe_brings_in_its_own(mem: semmem.Semmem) -> None:
    found = mem.probe(recipe="default", k=5)
    assert [(one.leg, one.regime) for one in found] == [
        (leg, regime) for leg, nameless in NAMELESS.items() for regime in ("named", nameless)
    ]
    assert {(one.returned, one.rank) for one in found} == {(True, 1)}


@pytest.mark.parametrize("name", ["hybrid", "memini", "nexus", "tm2c2"])
@pytest.mark.parametrize("k", [1, 10])
def test_without_a_graph_the_pipeline_does_what_the_arithmetic_says(mem: semmem.Semmem, name: str, k: int) -> None:
    reach = semmem.reach(semmem.recipe(name), k).regimes["any"].legs
    for one in mem.probe(recipe=name, k=k):
        assert (one.rank, one.others) == (1, {})
        if reach[one.leg].tie is None:  # a tie goes by key
            assert one.returned == (reach[one.leg].class_ in ("possible", "guaranteed")), one


def test_a_find_of_a_text_leg_is_where_the_graph_starts_and_the_probe_says_so(mem: semmem.Semmem) -> None:
    one = only(mem.probe(recipe="seed", k=1, leg="lexical"))
    # at k = 1 the lexical leg ties with the dense one, 1/61 each; the share of the graph decides
    assert (one.returned, one.class_, one.alone) == (True, "possible", False)
    assert set(one.others) == {"graph"}
    assert "without that it would stay out" in one.why


# ---------------------------------------------------------------------- each stage broken once


class Finding:
    """An extractor that finds what it is told to."""

    name = "finding"

    def __init__(self, error: Exception | None = None) -> None:
        self.error = error

    def extract(self, text: str, title: str | None) -> Extraction:
        if self.error is not None:
            raise self.error
        return Extraction([], [], [], [], [], [], 0)


class Refusing(Hashing):
    """An embedder that will not take the witness."""

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        raise semmem.EmbedderUnavailable("The model has left.")


class Leg:
    """A leg in the place of one of ours."""

    def __init__(self, name: str, error: Exception | None = None, go: threading.Event | None = None) -> None:
        self.name, self.error, self.go = name, error, go

    def search(self, question: Question, scope: Scope, recipe: Recipe) -> Ranking:
        if self.go is not None:
            self.go.wait(60)
        if self.error is not None:
            raise self.error
        return Ranking()


class Backwards:
    """A reranker that puts the last first."""

    name = "composite"

    def rerank(
        self, query: str, memories: Sequence[Memory], scores: Sequence[float], *, passages: Sequence[str], now: datetime
    ) -> list[dict[str, float]]:
        return [{"place": 0.0 if memory.id == WITNESS else 0.5} for memory in memories]


@pytest.mark.parametrize("leg", ["lexical", "graph"])
def test_extracted_an_extractor_that_finds_nothing(store_url: str, leg: str) -> None:
    with semmem.connect(store_url, embedder="hashing", extractor=Finding()) as mem:
        one = mem.probe(recipe="default", leg=leg)[0]
        assert (one.dropped, one.passed) == ("extracted", ())
        assert "finding found no" in one.why


def test_extracted_an_extractor_that_fails(store_url: str) -> None:
    with semmem.connect(store_url, embedder="hashing", extractor=Finding(ValueError("no such thing"))) as mem:
        one = only(mem.probe(recipe="lexical"))
        assert one.dropped == "extracted"
        assert "no such thing" in one.why


def test_embedded_an_embedder_that_refuses(store_url: str) -> None:
    with semmem.connect(store_url, embedder=Refusing()) as mem:
        one = only(mem.probe(recipe="dense"))
        assert (one.dropped, one.passed) == ("embedded", ("extracted",))
        assert "The model has left." in one.why


def test_embedded_no_embedder_at_all_concerns_the_dense_leg_alone(store_url: str) -> None:
    with semmem.connect(store_url, embedder="none") as mem:
        found = mem.probe(recipe="seed", k=10)
        assert [(one.leg, one.dropped) for one in found] == [
            ("lexical", None),
            ("dense", "embedded"),
            ("graph", "fused"),
        ]


def test_a_sqlite_file_passes_every_leg_with_and_without_a_name_and_keeps_nothing() -> None:
    with semmem.connect("sqlite::memory:", embedder="hashing") as mem:
        found = mem.probe(recipe="default", k=10)
        assert sorted((one.leg, str(one.regime), one.dropped) for one in found) == [
            (leg, regime, None) for leg in ("dense", "graph", "lexical") for regime in sorted(("named", NAMELESS[leg]))
        ]
        assert list(mem.store.namespaces()) == []


def test_stored_a_store_that_does_not_take_it(mem: semmem.Semmem, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any, **__: Any) -> Any:
        raise semmem.StoreError("The disk is full.")

    monkeypatch.setattr(mem.store, "write", full)
    one = only(mem.probe(recipe="lexical"))
    assert (one.dropped, one.passed) == ("stored", ("extracted", "embedded"))
    assert "The disk is full." in one.why


@pytest.mark.parametrize("change", [{"weights": {"graph": 0}}, {"depths": {"graph": 0}}])
def test_asked_a_leg_without_weight_or_depth(mem: semmem.Semmem, change: dict[str, Any]) -> None:
    one = mem.probe(recipe=semmem.recipe("seed", **change), leg="graph")[0]
    assert (one.dropped, one.rank) == ("asked", None)


def test_answered_a_leg_that_raises(mem: semmem.Semmem) -> None:
    mem._here.legs["dense"] = Leg("dense", RuntimeError("out of order"))
    one = only(mem.probe(recipe="dense"))
    assert one.dropped == "answered"
    assert "out of order" in one.why


def test_answered_a_leg_that_takes_too_long(mem: semmem.Semmem) -> None:
    go = threading.Event()
    mem._here.legs["lexical"] = Leg("lexical", go=go)
    try:
        one = only(mem.probe(recipe=semmem.recipe("lexical", timeouts={"lexical": 0.05})))
    finally:
        go.set()
    assert one.dropped == "answered"
    assert "no answer within 0.05 s" in one.why


def test_scope_a_filter_that_it_does_not_match(mem: semmem.Semmem) -> None:
    one = only(mem.probe(recipe="lexical", filters={"tags": ["kept"]}))
    assert one.dropped == "scope"
    assert "tags ('kept',)" in one.why


def test_found_a_leg_that_finds_something_else(mem: semmem.Semmem) -> None:
    mem._here.legs["lexical"] = Leg("lexical")
    one = only(mem.probe(recipe="lexical"))
    assert (one.dropped, one.rank) == ("found", None)
    own = only(mem.probe(recipe="lexical", leg="lexical", witness=("brass lantern", "Nothing of the kind.")))
    assert own.dropped in ("extracted", "found")


def test_depth_a_leg_that_is_not_asked_deep_enough(mem: semmem.Semmem) -> None:
    shallow = semmem.recipe("hybrid", depths={"lexical": 2})
    of = fixture(shallow, "lexical", "any", 10)
    ahead = tuple(Competitor(f"a{n}", f"Ahead {n}.", words=9) for n in range(3))
    lost = run(
        mem, shallow, replace(of, question="lantern", text="A lantern, and much else besides.", competitors=ahead)
    )
    assert lost.dropped == "depth"
    assert lost.why == "lexical has it at rank 4, and the recipe asks for 2."


def test_fused_a_weight_that_is_too_small(mem: semmem.Semmem) -> None:
    light = semmem.recipe("hybrid", weights={"dense": 0.5})
    one = only(mem.probe(recipe=light, k=10, leg="dense"))
    # .5/61 = .0082, the tenth of the lexical leg 1/70 = .0143
    assert (one.dropped, one.class_) == ("fused", "boost-only")
    assert one.place == 11


def test_folded_a_competitor_that_reads_the_same(mem: semmem.Semmem) -> None:
    recipe = semmem.recipe("hybrid")
    of = fixture(recipe, "lexical", "any", 10)
    twin = Competitor("twin", of.text.upper(), words=30, near=0.5)
    one = run(mem, recipe, replace(of, competitors=(*of.competitors, twin)))
    assert (one.dropped, one.place) == ("folded", None)
    assert "folded into twin" in one.why
    assert run(mem, replace(recipe, dedup=False), replace(of, competitors=(*of.competitors, twin))).returned


def test_limit_competitors_that_score_more_where_other_lists_would_let_it_in(mem: semmem.Semmem) -> None:
    recipe = semmem.recipe("hybrid")
    of = fixture(recipe, "lexical", "any", 2)
    both = tuple(Competitor(f"b{n}", f"Both {n}.", words=1, near=0.5) for n in range(2))
    own = {"question": "lantern", "text": "Lantern, lantern, lantern."}
    one = run(mem, recipe, replace(of, **own, competitors=(*of.competitors, *both)), k=2)  # type: ignore[arg-type]
    # the two are second and third of its list and first and second of the other: 1/62 + 1/61 and 1/63 + 1/62 > 1/61
    assert (one.dropped, one.class_, one.place) == ("limit", "possible", 3)


def test_reranked_a_reranker_that_puts_it_last(mem: semmem.Semmem) -> None:
    recipe = semmem.recipe("hybrid", rerank="composite")
    assert only(mem.probe(recipe=recipe, k=3, leg="lexical")).returned
    mem._here.recaller._rerankers["composite"] = Backwards()
    one = only(mem.probe(recipe=recipe, k=3, leg="lexical"))
    assert one.dropped == "reranked"
    assert one.place is not None
    assert one.place > 3


def test_returned_a_memory_that_is_forgotten_while_it_is_recalled(
    mem: semmem.Semmem, monkeypatch: pytest.MonkeyPatch
) -> None:
    memories = mem.store.indexed_memories
    monkeypatch.setattr(
        mem.store,
        "indexed_memories",
        lambda ns, row_ids: {o: m for o, m in memories(ns, row_ids).items() if m.id != WITNESS},
    )
    one = only(mem.probe(recipe="lexical"))
    assert (one.dropped, one.passed[-1]) == ("returned", "reranked")


def test_every_stage_is_broken_in_a_test_here() -> None:
    named = {name.split("_")[1] for name in globals() if name.startswith("test_")}
    assert set(STAGES) <= named


# ---------------------------------------------------------------------- what it leaves behind


def test_nothing_is_left_behind_after_a_probe_an_error_or_ctrl_c(
    mem: semmem.Semmem, monkeypatch: pytest.MonkeyPatch
) -> None:
    mem.remember("The gate is blue.", id="a")
    before = mem.stats()
    mem.probe(recipe="default", k=3)
    assert list(mem.store.namespaces()) == ["default"]
    for error in (KeyboardInterrupt(), RuntimeError("gone")):
        with monkeypatch.context() as patch:

            def stop(*_: Any, error: BaseException = error, **__: Any) -> Any:
                assert len(mem.store.namespaces()) == 2  # there is something to leave behind
                raise error

            patch.setattr(mem._here.recaller, "recall", stop)
            with pytest.raises(type(error)):
                mem.probe(recipe="lexical")
        assert list(mem.store.namespaces()) == ["default"]
    after = mem.stats()
    assert after.memories == before.memories == 1
    assert (after.mentions, after.vectors) == (before.mentions, before.vectors)


def test_what_a_killed_probe_left_is_dropped_by_the_next_after_an_hour(mem: semmem.Semmem) -> None:
    hour_old, fresh = "semmem-probe-1000-0123456789ab", f"semmem-probe-{int(time.time())}-0123456789ab"
    for namespace in (hour_old, fresh, "semmem-probe-mine"):
        mem.remember("Left behind.", namespace=namespace)
    mem.probe(recipe="lexical")
    assert set(mem.store.namespaces()) == {fresh, "semmem-probe-mine"}


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"k": 0}, "k must be from 1 to 1000, not 0"),
        ({"leg": "grpah"}, "no leg named 'grpah'; choose one of lexical, dense, graph"),
        ({"witness": ("what?", "that")}, "name the leg that finds it, too"),
        ({"witness": ("", "that"), "leg": "lexical"}, "a question and a text"),
    ],
)
def test_a_bad_argument_is_refused_in_one_sentence(
    mem: semmem.Semmem, arguments: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(semmem.InvalidInput, match=sentence):
        mem.probe(**arguments)
