"""The forms of published data sets as corpora: LoCoMo, LongMemEval, HippoRAG's, BEIR, and a store of one's own."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from eval.datasets import Corpus, DatasetError, load
from eval.statistics.measures import measure


def jsonl(path: Path, *rows: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


# --- LoCoMo -------------------------------------------------------------------------------------------------------

CONVERSATION = {
    "speaker_a": "Ann",
    "speaker_b": "Bo",
    "session_10_date_time": "12:05 am on 1 June, 2023",
    "session_10": [{"speaker": "Ann", "dia_id": "D10:1", "text": "Last one."}],
    "session_2_date_time": "1:56 pm on 8 May, 2023",
    "session_2": [
        {"speaker": "Ann", "dia_id": "D2:1", "text": "Look!", "blip_caption": "a photo of a dog"},
        {"speaker": "Bo", "dia_id": "D2:2", "text": "Nice."},
    ],
    "session_11_date_time": "1:00 pm on 2 June, 2023",
}

SAMPLE = {
    "sample_id": "conv-7",
    "conversation": CONVERSATION,
    "qa": [
        {"question": "What?", "answer": "a dog", "evidence": ["D2:1; D10:1"], "category": 1},
        {"question": "Why?", "answer": "no", "evidence": [], "category": 3},
        {"question": "Trap?", "adversarial_answer": "yes", "evidence": ["D2:2"], "category": 5},
        {"question": "When?", "answer": "May", "evidence": ["D2:2", "D99:1"], "category": 2},
    ],
}


@pytest.fixture
def locomo(tmp_path: Path) -> Corpus:
    path = tmp_path / "locomo_tiny.json"
    path.write_text(json.dumps([SAMPLE, {**SAMPLE, "sample_id": "conv-8"}]), encoding="utf-8")
    return load(path)


def test_a_locomo_turn_is_a_memory_with_author_caption_session_time_and_order(locomo: Corpus) -> None:
    assert locomo.format == "locomo"
    assert locomo.memories[0] == {
        "namespace": "conv-7",
        "id": "conv-7:D2:1",
        "text": "Look! [a photo of a dog]",
        "author": "Ann",
        "session": "conv-7:2",
        "position": 0,
        "created_at": datetime(2023, 5, 8, 13, 56, tzinfo=UTC),
    }
    # 12:05 am is five past midnight; session 10 comes after session 2, by number and not by spelling.
    assert [m["id"] for m in locomo.memories[:3]] == ["conv-7:D2:1", "conv-7:D2:2", "conv-7:D10:1"]
    assert [m["position"] for m in locomo.memories[:3]] == [0, 1, 0]
    assert locomo.memories[2]["created_at"] == datetime(2023, 6, 1, 0, 5, tzinfo=UTC)


def test_each_locomo_conversation_is_a_namespace_of_its_own(locomo: Corpus) -> None:
    assert locomo.namespaces == ("conv-7", "conv-8")
    assert locomo.sizes == {"conv-7": 3, "conv-8": 3}
    assert all(g.startswith(q.namespace) for q in locomo.queries for g in q.gold)


def test_locomo_counts_what_it_skips_and_keeps_category_five_apart(locomo: Corpus) -> None:
    first = [q for q in locomo.queries if q.namespace == "conv-7"]
    assert [(q.id, q.stratum, q.apart) for q in first] == [
        ("conv-7:q0", "1 multi-hop", False),
        ("conv-7:q2", "5 adversarial", True),
        ("conv-7:q3", "2 temporal", False),
    ]
    # two turns written into one string are two gold turns; D99:1 does not exist
    assert first[0].gold == ("conv-7:D2:1", "conv-7:D10:1")
    assert first[2].gold == ("conv-7:D2:2",)
    assert locomo.notes == {"questions without evidence": 2, "gold ids that do not exist": 2}


def test_a_locomo_session_without_a_date_is_refused(tmp_path: Path) -> None:
    sample = {"conversation": {"session_1": [{"speaker": "A", "dia_id": "D1:1", "text": "x"}]}, "qa": []}
    (tmp_path / "x.json").write_text(json.dumps([sample]), encoding="utf-8")
    with pytest.raises(DatasetError, match="session 1, turn 1 has no date; give the session its session_N_date_time"):
        load(tmp_path / "x.json")


# --- LongMemEval --------------------------------------------------------------------------------------------------


def haystack(id: str, sessions: list[str], gold: list[str]) -> dict[str, Any]:
    return {
        "question_id": id,
        "question_type": "multi-session",
        "question": f"{id}?",
        "answer": "x",
        "question_date": "2023/06/01 (Thu) 10:00",
        "haystack_dates": ["2023/05/30 (Tue) 21:48" for _ in sessions],
        "haystack_session_ids": sessions,
        "haystack_sessions": [
            [{"role": "user", "content": f"hello {s}"}, {"role": "assistant", "content": "yes"}] for s in sessions
        ],
        "answer_session_ids": gold,
    }


@pytest.fixture
def longmemeval_file(tmp_path: Path) -> Path:
    path = tmp_path / "lme.json"
    rows = [haystack("q1", ["a", "b"], ["b"]), haystack("q2_abs", ["b", "c"], ["c"])]
    path.write_text(json.dumps(rows), encoding="utf-8")
    return path


def test_a_longmemeval_turn_is_a_memory_and_its_session_is_gold(longmemeval_file: Path) -> None:
    corpus = load(longmemeval_file)
    assert corpus.memories[1] == {
        "namespace": "q1",
        "id": "a:1",
        "text": "yes",
        "author": "assistant",
        "session": "a",
        "position": 1,
        "created_at": datetime(2023, 5, 30, 21, 48, tzinfo=UTC),
    }
    asked = corpus.queries[0]
    assert (asked.gold, asked.any_of, asked.gold_memories) == (("b",), {"b": ("b:0", "b:1")}, ("b:0", "b:1"))


def test_a_session_is_found_where_one_of_its_turns_is(longmemeval_file: Path) -> None:
    asked = load(longmemeval_file).queries[:1]
    counts = {"q1": dict.fromkeys(("a:0", "a:1", "b:0", "b:1"), 100)}
    one = measure(asked, {"q1": ["a:0", "b:1", "b:0"]}, cutoffs=(1, 2), token_counts=counts)
    assert one.mean("R@1") == 0.0
    assert one.mean("R@2") == one.mean("AllGold@2") == one.mean("R<=500tok") == 1.0
    assert one.mean("RR@2") == 0.5
    assert measure(asked, {"q1": ["a:0", "a:1"]}, cutoffs=(2,)).mean("R@2") == 0.0


def test_a_longmemeval_turn_without_text_is_counted_and_its_session_stays(tmp_path: Path) -> None:
    row = haystack("q1", ["a", "b"], ["b"])
    row["haystack_sessions"][1][0]["content"] = " "
    (tmp_path / "lme.json").write_text(json.dumps([row]), encoding="utf-8")
    corpus = load(tmp_path / "lme.json")
    assert corpus.notes == {"rows that semmem import leaves out": 1}
    assert corpus.queries[0].any_of == {"b": ("b:1",)}


def test_each_longmemeval_question_has_its_own_haystack_unless_pooled(longmemeval_file: Path) -> None:
    assert load(longmemeval_file).sizes == {"q1": 4, "q2_abs": 4}
    pooled = load(longmemeval_file, pooled=True)
    assert pooled.sizes == {"lme": 6}
    assert pooled.queries[0].any_of == {"b": ("b:0", "b:1")}


def test_an_abstention_question_has_no_gold_and_stands_apart(longmemeval_file: Path) -> None:
    asked = {q.id: q for q in load(longmemeval_file).queries}
    assert (asked["q1"].gold, asked["q1"].apart, asked["q1"].stratum) == (("b",), False, "multi-session")
    assert (asked["q2_abs"].gold, asked["q2_abs"].apart, asked["q2_abs"].stratum) == ((), True, "abstention")


# --- HippoRAG's form ----------------------------------------------------------------------------------------------


def test_musique_support_is_found_by_title_and_text(tmp_path: Path) -> None:
    passages = [
        {"title": "Paris", "text": "Capital of  France."},
        {"title": "Paris", "text": "A town in Texas."},
        {"title": "Texas", "text": "A state."},
    ]
    asked = {
        "id": "2hop__1_2",
        "question": "Which state?",
        "answer": "Texas",
        "paragraphs": [
            {"title": "Paris", "paragraph_text": "A town in Texas.", "is_supporting": True},
            {"title": "Paris", "paragraph_text": "Capital of France.", "is_supporting": False},
            {"title": "Texas", "paragraph_text": "Another wording.", "is_supporting": True},
            {"title": "Paris", "paragraph_text": "Unheard of.", "is_supporting": True},
        ],
    }
    (tmp_path / "musique_corpus.json").write_text(json.dumps(passages), encoding="utf-8")
    (tmp_path / "musique.json").write_text(json.dumps([asked]), encoding="utf-8")
    corpus = load(tmp_path)
    assert (corpus.name, corpus.format) == ("musique", "hipporag")
    # Texas has one passage, so its title is enough; "Paris" has two, so an unknown text stays lost.
    assert corpus.queries[0].gold == ("1", "2")
    assert corpus.queries[0].stratum == "2hop"
    assert corpus.notes == {"supporting passages not in the corpus": 1}


def test_hotpot_support_is_found_by_title(tmp_path: Path) -> None:
    passages = [{"title": "A", "text": "One. Two."}, {"title": "B", "text": "Three."}]
    asked = {
        "_id": "x1",
        "question": "?",
        "answer": "y",
        "type": "bridge",
        "supporting_facts": [["B", 0]],
        "context": [["A", ["One.", " Two."]], ["B", ["Three."]]],
    }
    (tmp_path / "hotpotqa_corpus.json").write_text(json.dumps(passages), encoding="utf-8")
    (tmp_path / "hotpotqa.json").write_text(json.dumps([asked]), encoding="utf-8")
    query = load(tmp_path / "hotpotqa.json").queries[0]
    assert (query.id, query.gold, query.stratum) == ("x1", ("1",), "bridge")


# --- BEIR ---------------------------------------------------------------------------------------------------------


def beir(tmp_path: Path, qrels: str) -> Path:
    path = tmp_path / "scifact"
    jsonl(
        path / "corpus.jsonl",
        {"_id": "d1", "title": "T", "text": "x"},
        {"_id": "d2", "title": "Only title", "text": ""},
    )
    jsonl(path / "queries.jsonl", {"_id": "q1", "text": "one?"}, {"_id": "q2", "text": "two?"})
    (path / "qrels").mkdir()
    (path / "qrels" / "test.tsv").write_text(qrels, encoding="utf-8")
    return path


def test_beir_judgments_keep_their_grades_and_zero_is_not_relevant(tmp_path: Path) -> None:
    corpus = load(beir(tmp_path, "query-id\tcorpus-id\tscore\nq1\td1\t2\nq1\td2\t1\nq2\td1\t0\n"))
    assert [m["text"] for m in corpus.memories] == ["x", "Only title"]
    assert [(q.id, q.grades) for q in corpus.queries] == [("q1", {"d1": 2, "d2": 1})]
    assert corpus.notes == {"questions without a judgment in this split": 1}


def test_a_beir_judgment_of_the_wrong_width_is_named_by_line(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match=r"test\.tsv line 2 has 4 cells; it needs query-id, corpus-id and score"):
        load(beir(tmp_path, "query-id\tcorpus-id\tscore\nq1\t0\td1\t2\n"))


# --- a store of one's own -----------------------------------------------------------------------------------------


def test_own_questions_and_judgments_in_use_are_read_together(tmp_path: Path) -> None:
    path = jsonl(
        tmp_path / "mine.jsonl",
        {"id": "1", "question": "Which port?", "gold_ids": ["m1"], "stratum": "exact"},
        {"question": "who?", "memory_id": "m2", "grade": 2},
        {"question": "who?", "memory_id": "m3", "grade": 0},
    )
    corpus = load(path, namespace="work")
    assert corpus.stored
    assert corpus.memories == ()
    assert [(q.id, q.namespace, q.grades, q.stratum) for q in corpus.queries] == [
        ("1", "work", {"m1": 1}, "exact"),
        ("judged-1", "work", {"m2": 2}, "judged in use"),
    ]
