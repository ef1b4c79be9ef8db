"""Pictures as SVG: stacked bars of scores, bars of counts, and a graph; plain text for a file or a notebook.

Every text in them is escaped, so that no memory can act in a page.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from html import escape
from typing import TYPE_CHECKING, Any

from semmem.model.looks import LOOKS, OTHERS

if TYPE_CHECKING:
    import networkx

__all__ = ["bars", "graph_class", "network", "xml_text"]


_INK, _SOFT, _PAPER = "#1c2128", "#57606a", "#ffffff"
_LABEL, _WIDTH, _ROW, _LONGEST = 230, 420, 26, 36
_MOST_NODES, _SIZE = 150, 640
_NOT_IN_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def bars(title: str, rows: Sequence[tuple[str, Mapping[str, float]]]) -> str:
    """Return a picture of a bar for each row, stacked of its parts; the longest fills the width.

    Parts below 0 are left out of a bar: its length is what was added.
    """
    parts = {name: None for _, of in rows for name, value in of.items() if value > 0}
    colours = _colours(list(parts))
    sums = [sum(value for value in of.values() if value > 0) for _, of in rows]
    most = max(sums, default=0) or 1.0
    shapes = [_words(title, 12, 22, size=14, weight="bold")]
    left = 12.0
    for name, colour in colours.items() if len(colours) > 1 else ():
        shapes.append(_box(left, 34, 10, 10, colour) + _words(name, left + 14, 43, fill=_SOFT))
        left += 28 + 6.5 * len(name)
    top = 56
    for place, ((label, of), total) in enumerate(zip(rows, sums, strict=True)):
        y = top + place * _ROW
        shapes.append(_words(label, 12, y + 14))
        x = float(_LABEL)
        for name, colour in colours.items():
            width = max(0.0, of.get(name, 0.0)) * _WIDTH / most
            shapes.append(_box(x, y + 3, width, 14, colour, f"{name} {of.get(name, 0.0):.3g}") if width else "")
            x += width
        shapes.append(_words(f"{total:,.3f}" if total < 10 and total % 1 else f"{total:,.0f}", x + 6, y + 14))
    return _svg(_LABEL + _WIDTH + 80, top + len(rows) * _ROW + 12, title, shapes)


def network(graph: networkx.Graph) -> str:
    """Return a picture of a graph: memories as squares, concepts as circles; of a large one the best connected part."""
    import networkx

    nodes = sorted(graph.nodes, key=lambda node: (not graph.nodes[node].get("start"), -graph.degree(node), str(node)))
    part = graph.subgraph(nodes[:_MOST_NODES])
    title = f"{graph.number_of_nodes():,} nodes, {graph.number_of_edges():,} edges"
    if len(nodes) > _MOST_NODES:
        title += f"; the {_MOST_NODES} best connected are drawn"
    places = networkx.spring_layout(part, seed=0) if len(part) else {}

    def at(node: Any) -> tuple[float, float]:
        return _SIZE / 2 + float(places[node][0]) * (_SIZE / 2 - 60), _SIZE / 2 + 20 + float(places[node][1]) * (
            _SIZE / 2 - 50
        )

    shapes = [_words(title, 12, 22, size=14, weight="bold")]
    for one, other in part.edges:
        (x1, y1), (x2, y2) = at(one), at(other)
        shapes.append(f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="#d0d5db"/>')
    for node, about in part.nodes(data=True):
        x, y = at(node)
        name, size = str(about.get("title") or about.get("name") or node), 9.0 if about.get("start") else 5.0
        if about.get("kind") == "memory":
            shapes.append(_box(x - size, y - size, 2 * size, 2 * size, LOOKS["dense"].light, name))
        else:
            shapes.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{size}" fill="{LOOKS["graph"].light}"/>')
            shapes.append(_words(name, x + size + 2, y + 4, size=10, fill=_SOFT))
    return _svg(_SIZE, _SIZE + 20, title, shapes)


@cache
def graph_class() -> type[networkx.Graph]:
    """Return the class of graphs to look at: networkx's, which a notebook shows as a picture."""
    import networkx

    class Drawn(networkx.Graph):  # type: ignore[misc]  # networkx publishes no types
        """A graph that a notebook shows as a picture."""

        def _repr_html_(self) -> str:
            return network(self)

    return Drawn


def _colours(names: Sequence[str]) -> dict[str, str]:
    others = [name for name in names if name not in LOOKS]
    looks = {name: OTHERS[index % len(OTHERS)] for index, name in enumerate(others)}
    return {name: look.light for name, look in {**LOOKS, **looks}.items() if name in names}


def _words(text: str, x: float, y: float, *, size: int = 12, fill: str = _INK, weight: str = "normal") -> str:
    shown = text if len(text) <= _LONGEST or weight == "bold" else f"{text[: _LONGEST - 1]}…"
    style = f'font-size="{size}" font-weight="{weight}" fill="{fill}"'
    return f'<text x="{x:.1f}" y="{y:.1f}" {style}>{_safe(shown)}</text>'


def _box(x: float, y: float, width: float, height: float, colour: str, told: str = "") -> str:
    inside = f"<title>{_safe(told[:300])}</title>" if told else ""
    place = f'x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}"'
    return f'<rect {place} fill="{colour}">{inside}</rect>'


def _svg(width: float, height: float, title: str, shapes: Sequence[str]) -> str:
    size = f'viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" height="{height:.0f}"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" {size} font-family="sans-serif">'
        f'<title>{_safe(title)}</title><rect width="100%" height="100%" fill="{_PAPER}"/>{"".join(shapes)}</svg>'
    )


def xml_text(text: str) -> str:
    """Return ``text`` with a mark in place of each character that XML does not allow."""
    return _NOT_IN_XML.sub("\ufffd", text)


def _safe(text: str) -> str:
    return escape(xml_text(text))
