"""A sentence encoder drawn as an ONNX graph from its weights: BERT (Devlin et al. 2019) and MPNet (Song et al. 2020).

Word pieces of texts of one length go in, the state of every word piece comes out. No text is padded, so no mask is
needed. RoBERTa is BERT with other places; MPNet adds to the attention a bias by the distance of two word pieces.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from semmem.embedders.weights import package
from semmem.model.errors import EmbedderUnavailable

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["KINDS", "MINILM", "Shape", "Weights", "graph_of", "shape_of"]

KINDS = ("bert", "mpnet", "roberta", "xlm-roberta")
"""The values of ``model_type`` in a config.json that can be drawn."""
Weights = Mapping[str, "NDArray[np.float32]"]


@dataclass(frozen=True, slots=True)
class Shape:
    """The sizes of an encoder. ``tokens`` is the longest text, ``first_place`` the row of the first word piece's place.

    ``buckets`` is the number of distances that MPNet's attention tells apart, 0 for the other kinds.
    """

    layers: int
    heads: int
    width: int
    tokens: int
    epsilon: float = 1e-12
    first_place: int = 0
    buckets: int = 0
    prefix: str = ""
    tanh: bool = False


MINILM = Shape(layers=6, heads=12, width=384, tokens=256)


def shape_of(config: Mapping[str, Any], weights: Weights, *, tokens: int) -> Shape:
    """Return the shape of the encoder with this config.json and these weights, cut to ``tokens`` word pieces.

    Raises EmbedderUnavailable where it is of another kind, or its weights are not those that the configuration names.
    """
    kind = config.get("model_type")
    if kind not in KINDS:
        raise EmbedderUnavailable(
            f"semmem draws encoders of the kinds {', '.join(KINDS)}, and this one is {kind!r}; export it to ONNX and "
            "name the .onnx file."
        )
    activation = config.get("hidden_act", "gelu")
    if activation not in ("gelu", "gelu_new", "gelu_pytorch_tanh"):
        raise EmbedderUnavailable(f"The activation {activation!r} of this encoder is not known; export it to ONNX.")
    if config.get("position_embedding_type", "absolute") != "absolute":
        raise EmbedderUnavailable("The places of this encoder are not absolute; export it to ONNX.")
    known = ("", "bert.", "mpnet.", "roberta.")
    prefix = next((one for one in known if f"{one}embeddings.word_embeddings.weight" in weights), None)
    if prefix is None:
        raise EmbedderUnavailable("The weights hold no embeddings.word_embeddings.weight, so they are of no encoder.")
    places = weights[f"{prefix}embeddings.position_embeddings.weight"].shape[0]
    padding = 1 if kind == "mpnet" else int(config.get("pad_token_id", 1))  # whose row of places comes before the first
    first = 0 if kind == "bert" else padding + 1
    return Shape(
        layers=int(config["num_hidden_layers"]),
        heads=int(config["num_attention_heads"]),
        width=int(config["hidden_size"]),
        tokens=min(tokens, places - first),
        epsilon=float(config.get("layer_norm_eps", 1e-12)),
        first_place=first,
        buckets=int(config.get("relative_attention_num_buckets", 32)) if kind == "mpnet" else 0,
        prefix=prefix,
        tanh=activation != "gelu",
    )


def graph_of(weights: Weights, shape: Shape = MINILM, name: str = "all-MiniLM-L6-v2", *, int8: bool = False) -> Any:
    """Return the ONNX model: ``ids`` (texts, word pieces) to ``states`` (texts, word pieces, width).

    Every row of a product is computed alone, so a text has the same states whatever lies beside it. With ``int8`` the
    weights of products and words have 8 bits, a scale for each 32 numbers or word, by an operator of ONNX Runtime.
    """
    return (_Int8(weights, shape) if int8 else _Drawing(weights, shape)).model(name)


class _Drawing:
    """Collects nodes and tensors; every method returns the name of what it adds."""

    _opsets: ClassVar[Mapping[str, int]] = {"": 20}

    def __init__(self, weights: Weights, shape: Shape) -> None:
        self._onnx: Any = package("onnx")
        self._weights = weights
        self._shape = shape
        self._nodes: list[Any] = []
        self._tensors: list[Any] = []

    def model(self, name: str) -> Any:
        helper, types = self._onnx.helper, self._onnx.TensorProto
        states = self._embeddings()
        bias = self._distances() if self._shape.buckets else None
        for number in range(self._shape.layers):
            states = self._layer(states, f"encoder.layer.{number}.", bias)
        self._nodes[-1].output[0] = "states"
        ids = helper.make_tensor_value_info("ids", types.INT64, ["texts", "pieces"])
        out = helper.make_tensor_value_info("states", types.FLOAT, ["texts", "pieces", self._shape.width])
        graph = helper.make_graph(self._nodes, name, [ids], [out], self._tensors)
        opsets = [helper.make_opsetid(domain, version) for domain, version in self._opsets.items()]
        return helper.make_model(graph, opset_imports=opsets, ir_version=9)

    def _embeddings(self) -> str:
        """Add word, type and position, normalised; MPNet has no types."""
        first, last = self._shape.first_place, self._shape.first_place + self._shape.tokens
        both = self._words(self._of("embeddings.word_embeddings.weight"))
        if not self._shape.buckets:
            kind = self._tensor("type", self._of("embeddings.token_type_embeddings.weight")[0])
        places = self._tensor("places", self._of("embeddings.position_embeddings.weight")[first:last])
        length = self._op("Shape", "length", "ids", start=1, end=2)
        place = self._op("Slice", "place", places, self._whole("first", 0), length)
        if not self._shape.buckets:
            both = self._op("Add", "words.type", both, kind)
        return self._normalised(self._op("Add", "words.place", both, place), "embeddings.LayerNorm")

    def _words(self, table: Any) -> str:
        return self._op("Gather", "words", self._tensor("embeddings.word_embeddings.weight", table), "ids")

    def _distances(self) -> str:
        """Add MPNet's bias of every head for each pair of places, cut to the length of the text."""
        import numpy as np

        places = np.arange(self._shape.tokens)
        bucket = _buckets(places[None, :] - places[:, None], self._shape.buckets)
        table = self._of("encoder.relative_attention_bias.weight")[bucket]  # places, places, heads
        whole = self._tensor("distances", np.ascontiguousarray(table.transpose(2, 0, 1)))
        ends = self._op("Concat", "ends", "length", "length", axis=0)
        starts = self._whole("starts", 0, 0)
        return self._op("Slice", "distance", whole, starts, ends, self._whole("axes", 1, 2))

    def _layer(self, states: str, name: str, bias: str | None) -> str:
        """Add self-attention and the two dense layers, each with the way past it and a normalisation."""
        part, norm = ("attention.attn.o", "attention.LayerNorm") if self._shape.buckets else _BERT
        node = self._attention(states, f"{name}attention.self.", self._projections(name), bias)
        node = self._dense(node, f"{name}{part}")
        node = self._op("Add", f"{name}attention.past", node, states)
        middle = self._normalised(node, f"{name}{norm}")
        how = {"approximate": "tanh"} if self._shape.tanh else {}
        node = self._op("Gelu", f"{name}gelu", self._dense(middle, f"{name}intermediate.dense"), **how)
        node = self._op("Add", f"{name}past", self._dense(node, f"{name}output.dense"), middle)
        return self._normalised(node, f"{name}output.LayerNorm")

    def _projections(self, name: str) -> tuple[str, str, str]:
        if self._shape.buckets:
            return f"{name}attention.attn.q", f"{name}attention.attn.k", f"{name}attention.attn.v"
        return f"{name}attention.self.query", f"{name}attention.self.key", f"{name}attention.self.value"

    def _attention(self, states: str, name: str, projections: tuple[str, str, str], bias: str | None) -> str:
        """Add softmax(q·k / √size + bias)·v of all heads; the three projections are one product."""
        import numpy as np

        heads_, width = self._shape.heads, self._shape.width
        weight, shift = (np.concatenate([self._of(f"{part}.{of}") for part in projections]) for of in _OF)
        all_three = self._linear(states, f"{name}all", weight, shift)
        size = width // heads_
        heads = self._op("Reshape", f"{name}heads", all_three, self._whole(f"{name}apart", 0, 0, 3, heads_, size))
        heads = self._op("Transpose", f"{name}turned", heads, perm=[2, 0, 3, 1, 4])
        query, key, value = (
            self._op("Gather", f"{name}{part}", heads, self._number(f"{name}{part}.place", i), axis=0)
            for i, part in enumerate(("query", "key", "value"))
        )
        scale = self._tensor(f"{name}scale", np.float32(size**-0.5))
        likeness = self._op(
            "MatMul", f"{name}likeness", query, self._op("Transpose", f"{name}k", key, perm=[0, 1, 3, 2])
        )
        scaled = self._op("Mul", f"{name}scaled", likeness, scale)
        if bias is not None:
            scaled = self._op("Add", f"{name}biased", scaled, bias)
        shares = self._op("Softmax", f"{name}shares", scaled, axis=-1)
        node = self._op(
            "Transpose", f"{name}back", self._op("MatMul", f"{name}mixed", shares, value), perm=[0, 2, 1, 3]
        )
        return self._op("Reshape", f"{name}together", node, self._whole(f"{name}joined", 0, 0, width))

    def _dense(self, states: str, name: str) -> str:
        return self._linear(states, name, self._of(f"{name}.weight"), self._of(f"{name}.bias"))

    def _linear(self, states: str, name: str, weight: Any, bias: Any) -> str:
        return self._op("Add", f"{name}.sum", self._product(states, name, weight), self._tensor(f"{name}.b", bias))

    def _product(self, states: str, name: str, weight: Any) -> str:
        return self._op("MatMul", f"{name}.product", states, self._tensor(f"{name}.w", weight.T))

    def _normalised(self, states: str, name: str) -> str:
        scale, shift = (self._weight(f"{name}.{of}") for of in _OF)
        epsilon = self._shape.epsilon
        return self._op("LayerNormalization", f"{name}.out", states, scale, shift, axis=-1, epsilon=epsilon)

    def _op(self, kind: str, name: str, *inputs: str, **attributes: Any) -> str:
        self._nodes.append(self._onnx.helper.make_node(kind, list(inputs), [name], name=name, **attributes))
        return name

    def _of(self, name: str) -> Any:
        """Return a tensor of the weights in single precision. Raises EmbedderUnavailable where there is none."""
        import numpy as np

        try:
            return np.asarray(self._weights[self._shape.prefix + name], dtype=np.float32)
        except KeyError:
            raise EmbedderUnavailable(f"The weights hold no {name}, so they are not of this config.json.") from None

    def _weight(self, name: str) -> str:
        return self._tensor(name, self._of(name))

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


class _Int8(_Drawing):
    """The same with weights of 8 bits. ONNX Runtime rounds the states to 8 bits too, each row of each block alone."""

    _opsets: ClassVar[Mapping[str, int]] = {"": 20, "com.microsoft": 1}

    def _product(self, states: str, name: str, weight: Any) -> str:
        import numpy as np

        rows, columns = weight.shape
        blocks = np.pad(weight, ((0, 0), (0, -columns % _BLOCK))).reshape(rows, -1, _BLOCK)
        whole, scales = _rounded(blocks)
        return self._op(
            "MatMulNBits",
            f"{name}.product",
            states,
            self._tensor(f"{name}.w", (whole + 128).astype(np.uint8)),
            self._tensor(f"{name}.scale", scales.reshape(-1)),
            domain="com.microsoft",
            K=columns,
            N=rows,
            bits=8,
            block_size=_BLOCK,
            accuracy_level=4,
        )

    def _words(self, table: Any) -> str:
        import numpy as np

        whole, scales = _rounded(table)
        words = self._op("Gather", "words.whole", self._tensor("words.table", whole.astype(np.int8)), "ids")
        scale = self._op("Gather", "words.scale", self._tensor("words.scales", scales), "ids")
        cast = self._op("Cast", "words.cast", words, to=self._onnx.TensorProto.FLOAT)
        return self._op("Mul", "words", cast, scale)


def _rounded(numbers: Any) -> tuple[Any, Any]:
    """Return whole numbers from -127 to 127 and the scales by which they are multiplied, one for each last row."""
    import numpy as np

    scales = np.maximum(np.abs(numbers).max(axis=-1, keepdims=True), 1e-30) / np.float32(127)
    return np.rint(numbers / scales), scales.astype(np.float32)


def _buckets(distances: Any, count: int) -> Any:
    """Return the bucket of each distance: half of them for the places after, near distances one each, then by log.

    The distances of T5 (Raffel et al. 2020): 128 and beyond are the last one.
    """
    import numpy as np

    half = count // 2
    near = half // 2
    away = np.abs(distances)
    far = near + (np.log(np.maximum(away, 1) / near) / np.log(_FARTHEST / near) * (half - near)).astype(np.int64)
    return np.where(distances > 0, half, 0) + np.where(away < near, away, np.minimum(far, half - 1))


_FARTHEST = 128
_BLOCK = 32
_OF = ("weight", "bias")
_BERT = ("attention.output.dense", "attention.output.LayerNorm")
