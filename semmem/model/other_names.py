"""Former names of verbs, which work with a warning, and those of other memory systems, which an error explains."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

__all__ = ["FORMER_NAMES", "OTHER_NAMES", "renamed", "verb_named"]

FORMER_NAMES: Mapping[str, str] = {"bring_in": "import_items", "judgements": "judgments"}
"""The name that a verb had before this release: the verb."""

OTHER_NAMES: Mapping[str, str] = {
    **dict.fromkeys(("add", "insert", "put", "retain", "save", "store", "write"), "remember"),
    **dict.fromkeys(("ask", "find", "query", "retrieve", "search"), "recall"),
    **dict.fromkeys(("delete", "remove", "rm"), "forget"),
    **dict.fromkeys(("fetch", "read", "show"), "get"),
    **dict.fromkeys(("all", "get_all", "ls"), "list"),
    **dict.fromkeys(("edit", "set"), "update"),
}
"""Another system's name of a verb: the verb."""


def renamed(name: str, present: str) -> str:
    """Return the sentence of the warning about a former name."""
    return f"{name} is now called {present}; the former name works until the next release."


def verb_named(owner: object, kind: str, name: str) -> Any:
    """Return the verb of ``owner``, a ``kind``, whose former name is ``name``, with a DeprecationWarning.

    Raises AttributeError for any other name; the error names the verb where other systems call it so.
    """
    if (verb := FORMER_NAMES.get(name)) is None:
        raise _no_such_verb(owner, kind, name)
    warnings.warn(renamed(name, verb), DeprecationWarning, stacklevel=3)
    return getattr(owner, verb)


def _no_such_verb(owner: object, kind: str, name: str) -> AttributeError:
    """Return the error of a name that ``owner`` lacks; it names the verb where other systems call it so."""
    sentence = f"{kind!r} object has no attribute {name!r}"
    if verb := OTHER_NAMES.get(name):
        sentence += f"; the verb is {verb}"
    return AttributeError(sentence, name=name, obj=owner)
