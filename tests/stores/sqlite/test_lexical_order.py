"""The lexical order of SQLite: what PostgreSQL answers to the last digit."""

from __future__ import annotations

from typing import Any

import semmem
from tests.stores.sqlite.bakery import fill

QUESTIONS = (
    *(
        "bakery in Norrbeck",
        "who designed the logger?",
        "rye",
        "wheat rye tower",
        "東京",
        "cafe",
        "version 2.3.1",
        "the",
    ),
    *(
        '"bakery in Norrbeck"',
        '"more rye" bakery',
        '"not there" rye',
        "U.S. wheat",
        "winter number 3",
        "nothing matches",
    ),
)


def shown(hit: semmem.Hit) -> tuple[Any, ...]:
    return hit.memory.id, hit.score, hit.legs["lexical"].score, hit.snippet, hit.duplicates


def test_every_question_has_the_answer_that_postgresql_gives_to_the_last_digit(
    mem: semmem.Semmem, store_url: str
) -> None:
    variants: list[dict[str, Any]] = [
        {}, {"lexical": {"match": "all"}}, {"lexical": {"match": "auto"}}, {"lexical": {"k1": 2.0, "b": 0.9}},
        {"depths": {"lexical": 2}}, {"dedup": False},
    ]  # fmt: skip
    narrow: list[dict[str, Any]] = [
        {}, {"filters": {"sessions": ["s0"]}}, {"filters": {"tags": ["t"]}}, {"exclude": ["kestrel", "long#2"]},
        {"namespace": ["n", "other"]}, {"offset": 1, "limit": 2}, {"fold_parts": False},
    ]  # fmt: skip
    with semmem.connect(store_url, embedder="none") as other:
        for one in (mem, other):
            fill(one)
        compared = 0
        every = [*((v, {}) for v in variants), *(({}, n) for n in narrow)]
        for question in QUESTIONS:
            for variant, how in every if question in QUESTIONS[:5] else every[:1]:
                asked = {"namespace": "n", "recipe": semmem.recipe("lexical", **variant), **how}
                answers = [one.recall(question, **asked) for one in (mem, other)]
                ours, theirs = ([*map(shown, answer)] for answer in answers)
                assert ours == theirs, (question, variant, how)
                compared += len(ours)
        assert compared > 100


def test_where_too_few_have_all_terms_any_will_do(mem: semmem.Semmem) -> None:
    mem.remember_many([{"id": f"both{n:02}", "text": f"tide and heron {n}"} for n in range(9)])
    mem.remember_many([{"id": f"one{n:02}", "text": f"tide {n}"} for n in range(9)])
    auto = semmem.recipe("lexical", lexical={"match": "auto"})
    # nine have both terms, one fewer than what auto is content with, so those with one follow behind
    found = [hit.memory.id for hit in mem.recall("tide heron", recipe=auto, limit=50)]
    assert (len(found), {i[:4] for i in found[:9]}) == (18, {"both"})
    mem.remember("heron tide", id="both99")
    assert {h.memory.id[:4] for h in mem.recall("tide heron", recipe=auto, limit=50)} == {"both"}
    assert len(mem.recall("tide heron", recipe=semmem.recipe("lexical", lexical={"match": "all"}), limit=50)) == 10


def test_author_and_window_count_as_they_do_elsewhere(mem: semmem.Semmem, store_url: str) -> None:
    talk = [
        ("Ada", "Where did you go last summer?", "2023-07-02"), ("Bob", "To the coast, in May.", "2023-07-02"),
        ("Ada", "I painted the coast once.", "2023-07-03"), ("Bob", "Did you sell it?", "2023-07-03"),
    ]  # fmt: skip
    with semmem.connect(store_url, embedder="none") as other:
        for one in (mem, other):
            for number, (author, text, at) in enumerate(talk):
                one.remember(text, id=f"t{number}", author=author, session="s", position=number, created_at=at)
        for question in ("When did Bob go to the coast?", "What did Ada paint?", "Who sold a coast in July 2023?"):
            answers = [[(h.memory.id, h.score) for h in one.recall(question, recipe="lexical")] for one in (mem, other)]
            assert answers[0] == answers[1]
            assert answers[0]


def test_importance_and_other_orders_work_as_everywhere(mem: semmem.Semmem) -> None:
    for number, id in enumerate("abc"):
        mem.remember(f"rye {number}", id=id, importance=number / 2, created_at=f"2026-01-0{3 - number}")
    weighty = semmem.recipe("lexical", prior_floor=0.7)  # three times the same score, times the prior
    assert [h.memory.id for h in mem.recall("rye", recipe=weighty)] == ["c", "b", "a"]
    assert [h.memory.id for h in mem.recall("rye", sort_by="created")] == ["a", "b", "c"]
    assert [h.memory.id for h in mem.recall("rye", sort_by="importance", offset=1, limit=1)] == ["b"]
