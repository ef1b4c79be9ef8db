"""The arguments of a request: from the path, the query and the body, as the facade's methods take them.

Which arguments a route has is read from the signature of what it calls; ``ARGUMENTS`` says of each name, once for all
routes, what it is. Values are passed on as they were sent: the facade checks them, with the same sentences as ever.
"""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Mapping
from functools import lru_cache
from reprlib import repr as shown
from typing import Any
from urllib.parse import unquote

from starlette.requests import ClientDisconnect, Request

from semmem.client.routes import Route
from semmem.client.values import plan_of
from semmem.doors.http.keys import Right
from semmem.doors.http.limits import Limits, Patience, TooLarge
from semmem.doors.json_body import parsed
from semmem.model import memory_fields
from semmem.model.errors import InvalidInput, LimitExceeded
from semmem.model.memory_fields import FIELDS
from semmem.model.process.asker import INTERFACES
from semmem.model.recipe import RECIPES, Recipe
from semmem.model.recipe_settings import values_of
from semmem.model.types import LINK_TYPES, SORT_BY

__all__ = [
    "ARGUMENTS",
    "FILTERS",
    "MEMORY",
    "NAMED_RECIPE",
    "RECIPE_SETTINGS",
    "arguments_of",
    "check_names",
    "read_arguments",
    "read_body",
    "right_of",
    "spread",
]

_SHOWN = "^[^\\u0000]*[^\\s\\u0000-\\u001f\\u007f-\\u00a0][^\\u0000]*$"
_TEXT = {"type": "string", "pattern": "^[^\\u0000]*$"}
_NAME = {**_TEXT, "minLength": 1}
_TEXTS = {"type": "array", "items": _TEXT}
NAMED_RECIPE = {"type": "string", "enum": list(RECIPES)}
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
    "exclude": (_TEXTS, "Ids to leave out."),
    "expected_version": ({"type": "integer"}, "The version that you have read."),
    "extract": (_TRUTH, "Extract the concepts again."),
    "filters": (
        _FILTERED,
        "Conditions that narrow the call.",
    ),
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
    "now": (_TIME, "When the question is asked, for a recipe with a period_floor; default: the server's clock."),
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

_NEVER_SENT = frozenset({"progress", "items"})
"""What has a place of its own: a function cannot be sent, and items are the body."""
_REPEATED = {"name": "names"} | {name[:-1]: name for name, row in memory_fields.FILTERS.items() if row.several}
"""Arguments with several values, by the name that a URL may give one of them."""


@lru_cache(maxsize=64)
def arguments_of(route: Route) -> Mapping[str, inspect.Parameter]:
    """Return the arguments of a route by name, without the Semmem and what cannot be sent."""
    parameters = list(inspect.signature(route.calls).parameters.values())[1:]
    return {p.name: p for p in parameters if p.name not in _NEVER_SENT}


def spread(route: Route) -> str | None:
    """Return the name of the argument that takes any keyword, as ``changes`` of update does; None without one."""
    return next((p.name for p in arguments_of(route).values() if p.kind is p.VAR_KEYWORD), None)


def several(route: Route, name: str) -> bool:
    """Return whether an argument that is one string elsewhere may be a list here."""
    return name == "namespace" and "Sequence" in str(arguments_of(route)[name].annotation)


async def read_arguments(route: Route, request: Request, limits: Limits, base: Recipe) -> dict[str, Any]:
    """Return the arguments of a request by name. Raises InvalidInput for one that the route does not have."""
    arguments: dict[str, Any] = {name: unquote(value) for name, value in request.path_params.items()}
    query_and_body = _from_query(route, request)
    if route.form == "json":
        if wrong := [name for name in query_and_body if name != "namespace"]:
            raise InvalidInput(f"{wrong[0]!r} belongs in the JSON body of {route.name}, not in its URL.")
        body = await read_body(request, limits)
        content = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if body and content != "application/json" and not content.endswith("+json"):
            raise UnsupportedType("Send the arguments as JSON, with the header Content-Type: application/json.")
        members = parsed(body) if body else {}
        if not isinstance(members, dict):
            raise InvalidInput(f"The body of {route.name} must be a JSON object of its arguments.")
        if "namespace" in query_and_body and "namespace" in members:
            raise InvalidInput("namespace is in the URL and in the body; give it once.")
        query_and_body |= {name: _whole(name, value) for name, value in members.items()}
    if twice := next((name for name in query_and_body if name in arguments), None):
        raise InvalidInput(f"{twice!r} is in the path of the URL; leave it out of the arguments.")
    check_names(route, query_and_body)
    arguments |= query_and_body
    if "recipe" in arguments and "recipe" in arguments_of(route):
        arguments["recipe"] = plan_of(_integral(arguments["recipe"]), base)
    return arguments


def _whole(name: str, value: Any) -> Any:
    """Return a number such as 10.0 as JSON Schema reads it where a whole one is wanted: as 10."""
    wants_whole = name in RECIPE_SETTINGS or ARGUMENTS.get(name, ({}, ""))[0].get("type") == "integer"
    return _integral(value) if wants_whole else value


def _integral(value: Any) -> Any:
    """Return a value in which numbers such as 10.0 are 10, in lists and objects too."""
    if isinstance(value, dict):
        return {name: _integral(one) for name, one in value.items()}
    if isinstance(value, list):
        return [_integral(one) for one in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


class UnsupportedType(InvalidInput):
    """The body is of a type that the route does not take."""

    http_status = 415


_SWITCHES_OF_THE_FACADE = frozenset({"dry_run", "everything", "hard"})
"""Switches that the facade refuses itself, with what was not done."""


def right_of(route: Route, arguments: Mapping[str, Any]) -> Right:
    """Return what a key must allow: the texts of sensitive memories are not for one that may only read.

    To forget everything is to drop the namespace, with its settings.
    """
    if route.name == "forget" and arguments.get("everything"):
        return "admin"
    secret = arguments.get("reveal") or (route.name == "export" and arguments.get("sensitive"))
    return "write" if secret else route.right


def check_names(route: Route, arguments: Mapping[str, Any], *, whole: bool = True) -> None:
    """Raise InvalidInput for an argument that the route does not take, or one that it needs and has not got.

    ``whole=False`` is for arguments that are not all: none is missed.
    """
    parameters = arguments_of(route)
    for name, value in arguments.items():
        switch = name in parameters and ARGUMENTS.get(name, ({}, ""))[0] == _TRUTH
        facade_refuses = name in _SWITCHES_OF_THE_FACADE and not route.lines
        if switch and not facade_refuses and not isinstance(value, bool):
            raise InvalidInput(f"{name} must be true or false, not {shown(value)}.")
    if spread(route) is not None:  # the facade says which changes there are, but for names that are not changes
        if "expected_version" in arguments:
            raise InvalidInput('give expected_version as the header If-Match: "VERSION".')
        return
    if wrong := [name for name in arguments if name not in parameters]:
        raise InvalidInput(
            f"{_verb(route)} has no argument {shown(wrong[0])}; it takes {', '.join(parameters) or 'none'}."
        )
    if not whole:
        return
    needed = [
        n for n, p in parameters.items() if p.default is p.empty and p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)
    ]
    in_path = [name for name in needed if f"{{{name}}}" in route.path]
    if missing := next((name for name in needed if name not in arguments and name not in in_path), None):
        raise InvalidInput(f"{_verb(route)} needs the argument {missing!r}.")


def _verb(route: Route) -> str:
    """Return the name of the verb as the caller knows it, also of a route that takes its arguments in the URL."""
    return route.name.removesuffix("_by_url")


def _from_query(route: Route, request: Request) -> dict[str, Any]:
    """Return the arguments that stand in the query of the URL, filters among them, each by its own name."""
    parameters = arguments_of(route)
    arguments: dict[str, Any] = {}
    filters: dict[str, Any] = {}
    for written in dict.fromkeys(request.query_params.keys()):
        values = request.query_params.getlist(written)
        name = written
        if name not in parameters and name not in FILTERS and _REPEATED.get(name) in (*parameters, *FILTERS):
            name = _REPEATED[name]
        if name in parameters and parameters[name].kind is not inspect.Parameter.VAR_KEYWORD:
            arguments[name] = _value(name, values, ARGUMENTS[name][0], several=several(route, name))
        elif "filters" in parameters and name in FILTERS:
            filters[name] = _value(name, values, FILTERS[name][0])
        else:
            names = [n for n in parameters if n not in ("filters", spread(route))]
            names += [n for n in FILTERS if n not in parameters] if "filters" in parameters else []
            raise InvalidInput(f"{_verb(route)} has no argument {written!r}; it takes {', '.join(names)}.")
    if filters:
        arguments["filters"] = {**arguments.get("filters", {}), **filters}
    return arguments


def _value(name: str, values: list[str], schema: Mapping[str, Any], *, several: bool = False) -> Any:
    """Return what an argument in a URL means; a text that is no number is left for the facade to refuse."""
    kind = schema.get("type") or next((one["type"] for one in schema["anyOf"] if one["type"] == "number"), None)
    if kind == "array" or (several and len(values) > 1):
        item_type = schema.get("items", {}).get("type")
        return [_number(value, item_type) for value in values] if item_type == "number" else values
    if len(values) > 1:
        raise InvalidInput(f"{name} is given {len(values)} times; give it once.")
    if kind in ("integer", "number"):
        return _number(values[0], kind)
    if kind == "boolean":
        return {"true": True, "false": False}.get(values[0].lower(), values[0])
    if kind == "object" or (kind is None and values[0].lstrip().startswith(("{", "["))):
        return parsed(values[0].encode("utf-8", "surrogatepass"))
    return values[0]


def _number(text: str, kind: str) -> Any:
    try:
        return int(text) if kind == "integer" else float(text)
    except ValueError:
        return text


async def read_body(request: Request, limits: Limits) -> bytes:
    """Return the body of a request. Raises TooLarge, and LimitExceeded for one that does not come in time."""
    pieces: list[bytes] = []
    size = 0
    async for piece in read_pieces(request, Patience(limits)):
        pieces.append(piece)
        size += len(piece)
        if size > limits.body_bytes:
            raise TooLarge(f"The body has more than {limits.body_bytes:,} bytes; send less at a time.")
    return b"".join(pieces)


async def read_pieces(request: Request, patience: Patience) -> AsyncIterator[bytes]:
    """Yield the body of a request as it comes. Raises LimitExceeded where ``patience`` ends before."""
    stream = aiter(request.stream())
    while True:
        try:
            piece = await patience.wait_for(anext(stream))
        except StopAsyncIteration:
            return
        except ClientDisconnect:
            raise LimitExceeded("The client disconnected before the whole body had arrived.") from None
        if piece:
            yield piece
