"""A graph as a file: every form can be read back, and what a memory says is never markup."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path

import networkx
import pytest

from semmem.model.errors import InvalidInput
from semmem.read.graph_files import FORMATS, as_plain, write

EVIL = (
    "</script><img src=x onerror=\"document.title='pwned'\"><script>document.title='pwned'</script>"
    '<!-- ]]> @data@ @policy@ \\u003c & " \u2028 \x0b \ud83d'
)


def graph(text: str = "The Kestrel is our logger.") -> networkx.Graph:
    found = networkx.Graph(namespace="n", around=text[:20], hops=2, left_out=0)
    found.add_node("m:a", kind="memory", name=f"a{text}", title=f"Kestrel{text}", text=text, author=text, start=True)
    found.add_node("m:b", kind="memory", name="b", title="The Kestrel", text="It leaks.", start=False)
    found.add_node(
        "c:1", kind="concept", name=text, title=text, sort="name", df=2, idf=0.5, also=text, start=False
    )  # fmt: skip
    found.add_edge("m:a", "c:1", type="mention", role="subject", weight=0.5)
    found.add_edge("m:b", "c:1", type="mention", role="mention", weight=0.4)
    found.add_edge("m:a", "m:b", type="next in session", weight=0.25)
    return found


class Elements(HTMLParser):
    """Collects what a browser would make of the page: tags with their attributes, and the title."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: set[str] = set()
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes |= {name for name, _ in attrs}


def page(tmp_path: Path, text: str) -> str:
    write(graph(text), tmp_path / "graph.html", force=True)
    return (tmp_path / "graph.html").read_text(encoding="utf-8")


def test_the_page_asks_nobody_for_anything(tmp_path: Path) -> None:
    text = page(tmp_path, "The Kestrel is our logger.")
    assert (
        re.findall(r"\b[a-z]+://|\bsrc=|\bhref=|url\(|@import|\bfetch\(|XMLHttpRequest|WebSocket|sendBeacon", text)
        == []
    )
    assert "Content-Security-Policy" in text
    policy = re.search(r'content="(default-src[^"]*)"', text)
    assert policy is not None
    assert policy[1].startswith("default-src 'none'; style-src 'sha256-")
    assert "unsafe" not in policy[1]


def test_a_memory_that_says_markup_adds_no_element_to_the_page(tmp_path: Path) -> None:
    plain, evil = Elements(page(tmp_path, "Plain.")), Elements(page(tmp_path, EVIL))
    assert evil.tags == plain.tags
    assert evil.attributes == plain.attributes
    assert "img" not in evil.tags
    assert "onerror" not in evil.attributes


def test_the_page_holds_what_the_memories_say_to_the_letter(tmp_path: Path) -> None:
    text = page(tmp_path, EVIL)
    data = re.search(r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL)
    assert data is not None
    held = json.loads(data[1])
    assert held == as_plain(graph(EVIL))
    assert held["nodes"][0]["text"] == EVIL


def test_the_script_sets_text_and_never_markup() -> None:
    source = Path(str(FORMATS[".html"].__globals__["files"]("semmem.read").joinpath("graph_page.html")))
    script = source.read_text(encoding="utf-8")
    assert (
        re.findall(r"innerHTML|outerHTML|insertAdjacent|document\.write|\beval\(|new Function|\bon\w+=", script) == []
    )


def test_json_is_read_back_by_networkx(tmp_path: Path) -> None:
    write(graph(), tmp_path / "graph.json")
    read = networkx.node_link_graph(json.loads((tmp_path / "graph.json").read_text(encoding="utf-8")), edges="edges")
    assert networkx.utils.graphs_equal(read, graph())


@pytest.mark.parametrize("text", ["The Kestrel is our logger.", EVIL])
def test_graphml_is_read_back_by_networkx(tmp_path: Path, text: str) -> None:
    write(graph(text), tmp_path / "graph.graphml", force=True)
    read = networkx.read_graphml(tmp_path / "graph.graphml")
    assert set(read) == {"m:a", "m:b", "c:1"}
    assert read.edges["m:a", "c:1"] == {"type": "mention", "role": "subject", "weight": 0.5}
    for sign in "\x0b\ud83d":
        text = text.replace(sign, "\ufffd")  # XML holds no control characters and no half of a pair
    assert read.nodes["m:a"]["text"] == text


def test_dot_quotes_what_memories_say(tmp_path: Path) -> None:
    write(graph('Say "no" \\N\nand {go}; <b>'), tmp_path / "graph.dot")
    lines = (tmp_path / "graph.dot").read_text(encoding="utf-8").splitlines()
    concept = next(line for line in lines if line.startswith('  "c:1" ['))
    assert 'label="Say \\"no\\" \\\\N and {go}; <b>"' in concept
    # .5 + 2.5 × .25 = 1.125, and × .5 = 1.75
    assert '  "m:a" -- "m:b" [style=dashed, penwidth=1.12, weight=0.2500];' in lines
    assert '  "m:a" -- "c:1" [style=bold, penwidth=1.75, weight=0.5000];' in lines
    assert lines[-1] == "}"


def test_a_file_of_another_kind_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"\.html, \.graphml, \.dot, \.json; 'graph\.png' ends in none of them"):
        write(graph(), tmp_path / "graph.png")


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("chromium") is None, reason="needs Debian's package chromium")
def test_a_browser_draws_the_page_and_runs_nothing_that_a_memory_says(tmp_path: Path) -> None:
    page(tmp_path, EVIL.replace("\ud83d", ""))  # half a pair, which no store keeps, ends a Chromium that dumps its page
    flags = "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking"
    quiet = "--disable-component-update --disable-sync --virtual-time-budget=3000 --dump-dom"
    place = [f"--user-data-dir={tmp_path / 'profile'}", (tmp_path / "graph.html").as_uri()]
    done = subprocess.run(
        ["chromium", *flags.split(), *quiet.split(), *place], capture_output=True, text=True, timeout=90, check=True
    )
    seen = Elements(done.stdout)
    assert "<title>semmem graph" in done.stdout
    assert "pwned</title>" not in done.stdout
    assert "img" not in seen.tags
    assert "2 memories, 1 concepts" in done.stdout  # its own script ran, so the policy lets it
    assert "memory · " in done.stdout  # and the start is shown beside the picture
