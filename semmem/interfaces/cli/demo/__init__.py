"""The command `demo`: real texts remembered and recalled by three legs, every score explained, every reach proven."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from semmem.interfaces.cli.context import CommandLine
from semmem.interfaces.cli.demo.data import QUESTIONS, DemoQuestion, folder, story
from semmem.interfaces.cli.progress import counting
from semmem.model.errors import InvalidInput

if TYPE_CHECKING:
    from semmem.client.memory import Semmem
    from semmem.read.result import Recall

__all__ = ["demo"]

_LIMIT = 5
_DEEP = 60
_TRIED = 40
_STORY, _FOLDER = "semmem-demo-story", "semmem-demo-folder"


def demo(
    cli: CommandLine,
    data: Annotated[
        Path | None, typer.Option(help="A folder of your own text or Markdown files, to show after the story.")
    ] = None,
    ask: Annotated[list[str] | None, typer.Option(help="A question of your own about that folder; repeatable.")] = None,
    recipes: Annotated[
        bool, typer.Option("--recipes", help="Print only a table: the story's questions with every recipe.")
    ] = False,
) -> None:
    """Show sixty notes and five questions that text search misses and the graph answers; --data adds your own folder.

    Works in a store of its own that is deleted afterwards (with --url: in two namespaces of that store).
    """
    from semmem.interfaces.cli.demo import show as demo_show

    if ask and data is None:
        raise InvalidInput("--ask asks a folder; say which with --data.")
    if data is not None and not data.is_dir():
        raise InvalidInput(f"There is no folder {data}; give one that holds text or Markdown files.")
    started = time.monotonic()
    show = demo_show.Quiet() if cli.json else demo_show.Show(cli)
    if recipes:
        return _recipes(cli)
    with _scratch(cli) as mem:
        answer: dict[str, Any] = {"story": _story(cli, mem, show)}
        if data is not None:
            answer["folder"] = _folder(cli, mem, show, data, ask or ())
    answer["seconds"] = round(time.monotonic() - started, 1)
    cli.give(answer, lambda: show.closing(answer["seconds"]))


def _recipes(cli: CommandLine) -> None:
    from semmem.interfaces.cli.demo.show import compared, show_compared

    with _scratch(cli) as mem:
        mem.remember_many(story(), namespace=_STORY)
        mem.maintain()
        rows = compared(mem, _STORY)
    cli.give(rows, lambda: show_compared(cli, rows))


def _story(cli: CommandLine, mem: Semmem, show: Any) -> dict[str, Any]:
    from semmem.model.recipe import recipe
    from semmem.rank_cap import reach

    report = mem.remember_many(story(), namespace=_STORY)
    mem.maintain()
    show.opening(report, mem.stats(namespace=_STORY))
    questions = [_ask(mem, _STORY, number, question, show) for number, question in enumerate(QUESTIONS, 1)]
    first, missed = QUESTIONS[0].query, QUESTIONS[0].answer or ""
    why = mem.recall(first, namespace=_STORY, limit=_LIMIT, recipe="seed").explain(missed)
    show.why_not(missed, why)
    reaches = [reach(recipe(name), _LIMIT) for name in ("seed", "default")]
    show.reaches(reaches)
    return {
        "memories": report.read,
        "degraded": report.degraded,
        "questions": questions,
        "why_not": {"query": first, "recipe": "seed", "id": missed, "explanation": why},
        "reach": {one.recipe: one for one in reaches},
    }


def _folder(cli: CommandLine, mem: Semmem, show: Any, root: Path, ask: Sequence[str]) -> dict[str, Any]:
    items = list(folder(root))
    show.folder(root, len(items))
    if not items:
        return {"memories": 0, "questions": []}
    with counting(cli, "remembering", len(items)) as advance:
        report = mem.remember_many(items, namespace=_FOLDER, batch_size=32, on_error="skip", progress=advance)
    show.remembered(report)
    if ask:
        queries = [DemoQuestion(query) for query in ask]
    else:
        queries, tried = _from_headings(mem, items)
        show.headings(len(queries), tried)
    questions = [_ask(mem, _FOLDER, number, one, show) for number, one in enumerate(queries, 1)]
    return {"memories": report.remembered, "rejected": report.rejected, "questions": questions}


def _ask(mem: Semmem, namespace: str, number: int, question: DemoQuestion, show: Any) -> dict[str, Any]:
    """Ask with and without the graph and by vectors alone, and explain the first memory that only the graph found."""
    hybrid = mem.recall(question.query, namespace=namespace, limit=_LIMIT, recipe="hybrid")
    default = mem.recall(question.query, namespace=namespace, limit=_LIMIT, recipe="default")
    dense = mem.recall(question.query, namespace=namespace, limit=_DEEP, recipe="dense")
    new = _new(hybrid, default)
    shown = question.answer if question.answer in new else next(iter(new), None)
    why = default.explain(shown) if shown is not None else None
    show.question(number, question, hybrid, default, dense, why)
    return {
        "query": question.query,
        "answer": question.answer,
        "hybrid": list(hybrid),
        "default": list(default),
        "dense_alone": {"first": dense[0].id if dense else None, "answer_at": _place(dense, question.answer)},
        "regime": default.regime,
        "degraded": default.degraded,
        "brought_in": new,
        "explanation": why,
    }


def _place(found: Recall, answer: str | None) -> int | None:
    """Return the rank of the answer, None where it is not known or not found."""
    return next((hit.rank for hit in found if hit.memory.id == answer), None)


def _new(hybrid: Recall, default: Recall) -> list[str]:
    """Return the ids that `default` has and `hybrid` has not, those that the graph ranked."""
    ids = {hit.id for hit in hybrid}
    return [hit.memory.id for hit in default if hit.id not in ids and "graph" in hit.legs]


def _from_headings(mem: Semmem, items: Sequence[dict[str, Any]]) -> tuple[list[DemoQuestion], int]:
    """Return as questions the five headings where the graph brings in the most, and how many were tried."""
    titles = list(dict.fromkeys(str(item["title"]) for item in items if len(str(item["title"])) > 1))
    step = max(1, len(titles) // _TRIED)
    tried = titles[::step][:_TRIED]
    gains = []
    for place, title in enumerate(tried):
        recalls = [mem.recall(title, namespace=_FOLDER, limit=_LIMIT, recipe=name) for name in ("hybrid", "default")]
        gains.append((-len(_new(*recalls)), place, title))
    return [DemoQuestion(title) for _, _, title in sorted(gains)[:5]], len(tried)


@contextmanager
def _scratch(cli: CommandLine) -> Iterator[Semmem]:
    """Open a store for the show and leave nothing behind: an embedded one in a temporary folder, or door's own."""
    import tempfile

    import semmem

    if cli.url is not None:
        with semmem.connect(cli.url) as mem:
            try:
                yield mem
            finally:
                for namespace in (_STORY, _FOLDER):
                    mem.forget(namespace=namespace, everything=True)
        return
    from semmem.interfaces.cli.commands.whole_store import stop_server

    with tempfile.TemporaryDirectory(prefix="semmem-demo-", ignore_cleanup_errors=True) as place:
        try:
            with semmem.connect(f"embedded://{place}/store") as mem:
                yield mem
        finally:
            stop_server(Path(place) / "store")
