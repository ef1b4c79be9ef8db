"""A cross-encoder from an ONNX file, run by ONNX Runtime: torch is not needed."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from semmem.model.errors import InvalidInput, MissingExtra
from semmem.model.failure import reason
from semmem.model.process.forks import Lock
from semmem.model.process.machine import processors
from semmem.model.process.native_calls import native_calls
from semmem.model.types import Memory
from semmem.rerankers.relevance import squashed, texts_of

__all__ = ["OnnxCrossEncoder", "graph_in"]

_PLACES = ("model.onnx", "onnx/model.onnx")
_TOKENIZER = "tokenizer.json"
_LIMITS = (("tokenizer_config.json", "model_max_length"), ("config.json", "max_position_embeddings"))
_LONGEST = 512
_MOST_THREADS = 8


def graph_in(model: str) -> Path | None:
    """Return the ONNX file in the folder ``model``, None where there is none or ``model`` is no folder."""
    return next((path for place in _PLACES if (path := Path(model).expanduser() / place).is_file()), None)


class OnnxCrossEncoder:
    """The graph in ``file``, whose folder (or the one above) has its ``tokenizer.json``; one output of relevance.

    Creating one loads nothing; the first ``rerank`` does. A pair is read alone and never padded, so its score does not
    depend on the other pairs. Raises MissingExtra without ONNX Runtime, InvalidInput without the tokenizer.
    """

    name = "cross_encoder"

    def __init__(self, file: Path) -> None:
        if find_spec("onnxruntime") is None or find_spec("tokenizers") is None:
            raise MissingExtra(
                "A cross-encoder in ONNX needs ONNX Runtime; install it with: pip install 'semmem[minilm]'"
            )
        folders = (file.parent, file.parent.parent)
        found = next((folder for folder in folders if (folder / _TOKENIZER).is_file()), None)
        if found is None:
            raise InvalidInput(
                f"The cross-encoder {file} has no {_TOKENIZER} beside it or one folder above; copy it there."
            )
        self.file, self.folder = file, found
        self._lock = Lock()
        self._loaded: tuple[Any, Any, dict[str, str]] | None = None

    def rerank(
        self, query: str, memories: Sequence[Memory], scores: Sequence[float], *, passages: Sequence[str], now: datetime
    ) -> list[dict[str, float]]:
        """Return one term for each memory: the graph's logit for its passage, squashed to (0, 1).

        Raises InvalidInput where the file cannot be loaded, cannot read a pair, or has not one output for each pair.
        """
        if not memories:
            return []
        with self._lock:  # one thread in the model at a time; the first loads it
            if self._loaded is None:
                self._loaded = self._load()
            return [{self.name: squashed(self._logit(query, text))} for text in texts_of(memories, passages)]

    def _logit(self, query: str, text: str) -> float:
        import numpy as np

        assert self._loaded is not None
        session, tokenizer, inputs = self._loaded
        try:
            pair = tokenizer.encode(query, text)
        except Exception as error:  # the tokenizer cuts passages alone
            raise InvalidInput(
                f"The question is longer than the {self._longest():,} tokens that the cross-encoder {self.file} reads; "
                "shorten it."
            ) from error
        by_name = {"input_ids": pair.ids, "attention_mask": pair.attention_mask, "token_type_ids": pair.type_ids}
        kinds = {"tensor(int32)": np.int32}
        given = {name: np.array([by_name[name]], dtype=kinds.get(kind, np.int64)) for name, kind in inputs.items()}
        try:
            with native_calls:
                found = np.asarray(session.run(None, given)[0]).reshape(-1)
        except Exception as error:
            raise InvalidInput(
                f"The cross-encoder {self.file} cannot read a pair of {len(pair.ids):,} tokens ({reason(error, 200)}); "
                f'write the most that it reads as "model_max_length" into {self.folder / _LIMITS[0][0]}.'
            ) from error
        if len(found) != 1 or not np.isfinite(found[0]):
            raise InvalidInput(
                f"The cross-encoder {self.file} gives {len(found)} outputs for a pair; choose one with a single finite "
                "score of relevance."
            )
        return float(found[0])

    def _load(self) -> tuple[Any, Any, dict[str, str]]:
        runtime: Any = import_module("onnxruntime")
        tokenizers: Any = import_module("tokenizers")
        options = runtime.SessionOptions()
        options.intra_op_num_threads = min(processors(), _MOST_THREADS)
        options.inter_op_num_threads = 1
        options.log_severity_level = 3
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        try:
            tokenizer = tokenizers.Tokenizer.from_file(str(self.folder / _TOKENIZER))
            tokenizer.no_padding()
            tokenizer.enable_truncation(self._longest(), strategy="only_second")
            with native_calls:
                session = runtime.InferenceSession(str(self.file), options, providers=["CPUExecutionProvider"])
        except Exception as error:
            raise InvalidInput(
                f"The cross-encoder {self.file} cannot be loaded ({reason(error, 200)}); export the model again."
            ) from error
        inputs = {one.name: one.type for one in session.get_inputs()}
        if strange := sorted(set(inputs) - {"input_ids", "attention_mask", "token_type_ids"}):
            raise InvalidInput(
                f"The cross-encoder {self.file} has an input {strange[0]!r}; it may have input_ids, attention_mask and "
                "token_type_ids."
            )
        return session, tokenizer, inputs

    def _longest(self) -> int:
        """Return the longest pair in tokens: what the files beside the tokenizer say, at most 512."""
        found = [_LONGEST]
        for file, key in _LIMITS:
            with suppress(OSError, ValueError, AttributeError):
                value = json.loads((self.folder / file).read_bytes()).get(key)
                if isinstance(value, int | float) and 8 <= value < 1e6:
                    found.append(int(value))
        return min(found)
