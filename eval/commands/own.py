"""The commands that make and judge questions for your own store in the terminal."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Annotated

import typer

from eval.commands.interface import HERE, Seed, app, error_line, opened, say
from eval.datasets import DatasetError
from semmem.model.reports import counted

__all__ = ["make"]


@app.command()
def make(
    own: Annotated[str, typer.Option(help="URL of your store")],
    namespace: Annotated[str, typer.Option(help="namespace of the memories")] = "default",
    embedder: Annotated[str | None, typer.Option(help="minilm, hashing or none; default: what semmem finds")] = None,
    recipes: Annotated[
        str, typer.Option(help="recipes whose first 20 hits are pooled")
    ] = "default,hybrid,lexical,dense",
    items: Annotated[int, typer.Option(help="memories to sample")] = 40,
    effect: Annotated[float, typer.Option(help="smallest difference in R@10 that you care about")] = 0.05,
    out: Annotated[
        Path | None, typer.Option(help="folder; default: eval/data/private/NAMESPACE, ignored by git")
    ] = None,
    seed: Seed = 0,
) -> None:
    """Make questions on your own store and judge the hits of several recipes by single keys; stop and resume at will.

    The command prints what it will do and waits for Enter. The store is only read.
    """
    from eval.labels.desk import Desk, needed, pool, propose, sample
    from eval.labels.terminal import beginning, label_all, take_paraphrases

    with error_line():
        if not keys_can_be_read():
            raise DatasetError("make asks a person and reads single keys: start it in a terminal, not through a pipe.")
    with error_line(), opened(None, own, embedder) as mem:
        folder = out or HERE / "data" / "private" / re.sub(r"[^\w.-]+", "_", namespace)
        desk, names = Desk(folder, namespace), [r.strip() for r in recipes.split(",")]
        memories = sample(mem, namespace, items, seed=seed)
        if not memories:
            raise DatasetError(f"There are no memories in namespace {namespace!r}; name another with --namespace.")
        say(beginning(namespace, len(memories), names, folder))
        if input("Enter starts, q leaves: ").strip().lower() == "q":
            return
        for text, stratum, about in propose(memories):
            desk.ask(text, stratum, about)
        take_paraphrases(desk, memories, input, say)
        say(f"\nAsking {counted(len(desk.questions), 'question')} of {counted(len(names), 'recipe')}.")
        pools = {id: pool(mem, namespace, question, names, seed=seed) for id, question in desk.questions.items()}
        label_all(mem, desk, pools, typer.getchar, say)
        queries = desk.queries(pools)
        more = needed(mem, queries, names, effect)
        are = "is" if len(queries) == 1 else "are"
        say(f"{counted(len(queries), 'question')} {are} judged to the end: {folder / 'queries.jsonl'}")
        answerable = sum(bool(q.gold) for q in queries)
        if more is None:
            say("Judge at least 5 with an answer; then this says how many more you need.")
        else:
            say(f"A difference of {effect:g} shows from about {more} questions on; you have {answerable}.")


def keys_can_be_read() -> bool:
    """Return whether standard input is a terminal."""
    return sys.stdin.isatty()
