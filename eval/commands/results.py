"""The commands that keep results, cite them in a decision record, compare them, and write reports of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from eval.commands.interface import (
    EXIT_REFUSED,
    METRICS,
    RESULTS,
    AsJson,
    Metrics,
    Seed,
    app,
    err,
    error_line,
    say,
    table,
)
from eval.datasets import DatasetError

if TYPE_CHECKING:
    from eval.experiments.experiment import Experiment

__all__ = ["adr", "compare", "keep", "register", "report"]


@app.command()
def keep(
    folder: Annotated[Path, typer.Argument(help="a result folder")],
    name: Annotated[str, typer.Argument(help="name of the file to write in eval/results")],
) -> None:
    """Copy the aggregate result of a folder to eval/results, where it may be committed and cited."""
    from eval.reports import adr as records

    with error_line():
        path = records.keep(folder, name, RESULTS)
        say(path)


@app.command()
def adr(
    slug: Annotated[str | None, typer.Argument(help="title of the record, as words-joined-by-hyphens")] = None,
    from_: Annotated[str | None, typer.Option("--from", help="a kept result, such as eval/results/NAME.json")] = None,
    comparison: Annotated[str | None, typer.Option(help="name of the comparison; default: the first")] = None,
    index: Annotated[bool, typer.Option("--index", help="write the index of the records again")] = False,
) -> None:
    """Draft a decision record from a kept result, or write the index of the records."""
    from datetime import UTC, datetime

    from eval.reports import adr as records

    root = Path(__file__).resolve().parents[2]
    with error_line():
        if slug and from_:
            today = datetime.now(UTC).date()
            say(records.draft(root / "adr", slug, from_, root, comparison=comparison, today=today))
        elif not index:
            raise DatasetError("Pass a slug and --from RESULT, or --index.")
        if index:
            (root / "adr" / records.INDEX).write_text(records.index(root / "adr"), encoding="utf-8")


@app.command()
def compare(
    results: Annotated[list[str] | None, typer.Argument(help="two result folders, or FOLDER:CONDITION")] = None,
    run: Annotated[
        list[str] | None, typer.Option(help="[NAME=]FILE: what a retriever returned; each is compared with the first")
    ] = None,
    leg: Annotated[
        list[str] | None, typer.Option(help="NAME=FILE: the list of one leg; fused again with and without each")
    ] = None,
    qrels: Annotated[Path | None, typer.Option(help="what is relevant to each question")] = None,
    system: Annotated[str | None, typer.Option(help="whose fusion: a modelled system, or a .toml of your own")] = None,
    fusion: Annotated[str | None, typer.Option(help="which of its fusions; default: the first of these legs")] = None,
    weights: Annotated[str | None, typer.Option(help="weights of the legs, in their order, such as .7,.3")] = None,
    constant: Annotated[float | None, typer.Option(help="rank constant of rank fusion; default: 60")] = None,
    documents: Annotated[int | None, typer.Option(min=1, help="how many documents there were to find")] = None,
    out: Annotated[Path | None, typer.Option(help="folder for the result and its report")] = None,
    metric: Metrics = None,
    seed: Seed = 0,
    json_: AsJson = False,
    strict: Annotated[bool, typer.Option(help="exit with code 3 when a comparison is refused")] = False,
) -> None:
    """Compare runs of any retriever (--run, --leg, --qrels), or two results on the same questions.

    Runs: TREC, the JSON of ranx and BEIR, JSON lines. Judgments: TREC, BEIR's table, ranx, questions with gold_ids.
    """
    with error_line():
        if run or leg:
            if results or qrels is None:
                raise DatasetError("--run and --leg go with --qrels FILE, and without result folders.")
            from eval.foreign.compared import Files, ablated, compared
            from eval.foreign.named import fusion_of, named_paths

            if not leg and (system or fusion or weights or constant is not None):
                raise DatasetError("--system, --fusion, --weights and --constant fuse the lists of --leg; add those.")
            files = Files(named_paths(run or ()), named_paths(leg or ()), qrels, documents)
            metrics = tuple(dict.fromkeys(metric or METRICS))
            if leg:
                asked = fusion_of(list(files.legs), system, fusion, weights, constant)
                experiment = ablated(files, asked, metrics, out=out, seed=seed)
            else:
                experiment = compared(files, metrics, out=out, seed=seed)
            _show(experiment, out, json_)
            if strict and experiment.refused:
                raise typer.Exit(EXIT_REFUSED)
            return
        if len(results or ()) != 2:
            raise DatasetError("Pass two result folders, or --run twice, or --leg for each leg, with --qrels.")
        _between(results or [], metric, seed, json_)


def _show(experiment: Experiment, out: Path | None, json_: bool) -> None:
    from eval.reports.page import write_reports
    from eval.reports.summary import headline, leg_only

    pages = () if out is None else write_reports(out)
    if json_:
        typer.echo(json.dumps(experiment.result, indent=1))
        return
    for what, count in experiment.result["corpus"]["notes"].items():
        err.print(f"note: {what}: {count}.", soft_wrap=True)
    say(headline(experiment.result))
    whole = [c for c in experiment.result["comparisons"] if c["group"] == "headline"]
    rows = [[c["metric"], c["name"], c["sentence"], leg_only(c)] for c in whole]
    table(["metric", "comparison", "verdict", "leg-only (gold)"], rows)
    for page in pages:
        say(page)


def _between(results: list[str], metric: list[str] | None, seed: int, json_: bool) -> None:
    from eval.experiments.evidence.between import between

    a, b = results
    rows, notes = between(a, b, tuple(dict.fromkeys(metric or METRICS)), seed=seed)
    for note in notes:
        err.print(f"note: {note}.", soft_wrap=True)
    if json_:
        typer.echo(json.dumps(rows, indent=1))
        return
    table(["metric", "A", "B", "verdict"], [[r["metric"], r["a"], r["b"], r["sentence"]] for r in rows])


@app.command()
def register(
    results: Annotated[Path | None, typer.Option(help="folder of results; default: eval/results")] = None,
    json_: AsJson = False,
) -> None:
    """Print all that was ever asked in the committed results, and what remains when it is corrected as one family."""
    from eval.reports.register import register as registered

    with error_line():
        folder = results or RESULTS
        if not folder.is_dir():
            raise DatasetError(f"There is no folder {folder}; pass --results FOLDER.")
        whole = registered(folder)
        head = ["result", "tests", "p below .05", "false discovery rate .05", "Holm"]
        if json_:
            typer.echo(json.dumps([dict(zip(head, row, strict=True)) for row in whole.rows()], indent=1))
            return
        table(head, whole.rows())
        say(whole.sentence())


@app.command()
def report(folder: Annotated[Path, typer.Argument(help="a result folder")]) -> None:
    """Write summary.md and report.html again from a result folder."""
    from eval.reports.page import write_reports

    with error_line():
        if not (folder / "result.json").is_file():
            raise DatasetError(f"{folder} holds no result.json; run an experiment with --out {folder} first.")
        for path in write_reports(folder):
            say(path)
