"""Draw docs/assets/explore.png: the page over the notes of harbour, with a weight at which the graph only boosts.

Run in a clone: python -m docs.tools.page. It needs Chromium and Playwright, and asks nothing but its own server.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import semmem
from semmem.interfaces.http.keys import Key
from tests.interfaces.explorer.browser import chromium, watched
from tests.serving import running

ROOT = Path(__file__).resolve().parents[2]
QUESTION = "Who fitted the radio of the boat that Freya Mortlake likes?"


def main() -> None:
    """Store the notes in a new folder, ask, move a slider, and take the picture."""
    notes = [json.loads(line) for line in (ROOT / "eval/data/harbour/documents.jsonl").read_text().splitlines()]
    owner = Key("explore", "explore", "", "admin", None, "2026-01-01T00:00:00+00:00")
    with tempfile.TemporaryDirectory() as folder, semmem.connect(f"embedded://{folder}/data") as mem:
        mem.remember_many(notes, namespace="harbour")
        mem.recall(QUESTION, namespace="harbour")
        with (
            running(mem, owner=owner) as server,
            chromium() as browser,
            watched(browser, viewport={"width": 1200, "height": 760}) as page,
        ):
            page.goto(f"{server.url}/?token={server.sessions.invite()}#/recall?ns=harbour")
            page.get_by_label("Question").fill(QUESTION)
            page.get_by_role("button", name="Recall", exact=True).click()
            page.locator(".hit").first.wait_for()
            graph = page.locator("fieldset").filter(has=page.locator("legend", has_text="graph"))
            graph.get_by_label("weight as a number").fill("0.01")
            graph.get_by_label("guaranteed slot as a number").fill("0")
            page.locator(".badge.boost-only").first.wait_for()
            page.locator("aside").evaluate("(box) => { box.scrollTop = box.scrollHeight; scrollTo(0, 0); }")
            page.wait_for_timeout(800)
            page.screenshot(path=ROOT / "docs/assets/explore.png")


if __name__ == "__main__":
    main()
