"""What becomes of a memory: its versions, its links, its changes, as frozen dataclasses."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from semmem.model.types import Memory

__all__ = ["Version"]


@dataclass(frozen=True, slots=True)
class Version:
    """A memory as it was from one change to the next.

    ``changed_by`` and ``changed_at`` say who ended it and when: None for the version that is there now, and for a
    change that nobody put a name to. ``forgotten_at`` is when it was forgotten softly, None where it was not.
    """

    memory: Memory
    changed_by: str | None = None
    changed_at: datetime | None = None
    forgotten_at: datetime | None = None

    @property
    def version(self) -> int:
        """Its number, from 1."""
        return self.memory.version

    def as_dict(self) -> dict[str, Any]:
        """Return plain JSON-ready values; times as ISO 8601."""
        out: dict[str, Any] = {"version": self.version, "memory": self.memory.as_dict()}
        for f in dataclasses.fields(self)[1:]:
            value = getattr(self, f.name)
            out[f.name] = value.isoformat() if isinstance(value, datetime) else value
        return out
