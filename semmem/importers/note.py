"""Read a Markdown note: its front matter (YAML between two lines of dashes), headings, tags and links."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, ClassVar
from urllib.parse import unquote

from semmem.model.errors import MissingExtra
from semmem.model.serialization import plain

__all__ = ["BadFrontMatter", "heading", "inline_tags", "linked", "names", "pieces", "read", "split", "tags", "unclosed"]

_FENCED = re.compile(r"---[ \t]*\n(?:(.*?)\n)??(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL)

_KEY = re.compile(r"^([^\s#\-\[\]{}\"'][^:\n]*):(?=\s|\Z)", re.MULTILINE)

_SAYING = re.compile(r"[^:]+:\s+[^\s\[{\"'|>&*!-]\S*(?:\s+\S+)+\s*")
"""A line whose value is of several words, and no list, mapping or quoted string."""

_LONGEST = 4_000
"""The most characters of front matter; a longer block is no list of properties."""

_DEEPEST = 20
"""The most nested levels. PyYAML builds them by recursion in C, which crashes the process where they are too deep."""

_MOST = 100_000
"""The most values of one note: a few lines of references (*name) can stand for gigabytes, or for themselves."""


class BadFrontMatter(Exception):
    """Front matter that is no YAML mapping: the reason, and the line of the file."""

    def __init__(self, line: int, reason: str) -> None:
        super().__init__(reason)
        self.line = line
        self.reason = reason


def split(text: str) -> tuple[str, str]:
    """Return (front matter, rest of the note); ("", the note) where there is no front matter.

    Sentences between two lines of dashes are none, even if they are YAML: "Meeting with Ada: the budget is 5,000".
    """
    match = _FENCED.match(text)
    if match is None or _is_prose(match[1] or ""):
        return "", text
    return match[1] or "", text[match.end() :]


def _is_prose(block: str) -> bool:
    """Return whether each line is one of sentences with a colon: "date created" and "date of birth" are properties."""
    names = [len(key.split()) for key in _KEY.findall(block)]
    says = all(_SAYING.fullmatch(line) for line in block.splitlines() if line.strip())
    return bool(names) and names[0] > 2 and min(names) > 1 and says


def read(raw: str, doubled: Callable[[int, str], None] = lambda line, name: None) -> dict[str, Any]:
    """Return the front matter ``raw`` as JSON values, dates as they are written.

    ``doubled`` is called with the line and the name where a name stands again; its last value counts. Raises
    BadFrontMatter where it is no YAML mapping and MissingExtra where PyYAML is not installed.
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
        raise BadFrontMatter(1, f"it has {len(raw):,} characters, more than {_LONGEST:,}")
    try:
        if (line := _too_deep(raw)) is not None:
            raise BadFrontMatter(line, f"it is nested more than {_DEEPEST} levels deep")
        value = _loaded(raw, doubled)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise BadFrontMatter(mark.line + 2 if mark else 1, f"it is not YAML: {error.problem}") from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise BadFrontMatter(1, f"it is not YAML: {str(error).splitlines()[0]}") from None
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise BadFrontMatter(2, f"it is {type(value).__name__}, not names with values")
    if (excess := _excess(value)) is not None:
        raise BadFrontMatter(1, excess)
    try:
        values: dict[str, Any] = plain(value)
    except (TypeError, RecursionError):
        raise BadFrontMatter(1, "it holds what JSON cannot say") from None
    return values


def _loaded(raw: str, doubled: Callable[[int, str], None]) -> Any:
    """Return the YAML value of ``raw``; names that stand there again go to ``doubled``."""
    loader = _loader()(raw)
    try:
        root = loader.get_single_node()
        value = None if root is None else loader.construct_document(root)
    finally:
        loader.dispose()
    said: set[str] = set()
    for key, _ in root.value if isinstance(value, dict) else ():
        if key.value in said:
            doubled(key.start_mark.line + 2, key.value)
        said.add(key.value)
    return value


def _too_deep(raw: str) -> int | None:
    """Return the line of the file on which ``raw`` is nested too deep; None where it is not.

    YAML's events are read one after the other, without recursion; nothing is built from them here.
    """
    import yaml

    depth = 0
    for event in yaml.parse(raw, Loader=_loader()):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > _DEEPEST:
            return int(event.start_mark.line) + 2
    return None


def _excess(value: Any) -> str | None:
    """Return which limit ``value`` exceeds once every reference is expanded; None where it exceeds none."""
    stack = [(value, 1)]
    for _ in range(_MOST):
        if not stack:
            return None
        one, depth = stack.pop()
        if isinstance(one, dict | list | set | tuple):
            if depth > _DEEPEST:
                return f"with its references it is nested more than {_DEEPEST} levels deep"
            stack.extend((inner, depth + 1) for inner in (one.values() if isinstance(one, dict) else one))
    return f"it says more than {_MOST:,} values"


@cache
def _loader() -> Any:
    """Return PyYAML's safe loader with the plain values of YAML 1.2, as in Obsidian: no is a word, and so is 12:30.

    The C loader is used where PyYAML was built with it; it is ten times as fast. As in YAML 1.2 no mappings are merged,
    because a few lines of merges (<<) could fill the memory.
    """
    import yaml

    class Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]  # PyYAML has no types
        yaml_implicit_resolvers: ClassVar[dict[str, Any]] = {}

        def flatten_mapping(self, node: Any) -> None:
            """Merge nothing."""

    for tag, form, first in (
        ("bool", r"true|True|TRUE|false|False|FALSE", "tTfF"),
        ("int", r"[-+]?(?:0|[1-9][0-9]{0,17})", "-+0123456789"),
        ("float", r"[-+]?(?:[0-9]+\.[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]{1,2})?", "-+.0123456789"),
        ("null", r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    ):
        Loader.add_implicit_resolver(f"tag:yaml.org,2002:{tag}", re.compile(rf"(?:{form})\Z"), list(first))
    return Loader


def names(value: Any) -> list[str]:
    """Return the names in a list, or in a comma-separated string."""
    parts = value if isinstance(value, list) else str(value).split(",") if value is not None else []
    return list(dict.fromkeys(name for part in parts if part is not None and (name := " ".join(str(part).split()))))


def tags(value: Any) -> list[str]:
    """Return the tags in a list, or in a string separated by commas or spaces, without their #."""
    parts = value if isinstance(value, list) else re.split(r"[,\s]+", str(value)) if value is not None else []
    tag_names = (str(part).strip().lstrip("#").strip() for part in parts if part is not None)
    return list(dict.fromkeys(filter(None, tag_names)))


_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")

_TICKS = re.compile(r"`+")

_HEADING = re.compile(r" {0,3}#[ \t]+")

_TAG = re.compile(r"(?:^|(?<=[\s(,]))#([\w/-]+)")

_WIKI = re.compile(r"(!?)\[\[([^\[\]\n|#]*)(#[^\[\]\n|]*)?(?:\|([^\[\]\n]*))?\]\]")

_PLAIN = re.compile(r"(!?)\[([^\[\]\n]*)\]\(<?([^()<>\n]+)>?\)")

_NOTE = re.compile(r"\.md(?=#|\Z)", re.IGNORECASE)

_LONGEST_TITLE = 300

Shown = Callable[[str, str | None], str]


def pieces(text: str) -> Iterator[tuple[bool, str]]:
    """Yield (whether it is code, piece); the pieces make up ``text``. Fenced blocks and `inline` are code."""
    prose: list[str] = []
    code: list[str] = []
    fence = ""
    for line in text.splitlines(keepends=True):
        mark = _FENCE.match(line)
        if fence:
            code.append(line)
            if mark and mark[1].startswith(fence) and not line.strip().strip(fence[0]):
                yield True, "".join(code)
                code, fence = [], ""
        elif mark and not (mark[1][0] == "`" and "`" in line[mark.end() :]):
            yield from _inline("".join(prose))
            prose, code, fence = [], [line], mark[1]
        else:
            prose.append(line)
    yield from _inline("".join(prose))
    if code:
        yield True, "".join(code)


def _inline(prose: str) -> Iterator[tuple[bool, str]]:
    """Yield the pieces of prose: code is between two equally long runs of backticks."""
    runs = [match.span() for match in _TICKS.finditer(prose)]
    closing: list[int | None] = [None] * len(runs)
    after: dict[int, int] = {}
    for number in reversed(range(len(runs))):
        length = runs[number][1] - runs[number][0]
        closing[number] = after.get(length)
        after[length] = number
    last = number = 0
    while number < len(runs):
        end = closing[number]
        if end is not None:
            yield False, prose[last : runs[number][0]]
            yield True, prose[runs[number][0] : runs[end][1]]
            last, number = runs[end][1], end
        number += 1
    yield False, prose[last:]


def heading(text: str) -> str | None:
    """Return the first heading of the first level, without its marks."""
    whole = "".join(" " * len(piece) if code and "\n" in piece else piece for code, piece in pieces(text))
    for line in whole.split("\n"):
        mark = _HEADING.match(line)
        if mark and (title := unclosed(line[mark.end() :])):
            shown = linked(title, lambda target, shown: shown or target.rpartition("/")[2])
            return " ".join(shown.translate({ord("*"): None, ord("`"): None}).split())[:_LONGEST_TITLE] or None
    return None


def unclosed(heading: str) -> str:
    """Return a heading without the # signs that may close it; these follow a space (C# is a name)."""
    text = heading.strip()
    bare = text.rstrip("#")
    return bare.rstrip() if not bare or bare[-1].isspace() else text


def inline_tags(text: str) -> list[str]:
    """Return the #inline_tags of a note, each once; digits alone are no tag."""
    tag_names = [tag for code, piece in pieces(text) if not code for tag in _TAG.findall(piece)]
    return list(dict.fromkeys(tag.strip("/-") for tag in tag_names if any(c.isalpha() for c in tag)))


def linked(text: str, shown: Shown) -> str:
    """Return ``text`` with each link to a note replaced by ``shown`` (target, what the author shows for it).

    Links are [[Note]], [[Note|shown]], [[Note#Heading]], ![[Note]] and [shown](Note.md). A [[#Heading]] of the note
    itself, and the text shown for an image ("200" is its width), stay text.
    """

    def wiki(match: re.Match[str]) -> str:
        embed, alias = match[1], match[4]
        target, section = (part.rstrip("\\").strip() for part in (match[2], (match[3] or "").lstrip("#")))
        alias = alias.strip() if alias else None
        if not target:
            return alias or section
        if embed and alias and re.fullmatch(r"[\dx]+", alias):
            alias = None
        label = shown(target, alias)
        return f"{label} > {section}" if section and alias is None and not section.startswith("^") else label

    def plain(match: re.Match[str]) -> str:
        note = _NOTE.search(match[3], 1)
        if note is None:
            return match[0]
        target = unquote(match[3][: note.end()]).strip()
        return match[0] if "://" in target else shown(target, match[2].strip() or None)

    out = []
    for code, piece in pieces(text):
        out.append(piece if code else _PLAIN.sub(plain, _WIKI.sub(wiki, piece)))
    return "".join(out)
