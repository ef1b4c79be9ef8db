"""The text of a Markdown note: its first heading, its #tags, its links made readable. Code stays as it is. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from urllib.parse import unquote

__all__ = ["heading", "linked", "pieces", "tags"]

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_INLINE = re.compile(r"(?<!`)(`+)(?!`)(.+?)(?<!`)\1(?!`)", re.DOTALL)
_HEADING = re.compile(r"^ {0,3}#[ \t]+(.+?)[ \t]*#*[ \t]*$", re.MULTILINE)
_TAG = re.compile(r"(?:^|(?<=[\s(,]))#([\w/-]+)")
_WIKI = re.compile(r"(!?)\[\[([^\[\]\n|#]*)(#[^\[\]\n|]*)?(?:\|([^\[\]\n]*))?\]\]")
_PLAIN = re.compile(r"(!?)\[([^\[\]\n]*)\]\(<?([^()<>\n]+?\.md)(?:#[^()<>\n]*)?>?\)", re.IGNORECASE)
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
    last = 0
    for match in _INLINE.finditer(prose):
        yield False, prose[last : match.start()]
        yield True, match[0]
        last = match.end()
    yield False, prose[last:]


def heading(text: str) -> str | None:
    """Return the first heading of the first level, without its marks."""
    whole = "".join(" " * len(piece) if code and "\n" in piece else piece for code, piece in pieces(text))
    match = _HEADING.search(whole)
    if match is None:
        return None
    shown = linked(match[1], lambda target, shown: shown or target.rpartition("/")[2])
    return " ".join(shown.translate({ord("*"): None, ord("`"): None}).split())[:_LONGEST_TITLE] or None


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
        target = unquote(match[3]).strip()
        return match[0] if "://" in target else shown(target, match[2].strip() or None)

    out = []
    for code, piece in pieces(text):
        out.append(piece if code else _PLAIN.sub(plain, _WIKI.sub(wiki, piece)))
    return "".join(out)
