"""What becomes of merged names when no memory mentions one of them any more, over every store there is."""

from __future__ import annotations

from typing import Any

import pytest

from semmem.client.memory import Semmem

TEXTS = {
    "both": "Zebulon Quarkwright met Ottilie Brandywine at the harbour.",
    "other": "Ottilie Brandywine is ill.",
    "weather": "The weather is nice.",
}


@pytest.fixture(params=["pending", "folded"])
def merged(mem: Semmem, request: pytest.FixtureRequest) -> Semmem:
    """A memory with two names that are one, both in one of its memories."""
    mem.remember_many([{"id": id, "text": text, "tags": ["a"]} for id, text in TEXTS.items()])
    mem.merge_concepts("Zebulon Quarkwright", "Ottilie Brandywine")
    if request.param == "folded":
        mem.maintain()
    return mem


def rows(mem: Semmem) -> list[Any]:
    """Return the corrections that a store has."""
    run: Any = getattr(mem.store, "run", None) or getattr(mem.store, "_run", None)
    found: list[Any] = run(lambda c: c.execute("SELECT name, into_name FROM correction").fetchall())
    return [tuple(row) for row in found]


def aliases(mem: Semmem) -> list[tuple[str, tuple[str, ...]]]:
    return [(one.name, one.aliases) for one in mem.concepts()]


@pytest.mark.nodes
def test_a_hard_forget_of_the_last_memory_with_a_name_takes_its_merge_along(merged: Semmem) -> None:
    merged.remember("Zebulon Quarkwright slept.", id="again")
    merged.forget("both", hard=True)
    assert rows(merged) == [("Zebulon Quarkwright", "Ottilie Brandywine")]
    assert aliases(merged) == [("Ottilie Brandywine", ("Zebulon Quarkwright",))]
    merged.forget("again", hard=True)
    assert rows(merged) == []
    assert aliases(merged) == [("Ottilie Brandywine", ())]


def test_so_does_that_of_the_last_memory_with_the_name_it_was_merged_into(merged: Semmem) -> None:
    merged.remember("Zebulon Quarkwright slept.", id="again")
    merged.forget("both", hard=True)
    merged.forget("other", hard=True)
    assert rows(merged) == []
    assert aliases(merged) == [("Zebulon Quarkwright", ())]


@pytest.mark.nodes
def test_a_hard_forget_reads_the_names_of_earlier_versions_and_of_what_was_forgotten_softly(merged: Semmem) -> None:
    merged.update("both", text="Nobody was at the harbour.")
    merged.forget("weather", hard=True)
    merged.forget("both")
    assert rows(merged) == [("Zebulon Quarkwright", "Ottilie Brandywine")]
    merged.forget("both", hard=True)
    assert rows(merged) == []
    assert aliases(merged) == [("Ottilie Brandywine", ())]


def test_a_name_that_somebody_split_goes_with_its_last_memory_too(merged: Semmem) -> None:
    merged.split_concept("Zebulon Quarkwright")
    assert rows(merged) == [("Zebulon Quarkwright", None)]
    merged.forget("other", hard=True)
    assert rows(merged) == [("Zebulon Quarkwright", None)]
    merged.forget("both", hard=True)
    assert rows(merged) == []


@pytest.mark.nodes
def test_a_name_is_no_alias_any_more_once_its_last_open_memory_becomes_sensitive(merged: Semmem) -> None:
    merged.remember("Zebulon Quarkwright slept.", id="again")
    merged.update("again", sensitive=True)
    assert aliases(merged) == [("Ottilie Brandywine", ("Zebulon Quarkwright",))]
    merged.update("both", sensitive=True)
    assert rows(merged) == []
    assert aliases(merged) == [("Ottilie Brandywine", ())]


def test_a_batch_that_hides_one_memory_with_a_merged_name_and_stores_another_keeps_the_merge(merged: Semmem) -> None:
    items = [
        {"id": "both", "text": TEXTS["both"], "tags": ["a"], "sensitive": True},
        {"id": "other", "text": "Zebulon Quarkwright saw that Ottilie Brandywine was ill.", "tags": ["a"]},
    ]
    assert merged.import_items(items, owned={"tags": "a"}, replace=True).replaced == 2
    assert rows(merged) == [("Zebulon Quarkwright", "Ottilie Brandywine")]
    assert aliases(merged) == [("Ottilie Brandywine", ("Zebulon Quarkwright",))]
