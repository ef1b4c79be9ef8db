"""Find the older memories nearest to a memory that was just written, so that its writer sees which it may outdate.

The rules that link contradictions miss some ("She eats meat again"); a person or an agent that reads the two nearest
older memories can tell. A store without vectors names those alone that the rules link. Turns of a conversation are not
named: what was said stays said.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import UTC, datetime

import numpy as np

from semmem.model.errors import SemmemError
from semmem.model.exchange import Row, Written
from semmem.model.process.clock import step
from semmem.model.store import Store
from semmem.model.types import Memory, Older
from semmem.write.items import is_turn

__all__ = ["LEAST_COSINE", "MOST_OLDER", "older_of"]

MOST_OLDER = 2
"""The most older memories that ``remember`` names."""
LEAST_COSINE = 0.5
"""A memory whose vector has a smaller cosine is about something else; see adr/0057."""
_DEPTH = 32
"""The nearest passages looked at, because some are parts of one memory, of turns or of memories with a later time."""


def older_of(store: Store, rows: Sequence[Row], written: Written, contradicted: Collection[str]) -> tuple[Older, ...]:
    """Return up to MOST_OLDER memories older than that of ``rows``: first those ``contradicted``, then the nearest.

    The memory is committed, so nothing is raised; a store that cannot be asked adds no nearest ones.
    """
    whole = rows[0].memory
    similar = written.similar.get(rows[0].name, ())
    found = [Older.of(one.id, one.text, one.at) for one in similar if one.id in contradicted]
    now = datetime.now(UTC)
    try:
        near = _nearest(store, rows, written) if len(found) < MOST_OLDER else ()
    except SemmemError:
        near = ()
    for one in near:
        expired = one.expires_at is not None and one.expires_at <= now
        if (
            not expired
            and not is_turn(one)
            and one.created_at is not None
            and one.created_at <= (whole.created_at or now)
        ):
            found.append(Older.of(one.parent_id or one.id, one.text, one.created_at))
    return _distinct(found)[:MOST_OLDER]


def _distinct(found: Sequence[Older]) -> tuple[Older, ...]:
    """Return ``found`` without a second part of one memory, and without a text that stands there already."""
    ids: set[str] = set()
    texts: set[str] = set()
    distinct = []
    for one in found:
        if one.id not in ids and one.text not in texts:
            distinct.append(one)
        ids.add(one.id)
        texts.add(one.text)
    return tuple(distinct)


def _nearest(store: Store, rows: Sequence[Row], written: Written) -> Sequence[Memory]:
    """Return the memories and parts nearest to the first one of ``rows`` that has a vector, nearest first."""
    first = next((row for row in rows if row.vector is not None), None)
    if store.vectors is None or first is None or first.vector is None:
        return ()
    own = np.array(sorted(written.row_ids[*row.name, row.part] for row in rows), dtype=np.int64)
    with step("older"):
        return store.vectors.nearest_memories(
            first.memory.namespace, first.vector, _DEPTH, least=LEAST_COSINE, excluded=own
        )
