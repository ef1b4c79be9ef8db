"""How long maintain keeps rows that users do not remove. Pure."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["KEEP", "Keep"]


@dataclass(frozen=True, slots=True)
class Keep:
    """The days that changes, forgotten memories, logged recalls, answers to requests and the audit are kept.

    They are parameters of SQL.

    ``versions`` is the number of earlier versions kept of each memory.
    """

    changes_days: float = 90.0
    forgotten_days: float = 30.0
    recall_log_days: float = 30.0
    versions: int = 100
    answers_days: float = 1.0
    audit_days: float = 365.0


KEEP = Keep()
"""The defaults, where no settings say otherwise."""
