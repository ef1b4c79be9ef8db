"""From what is indexed to what people remembered: the whole memory, and the passage of it that was found."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from semmem.model.exchange import Head
from semmem.model.types import Memory, Passage

__all__ = ["passage_of", "passages"]

_SPACE = re.compile(r"\s*")


def passages(store: Any, namespaces: Sequence[str], heads: Collection[Head]) -> Mapping[int, tuple[Memory, Passage]]:
    """Return, by ord, the whole memory and its passage that is indexed there; what was forgotten meanwhile is left out.

    One look at the store, and a second one where any of ``heads`` is a part.
    """
    rows = store.memories(namespaces, [head.ord for head in heads]) if heads else {}
    split = {(head.namespace, head.id) for head in heads if head.part and head.ord in rows}
    wholes = store.wholes(split) if split else {}
    found: dict[int, tuple[Memory, Passage]] = {}
    for head in heads:
        row = rows.get(head.ord)
        if row is None:
            continue
        if not head.part:
            found[head.ord] = row, Passage(row.text, 0, len(row.text))
        elif (head.namespace, head.id) in wholes:
            whole, lengths = wholes[head.namespace, head.id]
            passage = passage_of(whole.text, row.text, head.part, lengths)
            if passage is not None:
                found[head.ord] = whole, passage
    return found


def passage_of(whole: str, part: str, number: int, lengths: Sequence[int]) -> Passage | None:
    """Return where the part ``number`` (from 1) stands in the text ``whole``; None where it no longer has that part.

    ``lengths`` are those of all its parts, in characters. ``split`` cuts a text into pieces that follow each other and
    takes the white space off their ends, so the lengths alone say where each one begins.
    """
    at = _after_space(whole, 0)
    for length in lengths[: number - 1]:
        at = _after_space(whole, at + length)
    if not whole.startswith(part, at):  # it was changed between two looks at the store
        at = whole.find(part)
    return Passage(part, at, at + len(part)) if at >= 0 else None


def _after_space(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    return match.end() if match else at
