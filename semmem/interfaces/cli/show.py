"""How hits look in a terminal of 100 columns, and in a file: every component has a colour and a glyph of its own."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from semmem.model.looks import LOOKS, OTHERS
from semmem.text.control_characters import as_json, visible

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table
    from rich.text import Text

    from semmem.interfaces.cli.terminal import Shown
    from semmem.model.reports import LeftOut
    from semmem.model.types import Hit, Memory
    from semmem.read.result import Recall

__all__ = [
    "CLASS_COLOURS", "bar", "degraded_lines", "excerpt", "full_score", "hit_lines", "left_out_lines",
    "legend", "memory_lines", "namespace_options", "new_table", "one_line", "size", "styled",
]  # fmt: skip

_WIDTH = 18
_INDENT = 6
_NAMED = 5
"""Ids in a line that lists some."""
_LEAST = 8
"""Characters that a title has at the least."""


CLASS_COLOURS = {"unreachable": "red", "boost-only": "red", "possible": "yellow", "guaranteed": "green"}
"""The colour of each class of reach."""


def styled(text: str = "", style: str = "") -> Shown:
    """Return text for the terminal; what draws there is loaded only now."""
    from semmem.interfaces.cli.terminal import Shown

    return Shown(text, style)


def new_table(**options: Any) -> Table:
    """Return a table of columns without lines between them."""
    from rich.table import Table

    return Table(box=None, pad_edge=False, **options)


def bar(components: Mapping[str, float], full: float = 1.0, width: int = _WIDTH) -> Text:
    """Return the components as one stacked bar; ``full`` is the score that fills the whole ``width``.

    The cells are shared out by largest remainder, so that they add up to the score's, and any share above nothing
    shows at least once.
    """
    cells = _cells(components, full, width)
    text = styled()
    for name, count in cells.items():
        look = LOOKS.get(name, OTHERS[0])
        text.append(look.sign * count, style=look.terminal)
    text.append("·" * (width - sum(cells.values())), style="dim")
    return text


def _cells(components: Mapping[str, float], full: float, width: int) -> dict[str, int]:
    shares = {name: max(0.0, value) / full * width for name, value in components.items() if value > 0 and full > 0}
    total = min(width, max(len(shares), round(sum(shares.values()))))
    cells = {name: max(1, int(share)) for name, share in shares.items()}
    by_rest = sorted(shares, key=lambda name: (int(shares[name]) - shares[name], name))
    for name in by_rest * width:
        if sum(cells.values()) >= total:
            break
        cells[name] += 1
    while sum(cells.values()) > total:
        cells[max(cells, key=lambda name: (cells[name], name))] -= 1
    return cells


def legend(names: Collection[str] | None = None) -> Text:
    """Return one line that says which glyph is which component: of all, or of those among ``names``."""
    text = styled()
    for name, look in LOOKS.items():
        if names is not None and name not in names:
            continue
        text.append(f"{look.sign * 2} ", style=look.terminal).append(f"{name}   ")
    if others := sorted(set(names or ()) - set(LOOKS)):
        text.append(f"{OTHERS[0].sign * 2} ", style=OTHERS[0].terminal).append(", ".join(others))
    return text


def namespace_options(namespaces: Iterable[str]) -> str:
    """Return the options that a command takes to look in the same namespaces: " --namespace team", or nothing."""
    names = list(namespaces)
    return "" if names == ["default"] else "".join(f" --namespace {shlex.quote(visible(name))}" for name in names)


def size(count: int) -> str:
    """Return a number of bytes in the unit that suits it: "34 KiB", "1,024.0 MiB"."""
    return f"{count / 2**10:,.0f} KiB" if count < 2**20 else f"{count / 2**20:,.1f} MiB"


def one_line(text: str, width: int) -> str:
    """Return ``text`` on one line of at most ``width`` characters, all of them visible."""
    flat = visible(" ".join(text.split()))
    return flat if len(flat) <= width else flat[: max(1, width - 1)].rstrip() + "…"


def excerpt(text: str, sentence: str, most: int = 320) -> str:
    """Return ``sentence`` of ``text`` with the one or two beside it that still fit into ``most`` characters, on a line.

    What follows comes before what precedes: after a heading or a greeting stands what it is about.
    """
    from semmem.text.passages import sentence_spans

    spans = sentence_spans(text)
    start = max(0, text.find(sentence))
    index = next((place for place, (_, end) in enumerate(spans) if end > start), 0)
    begin, end = (start, start + len(sentence)) if sentence else spans[0] if spans else (0, 0)
    end = max(end, min(spans[index][1], begin + most)) if spans else end
    first = last = index
    for _ in range(2):
        if last + 1 < len(spans) and spans[last + 1][1] - begin <= most:
            last, end = last + 1, spans[last + 1][1]
        elif first > 0 and end - spans[first - 1][0] <= most:
            first, begin = first - 1, spans[first - 1][0]
    before = "… " if text[:begin].strip() else ""
    return before + " ".join(text[begin:end].split()) + (" …" if text[end:].strip() else "")


def hit_lines(hit: Hit, full: float, width: int, *, whole: bool = False) -> list[RenderableType]:
    """Return a hit: score, bar, title and id; each component with the leg's rank; what it says around the match.

    ``whole`` gives the whole text instead. What is longer than a line goes on below itself, not at the margin.
    """
    from rich.padding import Padding

    head = styled(f" {hit.rank:>2}  {hit.score:.3f} ")
    head.append_text(bar(hit.components, full))
    id = one_line(hit.memory.id, 36)  # whole, if it is one that was made: explain asks for it
    if hit.memory.title:
        room = width - len(head) - len(id) - 4
        head.append(f"  {one_line(hit.memory.title, max(_LEAST, min(48, room)))}", style="bold")
    head.append(f"  {id}", style="dim")
    shares = styled()
    for name, value in hit.components.items():
        place = hit.legs.get(name)
        colour = LOOKS.get(name, OTHERS[0]).terminal
        shares.append(f"{name} ", style=colour).append(f"{value:.3f}")
        shares.append(f" (rank {place.rank})   " if place else "   ", style="dim")
    if hit.duplicates:
        shares.append(f"and {len(hit.duplicates)} of the same text   ", style="dim")
    if hit.superseded_by is not None:
        shares.append(f"superseded by {one_line(hit.superseded_by, 36)}", style="yellow")
    if (bounds := _bounds(hit.memory, datetime.now(UTC))) is not None:
        shares.append(f"   {bounds}", style="yellow")
    text = hit.memory.text if whole else excerpt(*_untitled(hit))
    return [head, *(Padding(line, (0, 0, 0, _INDENT), expand=False) for line in (shares, styled(text)))]


def _untitled(hit: Hit) -> tuple[str, str]:
    """Return the passage and the snippet of a hit without a first line that says its title again."""
    text, snippet = hit.passage.text, hit.snippet
    first, _, rest = text.lstrip().partition("\n")
    if hit.memory.title is None or _heading(first) != _heading(hit.memory.title) or not rest.strip():
        return text, snippet
    return rest.lstrip(), "" if _heading(snippet) == _heading(first) else snippet.removeprefix(first).lstrip()


def _heading(line: str) -> str:
    return " ".join(line.strip(" #\t").split()).casefold()


def _bounds(memory: Memory, now: datetime) -> str | None:
    """Return until when what does not hold any more has held, or from when on it will; None for what holds."""
    if memory.valid_to is not None and memory.valid_to <= now:
        return f"held until {memory.valid_to:%Y-%m-%d}"
    if memory.valid_from is not None and memory.valid_from > now:
        return f"holds from {memory.valid_from:%Y-%m-%d}"
    return None


def memory_lines(memory: Memory) -> list[Text]:
    """Return a memory in full: its text, and every field that says something."""
    lines: list[Text] = [styled(memory.title or memory.id, style="bold"), styled(memory.text)]
    for name, value in memory.as_dict().items():
        if name not in ("text", "title") and value not in (None, [], {}):
            shown = as_json(value) if isinstance(value, dict | list) else value
            lines.append(styled(f"{name:>11}  {shown}", style="dim"))
    return lines


def degraded_lines(degraded: Mapping[str, str]) -> list[Text]:
    """Return one line for each leg that could not answer."""
    return [styled(f"{leg} is degraded: {reason}", style="red") for leg, reason in degraded.items()]


def left_out_lines(left_out: Sequence[LeftOut], budget: int | None) -> list[Text]:
    """Return one line that says what a budget of tokens had no place for, none where it had."""
    if not left_out:
        return []
    named = ", ".join(f"{one_line(one.id, 36)} ({one.tokens:,})" for one in left_out[:_NAMED])
    more = f" and {len(left_out) - _NAMED} more" if len(left_out) > _NAMED else ""
    return [styled(f"Left out of {budget:,} tokens: {named}{more}.", style="dim")]


def full_score(recalls: Sequence[Recall]) -> float:
    """Return the highest score of several recalls, so that their bars compare; 1 when there is none."""
    return max((hit.score for recall in recalls for hit in recall), default=1.0) or 1.0
