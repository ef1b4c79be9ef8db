"""Commands for evidence: remake the committed results, measure held-out sets, write tables of decision records."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from eval.commands.interface import METRICS, RESULTS, RUNS, app, error_line, opened, progress_bars, say, table

__all__ = ["evidence", "held_out", "tables"]


@app.command()
def evidence(
    data: Annotated[str | None, typer.Option(help="only the results of this data set; default: all")] = None,
    only: Annotated[
        list[str] | None, typer.Option(help="only results of this kind, such as controls; repeatable")
    ] = None,
    keep: Annotated[bool, typer.Option("--keep", help="replace the committed results by the new ones")] = False,
    show: Annotated[bool, typer.Option("--list", help="only list the results and the command of each")] = False,
) -> None:
    """Measure the committed results again and print every number that differs; exit with code 1 where one does."""
    from eval.experiments.evidence.manifest import differences, manifest, result_in
    from eval.reports import adr as records

    with error_line():
        every = manifest(data, only or ())
        if show:
            table(["result", "command"], [[m.name, "python -m eval " + " ".join(m.words)] for m in every])
            return
    differ = False
    for entry in every:
        # one folder for each data set: each leg is asked once, and all results of the set share the lists
        folder = RUNS / "evidence" / Path(entry.data).name
        if code := app([*entry.words, "--out", str(folder)], standalone_mode=False):
            raise typer.Exit(code)  # the command has printed why; the folder holds the result of an earlier one
        with error_line():
            path = RESULTS / f"{entry.name}.json"
            now = result_in(folder)
            if keep:
                say(f"{entry.name}: {records.keep(folder, entry.name, RESULTS)}")
                continue
            if not path.is_file():
                say(f"{entry.name}: measured; there is no committed result to compare it with")
                continue
            rows = differences(json.loads(path.read_text(encoding="utf-8")), now)
            say(f"{entry.name}: {len(now['comparisons'])} comparisons, {len(rows)} numbers differ")
            if rows:
                differ = True
                table(["what", "metric", "questions", "committed", "now"], rows)
    if differ:
        raise typer.Exit(1)


@app.command(name="held-out")
@app.command(name="kept-apart", hidden=True, deprecated=True)  # its former name, for one release
def held_out(
    folder: Annotated[Path, typer.Argument(help="folder with data sets, or one data set")],
    set_: Annotated[
        list[str] | None, typer.Option("--set", help="name of a data set in the folder; repeatable; default: all")
    ] = None,
    again: Annotated[
        bool, typer.Option("--again", help="measure a set once more with this commit; the record counts it")
    ] = False,
    embedder: Annotated[str | None, typer.Option(help="minilm, hashing or none; default: what semmem finds")] = None,
    records: Annotated[Path | None, typer.Option(help="where records lie; default: eval/results/kept-apart")] = None,
) -> None:
    """Measure all recipes and controls of the graph once on data sets that nothing was tuned on; record the look."""
    from eval.experiments.evidence.held_out import look, sets

    place = records or RESULTS / "kept-apart"
    with error_line():
        for path in sets(folder, set_ or ()):
            with progress_bars() as progress:
                out = RUNS / "kept-apart" / path.name
                record = look(
                    path, place, opened, again=again, embedder=embedder, metrics=METRICS, out=out, say=progress
                )
            content = json.loads(record.read_text(encoding="utf-8"))
            rows = [
                [c["metric"], c["name"], c["sentence"]]
                for c in content["result"]["comparisons"]
                if c["group"] == "headline"
            ]
            table(["metric", "comparison", "verdict"], rows)
            times = len(content["looks"])
            say(
                f"{record}: look {times} at {content['set']} with this commit"
                + (", and it says so" if times > 1 else "")
            )


@app.command()
def tables(
    write: Annotated[bool, typer.Option("--write", help="write the new tables into the records")] = False,
) -> None:
    """Make the tables of the decision records again from the committed results; exit with code 1 where one differs."""
    from eval.reports.tables import rewritten

    root = Path(__file__).resolve().parents[2]
    stale = []
    with error_line():
        for path in sorted((root / "adr").glob("[0-9][0-9][0-9][0-9]-*.md")):
            text = path.read_text(encoding="utf-8")
            new = rewritten(text, RESULTS)
            if new != text:
                stale.append(path.name)
                if write:
                    path.write_text(new, encoding="utf-8")
        for name in stale:
            say(f"{name}: {'written anew' if write else 'not what the results say; pass --write'}")
        if not stale:
            say("Every table is what its results say.")
    if stale and not write:
        raise typer.Exit(1)
