"""The command `probe`: a memory that one leg alone finds, put through the real pipeline, and where it was lost."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from semmem.doors import wire
from semmem.interfaces.cli.door import Door, command
from semmem.interfaces.cli.narrow import After, Authors, Before, Metadata, Sessions, Tags, filters

if TYPE_CHECKING:
    from semmem.client.probe_stages import Probe

__all__ = ["register"]

_WIDTHS = {"dropped at": 9, "reach there": 10, "also listed by": 12}
"""The longest word that stands in a column: where the terminal is narrow, headings and lists take more lines."""


def register(app: typer.Typer) -> None:
    """Add probe to the program."""
    command(app, "probe", "url", "recipe")(probe)


def probe(
    door: Door,
    k: Annotated[int, typer.Option("-k", "--k", "--limit", help="The cut-off: the first k hits.")] = 10,
    leg: Annotated[str | None, typer.Option(help="Only this leg.")] = None,
    question: Annotated[str | None, typer.Option(help="A question of your own, with --text and --leg.")] = None,
    text: Annotated[str | None, typer.Option(help="A memory of your own that the leg finds with --question.")] = None,
    sessions: Sessions = None,
    authors: Authors = None,
    tags: Tags = None,
    metadata: Metadata = None,
    created_after: After = None,
    created_before: Before = None,
) -> None:
    """Put a memory that one leg alone finds through the real pipeline, and say which stage dropped it, if one did.

    One memory for each leg of the recipe and regime, in a scratch namespace that is dropped afterwards. Exits with 3
    when one did not come back.
    """
    from semmem.errors import InvalidInput

    if (question is None) != (text is None):
        raise InvalidInput("--question and --text go together: what is asked, and the memory that is to come back.")
    with door.connect() as mem:
        told = mem.probe(
            recipe=door.recipe,
            k=k,
            leg=leg,
            witness=(question, text) if question is not None and text is not None else None,
            filters=filters(sessions, authors, tags, metadata, created_after, created_before),
        )
    door.give(told, lambda: _show(door, told))
    if told.dropped:
        for one in told.dropped:
            door.say(f"{one.leg} ({one.regime}) was dropped at the stage {one.dropped}: {one.why}")
        raise typer.Exit(wire.EXIT_REACH)


def _show(door: Door, told: Probe) -> None:
    """Print one line a witness, then what it means to be dropped where it was."""
    from rich.table import Table

    from semmem.client.probe_stages import STAGES
    from semmem.interfaces.cli.terminal import Shown

    door.out.print(f"Probe of recipe {told.recipe} at k = {told.k}, in {told.seconds:.1f} s", style="bold")
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for name in ("regime", "leg", "came back", "dropped at", "rank in leg", "place", "reach there", "also listed by"):
        table.add_column(name, no_wrap=name in ("regime", "leg"), min_width=_WIDTHS.get(name))
    for one in told:
        table.add_row(
            one.regime,
            one.leg,
            Shown("yes", "green") if one.returned else Shown("no", "red"),
            one.dropped or "",
            "" if one.rank is None else str(one.rank),
            "" if one.place is None else str(one.place),
            one.class_ or "",
            ", ".join(f"{leg} ({rank})" for leg, rank in one.others.items()),
        )
    door.out.print(table)
    for one in told:
        if one.alone is False and one.returned:
            line = f"{one.leg} ({one.regime}) came back only because another leg listed it too."
            door.out.print(line, style="yellow")
    for stage in dict.fromkeys(one.dropped for one in told.dropped if one.dropped):
        door.out.print(f"{stage}, to be passed: {STAGES[stage]}.", style="dim")
    for why in told.left_out.values():
        door.out.print(why, style="dim")
