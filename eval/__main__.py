"""Run the harness as ``python -m eval``."""

from __future__ import annotations

import sys

from eval.extra import missing

if __name__ == "__main__":
    if sentence := missing():
        print(f"error: {sentence}", file=sys.stderr)
        raise SystemExit(2)
    from eval.cli import main

    main()
