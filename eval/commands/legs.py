"""The command that compares recipes with each of their legs alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from eval.commands.interface import AsJson, Metrics, app, error_line, opened, say
from eval.datasets import load
from eval.experiments.evidence.provenance import COMMIT

__all__ = ["best_leg"]


@app.command("best-leg")
def best_leg(
    data: Annotated[list[str], typer.Option(help="a data set with questions; repeatable")],
    recipes: Annotated[str, typer.Option(help="names of recipes, separated by commas")] = "default",
    embedder: Annotated[str | None, typer.Option(help="the embedder of the stores; minilm where installed")] = None,
    metric: Metrics = None,
    levels: Annotated[bool, typer.Option("--levels", help="intervals of the values in place of the best leg")] = False,
    lists: Annotated[
        Path | None, typer.Option(help="a folder that keeps the lists, so that they are asked once")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="a file for the result: aggregates, no text")] = None,
    json_: AsJson = False,
) -> None:
    """Compare recipes with each of their legs alone, by stratum; bold where a recipe is .02 below its best leg."""
    from eval.best_leg import METRICS, measured, table
    from eval.statistics.comparison import cutoff

    with error_line():
        metrics, rows = metric or METRICS, []
        for one in metrics:
            cutoff(one)
        for name in data:
            corpus = load(name)
            with opened(corpus, None, embedder) as mem:
                rows += measured(mem, corpus, recipes.split(","), metrics, lists=lists)
        words = ["python -m eval best-leg", *(f"--data {name}" for name in data), f"--recipes {recipes}"]
        words += [f"--metric {one}" for one in metric or ()]
        words += [f"--embedder {embedder}"] * (embedder is not None)
        result: dict[str, Any] = {"command": " ".join(words), "commit": COMMIT, "rows": [row.as_dict() for row in rows]}
        if out is not None:
            out.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
        if json_:
            say(json.dumps(result, indent=1))
            return
        head = ["set", "stratum", "questions", "recipe", *metrics]
        for line in (head, ["---"] * len(head), *table(rows, levels=levels)):
            say(f"| {' | '.join(line)} |")
