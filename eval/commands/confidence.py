"""The command that fits and measures confidence."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from eval.commands.interface import AsJson, app, err, error_line, opened, say
from eval.datasets import DatasetError, load
from eval.experiments.evidence.provenance import COMMIT
from semmem.embedders import fitted as fitted_curves

__all__ = ["confidence"]


@app.command()
def confidence(
    data: Annotated[list[str], typer.Option(help="a data set with questions; repeatable, at least two")],
    floors: Annotated[
        bool, typer.Option("--floors", help="measure floors: answers kept, prompts without an answer dropped")
    ] = False,
    embedder: Annotated[str | None, typer.Option(help="the embedder of the stores; minilm where installed")] = None,
    keep: Annotated[
        bool, typer.Option("--keep", help="let recalls with this embedder on this machine use the fitted curve")
    ] = False,
    out: Annotated[Path | None, typer.Option(help="a file for the result: aggregates, no text")] = None,
    json_: AsJson = False,
) -> None:
    """Measure how well the confidence of a recall separates questions with an answer from questions without one.

    It fits the curve of confidence to the embedder and prints it below the tables. With --keep, recalls on this machine
    use it for this embedder, and as the floor of "auto" the highest of .05, .1, … .5 that keeps 95 % of the answered
    questions, averaged over the sets.
    """
    import eval.confidence as curves
    import eval.floors as by_floor

    with error_line():
        if keep and floors:
            raise DatasetError(
                "Give --keep without --floors: it keeps the curve, with a floor chosen by its own questions."
            )
        corpora = [load(name) for name in data]
        if len({corpus.name for corpus in corpora}) < 2:
            raise DatasetError("Give at least two sets: each is measured by what was fitted on the others.")
        questions = {corpus.name: [query.text for query in corpus.queries] for corpus in corpora}
        sets: dict[str, Any] = {}
        made_by: Mapping[str, Any] = {}
        for corpus in corpora:
            others = {name: texts for name, texts in questions.items() if name != corpus.name}
            with opened(corpus, None, embedder) as mem:
                if not mem.stats().memories:
                    mem.remember_many(corpus.memories)
                    mem.maintain()
                ask = by_floor.measure if floors else curves.ask
                sets[corpus.name] = ask(mem, corpus, others, err.print)
                made_by = mem.store.vectors.embedder() or {}
        options = ["--floors"] * floors + ["--keep"] * keep + [f"--embedder {embedder}"] * (embedder is not None)
        words = ["python -m eval confidence", *options, *(f"--data {name}" for name in data)]
        result = {"command": " ".join(words), "commit": COMMIT, **(by_floor if floors else curves).report(sets)}
        try:
            if keep:
                floor = by_floor.chosen(curves.kept_by_floor(sets, result, by_floor.FLOORS))
                fitted = curves.fitted_curve(result, floor)
                file = fitted_curves.keep(made_by["name"], made_by["fingerprint"], fitted)
                result["kept"] = {"embedder": made_by["name"], "floor": floor}
        finally:  # what was measured is printed, although a file cannot be written
            say(json.dumps(result, indent=1) if json_ else (by_floor if floors else curves).markdown(result))
        if out is not None:
            out.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
        if keep:
            err.print(
                f'Kept for {made_by["name"]}, with the floor {floor:g} for min_confidence="auto", in {file}: '
                "recalls of processes that begin from now on use it; remove that file to undo it.",
                soft_wrap=True,
            )
