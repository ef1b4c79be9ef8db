"""A caller's embedder, as LangGraph's index configuration names it, as an embedder of semmem."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from langgraph.store.base import ensure_embeddings

from semmem.interfaces.langgraph.items import check_fields
from semmem.model.errors import EmbedderUnavailable, InvalidInput

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["CallersEmbedder", "check_index"]

_KEYS = ("dims", "embed", "fields", "text_fields", "distance_type", "ann_index_config")
"""What LangGraph's stores take as ``index``; how the index is made is semmem's own affair."""


def check_index(index: Any) -> None:
    """Raise InvalidInput unless ``index`` is None or a mapping of keys that are known."""
    if index is None:
        return
    if not isinstance(index, Mapping):
        raise InvalidInput(f"index must be a mapping, such as {{'fields': ['text']}}, not {type(index).__name__}.")
    for name in index:
        if name not in _KEYS and not str(name).startswith("__"):  # LangGraph's stores put such names in themselves
            raise InvalidInput(f"index has no key {name!r}; choose one of {', '.join(_KEYS)}.")
    for name in ("fields", "text_fields"):
        value = index.get(name)
        check_fields(name, [value] if isinstance(value, str) else value)


class CallersEmbedder:
    """LangChain's ``Embeddings``, a function, or the name of a provider; its vectors are scaled to unit length.

    ``dimensions`` are those that the configuration says. The fingerprint is what the caller's object is called and
    those dimensions: nothing else is known of it.
    """

    max_tokens: int | None = None

    def __init__(self, embed: Any, dims: Any) -> None:
        if isinstance(dims, bool) or not isinstance(dims, int) or dims < 1:
            raise InvalidInput(f"index needs dims, the number of dimensions of a vector, not {dims!r}.")
        if not (isinstance(embed, str) or callable(embed) or hasattr(embed, "embed_documents")):
            raise InvalidInput(
                "embed must be LangChain's Embeddings, a function from texts to vectors, or the name of a provider, "
                f"not {type(embed).__name__}."
            )
        try:
            self.embeddings = ensure_embeddings(embed)
        except (ImportError, ValueError) as error:
            raise InvalidInput(f"embed cannot be loaded: {' '.join(str(error).split())}") from error
        self.dimensions = dims
        model = embed if isinstance(embed, str) else getattr(embed, "model", None) or type(embed).__qualname__
        self.name = f"langgraph:{model}"
        self.fingerprint = f"{self.name}:{dims}"

    def count_tokens(self, text: str) -> int:
        """Return 0: a caller's embedder says nothing of tokens, and is given texts of any length."""
        return 0

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return unit vectors, one a text. Raises EmbedderUnavailable for vectors of another length."""
        import numpy as np

        vectors = np.asarray(self.embeddings.embed_documents(list(texts)), dtype=np.float32)
        if vectors.shape != (len(texts), self.dimensions):
            raise EmbedderUnavailable(
                f"The embedder of the index gave vectors of shape {vectors.shape}; {(len(texts), self.dimensions)} was "
                "expected, by its dims."
            )
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        vectors[lengths[:, 0] == 0, 0] = 1  # a vector of zeros has no direction; it gets one, that of the first axis
        lengths[lengths == 0] = 1
        return np.asarray(vectors / lengths, dtype=np.float32)
