"""The commands about links between memories: link, unlink, links, contradictions and near-duplicates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from semmem.doors.cli.context import Door, not_empty
from semmem.doors.cli.show import styled

if TYPE_CHECKING:
    from semmem.model.life import Link

__all__ = ["contradictions", "link", "links", "near_duplicates", "unlink"]

One = Annotated[str, typer.Argument(metavar="ID", help="The id of a memory.")]
From = Annotated[str, typer.Argument(metavar="ID", help="The id of a memory; with supersedes, of the newer one.")]
Type = Annotated[
    str, typer.Argument(help="The type of link: supersedes, resolved-by, part-of, see-also or contradicts.")
]
To = Annotated[str, typer.Argument(metavar="TO", help="The id of the other memory.")]
Most = Annotated[int, typer.Option(help="At most this many, newest first.")]


def link(
    door: Door,
    id: From,
    type: Type,
    to: To,
    made_by: Annotated[str | None, typer.Option(callback=not_empty, help="Who links them.")] = None,
) -> None:
    """Link two memories, such as: semmem link NEW supersedes OLD.

    A superseded memory is still found, ranked below the newer one. Linking the same two again changes nothing.
    """
    with door.connect() as mem:
        new_link = mem.link(id, type, to, namespace=door.namespace, made_by=made_by)
    door.give(new_link, lambda: _show(door, [new_link], ""))


def unlink(door: Door, id: From, type: Type, to: To) -> None:
    """Remove a link between two memories."""
    with door.connect() as mem:
        was_linked = mem.unlink(id, type, to, namespace=door.namespace)
    line = f"{id} {type} {to} no longer." if was_linked else f"There was no link {id} {type} {to}."
    door.give({"unlinked": was_linked}, lambda: door.out.print(line, markup=False))


def links(door: Door, id: One) -> None:
    """List the links from and to a memory."""
    with door.connect() as mem:
        rows = mem.links(id, namespace=door.namespace)
    door.give({"links": rows}, lambda: _show(door, rows, f"{id} has no links."))


def contradictions(door: Door, limit: Most = 100) -> None:
    """List the contradictions that wait for a decision: a newer memory that changes a value of an older one.

    Decide with `semmem link NEW supersedes OLD`, with `semmem unlink NEW contradicts OLD` where both hold, or with
    `semmem forget`.
    """
    with door.connect() as mem:
        rows = mem.contradictions(namespace=door.namespace, limit=limit)
    door.give({"links": rows}, lambda: _show(door, rows, f"No contradiction in {door.namespace} waits for a decision."))


def near_duplicates(door: Door, limit: Most = 100) -> None:
    """List the near-duplicates that wait for a decision: two memories whose texts are nearly the same.

    Decide with `semmem link NEW supersedes OLD`, with `semmem unlink NEW see-also OLD` to keep both, or with `semmem
    forget`.
    """
    with door.connect() as mem:
        rows = mem.near_duplicates(namespace=door.namespace, limit=limit)
    none = f"No near-duplicates in {door.namespace} wait for a decision."
    door.give({"links": rows}, lambda: _show(door, rows, none))


def _show(door: Door, rows: Sequence[Link], none: str) -> None:
    if not rows:
        door.out.print(none, markup=False)
    for one in rows:
        since = f"{one.since:%Y-%m-%d}" if one.since else ""
        by = f", by {one.made_by}" if one.made_by else ""
        door.out.print(styled(f"{one.from_id} {one.type} {one.to_id}  (since {since}{by})"))
