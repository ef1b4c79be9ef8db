"""The corpus to begin with: its counts, its own rules, and that a leg can win or lose something on it."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import semmem
from eval.datasets import Corpus, load
from eval.experiments.runner import evaluate, ingest

HARBOUR = Path(__file__).resolve().parents[2] / "eval" / "data" / "harbour"
HOPS = {"exact": 1, "paraphrase": 1, "changed": 1, "two hops": 2, "three hops": 3, "unanswerable": 0}


def corpus() -> Corpus:
    return load(HARBOUR)


def test_the_harbour_has_the_counts_its_readme_gives() -> None:
    description = corpus().describe()
    assert (description["memories"], description["queries"], description["headline"]) == (211, 44, 40)
    assert description["strata"] == {
        "changed": 4, "exact": 6, "paraphrase": 8, "three hops": 10, "two hops": 12, "unanswerable": 4,
    }  # fmt: skip
    assert description["notes"] == {}
    assert corpus().namespaces == ("harbour",)


def test_every_question_needs_as_many_notes_as_its_stratum_says() -> None:
    for query in corpus().queries:
        assert len(query.gold) == HOPS[query.stratum], query.id
        assert query.apart == (query.stratum == "unanswerable"), query.id


def test_each_note_on_the_way_names_the_next_one_and_the_question_names_only_the_first() -> None:
    texts = {m["id"]: m["text"] for m in corpus().memories}

    def names(text: str) -> set[str]:
        return {word.strip(".,?'").removesuffix("'s") for word in text.split()[1:] if word[:1].isupper()} | {
            text.split()[0].removesuffix("'s")
        }

    for query in corpus().queries:
        if "hops" in query.stratum:
            notes = [names(texts[id]) for id in query.gold]
            assert names(query.text) & notes[0], query.id
            assert all(one & two for one, two in pairwise(notes)), query.id
            assert not (names(query.text) - {"Which", "What", "In"}) & notes[-1], query.id


def test_an_overtaken_note_is_older_than_the_one_that_overtook_it() -> None:
    at = {m["id"]: m["created_at"] for m in corpus().memories}
    overtaken = [(q.gold[0], stale) for q in corpus().queries for stale in q.extra.get("stale_ids", ())]
    assert len(overtaken) == 4
    assert all(at[stale] < at[gold] for gold, stale in overtaken)


def test_notes_are_in_the_order_of_their_times_and_short_enough_to_stay_whole() -> None:
    memories = corpus().memories
    times = [m["created_at"] for m in memories]
    assert times == sorted(times)
    assert max(len(m["text"]) for m in memories) < 120


def test_words_and_vectors_stop_at_the_first_hop_and_the_graph_goes_on(store_url: str) -> None:
    with semmem.connect(store_url, embedder="hashing") as mem:
        ingest(mem, corpus())
        measures = {
            name: evaluate(mem, corpus(), name, show=False) for name in ("lexical", "dense", "graph", "default")
        }
    assert measures["lexical"]["two hops"]["R@10"] == 0.5  # the note on the boat, never that on the person
    assert measures["dense"]["two hops"]["R@10"] <= 0.6
    assert measures["graph"]["two hops"]["R@10"] >= 0.8
    for name, measured in measures.items():
        assert 0.3 < measured["headline"]["R@10"] < 0.9, name
