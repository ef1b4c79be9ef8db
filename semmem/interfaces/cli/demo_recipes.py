"""Every recipe on the committed story, in one table: where the answers stand, and what each leg can do at all."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from semmem.interfaces.cli.demo_data import QUESTIONS
from semmem.interfaces.cli.door import Door

if TYPE_CHECKING:
    from semmem.client.memory import Semmem

__all__ = ["compared", "show_compared"]

_K = 10
_NEEDED = 96
"""Columns that the whole table takes; in a narrower terminal it does without the fusion."""
_LEGS = ("lexical", "dense", "graph")
_COLOURS = {"unreachable": "red", "boost-only": "red", "possible": "yellow", "guaranteed": "green"}


def compared(mem: Semmem, namespace: str) -> list[dict[str, Any]]:
    """Return for every recipe the rank of each question's answer among the first ten (None: not there), and its reach.

    ``reach`` maps a regime to a class for each leg; a leg that the recipe does not have is left out.
    """
    from semmem.config import RECIPES
    from semmem.rank_cap import reach

    rows = []
    for name, plan in RECIPES.items():
        answers = [mem.recall(q.query, namespace=namespace, limit=_K, recipe=name) for q in QUESTIONS]
        ranks = [
            next((hit.rank for hit in found if hit.memory.id == asked.answer), None)
            for found, asked in zip(answers, QUESTIONS, strict=True)
        ]
        regimes = reach(plan, _K).regimes
        rows.append(
            {
                "recipe": name,
                "fusion": plan.fusion,
                "ranks": ranks,
                "answered": sum(rank is not None for rank in ranks),
                "degraded": {leg: why for found in answers for leg, why in found.degraded.items()},
                "reach": {r: {leg: its.class_ for leg, its in of.legs.items()} for r, of in regimes.items()},
            }
        )
    return rows


def show_compared(door: Door, rows: list[dict[str, Any]]) -> None:
    """Print the table, a line a recipe, and one more where a second regime has another reach."""
    from rich.table import Table

    from semmem.interfaces.cli.show import degraded_lines
    from semmem.interfaces.cli.terminal import Shown

    door.out.print(
        f"Every recipe on the story of sixty notes: k = {_K}, five questions that need two notes", style="bold"
    )
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    narrow = door.out.width < _NEEDED
    for name in ("recipe", *(() if narrow else ("fusion",)), "answers at rank", "of 5", "regime", *_LEGS):
        table.add_column(name, no_wrap=name not in ("answers at rank", "of 5"), min_width=9 if "rank" in name else None)
    for row in rows:
        found = " ".join("-" if rank is None else str(rank) for rank in row["ranks"])
        head = [row["recipe"], *([] if narrow else [row["fusion"]]), found, str(row["answered"])]
        before: dict[str, str] | None = None
        for regime, legs in row["reach"].items():
            if legs == before:
                continue
            same = all(other == legs for other in row["reach"].values())
            classes = [Shown(legs[leg], _COLOURS[legs[leg]]) if leg in legs else "" for leg in _LEGS]
            table.add_row(*head, "any" if same else regime, *classes)
            head, before = [""] * len(head), legs
    door.out.print(table)
    door.out.print(
        "- not among the first ten. The classes are proven from the recipe alone: semmem reach.", style="dim"
    )
    degraded = {leg: why for row in rows for leg, why in row["degraded"].items()}
    door.print_lines(degraded_lines(degraded))
