"""What bringing in does in every store: a class of tests over a ``store`` fixture that a subclass gives."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from semmem.config import Settings
from semmem.config import recipe as find_recipe
from semmem.facade import Semmem
from semmem.protocols import Store

__all__ = ["BringingConformance", "opened", "texts"]

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def opened(store: Store, **how: Any) -> Semmem:
    """Return a Semmem on ``store``; by default without an embedder."""
    given: dict[str, Any] = {"embedder": "none", "extractor": "rules"} | how
    return Semmem(store, recipe=find_recipe("default"), settings=Settings.load(), **given)


def texts(mem: Semmem, namespace: str = "default") -> dict[str, str]:
    return {memory.id: memory.text for memory in mem.list(namespace=namespace, limit=1000)}


class BringingConformance:
    """Subclass it, and give a fixture ``store``: an empty store."""

    @pytest.fixture(autouse=True)
    def _declared(self, request: pytest.FixtureRequest, store: Store) -> None:
        for mark in request.node.iter_markers("needs"):
            if mark.args[0] not in store.capabilities:
                pytest.skip(f"a {store.kind} store does not declare the capability {mark.args[0]!r}")

    @pytest.fixture
    def mem(self, store: Store) -> Iterator[Semmem]:
        """A Semmem on the empty store; the store is closed by its own fixture."""
        return opened(store)

    @pytest.mark.parametrize(
        ("owned", "field"),
        [
            ({"authors": "Ada"}, {"author": "Ada"}),
            ({"sessions": "s1"}, {"session": "s1"}),
            ({"tags": ["x", "y"]}, {"tags": ["y", "x", "z"]}),
            ({"metadata": {"from": {"file": "a"}}}, {"metadata": {"from": {"file": "a", "line": 3}}}),
            ({"created_after": NOON, "created_before": "2026-03-02"}, {"created_at": NOON}),
        ],
        ids=["author", "session", "tags", "metadata", "time"],
    )
    def test_only_what_the_filters_of_owned_match_is_replaced(
        self, mem: Semmem, owned: dict[str, Any], field: dict[str, Any]
    ) -> None:
        mem.remember("By hand.", id="hand", author="Bob", session="s2", tags=["x"], created_at="2026-02-01")
        mem.remember("From the source.", id="source", **field)
        items = [{"id": id, "text": "Changed."} for id in ("hand", "source")]
        report = mem.bring_in(items, owned=owned, replace=True)
        assert texts(mem) == {"hand": "By hand.", "source": "Changed."}
        assert (report.replaced, [row.id for row in report.rejected]) == (1, ["hand"])
