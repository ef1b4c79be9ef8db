"""The facade for asyncio: every verb awaited, over a store and a server, and what a cancelled one leaves behind."""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import semmem
from semmem import AsyncSemmem, Semmem
from semmem.client import values
from semmem.model.store import Store
from tests.serving import serving

Place = Callable[[], AbstractContextManager[str]]


@contextmanager
def served(url: str) -> Iterator[str]:
    with semmem.connect(url) as mem, serving(mem) as address:
        yield address


@pytest.fixture(params=["store", "server"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The URL of a store, and that of a server of one."""
    file = f"sqlite://{tmp_path / 'notes.db'}"
    with nullcontext(file) if request.param == "store" else served(file) as place:
        yield place


def test_every_verb_is_awaited_with_the_arguments_of_the_facade() -> None:
    public = {n for n, f in inspect.getmembers(Semmem, inspect.isfunction) if not n.startswith("_")}
    for name in public - {"close"}:
        here, there = getattr(Semmem, name), getattr(AsyncSemmem, name)
        assert inspect.iscoroutinefunction(there) or inspect.isasyncgenfunction(there), name
        assert inspect.getdoc(there) == inspect.getdoc(here), name
        assert inspect.signature(there) == inspect.signature(here), name


def test_what_a_memory_contradicts_is_a_tuple_on_both_sides(url: str) -> None:
    async def day() -> None:
        async with semmem.aconnect(url) as mem:
            old = await mem.remember("Ana lives in Lisbon.")
            new = await mem.remember("Ana moved to Porto.")
            assert (old.contradicts, new.contradicts) == ((), (old.id,))
            seen = replace(new, seen_count=2, last_seen=datetime(2026, 1, 2, tzinfo=UTC))
            assert values.memory(seen.as_dict()) == seen

    asyncio.run(day())


@pytest.mark.slow
def test_a_day_of_verbs(url: str) -> None:
    async def day() -> None:
        async with semmem.aconnect(url) as mem:
            made = await mem.remember("The key is red.", id="key")
            assert made == await mem.get("key")
            assert (await mem.update("key", text="The key is blue.", expected_version=1)).version == 2
            found = await mem.recall("which colour has the key?")
            assert [hit.id for hit in found] == ["key"]
            assert (await mem.explain(found, "key")).returned
            search = await mem.leg("lexical")
            assert (search.name, (await search.search("key"))[1]) == ("lexical", 1)
            assert [row["id"] async for row in mem.export()] == ["key"]
            assert await mem.configure(weights={"lexical": 2}) == {"weights.lexical": 2}
            assert await mem.unset_settings("weights.lexical") == {}
            many = await asyncio.gather(*(mem.remember(f"Note {n}.", id=str(n)) for n in range(20)))
            assert len({one.id for one in many}) == 20
            assert (await mem.stats()).memories == 21
            for wrong in (mem.get("none"), mem.recall(""), mem.update("key", colour="red")):
                with pytest.raises((semmem.NotFound, semmem.InvalidInput)):
                    await wrong
            assert await mem.forget(everything=True) == 21
        with pytest.raises(semmem.StoreClosed):
            await mem.stats()

    asyncio.run(day())


def test_it_is_opened_by_await_too_and_a_bad_url_is_told(tmp_path: Path) -> None:
    async def scene() -> None:
        mem = await semmem.aconnect("sqlite::memory:", embedder="none")
        assert (await mem.stats()).memories == 0
        await mem.close()
        await mem.close()
        with pytest.raises(semmem.InvalidInput, match="not a store URL"):
            await semmem.aconnect("nothing:at-all")
        with pytest.raises(semmem.InvalidInput, match="not a store URL"):
            async with semmem.aconnect("nothing:at-all"):
                pass
        with pytest.raises(semmem.InvalidInput, match="threads must be"):
            semmem.aconnect("sqlite::memory:", embedder="none", threads=0)

    asyncio.run(scene())


def test_items_may_come_from_a_list_an_iterator_or_an_asynchronous_one(url: str) -> None:
    async def later(count: int) -> AsyncIterator[dict[str, Any]]:
        for n in range(count):
            await asyncio.sleep(0)
            yield {"text": f"Later {n}.", "id": f"later{n}"}

    async def scene() -> None:
        async with semmem.aconnect(url) as mem:
            seen: list[int] = []
            report = await mem.remember_many(later(5), batch_size=2, progress=lambda one: seen.append(one.remembered))
            await asyncio.sleep(0)
            assert (report.remembered, seen) == (5, [2, 4, 5])
            assert (await mem.remember_many([{"text": "a"}, {"text": "b"}])).remembered == 2
            assert (await mem.import_items({"text": t} for t in "cd")).remembered == 2
            assert (await mem.import_items(later(5))).unchanged == 5
            with pytest.raises(semmem.InvalidInput, match="not one dict"):
                await mem.import_items({"text": "x"})  # type: ignore[arg-type]

    asyncio.run(scene())


@pytest.mark.parametrize("verb", ["remember_many", "import_items"])
def test_a_call_without_items_is_a_type_error_as_it_is_elsewhere(url: str, verb: str) -> None:
    async def scene() -> None:
        async with semmem.aconnect(url) as mem:
            for given in ({}, {"namespace": "n"}):
                with pytest.raises(TypeError, match="items"):
                    await getattr(mem, verb)(**given)
            with pytest.raises(TypeError, match="colour"):
                await getattr(mem, verb)([], colour="red")
            assert (await getattr(mem, verb)(items=[{"text": "x"}])).remembered == 1

    asyncio.run(scene())


@pytest.mark.slow
def test_a_cancelled_stream_ends_at_an_item_and_stores_nothing_of_its_batch(url: str) -> None:
    async def scene() -> tuple[int, int]:
        asked = asyncio.Event()

        async def endless() -> AsyncIterator[dict[str, Any]]:
            for n in range(3):
                yield {"text": f"Note {n}."}
            asked.set()
            await asyncio.sleep(3_600)
            yield {"text": "Never."}

        async with semmem.aconnect(url, threads=1) as mem:
            storing = asyncio.ensure_future(mem.remember_many(endless(), batch_size=2))
            await asyncio.wait_for(asked.wait(), 60)
            storing.cancel()
            with pytest.raises(asyncio.CancelledError):
                await storing
            count = (await asyncio.wait_for(mem.stats(), 60)).memories  # the one thread is free again
            await mem.remember("After.")
            return count, (await mem.stats()).memories

    assert asyncio.run(scene()) in ((2, 3), (0, 1), (0, 3))  # a server may not have read, or stored, the first batch


def test_items_may_be_made_with_the_verbs_of_the_facade_that_stores_them(url: str) -> None:
    """However few threads there are, and however deep one stream of items feeds another."""

    async def scene() -> None:
        async with semmem.aconnect(url, threads=1) as mem:

            async def counted(name: str, count: int) -> AsyncIterator[dict[str, Any]]:
                for n in range(count):
                    there = (await mem.stats()).memories
                    yield {"text": f"{name} {n}, behind {there >= 0}.", "id": f"{name}{n}"}

            async def nested() -> AsyncIterator[dict[str, Any]]:
                for n in range(3):
                    report = await mem.remember_many(counted(f"inner{n}-", 3), batch_size=2)
                    yield {"text": f"Stream {n} has {report.remembered} items.", "id": f"outer{n}"}

            streams = [mem.remember_many(counted(f"s{n}-", 5), batch_size=2) for n in range(4)]
            reports = await asyncio.wait_for(
                asyncio.gather(*streams, mem.import_items(counted("b", 3), batch_size=1)), 120
            )
            assert [one.remembered for one in reports] == [5, 5, 5, 5, 3]
            assert (await asyncio.wait_for(mem.remember_many(nested(), batch_size=1), 120)).remembered == 3
            assert (await mem.stats()).memories == 23 + 9 + 3

    asyncio.run(scene())


def test_an_error_of_who_makes_items_reaches_the_caller_and_a_bad_item_its_position(url: str) -> None:
    async def broken() -> AsyncIterator[dict[str, Any]]:
        yield {"text": "One."}
        yield {"text": "Two."}
        raise TimeoutError("The source is slow.")

    async def bad() -> AsyncIterator[dict[str, Any]]:
        for n in range(5):
            yield {"text": f"Note {n}."} if n != 4 else {"text": ""}

    async def scene() -> None:
        async with semmem.aconnect(url) as mem:
            for size in (1, 500):
                with pytest.raises(TimeoutError, match=r"The source is slow\."):
                    await mem.remember_many(broken(), batch_size=size)
            with pytest.raises(semmem.BadItem) as refused:
                await mem.remember_many(bad(), batch_size=2)
            assert refused.value.position == 4
            report = await mem.remember_many(bad(), batch_size=2, on_error="skip")
            assert [row.position for row in report.rejected] == [4]
            with pytest.raises(semmem.InvalidInput, match="batch_size must be a whole number"):
                await mem.remember_many(bad(), batch_size=0)

    asyncio.run(scene())


class Held:
    """A verb of a store that waits until it is let go."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, store: Store) -> None:
        self.go, self.began, self.calls = threading.Event(), threading.Event(), 0
        self._real = store.stats
        monkeypatch.setattr(store, "stats", self)

    def __call__(self, *args: Any, **options: Any) -> Any:
        self.calls += 1
        self.began.set()
        assert self.go.wait(60)
        return self._real(*args, **options)


def test_a_cancelled_verb_leaves_its_caller_at_once_and_gives_its_thread_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def scene() -> list[int]:
        async with semmem.aconnect("sqlite::memory:", embedder="none", threads=1) as mem:
            held = Held(monkeypatch, mem.semmem.store)
            at_work = asyncio.ensure_future(mem.stats())
            await asyncio.to_thread(held.began.wait, 60)
            waiting = asyncio.ensure_future(mem.stats())
            await asyncio.sleep(0.01)
            for one in (waiting, at_work):
                one.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await one
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(mem.namespaces(), 0.05)
            held.go.set()
            assert list(await asyncio.wait_for(mem.namespaces(), 60)) == []
            return [held.calls]

    assert asyncio.run(scene()) == [1]  # what had not begun was never called


def test_closing_waits_for_what_is_at_work(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scene() -> Any:
        mem = await semmem.aconnect("sqlite::memory:", embedder="none", threads=2)
        held = Held(monkeypatch, mem.semmem.store)
        at_work = asyncio.ensure_future(mem.stats())
        await asyncio.to_thread(held.began.wait, 60)
        closing = asyncio.ensure_future(mem.close())
        await asyncio.sleep(0.05)
        assert not closing.done()
        held.go.set()
        await asyncio.wait_for(closing, 60)
        return await at_work

    assert asyncio.run(scene()).memories == 0


def test_an_opening_that_is_cancelled_closes_what_it_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    from semmem.client import asynchronous

    go, opened, closed = threading.Event(), threading.Event(), threading.Event()
    real = asynchronous.connect

    def slow(*args: Any, **named: Any) -> Semmem:
        opened.set()
        assert go.wait(60)
        mem = real(*args, **named)
        close = mem.close
        monkeypatch.setattr(mem, "close", lambda: (close(), closed.set()))
        return mem

    monkeypatch.setattr(asynchronous, "connect", slow)

    async def scene() -> None:
        opening = asyncio.ensure_future(_awaited(semmem.aconnect("sqlite::memory:", embedder="none")))
        await asyncio.to_thread(opened.wait, 60)
        opening.cancel()
        with pytest.raises(asyncio.CancelledError):
            await opening
        go.set()
        assert await asyncio.to_thread(closed.wait, 60)

    asyncio.run(scene())


async def _awaited(opening: Any) -> AsyncSemmem:
    mem: AsyncSemmem = await opening
    return mem


def test_an_export_that_is_left_early_gives_its_connection_back(tmp_path: Path) -> None:
    async def scene() -> int:
        async with semmem.aconnect(f"sqlite://{tmp_path / 'notes.db'}", embedder="none", pool_size=1, threads=4) as mem:
            await mem.remember_many({"text": f"Note {n}."} for n in range(50))
            for _ in range(3):
                rows = mem.export()
                async for _row in rows:
                    break
                await rows.aclose()  # type: ignore[attr-defined]
            return sum([1 async for _ in mem.export()])

    assert asyncio.run(scene()) == 50


def test_an_export_that_is_cancelled_while_a_row_is_made_ends_in_order(tmp_path: Path) -> None:
    async def scene() -> None:
        async with semmem.aconnect(f"sqlite://{tmp_path / 'notes.db'}", embedder="none") as mem:
            began, go, ended = threading.Event(), threading.Event(), threading.Event()

            def export(**_: Any) -> Iterator[dict[str, Any]]:
                try:
                    began.set()
                    go.wait(60)
                    yield {"id": "a"}
                finally:
                    ended.set()

            mem.semmem.export = export  # type: ignore[method-assign]

            async def read() -> None:
                async for _ in mem.export():
                    pass

            task = asyncio.ensure_future(read())
            assert await asyncio.to_thread(began.wait, 60)
            task.cancel()
            await asyncio.sleep(0.05)
            go.set()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert await asyncio.to_thread(ended.wait, 60)

    asyncio.run(scene())


def test_many_recalls_at_once_on_postgresql_are_each_answered(store_url: str) -> None:
    async def scene() -> list[bool]:
        async with semmem.aconnect(store_url, embedder="hashing", pool_size=4, threads=16) as mem:
            await mem.remember_many({"text": f"The crate {n} stands behind door {n}.", "id": str(n)} for n in range(30))
            tasks = [asyncio.ensure_future(mem.recall(f"crate {n}", limit=1)) for n in range(30)]
            for task in tasks[::3]:
                task.cancel()
            done = await asyncio.gather(*tasks, return_exceptions=True)
            assert all(isinstance(one, asyncio.CancelledError) for one in done[::3])
            left = [one for n, one in enumerate(done) if n % 3]
            again = await asyncio.gather(*(mem.recall("crate", limit=1) for _ in range(16)))
            return [isinstance(one, semmem.Recall) for one in (*left, *again)]

    assert set(asyncio.run(scene())) == {True}


def test_it_needs_no_thread_of_its_own_loop(url: str) -> None:
    """Two loops in two threads share nothing."""

    def one(number: int) -> int:
        async def scene() -> int:
            async with semmem.aconnect(url) as mem:
                await mem.remember(f"Note {number}.", id=str(number))
                return (await mem.get(str(number))).version

        return asyncio.run(scene())

    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(one, range(4))) == [1, 1, 1, 1]
