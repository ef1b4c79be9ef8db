"""Floors of confidence: shares kept and dropped, the floor that is chosen, and the words that a memory holds."""

from __future__ import annotations

import math

import pytest

import semmem
from eval.confidence import ANSWERED, KINDS, Row
from eval.datasets import Corpus, DatasetError, Query
from eval.floors import FLOORS, SETTINGS, Asked, Words, by_rule, chosen, markdown, measure, report


def one(kind: str, confidence: float, *, found: bool = False, words: Words | None = None) -> Asked:
    """A prompt whose confidence is the same in both settings."""
    return Asked(
        kind,
        {name: {"dense": confidence, "lexical": confidence} for name in SETTINGS},
        dict.fromkeys(SETTINGS, confidence),
        dict.fromkeys(SETTINGS, found),
        words or Words(),
    )


PROMPTS = [
    one(ANSWERED, 0.5, found=True),
    one(ANSWERED, 0.25, found=True),
    one(ANSWERED, 0.24, found=True),
    one(ANSWERED, 0.05, found=True),
    one(ANSWERED, 0.9),  # no leg found its answer: a floor cannot lose it
    one("unrelated", 0.0),
    one("unrelated", 0.1),
    one("unrelated", 0.3),
    one("chit-chat", 0.45),
]
ROWS = [
    *(Row(ANSWERED, {"dense": 0.5 + n / 100, "lexical": 0.6}) for n in range(5)),
    *(Row(KINDS[2], {"dense": 0.1 + n / 100, "lexical": 0.2}) for n in range(5)),
]


def test_a_curve_counts_answers_at_or_above_a_floor_and_other_prompts_below_it() -> None:
    shares = report({"a": (PROMPTS, ROWS), "b": (PROMPTS, ROWS)})["in sample"]["all legs"]["sets"]["a"]
    assert FLOORS == (0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5)
    assert shares[ANSWERED] == [1.0, 0.75, 0.75, 0.75, 0.5, 0.25, 0.25, 0.25, 0.25, 0.25]
    assert shares["unrelated"] == [0.333, 0.333, 0.667, 0.667, 0.667, 0.667, 1.0, 1.0, 1.0, 1.0]
    assert shares["chit-chat"] == [0.0] * 9 + [1.0]
    assert "acknowledgement" not in shares


def test_the_floor_is_the_highest_that_keeps_95_in_100_answers_on_average_over_sets() -> None:
    def kept(*shares: float) -> dict[str, list[float]]:
        return {ANSWERED: [*shares, *[0.0] * (len(FLOORS) - len(shares))]}

    # means: 1, .96, .95, .94
    assert chosen({"a": kept(1, 1, 1, 1), "b": kept(1, 0.92, 0.9, 0.88)}) == 0.15
    assert chosen({"a": kept(1, 0.949)}) == 0.05
    assert chosen({"a": kept(0.5)}) == 0.05


def test_a_set_left_out_is_measured_at_the_floor_that_the_other_sets_choose() -> None:
    keeps_all = [one(ANSWERED, 1.0, found=True), one("unrelated", 0.0)]
    loses_all = [one(ANSWERED, 0.0, found=True), one("unrelated", 0.0)]
    left = report({"a": (keeps_all, ROWS), "b": (loses_all, ROWS)})["left out"]["all legs"]
    # a confidence of 0 stays 0 under any curve: set b keeps no answer at any floor, so a is measured at the lowest
    assert (left["a"]["floor"], left["a"][ANSWERED], left["a"]["unrelated"]) == (0.05, 1.0, 1.0)
    assert (left["b"]["floor"], left["b"][ANSWERED], left["b"]["unrelated"]) == (0.5, 0.0, 1.0)


def test_a_set_without_an_answer_found_is_refused() -> None:
    with pytest.raises(DatasetError, match="no question whose answer is found"):
        report({"a": ([one(ANSWERED, 0.9)], ROWS), "b": (PROMPTS, ROWS)})


def test_a_rule_of_words_keeps_and_drops_by_the_words_held() -> None:
    prompts = [
        one(ANSWERED, 0.6, found=True, words=Words(asked=4, held=3, share=0.6, rarest=0.01)),
        one(ANSWERED, 0.38, found=True, words=Words(asked=5, held=1, share=0.15, rarest=0.04)),
        one("unrelated", 0.37, words=Words(asked=3, held=1, share=0.13, rarest=0.06)),
        one("acknowledgement", 0.7, words=Words(asked=1, held=1, share=1.0, rarest=0.2)),
    ]
    rules = by_rule(prompts)
    assert rules["floor .35"] == {ANSWERED: 1.0, "unrelated": 0.0, "acknowledgement": 0.0}
    assert rules["floor .4"] == {ANSWERED: 0.5, "unrelated": 1.0, "acknowledgement": 0.0}
    assert rules["floor .3, two words held"] == {ANSWERED: 0.5, "unrelated": 1.0, "acknowledgement": 0.0}
    assert rules["floor .3, two words held of two or more"]["acknowledgement"] == 1.0
    assert rules["floor .35, a word held by 5 % of memories"] == {
        ANSWERED: 1.0,
        "unrelated": 1.0,
        "acknowledgement": 1.0,
    }


def test_the_words_held_are_those_of_the_best_memory(store_url: str) -> None:
    memories = [
        {"id": "sea", "namespace": "x", "text": "The sea was cold."},
        {"id": "tea", "namespace": "x", "text": "The tea was cold."},
        {"id": "ham", "namespace": "x", "text": "Ham is on Monday."},
    ]
    corpus = Corpus("small", tuple(memories), (Query("q1", "a haiku about the cold sea", "x", ("sea",)),))
    with semmem.connect(store_url, embedder="hashing") as mem:
        mem.remember_many(memories)
        asked, rows = measure(mem, corpus, {"other": ["Who painted it?"]}, lambda _: None)
    words = asked[0].words
    # of three memories: sea is in 1 (idf ln 8/3), cold in 2 (ln 8/5), haiku in none (ln 8)
    share = (math.log(8 / 3) + math.log(8 / 5)) / (math.log(8 / 3) + math.log(8 / 5) + math.log(8))
    assert (words.asked, words.held) == (3, 2)
    assert words.share == pytest.approx(share)
    assert words.rarest == pytest.approx(1 / 3)
    assert asked[0].found == {"all legs": True, "without dense": True}
    assert asked[-1].kind == KINDS[2]
    assert [row.kind for row in rows] == [ANSWERED, KINDS[1], KINDS[2]]


def test_the_tables_of_a_report_have_every_floor_and_every_rule() -> None:
    prompts = [*PROMPTS, one("acknowledgement", 0.32), one(KINDS[2], 0.0)]
    table = markdown(report({"a": (prompts, ROWS), "b": (prompts, ROWS)}))
    assert "| a: answers kept | 1.00 | 0.75 | 0.75 | 0.75 | 0.50 | 0.25 | 0.25 | 0.25 | 0.25 | 0.25 |" in table
    assert "In sample the floor is 0.05." in table
    # worst set, answers kept, of another set, unrelated, chit-chat, acknowledgement
    assert "| floor .35 | 0.25 | 0.25 | 1.00 | 1.00 | 0.00 | 1.00 |" in table
