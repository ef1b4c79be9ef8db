"""What a route of the HTTP API does where a caller says nothing: little, and of one namespace."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import semmem
from semmem.client.routes import export, search


@pytest.fixture
def mem() -> Iterator[semmem.Semmem]:
    with semmem.connect("sqlite::memory:", embedder="none") as mem:
        mem.remember_many({"text": f"The kestrel of day {n}.", "id": f"d{n}"} for n in range(12))
        mem.remember("The kestrel of another house.", id="other", namespace="other")
        yield mem


def test_an_export_is_of_the_default_namespace_unless_it_is_asked_for_everything(mem: semmem.Semmem) -> None:
    assert {row["id"] for row in export(mem)} == {f"d{n}" for n in range(12)}
    assert {row["id"] for row in export(mem, namespace="other")} == {"other"}
    assert len(list(export(mem, everything=True))) == 13


def test_a_search_by_one_leg_returns_ten_from_the_first_on(mem: semmem.Semmem) -> None:
    first = search(mem, "lexical", query="kestrel")
    assert (len(first["results"]), first["total"]) == (10, 12)
    assert [one["id"] for one in search(mem, "lexical", query="kestrel", offset=0, limit=10)["results"]] == [
        one["id"] for one in first["results"]
    ]
