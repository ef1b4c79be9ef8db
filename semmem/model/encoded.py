"""A vector together with who made it, so that a store never compares the vectors of two models.

After a rebuild with another embedder, a program that was connected before still makes vectors of the old one, which may
well have as many dimensions. So the vector of a question carries its maker into the store's own statement.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Encoded", "encoded", "maker"]


class Encoded(np.ndarray[Any, np.dtype[np.float32]]):
    """A unit vector of shape (dimensions,) that knows its maker; what is computed from it does not."""

    maker: Mapping[str, Any] | None = None


def encoded(vector: NDArray[np.float32], by: Mapping[str, Any]) -> NDArray[np.float32]:
    """Return ``vector`` as one that the embedder of identity ``by`` made."""
    known = np.asarray(vector).view(Encoded)
    known.maker = by
    return known


def maker(vector: Any) -> Mapping[str, Any] | None:
    """Return who made ``vector``, None where nobody said."""
    return getattr(vector, "maker", None)
