"""Bringing in and the properties of writing, over every store there is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from semmem.model.store import Store
from semmem.stores import open_store
from tests.stores.bringing import BringingConformance, opened, texts
from tests.stores.writing import WritingProperties


class TestPostgres(BringingConformance, WritingProperties):
    """PostgreSQL with pgvector, the embedded server."""

    @pytest.fixture
    def store(self, store_url: str) -> Iterator[Store]:
        """An empty store."""
        store = open_store(store_url, pool_size=2)
        yield store
        store.close()

    def test_a_connection_lost_just_after_the_commit_changes_nothing_of_what_is_reported(
        self, store: Store, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        lost = []
        once = store._once

        def losing(work: Callable[[Any], Any]) -> Any:
            if getattr(work, "__name__", "") != "run" or lost:  # not a transaction
                return once(work)
            lost.append(True)
            return once(lambda c: (work(c), c.execute("SELECT pg_terminate_backend(pg_backend_pid())")))

        def cut() -> None:
            lost.clear()

        monkeypatch.setattr(store, "_once", losing)
        mem = opened(store)
        long = " ".join(f"Sentence number {n} is here." for n in range(200))
        report = mem.remember_many([{"id": "a", "text": long, "author": "Ada"}, {"id": "b", "text": "Rum."}])
        assert (lost, report.remembered, report.unchanged) == ([True], 2, 0)
        cut()
        assert mem.update("b", text="Gin.").version == 2
        cut()
        assert mem.update("b", text="Beer.", expected_version=2).version == 3
        cut()
        items = [{"id": "a", "text": "Tea.", "author": "Ada"}, {"text": "Milk."}]
        brought = mem.import_items(items, owned={"authors": "Ada"}, replace=True, on_error="abort")
        assert (lost, brought.remembered, brought.replaced, brought.unchanged) == ([True], 1, 1, 0)
        assert sorted(texts(mem).values()) == ["Beer.", "Milk.", "Tea."]
        assert mem.remember("Tea.", id="a", author="Ada").version == 2
        old = mem.remember("The port is 5432.")
        cut()
        new = mem.remember("The port is now 6543.")
        assert (lost, new.contradicts) == ([True], (old.id,))


class TestSqlite(BringingConformance, WritingProperties):
    """SQLite, a file."""

    @pytest.fixture
    def store(self, tmp_path: Path) -> Iterator[Store]:
        """An empty store."""
        store = open_store(f"sqlite://{tmp_path / 'notes.db'}", pool_size=2)
        yield store
        store.close()
