"""Names of the release before: each works, once more, and says what it is called now."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import semmem
from semmem.interfaces.cli.app import run

NOTE = {"id": "a", "text": "The ferry leaves at nine."}


@pytest.fixture
def mem() -> Any:
    with semmem.connect("sqlite::memory:", embedder="none") as one:
        yield one


def test_a_verb_answers_by_its_former_name(mem: Any) -> None:
    with pytest.deprecated_call(match="^bring_in is now called import_items; the former name works until"):
        assert mem.bring_in([NOTE]).remembered == 1
    with pytest.deprecated_call(match="^judgements is now called judgments;"):
        assert list(mem.judgements()) == []
    with pytest.raises(AttributeError, match="no attribute 'search'; the verb is recall"):
        _ = mem.search


def test_the_facade_of_asyncio_has_the_former_names_too() -> None:
    async def names() -> list[Any]:
        async with semmem.aconnect("sqlite::memory:", embedder="none") as mem:
            old: Callable[..., Any] = getattr(mem, "judgements")  # noqa: B009  # a type checker knows no such name
            return list(await old())

    with pytest.deprecated_call(match="judgements is now called judgments"):
        assert asyncio.run(names()) == []


def test_a_class_and_an_attribute_answer_by_their_former_names(mem: Any) -> None:
    with pytest.deprecated_call(match="Judgement is now called RelevanceJudgment"):
        assert semmem.Judgement is semmem.RelevanceJudgment  # type: ignore[attr-defined]
    mem.remember(**NOTE)
    why = mem.recall("ferry").explain("a")
    with pytest.deprecated_call(match="ways is now called paths"):
        assert why.ways == why.paths


def test_a_command_answers_by_its_former_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    url = f"sqlite:{tmp_path / 'notes.db'}"
    assert run(["--url", url, "remember", "The ferry leaves at nine."]) == 0
    capsys.readouterr()
    assert run(["--url", url, "judgements", "--json"]) == 0
    out, err = capsys.readouterr()
    assert out.strip().replace(" ", "").replace("\n", "") == '{"judgements":[]}'
    said = "Warning: judgements is now called judgments; the former name works until the next release."
    assert " ".join(err.split()) == said
