"""The program `semmem`, also as `python -m semmem`."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line and leave with its exit code, also where Ctrl-C comes before it has been loaded."""
    try:
        from semmem.doors.cli.app import run

        code = run()
    except KeyboardInterrupt:
        sys.stderr.write("Stopped.\n")
        code = 130
    sys.exit(code)


if __name__ == "__main__":
    main()
