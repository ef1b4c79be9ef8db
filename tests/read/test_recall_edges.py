"""What a recall counts, how deep it asks and how sure it is, at the edges, with lists that the legs are told."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import semmem
from semmem.embedders.fitted import FittedCurve, keep, kept
from semmem.embedders.hashing import Hashing
from semmem.model.exchange import Question, Ranking, Scope, Trace
from semmem.model.recipe import Recipe
from semmem.read.candidates import CURVES, FLOORS, LEXICAL_FLOOR, OTHER_FLOOR, curve, matches
from semmem.read.result import Recall
from tests.stores.expiry import let_expire


class Asked:
    """A leg that returns the first memories there are, as many as it has, and notes how deep it was asked."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.depths: list[int] = []
        self.scores: list[float] = []
        self.most: float | None = None

    def search(self, question: Question, scope: Scope, recipe: Recipe) -> Ranking:
        self.depths.append(recipe.depths.get(self.name, 100))
        scores = self.scores[: self.depths[-1]]
        return Ranking(tuple(range(1, len(scores) + 1)), tuple(scores), len(scores), trace=Trace(most=self.most))


@pytest.fixture
def legs() -> Iterator[tuple[semmem.Semmem, dict[str, Asked]]]:
    """A store of a hundred copies of one text and thirty others, and two legs to be told."""
    with semmem.connect("sqlite::memory:", embedder="none") as mem:
        told = {name: Asked(name) for name in ("lexical", "dense")}
        for name, leg in told.items():
            mem._here.legs[name] = leg
        mem.remember_many({"id": f"m{n:03}", "text": "The same." if n < 100 else f"Note {n}."} for n in range(130))
        yield mem, told


def falling(count: int, first: float = 1.0) -> list[float]:
    return [first - at / 1000 for at in range(count)]


def ids(found: Recall) -> list[str]:
    return [hit.memory.id for hit in found]


def test_a_page_is_asked_for_once_as_deep_as_its_end(legs: tuple[semmem.Semmem, dict[str, Asked]]) -> None:
    mem, told = legs
    told["lexical"].scores = falling(130)
    plan = semmem.recipe("lexical", dedup=False)
    assert ids(mem.recall("note", recipe=plan, limit=10, offset=115)) == [f"m{n:03}" for n in range(115, 125)]
    assert told["lexical"].depths == [125]


def test_where_folding_leaves_too_few_the_legs_are_asked_again_and_deeper(
    legs: tuple[semmem.Semmem, dict[str, Asked]],
) -> None:
    mem, told = legs
    told["lexical"].scores = falling(130)
    assert ids(mem.recall("note", recipe="lexical", limit=5)) == ["m000", "m100", "m101", "m102", "m103"]
    assert told["lexical"].depths == [100, 800]


def test_confidence_is_a_curve_over_what_the_legs_think_of_their_own_first(
    legs: tuple[semmem.Semmem, dict[str, Asked]],
) -> None:
    mem, told = legs
    told["lexical"].scores, told["lexical"].most = falling(3, 3.0), 12.0
    told["dense"].scores, told["dense"].most = falling(3, 0.75), 1.0
    known = mem.recall("note", recipe="hybrid")
    assert matches(known.candidates) == {"dense": 0.75, "lexical": 0.25}
    assert known.confidence == curve({"dense": 0.75, "lexical": 0.25}) == pytest.approx(0.8061, abs=5e-5)
    for leg in ("lexical", "dense"):
        assert mem.recall("note", recipe=leg).confidence == curve({leg: matches(known.candidates)[leg]})


class Mpnet(Hashing):
    """Hashing under the name of a model that has a curve of its own, its weights in 8 bits."""

    name = "all-mpnet-base-v2-int8"


def test_an_embedder_that_was_measured_has_a_curve_and_a_floor_of_its_own(store_url: str) -> None:
    match = {"dense": 0.5, "lexical": 0.2}
    # the logistic of 5 x .5 + .15 x .2 - 2.45 and of 5.6 x .5 + 1.5 x .2 - 3.15
    assert curve(match, "all-mpnet-base-v2") == pytest.approx(0.519989, abs=5e-6)
    assert curve(match, "another") == curve(match) == pytest.approx(0.487503, abs=5e-6)
    assert curve({"lexical": 0.2}, "all-mpnet-base-v2") == curve({"lexical": 0.2})
    with semmem.connect(store_url, embedder=Mpnet()) as mem:
        mem.remember("The ferry leaves at nine.")
        found = mem.recall("When does the ferry leave?", recipe="hybrid", min_confidence="auto")
        assert found.confidence == curve(matches(found.candidates), "all-mpnet-base-v2")
        assert found.min_confidence == FLOORS["all-mpnet-base-v2"]


class Another(Hashing):
    """Hashing, as if it had other weights."""

    fingerprint = "another"


def test_a_recall_uses_the_curve_that_was_fitted_to_its_own_embedder(
    store_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    fitted = FittedCurve({("dense",): ((30.0,), -26.0), ("dense", "lexical"): ((8.0, 1.0), -6.0)}, 0.35)

    def found() -> semmem.Recall:
        kept.cache_clear()  # as in a process that begins
        return mem.recall("When does the ferry leave?", recipe="hybrid", min_confidence="auto")

    with semmem.connect(store_url, embedder=Another()) as mem:
        mem.remember("The ferry leaves at nine.")
        usual = found()
        keep(Hashing.name, Hashing.fingerprint, fitted)
        assert found().confidence == pytest.approx(usual.confidence)
        assert found().min_confidence == OTHER_FLOOR
        file = keep(Another.name, Another.fingerprint, fitted)
        match = matches(usual.candidates)
        expected = 1 / (1 + math.exp(6 - 8 * match["dense"] - match["lexical"]))
        assert found().confidence == pytest.approx(expected)
        assert abs(expected - usual.confidence) > 0.1
        assert found().min_confidence == 0.35
        assert found().again("hybrid").confidence == pytest.approx(expected)
        words = mem.recall("ferry", recipe="lexical", min_confidence="auto")  # no cosine, so the usual curve
        assert words.confidence == curve(matches(words.candidates))
        assert words.min_confidence == LEXICAL_FLOOR
        whole = json.loads(file.read_text(encoding="utf-8"))
        wrong = (
            {"curves": {"dense": {"dense": "much"}}},
            {"floor": 7},
            {"fingerprint": Hashing.fingerprint},  # a file under the name of another one
        )
        for damaged in ("", "{}", *(json.dumps(whole | one) for one in wrong)):
            caplog.clear()
            file.write_text(damaged, encoding="utf-8")
            assert (found().confidence, found().min_confidence) == (pytest.approx(usual.confidence), OTHER_FLOOR)
            assert f"{file} holds no curve of confidence; fit it again: python -m eval confidence --keep" in caplog.text
    kept.cache_clear()


def test_a_curve_as_steep_as_can_be_is_no_error() -> None:
    steep = FittedCurve({("dense",): ((1e6,), -1e6)}, 0.5)
    assert curve({"dense": 0.5}, fitted=steep) == pytest.approx(0)
    assert curve({"dense": 1.0}, fitted=steep) == 0.5


@given(st.floats(0, 1), st.floats(0, 1), st.floats(0, 1))
def test_more_of_a_match_is_never_less_confidence(some: float, more: float, other: float) -> None:
    low, high = sorted((some, more))
    for legs in CURVES:
        for leg in legs:
            rest = dict.fromkeys(set(legs) - {leg}, other)
            assert 0 < curve({**rest, leg: low}) <= curve({**rest, leg: high}) < 1


def test_a_leg_that_knows_no_best_score_says_nothing_of_the_confidence(
    legs: tuple[semmem.Semmem, dict[str, Asked]],
) -> None:
    mem, told = legs
    told["lexical"].scores, told["lexical"].most = falling(3, 3.0), 0.0
    told["dense"].scores, told["dense"].most = falling(3, 0.75), 1.0
    assert mem.recall("note", recipe="hybrid").confidence == curve({"dense": 0.75})


def test_where_no_leg_knows_its_best_score_the_confidence_is_the_mean_of_the_first_scores(
    legs: tuple[semmem.Semmem, dict[str, Asked]],
) -> None:
    mem, told = legs
    told["lexical"].scores, told["dense"].scores = falling(3, 3.0), falling(3, 0.25)
    assert mem.recall("note", recipe="hybrid").confidence == 0.625  # a score above 1 counts as 1


@pytest.mark.parametrize(("count", "exact"), [(4, True), (5, False)])
def test_a_total_is_exact_only_where_no_list_was_cut(
    count: int, exact: bool, legs: tuple[semmem.Semmem, dict[str, Asked]]
) -> None:
    mem, told = legs
    told["dense"].scores = falling(count)
    found = mem.recall("note", recipe=semmem.recipe("dense", depths={"dense": 5}))
    assert (found.total, found.total_is_exact) == (count, exact)


def test_a_filter_that_nothing_can_match_is_refused(legs: tuple[semmem.Semmem, dict[str, Asked]]) -> None:
    mem, _ = legs
    for name in ("sessions", "authors", "tags"):
        with pytest.raises(semmem.InvalidInput, match=f"The filter {name} is an empty list"):
            mem.recall("note", filters={name: []})


def test_a_time_without_a_zone_is_utc_wherever_the_program_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Pacific/Auckland")
    time.tzset()
    try:
        with semmem.connect("sqlite::memory:", embedder="none") as mem:
            mem.remember("The ferry left.", id="a", created_at=datetime(2026, 1, 1, 12, tzinfo=UTC))
            page = mem.list(filters={"created_after": datetime(2026, 1, 1, 11, 59)})
            assert [memory.id for memory in page.memories] == ["a"]
            assert not mem.list(filters={"created_after": datetime(2026, 1, 1, 12, 1)}).memories
    finally:
        monkeypatch.undo()
        time.tzset()


@pytest.mark.parametrize("number", ["1712100512345", "17121005123", "171210051234556"])
def test_a_number_in_text_is_no_time_of_another_century(number: str) -> None:
    with semmem.connect("sqlite::memory:", embedder="none") as mem:
        with pytest.raises(semmem.InvalidInput, match=f"created_at must be an ISO 8601 time .*, not '{number}'"):
            mem.remember("The ferry left.", created_at=number)
        mem.remember("The ferry left.", id="a", created_at="20260501")
        assert mem.get("a").created_at == datetime(2026, 5, 1, tzinfo=UTC)


@pytest.mark.parametrize("kind", ["postgres", "sqlite"])
def test_a_recall_says_among_how_many_memories_it_searched(kind: str, store_url: str, tmp_path: Path) -> None:
    url = store_url if kind == "postgres" else f"sqlite:{tmp_path}/notes.db"
    with semmem.connect(url, embedder="hashing") as mem:
        ada, bo = ({"text": "The ferry leaves.", "author": "Ada"}, {"text": "The crane waits.", "author": "Bo"})
        mem.remember_many([ada, bo])
        assert mem.recall("ferry").scope_size == 2
        assert mem.recall("ferry", filters={"authors": "Bo"}).scope_size == 1
        unknown = mem.recall("ferry", namespace="tema")
        assert (unknown.scope_size, len(unknown)) == (0, 0)
        assert "nothing in scope" in repr(unknown)
        assert unknown.as_dict()["scope_size"] == 0
        assert mem.recall("ferry", namespace=["default", "tema"]).scope_size == 2
        mem.remember("The lock opens.", id="gone", ttl=3600)
        mem.remember("The pier is long.", id="pier")
        let_expire(mem, "gone")
        for _ in range(3):  # the last ones are answered from memory
            assert mem.recall("ferry").scope_size == 3
            assert mem.recall("ferry", exclude=["pier"]).scope_size == 2
