"""The commands that only read: recall, explain, get, list and stats."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from semmem.files import must_be_free, new_file
from semmem.interfaces.cli.context import CommandLine, Options, Reveal, least_confidence, moment, not_empty
from semmem.interfaces.cli.options import AnyNarrow, Narrow
from semmem.interfaces.cli.show import (
    degraded_lines,
    full_score,
    hit_lines,
    left_out_lines,
    legend,
    memory_lines,
    namespace_options,
    new_table,
    one_line,
    styled,
)
from semmem.model.errors import InvalidInput
from semmem.model.reports import counted
from semmem.model.types import ListOrder, SortBy

if TYPE_CHECKING:
    from semmem.client.memory import Semmem
    from semmem.model.reports import NamespaceHash, Stats
    from semmem.model.types import Page
    from semmem.read.result import Recall

__all__ = ["AsOf", "LeastConfidence", "explain", "get", "list_", "recall", "stats"]

_NAMED = 5


Query = Annotated[str, typer.Argument(help="The question; words in double quotes must occur exactly so.")]
Limit = Annotated[int, typer.Option("--limit", "-k", help="How many hits.")]
Offset = Annotated[int, typer.Option(help="How many hits to skip.")]
Exclude = Annotated[list[str] | None, typer.Option(help="An id to leave out; repeatable.")]
SortedBy = Annotated[SortBy, typer.Option(help="Order of the hits.")]
LeastConfidence = Annotated[
    str,
    typer.Option(
        help="Show no hit if the confidence of the recall, from 0 to 1, is below this; auto: the floor measured for "
        "the embedder and the legs that answer."
    ),
]
Plot = Annotated[
    Path | None, typer.Option("--plot", metavar="FILE.svg", help="Also write a picture to this new file, as SVG.")
]
TokenBudget = Annotated[
    int | None, typer.Option(help="Print only whole hits that fit into this many tokens, and count the others.")
]
AsOf = Annotated[str | None, typer.Option(help="Use the versions that were valid at this time (ISO 8601).")]
Now = Annotated[
    str | None,
    typer.Option(
        help='When the question is asked (ISO 8601), for period_floor ("last week") or the reranker composite.'
    ),
]


def _arguments(
    limit: Limit = 10,
    offset: Offset = 0,
    *,
    narrow: Narrow,
    exclude: Exclude = None,
    sort_by: SortedBy = "relevance",
    min_confidence: LeastConfidence = "0",
    token_budget: TokenBudget = None,
    as_of: AsOf = None,
    now: Now = None,
) -> dict[str, Any]:
    """Return the arguments of the recall that these options ask for."""
    return {
        "limit": limit,
        "offset": offset,
        "filters": narrow,
        "exclude": tuple(exclude or ()),
        "sort_by": sort_by,
        "min_confidence": least_confidence(min_confidence),
        "token_budget": token_budget,
        "as_of": moment(as_of, "--as-of"),
        "now": moment(now, "--now"),
    }


Asked: TypeAlias = Annotated[dict[str, Any], Options.of(_arguments)]
"""The arguments of a recall."""


def recall(
    cli: CommandLine,
    query: Query,
    namespace: Annotated[
        list[str] | None,
        typer.Option("--namespace", "-n", callback=not_empty, help="Where to look; give it again for more than one."),
    ] = None,
    *,
    arguments: Asked,
    full: Annotated[
        bool, typer.Option("--full", help="Print whole texts instead of the passage around the match.")
    ] = False,
    plot: Plot = None,
) -> None:
    """Show the memories that answer a question, best first, each score with its components."""
    _check_picture(plot)
    with cli.connect() as mem:
        result = mem.recall(query, namespace=namespace or cli.namespace, recipe=cli.recipe, **arguments)
        names = namespace or [cli.namespace]
        others = _others(mem, names) if not result.total and not cli.json else ""
    cli.give(result, lambda: _show_recall(cli, result, full, others, names))
    _draw(cli, plot, result.to_svg)


def explain(
    cli: CommandLine,
    id: Annotated[str, typer.Argument(help="The id of a memory, returned or not.")],
    query: Annotated[str, typer.Option("--query", "-q", help="The question of the recall to explain.")],
    *,
    arguments: Asked,
) -> None:
    """Explain why a memory is a hit for a question, or why it is not and what would let it in."""
    with cli.connect() as mem:
        mem.get(id, namespace=cli.namespace)  # one that is not there is told before a model is loaded
        result = mem.recall(query, namespace=cli.namespace, recipe=cli.recipe, **arguments)
        why = result.explain(id)
    cli.give(why, lambda: cli.out.print(str(why)))


def get(
    cli: CommandLine,
    id: Annotated[str, typer.Argument(help="The memory's id.")],
    as_of: AsOf = None,
    reveal: Reveal = False,
) -> None:
    """Print one memory; with --as-of, the version that was valid at that time."""
    with cli.connect() as mem:
        memory = mem.get(id, namespace=cli.namespace, reveal=reveal, as_of=moment(as_of, "--as-of"))
    cli.give(memory, lambda: cli.print_lines(memory_lines(memory)))


def list_(
    cli: CommandLine,
    *,
    narrow: AnyNarrow,
    reveal: Reveal = False,
    limit: Annotated[int, typer.Option("--limit", "-k", help="Memories per page.")] = 100,
    cursor: Annotated[str | None, typer.Option(help="The cursor printed below the previous page.")] = None,
    sort_by: Annotated[
        ListOrder, typer.Option(help="Field to sort by, highest or latest first; accessed: last recalled.")
    ] = "created",
) -> None:
    """Print a page of memories, newest first. Only --titles, --tags and --sensitive find sensitive ones."""
    with cli.connect() as mem:
        page = mem.list(
            namespace=cli.namespace, filters=narrow, limit=limit, cursor=cursor, reveal=reveal, sort_by=sort_by
        )
        others = _others(mem, [cli.namespace]) if not len(page) and not cli.json else ""
    cli.give(page, lambda: _show_page(cli, page, others))


def _others(mem: Semmem, targets: Sequence[str]) -> str:
    """Return where there are memories, if none of the namespaces that were asked holds any."""
    names = [one.name for one in mem.namespaces()]
    if not names or not set(names).isdisjoint(targets):
        return "" if names else " The store holds no memories."
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return f" There are memories in namespace {', '.join(names[:_NAMED])}{more}: say which with -n."


def stats(
    cli: CommandLine,
    namespace: Annotated[
        str | None,
        typer.Option(
            "--namespace", "-n", callback=not_empty, help="Count only this namespace; default: the whole store."
        ),
    ] = None,
    exact: Annotated[
        bool, typer.Option("--exact", help="Count every concept and mention; a large store estimates them otherwise.")
    ] = False,
    verify: Annotated[
        bool, typer.Option("--verify", help="Count exactly, read everything, and show a hash of each namespace.")
    ] = False,
    plot: Plot = None,
) -> None:
    """Count memories, concepts, mentions and vectors."""
    _check_picture(plot)
    with cli.connect() as mem:
        each = mem.namespaces() if plot is not None else ()
        counts = mem.stats(namespace=namespace, exact=exact or verify)
        hashes = mem.hashes(namespace=namespace) if verify else {}
        others = _others(mem, [namespace]) if namespace and not counts.memories and not cli.json else ""
    answer = {**dataclasses.asdict(counts), "hashes": hashes} if verify else counts
    of_bytes = " of the whole store" if namespace else ""
    empty = f"No memory is in namespace {namespace}.{others}"
    cli.give(answer, lambda: cli.print_lines([empty]) if others else _show_stats(cli, counts, hashes, of_bytes))
    rows = [(one.name, {"memories": float(one.memories)}) for one in each if namespace in (None, one.name)]
    _draw(cli, plot, lambda: _pictured(rows))


def _pictured(rows: Sequence[tuple[str, Mapping[str, float]]]) -> str:
    from semmem.model.pictures import bars

    return bars("Memories by namespace", rows)


def _check_picture(plot: Path | None) -> None:
    """Raise InvalidInput, before anything is asked, for a file that a picture cannot be written to."""
    if plot is None:
        return
    if plot.suffix.lower() != ".svg":
        raise InvalidInput(f"--plot writes SVG; give a file whose name ends in .svg, not {str(plot)!r}.")
    must_be_free(plot, force=False)


def _draw(cli: CommandLine, plot: Path | None, picture: Callable[[], str]) -> None:
    """Write a picture where one is asked for."""
    if plot is not None:
        with new_file(plot) as out:
            out.write(picture().encode())
        cli.say(f"The picture is in {plot}.")


def _show_recall(cli: CommandLine, result: Recall, whole: bool, others: str, namespaces: Sequence[str]) -> None:
    total = ("" if result.total_is_exact else "at least ") + counted(result.total, "memory")
    regime = "" if result.regime == "any" else f" · {result.regime} question"
    sure = f" · confidence {result.confidence:.2f}"
    cli.out.print(f"{counted(len(result), 'hit')} of {total} found{regime}{sure}", style="dim")
    if result.id is not None:
        line = f"Useful, or not: semmem feedback {result.id} --useful ID{namespace_options(namespaces)}"
        cli.out.print(line, style="dim", soft_wrap=True, markup=False)
    cli.print_lines(degraded_lines(result.degraded))
    if result.withheld:
        cli.out.print(f"The confidence {result.confidence:.2f} is below {result.min_confidence:g}: no hit is shown.")
        return
    if not len(result) and result.left_out:
        cli.print_lines(left_out_lines(result.left_out, result.token_budget))
        return
    if not len(result):
        cli.out.print(f"Nothing was found.{others}")
        return
    cli.out.print(legend({name for hit in result for name in hit.components}))
    full = full_score([result])
    for hit in result:
        cli.print_lines(hit_lines(hit, full, cli.out.width, whole=whole))
    cli.print_lines(left_out_lines(result.left_out, result.token_budget))
    where = namespace_options(namespaces) if len(namespaces) == 1 else " --namespace ITS_NAMESPACE"
    cli.out.print(f'Why, or why not: semmem explain ID --query "…"{where}', style="dim", soft_wrap=True, markup=False)


def _show_page(cli: CommandLine, page: Page, others: str) -> None:
    table = new_table()
    table.add_column("id", style="cyan", no_wrap=True, max_width=36)
    table.add_column("created", style="dim", no_wrap=True)
    table.add_column("memory", ratio=1)
    for memory in page:
        when = memory.created_at.strftime("%Y-%m-%d %H:%M") if memory.created_at else ""
        text = f"{memory.title}: {memory.text}" if memory.title else memory.text
        table.add_row(*map(styled, (memory.id, when, one_line(text, 90))))
    if not len(page):
        cli.out.print(f"No memory in namespace {cli.namespace} matches.{others}")
        return
    cli.out.print(table)
    if page.cursor:
        cli.out.print(f"More: --cursor {page.cursor}", style="dim")


_MEANT = {"parts": " of long memories", "pending": ": maintain merges them", "stale": ": maintain derives them again"}
"""What a count says that its name does not."""


def _show_stats(cli: CommandLine, counts: Stats, hashes: Mapping[str, NamespaceHash], of_bytes: str) -> None:
    from semmem.model.serialization import plain

    values = plain(counts)
    if not counts.nodes:
        del values["nodes"]
    del values["estimated"]
    for name, value in values.items():
        about = "about " if name in counts.estimated else ""
        shown = f"{about}{value:,}" if isinstance(value, int) else "none yet" if value is None else value
        if name == "bytes":
            shown = "of the whole store alone" if value is None else f"{value / 2**20:,.1f} MiB{of_bytes}"
        elif name == "nodes":
            shown = ", ".join(value)
        cli.out.print(f"{name:>10}  {shown}{_MEANT.get(name, '') if value else ''}")
    for name, one in hashes.items():
        cli.out.print(f"{name}: {counted(one.memories, 'memory')}, {counted(one.vectors, 'vector')}", soft_wrap=True)
        for what in ("content", "vector", "graph"):
            cli.out.print(f"{what:>10}  {getattr(one, what)}")
