"""``python -m eval``."""

from __future__ import annotations

from eval.cli import main

if __name__ == "__main__":
    main()
