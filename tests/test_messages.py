"""What an error says stays a sentence, however long the values in it, and names what was passed."""

from __future__ import annotations

import pytest

import semmem
from semmem.model.errors import InvalidInput, NotFound, SemmemError
from semmem.model.filters import checked_filters


def test_a_long_message_keeps_its_beginning_and_what_to_do() -> None:
    said = str(SemmemError(f"There is no memory {'x' * 140_000!r}; `list` shows what is stored."))
    assert len(said) <= 1000
    assert said.startswith("There is no memory 'xxx")
    assert said.endswith("xxx'; `list` shows what is stored.")


def test_a_filter_that_is_nested_too_deeply_is_refused_in_a_sentence() -> None:
    for levels in (101, 900, 5000, 100_000):
        value: dict[str, object] = {}
        for _ in range(levels - 1):
            value = {"a": value}
        with pytest.raises(InvalidInput, match="nested deeper than 100 levels"):
            checked_filters({"metadata": value})
    assert checked_filters({"metadata": {"a": ["[" * 300]}}).metadata == {"a": ["[" * 300]}


def test_odd_values_are_told_as_what_they_are() -> None:
    with semmem.connect("sqlite::memory:") as mem:
        mem.remember("The key is red.", id="a")
        found = mem.recall("key")
        for id in (3, None, b"a", "a\x00", "a\ud800"):
            with pytest.raises(InvalidInput, match="id"):
                found.explain(id)  # type: ignore[arg-type]  # what a caller may pass all the same
        with pytest.raises(NotFound, match="no memory 'b'"):
            found.explain("b")
