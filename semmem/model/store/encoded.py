"""A vector with the identity of its embedder, so that a store never compares the vectors of two models.

After a rebuild with another embedder, a program that connected before still makes vectors with the old one, which may
have the same dimensions. So the vector of a question carries its embedder into the statement of the store.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Encoded", "encoded", "vector_embedder"]


class Encoded(np.ndarray[Any, np.dtype[np.float32]]):
    """A unit vector of shape (dimensions,) with the identity of its embedder; a vector computed from it has none."""

    vector_embedder: Mapping[str, Any] | None = None


def encoded(vector: NDArray[np.float32], by: Mapping[str, Any]) -> NDArray[np.float32]:
    """Return ``vector`` with the identity ``by`` of the embedder that made it."""
    result = np.asarray(vector).view(Encoded)
    result.vector_embedder = by
    return result


def vector_embedder(vector: Any) -> Mapping[str, Any] | None:
    """Return the identity of the embedder that made ``vector``, None where it is not known."""
    return getattr(vector, "vector_embedder", None)
