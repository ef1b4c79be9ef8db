"""A copy of a namespace has its relationships, in every store: the walk that follows them finds the same there."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

import semmem
from semmem.extractors import Rules
from semmem.model.exchange import Extraction, Kind
from semmem.text.tokens import key

ADA, LEEDS = key(Kind.NAME, ("ada", "lovelace")), key(Kind.NAME, ("leeds", "works"))
RELATED = semmem.recipe("graph", graph={"seeders": (), "neighbour": 0, "related": 1.0})


class Tied(Rules):
    """The rules, and one relationship in every text that says "owned"."""

    def extract(self, text: str, title: str | None = None) -> Extraction:
        found = super().extract(text, title)
        return replace(found, relationships=[(ADA, "owned", LEEDS)]) if "owned" in text else found


@pytest.fixture(params=["postgresql", "sqlite"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return f"sqlite:{tmp_path}/notes.db" if request.param == "sqlite" else request.getfixturevalue("store_url")


def test_a_copied_namespace_keeps_the_relationships_of_its_memories(url: str) -> None:
    with semmem.connect(url, embedder="none", extractor=Tied(), recipe="lexical") as mem:
        mem.remember("It is said that she owned it.", id="says", namespace="old")
        mem.remember("Nobody painted Ada Lovelace.", id="ada", namespace="old")
        mem.remember("Steam came from Leeds Works.", id="leeds", namespace="old")
        assert mem.copy_namespace("old", "new") == 3
        for name in ("old", "new"):
            found = mem.recall("Where is Ada Lovelace?", namespace=name, recipe=RELATED)
            assert {hit.id for hit in found} == {"ada", "leeds"}
        assert mem.graph_hash(namespace="new") == mem.graph_hash(namespace="old")
