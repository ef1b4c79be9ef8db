"""The command `reach`: which legs of a recipe can change the top k, proven from its numbers alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

import typer

from semmem.interfaces import wire
from semmem.interfaces.cli.context import CommandLine
from semmem.interfaces.cli.options import Narrow
from semmem.interfaces.cli.show import CLASS_COLOURS, new_table, styled
from semmem.model.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Sequence

    from semmem.client.probe.stages import Probe
    from semmem.model.recipe import Recipe
    from semmem.rank_cap.report import Reach
    from semmem.rank_cap.score_ranges import ShareRange

__all__ = ["probe", "reach", "show_reach"]

Required = Literal["boost-only", "possible", "guaranteed"]
_NAMES = ("lexical", "dense", "graph")


def reach(
    cli: CommandLine,
    k: Annotated[int, typer.Option("-k", "--k", "--limit", help="The cut-off: the first k hits.")] = 10,
    weights: Annotated[
        str | None, typer.Option(help="Weights instead of a recipe: 1,1,.35 or lexical=1,dense=1,graph=.35.")
    ] = None,
    rank_constants: Annotated[str | None, typer.Option(help="One rank constant per weight: 60,60,60.")] = None,
    scores: Annotated[
        list[str] | None,
        typer.Option(help="In tm2c2, between which scores a leg's lie: dense=0:1. Repeatable; without it, anything."),
    ] = None,
    require: Annotated[Required | None, typer.Option(help="Exit with 3 if a leg falls short of this.")] = None,
) -> None:
    """Say which legs can bring a memory of their own into the top k, before any query is run.

    It needs no store; with --namespace it takes the recipe as the settings of that namespace change it. A leg is
    unreachable (it changes nothing), boost-only (it can move memories that other legs found, and bring in none of its
    own), possible (some lists let a memory of its own in) or guaranteed (no lists keep its first memory out). Depths
    are those of a recall of k hits. The assumptions are named under the table, because without a question the lengths
    of the lists and the folded hits are unknown.
    """
    if (weights is None) != (rank_constants is None):
        raise InvalidInput("--weights and --rank-constants go together: one rank constant for each weight.")
    if weights is not None and rank_constants is not None:
        if cli.recipe:
            raise InvalidInput("Give --recipe, or --weights with --rank-constants, not both.")
        if scores:
            raise InvalidInput("--weights are fused by rank, and --scores are for the fusion tm2c2; leave one out.")
        from semmem.rank_cap import reach_of

        report = reach_of(_by_leg(weights, "--weights"), _by_leg(rank_constants, "--rank-constants"), k)
    else:
        from semmem.rank_cap import reach as reach_in

        plan = _recipe(cli)
        report = reach_in(plan, k, ranges=_ranges(plan, scores or ()))
    cli.give(report, lambda: show_reach(cli, report))
    if require is not None and (short := report.short_of(require, called=weights is None)):
        for regime, leg, leg_class in short:
            cli.say(f"{leg} is {leg_class} in regime {regime}, short of {require} at k = {k}.")
        raise typer.Exit(wire.EXIT_REACH)


def _recipe(cli: CommandLine) -> Recipe:
    """Return the recipe by name, else that of the namespace that was given, else that of the settings."""
    from semmem.config import Settings
    from semmem.model.recipe import recipe
    from semmem.read.overrides import recipe_of

    if cli.recipe:
        return recipe(cli.recipe)
    if not cli.named:
        return recipe_of(Settings.load())
    with cli.connect() as mem:
        plan, own, wrong = mem.searched_by(namespace=cli.namespace)
    if own and not cli.json:
        text = ", ".join(f"{name} {value}" for name, value in own.items())
        cli.out.print(f"In namespace {cli.namespace}: {text}.")
    if wrong:
        cli.say(f"{wrong[0].upper()}{wrong[1:]}.".replace("..", "."))
    return plan


def _ranges(plan: Recipe, scores: Sequence[str]) -> dict[str, ShareRange]:
    """Return the shares that follow from ranges of scores such as `dense=0:1`."""
    from semmem.model.recipe import USUAL_DEPTH
    from semmem.rank_cap.score_ranges import within

    if scores and plan.fusion != "tm2c2":
        raise InvalidInput(
            f"The recipe {plan.name} fuses by {plan.fusion}, in which a range of scores proves nothing; --scores is "
            "for tm2c2, and python -m eval reach RECIPE --data SET reads the shares off lists."
        )
    out: dict[str, ShareRange] = {}
    for text in scores:
        leg, _, span = text.partition("=")
        low, _, high = span.partition(":")
        try:
            least, most = float(low), float(high)
        except ValueError as error:
            raise InvalidInput(f"--scores must be a leg and a range such as dense=0:1, not {text!r}.") from error
        out[leg] = within(plan.fusion, leg, least, most, plan.depths.get(leg, USUAL_DEPTH))
    return out


def _by_leg(text: str, option: str) -> dict[str, float]:
    """Read `1,1,.35` (lexical, dense, graph, then leg4 and on) or `name=number` pairs."""
    out: dict[str, float] = {}
    for place, part in enumerate(text.split(",")):
        name, named, number = part.rpartition("=")
        key = name.strip() if named else _NAMES[place] if place < len(_NAMES) else f"leg{place + 1}"
        try:
            out[key] = float(number)
        except ValueError as error:
            raise InvalidInput(f"{option} must be numbers such as 1,1,.35, not {part.strip()!r}.") from error
    return out


def show_reach(cli: CommandLine, report: Reach) -> None:
    """Print the table, one line a leg and regime; then what would change a class, and what boost-only means."""
    from semmem.rank_cap.report import describe

    cli.out.print(f"Reach of recipe {report.recipe} at k = {report.k}", style="bold")
    table = new_table(padding=(0, 2, 0, 0), header_style="dim")
    for name in ("regime", "leg", "class"):
        table.add_column(name, no_wrap=True)
    for name in ("1st earns", "lower bar", "upper bar", "may enter", "must enter"):
        table.add_column(name, justify="right", min_width=6)  # in a narrow terminal the heading takes two lines
    changes: dict[str, list[str]] = {}
    for row in describe(report):
        table.add_row(
            row["regime"],
            row["leg"],
            styled(row["class"], CLASS_COLOURS[row["class"]]),
            *(row[name] for name in ("first place", "lower bar", "upper bar")),
            *(row[name] for name in ("ranks that can enter", "ranks guaranteed")),
        )
        if row["what would change it"]:
            where = "" if row["regime"] == "any" else f" ({row['regime']})"
            changes.setdefault(row["what would change it"], []).append(row["leg"] + where)
    cli.out.print(table)
    for change, legs in changes.items():
        cli.out.print(f"{', '.join(legs)}: {change.replace(': ', ' with ', 1)}", style="dim")
    if any(leg.class_ == "boost-only" for regime in report.regimes.values() for leg in regime.legs.values()):
        cli.out.print(
            styled("boost-only", "red").append(
                f": the leg moves memories that other legs found, and brings none of its own into the top {report.k}.",
                "not red",
            )
        )
    if report.assumptions:
        cli.out.print(f"Assumptions: {'; '.join(report.assumptions)}.", style="dim")


_WIDTHS = {"dropped at": 9, "reach there": 10, "also listed by": 12}
"""The longest word that stands in a column: where the terminal is narrow, headings and lists take more lines."""


def probe(
    cli: CommandLine,
    k: Annotated[int, typer.Option("-k", "--k", "--limit", help="The cut-off: the first k hits.")] = 10,
    leg: Annotated[str | None, typer.Option(help="Only this leg.")] = None,
    question: Annotated[str | None, typer.Option(help="A question of your own, with --text and --leg.")] = None,
    text: Annotated[str | None, typer.Option(help="A memory of your own that the leg finds with --question.")] = None,
    *,
    narrow: Narrow,
) -> None:
    """Store a memory that only one leg finds, recall it, and show the stage that dropped it, if any.

    It does so for each leg of the recipe and each regime, in a scratch namespace that is dropped afterwards. Exits with
    3 if a memory did not come back.
    """
    if (question is None) != (text is None):
        raise InvalidInput("--question and --text go together: give the question and the memory that answers it.")
    with cli.connect() as mem:
        report = mem.probe(
            recipe=cli.recipe,
            k=k,
            leg=leg,
            witness=(question, text) if question is not None and text is not None else None,
            filters=narrow,
        )
    cli.give(report, lambda: _show(cli, report))
    if report.dropped:
        for one in report.dropped:
            cli.say(f"{one.leg} ({one.regime}) was dropped at the stage {one.dropped}: {one.why}")
        raise typer.Exit(wire.EXIT_REACH)


def _show(cli: CommandLine, report: Probe) -> None:
    """Print one line a witness, then what it means to be dropped where it was."""
    from semmem.client.probe.stages import STAGES

    cli.out.print(f"Probe of recipe {report.recipe} at k = {report.k}, in {report.seconds:.1f} s", style="bold")
    table = new_table(padding=(0, 2, 0, 0), header_style="dim")
    for name in ("regime", "leg", "came back", "dropped at", "rank in leg", "place", "reach there", "also listed by"):
        table.add_column(name, no_wrap=name in ("regime", "leg"), min_width=_WIDTHS.get(name))
    for one in report:
        table.add_row(
            one.regime,
            one.leg,
            styled("yes", "green") if one.returned else styled("no", "red"),
            one.dropped or "",
            "" if one.rank is None else str(one.rank),
            "" if one.place is None else str(one.place),
            one.class_ or "",
            ", ".join(f"{leg} ({rank})" for leg, rank in one.others.items()),
        )
    cli.out.print(table)
    for one in report:
        if one.alone is False and one.returned:
            line = f"{one.leg} ({one.regime}) came back only because another leg listed it too."
            cli.out.print(line, style="yellow")
    for stage in dict.fromkeys(one.dropped for one in report.dropped if one.dropped):
        cli.out.print(f"{stage}, to be passed: {STAGES[stage]}.", style="dim")
    for why in report.left_out.values():
        cli.out.print(why, style="dim")
