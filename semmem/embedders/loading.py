"""What the embedders that run in this process have in common: a model is loaded once, and again in a forked child."""

from __future__ import annotations

import ctypes
import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from semmem.embedders import onnx_runtime
from semmem.model.process.forks import in_child, loading

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["Loaded", "Run"]

_log = logging.getLogger(__name__)
Run = Callable[[Sequence[str]], Any]


class Loaded(ABC):
    """An embedder whose model lies in a folder. Creating one reads nothing; the first text loads the model."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._run: Run | None = None
        self._tokeniser: Any = None
        in_child(self)

    @property
    @abstractmethod
    def name(self) -> str:
        """The name of the model."""

    @abstractmethod
    def _load(self) -> Run:
        """Load the model and return the function that embeds texts with it."""

    def forked(self) -> None:
        """Load the model again: the threads of ONNX Runtime stay with the parent process.

        The copy of the parent's model is kept for ever, because its end would wait for those threads.
        """
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(self._run))
        self._run = None

    def count_tokens(self, text: str) -> int:
        """Return the number of word pieces, the special ones included."""
        if self._tokeniser is None:
            with loading:
                if self._tokeniser is None:
                    self._tokeniser = onnx_runtime.read_tokenizer(self.folder)
        return len(self._tokeniser.encode(text).ids)

    def _vectors(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return the vectors of the model as an array, whatever their dimensions are."""
        vectors = self._loaded()(list(texts))
        import numpy as np  # loaded by now; imported before, a fork in the middle would leave a child half of it

        return np.asarray(vectors, dtype=np.float32)

    def _loaded(self) -> Run:
        if self._run is None:
            with loading:
                if self._run is None:
                    _log.info("Loading the model %s …", self.name)
                    self._run = self._load()
        return self._run
