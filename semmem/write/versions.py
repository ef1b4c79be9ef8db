"""Versions of a memory: what an update says that somebody else was faster than. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from semmem.model.types import Memory

__all__ = ["overtaken"]

_SHOWN = 120


def overtaken(stored: Memory, expected: int, changes: Mapping[str, Any]) -> str:
    """Return what is said where a memory is not of the version that was expected, with both texts if they may be."""
    text = changes.get("text")
    if stored.sensitive or changes.get("sensitive"):
        return (
            f"The memory {stored.id!r} is at version {stored.version}, not {expected}; read it again, and update what "
            "you find."
        )
    yours = f", and yours is {_short(text)}" if isinstance(text, str) else ""
    return (
        f"The memory {stored.id!r} is at version {stored.version}, not {expected}: its text is now "
        f"{_short(stored.text)}{yours}; read it again, and update what you find."
    )


def _short(text: str) -> str:
    return repr(text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…")
