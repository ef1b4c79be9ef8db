"""Read a model as sentence-transformers saves it, or as an ONNX file with its tokenizer: its graph and its card."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from semmem.embedders.drawing import graph_of, shape_of
from semmem.embedders.installed import Card
from semmem.embedders.onnx_graph import TOKENIZER, read_weights
from semmem.embedders.onnx_runtime import Pooling
from semmem.embedders.weights import digest, package
from semmem.model.errors import EmbedderUnavailable, InvalidInput
from semmem.model.failure import reason

__all__ = ["Wishes", "read"]

_MODULES = ("Transformer", "Pooling", "Normalize")
_OLD_MODES = {
    "cls": "cls_token",
    "mean": "mean_tokens",
    "max": "max_tokens",
    "mean_sqrt_len": "mean_sqrt_len_tokens",
    "weightedmean": "weightedmean_tokens",
    "lasttoken": "lasttoken",
}
"""The names of the modes of pooling, and how they were written before."""
_INPUTS = frozenset(("ids", "input_ids", "attention_mask", "token_type_ids"))


@dataclass(frozen=True, slots=True)
class Wishes:
    """What a user wants otherwise than the files of the model say; None where they decide."""

    question: str | None = None
    passage: str | None = None
    dimensions: int | None = None
    max_tokens: int | None = None
    pooling: Pooling | None = None
    int8: bool = False


def read(place: Path, wishes: Wishes) -> tuple[Any, Path, Card]:
    """Return the graph, the file of the tokenizer and the card of the model in the folder or ONNX file ``place``.

    Raises EmbedderUnavailable, in one sentence, where the model has a part that semmem does not run.
    """
    folder, weights = place, place / "model.safetensors"
    file = None if weights.is_file() else _onnx_file(place)
    if file is not None:
        folder = next((one for one in (file.parent, file.parent.parent) if (one / TOKENIZER).is_file()), file.parent)
    if not (folder / TOKENIZER).is_file():
        raise EmbedderUnavailable(f"There is no {TOKENIZER} in {folder}; a model is both, its weights and {TOKENIZER}.")
    _require_modules(folder)
    tokens = wishes.max_tokens or _tokens(folder)
    if file is None:
        config, tensors = _object(folder / "config.json"), read_weights(weights)
        shape = _shape(config, tensors, tokens, folder)
        graph, width, tokens = graph_of(tensors, shape, folder.name, int8=wishes.int8), shape.width, shape.tokens
        pooling = wishes.pooling or _pooling(folder)
    else:
        if wishes.int8:
            raise InvalidInput("int8 needs the weights as model.safetensors; an ONNX file stays as it is.")
        graph = _loaded(file)
        width, pooled = _output(graph, file)
        pooling = "given" if pooled else wishes.pooling or _pooling(folder)
    card = _card(folder, digest(file or weights), width, tokens, pooling, wishes)
    return graph, folder / TOKENIZER, card


def _onnx_file(place: Path) -> Path:
    found = (one for one in (place, place / "model.onnx", place / "onnx" / "model.onnx") if one.is_file())
    if (file := next(found, None)) is None:
        raise EmbedderUnavailable(f"There is neither a model.safetensors nor a model.onnx in {place}.")
    return file


def _card(folder: Path, sha: str, width: int, tokens: int, pooling: Pooling, wishes: Wishes) -> Card:
    dimensions = width if wishes.dimensions is None else wishes.dimensions
    if not 1 <= dimensions <= width:
        raise InvalidInput(f"This model has vectors of {width} dimensions; choose 1 to {width}, not {dimensions}.")
    question, passage = _prompts(folder)
    return Card(
        weights_sha256=sha,
        tokenizer_sha256=digest(folder / TOKENIZER),
        dimensions=dimensions,
        max_tokens=tokens,
        pooling=pooling,
        question=question if wishes.question is None else wishes.question,
        passage=passage if wishes.passage is None else wishes.passage,
        lower=_object(folder / "sentence_bert_config.json").get("do_lower_case") is True,
        int8=wishes.int8,
    )


def _shape(config: dict[str, Any], tensors: Any, tokens: int, folder: Path) -> Any:
    try:
        return shape_of(config, tensors, tokens=tokens)
    except (KeyError, TypeError, ValueError) as error:
        raise EmbedderUnavailable(f"{folder / 'config.json'} is not the configuration of an encoder.") from error


def _object(file: Path) -> dict[str, Any]:
    """Return the JSON object in ``file``, an empty one where there is no such file."""
    try:
        found = json.loads(file.read_bytes())
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, RecursionError) as error:
        raise EmbedderUnavailable(f"{file} cannot be read as JSON.") from error
    return found if isinstance(found, dict) else {}


def _require_modules(folder: Path) -> None:
    """Raise EmbedderUnavailable where the model is more than an encoder, pooling and normalisation."""
    try:
        modules = json.loads((folder / "modules.json").read_bytes())
        kinds = [str(one["type"]).rpartition(".")[2] for one in modules]
    except FileNotFoundError:
        return
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise EmbedderUnavailable(f"{folder / 'modules.json'} does not name the modules of a model.") from error
    if other := [kind for kind in kinds if kind not in _MODULES]:
        raise EmbedderUnavailable(
            f"This model has a module {other[0]}, which semmem does not run; export the whole of it to ONNX, or wrap "
            "it as an embedder of your own."
        )


def _pooling(folder: Path) -> Pooling:
    """Return how the folder pools: by the mean where it says nothing."""
    found = _object(folder / "1_Pooling" / "config.json")
    if found.get("include_prompt") is False:
        raise EmbedderUnavailable("This model leaves its prompt out of the mean, which semmem does not do.")
    old = [mode for mode, before in _OLD_MODES.items() if found.get(f"pooling_mode_{before}")]
    mode = found.get("pooling_mode") or ("+".join(old) or "mean")
    if mode in ("mean", "mean_sqrt_len"):  # of one direction
        return "mean"
    if mode == "cls":
        return "cls"
    raise EmbedderUnavailable(
        f"This model pools by {mode}, and semmem by mean or cls; export the whole of it to ONNX, or wrap it as an "
        "embedder of your own."
    )


def _tokens(folder: Path) -> int:
    """Return the longest text in word pieces, 512 where no file says it."""
    said = _object(folder / "sentence_bert_config.json").get("max_seq_length")
    most = _object(folder / "tokenizer_config.json").get("model_max_length")
    for one in (said, most):
        if isinstance(one, int) and not isinstance(one, bool) and 2 < one < 100_000:
            return one
    return 512


def _prompts(folder: Path) -> tuple[str, str]:
    """Return what is put before questions and before passages."""
    found = _object(folder / "config_sentence_transformers.json")
    prompts = found.get("prompts")
    prompts = prompts if isinstance(prompts, dict) else {}
    default = str(prompts.get(found.get("default_prompt_name") or "", ""))
    question = prompts.get("query", default)
    passage = next((prompts[name] for name in ("document", "passage", "corpus") if name in prompts), default)
    return str(question), str(passage)


def _loaded(file: Path) -> Any:
    onnx = package("onnx")
    try:
        return onnx.load(str(file))
    except Exception as error:
        raise EmbedderUnavailable(f"{file} cannot be read as an ONNX file ({reason(error, 200)}).") from error


def _output(graph: Any, file: Path) -> tuple[int, bool]:
    """Return the width of the vectors of a graph and whether it pools; keep that output alone.

    An output of rank 2 is the vector of the text, one of rank 3 the states of its word pieces.
    """
    inputs = {one.name for one in graph.graph.input} - {one.name for one in graph.graph.initializer}
    if other := sorted(inputs - _INPUTS):
        raise EmbedderUnavailable(f"The graph in {file} wants the input {other[0]}, which semmem does not have.")
    if not inputs & {"ids", "input_ids"}:
        raise EmbedderUnavailable(f"The graph in {file} has no input input_ids.")
    by_rank = {len(one.type.tensor_type.shape.dim): one for one in reversed(graph.graph.output)}
    output = by_rank.get(3) if not _names_sentence(by_rank.get(2)) else by_rank[2]
    output = output or by_rank.get(2)
    if output is None:
        raise EmbedderUnavailable(f"The graph in {file} gives neither states nor vectors.")
    width = output.type.tensor_type.shape.dim[-1].dim_value
    if not width:
        raise EmbedderUnavailable(f"The graph in {file} does not say how many dimensions {output.name} has.")
    del graph.graph.output[:]
    graph.graph.output.append(output)
    return width, len(output.type.tensor_type.shape.dim) == 2


def _names_sentence(output: Any) -> bool:
    return output is not None and "sentence" in output.name
