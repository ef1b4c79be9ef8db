"""The question of a recall is parsed and embedded once, and only where a leg reads it."""

from __future__ import annotations

import copy
from typing import Any

import pytest

import semmem
from semmem.model.exchange import Question, Ranking
from semmem.model.store import Snapshot
from tests.read.harbour import Counted, CountingEmbedder, ids, legs


def test_a_question_is_data_that_every_leg_is_asked_alike(mem: semmem.Semmem) -> None:
    """Whatever a leg reads of it has been worked out before: no leg waits for another's look-up or for the model."""
    mem.remember_many(
        {"text": t, "author": a, "session": "s"} for t, a in (("The Ondine left.", "Ada"), ("When?", "Bob"))
    )
    seen = dict[str, Question]()

    class Watched(Counted):
        def search(self, question: Question, snapshot: Snapshot, recipe: semmem.Recipe) -> Ranking:
            seen[self.name] = question
            return self.leg.search(question, snapshot, recipe)

    for name in ("lexical", "dense", "graph"):
        legs(mem)[name] = Watched(legs(mem)[name])
    mem.recall('What did Ada say of the "Ondine" in May?', recipe=semmem.recipe("seed"))
    one, other, last = (seen[name] for name in ("lexical", "dense", "graph"))
    assert one is other
    assert (one.text, one.query, one.phrases) == (
        'What did say of the "Ondine" in May?',
        'What did Ada say of the "Ondine" in May?',
        ("Ondine",),
    )
    assert one.conversational is not None
    assert (one.conversational.author, one.conversational.months) == ("Ada", ((5, None),))
    assert one.concepts is not None
    assert "Ondine" in [span.label for span in one.concepts.spans]
    assert one.vector is not None
    assert last.vector is one.vector
    assert set(last.rankings) == {"lexical", "dense"}
    assert copy.deepcopy(one).text == one.text  # nothing in it that runs, waits or is locked


def test_a_question_is_parsed_and_embedded_once_however_deep_the_legs_are_asked(
    store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    embedder, parsed = CountingEmbedder(), list[str]()
    from semmem.read import recall

    def parse(query: str, *rest: Any) -> Question:
        parsed.append(query)
        return first(query, *rest)

    first = recall.parse
    monkeypatch.setattr(recall, "parse", parse)
    with semmem.connect(store_url, embedder=embedder) as mem:
        mem.remember_many({"text": "the same ferry", "id": f"{n}"} for n in range(150))
        mem.remember_many({"text": f"ferry {n}", "id": f"ferry {n}"} for n in range(30))
        embedder.texts = 0
        found = mem.recall("the same ferry", limit=20, recipe="hybrid")
        assert len(found) == 20
        assert found.recipe.depths["lexical"] > 100  # a hundred copies fold into one hit, so the legs were asked again
        assert (parsed, embedder.texts) == (["the same ferry"], 1)


@pytest.mark.parametrize(("weights", "texts"), [({"dense": 0, "graph": 0}, 0), ({"dense": 0}, 1), ({"graph": 0}, 1)])
def test_a_vector_is_made_only_where_a_leg_that_is_called_reads_it(
    store_url: str, weights: dict[str, float], texts: int
) -> None:
    embedder = CountingEmbedder()
    with semmem.connect(store_url, embedder=embedder) as mem:
        mem.remember("ferry", id="match")
        embedder.texts = 0
        assert ids(mem.recall("ferry", recipe=semmem.recipe("default", weights=weights))) == ["match"]
        assert embedder.texts == texts
