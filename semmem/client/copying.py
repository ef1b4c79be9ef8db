"""The copy of a whole store, which the audit of its source notes."""

from __future__ import annotations

from functools import partial
from typing import Any

from semmem import transfer
from semmem.client.audit import note_done
from semmem.model.reports import CopyReport
from semmem.transfer import Progress

__all__ = ["copy"]


def copy(from_url: str, to_url: str, *, progress: Progress = None, **settings: Any) -> CopyReport:
    """Copy the store at ``from_url`` into the one at ``to_url``, which must be empty, and check the copy.

    The copy is bit for bit the source as it was at the start: memories with times and versions, vectors, graph,
    corrections, settings of namespaces. The source may be in use. After an interruption the same call continues. Run
    again after the end, it adds the changes since, unless somebody has changed the copy. ``progress`` is called with
    the number of rows done. With the setting ``audit``, the source notes the copy.

    Raises InvalidInput for a target that cannot be used, StoreUnavailable if a server fails, StoreError if the copy
    differs from its source.
    """
    noted = partial(note_done, verb="copy")
    return transfer.copy(from_url, to_url, progress=progress, copied=noted, **settings)
