"""The command that runs the benchmark of speed and space."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from eval.commands.interface import RUNS, AsJson, Seed, app, err, error_line, say
from eval.datasets import DatasetError

__all__ = ["bench"]


@app.command()
def bench(
    sizes: Annotated[str, typer.Option(help="numbers of memories, such as 1000,10000,1000000")] = "1000,10000,100000",
    shape: Annotated[str, typer.Option(help="what is generated: notes, or titled passages")] = "notes",
    namespaces: Annotated[
        int, typer.Option(min=1, max=1000, help="namespaces that share the memories; the largest is asked")
    ] = 1,
    questions: Annotated[int, typer.Option(min=1, help="different questions, asked in every measurement")] = 50,
    rounds: Annotated[int, typer.Option(min=1, help="how often each question is asked")] = 2,
    seed: Seed = 0,
    beside: Annotated[
        list[str] | None,
        typer.Option(help="only this system beside semmem, or none; repeatable; default: all installed"),
    ] = None,
    path: Annotated[
        bool, typer.Option("--path", help="also count files, functions and round trips of each verb")
    ] = False,
    out: Annotated[Path | None, typer.Option(help="folder of the store and the report; default: in eval/runs")] = None,
    json_: AsJson = False,
) -> None:
    """Measure recall, ingest and space on generated memories, beside other systems where they are installed.

    The same command resumes an interrupted run. The folder gets bench.json, bench.md and bench.svg.
    """
    from eval.bench.generator import SHAPES
    from eval.bench.others import OTHERS
    from eval.bench.report import markdown, plot
    from eval.bench.run import bench as run

    with error_line():
        try:
            counts = [int(size) for size in sizes.split(",")]
        except ValueError:
            counts = []
        if not counts or min(counts) < 1:
            raise DatasetError(f"--sizes must be whole numbers above 0, such as 1000,10000, not {sizes!r}.")
        if shape not in SHAPES:
            raise DatasetError(f"--shape must be one of {', '.join(SHAPES)}, not {shape!r}.")
        if shape == "titled" and namespaces > 1:
            raise DatasetError("Titled passages name each other, so they share one namespace; leave --namespaces out.")
        systems = [name for name in beside or OTHERS if name != "none"]
        if unknown := sorted(set(systems) - set(OTHERS)):
            raise DatasetError(f"There is no system {unknown[0]!r}; there are {', '.join(OTHERS)}, none.")
        folder = out or RUNS / "bench" / f"{'' if shape == 'notes' else shape + '-'}{seed}-{namespaces}"
        result = run(
            counts,
            folder,
            shape=shape,
            seed=seed,
            namespaces=namespaces,
            questions=questions,
            rounds=rounds,
            beside=systems,
            say=lambda line: err.print(line, soft_wrap=True, markup=False),
        )
        if path:
            from eval.path import measured

            result["path"] = [
                [f"{store}: {verb}", counts] for store, verbs in measured().items() for verb, counts in verbs.items()
            ]
        text = markdown(result)
        (folder / "bench.json").write_text(json.dumps(result, indent=1), encoding="utf-8")
        (folder / "bench.md").write_text(text, encoding="utf-8")
        (folder / "bench.svg").write_text(plot(result), encoding="utf-8")
        say(json.dumps(result) if json_ else text)
