"""The command `import`: a file of another program becomes memories, and every row that does not is told."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from semmem.interfaces.cli.door import Door, command
from semmem.interfaces.cli.writing import OnError

if TYPE_CHECKING:
    from semmem.interfaces.importers import BadRow
    from semmem.types import IngestReport

__all__ = ["register"]

_TOLD = 20


class Format(StrEnum):
    """What `import` reads."""

    chat = "chat"
    locomo = "locomo"
    longmemeval = "longmemeval"


def register(app: typer.Typer) -> None:
    """Add import to the program."""
    command(app, "import", "url", "namespace")(import_)


def import_(
    door: Door,
    format: Annotated[Format, typer.Argument(help="What the file is.")],
    file: Annotated[Path, typer.Argument(help="The file: .jsonl with one row a line, or one JSON value.")],
    on_error: Annotated[
        OnError, typer.Option(help="A bad row: leave it out and say so, or stop and store nothing of its batch.")
    ] = OnError.skip,
    batch_size: Annotated[int, typer.Option(help="Memories a transaction.")] = 500,
) -> None:
    """Import a chat: one message a memory, with author, session, position and time. Again stores nothing twice.

    chat reads JSON lines such as {"role": …, "content": …, "timestamp": …, "session": …} and message arrays of the
    OpenAI and Anthropic APIs; locomo and longmemeval read the files of these two data sets. Bad rows are told by line.
    """
    from semmem.errors import BadItem, InvalidInput
    from semmem.interfaces.cli.progress import counting
    from semmem.interfaces.importers import BadRow, reader

    if not file.is_file():
        raise InvalidInput(f"There is no file {file}.")
    bad: list[BadRow] = []
    wheres: list[str] = []
    skip = on_error is OnError.skip
    rows = reader(format.value)(file, reject=bad.append if skip else None)

    def noted() -> Iterator[Any]:
        for row in rows:
            wheres.append(row.where)
            yield row

    with door.connect() as mem, counting(door, file.name, None) as advance:
        try:
            report = mem.remember_many(
                noted(),
                namespace=door.namespace,
                batch_size=batch_size,
                on_error="skip" if skip else "abort",
                progress=advance,
            )
        except BadItem as error:
            if error.position < 0:
                raise
            raise BadItem(f"{wheres[error.position]}: {error.message.partition(': ')[2]}") from error
    bad += [BadRow(wheres[row.position], row.reason) for row in report.rejected]
    told = {
        "remembered": report.remembered,
        "unchanged": report.unchanged,
        "rejected": bad,
        "seconds": report.seconds,
        "degraded": report.degraded,
    }
    door.give(told, lambda: _show(door, report, bad))


def _show(door: Door, report: IngestReport, bad: list[BadRow]) -> None:
    door.out.print(
        f"Imported {report.remembered:,} memories into namespace {door.namespace} in {report.seconds:.1f} s; "
        f"{report.unchanged:,} were there already, {len(bad):,} rows were bad.",
        markup=False,
    )
    for row in bad[:_TOLD]:
        door.say(f"  {row.where}: {row.reason}")
    if len(bad) > _TOLD:
        door.say(f"  and {len(bad) - _TOLD} more; --json lists them all.")
    for leg, reason in report.degraded.items():
        door.say(f"  {leg} degraded: {reason}")
