"""Commands for evidence: remake the committed results, measure sets kept apart, write tables of decision records."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from eval.commands.door import METRICS, RESULTS, RUNS, app, error_line, opened, progress_bars, say, table

__all__ = ["evidence", "kept_apart", "tables"]


@app.command()
def evidence(
    data: Annotated[str | None, typer.Option(help="only what is of this set; default: all committed results")] = None,
    only: Annotated[list[str] | None, typer.Option(help="only these, such as controls; repeatable")] = None,
    keep: Annotated[
        bool, typer.Option("--keep", help="put the new results in the place of the committed ones")
    ] = False,
    show: Annotated[bool, typer.Option("--list", help="only say which there are and how each is made")] = False,
) -> None:
    """Make the committed results again and say what differs; exit with code 1 where something does."""
    from eval.experiments.evidence.again import differences, manifest, result_in
    from eval.reports import adr as records

    with error_line():
        every = manifest(data, only or ())
        if show:
            table(["result", "command"], [[m.name, "python -m eval " + " ".join(m.words)] for m in every])
            return
    differ = False
    for made in every:
        # one folder a set: what the legs returned is asked once for all its results
        folder = RUNS / "evidence" / Path(made.data).name
        if failed := app([*made.words, "--out", str(folder)], standalone_mode=False):
            raise typer.Exit(failed)  # it has said why; what lies in the folder is of another command
        with error_line():
            path = RESULTS / f"{made.name}.json"
            now = result_in(folder)
            if keep:
                say(f"{made.name}: {records.keep(folder, made.name, RESULTS)}")
                continue
            if not path.is_file():
                say(f"{made.name}: measured; there is no committed result to compare it with")
                continue
            rows = differences(json.loads(path.read_text(encoding="utf-8")), now)
            say(f"{made.name}: {len(now['comparisons'])} comparisons, {len(rows)} numbers differ")
            if rows:
                differ = True
                table(["what", "metric", "questions", "committed", "now"], rows)
    if differ:
        raise typer.Exit(1)


@app.command(name="kept-apart")
def kept_apart(
    folder: Annotated[Path, typer.Argument(help="in which the sets lie, or one set")],
    set_: Annotated[
        list[str] | None, typer.Option("--set", help="a set of the folder; repeatable; default: all")
    ] = None,
    again: Annotated[
        bool, typer.Option("--again", help="look once more with this commit; the record counts it")
    ] = False,
    embedder: Annotated[str | None, typer.Option(help="minilm, hashing or none; default: what semmem finds")] = None,
    records: Annotated[Path | None, typer.Option(help="where records lie; default: eval/results/kept-apart")] = None,
) -> None:
    """Measure all recipes and the graph's controls, once, on sets that nothing was tuned on, and write it down."""
    from eval.experiments.evidence.kept_apart import look, sets

    place = records or RESULTS / "kept-apart"
    with error_line():
        for path in sets(folder, set_ or ()):
            with progress_bars() as progress:
                out = RUNS / "kept-apart" / path.name
                record = look(
                    path, place, opened, again=again, embedder=embedder, metrics=METRICS, out=out, say=progress
                )  # fmt: skip
            told = json.loads(record.read_text(encoding="utf-8"))
            rows = [
                [c["metric"], c["name"], c["sentence"]]
                for c in told["result"]["comparisons"]
                if c["group"] == "headline"
            ]
            table(["metric", "comparison", "verdict"], rows)
            times = len(told["looks"])
            say(f"{record}: look {times} at {told['set']} with this commit" + (", and it says so" if times > 1 else ""))


@app.command()
def tables(
    write: Annotated[bool, typer.Option("--write", help="write the tables anew into the records")] = False,
) -> None:
    """Make the tables of the decision records again from the committed results; exit with code 1 where one differs."""
    from eval.reports.tables import rewritten

    root = Path(__file__).resolve().parents[2]
    changed = []
    with error_line():
        for path in sorted((root / "adr").glob("[0-9][0-9][0-9][0-9]-*.md")):
            text = path.read_text(encoding="utf-8")
            new = rewritten(text, RESULTS)
            if new != text:
                changed.append(path.name)
                if write:
                    path.write_text(new, encoding="utf-8")
        for name in changed:
            say(f"{name}: {'written anew' if write else 'not what the results say; pass --write'}")
        if not changed:
            say("Every table is what its results say.")
    if changed and not write:
        raise typer.Exit(1)
