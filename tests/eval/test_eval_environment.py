"""The environment of programs that the harness measures has no setting of whoever runs it."""

from __future__ import annotations

import pytest

from eval.environment import without_settings


def test_settings_of_semmem_are_left_out_and_what_begins_as_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SEMMEM_URL", "SEMMEM_CONFIG", "XDG_DATA_HOME", "KELPLINE"):
        monkeypatch.setenv(name, "mine")
    some = without_settings("XDG_")
    assert {name: text for name, text in some.items() if text == "mine"} == {"KELPLINE": "mine"}
    assert {name for name in some if name.startswith(("SEMMEM_", "XDG_"))} == {"SEMMEM_CONFIG"}
    assert some["SEMMEM_CONFIG"] == ""
    assert without_settings()["XDG_DATA_HOME"] == "mine"
