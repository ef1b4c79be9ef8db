"""The command `export`: memories as JSON lines, which `import jsonl` brings back as they were."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Annotated, Any

import typer

from semmem.doors.control_characters import as_json
from semmem.interfaces.cli.door import Door, command
from semmem.interfaces.cli.narrow import After, Authors, Before, Metadata, Sessions, Tags, filters
from semmem.interfaces.cli.places import to_write
from semmem.interfaces.cli.show import counted

__all__ = ["register"]

_OTHER_FORMATS = (".csv", ".tsv", ".xlsx", ".xls", ".md", ".html", ".xml", ".yaml", ".yml", ".toml", ".db", ".zip")


def register(app: typer.Typer) -> None:
    """Add export to the program."""
    command(app, "export", "url")(export)


def export(
    door: Door,
    file: Annotated[str, typer.Argument(help="Where to: a file, or - for standard output.")],
    namespace: Annotated[
        list[str] | None, typer.Option("--namespace", "-n", help="Of this namespace; give it again for more.")
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="Of all namespaces.")] = False,
    sessions: Sessions = None,
    authors: Authors = None,
    tags: Tags = None,
    metadata: Metadata = None,
    created_after: After = None,
    created_before: Before = None,
    vectors: Annotated[bool, typer.Option("--vectors", help="Take the vectors along.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Write over a file that is there.")] = False,
) -> None:
    """Export memories, one a line with all that was given: JSON lines that `semmem import jsonl` brings back.

    Newest first, whole texts; the file appears under its name when it is complete.
    """
    from semmem.errors import InvalidInput
    from semmem.interfaces.cli.progress import counting

    if everything and namespace:
        raise InvalidInput("Give --all or --namespace, not both.")
    path = None if file == "-" else to_write(Path(file), force=force)
    if path is not None and path.suffix.lower() in _OTHER_FORMATS:
        raise InvalidInput(
            f"export writes JSON lines, not {path.suffix}; name the file otherwise, such as {path.stem}.jsonl."
        )
    narrow = filters(sessions, authors, tags, metadata, created_after, created_before)
    wanted = None if everything else namespace or door.namespace
    with door.connect() as mem, counting(door, "export", None) as advance:
        rows = mem.export(namespace=wanted, filters=narrow, vectors=vectors)
        with _sink(path, force) as sink:
            count = _written(rows, sink, advance)
    if path is None:
        return
    told = {"exported": count, "file": str(path)}
    line = f"Exported {counted(count, 'memory')} to {path}."
    door.give(told, lambda: door.out.print(line, soft_wrap=True))


def _written(rows: Iterable[Mapping[str, Any]], sink: IO[bytes], advance: Any) -> int:
    count = 0
    for count, row in enumerate(rows, 1):
        sink.write(as_json(row).encode() + b"\n")
        if count % 500 == 0:
            advance(count)
    return count


@contextmanager
def _sink(path: Path | None, force: bool) -> Iterator[IO[bytes]]:
    """Yield where the lines go: standard output, or a new file."""
    from semmem.errors import InvalidInput
    from semmem.files import new_file

    if path is None:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
        return
    try:
        with new_file(path, force=force) as sink:
            yield sink
    except OSError as error:
        raise InvalidInput(f"The export cannot be written to {path}: {error.strerror or error}.") from error
