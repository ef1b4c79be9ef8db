"""Measure the page in a real Chromium: its first paint, and the time from a move of a slider to the list that follows.

    python -m eval.page --url URL --namespace NAME --question "…" [--moves 40] [--json]

It needs playwright and a Chromium, and a server of yours without keys (`semmem serve`) that holds the memories.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
from typing import Any
from urllib.parse import urlencode

_PAINTED = """() => new Promise((done) => new PerformanceObserver((list) => {
  for (const one of list.getEntriesByName('first-contentful-paint')) done(one.startTime);
}).observe({ type: 'paint', buffered: true }))"""

_MOVED = """(value) => new Promise((done) => {
  const graph = [...document.querySelectorAll('fieldset')].find((one) => one.querySelector('legend').innerText.startsWith('graph'));
  const slider = graph.querySelector('input[type=range]');
  const begun = performance.now();
  const facts = document.querySelector('.facts');
  const seen = new MutationObserver(() => {
    if (facts.getAttribute('aria-busy') === 'true') return;
    seen.disconnect();
    requestAnimationFrame(() => done(performance.now() - begun));
  });
  seen.observe(document.querySelector('.columns'), { subtree: true, childList: true, characterData: true, attributes: true });
  slider.value = value;
  slider.dispatchEvent(new Event('input', { bubbles: true }));
})"""  # noqa: E501


def summary(times: list[float]) -> dict[str, float]:
    """Return the median and the 95th percentile of some times, in milliseconds."""
    ordered = sorted(times)
    return {"median": round(statistics.median(ordered), 1), "p95": round(ordered[int(0.95 * (len(ordered) - 1))], 1)}


def measured(url: str, namespace: str, question: str, moves: int) -> dict[str, Any]:
    """Return the times of first paints and of moves of the graph's weight, in milliseconds."""
    from playwright.sync_api import sync_playwright

    chromium = os.environ.get("SEMMEM_TEST_CHROMIUM") or shutil.which("chromium") or ""
    paints: list[float] = []
    followed: list[float] = []
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        for _ in range(max(2, moves // 4)):  # each with an empty cache
            page = browser.new_context().new_page()
            page.goto(f"{url}/#/recall?{urlencode({'ns': namespace})}")
            paints.append(page.evaluate(_PAINTED))
            page.context.close()
        page = browser.new_context().new_page()
        page.goto(f"{url}/#/recall?{urlencode({'ns': namespace, 'q': question})}")
        page.locator(".hit").first.wait_for()
        page.wait_for_load_state("networkidle")
        for move in range(moves):
            followed.append(page.evaluate(_MOVED, str(round(0.05 + 0.05 * move, 2))))
            page.wait_for_load_state("networkidle")
        browser.close()
    return {"first paint ms": summary(paints), "slider ms": summary(followed), "paints": len(paints), "moves": moves}


def main() -> None:
    """Print the measurement."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("--url", "--namespace", "--question"):
        parser.add_argument(name, required=True)
    parser.add_argument("--moves", type=int, default=40)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    told = measured(given.url.rstrip("/"), given.namespace, given.question, given.moves)
    print(json.dumps(told) if given.json else "\n".join(f"{name}: {value}" for name, value in told.items()))


if __name__ == "__main__":
    main()
