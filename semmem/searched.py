"""What of a memory is searched: the text the lexical and graph legs read, and the text the encoder reads. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from semmem.model.types import Memory

__all__ = ["embedded_text", "encoded_text", "other_names", "searched_text"]

_TITLE_CHARS = 500
"""Characters of a title put before each part's text for the encoder; the rest would leave no room for the text."""
_MOST_NAMES, _LONGEST_NAME = 50, 200
"""Other names of a memory that are read; what is longer is no name."""
_SHORTEST = 15
"""An opening is taken off only when this much is left to encode."""
_INTERJECTION = (
    "hey|hi|hello|wow|oh|thanks(?: so much| a lot)?|thank you|yeah|yep|yes|sure|great|awesome|cool|nice|ok|okay|well"
    "|absolutely|definitely|totally|congrats|congratulations|haha|aww?|no (?:way|problem|worries)|sounds good|good"
    "|amazing|whoa|right|exactly|of course|glad to hear|agreed|indeed|true|yay|ah|hmm"
)
_OPENING = re.compile(rf"^\s*(?i:{_INTERJECTION})\b(?:,?\s+[A-Z]\w+)?\s*[,!.?]+\s*")
_CALLED = re.compile(r",\s*[A-Z]\w+(?=\s*[!?])")


def other_names(metadata: Mapping[str, Any]) -> tuple[str, ...]:
    """Return what else the subject of a memory is called: the strings of its metadata's "aliases", each once."""
    given = metadata.get("aliases")
    names = [given] if isinstance(given, str) else given if isinstance(given, list) else []
    return tuple(
        dict.fromkeys(name for name in names if isinstance(name, str) and name.strip() and len(name) <= _LONGEST_NAME)
    )[:_MOST_NAMES]


def searched_text(text: str, tags: Sequence[str]) -> str:
    """Return the text with its tags behind it, as the lexical leg and the extractor see it."""
    return f"{text} [{', '.join(tags)}]" if tags else text


def encoded_text(title: str | None, text: str, author: str | None, tags: Sequence[str]) -> str:
    """Return what is embedded: "title. text [tags]".

    The turn of an author loses one opening interjection and the name it calls ("Hey Mel! …", "…, Caroline?"): the
    vector should say what the turn is about, not to whom it is said.
    """
    if author is not None:
        called = _CALLED.sub("", text)
        rest = _OPENING.sub("", called, count=1)
        text = rest if len(rest) >= _SHORTEST else called
    text = searched_text(text, tags)
    return f"{title[:_TITLE_CHARS]}. {text}" if title else text


def embedded_text(memory: Memory) -> str:
    """Return what of a memory, or of a part of one, is embedded."""
    names = (*memory.tags, *other_names(memory.metadata))
    return encoded_text(memory.title, memory.text, memory.author, names)
