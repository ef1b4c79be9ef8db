"""The arguments of a request: from the path, the query and the body, as the facade's methods take them.

Which arguments a route has is read from the signature of what it calls, and what each of them is from the table
``semmem.model.arguments``. Values are passed on as they were sent: the facade checks them, with the same sentences.
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
from semmem.interfaces.http.keys import Right
from semmem.interfaces.http.limits import Limits, Patience, TooLarge
from semmem.interfaces.json_body import parsed
from semmem.model.arguments import ARGUMENTS, FILTERS, RECIPE_SETTINGS
from semmem.model.errors import InvalidInput, LimitExceeded
from semmem.model.filters import checked_filters
from semmem.model.memory_fields import FILTERS as FILTER_ROWS
from semmem.model.recipe import Recipe

__all__ = ["arguments_of", "check_names", "read_arguments", "read_body", "read_pieces", "right_of", "several", "spread"]

_NEVER_SENT = frozenset({"progress", "items"})
"""What has a place of its own: a function cannot be sent, and items are the body."""
_REPEATED = {"name": "names"} | {name[:-1]: name for name, row in FILTER_ROWS.items() if row.several}
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

    ``whole=False`` is for arguments that are not all: none is missed. Of a switch that is null the facade says whether
    that is the same as none.
    """
    parameters = arguments_of(route)
    for name, value in arguments.items():
        switch = name in parameters and ARGUMENTS.get(name, ({}, ""))[0].get("type") == "boolean"
        facade_refuses = name in _SWITCHES_OF_THE_FACADE and not route.lines
        if switch and not facade_refuses and not isinstance(value, bool | None):
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
        if name in arguments or name in filters:
            raise _given_twice(name)
        if name in parameters and parameters[name].kind is not inspect.Parameter.VAR_KEYWORD:
            arguments[name] = _value(name, values, ARGUMENTS[name][0], several=several(route, name))
        elif "filters" in parameters and name in FILTERS:
            filters[name] = _value(name, values, FILTERS[name][0])
        else:
            names = [n for n in parameters if n not in ("filters", spread(route))]
            names += [n for n in FILTERS if n not in parameters] if "filters" in parameters else []
            raise InvalidInput(f"{_verb(route)} has no argument {written!r}; it takes {', '.join(names)}.")
    if filters:
        arguments["filters"] = {**_as_object(arguments.get("filters"), filters), **filters}
    return arguments


def _as_object(value: Any, apart: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the filters of a URL that stand there as one object, beside those that stand ``apart``."""
    if not isinstance(value, Mapping):
        checked_filters(value)  # which refuses what is no object; null is no filters
        return {}
    if twice := next((name for name in value if name in apart), None):
        raise _given_twice(twice)
    return value


def _given_twice(name: str) -> InvalidInput:
    return InvalidInput(f"{name} is given twice; give it once.")


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
