"""The rules for conversation and what the encoder reads, on arrays small enough to work out by hand."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

import semmem
from semmem.legs import conversation
from semmem.legs.conversation import Turns, takes_turns
from semmem.model.exchange import Turn
from semmem.model.question import ConversationalQuery, Kinds
from semmem.model.recipe import ConversationSettings
from semmem.read import question as questions
from semmem.read.question import NamePlaces, as_conversational, candidates, conversational_query
from semmem.text.passages import encoded_text, searched_text
from semmem.text.tokens import author_key

PLAIN = ConversationSettings()
NOBODY = ConversationalQuery(None, "q", "q", ())
MAY_2023 = 12 * 2023 + 4
TURNS = Turns.of(
    [
        Turn("n", 11, "s", "Ann", True, MAY_2023),
        Turn("n", 12, "s", "Ben", False, MAY_2023),
        Turn("n", 13, "s", "Ben", False, MAY_2023 + 1),
        Turn("n", 21, "t", "Ann", False, MAY_2023 + 2),
        Turn("n", 31, None, "Ann", False, MAY_2023 + 3),
    ]
)


def test_neighbours_stay_within_a_session() -> None:
    assert TURNS.previous.tolist() == [-1, 0, 1, -1, -1]
    assert TURNS.before.tolist() == [-1, -1, 0, -1, -1]
    assert TURNS.next.tolist() == [1, 2, -1, -1, -1]


def test_a_turn_takes_half_of_the_question_before_it_and_less_of_its_own_author() -> None:
    row_ids, scores = conversation.lexical(TURNS, np.array([11]), np.array([1.0]), NOBODY, PLAIN)
    # 12 answers a question of another: .5; 13 has it two turns before: .1; 11 itself keeps 1
    assert dict(zip(row_ids.tolist(), scores.tolist(), strict=True)) == {11: 1.0, 12: 0.5, 13: 0.1}
    row_ids, scores = conversation.lexical(TURNS, np.array([12]), np.array([1.0]), NOBODY, PLAIN)
    # 13 follows a turn of its own author: .15; 11 has 12 next: .1
    assert dict(zip(row_ids.tolist(), scores.tolist(), strict=True)) == {11: 0.1, 12: 1.0, 13: 0.15}


def test_the_author_counts_1_6_and_a_named_month_with_the_next_1_5() -> None:
    raw = (np.array([21, 31]), np.array([1.0, 1.0]))
    by_ann = dataclasses.replace(NOBODY, author="Ann")
    assert conversation.lexical(TURNS, *raw, by_ann, PLAIN)[1].tolist() == [1.6, 1.6]
    june = dataclasses.replace(NOBODY, months=((6, 2023),))  # 21 is of July, the month after; 31 of August
    assert conversation.lexical(TURNS, *raw, june, PLAIN)[1].tolist() == [1.5, 1.0]


def test_windows_shrink_for_a_question_that_collects_unless_that_is_off() -> None:
    collects = dataclasses.replace(NOBODY, collects=True)
    _, scores = conversation.lexical(TURNS, np.array([11]), np.array([1.0]), collects, PLAIN)
    assert scores.tolist() == pytest.approx([1.0, 0.165, 0.033])  # .33 of .5 and of .1
    off = dataclasses.replace(PLAIN, collecting=False)
    assert conversation.lexical(TURNS, np.array([11]), np.array([1.0]), collects, off)[1].tolist() == [1.0, 0.5, 0.1]


def test_the_vector_of_a_turn_is_mixed_with_what_stands_around_it() -> None:
    vectors = np.zeros((5, 2), dtype=np.float32)
    vectors[0], vectors[1] = (1, 0), (0, 1)
    scores = conversation.dense(TURNS, vectors, np.array([1, 0], dtype=np.float32), NOBODY, PLAIN)
    # 12 = (.5, 1): .5 / sqrt(1.25); 11 = (1, .1): 1 / sqrt(1.01); a turn without a vector is far below any cosine
    assert scores[:2] == pytest.approx([1 / 1.01**0.5, 0.5 / 1.25**0.5])
    assert scores[2:].tolist() == [-2, -2, -2]


def test_the_one_author_a_question_names_is_taken_out_and_speaks_for_himself() -> None:
    asked = "What did Ann's sister give Ann in May 2023?"
    conversational = conversational_query(asked, candidates(asked), {"Ann"})
    assert (conversational.author, conversational.text) == ("Ann", "What did sister give in May 2023?")
    assert conversational.to_embed == "What did my sister give I in May 2023?"
    assert conversational.months == ((5, 2023),)
    assert conversational_query(asked, candidates(asked), {"Ann", "Ben"}) == ConversationalQuery(
        None, asked, asked, ((5, 2023),), authors=2
    )


def test_who_may_be_named_is_looked_for_where_memories_have_authors_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = "What did Ann say in May 2023?"
    looked: list[str] = []

    def look(text: str, language: str) -> dict[str, list[tuple[int, int]]]:
        looked.append(text)
        return candidates(text, language)

    monkeypatch.setattr(questions, "candidates", look)
    places = NamePlaces(asked)
    recipe = semmem.recipe("default")
    assert as_conversational(asked, places, {"n": Kinds(True, False, {})}, recipe) == {"n": None}
    assert looked == []
    conversational = as_conversational(
        asked, places, {"n": Kinds(True, True, {"Ann": [("Ben", "Ann", "Ben")]})}, recipe
    )["n"]
    assert conversational is not None
    assert (conversational.author, conversational.text) == ("Ann", "What did say in May 2023?")
    assert dict(places) == candidates(asked)
    assert looked == [asked]


def test_two_namespaces_with_a_session_of_one_name_have_two_sessions() -> None:
    turns = Turns.of([Turn("a", 1, "s", "Ann", True, 0), Turn("b", 2, "s", "Ben", False, 0)])
    assert (turns.previous.tolist(), turns.next.tolist()) == ([-1, -1], [-1, -1])


def test_the_sides_of_a_chat_are_nobodys_names() -> None:
    asked = "How many user stories did the assistant finish?"
    assert not {"user", "assistant"} & candidates(asked).keys()
    assert "user stories" in candidates(asked)


@pytest.mark.parametrize("text", ["May I bring the dog?", "Done? March on!", "who may enter", "We march at dawn."])
def test_a_word_that_is_also_a_month_dates_nothing_at_the_start_of_a_sentence_or_without_a_capital(text: str) -> None:
    assert conversational_query(text, {}, set()).months == ()


def test_a_month_inside_a_sentence_or_with_a_day_or_year_is_meant() -> None:
    assert conversational_query("What did we buy in May, or the March after?", {}, set()).months == (
        (5, None),
        (3, None),
    )
    assert conversational_query("May 2023: who came? March 3rd: who left?", {}, set()).months == ((5, 2023), (3, None))
    assert conversational_query("june was warm", {}, set()).months == ((6, None),)


def test_a_stop_word_is_a_name_only_with_a_capital_inside_the_question() -> None:
    assert "will" in candidates("Where does Will live?")
    assert "will" not in candidates("Where will she live?")
    assert "may" not in candidates("May she go?")
    assert author_key("Zoë  O'Neil") == "zoe oneil"


@pytest.mark.parametrize("text", ["Which cities has she visited?", "How many dogs are there?", "What do both like?"])
def test_questions_that_gather_many_turns_are_seen(text: str) -> None:
    assert conversational_query(text, {}, set()).collects


def test_a_question_for_one_thing_collects_nothing() -> None:
    assert not conversational_query("When did she paint the sunrise?", {}, set()).collects


def test_the_encoder_does_not_hear_to_whom_a_turn_is_said() -> None:
    assert encoded_text(None, "Hey Mel! I went to the harbour today.", "Ann", ()) == "I went to the harbour today."
    assert encoded_text(None, "I went to the harbour, Caroline!", "Ann", ()) == "I went to the harbour!"
    assert encoded_text(None, "Hey Mel! Fine.", "Ann", ()) == "Hey Mel! Fine."  # nothing much would be left
    assert encoded_text("T", "Hey Mel! I went to the harbour.", None, ()) == "T. Hey Mel! I went to the harbour."


def test_tags_stand_behind_the_text_that_is_searched() -> None:
    assert searched_text("Tea at four.", ["kitchen", "daily"]) == "Tea at four. [kitchen, daily]"
    assert encoded_text("T", "Tea.", None, ("kitchen",)) == "T. Tea. [kitchen]"


@pytest.mark.parametrize(
    ("before", "told"),
    [
        ([], False),  # nothing stands before: nothing is known
        ([("Ben",)], False),  # who spoke before Ben is not known
        ([("Ben", "Ann", "Ben")], True),
        ([("ann", "Ben", "Ben", "Ann")], True),  # several turns in a row are one
        ([("Ben", "Cem")], False),  # a note after two others' notes
        ([("Ben", None)], False),
        ([("Ben", "Ann"), ("Ben", "Cem")], True),  # half of those that tell
        ([("Ben", "Ann"), ("Ben", "Cem"), ("Cem", "Ben"), ("Ben",)], False),
    ],
)
def test_an_author_takes_turns_who_comes_back_after_another_time_after_time(before: list[Any], told: bool) -> None:
    assert takes_turns("Ann", before) is told


def test_an_answer_takes_in_more_of_what_its_question_is_about() -> None:
    rows = [("Ann", False), ("Ben", True), ("Ann", False)]
    turns = Turns.of([Turn("n", at, "s", who, asks, 0) for at, (who, asks) in enumerate(rows)])
    of_its_answer = dataclasses.replace(PLAIN, before_asked=0.3)
    _, scores = conversation.lexical(turns, np.array([0]), np.array([1.0]), NOBODY, of_its_answer)
    # 1 has it before: .3; 2 answers 1, so that what stood before 1 counts .3 and not .1
    assert scores.tolist() == [1.0, 0.3, 0.3]
    assert conversation.lexical(turns, np.array([0]), np.array([1.0]), NOBODY, PLAIN)[1].tolist() == [1.0, 0.3, 0.1]
