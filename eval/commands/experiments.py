"""The commands that run experiments: each makes a plan of conditions and comparisons; one function runs it."""

from __future__ import annotations

import inspect
import json
import re
import shlex
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

from eval.commands.interface import (
    EXIT_REFUSED,
    METRICS,
    RUNS,
    AsJson,
    Base,
    Metrics,
    Seed,
    app,
    err,
    error_line,
    opened,
    progress_bars,
    say,
)
from eval.datasets import DatasetError, is_known_copy, load
from eval.experiments.conditions import TURNS, ConditionError
from eval.experiments.controls import NEIGHBOURS, USUAL
from eval.experiments.plan import Plan, of_ablation, of_fusions, of_history, of_run, of_sweep

__all__ = ["experiment"]


def _conduct(
    plan: Plan,
    command: str,
    line: str,
    *,
    data: Annotated[str, typer.Option(help="folder or file of a known form, or a name under SEMMEM_EVAL_DATA")],
    store: Annotated[str | None, typer.Option(help="URL of a store; default: a store for each data set")] = None,
    embedder: Annotated[str | None, typer.Option(help="minilm, hashing or none; default: what semmem finds")] = None,
    out: Annotated[Path | None, typer.Option(help="folder for results; the same folder again resumes")] = None,
    metric: Metrics = None,
    seed: Seed = 0,
    json_: AsJson = False,
    strict: Annotated[bool, typer.Option(help="exit with code 3 when a comparison is refused")] = False,
    format: Annotated[str | None, typer.Option(help="format of the data, where it is not recognised")] = None,
    namespace: Annotated[str | None, typer.Option(help="namespace of questions that name none")] = None,
    sha256: Annotated[str | None, typer.Option(help="refuse the data unless this is their sha256")] = None,
) -> None:
    """Load the data, open the store, run the plan, write the reports; declare the options of every experiment."""
    from eval.experiments.experiment import conduct
    from eval.experiments.explanations import write_moved
    from eval.experiments.ingredients import is_of_ingredients, table_of_worth
    from eval.reports.page import write_reports
    from eval.reports.summary import headline
    from eval.reports.verdicts import lines

    conditions, comparisons = plan
    options: dict[str, Any] = {"namespace": namespace} if namespace else {}
    corpus = load(data, format=format, sha256=sha256, **options)
    if corpus.stored and store is None:
        raise DatasetError("Questions about your own store need --store URL, the store they are asked of.")
    if is_known_copy(data, corpus) is False:
        err.print(f"note: {data} is not the copy of that name whose sha256 is known; numbers may differ.")
    label = re.sub(r"[^\w.=~!+-]+", "_", f"{corpus.name} {command} {embedder or ''}").strip("_")
    folder = out or RUNS / label[:120]
    with opened(corpus, store, embedder) as mem, progress_bars() as progress:
        experiment = conduct(
            mem,
            corpus,
            conditions,
            comparisons,
            out=folder,
            metrics=metric or METRICS,
            seed=seed,
            command=command,
            line=line,
            progress=progress,
        )
        write_moved(mem, experiment, {c.name: c for c in conditions}, folder)
    if left_out := experiment.result["corpus"]["notes"]:
        counts = ", ".join(f"{what}: {count}" for what, count in left_out.items())
        err.print(f"note: left out of {corpus.name}: {counts}.", soft_wrap=True)
    summary, page = write_reports(folder)
    if json_:
        typer.echo(json.dumps(experiment.result, indent=1))
    else:
        say(headline(experiment.result))
        whole = [c for c in experiment.result["comparisons"] if c["group"] == "headline"]
        if is_of_ingredients(experiment.result):
            say(table_of_worth(experiment.result))
        else:
            say("\n".join(lines(whole)))
        say(f"{summary}\n{page}")
    if strict and experiment.refused:
        raise typer.Exit(EXIT_REFUSED)


_NOT_WRITTEN = ("out", "json_", "strict", "store")
"""Options that change no number, or that name a place on this machine."""


def written(command: str, parameters: Mapping[str, inspect.Parameter], values: Mapping[str, Any]) -> str:
    """Return the command line of these options, defaults left out; a data set is named as in any clone."""
    words, options = ["python", "-m", "eval", command], list[str]()
    for name, parameter in parameters.items():
        value = values[name]
        if name in _NOT_WRITTEN or value is None or value == parameter.default:
            continue
        if name == "data":
            value = in_a_clone(value)
        flag = f"--{name.replace('_', '-')}"
        if parameter.default is parameter.empty and isinstance(value, list):
            words += value
        elif isinstance(value, bool):
            options.append(flag if value else flag.replace("--", "--no-", 1))
        else:
            options += [word for one in (value if isinstance(value, list) else [value]) for word in (flag, str(one))]
    return shlex.join([*words, *options])


def in_a_clone(data: str) -> str:
    """Return the path of a data set relative to the repository, or its name under SEMMEM_EVAL_DATA."""
    folder = Path(data).resolve()
    root = Path(__file__).resolve().parents[2]
    if not Path(data).exists():
        return data
    return folder.relative_to(root).as_posix() if folder.is_relative_to(root) else folder.name


def experiment(plan_of: Callable[..., tuple[Plan, str]]) -> Callable[..., None]:
    """Make a command of a function that returns a plan: its options, then those of every experiment."""
    own = inspect.signature(plan_of).parameters
    shared = {n: p for n, p in inspect.signature(_conduct).parameters.items() if p.kind is p.KEYWORD_ONLY}

    def command(**values: Any) -> None:
        with error_line():
            plan, label = plan_of(**{name: values[name] for name in own})
            line = written(plan_of.__name__, {**own, **shared}, values)
            _conduct(plan, label, line, **{name: values[name] for name in shared})

    hints = {**get_type_hints(_conduct, include_extras=True), **get_type_hints(plan_of, include_extras=True)}
    merged = [p.replace(kind=p.KEYWORD_ONLY, annotation=hints[n]) for n, p in {**own, **shared}.items()]
    command.__signature__ = inspect.Signature(merged)  # type: ignore[attr-defined]
    command.__annotations__ = {p.name: p.annotation for p in merged}
    command.__name__, command.__doc__ = plan_of.__name__, plan_of.__doc__
    return command


@app.command()
@experiment
def run(
    recipes: Annotated[str, typer.Option(help="comma-separated; the first is the base")] = "default,hybrid,seed",
) -> tuple[Plan, str]:
    """Measure recipes on a data set and compare each with the first."""
    return of_run([r.strip() for r in recipes.split(",") if r.strip()]), f"run {recipes}"


@app.command()
@experiment
def ablate(
    leg: Annotated[list[str] | None, typer.Option(help="leg to leave out; default: each of the recipe's")] = None,
    recipe: Base = "default",
    controls: Annotated[
        bool, typer.Option(help="of the graph: no edges, seeds only, convex without it, a random graph")
    ] = True,
    control: Annotated[
        list[str] | None, typer.Option(help=f"only this control; repeatable: {', '.join((*USUAL, NEIGHBOURS))}")
    ] = None,
) -> tuple[Plan, str]:
    """Measure what a leg is worth, against the recipe without it, or say why these data cannot show it."""
    label = f"ablate {' '.join(leg or ['every leg'])} recipe {recipe}{'' if controls else ' without controls'}"
    label += f" over {', '.join(control)}" if control else ""
    if control and not controls:
        raise ConditionError("Pass either --control or --no-controls.")
    return of_ablation(recipe, leg or (), controls=control or (USUAL if controls else ())), label


@app.command(epilog="Settings: " + "; ".join(f"{name} ({what})" for name, what in TURNS.items()))
@experiment
def sweep(
    settings: Annotated[list[str], typer.Argument(help="NAME=0:2:.05 or NAME=0,1,2; two give every combination")],
    recipe: Base = "default",
) -> tuple[Plan, str]:
    """Measure a setting at several values. The legs are asked once; every value fuses their lists again."""
    return of_sweep(recipe, settings), f"sweep {' '.join(settings)} recipe {recipe}"


@app.command()
@experiment
def fusions(recipe: Base = "default") -> tuple[Plan, str]:
    """Compare the fusion formulas at the same weights of the legs."""
    return of_fusions(recipe), f"fusions recipe {recipe}"


@app.command()
@experiment
def ingredients(
    recipe: Base = "default",
    only: Annotated[list[str] | None, typer.Option(help="a word of an ingredient's name; repeatable")] = None,
) -> tuple[Plan, str]:
    """Switch off one ingredient after the other and print what each is worth, in one table (summary.md)."""
    from eval.experiments.ingredients import of_ingredients

    return of_ingredients(recipe, only or ()), f"ingredients {' '.join(only or ['all'])} recipe {recipe}"


@app.command()
@experiment
def history(recipe: Base = "default") -> tuple[Plan, str]:
    """Replay the ablation that once called the graph useless: list excluded, boost-only, weights swept, with reach."""
    return of_history(recipe), f"history recipe {recipe}"


@app.command()
@experiment
def changes() -> tuple[Plan, str]:
    """Measure each change from the first default recipe to the second by itself, and settings that were rejected."""
    from eval.changes import of_changes

    return of_changes(), "changes"
