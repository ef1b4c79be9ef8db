"""A reranker behind a ``/rerank`` endpoint of the user's choice: the question and the passages are sent to it."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from math import isfinite
from typing import Any
from urllib.parse import urlsplit

from semmem.model.errors import InvalidInput, LegFailed
from semmem.model.process.endpoint import Endpoint, EndpointFailed, sendable
from semmem.model.types import Memory
from semmem.rerankers.relevance import squashed, texts_of

__all__ = ["EndpointReranker", "RerankerOptions"]

_AT_ONCE = 32
"""Texts of one request: what text-embeddings-inference takes unless it is told otherwise."""
_ATTEMPTS = 2
_LONGEST_WAIT_S = 2.0
_OTHER_FORM = (400, 422)
"""The statuses by which an endpoint refuses a body of another form than its own."""


@dataclass(frozen=True, slots=True)
class RerankerOptions:
    """Where passages are judged: the settings ``reranker_…``."""

    url: str
    model: str | None = None
    key: str | None = None
    timeout_s: float = 10.0


class EndpointReranker:
    """Asks an endpoint in the form of Cohere, Jina and vLLM, or in that of text-embeddings-inference.

    The first form is tried first. Where the endpoint refuses it, the second is; the one that was answered is kept.
    Scores outside [0, 1] are logits, and all scores of that answer are squashed. Raises InvalidInput where a setting is
    missing or cannot be used.
    """

    name = "endpoint"

    def __init__(self, options: RerankerOptions | None, *, wait: Callable[[float], None] = time.sleep) -> None:
        if options is None:
            raise InvalidInput("The reranker 'endpoint' needs the setting reranker_url (SEMMEM_RERANKER_URL).")
        self._endpoint = Endpoint(
            options.url,
            options.key,
            path="/rerank",
            named="reranker",
            timeout_s=options.timeout_s,
            attempts=_ATTEMPTS,
            longest_wait_s=_LONGEST_WAIT_S,
            wait=wait,
        )
        self._model = options.model
        self._takes_texts: bool | None = None
        self.host = urlsplit(options.url).netloc

    def rerank(
        self, query: str, memories: Sequence[Memory], scores: Sequence[float], *, passages: Sequence[str], now: datetime
    ) -> list[dict[str, float]]:
        """Return one term for each memory: the score of its passage, in [0, 1]. Raises LegFailed."""
        texts = [sendable(text) for text in texts_of(memories, passages)]
        batches = [texts[start : start + _AT_ONCE] for start in range(0, len(texts), _AT_ONCE)]
        try:
            given = [score for batch in batches for score in self._sent(sendable(query), batch)]
        except EndpointFailed as error:
            raise LegFailed(self._failed(error)) from error
        logits = any(not 0 <= score <= 1 for score in given)
        return [{self.name: squashed(score) if logits else score} for score in given]

    def _sent(self, query: str, texts: Sequence[str]) -> list[float]:
        """Return the endpoint's scores of some texts, in their order. Raises EndpointFailed."""
        takes_texts = bool(self._takes_texts)

        def body() -> dict[str, Any]:
            if takes_texts:
                return {"query": query, "texts": list(texts), "truncate": True}
            model = {} if self._model is None else {"model": self._model}
            return {**model, "query": query, "documents": list(texts), "top_n": len(texts)}

        def other_form(error: EndpointFailed) -> bool:
            nonlocal takes_texts
            if error.status not in _OTHER_FORM or takes_texts or self._takes_texts is not None:
                return False
            takes_texts = True
            return True

        found = self._endpoint.ask(body, lambda answer: _scores(answer, len(texts)), other_form)
        self._takes_texts = takes_texts
        return found

    def _failed(self, error: EndpointFailed) -> str:
        hint = "; check reranker_model" if error.status in _OTHER_FORM else error.hint("reranker")
        return f"The reranker at {self.host} gave no usable scores ({error.reason}){hint}."


def _scores(answer: Any, count: int) -> list[float]:
    """Return the scores of an answer in the order of the texts. Raises EndpointFailed for anything else."""
    rows = answer.get("results", answer.get("data")) if isinstance(answer, dict) else answer
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise EndpointFailed("no list of scores in the answer")
    if len(rows) != count:
        raise EndpointFailed(f"{len(rows)} scores for {count} texts")
    by_place = {row.get("index"): row.get("relevance_score", row.get("score")) for row in rows}
    if any(type(place) is not int for place in by_place) or set(by_place) != set(range(count)):
        raise EndpointFailed("scores without their places")
    scores = [by_place[place] for place in range(count)]
    if not all(type(score) in (int, float) and isfinite(score) for score in scores):
        raise EndpointFailed("a score that is no finite number")
    return [float(score) for score in scores]
