"""The commands `copy`, `backup` and `restore`: whole stores, from place to place and into a file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from semmem.interfaces.cli.door import Door, command
from semmem.interfaces.cli.places import to_read, to_write
from semmem.interfaces.cli.show import counted

if TYPE_CHECKING:
    from semmem.reports import BackupReport, CopyReport

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add copy, backup and restore to the program."""
    command(app, "copy")(copy)
    command(app, "backup", "url")(backup)
    command(app, "restore", "url")(restore)


def copy(
    door: Door,
    from_url: Annotated[str, typer.Argument(help="The store to read; it may be in use.")],
    to_url: Annotated[str, typer.Argument(help="An empty store, or an earlier copy of the same source.")],
) -> None:
    """Copy a whole store into another one, embedded or a server, and prove by counts and hashes that it is the same.

    Interrupted, the same command goes on where it stopped; of a finished copy it sends what has changed since.
    """
    import semmem
    from semmem.interfaces.cli.progress import counting

    with counting(door, "rows copied", None) as advance:
        report = semmem.copy(from_url, to_url, progress=advance)
    door.give(report, lambda: _show_copy(door, report))


def backup(
    door: Door,
    file: Annotated[Path, typer.Argument(help="The file to write, such as mine.semmem.")],
    force: Annotated[bool, typer.Option("--force", help="Overwrite a file of that name.")] = False,
) -> None:
    """Write the whole store into one file, as it is at one moment, while others read and write."""
    from semmem.interfaces.cli.progress import counting

    to_write(file, force=force)
    with door.connect(embedder="none") as mem, counting(door, "rows written", None) as advance:
        report = mem.backup(file, force=force, progress=advance)
    door.give(report, lambda: _show_backup(door, report, "Wrote"))


def restore(door: Door, file: Annotated[Path, typer.Argument(help="A file that backup wrote.")]) -> None:
    """Fill an empty store with a backup: all of it, or nothing where the file is damaged."""
    from semmem import transfer
    from semmem.interfaces.cli.progress import counting

    to_read(file)
    transfer.check(file)  # before a server is started, or a folder made, for one that is refused
    with door.connect(embedder="none") as mem, counting(door, "rows restored", None) as advance:
        report = mem.restore(file, progress=advance)
    door.give(report, lambda: _show_backup(door, report, "Restored"))


def _show_copy(door: Door, report: CopyReport) -> None:
    there = f", {report.found:,} rows were there already" if report.found else ""
    index = ", with its vector index" if report.indexed else ""
    door.out.print(
        f"Copied {counted(report.memories, 'memory')} ({sum(report.tables.values()):,} rows{there}) "
        f"in {report.seconds:.1f} s{index}; counts and hashes are the same.",
    )
    for name, held in report.namespaces.items():
        door.out.print(
            f"  {name}: {counted(held.memories, 'memory')}, {counted(held.vectors, 'vector')}", soft_wrap=True
        )
        door.out.print(f"    content {held.content[:24]}  graph {held.graph[:24]}")
    if report.came or report.went:
        door.say(
            f"Meanwhile {counted(report.came, 'memory')} came into the source and {report.went:,} went; run the "
            "same command again to bring the copy up to date."
        )


def _show_backup(door: Door, report: BackupReport, what: str) -> None:
    door.out.print(
        f"{what} {counted(report.memories, 'memory')} ({sum(report.tables.values()):,} rows, schema {report.schema}) "
        f"in {report.seconds:.1f} s; {report.bytes / 2**20:,.1f} MiB in {report.file}",
        soft_wrap=True,
    )
