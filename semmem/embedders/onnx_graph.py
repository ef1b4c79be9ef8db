"""The sentence encoder all-MiniLM-L6-v2 as an ONNX graph, made of the published weights and written once.

Six layers of BERT (Devlin et al. 2019): word pieces of texts of one length in, the state of every word piece out. The
weights lie beside the graph as they are used, so that loading maps them and copies little. No text is padded, so no
mask is needed.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Mapping
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from semmem.embedders.weights import NAME, TOKENIZER_SHA256, WEIGHTS_SHA256, digest, package
from semmem.files import data_folder, private_folder
from semmem.model.errors import EmbedderUnavailable, MissingExtra

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["FILES", "GRAPH", "TOKENIZER", "graph_of", "installed_folder", "is_whole", "lacking", "write"]

GRAPH, _WEIGHTS, TOKENIZER, _ORIGIN = "model.onnx", "weights.bin", "tokenizer.json", "origin.json"
FILES = (GRAPH, _WEIGHTS, TOKENIZER, _ORIGIN)
_VERSION = 1
"""Of the graph; another one is written beside the former."""
_LAYERS, _HEADS, _WIDTH, _TOKENS = 6, 12, 384, 256
_NEEDED = ("onnx", "safetensors")
Weights = Mapping[str, "NDArray[np.float32]"]


def installed_folder() -> Path:
    """Return where the graph of this version lies, or would lie, for this user; it may raise InvalidInput."""
    return data_folder() / "models" / f"{NAME}-{_VERSION}"


def is_whole(folder: Path) -> bool:
    """Return whether ``folder`` holds a graph, its weights and its tokenizer; it takes its name when it is whole."""
    return all((folder / name).is_file() for name in FILES)


def lacking() -> str | None:
    """Return a package that is needed to make the graph and is not installed, None where all are."""
    return next((name for name in _NEEDED if find_spec(name) is None), None)


def write(source: Path, target: Path, *, origin: str) -> Path:
    """Make the graph of the weights and the tokenizer in the folder ``source``; return ``target``, where it then lies.

    The folder ``target`` takes its name when it is whole; where two processes make it, the first one's stays. Raises
    EmbedderUnavailable where a file is not the published one, MissingExtra without the packages that make a graph,
    OSError where nothing can be written.
    """
    check(source)
    if (package_name := lacking()) is not None:
        raise MissingExtra(
            f"To make the graph of {NAME}, {package_name} is needed; install it with: pip install 'semmem[minilm]'"
        )
    private_folder(target.parent)
    part = Path(tempfile.mkdtemp(prefix=f".{target.name}.", suffix=".part", dir=target.parent))
    try:
        graph = graph_of(_weights(source / "model.safetensors"))
        _write_parts(graph, part)
        shutil.copyfile(source / TOKENIZER, part / TOKENIZER)
        (part / _ORIGIN).write_text(json.dumps({"from": origin, "weights_sha256": WEIGHTS_SHA256}), encoding="utf-8")
        for name in FILES:
            with (part / name).open("rb") as written:
                os.fsync(written.fileno())
        _rename(part, target)
    finally:
        shutil.rmtree(part, ignore_errors=True)
    return target


def check(source: Path) -> None:
    """Raise EmbedderUnavailable unless ``source`` holds the published weights and tokenizer."""
    for name, expected in (("model.safetensors", WEIGHTS_SHA256), (TOKENIZER, TOKENIZER_SHA256)):
        try:
            actual = digest(source / name)
        except FileNotFoundError:
            raise EmbedderUnavailable(
                f"There is no {name} in {source}; the model is both, model.safetensors and {TOKENIZER}."
            ) from None
        if actual != expected:
            raise EmbedderUnavailable(
                f"{source / name} is not the one published with {NAME} (sha256 {actual[:12]}…, not {expected[:12]}…)."
            )


def _rename(part: Path, target: Path) -> None:
    if target.exists() and not is_whole(target):  # somebody has taken files out of it
        shutil.rmtree(target, ignore_errors=True)
    try:
        part.rename(target)
    except OSError:
        if not is_whole(target):  # not the work of another process that was faster
            raise


def _weights(file: Path) -> Weights:
    tensors: Any = package("safetensors.numpy")
    weights: Weights = tensors.load_file(str(file))
    return weights


def _write_parts(graph: Any, folder: Path) -> None:
    """Write ``graph`` with its large tensors in a file of their own, each on a page of its own."""
    outside: Any = import_module("onnx.external_data_helper")
    with (folder / _WEIGHTS).open("wb") as out:
        for tensor in graph.graph.initializer:
            if len(tensor.raw_data) < 1024:
                continue
            out.write(bytes(-out.tell() % 4096))
            outside.set_external_data(tensor, _WEIGHTS, offset=out.tell(), length=len(tensor.raw_data))
            out.write(tensor.raw_data)
            tensor.ClearField("raw_data")
    (folder / GRAPH).write_bytes(graph.SerializeToString(deterministic=True))


def graph_of(weights: Weights) -> Any:
    """Return the ONNX model: ``ids`` (texts, word pieces) to ``states`` (texts, word pieces, 384).

    Every row of a product is computed alone, so a text has the same states whatever lies beside it.
    """
    return _Drawing(weights).model()


class _Drawing:
    """Collects nodes and tensors; every method returns the name of what it adds."""

    def __init__(self, weights: Weights) -> None:
        self._onnx: Any = package("onnx")
        self._weights = weights
        self._nodes: list[Any] = []
        self._tensors: list[Any] = []

    def model(self) -> Any:
        helper, types = self._onnx.helper, self._onnx.TensorProto
        states = self._embeddings()
        for number in range(_LAYERS):
            states = self._layer(states, f"encoder.layer.{number}.")
        self._nodes[-1].output[0] = "states"
        ids = helper.make_tensor_value_info("ids", types.INT64, ["texts", "pieces"])
        out = helper.make_tensor_value_info("states", types.FLOAT, ["texts", "pieces", _WIDTH])
        graph = helper.make_graph(self._nodes, NAME, [ids], [out], self._tensors)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)

    def _embeddings(self) -> str:
        """Add word, type and position, normalised."""
        words = self._op("Gather", "words", self._weight("embeddings.word_embeddings.weight"), "ids")
        kind = self._tensor("type", self._weights["embeddings.token_type_embeddings.weight"][0])
        places = self._tensor("places", self._weights["embeddings.position_embeddings.weight"][:_TOKENS])
        length = self._op("Shape", "length", "ids", start=1, end=2)
        place = self._op("Slice", "place", places, self._whole("first", 0), length)
        both = self._op("Add", "words.type", words, kind)
        return self._normalised(self._op("Add", "words.place", both, place), "embeddings.LayerNorm")

    def _layer(self, states: str, at: str) -> str:
        """Add self-attention and the two dense layers, each with the way past it and a normalisation."""
        node = self._attention(states, f"{at}attention.self.")
        node = self._dense(node, f"{at}attention.output.dense")
        node = self._op("Add", f"{at}attention.past", node, states)
        middle = self._normalised(node, f"{at}attention.output.LayerNorm")
        node = self._op("Gelu", f"{at}gelu", self._dense(middle, f"{at}intermediate.dense"))
        node = self._op("Add", f"{at}past", self._dense(node, f"{at}output.dense"), middle)
        return self._normalised(node, f"{at}output.LayerNorm")

    def _attention(self, states: str, at: str) -> str:
        """Add softmax(q·k / √32)·v of twelve heads; the three projections are one product."""
        import numpy as np

        parts = ("query", "key", "value")
        weight, bias = (np.concatenate([self._weights[f"{at}{part}.{of}"] for part in parts]) for of in _OF)
        all_three = self._linear(states, f"{at}all", weight, bias)
        size = _WIDTH // _HEADS
        heads = self._op("Reshape", f"{at}heads", all_three, self._whole(f"{at}apart", 0, 0, 3, _HEADS, size))
        heads = self._op("Transpose", f"{at}turned", heads, perm=[2, 0, 3, 1, 4])
        query, key, value = (
            self._op("Gather", f"{at}{part}", heads, self._number(f"{at}{part}.place", i), axis=0)
            for i, part in enumerate(parts)
        )
        scale = self._tensor(f"{at}scale", np.float32(size**-0.5))
        likeness = self._op("MatMul", f"{at}likeness", query, self._op("Transpose", f"{at}k", key, perm=[0, 1, 3, 2]))
        shares = self._op("Softmax", f"{at}shares", self._op("Mul", f"{at}scaled", likeness, scale), axis=-1)
        node = self._op("Transpose", f"{at}back", self._op("MatMul", f"{at}mixed", shares, value), perm=[0, 2, 1, 3])
        return self._op("Reshape", f"{at}together", node, self._whole(f"{at}joined", 0, 0, _WIDTH))

    def _dense(self, states: str, at: str) -> str:
        return self._linear(states, at, self._weights[f"{at}.weight"], self._weights[f"{at}.bias"])

    def _linear(self, states: str, at: str, weight: Any, bias: Any) -> str:
        product = self._op("MatMul", f"{at}.product", states, self._tensor(f"{at}.w", weight.T))
        return self._op("Add", f"{at}.sum", product, self._tensor(f"{at}.b", bias))

    def _normalised(self, states: str, at: str) -> str:
        scale, shift = (self._weight(f"{at}.{of}") for of in _OF)
        return self._op("LayerNormalization", f"{at}.out", states, scale, shift, axis=-1, epsilon=1e-12)

    def _op(self, kind: str, name: str, *inputs: str, **attributes: Any) -> str:
        self._nodes.append(self._onnx.helper.make_node(kind, list(inputs), [name], name=name, **attributes))
        return name

    def _weight(self, name: str) -> str:
        return self._tensor(name, self._weights[name])

    def _whole(self, name: str, *numbers: int) -> str:
        import numpy as np

        return self._tensor(name, np.array(numbers, dtype=np.int64))

    def _number(self, name: str, number: int) -> str:
        import numpy as np

        return self._tensor(name, np.int64(number))

    def _tensor(self, name: str, value: Any) -> str:
        import numpy as np

        self._tensors.append(self._onnx.numpy_helper.from_array(np.array(value, order="C"), name))
        return name


_OF = ("weight", "bias")
