"""The command `audit export`: who read and wrote what, as JSON lines."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import typer

from semmem.interfaces.cli.commands.import_export import lines_to
from semmem.interfaces.cli.context import CommandLine, command, moment, not_empty
from semmem.model.reports import counted

if TYPE_CHECKING:
    from semmem.client.memory import Semmem

__all__ = ["names"]

names = typer.Typer(add_completion=False, no_args_is_help=True, help="The audit: who read and wrote what.")
"""The group of commands under ``semmem audit``."""

_AT_ONCE = 1_000


@command(names, "export", "url")
def export(
    cli: CommandLine,
    file: Annotated[str, typer.Argument(help="The file to write, or - for standard output.")],
    namespaces: Annotated[
        list[str] | None,
        typer.Option("--namespace", "-n", callback=not_empty, help="Only of this namespace; repeatable."),
    ] = None,
    who: Annotated[str | None, typer.Option(help="Only with the key, or the token, of this name.")] = None,
    noted_after: Annotated[str | None, typer.Option(help="Only noted from this time on (ISO 8601).")] = None,
    noted_before: Annotated[str | None, typer.Option(help="Only noted before this time (ISO 8601).")] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite a file.")] = False,
) -> None:
    """Export the audit as JSON lines, oldest first: who read and wrote what, without texts.

    Calls are noted if the setting audit is on, and kept for keep_audit_days. The export is a call, too.
    """
    narrow: dict[str, Any] = {
        "namespace": namespaces or ([cli.namespace] if cli.named else None),
        "who": who,
        "noted_after": moment(noted_after, "--noted-after"),
        "noted_before": moment(noted_before, "--noted-before"),
    }
    with cli.connect() as mem:
        path, count = lines_to(file, _entries(mem, narrow), force=force)
    if not count:
        cli.say("Nothing was exported: no entry matches. Calls are noted if the setting audit is on.")
    if path is not None:
        line = f"Exported {counted(count, 'entry')} to {path}."
        cli.give({"exported": count, "file": str(path)}, lambda: cli.out.print(line, soft_wrap=True))


def _entries(mem: Semmem, narrow: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield what is noted until now, page by page."""
    cursor: str | None = None
    while True:
        page = mem.audit(**narrow, limit=_AT_ONCE, cursor=cursor)
        yield from (entry.as_dict() for entry in page)
        cursor = page.cursor
        if cursor is None:
            return
