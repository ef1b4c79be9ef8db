"""The command line: ``python -m eval run|ablate|ingredients|sweep|fusions|history|...``; ``--help`` lists all."""

from __future__ import annotations

from eval.commands import experiments, results, own, checks, bench, evidence, confidence, legs, agents  # noqa: F401  # isort: skip  # adds them, in this order
from eval.commands.interface import EXIT_INTERRUPTED, app, err

__all__ = ["app", "main"]


def main() -> None:
    """Run the command line; Ctrl-C leaves with 130 and says how to resume."""
    try:
        app()
    except SystemExit as left:
        if left.code == EXIT_INTERRUPTED:
            err.print("Interrupted. Run the same command again to take up where it stopped.")
        raise
