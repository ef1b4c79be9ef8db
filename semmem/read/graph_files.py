"""Write a graph as a file: a page to explore in a browser, GraphML, Graphviz's DOT, or JSON.

Texts of memories are never markup: the page holds them as JSON that cannot close its element and sets them as text, and
its policy allows no other script and no connection.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Callable
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from semmem.files import new_file
from semmem.model.errors import InvalidInput
from semmem.model.pictures import xml_text

if TYPE_CHECKING:
    import networkx

__all__ = ["FORMATS", "as_dot", "as_graphml", "as_html", "as_plain", "write"]

_STYLE, _SCRIPT = re.compile(r"<style>(.*?)</style>", re.DOTALL), re.compile(r"<script>(.*?)</script>", re.DOTALL)


def as_plain(graph: networkx.Graph) -> dict[str, Any]:
    """Return the graph as JSON-ready values; networkx reads it back with ``node_link_graph(…, edges="edges")``."""
    return {
        "directed": False,
        "multigraph": False,
        "graph": dict(graph.graph),
        "nodes": [{"id": node, **about} for node, about in graph.nodes(data=True)],
        "edges": [{"source": one, "target": other, **about} for one, other, about in graph.edges(data=True)],
    }


def as_json(graph: networkx.Graph) -> str:
    """Return ``as_plain`` as text."""
    return json.dumps(as_plain(graph), ensure_ascii=False, indent=1) + "\n"


def as_graphml(graph: networkx.Graph) -> str:
    """Return GraphML; characters that XML cannot hold become the replacement character."""
    import networkx

    clean = networkx.Graph(**{key: _xml(value) for key, value in graph.graph.items()})
    for node, about in graph.nodes(data=True):
        clean.add_node(_xml(node), **{key: _xml(value) for key, value in about.items()})
    for one, other, about in graph.edges(data=True):
        clean.add_edge(_xml(one), _xml(other), **{key: _xml(value) for key, value in about.items()})
    return "\n".join(networkx.generate_graphml(clean)) + "\n"


def as_dot(graph: networkx.Graph) -> str:
    """Return Graphviz's DOT: memories are boxes, concepts ellipses, heavier edges thicker."""
    lines = ["graph semmem {", "  layout=neato; overlap=false; splines=true;", '  node [fontname="sans-serif"];']
    for node, about in graph.nodes(data=True):
        shape = "box" if about["kind"] == "memory" else "ellipse"
        bold = ", penwidth=3" if about.get("start") else ""
        tip = about.get("text", about["title"])
        lines.append(f"  {_dot(node)} [label={_dot(about['title'])}, tooltip={_dot(tip)}, shape={shape}{bold}];")
    for one, other, about in graph.edges(data=True):
        style = {"subject": "bold", "mention": "solid"}.get(about.get("role", ""), "dashed")
        width = f"{0.5 + 2.5 * about['weight']:.2f}"
        lines.append(f"  {_dot(one)} -- {_dot(other)} [style={style}, penwidth={width}, weight={about['weight']:.4f}];")
    return "\n".join([*lines, "}"]) + "\n"


def as_html(graph: networkx.Graph) -> str:
    """Return one page that needs no network: drag, zoom, search, click for the text."""
    page = files("semmem.read").joinpath("graph_page.html").read_text(encoding="utf-8")
    hashes = [_sha256(one) for pattern in (_STYLE, _SCRIPT) for one in pattern.findall(page)[:1]]
    policy = f"default-src 'none'; style-src 'sha256-{hashes[0]}'; script-src 'sha256-{hashes[1]}'"
    about = str(graph.graph.get("around") or graph.graph.get("namespace", ""))
    filled = {"@policy@": policy, "@title@": escape(f"semmem graph · {about}"), "@data@": _harmless(as_plain(graph))}
    return re.sub("@policy@|@title@|@data@", lambda match: filled[match[0]], page)


FORMATS: dict[str, Callable[[Any], str]] = {
    ".html": as_html,
    ".graphml": as_graphml,
    ".dot": as_dot,
    ".json": as_json,
}
"""The writer of each format, by the ending of the file's name."""


def write(graph: networkx.Graph, path: Path, *, force: bool = False) -> None:
    """Write the graph in the format of the ending of ``path``, readable by its owner alone.

    Raises InvalidInput for another ending, for a file that exists (unless ``force``), and where it cannot be
    written.
    """
    form = FORMATS.get(path.suffix.lower())
    if form is None:
        raise InvalidInput(f"A graph is written as {', '.join(FORMATS)}; {path.name!r} ends in none of them.")
    try:
        with new_file(path, force=force) as out:
            out.write(form(graph).encode("utf-8", "replace"))
    except OSError as error:
        raise InvalidInput(f"The graph cannot be written to {path}: {error.strerror or error}.") from error


def _harmless(value: Any) -> str:
    """Return JSON in ASCII without <, > and &, so that no text in it can end the element it stands in."""
    text = json.dumps(value, ensure_ascii=True, separators=(",", ":"))
    for sign in "<>&":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return text


def _sha256(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _xml(value: Any) -> Any:
    return xml_text(value) if isinstance(value, str) else value


def _dot(text: str) -> str:
    """Return a quoted string of DOT; a backslash would be an escape of Graphviz's own, so it is doubled."""
    flat = " ".join(text.split())
    return '"' + flat.replace("\\", "\\\\").replace('"', '\\"') + '"'
