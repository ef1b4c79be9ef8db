"""Code shared by all commands of the harness: the program, its options, the store, errors in a sentence, tables."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any

import typer
from rich.table import Table

from eval.datasets import Corpus, DatasetError
from eval.experiments.conditions import ConditionError
from eval.extra import written_to
from eval.statistics.comparison import ExperimentError
from semmem.interfaces.cli.terminal import Terminal
from semmem.model.errors import SemmemError
from semmem.text.control_characters import encodable, visible

__all__ = [
    "EXIT_INTERRUPTED",
    "EXIT_REFUSED",
    "HERE",
    "METRICS",
    "RESULTS",
    "RUNS",
    "AsJson",
    "Base",
    "Metrics",
    "Seed",
    "app",
    "err",
    "error_line",
    "opened",
    "progress_bars",
    "say",
    "table",
]

HERE = written_to()
RUNS = HERE / "runs"
RESULTS = HERE / "results"
EXIT_REFUSED = 3
EXIT_INTERRUPTED = 130
app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Measure what a search setting, a leg or an ingredient of a recipe is worth on a data set.",
)
err = Terminal(stderr=True)

Metrics = Annotated[
    list[str] | None, typer.Option("--metric", help="metric to judge, with a cut-off, such as R@10; repeatable")
]
Seed = Annotated[int, typer.Option(min=0, help="seed of every random draw")]
AsJson = Annotated[bool, typer.Option("--json", help="print the aggregate result as JSON")]
Base = Annotated[
    str,
    typer.Option(
        help="RECIPE, RECIPE~leg (without it), RECIPE!leg (list dropped), RECIPE+fusion, RECIPE+leg (a declared one)"
    ),
]
METRICS = ("R@10", "R@5", "nDCG@10")
_WRONG_PLACE = (FileNotFoundError, FileExistsError, IsADirectoryError, NotADirectoryError, PermissionError)


@contextmanager
def opened(corpus: Corpus | None, store: str | None, embedder: str | None) -> Iterator[Any]:
    """Open the store at a URL; without one, an embedded store of this corpus, so that no user's memories change."""
    import semmem
    from eval.experiments.fingerprint import STORES, extracting, fingerprint
    from eval.experiments.vector_cache import keeping
    from semmem.client.connection import extractor_of
    from semmem.config import Settings

    # Cosines computed in memory have more digits than the database's; without memory every recall has the latter.
    maker = keeping(embedder, RUNS / "vectors")  # first: no store is made for an embedder that does not exist
    if store is None and corpus is not None:
        # What a store holds depends on the code and the extractor that filled it: another one fills another store.
        settings = Settings.load()
        graph = extracting(extractor_of(settings.extractor, settings), settings.language)
        about = f"{corpus.sha256[:8]}-{embedder or 'auto'}-{fingerprint(*STORES)}-{graph}"
        folder = RUNS / "stores" / f"{corpus.name}-{about}"
        folder.parent.mkdir(parents=True, exist_ok=True)
        store = f"embedded://{folder}"
    with warnings.catch_warnings():
        # connect warns of legs that reach nothing; here that is what is being studied.
        warnings.simplefilter("ignore", UserWarning)
        with semmem.connect(store, embedder="none") as probe:
            filler = None if probe.store.vectors is None else probe.store.vectors.embedder()
            external = filler is not None and filler["name"].startswith("external:")
        mem = semmem.connect(store, embedder=embedder if external else maker, resident_mb=0)
    try:
        yield mem
    finally:
        mem.close()


@contextmanager
def progress_bars() -> Iterator[Any]:
    """Yield a function of (task, steps done, steps in all) that draws a progress bar for each task."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description:>12}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=err, transient=True) as bars:
        tasks: dict[str, Any] = {}

        def say(what: str, done: int, of: int) -> None:
            if what not in tasks:
                tasks[what] = bars.add_task(what, total=of)
            bars.update(tasks[what], completed=done, total=of)

        yield say


@contextmanager
def error_line() -> Iterator[None]:
    """Print an expected error as one sentence on stderr and exit with code 2; any other exception passes through."""
    try:
        yield
    except (ConditionError, DatasetError, ExperimentError, SemmemError) as error:
        err.print(f"error: {error}", style="red", soft_wrap=True)
        raise typer.Exit(2) from None
    except _WRONG_PLACE as error:
        if not error.filename:
            raise
        err.print(f"error: {error.filename}: {error.strerror}; pass another path.", style="red", soft_wrap=True)
        raise typer.Exit(2) from None


def say(text: object) -> None:
    """Print a text on standard output with visible control characters: a memory must not act on the terminal."""
    typer.echo(encodable(visible(str(text)), sys.stdout.encoding or "utf-8"))


def table(head: list[str], rows: list[list[Any]]) -> None:
    """Print a table: as wide as the terminal, or 200 columns where there is none."""
    table = Table(box=None, pad_edge=False)
    for name in head:
        table.add_column(name, overflow="fold")  # a cell that is cut off cannot be read
    for row in rows:
        table.add_row(*(str(cell) for cell in row))
    console = Terminal()
    (console if console.is_terminal else Terminal(width=200)).print(table)
