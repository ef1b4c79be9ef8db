"""Measures: numbers worked out by hand, and a second implementation that must agree."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eval.datasets import Query
from eval.statistics.measures import (
    Measured,
    Run,
    falling,
    measure,
    recall_within,
    tokens,
    unfold,
    write_qrels,
    write_run,
)


def ask(id: str, *gold: str, stratum: str = "all", apart: bool = False, grades: dict[str, int] | None = None) -> Query:
    return Query(id, f"{id}?", "ns", gold, stratum, apart, {"grades": grades} if grades else {})


def test_the_measures_of_one_list_by_hand() -> None:
    measured = measure([ask("q", "a", "b")], {"q": ["x", "a", "y", "z", "w", "b"]})
    # a at rank 2, b at rank 6. R: 1 of 2 by rank 5, 2 of 2 by rank 10.
    assert [measured.mean(f"R@{k}") for k in (1, 2, 5, 10, 20)] == [0, 0.5, 0.5, 1, 1]
    assert [measured.mean(f"AllGold@{k}") for k in (1, 2, 5, 10, 20)] == [0, 0, 0, 1, 1]
    assert [measured.mean(f"Success@{k}") for k in (1, 2, 5, 10, 20)] == [0, 1, 1, 1, 1]
    assert [measured.mean(f"RR@{k}") for k in (1, 2, 5, 10, 20)] == [0, 0.5, 0.5, 0.5, 0.5]
    # nDCG@10 = (1/log2 3 + 1/log2 7) / (1/log2 2 + 1/log2 3) = (.630930 + .356207) / 1.630930 = .605260
    assert measured.mean("nDCG@10") == pytest.approx(0.605260, abs=1e-6)


def test_a_question_without_hits_scores_zero_and_is_in_the_mean() -> None:
    measured = measure([ask("q", "a"), ask("empty", "a"), ask("missing", "a")], {"q": ["a"], "empty": []})
    assert measured.ids == ("q", "empty", "missing")
    assert measured.values["R@5"].tolist() == [1, 0, 0]
    assert measured.mean("R@5") == pytest.approx(1 / 3)


def test_a_question_without_gold_is_not_measured() -> None:
    assert measure([ask("q", "a"), ask("none")], {"q": ["a"], "none": ["a"]}).ids == ("q",)


def test_questions_apart_are_in_their_stratum_and_not_in_the_headline() -> None:
    queries = [ask("q", "a", stratum="easy"), ask("t", "a", stratum="trap", apart=True)]
    measured = measure(queries, {"q": ["a"], "t": ["b"]})
    assert measured.groups == ("headline", "easy", "trap")
    assert (measured.mean("R@1"), measured.mean("R@1", "easy"), measured.mean("R@1", "trap")) == (1, 1, 0)
    assert math.isnan(measured.mean("R@1", "no such stratum"))


def test_the_order_of_the_run_decides_and_never_the_spelling_of_an_id() -> None:
    # Tools break ties by id: with equal scores one of these two would come out the wrong way round.
    assert measure([ask("q", "a")], {"q": ["b", "a"]}).mean("RR@10") == 0.5
    assert measure([ask("q", "b")], {"q": ["a", "b"]}).mean("RR@10") == 0.5


def test_scores_fall_strictly() -> None:
    assert falling(["b", "a", "c"]) == {"b": 3.0, "a": 2.0, "c": 1.0}


def test_a_graded_judgment_earns_its_grade() -> None:
    measured = measure([ask("q", "a", "b", grades={"a": 2, "b": 1})], {"q": ["b", "a"]})
    # (1/1 + 2/log2 3) / (2/1 + 1/log2 3) = (1 + 1.261860) / (2 + .630930) = .859719
    assert measured.mean("nDCG@5") == pytest.approx(0.859719, abs=1e-6)


def test_a_gold_memory_folded_into_a_hit_counts_as_found_there() -> None:
    assert unfold([("x", "y"), ("p", "gold")], ["gold"]) == ["x", "gold"]
    measured = measure([ask("q", "gold")], {"q": [("x", "y"), ("p", "gold")]})
    assert measured.mean("RR@10") == 0.5


def test_two_gold_memories_in_one_place_take_two_places() -> None:
    assert unfold([("a", "b"), "c"], ["a", "b"]) == ["a", "b", "c"]


def test_tokens_are_a_quarter_of_the_characters_rounded_up() -> None:
    assert [tokens("x" * n) for n in (0, 1, 4, 5, 8)] == [0, 1, 1, 2, 2]


def test_recall_within_a_budget_ends_at_the_first_memory_that_does_not_fit() -> None:
    counts = {"a": 60, "long": 50, "b": 10}
    # 60 fits in 100; 60 + 50 = 110 does not, so b behind it is not reached although 70 would fit.
    assert recall_within(100, ["a", "long", "b"], ["a", "b"], counts) == 0.5
    assert recall_within(120, ["a", "long", "b"], ["a", "b"], counts) == 1.0
    assert recall_within(59, ["a", "long", "b"], ["a", "b"], counts) == 0.0
    assert recall_within(60, [("a", "b")], ["a", "b"], counts) == 1.0


def test_token_measures_appear_when_tokens_are_known() -> None:
    measured = measure([ask("q", "a")], {"q": ["b", "a"]}, token_counts={"ns": {"a": 10, "b": 495}})
    assert (measured.mean("R<=500tok"), measured.mean("R<=1000tok")) == (0, 1)
    assert "R<=500tok" not in measure([ask("q", "a")], {"q": ["a"]}).values


def test_trec_files_have_six_and_four_words_a_line_whatever_the_ids(tmp_path: Path) -> None:
    queries = [ask("q 1", "a b", "c")]
    write_run(tmp_path / "x.run", {"q 1": ["c", "a b"]}, queries, "de fault")
    write_qrels(tmp_path / "x.qrels", queries)
    assert (tmp_path / "x.run").read_text() == "q%201 Q0 c 1 2 de%20fault\nq%201 Q0 a%20b 2 1 de%20fault\n"
    assert (tmp_path / "x.qrels").read_text() == "q%201 0 a%20b 1\nq%201 0 c 1\n"


# --- a second implementation ---------------------------------------------------------------------------------------


def by_definition(name: str, k: int, ranked: Sequence[str], grades: dict[str, int]) -> float:
    """Each measure as its textbook writes it, with nothing shared with ``eval.statistics.measures``."""
    top = list(ranked)[:k]
    hits = [id in grades for id in top]
    if name == "R":
        return sum(hits) / len(grades)
    if name == "AllGold":
        return float(sum(hits) == len(grades))
    if name == "Success":
        return float(any(hits))
    if name == "RR":
        return next((1 / (i + 1) for i, hit in enumerate(hits) if hit), 0.0)
    gain = sum(grades.get(id, 0) / math.log2(i + 2) for i, id in enumerate(top))
    ideal = sum(g / math.log2(i + 2) for i, g in enumerate(sorted(grades.values(), reverse=True)[:k]))
    return gain / ideal


IDS = st.sampled_from([f"m{i}" for i in range(30)])
RANKED = st.lists(IDS, unique=True, max_size=25)
GRADES = st.dictionaries(IDS, st.integers(1, 3), min_size=1, max_size=6)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(RANKED, GRADES), min_size=1, max_size=4))
def test_every_measure_agrees_with_its_definition(cases: list[tuple[list[str], dict[str, int]]]) -> None:
    queries = [ask(f"q{i}", *grades, grades=grades) for i, (_, grades) in enumerate(cases)]
    measured = measure(queries, {f"q{i}": ranked for i, (ranked, _) in enumerate(cases)})
    for name, values in measured.values.items():
        kind, k = name.split("@")
        expected = [by_definition(kind, int(k), ranked, grades) for ranked, grades in cases]
        assert values.tolist() == pytest.approx(expected, abs=1e-9), name


def random_case(seed: int) -> tuple[dict[str, dict[str, int]], Run, Measured]:
    """Return grades of 50 questions over 40 memories, a run, and what ours makes of it."""
    import random

    rng = random.Random(seed)
    ids = [f"m{i}" for i in range(40)]
    grades = {f"q{i:02d}": {id: rng.randint(1, 3) for id in rng.sample(ids, rng.randint(1, 6))} for i in range(50)}
    run: Run = {q: rng.sample(ids, rng.randint(1, 25)) for q in grades}
    return grades, run, measure([ask(q, *g, grades=g) for q, g in grades.items()], run)


def test_ndcg_agrees_with_scikit_learn() -> None:
    from sklearn.metrics import ndcg_score

    grades, run, measured = random_case(7)
    # behind what came back: forty that are worth nothing, then the gold that is missing, out of sight for k <= 20
    truth = {
        q: [gold.get(id, 0) for id in run[q]] + [0] * 40 + [grade for id, grade in gold.items() if id not in run[q]]
        for q, gold in grades.items()
    }
    for k in (1, 2, 5, 10, 20):
        scores = [
            ndcg_score([truth[q]], [[-float(place) for place in range(len(truth[q]))]], k=k) for q in measured.ids
        ]
        assert measured.values[f"nDCG@{k}"].tolist() == pytest.approx(scores, abs=1e-9), k


def test_every_measure_agrees_with_trec_eval() -> None:
    import pytrec_eval

    grades, run, measured = random_case(8)
    scores = {q: {id: float(-place) for place, id in enumerate(r)} for q, r in run.items()}
    names = {"R": "recall", "nDCG": "ndcg_cut", "Success": "success"}
    for k in (1, 2, 5, 10, 20):
        asked = {f"{name}.{k}" for name in names.values()}
        by_question = pytrec_eval.RelevanceEvaluator(grades, asked).evaluate(scores)
        for ours, name in names.items():
            values = [by_question[q][f"{name}_{k}"] for q in measured.ids]
            assert measured.values[f"{ours}@{k}"].tolist() == pytest.approx(values, abs=1e-9), (ours, k)
        # trec_eval's reciprocal rank has no cut-off, so it is given lists that are cut
        cut = {q: dict(list(of.items())[:k]) for q, of in scores.items()}
        by_question = pytrec_eval.RelevanceEvaluator(grades, {"recip_rank"}).evaluate(cut)
        values = [by_question[q]["recip_rank"] for q in measured.ids]
        assert measured.values[f"RR@{k}"].tolist() == pytest.approx(values, abs=1e-9), k
