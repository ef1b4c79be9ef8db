"""How long a frame of the graph takes in a real Chromium, which draws in software, with 3,000 nodes or more.

    python -m tests.interfaces.explorer.frames [MEMORIES]

The memories are made up: each names three of 1,100 people and a town. Tells the median and the 95th percentile of the
frames while the wheel zooms, the mouse drags the picture, and the pointer goes over it.
"""

from __future__ import annotations

import random
import statistics
import sys
from collections.abc import Iterator
from typing import Any

import semmem
from semmem.interfaces.http.keys import Key
from tests.interfaces.explorer.browser import MISSING, chromium, watched
from tests.serving import running

OWNER = Key("explore", "explore", "", "admin", None, "2026-01-01T00:00:00+00:00")
FIRST = ("Ada", "Bo", "Cleo", "Dov", "Eli", "Fay", "Gus", "Hal", "Ida", "Jo", "Kit", "Lou", "Mia", "Ned", "Ola", "Pia")
LAST = ("Bramby", "Corndale", "Dunford", "Eldham", "Fernley", "Gorselow", "Holton", "Inkwick", "Jarworth", "Linby")
ENDS = ("", "son", "sen", "kin", "man", "by", "ton")
STEPS = 40
WATCH = """(ms) => { window.frames_ = new Promise((done) => {
  const took = [];
  let last = performance.now();
  const end = last + ms;
  const next = (now) => {
    took.push(now - last);
    last = now;
    now < end ? requestAnimationFrame(next) : done(took);
  };
  requestAnimationFrame(next); }); }"""


def notes(count: int) -> Iterator[dict[str, str]]:
    """Yield memories that name people and towns."""
    draw = random.Random(5)
    people = [f"{one} {other}{end}" for one in FIRST for other in LAST for end in ENDS][:1100]
    for n in range(count):
        one, other, third = people[n % len(people)], draw.choice(people), draw.choice(people)
        yield {"id": f"m{n}", "text": f"{one} met {other} and {third} at the harbour of {draw.choice(LAST)}."}


def main(count: int) -> None:
    """Print the frames of each movement."""
    with semmem.connect("sqlite::memory:", embedder="none") as mem, chromium() as browser:
        mem.remember_many(notes(count), namespace="big", batch_size=500)
        with running(mem, owner=OWNER) as server, watched(browser) as page:
            link = f"{server.url}/?token={server.sessions.invite()}#/graph?ns=big&around=Linby&hops=3&most=3000"
            page.goto(link)
            page.locator(".canvas canvas").first.wait_for()
            page.wait_for_timeout(15_000)
            print(page.locator(".facts").last.inner_text())
            for name in ("zoom", "drag", "pointer"):
                took = moved(page, name)
                most = sorted(took)[-1 - len(took) // 20]
                print(f"{name:8} median {statistics.median(took):5.0f} ms, 95 of 100 below {most:5.0f} ms")


def moved(page: Any, name: str) -> list[float]:
    """Return how long the frames took while the picture was moved."""
    box = page.locator(".canvas").bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(x, y)
    page.evaluate(WATCH, 5_000)
    if name == "drag":
        page.mouse.down()
    for step in range(STEPS):
        if name == "zoom":
            page.mouse.wheel(0, -40 if step % 20 < 10 else 40)
        else:
            page.mouse.move(x + 3 * step, y + 2 * step)
    page.mouse.up()
    took: list[float] = page.evaluate("() => window.frames_")
    page.wait_for_timeout(2_000)
    return took


if __name__ == "__main__":
    if MISSING:
        raise SystemExit(MISSING)
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1_500)
