"""all-MiniLM-L6-v2, found offline, run by ONNX Runtime; other weights of its size by sentence-transformers."""

from __future__ import annotations

import importlib.util
import json
import logging
import tempfile
from collections.abc import Sequence
from contextlib import AbstractContextManager, suppress
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from semmem.embedders import onnx_graph, onnx_runtime
from semmem.embedders.loading import Loaded, Run
from semmem.embedders.weights import NAME, TOKENIZER_SHA256, WEIGHTS_SHA256, digest, find, package
from semmem.model.errors import EmbedderUnavailable, InvalidInput, MissingExtra
from semmem.model.process.forks import loading

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["MiniLM"]

_log = logging.getLogger(__name__)
Runtime = Literal["onnx", "sentence-transformers"]


class MiniLM(Loaded):
    """The sentence encoder of Reimers and Gurevych (2019), distilled by Wang et al. (2020): 384 dimensions, 256 tokens.

    Creating one finds the model and reads nothing; the first ``embed`` checks the sha256 of the weights and loads them.
    ONNX Runtime runs the published weights where it is installed, else sentence-transformers; name and fingerprint are
    the same. ``runtime`` asks for one of the two. Raises MissingExtra where neither is installed, EmbedderUnavailable
    without a model.
    """

    dimensions = 384
    max_tokens: int | None = 256

    def __init__(self, path: str | None = None, *, runtime: Runtime | None = None) -> None:
        self._runtimes = _installed(runtime)
        folder, self.origin = self._place(path)
        self._sha: str | None = None
        super().__init__(folder)

    def _place(self, path: str | None) -> tuple[Path, str]:
        """Return the folder of the converted graph, or that of the weights, and which of both it is."""
        if path is None and "onnx" in self._runtimes:
            with _no_home():
                graph = onnx_graph.installed_folder()
                if onnx_graph.is_whole(graph):
                    return graph, "made"
        folder, origin = find(path)
        if origin != "configured" and "sentence-transformers" not in self._runtimes and onnx_graph.lacking():
            raise MissingExtra(
                f"The graph of {NAME} is not made yet, and {onnx_graph.lacking()} is not installed; install it with: "
                "pip install 'semmem[minilm]'"
            )
        return folder, origin

    @property
    def name(self) -> str:
        """all-MiniLM-L6-v2, or the name of other weights in a configured folder."""
        if self.origin != "configured" or self.fingerprint == f"sha256:{WEIGHTS_SHA256}":
            return NAME
        return f"sentence-transformers:{self.fingerprint.removeprefix('sha256:')[:12]}"

    @property
    def fingerprint(self) -> str:
        """The sha256 of the weights; for a copy that was not configured it is known before the weights are checked."""
        return f"sha256:{self._digest if self.origin == 'configured' else WEIGHTS_SHA256}"

    @property
    def _digest(self) -> str:
        with loading:
            if self._sha is None:
                self._sha = digest(self.folder / "model.safetensors")
            return self._sha

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return unit vectors of shape (len(texts), 384).

        Raises EmbedderUnavailable when the weights are not the published ones, or when the model has another size.
        """
        array = self._vectors(texts)
        if len(texts) and array.shape != (len(texts), self.dimensions):
            raise self._other_size(array.shape[-1])
        return array.reshape(len(texts), self.dimensions)

    def _load(self) -> Run:
        if self.origin == "made":
            return onnx_runtime.OnnxRuntime(self.folder).vectors
        published = self._digest == WEIGHTS_SHA256
        if not published and self.origin != "configured":
            raise EmbedderUnavailable(
                f"The weights of the {self.origin} copy of {NAME} are not the published ones (sha256 "
                f"{self._digest[:12]}…); get them with semmem model get, or set SEMMEM_MODEL to a folder you trust."
            )
        self._check_size()
        if published and "onnx" in self._runtimes and self._has_tokenizer() and not onnx_graph.lacking():
            return self._by_onnx()
        if "sentence-transformers" not in self._runtimes:
            raise MissingExtra(
                f"Without sentence-transformers only {NAME} as it was published can be run, and {self.folder} holds "
                "another model; install it with: pip install 'semmem[local]'"
            )
        return self._by_sentence_transformers()

    def _has_tokenizer(self) -> bool:
        file = self.folder / onnx_graph.TOKENIZER
        return file.is_file() and digest(file) == TOKENIZER_SHA256

    def _by_onnx(self) -> Run:
        """Load the graph, converting it first if needed: in the data folder, else for this process alone."""
        with _no_home():
            target = onnx_graph.installed_folder()
            try:
                if not onnx_graph.is_whole(target):
                    _log.info("Making the graph of %s, once …", NAME)
                    onnx_graph.write(self.folder, target, origin=self.origin)
                return onnx_runtime.OnnxRuntime(target).vectors
            except OSError as error:
                _log.info("It cannot be written to %s (%s).", target, error.strerror)
        with tempfile.TemporaryDirectory(prefix="semmem-") as place:  # what is loaded from it outlives it
            folder = onnx_graph.write(self.folder, Path(place) / "model", origin=self.origin)
            return onnx_runtime.OnnxRuntime(folder).vectors

    def _by_sentence_transformers(self) -> Run:
        library = package("sentence_transformers")
        bars: Any = import_module("transformers.utils.logging")  # it has no types
        shows = bars.is_progress_bar_enabled()
        bars.disable_progress_bar()  # it would draw one for reading 90 MB
        try:
            model = library.SentenceTransformer(str(self.folder), device="cpu", local_files_only=True)
        finally:
            if shows:
                bars.enable_progress_bar()

        def run(texts: Sequence[str]) -> Any:
            return model.encode(
                texts, batch_size=32, normalize_embeddings=True, convert_to_numpy=True, show_progress_bar=False
            )

        return run

    def _other_size(self, size: Any) -> EmbedderUnavailable:
        return EmbedderUnavailable(
            f"The model in {self.folder} gives vectors of {size} dimensions, but this embedder takes models of "
            f"{self.dimensions}, such as {NAME}; pass another one to connect(embedder=…) as an object."
        )

    def _check_size(self) -> None:
        """Raise EmbedderUnavailable where the configuration says that the model is of another size."""
        try:
            size = json.loads((self.folder / "config.json").read_bytes())["hidden_size"]
        except FileNotFoundError:
            return  # what it gives is looked at
        except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
            raise EmbedderUnavailable(f"{self.folder / 'config.json'} is not the configuration of a model.") from error
        if size != self.dimensions:
            raise self._other_size(size)


def _installed(runtime: Runtime | None) -> tuple[Runtime, ...]:
    """Return the installed runtimes, of both or of ``runtime``. Raises MissingExtra where there is none."""
    runtimes: list[Runtime] = []
    if runtime != "sentence-transformers" and onnx_runtime.is_installed():
        runtimes.append("onnx")
    if runtime != "onnx" and importlib.util.find_spec("sentence_transformers") is not None:
        runtimes.append("sentence-transformers")
    if not runtimes:
        extra = "local" if runtime == "sentence-transformers" else "minilm"
        raise MissingExtra(
            f"The embedder minilm needs {'sentence-transformers' if extra == 'local' else 'ONNX Runtime'}; install it "
            f"with: pip install 'semmem[{extra}]'"
        )
    return tuple(runtimes)


def _no_home() -> AbstractContextManager[None]:
    """Ignore that a user has no home folder, where nothing was converted and nothing can be."""
    return suppress(InvalidInput)
