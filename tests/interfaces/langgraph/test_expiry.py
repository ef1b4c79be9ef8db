"""Items of LangGraph's store that expire: their time, and the thread that sweeps them."""

from __future__ import annotations

import threading
import time
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

import semmem

pytest.importorskip("langgraph.store.base")
from langgraph.store.base import PutOp

from semmem.interfaces.langgraph import SemmemStore
from semmem.interfaces.langgraph import store as store_module
from semmem.interfaces.langgraph.sweeper import Sweeper


def keys(found: Any) -> list[str]:
    return [item.key for item in found]


class Clock:
    """What the store takes for datetime, with a time that can be moved."""

    fromisoformat = staticmethod(datetime.fromisoformat)
    at = datetime(2026, 5, 1, tzinfo=UTC)

    @classmethod
    def now(cls, zone: Any) -> datetime:
        return cls.at


def test_an_item_is_swept_when_its_time_is_over_and_a_read_renews_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_module, "datetime", Clock)
    start = datetime(2026, 5, 1, tzinfo=UTC)
    Clock.at = start
    with SemmemStore.from_conn_string(
        "sqlite::memory:", embedder="none", recipe="lexical", ttl={"default_ttl": 10}
    ) as items:
        items.put(("t",), "read", {"x": "ferry"})
        items.put(("t",), "seen", {"x": "boat"})
        items.put(("t",), "left", {"x": "train"})
        items.put(("t",), "long", {"x": "plane"}, ttl=60)
        Clock.at = start + timedelta(minutes=8)
        assert items.get(("t",), "read") is not None
        assert keys(items.search(("t",), query="boat")) == ["seen"]
        assert items.get(("t",), "left", refresh_ttl=False) is not None
        Clock.at = start + timedelta(minutes=12)
        assert items.sweep_ttl() == 1
        assert sorted(keys(items.search(("t",)))) == ["long", "read", "seen"]
        assert keys(items.search(("t",), query="train")) == []
    Clock.at = start
    with SemmemStore.from_conn_string(
        "sqlite::memory:", embedder="none", ttl={"default_ttl": 10, "omit_expired": True}
    ) as items:
        items.put(("t",), "k", {"x": 1})
        items.put(("stays",), "k", {"x": 1}, ttl=None)
        Clock.at = start + timedelta(minutes=11)
        assert items.get(("t",), "k") is None
        assert items.search(("t",)) == []
        assert items.list_namespaces() == [("stays",)]
        Clock.at = start + timedelta(days=400)
        assert items.get(("stays",), "k") is not None


def test_a_thread_sweeps_until_it_is_stopped_or_the_store_is_closed() -> None:
    with SemmemStore.from_conn_string("sqlite::memory:", embedder="none") as items:
        assert items.start_ttl_sweeper().done()  # nothing expires here
        assert items.stop_ttl_sweeper()
    with SemmemStore.from_conn_string("sqlite::memory:", embedder="none", ttl={"default_ttl": 0.001}) as items:
        with pytest.raises(semmem.InvalidInput, match="sweep_interval_minutes must be a number of minutes above 0"):
            items.start_ttl_sweeper(-1)
        items.put(("t",), "k", {"x": 1})
        ended = items.start_ttl_sweeper(0.0005)
        assert items.start_ttl_sweeper(0.0005) is ended
        for _ in range(600):
            if items.get(("t",), "k", refresh_ttl=False) is None:
                break
            time.sleep(0.05)
        assert items.memory.list(namespace="langgraph").memories == ()
        assert items.stop_ttl_sweeper(timeout=30)
        assert ended.done()
        again = items.start_ttl_sweeper(0.0005)
        again.cancel()
        assert items.stop_ttl_sweeper(timeout=30)
        last = items.start_ttl_sweeper(60)
    assert last.done()  # closing the store ended it


@pytest.mark.parametrize("ttl", [-1, 0, float("nan"), float("inf"), True, "10", 10**12])
def test_a_time_to_live_that_is_none_is_refused_and_nothing_is_put(items: SemmemStore, ttl: Any) -> None:
    with pytest.raises(semmem.InvalidInput, match="ttl must be a number of minutes above 0, or None"):
        items.batch([PutOp(("a",), "good", {"x": 1}), PutOp(("a",), "k", {"x": 1}, ttl=ttl)])
    assert items.search(()) == []
    with pytest.raises(semmem.InvalidInput, match="default_ttl must be a number of minutes above 0"):
        SemmemStore(items.memory, ttl={"default_ttl": ttl})


def test_a_read_that_renews_an_item_does_not_write_an_old_value_back(monkeypatch: pytest.MonkeyPatch) -> None:
    with SemmemStore.from_conn_string("sqlite::memory:", embedder="none", ttl={"default_ttl": 10}) as items:
        items.put(("t",), "k", {"v": "old"})
        (record,) = items.memory.list(namespace="langgraph", filters={"metadata": {"langgraph": "record"}})
        items.put(("t",), "k", {"v": "new"})
        items._refresh([record])  # as a get does that has read it before the put
        assert items.get(("t",), "k").value == {"v": "new"}  # type: ignore[union-attr]


def test_an_item_that_was_put_anew_is_not_swept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_module, "datetime", Clock)
    Clock.at = datetime(2026, 5, 1, tzinfo=UTC)
    with SemmemStore.from_conn_string("sqlite::memory:", embedder="none", ttl={"default_ttl": 10}) as items:
        items.put(("t",), "k", {"v": "ferry"})
        (record,) = items.memory.list(namespace="langgraph", filters={"metadata": {"langgraph": "record"}})
        Clock.at += timedelta(minutes=11)
        items.put(("t",), "k", {"v": "boat"})
        assert items._sweep(record) == 0  # as a sweep does that has read it before the put
        assert [item.value for item in items.search((), query="boat")] == [{"v": "boat"}]


def test_a_sweeper_that_is_at_its_last_sweep_can_be_started_again() -> None:
    entered, free, swept = threading.Event(), threading.Event(), threading.Event()

    def sweep() -> int:
        if entered.is_set():
            swept.set()
        entered.set()
        free.wait(60)
        return 0

    sweeper = Sweeper(sweep)
    first = sweeper.start(0.0001)
    assert entered.wait(60)
    assert not sweeper.stop(timeout=0)  # it still sweeps
    second = sweeper.start(0.0001)
    assert second is not first
    assert swept.wait(60)
    free.set()
    assert sweeper.stop(timeout=60)
