"""What the interfaces of other frameworks are given by a program: an open memory, a limit, the name of a namespace."""

from __future__ import annotations

from collections.abc import Iterable
from inspect import iscoroutinefunction
from typing import Any

from semmem.model.errors import InvalidInput
from semmem.model.filters import string, strings

__all__ = ["check_limit", "check_memory", "check_namespace"]

_VERBS = ("remember", "recall", "list", "forget")


def check_memory(value: Any) -> None:
    """Raise InvalidInput unless ``value`` is an open Semmem, or has its verbs."""
    verbs = [getattr(value, verb, None) for verb in _VERBS]
    if any(map(iscoroutinefunction, verbs)):
        raise InvalidInput("memory must be a Semmem, and this one is for asyncio; give the one behind it, mem.semmem.")
    if isinstance(value, type) or not all(map(callable, verbs)):
        kind = value.__name__ if isinstance(value, type) else type(value).__name__
        raise InvalidInput(f"memory must be an open Semmem, as semmem.connect() returns one, not {kind}.")


def check_limit(value: Any, *, or_all: bool = False) -> None:
    """Raise InvalidInput unless ``value`` is a whole number, or with ``or_all`` None."""
    if isinstance(value, bool) or not (isinstance(value, int) or (or_all and value is None)):
        none = ", or None for all" if or_all else ""
        raise InvalidInput(f"limit must be a whole number, such as 10{none}, not {value!r:.100}.")


def check_namespace(value: Any, *, several: bool = False) -> None:
    """Raise InvalidInput unless ``value`` is the name of a namespace, or with ``several`` a list of names."""
    names: Iterable[str] = strings("namespace", value) if several else (string("namespace", value),)
    if not [*names] or not all(names):
        raise InvalidInput(f"namespace must be a name{', or a list of names' if several else ''}, not empty.")
