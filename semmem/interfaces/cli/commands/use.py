"""The commands for what an agent does with what it recalled: context, feedback and judgments."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from semmem.interfaces.cli.commands.read import AsOf, LeastConfidence, Now
from semmem.interfaces.cli.context import CommandLine, least_confidence, moment, not_empty
from semmem.interfaces.cli.options import Narrow
from semmem.interfaces.cli.show import degraded_lines, left_out_lines
from semmem.model.reports import counted
from semmem.text.control_characters import as_json

if TYPE_CHECKING:
    from semmem.read.context import Context

__all__ = ["context", "feedback", "judgments"]

_Several = Annotated[
    list[str] | None,
    typer.Option("--namespace", "-n", callback=not_empty, help="Where to look; give it again for more than one."),
]


def context(
    cli: CommandLine,
    query: Annotated[str, typer.Argument(help="The question, or the task of the agent.")],
    namespace: _Several = None,
    budget: Annotated[int, typer.Option("--budget", "--token-budget", help="Most tokens of the block.")] = 2000,
    limit: Annotated[int, typer.Option("--limit", "-k", help="How many hits to choose from.")] = 20,
    *,
    narrow: Narrow,
    exclude: Annotated[list[str] | None, typer.Option(help="An id to leave out, pinned or not; repeatable.")] = None,
    min_confidence: LeastConfidence = "0",
    as_of: AsOf = None,
    now: Now = None,
) -> None:
    """Print the memories that answer a question as a block for the prompt of an agent."""
    with cli.connect() as mem:
        block = mem.context(
            query,
            namespace=namespace or cli.namespace,
            token_budget=budget,
            limit=limit,
            recipe=cli.recipe,
            filters=narrow,
            exclude=tuple(exclude or ()),
            min_confidence=least_confidence(min_confidence),
            as_of=moment(as_of, "--as-of"),
            now=moment(now, "--now"),
        )
    cli.give(block, lambda: _show_context(cli, block))


def feedback(
    cli: CommandLine,
    recall_id: Annotated[str, typer.Argument(help="The id of a recall that was logged.")],
    useful: Annotated[list[str] | None, typer.Option(help="The id of a memory that was useful; repeatable.")] = None,
    not_useful: Annotated[list[str] | None, typer.Option(help="The id of one that was not; repeatable.")] = None,
    namespace: _Several = None,
    made_by: Annotated[str | None, typer.Option(callback=not_empty, help="Who says so.")] = None,
) -> None:
    """Record which memories of a recall were useful and which were not; rankings stay as they are."""
    with cli.connect() as mem:
        judged = mem.feedback(
            recall_id,
            useful=tuple(useful or ()),
            not_useful=tuple(not_useful or ()),
            namespace=namespace or cli.namespace,
            made_by=made_by,
        )
    cli.give({"judged": judged}, lambda: cli.out.print(f"{counted(judged, 'judgment')} stored."))


def judgments(cli: CommandLine) -> None:
    """Print relevance judgments as JSON, one a line, as python -m eval reads them."""
    with cli.connect() as mem:
        rows = mem.judgments(namespace=cli.namespace)
    encoding = sys.stdout.encoding or "utf-8"
    cli.give(
        {"judgements": rows},
        lambda: sys.stdout.writelines(as_json(one.as_dict(), encoding=encoding) + "\n" for one in rows),
    )


def _show_context(cli: CommandLine, block: Context) -> None:
    """Print the block on standard output; what is beside it on standard error."""
    for line in block.text.splitlines():
        cli.out.print(line, soft_wrap=True)
    if not block.text:
        cli.say("No memory is shown: the block is empty.")
    for note in (*left_out_lines(block.left_out, block.token_budget), *degraded_lines(block.degraded)):
        cli.err.print(note)
