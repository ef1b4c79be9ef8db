"""How the value of a setting is read: as itself, or as the text of a variable."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from semmem.config import Settings
from semmem.model.errors import InvalidInput


@pytest.mark.parametrize(
    ("name", "given", "read"),
    [
        ("pool_size", "8.0", 8), ("pool_size", 8.0, 8), ("keep_versions", " 1_000 ", 1000),
        ("idle_stop_s", "inf", float("inf")), ("idle_stop_s", 2, 2.0),
        ("otel", "Yes", True), ("otel", "off", False), ("otel", 1, True), ("otel", "0", False),
        ("agent_min_confidence", "auto", "auto"), ("agent_min_confidence", "0.5", 0.5),
        ("hook_legs", "lexical", "lexical"), ("session_start", "last, pinned", "last, pinned"),
        ("recipe", {"weights": {"graph": 1}}, {"weights": {"graph": 1}}), ("embedder", None, None),
    ],
)  # fmt: skip
def test_a_value_is_read_as_itself_or_as_its_text(name: str, given: Any, read: Any) -> None:
    found = getattr(Settings.load(**{name: given}), name)
    assert (found, type(found)) == (read, type(read))


@pytest.mark.parametrize(
    ("name", "given", "must"),
    [
        ("pool_size", 2.5, "a whole number, not 2.5"), ("pool_size", True, "a whole number, not True"),
        ("pool_size", "0", "at least 1, not '0'"), ("keep_versions", 10**7, "at most 1,000,000, not 10000000"),
        ("pool_size", float("nan"), "a whole number, not nan"), ("pool_size", None, "a whole number, not None"),
        ("idle_stop_s", 0, "above 0, not 0"), ("idle_stop_s", float("nan"), "above 0, not nan"),
        ("idle_stop_s", False, "a number of seconds, not False"), ("otel", "maybe", "true or false, not 'maybe'"),
        ("otel", 2, "true or false, not 2"), ("log", "yaml", "none or json, not 'yaml'"),
        ("on_contradiction", "", "report, supersede or ignore, not ''"), ("home", 3, "a path, not 3"),
        ("language", 3, "a string, not 3"), ("key", 3, "a string"),
        ("agent_min_confidence", 1.5, "auto or a number from 0 to 1, not 1.5"),
        ("agent_min_confidence", True, "auto or a number from 0 to 1, not True"),
        ("recipe", 3, "the name of a recipe or a table of search settings, not 3"),
        (
            "session_start", "pinned,colour",
            "names of pinned, last, decided, elsewhere and latest, with commas between, not 'pinned,colour'",
        ),
    ],
)  # fmt: skip
def test_a_value_that_cannot_be_is_refused_with_what_it_must_be(name: str, given: Any, must: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        Settings.load(**{name: given})
    assert str(refused.value) == f"The setting {name} must be {must}."


def test_settings_cannot_be_changed_and_show_neither_a_key_nor_an_address() -> None:
    settings = Settings.load(key="hunter2", url="postgresql://me:hunter2@db/notes", pool_size=3, config="")
    assert settings.key is not None
    assert settings.key.get_secret_value() == "hunter2"
    assert "hunter2" not in repr(settings) + repr(settings.key)
    assert "pool_size=3" in repr(settings)
    assert pickle.loads(pickle.dumps(settings)) == settings != Settings.load(config="")
    with pytest.raises(AttributeError, match="Settings cannot be changed"):
        settings.pool_size = 4
