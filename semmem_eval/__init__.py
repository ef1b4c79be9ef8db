"""What `semmem-eval` runs: the harness, in a clone the package `eval` beside this one, in the wheel inside it."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

__all__ = ["main"]


def main() -> None:
    """Run the harness; its modules call each other `eval`, a name that an installation has no right to take for all."""
    here = Path(__file__).resolve().parent
    sys.path.insert(0, str(here if (here / "eval").is_dir() else here.parent))
    runpy.run_module("eval", run_name="__main__")
