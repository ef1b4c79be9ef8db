"""What maintain keeps, and for how long. Pure."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["KEEP", "Keep"]


@dataclass(frozen=True, slots=True)
class Keep:
    """For how many days things stay that nobody asked to be taken away; the names are parameters of the sweeps.

    Of earlier versions it is how many of each memory.
    """

    changes_days: float = 90.0
    forgotten_days: float = 30.0
    recall_log_days: float = 30.0
    versions: int = 100


KEEP = Keep()
"""What is kept where no settings say otherwise."""
