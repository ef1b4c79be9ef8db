"""The legs of a recall: which are called, those that fail, and one of your own."""

from __future__ import annotations

from typing import Any

import pytest

import semmem
from semmem.model.exchange import Question, Ranking, Scope
from semmem.model.protocols import Leg
from semmem.model.store import Snapshot
from tests.read.harbour import Broken, Counted, CountingEmbedder, Slow, fleet, ids, legs


def test_a_leg_with_weight_zero_is_not_called_and_contributes_no_document(mem: semmem.Semmem) -> None:
    mem.remember("ferry at dawn", id="match")
    mem.remember("nothing in common", id="other")
    counted = {name: Counted(leg) for name, leg in legs(mem).items()}
    legs(mem).update(counted)
    off = semmem.recipe("default", weights={"dense": 0, "graph": 0})
    found = mem.recall("ferry", recipe=off)
    assert {n: c.calls for n, c in counted.items()} == {"lexical": 1, "dense": 0, "graph": 0}
    assert ids(found) == ["match"]
    assert set(found[0].components) == {"lexical"}
    assert set(ids(mem.recall("ferry", recipe="hybrid"))) == {"match", "other"}
    assert {n: c.calls for n, c in counted.items()} == {"lexical": 2, "dense": 1, "graph": 0}


def test_a_depth_of_zero_is_off_too(mem: semmem.Semmem) -> None:
    mem.remember("ferry at dawn", id="match")
    legs(mem)["dense"] = counted = Counted(legs(mem)["dense"])
    found = mem.recall("ferry", recipe=semmem.recipe("hybrid", depths={"dense": 0}))
    assert (counted.calls, set(found[0].components)) == (0, {"lexical"})


def test_a_name_of_one_memory_is_known_where_that_memory_leads_on_over_another_name(mem: semmem.Semmem) -> None:
    mem.remember("The Corrigan tide books are kept in Heron House.", id="books")
    mem.remember("Heron House is closed on Mondays.", id="house")
    mem.remember("Priya has moved here from Leeds.", id="priya")

    def regimes(question: str) -> list[str]:
        recipes = [semmem.recipe("default", graph={"lone_names": value}) for value in ("always", "leading", "never")]
        return [mem.recall(question, recipe=recipe).regime for recipe in recipes]

    assert regimes("When may I see the Corrigan tide books?") == ["named", "named", "unnamed"]
    assert regimes("Where does Priya teach?") == ["named", "unnamed", "unnamed"]
    assert regimes("When is Heron House closed?") == ["named"] * 3  # two memories mention it
    assert mem.recall("Where does Priya teach?").regime == "unnamed"
    assert mem.recall("Where does Priya teach?", recipe="seed").regime == "any"
    mem.maintain()
    assert regimes("When may I see the Corrigan tide books?") == ["named", "named", "unnamed"]
    assert regimes("Where does Priya teach?") == ["named", "unnamed", "unnamed"]


def test_the_graph_recipe_asks_the_other_legs_for_seeds_and_gives_them_no_share(mem: semmem.Semmem) -> None:
    mem.remember_many(fleet(30))
    found = mem.recall("ferry tide", recipe="graph")
    assert len(found) == 10
    assert all(set(h.components) - {"importance"} == {"graph"} for h in found)
    assert found[0].score <= 1


def test_no_model_is_loaded_for_a_recipe_without_the_dense_leg(store_url: str) -> None:
    embedder = CountingEmbedder()
    with semmem.connect(store_url, embedder=embedder) as mem:
        mem.remember("ferry at dawn")
        embedder.texts = 0
        mem.recall("ferry", recipe="lexical")
        assert embedder.texts == 0
        mem.recall("ferry", recipe="default")
        assert embedder.texts == 1  # once, although dense and graph both want it


@pytest.mark.parametrize("leg", ["lexical", "dense", "graph"])
def test_a_leg_that_fails_is_degraded_with_the_reason_and_the_others_keep_their_shares(
    mem: semmem.Semmem, leg: str
) -> None:
    mem.remember_many(fleet(60))
    plain = {"reserve": {}, "graph": {"seeds": 0}}  # so that no leg depends on another's answer
    variant = semmem.recipe("default", **plain, rank_constants={"graph": 8})
    whole = {h.memory.id: h for h in mem.recall("ferry tide", limit=60, recipe=variant)}
    legs(mem)[leg] = Broken(leg, RuntimeError("the disk\nis gone"))
    found = mem.recall("ferry tide", limit=60, recipe=variant)
    assert found.degraded == {leg: "RuntimeError: the disk is gone"}
    assert not found.total_is_exact
    assert len(found) >= 10
    for hit in found:
        others = {*variant.legs} - {leg}
        expected = {n: share for n, share in whole[hit.memory.id].components.items() if n in others}
        assert {n: share for n, share in hit.components.items() if n in others} == pytest.approx(expected, abs=1e-12)
        assert set(hit.components) - {"importance"} == set(expected)
        assert hit.score == pytest.approx(sum(hit.components.values()), abs=1e-12)


def test_the_reason_of_an_error_of_ours_is_its_sentence(mem: semmem.Semmem) -> None:
    mem.remember("ferry")
    legs(mem)["dense"] = Broken("dense", semmem.LegFailed("The model ran out of memory."))
    assert mem.recall("ferry").degraded == {"dense": "The model ran out of memory."}


def test_a_graph_leg_whose_look_up_fails_is_degraded_by_its_reason_and_not_searched(mem: semmem.Semmem) -> None:
    mem.remember("ferry", id="match")
    searched = list[str]()

    class Lost(Leg):
        name = "graph"
        follows = True

        def prepare(self, *asked: Any) -> Any:
            raise ValueError("no names here")

        def search(self, question: Question, snapshot: Snapshot, recipe: semmem.Recipe) -> Ranking:
            searched.append(question.text)
            return Ranking()

    legs(mem)["graph"] = Lost()
    found = mem.recall("ferry")
    assert (dict(found.degraded), searched) == ({"graph": "ValueError: no names here"}, [])
    assert ids(found) == ["match"]


def test_all_legs_may_fail_and_the_recall_says_so(mem: semmem.Semmem) -> None:
    mem.remember("ferry")
    for leg in list(legs(mem)):
        legs(mem)[leg] = Broken(leg, ValueError("no"))
    found = mem.recall("ferry")
    assert (len(found), set(found.degraded), found.total_is_exact) == (0, {"lexical", "dense", "graph"}, False)


def test_a_leg_of_ones_own_plugs_in_by_name(mem: semmem.Semmem) -> None:
    class Newest:
        name = "newest"

        def search(self, question: Question, scope: Scope, recipe: semmem.Recipe) -> Ranking:
            row_ids = mem.store.row_ids_of("default", "new")
            return Ranking(row_ids, (1.0,), 1)

    mem.remember("ferry", id="old")
    mem.remember("unrelated", id="new")
    variant = semmem.recipe("lexical", weights={"newest": 1}, rank_constants={"newest": 60})
    with pytest.raises(semmem.InvalidInput, match="no leg named 'newest'; choose one of lexical, dense, graph"):
        mem.recall("ferry", recipe=variant)
    legs(mem)["newest"] = Newest()
    found = mem.recall("ferry", recipe=variant)
    assert {h.memory.id: set(h.components) for h in found} == {"old": {"lexical"}, "new": {"newest"}}


def test_with_dense_and_graph_empty_fusion_returns_exactly_the_lexical_order(mem: semmem.Semmem) -> None:
    rows = [{**row, "importance": 0.5} for row in fleet(60)]
    mem.remember_many(rows)
    alone = ids(mem.recall("ferry tide mast", recipe="lexical", limit=60))
    empty = {name: Slow(name) for name in ("dense", "graph")}
    for leg in empty.values():
        leg.go.set()
    legs(mem).update(empty)
    for name in ("default", "seed", "hybrid"):
        found = mem.recall("ferry tide mast", recipe=name, limit=60)
        assert ids(found) == alone
        assert not found.degraded
