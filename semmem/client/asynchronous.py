"""The facade for programs of asyncio: every verb awaited, over a store or a server.

A verb runs in a thread. Cancelled while it waits for one, it is never called. Cancelled at work, the caller goes on at
once: a stream of items ends at the next item, whose batch is then not stored; any other verb finishes by itself, gives
its connection back, and nobody hears its answer. ``close`` waits for such verbs.

Items of an asynchronous generator are made on the event loop, and may be made with verbs of the same facade: while a
verb waits for such items it holds none of the threads of the others.
"""

from __future__ import annotations

import asyncio
import contextvars
import inspect
from collections.abc import AsyncIterable, AsyncIterator, Callable, Coroutine, Generator, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import partial, update_wrapper, wraps
from itertools import chain
from threading import Event, Lock
from types import TracebackType
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, TypeGuard, TypeVar, Unpack

from semmem.client.memory import Semmem
from semmem.client.opening import connect
from semmem.model.errors import InvalidInput, StoreClosed
from semmem.model.keywords import SettingValues
from semmem.model.other_names import verb_named
from semmem.model.protocols import Embedder, Extractor
from semmem.model.recipe import Recipe
from semmem.model.search import Factory

__all__ = ["AsyncSemmem", "Opening", "aconnect"]

P = ParamSpec("P")
T = TypeVar("T")
Verb = Callable[Concatenate["AsyncSemmem", P], Coroutine[Any, Any, T]]

_THREADS = 32
_AT_ONCE = 500
"""The most items that are asked of an asynchronous generator at a time."""


def aconnect(
    url: str | None = None,
    *,
    recipe: str | Recipe | None = None,
    embedder: str | Embedder | None = None,
    extractor: str | Extractor | None = None,
    legs: Mapping[str, Factory] | None = None,
    threads: int = _THREADS,
    **settings: Unpack[SettingValues],
) -> Opening:
    """Open a store or a server for asyncio: ``async with aconnect() as mem`` or ``mem = await aconnect()``.

    The arguments are those of ``connect``. ``threads`` is how many verbs may work at the same time, besides those that
    wait for the items of an asynchronous generator.
    """
    if isinstance(threads, bool) or not isinstance(threads, int) or not 1 <= threads <= 1_000:
        raise InvalidInput(f"threads must be from 1 to 1000, not {threads!r}.")
    opened = partial(connect, url, recipe=recipe, embedder=embedder, extractor=extractor, legs=legs, **settings)
    return Opening(opened, threads)


class Opening:
    """A Semmem that is about to be opened: to be awaited, or entered with ``async with``."""

    def __init__(self, opened: Callable[[], Semmem], threads: int) -> None:
        self._opened = opened
        self._threads = threads
        self._mem: AsyncSemmem | None = None

    def __await__(self) -> Generator[Any, None, AsyncSemmem]:
        return self._open().__await__()

    async def __aenter__(self) -> AsyncSemmem:
        self._mem = await self._open()
        return self._mem

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None
    ) -> None:
        assert self._mem is not None
        await self._mem.close()

    async def _open(self) -> AsyncSemmem:
        work = _Work(self._threads)
        try:
            opening = work.submit(self._opened)
            try:
                mem = await asyncio.wrap_future(opening)
            except asyncio.CancelledError:
                opening.add_done_callback(_close_if_open)  # nobody else can
                raise
        except BaseException:
            work.end(wait=False)
            raise
        return AsyncSemmem(mem, work)


def _close_if_open(opening: Future[Semmem]) -> None:
    if not opening.cancelled() and opening.exception() is None:
        opening.result().close()


class _Work:
    """The threads of one AsyncSemmem."""

    def __init__(self, threads: int) -> None:
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="semmem-async")
        self._apart: set[ThreadPoolExecutor] = set()
        self._lock = Lock()
        self._ended = False

    def submit(self, call: Callable[[], T]) -> Future[T]:
        try:
            return self._threads.submit(contextvars.copy_context().run, call)
        except RuntimeError:
            raise StoreClosed from None

    async def run(self, call: Callable[[], T]) -> T:
        return await asyncio.wrap_future(self.submit(call))

    async def run_apart(self, call: Callable[[], T]) -> T:
        """Run a verb in a thread of its own: what it waits for may itself wait for one of the others."""
        with self._lock:
            if self._ended:
                raise StoreClosed
            thread = ThreadPoolExecutor(1, thread_name_prefix="semmem-async-items")
            self._apart.add(thread)
        work = thread.submit(contextvars.copy_context().run, call)
        work.add_done_callback(lambda _: self._apart.discard(thread))
        thread.shutdown(wait=False)
        return await asyncio.wrap_future(work)

    def end(self, *, wait: bool) -> None:
        with self._lock:
            self._ended = True
            apart = [*self._apart]
        for thread in apart:
            thread.shutdown(wait=wait)
        self._threads.shutdown(wait=wait, cancel_futures=True)


def _described(verb: Callable[..., Any]) -> Callable[[Verb[P, T]], Verb[P, T]]:
    """Give a method the name, the docstring and the arguments of the facade's."""

    def described(method: Verb[P, T]) -> Verb[P, T]:
        update_wrapper(method, verb)
        return method

    return described


def _awaited(verb: Callable[Concatenate[Semmem, P], T]) -> Verb[P, T]:
    """Return a verb of the facade to be awaited."""

    @_described(verb)
    async def method(self: AsyncSemmem, /, *args: P.args, **kwargs: P.kwargs) -> T:
        bound: Callable[..., T] = getattr(self.semmem, verb.__name__)
        return await self._work.run(partial(bound, *args, **kwargs))

    return method


def _streamed(verb: Callable[Concatenate[Semmem, P], T]) -> Verb[P, T]:
    """Return a verb that takes a stream of items, which may be an asynchronous one; cancelled, it ends at an item."""
    signature = inspect.signature(verb)

    @_described(verb)
    async def method(self: AsyncSemmem, /, *args: P.args, **kwargs: P.kwargs) -> T:
        bound: Callable[..., T] = getattr(self.semmem, verb.__name__)
        signature.bind(self.semmem, *args, **kwargs)  # raises TypeError where items are missing
        named: dict[str, Any] = dict(kwargs)
        source = args[0] if args else named.pop("items")
        loop, stop, run = asyncio.get_running_loop(), Event(), self._work.run
        items = source
        if isinstance(source, AsyncIterable):
            coming = _Coming(source, named.get("batch_size"))
            items = await coming.some()
            if not coming.ended:
                items, run = chain(items, coming.rest(loop, stop)), self._work.run_apart
        if _is_stream(items):
            items = _until(stop, items)
        if (progress := named.get("progress")) is not None:
            named["progress"] = lambda report: loop.call_soon_threadsafe(progress, report)
        try:
            return await run(partial(bound, items, *args[1:], **named))
        except asyncio.CancelledError:
            stop.set()
            raise

    return method


def _is_stream(value: Any) -> TypeGuard[Iterable[Any]]:
    return isinstance(value, Iterable) and not isinstance(value, Mapping | str | bytes)


def _until(stop: Event, items: Iterable[T]) -> Iterator[T]:
    """Yield items until somebody says stop, which is asked after each, and after the last."""
    for item in items:
        if stop.is_set():
            raise asyncio.CancelledError
        yield item
    if stop.is_set():
        raise asyncio.CancelledError


class _Coming:
    """The items of an asynchronous iterable, asked for on its loop, as many at a time as a batch holds."""

    def __init__(self, items: AsyncIterable[Any], batch_size: Any) -> None:
        self._items = aiter(items)
        fits = isinstance(batch_size, int) and 1 <= batch_size <= _AT_ONCE
        self._at_once = batch_size if fits else _AT_ONCE
        self.ended = False

    async def some(self) -> list[Any]:
        """Return the next items; fewer than asked for are the last ones."""
        batch: list[Any] = []
        while len(batch) < self._at_once:
            try:
                batch.append(await anext(self._items))
            except StopAsyncIteration:
                self.ended = True
                break
        return batch

    def rest(self, loop: asyncio.AbstractEventLoop, stop: Event) -> Iterator[Any]:
        """Yield the items that are left, in another thread than that of the loop, until somebody says stop."""
        while not self.ended:
            future = asyncio.run_coroutine_threadsafe(self.some(), loop)
            while not wait((future,), timeout=0.2).done:
                if stop.is_set():
                    future.cancel()
                    raise asyncio.CancelledError
            yield from future.result()


class AsyncSearch(Generic[T]):
    """One leg, or the whole recall, as ``await search(query, …) -> (results, total)``."""

    def __init__(self, search: Any, work: _Work) -> None:
        self.name: str = search.name
        self._search = search
        self._work = work

    async def search(self, query: str, **arguments: Any) -> Any:
        """Return results and how many memories match in all; the arguments are those of the facade's search."""
        return await self._work.run(partial(self._search.search, query, **arguments))


class AsyncSemmem:
    """A memory for programs of asyncio. ``semmem`` is the Semmem behind it."""

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """Return a verb by its former name. For a verb of another system, the error names ours."""
            return verb_named(self, "AsyncSemmem", name)

    def __init__(self, mem: Semmem, work: _Work | None = None) -> None:
        self.semmem = mem
        self._work = work or _Work(_THREADS)

    @property
    def resident(self) -> Mapping[str, int]:
        """The same as ``Semmem.resident``; it need not be awaited."""
        return self.semmem.resident

    remember = _awaited(Semmem.remember)
    remember_many = _streamed(Semmem.remember_many)
    remember_messages = _awaited(Semmem.remember_messages)
    update = _awaited(Semmem.update)
    recall = _awaited(Semmem.recall)
    context = _awaited(Semmem.context)
    feedback = _awaited(Semmem.feedback)
    judgments = _awaited(Semmem.judgments)
    audit = _awaited(Semmem.audit)
    recalls = _awaited(Semmem.recalls)
    logged_recall = _awaited(Semmem.logged_recall)
    replay_recall = _awaited(Semmem.replay_recall)
    get = _awaited(Semmem.get)
    history = _awaited(Semmem.history)
    forgotten = _awaited(Semmem.forgotten)
    restore_memory = _awaited(Semmem.restore_memory)
    link = _awaited(Semmem.link)
    unlink = _awaited(Semmem.unlink)
    links = _awaited(Semmem.links)
    contradictions = _awaited(Semmem.contradictions)
    near_duplicates = _awaited(Semmem.near_duplicates)
    list = _awaited(Semmem.list)
    forget = _awaited(Semmem.forget)
    stats = _awaited(Semmem.stats)
    doctor = _awaited(Semmem.doctor)
    namespaces = _awaited(Semmem.namespaces)
    rename_namespace = _awaited(Semmem.rename_namespace)
    copy_namespace = _awaited(Semmem.copy_namespace)
    drop_namespace = _awaited(Semmem.drop_namespace)
    namespace_limits = _awaited(Semmem.namespace_limits)
    changes = _awaited(Semmem.changes)
    graph = _awaited(Semmem.graph)
    concepts = _awaited(Semmem.concepts)
    merge_concepts = _awaited(Semmem.merge_concepts)
    split_concept = _awaited(Semmem.split_concept)
    graph_hash = _awaited(Semmem.graph_hash)
    rebuild = _awaited(Semmem.rebuild)
    register_leg = _awaited(Semmem.register_leg)
    probe = _awaited(Semmem.probe)
    import_items = _streamed(Semmem.import_items)
    maintain = _awaited(Semmem.maintain)
    backup = _awaited(Semmem.backup)
    restore = _awaited(Semmem.restore)
    hashes = _awaited(Semmem.hashes)
    settings_of = _awaited(Semmem.settings_of)
    searched_by = _awaited(Semmem.searched_by)
    configure = _awaited(Semmem.configure)
    unset_settings = _awaited(Semmem.unset_settings)

    @wraps(Semmem.export)
    async def export(self, **arguments: Any) -> AsyncIterator[dict[str, Any]]:
        rows = await self._work.run(partial(self.semmem.export, **arguments))
        alone = Lock()  # cancelled, the thread may still be making the next row

        def following() -> dict[str, Any] | None:
            with alone:
                return next(rows, None)

        def close() -> None:
            with alone:
                getattr(rows, "close", lambda: None)()

        try:
            while (row := await self._work.run(following)) is not None:
                yield row
        finally:
            await asyncio.shield(self._work.run(close))

    @wraps(Semmem.leg)
    async def leg(self, name: str | None = None, **arguments: Any) -> AsyncSearch[Any]:
        return AsyncSearch(await self._work.run(partial(self.semmem.leg, name, **arguments)), self._work)

    async def explain(self, recall: Any, id: str, namespace: str | None = None) -> Any:
        """Return ``recall.explain(id)``, which asks the store or the server again."""
        return await self._work.run(partial(recall.explain, id, namespace))

    async def close(self) -> None:
        """Wait for the verbs at work, and give connections and threads back."""
        loop = asyncio.get_running_loop()
        await asyncio.shield(loop.run_in_executor(None, self._closed))

    def _closed(self) -> None:
        self._work.end(wait=True)
        self.semmem.close()

    async def __aenter__(self) -> AsyncSemmem:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None
    ) -> None:
        await self.close()
