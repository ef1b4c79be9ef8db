"""Search settings of a namespace, without a store: their names, what they make of a recipe, when they do not count."""

from __future__ import annotations

import json
from typing import Any

import pytest

from semmem import RECIPES, InvalidInput, NotFound, recipe
from semmem.read.overrides import Tailor, changed, dotted, fitted, settings_in, tailored, value_of

LEGS = ("lexical", "dense", "graph")
DEFAULT = recipe("default")


def rows(**of: dict[str, Any]) -> list[tuple[str, str, Any]]:
    return [(namespace, name, value) for namespace, own in of.items() for name, value in own.items()]


def test_changes_of_a_recipe_become_one_setting_each() -> None:
    assert dotted({"weights": {"graph": 0.5}, "lexical": {"k1": 1, "b": 0}, "depths.dense": 20, "prior": False}) == {
        "weights.graph": 0.5,
        "lexical.k1": 1,
        "lexical.b": 0,
        "depths.dense": 20,
        "prior": False,
    }


@pytest.mark.parametrize("name", sorted(RECIPES))
def test_the_settings_of_every_recipe_make_it_again(name: str) -> None:
    plan = RECIPES[name]
    stored = json.loads(json.dumps(settings_in(plan)))
    if plan.conversation is None:
        stored["conversation"] = False
    legs_only = {n: v for n, v in stored.items() if not n.startswith(("weights.", "rank_constants."))}
    assert fitted(plan, ("a",), rows(a=stored), LEGS) == (plan, stored, None)
    assert fitted(DEFAULT, ("a",), rows(a=legs_only), LEGS) == (plan, legs_only, None)


@pytest.mark.parametrize(
    ("name", "value", "read"),
    [
        ("weights.graph", 0.5, lambda p: p.weights["graph"]),
        (
            "rank_constants.graph",
            {"anchored": 3, "described": 4, "named": 1, "unnamed": 2},
            lambda p: dict(p.rank_constants["graph"]),
        ),
        ("depths.dense", 20, lambda p: p.depths["dense"]),
        ("timeouts.lexical", 1.5, lambda p: p.timeouts["lexical"]),
        ("reserve", {"graph": 1}, lambda p: dict(p.reserve)),
        ("fusion", "convex", lambda p: p.fusion),
        ("prior", False, lambda p: p.prior),
        ("prior_floor", 0.5, lambda p: p.prior_floor),
        ("exact_bonus", 0.25, lambda p: p.exact_bonus),
        ("dedup", False, lambda p: p.dedup),
        ("rerank_depth", 7, lambda p: p.rerank_depth),
        ("rerank_regimes", ["unnamed"], lambda p: list(p.rerank_regimes)),
        ("lexical.match", "all", lambda p: p.lexical.match),
        ("graph.hops", 2, lambda p: p.graph.hops),
        ("conversation.own", 0.5, lambda p: p.conversation.own),
        ("conversation", False, lambda p: p.conversation is not None),
    ],
)
def test_each_setting_reaches_the_recipe(name: str, value: Any, read: Any) -> None:
    plan, used, wrong = fitted(DEFAULT, ("a",), rows(a={name: value}), LEGS)
    assert (read(plan), used, wrong) == (value, {name: value}, None)
    assert read(DEFAULT) != value


def test_a_recipe_by_name_is_changed_by_the_settings_beside_it() -> None:
    plan, _, _ = fitted(DEFAULT, ("a",), rows(a={"recipe": "hybrid", "weights.dense": 0.3}), LEGS)
    assert (plan.name, plan.legs, plan.weights["dense"]) == ("hybrid", ("lexical", "dense"), 0.3)


def test_several_namespaces_are_searched_by_their_settings_only_where_all_have_the_same() -> None:
    same = {"weights.graph": 0.5}
    plan, used, wrong = fitted(DEFAULT, ("a", "b"), rows(a=same, b=same), LEGS)
    assert (plan.weights["graph"], used, wrong) == (0.5, same, None)
    for other in ({}, {"weights.graph": 0.6}, {"weights.graph": 0.5, "prior": False}):
        plan, used, wrong = fitted(DEFAULT, ("a", "b"), rows(a=same, b=other), LEGS)
        assert (plan, used) == (DEFAULT, {})
        assert wrong is not None
        assert wrong.startswith("the namespaces a, b have different search settings, so none of them is used")


def test_a_setting_that_only_another_version_knows_is_left_out_and_told() -> None:
    plan, used, wrong = fitted(DEFAULT, ("a",), rows(a={"colour": 1, "graph.shade": 2, "weights.graph": 0.5}), LEGS)
    assert (plan.weights["graph"], used) == (0.5, {"weights.graph": 0.5})
    assert wrong == (
        "namespace a: this semmem does not know colour, graph.shade; upgrade it, or unset what is not meant for it"
    )


def test_settings_that_make_no_recipe_together_are_none_of_them_used() -> None:
    hybrid = recipe("hybrid")
    plan, used, wrong = fitted(hybrid, ("a",), rows(a={"weights.graph": 0.5, "prior": False}), LEGS)
    assert (plan, used) == (hybrid, {})
    assert wrong is not None
    assert wrong.startswith(
        "namespace a: none of its settings is used: The leg graph has a weight but no rank constant"
    )
    regex = {"weights.regex": 1, "rank_constants.regex": 60}
    assert fitted(hybrid, ("a",), rows(a=regex), LEGS)[2] == (
        "namespace a: none of its settings is used: There is no leg named 'regex'; choose one of dense, graph, lexical."
    )
    assert fitted(hybrid, ("a",), rows(a=regex), (*LEGS, "regex"))[0].legs == ("lexical", "dense", "regex")


def test_a_recipe_that_was_tailored_is_not_made_again_until_what_was_read_changes() -> None:
    tailor = Tailor(LEGS)
    raw = json.dumps(rows(a={"weights.graph": 0.5}))
    first = tailor.fit(DEFAULT, ("a",), raw)[0]
    assert tailor.fit(DEFAULT, ("a",), raw)[0] is first
    assert tailor.fit(DEFAULT, ("a",), json.dumps(rows(a={"weights.graph": 0.6})))[0].weights["graph"] == 0.6
    assert tailor.fit(recipe("seed"), ("a",), raw)[0].name == "seed"
    assert tailor.fit(DEFAULT, ("a", "b"), raw)[0] is DEFAULT


def test_changing_keeps_what_was_set_and_unsetting_takes_it_away() -> None:
    found = changed(DEFAULT, {"prior": False}, {"weights": {"graph": 0.5}})
    assert found == {"prior": False, "weights.graph": 0.5}
    assert changed(DEFAULT, found, {}, ["prior"]) == {"weights.graph": 0.5}
    with pytest.raises(NotFound, match=r"no setting 'dedup' of its own; it has prior, weights.graph"):
        changed(DEFAULT, found, {}, ["dedup"])


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"colour": 1}, "There is no search setting 'colour'; choose one of recipe, weights.LEG"),
        ({"name": "mine"}, "There is no search setting 'name'"),
        ({"weights": 1}, "weights must be a mapping from the name of a leg to a number; write weights={'graph': …}"),
        ({"weights.": 1}, "There is no search setting 'weights.'"),
        ({"weights.a\x00b": 1}, "There is no search setting"),
        ({"lexical.k2": 1}, "lexical has no setting 'k2'; it has b, k1, match"),
        ({"weights.graph": -1}, "weights.graph must be a number from 0 to 5, not -1"),
        ({"weights": {"graph": 5.1}}, "weights.graph must be a number from 0 to 5, not 5.1"),
        ({"weights.graph": None}, "weights.graph must be a number"),
        ({"weights.regex": 1, "rank_constants.regex": 1}, "There is no leg named 'regex'"),
        ({"recipe": "seeed"}, "There is no recipe named 'seeed'"),
        ({"recipe": ["seed"]}, "There is no recipe named"),
        ({"fusion": "sum"}, "fusion must be one of"),
        ({"prior": 1}, "prior must be true or false"),
        ({"conversation": 3}, "conversation must be true, false, or a table of settings, not 3"),
        ({"reserve": 3}, "reserve must be a mapping"),
        ({"regime_weights": []}, "regime_weights must be a mapping from the name of a regime"),
        ({"rerank": "nobody"}, "nobody"),
    ],
)
def test_what_no_recipe_takes_is_refused_before_it_is_stored(changes: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InvalidInput, match=sentence) as caught:
        changed(DEFAULT, {}, changes, legs=LEGS)
    assert "\n" not in str(caught.value)


def test_what_a_person_types_is_json_where_it_can_be() -> None:
    typed = ["0.5", "true", "null", '{"graph": 3}', "any", "NaN", "-Infinity", "1e400"]
    assert [value_of(text) for text in typed] == [
        0.5,
        True,
        None,
        {"graph": 3},
        "any",
        "NaN",
        "-Infinity",
        float("inf"),
    ]


def test_a_table_may_switch_the_rules_of_conversations_on_again() -> None:
    off = recipe("default", conversation=None)
    assert tailored(off, {"conversation": True}).conversation == DEFAULT.conversation
    fewer = recipe("default", conversation={"previous": 0.4})
    assert tailored(off, {"conversation": {"previous": 0.4}}).conversation == fewer.conversation
    seed = recipe("seed", conversation=None)
    assert tailored(seed, {"conversation": True}).conversation == recipe("seed").conversation
