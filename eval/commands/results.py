"""The commands that keep results, cite them in a decision record, compare them, and write reports of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from eval.commands.door import METRICS, RESULTS, AsJson, Metrics, Seed, app, error_line, say, table
from eval.datasets import DatasetError

__all__ = ["adr", "compare", "keep", "report"]


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
def compare(a: str, b: str, metric: Metrics = None, seed: Seed = 0, json_: AsJson = False) -> None:
    """Compare two results on the same questions: A and B are result folders, or FOLDER:CONDITION."""
    from eval.experiments.evidence.between import between

    with error_line():
        rows = between(a, b, metric or METRICS, seed=seed)
        if json_:
            typer.echo(json.dumps(rows, indent=1))
            return
        table(["metric", "A", "B", "verdict"], [[r["metric"], r["a"], r["b"], r["sentence"]] for r in rows])


@app.command()
def report(folder: Annotated[Path, typer.Argument(help="a result folder")]) -> None:
    """Write summary.md and report.html again from a result folder."""
    from eval.reports.page import write_reports

    with error_line():
        if not (folder / "result.json").is_file():
            raise DatasetError(f"{folder} holds no result.json; run an experiment with --out {folder} first.")
        for path in write_reports(folder):
            say(path)
