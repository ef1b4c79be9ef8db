"""A cross-encoder in ONNX, from a folder: a graph of known numbers, and the export of a real model."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest

import semmem
from semmem import rerankers
from semmem.model.errors import InvalidInput, MissingExtra
from semmem.model.types import Memory
from semmem.rerankers.onnx_cross_encoder import OnnxCrossEncoder
from tests.rerankers.tiny import tiny_cross_encoder

NOW = datetime(2026, 1, 31, tzinfo=UTC)
WORDS = {"[CLS]": 0.0, "[SEP]": 0.0, "heron": 1.0, "reed": -2.0, "water": 0.5, "[UNK]": 0.0}


def written(
    folder: Path,
    *,
    inputs: Sequence[str] = ("input_ids",),
    outputs: int = 1,
    place: str = "model.onnx",
    kind: int = 7,
    length: str | int = "length",
) -> Path:
    """Write a graph whose score of a pair is the sum of what ``WORDS`` says of each word in it.

    It reads pairs of ``length`` tokens alone where that is a number.
    """
    onnx = pytest.importorskip("onnx")
    tokenizers = pytest.importorskip("tokenizers")
    helper, numpy_helper = onnx.helper, onnx.numpy_helper
    import numpy as np

    values = np.array(list(WORDS.values()), dtype=np.float32).repeat(outputs).reshape(len(WORDS), outputs)
    nodes = [
        helper.make_node("Gather", ["values", "input_ids"], ["each"]),
        helper.make_node("ReduceSum", ["each", "axes"], ["logits"], keepdims=0),
    ]
    graph = helper.make_graph(
        nodes,
        "words",
        [helper.make_tensor_value_info(name, kind, ["batch", length]) for name in inputs],
        [helper.make_tensor_value_info("logits", 1, ["batch", outputs])],
        [numpy_helper.from_array(values, "values"), numpy_helper.from_array(np.array([1], dtype=np.int64), "axes")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)
    file = folder / place
    file.parent.mkdir(parents=True, exist_ok=True)
    onnx.save(model, str(file))
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordLevel({w: i for i, w in enumerate(WORDS)}, "[UNK]"))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    tokenizer.post_processor = tokenizers.processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 0), ("[SEP]", 1)]
    )
    tokenizer.save(str(folder / "tokenizer.json"))
    return folder


def scores(folder: Path, texts: Sequence[str], query: str = "heron") -> list[float]:
    memories = [Memory(str(at), "demo", "another text") for at in range(len(texts))]
    found = rerankers.load(f"cross_encoder:{folder}").rerank(
        query, memories, [0.5] * len(texts), passages=texts, now=NOW
    )
    return [terms["cross_encoder"] for terms in found]


@pytest.mark.parametrize("place", ["model.onnx", "onnx/model.onnx"])
@pytest.mark.parametrize("kind", [6, 7])  # int32 and int64
def test_a_graph_scores_question_and_passage_together(tmp_path: Path, place: str, kind: int) -> None:
    folder = written(tmp_path, place=place, kind=kind)
    # the logistic of 1, of 1 + 1 and of 1 - 2 + .5
    assert scores(folder, ["", "a heron", "reed and water"]) == [
        pytest.approx(0.7310586), pytest.approx(0.8807971), pytest.approx(0.3775407)
    ]  # fmt: skip
    assert scores(folder, []) == []


def test_masks_and_types_are_given_to_a_graph_that_asks_for_them(tmp_path: Path) -> None:
    folder = written(tmp_path, inputs=("input_ids", "attention_mask", "token_type_ids"))
    assert scores(folder, ["heron"]) == [pytest.approx(0.8807971)]


def test_a_title_is_read_too_and_a_passage_that_is_too_long_is_cut(tmp_path: Path) -> None:
    folder = written(tmp_path)
    (folder / "tokenizer_config.json").write_text(json.dumps({"model_max_length": 8}), encoding="utf-8")
    encoder = rerankers.load(f"cross_encoder:{folder}")
    found = encoder.rerank("reed", [Memory("a", "demo", "x", title="heron")], [0.5], passages=["heron " * 9], now=NOW)
    # of eight tokens three are marks and one is the question's, so the title and three words: -2 + 4
    assert found == [{"cross_encoder": pytest.approx(0.8807971)}]


def test_a_recall_is_ordered_by_the_graph(tmp_path: Path, store_url: str) -> None:
    folder = written(tmp_path)
    with semmem.connect(store_url, embedder="none") as mem:
        mem.remember_many([{"id": "a", "text": "heron reed reed"}, {"id": "b", "text": "heron water"}])
        found = mem.recall("heron", recipe=semmem.recipe("lexical", rerank=f"cross_encoder:{folder}"))
        assert "rerank" not in found.degraded
        assert [hit.memory.id for hit in found] == ["b", "a"]
        assert found[0].components == {"cross_encoder": pytest.approx(0.9241418)}  # the logistic of 2.5


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"outputs": 2}, "gives 2 outputs for a pair"),
        ({"inputs": ("input_ids", "pixels")}, "has an input 'pixels'"),
    ],
)
def test_a_graph_of_another_kind_is_refused(tmp_path: Path, wrong: dict[str, object], says: str) -> None:
    with pytest.raises(InvalidInput, match=says):
        scores(written(tmp_path, **wrong), ["heron"])  # type: ignore[arg-type]


def test_a_pair_or_question_that_is_too_long_for_a_graph_is_told_in_one_sentence(tmp_path: Path) -> None:
    folder = written(tmp_path, length=5)
    assert scores(folder, ["heron"]) == [pytest.approx(0.8807971)]  # two words and three marks
    with pytest.raises(InvalidInput) as refused:
        scores(folder, ["a heron"])
    sentence = str(refused.value)
    assert sentence.startswith(f"The cross-encoder {folder / 'model.onnx'} cannot read a pair of 6 tokens (")
    assert sentence.endswith(
        f'); write the most that it reads as "model_max_length" into {folder / "tokenizer_config.json"}.'
    )
    assert "\n" not in sentence
    (folder / "tokenizer_config.json").write_text(json.dumps({"model_max_length": 8}), encoding="utf-8")
    with pytest.raises(InvalidInput, match=r"^The question is longer than the 8 tokens that the cross-encoder .*; "):
        scores(folder, ["heron"], query="reed " * 9)


def test_files_that_are_broken_or_missing_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = written(tmp_path / "whole")
    broken = written(tmp_path / "broken")
    (broken / "model.onnx").write_bytes(b"no graph")
    with pytest.raises(InvalidInput, match=r"model\.onnx cannot be loaded \("):
        scores(broken, ["heron"])
    (folder / "tokenizer.json").unlink()
    with pytest.raises(InvalidInput, match=r"has no tokenizer\.json beside it or one folder above; copy it there"):
        scores(folder, ["heron"])
    monkeypatch.setattr("semmem.rerankers.onnx_cross_encoder.find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match=r"pip install 'semmem\[minilm\]'"):
        scores(folder, ["heron"])


@pytest.mark.slow  # loading torch and transformers takes seconds
@pytest.mark.filterwarnings("ignore")  # of the exporter
def test_an_exported_model_scores_as_it_does_in_torch(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    (tmp_path / "torch").mkdir()
    folder = tiny_cross_encoder(tmp_path / "torch")
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    model, tokeniser = (
        AutoModelForSequenceClassification.from_pretrained(folder).eval(),
        AutoTokenizer.from_pretrained(folder),
    )
    names = ["input_ids", "attention_mask", "token_type_ids"]
    pair = tokeniser("heron", "the heron and the reed", return_tensors="pt")
    there = tmp_path / "exported"
    (there / "onnx").mkdir(parents=True)
    torch.onnx.export(
        model, tuple(pair[name] for name in names), str(there / "onnx" / "model.onnx"), input_names=names,
        dynamic_axes={name: {0: "batch", 1: "length"} for name in names}, dynamo=False,
    )  # fmt: skip
    shutil.copy(folder / "tokenizer.json", there)
    with torch.no_grad():
        expected = [
            torch.sigmoid(model(**tokeniser("heron", text, return_tensors="pt")).logits[0, 0]).item()
            for text in ("the heron and the reed", "water")
        ]
    assert isinstance(rerankers.load(f"cross_encoder:{there}"), OnnxCrossEncoder)
    assert scores(there, ["the heron and the reed", "water"]) == pytest.approx(expected, abs=1e-5)
