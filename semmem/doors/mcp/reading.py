"""The tools that only read: memory_recall and memory_context, memory_get and so on; and search and fetch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from semmem.doors.mcp.schemas import (
    FILTERS,
    HIT,
    ID,
    LIMIT,
    MEMORY,
    NAMESPACE,
    NAMESPACES,
    QUERY,
    RECIPE,
    Schema,
    array,
    integer,
    number,
    string,
    structure,
)
from semmem.doors.mcp.tools import Call, Tool, as_values, text_of, uri_of
from semmem.doors.pages import bounded_page
from semmem.model.errors import InvalidInput
from semmem.model.types import LIST_ORDERS, MASK, MASK_OF_TOOLS
from semmem.model.types import SORT_BY as ORDERS

if TYPE_CHECKING:
    from semmem.model.types import Hit

__all__ = ["PREFIX", "TOOLS", "memory_at"]

PREFIX = "semmem://memory/"

OFFSET = integer("How many of the first hits to skip.", minimum=0, default=0)
EXCLUDE = array({"type": "string"}, "Ids to leave out.")
SORT_BY: Schema = {"type": "string", "enum": list(ORDERS)}
LEAST: Schema = {
    "anyOf": [{"type": "number", "minimum": 0, "maximum": 1}, {"type": "string", "enum": ["auto"]}],
    "description": "Return no hit where the confidence is below this. 0: return every hit. Default: a measured floor.",
}
NOTHING = string("Only where there are no hits: why, and how to see those that are withheld.")
BUDGET = integer("Return what fits into about so many tokens; left_out names the rest.", minimum=1)
AS_OF = string("A time (ISO 8601): the versions that were valid then.")

_LONG = 2_000
"""Characters of a text; of a longer one a hit shows the best passage."""

_MOST = 1_000
_PAGE_BYTES = 2**20
_TITLE = 80


def recall(call: Call) -> dict[str, Any]:
    """Answer memory_recall."""
    named = call.arguments.get("namespace")
    answer = call.memory.recall(
        call.arguments["query"],
        namespace=call.scope.namespaces if named is None else named,
        **call.present(*_OF_A_RECALL),
        **call.least,
    )
    return {
        **_empty(answer.scope_size, call.scope.namespaces if named is None else named),
        **_nothing(answer.withheld, answer.confidence, answer.min_confidence),
        "confidence": answer.confidence,
        "withheld": answer.withheld,
        "hits": [_hit(hit) for hit in answer],
        "total": answer.total,
        "total_is_exact": answer.total_is_exact,
        "left_out": [one.as_dict() for one in answer.left_out],
        "degraded": dict(answer.degraded),
        "regime": answer.regime,
        "recipe": answer.recipe.name,
        "recall_id": answer.id,
    }


def _empty(scope_size: int, asked: str | Sequence[str]) -> dict[str, str]:
    """Return a sentence for the agent where the namespaces hold no memory that a recall could return."""
    if scope_size:
        return {}
    names = ", ".join(map(repr, [asked] if isinstance(asked, str) else asked))
    return {"nothing": f"No memory of namespace {names} matches: it is empty, or the filters leave none."}


def _nothing(withheld: int, confidence: float, least: float, how: str = "call again") -> dict[str, str]:
    """Return a sentence for the agent where the hits are withheld, so that it does not take silence for a failure."""
    if not withheld:
        return {}
    hits = "1 hit is" if withheld == 1 else f"{withheld} hits are"
    return {
        "nothing": f"Nothing stored seems to answer this: the confidence {confidence:.2f} is below {least:g}. {hits} "
        f"withheld; {how} with min_confidence 0 to see them."
    }


def _hit(hit: Hit) -> dict[str, Any]:
    long = len(hit.text) > _LONG
    values: dict[str, Any] = {
        "id": hit.id,
        "namespace": hit.namespace,
        "rank": hit.rank,
        "score": hit.score,
        "components": dict(hit.components),
        **as_values(hit.memory),
    }
    if long:
        values |= {"text": hit.passage.text[:_LONG], "cut": True, "snippet": hit.snippet[:_LONG]}
    if hit.superseded_by is not None:
        values["superseded_by"] = hit.superseded_by
    if hit.duplicates:
        values["duplicates"] = list(hit.duplicates)
        if set(hit.duplicate_namespaces) != {hit.namespace}:
            values["duplicate_namespaces"] = list(hit.duplicate_namespaces)
    return values


def context(call: Call) -> dict[str, Any]:
    """Answer memory_context."""
    named = call.arguments.get("namespace")
    block = call.memory.context(
        call.arguments["query"],
        namespace=call.scope.namespaces if named is None else named,
        **call.present("token_budget", "limit", "filters", "exclude", "recipe", "as_of"),
        **call.least,
    )
    values = block.as_dict()
    shown = [(one, True) for one in block.pinned] + [(hit.memory, False) for hit in block.hits]
    return {
        **_nothing(block.withheld, block.confidence, block.min_confidence),
        "confidence": values.pop("confidence"),
        "withheld": values.pop("withheld"),
        **{name: value for name, value in values.items() if name not in ("hits", "pinned", "min_confidence")},
        "shown": [
            {"id": one.id, "namespace": one.namespace, "pinned": pinned, "uri": uri_of(one)} for one, pinned in shown
        ],
    }


def get(call: Call) -> dict[str, Any]:
    """Answer memory_get."""
    id = call.arguments["id"]
    return {
        "memory": as_values(call.memory.get(id, namespace=call.home(id), **call.present("as_of"), **call.revealing))
    }


def history(call: Call) -> dict[str, Any]:
    """Answer memory_history."""
    id = call.arguments["id"]
    versions = call.memory.history(id, namespace=call.namespace, **call.present("limit", "offset"), **call.revealing)
    before = [None, *versions][: len(versions)]
    return {
        "versions": [
            {
                **{name: value for name, value in one.as_dict().items() if value is not None},
                "memory": as_values(one.memory),
                "diff": "" if old is None or not one.changed else one.diff(old).replace(MASK, MASK_OF_TOOLS),
            }
            for old, one in zip(before, versions, strict=True)
        ]
    }


def list_(call: Call) -> dict[str, Any]:
    """Answer memory_list."""
    limit = call.present("limit").get("limit", 100)
    if isinstance(limit, bool) or not isinstance(limit, int) or not 1 <= limit <= _MOST:
        raise InvalidInput(f"limit must be from 1 to {_MOST}, not {limit!r}; cursor gives the next page.")
    arguments = {**call.present("filters", "cursor", "sort_by"), **call.revealing}
    page = bounded_page(call.memory, most_bytes=_PAGE_BYTES, namespace=call.namespace, limit=limit, **arguments)
    return {"memories": [as_values(memory) for memory in page], "cursor": page.cursor}


def explain(call: Call) -> dict[str, Any]:
    """Answer memory_explain."""
    id = call.arguments["id"]
    home = call.home(id)
    among = [home] if call.arguments.get("namespace") is not None else [*call.scope.namespaces]
    answer = call.memory.recall(call.arguments["query"], namespace=among, **call.present(*_OF_A_RECALL), **call.least)
    why = answer.explain(id, home)
    return {"explanation": why.as_dict(), "in_words": str(why)}


def search(call: Call) -> dict[str, Any]:
    """Answer search, in the shape of ChatGPT's connectors."""
    hits = call.memory.recall(call.arguments["query"], namespace=call.scope.namespaces, **call.least)
    return {
        "results": [
            {
                "id": uri_of(hit.memory),
                "title": hit.title or _first(hit.text),
                "text": hit.snippet or hit.passage.text[:_LONG],
                "url": _url(hit.source, uri_of(hit.memory)),
            }
            for hit in hits
        ],
        **_nothing(hits.withheld, hits.confidence, hits.min_confidence, "call memory_recall"),
    }


def fetch(call: Call) -> dict[str, Any]:
    """Answer fetch, in the shape of ChatGPT's connectors."""
    address = call.arguments["id"]
    memory = memory_at(call, address)
    return {
        "id": uri_of(memory),
        "title": memory.title or _first(text_of(memory)),
        "text": text_of(memory),
        "url": _url(memory.source, uri_of(memory)),
        "metadata": {name: value for name, value in as_values(memory).items() if name not in ("text", "title", "uri")},
    }


def memory_at(call: Call, address: Any) -> Any:
    """Return the memory of a resource's URI, or of an id in the scope. Raises NotFound, InvalidInput."""
    if not isinstance(address, str) or not address.startswith(PREFIX):
        return call.memory.get(address, namespace=call.home(address), **call.revealing)
    namespace, slash, id = address.removeprefix(PREFIX).partition("/")
    if not namespace or not slash or not id:
        raise InvalidInput(f"A memory's resource is {PREFIX}NAMESPACE/ID, both percent-encoded, not {address!r}.")
    return call.memory.get(unquote(id), namespace=unquote(namespace), **call.revealing)


def _first(words: str) -> str:
    line = " ".join(words[: 4 * _TITLE].split())
    return line if len(line) <= _TITLE else f"{line[: _TITLE - 1]}…"


def _url(source: str | None, uri: str) -> str:
    return source if source and source.startswith(("http://", "https://")) else uri


_CONNECTED: dict[str, Schema] = {name: {"type": "string"} for name in ("id", "title", "text", "url")}

_SHOWN: dict[str, Schema] = {
    **{name: {"type": "string"} for name in ("id", "namespace", "uri")},
    "pinned": {"type": "boolean"},
}

_OF_A_RECALL: dict[str, Schema] = {
    "limit": LIMIT,
    "offset": OFFSET,
    "filters": FILTERS,
    "exclude": EXCLUDE,
    "sort_by": SORT_BY,
    "recipe": RECIPE,
    "token_budget": BUDGET,
    "as_of": AS_OF,
}
"""What a recall takes besides the least confidence, and so the explanation of one."""

TOOLS = (
    Tool(
        "memory_recall",
        "Recall memories",
        "Find what is remembered about a question: earlier decisions, preferences, names, how things are done here. "
        "Call it before you answer or begin a task that may have a history. Ask in plain words, one question a call. "
        "The hits come best first, with the text; an empty list means that nothing is remembered. Hits that hardly "
        "match are withheld: `nothing` says so and how to ask for them.",
        recall,
        {
            "query": QUERY,
            "namespace": NAMESPACES,
            **_OF_A_RECALL,
            "min_confidence": LEAST,
        },
        ("query",),
        {
            "nothing": NOTHING,
            "confidence": number("In [0, 1]: how well the best hits match; compares across questions."),
            "withheld": integer("How many hits were not returned, because the confidence is below min_confidence."),
            "hits": array(HIT),
            "total": integer("How many memories a leg matched."),
            "total_is_exact": {"type": "boolean"},
            "left_out": array({"type": "object"}, "Hits that did not fit into token_budget; memory_get has them."),
            "degraded": {"type": "object", "description": "Legs that could not answer, and why."},
            "regime": {"type": "string"},
            "recipe": {"type": "string"},
            "recall_id": {
                "type": ["string", "null"],
                "description": "Names this recall for memory_feedback, where recalls are logged.",
            },
        },
        sometimes=("nothing",),
    ),
    Tool(
        "memory_context",
        "Compose a context",
        "Return what is pinned and what answers a question as one block of text for a prompt, within a budget of "
        "tokens, marked as data. Use it at the beginning of a task, or to brief another agent; memory_recall gives "
        "the hits one by one, with their scores.",
        context,
        {
            "query": QUERY,
            "namespace": NAMESPACES,
            "token_budget": integer("About how many tokens the block may have.", minimum=1, default=2000),
            "limit": {**LIMIT, "default": 20},
            "filters": FILTERS,
            "exclude": array({"type": "string"}, "Ids to leave out, pinned or not."),
            "recipe": RECIPE,
            "min_confidence": LEAST,
            "as_of": string("A time (ISO 8601): show the versions that were valid then."),
        },
        ("query",),
        {
            "nothing": NOTHING,
            "confidence": number("In [0, 1]: how well the best hits match; compares across questions."),
            "withheld": integer("How many hits are not shown, because the confidence is below min_confidence."),
            "text": string("The block; empty where nothing is shown."),
            "shown": array(structure(_SHOWN, tuple(_SHOWN)), "The memories in the block, in its order."),
            "left_out": array({"type": "object"}, "What did not fit into token_budget; memory_get has it."),
            "tokens": integer("About how many tokens the block has."),
            "token_budget": {"type": "integer"},
            "degraded": {"type": "object", "description": "Legs that could not answer, and why."},
            "recall_id": {
                "type": ["string", "null"],
                "description": "Names this recall for memory_feedback, where recalls are logged.",
            },
        },
        sometimes=("nothing",),
    ),
    Tool(
        "memory_get",
        "Get one memory",
        "Return one memory whole, by its id, or with as_of the version of it that was valid then. Use it where "
        "memory_recall showed only a passage of a long text.",
        get,
        {"id": ID, "namespace": NAMESPACE, "as_of": AS_OF},
        ("id",),
        {"memory": MEMORY},
    ),
    Tool(
        "memory_history",
        "Show a memory's versions",
        "Return the versions of one memory, oldest first: what was changed, when and by whom. Use it to see what was "
        "true before, or who changed something.",
        history,
        {
            "id": ID,
            "namespace": NAMESPACE,
            "limit": integer("How many versions at most; without it all.", minimum=1, maximum=10_000),
            "offset": integer("How many of the oldest to skip.", minimum=0, default=0),
        },
        ("id",),
        {"versions": array({"type": "object"}, "Each with its fields, its memory, and a diff to the one before.")},
    ),
    Tool(
        "memory_list",
        "List memories",
        "Return a page of memories, newest first unless sort_by says otherwise, without a question: to look around, or "
        "to work through all of them. A page of long texts ends early; cursor gives the next one. "
        "To find something, memory_recall is better.",
        list_,
        {
            "namespace": NAMESPACE,
            "filters": FILTERS,
            "limit": integer("How many memories a page.", minimum=1, maximum=_MOST, default=100),
            "cursor": string("The cursor of the page before."),
            "sort_by": {
                "type": "string",
                "enum": list(LIST_ORDERS),
                "description": "The order, downwards; accessed: what a recall returned last.",
            },
        },
        (),
        {"memories": array(MEMORY), "cursor": {"type": ["string", "null"]}},
    ),
    Tool(
        "memory_explain",
        "Explain a memory's rank",
        "Say why a memory is among the hits of a question, or why not, and what would let it in. Use it when a recall "
        "misses a memory that you know is there.",
        explain,
        {
            "id": ID,
            "query": QUERY,
            "namespace": NAMESPACE,
            **_OF_A_RECALL,
            "min_confidence": LEAST,
        },
        ("id", "query"),
        {"explanation": {"type": "object"}, "in_words": {"type": "string"}},
    ),
    Tool(
        "search",
        "Search memories",
        "Find memories for a question; fetch then returns one of them whole. For clients that know these two tools "
        "only: memory_recall does more.",
        search,
        {"query": QUERY},
        ("query",),
        {"results": array(structure(_CONNECTED, ("id", "title", "url"))), "nothing": NOTHING},
        ("nothing",),
        bare=True,
    ),
    Tool(
        "fetch",
        "Fetch one memory",
        "Return a memory that search found, whole.",
        fetch,
        {"id": string("The id of a result of search.")},
        ("id",),
        {**_CONNECTED, "metadata": {"type": "object"}},
        bare=True,
    ),
)
"""The rows of this module."""
