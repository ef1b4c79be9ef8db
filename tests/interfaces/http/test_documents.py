"""The index at `/` and the description of the API at `/docs`, which a browser shows without a network."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import httpx

import semmem
from semmem.client.routes import ROUTES
from semmem.interfaces.http.documents import docs_page
from semmem.interfaces.http.keys import Keys
from tests.serving import serving

BROWSER = {"accept": "text/html,application/xhtml+xml,*/*;q=0.8"}


class Seen(HTMLParser):
    """What a browser would load for a page, and where its links lead."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.links: set[str] = set()
        self.ids: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        named = {name: value or "" for name, value in attrs}
        assert "src" not in named or tag == "script"
        self.tags.add(tag)
        self.links |= {named["href"]} if "href" in named else set()
        self.ids |= {named["id"]} if "id" in named else set()


def test_the_index_says_what_the_server_is_and_where_to_go(http: httpx.Client) -> None:
    answer = http.get("/")
    assert answer.json() == {
        "name": "semmem",
        "version": semmem.__version__,
        "links": {
            "docs": "/docs", "openapi": "/openapi.json", "healthz": "/healthz", "readyz": "/readyz",
            "metrics": "/metrics",
        },
    }  # fmt: skip
    assert {http.get(link).status_code for link in answer.json()["links"].values()} == {200}
    page = http.get("/", headers=BROWSER)  # a browser gets the page of semmem explore there
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert '<script type="module" src="/page/app.js">' in page.text


def test_the_page_of_the_api_names_every_route_and_loads_nothing(http: httpx.Client) -> None:
    answer = http.get("/docs")
    assert (answer.status_code, answer.headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert answer.headers["content-security-policy"] == "default-src 'none'; style-src 'unsafe-inline'"
    for route in ROUTES:
        assert f"<code>{route.method} {route.path}</code>" in answer.text
    seen = Seen(answer.text)
    assert not seen.tags & {"script", "link", "img", "iframe", "object"}
    assert "http" not in {link.partition(":")[0] for link in seen.links}
    assert {link.removeprefix("#") for link in seen.links if link.startswith("#")} <= seen.ids
    assert not re.search(r"@import|url\(", answer.text)
    maintain = answer.text.split("<code>POST /v1/maintain</code>")[1]
    assert maintain.split("</p>")[0].endswith("Needs a key with the right admin.")


def test_the_page_shows_markup_in_a_description_as_text() -> None:
    operation = {"summary": "<b>", "description": "<script>", "responses": {"200": {"description": "<i>"}}}
    text = bytes(
        docs_page(
            {
                "info": {"description": "<img>", "version": "<1>"},
                "paths": {"/<x>": {"get": operation}},
                "components": {"schemas": {"<S>": {"properties": {"<f>": {"enum": ["<v>"]}}}}},
            }
        ).body
    ).decode()
    for markup in ("<b>", "<script>", "<i>", "<img>", "<1>", "<x>", "<S>", "<f>", "<v>"):
        assert markup not in text
        assert markup.replace("<", "&lt;").replace(">", "&gt;") in text


def test_index_and_page_need_no_key_and_say_nothing_of_what_is_stored(tmp_path: Path) -> None:
    keys = Keys(tmp_path / "keys.json")
    keys.add("laptop")
    with semmem.connect("sqlite::memory:", embedder="none") as mem, serving(mem, keys=keys) as url:
        empty = [httpx.get(f"{url}{path}", headers=BROWSER, trust_env=False, timeout=60) for path in ("/", "/docs")]
        mem.remember("The key is red.", namespace="heron-house", title="Heron House")
        filled = [httpx.get(f"{url}{path}", headers=BROWSER, trust_env=False, timeout=60) for path in ("/", "/docs")]
        assert httpx.get(f"{url}/v1/stats", trust_env=False, timeout=60).status_code == 401
    assert [one.status_code for one in empty] == [200, 200]
    assert [one.text for one in empty] == [one.text for one in filled]
