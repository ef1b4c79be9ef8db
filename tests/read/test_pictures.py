"""Pictures of a recall, an explanation and a graph, for a file or a notebook: SVG in which no memory can act."""

from __future__ import annotations

from xml.etree import ElementTree

import networkx
import pytest

import semmem
from semmem.model.pictures import bars, network

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture
def mem(store_url: str) -> semmem.Semmem:
    mem = semmem.connect(store_url, embedder="hashing")
    mem.remember("The Kestrel belongs to Ana Roth.", id="k", title="Kestrel")
    mem.remember("Ana Roth was born in <script>alert(1)</script> Quarley.\x01", id="q", title="Ana Roth")
    return mem


def test_bars_are_as_long_as_their_sums_and_their_parts_stand_in_the_order_of_the_legs() -> None:
    drawn = ElementTree.fromstring(bars("Two", [("first", {"graph": 3.0, "lexical": 1.0}), ("<b>", {"lexical": 2.0})]))
    parts = [one for one in drawn.findall(f"{SVG}rect") if one.get("height") == "14.0"]
    boxes = [(one.get("fill"), float(one.get("width", "0"))) for one in parts]
    assert boxes == [("#2f6fb0", 105.0), ("#c9821b", 315.0), ("#2f6fb0", 210.0)]  # of 420 for the longest
    words = [one.text for one in drawn.findall(f"{SVG}text")]
    assert words == ["Two", "lexical", "graph", "first", "4", "<b>", "2"]


def test_a_recall_and_an_explanation_are_shown_in_a_notebook_with_every_text_escaped(mem: semmem.Semmem) -> None:
    with mem:
        result = mem.recall("Where was the owner of the Kestrel born?")
        picture, why = result.to_svg(), result.explain("q")._repr_html_()
        assert result._repr_html_().endswith(picture)
    words = [one.text for one in ElementTree.fromstring(picture).findall(f"{SVG}text")]
    assert "1. Kestrel" in words
    assert "<th>leg</th><th>rank</th><th>share</th>" in why
    assert "<li>question → " in why
    assert "<script>" not in why + picture


def test_a_graph_is_shown_as_a_picture_and_stays_a_graph_of_networkx(mem: semmem.Semmem) -> None:
    with mem:
        graph = mem.graph()
    assert isinstance(graph, networkx.Graph)
    drawn = ElementTree.fromstring(graph._repr_html_())
    squares = [one for one in drawn.findall(f"{SVG}rect") if one.get("fill") == "#3a8f5f"]
    assert len(squares) == 2
    assert f"{graph.number_of_nodes()} nodes" in str(drawn.findtext(f"{SVG}title"))


def test_of_a_large_graph_the_best_connected_part_is_drawn() -> None:
    drawn = ElementTree.fromstring(network(networkx.star_graph(999)))
    assert drawn.findtext(f"{SVG}title") == "1,000 nodes, 999 edges; the 150 best connected are drawn"
    assert len(drawn.findall(f"{SVG}line")) == 149
    assert len(ElementTree.fromstring(network(networkx.Graph())).findall(f"{SVG}line")) == 0
