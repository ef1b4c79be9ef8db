"""How the parts of a score look, wherever they are shown: in a terminal, in pictures and on the page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

__all__ = ["LOOKS", "OTHERS", "Look"]


class Look(NamedTuple):
    """The look of a part of a score: its colour on light and on dark paper; its sign and colour in a terminal."""

    light: str
    dark: str
    sign: str = "▪"
    terminal: str = "white"


LOOKS: Mapping[str, Look] = {
    "lexical": Look("#2f6fb0", "#5b9bd8", "█", "cyan"),
    "dense": Look("#3a8f5f", "#56b07d", "▓", "magenta"),
    "graph": Look("#c9821b", "#e0a042", "▒", "green"),
    "exact": Look("#8250a8", "#b48ad6", "╬", "yellow"),
    "reserve": Look("#b3476b", "#dd7f9f", "░", "bright_black"),
    "importance": Look("#5b7083", "#93a7b8", "◆", "bright_blue"),
}
"""The looks of the legs and of the other parts, everywhere: in a terminal, in pictures and on the page."""
OTHERS = (Look("#0b7a75", "#4fb8b2"), Look("#8a5a2b", "#c79a6b"), Look("#6b7a1f", "#aab85c"))
"""The looks of parts of other names, such as legs of one's own, in turn."""
