"""What editors complete is what the calls take."""

from __future__ import annotations

import dataclasses
import inspect
from datetime import date, datetime

import pytest

import semmem
from semmem.config import Settings
from semmem.model.filters import checked_filters
from semmem.model.keywords import FilterValues, Item, RecipeChanges, SettingValues
from semmem.model.serialization import instant
from semmem.write.items import KEYS


def test_an_item_has_the_keys_that_remember_takes() -> None:
    assert tuple(Item.__annotations__) == KEYS
    taken = inspect.signature(semmem.Semmem.remember).parameters
    assert set(Item.__annotations__) == set(taken) - {"self"}
    assert semmem.Item is Item


def test_filter_values_are_the_fields_of_filters() -> None:
    assert list(FilterValues.__annotations__) == [f.name for f in dataclasses.fields(semmem.Filters)]
    assert semmem.FilterValues is FilterValues


def test_the_settings_of_connect_are_all_the_settings_there_are() -> None:
    named = {name for name, p in inspect.signature(semmem.connect).parameters.items() if p.kind != p.VAR_KEYWORD}
    assert set(SettingValues.__annotations__) == set(Settings.model_fields) - named


def test_the_changes_of_a_recipe_are_its_fields() -> None:
    assert list(RecipeChanges.__annotations__) == [f.name for f in dataclasses.fields(semmem.Recipe)]


@pytest.mark.parametrize(
    "metadata",
    [
        {"year": {"gte": 2020}},
        {"year": {"$lt": 5, "$gte": 2}},
        {"year": {"GTE": 3}},
        {"year": {"between": [1, 2]}},
        {"year": {"$gt": 3, "x": 1}},
        {"year": {"$near": 3}},
        {"town": {"contains": "x"}},
        {"town": {"Like": "x%"}},
        {"a": {"b": [{"in": [1, 2]}]}},
        {"or": [{"year": {"eq": 3}}]},
    ],
)
def test_an_operator_among_metadata_is_refused_and_not_matched_with_nothing(metadata: dict[str, object]) -> None:
    with semmem.connect("sqlite::memory:", embedder="none") as mem:
        for call in (
            lambda: mem.recall("ferry", filters={"metadata": metadata}),
            lambda: mem.list(filters={"metadata": metadata}),
            lambda: mem.forget(filters={"metadata": metadata}),
        ):
            with pytest.raises(semmem.InvalidInput, match="knows no operators such as") as raised:
                call()
            assert "\n" not in str(raised.value)


def test_a_key_that_only_looks_like_an_operator_beside_others_is_metadata() -> None:
    with semmem.connect("sqlite::memory:", embedder="none") as mem:
        mem.remember("ferry", id="a", metadata={"trip": {"in": "harbour", "hours": 2}})
        found = mem.list(filters={"metadata": {"trip": {"in": "harbour", "hours": 2}}})
        assert [memory.id for memory in found] == ["a"]


def test_a_key_of_the_metadata_itself_may_be_any_word() -> None:
    words = {"or": "Oregon", "in": "box", "not": {"a": 1}, "$ref": "x"}
    with semmem.connect("sqlite::memory:", embedder="none") as mem:
        mem.remember("ferry", id="a", metadata=words)
        for key, value in words.items():
            found = mem.list(filters={"metadata": {key: value}})
            assert [memory.id for memory in found] == ["a"], key


@pytest.mark.parametrize(
    ("given", "iso"),
    [
        ("2026-03-01T09:00", "2026-03-01T09:00:00+00:00"),
        ("2026-03-01", "2026-03-01T00:00:00+00:00"),
        ("2026-03-01T09:00:00+02:00", "2026-03-01T09:00:00+02:00"),
        (date(2026, 3, 1), "2026-03-01T00:00:00+00:00"),
        (datetime(2026, 3, 1, 9), "2026-03-01T09:00:00+00:00"),
    ],
)
def test_a_time_is_read_alike_wherever_it_is_given_and_is_in_utc_without_a_zone(given: object, iso: str) -> None:
    assert instant(given).isoformat() == iso
    assert checked_filters({"created_after": given}).created_after == instant(given)
    with semmem.connect("sqlite::memory:", embedder="none") as mem:
        assert mem.remember("ferry", created_at=given).created_at == instant(given)  # type: ignore[arg-type]


@pytest.mark.parametrize(("wrong", "kind"), [("soon", ValueError), ("", ValueError), (7, TypeError), (None, TypeError)])
def test_what_is_no_time_is_told_from_what_is_no_text(wrong: object, kind: type[Exception]) -> None:
    with pytest.raises(kind):
        instant(wrong)
