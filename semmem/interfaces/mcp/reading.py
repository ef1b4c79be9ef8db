"""The tools that only read: memory_recall and memory_context, memory_get and so on; and search and fetch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from semmem.client.pages import bounded_page
from semmem.interfaces.mcp.schemas import (
    FILTERS,
    ID,
    LIMIT,
    NAMESPACE,
    NAMESPACES,
    QUERY,
    RECIPE,
    VERBOSE,
    Schema,
    array,
    integer,
    string,
    structure,
)
from semmem.interfaces.mcp.tools import Call, Tool, as_values, text_of, uri_of
from semmem.model.errors import InvalidInput
from semmem.model.types import LIST_ORDERS, MASK, MASK_OF_TOOLS
from semmem.model.types import SORT_BY as ORDERS

if TYPE_CHECKING:
    from semmem.model.types import Hit

__all__ = ["PREFIX", "TOOLS", "memory_at"]

PREFIX = "semmem://memory/"

OFFSET = integer("How many of the first hits to skip.", minimum=0)
EXCLUDE = array({"type": "string"}, "Ids to leave out.")
SORT_BY: Schema = {"type": "string", "enum": list(ORDERS)}
LEAST: Schema = {
    "anyOf": [{"type": "number", "minimum": 0, "maximum": 1}, {"type": "string", "enum": ["auto"]}],
    "description": "No hits below this confidence (0 to 1); 0: every hit.",
}
NOTHING = string("Only where there are no hits: why, and how to see those that are withheld.")
BUDGET = integer("Most tokens of the hits; left_out names the rest.", minimum=1)
AS_OF = string("ISO 8601: what was valid then.")
NOW = string("ISO 8601: when the question is asked; default: now.")

_LONG = 2_000
"""Characters of a text; of a longer one a hit shows the best passage."""

_MOST = 1_000
_PAGE_BYTES = 2**20
_TITLE = 80


def recall(call: Call) -> dict[str, Any]:
    """Answer memory_recall."""
    answer = call.memory.recall(
        call.arguments["query"],
        namespace=call.namespaces,
        **call.present(*_OF_A_RECALL),
        **call.least,
    )
    return {
        "confidence": answer.confidence,
        **_empty(answer.scope_size, call.namespaces, not answer.total),
        **_nothing(answer.withheld, answer.confidence, answer.min_confidence),
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


def _empty(scope_size: int, asked: str | Sequence[str], nothing: bool) -> dict[str, str]:
    """Return a sentence for the agent where there is ``nothing`` that a recall could return, withheld or not."""
    if not nothing:
        return {}
    if scope_size:
        return {"nothing": "No stored memory matches this."}
    names = ", ".join(map(repr, [asked] if isinstance(asked, str) else asked))
    return {"nothing": f"No memory of namespace {names} matches: it is empty, or filters, exclude or as_of leave none."}


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
    block = call.memory.context(
        call.arguments["query"],
        namespace=call.namespaces,
        **call.present("token_budget", "limit", "filters", "exclude", "recipe", "as_of", "now"),
        **call.least,
    )
    values = block.as_dict()
    shown = [(one, True) for one in block.pinned] + [(hit.memory, False) for hit in block.hits]
    return {
        "confidence": values.pop("confidence"),
        **_nothing(block.withheld, block.confidence, block.min_confidence),
        "withheld": values.pop("withheld"),
        **{name: value for name, value in values.items() if name not in ("hits", "pinned", "min_confidence")},
        "shown": [
            {"id": one.id, "namespace": one.namespace, "pinned": pinned, "uri": uri_of(one)} for one, pinned in shown
        ],
    }


def get(call: Call) -> dict[str, Any]:
    """Answer memory_get."""
    found, more = call.found(call.arguments["id"]), {**call.present("as_of"), **call.revealing}
    return {"memory": as_values(call.memory.get(found.id, namespace=found.namespace, **more) if more else found)}


def history(call: Call) -> dict[str, Any]:
    """Answer memory_history."""
    how = {**call.present("limit", "offset"), **call.revealing}
    versions = call.reached(
        call.arguments["id"], lambda id, namespace: call.memory.history(id, namespace=namespace, **how)
    )
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
    found = call.found(call.arguments["id"])
    among = [found.namespace] if call.arguments.get("namespace") is not None else [*call.scope.namespaces]
    answer = call.memory.recall(call.arguments["query"], namespace=among, **call.present(*_OF_A_RECALL), **call.least)
    why = answer.explain(found.id, found.namespace)
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
        found = call.found(address)
        return call.memory.get(found.id, namespace=found.namespace, **call.revealing) if call.revealing else found
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

_OF_A_RECALL: dict[str, Schema] = {
    "limit": LIMIT,
    "offset": OFFSET,
    "filters": FILTERS,
    "exclude": EXCLUDE,
    "sort_by": SORT_BY,
    "recipe": RECIPE,
    "token_budget": BUDGET,
    "as_of": AS_OF,
    "now": NOW,
}
"""What a recall takes besides the least confidence, and so the explanation of one."""


def _as_text(values: dict[str, Any]) -> str:
    """Return a context as plain text, for in JSON each quotation mark of the block would be escaped once more."""
    lines = [f"confidence {values['confidence']}", values.get("nothing", ""), values["text"].rstrip("\n")]
    lines += [f"left out: {', '.join(values['left_out'])}"] if values.get("left_out") else []
    return "\n".join(line for line in lines if line)


_RARELY = ("offset", "exclude", "sort_by", "recipe", "now")

TOOLS = (
    Tool(
        "memory_recall", "Recall memories",
        "Find what is remembered about a question: decisions, preferences, names, how things are done here. Call it "
        "before you answer or begin a task that may have a history; one question a call. Best hit first; `nothing` "
        "says that none answers.",
        recall,
        {"query": QUERY, "namespace": NAMESPACES, **_OF_A_RECALL, "min_confidence": LEAST, "verbose": VERBOSE},
        ("query",), (*_RARELY, "token_budget"),
    ),
    Tool(
        "memory_context", "Compose a context",
        "Return the pinned memories and those that answer a question as one block of text within a token budget.",
        context,
        {
            "query": QUERY,
            "namespace": NAMESPACES,
            "token_budget": integer("Most tokens of the block; default 2000.", minimum=1),
            "limit": {**LIMIT, "description": "Most hits; default 20."},
            "filters": FILTERS,
            "exclude": array({"type": "string"}, "Ids to leave out, pinned or not."),
            "recipe": RECIPE,
            "min_confidence": LEAST,
            "as_of": AS_OF,
            "now": NOW,
        },
        ("query",), _RARELY, text=_as_text,
    ),
    Tool(
        "memory_get", "Get one memory",
        "Return one memory whole, where a hit is `cut`.",
        get,
        {"id": ID, "namespace": NAMESPACE, "as_of": AS_OF, "verbose": VERBOSE},
        ("id",), ("as_of",),
    ),
    Tool(
        "memory_history", "Show a memory's versions",
        "Return the versions of one memory, oldest first: what was changed, when and by whom.",
        history,
        {
            "id": ID,
            "namespace": NAMESPACE,
            "limit": integer("Most versions; default all.", minimum=1, maximum=10_000),
            "offset": integer("How many of the oldest to skip.", minimum=0),
        },
        ("id",),
    ),
    Tool(
        "memory_list", "List memories",
        "Return a page of memories without a question, newest first; cursor gives the next one.",
        list_,
        {
            "namespace": NAMESPACE,
            "filters": FILTERS,
            "limit": integer("Most memories; default 100.", minimum=1, maximum=_MOST),
            "cursor": string("The cursor of the page before."),
            "sort_by": {"type": "string", "enum": list(LIST_ORDERS), "description": "The order, downwards."},
        },
    ),
    Tool(
        "memory_explain", "Explain a memory's rank",
        "Say why a memory is among the hits of a question, or why not, and what would let it in.",
        explain,
        {"id": ID, "query": QUERY, "namespace": NAMESPACE, **_OF_A_RECALL, "min_confidence": LEAST},
        ("id", "query"), (*_RARELY, "token_budget"),
    ),
    Tool(
        "search", "Search memories",
        "Find memories for a question; fetch then returns one of them whole.",
        search,
        {"query": QUERY},
        ("query",),
        result={"results": array(structure(_CONNECTED, ("id", "title", "url"))), "nothing": NOTHING},
        sometimes=("nothing",),
        bare=True,
    ),
    Tool(
        "fetch", "Fetch one memory",
        "Return a memory that search found, whole.",
        fetch,
        {"id": string("The id of a result of search.")},
        ("id",),
        result={**_CONNECTED, "metadata": {"type": "object"}},
        bare=True,
    ),
)  # fmt: skip
"""The rows of this module."""
