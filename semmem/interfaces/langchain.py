"""A retriever for LangChain: ``retriever.invoke("…")`` gives documents, best first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from semmem.interfaces.arguments import check_limit, check_memory, check_namespace
from semmem.model.errors import InvalidInput, MissingExtra
from semmem.model.filters import checked_filters
from semmem.model.types import Hit

try:
    from langchain_core.callbacks import CallbackManagerForRetrieverRun
    from langchain_core.documents import Document
    from langchain_core.retrievers import BaseRetriever
except ImportError as error:
    raise MissingExtra("LangChain's retriever needs: pip install 'semmem[langchain]'") from error

if TYPE_CHECKING:
    from semmem.client.memory import Semmem

__all__ = ["SemmemRetriever"]

_SETTINGS = ("namespace", "limit", "recipe", "filters")


class SemmemRetriever(BaseRetriever):
    """Recall as a LangChain retriever.

    ``memory`` is a Semmem; ``namespace``, ``limit``, ``recipe`` and ``filters`` are those of ``recall``. A document's
    metadata are the fields of the memory (its own metadata among them), ``score``, ``components`` and ``rank``. Raises
    InvalidInput for a setting that there is not, or of a wrong type.
    """

    memory: Any
    namespace: str | Sequence[str] = "default"
    limit: int = 10
    recipe: Any = None
    filters: Mapping[str, Any] | None = None

    def __init__(self, memory: Semmem, **settings: Any) -> None:
        check_memory(memory)
        if unknown := [name for name in settings if name not in type(self).model_fields]:
            raise InvalidInput(
                f"{unknown[0]!r} is not a setting of the retriever; choose one of {', '.join(_SETTINGS)}."
            )
        check_limit(settings.get("limit", 10))
        check_namespace(settings.get("namespace", "default"), several=True)
        checked_filters(settings.get("filters"))
        try:
            super().__init__(**{**settings, "memory": memory})
        except ValidationError as error:
            wrong = error.errors()[0]
            where = ".".join(map(str, wrong["loc"]))
            raise InvalidInput(f"{where} of the retriever cannot be {wrong['input']!r:.100}: {wrong['msg']}.") from None

    def _get_relevant_documents(self, query: str, *, run_manager: CallbackManagerForRetrieverRun) -> list[Document]:
        hits = self.memory.recall(
            query, namespace=self.namespace, limit=self.limit, recipe=self.recipe, filters=self.filters
        )
        return [_document(hit) for hit in hits]


def _document(hit: Hit) -> Document:
    fields = hit.memory.as_dict()
    text = fields.pop("text")
    present_fields = {
        name: value for name, value in fields.items() if value not in (None, [], {}) and name != "metadata"
    }
    ranked = {"score": hit.score, "components": dict(hit.components), "rank": hit.rank}
    return Document(id=hit.memory.id, page_content=text, metadata={**hit.memory.metadata, **present_fields, **ranked})
