"""What a recall says of its own reach, where arithmetic on the recipe alone was once refuted."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

import semmem
from semmem.rank_cap.report import LegReach
from semmem.read.result import Recall
from semmem.stores.sqlite import resident
from tests.rank_cap.worlds import LEGS, Told


@pytest.fixture(scope="module")
def mem(module_store: Callable[[], str]) -> Iterator[semmem.Semmem]:
    with semmem.connect(module_store(), embedder="hashing") as mem:
        yield mem


@pytest.fixture
def told() -> Iterator[semmem.Semmem]:
    """A store of twelve memories, whose legs return what ``found`` is told."""
    with semmem.connect("sqlite::memory:", embedder="none") as mem:
        for name in LEGS:
            mem._here.legs[name] = Told(name)
        mem.remember_many({"id": f"m{n:02}", "text": f"Note {n}."} for n in range(12))
        yield mem


def found(mem: semmem.Semmem, recipe: semmem.Recipe, lists: dict[str, list[str]], **arguments: object) -> Recall:
    """Recall with these lists, best first; ``exact`` are the ids that hold the words of the question."""
    exact = arguments.pop("exact", ())
    metadata = mem.store.candidate_metadata(["default"], range(1, 400))
    by_id = {head.id: row_id for row_id, head in metadata.items()}
    for name in LEGS:
        leg = mem._here.legs[name]
        assert isinstance(leg, Told)
        ids = lists.get(name, [])
        leg.row_ids = [by_id[id] for id in ids]
        leg.scores = [1 - at / 100 for at in range(len(ids))]
        leg.full = frozenset(by_id[id] for id in exact)  # type: ignore[attr-defined]
    return mem.recall("a note", recipe=recipe, **arguments)  # type: ignore[arg-type]


def reach(recalled: Recall, leg: str) -> LegReach:
    return recalled.reach.regimes[recalled.regime].legs[leg]


def found_by(recalled: Recall, leg: str) -> list[str]:
    """Return the hits that this leg alone found."""
    return [hit.memory.id for hit in recalled if set(hit.legs) == {leg}]


def ids(*numbers: int) -> list[str]:
    return [f"m{n:02}" for n in numbers]


SEED = semmem.recipe("seed", depths={"dense": 0}, prior=False)


# ---------------------------------------------------------------------- what folds


def test_long_memories_whose_parts_fill_the_lists_leave_places_to_the_graph_and_reach_says_so(
    mem: semmem.Semmem,
) -> None:
    chapter = "The Harbour Gate was painted, and the painters of the Harbour Gate wrote down each coat. " * 16
    for book in range(4):
        first = f"Zorvandel Kesh painted. {chapter}"
        text = "\n\n".join([first, *(f"Book {book}, chapter {at}. {chapter}" for at in range(60))])
        mem.remember(text, id=f"book{book}", namespace="books")
    for n in range(13):
        mem.remember(f"Zorvandel Kesh likes dish {n}.", id=f"note{n:02}", namespace="books")
    asked = "Which coats has the Harbour Gate been painted with?"
    recalled = mem.recall(asked, namespace="books", recipe="seed", limit=10)
    assert semmem.reach("seed", 10, scope_size=400).regimes["any"].legs["graph"].class_ == "boost-only"
    assert [set(hit.legs) for hit in recalled][4:] == [{"graph"}] * 6
    assert reach(recalled, "graph").class_ == "possible"


def test_a_hundred_copies_of_one_text_are_one_place_and_reach_says_so(told: semmem.Semmem) -> None:
    told.remember_many({"id": f"copy{n:03}", "text": "The same."} for n in range(120))
    copies = [f"copy{n:03}" for n in range(100)]
    recalled = found(told, SEED, {"lexical": copies, "graph": ids(1)}, limit=10)
    assert semmem.reach(SEED, 10).regimes["any"].legs["graph"].class_ == "boost-only"
    assert [hit.memory.id for hit in recalled] == ["copy000", "m01"]
    all_shown = reach(recalled, "graph")
    assert (all_shown.class_, all_shown.class_without_reserve) == ("guaranteed", "guaranteed")
    assert all_shown.certificate == "All that was found is shown."
    scaled = found(told, semmem.recipe(SEED, fusion="convex"), {"lexical": copies, "graph": ids(1)}, limit=10)
    assert reach(scaled, "graph").class_without_reserve == "guaranteed"
    apart = found(told, semmem.recipe(SEED, dedup=False), {"lexical": copies, "graph": ids(1)}, limit=10)
    assert reach(apart, "graph").class_ == "boost-only"


def test_the_tenth_memory_of_a_list_may_stand_far_below_rank_ten_and_still_bar_the_way(told: semmem.Semmem) -> None:
    told.remember_many({"id": f"copy{n:03}", "text": "The same."} for n in range(60))
    lists = {"lexical": [*(f"copy{n:03}" for n in range(50)), *ids(2, 3, 4)], "graph": ids(1)}
    # the fourth memory stands at rank 53: 1/113 = .00885; .35/61 = .00574, and at .6 .00984
    assert reach(found(told, SEED, lists, limit=4), "graph").class_ == "boost-only"
    heavier = semmem.recipe(SEED, weights={"graph": 0.6})
    assert reach(found(told, heavier, lists, limit=4), "graph").class_ == "possible"
    assert semmem.reach(heavier, 4).regimes["any"].legs["graph"].class_ == "boost-only"  # .6/61 < 1/64


def test_a_head_that_folds_into_another_memory_while_its_own_stands_far_below_is_not_called_guaranteed(
    told: semmem.Semmem,
) -> None:
    def text(*chapters: int) -> str:
        return "\n\n".join(f"Chapter {at} " + " ".join(f"w{at}x{i}" for i in range(120)) for at in chapters)

    told.remember(text(1, 2), id="long")
    told.remember(text(1, 3), id="other")
    metadata = told.store.candidate_metadata(["default"], range(1, 99)).values()
    rows = {(head.id, head.part): head.row_id for head in metadata}
    plan = semmem.recipe("hybrid", reserve={"dense": 2}, prior=False, weights={"dense": 0.9})
    for name, row_ids in (
        ("lexical", [rows["other", 1], rows["other", 2], *(rows[id, 0] for id in ids(0, 1, 2)), rows["long", 2]]),
        ("dense", [rows["long", 1]]),
    ):
        leg = told._here.legs[name]
        assert isinstance(leg, Told)
        leg.row_ids, leg.scores = row_ids, [1 - at / 100 for at in range(len(row_ids))]
    recalled = told.recall("a note", recipe=plan, limit=2)
    assert [hit.memory.id for hit in recalled] == ["other", "m00"]
    assert all("long" not in hit.duplicates for hit in recalled)
    assert semmem.reach(plan, 2).regimes["any"].legs["dense"].class_ == "guaranteed"
    assert reach(recalled, "dense").class_ == "possible"
    assert reach(told.recall("a note", recipe=plan, limit=5), "dense").class_ == "guaranteed"  # all is shown


# ---------------------------------------------------------------------- lists, depths and legs that are not there


def test_short_lists_let_in_what_full_ones_would_not(told: semmem.Semmem) -> None:
    recalled = found(told, SEED, {"lexical": ids(0, 1, 2), "graph": ids(3, 4, 5, 6)}, limit=5)
    assert semmem.reach(SEED, 5).regimes["any"].legs["graph"].class_ == "boost-only"
    assert found_by(recalled, "graph") == ids(3, 4)
    assert reach(recalled, "graph").class_ == "guaranteed"  # four others can be ahead of the first, of whom two do
    full = found(told, SEED, {"lexical": ids(0, 1, 2, 7, 8), "graph": ids(3, 4, 5, 6)}, limit=5)
    assert reach(full, "graph").class_ == "boost-only"


@pytest.mark.parametrize(
    ("name", "k", "class_"),
    [("nexus", 30, "possible"), ("seed", 105, "boost-only"), ("seed", 100, "boost-only"), ("seed", 201, "possible")],
)
def test_reach_goes_as_deep_as_a_recall_of_so_many_hits(name: str, k: int, class_: str) -> None:
    leg = list(semmem.recipe(name).legs)[-1]
    its = semmem.reach(name, k).regimes["any"].legs[leg]
    assert (its.class_, its.depth) == (class_, max(k, 100) if name == "seed" else 2 * k)


def test_a_depth_that_a_recipe_keeps_on_purpose_is_not_raised() -> None:
    shallow = semmem.recipe("seed", depths={"graph": 7})
    assert semmem.reach(shallow, 150).regimes["any"].legs["graph"].depth == 7
    assert semmem.reach(shallow, 150).regimes["any"].legs["lexical"].depth == 150


def test_legs_that_cannot_answer_stay_listed_as_unreachable_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resident, "MOST", 19)
    with semmem.connect("sqlite::memory:", embedder="none") as mem:
        mem.remember_many({"text": f"The ferry left at hour {n}."} for n in range(20))
        recalled = mem.recall("ferry hour")
    classes = {leg: its.class_ for leg, its in recalled.reach.regimes[recalled.regime].legs.items()}
    assert classes == {"lexical": "guaranteed", "dense": "unreachable", "graph": "unreachable"}
    assert set(recalled.degraded) == {"dense", "graph"}
    for leg in ("dense", "graph"):
        assert reach(recalled, leg).certificate == f"The leg {leg} could not answer: {recalled.degraded[leg]}"


def test_where_another_time_is_asked_the_graph_is_said_to_be_unreachable_for_earlier_versions(
    mem: semmem.Semmem,
) -> None:
    for n in range(3):
        mem.remember(f"Captain Zorvandel Kesh likes dish {n}.", id=f"k{n}", namespace="then", created_at="2020-01-01")
    recipe = semmem.recipe("default", weights={"dense": 0.0})
    asked = {"namespace": "then", "recipe": recipe, "as_of": "2021-01-01"}
    before = mem.recall("What does Captain Zorvandel Kesh like?", **asked)  # type: ignore[arg-type]
    assert {hit.id for hit in before if "graph" in hit.legs} == {"k0", "k1", "k2"}
    assert "earlier versions" not in reach(before, "graph").certificate
    mem.update("k0", namespace="then", text="Captain Zorvandel Kesh likes nothing any more.")
    after = mem.recall("What does Captain Zorvandel Kesh like?", **asked)  # type: ignore[arg-type]
    assert {hit.id: "graph" in hit.legs for hit in after} == {"k0": False, "k1": True, "k2": True}
    unseen = "The graph leg does not see earlier versions. For one of these it is unreachable. "
    assert after.degraded["as_of"] == unseen.partition(" For")[0]
    assert reach(after, "graph").certificate.startswith(unseen)
    assert unseen not in reach(after, "lexical").certificate
    for id in ("k0", "k1", "k2"):
        mem.update(id, namespace="then", text=f"{id} is gone.")
    left = reach(mem.recall("What does Captain Zorvandel Kesh like?", **asked), "graph")  # type: ignore[arg-type]
    assert left.class_ == "unreachable"


def test_a_leg_that_found_nothing_is_unreachable_and_says_why(told: semmem.Semmem) -> None:
    recalled = found(told, SEED, {"lexical": ids(0, 1)}, limit=5)
    assert reach(recalled, "graph").class_ == "unreachable"
    assert reach(recalled, "graph").certificate == "The leg graph found nothing, so it returns nothing."
    assert reach(recalled, "dense").certificate == "The leg dense has depth 0, so it returns nothing."


def test_a_place_that_is_kept_for_a_leg_without_an_answer_bars_nobody(told: semmem.Semmem) -> None:
    plan = semmem.recipe(SEED, reserve={"lexical": 1}, depths={"dense": 100})
    recalled = found(told, plan, {"graph": ids(0), "dense": ids(1)}, limit=1)
    assert semmem.reach(plan, 1).regimes["any"].legs["dense"].class_ == "boost-only"
    assert [hit.memory.id for hit in recalled] == ids(1)
    assert reach(recalled, "dense").class_ != "boost-only"


# ---------------------------------------------------------------------- the regimes that were not asked


def test_the_reach_in_another_regime_weighs_by_the_priors_of_that_regime(told: semmem.Semmem) -> None:
    old, new = datetime(1990, 1, 1, tzinfo=UTC), datetime(2026, 1, 1, tzinfo=UTC)
    told.remember("Of no weight.", id="new", importance=0.0, created_at=new)
    told.remember("Of all weight.", id="old", importance=1.0, created_at=old)
    constants = {"named": 0.0, "unnamed": 60.0}
    plan = semmem.Recipe(
        "aged", {"lexical": 1.0, "graph": 1.0}, {"lexical": constants, "graph": constants},
        prior_floor=None, recency_half_life=30.0,
    )  # fmt: skip
    graph = told._here.legs["graph"]
    assert isinstance(graph, Told)
    graph.regime = "unnamed"
    recalled = found(told, plan, {"lexical": ["new"], "graph": ["old"]}, limit=1)
    classes = {name: {leg: its.class_ for leg, its in of.legs.items()} for name, of in recalled.reach.regimes.items()}
    assert recalled.regime == "unnamed"
    assert classes == {
        # both are first in a list; "new" earns 1 - .5 / 62 = .992 of it, "old" .9 for its age
        "unnamed": {"lexical": "possible", "graph": "boost-only"},
        # "new" earns 1 - .5 / 2 = .75 of it, "old" .9 for its age
        "named": {"lexical": "boost-only", "graph": "possible"},
    }


# ---------------------------------------------------------------------- order and page


def test_in_another_order_than_by_relevance_no_class_is_claimed(told: semmem.Semmem) -> None:
    lists = {"lexical": ids(0, 1, 2, 3), "graph": ids(4)}
    recalled = found(told, semmem.recipe(SEED, reserve={"graph": 1}), lists, limit=3, sort_by="created")
    assert {leg: reach(recalled, leg).class_ for leg in ("lexical", "graph")} == {
        "lexical": "possible",
        "graph": "possible",
    }
    said = "Sorted by created, so scores decide nothing and whatever a leg finds may come first."
    assert reach(recalled, "graph").certificate == said
    everything = found(told, SEED, lists, limit=5, sort_by="created")
    assert reach(everything, "graph").class_ == "guaranteed"


def test_on_a_later_page_nothing_is_guaranteed_and_what_cannot_come_by_its_end_is_still_barred(
    told: semmem.Semmem,
) -> None:
    plan = semmem.recipe(SEED, weights={"graph": 0.9}, reserve={"lexical": 1})
    lists = {"lexical": ids(0, 1, 2, 3, 5, 6, 7), "graph": ids(4)}
    first, second = (found(told, plan, lists, limit=2, offset=at) for at in (0, 2))
    assert (first.reach.k, reach(first, "lexical").class_, reach(first, "graph").class_) == (
        2, "guaranteed", "boost-only",
    )  # fmt: skip
    assert (second.reach.k, reach(second, "lexical").class_, reach(second, "graph").class_) == (
        4, "possible", "boost-only",
    )  # fmt: skip
    assert "on a page before place 3" in reach(second, "lexical").certificate
    # .9/61 = .01475 is above the eighth of a list, 1/68 = .0147
    assert reach(found(told, plan, lists, limit=2, offset=6), "graph").class_ == "possible"


def test_what_is_withheld_for_low_confidence_leaves_every_leg_unreachable(told: semmem.Semmem) -> None:
    for leg in LEGS:
        told._here.legs[leg].most = 4.0  # type: ignore[attr-defined]
    recalled = found(told, SEED, {"lexical": ids(0, 1), "graph": ids(2)}, min_confidence=0.9)
    assert (len(recalled), recalled.withheld) == (0, 3)
    assert recalled.reach.worst == reach(recalled, "lexical").class_ == "unreachable"
    assert "min_confidence" in reach(recalled, "lexical").certificate


def test_a_reranker_decides_among_what_it_is_shown_and_nothing_beyond(told: semmem.Semmem) -> None:
    plan = semmem.recipe(SEED, rerank="composite", rerank_depth=4)
    lists = {"lexical": ids(0, 1, 2, 3, 5, 6, 7), "graph": ids(4)}
    recalled = found(told, plan, lists, limit=2)
    assert (reach(recalled, "graph").class_, reach(recalled, "lexical").class_) == ("boost-only", "possible")
    assert reach(recalled, "graph").certificate.startswith("The reranker composite orders the first 4 anew")
    heavy = semmem.recipe(plan, weights={"graph": 0.98})  # above 1/64, the fourth, and below 1/62, the second
    assert reach(found(told, heavy, lists, limit=2), "graph").class_ == "possible"


@pytest.mark.parametrize("regimes", [["named"], ["unnamed"]])
def test_a_recall_knows_the_regimes_in_which_its_reranker_would_have_run(
    told: semmem.Semmem, regimes: list[str]
) -> None:
    constants = {"named": 60.0, "unnamed": 60.0}
    plan = semmem.recipe(SEED, rank_constants={"graph": constants}, rerank="composite", rerank_depth=4)
    plan = semmem.recipe(plan, rerank_regimes=regimes)
    lists = {"lexical": ids(0, 1, 2, 3, 5, 6, 7), "graph": ids(4)}
    recalled = found(told, plan, lists, limit=2)
    assert recalled.regime == "unnamed"
    assert ("relevance" in recalled[0].components) == (regimes == ["unnamed"])
    each = {name: of.legs["lexical"].certificate for name, of in recalled.reach.regimes.items()}
    reranked = {name for name, said in each.items() if said.startswith("The reranker composite orders the first 4")}
    assert reranked == {*regimes}


# ---------------------------------------------------------------------- importance and the exact bonus


def test_importances_that_differ_open_or_bar_the_way_and_equal_ones_do_not(told: semmem.Semmem) -> None:
    plan = semmem.recipe("seed", depths={"dense": 0}, weights={"graph": 0.9})  # .9/61 < 1/62 < .9/61 / .7
    lists = {"lexical": ids(0, 1, 2), "graph": ids(3)}
    assert reach(found(told, plan, lists, limit=2), "graph").class_ == "boost-only"
    told.update("m03", importance=1.0)
    told.update("m01", importance=0.0)
    recalled = found(told, plan, lists, limit=2)
    assert found_by(recalled, "graph") == ids(3)
    assert reach(recalled, "graph").class_ == "possible"


def test_a_head_of_no_importance_is_not_guaranteed_where_others_weigh_more(told: semmem.Semmem) -> None:
    plan = semmem.recipe("lexical")
    lists = {"lexical": ids(0, 1, 2)}
    assert reach(found(told, plan, lists, limit=2), "lexical").guaranteed_ranks == 2
    told.update("m00", importance=0.0)
    told.update("m01", importance=1.0)
    told.update("m02", importance=1.0)
    recalled = found(told, plan, lists, limit=2)
    assert [hit.memory.id for hit in recalled] == ids(1, 2)  # .7/61 < 1/63
    assert (reach(recalled, "lexical").class_, reach(recalled, "lexical").guaranteed_ranks) == ("possible", 0)
    # ranks ahead need not win either, so those beyond the cut-off may come in
    assert reach(found(told, plan, lists, limit=1), "lexical").class_at(3) == "possible"


def test_with_an_exact_bonus_a_rank_beyond_the_cut_off_may_come_first(told: semmem.Semmem) -> None:
    plan = semmem.recipe("lexical", exact_bonus=0.5)
    lists = {"lexical": ids(0, 1, 2, 3, 4, 5)}
    recalled = found(told, plan, lists, limit=5, exact=ids(5))
    assert recalled[0].memory.id == "m05"
    assert semmem.reach(plan, 5).regimes["any"].legs["lexical"].class_at(6) == "possible"
    assert reach(recalled, "lexical").class_at(6) == "possible"
    assert reach(found(told, plan, lists, limit=5), "lexical").class_at(6) == "boost-only"  # nothing has the bonus


def test_what_holds_the_words_below_the_depth_of_the_lexical_leg_has_the_bonus_and_reach_knows(
    told: semmem.Semmem,
) -> None:
    plan = semmem.recipe(SEED, exact_bonus=2.0, depths={"lexical": 3})
    recalled = found(told, plan, {"lexical": ids(0, 1, 2), "graph": ids(9)}, limit=2, exact=ids(9))
    assert recalled[0].memory.id == "m09"
    assert set(recalled[0].components) == {"graph", "exact"}
    assert reach(recalled, "graph").class_ == "possible"
    assert semmem.reach(plan, 2).regimes["any"].legs["graph"].class_ == "possible"


def test_the_reach_of_a_regime_does_not_depend_on_the_regime_of_the_question(told: semmem.Semmem) -> None:
    now = datetime(2026, 11, 1, tzinfo=UTC)
    told.remember_many(
        {"id": f"old{n:02}", "text": f"Old note {n}.", "created_at": now - timedelta(days=400 * n)} for n in range(12)
    )
    old = [f"old{n:02}" for n in range(12)]
    lists = {"lexical": old, "dense": old[6:], "graph": old[3:]}
    # the factor of importance 0 is 1 - .5 / (60 + 2) where a name is asked for, and 1 - .5 / (1 + 2) otherwise
    constants = {leg: {"named": 60.0, "other": 1.0} for leg in LEGS}
    recipe = semmem.recipe("seed", rank_constants=constants, recency_half_life=30, prior=True, prior_floor=None)
    recalled = found(told, recipe, lists)
    as_asked = {
        regime: replace(recalled, _candidates=replace(recalled.candidates, regime=regime)).reach.regimes
        for regime in ("named", "other")
    }
    assert as_asked["named"] == as_asked["other"]
    assert as_asked["named"]["named"] != as_asked["named"]["other"]
