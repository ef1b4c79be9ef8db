"""The arguments of the verbs: what each is, as JSON Schema and in a sentence, once for every route that takes it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from semmem.model import memory_fields
from semmem.model.memory_fields import FIELDS
from semmem.model.process.asker import INTERFACES
from semmem.model.recipe import RECIPES, Recipe
from semmem.model.recipe_settings import values_of
from semmem.model.types import LINK_TYPES, SORT_BY

__all__ = ["ARGUMENTS", "FILTERS", "MEMORY", "NAMED_RECIPE", "RECIPE_SETTINGS"]

_SHOWN = "^[^\\u0000]*[^\\s\\u0000-\\u001f\\u007f-\\u00a0][^\\u0000]*$"
_TEXT = {"type": "string", "pattern": "^[^\\u0000]*$"}
_NAME = {**_TEXT, "minLength": 1}
_TEXTS = {"type": "array", "items": _TEXT}
NAMED_RECIPE: dict[str, Any] = {"type": "string", "enum": list(RECIPES)}
RECIPE_SETTINGS: Mapping[str, dict[str, Any]] = {name: values.schema for name, values in values_of(Recipe).items()}
"""The settings of a recipe, and the values that each takes, as JSON Schema."""
_RECIPE_TABLE = {
    "type": "object",
    "properties": {**RECIPE_SETTINGS, "name": NAMED_RECIPE},
    "additionalProperties": False,
}
_LIMIT = {"type": "integer", "minimum": 0, "maximum": 2**53}
_OBJECT = {"type": "object"}
_TRUTH = {"type": "boolean"}
_TIME = {"type": "string", "format": "date-time"}

_OF_A_MEMORY = [name for name in FIELDS if name not in ("namespace", "id", "sensitive")] + ["sensitive"]
MEMORY: Mapping[str, tuple[dict[str, Any], str]] = {
    name: (FIELDS[name].kind.schema, FIELDS[name].meaning) for name in _OF_A_MEMORY
}
"""The fields of a memory: their JSON Schemas, and what they mean."""

FILTERS: Mapping[str, tuple[dict[str, Any], str]] = {
    name: (row.schema, row.meaning) for name, row in memory_fields.FILTERS.items()
}

_FILTERED = {"type": "object", "properties": {n: s for n, (s, _) in FILTERS.items()}, "additionalProperties": False}

ARGUMENTS: Mapping[str, tuple[dict[str, Any], str]] = {
    **MEMORY,
    "a": (_NAME, "The name that is merged into the other one."),
    "as_of": (_TIME, "Use the versions that were valid at this time."),
    "agent": (_TEXT, "Only asked by this agent."),
    "asked_after": (_TIME, "Only asked from this time on."),
    "asked_before": (_TIME, "Only asked before this time."),
    "around": (_NAME, "A name in any spelling, or the id of a memory."),
    "b": (_NAME, "The name into which it is merged."),
    "batch_size": ({"type": "integer", "minimum": 1, "maximum": 100_000}, "Items a transaction."),
    "changed_by": (_TEXT, "Who makes the change; the history of the memory keeps it."),
    "cursor": (_TEXT, "The cursor of the previous page."),
    "dry_run": (_TRUTH, "Only count the memories that would be forgotten."),
    "everything": (_TRUTH, "Forget the whole namespace and its settings; needs a key with the right admin."),
    "exact": (_TRUTH, "Count every concept and mention, where a large store estimates them otherwise."),
    "exclude": (_TEXTS, "Ids to leave out."),
    "expected_version": ({"type": "integer"}, "The version that you have read."),
    "extract": (_TRUTH, "Extract the concepts again."),
    "filters": (_FILTERED, "Conditions that narrow the call."),
    "fold_parts": (_TRUTH, "One hit for each memory, not for each part."),
    "forgotten_by": (_TEXT, "Who forgets it; its history shows the name."),
    "hard": (
        _TRUTH,
        "Keep nothing, no version either, and rewrite the files, so that no deleted bytes are left. "
        "Needs a key for every namespace.",
    ),
    "hops": ({"type": "integer", "minimum": 1, "maximum": 6}, "How far to go."),
    "id": (_NAME, "The id of a memory."),
    "interface": ({"type": "string", "enum": list(INTERFACES)}, "Only asked through this interface, such as mcp."),
    "k": ({"type": "integer", "minimum": 1, "maximum": 1_000}, "The cut-off: the first k hits."),
    "keep": (_TEXTS, "Ids of memories that prune does not forget."),
    "keep_days": (
        {"anyOf": [{"type": "number", "enum": [0]}, {"type": "number", "minimum": 1 / 24, "maximum": 36_500}]},
        "Days a memory stays after its last change; 0: no limit.",
    ),
    "leg": (_NAME, "One leg of the recipe alone."),
    "like": (_TEXT, "A piece of a name."),
    "limit": ({"type": "integer", "minimum": 1, "maximum": 10_000}, "How many, at most."),
    "made_by": (_TEXT, "Who makes the link or the judgment."),
    "mark": (_OBJECT, "Metadata for every memory that this call stores."),
    "memory": (_TEXT, "Only recalls that gave the memory with this id."),
    "messages": (
        {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"role": _NAME, "content": _NAME, "name": _NAME},
                "required": ["role", "content"],
            },
        },
        "Messages of a chat, each with role and content; name is the author, else role.",
    ),
    "min_confidence": (
        {"anyOf": [{"type": "number", "minimum": 0, "maximum": 1}, {"type": "string", "enum": ["auto"]}]},
        "Return no hit below this confidence; auto: the floor measured for the embedder and the legs that answer.",
    ),
    "most_bytes": (
        {"type": "integer", "minimum": 0, "maximum": 2**53},
        "Bytes of texts and titles it may hold; 0: no limit.",
    ),
    "most_memories": (
        {"type": "integer", "minimum": 0, "maximum": 2**53},
        "How many memories it may hold; 0: no limit.",
    ),
    "name": (_NAME, "A name."),
    "names": (_TEXTS, "Dotted names of settings; without any, all settings."),
    "namespace": (_NAME, "The namespace."),
    "new": (_NAME, "The new name of a namespace."),
    "now": (
        _TIME,
        "When the question is asked, for period_floor or the reranker composite; default: the server's clock.",
    ),
    "of": (_NAME, "The namespace of the memory, if several of those asked have its id."),
    "not_useful": (_TEXTS, "Ids of memories that were not useful."),
    "offset": ({"type": "integer", "minimum": 0, "maximum": 10_000}, "How many hits to skip."),
    "old": (_NAME, "The present name of a namespace."),
    "on_error": ({"type": "string", "enum": ["abort", "skip"]}, "At a bad item: stop, or skip it."),
    "overwrite": (_TRUTH, "Also replace memories that were edited by hand."),
    "owned": (
        {"anyOf": [_FILTERED, {"type": "array", "items": _FILTERED}]},
        "Filters that match the memories of the source.",
    ),
    "prune": (_TRUTH, "Forget the source's memories that are not among the items."),
    "query": ({**_TEXT, "pattern": _SHOWN}, "The question."),
    "recall_id": (_TEXT, "The id of a recall that was logged."),
    "recipe": (
        {"anyOf": [NAMED_RECIPE, _RECIPE_TABLE]},
        "Search settings: a recipe's name, or a table of changes with a name.",
    ),
    "reveal": (_TRUTH, "Show the texts of sensitive memories; needs a key with the right write."),
    "replace": (_TRUTH, "Let changed items replace memories of the source."),
    "scope_size": ({"type": "integer", "minimum": 0}, "The number of memories in the scope."),
    "who": (_TEXT, "Only with the key, or the token, of this name."),
    "noted_after": (_TIME, "Only noted from this time on (ISO 8601)."),
    "noted_before": (_TIME, "Only noted before this time (ISO 8601)."),
    "since": (_TEXT, 'The cursor of the previous call; "now": no changes, only a cursor to start from.'),
    "sort_by": (
        {"type": "string", "enum": list(SORT_BY)},
        "The order, highest or latest first; accessed: last returned by a recall. A list has no relevance.",
    ),
    "then": (_TRUTH, "Ask the memories that were valid at the time of the recall."),
    "to": (_NAME, "The id of the other memory."),
    "token_budget": ({"type": "integer", "minimum": 1}, "Return the hits that fit into so many tokens; name the rest."),
    "type": ({"type": "string", "enum": list(LINK_TYPES)}, "The type of the link, from the first memory to the other."),
    "useful": (_TEXTS, "Ids of memories that were useful."),
    "vectors": (_TRUTH, "Add the vectors that are stored."),
    "witness": ({"type": "array", "items": _TEXT, "minItems": 2, "maxItems": 2}, "A question and a text of your own."),
}
"""What the arguments of all verbs are: their JSON Schemas, and what they mean. The facade has the last word."""
