"""The demonstration with the real model: what it promises about its story is so."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

import semmem
from semmem.interfaces.cli import context, terminal
from semmem.interfaces.cli.app import run
from semmem.interfaces.cli.demo import show
from semmem.interfaces.cli.demo.data import QUESTIONS, story
from semmem.interfaces.cli.terminal import Terminal

pytest.importorskip("onnxruntime", reason="the dense leg needs: pip install 'semmem[minilm]'")


def test_the_graph_puts_the_answer_first_that_text_search_does_not_show(store_url: str) -> None:
    with semmem.connect(store_url, embedder="minilm") as mem:
        mem.remember_many(story(), namespace="story")
        for asked in QUESTIONS:
            hybrid = mem.recall(asked.query, namespace="story", limit=5, recipe="hybrid")
            default = mem.recall(asked.query, namespace="story", limit=5)
            assert default.degraded == {}
            assert asked.answer not in [hit.memory.id for hit in hybrid], asked.query
            assert default[0].memory.id == asked.answer, asked.query
            dense = mem.recall(asked.query, namespace="story", limit=60, recipe="dense")
            assert dense[0].memory.id != asked.answer, asked.query
            why = default.explain(asked.answer or "")
            assert len(why.path) == 2, asked.query  # question → concept → memory → concept → answer
            assert why.path[-1].to == asked.answer


@pytest.mark.slow
def test_the_whole_show_as_json_and_for_people(
    capfd: pytest.CaptureFixture[str], tmp_path: Path, store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "notes.md").write_text("# Boat\nThe Wren leaks.\n# Wren\nBuilt in Norrbeck.\n", encoding="utf-8")
    assert run(["demo", "--data", str(tmp_path), "--ask", "Where was the leaking boat built?", "--json"]) == 0
    told = json.loads(capfd.readouterr().out)
    assert told["story"]["memories"] == 60
    assert told["story"]["degraded"] == {}
    assert [len(question["default"]) for question in told["story"]["questions"]] == [5] * 5
    assert all(question["answer"] in question["brought_in"] for question in told["story"]["questions"])
    assert [question["dense_alone"]["answer_at"] for question in told["story"]["questions"]] == [11, 10, 6, 5, 4]
    assert told["story"]["questions"][0]["dense_alone"]["first"] == "tide-books"
    assert told["story"]["why_not"]["explanation"]["returned"] is False
    assert told["story"]["reach"]["seed"]["regimes"]["any"]["legs"]["graph"]["class"] == "boost-only"
    assert told["folder"]["memories"] == 2
    assert told["folder"]["questions"][0]["query"] == "Where was the leaking boat built?"

    monkeypatch.setenv("COLUMNS", "80")
    terminal.terminal.cache_clear()
    assert run(["--url", store_url, "demo", "--data", str(tmp_path)]) == 0
    terminal.terminal.cache_clear()
    shown = capfd.readouterr().out
    assert "boost-only" in shown
    assert "Petra Lindqvist" in shown
    assert "with the graph (default, named)" in " ".join(shown.split())
    assert "search alone shows first: Corrigan tide books; the answer has rank 11" in shown
    assert max(map(len, shown.splitlines())) <= 80
    with semmem.connect(store_url) as mem:
        assert mem.stats().memories == 0  # in a store of your own nothing is left behind


def test_boost_only_is_red(monkeypatch: pytest.MonkeyPatch) -> None:
    from semmem.model.recipe import recipe
    from semmem.rank_cap import reach

    console = Terminal(file=io.StringIO(), force_terminal=True, color_system="standard", width=100)
    monkeypatch.setattr(terminal, "terminal", lambda _: console)
    show.Show(context.CommandLine()).reaches([reach(recipe("seed"), 5), reach(recipe("default"), 5)])
    shown = console.file.getvalue()  # type: ignore[attr-defined]  # the StringIO above
    assert "\x1b[31mboost-only\x1b[0m" in shown
    assert "\x1b[32mguaranteed\x1b[0m" in shown
