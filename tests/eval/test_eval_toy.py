"""The committed corpus: its counts, and that its own rules hold."""

from __future__ import annotations

from pathlib import Path

from eval.datasets import Corpus, load

TOY = Path(__file__).resolve().parents[2] / "eval" / "data" / "toy"


def corpus() -> Corpus:
    return load(TOY)


def test_the_toy_corpus_has_the_counts_its_readme_gives() -> None:
    description = corpus().describe()
    assert (description["memories"], description["queries"], description["headline"]) == (60, 40, 34)
    assert description["strata"] == {"exact": 8, "multi-hop": 10, "paraphrase": 10, "temporal": 6, "unanswerable": 6}
    assert description["notes"] == {}
    assert corpus().namespaces == ("toy",)


def test_every_multi_hop_question_needs_more_than_one_memory_and_every_exact_one_just_one() -> None:
    for query in corpus().queries:
        if query.stratum == "multi-hop":
            assert len(query.gold) >= 2, query.id
        if query.stratum in ("exact", "paraphrase", "temporal"):
            assert len(query.gold) == 1, query.id
        assert query.apart == (query.stratum == "unanswerable"), query.id


def test_an_overtaken_memory_is_older_than_the_one_that_overtook_it() -> None:
    toy = corpus()
    at = {m["id"]: m["created_at"] for m in toy.memories}
    overtaken = [(q.gold[0], stale) for q in toy.queries for stale in q.extra.get("stale_ids", ())]
    assert len(overtaken) == 4
    assert all(at[stale] < at[gold] for gold, stale in overtaken)


def test_memories_are_in_the_order_of_their_times_and_short_enough_to_stay_whole() -> None:
    memories = corpus().memories
    times = [m["created_at"] for m in memories]
    assert times == sorted(times)
    assert max(len(m["text"]) for m in memories) < 200
