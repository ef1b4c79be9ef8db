"""Relationships: stored with the memory they were found in, gone with it, and a way of the walk when asked for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

import semmem
from semmem.extractors import Rules
from semmem.model.exchange import Extraction, Kind
from semmem.text.tokens import key
from tests.snapshots import names_of
from tests.stores.audit import sql

ADA, LEEDS = key(Kind.NAME, ("ada", "lovelace")), key(Kind.NAME, ("leeds", "works"))
PLAIN = semmem.recipe("graph", graph={"seeders": (), "neighbour": 0})
RELATED = semmem.recipe("graph", graph={"seeders": (), "neighbour": 0, "related": 1.0})


class Tied(Rules):
    """The rules, and one relationship in every text that says "owned", 2,000 in one that says "crowd"."""

    def extract(self, text: str, title: str | None = None) -> Extraction:
        found = super().extract(text, title)
        if "crowd" in text:
            crowd = (key(Kind.NAME, ("somebody", str(number))) for number in range(2_000))
            return replace(found, relationships=[(ADA, "knows", somebody) for somebody in crowd])
        return replace(found, relationships=[(ADA, "owned", LEEDS)]) if "owned" in text else found


@pytest.fixture
def mem(store_url: str) -> Iterator[semmem.Semmem]:
    with semmem.connect(store_url, embedder="none", extractor=Tied(), recipe="lexical") as mem:
        mem.remember("It is said that she owned it.", id="says")
        mem.remember("Nobody painted Ada Lovelace.", id="ada")
        mem.remember("Steam came from Leeds Works.", id="leeds")
        mem.remember("Coal went to Leeds Works.", id="coal")
        yield mem


def reached(mem: semmem.Semmem, recipe: semmem.Recipe) -> set[str]:
    return {hit.memory.id for hit in mem.recall("Where is Ada Lovelace?", recipe=recipe)}


def test_the_walk_follows_a_relationship_only_when_it_is_asked_to(mem: semmem.Semmem) -> None:
    assert reached(mem, PLAIN) == {"ada"}
    assert reached(mem, RELATED) == {"ada", "leeds", "coal"}


def test_that_there_are_more_relationships_than_are_read_is_told(mem: semmem.Semmem) -> None:
    question = "Where is Ada Lovelace?"
    assert mem.recall(question, recipe=RELATED).degraded == {}
    mem.remember("There was a crowd.", id="crowd")  # 2,000, and the one that is there
    found = mem.recall(question, recipe=RELATED)
    assert list(found.degraded) == ["relationships"]
    assert found.degraded["relationships"].startswith("what was found has more than 2,000 relationships, so the walk")
    assert found[0].memory.id == "ada"
    assert mem.recall(question, recipe=PLAIN).degraded == {}


def test_a_relationship_goes_with_the_memory_that_says_it(mem: semmem.Semmem) -> None:
    assert sql(mem, "SELECT subject, predicate, object FROM relationship") == [(ADA, "owned", LEEDS)]
    mem.forget("says")
    assert sql(mem, "SELECT 1 FROM relationship") == []
    assert reached(mem, RELATED) == {"ada"}


def test_relationships_are_part_of_the_graph_hash_and_follow_corrections(mem: semmem.Semmem) -> None:
    mem.remember("It is said that she owned it.", id="says", namespace="other")
    with semmem.connect(mem.store.url, embedder="none", recipe="lexical") as plain:
        plain.remember("It is said that she owned it.", id="says", namespace="without")
    assert mem.graph_hash(namespace="other") != mem.graph_hash(namespace="without")
    names = names_of(mem)
    assert names.relationships([LEEDS], 9) == [(LEEDS, ADA)]
    mem.merge_concepts("Leeds Works", "Ada Lovelace")  # a concept has no tie with itself
    assert names_of(mem).relationships([LEEDS, ADA], 9) == []
    assert names.relationships([ADA], 9) == [(ADA, LEEDS)]
