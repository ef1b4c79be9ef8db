"""The benchmark of speed and space, and its other cases: growth, starts, second day, reads, a mixed load."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Annotated

import typer

from eval.commands.interface import RUNS, AsJson, Seed, app, err, error_line, say
from eval.datasets import DatasetError

__all__ = ["bench"]

cases = typer.Typer(invoke_without_command=True)
app.add_typer(cases, name="bench")


@cases.callback()
def bench(
    ctx: typer.Context,
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
    if ctx.invoked_subcommand is not None:
        return
    from eval.bench.generator import SHAPES
    from eval.bench.others import OTHERS
    from eval.bench.report import markdown, plot
    from eval.bench.run import bench as run

    with error_line():
        counts = _counts(sizes)
        if shape not in SHAPES:
            raise DatasetError(f"--shape must be one of {', '.join(SHAPES)}, not {shape!r}.")
        if shape == "titled" and namespaces > 1:
            raise DatasetError("Titled passages name each other, so they share one namespace; leave --namespaces out.")
        systems = [name for name in beside or OTHERS if name != "none"]
        if unknown := sorted(set(systems) - set(OTHERS)):
            raise DatasetError(f"There is no system {unknown[0]!r}; there are {'; '.join([*OTHERS, 'none'])}.")
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


def _counts(sizes: str) -> list[int]:
    try:
        counts = [int(size) for size in sizes.split(",")]
    except ValueError:
        counts = []
    if not counts or min(counts) < 1:
        raise DatasetError(f"--sizes must be whole numbers above 0, such as 1000,10000, not {sizes!r}.")
    return counts


@cases.command("scale")
def scale_(
    data: Annotated[list[str], typer.Option(help="a data set; repeatable")],
    sizes: Annotated[str, typer.Option(help="memories in the namespace, rising")] = "6000,100000",
    recipe: Annotated[str, typer.Option(help="the recipe to ask by")] = "default",
) -> None:
    """What of a recall grows with its namespace, whose memories are copies of data sets."""
    from eval.bench.scale import scale

    with error_line():
        say(json.dumps(scale(data, _counts(sizes), recipe)))


@cases.command("starts")
def starts_(
    runs: Annotated[int, typer.Option(min=1, help="processes that each row is the median of")] = 9,
    url: Annotated[str | None, typer.Option(help="the store; default: a SQLite file of its own")] = None,
    cold: Annotated[int, typer.Option(min=0, help="time the first recall over so many memories instead")] = 0,
    json_: AsJson = False,
) -> None:
    """Seconds to the first answers of `semmem mcp` and of hooks beside a server, each in a fresh process."""
    from eval.bench.starts import show, starts

    with error_line():
        times = starts(runs, url, cold)
    say(json.dumps(times) if json_ else show(times, runs))


@cases.command("second-day")
def second_day_(
    memories: Annotated[int, typer.Option(min=1, help="made memories")] = 100_000,
    dimensions: Annotated[int, typer.Option(min=1, help="of each vector")] = 64,
) -> None:
    """Seconds of copy, rebuild, backup and restore, after which hashes and answers must be the same."""
    from eval.bench.second_day import second_day
    from semmem.model.serialization import plain

    with error_line():
        say(json.dumps(plain(second_day(memories, dimensions)), indent=1))


@cases.command("reads")
def reads_(
    memories: Annotated[int, typer.Option(min=100, help="titled passages, of which a hundredth is changed")] = 100_000,
    folder: Annotated[Path | None, typer.Option(help="where the store is, or is made; kept")] = None,
) -> None:
    """Milliseconds of stats, of each order of a list, and of recalls of now and of an earlier time."""
    from eval.bench.reads import reads

    with error_line():
        say(json.dumps(reads(memories, folder), indent=1))


@cases.command("mixed")
def mixed_(
    memories: Annotated[int, typer.Option(min=1, help="memories that each system is filled with")] = 100_000,
    namespaces: Annotated[int, typer.Option(min=1, help="whose sizes, and recalls, follow Zipf's law")] = 1_000,
    seconds: Annotated[float, typer.Option(min=0.1, help="of the load, for each system")] = 60,
    readers: Annotated[int, typer.Option(min=1, help="threads that recall without a pause")] = 8,
    writers: Annotated[int, typer.Option(min=1, help="threads that remember, update and forget")] = 2,
    pace: Annotated[float, typer.Option(min=0, help="writes a second of each writer at most; 0: no pause")] = 2,
    upkeep: Annotated[float, typer.Option(min=0.1, help="seconds from one maintain, or optimize, to the next")] = 600,
    patience: Annotated[float, typer.Option(min=1, help="seconds to fill a system, or to stop it")] = 6 * 3600,
    system: Annotated[
        list[str] | None, typer.Option(help="only this one, others keep their numbers; repeatable; default: all")
    ] = None,
    only_fill: Annotated[bool, typer.Option("--only-fill", help="fill; the next call loads")] = False,
    turns: Annotated[int, typer.Option(min=1, help="divide each load into so many; the systems take turns")] = 1,
    within: Annotated[float, typer.Option(min=0, help="seconds in which the last turn must end; 0: any")] = 0,
    seed: Seed = 0,
    out: Annotated[Path | None, typer.Option(help="folder of stores and report; default: in eval/runs")] = None,
    json_: AsJson = False,
) -> None:
    """Recalls and writes at once, over many namespaces: percentiles, rates, disk, memory and its growth, errors.

    Each system is filled and loaded in a process of its own, one after the other, with the same texts, vectors and
    order of calls. The same command resumes an interrupted run. The folder gets mixed.json, mixed.md and mixed.svg.
    """
    from eval.bench.mixed.load import Plan
    from eval.bench.mixed.report import markdown, picture
    from eval.bench.mixed.run import mixed
    from eval.bench.mixed.systems import SYSTEMS

    with error_line():
        if unknown := sorted(set(system or ()) - set(SYSTEMS)):
            raise DatasetError(f"There is no system {unknown[0]!r}; there are {'; '.join(SYSTEMS)}.")
        plan = Plan(memories, namespaces, seconds, readers, writers, pace, upkeep, patience, seed, turns)
        folder = out or RUNS / "bench" / f"mixed-{memories}-{namespaces}-{seed}"
        result = mixed(
            plan,
            folder,
            system or list(SYSTEMS),
            only_fill=only_fill,
            within_s=within or math.inf,
            say=lambda line: err.print(line, soft_wrap=True, markup=False),
        )
        text = markdown(result)
        (folder / "mixed.json").write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
        (folder / "mixed.md").write_text(text, encoding="utf-8")
        if any("load" in one for one in result["systems"].values()):
            (folder / "mixed.svg").write_text(picture(result), encoding="utf-8")
        say(json.dumps(result) if json_ else text)
