"""Check what an update may change, report conflicting updates, and prepare restored memories. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from reprlib import repr as shown
from typing import TYPE_CHECKING, Any

from semmem.model.errors import BadItem, InvalidInput, NotFound
from semmem.model.history import Forgotten
from semmem.model.types import Memory
from semmem.text.passages import embedded_text
from semmem.write.items import KEYS, Draft, payload_of
from semmem.write.plan import Plan, Refused, Vectors

if TYPE_CHECKING:
    pass

__all__ = ["CHANGEABLE", "check_changes", "check_expected", "overtaken", "restored", "with_stored_vectors"]

CHANGEABLE = tuple(name for name in KEYS if name not in ("id", "namespace"))
"""The fields of a memory that update can change."""
_SHOWN = 120
_DIGITS, _HASHED = 10, 16


def check_changes(changes: Mapping[str, Any], expected_version: object) -> None:
    """Raise InvalidInput for a field that update cannot change, and for an ``expected_version`` that is no version."""
    for name in changes:
        if name not in CHANGEABLE:
            raise InvalidInput(f"{shown(name)} cannot be changed; update takes {', '.join(CHANGEABLE)}.")
    if expected_version is not None:
        check_expected(expected_version)


def check_expected(version: object) -> None:
    """Raise InvalidInput unless ``version`` is the version of a memory or its tag."""
    number, dash, hashed = version.partition("-") if isinstance(version, str) else ("", "", "")
    if dash and number.isascii() and number.isdecimal() and len(number) < _DIGITS and len(hashed) == _HASHED:
        return
    if isinstance(version, bool) or not isinstance(version, int):
        raise InvalidInput(
            f"expected_version must be a whole number, 1 or more, or the tag of a memory, not {shown(version)}."
        )


def overtaken(stored: Memory, expected: int | str, changes: Mapping[str, Any], draft: Draft) -> str | None:
    """Return the conflict, as a sentence, where a stored memory has not the expected version or tag; None where it has.

    The sentence holds both texts, unless one of them is sensitive or the new one, as ``draft`` has it, seems to hold a
    credential.
    """
    if expected in (stored.version, stored.tag):
        return None
    version = int(expected.partition("-")[0]) if isinstance(expected, str) else expected
    if version == stored.version:
        what = f"The memory {stored.id!r} was stored anew since, after it had been forgotten"
    else:
        what = f"The memory {stored.id!r} is at version {stored.version}, not {version}"
    text = draft.memory.text if "text" in changes else None
    if stored.sensitive or draft.memory.sensitive or (draft.suspected and not draft.redacted):
        return f"{what}; read it again, and update what you find."
    yours = f", and yours is {_short(text)}" if isinstance(text, str) else ""
    return f"{what}: its text is now {_short(stored.text)}{yours}; read it again, and update what you find."


def _short(text: str) -> str:
    return repr(text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…")


def with_stored_vectors(plan: Plan, recorded: Mapping[str, Any], vectors: Vectors) -> Plan:
    """Keep the vectors of changed memories of which the embedder ``recorded`` would see the same as before.

    A vector that was given stands for the text it was given with, so a new text needs a new one.
    """
    changed: list[Draft] = []
    refused = list(plan.refused)
    for draft in plan.changed:
        vector = None if draft.vector is not None else vectors.get((*draft.name, 0))
        if vector is None or draft.memory.sensitive:
            changed.append(draft)
        elif draft.replaces is not None and embedded_text(draft.replaces) == embedded_text(draft.memory):
            changed.append(replace(draft, stored_vector=(vector, recorded)))
        elif recorded["name"].startswith("external:"):
            reason = f"The vector of {draft.memory.id!r} was given with its old text; give one with the new text too."
            refused.append(Refused(draft.position, draft.name, reason, BadItem))
        else:
            changed.append(draft)
    return replace(plan, changed=changed, refused=refused)


def restored(forgotten: Forgotten, embedder: Mapping[str, Any] | None, now: datetime) -> Draft:
    """Return the draft that stores a softly forgotten memory again.

    Its vector is used where the ``embedder`` that fills the store now made it for the whole text; otherwise the text is
    embedded again. A vector given by the caller cannot be made again. Raises NotFound for a memory that expired by
    ``now``.
    """
    memory = forgotten.memory
    if memory.expires_at is not None and memory.expires_at <= now:
        raise NotFound(
            f"The memory {memory.id!r} in namespace {memory.namespace!r} has expired since it was forgotten, so it is "
            "not brought back; its history shows what it was."
        )
    payload = forgotten.payload or payload_of(memory, timed=True)
    vector = forgotten.vectors.get(0)
    draft = Draft(0, memory, payload, None, frozenset(("id",)), restores=True, text_at=forgotten.text_at)
    if vector is None or forgotten.embedder is None or embedder is None or dict(embedder) != dict(forgotten.embedder):
        return draft
    return replace(draft, stored_vector=(vector, forgotten.embedder))
