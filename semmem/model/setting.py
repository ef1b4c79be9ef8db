"""One setting of the program: its default, its meaning, and how its value is read, also where it is given as text.

Settings are read at the start of every command and hook, so this imports nothing that takes long.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

__all__ = [
    "Secret", "Setting", "Wrong", "flag", "number", "one_of", "optional", "path", "secret", "setting", "text", "whole",
]  # fmt: skip


class Wrong(ValueError):
    """A value that a setting cannot have; its text is the end of a sentence that says what it must be."""


Read = Callable[[Any], Any]
"""Returns the value of a setting from what was given. Raises Wrong."""


class Setting(NamedTuple):
    """The row of a setting."""

    default: Any
    read: Read
    description: str


def setting(default: Any, read: Read, description: str) -> Any:
    """Return the row of a setting as a class of settings writes it: an instance has the value in its place."""
    return Setting(default, read, description)


class Secret:
    """A key, which no repr and no error shows."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    def get_secret_value(self) -> str:
        """Return the key itself."""
        return self._value

    def __repr__(self) -> str:
        return "Secret('***')"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and self._value == other._value

    def __hash__(self) -> int:
        return hash(self._value)


def optional(read: Read) -> Read:
    """Read None as itself, and any other value by ``read``."""
    return lambda value: None if value is None else read(value)


def text(value: Any) -> str:
    """Read a string."""
    if not isinstance(value, str):
        raise Wrong("a string")
    return value


def secret(value: Any) -> Secret:
    """Read a key."""
    return value if isinstance(value, Secret) else Secret(text(value))


def path(value: Any) -> Path:
    """Read a path."""
    if not isinstance(value, str | Path):
        raise Wrong("a path")
    return Path(value)


_FLAGS = {
    **dict.fromkeys(("1", "on", "t", "true", "y", "yes"), True),
    **dict.fromkeys(("0", "off", "f", "false", "n", "no"), False),
}


def flag(value: Any) -> bool:
    """Read true or false, also as the words and digits that variables of the environment have for them."""
    if value in (0, 1):
        return bool(value)
    found = _FLAGS.get(value.strip().lower()) if isinstance(value, str) else None
    if found is None:
        raise Wrong("true or false")
    return found


def one_of(*words: str) -> Read:
    """Read one of some words."""

    def read(value: Any) -> str:
        if not isinstance(value, str) or value not in words:
            raise Wrong(f"{', '.join(words[:-1])} or {words[-1]}")
        return value

    return read


def whole(unit: str = "", **bounds: float) -> Read:
    """Read a whole number within ``bounds``, of a unit such as "megabytes"; both are given as for ``number``."""
    must = _of_unit("a whole number", unit)

    def read(value: Any) -> int:
        found = _float(value, must)
        if not found.is_integer():
            raise Wrong(must)
        return int(_bounded(int(value) if isinstance(value, int) else int(found), bounds))

    return read


def number(unit: str = "", **bounds: float) -> Read:
    """Read a number within ``bounds``: ``gt`` above, ``ge`` at least, ``le`` at most.

    The error for what is no number, such as 1h, names ``unit``, where there is one.
    """
    must = _of_unit("a number", unit)
    return lambda value: _bounded(_float(value, must), bounds)


def _of_unit(must: str, unit: str) -> str:
    return f"{must} of {unit}" if unit else must


def _float(value: Any, must: str) -> float:
    """Return a number or the text of one; true, which would count as 1, is none."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise Wrong(must)
    try:
        return float(value)
    except (ValueError, OverflowError):
        raise Wrong(must) from None


_WORDS: Mapping[str, tuple[str, Callable[[float, float], bool]]] = {
    "gt": ("above", lambda value, bound: value > bound),
    "ge": ("at least", lambda value, bound: value >= bound),
    "le": ("at most", lambda value, bound: value <= bound),
}


def _bounded(value: float, bounds: Mapping[str, float]) -> float:
    for name, bound in bounds.items():
        words, holds = _WORDS[name]
        if not holds(value, bound):  # nan is within no bound
            raise Wrong(f"{words} {_plain(bound)}")
    return value


def _plain(bound: float) -> str:
    """Return a bound as people write it, 1,000,000 and not 1e+06."""
    return f"{bound:,.0f}" if bound == int(bound) else f"{bound:g}"
