"""The scope of a recall: filters and exclusions act in every leg before fusion, and namespaces are walls."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

import semmem
from tests.read.harbour import EPOCH, fleet, ids

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
    with pytest.raises(semmem.InvalidInput, match="did not search namespace 'west', only north, south"):
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
