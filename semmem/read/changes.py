"""List what was written, updated and forgotten after a cursor, in order and without a gap.

For programs that keep a copy of the memories. A cursor is opaque text. For each namespace it holds which namespace of
that name was read and up to which change.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping, Sequence

from semmem.model.errors import InvalidInput
from semmem.model.history import Change, Changes
from semmem.model.store import VersionStore
from semmem.model.store.life import ChangeLog

__all__ = ["NOW", "changes"]

NOW = "now"
"""Given instead of a cursor: return no changes, but a cursor for the changes from now on."""
_Place = tuple[int | None, int, str | None, int | None]
"""(Birth of the namespace, sequence number, id within that sequence number, number of restored backups.)"""
_PARTS = 4
_BEGINNING: _Place = (None, 0, None, None)


def changes(life: VersionStore, since: str | None, namespaces: Sequence[str], limit: int) -> Changes:
    """Return up to ``limit`` changes after the cursor ``since``, one namespace after the other.

    A ``since`` of None begins at the first change. Raises InvalidInput for a cursor that does not belong to these
    namespaces, and where changes after the cursor were deleted, because there would be a gap.
    """
    places = dict.fromkeys(namespaces, _BEGINNING) if since in (None, NOW) else _places(str(since), namespaces)
    logs = life.changes({n: (number, id) for n, (_, number, id, _) in places.items()}, 0 if since == NOW else limit)
    if since == NOW:
        return Changes((), _cursor({n: (log.origin, log.number, None, _life(log)) for n, log in logs.items()}))
    page: list[Change] = []
    for namespace, log in logs.items():
        _, number, id, _ = places[namespace]
        if _lost(places[namespace], log):
            raise InvalidInput(
                f"Changes of the namespace {namespace!r} behind this cursor are gone (older than keep_changes_days, or "
                "a backup was restored, or another namespace took the name), so a copy would miss some: ask for "
                f"changes since {NOW!r}, take a full export, and go on from there."
            )
        rows = log.changes[: limit - len(page)]
        page += [change for _, change in rows]
        if rows:
            last, cut = rows[-1], len(rows) < len(log.changes) or len(log.changes) == limit
            number, id = last[0], last[1].id or "" if cut else None
        places[namespace] = (log.origin, number, id, _life(log))
    return Changes(tuple(page), _cursor(places))


def _life(log: ChangeLog) -> int | None:
    return None if log.restored is None else log.restored["life"]


def _lost(place: _Place, log: ChangeLog) -> bool:
    """Return whether changes after a place are lost: they were swept, or the namespace was dropped and made again.

    Nothing is lost where the next change is that all was dropped, as under the old name of a renamed namespace, whose
    row is a new one in SQLite. Changes are also lost where a backup was restored after the cursor was made: those later
    than the backup are gone, and their numbers are used again.
    """
    before, number, id, life = place
    dropped = bool(log.changes) and log.changes[0][1].kind == "dropped"
    again = before is not None and ((before != log.origin and not dropped) or number > log.number)
    if before is not None and log.restored is not None and life != log.restored["life"]:
        again = again or life != log.restored["before"] or number > (log.restored["number"] or 0)
    return again or log.swept > number or (log.swept == number and id is not None)


def _cursor(places: Mapping[str, _Place]) -> str:
    return base64.urlsafe_b64encode(json.dumps(places, separators=(",", ":")).encode()).decode().rstrip("=")


def _places(cursor: str, namespaces: Sequence[str]) -> dict[str, _Place]:
    """Return the place in each namespace; a namespace that the cursor does not name is read from its first change."""
    try:
        table = json.loads(base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True))
        places = {n: (origin, number, id, *life) for n, (origin, number, id, *life) in table.items()}
        places = {n: place if len(place) == _PARTS else (*place, None) for n, place in places.items()}
        for origin, number, id, life in places.values():
            is_place = isinstance(origin, int | None) and isinstance(number, int) and isinstance(id, str | None)
            if not (is_place and isinstance(life, int | None)):
                raise ValueError
    except (ValueError, TypeError, AttributeError, binascii.Error, RecursionError):
        raise InvalidInput("That is no cursor of changes; pass on the one that the call before has returned.") from None
    return {namespace: places.get(namespace, _BEGINNING) for namespace in namespaces}
