"""The front matter of a Markdown note: YAML between two lines of dashes, read as the values that people see there."""

from __future__ import annotations

import re
from functools import cache
from typing import Any, ClassVar

from semmem.errors import MissingExtra
from semmem.interfaces import wire

__all__ = ["BadFrontMatter", "names", "read", "split", "tags"]

_FENCED = re.compile(r"---[ \t]*\n(.*?)(?:^|\n)(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL)
_LONGEST = 200_000
_MOST = 100_000
"""Values of one note: a few lines of references (*name) can stand for gigabytes, or for themselves."""


class BadFrontMatter(Exception):
    """Front matter that is no YAML mapping: what is wrong, and on which line of the file."""

    def __init__(self, line: int, reason: str) -> None:
        super().__init__(reason)
        self.line = line
        self.reason = reason


def split(text: str) -> tuple[str, str]:
    """Return (front matter, the note itself) of a note; ("", the note) where there is none."""
    match = _FENCED.match(text)
    return (match[1], text[match.end() :]) if match else ("", text)


def read(raw: str) -> dict[str, Any]:
    """Return the front matter ``raw`` as JSON values, dates as they are written.

    Raises BadFrontMatter for what is no YAML mapping and MissingExtra where PyYAML is not installed.
    """
    if not raw.strip():
        return {}
    try:
        import yaml
    except ImportError as error:
        raise MissingExtra(
            "The front matter of notes is YAML and PyYAML is not installed; add it with: pip install 'semmem[markdown]'"
        ) from error
    if len(raw) > _LONGEST:
        raise BadFrontMatter(1, f"it has {len(raw)} characters, more than {_LONGEST}")
    try:
        value = yaml.load(raw, Loader=_loader())
    except yaml.MarkedYAMLError as error:
        at = error.problem_mark or error.context_mark
        raise BadFrontMatter(at.line + 2 if at else 1, f"it is not YAML: {error.problem}") from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise BadFrontMatter(1, f"it is not YAML: {str(error).splitlines()[0]}") from None
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise BadFrontMatter(2, f"it is {type(value).__name__}, not names with values")
    if not _bounded(value):
        raise BadFrontMatter(1, f"it says more than {_MOST:,} values")
    try:
        plain: dict[str, Any] = wire.plain(value)
    except (TypeError, RecursionError):
        raise BadFrontMatter(1, "it holds what JSON cannot say") from None
    return plain


def _bounded(value: Any) -> bool:
    """Return whether ``value``, with every reference written out, has no more than so many values."""
    left = [value]
    for _ in range(_MOST):
        if not left:
            return True
        one = left.pop()
        if isinstance(one, dict):
            left.extend(one.values())
        elif isinstance(one, list | set | tuple):
            left.extend(one)
    return False


@cache
def _loader() -> Any:
    """Return PyYAML's safe loader with the plain values of YAML 1.2, which Obsidian has: no is a word, 12:30 too.

    The one in C where PyYAML was built with it; it is ten times as fast.
    """
    import yaml

    class Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]  # PyYAML has no types
        yaml_implicit_resolvers: ClassVar[dict[str, Any]] = {}

    for tag, form, first in (
        ("bool", r"true|True|TRUE|false|False|FALSE", "tTfF"),
        ("int", r"[-+]?(?:0|[1-9][0-9]{0,17})", "-+0123456789"),
        ("float", r"[-+]?(?:[0-9]+\.[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]{1,2})?", "-+.0123456789"),
        ("null", r"~|null|Null|NULL|", ["~", "n", "N", ""]),
        ("merge", r"<<", ["<"]),
    ):
        Loader.add_implicit_resolver(f"tag:yaml.org,2002:{tag}", re.compile(rf"(?:{form})\Z"), list(first))
    return Loader


def names(value: Any) -> list[str]:
    """Return the names of a list, or of a string with commas between them."""
    parts = value if isinstance(value, list) else str(value).split(",") if value is not None else []
    return list(dict.fromkeys(name for part in parts if part is not None and (name := " ".join(str(part).split()))))


def tags(value: Any) -> list[str]:
    """Return the tags of a list, or of a string with commas or spaces between them, without their #."""
    parts = value if isinstance(value, list) else re.split(r"[,\s]+", str(value)) if value is not None else []
    found = (str(part).strip().lstrip("#").strip() for part in parts if part is not None)
    return list(dict.fromkeys(filter(None, found)))
