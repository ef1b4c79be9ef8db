"""The documents that users read, and the blocks of code in them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

__all__ = ["PAGES", "ROOT", "Block", "blocks", "everything", "lines", "text"]

ROOT = Path(__file__).resolve().parents[2]
PAGES = ("README.md", *sorted(path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").glob("*.md")))
_BLOCK = re.compile(r"^( *)```(\w+)\n(.*?)^\1```", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Block:
    """A block of code of a page, and its language."""

    page: str
    language: str
    code: str


@cache
def text(page: str) -> str:
    """Return the text of a page."""
    return (ROOT / page).read_text(encoding="utf-8")


def everything() -> str:
    """Return the texts of all pages."""
    return "\n\n".join(text(page) for page in PAGES)


def blocks(page: str, *languages: str) -> list[Block]:
    """Return the blocks of a page in the order in which they stand, those of some languages only if any are given."""
    found = [Block(page, language, code) for _, language, code in _BLOCK.findall(text(page))]
    return [block for block in found if not languages or block.language in languages]


def lines(page: str, *languages: str) -> list[str]:
    """Return the lines of a page's blocks in some languages, without empty ones."""
    return [line.strip() for block in blocks(page, *languages) for line in block.code.splitlines() if line.strip()]
