"""What the harness needs beside semmem, the extra ``eval``, and where it writes."""

from __future__ import annotations

from importlib import util
from pathlib import Path

__all__ = ["NEEDED", "is_clone", "missing", "written_to"]

NEEDED = {"ir_measures": "ir-measures", "matplotlib": "matplotlib", "bm25s": "bm25s", "scipy": "scipy"}
"""Modules, and what their packages are called."""


def missing() -> str | None:
    """Return one sentence that names what is not installed and how to get it, None when all is there."""
    absent = [package for module, package in NEEDED.items() if util.find_spec(module) is None]
    if not absent:
        return None
    are = "is" if len(absent) == 1 else "are"
    install = "in your clone, run: pip install -e '.[eval]'" if is_clone() else "run: pip install 'semmem[eval]'"
    return f"{' and '.join(absent)} {are} not installed; {install}"


def is_clone() -> bool:
    """Return whether the harness lies in a clone of the repository, not in an installation."""
    return (Path(__file__).resolve().parents[1] / "pyproject.toml").is_file()


def written_to() -> Path:
    """Return the folder of runs, stores and questions: in a clone this one, else ``semmem-eval`` where you are."""
    return Path(__file__).resolve().parent if is_clone() else Path.cwd() / "semmem-eval"
