"""Brief answers: what a model needs of an answer, without values that are as usual, since it pays for each token."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import MISSING, fields
from textwrap import shorten
from typing import TYPE_CHECKING, Any

from semmem.model.serialization import to_the_minute
from semmem.model.types import Memory

if TYPE_CHECKING:
    from semmem.interfaces.mcp.tools import Call

Short = Callable[[str, str], str]

__all__ = ["brief"]

_LEFT_OUT = frozenset(
    (
        "components", "rank", "snippet", "uri", "access_count", "last_accessed", "last_seen", "regime", "recipe",
        "total", "total_is_exact", "duplicate_namespaces", "shown", "tokens", "token_budget", "explanation",
    )
)  # fmt: skip
"""Values that only a verbose answer has."""

_USUAL: Mapping[str, Any] = {
    **{one.name: one.default for one in fields(Memory) if one.default not in (MISSING, None, ())},
    "source_type": "agent", "withheld": 0, "dry_run": False, "unlinked": False,
}  # fmt: skip
"""Values that an answer leaves out, because they are what a reader takes for granted."""

_ANSWERS = ("hits", "memories", "versions", "links")
"""Lists that are in an answer also where they are empty."""

_TIMES = ("_at", "_seen", "since", "valid_from", "valid_to", "created_after", "created_before")
_IDS = ("id", "from_id", "to_id", "superseded_by", "duplicates", "contradicts", "left_out")
_GIVEN = ("text", "metadata", "title")
"""Values that people gave, which are returned as they are."""


_WORDS_OF_OLDER = 64
"""Characters of an older memory that an answer names: enough to know it by."""


def brief(values: Mapping[str, Any], call: Call, keeps: Sequence[str] = ()) -> dict[str, Any]:
    """Return an answer without usual values, with short ids, times to the minute (UTC) and numbers of three digits.

    An answer that is one memory is that memory, with the fields ``keeps`` where they are named.
    """
    named = call.arguments.get("namespace")
    home = named if isinstance(named, str) else call.scope.namespace
    if set(values) - {"warnings"} == {"memory"}:
        memory = values["memory"]
        kept = {name: memory[name] for name in keeps or memory if name in memory}
        if "older" in kept:
            kept["older"] = [_beginning_of(one) for one in kept["older"]]
        warnings = {name: values[name] for name in values if name != "memory"}
        values = {**kept, **warnings, "namespace": memory["namespace"]}
    if "left_out" in values:
        values = {**values, "left_out": [one["id"] for one in values["left_out"]]}
    short = _short_ids(values, call, home)
    return _brief(values, home, call.agent.name, lambda id, namespace: short.get(namespace, {}).get(id, id))


def _beginning_of(older: Mapping[str, Any]) -> dict[str, Any]:
    return {"id": older["id"], "text": shorten(older["text"], _WORDS_OF_OLDER, placeholder="…")}


def _brief(
    values: Mapping[str, Any], home: str, agent: str | None, short: Short, within: str | None = None
) -> dict[str, Any]:
    namespace = values.get("namespace") or within or home
    out: dict[str, Any] = {}
    for name, value in values.items():
        if name in _LEFT_OUT or (name in _USUAL and value == _USUAL[name]) or (name == "namespace" and value == home):
            continue
        if name == "updated_at" and value == values.get("created_at"):
            continue
        if name == "metadata" and agent is not None and value.get("agent") == agent:
            value = {key: one for key, one in value.items() if key != "agent"}
        if name not in _GIVEN:
            value = _value(name, value, namespace, home, agent, short)
        if value in (None, "", [], {}) and name not in (*_ANSWERS, "text"):
            continue
        out[name] = value
    return out


def _value(name: str, value: Any, namespace: str, home: str, agent: str | None, short: Short) -> Any:
    if isinstance(value, Mapping):
        return _brief(value, home, agent, short, namespace)
    if isinstance(value, list):
        return [_value(name, one, namespace, home, agent, short) for one in value]
    if isinstance(value, float):
        return round(value, 3)
    if isinstance(value, str) and name in _IDS:
        return short(value, namespace)
    if isinstance(value, str) and name.endswith(_TIMES):
        return to_the_minute(value)
    return value


def _short_ids(values: Mapping[str, Any], call: Call, home: str) -> dict[str, Mapping[str, str]]:
    """Return the short form of each id in ``values``, by namespace."""
    ids: dict[str, set[str]] = {}
    for namespace, id in _ids(values, home):
        ids.setdefault(namespace, set()).add(id)
    return {name: call.memory._short_ids(some, namespace=name) for name, some in ids.items()}


def _ids(values: Mapping[str, Any], within: str) -> Iterator[tuple[str, str]]:
    namespace = values.get("namespace") or within
    for name, value in values.items():
        for one in value if isinstance(value, list) else [value]:
            if isinstance(one, Mapping) and name not in _GIVEN:
                yield from _ids(one, namespace)
            elif isinstance(one, str) and name in _IDS:
                yield namespace, one
