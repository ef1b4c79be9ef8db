"""Run the harness as ``python -m semmem_eval``."""

from __future__ import annotations

from semmem_eval import main

if __name__ == "__main__":
    main()
