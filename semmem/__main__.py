"""The program `semmem`, also as `python -m semmem`."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line and leave with its exit code."""
    from semmem.doors.cli.app import run

    sys.exit(run())


if __name__ == "__main__":
    main()
