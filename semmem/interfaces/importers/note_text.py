"""The text of a Markdown note: its first heading, its #tags, its links made readable. Code stays as it is. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from urllib.parse import unquote

__all__ = ["heading", "linked", "pieces", "tags", "unclosed"]

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
    """Yield (whether it is code, piece) so that the pieces make up ``text``: fenced blocks and `inline` are code."""
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
    """Yield the pieces of prose: code stands between two runs of as many backticks."""
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
        if mark and (said := unclosed(line[mark.end() :])):
            shown = linked(said, lambda target, shown: shown or target.rpartition("/")[2])
            return " ".join(shown.translate({ord("*"): None, ord("`"): None}).split())[:_LONGEST_TITLE] or None
    return None


def unclosed(heading: str) -> str:
    """Return what a heading says without the # signs that may close it: they stand apart (C# is a name)."""
    said = heading.strip()
    bare = said.rstrip("#")
    return bare.rstrip() if not bare or bare[-1].isspace() else said


def tags(text: str) -> list[str]:
    """Return the #tags of a note, each once; one of digits alone is none."""
    found = [tag for code, piece in pieces(text) if not code for tag in _TAG.findall(piece)]
    return list(dict.fromkeys(tag.strip("/-") for tag in found if any(c.isalpha() for c in tag)))


def linked(text: str, shown: Shown) -> str:
    """Return ``text`` with each link to a note as ``shown`` (target, what the author shows for it) has it.

    Links are [[Note]], [[Note|shown]], [[Note#Heading]], ![[Note]] and [shown](Note.md). A [[#Heading]] of the note
    itself, and what is shown of an image ("200" is its width), are text.
    """

    def wiki(match: re.Match[str]) -> str:
        embed, alias = match[1], match[4]
        target, section = (part.rstrip("\\").strip() for part in (match[2], (match[3] or "").lstrip("#")))
        alias = alias.strip() if alias else None
        if not target:
            return alias or section
        if embed and alias and re.fullmatch(r"[\dx]+", alias):
            alias = None
        seen = shown(target, alias)
        return f"{seen} > {section}" if section and alias is None and not section.startswith("^") else seen

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
