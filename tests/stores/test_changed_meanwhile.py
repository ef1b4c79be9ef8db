"""A memory that is changed while a recall reads it is found as it is after the change."""

from __future__ import annotations

from typing import Any

import pytest

import semmem
from semmem.legs.lexical import Lexical


@pytest.mark.nodes
@pytest.mark.parametrize("resident_mb", [0, 256])
def test_a_memory_that_is_changed_after_a_leg_has_found_it_is_a_hit(
    url: str, resident_mb: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    search = Lexical.search
    changes = iter([0.1, 0.2])

    with semmem.connect(url, embedder="none", recipe="lexical", resident_mb=resident_mb) as mem:
        mem.remember("The bus leaves at nine.", id="bus")
        mem.remember("The ferry leaves at noon.", id="ferry")
        mem.recall("leaves")
        mem.recall("leaves")

        def overtaken(self: Lexical, *given: Any, **options: Any) -> Any:
            found = search(self, *given, **options)
            if (importance := next(changes, None)) is not None:
                mem.update("bus", importance=importance)
            return found

        monkeypatch.setattr(Lexical, "search", overtaken)
        found = mem.recall("leaves")
        assert sorted((hit.id, hit.memory.importance) for hit in found) == [("bus", 0.2), ("ferry", 0.5)]
        assert next(changes, None) is None


def test_a_memory_that_is_forgotten_meanwhile_is_no_hit_and_the_leg_is_asked_once_more(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    search = Lexical.search
    asked = 0

    with semmem.connect(url, embedder="none", recipe="lexical") as mem:
        mem.remember("The bus leaves at nine.", id="bus")
        mem.remember("The ferry leaves at noon.", id="ferry")

        def overtaken(self: Lexical, *given: Any, **options: Any) -> Any:
            nonlocal asked
            found = search(self, *given, **options)
            asked += 1
            if asked == 1:
                mem.forget("bus")
            return found

        monkeypatch.setattr(Lexical, "search", overtaken)
        assert [hit.id for hit in mem.recall("leaves")] == ["ferry"]
        assert asked == 2
