"""The encoders that ``semmem model get`` made into graphs in the data folder, each found by its name."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, fields
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

from semmem.embedders import onnx_graph, onnx_runtime
from semmem.embedders.loading import Loaded, Run
from semmem.embedders.onnx_runtime import Pooling
from semmem.embedders.weights import NAME, PUBLISHED
from semmem.model.errors import EmbedderUnavailable, InvalidInput, MissingExtra

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["Card", "Installed", "names", "read_card"]


@dataclass(frozen=True, slots=True)
class Card:
    """What the vectors of an encoder depend on, beside its graph; it lies with the graph as ``origin.json``.

    ``question`` and ``passage`` are put before the texts of either kind; of each vector the first ``dimensions``
    numbers are kept; a text is read up to its word piece ``max_tokens``.
    """

    weights_sha256: str
    tokenizer_sha256: str
    dimensions: int
    max_tokens: int
    pooling: Pooling
    question: str = ""
    passage: str = ""
    lower: bool = False
    int8: bool = False

    @property
    def fingerprint(self) -> str:
        """The sha256 of all of it."""
        return f"sha256:{sha256(json.dumps(asdict(self), sort_keys=True).encode()).hexdigest()}"


def names() -> list[str]:
    """Return the names of the encoders that this user has installed, MiniLM apart, in order."""
    with suppress(InvalidInput, OSError):  # a user without a home folder has none
        return [name for name in onnx_graph.installed_names() if name != NAME]
    return []


def read_card(folder: Path) -> Card:
    """Return the card of the graph in ``folder``. Raises EmbedderUnavailable where it has none that can be read."""
    try:
        found: Mapping[str, Any] = json.loads((folder / onnx_graph.ORIGIN).read_bytes())
        return Card(**{field.name: found[field.name] for field in fields(Card)})
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise EmbedderUnavailable(
            f"{folder / onnx_graph.ORIGIN} does not describe a model; remove that folder and get the model again with: "
            "semmem model get"
        ) from error


class Installed(Loaded):
    """The encoder ``name``, run by ONNX Runtime; the first text loads it.

    Raises MissingExtra without ONNX Runtime, EmbedderUnavailable where the model is not on this machine.
    """

    name = ""

    def __init__(self, name: str) -> None:
        if not onnx_runtime.is_installed():
            raise MissingExtra(f"The embedder {name} needs ONNX Runtime; install it with: pip install 'semmem[minilm]'")
        folder = onnx_graph.installed_folder(name)
        if not onnx_graph.is_whole(folder):
            what = name if name in PUBLISHED else f"FOLDER --name {name}"
            raise EmbedderUnavailable(f"The model {name} is not on this machine; get it with: semmem model get {what}")
        self.name = name
        self.card = read_card(folder)
        self.dimensions = self.card.dimensions
        self.max_tokens: int | None = self.card.max_tokens
        self.fingerprint = self.card.fingerprint
        super().__init__(folder)

    def count_tokens(self, text: str) -> int:
        """Return the number of word pieces of a passage with ``text``, the special ones included."""
        return super().count_tokens(self.card.passage + text)

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return unit vectors of passages, of shape (len(texts), dimensions)."""
        return self._vectors([self.card.passage + text for text in texts]).reshape(len(texts), self.dimensions)

    def embed_questions(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return unit vectors of questions, of shape (len(texts), dimensions)."""
        return self._vectors([self.card.question + text for text in texts]).reshape(len(texts), self.dimensions)

    def _load(self) -> Run:
        card = self.card
        return onnx_runtime.OnnxRuntime(
            self.folder, dimensions=card.dimensions, tokens=card.max_tokens, pooling=card.pooling, lower=card.lower
        ).vectors
