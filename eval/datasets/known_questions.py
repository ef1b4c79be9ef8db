"""The questions of the tuning sets and the sealed sets, by which these are known again under any name.

A set with one byte changed, or a part of a set, has another sha256. The questions are kept as marks in
``known_questions.json``: no text follows from a mark.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from functools import cache
from hashlib import blake2b
from pathlib import Path

from eval.datasets.corpus import Query

__all__ = ["known_question", "shared_with"]


def known_question(text: str) -> str:
    """Return the mark by which a question is known again, whatever its spaces and capitals."""
    return blake2b(" ".join(text.casefold().split()).encode(), digest_size=4).hexdigest()


def shared_with(queries: Sequence[Query], names: Collection[str] = ()) -> tuple[str, int] | None:
    """Return the known set that more than a tenth of the questions are of, and how many; None where there is none.

    ``names`` are the sets to look in; empty: all.
    """
    marks = {known_question(query.text) for query in queries if query.text}
    shared = {name: len(marks & of) for name, of in _known().items() if not names or name in names}
    name = max(shared, key=shared.__getitem__)
    return (name, shared[name]) if 10 * shared[name] > len(marks) else None


@cache
def _known() -> dict[str, frozenset[str]]:
    rows: dict[str, list[str]] = json.loads(Path(__file__).with_name("known_questions.json").read_text("utf-8"))
    return {name: frozenset(marks) for name, marks in rows.items()}
