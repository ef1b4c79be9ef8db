"""The commands that measure what an agent pays, and what its user waits for."""

from __future__ import annotations

import json
import os
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from eval.commands.interface import AsJson, app, err, error_line, say, table
from eval.environment import without_settings
from eval.experiments.evidence.provenance import COMMIT

__all__ = ["hooks", "tokens", "week"]


@app.command()
def tokens(
    server_memory: Annotated[
        str | None, typer.Option(help="command of the reference memory server, measured beside semmem")
    ] = None,
    basic_memory: Annotated[str | None, typer.Option(help="command of basic-memory's MCP server, likewise")] = None,
    json_: AsJson = False,
) -> None:
    """Count the tokens of tools, of remembering and of a recall, of semmem's MCP server and of others in one run."""
    import anyio

    import eval.tokens as counting

    count = counting.counter()
    env = without_settings() | {"SEMMEM_URL": "sqlite:notes.db", "SEMMEM_EMBEDDER": "hashing"}
    rows: dict[str, Any] = {}
    for server in counting.peers(server_memory, basic_memory):
        rows[server.name] = anyio.run(partial(counting.measured, server, env, count))
    (whole,) = counting.peers(None, None, "--tools", "all")
    rows["semmem, every tool"] = anyio.run(partial(counting.measured, whole, env, count))
    if json_:
        say(json.dumps(rows))
        return
    table(["cl100k_base tokens of", *rows["semmem"]], [[name, *row.values()] for name, row in rows.items()])


@app.command()
def hooks(
    calls: Annotated[int, typer.Option(help="hooks beside a process that answers them", min=1)] = 200,
    alone: Annotated[int, typer.Option(help="hooks without one, which take longer", min=1)] = 20,
    out: Annotated[Path | None, typer.Option(help="a file for the result")] = None,
    json_: AsJson = False,
) -> None:
    """Measure how long a person waits for the hook of a prompt, and what processes and files are left."""
    import eval.hooks as waiting

    with error_line():
        result = waiting.measured(calls, alone)
    if out is not None:
        command = f"python -m eval hooks --calls {calls} --alone {alone}"
        whole = {"command": command, "commit": COMMIT, "cpus": os.cpu_count(), **result}
        out.write_text(json.dumps(whole, indent=1) + "\n", encoding="utf-8")
    if json_:
        say(json.dumps(result))
        return
    rows = result.pop("rows")
    table(["hook of a prompt", *next(iter(rows.values()))], [[name, *row.values()] for name, row in rows.items()])
    for name, value in result.items():
        say(f"{name}: {value}")


@app.command()
def week(
    data: Annotated[Path, typer.Option(help="the folder of the week")] = Path("eval/data/week"),
    embedder: Annotated[str | None, typer.Option(help="the embedder of the store; minilm where installed")] = None,
    session_start: Annotated[
        str | None, typer.Option(help="the setting session_start, to measure without some parts")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="a file for the result, with each answer's score")] = None,
    json_: AsJson = False,
) -> None:
    """Play a week of a coding agent through the hooks and the MCP server; score what its model is given."""
    import eval.week as playing

    with error_line():
        rows = playing.played(data, embedder, session_start, err.print)
    options = [
        f"--{name} {value}" for name, value in (("embedder", embedder), ("session-start", session_start)) if value
    ]
    command = " ".join(["python -m eval week", *options])
    result = {"command": command, "commit": COMMIT, **playing.report(rows), **rows}
    if out is not None:
        out.write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    say(json.dumps(result) if json_ else playing.markdown(result))
