"""The commands about what becomes of a memory: history, forgotten and restore-memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from semmem.interfaces.cli.context import CommandLine, Reveal
from semmem.interfaces.cli.show import one_line, styled

if TYPE_CHECKING:
    from rich.text import Text

    from semmem.model.history import Version

__all__ = ["forgotten", "history", "restore_memory"]

_WIDTH = 60


def history(
    cli: CommandLine,
    id: Annotated[str, typer.Argument(help="The memory's id.")],
    diff: Annotated[bool, typer.Option("--diff", help="Show how each version differs from the one before.")] = False,
    reveal: Reveal = False,
    limit: Annotated[int | None, typer.Option("--limit", "-k", help="How many versions at most.")] = None,
    offset: Annotated[int, typer.Option("--offset", help="How many of the oldest to skip.")] = 0,
) -> None:
    """Print the versions of a memory, oldest first: changes, times and authors of each."""
    with cli.connect() as mem:
        versions = mem.history(id, namespace=cli.namespace, reveal=reveal, limit=limit, offset=offset)
    rows = [one.as_dict() for one in versions]
    if diff:
        for before, one, shown in zip(versions, versions[1:], rows[1:], strict=False):
            shown["diff"] = one.diff(before)
    cli.give({"versions": rows}, lambda: cli.print_lines(_lines(versions, diff)))


def _lines(versions: Sequence[Version], diff: bool) -> list[Text]:
    lines: list[Text] = []
    for before, one in zip([None, *versions[:-1]], versions, strict=True):
        head = styled(f"version {one.version}", style="bold")
        at = f"  {one.changed_at:%Y-%m-%d %H:%M}" if one.changed_at else ""
        by = f" by {one.changed_by}" if one.changed_by else ""
        head.append(f"{at}{by}", style="dim")
        if one.changed:
            head.append(f"  {', '.join(one.changed)}")
        if one.forgotten_at:
            whom = f" by {one.forgotten_by}" if one.forgotten_by else ""
            head.append(f"  forgotten {one.forgotten_at:%Y-%m-%d %H:%M}{whom}", style="red")
        lines.append(head)
        if diff and before is not None and one.changed:
            lines.append(styled(one.diff(before)))
        else:
            lines.append(styled(f"  {one_line(one.memory.text, _WIDTH)}"))
    return lines


def forgotten(
    cli: CommandLine,
    limit: Annotated[int, typer.Option("--limit", "-k", help="At most this many, the latest forgotten first.")] = 100,
) -> None:
    """List the forgotten memories that `semmem restore-memory ID` can bring back, and who forgot them."""
    with cli.connect() as mem:
        versions = mem.forgotten(namespace=cli.namespace, limit=limit)
    cli.give({"versions": [one.as_dict() for one in versions]}, lambda: cli.print_lines(_gone(versions, cli.namespace)))


def _gone(versions: Sequence[Version], namespace: str) -> list[Text]:
    if not versions:
        return [styled(f"No forgotten memory of {namespace} can be brought back.")]
    return [line for one in versions for line in (_ended(one), styled(f"  {one_line(one.memory.text, _WIDTH)}"))]


def _ended(version: Version) -> Text:
    whom = f" by {version.forgotten_by}" if version.forgotten_by else ""
    return styled(f"{version.memory.id}  forgotten {version.forgotten_at:%Y-%m-%d %H:%M}{whom}")


def restore_memory(cli: CommandLine, id: Annotated[str, typer.Argument(help="The memory's id.")]) -> None:
    """Bring a forgotten memory back, until keep_forgotten_days (30) have passed."""
    with cli.connect() as mem:
        memory = mem.restore_memory(id, namespace=cli.namespace)
    cli.give(memory, lambda: cli.out.print(f"{memory.id} in namespace {cli.namespace} is back.", markup=False))
