"""Log recalls: who asked through which interface, and what was given; off unless the setting ``recall_log`` is on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from semmem.model.process.asker import asker
from semmem.model.recall_log import LoggedHit, LoggedRecall
from semmem.model.store import RecallStore
from semmem.write.access import is_logging
from semmem.write.items import uuid7

__all__ = ["note_recall"]


def note_recall(
    life: RecallStore,
    question: str,
    namespaces: tuple[str, ...],
    hits: Iterable[LoggedHit],
    *,
    verb: str,
    recipe: str,
    agent: str | None,
    facts: Mapping[str, Any],
    redact: bool,
) -> str | None:
    """Log a recall and return its id, a UUIDv7; None inside an ``unlogged`` block.

    Each namespace stores the question, the facts and its own hits. ``agent`` is logged where the interface knows none.
    ``redact`` removes credentials from the question and the facts, which hold its arguments.
    """
    if not is_logging():
        return None
    interface, known = asker()
    id = uuid7()
    if redact:
        from semmem.write.screening import without_credentials

        question, facts = without_credentials(question), without_credentials(dict(facts))
    entry = LoggedRecall(
        id,
        question,
        tuple(dict.fromkeys(namespaces)),
        tuple(hits),
        None,
        verb,
        interface,
        known or agent,
        recipe,
        facts,
    )
    life.note_recall(entry)
    return id
