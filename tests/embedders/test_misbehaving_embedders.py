"""A failing embedder is named in one sentence with its text, no verb stores half of anything, and recall goes on."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pytest

import semmem
from semmem.client.memory import Semmem
from semmem.embedders import binding
from semmem.embedders.hashing import Hashing
from semmem.model.errors import EmbedderUnavailable

BAD = "heron"


class Misbehaving(Hashing):
    """The hashing embedder, but ``fault`` makes the answer for texts of which one names the heron."""

    name = "faulty"
    fingerprint = "faulty-1"

    def __init__(self) -> None:
        self.fault: Callable[[Any, int], Any] | None = None

    def embed(self, texts: Sequence[str]) -> Any:
        rows = Hashing().embed(texts)
        bad = [place for place, text in enumerate(texts) if BAD in text]
        return rows if self.fault is None or not bad else self.fault(rows, bad[0])


def _with(value: float) -> Callable[[Any, int], Any]:
    def fault(rows: Any, place: int) -> Any:
        rows = rows.copy()
        rows[place] = value
        return rows

    return fault


def _raise(rows: Any, place: int) -> Any:
    raise ConnectionError("the service\nis away")


class Untidy:
    """An array of another library that cannot be read on this machine."""

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise RuntimeError("on another device")


FINITE = "returned a vector with a number that is not finite (NaN or infinity) for {text}."
# a fault, and the sentence that follows the name of the embedder; {text} names one text, {texts} all of the call
FAULTS: dict[str, tuple[Callable[[Any, int], Any], str]] = {
    "NaN": (_with(np.nan), FINITE),
    "infinity": (_with(-np.inf), FINITE),
    "zeros": (_with(0), "returned a vector with only zeros for {text}."),
    "None": (lambda *_: None, "returned None for {texts}; it must return {count} × 256 numbers."),
    "None inside": (lambda rows, _: [None] * len(rows), "returned a list that is no table of numbers for {texts}; "),
    "text": (lambda *_: "no numbers", "returned a str that is no table of numbers for {texts}; "),
    "too few": (lambda rows, _: rows[:-1], "returned {fewer} vectors of 256 dimensions for {texts}; "),
    "too many": (lambda rows, _: np.vstack([rows, rows[:1]]), "returned {more} vectors of 256 dimensions for {texts}"),
    "too short": (lambda rows, _: rows[:, :5], "returned {count} vectors of 5 dimensions for {texts}; "),
    "ragged": (lambda rows, _: [[1.0] * n for n in range(1, len(rows) + 2)], "returned a list that is no table of"),
    "flat": (lambda rows, _: np.ones(256), "returned a ndarray that is no table of numbers for {texts}; "),
    "another device": (lambda *_: Untidy(), "returned a Untidy that is no table of numbers for {texts}; "),
    "raises": (_raise, "could not embed {texts}: ConnectionError: the service is away"),
}


OF_ONE = ("NaN", "infinity", "zeros")
"""The faults that concern one text alone, so that the others of a batch can be stored."""


def sentence(fault: str, text: str, texts: str | None = None, count: int = 1) -> str:
    """Return the beginning of the message for ``fault``."""
    places = {"text": text, "texts": texts or text, "count": count, "fewer": count - 1, "more": count + 1}
    return "The embedder faulty " + FAULTS[fault][1].format(**places)


@pytest.fixture
def faulty() -> Misbehaving:
    return Misbehaving()


@pytest.fixture
def mem(store_url: str, faulty: Misbehaving) -> Iterator[Semmem]:
    """Memories of the ferry and the tide, and from then on an embedder that can be made to fail."""
    with semmem.connect(store_url, embedder=faulty, pool_size=2) as mem:
        mem.remember_many([{"id": "ferry", "text": "The ferry is late."}, {"id": "tide", "text": "The tide is out."}])
        yield mem


def state(mem: Semmem) -> Any:
    """Return all that is stored, without times of access."""
    return [(m.id, m.text, m.version) for m in sorted(mem.list(limit=100), key=lambda m: m.id)]


@pytest.mark.parametrize("fault", OF_ONE)
def test_with_skip_an_item_without_a_usable_vector_is_rejected_and_the_others_are_stored(
    mem: Semmem, faulty: Misbehaving, fault: str
) -> None:
    texts = ["The mast is new.", "A heron stands here.", "No wind.", "A heron stands here.", "No wind."]
    faulty.fault = FAULTS[fault][0]
    why = sentence(fault, "x").removesuffix(" for x.") + "."
    report = mem.remember_many([{"text": text} for text in texts], on_error="skip")
    rejected = [(one.position, one.id, one.reason) for one in report.rejected]
    if fault == "NaN":
        assert why == "The embedder faulty returned a vector with a number that is not finite (NaN or infinity)."
    assert rejected == [(1, None, why), (3, None, why)]  # the same text is embedded once
    assert (report.remembered, report.unchanged, mem.recall("mast")[0].text) == (2, 1, "The mast is new.")
    one = mem.remember_many([{"text": "A heron flies.", "id": "bird"}], on_error="skip")
    assert [(row.id, row.reason, len(mem.list())) for row in one.rejected] == [("bird", why, 4)]
    mem.update("ferry", tags=["shore"])
    before, item = state(mem), {"id": "ferry", "text": "A heron is on the ferry.", "tags": ["shore"]}
    brought = mem.import_items([item], owned={"tags": ["shore"]}, replace=True, prune=True)
    assert ([(row.id, row.reason) for row in brought.rejected], state(mem)) == ([("ferry", why)], before)


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS)
def test_each_write_names_the_embedder_and_the_text_and_stores_nothing(
    mem: Semmem, faulty: Misbehaving, fault: str
) -> None:
    items = [{"text": "The mast is new."}, {"id": "bird", "text": "A heron stands here."}, {"text": "No wind."}]
    several: Any = {"texts": "3 texts, from item 0 on", "count": 3}
    before, faulty.fault = state(mem), FAULTS[fault][0]
    for verb, expected in (
        (lambda: mem.remember("A heron stands here."), sentence(fault, "the text")),
        (lambda: mem.remember("A heron stands here.", id="bird"), sentence(fault, "memory 'bird'")),
        (lambda: mem.update("tide", text="A heron stands here."), sentence(fault, "memory 'tide'")),
        (lambda: mem.remember_many(items), sentence(fault, "item 1 (id 'bird')", **several)),
        (lambda: mem.remember_many(items, on_error="skip"), sentence(fault, "", **several)),
        (lambda: mem.import_items(items), sentence(fault, "", **several)),
        (
            lambda: mem.import_items(items[1:2], owned={"tags": ["shore"]}, replace=True, prune=True),
            sentence(fault, "memory 'bird'"),
        ),
    )[: 4 if fault in OF_ONE else None]:
        with pytest.raises(EmbedderUnavailable) as caught:
            verb()
        assert caught.value.message.startswith(expected)
        assert "\n" not in caught.value.message
        assert state(mem) == before
    faulty.fault = None
    assert mem.remember_many(items).remembered == 3


@pytest.mark.parametrize("fault", FAULTS)
def test_a_recall_reports_the_dense_leg_and_answers_by_the_others(mem: Semmem, faulty: Misbehaving, fault: str) -> None:
    faulty.fault = FAULTS[fault][0]
    found = mem.recall("heron on the ferry")
    assert [hit.memory.id for hit in found] == ["ferry"]
    assert set(found.degraded) == {"dense"}
    assert found.degraded["dense"].startswith(sentence(fault, "the question"))


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS)
def test_a_rebuild_names_the_memory_keeps_the_former_vectors_and_continues(
    store_url: str, faulty: Misbehaving, fault: str
) -> None:
    with semmem.connect(store_url, embedder="hashing") as mem:
        mem.remember("A heron.", id="bird", namespace="shore")
        mem.remember("The ferry.", id="ferry", namespace="shore")
        faulty.fault = FAULTS[fault][0]
        with pytest.raises(EmbedderUnavailable) as caught:
            mem.rebuild(embedder=faulty)
        texts = "2 texts, from memory 'bird' of namespace 'shore' on"
        assert caught.value.message.startswith(sentence(fault, "memory 'bird' of namespace 'shore'", texts, 2))
        assert mem.stats().embedder == "hashing"
        assert mem.recall("heron", namespace="shore", recipe="dense").degraded == {}
        faulty.fault = None
        assert mem.rebuild(embedder=faulty).embedded == 2
        assert mem.stats().embedder == "faulty"


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS)
def test_a_bulk_keeps_the_batches_before_the_failing_one_and_can_be_repeated(
    mem: Semmem, faulty: Misbehaving, fault: str
) -> None:
    items = [{"id": f"n{n}", "text": f"Note {n} of the {'heron' if n == 7 else 'tide'}."} for n in range(9)]
    faulty.fault = FAULTS[fault][0]
    with pytest.raises(EmbedderUnavailable) as caught:
        mem.remember_many(items, batch_size=3)
    texts = "3 texts, from item 6 (id 'n6') on"
    assert caught.value.message.startswith(sentence(fault, "item 7 (id 'n7')", texts, 3))
    assert [id for id, *_ in state(mem)] == ["ferry", "n0", "n1", "n2", "n3", "n4", "n5", "tide"]
    faulty.fault = None
    report = mem.remember_many(items, batch_size=3)
    assert (report.remembered, report.unchanged) == (3, 6)


@pytest.mark.parametrize("count", [None, float("nan"), -1, "four"])
def test_an_embedder_that_miscounts_tokens_is_named(store_url: str, faulty: Misbehaving, count: Any) -> None:
    faulty.max_tokens = 20
    faulty.count_tokens = lambda text: count  # type: ignore[method-assign]
    with semmem.connect(store_url, embedder=faulty) as mem:
        with pytest.raises(EmbedderUnavailable, match=r"The embedder faulty counted .* count_tokens must return a wh"):
            mem.remember("one two three four five six seven")
        assert state(mem) == []


def test_an_embedder_that_cannot_count_tokens_is_named(store_url: str, faulty: Misbehaving) -> None:
    faulty.max_tokens = 20
    faulty.count_tokens = lambda text: text.missing  # type: ignore[attr-defined, method-assign]
    with semmem.connect(store_url, embedder=faulty) as mem:
        with pytest.raises(EmbedderUnavailable, match=r"could not count the tokens of a text of 33 characters: Attri"):
            mem.remember("one two three four five six seven")
        assert state(mem) == []


@pytest.mark.parametrize("dimensions", [None, 0, "256", 2.5])
def test_an_embedder_without_a_number_of_dimensions_is_named(
    store_url: str, faulty: Misbehaving, dimensions: Any
) -> None:
    faulty.dimensions = dimensions
    with (
        pytest.raises(semmem.InvalidInput, match="dimensions of the embedder faulty must be a whole number from 1"),
        semmem.connect(store_url, embedder=faulty) as mem,
    ):
        mem.remember("one")


def test_a_large_vector_is_brought_to_unit_length(store_url: str, faulty: Misbehaving) -> None:
    faulty.fault = _with(1e30)  # whose square is no float32
    with semmem.connect(store_url, embedder=faulty) as mem:
        mem.remember("A heron.", id="bird")
        assert mem.recall("a heron", recipe="dense")[0].legs["dense"].score == pytest.approx(1, abs=1e-5)


def test_an_embedder_that_hangs_costs_each_recall_the_time_of_its_leg(
    mem: Semmem, faulty: Misbehaving, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(binding, "LONGEST_LOADING", 0)  # the time of loading is over
    go = threading.Event()
    faulty.fault = lambda rows, _: go.wait(30) and rows
    quick = semmem.recipe("default", timeouts={"dense": 0.05})
    try:
        found = mem.recall("heron on the ferry", recipe=quick)
        assert found.degraded == {"dense": "no answer within 0.05 s"}
        assert [hit.memory.id for hit in found] == ["ferry"]
        for _ in range(3):
            mem.recall("heron", recipe=quick)
        assert "until one ends it is not asked again" in mem.recall("heron", recipe=quick).degraded["dense"]
    finally:
        go.set()
