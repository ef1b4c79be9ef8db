"""The OpenAPI description of every route, made from the table of routes, their signatures and the facade's types."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any

from semmem.client.routes import Route
from semmem.interfaces.http.answers import LINES
from semmem.interfaces.http.arguments import arguments_of, several, spread
from semmem.interfaces.http.problems import MEDIA_TYPE
from semmem.model.arguments import ARGUMENTS, FILTERS, MEMORY, NAMED_RECIPE, RECIPE_SETTINGS
from semmem.model.history import Link
from semmem.model.recall_log import LoggedHit, Replayed
from semmem.model.recipe import Recipe
from semmem.model.recipe_settings import STORED_WEIGHT, Each, Section, Values, values_of
from semmem.model.reports import Finding, LeftOut, Limits, Namespace, NamespaceHash, Stats
from semmem.model.types import SORT_BY, Concept, IngestReport, Memory
from semmem.write.sync import ImportReport

__all__ = ["ANSWERS", "PROBLEMS", "components", "described"]

_OBJECT: dict[str, Any] = {"type": "object"}
_ANY_SETTING: dict[str, Any] = {"type": "object", "additionalProperties": True}
_NUMBERS: dict[str, Any] = {"type": "object", "additionalProperties": {"type": "number"}}
_TEXTS: dict[str, Any] = {"type": "object", "additionalProperties": {"type": "string"}}
_TEXT = {"type": "string"}
_COUNT = {"type": "integer", "minimum": 0}
_STEPS = {"type": "array", "items": {"type": "object"}}


def _ref(name: str) -> dict[str, Any]:
    return {"$ref": f"#/components/schemas/{name}"}


def _members(**members: Any) -> dict[str, Any]:
    return {"type": "object", "properties": members, "required": list(members)}


def _or_null(schema: Mapping[str, Any]) -> dict[str, Any]:
    return {"anyOf": [dict(schema), {"type": "null"}]}


_MADE: dict[str, Any] = {
    "Problem": _members(type=_TEXT, title=_TEXT, status={"type": "integer"}, detail=_TEXT, **{"class": _TEXT}),
    "Hit": _members(
        id=_TEXT, namespace=_TEXT, title=_or_null(_TEXT), source=_or_null(_TEXT),
        source_type=_or_null(_TEXT), rank=_COUNT,
        score={"type": "number", "minimum": 0, "maximum": 1}, components=_NUMBERS, legs=_OBJECT, snippet=_TEXT,
        matches={"type": "array"}, duplicates={"type": "array", "items": _TEXT}, superseded_by=_or_null(_TEXT),
        duplicate_namespaces={"type": "array", "items": _TEXT}, part=_or_null(_COUNT),
        passage=_members(text=_TEXT, start=_COUNT, end=_COUNT), memory=_ref("Memory"),
    ),
    "Recall": _members(
        hits={"type": "array", "items": _ref("Hit")}, total=_COUNT, total_is_exact={"type": "boolean"}, limit=_COUNT,
        scope_size=_COUNT, offset=_COUNT, degraded=_TEXTS, regime=_TEXT,
        confidence={"type": "number", "minimum": 0, "maximum": 1},
        min_confidence={"type": "number"}, withheld=_COUNT, timings=_NUMBERS, recipe=_TEXT, settings=_ANY_SETTING,
        plan=_ANY_SETTING, id=_or_null(_TEXT), token_budget=_or_null(_COUNT),
        left_out={"type": "array", "items": _ref("LeftOut")},
    ),
    "Context": _members(
        text=_TEXT, tokens=_COUNT, token_budget=_COUNT, confidence={"type": "number", "minimum": 0, "maximum": 1},
        min_confidence={"type": "number"}, withheld=_COUNT, recall_id=_or_null(_TEXT),
        hits={"type": "array", "items": _ref("Hit")},
        pinned={"type": "array", "items": _ref("Memory")}, left_out={"type": "array", "items": _ref("LeftOut")},
        degraded=_TEXTS,
    ),
    "RelevanceJudgment": _members(
        question=_TEXT, namespace=_TEXT, memory_id=_TEXT, grade=_COUNT, recall_id=_TEXT, made_by=_or_null(_TEXT),
        at=_or_null({"type": "string", "format": "date-time"}),
    ),
    "LoggedRecall": _members(
        id=_TEXT, at=_or_null({"type": "string", "format": "date-time"}), verb=_TEXT, interface=_TEXT,
        agent=_or_null(_TEXT), question=_TEXT, namespaces={"type": "array", "items": _TEXT}, recipe=_or_null(_TEXT),
        hits={"type": "array", "items": _ref("LoggedHit")},
    ),
    "AuditEntry": _members(
        id=_TEXT, at=_or_null({"type": "string", "format": "date-time"}), namespace=_TEXT, who=_or_null(_TEXT),
        interface=_TEXT, agent=_or_null(_TEXT), verb=_TEXT, outcome=_TEXT, count=_or_null(_COUNT),
        ids={"type": "array", "items": _TEXT},
    ),
    "ReplayedRecall": _members(
        entry=_ref("LoggedRecall"), as_of=_or_null({"type": "string", "format": "date-time"}),
        is_same={"type": "boolean"}, recipe=_TEXT, confidence={"type": "number"}, min_confidence={"type": "number"},
        regime=_TEXT, settings=_ANY_SETTING, degraded=_TEXTS,
        memories={"type": "array", "items": _ref("Replayed")},
    ),
    "Explanation": _members(
        id=_TEXT, namespace=_TEXT, rank=_or_null(_COUNT), returned={"type": "boolean"}, score={"type": "number"},
        bar=_or_null({"type": "number"}), limit=_COUNT, regime=_TEXT, legs=_OBJECT, components=_NUMBERS,
        path={"type": "array", "items": _TEXT}, folded_into=_or_null(_TEXT), part=_or_null(_COUNT),
        withheld_below=_or_null({"type": "number"}), superseded_by=_or_null(_TEXT), over_budget=_or_null(_COUNT),
        not_valid=_or_null(_TEXT), periods={"type": "array", "items": _TEXT}, steps={"type": "array", "items": _OBJECT},
    ),
    "Result": _members(
        id=_TEXT, score={"type": "number", "minimum": 0, "maximum": 1}, title=_or_null(_TEXT), source=_or_null(_TEXT),
        snippet=_TEXT, type=_TEXT, components=_NUMBERS, namespace=_or_null(_TEXT),
    ),
    "Reach": _members(recipe=_TEXT, k=_COUNT, regimes=_OBJECT),
    "Change": _members(namespace=_TEXT, id=_or_null(_TEXT), kind=_TEXT, at=_TEXT),
    "Page": _members(memories={"type": "array", "items": _ref("Memory")}, cursor=_or_null(_TEXT)),
    "Version": _members(
        version=_COUNT, changed={"type": "array", "items": _TEXT}, changed_by=_or_null(_TEXT), changed_at=_TEXT,
        forgotten_at=_or_null(_TEXT), forgotten_by=_or_null(_TEXT), memory=_ref("Memory"),
    ),
    "Graph": _members(nodes={"type": "array", "items": _OBJECT}, edges={"type": "array", "items": _OBJECT}),
    "Probe": _members(
        recipe=_TEXT, k=_COUNT, probed={"type": "array", "items": _OBJECT}, left_out=_TEXTS, seconds={"type": "number"},
    ),
    "Settings": _members(
        namespace=_TEXT, settings=_ANY_SETTING, used=_ANY_SETTING, recipe=_ANY_SETTING, unused=_or_null(_TEXT),
    ),
}  # fmt: skip

_TYPES = {
    "Memory": Memory, "IngestReport": IngestReport, "ImportReport": ImportReport,
    "Stats": Stats, "Namespace": Namespace, "Finding": Finding,
    "Limits": Limits, "NamespaceHash": NamespaceHash, "Concept": Concept, "Link": Link, "LeftOut": LeftOut,
    "LoggedHit": LoggedHit, "Replayed": Replayed,
}  # fmt: skip

_USELESS = frozenset({("forget_one", "everything"), ("forget_one", "filters")})
"""Arguments that a verb has, and one of its routes has no use for."""

_ETAG = '(W/)?"[!#-~]*"'
_ETAGS = rf"^(\*|{_ETAG}(, ?{_ETAG})*)$"

_SOMETIMES = frozenset({("Namespace", "state"), ("Memory", "older")})
"""The fields that are left out of an answer where they have no value; every other field is in every answer."""

_ONE = {
    "Memory": ("remember", "get", "update", "restore_memory"), "IngestReport": ("remember_many", "remember_messages"),
    "Recall": ("recall", "recall_by_url", "reweigh"), "Context": ("context", "context_by_url"), "Link": ("link",),
    "Explanation": ("explain", "explain_by_url"), "Reach": ("recall_reach", "reach", "reach_of"), "Page": ("list",),
    "LoggedRecall": ("logged_recall",), "ReplayedRecall": ("replay_recall",), "ImportReport": ("import_items",),
    "Limits": ("namespace_limits", "set_namespace_limits"), "Stats": ("stats",), "Settings": ("settings",),
    "Probe": ("probe",), "Graph": ("graph",),
}  # fmt: skip
"""Schemas, and the routes that answer with one such value."""

_MANY = {
    "links": ("links", "Link"), "contradictions": ("links", "Link"), "near_duplicates": ("links", "Link"),
    "history": ("versions", "Version"), "forgotten": ("versions", "Version"),
    "judgments": ("judgments", "RelevanceJudgment"),
    "doctor": ("findings", "Finding"), "namespaces": ("namespaces", "Namespace"), "concepts": ("concepts", "Concept"),
}  # fmt: skip
"""Routes that answer with a list: its name, and the schema of what is in it."""

_FORGOTTEN = _members(forgotten=_COUNT, matched=_COUNT, dry_run={"type": "boolean"})
_PATH = _members(id=_TEXT, namespace=_TEXT, title=_or_null(_TEXT), snippet=_TEXT, steps=_STEPS)


_RECALLS = (
    "recall", "recall_by_url", "reweigh", "recall_paths", "recall_reach", "context", "context_by_url", "explain",
    "explain_by_url", "list",
)  # fmt: skip

_OF_ONE_ROUTE: Mapping[tuple[str, str], dict[str, Any]] = {
    **{(name, "limit"): {"maximum": 1_000} for name in _RECALLS},
    ("recall_reach", "offset"): {"maximum": 999},
    ("forget", "filters"): {"minProperties": 1},
    ("list", "sort_by"): {"enum": [one for one in SORT_BY if one != "relevance"]},
    ("remember_messages", "position"): {"minimum": 0},
    ("recalls", "limit"): {"maximum": 1_000},
    ("remember_messages", "session"): {"minLength": 1},
    ("feedback", "useful"): {"minItems": 1},
    ("feedback", "not_useful"): {"minItems": 1},
}
"""What the schema of an argument says more in one route."""

_COMBINED: Mapping[str, dict[str, Any]] = {
    "remember": {"not": {"required": ["expires_at", "ttl"]}},
    "reach_of": {"not": {"required": ["recipe", "namespace"]}},
    "feedback": {"anyOf": [{"required": ["useful"]}, {"required": ["not_useful"]}]},
    "forget": {
        "oneOf": [
            {"anyOf": [{"required": ["id"]}, {"required": ["filters"]}], "not": {"required": ["everything"]}},
            {
                "properties": {"everything": {"enum": [True]}},
                "required": ["everything"],
                "not": {"anyOf": [{"required": ["id"]}, {"required": ["filters"]}]},
            },
        ]
    },
    "probe": {"anyOf": [{"required": ["leg"]}, {"not": {"required": ["witness"]}}]},
}
"""Which arguments of a body can be given together, by route."""


def _list_of(schema: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": dict(schema)}


ANSWERS: Mapping[str, dict[str, Any]] = {
    **{route: _ref(name) for name, routes in _ONE.items() for route in routes},
    **{route: _members(**{member: _list_of(_ref(name))}) for route, (member, name) in _MANY.items()},
    **dict.fromkeys(("forget_one", "forget"), _FORGOTTEN),
    **dict.fromkeys(("rename_namespace", "copy_namespace", "drop_namespace"), _members(memories=_COUNT)),
    **dict.fromkeys(("configure", "unset_settings", "recipe"), _ANY_SETTING),
    "unlink": _members(unlinked={"type": "boolean"}),
    "feedback": _members(judged=_COUNT),
    "recalls": _members(recalls=_list_of(_ref("LoggedRecall")), cursor=_or_null(_TEXT)),
    "audit": _members(entries=_list_of(_ref("AuditEntry")), cursor=_or_null(_TEXT)),
    "recall_paths": _members(paths=_list_of(_PATH)),
    "search": _members(results=_list_of(_ref("Result")), total=_COUNT),
    "export": _OBJECT,
    "changes": _members(changes=_list_of(_ref("Change")), cursor=_TEXT),
    "hashes": {"type": "object", "additionalProperties": _ref("NamespaceHash")},
    "graph_hash": _members(graph_hash=_TEXT),
    "maintain": {"type": "object", "additionalProperties": _COUNT},
}
"""What each route answers; one of status 204 answers nothing."""


def components() -> dict[str, Any]:
    """Return the schemas that the answers refer to, by name."""
    from pydantic import TypeAdapter

    schemas: dict[str, Any] = dict(_MADE)
    for name, kind in _TYPES.items():
        schema = TypeAdapter(kind).json_schema(mode="serialization", ref_template="#/components/schemas/{model}")
        schemas |= schema.pop("$defs", {})
        schema["required"] = [field for field in schema.get("properties", {}) if (name, field) not in _SOMETIMES]
        schemas[name] = schema
    return schemas


def described(routes: Sequence[Route]) -> dict[str, Any]:
    """Return what OpenAPI says of one method of one path, which ``routes`` share, as they do the right."""
    first = routes[0]
    operation: dict[str, Any] = {
        "summary": first.name.replace("_", " ").capitalize(),
        "description": "\n\n".join(_about(route) for route in routes),
        "security": [{"key": [first.right]}],
        "parameters": _parameters(routes),
        "responses": _responses(routes),
    }
    bodies = {_media(route): {"schema": _body(route)} for route in routes if route.form != "query"}
    if bodies:
        needed = any(not {"required", "oneOf", "minProperties"}.isdisjoint(one["schema"]) for one in bodies.values())
        operation["requestBody"] = {"content": bodies, "required": needed}
    return operation


def _about(route: Route) -> str:
    return (inspect.getdoc(route.calls) or "").replace("``", "`")


def _media(route: Route) -> str:
    return LINES if route.form == "lines" else "application/json"


def _schema(route: Route, name: str) -> dict[str, Any]:
    schema = dict(ARGUMENTS[name][0])
    if several(route, name):
        return {"anyOf": [schema, {"type": "array", "items": schema, "minItems": 1}]}
    return schema | _OF_ONE_ROUTE.get((route.name, name), {})


def _needed(route: Route) -> list[str]:
    """Return the arguments without a default that do not stand in the path."""
    loose = (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)
    parameters = arguments_of(route).values()
    return [p.name for p in parameters if p.default is p.empty and p.kind not in loose and not _in_path(route, p.name)]


def _in_path(route: Route, name: str) -> bool:
    return f"{{{name}}}" in route.path


def _parameters(routes: Sequence[Route]) -> list[dict[str, Any]]:
    parameters: dict[str, dict[str, Any]] = {}
    for route in routes:
        for name in arguments_of(route):
            if (route.name, name) in _USELESS:
                continue
            if _in_path(route, name):
                parameter = {"name": name, "in": "path", "required": True, "schema": ARGUMENTS["id"][0]}
                parameters[name] = parameter | {"description": ARGUMENTS[name][1]}
            elif route.form != "json" and name not in ("filters", spread(route)):
                parameters[name] = _in_query(name, _schema(route, name), ARGUMENTS[name][1], name in _needed(route))
            elif route.form != "json" and name == "filters":
                each = {n: _in_query(n, schema, about, False) for n, (schema, about) in FILTERS.items()}
                parameters |= {n: one for n, one in each.items() if n not in arguments_of(route)}
            elif name == "namespace" and spread(route) is not None:
                parameters[name] = _in_query(
                    name, ARGUMENTS[name][0], "The namespace; the body has the changes.", False
                )
    if any(route.name == "update" for route in routes):
        about = 'Change it only with this ETag, or at this version, as "3".'
        parameters["If-Match"] = _header("If-Match", about, pattern=_ETAGS)
    if any(route.name == "get" for route in routes):
        parameters["If-None-Match"] = _header("If-None-Match", "Answer 304 where this is still its ETag.")
    if any(route.right != "read" for route in routes):
        parameters["Idempotency-Key"] = _header(
            "Idempotency-Key",
            "Sent again with the same key, also to another server over the same store, it is done once and gets the "
            "same answer. Of a stream, no memory is stored twice, and an item that repeats what is stored already is "
            "counted each time.",
            minLength=1,
            maxLength=255,
        )
    return list(parameters.values())


def _in_query(name: str, schema: Mapping[str, Any], about: str, needed: bool) -> dict[str, Any]:
    parameter = {"name": name, "in": "query", "required": needed, "description": about}
    first = schema["anyOf"][0] if "anyOf" in schema else schema
    if first.get("type") == "object":
        return parameter | {"content": {"application/json": {"schema": first}}}
    if "anyOf" in schema:
        return parameter | {"schema": first}
    return parameter | {"schema": schema}


def _header(name: str, about: str, **more: Any) -> dict[str, Any]:
    schema = {"type": "string", **more}
    return {"name": name, "in": "header", "required": False, "description": about, "schema": schema}


def _stored(name: str, values: Values) -> dict[str, Any]:
    """Return the schema of a search setting as a namespace takes it: a table changes one at least."""
    schema = RECIPE_SETTINGS[name]
    if isinstance(values, Each) and values.merge:
        return schema | {"minProperties": 1, "propertyNames": {"pattern": "^[A-Za-z_][A-Za-z0-9_]*$"}}
    if isinstance(values, Section):
        tables = [one | {"minProperties": 1} if "properties" in one else one for one in schema.get("anyOf", [schema])]
        return {"anyOf": tables}
    return schema


def _body(route: Route) -> dict[str, Any]:
    if route.form == "lines":
        return {"type": "string", "description": "One JSON object with the arguments of remember a line."}
    if route.name == "update":
        fields_or_null = {n: _or_null(s) for n, (s, _) in MEMORY.items()}
        body = {"type": "object", "properties": fields_or_null, "additionalProperties": False, "minProperties": 1}
        return body | _COMBINED["remember"]
    if route.name == "configure":
        settings = {name: _stored(name, values) for name, values in values_of(Recipe).items()}
        settings["weights"]["additionalProperties"] = STORED_WEIGHT.schema
        settings["recipe"] = NAMED_RECIPE
        return {"type": "object", "properties": settings, "additionalProperties": False, "minProperties": 1}
    names = [n for n in arguments_of(route) if not _in_path(route, n)]
    properties = {n: {**_schema(route, n), "description": ARGUMENTS[n][1]} for n in names}
    body = {"type": "object", "properties": properties, "additionalProperties": False}
    needed = {"required": names} if (names := _needed(route)) else {}
    return body | needed | _COMBINED.get(route.name, {})


_PROBLEM = {"content": {MEDIA_TYPE: {"schema": _ref("Problem")}}}
PROBLEMS: dict[int | str, dict[str, Any]] = {
    "4XX": {"description": "Refused: `class` says what kind of error it is.", **_PROBLEM},
    "5XX": {"description": "The store or a leg cannot do it now.", **_PROBLEM},
}
"""The answers that every operation may give: that the request cannot be done, with the reason."""


def _responses(routes: Sequence[Route]) -> dict[int | str, Any]:
    responses: dict[int | str, Any] = {}
    for route in routes:
        if route.status == 204:
            responses["204"] = {"description": "Done."}
            continue
        media = {LINES if route.lines else "application/json": {"schema": ANSWERS[route.name]}}
        if route.form == "lines":
            media[LINES] = {"schema": _OBJECT}
        responses[str(route.status)] = {"description": "Done.", "content": media}
    if any(route.name == "get" for route in routes):
        responses["304"] = {"description": "It is still at that version."}
    return responses | PROBLEMS
