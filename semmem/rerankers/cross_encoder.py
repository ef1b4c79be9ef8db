"""A cross-encoder reranker: any sentence-transformers CrossEncoder with one output, found on this machine.

It reads question and memory together (Nogueira and Cho, "Passage Re-ranking with BERT", 2019), one pair after the
other: slower than any leg. It judges each memory alone, so it can undo multi-hop answers whose bridge does not look
like the question; measure before switching it on.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from datetime import datetime
from importlib import import_module
from typing import Any

from semmem.model.errors import InvalidInput, MissingExtra
from semmem.model.process.forks import Lock
from semmem.model.types import Memory
from semmem.rerankers.relevance import squashed, texts_of

__all__ = ["CrossEncoder"]


class CrossEncoder:
    """``model`` is a folder or the name of a model in the local cache; nothing is downloaded.

    Creating one loads nothing; the first ``rerank`` does. Raises MissingExtra without sentence-transformers.
    """

    name = "cross_encoder"

    def __init__(self, model: str) -> None:
        if importlib.util.find_spec("sentence_transformers") is None:
            raise MissingExtra(
                "A cross-encoder needs sentence-transformers; install it with: pip install 'semmem[local]'"
            )
        self.model = model
        self._lock = Lock()
        self._loaded: Any = None

    def rerank(
        self, query: str, memories: Sequence[Memory], scores: Sequence[float], *, passages: Sequence[str], now: datetime
    ) -> list[dict[str, float]]:
        """Return one term for each memory: the model's logit for its passage, squashed to (0, 1).

        Raises InvalidInput, at the first call, when the model is not on this machine or has not exactly one output.
        """
        if not memories:
            return []
        pairs = [(query, text) for text in texts_of(memories, passages)]
        with self._lock:  # one thread in the model at a time; the first loads it
            if self._loaded is None:
                self._loaded = self._load()
            logits = self._loaded.predict(pairs, convert_to_numpy=True, show_progress_bar=False)
        return [{self.name: squashed(float(logit))} for logit in logits]

    def _load(self) -> Any:
        from sentence_transformers import CrossEncoder as EmbedderBinding

        torch: Any = import_module("torch")
        logging: Any = import_module("transformers.utils.logging")
        shows = logging.is_progress_bar_enabled()
        logging.disable_progress_bar()
        try:
            model = EmbedderBinding(self.model, device="cpu", local_files_only=True)
        except (OSError, ValueError) as error:
            raise InvalidInput(
                f"The cross-encoder {self.model!r} cannot be loaded from this machine; give the folder of a "
                "sentence-transformers CrossEncoder, or download it first with sentence-transformers."
            ) from error
        finally:
            if shows:
                logging.enable_progress_bar()
        if model.config.num_labels != 1:
            raise InvalidInput(
                f"The cross-encoder {self.model!r} has {model.config.num_labels} outputs; choose one with a single "
                "score of relevance."
            )
        # Models differ in whether they squash by themselves; here it is done once, by squashed.
        name = "activation_fn" if hasattr(model, "activation_fn") else "default_activation_function"
        setattr(model, name, torch.nn.Identity())
        return model
