"""Recipes and their variants, settings from arguments and environment, and a sentence for every mistake."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from semmem import RECIPES, InvalidInput, Recipe, UnknownRecipe, config, recipe
from semmem.config import Settings
from semmem.model.recipe import check


def test_the_recipes_are_there_by_name_and_within_their_own_rules() -> None:
    assert set(RECIPES) >= {"default", "dense", "graph", "hybrid", "lexical", "seed"}
    for name, one in RECIPES.items():
        assert one.name == name
        check(one)


def test_default_gives_the_legs_constants_of_their_own_in_each_regime() -> None:
    default = recipe()
    assert default.weights == {"lexical": 0.1, "dense": 0.35, "graph": 0.35}
    assert {regime: default.constants(regime) for regime in default.regimes} == {
        "anchored": {"lexical": 4.0, "dense": 8.0, "graph": 2.0},
        "described": {"lexical": 4.0, "dense": 2.0, "graph": 8.0},
        "named": {"lexical": 4.0, "dense": 8.0, "graph": 0.0},
        "unnamed": {"lexical": 4.0, "dense": 8.0, "graph": 8.0},
    }
    places = {"agreed": 1, "graph": 3, "lexical": 4, "dense": 5}
    assert {regime: default.reserve_in(regime) for regime in ("anchored", "named", "unnamed")} == dict.fromkeys(
        ("anchored", "named", "unnamed"), places
    )
    assert default.reserve_in("described") == {"graph": 3, "lexical": 4, "dense": 5}
    former = recipe("two-regimes")
    assert former.weights == default.weights
    assert {regime: former.constants(regime) for regime in former.regimes} == {
        regime: default.constants(regime) for regime in ("named", "unnamed")
    }
    assert former.reserve == places
    first = recipe("default-0.1")
    assert first.weights == {"lexical": 1.0, "dense": 1.0, "graph": 0.35}
    assert first.constants("named") == {"lexical": 60.0, "dense": 60.0, "graph": 0.0}
    assert first.constants("unnamed") == {"lexical": 60.0, "dense": 60.0, "graph": 8.0}
    assert first.reserve == {"graph": 3, "lexical": 4, "dense": 5}


def test_rules_that_the_default_gained_are_its_own_and_every_other_recipe_keeps_what_it_was_measured_with() -> None:
    of = {r.name: r for r in RECIPES.values()}
    gained = {
        n: (r.graph.lone_names, r.conversation.dialogue, r.conversation.before_asked)
        for n, r in of.items()
        if r.conversation
    }
    assert gained.pop("default") == gained.pop("two-regimes") == ("leading", True, 0.3)
    assert set(gained.values()) == {("always", False, 0.1)}
    assert {"default-0.1", "seed", "hybrid", "lexical", "dense", "scored"} < set(gained)


def test_seed_is_one_one_and_point_35_at_sixty_without_reserve_or_bonus() -> None:
    seed = recipe("seed")
    assert seed.weights == {"lexical": 1.0, "dense": 1.0, "graph": 0.35}
    assert seed.constants() == {"lexical": 60.0, "dense": 60.0, "graph": 60.0}
    assert (dict(seed.reserve), seed.exact_bonus, seed.prior, seed.prior_floor) == ({}, 0.0, True, 0.7)


def test_the_other_recipes_call_their_own_legs_only() -> None:
    assert {n: recipe(n).legs for n in ("hybrid", "lexical", "dense", "graph")} == {
        "hybrid": ("lexical", "dense"),
        "lexical": ("lexical",),
        "dense": ("dense",),
        "graph": ("graph",),
    }


def test_a_variant_merges_mappings_and_leaves_the_recipe_as_it_was() -> None:
    variant = recipe("default", weights={"graph": 0.5}, depths={"dense": 20}, rank_constants={"graph": 4})
    assert variant.weights == {"lexical": 0.1, "dense": 0.35, "graph": 0.5}
    assert variant.depths == {"lexical": 100, "dense": 20, "graph": 100}
    assert variant.constants("named") == {"lexical": 4.0, "dense": 8.0, "graph": 4}
    assert variant.constants("described") == {"lexical": 4.0, "dense": 2.0, "graph": 4}
    assert recipe("default").weights["graph"] == 0.35


def test_the_reserve_is_replaced_whole() -> None:
    assert recipe("default", reserve={"graph": 2}).reserve == {"graph": 2}
    assert recipe("default", reserve={}).reserve == {}


def test_a_variant_of_a_variant_keeps_what_was_changed() -> None:
    twice = recipe(recipe("hybrid", weights={"dense": 0.3}), lexical={"k1": 0.9}, name="mine")
    assert (twice.name, twice.weights["dense"], twice.lexical.k1, twice.lexical.b) == ("mine", 0.3, 0.9, 0.5)


@pytest.mark.parametrize("off", [{"weights": {"dense": 0}}, {"depths": {"dense": 0}}])
def test_weight_or_depth_zero_switches_a_leg_off(off: dict[str, Any]) -> None:
    assert recipe("hybrid", **off).legs == ("lexical",)


def test_a_recipe_cannot_be_changed() -> None:
    default = recipe()
    with pytest.raises(AttributeError):
        default.prior = False  # type: ignore[misc]
    with pytest.raises(TypeError):
        default.weights["graph"] = 1.0  # type: ignore[index]
    with pytest.raises(TypeError):
        default.rank_constants["graph"]["named"] = 1.0  # type: ignore[index]
    with pytest.raises(TypeError):
        RECIPES["mine"] = default  # type: ignore[index]


@pytest.mark.parametrize("name", ["defualt", "", "DEFAULT", None, 3, ["default"]])
def test_an_unknown_recipe_is_refused_with_the_names_there_are(name: Any) -> None:
    with pytest.raises(UnknownRecipe, match=r"choose one of .*default, default-0.1, dense, graph, hybrid, lexical"):
        recipe(name)


NAN = float("nan")
WRONG: list[tuple[dict[str, Any], str]] = [
    ({"wieghts": {}}, "no setting 'wieghts'"),
    ({"weights": [1, 1, 0.35]}, "weights must be a mapping"),
    ({"weights": {"graph": -0.1}}, "weights.graph must be a number from 0 to 100, not -0.1"),
    ({"weights": {"graph": NAN}}, "weights.graph must be a number"),
    ({"weights": {"graph": "0.35"}}, "weights.graph must be a number"),
    ({"weights": {"graph": True}}, "weights.graph must be a number"),
    ({"weights": {"lexical": 0, "dense": 0, "graph": 0}}, "at least one leg"),
    ({"weights": {"colour": 1}}, "leg colour has a weight but no rank constant"),
    ({"rank_constants": {"dense": -1}}, "rank_constants.dense must be a number from 0"),
    ({"rank_constants": {"graph": {"named": 0}, "dense": {"named": 1, "unnamed": 2}}}, "must name every regime"),
    ({"rank_constants": {"graph": {"named": "0", "unnamed": 8}}}, "rank_constants.graph.named must be a number"),
    ({"depths": {"dense": 2.5}}, "depths.dense must be a whole number"),
    ({"depths": {"dense": 10_001}}, "depths.dense must be a whole number from 0 to 10000, not 10001"),
    ({"timeouts": {"dense": 0}}, "timeouts.dense must be a number from 0.001 to 3600, not 0"),
    ({"reserve": {"graph": 0}}, "reserve.graph must be a whole number from 1"),
    ({"reserve": {"graph": 3, "dense": 3}}, "a place of its own"),
    ({"reserve": ["graph"]}, "reserve must be a mapping"),
    ({"prior": 1}, "prior must be true or false, not 1"),
    ({"prior_floor": 1.1}, "prior_floor must be a number from 0 to 1, not 1.1"),
    ({"exact_bonus": -1}, "exact_bonus"),
    ({"lexical": {"k2": 1}}, "lexical has no setting 'k2'"),
    ({"lexical": {"k1": -1}}, "lexical.k1 must be a number from 0 to 100, not -1"),
    ({"lexical": {"b": 1.5}}, "lexical.b must be a number from 0 to 1, not 1.5"),
    ({"lexical": {"match": "some"}}, "lexical.match must be one of any, all, auto, not 'some'"),
    ({"graph": {"hops": 1.5}}, "graph.hops must be a whole number"),
    ({"graph": {"walk": "random"}}, "graph.walk must be one of gated, pagerank"),
    ({"graph": {"alpha": -0.1}}, "graph.alpha must be a number from 0 to below 1, not -0.1"),
    ({"graph": {"alpha": 1}}, "graph.alpha must be a number from 0 to below 1, not 1"),
    ({"graph": {"stems": 1}}, "graph.stems must be true or false, not 1"),
    ({"conversation": {"previous": -1}}, "conversation.previous must be a number from 0"),
    ({"conversation": {"collecting": 1}}, "conversation.collecting must be true or false, not 1"),
    ({"conversation": {"colour": 1}}, "conversation has no setting 'colour'"),
    ({"graph": {"seeders": "lexical"}}, "graph.seeders must be a list of names"),
    ({"graph": {"colour": 1}}, "graph has no setting 'colour'"),
]


@pytest.mark.parametrize(("changes", "sentence"), WRONG, ids=[w[1] for w in WRONG])
def test_a_setting_out_of_range_is_refused_in_one_sentence(changes: dict[str, Any], sentence: str) -> None:
    with pytest.raises(InvalidInput, match=sentence) as caught:
        recipe("default", **changes)
    assert str(caught.value).endswith(".")
    assert "\n" not in str(caught.value)


def test_a_recipe_of_ones_own_is_checked_when_it_is_used() -> None:
    with pytest.raises(InvalidInput, match="leg dense has a weight but no rank constant"):
        recipe(Recipe("mine", {"lexical": 1.0, "dense": 1.0}, {"lexical": 60.0}))


def test_an_argument_overrides_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEMMEM_LANGUAGE", "german")
    monkeypatch.setenv("SEMMEM_POOL_SIZE", "3")
    found = Settings.load(pool_size=5)
    assert (found.language, found.pool_size) == ("german", 5)
    assert Settings.load().pool_size == 3


def test_settings_that_are_made_and_not_loaded_refuse_a_wrong_value_in_the_same_sentence(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with pytest.raises(InvalidInput, match=r"^The setting pool_size must be .*, not 'x'\.$"):
        Settings(pool_size="x")
    monkeypatch.setenv("SEMMEM_POOL_SIZE", "x")
    with pytest.raises(InvalidInput, match=r"^The setting pool_size \(SEMMEM_POOL_SIZE\) must be .*, not 'x'\.$"):
        Settings()


def test_without_either_a_setting_has_its_default(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in Settings.model_fields:
        monkeypatch.delenv(f"SEMMEM_{name.upper()}", raising=False)
    found = Settings.load()
    assert (found.url, found.home, found.embedder, found.language, found.pool_size) == (None, None, None, "english", 8)


def test_the_home_of_the_environment_is_a_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEMMEM_HOME", "some/where")
    assert Settings.load().home == Path("some/where")


@pytest.mark.parametrize("name", ["home", "llm_cache", "triples"])
def test_an_empty_path_of_the_environment_counts_as_not_set(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv(f"SEMMEM_{name.upper()}", "")
    found = Settings.load()
    assert (getattr(found, name), found.source(name)) == (None, "default")


@pytest.mark.parametrize(("name", "value"), [("pool_size", "many"), ("pool_size", "0"), ("idle_stop_s", "-1")])
def test_a_bad_value_of_the_environment_is_named_with_its_variable(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv(f"SEMMEM_{name.upper()}", value)
    with pytest.raises(InvalidInput, match=rf"setting {name} \(SEMMEM_{name.upper()}\) must be") as caught:
        Settings.load()
    assert "\n" not in str(caught.value)


def test_a_setting_that_does_not_exist_is_refused_with_those_that_do() -> None:
    with pytest.raises(InvalidInput, match="no setting 'pool'; choose one of url, home, embedder"):
        Settings.load(pool=3)


def test_an_address_of_the_wrong_type_stands_in_no_error_because_a_password_may_stand_in_it() -> None:
    for name in ("url", "llm_url"):
        with pytest.raises(InvalidInput) as refused:
            Settings.load(**{name: ["postgresql://me:hunter2@db/notes"]})
        assert str(refused.value) == f"The setting {name} must be a string."


def test_a_recipe_of_the_environment_that_is_nested_too_deeply_is_taken_for_a_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SEMMEM_RECIPE", "[" * 100_000)
    assert Settings.load().recipe == "[" * 100_000  # which no recipe has, and so connect refuses it


def test_a_variable_in_small_letters_names_the_file_of_settings_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "mine.toml"
    file.write_text("pool_size = 3\n")
    monkeypatch.delenv("SEMMEM_CONFIG", raising=False)
    monkeypatch.setenv("semmem_config", str(file))
    found = Settings.load()
    assert (found.pool_size, found.source("pool_size")) == (3, str(file))
    file.write_text("pool_size = 'x'\n")
    with pytest.raises(InvalidInput) as refused:
        Settings.load()
    assert str(refused.value) == f"The setting pool_size ({file}, line 1) must be a whole number, not 'x'."


@pytest.mark.parametrize(
    ("name", "value", "must"),
    [
        ("resident_mb", "256MB", "a whole number of megabytes"),
        ("idle_stop_s", "1h", "a number of seconds"),
        ("keep_changes_days", "90d", "a number of days"),
        ("resident_mb", "-1", "at least 0"),
        ("pool_size", "x", "a whole number"),
    ],
)
def test_a_refused_quantity_names_its_unit(name: str, value: str, must: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        Settings.load(**{name: value})
    assert str(refused.value) == f"The setting {name} must be {must}, not '{value}'."


def test_a_misspelt_variable_is_warned_of_once_and_its_neighbour_named(monkeypatch: pytest.MonkeyPatch) -> None:
    config._warn.cache_clear()
    monkeypatch.delenv("SEMMEM_EMBEDDER", raising=False)
    monkeypatch.setenv("SEMMEM_EMBEDER", "none")
    monkeypatch.setenv("semmem_colour", "blue")
    with pytest.warns(UserWarning, match="SEMMEM_") as warned:
        assert [Settings.load().embedder for _ in range(2)] == [None, None]
    assert [str(one.message) for one in warned] == [
        "SEMMEM_COLOUR is not a setting and is ignored; `semmem settings` lists the settings.",
        "SEMMEM_EMBEDER is not a setting and is ignored; did you mean SEMMEM_EMBEDDER?",
    ]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("SEMMEM_EVAL_DATA", "/data"), ("SEMMEM_TEST_CITUS", "1"), ("SEMMEM_SERVICE_HOST", "10.0.0.7"),
        ("SEMMEM_PORT", "tcp://10.0.0.7:8765"), ("SEMMEM_PORT_8765_TCP_ADDR", "10.0.0.7"), ("SEMMEMORY", "x"),
        ("SEMMEM_DB_SERVICE_HOST", "10.0.0.8"), ("SEMMEM_DB_SERVICE_PORT_PG", "5432"),
        ("SEMMEM_DB_PORT", "tcp://10.0.0.8:5432"), ("SEMMEM_DB_PORT_5432_TCP_PROTO", "tcp"),
    ],
)  # fmt: skip
def test_a_variable_that_somebody_else_reads_or_sets_is_not_warned_of(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv(name, value)
    assert config.unknown_variables() == {}
    monkeypatch.setenv("SEMMEM_PORT", "8765")  # no service's, but somebody's who wants to choose a port
    assert list(config.unknown_variables()) == ["SEMMEM_PORT"]
