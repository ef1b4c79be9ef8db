"""The environment of programs that are measured as a person runs them who has set nothing."""

from __future__ import annotations

import os

__all__ = ["without_settings"]


def without_settings(*beginnings: str) -> dict[str, str]:
    """Return this environment without settings of semmem, and without variables that have one of ``beginnings``.

    No file of settings is read in it either.
    """
    left_out = ("SEMMEM_", *beginnings)
    return {**{name: text for name, text in os.environ.items() if not name.startswith(left_out)}, "SEMMEM_CONFIG": ""}
