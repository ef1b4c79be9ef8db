"""The one table of recipe settings: nothing in a recipe is missing from it, and it refuses what is out of range."""

from __future__ import annotations

import dataclasses
import re
from typing import Any

import pytest

from eval.experiments.conditions import TURNS
from semmem import RECIPES, InvalidInput, Recipe, recipe
from semmem.model.recipe import SETTINGS, ConversationSettings, GraphSettings, LexicalSettings, setting
from semmem.model.recipe_settings import Number, OrNone, Switch, values_of
from semmem.read.overrides import changed, settings_in

PARTS = {"lexical": LexicalSettings, "graph": GraphSettings, "conversation": ConversationSettings}
NUMBERS = [row for row in SETTINGS.values() if isinstance(row.values, Number)]


def set_to(name: str, value: Any) -> Any:
    """Return what the recipe has under a dotted name after it was set to ``value``."""
    key, _, inner = name.replace("LEG", "graph").partition(".")
    made = recipe("default", **{key: {inner: value} if inner else value})  # type: ignore[arg-type]
    return settings_in(made)[name.replace("LEG", "graph")]


@pytest.mark.parametrize("of", [Recipe, *PARTS.values()])
def test_every_field_of_a_recipe_says_what_it_takes_but_the_name(of: Any) -> None:
    assert {f.name for f in dataclasses.fields(of)} - set(values_of(of)) == ({"name"} if of is Recipe else set())


@pytest.mark.parametrize("name", sorted(RECIPES))
def test_every_setting_of_every_recipe_is_in_the_table(name: str) -> None:
    assert [at for at in settings_in(RECIPES[name]) if at != "recipe" and setting(at) is None] == []


def test_the_table_has_the_settings_of_the_legs_with_their_ranges_in_words() -> None:
    assert {name: SETTINGS[name].values.words for name in ("weights.LEG", "depths.LEG", "fusion", "prior_floor")} == {
        "weights.LEG": "a number from 0 to 100",
        "depths.LEG": "a whole number from 0 to 10000",
        "fusion": "one of rrf, convex, tm2c2, rank-scaled, scored",
        "prior_floor": "a number from 0 to 1, or none",
    }
    assert {row.whose for row in SETTINGS.values()} == {"leg", "fusion", "hits", "lexical", "graph", "conversation"}


def test_what_a_setting_means_is_one_line_without_a_full_stop() -> None:
    assert [row.name for row in SETTINGS.values() if not re.fullmatch(r".{9,149}[^.\n]", row.meaning)] == []


@pytest.mark.parametrize("row", NUMBERS, ids=lambda row: row.name)
def test_the_ends_of_a_range_are_taken_and_what_lies_beyond_is_refused(row: Any) -> None:
    values = row.values
    step = 1 if values.whole else 0.0001
    top = values.high - step if values.below else values.high
    assert set_to(row.name, top) == top
    if row.name not in ("weights.LEG", "depths.LEG"):  # 0 takes the leg out, which is tested elsewhere
        low = int(values.low) if values.whole else values.low
        assert set_to(row.name, low) == low
    for wrong in (values.low - step, values.high + step, float("nan"), True, "1", None, [1]):
        with pytest.raises(InvalidInput, match=r" must be .*, not ") as caught:
            set_to(row.name, wrong)
        assert str(caught.value).startswith(row.name.replace("LEG", "graph"))


@pytest.mark.parametrize("row", [r for r in SETTINGS.values() if isinstance(r.values, Switch)], ids=lambda r: r.name)
def test_a_switch_takes_true_and_false_and_no_number(row: Any) -> None:
    assert (set_to(row.name, True), set_to(row.name, False)) == (True, False)
    with pytest.raises(InvalidInput, match="must be true or false, not 1"):
        set_to(row.name, 1)


def test_a_name_is_a_setting_with_a_leg_or_whole() -> None:
    found = {name: setting(name) for name in ("weights.graph", "weights.regex", "reserve", "graph.hops")}
    assert [row.name for row in found.values() if row] == ["weights.LEG", "weights.LEG", "reserve", "graph.hops"]
    assert [setting(name) for name in ("weights", "weights.", "graph", "graph.colour", "name", "recipe")] == [None] * 6


def test_every_number_switch_and_word_of_the_table_can_be_swept_by_the_harness() -> None:
    turns = {name for name in TURNS if ".FIELD" not in name} | {
        f"{part}.{field}" for part in PARTS for field in TURNS[f"{part}.FIELD"].split(", ")
    }
    plain = {
        row.name
        for row in SETTINGS.values()
        if isinstance(row.values.values if isinstance(row.values, OrNone) else row.values, Number | Switch)
        and not row.name.endswith(".LEG")
    }
    assert plain <= turns
    assert {"fusion", "rerank", "graph.walk", "lexical.match", "reserve", "conversation"} <= turns
    assert "graph.seeders" not in turns


def test_rules_of_conversation_are_switched_by_true_and_false_in_python_too() -> None:
    off = recipe("default", conversation=False)
    assert off.conversation is None
    assert recipe(off, conversation=True).conversation == RECIPES["default"].conversation


def test_a_list_of_names_is_kept_as_a_tuple_wherever_it_comes_from() -> None:
    assert recipe("graph", graph={"seeders": ["dense"]}).graph.seeders == ("dense",)
    assert changed(RECIPES["graph"], {}, {"graph.seeders": ["dense"]}) == {"graph.seeders": ["dense"]}


def test_a_long_wrong_value_is_shortened_in_the_sentence() -> None:
    with pytest.raises(InvalidInput) as caught:
        recipe("default", fusion="x" * 10_000)  # type: ignore[arg-type]
    assert len(str(caught.value)) < 200
