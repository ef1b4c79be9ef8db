"""Extractors by name: they find the terms and concepts of a memory. ``rules`` is the default and needs nothing."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from semmem.concepts.rules import Rules
from semmem.errors import InvalidInput

if TYPE_CHECKING:
    from semmem.protocols import Extractor

__all__ = ["NAMES", "Rules", "load"]

NAMES = ("rules", "spacy", "precomputed", "llm")


def load(
    name: str,
    *,
    language: str = "english",
    spacy_pipeline: str | None = None,
    triples: str | Path | None = None,
    llm_url: str | None = None,
    llm_model: str | None = None,
    llm_key: str | None = None,
    llm_cache: str | Path | None = None,
    llm_timeout_s: float = 30.0,
) -> Extractor:
    """Return the extractor ``name``; no pipeline is loaded and no endpoint asked before the first memory.

    ``spacy`` needs ``spacy_pipeline`` (a name or folder), ``precomputed`` needs ``triples`` (a file), ``llm`` needs
    ``llm_url`` and ``llm_model``. Raises InvalidInput for an unknown name, or one whose setting is missing or
    wrong, and MissingExtra when its package is not installed.
    """
    if name == "rules":
        return Rules(language)
    if name == "spacy":
        from semmem.extractors.trained import Trained

        return Trained(_given(name, "spacy_pipeline", spacy_pipeline), language)
    if name == "precomputed":
        from semmem.extractors.precomputed import Precomputed

        return Precomputed(_given(name, "triples", triples), language)
    if name == "llm":
        from semmem.extractors.llm import LLM

        url, model = _given(name, "llm_url", llm_url), _given(name, "llm_model", llm_model)
        return LLM(str(url), str(model), key=llm_key, language=language, cache=llm_cache, timeout_s=llm_timeout_s)
    raise InvalidInput(f"There is no extractor named {name!r}; choose one of {', '.join(NAMES)}, or pass an object.")


def _given(name: str, setting: str, value: str | Path | None) -> str | Path:
    if not value:
        raise InvalidInput(
            f"The extractor {name!r} needs the setting {setting}; set SEMMEM_{setting.upper()} or pass it."
        )
    return value
