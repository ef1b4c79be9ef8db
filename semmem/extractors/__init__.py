"""Extractors by name: they find the terms and concepts of a memory. ``rules`` is the default and needs nothing."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from semmem.concepts.rules import extract
from semmem.model.errors import InvalidInput
from semmem.model.exchange import Extraction
from semmem.text.languages import known
from semmem.text.tokens import tokens

if TYPE_CHECKING:
    from semmem.model.protocols import Extractor

__all__ = ["NAMES", "Rules", "check", "load"]

NAMES = ("rules", "spacy", "precomputed", "llm")


def check(extractor: object) -> None:
    """Raise InvalidInput unless ``extractor`` is a name, or an object with the methods of an extractor."""
    if isinstance(extractor, str):
        return
    needed = ("name", "extract")
    if lacks := [part for part in needed if not hasattr(extractor, part)]:
        raise InvalidInput(
            f"An extractor is a name ({', '.join(NAMES)}) or an object with {', '.join(needed)}; this "
            f"{type(extractor).__name__} has no {lacks[0]}."
        )


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
        from semmem.extractors.spacy import Trained

        return Trained(_required_value(name, "spacy_pipeline", spacy_pipeline), language)
    if name == "precomputed":
        from semmem.extractors.precomputed import Precomputed

        return Precomputed(_required_value(name, "triples", triples), language)
    if name == "llm":
        from semmem.extractors.llm import LLM

        url, model = _required_value(name, "llm_url", llm_url), _required_value(name, "llm_model", llm_model)
        return LLM(str(url), str(model), key=llm_key, language=language, cache=llm_cache, timeout_s=llm_timeout_s)
    raise InvalidInput(f"There is no extractor named {name!r}; choose one of {', '.join(NAMES)}, or pass an object.")


def _required_value(name: str, setting: str, value: str | Path | None) -> str | Path:
    if not value:
        raise InvalidInput(
            f"The extractor {name!r} needs the setting {setting}; set SEMMEM_{setting.upper()} or pass it."
        )
    return value


class Rules:
    """The ``rules`` extractor as an object, for the Extractor protocol; its only state is its language.

    Its version is one more where a language has got function words since, so that ``maintain`` derives anew what was
    stored before.
    """

    name = "rules"
    version = "3"

    def __init__(self, language: str = "english") -> None:
        self.language = language
        if language != "english" and known(language).stop_words:
            self.version = "4"
        tokens("", language)  # an unknown language is refused here and not at the first memory

    def extract(self, text: str, title: str | None = None) -> Extraction:
        """Return the extraction of one memory."""
        return extract(text, title, language=self.language)
