"""The description of the API as a page at ``/docs``.

It is made here, from the OpenAPI document, of HTML and a style of its own: a browser loads nothing else for it, also
where there is no network, and runs no script.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from html import escape
from typing import Any

from starlette.responses import HTMLResponse, Response

__all__ = ["LINKS", "docs_page"]

LINKS = {"docs": "/docs", "openapi": "/openapi.json", "healthz": "/healthz", "readyz": "/readyz", "metrics": "/metrics"}
"""Where a program finds the rest, in the answer of ``/``."""

_HEADERS = {"content-security-policy": "default-src 'none'; style-src 'unsafe-inline'", "vary": "Accept"}
_STYLE = """body{font:16px/1.5 sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color-scheme:light dark}
code,pre{font-family:monospace}pre{white-space:pre-wrap}summary{cursor:pointer}details{margin:.5rem 0}
table{border-collapse:collapse;width:100%}td,th{border:1px solid #8888;padding:.2rem .5rem;text-align:left;
vertical-align:top}"""


def docs_page(description: Mapping[str, Any]) -> Response:
    """Return an OpenAPI description as a page: each path with its methods, arguments and answers."""
    info = description["info"]
    schemas = description["components"]["schemas"]
    paths = "".join(
        _operation(method.upper(), path, operation)
        for path, methods in description["paths"].items()
        for method, operation in methods.items()
    )
    answers = "".join(
        f'<details id="{escape(name)}"><summary>{escape(name)}</summary>{_fields(schema)}</details>'
        for name, schema in sorted(schemas.items())
    )
    intro = (
        f'<p>{escape(info["description"])} For programs: <a href="/openapi.json">/openapi.json</a>.</p>'
        f"<h2>Paths</h2>{paths}<h2>Answers</h2>{answers}"
    )
    return _page(f"semmem {info['version']}", intro)


def _page(title: str, body: str) -> Response:
    head = f'<meta charset="utf-8"><title>{escape(title)}</title><style>{_STYLE}</style>'
    text = f'<!doctype html><html lang="en"><head>{head}</head><body><h1>{escape(title)}</h1>{body}</body></html>'
    return HTMLResponse(text, headers=_HEADERS)


def _operation(method: str, path: str, operation: Mapping[str, Any]) -> str:
    """Return one method of one path, folded up."""
    rights = [right for one in operation.get("security", ()) for names in one.values() for right in names]
    needs = f"Needs a key with the right {rights[0]}." if rights else "Needs no key."
    about = escape(operation.get("description") or operation.get("summary", ""))
    bodies = operation.get("requestBody", {}).get("content", {})
    parts = [f"<p>{escape(needs)}</p><pre>{about}</pre>"]
    if rows := [_row(p["name"], p["in"], p.get("schema", {}), p.get("description", "")) for p in _given(operation)]:
        parts.append(_table(rows))
    for media, body in bodies.items():
        parts.append(f"<h4>Body, {escape(media)}</h4>{_fields(body['schema'])}")
    parts += [f"<p>{escape(status)}: {_answer(answer)}</p>" for status, answer in operation["responses"].items()]
    return (
        f"<details><summary><code>{method} {escape(path)}</code> {escape(operation.get('summary', ''))}</summary>"
        f"{''.join(parts)}</details>"
    )


def _given(operation: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield the parameters of an operation, those it needs first."""
    yield from sorted(operation.get("parameters", ()), key=lambda parameter: not parameter.get("required"))


def _answer(answer: Mapping[str, Any]) -> str:
    kinds = [
        f"{escape(media)}{f', {link}' if (link := _link(one.get('schema', {}))) else ''}"
        for media, one in answer.get("content", {}).items()
    ]
    return f"{escape(answer.get('description', ''))} {'; '.join(kinds)}"


def _link(schema: Mapping[str, Any]) -> str:
    name = escape(str(schema.get("$ref", "")).rpartition("/")[2])
    return f'<a href="#{name}">{name}</a>' if name else ""


def _fields(schema: Mapping[str, Any]) -> str:
    """Return the fields of an object as a table, or what else a schema says of a value."""
    fields = schema.get("properties")
    if not fields:
        return f"<p>{escape(schema.get('description', ''))} {_values(schema)}</p>"
    needed = schema.get("required", ())
    rows = [
        _row(name, "required" if name in needed else "", one, one.get("description", ""))
        for name, one in fields.items()
    ]
    return _table(rows)


def _table(rows: list[str]) -> str:
    return f"<table><tr><th>name</th><th></th><th>values</th><th>meaning</th></tr>{''.join(rows)}</table>"


def _row(name: str, place: str, schema: Mapping[str, Any], about: str) -> str:
    return (
        f"<tr><td><code>{escape(name)}</code></td><td>{escape(place)}</td><td>{_values(schema)}</td>"
        f"<td>{escape(about)}</td></tr>"
    )


def _values(schema: Mapping[str, Any]) -> str:
    """Return the values that a schema allows."""
    if link := _link(schema):
        return link
    if several := schema.get("anyOf") or schema.get("oneOf"):
        return " or ".join(_values(one) for one in several)
    if "enum" in schema:
        return ", ".join(f"<code>{escape(json.dumps(one))}</code>" for one in schema["enum"])
    kind = escape(str(schema.get("type", "any")))
    if schema.get("type") == "array":
        return f"array of {_values(schema.get('items', {}))}"
    low, high = schema.get("minimum"), schema.get("maximum")
    return kind + (f" from {low}" if low is not None else "") + (f" to {high}" if high is not None else "")
