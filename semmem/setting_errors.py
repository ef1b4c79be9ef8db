"""What is wrong with the value of a setting, in words of one's own: pydantic's speak of inputs and parsing. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from reprlib import repr as shown
from typing import Any

__all__ = ["wrong"]

_SECRET = frozenset(("llm_key",))
_MUST_BE = {
    "int": "a whole number",
    "float": "a number",
    "finite": "a number",
    "bool": "true or false",
    "string": "a string",
    "path": "a path",
    "dict": "a table of settings",
}
_BOUNDS = {
    "greater_than": ("gt", "above"),
    "greater_than_equal": ("ge", "at least"),
    "less_than": ("lt", "below"),
    "less_than_equal": ("le", "at most"),
}


def wrong(name: str, error: Mapping[str, Any]) -> str:
    """Return what the setting ``name`` must be and is not, to go on a sentence with; ``error`` is one of pydantic's."""
    kind, value = str(error["type"]), error.get("input")
    not_this = "" if name in _SECRET else f", not {shown(value)}"
    if kind in _BOUNDS:
        key, words = _BOUNDS[kind]
        return f"must be {words} {error['ctx'][key]:g}{not_this}"
    if name == "recipe":
        return f"must be the name of a recipe or a table of search settings{not_this}"
    must = next((words for start, words in _MUST_BE.items() if kind.startswith(start)), None)
    return f"must be {must}{not_this}" if must is not None else f"cannot be used: {error['msg']}"
