"""The read pipeline: scope before fusion, failing legs, the sum of the components, folding, paging, order."""

from __future__ import annotations

import copy
import random
import threading
from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime, timedelta
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import semmem
from semmem.embedders.hashing import Hashing
from semmem.model.exchange import Question, Ranking, Scope
from semmem.model.protocols import Leg

EPOCH = datetime(2026, 1, 1, tzinfo=UTC)
HARBOUR = ["ferry", "harbour", "tide", "mast", "sail", "rope", "anchor", "crew", "dawn", "storm", "chart", "engine"]


class Counted:
    """A leg that counts its calls and passes them on."""

    def __init__(self, leg: Leg) -> None:
        self.leg, self.name, self.calls = leg, leg.name, 0

    def search(self, question: Question, scope: Scope, recipe: semmem.Recipe) -> Ranking:
        self.calls += 1
        return self.leg.search(question, scope, recipe)


class Broken:
    """A leg that raises."""

    def __init__(self, name: str, error: Exception) -> None:
        self.name, self.error = name, error

    def search(self, question: Question, scope: Scope, recipe: semmem.Recipe) -> Ranking:
        raise self.error


class Slow:
    """A leg that answers nothing until it is let go."""

    def __init__(self, name: str) -> None:
        self.name, self.go = name, threading.Event()

    def search(self, question: Question, scope: Scope, recipe: semmem.Recipe) -> Ranking:
        self.go.wait(20)
        return Ranking()


class CountingEmbedder(Hashing):
    """The hashing embedder, counting the texts it is given."""

    texts = 0

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        self.texts += len(texts)
        return super().embed(texts)


@pytest.fixture
def mem(store_url: str) -> Iterator[semmem.Semmem]:
    with semmem.connect(store_url, embedder="hashing") as opened:
        yield opened


def legs(mem: semmem.Semmem) -> dict[str, Any]:
    """Return the legs in use; a test puts its own in their place."""
    return mem._recaller._legs  # type: ignore[return-value]


def ids(found: Sequence[semmem.Hit]) -> list[str]:
    return [hit.memory.id for hit in found]


def words(seed: int, count: int) -> str:
    return " ".join(random.Random(seed).choices(HARBOUR, k=count))


def fleet(count: int = 200) -> list[dict[str, Any]]:
    """Two hundred memories about a harbour; twelve are in session "log", by "ada", tagged "kept"."""
    rows = []
    for n in range(count):
        inside = n % 17 == 0  # 0, 17, …, 187: twelve
        rows.append(
            {
                "text": f"ferry {words(n, 8)} number{n}",
                "id": f"{n:03}",
                "session": "log" if inside else f"day{n % 5}",
                "author": "ada" if inside else "bob",
                "tags": ["kept", "old"] if inside else ["old"],
                "metadata": {"ship": {"name": "Ondine" if inside else "Sable", "berth": n % 3}},
                "created_at": EPOCH + timedelta(days=400 if inside else 0, hours=n),
                "importance": (n % 11) / 10,
            }
        )
    return rows


# ---------------------------------------------------------------------- scope

FILTERS: list[dict[str, Any]] = [
    {"sessions": ["log"]},
    {"sessions": ["log", "nowhere"]},
    {"sessions": "log"},
    {"authors": ["ada"]},
    {"tags": ["kept"]},
    {"tags": ["kept", "old"]},
    {"metadata": {"ship": {"name": "Ondine"}}},
    {"created_after": EPOCH + timedelta(days=399)},
    {"created_after": "2027-01-01", "authors": ["ada"]},
]


def test_every_filter_acts_in_every_leg_before_fusion_and_the_limit_is_met(mem: semmem.Semmem) -> None:
    mem.remember_many(fleet())
    inside = {f"{n:03}" for n in range(0, 200, 17)}
    shallow = {"lexical": 12, "dense": 12, "graph": 12}
    for filters in FILTERS:
        for name in semmem.RECIPES:
            found = mem.recall("ferry tide", filters=filters, recipe=semmem.recipe(name, depths=shallow))
            assert set(ids(found)) <= inside, (filters, name)
            assert len(found) == 10 or found.candidates.recipe.legs == ("graph",), (filters, name)
            assert not found.degraded
            for leg, ranking in found.candidates.rankings.items():
                assert {id for id, _, _ in ranking} <= inside, (filters, name, leg)


def test_the_end_of_a_time_range_is_open_and_its_start_is_not(mem: semmem.Semmem) -> None:
    for n in range(3):
        mem.remember(f"ferry {n}", id=str(n), created_at=EPOCH + timedelta(days=n))
    one, two = EPOCH + timedelta(days=1), EPOCH + timedelta(days=2)
    assert ids(mem.recall("ferry", filters={"created_after": one, "created_before": two})) == ["1"]
    assert set(ids(mem.recall("ferry", filters=semmem.Filters(created_before=two)))) == {"0", "1"}
    assert set(ids(mem.recall("ferry", filters={"created_after": "2026-01-02T00:00:00"}))) == {"1", "2"}  # UTC


def test_leaving_out_the_best_thirty_still_fills_the_limit(mem: semmem.Semmem) -> None:
    mem.remember_many(fleet())
    for name in semmem.RECIPES:
        best = ids(mem.recall("ferry tide", limit=30, recipe=name))
        narrow = semmem.recipe(name, depths={"lexical": 10, "dense": 10, "graph": 10})
        found = mem.recall("ferry tide", exclude=best, recipe=narrow)
        if narrow.legs != ("graph",):  # the walk ends where the edges end
            assert len(best) >= 20, name  # nexus has legs 20 deep, the others fill the 30
            assert len(found) == 10, name
        assert not set(ids(found)) & set(best)


def test_filters_and_exclude_act_together(mem: semmem.Semmem) -> None:
    mem.remember_many(fleet())
    found = mem.recall("ferry", filters={"sessions": ["log"]}, exclude=["000", "017", "no such id"])
    assert set(ids(found)) == {f"{n:03}" for n in range(34, 200, 17)}


def test_one_id_may_be_excluded_as_a_string(mem: semmem.Semmem) -> None:
    mem.remember("ferry one", id="ab")
    mem.remember("ferry two", id="a")
    assert ids(mem.recall("ferry", exclude="ab")) == ["a"]


def test_excluding_a_long_memory_leaves_out_all_its_parts(mem: semmem.Semmem) -> None:
    mem.remember("The ferry leaves the harbour at dawn. " * 120, id="long")
    mem.remember("ferry", id="short")
    assert set(ids(mem.recall("ferry harbour", exclude=["long"], fold_parts=False))) == {"short"}
    assert set(ids(mem.recall("ferry harbour", exclude=["long#1"]))) == {"long", "short"}  # nobody gave that id
    mem.remember("The ferry of another memory.", id="long#1")
    assert set(ids(mem.recall("ferry harbour", exclude=["long#1"]))) == {"long", "short"}
    assert set(ids(mem.recall("ferry harbour", exclude=["long"]))) == {"long#1", "short"}


# ---------------------------------------------------------------------- namespaces


def test_namespaces_are_walls(mem: semmem.Semmem) -> None:
    for place in ("north", "south"):
        mem.remember(f"The ferry of the {place}, crew of Ondine Varga", id="same", namespace=place, session="s")
        mem.remember(f"Ondine Varga sails {place}", id=place, namespace=place, title="Ondine Varga", session="s")
    for name in semmem.RECIPES:
        found = mem.recall("Ondine Varga ferry", namespace="north", recipe=name)
        assert {h.memory.namespace for h in found} == {"north"}
        assert set(ids(found)) == {"same", "north"}
        with pytest.raises(semmem.NotFound, match="'south' in north"):
            found.explain("south")


def test_several_namespaces_are_recalled_together(mem: semmem.Semmem) -> None:
    for place in ("a", "b", "c"):
        mem.remember(f"The ferry of {place * 3}", id="ferry", namespace=place)
    found = mem.recall("ferry", namespace=["a", "c", "a"])
    assert [(h.memory.namespace, h.memory.id) for h in found] == [("a", "ferry"), ("c", "ferry")]


def test_explain_asks_which_namespace_is_meant_where_several_have_the_id(mem: semmem.Semmem) -> None:
    mem.remember("The ferry of the north, twice a ferry", id="same", namespace="north")
    mem.remember("A boat of the south that is no ferry", id="same", namespace="south")
    mem.remember("ferry", id="lone", namespace="south")
    found = mem.recall("ferry", namespace=["north", "south"])
    with pytest.raises(semmem.InvalidInput) as raised:
        found.explain("same")
    assert str(raised.value) == (
        "The id 'same' is in several namespaces (north, south); say which: explain('same', namespace='north')."
    )
    hits = {(hit.id, hit.namespace): hit for hit in found}
    for namespace in ("north", "south"):
        why = found.explain("same", namespace=namespace)
        assert (why.namespace, why.score) == (namespace, hits["same", namespace].score)
    assert found.explain("lone").namespace == "south"
    with pytest.raises(semmem.NotFound, match="no memory 'lone' in north;"):
        found.explain("lone", namespace="north")
    with pytest.raises(semmem.InvalidInput, match="did not look into namespace 'west', only into north, south"):
        found.explain("same", namespace="west")
    for odd in (3, None, "a\x00", "\ud800"):
        with pytest.raises(semmem.InvalidInput, match=r"id (must be a string|contains)"):
            found.explain(odd)  # type: ignore[arg-type]


def test_an_empty_or_unknown_namespace_returns_nothing(mem: semmem.Semmem) -> None:
    for filters in (None, {"sessions": ["s"]}):
        found = mem.recall("ferry", namespace="nowhere", filters=filters, exclude=["x"])
        assert (len(found), found.total, found.total_is_exact, dict(found.degraded)) == (0, 0, True, {})
        assert found.confidence == 0.0
        assert found.as_dict()["hits"] == []


# ---------------------------------------------------------------------- paging and order


def test_pages_follow_each_other_without_overlap_or_gap(mem: semmem.Semmem) -> None:
    mem.remember_many(fleet(60))
    whole = mem.recall("ferry tide", limit=60)
    pages = [mem.recall("ferry tide", limit=7, offset=at) for at in range(0, 60, 7)]
    assert [i for page in pages for i in ids(page)] == ids(whole)
    assert [h.rank for page in pages for h in page] == list(range(1, 61))
    assert [h.score for page in pages for h in page] == [h.score for h in whole]
    assert len(mem.recall("ferry tide", offset=60)) == 0


def test_hits_can_be_sorted_by_importance_and_time_and_ties_keep_relevance(mem: semmem.Semmem) -> None:
    mem.remember_many(fleet(40))
    relevance = ids(mem.recall("ferry tide", limit=40))
    by_importance = mem.recall("ferry tide", limit=40, sort_by="importance")
    expected = sorted(relevance, key=lambda i: (-(int(i) % 11), relevance.index(i)))
    assert ids(by_importance) == expected
    created = [h.memory.created_at for h in mem.recall("ferry tide", limit=40, sort_by="created")]
    assert created == sorted(created, key=lambda at: at or EPOCH, reverse=True)
    assert len(set(ids(mem.recall("ferry tide", limit=40, sort_by="updated")))) == 40


def test_the_order_of_insertion_changes_nothing(mem: semmem.Semmem) -> None:
    rows = fleet(80) + [{"text": f"ferry bell x{n}", "id": f"tie{n:03}", "created_at": EPOCH} for n in range(60)]
    shuffled = rows.copy()
    random.Random(4).shuffle(shuffled)
    mem.remember_many(rows, namespace="one")
    mem.remember_many(shuffled, namespace="two", batch_size=13)
    narrow = {"depths": {"lexical": 20, "dense": 20, "graph": 20}}
    for name in semmem.RECIPES:
        for query in ("ferry tide", "ferry bell", "Who rang the bell?"):
            first, second = (
                mem.recall(query, namespace=n, limit=40, recipe=semmem.recipe(name, **narrow)) for n in ("one", "two")
            )
            for leg, ranking in first.candidates.rankings.items():
                other = second.candidates.rankings[leg]
                assert [key[:2] for key in ranking] == [key[:2] for key in other], (name, query, leg)
            assert ids(first) == ids(second), (name, query)
            assert [h.score for h in first] == pytest.approx([h.score for h in second], abs=1e-12)
            assert first.total == second.total


# ---------------------------------------------------------------------- legs that are off, broken or late


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


@pytest.mark.parametrize("leg", ["lexical", "dense", "graph"])
def test_a_leg_that_is_late_is_degraded_and_the_others_answer(mem: semmem.Semmem, leg: str) -> None:
    mem.remember("ferry at dawn", id="match")
    legs(mem)[leg] = late = Slow(leg)
    try:
        found = mem.recall("ferry", recipe=semmem.recipe("default", timeouts={leg: 0.05}))
    finally:
        late.go.set()
    assert found.degraded == {leg: "no answer within 0.05 s"}
    assert ids(found) == ["match"]


def test_reading_the_model_from_disk_is_not_on_the_time_of_a_leg(store_url: str) -> None:
    class Cold(Hashing):
        """Half a second late the first time it is asked for one text, as a model that has to be loaded is."""

        late = True

        def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
            if self.late and len(texts) == 1:
                self.late = False
                threading.Event().wait(0.5)
            return super().embed(texts)

    embedder = Cold()
    with semmem.connect(store_url, embedder=embedder) as mem:
        mem.remember_many({"text": text} for text in ("ferry at dawn", "ferry at dusk"))
        found = mem.recall("ferry", recipe=semmem.recipe("hybrid", timeouts={"dense": 0.2}))
        assert not found.degraded
        assert not embedder.late
        embedder.late = True  # once loaded, it is
        again = mem.recall("ferry", recipe=semmem.recipe("hybrid", timeouts={"dense": 0.05}))
        assert again.degraded == {"dense": "no answer within 0.05 s"}


def test_other_legs_are_asked_when_the_question_has_its_vector_and_have_no_more_time_than_ever(store_url: str) -> None:
    order = list[str]()

    class Cold(Hashing):
        def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
            if len(texts) == 1:
                threading.Event().wait(0.3)
                order.append("vector")
            return super().embed(texts)

    class Sleeper:
        name = "asleep"

        def search(self, question: Question, scope: Scope, recipe: semmem.Recipe) -> Ranking:
            order.append("asleep")
            assert question.vector is not None
            mem.store.run(lambda c: c.execute("SELECT pg_sleep(60)"))
            return Ranking()

    with semmem.connect(store_url, embedder=Cold()) as mem:
        mem.remember_many({"text": text} for text in ("ferry at dawn", "ferry at dusk"))
        legs(mem)["asleep"] = Sleeper()
        more = {"weights": {"dense": 1, "asleep": 1}, "rank_constants": {"dense": 60, "asleep": 60}}
        found = mem.recall("ferry", recipe=semmem.recipe("dense", **more, timeouts={"asleep": 0.05}))
        assert order == ["vector", "asleep"]
        assert found.degraded == {"asleep": "no answer within 0.05 s"}


def test_a_question_is_data_that_every_leg_is_asked_alike(mem: semmem.Semmem) -> None:
    """Whatever a leg reads of it has been worked out before: no leg waits for another's look-up or for the model."""
    mem.remember_many(
        {"text": t, "author": a, "session": "s"} for t, a in (("The Ondine left.", "Ada"), ("When?", "Bob"))
    )
    seen = dict[str, Question]()

    class Watched(Counted):
        def search(self, question: Question, *rest: Any, **more: Any) -> Ranking:
            seen[self.name] = question
            return self.leg.search(question, *rest, **more)

    for name in ("lexical", "dense", "graph"):
        legs(mem)[name] = Watched(legs(mem)[name])
    mem.recall('What did Ada say of the "Ondine" in May?', recipe=semmem.recipe("seed"))
    one, other, last = (seen[name] for name in ("lexical", "dense", "graph"))
    assert one is other
    assert (one.text, one.asked, one.phrases) == (
        'What did say of the "Ondine" in May?',
        'What did Ada say of the "Ondine" in May?',
        ("Ondine",),
    )
    assert one.talk is not None
    assert (one.talk.author, one.talk.months) == ("Ada", ((5, None),))
    assert one.concepts is not None
    assert "Ondine" in [span.label for span in one.concepts.spans]
    assert one.vector is not None
    assert last.vector is one.vector
    assert set(last.heads) == {"lexical", "dense"}
    assert copy.deepcopy(one).text == one.text  # nothing in it that runs, waits or is locked


def test_a_question_is_parsed_and_embedded_once_however_deep_the_legs_are_asked(
    store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    embedder, parsed = CountingEmbedder(), list[str]()
    from semmem.read import recall

    def parse(query: str, *rest: Any) -> Question:
        parsed.append(query)
        return first(query, *rest)

    first = recall.parse
    monkeypatch.setattr(recall, "parse", parse)
    with semmem.connect(store_url, embedder=embedder) as mem:
        mem.remember_many({"text": "the same ferry", "id": f"{n}"} for n in range(150))
        mem.remember_many({"text": f"ferry {n}", "id": f"ferry {n}"} for n in range(30))
        embedder.texts = 0
        found = mem.recall("the same ferry", limit=20, recipe="hybrid")
        assert len(found) == 20
        assert found.recipe.depths["lexical"] > 100  # a hundred copies fold into one hit, so the legs were asked again
        assert (parsed, embedder.texts) == (["the same ferry"], 1)


@pytest.mark.parametrize(("weights", "texts"), [({"dense": 0, "graph": 0}, 0), ({"dense": 0}, 1), ({"graph": 0}, 1)])
def test_a_vector_is_made_only_where_a_leg_that_is_called_reads_it(
    store_url: str, weights: dict[str, float], texts: int
) -> None:
    embedder = CountingEmbedder()
    with semmem.connect(store_url, embedder=embedder) as mem:
        mem.remember("ferry", id="match")
        embedder.texts = 0
        assert ids(mem.recall("ferry", recipe=semmem.recipe("default", weights=weights))) == ["match"]
        assert embedder.texts == texts


def test_a_graph_leg_whose_look_up_fails_is_degraded_by_its_reason_and_not_searched(mem: semmem.Semmem) -> None:
    mem.remember("ferry", id="match")
    searched = list[str]()

    class Lost:
        name = "graph"

        def prepare(self, *asked: Any) -> Any:
            raise ValueError("no names here")

        def search(self, question: Question, scope: Scope, recipe: semmem.Recipe, prepared: Any = None) -> Ranking:
            searched.append(question.text)
            return Ranking()

    legs(mem)["graph"] = Lost()
    found = mem.recall("ferry")
    assert (dict(found.degraded), searched) == ({"graph": "ValueError: no names here"}, [])
    assert ids(found) == ["match"]


def test_waiting_for_a_connection_or_a_thread_is_not_on_the_time_of_a_leg(store_url: str) -> None:
    with semmem.connect(store_url, embedder="hashing", pool_size=2) as mem:
        mem.remember("ferry", id="match")
        mem.recall("ferry")
        scope = mem.store.scope(("default",), semmem.Filters(), ())
        question = Question("ferry", vector=mem._recaller._vectors.embedded("ferry"))
        degraded: dict[str, str] = {}
        timings: dict[str, float] = {}
        order = semmem.recipe("hybrid", timeouts={"dense": 1, "lexical": 1})
        work = {leg: partial(legs(mem)[leg].search, question, scope, order) for leg in ("lexical", "dense")}
        over = threading.Event()
        busy = [mem._recaller._asking._threads.submit("other", over.wait) for _ in range(16)]
        threading.Timer(1.5, over.set).start()
        found = mem._recaller._asking.ask(work, order, degraded, timings)
        assert over.is_set()  # it was not given up while every thread was busy
        assert [one.result(30) for one in busy] == [True] * 16
        assert (degraded, set(found)) == ({}, {"lexical", "dense"})

        def ask() -> None:
            found.update(mem._recaller._asking.ask(work, order, degraded, {}))

        found.clear()
        asked = threading.Thread(target=ask)
        with mem.store.lasting(), mem.store.lasting():  # every connection of the pool
            asked.start()
            asked.join(1.5)
            assert asked.is_alive()
        asked.join(30)
        assert (degraded, set(found)) == ({}, {"lexical", "dense"})


def test_the_look_up_of_a_graph_leg_that_is_late_is_over_with_it(mem: semmem.Semmem) -> None:
    mem.remember("ferry", id="match")
    graph = legs(mem)["graph"]
    began, ended = threading.Event(), list[BaseException]()

    class Late:
        name = "graph"

        def prepare(self, *asked: Any) -> Any:
            try:
                began.set()
                mem.store.run(lambda c: c.execute("SELECT pg_sleep(30)"))
                mem.store.run(lambda c: c.execute("SELECT pg_sleep(30)"))
            except BaseException as error:
                ended.append(error)
                over.set()
                raise

        def search(self, question: Question, scope: Scope, recipe: semmem.Recipe, prepared: Any = None) -> Ranking:
            raise AssertionError("what it looks up has not come")

    over = threading.Event()
    legs(mem)["graph"] = Late()
    found = mem.recall("ferry", recipe=semmem.recipe("default", timeouts={"graph": 0.3}))
    assert found.degraded["graph"].startswith("no answer within")
    assert over.wait(10)
    assert len(ended) == 1
    assert graph.name == "graph"


def test_all_legs_may_fail_and_the_recall_says_so(mem: semmem.Semmem) -> None:
    mem.remember("ferry")
    for leg in list(legs(mem)):
        legs(mem)[leg] = Broken(leg, ValueError("no"))
    found = mem.recall("ferry")
    assert (len(found), set(found.degraded), found.total_is_exact) == (0, {"lexical", "dense", "graph"}, False)


def test_the_store_cancels_a_statement_that_outlives_the_limit(mem: semmem.Semmem) -> None:
    class Sleeper:
        name = "dense"

        def search(self, question: Question, scope: Scope, recipe: semmem.Recipe) -> Ranking:
            mem.store.run(lambda c: c.execute("SELECT pg_sleep(30)"))
            return Ranking()

    mem.remember("ferry", id="match")
    legs(mem)["dense"] = Sleeper()
    for _ in range(10):  # more than the pool has connections: none may stay busy
        found = mem.recall("ferry", recipe=semmem.recipe("hybrid", timeouts={"dense": 0.05}))
        assert "dense" in found.degraded
        assert ids(found) == ["match"]


def test_a_leg_of_ones_own_plugs_in_by_name(mem: semmem.Semmem) -> None:
    class Newest:
        name = "newest"

        def search(self, question: Question, scope: Scope, recipe: semmem.Recipe) -> Ranking:
            ords = mem.store.ords_of("default", "new")
            return Ranking(ords, (1.0,), 1)

    mem.remember("ferry", id="old")
    mem.remember("unrelated", id="new")
    variant = semmem.recipe("lexical", weights={"newest": 1}, rank_constants={"newest": 60})
    with pytest.raises(semmem.InvalidInput, match="no leg named 'newest'; there are lexical, dense, graph"):
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


# ---------------------------------------------------------------------- scores


def test_components_sum_to_the_score_for_every_recipe_question_and_variant(mem: semmem.Semmem) -> None:
    rng = np.random.default_rng(7)
    rows = fleet(60)
    rows += [
        {"text": f"Ondine Varga {words(900 + n, 5)}", "title": "Ondine Varga", "importance": 1.0} for n in range(4)
    ]
    rows += [{"text": rows[n]["text"].upper(), "id": f"copy{n}"} for n in range(5)]
    mem.remember_many([{**row, "vector": rng.normal(size=8)} for row in rows], namespace="given", batch_size=20)
    weights = st.fixed_dictionaries({}, optional={leg: st.floats(0.01, 10) for leg in ("lexical", "dense", "graph")})
    variants = st.fixed_dictionaries(
        {},
        optional={
            "weights": weights,
            "exact_bonus": st.floats(0, 2),
            "prior": st.booleans(),
            "prior_floor": st.floats(0, 1),
            "reserve": st.sampled_from([{}, {"graph": 1, "dense": 2}, {"dense": 1, "lexical": 7, "graph": 3}]),
            "dedup": st.booleans(),
        },
    )

    @given(
        st.sampled_from(sorted(semmem.RECIPES)),
        variants,
        st.lists(st.sampled_from([*HARBOUR, "Ondine", "Varga", "the", "zeppelin"]), min_size=1, max_size=5),
        st.integers(0, 1000),
    )
    @settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow])
    def ask(name: str, changes: dict[str, Any], query: list[str], seed: int) -> None:
        own = semmem.RECIPES[name].weights
        changes = {**changes, "weights": {leg: w for leg, w in changes.get("weights", {}).items() if leg in own}}
        vector = np.random.default_rng(seed).normal(size=8)
        found = mem.recall(
            " ".join(query), recipe=semmem.recipe(name, **changes), limit=70, vector=vector, namespace="given"
        )
        assert not found.degraded
        last = 1.0
        for place, hit in enumerate(found, 1):
            assert abs(sum(hit.components.values()) - hit.score) <= 1e-12
            assert 0 <= hit.score <= last  # in order, the best at most 1
            assert set(hit.components) <= {*own, "exact", "importance", "reserve"}
            assert set(hit.legs) == set(hit.components) - {"exact", "importance", "reserve"}
            assert hit.rank == place
            last = hit.score

    ask()


def test_a_memory_first_in_every_leg_with_importance_one_scores_one(mem: semmem.Semmem) -> None:
    mem.remember("ferry", id="best", importance=1.0)
    found = mem.recall("ferry", recipe=semmem.recipe("hybrid", prior_floor=None))
    assert found[0].score == 1.0
    # 1/61 of the 2/61 that are possible, each, times what importance .5 gives, 1 - 1/248; the rest is importance
    expected = {"lexical": 0.5 * 247 / 248, "dense": 0.5 * 247 / 248, "importance": 1 / 248}
    assert dict(found[0].components) == pytest.approx(expected, abs=1e-12)


def test_importance_is_a_prior_of_point_seven_to_one(mem: semmem.Semmem) -> None:
    mem.remember("ferry tide", id="high", importance=1.0)
    mem.remember("ferry", id="low", importance=0.0)
    found = {h.memory.id: h for h in mem.recall("ferry", recipe=semmem.recipe("lexical", prior_floor=0.7))}
    # the shorter text is first: 61/61 · (.7 + .3 · 0) = .7; the second 61/62 · 1 = .983871
    assert found["low"].score == pytest.approx(0.7, abs=1e-12)
    assert found["high"].score == pytest.approx(61 / 62, abs=1e-12)
    assert (found["high"].rank, found["high"].legs["lexical"].rank) == (1, 2)
    bounded = mem.recall(
        "ferry", recipe=semmem.recipe("lexical", prior_floor=None)
    )  # 61/61 · (1 - 1/124) stays before 61/62 · 1
    assert [(h.memory.id, h.score) for h in bounded] == [
        ("low", pytest.approx(123 / 124, abs=1e-12)),
        ("high", pytest.approx(61 / 62, abs=1e-12)),
    ]
    assert bounded[0].components["importance"] == pytest.approx(-1 / 248, abs=1e-12)
    off = mem.recall("ferry", recipe=semmem.recipe("lexical", prior=False))
    assert [(h.memory.id, h.score) for h in off] == [("low", 1.0), ("high", pytest.approx(61 / 62, abs=1e-12))]


def test_the_exact_bonus_is_a_component_for_memories_that_hold_every_term(mem: semmem.Semmem) -> None:
    mem.remember("The ferry ties up in the old stone harbour when it storms", id="all")
    mem.remember("ferry ferry ferry", id="some")
    plain = mem.recall("ferry harbour", recipe="lexical")
    assert all("exact" not in h.components for h in plain)
    found = {h.memory.id: h for h in mem.recall("ferry harbour", recipe=semmem.recipe("default", exact_bonus=0.3))}
    # in units of a first place in the lexical leg: .3 · .1/5 of 1.3 · .1/5 + .35/9 + .35/9; importance .5: times .975
    most = 1.3 * 0.1 / 5 + 0.35 / 9 + 0.35 / 9
    assert found["all"].components["exact"] == pytest.approx(0.975 * 0.3 * 0.1 / 5 / most, abs=1e-12)
    assert "exact" not in found["some"].components


def test_the_reserve_gives_the_head_of_each_leg_a_place(mem: semmem.Semmem) -> None:
    near = [1.0, 0.0]
    with_vectors = [{"text": f"ferry {'x ' * n}", "id": f"{n}", "vector": [1.0, 0.1 * (n + 1)]} for n in range(9)]
    mem.remember_many([*with_vectors, {"text": "unrelated", "id": "z", "vector": near}], namespace="v")
    variant = semmem.recipe("hybrid", weights={"dense": 0.1})
    before = mem.recall("ferry", namespace="v", vector=near, recipe=variant)
    assert ids(before)[-1] == "z"
    kept = mem.recall("ferry", namespace="v", vector=near, recipe=semmem.recipe(variant, reserve={"dense": 3}))
    assert ids(kept) == ["0", "1", "z", *(str(n) for n in range(2, 9))]
    assert kept[2].score == before[2].score  # that of the memory it displaces
    assert kept[2].components["reserve"] == pytest.approx(before[2].score - before[-1].score, abs=1e-12)


# ---------------------------------------------------------------------- folding


def test_the_same_normalised_text_is_folded_into_the_first_and_named(mem: semmem.Semmem) -> None:
    mem.remember("The ferry leaves at dawn.", id="b")
    mem.remember("  the FERRY leaves\nat dawn!! ", id="a")
    mem.remember("The ferry leaves at dusk.", id="c")
    found = mem.recall("ferry dawn")
    assert [(h.memory.id, h.duplicates) for h in found] == [("a", ("b",)), ("c", ())]
    assert found.total == 3
    kept = mem.recall("ferry dawn", recipe=semmem.recipe("default", dedup=False))
    assert sorted(ids(kept)) == ["a", "b", "c"]


def test_copies_do_not_take_the_places_of_others(mem: semmem.Semmem) -> None:
    mem.remember_many({"text": "ferry ferry", "id": f"copy{n}"} for n in range(8))
    mem.remember_many({"text": f"ferry number{n}", "id": f"one{n}"} for n in range(9))
    found = mem.recall("ferry", recipe="lexical")
    assert len(found) == 10
    assert [len(h.duplicates) for h in found] == [7] + [0] * 9


def paragraph(seed: int) -> str:
    """Return about 900 characters that only this seed gives, in sentences."""
    return " ".join(f"{words(1000 * seed + n, 9).capitalize()} {seed}x{n}." for n in range(16)) + "\n\n"


def test_parts_are_folded_into_the_best_one_of_their_memory(mem: semmem.Semmem) -> None:
    mem.remember(paragraph(1) + paragraph(2) + "The zeppelin landed.", id="long", title="Log")
    mem.remember("ferry", id="short")
    folded = mem.recall("zeppelin landed ferry")
    assert sorted(ids(folded)) == ["long", "short"]
    best = next(h for h in folded if h.part)
    assert best.memory == mem.get("long")
    assert "zeppelin" in best.passage.text
    assert best.snippet == "The zeppelin landed."
    assert [best.snippet[a:b] for a, b in best.matches] == ["zeppelin", "landed"]
    assert best.duplicates == ()
    assert folded.total == 2
    every = mem.recall("zeppelin ferry", fold_parts=False)
    parts = [h.part for h in every if h.id == "long"]
    assert sorted(parts) == [1, 2]
    assert [h.part for h in every if h.id == "short"] == [None]
    assert all(h.memory == best.memory for h in every if h.id == "long")


def test_a_hit_of_a_long_memory_is_the_memory_as_it_was_remembered_and_says_where_the_answer_is(
    mem: semmem.Semmem,
) -> None:
    text = (
        "  "
        + paragraph(1)
        + "\n \t"
        + paragraph(2)
        + "\u3000\n"
        + paragraph(3)
        + "Ünïcode 🦊 zeppelin. "
        + paragraph(1)
    )
    given = mem.remember(text, id="log#7", title="Log", tags=["kept"], metadata={"deck": 2})
    for fold in (True, False):
        found = mem.recall("zeppelin ferry", fold_parts=fold)
        assert {h.id for h in found} == {"log#7"}
        for hit in found:
            assert hit.memory == given == mem.get(hit.id)
            assert (hit.text, hit.namespace, hit.memory.parent_id) == (text, "default", None)
            assert text[hit.passage.start : hit.passage.end] == hit.passage.text
            assert len(hit.passage.text) <= 1400
    parts = {h.part: h.passage for h in found}
    assert sorted(p for p in parts if p) == list(range(1, len(parts) + 1))
    inner = [parts[n] for n in sorted(p for p in parts if p)]
    assert all(not text[one.end : other.start].strip() for one, other in pairwise(inner))
    best = mem.recall("zeppelin")[0]
    assert "zeppelin" in best.passage.text
    plain = best.as_dict()
    assert (plain["id"], plain["memory"]["id"], plain["memory"]["parent_id"]) == ("log#7", "log#7", None)
    assert plain["passage"] == {"text": best.passage.text, "start": best.passage.start, "end": best.passage.end}
    assert plain["part"] == best.part
    mem.remember("A short note of the zeppelin.", id="short")
    short = next(h for h in mem.recall("zeppelin") if h.id == "short")
    assert (short.part, short.passage) == (None, semmem.Passage("A short note of the zeppelin.", 0, 29))


def test_two_long_memories_that_share_a_part_are_not_the_same(mem: semmem.Semmem) -> None:
    common = "The zeppelin landed. " + paragraph(1) + paragraph(1)  # split into equal parts in both
    mem.remember(common + paragraph(2) + paragraph(3), id="a")
    mem.remember(common + paragraph(4) + paragraph(5), id="b")
    held = [mem.store.indexed_memories(["default"], mem.store.ords_of("default", id)) for id in ("a", "b")]
    assert min(held[0].items())[1].text == min(held[1].items())[1].text
    found = mem.recall("zeppelin")
    assert sorted(ids(found)) == ["a", "b"]
    assert all(h.duplicates == () for h in found)


def test_two_equal_long_memories_are_one_hit_that_names_the_other(mem: semmem.Semmem) -> None:
    text = paragraph(1) + paragraph(2) + paragraph(3)
    mem.remember(text, id="a")
    mem.remember(text.upper(), id="b")
    found = mem.recall("ferry tide")
    assert [(h.id, h.duplicates) for h in found] == [("a", ("b",))]
    assert found.total == 2
    every = mem.recall("ferry tide", fold_parts=False)
    assert {(h.id, h.duplicates) for h in every} == {("a", ("b",))}


def test_a_memory_that_repeats_itself_is_not_its_own_duplicate(mem: semmem.Semmem) -> None:
    mem.remember("The ferry leaves at dawn. " * 200, id="long")
    found = mem.recall("ferry")
    assert [(h.id, h.duplicates) for h in found] == [("long", ())]
    assert {(h.id, h.duplicates) for h in mem.recall("ferry", fold_parts=False)} == {("long", ())}


# ---------------------------------------------------------------------- what a call refuses

BAD: list[tuple[dict[str, Any], str]] = [
    ({"query": ""}, "query is empty"),
    ({"query": " \n\t"}, "query is empty"),
    ({"query": "\x00\x00"}, "query is empty"),
    ({"query": None}, "query must be a string, not NoneType"),
    ({"query": b"ferry"}, "query must be a string, not bytes"),
    ({"limit": 0}, "limit must be from 1 to 1000, not 0"),
    ({"limit": 1001}, "limit must be"),
    ({"limit": 2.0}, "limit must be"),
    ({"limit": True}, "limit must be"),
    ({"limit": None}, "limit must be"),
    ({"limit": "5"}, "limit must be from 1 to 1000, not '5'"),
    ({"offset": -1}, "offset must be from 0"),
    ({"offset": "1"}, "offset must be from 0 to 10000, not '1'"),
    ({"sort_by": "score"}, 'sort_by must be "relevance", "importance", "created", "updated" or "accessed"'),
    ({"recipe": "best"}, "no recipe named 'best'"),
    ({"namespace": ""}, "namespace must be a name"),
    ({"namespace": []}, "namespace must be a name"),
    ({"namespace": 5}, "namespace must be a string or a list of strings, not int"),
    ({"namespace": ["a", None]}, "namespace must be a string, not NoneType"),
    ({"namespace": "a\x00b"}, "namespace contains a NUL"),
    ({"exclude": [5]}, "exclude must be a string, not int"),
    ({"exclude": None}, "exclude must be a string or a list"),
    ({"exclude": ["\ud800"]}, "exclude contains"),
    ({"filters": {"session": ["s"]}}, "'session' is not a filter; use sessions, authors"),
    ({"filters": ["s"]}, "filters must be a mapping, not list"),
    ({"filters": {"sessions": 5}}, "filter sessions must be a string or a list of strings"),
    ({"filters": {"tags": ["a\x00"]}}, "filter tags contains a NUL"),
    ({"filters": {"metadata": "x"}}, "filter metadata takes a mapping"),
    ({"filters": {"metadata": {"x": {1}}}}, "filter metadata takes a mapping of JSON values"),
    ({"filters": {"metadata": {"x": "\x00"}}}, "filter metadata contains a NUL"),
    ({"filters": {"created_after": "soon"}}, "created_after must be an ISO 8601 time, not 'soon'"),
    ({"filters": {"created_before": 5}}, "created_before must be a datetime"),
    ({"filters": semmem.Filters(sessions=(5,))}, "filter sessions must be a string"),  # type: ignore[arg-type]
    ({"vector": "east"}, "vector must be a list of numbers"),
    ({"min_confidence": 1.5}, "min_confidence must be a number from 0 to 1, not 1.5"),
    ({"min_confidence": "high"}, "min_confidence must be a number from 0 to 1, not 'high'"),
]


def test_bad_arguments_are_refused_in_one_sentence(mem: semmem.Semmem) -> None:
    mem.remember("ferry")
    for arguments, sentence in BAD:
        with pytest.raises(semmem.InvalidInput, match=sentence) as caught:
            mem.recall(arguments.get("query", "ferry"), **{k: v for k, v in arguments.items() if k != "query"})
        assert str(caught.value).endswith("."), arguments
        assert "\n" not in str(caught.value)


def test_the_other_verbs_refuse_what_no_store_can_look_for(mem: semmem.Semmem) -> None:
    for call in (
        lambda: mem.get(5),  # type: ignore[arg-type]
        lambda: mem.get("a\x00"),
        lambda: mem.get("a", namespace=None),  # type: ignore[arg-type]
        lambda: mem.list(limit=2.5),  # type: ignore[arg-type]
        lambda: mem.list(limit=0),
        lambda: mem.list(cursor=5),  # type: ignore[arg-type]
        lambda: mem.list(cursor="not one"),
        lambda: mem.forget(),
        lambda: mem.forget(5),  # type: ignore[arg-type]
        lambda: mem.forget(filters={}),
    ):
        with pytest.raises(semmem.InvalidInput):
            call()


def test_connecting_with_something_unknown_is_refused_and_leaves_no_connection(store_url: str) -> None:
    before = set(threading.enumerate())
    with pytest.raises(semmem.InvalidInput, match="no embedder named 'glove'"):
        semmem.connect(store_url, embedder="glove")
    with pytest.raises(semmem.InvalidInput, match="no extractor named 'oracle'"):
        semmem.connect(store_url, extractor="oracle")
    with pytest.raises(semmem.InvalidInput, match="no stemmer for 'klingon'"):
        semmem.connect(store_url, language="klingon")
    with pytest.raises(semmem.InvalidInput, match="no setting 'colour'"):
        semmem.connect(store_url, colour="red")
    with pytest.raises(semmem.UnknownRecipe, match="'best'"):
        semmem.connect(store_url, recipe="best")
    assert not [t for t in set(threading.enumerate()) - before if t.name.startswith("semmem")]


@pytest.mark.parametrize(
    ("setting", "sentence"),
    [
        ({"pool_size": "many"}, "The setting pool_size must be a whole number, not 'many'."),
        ({"pool_size": 0}, "The setting pool_size must be at least 1, not 0."),
        ({"idle_stop_s": -1}, "The setting idle_stop_s must be above 0, not -1."),
        ({"llm_timeout_s": 601}, "The setting llm_timeout_s must be at most 600, not 601."),
        ({"backup_before_migration": "x"}, "The setting backup_before_migration must be true or false, not 'x'."),
        ({"language": 5}, "The setting language must be a string, not 5."),
        ({"home": 5}, "The setting home must be a path, not 5."),
        ({"llm_key": 5}, "The setting llm_key must be a string."),
    ],
)  # fmt: skip
def test_a_setting_that_cannot_be_used_is_refused_in_words_of_ones_own(setting: dict[str, Any], sentence: str) -> None:
    with pytest.raises(semmem.InvalidInput) as raised:
        semmem.connect("sqlite::memory:", **setting)
    assert str(raised.value) == sentence


def test_a_url_that_is_no_string_is_refused_with_what_to_write(tmp_path: Path) -> None:
    with pytest.raises(semmem.InvalidInput) as raised:
        semmem.connect(tmp_path / "a.db")  # type: ignore[arg-type]
    kind = type(tmp_path).__name__
    assert str(raised.value) == (
        f"The url must be a string that says which store it is, not {kind}; write 'sqlite:{tmp_path}/a.db' or "
        f"'embedded:{tmp_path}/a.db'."
    )
    with pytest.raises(semmem.InvalidInput, match=r"not int; write 'sqlite:notes\.db'"):
        semmem.connect(5)  # type: ignore[arg-type]


def test_a_date_is_taken_where_a_string_of_it_is() -> None:
    with semmem.connect("sqlite::memory:", embedder="none") as mem:
        given = mem.remember("ferry", id="a", created_at=date(2026, 1, 2))
        assert given.created_at == datetime(2026, 1, 2, tzinfo=UTC)
        assert mem.remember("ferry", id="a", created_at="2026-01-02") == given  # the same again
        for after, before, count in ((date(2026, 1, 2), date(2026, 1, 3), 1), (None, date(2026, 1, 2), 0)):
            assert len(mem.recall("ferry", filters={"created_after": after, "created_before": before})) == count


def test_forgetting_an_id_that_the_filters_leave_out_says_so_and_forgets_nothing() -> None:
    with semmem.connect("sqlite::memory:", embedder="none") as mem:
        mem.remember("ferry", id="a", tags=["kept"])
        with pytest.raises(semmem.NotFound, match="'a' in namespace 'default' does not match the filters"):
            mem.forget("a", filters={"tags": ["old"]})
        with pytest.raises(semmem.NotFound, match="no memory 'b'"):
            mem.forget("b", filters={"tags": ["old"]})
        assert mem.forget("a", filters={"tags": ["kept"]}) == 1


def test_connecting_warns_once_a_leg_that_cannot_bring_in_a_memory_of_its_own(store_url: str) -> None:
    with pytest.warns(UserWarning, match="leg graph of recipe 'seed' is boost-only at k = 10") as caught:
        semmem.connect(store_url, embedder="none", recipe="seed").close()
    assert len(caught) == 1
    semmem.connect(store_url, embedder="none").close()  # a warning would be an error here


def test_a_closed_one_says_so(store_url: str) -> None:
    mem = semmem.connect(store_url, embedder="none")
    mem.close()
    with pytest.raises(semmem.StoreClosed, match="closed"):
        mem.recall("ferry")


def test_a_recall_below_the_least_confidence_returns_no_hit_and_says_so(mem: semmem.Semmem) -> None:
    mem.remember_many(fleet(30))
    plain = mem.recall("ferry tide", limit=5)
    assert (plain.withheld, plain.min_confidence) == (0, 0.0)
    sure = plain.confidence
    kept = mem.recall("ferry tide", limit=5, min_confidence=sure)
    assert (ids(kept), kept.withheld) == (ids(plain), 0)
    unsure = mem.recall("ferry tide", limit=5, min_confidence=min(1.0, sure + 0.01))
    assert (len(unsure), unsure.withheld, unsure.total, unsure.confidence) == (0, 5, plain.total, sure)
    assert (unsure.as_dict()["hits"], unsure.as_dict()["withheld"]) == ([], 5)
    why = unsure.explain(plain[0].id)
    assert (why.returned, why.rank, why.withheld_below) == (False, 1, unsure.min_confidence)
    assert f"withheld: the confidence of the recall is below {unsure.min_confidence:g}" in str(why)
    assert kept.explain(plain[0].id).withheld_below is None
    assert "5 withheld below" in repr(unsure)


def test_a_recall_that_found_nothing_has_no_confidence_whatever_its_seeders_thought() -> None:
    with semmem.connect("sqlite::memory:", embedder="none") as lone:
        lone.remember("The ferry leaves at dawn.", id="ferry")
        found = lone.recall("ferry at dawn", recipe="graph")
    assert (len(found), set(found.degraded), found.confidence) == (0, {"graph", "dense"}, 0.0)


def test_a_recipe_of_one_leg_has_a_confidence_too(mem: semmem.Semmem) -> None:
    mem.remember("The ferry leaves at dawn.", id="ferry")
    mem.remember("Bread is baked with yeast and flour.", id="bread")
    for name in ("lexical", "dense", "graph"):
        near, far = (mem.recall(query, recipe=name).confidence for query in ("ferry at dawn", "quantum chromodynamics"))
        assert 0 <= far < near <= 1, name


def test_the_text_of_a_recall_and_of_a_hit_is_short(mem: semmem.Semmem) -> None:
    for n in range(12):
        mem.remember(f"The ferry {n} leaves. " * 90, id=f"{n}-" + "x" * 900, title="A title " * 200)
    found = mem.recall("ferry leaves")
    assert len(repr(found)) < 300
    assert all(len(repr(hit)) < 300 for hit in found)
    assert repr(found).startswith(f"Recall(10 of {found.total}: '")
    assert f"confidence {found.confidence:.2f}" in repr(found)
    assert "\n" not in repr(found[0])
    for leg in ("dense", "graph"):
        legs(mem)[leg] = Broken(leg, ValueError("no " * 400))
    assert repr(mem.recall("ferry leaves")).endswith("degraded: dense, graph)")
    assert len(repr(mem.recall("ferry leaves"))) < 300
    assert repr(mem.recall("ferry", filters={"tags": ["none"]})).startswith("Recall(0 of 0; confidence 0.00")


def test_a_recall_is_a_sequence_with_times_reach_and_plain_values(mem: semmem.Semmem) -> None:
    mem.remember_many(fleet(30))
    found = mem.recall("ferry tide", limit=5)
    assert (len(found), found[0].rank, [h.rank for h in found[1:3]], found[-1].rank) == (5, 1, [2, 3], 5)
    assert set(found.timings) == {"lexical", "dense", "graph", "total"}
    assert found.regime in found.reach.regimes
    assert 0 < found.confidence <= 1
    plain = found.as_dict()
    assert plain["recipe"] == "default"
    assert [h["id"] for h in plain["hits"]] == ids(found)
