"""A recall and a list in a notebook: an HTML table that no memory can act in, and a DataFrame."""

from __future__ import annotations

import sys

import pytest

import semmem
from semmem.client.memory import Semmem
from semmem.model.errors import MissingExtra


@pytest.fixture
def mem(store_url: str) -> Semmem:
    """Return an open store with two memories, one of them hostile."""
    mem = semmem.connect(store_url, embedder="none")
    mem.remember("The key of Heron House hangs behind the radio.", id="key", title="Heron House")
    mem.remember("<script>alert(1)</script> key & radio", id="<b>", metadata={"colour": "red"})
    return mem


def test_a_notebook_shows_hits_and_memories_as_tables_with_every_cell_escaped(mem: Semmem) -> None:
    with mem:
        hits, page = mem.recall("key radio")._repr_html_(), mem.list()._repr_html_()
    for html in (hits, page):
        assert html.startswith("<table><caption>")
        assert html.partition("</table>")[0].count("<tr>") == 3
        assert "<td>Heron House</td>" in html
        assert "&lt;script&gt;alert(1)&lt;/script&gt;" in html
        assert "<td>&lt;b&gt;</td>" in html
        assert "<script>" not in html
    assert "<th>rank</th><th>score</th><th>id</th>" in hits
    assert "<caption>2 memories</caption>" in page


def test_hits_and_memories_become_data_frames(mem: Semmem) -> None:
    pytest.importorskip("pandas")
    with mem:
        hits = mem.recall("Heron House radio")
        frame, page = hits.to_pandas(), mem.list().to_pandas()
        nothing = mem.recall("xylophone").to_pandas()
    assert list(frame["id"]) == ["key", "<b>"]
    assert frame.loc[0, "rank"] == 1
    assert frame.loc[0, "score"] == hits[0].score
    assert frame.loc[0, "lexical"] == hits[0].components["lexical"]
    assert sorted(page["id"]) == ["<b>", "key"]
    assert {"text", "title", "metadata", "created_at"} <= set(page.columns)
    assert len(nothing) == 0


def test_without_pandas_one_sentence_says_how_to_add_it(mem: Semmem, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with mem, pytest.raises(MissingExtra, match=r"to_pandas needs pandas, .*; add it with: pip install pandas"):
        mem.list().to_pandas()
