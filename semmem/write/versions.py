"""Versions of a memory: what an update may change, who was overtaken, what a restored one is made from. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from reprlib import repr as shown
from typing import Any

from semmem.model.errors import InvalidInput, NotFound
from semmem.model.life import Forgotten
from semmem.model.types import Memory
from semmem.write.items import KEYS, Draft, payload_of

__all__ = ["CHANGEABLE", "check_changes", "overtaken", "restored"]

CHANGEABLE = tuple(name for name in KEYS if name not in ("id", "namespace"))
"""What update can change of a memory."""
_SHOWN = 120


def check_changes(changes: Mapping[str, Any], expected_version: Any) -> None:
    """Raise InvalidInput for a field that update cannot change, and for a version that is no number."""
    for name in changes:
        if name not in CHANGEABLE:
            raise InvalidInput(f"{shown(name)} cannot be changed; update takes {', '.join(CHANGEABLE)}.")
    if isinstance(expected_version, bool) or not isinstance(expected_version, int | None):
        raise InvalidInput(f"expected_version must be a whole number from 1, not {shown(expected_version)}.")


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


def restored(forgotten: Forgotten, embedder: Mapping[str, Any] | None, now: datetime) -> Draft:
    """Return what is to be stored again of a memory that was forgotten softly.

    Its vector comes back where it is of the ``embedder`` that fills the store now and stands for the whole text;
    otherwise the text is embedded anew. A vector that was given cannot be made anew. Raises NotFound for a memory that
    would have vanished by ``now``.
    """
    memory = forgotten.memory
    if memory.expires_at is not None and memory.expires_at <= now:
        raise NotFound(
            f"The memory {memory.id!r} in namespace {memory.namespace!r} has expired since it was forgotten, so it is "
            "not brought back; its history shows what it was."
        )
    payload = forgotten.payload or payload_of(memory, timed=True)
    vector = forgotten.vectors.get(0)
    draft = Draft(0, memory, payload, None, frozenset(("id",)), restores=True)
    if vector is None or forgotten.embedder is None or embedder is None or dict(embedder) != dict(forgotten.embedder):
        return draft
    return Draft(0, memory, payload, None, frozenset(("id",)), kept=(vector, forgotten.embedder), restores=True)
