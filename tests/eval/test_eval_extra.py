"""What a person reads who runs the harness without its packages."""

from __future__ import annotations

import runpy
import tomllib
from importlib import util
from pathlib import Path
from typing import Any

import pytest

from eval.extra import NEEDED, missing


def without(monkeypatch: pytest.MonkeyPatch, *absent: str) -> None:
    find_spec = util.find_spec

    def find(name: str, package: str | None = None) -> Any:
        return None if name in absent else find_spec(name, package)

    monkeypatch.setattr(util, "find_spec", find)


def test_nothing_is_said_where_everything_is_installed() -> None:
    assert missing() is None


def test_what_is_missing_is_named_with_the_line_that_adds_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    without(monkeypatch, "matplotlib", "bm25s")
    with pytest.raises(SystemExit) as left:
        runpy.run_module("eval", run_name="__main__")
    assert left.value.code == 2
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err == "error: matplotlib and bm25s are not installed; in your clone, run: pip install -e '.[eval]'\n"


def test_the_extra_holds_what_the_harness_needs_and_dev_holds_the_extra() -> None:
    whole = tomllib.loads((Path(__file__).resolve().parents[2] / "pyproject.toml").read_text(encoding="utf-8"))
    extras = whole["project"]["optional-dependencies"]
    assert {entry.split(">")[0] for entry in extras["eval"]} == set(NEEDED.values())
    (own,) = [entry for entry in extras["dev"] if entry.startswith("semmem[")]
    assert "eval" in own.removeprefix("semmem[").removesuffix("]").split(",")
