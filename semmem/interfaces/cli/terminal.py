"""The terminal: the one way by which text reaches standard output and standard error, where no text can act on it."""

from __future__ import annotations

import functools
import shutil
import sys
from collections.abc import Iterable
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

from semmem.text.control_characters import encodable, visible

__all__ = ["Shown", "Terminal", "terminal"]


class Shown(Text):
    """Text for the terminal: foreign characters are made visible when they come in, so that widths are right."""

    def __init__(self, text: str = "", style: str = "", **more: Any) -> None:
        super().__init__(visible(text), style, **more)

    def append(self, text: Any, style: Any = None) -> Shown:
        """Add text, and make it visible."""
        super().append(visible(text) if isinstance(text, str) else text, style)
        return self


class Terminal(Console):
    """A console whose every segment of text, whoever made it, is visible and fits the encoding of the stream.

    A string is printed as it is: no markup, no emoji codes, no highlighting.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(markup=False, emoji=False, highlight=False, **options)

    def render_str(self, text: str, **options: Any) -> Text:
        """Return the text of a string, made visible before anything measures it."""
        return super().render_str(visible(text), **options)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Yield the segments of anything that can be printed; only those of the console itself may be control codes."""
        for segment in super().render(renderable, options):
            if segment.control:
                yield segment
            else:
                yield Segment(encodable(visible(segment.text), self.encoding), segment.style)


@functools.cache
def terminal(stderr: bool) -> Terminal:
    """Return the terminal of one stream; 100 columns where it is not a terminal and nothing says how many."""
    stream = sys.stderr if stderr else sys.stdout
    width = None if stream.isatty() else shutil.get_terminal_size((100, 25)).columns
    return Terminal(stderr=stderr, width=width)
