"""The commands `log`: who was given what, one entry in full, and the question of one asked again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from semmem.interfaces.cli.context import CommandLine, alone, command, moment, not_empty
from semmem.interfaces.cli.show import namespace_options
from semmem.model.errors import NotFound
from semmem.model.reports import counted

if TYPE_CHECKING:
    from semmem.client.memory import Semmem
    from semmem.model.recall_log import LoggedHit, LoggedRecall, Recalls, Replay

__all__ = ["names"]

names = typer.Typer(add_completion=False)
"""The group of commands under ``semmem log``."""

_Several = Annotated[
    list[str] | None,
    typer.Option("--namespaces", "--namespace", "-n", callback=not_empty, help="Whose entries; repeatable."),
]
_Id = Annotated[str, typer.Argument(help="The id of a recall that was logged.")]
_SHOWN = 60


@alone(names, "url")
def log(
    cli: CommandLine,
    namespaces: _Several = None,
    interface: Annotated[
        str | None, typer.Option(help="Only asked through this: python, cli, http, page, mcp or hook.")
    ] = None,
    agent: Annotated[str | None, typer.Option(help="Only asked by this agent.")] = None,
    memory: Annotated[str | None, typer.Option(help="Only recalls that gave the memory with this id.")] = None,
    asked_after: Annotated[str | None, typer.Option(help="Only asked from this time on (ISO 8601).")] = None,
    asked_before: Annotated[str | None, typer.Option(help="Only asked before this time (ISO 8601).")] = None,
    limit: Annotated[int, typer.Option("--limit", "-k", help="How many entries.")] = 20,
    cursor: Annotated[str | None, typer.Option(help="The cursor of the previous page.")] = None,
) -> None:
    """Show who was given what: the recalls that were logged, newest first.

    Recalls are logged if the setting recall_log is on, and kept for keep_recall_log_days.
    """
    names = namespaces or [cli.namespace]
    with cli.connect() as mem:
        page = mem.recalls(
            namespace=names,
            interface=interface,
            agent=agent,
            memory=memory,
            asked_after=moment(asked_after, "--asked-after"),
            asked_before=moment(asked_before, "--asked-before"),
            limit=limit,
            cursor=cursor,
        )
    cli.give(page, lambda: _show_page(cli, page, names))


@command(names, "show", "url")
def show(cli: CommandLine, recall_id: _Id, namespaces: _Several = None) -> None:
    """Show one logged recall in full: how it was asked, and the memories as they are now.

    The log keeps ids and no texts, so a memory that has changed since is shown as it is today.
    """
    with cli.connect() as mem:
        entry = mem.logged_recall(recall_id, namespace=namespaces or cli.namespace)
        texts = {} if cli.json else _texts(mem, entry)
    cli.give(entry, lambda: _show_entry(cli, entry, texts))


@command(names, "replay", "url")
def replay(
    cli: CommandLine,
    recall_id: _Id,
    namespaces: _Several = None,
    then: Annotated[bool, typer.Option(help="Ask the memories that were valid at the time of the recall.")] = False,
) -> None:
    """Ask the question of a logged recall again, and show what differs. The repetition is not logged."""
    with cli.connect() as mem:
        repeated = mem.replay_recall(recall_id, namespace=namespaces or cli.namespace, then=then)
    cli.give(repeated, lambda: _show_replay(cli, repeated))


def _texts(mem: Semmem, entry: LoggedRecall) -> dict[tuple[str, str], str]:
    """Return the first line of each memory of an entry that still exists; a sensitive one is masked."""
    texts = {}
    for hit in entry.hits:
        try:
            memory = mem.get(hit.id, namespace=hit.namespace)
        except NotFound:
            continue
        texts[hit.namespace, hit.id] = _short(memory.title or memory.text)
    return texts


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _SHOWN else f"{line[:_SHOWN]}…"


def _show_page(cli: CommandLine, page: Recalls, namespaces: Sequence[str]) -> None:
    if not page:
        cli.say(
            f"No logged recall in namespace {', '.join(namespaces)} meets these conditions; --namespace names another. "
            "Recalls are logged if the setting recall_log is on, for keep_recall_log_days."
        )
    for entry in page:
        cli.out.print(f"{_when(entry)}  {_who(entry)}  {_short(entry.question)}", soft_wrap=True)
        cli.out.print(f"    {entry.id}  {_counts(entry)}", style="dim", soft_wrap=True)
    if page.cursor is not None:
        cli.say(f"More: --cursor {page.cursor}")


def _show_entry(cli: CommandLine, entry: LoggedRecall, texts: dict[tuple[str, str], str]) -> None:
    cli.out.print(entry.question, style="bold", soft_wrap=True)
    confidence = entry.facts.get("confidence")
    sure = "" if confidence is None else f", confidence {confidence:.2f}"
    asked = f"{_when(entry)}, {entry.verb} through {_who(entry)} in {', '.join(entry.namespaces)}"
    cli.out.print(f"{asked}, recipe {entry.recipe}{sure}", soft_wrap=True)
    for name, value in {**entry.facts.get("arguments", {}), **entry.facts.get("settings", {})}.items():
        cli.out.print(f"{name}: {value}", style="dim", soft_wrap=True)
    for leg, why in entry.facts.get("degraded", {}).items():
        cli.out.print(f"degraded: {leg}: {why}", style="dim", soft_wrap=True)
    for hit in entry.hits:
        text = texts.get((hit.namespace, hit.id), "(no memory of this id any more)")
        rank = "-" if hit.rank is None else str(hit.rank)
        score = "" if hit.score is None else f"  {hit.score:.3f}"
        cli.out.print(f"{rank:>3}  {hit.id}{score}  {_fate(hit)}", soft_wrap=True)
        cli.out.print(f"     {text}", style="dim", soft_wrap=True)
    if not entry.hits:
        cli.out.print("No memory was found.")
    where = namespace_options(entry.namespaces)
    cli.out.print(f"Again: semmem log replay {entry.id}{where}", style="dim", soft_wrap=True, markup=False)


def _show_replay(cli: CommandLine, repeated: Replay) -> None:
    of = "the memories of today" if repeated.as_of is None else f"the memories of {repeated.as_of:%Y-%m-%d %H:%M}"
    cli.out.print(repeated.entry.question, style="bold", soft_wrap=True)
    if not repeated.memories:
        cli.out.print(f"Nothing is found, then or in {of}.")
        return
    for one in repeated.memories:
        then, now = ("-" if rank is None else str(rank) for rank in (one.rank_then, one.rank_now))
        cli.out.print(f"{then:>4} → {now:<4} {one.change:<10} {one.id}", soft_wrap=True)
    same = "The same memories have the same ranks" if repeated.is_same else "The ranks differ"
    cli.out.print(f"{same}: in the log, and now in {of}.")


def _when(entry: LoggedRecall) -> str:
    return "" if entry.at is None else f"{entry.at:%Y-%m-%d %H:%M}"


def _who(entry: LoggedRecall) -> str:
    return entry.interface if entry.agent is None else f"{entry.interface} ({entry.agent})"


def _counts(entry: LoggedRecall) -> str:
    """Return how many memories were given, left out, withheld and judged, without zeros."""
    judged = [hit.useful for hit in entry.hits if hit.useful is not None]
    not_given = {"left out": entry.left_out, "withheld": entry.withheld}
    parts = [f"{len(entry.given)} given", *(f"{len(some)} {what}" for what, some in not_given.items() if some)]
    if judged:
        parts.append(f"{judged.count(True)} of {counted(len(judged), 'judgment')} useful")
    return ", ".join(parts)


def _fate(hit: LoggedHit) -> str:
    """Return what became of a memory, and what was said of it."""
    outcome = (hit.outcome or "not returned").replace("_", " ")
    if hit.useful is None:
        return outcome
    said = "useful" if hit.useful else "not useful"
    return f"{outcome}, {said}" + ("" if hit.judged_by is None else f" ({hit.judged_by})")
