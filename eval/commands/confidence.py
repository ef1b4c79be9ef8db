"""The command that fits and measures confidence."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from eval.commands.door import AsJson, app, err, error_line, opened, say
from eval.datasets import DatasetError, load

__all__ = ["confidence"]


@app.command()
def confidence(
    data: Annotated[list[str], typer.Option(help="a data set with questions; repeatable, at least two")],
    out: Annotated[Path | None, typer.Option(help="a file for the result: aggregates, no text")] = None,
    json_: AsJson = False,
) -> None:
    """Measure how well the confidence of a recall separates questions with an answer from questions without one."""
    from eval.confidence import ask, markdown, report

    with error_line():
        corpora = [load(name) for name in data]
        if len({corpus.name for corpus in corpora}) < 2:
            raise DatasetError("Give at least two sets: each is measured by what was fitted on the others.")
        questions = {corpus.name: [query.text for query in corpus.queries] for corpus in corpora}
        sets = {}
        for corpus in corpora:
            others = {name: texts for name, texts in questions.items() if name != corpus.name}
            with opened(corpus, None, None) as mem:
                if not mem.stats().memories:
                    mem.remember_many(corpus.memories)
                    mem.maintain()
                sets[corpus.name] = ask(mem, corpus, others, err.print)
        result = {"command": f"python -m eval confidence {' '.join(f'--data {name}' for name in data)}", **report(sets)}
        if out is not None:
            out.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
        say(json.dumps(result, indent=1) if json_ else markdown(result))
