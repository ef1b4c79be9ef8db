"""Commands that check whether the expected numbers still hold, and what each leg can do at all."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from eval.commands.interface import AsJson, app, err, error_line, opened, say, table
from eval.datasets import DatasetError, load

if TYPE_CHECKING:
    from semmem.model.recipe import Recipe
    from semmem.rank_cap.score_ranges import ShareRange

__all__ = ["gate", "path", "reach"]


@app.command()
def gate(
    expected: Annotated[Path | None, typer.Option(help="file of expected numbers; default: eval/expected.toml")] = None,
    data: Annotated[str | None, typer.Option(help="check only this data set")] = None,
    update: Annotated[bool, typer.Option("--update", help="write the measured values into the file")] = False,
    json_: AsJson = False,
) -> None:
    """Measure again what eval/expected.toml expects; exit with code 1 when a metric fell by more than its tolerance."""
    from eval.experiments.evidence.gate import EXPECTED, rewritten
    from eval.experiments.evidence.gate_run import run_gate

    with error_line():
        checks, absent = run_gate(expected or EXPECTED, data, opened)
        rows = [
            [
                "OK" if c.ok else "FAIL",
                c.expected.data,
                " less ".join(c.expected.conditions),
                c.expected.group,
                c.expected.metric,
                f"{c.measured:.4f}",
                f"{c.expected.value:.4f}",
                f"{c.expected.tolerance:g}",
            ]
            for c in checks
        ]
        head = ["", "data", "recipe", "questions", "metric", "measured", "expected", "tolerance"]
        if json_:
            typer.echo(json.dumps([dict(zip(["verdict", *head[1:]], r, strict=True)) for r in rows], indent=1))
        else:
            table(head, rows)
        for name in absent:
            err.print(f"skipped: {name} is not here")
        if not checks:
            raise DatasetError("Nothing was checked: none of the data sets is here.")
        if update:
            file = expected or EXPECTED
            file.write_text(rewritten(file.read_text(encoding="utf-8"), checks), encoding="utf-8")
    if not update and not all(c.ok for c in checks):
        raise typer.Exit(1)


@app.command()
def reach(
    recipe: Annotated[str, typer.Argument(help="RECIPE, RECIPE~leg, or RECIPE+leg with a declared one")] = "default",
    k: Annotated[int, typer.Option("-k", "--k", help="cut-off")] = 10,
    system: Annotated[str | None, typer.Option(help="another system's fusion: a name, all, or your .toml")] = None,
    weights: Annotated[str | None, typer.Option(help="your own weights for that system, such as .7,.3")] = None,
    data: Annotated[
        str | None, typer.Option(help="a data set: what places earned there bounds a fusion that reads scores")
    ] = None,
    json_: AsJson = False,
) -> None:
    """Compute what each leg of a recipe, or of another system, can do to the top k; no retrieval is measured."""
    from eval.experiments.conditions import named
    from eval.systems import system_report
    from semmem.rank_cap import reach as reach_at
    from semmem.rank_cap.report import describe

    with error_line():
        if data is not None and system is not None:
            raise DatasetError("--data is for a recipe of semmem; the runs of a system are compared by `compare`.")
        if system is not None:
            say(system_report(system, k, weights=weights, json=json_))
            return
        plan = named(recipe).recipe
        ranges = None if data is None else _seen(plan, k, data)
        report = reach_at(plan, k, ranges=ranges)
        if json_:
            typer.echo(json.dumps(report.as_dict(), indent=1))
            return
        rows = describe(report)
        table(list(rows[0]), [list(r.values()) for r in rows])


def _seen(plan: Recipe, k: int, data: str) -> dict[str, ShareRange]:
    """Return between which shares the places of each leg earned, over the questions of a data set."""
    from eval.experiments.lists import ask_all
    from eval.experiments.runner import ingest
    from eval.experiments.seen_shares import ranges_of
    from semmem.model.leg_scores import reads_scores
    from semmem.model.recipe import deep_enough

    if not any(reads_scores(plan.fusion, leg) for leg in plan.legs):
        raise DatasetError(f"The recipe {plan.name} fuses by rank, so its reach needs no data set; leave out --data.")
    corpus = load(data)
    plan = deep_enough(plan, k)
    with opened(corpus, None, None) as mem:
        ingest(mem, corpus)
        asked, _ = ask_all(mem, corpus.queries, [plan])
    return ranges_of(plan, asked.values())


@app.command()
def path(
    url: Annotated[list[str] | None, typer.Option(help="an empty store; repeatable; default: two of its own")] = None,
    trips: Annotated[
        bool, typer.Option("--trips", help="also print the statements of each verb's round trips")
    ] = False,
    files: Annotated[
        bool, typer.Option("--files", help="also print the files that each verb enters, in order")
    ] = False,
    json_: AsJson = False,
) -> None:
    """Count the files and functions of semmem that each verb enters, its calls and its round trips to the store."""
    from eval.path import measured

    with error_line():
        stores = measured(url or ())
        if json_:
            typer.echo(json.dumps(stores, indent=1))
            return
        head = ["files", "functions", "calls", "round_trips"]
        rows = [[v, store, *(c[n] for n in head)] for store, verbs in stores.items() for v, c in verbs.items()]
        table(["verb", "store", *(name.replace("_", " ") for name in head)], rows)
        for key in [name for name, show in (("trips", trips), ("entered", files)) if show]:
            for store, verbs in stores.items():
                for verb, counts in verbs.items():
                    say(f"{store}, {verb}: {', '.join(f'{n} {what}' for what, n in counts[key].items())}")
