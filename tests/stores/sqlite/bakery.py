"""A few memories about a bakery and a logger, for the tests of SQLite."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import semmem

ROOT = Path(__file__).resolve().parents[3]

TEXTS = {
    "kestrel": ("Kestrel", "The Kestrel is our logger, and Petra Lindqvist designed it in a winter."),
    "petra": ("Petra Lindqvist", "Her childhood was spent above a bakery in Norrbeck."),
    "bakery": (None, "The bakery in Norrbeck bakes rye, rye and more rye."),
    "rye": (None, "Rye keeps longer than wheat; the U.S. grows less of it than wheat."),
    "tower": (None, "東京タワーは赤い。 The tower is red, café-au-lait at dusk, v2.3.1 of it."),
    "long": ("Log", " ".join(f"Entry {n}: the logger ran in winter number {n % 7}." for n in range(60))),
    "copy": (None, "the bakery in norrbeck bakes rye, rye and more rye"),
}


def fill(mem: semmem.Semmem) -> None:
    """Remember TEXTS, in two sessions, and one memory behind a wall."""
    for number, (id, (title, text)) in enumerate(TEXTS.items()):
        mem.remember(text, id=id, title=title, session=f"s{number % 2}", tags=["t"] * (number % 3), namespace="n")
    mem.remember("rye rye rye behind a wall", id="walled", namespace="other")


def fresh(url: str, program: str, *arguments: str, **how: Any) -> subprocess.CompletedProcess[str]:
    """Run ``program`` in a process of its own, with semmem imported and the URL as its first argument."""
    code = f"import sys, semmem\nurl = sys.argv[1]\n{program}"
    return subprocess.run(
        [sys.executable, "-c", code, url, *arguments], capture_output=True, text=True, timeout=60, cwd=ROOT, **how
    )
