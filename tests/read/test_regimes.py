"""The regime of a question that names nothing, and what the default recipe makes of it."""

from __future__ import annotations

from dataclasses import replace

import pytest

import semmem
from semmem.model.errors import InvalidInput
from semmem.model.exchange import CandidateMetadata, Question, Ranking, Scope, Trace
from semmem.model.question import ConversationalQuery
from semmem.rank_cap import reach
from semmem.read.candidates import Candidates
from semmem.read.regimes import regime_of
from tests.read.harbour import EPOCH

ASKED = Question("where is it kept?")


def lists(walk: float | None, bm25: float | None, most: float | None = 10.0) -> dict[str, Ranking]:
    """Return a list of one memory for the graph and the lexical leg; None is an empty list."""
    return {
        "graph": Ranking(() if walk is None else (1,), () if walk is None else (walk,)),
        "lexical": Ranking(() if bm25 is None else (1,), () if bm25 is None else (bm25,), trace=Trace(most)),
    }


@pytest.mark.parametrize(
    ("walk", "bm25", "regime"),
    [
        (0.4, 1.9, "anchored"),
        (0.4, 9.0, "anchored"),
        (0.39, 1.9, "described"),
        (0.39, 2.0, "unnamed"),
        (None, 1.9, "described"),
        (None, 2.0, "unnamed"),
        (0.9, None, "described"),  # no memory has a word of the question, so the walk began at the dense leg's heads
    ],
)
def test_the_walk_and_bm25_decide_the_regime_of_a_question_that_names_nothing(
    walk: float | None, bm25: float | None, regime: str
) -> None:
    assert regime_of("unnamed", ASKED, lists(walk, bm25), 20) == regime
    assert regime_of("named", ASKED, lists(walk, bm25), 20) == "named"


def test_among_fewer_than_twenty_memories_no_question_is_anchored() -> None:
    for bm25 in (1.9, 9.0):  # nor described: the walk does hold much
        assert regime_of("unnamed", ASKED, lists(0.4, bm25), 19) == "unnamed"
    assert regime_of("unnamed", ASKED, lists(0.39, 1.9), 19) == "described"


def test_a_question_without_a_known_word_is_described() -> None:
    assert regime_of("unnamed", ASKED, lists(0.9, None, most=None), 20) == "described"


def test_without_a_list_of_the_graph_or_of_the_lexical_leg_nothing_more_is_known() -> None:
    both = lists(0.9, 9.0)
    assert [regime_of("unnamed", ASKED, {leg: both[leg]}, 20) for leg in both] == ["unnamed", "unnamed"]


def test_a_question_to_an_author_is_neither_anchored_nor_described() -> None:
    asked = ConversationalQuery("Ada", "it", "it", (), authors=1)
    for walk, bm25 in ((0.9, 9.0), (0.1, 0.1)):
        assert regime_of("unnamed", replace(ASKED, conversational=asked), lists(walk, bm25), 20) == "unnamed"
        assert regime_of(
            "unnamed", replace(ASKED, narrowed={"talk": replace(ASKED, conversational=asked)}), lists(walk, bm25), 20
        ) == ("unnamed")
    two = replace(asked, author=None, authors=2)  # it asks neither, and names both
    assert regime_of("unnamed", replace(ASKED, conversational=two), lists(0.1, 0.1), 20) == "unnamed"
    none = replace(asked, author=None, authors=0)
    assert regime_of("unnamed", replace(ASKED, conversational=none), lists(0.9, 9.0), 20) == "anchored"


NOTES = {
    "a": "The key of the sluice hangs in the mill.",
    "b": "The sluice is closed in winter.",
    "c": "Herons nest by the pond behind the mill.",
    "d": "The boat needs a new coat of paint.",
    "e": "Bread is baked on Fridays.",
    "f": "The pond freezes in hard winters.",
    "g": "The path along the river is muddy.",
    "h": "Swans stay for the winter at the weir.",
}


def test_a_recall_reports_the_regime_and_a_recipe_without_it_takes_the_question_as_unnamed(store_url: str) -> None:
    with semmem.connect(store_url, embedder="hashing") as mem:
        mem.remember_many([{"id": id, "text": text} for id, text in NOTES.items()])
        assert mem.recall("where is the key of the sluice?").regime == "unnamed"  # of eight memories
        mem.remember_many([{"id": f"m{n}", "text": f"Minutes of meeting {n}."} for n in range(12)])
        asked = {
            "where is the key of the sluice?": "anchored",
            "when do we bake?": "unnamed",
            "where is bread sold on market days in town?": "described",
            "which animals live near water?": "described",
        }
        assert {question: mem.recall(question).regime for question in asked} == asked
        assert [mem.recall(question, recipe="two-regimes").regime for question in asked] == ["unnamed"] * 4
        assert [mem.recall(question, recipe="hybrid").regime for question in asked] == ["any"] * 4
        found = mem.recall("where is bread sold on market days in town?")
        assert found.reach.regimes["described"].legs["dense"].class_ == "guaranteed"


def candidates(recipe: semmem.Recipe, regime: str) -> Candidates:
    """Return candidates of which the lexical leg and the graph put a first, and the dense leg b."""
    keys = {id: (id, 0, "notes") for id in "ab"}
    metadata = {
        key: CandidateMetadata(n, "notes", id, 0, 0.5, id.encode() * 16, EPOCH, EPOCH)
        for n, (id, key) in enumerate(keys.items())
    }
    rankings = {"lexical": (keys["a"],), "dense": (keys["b"],), "graph": (keys["a"],)}
    return Candidates(
        ASKED,
        Scope(("notes",), 2),
        recipe,
        regime,
        rankings,
        dict.fromkeys(rankings, (1.0,)),
        {},
        metadata,
        frozenset(),
        {},
    )


def test_a_described_question_believes_the_dense_leg_and_not_two_legs_that_agree() -> None:
    plan = semmem.recipe("default")
    first = {regime: candidates(plan, regime).fuse()[0] for regime in plan.regimes}
    assert {regime: fused.key[0] for regime, fused in first.items()} == {
        "anchored": "a", "described": "b", "named": "a", "unnamed": "a"
    }  # fmt: skip
    # .35/(2 + 1) of the most there is, .1/5 + .35/3 + .35/9, importance .5 of a prior from 1 - .5/10 to 1
    assert first["described"].score == pytest.approx(0.975 * (0.35 / 3) / (0.1 / 5 + 0.35 / 3 + 0.35 / 9))
    # the walk at a constant of 2 and the lexical leg: .1/5 + .35/3
    assert first["anchored"].components["graph"] == pytest.approx(0.975 * (0.35 / 3) / (0.1 / 5 + 0.35 / 9 + 0.35 / 3))


def test_every_leg_can_bring_its_first_memory_into_five_hits_in_every_regime() -> None:
    found = reach("default", 5)
    assert sorted(found.regimes) == ["anchored", "described", "named", "unnamed"]
    for regime in found.regimes.values():
        assert {leg: of.class_ for leg, of in regime.legs.items()} == {
            "lexical": "guaranteed", "dense": "guaranteed", "graph": "guaranteed"
        }  # fmt: skip
        assert {leg: of.reserve for leg, of in regime.legs.items()} == {"lexical": 4, "dense": 5, "graph": 3}
    # of one hit: .35/9 is less than .35/3 of a competitor that is first in the walk, and than its .35/1 where it is
    # named
    assert {name: of.legs["dense"].class_ for name, of in reach("default", 1).regimes.items()} == {
        "anchored": "boost-only", "described": "possible", "named": "boost-only", "unnamed": "possible"
    }  # fmt: skip


@pytest.mark.parametrize(
    ("places", "says"),
    [
        ({"nameless": {"graph": 1}}, "regime_reserve has a regime 'nameless' that no rank constant names"),
        ({"described": {"graph": 1, "dense": 1}}, "Each leg of the reserve needs a place of its own"),
        ({"described": {"graph": 4}}, "Each leg of the reserve needs a place of its own"),  # where lexical stands
        ({"described": {"graph": -1}}, "regime_reserve.described.graph must be a whole number from 0 to 10000, not -1"),
        ({"described": 3}, "regime_reserve.described must be a mapping from the name of a leg"),
    ],
)
def test_a_reserve_of_a_regime_that_cannot_be_is_refused(places: dict[str, object], says: str) -> None:
    with pytest.raises(InvalidInput, match=says):
        semmem.recipe("default", regime_reserve=places)  # type: ignore[arg-type]


def test_a_reserve_that_is_off_is_off_in_every_regime() -> None:
    off = semmem.recipe("default", reserve={})
    assert len(off.regimes) == 4
    assert not any(off.reserve_in(regime) for regime in off.regimes)
    moved = semmem.recipe("default", reserve={"agreed": 2, "graph": 7})
    assert (moved.reserve_in("named"), moved.reserve_in("described")) == ({"agreed": 2, "graph": 7}, {"graph": 7})


def test_one_constant_for_all_questions_leaves_no_regime_and_nothing_that_was_set_for_one() -> None:
    flat = semmem.recipe("default", rank_constants={"dense": 60, "graph": 60})
    assert (flat.regimes, flat.reserve_in("described")) == (
        ("any",),
        {"agreed": 1, "graph": 3, "lexical": 4, "dense": 5},
    )
    scored = semmem.recipe("scored", rank_constants={"graph": 2})
    assert (scored.regimes, dict(scored.regime_weights)) == (("any",), {})
    # what is given with the constants is checked as ever
    with pytest.raises(InvalidInput, match="regime_reserve has a regime 'described' that no rank constant names"):
        semmem.recipe(flat, rank_constants={"graph": 60}, regime_reserve={"described": {"graph": 1}})


def test_without_the_graph_no_question_is_told_from_another_and_each_counts_as_unnamed(store_url: str) -> None:
    without = semmem.recipe("default", weights={"graph": 0})
    assert without.regimes == tuple(reach(without, 5).regimes) == ("any",)
    assert without.constants() == {"lexical": 4.0, "dense": 8.0}
    odd = semmem.recipe("lexical", rank_constants={"lexical": {"a": 1, "b": 2}})
    assert (odd.regimes, odd.constants()) == (("any",), {"lexical": 2})
    with semmem.connect(store_url, embedder="hashing") as mem:
        mem.remember_many([{"id": id, "text": text} for id, text in NOTES.items()])
        asked = "where is bread sold on market days in town?"
        assert mem.recall(asked).regime == "described"
        assert [mem.recall(asked, recipe=one).regime for one in (without, odd)] == ["any", "any"]
