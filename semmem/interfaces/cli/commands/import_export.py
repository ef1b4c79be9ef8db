"""The commands `import` and `export`: files of other programs as memories, and memories as JSON lines."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Any

import typer

from semmem.importers import FORMATS, BadRow
from semmem.interfaces import wire
from semmem.interfaces.cli.commands.write import OnError
from semmem.interfaces.cli.context import CommandLine, not_empty
from semmem.interfaces.cli.files import to_write
from semmem.interfaces.cli.options import Narrow
from semmem.interfaces.cli.progress import counting
from semmem.model.errors import InvalidInput
from semmem.model.reports import counted
from semmem.text.control_characters import as_json, one_line

if TYPE_CHECKING:
    from semmem.client.memory import Semmem
    from semmem.importers import Format
    from semmem.write.sync import ImportReport

__all__ = ["export", "import_"]

_MOST_LISTED = 20

_ALIKE = (
    "Most of these notes were imported from another folder of this name, so nothing is replaced or pruned; if this is "
    "that folder, moved, add --moved."
)

_PLACES = 5
"""Further places in a line about several rows with the same reason."""

_ID = re.compile(r"\AThe id (?:'[^']*'|\"[^\"]*\")")


def import_(
    cli: CommandLine,
    format: Annotated[
        str, typer.Argument(help="The format of the file; see above.", autocompletion=lambda: list(FORMATS))
    ],
    file: Annotated[
        Path | None, typer.Argument(help="The file; documents, git, markdown: the folder; sessions: either, or none.")
    ] = None,
    on_error: Annotated[
        OnError, typer.Option(help="A bad row: skip and report it, or stop and store nothing of its batch.")
    ] = "skip",
    batch_size: Annotated[int, typer.Option(help="Memories per transaction.")] = 500,
    column: Annotated[
        list[str] | None,
        typer.Option(help="csv: FIELD=HEADER, such as text=Body or tags=Labels:; (; between tags); repeatable."),
    ] = None,
    delimiter: Annotated[
        str | None, typer.Option(help="csv: the delimiter of cells; default: found in the header.")
    ] = None,
    drop_others: Annotated[
        bool, typer.Option("--drop-others", help="csv: ignore other columns instead of storing them as metadata.")
    ] = False,
    into: Annotated[
        str | None, typer.Option(callback=not_empty, help="jsonl: this namespace for all, instead of their own.")
    ] = None,
    no_vectors: Annotated[bool, typer.Option("--no-vectors", help="jsonl: compute the vectors again.")] = False,
    replace: Annotated[
        bool,
        typer.Option(
            "--replace", help="A changed row replaces the memory this file stored; markdown: edits by hand too."
        ),
    ] = False,
    prune: Annotated[
        bool, typer.Option("--prune", help="documents, git, markdown: forget the memories of what is gone.")
    ] = False,
    branches: Annotated[
        bool, typer.Option("--branches", help="chatgpt: edited questions and replaced replies too.")
    ] = False,
    moved: Annotated[
        bool, typer.Option("--moved", help="The file or folder has moved: memories from its old path belong to it.")
    ] = False,
    ray: Annotated[
        str | None,
        typer.Option(
            "--ray",
            metavar="[ADDRESS]",
            help="Extract and embed on the workers of the Ray at HOST:PORT, or auto: the one on this machine; with no "
            "address on all processors of this machine.",
        ),
    ] = None,
) -> None:
    """Import the file of another program. A second run stores only what is new; bad rows are reported by line.

    Exits with 2 when every row was bad.

    chat: JSON lines {"role": …, "content": …}, message arrays of the OpenAI and Anthropic APIs, Claude.ai's export.

    chatgpt: conversations.json of ChatGPT's export; of each conversation the branch that ChatGPT shows, with --branches
    all of them.

    csv: a table, one memory per row. With --replace a row whose id is known replaces the old one, if it came from this
    file; jsonl needs --replace the first time too.

    documents: a folder of PDF, HTML, Word, PowerPoint, Excel and EPUB files; a changed one replaces the old one.

    git: a repository; the messages of its commits, and the records of decisions in folders such as adr or decisions.

    jsonl: what `semmem export` writes, or lines with remember's argument names as keys.

    locomo, longmemeval: the files of these two data sets.

    markdown: a folder of notes, such as an Obsidian vault; a changed note replaces the old one, unless that was
    edited by hand since.

    mcp: the file of the reference MCP memory server, entities and relations.

    mem0: mem0's memories saved as JSON.

    sessions: transcripts of Claude Code and Codex: a file or a folder; default: ~/.claude/projects and
    ~/.codex/sessions. Its former name is transcript.

    Of chats, sessions, commits and documents, credentials are redacted, as the hooks do, unless the setting
    credentials says otherwise.
    """
    from semmem.client.file_import import FileImport
    from semmem.config import Settings

    row = _row_of(format)
    given = {
        "replace": replace, "moved": moved, "column": bool(column), "delimiter": delimiter is not None,
        "drop-others": drop_others, "into": into is not None, "no-vectors": no_vectors, "prune": prune,
        "branches": branches,
    }  # fmt: skip
    _check_options(format, [name for name, is_given in given.items() if is_given])
    if moved and not replace and not row.whole:
        raise InvalidInput("--moved requires --replace.")
    options: dict[str, Any] = {"branches": branches} if format == "chatgpt" else {}
    if format == "csv":
        options = _columns(column, delimiter, drop_others)
    elif format == "jsonl":
        options = {"into": into, "vectors": not no_vectors}
    files = _sources(format, row, file)
    settings = Settings.load()
    redacts = settings.source("credentials") == "default" or settings.credentials == "redact"
    work = FileImport(format, files, options, namespace=cli.namespace, redacts=redacts)
    with (
        cli.connect(create=True) as mem,
        _reading(mem, ray) as reading,
        counting(cli, files[0].name, None) as advance,
    ):
        report = work.run(
            reading,
            on_error=on_error,
            batch_size=batch_size,
            replace=replace,
            moved=moved,
            prune=prune,
            unowned=lambda: cli.say(_ALIKE),
            progress=advance,
        )
    if work.credentials:
        cli.say(f"Redacted {counted(work.credentials, 'credential')}.")
    answer = {
        "remembered": report.remembered, "unchanged": report.unchanged, "replaced": report.replaced,
        "rejected": work.bad_rows, "more_rejected": report.more_rejected, "incomplete": work.incomplete,
        "gone": report.gone, "pruned": report.pruned, "linked": report.linked, "unlinked": report.unlinked,
        "seconds": report.seconds, "degraded": report.degraded, "namespaces": sorted(work.namespaces),
    }  # fmt: skip
    into_namespaces = sorted(work.namespaces) or [into or cli.namespace]
    cli.give(answer, lambda: _show(cli, report, work.bad_rows, work.incomplete, into_namespaces))
    if work.bad_rows and not (report.remembered or report.unchanged or report.replaced):
        raise typer.Exit(wire.ERRORS[InvalidInput].exit_code)


def _reading(mem: Semmem, ray: str | None) -> AbstractContextManager[Semmem]:
    """Return ``mem``, of which the workers of a Ray read what is imported where an address is given."""
    if ray is None:
        return nullcontext(mem)
    from semmem.client.scale.workers import on_ray

    return on_ray(mem, ray)


def _row_of(format: str) -> Format:
    if format not in FORMATS:
        raise InvalidInput(f"There is no importer for {format!r}; choose one of {', '.join(FORMATS)}.")
    return FORMATS[format]


def _check_options(format: str, given: list[str]) -> None:
    """Raise InvalidInput for an option that the format does not take."""
    for name in given:
        if name not in FORMATS[format].options:
            whose = ", ".join(other for other, row in FORMATS.items() if name in row.options)
            raise InvalidInput(f"--{name} is an option of import {whose}, not of import {format}.")


def _columns(column: list[str] | None, delimiter: str | None, drop_others: bool) -> dict[str, Any]:
    """Return what the reader of tables takes."""
    from semmem.importers.csv import column_map

    sign = {"\\t": "\t", "tab": "\t"}.get(delimiter or "", delimiter)
    if sign is not None and (len(sign) != 1 or sign in '"\r\n '):
        raise InvalidInput(f"--delimiter takes one sign, such as ; or tab, not {delimiter!r}.")
    return {"columns": column_map(column or ()), "delimiter": sign, "drop_others": drop_others}


def _sources(format: str, row: Format, file: Path | None) -> list[Path]:
    """Return what is to be read: the file or folder that is given, else where coding agents keep their sessions."""
    from semmem.files import expanded
    from semmem.importers.transcript import FOLDERS

    if file is None:
        if format != "sessions":
            raise InvalidInput(f"import {format} reads a {row.source}; name it.")
        found = [folder for folder in map(expanded, FOLDERS) if folder.is_dir()]
        if not found:
            raise InvalidInput(f"There are no sessions in {' or '.join(FOLDERS)}; name the file or folder.")
        return found
    if not file.exists():
        raise InvalidInput(f"There is no {row.source} {file}.")
    kind = "folder" if file.is_dir() else "file"
    if kind not in row.source:
        raise InvalidInput(f"{file} is a {kind}; import {format} reads a {row.source}.")
    return [file]


def _show(
    cli: CommandLine, report: ImportReport, bad_rows: list[BadRow], incomplete: list[BadRow], namespaces: list[str]
) -> None:
    changed = f"{report.replaced:,} {'has' if report.replaced == 1 else 'have'} changed, " if report.replaced else ""
    all_bad = len(bad_rows) + report.more_rejected
    were, rows = ("was" if count == 1 else "were" for count in (report.unchanged, all_bad))
    into = f"namespace {namespaces[0]}" if len(namespaces) == 1 else f"{len(namespaces):,} namespaces"
    cli.out.print(
        f"Imported {counted(report.remembered, 'memory')} into {into} in {report.seconds:.1f} s; "
        f"{changed}{report.unchanged:,} {were} there already, {counted(all_bad, 'row')} {rows} bad."
    )
    if len(namespaces) > 1:
        _listed(cli, namespaces, str)
    _listed(cli, _collapsed(bad_rows), str)
    if incomplete:
        were = "was" if len(incomplete) == 1 else "were"
        cli.say(f"{counted(len(incomplete), 'row')} {were} imported in part:")
        _listed(cli, _collapsed(incomplete), str)
    if report.gone and report.pruned:
        cli.out.print(f"Forgot {counted(report.pruned, 'memory')} of deleted notes.")
    elif report.gone:
        are = "is" if len(report.gone) == 1 else "are"
        cli.say(f"{counted(len(report.gone), 'note')} {are} deleted, but still remembered; --prune forgets them:")
        _listed(cli, report.gone, str)
    if report.unlinked:
        cli.say(f"{counted(len(report.unlinked), 'link')} could not be made:")
        _listed(cli, report.unlinked, str)
    for leg, reason in report.degraded.items():
        cli.say(f"  {leg} degraded: {reason}")


def _collapsed(rows: list[BadRow]) -> list[str]:
    """Return a line for each reason: the first row, and the places of those that differ in the id alone."""
    by_reason: dict[str, list[BadRow]] = {}
    for row in rows:
        by_reason.setdefault(_ID.sub("The id", row.reason), []).append(row)
    lines = []
    for first, *others in by_reason.values():
        line = f"{first.where}: {first.reason}"
        if others:
            places = ", ".join(row.where for row in others[:_PLACES]) + (", …" if len(others) > _PLACES else "")
            line += f" So {counted(len(others), 'more row')}: {places}"
        lines.append(line)
    return lines


def _listed(cli: CommandLine, rows: Any, line: Callable[[Any], str]) -> None:
    for row in rows[:_MOST_LISTED]:
        cli.say(f"  {one_line(line(row))}")
    if len(rows) > _MOST_LISTED:
        cli.say(f"  and {len(rows) - _MOST_LISTED} more; --json lists them all.")


_OTHER_FORMATS = (".csv", ".tsv", ".xlsx", ".xls", ".md", ".html", ".xml", ".yaml", ".yml", ".toml", ".db", ".zip")


def export(
    cli: CommandLine,
    file: Annotated[str, typer.Argument(help="The file to write, or - for standard output.")],
    namespace: Annotated[
        list[str] | None,
        typer.Option("--namespace", "-n", callback=not_empty, help="Export this namespace; give it again for more."),
    ] = None,
    everything: Annotated[bool, typer.Option("--all", help="Export all namespaces.")] = False,
    *,
    narrow: Narrow,
    vectors: Annotated[bool, typer.Option("--vectors", help="Export the vectors too.")] = False,
    sensitive: Annotated[
        bool, typer.Option("--sensitive", help="Export sensitive memories too, with their texts.")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Overwrite a file.")] = False,
) -> None:
    """Export memories with all their fields as JSON lines, which `semmem import jsonl` reads.

    Newest first, whole texts; the file appears under its name when it is complete.
    """
    if everything and namespace:
        raise InvalidInput("Give --all or --namespace, not both.")
    path = None if file == "-" else to_write(Path(file), force=force)
    if path is not None and path.suffix.lower() in _OTHER_FORMATS:
        raise InvalidInput(
            f"export writes JSON lines, not {path.suffix}; name the file otherwise, such as {path.stem}.jsonl."
        )
    namespaces = None if everything else namespace or cli.namespace
    with cli.connect() as mem, counting(cli, "export", None) as advance:
        rows = mem.export(namespace=namespaces, filters=narrow, vectors=vectors, sensitive=sensitive)
        with _sink(path, force) as sink:
            count = _written(rows, sink, advance)
        left_out = 0 if sensitive else _sensitive(mem, namespaces, narrow)
    if not count:
        cli.say("Nothing was exported: no memory matches; `semmem namespaces` lists the namespaces that hold any.")
    if left_out:
        cli.say(f"Left out: {left_out:,} sensitive; export them with --sensitive.")
    if path is None:
        return
    answer = {"exported": count, "file": str(path), "sensitive_left_out": left_out}
    line = f"Exported {counted(count, 'memory')} to {path}."
    cli.give(answer, lambda: cli.out.print(line, soft_wrap=True))


def _sensitive(mem: Semmem, namespaces: str | list[str] | None, narrow: Mapping[str, Any] | None) -> int:
    """Count the sensitive memories that an export of the same has left out."""
    from semmem.client.pages import every_memory

    if namespaces is None:
        namespaces = [one.name for one in mem.namespaces()]
    each = [namespaces] if isinstance(namespaces, str) else namespaces
    hidden = {**(narrow or {}), "sensitive": True}
    return sum(1 for name in each for _ in every_memory(mem, namespace=name, filters=hidden))


def lines_to(file: str, rows: Iterable[Mapping[str, Any]], *, force: bool) -> tuple[Path | None, int]:
    """Write rows to a file, or to standard output for "-", as JSON lines; return the file and how many there are."""
    path = None if file == "-" else to_write(Path(file), force=force)
    with _sink(path, force) as sink:
        return path, _written(rows, sink, lambda _: None)


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
