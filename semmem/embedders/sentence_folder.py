"""Read a model as sentence-transformers saves it, or as an ONNX file with its tokenizer: its graph and its card."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, fields
from hashlib import sha256
from pathlib import Path
from typing import Any

from semmem.embedders.drawing import graph_of, shape_of
from semmem.embedders.installed import Card
from semmem.embedders.onnx_graph import TOKENIZER, read_weights
from semmem.embedders.onnx_runtime import OnnxRuntime, Pooling
from semmem.embedders.weights import digest, package
from semmem.model.errors import EmbedderUnavailable, InvalidInput
from semmem.model.failure import reason

__all__ = ["Wishes", "read", "trial"]

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
_TRIED = 1024
"""Tokens of the text that a new model reads; the states of a much longer one may not fit in memory."""
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

    def missed(self, card: Card) -> str | None:
        """Return the first of these that a model with ``card`` does not fulfil, None where it fulfils all.

        A graph that pools by itself has no pooling that could be wished otherwise.
        """
        pools = card.pooling == "given"
        wished = ((one.name, getattr(self, one.name)) for one in fields(self) if not (pools and one.name == "pooling"))
        return next((name for name, value in wished if value not in (None, False, getattr(card, name))), None)


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
        if wishes.max_tokens is not None and shape.tokens < wishes.max_tokens:
            raise InvalidInput(
                f"This model reads at most {shape.tokens} tokens; choose 8 to {shape.tokens}, not {tokens}."
            )
        graph, width, tokens = graph_of(tensors, shape, folder.name, int8=wishes.int8), shape.width, shape.tokens
        pooling = wishes.pooling or _pooling(folder)
        sha = digest(weights)
    else:
        if wishes.int8:
            raise InvalidInput("int8 needs the weights as model.safetensors; an ONNX file stays as it is.")
        graph, sha = _loaded(file)
        width, pooled = _output(graph, file)
        pooling = "given" if pooled else wishes.pooling or _pooling(folder)
    card = _card(folder, sha, width, tokens, pooling, wishes)
    return graph, folder / TOKENIZER, card


def trial(card: Card) -> Callable[[Path], None]:
    """Return a function that has a model in a folder read a long text, before it takes its name.

    It raises EmbedderUnavailable where the model cannot: an ONNX file does not say how long a text it takes.
    """

    def run(folder: Path) -> None:
        options: Any = {"dimensions": card.dimensions, "pooling": card.pooling, "lower": card.lower}
        loaded = OnnxRuntime(folder, tokens=card.max_tokens, **options)
        tokens = min(card.max_tokens, _TRIED)
        try:
            loaded.vectors([f"{card.passage} tea" * tokens])
        except Exception as error:
            raise EmbedderUnavailable(
                f"This model cannot read a text of {tokens} tokens; give a smaller --max-tokens ({reason(error, 120)})."
            ) from error

    return run


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


def _loaded(file: Path) -> tuple[Any, str]:
    """Return a graph and the sha256 of all its weights, those in files beside it included."""
    onnx, sha = package("onnx"), digest(file)
    try:
        graph = onnx.load(str(file), load_external_data=False)
        outside = [one for one in graph.graph.initializer if one.data_location == onnx.TensorProto.EXTERNAL]
        onnx.load_external_data_for_model(graph, str(file.parent))
    except Exception as error:
        raise EmbedderUnavailable(f"{file} cannot be read as an ONNX file ({reason(error, 200)}).") from error
    if outside:
        whole = sha256(sha.encode())
        for tensor in outside:
            whole.update(tensor.raw_data)
        sha = whole.hexdigest()
    return graph, sha


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
