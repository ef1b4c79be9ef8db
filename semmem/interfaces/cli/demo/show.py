"""How the demonstration looks: two recipes side by side, the path of the graph, one why not, and two reach tables."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from semmem.interfaces.cli.context import CommandLine
from semmem.interfaces.cli.demo.data import QUESTIONS, DemoQuestion
from semmem.interfaces.cli.show import (
    CLASS_COLOURS,
    bar,
    degraded_lines,
    full_score,
    legend,
    new_table,
    one_line,
    styled,
)

if TYPE_CHECKING:
    from rich.text import Text

    from semmem.client.memory import Semmem
    from semmem.model.reports import Stats
    from semmem.model.types import Hit, IngestReport
    from semmem.rank_cap.report import Reach
    from semmem.read.explanation import Explanation
    from semmem.read.result import Recall

__all__ = ["Quiet", "Show", "compared", "show_compared"]

_SIDE = 48

_BAR = 12


class Quiet:
    """Says nothing: what is shown under --json until the one JSON value at the end."""

    def __getattr__(self, name: str) -> Any:
        return lambda *_: None


class Show:
    """Prints each stage of the demonstration as it happens, at most 100 columns wide."""

    def __init__(self, cli: CommandLine) -> None:
        self._cli = cli
        self._out = cli.out

    def opening(self, report: IngestReport, stats: Stats) -> None:
        """Say what was remembered and what the marks of the tables mean."""
        self._rule("1 · Sixty notes, and five questions that text search misses")
        self._out.print(
            f"{report.remembered} memories stored in {report.seconds:.1f} s, with the loading of the embedder: "
            f"{stats.concepts:,} concepts,\n"
            f"{stats.mentions:,} mentions, {stats.vectors} vectors. No language model is called. "
            "The notes and questions were written\n"
            "for this demo; docs/evidence.md measures the graph on real memories.",
            style="dim",
        )
        for leg, reason in report.degraded.items():
            self._out.print(f"{leg} is degraded: {reason}", style="red")
        line = legend()
        line.append("★ the answer   ", style="bold").append("+ new", style="green")
        self._out.print(line)

    def question(
        self,
        number: int,
        question: DemoQuestion,
        hybrid: Recall,
        default: Recall,
        dense: Recall,
        why: Explanation | None,
    ) -> None:
        """Print one question: the hits of both recipes beside each other, dense search alone, the path of the graph."""
        self._out.print()
        self._out.print(f"{number}. {question.query}", style="bold")
        table = new_table(padding=(0, 2, 0, 0))
        side = min(_SIDE, (self._out.width - 4) // 2)
        for name in ("without the graph (hybrid)", f"with the graph (default, {default.regime})"):
            table.add_column(name, width=side, no_wrap=True, header_style="dim")
        ids = {hit.id for hit in hybrid}
        for place in range(max(len(hybrid), len(default))):
            left = _cell(hybrid[place], question, full_score([hybrid]), None, side) if place < len(hybrid) else ""
            right = _cell(default[place], question, full_score([default]), ids, side) if place < len(default) else ""
            table.add_row(left, right)
        self._out.print(table)
        self._cli.print_lines(degraded_lines(default.degraded))
        if why is not None:
            memory = next(hit.memory for hit in default if hit.memory.id == why.id)
            self._out.print(f"  answer  {one_line(memory.text, self._out.width - 11)}")
            self._out.print(_alone(dense, question, self._out.width - 60))
            self._out.print(_path(why))

    def why_not(self, missed: str, why: Explanation) -> None:
        """Print why the seed recipe does not return the answer of the first question, although its graph found it."""
        self._rule(f"Question 1 with the recipe seed: why {missed} is not a hit, although the graph finds it first")
        self._out.print(str(why))

    def reaches(self, reaches: Sequence[Reach]) -> None:
        """Print what each leg can do to the first hits, before any question is asked."""
        from semmem.interfaces.cli.commands.reach import show_reach

        self._rule("Reach: what each leg can change, computed from the recipe alone")
        for one in reaches:
            show_reach(self._cli, one)
            self._out.print()

    def folder(self, root: Path, sections: int) -> None:
        """Say which folder comes next."""
        self._rule(f"2 · The same with {root.name or root}")
        if not sections:
            self._out.print(f"No .md, .txt or .rst file below {root}.")

    def remembered(self, report: IngestReport) -> None:
        """Say how long the folder took."""
        rate = report.read / report.seconds if report.seconds else 0.0
        self._out.print(
            f"{report.remembered} sections remembered in {report.seconds:.1f} s ({rate:.0f}/s).", style="dim"
        )
        if report.rejected:
            self._out.print(f"{len(report.rejected)} left out; the first: {report.rejected[0].reason}")

    def headings(self, chosen: int, tried: int) -> None:
        """Say where the questions come from, so that nobody takes them for a measurement."""
        self._out.print(
            f"The questions are headings: the {chosen} of {tried} tried for which the graph brings in the most. "
            "Ask your own with --ask.",
            style="dim",
        )

    def closing(self, seconds: float) -> None:
        """Say how long it took and what to try next."""
        self._rule(f"Done in {seconds:.1f} s; the store of the demo is deleted")
        for line in (
            'semmem remember "…" --title "…"      semmem recall "…"      semmem explain ID --query "…"',
            "semmem demo --data FOLDER            semmem reach --recipe default -k 10      semmem doctor",
        ):
            self._out.print(line)

    def _rule(self, title: str) -> None:
        from rich.rule import Rule

        self._out.print()
        self._out.print(Rule(styled(title, style="bold"), align="left", style="dim"))


def _cell(hit: Hit, question: DemoQuestion, full: float, ids: set[str] | None, side: int) -> Text:
    mark, style = " ", ""
    if hit.memory.id == question.answer:
        mark, style = "★", "bold"
    elif ids is not None and hit.id not in ids:
        mark, style = "+", "green"
    cell = styled(f"{hit.rank} {mark} {hit.score:.3f} ", style=style)
    cell.append_text(bar(hit.components, full, _BAR))
    cell.append(f" {one_line(_name(hit), side - 12 - _BAR)}", style=style)
    return cell


def _name(hit: Hit) -> str:
    """Return what a person would call the memory: its title, with the file where it comes from one, else its text."""
    memory = hit.memory
    if memory.title is None:
        return memory.text
    return f"{memory.title} · {Path(memory.source).stem}" if memory.source else memory.title


def _path(why: Explanation) -> Text:
    """Return the path that the graph took to a memory."""
    line = styled("  path    ", style="dim")
    if why.path:
        line.append(why.path[0].start, style="not dim")
        for step in why.paths[0]:
            line.append(" → ", style="dim").append(step.by, style="green").append(" → ", style="dim")
            line.append(step.to, style="bold")
    return line


def _alone(dense: Recall, question: DemoQuestion, width: int) -> Text:
    """Return one line of contrast: what dense search alone shows first, and where it has the answer."""
    if not dense:
        return styled("  dense   search alone finds nothing", style="dim")
    line = f"search alone shows first: {one_line(_name(dense[0]), width)}"
    if question.answer is not None:
        rank = next((hit.rank for hit in dense if hit.memory.id == question.answer), None)
        line += f"; the answer has rank {rank}" if rank else "; it does not find the answer"
    return styled(f"  dense   {line}", style="dim")


_K = 10

_NEEDED = 96
"""Columns that the whole table takes; in a narrower terminal it does without the fusion."""

_LEGS = ("lexical", "dense", "graph")


def compared(mem: Semmem, namespace: str) -> list[dict[str, Any]]:
    """Return for every recipe the rank of each question's answer among the first ten (None: not there), and its reach.

    ``reach`` maps a regime to a class for each leg; a leg that the recipe does not have is left out.
    """
    from semmem.model.recipe import RECIPES
    from semmem.rank_cap import reach

    rows = []
    for name, plan in RECIPES.items():
        answers = [mem.recall(q.query, namespace=namespace, limit=_K, recipe=name) for q in QUESTIONS]
        ranks = [
            next((hit.rank for hit in result if hit.memory.id == question.answer), None)
            for result, question in zip(answers, QUESTIONS, strict=True)
        ]
        regimes = reach(plan, _K).regimes
        rows.append(
            {
                "recipe": name,
                "fusion": plan.fusion,
                "ranks": ranks,
                "answered": sum(rank is not None for rank in ranks),
                "degraded": {leg: why for result in answers for leg, why in result.degraded.items()},
                "reach": {
                    r: {leg: leg_reach.class_ for leg, leg_reach in of.legs.items()} for r, of in regimes.items()
                },
            }
        )
    return rows


def show_compared(cli: CommandLine, rows: list[dict[str, Any]]) -> None:
    """Print the table, a line a recipe, and one more where a second regime has another reach."""
    cli.out.print(
        f"Every recipe on the demo's sixty notes: ranks of the five answers among the first {_K}", style="bold"
    )
    table = new_table(padding=(0, 2, 0, 0), header_style="dim")
    narrow = cli.out.width < _NEEDED
    for name in ("recipe", *(() if narrow else ("fusion",)), "answers at rank", "of 5", "regime", *_LEGS):
        table.add_column(name, no_wrap=name not in ("answers at rank", "of 5"), min_width=9 if "rank" in name else None)
    for row in rows:
        ranks = " ".join("-" if rank is None else str(rank) for rank in row["ranks"])
        head = [row["recipe"], *([] if narrow else [row["fusion"]]), ranks, str(row["answered"])]
        before: dict[str, str] | None = None
        for regime, legs in row["reach"].items():
            if legs == before:
                continue
            same = all(other == legs for other in row["reach"].values())
            classes = [styled(legs[leg], CLASS_COLOURS[legs[leg]]) if leg in legs else "" for leg in _LEGS]
            table.add_row(*head, "any" if same else regime, *classes)
            head, before = [""] * len(head), legs
    cli.out.print(table)
    cli.out.print("- not among the first ten. The classes are proven from the recipe alone: semmem reach.", style="dim")
    degraded = {leg: why for row in rows for leg, why in row["degraded"].items()}
    cli.print_lines(degraded_lines(degraded))
