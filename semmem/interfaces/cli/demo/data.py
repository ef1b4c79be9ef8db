"""What the demonstration remembers: the committed story, and any folder of text or Markdown cut at its headings."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

__all__ = ["QUESTIONS", "DemoQuestion", "folder", "story"]

_KINDS = {".md", ".markdown", ".txt", ".rst"}
_SKIP = {"node_modules", "build", "dist", "site-packages", "__pycache__", "runs"}
_LARGEST = 1_000_000
_HEADING = re.compile(r"#{1,4}\s+(?=\S)")
_MARKS = re.compile(r"[*_`]|\]\([^()]*\)|\[")
_FENCE = re.compile(r"```|~~~")


@dataclass(frozen=True, slots=True)
class DemoQuestion:
    """A question of the demonstration, and the id of the memory that answers it where that is known."""

    query: str
    answer: str | None = None


QUESTIONS = (
    DemoQuestion("When is the building with the Corrigan tide books and the Halloran charts closed?", "heron-house"),
    DemoQuestion("Can the bill for the Vellamo mesh and the Tern nets be settled by bank?", "orrin"),
    DemoQuestion(
        "In which pub does the man who trims the Gannet scales and the Tarka flow meters play music?", "yusuf"
    ),
    DemoQuestion("Why is the woman behind the Kestrel and the Plover up so early?", "petra"),
    DemoQuestion("What colour is the boat with the Marlin blades and the Corvin anchor?", "sandpiper"),
)
"""Each names two things. Their notes name a third, and the answer is in the note about that one."""


def story() -> list[dict[str, Any]]:
    """Return the sixty notes of an invented tidal workshop, as items for remember_many."""
    lines = files("semmem.interfaces.cli.demo").joinpath("story.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def folder(root: Path) -> Iterator[dict[str, Any]]:
    """Yield one item a section of every text or Markdown file below ``root``, in the order of their names.

    Hidden folders, environments, build folders and files over a megabyte are passed over. The heading is the title;
    a file without headings is one item named after itself.
    """
    for path in sorted(root.rglob("*")):
        inside = path.relative_to(root)
        if path.suffix.lower() not in _KINDS or not path.is_file() or path.stat().st_size > _LARGEST:
            continue
        if any(part.startswith((".", "venv")) or part in _SKIP for part in inside.parts):
            continue
        name = inside.as_posix()
        text = path.read_text(encoding="utf-8", errors="replace")
        for number, (title, body) in enumerate(sections(text, path.stem), start=1):
            yield {"id": f"{name}:{number}", "title": title, "text": body, "source": name, "position": number}


def sections(text: str, name: str) -> Iterator[tuple[str, str]]:
    """Yield (title, text) of each section of Markdown; a heading in a code fence is code. Empty ones are left out."""
    title, body, fenced = name, list[str](), False
    for line in text.splitlines():
        fenced ^= bool(_FENCE.match(line))
        heading = None if fenced else _HEADING.match(line)
        if heading is None:
            body.append(line)
            continue
        if any(map(str.strip, body)):
            yield title, "\n".join(body).strip()
        title, body = _bare(line[heading.end() :]), []
    if any(map(str.strip, body)):
        yield title, "\n".join(body).strip()


def _bare(heading: str) -> str:
    from semmem.importers.note import unclosed

    return _MARKS.sub("", unclosed(heading))[:200]
