"""The command line: ``python -m eval run|ablate|ingredients|sweep|fusions|history|...``; ``--help`` lists all."""

from __future__ import annotations

import inspect
import json
import re
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer
from rich.console import Console
from rich.table import Table

from eval.comparison import ExperimentError
from eval.conditions import SETTINGS, ConditionError
from eval.datasets import Corpus, DatasetError, is_known_copy, load
from eval.plan import Plan, of_ablation, of_fusions, of_history, of_run, of_sweep
from semmem.errors import SemmemError

__all__ = ["app", "main"]

RUNS = Path(__file__).resolve().parent / "runs"
RESULTS = Path(__file__).resolve().parent / "results"
EXIT_REFUSED = 3
EXIT_INTERRUPTED = 130
app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False, help=__doc__)
_err = Console(stderr=True)

Metrics = Annotated[list[str] | None, typer.Option("--metric", help="of the verdict, with a cut-off; repeatable")]
Seed = Annotated[int, typer.Option(help="of every random draw")]
AsJson = Annotated[bool, typer.Option("--json", help="print the aggregate result as JSON")]
Base = Annotated[str, typer.Option(help="RECIPE, RECIPE~leg (left out), RECIPE!leg (finds dropped) or RECIPE+fusion")]
_METRICS = ("R@10", "R@5", "nDCG@10")


def _conduct(
    plan: Plan,
    command: str,
    *,
    data: Annotated[str, typer.Option(help="folder or file of a known form, or a name under SEMMEM_EVAL_DATA")],
    store: Annotated[str | None, typer.Option(help="URL of a store; default: an own one for each corpus")] = None,
    embedder: Annotated[str | None, typer.Option(help="minilm, hashing or none; default: what semmem finds")] = None,
    out: Annotated[Path | None, typer.Option(help="folder for results; the same one again resumes")] = None,
    metric: Metrics = None,
    seed: Seed = 0,
    json_: AsJson = False,
    strict: Annotated[bool, typer.Option(help="exit with code 3 when a comparison is refused")] = False,
    format: Annotated[str | None, typer.Option(help="form of the data, where looking does not tell")] = None,
    namespace: Annotated[str | None, typer.Option(help="of your own store, for questions that name none")] = None,
    sha256: Annotated[str | None, typer.Option(help="refuse the data unless this is their sha256")] = None,
) -> None:
    """Load, open, measure, write; the options every experiment has."""
    from eval.experiment import conduct
    from eval.ingredients import is_of_ingredients, table_of_worth
    from eval.moved import write_moved
    from eval.page import write_reports
    from eval.summary import headline

    conditions, comparisons = plan
    corpus = load(data, format=format, sha256=sha256, **({"namespace": namespace} if namespace else {}))
    if corpus.stored and store is None:
        raise DatasetError("Questions about your own store need --store URL, the store they are asked of.")
    if is_known_copy(data, corpus) is False:
        _err.print(f"note: {data} is not the copy of that name whose sha256 is known; numbers may differ.")
    called = re.sub(r"[^\w.=~!+-]+", "_", f"{corpus.name} {command} {embedder or ''}").strip("_")
    folder = out or RUNS / called[:120]
    with _opened(corpus, store, embedder) as mem, _progress() as progress:
        experiment = conduct(
            mem,
            corpus,
            conditions,
            comparisons,
            out=folder,
            metrics=metric or _METRICS,
            seed=seed,
            command=command,
            progress=progress,
        )
        write_moved(mem, corpus, experiment, {c.name: c for c in conditions}, folder)
    summary, page = write_reports(folder)
    if json_:
        typer.echo(json.dumps(experiment.result, indent=1))
    else:
        typer.echo(headline(experiment.result))
        whole = [c for c in experiment.result["comparisons"] if c["group"] == "headline"]
        if is_of_ingredients(experiment.result):
            typer.echo(table_of_worth(experiment.result))
        else:
            _table(["metric", "comparison", "verdict"], [[c["metric"], c["name"], c["sentence"]] for c in whole])
        typer.echo(f"{summary}\n{page}")
    if strict and experiment.refused:
        raise typer.Exit(EXIT_REFUSED)


def experiment(plan_of: Callable[..., tuple[Plan, str]]) -> Callable[..., None]:
    """Turn a function that plans into a command: its own options first, then those every experiment has."""
    own = inspect.signature(plan_of).parameters
    shared = {n: p for n, p in inspect.signature(_conduct).parameters.items() if p.kind is p.KEYWORD_ONLY}

    def command(**given: Any) -> None:
        with _told():
            plan, called = plan_of(**{name: given[name] for name in own})
            _conduct(plan, called, **{name: given[name] for name in shared})

    hints = {**get_type_hints(_conduct, include_extras=True), **get_type_hints(plan_of, include_extras=True)}
    merged = [p.replace(kind=p.KEYWORD_ONLY, annotation=hints[n]) for n, p in {**own, **shared}.items()]
    command.__signature__ = inspect.Signature(merged)  # type: ignore[attr-defined]
    command.__annotations__ = {p.name: p.annotation for p in merged}
    command.__name__, command.__doc__ = plan_of.__name__, plan_of.__doc__
    return command


@app.command()
@experiment
def run(
    recipes: Annotated[str, typer.Option(help="comma-separated; the first is the base")] = "default,hybrid,seed",
) -> tuple[Plan, str]:
    """Measure recipes on a corpus, each against the first."""
    return of_run([r.strip() for r in recipes.split(",") if r.strip()]), f"run {recipes}"


@app.command()
@experiment
def ablate(
    leg: Annotated[list[str] | None, typer.Option(help="leg to leave out; default: each of the recipe's")] = None,
    recipe: Base = "default",
) -> tuple[Plan, str]:
    """Say what a leg is worth: the recipe against itself without the leg. Or say why that cannot be asked."""
    return of_ablation(recipe, leg or ()), f"ablate {' '.join(leg or ['every leg'])} recipe {recipe}"


@app.command(epilog="Settings: " + "; ".join(f"{name} ({what})" for name, what in SETTINGS.items()))
@experiment
def sweep(
    settings: Annotated[list[str], typer.Argument(help="NAME=0:2:.05 or NAME=0,1,2; two give every combination")],
    recipe: Base = "default",
) -> tuple[Plan, str]:
    """Turn a setting through a list of values. All points are fused from lists that are asked for once."""
    return of_sweep(recipe, settings), f"sweep {' '.join(settings)} recipe {recipe}"


@app.command()
@experiment
def fusions(recipe: Base = "default") -> tuple[Plan, str]:
    """Set the ways to fuse head to head at the same leg weights."""
    return of_fusions(recipe), f"fusions recipe {recipe}"


@app.command()
@experiment
def ingredients(
    recipe: Base = "default",
    only: Annotated[list[str] | None, typer.Option(help="a word of an ingredient's name; repeatable")] = None,
) -> tuple[Plan, str]:
    """Switch off one ingredient after the other and say what each is worth, in one table (summary.md)."""
    from eval.ingredients import of_ingredients

    return of_ingredients(recipe, only or ()), f"ingredients {' '.join(only or ['all'])} recipe {recipe}"


@app.command()
@experiment
def history() -> tuple[Plan, str]:
    """Replay the ablation that once called a graph useless: excluded, boost-only, swept, and asked properly."""
    return of_history(), "history"


@app.command()
def keep(
    folder: Annotated[Path, typer.Argument(help="a result folder")],
    name: Annotated[str, typer.Argument(help="of the file to write in eval/results")],
) -> None:
    """Copy the aggregate result of a folder to eval/results, where it may be committed and cited."""
    from eval import adr as records

    with _told():
        kept = records.keep(folder, name, RESULTS)
        typer.echo(kept)


@app.command()
def adr(
    slug: Annotated[str | None, typer.Argument(help="words-joined-by-hyphens")] = None,
    from_: Annotated[str | None, typer.Option("--from", help="a kept result, such as eval/results/NAME.json")] = None,
    comparison: Annotated[str | None, typer.Option(help="which; default: the first")] = None,
    index: Annotated[bool, typer.Option("--index", help="write the index of the records again")] = False,
) -> None:
    """Draft a decision record from a kept result, or write the index of the records."""
    from datetime import UTC, datetime

    from eval import adr as records

    root = Path(__file__).resolve().parents[1]
    with _told():
        if slug and from_:
            today = datetime.now(UTC).date()
            typer.echo(records.draft(root / "adr", slug, from_, root, comparison=comparison, today=today))
        elif not index:
            raise DatasetError("Pass a slug and --from RESULT, or --index.")
        if index:
            (root / "adr" / records.INDEX).write_text(records.index(root / "adr"), encoding="utf-8")


@app.command()
def make(
    own: Annotated[str, typer.Option(help="URL of your store")],
    namespace: Annotated[str, typer.Option(help="in which the memories are")] = "default",
    embedder: Annotated[str | None, typer.Option(help="minilm, hashing or none; default: what semmem finds")] = None,
    recipes: Annotated[str, typer.Option(help="whose top 20 are pooled")] = "default,hybrid,lexical,dense",
    items: Annotated[int, typer.Option(help="memories to sample")] = 40,
    effect: Annotated[float, typer.Option(help="difference you care about, in R@10")] = 0.05,
    out: Annotated[
        Path | None, typer.Option(help="folder; default: eval/data/private/NAMESPACE, ignored by git")
    ] = None,
    seed: Seed = 0,
) -> None:
    """Make questions for your own store: proposed, pooled blind, labelled by single keys; stop and resume at will."""
    from eval.labelling import label_all, take_paraphrases
    from eval.making import Desk, needed, pool, propose, sample

    with _told(), _opened(None, own, embedder) as mem:
        folder = out or Path(__file__).resolve().parent / "data" / "private" / re.sub(r"[^\w.-]+", "_", namespace)
        desk, names = Desk(folder, namespace), [r.strip() for r in recipes.split(",")]
        drawn = sample(mem, namespace, items, seed=seed)
        if not drawn:
            raise DatasetError(f"There are no memories in namespace {namespace!r}; name another with --namespace.")
        for text, stratum, about in propose(drawn):
            desk.ask(text, stratum, about)
        take_paraphrases(desk, drawn, input, typer.echo)
        pools = {id: pool(mem, namespace, question, names, seed=seed) for id, question in desk.questions.items()}
        label_all(mem, desk, pools, typer.getchar, typer.echo)
        done = desk.queries(pools)
        more = needed(mem, done, names, effect)
        typer.echo(f"{len(done)} questions are judged to the end: {folder / 'queries.jsonl'}")
        scored = sum(bool(q.gold) for q in done)
        if more is None:
            typer.echo("Judge at least 5 with an answer; then this says how many more you need.")
        else:
            typer.echo(f"A difference of {effect:g} shows from about {more} questions on; you have {scored}.")


@app.command()
def compare(a: str, b: str, metric: Metrics = None, seed: Seed = 0, json_: AsJson = False) -> None:
    """Compare two results on the same questions: A and B are result folders, or FOLDER:CONDITION."""
    from eval.between import between

    with _told():
        rows = between(a, b, metric or _METRICS, seed=seed)
        if json_:
            typer.echo(json.dumps(rows, indent=1))
            return
        _table(["metric", "A", "B", "verdict"], [[r["metric"], r["a"], r["b"], r["sentence"]] for r in rows])


@app.command()
def report(folder: Annotated[Path, typer.Argument(help="a result folder")]) -> None:
    """Write summary.md and report.html again from a result folder."""
    from eval.page import write_reports

    with _told():
        if not (folder / "result.json").is_file():
            raise DatasetError(f"{folder} holds no result.json; run an experiment with --out {folder} first.")
        for path in write_reports(folder):
            typer.echo(path)


@app.command()
def gate(
    expected: Annotated[Path | None, typer.Option(help="file of expected numbers; default: eval/expected.toml")] = None,
    data: Annotated[str | None, typer.Option(help="only what is expected of this data set")] = None,
    update: Annotated[bool, typer.Option("--update", help="write the measured values into the file")] = False,
    json_: AsJson = False,
) -> None:
    """Measure again what eval/expected.toml expects; exit with code 1 when a metric fell by more than its tolerance."""
    from eval.gate import EXPECTED, rewritten
    from eval.gate_run import run_gate

    with _told():
        checked, absent = run_gate(expected or EXPECTED, data, _opened)
        rows = [
            ["OK" if c.ok else "FAIL", c.expected.data, c.expected.recipe, c.expected.group, c.expected.metric,
             f"{c.measured:.4f}", f"{c.expected.value:.4f}", f"{c.expected.tolerance:g}"] for c in checked
        ]  # fmt: skip
        head = ["", "data", "recipe", "questions", "metric", "measured", "expected", "tolerance"]
        if json_:
            typer.echo(json.dumps([dict(zip(["verdict", *head[1:]], r, strict=True)) for r in rows], indent=1))
        else:
            _table(head, rows)
        for name in absent:
            _err.print(f"skipped: {name} is not here")
        if not checked:
            raise DatasetError("Nothing was checked: none of the data sets is here.")
        if update:
            at = expected or EXPECTED
            at.write_text(rewritten(at.read_text(encoding="utf-8"), checked), encoding="utf-8")
    if not update and not all(c.ok for c in checked):
        raise typer.Exit(1)


@app.command()
def reach(
    recipe: Annotated[str, typer.Argument(help="a recipe, or RECIPE~leg")] = "default",
    k: Annotated[int, typer.Option("-k", "--k", help="cut-off")] = 10,
    system: Annotated[str | None, typer.Option(help="another system's fusion instead: a name, or all")] = None,
    weights: Annotated[str | None, typer.Option(help="yours, for that system: .7,.3")] = None,
    json_: AsJson = False,
) -> None:
    """Say what each leg of a recipe, or of another system, can do to the top k, before anything is measured."""
    from eval.conditions import named
    from eval.systems import told
    from semmem.rank_cap import describe
    from semmem.rank_cap import reach as reach_at

    with _told():
        if system is not None:
            typer.echo(told(system, k, weights=weights, json=json_))
            return
        found = reach_at(named(recipe).recipe, k)
        if json_:
            typer.echo(json.dumps(found.as_dict(), indent=1))
            return
        rows = describe(found)
        _table(list(rows[0]), [list(r.values()) for r in rows])


def main() -> None:
    """Run the command line; Ctrl-C leaves with 130 and says how to resume."""
    try:
        app()
    except SystemExit as left:
        if left.code == EXIT_INTERRUPTED:
            _err.print("Interrupted. Run the same command again to take up where it stopped.")
        raise


@contextmanager
def _opened(corpus: Corpus | None, store: str | None, embedder: str | None) -> Iterator[Any]:
    """Open the store; without a URL an embedded one of the corpus's own, so that no user's memories are touched."""
    import semmem
    from eval.fingerprint import WRITES, fingerprint
    from eval.kept_vectors import keeping

    if store is None and corpus is not None:
        # What a store holds depends on the code that filled it, so another version fills another one.
        about = f"{corpus.sha256[:8]}-{embedder or 'auto'}-{fingerprint(*WRITES)}"
        folder = RUNS / "stores" / f"{corpus.name}-{about}"
        folder.parent.mkdir(parents=True, exist_ok=True)
        store = f"embedded://{folder}"
    with warnings.catch_warnings():
        # connect warns of legs that reach nothing; here that is what is being studied.
        warnings.simplefilter("ignore", UserWarning)
        with semmem.connect(store, embedder="none") as looked:
            given = (looked.store.embedder() or {}).get("name", "").startswith("external:")
        mem = semmem.connect(store, embedder=embedder if given else keeping(embedder))
    try:
        yield mem
    finally:
        mem.close()


@contextmanager
def _progress() -> Iterator[Any]:
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description:>12}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=_err, transient=True) as bars:
        tasks: dict[str, Any] = {}

        def say(what: str, done: int, of: int) -> None:
            if what not in tasks:
                tasks[what] = bars.add_task(what, total=of)
            bars.update(tasks[what], completed=done, total=of)

        yield say


@contextmanager
def _told() -> Iterator[None]:
    """Tell an expected error in one sentence on stderr, with exit code 2; anything else is a defect and is shown."""
    try:
        yield
    except (ConditionError, DatasetError, ExperimentError, SemmemError) as error:
        _err.print(f"error: {error}", style="red", markup=False, highlight=False)
        raise typer.Exit(2) from None


def _table(head: list[str], rows: list[list[Any]]) -> None:
    table = Table(box=None, pad_edge=False)
    for name in head:
        table.add_column(name, overflow="fold")  # a cell that is cut off cannot be read
    for row in rows:
        table.add_row(*(str(cell) for cell in row))
    console = Console()
    (console if console.is_terminal else Console(width=200)).print(table, markup=False)
