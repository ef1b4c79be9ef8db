"""The folders of a user on each platform."""

from __future__ import annotations

import sys

import pytest

from semmem.model.process.folders import Kind, users_folder


@pytest.fixture(autouse=True)
def home(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/ada")
    for kind in ("CONFIG", "DATA", "STATE"):
        monkeypatch.delenv(f"XDG_{kind}_HOME", raising=False)


@pytest.mark.parametrize(
    ("kind", "linux", "mac"),
    [
        ("config", "/home/ada/.config/semmem", "/home/ada/Library/Application Support/semmem"),
        ("data", "/home/ada/.local/share/semmem", "/home/ada/Library/Application Support/semmem"),
        ("state", "/home/ada/.local/state/semmem", "/home/ada/Library/Application Support/semmem"),
    ],
)
def test_each_platform_has_its_folder(monkeypatch: pytest.MonkeyPatch, kind: Kind, linux: str, mac: str) -> None:
    for platform, expected in (("linux", linux), ("darwin", mac)):
        monkeypatch.setattr(sys, "platform", platform)
        assert users_folder(kind) == expected


@pytest.mark.parametrize("kind", ["config", "data", "state"])
def test_an_absolute_path_of_xdg_comes_first_and_a_relative_one_counts_as_not_set(
    monkeypatch: pytest.MonkeyPatch, kind: Kind
) -> None:
    usual = users_folder(kind)
    monkeypatch.setenv(f"XDG_{kind.upper()}_HOME", "/var/xdg")
    assert users_folder(kind) == "/var/xdg/semmem"
    for relative in ("", "xdg", "~/xdg"):
        monkeypatch.setenv(f"XDG_{kind.upper()}_HOME", relative)
        assert users_folder(kind) == usual


@pytest.mark.parametrize("relative", ["", ".", "ada"])
def test_a_home_that_is_no_absolute_path_is_none(monkeypatch: pytest.MonkeyPatch, relative: str) -> None:
    monkeypatch.setenv("HOME", relative)
    assert users_folder("data") is None
    monkeypatch.setenv("XDG_DATA_HOME", "/var/xdg")
    assert users_folder("data") == "/var/xdg/semmem"
