"""The vector of a question: made once, by whichever leg asks first, with its maker, or given and checked."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

from semmem.clock import standing
from semmem.embedders import identity
from semmem.errors import EmbedderMismatch, InvalidInput, LegFailed
from semmem.protocols import Embedder

__all__ = ["QuestionVectors"]


class QuestionVectors:
    """Wires a store and an embedder (a function that finds it when first needed, or returns a reason).

    ``renewed`` says whether the embedder that now fills the store is at hand after all. The first
    question of a process waits for the model, which is not on the time of the legs that need it.
    """

    def __init__(self, store: Any, embedder: Callable[[], Embedder | str], renewed: Callable[[], bool]) -> None:
        self._store = store
        self._embedder = embedder
        self._renewed = renewed
        self._loaded = False
        self._fits: tuple[tuple[int, ...], Any] | None = None

    def renewed(self) -> bool:
        """Return whether the embedder that now fills the store is at hand; a vector given is then taken for its."""
        if not self._renewed():
            return False
        self._fits = None  # else every vector given would be taken for the embedder's that filled the store before
        return True

    def of(self, query: str, given: Any) -> Callable[[], Any]:
        """Return a function that gives the question's unit vector, computed once.

        Raises InvalidInput or EmbedderMismatch when ``given`` cannot be used: that is the caller's error, not a
        degraded leg.
        """
        lock, made = threading.Lock(), list[Any]()

        def vector() -> Any:
            with nullcontext() if self._loaded else standing(), lock:
                if not made:
                    made.append(self._given(given) if given is not None else self._embedded(query))
            return made[0]

        if given is not None:
            vector()
        return vector

    def _given(self, given: Any) -> Any:
        import numpy as np

        from semmem.encoded import encoded

        try:
            vector = np.asarray(given, dtype=np.float32)
        except (TypeError, ValueError):
            raise InvalidInput("vector must be a list of numbers.") from None
        # a vector as long as the last one was seen to be right before
        fits = self._fits
        recorded = fits[1] if fits is not None and fits[0] == vector.shape else self._store.embedder()
        if recorded is not None and vector.shape != (recorded["dimensions"],):
            raise EmbedderMismatch(
                f"This store holds vectors of {recorded['name']} with {recorded['dimensions']} dimensions and the "
                f"vector given has the shape {vector.shape}; give one of that model."
            )
        norm = float(np.linalg.norm(vector.astype(np.float64))) if vector.ndim == 1 else 0.0
        if not np.isfinite(norm) or norm == 0:
            raise InvalidInput("vector must be a flat list of finite numbers that are not all 0.")
        unit = (vector / norm).astype(np.float32)
        if recorded is None:
            return unit
        self._fits = vector.shape, recorded
        return encoded(unit, recorded)

    def _embedded(self, query: str) -> Any:
        found = self._embedder()
        if isinstance(found, str):
            raise LegFailed(found)
        from semmem.encoded import encoded

        vector = encoded(found.embed([query])[0], identity(found))
        self._loaded = True
        return vector
