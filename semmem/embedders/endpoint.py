"""An embedder behind an OpenAI-compatible endpoint of the user's choice, such as Ollama's: texts are sent to it."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from semmem.model.errors import EmbedderUnavailable, InvalidInput
from semmem.model.process.endpoint import Endpoint, EndpointFailed, sendable

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["EndpointEmbedder", "EndpointOptions"]

_AT_ONCE = 64
_MOST_BYTES = 50_000_000
_LARGEST = 1e100
"""Of a number in a vector: beyond it squares are not finite."""
_TOO_MUCH = (400, 413, 422)
"""The statuses by which endpoints refuse a batch, so that half of it is sent."""


@dataclass(frozen=True, slots=True)
class EndpointOptions:
    """Where texts are embedded, and how: the settings ``embedder_…``."""

    url: str
    model: str
    key: str | None = None
    timeout_s: float = 30.0
    question: str = ""
    passage: str = ""
    dimensions: int | None = None
    max_tokens: int = 512


class EndpointEmbedder:
    """Sends texts in batches. A failed batch is tried again, as ``Endpoint`` does, and halved where it is too large.

    The fingerprint is of the model's name and of the settings, because an endpoint does not show its weights: after
    another model took that name, rebuild the store. Raises InvalidInput where a setting is missing or cannot be used.
    """

    def __init__(self, options: EndpointOptions | None, *, wait: Callable[[float], None] = time.sleep) -> None:
        if options is None or not options.model.strip():
            missing = "embedder_url" if options is None else "embedder_model"
            raise InvalidInput(f"The embedder 'endpoint' needs the setting {missing} (SEMMEM_{missing.upper()}).")
        self._options = options
        self._endpoint = Endpoint(
            options.url,
            options.key,
            path="/embeddings",
            named="embedder",
            most_bytes=_MOST_BYTES,
            timeout_s=options.timeout_s,
            wait=wait,
        )
        self._dimensions = options.dimensions
        self.host = urlsplit(options.url).netloc
        self.name = f"endpoint:{options.model}"
        self.max_tokens: int | None = options.max_tokens

    @property
    def fingerprint(self) -> str:
        """A hash of the model's name and of the settings that change vectors."""
        one = self._options
        parts = (one.model, one.question, one.passage, str(one.dimensions))
        return "endpoint:" + blake2b("\x1f".join(parts).encode(), digest_size=16).hexdigest()

    @property
    def dimensions(self) -> int:
        """The dimensions that were asked for; else those of a first vector, for which the endpoint is asked once."""
        if self._dimensions is None:
            self._dimensions = len(self._batch(["dimensions"])[0])
        return self._dimensions

    def assume(self, dimensions: int) -> None:
        """Take the dimensions that a store has recorded for this name and fingerprint, so that nothing is asked."""
        self._dimensions = self._dimensions or dimensions

    def count_tokens(self, text: str) -> int:
        """Return an estimate: a token for every three bytes, which overestimates English."""
        return -(-len((self._options.passage + text).encode("utf-8", "replace")) // 3)

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return unit vectors of memories, of shape (len(texts), dimensions). Raises EmbedderUnavailable."""
        return self._vectors([self._options.passage + text for text in texts])

    def embed_questions(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return unit vectors of questions, of shape (len(texts), dimensions). Raises EmbedderUnavailable."""
        return self._vectors([self._options.question + text for text in texts])

    def _vectors(self, texts: Sequence[str]) -> NDArray[np.float32]:
        import numpy as np

        rows = [
            row for start in range(0, len(texts), _AT_ONCE) for row in self._halved(texts[start : start + _AT_ONCE])
        ]
        vectors = np.asarray(rows, dtype=np.float64).reshape(len(texts), -1 if rows else self.dimensions)
        units: NDArray[np.float32] = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
        return units

    def _halved(self, texts: Sequence[str]) -> list[list[float]]:
        """Return the rows of a batch, sent in halves where the endpoint refuses it."""
        try:
            return self._sent(texts)
        except EndpointFailed as error:
            if error.status not in _TOO_MUCH or len(texts) == 1:
                raise self._unavailable(error) from error
            middle = len(texts) // 2
            return self._halved(texts[:middle]) + self._halved(texts[middle:])

    def _batch(self, texts: Sequence[str]) -> list[list[float]]:
        try:
            return self._sent(texts)
        except EndpointFailed as error:
            raise self._unavailable(error) from error

    def _sent(self, texts: Sequence[str]) -> list[list[float]]:
        given = [sendable(text) for text in texts]
        asked = {"dimensions": self._options.dimensions} if self._options.dimensions else {}
        body = {"model": self._options.model, "input": given, "encoding_format": "float", **asked}
        rows = self._endpoint.ask(lambda: body, lambda answer: self._rows(answer, len(texts)), lambda _: False)
        self._dimensions = len(rows[0])
        return rows

    def _rows(self, answer: Any, count: int) -> list[list[float]]:
        """Return the vectors of an answer in the order of the texts. Raises EndpointFailed for anything else."""
        data = answer.get("data") if isinstance(answer, dict) else None
        if not isinstance(data, list) or not all(isinstance(one, dict) for one in data):
            raise EndpointFailed("no list of vectors in the answer")
        if len(data) != count:
            raise EndpointFailed(f"{len(data)} vectors for {count} texts")
        places = [one.get("index", index) for index, one in enumerate(data)]
        if sorted(places, key=str) != sorted(range(count), key=str):
            raise EndpointFailed("vectors without their places")
        rows = [row for _, row in sorted(zip(places, (one.get("embedding") for one in data), strict=True))]
        expected = self._dimensions or (len(rows[0]) if isinstance(rows[0], list) else 0)
        for row in rows:
            if not isinstance(row, list) or not all(type(number) in (int, float) for number in row):
                raise EndpointFailed("a vector that is no list of numbers")
            if len(row) != expected or not row:
                raise EndpointFailed(
                    f"a vector of {len(row)} dimensions instead of {expected}; after a change of the model: semmem "
                    "rebuild --embedder endpoint",
                    again=False,
                )
            if not all(abs(number) < _LARGEST for number in row) or not any(row):
                raise EndpointFailed("a vector with NaN, infinity or only zeros")
        return rows

    def _unavailable(self, error: EndpointFailed) -> EmbedderUnavailable:
        return EmbedderUnavailable(
            f"The endpoint {self.host} gave no usable vectors of {self._options.model} ({error.reason})"
            f"{error.hint('embedder')}."
        )
