"""Another embedder than the one that filled a memory, and notes to fill it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from semmem.client.memory import Semmem
from semmem.embedders.hashing import Hashing
from tests.stores.audit import check, sql

WORDS = ["ferry", "harbour", "tide", "mast", "sail", "rope", "anchor", "crew", "dawn", "storm", "chart", "engine"]


class Other(Hashing):
    """The hashing embedder under another name, its numbers in other places, and if asked for in more dimensions.

    ``hook`` is called with the number of the call, from 1, before texts are embedded.
    """

    def __init__(self, name: str = "other", more: int = 0, hook: Callable[[int], None] | None = None) -> None:
        self.name, self.fingerprint, self.dimensions = name, f"{name}-1", 256 + more
        self.seen: list[str] = []
        self.calls, self.hook = 0, hook

    def embed(self, texts: Sequence[str]) -> Any:
        self.calls += 1
        if self.hook is not None:
            self.hook(self.calls)
        self.seen += texts
        return np.pad(Hashing().embed(texts)[:, ::-1], ((0, 0), (0, self.dimensions - 256)))


def notes(count: int, start: int = 0) -> list[dict[str, Any]]:
    return [
        {"id": f"m{n:03}", "text": f"{WORDS[n % 12]} {WORDS[n % 7]} note {n}", "created_at": "2026-01-31"}
        for n in range(start, start + count)
    ]


def filled_by(mem: Semmem, embedder: Other) -> None:
    """Prove that every memory has its vector of ``embedder`` and that nothing of a rebuild is left."""
    check(mem)
    held = sql(
        mem, "SELECT m.text, e.vector::text FROM embedding e JOIN memory m USING (namespace, ord) ORDER BY m.text"
    )
    wanted = Other(embedder.name, embedder.dimensions - 256).embed([text for text, _ in held])
    found = np.array([np.fromstring(vector[1:-1], sep=",") for _, vector in held])
    assert found.shape == wanted.shape
    assert np.abs(found - wanted).max() < 1e-6
    assert sql(mem, "SELECT count(*) FROM embedding_next") == [(0,)]
    assert [key for (key,) in sql(mem, "SELECT key FROM meta ORDER BY key")] == ["embedder"]
    assert mem.stats().embedder == embedder.name


def semmem_json(capfd: pytest.CaptureFixture[str]) -> Any:
    import json

    return json.loads(capfd.readouterr().out)
