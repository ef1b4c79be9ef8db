"""What runs the graph of an encoder: ONNX Runtime behind the tokenizer, texts of one length at a time.

A text is never padded, so its vector does not depend on the texts beside it, bit for bit.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from semmem.embedders.onnx_graph import GRAPH, TOKENIZER
from semmem.embedders.weights import package
from semmem.model.errors import EmbedderUnavailable
from semmem.model.process.machine import processors
from semmem.model.process.native_calls import native_calls

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["OnnxRuntime", "Pooling", "is_installed", "read_tokenizer", "threads"]

_PIECES = 512
"""Word pieces of one run: a short text alone reads all weights for few products, and beyond this nothing is gained."""
_MOST_THREADS = 8
Pooling = Literal["mean", "cls", "given"]
"""How states become a vector: their mean, the first one, or by the graph itself."""


def is_installed() -> bool:
    """Return whether ONNX Runtime and the tokenizers are installed; imports neither."""
    return find_spec("onnxruntime") is not None and find_spec("tokenizers") is not None


def threads() -> int:
    """Return how many threads one run may use: the processors of this process, at most eight."""
    return min(processors(), _MOST_THREADS)


def read_tokenizer(folder: Path) -> Any:
    """Return the tokenizer of a model folder, without its truncation and padding."""
    tokenizer = package("tokenizers").Tokenizer.from_file(str(folder / TOKENIZER))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


class OnnxRuntime:
    """One loaded graph. Safe for several threads. Raises EmbedderUnavailable where it cannot be loaded.

    A text is read up to its word piece ``tokens``; of each vector the first ``dimensions`` numbers are kept.
    """

    def __init__(
        self, folder: Path, *, dimensions: int = 384, tokens: int = 256, pooling: Pooling = "mean", lower: bool = False
    ) -> None:
        runtime = package("onnxruntime")
        self._dimensions, self._pooling, self._lower = dimensions, pooling, lower
        self._tokenizer = read_tokenizer(folder)
        self._tokenizer.enable_truncation(tokens)
        options = runtime.SessionOptions()
        options.intra_op_num_threads = threads()
        options.inter_op_num_threads = 1
        options.log_severity_level = 4  # what fails is raised
        options.enable_mem_pattern = False  # it would keep a plan for every length
        # the levels above are for convolutions, of which there are none, and looking for them is a third of the loading
        options.graph_optimization_level = runtime.GraphOptimizationLevel.ORT_ENABLE_EXTENDED
        # a thread that waits for work in a loop takes it from the store and from other processes
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        with native_calls:
            try:
                providers = ["CPUExecutionProvider"]
                self._session = runtime.InferenceSession(str(folder / GRAPH), options, providers=providers)
                self._inputs = {one.name: one.type for one in self._session.get_inputs()}
                self._output = self._session.get_outputs()[0].name
            except Exception as error:
                raise EmbedderUnavailable(
                    f"The graph in {folder} cannot be loaded ({' '.join(str(error).split())[:200]}); "
                    "remove that folder and build the graph again with: semmem model get"
                ) from error

    def vectors(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return unit vectors of shape (len(texts), dimensions); equal texts are computed once."""
        import numpy as np

        place = {text: i for i, text in enumerate(dict.fromkeys(texts))}
        pieces = [self._pieces(text) for text in place]
        vectors = np.empty((len(place), self._dimensions), dtype=np.float32)
        for group in _groups([len(one) for one in pieces]):
            with native_calls:
                ids = np.array([pieces[i] for i in group], dtype=np.int64)
                (states,) = self._session.run([self._output], self._given(ids))
            for i, of_text in zip(group, states, strict=True):  # each alone: a mean over many adds in another order
                pooled = self._pooled(of_text)[: self._dimensions]
                vectors[i] = pooled / np.linalg.norm(pooled)
        return vectors[[place[text] for text in texts]]

    def _pieces(self, text: str) -> list[int]:
        """Return the ids of a text's word pieces, the special ones included, at most ``tokens``."""
        ids: list[int] = self._tokenizer.encode(text.lower() if self._lower else text).ids
        return ids

    def _given(self, ids: NDArray[np.int64]) -> dict[str, Any]:
        """Return the inputs of the graph for the word pieces of texts of one length, none of which is masked."""
        import numpy as np

        by_name = {"ids": ids, "input_ids": ids}
        if len(self._inputs) > 1:
            by_name |= {"attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
        return {
            name: by_name[name].astype(np.int32) if kind == "tensor(int32)" else by_name[name]
            for name, kind in self._inputs.items()
        }

    def _pooled(self, states: NDArray[np.float32]) -> NDArray[np.float64]:
        import numpy as np

        if self._pooling == "mean":
            return np.asarray(states.mean(axis=0, dtype=np.float64))
        return (states[0] if self._pooling == "cls" else states).astype(np.float64)


def _groups(lengths: Sequence[int]) -> Iterator[list[int]]:
    """Yield the places of texts of one length, as many as fit into one run, all places once."""
    group: list[int] = []
    for place in sorted(range(len(lengths)), key=lengths.__getitem__):
        length = lengths[place]
        if group and (lengths[group[0]] != length or (len(group) + 1) * length > _PIECES):
            yield group
            group = []
        group.append(place)
    if group:
        yield group
