"""Requests of a client: a route and the arguments that were given, before anything is sent. Pure."""

from __future__ import annotations

import inspect
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any
from urllib.parse import quote

from semmem.client import values
from semmem.client.namespaces import NOT_DROPPED
from semmem.client.routes import TOGETHER, Route
from semmem.model.arguments import ARGUMENTS
from semmem.model.errors import InvalidInput, NotFound
from semmem.model.filters import (
    at_time,
    filters_of,
    one_of,
    page_limit,
    page_offset,
    string,
    true_or_false,
    whole_from,
)
from semmem.model.types import LIST_ORDERS
from semmem.write.items import check_namespace
from semmem.write.versions import check_expected

__all__ = ["NAMESPACE_IN_URL", "Request", "lines", "quoted", "request_of"]


_BESIDE = ("links", "text_at", "untimed", "embedder", "vectors")
"""Attributes of an item that are no argument of ``remember``; see imported_items.exported_item."""
NAMESPACE_IN_URL = ("update", "configure")
"""Routes with a body, which is the changes alone, so that the namespace stands in the URL as in routes without one."""


@dataclass(frozen=True, slots=True)
class Request:
    """One request, before anything is sent: ``content`` is JSON, or a stream of lines."""

    method: str
    path: str
    query: Sequence[tuple[str, str]] = ()
    headers: Mapping[str, str] = field(default_factory=dict)
    content: bytes | Iterable[bytes] | None = None
    repeatable: bool = False
    """Whether it may be sent again when nothing is known of the first time."""


def request_of(route: Route, arguments: Mapping[str, Any]) -> Request:
    """Return the request of a route with the arguments that were given. Raises InvalidInput for what cannot be sent."""
    rest = dict(arguments)
    path = route.path
    for name in ("id", "name", "old", "recall_id"):
        if f"{{{name}}}" in path:
            if route.path.startswith("/v1/namespaces/{name}"):
                check_namespace(rest["name"])
            value = string(name, rest.pop(name))
            if not value and name == "old":
                raise InvalidInput("The name of a namespace must not be empty.")
            if not value and name == "recall_id":
                raise NotFound("There is no recall '' in the log: an id is not empty.")
            if not value:
                raise NotFound(f"There is no memory {value!r}: an id is not empty.")
            path = path.replace(f"{{{name}}}", quoted(value))
    headers: dict[str, str] = {}
    if (version := rest.pop("expected_version", None)) is not None:
        check_expected(version)
        headers["if-match"] = f'"{version}"'
    if once := route.name in TOGETHER:
        headers["idempotency-key"] = str(uuid.uuid4())
    if route.form == "query":
        for argument, given in rest.items():
            _check(route, argument, given)
        pairs = _query(rest, filters_apart=route.name != "export")
        return Request(route.method, path, pairs, headers, repeatable=once or route.method == "GET")
    query: list[tuple[str, str]] = []
    if "namespace" in rest and route.name in NAMESPACE_IN_URL:
        query = _query({"namespace": rest.pop("namespace")})
    body = b"{%s}" % b",".join(values.as_json(n, n) + b":" + values.as_json(n, one) for n, one in rest.items())
    headers["content-type"] = "application/json"
    repeatable = once or route.right == "read"
    return Request(route.method, path, query, headers, body, repeatable)


def _check(route: Route, name: str, value: Any) -> None:
    """Raise InvalidInput, as the verb does, for an argument that a URL would leave out or say otherwise.

    None and an empty list leave nothing in a URL, a list of one stands there as that one, and so does a text as the
    number or the truth that it spells. Of a namespace and of filters, others see to that.
    """
    schema = ARGUMENTS[name][0]
    kind, default = schema.get("type"), _defaults(route).get(name)
    if name == "namespace" or (value is None and default is None):
        return
    if kind == "boolean":
        true_or_false(name, value, NOT_DROPPED if route.name == "drop_namespace" else "")
    elif kind == "integer" and (isinstance(value, bool) or not isinstance(value, int)):
        _refuse_number(route, name, value)
    elif name == "sort_by":
        one_of(name, value, LIST_ORDERS)
    elif schema.get("format") == "date-time":
        at_time(name, value)
    elif kind == "string":
        string(name, value)


@cache
def _defaults(route: Route) -> Mapping[str, Any]:
    return {p.name: p.default for p in inspect.signature(route.calls).parameters.values()}


def _refuse_number(route: Route, name: str, value: Any) -> None:
    """Raise what the verb says of a value that is no whole number."""
    if route.name == "graph":
        whole_from(name, value, ARGUMENTS[name][0]["minimum"], ARGUMENTS[name][0]["maximum"])
    elif name == "limit":
        page_limit(route.name, value)
    else:
        page_offset(value)


def _query(arguments: Mapping[str, Any], *, filters_apart: bool = True) -> list[tuple[str, str]]:
    """Return arguments as they stand in a URL; filters each by its own name, or as one object of JSON.

    An export needs the object: its argument ``sensitive`` has the name of a filter and another meaning.
    """
    pairs: list[tuple[str, str]] = []
    for name, value in arguments.items():
        if name == "filters" and value is not None:
            chosen = filters_of(value)
            pairs += _query(chosen) if filters_apart else [(name, values.as_json(name, chosen).decode())]
        elif value is not None:
            plain = values.sent(name, value)
            for one in plain if isinstance(plain, list) else [plain]:
                text = one if isinstance(one, str) else values.as_json(name, one).decode()
                pairs.append((name, text))
    return pairs


def quoted(id: str) -> str:
    """Return an id as a segment of a path; one of dots alone would be taken for a way up."""
    return quote(id, safe="") if id.strip(".") else "%2E" * len(id)


def lines(arguments: Mapping[str, Any], items: Iterable[Any], *, rows: bool = True) -> Iterator[bytes]:
    """Yield the arguments, and each item, as a line of JSON; what is no JSON as a line that the server refuses.

    Of a row of an export its links, what it says of its times and its vectors go along, if the verb takes ``rows``.
    """
    yield values.as_json("arguments", {"arguments": dict(arguments)}) + b"\n"
    for item in items:
        try:
            beside = {name: one for name in _BESIDE if rows and (one := getattr(item, name, None))}
            yield values.as_json("An item", {**item, **beside} if beside else item) + b"\n"
        except InvalidInput as error:
            yield values.as_json("An item", f"{type(item).__name__}: {error.message}") + b"\n"
