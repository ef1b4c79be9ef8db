"""Measure the page in a real Chromium: its first paint, and the time from a move of a slider to the list that follows.

    python -m eval.page --url URL --namespace NAME --question "…" [--moves 40] [--json]

It needs playwright and a Chromium, and a server of yours without keys (`semmem serve`) that holds the memories. Each
opening of the page is measured beside one of /healthz, a line of text of the same server, with an empty cache: what
that takes is of the browser, the machine and its load. *cpu* is the time of the page's main thread on a processor.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
from collections.abc import Callable
from typing import Any
from urllib.parse import urlencode

_PAINTED = """() => new Promise((done) => new PerformanceObserver((list) => {
  for (const one of list.getEntriesByName('first-contentful-paint')) done(one.startTime);
}).observe({ type: 'paint', buffered: true }))"""

_USABLE = """() => new Promise((done) => {
  const look = () => (document.querySelector('input[type=search]') ? requestAnimationFrame((now) => done(now)) : requestAnimationFrame(look));
  look();
})"""  # noqa: E501

_MOVED = """(value) => new Promise((done, failed) => {
  const graph = [...document.querySelectorAll('fieldset')].find((one) => one.querySelector('legend').innerText.startsWith('graph'));
  const slider = graph.querySelector('input[type=range]');
  const facts = document.querySelector('.facts');
  let asked = false;
  const seen = new MutationObserver(() => {
    const busy = facts.getAttribute('aria-busy') === 'true';
    asked ||= busy;
    if (busy || !asked) return;
    seen.disconnect();
    requestAnimationFrame(() => done(performance.now() - begun));
  });
  seen.observe(document.querySelector('.columns'), { subtree: true, childList: true, characterData: true, attributes: true });
  setTimeout(() => failed(new Error('The list did not follow the slider.')), 20000);
  const begun = performance.now();
  slider.value = value;
  slider.dispatchEvent(new Event('input', { bubbles: true }));
})"""  # noqa: E501


def summary(times: list[float]) -> dict[str, float]:
    """Return the median and the 95th percentile of some times, in milliseconds."""
    ordered = sorted(times)
    return {"median": round(statistics.median(ordered), 1), "p95": round(ordered[int(0.95 * (len(ordered) - 1))], 1)}


def cpu(page: Any) -> Callable[[], float]:
    """Return what tells how many milliseconds the main thread of a page has worked so far."""
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable", {"timeDomain": "threadTicks"})

    def worked() -> float:
        metrics = {one["name"]: one["value"] for one in session.send("Performance.getMetrics")["metrics"]}
        return 1000 * float(metrics["TaskDuration"])

    return worked


def opened(browser: Any, url: str, *scripts: str) -> list[float]:
    """Open an address with an empty cache; return what each script tells, and the processor time last."""
    page = browser.new_context().new_page()
    worked = cpu(page)
    page.goto(url)
    told = [float(page.evaluate(script)) for script in scripts]
    page.wait_for_load_state("networkidle")
    told.append(worked())
    page.context.close()
    return told


def measured(url: str, namespace: str, question: str, moves: int) -> dict[str, Any]:
    """Return the times of openings and of moves of the graph's weight, in milliseconds."""
    from playwright.sync_api import sync_playwright

    chromium = os.environ.get("SEMMEM_TEST_CHROMIUM") or shutil.which("chromium") or ""
    place = f"{url}/#/recall?{urlencode({'ns': namespace})}"
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        opened(browser, place, _PAINTED)  # the first of a browser is slower, whatever it opens
        bare, whole = [], []
        for _ in range(max(2, moves // 2)):
            bare.append(opened(browser, f"{url}/healthz", _PAINTED))
            whole.append(opened(browser, place, _PAINTED, _USABLE))
        page = browser.new_context().new_page()
        page.goto(f"{place}&{urlencode({'q': question})}")
        page.locator(".hit").first.wait_for()
        page.wait_for_load_state("networkidle")
        worked = cpu(page)
        followed, took = [], []
        for move in range(moves):
            before = worked()
            followed.append(float(page.evaluate(_MOVED, str(round(0.05 + 0.05 * move, 2)))))
            took.append(worked() - before)
            page.wait_for_load_state("networkidle")
        browser.close()
    paints, lines = [one[0] for one in whole], [one[0] for one in bare]
    return {
        "first paint ms": summary(paints),
        "first paint of a line of text ms": summary(lines),
        "ratio of medians": round(statistics.median(paints) / statistics.median(lines), 2),
        "question can be typed ms": summary([one[1] for one in whole]),
        "cpu of opening ms": summary([one[2] for one in whole]),
        "cpu of a line of text ms": summary([one[1] for one in bare]),
        "slider ms": summary(followed),
        "cpu of a move ms": summary(took),
        "openings": len(whole),
        "moves": moves,
        "load": round(os.getloadavg()[0], 1),
    }


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
