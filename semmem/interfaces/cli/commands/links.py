"""The commands about links between memories: link, unlink, links, contradictions and near-duplicates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from semmem.interfaces.cli.context import CommandLine, not_empty
from semmem.interfaces.cli.show import styled

if TYPE_CHECKING:
    from semmem.model.history import Link

__all__ = ["contradictions", "link", "links", "near_duplicates", "unlink"]

One = Annotated[str, typer.Argument(metavar="ID", help="The id of a memory.")]
From = Annotated[str, typer.Argument(metavar="ID", help="The id of a memory; with supersedes, of the newer one.")]
Type = Annotated[
    str, typer.Argument(help="The type of link: supersedes, resolved-by, part-of, see-also or contradicts.")
]
To = Annotated[str, typer.Argument(metavar="TO", help="The id of the other memory.")]
Most = Annotated[int, typer.Option(help="At most this many, newest first.")]


def link(
    cli: CommandLine,
    id: From,
    type: Type,
    to: To,
    made_by: Annotated[str | None, typer.Option(callback=not_empty, help="Who links them.")] = None,
) -> None:
    """Link two memories, such as: semmem link NEW supersedes OLD.

    A superseded memory is still found, ranked below the newer one. Linking the same two again changes nothing.
    """
    with cli.connect() as mem:
        new_link = mem.link(id, type, to, namespace=cli.namespace, made_by=made_by)
    cli.give(new_link, lambda: _show(cli, [new_link], ""))


def unlink(cli: CommandLine, id: From, type: Type, to: To) -> None:
    """Remove a link between two memories."""
    with cli.connect() as mem:
        was_linked = mem.unlink(id, type, to, namespace=cli.namespace)
    line = f"{id} {type} {to} no longer." if was_linked else f"There was no link {id} {type} {to}."
    cli.give({"unlinked": was_linked}, lambda: cli.out.print(line, markup=False))


def links(cli: CommandLine, id: One) -> None:
    """List the links from and to a memory."""
    with cli.connect() as mem:
        rows = mem.links(id, namespace=cli.namespace)
    cli.give({"links": rows}, lambda: _show(cli, rows, f"{id} has no links."))


def contradictions(cli: CommandLine, limit: Most = 100) -> None:
    """List the contradictions that wait for a decision: a newer memory that changes a value of an older one.

    Decide with `semmem link NEW supersedes OLD`, with `semmem unlink NEW contradicts OLD` where both hold, or with
    `semmem forget`.
    """
    with cli.connect() as mem:
        rows = mem.contradictions(namespace=cli.namespace, limit=limit)
    cli.give({"links": rows}, lambda: _show(cli, rows, f"No contradiction in {cli.namespace} waits for a decision."))


def near_duplicates(cli: CommandLine, limit: Most = 100) -> None:
    """List the near-duplicates that wait for a decision: two memories whose texts are nearly the same.

    Decide with `semmem link NEW supersedes OLD`, with `semmem unlink NEW see-also OLD` to keep both, or with `semmem
    forget`.
    """
    with cli.connect() as mem:
        rows = mem.near_duplicates(namespace=cli.namespace, limit=limit)
    none = f"No near-duplicates in {cli.namespace} wait for a decision."
    cli.give({"links": rows}, lambda: _show(cli, rows, none))


def _show(cli: CommandLine, rows: Sequence[Link], none: str) -> None:
    if not rows:
        cli.out.print(none, markup=False)
    for one in rows:
        since = f"{one.since:%Y-%m-%d}" if one.since else ""
        by = f", by {one.made_by}" if one.made_by else ""
        cli.out.print(styled(f"{one.from_id} {one.type} {one.to_id}  (since {since}{by})"))
