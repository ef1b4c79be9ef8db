"""The commands about the graph itself: graph shows and writes a piece of it, concepts lists and corrects its names."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from semmem.interfaces.cli.context import CommandLine, alone, command
from semmem.interfaces.cli.files import to_write
from semmem.interfaces.cli.show import new_table, one_line, styled
from semmem.model.errors import InvalidInput
from semmem.model.reports import counted

if TYPE_CHECKING:
    import networkx
    from rich.tree import Tree

    from semmem.model.types import Concept

__all__ = ["graph", "names"]

names = typer.Typer(no_args_is_help=False)
"""The commands below ``semmem concepts``."""

_MOST_BRANCHES, _MOST_LINES = 12, 120
_INDENT = 4
_LONGEST_ID, _SHORTEST = 36, 12


def graph(
    cli: CommandLine,
    around: Annotated[
        str | None,
        typer.Option(help="A name as you would write it, or a memory's id; without it, the whole namespace."),
    ] = None,
    hops: Annotated[
        int, typer.Option(help="How far; one hop leads from a memory over a shared name to another memory.")
    ] = 2,
    limit: Annotated[int, typer.Option(help="At most this many memories, the heaviest.")] = 500,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Write it here, and print the counts alone: .html (a page to explore), .graphml, .dot or .json."
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Let --out overwrite a file.")] = False,
) -> None:
    """Show the graph around a name or a memory as a tree; --out writes it to a file instead."""
    from semmem.read import graph_files

    if out is not None and out.suffix.lower() not in graph_files.FORMATS:
        raise InvalidInput(f"--out must end in {', '.join(graph_files.FORMATS)}, not be {out.name!r}.")
    if out is not None:
        to_write(out, force=force)
    with cli.connect() as mem:
        network = mem.graph(namespace=cli.namespace, around=around, hops=hops, limit=limit)
    if out is not None:
        graph_files.write(network, out, force=force)
    cli.give(graph_files.as_plain(network), lambda: _show(cli, network, out))


@alone(names, "url", "namespace")
def concepts(
    cli: CommandLine,
    like: Annotated[str | None, typer.Option(help="Only names that contain this, in any case.")] = None,
    limit: Annotated[int, typer.Option("--limit", "-k", help="At most this many, the most mentioned first.")] = 50,
) -> None:
    """List the names that memories mention, or correct them: merge two names of one thing, or undo a merge."""
    with cli.connect() as mem:
        rows = mem.concepts(namespace=cli.namespace, like=like, limit=limit)
    cli.give({"concepts": rows}, lambda: _show_concepts(cli, rows))


@command(names, "merge", "url", "namespace")
def merge(
    cli: CommandLine,
    a: Annotated[str, typer.Argument(help="A name, as memories write it.")],
    b: Annotated[str, typer.Argument(help="The name that A is merged into.")],
) -> None:
    """Merge the name A into B, in stored memories and in later ones. A rebuild keeps the merge."""
    with cli.connect() as mem:
        mem.merge_concepts(a, b, namespace=cli.namespace)
    cli.give({"merged": a, "into": b}, lambda: cli.out.print(f"{a} is merged into {b}."))


@command(names, "split", "url", "namespace")
def split(cli: CommandLine, a: Annotated[str, typer.Argument(help="A name that was merged.")]) -> None:
    """Undo every merge with the name A, and keep the rules from merging it again."""
    with cli.connect() as mem:
        mem.split_concept(a, namespace=cli.namespace)
    cli.give({"split": a}, lambda: cli.out.print(f"{a} is a name of its own again."))


def _show_concepts(cli: CommandLine, rows: Sequence[Concept]) -> None:
    if not rows:
        cli.out.print(f"No name in namespace {cli.namespace} is like that.")
        return
    table = new_table()
    for title, style in (("name", "green"), ("memories", ""), ("about it", ""), ("also written", "dim")):
        table.add_column(title, style=style, justify="right" if title in ("memories", "about it") else "left")
    for one in rows:
        cells = (one.name, f"{one.df:,}", f"{one.subjects:,}", ", ".join(one.aliases))
        table.add_row(*map(styled, cells))
    cli.out.print(table)


def _show(cli: CommandLine, network: networkx.Graph, out: Path | None) -> None:
    memories = sum(about["kind"] == "memory" for _, about in network.nodes(data=True))
    if not memories:
        cli.out.print(f"There is no memory in namespace {network.graph['namespace']}.")
        return
    for tree in _trees(network, cli.out.width) if out is None else ():
        cli.out.print(tree)
    counts = ", ".join(
        (
            counted(memories, "memory"),
            counted(len(network) - memories, "concept"),
            counted(network.number_of_edges(), "edge"),
        )
    )
    if left_out := network.graph["left_out"]:
        counts += f"; no room for {counted(left_out, 'memory')} more (--limit)"
    if left_out := network.graph["left_out_concepts"]:
        counts += f"; no room for {counted(left_out, 'concept')} more (--limit)"
    if too_common := network.graph["too_common"]:
        most = network.graph["max_df"]
        counts += (
            f"; without {counted(too_common, 'name')} that more than {most} memories mention (ask for it with --around)"
        )
    cli.out.print(f"{counts}." + (f" Written to {out}." if out else ""), style="dim")


def _trees(network: networkx.Graph, width: int) -> list[Tree]:
    """Return one tree for each start, every node where it is met first, the heaviest branches first.

    Without a start the concepts of most weight are the roots. Branches beyond 12 a node and 120 in all are counted.
    """
    from rich.tree import Tree

    roots = [node for node, about in network.nodes(data=True) if about["start"]]
    if not roots:
        heavy = dict(network.degree(weight="weight"))
        concepts = [node for node, about in network.nodes(data=True) if about["kind"] == "concept"]
        roots = sorted(concepts or network, key=lambda node: (-heavy[node], node))[:_MOST_BRANCHES]
    drawn = set(roots)
    trees = [Tree(_label(network, root, None, width), guide_style="dim") for root in roots]
    layer = list(zip(roots, trees, strict=True))
    lines = len(layer)
    while layer:
        below = []
        width -= _INDENT
        for node, tree in layer:
            ties = sorted(network[node].items(), key=lambda tie: (-tie[1]["weight"], tie[0]))
            new = [(other, about) for other, about in ties if other not in drawn]
            shown = new[: min(_MOST_BRANCHES, max(0, _MOST_LINES - lines))]
            lines += len(shown)
            for other, about in shown:
                drawn.add(other)
                below.append((other, tree.add(_label(network, other, about, width))))
            if len(new) > len(shown):
                tree.add(f"and {len(new) - len(shown)} more", style="dim")
        layer = below
    return trees


def _label(network: networkx.Graph, node: str, tie: dict[str, Any] | None, width: int) -> Any:
    """Return a node on one line of ``width``: what it is, its title, and how it is tied to the node above."""
    about = network.nodes[node]
    memory = about["kind"] == "memory"
    own = one_line(about["name"], _LONGEST_ID) if memory else f"{about['sort']} in {about['df']}"
    behind = f"  {own}" + (f"  {tie.get('role', tie['type'])} {tie['weight']:.2f}" if tie else "")
    mark, style = ("■ ", "bold") if memory else ("● ", "green")
    title = one_line(about["title"], max(_SHORTEST, width - len(mark) - len(behind)))
    return styled(mark, style="cyan" if memory else "green").append(title, style=style).append(behind, style="dim")
