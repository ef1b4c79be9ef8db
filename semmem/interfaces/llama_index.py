"""A retriever for LlamaIndex: ``retriever.retrieve("…")`` gives nodes with scores, best first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from semmem.interfaces.arguments import check_limit, check_memory, check_namespace
from semmem.model.errors import InvalidInput, MissingExtra
from semmem.model.filters import checked_filters
from semmem.model.recipe import Recipe

try:
    from llama_index.core.retrievers import BaseRetriever
    from llama_index.core.schema import NodeWithScore, QueryBundle, QueryType, TextNode
except ImportError as error:
    raise MissingExtra("LlamaIndex's retriever needs: pip install 'semmem[llama-index]'") from error

if TYPE_CHECKING:
    from semmem.client.memory import Semmem

__all__ = ["SemmemRetriever"]


_FOR_MODELS = {"title", "author", "created_at", "source_type"}
"""The fields of a memory that LlamaIndex writes into a prompt, beside the metadata of its own."""


class SemmemRetriever(BaseRetriever):
    """Recall as a LlamaIndex retriever; the arguments after ``memory`` are those of ``recall``.

    A node's metadata has all fields of its memory; a prompt gets those that tell a model who said it, and when.

    Raises InvalidInput for one of a wrong type.
    """

    def __init__(
        self,
        memory: Semmem,
        *,
        namespace: str | Sequence[str] = "default",
        limit: int = 10,
        recipe: str | Recipe | None = None,
        filters: Mapping[str, Any] | None = None,
    ) -> None:
        check_memory(memory)
        check_limit(limit)
        check_namespace(namespace, several=True)
        checked_filters(filters)
        super().__init__()
        self._memory = memory
        self._namespace = namespace
        self._limit = limit
        self._recipe = recipe
        self._filters = filters

    def retrieve(self, str_or_query_bundle: QueryType) -> list[NodeWithScore]:
        """Return the nodes that answer a question. Raises InvalidInput for what is no question."""
        return super().retrieve(_question(str_or_query_bundle))

    async def aretrieve(self, str_or_query_bundle: QueryType) -> list[NodeWithScore]:
        """Return the nodes that answer a question; see retrieve."""
        return await super().aretrieve(_question(str_or_query_bundle))

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        hits = self._memory.recall(
            query_bundle.query_str,
            namespace=self._namespace,
            limit=self._limit,
            recipe=self._recipe,
            filters=self._filters,
        )
        nodes = []
        for hit in hits:
            fields = hit.memory.as_dict()
            text = fields.pop("text")
            present_fields = {
                name: value for name, value in fields.items() if value not in (None, [], {}, ()) and name != "metadata"
            }
            for_programs = sorted(present_fields.keys() - _FOR_MODELS)
            node = TextNode(
                id_=hit.memory.id,
                text=text,
                metadata={**hit.memory.metadata, **present_fields},
                excluded_llm_metadata_keys=for_programs,
                excluded_embed_metadata_keys=for_programs,
            )
            nodes.append(NodeWithScore(node=node, score=hit.score))
        return nodes


def _question(question: Any) -> QueryType:
    if not isinstance(question, str | QueryBundle):
        raise InvalidInput(f"A question must be a string or a QueryBundle, not {type(question).__name__}.")
    return question
