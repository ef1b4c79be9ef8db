"""A series of screenshots of the page, in the order of a first visit.

    python -m tests.interfaces.explorer.pictures FOLDER

Open, ask, why not, drag the weight of the graph until its reach changes, keep, merge two names, decide a contradiction;
light, dark and narrow. The memories are those of eval/data/harbour, in a store of its own.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import semmem
from semmem.interfaces.http.keys import Key
from tests.interfaces.explorer.browser import MISSING, chromium, watched
from tests.serving import running

HARBOUR = Path(__file__).parents[3] / "eval" / "data" / "harbour" / "documents.jsonl"
OWNER = Key("explore", "explore", "", "admin", None, "2026-01-01T00:00:00+00:00")
LOOKS = (("light", 1280), ("dark", 1280), ("light", 360))
QUESTION = "Who fitted the radio of the Corncrake?"


def main(folder: Path) -> None:
    """Write the series into ``folder``."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as store, semmem.connect(f"embedded://{store}") as mem, chromium() as browser:
        rows = [json.loads(line) for line in HARBOUR.read_text(encoding="utf-8").splitlines()]
        for scheme, width in LOOKS:
            namespace = f"harbour-{scheme}-{width}"  # each series keeps, merges and decides anew
            mem.remember_many(rows, namespace=namespace)
            with (
                running(mem, owner=OWNER) as server,
                watched(browser, viewport={"width": width, "height": 900}, color_scheme=scheme) as page,
            ):
                link = f"{server.url}/?token={server.sessions.invite()}#/recall?ns={namespace}"
                series(page, link, server.url, namespace, picture(page, folder, f"{scheme}-{width}"))
                if page.errors:
                    raise SystemExit("\n".join(page.errors))


def picture(page: Any, folder: Path, look: str) -> Callable[[str], None]:
    """Return what takes the next picture, once nothing moves."""
    taken: list[str] = []

    def take(name: str) -> None:
        taken.append(name)
        page.wait_for_load_state("networkidle")
        page.wait_for_timeout(3_000 if name == "merge" else 600)  # the graph shows no edges while it moves
        page.screenshot(path=str(folder / f"{look}-{len(taken)}-{name}.png"))

    return take


def series(page: Any, link: str, url: str, namespace: str, take: Callable[[str], None]) -> None:
    """Go through the page as somebody does for the first time."""
    page.goto(link)
    page.get_by_label("Question").wait_for()
    take("open")
    page.get_by_label("Question").fill(QUESTION)
    page.get_by_label("Hits", exact=True).fill("5")
    page.get_by_label("Hits", exact=True).press("Tab")
    page.get_by_role("button", name="Recall", exact=True).click()
    page.locator(".hit").first.wait_for()
    take("ask")
    page.get_by_label("Why not another memory?").fill("h198")
    page.get_by_role("button", name="Explain").click()
    page.get_by_role("region", name="Why").get_by_role("table").wait_for()
    page.get_by_role("region", name="Why").scroll_into_view_if_needed()
    take("why-not")
    graph = page.locator("fieldset").filter(has=page.locator("legend", has_text="graph"))
    graph.get_by_label("guaranteed slot as a number").fill("0")
    slider = graph.get_by_role("slider", name="weight")
    first = graph.locator("legend .badge").inner_text()
    slider.focus()
    for _ in range(8):
        page.keyboard.press("ArrowLeft")
        page.wait_for_timeout(400)
        if graph.locator("legend .badge").inner_text() not in (first, "off"):
            break
    graph.scroll_into_view_if_needed()
    take("drag-the-graph")
    page.get_by_role("button", name=f"Keep for {namespace}").click()
    page.get_by_role("status").filter(has_text="Kept for the namespace").wait_for()
    take("keep")
    page.goto(f"{url}/#/graph?ns={namespace}&around=Corncrake&q={QUESTION.replace(' ', '+')}")
    page.locator(".canvas canvas").first.wait_for()
    page.get_by_label("Is the same as").fill("Alban Teague")
    page.get_by_role("button", name="Merge").click()
    page.get_by_role("status").filter(has_text="is taken for").wait_for()
    take("merge")
    page.goto(f"{url}/#/inbox?ns={namespace}")
    page.get_by_role("button", name="The first one holds").first.click()
    page.get_by_role("status").filter(has_text="supersedes").wait_for()
    page.evaluate("() => window.scrollTo(0, 0)")
    take("decide")


if __name__ == "__main__":
    if MISSING or len(sys.argv) != 2:
        raise SystemExit(MISSING or "Give one folder: python -m tests.interfaces.explorer.pictures FOLDER")
    main(Path(sys.argv[1]))
