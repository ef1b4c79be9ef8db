"""The names that other memory systems give to the verbs of semmem, for the message to somebody who types one."""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["OTHER_NAMES", "no_such_verb", "renamed"]

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


def no_such_verb(owner: object, name: str) -> AttributeError:
    """Return the error of a name that ``owner`` lacks; it names the verb where other systems call it so."""
    sentence = f"{type(owner).__name__!r} object has no attribute {name!r}"
    if verb := OTHER_NAMES.get(name):
        sentence += f"; the verb is {verb}"
    return AttributeError(sentence, name=name, obj=owner)
