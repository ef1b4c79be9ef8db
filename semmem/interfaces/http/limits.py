"""Limits of a server on size, rate and time, and the threads that its blocking verbs run in."""

from __future__ import annotations

import asyncio
import contextvars
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from functools import partial
from threading import Semaphore
from typing import Any, TypeVar

from semmem.model.errors import InvalidInput, LimitExceeded
from semmem.model.recipe_settings import Number

__all__ = ["Limits", "Patience", "Rates", "TooLarge", "TooSlow", "Workers"]

Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class Limits:
    """What one server takes on.

    ``body_bytes`` of a body, or of one line of a stream of items; ``stream_bytes`` of such a stream in all;
    ``rate`` requests a second of one key, or without keys of one address, in the mean (0: any number), of which
    ``burst`` may come at once; ``seconds`` that one answer may take, and in which a body, or one line of a stream, must
    have come; ``stream_seconds`` that a stream may let the server wait in all; ``head_seconds`` in which the first line
    and the headers of a request must have come; ``threads`` verbs at work at once, and ``waiting`` more that wait for
    one; ``streams`` of items open at once, of which half as many as there are threads are at work. Servers with
    ``shared`` count requests together.
    """

    body_bytes: int = 16 * 2**20
    stream_bytes: int = 4 * 2**30
    rate: float = 200.0
    burst: int = 400
    seconds: float = 60.0
    stream_seconds: float = 3_600.0
    head_seconds: float = 20.0
    threads: int = 8
    waiting: int = 256
    streams: int = 256
    shared: bool = False

    def __post_init__(self) -> None:
        for name, values in _RANGES.items():
            values.check(_OPTIONS.get(name, f"The limit {name}"), getattr(self, name))

    @classmethod
    def chosen(cls, *, max_body: int, rate: float, timeout: float, threads: int, shared: bool = False) -> Limits:
        """Return the limits of the options of a command. Raises InvalidInput, which names the option and its range."""
        _RANGES["rate"].check("--rate", rate)
        burst = max(1, round(2 * rate))
        return cls(body_bytes=max_body, rate=rate, burst=burst, seconds=timeout, threads=threads, shared=shared)


_RANGES = {
    "body_bytes": Number(1, 2**30, whole=True),
    "stream_bytes": Number(1, 2**50, whole=True),
    "rate": Number(0, 1_000_000),
    "burst": Number(1, 2_000_000, whole=True),
    "seconds": Number(0.001, 86_400),
    "stream_seconds": Number(0.001, 604_800),
    "head_seconds": Number(0.001, 86_400),
    "threads": Number(1, 1_000, whole=True),
    "waiting": Number(0, 1_000_000, whole=True),
    "streams": Number(1, 10_000, whole=True),
}
_OPTIONS = {"body_bytes": "--max-body", "rate": "--rate", "seconds": "--timeout", "threads": "--threads"}
"""The options of `semmem serve` and `semmem mcp --http` by which a person chooses a limit."""


class TooLarge(InvalidInput):
    """The body is larger than the server takes; send less at a time."""

    http_status = 413


class TooSlow(LimitExceeded):
    """The answer took longer than the server allows; ask for less."""

    http_status = 504


class Patience:
    """How long one client may still let its server wait for a body: for one piece of it, and in all.

    Time counts while the server waits for the client, not while it stores what has come.
    """

    def __init__(self, limits: Limits, *, stream: bool = False) -> None:
        self._stream = stream
        self._each = limits.seconds
        self._whole = limits.stream_seconds if stream else limits.seconds
        self._waited = self._waited_in_all = 0.0

    def begin(self) -> None:
        """Count anew for a piece: a line of a stream has come whole."""
        self._waited = 0.0

    async def wait_for(self, coming: Awaitable[Answer]) -> Answer:
        """Return what is ``coming``. Raises LimitExceeded where that, with what came before, takes too long."""
        started = time.monotonic()
        each, whole = self._each - self._waited, self._whole - self._waited_in_all
        try:
            async with asyncio.timeout(min(each, whole)):
                return await coming
        except TimeoutError:
            if not self._stream:
                sentence = (
                    f"The body was not whole after {self._whole:g} seconds; send it without pauses, or less of it."
                )
            elif whole <= each:
                sentence = f"The stream has let the server wait for {self._whole:g} seconds in all; send it in two."
            else:
                sentence = f"No whole line came for {self._each:g} seconds; send each item without pauses."
            raise LimitExceeded(sentence) from None
        finally:
            took = time.monotonic() - started
            self._waited += took
            self._waited_in_all += took


class Rates:
    """How many requests each client may still send: a bucket of tokens for each, refilled all the time."""

    _MOST = 10_000

    def __init__(self, rate: float, burst: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate = rate
        self._burst = float(burst)
        self._clock = clock
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    async def admit(self, client: str) -> None:
        """Count one request of ``client``. Raises LimitExceeded for one too many, with ``retry_after`` in seconds."""
        if wait := await self.wait(client):
            error = LimitExceeded(f"More than {self._rate:g} requests a second; wait {wait:.2f} seconds.")
            error.retry_after = wait
            raise error

    async def wait(self, client: str) -> float:
        """Count one request of ``client``; return as ``take`` does."""
        return self.take(client)

    def take(self, client: str) -> float:
        """Count one request of ``client``; return 0, or the seconds to wait where it has sent too many."""
        if not self._rate:
            return 0.0
        now = self._clock()
        tokens, then = self._buckets.pop(client, (self._burst, now))
        tokens = min(self._burst, tokens + (now - then) * self._rate)
        self._buckets[client] = (tokens - 1.0 if tokens >= 1.0 else tokens, now)
        if len(self._buckets) > self._MOST:
            self._buckets.popitem(last=False)
        return 0.0 if tokens >= 1.0 else (1.0 - tokens) / self._rate


class Workers:
    """Threads for verbs, which block: at most so many at once.

    Who waits for an answer may go away: a verb that has not begun is then never called, and one at work ends by
    itself, gives its connection back, and only then frees its thread.

    A stream of items has a thread of its own, so that one which waits for its client keeps no verb waiting; ``turns``
    are taken by streams that store what has come, half as many as there are threads. A probe has one, too.
    """

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._threads = ThreadPoolExecutor(limits.threads, thread_name_prefix="semmem-http")
        self._streams = ThreadPoolExecutor(limits.streams, thread_name_prefix="semmem-http-stream")
        self._probes = ThreadPoolExecutor(1, thread_name_prefix="semmem-http-probe")
        self._probe: Future[Any] | None = None
        self._begun: set[Future[Any]] = set()
        self._open_streams = 0
        self.turns = Semaphore(max(1, limits.threads // 2))
        self.pending = 0
        """Verbs that are at work or wait for a thread, streams among them."""

    async def run(self, verb: Callable[[], Answer], *, seconds: float | None = None) -> Answer:
        """Return what ``verb`` returns. Raises what it raises, LimitExceeded and TooSlow."""
        if self.pending - self._open_streams >= self._limits.threads + self._limits.waiting:
            raise LimitExceeded("The server is overloaded; try again in a few seconds.")
        allowed = self._limits.seconds if seconds is None else seconds
        return await _answer(self._begin(self._threads, verb), allowed)

    def check_streams(self) -> None:
        """Raise LimitExceeded where as many streams are open as may be."""
        if self._open_streams >= self._limits.streams:
            raise LimitExceeded(f"{self._open_streams} streams are open already; send this one in a few seconds.")

    async def run_stream(self, verb: Callable[[], Answer], *, seconds: float) -> Answer:
        """Return what a verb that reads a stream of items returns; it takes one of ``turns`` while it has items."""
        self._open_streams += 1
        future = self._begin(self._streams, verb)
        loop = asyncio.get_running_loop()
        future.add_done_callback(lambda _: _soon(loop, self._end_stream))
        return await _answer(future, seconds)

    async def run_probe(self, verb: Callable[[], Any], *, seconds: float) -> None:
        """Call ``verb`` without waiting for other verbs; of several probes at once, the first one asks for all."""
        if self._probe is None or self._probe.done():
            self._probe = self._probes.submit(verb)
        await _answer(self._probe, seconds, keep=True)

    def _begin(self, threads: ThreadPoolExecutor, verb: Callable[[], Answer]) -> Future[Answer]:
        loop = asyncio.get_running_loop()
        future = threads.submit(partial(contextvars.copy_context().run, verb))
        self.pending += 1
        self._begun.add(future)
        future.add_done_callback(self._begun.discard)
        future.add_done_callback(lambda _: _soon(loop, self._finish))
        return future

    def _finish(self) -> None:
        self.pending -= 1

    def _end_stream(self) -> None:
        self._open_streams -= 1

    @property
    def at_work(self) -> bool:
        """Whether a verb has not ended."""
        return bool(self._begun)

    def close(self, seconds: float) -> None:
        """Wait for what is at work, no longer than ``seconds``; what has not begun is not begun."""
        for threads in (self._threads, self._streams, self._probes):
            threads.shutdown(wait=False, cancel_futures=True)
        wait(tuple(self._begun), timeout=seconds)


async def _answer(future: Future[Answer], seconds: float, *, keep: bool = False) -> Answer:
    """Return the result of a thread. Raises TooSlow after ``seconds``; ``keep`` lets the thread go on for others."""
    result = asyncio.wrap_future(future)
    try:
        async with asyncio.timeout(seconds):
            return await (asyncio.shield(result) if keep else result)
    except TimeoutError:
        raise TooSlow(f"The answer took longer than {seconds:g} seconds; ask for less.") from None


def _soon(loop: asyncio.AbstractEventLoop, call: Callable[[], None]) -> None:
    """Let ``loop`` make a call, unless it has ended."""
    if not loop.is_closed():
        loop.call_soon_threadsafe(call)
