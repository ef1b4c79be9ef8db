"""Of which recipes `connect` warns because a leg cannot bring in a memory of its own."""

from __future__ import annotations

import warnings

from semmem import RECIPES, reach, recipe
from semmem.client.opening import warn_of_barred_legs


def test_every_leg_of_default_can_bring_a_memory_of_its_own_into_the_top_10() -> None:
    report = reach(RECIPES["default"], 10)  # which `connect` takes as given, because the proof takes long
    classes = {(regime, leg): one.class_ for regime, legs in report.regimes.items() for leg, one in legs.legs.items()}
    assert {leg for _, leg in classes} == {"lexical", "dense", "graph"}
    assert set(classes.values()) == {"guaranteed"}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_of_barred_legs(recipe(), stacklevel=1)


def test_a_changed_recipe_is_proved_whatever_its_name_is() -> None:
    changed = recipe("default", weights={"graph": 0.001}, reserve={}, name="default")
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        warn_of_barred_legs(changed, stacklevel=1)
    beginning = "The leg graph of recipe 'default' is boost-only at k = 10"
    assert any(str(one.message).startswith(beginning) for one in seen)
