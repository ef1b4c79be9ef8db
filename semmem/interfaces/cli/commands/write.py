"""The commands that change a store: remember, update, forget and maintain."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from semmem.interfaces import wire
from semmem.interfaces.cli.context import CommandLine, not_empty
from semmem.interfaces.cli.files import to_read
from semmem.interfaces.cli.options import AnyNarrow, FirstChanges, Given, LastChanges
from semmem.interfaces.cli.progress import counting
from semmem.model.errors import BadItem, Conflict, InvalidInput
from semmem.model.reports import counted

if TYPE_CHECKING:
    from semmem.model.types import IngestReport, Memory

__all__ = ["OnError", "forget", "items", "maintain", "remember", "update"]

OnError = Literal["abort", "skip"]
"""What becomes of the batch of a bad item."""

_TO_LOOK_AT = ("orphans", "hubs", "contradictions", "unread", "other_language", "stale")
"""What maintain counts and leaves as it is."""
_TEXT = (".txt", ".md", ".markdown")
_ITEMS = (".jsonl", ".ndjson")
_DOCUMENTS = (".pdf", ".doc", ".docx", ".odt", ".rtf", ".epub", ".html", ".htm", ".csv", ".json", ".xlsx", ".pptx")


def remember(
    cli: CommandLine,
    text: Annotated[
        str | None,
        typer.Argument(
            help="A text; - for standard input; or the name of a .txt, .md or .jsonl file.", show_default=False
        ),
    ] = None,
    file: Annotated[Path | None, typer.Option(help="A file of any name: text, or one item a line if .jsonl.")] = None,
    id: Annotated[
        str | None,
        typer.Option(callback=not_empty, help="Your own id; the same id with the same content changes nothing."),
    ] = None,
    *,
    fields: Given,
    on_error: Annotated[
        OnError, typer.Option(help="For .jsonl: store nothing of a batch with a bad item, or skip that item.")
    ] = "abort",
    batch_size: Annotated[int, typer.Option(help="For .jsonl: items per transaction.")] = 500,
) -> None:
    """Remember a text, standard input, or a file.

    A .txt or .md file becomes one memory (a long one is split), with an id made from the file, so that it is not stored
    twice. A .jsonl file becomes one memory per line, with remember's argument names as keys.
    """
    path = _path(text, file)
    if path is not None and path.suffix.lower() in _ITEMS:
        _remember_lines(cli, path, on_error, batch_size)
        return
    whole = _text_of(text, path)
    if path is not None:
        fields["title"] = fields.get("title") or path.stem
        fields["source"] = fields.get("source") or os.path.abspath(path)
        id = id or _id_of(path)
    with cli.connect(create=True) as mem:
        memory = mem.remember(whole, namespace=cli.namespace, id=id, **fields)
    cli.give(memory, lambda: _show_memory(cli, memory))


def update(
    cli: CommandLine,
    id: Annotated[str, typer.Argument(help="The memory's id.")],
    text: Annotated[str | None, typer.Argument(help="Its new text; - for standard input.", show_default=False)] = None,
    expected_version: Annotated[
        int | None,
        typer.Option(help="Update it only if its version is this one; `semmem get` shows it.", show_default=False),
    ] = None,
    *,
    first: FirstChanges,
    by: Annotated[str | None, typer.Option(help="Who changes it; `semmem history` shows it.")] = None,
    last: LastChanges,
) -> None:
    """Change the text of a memory, or the fields that are given; other fields stay.

    The id stays, and so does the creation time unless --created-at is given; the version number goes up. `semmem
    history` shows the earlier versions. '' removes the time of --valid-from, --valid-to or --expires-at.
    """
    changes = ({} if text is None else {"text": _text_of(text, None)}) | first | last
    if not changes:
        raise InvalidInput("Say what to change: a new text, or an option such as --title.")
    with cli.connect() as mem:
        memory = mem.update(id, namespace=cli.namespace, expected_version=expected_version, changed_by=by, **changes)
    line = f"{memory.id} in namespace {cli.namespace} is at version {memory.version}."
    cli.give(memory, lambda: cli.out.print(line, markup=False))


def forget(
    cli: CommandLine,
    id: Annotated[str | None, typer.Argument(help="The memory's id; without one, all that the filters match.")] = None,
    *,
    narrow: AnyNarrow,
    hard: Annotated[
        bool, typer.Option(help="For good: keep nothing of it, and rewrite the files, so that none of its bytes stay.")
    ] = False,
    everything: Annotated[bool, typer.Option("--all", help="The whole namespace, for good.")] = False,
    by: Annotated[str | None, typer.Option(callback=not_empty, help="Who forgets it; the history says so.")] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Forget; without this, only count.")] = False,
) -> None:
    """Forget one memory, or all that the filters match. Without --yes it only counts them.

    No verb finds a forgotten memory. For 30 days (setting keep_forgotten_days) `semmem restore-memory` can bring it
    back; --hard and --all keep nothing.
    """
    if id is None and not narrow and not everything:
        raise InvalidInput("Say what to forget: an id, a filter such as --sessions, or --all for the whole namespace.")
    if everything and (id is not None or narrow):
        raise InvalidInput("--all is the whole namespace; leave it out to forget by id or filters.")
    with cli.connect() as mem:
        count = mem.forget(
            id,
            namespace=cli.namespace,
            filters=narrow,
            everything=everything,
            hard=hard,
            dry_run=not yes,
            forgotten_by=by,
        )
    what = counted(count, "memory")
    line = f"Forgot {what}." if yes else f"Would forget {what} in namespace {cli.namespace}; do it with --yes."
    cli.give({"forgotten": count if yes else 0, "matched": count, "dry_run": not yes}, lambda: cli.out.print(line))


def maintain(cli: CommandLine) -> None:
    """Maintain the store: remove what has expired, derive stale memories again, pack the index, index vectors."""
    from semmem.interfaces.cli.commands.doctor import unindexed

    with cli.connect() as mem:
        counts = mem.maintain()
        why = unindexed(mem, counts)
    phrases = {name: f"{name} {count:,}" for name, count in counts.items() if count and name != "busy"}
    advice = ", ".join(phrases.pop(name) for name in _TO_LOOK_AT if name in phrases)
    shown = ", ".join(phrases.values())
    line = f"Done: {shown}." if shown else "There was nothing to do."
    line = f"{line} To look at: {advice}." if advice else line
    cli.give(counts, lambda: cli.out.print(f"{line} {why}" if why else line, soft_wrap=True))


def _path(text: str | None, file: Path | None) -> Path | None:
    if (text is None) == (file is None):
        raise InvalidInput("Give one text to remember: as the argument, - for standard input, or --file PATH.")
    if file is not None:
        return to_read(file)
    if not text or "\n" in text or len(text) >= 1024:
        return None
    path, is_file = Path(text), os.path.isfile(text)
    if text.lower().endswith(_TEXT + _ITEMS):
        if is_file:
            return path
        if " " not in text:
            raise InvalidInput(f"There is no file {text}; to remember these very words, add a full stop or a space.")
    elif is_file and (path.suffix or len(path.parts) > 1):
        raise InvalidInput(
            f"{text} is a file, and only .txt, .md and .jsonl files are read by their name: say --file {text} if it is "
            "plain text, or see `semmem import --help`."
        )
    elif " " not in text and path.suffix.lower() in _DOCUMENTS:
        raise InvalidInput(f"There is no file {text}; to remember these very words, add a full stop or a space.")
    return None


def _id_of(path: Path) -> str | None:
    """Return the id of a file's memory, the same every time it is read; None for a pipe, which is another each time."""
    if not path.is_file():
        return None
    return f"{path.stem[:200]}-{blake2b(os.fsencode(path.resolve()), digest_size=4).hexdigest()}"


def _text_of(text: str | None, path: Path | None) -> str:
    try:
        if path is not None:
            return path.read_text(encoding="utf-8")
        return sys.stdin.buffer.read().decode("utf-8") if text == "-" else text or ""
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{path or 'Standard input'} is not UTF-8 text (byte {error.start}); convert it.") from error


def items(path: Path, numbers: list[int] | None = None) -> Iterator[Any]:
    """Yield one item a line of a JSONL file; a broken line as it stands. ``numbers`` gets the line of each.

    remember_many rejects what is not a mapping, with its position and reason, so a line that is not JSON is passed on
    as the text it is.
    """
    with path.open(encoding="utf-8", errors="surrogateescape") as lines:
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            if numbers is not None:
                numbers.append(number)
            try:
                yield json.loads(line)
            except (ValueError, RecursionError):
                yield line


def _in_the_file(reason: str) -> str:
    """Return why an item is refused as one says it of a line."""
    if reason == "An item must be a mapping with a text, not str.":
        return "it is no JSON object."
    if reason.startswith("A memory has no field 'updated_at'"):
        return "it was written by semmem export; semmem import jsonl reads it."
    return reason


def _remember_lines(cli: CommandLine, path: Path, on_error: OnError, batch_size: int) -> None:
    from semmem.client.file_import import numbered
    from semmem.model.serialization import plain

    total, numbers, stored = None, list[int](), 0
    if path.is_file():  # a pipe can be read only once
        with path.open("rb") as lines:
            total = sum(1 for line in lines if line.strip())
    with cli.connect(create=True) as mem, counting(cli, path.name, total) as advance:

        def after_a_batch(report: IngestReport) -> None:
            nonlocal stored
            stored = report.read
            advance(report)

        try:
            report = mem.remember_many(
                items(path, numbers),
                namespace=cli.namespace,
                batch_size=batch_size,
                on_error=on_error,
                progress=after_a_batch,
            )
        except (BadItem, Conflict) as error:
            if (place := numbered(error)) is None:
                raise
            position, reason = place
            kept = f" The {stored:,} items of earlier batches are stored." if stored else ""
            raise type(error)(f"{path.name}, line {numbers[position]}: {_in_the_file(reason)}{kept}") from error
    rejected = [
        {"line": numbers[row.position], **plain(row), "reason": _in_the_file(row.reason)} for row in report.rejected
    ]
    cli.give({**plain(report), "rejected": rejected}, lambda: _show_report(cli, report, rejected))
    if rejected and not (report.remembered or report.unchanged):
        raise typer.Exit(wire.ERRORS[InvalidInput].exit_code)


def _show_memory(cli: CommandLine, memory: Memory) -> None:
    again = f" again, {memory.seen_count} times so far" if memory.last_seen else ""
    cli.out.print(f"Remembered {memory.id} in namespace {memory.namespace}{again}.")
    if memory.contradicts:
        older = ", ".join(memory.contradicts)
        cli.out.print(f"It contradicts {older}; `semmem links` shows both.", markup=False, soft_wrap=True)
    if memory.older:
        cli.out.print("Older memories that it may outdate:")
    for one in memory.older:
        day = f"{one.created_at:%Y-%m-%d}" if one.created_at else ""
        cli.out.print(f"  {one.id}  {day}  {one.text}", markup=False, soft_wrap=True)


def _show_report(cli: CommandLine, report: IngestReport, rejected: list[dict[str, Any]]) -> None:
    rate = report.read / report.seconds if report.seconds else 0.0
    cli.out.print(
        f"Remembered {report.remembered} of {report.read} in {report.seconds:.1f} s ({rate:,.0f}/s); "
        f"{report.unchanged} unchanged, {len(report.rejected) + report.more_rejected} rejected."
    )
    for row in rejected[:20]:
        id = f" ({row['id']})" if row["id"] else ""
        cli.say(f"  line {row['line']}{id}: {row['reason']}")
    if len(report.rejected) > 20:
        more = len(report.rejected) + report.more_rejected - 20
        cli.say(f"  and {more} more; --json lists {'them all' if not report.more_rejected else 'the first of them'}.")
    for leg, reason in report.degraded.items():
        cli.say(f"  {leg} degraded: {reason}")
