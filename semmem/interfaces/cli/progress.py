"""Progress: how many are done, as a bar on a terminal, as a line now and then where standard error is none."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from semmem.text.control_characters import visible

if TYPE_CHECKING:
    from rich.progress import Progress

    from semmem.interfaces.cli.context import CommandLine

__all__ = ["counting", "line"]

_PATIENCE, _PAUSE, _MINUTE = 1.0, 10.0, 60.0


@contextmanager
def counting(
    cli: CommandLine, what: str, total: int | None, unit: str = "memories", earlier: int = 0
) -> Iterator[Callable[[Any], None]]:
    """Yield a callback for remember_many's progress: called with the number done so far, or with a report of it.

    Nothing is shown during the first second; then, on a terminal, a bar, though nothing be done yet. Where standard
    error is not a terminal, a plain line is written instead: after ten seconds or more when the number has changed,
    else after a minute. ``earlier`` ones, made by an interrupted call, count as done and not for the rate.
    """
    start = last = time.monotonic()
    bar: Progress | None = None
    patience: threading.Timer | None = None
    if cli.err.is_terminal:
        bar = _bar(cli)
        bar.add_task(visible(what), total=total, rate="", done=_done(earlier, total), completed=earlier)
        patience = threading.Timer(_PATIENCE, bar.start)
        patience.daemon = True
        patience.start()
    count, last_count, over = earlier, -1, threading.Event()

    def tell() -> None:
        """Say how many are done, while the first batch is at work too."""
        nonlocal last, last_count
        now = time.monotonic()
        if now - last >= (_PAUSE if count != last_count else _MINUTE):
            last, last_count = now, count
            cli.say(line(what, count, total, now - start, unit, earlier))

    def keep_telling() -> None:
        while not over.wait(_PAUSE):
            tell()

    if bar is None:
        threading.Thread(target=keep_telling, daemon=True).start()

    def advance(report: Any) -> None:
        nonlocal count, earlier
        count = report if isinstance(report, int) else int(report.read)
        if count < earlier:  # they were discarded
            earlier = 0
        now = time.monotonic()
        if bar is not None:
            rate = f"{(count - earlier) / max(now - start, 1e-3):,.0f}/s"
            bar.update(bar.task_ids[0], completed=count, rate=rate, done=_done(count, total))
        else:
            tell()

    try:
        yield advance
    finally:
        over.set()
        if patience is not None:
            patience.cancel()
            patience.join()
        if bar is not None and bar.live.is_started:
            bar.stop()


def line(what: str, count: int, total: int | None, seconds: float, unit: str = "memories", earlier: int = 0) -> str:
    """Return progress as a sentence: done, rate, and the time left where the total is known."""
    of = f" of {total:,}" if total else ""
    if count == earlier:
        return f"{what}: {count:,}{of} {unit} yet, {seconds:.0f} s"
    rate = (count - earlier) / seconds if seconds else 0.0
    rest = f", {(total - count) / rate:.0f} s left" if total and rate else ""
    return f"{what}: {count:,}{of} {unit}, {rate:,.0f}/s{rest}"


def _done(count: int, total: int | None) -> str:
    """Return how many are done, of how many where that is known."""
    return f"{count:,}" if total is None else f"{count:,}/{total:,}"


def _bar(cli: CommandLine) -> Progress:
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    return Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TextColumn("{task.fields[done]}", justify="right"),
        TextColumn("{task.fields[rate]}", justify="right"),
        TimeRemainingColumn(),
        console=cli.err,
        transient=True,
    )
