"""Import the packages that only the harness needs: those of the extra ``eval``."""

from __future__ import annotations

from importlib import util

__all__ = ["NEEDED", "missing"]

NEEDED = {"ir_measures": "ir-measures", "matplotlib": "matplotlib", "bm25s": "bm25s", "scipy": "scipy"}
"""Modules, and what their packages are called."""


def missing() -> str | None:
    """Return one sentence that names what is not installed and how to get it, None when all is there."""
    absent = [package for module, package in NEEDED.items() if util.find_spec(module) is None]
    if not absent:
        return None
    are = "is" if len(absent) == 1 else "are"
    return f"{' and '.join(absent)} {are} not installed; in your clone, run: pip install -e '.[eval]'"
